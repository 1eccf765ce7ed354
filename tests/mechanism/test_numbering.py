"""Bodies keep their order if parents come first; otherwise they are renumbered, which `origin.renumbered` shows."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lib.robots import depth_first
from oracles import PINOCCHIO_KINDS, assert_close, force_scale, pinocchio, properties, rate_scale
from parts import SPHERE, body

import geomctrl as gc
from geomctrl import se3, testing
from geomctrl.papers import curvature, factored


def bodies_of(robot):
    """Return the input of `Robot.build` for the robot."""
    names = [robot.body_names[p] if p >= 0 else None for p in robot.parents]
    return [gc.Body(*x) for x in zip(robot.body_names, names, robot.joints, robot.placements, robot.parameters)]


@st.composite
def renumbered(draw, **options):
    """Return (a random robot numbered depth-first, the same robot with its bodies in another order with parents
    first, the order).
    """
    robot = draw(testing.robots(**options))
    parents, order = robot.parents, []
    while len(order) < robot.nbodies:
        free = [i for i in range(robot.nbodies) if i not in order and (parents[i] < 0 or parents[i] in order)]
        order.append(draw(st.sampled_from(free)))
    bodies = bodies_of(robot)
    first = gc.Robot.build([bodies[i] for i in depth_first(parents)])
    return first, gc.Robot.build([bodies[i] for i in order]), [robot.body_names[i] for i in order]


def coordinates(ours, theirs, slices):
    """Return the coordinates of `theirs` in the order of `ours`, matched by the names of joints."""
    return np.concatenate([np.r_[getattr(theirs, slices)[theirs.joint(name)]] for name in ours.joint_names])


@properties
@given(renumbered(kinds=PINOCCHIO_KINDS, floating_base=None), st.integers(0, 2**32 - 1))
def test_any_order_with_parents_first_is_kept_and_has_the_same_dynamics(case, seed):
    """Compare M, C, g, inverse and forward dynamics with the dense form, Pinocchio and, permuted, the other order."""
    twin, robot, names = case
    assert (robot.body_names, robot.origin.renumbered) == (tuple(names), False)
    rng = np.random.default_rng(seed)
    q, (v, a, v_ref) = robot.random_configuration(rng), rng.normal(size=(3, robot.nv))
    forces, rates = force_scale(robot, q, v, a, v_ref), rate_scale(robot, q, v)
    terms, tau = robot.terms(q, v), robot.inverse_dynamics(q, v, a, v_ref)
    theirs = pinocchio(robot)
    for M in (factored.mass_matrix(robot, q), theirs.mass_matrix(q)):
        assert_close(terms.M, M, 1e-11)
    assert_close(terms.C, factored.coriolis_matrix(robot, q, v), 1e-11, rates)
    assert_close(terms.Mdot, factored.mass_matrix_rate(robot, q, v), 1e-11, rates)
    assert_close(tau, factored.inverse_dynamics(robot, q, v, a, v_ref), 1e-11, forces)
    tau = robot.inverse_dynamics(q, v, a)
    assert_close(tau, theirs.inverse_dynamics(q, v, a), 1e-11, forces)
    inverse = 1.0 / np.linalg.eigvalsh(terms.M)[0]
    assert_close(robot.forward_dynamics(q, v, tau), theirs.forward_dynamics(q, v, tau), 1e-10, inverse * forces)

    k, K = coordinates(twin, robot, "v_slices"), coordinates(twin, robot, "q_slices")
    assert_close(robot.mass_matrix_inverse(q)[np.ix_(k, k)], twin.mass_matrix_inverse(q[K]), 1e-10, inverse)
    ours, same = (
        (*r.inverse_dynamics_derivatives(*x), curvature.christoffel_symbols(r, x[0]))
        for r, x in ((robot, (q, v, a)), (twin, (q[K], v[k], a[k])))
    )
    for x, y in zip(ours, same):
        assert_close(x[np.ix_(*[k] * x.ndim)], y, 1e-11, forces)
    order = [robot.body_names.index(name) for name in twin.body_names]
    Y = robot.regressor(q, v, a).reshape(robot.nv, -1, 10)[k][:, order].reshape(robot.nv, -1)
    assert_close(Y, twin.regressor(q[K], v[k], a[k]), 1e-11)


def test_a_body_before_one_that_it_hangs_on_brings_that_forward():
    bodies = [body("c", "b"), body("e", "a"), body("b", "a"), body("d", "b"), body("a"), body("f")]
    robot = gc.Robot.build(bodies)
    assert robot.body_names == ("a", "b", "c", "e", "d", "f")
    assert robot.parents == (-1, 0, 1, 0, 1, -1)
    assert robot.joint_names == robot.body_names
    said = "renumbered so that parents come first"
    for other in (robot, pickle.loads(pickle.dumps(robot)), robot.with_gravity((0, 0, 0)), robot.with_payload(1.0)):
        assert other.origin.renumbered
        assert said in repr(other).splitlines()[0]
    assert said not in repr(gc.Robot.build([body("a"), body("f"), body("b", "a"), body("g", "f"), body("c", "b")]))


def test_where_a_merged_link_stands_changes_no_number():
    """Its fixed parts come late in the file, and the moving bodies keep their order."""
    fixed = gc.Joint.fixed()
    bodies = [body("a"), body("c", "tool"), body("b", "a"), body("hand", "a", fixed), body("tool", "hand", fixed)]
    robot = gc.Robot.build(bodies)
    assert (robot.body_names, robot.parents, robot.origin.renumbered) == (("a", "c", "b"), (-1, 0, 0), False)


@pytest.mark.parametrize("parents", [[-1, 0, 0, 1], [-1, -1, 0, 1], [-1, 0, 3, 1], [1, -1, 0, 0]])
def test_rows_of_screws_keep_their_meaning(parents):
    """T_i(q) = T_p exp(A_i q_i) H_p^-1 H_i with q_i the coordinate of "joint{i+1}", which is row i of every array."""
    rng = np.random.default_rng(0)
    axes, points = rng.normal(size=(2, 4, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    screws, homes = np.hstack((axes, np.cross(points, axes))), np.array([se3.exp(x) for x in rng.normal(size=(4, 6))])
    inertias = np.array([(k + 1) * SPHERE for k in range(4)])
    robot = gc.Robot.from_screws(screws, homes, inertias=inertias, parents=parents)
    row = [int(name.removeprefix("link")) - 1 for name in robot.body_names]
    assert robot.joint_names == tuple(f"joint{i + 1}" for i in row)
    assert robot.origin.renumbered == (row != [0, 1, 2, 3]) == any(p > i for i, p in enumerate(parents))
    assert_close(robot.parameters, inertias[row], 1e-15)
    x = rng.normal(size=4)

    def moved(i):
        return (np.eye(4) if parents[i] < 0 else moved(parents[i])) @ se3.exp(screws[i] * x[i])

    for i in range(4):
        assert_close(robot.pose(x[row], f"link{i + 1}"), moved(i) @ homes[i], 1e-13)
