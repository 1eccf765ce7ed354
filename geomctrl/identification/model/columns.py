"""Columns of a regressor model besides inertia and friction: friction curves, and columns from code or TOML formulas.

It also lists the parameters of a model, (name, kind, owner) each, and checks the options that select them.
"""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import checked, choice, count, flag, function, instance, listed, number, path_of, shown
from geomctrl.control.friction.model import FrictionModel, needs_load
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.files import read_toml
from geomctrl.mechanism.states import require_vectors
from geomctrl.robot import Robot

SHAPES = {"sigmoid": "fs", "stribeck": "fb"}  # of friction curves, and the symbols of their amplitudes


@dataclass(frozen=True)
class Column:
    """A user-defined column of the regressor: the joint torques that one parameter causes.

    Parameters
    ----------
    name : str
        Name of the parameter.
    torque : callable
        (q (N, nq), v (N, nv), a (N, nv)) -> torques (N, nv) [N m] for a parameter value of one.
    positive : bool
        Whether physically consistent estimators keep the parameter >= 0. Default: False.
    initial : float
        Prior value. Default: 0.

    Examples
    --------
    >>> from geomctrl.identification import Column
    >>> Column("drag", lambda q, v, a: v * abs(v), positive=True).name
    'drag'
    """

    name: str
    torque: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    positive: bool = False  # True: physically consistent estimators keep the parameter >= 0
    initial: float = 0.0

    def __post_init__(self):
        instance("name", self.name, str, "text")
        function("torque", self.torque, "(q, v, a)", 3)
        flag("positive", self.positive)
        number("initial", self.initial)


@dataclass(frozen=True)
class Curve:
    """A friction curve of one actuator, with a fixed speed and one amplitude [N m] to estimate.

    Parameters
    ----------
    actuator : int
        Number of the actuator, from 0.
    shape : str
        "sigmoid": tanh(v / speed), friction that saturates. "stribeck": sign(v) exp(-(v / speed)^2), the additional
        friction at low speed.
    speed : float
        Speed [rad/s] of the curve. `fit_curves` finds it.

    Examples
    --------
    >>> from geomctrl.identification import Curve
    >>> Curve(0, "stribeck", 0.1).symbol
    'fb1'
    """

    actuator: int
    shape: str
    speed: float

    def __post_init__(self):
        count("actuator", self.actuator)
        choice("shape", self.shape, SHAPES)
        object.__setattr__(self, "speed", number("speed", self.speed, "a number > 0", lambda x: x > 0.0))

    @property
    def symbol(self) -> str:
        return f"{SHAPES[self.shape]}{self.actuator + 1}"

    def _torque(self, v: np.ndarray, smoothing: float) -> np.ndarray:
        """The friction torque for an amplitude of one; same shape as v."""
        u = v / self.speed
        if self.shape == "sigmoid":
            return np.tanh(u)
        return coulomb(v, smoothing) * np.exp(-(u**2))

    def _torque_by_log_speed(self, v: np.ndarray, smoothing: float) -> np.ndarray:
        """Derivative of `_torque` with respect to log(speed)."""
        u = v / self.speed
        if self.shape == "sigmoid":
            return -u / np.cosh(np.clip(u, -300.0, 300.0)) ** 2
        return 2.0 * u**2 * self._torque(v, smoothing)


def coulomb(v: np.ndarray, smoothing: float) -> np.ndarray:
    """Coulomb friction for an amplitude of one: sign(v), or tanh(v / smoothing) if smoothing > 0 [rad/s]."""
    return np.sign(v) if smoothing == 0.0 else np.tanh(v / smoothing)


# --- columns from formulas in a file ---------------------------------------------------------------------------------


