"""What a force and torque sensor at the wrist says of a load: as a source of rows for `stacked`.

The load hangs on the sensor. With V, Vdot the sensor frame's body-fixed twist and its rate, which the robot's
kinematics give, and A = Vdot - (0, R^T g), the wrench that carries it is, linear in its parameters,

    F = J(pi) A - ad_V^T J(pi) V,    measured: +F or -F, and a constant of each axis

Where gravity's direction in the base is not known (a robot on a wall), it is found with the rest by Newton's steps: two
angles, from the forces alone at first, f = m a_lin + Omega h - R^T (m g), linear in m, h and m g.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from geomctrl.identification.errors import DataError, ExcitationError
from geomctrl.identification.logs import Dataset, filters
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

from .stacked import Chunk, Solved, factored, solved

AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
SPATIAL = inertia.spatial(np.eye(10))  # J = sum_k pi_k SPATIAL_k
ORDER = [3, 4, 5, 0, 1, 2]  # (moments, forces), as wrenches are here, to (forces, moments), as sensors have them


@dataclass(frozen=True, eq=False)
class WrenchLog:
    """A log of wrenches (N, 6), forces first, in the frame `sensor`, as a `Source`: six offsets, then the load's ten in
    `frame`. `data`: the motion, and `wrench`: the wrenches as positions and torques, filtered alike.

    gravity (3,) in the base; tilts: with it, two columns of small turns of it for the load `around` (10,).
    """

    robot: Robot
    data: Dataset
    wrench: Dataset
    sensor: str
    frame: str
    gravity: np.ndarray
    sign: float = 1.0
    around: np.ndarray | None = None
    forces_only: bool = False

    channels: Sequence[str] = AXES

    @property
    def label(self) -> str:
        return self.data.label

    @property
    def nuisances(self) -> int:
        return 6 + (0 if self.around is None else 2)

    def rows(self) -> Iterator[Chunk]:
        assert self.data.v is not None
        assert self.data.a is not None
        band = self.data.band
        for s in self.data.stretches():
            A = self.sign * self._columns(*(np.array(x[s]) for x in (self.data.q, self.data.v, self.data.a)))
            A[..., :6] = np.eye(6)
            b, used = self.wrench.tau[s], np.all(np.hstack((self.data.used[s], self.wrench.used[s])), axis=1)
            if band is not None:
                A, b = filters.low_pass(A, self.data.rate, *band), filters.low_pass(b, self.data.rate, *band)
            kept = slice(None, None, self.data.stride)
            yield A[kept], b[kept], np.repeat(used[kept, None], 6, 1)

    def _columns(self, q, v, a) -> np.ndarray:
        """(n, 6, nuisances + 10), or with `forces_only` (n, 6, 6 + 10) of (m, h, m g, three of nothing)."""
        T, V, acceleration = self._motion(q, v, a)
        R = T[:, :3, :3]
        offsets = np.zeros((len(q), 6, 6))
        if self.forces_only:
            Y = _wrenches(V, acceleration, R, np.zeros(3))[..., :4]
            Y[:, 3:] = 0.0  # moments are not linear in h and m g
            mg = np.concatenate((-R.swapaxes(-1, -2), np.zeros_like(R)), 1)
            return np.concatenate((offsets, Y, mg, np.zeros((len(q), 6, 3))), -1)
        at = np.linalg.inv(self.robot.frame(self.sensor).placement) @ self.robot.frame(self.frame).placement
        Y = _wrenches(V, acceleration, R, self.gravity) @ inertia.transform(at, np.eye(10)).T
        if self.around is None:
            return np.concatenate((offsets, Y), -1)
        pi = inertia.transform(at, self.around)
        m, h = pi[0], pi[1:4]
        turned = np.stack([R.swapaxes(-1, -2) @ d for d in _tangents(self.gravity)], -1)  # of R^T g
        tilts = -np.concatenate((m * turned, np.cross(h, turned, axisb=1, axisc=1)), 1)
        return np.concatenate((offsets, tilts, Y), -1)

    def _motion(self, q, v, a) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sensor frame's pose (n, 4, 4), twist and its rate (n, 6), body-fixed."""
        J = self.robot.jacobian(q, self.sensor)
        Jdot = self.robot.jacobian_rate(q, v, self.sensor)
        twist = np.einsum("nij,nj->ni", J, v)
        return self.robot.pose(q, self.sensor), twist, np.einsum("nij,nj->ni", J, a) + np.einsum("nij,nj->ni", Jdot, v)


