"""Equations of a closed loop in tracking errors, for references that move, and the period of these equations.

With q = q_d(t) + e and v = q_d'(t) + de the desired motion becomes the equilibrium e = de = 0. Terms of the law such as
q - q_d(t) must not be enclosed as differences, which would make them as uncertain as q_d over an interval of times.
So q_d, q_d' and q_d'' are first separate inputs; expressions that do not depend on them, as an identity, are replaced
by their values where these inputs are zero.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from geomctrl.control.compiled.proving import NUMBERS, TracedClosedLoop
from geomctrl.control.friction import Friction
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.tracing.derivatives import loads, tangents
from geomctrl.tracing.proofs.identities import degree_in, identical
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.symbols import Symbol, add, is_symbol, mul, sub

from .decided import decided, replaced, with_symbols

DESIRED = 11  # further array of the graph: q_d, q_d' and q_d''
SLIDING = 12  # further array of the graph: w
PHASES = 13  # further array of the graph: phases of sinusoids in time
MAX_CYCLES = 6  # of the fastest sinusoid in a common period
SAMPLES = 4  # random points at which an expression must not depend on the reference to be tested exactly

Pairs = list[tuple[Any, Any]]


def apart(plant: Plant, disturbed: bool = False, rubbing: bool = False) -> Plant:
    """The plant with a copy of its robot, so that its parameters differ symbolically from the controller's.

    disturbed: whether each joint has a torque with a symbol of its own, as the preload of its spring. rubbing: whether
    the coefficients of its friction have symbols of their own, too.
    """
    robot, moved = plant.robot, copy.copy(plant)
    object.__setattr__(moved, "robot", robot.with_parameters(robot.parameters))
    if disturbed:
        stiffness, preload = plant._springs or (np.zeros((robot.nq, robot.nv)), np.zeros(robot.nv))
        named = np.where(preload == 0.0, 1.0, preload)  # a zero would not become a symbol
        object.__setattr__(moved, "_springs", (stiffness, named))
    if rubbing:
        coefficients = plant.friction_parameters.reshape(2, -1)
        viscous, coulomb = np.where(coefficients == 0.0, 1.0, coefficients)  # likewise
        object.__setattr__(moved, "friction", Friction(viscous, coulomb, plant.friction.smoothing))
        object.__setattr__(moved, "_coefficients", None)  # the friction above is called instead of the kernel
    return moved


def preloads(plant: Plant) -> np.ndarray:
    """The constant joint torques (nv,) of the plant's springs."""
    return np.zeros(plant.robot.nv) if plant._springs is None else plant._springs[1]


def in_errors(loop: TracedClosedLoop) -> tuple[TracedClosedLoop, Pairs]:
    """The loop whose state is (e, de), and the identities that this relies on.

    The loads of q and v of the new loop are e and de. Its extra "desired" is (q_d, v_d, a_d) as the reference has it.
    """
    graph, (q, v, _), t = loop.graph, loop.split(loop.y), loop.t.index
    n, everywhere = len(v), (np.full(len(v), -np.inf), np.full(len(v), np.inf))
    parameters = [*loop.extra["parameters"], *loop.extra["others"]]
    p = np.full(len(parameters), np.inf)
    loop = decided(loop, {"q": everywhere, "v": everywhere, "p": (-p, p), "t": ([0.0], [np.inf])})
    motions = [loop.extra["desired"][:n]]
    for _ in range(2):
        motions.append(tangents(graph, motions[-1], {t: 1.0}))
    inputs = [[graph.load(DESIRED, n * k + i) for i in range(n)] for k in range(3)]
    free = set(loads(parameters))
    numbers = {(NUMBERS, k): x for k, x in enumerate(loop.numbers.tolist()) if graph.load(NUMBERS, k).index not in free}
    new: dict[int, Any] = {}
    pairs: Pairs = []
    if not identical(graph, list(zip(loop.extra["desired"][n : 2 * n], motions[1])), numbers):
        raise ArgumentError("controller: expected a reference whose v is shown to be the derivative of its q")
    for own, derived, symbols in zip(np.array_split(np.array(loop.extra["desired"], object), 3), motions, inputs):
        for i, (x, y) in enumerate(zip(own.tolist(), derived)):
            if is_symbol(x) and identical(graph, [(x, y)], numbers):
                symbols[i] = new.setdefault(x.index, symbols[i])  # joints that move alike share their inputs
                pairs += [] if x is y else [(x, y)]
    for x, symbol in zip([*q.tolist(), *v.tolist()], [*inputs[0], *inputs[1]]):
        new[x.index] = add(symbol, x)
    back = {symbol.index: x for row, xs in zip(inputs, motions) for symbol, x in zip(row, xs)}
    field = [*loop.field]
    for i in range(n):
        field[i], field[n + i] = sub(v[i], motions[1][i]), sub(loop.field[n + i], motions[2][i])
    extra = {**loop.extra, "power": [], "angles": q.tolist()}
    for v_ref, *rest in loop.extra["power"]:
        extra["power"].append(([sub(a, b) for a, b in zip(v_ref, motions[1])], *rest))
    if extra["acceleration"] is not None:
        a, *rest = extra["acceleration"]
        extra["acceleration"] = [sub(x, y) for x, y in zip(a, motions[2])], *rest
    desired = extra.pop("desired")
    parts: list[Any] = [loop.value, loop.rate, field, extra, loop.good]
    ends: list[Any] = []
    with_symbols(parts, ends.append)
    moved = substituted(graph, ends, new)
    for x, y in _independent(graph, moved, loads([x for row in inputs for x in row]), numbers):
        pairs.append((x, y))
    shortened = substituted(
        graph, moved, {graph.operand(x): y for x, y in pairs if is_symbol(x) and _has(graph, x, back)}
    )
    result = dict(zip(loads(ends), substituted(graph, shortened, back)))
    value, rate, field, extra, good = with_symbols(parts, lambda x: result[x.index])
    return replace(loop, value=value, rate=rate, field=field, extra={**extra, "desired": desired}, good=good), pairs


