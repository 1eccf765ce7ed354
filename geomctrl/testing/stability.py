"""Convergence rate of a Lyapunov function, and its sensitivity to disturbances.

    V' <= -2 lambda V                       implies V(t) <= V(0) exp(-2 lambda t)
    V' <= share W + gamma(|d|), W <= 0      input-to-state stability, W the promised rate (Sontag and Wang 1995)

Violations are searched for at states and along runs; the inequalities are not proved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import function, number, tolerance
from geomctrl.control.contracts import Command, started
from geomctrl.control.loop import simulate
from geomctrl.control.monitors import LyapunovDecrease
from geomctrl.control.plant import Plant
from geomctrl.control.run import Run
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.other_names import named_arguments

from . import evidence
from .counterexample import MEASURED, Counterexample, paste, unresolved
from .domain import State
from .flows import Flow, Inputs, rates_code
from .loop_states import require_lyapunov, start_of_run
from .search import NEGLIGIBLE, SearchProblem
from .settings import Port, Region, Runs, port_of, runs_of
from .shrinking import literal

RUN = "print(simulate(plant, controller, q, v, {duration!r}, {dt!r}).signals['lyapunov'])"
SIZES = np.linspace(0.0, 1.0, 17)  # relative sizes of disturbances at which a gain function is evaluated


@named_arguments()
def assert_exponential(
    controller: Any,
    plant: Plant | Any,
    rate: float,
    *,
    region: Region | float = 0.5,
    search: int = 4000,
    runs: Runs | int = 2,
    seed: int = 0,
    rtol: float = 1e-6,
) -> None:
    """Test V' <= -2 rate V in closed loop, and V(t) <= V(0) exp(-2 rate t) along runs.

    Parameters
    ----------
    controller, plant, region, search, runs, seed
        As for `assert_lyapunov`.
    rate : float
        Convergence rate [1/s], positive.
    rtol : float
        Tolerance relative to |V'| + 2 rate V.

    Raises
    ------
    Counterexample
        With the simplest violating state that was found.
    ArgumentError
        If an argument is invalid.

    Notes
    -----
    If V is bounded from both sides by squares of the distance from the equilibrium, that distance decreases like
    exp(-rate t) (Khalil 2002, theorem 4.10).

    Examples
    --------
    >>> from geomctrl import controllers, models, references, testing
    >>> arm = models.two_link()
    >>> law = controllers.Passivity(arm, references.hold(arm, [0.5, 1.0]), strict=True)
    >>> testing.assert_exponential(law, arm, 0.1, search=200, runs=0)
    """
    rate, rtol = number("rate", rate, "a positive number [1/s]", lambda x: x > 0.0), tolerance("rtol", rtol)
    runs = runs_of(runs, Runs())
    problem, flow, floor = _flow(SearchProblem(controller, plant, region, search, seed))

    def excess(x: State) -> float:
        r = flow.at(x)
        if r.value < -floor:
            return np.inf
        size = abs(r.slope) + 2.0 * rate * abs(r.value)
        return (r.slope + 2.0 * rate * r.value - rtol * size) / max(r.value, floor) - rtol * rate

    def message_at(x: State) -> str:
        r = flow.at(x)
        return f"V' <= -2 rate V does not hold: V' = {r.slope:.9g}, -2 rate V = {-2.0 * rate * r.value:.9g}"

    problem.hold(excess, "exponential", message_at, MEASURED)
    for start, run in _runs(problem, problem.controller, runs):
        V = run.signals["lyapunov"]
        over = V - (1.0 + 1e-6) * V[0] * np.exp(-2.0 * rate * run.t) - 1e-12
        if not (over <= 0.0).all():
            k = int(np.argmax(~(over <= 0.0)))
            violation = f"V(t) = {V[k]:.9g} at t = {run.t[k]:.6g} s, V(0) exp(-2 rate t) = {V[k] - over[k]:.9g}"
            raise _along_a_run(problem, start, "exponential", violation, runs)


@named_arguments()
def exponential_rate(
    controller: Any,
    plant: Plant | Any,
    *,
    region: Region | float = 0.5,
    search: int = 4000,
    seed: int = 0,
) -> float:
    """Estimate the exponential rate of a loop: the largest rate with V' <= -2 rate V at all states of a search.

    Parameters
    ----------
    controller, plant, region, search, seed
        As for `assert_lyapunov`.

    Returns
    -------
    float
        [1/s]. An upper estimate, because a longer search may lower it. Not positive if V does not decrease at some
        state.

    Examples
    --------
    >>> from geomctrl import controllers, models, references, testing
    >>> arm = models.two_link()
    >>> law = controllers.Passivity(arm, references.hold(arm, [0.5, 1.0]), strict=True)
    >>> rate = testing.exponential_rate(law, arm, search=200)
    >>> testing.assert_exponential(law, arm, 0.5 * rate, search=200, runs=0)
    """
    problem, flow, floor = _flow(SearchProblem(controller, plant, region, search, seed))

    def slowness(x: State) -> float:
        r = flow.at(x)
        return r.slope / r.value if r.value > floor else -np.inf

    return -0.5 * problem.largest(slowness, "exponential rate").value


def _flow(problem: SearchProblem) -> tuple[SearchProblem, Flow, float]:
    """(The problem, V and V' at states, the V that counts as zero)."""
    require_lyapunov(problem.controller)
    flow = Flow(problem.controller, problem.plant)
    return problem, flow, NEGLIGIBLE * problem.typical(lambda x: flow.at(x).value)


class InputToState(NamedTuple):
    """Constants of V' <= share W + gain |d|^2, and of V' <= -decay V + gain |d|^2, which holds if W is definite enough.

    V then decreases below gain |d|^2 / decay."""

    gain: float
    decay: float

    def bound(self, disturbance: float) -> float:
        """The level below which V decreases for disturbances up to this size; infinite if none is known."""
        largest = number("disturbance", disturbance, "a number >= 0", lambda x: x >= 0.0)
        return self.gain * largest * largest / self.decay if self.decay > 0.0 else np.inf


@named_arguments()
def assert_input_to_state_stable(
    controller: Any,
    plant: Plant | Any,
    gain: float | Callable[[float], float],
    *,
    port: Port | Any = "joints",
    share: float = 0.5,
    region: Region | float = 0.5,
    search: int = 4000,
    runs: Runs | int = 1,
    seed: int = 0,
    rtol: float = 1e-6,
) -> None:
    """Test V' <= share W + gamma(|d|) for |d| <= `port.largest` with the promised rate W, also along runs.

    Parameters
    ----------
    controller, plant, region, search, seed
        As for `assert_lyapunov`.
    gain : float or function
        gamma as a function of |d|; a number means gamma = gain |d|^2.
    share : float
        Fraction of the promised rate that must remain, from 0 to 1.
    port : Port
        Where the disturbance d acts; default torques up to 1 N m at the joints.
    runs : Runs or int
        Runs, default one of 1 s, for each of a constant d, a varying one, and the one that maximises V'.
    rtol : float
        Largest excess of V' that counts as rounding, relative to the sizes of its terms.

    Raises
    ------
    Counterexample
        With the simplest violating state that was found.
    ArgumentError
        If an argument is invalid.

    Notes
    -----
    V' is affine in d, so that the worst d of each size has a closed form; the search is over states. Along runs the
    test is V(t) <= V(0) + the integral of share W + gamma, and the ultimate bound V(t) <= max(V(0), gamma / decay) if
    W <= -decay V / share with decay > 0 at all states found.

    Examples
    --------
    >>> from geomctrl import controllers, models, references, testing
    >>> arm = models.two_link()
    >>> law = controllers.Passivity(arm, references.hold(arm, [0.5, 1.0]), strict=True)
    >>> gain = testing.input_to_state_gain(law, arm, search=200).gain
    >>> testing.assert_input_to_state_stable(law, arm, 2.0 * gain, search=200, runs=0)
    """
    gamma = (
        function("gain", gain, "of a number", 1)
        if callable(gain)
        else _quadratic(number("gain", gain, "a number >= 0", lambda x: x >= 0.0))
    )
    problem, flow, largest, share = _disturbed(controller, plant, port, share, region, search, seed)
    rtol, runs = tolerance("rtol", rtol), runs_of(runs, Runs(1, 1.0))
    sizes = largest * SIZES
    supplied = np.array([float(gamma(float(d))) for d in sizes])
    if supplied.shape != sizes.shape or not np.isfinite(supplied).all() or (np.diff(supplied) < 0.0).any():
        raise ArgumentError(f"gain: expected a function of |d| that grows, or a number, got {supplied}")
    floor = NEGLIGIBLE * problem.typical(lambda x: flow.at(x).slope)

    def by_size(x: State) -> tuple[np.ndarray, float]:
        r = flow.at(x)
        push = float(np.linalg.norm(r.push))
        scale = abs(r.slope) + abs(r.promised) + push * largest + supplied[-1]
        return r.slope - share * r.promised + push * sizes - supplied, rtol * scale + floor

    def excess(x: State) -> float:
        excesses, allowed = by_size(x)
        return float(excesses.max()) - allowed

    def message_at(x: State) -> str:
        r, k = flow.at(x), int(by_size(x)[0].argmax())
        size = float(np.linalg.norm(r.push))
        d = sizes[k] * r.push / size if size > 0.0 else 0.0 * r.push
        return (
            f"V' <= share W + gamma(|d|) does not hold: V' = {r.slope + r.push @ d:.9g}, share W ="
            f" {share * r.promised:.9g}, gamma = {supplied[k]:.9g} with d = {np.array2string(d, separator=', ')}"
        )

    problem.hold(excess, "input-to-state", message_at, rates_code(port_of(port)))
    decay = _decay(problem, flow, share) if runs.count else 0.0
    for name, kind in (("constant", _constant), ("wandering", _wandering), ("worst", _worst)):
        law = DisturbedController(problem.controller, flow, largest, kind)
        for start, run in _runs(problem, law, runs):
            _assert_bounded(problem, start, run, share, supplied[-1], decay, f"a {name} d", runs)


@named_arguments()
def input_to_state_gain(
    controller: Any,
    plant: Plant | Any,
    *,
    port: Port | Any = "joints",
    share: float = 0.5,
    region: Region | float = 0.5,
    search: int = 4000,
    seed: int = 0,
) -> InputToState:
    """Estimate the smallest gain with V' <= share W + gain |d|^2 that the search does not contradict.

    Parameters
    ----------
    controller, plant, port, share, region, search, seed
        As for `assert_input_to_state_stable`; W is the rate that the proof promises, d the disturbance.

    Returns
    -------
    InputToState
        `gain`, a lower estimate, infinite if V' > share W without a disturbance; and `decay`.

    Examples
    --------
    >>> from geomctrl import controllers, models, references, testing
    >>> arm = models.two_link()
    >>> law = controllers.Passivity(arm, references.hold(arm, [0.5, 1.0]), strict=True)
    >>> result = testing.input_to_state_gain(law, arm, search=200)
    >>> 0 < result.gain < float("inf"), result.decay > 0
    (True, True)
    """
    problem, flow, largest, share = _disturbed(controller, plant, port, share, region, search, seed)
    floor = NEGLIGIBLE * problem.typical(lambda x: flow.at(x).slope)

    def needed(x: State) -> float:
        r = flow.at(x)
        margin, push = share * r.promised - r.slope, float(np.linalg.norm(r.push))
        if margin < -floor:
            return np.inf
        if push == 0.0:
            return 0.0
        d = min(2.0 * max(margin, 0.0) / push + 1e-9 * largest, largest)  # maximises (push d - margin) / d^2
        return (push * d - margin) / d**2 if margin > floor else push**2 / (4.0 * max(margin, floor))

    gain = problem.largest(needed, "gain from disturbances").value
    return InputToState(gain, _decay(problem, flow, share))


class DisturbedController:
    """A controller with a disturbance d(t, state) of a port added to its torques."""

    def __init__(self, controller: Any, flow: Flow, largest: float, kind: Callable[..., np.ndarray]):
        self.controller, self.flow, self.largest, self.kind = controller, flow, largest, kind
        for name in ("reference", "group", "robot", "form", "q_d", "coriolis_matrix"):
            if hasattr(controller, name):
                setattr(self, name, getattr(controller, name))

    def start(self):
        return started(self.controller, self.flow.plant.robot)

    def lyapunov(self, t, q, v, z, plant):
        return self.controller.lyapunov(t, q, v, z, plant)

    def __call__(self, t, q, v, z) -> Command:
        port: Any = self.flow.port
        d = self.kind(self, t, q, v, z, port.size)
        command = self.controller(t, q, v, z)
        return command._replace(tau=command.tau + port.torques(self.flow.plant.robot, q) @ d)


def _constant(law: DisturbedController, t, q, v, z, m) -> np.ndarray:
    return np.full(m, law.largest / np.sqrt(m))


def _wandering(law: DisturbedController, t, q, v, z, m) -> np.ndarray:
    d = np.sin((1.0 + 2.3 * np.arange(m) + 7.0) * t + np.arange(m))
    return law.largest * d / max(float(np.linalg.norm(d)), 1.0)


def _worst(law: DisturbedController, t, q, v, z, m) -> np.ndarray:
    push = law.flow.at(State(t, q, v, z)).push
    size = float(np.linalg.norm(push))
    return law.largest * push / size if size > 1e-12 else np.zeros(m)


def _quadratic(gain: float) -> Callable[[float], float]:
    return lambda d: gain * d * d


def _disturbed(controller, plant, port, share, region, search, seed):
    problem = SearchProblem(controller, plant, region, search, seed)
    require_lyapunov(problem.controller)
    share, port = number("share", share, "a number from 0 to 1", lambda x: 0.0 <= x <= 1.0), port_of(port)
    inputs = Inputs(problem.plant.robot, port)
    return problem, Flow(problem.controller, problem.plant, None, inputs), port.largest, share


def _decay(problem: SearchProblem, flow: Flow, share: float) -> float:
    """The smallest -share W / V in the search, zero if negligible."""
    floor = NEGLIGIBLE * problem.typical(lambda x: flow.at(x).value)

    def slowness(x: State) -> float:
        r = flow.at(x)
        return share * r.promised / r.value if r.value > floor else -np.inf

    decay = -problem.largest(slowness, "decay").value
    return decay if decay > 1e-6 else 0.0


def _assert_bounded(problem, start, run: Run, share, supply, decay, name, runs: Runs) -> None:
    V, W = run.signals["lyapunov"], run.signals["lyapunov_rate"]
    taken = np.concatenate(([0.0], np.cumsum(0.5 * share * (W[1:] + W[:-1]) * np.diff(run.t))))
    bounds = {"V(0) + the integral of share W + gamma": V[0] + taken + supply * run.t}
    if decay > 0.0:
        bounds["max(V(0), gamma / decay)"] = np.full(len(V), max(V[0], supply / decay))
    for bound_text, bound in bounds.items():
        over = V - bound - 1e-5 * np.maximum.accumulate(V) - 1e-12
        if not (over <= 0.0).all():
            k = int(np.argmax(~(over <= 0.0)))
            violation = f"with {name} V = {V[k]:.9g} at t = {run.t[k]:.6g} s, {bound_text} = {bound[k]:.9g}"
            raise _along_a_run(problem, start, "input-to-state", violation, runs)


def _runs(problem: SearchProblem, controller: Any, runs: Runs):
    """(start, run) for runs from random states, with the controller in its initial state."""
    rng = np.random.default_rng([problem.seed, 2])
    for _ in range(runs.count):
        start = start_of_run(controller, problem.plant, problem.domain, rng)
        try:
            run = simulate(
                problem.plant, controller, start.q, start.v, runs.duration, runs.dt, monitors=[LyapunovDecrease()]
            )
        except SimulationError as error:
            if reason := unresolved(error):
                evidence.record("simulated", f"V of {problem.names}", runs=1, seed=problem.seed, UNRESOLVED=reason)
                continue
            raise _along_a_run(problem, start, "run", str(error), runs) from error
        evidence.record("simulated", f"V of {problem.names}", runs=1, seed=problem.seed)
        yield start, run


def _along_a_run(problem: SearchProblem, start: State, promise: str, violation: str, runs: Runs) -> Counterexample:
    script = paste(problem.plant, literal(start), RUN.format(duration=runs.duration, dt=runs.dt))
    return Counterexample(
        f"{violation}; the run started", start, promise, "from geomctrl import simulate\n" + script, "simulated"
    )
