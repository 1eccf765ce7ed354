"""A robot's terms as JAX functions: compiled code of this library, called by XLA, with its derivatives.

JAX knows one primitive of this module. Its rules say how a term is differentiated (`pushforward`), how a linear map is
transposed (`transposed`), how further axes are added and how XLA calls the code. JAX makes all its transformations of
these: jit, vmap, grad, jvp, hessian, lax.scan. On an NVIDIA GPU it is experimental: not yet run on one.
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
import jax.experimental
import jax.ffi
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import ad, batching, mlir

from geomctrl.arguments import shown
from geomctrl.compiler.differentiable import FIRST, PARAMETERS, Differentiable
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.tracing.backends.batches import BufferCall
from geomctrl.tracing.backends.gpu_calls import GpuCall

from .term_functions import MIN_BATCH, TermFunction

VERSIONS = "jax 0.6.2 to 0.10"  # with which the tests have run


_before_08: Any = jax.experimental
_enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else _before_08.enable_x64


class JaxFunction(TermFunction):
    """A term of a robot as a function of JAX arrays, see `Robot.to_jax`."""

    same_for_all = "jax.vmap with in_axes=None keeps an argument for all states"

    def _prepare(self, constants: np.ndarray, parameters: np.ndarray) -> None:
        self._numbers = Numbers(np.concatenate([constants, parameters]).tobytes())
        self._compiled = jax.jit(self._traced, inline=True)

    def _called_with_numpy(self, arrays: Sequence[Any]) -> Sequence[Any]:
        with _enable_x64(True), jax.ensure_compile_time_eval(), jax.default_device(jax.devices("cpu")[0]):
            return jax.tree.leaves(self._traced(list(map(jnp.asarray, arrays)), None))

    def _array(self, name: str, x: Any) -> Any:
        if isinstance(x, (jax.Array, np.ndarray)):
            return x
        try:
            return jnp.asarray(x)
        except (TypeError, ValueError):
            raise ArgumentError(f"{name}: expected an array of numbers, got {shown(x)}") from None

    def _evaluated(self, arrays: Sequence[Any], parameters: Any) -> Any:
        return self._compiled(arrays, parameters)

    def _traced(self, arrays: Sequence[Any], parameters: Any) -> Any:
        dtype = _common_type({**dict(zip(self.inputs, arrays)), "parameters": parameters})
        lead = self._lead(arrays)
        flat = [x.astype(dtype).reshape(*lead, math.prod(self.inputs[n])) for n, x in zip(self.inputs, arrays)]
        pi = jnp.zeros(0, dtype) if parameters is None else self._parameter_rows(parameters, lead).astype(dtype)
        return self._packed(apply.bind(pi, *flat, function=self._function, numbers=self._numbers), lead)


class Numbers(NamedTuple):
    """A robot's constants and inertial parameters, as bytes of float64 numbers."""

    data: bytes

    def __repr__(self) -> str:
        return f"{len(self.data) // 8} numbers"


# --- arguments ---------------------------------------------------------------------------------------------------


def _common_type(arrays: dict[str, Any]) -> Any:
    """float64 if one of the arrays has it, else float32; integers become JAX's default type."""
    for name, x in arrays.items():
        if x is not None and x.dtype not in (np.float64, np.float32) and x.dtype.kind not in "iu":
            raise ArgumentError(f"{name}: expected float64 or float32, got {x.dtype}")
    dtype = jnp.result_type(*(x for x in arrays.values() if x is not None))
    return dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(float)


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
    """A call of the handler on a CPU."""
    lead = ctx.avals_in[1].shape[:-1]
    several = not all(isinstance(n, int) for n in lead) or math.prod(lead) > MIN_BATCH
    call = function.call(ctx.avals_in[0].ndim == 1, several)
    return _called(ctx, _registered("cpu", *call), call[1].work, [parameters, *arrays], function, numbers)


def _lowered_on_gpu(ctx: Any, parameters: Any, *arrays: Any, function: Differentiable, numbers: Numbers) -> Any:
    """A call of the handler on the host, which launches a kernel."""
    call = function.gpu_call(ctx.avals_in[0].ndim == 1)
    return _called(ctx, _registered("CUDA", *call), 0, [parameters, *arrays], function, numbers)


def _called(
    ctx: Any, handler: str, work: int, operands: Sequence[Any], function: Differentiable, numbers: Numbers
) -> Any:
    """A call of a handler. It computes in float64, and so does a call on float32 arrays, which are converted.

    work: size of the work memory, its last result; 0: none.
    """
    avals, (parameters, *arrays) = ctx.avals_in, operands
    constants, usual = np.split(np.frombuffer(numbers.data), [len(function.constants)])
    without = avals[0].shape == (0,)
    values = [_constant(constants), _constant(usual) if without else _converted(parameters), *map(_converted, arrays)]
    double = [x.update(dtype=np.dtype(np.float64)) for x in (*avals, *ctx.avals_out)]
    vector = double[0].update(shape=constants.shape)
    inputs = [vector, double[0].update(shape=usual.shape) if without else double[0], *double[1 : len(avals)]]
    memory = [vector.update(shape=(work,))] if work else []
    inner = ctx.replace(avals_in=inputs, avals_out=[*double[len(avals) :], *memory])
    results = jax.ffi.ffi_lowering(handler)(inner, *values)[: len(ctx.avals_out)]
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
        f"functions of Robot.to_jax run on CPUs and NVIDIA GPUs, and this computation is for {platforms}: move the"
        " arrays with jax.device_put(x, jax.devices('cpu')[0]), or set jax.default_device"
    )


mlir.register_lowering(apply, _refused)
mlir.register_lowering(apply, _lowered, platform="cpu")
mlir.register_lowering(apply, _lowered_on_gpu, platform="cuda")

_lock = threading.Lock()
_handlers: dict[str, tuple[Any, Any]] = {}  # XLA keeps a registered handler as long as the process lives


def _registered(platform: str, name: str, call: BufferCall | GpuCall) -> str:
    """The name of a handler, which XLA knows from now on."""
    with _lock:
        if name not in _handlers:
            (ctypes.c_int32 * 2).from_address(call.xla_version)[:] = interface()
            handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(call.xla_handler)
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform=platform)
            _handlers[name] = call, handler
        return name


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
