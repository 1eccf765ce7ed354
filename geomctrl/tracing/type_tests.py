"""Type tests in user code: a symbol reports the type of the number that it represents.

For user code `isinstance(x, float)`, `type(x)`, `x.__class__`, `x.dtype` and `x.shape` are those of the float, int,
bool or numpy number. Libraries see arrays of objects, because compiled code would read the memory of an array that
claims to contain floats.
"""

from __future__ import annotations

import dis
import functools
import threading
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .arrays import SymbolArray, TracedArray, dtype_of
from .code_identity import WRAPPERS, codes, functions_in
from .graph import CLASSES, ConditionalKind, called_by_user, kinds_in, python_type, truth_class
from .operators import number_of, whole_number
from .symbols import FLOAT, Condition, Symbol, UntraceableError, caller, with_kind

COMPUTED = {"COMPARE_OP", "CONTAINS_OP", "LOAD_FAST", "LOAD_FAST_BORROW", "CALL", "CALL_FUNCTION", "UNARY_NOT"}


def _of_numpy(name: str, value: Any) -> property:
    """An attribute of numpy numbers that Python numbers lack."""

    def attribute(self: Any) -> Any:
        if not called_by_user() and type(self.kind) is ConditionalKind:  # np.shape(x) is the same for both kinds
            return value(self)
        if not issubclass(python_type(self), np.generic):
            raise AttributeError(f"{python_type(self).__name__!r} object has no attribute {name!r}")
        return value(self)

    return property(attribute)


for _kind in (Symbol, Condition):
    for _name, _value in {
        "dtype": lambda x: np.dtype(python_type(x)),
        "shape": lambda x: (),
        "ndim": lambda x: 0,
        "T": lambda x: x,
        "size": lambda x: 1,
    }.items():
        setattr(_kind, _name, _of_numpy(_name, _value))


def _missing(self: Any, name: str) -> Any:
    """Refuse attributes that the number has and the symbol lacks; special ones are left, for which numpy asks."""
    new = name[:2] != "__" and not hasattr(type(self), name)  # otherwise a property has raised AttributeError
    if new and called_by_user() and any(hasattr(kind, name) for kind in _possible_types(self)):
        raise UntraceableError(f"the attribute {name} of a symbol is used{caller()}: call a function of numpy")
    raise AttributeError(f"a number has no attribute {name!r}")


def _possible_types(x: Any) -> set[type]:
    return {CLASSES[kind] if type(x) is Symbol else truth_class(kind) for kind in kinds_in(x.kind)}


Symbol.__getattr__ = Condition.__getattr__ = _missing  # pyright: ignore[reportAttributeAccessIssue]


def has_attribute(x: Any, name: str) -> bool:
    """hasattr for user code: the attributes of a symbol are those of the number."""
    if type(x) in (Symbol, Condition):
        return hasattr(python_type(x)(0), name)
    return hasattr(x, name)


def _dtype(self: SymbolArray) -> np.dtype:
    own = np.ndarray.dtype.__get__(self)
    if own != np.dtype(object) or not called_by_user():
        return own
    return dtype_of(self)


def _of_memory(name: str) -> property:
    """An attribute that shows how an array is stored."""
    original = getattr(np.ndarray, name)

    def attribute(self: SymbolArray) -> Any:
        if called_by_user():
            raise UntraceableError(f"the attribute {name} of an array of symbols is used{caller()}: it has no numbers")
        return original.__get__(self)

    return property(attribute)


def _set_dtype(_: SymbolArray, dtype: Any) -> None:
    raise UntraceableError(f"an array of symbols gets the dtype {dtype}{caller()}: write x.astype")


SymbolArray.dtype = property(_dtype, _set_dtype)  # pyright: ignore[reportAttributeAccessIssue]
for _name in ("data", "ctypes", "itemsize", "nbytes", "strides", "__array_interface__", "__array_struct__"):
    setattr(SymbolArray, _name, _of_memory(_name))


class _TypeReplacement(type):
    """A class that replaces `type`, `float` or `int` in user modules and compares equal to the original.

    In the tracing thread it accepts symbols; for other threads and for numbers it behaves like the original.
    """

    owner: int
    original: type

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        x = args[0] if len(args) == 1 and not kwargs else None
        if cls.original is not type:
            x = x.item() if type(x) is SymbolArray and x.size == 1 else x
            own = type(x) in (Symbol, Condition) and threading.get_ident() == cls.owner
            return CONVERTED[cls.original](x) if own else cls.original(*args, **kwargs)
        if threading.get_ident() != cls.owner or type(x) not in (Symbol, Condition):
            return np.ndarray if isinstance(x, TracedArray) else type(*args, **kwargs)
        return python_type(x)

    def __instancecheck__(cls, x: Any) -> bool:
        own = type(x) in (Symbol, Condition)
        return issubclass(python_type(x), cls.original) if own else isinstance(x, cls.original)

    def __subclasscheck__(cls, x: type) -> bool:
        return issubclass(x, cls.original)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original or getattr(other, "original", other) is cls.original

    def __hash__(cls) -> int:
        return hash(cls.original)


CONVERTED = {
    float: lambda x: with_kind(number_of(x), FLOAT),
    int: whole_number,
}


def type_replacements(owner: int) -> dict[str, Any]:
    """Replacements of `type`, `float` and `int` by name, for calls from the thread `owner`."""
    replacements: dict[str, Any] = {"type": _TypeReplacement("type", (), {"owner": owner, "original": type})}
    for kind in (float, int):
        space = {"owner": owner, "original": kind, "dtype": np.dtype(kind)}
        replacements[kind.__name__] = _TypeReplacement(kind.__name__, (kind,), space)
    return replacements


