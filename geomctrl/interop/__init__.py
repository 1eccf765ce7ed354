"""Exchange with other libraries: models and states of Pinocchio and MuJoCo, MuJoCo's dynamics as a plant,
python-control systems, functions for numba code, kernels for GPUs (experimental: not yet run on one), environments of
Gymnasium, and networks from ONNX files.
"""

from typing import TYPE_CHECKING

from geomctrl.other_names import unknown_names
from geomctrl.terms.gpu import to_ptx

from .environments import EnvironmentOptions, gymnasium_env
from .mujoco_model import to_mujoco_model
from .mujoco_plant import mujoco_plant
from .onnx_network import from_onnx
from .pinocchio_model import to_pinocchio_model
from .states import from_mujoco, from_pinocchio, to_mujoco, to_pinocchio
from .systems import nonlinear_system, state_space, to_state

__all__ = [
    "EnvironmentOptions",
    "from_mujoco",
    "from_onnx",
    "from_pinocchio",
    "gymnasium_env",
    "mujoco_plant",
    "nonlinear_system",
    "state_space",
    "to_mujoco",
    "to_mujoco_model",
    "to_pinocchio",
    "to_pinocchio_model",
    "to_ptx",
    "to_state",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)
