"""From a log to a report: `identify` does the whole of it, `IdentificationReport` says how far to trust the result.

Definitions, printed with every report:

    RMS             sqrt(mean over samples of (tau - tau_hat)^2), per joint and over all joints [N m]
    relative error  |tau - tau_hat| / |tau|, 2-norms over samples, per joint, and over all joints and samples together
    tau             the torque as the estimator sees it: low-passed and thinned as the header says
    condition       ratio of the greatest to the least singular value of the base regressor, columns of unit length
    correlation     1 + 2 sum of the residual's autocorrelations up to the first negative one: 1 for white noise; the
                    variances of the parameters are multiplied by it
    noise floor     RMS of white sensor noise that the low-pass lets through, from the raw torques' spectrum above twice
                    its cut-off (friction's steps count as noise there; a sensor that filters hides it)
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from . import filters
from .dataset import Dataset, JointMapping
from .estimators import Estimate, autocorrelation, fit
from .export import save_model, save_urdf
from .friction import fit_curves
from .model import Compressed, RegressorModel


@dataclass(frozen=True, eq=False)
class IdentificationReport:
    """An estimate with the data it came from. `raw`: the log before filters, for the noise floor; `test`: unseen
    data.
    """

    estimate: Estimate
    training: Dataset
    test: Dataset | None = None
    raw: Dataset | None = None
    unconstrained: Estimate | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def robot(self) -> Robot:
        """The identified robot."""
        return self.estimate.robot

    @cached_property
    def test_factors(self) -> Compressed | None:
        return None if self.test is None else self.estimate.model.compress(self.test)

    @cached_property
    def errors(self) -> dict[str, dict[str, Any]]:
        """For "training" and "test": rms (nv,), relative (nv,), rmse, relative_error."""
        out = {}
        for part, c in (("training", self.estimate.training), ("test", self.test_factors)):
            if c is None:
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
            }
        return out

    @cached_property
    def whiteness(self) -> list[dict[str, float]]:
        """Per joint, of the training residuals: autocorrelation one row apart, correlation factor, and the share of
        autocorrelations (lags 1 to 50) outside the 95 % band of white noise, 0.05 for white residuals."""
        _, tau, predicted, mask = self.estimate.model.predict(self.estimate.x, self.training)
        out = []
        for r, m in zip((tau - predicted).T, mask.T):
            rho = autocorrelation(np.where(m, r, 0.0))
            lags = rho[1:51]
            negative = np.flatnonzero(rho < 0.0)
            factor = 1.0 + 2.0 * rho[1 : negative[0] if len(negative) else len(rho)].sum()
            outside = np.abs(lags) > 1.96 / np.sqrt(max(int(m.sum()), 1))
            out.append(
                {"lag1": float(rho[1]), "correlation": float(max(factor, 1.0)), "outside": float(outside.mean())}
            )
        return out

    @cached_property
    def noise_floor(self) -> np.ndarray | None:
        """RMS per joint (nv,) [N m] of white noise within the pass band; None without the raw log or room above it."""
        cutoff = self.notes.get("torque_cutoff")
        return None if self.raw is None or cutoff is None else torque_noise(self.raw, cutoff)

    def parameter_table(self) -> list[dict[str, Any]]:
        """One row a base parameter: name, value, and where the estimator gives them std, low, high (95 %), percent."""
        e = self.estimate
        std, box = e.std, e.intervals()
        rows = []
        for k, (name, value) in enumerate(zip(e.model.base_names, e.values)):
            row: dict[str, Any] = {"name": name, "value": float(value)}
            if std is not None and box is not None:
                row |= {"std": float(std[k]), "low": float(box[k, 0]), "high": float(box[k, 1])}
                row["percent"] = float(100.0 * std[k] / abs(value)) if value else float("inf")
            rows.append(row)
        return rows

    def text(self, parameters: bool = True) -> str:
        """The report as plain text."""
        e, lines = self.estimate, []
        model = e.model
        lines += [f"Identification of {model.robot.name!r} from {self.training.label!r}, method {e.method!r}"]
        lines += [f"  {note}" for note in self.training.history]
        lines.append(
            f"  {e.training.counts.max()} training rows a joint"
            + (f", {self.test_factors.counts.max()} unseen" if self.test_factors is not None else ", no unseen data")
        )
        lines.append(
            f"  {model.size} parameters, {model.base.size} base parameters; condition number {e.condition:.4g}"
        )
        lines += [f"  {key}: {value}" for key, value in {**self.notes, **e.notes}.items()]
        lines += ["", *self._error_table(), "", *self._verdict_lines()]
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
            lines += ["", *self._parameter_lines()]
        lines += ["", *(line for line in str(__doc__).split("printed with every report:\n\n")[1].rstrip().splitlines())]
        return "\n".join(lines) + "\n"

    def _error_table(self):
        parts = self.errors
        head = f"{'joint':24}" + "".join(f"{p + ' RMS':>14}{'relative':>10}" for p in parts)
        floor = self.noise_floor
        head += f"{'lag 1':>8}{'correl.':>9}{'not white':>10}" + (f"{'floor':>9}" if floor is not None else "")
        lines = [head]
        for k, name in enumerate(self.estimate.model.robot.dof_names):
            row = f"{name[:24]:24}" + "".join(
                f"{part['rms'][k]:14.4g}{100 * part['relative'][k]:9.2f}%" for part in parts.values()
            )
            white = self.whiteness[k]
            row += f"{white['lag1']:8.3f}{white['correlation']:9.1f}{100 * white['outside']:9.0f}%"
            lines.append(row + (f"{floor[k]:9.3g}" if floor is not None else ""))
        row = f"{'all':24}" + "".join(f"{p['rmse']:14.4g}{100 * p['relative_error']:9.2f}%" for p in parts.values())
        return [*lines, row + (f"{'':27}{np.sqrt(np.mean(floor**2)):9.3g}" if floor is not None else "")]

    def _verdict_lines(self):
        e = self.estimate
        lines = ["physical consistency (a rigid body with mass in all directions can have these parameters):"]
        for (body, why), pi in zip(e.verdicts.items(), e.x[: e.model.inertial].reshape(-1, 10)):
            lines.append(f"  {body:24} {'yes' if why is None else 'NO: ' + why}, {pi[0]:.4g} kg")
        return lines

    def _parameter_lines(self):
        table = self.parameter_table()
        width = min(70, max(len(r["name"]) for r in table))
        known = "std" in table[0]
        lines = [
            f"{'base parameter':{width}}{'value':>12}"
            + (f"{'std':>11}{'95 % low':>12}{'high':>12}{'std %':>8}" if known else "")
        ]
        for r in table:
            name = r["name"] if len(r["name"]) <= width else r["name"][: width - 4] + " ..."
            line = f"{name:{width}}{r['value']:12.5g}"
            if known:
                line += f"{r['std']:11.3g}{r['low']:12.5g}{r['high']:12.5g}{min(r['percent'], 9999):8.1f}"
            lines.append(line)
        return lines if known else [*lines, "(no covariance: constraints and priors bias this estimator)"]

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

    def save(self, folder: str | Path, plots: bool = True) -> list[Path]:
        """Write report.txt, report.json, parameters.csv, robot.json (exact), robot.urdf where URDF can hold the robot,
        and the plots; returns the paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "report.txt", folder / "report.json", folder / "parameters.csv"]
        written[0].write_text(self.text())
        written[1].write_text(json.dumps(_finite(self.tables()), indent=1) + "\n")
        with written[2].open("w", newline="") as file:
            table = self.parameter_table()
            writer = csv.DictWriter(file, fieldnames=list(table[0]))
            writer.writeheader()
            writer.writerows(table)
        own = dict(
            zip(
                self.estimate.model.names[self.estimate.model.inertial :],
                self.estimate.x[self.estimate.model.inertial :].tolist(),
            )
        )
        written.append(save_model(self.robot, folder / "robot.json", {"identified": own, "log": self.training.label}))
        from geomctrl.errors import ModelError

        try:
            written.append(save_urdf(self.robot, folder / "robot.urdf"))
        except ModelError as error:
            (folder / "robot.urdf.txt").write_text(f"no URDF: {error}\n")
        if plots:
            from . import plots as draw

            for name in ("torques", "residuals", "parameters"):
                path = folder / f"{name}.png"
                if getattr(draw, name)(self, path):
                    written.append(path)
        return written


