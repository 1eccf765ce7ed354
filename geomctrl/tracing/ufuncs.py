"""numpy's elementwise functions, products and reductions of arrays of symbols."""

from __future__ import annotations

import functools
import importlib
import sys
from itertools import chain
from typing import Any

import numpy as np

from .arrays import SymbolArray, elements, operand, sum_from_zero, wrapped
from .dtypes import dtype_of, is_truth, is_whole
from .elementwise import BINARY, TERNARY, UNARY
from .entries import refuse_narrow
from .operators import exact, number_of
from .requirements import require
from .symbols import INT64, Condition, Symbol, UntraceableError, caller, invert, kind_of, relation, truth
from .untraceable import LISTED

NATIVE = {"matmul", "vecdot", "matvec", "vecmat"}  # numpy computes these from products and sums of symbols
KEYWORDS = {"__call__": set(), "outer": set(), "reduce": {"axis", "keepdims"}, "accumulate": {"axis"}}


_NUMPY = importlib.import_module(f"numpy.{'_core' if hasattr(np, '_core') else 'core'}._multiarray_umath")  # of 2 and 1
OF_NUMPY = {f for f in vars(_NUMPY).values() if isinstance(f, np.ufunc)}  # the function np.clip calls one
OF_SCIPY: dict[str, Any] = {}  # elementwise functions by name, filled by `scipy_functions`
OF_WHOLE = {"add", "subtract", "multiply", "negative", "positive", "absolute", "square", "sign", "maximum", "minimum"}
OF_WHOLE |= {"fmax", "fmin", "clip", "floor_divide", "remainder", "floor", "ceil", "trunc"}
FLOATING = {*UNARY, "divide", "arctan2", "hypot", "copysign", "float_power", "heaviside", "less", "less_equal", "equal"}
FLOATING |= {"greater", "greater_equal", "not_equal", "logical_and", "logical_or", "logical_xor", *NATIVE}
FLOATING -= {*OF_WHOLE, "reciprocal", "conjugate", "invert"}


def _kind_of_operand(x: Any) -> str:
    return dtype_of(x).kind if isinstance(x, np.ndarray) else "i" if is_whole(x) else "b" if is_truth(x) else "f"


def _has_no_effect(key: str, x: Any) -> bool:
    """Whether a keyword has no effect, such as a dtype of double or a mask that selects all entries.

    `axis=None` has an effect: without it, `reduce` works along the first axis.
    """
    if key == "axis":
        return x is np._NoValue
    if key == "dtype":
        return x is None or x in (float, np.float64, object, bool)
    return x is None or x is np._NoValue or (x is True and key in ("where", "subok")) or x in ("same_kind", "K")