def _wrenches(V, acceleration, R, gravity) -> np.ndarray:
    """(n, 6, 10): the wrench that carries a body of unit parameters, forces first."""
    A = acceleration.copy()
    A[:, 3:] -= np.einsum("nji,j->ni", R, gravity)
    momentum = np.einsum("kij,nj->nki", SPATIAL, V)
    w, u = V[:, None, :3], V[:, None, 3:]
    m, f = momentum[..., :3], momentum[..., 3:]
    F = np.einsum("kij,nj->nki", SPATIAL, A)
    F += np.concatenate((np.cross(w, m) + np.cross(u, f), np.cross(w, f)), -1)  # -ad_V^T (m, f)
    return F.swapaxes(-1, -2)[:, ORDER]


def _tangents(g: np.ndarray) -> np.ndarray:
    """Two vectors (2, 3) of g's length, across it."""
    return np.linalg.svd(g[None])[2][1:] * np.linalg.norm(g)


# --- the fit --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WrenchFit:
    """The solved system, its last source (gravity and sign as found), the offsets [N, N m], and the angle [deg] between
    gravity as found and as the robot has it.
    """

    solved: Solved
    source: WrenchLog
    offsets: np.ndarray
    tilt: float


def fit_wrench(source: WrenchLog, estimate_gravity: bool = False, steps: int = 20) -> WrenchFit:
    """The sensor's sign is the one that makes the mass positive. Raises DataError, ExcitationError."""
    g0 = source.gravity
    if estimate_gravity:
        source = _turned(source, steps)
    s = solved(factored([source], source.nuisances))
    if s.x[0] < 0.0 and not estimate_gravity:
        source = replace(source, sign=-source.sign)
        s = solved(factored([source], source.nuisances))
    cosine = source.gravity @ g0 / (np.linalg.norm(source.gravity) * np.linalg.norm(g0))
    return WrenchFit(s, source, s.nuisances[:6], float(np.rad2deg(np.arccos(np.clip(cosine, -1.0, 1.0)))))


def _turned(source: WrenchLog, steps: int) -> WrenchLog:
    """With gravity's direction and the sign found, and the columns that carry its uncertainty."""
    size = np.linalg.norm(source.gravity)
    s = solved(factored([replace(source, forces_only=True)], 6), correlated=False)
    mass, weight = s.x[0], s.x[4:7]
    std = 1.0 / max(_apart(s.W, 0), 1e-300)
    if np.linalg.norm(weight) == 0.0 or abs(mass) < 3.0 * std:
        raise ExcitationError(
            f"{source.label}: gravity's direction and the sensor's sign can not be told apart: the accelerations show a"
            f" mass of {mass:.3g} kg with a standard deviation of {std:.2g} kg; move faster, or give gravity"
        )
    sign = float(np.sign(mass))
    g, pi = size * sign * weight / np.linalg.norm(weight), np.zeros(10)
    source = replace(source, sign=source.sign * sign, gravity=g)
    pi = solved(factored([source], 6), correlated=False).x
    for _ in range(steps):
        source = replace(source, gravity=g, around=pi)
        s = solved(factored([source], source.nuisances), correlated=False)
        change, pi = s.nuisances[6:8] @ _tangents(g), s.x
        g = size * (g + change) / np.linalg.norm(g + change)
        if np.linalg.norm(change) < 1e-7 * size:
            return replace(source, gravity=g, around=pi)
    raise DataError(f"{source.label}: gravity's direction was not found in {steps} steps; give it")


def _apart(W: np.ndarray, k: int) -> float:
    """Length of column k across the others: one over its standard deviation."""
    others = np.delete(W, k, 1)
    others = others[:, np.linalg.norm(others, axis=0) > 0.0]
    return float(np.linalg.norm(W[:, k] - others @ np.linalg.lstsq(others, W[:, k], rcond=None)[0]))
