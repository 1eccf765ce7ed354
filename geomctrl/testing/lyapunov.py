"""The assertion that a controller's Lyapunov function is one, in closed loop with a plant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from geomctrl.arguments import count, flag, tolerance
from geomctrl.control.loop import simulate
from geomctrl.control.monitors import LyapunovDecrease
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import SimulationError

from . import evidence
from .counterexample import Counterexample, paste, unresolved
from .domain import State
from .loop_states import failed_before, require_controller, require_lyapunov, start_of_run, state_of, states_about
from .lyapunov_checks import NEGLIGIBLE, Checks
from .lyapunov_rate import LyapunovAt, Promise
from .lyapunov_search import LyapunovSearch
from .search import cut_short
from .settings import Region, Runs, region_of, runs_of
from .shrinking import literal

REPEATED = 3  # states at which the law is asked several times
DEFAULTS = {"states": 20, "search": 6000, "runs": 2}  # an assertion of less says so


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
    """Assert what the controller's `lyapunov(t, q, v, z, plant)` promises in closed loop with `plant`.

    Parameters
    ----------
    controller : Controller
        A controller with `lyapunov`.
    plant : Plant or Robot
        The true one: V is that of it.
    region : Region, float or mapping
        The states that are looked at: a `Region` about the equilibrium, or its `spread` alone.
    states : int
        How many random states are sampled, at least one.
    search : int
        Evaluations of the search; 0 for none.
    runs : Runs or int
        The simulations along which V must not grow, or how many of 0.3 s.
    seed : int
        Of the random states.
    rtol : float
        The error of dV/dt that is allowed, relative to |rate| + V / s.
    bound : bool
        Whether the promised rate is an upper bound of dV/dt only.

    Raises
    ------
    Counterexample
        An AssertionError, with the simplest state found that breaks the promise and code that reproduces it.
    ArgumentError
        For `states` below one, an `rtol` that is negative, infinite or nan, a `sample_state` that draws no state, and
        an equilibrium that is not known or does not fit.

    Notes
    -----
    1. V is zero at the equilibrium, finite and positive at random states about it and where only q, only v or only
       z is off. Zero means: within 1e-12 of V at the random state.
    2. The promised rate is not positive, and equals dV/dt along the closed loop (`bound=True`: is at least dV/dt), at
       the same states. Allowed error: rtol (|rate| + V / s), and what dV/dt may be off by.
    3. A search of `search` evaluations finds no state that breaks either: it climbs on the promised rate,
       on dV/dt less the promised rate and on -V from random states, the best first, over t, q, v and z.
    4. V has no other zero, on shells about the equilibrium as far as the domain's bounds or where descent over the
       whole domain ends, or the loop returns from there to the equilibrium, as from s = 0 in a sliding law: then the
       proof stands (Iggidr and Sallet 2003). An orbit with V = 0 is refused.
    5. V has a positive bound below that does not depend on time: at displacements from the equilibrium it does not
       fade at ever later times, up to 1e8 times the region's last. Not asked for where its `domain` has "t".
    6. V does not jump upwards where the loop comes across. That it is continuous is proved where it traces and is made
       of continuous operations; else it is followed along lines through the domain, which are cut at its largest change
       until nothing lies between. A V that falls in a jump, as of a law that switches, passes.
    7. The law has no memory but z: asked again about a state, it answers the same.
    8. V does not grow along `runs` simulations, controller at every stage. Runs whose monitor is UNRESOLVED pass;
       the evidence counts them, with the step that decides.

    dV/dt is found in two ways: exactly, by the chain rule on what `lyapunov` computes along the plant's own field, and
    by differences of V in Python, the law and the plant evaluated as they are, with steps halved until they settle.
    The first is believed where the second, which knows nothing of it, agrees; a law that does not trace has the second
    alone. The promised rate is in neither. The law runs on symbols to be traced, so it must not count its calls.
    """
    plant, rtol, bound = plant_of("plant", plant, state=False), tolerance("rtol", rtol), flag("bound", bound)
    states, search = count("states", states, 1), count("search", search)
    runs, region = runs_of(runs, Runs()), region_of(region)
    require_controller(controller)
    if not hasattr(controller, "lyapunov"):
        raise AssertionError(f"{type(controller).__name__} has no lyapunov(t, q, v, z, plant) to check")
    seed = count("seed", seed)
    where = states_about(controller, plant, region)
    checks = Checks(Promise(controller, plant), where, rtol, bound)
    subject = f"V and V' of {type(controller).__name__} on {plant.robot.name}"
    sizes = {"states": states, "search": search, "runs": runs.count}
    weak = [f"{name}={x}" for name, x in sizes.items() if x < DEFAULTS[name]]
    weak += ["bound=True, V' is only bounded"] * bound + ["no time but the domain's"] * (not where.all_times)
    settings: dict[str, Any] = {"domain": str(where), "spread": str(region.spread), "tolerance": rtol}
    settings |= {"weakened by": ", ".join(weak)} if weak else {}
    _first_look(checks, np.random.default_rng([seed, 3]))
    _known(checks, subject)
    _sample(checks, np.random.default_rng(seed), states)
    evidence.record("sampled", subject, states=states, seed=seed, **settings)
    if search:
        hunt = LyapunovSearch(checks, np.random.default_rng([seed, 1]), search)
        try:
            hunt.run()
        finally:
            facts = {"starts": hunt.starts, "evaluations": hunt.evaluations, "gradients": hunt.how, "seed": seed}
            facts |= {"zeros followed": hunt.zeros, **cut_short(hunt.cut_short)}
            facts |= {"continuity": "proved"} if hunt.continuous else {"lines": hunt.lines}
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


def lyapunov_at(controller: Any, plant: Plant | Any, t: float, q: Any, v: Any, z: Any = None) -> LyapunovAt:
    """What `assert_lyapunov` looks at, at one state: (V, promised rate, dV/dt along the closed loop, its error).

    dV/dt is found by differences of V, whose estimated error is the last number; nothing is traced. q (nq,), v (nv,),
    z as the controller's `start()` gives it, None without. Raises ArgumentError for a state that does not fit and for a
    time that is negative.
    """
    plant = plant_of("plant", plant, state=False)
    require_controller(controller)
    require_lyapunov(controller)
    return Promise(controller, plant).along(state_of(controller, plant, t, q, v, z))


# --- samples and runs ----------------------------------------------------------------------------------------------


def _first_look(checks: Checks, rng: np.random.Generator) -> None:
    """Whether the law has a memory, and how large V typically is."""
    states = [checks.domain.state(checks.domain.random(rng, "about")) for _ in range(REPEATED)]
    for x in states:
        checks.repeatable.check(x, checks.domain.rest(x.t))
    checks.typical = float(np.median([abs(checks.promise.value(x)) for x in states]))


def _known(checks: Checks, subject: str) -> None:
    """Look first at what has failed before."""
    states = failed_before(checks.promise.controller, checks.promise.plant, checks.domain)
    for x in states:
        for check in (checks.positive, checks.not_growing, checks.as_promised):
            checks.hold(check, x, "known")
    if states:
        evidence.record("sampled", f"{subject}, where it failed before", states=len(states))


def _sample(checks: Checks, rng: np.random.Generator, states: int) -> None:
    """Random states, the equilibrium at the same times, and where only a part is off."""
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
            checks.hold(checks.as_promised, x)


def _assert_decrease(checks: Checks, x: State, runs: Runs) -> list[str]:
    """Why the monitor of a run can not decide, if it can not."""
    promise, monitor = checks.promise, LyapunovDecrease()
    code = f"print(simulate(plant, controller, q, v, {runs.duration!r}, {runs.dt!r}).summary())"
    script = "from geomctrl import simulate\n" + paste(promise.plant, literal(x), code)
    try:
        run = simulate(promise.plant, promise.controller, x.q, x.v, runs.duration, runs.dt, monitors=[monitor])
    except SimulationError as error:
        if reason := unresolved(error):
            checks.hold(checks.not_growing, x, "simulated")  # what is promised at a state needs no integration
            checks.hold(checks.as_promised, x, "simulated")
            return [reason]
        raise Counterexample(f"{error}; the run started", x, "decrease", script, "simulated") from error
    result = run.monitors[monitor.name]
    if result.ok is False:
        message = (
            f"V grows along a run: by {result.worst:.3e} of its largest value in the step before t ="
            f" {result.t_worst:.6g} s, allowed {result.limit:.0e} ({result.explanation}); the run started"
        )
        raise Counterexample(message, x, "decrease", script, "simulated")
    return [] if result.ok else [result.explanation]
