"""One body's equations, separately and about its centre of mass, against derivatives of the motion of that point."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from oracles import assert_close, cases, properties

import geomctrl as gc
from geomctrl import inertia, se3, so3
from geomctrl.errors import ArgumentError
from geomctrl.papers import one_body, representations
from geomctrl.testing.random_robots import random_inertia

LOCAL = ("body", "hybrid", "mixed")
AXES = so3.exp(np.array([0.4, -1.1, 0.7]))


def motion(robot, q, v, a, name, form):
    J = robot.jacobian(q, name, form)
    return robot.pose(q, name), J @ v, J @ a + robot.jacobian_rate(q, v, name, form) @ v


def size(robot, v, a):
    return 100.0 * robot.nv * (1.0 + np.abs(v).max() ** 2 + np.abs(a).max()) * robot.parameters[:, 0].max()


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_the_centre_of_mass_moves_as_a_frame_there(case):
    """(40): a robot with a frame at every centre of mass has its Jacobians."""
    robot, q, v, a, _ = case
    for i, name in enumerate(robot.body_names):
        S = one_body.com_frame(robot.parameters[i], AXES)
        framed = replace(robot, frames=(*robot.frames, gc.Frame("com", i, S)))
        for form in LOCAL:
            ours = one_body.motion_of_com(robot.parameters[i], *motion(robot, q, v, a, name, form), form, AXES)
            for x, y in zip(ours, motion(framed, q, v, a, "com", form)):
                assert_close(x, y, 1e-12, size(robot, v, a))


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_all_forms_of_the_equations_are_one_wrench(case):
    """(41)-(58), separately or together, about the frame's origin or the centre of mass, for a wrench from (41)."""
    robot, q, v, a, _ = case
    for i, name in enumerate(robot.body_names):
        pi = robot.parameters[i]
        T, V, A = motion(robot, q, v, a, name, "body")
        M = inertia.spatial(pi)
        W = M @ A - se3.ad(V).T @ M @ V  # (41)
        S = one_body.com_frame(pi, AXES)
        for form in LOCAL:
            T, V, A = motion(robot, q, v, a, name, form)
            given_W = representations.convert_wrench(T, W, "body", form)
            assert_close(
                np.concatenate(one_body.newton_and_euler(pi, T, V, A, form)), given_W, 1e-12, size(robot, v, a)
            )
            about_com = one_body.wrench_about_com(pi, T, given_W, form, AXES)
            T_c, V_c, A_c = one_body.motion_of_com(pi, T, V, A, form, AXES)
            apart = one_body.newton_and_euler_at_com(pi, T, V_c, A_c, form, AXES)
            assert_close(np.concatenate(apart), about_com, 1e-12, size(robot, v, a))
            there = inertia.transform(se3.inverse(S), pi)  # the same body described in the frame at its centre of mass
            whole = representations.newton_euler(there, T_c, V_c, A_c, form)  # (44), (48)
            assert_close(whole, about_com, 1e-12, size(robot, v, a))
            assert_close(about_com @ V_c, given_W @ V, 1e-11, size(robot, v, a) * (1.0 + np.abs(v).max()))


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_mass_matrices_at_the_centre_of_mass_and_from_it(case):
    """(39), (40), (47), (51), and the kinetic energy from either."""
    robot, q, v, a, _ = case
    for i, name in enumerate(robot.body_names):
        pi = robot.parameters[i]
        for form in LOCAL:
            T, V, A = motion(robot, q, v, a, name, form)
            M_c = one_body.mass_matrix_at_com(pi, T, form, AXES)
            assert not M_c[:3, 3:].any()
            M = representations.convert_inertia(T, inertia.spatial(pi), "body", form)
            assert_close(one_body.mass_matrix_from_com(pi, T, form, AXES), M, 1e-13, 1.0)
            V_c = one_body.motion_of_com(pi, T, V, A, form, AXES).V
            assert_close(V_c @ M_c @ V_c, V @ M @ V, 1e-12, size(robot, v, a))


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_rates_of_mass_matrices_and_remark_2(case):
    """Mdot along the motion by differences; Mdot - 2C is skew in the spatial representation."""
    robot, q, v, a, _ = case
    for i, name in enumerate(robot.body_names):
        pi = robot.parameters[i]
        for form in (*LOCAL, "spatial"):
            T, V, A = motion(robot, q, v, a, name, form)
            M = representations.convert_inertia(T, inertia.spatial(pi), "body", form)
            C = representations.coriolis_matrix_of_body(pi, T, V, form)
            rate = representations.mass_matrix_rate_of_body(pi, T, V, form)
            assert_close(M @ A + C @ V, representations.newton_euler(pi, T, V, A, form), 1e-13, size(robot, v, a))
            V_b = representations.convert_twist(T, V, form, "body")

            def moved(t, T=T, V_b=V_b, pi=pi, form=form):
                return representations.convert_inertia(T @ se3.exp(t * V_b), inertia.spatial(pi), "body", form)

            h, scale = 1e-3 / (1.0 + np.abs(V_b).max()), np.abs(M).max() * (1.0 + np.abs(V).max())
            numeric = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
            assert_close(rate, numeric, 1e-8, scale)
            if form == "spatial":
                assert_close(rate - 2.0 * C, 2.0 * C.T - rate.T, 1e-13, scale)


