"""Proofs that a closed loop does not leave a set {h >= 0}: at each state with h = 0, h grows.

The box of states and parameters is divided until in each part h has no zero, or h' > 0 where h = 0. Both are Taylor
models in the state. Where h = 0, h' is equal to h' - mu h for each number mu, and the number that removes most of the
linear part of h' is tried, too (the S-procedure for a part).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import function, number
from geomctrl.control.compiled.proving import TIME, trace_closed_loop
from geomctrl.control.plant import Plant
from geomctrl.control.progress import progress_with_cost
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.testing.certificates.arguments import parameter_intervals
from geomctrl.testing.certificates.certificate import PROVED, REFUTED, UNDECIDED, Claim, ProofOnBoxes
from geomctrl.testing.certificates.running import ProofRunner
from geomctrl.testing.certificates.tracking import apart
from geomctrl.testing.settings import Budget, budget_of
from geomctrl.tracing.branch_and_bound import Divisible, Ends, Progress
from geomctrl.tracing.numbers import where
from geomctrl.tracing.proofs.certificates import saved_claim
from geomctrl.tracing.proofs.claims import Claim as SavedClaim
from geomctrl.tracing.proofs.identities import degree_in
from geomctrl.tracing.proofs.operation_rows import OperationRows
from geomctrl.tracing.proofs.rechecking import numbered
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.symbols import Graph, Symbol
from geomctrl.tracing.traces import Trace
from geomctrl.tracing.untraceable import UntraceableError

from .barrier_claims import BarrierClaim, without_limits
from .equations import HELD, LoopEquations, checked_plant
from .held import ORDER
from .steps import Dynamics, Enclosure, Layout, bounds, series
from .tube import pair_of

HELD_COMMAND = "with a held command and without delay"
TIME_INPUT = TIME, 0
MEAN_RATE = 13  # array of the graph: the means of the rates since the sample, in a saved proof
MAX_HOLD_SHARE = 0.999  # of control_dt times the rate nu with which h may fall during a sample
SEGMENTS, BISECTIONS = 4096, 50  # on which zeros of h are sought for a counterexample
NEAR_ZERO = 1e-7  # of h, and of the box around a counterexample
JUMPING = {"where", "sign", "copysign", "floor", "ceil", "rint", "trunc", "fmod", "mod"}  # operations that may jump


@dataclass(frozen=True, eq=False)
class BarrierCertificate(ProofOnBoxes):
    """The result of `certify_barrier`; true if the claim is proved.

    Attributes
    ----------
    status : str
        "proved", "refuted" or "undecided".
    invariant : bool
        Whether also h < 0 on the boundary of the box is proved: then no motion from {h >= 0} leaves this set at all.
        Otherwise a motion may leave the box first, at a state with h > 0.
    counterexample : array (2 nv + nz,) or None
        A state (q, v, z) close to h = 0 with h' < 0; the motion from it leaves the set.
    parameters : array (nbodies, 10) or None
        Inertial parameters of the counterexample.
    boxes, seconds : int, float
        Cost of the proof.
    share_left : float
        Fraction of the box that is not decided.
    more_boxes : float
        Estimated number of further boxes that an undecided proof needs.
    """

    claims: list[Claim]
    problem: BarrierProblem = field(repr=False)
    counterexample: np.ndarray | None = None
    parameters: np.ndarray | None = None

    @property
    def status(self) -> str:
        needed = [claim.status for claim in self.claims[: 1 + self.problem.is_program]]
        return next((status for status in needed if status != PROVED), PROVED)

    @property
    def invariant(self) -> bool:
        return all(claim.status == PROVED for claim in self.claims) and len(self.claims) == 2 + self.problem.is_program

    def __str__(self) -> str:
        out = [str(claim) for claim in self.claims]
        out += [f"lemma      {lemma}" for lemma in self.problem.equations.lemmas]
        if self.status == PROVED and self.invariant:
            out.append("motions from h >= 0 keep h >= 0 as long as they exist")
        elif self.status == PROVED:
            out.append("motions from h >= 0 keep h >= 0 until they leave the box")
        if self.counterexample is not None:
            out.append(f"violated at (q, v, z) = {self.counterexample.tolist()}")
        if self.status == UNDECIDED:
            out.append("try a smaller box or more boxes in `budget`")
        held = self.problem.control_dt is not None
        out.append(f"a proof is about the model in exact arithmetic, {HELD_COMMAND if held else 'in continuous time'}")
        return "\n".join(out)

    def require_cover(self, plant: Plant, control_dt: float, largest: np.ndarray) -> None:
        """Raise ArgumentError unless the plant with a held command and inputs z up to `largest` stays in h >= 0."""
        problem, n = self.problem, 2 * self.problem.plant.robot.nv
        if not (self.proved and self.invariant):
            raise ArgumentError(f"safety: expected a certificate that is proved and invariant, got {self!s:.400}")
        if problem.control_dt != control_dt:
            raise ArgumentError(
                f"safety: expected a certificate for control_dt = {control_dt:g} s, got {problem.control_dt}"
            )
        lower, upper = problem.lower[n : problem.equations.n], problem.upper[n : problem.equations.n]
        if lower.shape != largest.shape or (lower > -largest).any() or (upper < largest).any():
            raise ArgumentError(f"safety: expected a box with z up to {largest.tolist()}, got {upper.tolist()}")
        problem.equations.require_unchanged()
        p = plant.robot.parameters.ravel()
        if p.shape != problem.p_lo.shape or (p < problem.p_lo).any() or (p > problem.p_hi).any():
            raise ArgumentError("safety: expected a certificate for the inertial parameters of the plant")
        certified = problem.equations.plant_with(p[problem.equations.uncertain])
        one, two = (trace_closed_loop(apart(x), problem.controller, lyapunov=False) for x in (plant, certified))
        if one.graph is not two.graph or not np.array_equal(one.numbers, two.numbers):
            raise ArgumentError("safety: expected a certificate for this plant, got one for another")

    def require_safe(self, plant: Plant, q: np.ndarray, v: np.ndarray) -> None:
        """Raise ArgumentError unless a state is in the proved set, and the law is still the proved one."""
        x, n, problem = np.concatenate([q, v]), len(q) + len(v), self.problem
        problem.equations.require_unchanged()
        h = problem.arguments[0](0.0, q, v, np.zeros(problem.equations.n - n), plant)
        if not (h >= 0.0 and (x >= problem.lower[:n]).all() and (x <= problem.upper[:n]).all()):
            raise ArgumentError(
                f"start: expected a state with h >= 0 in the box of `safety`, got (q, v) = {x.tolist()}"
            )

    def command(self, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The command (inputs,) of the law for an input z."""
        return self.problem.controller(0.0, q, v, z).tau

    def _arrays(self) -> dict[str, Any]:
        return {**super()._arrays(), **numbered(self.problem.saved(self.claims))}


