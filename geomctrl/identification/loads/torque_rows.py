"""Least squares over several logs whose channels (joints' torques, a sensor's axes) have different noise.

    b = N y + W x + e,    e of channel c of log l white with standard deviation s_lc

The nuisances y (friction, offsets, the robot's own parameters) are eliminated by orthogonal projection, whether the
logs determine them or not; the remaining W and b contain all information of the logs about x. For each channel a
triangular factor is stored, so that memory does not grow with the logs; s_lc are estimated from the residuals
iteratively (Gautier 1997).

`TorqueLog` supplies the rows of joint torques for a load. A load moves with the body that carries it, so its columns
are that body's, seen from the load's frame,

    tau = Y(q, v, a) x + Y_body(q, v, a) T pi_load + friction of the loaded robot

Two logs: x are unknown (base parameters), and the same in both (Khalil, Gautier, Lemoine 2007). One log: x are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from geomctrl.arguments import instance, shown
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError
from geomctrl.identification.estimators import Estimate
from geomctrl.identification.estimators.conditioning import MIN_SINGULAR_VALUE, correlation_factors
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.columns import Curve, coulomb
from geomctrl.identification.model.compressed import triangle
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Frame
from geomctrl.robot import Robot

ITERATIONS = 6  # iterations of the weights, after which the noise changes by less than a percent
MIN_ROWS_PER_UNKNOWN = 1.5  # rows per unknown in each log: fewer do not determine its noise
Chunk = tuple[np.ndarray, np.ndarray, np.ndarray]


class Source(Protocol):
    """One log: `rows()` yields ([N W] (n, channels, p), b (n, channels), used (n, channels)), again at every call."""

    @property
    def label(self) -> str: ...

    @property
    def channels(self) -> Sequence[str]: ...

    def rows(self) -> Iterator[Chunk]: ...


@dataclass(frozen=True, eq=False)
class FactoredLogs:
    """The triangular factors of [N W b] of every channel of every log, and their numbers of rows."""

    sources: Sequence[Source]
    factors: list[np.ndarray]
    counts: np.ndarray
    nuisances: int

    @property
    def owners(self) -> np.ndarray:
        """The number of each channel's log."""
        return np.repeat(np.arange(len(self.sources)), [len(s.channels) for s in self.sources])

    @property
    def unknowns(self) -> int:
        return self.factors[0].shape[1] - 1

    def of(self, log: int) -> FactoredLogs:
        """The factors of one log."""
        channels = np.flatnonzero(self.owners == log)
        return FactoredLogs(
            [self.sources[log]], [self.factors[k] for k in channels], self.counts[channels], self.nuisances
        )


@dataclass(frozen=True, eq=False)
class Solved:
    """W (k, w), b (k,): the system after elimination of the nuisances, with unit noise: the information is W^T W.

    noise, correlation (channels,): standard deviation of the residuals, and the factor by which their correlation in
    time inflates variances; W and b include both. nuisances (m,): those of smallest norm that fit with the
    least-squares x.
    """

    factored: FactoredLogs
    W: np.ndarray
    b: np.ndarray
    x: np.ndarray
    nuisances: np.ndarray
    noise: np.ndarray
    correlation: np.ndarray

    def residuals(self, x: np.ndarray | None = None) -> np.ndarray:
        """Root mean square per channel [N m, N] with this x, the nuisances fitted again."""
        x = self.x if x is None else x
        weights = 1.0 / (self.noise * np.sqrt(self.correlation))
        y = _eliminated(self.factored, weights).nuisances(x)
        return _rms(self.factored, np.concatenate((y, x)))


def factored(sources: Sequence[Source], nuisances: int) -> FactoredLogs:
    """Read the logs, once. Raises DataError if too few rows are left."""
    factors, counts = [], []
    for source in sources:
        n = len(source.channels)
        own: list[np.ndarray | None] = [None] * n
        used = np.zeros(n, dtype=int)
        for A, b, mask in source.rows():
            for c in range(n):
                keep = mask[:, c]
                block = np.column_stack((A[keep, c], b[keep, c]))
                before = own[c]
                own[c] = triangle(np.asfortranarray(block if before is None else np.vstack((before, block))))
                used[c] += int(keep.sum())
        if not used.any():
            raise DataError(f"{source.label}: no usable sample is left (all are masked)")
        factors += own
        counts.append(used)
    out = FactoredLogs(sources, factors, np.concatenate(counts), nuisances)
    for source, rows in zip(sources, counts):
        if rows.sum() < MIN_ROWS_PER_UNKNOWN * out.unknowns:
            raise DataError(
                f"{source.label}: too short: {rows.sum()} samples of all channels for {out.unknowns} unknowns; expected"
                " about 10 s of motion of all joints"
            )
    return out