def ufunc_on_symbols(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    name, out = ufunc.__name__, kwargs.pop("out", None)
    if ufunc not in OF_NUMPY and getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
        raise UntraceableError(f"{name} of another library than numpy can not be traced{caller()}: {LISTED}")
    if name in ("divmod", "modf") and method == "__call__" and out is None and not kwargs:
        return _two_results(name, inputs)
    if method == "__call__" and (mask := kwargs.pop("where", True)) is not True:
        return _written_where(ufunc, inputs, (out or (None,))[0], mask, kwargs)
    kwargs = {key: x for key, x in kwargs.items() if not _has_no_effect(key, x)}
    unknown = sorted(set(kwargs) - KEYWORDS.get(method, set()))
    if unknown or method not in KEYWORDS:
        feature = f"{unknown[0]}=" if unknown else f"its {method}"
        advice = ": numbers are traced in double precision" if unknown == ["dtype"] else ""
        raise UntraceableError(f"np.{name} with {feature} can not be traced{caller()}{advice}")
    for x, y in (inputs, inputs[::-1]) if len(inputs) == 2 else ():
        for one in x.view(np.ndarray).ravel()[:1].tolist() if type(x) is SymbolArray else [x]:
            if type(one) in (Symbol, Condition):
                refuse_narrow(one, y)
    operands = [operand(x) for x in inputs]
    if name.startswith("logical_"):
        operands = [operand(np.frompyfunc(truth, 1, 1)(x)) for x in operands]
    elif name == "invert" or name.startswith("bitwise_"):
        for x in operands:
            if not all(isinstance(y, (Condition, bool, np.bool_)) for y in np.ravel(np.asarray(x, object)).tolist()):
                raise UntraceableError(f"np.{name} can be traced for boolean arguments only{caller()}")
    function = _function_of(ufunc, method)
    if method in ("reduce", "accumulate") and name in ("add", "multiply"):  # numpy reduces booleans as integers
        operands = [operand(np.frompyfunc(number_of, 1, 1)(operands[0])), *operands[1:]]
    kinds = set() if name in FLOATING else {*map(_kind_of_operand, operands)}
    if name in OF_WHOLE and kinds == {"b", "i"}:  # numpy converts truths beside integers to integers
        operands, kinds = [operand(np.frompyfunc(_as_whole, 1, 1)(x)) for x in operands], {"i"}
    whole = kinds == {"i"}
    if whole and name not in OF_WHOLE:
        raise UntraceableError(f"np.{name} of integers can not be traced{caller()}: use floats, as in 1.0 * x")
    result = getattr(function, method)(*operands, **kwargs)
    if name in NATIVE or (name == "add" and method == "reduce"):
        result = sum_from_zero(result)
    if whole:
        for x in chain.from_iterable(elements(y).ravel().tolist() for y in operands):
            exact(x, kind_of(x))  # numpy raises if a Python int does not fit into 64 bits
        for x in elements(operands[1]).ravel().tolist() if name in ("floor_divide", "remainder") else ():
            require(invert(relation("eq", x, 0)))
        result = np.frompyfunc(lambda x: exact(x, INT64), 1, 1)(operand(result))
    result = wrapped(result)
    if out is None:
        return result
    target = out[0]
    if not isinstance(target, np.ndarray) or target.dtype != object:
        raise UntraceableError(
            f"symbols are written into an array of numbers{caller()}: create the array in the law, or write x = x + y"
        )
    target[...] = result
    return target


@functools.cache
def _function_of(ufunc: np.ufunc, method: str) -> Any:
    """The function that computes a ufunc of numpy or scipy on arrays of symbols."""
    name = ufunc.__name__
    if name in NATIVE:
        return ufunc
    if hasattr(np, name):
        python = UNARY.get(name) or BINARY.get(name) or TERNARY.get(name)
    else:
        python = OF_SCIPY.get(name) if method == "__call__" else None
    if python is None:
        full = f"np.{name}" if ufunc in OF_NUMPY else f"scipy.special.{name}"
        raise UntraceableError(f"{full} of symbols can not be traced{caller()}: {LISTED}")
    return np.frompyfunc(python, ufunc.nin, 1, identity=ufunc.identity)


def _two_results(name: str, inputs: tuple) -> tuple:
    if name == "divmod":
        return np.floor_divide(*inputs), np.remainder(*inputs)
    whole = np.trunc(inputs[0])
    rest = np.where(np.isinf(whole), 0.0, np.subtract(inputs[0], whole))
    return np.copysign(rest, inputs[0]), np.copysign(whole, inputs[0])


def _written_where(ufunc: np.ufunc, inputs: tuple, out: Any, mask: Any, kwargs: dict[str, Any]) -> Any:
    """The results where a mask holds, and the former entries of `out` elsewhere."""
    if out is None:
        raise UntraceableError(
            f"np.{ufunc.__name__} with where= leaves the other entries undefined{caller()}: add out=, or write"
            " np.where(condition, a, b)"
        )
    if out.dtype != object:
        raise UntraceableError(f"symbols are written into an array of numbers{caller()}: create it with np.zeros(n)")
    if not all(map(is_truth, np.ravel(elements(mask)).tolist())):
        raise UntraceableError(f"np.{ufunc.__name__} with where= needs an array of bools{caller()}")
    result = ufunc_on_symbols(ufunc, "__call__", tuple(map(wrapped, map(elements, inputs))), kwargs)
    out[...] = np.where(wrapped(elements(mask)), result, out)
    return out


def _as_whole(x: Any) -> Any:
    return int(x) if isinstance(x, (bool, np.bool_)) else number_of(x)


def _of_symbols(self, ufunc, method, *inputs, **kwargs):
    return ufunc_on_symbols(ufunc, method, inputs, kwargs)


SymbolArray.__array_ufunc__ = Symbol.__array_ufunc__ = Condition.__array_ufunc__ = _of_symbols
