"""Errors planted in the terms: the monitor of skewness sees each of them in a short run, and so does the assertion.

The kernels run in Python with one line of one of them changed: M, C and g from the composite sums, the recursions of
Newton and Euler, and what both are made of.
"""

import inspect
import math
import re
import textwrap

import numpy as np
import pytest
from simulation_options import grouped

import geomctrl as gc
from geomctrl import controllers, testing
from geomctrl.compiler.arithmetic import Arithmetic, Sizes, evaluated, on
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.control.references import Sinusoids
from geomctrl.kernels import screws
from geomctrl.kernels.primitives import python_function
from geomctrl.testing.robot_terms import assert_skew_symmetric

# function, part of its code, the changed part, the form of C that is computed with it
PLANTED = [
    ("coriolis_composite", "neg3(v)", "v", "ploen"),
    ("coriolis_composite", "-0.5 * here", "0.5 * here", "christoffel"),
    ("coriolis_composite", "0.5 * (trace - here)", "0.25 * (trace - here)", "ploen"),
    ("coriolis_composite", "cross(w, J.h))", "cross(J.h, w))", "ploen"),
    ("coriolis_composite", "mul3(J.m, v)", "v", "christoffel"),
    ("term_rows", "M[k, j] = M[j, k] = ", "M[k, j] = M[j, k] = 2.0 * ", "ploen"),
    ("term_rows", "C[k, j] = rate + ", "C[k, j] = rate - ", "ploen"),
    ("term_rows", "C[j, k] = pair", "C[j, k] = -pair", "christoffel"),
    ("term_rows", "rate + pair(axis.S, G)", "rate - pair(axis.S, G)", "ploen"),
    ("term_rows", "sub3(JdS.f", "add3(JdS.f", "ploen"),
    ("term_rows", "g[k] = -pair", "g[k] = pair", "ploen"),
    ("mass_matrix_by_frames", "M[k, j] = M[j, k] = ", "M[k, j] = M[j, k] = 0.5 * ", "ploen"),
    ("mass_matrix_by_frames", "inertia_to(get_joint_frame(frames, i), J)", "J", "christoffel"),
    ("mass_matrix_by_frames", "Ad_dual(get_joint_frame(frames, b), F)", "F", "ploen"),
    ("put_frame", "frames, i, f)", "frames, i, compose(f, f))", "ploen"),
    ("inertia_to", "0.5 * J.m", "J.m", "ploen"),
    ("newton_euler.accelerate", "ad(V, Sv)", "ad(Sv, V)", "ploen"),
    ("inertial_wrench", "cross(V.w, V.v)", "cross(V.v, V.w)", "ploen"),
    ("moving_wrench", "cross(alpha, J.h)", "cross(J.h, alpha)", "ploen"),
    ("coupled_wrench", "cross(w, sym", "cross(wr, sym", "ploen"),
    ("coupled_wrench", "cross(wr, J.h)", "cross(w, J.h)", "ploen"),
    ("coupled_wrench", "0.5 * trace", "0.25 * trace", "christoffel"),
    ("move_reference", "cross(parent.Vr.w, f.p)", "cross(parent.V.w, f.p)", "ploen"),
    ("move_reference", "ad(Sv, XVr)", "ad(XVr, Sv)", "christoffel"),
    ("transmit", "Ad_dual(get_motion(motion, i).f, F)", "F", "ploen"),
    ("transmit_reference", "Ad_dual(get_reference_motion(motion, i).f, F)", "F", "ploen"),
    ("add_brackets", "C[k, j] -= half", "C[k, j] += half", "adjoint"),
    ("bracket", "mul3(2.0, cross(h, V.v))", "cross(h, V.v)", "adjoint"),
    ("project", "pair(", "-pair(", "ploen"),
]


class Planted(Arithmetic):
    """Floats, with one part of one primitive changed."""

    def __init__(self, name="", part="", other=""):
        super().__init__(math)
        self.name, self.part, self.other, self.met = name, part, other, False

    def _replaced(self, name, value):
        inner = python_function(value)
        if inner is None or inner.__code__.co_filename == "<string>" or not self._is_it(inner):
            return super()._replaced(name, value)
        text = textwrap.dedent(inspect.getsource(inner))
        text = text[re.search(r"^def ", text, re.MULTILINE).start() :]
        assert text.count(self.part) == 1
        scope = vars(screws) | inner.__globals__
        exec(compile(text.replace(self.part, self.other), "<planted>", "exec"), scope)
        self.met = True
        return on(scope[inner.__name__], self)

    def _is_it(self, function):
        return f".{function.__module__}.{function.__name__}".endswith(f".{self.name}")


class InPython:
    """A replacement of `Robot._code`, which runs every algorithm in Python with an arithmetic."""

    def __init__(self, robot, arithmetic):
        self.model, self.pattern, self.arithmetic = robot._model, robot._code.pattern, arithmetic

    def __getattr__(self, name):
        function = CATALOGUE[name]
        return lambda *arrays: self.run(function.algorithm, function.options, function.result, arrays)

    def at(self, algorithm, *numbers, result=tuple):
        names = [x.name for x in algorithm.options if not x.is_array]
        return lambda *arrays: self.run(algorithm, dict(zip(names, numbers)), result, arrays)

    def run(self, algorithm, options, result, arrays):
        sizes, rows = Sizes(self.pattern, options), iter(arrays)
        inputs = [np.empty(0) if x.optional else np.array(next(rows), float).ravel() for x in algorithm.inputs]
        inputs += [next(rows) if x.is_array else options[x.name] for x in algorithm.options]
        good, out = evaluated(algorithm, sizes, self.model.astype(object), inputs, self.arithmetic)
        out = [np.array(y, float) for y in out]
        return None if good is False else out[0] if len(out) == 1 else tuple.__new__(result, out)


def arm(arithmetic):
    """A tree with revolute and prismatic joints, whose terms are computed in Python."""
    rng = np.random.default_rng(5)
    robot = testing.random_robot(rng, ["revolute", "revolute", "prismatic", "cylindrical"], [-1, 0, 1, 1])
    object.__setattr__(robot, "_code", InPython(robot, arithmetic))
    return robot


def watched(robot, form):
    """The worst value of the monitor in a tenth of a second, under a law that uses the same changed code."""
    start, middle = (robot.integrate(robot.neutral(), np.full(robot.nv, x)) for x in (0.4, 0.2))
    law = controllers.Passivity(robot, Sinusoids(robot, middle, 0.3, 0.7), 2.0, 1.0, form=form)
    options = {"monitors": [gc.monitors.Skew()], "compiled": False}
    try:
        run = gc.simulate(robot, law, start, np.full(robot.nv, 0.5), 0.1, 0.02, **grouped(**options))
    except gc.SimulationError as error:  # with the change the robot itself may be refused
        run = error.run
    return run.monitors["skew"]


@pytest.mark.parametrize("form", ["ploen", "christoffel", "adjoint"])
def test_what_is_right_is_found_right(form):
    robot = arm(Planted())
    assert watched(robot, form).worst < 1e-13
    assert_skew_symmetric(robot, states=2)


@pytest.mark.parametrize(("name", "part", "other", "form"), PLANTED, ids=lambda x: x.replace(" ", ""))
def test_a_planted_error_is_found(name, part, other, form):
    planted = Planted(name, part, other)
    robot = arm(planted)
    seen = watched(robot, form)
    assert planted.met
    assert seen.ok is False
    assert seen.worst > 1e-6
    with pytest.raises(AssertionError, match=r"is not skew|is not the force|the mass matrix for v != 0"):
        assert_skew_symmetric(robot, states=2)
