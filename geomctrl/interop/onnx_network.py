"""Neural networks from ONNX files, as functions of numpy that can be traced; the file is read without other packages.

An ONNX file is a message in protocol buffers' wire format: a sequence of numbered fields, each a number, four or eight
bytes, or a piece of bytes that may be a message itself. The numbers of the fields are those of `onnx.proto3`.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import one_state, path_of, read_only, shown
from geomctrl.errors import ArgumentError
from geomctrl.files import require_regular

MAX_BYTES = 1 << 28  # of a file
MAX_NUMBERS = 1 << 24  # of the input, and of all results together
NUMBERS = {1: "<f4", 6: "<i4", 7: "<i8", 11: "<f8"}  # of TensorProto.DataType
TYPED_FIELDS = {1: 4, 6: 5, 7: 7, 11: 10}  # the field of TensorProto with numbers of each type
LEAKAGE = float(np.float32(0.01))  # default slope of LeakyRelu for x < 0
VARINT, EIGHT_BYTES, PIECE, FOUR_BYTES = 0, 1, 2, 5  # wire types


def _sigmoid(x: Any) -> Any:
    return 0.5 + 0.5 * np.tanh(0.5 * x)  # the usual form overflows


def _quotient(a: Any, b: Any) -> Any:
    if all(np.issubdtype(getattr(x, "dtype", float), np.integer) for x in (a, b)):
        raise ArgumentError("expected a division of floating-point numbers, got one of integers")
    return a / b


def _gemm(a: Any, b: Any, c: Any = 0.0, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0) -> Any:
    product = np.matmul(a.T if transA else a, b.T if transB else b)
    product = product if alpha == 1.0 else alpha * product
    return product + np.broadcast_to(c if beta == 1.0 else beta * c, np.shape(product))


def _flatten(x: Any, axis: int = 1) -> Any:
    axis = axis + np.ndim(x) if axis < 0 else axis
    return np.reshape(x, (int(np.prod(np.shape(x)[:axis])), -1))


def _reshape(x: Any, shape: Any, allowzero: int = 0) -> Any:
    wanted = [int(n) for n in np.ravel(shape)]
    if not allowzero:
        wanted = [np.shape(x)[k] if n == 0 else n for k, n in enumerate(wanted)]
    return np.reshape(x, wanted)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _quotient,
    "Neg": lambda a: -a,
    "MatMul": lambda a, b: np.matmul(a, b),
    "Gemm": _gemm,
    "Relu": lambda x: np.maximum(x, 0.0),
    "LeakyRelu": lambda x, alpha=LEAKAGE: np.where(x < 0.0, alpha * x, x),
    "Tanh": lambda x: np.tanh(x),
    "Sigmoid": _sigmoid,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Identity": lambda x: x,
}


@dataclass(frozen=True)
class _Operation:
    name: str
    inputs: list[str]
    output: str
    attributes: dict[str, Any]

    def result_size(self, inputs: list[Any]) -> int:
        """Largest possible number of elements of the result."""
        shapes = [np.shape(x) for x in inputs]
        if self.name in ("Flatten", "Reshape"):
            return math.prod(shapes[0])
        if self.name in ("MatMul", "Gemm"):
            a, b = (s[::-1] if self.attributes.get(k) else s for s, k in zip(shapes, ("transA", "transB")))
            shapes = [(*a[:-1], 1), (*b[:-2], 1, *b[-1:])]
        return math.prod(np.broadcast_shapes(*shapes))


@dataclass(frozen=True, eq=False)
class _Network:
    """A network as a function of a vector: `network(x)` is the vector of its outputs, in double precision."""

    input_name: str
    output_name: str
    input_shape: tuple[int, ...]
    operations: list[_Operation]
    weights: dict[str, np.ndarray]

    def __call__(self, x: Any) -> Any:
        return self.evaluated(one_state("x", x, math.prod(self.input_shape)))

    def evaluated(self, x: Any, max_numbers: int | None = None) -> Any:
        """The outputs. max_numbers: raise ArgumentError before the results together have more elements than that."""
        values: dict[str, Any] = {**self.weights, self.input_name: np.reshape(x, self.input_shape)}
        size = 0
        for o in self.operations:
            inputs = [values[name] for name in o.inputs]
            if max_numbers is not None:
                size += o.result_size(inputs)
                if size > max_numbers:
                    raise ArgumentError(f"expected results with at most {max_numbers} numbers together, got more")
            values[o.output] = OPERATIONS[o.name](*inputs, **o.attributes)
        return np.ravel(values[self.output_name])


def from_onnx(path: str | os.PathLike[str]) -> Callable[[Any], Any]:
    """Return the neural network of an ONNX file as a function of a vector, which can be traced.

    Parameters
    ----------
    path : path
        An ONNX file with one input of float or double and one output, of fully connected layers: Gemm, MatMul, Add,
        Sub, Mul, Div, Neg, Relu, LeakyRelu, Tanh, Sigmoid, Flatten, Reshape, Identity, Constant.

    Returns
    -------
    function
        `network(x)`: the outputs (m,) for inputs x (n,), in double precision with the weights of the file. A law that
        calls it is compiled, exported and enclosed like any other (`testing.reach`).

    Raises
    ------
    ArgumentError
        For a file that is no such network; it names the operation that is not known.

    Notes
    -----
    A runtime in single precision rounds differently; proofs are about the network in real arithmetic. An axis of the
    input without fixed length, such as a batch, has length 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> def law(t, q, v, z):
    ...     return gc.control.Command(network(np.concatenate([q, v])))
    >>> network = gc.interop.from_onnx("policy.onnx")                   # doctest: +SKIP
    >>> tube = gc.testing.reach(arm, law, (x0 - 0.01, x0 + 0.01), 1.0)  # doctest: +SKIP
    """
    file = path_of("path", path)
    data = _bytes_of(file)
    try:
        network = _network(data)
        with np.errstate(all="ignore"):  # at zero a quotient may be infinite
            network.evaluated(np.zeros(math.prod(network.input_shape)), MAX_NUMBERS)
    except ArgumentError as error:
        raise ArgumentError(f"path: {file}: {error}") from None
    except Exception as error:  # a damaged file may have any numbers, names and shapes
        raise ArgumentError(f"path: expected an ONNX file with a network, got {file} ({error!r:.120})") from error
    return network


def _bytes_of(file: Path) -> bytes:
    try:
        require_regular(file)
        if file.stat().st_size > MAX_BYTES:
            raise ArgumentError(f"path: expected a file of at most {MAX_BYTES} bytes, got {file}")
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES)
    except OSError as error:
        raise ArgumentError(f"path: expected a readable ONNX file, got {file} ({error})") from error


def _network(data: bytes) -> _Network:
    graph = _one(_message(data), 7)
    if graph is None:
        raise ArgumentError("expected an ONNX model, got a file without a graph")
    fields = _message(graph)
    weights = dict(_tensor(x) for x in fields.get(5, []))
    operations = []
    for message in fields.get(1, []):
        o = _operation(message)
        if o.name == "Constant":
            weights[o.output] = _constant(o.attributes)
        elif o.name in OPERATIONS:
            operations.append(o)
        else:
            raise ArgumentError(f"expected operations {', '.join(OPERATIONS)} or Constant, got {shown(o.name)}")
    inputs = [x for x in map(_value_info, fields.get(11, [])) if x[0] not in weights]
    outputs = [_value_info(x)[0] for x in fields.get(12, [])]
    if len(inputs) != 1 or len(outputs) != 1:
        raise ArgumentError(f"expected one input and one output, got {len(inputs)} and {len(outputs)}")
    name, kind, shape = inputs[0]
    if kind not in (1, 11) or shape is None or math.prod(shape) > MAX_NUMBERS:
        raise ArgumentError(
            f"expected an input of float or double with a shape of at most {MAX_NUMBERS} numbers, got {shown(name)}"
        )
    return _Network(name, outputs[0], shape, operations, weights)


def _constant(attributes: dict[str, Any]) -> np.ndarray:
    if not set(attributes) <= {"value", "value_float"} or len(attributes) != 1:
        raise ArgumentError(f"expected a Constant with value or value_float, got {', '.join(attributes)!r:.60}")
    return read_only(np.asarray(*attributes.values()))


def _operation(message: bytes) -> _Operation:
    fields = _message(message)
    name, domain = _text(fields, 4), _text(fields, 7)
    if domain not in ("", "ai.onnx"):
        raise ArgumentError(f"expected operations of ONNX itself, got {shown(name)} of {shown(domain)}")
    attributes = dict(_attribute(x) for x in fields.get(5, []))
    inputs, outputs = ([x.decode() for x in fields.get(k, [])] for k in (1, 2))
    if len(outputs) != 1 or "" in inputs:
        raise ArgumentError(f"expected operations with one output and all inputs, got {shown(name)}")
    return _Operation(name, inputs, outputs[0], attributes)


def _attribute(message: bytes) -> tuple[str, Any]:
    fields = _message(message)
    name, kind = _text(fields, 1), _one(fields, 20)
    if kind == 1:
        return name, struct.unpack("<f", _one(fields, 2) or bytes(4))[0]  # writers omit a zero
    if kind == 2:
        return name, _signed(_one(fields, 3) or 0)
    if kind == 4:
        return name, _tensor(fields[5][-1])[1]
    raise ArgumentError(f"expected attributes that are numbers or tensors, got {shown(name)}")


def _tensor(message: bytes) -> tuple[str, np.ndarray]:
    """(Name, numbers as float64 or int64) of a TensorProto."""
    fields = _message(message)
    kind, shape = _one(fields, 2), [_signed(x) for x in _numbers(fields.get(1, []))]
    if kind not in NUMBERS or _one(fields, 14):
        raise ArgumentError("expected tensors of float, double, int32 or int64 in the file itself")
    typed = fields.get(TYPED_FIELDS[kind], [])
    if 9 in fields:
        array = np.frombuffer(fields[9][-1], NUMBERS[kind])
    elif kind in (6, 7):
        array = np.array([_signed(x) for x in _numbers(typed)])
    else:
        array = np.frombuffer(b"".join(typed), NUMBERS[kind])
    array = array.astype(np.float64 if kind in (1, 11) else np.int64).reshape(shape)
    if not np.isfinite(array).all():
        raise ArgumentError("expected finite weights")
    return _text(fields, 8), read_only(array)


def _value_info(message: bytes) -> tuple[str, Any, tuple[int, ...] | None]:
    """(Name, type of numbers, shape or None) of an input or output; an axis without fixed length has length 1."""
    fields = _message(message)
    tensor = _message(_one(_message(_one(fields, 2) or b""), 1) or b"")
    shape = _one(tensor, 2)
    lengths = [_signed(_one(_message(dim), 1) or 0) for dim in _message(shape or b"").get(1, [])]
    return _text(fields, 1), _one(tensor, 1), None if shape is None else tuple(n if n > 0 else 1 for n in lengths)


def _one(fields: dict[int, list[Any]], k: int) -> Any:
    """The value of a field that occurs once; None if it does not. The last one counts."""
    return fields[k][-1] if k in fields else None


def _text(fields: dict[int, list[Any]], k: int) -> str:
    return (_one(fields, k) or b"").decode()


def _signed(x: int) -> int:
    return x - (1 << 64) if x >= 1 << 63 else x


def _numbers(values: list[Any]) -> Iterator[int]:
    """Whole numbers of a repeated field, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        k = 0
        while k < len(value):
            x, k = _varint(value, k)
            yield x


def _varint(data: bytes, k: int) -> tuple[int, int]:
    """(Number, next place) of a number of variable length at place k."""
    x = shift = 0
    while True:
        byte = data[k]
        x |= (byte & 0x7F) << shift
        k, shift = k + 1, shift + 7
        if byte < 0x80:
            return x & ((1 << 64) - 1), k
        if shift > 63:
            raise ValueError("a number has more than ten bytes")


def _message(data: bytes) -> dict[int, list[Any]]:
    """Values of all fields of a message, in order."""
    fields: dict[int, list[Any]] = {}
    k = 0
    while k < len(data):
        key, k = _varint(data, k)
        wire = key & 7
        if wire == VARINT:
            value, k = _varint(data, k)
        elif wire in (EIGHT_BYTES, FOUR_BYTES, PIECE):
            size, k = (8 if wire == EIGHT_BYTES else 4, k) if wire != PIECE else _varint(data, k)
            value, k = data[k : k + size], k + size
            if len(value) != size:
                raise ValueError("the file ends within a field")
        else:
            raise ValueError(f"wire type {wire}")
        fields.setdefault(key >> 3, []).append(value)
    return fields
