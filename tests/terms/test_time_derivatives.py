"""tau and its time derivatives: against derivatives along the motion, differences and the body-fixed form."""

import math

import numpy as np
import pytest
from hypothesis import given
from oracles import assert_close, cases, force_scale, properties

from geomctrl import inertia, models, testing
from geomctrl.errors import ArgumentError
from geomctrl.papers import factored, sensitivities
from geomctrl.terms.derivatives import inverse_dynamics_rates


def motion(robot, orders=4, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), rng.normal(size=(orders, robot.nv))


def rates_scale(robot, q, rates):
    """The size of tau'' without cancellation: M and the weight times products of rates of total order four."""
    size = 1.0 + np.abs(rates).max()
    return force_scale(robot, q, 0 * rates[0], rates[0]) * size**4 + np.abs(robot.mass_matrix(q)).max() * size**4


@properties
@given(cases(floating_base=None))
def test_first_row_is_inverse_dynamics(case):
    robot, q, v, a, _ = case
    tau = inverse_dynamics_rates(robot, q, np.stack((v, a)))
    assert tau.shape == (1, robot.nv)
    assert_close(tau[0], robot.inverse_dynamics(q, v, a), 1e-12, force_scale(robot, q, v, a))


@properties
@given(cases(floating_base=None))
def test_rates_equal_the_derivatives_along_the_motion(case):
    """tau' = dq v + dv a + M a', and tau'' by another derivative along the motion."""
    robot, q, v, a, jerk = case
    snap = v[::-1] - a
    tau = inverse_dynamics_rates(robot, q, np.stack((v, a, jerk, snap)))
    d = robot.inverse_dynamics_derivatives(q, v, a)
    rate = sensitivities.inverse_dynamics_derivatives_along(robot, q, v, a, v, a, jerk)
    scale = rates_scale(robot, q, np.stack((v, a, jerk, snap)))
    assert_close(tau[1], d.dq @ v + d.dv @ a + d.da @ jerk, 1e-12, scale)
    first = d.dq @ a + d.dv @ jerk + d.da @ snap
    assert_close(tau[2], first + rate.dq @ v + rate.dv @ a + rate.da @ jerk, 1e-12, scale)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["two_link", "panda", "ur10", "scara"])
def test_rates_by_taylor_polynomials(name):
    """Along the polynomial motion with these rates every order is the derivative of the order before."""
    robot = models.load(name)
    q, v = motion(robot, 7)
    orders = np.arange(7)

    def at(t):
        powers = np.array([[t ** (k - j) / math.factorial(k - j) if k >= j else 0.0 for k in orders] for j in orders])
        x = q + sum(v[k] * t ** (k + 1) / math.factorial(k + 1) for k in orders)
        return inverse_dynamics_rates(robot, x, powers @ v)

    k, weights, h = np.arange(1, 4), np.array([45.0, -9.0, 1.0]) / 60.0, 2e-3
    slope = sum(w * (at(i * h) - at(-i * h)) for i, w in zip(k, weights)) / h
    tau = at(0.0)
    assert tau.shape == (6, robot.nv)
    for j in range(5):
        assert_close(tau[j + 1], slope[j], 1e-8)


def body_fixed(robot, q, rates):
    """tau, tau', tau'' in body frames, as in docs/reference/formulas.md."""
    ad, n = factored.ad, robot.nbodies
    v = np.asarray(rates)
    V, F, X = [None] * n, [None] * n, [None] * n
    tau = np.zeros((3, robot.nv))
    for i, (p, joint, M) in enumerate(zip(robot.parents, robot.joints, robot.placements)):
        X[i] = factored.Ad_inverse(M @ factored.joint_motion(joint.S, q[robot.q_slices[i]]))
        base = [np.zeros(6), np.concatenate((np.zeros(3), -robot.gravity)), np.zeros(6), np.zeros(6)]
        P = [X[i] @ x for x in (V[p] if p >= 0 else base)]
        s = [joint.S @ v[k, robot.v_slices[i]] for k in range(4)]
        a0, a1, a2 = (ad(s[k]) for k in range(3))
        U0 = P[0]
        U1 = P[1] - a0 @ U0
        U2 = P[2] - a0 @ P[1] - a1 @ U0 - a0 @ U1
        U3 = P[3] - 2 * a0 @ P[2] + a0 @ a0 @ P[1] - a1 @ P[1] - a2 @ U0 - 2 * a1 @ U1 - a0 @ U2
        V[i] = [U + x for U, x in zip((U0, U1, U2, U3), s)]
        J, A = inertia.spatial(robot.parameters[i]), [ad(x).T for x in V[i]]
        V0, V1, V2, V3 = V[i]
        F[i] = [
            J @ V1 - A[0] @ J @ V0,
            J @ V2 - A[1] @ J @ V0 - A[0] @ J @ V1,
            J @ V3 - A[2] @ J @ V0 - 2 * A[1] @ J @ V1 - A[0] @ J @ V2,
        ]
    for i in range(n - 1, -1, -1):
        p, s, at = robot.parents[i], robot.v_slices[i], robot.joints[i].S
        tau[:, s] = np.array(F[i]) @ at
        if p >= 0:
            a0, a1 = (ad(at @ v[k, s]).T for k in range(2))
            F0, F1, F2 = F[i]
            up = F0, F1 - a0 @ F0, F2 - 2 * a0 @ F1 - a1 @ F0 + a0 @ a0 @ F0
            F[p] = [x + X[i].T @ y for x, y in zip(F[p], up)]
    return tau + robot.armature * rates[1:4]


