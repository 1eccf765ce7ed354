"""Signs, swapped joints, couplings, degrees: found by trying.

Each trial changes the log the way a mistake would be undone, q' = T q, tau' = S tau, and fits the same model to the
same rows without prior or constraints. A log that is right is explained worse by every one of them, or as well where
nothing the log shows depends on it. A trial counts if it is much likelier than the log as it is, for as many trials as
there are, and takes away a part of the residual that matters: what the model lacks may make a trial a little better
that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.model.regressor_model import RegressorModel

from .driving import driving
from .evidence import LEAST, Evidence, FreeFit, Mistake, fit_rows, fit_rows_like
from .rows import Rows

CHANCE = 0.01  # that one of all trials is so much likelier by chance: a bound by Markov's inequality
SURE = 8.0  # log likelihood beyond that
MATTERS = 0.1  # least sum of log residuals
ALIKE = 3.0  # log likelihood by which trials are told apart: 20 to 1
NEAR = 8  # joints up to which any two are swapped; beyond, neighbours only
UNEXPLAINED = 0.05  # of a joint's torques, above which couplings and degrees are tried
NAMED = 6  # of what a log does not tell
MOST = 3  # trials that are looked at in other views of the log
TURN = np.rad2deg(1.0)


@dataclass(frozen=True, eq=False)
class Trial:
    """motion T, torque S (None: as they are); `what` the log would then have had, as a clause."""

    kind: str
    what: str
    joints: tuple[int, ...]
    motion: np.ndarray | None
    torque: np.ndarray | None

    @property
    def order(self) -> np.ndarray:
        """Where each joint's torque was in the log."""
        n = len(self.motion if self.torque is None else self.torque)  # type: ignore[arg-type]
        return np.arange(n) if self.torque is None else np.argmax(np.abs(self.torque + 1e-9 * np.eye(n)), axis=1)

    def applied(self, rows: Rows) -> Rows:
        rows = rows if self.motion is None else rows.with_motion(self.motion)
        return rows if self.torque is None else rows.with_torques(self.torque)


class Tried(NamedTuple):
    """A trial, the fit of what it makes of the log, and how much likelier than the log as it is that is."""

    trial: Trial
    fit: FreeFit
    evidence: float


def tried(model: RegressorModel, rows: Rows, fit: FreeFit, names: tuple[str, ...]) -> list[Tried]:
    """All trials."""
    out = []
    tells = np.asarray(rows.used.any(axis=0))
    for trial in trials(model, rows, fit, names):
        if not tells[list(trial.joints)].all():
            continue
        after = fit_rows_like(model, trial.applied(rows), fit, trial.order)
        gain = after.evidence_over(fit, trial.order)
        if trial.kind == "coupling" and gain > -enough(NEAR**2):
            gain += _apart(model, trial.applied(rows), after, trial.joints) - _apart(model, rows, fit, trial.joints)
        elif gain > 0.0:  # its own residuals may hang together less than those of a log with a mistake
            own = fit_rows(model, trial.applied(rows))
            gain = max(gain, own.evidence_over(fit, trial.order, own=True))
        out.append(Tried(trial, after, gain))
    return out


def enough(trials: int) -> float:
    """Log likelihood that one of so many trials has by CHANCE only."""
    return float(np.log(max(trials, 1) / CHANCE))


def found_trials(evidence: Evidence, rows: Rows, fit: FreeFit, all_: list[Tried]) -> list[Mistake]:
    """The trials that are much likelier than the log as it is, the likeliest first."""
    least = enough(len(all_))
    found = [x for x in all_ if x.evidence > least and x.fit.gain_over(fit) > MATTERS]
    found.sort(key=lambda x: -x.evidence)
    alike = [x for x in found[:NAMED] if x.evidence > found[0].evidence - ALIKE]
    if len(alike) > 1:  # of two joints turned against each other the wrong one is that whose friction then drives
        alike.sort(key=lambda x: len(driving(evidence, x.trial.applied(rows), x.fit)))
    return [_mistake(evidence, rows, fit, x, least) for x in [*alike, *found[len(alike) :]][:MOST]]


def _mistake(evidence: Evidence, rows: Rows, fit: FreeFit, x: Tried, least: float) -> Mistake:
    right = x.trial.applied(rows)
    after = fit_rows(evidence.model, right)
    sure = max(x.evidence, after.evidence_over(fit, x.trial.order, own=True)) > least + SURE
    finding = _doubt(x.trial, fit, after, evidence.names, sure)
    return Mistake(x.evidence, finding, x.trial.what, right, after, x.trial.applied)


def undecided(evidence: Evidence, rows: Rows, all_: list[Tried]) -> list[str]:
    """Mistakes that the log would not show, as one sentence: it is as likely with them, and friction does not drive."""
    least = enough(len(all_))
    open_ = [
        x.trial.what
        for x in sorted(all_, key=lambda x: -x.evidence)
        if x.evidence > -least and not driving(evidence, x.trial.applied(rows), x.fit)
    ]
    if not open_:
        return []
    more = f", and {len(open_) - NAMED} more" if len(open_) > NAMED else ""
    return [f"not told from this log is whether {', or '.join(open_[:NAMED])}{more}"]