def identify(
    robot: Robot,
    log: Dataset | str | Path,
    *,
    keys: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    mapping: JointMapping | None = None,
    rate: float | None = None,
    cutoff: float | None = None,
    torque_cutoff: float | None = None,
    alike: bool = True,
    decimate: int | None = None,
    test: Dataset | str | Path | float | None = 0.3,
    period: float | None = None,
    standstill: float = 0.0,
    saturation: bool = True,
    method: str = "consistent",
    model: RegressorModel | None = None,
    friction_curves: str | None = None,
    check_units: bool = True,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> IdentificationReport:
    """Identify a robot from a log: read, check, split, filter, fit, report. What `geomctrl identify` runs.

    log: a Dataset or the path of an npz or CSV file; keys, units, mapping, rate: how to read it (`Dataset.from_npz`).
    cutoff [Hz] of positions: default five times the frequency below which 99 % of the velocities' power lies, at most a
    fifth of the sampling rate; torque_cutoff: default the same; alike: one low-pass for torques and regressor.
    decimate: default such that four rows are kept a period of torque_cutoff.
    test: a Dataset or path of another log; or the fraction of this one that is set aside, by phase if the trajectory is
    periodic (`period` [s], or found), by time if not; None: no test.
    standstill: speed [rad/s] below which training samples of a joint are left out. saturation: leave out torques at the
    robot's effort limits. model: default inertia, viscous and Coulomb friction, offsets. friction_curves: "sigmoid" or
    "stribeck" adds such a curve to every joint. method, options: see `estimators.fit`.
    progress(what, fraction) is called now and then. Raises DataError, ExcitationError, SolverError, ArgumentError.
    """
    say = progress or (lambda what, fraction: None)
    reading = {"keys": keys, "units": units, "mapping": mapping, "rate": rate}
    say("reading", 0.0)
    data = log if isinstance(log, Dataset) else Dataset.read(log, **reading)
    data.check(robot, units=check_units)
    model = model or RegressorModel(robot)
    if model.robot is not robot:
        raise ArgumentError("model: was made for another robot")
    cutoff = cutoff if cutoff is not None else motion_bandwidth(data)
    torque_cutoff = cutoff if torque_cutoff is None else torque_cutoff
    decimate = decimate if decimate is not None else max(1, int(data.rate / (4.0 * torque_cutoff)))
    if saturation and np.isfinite(robot.limits.effort).any():
        data = data.without_saturation(robot.limits.effort, widen=0.5 / torque_cutoff)
    notes: dict[str, Any] = {"cutoff": cutoff, "torque_cutoff": torque_cutoff}
    if test is None:
        parts = [data]
    elif isinstance(test, (int, float)):
        if not 0.0 < test < 1.0:
            raise ArgumentError(f"test: expected a fraction between 0 and 1, a log, or None, got {test}")
        found = period if period is not None else data.period()
        guard = 1.0 / cutoff
        if found is None:
            parts = list(data.split_time(1.0 - test, guard))
            notes["split"] = f"the first {100 * (1 - test):.0f} % of the samples train, the rest is unseen"
        else:
            parts = list(data.split_phase(found, (1.0 - test, 1.0), guard))
            notes["split"] = f"by phase of a period of {found:.5g} s: from {1 - test:.2f} on unseen in every period"
    else:
        other = test if isinstance(test, Dataset) else Dataset.read(test, **reading)
        other.check(robot, units=check_units)
        parts = [data, other]
        notes["split"] = f"tested on {other.label!r}"
    say("filtering", 0.1)
    ready = [p.filtered(cutoff, torque_cutoff=torque_cutoff, alike=alike, decimate=decimate) for p in parts]
    training = ready[0].without_standstill(standstill) if standstill > 0.0 else ready[0]
    if friction_curves is not None:
        say("friction curves", 0.2)
        found_curves = fit_curves(model, training, friction_curves)
        model = found_curves.model
        notes["friction curves"] = f"{friction_curves}, speeds {np.round(found_curves.speeds, 4).tolist()} rad/s"
    factors = model.compress(training, progress=lambda x: say("stacking", 0.3 + 0.5 * x))
    say("estimating", 0.8)
    needs_samples = method in ("irls", "iv", "ols", "wls")
    estimate = fit(model, training if needs_samples else factors, method, **dict(options or {}))
    from .errors import ExcitationError

    unconstrained = None
    if method in ("consistent", "manifold", "ridge"):
        try:
            unconstrained = fit(model, factors, "ols")
        except ExcitationError as error:
            notes["excitation"] = str(error)
    say("done", 1.0)
    return IdentificationReport(estimate, training, ready[1] if len(ready) > 1 else None, data, unconstrained, notes)


def motion_bandwidth(data: Dataset) -> float:
    """Five times the frequency [Hz] below which 99 % of the joint velocities' power lies, at most a fifth of the
    rate.
    """
    s = max(data.stretches(), key=lambda part: part.stop - part.start)
    x = data.q[s] if data.q.shape[1] == data.nv else np.asarray(data.v)[s]
    x = np.gradient(x, axis=0) if data.q.shape[1] == data.nv else x
    window = np.hanning(len(x))[:, None]
    power = (np.abs(np.fft.rfft((x - x.mean(0)) * window, axis=0)) ** 2).sum(1)
    f = np.fft.rfftfreq(len(x), 1.0 / data.rate)
    # encoder noise rises with frequency in differences: count the band up to a fifth of the rate only
    inside = f <= 0.2 * data.rate
    total = np.cumsum(power[inside])
    edge = float(f[inside][np.searchsorted(total, 0.99 * total[-1])]) if total[-1] > 0.0 else 1.0
    return min(max(5.0 * edge, 1.0), 0.2 * data.rate)


def torque_noise(raw: Dataset, cutoff: float) -> np.ndarray | None:
    """RMS per joint [N m] of white torque noise below `cutoff`, from what lies between twice it and half the rate."""
    if 2.5 * cutoff >= 0.5 * raw.rate:
        return None
    s = max(raw.stretches(), key=lambda part: part.stop - part.start)
    x = raw.tau[s] - filters.low_pass(raw.tau[s], raw.rate, 2.0 * cutoff)
    above = np.sqrt(np.mean(x**2, axis=0))
    return above * np.sqrt(cutoff / (0.5 * raw.rate - 2.0 * cutoff))


def _finite(x):
    """JSON has no nan or infinity: as texts."""
    if isinstance(x, dict):
        return {k: _finite(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [_finite(v) for v in x]
    return str(x) if isinstance(x, float) and not np.isfinite(x) else x
