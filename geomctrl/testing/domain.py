"""`Domain`: the states at which a property is tested, a box in coordinates about the equilibrium of a closed loop.

A state is (t, q, v, z). Its coordinates x = (t, displacements of q, of v, of z) measure the difference from the
equilibrium at that time, each in its algebra: q = q_e(t) exp(x_q), v = v_e(t) + x_v, z = z_e(t) exp(x_z). They are
confined to a box, so that sampling, searching and simplifying stay inside by clipping. A revolute joint turned by 2 pi
is a different configuration here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import read_only, shown
from geomctrl.control.contracts import displaced
from geomctrl.errors import ArgumentError
from geomctrl.lie import se3
from geomctrl.robot import Robot

from .settings import PARTS, Region

MAX_SPREADS = 3.0  # half width of the box in spreads; normally distributed random states are truncated there
STATE_KINDS = ("about", "within", "corner", "part", "few")  # kinds of random states
MAX_ZEROS = 12  # zeros that are printed one by one
MIN_LOG_DISPLACEMENT = -3.0  # smallest distance from the equilibrium for partial displacements: log10 of spreads


def at_state(q: np.ndarray, v: np.ndarray) -> str:
    """Text for the state (q, v), for messages."""
    return f"at q = {np.array2string(q, separator=', ')}, v = {np.array2string(v, separator=', ')}"


class State(NamedTuple):
    """The state of a closed loop: time t, q (nq,), v (nv,) and the controller's state z (None without)."""

    t: float
    q: np.ndarray
    v: np.ndarray
    z: np.ndarray | None

    def __str__(self):
        z = ""
        if self.z is not None:
            short = self.z.ndim == 1 and len(self.z) > MAX_ZEROS and not self.z.any()
            z = f", z = zeros({len(self.z)})" if short else f", z = {np.array2string(self.z, separator=', ')}"
        return f"at t = {self.t:.6g}, {at_state(self.q, self.v)[3:]}{z}"


def with_read_only_arrays(x: State) -> State:
    """x with read-only arrays, as a closed loop passes them to a controller."""
    return State(x.t, read_only(x.q), read_only(x.v), None if x.z is None else read_only(x.z))


