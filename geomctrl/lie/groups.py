"""Lie groups for states: Rn, SO3, SE3, SO3xR3 and their products, with one interface, `LieGroup`.

`geomctrl.so3` and `geomctrl.se3` are the instances SO3() and SE3().

Sources: Park and Chung 2005 section II; Mueller and Terze 2013 section 2, whose direct product is SO3xR3.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np

from geomctrl.arguments import checked, generator, rotation_residual
from geomctrl.compiler.kernel_traces import run
from geomctrl.kernels import se3 as se3_kernels
from geomctrl.kernels import so3 as so3_kernels
from geomctrl.kernels import so3xr3 as so3xr3_kernels
from geomctrl.kernels.primitives import KernelTypeError
from geomctrl.tracing.numbers import ARRAYS

from . import se3 as of_transforms
from . import so3 as of_rotations
from .checked_group import CheckedGroup, Rn, block_diagonal, matrix_of, over_batch, require_rotation
from .contract import LieGroup
from .product import Product

__all__ = ["SE3", "SO3", "LieGroup", "Product", "Rn", "SO3xR3"]


class MatrixGroup(CheckedGroup):
    """A group with kernels for single elements, which are tried first and reject batches and invalid arguments."""

    dim: ClassVar[int]
    shape: ClassVar[tuple[int, int]]
    kernels: ClassVar[ModuleType]

    def identity(self):
        return np.eye(self.shape[0], self.shape[1])

    def advance(self, y, x):
        if type(y) in ARRAYS and type(x) in ARRAYS:
            try:
                return run(self.kernels.advance_one, y, x)
            except (KernelTypeError, ValueError):  # the latter if numba has no type at all for an argument
                pass
        return super().advance(y, x)

    def dexp_inv_mul(self, x, y):
        if type(x) in ARRAYS and type(y) in ARRAYS:
            try:
                return run(self.kernels.dexp_inv_one, x, y)
            except (KernelTypeError, ValueError):
                pass
        return super().dexp_inv_mul(x, y)

    def _compose(self, a, b):
        return a @ b

    def _exp(self, x):
        return over_batch(self.kernels.exp_many, 1, x)

    def _dexp_inv_mul(self, x, y):
        return over_batch(self.kernels.dexp_inv_many, 1, x, y)

    def _rotation(self, x):
        return np.linalg.norm(x[..., :3], axis=-1)


@dataclass(frozen=True)
class SO3(MatrixGroup):
    """The rotation group SO(3).

    Elements are rotation matrices (..., 3, 3); algebra vectors are body-fixed rotation vectors omega (..., 3).

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import so3
    >>> R = so3.exp([0.0, 0.0, 0.3])
    >>> np.allclose(so3.log(R), [0.0, 0.0, 0.3])
    True
    """

    dim: ClassVar = 3
    shape: ClassVar = (3, 3)
    kernels: ClassVar = so3_kernels
    hat = staticmethod(of_rotations.hat)
    vee = staticmethod(of_rotations.vee)
    exp = staticmethod(of_rotations.exp)  # pyright: ignore[reportAssignmentType]
    inverse = staticmethod(of_rotations.inverse)
    log = staticmethod(of_rotations.log)
    Ad = staticmethod(of_rotations.Ad)
    ad = staticmethod(of_rotations.ad)
    dexp = staticmethod(of_rotations.dexp)
    dexp_inv = staticmethod(of_rotations.dexp_inv)

    def random(self, rng):
        """Return a uniformly distributed rotation, from the QR factors of a normal matrix."""
        Q, R = np.linalg.qr(generator("rng", rng).normal(size=(3, 3)))
        Q = Q * np.sign(np.diag(R))
        return Q if np.linalg.det(Q) > 0.0 else -Q

    def _residual(self, a):
        return rotation_residual(a)


@dataclass(frozen=True)
class SE3(MatrixGroup):
    """The group SE(3) of rigid transforms.

    Elements are transforms (..., 4, 4); algebra vectors are body-fixed twists (omega, v) (..., 6).

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import se3
    >>> T = se3.exp([0.0, 0.0, 0.3, 1.0, 0.0, 0.0])
    >>> np.allclose(T @ se3.inverse(T), np.eye(4))
    True
    """

    dim: ClassVar = 6
    shape: ClassVar = (4, 4)
    kernels: ClassVar = se3_kernels
    hat = staticmethod(of_transforms.hat)
    vee = staticmethod(of_transforms.vee)
    exp = staticmethod(of_transforms.exp)  # pyright: ignore[reportAssignmentType]
    inverse = staticmethod(of_transforms.inverse)
    log = staticmethod(of_transforms.log)
    Ad = staticmethod(of_transforms.Ad)
    ad = staticmethod(of_transforms.ad)
    dexp = staticmethod(of_transforms.dexp)
    dexp_inv = staticmethod(of_transforms.dexp_inv)
    pose_error = staticmethod(of_transforms.pose_error)

    def random(self, rng):
        return np.vstack((SO3xR3().random(rng), (0.0, 0.0, 0.0, 1.0)))

    def _residual(self, a):
        last_row = np.abs(a[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(axis=-1)
        return np.maximum(rotation_residual(a[..., :3, :3]), last_row)


@dataclass(frozen=True)
class SO3xR3(MatrixGroup):
    """The direct product of SO(3) and R^3: poses [R | p] whose rotation and position are multiplied separately.

    Elements are (..., 3, 4); algebra vectors are (omega, pdot) (..., 6) with omega body-fixed and pdot in inertial
    axes. Source: Mueller and Terze 2013 (16)-(19).

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import groups
    >>> G = groups.SO3xR3()
    >>> np.round(G.exp(np.array([0.0, 0.0, np.pi / 2, 1.0, 2.0, 3.0])), 9) + 0.0
    array([[ 0., -1.,  0.,  1.],
           [ 1.,  0.,  0.,  2.],
           [ 0.,  0.,  1.,  3.]])
    """

    dim: ClassVar = 6
    shape: ClassVar = (3, 4)
    kernels: ClassVar = so3xr3_kernels

    def inverse(self, a):
        a = checked("a", a, self.shape)
        return np.concatenate((of_rotations.inverse(a[..., :3]), -a[..., 3:]), axis=-1)

    def log(self, a):
        a = checked("a", a, self.shape)
        require_rotation("R", a[..., :3])
        return over_batch(so3xr3_kernels.log_many, 2, a)

    def Ad(self, a):
        return block_diagonal(of_rotations.Ad(checked("a", a, self.shape)[..., :3]), np.eye(3))

    def ad(self, x):
        return block_diagonal(of_rotations.ad(checked("x", x, (6,))[..., :3]), np.zeros((3, 3)))

    def dexp(self, x):
        return matrix_of(so3xr3_kernels.dexp_many, checked("x", x, (6,)))

    def dexp_inv(self, x):
        return matrix_of(so3xr3_kernels.dexp_inv_many, checked("x", x, (6,)))

    def random(self, rng):
        return np.column_stack((SO3().random(rng), rng.normal(size=3)))

    def _compose(self, a, b):
        return np.concatenate((a[..., :3] @ b[..., :3], a[..., 3:] + b[..., 3:]), axis=-1)

    def _residual(self, a):
        return rotation_residual(a[..., :3])


so3 = SO3()
se3 = SE3()
