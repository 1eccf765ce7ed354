"""Find wrong signs, swapped joints, couplings and degrees by trying to undo them.

Each trial changes the log as if to undo a mistake, q' = T q, tau' = S tau, and fits the same model to the same rows
without prior or constraints. For a correct log every trial fits worse, or equally well if the log does not show the
difference. A trial counts if it is much likelier than the unchanged log, given the number of trials, and removes a
relevant part of the residual: an incomplete model may make a wrong trial slightly better.

Friction that drives and negative inertia reveal wrong signs that least squares can compensate. If a joint hardly moves
the others, negative parameters explain its torques equally well with the opposite sign. So the power of friction, mean
of v tau_friction, and the joint's own inertia, mean of M_kk, must be positive.

Undeclared couplings show as residuals of one joint that correlate with the motion of another. To each joint's rows the
motion and torque of another are added, v_j, the sign of friction at v_j, a_j and tau_j. The reduction of the squared
error is computed exactly, with all parameters fitted again: the part of the new columns orthogonal to the regressor,
against the residual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.model.columns import coulomb
from geomctrl.identification.model.regressor_model import RegressorModel

from .evidence import MIN_RESIDUAL, MIN_SINGULAR_VALUE, Evidence, Explanation, FreeFit, fit_rows, fit_rows_like
from .rows import MAX_ROWS, Rows

DISSIPATIVE = ("viscous", "coulomb", "curve")
NEGATIVE_SIGMA = 5.0  # standard deviations, including the correlation of residuals
MIN_FRICTION_SHARE = 0.05  # of a joint's torques: smaller friction is not checked


def driving(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    """Joints with friction that drives them, or with negative inertia, in least squares without constraints."""
    advice = "Check the axis of the drive or the model; change the sign of that column of the log"
    return [
        Finding(
            "sign", f"the torque of {evidence.names[k]!r}, or its position, has the wrong sign: {signs}", advice, True
        )
        for k, signs in negative(evidence.model, rows, fit).items()
    ]


def negative(model: RegressorModel, rows: Rows, fit: FreeFit) -> dict[int, str]:
    """By joint, quantities that are negative but must not be: friction power, inertia."""
    columns = model.base.columns
    Y = model.regressor(rows.q, rows.v, rows.a)[..., columns]
    rubs = np.isin(np.array(model.kinds)[columns], DISSIPATIVE)
    still = np.zeros_like(rows.v)
    weight = model.regressor(rows.q, still, still)[..., columns]
    torques, out = rows.torques(model), {}
    for k in np.flatnonzero(rows.used.any(axis=0)).tolist():
        e = still.copy()
        e[:, k] = 1.0
        own = (model.regressor(rows.q, still, e)[:, k, columns] - weight[:, k]).mean(axis=0)
        power = (rows.v[:, [k]] * Y[:, k] * rubs).mean(axis=0)
        z_inertia, z_power = (_deviations(row, fit.values, fit.covariance) for row in (own, power))
        size = np.sqrt(np.mean((Y[:, k] * rubs @ fit.values) ** 2) / max(np.mean(torques[:, k] ** 2), 1e-300))
        signs = []
        if z_power < -NEGATIVE_SIGMA and size > MIN_FRICTION_SHARE:
            signs.append(f"its friction drives it, by {-power @ fit.values:.3g} W on average")
        if z_inertia < -NEGATIVE_SIGMA and size * z_power <= 0.0:
            signs.append(f"its own inertia comes out as {own @ fit.values:.3g} kg m^2")
        if signs:
            out[k] = ", and ".join(signs)
    return out


def _deviations(row: np.ndarray, values: np.ndarray, covariance: np.ndarray) -> float:
    """A linear function of the parameters divided by its standard deviation; 0 if the log does not determine it."""
    variance = float(row @ covariance @ row)
    return float(row @ values) / np.sqrt(variance) if variance > 0.0 else 0.0


# --- signs, swaps, motors that turn two joints, degrees --------------------------------------------------------------


TRIAL_CHANCE = 0.01  # probability that one of all trials is as likely by chance (bound by Markov's inequality)
FATAL_EVIDENCE = 8.0  # log likelihood beyond chance that makes a finding fatal
MIN_GAIN = 0.1  # smallest reduction of the sum of log residuals
DISTINCT_EVIDENCE = 3.0  # log likelihood (20 to 1): trials with a smaller difference count as equal
MAX_SWAPPED_JOINTS = 8  # with more joints only neighbours are swapped
MIN_UNEXPLAINED = 0.05  # of a joint's torques: couplings and degrees are tried above this
MAX_NAMED = 6  # largest number of names in the note on undetermined mistakes
MAX_TRIALS = 3  # trials that are tested in other views of the log
DEGREES_PER_RADIAN = np.rad2deg(1.0)


@dataclass(frozen=True, eq=False)
class Trial:
    """Changes of motion T and torque S (None: unchanged); `clause`: the mistake that they undo, as a clause."""

    kind: str
    clause: str
    joints: tuple[int, ...]
    motion: np.ndarray | None
    torque: np.ndarray | None

    @property
    def order(self) -> np.ndarray:
        """Position of each joint's torque in the log."""
        n = len(self.motion if self.torque is None else self.torque)  # type: ignore[arg-type]
        return np.arange(n) if self.torque is None else np.argmax(np.abs(self.torque + 1e-9 * np.eye(n)), axis=1)

    def applied(self, rows: Rows) -> Rows:
        rows = rows if self.motion is None else rows.with_motion(self.motion)
        return rows if self.torque is None else rows.with_torques(self.torque)


