"""Find which columns of a recording are t, q, v, a, tau, or currents i, and of which joint.

Names given by the caller have priority; then common names with numbers (q1, q2, ...); then names that contain the
joints' names, as PlotJuggler writes them, /joint_states/elbow/position, or in other forms, position/elbow, elbow.pos,
effort[elbow], q_elbow. The order of the columns in the file does not matter.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from geomctrl.identification.errors import DataError

from .options import FIELDS
from .recording import MAX_SHOWN, Recording, chosen, real

# --- columns called after joints -------------------------------------------------------------------------------------


Columns = dict[str, dict[str, str]]  # field: joint: column


def columns_of_joints(
    recording: Recording,
    aliases: Mapping[str, Sequence[str]],
    joints: Sequence[str] | None,
    topic: str | None,
    needed: set[str],
) -> Columns:
    """The columns of one topic by field and joint, in the order of `joints`; empty if no column has a joint's name."""
    fields = {word: field for field, spoken in aliases.items() for word in spoken}
    anonymous = _parsed(recording.arrays, None, fields)
    by_topic = anonymous if joints is None else _parsed(recording.arrays, joints, fields)
    if not by_topic:
        if anonymous and joints and needed:
            raise _no_such_joint(recording, anonymous, joints, joints[0])
        return {}
    whole = {name: x for name, x in by_topic.items() if _missing_field(x, joints, needed) is None}
    pool = whole if whole and topic is None else by_topic
    sizes = {name: sum(map(len, x.values())) for name, x in pool.items()}
    if whole or topic is not None:
        name = chosen(recording.label, {k: f"{n} columns" for k, n in sizes.items()}, topic)
    else:
        name = max(sizes, key=lambda k: sizes[k])
    if (lacking := _missing_field(by_topic[name], joints, needed)) is not None:
        field, joint = lacking
        if joints is not None and joint and not any(joint in x for x in by_topic[name].values()):
            raise _no_such_joint(recording, anonymous, joints, joint)
        of = f" of joint {joint!r}" if joint else ""
        on = f" on {name!r}" if name else ""
        also = ", or currents with their gains" if field == "tau" else ""
        spoken = " or ".join(aliases[field][1:4]) or field
        raise DataError(
            f"{recording.label}: {field}: expected {spoken}{of}{on}{also}, got none; {recording.available_names()}"
        )
    order = joints if joints is not None else list(by_topic[name].get("q", next(iter(by_topic[name].values()))))
    return {f: {j: x[j] for j in order} for f, x in by_topic[name].items() if all(j in x for j in order)}


