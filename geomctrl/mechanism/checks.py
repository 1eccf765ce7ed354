"""Validation of the fields of a `Mechanism`, for all ways to create one: `build`, `dataclasses.replace`, pickles.

Kernels use the validated fields as indices without further checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, exactly, is_a, listed, require_rotation, rotation_residual, shown, vector
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.output import UNWRITABLE

from .joint import Joint
from .origin import WORLD, Frame


def check_name(label: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{label}: expected a name, got {shown(name)}")
    check_text(label, name)


def check_text(label: str, text: str) -> None:
    """Raise ArgumentError for control characters and lone surrogates: names are written to terminals and files."""
    if UNWRITABLE.search(text):
        raise ArgumentError(f"{label}: expected a name without control characters, got {shown(text)}")


def no_duplicates(label: str, names: list) -> None:
    for n in names:
        if names.count(n) > 1:
            raise ModelError(f"{label} {n!r}: the name is used {names.count(n)} times")


def check_transform(name: str, T: ArrayLike | None) -> np.ndarray:
    """Return a checked 4x4 transform, its rotation moved to SO(3) (files have seven digits); None is the identity."""
    if T is None:
        return np.eye(4)
    A = checked(name, T, (), finite=False)
    if A.shape != (4, 4) or not np.isfinite(A).all():
        got = f"shape {A.shape}" if A.shape != (4, 4) else A
        raise ArgumentError(f"{name}: expected a finite 4x4 transform, got {got}")
    A = np.array(A)
    R = A[:3, :3]
    require_rotation(name, R)
    if np.abs(A[3] - (0, 0, 0, 1)).max() > 0.0:
        raise ArgumentError(f"{name}: expected the last row (0, 0, 0, 1), got {A[3]}")
    if rotation_residual(R) > 1e-14:
        U, _, Vt = np.linalg.svd(R)
        A[:3, :3] = U @ Vt
    return A


def _transforms(names: Sequence[str], T: np.ndarray) -> np.ndarray:
    """Apply `check_transform` to (n, 4, 4), one by one only if one of them may be invalid."""
    exact = (rotation_residual(T[:, :3, :3]) <= 1e-14) & (T[:, 3] == (0.0, 0.0, 0.0, 1.0)).all(axis=1)
    for k in np.flatnonzero(~exact).tolist():
        T[k] = check_transform(names[k], T[k])
    return T


def checked_tree(
    name: Any, body_names: Any, parents: Any, joints: Any, placements: Any, parameters: Any, gravity: Any, frames: Any
) -> dict[str, Any]:
    """Return the fields of a `Mechanism` by name, converted; raises ArgumentError or ModelError, naming the field.

    Inertial parameters need only be finite. `build` and `with_parameters` check whether a body can have them.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"name: expected a string, got {shown(name)}")
    check_text("name", name)
    bodies = _names_of_bodies(body_names)
    n = len(bodies)
    joints = _joints(joints, n)
    above = listed("parents", parents, f"{n} numbers of bodies, -1 for the world")
    if len(above) != n:
        raise ArgumentError(f"parents: expected {n} numbers, one for each body, got {len(above)}")
    above = [count(f"parents[{i}], of body {b!r}", p, -1, i - 1) for i, (b, p) in enumerate(zip(bodies, above))]
    T = _transforms([f"placements[{i}]" for i in range(n)], exactly("placements", placements, (n, 4, 4)))
    return {
        "body_names": tuple(bodies),
        "parents": tuple(above),
        "joints": tuple(joints),
        "placements": T,
        "parameters": exactly("parameters", parameters, (n, 10)),
        "gravity": vector("gravity", gravity, 3),
        "frames": _frames(frames, bodies),
    }


def _names_of_bodies(body_names: Any) -> list[str]:
    names = listed("body_names", body_names, "names")
    if not names:
        raise ModelError("body_names: expected at least one, got none")
    for name in names:
        check_name("body_names", name)
    no_duplicates("body_names: body", names)
    if WORLD in names:
        raise ModelError("body_names: 'world' is reserved for the world frame")
    return names


def _joints(joints: Any, n: int) -> list[Joint]:
    moving = listed("joints", joints, "geomctrl.Joint objects")
    for joint in moving:
        if not is_a(joint, Joint):
            raise ArgumentError(f"joints: expected geomctrl.Joint, got {shown(joint)}")
        check_name("joints: name", joint.name)
        if not joint.dof:
            raise ModelError(f"joints: {joint.name!r} does not move: Robot.build merges its body into the parent")
    if len(moving) != n:
        raise ArgumentError(f"joints: expected {n}, one for each of body_names, got {len(moving)}")
    no_duplicates("joints: name", [j.name for j in moving])
    return moving


def _frames(frames: Any, bodies: list[str]) -> tuple[Frame, ...]:
    named = listed("frames", frames, "geomctrl.Frame objects")
    for frame in named:
        if not isinstance(frame, Frame):
            raise ArgumentError(f"frames: expected geomctrl.Frame, got {shown(frame)}")
        check_name("frames: name", frame.name)
    names = [frame.name for frame in named]
    no_duplicates("frames: frame", names)
    labels = [f"frames: placement of {name!r}" for name in names]
    numbers = [count(f"frames: body of {f.name!r}", f.body, -1, len(bodies) - 1) for f in named]
    T = np.array([exactly(label, f.placement, (4, 4)) for label, f in zip(labels, named)]).reshape(-1, 4, 4)
    T = _transforms(labels, T)
    checked_frames = tuple(Frame(*frame) for frame in zip(names, numbers, T))
    by_name = {frame.name: frame for frame in checked_frames}
    for number, name in enumerate([*bodies, WORLD]):
        own = by_name.get(name)
        if own is None or own.body != (number if name != WORLD else -1) or (own.placement != np.eye(4)).any():
            raise ModelError(f"frames: expected one named {name!r}, that of the body (or the world) itself")
    return checked_frames