class TrialFit(NamedTuple):
    """A trial, the fit to the changed log, and its gain in log likelihood over the unchanged log."""

    trial: Trial
    fit: FreeFit
    evidence: float


def trial_fits(model: RegressorModel, rows: Rows, fit: FreeFit, names: tuple[str, ...]) -> list[TrialFit]:
    """All trials."""
    out = []
    is_informative = np.asarray(rows.used.any(axis=0))
    for trial in trials(model, rows, fit, names):
        if not is_informative[list(trial.joints)].all():
            continue
        after = fit_rows_like(model, trial.applied(rows), fit, trial.order)
        gain = after.evidence_over(fit, trial.order)
        if trial.kind == "coupling" and gain > -required_evidence(MAX_SWAPPED_JOINTS**2):
            gain += _apart(model, trial.applied(rows), after, trial.joints) - _apart(model, rows, fit, trial.joints)
        elif gain > 0.0:  # its residuals may be less correlated than those of a log with a mistake
            own = fit_rows(model, trial.applied(rows))
            gain = max(gain, own.evidence_over(fit, trial.order, own=True))
        out.append(TrialFit(trial, after, gain))
    return out


def required_evidence(trials: int) -> float:
    """Log likelihood that one of this number of trials reaches by chance with probability CHANCE."""
    return float(np.log(max(trials, 1) / TRIAL_CHANCE))


def likely_trials(evidence: Evidence, rows: Rows, fit: FreeFit, all_: list[TrialFit]) -> list[Explanation]:
    """The trials that are much likelier than the unchanged log, the likeliest first."""
    least = required_evidence(len(all_))
    likelier = [x for x in all_ if x.evidence > least and x.fit.gain_over(fit) > MIN_GAIN]
    likelier.sort(key=lambda x: -x.evidence)
    alike = [x for x in likelier[:MAX_NAMED] if x.evidence > likelier[0].evidence - DISTINCT_EVIDENCE]
    if len(alike) > 1:  # if two joints have opposite signs, the wrong one is that whose friction then drives
        alike.sort(key=lambda x: len(driving(evidence, x.trial.applied(rows), x.fit)))
    return [_mistake(evidence, rows, fit, x, least) for x in [*alike, *likelier[len(alike) :]][:MAX_TRIALS]]


def _mistake(evidence: Evidence, rows: Rows, fit: FreeFit, x: TrialFit, least: float) -> Explanation:
    right = x.trial.applied(rows)
    after = fit_rows(evidence.model, right)
    fatal = max(x.evidence, after.evidence_over(fit, x.trial.order, own=True)) > least + FATAL_EVIDENCE
    worst = int(np.argmax(fit.residuals / np.maximum(after.residuals, 1e-300)))
    seen = (
        f"the log is explained better if {x.trial.clause}: of the torques of {evidence.names[worst]!r}"
        f" {100 * fit.relative[worst]:.3g} % are left unexplained, and {100 * after.relative[worst]:.3g} % then"
    )
    finding = Finding(x.trial.kind, seen, ADVICE[x.trial.kind], fatal)
    return Explanation(x.evidence, finding, x.trial.clause, right, after, x.trial.applied)


def undecided(evidence: Evidence, rows: Rows, all_: list[TrialFit]) -> list[str]:
    """A sentence on mistakes that the log would not show: it is as likely with them, and friction does not drive."""
    least = required_evidence(len(all_))
    open_ = [
        x.trial.clause
        for x in sorted(all_, key=lambda x: -x.evidence)
        if x.evidence > -least and not driving(evidence, x.trial.applied(rows), x.fit)
    ]
    if not open_:
        return []
    more = f", and {len(open_) - MAX_NAMED} more" if len(open_) > MAX_NAMED else ""
    return [f"this log does not determine whether {', or '.join(open_[:MAX_NAMED])}{more}"]


