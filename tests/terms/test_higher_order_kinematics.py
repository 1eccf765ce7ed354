"""Time derivatives and partial derivatives of twists and Jacobians, against the complex step and differences."""

import numpy as np
import pytest
from hypothesis import given
from oracles import ONE_DOF, STEP, assert_close, cases, pinocchio, properties

from geomctrl import models, testing
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.papers import factored, higher_order_kinematics

FORMS = ("body", "spatial", "hybrid", "mixed")


def six_point(function, h):
    """d/dt at 0, to order six."""
    x = {k: np.asarray(function(k * h)) for k in (-3, -2, -1, 1, 2, 3)}
    return (45.0 * (x[1] - x[-1]) - 9.0 * (x[2] - x[-2]) + x[3] - x[-3]) / (60.0 * h)


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_first_derivatives_are_those_of_kinematics(case):
    robot, q, v, a, b = case
    for name in robot.body_names:
        for form in FORMS:
            J, dJ = robot.jacobian(q, name, form), robot.jacobian_rate(q, v, name, form)
            ours = higher_order_kinematics.jacobian_derivatives(robot, q, np.stack((v, a)), name, form)
            scale = (1 + np.abs(J).max()) ** 2
            assert_close(ours[0], J, 1e-12, scale)
            assert_close(ours[1], dJ, 1e-12, scale * (1 + np.abs(v).max()) * 10)
            V = higher_order_kinematics.twist_derivatives(robot, q, np.stack((v, a, b)), name, form)
            assert_close(V[0], J @ v, 1e-12, scale * (1 + np.abs(v).max()) * 10)
            assert_close(V[1], J @ a + dJ @ v, 1e-11, scale * (1 + np.abs(v).max()) ** 2 * 100)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(2))
def test_each_derivative_is_the_rate_of_the_one_before(seed, form):
    """Along q + v t + a t^2 / 2 + ..., orders 1 to 5."""
    rng = np.random.default_rng(seed)
    robot = testing.random_robot(rng, ["revolute", "helical", "prismatic", "revolute"], [-1, 0, 1, 1 + seed])
    q, name = robot.random_configuration(rng), robot.body_names[-1]
    rates = rng.normal(size=(5, robot.nv))

    def at(t):
        powers = [t**k / np.prod(np.arange(1, k + 1)) for k in range(6)]
        x = q + sum(p * r for p, r in zip(powers[1:], rates))
        return x, np.array([sum(p * r for p, r in zip(powers, rates[k:])) for k in range(5)])

    for function in (higher_order_kinematics.twist_derivatives, higher_order_kinematics.jacobian_derivatives):
        now = function(robot, q, rates, name, form)
        rate = six_point(lambda t, f=function: f(robot, *at(t), name, form), 4e-3)
        for k in range(len(now) - 1):
            assert_close(now[k + 1], rate[k], 1e-7, max(np.abs(now).max(), 1.0))


@pytest.mark.parametrize("form", FORMS)
def test_derivatives_with_joints_of_several_degrees_of_freedom(form):
    """Along q exp(v t) at constant v."""
    rng = np.random.default_rng(4)
    robot = testing.random_robot(rng, ["free", "spherical", "planar", "cylindrical", "revolute"], [-1, 0, 1, 2, 3])
    q, v, name = robot.random_configuration(rng), 0.5 * rng.normal(size=robot.nv), robot.body_names[-1]
    rates = np.concatenate((v[None], np.zeros((3, robot.nv))))
    for function in (higher_order_kinematics.twist_derivatives, higher_order_kinematics.jacobian_derivatives):
        now = function(robot, q, rates, name, form)
        rate = six_point(lambda t, f=function: f(robot, robot.integrate(q, t * v), rates, name, form), 4e-3)
        for k in range(len(now) - 1):
            assert_close(now[k + 1], rate[k], 1e-7, max(np.abs(now).max(), 1.0))


def test_accelerations_are_pinocchios():
    robot, rng = models.panda(), np.random.default_rng(0)
    q, v, a = robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))
    theirs = pinocchio(robot)
    for name in robot.body_names:
        for form in FORMS[:3]:
            expected = theirs.jacobian(q, name, form) @ a + theirs.jacobian_rate(q, v, name, form) @ v
            twists = higher_order_kinematics.twist_derivatives(robot, q, np.stack((v, a)), name, form)
            assert_close(twists[1], expected, 1e-12, 1.0)


