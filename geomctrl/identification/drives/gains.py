"""`drive_gains`: identify the torque per motor current from logs of motor currents, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, exactly, listed, number, shown, vector
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.identification.errors import ExcitationError
from geomctrl.identification.estimators.estimate import intervals
from geomctrl.identification.findings import Finding
from geomctrl.identification.loads.load import checked_arguments, filtered, load_frame, own_friction, refuse
from geomctrl.identification.loads.torque_rows import Columns, TorqueLog, factored
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.identification.report.rendering import GAIN_DEFINITIONS, Column, Report, Table, heading, plain, rendered
from geomctrl.identification.settings import Filtering, Reading
from geomctrl.mechanism import inertia as body
from geomctrl.robot import Robot

from .currents import Gains, fitted, read_currents


@dataclass(frozen=True, eq=False)
class DriveGains(Report):
    """Torque per motor current of each joint, with intervals and reasons for refusal.

    Attributes
    ----------
    gains : ndarray, shape (nv,)
        Gains [N m/A]; nan for joints in `refused`.
    refused : dict
        Reason for each joint whose gain is not determined.
    estimates, std : ndarray, shape (nv,)
        Estimates, including refused ones, and their standard deviations.
    known_torques : ndarray, shape (nv, 2)
        RMS torque of the known load or bodies, and of its weight only, at the joints [N m].
    rms, relative : ndarray, shape (logs, nv)
        Residuals of the currents [A], and relative to the currents.
    load : ndarray, shape (10,), or None
        Identified parameters of the load.
    """

    robot: Robot
    estimates: np.ndarray
    std: np.ndarray
    refused: dict[str, str]
    known_torques: np.ndarray
    logs: tuple[str, ...]
    rms: np.ndarray
    relative: np.ndarray
    source: str
    history: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    load: np.ndarray | None = None

    @property
    def gains(self) -> np.ndarray:
        """Gains (nv,) [N m/A], nan where refused. `Reading(current_gains=...)` accepts them if none is refused."""
        kept = [name not in self.refused for name in self.robot.dof_names]
        return np.where(kept, self.estimates, np.nan)

    @property
    def intervals(self) -> np.ndarray:
        """95 % intervals (nv, 2) [N m/A]; infinite if the logs do not determine the gain."""
        return intervals(self.estimates, self.std, 0.95)

    def text(self) -> str:
        """Return the report as plain text."""
        columns = [Column("joint"), Column("gain", 5), Column("95 % low", 5), Column("high", 5), Column("known", 3)]
        columns += [Column("weight", 3), *(Column("RMS", 3), Column("relative", 2, percent=True)) * len(self.logs)]
        rows = zip(
            self.robot.dof_names, self.estimates, self.intervals, self.known_torques, self.rms.T, self.relative.T
        )
        table = [
            [name, gain, *interval, *known_torque, *np.stack((rms, relative), -1).ravel()]
            for name, gain, interval, known_torque, rms, relative in rows
        ]
        return rendered("gains.txt", report=self, table=Table(columns, table), definitions=GAIN_DEFINITIONS)

    def _tables(self) -> dict[str, Any]:
        """Return numbers, strings and lists, for JSON; null for refused or undetermined gains."""
        return plain({
            **heading(self),
            "joints": self.robot.dof_names,
            **{
                key: getattr(self, key)
                for key in ("gains", "estimates", "intervals", "refused", "known_torques", "logs", "rms", "relative")
            },
            "load": self.load,
        })  # fmt: skip


MAX_HALF_INTERVAL = 0.25  # largest half of the 95 % interval, relative to the gain; wider ones are refused
MIN_WEIGHT_SHARE = 0.05  # smallest share of weight in the known torque that counts
MAX_UNEXPLAINED = 0.15  # largest share of the currents that the model may leave unexplained
SIGN_SIGMA = 4.0  # standard deviations from zero at which a gain's sign is determined
UNIT_GAIN_TOLERANCE = 0.03  # distance from 1 N m/A: no real set of drives is as close to it


@dataclass(frozen=True, eq=False)
class KnownLoad:
    """A load of known mass, optionally with known centre of mass and inertia.

    Parameters
    ----------
    mass : float
        [kg], > 0.
    centre : array_like (3,), optional
        Centre of mass [m] in the frame that carries it; default identified.
    inertia : array_like (3, 3), optional
        Inertia about the centre [kg m^2], in the frame's axes; default identified.

    Examples
    --------
    >>> from geomctrl.identification import KnownLoad
    >>> KnownLoad(2.5, centre=(0.0, 0.0, 0.05)).mass
    2.5
    """

    mass: float
    centre: ArrayLike | None = None
    inertia: ArrayLike | None = None


def drive_gains(
    robot: Robot,
    log: Dataset | str | Path,
    without_load: Dataset | str | Path | None = None,
    *,
    load: float | KnownLoad | None = None,
    frame: str | None = None,
    known_bodies: Sequence[str] = (),
    model: RegressorModel | None = None,
    friction: str = "own",
    reading: Reading | None = None,
    filtering: Filtering | None = None,
) -> DriveGains:
    """Identify the torque per motor current of every joint [N m/A] from logs of currents.

    The robot's inertias and friction are identified too, so they need not be known. The scale is fixed by a load of
    known mass or by bodies with known parameters.

    Parameters
    ----------
    robot : Robot
        The robot.
    log : Dataset, str or Path
        Log of motor currents, with the load if there is one. A Dataset holds currents [A] as tau.
    without_load : Dataset, str or Path, optional
        Log without the load.
    load : float or KnownLoad, optional
        Mass of the load [kg], or what else is known of it.
    frame : str, optional
        Frame that carries the load. Default: the last body.
    known_bodies : sequence of str
        Instead of a load: bodies whose inertial parameters in the robot's model are correct. At least one of them must
        affect the torques separately from unknown ones.
    model : RegressorModel, optional
        Default: base parameters, friction, offsets, rotors.
    friction : {"own", "same"}
        Whether the loaded robot has its own friction parameters. Default "own".
    reading, filtering : optional
        As for `identify`. The default cut-off is five times the bandwidth of the motion.

    Returns
    -------
    DriveGains
        A report with `gains` (nv,) [N m/A], nan where the interval is wider than +-25 %; `estimates`, `std` and
        `intervals` (nv, 2) of all joints; `refused`, the reason by joint; `findings`.

    Raises
    ------
    ExcitationError
        If all gains are refused.
    DataError, ArgumentError, NameNotFoundError
        If a log or argument is invalid.

    Notes
    -----
    Gautier and Briot 2014.

    Examples
    --------
    gains = drive_gains(robot, "with.csv", "without.csv", load=5.012, frame="tool0").gains
    """
    reading, filtering = checked_arguments(robot, log, without_load, model, reading, filtering)
    filtering = replace(filtering, saturation=False)
    choice("friction", friction, ("own", "same"))
    model = (model or RegressorModel(robot))._with_options(rotor=True)
    known_bodies = listed("known_bodies", known_bodies)
    if load is None:
        scale = _Bodies(model, _numbers(robot, known_bodies))
        refuse("needs the mass of the load", without_load=without_load, frame=frame)
        logs, loaded = [log], [True]
    else:
        load = load if isinstance(load, KnownLoad) else KnownLoad(load)
        scale = _load(model, load, frame, friction)
        if known_bodies:
            raise ArgumentError("known_bodies: expected none, because the load has a known mass")
        if without_load is None:
            raise ArgumentError(
                "without_load: expected a log without the load, which separates the load from the last link"
            )
        logs, loaded = [without_load, log], [False, True]
    data, _ = filtered([read_currents(x, robot, reading, filtering.resample) for x in logs], robot, filtering)
    sources = [TorqueLog(x, scale, on) for x, on in zip(data, loaded)]
    gains = fitted(factored(sources, 0))
    return _report(robot, scale, data, gains)


# --- known torques, and columns of unknown parameters ----------------------------------------------------------------


class _Load:
    """A load; `is_known` marks its known parameters, out of pi (10,)."""

    def __init__(self, columns: Columns, pi: np.ndarray, is_known: np.ndarray):
        self.columns, self.model, self.pi, self.is_known = columns, columns.model, pi, is_known
        self.description = f"a load of {pi[0]:g} kg at {columns.frame.name!r}"

    def rows(self, q, v, a, loaded: bool) -> list[np.ndarray]:
        """[[Z kappa] (n, nv, p + 1), no torque to subtract from the currents]."""
        A, none = self.columns.rows(q, v, a, loaded)
        load, is_known = A[..., -10:], self.is_known
        kappa = load[..., is_known] @ self.pi[is_known]
        return [np.concatenate((A[..., :-10], load[..., ~is_known], kappa[..., None]), -1), none]

    def load(self, theta: np.ndarray) -> np.ndarray:
        pi = self.pi.copy()
        pi[~self.is_known] = theta[len(theta) - (~self.is_known).sum() :]
        return pi


class _Bodies:
    """Bodies whose parameters are those of the model."""

    def __init__(self, model: RegressorModel, numbers: list[int]):
        self.model = model
        known_columns = (10 * np.array(numbers)[:, None] + np.arange(10)).ravel()
        self.known_columns, self.x = known_columns, model.prior[known_columns]
        self.others = np.setdiff1d(np.arange(model.size), known_columns)
        self.description = "bodies as the model has them: " + ", ".join(model.robot.body_names[k] for k in numbers)

    def rows(self, q, v, a, loaded: bool) -> list[np.ndarray]:
        Y = self.model.regressor(q, v, a)
        kappa = (Y[..., self.known_columns] @ self.x)[..., None]
        return [np.concatenate((Y[..., self.others], kappa), -1), np.zeros(v.shape)]

    def load(self, theta: np.ndarray) -> None:
        return None


def _load(model: RegressorModel, load: KnownLoad, frame: str | None, friction: str) -> _Load:
    mount, centre, inertia = load_frame(model.robot, frame), load.centre, load.inertia
    expected = "kilograms > 0 and < 1e6, because the load sets the scale"
    mass = number("mass", load.mass, expected, lambda x: 0.0 < x < 1e6)
    is_known = np.array([True] + [centre is not None] * 3 + [inertia is not None] * 6)
    if centre is None and inertia is not None:
        raise ArgumentError("centre: expected a centre, because the inertia about it is given")
    c = vector("centre", np.zeros(3) if centre is None else centre, 3)
    I = np.zeros((3, 3)) if inertia is None else exactly("inertia", inertia, (3, 3))
    if not np.allclose(I, I.T, rtol=0.0, atol=1e-9 * np.abs(I).max()):
        raise ArgumentError(f"inertia: expected a symmetric matrix, got {I.tolist()}")
    pi = body.from_com(mass, c, I)
    body.check(pi, "load")
    own = own_friction(model) if friction == "own" else np.zeros(0, int)
    return _Load(Columns(model, mount, model.base.columns, own), pi, is_known)


def _numbers(robot: Robot, names: Sequence[str]) -> list[int]:
    if not names:
        raise ArgumentError("load: expected the mass of a load, or known_bodies: one of them sets the scale")
    for name in names:
        if name not in robot.body_names:
            raise NameNotFoundError(f"known_bodies: expected some of {', '.join(robot.body_names)}, got {shown(name)}")
    numbers = [robot.body_names.index(name) for name in dict.fromkeys(names)]
    if not robot.parameters[numbers].any():
        raise ArgumentError(
            f"known_bodies: {', '.join(names)}: massless in the robot's model, so they do not set the scale"
        )
    return numbers


# --- the result -----------------------------------------------------------------------------------------------------


def _report(robot: Robot, scale: _Load | _Bodies, data: list[Dataset], gains: Gains) -> DriveGains:
    known_torques = _known_torques(scale, data[-1])
    rms = gains.noise.reshape(len(data), robot.nv)
    size = np.array([np.sqrt(np.mean(np.square(x.tau), 0)) for x in data])
    relative = rms / np.maximum(size, 1e-300)
    refused = {}
    for name, g, std, (felt, weight), total in zip(robot.dof_names, gains.g, gains.std, known_torques, size[-1]):
        half = 1.96 * std / abs(g)
        if not half <= MAX_HALF_INTERVAL:
            refused[name] = _why(half, felt, weight, total * abs(g))
    if len(refused) == robot.nv:
        name, why = next(iter(refused.items()))
        raise ExcitationError(f"{data[-1].label}: no gain is determined; {name}: {why}")
    findings = [
        Finding("gain", f"no gain of {name}: {why}", "Give the rest only, or log again.")
        for name, why in refused.items()
    ]
    findings += _implausible(robot, gains, isinstance(scale, _Load))
    total = float(np.linalg.norm(rms / size.max(0)) / np.sqrt(rms.size))
    if total > MAX_UNEXPLAINED:
        advice = "Look at the robot's geometry, gears that couple joints, and which columns are currents."
        findings.append(Finding("model", f"the model leaves {100.0 * total:.0f} % of the currents unexplained", advice))
    notes = {"time [s]": ", ".join(f"{x.t[-1] - x.t[0]:.4g}" for x in data)}
    negative = _has_certain_sign(gains) & (gains.g < 0.0)
    if negative.any() and all(finding.kind != "sign" for finding in findings):
        notes["negative gains"] = f"{_list(robot, gains, negative)}: positive current turns these joints backwards"
    return DriveGains(
        robot, gains.g, gains.std, refused, known_torques, tuple(x.label for x in data), rms, relative,
        f"scale: {scale.description}", data[-1].history, notes, tuple(findings), scale.load(gains.theta),
    )  # fmt: skip


def _implausible(robot: Robot, gains: Gains, loaded: bool) -> list[Finding]:
    """Findings on gains that no drive has; loaded: whether a load fixes the scale."""
    determined = _has_certain_sign(gains)
    negative, positive = determined & (gains.g < 0.0), determined & (gains.g > 0.0)
    if negative.any() and not positive.any():
        advice = "Exchange the logs with and without the load; or all currents have the other sign"
        if not loaded:
            advice = "All currents have the other sign, or the known bodies are not where the model has them"
        return [Finding("sign", "all gains that the logs determine are negative", advice, True)]
    if negative.sum() > positive.sum():
        advice = "Exchange the logs with and without the load; or turn the sign of these currents"
        if not loaded:
            advice = "Turn the sign of these currents, or look at where the known bodies are in the model"
        return [
            Finding("sign", f"most gains that the logs determine are negative: {_list(robot, gains, negative)}", advice)
        ]
    ones = np.abs(gains.g - 1.0) < np.maximum(UNIT_GAIN_TOLERANCE, 2.0 * gains.std)
    if determined.sum() > 1 and ones[determined].all() and (gains.std[determined] < 3.0 * UNIT_GAIN_TOLERANCE).any():
        advice = "The columns may be torques already: identify takes them as --column tau=..., no gains are needed"
        return [Finding("gain", "all gains that the logs determine are 1 N m/A", advice, True)]
    return []


def _has_certain_sign(gains: Gains) -> np.ndarray:
    """(nv,): whether the sign of a gain is determined."""
    return np.isfinite(gains.std) & (np.abs(gains.g) > SIGN_SIGMA * gains.std)


def _list(robot: Robot, gains: Gains, which: np.ndarray) -> str:
    return ", ".join(f"{robot.dof_names[k]!r} {gains.g[k]:.3g}" for k in np.flatnonzero(which))


def _known_torques(scale: _Load | _Bodies, data: Dataset) -> np.ndarray:
    """(nv, 2): RMS of kappa in the log, and at rest in the same places [N m]."""
    some = np.unique(np.linspace(0, len(data) - 1, 1000).astype(int))
    assert data.v is not None
    assert data.a is not None
    q, v, a = data.q[some], data.v[some], data.a[some]
    both = [scale.rows(q, *x, True)[0][..., -1] for x in ((v, a), (0.0 * v, 0.0 * a))]
    return np.stack([np.sqrt(np.mean(x**2, 0)) for x in both], -1)


def _why(half: float, felt: float, weight: float, total: float) -> str:
    width = "open" if not np.isfinite(half) else f"+-{100.0 * half:.0f} %"
    text = f"its interval is {width}; known torques are {felt:.2g} N m RMS of {total:.2g} there"
    if weight < MIN_WEIGHT_SHARE * felt or weight < 1e-9 * total:
        return text + ", none of it weight: its axis is upright or through the centre of mass; accelerate it more"
    return text + ": a heavier load, further from its axis, or more motion"
