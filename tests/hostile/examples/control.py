"""Plants, references, runs, sweeps, monitors, measures."""

import functools

import numpy as np
from hostile.calls import Example
from hostile.examples.common import (
    DESIRED,
    F_EXT,
    FOLDER,
    PATH,
    REFERENCE,
    ROBOT,
    A,
    Q,
    V,
    path,
    run,
    subclasses,
    words,
)
from hostile.values import Argument, Fresh, gain, number

import geomctrl as gc
from geomctrl import controllers, measures, monitors, sensors
from geomctrl.control import ElasticPlant
from geomctrl.control.actuators import Saturation
from geomctrl.control.references import Harmonic, RestToRest

FRICTION = gc.Friction([0.5, 0.25], 0.25, 0.125)


def f_ext(t, q, v):
    return F_EXT


def watch(done):
    return None


PLANT = gc.Plant(ROBOT, FRICTION, f_ext, [(0.5, ROBOT.with_payload(1.0))])
ELASTIC = ElasticPlant(ROBOT, 100.0, 0.5)
LAW = controllers.PDGravity(ROBOT, [1.0, 0.5])
NOW = {"t": number(0.25), "q": Q, "v": V, "tau": A}
Q4, V4, A4 = np.tile(Q, 2), np.tile(V, 2), np.tile(A, 2)
NOW4 = {"t": number(0.25), "q": Q4, "v": V4, "tau": A4, "x": Argument(None, "none")}
SMOOTH = Harmonic(Q, 0.5, 0.25)
KEYS = "string none"  # "default" and None are legal, and so is other text, which is looked up
LOOP = {
    "q0": Q,
    "v0": V,
    "t_end": number(0.03125, positive=True),
    "dt": number(0.0078125, positive=True),
    "control_dt": number(0.015625, positive=True),
    "monitors": Argument([monitors.Skew()], "none empty"),
    "options": gc.SimulationOptions(strict=True, compiled=False),
}
ADAPTIVE = LOOP | {
    "control_dt": Argument(None, "huge"),
    "options": gc.SimulationOptions(method=gc.integrators.Adaptive(rtol=1e-6, atol=1e-6)),
}
LAMBDA, GAINS = np.diag([2.0, 3.0]), np.diag([5.0, 4.0])


def make(point):
    return ROBOT, controllers.PDGravity(ROBOT, [1.0, 0.5], kp=point["kp"]), Q, V


@functools.cache
def swept():
    space = {"kp": [10.0, 20.0]}
    return gc.sweep(make, space, [measures.PeakTorque()], 0.01, 0.001, store=FOLDER / "sweep.zarr")


