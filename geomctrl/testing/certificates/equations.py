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

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.control.compiled.proving import NUMBERS, TracedClosedLoop, trace_closed_loop
from geomctrl.control.compiled.robot_numbers import armatures, inertial_parameters
from geomctrl.control.friction import Friction
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.tracing import symbols
from geomctrl.tracing.arrays import symbol_array
from geomctrl.tracing.derivatives import loads, tangents
from geomctrl.tracing.proofs.identities import chance, degree_in, identical
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.polynomials import expanded
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.requirements import requirements
from geomctrl.tracing.symbols import Symbol, add, is_symbol, mul, sub
from geomctrl.tracing.untraceable import UntraceableError

from .decided import decided, replaced
from .forms import ERRORS, INVERSE, Forms, Lemma, dot
from .tracking import (
    apart,
    in_coordinates,
    in_errors,
    in_estimation_errors,
    in_sliding_variables,
    period_of,
    preloads,
    speeds_of,
    with_phases,
)

ANGLES, MOTION = 7, 9  # further arrays of the graph: q inside sines and cosines, an acceleration
TIME = 1.0  # s: an arbitrary time; lemmas hold for all times
REFERENCE = "the reference's velocity is the rate of its position, and the law's errors are those from it"
SEARCHED_PERIODS = 20  # longest periods of sinusoids of several frequencies in which counterexamples are sought
NEEDS_TIMES = (
    "controller: its V, its V' or the set where it is defined depends on time: expected a Box with `times` in"
    " which it is certified"
)
LARGEST_SOLVED = 6  # joints up to which M x = b is solved symbolically


@dataclass(frozen=True, eq=False)
class Equations:
    """V and V' of an autonomous loop as expressions of `graph`.

    x: nodes of (q, v), then of z - z_true of an adaptive law. angles: nodes for q inside sines and cosines, None for
    q_i in none. parameters, errors: nodes of the true parameters and of their deviations from `model`.
    numbers: values of all other inputs. `decrease`: V'.
    `potential`: U(q) if V = 1/2 w . M w + U with dw/dv = 1 and w = 0 at rest at q_d, else None. `mass`, `inverse`: if
    V' contains M^-1, the entries of M by rows and the nodes for the entries of its inverse. `monotone`: parameters in
    which V' is then monotone if M is positive definite, so that it is largest at the ends of their intervals. `lemmas`,
    `form`: what this relies on. timed: whether the last parameter is time (boxes with times); the others are the
    robot's, joint torques and friction coefficients. times: first and last time of the claim [s]. places: for a moving
    reference, q as expressions of x, which then are errors, and time. gain: None, or Lambda (n, n) if V = 1/2 w . M w
    with w = e' + Lambda e and x = (q, w).
    w: the vector of V = 1/2 w . M w + U.
    weights: bounds (2, m, m) of P if V = 1/2 w . M w + 1/2 z . P z with the errors z of an adaptive law's state.
    phases: nodes of the phases of sinusoids of several frequencies, parameters before time, which then only `loop` has.
    evaluated: the loop with everything that Python evaluates, of which the other expressions may omit terms.
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
    evaluated: TracedClosedLoop
    timed: bool = False
    times: tuple[float, float] = (0.0, np.inf)
    places: list[Any] = field(default_factory=list)
    gain: np.ndarray | None = None
    phases: list[int] = field(default_factory=list)
    w: list[Any] = field(default_factory=list)
    weights: np.ndarray = field(default_factory=lambda: np.zeros((2, 0, 0)))

    @cached_property
    def placed(self) -> Program:
        return Program(self.graph, self.places)

    @property
    def robots(self) -> slice:
        """Indices of the robot's parameters."""
        return slice(0, len(self.loop.extra["parameters"]))

    @property
    def n(self) -> int:
        return len(self.q_d)

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

    def velocities(self, x: np.ndarray) -> np.ndarray:
        """v, or the error of v, at states x (..., 2n)."""
        v = x[..., self.n : 2 * self.n]
        return v if self.gain is None else v - x[..., : self.n] @ self.gain.T

    def depends_on_time(self, x: Any) -> bool:
        """Whether x depends on time, perhaps through angles or phases."""
        times = {*self.parameters[len(self.parameters) - 1 - len(self.phases) :], self.loop.t.index}
        angles = {k for k in self.angles if k is not None} if self.places else set()
        return self.timed and degree_in(self.graph, x, {*times, *angles}) > 0

    def plus(self, rate: float) -> Any:
        """V' + rate V."""
        return add(self.decrease, mul(self.value, rate)) if rate else self.decrease

    def along_vector_field(self, rate: float) -> Any:
        """V' + rate V along the vector field, without lemmas, angles or deviations."""
        return add(self.loop.slope, mul(self.loop.value, rate)) if rate else self.loop.slope


