"""Python source that constructs a closed loop again, with every number written so that it is read back exactly."""

from __future__ import annotations

import importlib
import inspect
import keyword
import math
import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import shown
from geomctrl.errors import GeomctrlError
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.robot import Robot
from geomctrl.tracing.code_identity import origin

from .rebuilding import POSITIONAL, call_of, has_arguments
from .sweeping.fingerprint import same_result

WIDTH = 100  # characters of a line that is not broken


class PythonCode:
    """Lines of Python that define objects. `missing` names what they use and can not define, with a description."""

    def __init__(self):
        self.lines: list[str] = []
        self.imports = {"import numpy as np", "import geomctrl as gc"}
        self.missing: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # keeps objects alive, so that their id() is not reused

    @property
    def text(self) -> str:
        """The whole source; missing names are listed in comments."""
        comments = [f"# define {name} first: {description}" for name, description in self.missing.items()]
        return "\n".join([*sorted(self.imports, key=lambda line: (line.startswith("import geomctrl"), line)), *comments,
                          "", *self.lines, ""])  # fmt: skip

    def define(self, name: str, x: Any, expression: str | None = None) -> str:
        """Add the lines that define x, as an expression if it is known, and return its name."""
        if id(x) in self._names:
            return self._names[id(x)]
        taken = {*self._names.values(), *self.missing, "np", "gc"}
        name = f"{name}_" if keyword.iskeyword(name) else name
        count = sum(re.fullmatch(rf"{name}(_\d+)?", other) is not None for other in taken)
        name = f"{name}_{count + 1}" if count else name
        later: dict[str, Any] = {}
        if expression is None:
            expression, later = self._robot(x) if isinstance(x, Mechanism) else self._object(x)
        self._kept.append(x)
        self._names[id(x)] = name
        if expression is None:
            self.missing[name] = (
                re.sub(r"\s+", " ", f"{shown(x)}") if not isinstance(x, Mechanism) else f"robot {x.name}"
            )
        else:
            self.lines.append(f"{name} = {expression}")
        for attribute, y in later.items():
            value = self.value(attribute, y)
            line = (
                f"{name}.{attribute} = {value}" if _is_name(attribute) else f"setattr({name}, {attribute!r}, {value})"
            )
            self.lines.append(line)
        return name

    def value(self, name: str, x: Any) -> str:
        """An expression for the value of an argument of that name."""
        if isinstance(x, float):
            text = repr(float(x)) if math.isfinite(x) else ("np.nan" if x != x else f"{'-' * (x < 0.0)}np.inf")
            return text if type(x) is float else f"np.float64({text})"
        if x is None or isinstance(x, (bool, int, str, bytes, complex)):
            return repr(x)
        if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
            dtype = "" if x.dtype == float else f", dtype=np.{x.dtype.name}"
            return f"np.array({self.value(name, x.tolist())}{dtype})"
        if type(x) in (list, tuple):
            items = ", ".join(self.value(_singular(name, y), y) for y in x)
            return f"[{items}]" if type(x) is list else f"({items}{',' if len(x) == 1 else ''})"
        if isinstance(x, Mapping):
            return "{" + ", ".join(f"{k!r}: {self.value(str(k), y)}" for k, y in x.items()) + "}"
        if isinstance(x, (type, types.FunctionType, types.BuiltinFunctionType)):
            return self._reference(x)
        return self.define(name, x)

    def _object(self, x: Any) -> tuple[str | None, dict[str, Any]]:
        """The call that constructs x, and attributes to set afterwards."""
        try:
            call = call_of(x) if has_arguments(x) else None
        except GeomctrlError:
            call = None
        if call is None:
            return None, {}
        if hasattr(x, "func"):  # a functools.partial
            self.imports.add("import functools")
            parts = [self.value("function", y) for y in (x.func, *x.args)]
            kind = "functools.partial"
        else:
            parts, kind = [], self._reference(type(x))
        parameters = {} if hasattr(x, "func") else inspect.signature(type(x)).parameters
        for name, value in call.constructor.items():
            parameter = parameters.get(name)
            if parameter is not None and value is parameter.default:
                continue
            text = self.value(name, value)
            kinds = None if parameter is None else parameter.kind
            positional = kinds in POSITIONAL or (name in ("robot", "reference") and not any("=" in p for p in parts))
            text = f"*{text}" if kinds is inspect.Parameter.VAR_POSITIONAL else text
            parts.append(text if positional else f"{name}={text}" if _is_name(name) else f"**{{{name!r}: {text}}}")
        line = f"{kind}({', '.join(parts)})"
        return line if len(line) < WIDTH else f"{kind}(\n    " + ",\n    ".join(parts) + ",\n)", {
            name: call.attributes[name] for name in call.later
        }

    def _robot(self, robot: Any) -> tuple[str | None, dict[str, Any]]:
        """A bundled robot, or the robot of a file, perhaps with other inertial parameters."""
        from geomctrl import models

        source = getattr(robot.origin.visual, "source", None)
        bundled = robot.name in models.names()
        text = f"gc.models.load({robot.name!r})" if bundled else f"gc.models.load({str(source)!r})"
        if not bundled and not (isinstance(source, Path) and source.is_file()):
            return None, {}
        try:
            base = models.load(robot.name if bundled else str(source))
            if same_result(base, robot):
                return text, {}
            alike = isinstance(robot, Robot) and base.parameters.shape == robot.parameters.shape
            if alike and same_result(base.with_parameters(robot.parameters), robot):
                return f"{text}.with_parameters({self.value('parameters', robot.parameters)})", {}
        except GeomctrlError:
            pass
        return None, {}

    def _reference(self, x: Any) -> str:
        """The name of a class or function, with its import."""
        if origin(x.__module__) == "geomctrl":
            public = _public_name(x)
            if public is not None:
                return public
        name, module = x.__qualname__, sys.modules.get(x.__module__)
        if x.__module__ == "builtins":
            return name
        if "." not in name and x.__module__ != "__main__" and getattr(module, name, None) is x:
            self.imports.add(f"from {x.__module__} import {name}")
            return name
        file = (
            Path(inspect.getsourcefile(x) or "") if x.__module__ != "__main__" and not inspect.isbuiltin(x) else Path()
        )
        if "." not in name and file.is_file():  # the file of a controller, which the command line runs
            self.imports.add("import runpy")
            line = f'{name} = runpy.run_path({str(file)!r}, run_name="__controller__")[{name!r}]'
            self.lines += [] if line in self.lines else [line]
            return name
        name = re.sub(r"\W+", "_", name.replace("<locals>.", "").replace("<lambda>", "function"))
        self.missing[name] = f"a {'class' if isinstance(x, type) else 'function'} of your own code"
        return name


def _is_name(text: str) -> bool:
    """Whether a text can be the name of an argument or an attribute in source code."""
    return text.isidentifier() and not keyword.iskeyword(text)


def _singular(name: str, x: Any) -> str:
    """A name for an item of a list: that of its class for an object."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(x).__name__).lower() if has_arguments(x) else name


def _public_name(x: Any) -> str | None:
    gc: Any = importlib.import_module("geomctrl")
    if gc.NAMES.get(x.__name__) and getattr(gc, x.__name__) is x:
        return f"gc.{x.__name__}"
    for module in gc.MODULES:
        if x.__name__ in getattr(gc, module).__all__ and getattr(getattr(gc, module), x.__name__) is x:
            return f"gc.{module}.{x.__name__}"
    return None
