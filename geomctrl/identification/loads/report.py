"""An identified load: the body, reasons not to trust it, and its report.

Ten inertial parameters of one rigid body come from W pi = b with unit noise: least squares, the parameters that the
motion determines, and the nearest physically consistent body.

The physically consistent estimate is the minimum of a strictly convex, self-concordant function of ten numbers,

    1/2 |W pi - b|^2 + tr(P0^-1 P) - log det P

P is the pseudo-inertia, which its logarithm keeps positive definite (Wensing, Kim and Slotine 2018; the log-det
distance of Lee, Wensing and Park 2020). P0 is that of a ball with the estimated mass and centre and an ordinary
density. The distance counts as one measurement with an error of 100 %: it determines what the motion does not excite,
and changes the other parameters by far less than their standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.identification.errors import SolverError
from geomctrl.identification.estimators.barrier import BASIS
from geomctrl.identification.estimators.conditioning import MIN_SINGULAR_VALUE
from geomctrl.identification.findings import Finding
from geomctrl.identification.model.columns import INERTIAL
from geomctrl.identification.report.rendering import LOAD_DEFINITIONS, Column, Report, Table, heading, plain, rendered
from geomctrl.mechanism import inertia
from geomctrl.models.io.model_file import save_model
from geomctrl.models.io.writing import save_or_why, save_urdf
from geomctrl.robot import Robot

from .torque_rows import Solved, solved

DENSITY = 2000.0  # kg/m^3: between plastics and steel, for loads of unknown shape
CENTRE_RANGE = 0.2  # m from the frame: range of an undetermined centre of mass
MIN_MASS = 1e-3  # kg: replaces an undetermined mass
Z95 = 1.959963984540054  # of the normal distribution


@dataclass(frozen=True, eq=False)
class Body:
    """`parameters` (10,): the body; `least_squares` (10,): without constraints, with their `covariance` (10, 10);
    `null` (10, k): undetermined directions, in the natural units `scale` (10,); `distance`: twice the cost of the
    constraint in 1/2 |W pi - b|^2, about chi-square of 10 if a rigid body fits.
    """

    parameters: np.ndarray
    least_squares: np.ndarray
    covariance: np.ndarray
    null: np.ndarray
    scale: np.ndarray
    distance: float

    def interval(self, value: float, gradient: np.ndarray) -> tuple[float, float]:
        """95 % interval of a function of the parameters with this value and gradient (10,); infinite if the motion does
        not determine it.
        """
        g = gradient * self.scale
        if self.null.size and np.abs(g @ self.null).max() > 1e-6 * max(np.linalg.norm(g), 1e-300):
            return -np.inf, np.inf
        half = Z95 * float(np.sqrt(max(gradient @ self.covariance @ gradient, 0.0)))
        return value - half, value + half

    def quantities(self) -> dict[str, np.ndarray]:
        """95 % intervals: "mass" (2,), "centre" (3, 2), "inertia" (3, 3, 2) about the centre of mass, and of the ten
        "parameters" (10, 2), all of least squares.
        """
        pi = self.least_squares
        each = np.array([self.interval(pi[k], row) for k, row in enumerate(np.eye(10))])
        m, h = pi[0], pi[1:4]
        if m == 0.0:
            return {"mass": each[0], "centre": _open(3), "inertia": _open(3, 3), "parameters": each}
        c = h / m
        centre = [self.interval(c[k], np.concatenate(([-c[k] / m], np.eye(3)[k] / m, np.zeros(6)))) for k in range(3)]
        about = inertia.com_tensor(pi)
        moments = [[self.interval(about[i, j], _about_centre(m, h, i, j)) for j in range(3)] for i in range(3)]
        return {"mass": each[0], "centre": np.array(centre), "inertia": np.array(moments), "parameters": each}


def estimated(W: np.ndarray, b: np.ndarray) -> Body:
    """The body of W pi = b (unit noise). Raises SolverError if Newton's method does not converge."""
    scale, null = np.ones(10), np.zeros((10, 0))
    pi, covariance = np.zeros(10), np.zeros((10, 10))
    for _ in range(3):  # natural units and mass depend on each other
        pi, covariance, null = _least_squares(W, b, scale)
        mass = max(abs(pi[0]), MIN_MASS)
        scale = mass * np.array([1.0] + [CENTRE_RANGE] * 3 + [CENTRE_RANGE**2] * 6)
    prior = _ball(max(pi[0], MIN_MASS), _centre(W, b, scale))
    body = _nearest(W, b, prior, scale)
    pi = pi + scale * (null @ (null.T @ ((body - pi) / scale)))  # undetermined directions of the physical body
    cost = np.linalg.norm(W @ body - b) ** 2 - np.linalg.norm(W @ pi - b) ** 2
    return Body(body, pi, covariance, null, scale, float(max(cost, 0.0)))