class Point(NamedTuple):
    """A state in coordinates: x (dim,), and z if the controller draws it itself."""

    x: np.ndarray
    drawn: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Domain:
    """The states about the equilibrium `rest` (a function of t) with coordinates between `lower` and `upper` (dim,).

    group: that of z, None if z is a vector or absent. draw: (rng, t) -> z if z is restricted to a set that only the
    controller knows; such a z has no coordinates. sources: code for q, v and z of the equilibrium in terms of
    `controller`, `plant` and t. rest_of: t0 -> `rest` for the plant at t0, if the plant changes. all_times: whether
    times after the last one count too, where nothing new happens.
    """

    robot: Robot
    rest: Callable[[float], State]
    lower: np.ndarray
    upper: np.ndarray
    group: Any = None
    draw: Callable[[np.random.Generator, float], np.ndarray] | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    rest_of: Callable[[float], Callable[[float], State]] | None = None
    all_times: bool = True

    def __post_init__(self):
        if not np.all(self.lower <= self.upper):
            k = int(np.argmin(self.upper - self.lower))
            raise ArgumentError(f"domain: expected lower <= upper, got {self.lower[k]:g} and {self.upper[k]:g}")

    def held(self, t0: float) -> Callable[[float], State]:
        """`rest` for the plant at t0."""
        return self.rest if self.rest_of is None else self.rest_of(t0)

    @property
    def dim(self) -> int:
        return len(self.lower)

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Slices of the coordinates of t, q, v and z."""
        n = self.robot.nv
        return {"t": slice(0, 1), "q": slice(1, 1 + n), "v": slice(1 + n, 1 + 2 * n), "z": slice(1 + 2 * n, self.dim)}

    @cached_property
    def scale(self) -> np.ndarray:
        """Typical size of each coordinate (dim,), zero if fixed; a tenth of the interval for time."""
        size = np.maximum(-self.lower, self.upper) / MAX_SPREADS
        size[0] = 0.1 * (self.upper[0] - self.lower[0])
        return np.where(self.upper > self.lower, size, 0.0)

    def __str__(self):
        """The bounds as text, one interval per part, the widest if its coordinates differ."""
        lo, hi = self.lower, self.upper
        ranges = [f"t {lo[0]:.4g} to {hi[0]:.4g} s"]
        for name in self.names:
            place = self.parts[name]
            drawn = name == "z" and self.draw is not None
            ranges.append(
                "z as sample_state draws it" if drawn else f"{name} {lo[place].min():.4g} to {hi[place].max():.4g}"
            )
        return ", ".join(ranges) + " about the equilibrium"

    @cached_property
    def free(self) -> np.ndarray:
        """Indices of the coordinates with different bounds."""
        return np.flatnonzero(self.scale)

    @cached_property
    def names(self) -> list[str]:
        """Names of the parts that can differ from the equilibrium."""
        return [name for name in PARTS if self.scale[self.parts[name]].any() or (name == "z" and self.draw is not None)]

    @cached_property
    def _screws(self) -> list[tuple[slice, np.ndarray, np.ndarray]]:
        """For each joint with several degrees of freedom: its slice of coordinates, S and its inverse."""
        screws = []
        for joint, place in zip(self.robot.joints, self.robot.v_slices):
            if joint.dof > 1:
                screws.append((slice(place.start + 1, place.stop + 1), joint.S, np.linalg.pinv(joint.S)))
        return screws

    def state(self, point: Point) -> State:
        """The state of a point."""
        x, parts = point.x, self.parts
        t = float(x[0])
        zero = self.rest(t)
        q = self._moved_q(zero.q, x[parts["q"]])
        z = zero.z if point.drawn is None else point.drawn
        if z is not None and self.draw is None:
            z = self.moved_z(z, x[parts["z"]])
        return with_read_only_arrays(State(t, q, zero.v + x[parts["v"]], z))

    def point(self, state: State) -> Point:
        """The coordinates of a state, inside the box or not."""
        zero = self.rest(state.t)
        x = np.zeros(self.dim)
        x[0], parts = state.t, self.parts
        x[parts["q"]] = self._displacement_of_q(zero.q, state.q)
        x[parts["v"]] = state.v - zero.v
        if self.draw is not None or state.z is None:
            return Point(x, state.z)
        x[parts["z"]] = self.displacement_of_z(zero.z, state.z)
        return Point(x)

    def _moved_q(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self.robot.integrate(q, x) if self._screws else q + x

    def _displacement_of_q(self, origin: np.ndarray, q: np.ndarray) -> np.ndarray:
        return self.robot.difference(origin, q) if self._screws else q - origin

    def moved_z(self, z: np.ndarray, x: np.ndarray) -> np.ndarray:
        """z displaced by x in the algebra of its group; z + x without a group."""
        return displaced(self.group, z, x)

    def displacement_of_z(self, origin: Any, z: Any) -> np.ndarray:
        """The x with `moved_z(origin, x)` = z."""
        if self.group is None:
            return np.ravel(z - origin)
        return self.group.log(self.group.compose(self.group.inverse(origin), z))

    def contains(self, state: State, slack: float = 1e-9) -> bool:
        """Whether a state is in the box, with a tolerance relative to its sides."""
        x, room = self.point(state).x, slack * (1.0 + np.abs(self.upper - self.lower))
        return bool((x >= self.lower - room).all() and (x <= self.upper + room).all())

    def clipped(self, point: Point) -> Point:
        """The closest point of the box."""
        return point._replace(x=np.clip(point.x, self.lower, self.upper))

    def moved(self, state: State, dt: float, displacement: np.ndarray) -> State:
        """The state after a change of time and a `displacement` of q, v, z, clipped to the box."""
        n = self.robot.nv
        q, v = self._moved_q(state.q, displacement[:n]), state.v + displacement[n : 2 * n]
        z = state.z
        if z is not None and self.draw is None:
            z = self.moved_z(z, displacement[2 * n :])
        return self.state(self.clipped(self.point(State(state.t + dt, q, v, z))))

    def only(self, point: Point, *names: str) -> Point:
        """The point at the same time in which all parts except the named ones are at the equilibrium."""
        x = point.x.copy()
        for name in PARTS:
            if name not in names:
                x[self.parts[name]] = 0.0
        return Point(x, point.drawn if "z" in names else None)

    def random(self, rng: np.random.Generator, kind: str | None = None) -> Point:
        """A random point of one of the kinds in `STATE_KINDS`, default any of them.

        "about": normal about the equilibrium; "within": uniform; "corner": along a diagonal of the box; "part": only q,
        v or z differs from the equilibrium, by a small or large amount; "few": one or two coordinates differ.
        """
        kind = STATE_KINDS[rng.integers(len(STATE_KINDS))] if kind is None else kind
        x = rng.uniform(self.lower, self.upper)
        t, n = x[0], self.dim
        if kind in ("about", "part"):
            x = self.scale * rng.normal(size=n)
            if kind == "part":
                x *= 10.0 ** rng.uniform(MIN_LOG_DISPLACEMENT, 0.5)
        elif kind == "corner":
            x = rng.uniform() * np.where(rng.uniform(size=n) < 0.5, self.lower, self.upper)
        elif kind == "few":
            kept = rng.permutation(n)[: rng.integers(1, 3)]
            x = np.where(np.isin(np.arange(n), kept), x, 0.0)
        x = np.clip(x, self.lower, self.upper)
        x[0] = t
        point = Point(x, None if self.draw is None else self.draw(rng, float(t)))
        names = self.names
        if kind == "part" and len(names) > 1:
            return self.only(point, names[rng.integers(len(names))])
        return point if kind != "few" or rng.uniform() < 0.5 else self.only(point, "q", "v")

    def pulled_back(self, point: Point, gradient: np.ndarray) -> np.ndarray:
        """The gradient in coordinates x, from the gradient in time and displacements of the state (1 + dim)."""
        parts, out = self.parts, np.array(gradient[: self.dim])
        for place, S, inverse in self._screws:
            out[place] = gradient[place] @ inverse @ se3.dexp(-S @ point.x[place]) @ S
        if self.group is not None and self.draw is None:
            out[parts["z"]] = gradient[parts["z"]] @ self.group.dexp(-point.x[parts["z"]])
        out[0] += gradient[1 : len(out)] @ self._drift(point)
        return out

    def _drift(self, point: Point) -> np.ndarray:
        """The velocity of the state in its algebra if time passes at constant displacement."""
        h = 1e-5
        t = float(point.x[0])
        span = max(t - h, self.lower[0]), min(t + h, self.upper[0])
        if span[1] <= span[0]:
            return np.zeros(self.dim - 1)
        a, b = (self.state(Point(np.concatenate(([s], point.x[1:])), point.drawn)) for s in span)
        z = [] if a.z is None or self.draw is not None else self.displacement_of_z(a.z, b.z)
        return np.concatenate((self._displacement_of_q(a.q, b.q), b.v - a.v, z))[: self.dim - 1] / (span[1] - span[0])


def box(sizes: Mapping[str, int], region: Region, times: tuple[float, float], own: np.ndarray):
    """(lower, upper) of a Domain's coordinates.

    sizes: numbers of coordinates of q, v and z. times: default time interval. own: typical size of each coordinate of
    z, to which its spread refers. Raises ArgumentError for spread or domain.
    """
    domain, spread = region.domain or {}, region.spread
    spreads = spread if isinstance(spread, Mapping) else dict.fromkeys(PARTS, spread)
    sides = [_interval("t", 1, domain["t"])] if "t" in domain else [np.array([times]).T]
    for name in PARTS:
        n = sizes[name]
        if name in domain:
            side = _interval(name, n, domain[name])
            if (side[0] > 0.0).any() or (side[1] < 0.0).any():
                raise ArgumentError(f"domain: expected the equilibrium, 0, within {name}'s, got {shown(domain[name])}")
        else:
            half = MAX_SPREADS * _spread(name, n, spreads.get(name, 0.5)) * (own if name == "z" else 1.0)
            side = np.array([-half, half])
        sides.append(side)
    lower, upper = np.hstack(sides)
    if lower[0] < 0.0:
        raise ArgumentError(f"domain: expected times >= 0, got times from {lower[0]:g} s")
    return lower, upper


def _numbers(x: Any, n: int) -> np.ndarray | None:
    """x as n finite numbers, None if that is impossible."""
    try:
        a = np.asarray(x)
    except ValueError:
        return None
    if a.dtype.kind not in "iuf" or a.shape not in ((), (n,)) or not np.isfinite(a).all():
        return None
    return np.broadcast_to(a, n).astype(float)


def _spread(name: str, n: int, x: Any) -> np.ndarray:
    a = _numbers(x, n)
    if a is None or (a < 0.0).any():
        raise ArgumentError(f"spread: expected a number >= 0 or {n} of them for {name}, got {shown(x)}")
    return a


def _interval(name: str, n: int, x: Any) -> np.ndarray:
    """(2, n)."""
    pair = x if isinstance(x, Sequence | np.ndarray) and not isinstance(x, str) and len(x) == 2 else (None, None)
    lower, upper = (_numbers(side, n) for side in pair)
    if lower is None or upper is None or (lower > upper).any():
        expected = f"(lower, upper), finite, lower <= upper, numbers or {n} each"
        raise ArgumentError(f"domain: expected {expected}, for {name}, got {shown(x)}")
    return np.array([lower, upper])
