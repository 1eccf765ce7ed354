"""A robot's terms: the methods of Robot, and the readable forms beside them."""

import importlib.util

import numpy as np
from hostile.calls import Example
from hostile.discovery import parameters, public_callables
from hostile.examples.common import BODY, F_EXT, FRAME, ROBOT, A, Q, T, V, path, words
from hostile.values import Argument, number

from geomctrl import models

RATES = np.array([V, A, 0.5 * V])
ARGUMENTS = {  # arguments of most terms, by name
    "q": Q,
    "v": V,
    "a": A,
    "v_ref": 0.5 * V,
    "a_rate": 0.5 * A,
    "tau": A,
    "dv": V,
    "dq": Q,
    "da": A,
    "w": A,
    "w_rate": V,
    "x": V,
    "y": A,
    "b": V,
    "f_ext": F_EXT,
    "wrench": np.arange(1.0, 7.0),
    "rates": RATES,
    "frame": FRAME,
    "representation": "spatial",
    "form": "christoffel",
    "kind": Argument(2),
    "order": Argument(2),
    "threads": Argument(1),
    "base_twist": np.arange(1.0, 7.0),
    "base_acceleration": np.arange(6.0),
}
TWIST, INERTIA, JACOBIAN = np.arange(1.0, 7.0), np.diag([1.0, 2.0, 3.0, 4.0, 4.0, 4.0]), np.arange(12.0).reshape(6, 2)
ONE_BODY = {"parameters": BODY, "T": T, "V": TWIST, "representation": "spatial"}
ABOUT_COM = {"parameters": BODY, "T": T, "representation": "hybrid", "axes": T[:3, :3]}
FRAMES = np.stack((np.eye(4), T))
BASE = {"frame": Argument(None), "representation": "body"}