def _apart(model: RegressorModel, rows: Rows, fit: FreeFit, joints: tuple[int, ...]) -> float:
    """Log likelihood of two joints' correlated residuals over that of independent ones."""
    i, j = joints
    both = rows.used[:, i] & rows.used[:, j]
    r = (rows.torques(model) - rows.regressor(model) @ fit.values)[both][:, [i, j]]
    product = float(r[:, 0] @ r[:, 1]) / max(float(np.linalg.norm(r[:, 0]) * np.linalg.norm(r[:, 1])), 1e-300)
    return -0.5 * float(fit.freedom[[i, j]].min()) * float(np.log(max(1.0 - product**2, MIN_RESIDUAL)))


def trials(model: RegressorModel, rows: Rows, fit: FreeFit, names: tuple[str, ...]) -> Iterator[Trial]:
    """All trials for a robot; positions are left unchanged if joints have several degrees of freedom."""
    n = model.robot.nv
    movable, one = model.robot.nq == n, np.eye(n)
    for k in range(n):
        S = np.diag(np.where(np.arange(n) == k, -1.0, 1.0))
        yield Trial("sign", f"the torque of {names[k]!r} has the other sign", (k,), None, S)
        if movable:
            yield Trial("sign", f"the position of {names[k]!r} has the other sign", (k,), S, None)
            yield Trial("sign", f"position and torque of {names[k]!r} have the other sign", (k,), S, S)
    for i, j in combinations(range(n), 2):
        if n > MAX_SWAPPED_JOINTS and j - i > 1:
            continue
        P = one.copy()
        P[[i, j]] = P[[j, i]]
        pair = f"{names[i]!r} and {names[j]!r}"
        yield Trial("swap", f"the torques of {pair} are in each other's place", (i, j), None, P)
        if movable:
            yield Trial("swap", f"the positions of {pair} are in each other's place", (i, j), P, None)
            yield Trial("swap", f"{pair} are in each other's place", (i, j), P, P)
    if movable and (fit.relative > MIN_UNEXPLAINED).any():
        yield from _coupled(n, names)
        yield from _degrees(rows, names, model.robot.is_rotational)


def _coupled(n: int, names) -> Iterator[Trial]:
    """Motor j also turns with joint i: q_j = motor_j - c q_i, and by the same power tau_i = motor_i + c motor_j."""
    for i in range(n):
        for j in (i - 1, i + 1):
            for c in (-1.0, 1.0):
                if not 0 <= j < n:
                    continue
                T, S = np.eye(n), np.eye(n)
                T[j, i], S[i, j] = -c, c
                less = "less" if c > 0 else "plus"
                clause = (
                    f"{names[j]!r} is logged at a motor that {names[i]!r} turns as well: its position {less} that of"
                )
                yield Trial("coupling", f"{clause} {names[i]!r} is the joint's", (j, i), T, S)


def _degrees(rows: Rows, names, turning: np.ndarray) -> Iterator[Trial]:
    """Trials of degrees for revolute joints; a prismatic joint may move by metres or centimetres."""
    reach = np.ptp(rows.q, axis=0)
    wide, narrow = turning & (reach > 2.0 * np.pi), turning & (reach < 0.2)
    if wide.sum() > 1:
        every = np.diag(np.where(turning, 1.0 / DEGREES_PER_RADIAN, 1.0))
        yield Trial("scale", "positions are in degrees", tuple(np.flatnonzero(wide).tolist()), every, None)
    for k in np.flatnonzero(wide | narrow):
        T = np.diag(
            np.where(np.arange(len(reach)) == k, 1.0 / DEGREES_PER_RADIAN if wide[k] else DEGREES_PER_RADIAN, 1.0)
        )
        clause = "is in degrees" if wide[k] else "was taken for degrees"
        yield Trial("scale", f"the position of {names[k]!r} {clause}", (int(k),), T, None)


ADVICE = {
    "sign": "Check the axis of the drive or the model; change the sign of that column of the log (--gears with a"
    " negative ratio does both)",
    "swap": "Check the order of the log's columns: --joints or --column name them",
    "coupling": "Give the motors' matrix as --gears, whose rows are motors and columns joints, and --transmission where"
    " friction acts",
    "scale": "Give the unit: --unit q=deg, or one per joint",
}


# --- couplings that the model does not declare -----------------------------------------------------------------------


PAIR_CHANCE = 1e-3  # probability that any pair of joints seems as coupled by chance
COUPLING_COLUMNS = 4  # columns of another joint's motion
FATAL_COUPLING_SHARE, MIN_COUPLING_SHARE = 0.2, 0.1  # share of a joint's torques that the coupling explains
MIN_DISTINCT_EIGENVALUE = 1e-3  # of the new unit columns: the regressor contains those below


