"""Check the fit: training and test errors, the cost of the prior, and whether the bodies are plausible."""

from __future__ import annotations

import numpy as np

from geomctrl.identification.estimators.prior_problem import at_the_edge
from geomctrl.identification.findings import Finding, listing
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

from .evidence import Evidence, FreeFit
from .rows import Rows

FATAL_ERROR, MAX_ERROR = 0.3, 0.15  # relative error over all joints
MAX_JOINT_ERROR = 0.6  # relative error of a joint
MAX_UNSEEN_RATIO, FATAL_UNSEEN_RATIO = 2.0, 4.0  # unseen error relative to the training error
MIN_UNSEEN_ERROR, FATAL_UNSEEN_ERROR = 0.03, 0.2  # smaller unseen errors are ignored, larger ones are fatal
MAX_CORRELATION_ROWS = 4.0  # rows: low-passed noise is not correlated over more
SPEEDS = np.array([-0.3, -0.1, -0.03, 0.0, 0.03, 0.1, 0.3])  # of the largest speed: edges of the bins for residuals
POSITIONS = np.linspace(-0.75, 0.75, 7)  # of half the range: edges of the bins for residuals
PARTS, RIDGE = 4, 1e-4  # parts of the log, each predicted from the others; weight relative to a column's mean square
MIN_SHAPE_SHARE = 0.2  # share of a residual's power from which a note says so
MAX_PRIOR_RATIO, MIN_PRIOR_COST = 3.0, 0.1  # error relative to least squares, and its smallest excess


def explained(evidence: Evidence) -> list[Finding]:
    """Findings on training errors larger than those of any sensor."""
    training = evidence.errors["training"]
    total, relative = training["relative_error"], training["relative"]
    worst = int(np.nanargmax(relative)) if np.isfinite(relative).any() else 0
    advice = (
        "The model may lack friction curves (--friction ...,sigmoid), rotor inertias (--rotor yes), springs, a load;"
        " wrong geometry or columns; or a cut-off that does not fit the motion (--cutoff)"
    )
    if total > MAX_ERROR:
        seen = (
            f"{100 * total:.3g} % of the torques are left unexplained over all joints, most at"
            f" {evidence.names[worst]!r}: {100 * relative[worst]:.3g} %"
        )
        return [Finding("unexplained", seen, advice, bool(total > FATAL_ERROR))]
    bad = [
        k for k in range(len(relative)) if relative[k] > MAX_JOINT_ERROR and k not in _joints_limited_by_prior(evidence)
    ]
    which = [f"{evidence.names[k]!r} {100 * relative[k]:.3g} %" for k in bad]
    return listing("unexplained", "much of the torque of single joints is unexplained", which, advice)


def unseen(evidence: Evidence) -> list[Finding]:
    """Findings on test errors far above training errors."""
    if "test" not in evidence.errors:
        return []
    seen, test = (_of_motion(evidence.errors[part]) for part in ("training", "test"))
    if not np.isfinite(test) or test < max(MIN_UNSEEN_ERROR, MAX_UNSEEN_RATIO * seen):
        return []
    errors = f"unseen motion is predicted to {100 * test:.3g} %, the training data to {100 * seen:.3g} %"
    advice = (
        "Log a longer and richer motion, or one closer to the task; use fewer parameters, or a larger weight of the"
        " prior (--prior-weight). Is the test motion near standstill, or with another load?"
    )
    return [Finding("unseen", errors, advice, bool(test > FATAL_UNSEEN_ERROR and test > FATAL_UNSEEN_RATIO * seen))]


def _of_motion(errors: dict) -> float:
    """The relative error where joints move, if they do: at rest stiction holds them, which no model predicts."""
    moving = errors.get("moving_error", np.nan)
    return moving if np.isfinite(moving) else errors["relative_error"]


def converged(evidence: Evidence) -> list[Finding]:
    """Findings on optimisers that did not converge."""
    e = evidence.estimate
    if e.converged:
        return []
    status = e.notes.get("status", "without a status")
    advice = (
        "Increase the weight of the prior (--prior-weight), weigh joints by their noise (--noise-weights), or"
        " use another method"
    )
    return [Finding("convergence", f"the optimiser of {e.method} did not converge ({status})", advice)]


def _joints_limited_by_prior(evidence: Evidence) -> list[int]:
    """Joints that prior and constraints explain much worse than unconstrained least squares."""
    relative, free = evidence.errors["training"]["relative"], evidence.free.relative
    return [k for k in range(len(free)) if relative[k] > max(MAX_PRIOR_RATIO * free[k], free[k] + MIN_PRIOR_COST)]


