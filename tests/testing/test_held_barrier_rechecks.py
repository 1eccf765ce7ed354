"""Proofs about held commands, checked again by `recheck`: motions during a sample against closed forms and scipy."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import solve_continuous_lyapunov
from testing.linear_loops import SLIDER, largest_value

import geomctrl as gc
from geomctrl import testing
from geomctrl.errors import ArgumentError
from geomctrl.testing.tubes.barriers import BarrierProblem
from geomctrl.tracing.proofs.ball_arithmetic import Arithmetic
from geomctrl.tracing.proofs.rechecking import Proof, check
from geomctrl.tracing.proofs.saved_motions import Motion

pytest.importorskip("flint")

MASS = float(SLIDER.mass_matrix(np.zeros(1))[0, 0])
P = solve_continuous_lyapunov(np.array([[0.0, 1.0], [-4.0, -2.0]]).T, -np.eye(2))
P = P / np.linalg.eigvalsh(P)[-1]
BOX = np.full(2, -3.0), np.full(2, 3.0)


def law(t, q, v, z):
    return gc.Command(MASS * (-4.0 * q - 2.0 * v))


def ellipse(t, q, v, z, plant):
    return 1.0 - (P[0, 0] * q[0] ** 2 + 2.0 * P[0, 1] * q[0] * v[0] + P[1, 1] * v[0] ** 2)


def grid(lower, upper, count):
    """Boxes that cover a domain."""
    edges = [np.linspace(a, b, count + 1) for a, b in zip(lower, upper)]
    lo = np.stack(np.meshgrid(*[x[:-1] for x in edges], indexing="ij"), -1).reshape(-1, len(edges))
    hi = np.stack(np.meshgrid(*[x[1:] for x in edges], indexing="ij"), -1).reshape(-1, len(edges))
    return lo, hi


def claim_on_a_grid(problem, count):
    """A saved claim about the boxes of a grid, without a proof."""
    task = next(iter(problem.statements().values()))
    lo, hi = grid(task.starts[0][0], task.starts[1][0], count)
    claim = SimpleNamespace(task=task, outcome=SimpleNamespace(leaves=(lo, hi, None)))
    return problem._saved_sample(claim)


def checked(arrays):
    return check(SimpleNamespace(_arrays=lambda: {"claims": 1, **arrays}))


@pytest.mark.parametrize("dt", [pytest.param(0.02, marks=pytest.mark.slow), 0.1, 0.7, 1.0])
def test_only_claims_that_hold_for_the_exact_motion_are_confirmed(dt):
    """The boxes are no proof: `recheck` decides each itself."""
    result = checked(claim_on_a_grid(BarrierProblem(ellipse, law, SLIDER, BOX, 0.0, dt), 4))
    assert bool(result) == (dt <= 0.1)
    assert largest_value(P, dt) > 1.0 or dt < 0.7


def test_a_proof_is_confirmed_and_an_edited_one_is_not(tmp_path):
    half = 1.2 * np.sqrt(np.diag(np.linalg.inv(P)))
    result = testing.certify_barrier(ellipse, law, SLIDER, (-half, half), control_dt=0.02)
    assert result.invariant
    path = result.save(tmp_path / "proof.npz")
    confirmed = testing.recheck(path)
    assert confirmed, confirmed
    assert confirmed.claims == 5  # the sample, and the four faces of the box
    with np.load(path) as arrays:
        saved = dict(arrays)

    def edited(change):
        new = {name: x.copy() for name, x in saved.items()}
        change(new)
        np.savez(tmp_path / "edited.npz", **new)
        return testing.recheck(tmp_path / "edited.npz")

    def said(key, value):
        return lambda x: x.update(claim=np.array(json.dumps({**json.loads(str(x["claim"])), key: value})))

    for seconds in (0.6, 1.0):
        assert "not shown" in edited(said("duration", float.hex(seconds))).reason
    for change in (lambda x: x.update(lo=x["lo"][1:], hi=x["hi"][1:]), lambda x: x.update(domain=2.0 * x["domain"])):
        assert "no box covers" in edited(change).reason
    spring, damping = (np.isclose(saved["numbers"], MASS * k) for k in (4.0, 2.0))
    if spring.any() or damping.any():
        assert not edited(lambda x: x.update(numbers=np.where(damping, -5.0 * x["numbers"], x["numbers"])))
    rates = json.loads(str(saved["claim"]))["rates"]
    wrong = [("rates", rates[:1]), ("rates", []), ("rates", [10**9] * 2), ("duration", "nan"), ("duration", "-0x1p-4")]
    for key, value in [*wrong, ("duration", float.hex(0.0)), ("duration", "inf")]:
        with pytest.raises(ArgumentError, match="proof: expected what"):
            edited(said(key, value))


def rod(seed):
    """(Rod that turns, law with a limited torque, h, box) with random numbers."""
    rng = np.random.default_rng(seed)
    mass, length, kp, kd = rng.uniform([0.5, 0.3, 5.0, 2.0], [2.0, 1.0, 20.0, 8.0])
    body = gc.inertia.from_com(mass, (0.0, 0.0, 0.5 * length), np.eye(3) * mass * length**2 / 12.0)
    robot = gc.Robot.build([gc.Body("rod", None, gc.Joint.revolute((0, 1, 0)), None, body)])
    limit = rng.uniform(0.5, 4.0) * mass * 9.81 * length
    scale = rng.uniform(0.3, 2.0, 2)

    def turning(t, q, v, z):
        return gc.Command(limit * np.tanh((-kp * q - kd * v) * mass * length**2 / limit))

    def h(t, q, v, z, plant):
        return 1.0 - (q[0] / scale[0]) ** 2 - (v[0] / (3.0 * scale[1])) ** 2 - 0.5 * q[0] * v[0]

    half = np.array([1.5 * scale[0], 4.5 * scale[1]])
    return robot, turning, h, (-half, half)


def leaves(robot, law, h, box, dt, samples, rng):
    """Whether a sampled motion from h >= 0 with a held command falls below zero within a sample."""
    for x in rng.uniform(*box, (samples, 2)):
        if h(0.0, x[:1], x[1:], None, robot) < 0.0:
            continue
        tau = law(0.0, x[:1], x[1:], None).tau

        def rates(t, y, tau=tau):
            return [y[1], *robot.forward_dynamics(y[:1], y[1:], tau)]

        y = solve_ivp(rates, (0.0, dt), x, "DOP853", np.linspace(0.0, dt, 11), rtol=1e-9, atol=1e-11).y.T
        if min(h(0.0, s[:1], s[1:], None, robot) for s in y) < -1e-8:
            return True
    return False


@pytest.mark.parametrize(("start", "kept"), [(1.2, True), (0.5, False)])
def test_a_wall_is_reached_within_a_sample_only_from_near_it(start, kept):
    """Without torque a body at up to 1 m/s is at q - t: from q >= start dt it stays above zero if start > 1."""
    dt = 0.1
    box = np.array([start * dt, -1.0]), np.array([1.0, -0.9])
    rest = gc.Command(np.zeros(1))
    problem = BarrierProblem(lambda t, q, v, z, plant: q[0], lambda t, q, v, z: rest, SLIDER, box, 0.0, dt)
    assert bool(checked(claim_on_a_grid(problem, 2))) == kept


@pytest.mark.slow
def test_no_claim_of_random_loops_is_confirmed_that_a_motion_refutes():
    answers, rng = [], np.random.default_rng(0)
    for seed in range(24):
        robot, turning, h, box = rod(seed)
        dt = float(rng.choice([0.002, 0.02, 0.1]))
        is_refuted = leaves(robot, turning, h, box, dt, 200, rng)
        arrays = claim_on_a_grid(BarrierProblem(h, turning, robot, box, 0.0, dt), 6)
        confirmed = bool(checked(arrays))
        answers.append((confirmed, is_refuted))
        assert not (confirmed and is_refuted), (seed, dt)
    assert (True, False) in answers
    assert (False, True) in answers


def test_the_means_of_rates_of_motions_are_enclosed():
    """The mean of the rates until t is (x(t) - x) / t, by scipy."""
    rng, inside = np.random.default_rng(1), 0
    for seed in range(8):
        robot, turning, h, box = rod(seed)
        dt = float(rng.choice([0.02, 0.1]))
        proof = Proof(claim_on_a_grid(BarrierProblem(h, turning, robot, box, 0.0, dt), 1))
        lower = rng.uniform(*box)
        upper = lower + rng.uniform(0.0, 0.3, 2)
        with proof.code.arithmetic.precision():
            bounds = proof.motion.box(proof.code, np.append(lower, 0.0), np.append(upper, dt))
        if bounds is None:
            continue
        for x in rng.uniform(lower, upper, (20, 2)):
            tau, t = turning(0.0, x[:1], x[1:], None).tau, np.linspace(0.0, dt, 6)[1:]

            def rates(t, y, tau=tau, robot=robot):
                return [y[1], *robot.forward_dynamics(y[:1], y[1:], tau)]

            y = solve_ivp(rates, (0.0, dt), x, "DOP853", t, rtol=1e-11, atol=1e-13).y
            means = (y.T - x) / t[:, None]
            assert (means >= bounds[0][3:] - 1e-7).all()
            assert (means <= bounds[1][3:] + 1e-7).all()
            inside += 1
    assert inside > 60


class Growth:
    """Code of x' = x, where x at time t is x + t r: the operations are x, t, r and this sum."""

    flag, arithmetic = None, Arithmetic(96)

    def forward(self, coordinates):
        x, t, r = coordinates
        do = self.arithmetic.operations
        return [x, t, r, do["add"](x, do["mul"](t, r))], None


@pytest.mark.parametrize("duration", [0.01, 0.1, 0.5, 2.0, 5.0])
def test_the_mean_of_a_rate_that_grows_is_enclosed_or_nothing_is_said(duration):
    growth = Growth()
    with growth.arithmetic.precision():
        bounds = Motion([3], duration).box(growth, np.array([1.0, 0.0]), np.array([1.0, duration]))
    if bounds is not None:
        assert bounds[0][2] <= 1.0  # x(t) = exp(t), and its mean rate until t is (exp(t) - 1) / t
        assert bounds[1][2] >= np.expm1(duration) / duration
    assert (bounds is None) == (duration >= 1.0)  # a mean r <= R gives rates up to 1 + t R, which R has to exceed