@named_arguments()
def certify_barrier(
    barrier: Callable[..., Any],
    controller: Any,
    plant: Plant | Robot,
    box: tuple[ArrayLike, ArrayLike],
    *,
    parameters: float | tuple[ArrayLike, ArrayLike] = 0.0,
    control_dt: float | None = None,
    budget: Budget | int = 20_000,
    progress: bool | Callable[[float], Any] = False,
) -> BarrierCertificate:
    """Prove that no motion of a closed loop leaves the set {h >= 0}, for all robots near the model.

    Parameters
    ----------
    barrier : callable
        h(t, q, v, z, plant), a continuous function of the state that returns a number.
    controller : Controller
        A controller that does not depend on time, with its input limits, such as `np.clip`. Of a `QPInverseDynamics`
        without tasks and clearances, the claim is about all torques that satisfy the limits of its program up to 1e-6
        (not only the solver's), and that the program has a solution without slack where h = 0.
    plant : Plant or Robot
        The true robot; see `reach`.
    box : pair of arrays (2 nv,) or (2 nv + nz,)
        Lower and upper bounds of the state (q, v), or (q, v, z), that are examined. A z with the rate zero stands for
        any input that is constant between jumps, such as the action of a policy; h must not depend on it.
    parameters : float, or a pair of arrays (nbodies, 10)
        Uncertainty of all inertial parameters; see `reach`. The controller and h keep their own model, except that h
        has the true robot as `plant`.
    control_dt : float, optional
        Hold time of a command [s]. The law then acts at samples, and z must have the rate zero.
    budget : Budget or int
        Limits of the proof of each inequality, or only the number of boxes.
    progress : bool or function
        True for a bar, or a function that is called with the decided fraction of the box.

    Returns
    -------
    BarrierCertificate
        True if h' > 0 is proved for each state of the box with h = 0. Then a motion from h >= 0 keeps h >= 0 until it
        leaves the box; if `invariant` it does not leave the box. With `control_dt`: true if h >= 0 is proved during the
        whole sample from each state of the box with h >= 0. `status` is "proved", "refuted" or "undecided". `recheck`
        checks a saved proof again, with python-flint.

    Raises
    ------
    ArgumentError
        For arguments that do not fit, and for a box without interior.
    UntraceableError
        If the loop can not be traced, depends on time, its trace differs from Python, or h may jump.

    Notes
    -----
    This is Nagumo's condition with a margin: where h falls to zero for the first time, h' <= 0 (Ames and others 2019).
    h' is the derivative along the closed loop with all its branches: an undecided one is enclosed by both sides. With
    `control_dt`, h' + nu h0 > 0 is proved for the enclosed motions of the sample, their h0 at its start, and a number
    nu < 1 / control_dt, so that h >= h0 (1 - nu t).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    >>> def barrier(t, q, v, z, plant):
    ...     return 0.5 - law.lyapunov(t, q, v, z, plant)[0]
    >>> half = np.array([0.2, 0.3, 1.6, 4.5])
    >>> certificate = gc.testing.certify_barrier(barrier, law, arm, (-half, half))
    >>> certificate.status, certificate.invariant
    ('proved', True)
    """
    problem = BarrierProblem(barrier, controller, plant, box, parameters, control_dt)
    budget = budget_of(budget)
    with progress_with_cost(progress, "certifying") as report:
        return problem.certificate(budget, report)


