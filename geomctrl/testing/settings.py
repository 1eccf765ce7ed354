"""Groups of arguments: `Region`, `Runs`, `Port`, `Box` and `Budget`.

A plain value stands for a group with that first field: `runs=0` for `Runs(0)`, `region=0.2` for `Region(0.2)`,
`port="hand"` for `Port("hand")`, `box=(1.0, 2.0)` for a `Box`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import (
    checked,
    count,
    function,
    has_attributes,
    is_a,
    mapped,
    number,
    pair,
    per_coordinate,
    positive,
    shown,
)
from geomctrl.control.sweeping.executors import check_executor
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments

PARTS = ("q", "v", "z")  # of a state


@named_arguments()
@dataclass(frozen=True, eq=False)
class Region:
    """The states about the equilibrium at which a property is tested.

    Parameters
    ----------
    spread : float, or mapping of "q", "v", "z" to numbers or arrays
        Standard deviation of random states from the equilibrium (rad, m, rad/s, m/s), truncated at three times that.
        For z it is relative to each entry (to the median entry where an entry is zero, absolute if all are), or in the
        algebra of the controller's `group`; a controller with `sample_state` draws z itself.
    domain : mapping of "t", "q", "v", "z" to pairs (lower, upper), optional
        Bounds of the states relative to the equilibrium, instead of three spreads. "t" [s] is absolute, by default up
        to 3 s after the last change of the plant. A revolute joint turned by 2 pi is a different configuration; the
        domain contains it only if its bounds do.
    equilibrium : optional
        q (nq,) at rest, or (q, z), or a function t -> (q, v, z). Default: the controller's `reference`, or at rest its
        `q_d`. z is `settled(t, plant)`, `true_parameters(plant)` or the initial state; if V is not zero there, z is
        solved for.

    Examples
    --------
    >>> from geomctrl import testing
    >>> region = testing.Region(spread={"q": 0.3, "v": 1.0})
    """

    spread: float | Mapping[str, Any] = 0.5
    domain: Mapping[str, tuple[Any, Any]] | None = None
    equilibrium: Any = None

    def __post_init__(self):
        if isinstance(self.spread, Mapping):
            for part in _require_parts("spread", self.spread, PARTS).values():
                checked("spread", part, ())
        else:
            expected = "a positive number from 1e-100 to 1e6"
            _store(self, spread=number("spread", self.spread, expected, lambda x: 1e-100 <= x <= 1e6))
        if self.domain is not None:
            for name, sides in _require_parts("domain", self.domain, ("t", *PARTS)).items():
                for side in pair("domain", sides, f"a pair (lower, upper) for {name}"):
                    checked("domain", side, ())


@named_arguments()
@dataclass(frozen=True)
class Runs:
    """Simulations along which a property is tested.

    Parameters
    ----------
    count : int
        Number of simulations. Default: 2.
    duration : float
        Length of each [s]. Default: 0.3.
    dt : float
        Step [s]. Default: 1e-3.

    Examples
    --------
    >>> from geomctrl import testing
    >>> testing.Runs(count=4).duration
    0.3
    """

    count: int = 2
    duration: float = 0.3
    dt: float = 1e-3

    def __post_init__(self):
        seconds = {name: _seconds(name, getattr(self, name)) for name in ("duration", "dt")}
        _store(self, count=count("count", self.count), **seconds)


EXPECTED_AT = "'joints', a frame, an array (nv, m) or a function (robot, q) of one"


@named_arguments()
@dataclass(frozen=True, eq=False)
class Port:
    """A port: inputs u (m,) that act on the robot as joint torques B(q) u, and an output y (m,).

    Parameters
    ----------
    at : str, array (nv, m) or function
        "joints": u is added to the controller's torques, and y = v. Name of a frame: u is a wrench on its body and y
        the twist of the frame, in frame axes, angular part first. B (nv, m) or a function (robot, q) -> B, for example
        `lambda robot, q: robot.jacobian(q, "hand", "hybrid")[3:].T` for a force: y = B^T v.
    largest : float
        Largest |u|.
    output : function (t, q, v, z) -> y (m,), optional
        Another output.

    Examples
    --------
    >>> from geomctrl import testing
    >>> port = testing.Port(lambda robot, q: robot.jacobian(q, "tip", "hybrid")[3:].T, largest=5.0)
    """

    at: Any = "joints"
    largest: float = 1.0
    output: Callable[..., Any] | None = None

    def __post_init__(self):
        _store(self, largest=number("largest", self.largest, "a positive number", lambda x: x > 0.0))
        if callable(self.at):
            function("at", self.at, "(robot, q) -> B (nv, m)", 2)
        elif not isinstance(self.at, str) and checked("at", self.at, ()).ndim != 2:
            raise ArgumentError(f"at: expected {EXPECTED_AT}, got {shown(self.at)}")
        if self.output is not None:
            function("output", self.output, "(t, q, v, z) -> y", 4)


@named_arguments()
@dataclass(frozen=True, eq=False)
class Box:
    """A box of states about an equilibrium at rest, for a certificate.

    Parameters
    ----------
    q, v : float or array (nv,)
        Half widths of the box [rad or m, rad/s or m/s]. If V = 1/2 s . M s with s = e' + Lambda e and the claim has
        `rate` and `offset`, v is the half width of s.
    times : pair (first, last), optional
        Time interval [s] for a law, a V or a wrench that depends on time. Without it such a law is refused.
    equilibrium : array (nq,), optional
        Default: the controller's `reference`, or its `q_d`. About a reference that moves, q and v are tracking errors.
    disturbance : float or array (nv,), optional
        Largest joint torques [N m or N] that act in addition, as any function of time. Coulomb friction is one.
    friction : float, optional
        Uncertainty of the coefficients of the plant's `Friction`, relative to their values (0.2 for 20 %).
    z : float or array, optional
        Half widths of z - `true_parameters(plant)`, for adaptive laws.

    Examples
    --------
    >>> from geomctrl import testing
    >>> box = testing.Box(q=0.5, v=1.0)
    """

    q: Any
    v: Any
    times: tuple[float, float] | None = None
    equilibrium: Any = None
    disturbance: Any = None
    friction: float | None = None
    z: Any = None

    def __post_init__(self):
        for name in "qv":  # their lengths depend on the robot, and that of z on the law
            per_coordinate(name, getattr(self, name), "positive half widths", positive)
        for name in ("equilibrium", "z"):
            if getattr(self, name) is not None:
                checked(name, getattr(self, name), ())
        if self.friction is not None:
            number("friction", self.friction, "a share, not negative, such as 0.2 for 20 %", lambda x: x >= 0.0)
        if self.disturbance is not None:
            torques = checked("disturbance", self.disturbance, ())
            if torques.ndim > 1 or not torques.size or not (torques >= 0.0).all():
                raise ArgumentError(f"disturbance: expected torques (nv,), not negative, got {shown(self.disturbance)}")
            _store(self, disturbance=torques)
        if self.times is None:
            return
        times = pair("times", self.times, "a pair (first, last) [s]")
        first, last = (number("times", t, "seconds, not negative", lambda t: 0.0 <= t < np.inf) for t in times)
        if not first < last:
            raise ArgumentError(f"times: expected a first and a later last time [s], got {first:g} and {last:g}")
        _store(self, times=(first, last))


@named_arguments()
@dataclass(frozen=True)
class Budget:
    """Limits of the computation of a certificate or a tube. The boxes of a tube are the parts of its initial box.

    Parameters
    ----------
    boxes : int
        Number of boxes, a limit that gives the same result on every machine. Default: 200 000.
    seconds : float
        Time limit for boxes that take long; the certificate reports if it ended a proof. Default: 600.
    seed : int
        Of the search for a counterexample. Default: 0.
    executor : object with `submit(function, *args)`, optional
        Decides boxes in other processes: a concurrent.futures.ProcessPoolExecutor or a dask.distributed.Client.
    resume : certificate or path, optional
        An undecided certificate or tube, or a file of its `save`: its boxes are the first ones. They are decided again,
        which takes less time than their search. Not for `find_lyapunov` and `largest_certified_control_dt`.

    Examples
    --------
    >>> from geomctrl import testing
    >>> testing.Budget(boxes=10_000).seconds
    600.0
    """

    boxes: int = 200_000
    seconds: float = 600.0
    seed: int = 0
    executor: Any = None
    resume: Any = None

    def __post_init__(self):
        if not (self.resume is None or isinstance(self.resume, (str, Path)) or has_attributes(self.resume, "save")):
            raise ArgumentError(f"resume: expected a certificate or the path of a file, got {shown(self.resume)}")
        checked_executor(self.executor)
        _store(self, boxes=count("boxes", self.boxes, 1), seconds=_seconds("seconds", self.seconds))
        _store(self, seed=count("seed", self.seed))


def checked_executor(executor: Any) -> None:
    """Raise ArgumentError unless it is None or runs functions in other processes."""
    check_executor(executor)
    if isinstance(executor, ThreadPoolExecutor):
        raise ArgumentError(
            "executor: expected one of processes, such as concurrent.futures.ProcessPoolExecutor or a dask client, got"
            " threads, which can not decide boxes at the same time"
        )


def region_of(region: Any) -> Region:
    return region if is_a(region, Region) else _group("region", Region(), region, "a Region or its spread")


def runs_of(runs: Any, default: Runs) -> Runs:
    return runs if isinstance(runs, Runs) else _group("runs", default, runs, "Runs or how many")


def port_of(port: Any) -> Port:
    return port if isinstance(port, Port) else _group("port", Port(), port, f"a Port, or {EXPECTED_AT}")


def budget_of(budget: Any, unused: tuple[str, ...] = ()) -> Budget:
    """The budget; fields that a proof can not use must be None."""
    if not isinstance(budget, Budget):
        return _group("budget", Budget(), budget, "a Budget or its boxes")
    for name in unused:
        if getattr(budget, name) is not None:
            raise ArgumentError(f"budget: expected one without `{name}`, which this proof can not use")
    return budget


def box_of(box: Any) -> Box:
    if isinstance(box, Box):
        return box
    q, v = pair("box", box, "a pair (q, v) of half widths, or a Box")
    try:
        return Box(q, v)
    except ArgumentError as error:
        raise ArgumentError(f"box.{error}") from None


def _group(name: str, default: Any, first: Any, expected: str) -> Any:
    field = next(iter(default.__dataclass_fields__))
    try:
        return replace(default, **{field: first})
    except ArgumentError as error:
        raise ArgumentError(f"{name}: expected {expected}; {error}") from None


def _store(group: Any, **fields: Any) -> None:
    """Store checked fields of a frozen group."""
    for name, x in fields.items():
        object.__setattr__(group, name, x)


def _seconds(name: str, x: Any) -> float:
    return number(name, x, "seconds > 0", lambda x: x > 0.0)


def _require_parts(name: str, x: Any, parts: tuple[str, ...]) -> dict[str, Any]:
    expected = f"some of {', '.join(map(repr, parts))} by name"
    if not set(values := mapped(name, x, expected)) <= set(parts):
        raise ArgumentError(f"{name}: expected {expected}, got {shown(x)}")
    return values
