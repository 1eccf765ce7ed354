"""Worst cases over boxes of parameters that are known in closed form."""

import numpy as np
import pytest
from linear_loops import KD, KP, MASS, PD, SLIDER, P
from scipy.linalg import eigh

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError
from geomctrl.testing import Counterexample


def make(point):
    """A PD law on a mass with friction that V does not contain."""
    return gc.Plant(SLIDER, gc.Friction(viscous=point["friction"])), PD(kp=point["kp"]), np.zeros(1), np.zeros(1)


def growth(friction, kp):
    """The largest V' / V: of x . (A^T P + P A) x over x . P x."""
    A = np.array([[0.0, 1.0], [-kp / MASS, -(KD + friction) / MASS]])
    return float(eigh(A.T @ P + P @ A, P, eigvals_only=True)[-1])


OVER = {"friction": (0.0, 3.0), "kp": (0.5 * KP, 2.5 * KP)}


@pytest.mark.slow
def test_the_worst_of_a_linear_loop_over_a_box():
    grid = [(growth(f, kp), f, kp) for f in np.linspace(*OVER["friction"], 61) for kp in np.linspace(*OVER["kp"], 61)]
    worst, friction, kp = max(grid)
    result = testing.worst_case(make, OVER, points=4)
    assert result.worst.worst == pytest.approx(worst, rel=1e-3)
    assert result.worst.parameters == pytest.approx({"friction": friction, "kp": kp}, rel=0.05, abs=0.05)
    middle = result.rows[0]
    assert (middle.label, middle.parameters) == ("middle", {"friction": 1.5, "kp": 1.5 * KP})
    assert middle.worst == pytest.approx(growth(1.5, 1.5 * KP), rel=1e-3)
    lines = result.table.splitlines()
    for words in ("V' / V [1/s]", "friction", "kp", "least friction", "largest kp", "corner", "worst found"):
        assert any(words in line for line in lines), words
    assert f"{result.worst.worst:.4g}" in next(line for line in lines if "worst found" in line)


@pytest.mark.quick(1)
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_limit_is_kept_or_the_parameters_that_break_it_are_named(factor):
    """P for the nominal gain: the box of kp is such that V' / V is -1 1/s at worst, and 5 % away from the nominal
    gain.
    """
    worst = max(growth(0.0, kp) for kp in np.linspace(*OVER["kp"], 201))
    limit = worst + (factor - 1.0) * -abs(worst)
    if factor < 1.0:
        assert testing.assert_robust(make, OVER, limit=limit, points=2).worst.worst <= limit
        return
    with pytest.raises(Counterexample, match=r"V' / V .* allowed .* for friction = 0, kp = ") as caught:
        testing.assert_robust(make, OVER, limit=limit, points=2)
    printed = []
    exec(caught.value.paste.replace("print(", "printed.append("), {"printed": printed, "make": make})
    assert printed[0].actual > limit * printed[0].value


def test_an_extreme_inside_the_box_is_climbed_to():
    """The measure is largest at kp = 90, which is neither a corner nor the middle."""

    def made(point):
        law = PD(kp=point["kp"])
        law.off = (point["kp"] - 90.0) ** 2
        law.lyapunov = lambda t, q, v, z, plant: gc.Lyapunov(1.0 + 0.0 * q[0], -1e-3 * law.off)
        return SLIDER, law

    result = testing.worst_case(made, {"kp": (0.0, 120.0)}, lambda r: r.promised, search=50, points=0)
    assert result.worst.parameters["kp"] == 90.0


@pytest.mark.slow
def test_how_much_load_a_law_with_the_wrong_model_bears():
    """Above a level V falls with the load in the law's model, and not with one of 5 kg."""
    robot = models.two_link()
    reference = Sinusoids(robot, np.zeros(2), 0.3, 0.4)

    def loaded(point):
        law = controllers.Passivity(robot, reference, 5.0, point["K"])
        return robot.with_payload(point["payload"], (0.0, 0.0, 0.0)), law

    over = {"payload": (0.0, 0.05), "K": (20.0, 30.0)}
    options = {"level": 0.5, "search": 300, "points": 2}
    testing.assert_robust(loaded, over, **options)
    with pytest.raises(Counterexample, match="payload = 5, K = 20") as caught:
        testing.assert_robust(loaded, over | {"payload": (0.0, 5.0)}, **options)
    assert "worst found" in caught.value.message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: testing.worst_case(make, {}), "over: expected"),
        (lambda: testing.worst_case(make, {"kp": (2.0, 1.0)}), "over: 'kp': expected"),
        (lambda: testing.worst_case(make, {"kp": (0.0, np.inf)}), "over: 'kp': expected"),
        (lambda: testing.worst_case(make, {"kp": 3.0}), "over: 'kp': expected"),
        (lambda: testing.worst_case(3, OVER), "make: expected"),
        (lambda: testing.worst_case(lambda point: None, OVER), "make: expected"),
        (lambda: testing.worst_case(make, OVER, 3), "measure: expected"),
        (lambda: testing.assert_robust(make, OVER, limit=np.nan), "limit: expected"),
    ],
)
def test_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
