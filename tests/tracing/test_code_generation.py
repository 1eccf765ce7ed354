"""Quick tests generate machine code at LLVM's lowest level: its results are those of the usual level."""

import numpy as np
import pytest
from compiled_functions import outputs

from geomctrl.tracing.backends import host


def recursion(x):
    """Sums of products, of which the processor computes many with one rounding, quotients and branches."""
    y = np.zeros(3)
    for k in range(9):
        y = np.cross(x[k : k + 3], y) + y * x[k + 1] - x[k : k + 3] / (1.5 + x[k] * x[k + 2])
    return np.where(y > 0.1, y * y + x[:3] * x[3:6], np.sin(y) - x[:3] * y)


@pytest.mark.skipif(host.OPTIMISATION != 0, reason="code is generated at the usual level")
@pytest.mark.parametrize("flags", ["", "nsz arcp contract"])
def test_results_do_not_depend_on_the_level(flags, monkeypatch):
    rows = np.random.default_rng(4).normal(size=(200, 11))
    quick, _ = outputs(recursion, rows, flags)
    monkeypatch.setattr(host, "OPTIMISATION", 2)
    usual, _ = outputs(recursion, rows, flags)
    assert np.isfinite(usual).all()
    np.testing.assert_array_equal(quick, usual)


def test_caches_of_two_levels_do_not_collide(monkeypatch):
    descriptions = set()
    for level in range(3):
        monkeypatch.setattr(host, "OPTIMISATION", level)
        descriptions.add(host.description.__wrapped__())
    assert len(descriptions) == 3
