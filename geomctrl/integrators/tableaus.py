"""Coefficients of explicit Lie-group methods. Each method is one `Tableau`; a new method is one more entry here.

Families, for dy/dt = y A(t, y) (Park and Chung 2005 section IV-B; the factors multiply from the left to the right):

- "CG" Crouch-Grossman: one exponential per coefficient, y exp(h a_i1 K_1) exp(h a_i2 K_2) ...          (37)
- "CF" commutator-free: kappa exponentials of sums, y exp(h sum_j A[0, i, j] K_j) exp(h sum_j A[1, i, j] K_j) ... (39)
- "MK" Munthe-Kaas: one exponential, y exp(h sum_j a_ij F_j) with F_j = dexp^-1_{-Theta_j} K_j           (42)

On R^n all of them are the classical Runge-Kutta method with A and b summed over the exponentials.

Sources. CG2, CF2, MK2: Heun. CG3, CF3, CF4, MK3, MK4: Park and Chung 2005 tables I-III, misprints corrected.
CG4: Jackiewicz, Marthinsen and Owren 2000, at 16 digits (the paper prints rounded fractions). MK5, MK54: Dormand and
Prince 1980 with Shampine's interpolant (1986). MK6: Butcher 1964, seven stages. MK8: Cooper and Verner 1972, eleven
stages. No method of order 7 is bundled: order 8 needs only two stages more.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from geomctrl.arguments import checked, choice, count, frozen, shown, without_overflow_warnings
from geomctrl.errors import ArgumentError, NameNotFoundError

__all__ = ["Tableau", "method", "methods"]

FAMILIES = ("CG", "CF", "MK")


@dataclass(frozen=True, eq=False)
class Tableau:
    """Coefficients of an explicit method with s stages. Nested lists are accepted and stored as read-only arrays.

    Parameters
    ----------
    name : str
        Name of the method.
    family : {"CG", "CF", "MK"}
        Crouch-Grossman, commutator-free or Munthe-Kaas, see the module.
    A : array_like, shape (s, s)
        Strictly lower triangular. Family "CF": (kappa, s, s), one layer for each exponential, leftmost first.
    b : array_like, shape (s,)
        Weights, with sum 1. Family "CF": (kappa, s).
    c : array_like, shape (s,), optional
        Nodes. Default: the row sums of A.
    order : int
        Order of the method.
    b_hat : array_like, shape (s + 1,), optional
        Weights of the embedded solution of order `order - 1`. The last entry weighs the slope at the end of the step
        ("first same as last"). A tableau with b_hat is integrated with adaptive steps. Family "MK" only.
    interpolant : array_like, shape (s + 1, d), optional
        u(theta) = h sum_i F_i sum_j interpolant[i, j] theta^(j+1). Without it dense output is the cubic Hermite
        polynomial. Family "MK" only.

    Raises
    ------
    ArgumentError
        If shapes do not match, A is not strictly lower triangular, or the weights do not sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import groups, integrators
    >>> ralston = integrators.Tableau("ralston", 2, A=[[0, 0], [2 / 3, 0]], b=[1 / 4, 3 / 4])
    >>> decay = lambda t, y: -y
    >>> solution = integrators.integrate(decay, np.ones(1), (0.0, 1.0), 0.01, ralston, groups.Rn(1))
    >>> bool(abs(solution.y[-1, 0] - np.exp(-1.0)) < 1e-5)
    True
    """

    name: str
    order: int
    A: Any
    b: Any
    c: Any = None
    b_hat: Any = None
    interpolant: Any = None
    family: str = "MK"

    @without_overflow_warnings
    def __post_init__(self):
        if not isinstance(self.name, str):
            raise ArgumentError(f"name: expected a name, got {shown(self.name)}")
        choice(f"{self.name}: family", self.family, FAMILIES)
        object.__setattr__(self, "order", count(f"{self.name}: order", self.order, 1))
        A, b = _array(self, "A"), _array(self, "b")
        s = b.shape[-1] if b.ndim else 0
        layers = b.shape[:-1]
        if b.ndim != (2 if self.family == "CF" else 1) or s == 0 or A.shape != (*layers, s, s):
            wanted = "A (kappa, s, s) and b (kappa, s)" if self.family == "CF" else "A (s, s) and b (s,)"
            raise ArgumentError(f"{self.name}: A, b: expected {wanted} of {self.family}, got {A.shape} and {b.shape}")
        if np.triu(A).any():
            raise ArgumentError(f"{self.name}: A: expected a strictly lower triangular matrix (explicit), got {A}")
        if abs(b.sum() - 1.0) > 1e-12:
            raise ArgumentError(f"{self.name}: b: expected weights that sum to 1, got {b.sum()!r}")
        if self.c is None:
            object.__setattr__(self, "c", self.A_classical.sum(axis=1))
        if (c := _array(self, "c")).shape != (s,) or c[0] != 0.0:
            raise ArgumentError(f"{self.name}: c: expected shape ({s},), beginning with 0, got {c}")
        for field, ndim in (("b_hat", 1), ("interpolant", 2)):
            if getattr(self, field) is None:
                continue
            value = _array(self, field)
            if self.family != "MK" or value.ndim != ndim or len(value) != s + 1:
                wanted = "(s + 1,)" if ndim == 1 else "(s + 1, degree)"
                raise ArgumentError(
                    f"{self.name}: {field}: expected shape {wanted}, s = {s}, and family MK, got {value.shape}"
                )

    @cached_property
    def A_classical(self) -> np.ndarray:
        """Coefficients (s, s) of the Runge-Kutta method on R^n."""
        return self.A.sum(axis=0) if self.family == "CF" else self.A

    @cached_property
    def b_classical(self) -> np.ndarray:
        """Weights (s,) of the Runge-Kutta method on R^n."""
        return self.b.sum(axis=0) if self.family == "CF" else self.b

    @cached_property
    def stages(self) -> tuple:
        """s + 1 pairs (base, rows), the last one the update: Y_i = Y_base exp(h rows[0] K) exp(h rows[1] K) ...

        rows (k, i) holds only the exponentials that are not zero. base is an earlier stage with which this one shares
        its first exponentials (this saves one exponential for CF3 and CF4), or 0 for the beginning of the step.
        """
        s = self.b.shape[-1]
        A, b = self.A, self.b
        if self.family == "MK":
            A, b = A[None], b[None]
        elif self.family == "CG":
            A, b = np.einsum("ij,jk->jik", A, np.eye(s)), np.diag(b)
        layers = np.moveaxis(np.concatenate((A, b[:, None]), axis=1), 0, 1)
        factors = [[row for row in layer if row.any()] for layer in layers]
        stages = []
        for i, rows in enumerate(factors):
            shared = range(i) if self.family == "CF" or i == s else range(1)  # a Munthe-Kaas stage needs its own Theta
            base = max((k for k in shared if _begins(rows, factors[k])), key=lambda k: len(factors[k]), default=0)
            stages.append((base, np.array(rows[len(factors[base]) :]).reshape(-1, s)[:, :i]))
        return tuple(stages)


def _array(tableau, field):
    value = frozen(checked(f"{tableau.name}: {field}", getattr(tableau, field), ()))
    object.__setattr__(tableau, field, value)
    return value


def _begins(rows, head):
    return len(head) <= len(rows) and all(np.array_equal(a, b) for a, b in zip(rows, head))


def method(name: str | Tableau, argument: str = "method") -> Tableau:
    """Return the bundled tableau with this name; a Tableau is returned unchanged.

    Raises NameNotFoundError, which names the `argument`.
    """
    if isinstance(name, Tableau):
        return name
    name = str(name) if isinstance(name, str) else name  # a subclass may compare in its own way
    if not isinstance(name, str) or name not in REGISTRY:
        near = difflib.get_close_matches(name.upper(), REGISTRY, n=3) if isinstance(name, str) else []
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        expected = f"expected a Tableau or one of {', '.join(REGISTRY)}"
        raise NameNotFoundError(f"{argument}: {expected}, got {shown(name)}{hint}")
    return REGISTRY[name]


def methods() -> Mapping[str, Tableau]:
    """Return the bundled methods by name.

    Returns
    -------
    mapping of str to Tableau

    Examples
    --------
    >>> from geomctrl import integrators
    >>> integrators.methods()["MK4"].order
    4
    """
    return MappingProxyType(REGISTRY)


def _lower(*rows):
    """Strictly lower triangular matrix from its rows below the first."""
    A = np.zeros((len(rows) + 1, len(rows) + 1))
    for i, row in enumerate(rows, 1):
        A[i, : len(row)] = row
    return A


def _dormand_prince():
    A = _lower(
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    )
    b = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]
    c = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1]
    b_hat = [5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]
    interpolant = [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
    return {
        "MK5": Tableau("MK5", 5, A, b, c, interpolant=interpolant),
        "MK54": Tableau("MK54", 5, A, b, c, b_hat, interpolant),
    }


def _cooper_verner():
    r = sqrt(21.0)
    A = _lower(
        [1 / 2],
        [1 / 4, 1 / 4],
        [1 / 7, -(7 + 3 * r) / 98, (21 + 5 * r) / 49],
        [(11 + r) / 84, 0, (18 + 4 * r) / 63, (21 - r) / 252],
        [(5 + r) / 48, 0, (9 + r) / 36, -(231 - 14 * r) / 360, (63 - 7 * r) / 80],
        [(10 - r) / 42, 0, -(432 - 92 * r) / 315, (633 - 145 * r) / 90, -(504 - 115 * r) / 70, (63 - 13 * r) / 35],
        [1 / 14, 0, 0, 0, (14 - 3 * r) / 126, (13 - 3 * r) / 63, 1 / 9],
        [1 / 32, 0, 0, 0, (91 - 21 * r) / 576, 11 / 72, -(385 + 75 * r) / 1152, (63 + 13 * r) / 128],
        [1 / 14, 0, 0, 0, 1 / 9, -(733 + 147 * r) / 2205, (515 + 111 * r) / 504, -(51 + 11 * r) / 56,
         (132 + 28 * r) / 245],
        [0, 0, 0, 0, -(42 - 7 * r) / 18, -(18 - 28 * r) / 45, -(273 + 53 * r) / 72, (301 + 53 * r) / 72,
         (28 - 28 * r) / 45, (49 - 7 * r) / 18],
    )  # fmt: skip
    b = [1 / 20, 0, 0, 0, 0, 0, 0, 49 / 180, 16 / 45, 49 / 180, 1 / 20]
    c = [0, 1 / 2, 1 / 2, (7 + r) / 14, (7 + r) / 14, 1 / 2, (7 - r) / 14, (7 - r) / 14, 1 / 2, (7 + r) / 14, 1]
    return Tableau("MK8", 8, A, b, c)


REGISTRY = {
    "CG2": Tableau("CG2", 2, _lower([1]), [1 / 2, 1 / 2], family="CG"),
    "CG3": Tableau("CG3", 3, _lower([3 / 4], [119 / 216, 17 / 108]), [13 / 51, -2 / 3, 24 / 17], family="CG"),
    "CG4": Tableau(
        "CG4",
        4,
        _lower(
            [0.8177227988124852],
            [0.3199876375476427, 0.0659864263556022],
            [0.9214417194464946, 0.4997857776773573, -1.0969984448371582],
            [0.3552358559023322, 0.2390958372307326, 1.3918565724203246, -1.1092979392113465],
        ),
        [0.1370831520630755, -0.0183698531564020, 0.7397813985370780, -0.1907142565505889, 0.3322195591068374],
        family="CG",
    ),
    "CF2": Tableau("CF2", 2, [_lower([1]), _lower([0])], [[1 / 2, 0], [0, 1 / 2]], family="CF"),
    "CF3": Tableau(
        "CF3",
        3,
        [_lower([1 / 3], [0, 2 / 3]), _lower([0], [0, 0])],
        [[1 / 3, 0, 0], [-1 / 12, 0, 3 / 4]],
        family="CF",
    ),
    "CF4": Tableau(
        "CF4",
        4,
        [_lower([1 / 2], [0, 1 / 2], [1 / 2, 0, 0]), _lower([0], [0, 0], [-1 / 2, 0, 1])],
        [[1 / 4, 1 / 6, 1 / 6, -1 / 12], [-1 / 12, 1 / 6, 1 / 6, 1 / 4]],
        family="CF",
    ),
    "MK2": Tableau("MK2", 2, _lower([1]), [1 / 2, 1 / 2]),
    "MK3": Tableau("MK3", 3, _lower([1 / 3], [0, 2 / 3]), [1 / 4, 0, 3 / 4]),
    "MK4": Tableau("MK4", 4, _lower([1 / 2], [0, 1 / 2], [0, 0, 1]), [1 / 6, 1 / 3, 1 / 3, 1 / 6]),
    **_dormand_prince(),
    "MK6": Tableau(
        "MK6",
        6,
        _lower(
            [1 / 3],
            [0, 2 / 3],
            [1 / 12, 1 / 3, -1 / 12],
            [-1 / 16, 9 / 8, -3 / 16, -3 / 8],
            [0, 9 / 8, -3 / 8, -3 / 4, 1 / 2],
            [9 / 44, -9 / 11, 63 / 44, 18 / 11, 0, -16 / 11],
        ),
        [11 / 120, 0, 27 / 40, 27 / 40, -4 / 15, -4 / 15, 11 / 120],
    ),
    "MK8": _cooper_verner(),
}
