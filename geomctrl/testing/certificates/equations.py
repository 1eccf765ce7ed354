"""Equations of a closed loop for proofs, rewritten so that intervals bound them tightly.

Along the vector field V' contains M^-1, the true parameters p in many places, and terms that cancel only because the
law contains the model. Four rewritings are tried, each proved for the given loop by `tracing.proofs.identities`:

power         V' = w . (tau - M a_ref - C v_ref - g) + U',  v_ref = v - w,  if V = 1/2 w . M w + U(q): no inversion,
              affine in p. It uses that Mdot - 2C is skew-symmetric for the true robot.
promise       with the model's parameters V' is the promised rate; the error p - p_model enters linearly.
acceleration  V' = V'(vdot = a) + dV/dv . M^-1 (tau - M a - C v - g), with the desired acceleration a of the law.
rate          V' is the promised rate, if the claim is about the model's parameters only.

If no rewriting is proved, V' is used as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.control.compiled.proving import NUMBERS, TracedClosedLoop, trace_closed_loop
from geomctrl.control.compiled.robot_numbers import armatures, inertial_parameters
from geomctrl.control.plant import Plant
from geomctrl.robot import Robot
from geomctrl.tracing import symbols
from geomctrl.tracing.arrays import symbol_array
from geomctrl.tracing.derivatives import loads, pullback, tangents
from geomctrl.tracing.proofs.identities import chance, degree_in, identical
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.symbols import Symbol, add, div, is_symbol, mul, sub
from geomctrl.tracing.untraceable import UntraceableError

from .decided import decided
from .gravity import without_gravity
from .tracking import apart, in_errors, period_of, preloads

# further arrays of the graph: q inside sines and cosines, parameter errors, an acceleration, rows of M^-1
ANGLES, ERRORS, MOTION, INVERSE = range(7, 11)
TIME = 1.0  # s: an arbitrary time; lemmas hold for all times
NOT_REWRITTEN = "V' along the field, not rewritten"
LARGEST_SOLVED = 6  # joints up to which M x = b is solved symbolically


@dataclass(frozen=True)
class Lemma:
    """A statement used in a proof and proved separately: text, method, log10 of the probability of a mistake."""

    claim: str
    chance: float
    holds: Callable[[int], bool]  # tests it again with another seed

    def __str__(self) -> str:
        return (
            f"{self.claim} (identity modulo 2^521 - 1 at random points; mistaken with probability 1e{self.chance:.0f})"
        )


@dataclass(frozen=True, eq=False)
class Equations:
    """V and V' of an autonomous loop as expressions of `graph`.

    x: nodes of (q, v). angles: nodes for q inside sines and cosines, None for q_i in none. parameters, errors: nodes of
    the true parameters and of their deviations from `model`. numbers: values of all other inputs. `decrease`: V'.
    `potential`: U(q) if V = 1/2 w . M w + U with dw/dv = 1 and w = 0 at rest at q_d, else None. `mass`, `inverse`: if
    V' contains M^-1, the entries of M by rows and the nodes for the entries of its inverse. `monotone`: parameters in
    which V' is then monotone if M is positive definite, so that it is largest at the ends of their intervals. `lemmas`,
    `form`: what this relies on. timed: whether the last parameter is time (boxes with times); the others are the
    robot's, and joint torques. times: the first and the last time of the claim [s]. places: for a moving reference, q
    as expressions of x, which then are errors, and time.
    """

    graph: Any
    x: list[int]
    q_d: np.ndarray
    angles: list[int | None]
    parameters: list[int]
    errors: list[int]
    model: np.ndarray
    numbers: dict[int, float]
    value: Any
    decrease: Any
    potential: Any
    mass: list[Any]
    inverse: list[int]
    monotone: list[int]
    form: str
    lemmas: list[Lemma]
    loop: TracedClosedLoop
    timed: bool = False
    times: tuple[float, float] = (0.0, np.inf)
    places: list[Any] = field(default_factory=list)

    @cached_property
    def placed(self) -> Program:
        return Program(self.graph, self.places)

    @property
    def robots(self) -> slice:
        """Indices of the robot's parameters."""
        return slice(0, len(self.loop.extra["parameters"]))

    @property
    def n(self) -> int:
        return len(self.x) // 2

    @cached_property
    def masses(self) -> Program:
        return Program(self.graph, self.mass)

    def symbol(self, node: int) -> Symbol:
        return Symbol(self.graph, node)

    def at(self, x: np.ndarray, p: np.ndarray) -> dict[int, Any]:
        """Inputs of the original loop at states x (m, 2n), parameters (m, k)."""
        values: dict[int, Any] = {**self.numbers, self.loop.t.index: TIME}
        values |= {node: x[:, i] + (self.q_d[i] if i < self.n else 0.0) for i, node in enumerate(self.x)}
        return values | {node: p[:, k] for k, node in enumerate(self.parameters)}

    def plus(self, rate: float) -> Any:
        """V' + rate V."""
        return add(self.decrease, mul(self.value, rate)) if rate else self.decrease

    def along_vector_field(self, rate: float) -> Any:
        """V' + rate V along the vector field, without lemmas, angles or deviations."""
        return add(self.loop.slope, mul(self.loop.value, rate)) if rate else self.loop.slope


