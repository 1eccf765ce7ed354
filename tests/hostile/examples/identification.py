"""Logs, models, estimators, reports, exciting trajectories."""

import functools

import numpy as np
from hostile.calls import Example
from hostile.examples.common import FOLDER, ROBOT, A, N, Q, path, words
from hostile.values import Argument, Fresh, gain, number

from geomctrl.identification import (
    Column,
    Curve,
    Dataset,
    Filtering,
    JointMapping,
    Reading,
    RegressorModel,
    Result,
    Settings,
    Validation,
    WristSensor,
    base_parameters,
    drive_gains,
    fit,
    identify_load,
)
from geomctrl.identification import (
    excitation as trajectories,
)
from geomctrl.models.io.model_file import save_model
from geomctrl.terms.base_parameters import BaseParameters

RATE, PERIOD = 100.0, 2.0
TIME = np.arange(800) / RATE
MODEL = RegressorModel(ROBOT, smoothing=0.05)


def motion(t):
    w, phase = 2.0 * np.pi / PERIOD * np.array([1.0, 2.0]), np.array([0.0, 0.5])
    x = np.outer(t, w) + phase
    return np.sin(x), w * np.cos(x), -(w**2) * np.sin(x)


def _log():
    q, v, a = motion(TIME)
    x = MODEL.prior
    x[MODEL.positive] = 0.25
    noise = 0.01 * np.random.default_rng(0).standard_normal(q.shape)
    return Dataset(TIME, q, MODEL.torque(x, q, v, a) + noise, v=v, a=a)


LOG = _log()
DRIFTING = Dataset(TIME, LOG.q + 0.05 * TIME[:, None] ** 2, LOG.tau, v=LOG.v, a=LOG.a)
MASK = np.ones(LOG.tau.shape, bool)
ARRAYS = {"t": LOG.t, "q": LOG.q, "tau": LOG.tau}
np.savez(FOLDER / "log.npz", **ARRAYS)
COLUMNS = ["t", "q1", "q2", "tau1", "tau2"]
np.savetxt(
    FOLDER / "log.csv", np.column_stack((LOG.t, LOG.q, LOG.tau)), delimiter=",", header=",".join(COLUMNS), comments=""
)
KEYS = {"t": "t", "q": "q", "tau": "tau"}
UNITS = {"q": "rad"}
MAPPING = JointMapping(np.eye(2), 0.0)
OPTIONS = {
    "units": UNITS,
    "mapping": MAPPING,
    "rate": Argument(None),
    "drop_bad_rows": True,
    "label": words("log"),
    "names": ["a", "b"],
}
HANDED_ON = OPTIONS | {  # passed to `read`, where None is the default
    "units": Argument(UNITS, "none"),
    "mapping": Argument(MAPPING, "none"),
    "rate": Argument(None, "none"),
    "label": Argument("log", "string none"),
}
BY_JOINT = {
    "joints": Argument(["a", "b"], "none"),
    "topic": Argument(None, "none"),
    "current_gains": Argument(None, "none"),
    "episodes": Argument(None, "none"),
}
(FOLDER / "columns.toml").write_text('[[column]]\nname = "x"\njoint = "joint1"\ntorque = "sin(q)"\n')
STATES = {"q": LOG.q[:5], "v": LOG.v[:5], "a": LOG.a[:5]}
BASE = base_parameters(ROBOT)
CURVE, COLUMN = Curve(0, "sigmoid", 0.5), Column("own", lambda q, v, a: v**2)


@functools.cache
def estimate():
    return fit(MODEL, LOG, "ols")


@functools.cache
def compressed():
    return MODEL.compress(LOG)


@functools.cache
def report():
    return Result(estimate(), LOG)


WRENCHES = np.random.default_rng(1).normal(size=(len(TIME), 6))
LOADED = ROBOT.with_payload(1.0, (0.1, 0.0, 0.0), 0.01 * np.eye(3))


@functools.cache
def loaded_log():
    """The same motion with a load."""
    torques = LOADED.inverse_dynamics(LOG.q, LOG.v, LOG.a) - ROBOT.inverse_dynamics(LOG.q, LOG.v, LOG.a)
    return Dataset(TIME, LOG.q, LOG.tau + torques, v=LOG.v, a=LOG.a)


@functools.cache
def load_report():
    return identify_load(ROBOT, loaded_log(), LOG, filtering=Filtering(cutoff=10.0))


@functools.cache
def drives_report():
    return drive_gains(ROBOT, loaded_log(), LOG, load=1.0, filtering=Filtering(cutoff=10.0))


@functools.cache
def excited():
    return trajectories.optimize(
        ROBOT,
        2.0,
        limits=trajectories.MotionLimits(velocity=5.0),
        terms=2,
        search=trajectories.MotionSearch(samples=20, iterations=1),
    )


