"""Declare algorithms: kernels with a signature of inputs, outputs and work memory.

The signature generates every form in which a kernel runs: a loop over states, straight-line code and C.

    @algorithm("q, v, a -> tau[nv]", memory=(per_body(Motion), per_body(Wrench)))
    def inverse_dynamics(model, q, v, a, motion, wrenches, tau): ...

The kernel takes the model, its inputs, the memory and the outputs to fill, in this order. `inverse_dynamics.one` is the
entry for a single state, `inverse_dynamics.many` loops over a batch. Called directly, or by another kernel, it is the
plain function.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, in_python, is_compiled
from .records import finite, width
from .tree import good_configuration, good_velocity, n_bodies, n_q, n_v


class Array(NamedTuple):
    """An input or output: its name, its sizes in terms of nb (bodies), nq and nv, whether it is optional."""

    name: str
    shape: tuple[str, ...]
    optional: bool = False

    @property
    def size(self) -> str:
        return " * ".join(f"({n})" for n in self.shape)


class Option(NamedTuple):
    """An argument that a batch shares: its name, its type in numba's notation, an array's sizes."""

    name: str
    type: str
    shape: tuple[str, ...]

    @property
    def is_array(self) -> bool:
        return "[" in self.type


class Memory(NamedTuple):
    """Work memory: number of records, and of numbers in each."""

    count: str
    width: int
    kind: str = "float64"


def per_body(record: Any) -> Memory:
    return Memory("nb", width(record))


def per_coordinate(record: Any) -> Memory:
    """A record for each velocity coordinate."""
    return Memory("nv", width(record))


def numbers(count: str) -> Memory:
    """`count` numbers, in terms of nb, nq and nv."""
    return Memory(count, 1)


def of_complex(memory: Memory) -> Memory:
    """The same records holding complex numbers."""
    return memory._replace(kind="complex128")


# sizes of inputs, outputs and options by name; other inputs and outputs have nv numbers
SIZES = {"q": "nq", "q_d": "nq", "f_ext": "nb, 6", "placement": "12", "Lambda": "nv, nv", "K": "nv, nv"}
SIZES |= {"friction": "3, nv", "contact": "9"}


# Numba takes some seconds to compile an entry. For a long chain Python takes less than that for the first calls.
LONG_CHAIN = 60  # bodies; robots with at most this number use compiled code from the first call on
PYTHON_TIME = 2.0  # s that an entry's calls may take in Python, as estimated from the next two
BODY_TIME, NUMBER_TIME = 40e-6, 1.2e-6  # s in Python, for each body and for each number of the result


class Algorithm:
    """A kernel with its entries. `inputs` have one value per state, `options` are shared by a batch."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        memory: tuple[Memory, ...],
        may_fail: bool,
    ):
        functools.update_wrapper(self, function)
        self.py_func, self.memory, self.may_fail = function, memory, may_fail
        left, right = signature.split("->")
        inputs, _, options = left.partition(";")
        self.inputs, self.outputs = _arrays(inputs), _arrays(right)
        self.options = [
            Option(name, kind, _shape(SIZES[name]) if "[" in kind else ())
            for name, kind in re.findall(r"(\w+): *(\w+(?:\[[^\]]*\])?)", options)
        ]
        self._declared: dict[str, tuple[Callable[..., Any], str]] = {}  # entries and their signatures
        self._python_time: dict[str, float] = {}

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)

    @functools.cached_property
    def one(self) -> Callable[..., None]:
        """one(model, `*inputs`, `*options`, `*outputs`): fills the outputs. Optional inputs are left out.

        Raises ValueError, before anything is allocated, for a state of the wrong length, with nan or with an invalid
        pose, and if the algorithm fails. The public function then explains the error.
        """
        inputs = [x for x in self.inputs if not x.optional]
        names = [
            "model",
            *(x.name for x in inputs),
            *(x.name for x in self.options),
            *(y.name for y in self.outputs),
        ]
        arguments = ["none" if x.optional else x.name for x in self.inputs]
        call = self._call(arguments, [y.name for y in self.outputs])
        types = [
            *("f8[::1]" for _ in ["model", *inputs]),
            *(x.type for x in self.options),
            *map(_array_type, self.outputs),
        ]
        lines = [
            f"if not ({' and '.join(_guard(x) for x in inputs)}):",
            "    raise ValueError",
            *self._sizes(),
            *self._allocation(),
            *([f"if not {call}:", "    raise ValueError"] if self.may_fail else [call]),
        ]
        return self._compile_entry("one", names, lines, f"void({', '.join(types)})")

    @functools.cached_property
    def many(self) -> Callable[..., Any]:
        """many(model, `*inputs`, `*options`) -> outputs with a leading axis.

        If the algorithm may fail: (outputs, number of the first state that failed or -1). States are not checked; an
        optional input may have no rows.
        """
        names = ["model", *(x.name for x in self.inputs), *(x.name for x in self.options)]
        arguments = [
            f"({x.name}[b] if {x.name}.shape[0] > 0 else none)" if x.optional else f"{x.name}[b]" for x in self.inputs
        ]
        call = self._call(arguments, [f"{y.name}[b]" for y in self.outputs])
        result = ", ".join(y.name for y in self.outputs)
        kinds = [f"f8[{':, ' * len(y.shape)}::1]" for y in self.outputs]
        returned = kinds[0] if len(kinds) == 1 else f"Tuple(({', '.join(kinds)}))"
        types = [
            "f8[::1]",
            *("f8[:, ::1]" for _ in self.inputs),
            *(x.type for x in self.options),
        ]
        first = self.inputs[0].name
        lines = [
            *self._sizes(),
            *(f"{y.name} = np.empty(({first}.shape[0], {', '.join(y.shape)}))" for y in self.outputs),
            *self._allocation(),
            f"for b in range({first}.shape[0]):",
            *([f"    if not {call}:", f"        return ({result}), b"] if self.may_fail else [f"    {call}"]),
            f"return ({result}), -1" if self.may_fail else f"return {result}",
        ]
        return self._compile_entry(
            "many", names, lines, f"{f'Tuple(({returned}, i8))' if self.may_fail else returned}({', '.join(types)})"
        )

    def entry(self, kind: str, model: np.ndarray, states: int = 1) -> Callable[..., Any]:
        """`one` or `many`, for a call with so many states: of a long chain in Python until compiling it pays.

        An entry that this process or an earlier one has compiled is always used. The estimate depends on the calls
        alone, so a script that starts with an empty cache has the same results each time.
        """
        call, bodies = getattr(self, kind), n_bodies(model)
        if bodies <= LONG_CHAIN or is_compiled(call):
            return call
        outputs = sum(n_v(model) ** len(y.shape) for y in self.outputs)
        spent = self._python_time.get(kind, 0.0) + states * (BODY_TIME * bodies + NUMBER_TIME * outputs)
        if spent > PYTHON_TIME:
            return call
        self._python_time[kind] = spent
        return in_python(*self._declared[kind])

    def _sizes(self) -> list[str]:
        sizes = ["nb, nq, nv = n_bodies(model), n_q(model), n_v(model)"]
        return [*sizes, "none = model[:0]"] if any(x.optional for x in self.inputs) else sizes

    def _allocation(self) -> list[str]:
        """The work memory: one array for each kind, cut into pieces, because each allocation takes 20 to 50 ns."""
        lines = []
        for kind in dict.fromkeys(m.kind for m in self.memory):
            parts = [(f"memory{k}", f"({m.count}) * {m.width}") for k, m in enumerate(self.memory) if m.kind == kind]
            lines += [f"{kind} = np.empty({' + '.join(size for _, size in parts)}, np.{kind})", "cut = 0"]
            for name, size in parts:
                lines += [f"{name} = {kind}[cut : cut + {size}]", f"cut += {size}"]
        return lines

    def _call(self, inputs: list[str], outputs: list[str]) -> str:
        memory = [f"memory{k}" for k in range(len(self.memory))]
        return f"ALGORITHM({', '.join(['model', *inputs, *(x.name for x in self.options), *memory, *outputs])})"

    def _compile_entry(self, kind: str, names: list[str], lines: list[str], signature: str) -> Any:
        """Compile an entry from its lines; tracebacks show it in the algorithm's own file."""
        body = "".join(f"\n    {line}" for line in lines)
        code = compile(f"def entry({', '.join(names)}):{body}\n", self.py_func.__code__.co_filename, "exec")
        scope: dict[str, Any] = {"np": np, "ALGORITHM": self}
        scope |= {f.__name__: f for f in (finite, good_configuration, good_velocity, n_bodies, n_q, n_v)}
        exec(code, scope)
        function = scope["entry"]
        function.__module__ = self.py_func.__module__
        function.__name__ = function.__qualname__ = f"{self.py_func.__name__}_{kind}"
        self._declared[kind] = function, signature
        return compiled(function, signature)


