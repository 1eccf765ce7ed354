"""Groups of arguments: errors name the argument, and a plain value stands for a group."""

import numpy as np
import pytest

from geomctrl import controllers, models, testing
from geomctrl.errors import ArgumentError
from geomctrl.testing import evidence
from geomctrl.testing.passivity import rates_at

ARM = models.two_link()
LAW = controllers.PDGravity(ARM, np.array([0.4, -0.6]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: testing.Region(0.0), "spread: expected a positive number"),
        (lambda: testing.Region({"w": 1.0}), "spread: expected some of 'q', 'v', 'z' by name"),
        (lambda: testing.Region(domain={"w": (0, 1)}), "domain: expected some of 't', 'q', 'v', 'z' by name"),
        (lambda: testing.Region(5e-324), "spread: expected a positive number from 1e-100"),
        (lambda: testing.assert_sampled(LAW, ARM, 1e-3, horizon=1e308), "horizon: expected at most"),
        (lambda: testing.Runs(-1), "count: expected"),
        (lambda: testing.Runs(duration=0.0), "duration: expected seconds > 0"),
        (lambda: testing.Runs(dt=np.nan), "dt: expected"),
        (lambda: testing.Port(largest=0.0), "largest: expected a positive number"),
        (lambda: testing.Port(5.0), "at: expected 'joints', a frame"),
        (lambda: testing.Port(output=lambda t, q, v: v), "output: expected a function"),
        (lambda: testing.assert_passive_port(LAW, ARM, port=5.0), "port: expected a Port, or 'joints'"),
        (lambda: testing.Box(-1.0, 1.0), "q: expected positive half widths"),
        (lambda: testing.Box(1.0, 1.0, equilibrium=[np.nan]), "equilibrium: expected finite numbers"),
        (lambda: testing.Box(1.0, 1.0, z="all"), "z: expected real numbers"),
        (lambda: testing.Box(1.0, 1.0, times=(2.0, 1.0)), "times: expected a first and a later last time"),
        (lambda: testing.Box(1.0, 1.0, times=3.0), "times: expected a pair"),
        (lambda: testing.certify_lyapunov(LAW, ARM, (1.0, -2.0)), "box.v: expected positive half widths"),
        (lambda: testing.Budget(0), "boxes: expected"),
        (lambda: testing.Budget(seconds=-1.0), "seconds: expected"),
        (lambda: testing.Budget(seed=0.5), "seed: expected"),
        (lambda: testing.assert_lyapunov(LAW, ARM, region=-1.0), "region: expected a Region or its spread; spread"),
        (lambda: testing.assert_lyapunov(LAW, ARM, runs="two"), "runs: expected Runs or how many; count"),
        (lambda: testing.certify_lyapunov(LAW, ARM, (1.0, 2.0), budget=0), "budget: expected a Budget or its boxes"),
        (lambda: testing.region_of_attraction(LAW, ARM, testing.Box(1.0, 1.0, (0.0, 1.0))), "box: .* without `times`"),
    ],
)
def test_bad_fields_are_named(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_numbers_of_any_kind_become_floats():
    runs = testing.Runs(np.int64(1), np.array(0.5), np.float32(0.25))
    assert (type(runs.count), type(runs.duration), type(runs.dt)) == (int, float, float)


def said(**arguments):
    with evidence.listening() as heard:
        testing.assert_lyapunov(LAW, ARM, states=2, search=0, **arguments)
    return [str(x) for x in heard]


def test_the_first_field_stands_for_its_group():
    group = said(region=testing.Region(0.125), runs=testing.Runs(1))
    assert said(region=0.125, runs=1) == group
    assert "spread 0.125" in group[0]
    assert "runs 1, seconds 0.3, dt 0.001" in group[1]
    assert said(region=0.25, runs=1) != group


def test_a_port_by_its_name_is_the_port_at_that_frame():
    x = 0.1, np.array([0.2, 0.3]), np.array([0.4, -0.5])
    frame = next(f.name for f in ARM.frames if f.body == 1)
    short, group = (rates_at(LAW, ARM, *x, port=port) for port in (frame, testing.Port(frame)))
    assert all(np.array_equal(a, b) for a, b in zip(short, group))
    J = ARM.jacobian(x[1], frame)
    assert np.allclose(short.output, J @ x[2])  # the frame's twist