def test_remark_2_holds_in_the_spatial_representation_only():
    rng = np.random.default_rng(0)
    pi, T, V = random_inertia(rng), se3.exp(rng.normal(size=6)), rng.normal(size=6)
    for form in LOCAL:
        rate = representations.mass_matrix_rate_of_body(pi, T, V, form)
        N = rate - 2.0 * representations.coriolis_matrix_of_body(pi, T, V, form)
        assert np.abs(N + N.T).max() > 0.01 * np.abs(N).max()


def test_batches_equal_their_members():
    rng = np.random.default_rng(0)
    pi = np.array([[random_inertia(rng) for _ in range(3)] for _ in range(2)])
    T, axes = se3.exp(rng.normal(size=(2, 3, 6))), so3.exp(rng.normal(size=(2, 3, 3)))
    V, A = rng.normal(size=(2, 2, 3, 6))
    for form in LOCAL:
        for x in (axes, AXES):
            here = x if x.ndim == 2 else x[1, 2]
            assert_close(one_body.com_frame(pi, x)[1, 2], one_body.com_frame(pi[1, 2], here), 1e-14)
            for f in (one_body.motion_of_com, one_body.newton_and_euler_at_com):
                for many, one in zip(f(pi, T, V, A, form, x), f(pi[1, 2], T[1, 2], V[1, 2], A[1, 2], form, here)):
                    assert_close(many[1, 2], one, 1e-13)
            for f in (one_body.mass_matrix_at_com, one_body.mass_matrix_from_com):
                assert_close(f(pi, T, form, x)[1, 2], f(pi[1, 2], T[1, 2], form, here), 1e-13)
        for f in (representations.coriolis_matrix_of_body, representations.mass_matrix_rate_of_body):
            assert_close(f(pi, T, V, form)[1, 2], f(pi[1, 2], T[1, 2], V[1, 2], form), 1e-13)


def test_arguments_are_checked():
    pi, T, V = inertia.from_com(1.0, np.ones(3), np.eye(3)), np.eye(4), np.zeros(6)
    with pytest.raises(ArgumentError, match="representation: expected one of 'body', 'hybrid', 'mixed', got 'spatial'"):
        one_body.newton_and_euler_at_com(pi, T, V, V, "spatial")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="representation: expected one of"):
        representations.coriolis_matrix_of_body(pi, T, V, "local")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="parameters: expected a body with mass, got none"):
        one_body.com_frame(np.zeros(10))
    with pytest.raises(ArgumentError, match="axes: expected a rotation"):
        one_body.com_frame(pi, 2.0 * np.eye(3))
    with pytest.raises(ArgumentError, match="axes: expected shape"):
        one_body.com_frame(pi, np.tile(np.eye(3), (4, 1, 1)))
    with pytest.raises(ArgumentError, match="V_c: expected shape"):
        one_body.newton_and_euler_at_com(pi, T, np.zeros(5), V)
    with pytest.raises(ArgumentError, match="A: expected finite numbers, got nan"):
        one_body.motion_of_com(pi, T, V, np.full(6, np.nan))
