"""Tracking on SO(3) and SE(3): errors, references from flat outputs, proofs, and the manoeuvres of the paper."""

import numpy as np
import pytest
from oracles import assert_close, without_limits
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl import controllers, models, references, so3, testing
from geomctrl.control import FlatOutputs
from geomctrl.control.attitude import attitude_error, thrust_frame
from geomctrl.control.references import Harmonic, RestToRest
from geomctrl.errors import ArgumentError

SATELLITE, WHEELED, BODY = models.satellite(), without_limits(models.satellite(wheels=True)), models.quadrotor()
CENTRE = models.satellite().neutral()
LOOPING = FlatOutputs(
    BODY, Harmonic((0.0, 0.0, 1.0, 0.2), (0.4, 0.3, 0.3, 0.5), (0.25, 0.2, 0.15, 0.1), (0.0, 1.0, 2.0, 0.3))
)
HOVER = FlatOutputs(BODY, RestToRest(np.zeros(4), np.zeros(4), 1.0))
NEAR = {"q": [0.1] * 3 + [0.02] * 3, "v": [0.5] * 3 + [0.06] * 3}  # shares of the domain of the proof
# V does not depend on the angles of the wheels
HUB = {"q": [0.5, 0.5, 0.5, 0.0, 0.0, 0.0], "v": [0.5, 0.5, 0.5, 0.0, 0.0, 0.0]}


def turning(robot, amplitude=0.5):
    x = np.zeros(robot.nv)
    x[:3] = amplitude
    return references.Sinusoids(robot, robot.neutral(), x, 0.1, phase=0.3)


def rate(f, t, h=1e-3):
    """f'(t) by differences of order h^6."""
    return sum(w * (f(t + k * h) - f(t - k * h)) for k, w in ((1, 45.0), (2, -9.0), (3, 1.0))) / (60.0 * h)


# --- errors and frames -------------------------------------------------------------------------------------------


def test_attitude_errors_are_each_others_rates():
    rng = np.random.default_rng(0)
    for a, b, Omega, Omega_d, grows in rng.normal(size=(5, 5, 3)):

        def error(t, a=a, b=b, w=Omega, w_d=Omega_d, grows=grows):
            R, R_d = so3.exp(a) @ so3.exp(w * t), so3.exp(b) @ so3.exp(w_d * t)  # Omega is constant
            return attitude_error(R, w, R_d, w_d, 0.0 * grows)

        x = error(0.3)
        assert_close(x.e_R @ x.e_R, x.Psi * (2.0 - x.Psi), 1e-13)
        assert_close(
            x.Psi,
            0.5 * np.trace(np.eye(3) - (so3.exp(b) @ so3.exp(0.3 * Omega_d)).T @ so3.exp(a) @ so3.exp(0.3 * Omega)),
            1e-13,
            1.0,
        )
        assert_close(rate(lambda t: error(t).Psi, 0.3), x.e_R @ x.e_Omega, 1e-9, 1.0)
        assert_close(rate(lambda t: error(t).e_R, 0.3), x.e_R_rate, 1e-9, 1.0)
        assert_close(rate(lambda t: error(t).e_Omega, 0.3), -x.a_d, 1e-9, 1.0)  # Omega' = 0
        assert np.linalg.norm(x.e_R_rate) <= np.linalg.norm(x.e_Omega) + 1e-15
        other = attitude_error(so3.exp(a), Omega, so3.exp(a), Omega_d, grows)
        assert other.Psi == pytest.approx(0.0, abs=1e-15)
        assert_close(other.a_d, grows - np.cross(Omega, Omega_d), 1e-13)


def test_frames_along_a_thrust_have_its_rates():
    coefficients = (
        np.random.default_rng(1).normal(size=(2, 5, 3)) + np.array([[0.0, 0.0, 5.0], [5.0, 0.0, 0.0]])[:, None]
    )

    def rows(c, t):
        p = [np.polynomial.Polynomial(c[:, k]) for k in range(3)]
        return np.array([[(x.deriv(d) if d else x)(t) for x in p] for d in range(3)])

    def frame(t):
        return thrust_frame(rows(coefficients[0], t), rows(coefficients[1], t))

    thrust, heading = rows(coefficients[0], 0.4)[0], rows(coefficients[1], 0.4)[0]
    x = frame(0.4)
    assert_close(x.R.T @ x.R, np.eye(3), 1e-14)
    assert_close(x.R[:, 2], thrust / np.linalg.norm(thrust), 1e-14)
    assert abs(x.R[:, 1] @ heading) < 1e-13
    assert x.R[:, 0] @ heading > 0.0
    assert_close(x.R.T @ rate(lambda t: frame(t).R, 0.4), so3.hat(x.Omega), 1e-9, 1.0)
    assert_close(rate(lambda t: frame(t).Omega, 0.4), x.Omega_rate, 1e-9, 1.0)