def _least_squares(W, b, scale) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(pi, its covariance, directions not determined in units of `scale`)."""
    R: Any = np.linalg.qr(np.column_stack((W * scale, b)), mode="r")
    _, s, Vt = np.linalg.svd(R[:, :-1])
    seen = s > MIN_SINGULAR_VALUE * s[0] if s[0] > 0.0 else np.zeros(10, bool)
    V, inverse = Vt[seen].T, 1.0 / s[seen]
    half = scale[:, None] * V * inverse
    pi = half @ (half.T @ (W.T @ b))
    return pi, half @ half.T, Vt[~seen].T


def _centre(W, b, scale) -> np.ndarray:
    """Add rows that hold first moments and inertia near zero, in natural units, so that undetermined ones are zero."""
    ridge = np.diag(np.concatenate(([0.0], 1.0 / scale[1:])))
    pi = np.linalg.lstsq(np.vstack((W, ridge)), np.concatenate((b, np.zeros(10))), rcond=None)[0]
    return pi[1:4] / pi[0] if pi[0] > 0.0 else np.zeros(3)


def _ball(mass: float, centre: np.ndarray) -> np.ndarray:
    radius = (3.0 * mass / (4.0 * np.pi * DENSITY)) ** (1.0 / 3.0)
    return inertia.from_com(mass, centre, 0.4 * mass * radius**2 * np.eye(3))


def _nearest(W, b, prior, scale) -> np.ndarray:
    """The minimum of the module's function, with the weight of the distance falling to 1 from a value at which the
    prior is the answer: each minimum is near the previous one, so Newton's method takes few steps (path following:
    Nesterov and Nemirovskii 1994).
    """
    R, y = W * scale, prior / scale
    basis, P0 = BASIS * scale[:, None, None], inertia.pseudo(prior)
    pull = np.einsum("ij,kij->k", np.linalg.inv(P0), basis)
    weight = max(1.0, float(np.sum((R @ y - b) ** 2)))
    while weight > 1.0:
        y = _minimum(R / np.sqrt(weight), b / np.sqrt(weight), basis, pull, y, 1e-2)
        weight *= 0.1
    return _minimum(R, b, basis, pull, y, 1e-6) * scale


def _minimum(R, b, basis, pull, y, close: float) -> np.ndarray:
    """Newton's method with halved steps on 1/2 |R y - b|^2 + pull y - log det P(y), to a decrement of `close`."""

    def value(y):
        sign, logarithm = np.linalg.slogdet(P := np.einsum("k,kij->ij", y, basis))
        inside = sign > 0.0 and np.linalg.eigvalsh(P)[0] > 0.0
        return 0.5 * np.sum((R @ y - b) ** 2) + pull @ y - logarithm if inside else np.inf

    decrement = np.inf
    for _ in range(200):
        inverse = np.linalg.inv(np.einsum("k,kij->ij", y, basis))
        X = np.einsum("ij,kjl->kil", inverse, basis)
        gradient = R.T @ (R @ y - b) + pull - np.einsum("kii->k", X)
        step = -np.linalg.solve(R.T @ R + np.einsum("kij,lji->kl", X, X), gradient)
        decrement, t = float(np.sqrt(max(-gradient @ step, 0.0))), 1.0
        if decrement > 0.25:  # below it full steps stay feasible
            now = value(y)
            while t > 1e-12 and value(y + t * step) > now - 0.1 * t * decrement**2:
                t *= 0.5
        y = y + t * step
        if decrement < close:
            return y
    raise SolverError(
        f"the nearest body was not found: Newton's decrement is {decrement:.3g} after 200 steps; see the log's units"
    )


def _about_centre(m, h, i, j) -> np.ndarray:
    """Gradient of entry (i, j) of I - (|h|^2 1 - h h^T) / m by the ten parameters."""
    out, same = np.zeros(10), float(i == j)
    out[0] = (h @ h * same - h[i] * h[j]) / m**2
    out[1:4] = -2.0 * h * same / m
    out[1 + i] += h[j] / m
    out[1 + j] += h[i] / m
    out[4 + inertia.SYMMETRIC[i, j]] = 1.0
    return out