def test_named_derivatives_are_entries_of_the_general_ones():
    rng = np.random.default_rng(1)
    robot = testing.random_robot(rng, ["free", "revolute", "helical"])
    q, name = robot.random_configuration(rng), robot.body_names[-1]
    v, a, b = rates = rng.normal(size=(3, robot.nv))
    for form in FORMS:
        V = higher_order_kinematics.twist_derivatives(robot, q, rates, name, form)
        J = higher_order_kinematics.jacobian_derivatives(robot, q, rates, name, form)
        assert_close(higher_order_kinematics.jerk(robot, q, v, a, b, name, form), V[2], 1e-15)
        assert_close(J[0] @ b + 2 * J[1] @ a + J[2] @ v, V[2], 1e-12, 10.0)


def test_frames_far_from_the_worlds_origin_lose_no_digits():
    """A floating base a kilometre away: the hybrid derivatives do not depend on the origin of the world."""
    robot = testing.random_robot(np.random.default_rng(2), ["free", "revolute", "revolute"], [-1, 0, 1])
    rng = np.random.default_rng(3)
    q, rates = robot.random_configuration(rng), rng.normal(size=(4, robot.nv))
    far = q.copy()
    far[3:12:4] += 1000.0
    for form in ("body", "hybrid", "mixed"):
        near = higher_order_kinematics.twist_derivatives(robot, q, rates, "body2", form)
        assert_close(higher_order_kinematics.twist_derivatives(robot, far, rates, "body2", form), near, 1e-11)


@properties
@given(cases(kinds=ONE_DOF, max_bodies=4))
def test_partial_derivatives_by_the_complex_step(case):
    """Order 1 from the Jacobian of the closed form, in all four representations."""
    robot, q, v, _, _ = case
    i = robot.nbodies - 1

    def closed(x, form):
        f = factored.factors(robot, x, v)
        J, back = (f.G @ f.S)[6 * i : 6 * i + 6], (f.G @ f.P0)[6 * i : 6 * i + 6]
        one, R = np.eye(3), back[:3, :3].T
        turn = {"hybrid": np.kron(one[:2, :2], R), "mixed": np.block([[one, 0 * one], [0 * one, R]])}
        return np.linalg.solve(back, J) if form == "spatial" else turn.get(form, np.eye(6)) @ J

    for form in FORMS:
        ours = higher_order_kinematics.jacobian_partial_derivatives(robot, q, robot.body_names[i], 1, form)
        exact = [np.imag(closed(q + 1j * STEP * e, form)) / STEP for e in np.eye(robot.nv)]
        assert_close(ours, np.stack(exact, -1), 1e-12, 10.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kinds", [("revolute", "helical", "prismatic", "revolute"), ("spherical", "revolute", "planar")]
)
def test_partial_derivatives_of_any_order(kinds, form):
    """Each order is the derivative of the one before, along q exp(S_k d) for joints with several degrees of freedom."""
    rng = np.random.default_rng(0)
    robot = testing.random_robot(rng, kinds, list(range(-1, len(kinds) - 1)))
    q, name = robot.random_configuration(rng), robot.body_names[-1]
    assert_close(
        higher_order_kinematics.jacobian_partial_derivatives(robot, q, name, 0, form),
        robot.jacobian(q, name, form),
        1e-15,
    )
    for order in (1, 2, 3):
        D = higher_order_kinematics.jacobian_partial_derivatives(robot, q, name, order, form)
        assert D.shape == (6,) + (robot.nv,) * (order + 1)
        for k, e in enumerate(np.eye(robot.nv)):

            def lower(t, e=e, order=order):
                return higher_order_kinematics.jacobian_partial_derivatives(
                    robot, robot.integrate(q, t * e), name, order - 1, form
                )

            assert_close(D[..., k], six_point(lower, 1e-2), 1e-9, 1.0)


def test_partial_derivatives_on_a_tree_vanish_off_the_path():
    robot = testing.random_robot(np.random.default_rng(0), ["revolute"] * 4, [-1, 0, 0, 2])
    q = robot.random_configuration(np.random.default_rng(1))
    for form in FORMS:
        D = higher_order_kinematics.jacobian_partial_derivatives(robot, q, "body3", 2, form)
        assert np.abs(D[:, 1]).max() == np.abs(D[:, :, 1]).max() == np.abs(D[:, :, :, 1]).max() == 0.0
        assert np.abs(D).max() > 0.1


