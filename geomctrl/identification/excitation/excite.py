"""`Excitation`: the result of an optimised motion, compared with random motions, and proofs that it keeps its limits.

Limits and clearances are guaranteed at every time, not only at samples.

Positions, velocities, accelerations, jerks: between two samples h apart a function is at most the larger of both plus
h^2 / 8 times a bound of its second derivative, and bounds of all derivatives are known (`Trajectory.bounds`).

Clearances: no distance changes faster than L = `sweeps` times joint speeds, so between samples with d_0 and d_1 it is
at least (d_0 + d_1 - L h) / 2. Intervals where this is not sufficient are split.

Torques have no such bound here: they are checked on the same fine grid, with the reserve `torque_margin`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import flag, path_of
from geomctrl.files import write_text
from geomctrl.identification.model.regressor_model import RegressorModel

from .clearance import Clearances, by_kind, sweeps, unchecked
from .problem import Limits, Problem, deviations, measures, typical
from .trajectory import Trajectory, save_trajectory

FINE_SAMPLES = 2001  # samples
MAX_HALVINGS = 14
MAX_INTERVALS = 200_000  # intervals


def margins(model: RegressorModel, limits: Limits, trajectory: Trajectory) -> dict[str, np.ndarray]:
    """Remaining distance from each joint's limit (nv,) by name (position, velocity, acceleration, jerk, torque)."""
    t = np.linspace(0.0, trajectory.duration, FINE_SAMPLES)
    q, v, a = trajectory.at(t)
    beyond = (t[1] - t[0]) ** 2 / 8.0
    low, high = q.min(axis=0) - beyond * trajectory.bounds(2), q.max(axis=0) + beyond * trajectory.bounds(2)
    half = 0.5 * (limits.upper - limits.lower)
    tau = model.torque(model.prior, q, v, a)
    out = {
        "position": np.minimum(low - limits.lower, limits.upper - high) / half,
        "velocity": 1.0 - (np.abs(v).max(axis=0) + beyond * trajectory.bounds(3)) / limits.velocity,
        "acceleration": 1.0 - (np.abs(a).max(axis=0) + beyond * trajectory.bounds(4)) / limits.acceleration,
        "torque": 1.0 - np.abs(tau).max(axis=0) / limits.effort,
    }
    if np.isfinite(limits.jerk).any():
        jerk = np.abs(trajectory.derivative(3, t)).max(axis=0) + beyond * trajectory.bounds(5)
        out["jerk"] = 1.0 - jerk / limits.jerk
    return out


def keeps_clearance(clearances: Clearances, limits: Limits, trajectory: Trajectory) -> bool:
    """Whether every distance is at least the required clearance at every time: True is a proof, up to rounding."""
    least = clearances.surroundings.clearance
    L = sweeps(clearances, limits.lower, limits.upper)  # (C, nv)
    faster = 0.5 * trajectory.bounds(2)
    t = np.linspace(0.0, trajectory.duration, FINE_SAMPLES)
    q, v, _ = trajectory.at(t)
    d = clearances.values(q)
    start: list[np.ndarray] = [t[:-1], d[:-1], np.abs(v[:-1])]  # of intervals: time, distances, speeds
    end: list[np.ndarray] = [t[1:], d[1:], np.abs(v[1:])]
    for _ in range(MAX_HALVINGS):
        (t0, d0, v0), (t1, d1, v1) = start, end
        if min(d0.min(initial=np.inf), d1.min(initial=np.inf)) < least:
            return False
        h = (t1 - t0)[:, None]
        low = 0.5 * (d0 + d1 - h * ((np.maximum(v0, v1) + h * faster) @ L.T))
        open_ = (low < least).any(axis=1)
        if not open_.any():
            return True
        if open_.sum() > MAX_INTERVALS:
            return False
        start, end = [x[open_] for x in start], [x[open_] for x in end]
        time = 0.5 * (start[0] + end[0])
        q, v, _ = trajectory.at(time)
        middle = [time, clearances.values(q), np.abs(v)]
        start, end = ([np.concatenate(x) for x in zip(*sides)] for sides in ((start, middle), (middle, end)))
    return False


def nearest(clearances: Clearances, trajectory: Trajectory) -> dict[str, tuple[str, float]]:
    """The nearest object and its distance [m] by kind (floor, keep-out boxes, the robot itself), on a fine grid."""
    d = clearances.values(trajectory.at(np.linspace(0.0, trajectory.duration, FINE_SAMPLES))[0]).min(axis=0)
    names, kinds = clearances.names, np.array(clearances.kinds)
    out = {}
    for kind in dict.fromkeys(kinds.tolist()):
        columns = np.flatnonzero(kinds == kind)
        least = int(columns[np.argmin(d[columns])])
        out[kind] = names[least], float(d[least])
    return out