def solved(data: FactoredLogs, correlated: bool = True) -> Solved:
    """Weighted least squares with weights from the residuals. correlated: estimate their correlation in time, which
    reads the logs again. Raises DataError for logs of zeros.
    """
    b = np.array([np.linalg.norm(R[:, -1]) for R in data.factors])
    if not b.any():
        raise DataError(f"{data.sources[0].label}: every usable sample is zero")
    weights = np.sqrt(np.maximum(data.counts, 1)) / np.where(b > 0.0, b, b.max())
    share = 1.0 - data.unknowns / data.counts.sum()
    floor, noise = 1e-12, 1.0 / weights
    for _ in range(ITERATIONS):
        left = _eliminated(data, weights)
        x = _least_squares(left.W, left.b)
        noise = _rms(data, np.concatenate((left.nuisances(x), x))) / np.sqrt(share)
        noise = np.maximum(noise, floor * max(noise.max(), 1e-300))
        weights = 1.0 / noise
    left = _eliminated(data, weights)
    x = _least_squares(left.W, left.b)
    correlation = np.ones(len(noise))
    if correlated:
        correlation = _correlation(data, np.concatenate((left.nuisances(x), x)))
    left = _eliminated(data, weights / np.sqrt(correlation))
    x = _least_squares(left.W, left.b)
    return Solved(data, left.W, left.b, x, left.nuisances(x), noise, correlation)


# --- pieces ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _ReducedSystem:
    """The system without its nuisances, and the data to recover them."""

    W: np.ndarray
    b: np.ndarray
    back: np.ndarray  # y = back @ (b0 - W0 x)
    W0: np.ndarray
    b0: np.ndarray

    def nuisances(self, x: np.ndarray) -> np.ndarray:
        return self.back @ (self.b0 - self.W0 @ x)


def _eliminated(data: FactoredLogs, weights: np.ndarray) -> _ReducedSystem:
    """Project out an orthonormal basis U of the nuisances' columns: W - U U^T W, b - U U^T b."""
    R = triangle(np.asfortranarray(np.vstack([w * R for w, R in zip(weights, data.factors)])))
    m = data.nuisances
    N, W, b = R[:, :m], R[:, m:-1], R[:, -1]
    length = np.linalg.norm(N, axis=0)
    length[length <= 1e-12 * length.max(initial=0.0)] = np.inf  # columns without excitation: 0
    U, s, Vt = np.linalg.svd(N / length, full_matrices=False)
    keep = s > MIN_SINGULAR_VALUE * s.max(initial=0.0)
    U, s, Vt = U[:, keep], s[keep], Vt[keep]
    back = (Vt.T / s) @ U.T / length[:, None]
    left = W - U @ (U.T @ W)
    left[:, np.linalg.norm(left, axis=0) <= MIN_SINGULAR_VALUE * np.linalg.norm(W, axis=0)] = 0.0  # rounding errors
    return _ReducedSystem(left, b - U @ (U.T @ b), back, W, b)


def _least_squares(W: np.ndarray, b: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(W, axis=0)
    length[length == 0.0] = np.inf
    return np.linalg.lstsq(W / length, b, rcond=MIN_SINGULAR_VALUE)[0] / length


def _rms(data: FactoredLogs, x: np.ndarray) -> np.ndarray:
    norms = np.array([np.linalg.norm(R[:, :-1] @ x - R[:, -1]) for R in data.factors])
    return norms / np.sqrt(np.maximum(data.counts, 1))


def _correlation(data: FactoredLogs, x: np.ndarray) -> np.ndarray:
    """Per channel, 1 + 2 sum of the residual's autocorrelations up to the first negative one."""
    out = []
    for source in data.sources:
        parts = [np.where(mask, b - A @ x, 0.0) for A, b, mask in source.rows()]
        out.append(correlation_factors(np.concatenate(parts)))
    return np.concatenate(out)


# --- joint torques as rows -------------------------------------------------------------------------------------------


LOAD_DEPENDENT = ("viscous", "coulomb", "offset", "curve")  # parameters that may differ with the load on


@dataclass(frozen=True, eq=False)
class Columns:
    """The unknowns in their order: numbers of `base` parameters (none if all of x is `known`); with `share` a torque
    per unit of transmitted torque of each joint; separate friction of the loaded robot (`own`); ten of the load.

    transmitted: rigid-body parameters (all bodies', the load's) that determine the transmitted torques, for `share`.
    """

    model: RegressorModel
    frame: Frame
    base: np.ndarray
    own: np.ndarray
    known_parameters: np.ndarray | None = None
    transmitted: tuple[np.ndarray, np.ndarray] | None = None
    handover: np.ndarray = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "handover", inertia.transform(self.frame.placement, np.eye(10)).T)

    @property
    def nuisances(self) -> int:
        share = self.model.robot.nv if self.transmitted is not None else 0
        return len(self.base) + share + len(self.own)

    def rows(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, loaded: bool) -> list[np.ndarray]:
        """[columns (n, nv, nuisances + 10), known torques (n, nv)]."""
        Y = self.model.regressor(q, v, a)
        own, load = Y[..., self.own], self.load(Y)
        if not loaded:
            own, load = np.zeros_like(own), np.zeros_like(load)
        parts = [Y[..., self.base], own, load]
        if self.transmitted is not None:
            x, pi = self.transmitted
            torque = Y[..., : len(x)] @ x + load @ pi
            share = np.abs(torque) * coulomb(v, self.model.smoothing)
            parts.insert(1, share[..., None] * np.eye(v.shape[1]))
        known_torque = np.zeros(v.shape) if self.known_parameters is None else Y @ self.known_parameters
        return [np.concatenate(parts, -1), known_torque]

    def load(self, Y: np.ndarray) -> np.ndarray:
        """(n, nv, 10): torques per unit of the load's parameters in its frame."""
        first = 10 * self.frame.body
        return Y[..., first : first + 10] @ self.handover


