"""Find causes that are not wrong columns: torques that lag the motion, a tilted base, friction that changes.

Delay: the motion of each row is taken `seconds` earlier, and the likelihood is computed as a function of the delay.

A joint's own delay, and a joint's zero: the torques' derivative by it joins the regressor.

Base: gravity enters the regressor linearly. If its direction is off by d1, d2 along two horizontal axes,
tau = (Y + d1 Z1 + d2 Z2) x, where Z are the rows of a robot at rest under horizontal gravity. Directions of x that do
not affect the upright robot may affect the tilted one; they are added as columns.

Drift: each joint's offset, Coulomb and viscous friction times the time.

Each column of unknown size has a penalty of half the logarithm of the number of residuals (Schwarz 1978).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from geomctrl.identification.estimators.cutoffs import LogFilter, chosen_cutoffs
from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.signals import without_delay
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.identification.settings import Filtering

from .evidence import Evidence, Explanation, FreeFit, fit_rows, fit_rows_like
from .log_checks import late_velocities
from .rows import Rows, cutoff_of, rows_of

MAX_CHANCE = 0.01  # probability that a cause is as likely by chance
MAX_DELAY = 0.12  # s: largest delay in the search
DELAY_GRID = np.array([-0.12, -0.08, -0.05, -0.03, -0.016, -0.008, 0.0, 0.008, 0.016, 0.03, 0.05, 0.08, 0.12])  # s
DELAY_PASSES = 3  # iterations of cut-offs and delay
MIN_DELAY = 0.004  # s: smaller delays come from sampling
NOTED_DELAY = 0.008  # s: a sample of slow logs
MIN_SIGMA = 4.0  # standard deviations from zero below which an estimate counts as zero
MIN_TILT = np.deg2rad(0.7)  # rad: the accuracy of installation
NOTED_TILT = np.deg2rad(2.0)  # rad: a spirit level shows larger tilts
MIN_ZERO = np.deg2rad(1.5)  # rad: errors of geometry look like smaller offsets of a joint's zero
MAX_ZERO_DEVIATION = 45.0  # degrees: the log does not determine zeros with a larger standard deviation
MAX_ZERO_STEP = 0.5  # rad: step of Newton's method for a zero
ZERO_STEPS = 4  # steps of Newton's method for a zero
DIFFERENCE_STEP = 1e-4  # rad, s: step of finite differences
MIN_DRIFT_SHARE = 0.03  # of a joint's torques
MIN_WARMING_SECONDS = 4.0  # s: in shorter logs an apparent change of friction is an error of the model
MAX_DRIVING_SHARE = 0.2  # of friction's power: friction may seem to drive by this much if its change is uncertain
MIN_CHANGE_SHARE = 0.05  # of friction's power: smaller changes are ignored
# relative singular value above which a direction of the parameters affects torques under tilted gravity
MIN_SINGULAR_VALUE = 1e-6


def likely_causes(evidence: Evidence, rows: Rows, fit: FreeFit) -> tuple[list[Explanation], list[str]]:
    """(explanations that are much likelier than the unchanged log, notes)."""
    robot = evidence.model.robot
    if robot.nq != robot.nv:
        explanations, notes = [_drift(evidence, rows, fit)], []
    else:
        lag, delay_notes = _delay(evidence, rows, fit)
        tilt, tilt_notes = _tilt(evidence, rows, fit) if np.any(robot.gravity) else (None, [])
        (zero, zero_notes), late = _zero(evidence, rows, fit), _late_joint(evidence, rows, fit)
        explanations = [lag, tilt, zero, late, _drift(evidence, rows, fit)]
        notes = delay_notes + tilt_notes + zero_notes
    least = float(np.log(len(explanations) / MAX_CHANCE))
    return [x for x in explanations if x is not None and x.evidence > least], notes


# --- delay -------------------------------------------------------------------------------------------------------


def delay(model: RegressorModel, rows: Rows, fit: FreeFit) -> tuple[float, float, float]:
    """(delay of torques behind the motion [s], its standard deviation, gain in log likelihood over no delay)."""
    from scipy.optimize import minimize_scalar

    ends = rows.delayed(-MAX_DELAY).used & rows.delayed(MAX_DELAY).used
    same = replace(rows, used=rows.used & ends)
    if same.used.sum() < 0.5 * rows.used.sum():
        return 0.0, np.inf, 0.0
    start = fit_rows_like(model, same, fit, np.arange(model.robot.nv))
    costs: dict[float, float] = {0.0: 0.0}

    def below(seconds: float) -> float:
        """Minus the log likelihood, 0 without a delay."""
        if seconds not in costs:
            late = fit_rows_like(model, same.delayed(seconds), start, np.arange(model.robot.nv))
            costs[seconds] = -late.evidence_over(start)
        return costs[seconds]

    best = int(np.argmin([below(float(s)) for s in DELAY_GRID]))
    low, high = DELAY_GRID[max(best - 1, 0)], DELAY_GRID[min(best + 1, len(DELAY_GRID) - 1)]
    solver = minimize_scalar(below, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    seconds = float(min((0.0, float(solver.x)), key=below))  # pyright: ignore[reportAttributeAccessIssue]
    step = 0.002
    bend = (below(seconds - step) - 2.0 * below(seconds) + below(seconds + step)) / step**2
    gain = -below(seconds)
    if gain > 0.0:  # residuals may be less correlated without the delay
        late = fit_rows(model, same.delayed(seconds))
        gain = max(gain, late.evidence_over(start, own=True))
    return seconds, (1.0 / np.sqrt(bend) if bend > 0.0 else np.inf), gain


def estimated_delay(filtering: Filtering, model: RegressorModel, log: Dataset) -> float:
    """The delay [s] of torques behind positions in an unfiltered log."""
    total = 0.0
    for _ in range(DELAY_PASSES):
        shifted = without_delay(log, total) if total else log
        filter_ = LogFilter.of(filtering, shifted, chosen_cutoffs(filtering, model, shifted)[0])
        data = filter_.moving(filter_.filtered(shifted))
        rows = rows_of(data, np.arange(len(data)), cutoff_of(data, filter_.cutoff), filter_.cutoff)
        seconds, deviation, _ = delay(model, rows, fit_rows(model, rows))
        if not np.isfinite(deviation):
            break
        total += seconds
        if abs(seconds) < 0.5 * MIN_DELAY:
            break
    return total


def _delay(evidence: Evidence, rows: Rows, fit: FreeFit) -> tuple[Explanation | None, list[str]]:
    if rows.lag or late_velocities(evidence):  # already undone, or only velocities lag
        return None, []
    seconds, deviation, gain = delay(evidence.model, rows, fit)
    if not np.isfinite(deviation):
        return None, ["this log does not determine by how much torques lag positions"]
    note = f"torques lag positions by {1e3 * seconds:.1f} ms, standard deviation {1e3 * deviation:.1f} ms"
    least = MIN_SIGMA * deviation
    notes = [f"{note}; this log does not determine less than {1e3 * least:.2g} ms" if least > NOTED_DELAY else note]
    if abs(seconds) < max(MIN_DELAY, MIN_SIGMA * deviation):
        return None, notes

    def change(rows: Rows) -> Rows:
        return rows.delayed(seconds)

    right = change(rows)
    after = fit_rows(evidence.model, right)
    worst = int(np.argmax(fit.residuals / np.maximum(after.residuals, 1e-300)))
    order = "lag" if seconds > 0.0 else "lead"
    seen = (
        f"torques {order} positions by {1e3 * abs(seconds):.3g} ms (standard deviation {1e3 * deviation:.2g} ms): of"
        f" the torques of {evidence.names[worst]!r} {100 * fit.relative[worst]:.3g} % are left unexplained, and"
        f" {100 * after.relative[worst]:.3g} % without the delay"
    )
    advice = "Compensate it (--delay auto), or check the time stamps and filters of the log's signals"
    return Explanation(gain, Finding("delay", seen, advice), f"torques {order} positions", right, after, change), []


def _late_joint(evidence: Evidence, rows: Rows, fit: FreeFit) -> Explanation | None:
    """The joint whose torques alone lag or lead the motion."""
    model = evidence.model
    if rows.motion is None or model.robot.nv < 2 or late_velocities(evidence):
        return None

    def columns(k: int) -> Callable[[Rows], np.ndarray]:
        def column(rows: Rows) -> np.ndarray:
            early, late = (rows.delayed(x).regressor(model)[:, k] @ fit.values for x in (-MIN_DELAY, MIN_DELAY))
            out = np.zeros((len(rows.t), model.robot.nv, 1))
            out[:, k, 0] = (late - early) / (2.0 * MIN_DELAY)
            return out

        return column

    fits = [fit_rows(model, rows, columns(k)(rows)) for k in range(model.robot.nv)]
    k = _likeliest(fits, fit)
    after = fits[k]
    seconds, deviation = float(after.values[-1]), float(np.sqrt(after.covariance[-1, -1]))
    if abs(seconds) < max(MIN_DELAY, MIN_SIGMA * deviation):
        return None
    order = "lag" if seconds > 0.0 else "lead"
    seen = (
        f"the torques of {evidence.names[k]!r} alone {order} the positions by {1e3 * abs(seconds):.3g} ms (standard"
        f" deviation {1e3 * deviation:.2g} ms): {100 * fit.relative[k]:.3g} % of them are left unexplained, and"
        f" {100 * after.relative[k]:.3g} % without the delay"
    )
    advice = "Compare the time stamps and filters of this joint's torques with those of the other joints"
    clause = f"the torques of {evidence.names[k]!r} {order} the positions"
    return _with_columns(evidence, rows, fit, Finding("delay", seen, advice), clause, columns(k), after)


def _likeliest(fits: list[FreeFit], fit: FreeFit) -> int:
    return max(range(len(fits)), key=lambda k: fits[k].evidence_over(fit))


# --- another zero ------------------------------------------------------------------------------------------------


def _zero(evidence: Evidence, rows: Rows, fit: FreeFit) -> tuple[Explanation | None, list[str]]:
    """(the joint whose positions count from another zero, by Newton's method on its offset, a note on all joints)."""
    model = evidence.model
    robot, one = model.robot, np.eye(model.robot.nv)

    def column(k: int, states: Rows, values: np.ndarray) -> np.ndarray:
        """Derivative (n, nv, 1) of the torques by the position of joint k."""
        x = np.zeros(model.size)
        x[model.base.columns] = values
        low, high = (
            robot.regressor(states.q + h * one[k], states.v, states.a) for h in (-DIFFERENCE_STEP, DIFFERENCE_STEP)
        )
        return ((high - low) @ x[: model.inertial] / (2.0 * DIFFERENCE_STEP))[..., None]

    turning = np.flatnonzero(robot.is_rotational).tolist()
    if not turning:
        return None, []
    fits = [fit_rows(model, rows, column(k, rows, fit.values)) for k in turning]
    notes = _zero_note([evidence.names[k] for k in turning], fits)
    place = _likeliest(fits, fit)
    k, offset, right, here, after = turning[place], 0.0, rows, fit, fits[place]
    for _ in range(ZERO_STEPS):
        if abs(after.values[-1]) < MIN_SIGMA * np.sqrt(after.covariance[-1, -1]):
            break
        offset += float(np.clip(after.values[-1], -MAX_ZERO_STEP, MAX_ZERO_STEP))
        right = rows.shifted(offset * one[k])
        here = fit_rows(model, right)
        after = fit_rows(model, right, column(k, right, here.values))
    deviation = float(np.sqrt(after.covariance[-1, -1]))
    if abs(offset) < max(MIN_ZERO, MIN_SIGMA * deviation):
        return None, notes
    gain = max(here.evidence_over(fit), here.evidence_over(fit, own=True))
    gain -= 0.5 * float(np.log(max(fit.independent.sum(), 2.0)))
    degrees = np.rad2deg((offset, deviation))
    seen = (
        f"the zero of {evidence.names[k]!r} is {degrees[0]:.3g} degrees (standard deviation {degrees[1]:.2g}) off the"
        " model's: torques are explained better with that added to its positions"
    )
    advice = "Add it to the positions (--zero), calibrate the encoder, or look at the model's frames"

    def change(rows: Rows) -> Rows:
        return rows.shifted(offset * one[k])

    clause = f"the zero of {evidence.names[k]!r} is off"
    return Explanation(gain, Finding("zero", seen, advice), clause, right, here, change), notes


def _zero_note(names: list[str], fits: list[FreeFit]) -> list[str]:
    """What the log says about each joint's zero alone, from the last column of its fit."""
    values = np.rad2deg([after.values[-1] for after in fits])
    deviations = np.rad2deg([np.sqrt(after.covariance[-1, -1]) for after in fits])
    is_open = (deviations == 0.0) | (deviations > MAX_ZERO_DEVIATION)  # 0: the column is zero
    listed = ", ".join(f"{n!r} {x:.2g} +- {s:.2g}" for n, x, s, o in zip(names, values, deviations, is_open) if not o)
    unknown = ", ".join(repr(n) for n, o in zip(names, is_open) if o)
    return [
        *([f"offsets of joints' zeros, each alone, in degrees with standard deviation: {listed}"] * bool(listed)),
        *([f"this log does not determine an offset of the zero of {unknown}"] * bool(unknown)),
    ]


# --- a tilted base -----------------------------------------------------------------------------------------------


def _tilt(evidence: Evidence, rows: Rows, fit: FreeFit) -> tuple[Explanation | None, list[str]]:
    """(the explanation, a note on a tilt that is not doubted, or that the log does not exclude)."""
    model = evidence.model
    g = np.asarray(model.robot.gravity, float)
    axes = np.linalg.svd(g[None])[2][1:]  # horizontal
    sideways = [model.robot.with_gravity(np.linalg.norm(g) * axis) for axis in axes]
    P = model.base.projection[:, : model.inertial]
    unseen = np.linalg.svd(P)[2][np.linalg.matrix_rank(P) :].T  # directions of x without effect under upright gravity

    def regressors(rows: Rows) -> list[np.ndarray]:
        still = np.zeros_like(rows.v)
        return [robot.regressor(rows.q, still, still) for robot in sideways]

    first = regressors(rows)
    felt = np.concatenate([Z @ unseen for Z in first], -1)
    _, s, Vt = np.linalg.svd(felt.reshape(-1, felt.shape[-1]), full_matrices=False)
    more = Vt[s > MIN_SINGULAR_VALUE * max(s[0], 1e-300)].T if len(s) and s[0] > 1e-9 else np.zeros((felt.shape[-1], 0))
    x = np.zeros(model.size)
    x[model.base.columns] = fit.values
    tilt, after = np.zeros(2), fit

    def columns_for(x: np.ndarray) -> Callable[[Rows], np.ndarray]:
        def columns(rows: Rows) -> np.ndarray:
            Z = regressors(rows)
            own = [(z @ x[: model.inertial])[..., None] for z in Z]
            return np.concatenate([*own, np.concatenate([z @ unseen for z in Z], -1) @ more], -1)

        return columns

    for _ in range(3):
        columns = columns_for(x)
        after = fit_rows(model, rows, columns(rows))
        x[model.base.columns] = after.values[: len(fit.values)]
        tilt = after.values[len(fit.values) : len(fit.values) + 2]
    angle = float(np.arctan(np.linalg.norm(tilt)))
    variance = after.covariance[len(fit.values) : len(fit.values) + 2, len(fit.values) : len(fit.values) + 2]
    direction = tilt / max(float(np.linalg.norm(tilt)), 1e-300)
    deviation = float(np.sqrt(direction @ variance @ direction))  # the orthogonal direction may be undetermined
    clear = float(tilt @ np.linalg.pinv(variance) @ tilt) > MIN_SIGMA**2
    open_ = _undetermined_tilts(variance, axes)
    if angle < MIN_TILT or not clear:
        return None, open_
    direction = direction @ axes
    seen = (
        f"gravity is {np.rad2deg(angle):.3g} degrees (standard deviation {np.rad2deg(deviation):.2g}) off the model's,"
        f" towards ({', '.join(f'{c:.2f}' for c in direction)}) in the base's frame"
    )
    advice = "Level the base, or set the direction of gravity in the robot's model: the base may be mounted at an angle"
    finding, note = Finding("gravity", seen, advice), f"{seen}: this explains little of the torques"
    return _with_columns(evidence, rows, fit, finding, "the base is tilted", columns, after), [note, *open_]


def _undetermined_tilts(variance: np.ndarray, axes: np.ndarray) -> list[str]:
    """A note on open tilts of the base; variance (2, 2) of the tilt, zero along axes without effect."""
    deviations, directions = np.linalg.eigh(variance)
    least = MIN_SIGMA * np.sqrt(deviations.clip(0.0))
    open_ = [
        f"towards ({', '.join(f'{c:.2f}' for c in direction @ axes)})"
        + (f" below {np.rad2deg(np.arctan(size)):.2g} degrees" if size > 0.0 else "")
        for size, direction in zip(least, directions.T)
        if size > NOTED_TILT or size == 0.0
    ]
    return [f"this log does not determine a tilt of the base {' or '.join(open_)}"] if open_ else []


# --- friction that changes ---------------------------------------------------------------------------------------


def _drift(evidence: Evidence, rows: Rows, fit: FreeFit) -> Explanation | None:
    model = evidence.model
    t0, t1 = float(rows.t[0]), float(rows.t[-1])
    n = model.robot.nv
    if t1 - t0 < MIN_WARMING_SECONDS:
        return None

    def columns(rows: Rows) -> np.ndarray:
        clock = 2.0 * (rows.t[:, None] - t0) / max(t1 - t0, 1e-300) - 1.0
        out = np.zeros((len(rows.t), n, 3 * n))
        rubs = rows.steps(model.smoothing)
        for k in range(n):
            steady = (np.ones(len(rows.t)), rubs[:, k], rows.v[:, k])
            out[:, k, 3 * k : 3 * k + 3] = np.stack(steady, -1) * clock
        return out

    added = columns(rows)
    after = fit_rows(model, rows, added)
    torque = np.einsum("nkm,m->nk", added, after.values[len(fit.values) :])
    size = np.sqrt((torque**2 * rows.used).sum(0) / np.maximum((rows.torques(model) ** 2 * rows.used).sum(0), 1e-300))
    gain = fit.freedom * np.log(np.maximum(fit.residuals, 1e-300) / np.maximum(after.residuals, 1e-300))
    out = np.flatnonzero((size > MIN_DRIFT_SHARE) & (gain > 1.5 * np.log(np.maximum(fit.independent, 2.0)) + 3.0))
    if not len(out) or not _friction_dissipates(model, rows, after, columns, out):
        return None
    which = ", ".join(f"{evidence.names[k]!r} {100 * size[k]:.2g} % of its torques" for k in out)
    seen = f"friction or offset changes during the log ({t1 - t0:.3g} s): {which}"
    advice = "Warm the robot up before the log starts, or fit parts of the log separately and compare friction"
    return _with_columns(
        evidence, rows, fit, Finding("drift", seen, advice), "friction or offsets change", columns, after
    )


def _friction_dissipates(
    model: RegressorModel, rows: Rows, after: FreeFit, columns: Callable[[Rows], np.ndarray], joints: np.ndarray
) -> bool:
    """Whether friction dissipates throughout, and falls or rises at all these joints, as with heat and wear."""
    friction = np.isin(np.array(model.kinds)[model.base.columns], ("viscous", "coulomb", "curve"))
    n = len(friction)
    steady = rows.regressor(model)[..., friction] @ after.values[:n][friction]
    change = after.values[n:].copy()
    change[0::3] = 0.0  # offsets
    at_end = replace(rows, t=np.full(len(rows.t), rows.t[-1]))
    power = [(rows.v * x * rows.used).sum(0)[joints] for x in (steady, columns(at_end) @ change)]
    share = power[1] / np.where(power[0] > 0.0, power[0], np.nan)
    return bool(
        (np.abs(share) < 1.0 + MAX_DRIVING_SHARE).all()
        and not (share.min() < -MIN_CHANGE_SHARE and share.max() > MIN_CHANGE_SHARE)
    )


def _with_columns(
    evidence: Evidence, rows: Rows, fit: FreeFit, finding: Finding, clause: str,
    columns: Callable[[Rows], np.ndarray], after: FreeFit,
) -> Explanation:  # fmt: skip
    """A mistake that additional columns undo, at their estimated size."""
    sizes = after.values[len(fit.values) :]

    def change(rows: Rows) -> Rows:
        return replace(rows, tau=rows.tau - columns(rows) @ sizes)

    gain = max(after.evidence_over(fit), after.evidence_over(fit, own=True))
    gain -= 0.5 * len(sizes) * float(np.log(max(fit.independent.sum(), 2.0)))
    right = change(rows)
    return Explanation(gain, finding, clause, right, fit_rows(evidence.model, right), change, takes_off=True)