COMPILED = Fresh(functools.cache(lambda: gc.compile(LAW)))
SPACE = Argument({"kp": [10.0, 20.0]}, "mapping")
STATE = {"q": Q, "v": V, "desired": DESIRED}
LIMIT = number(1e-6, negative=False)
EXAMPLES = {
    "Plant": Example(
        {
            "robot": ROBOT,
            "friction": Argument(FRICTION, "none"),
            "f_ext": f_ext,
            "changes": [(0.5, ROBOT)],
            "sensors": [sensors.Encoder(12)],
        }
    ),
    "Plant.at": Example({"t": number(1.0)}, PLANT),
    "Plant.acceleration": Example(NOW, PLANT),
    "Plant.power": Example(NOW, PLANT),
    "control.ElasticPlant": Example(
        {
            "robot": ROBOT,
            "stiffness": gain(np.array([100.0, 50.0])),
            "rotor": gain(np.array([0.5, 0.25])),
            "friction": Argument(gc.Friction(0.5), "none"),
            "f_ext": lambda t, q, v: np.zeros((4, 6)),
            "actuators": Argument([Saturation(50.0)], "empty"),
        }
    ),
    "control.ElasticPlant.at": Example({"t": number(1.0)}, ELASTIC),
    "control.ElasticPlant.acceleration": Example(NOW4, ELASTIC),
    "control.ElasticPlant.power": Example(NOW4, ELASTIC),
    "Run.load": Example({"path": Fresh(lambda: run().save(FOLDER / "run.npz")), "plant": ROBOT}),
    "Run.plot": Example({"path": path("plots")}, Fresh(run)),
    "Run.save": Example({"path": path("saved.npz")}, Fresh(run)),
    "Run.summary": Example({}, Fresh(run), compare=False),
    "Run.external_forces": Example({"at": Argument([0, 3], "none")}, Fresh(run), compare=False),
    "Run.to_dataframe": Example({}, Fresh(run), compare=False),
    "Run.to_mcap": Example({"path": path("run.mcap")}, Fresh(run), compare=False),
    "Run.to_xarray": Example({}, Fresh(run), compare=False),
    "Run.tracking_error": Example({}, Fresh(run)),
    "Run.tracking_rms": Example({"after": number(0.0078125)}, Fresh(run)),
    "viewing.run_overview": Example({"run": Fresh(run)}, compare=False),
    "viewing.plot_run": Example({"run": Fresh(run), "folder": path("plots"), "compare": {}}),
    "viewing.sweeps.plot_sweep": Example({"table": Fresh(swept), "folder": path("plots")}),
    "compile": Example({"controller": LAW, "robot": ROBOT}),
    "CompiledLaw.__call__": Example({"t": number(0.25), "q": Q, "v": V, "z": Argument(None, "all")}, COMPILED),
    "CompiledLaw.compare": Example({}, COMPILED),
    "CompiledLaw.start": Example({"q0": Argument(Q, "none"), "v0": Argument(V, "none")}, COMPILED),
    "CompiledLaw.to_casadi": Example({}, COMPILED, compare=False),
    "CompiledLaw.to_c": Example({"path": path("law.c"), "name": words("law"), "precision": "double"}, COMPILED),
    "SimulationOptions": Example(
        {
            "method": "MK4",
            "every": Argument(1),
            "strict": True,
            "compiled": False,
            "device": "cpu",
            "precision": "double",
        }
    ),
    "SweepExecution": Example(
        {"executor": None, "block": Argument(8, "none"), "seed": 0, "progress": Argument(watch, "none")}
    ),
    "simulate": Example(
        {"plant": ROBOT, "controller": LAW, **LOOP, "progress": Argument(watch, "none")}, compare=False
    ),
    "simulate#adaptive": Example({"plant": ROBOT, "controller": LAW, **ADAPTIVE}, compare=False),
    "simulate_many#adaptive": Example({"plants": [ROBOT], "controllers": [LAW], **ADAPTIVE}, compare=False),
    "sweep#adaptive": Example(
        {
            "make": make,
            "space": SPACE,
            "measures": [measures.PeakTorque()],
            **{k: x for k, x in ADAPTIVE.items() if k not in ("q0", "v0")},
        },
        compare=False,
    ),
    "simulate_many": Example({"plants": [ROBOT], "controllers": [LAW], **LOOP, "threads": Argument(1)}, compare=False),
    "sweep": Example(
        {
            "make": make,
            "space": SPACE,
            "measures": [measures.PeakTorque()],
            **{k: x for k, x in LOOP.items() if k not in ("q0", "v0")},
            "store": Argument(None, PATH),
            "execution": gc.SweepExecution(block=8),
        },
        compare=False,
    ),
    "replay": Example(
        {"store": Fresh(swept), "index": 1, "make": make, "monitors": Argument("default", "none empty")}, compare=False
    ),
    "control.arguments": Example({"x": Argument(LAW, "raising")}, compare=False),
    "control.with_arguments": Example({"x": LAW, "changes": Argument({"kp": 20.0}, "mapping")}, compare=False),
    "control.desired_at": Example({"reference": REFERENCE, "t": number(0.25)}),
    "references.Quintic": Example(
        {"robot": ROBOT, "q0": Q, "q1": V, "duration": number(2.0, positive=True), "t0": number(0.5)}
    ),
    "references.Quintic.__call__": Example({"t": number(0.75)}, REFERENCE),
    "references.Sinusoids": Example(
        {
            "robot": ROBOT,
            "q0": Q,
            "amplitude": gain(V, "negative"),
            "frequency": gain(A, "negative"),
            "phase": gain(Q, "negative"),
            "start_at_rest": number(0.5, negative=False),
        }
    ),
    "references.Sinusoids.__call__": Example({"t": number(0.75)}, gc.references.Sinusoids(ROBOT, Q, V, A)),
    "references.Spline": Example(
        {"robot": ROBOT, "times": np.array([0.0, 0.5, 2.0]), "waypoints": np.stack((Q, V, A))}
    ),
    "references.Spline.__call__": Example(
        {"t": number(0.75)}, gc.references.Spline(ROBOT, [0.0, 0.5, 2.0], np.stack((Q, V, A)))
    ),
    "references.hold": Example({"robot": ROBOT, "q": Q}),
    "references.Harmonic": Example(
        {
            "q0": gain(Q, "negative shape"),
            "amplitude": gain(V, "negative"),
            "frequency": gain(A, "negative"),
            "phase": gain(Q, "negative"),
        }
    ),
    "references.Harmonic.__call__": Example({"t": number(0.75)}, SMOOTH),
    "references.RestToRest": Example({"q0": Q, "q1": V, "duration": number(2.0, positive=True)}),
    "references.RestToRest.__call__": Example({"t": number(0.75)}, RestToRest(Q, V, 2.0)),
    "measures.TrackingRMS": Example({"after": number(0.5, negative=False), "joints": True}),
    "measures.SettlingTime": Example({"tolerance": number(0.5, positive=True)}),
    "measures.PeakTorque": Example({"joints": True}),
    "measures.WorstMonitor": Example({"monitor": "skew"}),
    "measures.Verdict": Example({"monitor": "skew"}),
    "measures.Verdict.__call__": Example({"run": Fresh(run)}, measures.Verdict()),
    "measures.ParameterError": Example(),
    "measures.Measure": Example(),
    "measures.TrackingRMS.__call__": Example({"run": Fresh(run)}, measures.TrackingRMS()),
    "measures.SettlingTime.__call__": Example({"run": Fresh(run)}, measures.SettlingTime()),
    "measures.PeakTorque.__call__": Example({"run": Fresh(run)}, measures.PeakTorque()),
    "measures.WorstMonitor.__call__": Example({"run": Fresh(run)}, measures.WorstMonitor()),
    "monitors.Skew": Example({"limit": LIMIT}),
    "monitors.EnergyBalance": Example({"limit": LIMIT}),
    "monitors.LyapunovDecrease": Example({"limit": LIMIT}),
    "monitors.Holding": Example({"limit": LIMIT}),
    "monitors.GroupResidual": Example({"limit": LIMIT}),
    "monitors.Monitor": Example(),
    "monitors.default_monitors": Example(),
}
LEFT_OUT = (
    dict.fromkeys(
        (
            "measures.Measure.__call__",
            *(f"measures.{m}.{x}" for m in subclasses(measures, measures.Measure) for x in ("start", "add", "value")),
            *(
                f"monitors.{m}.{x}"
                for m in subclasses(monitors, monitors.Monitor)
                for x in ("start", "measure", "confirm")
                if f"monitors.{m}.{x}" not in EXAMPLES
            ),
        ),
        "called by a running loop, with samples that it made",
    )
    | dict.fromkeys(
        ("Plant.rate", "control.ElasticPlant.rate"),
        "called by a running loop, with memory of its own; `acceleration` is for people",
    )
    | dict.fromkeys(
        ("Plant.to_fmu", "CompiledLaw.to_fmu", "control.ElasticPlant.to_fmu"),
        "each call runs a C compiler: tests/test_fmu.py has their bad arguments",
    )
    | dict.fromkeys(
        ("Plant.to_c", "control.ElasticPlant.to_c"),
        "each call traces a plant: tests/control/test_plant_in_c.py has their bad arguments",
    )
    | dict.fromkeys(
        ("viewing.sweeps.figure", "viewing.sweeps.label", "CompiledLaw"), "pieces of plot_sweep and compile"
    )
    | dict.fromkeys(("Run", "measures.ParameterError.__call__"), "made by simulate and Run.load")
)
LEFT_OUT |= dict.fromkeys(("Run.save_html", "Run.animate"), "a second a page; tests/viewing/test_animation.py")
LEFT_OUT |= dict.fromkeys(
    ("LiveView", "LiveView.close"),
    "starts a server; tests/control/test_live_view.py",
)
LEFT_OUT["tune"] = "starts a server; tests/viewing/test_tuning_page.py has its bad arguments"