def test_flat_outputs_make_a_motion_that_thrust_alone_follows():
    for t in (0.0, 0.7, 2.3):
        d = LOOPING(t)
        rows = LOOPING.outputs(t)
        pose = d.q.reshape(3, 4)
        assert_close(pose[:, 3], rows[0, :3], 1e-15)
        side = np.array([-np.sin(rows[0, 3]), np.cos(rows[0, 3]), 0.0])
        assert pose[:, 0] @ (np.cos(rows[0, 3]), np.sin(rows[0, 3]), 0.0) > 0.0
        assert abs(pose[:, 0] @ np.cross(side, pose[:, 2])) > 0.9
        assert_close(rate(lambda t, q=d.q: BODY.difference(q, LOOPING(t).q), t), d.v, 1e-8, 1.0)
        assert_close(rate(lambda t: LOOPING(t).v, t), d.a, 1e-8, 1.0)
        tau = BODY.inverse_dynamics(d.q, d.v, d.a)
        assert np.abs(tau[3:5]).max() < 1e-12
        assert tau[5] > 30.0


# --- attitude ----------------------------------------------------------------------------------------------------


@pytest.mark.quick(1)
@pytest.mark.parametrize("robot", [SATELLITE, WHEELED], ids=["body", "wheels"])
def test_attitude_tracking_keeps_its_promise(robot):
    law = controllers.AttitudeTracking(robot, turning(robot))
    spread = HUB if robot is WHEELED else 0.55  # three times that along a diagonal: 2.86 rad, close to pi
    testing.assert_lyapunov(law, robot, states=4, search=300, runs=1, region=spread)


def test_a_wrong_inertia_breaks_the_promise():
    heavier = SATELLITE.with_parameters(1.1 * SATELLITE.parameters)
    law = controllers.AttitudeTracking(SATELLITE, turning(SATELLITE))
    with pytest.raises(AssertionError, match="does not change as promised"):
        testing.assert_lyapunov(law, heavier, states=3, search=0, runs=0)


def test_attitude_errors_fall_as_the_proof_says():
    """|e| <= 1.6 rad, Psi <= 1.03: the rate that follows from the two matrices of the proof."""
    law = controllers.AttitudeTracking(SATELLITE, turning(SATELLITE), kR=900.0, kOmega=1500.0)
    kR, kOmega, c, least, most = law.kR, law.kOmega, law.c, 600.0, 900.0
    W = np.array([[c * kR, 0.5 * c * kOmega], [0.5 * c * kOmega, kOmega - c * most]])
    P = np.array([[kR / (2.0 - 1.03), 0.5 * c * most], [0.5 * c * most, 0.5 * most]])
    below = np.array([[0.5 * kR, -0.5 * c * most], [-0.5 * c * most, 0.5 * least]])
    assert np.linalg.eigvalsh(below)[0] > 0.0
    speed = 0.5 * np.linalg.eigvals(np.linalg.solve(P, W)).real.min()
    assert speed > 0.05
    testing.assert_exponential(law, SATELLITE, speed, search=400, runs=1, region=0.3)


def test_cross_terms_have_a_limit():
    """Just below the largest c the claimed rate and V are definite in |e_R|, |e_Omega|; a larger c is refused."""
    for kR, kOmega in ((50.0, 3000.0), (900.0, 100.0), (5000.0, 5000.0)):
        with pytest.raises(ArgumentError, match=r"c: expected a number from 0 to (.*), got 1000") as refused:
            controllers.AttitudeTracking(SATELLITE, turning(SATELLITE), kR, kOmega, c=1000.0)
        limit = float(str(refused.value).split("from 0 to ")[1].split(",")[0])
        for share in (0.999, 1.001):
            c = share * limit
            W = np.array([[c * kR, 0.5 * c * kOmega], [0.5 * c * kOmega, kOmega - c * 900.0]])
            V = np.array([[kR, -c * 900.0], [-c * 900.0, 600.0]])
            assert bool(min(np.linalg.eigvalsh(W)[0], np.linalg.det(V)) > 0.0) is (share < 1.0)


