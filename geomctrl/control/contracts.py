"""The contracts between a plant, a controller and a reference: what each gives to the others."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from geomctrl.arguments import function, number, read_only
from geomctrl.tracing.numbers import holds_symbols


class Command(NamedTuple):
    """What a controller returns: joint torques tau (nv,), or as many numbers as the plant's first actuator takes; the
    rate of its state; and numbers or arrays to record.

    z_next: what its state becomes after the sample, of a law that is sampled (`control_dt`).
    """

    tau: np.ndarray
    z_rate: np.ndarray | None = None
    signals: Mapping[str, Any] = MappingProxyType({})
    z_next: np.ndarray | None = None


class Desired(NamedTuple):
    """A reference at one time: q (nq,), body-fixed joint velocities v (nv,) and their rates a (nv,)."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


class Lyapunov(NamedTuple):
    """A Lyapunov function's value and the derivative the controller's proof promises."""

    value: float
    rate: float


@runtime_checkable
class Reference(Protocol):
    """A desired motion: t -> Desired(q, v, a), with q' = q hat(v) and v' = a to round-off."""

    def __call__(self, t: float) -> Desired: ...


@runtime_checkable
class Controller(Protocol):
    """A feedback law. The implementer's contract:

    1. `start()` returns the controller's own state z0: an array, an element of `group`, or None if it has none. It may
       take the robot's state at the beginning, `start(q0, v0)`: a filter then begins where the robot does.
    2. `__call__(t, q, v, z)` returns a Command and has no side effects: an integrator calls it at its stages, in
       any order, and may throw a step away. It may keep its arguments, but not write on them. With `control_dt` it is
       called once a sample, in order: then its attributes may be its memory, as numbers, strings, None, arrays of
       floats, and lists, tuples, NamedTuples, dicts and deques of such that keep their length.
    3. z moves as z' = z_rate on R^n; a controller whose state lives on another Lie group says which in an attribute
       `group`, and z_rate is then in its algebra. A state that is renewed at samples (a filter, an observer, a
       counter) is `z_next` instead: z is z_next from right after the sample to the next one, at which the law and
       all who watch it see that; this needs `control_dt`. A Command may have both: then z is z_next after the sample
       and moves from there at z_rate, so that a state with parts of either kind gives for each its own, and for the
       other z itself and zero.
    4. Optionally `lyapunov(t, q, v, z, plant)` returns Lyapunov(value, rate), evaluated with the true robot
       `plant.robot`, which the controller itself does not know; the monitors and `testing.assert_lyapunov` use it.
       A law whose proof ends in a ball, V' <= rate + c, has c in a method `allowance(plant)` besides: by c times the
       time V may grow. `testing.assert_input_to_state_stable` with a gain of c at no disturbance is its test.
    5. Optionally `coriolis_matrix(q, v)` and `robot`: the C the law is built on and its model, so that the monitors
       can check that Mdot - 2C is skew for it. Optionally `reference`, a Reference: a run stores it at its samples.
       `control.desired_at(reference, t)` in the law shares one evaluation a time with monitors and record.
    6. Where V vanishes: at its `reference`, or at rest at its attribute `q_d`, with the state that an optional
       `settled(t, plant)` or `true_parameters(plant)` returns, or else the one it starts with, or, if V is not zero
       there, one that is solved for; `testing.assert_lyapunov` looks there.
    7. Where z lies: without more, anywhere near that state, moved entry by entry or in the algebra of `group`. If the
       proof holds on a smaller set only (physical parameters, a filter's manifold), `sample_state(rng, plant)` draws
       from it, by a numpy Generator: an array as `start()` returns it, typically as far off as an estimate may be,
       another one each time. It may return None: any z is one of its states.
    8. Where the plant has sensors, q and v are measured, if any measures them, and the truth else. A law
       whose attribute `measurements` is True is called as `law(t, q, v, z, y)`: y[name] is what sensors measure.
    9. Optionally a class method `tuned(tuning)` returns the law with gains for `tuning.robot`, see
       `control.tuning.Tuning`; `geomctrl track` uses it.
    """

    def start(self) -> np.ndarray | None:
        """The controller's own state at the beginning; rule 1."""
        ...

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray | None) -> Command: ...


def started(controller: Any, robot: Any, q0: np.ndarray | None = None, v0: np.ndarray | None = None) -> Any:
    """The state that a controller begins with where the robot begins with q0, v0, default neutral and at rest.

    None without one. Whether `start` takes q0 and v0 is told by its signature.
    """
    start = getattr(controller, "start", None)
    if start is None:
        return None
    try:
        inspect.signature(start).bind(q0, v0)
    except (TypeError, ValueError):
        return start()
    return start(robot.neutral() if q0 is None else q0, np.zeros(robot.nv) if v0 is None else v0)


def displaced(group: Any, z: Any, x: Any) -> Any:
    """A controller's state z moved by x in the algebra of its group; without one z + x."""
    return z + np.reshape(x, np.shape(z)) if group is None else group.advance(z, np.ravel(x))


def moved(controller: Any, z: Any, t: Any, z_rate: Any) -> Any:
    """The controller's state after a time t at a constant rate, None being none."""
    return z if z is None or z_rate is None else displaced(getattr(controller, "group", None), z, t * z_rate)


def wants_measurements(controller: Any) -> bool:
    """Whether a law is called with what sensors measure."""
    return getattr(controller, "measurements", False) is True


@dataclass(slots=True)
class _Latest:
    """The reference evaluated last, when, and what it gave."""

    reference: Any = None
    t: float | None = None
    desired: Any = None


_latest: ContextVar[_Latest | None] = ContextVar("latest", default=None)


def time(t: Any) -> Any:
    """t as a float, a symbol as it is; raises ArgumentError, naming t, unless it is a finite number."""
    if type(t) is float and -inf < t < inf:
        return t
    return t if holds_symbols(t) else number("t", t, "a finite time")


def desired_at(reference: Reference, t: float) -> Desired:
    """reference(t), from memory if a running `simulate` asked for it last: to be read, not to be written on."""
    latest = _latest.get()
    if latest is None:
        try:
            return reference(t)
        except TypeError:
            function("reference", reference, "t -> Desired(q, v, a)")
            raise
    if latest.t != t or latest.reference is not reference:
        latest.desired = _read_only(reference(t))
        latest.reference, latest.t = reference, t
    return latest.desired


def _read_only(desired: Any) -> Any:
    """`desired`, on which no reader of it writes; what is no Desired of arrays passes, to be named by who stores it."""
    if type(desired) is Desired:
        q, v, a = desired
        if type(q) is type(v) is type(a) is np.ndarray:
            return Desired(read_only(q), read_only(v), read_only(a))
    return desired


@contextmanager
def evaluated_once() -> Iterator[None]:
    """While this context lasts, `desired_at` remembers, in this thread."""
    token = _latest.set(_Latest())
    try:
        yield
    finally:
        _latest.reset(token)


@contextmanager
def evaluated_each_time() -> Iterator[None]:
    """While this context lasts, `desired_at` remembers nothing: times that are symbols can not be compared."""
    token = _latest.set(None)
    try:
        yield
    finally:
        _latest.reset(token)
