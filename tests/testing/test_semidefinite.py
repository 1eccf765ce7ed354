"""Semidefinite V', the cross term that makes it definite, and decisions that rounding must not make."""

import numpy as np
import pytest
from arms import three_joints

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.contracts import Command, Lyapunov
from geomctrl.control.references import hold
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.testing.certificates import request
from geomctrl.testing.certificates.equations import equations
from geomctrl.testing.certificates.searching import LargestExcess, zero_on_surface

ARM = models.two_link()
Q_D = np.array([0.5, 1.0])
BOX = 1.0, 2.0
QUICK = {"levels": False}


def slider():
    mass = inertia.from_com(1.0, np.zeros(3), np.eye(3))
    body = Body("mass", None, Joint.prismatic((1, 0, 0), name="x"), None, mass)
    return gc.Robot.build([body], gravity=(0, 0, 0), name="slider")


# --- the cross term ------------------------------------------------------------------------------------------------


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("robot", "box", "options"),
    [
        (ARM, BOX, {}),
        (ARM, (3.0, 6.0), {}),
        (ARM, BOX, {"parameters": 0.1, "outside": 0.05}),
        (ARM.with_armature([0.3, 0.2]), BOX, {}),
        (three_joints(), BOX, {}),
        (models.puma560(), (0.1, 0.2), {}),
    ],
    ids=["two links", "far", "uncertain", "motors", "three joints", "six joints"],
)
def test_pd_with_a_cross_term_is_proved(robot, box, options):
    law = controllers.PDGravity(robot, np.full(robot.nv, 0.3), strict=True)
    result = testing.certify_lyapunov(law, robot, box, **options, **QUICK)
    assert result.proved, result
    assert len(result.lemmas) >= 3


def test_pd_with_constant_gravity_and_a_cross_term_is_proved_and_confirmed():
    pytest.importorskip("flint")
    law = controllers.PDGravity(ARM, Q_D, 100.0, 20.0, constant=True, strict=True)
    assert law.gravity_margin() > 0.0
    result = testing.certify_lyapunov(law, ARM, (0.3, 0.6), **QUICK)
    assert result.proved, result
    assert testing.recheck_lyapunov(result).startswith("confirmed")


def test_constant_gravity_with_gains_too_weak_for_it_is_refuted():
    """Inverted links whose springs are weaker than gravity: V is negative near the equilibrium."""
    law = controllers.PDGravity(ARM, [np.pi / 2, 0.0], 2.0, 20.0, constant=True, strict=True)
    assert testing.certify_lyapunov(law, ARM, (0.3, 0.6), **QUICK).status == "refuted"


def test_region_of_attraction_under_pd():
    """All simulations from the boundary of the certified level converge to the equilibrium."""
    law = controllers.PDGravity(ARM, Q_D, strict=True)
    result = testing.certify_lyapunov(law, ARM, BOX)
    assert result.region is not None
    plant, rng = gc.Plant(ARM), np.random.default_rng(0)
    for _ in range(3):
        x = rng.normal(size=4) * [0.1, 0.1, 1.0, 1.0]
        for _ in range(60):  # V grows along the ray
            x = x * np.sqrt(result.level / law.lyapunov(0.0, Q_D + x[:2], x[2:], None, plant).value) ** 0.9
        run = gc.simulate(plant, law, Q_D + x[:2], x[2:], 4.0, 1e-3)
        assert np.abs(run.q[-1] - Q_D).max() < 1e-3
        assert (np.abs(run.q - Q_D).max(0) <= BOX[0]).all()


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("robot", [ARM, models.puma560()], ids=["two_link", "puma560"])
def test_the_rate_is_that_of_v_along_the_loop(robot, constant):
    """By differences along the plant's acceleration."""
    rng, plant = np.random.default_rng(2), gc.Plant(robot)
    q_d = rng.uniform(-1.0, 1.0, robot.nv)
    law = controllers.PDGravity(robot, q_d, constant=constant, strict=True)
    for _ in range(5):
        q, v, h = q_d + rng.normal(size=robot.nv), rng.normal(size=robot.nv), 1e-5
        a = plant.acceleration(0.0, q, v, law(0.0, q, v, None).tau)
        V = [law.lyapunov(0.0, q + s * v + 0.5 * s * s * a, v + s * a, None, plant).value for s in (-h, h)]
        rate = law.lyapunov(0.0, q, v, None, plant).rate
        assert (V[1] - V[0]) / (2.0 * h) == pytest.approx(rate, rel=1e-6, abs=1e-5)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["two_link", "ur10", "scara"])
def test_assertions_hold_with_the_cross_term(name):
    robot = models.load(name)
    law = controllers.PDGravity(robot, np.full(robot.nv, 0.3), strict=True)
    testing.assert_lyapunov(law, robot, search=200)


