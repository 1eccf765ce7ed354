"""Which code a closed loop runs in: when it is compiled, whether that is the loop itself, and what is said if not."""

from __future__ import annotations

import copy
import threading
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.compiler import budget
from geomctrl.compiler.code import enabled
from geomctrl.control.monitors import Monitor, Sample
from geomctrl.control.sensors.sensor import Truth
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.lie.groups import Rn
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.tracing.symbols import UntraceableError

from .law import OF_STATE, agree
from .law_memory import Cell, covering, value_at
from .loop_twins import is_memory, law_of, twins_of
from .machine import Machine
from .trace import trace_loop
from .traced_loop import TracedLoop
from .twins import Twins

WORTH = 16_000  # evaluations of the law that take Python as long as tracing and compiling take
KEPT = 64  # traces in memory
STATES = 5  # at which a compiled loop is compared with the one in Python


class Refused(NamedTuple):
    """Why a loop is not traced; twins: what its words name by id lives as long as this."""

    reason: str
    twins: Twins


_lock = threading.Lock()
_traces: OrderedDict[tuple, TracedLoop | Refused] = OrderedDict()
_cells: dict[tuple, dict[str, Cell]] = {}  # what laws of a class are known to remember
_said: set[str] = set()


def checked_choice(compiled: Any) -> bool | str:
    if isinstance(compiled, bool) or (isinstance(compiled, str) and compiled == "auto"):
        return compiled
    raise ArgumentError(f'compiled: expected "auto", True or False, got {compiled!r:.40}')


def machine_for(loop: Any, record: Any, compiled: bool | str, strict: bool, steps: float) -> Machine | None:
    """The machine that runs a loop whose first sample has been taken; None where Python does.

    steps: of the run, about. Raises UntraceableError where `compiled` is True and the loop does not trace.
    """
    if compiled is False or (compiled == "auto" and steps * len(loop.tableau.c) < WORTH):
        return None
    if not enabled():
        if compiled is True:
            raise ModelError("compiled: the compiler is off (GEOMCTRL_COMPILER=off)")
        return None
    try:
        traced, values = known_trace(loop, record.watchers, strict)
    except UntraceableError as error:
        if compiled is True:
            raise
        say(f"this loop runs in Python: {error}")
        return None
    machine = Machine(traced)
    machine.numbers_are([values])
    return machine


def known_trace(loop: Any, watchers: Sequence[Any], strict: bool) -> tuple[TracedLoop, np.ndarray]:
    """(the trace of loops like this one, from memory, or made and compared with it; this one's numbers).

    Raises UntraceableError.
    """
    law = law_of(loop)
    kind = type(law), type(getattr(law, "reference", None))
    try:
        cells = covering(_cells.get(kind, {}), law) if loop.hold else {}
        twins, _ = met(loop, watchers, cells)
        key = twins.key()
    except UntraceableError:
        raise
    except Exception as error:  # of what a user's object does when it is looked at
        raise UntraceableError(f"{type(loop.controller).__name__}: {type(error).__name__}: {error!s:.200}") from None
    sensing = () if loop.sensing is None else loop.sensing.words
    others = loop.hold > 0, loop.tableau, loop.z_shape, strict, sensing
    key = *key, *others
    own = (*key, twins.values.tobytes())  # of a trace that has a loop's numbers for constants
    with _lock:
        found = _traces.get(key) or _traces.get(own)
        if found is None:
            try:
                found = _made(loop, watchers, strict, cells)
            except UntraceableError as error:
                found = Refused(str(error), twins)
            else:
                if (more := found.law_memory.cells) != cells:
                    _cells[kind] = _cells.get(kind, {}) | more
                    twins, _ = met(loop, watchers, more)
                    key = *twins.key(), *others
                    own = *key, twins.values.tobytes()
        key = own if found.twins.constant else key
        _traces[key] = found
        _traces.move_to_end(key)
        while len(_traces) > KEPT:
            _traces.popitem(last=False)
    if isinstance(found, Refused):
        raise UntraceableError(found.reason)
    return found, twins.values


def met(loop: Any, watchers: Sequence[Any], cells: Mapping[str, Cell] | None = None) -> tuple[Twins, Any]:
    """What is met in a loop, and copies of its objects. cells: what its law remembers, which is no part of that."""
    twins = Twins(cells=cells)
    return twins, twins_of(loop, watchers, twins, lambda watcher, name, x: copy.copy(x))


def _made(loop: Any, watchers: Sequence[Any], strict: bool, cells: Mapping[str, Cell]) -> TracedLoop:
    try:
        traced = trace_loop(loop, watchers, strict=strict, cells=cells)
    except UntraceableError:  # perhaps one of its own numbers is asked what a symbol does not know
        traced = trace_loop(loop, watchers, strict=strict, cells=cells, constant=True)
    operations = max(trace.operations for trace in traced.equations.traces.values())
    if operations > budget.OPERATIONS:
        raise UntraceableError(f"{operations} operations, at most {budget.OPERATIONS} are compiled")
    _compare(loop, watchers, traced)
    return traced


# --- is it the same loop? ----------------------------------------------------------------------------------------


