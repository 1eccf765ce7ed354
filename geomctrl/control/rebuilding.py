"""Read the arguments of a law, a reference or a plant, and construct it again with other values.

A constructor of geomctrl records its arguments (`described.recorded`). Any other class is read through its attributes:
an argument is the attribute of the same name. Nothing is believed: an object that is constructed from these arguments
must equal the original in all attributes, down to the code of their functions; otherwise the difference is named.
"""

from __future__ import annotations

import dis
import functools
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import instance, mapped, shown
from geomctrl.described import recorded
from geomctrl.errors import ArgumentError, GeomctrlError, NameNotFoundError
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.code_identity import attributes_of, is_own_class, origin

from .sweeping.fingerprint import same_result

Step = str | tuple[int, ...]  # of a path: an attribute, or an index
Path = tuple[Step, ...]
PATH = re.compile(r"\.?([^\W\d]\w*)|\[(\d+(?:, ?\d+)*)\]")
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
COLLECTED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def arguments(x: object) -> dict[str, Any]:
    """Return the arguments that construct a law, a reference, a plant or one of their parts again.

    Parameters
    ----------
    x : object
        An object of a class of geomctrl or of the user's, or a `functools.partial`. The arguments of a user's class are
        the attributes with the names of its constructor's parameters, or its dataclass fields, and in addition all
        public attributes that are floats or arrays of floats.

    Returns
    -------
    dict
        Values by name, as they were passed to the constructor, and the defaults of those that were not.

    Raises
    ------
    ArgumentError
        If the class and the arguments do not determine x: the message names the attributes that would differ.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> motion = gc.references.Sinusoids(robot, [0.0, 0.0], amplitude=0.3, frequency=0.5)
    >>> gc.control.arguments(motion)["amplitude"]
    0.3
    """
    return call_of(x).all_values


