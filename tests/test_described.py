"""Reprs of user-created objects: the call that creates the object, short, and without errors."""

import _thread
import inspect
import operator
from collections import deque

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import actuators, controllers, models, references, sensors
from geomctrl.described import ReadableRepr, described

ROBOT = models.two_link()
MOTION = references.Sinusoids(ROBOT, [0.1, 0.2], amplitude=0.3, frequency=0.4)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            controllers.Passivity(ROBOT, references.hold(ROBOT, [1.0, 0.5]), Lambda=5.0, K=[20.0, 10.0]),
            "Passivity(two_link, reference=Quintic(two_link, q0=[1, 0.5], q1=[1, 0.5], duration=1),"
            " Lambda=5, K=diag(20, 10))",
        ),
        (MOTION, "Sinusoids(two_link, q0=[0.1, 0.2], amplitude=0.3, frequency=0.4)"),
        (controllers.PDGravity(ROBOT, [1.0, 2.0], 3.0, 4.0), "PDGravity(two_link, q_d=[1, 2], kp=3, kd=4)"),
        (gc.Friction(viscous=0.1), "Friction(viscous=0.1)"),
        (gc.Joint.revolute((0, 0, 1)), "Joint(kind='revolute', S=[[0], [0], [1], [0], [0], [0]])"),
        (
            gc.Plant(ROBOT, actuators=[actuators.Saturation(5.0)], f_ext=gc.Wrench("link2", [0, 0, 0, 0, 0, 1.0])),
            "Plant(two_link, friction=None, f_ext=[Wrench(frame='link2', value=[0, 0, 0, 0, 0, 1])],"
            " actuators=(Saturation(upper=5, lower=-5),))",
        ),
        (gc.Plant(ROBOT, sensors=[sensors.Encoder(resolution=0.01)]), "sensors=(Encoder(resolution=0.01),))"),
        (gc.monitors.EnergyBalance(limit=1e-3), "EnergyBalance(limit=0.001)"),
    ],
)
def test_it_reads_like_the_call(made, text):
    assert repr(made).endswith(text)


def test_a_run_says_what_ran_and_what_it_found():
    run = gc.simulate(ROBOT, controllers.PDGravity(ROBOT, [0.0, 0.0]), [0.1, 0.1], [0.0, 0.0], t_end=0.01, dt=1e-3)
    assert repr(run).startswith("<Run of PDGravity on two_link: 11 samples, reached t = 0.01 s; ")
    assert "4 monitors held" in repr(run)


def test_a_run_without_monitors_does_not_say_that_they_held():
    law = controllers.PDGravity(ROBOT, [0.0, 0.0])
    run = gc.simulate(ROBOT, law, [0.1, 0.1], [0.0, 0.0], t_end=0.01, dt=1e-3, monitors=None)
    assert repr(run).endswith("; no monitors>")


def test_a_run_that_measured_nothing_says_neither_that_monitors_held_nor_that_they_did_not():
    class Broken(controllers.PDGravity):
        def __call__(self, t, q, v, z):
            raise ZeroDivisionError

    with pytest.raises(gc.SimulationError) as caught:
        gc.simulate(ROBOT, Broken(ROBOT, [0.0, 0.0]), [0.1, 0.1], [0.0, 0.0], t_end=0.01, dt=1e-3)
    run = caught.value.run
    assert repr(run).endswith("; nothing measured>")
    assert "<td>not measured</td>" in run._repr_html_()
    assert "VIOLATED" not in run._repr_html_() + run.summary()


def test_what_is_left_out_is_marked():
    assert described({k: k for k in range(13)}).endswith("11: 11, ...}")
    assert described({k: k for k in range(12)}).endswith("11: 11}")


def test_users_classes_have_it_too_and_what_is_half_made_does_not_fail():
    class Brake(actuators.Actuator):
        def __init__(self, ratio, note="none"):
            self.ratio, self.note = ratio, note

        def torque(self, t, u, w, x):
            return u

    assert repr(Brake(np.array([1.0, 2.0]))).endswith("Brake(ratio=[1, 2])")
    assert "Brake" in repr(Brake.__new__(Brake))

    class Torn(ReadableRepr):
        def __init__(self, robot):
            pass

        @property
        def robot(self):
            raise RuntimeError

    assert "Torn" in repr(Torn(1))


def test_no_law_prints_an_address_or_more_than_three_lines():
    for name, law in controllers.classes().items():
        needed = [p.name for p in inspect.signature(law).parameters.values() if p.default is p.empty]
        arguments = {"robot": ROBOT, "reference": MOTION, "q_d": [0.0, 0.0]}
        if set(needed) <= set(arguments):
            try:
                result = law(**{n: arguments[n] for n in needed})
            except gc.ArgumentError:  # not valid for this robot
                continue
            assert " at 0x" not in repr(result), name
            assert len(repr(result)) < 360, name


def test_ctrl_c_while_an_object_is_freed_is_not_lost():
    """The interrupt is pending when the object is freed: no Python function may run before the next line does."""
    laws = [gc.controllers.PDGravity(gc.models.two_link(), [0.3, 0.6])]
    with pytest.raises(KeyboardInterrupt):
        deque(map(operator.call, (_thread.interrupt_main, laws.clear)), maxlen=0)
    assert not laws
