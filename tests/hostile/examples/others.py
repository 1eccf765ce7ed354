"""testing, interop, models."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import FOLDER, PATH, ROBOT, Q, V, path, rng, words
from hostile.values import Argument, Fresh, gain, number, once

from geomctrl import Plant, SimulationOptions, controllers, interop, models, references, testing
from geomctrl.models.io.mjcf import load_mjcf

MJCF = """<mujoco><worldbody><body name="arm"><joint name="hinge" axis="0 1 0"/><inertial pos="0 0 .5" mass="2"
diaginertia="1 1 1"/></body></worldbody></mujoco>"""
URDF = """<robot name="arm"><link name="base"/><link name="arm"><inertial><mass value="2"/><inertia ixx="1" ixy="0"
ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="hinge" type="continuous"><parent link="base"/>
<child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
ARM = load_mjcf(MJCF)
(FOLDER / "arm.urdf").write_text(URDF)
(FOLDER / "arm.toml").write_text(
    '[robot]\nconvention = "standard"\na = [1, 1]\nalpha = [0, 0]\nd = [0, 0]\nmasses = [1, 1]\n'
)
LOADED = models.load_urdf(URDF)


def mujoco_model():
    import mujoco

    return mujoco.MjModel.from_xml_string(MJCF)


def pinocchio_model():
    import pinocchio

    return pinocchio.buildModelFromXML(URDF)


LAW = controllers.PDGravity(ROBOT, [1.0, 0.5])
RTOL = number(1e-6, negative=False)
ONE = np.array([0.5])
MANY = {"states": 2, "seed": 1, "rtol": RTOL}


def below(x):
    return x[0] - 2.0


