"""What an identification found, and how far to trust it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import flag, path_of
from geomctrl.files import write_text
from geomctrl.models.mjcf_writing import save_mjcf
from geomctrl.robot import Robot

from . import findings, page, pictures
from .compressed import Compressed
from .data import Dataset, filters
from .doubts import Doubt
from .estimators import Estimate
from .estimators.residuals import autocorrelation, correlation_factor
from .export import gravity_elsewhere, save_model, save_or_why, save_urdf
from .findings import Beside
from .provenance import Provenance
from .report_lines import beside_lines, error_table, in_words, open_lines, parameter_lines, physical_lines
from .resting import first_line, moving_and_resting
from .told_apart import Exchange, exchanges
from .verdict import Evidence, Verdict, judged

# notes in words
# Printed with every report.
DEFINITIONS = """\
    RMS             sqrt(mean over samples of (tau - tau_hat)^2), per joint and over all joints [N m]
    relative error  |tau - tau_hat| / |tau|, 2-norms over samples, per joint, and over all joints and samples together
    lag 1, not white  autocorrelation of a joint's training residuals one row apart; share of those at lags 1 to 50 that
                    leave the 95 % band of white noise: 5 % if residuals are white
    tau             the torque as the estimator sees it: low-passed and thinned as the header says, and less what motors
                    take whose armature is known
    condition       ratio of the greatest to the least singular value of the base regressor, columns of unit length
    correl(ation)   1 + 2 sum of the residual's autocorrelations up to the first negative one: 1 for white noise
    std, 95 %       from how parameters scatter when a tenth of the log after the other is left out (delete-a-block
                    jackknife, moderated over parameters; Student's t), for ols, wls, irls and ridge
    moving, at rest apart: rows at which a joint has been slower than 1 % of its greatest speed for 0.2 s; friction
                    there is whatever holds the joint, and a model of moving friction does not know it. "Unseen error"
                    at the top is of moving rows; published figures are often of all rows, which are said beside it
    within friction, left  of resting rows: the share that static friction explains, anything up to Coulomb's friction
                    and curves; the relative error that it can not make up for
    noise floor     RMS of white sensor noise that the low-pass lets through, from the raw torques' spectrum above twice
                    its cut-off (friction's steps count as noise there; a sensor that filters hides it)
    m1 c1x, Ixy1    mass times centre of mass [kg m], inertia about the frame's origin [kg m^2] of the first body listed
    sliding joints  N for N m, N s/m for N m s/rad, kg for kg m^2
""".rstrip()


LABELS = {
    "cutoffs": "why these cut-offs",
    "smoothing": "Coulomb friction changes its sign over",
    "unseen": "how unseen the test is",
    "cutoff": "cut-off of positions [Hz]",
    "torque_cutoff": "cut-off of torques [Hz]",
    "seconds": "time in the solver [s]",
    "regularization": "weight of the prior",
    "entropic": "weight of the log-det distance",
    "margin": "least pseudo-inertia, in the robot's units",
    "prior": "prior",
    "prior bodies": "bodies of the prior",
    "weights": "weights of joints",
    "status": "how the optimiser ended",
}


@dataclass(frozen=True, eq=False)
class IdentificationReport:
    """An estimate with the data it came from. `raw`: the log before filters, for the noise floor; `test`: unseen
    data. `ignore`: kinds of doubts that do not count in the verdict, see `verdict.kinds`.
    """

    estimate: Estimate
    training: Dataset
    test: Dataset | None = None
    raw: Dataset | None = None
    unconstrained: Estimate | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()  # that came up on the way
    ignore: tuple[str, ...] = ()
    provenance: Provenance | None = None  # where it came from: `identify` says
    boxes: Mapping[str, np.ndarray] = field(default_factory=dict)  # of bodies' geometry, for the verdict

    @property
    def robot(self) -> Robot:
        """The identified robot."""
        return self.estimate.robot

    @cached_property
    def verdict(self) -> Verdict:
        """Whether to trust it: the doubts that came up on the way, and those of all checks in `verdict`."""
        correlation = np.array([white["correlation"] for white in self.whiteness])
        seen = Evidence(
            self.estimate, self.training, self.errors, correlation, self.reference,
            {**self.notes, **self.estimate.notes}, self.boxes, self.raw,
        )  # fmt: skip
        return judged(seen, self.doubts, self.ignore)

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
        resting_share, resting_within, resting_beyond; see `resting`.
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
        return None if self.raw is None or cutoff is None else torque_noise(self.raw, cutoff)

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
    def reference(self) -> Estimate | None:
        """The estimate with a covariance: this one, else unconstrained least squares, else none."""
        return next((e for e in (self.estimate, self.unconstrained) if e is not None and e.std is not None), None)

    @property
    def units(self) -> list[str]:
        """Of the joints' torques: N m, or N where a joint slides."""
        robot = self.estimate.model.robot
        return ["N m" if column[:3].any() else "N" for joint in robot.independent_joints for column in joint.S.T]

    @cached_property
    def drawn(self) -> pictures.Arrays:
        """What pictures show, as arrays."""
        return pictures.arrays(self)

    @cached_property
    def left_open(self) -> list[Exchange]:
        """Changes of the base parameters that the training log does not tell from none, least visible first."""
        return exchanges(self.estimate, None if self.reference is None else self.reference.correlation)

    @cached_property
    def beside(self) -> list[Beside]:
        """What was identified beside inertial parameters: friction, rotors, springs, columns of one's own."""
        return findings.beside(self.estimate, self.reference, self.left_open)

    def text(self, parameters: bool = True) -> str:
        """The report as plain text."""
        flag("parameters", parameters)
        e, lines = self.estimate, []
        model = e.model
        lines += [*self.verdict.text().splitlines(), first_line(self.errors), ""]
        lines += [f"Identification of {model.robot.name!r} from {self.training.label!r}, method {e.method!r}"]
        lines += [f"  {note}" for note in self.training.history]
        lines.append(
            f"  {e.training.counts.max()} training rows a joint"
            + (f", {self.test_factors.counts.max()} unseen" if self.test_factors is not None else ", no unseen data")
        )
        lines.append(
            f"  {model.size} parameters, {model.base.size} base parameters; condition number {e.condition:.4g}"
        )
        lines += [f"  {LABELS.get(key, key)}: {in_words(value)}" for key, value in {**self.notes, **e.notes}.items()]
        gravity = gravity_elsewhere(model.robot)
        lines += [] if gravity is None else [f"  robot.urdf: {gravity}; robot.json and robot.xml have it"]
        lines += ["", *error_table(self), "", *physical_lines(self), *beside_lines(self), *open_lines(self)]
        if self.unconstrained is not None:
            u = self.unconstrained
            after = (
                f", unseen {100 * u.relative_error(self.test_factors):.2f} %" if self.test_factors is not None else ""
            )
            lines += [
                "",
                f"unconstrained least squares for comparison: training {100 * u.relative_error():.2f} %{after}",
            ]
        if parameters:
            lines += ["", *parameter_lines(self)]
        lines += ["", *DEFINITIONS.splitlines()]
        return "\n".join(lines) + "\n"

    def tables(self) -> dict[str, Any]:
        """Everything as plain numbers, texts and lists, for JSON."""
        e = self.estimate
        plain = {
            part: {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}
            for part, values in self.errors.items()
        }
        return {
            "robot": e.model.robot.name,
            "log": self.training.label,
            "verdict": self.verdict.tables(),
            "method": e.method,
            "processing": list(self.training.history),
            "condition": e.condition,
            "errors": plain,
            "whiteness": self.whiteness,
            "noise_floor": None if self.noise_floor is None else self.noise_floor.tolist(),
            "verdicts": e.verdicts,
            "is_physical": e.is_physical,
            "parameters": dict(zip(e.model.names, e.x.tolist())),
            "base_parameters": self.parameter_table(),
            "notes": {
                k: v if isinstance(v, (int, float, str, bool, type(None))) else str(v)
                for k, v in {**self.notes, **e.notes}.items()
            },
        }

    def extra(self) -> dict[str, Any]:
        """What a Robot does not hold, for the model file: parameters beside the inertial ones by name, and what their
        columns are made of.
        """
        m = self.estimate.model
        return {
            "identified": dict(zip(m.names[m.inertial :], self.estimate.x[m.inertial :].tolist())),
            "smoothing": m.smoothing,
            "transmission": m.transmission.tolist(),
            "curves": [asdict(c) for c in m.curves],
            "log": self.training.label,
            "method": self.estimate.method,
        }

    def save(self, folder: str | Path, plots: bool = True) -> list[Path]:
        """Write report.txt, report.html, report.json, parameters.csv, robot.json (exact), robot.urdf, robot.xml (MJCF),
        and the plots; where a format can not hold the robot a .txt that says why. Returns the paths."""
        folder, plots = path_of("folder", folder), flag("plots", plots)
        written = [
            write_text(folder / "report.txt", self.text()),
            self.save_html(folder / "report.html", plots),
            write_text(folder / "report.json", json.dumps(_finite(self.tables()), indent=1) + "\n"),
            write_text(folder / "parameters.csv", _comma_separated(self.parameter_table())),
        ]
        written.append(save_model(self.robot, folder / "robot.json", self.extra()))
        written.append(save_or_why(save_urdf, self.robot, folder / "robot.urdf"))
        written.append(save_or_why(save_mjcf, self.robot, folder / "robot.xml"))
        return written + (self.save_plots(folder) if plots else [])

    def save_plots(self, folder: Path) -> list[Path]:
        """Write torques.png, residuals.png and, where there are standard deviations, parameters.png."""
        return pictures.save(self, path_of("folder", folder))

    def save_html(self, path: str | Path, plots: bool = True) -> Path:
        """Write the report as one HTML file for people, with pictures unless plots=False; it needs no network."""
        path, plots = path_of("path", path), flag("plots", plots)
        return write_text(path, page.document(self, plots, LABELS, DEFINITIONS))

    def _repr_html_(self) -> str:
        """For notebooks: the verdict and the errors per joint."""
        return page.summary(self)


def torque_noise(raw: Dataset, cutoff: float) -> np.ndarray | None:
    """RMS per joint [N m] of white torque noise below `cutoff`, from what lies between twice it and half the rate."""
    if 2.5 * cutoff >= 0.5 * raw.rate:
        return None
    s = max(raw.stretches(), key=lambda part: part.stop - part.start)
    x = raw.tau[s] - filters.low_pass(raw.tau[s], raw.rate, 2.0 * cutoff)
    above = np.sqrt(np.mean(x**2, axis=0))
    return above * np.sqrt(cutoff / (0.5 * raw.rate - 2.0 * cutoff))


def _comma_separated(table: list[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def _finite(x):
    """JSON has no nan or infinity: as texts."""
    if isinstance(x, dict):
        return {k: _finite(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [_finite(v) for v in x]
    return str(x) if isinstance(x, float) and not np.isfinite(x) else x
