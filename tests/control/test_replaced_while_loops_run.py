"""A law that replaces a member of geomctrl in its first call: later loops of the same group are those of Python."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.control import many
from geomctrl.control.loop_runner import Case
from geomctrl.lie import so3

ROBOT = models.two_link()
original = so3.exp


def replacement(w):
    return 2.0 * original(w)


class Replacing:
    robot = ROBOT

    def __init__(self, replaces):
        self.replaces = replaces

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        if self.replaces and so3.exp is not replacement:
            so3.exp = replacement
        return gc.Command(-so3.exp(np.array([0.0, 0.0, q[0]]))[:2, :2] @ q)


@pytest.mark.parametrize("first", [4, 8, 16])
def test_loops_after_a_replacement_use_it(first, monkeypatch):
    monkeypatch.setattr(so3, "exp", original)
    results = []
    for compiled in (False, "auto"):
        so3.exp = original
        cases = [Case(ROBOT, Replacing(k >= first), np.full(2, 0.3), np.zeros(2)) for k in range(24)]
        outcomes = many.outcomes(
            cases, {"q": lambda run: float(run.q[-1, 0])}, 0.3, 1e-3, options=gc.SimulationOptions(compiled=compiled)
        )
        results.append([x.values["q"] for x in outcomes])
    assert len({round(x, 9) for x in results[0]}) > 1
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-9)
