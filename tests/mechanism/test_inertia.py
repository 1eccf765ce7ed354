"""Inertial parameters: ten numbers, 6x6 and 4x4 matrices, and physical feasibility."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import assert_close, pin_inertia, properties

from geomctrl import inertia, se3
from geomctrl.errors import ArgumentError, InertiaError
from geomctrl.testing.random_robots import random_inertia

transforms = st.integers(0, 2**32 - 1).map(lambda seed: se3.exp(np.random.default_rng(seed).normal(size=6)))
INERTIAS = st.integers(0, 2**32 - 1).map(lambda seed: random_inertia(np.random.default_rng(seed)))
ROD = inertia.from_com(1.0, (0.5, 0, 0), np.diag((0.0, 1 / 12, 1 / 12)))
POINT = inertia.from_com(2.0, (0.1, -0.2, 0.3), np.zeros((3, 3)))
DISC = inertia.from_com(1.0, (0, 0, 0), np.diag((0.25, 0.25, 0.5)))


@pytest.mark.parametrize("name", ["tensor", "com", "com_tensor", "spatial", "pseudo", "is_physical", "violation"])
def test_invalid_parameters_are_refused(name):
    """Masked arrays, complex numbers and strings are rejected and not converted."""
    function = getattr(inertia, name)
    masked = np.ma.masked_array(DISC, np.arange(10) == 0)
    for bad in (masked, DISC + 1j, DISC.astype(str), DISC > 0.0, DISC[:9], [*DISC[:9], None], "m", None, 1.0):
        with pytest.raises(ArgumentError, match="parameters: expected"):
            function(bad)
    for bad in (np.nan, -np.inf):
        spoiled = np.where(np.arange(10) == 6, bad, DISC)
        if name == "violation":  # it has its own message
            assert "not finite" in inertia.violation(spoiled)
        else:
            with pytest.raises(ArgumentError, match=r"parameters: expected finite numbers, got .* at index \[6\]"):
                function(spoiled)


def test_matrices_that_are_no_inertia_are_refused():
    with pytest.raises(ArgumentError, match="P: expected a symmetric matrix"):
        inertia.from_pseudo(inertia.pseudo(ROD) + np.eye(4, k=1))
    with pytest.raises(ArgumentError, match="I_com: expected a symmetric matrix"):
        inertia.from_com(1.0, (0, 0, 0), np.eye(3) + np.eye(3, k=1))
    for T in (2.0 * np.eye(4), np.eye(3), np.diag([1.0, 1.0, -1.0, 1.0]), np.eye(4) * 1j, "T"):
        with pytest.raises(ArgumentError, match="T: expected"):
            inertia.transform(T, ROD)
    with pytest.raises(ArgumentError, match="parameters: expected the leading axes of T"):
        inertia.transform(np.stack([np.eye(4)] * 2), np.stack([ROD] * 3))


@properties
@given(INERTIAS)
def test_spatial_inertia_is_pinocchios(pi):
    theirs = np.roll(pin_inertia(pi).matrix(), (3, 3), axis=(0, 1))
    assert_close(inertia.spatial(pi), theirs, 1e-12)


@properties
@given(INERTIAS)
def test_round_trips(pi):
    assert_close(inertia.from_pseudo(inertia.pseudo(pi)), pi, 1e-14)
    assert_close(inertia.from_com(pi[0], inertia.com(pi), inertia.com_tensor(pi)), pi, 1e-13)


@properties
@given(INERTIAS, transforms)
def test_change_of_frame_is_the_congruence_of_the_spatial_inertia(pi, T):
    X = se3.Ad(se3.inverse(T))
    assert_close(inertia.spatial(inertia.transform(T, pi)), X.T @ inertia.spatial(pi) @ X, 1e-12)
    moved = pin.SE3(T).act(pin_inertia(pi)).toDynamicParameters()
    assert_close(inertia.transform(T, pi), moved, 1e-12)
    assert_close(inertia.transform(se3.inverse(T), inertia.transform(T, pi)), pi, 1e-12)


@properties
@given(INERTIAS, transforms)
def test_pseudo_inertia_is_the_second_moment_of_the_mass(pi, T):
    """P of point masses is sum m (r, 1)(r, 1)^T; four of them can have the inertia of any body."""
    L = np.linalg.cholesky(inertia.pseudo(pi))
    rebuilt = sum(np.outer(x, x) for x in L.T)
    assert_close(inertia.from_pseudo(rebuilt), pi, 1e-13)
    mass, r = 0.7, T[:3, 3]
    point = inertia.from_com(mass, r, np.zeros((3, 3)))
    assert_close(inertia.pseudo(point), mass * np.outer([*r, 1.0], [*r, 1.0]), 1e-14)


@properties
@given(INERTIAS, INERTIAS, transforms)
def test_divergence_is_positive_and_knows_no_frame(pi, prior, T):
    D = inertia.divergence(pi, prior)
    assert D >= -1e-12
    assert_close(inertia.divergence(pi, pi), 0.0, 1e-10, 1.0)
    moved = inertia.divergence(inertia.transform(T, pi), inertia.transform(T, prior))
    assert_close(moved, D, 1e-6, 1.0)


def test_tensor_and_order_of_the_ten():
    pi = np.arange(1.0, 11.0)
    np.testing.assert_array_equal(inertia.tensor(pi), [[5, 6, 8], [6, 7, 9], [8, 9, 10]])
    J = inertia.spatial(pi)
    np.testing.assert_array_equal(J[:3, 3:], [[0, -4, 3], [4, 0, -2], [-3, 2, 0]])
    np.testing.assert_array_equal(J[3:, 3:], np.eye(3))
    assert_close(inertia.com(pi), [2.0, 3.0, 4.0], 1e-15)
    assert np.isnan(inertia.com(np.zeros(10))).all()


def test_leading_axes():
    rng = np.random.default_rng(0)
    pi = np.array([[random_inertia(rng) for _ in range(3)] for _ in range(2)])
    T = se3.exp(rng.normal(size=(2, 3, 6)))
    functions = (inertia.spatial, inertia.pseudo, inertia.tensor, inertia.com, inertia.com_tensor, inertia.is_physical)
    for i in np.ndindex(2, 3):
        for f in functions:
            np.testing.assert_array_equal(f(pi)[i], f(pi[i]))
        np.testing.assert_array_equal(inertia.transform(T, pi)[i], inertia.transform(T[i], pi[i]))
        assert_close(inertia.divergence(pi, pi[::-1])[i], inertia.divergence(pi[i], pi[::-1][i]), 1e-12)
        one = inertia.from_com(pi[i][0], inertia.com(pi[i]), inertia.com_tensor(pi[i]))
        assert_close(inertia.from_com(pi[..., 0], inertia.com(pi), inertia.com_tensor(pi))[i], one, 1e-15)


# --- physical consistency ----------------------------------------------------------------------------------------


@properties
@given(INERTIAS, transforms)
def test_bodies_are_physical_in_every_frame(pi, T):
    for body in (pi, inertia.transform(T, pi)):
        assert inertia.violation(body) is None
        assert inertia.is_physical(body, strict=True)


@pytest.mark.parametrize("pi", [ROD, POINT, DISC, np.zeros(10)], ids=["rod", "point", "disc", "nothing"])
def test_thin_bodies_are_physical_but_not_strictly(pi):
    for T in (np.eye(4), se3.exp(np.array([0.3, -0.2, 0.5, 1.0, 2.0, -3.0]))):
        body = inertia.transform(T, pi)
        assert inertia.violation(body) is None
        assert inertia.is_physical(body)
        assert not inertia.is_physical(body, strict=True)


NOT_BODIES = {
    "mass -1 is negative": [-1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1],
    "mass is zero but first moment or inertia is not": [0.0, 0, 0, 0, 1, 0, 1, 0, 0, 1],
    r"triangle inequality fails: principal moments about the centre of mass 1 \+ 1 < 3": [
        1.0,
        0,
        0,
        0,
        1,
        0,
        1,
        0,
        0,
        3,
    ],
    "principal moment of inertia about the centre of mass is negative: -0.5, 0, 1": [1.0, 1, 0, 0, 1, 0, 1, 0, 0, 0.5],
    "parameters are not finite": [1.0, np.nan, 0, 0, 1, 0, 1, 0, 0, 1],
    "parameters are so large that the inertia about the centre of mass overflows": [1.0, 1e200, 0, 0, 1, 0, 1, 0, 0, 1],
}


@pytest.mark.parametrize("message", NOT_BODIES)
def test_what_no_body_has_is_told_in_words(message):
    pi = np.array(NOT_BODIES[message])
    with pytest.raises(InertiaError, match=f"body 'forearm': .*{message}"):
        inertia.check(pi, "forearm")
    with pytest.raises(InertiaError, match=f"body 'forearm': .*{message}"):
        inertia.check_all([[1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1], pi], ["upper arm", "forearm"])
    if np.isfinite(pi).all() and pi[0] != 0.0:  # a massless inertia is a limit of physical bodies, P >= 0
        assert not inertia.is_physical(pi)


def test_positive_spatial_inertia_is_weaker_than_physical():
    pi = np.array([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 3])
    assert np.linalg.eigvalsh(inertia.spatial(pi))[0] > 0.0
    assert not inertia.is_physical(pi)


@properties
@given(INERTIAS, transforms)
def test_violation_and_eigenvalues_agree(pi, T):
    """If one principal moment about the centre of mass is scaled, the body is physical exactly while the triangle
    inequalities hold.
    """
    values, R = np.linalg.eigh(inertia.com_tensor(pi))
    for factor, physical in ((0.99, True), (1.01, False)):
        moments = np.array([values[0], values[1], factor * (values[0] + values[1])])
        body = inertia.transform(T, inertia.from_com(pi[0], inertia.com(pi), R @ np.diag(moments) @ R.T))
        assert inertia.is_physical(body) == physical
        assert (inertia.violation(body) is None) == physical


@pytest.mark.parametrize("case", ["rod", "rod as prior", "negative", "negative prior"])
def test_divergence_refuses_what_is_not_strictly_physical(case):
    pi = random_inertia(np.random.default_rng(0))
    other = ROD if case.startswith("rod") else -pi
    pair = (pi, other) if case.endswith("prior") else (other, pi)
    with pytest.raises(InertiaError, match="the pseudo-inertia is not positive definite"):
        inertia.divergence(*pair)


def test_shapes_are_checked():
    for f in (inertia.spatial, inertia.pseudo, inertia.tensor, inertia.com, inertia.com_tensor, inertia.is_physical):
        with pytest.raises(ArgumentError, match=r"parameters: expected shape \(..., 10\), got \(9,\)"):
            f(np.zeros(9))
    with pytest.raises(ArgumentError, match=r"com: expected shape \(..., 3\)"):
        inertia.from_com(1.0, (0, 0), np.eye(3))
    with pytest.raises(ArgumentError, match="I_com: expected a symmetric matrix"):
        inertia.from_com(1.0, (0, 0, 0), np.triu(np.ones((3, 3))))
