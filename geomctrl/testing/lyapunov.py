"""`assert_lyapunov`: tests that a controller's Lyapunov function is one in closed loop with a plant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from geomctrl.arguments import count, flag, shown, tolerance
from geomctrl.control.closed_loop import require_controller_of
from geomctrl.control.loop import simulate
from geomctrl.control.monitors import LyapunovDecrease
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.other_names import named_arguments

from . import evidence
from .counterexample import Counterexample, paste, unresolved
from .domain import State
from .loop_states import failed_before, require_lyapunov, start_of_run, state_of, states_about
from .lyapunov_checks import NEGLIGIBLE, Checks
from .lyapunov_rate import LyapunovAt, LyapunovClaim
from .lyapunov_search import LyapunovSearch
from .search import cut_short
from .settings import Region, Runs, region_of, runs_of
from .shrinking import literal

REPEATED_CALLS = 3  # states at which the law is called several times, to detect hidden memory
DEFAULTS = {"states": 20, "search": 6000, "runs": 2}  # smaller values are reported in the evidence


@named_arguments()
def assert_lyapunov(
    controller: Any,
    plant: Plant | Any,
    *,
    region: Region | float | Mapping[str, Any] = 0.5,
    states: int = DEFAULTS["states"],
    search: int = DEFAULTS["search"],
    runs: Runs | int = DEFAULTS["runs"],
    seed: int = 0,
    rtol: float = 1e-6,
    bound: bool = False,
) -> None:
    """Test what the controller's `lyapunov(t, q, v, z, plant)` claims in closed loop with `plant`.

    Parameters
    ----------
    controller : Controller
        A controller with a method `lyapunov`.
    plant : Plant or Robot
        The true robot, with which V is evaluated.
    region : Region, float or mapping
        The states to test: a `Region` about the equilibrium, or only its `spread`.
    states : int
        Number of random states, at least one.
    search : int
        Number of evaluations of the search for a violation; 0 for none.
    runs : Runs or int
        Simulations along which V must not grow, or only their number (0.3 s each).
    seed : int
        Seed of the random states.
    rtol : float
        Allowed error of dV/dt, relative to |rate| + V / s.
    bound : bool
        True if the promised rate is only an upper bound of dV/dt.

    Raises
    ------
    Counterexample
        An AssertionError with the simplest violating state that was found, and code that reproduces it.
    ArgumentError
        If `states` is below one, `rtol` is negative, infinite or nan, `sample_state` returns no state, or the
        equilibrium is unknown or does not fit the plant.

    Notes
    -----
    The assertion tests the following properties.

    1. V is zero at the equilibrium (within 1e-12 of V at random states). It is finite and positive at random states,
       and where only q, only v or only z differs from the equilibrium.
    2. The promised rate is not positive and equals dV/dt along the closed loop (with `bound=True`: is at least dV/dt)
       at the same states, up to rtol (|rate| + V / s) and the error of dV/dt.
    3. A search over t, q, v and z with `search` evaluations finds no violation. It maximises the promised rate, dV/dt
       minus the promised rate, and -V, starting at the worst random states.
    4. V has no other zero: neither on shells about the equilibrium up to the bounds of the domain, nor at minima of V
       in the domain. A zero is accepted if the loop returns from it to the equilibrium, as from s = 0 in a sliding
       law, because the proof then still holds (Iggidr and Sallet 2003). An orbit with V = 0 is refused.
    5. V has a positive lower bound that does not depend on time: at fixed displacements it does not decay at times up
       to 1e8 times the last time of the region. This is not tested if the `domain` has "t".
    6. V does not jump upwards where the loop crosses. Continuity is proved if V can be traced and consists of
       continuous operations. Otherwise V is sampled along lines through the domain, which are bisected at the largest
       change. A downward jump of V, as of a switching law, is accepted.
    7. The law has no memory except z: repeated calls at one state return the same result.
    8. V does not grow along `runs` simulations with the controller at every stage. A run whose monitor is UNRESOLVED
       passes; the evidence counts such runs and reports the step that would decide.

    dV/dt is computed in two ways: exactly, by the chain rule on the traced `lyapunov` and plant, and by differences of
    V in Python, with steps halved until they converge. The exact value is used where the differences, which are
    computed independently, agree. If the law can not be traced, only differences are used. Neither uses the promised
    rate. Tracing calls the law with symbols, so that it must not count its calls.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> gc.testing.assert_lyapunov(gc.controllers.PDGravity(robot, [0.5, 0.2]), robot, search=500, runs=0)
    """
    plant, rtol, bound = plant_of("plant", plant, state=False), tolerance("rtol", rtol), flag("bound", bound)
    states, search = count("states", states, 1), count("search", search)
    runs, region = runs_of(runs, Runs()), region_of(region)
    require_controller_of(controller, plant.robot)
    if not hasattr(controller, "lyapunov"):
        expected = "controller: expected one with lyapunov(t, q, v, z, plant)"
        raise ArgumentError(f"{expected}, got {shown(controller)}, which has no lyapunov to check")
    seed = count("seed", seed)
    where = states_about(controller, plant, region)
    checks = Checks(LyapunovClaim(controller, plant), where, rtol, bound)
    subject = f"V and V' of {type(controller).__name__} on {plant.robot.name}"
    sizes = {"states": states, "search": search, "runs": runs.count}
    weak = [f"{name}={x}" for name, x in sizes.items() if x < DEFAULTS[name]]
    weak += ["bound=True, V' is only bounded"] * bound + ["only the times of the domain"] * (not where.all_times)
    settings: dict[str, Any] = {"domain": str(where), "spread": str(region.spread), "tolerance": rtol}
    settings |= {"weakened by": ", ".join(weak)} if weak else {}
    _check_memory_and_size(checks, np.random.default_rng([seed, 3]))
    _test_known_failures(checks, subject)
    _sample(checks, np.random.default_rng(seed), states)
    evidence.record("sampled", subject, states=states, seed=seed, **settings)
    if search:
        searcher = LyapunovSearch(checks, np.random.default_rng([seed, 1]), search)
        try:
            searcher.run()
        finally:
            facts = {
                "starts": searcher.starts,
                "evaluations": searcher.evaluations,
                "gradients": searcher.how,
                "seed": seed,
            }
            facts |= {"zeros followed": searcher.zeros, **cut_short(searcher.cut_short)}
            facts |= {"continuity": "proved"} if searcher.continuous else {"lines": searcher.lines}
            evidence.record("searched", subject, **facts)
    rng = np.random.default_rng([seed, 2])
    undecided: list[str] = []
    try:
        for _ in range(runs.count):
            undecided += _assert_decrease(checks, start_of_run(controller, plant, where, rng), runs)
    finally:
        checks.repeatable.check_first()
    if runs.count:
        facts = {"runs": runs.count, "seconds": runs.duration, "dt": runs.dt, "seed": seed}
        facts |= {"UNRESOLVED": f"{len(undecided)} of {runs.count}: {undecided[0]}"} if undecided else {}
        evidence.record("simulated", f"V of {type(controller).__name__} on {plant.robot.name}", **facts)


@named_arguments()
def lyapunov_at(controller: Any, plant: Plant | Any, t: float, q: Any, v: Any, z: Any = None) -> LyapunovAt:
    """The quantities that `assert_lyapunov` tests, at one state: (V, promised rate, dV/dt along the loop, its error).

    Parameters
    ----------
    controller, plant
        As for `assert_lyapunov`.
    t : float
        Time [s], not negative.
    q, v : array (nq,), (nv,)
        The state of the robot.
    z : array, optional
        The state of the controller, with the shape of `start()`.

    Returns
    -------
    LyapunovAt
        dV/dt is computed by differences, without tracing; the last number is its estimated error.

    Raises
    ------
    ArgumentError
        If the state does not fit, or if the time is negative.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.5, 0.2], kp=50.0, kd=10.0)
    >>> V, promised, actual, error = gc.testing.lyapunov_at(law, arm, 0.0, [0.4, 0.2], [0.1, 0.0])
    >>> round(promised, 9), abs(actual - promised) < 1e-6  # -kd |v|^2
    (-0.1, True)
    """
    plant = plant_of("plant", plant, state=False)
    require_controller_of(controller, plant.robot)
    require_lyapunov(controller)
    return LyapunovClaim(controller, plant).along(state_of(controller, plant, t, q, v, z))


# --- samples and runs ----------------------------------------------------------------------------------------------


def _check_memory_and_size(checks: Checks, rng: np.random.Generator) -> None:
    """Detect hidden memory of the law, and measure the typical size of V."""
    states = [checks.domain.state(checks.domain.random(rng, "about")) for _ in range(REPEATED_CALLS)]
    for x in states:
        checks.repeatable.check(x, checks.domain.rest(x.t))
    checks.typical = float(np.median([abs(checks.promise.value(x)) for x in states]))


def _test_known_failures(checks: Checks, subject: str) -> None:
    """Test the states first at which this test failed before."""
    states = failed_before(checks.promise.controller, checks.promise.plant, checks.domain)
    for x in states:
        for check in (checks.positive, checks.not_growing, checks.check_promised_rate):
            checks.hold(check, x, "known")
    if states:
        evidence.record("sampled", f"{subject}, at earlier counterexamples", states=len(states))


def _sample(checks: Checks, rng: np.random.Generator, states: int) -> None:
    """Test random states, the equilibrium at the same times, and states where only one part differs from it."""
    domain, values = checks.domain, []
    for _ in range(states):
        point = domain.random(rng, "about")
        off, zero = domain.state(point), domain.state(domain.only(point))
        checks.hold(checks.positive, off)
        V = checks.promise.value(off)
        values.append(V)
        checks.typical = float(np.median(values))
        checks.hold(checks.zero_at_rest(NEGLIGIBLE * V), zero)
        parts = {name: domain.state(domain.only(point, name)) for name in domain.names}
        for name, x in parts.items():
            checks.hold(checks.positive_alone(name, NEGLIGIBLE * V), x)
        for x in (off, *parts.values()):
            checks.hold(checks.not_growing, x)
            checks.hold(checks.check_promised_rate, x)


def _assert_decrease(checks: Checks, x: State, runs: Runs) -> list[str]:
    """The reasons why monitors could not decide, empty if they could."""
    promise, monitor = checks.promise, LyapunovDecrease()
    code = f"print(simulate(plant, controller, q, v, {runs.duration!r}, {runs.dt!r}).summary())"
    script = "from geomctrl import simulate\n" + paste(promise.plant, literal(x), code)
    try:
        run = simulate(promise.plant, promise.controller, x.q, x.v, runs.duration, runs.dt, monitors=[monitor])
    except SimulationError as error:
        if reason := unresolved(error):
            checks.hold(checks.not_growing, x, "simulated")  # a statement about states, independent of integration
            checks.hold(checks.check_promised_rate, x, "simulated")
            return [reason]
        raise Counterexample(f"{error}; the run started", x, "decrease", script, "simulated") from error
    result = run.monitors[monitor.name]
    if result.ok is False:
        message = (
            f"V grows along a run: by {result.worst:.3e} of its largest value in the step that ends at t ="
            f" {result.t_worst:.6g} s, allowed {result.limit:.0e} ({result.explanation}); the run started"
        )
        raise Counterexample(message, x, "decrease", script, "simulated")
    return [] if result.ok else [result.explanation]