EXAMPLES = {
    "Robot.bounds": Example(
        {
            "box": ([-np.inf, -1.0], [np.inf, 1.0]),
            "parameters": number(0.125, negative=False),
            "form": "christoffel",
            "method": "closed form",
            "tolerance": number(0.25, positive=True),
            "boxes": Argument(100),
            "seconds": number(10.0, positive=True),
            "progress": lambda fraction: None,
        },
        ROBOT,
        compare=False,  # the computing time differs
        forms=[],
    ),
    "higher_order_kinematics.joint_motion_of_bodies": Example({"robot": ROBOT}),
    "higher_order_kinematics.joint_accelerations_of_bodies": Example({"robot": ROBOT}),
    "Robot.to_c": Example(
        {
            "path": path("robot.c"),
            "terms": ["pose"],
            "name": words("arm"),
            "precision": "double",
            "frame": FRAME,
            "representation": "body",
        },
        ROBOT,
    ),
    "Robot.to_casadi": Example({"term": "pose", "frame": FRAME, "representation": "body"}, ROBOT, compare=False),
    "interop.to_ptx": Example(
        {
            "robot": ROBOT,
            "path": path("robot.ptx"),
            "term": "pose",
            "capability": (9, 0),
            "precision": "double",
            "frame": FRAME,
            "representation": "body",
        }
    ),
    "representations.change_of_representation": Example({"T": T, "source": "body", "target": "spatial"}),
    "representations.convert_twist": Example({"T": T, "V": TWIST, "source": "body", "target": "spatial"}),
    "representations.convert_wrench": Example({"T": T, "W": TWIST, "source": "body", "target": "spatial"}),
    "representations.convert_acceleration": Example(
        {"T": T, "V": TWIST, "A": TWIST, "source": "body", "target": "hybrid"}
    ),
    "representations.convert_inertia": Example({"T": T, "J": INERTIA, "source": "body", "target": "spatial"}),
    "representations.convert_jacobian": Example(
        {"T": T, "Jac": Argument(JACOBIAN, "shape"), "source": "body", "target": "spatial"}
    ),
    "representations.convert_jacobian_rate": Example(
        {"T": T, "V": TWIST, "Jac": JACOBIAN, "Jac_rate": JACOBIAN, "source": "body", "target": "hybrid"}
    ),
    "representations.coriolis_matrix_of_body": Example(ONE_BODY),
    "representations.mass_matrix_rate_of_body": Example(ONE_BODY),
    "one_body.com_frame": Example({"parameters": BODY, "axes": T[:3, :3]}),
    "one_body.motion_of_com": Example({**ABOUT_COM, "V": TWIST, "A": TWIST}),
    "one_body.wrench_about_com": Example({**ABOUT_COM, "W": TWIST}),
    "one_body.mass_matrix_at_com": Example(ABOUT_COM),
    "one_body.mass_matrix_from_com": Example(ABOUT_COM),
    "one_body.newton_and_euler": Example(
        {"parameters": BODY, "T": T, "V": TWIST, "A": TWIST, "representation": "hybrid"}
    ),
    "one_body.newton_and_euler_at_com": Example({**ABOUT_COM, "V_c": TWIST, "A_c": TWIST}),
    "representations.momentum_of_body": Example({"parameters": BODY, "T": T, "V": TWIST, "representation": "spatial"}),
    "representations.newton_euler": Example(
        {"parameters": BODY, "T": T, "V": TWIST, "A": TWIST, "representation": "spatial"}
    ),
    "representations.newton_euler_in_frame": Example(
        {"parameters": BODY, "T": T, "frame": T, "frame_twist": TWIST, "V": TWIST, "A": TWIST}
    ),
    "representations.with_body_frames": Example({"robot": ROBOT, "placements": FRAMES}),
    "representations.without_body_frames": Example({"robot": ROBOT}),
    "representations.configuration_in_frames": Example({"robot": ROBOT, "q": Q, "placements": FRAMES}),
}
BUILDERS = (
    "build",
    "from_dh",
    "from_screws",
    "with_armature",
    "with_gravity",
    "with_parameters",
    "with_payload",
    "frame",
    "joint",
)
OF_ROBOTS = ("articulated_bodies", "closed_forms", "curvature", "derivatives", "factored", "higher_order_kinematics")
OF_ROBOTS += ("operational_space", "representations", "sensitivities")
CONFIGURATIONS = ("neutral", "random_configuration", "integrate", "difference", "to_cuda", "to_jax", "to_torch")
for name, public in public_callables().items():
    module, _, method = name.partition(".")
    term = module == "Robot" and public.of_instance and method not in (*BUILDERS, *CONFIGURATIONS, "inverse_kinematics")
    if (term or module in OF_ROBOTS) and name not in EXAMPLES:
        inputs = {p: ROBOT if p == "robot" else ARGUMENTS[p] for p in parameters(public) if p in {"robot", *ARGUMENTS}}
        if module in ("closed_forms", "factored"):  # complex, for the complex step
            inputs |= {p: Argument(x, "complex") for p, x in inputs.items() if isinstance(x, np.ndarray)}
        EXAMPLES[name] = Example(inputs, ROBOT if term else None)
SIX = models.ur10()  # moves the robot's frames in all directions
EXAMPLES["operational_space.inertia"] = Example(
    {
        "robot": SIX,
        "q": np.array([0.25, -1.0, 1.5, 0.5, 0.75, -0.5]),
        "frame": SIX.body_names[-1],
        "representation": "spatial",
    }
)
for name in ("dynamically_consistent_inverse", "null_space_projector"):
    EXAMPLES[f"operational_space.{name}"] = Example({"robot": ROBOT, "q": Q, "J": np.array([[1.0, 0.5]])})
for name in ("motion", "accelerations"):
    of_bodies = {"q": Q, "V": np.arange(12.0).reshape(2, 6), "A": np.ones((2, 6))}
    EXAMPLES[f"higher_order_kinematics.joint_{name}_of_bodies"].arguments.update(of_bodies)
CUDA = "needs a GPU; arguments as for to_ptx"
POSE = Example({"term": "pose", "frame": FRAME, "representation": "body"}, ROBOT)
INSTALLED = {library: importlib.util.find_spec(library) is not None for library in ("jax", "torch")}
EXAMPLES |= {f"Robot.to_{library}": POSE for library, installed in INSTALLED.items() if installed}
LEFT_OUT = {f"Robot.to_{library}": f"needs {library}" for library, installed in INSTALLED.items() if not installed}
LEFT_OUT |= {
    "Robot.to_cuda": CUDA,
    "CudaFunction": CUDA,
    "CudaFunction.__call__": CUDA,
}
