"""A robot's terms as JAX functions: compiled code of this library, called by XLA, with its derivatives.

JAX knows one primitive of this module. Its rules say how a term is differentiated (`pushforward`), how a linear map is
transposed (`transposed`), how further axes are added and how XLA calls the code. JAX makes all its transformations of
these: jit, vmap, grad, jvp, hessian, lax.scan.
"""

# JAX is not in the environment of `make lint`:
# pyright: reportMissingImports=false

from __future__ import annotations

import ctypes
import functools
import math
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.ffi
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import ad, batching, mlir

from geomctrl.compiler.differentiable import FIRST, PARAMETERS, Differentiable
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms.requested_terms import ON_GROUP, compiled_term, differentiable_term

VERSIONS = "jax 0.6.2 to 0.10"  # with which the tests have run
SEVERAL = 2  # from more states on, several are evaluated at a time
CONFIGURATIONS = {"q", "q0", "q1"}


class JaxFunction:
    """A term of a robot as a function of JAX arrays, see `Robot.to_jax`.

    Attributes
    ----------
    robot : Robot
    term : str
    inputs : dict of str to tuple of int
        Names of the arguments and their shapes, without leading axes.
    """

    def __init__(self, robot: Mechanism, term: str, frame: str | None, representation: Any):
        compiled = compiled_term(robot, term, frame, representation, others=ON_GROUP)
        self._function, numbers, sizes = differentiable_term(robot, compiled)
        self.robot, self.term, self._arguments = robot, term, (robot, term, frame, representation)
        self.inputs = {x.name: sizes.shape(x) for x in compiled.inputs}
        self._outputs = [sizes.shape(y) for y in compiled.algorithm.outputs]
        self._result = compiled.result
        self._numbers = Numbers(numbers.tobytes())
        self._on_group = _on_group(robot) if robot.nq != robot.nv else lambda q: q
        self._compiled = jax.jit(self._evaluated, inline=True)

    def __call__(self, *arrays: Any, parameters: Any = None) -> Any:
        count = len(self.inputs)
        if len(arrays) == count + 1 and parameters is None:
            arrays, parameters = arrays[:-1], arrays[-1]
        if len(arrays) != count:
            names = ", ".join(self.inputs)
            raise ArgumentError(f"{self.term}: expected {names} and optionally parameters, got {len(arrays)} arrays")
        named = [_array(name, x) for name, x in zip(self.inputs, arrays)]
        return self._compiled(named, None if parameters is None else _array("parameters", parameters))

    def __repr__(self) -> str:
        return f"JaxFunction({self.robot.name}: {self.term}({', '.join(self.inputs)}, parameters=None))"

    def __reduce__(self) -> tuple:
        return JaxFunction, self._arguments

    def _evaluated(self, arrays: Sequence[Any], parameters: Any) -> Any:
        dtype = _common_type({**dict(zip(self.inputs, arrays)), "parameters": parameters})
        lead = _same_lead(self.inputs, arrays)
        flat = [x.astype(dtype).reshape(*lead, math.prod(self.inputs[n])) for n, x in zip(self.inputs, arrays)]
        flat = [self._on_group(x) if n in CONFIGURATIONS else x for n, x in zip(self.inputs, flat)]
        pi = jnp.zeros(0, dtype) if parameters is None else self._parameters(parameters, lead).astype(dtype)
        results = apply.bind(pi, *flat, function=self._function, numbers=self._numbers)
        results = [y.reshape(*lead, *shape) for y, shape in zip(results, self._outputs)]
        return results[0] if len(results) == 1 else tuple.__new__(self._result, results)

    def _parameters(self, parameters: Any, lead: tuple[int, ...]) -> Any:
        shape = (self.robot.nbodies, 10)
        if parameters.shape == (10 * shape[0],):
            return parameters
        if parameters.shape[-2:] != shape or parameters.shape[:-2] not in ((), lead):
            raise ArgumentError(
                f"parameters: expected shape {shape}, or {(*lead, *shape)} for each state its own,"
                f" got {parameters.shape}"
            )
        return parameters.reshape(*parameters.shape[:-2], 10 * shape[0])


class Numbers(NamedTuple):
    """A robot's constants and inertial parameters, as bytes of float64 numbers."""

    data: bytes

    def __repr__(self) -> str:
        return f"{len(self.data) // 8} numbers"


# --- arguments ---------------------------------------------------------------------------------------------------


def _array(name: str, x: Any) -> Any:
    if isinstance(x, (jax.Array, np.ndarray)):
        return x
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: expected an array of numbers, got {x!r:.80}") from None


def _common_type(arrays: dict[str, Any]) -> Any:
    """float64 if one of the arrays has it, else float32; integers become JAX's default type."""
    for name, x in arrays.items():
        if x is not None and x.dtype not in (np.float64, np.float32) and x.dtype.kind not in "iu":
            raise ArgumentError(f"{name}: expected float64 or float32, got {x.dtype}")
    dtype = jnp.result_type(*(x for x in arrays.values() if x is not None))
    return dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(float)


