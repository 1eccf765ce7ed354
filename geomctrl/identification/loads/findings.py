"""Reasons not to trust a load that was found."""

from __future__ import annotations

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.mechanism import inertia

from .body import Body
from .stacked import Solved, solved

BODY = 29.6  # 99.9 % of chi-square with ten degrees of freedom
WIDE = 0.2  # of the mass
FAR = 1.5  # m, from the frame
DISAGREE = 1.5  # residual of two logs together in terms of that of each alone
UNEXPLAINED = 0.15  # of the torques


def of_body(body: Body) -> list[Finding]:
    """What the numbers say by themselves."""
    out, box = [], body.quantities()
    low, high = box["mass"]
    m, half = body.least_squares[0], 0.5 * (high - low)
    if high < 0.0:
        out.append(
            Finding("mass", f"the log shows a negative mass, {m:.3g} kg +-{half:.2g}",
                  "Look for torques of the other sign, logs given the wrong way round, a sensor that is tared with the"
                  " load on, gravity.", fatal=True)
        )  # fmt: skip
    elif low <= 0.0:
        out.append(
            Finding("mass", f"no load is seen: its mass is {m:.3g} kg +-{half:.2g}",
                  "Move all joints more and faster, for 10 s or longer, or take a heavier load.", fatal=True)
        )  # fmt: skip
    elif half > WIDE * m:
        out.append(
            Finding("excitation", f"the mass is known to +-{100.0 * half / m:.0f} % only",
                  "Move the joints that lift the load, over wide angles.")
        )  # fmt: skip
    elif not np.isfinite(box["centre"]).all():
        axes = ", ".join(a for a, x in zip("xyz", box["centre"]) if not np.isfinite(x).all())
        out.append(
            Finding("excitation", f"the motion says nothing of the centre of mass along {axes} of the frame",
                  "Turn the load in all directions against gravity; what is given there is the frame's origin.")
        )  # fmt: skip
    if body.distance > BODY:
        out.append(
            Finding("bodies", f"no rigid body explains the log: the nearest is off by a chi-square of"
                  f" {body.distance:.0f} of 10, where {BODY:g} is the most to be expected",
                  "Look at the frame, at friction that grows with the load, at a load that swings or slips, at the"
                  " robot's model.")
        )  # fmt: skip
    c = inertia.com(body.parameters)
    if np.linalg.norm(c) > FAR and not out:
        out.append(Finding("centre", f"the centre of mass is {np.linalg.norm(c):.2g} m from the frame",
                         "Look at units, the frame and the sensor's moments."))  # fmt: skip
    return out


def of_two_logs(together: Solved) -> list[Finding]:
    """Whether each log alone is explained much better than both together."""
    out = []
    data, rms = together.factored, together.residuals()
    for k, source in enumerate(data.sources):
        at = data.owners == k
        alone = solved(data.of(k), correlated=False).residuals()
        ratio = float(np.sqrt(np.mean((rms[at] / np.maximum(alone, 1e-12 * rms[at].max())) ** 2)))
        if ratio > DISAGREE:
            out.append(
                Finding("logs", f"the logs do not agree: residuals of {source.label!r} are {ratio:.2g} times those that"
                      " it has alone", "Log both on the same robot, warm alike, with nothing changed but the load.")
            )  # fmt: skip
    return out


def of_model(solved: Solved, torques: np.ndarray, source: str) -> list[Finding]:
    """torques (nv,): root mean square of the measured ones [N m]."""
    left = float(np.linalg.norm(solved.residuals()) / np.linalg.norm(torques))
    if left < UNEXPLAINED:
        return []
    return [
        Finding("model", f"the robot ({source}) and its load leave {100.0 * left:.0f} % of the torques unexplained",
              "Identify the robot first (geomctrl identify) and give its robot.json, or a log without the load.")
    ]  # fmt: skip
