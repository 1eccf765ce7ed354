"""What an identification found, as numbers: errors, intervals, and what the log leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.identification.assessment import Assessment, Evidence, assess
from geomctrl.identification.estimators import Estimate, named
from geomctrl.identification.estimators.residuals import autocorrelation, correlation_factor
from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset, filters
from geomctrl.identification.model.compressed import Compressed

from .identifiability import Exchange, exchanges
from .parameter_rows import NonInertialParameter, non_inertial_parameters
from .provenance import Provenance
from .stiction_errors import moving_and_resting


@dataclass(frozen=True, eq=False)
class ReportNumbers:
    """An estimate with the data it came from. `raw`: the log before filters, for the noise floor; `test`: unseen
    data. `ignore`: kinds of doubts that do not count in the verdict, see `verdict.kinds`.
    """

    estimate: Estimate
    training: Dataset
    test: Dataset | None = None
    raw: Dataset | None = None
    unconstrained: Estimate | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()  # that came up on the way
    ignore: tuple[str, ...] = ()
    provenance: Provenance | None = None  # where it came from: `identify` says
    boxes: Mapping[str, np.ndarray] = field(default_factory=dict)  # of bodies' geometry, for the verdict

    @cached_property
    def assessment(self) -> Assessment:
        """Whether to trust it: the doubts that came up on the way, and those of all checks in `verdict`."""
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
        """(t, tau measured, tau predicted, mask) of the training data, see `RegressorModel.predict`."""
        return self.estimate.model.predict(self.estimate.x, self.training)

    @cached_property
    def test_factors(self) -> Compressed | None:
        return None if self.test is None else self.estimate.model.compress(self.test)

    @cached_property
    def errors(self) -> dict[str, dict[str, Any]]:
        """For "training" and "test": rms (nv,), relative (nv,), rmse, relative_error, samples; and of the rows at which
        joints move and rest: moving_rmse, moving_error, resting_rmse, resting_error (nan without such rows),
        resting_share, resting_within, resting_beyond; see `stiction_errors`.
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
                "rms": self.estimate.rms(c),
                "relative": relative,
                "rmse": float(np.linalg.norm(residual) / np.sqrt(c.counts.sum())),
                "relative_error": c.relative_error(self.estimate.x),
                "samples": int(c.counts.max()),
                **moving_and_resting(self.estimate, data),
            }
        return out

    @cached_property
    def whiteness(self) -> list[dict[str, float]]:
        """Per joint, of the training residuals: autocorrelation one row apart, correlation factor, and the share of
        autocorrelations (lags 1 to 50) outside the 95 % band of white noise, 0.05 for white residuals."""
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
        """RMS per joint (nv,) [N m] of white noise within the pass band; None without the raw log or room above it."""
        cutoff = self.notes.get("torque_cutoff")
        return None if self.raw is None or cutoff is None else _torque_noise(self.raw, cutoff)

    def parameter_table(self) -> list[dict[str, Any]]:
        """One row a base parameter: name, value, std, low, high (95 %), percent.

        Where the estimator has no covariance, the last four are those of unconstrained least squares, whose value is
        "least_squares"; where that is missing too, name and value only.
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
        """A remark on the standard deviations, if there is one to make."""
        remark = named(self.estimate.method).uncertainty
        if self.reference is None:
            return f"no covariance: {remark}"
        if self.reference is not self.estimate:
            return f"{self.estimate.method} has no covariance: {remark}; std and intervals are least squares'"
        return remark

    @property
    def reference(self) -> Estimate | None:
        """The estimate with a covariance: this one, else unconstrained least squares, else none."""
        return next((e for e in (self.estimate, self.unconstrained) if e is not None and e.std is not None), None)

    @property
    def units(self) -> list[str]:
        """Of the joints' torques: N m, or N where a joint slides."""
        robot = self.estimate.model.robot
        return [
            "N m" if column[:3].any() else "N" for joint in robot.coupling.independent_joints for column in joint.S.T
        ]

    @cached_property
    def left_open(self) -> list[Exchange]:
        """Changes of the base parameters that the training log does not tell from none, least visible first."""
        return exchanges(self.estimate, None if self.reference is None else self.reference.correlation)

    @cached_property
    def beside(self) -> list[NonInertialParameter]:
        """What was identified beside inertial parameters: friction, rotors, springs, columns of one's own."""
        return non_inertial_parameters(self.estimate, self.reference, self.left_open)


def _torque_noise(raw: Dataset, cutoff: float) -> np.ndarray | None:
    """RMS per joint [N m] of white torque noise below `cutoff`, from what lies between twice it and half the rate."""
    if 2.5 * cutoff >= 0.5 * raw.rate:
        return None
    s = max(raw.stretches(), key=lambda part: part.stop - part.start)
    x = raw.tau[s] - filters.low_pass(raw.tau[s], raw.rate, 2.0 * cutoff)
    above = np.sqrt(np.mean(x**2, axis=0))
    return above * np.sqrt(cutoff / (0.5 * raw.rate - 2.0 * cutoff))
