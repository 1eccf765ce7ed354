"""Exchange with other libraries: python-control systems, models and states of Pinocchio and MuJoCo, MuJoCo's dynamics
as a plant.
"""

from .mujoco_model import from_mujoco_model, to_mujoco_model
from .mujoco_plant import mujoco_plant
from .pinocchio_model import from_pinocchio_model, to_pinocchio_model
from .states import from_mujoco, from_pinocchio, to_mujoco, to_pinocchio
from .systems import from_state, nonlinear_system, signal_names, state_space, to_state

__all__ = [
    "from_mujoco",
    "from_mujoco_model",
    "from_pinocchio",
    "from_pinocchio_model",
    "from_state",
    "mujoco_plant",
    "nonlinear_system",
    "signal_names",
    "state_space",
    "to_mujoco",
    "to_mujoco_model",
    "to_pinocchio",
    "to_pinocchio_model",
    "to_state",
]