def equations(
    controller: Any, plant: Plant, q_d: np.ndarray, timed: bool = False, within: Mapping[str, Any] | None = None,
    moving: bool = False, disturbed: bool = False, rubbing: bool = False, sliding: bool = False,
) -> Equations:  # fmt: skip
    """Derive the equations.

    within: intervals of "q", "v", "p" and "t" of all claims; branches decided there are removed. moving: whether q and
    v are errors about the controller's reference. disturbed, rubbing: whether further parameters are joint torques, and
    then coefficients of friction. sliding: whether x is (q, w) instead of (q, v) if V = 1/2 w . M w with
    w = e' + Lambda e. Raises UntraceableError if the loop can not be traced, has no V, or if V or V' depend on time and
    the box has no times.
    """
    others = np.append(preloads(plant) if disturbed else [], plant.friction_parameters if rubbing else [])
    plant = apart(plant, disturbed, rubbing)
    as_traced = trace_closed_loop(plant, controller, _moving if moving else _further)
    pushes, rubs = as_traced.extra.pop("torques"), as_traced.extra.pop("friction")
    as_traced, adaptive = _with_true_parameters(as_traced), as_traced.split(as_traced.y)[2] is not None
    evaluated = in_coordinates(as_traced, moving)
    as_traced.extra["others"] = [*(pushes if disturbed else []), *(rubs if rubbing else [])]
    as_traced, pairs = in_errors(as_traced) if moving else (as_traced, [])
    loop = as_traced if within is None else decided(as_traced, within)
    graph, p = loop.graph, loads([*loop.extra["parameters"], *loop.extra["others"]])
    forms = Forms(loop, controller, plant, p, others, q_d)
    if disturbed:
        _check_disturbances(forms, loads(pushes), type(plant).__name__)
    exact = within is not None and all(np.array_equal(end, forms.true) for end in within["p"])
    form, lemmas, model, decrease, value, potential = forms.best(exact, None if within is None else within["p"])
    lemmas = [*lemmas, *([forms.lemma(REFERENCE, pairs)] if pairs else [])]
    q, v, z = loop.split(loop.y)
    x = loads([*q.tolist(), *v.tolist(), *(z.tolist() if adaptive else [])])
    moved, angles = _separate_angles(forms, loads(loop.extra["angles"]) if moving else x[: len(q)])
    ends = [decrease, value, 0.0 if potential is None else potential, *forms.mass, *forms.w]
    decrease, value, U, *mass = substituted(graph, ends, moved)
    mass, w = mass[: len(forms.mass)], mass[len(forms.mass) :]
    ends = [graph.operand(x) for x in (decrease, value, loop.good) if x is not True]
    inputs = {k for k in graph.needed(ends) if graph.nodes[k][0] == "load"}
    if exact and not moving and not adaptive and np.array_equal(model, forms.true):
        (decrease, value, U), as_traced, lemmas = _expanded(forms, as_traced, x, angles, [decrease, value, U], lemmas)
    times = (0.0, np.inf) if within is None else (max(float(within["t"][0][0]), 0.0), float(within["t"][1][0]))
    places, phases = loop.extra["angles"] if moving else [], []
    if moving and not timed and loop.t.index in inputs:
        ends = [x for x in (decrease, value, U, *mass, forms.slope, as_traced.value, loop.good) if x is not True]
        speeds = speeds_of(graph, ends, loop.t.index, forms.fixed)
        timed, period = True, period_of(list(speeds.values()))
        if period is None:
            ends = [decrease, value, U, *mass, *w, *places]
            (decrease, value, U, *rest), phases, period = with_phases(graph, ends, speeds, loop.t.index)
            k, j = len(mass), len(mass) + len(w)
            mass, w, places = rest[:k], rest[k:j], rest[j:]
        times = (0.0, period * (SEARCHED_PERIODS if phases else 1))
    timed = timed and loop.t.index in inputs
    if loop.t.index in inputs and not timed:
        raise UntraceableError(NEEDS_TIMES)
    errors, gain = forms.errors, forms.gain if sliding else None
    if gain is not None:
        ends = [decrease, value, U, *mass]
        x, ends, as_traced, velocities = in_sliding_variables(as_traced, x, forms.w, q_d, gain, ends)
        (decrease, value, U, *mass), evaluated = ends, replaced(evaluated, velocities)
    if timed:
        further = [*phases, loop.t.index]
        errors = [*errors, *(graph.load(ERRORS, len(p) + i).index for i in range(len(further)))]
        p, model = [*p, *further], np.append(model, np.full(len(further), TIME))
    return Equations(
        graph, x, np.asarray(q_d, float), angles, p, errors, model,
        forms.fixed, value, decrease, None if potential is None else U, mass,
        loads([graph.load(INVERSE, k) for k in range(len(mass))]), forms.monotone, form, lemmas, as_traced, evaluated,
        timed, times, places, gain, phases, w, forms.weights,
    )  # fmt: skip


