"""The demos say what they say: small pieces of them."""

import numpy as np
import pytest
from demos import payload_robustness, sampling_rate

import geomctrl as gc


@pytest.mark.slow
def test_a_load_that_the_joints_can_not_hold_breaks_the_proof():
    space = {"payload": [1.0, 12.0], "rate": [0.5]}
    table = gc.sweep(payload_robustness.make, space, payload_robustness.measures, 3.0, 1e-3)
    peak = (table.peak_torque / payload_robustness.LIMITS).max("joint").values.ravel()
    assert peak[0] < 1.0 == pytest.approx(peak[1])
    assert (table.growth.values.ravel() > payload_robustness.GROWTH).tolist() == [False, True]
    assert table.tracking_rms.values[1] > table.tracking_rms.values[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PDGravity", "ComputedTorque"])
def test_a_command_that_is_held_longer_lets_V_grow_more(name):
    found = [sampling_rate.growth(*sampling_rate.loops()[name], held, 0.3) for held in (4, 16, 64)]
    assert np.all(np.diff(found) > 0.0)
    assert found[0] > 1e-10