class BarrierProblem:
    """h and h' as Taylor models of the state and the uncertain parameters, and the claims about them."""

    def __init__(self, barrier: Any, controller: Any, plant: Any, box: Any, parameters: Any, control_dt: Any = None):
        self.arguments = barrier, controller, plant, box, parameters, control_dt
        self.is_program = hasattr(controller, "_program_torques")
        if self.is_program:
            if control_dt is not None:
                raise ArgumentError("control_dt: expected None for a law that solves a program")
            controller = controller._program_torques()
        barrier = function("barrier", barrier, "(t, q, v, z, plant)", 5)
        self.plant, self.controller = checked_plant(plant), controller
        self.control_dt: Any = None
        if control_dt is not None:
            self.control_dt = number("control_dt", control_dt, "seconds > 0, at most 10", lambda x: 0.0 < x <= 10.0)
        self.p_lo, self.p_hi = parameter_intervals(parameters, self.plant.robot)
        nominal = self.plant.robot.parameters.ravel()
        uncertain = np.flatnonzero((self.p_hi > self.p_lo) | (self.p_lo != nominal))
        held = control_dt is not None
        self.equations = e = LoopEquations(controller, self.plant, uncertain, barrier, held, is_program=self.is_program)
        graph, h = e.loop.graph, e.signal
        _require_continuous(graph, h)
        limits, feasible = e.loop.extra.get("program", ([], []))
        ends = [graph.operand(x) for x in (h, *e.rates[: e.n], *limits, *feasible)]
        if e.loop.t.index in graph.needed(ends):
            raise UntraceableError("barrier, controller, plant: expected no dependence on time")
        self.at_rest = np.array([graph.nodes[graph.operand(x)][:2] == ("const", 0.0) for x in e.rates[: e.n]])
        _, _, z = e.loop.split(e.loop.y)
        if self.is_program and degree_in(graph, h, {x.index for x in np.ravel(z)}):
            raise ArgumentError("barrier: expected an h that does not depend on z, of a law that solves a program")
        self.rate = e.loop.along(h, pace=0.0)
        self.rows = e.rows([h, self.rate, *limits, *e.rates[: e.n]])
        self.feasible: Any = e.rows([h, *feasible]) if self.is_program else None
        self.held = None if control_dt is None else self._held_rows()
        lower, upper = pair_of("box", box, (e.n - len(e.start()) * self.is_program,))
        if self.is_program:
            lower, upper = np.append(lower, -np.ones(len(e.start()))), np.append(upper, np.ones(len(e.start())))
        if not (lower < upper).all():
            raise ArgumentError(f"box: expected lower < upper for each state, got {lower.tolist()}, {upper.tolist()}")
        e.compare_with_python(lower, upper, 1.0)
        self.lower, self.upper = np.append(lower, self.p_lo[uncertain]), np.append(upper, self.p_hi[uncertain])

    def _held_rows(self) -> tuple[Dynamics, OperationRows, OperationRows]:
        """(The motion during a sample, the command at its start, h and h' during it)."""
        e, n = self.equations, 2 * self.plant.robot.nv
        if not self.at_rest[n:].all():
            raise ArgumentError("controller: expected a state z with the rate zero, as `control_dt` is given")
        resting, commands = len(e.inputs) - 1 - n, len(e.command)
        inputs = [*e.inputs[:-1], *((HELD, k) for k in range(commands)), TIME_INPUT]
        rates = [*e.held_rates, *[0.0] * (resting + commands), 1.0]
        rows = OperationRows(e.loop.graph, inputs, rates, e.constants, e.good)
        self.held_rate = rate = e.loop.along(e.signal, [*e.held_rates, *[0.0] * (e.n - n), 0.0], pace=0.0)
        return Dynamics(rows, n), e.rows(e.command, inputs), e.rows([e.signal, rate], inputs)

    def statements(self, level: float | None = None) -> dict[str, Divisible]:
        whole = self.lower[None], self.upper[None]
        kept = "h' > 0 at each state of the box with h = 0"
        if self.control_dt is not None:
            kept = f"h >= 0 during {self.control_dt:g} s with a held command, from each state of the box with h >= 0"
        claims = {kept: BarrierClaim(self, self._is_safe, whole)}
        if self.is_program:
            kept = f"{kept}, for all torques that satisfy the limits of the program up to {self.controller.tolerance:g}"
            lo, hi = self.lower.copy(), self.upper.copy()
            inputs = slice(2 * self.plant.robot.nv, self.equations.n)  # which do not matter here
            lo[inputs] = hi[inputs] = 0.0
            solvable = "the program has a solution without slack at each state of the box with h = 0"
            claims = {
                kept: BarrierClaim(self, self._is_safe, whole),
                solvable: BarrierClaim(self, self._is_safe, (lo[None], hi[None]), self.feasibility),
            }
        lo, hi = (np.array(ends) for ends in zip(*self._faces()))
        return {**claims, "h < 0 on the boundary of the box": BarrierClaim(self, self._is_negative, (lo, hi))}

    def certificate(self, budget: Budget, report: Progress) -> BarrierCertificate:
        run = ProofRunner(budget, (BarrierProblem, self.arguments), self.statements)
        *conditions, (boundary, faces) = self.statements().items()
        n, violation = self.equations.n, None if self.is_program else self._violation(budget.seed)
        if violation is not None:
            parameters = self.plant.robot.parameters.copy()
            parameters.ravel()[self.equations.uncertain] = violation[n:]
            return BarrierCertificate([Claim(conditions[0][0], REFUTED)], self, violation[:n], parameters)
        claims = []
        for statement, task in conditions:
            outcome = run(statement, task, progress=report)
            claims.append(Claim(statement, outcome.status, outcome, task))
        lo, hi = faces.starts
        proved = all(claim.status == PROVED for claim in claims)
        if proved and not (self._numbers(0.5 * lo + 0.5 * hi)[:, 0] >= 0.0).any():
            outcome = run(boundary, faces)
            claims.append(Claim(boundary, outcome.status, outcome, faces))
        return BarrierCertificate(claims, self)

    def saved(self, claims: list[Claim]) -> list[dict[str, Any]]:
        """The proved inequalities in the format of `testing.recheck`: h' > 0 where h = 0, that a program is solvable,
        and h < 0 on each face of the box.
        """
        *needed, boundary = claims if len(claims) == 2 + self.is_program else [*claims, None]
        if any(claim.status != PROVED or claim.outcome is None for claim in needed):
            return []
        h = self.equations.signal
        limits, feasible = self.equations.loop.extra.get("program", ([], []))
        zero = [h, -h]
        if self.control_dt is None:
            saved = [self._saved([-self.rate, *zero, *(-x for x in limits)], claims[0], 0)]
        else:
            saved = [self._saved_sample(claims[0])]
        saved += [self._saved([-x, *zero], claims[1], 0) for x in feasible]
        if boundary is not None and boundary.status == PROVED:
            saved += [self._saved([h], boundary, k) for k in range(len(boundary.task.starts[0]))]
        return saved

    def _saved_sample(self, claim: Claim) -> dict[str, Any]:
        """The claim that h' + nu h0 > 0 where h0 >= 0, for all times of a sample and means r of the rates before them.

        nu control_dt < 1, and the states are those at the sample plus t r.
        """
        e, graph = self.equations, self.equations.loop.graph
        moving = e.held_rates
        means: list[Any] = [graph.load(MEAN_RATE, k) for k in range(len(moving))]
        time = graph.load(*TIME_INPUT)
        new = {graph.load(HELD, k).index: x for k, x in enumerate(e.command)}
        motion = {graph.load(*e.inputs[k]).index: graph.load(*e.inputs[k]) + time * r for k, r in enumerate(means)}
        rate, *rates = substituted(graph, [self.held_rate, *moving], new | motion)
        h, later = e.signal, substituted(graph, e.good, motion)
        f = -(rate + MAX_HOLD_SHARE / self.control_dt * h)
        inputs = [*e.inputs[:-1], TIME_INPUT, *((MEAN_RATE, k) for k in range(len(moving)))]
        return self._saved([f, -h, *rates], claim, 0, [*e.good, *later], inputs, len(moving))

    def _saved(
        self, ends: list[Any], claim: Claim, start: int, good: list[Any] | None = None,
        inputs: list[Any] | None = None, rates: int = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """The claim that the first of the ends is negative where the others are not positive, on one of its starts.

        good: conditions under which the ends exist. rates: the number of the last ends, which are rates of a motion.
        """
        e, graph = self.equations, self.equations.loop.graph
        for condition in e.good if good is None else good:
            ends = [where(condition, x, np.nan) for x in ends]
        outputs = [graph.operand(x) for x in ends]
        trace = Trace(graph, (), tuple(outputs), (len(outputs),), None)
        a, b = (x[start] for x in claim.task.starts)
        coordinates = tuple(e.inputs[:-1] if inputs is None else inputs)
        saved = saved_claim(SavedClaim(trace, a, b, coordinates, e.loop.numbers, True), rates, self.control_dt or 0.0)
        if claim.outcome is None or claim.outcome.leaves is None:
            return saved
        lo, hi, _ = claim.outcome.leaves
        mine = ((a <= lo) & (hi <= b)).all(1)
        return {**saved, "lo": lo[mine], "hi": hi[mine]}

    def values(self, lo: np.ndarray, hi: np.ndarray) -> tuple[Layout, Any, Any]:
        """(Layout, rows of h and h'); None where the loop or h is undefined for some state.

        With a held command: h at the sample, h' at all times until the next one.
        """
        if self.held is not None:
            return self._values_of_sample(*self.held, lo, hi)
        layout = Layout(int((hi > lo).sum()), 0, 0)
        rows = self._defined(self.rows, layout, layout.box(np.append(lo, 0.0), np.append(hi, 0.0)))
        return layout, rows[0], without_limits(layout, *rows[: -self.equations.n])

    def feasibility(self, lo: np.ndarray, hi: np.ndarray) -> tuple[Layout, Any, Any]:
        """(Layout, rows of h and of the first number that is not shown to be positive where h = 0, or of any)."""
        layout = Layout(int((hi > lo).sum()), 0, 0)
        h, *rows = self._defined(self.feasible, layout, layout.box(np.append(lo, 0.0), np.append(hi, 0.0)))
        open_rows = (row for row in rows if h is not None and not self._is_safe(layout, h, row))
        return layout, h, next(open_rows, rows[0])

    def _defined(self, rows: OperationRows, layout: Layout, X: np.ndarray) -> list[Any]:
        _, values = series(rows, layout, X, 1)
        further = len(values) - len(self.equations.good)
        is_defined = np.isfinite(values[:further, 0]).all() and (values[further:, 0] == 1.0).all()
        return list(values[:further]) if is_defined else [None] * further

    def _values_of_sample(
        self, dynamics: Dynamics, law: OperationRows, barrier: OperationRows, lo: np.ndarray, hi: np.ndarray
    ) -> tuple[Layout, Any, Any]:
        commands = len(self.equations.command)
        rest = np.zeros(commands + 1)
        enclosure = Enclosure(dynamics, np.append(lo, rest), np.append(hi, rest), ORDER, recent=1)
        layout = enclosure.layout
        h, _ = self._defined(barrier, layout, enclosure.X)
        if h is None or not enclosure.hold(law, slice(-1 - commands, -1)):
            return layout, None, None
        E = enclosure.during(self.control_dt)
        return layout, h, None if E is None else self._defined(barrier, layout, E)[1]

    def _is_safe(self, layout: Layout, h: np.ndarray, rate: np.ndarray) -> bool:
        """Whether h does not fall below zero in a box: h < 0, or h' + nu h > 0 for a number nu.

        In continuous time only zeros of h count, so that nu is any number, and h > 0 is safe, too.
        """
        low, high = bounds(h)
        held = self.control_dt is not None
        if high < 0.0 or (low > 0.0 and not held) or bounds(rate)[0] > 0.0:
            return True
        b, slope = layout.polynomial(h)[0], layout.polynomial(rate)[0]
        with np.errstate(all="ignore"):  # of tiny and huge numbers
            nu = -(b @ slope) / (b @ b)
            largest = MAX_HOLD_SHARE / self.control_dt if held else np.inf
            for factor in (np.clip(nu, 0.0, largest), largest) if held else (nu,):
                if not np.isfinite(factor):
                    continue
                row = np.array([[factor, *np.zeros(layout.coefficients - 1)]])
                product = layout.times(layout.forms(row)[0], h[None])
                if bounds(layout.plus(rate[None], product))[0][0] > 0.0:
                    return True
        return False

    def _is_negative(self, layout: Layout, h: np.ndarray, rate: np.ndarray) -> bool:
        return bool(bounds(h)[1] < 0.0)

    @np.errstate(all="ignore")
    def _violation(self, seed: int) -> np.ndarray | None:
        """A zero of h with h' < 0, the worst one of random segments, if enclosures confirm it."""
        e, rng, lower, upper = self.equations, np.random.default_rng(seed), self.lower, self.upper
        corners = rng.random((2, SEGMENTS, len(lower))) < 0.3
        a, b = np.where(corners, rng.choice([lower, upper], (2, SEGMENTS)), rng.uniform(lower, upper, corners.shape))
        crossing = np.sign(self._numbers(a)[:, 0]) * np.sign(self._numbers(b)[:, 0]) < 0.0
        a, b = a[crossing], b[crossing]
        a[:, e.n :] = b[:, e.n :]  # one robot a segment
        is_safe = self._numbers(a)[:, 0] > 0.0
        for _ in range(BISECTIONS):
            middle = 0.5 * a + 0.5 * b
            left = (self._numbers(middle)[:, 0] > 0.0) == is_safe
            a, b = np.where(left[:, None], middle, a), np.where(left[:, None], b, middle)
        h, rate = self._numbers(a).T if len(a) else np.full((2, 1), np.nan)
        rate = np.where(np.abs(h) < NEAR_ZERO * max(1.0, float(np.nanmax(np.abs(h), initial=0.0))), rate, np.nan)
        if not (rate < 0.0).any():
            return None
        x = a[np.nanargmin(rate)]
        half = NEAR_ZERO * (upper - lower)
        lo, hi = np.maximum(x - half, lower), np.minimum(x + half, upper)
        return x if self._is_violated(lo, hi) else None

    def _numbers(self, x: np.ndarray) -> np.ndarray:
        """h and h' at states with parameters, in floating point."""
        x = np.atleast_2d(x)
        with np.errstate(all="ignore"):
            return self.equations.evaluated([self.equations.signal, self.rate], np.column_stack([x, np.zeros(len(x))]))

    def _is_violated(self, lo: np.ndarray, hi: np.ndarray) -> bool:
        """Whether h' < 0 in the whole box, and h has both signs at two of its points: it contains a zero of h."""
        layout, h, rate = self.values(lo, hi)
        if rate is None or bounds(rate)[1] >= 0.0:
            return False
        direction = np.zeros(len(lo))
        direction[hi > lo] = np.sign(layout.polynomial(h)[0])
        below, above = (self.values(x, x)[1] for x in np.where(direction < 0.0, [hi, lo], [lo, hi]))
        return below is not None and above is not None and bool(bounds(below)[1] < 0.0 < bounds(above)[0])

    def _faces(self) -> Iterator[Ends]:
        """The faces of the box through which motions may leave it: parameters and a constant z do not move."""
        for k in np.flatnonzero(~self.at_rest):
            for end in (self.lower[k], self.upper[k]):
                lo, hi = self.lower.copy(), self.upper.copy()
                lo[k] = hi[k] = end
                yield lo, hi


def _require_continuous(graph: Graph, h: Symbol) -> None:
    """Raise UntraceableError if the barrier function h contains an operation that jumps."""
    names = {graph.nodes[k][0] for k in graph.needed([graph.operand(h)])}
    if names & JUMPING:
        raise UntraceableError(f"barrier: expected a continuous function, got one with {sorted(names & JUMPING)}")