def _with_true_parameters(loop: TracedClosedLoop) -> TracedClosedLoop:
    """The loop with one symbol for each true parameter, and with errors of estimates as its state z."""
    loop = replaced(loop, dict(zip(loads(loop.extra.pop("declared")), loop.extra["parameters"])))
    return loop if loop.split(loop.y)[2] is None else in_estimation_errors(loop)


def _separate_angles(forms: Forms, nodes: list[int]) -> tuple[dict[int, Any], list[int | None]]:
    """Replacements of sines and cosines by those of further inputs, and the nodes of these, None where none is used."""
    graph = forms.graph
    moved: dict[int, Any] = {k: 0.0 for k, z in forms.fixed.items() if z == 0.0}
    angles: list[int | None] = []
    for i, index in enumerate(nodes):
        angle, used = graph.load(ANGLES, i), False
        for op in ("sin", "cos") if forms.separable else ():  # otherwise cancelling terms must stay together
            node = graph.node(op, index)
            moved[node], used = symbols.unary(op, angle), True
        angles.append(angle.index if used else None)
    return moved, angles


def _expanded(
    forms: Forms, loop: TracedClosedLoop, x: list[int], angles: list[int | None], ends: list[Any], lemmas: list[Lemma]
) -> tuple[list[Any], TracedClosedLoop, list[Lemma]]:
    """`ends` with expanded polynomials for the plant's own parameters, the loop with further numbers, and lemmas."""
    origins = dict(zip(x, [*forms.q_d.tolist(), *[0.0] * len(x)]))
    numbers = {**forms.fixed, **dict(zip(forms.p, forms.true.tolist())), **dict.fromkeys(forms.errors, 0.0)}
    keys = {forms.graph.nodes[k][1:]: y for k, y in numbers.items()}
    used, pairs = [k for k in angles if k is not None], []
    coefficients: dict[float, Any] = {}

    def constant(x: float) -> Any:
        return coefficients.setdefault(x, forms.graph.load(NUMBERS, len(forms.loop.numbers) + len(coefficients)))

    for i, end in enumerate(ends):
        new = expanded(forms.graph, end, origins, used, numbers, constant)
        keys |= {forms.graph.nodes[k.index][1:]: x for x, k in coefficients.items()}
        if new is not None and identical(forms.graph, [(end, new)], keys):
            pairs.append((end, new))
            ends[i] = new
    forms.fixed |= {k.index: x for x, k in coefficients.items()}
    claim = "V and V' as sums of different power products, with sin^2 + cos^2 = 1"
    lemma = Lemma(claim, chance(forms.graph, pairs), lambda seed: identical(forms.graph, pairs, keys, seed))
    loop = replace(loop, numbers=np.append(loop.numbers, list(coefficients)))
    return ends, loop, [*lemmas, lemma] if pairs else lemmas


def _check_disturbances(forms: Forms, torques: list[int], plant: str) -> None:
    if not forms.same(_accelerations_by(forms.graph, forms.loop, torques)):
        raise ArgumentError(f"disturbance: expected a plant that adds it to its torques, got {plant}")
    if degree_in(forms.graph, forms.loop.value, set(torques)):
        raise UntraceableError("controller: V depends on the disturbance, which may change at any time")


def _accelerations_by(graph: Any, loop: TracedClosedLoop, torques: list[int]) -> list[tuple[Any, Any]]:
    """The pairs that are identical if the joint torques accelerate the robot by M^-1."""
    n, pairs = len(torques), []
    for k, torque in enumerate(torques):
        rates = tangents(graph, loop.field[n : 2 * n], {torque: 1.0})
        pairs += [(dot(row, rates), float(i == k)) for i, row in enumerate(loop.extra["mass"])]
    return pairs


def _moving(parts: Any, t: Any, q: Any, v: Any, z: Any, command: Any) -> dict[str, Any]:
    desired = [x for part in parts.controller.reference(t)[:3] for x in _numbers(part)]
    return {**_further(parts, t, q, v, z, command), "desired": desired}