def in_coordinates(loop: TracedClosedLoop, moving: bool) -> TracedClosedLoop:
    """What Python evaluates of the loop, without omitting any operation; moving: with (e, de) as its state."""
    (q, v, _), extra = loop.split(loop.y), {k: loop.extra[k] for k in ("tau", "pivots")}
    places = zip([*q.tolist(), *v.tolist()], loop.extra["desired"] if moving else ())
    return replaced(replace(loop, rate=0.0, extra=extra), {x.index: add(x, y) for x, y in places})


def in_estimation_errors(loop: TracedClosedLoop) -> TracedClosedLoop:
    """The loop whose state z is z - z_true, with the true parameters of its extra "estimated", which are constant."""
    z = loop.split(loop.y)[2]
    if loop.displacement is not None:
        raise ArgumentError("controller: expected a state z that is a vector")
    true = zip(z.tolist(), loop.extra["estimated"], strict=True)
    return replaced(loop, {x.index: add(x, y) for x, y in true})


def in_sliding_variables(
    loop: TracedClosedLoop, x: list[int], w_own: list[Any], q_d: np.ndarray, gain: np.ndarray, ends: list[Any]
) -> tuple[list[int], list[Any], TracedClosedLoop, dict[int, Any]]:
    """x, expressions and the loop with w = v + gain (q - q_d) as a coordinate instead of v, and v by its nodes.

    w_own: expressions that are known to be w."""
    graph, n = loop.graph, len(gain)
    e = [sub(Symbol(graph, k), origin) for k, origin in zip(x[:n], np.asarray(q_d, float).tolist())]
    w = [graph.load(SLIDING, i) for i in range(n)]
    velocities: dict[int, Any] = {}
    for node, y, row in zip(x[n:], w, gain.tolist()):
        velocities[node] = y
        for a, k in zip(row, e):
            velocities[node] = sub(velocities[node], mul(a, k))
    new = {y.index: z for y, z in zip(w_own, w) if is_symbol(y)} | velocities
    parts: list[Any] = [ends, loop.value, loop.rate, loop.slope, loop.field, loop.good]
    symbols: list[Any] = []
    with_symbols(parts, symbols.append)
    moved = dict(zip(loads(symbols), substituted(graph, symbols, new)))
    ends, value, rate, slope, field, good = with_symbols(parts, lambda y: moved[y.index])
    loop = replace(loop, value=value, rate=rate, field=field, good=good)
    loop.__dict__["slope"] = slope  # the derivative along the field of (q, v), a cached property
    return [*x[:n], *loads(w), *x[2 * n :]], ends, loop, velocities


def _has(graph: Any, x: Any, inputs: Any) -> bool:
    return any(k in inputs for k in graph.needed([graph.operand(x)]))


