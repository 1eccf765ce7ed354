"""Columns of one's own from formulas in a TOML file: arithmetic on joint states, and nothing else, is evaluated."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import instance, path_of
from geomctrl.errors import ArgumentError
from geomctrl.files import read_toml
from geomctrl.robot import Robot

from .columns import Column

Values = dict[str, Any]
CONSTANTS = {"pi": np.pi, "deg": np.pi / 180.0}
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {  # and how many arguments
    name: (getattr(np, home), count)
    for name, home, count in (
        *((f, f, 1) for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "sign")),
        ("asin", "arcsin", 1), ("acos", "arccos", 1), ("atan", "arctan", 1), ("atan2", "arctan2", 2), ("abs", "abs", 1),
        ("min", "minimum", 2), ("max", "maximum", 2),
    )
}  # fmt: skip
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
KEYS = ("name", "joint", "torque", "where", "positive", "initial")


def load_columns(path: str | Path, robot: Robot) -> list[Column]:
    """The tables [[column]] of a TOML file as columns for a robot's `RegressorModel`:

        [[column]]
        name = "counterbalance"    # what is identified: what multiplies the torque
        joint = "joint2"           # which the torque acts on
        torque = "sin(angle) * lever"
        positive = true            # not negative in any machine; default false
        where.lever = 0.2          # numbers and formulas, evaluated in this order
        where.angle = "q + 95 * deg"

    A formula has q, v, a, the joint's coordinate, velocity and acceleration in SI units, q1, v1, a1, q2, ... those of
    all joints, what `where` has defined so far, pi, deg, + - * / **, and sin cos tan asin acos atan atan2 sinh cosh
    tanh exp log sqrt abs sign min max. Raises ArgumentError with the file and the column's name.
    """
    path = path_of("path", path)
    instance("robot", robot, Robot, "a geomctrl.Robot")
    tables = read_toml(path).get("column", [])
    if not isinstance(tables, list) or not all(isinstance(x, dict) for x in tables):
        raise ArgumentError(f"{path}: column: expected tables [[column]], got {tables!r:.60}")
    return [_column(f"{path}: [[column]] {x.get('name', k + 1)!r}", x, robot) for k, x in enumerate(tables)]


def _column(label: str, table: Mapping[str, Any], robot: Robot) -> Column:
    for key in table:
        if key not in KEYS:
            raise ArgumentError(f"{label}: {key}: expected some of {', '.join(KEYS)}")
    for key in ("name", "joint", "torque"):
        if not isinstance(table.get(key), str):
            raise ArgumentError(f"{label}: {key}: expected words, got {table.get(key)!r:.60}")
    if table["joint"] not in robot.dof_names:
        raise ArgumentError(f"{label}: joint: expected one of {', '.join(robot.dof_names)}, got {table['joint']!r}")
    where = table.get("where", {})
    if not isinstance(where, dict):
        raise ArgumentError(f"{label}: where: expected a table of formulas, got {where!r:.60}")
    joint = robot.dof_names.index(table["joint"])
    known = {*CONSTANTS, *_state(joint, *np.zeros((3, 1, robot.nv)))}
    steps: list[tuple[str, ast.expr]] = []
    for name, text in (*where.items(), ("torque", table["torque"])):
        if name in known or name in FUNCTIONS or not name.isidentifier():
            raise ArgumentError(f"{label}: where.{name}: expected a name that is not taken, got {name!r}")
        steps.append((name, _formula(f"{label}: {name}", text, known)))
        known.add(name)
    torque = partial(_torque, tuple(steps), joint)
    return Column(table["name"], torque, table.get("positive", False), table.get("initial", 0.0))


def _torque(steps: tuple[tuple[str, ast.expr], ...], joint: int, q: Any, v: Any, a: Any) -> np.ndarray:
    """(N, nv), of unit amplitude."""
    values = {**CONSTANTS, **_state(joint, q, v, a)}
    with np.errstate(all="ignore"):  # who asks looks for nan
        for name, formula in steps:
            values[name] = _value(formula, values)
    out = np.zeros_like(v)
    out[:, joint] = values["torque"]
    return out


def _state(joint: int, q: Any, v: Any, a: Any) -> Values:
    x = {"q": q, "v": v, "a": a}
    each = {f"{name}{k + 1}": column for name, rows in x.items() for k, column in enumerate(rows.T)}
    return each | {name: rows[:, joint] for name, rows in x.items()}


def _formula(label: str, text: Any, known: set[str]) -> ast.expr:
    """The syntax tree of a formula, or of a number; raises ArgumentError for what is no arithmetic on known names."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        text = repr(float(text))
    if not isinstance(text, str):
        raise ArgumentError(f"{label}: expected a number or a formula, got {text!r:.60}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ArgumentError(f"{label}: expected a formula, got {text!r:.80}: {getattr(error, 'msg', error)}") from None
    called = {id(x.func) for x in ast.walk(tree) if isinstance(x, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in known:
            near = difflib.get_close_matches(node.id, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ArgumentError(f"{label}: no number is called {node.id!r}{hint}")
        if not _is_arithmetic(node):
            raise ArgumentError(
                f"{label}: expected arithmetic and {', '.join(FUNCTIONS)}, got {ast.unparse(node)!r:.60} in"
                f" {text!r:.80}"
            )
    return tree


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        known = FUNCTIONS.get(node.func.id) if isinstance(node.func, ast.Name) else None
        return known is not None and len(node.args) == known[1] and not node.keywords
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return type(node.op) in OPERATORS
    return isinstance(node, (ast.Name, ast.Load, *OPERATORS))


def _value(node: Any, values: Values) -> Any:
    if isinstance(node, ast.Constant):
        return float(node.value)  # pyright: ignore[reportArgumentType] - `_formula` has looked
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.Call):
        return FUNCTIONS[node.func.id][0](*(_value(x, values) for x in node.args))  # type: ignore[attr-defined]
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](_value(node.operand, values))
    return OPERATORS[type(node.op)](np.asarray(_value(node.left, values)), _value(node.right, values))
