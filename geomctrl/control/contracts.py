"""Interfaces between plant, controller and reference: `Command`, `Desired`, `Lyapunov`, `Reference`, `Controller`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from geomctrl.arguments import accepts, is_a, number, read_only, shown
from geomctrl.errors import ArgumentError
from geomctrl.tracing.numbers import holds_symbols
from geomctrl.tracing.untraceable import assigned


class Command(NamedTuple):
    """The return value of a controller.

    Attributes
    ----------
    tau : array (nv,) or (inputs,)
        Joint torques [N m, N for prismatic joints], or the inputs of the plant's first actuator.
    z_rate : array, optional
        Time derivative of the controller's state; None for a controller without continuous state.
    signals : mapping of str to number or array
        Further quantities that the run records.
    z_next : array, optional
        State of a sampled controller after this sample. It needs `control_dt`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> gc.Command(np.zeros(2), signals={"e": 0.1}).signals["e"]
    0.1
    """

    tau: np.ndarray
    z_rate: np.ndarray | None = None
    signals: Mapping[str, Any] = MappingProxyType({})
    z_next: np.ndarray | None = None


class Desired(NamedTuple):
    """A reference motion at one time.

    Attributes
    ----------
    q : array (nq,)
        Configuration [rad, m].
    v : array (nv,)
        Body-fixed joint velocities [rad/s, m/s].
    a : array (nv,)
        Their time derivatives [rad/s^2, m/s^2].

    Examples
    --------
    >>> import geomctrl as gc
    >>> import numpy as np
    >>> gc.Desired(q=np.array([0.1]), v=np.zeros(1), a=np.zeros(1)).q
    array([0.1])
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


class Lyapunov(NamedTuple):
    """A Lyapunov function at one state.

    Attributes
    ----------
    value : float
        V, zero at the equilibrium and positive elsewhere.
    rate : float
        The rate of V along the loop that the controller's proof promises. Tests compare it with V', or with
        `bound=True` take it for an upper bound.

    Examples
    --------
    >>> import geomctrl as gc
    >>> V = gc.Lyapunov(value=2.0, rate=-0.5)
    >>> V.value, V.rate
    (2.0, -0.5)
    """

    value: float
    rate: float


@runtime_checkable
class Reference(Protocol):
    """A desired motion: a function t -> Desired(q, v, a) with v the rate of q and a that of v.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> def ramp(t):
    ...     return gc.Desired(q=np.array([0.2 * t]), v=np.array([0.2]), a=np.zeros(1))
    >>> isinstance(ramp, gc.Reference)
    True
    """

    def __call__(self, t: float) -> Desired: ...


class Controller(Protocol):
    """A feedback law: an object, or a function, that is called with (t, q, v, z). It follows these rules:

    1. Optional: `start()` returns the initial state z0 of the controller: an array, an element of `group`, or None.
       It may take the robot's initial state, `start(q0, v0)`, for example to initialise a filter. A law without
       `start` has no state, and z is None.
    2. The call `(t, q, v, z)` returns a Command and has no side effects. An integrator calls it at its stages, in any
       order, and may reject a step. It may keep its arguments but must not modify them. With `control_dt` it is called
       once per sample, in order. Then it may store memory in attributes: numbers, strings, None, arrays of floats, and
       lists, tuples, NamedTuples, dicts and deques of these whose length does not change.
    3. A continuous state follows z' = z_rate on R^n. If it lives on another Lie group, the attribute `group` is that
       group and z_rate is in its algebra. A discrete state (filter, observer, counter) is updated by `z_next`, which
       needs `control_dt`: z equals z_next from right after the sample up to and including the next sample, where the
       law and the monitors see it. A Command may have both: z is z_next after the sample and then moves at z_rate. For
       a mixed state, z_next repeats the continuous part of z, and z_rate is zero for the discrete part.
    4. Optional: `lyapunov(t, q, v, z, plant)` returns Lyapunov(value, rate), or a plain pair (value, rate), evaluated
       with the true robot `plant.robot`, which the controller itself does not know. Monitors and
       `testing.assert_lyapunov` use it. If you can only prove V' <= rate + c, return c from a method
       `allowance(plant)`: V may then grow by c times the elapsed time.
       `testing.assert_input_to_state_stable` with a gain of c at zero disturbance tests this.
    5. Optional: `coriolis_matrix(q, v)` and `robot`, the Coriolis matrix C and the model that the law uses. Monitors
       then check that Mdot - 2C is skew-symmetric. Optional: `reference`, a Reference that a run records. Inside the
       law, `control.desired_at(reference, t)` evaluates it once per time for law, monitors and record.
    6. The equilibrium, where V vanishes, is at `reference`, or at rest at the attribute `q_d`. Its controller state is
       what an optional `settled(t, plant)` or `true_parameters(plant)` returns, otherwise the initial state, or, if V
       is not zero there, a state that is solved for. `testing.assert_lyapunov` tests V there.
    7. By default every z near that state is admissible: tests perturb each entry, or move in the algebra of `group`. If
       the proof holds on a smaller set (physical parameters, the manifold of a filter), `sample_state(rng, plant)`
       draws a random state of that set, shaped as `start()` returns it, with typical estimation errors. It may return
       None if every z is admissible.
    8. If the plant has sensors, q and v are measured values where a sensor measures them, and true values otherwise.
       With the attribute `measurements = True` the law is called as `law(t, q, v, z, y)`, and y[name] is the output of
       the sensor `name`.
    9. Optional: a class method `tuned(tuning)` returns the law for `geomctrl track`, which otherwise calls
       CLASS(robot, reference). `tuning` has `robot` (the model), `motion` (a `Reference`), `friction` (a `Friction`, or
       None), `gains` (the numbers of --gains by name), and gains that suit the robot: `Lambda` [1/s] and `K`
       [N m s/rad] for laws with s, `kp` [1/s^2] and `kd` [1/s] for computed torque. The class attribute `GAINS` maps
       the names that --gains accepts to their units.
    10. Optional: `in_domain(t, q, v)` returns whether the proof holds from this state on, for a law whose proof is not
        global.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> law = lambda t, q, v, z: gc.Command(robot.gravity_force(q) - 10.0 * q - 5.0 * v)
    >>> gc.simulate(robot, law, np.zeros(2), np.zeros(2), t_end=0.002, dt=1e-3).tau.shape
    (3, 2)
    """

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray | None) -> Command: ...