Values = dict[str, Any]
CONSTANTS = {"pi": np.pi, "deg": np.pi / 180.0}
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {  # function and number of arguments
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


def friction_columns(robot: Robot, friction: FrictionModel, numbers: Iterator[int]) -> list[Column]:
    """A column for each parameter of a linear friction model, friction1, friction2, ..., with these values as prior."""
    friction.check(robot.nv)
    prior = friction.parameters(robot.nv)
    loaded = needs_load(friction, robot.nv)

    def column(k: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        if loaded:
            return lambda q, v, a: friction.columns(v, robot.inverse_dynamics(q, v, a))[..., k]
        return lambda q, v, a: friction.columns(v)[..., k]

    return [
        Column(f"friction{next(numbers)}", column(k), positive=bool(x >= 0.0), initial=float(x))
        for k, x in enumerate(prior)
    ]


def load_columns(path: str | Path, robot: Robot) -> list[Column]:
    """Read user-defined columns for a robot's `RegressorModel` from the tables [[column]] of a TOML file.

    The file contains, for example:

        [[column]]
        name = "counterbalance"    # the parameter to identify, which multiplies the torque
        joint = "joint2"           # the joint on which the torque acts
        torque = "sin(angle) * lever"
        positive = true            # the parameter can not be negative; default false
        where.lever = 0.2          # numbers and formulas, evaluated in this order
        where.angle = "q + 95 * deg"

    Formulas can use q, v, a (the joint's coordinate, velocity and acceleration in SI units), q1, v1, a1, q2, ... (those
    of all joints), earlier entries of `where`, pi, deg, `+ - * / **`, and the functions sin cos tan asin acos atan
    atan2 sinh cosh tanh exp log sqrt abs sign min max.

    Parameters
    ----------
    path : str or Path
        The file.
    robot : Robot
        The robot.

    Returns
    -------
    list of Column

    Raises
    ------
    ArgumentError
        If the file is invalid; the message names the file and the column.
    """
    path = path_of("path", path)
    instance("robot", robot, Robot, "a geomctrl.Robot")
    tables = read_toml(path).get("column", [])
    if not isinstance(tables, list) or not all(isinstance(x, dict) for x in tables):
        raise ArgumentError(f"{path}: column: expected tables [[column]], got {shown(tables)}")
    return [_column(f"{path}: [[column]] {x.get('name', k + 1)!r}", x, robot) for k, x in enumerate(tables)]


def _column(label: str, table: Mapping[str, Any], robot: Robot) -> Column:
    for key in table:
        if key not in KEYS:
            raise ArgumentError(f"{label}: {key}: expected some of {', '.join(KEYS)}")
    for key in ("name", "joint", "torque"):
        if not isinstance(table.get(key), str):
            raise ArgumentError(f"{label}: {key}: expected a string, got {shown(table.get(key))}")
    if table["joint"] not in robot.dof_names:
        raise ArgumentError(f"{label}: joint: expected one of {', '.join(robot.dof_names)}, got {table['joint']!r}")
    where = table.get("where", {})
    if not isinstance(where, dict):
        raise ArgumentError(f"{label}: where: expected a table of formulas, got {shown(where)}")
    joint = robot.dof_names.index(table["joint"])
    names = {*CONSTANTS, *_state(joint, *np.zeros((3, 1, robot.nv)))}
    steps: list[tuple[str, ast.expr]] = []
    for name, text in (*where.items(), ("torque", table["torque"])):
        if name in names or name in FUNCTIONS or not name.isidentifier():
            raise ArgumentError(f"{label}: where.{name}: expected an unused name, got {name!r}")
        steps.append((name, _formula(f"{label}: {name}", text, names)))
        names.add(name)
    torque = partial(_torque, tuple(steps), joint)
    return Column(table["name"], torque, table.get("positive", False), table.get("initial", 0.0))


def _torque(steps: tuple[tuple[str, ast.expr], ...], joint: int, q: Any, v: Any, a: Any) -> np.ndarray:
    """(N, nv), for a parameter value of one."""
    values = {**CONSTANTS, **_state(joint, q, v, a)}
    with np.errstate(all="ignore"):  # the caller checks for nan
        for name, formula in steps:
            values[name] = _value(formula, values)
    out = np.zeros_like(v)
    out[:, joint] = values["torque"]
    return out


def _state(joint: int, q: Any, v: Any, a: Any) -> Values:
    x = {"q": q, "v": v, "a": a}
    each = {f"{name}{k + 1}": column for name, rows in x.items() for k, column in enumerate(rows.T)}
    return each | {name: rows[:, joint] for name, rows in x.items()}


def _formula(label: str, text: Any, names: set[str]) -> ast.expr:
    """Return the syntax tree of a formula or a number. Raises ArgumentError unless it is arithmetic on known names."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        text = repr(float(text))
    if not isinstance(text, str):
        raise ArgumentError(f"{label}: expected a number or a formula, got {shown(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ArgumentError(f"{label}: expected a formula, got {shown(text)}: {getattr(error, 'msg', error)}") from None
    called = {id(x.func) for x in ast.walk(tree) if isinstance(x, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in names:
            near = difflib.get_close_matches(node.id, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ArgumentError(f"{label}: unknown name {node.id!r}{hint}")
        if not _is_arithmetic(node):
            raise ArgumentError(
                f"{label}: expected arithmetic and {', '.join(FUNCTIONS)}, got {ast.unparse(node)!r:.60} in"
                f" {shown(text)}"
            )
    return tree


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = FUNCTIONS.get(node.func.id) if isinstance(node.func, ast.Name) else None
        return function is not None and len(node.args) == function[1] and not node.keywords
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


# --- the parameters of a model ---------------------------------------------------------------------------------------


INERTIAL = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
AT_ACTUATORS = {"viscous": "fv", "coulomb": "fc", "offset": "fo", "rotor": "Ir"}
AT_SPRINGS = {"stiffness": "ks", "preload": "k0"}
NONE = np.zeros(0, int)
Parameter = tuple[str, str, str]


def in_order(
    robot: Robot,
    acts: Mapping[str, np.ndarray],
    actuators: Sequence[str],
    springs: Sequence[int],
    curves: Sequence[Curve],
    columns: Sequence[Column],
) -> list[Parameter]:
    """All parameters in order: bodies, actuators, springs, friction curves, user-defined columns."""
    listed: list[Parameter] = [
        (f"{kind}{i + 1}", kind, body) for i, body in enumerate(robot.body_names) for kind in INERTIAL
    ]
    listed += [
        (f"{symbol}{k + 1}", kind, actuators[int(k)]) for kind, symbol in AT_ACTUATORS.items() for k in acts[kind]
    ]
    listed += [(f"{symbol}{k + 1}", kind, robot.dof_names[k]) for kind, symbol in AT_SPRINGS.items() for k in springs]
    listed += [(c.symbol, "curve", actuators[c.actuator]) for c in curves]
    listed += [(c.name, "user", c.name) for c in columns]
    names = [name for name, _, _ in listed]
    twice = [x for x in names if names.count(x) > 1]
    if twice:
        raise ArgumentError(f"columns: the name {twice[0]!r} is used twice")
    return listed


def transmission_matrix(transmission, n: int) -> np.ndarray:
    """Return the checked matrix (actuators, n); None is the identity."""
    T = np.eye(n) if transmission is None else np.array(checked("transmission", transmission, (n,)))
    if T.ndim != 2 or not len(T) or not np.abs(T).max(1).all():
        raise ArgumentError(f"transmission: expected finite rows (actuators, {n}), none of them zero, got {T.shape}")
    return T


def actuator_names(robot: Robot, transmission: np.ndarray | None) -> list[str]:
    """Return the joint names, or for each row of a transmission the joints that it combines."""
    if transmission is None:
        return list(robot.dof_names)
    return [" + ".join(_term(c, robot.dof_names[k]) for k, c in enumerate(row) if c) for row in transmission]


def _term(coefficient: float, name: str) -> str:
    return name if coefficient == 1.0 else f"{coefficient:g} {name}"


def chosen_actuators(kind: str, chosen: bool | Sequence[int], n: int, driven: np.ndarray = NONE) -> np.ndarray:
    """Numbers of the actuators that have friction of a kind: all `driven` ones for True, none for False, or those
    given.
    """
    if isinstance(chosen, (bool, np.bool_)):
        return driven if chosen else driven[:0]
    try:
        numbers = np.array(listed(kind, chosen))
    except Exception:  # of an item that can not be converted, too
        numbers = np.zeros(1)
    outside = numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= n)
    if numbers.ndim > 1 or outside:
        raise ArgumentError(f"{kind}: expected actuator numbers from 0 to {n - 1}, got {shown(chosen)}")
    return numbers.astype(int)


def spring_joints(robot: Robot, joints: Sequence[str | int]) -> list[int]:
    """Numbers of the joints with springs, given by name or number."""
    springs = [_joint(robot, k) for k in listed("springs", joints)]
    if springs:
        require_vectors("springs", robot)
    if any(not 0 <= k < robot.nv for k in springs):
        raise ArgumentError(f"springs: expected joints' names or numbers from 0 to {robot.nv - 1}, got {list(joints)}")
    return springs


def _joint(robot: Robot, k: Any) -> int:
    try:
        return robot.joint(k) if isinstance(k, str) else count("springs", k)
    except NameNotFoundError as error:
        raise NameNotFoundError(f"springs: {error}") from None


def check_curves(curves: Sequence[Curve], n: int) -> None:
    for c in curves:
        if not isinstance(c, Curve) or not c.actuator < n:
            raise ArgumentError(
                f"curves: expected a sigmoid or stribeck of a positive speed on one of {n} actuators, got {shown(c)}"
            )
