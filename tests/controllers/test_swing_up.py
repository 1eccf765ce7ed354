"""LQR about an equilibrium and swing-up by energy: Riccati equation, proofs and complete runs."""

import numpy as np
import pytest
from oracles import assert_close
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.errors import ArgumentError

CART, ARM = models.cart_pole(), models.two_link()
UP = {"cart": np.zeros(2), "arm": np.array([0.5 * np.pi, 0.0])}


@pytest.fixture(scope="module")
def pole():
    return controllers.SwingUp(CART, UP["cart"], [0])


@pytest.fixture(scope="module")
def pendubot():
    catch = controllers.LQR(ARM, UP["arm"], R=1e-3, actuated=[0])
    created = controllers.SwingUp(ARM, UP["arm"], [0], catch=catch)
    return controllers.SwingUp(ARM, UP["arm"], [0], kv=10.0 * created.kv, catch=catch)


# --- LQR ---------------------------------------------------------------------------------------------------------


def test_lqr_solves_the_riccati_equation_of_the_textbook_cart_pole(pole):
    b, J, m, g, S = 0.05, 0.1 / 3.0, 1.1, 9.81, pole.catch.S
    det = m * J - b * b
    A, B = np.zeros((4, 4)), np.zeros((4, 1))
    A[:2, 2:], A[2, 1], A[3, 1], B[2:, 0] = np.eye(2), -b * b * g / det, m * b * g / det, (J / det, -b / det)
    assert_close(A.T @ S + S @ A - S @ B @ B.T @ S / 0.1 + np.eye(4), np.zeros((4, 4)), 1e-9, np.abs(S).max())
    assert_close(pole.catch.K, np.vstack((10.0 * B.T @ S, np.zeros((1, 4)))), 1e-9)


def test_lqr_keeps_its_bound_in_its_region(pole):
    law = pole.catch
    # a box of half side lengths inside the level set
    half = 0.9 * np.sqrt(law.level / np.linalg.eigvalsh(law.S)[-1]) / 2.0
    sides = {"q": (-np.full(2, half), np.full(2, half)), "v": (-np.full(2, half), np.full(2, half))}
    testing.assert_lyapunov(law, CART, states=4, search=300, runs=1, region=testing.Region(domain=sides), bound=True)


@pytest.mark.parametrize("name", ["cart", "arm"])
def test_lqr_region_is_where_the_bound_holds(name, pole, pendubot):
    """Other directions than those that determined the level; far above it the bound is violated."""
    law = (pole if name == "cart" else pendubot).catch
    robot, rng = law.robot, np.random.default_rng(99)
    x = rng.normal(size=(400, 4))
    x *= np.sqrt(law.level / np.einsum("ka,ab,kb->k", x, law.S, x))[:, None]

    def excess(x):
        q, v = UP[name] + x[:2], x[2:]
        a = robot.forward_dynamics(q, v, law(0.0, q, v, None).tau)
        return 2.0 * x @ law.S @ np.concatenate((v, a)) - law.lyapunov(0.0, q, v, None, gc.Plant(robot)).rate

    assert max(excess(0.999 * y) for y in x) < 0.0
    assert max(excess(3.0 * y) for y in x) > 0.0
    inside, outside = (UP[name] + s * x[0, :2] for s in (0.99, 1.01))
    assert law.in_domain(0.0, inside, 0.99 * x[0, 2:])
    assert not law.in_domain(0.0, outside, 1.01 * x[0, 2:])


def test_lqr_counts_turns_of_endless_joints_only(pole):
    law, v = pole.catch, np.zeros(2)
    assert_close(law._state(0.0, np.array([0.3, 2.0 * np.pi + 0.1]), v), [0.3, 0.1, 0.0, 0.0], 1e-12)
    assert_close(law._state(0.0, np.array([2.0 * np.pi, 0.1]), v), [2.0 * np.pi, 0.1, 0.0, 0.0], 1e-12)


def test_lqr_of_a_floating_body():
    """On a Lie group with all joints actuated: the sampled level exists, and a run converges."""
    body = models.satellite()
    law = controllers.LQR(body, body.neutral(), Q=1e3, R=1e-3)
    run = gc.simulate(body, law, body.integrate(body.neutral(), np.array([0.3, -0.2, 0.1])), np.zeros(3), 20.0, 0.01)
    assert law.level > 0.0
    assert np.abs(run.signals["e"][-1]).max() < 1e-3 * np.abs(run.signals["e"][0]).max()