def _independent(graph: Any, ends: Sequence[Any], inputs: list[int], numbers: Any) -> Pairs:
    """Sums that contain `inputs`, but do not depend on them, with their values where these are zero."""
    order, rng = graph.needed([graph.operand(x) for x in ends]), np.random.default_rng(0)
    touched: set[int] = set(inputs)
    for k in order:
        op, *rest = graph.nodes[k]
        if op not in ("load", "const") and any(x in touched for x in rest):
            touched.add(k)
    sums = [k for k in order if k in touched and graph.nodes[k][0] in ("add", "sub")]
    values: dict[int, Any] = {}
    for k in order:
        if graph.nodes[k][0] == "load":
            x = numbers.get(tuple(graph.nodes[k][1:]))
            values[k] = np.tile(rng.uniform(0.5, 1.5, SAMPLES) if x is None else np.full(SAMPLES, x), 2)
    for k in inputs:
        values[k] = rng.uniform(-1.0, 1.0, 2 * SAMPLES)
    with np.errstate(all="ignore"):
        rows = Program(graph, [Symbol(graph, k) for k in sums]).values(values, 2 * SAMPLES)
    first, second = rows[:SAMPLES], rows[SAMPLES:]
    close = (np.abs(first - second) <= 1e-9 * (1.0 + np.abs(first))).all(0)
    pairs: Pairs = []
    for k in np.array(sums)[close].tolist():
        x = Symbol(graph, k)
        (y,) = substituted(graph, [x], dict.fromkeys(inputs, 0.0))
        if identical(graph, [(x, y)], numbers):
            pairs.append((x, y))
    return pairs


def speeds_of(graph: Any, ends: Sequence[Any], t: int, numbers: dict[int, float]) -> dict[int, float]:
    """The angular speeds omega [rad/s] of the nodes c + omega t in `ends`, the arguments of sines and cosines.

    Raises ArgumentError if t occurs elsewhere.
    """
    order = graph.needed([graph.operand(x) for x in ends])
    speeds: dict[int, float] = {}
    depends = {t}  # nodes that contain t outside such sines and cosines
    for k in order:
        op, *rest = graph.nodes[k]
        if op in ("load", "const") or not depends.intersection(rest):
            continue
        speed = _speed(graph, rest[0], t, numbers) if op in ("sin", "cos") else None
        if speed is None:
            depends.add(k)
        else:
            speeds[rest[0]] = speed
    if not speeds or depends.intersection(graph.operand(x) for x in ends):
        raise ArgumentError(
            "box: expected `times`, because time is not shown to enter the loop by sinusoids c + omega t alone, whose"
            " phases cover all times"
        )
    return speeds


def period_of(speeds: Sequence[float]) -> float | None:
    """A time [s] that is a multiple of all periods, rounded up; None if no simple ratios of the speeds are exact."""
    ratios = [Fraction(abs(x)) / Fraction(abs(speeds[0])) for x in speeds]
    cycles = math.lcm(*(x.denominator for x in ratios))
    if cycles * max(ratios) > MAX_CYCLES:
        return None
    return 2.0 * math.pi * cycles / abs(speeds[0]) * (1.0 + 2.0**-48)


def with_phases(graph: Any, ends: list[Any], speeds: dict[int, float], t: int) -> tuple[list[Any], list[int], float]:
    """`ends` with a free phase for each speed instead of time, the nodes of the phases, and the longest period [s].

    All phases in [0, 2 pi] include those of all times, whatever the ratios of the speeds.
    """
    distinct = sorted({abs(x) for x in speeds.values()})
    phases = [graph.load(PHASES, i) for i in range(len(distinct))]
    new: dict[int, Any] = {}
    for k, speed in speeds.items():
        (start,) = substituted(graph, [Symbol(graph, k)], {t: 0.0})
        phase = phases[distinct.index(abs(speed))]
        new[k] = add(start, phase) if speed > 0.0 else sub(start, phase)
    return substituted(graph, ends, new), loads(phases), 2.0 * math.pi / distinct[0]


def _speed(graph: Any, phase: int, t: int, numbers: dict[int, float]) -> float | None:
    """omega of a phase c + omega t; None if it is not one number."""
    if degree_in(graph, Symbol(graph, phase), {t}) != 1:
        return None
    (speed,) = tangents(graph, [Symbol(graph, phase)], {t: 1.0})
    needed = [k for k in graph.needed([graph.operand(speed)]) if graph.nodes[k][0] == "load"]
    if not all(k in numbers for k in needed):
        return None
    low, high = Program(graph, [speed]).enclosed({k: (numbers[k], numbers[k]) for k in needed}, 1)
    return float(low[0, 0]) if low[0, 0] == high[0, 0] != 0.0 else None
