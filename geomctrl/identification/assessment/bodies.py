"""Bodies at the edge of what can exist, and bodies that are not where their link is."""

from __future__ import annotations

import numpy as np

from geomctrl.identification.estimators.prior_problem import at_the_edge
from geomctrl.identification.findings import Finding
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

from .evidence import Evidence

FLAT = 1e-3  # ratio of the least to the next axis of a body's moments below which nobody builds it
HEAVY = 1.5  # mass in terms of all the model's masses together
LIGHT = 1e-3  # of the mean mass: nothing to be said about where the centre of mass of such a body is
MARGIN = 0.5  # of a link's extent, or of the mean link's, by which its box is wider than its joints
SHELL = 0.1  # of the longest side of a link's geometry, by which its box is wider than that


def bodies(evidence: Evidence) -> list[Finding]:
    """What of the estimate's bodies no engineer would believe."""
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
        if axes[0] < FLAT * axes[1] and was[0] > FLAT * was[1]:
            flat.append(f"{name!r} (second moments {_in_words(axes)} kg m^2)")
        elif _at_the_edge(body) and not (before_is_a_body and _at_the_edge(before)):
            moments = np.linalg.eigvalsh(inertia.com_tensor(body))
            thin.append(f"{name!r} (principal moments {_in_words(moments)} kg m^2, of {body[0]:.3g} kg)")
        if total > 0.0 and body[0] > HEAVY * total:
            heavy.append(f"{name!r} {body[0]:.4g} kg")
        c = inertia.com(body)
        if body[0] > LIGHT * pi[:, 0].mean() and _outside(c, box) and not _outside_before(before, box):
            what = "its geometry" if name in evidence.boxes else "a box about its joints half as wide again"
            outside.append(f"{name!r} at ({', '.join(f'{x:.3g}' for x in c)}) m, outside {what}")
    return [
        *_impossible(evidence, impossible),
        *_edge(flat, "thinner than a sheet"),
        *_edge(thin, "thin as a rod or small as a point"),
        *_masses(heavy, total),
        *_centres(outside),
    ]


def _at_the_edge(body: np.ndarray) -> bool:
    return bool(at_the_edge(body[None], FLAT)[0])


def _in_words(x: np.ndarray) -> str:
    return ", ".join(f"{y:.2g}" for y in x)


def _second_moments(body: np.ndarray) -> np.ndarray:
    """Eigenvalues (3,) of int r r^T dm about the centre of mass [kg m^2], the least first."""
    I = inertia.com_tensor(body)
    return np.linalg.eigvalsh(0.5 * np.trace(I) * np.eye(3) - I)


def joint_boxes(robot: Robot) -> list[np.ndarray]:
    """Per body (2, 3) lower and upper corner in its frame [m]: a box about its own joint and those on it, wider by half
    of its longest side or of the mean link's, whichever is more."""
    steps = np.linalg.norm(robot.placements[:, :3, 3], axis=1)
    typical = float(steps[steps > 1e-6].mean()) if (steps > 1e-6).any() else 0.1
    boxes = []
    for i, joint in enumerate(robot.joints):
        on_it = [robot.placements[j, :3, 3] for j, parent in enumerate(robot.parents) if parent == i]
        on_it += [frame.placement[:3, 3] for frame in robot.frames if frame.body == i]
        before = -robot.placements[i, :3, :3].T @ robot.placements[i, :3, 3]  # the joint before, where it hangs on
        points = np.array([np.zeros(3), before, *on_it])
        low, high = points.min(0), points.max(0)
        if joint.dof == 1 and not joint.S[:3].any():  # slides
            reach = float(np.nan_to_num(max(abs(joint.lower), abs(joint.upper)), posinf=typical))
            low, high = low - reach, high + reach
        wider = MARGIN * max(float((high - low).max()), typical)
        boxes.append(np.array([low - wider, high + wider]))
    return boxes


def _wider(box: np.ndarray) -> np.ndarray:
    """A box of geometry, with room for what the geometry leaves out: screws, cables, its own tolerance."""
    room = SHELL * float((box[1] - box[0]).max())
    return np.array([box[0] - room, box[1] + room])


def _outside(c: np.ndarray, box: np.ndarray) -> bool:
    return bool((c < box[0]).any() or (c > box[1]).any())


def _outside_before(before: np.ndarray, box: np.ndarray) -> bool:
    """Whether the model's own body was outside already: its box is none then."""
    return before[0] > 0.0 and _outside(inertia.com(before), box)


def _impossible(evidence: Evidence, impossible: dict[str, str]) -> list[Finding]:
    if not impossible:
        return []
    name, why = next(iter(impossible.items()))
    more = f", and {len(impossible) - 1} more" if len(impossible) > 1 else ""
    seen = f"no body can have the parameters of {name!r} ({why}){more}; the exported robot has them"
    advice = "Only base parameters and torques mean something here; for a robot to simulate take --method consistent"
    return [Finding("bodies", seen, advice)]


def _edge(found: list[str], how: str) -> list[Finding]:
    if not found:
        return []
    seen = f"hardly a body, {how}: {', '.join(found)}"
    advice = (
        "Weigh the prior more (--prior-weight), or its shape (--entropic 1e-4, say); M is nearly singular otherwise"
    )
    return [Finding("bodies", seen, advice)]


def _masses(heavy: list[str], total: float) -> list[Finding]:
    if not heavy:
        return []
    seen = f"heavier than all the model's bodies together ({total:.4g} kg): {', '.join(heavy)}"
    advice = (
        "Rotor inertias that the model lacks make links heavy (--rotor yes); else bound masses (--mass-max), weigh the"
        " prior more (--prior-weight), or look at the cut-off (--cutoff)"
    )
    return [Finding("bodies", seen, advice)]


def _centres(outside: list[str]) -> list[Finding]:
    if not outside:
        return []
    seen = f"centre of mass outside the link: {'; '.join(outside)}"
    advice = "Weigh the prior more (--prior-weight); the log does not tell where these masses are"
    return [Finding("bodies", seen, advice)]
