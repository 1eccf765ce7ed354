"""A controller as one compiled function: its own Python and numpy, run once on symbols.

    law = gc.compile(controller)      law(t, q, v, z) -> Command, law.operations, law.to_c(path)

Traced are plain Python with loops of fixed length, numpy and math, `so3`, `se3` and groups, the terms of a robot and
the bundled references. What can not be traced raises `UntraceableError` with the file and line: a branch on a number of
the state, scipy within the law, random numbers, printing, a memory of its own. Constants of the law (gains, parameters,
the model) are what they were when it was compiled.
"""

from __future__ import annotations

import hashlib
import math
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, one_state
from geomctrl.compiler import budget, c, c_files, cache, entries, host
from geomctrl.compiler.arrays import SymbolArray, has_symbols, requirements, symbol_array
from geomctrl.compiler.code import enabled, version
from geomctrl.compiler.llvm import module
from geomctrl.compiler.stand_ins import numpy_on_symbols
from geomctrl.compiler.symbols import Condition, Graph, UntraceableError, both, where
from geomctrl.compiler.tracing import Trace
from geomctrl.control.contracts import Command, Controller, started, wants_measurements
from geomctrl.control.desired import time
from geomctrl.errors import ArgumentError, ModelError, raised_in
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.robot import Robot
from geomctrl.terms.export import MEANINGS as OF_TERMS

from .twins import Twins

STATES = 5  # at which the compiled law is compared with the controller
AGREEMENT = 1e-9  # of the largest number: rounding, and what solving a linear system makes of it
MEANINGS = {
    **{word: OF_TERMS[word] for word in ("q", "v", "tau")},
    "t": "time [s]",
    "z": "state of the controller",
    "z_rate": "rate of the controller's state",
    "z_next": "the controller's state after the sample",
}

OF_STATE = ("z_rate", "z_next")  # what a Command says of the controller's state


def compile(controller: Controller, robot: Robot | None = None) -> CompiledLaw:
    """The controller as compiled code: a `Controller` itself, with the attributes of the one it was made from.

    robot: whose q and v it takes; default its attribute `robot`. The compiled law is compared with the controller at
    random states before it is handed out, and attributes of the controller before and after its call on symbols.

    Raises UntraceableError, which names file and line, for what can not be traced; ArgumentError for what is no
    controller, and for one that is called with `measurements`; ModelError where the compiler is off
    (GEOMCTRL_COMPILER=off).
    """
    if not enabled():
        raise ModelError("the compiler is off (GEOMCTRL_COMPILER=off): use the controller itself")
    if not isinstance(controller, Controller):
        raise ArgumentError(
            f"controller: expected an object with start() and __call__(t, q, v, z), got {controller!r:.60}"
        )
    if wants_measurements(controller):
        raise ArgumentError(
            f"controller: expected a law of t, q, v and z, got {controller!r:.60}, called with what sensors measure:"
            " the plant has them, and gc.simulate(plant, controller, ..., compiled=True) compiles both"
        )
    robot = getattr(controller, "robot", None) if robot is None else robot
    if not isinstance(robot, Robot):
        raise ArgumentError(f"robot: expected a geomctrl.Robot, the controller having none, got {robot!r:.60}")
    law = CompiledLaw(controller, robot)
    law.compare()
    return law


