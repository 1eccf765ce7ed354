"""The Lie-group generalized-alpha method for constrained bodies: Bruels, Cardona and Arnold 2012 (MMT 48), index 3.

One step from (q, v, vdot, a), a the algorithmic acceleration, velocities in the coordinates of the bodies' groups:

    q1 = q exp(h v + h^2 ((1/2 - beta) a + beta a1)),    v1 = v + h ((1 - gamma) a + gamma a1)
    (1 - alpha_m) a1 + alpha_m a = (1 - alpha_f) vdot1 + alpha_f vdot
    M vdot1 = Q(q1, v1) + J^T(q1) lambda,    g(q1) = 0

Second order; the positions satisfy the constraints to round-off, the velocities to O(h^2). On SO(3) x R^3 it keeps the
linear momentum of a floating system to round-off; energy stays near its value with rho = 0.9 and falls with smaller
ones: experiments/studies/structure_preserving.py compares it and its cost with other methods. The spectral radius at
infinite frequency, rho in [0, 1], sets the damping of fast motion: 1 is none, 0 removes it in a step. With rho = 1
nothing damps the errors of the multipliers (Cardona and Geradin 1989): they grow, and if the constraints are curved in
the group's coordinates the iteration finally fails for any h.
The iteration uses only the mass matrix as the tangent of the inertia forces,

    vdot1 <- M^-1 (Q + J^T lambda),    J M^-1 J^T lambda = J (vdot1 - M^-1 Q) - g(q1) / weight,
    weight = h^2 beta (1 - alpha_f) / (1 - alpha_m)

It contracts by a factor proportional to h times the speed of rotation, and handles redundant constraints like the
index-1 equations. It continues until a further iteration would change velocities by at most their last bit. An error e
of the velocity corresponds to e / h in the acceleration and h e in the pose, so a test of poses alone would stop too
early.

With representation="spatial" v and a are spatial twists and their rates, as in Mueller 2018 (38), and poses move by
exp(h v + ...) q, (88). On the heavy top of these authors its error is up to a third larger than with body-fixed twists,
with four fifths of the iterations and half of the energy drift. A floating pair loses a third as much momentum as with
these. The result depends on the world's origin: far from the bodies it loses digits and accuracy.

Positions, velocities and multipliers converge at second order from a = vdot at the start: a shifted start, a(t0) =
vdot(t0 + (alpha_m - alpha_f) h), changes the error of the heavy top of these authors by 1 %. On a body that spins fast
the update above has an additional error, which includes [v, vdot] h^3 / 12 in each step, and is ten times larger on
SE(3), where v turns with the body. exudyn converts (q, v) to the rotation vector and its rates in each step; at equal h
and rho it is 2 to 9 times more accurate there than this module on SO(3) x R^3. With its option
lieGroupSimplifiedKinematicRelations it gives the same digits. On the double pendulum it is not more accurate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl import integrators
from geomctrl.arguments import choice, flag, instance, is_a, number, shown
from geomctrl.errors import ArgumentError, GeomctrlError, IntegrationError
from geomctrl.integrators.explicit import Explicit
from geomctrl.integrators.march import March, Step, collect
from geomctrl.integrators.solution import Solution
from geomctrl.integrators.tableaus import Tableau
from geomctrl.integrators.tableaus import method as tableau_of
from geomctrl.kernels import maximal as kernels

from .equations import CONSISTENT, Index1System
from .maximal import ConstrainedSystem

ITERATIONS = 60
NOISE = 1e-13  # of a pose, relative to the system's size: corrections that grow below it count as round-off
EPS = np.finfo(float).eps


class _Point(NamedTuple):
    y: np.ndarray
    Vdot: np.ndarray  # (n + 1, 6), body-fixed, the world's last
    rate: np.ndarray  # of the velocities that are stepped, (6 n,)
    a: np.ndarray
    guess: tuple[np.ndarray, np.ndarray]  # Vdot and rate a step later, extrapolated


class _Coefficients(NamedTuple):
    alpha_m: float
    alpha_f: float
    beta: float
    gamma: float


def coefficients(rho: float) -> _Coefficients:
    """Chung and Hulbert 1993: second order, and the given spectral radius at infinite frequency."""
    alpha_m, alpha_f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
    gamma = 0.5 + alpha_f - alpha_m
    return _Coefficients(alpha_m, alpha_f, 0.25 * (gamma + 0.5) ** 2, gamma)


def integrate_index3(
    system: ConstrainedSystem,
    y0: ArrayLike,
    t_span: tuple[float, float],
    h: float,
    *,
    rho: float = 0.9,
    every: int = 1,
    representation: Literal["body", "spatial"] = "body",
) -> Solution:
    """Integrate the index-3 equations of a system with the generalized-alpha method.

    Parameters
    ----------
    system : ConstrainedSystem
        The system, without stabilisation.
    y0 : array_like, shape (size,)
        Initial state, which satisfies the constraints.
    t_span : (float, float)
        Start and end time [s].
    h : float
        Time step [s].
    rho : float
        Spectral radius at infinite frequency, in [0, 1]: 1 is no damping, 0 the strongest. Default: 0.9.
    every : int
        Store every n-th state, and the last one. Default: 1.
    representation : {"body", "spatial"}
        Velocities in which the steps are made: those of the bodies' groups or, if all bodies are on SE(3), spatial
        twists. The states are the same. Default: "body".

    Returns
    -------
    Solution
        Times and states; `nfev` is the number of iterations.

    Raises
    ------
    ArgumentError
        If an argument is invalid or y0 violates a constraint.
    IntegrationError
        If a function of the user fails, or if an iteration does not converge: halve h. The error has the solution up to
        there.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers.constrained import ConstrainedBody, ConstrainedSystem, Constraint, integrate_index3
    >>> rod = gc.inertia.from_com(1.0, [0.0, 0.0, -0.5], 0.1 * np.eye(3))
    >>> system = ConstrainedSystem([ConstrainedBody("rod", rod)], [Constraint("spherical", "pin", ("world", "rod"))])
    >>> y0 = system.consistent(None, [[0.0, 2.0, 0.0, 0.0, 0.0, 0.0]])
    >>> solution = integrate_index3(system, y0, (0.0, 0.1), 1e-3)
    >>> bool(system.violation(solution.y[-1]).max() < 1e-12)
    True
    """
    if not is_a(system, ConstrainedSystem):
        raise ArgumentError(f"system: expected a ConstrainedSystem, got {shown(system)}")
    rho = number("rho", rho, "a number in [0, 1]", lambda x: 0.0 <= x <= 1.0)
    if system.stabilisation is not None:
        raise ArgumentError("system: generalized-alpha keeps the constraints itself, expected stabilisation=None")
    march = March(_GeneralizedAlpha(system, rho, _velocities(system, representation)), y0, t_span, h)
    if (off := system.violation(march.y0)).max(initial=0.0) > CONSISTENT * system.length:
        name = system.names[off.argmax()]
        raise ArgumentError(f"y0: violates constraint {name!r} by {off.max():.3g} [m or 1]; `consistent` projects it")
    return collect(march, every=every)


class _GeneralizedAlpha:
    """A `march.Stepper` whose memory is the `_Point` at the end of the last step."""

    def __init__(self, system: ConstrainedSystem, rho: float, velocities: OfGroups):
        self.system, self.group, self.rho, self.c = system, system.group, rho, coefficients(rho)
        self.velocities, self.nfev = velocities, 0

    def start(self, t, y) -> _Point:
        self.nfev += 1
        Vdot = np.vstack((self.system.accelerations(t, y), np.zeros(6)))
        rate = self.velocities.rates(y, Vdot)
        return _Point(y, Vdot, rate, rate, (Vdot, rate))

    def step(self, t, y, h, t_next, memory) -> Step:
        try:
            point = self.start(t, y) if memory is None else memory
            ended, count = _step(self.system, self.velocities, point, t_next, h, self.c)
        except ArgumentError as error:  # a user's function
            raise IntegrationError(f"{error}, at t = {t_next:.9g}") from error
        self.nfev += count
        if ended is None:
            message = f"no convergence in {count} iterations of the step of h = {h:.6g} at t = {t:.9g}: halve h"
            raise IntegrationError(message + (", or take rho < 1" if self.rho == 1.0 else ""))
        return Step(t, y, h, t_next, ended.y, memory=ended)


def _velocities(system: ConstrainedSystem, representation: str) -> OfGroups:
    choice("representation", representation, ("body", "spatial"))
    if representation == "body":
        return OfGroups(system)
    for body, on_se3 in zip(system.body_names, system._layout[:, 1]):
        if not on_se3:
            raise ArgumentError(f"representation: 'spatial' expects bodies on SE(3), got {body!r} on SO(3) x R^3")
    return Spatial(system)


def _step(system, velocities, point, t, h, c):
    """Return (the next point or None, number of iterations)."""
    v, (Vdot, rate) = velocities.at(point.y), point.guess
    weight = h * h * c.beta * (1.0 - c.alpha_f) / (1.0 - c.alpha_m)
    last, before = None, 0.0
    for iteration in range(1, ITERATIONS + 1):
        a = ((1.0 - c.alpha_f) * rate + c.alpha_f * point.rate - c.alpha_m * point.a) / (1.0 - c.alpha_m)
        dv = h * ((1.0 - c.gamma) * point.a + c.gamma * a)
        y = velocities.moved(point.y, h * v + h * h * ((0.5 - c.beta) * point.a + c.beta * a), dv)
        if not np.isfinite(y).all():
            return None, iteration
        if last is not None:
            change = h * c.gamma * np.abs(a - last).max()  # of the velocities; of the poses h beta / gamma times that
            left = change * min(1.0, change / before) if before > 0.0 else change  # assumes a constant contraction
            noise = change >= before > 0.0 and h * c.beta / c.gamma * change <= NOISE * system.length
            if left <= EPS * np.abs(v + dv).max() or noise:
                guess = 2.0 * Vdot - point.Vdot, 2.0 * rate - point.rate
                return _Point(y, Vdot, rate, a, guess), iteration
            before = change
        last = a
        Vdot = system._corrected(t, y, Vdot, weight)
        rate = velocities.rates(y, Vdot)
    return None, ITERATIONS


def integrate_index1(
    system: Index1System,
    y0: ArrayLike,
    t_span: tuple[float, float],
    h: float,
    method: Any = "MK4",
    *,
    project: bool = False,
    every: int = 1,
    **options: Any,
) -> Solution:
    """Integrate the index-1 equations of a system with a method of `integrators.integrate`.

    Parameters
    ----------
    system : ConstrainedSystem or ClosedLoops
        The system.
    y0 : array_like, shape (size,)
        Initial state, which satisfies the constraints.
    t_span : (float, float)
        Start and end time [s].
    h : float
        Time step [s].
    method : str
        Name of the method. Default: "MK4".
    project : bool
        Project positions and velocities onto the constraints after every step. Needs a method of fixed steps and no
        further options. Default: False.
    every : int
        Store every n-th state, and the last one. Default: 1.
    **options
        Options of `integrators.integrate`.

    Returns
    -------
    Solution

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    IntegrationError
        If a step or a projection fails.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers.constrained import ConstrainedBody, ConstrainedSystem, Constraint, integrate_index1
    >>> rod = gc.inertia.from_com(1.0, [0.0, 0.0, -0.5], 0.1 * np.eye(3))
    >>> system = ConstrainedSystem([ConstrainedBody("rod", rod)], [Constraint("spherical", "pin", ("world", "rod"))])
    >>> y0 = system.consistent(None, [[0.0, 2.0, 0.0, 0.0, 0.0, 0.0]])
    >>> solution = integrate_index1(system, y0, (0.0, 0.1), 1e-3, project=True)
    >>> bool(system.violation(solution.y[-1]).max() < 1e-12)
    True
    """
    instance("system", system, Index1System, "a ConstrainedSystem or ClosedLoops")
    if not flag("project", project):
        return integrators.integrate(system.field, y0, t_span, h, method, system.group, every=every, **options)
    tableau = tableau_of(method)
    if tableau.b_hat is not None or options:
        raise ArgumentError(
            f"project: needs a fixed-step method and no further options, got {tableau.name}, {sorted(options)}"
        )
    return collect(March(_Projected(system, tableau), y0, t_span, h), every=every)


class _Projected(Explicit):
    """A `march.Stepper`: steps of an explicit method, each followed by a projection onto the constraints."""

    def __init__(self, system: Index1System, tableau: Tableau):
        super().__init__(system.field, tableau, system.group)
        self.system = system

    def step(self, t, y, h, t_next, memory=None) -> Step:
        taken = super().step(t, y, h, t_next)
        try:
            return replace(taken, y_next=self.system._projected(taken.y_next))
        except GeomctrlError as error:
            raise IntegrationError(f"{error}, at t = {t_next:.9g}") from None


# --- the velocities that generalized-alpha steps with (Mueller 2018 (88), (89)) ---------------------------------------


class OfGroups:
    """The velocities in the state: body-fixed twists on SE(3), (omega, pdot) on SO(3) x R^3."""

    def __init__(self, system: ConstrainedSystem):
        self.system, self.half = system, system.group.dim // 2

    def at(self, y: np.ndarray) -> np.ndarray:
        """Return the velocities (6 n,) of a state."""
        return y[-self.half :]

    def rates(self, y: np.ndarray, Vdot: np.ndarray) -> np.ndarray:
        """Return the rates (6 n,) of the velocities from those of the body-fixed twists, Vdot (n + 1, 6)."""
        return self.system._velocity_rates(y, Vdot)

    def moved(self, y: np.ndarray, x: np.ndarray, dv: np.ndarray) -> np.ndarray:
        """Return the state with poses moved by x and velocities changed by dv."""
        return self.system.group.advance(y, np.concatenate((x, dv)))


class Spatial(OfGroups):
    """Spatial twists Ad_C V of bodies on SE(3); their rates are Ad_C Vdot, since ad_V V = 0."""

    def at(self, y):
        return self.rates(y, y[-self.half :].reshape(-1, 6))

    def rates(self, y, Vdot):
        out = np.empty(self.half)
        kernels.spatial_twists(self.system._layout, y, Vdot, out)
        return out

    def moved(self, y, x, dv):
        out = np.empty(y.shape)
        kernels.advance_spatially(self.system._layout, y, x, dv, out)
        return out