def _same_lead(shapes: dict[str, tuple[int, ...]], arrays: Sequence[Any]) -> tuple[int, ...]:
    """The leading axes of all arrays."""
    leads = {}
    for (name, shape), x in zip(shapes.items(), arrays):
        if x.ndim < len(shape) or x.shape[x.ndim - len(shape) :] != shape:
            raise ArgumentError(f"{name}: expected shape ({', '.join(map(str, ('...', *shape)))}), got {x.shape}")
        leads[name] = x.shape[: x.ndim - len(shape)]
    first, lead = next(iter(leads.items()))
    for name, other in leads.items():
        if other != lead:
            message = f"expected the leading axes of {first}, {lead}, got {other} (nothing is broadcast)"
            raise ArgumentError(f"{name}: {message}; jax.vmap with in_axes=None keeps an argument for all states")
    return lead


def _on_group(robot: Mechanism) -> Callable[[Any], Any]:
    """The identity on configurations; of a change of a pose only what the joint can do is passed on.

    A pose in q has 12 numbers for at most 6 directions in which it can move. Derivatives are those along the group;
    changes of the numbers that lead out of it have no effect.
    """
    poses = [(q, robot.joints[i].S) for i, q in enumerate(robot.q_slices) if q.stop - q.start > 1]

    def along_group(q: Any, dq: Any) -> Any:
        parts, end = [], 0
        for place, S in poses:
            T, dT = (x[..., place].reshape(*x.shape[:-1], 3, 4) for x in (q, dq))
            change = jnp.swapaxes(T[..., :3], -1, -2) @ dT  # R^T dR, R^T dp
            w = [(change[..., i, j] - change[..., j, i]) / 2.0 for i, j in ((2, 1), (0, 2), (1, 0))]
            twist = jnp.concatenate([jnp.stack(w, -1), change[..., 3]], -1) @ jnp.asarray(
                (S @ np.linalg.pinv(S)).T, q.dtype
            )
            x, y, z, zero = twist[..., 0], twist[..., 1], twist[..., 2], jnp.zeros_like(twist[..., 0])
            rows = [jnp.stack(row, -1) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))]
            moved = T[..., :3] @ jnp.concatenate([jnp.stack(rows, -2), twist[..., 3:, None]], -1)
            parts += [dq[..., end : place.start], moved.reshape(*q.shape[:-1], 12)]
            end = place.stop
        return jnp.concatenate([*parts, dq[..., end:]], -1)

    @jax.custom_jvp
    def on_group(q: Any) -> Any:
        return q

    on_group.defjvp(lambda primals, tangents: (primals[0], along_group(primals[0], tangents[0])))
    return on_group


# --- the primitive and its rules ---------------------------------------------------------------------------------

# apply(parameters, *arrays, function, numbers): results of a `Differentiable`. arrays: (..., n) with the same leading
# axes; parameters: the same, or one row for all states, or none for those in `numbers`.
apply = Primitive("geomctrl")
apply.multiple_results = True


@functools.lru_cache(maxsize=256)
def _alone(function: Differentiable, numbers: Numbers) -> Callable[..., Any]:
    return jax.jit(functools.partial(apply.bind, function=function, numbers=numbers))


@apply.def_impl
def _evaluate(*operands: Any, function: Differentiable, numbers: Numbers) -> Any:
    return _alone(function, numbers)(*operands)


@apply.def_abstract_eval
def _shapes(parameters: Any, *arrays: Any, function: Differentiable, numbers: Numbers) -> Any:
    return [arrays[0].update(shape=(*arrays[0].shape[:-1], n)) for n in function.outputs]


def _rates(primals: Sequence[Any], tangents: Sequence[Any], *, function: Differentiable, numbers: Numbers) -> Any:
    results = apply.bind(*primals, function=function, numbers=numbers)
    moving = tuple(k for k, t in enumerate(tangents) if type(t) is not ad.Zero)
    lead = primals[1].shape[:-1]
    rates = [jnp.broadcast_to(tangents[k], (*lead, tangents[k].shape[-1])) for k in moving]
    derivative = function.pushforward(tuple(k + PARAMETERS for k in moving))
    return results, apply.bind(*primals, *rates, function=derivative, numbers=numbers)


def _transposed(cotangents: Sequence[Any], *operands: Any, function: Differentiable, numbers: Numbers) -> Any:
    linear = tuple(k for k, x in enumerate(operands) if ad.is_undefined_primal(x))
    results = tuple(j for j, w in enumerate(cotangents) if type(w) is not ad.Zero)
    if not results:
        return [None] * len(operands)
    if linear[0] + PARAMETERS < FIRST:
        raise ArgumentError("parameters: a term can not be transposed in its parameters; use jax.vjp")
    transposed = function.transposed(tuple(k + PARAMETERS for k in linear), results)
    others = [x for x in operands if not ad.is_undefined_primal(x)]
    pulled = iter(apply.bind(*others, *(cotangents[j] for j in results), function=transposed, numbers=numbers))
    return [next(pulled) if k in linear else None for k in range(len(operands))]


