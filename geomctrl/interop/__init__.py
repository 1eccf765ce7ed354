"""Exchange with other libraries: python-control systems, Pinocchio and MuJoCo states, MuJoCo's dynamics as a plant."""

from .mujoco_plant import mujoco_plant
from .states import from_mujoco, from_pinocchio, to_mujoco, to_pinocchio
from .systems import from_state, nonlinear_system, signal_names, state_space, to_state

__all__ = [
    "from_mujoco",
    "from_pinocchio",
    "from_state",
    "mujoco_plant",
    "nonlinear_system",
    "signal_names",
    "state_space",
    "to_mujoco",
    "to_pinocchio",
    "to_state",
]