def started(controller: Any, robot: Any, q0: np.ndarray | None = None, v0: np.ndarray | None = None) -> Any:
    """The initial state of a controller, or None, for a robot that starts at q0, v0 (default: neutral and at rest)."""
    start = getattr(controller, "start", None)
    if start is None:
        return None
    if not accepts(start, 2):
        return start()
    return start(robot.neutral() if q0 is None else q0, np.zeros(robot.nv) if v0 is None else v0)


def displaced(group: Any, z: Any, x: Any) -> Any:
    """The state z of a controller moved by x in the algebra of its group; z + x without a group."""
    return z + np.reshape(x, np.shape(z)) if group is None else group.advance(z, np.ravel(x))


def moved(controller: Any, z: Any, t: Any, z_rate: Any) -> Any:
    """The state of a controller after time t at constant rate; None if it has no state."""
    return z if z is None or z_rate is None else displaced(getattr(controller, "group", None), z, t * z_rate)


def require_controller(controller: Any, name: str = "controller") -> None:
    """Raise ArgumentError unless the object can be called as a controller; a class of controllers is none."""
    arguments = ("t", "q", "v", "z", "y") if wants_measurements(controller) else ("t", "q", "v", "z")
    expected = f"{name}: expected a geomctrl.Controller, which is called with ({', '.join(arguments)})"
    if isinstance(controller, type) or not callable(controller) or not bool(is_a(controller, object)):
        raise ArgumentError(f"{expected}, got {shown(controller)}")
    if not accepts(controller, len(arguments)):
        raise ArgumentError(f"{expected}, got {shown(controller)}, called with {inspect.signature(controller)}")


def require_reference(reference: Any, robot: Any = None, name: str = "reference") -> Any:
    """Return a reference; raises ArgumentError unless it is a function t -> Desired(q, v, a) for the robot."""
    expected, kind = f"{name}: expected a function t -> Desired(q, v, a)", type(reference).__name__
    if isinstance(reference, type):
        kind = reference.__name__
        raise ArgumentError(f"{expected}, got the class {kind}: pass an object, {kind}(...)")
    if not callable(reference) or not bool(is_a(reference, object)):
        raise ArgumentError(f"{expected}, got {shown(reference)}")
    if not accepts(reference, 1):
        raise ArgumentError(f"{expected}, got {shown(reference)}, which takes {inspect.signature(reference)}")
    if getattr(type(reference), "derivatives", 2) != 2:
        raise ArgumentError(f"{expected}, got {kind}, which returns q and four derivatives: take Sinusoids or Quintic")
    other = getattr(reference, "robot", robot)
    if robot is not None and getattr(other, "nv", robot.nv) != robot.nv:
        raise ArgumentError(f"{expected} for nv = {robot.nv}, got {kind} for {other.name} with nv = {other.nv}")
    return reference


def wants_measurements(controller: Any) -> bool:
    """Whether the controller takes the outputs of all sensors as a fifth argument."""
    return getattr(controller, "measurements", False) is True


@dataclass(slots=True)
class _Latest:
    """The last evaluation of a reference: the reference, the time and the result."""

    reference: Any = None
    t: float | None = None
    desired: Any = None


_latest: ContextVar[_Latest | None] = ContextVar("latest", default=None)


def time(t: Any) -> Any:
    """t as a float, or unchanged if symbolic. Raises ArgumentError unless it is a finite number."""
    if type(t) is float and -inf < t < inf:
        return t
    return t if holds_symbols(t) else number("t", t, "a finite time")


def desired_at(reference: Reference, t: float) -> Desired:
    """Evaluate a reference; during a run each time is evaluated once.

    Parameters
    ----------
    reference : Reference
        A function t -> Desired(q, v, a).
    t : float
        Time [s].

    Returns
    -------
    Desired
        Read-only arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> reference = gc.references.hold(gc.models.two_link(), [0.5, 0.2])
    >>> gc.control.desired_at(reference, 0.0).q
    array([0.5, 0.2])
    """
    latest = _latest.get()
    if latest is None:
        try:
            return reference(t)
        except (TypeError, AttributeError):
            require_reference(reference)
            raise
    if latest.t != t or latest.reference is not reference:
        latest.desired = _read_only(reference(t))
        latest.reference, latest.t = reference, t
    return latest.desired


def _read_only(desired: Any) -> Any:
    """`desired` with read-only arrays. An invalid value is returned unchanged, for the caller to report."""
    if type(desired) is Desired:
        q, v, a = desired
        if type(q) is type(v) is type(a) is np.ndarray:
            return Desired(read_only(q), read_only(v), read_only(a))
    return desired


def evaluated_once() -> AbstractContextManager[Any]:
    """Context in which `desired_at` caches the last evaluation, per thread."""
    return assigned(_latest, _Latest())


def evaluated_each_time() -> AbstractContextManager[None]:
    """Context in which `desired_at` caches nothing, because symbolic times can not be compared."""
    return assigned(_latest, None)
