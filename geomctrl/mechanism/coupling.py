"""Couplings: joints that follow others linearly, q = A x + b with the coordinates x of the independent joints.

Examples are gears and belts between joints, fingers that close together, and parallelogram arms. The robot's
coordinates are those of the independent joints. Its terms are those of the full tree, projected: M = A^T M_tree A, C =
A^T C_tree A, g = A^T g_tree at q = A x + b. A is constant, so Mdot = A^T Mdot_tree A, and Mdot - 2C = A^T (Mdot -
2C)_tree A is skew-symmetric if that of the tree is. The constraint forces of couplings do no work and do not appear.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from geomctrl.arguments import frozen, listed, mapped, number, shown
from geomctrl.errors import ArgumentError, ModelError, NameNotFoundError

from .checks import check_name
from .joint import Joint

SHARED = ("damping", "friction", "stiffness", "armature")  # would couple the coordinates of the joints it follows


@dataclass(frozen=True, eq=False)
class Coupling:
    """A joint that follows others: q_joint = sum_k follows[k] q_k + offset. All have one degree of freedom.

    Parameters
    ----------
    joint : str
        Name of the joint that follows.
    follows : mapping of str to float
        Ratio [rad/rad, m/rad, ...] for each joint that it follows. These may follow others themselves. An empty mapping
        locks the joint at `offset`.
    offset : float
        Constant part of the coordinate [rad, m]. Default 0.

    Examples
    --------
    >>> import geomctrl as gc
    >>> right_finger = gc.Coupling("finger2", {"finger1": -1.0})
    """

    joint: str
    follows: Mapping[str, float]
    offset: float = 0.0

    def __post_init__(self):
        check_name("joint", self.joint)
        ratios = {}
        label = f"coupling of joint {self.joint!r}: follows"
        for name, ratio in mapped(label, self.follows, "ratios by joints' names").items():
            check_name(label, name)
            ratios[name] = number(f"{label}[{name!r}]", ratio)
        object.__setattr__(self, "follows", MappingProxyType(ratios))
        object.__setattr__(self, "offset", number(f"coupling of joint {self.joint!r}: offset", self.offset))

    def __reduce__(self):
        return type(self), (self.joint, dict(self.follows), self.offset)


def checked_couplings(couplings: Any, joints: Sequence[Joint]) -> tuple[Coupling, ...]:
    """Return the couplings after checking that their joints exist; errors name the joint."""
    checked = listed("couplings", couplings, "geomctrl.Coupling objects")
    named = {str(j.name): j for j in joints}
    seen = set()
    for coupling in checked:
        if not isinstance(coupling, Coupling):
            raise ArgumentError(f"couplings: expected geomctrl.Coupling, got {shown(coupling)}")
        label = f"coupling of joint {coupling.joint!r}"
        for name in (coupling.joint, *coupling.follows):
            if name not in named:
                near = difflib.get_close_matches(name, named, n=3) or [*named][:12]
                raise NameNotFoundError(f"{label}: no joint named {name!r} that moves; there are {', '.join(near)}")
            if named[name].dof != 1:
                raise ModelError(
                    f"{label}: expected joints with one degree of freedom, {name!r} is {named[name].kind} and has"
                    f" {named[name].dof}"
                )
        if coupling.joint in seen:
            raise ModelError(f"{label}: the joint has two couplings")
        seen.add(coupling.joint)
    return tuple(checked)


class Reduction:
    """How couplings reduce the coordinates of a tree.

    A: (nv of the tree, nv), maps the robot's velocities to the tree's. b: (nbodies,), offsets of the joint coordinates.
    independent: numbers of the independent joints. single: rows of A of joints that are independent or follow at most
    one joint; only their limits and losses can be assigned to a single coordinate.
    """

    def __init__(self, joints: Sequence[Joint], couplings: Sequence[Coupling]):
        rows = _in_terms_of_independent(joints, couplings)
        followers = {c.joint for c in couplings}
        self.independent = [i for i, j in enumerate(joints) if j.name not in followers]
        if not self.independent:
            names = ", ".join(map(repr, followers))
            raise ModelError(f"couplings: every joint follows another, so none is independent: {names}")
        ends = np.cumsum([j.dof for j in joints])
        slices = [slice(e - j.dof, e) for e, j in zip(ends, joints)]
        columns, nv = {}, 0
        for i in self.independent:
            columns[joints[i].name] = slice(nv, nv := nv + joints[i].dof)
        A, self.b = np.zeros((ends[-1], nv)), np.zeros(len(joints))
        for i, joint in enumerate(joints):
            if joint.name in columns:
                A[slices[i], columns[joint.name]] = np.eye(joint.dof)
                continue
            ratios, self.b[i] = rows[str(joint.name)]
            for name, ratio in ratios.items():
                A[slices[i], columns[name]] = ratio
            if np.count_nonzero(A[slices[i]]) > 1:
                held = [key for key in SHARED if getattr(joint, key)]
                if held:
                    raise ModelError(
                        f"coupling of joint {joint.name!r}: a joint that follows several can have no {held[0]}"
                        f" ({getattr(joint, held[0])}) of its own: it would couple their coordinates; give it to them"
                    )
        self.A = frozen(A)
        self.dofs = [j.dof for j in joints]
        self.offsets = np.repeat(self.b, self.dofs)
        self.single = np.count_nonzero(A, axis=1) <= 1

    def per_dof(self, key: str, joints: Sequence[Joint]) -> np.ndarray:
        """Convert a property of the tree's joints to the robot's coordinates (nv,).

        Damping, stiffness and armature scale with the squared ratios, Coulomb friction with their absolute value. A
        limit is the tightest of all joints that follow this coordinate alone; effort assumes that all torque goes to
        that joint.
        """
        A, own = self.A, self._of(key, joints)
        if key in ("damping", "stiffness", "armature"):
            return np.square(A).T @ own
        if key == "friction":
            return np.abs(A).T @ own
        if key == "rest":
            k = self._of("stiffness", joints)
            pull, K = A.T @ (k * (own - self.offsets)), np.square(A).T @ k
            return np.where(K > 0.0, pull / np.where(K > 0.0, K, 1.0), own[self._free])
        if key in ("lower", "upper", "velocity", "effort"):
            return np.array([self._tightest(key, k, joints) for k in range(A.shape[1])])
        return own[self._free]

    def _of(self, key: str, joints: Sequence[Joint]) -> np.ndarray:
        return np.array([getattr(j, key) for j in joints for _ in range(j.dof)])

    @property
    def _free(self) -> list[bool]:
        return [i in self.independent for i, d in enumerate(self.dofs) for _ in range(d)]

    def _tightest(self, key: str, k: int, joints: Sequence[Joint]) -> float:
        owner = np.repeat(np.arange(len(self.dofs)), self.dofs)
        rows = [(self.A[r, k], joints[owner[r]], self.offsets[r]) for r in np.flatnonzero(self.A[:, k] * self.single)]
        if key == "velocity":
            return min(j.velocity / abs(a) for a, j, _ in rows)
        if key == "effort":
            return min(j.effort * abs(a) for a, j, _ in rows)
        ends = [sorted(((j.lower - b) / a, (j.upper - b) / a)) for a, j, b in rows]
        return max(low for low, _ in ends) if key == "lower" else min(high for _, high in ends)


def _in_terms_of_independent(
    joints: Sequence[Joint], couplings: Sequence[Coupling]
) -> dict[str, tuple[dict[str, float], float]]:
    """For each coupled joint, return the ratios to independent joints and the offset. Raises ModelError for a cycle."""
    coupled = {c.joint: c for c in couplings}
    done: dict[str, tuple[dict[str, float], float]] = {}

    def resolved(name: str, path: tuple[str, ...]) -> tuple[dict[str, float], float]:
        if name in path:
            cycle = " -> ".join(map(repr, (*path[path.index(name) :], name)))
            raise ModelError(f"coupling of joint {name!r}: joints follow each other in a cycle, {cycle}")
        if name not in coupled:
            return {name: 1.0}, 0.0
        if name not in done:
            ratios, offset = {}, coupled[name].offset
            for leader, ratio in coupled[name].follows.items():
                inner, b = resolved(leader, (*path, name))
                offset += ratio * b
                for k, r in inner.items():
                    ratios[k] = ratios.get(k, 0.0) + ratio * r
            done[name] = ratios, offset
        return done[name]

    return {name: resolved(name, ()) for name in coupled}
