"""How well the log is explained: at all, unseen, by least squares beside it, by a finished fit."""

from __future__ import annotations

import numpy as np

from geomctrl.identification.findings import Finding

from .evidence import Evidence, FreeFit
from .rows import Rows

LOST, POORLY = 0.3, 0.15  # relative error over all joints
LOST_JOINT = 0.6  # relative error of a joint
WORSE, FAR_WORSE = 2.0, 4.0  # unseen error in terms of the training error
UNSEEN, UNSEEN_LOST = 0.03, 0.2  # unseen errors below are no matter, above are a failure
HANG_TOGETHER = 4.0  # rows over which low-passed noise does not
SPEEDS = np.array([-0.3, -0.1, -0.03, 0.0, 0.03, 0.1, 0.3])  # of the fastest: edges of what residuals may go with
POSITIONS = np.linspace(-0.75, 0.75, 7)  # of the reach about its middle
PARTS, RIDGE = 4, 1e-4  # of the log, each predicted from the others; beside the mean square of a column
SHAPED = 0.2  # share of a residual's power that is worth saying
COSTLY, COST = 3.0, 0.1  # a joint's error in terms of least squares', and the least of it that counts


def explained(evidence: Evidence) -> list[Finding]:
    """Training errors that no sensor has."""
    training = evidence.errors["training"]
    total, relative = training["relative_error"], training["relative"]
    worst = int(np.nanargmax(relative)) if np.isfinite(relative).any() else 0
    advice = (
        "What the model lacks: friction curves (--friction ...,sigmoid), rotor inertias (--rotor yes), springs, a load;"
        " wrong geometry or columns; or a cut-off that does not fit the motion (--cutoff)"
    )
    if total > POORLY:
        seen = (
            f"{100 * total:.3g} % of the torques are left unexplained over all joints, most at"
            f" {evidence.names[worst]!r}: {100 * relative[worst]:.3g} %"
        )
        return [Finding("unexplained", seen, advice, bool(total > LOST))]
    bad = [k for k in range(len(relative)) if relative[k] > LOST_JOINT and k not in _costly(evidence)]
    if not bad:
        return []
    which = ", ".join(f"{evidence.names[k]!r} {100 * relative[k]:.3g} %" for k in bad)
    return [Finding("unexplained", f"of single joints' torques much is left unexplained: {which}", advice)]


def unseen(evidence: Evidence) -> list[Finding]:
    """Unseen errors far above training errors."""
    if "test" not in evidence.errors:
        return []
    seen, test = (_of_motion(evidence.errors[part]) for part in ("training", "test"))
    if not np.isfinite(test) or test < max(UNSEEN, WORSE * seen):
        return []
    words = f"unseen motion is predicted to {100 * test:.3g} %, the training data to {100 * seen:.3g} %"
    advice = (
        "Log a longer and richer motion, or one more like what the robot is to do; keep fewer parameters, or weigh the"
        " prior more (--prior-weight); is the test motion near standstill, or another load?"
    )
    return [Finding("unseen", words, advice, bool(test > UNSEEN_LOST and test > FAR_WORSE * seen))]


def _of_motion(errors: dict) -> float:
    """The relative error where joints move, if they do: at rest friction is what holds them, and no model knows it."""
    moving = errors.get("moving_error", np.nan)
    return moving if np.isfinite(moving) else errors["relative_error"]


def converged(evidence: Evidence) -> list[Finding]:
    """Optimisers that did not end well."""
    e = evidence.estimate
    if e.converged:
        return []
    keys = ("status", "evaluations", "iterations", "objective", "optimality")
    numbers = ", ".join(
        f"{key} {e.notes[key]:.3g}" if key != "status" else str(e.notes[key]) for key in keys if key in e.notes
    )
    advice = "Weigh the prior more (--prior-weight), joints by their noise (--noise-weights), or take another method"
    return [Finding("convergence", f"the optimiser of {e.method} did not converge ({numbers})", advice)]


def _costly(evidence: Evidence) -> list[int]:
    """Joints that prior and constraints explain much worse than least squares do."""
    relative, free = evidence.errors["training"]["relative"], evidence.free.relative
    return [k for k in range(len(free)) if relative[k] > max(COSTLY * free[k], free[k] + COST)]


def prior(evidence: Evidence) -> list[Finding]:
    """Joints whose torques prior or constraints leave unexplained, and least squares do not."""
    costly = _costly(evidence)
    if not costly:
        return []
    relative, free = evidence.errors["training"]["relative"], evidence.free.relative
    which = ", ".join(f"{evidence.names[k]!r} {100 * relative[k]:.3g} % and {100 * free[k]:.3g} %" for k in costly)
    seen = f"{evidence.estimate.method} leaves more torque unexplained than least squares without prior: {which}"
    advice = (
        "Where torques are small beside other joints', weigh joints by their noise (--noise-weights); else weigh the"
        " prior less (--prior-weight), or loosen bounds (--mass-max); signs that only negative masses or friction"
        " explain look like this too"
    )
    return [Finding("prior", seen, advice)]


def lacking(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[str]:
    """A note on joints whose residuals are no noise: what they go with. Intervals are wider for it."""
    bad = [k for k, count in enumerate(evidence.correlation) if count > HANG_TOGETHER]
    if not bad:
        return []
    left = rows.torques(evidence.model) - rows.regressor(evidence.model) @ fit.values
    moves, said = rows.motion, []
    for k in bad:
        signals = {}
        if moves is not None and moves.q.shape[1] == moves.v.shape[1]:
            q = moves.q[:, k]
            signals = {"speed": (moves.v[:, k], SPEEDS), "position": (q - 0.5 * (q.min() + q.max()), POSITIONS)}
        share = {name: shape_of(rows, steps(*x), left[:, k], rows.used[:, k]) for name, x in signals.items()}
        best = max(share, key=lambda name: share[name], default="")
        goes = (
            f" ({100 * share[best]:.0f} % of their power goes with its {best})" if share.get(best, 0) > SHAPED else ""
        )
        said.append(f"{evidence.names[k]!r}{goes}")
    return [
        f"residuals of {', '.join(said)} are no noise, they hang together over {HANG_TOGETHER:g} rows and more: the"
        " model lacks something there; what goes with speed is friction of another shape, what goes with position"
        " gears, springs or geometry. Intervals are as much wider as parameters scatter over parts of the log"
    ]


def steps(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(n, bins): ones where a signal (n,) is between two edges, given in terms of its greatest size."""
    place = np.digitize(x / max(float(np.abs(x).max()), 1e-300), edges)
    return (place[:, None] == np.arange(len(edges) + 1)).astype(float)


def shape_of(rows: Rows, columns: np.ndarray, residual: np.ndarray, used: np.ndarray) -> float:
    """Share of a residual's power that columns (samples of the motion, m) explain, low-passed as torques are: of
    stretches of time, each predicted from the others."""
    assert rows.motion is not None
    _, (A,) = rows.motion.at(rows.t - rows.lag, rows.motion.passed(columns))
    A, residual = A[used], residual[used]
    left, parts = 0.0, np.arange(len(A)) * PARTS // max(len(A), 1)
    for part in range(PARTS):
        held = parts == part
        P = A[~held].T @ A[~held]
        sizes = np.linalg.solve(
            P + RIDGE * max(float(np.trace(P)), 1e-300) * np.eye(len(P)), A[~held].T @ residual[~held]
        )
        left += float(((residual[held] - A[held] @ sizes) ** 2).sum())
    return 1.0 - left / max(float((residual**2).sum()), 1e-300)