@properties
@given(cases(floating_base=None, max_bodies=6))
def test_inverse_kinematics_of_accelerations_returns_the_joints_motion(case):
    robot, q, v, a, _ = case
    VA = np.array(
        [higher_order_kinematics.twist_derivatives(robot, q, np.stack((v, a)), name) for name in robot.body_names]
    )
    result = higher_order_kinematics.joint_motion_of_bodies(robot, q, VA[:, 0], VA[:, 1])
    scale = 1.0 + np.abs(VA).max() * 10
    assert_close(result.v, v, 1e-11, scale)
    assert_close(result.a, a, 1e-11, scale * (1 + np.abs(v).max()))
    alone = higher_order_kinematics.joint_accelerations_of_bodies(robot, q, VA[:, 0], VA[:, 1])  # Remark 3
    assert_close(alone, a, 1e-11, scale * (1 + np.abs(v).max()))


def test_batches_equal_their_members():
    rng = np.random.default_rng(0)
    robot = testing.random_robot(rng, ["free", "revolute", "helical"], [-1, 0, 1])
    q = np.array([[robot.random_configuration(rng) for _ in range(3)] for _ in range(2)])
    rates, V, A = rng.normal(size=(2, 3, 3, robot.nv)), *rng.normal(size=(2, 2, 3, 3, 6))
    for form in FORMS:
        for function in (higher_order_kinematics.twist_derivatives, higher_order_kinematics.jacobian_derivatives):
            batch = function(robot, q, rates, "body2", form)
            assert_close(batch[1, 2], function(robot, q[1, 2], rates[1, 2], "body2", form), 1e-13)
    batch = higher_order_kinematics.jacobian_partial_derivatives(robot, q, "body2", 2)
    assert_close(batch[1, 2], higher_order_kinematics.jacobian_partial_derivatives(robot, q[1, 2], "body2", 2), 1e-13)
    batch, one = (
        higher_order_kinematics.joint_motion_of_bodies(robot, *x) for x in ((q, V, A), (q[1, 2], V[1, 2], A[1, 2]))
    )
    assert_close(batch.a[1, 2], one.a, 1e-12)
    batch = higher_order_kinematics.joint_accelerations_of_bodies(robot, q, V, A)
    one = higher_order_kinematics.joint_accelerations_of_bodies(robot, q[1, 2], V[1, 2], A[1, 2])
    assert_close(batch[1, 2], one, 1e-12)
    assert higher_order_kinematics.joint_motion_of_bodies(robot, q[:0], V[:0], A[:0]).a.shape == (0, 3, robot.nv)
    jerk = higher_order_kinematics.jerk(robot, q, *np.moveaxis(rates, 2, 0), "body2")
    assert_close(jerk[1, 2], higher_order_kinematics.jerk(robot, q[1, 2], *rates[1, 2], "body2"), 1e-13)


def test_arguments_are_checked():
    robot = models.two_link()
    q = np.zeros(2)
    with pytest.raises(ArgumentError, match=r"rates: expected shape \(..., K, 2\) with K >= 1"):
        higher_order_kinematics.twist_derivatives(robot, q, q, "tip")
    with pytest.raises(ArgumentError, match=r"rates: expected the leading axes of q"):
        higher_order_kinematics.twist_derivatives(robot, q, np.zeros((3, 2, 2)), "tip")
    for order in (-1, 10**30, 1.0, True):
        with pytest.raises(ArgumentError, match=f"order: expected a number of derivatives, 0 to 12, got {order}"):
            higher_order_kinematics.jacobian_partial_derivatives(robot, q, "tip", order)  # pyright: ignore
    with pytest.raises(ArgumentError, match="representation: expected one of"):
        higher_order_kinematics.jacobian_partial_derivatives(robot, q, "tip", 1, "global")
    with pytest.raises(ArgumentError, match="V: expected shape"):
        higher_order_kinematics.joint_motion_of_bodies(robot, q, np.zeros((2, 3)), np.zeros((2, 6)))
    with pytest.raises(ArgumentError, match="A: expected shape"):
        higher_order_kinematics.joint_accelerations_of_bodies(robot, q, np.zeros((2, 6)), np.zeros((3, 6)))
    with pytest.raises(ArgumentError, match="representation: expected one of"):
        higher_order_kinematics.jacobian_derivatives(robot, q, np.zeros((1, 2)), "tip", "global")
    with pytest.raises(NameNotFoundError):
        higher_order_kinematics.jerk(robot, q, q, q, q, "tipp")