class Heavy:
    """A mass of 1 kg on a slider, with V in numbers: V' = -0.5 v^2 + c v sin q."""

    q_d = np.zeros(1)

    def __init__(self, c=0.0):
        self.c = c

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return Command(-3.0 * q - 0.5 * v + self.c * np.sin(q))

    def lyapunov(self, t, q, v, z, plant):
        return Lyapunov(0.5 * v.dot(v) + 1.5 * q.dot(q), -0.5 * v.dot(v) + self.c * v.dot(np.sin(q)))


def test_a_v_in_numbers_is_semidefinite_for_the_model_and_not_for_others():
    """Its rate is the claimed one if the mass is 1 kg; with another mass v' differs."""
    result = testing.certify_lyapunov(Heavy(), slider(), BOX, **QUICK)
    assert result.status == "semidefinite", result
    assert result.form == "the promised rate"
    other = testing.certify_lyapunov(Heavy(), slider(), BOX, parameters=0.1, outside=0.05, **QUICK)
    assert other.form != "the promised rate"
    assert other.status != "proved"
    growing = testing.certify_lyapunov(Heavy(0.1), slider(), BOX, **QUICK)
    assert growing.status == "refuted", growing


class Turning(Heavy):
    """Damping that changes its sign where sin q > 1 / 2; V is the plant's energy."""

    def __call__(self, t, q, v, z):
        return Command(-3.0 * q - (0.5 - 2.0 * np.sin(q) ** 2) * v)

    def lyapunov(self, t, q, v, z, plant):
        rate = -0.5 * v.dot(v) + 2.0 * (v * np.sin(q)).dot(v * np.sin(q))
        return Lyapunov(plant.robot.kinetic_energy(q, v) + 1.5 * q.dot(q), rate)


def test_a_coordinate_within_a_sine_is_one_that_v_dot_depends_on(monkeypatch):
    """V' is positive at q = 1, even if a search finds no such state; and negative where |q| < 1 / 2."""
    monkeypatch.setattr(request, "search", lambda e, *_, **__: LargestExcess(-1e-30, np.array([0.0, 0.1]), e.model))
    result = testing.certify_lyapunov(Turning(), slider(), (1.0, 0.5), levels=False, budget=2_000)
    assert result.form == "power, without M^-1"
    assert result.status != "semidefinite", result
    assert not any("V' <= 0" in claim.statement and claim.status == "proved" for claim in result.claims)


def test_strict_wants_joints_with_one_degree_of_freedom():
    robot = models.load("quadruped")
    with pytest.raises(ArgumentError, match="strict"):
        controllers.PDGravity(robot, robot.neutral(), strict=True)


# --- rounding decides nothing -----------------------------------------------------------------------------------------


class HighPower:
    """A spring and a damper; V = E^8, which near the equilibrium is smaller than rounding errors and still positive."""

    def __init__(self):
        self.robot, self.q_d = slider(), np.zeros(1)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return Command(-2.0 * q - 3.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        E = 2.5 * q.dot(q) + q.dot(v) + v.dot(v)
        rate = 5.0 * q.dot(v) + v.dot(v) + (q + 2.0 * v).dot(-2.0 * q - 3.0 * v)
        power = E * E * E * E * E * E * E
        return Lyapunov(power * E, 8.0 * power * rate)


def test_what_is_positive_below_rounding_is_not_refuted():
    law = HighPower()
    result = testing.certify_lyapunov(law, law.robot, (1.0, 1.0), levels=False, budget=2_000)
    assert result.status == "undecided", result
    assert "zero to rounding at" in str(result)


@pytest.mark.slow
def test_puma_under_pd_is_semidefinite_and_v_is_decided():
    robot = models.puma560()
    result = testing.certify_lyapunov(controllers.PDGravity(robot, np.full(6, 0.3)), robot, (0.3, 0.6), **QUICK)
    assert result.status == "semidefinite", result


def test_a_surface_of_zeros_is_found_where_there_is_one():
    """V = 1/2 s . M s vanishes with s = v + 5 e; with e . Lambda K e added it does not."""
    half, x = np.array([1.0, 1.0, 4.0, 4.0]), np.array([0.2, 0.1, -0.9, -0.6])
    for strict in (False, True):
        law = controllers.Passivity(ARM, hold(ARM, Q_D), 5.0, 20.0, strict=strict)
        e = equations(law, gc.Plant(ARM), Q_D)
        result = zero_on_surface(e, e.value, x, half)
        assert (result is None) == strict
        if result is not None:
            np.testing.assert_allclose(result[2:], -5.0 * result[:2], rtol=1e-12)
            np.testing.assert_array_equal(result[:2], x[:2])
    assert zero_on_surface(e, e.value, x, half) is None
