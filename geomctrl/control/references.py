"""Reference motions: quintic point-to-point motion, sums of sinusoids, splines through waypoints.

All of them are products of exponentials q(t) = q0 exp(X_1 s_1(t)) ... exp(X_m s_m(t)) with constant X_k in joint
coordinates. Velocity and acceleration follow from the recursion

    v_k = Ad_{exp(-X_k s_k)} v_{k-1} + X_k s_k',
    a_k = Ad_{exp(-X_k s_k)} a_{k-1} - ad_{X_k s_k'} Ad_{exp(-X_k s_k)} v_{k-1} + X_k s_k''.

They are consistent with q to round-off for every joint type, including spherical and free joints. For joints with one
degree of freedom the motion is q0 + sum_k X_k s_k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, number, shown
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError
from geomctrl.kernels.configuration import product_motion, quintic_blend, sinusoid_motion
from geomctrl.mechanism.configuration import difference
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.mechanism.states import one_configuration
from geomctrl.other_names import named_arguments, unknown_names
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import has_symbols

from .contracts import Desired, time

__all__ = [
    "Harmonic",
    "Quintic",
    "RestToRest",
    "Sinusoids",
    "Spline",
    "hold",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)


class _Motion(ReadableRepr):
    """A motion from q0 along directions X. A subclass defines s(t) and its two derivatives, (3, m)."""

    def __init__(self, robot: Robot, q0: np.ndarray, X: np.ndarray):
        self.robot, self.q0, self.X = robot, q0, np.ascontiguousarray(X)

    def _scalars(self, t: float) -> np.ndarray:
        raise NotImplementedError

    def __call__(self, t: float) -> Desired:
        s = self._scalars(t)
        return _desired(
            t, self.robot._code.at(product_motion, len(self.X), result=Desired)(self.q0, self.X.ravel(), s.ravel())
        )


def _desired(t: float, moved: Desired | None) -> Desired:
    if moved is None:
        raise ArgumentError(f"t: expected a finite time, got {t}")
    return moved


class Quintic(_Motion):
    """A motion from point to point along q0 exp(xi s(t)), at rest before t0 and after t0 + duration.

    Parameters
    ----------
    robot : Robot
    q0, q1 : array_like (nq,)
        First and last configuration.
    duration : float
        [s], > 0.
    t0 : float, default 0
        When it begins [s].

    Raises
    ------
    ArgumentError

    Notes
    -----
    s = 10 u^3 - 15 u^4 + 6 u^5, u = (t - t0) / duration: the acceleration is zero at both ends, the peak velocity 15/8
    of the mean.

    Examples
    --------
    >>> import geomctrl as gc
    >>> move = gc.references.Quintic(gc.models.two_link(), [0.0, 0.0], [1.0, 0.5], 2.0)
    >>> move(1.0).q, move(2.0).v
    (array([0.5 , 0.25]), array([0., 0.]))
    """

    def __init__(self, robot: Robot, q0: ArrayLike, q1: ArrayLike, duration: float, t0: float = 0.0):
        self.duration = number("duration", duration, "a positive number of seconds", lambda T: T > 0.0)
        self.t0 = number("t0", t0)
        q0, q1 = one_configuration(robot, "q0", q0), one_configuration(robot, "q1", q1)
        super().__init__(robot, q0, difference(robot, q0, q1)[None])

    def _scalars(self, t):
        if type(t) is not float or t - t != 0.0:  # infinite, or no number
            t = time(t)
        u = min(max((t - self.t0) / self.duration, 0.0), 1.0)
        return np.array(quintic_blend(u, self.duration))[:, None]


@named_arguments()
def hold(robot: Robot, q: ArrayLike) -> Quintic:
    """Return a constant reference, at rest.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (nq,)
        Configuration [rad, m].

    Returns
    -------
    Quintic
        A reference: a function t -> Desired(q, v, a).

    Raises
    ------
    ArgumentError
        If `q` does not fit the robot.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> gc.references.hold(robot, [0.5, 1.0])(3.0).q
    array([0.5, 1. ])
    """
    q = one_configuration(robot, "q", q)
    return Quintic(robot, q, q, 1.0)


class Sinusoids(ReadableRepr):
    """Sums of sinusoids about q0: x_j(t) = sum_h amplitude[h, j] sin(2 pi frequency[h, j] t + phase[h, j]).

    Parameters
    ----------
    robot : Robot
    q0 : array_like (nq,)
        The configuration about which the joints move.
    amplitude : array_like (nv,), (harmonics, nv) or (harmonics, 1), or float
        [rad or m]; a number is that of all joints.
    frequency : array_like as above, or float
        [Hz].
    phase : array_like as above, default 0
        [rad].
    start_at_rest : float, default 0
        The motion is multiplied by a quintic blend over that time [s], so that it starts at q0 at rest.

    Raises
    ------
    ArgumentError

    Notes
    -----
    On joints with several degrees of freedom the x_j are exponential coordinates of the second kind.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> motion = gc.references.Sinusoids(robot, [0.5, 1.0], amplitude=0.3, frequency=1.0)
    >>> motion(0.25).q
    array([0.8, 1.3])
    """

    def __init__(
        self,
        robot: Robot,
        q0: ArrayLike,
        amplitude: ArrayLike,
        frequency: ArrayLike,
        phase: ArrayLike = 0.0,
        start_at_rest: float = 0.0,
    ):
        self.robot, self.q0 = robot, one_configuration(robot, "q0", q0)
        n = robot.nv
        rows = []
        for name, x in (("amplitude", amplitude), ("frequency", frequency), ("phase", phase)):
            numbers = checked(name, x, ())
            a = np.atleast_2d(numbers)
            if a.ndim != 2 or a.shape[1] not in (1, n) or (numbers.ndim == 1 and a.shape[1] != n):
                raise ArgumentError(
                    f"{name}: expected finite numbers of shape ({n},) or (harmonics, {n}), got {numbers.shape}"
                )
            rows.append(a)
        harmonics = max(len(a) for a in rows)
        for name, a in zip(("amplitude", "frequency", "phase"), rows):
            if len(a) not in (1, harmonics):
                raise ArgumentError(f"{name}: expected {harmonics} harmonics like the others, got {len(a)}")
        amplitude, frequency, phase = (np.broadcast_to(a, (harmonics, n)) for a in rows)
        self.rows = np.concatenate((amplitude, 2.0 * np.pi * frequency, phase)).ravel()
        self.ramp = number("start_at_rest", start_at_rest, "seconds >= 0", lambda T: T >= 0.0)

    def __call__(self, t: float) -> Desired:
        if type(t) is not float or t - t != 0.0:  # infinite, or no number
            t = time(t)
        moved = self.robot._code.at(sinusoid_motion, len(self.rows) // (3 * self.robot.nv), result=Desired)
        return _desired(t, moved(self.q0, np.array([t, self.ramp], float), self.rows))


class Spline(_Motion):
    """The quintic spline through waypoints, with zero velocity and acceleration at both ends.

    Parameters
    ----------
    robot : Robot
        The robot.
    times : sequence of float (m,)
        Increasing times of the waypoints [s].
    waypoints : array (m, nq)
        Configurations, at least two.

    Raises
    ------
    ArgumentError
        If the times do not increase, or if a waypoint does not fit the robot.

    Notes
    -----
    On the Lie group it has the cumulative form: factor k is exp(log(q_{k-1}^-1 q_k) s_k(t)), where s_k is the spline
    through 0 before waypoint k and 1 from it on. For joints with one degree of freedom this is the ordinary spline. The
    reference is constant before the first and after the last waypoint.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.Spline(robot, [0.0, 1.0, 2.0], [[0.0, 0.0], [0.5, 1.0], [0.0, 0.0]])
    >>> bool(np.allclose(reference(1.0).q, [0.5, 1.0]))
    True
    """

    def __init__(self, robot: Robot, times: Sequence[float], waypoints: ArrayLike):
        from scipy.interpolate import make_interp_spline  # imported here because it takes as long as all of geomctrl

        require_robot("robot", robot)
        t, q = checked("times", times, ()), checked("waypoints", waypoints, (robot.nq,))
        if q.ndim != 2 or len(q) < 2:
            raise ArgumentError(f"waypoints: expected shape (m, {robot.nq}) with m >= 2, got {q.shape}")
        if t.shape != (len(q),) or (np.diff(t) <= 0.0).any():
            raise ArgumentError(f"times: expected {len(q)} increasing times, one per waypoint, got {times!r}")
        super().__init__(robot, one_configuration(robot, "waypoints[0]", q[0]), difference(robot, q[:-1], q[1:]))
        steps = np.tril(np.ones((len(q), len(q) - 1)), -1)
        rest = [(1, np.zeros(len(q) - 1)), (2, np.zeros(len(q) - 1))]
        try:
            spline = make_interp_spline(t, steps, k=5, bc_type=(rest, rest))
        except np.linalg.LinAlgError:
            raise ArgumentError(f"times: expected intervals of comparable length [s], got {shown(times)}") from None
        self.knots, n = t, len(q) - 1
        # (m, 6, 3, m - 1): Taylor coefficients of s, s' and s'' about each waypoint, highest power first
        self.pieces = np.zeros((len(q), 6, 3, n))
        for row, f in enumerate((spline, spline.derivative(1), spline.derivative(2))):
            for k in range(6):
                self.pieces[:n, 5 - k, row] = f(t[:-1], nu=k) / math.factorial(k)
        self.pieces[0, -1], self.pieces[n, -1, 0] = 0.0, 1.0  # exactly at rest at both ends

    def _scalars(self, t):
        if type(t) is not float or t - t != 0.0:  # infinite, or no number
            t = time(t)
        t = min(max(t, self.knots[0]), self.knots[-1])
        x, powers = self._piece(t)
        s = powers[0]
        for c in powers[1:]:
            s = s * (t - x) + c
        return s

    def _piece(self, t):
        """The last waypoint before t, and the coefficients about it."""
        if not has_symbols(t):
            k = int(np.searchsorted(self.knots, t, "right")) - 1
            return self.knots[k], self.pieces[k]
        x, powers = self.knots[0], self.pieces[0]
        for k in range(1, len(self.knots)):
            later = t >= self.knots[k]
            x, powers = np.where(later, self.knots[k], x), np.where(later, self.pieces[k], powers)
        return x, powers


class SmoothReference(Protocol):
    """A smooth motion of the links: a function of t that returns q and its first four time derivatives (5, nv)."""

    def __call__(self, t: float) -> np.ndarray: ...


class _Smooth(ReadableRepr):
    """A motion that returns four derivatives, which laws for rigid joints refuse (`contracts.require_reference`)."""

    derivatives: ClassVar[int] = 4


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Harmonic(_Smooth):
    """A sine with four derivatives, for `controllers.ElasticJoint` and `control.FlatOutputs`.

    At a time it returns an array (5, n): q0 + amplitude sin(2 pi frequency t + phase), and its derivatives. Laws that
    need two derivatives only use `Sinusoids`.

    Parameters
    ----------
    q0, amplitude : float or array_like, shape (n,)
        Centre and amplitude of each coordinate [rad, m].
    frequency : float or array_like, shape (n,)
        Frequencies [Hz].
    phase : float or array_like, shape (n,)
        Phases [rad].

    Raises
    ------
    ArgumentError
        If a number is not finite, or if arrays have different lengths.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.references.Harmonic(q0=0.0, amplitude=1.0, frequency=0.5)(0.5)[0]
    array([1.])
    """

    q0: ArrayLike
    amplitude: ArrayLike
    frequency: ArrayLike
    phase: ArrayLike = 0.0

    def __post_init__(self):
        n = checked("q0", self.q0, ()).shape
        for name in ("amplitude", "frequency", "phase"):
            if checked(name, getattr(self, name), ()).shape not in ((), n):
                raise ArgumentError(f"{name}: expected a number or {n[0] if n else 1}, as many as q0 has")

    def __call__(self, t: float) -> np.ndarray:
        w = 2.0 * np.pi * np.asarray(self.frequency, float)
        angle = w * time(t) + np.asarray(self.phase, float)
        k = np.arange(5)[:, None]
        sine = np.sin(angle + 0.5 * np.pi * k)  # each derivative leads by a quarter turn
        out = np.zeros((5, np.size(self.q0))) + np.asarray(self.amplitude, float) * w**k * sine
        out[0] += self.q0
        return out


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class RestToRest(_Smooth):
    """A polynomial from q0 to q1, for `controllers.ElasticJoint` and `control.FlatOutputs`. Other laws: `Quintic`.

    At a time it returns an array (5, n): the value and four derivatives, which are zero at both ends. The degree is
    nine; before and after the motion the value is constant.

    Parameters
    ----------
    q0, q1 : float or array_like, shape (n,)
        Begin and end [rad, m].
    duration : float
        Duration [s].

    Raises
    ------
    ArgumentError
        If a number is not finite, if arrays have different lengths, or if `duration` is not positive.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.references.RestToRest(q0=0.0, q1=1.0, duration=2.0)(1.0)[0]
    array([0.5])
    """

    q0: ArrayLike
    q1: ArrayLike
    duration: float

    def __post_init__(self):
        if checked("q1", self.q1, ()).shape != (shape := checked("q0", self.q0, ()).shape):
            raise ArgumentError(f"q1: expected shape {shape}, that of q0, got {np.shape(self.q1)}")
        number("duration", self.duration, "a positive number of seconds", lambda x: x > 0.0)

    def __call__(self, t: float) -> np.ndarray:
        u = min(max(time(t) / self.duration, 0.0), 1.0)
        s = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
        blend = np.array([(s.deriv(k) if k else s)(u) / self.duration**k for k in range(5)])
        out = np.outer(blend, np.subtract(self.q1, self.q0))
        out[0] += self.q0
        return out
