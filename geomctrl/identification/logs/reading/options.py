"""Options for reading a log: columns, units, motor or joint coordinates, and their help texts."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from geomctrl.arguments import checked, count, flag, instance, listed, mapped, number, shown
from geomctrl.errors import ArgumentError

from .recording import real

DEGREE, RPM = np.pi / 180.0, 2.0 * np.pi / 60.0
UNITS = {
    "t": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "q": {"rad": 1.0, "deg": DEGREE, "rev": 2.0 * np.pi, "m": 1.0, "mm": 1e-3},
    "v": {"rad/s": 1.0, "deg/s": DEGREE, "rpm": RPM, "m/s": 1.0, "mm/s": 1e-3},
    "a": {"rad/s^2": 1.0, "deg/s^2": DEGREE, "m/s^2": 1.0, "mm/s^2": 1e-3},
    "tau": {"N m": 1.0, "Nm": 1.0, "N": 1.0, "mN m": 1e-3, "N mm": 1e-3, "kN m": 1e3, "kN": 1e3},
    "i": {"A": 1.0, "mA": 1e-3},
}
FIELDS = tuple(UNITS)
ANGULAR, LINEAR = ("deg", "rev", "deg/s", "rpm", "deg/s^2"), ("mm", "mm/s", "mm/s^2")  # units that imply a joint type


def factor(field: str, unit: str | Sequence[str], shape: tuple[int, ...]) -> float | np.ndarray:
    """Conversion factor to SI for values of this shape; one number for each joint if `unit` is a list."""
    if not isinstance(unit, str) and len(unit) != (shape[-1] if len(shape) == 2 else 1):
        raise ArgumentError(f"units: {field}: expected one unit, or one per column of shape {shape}, got {list(unit)}")
    for u in [unit] if isinstance(unit, str) else unit:
        if u not in UNITS[field]:
            raise ArgumentError(f"units: {field}: expected one of {', '.join(UNITS[field])}, got {u!r}")
    if isinstance(unit, str):
        return UNITS[field][unit]
    return np.array([UNITS[field][u] for u in unit])


@dataclass(frozen=True, eq=False)
class JointMapping:
    """Conversion from motor to joint coordinates: q = matrix^-1 q_motor + offset, v = matrix^-1 v_motor, tau = matrix^T
    tau_motor.

    Parameters
    ----------
    matrix : array_like, shape (nv, nv) or (nv,)
        Motor turns for each joint turn: gear ratios on the diagonal, couplings off the diagonal. A vector is a diagonal
        matrix. The torque map conserves power.
    offset : array_like, shape (nv,) or float
        Added to joint positions [rad, m], if the model's zero differs from the log's. Default 0.
    torque_at_motor : bool
        False if tau is already at the joints. Default True.
    position_at_motor : bool
        False if q, v and a are already at the joints; the offset still applies. Default True.

    Raises
    ------
    ArgumentError
        If the matrix is not invertible or shapes do not match.

    Examples
    --------
    >>> from geomctrl.identification import JointMapping
    >>> mapping = JointMapping([100.0, -50.0])  # gear ratios; the second motor turns the other way
    >>> mapping.matrix
    array([[100.,   0.],
           [  0., -50.]])
    """

    matrix: Any
    offset: Any = 0.0
    torque_at_motor: bool = True  # False: tau is already at the joints
    position_at_motor: bool = True  # False: q, v and a are already at the joints, but for the offset

    def __post_init__(self):
        flag("torque_at_motor", self.torque_at_motor)
        flag("position_at_motor", self.position_at_motor)
        N = real("joint mapping", "matrix", self.matrix)
        N = np.diag(N) if N.ndim == 1 else N
        if N.ndim != 2 or N.shape[0] != N.shape[1] or not N.size or not np.isfinite(N).all():
            raise ArgumentError(f"matrix: expected (nv,) ratios or a finite (nv, nv) matrix, got shape {N.shape}")
        if np.linalg.cond(N) > 1e10:
            raise ArgumentError("matrix: expected an invertible matrix: some motors do not determine the joints")
        offset = real("joint mapping", "offset", self.offset)
        if offset.shape not in ((), (len(N),)) or not np.isfinite(offset).all():
            raise ArgumentError(f"offset: expected a number or ({len(N)},) finite numbers, got {self.offset!r}")
        object.__setattr__(self, "matrix", N)
        object.__setattr__(self, "offset", np.broadcast_to(offset, len(N)).copy())

    def _rate(self, v: np.ndarray) -> np.ndarray:
        """Joint velocities or accelerations from those of the motors (N, nv)."""
        return np.linalg.solve(self.matrix, v.T).T if self.position_at_motor else v

    def _torque(self, tau: np.ndarray) -> np.ndarray:
        return tau @ self.matrix if self.torque_at_motor else tau


def option(default: Any, text: str) -> Any:
    """Return a dataclass field for an option; `text` is its help for documentation and command line."""
    return field(default=default, metadata={"help": text})


Options = TypeVar("Options")


def documented(options: type[Options]) -> type[Options]:
    """Add a section Parameters to the docstring of a dataclass whose fields are `option`s."""
    parameters = (
        f"{x.name} : {x.type}\n" + textwrap.indent(textwrap.fill(x.metadata["help"], 110), "    ")
        for x in fields(options)  # type: ignore[arg-type]
    )
    if options.__doc__:  # python -OO leaves them out
        summary, *others = inspect.cleandoc(options.__doc__).partition("\n\nRaises\n")
        options.__doc__ = "\n".join([summary, "", "Parameters", "----------", *parameters]) + "".join(others)
    return options


@documented
@dataclass(frozen=True)
class Reading:
    """Options for reading the log of a robot: columns, units, joints, gears, time stamps.

    `metadata["help"]` of each field describes it.

    Raises
    ------
    ArgumentError
        If a value is invalid.

    Examples
    --------
    >>> from geomctrl.identification import Reading
    >>> reading = Reading(keys={"q": "position", "tau": "effort"}, units={"q": "deg"}, rate=500.0)
    """

    keys: Mapping[str, Any] | None = option(
        None,
        'Which arrays or columns are t, q, v, a, tau, or currents i: {"q": "A_q"} an array, {"q": ["base", "elbow"]}'
        ' columns, {"tau": "effort"} a prefix that numbers follow, "axis*_effort" with * for the joint\'s number or'
        " name. Default: common names, numbered or with the joints' names, in any order.",
    )
    units: Mapping[str, str | Sequence[str]] | None = option(
        None, 'Units by field, {"q": "deg", "v": "rpm", "t": "ms"}; a list has one unit per joint. Default: SI.'
    )
    mapping: JointMapping | None = option(None, "From motor to joint coordinates. Default: the log is at the joints.")
    rate: float | None = option(None, "Sampling rate [Hz] of a log without time stamps.")
    drop_bad_rows: bool = option(False, "Leave out rows with missing numbers (empty cells) or repeated time stamps.")
    joints: Sequence[str] | None = option(
        None, "Joint names in the log, in the robot's order. Default: the robot's names."
    )
    topic: str | None = option(
        None, "Topic of joint states if a log has several. Default: /joint_states, or the only one."
    )
    current_gains: Any = option(
        None, "Torque per current [N m/A] for logs of currents, one number or one per joint: 0.12,0.12,0.08."
    )
    episodes: Sequence[int] | None = option(
        None, "Episodes to use if a log has several: 0,2-5. They are filtered separately. Default: all."
    )
    check_units: bool = option(True, "Raise an error if numbers look like degrees, milliseconds, currents, ...")

    def __post_init__(self):
        for option_name in ("keys", "units"):
            value = getattr(self, option_name)
            by_field = {} if value is None else mapped(option_name, value, "a dict by field")
            for name, x in by_field.items():
                if name not in FIELDS:
                    raise ArgumentError(f"{option_name}: expected {', '.join(FIELDS)}, got {name!r}")
                several = (
                    [x] if isinstance(x, str) else listed(f"{option_name}: {name}", x, "a name or a list of names")
                )
                if not several or not all(isinstance(k, str) for k in several):
                    raise ArgumentError(f"{option_name}: {name}: expected a name or a list of names, got {shown(x)}")
        if self.mapping is not None:
            instance("mapping", self.mapping, JointMapping, "a JointMapping")
        if self.rate is not None:
            number("rate", self.rate, "a positive number of hertz", lambda x: x > 0.0)
        flag("drop_bad_rows", self.drop_bad_rows)
        flag("check_units", self.check_units)
        if self.joints is not None:
            for name in (names := listed("joints", self.joints)):
                instance("joints", name, str, "names")
            if len(set(names)) != len(names) or not names:
                raise ArgumentError(f"joints: expected different names, one per joint, got {shown(names)}")
        if self.topic is not None:
            instance("topic", self.topic, str, "a name")
        if self.current_gains is not None:
            gains = checked("current_gains", self.current_gains, ())
            if gains.ndim > 1 or not gains.size or not gains.all():
                raise ArgumentError(f"current_gains: expected N m/A, one or one per joint, not 0, got {shown(gains)}")
        if self.episodes is not None:
            for episode in (episodes := listed("episodes", self.episodes, "numbers of episodes")):
                count("episodes", episode)
            if not episodes:
                raise ArgumentError("episodes: expected numbers of episodes, got none")
            object.__setattr__(self, "episodes", tuple(episodes))
        keys = self.keys or {}
        if "tau" in keys and ("i" in keys or self.current_gains is not None):
            raise ArgumentError("keys: expected torques tau, or currents i and their current_gains, got both")
