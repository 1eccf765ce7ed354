"""Passivity of a controlled plant at a port (u, y): dS/dt <= u . y - nu |u|^2 - rho |y|^2.

S is a storage function, and u . y is the power supplied through the port. nu > 0 is an excess of passivity at the input
(input feedforward index), rho > 0 at the output (output feedback index). Negative values are a shortage that the other
side of the port must compensate (van der Schaft 2017, chapter 2; Bao and Lee 2007). Violations are searched for; the
absence of violations is not proved.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import function, number, one_state, tolerance
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import one_configuration
from geomctrl.other_names import named_arguments

from .domain import State
from .flows import Flow, Function, Inputs, Rates, rates_code
from .loop_states import require_lyapunov
from .search import NEGLIGIBLE, SearchProblem
from .settings import Port, Region, port_of, region_of

MIN_INPUT_EFFECT = 1e-9  # relative effect of an input on S below which it is rounding


class PassivityIndex(NamedTuple):
    """nu: the largest value with dS/dt <= u . y - nu |u|^2 in the search; rho: the same with - rho |y|^2."""

    nu: float
    rho: float


@named_arguments()
def assert_passive_port(
    controller: Any,
    plant: Plant | Any,
    *,
    storage: Function | None = None,
    port: Port | Any = "joints",
    nu: float = 0.0,
    rho: float = 0.0,
    region: Region | float = 0.5,
    search: int = 4000,
    seed: int = 0,
    rtol: float = 1e-7,
) -> None:
    """Test dS/dt <= u . y - nu |u|^2 - rho |y|^2 for the controlled plant and all |u| <= `port.largest`.

    Parameters
    ----------
    controller : Controller or None
        The controller; None for the plant alone, which requires `storage` and `region.equilibrium`.
    plant : Plant or Robot
        The plant.
    nu, rho : float
        Passivity indices at input and output.
    port : Port or str
        The port; default torques at the joints.
    storage : function, optional
        (t, q, v, z, plant) -> S; default the controller's Lyapunov function.
    region, search, seed
        As for `assert_lyapunov`.
    rtol : float
        Tolerance relative to the terms.

    Raises
    ------
    Counterexample
        With the simplest violating state that was found, and u.
    ArgumentError
        If an argument is invalid.

    Notes
    -----
    dS/dt is affine in u, so that the worst u at a state has a closed form. The search is over states.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> gc.testing.assert_passive_port(gc.controllers.PDGravity(arm, [0.5, 0.2]), arm, search=200)
    """
    port = port_of(port)
    problem, flow = _problem_of(controller, plant, storage, port, region, search, seed)
    nu, rho, rtol = number("nu", nu), number("rho", rho), tolerance("rtol", rtol)
    largest = port.largest
    floor = NEGLIGIBLE * problem.typical(lambda x: flow.at(x).value)

    def excess(x: State) -> float:
        r = flow.at(x)
        u = _worst_input(r, nu, largest)
        terms = [r.slope, (r.push - r.output) @ u, nu * (u @ u), rho * (r.output @ r.output)]
        size = float(np.abs(terms).sum() + np.abs(r.push) @ np.abs(u) + np.abs(r.output) @ np.abs(u))
        return float(sum(terms)) - rtol * size - floor

    def message_at(x: State) -> str:
        r = flow.at(x)
        u = _worst_input(r, nu, largest)
        supply = u @ r.output - nu * (u @ u) - rho * (r.output @ r.output)
        return (
            f"not passive: dS/dt = {r.slope + r.push @ u:.9g}, supplied u . y - nu |u|^2 - rho |y|^2 = {supply:.9g}"
            f" with u = {np.array2string(u, separator=', ')}, y = {np.array2string(r.output, separator=', ')}"
        )

    problem.hold(excess, "passivity", message_at, rates_code(port, storage))


@named_arguments()
def passivity_index(
    controller: Any,
    plant: Plant | Any,
    *,
    storage: Function | None = None,
    port: Port | Any = "joints",
    region: Region | float = 0.5,
    search: int = 4000,
    seed: int = 0,
) -> PassivityIndex:
    """Estimate the passivity indices of a port: the largest nu with rho = 0, and the largest rho with nu = 0.

    Parameters
    ----------
    controller, plant, storage, port, region, search, seed
        As for `assert_passive_port`.

    Returns
    -------
    PassivityIndex
        `nu` and `rho`, upper estimates, which a longer search may lower. A value is -inf if the storage grows without
        input, or for arbitrarily small inputs.

    Raises
    ------
    ArgumentError
        For invalid arguments.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.5, 0.2], kp=50.0, kd=10.0)
    >>> round(gc.testing.passivity_index(law, arm, search=200).rho, 3)  # the damping kd
    10.0
    """
    port = port_of(port)
    problem, flow = _problem_of(controller, plant, storage, port, region, search, seed)
    largest = port.largest
    moving = NEGLIGIBLE * problem.typical(lambda x: float(flow.at(x).output @ flow.at(x).output))
    still = NEGLIGIBLE * problem.typical(lambda x: flow.at(x).value)

    def lack_of_nu(x: State) -> float:
        r = flow.at(x)
        loss, d = -r.slope, float(np.linalg.norm(r.push - r.output))
        if loss < -still or (
            d > MIN_INPUT_EFFECT * float(np.linalg.norm(r.push)) and loss < MIN_INPUT_EFFECT * d * largest
        ):
            return np.inf  # for arbitrarily small u
        u = min(2.0 * loss / d, largest) if d > 0.0 and loss > 0.0 else largest  # minimises loss / u^2 - d / u
        return -(loss - d * u) / u**2

    def lack_of_rho(x: State) -> float:
        r = flow.at(x)
        power = float(r.output @ r.output)
        loss = -r.slope - largest * float(np.linalg.norm(r.push - r.output))
        return -loss / power if power > moving else -np.inf

    worst = [problem.largest(lack, "passivity index") for lack in (lack_of_nu, lack_of_rho)]
    return PassivityIndex(*(-x.value for x in worst))


def rates_at(
    controller: Any,
    plant: Plant | Any,
    t: float,
    q: Any,
    v: Any,
    z: Any = None,
    *,
    storage: Function | None = None,
    port: Port | Any = "joints",
) -> Rates:
    """The quantities that assertions about ports test, at one state: (S, its promised rate, dS/dt, d(dS/dt)/du, y).

    Arguments are those of `assert_passive_port`, with q (nq,), v (nv,), and z as returned by `start()`.
    """
    robot = plant_of("plant", plant, state=False).robot
    rest = one_configuration(robot, "q", one_state("q", q, robot.nq)) if controller is None else None
    problem, flow = _problem_of(controller, plant, storage, port_of(port), Region(equilibrium=rest), 1, 0)
    return flow.at(problem.state(t, q, v, z))


def _problem_of(controller, plant, storage, port: Port, region, search, seed) -> tuple[SearchProblem, Flow]:
    region = region_of(region)
    if controller is None and (storage is None or region.equilibrium is None):
        raise ArgumentError("controller: without one, expected a storage function and an equilibrium q (nq,)")
    problem = SearchProblem(controller, plant, region, search, seed, alone=True)
    if storage is None:
        require_lyapunov(problem.controller)
    for name, callback in (("storage", storage), ("output", port.output)):
        if callback is not None:
            function(
                name, callback, f"of (t, q, v, z{', plant' if name == 'storage' else ''})", 4 + (name == "storage")
            )
    return problem, Flow(problem.controller, problem.plant, storage, Inputs(problem.plant.robot, port))


def _worst_input(r: Rates, nu: float, largest: float) -> np.ndarray:
    """The u that maximises (push - y) . u + nu |u|^2 for |u| <= largest."""
    d = r.push - r.output
    size = float(np.linalg.norm(d))
    direction = d / size if size > 0.0 else np.eye(len(d))[0]
    return direction * (largest if nu >= 0.0 else min(largest, 0.5 * size / -nu))