def equations(
    controller: Any, plant: Plant, q_d: np.ndarray, timed: bool = False, within: Mapping[str, Any] | None = None,
    moving: bool = False, disturbed: bool = False,
) -> Equations:  # fmt: skip
    """Derive the equations.

    within: intervals of "q", "v", "p" and "t" of all claims; branches decided there are removed. moving: whether q and
    v are errors about the controller's reference. disturbed: whether further parameters are joint torques. Raises
    UntraceableError if the loop can not be traced, has no V, or if V or V' depend on time and the box has no times.
    """
    torques = preloads(plant) if disturbed else np.zeros(0)
    plant = apart(plant, disturbed)
    as_traced = trace_closed_loop(plant, controller, _moving if moving else _further)
    if not disturbed:
        as_traced.extra["torques"] = []
    as_traced, pairs = in_errors(as_traced) if moving else (as_traced, [])
    loop = as_traced if within is None else decided(as_traced, within)
    graph, p = loop.graph, loads([*loop.extra["parameters"], *loop.extra["torques"]])
    forms = _Forms(loop, controller, plant, p, torques)
    exact = within is not None and all(np.array_equal(end, forms.true) for end in within["p"])
    if torques.size and degree_in(graph, loop.value, set(p[-torques.size :])):
        raise UntraceableError("controller: V depends on the disturbance, which may change at any time")
    form, lemmas, model, decrease, value, potential = forms.best(exact)
    if pairs:
        claim = "the reference's velocity is the rate of its position, and the law's errors are those from it"
        lemmas = [*lemmas, forms.lemma(claim, pairs)]
    q, v, _ = loop.split(loop.y)
    x = loads([*q.tolist(), *v.tolist()])
    moved: dict[int, Any] = {k: 0.0 for k, z in forms.fixed.items() if z == 0.0}
    angles: list[int | None] = []
    for i, index in enumerate(loads(loop.extra["angles"]) if moving else x[: len(x) // 2]):
        angle, used = graph.load(ANGLES, i), False
        for op in ("sin", "cos") if forms.separable else ():  # otherwise cancelling terms must stay together
            node = graph.node(op, index)
            moved[node], used = symbols.unary(op, angle), True
        angles.append(angle.index if used else None)
    mass = forms.mass
    ends = [decrease, value, 0.0 if potential is None else potential, *mass]
    decrease, value, U, *mass = substituted(graph, ends, moved)
    ends = [graph.operand(x) for x in (decrease, value, loop.good) if x is not True]
    inputs = {k for k in graph.needed(ends) if graph.nodes[k][0] == "load"}
    times = (0.0, np.inf) if within is None else (max(float(within["t"][0][0]), 0.0), float(within["t"][1][0]))
    if moving and not timed and loop.t.index in inputs:
        ends = [x for x in (decrease, value, U, *mass, forms.slope, as_traced.value, loop.good) if x is not True]
        times, timed = (0.0, period_of(graph, ends, loop.t.index, forms.fixed)), True
    timed = timed and loop.t.index in inputs
    if loop.t.index in inputs and not timed:
        raise UntraceableError(
            "controller: its V, its V' or the set where it is defined depends on time: expected a Box with `times` in"
            " which it is certified"
        )
    errors = forms.errors
    if timed:
        p, errors = [*p, loop.t.index], [*errors, graph.load(ERRORS, len(p)).index]
        model = np.append(model, TIME)
    return Equations(
        graph, x, np.asarray(q_d, float), angles, p, errors, model,
        forms.fixed, value, decrease, None if potential is None else U, mass,
        loads([graph.load(INVERSE, k) for k in range(len(mass))]), forms.monotone, form, lemmas, as_traced,
        timed, times, loop.extra["angles"] if moving else [],
    )  # fmt: skip


def _moving(parts: Any, t: Any, q: Any, v: Any, z: Any, command: Any) -> dict[str, Any]:
    desired = [x for part in parts.controller.reference(t)[:3] for x in _numbers(part)]
    return {**_further(parts, t, q, v, z, command), "desired": desired}


def _further(parts: Any, t: Any, q: Any, v: Any, z: Any, command: Any) -> dict[str, Any]:
    """True parameters and components of the forms as symbols, while the loop is traced."""
    robot, graph, n = parts.plant.robot, t.graph, len(v)
    extra: dict[str, Any] = {"parameters": inertial_parameters(robot), "power": [], "acceleration": None}
    extra["torques"] = [] if parts.plant._springs is None else _numbers(parts.plant._springs[1])
    extra["armatures"] = [x for x in armatures(robot) if is_symbol(x)]
    net = _numbers(parts.plant._net(t, q, v, command.tau, None))
    wrenches = None if parts.plant.f_ext is None else parts.plant.f_ext(t, q, v)
    candidates = [x for x in command.signals.values() if np.shape(x) == (n,)]
    motion = [graph.load(MOTION, k) for k in range(n)]
    pushed = _numbers(robot.inverse_dynamics(q, _array([0.0] * n), _array(motion)))
    for w in map(_numbers, (*candidates, v)):
        v_ref = [sub(a, b) for a, b in zip(v.tolist(), w)]
        a_ref = tangents(graph, v_ref, dict(zip([t.index, *loads(q.tolist())], [1.0, *v.tolist()])))
        force = _numbers(robot.inverse_dynamics(q, v, _array(a_ref), _array(v_ref), f_ext=wrenches))
        momentum = tangents(graph, pushed, dict(zip(loads(motion), w)))  # M w by the recursion has tighter bounds
        power = dot(w, [sub(a, b) for a, b in zip(net, force)])
        extra["power"].append((v_ref, power, mul(dot(w, momentum), 0.5)))
    if hasattr(parts.controller, "acceleration") and n <= LARGEST_SOLVED:
        a = parts.controller.acceleration(t, q, v, z)
        rest = [sub(x, y) for x, y in zip(net, _numbers(robot.inverse_dynamics(q, v, a, f_ext=wrenches)))]
        columns = [tangents(graph, pushed, {k: 1.0}) for k in loads(motion)]
        M = [[columns[min(i, j)][max(i, j)] for j in range(n)] for i in range(n)]
        extra["acceleration"] = _numbers(a), rest, M
    return extra


class _Forms:
    """The search for the form of V' that is easiest to bound, among proved equivalents."""

    def __init__(self, loop: TracedClosedLoop, controller: Any, plant: Plant, p: list[int], torques: np.ndarray):
        if loop.value is None:
            raise UntraceableError(f"{type(controller).__name__} has no lyapunov(t, q, v, z, plant) to certify")
        self.loop, self.graph, self.p = loop, loop.graph, p
        self.fixed = {self.graph.load(NUMBERS, k).index: x for k, x in enumerate(loop.numbers.tolist())}
        self.true = np.array([self.fixed.pop(node) for node in p])
        self.true[len(p) - len(torques) :] = torques
        fixed = {(NUMBERS, k): x for k, x in enumerate(loop.numbers.tolist())}
        self.free = {
            key: x for key, x in fixed.items() if self.graph.load(*key).index not in set(p)
        }  # t is a free input too
        deviations = [self.graph.load(ERRORS, k) for k in range(len(p))]
        self.errors, self.deviations = loads(deviations), deviations
        robot = getattr(controller, "robot", None)
        self.models = [self.true]
        if isinstance(robot, Robot) and robot.parameters.shape == plant.robot.parameters.shape:
            self.models.insert(0, np.append(robot.parameters.ravel(), torques))
        self.q, self.v, _ = loop.split(loop.y)
        self.slope, self.gravity = loop.slope, plant.robot.gravity
        self.mass: list[Any] = []
        self.monotone: list[int] = []
        self.separable = False  # whether angles may become separate inputs: V contains no gravity potential

    def best(self, exact: bool) -> tuple[str, list[Lemma], np.ndarray, Any, Any, Any]:
        """exact: whether the claim is of the plant's own parameters alone."""
        form: Any = None
        for attempt in (self.power, self.acceleration, *[self.rate_alone] * exact):
            form = attempt()
            if form is not None:
                break
        else:
            form = NOT_REWRITTEN, [], self.true, self.slope, self.loop.value, None
        return without_gravity(self, *form) if exact and form[0] != "the promised rate" else form

    def same(self, pairs: list[tuple[Any, Any]]) -> bool:
        return identical(self.graph, pairs, self.free)

    def lemma(self, claim: str, pairs: list[tuple[Any, Any]]) -> Lemma:
        return Lemma(claim, chance(self.graph, pairs), lambda seed: identical(self.graph, pairs, self.free, seed))

    def at_model(self, x: Any, model: np.ndarray) -> Any:
        """x with the true parameters replaced by those of the model."""
        return substituted(self.graph, [x], dict(zip(self.p, model.tolist())))[0]

    def deviation(self, x: Any) -> Any:
        """The change of x, affine in the parameters, due to their deviations."""
        return tangents(self.graph, [x], dict(zip(self.p, self.deviations)))[0]

    def along_model(self, x: Any, model: np.ndarray) -> Any:
        """The same with p - model instead of the deviations."""
        errors = [sub(Symbol(self.graph, k), m) for k, m in zip(self.p, model.tolist())]
        return tangents(self.graph, [x], dict(zip(self.p, errors)))[0]

    def affine(self, x: Any) -> bool:
        return degree_in(self.graph, x, set(self.p)) <= 1

    def about(self, x: Any, model: np.ndarray) -> Any:
        """x, affine in the parameters, as its value for the model plus the deviation."""
        return add(self.at_model(x, model), self.deviation(x)) if self.affine(x) else x

    def power(self) -> Any:
        v = loads(self.v.tolist())
        massless = dict.fromkeys([*self.p, *loads(self.loop.extra["armatures"])], 0.0)
        for parts in self.loop.extra["power"]:
            at_rest = dict(zip(v, substituted(self.graph, parts[0], dict.fromkeys(v, 0.0))))
            for new in (massless, at_rest):  # both leave U in V; the first is simpler if V contains no gravity
                form = self.energy_and_power(*substituted(self.graph, [self.loop.value], new), *parts)
                if form is not None:
                    self.separable = new is massless
                    return form
        return None

    def energy_and_power(self, U: Any, v_ref: list[Any], power: Any, kinetic: Any) -> Any:
        """The power form for this U(q); None if V is not 1/2 w . M w + U, or if its rate is not the power."""
        V, v = self.loop.value, loads(self.v.tolist())
        seeds = dict(zip([self.loop.t.index, *loads(self.q.tolist())], [1.0, *self.v.tolist()]))
        E = add(power, tangents(self.graph, [U], seeds)[0])
        pairs, energy = [(self.slope, E)], [(V, add(kinetic, U))]
        if not (self.affine(E) and self.affine(V) and self.same(energy) and self.same(pairs)):
            return None
        at_rest = [(slope, 0.0) for x in (U, *v_ref) for slope in pullback(self.graph, [x], [1.0], v)]
        if not self.same(at_rest):  # U and v_ref depend on q alone
            return None
        lemmas = [
            self.lemma("V = 1/2 w . M w + U(q), w = v - v_ref(q), M the true mass matrix", energy),
            self.lemma("V' = w . (tau - M a_ref - C v_ref - g) + U': the true Mdot - 2C is skew", pairs),
        ]
        form, lemmas, model, decrease = self.promised(E, lemmas, "power, without M^-1")
        return form, lemmas, model, decrease, self.about(energy[0][1], model), U

    def promised(self, E: Any, lemmas: list[Lemma], form: str) -> Any:
        """The form with the promised rate instead of V' for the exact model."""
        rate = self.loop.rate
        for model in self.models:
            pairs = [(self.slope, add(rate, self.along_model(E, model)))]
            if degree_in(self.graph, rate, set(self.p)) == 0 and self.same(pairs):
                lemmas = [*lemmas, self.lemma("V' is the promised rate where the model is right", pairs)]
                return form, lemmas, model, add(rate, self.deviation(E))
        return form, lemmas, self.true, self.about(E, self.true)

    def acceleration(self) -> Any:
        if self.loop.extra["acceleration"] is None:
            return None
        a, rest, M = self.loop.extra["acceleration"]
        q, v, rate = self.q.tolist(), self.v.tolist(), self.loop.rate
        slope_v = pullback(self.graph, [self.loop.value], [1.0], loads(v))
        seeds = dict(zip([self.loop.t.index, *loads(q), *loads(v)], [1.0, *v, *a]))
        nominal = tangents(self.graph, [self.loop.value], seeds)[0]
        for model in self.models:
            right = [(self.at_model(x, model), 0.0) for x in rest] + [(nominal, rate)]
            if not (all(map(self.affine, rest)) and self.same(right)):
                continue
            pairs = [(self.slope, add(nominal, dot(slope_v, solved(M, rest))))]
            if not self.same(pairs):
                continue
            lemmas = [
                self.lemma("V' = V'(vdot = a) + dV/dv . M^-1 (tau - M a - C v - g) for all parameters", pairs),
                self.lemma("V' is the promised rate, and vdot = a, where the model is right", right),
            ]
            lemmas += self.ends_suffice(M, rest)
            left, n = [self.deviation(x) for x in rest], len(v)
            self.mass = [self.about(x, model) for row in M for x in row]
            inverse = [[self.graph.load(INVERSE, n * i + j) for j in range(n)] for i in range(n)]
            decrease = add(rate, dot(slope_v, [dot(row, left) for row in inverse]))
            value, self.separable = self.about(self.loop.value, model), True
            return "acceleration, M^-1 with the error of the model only", lemmas, model, decrease, value, None
        return None

    def rate_alone(self) -> Any:
        """The form with the promised rate, for a V with numbers as parameters: valid for the plant's own ones only."""
        rate = self.at_model(self.loop.rate, self.true)
        pairs = [(self.at_model(self.slope, self.true), rate)]
        if not self.same(pairs):
            return None
        lemmas = [self.lemma("V' is the promised rate for the plant's own parameters", pairs)]
        return "the promised rate", lemmas, self.true, rate, self.loop.value, None

    def ends_suffice(self, M: Any, rest: Sequence[Any]) -> list[Lemma]:
        """Find the parameters p_k along which M and M a + C v + g change in one direction u of the joints only.

        With M + p_k m u u^T the rate g . M^-1 r is a quotient of functions affine in p_k and therefore monotone.
        """
        n, claims = len(rest), []
        if degree_in(self.graph, self.loop.value, set(self.p)):
            return []
        for k, node in enumerate(self.p):
            slopes = tangents(self.graph, [*(x for row in M for x in row), *rest], {node: 1.0})
            rows = [[*slopes[n * i : n * i + n], slopes[n * n + i]] for i in range(n)]
            pairs = [(x, 0.0) for x in minors(rows)]
            if self.same(pairs):
                self.monotone.append(k)
                claims += pairs
        return [self.lemma("V' is monotone in each parameter that acts in one direction of the joints", claims)]


def minors(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """All minors of two rows and two columns."""
    n, m = len(rows), len(rows[0])
    return [
        sub(mul(rows[i][a], rows[j][b]), mul(rows[i][b], rows[j][a]))
        for i in range(n) for j in range(i) for a in range(m) for b in range(a)
    ]  # fmt: skip


def solved(M: Sequence[Sequence[Any]], b: Sequence[Any]) -> list[Any]:
    """x of M x = b for symmetric M by a symbolic L D L^T factorisation."""
    n = len(b)
    L, D = [[0.0] * n for _ in range(n)], []
    for j in range(n):
        D.append(_less(M[j][j], [mul(mul(L[j][k], L[j][k]), D[k]) for k in range(j)]))
        for i in range(j + 1, n):
            L[i][j] = div(_less(M[i][j], [mul(mul(L[i][k], L[j][k]), D[k]) for k in range(j)]), D[j])
    y: list[Any] = []
    for i in range(n):
        y.append(_less(b[i], [mul(L[i][k], y[k]) for k in range(i)]))
    x: list[Any] = [0.0] * n
    for i in reversed(range(n)):
        x[i] = _less(div(y[i], D[i]), [mul(L[k][i], x[k]) for k in range(i + 1, n)])
    return x


def _less(a: Any, terms: Sequence[Any]) -> Any:
    for term in terms:
        a = sub(a, term)
    return a


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    total: Any = 0.0
    for x, y in zip(a, b, strict=True):
        total = add(total, mul(x, y))
    return total


def _numbers(x: Any) -> list[Any]:
    return np.asarray(x, object).ravel().tolist()


def _array(x: Sequence[Any]) -> Any:
    return symbol_array(list(x), (len(x),))