def compares_types(space: dict[str, Any]) -> bool:
    """Whether code of a module tests `is float` or `is int`; these names are then not replaced."""
    module = space.get("__name__", "builtins")
    codes = [*_codes(list(space.values()), space, module)]
    last, asks = _last_answers.get(id(space), (None, False))
    if last != codes:
        asks = any(map(_identity_of_type, codes))
        _last_answers[id(space)] = codes, asks
    return asks


def _codes(members: list[Any], space: dict[str, Any], module: str | None) -> Iterator[types.CodeType]:
    """The code of a module's functions and, unless `module` is None, of its own classes' methods."""
    for x in members:
        kind = type(x)
        if kind is types.FunctionType:
            if x.__globals__ is space:
                yield x.__code__
        elif kind in WRAPPERS:
            yield from (f.__code__ for f in functions_in(x) if f.__globals__ is space)
        elif module is not None and issubclass(kind, type) and x.__module__ == module:
            yield from _codes([*vars(x).values()], space, None)


_last_answers: dict[int, tuple[list[types.CodeType], bool]] = {}  # by module, because every trace inspects all modules


@functools.lru_cache(maxsize=10_000)
def _identity_of_type(code: types.CodeType) -> bool:
    """Whether code that uses the names tests the identity of an object that may be one of them, or their result."""
    before: list[dis.Instruction] = []
    names = {"float", "int"} & {*code.co_names}
    instructions = [*dis.get_instructions(code)] if names else []
    calls_only = all(_is_called(x) for x in instructions if x.argval in names)
    for instruction in instructions:
        if instruction.opname in ("CACHE", "RESUME", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"):
            continue
        decided = bool(before) and (before[-1].argrepr == "None" or _of_two_types(before))
        if instruction.opname == "IS_OP" and not decided and not (calls_only and _is_named(before)):
            return True
        before = [*before[-5:], instruction]
    return any(_identity_of_type(x) for x in code.co_consts if isinstance(x, types.CodeType))


def _is_called(x: dis.Instruction) -> bool:
    """Whether an instruction loads a global name in order to call it."""
    return x.opname == "LOAD_GLOBAL" and x.arg is not None and x.arg & 1 == 1


def _is_named(before: list[dis.Instruction]) -> bool:
    """Whether the right side of `is` is a global name or an attribute of one, such as a member of an enum."""
    while before and before[-1].opname == "LOAD_ATTR":
        before = before[:-1]
    return bool(before) and before[-1].opname == "LOAD_GLOBAL"


def _of_two_types(before: list[dis.Instruction]) -> bool:
    """Whether both sides of `is` are type(NAME), which returns the original class for symbols too."""
    calls = [(x.opname == "CALL", x.opname.startswith("LOAD"), x.argval == "type") for x in before]
    return calls == 2 * [(False, True, True), (False, True, False), (True, False, False)]


@functools.lru_cache(maxsize=10_000)
def identity_with_truth(code: types.CodeType) -> str:
    """Location of a test whether a computed value `is True` or `is False`; "" if there is none.

    The result of comparing symbols is a `Condition`, which is neither, and Python's `is` can not be overloaded.
    """
    before: list[dis.Instruction] = []
    of_numpy = next((f"np.{name}" for name in ("True_", "False_") if name in code.co_names), "")
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("CACHE", "RESUME", "EXTENDED_ARG", "NOP"):
            continue
        truth = len(before) == 2 and isinstance(before[1].argval, bool) and before[0].opname in COMPUTED
        named = of_numpy and before and before[-1].argrepr != "None"
        if instruction.opname == "IS_OP" and (truth or named):
            line = instruction.positions.lineno if instruction.positions else code.co_firstlineno
            return f"`is {before[1].argval if truth else of_numpy}` in {code.co_filename}, line {line}"
        before = [*before[-1:], instruction]
    inner = (identity_with_truth(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return next(filter(None, inner), "")


@functools.lru_cache(maxsize=10_000)
def _compares_objects(code: types.CodeType) -> bool:
    """Whether code may ask if two computed objects are the same, or share memory."""
    names = (
        "id",
        "is_",
        "is_not",
        "shares_memory",
        "may_share_memory",
    )  # no set, whose order differs between processes
    for c in codes(code):
        before = ""
        for instruction in dis.get_instructions(c):
            if instruction.opname == "IS_OP" and before != "LOAD_CONST":
                return True
            before = before if instruction.opname in ("CACHE", "EXTENDED_ARG", "NOP") else instruction.opname
        if not set(c.co_names).isdisjoint(names):
            return True
    return False


def refuse_identity(reached: Iterable[Any], path: str) -> None:
    """Raise UntraceableError if code among these objects compares objects, because copies of one array are several."""
    if any(_compares_objects(x) for x in reached if type(x) is types.CodeType):
        raise UntraceableError(
            f"{path} holds an array that is in other places, too, and the code compares objects by `is`: copy the array"
        )


def refuse_identity_with_truth(code: types.CodeType) -> None:
    """Raise UntraceableError if code tests whether a computed value is identical to True or False."""
    place = identity_with_truth(code)
    if place:
        raise UntraceableError(
            f"{place}: a comparison of symbols is never the object True or False; write `if x:` or `if not x:`"
        )
