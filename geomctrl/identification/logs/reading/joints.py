"""Columns called after joints: as PlotJuggler writes them, /joint_states/elbow/position, and as others do,
position/elbow, elbow.pos, effort[elbow], q_elbow. Their order in the file does not matter.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from geomctrl.identification.errors import DataError

from .recording import SHOWN, Recording
from .topics import chosen

Columns = dict[str, dict[str, str]]  # field: joint: column


def columns(
    recording: Recording,
    aliases: Mapping[str, Sequence[str]],
    joints: Sequence[str] | None,
    topic: str | None,
    needed: set[str],
) -> Columns:
    """The columns of one topic by field and joint, in the order of `joints`; nothing where none is called after joints.

    aliases: what fields are called; joints: the robot's, None for those that the file has; needed: fields that every
    joint must have, and currents do for torques; others are left out unless all have them. Raises DataError.
    """
    fields = {word: field for field, spoken in aliases.items() for word in spoken}
    anonymous = _parsed(recording.arrays, None, fields)
    by_topic = anonymous if joints is None else _parsed(recording.arrays, joints, fields)
    if not by_topic:
        if anonymous and joints and needed:
            raise _no_such_joint(recording, anonymous, joints, joints[0])
        return {}
    whole = {name: x for name, x in by_topic.items() if _lacking(x, joints, needed) is None}
    pool = whole if whole and topic is None else by_topic
    sizes = {name: sum(map(len, x.values())) for name, x in pool.items()}
    if whole or topic is not None:
        name = chosen(recording.label, {k: f"{n} columns" for k, n in sizes.items()}, topic)
    else:
        name = max(sizes, key=lambda k: sizes[k])
    if (lacking := _lacking(by_topic[name], joints, needed)) is not None:
        field, joint = lacking
        if joints is not None and joint and not any(joint in x for x in by_topic[name].values()):
            raise _no_such_joint(recording, anonymous, joints, joint)
        of = f" of joint {joint!r}" if joint else ""
        on = f" on {name!r}" if name else ""
        also = ", or currents with their gains" if field == "tau" else ""
        spoken = " or ".join(aliases[field][1:4]) or field
        raise DataError(
            f"{recording.label}: {field}: expected {spoken}{of}{on}{also}, got none; {recording.there_are()}"
        )
    order = joints if joints is not None else list(by_topic[name].get("q", next(iter(by_topic[name].values()))))
    return {f: {j: x[j] for j in order} for f, x in by_topic[name].items() if all(j in x for j in order)}


def whole_rows(
    label: str, joints: Sequence[str], arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """(the arrays without the rows that are other topics' or other joints', what was left out): a file of several
    topics has nan there. Raises DataError where no row has all joints.
    """
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


def _lacking(fields: Columns, joints: Sequence[str] | None, needed: set[str]) -> tuple[str, str] | None:
    """(a needed field, a joint that has no column of it, "" if none has); None where all are there."""
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
    more = f" and {len(there) - SHOWN} more" if len(there) > SHOWN else ""
    return DataError(
        f"{recording.label}: joints: expected {', '.join(joints)}, got no column of {missing!r}; {hint}the log has"
        f" {', '.join(there[:SHOWN])}{more}: say what it calls the robot's joints, in the robot's order, by"
        " joints=[...] (identify: --joints NAME,NAME,...)"
    )


def _parsed(arrays: Mapping[str, Any], joints: Sequence[str] | None, fields: Mapping[str, str]) -> dict[str, Columns]:
    """By topic, the columns called after a joint and a word that means a field."""
    by_topic: dict[str, Columns] = {}
    for column in arrays:
        for topic, joint, word in _readings(column, joints):
            if word in fields:
                by_topic.setdefault(topic, {}).setdefault(fields[word], {}).setdefault(joint, column)
    return by_topic


def _readings(column: str, joints: Sequence[str] | None) -> Iterator[tuple[str, str, str]]:
    """(topic, joint, word) in the ways that a column's name can be read; joints=None: topic/joint/word alone."""
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