def prior(evidence: Evidence) -> list[Finding]:
    """Findings on joints whose torques are unexplained because of the prior or constraints."""
    relative, free = evidence.errors["training"]["relative"], evidence.free.relative
    limited = _joints_limited_by_prior(evidence)
    which = [f"{evidence.names[k]!r} {100 * relative[k]:.3g} % and {100 * free[k]:.3g} %" for k in limited]
    seen = f"{evidence.estimate.method} leaves more torque unexplained than least squares without prior"
    advice = (
        "If the torques are small compared with other joints, weigh joints by their noise (--noise-weights); otherwise"
        " reduce the weight of the prior (--prior-weight), or widen bounds (--mass-max). Wrong signs, which only"
        " negative masses or friction explain, also look like this"
    )
    return listing("prior", seen, which, advice)


def model_errors(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[str]:
    """A note on joints whose residuals are not noise, and the signals they correlate with. Intervals include this."""
    bad = [k for k, count in enumerate(evidence.correlation) if count > MAX_CORRELATION_ROWS]
    if not bad:
        return []
    left = rows.torques(evidence.model) - rows.regressor(evidence.model) @ fit.values
    moves, parts = rows.motion, []
    for k in bad:
        signals = {}
        if moves is not None and moves.q.shape[1] == moves.v.shape[1]:
            q = moves.q[:, k]
            signals = {"speed": (moves.v[:, k], SPEEDS), "position": (q - 0.5 * (q.min() + q.max()), POSITIONS)}
        share = {name: shape_of(rows, steps(*x), left[:, k], rows.used[:, k]) for name, x in signals.items()}
        best = max(share, key=lambda name: share[name], default="")
        goes = (
            f" ({100 * share[best]:.0f} % of their power goes with its {best})"
            if share.get(best, 0) > MIN_SHAPE_SHARE
            else ""
        )
        parts.append(f"{evidence.names[k]!r}{goes}")
    return [
        f"residuals of {', '.join(parts)} are not noise, they are correlated over {MAX_CORRELATION_ROWS:g} samples and"
        " more: the model lacks an effect there. Correlation with speed points to another shape of friction, with"
        " position to gears, springs or geometry. Intervals include the scatter of parameters over parts of the log"
    ]


def steps(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(n, bins): ones where a signal (n,) is between two edges, relative to its maximum."""
    place = np.digitize(x / max(float(np.abs(x).max()), 1e-300), edges)
    return (place[:, None] == np.arange(len(edges) + 1)).astype(float)


def shape_of(rows: Rows, columns: np.ndarray, residual: np.ndarray, used: np.ndarray) -> float:
    """Share of a residual's power that columns (samples of the motion, m), low-passed as torques are, explain."""
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


# --- bodies ----------------------------------------------------------------------------------------------------------


MIN_AXIS_RATIO = 1e-3  # smallest ratio of a body's least second moment to the next: real links have more
MAX_MASS_RATIO = 1.5  # mass relative to the sum of the model's masses
MIN_MASS_RATIO = 1e-3  # of the mean mass: the centre of mass of lighter bodies is not checked
JOINT_BOX_MARGIN = 0.5  # of a link's extent, or of the mean link's: margin of the box around its joints
GEOMETRY_MARGIN = 0.1  # of the longest side of a link's geometry: margin of its box
ADVICE = {
    "impossible": "Only base parameters and torques are meaningful here; for a robot to simulate use --method"
    " consistent",
    "edge": "Increase the weight of the prior (--prior-weight), or the entropic one (such as --entropic 1e-4);"
    " otherwise M is nearly singular",
    "mass": "Missing rotor inertias make links heavy (--rotor yes); otherwise bound masses (--mass-max), increase the"
    " weight of the prior (--prior-weight), or check the cut-off (--cutoff)",
    "centre": "Increase the weight of the prior (--prior-weight); the log does not determine where these masses are",
}


def bodies(evidence: Evidence) -> list[Finding]:
    """Findings on implausible bodies of the estimate."""
    e, robot = evidence.estimate, evidence.model.robot
    pi = e.x[: e.model.inertial].reshape(-1, 10)
    impossible = {name: why for name, why in e.verdicts.items() if why is not None}
    flat, thin, heavy, outside = [], [], [], []
    total = robot.parameters[:, 0].sum()
    for name, body, before, by_joints in zip(robot.body_names, pi, robot.parameters, joint_boxes(robot)):
        box = _wider(evidence.boxes[name]) if name in evidence.boxes else by_joints
        if name in impossible:
            continue
        before_is_a_body = inertia.is_physical(before, strict=True)
        axes, was = _second_moments(body), _second_moments(before) if before_is_a_body else np.ones(3)
        if axes[0] < MIN_AXIS_RATIO * axes[1] and was[0] > MIN_AXIS_RATIO * was[1]:
            flat.append(f"{name!r} (second moments {_as_text(axes)} kg m^2)")
        elif _at_the_edge(body) and not (before_is_a_body and _at_the_edge(before)):
            moments = np.linalg.eigvalsh(inertia.com_tensor(body))
            thin.append(f"{name!r} (principal moments {_as_text(moments)} kg m^2, of {body[0]:.3g} kg)")
        if total > 0.0 and body[0] > MAX_MASS_RATIO * total:
            heavy.append(f"{name!r} {body[0]:.4g} kg")
        c = inertia.com(body)
        if body[0] > MIN_MASS_RATIO * pi[:, 0].mean() and _outside(c, box) and not _outside_before(before, box):
            container = "its geometry" if name in evidence.boxes else "a box around its joints plus 50 %"
            outside.append(f"{name!r} at ({', '.join(f'{x:.3g}' for x in c)}) m, outside {container}")
    return [
        *_impossible(impossible),
        *listing("bodies", "nearly degenerate bodies, thinner than a sheet", flat, ADVICE["edge"]),
        *listing("bodies", "nearly degenerate bodies, as thin as a rod or as small as a point", thin, ADVICE["edge"]),
        *listing("bodies", f"heavier than the sum of the model's bodies ({total:.4g} kg)", heavy, ADVICE["mass"]),
        *listing("bodies", "centre of mass outside the link", outside, ADVICE["centre"]),
    ]


def _at_the_edge(body: np.ndarray) -> bool:
    return bool(at_the_edge(body[None], MIN_AXIS_RATIO)[0])


def _as_text(x: np.ndarray) -> str:
    return ", ".join(f"{y:.2g}" for y in x)


def _second_moments(body: np.ndarray) -> np.ndarray:
    """Eigenvalues (3,) of int r r^T dm about the centre of mass [kg m^2], in increasing order."""
    I = inertia.com_tensor(body)
    return np.linalg.eigvalsh(0.5 * np.trace(I) * np.eye(3) - I)


def joint_boxes(robot: Robot) -> list[np.ndarray]:
    """For each body (2, 3), the lower and upper corner in its frame [m] of a box around its own joint and the joints on
    it, widened by half of its longest side or of that of the mean link, whichever is more.

    The box of a body that carries no joint, and no frame away from its own origin, is infinite, because nothing says
    where the body ends.
    """
    steps = np.linalg.norm(robot.placements[:, :3, 3], axis=1)
    typical = float(steps[steps > 1e-6].mean()) if (steps > 1e-6).any() else 0.1
    boxes = []
    for i, joint in enumerate(robot.joints):
        on_it = [robot.placements[j, :3, 3] for j, parent in enumerate(robot.parents) if parent == i]
        frames = [frame.placement[:3, 3] for frame in robot.frames if frame.body == i]  # its own is one of them
        if not on_it and not np.any(frames):
            boxes.append(np.array([[-np.inf] * 3, [np.inf] * 3]))
            continue
        before = -robot.placements[i, :3, :3].T @ robot.placements[i, :3, 3]  # the joint that carries the body
        points = np.array([np.zeros(3), before, *on_it, *frames])
        low, high = points.min(0), points.max(0)
        if joint.dof == 1 and not joint.S[:3].any():  # slides
            reach = float(np.nan_to_num(max(abs(joint.lower), abs(joint.upper)), posinf=typical))
            low, high = low - reach, high + reach
        wider = JOINT_BOX_MARGIN * max(float((high - low).max()), typical)
        boxes.append(np.array([low - wider, high + wider]))
    return boxes


def _wider(box: np.ndarray) -> np.ndarray:
    """A widened box of geometry (GEOMETRY_MARGIN), because models leave out screws, cables and tolerances."""
    room = GEOMETRY_MARGIN * float((box[1] - box[0]).max())
    return np.array([box[0] - room, box[1] + room])


def _outside(c: np.ndarray, box: np.ndarray) -> bool:
    return bool((c < box[0]).any() or (c > box[1]).any())


def _outside_before(before: np.ndarray, box: np.ndarray) -> bool:
    """Whether the model's own body is already outside the box; then the box is not used."""
    return before[0] > 0.0 and _outside(inertia.com(before), box)


def _impossible(impossible: dict[str, str]) -> list[Finding]:
    if not impossible:
        return []
    name, why = next(iter(impossible.items()))
    more = f", and {len(impossible) - 1} more" if len(impossible) > 1 else ""
    seen = f"no body can have the parameters of {name!r} ({why}){more}; the exported robot has them"
    return [Finding("bodies", seen, ADVICE["impossible"])]
