"""Dynamic regressor extension and mixing (DREM): each parameter is estimated from its own scalar regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.control.contracts import Reference
from geomctrl.controllers._filtered_regression import FilteredAdaptation, RememberingAdaptation
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

MAX_PARAMETERS = 12  # a larger determinant consists of rounding errors
MIN_DETERMINANT = 1e-9  # relative to the largest possible determinant; smaller ones are rounding errors


class DREM(RememberingAdaptation):
    """Adaptive tracking with DREM: p_i' = -(Gamma Y^T s)_i - weight (Delta p_i - Y_i) / (Delta + A_ii).

    Parameters
    ----------
    weight : float
        Rate of convergence of an identifiable parameter [1/s].
    forgetting : float
        Rate at which old data are forgotten [1/s].
    bandwidth : float
        Bandwidth of the filters [1/s].
    robot, reference, Lambda, K, **options
        As for `SlotineLi`.
    adapt : "links", "base" or list of str
        As for `SlotineLi`, at most 12 parameters. Default "base"; otherwise name a body.
    Gamma : float or (n,)
        Adaptation gain; it is diagonal here.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot,
        or if more than 12 parameters are adapted.
    NameNotFoundError
        If the robot has no body of a given name.

    Notes
    -----
    (Aranovskiy, Bobtsov, Ortega and Pyrkin 2017, with Kreisselmeier's extension.) Phi and eta are the record of
    `ConcurrentLearning`, in parameters divided by the square roots of Gamma. With A = adj Phi, Delta = det Phi and
    Y = A eta, Delta p_true_i = Y_i is a scalar regression for each parameter. The normalisation
    mu_i = Delta / (Delta + A_ii) = 1 / (1 + (Phi^-1)_ii) makes p_i converge at the rate `weight`, monotonically except
    for s. With D, delta and V of `ConcurrentLearning`, n parameters, x_i = p_i - p_true_i in the norm of Gamma^-1, and
    a weight in V that is n times this one,

    V' = - s . K s - weight sum x_i (Delta p_i - Y_i) / (Delta + A_ii) - weight n D
      <= - s . K s - weight / 2 (sum mu_i x_i^2 + n D).

    If the parameters are not all identifiable, Delta is zero and nothing is learnt from the record. The torque is that
    of `SlotineLi`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.DREM(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {
        **FilteredAdaptation.GAINS,
        "weight": "1/s, weight of the record",
        "forgetting": "1/s, rate of the record",
    }

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        adapt: str | Sequence[str] = "base",
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, adapt=adapt, **options)
        if self.minus_gamma is None:
            raise ArgumentError(
                "Gamma: expected a number or one per parameter, got a matrix: each parameter is adapted separately"
            )
        if len(self.p0) > MAX_PARAMETERS:
            raise ArgumentError(
                f"adapt: expected at most {MAX_PARAMETERS} parameters, got {len(self.p0)}: name the bodies that are"
                " unknown"
            )
        self.unit = np.sqrt(np.diag(self.Gamma))

    def _pull(self, p, Phi, eta):
        Phi = self.unit[:, None] * Phi * self.unit
        A, Delta = adjugate(Phi)
        mixed = Delta * p / self.unit - A.dot(self.unit * eta)
        n = len(self.unit)
        largest = (np.trace(Phi) / n + 1.0) ** n
        return self.weight * self.unit * mixed / (Delta + np.maximum(np.diag(A), 0.0) + MIN_DETERMINANT * largest)

    def _bound(self) -> float:
        return self.weight * len(self.p0)


def adjugate(A):
    """(adj A, det A) of a square matrix by Faddeev and LeVerrier, which avoids division by a determinant near zero."""
    n, one = len(A), np.eye(len(A))
    M, c = one, 1.0
    for k in range(1, n):
        AM = A.dot(M)
        M = AM - np.trace(AM) / k * one
    AM = A.dot(M)
    c = np.trace(AM) / n
    sign = -1.0 if n % 2 == 0 else 1.0
    return sign * M, sign * c