def whole_rows(
    label: str, joints: Sequence[str], arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """(the arrays without rows of other topics or joints, notes): a file of several topics has nan there."""
    by_joint = {f: x for f, x in arrays.items() if x.ndim == 2 and x.shape[1] == len(joints)}
    there = np.any([~np.isnan(x).all(1) for x in by_joint.values()], axis=0)
    have = ~np.isnan(by_joint["q"]) if "q" in by_joint else there[:, None]
    if not have.any():
        raise DataError(f"{label}: q: no positions of {', '.join(joints)}: nan only")
    if not have.all(1).any():
        fullest = have[int(np.argmax(have.sum(1)))]
        together, apart = (", ".join(j for j, h in zip(joints, fullest) if h == here) for here in (True, False))
        raise DataError(
            f"{label}: q: expected rows with all joints, got none: {together} never come with {apart}, but at times of"
            " their own; bring them to common times first"
        )
    notes = [] if there.all() else [f"{int((~there).sum())} rows of other topics or joints left out"]
    return {f: x[there] for f, x in arrays.items()}, notes


def _missing_field(fields: Columns, joints: Sequence[str] | None, needed: set[str]) -> tuple[str, str] | None:
    """(a needed field, a joint without a column of it, "" if no joint has one); None if all exist."""
    for field in sorted(needed):
        missing = []
        for each in (field, "i") if field == "tau" else (field,):
            there = fields.get(each, {})
            missing.append([j for j in (joints if joints is not None else fields.get("q", {})) if j not in there])
            if there and not missing[-1]:
                break
        else:
            return field, (missing[0][0] if (missing[0] and fields.get(field)) or not fields.get("q") else "")
    return None


def _no_such_joint(
    recording: Recording, anonymous: Mapping[str, Columns], joints: Sequence[str], missing: str
) -> DataError:
    there = list(dict.fromkeys(j for fields in anonymous.values() for x in fields.values() for j in x))
    near = difflib.get_close_matches(missing, [j for j in there if j not in joints], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    more = f" and {len(there) - MAX_SHOWN} more" if len(there) > MAX_SHOWN else ""
    return DataError(
        f"{recording.label}: joints: expected {', '.join(joints)}, got no column of {missing!r}; {hint}the log has"
        f" {', '.join(there[:MAX_SHOWN])}{more}: say what it calls the robot's joints, in the robot's order, by"
        " joints=[...] (identify: --joints NAME,NAME,...)"
    )


def _parsed(arrays: Mapping[str, Any], joints: Sequence[str] | None, fields: Mapping[str, str]) -> dict[str, Columns]:
    """By topic, the columns whose names consist of a joint and a field."""
    by_topic: dict[str, Columns] = {}
    for column in arrays:
        for topic, joint, word in _readings(column, joints):
            if word in fields:
                by_topic.setdefault(topic, {}).setdefault(fields[word], {}).setdefault(joint, column)
    return by_topic


def _readings(column: str, joints: Sequence[str] | None) -> Iterator[tuple[str, str, str]]:
    """(topic, joint, field name) for each reading of a column's name; joints=None: only topic/joint/field."""
    if joints is None:
        topic, joint, word = ["", "", *column.rsplit("/", 2)][-3:]
        if joint:
            yield topic, joint, word
        return
    for joint in joints:
        for match in re.finditer(rf"(?<!\w){re.escape(joint)}(?!\w)", column):
            before, after = column[: match.start()], re.findall(r"\w+", column[match.end() :])
            if len(after) == 1:
                yield before.rstrip("/.[ "), joint, after[0]
            elif not after and (word := re.search(r"(\w+)\W+$", before)):
                yield before[: word.start()].rstrip("/.[ "), joint, word[1]
        if column.endswith(f"_{joint}"):
            yield "", joint, column.removesuffix(f"_{joint}")
        elif column.startswith(f"{joint}_"):
            yield "", joint, column.removeprefix(f"{joint}_")


# --- aliases and ranges ----------------------------------------------------------------------------------------------


ALIASES = {  # observation.: LeRobot's; actual_: Universal Robots' RTDE; tau_j: Franka's
    "t": ("t", "time", "timestamp", "stamp", "__time"),
    "q": (
        *("q", "pos", "position", "positions", "joint_position", "joint_positions", "angle", "actual_q"),
        *("observation.state", "observation.position", "observation.positions"),
    ),
    "v": (
        *("v", "qd", "dq", "qdot", "vel", "velocity", "velocities", "joint_velocity", "joint_velocities", "actual_qd"),
        *("observation.velocity", "observation.velocities"),
    ),
    "a": ("a", "qdd", "ddq", "qddot", "acc", "acceleration", "accelerations"),
    "tau": (
        *("tau", "torque", "torques", "effort", "efforts", "joint_torque", "joint_torques", "tau_j"),
        *("observation.effort", "observation.torque", "observation.torques"),
    ),
    "i": ("i", "current", "currents", "motor_current", "motor_currents", "actual_current"),
}
MAX_RANGED = 1000  # columns of a range of numbers
Keys = Mapping[str, str | Sequence[str]]


class Named(NamedTuple):
    """Arrays by field; the joint names in the columns, if any; notes on columns that were left out."""

    arrays: dict[str, np.ndarray]
    joints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def named(recording: Recording, keys: Keys, joints: Sequence[str] | None, topic: str | None) -> Named:
    """The arrays of each field. joints: names of the robot's joints in the log, in the robot's order, if known; topic:
    which of several groups of columns. Fields without numbers are left out. Raises DataError.
    """
    arrays = {field: _requested_field(recording, field, key, joints, topic) for field, key in keys.items()}
    usual = {f: x for f in FIELDS if f not in keys and (x := _usual(recording, f)) is not None}
    both, names, notes = {**usual, **arrays}, (), list(recording.notes)
    if topic is not None or "q" not in both or not {"tau", "i"} & both.keys():
        aliases = {f: ALIASES[f] for f in FIELDS if f not in ("t", *keys)}
        by_field = columns_of_joints(recording, aliases, joints, topic, {"q", "tau"} - both.keys())
        if by_field:
            usual = {f: x for f, x in usual.items() if f == "t"}
            names = tuple(next(iter(by_field.values())))
            usual |= {f: _stacked(recording, f, list(columns.values())) for f, columns in by_field.items()}
        elif topic is not None:
            raise DataError(
                f"{recording.label}: topic: no columns called after joints, on {topic!r} or elsewhere;"
                f" {recording.available_names()}"
            )
    arrays = usual | arrays
    if names:
        arrays, more = whole_rows(recording.label, names, arrays)
        notes += more
    if recording.transposed:
        arrays, more = _oriented(arrays)
        notes += more
    return Named(arrays, names, tuple(notes))


# --- by the caller's names, and by common ones --------------------------------------------------------------------


def _requested_field(
    recording: Recording, field: str, key: str | Sequence[str], joints: Sequence[str] | None, topic: str | None
) -> np.ndarray:
    """The field by the caller's name: an array, a list of columns, or a prefix of numbers or joint names."""
    arrays, kind = recording.arrays, recording.kind
    key = _ranged(key)
    # a column number is no prefix: 1 does not match 10, 11, ...
    if isinstance(key, str) and key.isdigit() and key in arrays:
        key = [key]
    if not isinstance(key, str):
        missing = [k for k in key if k not in arrays]
        if missing:
            raise DataError(f"{recording.label}: {field}: no column {missing[0]!r}; {_near(recording, missing[0])}")
        return _stacked(recording, field, key)
    x = _exact(recording, field, key)
    if x is not None:
        return x
    if "*" in key and joints is not None:
        columns = [key.replace("*", joint, 1) for joint in joints]
        if any(c in arrays for c in columns):
            return _requested_field(recording, field, columns, None, None)
    elif field != "t":
        columns = columns_of_joints(recording, {field: (key,)}, joints, topic, {field}).get(field)
        if columns:
            return _stacked(recording, field, list(columns.values()))
    noun = "array" if kind == "array" else "columns"
    raise DataError(f"{recording.label}: {field}: no {noun} {key!r}; {_near(recording, key)}")


def _ranged(key: str | Sequence[str]) -> str | Sequence[str]:
    """Columns by number: "2-8", all from the second to the eighth, as a list."""
    first, _, last = key.partition("-") if isinstance(key, str) else ("", "", "")
    if first.isdigit() and last.isdigit() and int(first) <= int(last) < int(first) + MAX_RANGED:
        return [str(k) for k in range(int(first), int(last) + 1)]
    return key


def _near(recording: Recording, key: str) -> str:
    near = difflib.get_close_matches(key, list(recording.arrays), n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + recording.available_names()


def _usual(recording: Recording, field: str) -> np.ndarray | None:
    """The field by common names, ignoring case and a trailing underscore (Position1, q_)."""
    plain: dict[str, Any] = {}
    for name, x in recording.arrays.items():
        plain.setdefault(name.lower().rstrip("_"), x)
    spellings = [recording, replace(recording, arrays=plain)] if len(plain) == len(recording.arrays) else [recording]
    candidates = (_exact(r, field, alias) for r in spellings for alias in ALIASES[field])
    return next((x for x in candidates if x is not None), None)


def _exact(recording: Recording, field: str, stem: str) -> np.ndarray | None:
    """Columns named stem1, stem_1, stem[1], ..., or the array named stem, or struct.stem if it is a struct."""
    columns = _numbered(recording, stem)
    if columns:
        return (
            real(recording.label, field, recording.arrays[columns[0]])
            if field == "t"
            else _stacked(recording, field, columns)
        )
    inside = [name for name in recording.arrays if name.endswith(f".{stem}")]
    name = stem if stem in recording.arrays else inside[0] if recording.kind == "array" and len(inside) == 1 else None
    if name is None:
        return None
    x = real(recording.label, field, recording.arrays[name])
    return x[:, None] if recording.kind == "column" and field != "t" and x.ndim == 1 else x


def _stacked(recording: Recording, field: str, columns: Sequence[str]) -> np.ndarray:
    parts = [real(recording.label, field, recording.arrays[c]) for c in columns]
    for c, x in zip(columns, parts):
        if x.ndim != 1 or len(x) != len(parts[0]):
            raise DataError(
                f"{recording.label}: {field}: {c!r}: expected a column of {len(parts[0])} numbers, got shape {x.shape}"
            )
    return np.stack(parts, -1) if field != "t" else parts[0]


def _numbered(recording: Recording, stem: str) -> list[str]:
    """Names stem1, stem_1, stem[1], ... in the order of their numbers; a `*` in the stem stands for the number."""
    before, _, after = stem.partition("*")
    candidates: Iterator[tuple[int, str]] = (
        (int(digits), h)
        for h in recording.arrays
        if h.startswith(before)
        and h.endswith(after)
        and (digits := h[len(before) : len(h) - len(after)].strip("_[](). ")).isdigit()
    )
    numbered = sorted(candidates)
    if numbered and [n for n, _ in numbered] != list(range(numbered[0][0], numbered[0][0] + len(numbered))):
        names = ", ".join(name for _, name in numbered)
        raise DataError(f"{recording.label}: columns {names}: expected consecutive numbers; name the columns by keys")
    return [name for _, name in numbered]


def _oriented(arrays: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[str]]:
    """(the arrays with time first, notes), for formats with row or column vectors and either order of axes."""
    t, notes = arrays.get("t"), []
    if t is not None and t.ndim == 2 and 1 in t.shape:
        arrays["t"] = t = t.ravel()
    for field, x in arrays.items():
        if field != "t" and x.ndim == 1:
            arrays[field] = x[:, None]
        elif t is not None and x.ndim == 2 and len(x) != len(t) == x.shape[1]:
            arrays[field] = np.array(x.T)
            notes.append(f"{field} transposed: a row a joint in the file")
    return arrays, notes