def couplings(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    """The couplings that reduce the residual most, one for each pair of joints."""
    if not fit.weights.any():
        return []
    model = evidence.model
    motion = _motion(evidence, rows.v, rows.a)
    pairs = _relevant_pairs(rows.regressor(model), motion, rows.torques(model), rows.used, fit)
    # confirm with the filters of the estimator, which does not know of undone mistakes
    if pairs and rows is evidence.rows:
        pairs = _relevant_pairs(*_low_passed(evidence), evidence.free)
    return [_coupling_finding(evidence, i, j, torque, share) for i, j, torque, share in pairs]


def _coupling_finding(evidence: Evidence, i: int, j: int, torque: float, share: float) -> Finding:
    a, b = (evidence.names[k] for k in (i, j))
    seen = (
        f"{100 * torque:.3g} % of the torques of {a!r}, {100 * min(share, 1.0):.0f} % of their squared residual,"
        f" correlate with velocity, acceleration or torque of {b!r}"
    )
    advice = (
        f"Are {a!r} and {b!r} coupled? Give their motors' matrix as --gears, and --transmission where friction acts;"
        " otherwise look for other links: cables, a spring, the order of columns"
    )
    return Finding("coupling", seen, advice, torque >= FATAL_COUPLING_SHARE)


def _motion(evidence: Evidence, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(n, nv, 3): for each joint its velocity, the sign of friction there, and its acceleration."""
    return np.stack((v, coulomb(v, evidence.model.smoothing), a), -1)


def _low_passed(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(Y of the base parameters, motion, torques, used) at some rows of the training data, all filtered alike."""
    model, data = evidence.model, evidence.training
    total, parts = len(model._rows(data)), []
    kept, done = max(1, total // MAX_ROWS), 0

    def columns(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
        return [model.regressor(q, v, a)[..., model.base.columns], _motion(evidence, v, a)]

    for (Y, motion), tau, mask, _ in model._stream(data, columns):
        some = slice(-done % kept, None, kept)
        parts.append((Y[some], motion[some], tau[some], mask[some]))
        done += len(tau)
    Y, motion, tau, mask = (np.concatenate(part) for part in zip(*parts))
    return Y, motion, tau, mask


def _relevant_pairs(Y, motion, torques, used, fit: FreeFit) -> list[tuple[int, int, float, float]]:
    """(joint, other joint, share of its torques, share of its squared residual), relevant ones, the largest first."""
    share = explained(Y, motion, torques, used * fit.weights)
    torque = fit.relative[:, None] * np.sqrt(np.minimum(share, 1.0))
    is_significant = _probability(share, fit.freedom[:, None]) * len(share) * (len(share) - 1) < PAIR_CHANCE
    pairs, seen = [], set()
    for i, j in zip(*np.unravel_index(np.argsort(-torque, axis=None), torque.shape)):
        pair = frozenset((int(i), int(j)))
        if torque[i, j] >= MIN_COUPLING_SHARE and is_significant[i, j] and not pair & seen:
            seen |= pair
            pairs.append((int(i), int(j), float(torque[i, j]), float(share[i, j])))
    return pairs


def _probability(share: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Probability that chance reduces a squared residual by this share: F test of COLUMNS new columns."""
    from scipy.stats import f

    left = np.maximum(freedom - COUPLING_COLUMNS, 1.0)
    return f.sf(share / COUPLING_COLUMNS * left / np.maximum(1.0 - share, 1e-12), COUPLING_COLUMNS, left)


def explained(Y: np.ndarray, motion: np.ndarray, torques: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(nv, nv): the share of joint i's squared residual that columns of joint j's motion would remove."""
    n = torques.shape[1]
    A = (Y * w[..., None]).transpose(1, 0, 2)
    Q = _orthonormal(A.reshape(-1, A.shape[-1]))
    b = (torques * w).T.ravel()
    r = (b - Q @ (Q.T @ b)).reshape(n, -1)
    Q, out = Q.reshape(n, -1, Q.shape[1]), np.zeros((n, n))
    for i in range(n):
        left = float(r[i] @ r[i])
        for j in range(n):
            if i == j or left == 0.0:
                continue
            Z = np.concatenate((motion[:, j], torques[:, [j]]), -1) * w[:, [i]]
            Z = Z / np.maximum(np.linalg.norm(Z, axis=0), 1e-300)
            P = Q[i].T @ Z
            values, V = np.linalg.eigh(Z.T @ Z - P.T @ P)  # of the part of the columns orthogonal to the regressor
            inverse = np.where(values > MIN_DISTINCT_EIGENVALUE, 1.0 / np.maximum(values, MIN_DISTINCT_EIGENVALUE), 0.0)
            out[i, j] = np.sum((V.T @ (Z.T @ r[i])) ** 2 * inverse) / left
    return out


def _orthonormal(A: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(A, axis=0)
    U, s, _ = np.linalg.svd(A / np.where(length > 0.0, length, 1.0), full_matrices=False)
    return U[:, s > MIN_SINGULAR_VALUE * s[0]]
