"""Exciting trajectories: motions within limits and without collisions, from which base parameters can be identified.

excitation = optimize(RegressorModel(robot), 10.0, objective="log_det", surroundings=Surroundings(floor=0.0))
print(excitation.text())
save_trajectory(excitation.trajectory, "excitation.csv", robot.dof_names)
"""

from geomctrl.mechanism.capsules import Capsule, capsule, link_capsules

from .clearance import Surroundings, load_surroundings
from .excite import Excitation
from .problem import MotionLimits
from .search import MotionSearch, optimize
from .trajectory import Trajectory, save_trajectory

__all__ = [
    "Capsule",
    "Excitation",
    "MotionLimits",
    "MotionSearch",
    "Surroundings",
    "Trajectory",
    "capsule",
    "link_capsules",
    "load_surroundings",
    "optimize",
    "save_trajectory",
]