def test_a_satellite_turns_back_from_nearly_upside_down():
    """From rest at Psi = 1.99, at 1 kHz in compiled code: the run stays in the domain, and errors vanish."""
    law = controllers.AttitudeTracking(SATELLITE, references.hold(SATELLITE, CENTRE))
    q0, v0 = SATELLITE.integrate(CENTRE, np.array([2.0, 2.0, 0.86])), np.zeros(3)
    assert law.in_domain(0.0, q0, v0)
    assert not law.in_domain(0.0, q0, np.full(3, 0.5))
    run = gc.simulate(SATELLITE, law, q0, v0, 12.0, 1e-3, control_dt=1e-3, options=COMPILED)
    assert run.ok, run.summary()
    assert run.signals["Psi"][0] > 1.98
    assert np.diff(run.signals["lyapunov"]).max() <= 1e-25
    assert run.signals["Psi"][-1] < 1e-6


def test_wheels_alone_turn_the_satellite():
    """Without torque on the hub, the momentum in the world is constant while the attitude reaches its goal."""
    law = controllers.AttitudeTracking(WHEELED, turning(WHEELED))
    q0 = WHEELED.integrate(WHEELED.neutral(), np.array([0.4, -0.3, 0.5, 0.0, 0.0, 0.0]))
    v0 = np.array([0.05, -0.02, 0.03, 50.0, -80.0, 20.0])
    run = gc.simulate(WHEELED, law, q0, v0, 6.0, 5e-3, options=COMPILED)
    assert not run.tau[:, :3].any()
    h = np.array([q[:12].reshape(3, 4)[:, :3] @ WHEELED.mass_matrix(q)[:3] @ v for q, v in zip(run.q, run.v)])
    assert_close(h, np.broadcast_to(h[0], h.shape), 1e-6)
    assert run.signals["Psi"][-1] < 1e-5 * run.signals["Psi"][0]


@pytest.mark.slow
@pytest.mark.parametrize("error", [[2.8, 0.0, 0.0], [1.0, -1.5, 0.8], [0.0, 0.0, 1.57]])
def test_default_gains_leave_wheels_within_their_torque(error):
    robot = models.satellite(wheels=True)
    law = controllers.AttitudeTracking(robot, gc.references.hold(robot, robot.neutral()))
    q0 = robot.integrate(robot.neutral(), np.array([*error, 0.0, 0.0, 0.0]))
    run = gc.simulate(robot, law, q0, np.zeros(6), 1200.0, 0.5)
    largest = np.abs(run.tau).max(0) / robot.limits.effort
    assert 0.1 < largest.max() < 0.6
    assert run.ok
    assert run.signals["Psi"][-1] < 1e-2 * run.signals["Psi"][0]


