"""`Evidence`: the data that checks share, computed once: the fit, a few hundred rows of the log, least squares on them.

The rows are spread evenly over the training data, see `rows`, and all comparisons use the same rows. They hold the
measured torques, before the torque of the known armature is subtracted, so that a trial can change signs and units.

Significance of a comparison. Residuals of a log are correlated in time: joint k has n_k = rows / correlation
independent residuals. Parameters take h_k of them, their leverage, which leaves d_k = n_k - h_k. Fits are compared by

    L = sum_k d_k log |r_k|

This is minus the logarithm of the restricted likelihood of Gaussian residuals of unknown size (Patterson and Thompson
1971), so 2 (L_0 - L_1) is about chi squared with one degree of freedom if one parameter is free in fit 1 only. Effects
that the model lacks (shape of friction, backlash, elasticity) leave residuals that are correlated longer than sensor
noise. There are then fewer independent residuals, and the same gain counts less. If the motion repeats, such effects
repeat too: a residual that is the same in every period is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.identification.estimators import Estimate
from geomctrl.identification.estimators.conditioning import correlation_factors
from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.dataset import coarseness
from geomctrl.identification.logs.parts import detected_period
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel

from .rows import Rows, cutoff_of, in_order, rows_of

# relative singular value below which a direction of the scaled base regressor is left at zero
MIN_SINGULAR_VALUE = 1e-6
MIN_RESIDUAL = 1e-6  # of a joint's torques: smaller residuals are rounding
MIN_INDEPENDENT = 2.0  # smallest number of independent residuals of a joint
MIN_CHANGE = 1e-6  # of a joint's largest torque: smaller changes are ignored
MIN_CHANGE_OF_ALL = 1e-12  # of the largest torque of all joints
MAX_COARSENESS = 0.05  # of a joint's torques: rms error of their steps


@dataclass(frozen=True, eq=False)
class Products:
    """The data that least squares need of rows: for each joint the products (nv, m, m) of its columns [Y_k of the base
    parameters, others, tau_k], and the number of rows, `counts` (nv,).
    """

    products: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray, used: np.ndarray) -> Products:
        """Products of columns (n, nv, m); `used` (n, nv) selects rows."""
        A = np.where(used[..., None], columns, 0.0).transpose(1, 2, 0)
        return cls(A @ A.transpose(0, 2, 1), used.sum(0))

    @classmethod
    def of_factors(cls, model: RegressorModel, c: Compressed) -> Products:
        """Products of a whole log."""
        columns = model.base.columns
        place = np.full(model.size, -1)
        place[columns] = np.arange(len(columns))
        out = np.zeros((len(c.factors), len(columns) + 1, len(columns) + 1))
        for k, (parameters, R) in enumerate(zip(model.active, c.factors)):
            block, kept = np.zeros((len(R), len(columns) + 1)), place[parameters] >= 0
            block[:, place[parameters][kept]], block[:, -1] = R[:, :-1][:, kept], R[:, -1]
            out[k] = block.T @ block
        return cls(out, c.counts)

    @property
    def norms(self) -> np.ndarray:
        """|tau_k| (nv,) [N m]."""
        return np.sqrt(self.products[:, -1, -1])

    def without(self, other: Products) -> Products:
        """The products of the rows that are not among the other's."""
        return Products(self.products - other.products, self.counts - other.counts)

    def solve(self, weights: np.ndarray, poor: float = MIN_SINGULAR_VALUE) -> np.ndarray:
        """x (m - 1,) of weighted least squares; components along singular values below `poor` stay near zero."""
        P, b, length = self._scaled(weights, poor)
        return np.linalg.solve(P, b) / length

    def covariance(self, weights: np.ndarray) -> np.ndarray:
        """(m - 1, m - 1): the inverse of the normal matrix."""
        P, _, length = self._scaled(weights)
        return np.linalg.inv(P) / length / length[:, None]

    def _scaled(
        self, weights: np.ndarray, poor: float = MIN_SINGULAR_VALUE
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        P = np.tensordot(weights**2, self.products, 1)
        length = np.sqrt(np.diag(P)[:-1])
        length = np.where(length > 1e-12 * length.max(initial=0.0), length, np.inf)
        return P[:-1, :-1] / length / length[:, None] + poor**2 * np.eye(len(length)), P[:-1, -1] / length, length

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """|tau_k - Y_k x| (nv,), at least the rounding error."""
        y = np.append(x, -1.0)
        squares = self.products @ y @ y
        return np.maximum(np.sqrt(np.maximum(squares, 0.0)), MIN_RESIDUAL * self.norms)


@dataclass(frozen=True, eq=False)
class FreeFit:
    """Least squares of base parameters without prior or constraints; directions not excited are left at zero.

    values (nb,), their covariance (nb, nb), which includes the correlation of residuals; residuals (nv,): |tau_k - Y_k
    x| [N m]; relative (nv,): residuals divided by |tau_k|; independent, freedom (nv,): the number of independent
    residuals of a joint, and that number minus its parameters; weights (nv,): root of freedom over residuals, 0 for
    joints without torques.
    """

    values: np.ndarray
    covariance: np.ndarray
    residuals: np.ndarray
    relative: np.ndarray
    independent: np.ndarray
    freedom: np.ndarray
    weights: np.ndarray

    def gain_over(self, other: FreeFit) -> float:
        """Reduction of the unexplained torque against another fit: sum over joints of log |r_other| / |r|."""
        live = (self.residuals > 0.0) & (other.residuals > 0.0)
        return float(np.log(other.residuals[live] / self.residuals[live]).sum())

    def evidence_over(self, other: FreeFit, order: np.ndarray | None = None, own: bool = False) -> float:
        """Gain in log likelihood over another fit: L of the module's text with the degrees of freedom of that fit, or
        with those of this fit if `own`, which are more if the other fit leaves much correlated residual.

        order (nv,): position of the joints' torques in the other fit, if they changed places.
        """
        r0, freedom = (x if order is None else x[order] for x in (other.residuals, other.freedom))
        freedom = self.freedom if own else freedom
        live = (self.residuals > 0.0) & (r0 > 0.0)
        return float((freedom[live] * np.log(r0[live] / self.residuals[live])).sum())


@dataclass(frozen=True, eq=False)
class Explanation:
    """One explanation of what is wrong with the log.

    evidence: gain in log likelihood if it is undone (`FreeFit.evidence_over`); clause: the explanation, as a clause;
    change: undoes it in any rows of the log; rows, fit: the rows with it undone, and their fit; takes_off: whether that
    removes torques, so that the residual no longer measures errors.
    """

    evidence: float
    finding: Finding
    clause: str
    rows: Rows
    fit: FreeFit
    change: Callable[[Rows], Rows]
    takes_off: bool = False


def free_fit(data: Products, independent: np.ndarray, iterations: int = 3, start: np.ndarray | None = None) -> FreeFit:
    """The maximum of L: least squares, each joint weighted by the root of its freedom over its residual."""
    norms = data.norms
    live, freedom = norms > 0.0, np.maximum(independent, MIN_INDEPENDENT)
    size = np.where(live, norms, 1.0)
    weights = np.where(live, np.sqrt(freedom) / size, 0.0) if start is None else start
    for _ in range(iterations):
        values = data.solve(weights)
        residuals = data.residuals(values)
        covariance = data.covariance(weights)
        leverage = weights**2 * np.einsum("ij,kji->k", covariance, data.products[:, :-1, :-1])
        freedom = np.maximum(independent - leverage, np.minimum(MIN_INDEPENDENT, independent))
        weights = np.where(live, np.sqrt(freedom) / np.where(live, residuals, 1.0), 0.0)
    residuals = np.where(live, residuals, 0.0)
    return FreeFit(values, data.covariance(weights), residuals, residuals / size, independent, freedom, weights)


def fit_rows(model: RegressorModel, rows: Rows, extra: np.ndarray | None = None) -> FreeFit:
    """The free fit on rows; extra (n, nv, m): columns in addition to those of the model."""
    data, Y, torques = _rows_products(model, rows, extra)
    first = free_fit(data, data.counts.astype(float))
    return free_fit(data, independent_rows(torques - Y @ first.values, rows.used, rows.repeats), start=first.weights)


def fit_rows_like(model: RegressorModel, rows: Rows, fit: FreeFit, order: np.ndarray) -> FreeFit:
    """The same with another fit's numbers of independent residuals; order: as in `FreeFit.evidence_over`."""
    data, _, _ = _rows_products(model, rows, None)
    # the likelihood has several maxima: joints that a mistake leaves unexplained have little weight and keep it
    both = [free_fit(data, fit.independent[order], start=start) for start in (fit.weights[order], None)]
    return max(both, key=lambda candidate: candidate.evidence_over(fit, order))


def _rows_products(model: RegressorModel, rows: Rows, extra: np.ndarray | None):
    Y, torques = rows.regressor(model), rows.torques(model)
    Y = Y if extra is None else np.concatenate((Y, extra), -1)
    return Products.of(np.concatenate((Y, torques[..., None]), -1), rows.used), Y, torques


def independent_rows(residuals: np.ndarray, used: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    """(nv,): the number of independent residuals (n, nv), from the sum of their autocorrelation, and from how far they
    are the same in rows that repeat each other (`Rows.repeats`)."""
    r, n = np.where(used, residuals, 0.0), used.sum(0)
    sums, counts = np.zeros((2, repeats.max(initial=0) + 1, r.shape[1]))
    np.add.at(sums, repeats, r)
    np.add.at(counts, repeats, used)
    # share of the power in the means over rows that repeat each other, and the share that noise has there
    shared = (sums**2 / np.maximum(counts, 1.0)).sum(0) / np.maximum((r**2).sum(0), 1e-300)
    by_chance = (counts > 0.0).sum(0) / np.maximum(n, 1)
    return n / correlation_factors(r) / np.maximum(shared / np.maximum(by_chance, 1e-300), 1.0)


@dataclass(frozen=True, eq=False)
class Evidence:
    """A fit and its data, as in a report. `errors` of "training" and, if there is one, "test"; `reference`: the
    estimate with a covariance; `notes` of pipeline and estimator; `boxes`: (2, 3) around the known geometry of bodies,
    by name [m]; `raw`: the log before filters, if available.
    """

    estimate: Estimate
    training: Dataset
    errors: dict[str, dict[str, Any]]
    correlation: np.ndarray
    reference: Estimate | None
    notes: dict[str, Any]
    boxes: Mapping[str, np.ndarray] = field(default_factory=dict)
    raw: Dataset | None = None

    @property
    def model(self) -> RegressorModel:
        return self.estimate.model

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.robot.dof_names

    @cached_property
    def rows(self) -> Rows:
        return self._rows(np.arange(len(self.training)))

    @cached_property
    def cutoff(self) -> float | None:
        """Cut-off of the rows [Hz], see `rows.cutoff_of`."""
        return cutoff_of(self.training, self.notes.get("cutoff", 0.0))

    @cached_property
    def period(self) -> float | None:
        """Period of a motion that repeats [s]."""
        return detected_period(self.training if self.raw is None else self.raw)

    def _rows(self, among: np.ndarray, factor: float = 1.0) -> Rows:
        """Rows among these samples; motion and torques low-passed at `cutoff` times the factor."""
        below = None if self.cutoff is None else factor * self.cutoff
        rows = rows_of(self.training, among, below, self.notes.get("cutoff", np.inf), self.period)
        return replace(rows, used=rows.used & self.is_informative)

    @cached_property
    def changes(self) -> np.ndarray:
        """(nv,): whether a joint's torques differ between rows."""
        used, tau = self.training.used, self.training.tau
        high, low = (np.where(used, tau, sign * np.inf) for sign in (-1.0, 1.0))
        size = np.abs(np.where(used, tau, 0.0)).max(axis=0, initial=0.0)
        return high.max(axis=0) - low.min(axis=0) > np.maximum(
            MIN_CHANGE * size, MIN_CHANGE_OF_ALL * size.max(initial=0.0)
        )

    @cached_property
    def is_informative(self) -> np.ndarray:
        """(nv,): whether a joint's torques change, in steps that are fine enough."""
        return self.changes if self.raw is None else self.changes & (coarseness(self.raw) <= MAX_COARSENESS)

    @cached_property
    def views(self) -> list[tuple[Rows, int]]:
        """(rows, blocks) of other views of the same log: two other splits, two other cut-offs, each half (of every
        period, if the motion repeats)."""
        n, out = len(self.training), [(self.rows, 4), (self.rows, 7)]
        if self.cutoff is not None:
            factors = [f for f in (0.6, 1.7) if f * self.cutoff < 0.45 * self.training.rate]
            out += [(self._rows(np.arange(n), f), 5) for f in factors]
        halves = np.split(in_order(self.training.t, self.period), [n // 2])
        return out + [(self._rows(np.sort(half)), 4) for half in halves]

    @cached_property
    def free(self) -> FreeFit:
        """Least squares on all rows of the training data."""
        c = self.estimate.training
        return free_fit(Products.of_factors(self.model, c), c.counts / self.correlation)