def with_arguments(x: Any, changes: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return a law, a reference, a plant or one of their parts, constructed with other arguments.

    Parameters
    ----------
    x : object
        As for `arguments`. It is not modified.
    changes : mapping of str to value
        New values by name, or by path: "reference.amplitude" is an argument of an argument, "actuators[0].tau" one of
        an item of a list, "K[2]" or "Gamma[1, 1]" one entry of an array.

    Returns
    -------
    object
        A new object of the same class; arguments that do not change are shared.

    Raises
    ------
    ArgumentError
        If x can not be constructed from its arguments, or a new value is not valid.
    NameNotFoundError
        If there is no such argument.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> law = gc.controllers.Passivity(robot, gc.references.Sinusoids(robot, [0.0, 0.0], 0.3, 0.5), K=20.0)
    >>> gc.control.with_arguments(law, {"reference.amplitude": 0.1, "K": 30.0})
    Passivity(two_link, reference=Sinusoids(two_link, q0=[0, 0], amplitude=0.1, frequency=0.5), Lambda=5, K=30)
    """
    changes = mapped("changes", changes, "values by name")
    call_of(x)  # refuses what has no arguments
    return changed(x, {path_of(name): value for name, value in changes.items()})


class Call(NamedTuple):
    """A constructor's arguments, attributes that may be set afterwards, those of them that must be, and defaults of
    other arguments.
    """

    constructor: dict[str, Any]
    attributes: dict[str, Any]
    later: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = MappingProxyType({})

    @property
    def all_values(self) -> dict[str, Any]:
        return {**self.defaults, **self.constructor, **self.attributes}


def path_of(text: str) -> Path:
    """The steps of a path such as "actuators[0].tau"."""
    steps, end = [], 0
    text = instance("changes", text, str, "paths such as 'reference.amplitude' or 'K[2]'")
    for match in PATH.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        steps.append(match[1] or tuple(int(k) for k in match[2].split(",")))
    if end != len(text) or not steps or text.startswith("."):
        raise NameNotFoundError(f"changes: expected a path such as 'reference.amplitude' or 'K[2]', got {shown(text)}")
    return tuple(steps)


def has_arguments(x: object) -> bool:
    """Whether x is an object whose arguments can be asked for, rather than a value."""
    kind = type(x)
    if isinstance(x, functools.partial):
        return True
    values = (Mechanism, type, np.ndarray, list, tuple, dict, set, str, float, int)
    return not isinstance(x, values) and is_own_class(kind)


def call_of(x: Any) -> Call:
    """The call that constructs x. Raises ArgumentError if there is none."""
    if isinstance(x, functools.partial):
        return Call(dict(x.keywords), {})
    kind = type(x)
    if not has_arguments(x):
        hint = ": use with_payload or with_parameters" if isinstance(x, Mechanism) else ""
        if callable(x) and not isinstance(x, type):
            hint = ": only a class or a functools.partial has arguments"
        raise ArgumentError(f"x: expected a law, a reference, a plant or one of their parts, got {shown(x)}{hint}")
    parameters = parameters_of(kind)
    attributes = {name: getattr(x, name) for name in parameters if _is_readable(x, name)}
    own = {} if origin(kind.__module__) == "geomctrl" else _numbers_of(x, parameters)
    problems, defaults = [], {p.name: p.default for p in parameters.values() if p.default is not p.empty}
    for constructor, rest in ((recorded(x), defaults), (attributes, {})):
        if constructor is None:
            continue
        try:
            copy = construct(x, Call(constructor, {}))
        except Exception as error:  # a user's constructor may raise anything
            problems.append(f"{type(error).__name__}: {error}")
            continue
        different = _different(x, copy)
        if different <= own.keys():
            return Call(constructor, own, frozenset(different), rest)
        problems.append(f"{', '.join(sorted(different))} would differ")
    raise ArgumentError(
        f"{kind.__name__}: can not be constructed again from its arguments ({problems[-1]}): store each argument in an"
        " attribute of the same name, and do not change the object afterwards"
    )


def construct(x: Any, call: Call) -> Any:
    """An object like x from other arguments; attributes are set if the constructor would not."""
    if isinstance(x, functools.partial):
        return functools.partial(x.func, *x.args, **call.constructor)
    args, rest = [], dict(call.constructor)
    parameters = parameters_of(type(x))
    last = max((k for k, p in enumerate(parameters.values()) if p.kind in POSITIONAL and p.name in rest), default=-1)
    for parameter in list(parameters.values())[: last + 1]:
        if parameter.name in rest:
            value = rest.pop(parameter.name)
            args += value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else [value]
    new = type(x)(*args, **rest)
    for name in call.later:
        object.__setattr__(new, name, call.attributes[name])
    return new


def changed(x: Any, changes: Mapping[Path, Any], calls: Mapping[int, Call] = MappingProxyType({})) -> Any:
    """x with other values at some paths; calls: of objects that were examined before, by id()."""
    if () in changes:
        return changes[()]
    if isinstance(x, (list, tuple, np.ndarray)) or not has_arguments(x):
        return _with_entries(x, changes, calls)
    call, groups = calls.get(id(x)) or call_of(x), _grouped(changes)
    values_before = call.all_values
    for name in groups:
        if name not in values_before:
            raise NameNotFoundError(f"{type(x).__name__}: has no argument {name!r}; known: {', '.join(values_before)}")
    values = {}
    for name, inner in groups.items():
        start = values_before[name]
        if start is None or (isinstance(start, (int, float)) and () not in inner):  # the class makes an array of it
            start = getattr(x, name, start)
        values[name] = changed(start, inner, calls)
    constructor = call.constructor | {name: v for name, v in values.items() if name not in call.attributes}
    attributes = call.attributes | {name: v for name, v in values.items() if name in call.attributes}
    return construct(x, Call(constructor, attributes, call.later | (values.keys() & call.attributes.keys())))


def _with_entries(x: Any, changes: Mapping[Path, Any], calls: Mapping[int, Call]) -> Any:
    """A list, tuple or array with other items."""
    if not isinstance(x, (list, tuple, np.ndarray)):
        raise NameNotFoundError(f"changes: {shown(x)} has no argument {next(iter(changes))[0]!r}")
    new = np.array(x, float) if isinstance(x, np.ndarray) or _is_matrix(x) else list(x)
    for index, inner in _grouped(changes).items():
        try:
            place = index[0] if isinstance(new, list) else index
            if isinstance(index, str) or (isinstance(new, list) and len(index) != 1):
                raise IndexError
            new[place] = changed(new[place], inner, calls)
        except IndexError:
            raise NameNotFoundError(f"changes: there is no item {index} in {shown(x)}") from None
        except GeomctrlError:
            raise
        except (TypeError, ValueError):
            raise ArgumentError(f"changes: expected a number for item {index}, got {shown(inner)}") from None
    if isinstance(x, np.ndarray):
        return new
    return type(x)(new.tolist() if isinstance(new, np.ndarray) else new)


def _grouped(changes: Mapping[Path, Any]) -> dict[Any, dict[Path, Any]]:
    groups: dict[Any, dict[Path, Any]] = {}
    for (first, *rest), value in changes.items():
        groups.setdefault(first, {})[tuple(rest)] = value
    return groups


def _is_matrix(x: Any) -> bool:
    return bool(x) and all(isinstance(row, (list, tuple)) for row in x)


@functools.lru_cache(maxsize=256)
def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """Parameters of a constructor by name."""
    try:
        return dict(inspect.signature(kind).parameters)
    except (TypeError, ValueError):  # a class without a signature
        return {}


def _is_readable(x: Any, name: str) -> bool:
    value = getattr(x, name, None)
    collected = parameters_of(type(x))[name].kind in COLLECTED
    return hasattr(x, name) and not collected and not (inspect.ismethod(value) and value.__self__ is x)


def _numbers_of(x: Any, parameters: Iterable[str]) -> dict[str, Any]:
    """Public attributes of a user's object, or of its class, that are floats or arrays of floats.

    An attribute that a base class of geomctrl sets depends on others and is left out.
    """
    users = [kind for kind in reversed(type(x).__mro__) if origin(kind.__module__) in ("user", "installed")]
    values = {name: value for kind in users for name, value in vars(kind).items() if isinstance(value, float)}
    own = {
        k: v
        for k, v in attributes_of(x).items()
        if isinstance(v, float) or (isinstance(v, np.ndarray) and v.dtype == np.float64)
    }
    if any(origin(kind.__module__) == "geomctrl" for kind in type(x).__mro__):
        assigned = {name for kind in users for name in _assigned(kind)}
        own = {k: v for k, v in own.items() if k in assigned}
    return {k: v for k, v in (values | own).items() if k[0] != "_" and k not in parameters}


def _assigned(kind: type) -> Iterator[str]:
    """Names of the attributes that the methods of a class assign."""
    for f in map(inspect.unwrap, filter(inspect.isfunction, vars(kind).values())):
        yield from (i.argval for i in dis.get_instructions(f) if i.opname == "STORE_ATTR")


def _different(x: Any, y: Any) -> set[str]:
    """Names of the attributes in which two objects differ."""
    a, b = attributes_of(x), attributes_of(y)
    cached = {
        name for name in a.keys() ^ b.keys() if isinstance(getattr(type(x), name, None), functools.cached_property)
    }
    both = a.keys() & b.keys()
    return (a.keys() ^ b.keys()) - cached | {name for name in both if not same_result(a[name], b[name])}
