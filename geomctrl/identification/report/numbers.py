"""Numbers of an identification report: errors, intervals, and what the log does not determine.

Errors of moving and of resting joints are reported separately, because at rest friction balances any load and no
friction curve describes it. Static friction is bounded, not determined: up to the Coulomb friction and curves of
motion, possibly more. A torque at rest counts as explained if a friction torque within this bound accounts for what the
rest of the model leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.identification.assessment import Assessment, Evidence, assess
from geomctrl.identification.estimators import Estimate, named
from geomctrl.identification.estimators.conditioning import autocorrelation, correlation_factor
from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset, filters
from geomctrl.identification.logs.signals import at_rest
from geomctrl.identification.model.compressed import Compressed

from .identifiability import NonInertialParameter, OpenCombination, exchanges, non_inertial_parameters
from .provenance import Provenance


def moving_and_resting(estimate: Estimate, data: Dataset) -> dict[str, float]:
    """Errors of a log at the used rows at which joints move, and at which they rest (`logs.signals.at_rest`).

    moving_rmse, resting_rmse [N m]; moving_error, resting_error (relative); nan without such rows. resting_share: share
    of resting rows; resting_within: share of these that static friction explains; resting_beyond: relative error of
    resting rows that static friction can not explain.
    """
    model, rests = estimate.model, at_rest(data)
    frictionless, band = _without_static(estimate)
    squares, sizes, counts = np.zeros((3, 2))
    within, beyond = 0, 0.0
    for blocks, tau, used, indices in model._stream(data, model._blocks):
        left = tau - model._times(blocks, estimate.x)
        for k, rows in enumerate((used & ~rests[indices], used & rests[indices])):
            squares[k] += np.sum(left[rows] ** 2)
            sizes[k] += np.sum(tau[rows] ** 2)
            counts[k] += rows.sum()
        held = np.abs(tau - model._times(blocks, frictionless)) - band  # positive: more than friction can explain
        held = held[used & rests[indices]]
        within += int((held <= 0.0).sum())
        beyond += float(np.sum(held[held > 0.0] ** 2))
    out = {"resting_share": float(counts[1] / max(counts.sum(), 1.0))}
    for k, kind in enumerate(("moving", "resting")):
        out[f"{kind}_rmse"] = float(np.sqrt(squares[k] / counts[k])) if counts[k] else float("nan")
        out[f"{kind}_error"] = float(np.sqrt(squares[k] / sizes[k])) if sizes[k] else float("nan")
    out["resting_within"] = float(within / counts[1]) if counts[1] else float("nan")
    out["resting_beyond"] = float(np.sqrt(beyond / sizes[1])) if sizes[1] else float("nan")
    return out


def _without_static(estimate: Estimate) -> tuple[np.ndarray, np.ndarray]:
    """(the parameters without Coulomb friction and curves, the largest static friction of each joint (nv,) [N m])."""
    model, x = estimate.model, estimate.x.copy()
    drives = np.zeros(len(model.transmission))
    actuators = {"coulomb": list(model.acts["coulomb"]), "curve": [c.actuator for c in model.curves]}
    for kind, acts in actuators.items():
        columns = model.by_kind[kind]
        np.add.at(drives, acts, x[columns])
        x[columns] = 0.0
    return x, np.abs(model.transmission).T @ np.maximum(drives, 0.0)


def first_line(errors: Mapping[str, Mapping[str, Any]]) -> str:
    """One line with the error at rows at which joints move, and that of all rows."""
    part, p = ("unseen", errors["test"]) if "test" in errors else ("training", errors["training"])
    if p["resting_share"] == 0.0 or not np.isfinite(p["moving_error"]):
        return f"{part} error {100 * p['relative_error']:.2f} %"
    moving, every, share, within = (
        100 * p[name] for name in ("moving_error", "relative_error", "resting_share", "resting_within")
    )
    return (
        f"{part} error {moving:.2f} % at samples in motion; {every:.2f} % with those at rest, {share:.0f} % of the"
        f" samples, of which static friction within its band explains {within:.0f} %"
    )


# --- the numbers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReportNumbers:
    """An estimate with its data.

    `raw`: the unfiltered log, for the noise floor; `test`: unseen data. `ignore`: kinds of findings that do not count
    in the assessment, see `findings.KINDS`.
    """

    estimate: Estimate
    training: Dataset
    test: Dataset | None = None
    raw: Dataset | None = None
    unconstrained: Estimate | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()  # of the identification
    ignore: tuple[str, ...] = ()
    provenance: Provenance | None = None  # set by `identify`
    boxes: Mapping[str, np.ndarray] = field(default_factory=dict)  # of bodies' geometry, for the assessment

    @cached_property
    def assessment(self) -> Assessment:
        """Whether to trust the result: findings of the identification, and of all checks in `assessment`."""
        correlation = np.array([white["correlation"] for white in self.whiteness])
        seen = Evidence(
            self.estimate, self.training, self.errors, correlation, self.reference, self.all_notes, self.boxes, self.raw
        )
        return assess(seen, self.findings, self.ignore)

    @property
    def all_notes(self) -> dict[str, Any]:
        """Notes of the identification and of its estimator."""
        return {**self.notes, **self.estimate.notes}

    @cached_property
    def fitted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(t, measured tau, predicted tau, mask) of the training data, see `RegressorModel.predict`."""
        return self.estimate.model._predict(self.estimate.x, self.training)

    @cached_property
    def test_factors(self) -> Compressed | None:
        return None if self.test is None else self.estimate.model.compress(self.test)

    @cached_property
    def errors(self) -> dict[str, dict[str, Any]]:
        """Errors of "training" and "test" data.

        rms (nv,), relative (nv,), rmse, relative_error, samples; for rows at which joints move and rest: moving_rmse,
        moving_error, resting_rmse, resting_error (nan without such rows), resting_share, resting_within,
        resting_beyond.
        """
        out = {}
        for part, c in (("training", self.estimate.training), ("test", self.test_factors)):
            data = self.training if part == "training" else self.test
            if c is None or data is None:
                continue
            residual, size = c.residuals(self.estimate.x), c.norms
            with np.errstate(invalid="ignore", divide="ignore"):
                relative = np.where(size > 0.0, residual / size, np.nan)
            out[part] = {
                "rms": c.rms(self.estimate.x),
                "relative": relative,
                "rmse": float(np.linalg.norm(residual) / np.sqrt(c.counts.sum())),
                "relative_error": c.relative_error(self.estimate.x),
                "samples": int(c.counts.max()),
                **moving_and_resting(self.estimate, data),
            }
        return out

    @cached_property
    def whiteness(self) -> list[dict[str, float]]:
        """Whiteness of the training residuals of each joint."""
        _, tau, predicted, mask = self.fitted
        out = []
        for r, m in zip((tau - predicted).T, mask.T):
            rho = autocorrelation(np.where(m, r, 0.0))
            lags = rho[1:51]
            outside = np.abs(lags) > 1.96 / np.sqrt(max(int(m.sum()), 1))
            out.append(
                {"lag1": float(rho[1]), "correlation": correlation_factor(rho), "outside": float(outside.mean())}
            )
        return out

    @cached_property
    def noise_floor(self) -> np.ndarray | None:
        """RMS of white noise within the pass band for each joint (nv,) [N m]; None without the raw log or a band
        above it.
        """
        cutoff = self.notes.get("torque_cutoff")
        return None if self.raw is None or cutoff is None else _torque_noise(self.raw, cutoff)

    def _parameter_table(self) -> list[dict[str, Any]]:
        """One row for each base parameter: name, value, std, low, high (95 %), percent.

        If the estimator has no covariance, the last four are those of unconstrained least squares, whose value is
        "least_squares"; without that, only name and value.
        """
        e, reference = self.estimate, self.reference
        rows = []
        for k, (name, value) in enumerate(zip(e.model.base_names, e.values)):
            row: dict[str, Any] = {"name": name, "value": float(value)}
            if reference is not None:
                free, std, box = reference.values[k], reference.std, reference.intervals()
                assert std is not None
                assert box is not None
                if reference is not e:
                    row["least_squares"] = float(free)
                row |= {"std": float(std[k]), "low": float(box[k, 0]), "high": float(box[k, 1])}
                row["percent"] = float(100.0 * std[k] / abs(free)) if free else float("inf")
            rows.append(row)
        return rows

    @property
    def uncertainty(self) -> str:
        """A remark on the standard deviations, if needed."""
        remark = named(self.estimate.method).uncertainty
        if self.reference is None:
            return f"no covariance: {remark}"
        if self.reference is not self.estimate:
            return f"{self.estimate.method} has no covariance: {remark}; std and intervals are least squares'"
        return remark

    @property
    def reference(self) -> Estimate | None:
        """The estimate with a covariance: this one, otherwise unconstrained least squares, otherwise None."""
        return next((e for e in (self.estimate, self.unconstrained) if e is not None and e.std is not None), None)

    @property
    def units(self) -> list[str]:
        """Units of the joint torques: N m, or N for prismatic joints."""
        robot = self.estimate.model.robot
        return [
            "N m" if column[:3].any() else "N" for joint in robot.coupling.independent_joints for column in joint.S.T
        ]

    @cached_property
    def left_open(self) -> list[OpenCombination]:
        """Changes of the base parameters that the training log does not exclude, least visible first."""
        return exchanges(self.estimate, None if self.reference is None else self.reference.correlation)

    @cached_property
    def non_inertial(self) -> list[NonInertialParameter]:
        """Identified parameters other than inertial ones: friction, rotors, springs, user-defined columns."""
        return non_inertial_parameters(self.estimate, self.reference, self.left_open)


def _torque_noise(raw: Dataset, cutoff: float) -> np.ndarray | None:
    """RMS per joint [N m] of white torque noise below `cutoff`, from the spectrum above twice that frequency."""
    if 2.5 * cutoff >= 0.5 * raw.rate:
        return None
    s = raw.longest_stretch
    x = raw.tau[s] - filters.low_pass(raw.tau[s], raw.rate, 2.0 * cutoff)
    above = np.sqrt(np.mean(x**2, axis=0))
    return above * np.sqrt(cutoff / (0.5 * raw.rate - 2.0 * cutoff))
