"""Contraction of a metric along a closed loop: neighbouring motions approach each other (Lohmiller and Slotine 1998).

For x = (q, v, z), x' = f(t, x), A = df/dx and a metric P(t, x) > 0, d/dt dx . P dx = dx . (A^T P + P A + P') dx, which
must be at most -2 rate dx . P dx. The search maximises the largest eigenvalue of that matrix relative to P.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.linalg import eigh

from geomctrl.arguments import checked, function, number, shown, tolerance
from geomctrl.control.compiled.proving import trace_closed_loop
from geomctrl.control.contracts import started
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import require_vectors
from geomctrl.other_names import named_arguments

from .domain import State
from .lyapunov_rate import compared_with_python, flat, rates_in_python
from .robot_terms import derivative
from .search import SearchProblem
from .settings import Region

MEASURED = """from geomctrl.testing.contraction import contraction_at

print(contraction_at(controller, plant, metric, t, q, v, z))"""
DIFFERENCE_STEP = 1e-4

Metric = Callable[..., Any] | Any  # P (n, n), or (t, q, v, z) -> P


@named_arguments()
def assert_contracting(
    controller: Any,
    plant: Plant | Any,
    metric: Metric,
    rate: float,
    *,
    region: Region | float = 0.5,
    search: int = 2000,
    seed: int = 0,
    rtol: float = 1e-6,
) -> None:
    """Test that sqrt(dx . P dx) between neighbouring trajectories decreases at least like exp(-rate t).

    Parameters
    ----------
    controller, plant, region, search, seed
        As for `assert_lyapunov`.
    metric : array (n, n) or function
        P, symmetric positive definite with n = 2 nv + the size of z, or (t, q, v, z) -> P. In the coordinates T dx of
        Lohmiller and Slotine P = T^T T.
    rate : float
        Contraction rate [1/s].
    rtol : float
        Tolerance relative to the rate and the size of the eigenvalue.

    Raises
    ------
    Counterexample
        With the simplest violating state that was found.
    ArgumentError
        For invalid arguments, a P that is not symmetric positive definite, and robots or states z on Lie groups.

    Notes
    -----
    States are searched; nothing is proved. The Jacobian of the loop is exact if the loop can be traced.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.ComputedTorque(arm, gc.references.hold(arm, [0.5, 0.2]), kp=4.0, kd=4.0)
    >>> A = np.array([[0.0, 1.0], [-4.0, -4.0]])  # of the error of each joint
    >>> P = np.kron([[5.0, 2.0], [2.0, 2.0]], np.eye(2))
    >>> gc.testing.assert_contracting(law, arm, P, 0.3, search=200)
    """
    rate, rtol = number("rate", rate), tolerance("rtol", rtol)
    problem = SearchProblem(controller, plant, region, search, seed)
    loop = Variations(problem.controller, problem.plant, metric)

    def excess(x: State) -> float:
        growth = loop.growth(x)
        return growth + rate - rtol * (abs(growth) + abs(rate))

    def message_at(x: State) -> str:
        return f"not contracting: dx . P dx grows like exp(2 {loop.growth(x):.9g} t), allowed {-rate:.9g},"

    problem.hold(excess, "contraction", message_at, MEASURED)


@named_arguments()
def contraction_rate(
    controller: Any,
    plant: Plant | Any,
    metric: Metric,
    *,
    region: Region | float = 0.5,
    search: int = 2000,
    seed: int = 0,
) -> float:
    """Estimate the contraction rate: the largest rate for `assert_contracting` that the search does not contradict.

    Parameters
    ----------
    controller, plant, metric, region, search, seed
        As for `assert_contracting`.

    Returns
    -------
    float
        [1/s]. An upper estimate; negative if the distance of neighbouring motions grows somewhere.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.ComputedTorque(arm, gc.references.hold(arm, [0.5, 0.2]), kp=4.0, kd=4.0)
    >>> P = np.kron([[5.0, 2.0], [2.0, 2.0]], np.eye(2))
    >>> round(gc.testing.contraction_rate(law, arm, P, search=200), 2)
    0.98
    """
    problem = SearchProblem(controller, plant, region, search, seed)
    return -problem.largest(Variations(problem.controller, problem.plant, metric).growth, "contraction").value


def contraction_at(controller: Any, plant: Plant | Any, metric: Metric, t: float, q: Any, v: Any, z: Any = None):
    """The largest growth rate [1/s] of sqrt(dx . P dx) at one state; negative if the loop contracts there."""
    problem = SearchProblem(controller, plant)
    return Variations(problem.controller, problem.plant, metric).growth(problem.state(t, q, v, z))


class Variations:
    """The variational equation dx' = A dx of a closed loop, with a metric."""

    def __init__(self, controller: Any, plant: Plant, metric: Metric):
        robot = plant.robot
        require_vectors("plant", robot, "contraction is in coordinates")
        if getattr(controller, "group", None) is not None:
            raise ArgumentError(f"controller: expected a state in R^n, got one in {shown(controller.group)}")
        start = started(controller, robot)
        self.controller, self.plant, self.nv = controller, plant, robot.nv
        self.size = 2 * robot.nv + (0 if start is None else np.size(start))
        if callable(metric):
            function("metric", metric, "(t, q, v, z) -> P", 4)
        self.metric: Callable[..., Any] = metric if callable(metric) else lambda t, q, v, z: metric
        self.traced = None
        with suppress(Exception):  # user code may raise anything for symbols; numerical evaluation remains
            self.traced = self._traced()

    def growth(self, x: State) -> float:
        """The largest eigenvalue of (A^T P + P A + P') / 2 relative to P."""
        f, A = self.field_and_jacobian(x)
        P = self.checked_metric(x)
        lower = self.checked_metric
        P_rate = derivative(lambda s: lower(self._moved(x, s, f)), DIFFERENCE_STEP)
        B = P @ A
        return float(eigh(0.5 * (B + B.T + P_rate), P, eigvals_only=True)[-1])

    def checked_metric(self, x: State) -> np.ndarray:
        P = checked("metric", self.metric(*x), (self.size, self.size))
        if P.ndim != 2 or np.abs(P - P.T).max() > 1e-9 * np.abs(P).max():
            raise ArgumentError(f"metric: expected a symmetric array ({self.size}, {self.size}), got {P} {x}")
        if not np.linalg.eigvalsh(P)[0] > 0.0:
            raise ArgumentError(f"metric: expected a positive definite array, got {P} {x}")
        return P

    def field_and_jacobian(self, x: State) -> tuple[np.ndarray, np.ndarray]:
        """f (n,) and A (n, n)."""
        n = self.size
        numbers = None if self.traced is None else self.traced(x)
        if numbers is not None:
            return numbers[:n], numbers[n:].reshape(n, n)
        self.traced = None
        columns = [derivative(lambda s, e=e: self.field(self._moved(x, 0.0, e, s)), DIFFERENCE_STEP) for e in np.eye(n)]
        return self.field(x), np.column_stack(columns)

    def field(self, x: State) -> np.ndarray:
        return np.concatenate((x.v, rates_in_python(self.controller, self.plant, x)))

    def _moved(self, x: State, dt: float, direction: np.ndarray, s: float | None = None) -> State:
        """The state after time dt, displaced by s (default dt) times a direction."""
        y, n = (dt if s is None else s) * direction, self.nv
        z = None if x.z is None else x.z + y[2 * n :].reshape(x.z.shape)
        return State(x.t + dt, x.q + y[:n], x.v + y[n : 2 * n], z)

    def _traced(self) -> Callable[[State], np.ndarray | None]:
        if self.plant.switches:
            raise ArgumentError("plant: changes")
        self.loop = loop = trace_closed_loop(self.plant, self.controller)
        f = loop.field[: self.size]
        numbers = loop.function([*f, *(g for x in f for g in loop.gradient(x)[1 : 1 + self.size])])
        return compared_with_python(lambda x: numbers(x.t, flat(x)), range(self.size), self.field, self.controller)