def _compare(loop: Any, watchers: Sequence[Any], traced: TracedLoop) -> None:
    """Raise UntraceableError unless a sample, compiled, is what it is in Python, at random states.

    Copies of the objects are asked, so that what they may count, log or draw is not what the run does.
    """
    law = traced.law_memory
    twins, twin = met(loop, watchers, law.cells)
    own = copy.copy(loop)
    own.now, own.controller = twin.plant, twin.controller
    own.reference = getattr(twin.controller, "reference", None)
    own.rates = np.zeros_like(loop.rates)
    own.plant_rates = own.rates if loop.plant_rates is loop.rates else np.zeros_like(loop.plant_rates)
    first = 2 * loop.plant.robot.nv
    own.z_rates = own.rates[first : first + loop.z_group.dim]
    machine = Machine(traced)
    machine.numbers_are([twins.values])
    for place in traced.memory:
        x = getattr(watchers[place.watcher], place.name)
        machine.remembered[place.first : place.first + place.size, 0] = np.ravel(x)
    machine.remembered[traced.worst :] = np.inf  # nothing is worse: a strict loop has a result
    if loop.sensing is not None:
        own.sensing = copy.copy(loop.sensing)
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"), twins.used(remembering=True):
        for t in np.linspace(0.0, 3.7, STATES).tolist():
            y = _state(loop, rng)
            machine.time[0], machine.y[:, 0] = t, y
            twins.reset(True)
            machine.remember(0, twin.controller)
            if loop.sensing is not None:
                own.sensing.hold(loop.sensing.area)
                machine.area[:, 0] = loop.sensing.area
                at = traced.commanded[0].first  # of the torques
                machine.held[at : at + loop.inputs, 0] = loop.command.tau
            try:
                expected = _sample(own, twin.watchers, t, y)
            except Exception as error:  # a state that the law was not made for: the run would end there
                if machine.look() is None:
                    continue
                raise UntraceableError(
                    f"compiled, the loop has a result at t = {t:g}, where Python raises {type(error).__name__}: {error}"
                ) from None
            for path, cell in law.cells.items():
                if cell.size and (numbers := cell.encoded(value_at(twin.controller, path))) is not None:
                    expected["memory", path] = numbers
            found = machine.look()
            if found is not None:
                _hold_against(expected, found, t)
            elif all(np.isfinite(x).all() for x in expected.values()):
                raise UntraceableError(f"compiled, the loop has no result at t = {t:g}, where it has one in Python")


def _hold_against(expected: dict[tuple[str, str], Any], found: dict[tuple[str, str], Any], t: float) -> None:
    if {name for name in found if name[0] == "signal"} != {name for name in expected if name[0] == "signal"}:
        raise UntraceableError(f"compiled, other signals are recorded than in Python at t = {t:g}")
    for name, x in expected.items():
        if name not in found or np.shape(x) != np.shape(found[name]) or not agree(x, found[name]):
            raise UntraceableError(
                f"compiled, {' '.join(name).strip()} is not what it is in Python at t = {t:g}: something draws"
                " random numbers, or knows more than t, q, v and z"
            )


def _state(loop: Any, rng: np.random.Generator) -> np.ndarray:
    """A random state y about the loop's own."""
    robot, y = loop.plant.robot, loop.y.copy()
    q, v, z = loop.parts
    y[q], y[v] = random_configuration(robot, rng), rng.normal(size=robot.nv)
    if isinstance(loop.z_group, Rn):
        y[z] += 0.1 * (1.0 + np.abs(y[z])) * rng.normal(size=len(y[z]))
    if loop.plants is not None:
        y[loop.plants] += 0.1 * (1.0 + np.abs(y[loop.plants])) * rng.normal(size=len(y[loop.plants]))
    return y


def _sample(own: Any, watchers: Sequence[Any], t: float, y: np.ndarray) -> dict[tuple[str, str], Any]:
    """What a sample finds in Python, by the names of the compiled one."""
    y.setflags(write=False)
    q, v, z = own.split(y)
    if own.sensing is not None:
        at_work = own.sensing.at_work(own.command.tau)  # up to now
        own.sensing.measure(Truth(t, q, v, at_work, own.plant_state(y), own.now), own.sensing.places)
    command = own.asked(own.controller, t, q, v, z)
    tau, x = command.tau, own.plant_state(y)
    applied = own.now.applied(t, q, v, own.drive(t, q, v, tau, x), x)
    found = {("rates", ""): own.field(t, y, command).copy(), ("tau", "tau"): np.asarray(command.tau, float)}
    of_state = {(name, name): getattr(command, name) for name in OF_STATE if own.hold}
    found |= {key: np.asarray(z_made, float) for key, z_made in of_state.items() if z_made is not None}
    found |= {("signal", name): np.asarray(x, float) for name, x in command.signals.items()}
    if own.plant.actuators:
        found["applied", "applied"] = np.asarray(applied, float)
    sample = Sample(
        t, q, v, z, tau, float(y[-1]), own.now, False, own.group, y, own.reference, command.signals, x, applied,
        {} if own.sensing is None else own.sensing.measured,
    )  # fmt: skip
    for k, watcher in enumerate(watchers):
        memory = {name: copy.copy(x) if is_memory(x) else x for name, x in vars(watcher).items()}
        if isinstance(watcher, Monitor):
            found["monitor", watcher.name] = np.asarray(watcher.measure(sample), float)
            found |= {("watched", name): np.asarray(x, float) for name, x in watcher.signals.items()}
        else:
            watcher.add(sample)
        found |= {
            ("memory", f"{k}.{n}"): np.asarray(x, float) for n, x in vars(watcher).items() if is_memory(memory[n])
        }
        vars(watcher).clear()
        vars(watcher).update(memory)
    if own.sensing is not None:
        found |= {("measured", name): x for name, x in own.sensing.measured.items()}
    if own.reference is not None:
        found |= {("desired", name): x for name, x in zip("qva", sample.desired or ())}
    return found


def say(message: str) -> None:
    if message not in _said:
        _said.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=5)