def test_torques_beyond_those_of_the_wheels_are_reported():
    robot, most = models.satellite(wheels=True), 900.0  # kg m^2
    law = controllers.AttitudeTracking(robot, gc.references.hold(robot, robot.neutral()), 9.0 * most, 6.0 * most)
    q0 = robot.integrate(robot.neutral(), np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    run = gc.simulate(robot, law, q0, np.zeros(6), 0.5, 1e-2)
    assert not run.ok
    assert run.monitors["effort_limits"].worst > 1000.0 * robot.limits.effort[3]
    assert "effort_limits" in run.summary()


# --- flight ------------------------------------------------------------------------------------------------------


def test_quadrotor_tracking_keeps_its_promise():
    law = controllers.QuadrotorTracking(BODY, LOOPING)
    testing.assert_lyapunov(law, BODY, states=5, search=0, runs=1, region=NEAR)
    assert testing.exponential_rate(law, BODY, search=300, region=NEAR) > 0.0


def test_the_flight_rate_is_exact_far_outside_the_domain():
    law, rng = controllers.QuadrotorTracking(BODY, LOOPING), np.random.default_rng(4)
    for _ in range(5):
        q = BODY.integrate(LOOPING(0.5).q, rng.normal(size=6))
        result = testing.lyapunov_at(law, BODY, 0.5, q, rng.normal(size=6))
        assert result.actual == pytest.approx(result.promised, rel=1e-6, abs=1e-6 * result.value)


@pytest.mark.parametrize("gains", [(None, None, None, None), (200.0, 10.0, 2.0, 5.0), (5.0, 40.0, 30.0, 1.0)])
def test_any_gains_have_weights_with_a_definite_rate(gains):
    law = controllers.QuadrotorTracking(BODY, LOOPING, *gains, psi=0.7, reach=2.0, acceleration=3.0)
    m, most, least = 4.34, 0.1377, 0.082
    kx, kv, kR, kOmega, c1, c2, mu = law.kx, law.kv, law.kR, law.kOmega, law.c1, law.c2, law.mu
    alpha, weight = np.sqrt(0.7 * 1.3), m * (9.81 + 3.0)
    W = np.zeros((4, 4))  # in |e_x|, |e_v|, |e_R|, |e_Omega|; entries above the diagonal count twice
    W[0, 0], W[1, 1], W[0, 1] = c1 * kx * (1 - alpha), kv * (1 - alpha) - c1 * m, -c1 * kv * (1 + alpha)
    W[0, 2], W[1, 2] = -c1 * weight, -(weight + kx * 2.0)
    W[2, 2], W[3, 3], W[2, 3] = mu * c2 * kR, mu * (kOmega - c2 * most), -mu * c2 * kOmega
    assert np.linalg.eigvalsh(0.5 * (W + W.T))[0] > 0.0
    assert c1 < np.sqrt(kx / m)
    assert c2 < np.sqrt(kR * least) / most


def aimed(law, t, e_x, e_v):
    """(q, v) with these position errors, and without errors of the attitude and its rate."""
    outputs = law.reference.outputs(t)
    x, x_rate, psi = outputs[0, :3] + e_x, outputs[1, :3] + e_v, outputs[0, 3]
    q = np.hstack((np.eye(3), x[:, None])).ravel()
    A = law._flight(t, q, np.concatenate((np.zeros(3), x_rate))).A
    third = A / np.linalg.norm(A)
    second = np.cross(third, np.array([np.cos(psi), np.sin(psi), 0.0]))
    second = second / np.linalg.norm(second)
    R = np.array([np.cross(second, third), second, third]).T
    q, v = np.hstack((R, x[:, None])).ravel(), np.concatenate((np.zeros(3), R.T @ x_rate))
    v[:3] = -law._flight(t, q, v).attitude.e_Omega
    return q, v


def test_the_domain_ends_where_the_position_may_leave_its_reach():
    """V >= 1/2 (kx - c1^2 m) |e_x|^2 for e_v = -c1 e_x and no attitude error: this shows that the domain is sharp."""
    law, rng = controllers.QuadrotorTracking(BODY, LOOPING, reach=0.7, psi=0.3), np.random.default_rng(2)
    for _ in range(3):
        x = rng.normal(size=3)
        x *= 0.7 / np.linalg.norm(x)
        for share in (0.999, 1.001):
            q, v = aimed(law, 0.5, share * x, -law.c1 * share * x)
            assert law._flight(0.5, q, v).attitude.Psi < 1e-12
            assert law.in_domain(0.5, q, v) is (share < 1.0)


@pytest.mark.slow
def test_upside_down_recovery_of_the_paper():
    """Case II, 178 degrees off at rest, to hover: the attitude converges within a second, then the position."""
    law = controllers.QuadrotorTracking(BODY, HOVER)
    q0 = np.hstack((so3.exp(np.array([np.pi - 0.0314, 0.0, 0.0])), np.zeros((3, 1)))).ravel()
    assert not law.in_domain(0.0, q0, np.zeros(6))
    run = gc.simulate(BODY, law, q0, np.zeros(6), 6.0, 1e-3, control_dt=1e-3, options=COMPILED)
    assert run.success
    psi, off = run.signals["Psi"], np.linalg.norm(run.signals["e"], axis=1)
    assert psi[0] > 1.99
    assert psi[run.t >= 3.0].max() < 1e-4
    assert np.diff(psi[run.t > 1.0]).max() < 1e-6
    assert 0.5 < off.max() < 2.0
    assert off[-1] < 1e-3
    late = int(np.searchsorted(run.t, 4.0))
    assert law.in_domain(run.t[late], run.q[late], run.v[late])


class Helix:
    """The paper's case I: x_d = (0.4 t, 0.4 sin(pi t), 0.6 cos(pi t)), heading pi t."""

    def __call__(self, t):
        k = np.arange(5)
        w = np.pi**k
        out = np.zeros((5, 4))
        out[:, 1], out[:, 2] = (
            0.4 * w * np.sin(np.pi * t + 0.5 * np.pi * k),
            0.6 * w * np.cos(np.pi * t + 0.5 * np.pi * k),
        )
        out[0, 0], out[1, 0], out[0, 3], out[1, 3] = 0.4 * t, 0.4, np.pi * t, np.pi
        return out


def test_helix_of_the_paper():
    """Case I: from rest at the origin onto the helix, in compiled code."""
    law = controllers.QuadrotorTracking(BODY, FlatOutputs(BODY, Helix()))
    run = gc.simulate(BODY, law, BODY.neutral(), np.zeros(6), 5.0, 1e-3, control_dt=1e-3, options=COMPILED)
    off = np.linalg.norm(run.signals["e"], axis=1)
    assert off[0] == pytest.approx(0.6)
    assert off[-1] < 0.02
    assert run.signals["Psi"][-1] < 1e-3


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: controllers.AttitudeTracking(BODY, HOVER), "robot: expected a spherical joint, alone .* got free"),
        (
            lambda: controllers.AttitudeTracking(SATELLITE, turning(SATELLITE), kR=-1.0),
            "kR: expected a positive number",
        ),
        (lambda: controllers.AttitudeTracking(SATELLITE, 3.0), "reference: expected a function"),
        (lambda: controllers.QuadrotorTracking(SATELLITE, HOVER), "robot: expected one body on a free joint, got 'sat"),
        (
            lambda: controllers.QuadrotorTracking(BODY, turning(BODY)),
            "reference: expected a geomctrl.control.FlatOutputs",
        ),
        (lambda: controllers.QuadrotorTracking(BODY, HOVER, psi=1.0), "psi: expected a number between 0 and 1, got 1"),
        (lambda: controllers.QuadrotorTracking(BODY, HOVER, kv=0.0), "kv: expected a positive number .*, got 0"),
        (
            lambda: controllers.QuadrotorTracking(BODY, HOVER, kv=1e-300),
            "kv: expected a positive number .*, got 1e-300",
        ),
        (lambda: controllers.QuadrotorTracking(BODY, HOVER, kOmega=5e-324), "kOmega: expected a positive number"),
        (
            lambda: controllers.QuadrotorTracking(BODY, HOVER, reach=-1.0),
            "reach: expected a positive number .*, got -1",
        ),
        (
            lambda: controllers.AttitudeTracking(SATELLITE, turning(SATELLITE), None, 1e308),
            "kOmega: expected a positive number",
        ),
        (lambda: FlatOutputs(BODY, lambda t: np.zeros((5, 3))), r"outputs: expected an array \(5, 4\)"),
        (lambda: FlatOutputs(BODY, None), "outputs: expected a function"),
        (
            lambda: FlatOutputs(BODY.with_payload(1.0, (0.1, 0.0, 0.0)), HOVER.outputs),
            "robot: expected the centre of mass at the body's origin",
        ),
    ],
)
def test_bad_arguments_of_flight_and_attitude_are_named(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_wheels_must_span_space_and_be_round():
    q = np.eye(3)
    hub = gc.Body("hub", None, gc.Joint.spherical(name="s"), None, gc.inertia.from_com(10.0, np.zeros(3), q))

    def made(axes, moments=(0.02, 0.02, 0.03)):
        wheels = [
            gc.Body(f"w{i}", "hub", gc.Joint.revolute(a, name=f"w{i}"), None,
                    gc.inertia.from_com(1.0, np.zeros(3), np.diag(moments)))
            for i, a in enumerate(axes)
        ]  # fmt: skip
        return gc.Robot.build([hub, *wheels], gravity=np.zeros(3))

    for robot in (made(q[:2], (0.02, 0.02, 0.02)), made(q, (0.01, 0.02, 0.03))):
        with pytest.raises(ArgumentError, match="robot: expected wheels that are symmetric"):
            controllers.AttitudeTracking(robot, turning(robot))
    four = made([*q, np.ones(3) / np.sqrt(3.0)], (0.02, 0.02, 0.02))
    law = controllers.AttitudeTracking(four, turning(four))
    state = four.integrate(four.neutral(), 0.3 * np.arange(1.0, 8.0) / 7.0), np.arange(7.0, 0.0, -1.0) / 7.0
    x = law._attitude_error(0.2, *state)
    a = four.forward_dynamics(*state, law(0.2, *state, None).tau)
    wanted = x.a_d - np.linalg.solve(law._inertia(four, state[0]), law.kR * x.e_R + law.kOmega * x.e_Omega)
    assert_close(a[:3], wanted, 1e-9)
