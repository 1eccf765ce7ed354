"""Laws that ask whether two names are one array: copies of arrays differ, so they run in Python, equal to Python."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl.tracing.symbols import UntraceableError

ARM = gc.models.two_link()
EMPTY = np.zeros(2)


class Config:
    EMPTY = np.zeros(2)


class History:
    """Pushes in one sample, which the comparison does not visit, if an entry is still the array `empty`."""

    def __init__(self, empty, count):
        self.empty, self.entries, self.gain = empty, [empty] * count, 20.0

    def unused(self):
        return self.entries[-1] is self.empty

    def __call__(self, t, q, v, z):
        push = 40.0 if abs(t - 0.3335) < 0.0006 and self.unused() else 0.0
        return gc.Command(-self.gain * q - 5.0 * v + push)


class Named(History):
    def unused(self):
        return self.entries[-1] is EMPTY


class OfClass(History):
    def unused(self):
        return self.entries[-1] is Config.EMPTY


LAWS = {
    "attribute": lambda: History(np.zeros(2), 3),
    "global, in one place": lambda: Named(EMPTY, 1),
    "global, repeated": lambda: Named(EMPTY, 2),
    "of a class": lambda: OfClass(Config.EMPTY, 1),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("control_dt", [None, 1e-3])
def test_they_are_refused_and_run_in_python(name, control_dt):
    def run(compiled):
        options = gc.SimulationOptions(compiled=compiled)
        start = [0.3, -0.2], [0.1, 0.4]
        return gc.simulate(ARM, LAWS[name](), *start, 0.5, 1e-3, control_dt=control_dt, monitors=None, options=options)

    with pytest.raises(UntraceableError, match="compares objects by `is`"):
        run(True)
    assert np.isfinite(run(False).q).all()