def _further(parts: Any, t: Any, q: Any, v: Any, z: Any, command: Any) -> dict[str, Any]:
    """True parameters and components of the forms as symbols, while the loop is traced."""
    robot, graph, n = parts.plant.robot, t.graph, len(v)
    extra: dict[str, Any] = {"parameters": inertial_parameters(robot), "power": [], "acceleration": None}
    extra["declared"] = _numbers(robot.parameters)  # the same numbers, read by V or by `true_parameters`
    extra["torques"] = [] if parts.plant._springs is None else _numbers(parts.plant._springs[1])
    rubs = parts.plant.friction if isinstance(parts.plant.friction, Friction) else None
    extra["friction"] = [] if rubs is None else _numbers([rubs.viscous, rubs.coulomb])
    extra["armatures"] = [x for x in armatures(robot) if is_symbol(x)]
    plant = parts.plant
    extra["tau"] = _numbers(command.tau)
    net = extra["net"] = _numbers(plant._net(t, q, v, command.tau, None))
    with requirements() as positive:
        robot.forward_dynamics(q, v, command.tau)
    extra["pivots"] = list(positive)
    extra["torque"] = [(net, [0.0] * n), *_divided(parts, t, q, v, command)]
    wrenches = None if plant.f_ext is None else plant.f_ext(t, q, v)
    candidates = [x for x in command.signals.values() if np.shape(x) == (n,)]
    motion = [graph.load(MOTION, k) for k in range(n)]
    pushed = _numbers(robot.inverse_dynamics(q, _array([0.0] * n), _array(motion)))
    columns = [tangents(graph, pushed, {k: 1.0}) for k in loads(motion)]
    extra["mass"] = [[columns[min(i, j)][max(i, j)] for j in range(n)] for i in range(n)]
    for w in map(_numbers, (*candidates, v)):
        v_ref = [sub(a, b) for a, b in zip(v.tolist(), w)]
        a_ref = tangents(graph, v_ref, dict(zip([t.index, *loads(q.tolist())], [1.0, *v.tolist()])))
        force = _numbers(robot.inverse_dynamics(q, v, _array(a_ref), _array(v_ref), f_ext=wrenches))
        momentum = tangents(graph, pushed, dict(zip(loads(motion), w)))  # M w by the recursion has tighter bounds
        extra["power"].append((v_ref, w, force, mul(dot(w, momentum), 0.5)))
    if hasattr(parts.controller, "acceleration") and n <= LARGEST_SOLVED:
        a = parts.controller.acceleration(t, q, v, z)
        extra["acceleration"] = _numbers(a), _numbers(robot.inverse_dynamics(q, v, a, f_ext=wrenches))
    if z is not None:
        extra["estimated"] = _numbers(parts.controller.true_parameters(parts.plant))
    extra["correction"] = [getattr(parts.controller, name, None) for name in ("rho", "eps", "D")]
    return extra


def _divided(parts: Any, t: Any, q: Any, v: Any, command: Any) -> list[tuple[list[Any], list[Any]]]:
    """Ways to divide the net torque into that of a law with its model and that of friction, springs and stops."""
    plant, friction, n = parts.plant, getattr(parts.controller, "friction", None), len(v)
    zero = _array([0.0] * n)
    applied = _numbers(plant._applied(t, q, v, command.tau, None))
    rest = _numbers(plant._less_friction(t, q, v, zero, None, None))
    if not isinstance(friction, Friction):
        return [(applied, rest)]
    compensated = _numbers(friction.torque(v))
    own = [sub(x, y) for x, y in zip(applied, compensated)]
    out = [(applied, rest), (own, [add(x, y) for x, y in zip(rest, compensated)])]
    if isinstance(plant.friction, Friction):  # differences of coefficients have narrower intervals
        smooth = copy.copy(plant)
        object.__setattr__(smooth, "friction", None)
        rest = _numbers(smooth._less_friction(t, q, v, zero, None, None))
        slope = zip(v.tolist(), _numbers(np.tanh(v / plant.friction.smoothing)))
        for i, (x, y) in enumerate(slope):
            (a, c), (b, d) = (
                [np.broadcast_to(k, n)[i] for k in (f.viscous, f.coulomb)] for f in (friction, plant.friction)
            )
            rest[i] = add(rest[i], add(mul(sub(a, b), x), mul(sub(c, d), y)))
        out.insert(0, (own, rest))
    return out


def _numbers(x: Any) -> list[Any]:
    return np.asarray(x, object).ravel().tolist()


def _array(x: Sequence[Any]) -> Any:
    return symbol_array(list(x), (len(x),))
