"""Named pose errors and quaternions, against scipy's rotations and the definitions in their papers."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from geomctrl import se3, so3
from geomctrl.errors import ArgumentError
from geomctrl.lie.so3 import quaternion

RNG = np.random.default_rng(0)
T, T_D = se3.exp(RNG.normal(size=(2, 4, 6))), se3.exp(RNG.normal(size=(2, 4, 6)))


def test_forms_are_those_of_the_literature():
    R, R_d, p = T[..., :3, :3], T_D[..., :3, :3], T[..., :3, 3] - T_D[..., :3, 3]
    R_e = R_d.swapaxes(-1, -2) @ R
    turn = Rotation.from_matrix(R_e.reshape(-1, 3, 3))
    theta, n = turn.magnitude()[:, None], turn.as_rotvec() / turn.magnitude()[:, None]
    for form, angle in (
        ("log", theta),
        ("geometric", np.sin(theta)),
        ("decoupled", theta),
        ("quaternion", np.sin(theta / 2)),
    ):
        e = se3.pose_error(T, T_D, form)  # pyright: ignore[reportArgumentType]
        np.testing.assert_allclose(e[..., :3].reshape(-1, 3), angle * n, atol=1e-13)
        if form in ("decoupled", "quaternion"):
            np.testing.assert_array_equal(e[..., 3:], p)
    np.testing.assert_allclose(T_D @ se3.exp(se3.pose_error(T, T_D)), T, atol=1e-13)
    np.testing.assert_allclose(
        np.einsum("...ij,...j->...i", R, se3.pose_error(T, T_D, "geometric")[..., 3:]), p, atol=1e-13
    )


def test_the_geometric_error_is_the_gradient_of_the_frobenius_norm():
    A, B, step = T[0, 0], T_D[0, 0], 1e-6
    e = se3.pose_error(A, B, "geometric")

    def potential(X):
        return 0.25 * np.linalg.norm(np.eye(3) - B[:3, :3].T @ X[:3, :3]) ** 2

    for k in range(3):
        x = step * np.eye(6)[k]
        slope = (potential(A @ se3.exp(x)) - potential(A @ se3.exp(-x))) / (2 * step)
        assert slope == pytest.approx(e[k], abs=1e-8)


@pytest.mark.parametrize("form", ["log", "geometric"])
def test_body_fixed_errors_do_not_depend_on_the_inertial_frame(form):
    moved = np.broadcast_to(se3.exp(RNG.normal(size=6)), T.shape)
    np.testing.assert_allclose(se3.pose_error(moved @ T, moved @ T_D, form), se3.pose_error(T, T_D, form), atol=1e-12)


def test_quaternions_are_scipys():
    R = so3.exp(RNG.normal(size=(50, 3)) * 2.0)
    theirs = Rotation.from_matrix(R).as_quat(canonical=True)
    np.testing.assert_allclose(quaternion(R), np.roll(theirs, 1, axis=1), atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-170, 1e-9, np.pi - 1e-9, np.pi])
def test_quaternions_at_the_identity_and_at_half_turns(angle):
    w = angle * np.array([0.6, 0.0, -0.8])
    Q = quaternion(so3.exp(w))
    assert Q[0] >= 0.0
    assert np.linalg.norm(Q) == pytest.approx(1.0, abs=1e-15)
    sign = 1.0 if Q[1] >= 0.0 else -1.0
    np.testing.assert_allclose(
        sign * Q, [sign * np.cos(angle / 2), *(np.sin(angle / 2) * np.array([0.6, 0.0, -0.8]))], atol=1e-15
    )


def test_words():
    with pytest.raises(ArgumentError, match="form"):
        se3.pose_error(T, T_D, "other")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="T_d: expected the leading axes of T"):
        se3.pose_error(T, T_D[0])
