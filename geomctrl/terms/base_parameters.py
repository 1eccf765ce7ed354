"""Base parameters: the combinations of inertial parameters that the dynamics depend on.

Two methods find them, with the same result. The numerical one is a pivoted QR of the regressor over random states
(Gautier 1990). The exact one uses only the tree, without samples (after Wensing, Niemeyer, Slotine, "A geometric
characterization of observability in inertial parameter identification", 2024). It computes, from the root outwards,

    V_i   the possible twists of body i, including gravity: the smallest space that contains X_i V_p and the joint's
          screws Phi_i and is closed under ad_Phi
    F_i   the effect of body i on joint i: the functionals phi^T I(pi) v of its parameters pi, v in V_i, phi in Phi_i
    O_i   the effect of body i on its own joint and on those before it: F_i, and the effect O_p of its parameters
          transferred to the parent, the smallest space that contains O_p T_i and is closed under A(Phi_i)
    N_i   = F_i + O_i' A(Phi_i), with O_i' = O_i without F_i: the effect of a change of body i that no constant change
          of its parent compensates

Parameters are transferred by pi_p = T_i pi_i with the joint at zero, and A(Phi) pi is the rate of the transferred
parameters as the joint moves. A change in the null space of N_i, with the opposite change of the parent, changes no
torque, and all changes without effect are combinations of these. So there are sum_i rank N_i base parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.arguments import checked, count, exactly, flag, number, without_overflow_warnings
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.mechanism.mechanism import Mechanism, require_free_joints, require_robot

from .dynamics import Form
from .regressor import regressor

SYMBOLS = ("m{0}", "m{0} c{0}x", "m{0} c{0}y", "m{0} c{0}z", "Ixx{0}", "Ixy{0}", "Iyy{0}", "Ixz{0}", "Iyz{0}", "Izz{0}")
# Order of preference of a body's parameters as names of base parameters. First moments and products of inertia come
# before masses, as in the grouped parameters of textbooks.
KEEP_FIRST = (1, 2, 9, 4, 5, 7, 8, 3, 6, 0)
TIE_TOLERANCE = 1e-12  # relative difference of remainders below which columns count as equally independent
EXACT = 1e-9  # relative singular value below which a rank of O(1) geometry counts as deficient


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters of a robot: tau = Y[:, columns] @ (projection @ pi) for every state, with as few columns as
    possible.

    Attributes
    ----------
    columns : ndarray, shape (nb,)
        Independent columns of the regressor.
    projection : ndarray, shape (nb, 10 nbodies)
        Maps full parameters to base parameters.
    """

    columns: np.ndarray
    projection: np.ndarray

    @property
    def size(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Each base parameter as a combination such as "m3 c3x + 0.4 m4", with bodies numbered from 1."""
        return combinations(self.projection, lead=self.columns)

    @without_overflow_warnings
    def lift(self, values: np.ndarray, prior: np.ndarray | None = None) -> np.ndarray:
        """Return full parameters (10 nbodies,) with these base parameters (nb,), as near to `prior` as possible.

        prior: (10 nbodies,) or (nbodies, 10); default 0.
        """
        values, size = exactly("values", values, (len(self.projection),)), self.projection.shape[1]
        x = np.zeros(size) if prior is None else checked("prior", prior, ())
        if x.shape not in ((size,), (size // 10, 10)):  # the transpose has as many numbers
            raise ArgumentError(f"prior: expected shape ({size},) or ({size // 10}, 10), got {x.shape}")
        x = x.reshape(size)
        return x + np.linalg.lstsq(self.projection, values - self.projection @ x, rcond=None)[0]

    def null_space(self) -> np.ndarray:
        """Return changes of the full parameters that change no torque, one in each column, (10 nbodies, 10 nbodies -
        nb).

        Column j increases one parameter that is not in `columns` by 1 and compensates it with those that are.
        """
        p = self.projection.shape[1]
        free = np.setdiff1d(np.arange(p), self.columns)
        null = np.zeros((p, len(free)))
        null[free, np.arange(len(free))] = 1.0
        null[self.columns] = -self.projection[:, free]
        return null


def base_parameters(
    robot: Mechanism,
    form: Form | None = None,
    samples: int | None = None,
    seed: int = 0,
    tolerance: float = 1e-9,
    *,
    exact: bool = False,
) -> BaseParameters:
    """Compute base parameters, by pivoted QR of the regressor over random states (Gautier 1990) or from the tree alone.

    Parameters
    ----------
    robot : Robot
        The robot.
    form : {"ploen", "christoffel", "adjoint"}, optional
        None (default): for inverse dynamics. Otherwise for the dynamics with reference velocity M a + C v_ref + g and
        this C, for adaptive control. The C of "ploen" and "adjoint" depend on parameters that the motion does not.
    samples : int, optional
        Number of random states.
    seed : int
        Seed of the random states. Default 0.
    tolerance : float
        Columns whose remainder is below this share of the largest are dependent. Default 1e-9.
    exact : bool
        If True, compute them from the tree, without samples or regressor (see the module); the kept columns of each
        body are chosen such that names are readable. Needs `form=None` and a robot without joints that follow others.
        Default False.

    Returns
    -------
    BaseParameters

    Examples
    --------
    >>> import geomctrl as gc
    >>> from geomctrl.identification import base_parameters
    >>> len(base_parameters(gc.models.two_link()).columns)
    6
    """
    require_robot("robot", robot)
    if flag("exact", exact):
        if form is not None or samples is not None:
            raise ArgumentError("exact: expected neither `form` nor `samples`, which the exact method does not use")
        return exact_base_parameters(robot)
    tolerance = number("tolerance", tolerance, "a number between 0 and 1", lambda x: 0.0 < x < 1.0)
    rng = np.random.default_rng(count("seed", seed))
    n = count("samples", samples) if samples is not None else 12 * robot.nbodies + 20
    if n * robot.nv < 10 * robot.nbodies:
        raise ArgumentError(
            f"samples: expected at least {-(-10 * robot.nbodies // robot.nv)} for robot {robot.name!r}, got {n}"
        )
    q = np.array([random_configuration(robot, rng) for _ in range(n)])
    v, a, v_ref = rng.normal(size=(3, n, robot.nv))
    Y = regressor(robot, q, v, a) if form is None else regressor(robot, q, v, a, v_ref, form)
    return reduce_columns(Y.reshape(-1, Y.shape[-1]), tolerance)


def reduce_columns(Y: np.ndarray, tolerance: float = 1e-9) -> BaseParameters:
    """Select independent columns of Y (rows, p) by pivoted QR, and map all parameters to theirs.

    Columns shorter than 1e-12 of the longest are rounding errors and count as zero; the others are scaled to unit
    length. A column is dependent if its remainder is below `tolerance` of the largest. Among equal remainders the last
    column is selected, independent of rounding. Coefficients with an effect below `tolerance` of such a column are set
    to zero, because remainders of this size have been neglected (angles that a model file rounds to twelve digits leave
    1e-12 of friction in a rotor's column).
    """
    from scipy.linalg import qr

    scale = np.linalg.norm(Y, axis=0)
    zero = scale <= 1e-12 * scale.max(initial=0.0)
    scale[zero] = 1.0
    scale /= 1.0 + TIE_TOLERANCE * np.arange(len(scale))
    factors: Any = qr(np.where(zero, 0.0, Y / scale), mode="r", pivoting=True)
    R, order = factors[0][: Y.shape[1]], factors[1]
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > tolerance * diagonal[0]).sum()) if diagonal[0] > 0.0 else 0
    dependent = np.linalg.solve(R[:rank, :rank], R[:rank, rank:])  # for unit columns, so independent of units
    dependent[np.abs(dependent) <= tolerance] = 0.0
    keep = np.argsort(order[:rank])
    columns = order[:rank][keep]
    projection = np.zeros((rank, Y.shape[1]))
    projection[np.arange(rank), columns] = 1.0
    projection[:, order[rank:]] = dependent[keep] * scale[order[rank:]] / scale[columns][:, None]
    return BaseParameters(columns, projection)


def exact_base_parameters(robot: Mechanism) -> BaseParameters:
    """`base_parameters(robot, exact=True)`. The kept columns of each body are those that KEEP_FIRST lists first."""
    require_free_joints("base_parameters(exact=True)", robot)
    n = robot.nbodies
    attainable, observable = [], []  # V_i (6, .), O_i (., 10), orthonormal
    null = []
    kept = np.zeros((n, 10), dtype=bool)
    for i, (p, joint, M) in enumerate(zip(robot.parents, robot.joints, robot.placements)):
        X = _Ad_inverse(M)
        start = X @ attainable[p] if p >= 0 else X @ np.concatenate((np.zeros(3), robot.gravity))[:, None]
        ads = [_ad(s) for s in joint.S.T]
        V = _closure(np.hstack((start, joint.S)), ads)
        own = np.array([_functional(s, v) for s in joint.S.T for v in V.T])
        transfer, rates = _transfer(M), [_rate(s) for s in joint.S.T]
        before = _closure((observable[p] @ transfer).T, [A.T for A in rates]).T if p >= 0 else np.zeros((0, 10))
        through = np.vstack([before @ A for A in rates]) if len(before) else np.zeros((0, 10))
        N = _row_space(np.vstack((own, through)))
        attainable.append(V)
        observable.append(_row_space(np.vstack((own, before))))
        kept[i, _independent(N)] = True
        for direction in _null_of(N, kept[i]):
            change = np.zeros((n, 10))
            change[i] = direction
            if p >= 0:
                change[p] -= transfer @ direction
            null.append(change.ravel())
    columns = np.flatnonzero(kept)
    free = np.flatnonzero(~kept)
    projection = np.zeros((len(columns), 10 * n))
    projection[np.arange(len(columns)), columns] = 1.0
    if len(free):
        K = np.array(null)  # free x all, with K[:, free] invertible: block triangular along the tree
        projection[:, free] = -np.linalg.solve(K[:, free], K[:, columns]).T
    projection[np.abs(projection) < 1e-12] = 0.0
    return BaseParameters(columns, projection)


def combinations(
    rows: np.ndarray, lead: Sequence[int] | np.ndarray = (), symbols: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Write linear combinations of parameters, such as "m3 c3x + 0.4 m4".

    lead: for each row, the parameter that is written first. symbols: names of the parameters; default: the ten of each
    body, with bodies numbered from 1.
    """
    if symbols is None:
        symbols = [s.format(i + 1) for i in range(rows.shape[1] // 10) for s in SYMBOLS]
    out = []
    for k, row in enumerate(rows):
        used = np.flatnonzero(np.abs(row) > 1e-9 * np.abs(row).max(initial=0.0)).tolist()
        if len(lead) > k:
            used = [int(lead[k]), *(j for j in used if j != lead[k])]
        text = ""
        for j in used:
            c = row[j]
            size = "" if abs(abs(c) - 1.0) < 1e-9 else f"{abs(c):.4g} "
            text += (
                (" - " if c < 0 else " + ") + size + symbols[j] if text else ("-" if c < 0 else "") + size + symbols[j]
            )
        out.append(text)
    return tuple(out)


# --- the linear maps of the recursion ---------------------------------------------------------------------------


def _hat(w):
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def _ad(s):
    w, v = _hat(s[:3]), _hat(s[3:])
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def _Ad_inverse(T):
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ _hat(p), R.T]])


def _functional(s, v):
    """The row f with f . pi = s^T J(pi) v."""
    return np.einsum("i,kij,j->k", s, inertia.spatial(np.eye(10)), v)


def _transfer(T):
    """10x10 matrix that converts parameters from frame b to frame a, T = T_ab."""
    return inertia.transform(T, np.eye(10)).T


def _rate(s):
    """10x10 matrix of P -> hat(s) P + P hat(s)^T: rates of the parameters in a fixed frame as the body moves by s."""
    H = np.zeros((4, 4))
    H[:3, :3], H[:3, 3] = _hat(s[:3]), s[3:]
    P = inertia.pseudo(np.eye(10))
    return inertia.from_pseudo(H @ P + P @ H.T).T


# --- spaces: orthonormal bases by SVD -----------------------------------------------------------------------------


def _column_space(A):
    if A.size == 0 or not A.any():
        return np.zeros((A.shape[0], 0))
    lengths = np.linalg.norm(A, axis=0)
    A = A[:, lengths > EXACT * lengths.max()]
    U, s, _ = np.linalg.svd(A / np.linalg.norm(A, axis=0), full_matrices=False)
    return U[:, s > EXACT * s[0]]


def _row_space(A):
    return _column_space(A.T).T


def _closure(A, maps):
    """The smallest space that contains the columns of A and is invariant under the maps."""
    space = _column_space(A)
    while True:
        grown = _column_space(np.hstack((space, *(m @ space for m in maps))))
        if grown.shape[1] == space.shape[1]:
            return space
        space = grown


def _independent(N):
    """Independent columns of N, as many as its rank, selected in the order of KEEP_FIRST."""
    kept: list[int] = []
    for j in KEEP_FIRST:
        trial = N[:, [*kept, j]]
        if len(trial) and np.linalg.svd(trial, compute_uv=False)[-1] > EXACT and len(kept) < len(N):
            kept.append(j)
    return sorted(kept)


def _null_of(N, kept):
    """Null vectors of N (rows); each increases one parameter that is not kept by 1."""
    free = np.flatnonzero(~kept)
    columns = np.flatnonzero(kept)
    null = np.zeros((len(free), 10))
    null[np.arange(len(free)), free] = 1.0
    if len(columns):
        null[:, columns] = -np.linalg.lstsq(N[:, columns], N[:, free], rcond=None)[0].T
    null[np.abs(null) < 1e-13] = 0.0
    return null