def _open(*shape: int) -> np.ndarray:
    return np.broadcast_to([-np.inf, np.inf], (*shape, 2)).copy()


# --- findings --------------------------------------------------------------------------------------------------------


MAX_CHI_SQUARE = 29.6  # 99.9 % of chi-square with ten degrees of freedom
MAX_MASS_ERROR = 0.2  # of the mass
MAX_CENTRE_DISTANCE = 1.5  # m, from the frame
MAX_RESIDUAL_RATIO = 1.5  # residual of two logs together relative to that of each alone
MAX_UNEXPLAINED = 0.15  # of the torques


def body_findings(body: Body) -> list[Finding]:
    """Findings on the numbers alone."""
    out, box = [], body.quantities()
    low, high = box["mass"]
    m, half = body.least_squares[0], 0.5 * (high - low)
    if high < 0.0:
        out.append(
            Finding("mass", f"the log shows a negative mass, {m:.3g} kg +-{half:.2g}",
                  "Check the sign of torques, the order of the two logs, whether the sensor was tared with the load"
                  " on, and gravity.", fatal=True)
        )  # fmt: skip
    elif low <= 0.0:
        out.append(
            Finding("mass", f"no load is visible: its mass is {m:.3g} kg +-{half:.2g}",
                  "Move all joints more and faster, for 10 s or longer, or take a heavier load.", fatal=True)
        )  # fmt: skip
    elif half > MAX_MASS_ERROR * m:
        out.append(
            Finding("excitation", f"the mass is known to +-{100.0 * half / m:.0f} % only",
                  "Move the joints that lift the load, over wide angles.")
        )  # fmt: skip
    elif not np.isfinite(box["centre"]).all():
        axes = ", ".join(a for a, x in zip("xyz", box["centre"]) if not np.isfinite(x).all())
        out.append(
            Finding("excitation", f"the motion does not determine the centre of mass along {axes} of the frame",
                  "Turn the load in all directions against gravity; the reported value there is the frame's origin.")
        )  # fmt: skip
    if body.distance > MAX_CHI_SQUARE:
        out.append(
            Finding("bodies", f"no rigid body explains the log: the nearest has a chi-square of"
                  f" {body.distance:.0f} of 10, where {MAX_CHI_SQUARE:g} is the most to be expected",
                  "Look at the frame, at friction that grows with the load, at a load that swings or slips, at the"
                  " robot's model.")
        )  # fmt: skip
    c = inertia.com(body.parameters)
    if np.linalg.norm(c) > MAX_CENTRE_DISTANCE and not out:
        out.append(Finding("centre", f"the centre of mass is {np.linalg.norm(c):.2g} m from the frame",
                         "Look at units, the frame and the sensor's moments."))  # fmt: skip
    return out


def two_log_findings(together: Solved) -> list[Finding]:
    """A finding if each log alone is explained much better than both together."""
    out = []
    data, rms = together.factored, together.residuals()
    for k, source in enumerate(data.sources):
        channels = data.owners == k
        alone = solved(data.of(k), correlated=False).residuals()
        ratio = float(np.sqrt(np.mean((rms[channels] / np.maximum(alone, 1e-12 * rms[channels].max())) ** 2)))
        if ratio > MAX_RESIDUAL_RATIO:
            out.append(
                Finding("logs", f"the logs do not agree: residuals of {source.label!r} are {ratio:.2g} times those that"
                      " it has alone", "Record both on the same robot, equally warm, with only the load changed.")
            )  # fmt: skip
    return out


def model_findings(solved: Solved, torques: np.ndarray, source: str) -> list[Finding]:
    """Findings on the model; torques (nv,): root mean square of the measured ones [N m]."""
    left = float(np.linalg.norm(solved.residuals()) / np.linalg.norm(torques))
    if left < MAX_UNEXPLAINED:
        return []
    return [
        Finding("model", f"the robot ({source}) and its load leave {100.0 * left:.0f} % of the torques unexplained",
              "Identify the robot first (geomctrl identify) and give its robot.json, or a log without the load.")
    ]  # fmt: skip


# --- the report ------------------------------------------------------------------------------------------------------