X, WEIGHTS = MODEL.prior, gain(np.array([1.0, 2.0]))
ON = Fresh(compressed)
FITTED = {"model": MODEL, "data": Fresh(compressed)}
SECONDS = number(0.5, negative=False)
EXAMPLES = {
    "BaseParameters.lift": Example({"values": np.ones(BASE.size), "prior": np.ones(20)}, BASE),
    "BaseParameters.null_space": Example({}, BASE),
    "identification.base_parameters": Example(
        {"robot": ROBOT, "form": "ploen", "samples": Argument(40), "seed": 1, "tolerance": number(1e-9, positive=True)},
    ),
    "identification.base_parameters#exact": Example({"robot": ROBOT, "exact": True}),
    "identification.Column": Example(
        {"name": words("own"), "torque": COLUMN.torque, "positive": True, "initial": number(0.5)}
    ),
    "identification.Curve": Example({"actuator": 0, "shape": "sigmoid", "speed": number(0.5, positive=True)}),
    "Compressed.relative_error": Example({"x": X}, ON),
    "Compressed.residuals": Example({"x": X}, ON),
    "Compressed.rms": Example({"x": X}, ON),
    "Compressed.system": Example({"weights": gain(np.array([1.0, 2.0]), "negative")}, ON),
    "identification.Dataset": Example(
        {
            "t": LOG.t,
            "q": Argument(LOG.q, "shape"),
            "tau": LOG.tau,
            "v": LOG.v,
            "a": LOG.a,
            "mask": MASK,
            "names": ("a", "b"),
            "label": words("log"),
            "gaps": (),
            "processing": LOG.processing,
        }
    ),
    "identification.Dataset.filtered": Example(
        {
            "cutoff": number(10.0, positive=True),
            "order": 4,
            "torque_cutoff": number(5.0, positive=True),
            "alike": True,
            "decimate": 2,
        },
        LOG,
    ),
    "identification.Dataset.read": Example({"source": FOLDER / "log.npz", "keys": KEYS, **HANDED_ON, **BY_JOINT}),
    "identification.Dataset.resampled": Example({"rate": number(50.0, positive=True)}, LOG),
    "identification.Dataset.save": Example({"path": path("copy.npz")}, LOG),
    "identification.Dataset.select": Example({"keep": np.arange(800) % 3 > 0, "label": words("b")}, LOG),
    "identification.Dataset.split": Example(
        {"fraction": number(0.5, positive=True), "period": number(2.0, positive=True, legal="none")}, DRIFTING
    ),
    "identification.Dataset.without": Example(
        {
            "saturation": gain(np.array([20.0, 10.0]), "inf"),
            "widen": SECONDS,
            "outliers": number(6.0, positive=True),
            "standstill": gain(np.array([0.5, 0.25])),
        },
        LOG,
    ),
    "identification.Dataset.read#arrays": Example(
        {"source": Argument(ARRAYS, "mapping"), "keys": KEYS, **HANDED_ON, **BY_JOINT, "label": words("log")}
    ),
    "identification.Estimate.intervals": Example({"level": number(0.5, positive=True)}, Fresh(estimate)),
    "identification.Estimate.predict": Example(STATES, Fresh(estimate)),
    "identification.Estimate.relative_error": Example({"data": LOG}, Fresh(estimate)),
    "identification.Filtering": Example(
        {
            "cutoff": number(10.0, positive=True),
            "torque_cutoff": number(5.0, positive=True),
            "alike": True,
            "decimate": Argument(2),
            "saturation": True,
            "outliers": number(6.0, positive=True),
            "standstill": number(0.5, negative=False),
            "delay": Argument(0.01, bad="huge"),
            "resample": number(50.0, positive=True),
        }
    ),
    "identification.Result.text": Example({"parameters": True}, Fresh(report)),
    "identification.Result.save": Example({"folder": path("report"), "plots": False}, Fresh(report), compare=False),
    "identification.JointMapping": Example(
        {
            "matrix": np.array([[1.0, 0.0], [0.5, 1.0]]),
            "offset": gain(np.array([0.5, 0.25]), "negative"),
            "torque_at_motor": True,
            "position_at_motor": True,
        }
    ),
    "identification.Reading": Example(
        {
            "keys": {"t": "t", "q": "q", "i": "tau"},
            "units": UNITS,
            "mapping": MAPPING,
            "rate": number(100.0, positive=True),
            "drop_bad_rows": True,
            "joints": Argument(["a", "b"], "none"),
            "topic": words("/joint_states"),
            "current_gains": gain(np.array([1.0, 2.0]), "negative shape"),
            "episodes": Argument(None),
            "check_units": True,
        }
    ),
    "identification.RegressorModel": Example(
        {
            "robot": ROBOT,
            "viscous": Argument([0], "empty"),
            "coulomb": Argument([0, 1], "empty"),
            "offset": Argument(True, "empty"),
            "rotor": Argument(False, "empty"),
            "springs": [1],
            "curves": [CURVE],
            "columns": [COLUMN],
            "transmission": np.array([[1.0, 0.0], [0.5, 1.0]]),
            "smoothing": number(0.5, negative=False),
        }
    ),
    "identification.RegressorModel.regressor": Example(STATES, MODEL),
    "identification.RegressorModel.torque": Example({"x": X, **STATES}, MODEL),
    "identification.RegressorModel.compress": Example({"data": LOG, "progress": lambda x: None}, MODEL),
    "identification.Validation": Example(
        {
            "test": number(0.25, positive=True, legal="none string raising"),
            "period": number(2.0, positive=True),
            "reading": Reading(),
        }
    ),
    "identification.fit.consistent": Example(
        {
            **FITTED,
            "mass_max": gain(np.array([5.0, 6.0])),
            "mass_min": gain(np.array([0.125, 0.25])),
            "total_mass": number(2.5, positive=True),
            "com_box": Argument(np.array([[[-2.0] * 3, [2.0] * 3]] * 2), "inf"),
            "prior": X,
            "entropic": number(0.0, negative=False),
            "regularization": number(1e-6, negative=False),
            "friction_signs": True,
            "margin": number(1e-6, negative=False),
            "fixed": ["link1"],
            "weights": WEIGHTS,
        },
        forms=["mass_max", "total_mass"],
        compare=False,
    ),
    "identification.fit.ols": Example(FITTED),
    "identification.fit.wls": Example({**FITTED, "iterations": 3}),
    "identification.fit.ridge": Example(
        {**FITTED, "prior": X, "strength": number(0.001, negative=False), "weights": WEIGHTS}
    ),
    "identification.choose_prior": Example(
        {
            "model": MODEL,
            "data": LOG,
            "method": "ridge",
            "period": number(2.0, positive=True, legal="none"),
        },
        compare=False,
    ),
    "identification.fit": Example({**FITTED, "method": "ridge", "strength": number(0.001, negative=False)}),
    "identification.fit_curves": Example(
        {
            "model": MODEL,
            "data": LOG,
            "shape": "stribeck",
            "actuators": [0],
            "start": number(0.5, positive=True),
            "bounds": np.array([0.25, 2.0]),
        },
        compare=False,
    ),
    "identification.Settings": Example(
        {
            "method": "ols",
            "options": {},
            "friction_curves": Argument(None),
            "choose_smoothing": False,
            "choose_rotors": False,
            "reading": Reading(),
            "filtering": Filtering(),
            "validation": Validation(),
            "ignore": [],
            "boxes": Argument(dict.fromkeys(ROBOT.body_names[:1], np.array([[-1.0] * 3, [1.0] * 3])), "mapping"),
        }
    ),
    "identification.identify": Example(
        {
            "robot": ROBOT,
            "log": LOG,
            "settings": Settings("ols", filtering=Filtering(cutoff=10.0), validation=Validation(0.25)),
            "model": RegressorModel(ROBOT),
            "progress": lambda what, fraction: None,
        },
        compare=False,
    ),
    "identification.identify_load": Example(
        {
            "robot": ROBOT,
            "log": Fresh(loaded_log),
            "without_load": LOG,
            "frame": "link2",
            "identified": None,
            "model": RegressorModel(ROBOT),
            "friction": "same",
            "sensor": None,
            "reading": Reading(),
            "filtering": Filtering(cutoff=10.0),
        },
        compare=False,
        called={"without_load": "log"},
    ),
    "identification.identify_load#sensor": Example(
        {
            "robot": ROBOT,
            "log": LOG,
            "sensor": WristSensor("link2", WRENCHES),
            "filtering": Filtering(cutoff=10.0),
        },
        compare=False,
    ),
    "LoadReport.text": Example({}, Fresh(load_report)),
    "LoadReport.save": Example({"folder": path("load")}, Fresh(load_report)),
    "identification.drive_gains": Example(
        {
            "robot": ROBOT,
            "log": Fresh(loaded_log),
            "without_load": LOG,
            "load": number(1.0, positive=True),
            "frame": "link2",
            "known_bodies": Argument((), "empty"),
            "model": RegressorModel(ROBOT),
            "friction": "same",
            "reading": Reading(),
            "filtering": Filtering(cutoff=10.0),
        },
        compare=False,
        called={"without_load": "log", "load": "mass"},
    ),
    "DriveGains.text": Example({}, Fresh(drives_report)),
    "DriveGains.save": Example({"folder": path("gains")}, Fresh(drives_report)),
    "models.save#json": Example(
        {"robot": ROBOT, "path": path("model.json"), "extra": Argument({"note": "x"}, "mapping")}
    ),
    "models.load_extra": Example({"path": save_model(ROBOT, FOLDER / "robot.json")}),
    "models.save": Example(
        {"robot": ROBOT, "path": path("robot.h"), "extra": Argument({}, "mapping"), "name": words("robot")}
    ),
    "models.save#urdf": Example({"robot": ROBOT, "path": path("model.urdf")}),
}
(FOLDER / "cell.toml").write_text("floor = -1.0")
TRAJECTORY = trajectories.Trajectory(2.0, 0.125 * np.ones((5, 2)))
EXAMPLES |= {
    "identification.excitation.Trajectory.basis": Example(
        {"t": Argument(TIME[:5], "huge negative shape empty")}, TRAJECTORY
    ),
    "identification.excitation.Trajectory.at": Example(
        {"t": Argument(TIME[:5], "huge negative shape empty")}, TRAJECTORY
    ),
    "identification.excitation.Trajectory.__call__": Example({"t": number(0.5)}, TRAJECTORY),
    "identification.excitation.Trajectory.derivative": Example(
        {"order": 3, "t": Argument(TIME[:5], "huge negative shape empty")}, TRAJECTORY
    ),
    "identification.excitation.Trajectory.bounds": Example({"order": 2}, TRAJECTORY),
    "identification.excitation.Excitation.text": Example({}, Fresh(excited)),
    "identification.excitation.Excitation.report": Example({}, Fresh(excited)),
    "identification.excitation.Excitation.table": Example({}, Fresh(excited)),
    "identification.excitation.Excitation.plot": Example({"path": path("excited.png")}, Fresh(excited)),
    "identification.excitation.Excitation.save": Example(
        {
            "folder": path("excited"),
            "rate": number(100.0, positive=True),
            "repeats": 2,
            "name": words("motion"),
            "plots": False,
        },
        Fresh(excited),
    ),
    "identification.excitation.save_trajectory": Example(
        {
            "trajectory": TRAJECTORY,
            "path": path("motion.csv"),
            "names": ["a", "b"],
            "rate": number(100.0, positive=True),
            "repeats": 2,
            "name": words("motion"),
        },
    ),
    "identification.excitation.load_surroundings": Example({"path": path("cell.toml"), "robot": ROBOT}),
    "identification.excitation.link_capsules": Example(
        {"robot": ROBOT, "radius": Argument(0.05, "none huge", "negative")}
    ),
    "identification.excitation.capsule": Example(
        {
            "robot": ROBOT,
            "frame": "world",
            "start": 0.125 * np.ones(3),
            "end": 0.25 * np.ones(3),
            "radius": number(0.05, positive=True),
        },
    ),
    "identification.excitation.Surroundings": Example(
        {
            "floor": Argument(-5.0, "none huge negative"),
            "keep_out": [[5.0, 5.0, 5.0, 6.0, 6.0, 6.0]],
            "self_collision": True,
            "clearance": SECONDS,
            "capsules": Argument(None, "none"),
            "radius": Argument(0.05, "none huge", "negative"),
        },
    ),
    "identification.excitation.Surroundings.of": Example({"robot": ROBOT}, trajectories.Surroundings()),
    "identification.excitation.optimize": Example(
        {
            "model": MODEL,
            "duration": number(2.0, positive=True),
            "terms": 2,
            "objective": "condition",
            "q0": 0.125 * Q,
            "limits": trajectories.MotionLimits(velocity=[5.0, 4.0], jerk=400.0),
            "surroundings": Argument(trajectories.Surroundings(floor=None, self_collision=False), "none"),
            "noise": gain(np.array([1.0, 2.0])),
            "rate": number(100.0, positive=True),
            "search": trajectories.MotionSearch(compare=2, samples=20, iterations=2, seed=1),
        },
        forms=["noise", "terms"],
    ),
    "identification.excitation.MotionLimits.of": Example({"robot": ROBOT}, trajectories.MotionLimits(velocity=5.0)),
    "identification.excitation.MotionSearch": Example(
        {"compare": 2, "starts": 1, "samples": 20, "iterations": 2, "seed": 1}
    ),
}
assert A.size == N
assert BaseParameters
SETTINGS = "checked where it is used, with the robot"
MADE = "made by fit, compress, identify and the like"
LEFT_OUT = dict.fromkeys(
    (
        "BaseParameters",
        "identification.Estimate",
        "identification.Result",
        "Compressed",
        "CurveFit",
        "DriveGains",
        "LoadReport",
        "PriorChoice",
        "OutputErrorFit",
        "Limits",
        "identification.excitation.Excitation",
        "identification.excitation.Trajectory",
    ),
    MADE,
)
LEFT_OUT |= dict.fromkeys(
    ("identification.KnownLoad", "identification.WristSensor", "identification.excitation.MotionLimits"), SETTINGS
)
