"""The public callables of geomctrl, by the tables of public names: functions, constructors, methods."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import geomctrl
from geomctrl.identification import ESTIMATORS
from geomctrl.identification.output_error import METHODS
from geomctrl.mechanism.mechanism import JointCoupling

BESIDES = {  # public, but not in the table of modules
    "viewing": "viewing.plots",
    "viewing.sweeps": "viewing.sweeps",
    "identification.excitation": "identification.excitation",
}

BY_NAME = {  # public functions, and functions that they call through a method, whose options are public, too
    "identification.fit": {name: x.function for name, x in ESTIMATORS.items()},
    "identification.closed_loop_fit": METHODS,
}
OF_PROPERTIES = (JointCoupling,)  # classes that properties return


class Public(NamedTuple):
    """A callable (a method is unbound), and whether it needs an instance."""

    function: Callable[..., Any]
    of_instance: bool


def public_names(module: ModuleType) -> list[str]:
    """Return `__all__`; without one, the public names that the module or its package defines."""
    if "__all__" in vars(module):
        return sorted(module.__all__)
    homes = {name: str(getattr(value, "__module__", "")) for name, value in vars(module).items()}
    own = [name for name, home in homes.items() if f"{home}.".startswith(f"{module.__name__}.")]
    return sorted(name for name in own if not name.startswith("_"))


def members(owner: type) -> Iterator[tuple[str, Public]]:
    """Return the constructor, as "", and the public methods, including inherited ones of geomctrl."""
    yield "", Public(owner, False)
    for name in dir(owner):
        home = next(base for base in owner.__mro__ if name in vars(base))
        if (name.startswith("_") and name != "__call__") or not home.__module__.startswith("geomctrl"):
            continue
        if isinstance(value := getattr(owner, name), type) or not callable(value):
            continue
        of_instance = not isinstance(vars(home)[name], staticmethod | classmethod)
        yield f".{name}", Public(value, of_instance)


def returned_class(function: Callable) -> type | None:
    """Return the class of geomctrl that a function is annotated to return."""
    text = re.findall(r"\w+", str(getattr(function, "__annotations__", {}).get("return", "")))
    home = getattr(inspect.unwrap(function), "__globals__", {})
    result = (home.get(word) for word in text)
    return next((x for x in result if isinstance(x, type) and x.__module__.startswith("geomctrl")), None)


def public_callables() -> dict[str, Public]:
    """Every public callable by its name below `geomctrl`, as users write it: "so3.exp", "Robot.mass_matrix".

    Classes that only results have are public too: they are named by their own name.
    """
    result: dict[str, Public] = {}
    classes: dict[type, str] = {}

    def add(name: str, value: object) -> None:
        if isinstance(value, type):
            protocol = getattr(value, "_is_protocol", False)
            if value not in classes and not issubclass(value, BaseException) and not protocol:
                classes[value] = name
                record = issubclass(value, tuple)  # a named tuple: its fields are read
                result.update({f"{name}{m}": public for m, public in members(value) if m or not record})
        elif callable(value):
            result.setdefault(name, Public(value, False))

    for name in geomctrl.NAMES:
        add(name, getattr(geomctrl, name))
    modules = {name: getattr(geomctrl, name) for name in geomctrl.MODULES}
    modules |= {name: importlib.import_module(f"geomctrl.{path}") for name, path in BESIDES.items()}
    modules |= {name: getattr(geomctrl.papers, name) for name in geomctrl.papers.__all__}
    for prefix, module in modules.items():
        for name in public_names(module):
            add(f"{prefix}.{name}", getattr(module, name))
    for front, functions in BY_NAME.items():
        for name, function in functions.items():
            add(f"{front}.{name}", function)
    for owner in OF_PROPERTIES:
        add(owner.__name__, owner)
    for owner in geomctrl.controllers.classes().values():
        if owner.__module__.startswith("geomctrl."):  # classes of other tests may exist, too
            add(f"controllers.{owner.__name__}", owner)
    for _ in range(3):  # return types of methods of results, and so on
        for public in list(result.values()):
            if (owner := returned_class(public.function)) is not None:
                add(owner.__name__, owner)
    return result


def parameters(public: Public) -> dict[str, inspect.Parameter]:
    """A callable's parameters, `self` left out; **options are no argument, each of them is given by its own name."""
    result = list(inspect.signature(public.function).parameters.values())[int(public.of_instance) :]
    return {p.name: p for p in result if p.kind is not p.VAR_KEYWORD}
