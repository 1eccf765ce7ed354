"""Check the XML of a URDF before its numbers are read: errors with lines, unknown elements, transmissions."""

import difflib
import math
from collections import Counter

from geomctrl.errors import ModelError
from geomctrl.models.io.xml_text import read_numbers

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")

# What is read: elements by their parent (ONCE: at most once), and the numbers in attributes: (how many, required).
ONCE = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic", "calibration", "safety_controller"),
}
ELEMENTS = {"robot": ("link", "joint"), **ONCE}
NUMBERS = {
    "origin": {"xyz": (3, False), "rpy": (3, False)},
    "axis": {"xyz": (3, True)},
    "mass": {"value": (1, True)},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), (1, True)),
    "limit": dict.fromkeys(("lower", "upper", "velocity", "effort"), (1, False)),
    "dynamics": {"damping": (1, False), "friction": (1, False)},
    "mimic": {"multiplier": (1, False), "offset": (1, False)},
}
ATTRIBUTES = {
    **{tag: tuple(numbers) for tag, numbers in NUMBERS.items()},
    "link": ("name",),
    "joint": ("name", "type"),
    "parent": ("link",),
    "child": ("link",),
    "inertial": (),
    "mimic": ("joint", *NUMBERS["mimic"]),
}
MAX_ATTRIBUTES = 1000  # of an element; real ones have at most ten
STRICT = ("origin", "axis", "mass", "inertia")  # an unknown attribute here would silently change a frame or a mass

# Elements that real files also contain, for viewers, simulators and drives.
APPEARANCE_TAGS = ("visual", "collision", "contact", "surface", "material", "sensor", "gazebo")
OTHER_ELEMENTS = {
    "robot": ("material", "gazebo", "transmission", "sensor", "ros2_control", "plugin", "mujoco", "group"),
    "link": (
        *APPEARANCE_TAGS,
        "collision_checking",
        "self_collision_checking",
        "self_filter",
        "kinematic",
        "gravity",
        "verbose",
    ),
    "joint": ("sensor", "gazebo", "hardwareInterface"),
}
OTHER_ATTRIBUTES = {
    "link": ("type",),
    "joint": ("dont_collapse",),
    "limit": ("acceleration", "deceleration", "jerk", "command_effort", "current", "gear_velocity"),
    "dynamics": ("K", "D", "mu_coulomb", "mu_viscous"),
}


def check_document(root) -> list[str]:
    """List elements that look physical but are not read, with their lines; raise ModelError for errors."""
    if root.tag != "robot":
        raise ModelError(f"not a URDF: expected the root element <robot>, got <{root.tag}>")
    for element in root.iter():
        if len(element.attrib) > MAX_ATTRIBUTES:  # reading them takes lxml a time that grows with their square
            raise _error(element, f"<{_shown(element)}> has {len(element.attrib)} attributes")
        unexpanded = any(a in str(v) for v in element.attrib.values() for a in ("${", "$("))
        if "xacro" in element.tag or (unexpanded and _is_model(element)):
            raise _error(element, f"<{_shown(element)}> is a xacro macro: expand the file with `xacro` first")
    for kind in ("link", "joint"):
        names = {e: e.get("name") for e in root.findall(kind)}
        for element, name in names.items():
            if not name:
                raise _error(element, f"a <{kind}> has no name")
        twice = [n for n, count in Counter(names.values()).items() if count > 1]
        if twice:
            again = [e for e, name in names.items() if name == twice[0]][1]
            raise _error(again, f"duplicate {kind} name(s): {', '.join(map(repr, twice))}")
    if root.find("link") is None:
        raise ModelError("no links")
    _check_spelling(root, "<robot>")
    for link in root.findall("link"):
        _check_link(link)
    for joint in root.findall("joint"):
        _check_joint(joint)
    return list(_unread(root, "<robot>"))


def _shown(element):
    local = element.tag.split("}")[-1]
    return f"{element.prefix}:{local}" if element.prefix else local


def _error(element, message):
    return ModelError(f"line {element.sourceline}: {message}")


def _is_model(element):
    """Whether the element describes the tree or the masses, and not appearance or simulators."""
    outer = {a.tag for a in element.iterancestors()} | {element.tag}
    return bool(outer & {"joint", "inertial"}) and not outer & {"gazebo", "transmission", "visual", "collision"}


def _check_link(link):
    where = f"link {link.get('name')!r}"
    _check_once(link, where)
    inertial = link.find("inertial")
    if inertial is None:
        return
    _check_once(inertial, where)
    for tag in ("mass", "inertia"):
        if inertial.find(tag) is None:
            raise _error(inertial, f"{where}: <inertial> has no <{tag}>")
    for child in inertial:
        _check_numbers(child, where)