class CompiledLaw:
    """A controller's law as compiled code; see `compile`. All else is asked of `controller`, the one it was made from.

    operations: scalar operations of a call. uncompiled: the `controller`, by a name that no other wrapper has.
    """

    def __init__(self, controller: Controller, robot: Robot):
        self.controller, self._robot = controller, robot
        z0 = started(controller, robot)
        self._z0 = None if z0 is None else np.asarray(z0, float)
        if self._z0 is not None and not 0 < self._z0.ndim <= 2:
            raise ArgumentError(f"controller: expected a state of one or two axes, got shape {self._z0.shape}")
        self._trace, self._shapes = traced(controller, robot, self._z0)
        if self._trace.operations > budget.OPERATIONS:
            raise UntraceableError(
                f"{_name(controller)}: {self._trace.operations} operations, at most {budget.OPERATIONS} are compiled"
            )
        self.operations = self._trace.operations
        shapes = list(self._shapes.values())
        outputs = [shape if 0 < len(shape) <= 2 else (math.prod(shape),) for shape in shapes]
        inputs = [(), (robot.nq,), (robot.nv,), *([] if self._z0 is None else [self._z0.shape])]
        self._constants = np.zeros(1)  # a model array that nothing reads
        self._call = entries.entry(core(self._trace), self._constants, inputs, outputs)
        self._command = _command_of(self._shapes)

    def __reduce__(self) -> tuple:
        return CompiledLaw, (self.controller, self._robot)  # code is of one process: compiled, or read, again

    @property
    def uncompiled(self) -> Controller:
        return self.controller

    def start(self, q0: ArrayLike | None = None, v0: ArrayLike | None = None) -> np.ndarray | None:
        """The controller's own, of the robot's state at the beginning where it takes that; default neutral, at rest."""
        q0 = None if q0 is None else one_state("q0", q0, self._robot.nq)
        v0 = None if v0 is None else one_state("v0", v0, self._robot.nv)
        return started(self.controller, self._robot, q0, v0)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray | None) -> Command:
        made = self._call(t, q, v) if self._z0 is None else self._call(t, q, v, z)
        if made is not None:
            return self._command(made)
        if type(t) is not float:
            return self(number("t", t), q, v, z)
        return self.controller(time(t), q, v, z)  # it has the words

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "controller":
            raise AttributeError(name)
        return getattr(self.controller, name)

    def __repr__(self) -> str:
        return f"CompiledLaw({_name(self.controller)}, {self.operations} operations)"

    def compare(self) -> None:
        """Raise UntraceableError unless the compiled law is the controller, at random states."""
        rng = np.random.default_rng(0)
        with np.errstate(all="ignore"):  # the law's own numbers, nan included
            self._compare(rng)

    def _compare(self, rng: np.random.Generator) -> None:
        for t in np.linspace(0.0, 3.7, STATES):
            q, v, z = self._state(rng)
            expected, found = self.controller(float(t), q, v, z), self(float(t), q, v, z)
            for name, x in _parts(expected).items():
                y = _parts(found)[name]
                if np.shape(x) != np.shape(y) or not agree(x, y):
                    raise UntraceableError(
                        f"{_name(self.controller)}: compiled, {name} is not what it is in Python at t = {t:g}: the law"
                        " draws random numbers, or knows more than t, q, v and z"
                    )

    def _state(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        q, v, z = random_configuration(self._robot, rng), rng.normal(size=self._robot.nv), self._z0
        if z is not None and getattr(self.controller, "group", None) is None:
            z = z + 0.1 * (1.0 + np.abs(z)) * rng.normal(size=z.shape)
        return q, v, None if z is None else z.copy()

    def to_c(self, path: str | Path, name: str = "law", *, precision: str = "double") -> tuple[Path, ...]:
        """Write NAME.h, NAME.c and NAME_test.c into the folder `path`: the law as C99 that needs libm only.

        `int NAME(t, q, v, z, tau, z_rate, z_next, signals...)`, arrays all, with the law's constants in it. precision:
        "double" or "float". NAME_test.c compares with Python on the target. Returns the paths.
        """
        name, sizes = c_files.identifier("name", name), iter(self._trace.sizes)
        words = ["t", "q", "v", *([] if self._z0 is None else ["z"])]
        inputs = [c.Parameter(word, n, MEANINGS[word]) for word, n in zip(words, self._trace.inputs)]
        outputs = []
        for word in self._shapes:
            own = word if word in ("tau", *OF_STATE) else c_files.identifier("signal", f"signal_{word}")
            outputs.append(c.Parameter(own, next(sizes), MEANINGS.get(word, f"signal {word!r}")))
        f = c.Function(name, self._trace, inputs, outputs, c_files.real(precision))
        q, v, z = self._state(np.random.default_rng(0))
        given = [np.array([0.5]), q, v, *([] if z is None else [z.ravel()])]
        known = _parts(self.controller(0.5, q, v, z))
        expected = [np.asarray(known[word], float) for word in self._shapes]
        heading = [
            f"{_name(self.controller)} of {c_files.comment(self._robot.name)}, in {precision} precision.",
            "SI units, radians. Velocity coordinates:",
            *c_files.numbered(self._robot.dof_names),
        ]
        return c_files.write(
            path, name, heading, [c_files.Exported(f, "the law", "where there is no result", given, expected)]
        )


# --- tracing -----------------------------------------------------------------------------------------------------


def traced(controller: Controller, robot: Robot, z0: np.ndarray | None) -> tuple[Trace, dict[str, tuple[int, ...]]]:
    """The law's trace, inputs t, q, v and z, and the shapes of its outputs by name."""
    graph, lengths = Graph(), [1, robot.nq, robot.nv, *([] if z0 is None else [z0.size])]
    t, q, v, *z = (symbol_array([graph.load(k + 1, j) for j in range(n)], (n,)) for k, n in enumerate(lengths))
    for x in (q, v, *z):
        x.setflags(write=False)  # as in a loop
    state = None if z0 is None else z[0].reshape(z0.shape)
    space = getattr(type(controller).__call__, "__globals__", {})
    twins = Twins()
    twin = twins.of(controller)
    with twins.used(), requirements() as required, numpy_on_symbols(space):
        command = named(twin, lambda: twin(t[0], q, v, state))
    states = set() if z0 is None else {z0.shape}
    outputs = outputs_of(controller, command, robot.nv, states, states)
    ends = [graph.operand(x) for y in outputs.values() for x in np.asarray(y, object).ravel().tolist()]
    good: Any = True
    for condition in required:
        good = both(good, condition)
    if good is False:
        raise UntraceableError(f"{_name(controller)}: a term of a robot has no result")
    flag = graph.operand(good) if isinstance(good, Condition) else None
    sizes = tuple(int(np.size(y)) for y in outputs.values())
    return Trace(graph, tuple(lengths), tuple(ends), sizes, flag), {name: np.shape(y) for name, y in outputs.items()}


def named(whose: Any, call: Callable[[], Any]) -> Any:
    """The call's result; what the code of somebody's own raises on symbols names the line."""
    try:
        return call()
    except UntraceableError as error:
        raise UntraceableError(f"{_name(whose)} does not trace: {error}") from error
    except Exception as error:
        frame = raised_in(error) or traceback.extract_tb(error.__traceback__)[-1]
        raise UntraceableError(
            f"{_name(whose)} does not trace: {type(error).__name__}: {error!s:.200}, in {frame.filename},"
            f" line {frame.lineno}"
        ) from error


def outputs_of(
    controller: Controller,
    command: Any,
    nv: int,
    rates: Collection[tuple[int, ...]],
    states: Collection[tuple[int, ...]] = (),
) -> dict[str, Any]:
    """What a law has returned on symbols, by name. rates: the shapes that z_rate may have, none without a state;
    states: those of z_next, none where the law acts all the time."""
    if not isinstance(command, Command):
        raise ArgumentError(f"controller: expected a Command from {_name(controller)}, got {command!r:.60}")
    outputs = _parts(command)
    if "z_next" in outputs and not states:
        raise ArgumentError(
            f"controller: expected no z_next of {_name(controller)}, without a state or where it acts all the time"
        )
    if bool(rates) != ("z_rate" in outputs or "z_next" in outputs):
        raise ArgumentError(
            f"controller: expected a z_rate of {_name(controller)} if and only if start() gives a state"
        )
    shapes = {"tau": {(nv,)}, "z_rate": rates, "z_next": states}
    for name, x in outputs.items():
        if not has_symbols(x) and not isinstance(x, (int, float, np.ndarray, np.generic)):
            raise UntraceableError(f"{_name(controller)}: {name} is neither a number nor an array, got {x!r:.60}")
        if name in shapes and np.shape(x) not in shapes[name]:
            expected = " or ".join(map(str, shapes[name]))
            raise ArgumentError(f"controller: expected {name} of shape {expected}, got {np.shape(x)}")
        if isinstance(x, Condition):
            outputs[name] = where(x, 1.0, 0.0)
        elif isinstance(x, SymbolArray) and any(isinstance(y, Condition) for y in x.ravel().tolist()):
            outputs[name] = np.where(x, 1.0, 0.0)
    return outputs


def _parts(command: Command) -> dict[str, Any]:
    """What a law returns, by name."""
    state = {name: x for name in OF_STATE if (x := getattr(command, name)) is not None}
    return {"tau": command.tau, **state, **command.signals}


def agree(x: Any, y: Any) -> bool:
    x, y = np.asarray(x, float), np.asarray(y, float)
    scale = np.abs(x[np.isfinite(x)]).max(initial=1e-3)
    return bool(np.allclose(x, y, rtol=0.0, atol=AGREEMENT * scale, equal_nan=True))


def _name(whose: Any) -> str:
    return type(whose).__name__


def _command_of(shapes: dict[str, tuple[int, ...]]) -> Callable[[Any], Command]:
    """The Command of what the entry returns, an array or several: written out, as it takes longer than the law else."""

    def part(name: str, x: str) -> str:
        shape = shapes[name]
        return f"float({x}[0])" if shape == () else f"{x}.reshape({shape})" if len(shape) > 2 else x

    parts = {name: part(name, f"x[{k}]" if len(shapes) > 1 else "x") for k, name in enumerate(shapes)}
    tau, z_rate, z_next = parts.pop("tau"), *(parts.pop(name, "None") for name in OF_STATE)
    signals = ", ".join(f"{name!r}: {x}" for name, x in parts.items())
    made = f"lambda x: new(Command, ({tau}, {z_rate}, {{{signals}}}, {z_next}))"
    return eval(made, {"new": tuple.__new__, "Command": Command})


def core(trace: Trace) -> int:
    """The address of the law's code, made or from disk."""
    words = (trace.graph.nodes, trace.outputs, trace.sizes, trace.flag, trace.inputs, version(), host.lanes())
    key = hashlib.sha256(repr(words).encode()).hexdigest()
    code = cache.kept(key, lambda: host.object_code(module(trace, [1], side=host.lanes())))
    return host.load(code, ["f_one"])[0]