def _apart(model: RegressorModel, rows: Rows, fit: FreeFit, joints: tuple[int, ...]) -> float:
    """Log likelihood of two joints' residuals that go together, over that of the same if they did not.

    A trial that adds one joint's torque to another's mixes their noise: sums of log residuals then change, the
    determinant of the residuals' covariance does not.
    """
    i, j = joints
    both = rows.used[:, i] & rows.used[:, j]
    r = (rows.torques(model) - rows.regressor(model) @ fit.values)[both][:, [i, j]]
    product = float(r[:, 0] @ r[:, 1]) / max(float(np.linalg.norm(r[:, 0]) * np.linalg.norm(r[:, 1])), 1e-300)
    return -0.5 * float(fit.freedom[[i, j]].min()) * float(np.log(max(1.0 - product**2, LEAST)))


def trials(model: RegressorModel, rows: Rows, fit: FreeFit, names: tuple[str, ...]) -> Iterator[Trial]:
    """All that is worth trying for a robot; positions are left alone where joints have several degrees of freedom."""
    n = model.robot.nv
    movable, one = model.robot.nq == n, np.eye(n)
    for k in range(n):
        S = np.diag(np.where(np.arange(n) == k, -1.0, 1.0))
        yield Trial("sign", f"the torque of {names[k]!r} has the other sign", (k,), None, S)
        if movable:
            yield Trial("sign", f"the position of {names[k]!r} has the other sign", (k,), S, None)
            yield Trial("sign", f"position and torque of {names[k]!r} have the other sign", (k,), S, S)
    for i, j in combinations(range(n), 2):
        if n > NEAR and j - i > 1:
            continue
        P = one.copy()
        P[[i, j]] = P[[j, i]]
        pair = f"{names[i]!r} and {names[j]!r}"
        yield Trial("swap", f"the torques of {pair} are in each other's place", (i, j), None, P)
        if movable:
            yield Trial("swap", f"the positions of {pair} are in each other's place", (i, j), P, None)
            yield Trial("swap", f"{pair} are in each other's place", (i, j), P, P)
    if movable and (fit.relative > UNEXPLAINED).any():
        yield from _coupled(n, names)
        yield from _degrees(rows, names, model.robot.is_rotational)


def _coupled(n: int, names) -> Iterator[Trial]:
    """Motor j turns with joint i as well: q_j = motor_j - c q_i, and by the same power tau_i = motor_i + c motor_j."""
    for i in range(n):
        for j in (i - 1, i + 1):
            for c in (-1.0, 1.0):
                if not 0 <= j < n:
                    continue
                T, S = np.eye(n), np.eye(n)
                T[j, i], S[i, j] = -c, c
                less = "less" if c > 0 else "plus"
                what = f"{names[j]!r} is logged at a motor that {names[i]!r} turns as well: its position {less} that of"
                yield Trial("coupling", f"{what} {names[i]!r} is the joint's", (j, i), T, S)


def _degrees(rows: Rows, names, turning: np.ndarray) -> Iterator[Trial]:
    """Of joints that turn: a joint that slides may well go seven metres, or a few centimetres."""
    reach = np.ptp(rows.q, axis=0)
    wide, narrow = turning & (reach > 2.0 * np.pi), turning & (reach < 0.2)
    if wide.sum() > 1:
        every = np.diag(np.where(turning, 1.0 / TURN, 1.0))
        yield Trial("scale", "positions are in degrees", tuple(np.flatnonzero(wide).tolist()), every, None)
    for k in np.flatnonzero(wide | narrow):
        T = np.diag(np.where(np.arange(len(reach)) == k, 1.0 / TURN if wide[k] else TURN, 1.0))
        what = "is in degrees" if wide[k] else "was taken for degrees"
        yield Trial("scale", f"the position of {names[k]!r} {what}", (int(k),), T, None)


ADVICE = {
    "sign": "Look at the drive's or the model's axis; turn the sign of that column of the log (--gears with a negative"
    " ratio does both)",
    "swap": "Look at the order of the log's columns: --joints or --column name them",
    "coupling": "Give the motors' matrix as --gears, whose rows are motors and columns joints, and --transmission where"
    " friction acts",
    "scale": "Give the unit: --unit q=deg, or one a joint",
}


def _doubt(best: Trial, before: FreeFit, after: FreeFit, names, sure: bool) -> Finding:
    worst = int(np.argmax(before.residuals / np.maximum(after.residuals, 1e-300)))
    share = f"of the torques of {names[worst]!r} {100 * before.relative[worst]:.3g} % are left unexplained"
    seen = f"the log is explained better if {best.what}: {share}, and {100 * after.relative[worst]:.3g} % then"
    return Finding(best.kind, seen, ADVICE[best.kind], sure)