# --- swing-up ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driven", [[0], [1]], ids=["pendubot", "acrobot"])
def test_the_energys_rate_is_exact(driven):
    law = controllers.SwingUp(ARM, UP["arm"], driven, kE=0.7)
    rng, plant = np.random.default_rng(0), gc.Plant(ARM)
    for q, v in rng.normal(size=(8, 2, 2)) * 2.0:
        tau = law._pumping(q, v)
        a, E = ARM.forward_dynamics(q, v, tau), float(ARM.energy(q, v)) - float(ARM.potential_energy(UP["arm"]))
        k = driven[0]
        rate = law.kE * E * (v @ tau) + law.kD * v[k] * a[k] + law.kP * (q - UP["arm"])[k] * v[k]
        result = law._energy_lyapunov(q, v, plant.robot)
        assert_close(rate, -law.kv * v[k] ** 2, 1e-8, abs(law.kE * E * (v @ tau)) + 1.0)
        assert result.rate == pytest.approx(-law.kv * v[k] ** 2)
        assert tau[1 - k] == 0.0
        assert not law.catch.in_domain(0.0, q, v)
        seen = testing.lyapunov_at(law, ARM, 0.1, q, v)
        assert seen.actual == pytest.approx(seen.promised, rel=1e-5, abs=1e-6 * seen.value)


def test_gains_are_refused_where_the_law_is_singular(pole):
    """The textbook's condition for the cart and pole: kD (M^-1)_11 > 2 m g c kE when hanging, where (M^-1)_11 is
    largest.
    """
    b, J = 0.05, 0.1 / 3.0
    hanging = 2.0 * b * 9.81 * (1.1 - b * b / J)
    with pytest.raises(ArgumentError, match=r"kD: expected a number above (.*), got 1") as refused:
        controllers.SwingUp(CART, UP["cart"], [0], kD=1.0, catch=pole.catch)
    assert float(str(refused.value).split("above ")[1].split(",")[0]) >= hanging - 1e-6
    angle = np.linspace(0.0, np.pi, 2001)
    worst = (b * 9.81 * (1.0 - np.cos(angle)) * (1.1 - (b * np.cos(angle)) ** 2 / J)).max()
    assert float(str(refused.value).split("above ")[1].split(",")[0]) == pytest.approx(worst, rel=5e-3)


def test_cart_and_pole_swing_up_and_are_caught(pole):
    """At 1 kHz in compiled code, starting near the hanging position: V falls throughout, and the pole stays caught."""
    run = gc.simulate(CART, pole, [0.0, np.pi - 0.05], np.zeros(2), 25.0, 1e-3, control_dt=1e-3, options=COMPILED)
    assert run.success
    caught, V = run.signals["caught"], run.signals["lyapunov"]
    k = int(caught.argmax())
    assert 0 < k < len(caught) - 5000
    assert caught[k:].all()
    assert np.diff(V).max() < 1e-5 * V[0]
    assert np.abs(run.q[-1] % (2.0 * np.pi)).min() < 1e-3
    assert np.abs(run.signals["e"][-1]).max() < 1e-2
    assert np.abs(run.tau[:, 0]).max() < 10.0  # N, from the paper of this model
    assert not run.tau[:, 1].any()
    assert np.abs(run.q[:, 0]).max() < 2.4


def test_a_pendubot_swings_up_and_is_caught(pendubot):
    run = gc.simulate(
        ARM, pendubot, [0.05 - 0.5 * np.pi, 0.0], np.zeros(2), 16.0, 1e-3, control_dt=1e-3, options=COMPILED
    )
    assert run.signals["caught"][-2000:].all()
    assert np.abs(run.signals["e"][-1]).max() < 1e-2
    assert not run.tau[:, 1].any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: controllers.LQR(ARM, [0.0, 0.0], actuated=[0]),
            "q_d: expected an equilibrium, got 4.905 N m of gravity",
        ),
        (lambda: controllers.LQR(ARM, UP["arm"], actuated=[0, 0]), "actuated: expected different velocity coordinates"),
        (
            lambda: controllers.LQR(CART, np.zeros(2), actuated=["cart"]),
            r"actuated: expected different velocity coordinates from 0 to 1, the positions of joints in"
            r" robot.dof_names = \('cart', 'pole'\), got \['cart'\]",
        ),
        (lambda: controllers.LQR(ARM, UP["arm"], actuated="joint1"), r"actuated: expected different .*, got 'joint1'"),
        (lambda: controllers.LQR(ARM, UP["arm"], actuated=[2]), "actuated: expected different .* from 0 to 1"),
        (lambda: controllers.LQR(ARM, UP["arm"], Q=-1.0), "Q: expected a positive definite gain"),
        (lambda: controllers.LQR(ARM, UP["arm"], level=0.0), "level: expected a positive number, got 0"),
        (
            lambda: controllers.LQR(ARM.with_gravity(np.zeros(3)), UP["arm"], actuated=[0]),
            "actuated: expected joints that stabilise q_d",
        ),
        (lambda: controllers.SwingUp(ARM, UP["arm"], [0, 1]), "actuated: expected all joints but one of 2"),
        (lambda: controllers.SwingUp(models.satellite(), [0.0], [0]), "robot: expected revolute and prismatic"),
        (lambda: controllers.SwingUp(ARM, UP["arm"], [0], catch=3), "catch: expected an LQR, got 3"),
        (
            lambda: controllers.SwingUp(ARM, UP["arm"], [0], catch=controllers.LQR(ARM, UP["arm"], actuated=[1])),
            "catch: expected an LQR about the same q_d that drives the same joints",
        ),
    ],
)
def test_bad_arguments_of_swing_up_are_named(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