def _with_axis(operands: Sequence[Any], axes: Sequence[Any], *, function: Differentiable, numbers: Numbers) -> Any:
    size = next(x.shape[axis] for x, axis in zip(operands, axes) if axis is not None)
    parameters, *arrays = (x if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in zip(operands, axes))
    arrays = [jnp.broadcast_to(x, (size, *x.shape)) if axis is None else x for x, axis in zip(arrays, axes[1:])]
    lead = arrays[0].shape[:-1]
    if axes[0] is not None:
        inner = (size, *(1,) * (len(lead) - parameters.ndim + 1), *parameters.shape[1:])
        parameters = jnp.broadcast_to(parameters.reshape(inner), (*lead, parameters.shape[-1]))
    elif parameters.ndim > 1:
        parameters = jnp.broadcast_to(parameters, (*lead, parameters.shape[-1]))
    results = apply.bind(parameters, *arrays, function=function, numbers=numbers)
    return results, [0] * len(results)


ad.primitive_jvps[apply] = _rates
ad.primitive_transposes[apply] = _transposed
batching.primitive_batchers[apply] = _with_axis


# --- code for XLA ------------------------------------------------------------------------------------------------


def _lowered(ctx: Any, parameters: Any, *arrays: Any, function: Differentiable, numbers: Numbers) -> Any:
    """A call of the handler. It computes in float64, and so does a call on float32 arrays, which are converted."""
    avals, lead = ctx.avals_in, ctx.avals_in[1].shape[:-1]
    shared = avals[0].ndim == 1
    several = not all(isinstance(n, int) for n in lead) or math.prod(lead) > SEVERAL
    name, work = _registered(function, shared, several)
    constants, usual = np.split(np.frombuffer(numbers.data), [len(function.constants)])
    operands = [
        _constant(constants),
        _constant(usual) if avals[0].shape == (0,) else _converted(parameters),
    ]
    operands += map(_converted, arrays)
    double = [x.update(dtype=np.dtype(np.float64)) for x in (*avals, *ctx.avals_out)]
    vector = double[0].update(shape=constants.shape)
    inputs = [vector, double[0].update(shape=usual.shape) if avals[0].shape == (0,) else double[0]]
    inputs += double[1 : len(avals)]
    outputs = [*double[len(avals) :], vector.update(shape=(work,))]
    inner = ctx.replace(avals_in=inputs, avals_out=outputs)
    *results, _ = jax.ffi.ffi_lowering(name)(inner, *operands)
    real = ir.RankedTensorType(arrays[0].type).element_type
    return [_converted(y, real) for y in results]


def _constant(x: np.ndarray) -> Any:
    values: Any = x  # the binding's types do not know numpy's arrays
    return stablehlo.constant(ir.DenseElementsAttr.get(values))


def _converted(x: Any, real: Any = None) -> Any:
    """An array as one of this type of numbers, by default float64, also where JAX's types are of 32 bits."""
    kind, real = ir.RankedTensorType(x.type), real or ir.F64Type.get()
    return x if kind.element_type == real else stablehlo.convert(ir.RankedTensorType.get(kind.shape, real), x)


def _refused(ctx: Any, *operands: Any, **params: Any) -> Any:
    platforms = ", ".join(ctx.module_context.platforms)
    raise GeomctrlError(
        f"functions of Robot.to_jax run on CPUs, and this computation is for {platforms}: move the arrays with"
        " jax.device_put(x, jax.devices('cpu')[0]), or set jax.default_device"
    )


mlir.register_lowering(apply, _refused)
mlir.register_lowering(apply, _lowered, platform="cpu")

_lock = threading.Lock()
_handlers: dict[str, int] = {}  # sizes of the work memory; XLA keeps a registered handler as long as the process lives
_kept: list[Any] = []


def _registered(function: Differentiable, shared: bool, several: bool) -> tuple[str, int]:
    """(Name, size of the work memory) of a handler that XLA knows."""
    name, (address, size) = function.handler(shared, several, interface())
    with _lock:
        if name not in _handlers:
            call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(call), platform="cpu")
            _kept.extend((call, address, size))
            _handlers[name] = ctypes.c_int64.from_address(size).value
        return name, _handlers[name]


@functools.cache
def interface() -> tuple[int, int]:
    """The version of XLA's foreign function interface in this jaxlib. Raises GeomctrlError if it is not version 0."""
    try:
        text = Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
        major, minor = (int(re.findall(rf"#define XLA_FFI_API_{x} (\d+)", text)[0]) for x in ("MAJOR", "MINOR"))
    except (OSError, IndexError) as error:
        raise GeomctrlError(f"jaxlib: can not read the version of its interface; {VERSIONS} works ({error})") from None
    if major != 0:
        raise GeomctrlError(f"jaxlib: expected version 0 of its interface, got {major}.{minor}; {VERSIONS} works")
    return major, minor
