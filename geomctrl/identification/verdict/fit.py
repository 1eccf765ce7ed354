"""How well the log is explained: at all, unseen, by least squares beside it, by a finished fit."""

from __future__ import annotations

import numpy as np

from geomctrl.identification.doubts import Doubt

from .evidence import Evidence

LOST, POORLY = 0.3, 0.15  # relative error over all joints
LOST_JOINT = 0.6  # relative error of a joint
WORSE, FAR_WORSE = 2.0, 4.0  # unseen error in terms of the training error
UNSEEN, UNSEEN_LOST = 0.03, 0.2  # unseen errors below are no matter, above are a failure
HANG_TOGETHER = 4.0  # rows over which low-passed noise does not
COSTLY, COST = 3.0, 0.1  # a joint's error in terms of least squares', and the least of it that counts


def explained(evidence: Evidence) -> list[Doubt]:
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
        return [Doubt("unexplained", seen, advice, bool(total > LOST))]
    bad = [k for k in range(len(relative)) if relative[k] > LOST_JOINT and k not in _costly(evidence)]
    if not bad:
        return []
    which = ", ".join(f"{evidence.names[k]!r} {100 * relative[k]:.3g} %" for k in bad)
    return [Doubt("unexplained", f"of single joints' torques much is left unexplained: {which}", advice)]


def unseen(evidence: Evidence) -> list[Doubt]:
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
    return [Doubt("unseen", words, advice, bool(test > UNSEEN_LOST and test > FAR_WORSE * seen))]


def _of_motion(errors: dict) -> float:
    """The relative error where joints move, if they do: at rest friction is what holds them, and no model knows it."""
    moving = errors.get("moving_error", np.nan)
    return moving if np.isfinite(moving) else errors["relative_error"]


def converged(evidence: Evidence) -> list[Doubt]:
    """Optimisers that did not end well."""
    e = evidence.estimate
    if e.converged:
        return []
    keys = ("status", "evaluations", "iterations", "objective", "optimality")
    numbers = ", ".join(
        f"{key} {e.notes[key]:.3g}" if key != "status" else str(e.notes[key]) for key in keys if key in e.notes
    )
    advice = "Weigh the prior more (--prior-weight), joints by their noise (--noise-weights), or take another method"
    return [Doubt("convergence", f"the optimiser of {e.method} did not converge ({numbers})", advice)]


def _costly(evidence: Evidence) -> list[int]:
    """Joints that prior and constraints explain much worse than least squares do."""
    relative, free = evidence.errors["training"]["relative"], evidence.free.relative
    return [k for k in range(len(free)) if relative[k] > max(COSTLY * free[k], free[k] + COST)]


def prior(evidence: Evidence) -> list[Doubt]:
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
    return [Doubt("prior", seen, advice)]


def lacking(evidence: Evidence) -> list[str]:
    """A note on joints whose residuals are no noise: what the model lacks there, intervals do not count wholly."""
    bad = [name for name, rows in zip(evidence.names, evidence.correlation) if rows > HANG_TOGETHER]
    if not bad:
        return []
    return [
        f"residuals of {', '.join(map(repr, bad))} are no noise, they hang together over {HANG_TOGETHER:g} rows and"
        " more: what the model lacks (friction's shape, elasticity) may move parameters by more than their intervals"
    ]