@dataclass(frozen=True, eq=False)
class Excitation:
    """An optimised trajectory, compared with random ones.

    Attributes
    ----------
    condition : float
        Condition number of the base regressor with rows divided by the torque noise and unit columns.
    log_det : float
        Mean log of the eigenvalues of the average information of a row, columns in SI units.
    random : Trajectory
        The best random motion within the same limits, with `random_condition` and `random_log_det`.
    random_conditions, random_log_dets : ndarray, shape (compare,)
        Criteria of all random motions.
    cost : ndarray
        The criterion at each iteration.
    margin : float
        Smallest distance from a limit, as a fraction of it; `margins` has it by kind of limit for each joint (nv,).
    clearances : dict
        By kind of obstacle, the nearest object and its distance [m] on a fine grid. The required clearance holds at all
        times.
    names, deviations : sequences
        Base parameters, and the standard deviations that least squares will have after one period with torque noise
        `noise` (nv,) and `rate` independent samples per second; `sizes`: typical magnitudes.
    """

    trajectory: Trajectory
    random: Trajectory
    condition: float
    log_det: float
    random_condition: float
    random_log_det: float
    cost: np.ndarray
    random_conditions: np.ndarray
    random_log_dets: np.ndarray
    model: RegressorModel
    limits: Limits
    around: Clearances | None
    noise: np.ndarray
    rate: float
    deviations: np.ndarray
    sizes: np.ndarray

    @cached_property
    def margins(self) -> dict[str, np.ndarray]:
        return margins(self.model, self.limits, self.trajectory)

    @property
    def margin(self) -> float:
        return float(min(x.min() for x in self.margins.values()))

    @cached_property
    def clearances(self) -> dict[str, tuple[str, float]]:
        return {} if self.around is None else nearest(self.around, self.trajectory)

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.base_names

    def text(self) -> str:
        ranks = [(self.random_conditions < self.condition).mean(), (self.random_log_dets > self.log_det).mean()]
        quantiles = (0.0, 0.5, 1.0)
        conditions = np.quantile(self.random_conditions, quantiles)
        log_dets = np.quantile(self.random_log_dets, quantiles)[::-1]
        shorter = 100.0 * np.exp(0.5 * (log_dets - self.log_det))  # half: variances to standard deviations
        lines = [
            f"Fourier series of {self.trajectory.duration:g} s, {len(self.cost) - 1} iterations",
            f"{'':32}{'condition':>12}{'mean log det':>14}",
            f"{'random, same limits, started at':32}{self.random_condition:12.4g}{self.random_log_det:14.3f}",
        ]
        for word, c, d in zip(("best", "median", "worst"), conditions, log_dets):
            lines.append(f"{f'{word} of {len(self.random_conditions)} random':32}{c:12.4g}{d:14.3f}")
        lines += [
            f"{'optimised':32}{self.condition:12.4g}{self.log_det:14.3f}",
            f"random ones that are better: {100 * ranks[0]:.0f} % in condition, {100 * ranks[1]:.0f} % in log det",
            f"axes of the confidence ellipsoid, in the geometric mean: {shorter[0]:.0f} % of the best random one's,"
            f" {shorter[1]:.0f} % of the median's",
            f"closest to a limit: {100 * self.margin:.1f} % of it left",
        ]
        for kind, (name, distance) in self.clearances.items():
            lines.append(f"closest to {kind}: {name}, {100 * distance:.1f} cm")
        if self.around is not None and self.around.always:
            lines.append(f"not checked, as near in every posture: {'; '.join(self.around.always)}")
        return "\n".join(lines)

    def report(self) -> str:
        """Return `text`, and the predicted 95 % interval of each base parameter."""
        robot, start = self.model.robot, self.trajectory.at([0.0])[0][0]
        noise = ", ".join(f"{x:.3g}" for x in self.noise)
        lines = [
            f"{robot.name}: exciting motion for {len(self.names)} base parameters",
            self.text(),
            f"starts, stays and ends at rest at q = {np.round(start, 4).tolist()}",
            "",
            f"95 % intervals that least squares will have after one run of {self.trajectory.duration:g} s, with torque",
            f"noise of {noise} (standard deviations by joint, N m, N) and {self.rate:g} independent samples a second;",
            "typical: of such parameters of a robot of this mass and size, friction 5 % of the effort limits",
            "",
            f"{'base parameter':60}{'typical':>10}{'+/-':>11}",
        ]
        for row in self.table():
            name = row["name"] if len(row["name"]) < 60 else row["name"][:55] + " ..."
            lines.append(f"{name:60}{row['size']:10.3g}{row['interval']:11.3g}")
        return "\n".join(lines)

    def save(
        self, folder: str | Path, *, rate: float = 100.0, repeats: int = 1, name: str = "excitation", plots: bool = True
    ) -> list[Path]:
        """Write NAME.csv, NAME.yaml, NAME.json, NAME.h (`save_trajectory`), NAME.txt (`report`), NAME_parameters.csv
        (`table`) and the picture NAME.png to a folder, each atomically.
        """
        folder = path_of("folder", folder)
        path_of("name", name)
        flag("plots", plots)
        joints = self.model.robot.dof_names
        options: dict[str, Any] = {"rate": rate, "repeats": repeats, "name": name}
        written = [
            save_trajectory(self.trajectory, folder / f"{name}.{suffix}", joints, **options)
            for suffix in ("csv", "yaml", "json", "h")
        ]
        written.append(write_text(folder / f"{name}.txt", self.report() + "\n"))
        rows = [",".join((f'"{r["name"]}"', repr(r["size"]), repr(r["std"]))) for r in self.table()]
        heads = "base parameter,typical size,predicted standard deviation"
        written.append(write_text(folder / f"{name}_parameters.csv", "\n".join((heads, *rows, ""))))
        if plots:
            written.append(self.plot(folder / f"{name}.png"))
        return written

    def plot(self, path: str | Path) -> Path:
        """Write a PNG picture: the robot at several times with its surroundings, q, v, a and torques against their
        limits, distances, and the criteria of random motions.
        """
        from geomctrl.viewing.excitation import Motion, excitation

        path = path_of("path", path)
        t = np.linspace(0.0, self.trajectory.duration, 401)
        q, v, a = self.trajectory.at(t)
        limits, around = self.limits, self.around
        both = {
            k: np.stack((-x, x)) for k, x in (("v", limits.velocity), ("a", limits.acceleration), ("t", limits.effort))
        }
        curves = {
            "position": (q, np.stack((limits.lower, limits.upper))),
            "velocity": (v, both["v"]),
            "acceleration": (a, both["a"]),
            "torque": (self.model.torque(self.model.prior, q, v, a), both["t"]),
        }
        shown = around if around is not None else unchecked(self.model.robot)
        floor = around.surroundings.floor if around is not None else None
        criteria = {
            "log10 condition": (np.log10(self.random_conditions), float(np.log10(self.condition))),
            "mean log det": (self.random_log_dets, self.log_det),
        }
        title = f"{self.model.robot.name}: exciting motion of {self.trajectory.duration:g} s"
        boxes = np.array(shown.surroundings.keep_out).reshape(-1, 6)
        distances = {} if around is None else by_kind(around, q)
        clearance = shown.surroundings.clearance
        radii = np.array([c.radius for c in shown.capsules])
        names = self.model.robot.dof_names
        return excitation(
            Motion(title, names, t, curves, shown.ends(q), radii, floor, boxes, distances, clearance, criteria), path
        )

    def table(self) -> list[dict[str, Any]]:
        """Return one row for each base parameter: name, typical size, predicted standard deviation and 95 % interval
        (half).
        """
        return [
            {"name": name, "size": float(size), "std": float(std), "interval": float(1.96 * std)}
            for name, size, std in zip(self.names, self.sizes, self.deviations)
        ]


def compared(
    problem: Problem, trajectory: Trajectory, start: Trajectory, random: np.ndarray, cost: np.ndarray
) -> Excitation:
    """The solution of a problem, compared with random motions: `random` (compare, 2), their condition and mean log
    det.
    """
    W, rows = problem.whitened(trajectory)
    condition, log_det = measures(W)
    random_condition, random_log_det = problem.measured(start)
    return Excitation(
        trajectory=trajectory, random=start, condition=condition, log_det=log_det,
        random_condition=random_condition, random_log_det=random_log_det, cost=cost,
        random_conditions=random[:, 0], random_log_dets=random[:, 1], model=problem.model, limits=problem.limits,
        around=problem.clearances, noise=problem.noise, rate=problem.rate,
        deviations=deviations(W, rows), sizes=typical(problem.model, problem.limits.effort, problem.limits.velocity),
    )  # fmt: skip
