"""Bounds of tracking errors from a V that vanishes wherever w = e' + Lambda e does, such as 1/2 w . M w.

|w_i| <= sigma_i sqrt(2 V) with sigma_i^2 = max (M^-1)_ii, which linear matrix inequalities bound for all angles and
parameters. With r_i the bound of |w_i| and C = Lambda_ii on the diagonal and - |Lambda_ij| elsewhere, the box |e| <= E
is invariant if C E > r, because there |e_i|' <= r_i - (C E)_i. If |w| <= r in the limit, then |e| <= C^-1 r in the
limit (comparison lemma; C is an M-matrix, as C E > 0 for an E > 0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomctrl.robot import Robot
from geomctrl.terms.bounding.inertia_extremes import inverse_diagonal as largest_inverses
from geomctrl.terms.bounding.quantities import bodies_of
from geomctrl.terms.bounding.reach import Reach
from geomctrl.terms.dynamics import mass_matrix

from .equations import Equations
from .forms import comparison, inverse_diagonal
from .quadratic import Boxes, inputs, positions

MARGIN = 1e-9  # relative: covers rounding, and makes inequalities strict


@dataclass(frozen=True)
class SlidingBounds:
    """Bounds of w, e and z where V <= level: r = sigma sqrt(2 level), |e| <= shape sqrt(2 level), likewise for z."""

    sigma: np.ndarray
    shape: np.ndarray
    estimates: np.ndarray

    def errors(self, level: float) -> np.ndarray:
        """The bounds (nv,) of |e|."""
        return self.shape * np.sqrt(2.0 * level) * (1.0 + MARGIN)

    def level(self, half: np.ndarray) -> float:
        """The largest level at which (e, w, z) is in the box with these half widths."""
        sizes = np.concatenate([self.errors(0.5), self.sigma, self.estimates])
        return 0.5 * float((half / sizes).min()) ** 2 * (1.0 - MARGIN)


def sliding_bounds(e: Equations, squares: np.ndarray) -> SlidingBounds | None:
    """The bounds from those of (M^-1)_ii (nv,); None if none are found."""
    C, estimates = None if e.gain is None else comparison(e.gain), inverse_diagonal(*e.weights)
    if C is None or estimates is None or not np.isfinite(squares).all():
        return None
    sigma = np.sqrt(squares) * (1.0 + MARGIN)
    shape = np.linalg.solve(C, sigma) * (1.0 + MARGIN)
    estimates = np.sqrt(estimates) * (1.0 + MARGIN)
    return SlidingBounds(sigma, shape, estimates) if (shape > 0.0).all() and (C @ shape > sigma).all() else None


def inverse_masses(e: Equations, box: Boxes, robot: Robot) -> np.ndarray:
    """Upper bounds (nv,) of the diagonal of M^-1 for all angles, slides within the box, and parameters.

    M = A^T M_tree A is not below A^T (t u u^T) A if t u u^T <= M_tree, the matrix of the tree without couplings A.
    """
    tree, A = robot.coupling.tree, robot.coupling.matrix
    low, high = (x[0] for x in positions(e, box, inputs(e, box, box.lo, box.hi)))
    middle = robot.coupling.tree_configuration(0.5 * (low + high))
    reach = np.abs(A) @ (0.5 * (high - low)) * (1.0 + MARGIN) + MARGIN
    lo, hi = (x[0, e.robots].reshape(-1, 10) for x in (box.p_lo, box.p_hi))
    off = MARGIN * 1e-3 * np.abs([lo, hi]).max(0) * (lo < hi)
    bodies, size = bodies_of(tree, (lo - off, hi + off)), float(np.trace(mass_matrix(tree, middle)))
    squares = largest_inverses(tree, bodies, Reach(tree, middle - reach, middle + reach), size)
    return np.array([squares[(own == A).all(1)].min() for own in np.eye(e.n)])
