"""A robot's terms as PyTorch functions: compiled code of this library as one operator, with its derivatives.

The operator `geomctrl::term` evaluates a `Differentiable` on the buffers of tensors; `torch.compile` keeps it as a
node of its graph. Outside of compiled functions `Term` calls it, which also has forward derivatives and works with the
transformations of `torch.func`; PyTorch's operators alone have neither.
"""

# PyTorch is not in the environment of `make lint`:
# pyright: reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from geomctrl.compiler.differentiable import PARAMETERS, Differentiable
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.tracing.backends import gpu

from .term_functions import MIN_BATCH, TermFunction

REALS = (torch.float64, torch.float32)
DEVICES = "cpu", "cuda"
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

_functions: dict[str, Differentiable] = {}


class TorchFunction(TermFunction):
    """A term of a robot as a function of tensors, see `Robot.to_torch`."""

    same_for_all = "torch.vmap with in_dims=None, or x.expand(...), keeps an argument for all states"

    def _prepare(self, constants: np.ndarray, parameters: np.ndarray) -> None:
        self._numbers = {torch.device("cpu"): (torch.from_numpy(constants), torch.from_numpy(parameters))}
        self._name = _registered(self._function)

    def _called_with_numpy(self, arrays: Sequence[Any]) -> Sequence[Any]:
        with torch.no_grad():
            results = self(*map(torch.from_numpy, arrays))
        return [y.numpy() for y in (results if isinstance(results, tuple) else (results,))]

    def _array(self, name: str, x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            raise ArgumentError(f"{name}: expected a tensor, got {type(x).__name__}; torch.as_tensor makes one")
        if x.device.type not in DEVICES or x.layout != torch.strided:
            kind = x.device if x.layout == torch.strided else x.layout
            raise ArgumentError(
                f"{name}: expected a dense tensor on the CPU or an NVIDIA GPU, got one of {kind};"
                " see x.cpu(), x.to_dense()"
            )
        if x.dtype not in REALS + INTEGERS:
            raise ArgumentError(f"{name}: expected float64 or float32, got {str(x.dtype).removeprefix('torch.')}")
        return x

    def _evaluated(self, arrays: Sequence[Any], parameters: Any) -> Any:
        dtypes = [x.dtype for x in ((*arrays,) if parameters is None else (*arrays, parameters)) if x.dtype in REALS]
        dtype = torch.float64 if torch.float64 in dtypes else dtypes[0] if dtypes else torch.get_default_dtype()
        lead, (constants, own) = self._lead(arrays), self._numbers_on(self._device(arrays, parameters))
        pi = own if parameters is None else self._parameter_rows(parameters, lead).to(torch.float64)
        rows = [x.to(torch.float64).reshape(*lead, math.prod(self.inputs[n])) for n, x in zip(self.inputs, arrays)]
        if torch.compiler.is_compiling():
            # PyTorch's operators have no forward derivatives, and it takes them as 0
            if forward_ad._current_level >= 0:
                raise GeomctrlError(f"{self.term}: torch.func.jvp and jacfwd do not work inside of torch.compile")
            results = _operator(self._name, constants, pi, rows)
        else:
            results = Term.apply(self._name, constants, pi, *rows)
        return self._packed([y.to(dtype) for y in results], lead)

    def _device(self, arrays: Sequence[Any], parameters: Any) -> Any:
        """The device of all arguments."""
        first, *names = self.inputs
        device = arrays[0].device
        for name, x in zip((*names, "parameters"), (*arrays[1:], parameters)):
            if x is not None and x.device != device:
                raise ArgumentError(f"{name}: expected a tensor on the device of {first}, {device}, got {x.device}")
        return device

    def _numbers_on(self, device: Any) -> Any:
        """The robot's constants and parameters on a device."""
        if device in self._numbers:
            return self._numbers[device]
        copies = tuple(x.to(device) for x in self._numbers[torch.device("cpu")])
        if not torch.compiler.is_compiling():
            self._numbers[device] = copies
        return copies


def _registered(function: Differentiable) -> str:
    _functions[function.key] = function
    return function.key


# --- the operator ------------------------------------------------------------------------------------------------
#
# operator(function, constants, parameters, arrays): results of a `Differentiable`. arrays: (..., n) with the same
# leading axes; parameters: the same, or one row for all states.

SCHEMA = "(str function, Tensor constants, Tensor parameters, Tensor[] arrays) -> Tensor[]"


@torch.library.custom_op("geomctrl::term", mutates_args=(), device_types="cpu", schema=SCHEMA)
def _operator(function: str, constants: Any, parameters: Any, arrays: Sequence[Any]) -> list[Any]:
    term, lead = _of_name(function), arrays[0].shape[:-1]
    inputs, states = [x.contiguous() for x in (*arrays, parameters)], math.prod(lead)
    results = [torch.empty((*lead, n), dtype=torch.float64, device="cpu") for n in term.outputs]
    _, call = term.call(shared=parameters.ndim == 1, several=states > MIN_BATCH)
    sources, targets = [x.data_ptr() for x in inputs], [y.data_ptr() for y in results]
    call(constants.data_ptr(), sources, targets, states, torch.get_num_threads())
    return results


@_operator.register_kernel("cuda")
def _on_gpu(function: str, constants: Any, parameters: Any, arrays: Sequence[Any], stream: Any = None) -> list[Any]:
    """The operator on an NVIDIA GPU (not yet run on one). stream: default PyTorch's current one."""
    term, lead = _of_name(function), arrays[0].shape[:-1]
    inputs = [x.contiguous() for x in (constants, parameters, *arrays)]
    results = [arrays[0].new_empty((*lead, n)) for n in term.outputs]
    _, call = term.gpu_call(shared=parameters.ndim == 1)
    with gpu.current(call.kernel.cuda, gpu.device(arrays[0].device.index or 0)):
        on = gpu.stream_of(call.kernel.cuda, stream, arrays)
        call(on, math.prod(lead), [x.data_ptr() for x in (*inputs, *results)])
    return results


@_operator.register_fake
def _shapes(function: str, constants: Any, parameters: Any, arrays: Sequence[Any]) -> list[Any]:
    return [arrays[0].new_empty((*arrays[0].shape[:-1], n)) for n in _of_name(function).outputs]


def _of_name(name: str) -> Differentiable:
    if name not in _functions:
        raise GeomctrlError("this program was saved by another process: call Robot.to_torch here and export it again")
    return _functions[name]


def _pulled_back(
    call: Callable[..., Any], name: str, tensors: Sequence[Any], moving: Sequence[bool], weights: Sequence[Any]
) -> list[Any]:
    """The derivatives of the weighted sum of the results, by the parameters and arrays that are `moving`."""
    constants, parameters, *arrays = tensors
    operands = tuple(k for k, moves in enumerate(moving, PARAMETERS) if moves)
    results = tuple(j for j, w in enumerate(weights) if w is not None)
    slopes: list[Any] = [None] * len(moving)
    if operands and results:
        derivative = _registered(_of_name(name).pullback(operands, results))
        for k, slope in zip(operands, call(derivative, constants, parameters, *arrays, *(weights[j] for j in results))):
            shared = k == PARAMETERS and parameters.ndim == 1
            slopes[k - PARAMETERS] = slope.reshape(-1, slope.shape[-1]).sum(0) if shared else slope
    return slopes


def _with_axis(call: Callable[..., Any], size: int, axes: Sequence[Any], name: str, tensors: Sequence[Any]) -> Any:
    """The results with the batch axis first; axes: that of each tensor, or None."""
    constants, parameters, *arrays = (x if axis is None else x.movedim(axis, 0) for x, axis in zip(tensors, axes))
    arrays = [x.expand(size, *x.shape) if axis is None else x for x, axis in zip(arrays, axes[2:])]
    lead = arrays[0].shape[:-1]
    if axes[1] is not None:
        parameters = parameters.reshape(size, *(1,) * (len(lead) - parameters.ndim + 1), *parameters.shape[1:])
    if parameters.ndim > 1:
        parameters = parameters.expand(*lead, parameters.shape[-1])
    results = call(name, constants, parameters, *arrays)
    return results, (0,) * len(results)


# --- in compiled functions ---------------------------------------------------------------------------------------


def _compiled(name: str, constants: Any, parameters: Any, *arrays: Any) -> list[Any]:
    return _operator(name, constants, parameters, list(arrays))


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.function, constants, parameters, arrays = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(constants, parameters, *arrays)


def _backward(ctx: Any, weights: Sequence[Any]) -> Any:
    _, _, of_parameters, of_arrays = ctx.needs_input_grad
    slopes = _pulled_back(_compiled, ctx.function, ctx.saved_tensors, (of_parameters, *of_arrays), weights)
    return None, None, slopes[0], slopes[1:]


@_operator.register_vmap
def _vmap(info: Any, in_dims: Any, function: str, constants: Any, parameters: Any, arrays: Sequence[Any]) -> Any:
    _, *axes, of_arrays = in_dims
    results, out = _with_axis(
        _compiled, info.batch_size, (*axes, *of_arrays), function, (constants, parameters, *arrays)
    )
    return results, list(out)


_operator.register_autograd(_backward, setup_context=_save)


# --- elsewhere ---------------------------------------------------------------------------------------------------


class Term(torch.autograd.Function):
    """The operator for autograd and `torch.func`: Term.apply(function, constants, parameters, `*arrays`)."""

    @staticmethod
    def forward(function: str, constants: Any, parameters: Any, *arrays: Any) -> tuple:
        return tuple(_operator(function, constants, parameters, list(arrays)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> tuple:
        slopes = _pulled_back(Term.apply, ctx.function, ctx.saved_tensors, ctx.needs_input_grad[2:], weights)
        return None, None, *slopes

    @staticmethod
    def jvp(ctx: Any, _function: Any, _constants: Any, *rates: Any) -> tuple:
        constants, parameters, *arrays = ctx.saved_tensors
        term, lead = _of_name(ctx.function), arrays[0].shape[:-1]
        moving = {k: rate.expand(*lead, rate.shape[-1]) for k, rate in enumerate(rates, PARAMETERS) if rate is not None}
        derivative = _registered(term.pushforward(tuple(moving)))
        return Term.apply(derivative, constants, parameters, *arrays, *moving.values())

    @staticmethod
    def vmap(info: Any, in_dims: Any, function: str, *tensors: Any) -> Any:
        return _with_axis(Term.apply, info.batch_size, in_dims[1:], function, tensors)