@properties
@given(cases(floating_base=None))
def test_rates_equal_the_body_fixed_recursion(case):
    robot, q, v, a, jerk = case
    motion = np.stack((v, a, jerk, a[::-1] - jerk))
    assert_close(
        inverse_dynamics_rates(robot, q, motion), body_fixed(robot, q, motion), 1e-12, rates_scale(robot, q, motion)
    )


def test_rates_of_gravity_alone():
    """At constant velocity of one pendulum: tau = m g c cos q, tau' = -m g c sin(q) v, and so on."""
    m, c = 2.0, 0.7
    robot = models.two_link(masses=(m, 1e-9), coms=(c, 0.0), inertias=(0.1, 1e-9), lengths=(1.0, 1e-3))
    q, v = np.array([0.4, 0.0]), np.array([1.3, 0.0])
    tau = inverse_dynamics_rates(robot, q, np.stack((v, *np.zeros((5, 2)))))[:, 0]
    k = np.arange(5)
    expected = 9.81 * (m * c + 1e-9) * v[0] ** k * np.cos(q[0] + 0.5 * np.pi * k)
    assert_close(tau, expected, 1e-8)


@pytest.mark.parametrize("lead", [(1,), (2, 3), (0,)], ids=str)
def test_batches_equal_loops(lead):
    rng = np.random.default_rng(1)
    robot = testing.random_robot(rng, ["free", "revolute", "planar", "helical"], [-1, 0, 1, 0])
    q = np.empty((*lead, robot.nq))
    for i in np.ndindex(lead):
        q[i] = robot.random_configuration(rng)
    v = rng.normal(size=(*lead, 4, robot.nv))
    tau = inverse_dynamics_rates(robot, q, v)
    assert tau.shape == (*lead, 3, robot.nv)
    for i in np.ndindex(lead):
        assert_close(tau[i], inverse_dynamics_rates(robot, q[i], v[i]), 1e-13)
    if lead:
        listed = inverse_dynamics_rates(robot, q.tolist(), v.tolist()) if tau.size else tau
        np.testing.assert_array_equal(listed, tau)


def test_a_floating_base_a_kilometre_away_keeps_its_digits():
    robot = testing.random_robot(np.random.default_rng(2), ["free", "revolute", "spherical"], [-1, 0, 1])
    q, v = motion(robot)
    far = q.copy()
    far[[3, 7, 11]] += 1000.0, -700.0, 500.0
    assert_close(inverse_dynamics_rates(robot, far, v), inverse_dynamics_rates(robot, q, v), 1e-12)


def test_bad_arguments_are_named():
    robot, q = models.two_link(), np.zeros(2)
    for bad in (np.zeros(2), np.zeros((1, 2)), 0.0):
        with pytest.raises(ArgumentError, match="rates: expected v, a and more"):
            inverse_dynamics_rates(robot, q, bad)
    with pytest.raises(ArgumentError, match=r"rates: expected shape \(..., 3, 2\), got \(3, 3\)"):
        inverse_dynamics_rates(robot, q, np.zeros((3, 3)))
    with pytest.raises(ArgumentError, match="rates: expected finite numbers, got nan"):
        inverse_dynamics_rates(robot, q, np.full((2, 2), np.nan))
    with pytest.raises(ArgumentError, match="rates: expected the leading axes of q"):
        inverse_dynamics_rates(robot, q, np.zeros((4, 2, 2)))
    with pytest.raises(ArgumentError, match="q: expected finite numbers"):
        inverse_dynamics_rates(robot, np.array([np.inf, 0.0]), np.zeros((2, 2)))
