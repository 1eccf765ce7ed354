"""`Wrench`: external wrenches at named frames, which may begin and end at given times."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly, frozen, function, listed, number, shown
from geomctrl.described import ReadableRepr, described
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.terms.kinematics import Representation, on_a_body, representation_number

from .contracts import time

NEVER_SECONDS = sys.float_info.max  # s: later than any time, but finite for compiled code
SWITCH_TOLERANCE = 1e-12  # s by which a time may precede a switch and still count as at the switch


class Bound(Protocol):
    """External wrenches on the bodies of one robot."""

    @property
    def switches(self) -> tuple[float, ...]:
        """Times [s] at which the wrenches are not smooth."""
        ...

    def _acts(self, t: float) -> bool:
        """Whether they act from time t until the next switch."""
        ...

    def _wrenches(self, robot: Robot, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Wrenches (nbodies, 6) in body frames."""
        ...


class External(ReadableRepr):
    """Base class of external wrenches for `Plant(f_ext=...)` other than functions."""

    def _bound(self, robot: Robot) -> Bound:
        """The wrenches for one robot. Raises ArgumentError or NameNotFoundError if they do not fit it."""
        raise NotImplementedError


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Wrench(External):
    """A wrench at a named frame, active from `start` to `end`.

    Parameters
    ----------
    frame : str
        A frame or body of the plant's robot.
    value : array_like (6,) or callable
        The wrench, or a function of time [s] that returns it; its attribute `switches`, if it has one, lists the times
        at which it is not smooth.
    start, end : float, default -inf and inf
        When it acts [s].
    representation : {"body", "spatial", "hybrid", "mixed"}, default "body"
        In which axes and about which point, as for `Robot.body_wrenches`; "hybrid" is the world's axes and the frame's
        origin.

    Raises
    ------
    ArgumentError
        If an argument is invalid. `Plant` checks that the frame exists.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> plant = gc.Plant(arm, f_ext=[gc.Wrench(arm.body_names[-1], [0, 0, 0, 5.0, 0, 0], start=1.0, end=1.2)])
    """

    frame: str
    value: ArrayLike | Callable[[float], ArrayLike]
    start: float = -math.inf
    end: float = math.inf
    representation: Representation = "body"
    switches: tuple[float, ...] = field(init=False, repr=False)

    def __post_init__(self):
        if not isinstance(self.frame, str):
            raise ArgumentError(f"frame: expected the name of a frame, got {shown(self.frame)}")
        if callable(self.value):
            function("value", self.value, "of t", 1)
        else:
            object.__setattr__(self, "value", frozen(exactly("value", self.value, (6,))))
        representation_number(self.representation)
        for name, none in (("start", -math.inf), ("end", math.inf)):
            x = getattr(self, name)
            object.__setattr__(self, name, none if type(x) in (float, np.float64) and x == none else number(name, x))
        if not self.start < self.end:
            raise ArgumentError(f"end: expected a time after start = {self.start:g} s, got {self.end!r}")
        edges = [t for t in (self.start, self.end) if math.isfinite(t)]
        object.__setattr__(self, "switches", (*edges, *_switches(self.value, "value")))

    def _bound(self, robot: Robot) -> Wrench:
        on_a_body(robot, self.frame)
        return self

    def _acts(self, t: float) -> bool:
        return self.start <= t < self.end

    def _wrenches(self, robot: Robot, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        value: Any = self.value(t) if callable(self.value) else self.value
        return robot.body_wrenches(q, value, self.frame, self.representation)


@dataclass(frozen=True, eq=False)
class _Function:
    """External wrenches given as a function (t, q, v) -> (nbodies, 6)."""

    function: Callable[[float, np.ndarray, np.ndarray], np.ndarray]
    switches: tuple[float, ...]

    def _acts(self, t: float) -> bool:
        return True

    def _wrenches(self, robot: Robot, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return exactly("f_ext", self.function(t, q, v), (robot.nbodies, 6))  # other shapes could broadcast in the sum


def _switches(x: Any, name: str) -> tuple[float, ...]:
    """The attribute `switches` of a user's function."""
    times = listed(f"{name}.switches", getattr(x, "switches", ()))
    return tuple(number(f"{name}.switches", t, "finite times") for t in times)


class ExternalWrenches:
    """The sum of external wrenches on a robot's bodies: f_ext(t, q, v) -> (nbodies, 6).

    It is smooth between two `switches`. `at` returns the wrenches of one such interval, valid at both of its ends, so
    that one integrator step sees only one side of a switch.
    """

    def __init__(
        self,
        robot: Robot,
        parts: Sequence[Bound],
        sources: Sequence[Any] = (),
        since=-NEVER_SECONDS,
        until=NEVER_SECONDS,
    ):
        self.robot, self.parts, self.sources = robot, tuple(parts), tuple(sources)
        self.since, self.until = since, until
        edges = {t for part in parts for t in part.switches}
        self.piece = since > -NEVER_SECONDS or until < NEVER_SECONDS  # whether it is restricted to one interval
        self.switches = () if self.piece else tuple(sorted(edges))

    def __repr__(self) -> str:
        return described(list(self.sources))

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if self.switches:
            return self._now(t)(t, q, v)
        if self.piece:
            t = min(max(t, self.since), self.until)
        total = np.zeros((self.robot.nbodies, 6))
        for part in self.parts:
            total = total + part._wrenches(self.robot, t, q, v)
        return total

    def at(self, t: float) -> ExternalWrenches | None:
        """The wrenches from time t until the next switch; None if none act."""
        now = self._now(t)
        return now if now.parts else None

    def _now(self, t: float) -> ExternalWrenches:
        if not self.switches:
            return self
        t = time(t) + SWITCH_TOLERANCE
        since = max((s for s in self.switches if s <= t), default=-NEVER_SECONDS)
        until = min((s for s in self.switches if s > t), default=NEVER_SECONDS)
        acting = [part for part in self.parts if part._acts(t)]
        return ExternalWrenches(self.robot, acting, self.sources, since, float(np.nextafter(until, -NEVER_SECONDS)))


EXPECTED_FUNCTION = "of (t, q, v), a Wrench or a Contact"
EXPECTED_WRENCHES = "a function of (t, q, v), a Wrench, a Contact, or a list of them"


def external_wrenches(robot: Robot, f_ext: Any) -> Any:
    """The function f_ext(t, q, v) for `Plant(f_ext=...)`. A function without switches is returned unchanged."""
    sources = f_ext.sources if isinstance(f_ext, ExternalWrenches) else f_ext
    if callable(sources) and not _switches(sources, "f_ext"):
        return function("f_ext", sources, EXPECTED_FUNCTION, 3)
    if callable(sources) or isinstance(sources, External):
        sources = [sources]
    elif sources is not None and not isinstance(sources, (list, tuple)):
        raise ArgumentError(f"f_ext: expected {EXPECTED_WRENCHES}, got {shown(sources)}")
    sources = [] if sources is None else listed("f_ext", sources, EXPECTED_WRENCHES)
    return ExternalWrenches(robot, [_bound(robot, x) for x in sources], sources) if sources else None


def _bound(robot: Robot, x: Any) -> Bound:
    if isinstance(x, External):
        return x._bound(robot)
    return _Function(function("f_ext", x, EXPECTED_FUNCTION, 3), _switches(x, "f_ext"))
