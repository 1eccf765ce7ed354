"""External wrenches, contact, MuJoCo's plant."""

import functools

import numpy as np
from hostile.calls import Example
from hostile.examples.common import FRAME, ROBOT, A, Q, V, words
from hostile.values import Argument, Fresh, number

import geomctrl as gc

PUSH = np.arange(1.0, 7.0)
POINT = np.array([0.5, 0.0, -0.25])
SURFACE = gc.HalfSpace(POINT, POINT)
CONTACT = gc.Contact([FRAME, (FRAME, POINT)], 100.0, 0.5, 0.25, SURFACE)
XML = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 .3">
<joint name="a" axis="0 1 0"/><geom size=".1"/><body pos=".3 0 0"><joint name="b" axis="1 0 0"/><geom size=".1"/></body>
</body></worldbody></mujoco>"""
MUJOCO = Fresh(functools.cache(lambda: gc.interop.mujoco_plant(XML)))
NOW = {"t": number(0.25), "q": Q, "v": V, "tau": A, "x": Argument(None, "all")}
SOURCE = {"source": Argument(XML), "f_ext": Argument([gc.Wrench("body2", PUSH)], "none empty"), "actuators": []}


EXAMPLES = {
    "Wrench": Example(
        {
            "frame": words(FRAME),
            "value": PUSH,
            "start": number(0.5, legal="inf"),
            "end": number(1.5, legal="inf huge"),
            "representation": "hybrid",
        }
    ),
    "HalfSpace": Example({"normal": POINT, "point": POINT}),
    "Contact": Example(
        {
            "points": [FRAME, (FRAME, (0.5, 0.0, -0.25))],
            "stiffness": number(100.0, positive=True, legal="huge"),
            "dissipation": number(0.5, negative=False, legal="huge"),
            "friction": number(0.25, negative=False, legal="huge"),
            "surface": SURFACE,
            "exponent": number(1.5, positive=True, legal="huge"),
            "slip_speed": number(0.5, positive=True, legal="huge"),
        }
    ),
    "Contact.state": Example({"robot": ROBOT, "q": Q, "v": V}, CONTACT),
    "Plant#pushed": Example(
        {"robot": ROBOT, "f_ext": Argument([CONTACT, gc.Wrench(FRAME, PUSH, 0.5)], "none empty")}, compare=False
    ),
    "interop.mujoco_plant": Example(SOURCE, compare=False),
    "MujocoPlant": Example(SOURCE, compare=False),
    "MujocoPlant.at": Example({"t": number(1.0)}, MUJOCO, compare=False),
    **{f"MujocoPlant.{name}": Example(NOW, MUJOCO) for name in ("acceleration", "power", "constraint_torque")},
}
LEFT_OUT = dict.fromkeys(
    ("MujocoPlant.to_c", "MujocoPlant.to_fmu"), "MuJoCo's equations of motion can not be traced"
) | dict.fromkeys(
    (f"MujocoPlant.{name}" for name in ("rate", "start", "net_torque", "state_rate", "stored_energy", "storage_power")),
    "called by a running loop, with what it made",
)
