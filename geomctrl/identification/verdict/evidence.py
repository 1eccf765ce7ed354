"""What the checks look at, worked out once: the fit, a few hundred rows of the log, least squares on them.

The rows are spread evenly over the training data. Their torques are low-passed as the estimator sees them, their
regressor is not: whatever is compared is compared on the same rows. They hold the torques that were measured, so that a
trial can change signs and units where they are wrong: before the known armature's share is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.identification.compressed import Compressed, Factors
from geomctrl.identification.data import Dataset
from geomctrl.identification.doubts import Doubt
from geomctrl.identification.estimators import Estimate
from geomctrl.identification.model import RegressorModel

ROWS = 500  # at most
POOR = 1e-6  # relative singular value below which a direction of the scaled base regressor is left at zero
LEAST = 1e-9  # of a joint's torques: a residual below it is rounding


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a log: t (n,), q (n, nq), v, a, tau (n, nv), and which torques are used (n, nv)."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    used: np.ndarray

    def torques(self, model: RegressorModel) -> np.ndarray:
        """What the model's columns are to explain (n, nv): less what the known armature takes."""
        return self.tau - self.a * model.known_armature

    def factors(self, model: RegressorModel) -> Compressed:
        """Triangular factors of the model's regressor on these rows."""
        out = Factors(model)
        out.add(model.blocks(self.q, self.v, self.a), self.torques(model), self.used)
        return out.result()

    def with_motion(self, T: np.ndarray) -> Rows:
        """With joint coordinates T q, T (nv, nv)."""
        return replace(self, q=self.q @ T.T, v=self.v @ T.T, a=self.a @ T.T)

    def with_torques(self, T: np.ndarray) -> Rows:
        """With torques T tau; used where all that they are made of is."""
        used = ~((~self.used).astype(float) @ (T != 0.0).T > 0.0)
        return replace(self, tau=self.tau @ T.T, used=used)


@dataclass(frozen=True, eq=False)
class FreeFit:
    """Weighted least squares of base parameters without prior or constraints; directions not excited are left at zero.

    values (nb,), covariance (nb, nb) for white residuals; residuals (nv,): |tau_k - Y_k x| [N m]; weights (nv,): one
    over each joint's root mean square residual; relative (nv,): |tau_k - Y_k x| / |tau_k|.
    """

    values: np.ndarray
    covariance: np.ndarray
    residuals: np.ndarray
    weights: np.ndarray
    relative: np.ndarray

    def gain_over(self, other: FreeFit) -> float:
        """By how much less torque is left unexplained than by another fit: the sum over joints of log |r_other| / |r|.

        It is the gain in the likelihood of Gaussian residuals of unknown size, a row.
        """
        live = (self.residuals > 0.0) & (other.residuals > 0.0)
        return float(np.log(other.residuals[live] / self.residuals[live]).sum())


@dataclass(frozen=True, eq=False)
class Mistake:
    """Something wrong with the log: how much better it is explained without (`FreeFit.gain_over`), the doubt, and the
    rows with it undone, with their fit.
    """

    gain: float
    doubt: Doubt
    rows: Rows
    fit: FreeFit


def base_blocks(model: RegressorModel, c: Compressed) -> list[np.ndarray]:
    """Per joint the factor of [Y_k tau_k] with the columns of the base parameters alone."""
    columns = model.base.columns
    place = np.full(model.size, -1)
    place[columns] = np.arange(len(columns))
    blocks = []
    for at, R in zip(model.active, c.factors):
        block, kept = np.zeros((len(R), len(columns) + 1)), place[at] >= 0
        block[:, place[at][kept]], block[:, -1] = R[:, :-1][:, kept], R[:, -1]
        blocks.append(block)
    return blocks


def free_fit(model: RegressorModel, c: Compressed, iterations: int = 3) -> FreeFit:
    """Least squares, each joint weighted by one over its residual."""
    blocks, counts, norms = base_blocks(model, c), np.maximum(c.counts, 1), c.norms
    live = norms > 0.0
    size = np.where(live, norms, 1.0)
    weights = np.where(live, np.sqrt(counts) / size, 0.0)
    for _ in range(iterations):
        A = np.vstack([w * block for w, block in zip(weights, blocks)])
        values, half = least_squares(A[:, :-1], A[:, -1])
        residuals = np.array([np.linalg.norm(block[:, :-1] @ values - block[:, -1]) for block in blocks])
        residuals = np.where(live, np.maximum(residuals, LEAST * size), 0.0)
        weights = np.where(live, np.sqrt(counts) / np.where(live, residuals, 1.0), 0.0)
    return FreeFit(values, half @ half.T, residuals, weights, residuals / size)


def least_squares(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x, H): the least squares solution of A x = b, and H with (A^T A)^+ = H H^T; columns at unit length, directions
    below POOR left out."""
    length = np.linalg.norm(A, axis=0)
    length = np.where(length > 1e-12 * length.max(initial=0.0), length, np.inf)
    U, s, Vt = np.linalg.svd(A / length, full_matrices=False)
    inverse = np.where(s > POOR * s[0], 1.0 / np.maximum(s, 1e-300), 0.0)
    return Vt.T @ (inverse * (U.T @ b)) / length, Vt.T * inverse / length[:, None]


@dataclass(frozen=True, eq=False)
class Evidence:
    """A fit and its data, as a report holds them: `fitted` (t, tau, predicted, mask) of the training data, `errors` of
    "training" and maybe "test", `reference`: the estimate with a covariance, `notes` of pipeline and estimator.
    """

    estimate: Estimate
    training: Dataset
    fitted: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    errors: dict[str, dict[str, Any]]
    correlation: np.ndarray
    reference: Estimate | None
    notes: dict[str, Any]

    @property
    def model(self) -> RegressorModel:
        return self.estimate.model

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.robot.dof_names

    @cached_property
    def rows(self) -> Rows:
        at = self.model.rows(self.training)
        some = np.unique(np.linspace(0, len(at) - 1, min(len(at), ROWS)).astype(int))
        t, tau, _, mask = (x[some] for x in self.fitted)
        q, v, a = (np.array(np.asarray(x)[at[some]]) for x in (self.training.q, self.training.v, self.training.a))
        return Rows(t, q, v, a, tau, mask)

    @cached_property
    def free(self) -> FreeFit:
        """Least squares on all rows of the training data."""
        return free_fit(self.model, self.estimate.training)

    @property
    def inflation(self) -> float:
        """By how much correlated residuals inflate a variance on `rows`: less than on the log where these are fewer."""
        thinning = self.estimate.training.counts.max() / max(len(self.rows.t), 1)
        return max(1.0, float(np.mean(self.correlation)) / max(thinning, 1.0))