@dataclass(frozen=True, eq=False)
class TorqueLog:
    """A log of joint torques, or of motor currents, as a `Source`; `data` is filtered; loaded: with the load."""

    data: Dataset
    columns: Any
    loaded: bool

    @property
    def label(self) -> str:
        return self.data.label

    @property
    def channels(self) -> Sequence[str]:
        return self.columns.model.robot.dof_names

    def rows(self) -> Iterator[Chunk]:
        values = partial(self.columns.rows, loaded=self.loaded)
        for (A, known_torque), tau, mask, _ in self.columns.model._stream(self.data, values):
            yield A, tau - known_torque, mask


# --- robots whose parameters are known -------------------------------------------------------------------------------


SYMBOLS = {"fv": "viscous", "fc": "coulomb", "fo": "offset", "Ir": "rotor", "ks": "springs"}
FRICTION = ("viscous", "coulomb", "offset")


@dataclass(frozen=True, eq=False)
class Known:
    """Parameters x (size,) of a model, and a description of their source."""

    model: RegressorModel
    x: np.ndarray
    source: str


def known(robot: Robot, identified: Estimate | Mapping[str, Any] | None, model: RegressorModel | None = None) -> Known:
    """The known parameters. identified: an Estimate of this robot; the result of `load_extra` for its robot.json; None:
    the robot's own inertias, damping, friction and armatures, in `model`. The model has viscous and Coulomb friction
    and offsets, zero if unknown. Raises ArgumentError.
    """
    robot_parameters = _known(robot, identified, model)
    model = robot_parameters.model._with_options(
        **{kind: True for kind in FRICTION if not len(robot_parameters.model.acts[kind])}
    )
    x = np.zeros(model.size)
    x[[model.names.index(name) for name in robot_parameters.model.names]] = robot_parameters.x
    return Known(model, x, robot_parameters.source)


def _known(robot: Robot, identified: Any, model: RegressorModel | None) -> Known:
    if identified is None:
        model = RegressorModel(robot) if model is None else model
        return Known(model, model.prior, "as its model says")
    if model is not None:
        raise ArgumentError("model: the one of `identified` is used; give one of the two")
    if isinstance(identified, Estimate):
        if identified.model.robot.joint_names != robot.joint_names:
            raise ArgumentError(f"identified: expected an estimate of {robot.name!r}, got {shown(identified)}")
        return Known(identified.model, identified.x, f"identified by {identified.method!r}")
    extra = instance("identified", identified, Mapping, "an Estimate, what load_extra reads of a robot.json, or None")
    return _of_extra(robot, extra)


def _of_extra(robot: Robot, extra: Mapping[str, Any]) -> Known:
    values = extra.get("identified")
    if not isinstance(values, Mapping):
        raise ArgumentError(
            "identified: expected what geomctrl identify keeps in robot.json, with friction under 'identified', got"
            f" {', '.join(map(repr, extra)) or 'nothing'}"
        )
    acts: dict[str, Any] = {kind: [] for kind in SYMBOLS.values()}
    for name in values:
        match = re.fullmatch(r"(fv|fc|fo|Ir|ks)(\d+)", name)
        if match:
            acts[SYMBOLS[match[1]]].append(int(match[2]) - 1)
    curves = [Curve(**c) for c in extra.get("curves", ())]
    transmission = extra.get("transmission")
    if transmission is not None and np.array_equal(transmission, np.eye(robot.nv)):
        transmission = None  # actuators then have the names of joints
    model = RegressorModel(
        robot, **acts, curves=curves, transmission=transmission, smoothing=extra.get("smoothing", 0.01)
    )
    own = [name for name in values if name not in model.names[model.inertial :]]
    if own:
        raise ArgumentError(
            f"identified: {own[0]!r} is a user-defined column, which robot.json does not contain: pass the estimate"
        )
    x = model.prior
    x[model.inertial :] = [values[name] for name in model.names[model.inertial :]]
    return Known(model, x, f"identified by {extra.get('method')!r} from {extra.get('log')!r}")