CERTIFICATE = once(lambda: testing.certify(below, [(0.0, 1.0)]))
DOMAIN = {"t": (0.5, 1.0), "q": (-0.5, 0.5)}
STRICT = controllers.ComputedTorque(ROBOT, references.hold(ROBOT, np.array([1.0, 0.5])), strict=True)
LYAPUNOV = once(lambda: testing.certify_lyapunov(STRICT, ROBOT, (0.01, 0.1), levels=False))
EXAMPLES = {
    "testing.assert_skew_symmetric": Example(
        {
            "robot": ROBOT,
            "coriolis": ROBOT.coriolis_matrix,
            "mass_matrix_rate": ROBOT.mass_matrix_rate,
            **MANY,
        }
    ),
    "testing.assert_lyapunov": Example(
        {
            "controller": LAW,
            "plant": ROBOT,
            "region": number(0.5, positive=True),
            "states": 2,
            "search": 50,
            "runs": 1,
            "seed": 1,
            "rtol": RTOL,
            "bound": True,
        }
    ),
    "testing.ClosedLoop.simulate": Example(
        {
            "t_end": number(0.03125, positive=True),
            "dt": number(0.0078125, positive=True),
            "q0": Argument(np.array([1.0, 0.5]), "none"),
            "v0": Argument(np.array([0.0, 0.0]), "none"),
        },
        on=testing.ClosedLoop(LAW, Plant(ROBOT)),
        compare=False,
    ),
    "testing.certify": Example(
        {
            "f": below,
            "box": np.array([[0.0, 1.0], [-1.0, 0.5]]),
            "outside": number(0.25, positive=True),
            "where": [below],
            "strict": True,
            "budget": 64,
            "threads": 1,
            "progress": Argument(False, "none"),
        },
        compare=False,
    ),
    "testing.recheck": Example(
        {"proof": CERTIFICATE, "processes": 1, "progress": Argument(False, "none")}, compare=False
    ),
    "testing.Box": Example(
        {
            "q": number(0.5, positive=True),
            "v": number(1.0, positive=True),
            "times": None,
            "equilibrium": Argument(np.array([0.0]), "none empty huge negative shape"),  # of any length
            "disturbance": number(0.5, negative=False),
            "friction": number(0.25, negative=False),
            "z": number(0.125, legal="empty shape"),
        }
    ),
    "testing.Budget": Example(
        {
            "boxes": 16,
            "seconds": number(2.0, positive=True),
            "seed": 1,
            "executor": None,
            "resume": Argument(None, PATH),
        }
    ),
    "testing.certify_lyapunov": Example(
        {
            "controller": STRICT,
            "plant": ROBOT,
            "box": (0.5, 1.0),
            "outside": number(0.25, positive=True),
            "parameters": number(0.0625, negative=False),
            "rate": number(0.5, negative=False),
            "offset": number(0.25, negative=False),
            "levels": False,
            "budget": 16,
            "progress": Argument(None, "none"),
        },
        compare=False,
    ),
    "testing.region_of_attraction": Example(
        {
            "controller": STRICT,
            "plant": ROBOT,
            "box": (0.5, 1.0),
            "outside": number(0.25, positive=True),
            "parameters": number(0.0625, negative=False),
            "rate": number(0.5, negative=False),
            "offset": number(0.25, negative=False),
            "budget": 16,
        },
        forms=["budget"],  # arguments that it shares with certify_lyapunov are tested there in all forms
        compare=False,
    ),
    "testing.recheck_lyapunov": Example(
        {
            "proof": LYAPUNOV,
            "controller": STRICT,
            "plant": ROBOT,
            "box": (0.01, 0.1),
            "outside": None,
            "parameters": Argument(0.0, forms=False),
            "rate": Argument(0.0, forms=False),
            "offset": Argument(0.0, forms=False),
            "level": None,
            "processes": 1,
        },
        compare=False,
    ),
    "LyapunovCertificate.save": Example({"path": path("lyapunov.npz")}, on=LYAPUNOV, compare=False),
    "testing.Ellipsoid": Example(
        {"semi_axes": Argument(np.array([0.5, 0.25]), "huge"), "centre": np.array([0.25, 0.125])}
    ),
    "Certificate.save": Example({"path": path("proof.npz")}, on=CERTIFICATE, compare=False),
    "testing.assert_lyapunov#domain": Example(
        {
            "controller": LAW,
            "plant": ROBOT,
            "states": 1,
            "search": 0,
            "runs": 0,
            "region": testing.Region(domain=DOMAIN),
        },
        compare=False,
    ),
    "testing.lyapunov_at": Example(
        {"controller": LAW, "plant": ROBOT, "t": number(0.5, negative=False), "q": Q, "v": V, "z": None}, compare=False
    ),
    "testing.random_robot": Example(
        {
            "rng": rng(),
            "kinds": ["revolute", "prismatic"],
            "parents": [-1, 0],
            "aligned": True,
            "driven": True,
            "name": words("r"),
        }
    ),
    "testing.states": Example({"robot": ROBOT, "velocities": 2}, compare=False),
    "testing.robots": Example(
        {
            "kinds": ["revolute"],
            "max_bodies": 4,
            "floating_base": Argument(True, "none"),
            "chain": True,
            "aligned": True,
            "driven": True,
        },
        compare=False,
    ),
    "interop.state_space": Example({"robot": ROBOT, "q": Q, "v": V, "tau": V, "name": words("sys")}, compare=False),
    "interop.nonlinear_system": Example({"plant": ROBOT, "q0": Q, "name": words("sys")}, compare=False),
    "interop.EnvironmentOptions": Example(
        {
            "torque_limit": gain(np.array([0.5, 0.25]), "shape none"),
            "normalized": True,
            "reward": None,
            "terminated": None,
            "safety": None,
            "simulation": SimulationOptions(),
            "monitors": Argument([], "empty none"),
        },
        compare=False,
    ),
    "interop.gymnasium_env": Example(
        {
            "plant": ROBOT,
            "reference": references.hold(ROBOT, Q),
            "t_end": number(0.5, negative=False),
            "dt": number(0.25, negative=False),
            "control_dt": number(0.5, negative=False),
            "controller": Argument(LAW, "none"),
            "start": None,
            "num_envs": Argument(1, "none"),
            "render_mode": None,
            "options": interop.EnvironmentOptions(torque_limit=1.0, monitors=None),
        },
        compare=False,
    ),
    "interop.to_state": Example({"robot": ROBOT, "q": Q, "v": V, "q0": Q}),
    "interop.to_mujoco_model": Example({"robot": ARM}, compare=False),
    "Robot.from_mujoco": Example({"model": Fresh(mujoco_model), "ignore": ["armature"]}),
    "interop.to_pinocchio_model": Example({"robot": ARM}, compare=False),
    "Robot.from_pinocchio": Example(
        {"model": Fresh(pinocchio_model), "ignore": ["armature"], "physical": words("reported")}
    ),
    "interop.to_mujoco": Example({"robot": ARM, "model": Fresh(mujoco_model), "q": ONE, "v": ONE}),
    "interop.from_mujoco": Example({"robot": ARM, "model": Fresh(mujoco_model), "qpos": ONE, "qvel": ONE}),
    "interop.to_pinocchio": Example({"robot": ARM, "model": Fresh(pinocchio_model), "q": ONE, "v": ONE}),
    "interop.from_pinocchio": Example(
        {"robot": ARM, "model": Fresh(pinocchio_model), "q": np.array([0.6, 0.8]), "v": ONE}
    ),
    "models.names": Example(),
    "models.load": Example({"name": "panda", "hand": True}),
    "models.panda": Example({"hand": True}),
    "models.two_link": Example(
        {
            "lengths": np.array([1.0, 0.5]),
            "masses": np.array([2.0, 1.0]),
            "coms": np.array([0.5, 0.25]),
            "inertias": np.array([0.25, 0.125]),
            "gravity": np.array([0.0, 1.0, -9.5]),
        }
    ),
    "models.load_urdf": Example(
        {
            "source": URDF,
            "floating_base": False,
            "mimic": "coupled",
            "physical": "reported",
            "gravity": np.array([0.0, 1.0, -9.5]),
            "package_dirs": ["."],
        }
    ),
    "models.link_boxes": Example({"source": URDF, "robot": LOADED, "package_dirs": ["."]}),
    "models.save#mjcf": Example({"robot": ARM, "path": path("model.xml")}),
    "models.load_mjcf": Example({"source": MJCF, "ignore": ["tendon"], "gravity": np.array([0.0, 1.0, -9.5])}),
}
EXAMPLES |= {name: EXAMPLES[f"models.{name}"] for name in ("load_urdf", "load_mjcf")}
EXAMPLES["Robot.from_urdf"] = Example({"source": URDF, "floating_base": False})
EXAMPLES |= {f"models.{name}": Example() for name in models.names() if f"models.{name}" not in EXAMPLES}
LEFT_OUT = dict.fromkeys(("Certificate", "Recheck"), "made by certify and recheck alone")
LEFT_OUT |= {"LyapunovCertificate": "made by certify_lyapunov alone"}
LEFT_OUT |= {"interop.from_onnx": "reads a file; tests/test_onnx.py has damaged ones"}