def algorithm(
    signature: str, memory: tuple[Memory, ...] = (), *, may_fail: bool = False
) -> Callable[[Callable[..., Any]], Algorithm]:
    """Decorator that declares an algorithm; see the module.

    signature: "inputs; options -> outputs". Sizes are in brackets, in terms of nb, nq, nv ("M[nv, nv]", "pi[10 nb]"),
    unless `SIZES` has them. An input with a "?" is optional; an empty array then means none. Options are
    "name: type" in numba's notation; arrays among them have the sizes in `SIZES`. may_fail: the kernel returns False if
    it has no result.
    """
    return lambda function: Algorithm(function, signature, memory, may_fail)


def _arrays(signature: str) -> list[Array]:
    parts = re.findall(r"(\w+)(\??)(?:\[([^\]]*)\])?", signature)
    return [Array(name, _shape(sizes or SIZES.get(name, "nv")), bool(mark)) for name, mark, sizes in parts]


def _shape(sizes: str) -> tuple[str, ...]:
    return tuple(re.sub(r"(\d+) (n\w)", r"\1 * \2", size.strip()) for size in sizes.split(","))


def _array_type(x: Array) -> str:
    return f"f8[{':, ' * (len(x.shape) - 1)}::1]"


def _guard(x: Array) -> str:
    if x.shape == ("nq",):
        return f"good_configuration(model, {x.name})"
    if x.shape == ("nv",):
        return f"good_velocity(model, {x.name})"
    size = x.size.replace("nb", "n_bodies(model)").replace("nv", "n_v(model)")
    return f"{x.name}.shape[0] == {size} and finite({x.name})"