MOMENTS = (("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("xz", 0, 2), ("yz", 1, 2))
MIN_LENGTH = 0.05  # m: smallest length by which a load is judged


@dataclass(frozen=True, eq=False)
class LoadReport(Report):
    """A load in the frame `frame`, with the data it came from.

    `robot`: the given robot, with the load attached; `source`: the method; `extra`: other data of the robot's file;
    `friction`: of the joints with the load on, "fv1" [N m s/rad], "fc1" [N m], ..., empty for a sensor.
    """

    robot: Robot
    frame: str
    body: Body
    solved: Solved
    source: str
    history: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    friction: Mapping[str, float] = field(default_factory=dict)

    @property
    def parameters(self) -> np.ndarray:
        """(10,), in the frame: m, m c, inertia about its origin."""
        return self.body.parameters

    @property
    def mass(self) -> float:
        """[kg]"""
        return float(self.parameters[0])

    @property
    def centre(self) -> np.ndarray:
        """Centre of mass (3,) [m] in the frame."""
        return inertia.com(self.parameters)

    @property
    def inertia(self) -> np.ndarray:
        """(3, 3) [kg m^2] about the centre of mass, in the frame's axes."""
        return inertia.com_tensor(self.parameters)

    @cached_property
    def intervals(self) -> dict[str, np.ndarray]:
        """95 % intervals: "mass" (2,), "centre" (3, 2), "inertia" (3, 3, 2), "parameters" (10, 2); infinite if the
        motion does not determine them.
        """
        return self.body.quantities()

    @cached_property
    def not_excited(self) -> dict[str, str]:
        """The parameters that the motion does not, or hardly, determine, with reasons."""
        length = max(float(np.sqrt(np.trace(inertia.pseudo(self.parameters)[:3, :3]) / self.mass)), MIN_LENGTH)
        scale = self.mass * np.array([1.0] + [length] * 3 + [length**2] * 6)
        half = 0.5 * np.diff(self.intervals["parameters"]).ravel()
        reasons = {}
        for name, h, s in zip(INERTIAL, half, scale):
            if not np.isfinite(h):
                reasons[name] = "the motion does not determine it"
            elif h > s:
                reasons[name] = f"known to +-{h:.2g}, where {s:.2g} is a load's of this mass and size"
        return reasons

    @property
    def errors(self) -> list[dict[str, Any]]:
        """For each log and channel (joint or axis of the sensor): rms, and rms without a load [N m, N]."""
        with_, without = self.solved.residuals(), self.solved.residuals(np.zeros(10))
        logs = [(s.label, c) for s in self.solved.factored.sources for c in s.channels]
        return [
            {"log": log, "channel": c, "rms": float(a), "rms_without_load": float(b)}
            for (log, c), a, b in zip(logs, with_, without)
        ]

    def text(self) -> str:
        """The report as plain text."""
        columns = [Column("log"), Column(""), Column("RMS", 4), Column("with no load", 4)]
        errors = Table(columns, [list(error.values()) for error in self.errors])
        return rendered("load.txt", report=self, values=self._values(), errors=errors, definitions=LOAD_DEFINITIONS)

    def _values(self) -> Table:
        free, box = self.body.least_squares, self.intervals
        with np.errstate(invalid="ignore", divide="ignore"):
            centre, moments = inertia.com(free), inertia.com_tensor(free)
        rows = [["mass [kg]", self.mass, free[0], *box["mass"]]]
        rows += [[f"centre {'xyz'[k]} [m]", self.centre[k], centre[k], *box["centre"][k]] for k in range(3)]
        rows += [
            [f"inertia {name} [kg m^2]", self.inertia[i, j], moments[i, j], *box["inertia"][i, j]]
            for name, i, j in MOMENTS
        ]
        columns = [Column(title, 5) for title in ("value", "least sq.", "95 % low", "high")]
        return Table([Column(""), *columns], rows)

    def _tables(self) -> dict[str, Any]:
        """All results as plain numbers, strings and lists, for JSON; infinite intervals hold null."""
        return plain({
            **heading(self),
            "frame": self.frame,
            "mass": self.mass,
            "centre": self.centre,
            "inertia": self.inertia,
            "parameters": dict(zip(INERTIAL, self.parameters)),
            "least_squares": dict(zip(INERTIAL, self.body.least_squares)),
            "intervals": self.intervals,
            "not_excited": self.not_excited,
            "friction": self.friction,
            "errors": self.errors,
        })  # fmt: skip

    def _writers(self, folder: Path) -> list[Callable[[], Path]]:
        load = {"frame": self.frame, "parameters": self.parameters.tolist()}
        return [
            *super()._writers(folder),
            lambda: save_model(self.robot, folder / "robot.json", {**self.extra, "load": load}),
            lambda: save_or_why(save_urdf, self.robot, folder / "robot.urdf"),
        ]
