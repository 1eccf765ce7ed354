"""A URDF's transmissions: the gears and motors of its joints."""

import math

from geomctrl.models.source import read_numbers

__all__ = ["read_motors"]

DRIVEN = ("revolute", "continuous", "prismatic")
DRAKE = ("rotor_inertia", "gear_ratio")  # what Drake adds to <actuator>, with its prefix


def read_motors(root) -> tuple[dict[str, dict[str, float]], list[str]]:
    """({joint: its options gear_ratio and armature}, what is stated and not read, with its line).

    Of <transmission>s between one joint and one actuator: <mechanicalReduction> is the gear ratio, Drake's
    <drake:gear_ratio> goes before it, and <drake:rotor_inertia> times its square is the armature. Others, as of
    differentials, couple joints, and their reductions are nobody's.
    """
    kinds = {joint.get("name"): joint.get("type") for joint in root.findall("joint")}
    motors: dict[str, dict[str, float]] = {}
    unread: list[str] = []
    for element in root.findall("transmission"):
        stated, joints = _stated(element, unread), [joint.get("name") for joint in element.findall("joint")]
        alone = len(joints) == len(element.findall("actuator")) == 1 and kinds.get(joints[0]) in DRIVEN
        if alone and stated and joints[0] not in motors:
            ratio = stated.get("gear_ratio", stated.get("mechanicalReduction", 1.0))
            motors[joints[0]] = {"gear_ratio": ratio, "armature": stated.get("rotor_inertia", 0.0) * ratio**2}
        elif stated.get("rotor_inertia"):
            why = "expected one actuator, the only one, of one joint that turns or slides"
            unread.append(f"{_where(element)}: rotor_inertia at {', '.join(map(repr, joints)) or 'no joint'}; {why}")
    return motors, unread


def _stated(transmission, unread):
    """The numbers that a transmission states, by their names; what is none goes to `unread`."""
    texts = [(e, "mechanicalReduction", e.text) for e in transmission.iter("mechanicalReduction")]
    for child in transmission.iterfind("actuator/*"):
        key = child.tag.split("}")[-1]
        if child.prefix == "drake" and key in DRAKE:
            texts.append((child, key, child.get("value")))
    stated = {}
    for element, key, text in texts:
        try:
            (value,) = read_numbers(text or "")
        except ValueError:
            value = math.nan
        if math.isfinite(value) and (value >= 0.0 if key == "rotor_inertia" else value != 0.0):
            stated[key] = value
        else:
            unread.append(f"line {element.sourceline}: {key} {text!r} of {_where(transmission).partition(': ')[2]}")
    return stated


def _where(transmission):
    return f"line {transmission.sourceline}: transmission {transmission.get('name')!r}"