def _check_joint(joint):
    where = f"joint {joint.get('name')!r}"
    if joint.get("type") not in JOINT_TYPES:
        stated = f"of type {joint.get('type')!r}" if joint.get("type") else "without a type"
        types = ", ".join(JOINT_TYPES)
        raise _error(joint, f"{where}: {stated}, which URDF does not have; expected one of {types}")
    _check_once(joint, where)
    for tag in ("parent", "child"):
        if joint.find(tag) is None or not joint.find(tag).get("link"):
            raise _error(joint, f"{where}: no <{tag} link=...>")
    for child in joint:
        _check_numbers(child, where)


def _check_once(element, where):
    count = Counter(child.tag for child in element)
    for tag in ONCE[element.tag]:
        if count[tag] > 1:
            message = f"{where}: {count[tag]} <{tag}> elements in <{element.tag}>, expected at most one"
            raise _error(element.findall(tag)[1], message)
    _check_spelling(element, where)


def _check_spelling(element, where):
    """Raise ModelError for an unknown element that is almost one of the known names."""
    read = ELEMENTS[element.tag]
    for child in element:
        if child.tag not in (*read, *OTHER_ELEMENTS.get(element.tag, ())):
            near = difflib.get_close_matches(child.tag.lower(), read, n=1, cutoff=0.8)
            if near:
                raise _error(child, f"{where}: unknown element <{_shown(child)}>; did you mean <{near[0]}>?")


def _check_numbers(element, where):
    expected = NUMBERS.get(element.tag, {})
    for key, (count, required) in expected.items():
        text = element.get(key)
        label = f"{where}: <{element.tag} {key}=...>"
        if text is None:
            if required:
                raise _error(element, f"{label} is missing")
            continue
        try:
            values = read_numbers(text)
        except ValueError:
            values = []
        if len(values) != count:
            raise _error(element, f"{label}: expected {count} number{'s' * (count > 1)}, got {text!r}")
        unlimited = element.tag == "limit" and not any(map(math.isnan, values))
        if not unlimited and not all(map(math.isfinite, values)):
            raise _error(element, f"{label}: expected finite numbers, got {text!r}")
    for key in _unknown_attributes(element) if expected else ():
        near = difflib.get_close_matches(key.lower(), expected, n=1, cutoff=0.8)
        if near or element.tag in STRICT:
            hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(expected)}"
            raise _error(element, f"{where}: <{element.tag}> has an unknown attribute {key!r}; {hint}")


def _unknown_attributes(element):
    allowed = (*ATTRIBUTES[element.tag], *OTHER_ATTRIBUTES.get(element.tag, ()))
    return [key for key in sorted(element.attrib) if key.split("}")[-1] not in allowed]


def _unread(element, where):
    """Yield messages about unknown elements and attributes in and below an element that is read."""
    read = ELEMENTS.get(element.tag, ())
    for child in element:
        if child.tag in OTHER_ELEMENTS.get(element.tag, ()):
            continue
        if child.tag not in read:
            near = difflib.get_close_matches(child.tag.lower(), read, n=1, cutoff=0.7)
            hint = f"; did you mean <{near[0]}>?" if near else ""
            yield f"line {child.sourceline}: <{_shown(child)}> in {where}{hint}"
        elif child.tag in ATTRIBUTES:
            inside = f"{child.tag} {child.get('name')!r}" if element.tag == "robot" else f"<{child.tag}> of {where}"
            for key in _unknown_attributes(child):
                yield f"line {child.sourceline}: {key.split('}')[-1]!r} of {inside}"
            yield from _unread(child, inside)


DRIVEN = ("revolute", "continuous", "prismatic")
DRAKE = ("rotor_inertia", "gear_ratio")  # elements that Drake adds to <actuator>, with its prefix


def read_motors(root) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Return ({joint: its options gear_ratio and armature}, statements that are not read, with their lines).

    Only a <transmission> between one joint and one actuator is read: <mechanicalReduction> is the gear ratio,
    <drake:gear_ratio> takes precedence, and <drake:rotor_inertia> times its square is the armature. Other
    transmissions, for example differentials, couple joints, so their reduction belongs to no single joint.
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
            why = "expected a transmission with one actuator and one joint that rotates or slides"
            unread.append(f"{_where(element)}: rotor_inertia at {', '.join(map(repr, joints)) or 'no joint'}; {why}")
    return motors, unread


def _stated(transmission, unread):
    """Return the numbers in a transmission, by name; entries that are not numbers are added to `unread`."""
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
