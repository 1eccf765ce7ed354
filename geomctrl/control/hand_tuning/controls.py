"""The numbers of a law, its reference and its plant as controls with ranges, and the loop for a setting of them."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.arguments import number, shown
from geomctrl.control.contracts import require_controller
from geomctrl.control.plant import Plant, plant_of
from geomctrl.control.rebuilding import Call, call_of, changed, has_arguments, parameters_of, path_of
from geomctrl.errors import ArgumentError, GeomctrlError, NameNotFoundError
from geomctrl.tracing.code_identity import origin

MAX_ENTRIES = 14  # largest array that gets a control for each entry
DECADE = 10.0  # ratio of the ends of a guessed range to the value
EXCLUDED = ("seed", "bits", "start", "end")
LOAD = "load"
LOAD_SHARE = 0.25  # largest load, as a share of the robot's mass
LOAD_REACH = 0.2  # m, largest offset of the load
LARGEST = 0.4 * float(np.finfo(float).max)  # largest end of a range, whose length must be a number, too

Settings = dict[str, float]


@dataclass(frozen=True)
class Control:
    """A number that can be changed; a control that scales multiplies all entries of an array.

    The range is logarithmic if low is positive, else linear.
    """

    key: str
    value: float
    low: float
    high: float
    unit: str = ""
    scales: bool = False

    @property
    def logarithmic(self) -> bool:
        return self.low > 0.0

    @property
    def group(self) -> str:
        """The object that has the number."""
        return self.key.rpartition(".")[0] or "loop"

    @property
    def name(self) -> str:
        return self.key.rpartition(".")[2]

    @property
    def is_entry(self) -> bool:
        return self.key.endswith("]") and "[" in self.name

    def position(self, value: float) -> float:
        """Where a value is in the range, from 0 to 1."""
        if self.logarithmic:
            return math.log(min(max(value, self.low), self.high) / self.low) / math.log(self.high / self.low)
        return (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    def at(self, position: float) -> float:
        """The value at a position of a slider from 0 to 1, with five digits; positions beyond are the ends."""
        position = min(1.0, max(0.0, position))  # a page can send any number
        if self.low <= self.value <= self.high and abs(position - self.position(self.value)) < 1e-9:
            return self.value
        if self.logarithmic:
            return float(f"{self.low * (self.high / self.low) ** position:.5g}")
        return float(f"{self.low + (self.high - self.low) * position:.5g}")


@dataclass(frozen=True)
class Loop:
    """A closed loop that `simulate` can run, and the robot's load."""

    plant: Plant
    controller: Any
    q0: np.ndarray
    v0: np.ndarray
    t_end: float
    dt: float
    control_dt: float | None


class Controls:
    """All controls of a loop by key, and the loop for a setting of them.

    start: (q0, v0), or None for the begin of the reference of each setting. ranges: (low, high) by key.
    """

    def __init__(
        self,
        plant: Any,
        controller: Any,
        t_end: float,
        dt: float,
        control_dt: float | None = None,
        start: Any = None,
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ):
        self.plant, self.controller = plant_of("plant", plant), controller
        require_controller(controller)
        self.t_end = number("t_end", t_end, "a positive number of seconds", lambda t: t > 0.0)
        self.dt = number("dt", dt, "a positive number of seconds", lambda t: t > 0.0)
        self.control_dt = None if control_dt is None else number("control_dt", control_dt)
        self.start = start
        self.calls: dict[int, Call] = {}  # of each object, by id(): found once, as it takes longer than a run
        self.arrays: dict[str, Any] = {}
        self.notes: list[str] = []  # what has no controls, and why
        controls = [*self._of("law", controller), *self._of("plant", self.plant), *self._of_load()]
        controls.append(Control("dt", self.dt, self.dt / 4.0, self.dt * 4.0, "s"))
        self.by_key = {control.key: control for control in controls}
        for key, limits in (ranges or {}).items():
            self.set_range(key, limits, "ranges")

    def __getitem__(self, key: str) -> Control:
        return self._known("key", key)

    def _known(self, argument: str, key: str) -> Control:
        if key not in self.by_key:
            raise NameNotFoundError(f"{argument}: there is no control {key!r}; known: {', '.join(self.by_key)}")
        return self.by_key[key]

    def set_range(self, key: str, limits: tuple[float, float], argument: str = "range") -> None:
        """Set the range of a control. Raises GeomctrlError, which begins with the name of the argument."""
        low, high = _checked_range(f"{argument}: {key}", limits)
        self.by_key[key] = dataclasses.replace(self._known(argument, key), low=low, high=high)

    @property
    def settings(self) -> Settings:
        """The setting with which tuning begins."""
        return {key: control.value for key, control in self.by_key.items()}

    def loop(self, settings: Mapping[str, float]) -> Loop:
        """The loop for a setting. Raises GeomctrlError if an object refuses a value."""
        law = self._changed("law", self.controller, settings)
        changes = self._changes("plant", settings)
        load = self.load(settings)
        if load is not None:
            changes["robot",] = self.plant.robot.with_payload(*load)
        plant = changed(self.plant, changes, self.calls) if changes else self.plant
        dt = settings["dt"]
        if self.control_dt is not None:
            dt = self.control_dt / max(1, round(self.control_dt / dt))
        return Loop(plant, law, *self._begin(plant, law), self.t_end, dt, self.control_dt)

    def load(self, settings: Mapping[str, float]) -> tuple[float, tuple[float, ...]] | None:
        """Mass and centre of the load; None without a load."""
        mass = settings.get("load.mass", 0.0)
        return (mass, tuple(settings[f"load.centre[{k}]"] for k in range(3))) if mass else None

    def moved(self, settings: Mapping[str, float]) -> dict[str, float]:
        """The controls that are not where they began."""
        return {key: value for key, value in settings.items() if value != self.by_key[key].value}

    def _begin(self, plant: Plant, law: Any) -> tuple[np.ndarray, np.ndarray]:
        if self.start is not None:
            return self.start
        reference = getattr(law, "reference", None)
        if reference is None:
            return plant.robot.neutral(), np.zeros(plant.robot.nv)
        desired = reference(0.0)
        return desired.q, desired.v

    def _changed(self, part: str, x: Any, settings: Mapping[str, float]) -> Any:
        changes = self._changes(part, settings)
        return changed(x, changes, self.calls) if changes or id(x) in self.calls else x

    def _changes(self, part: str, settings: Mapping[str, float]) -> dict[Any, Any]:
        """New values by path in the law or the plant. A scale multiplies the array after its entries are set."""
        changes: dict[Any, Any] = {}
        for key, value in self.moved(settings).items():
            control, path = self.by_key[key], path_of(key)
            if path[0] == part and not control.scales:
                changes[path[1:]] = value
        for key, value in self.moved(settings).items():
            path = path_of(key)
            if path[0] != part or not self.by_key[key].scales:
                continue
            entries = {p: changes.pop(p) for p in [*changes] if p[:-1] == path[1:]}
            array = self.arrays[key]
            scaled = changed(array, {(p[-1],): y for p, y in entries.items()}) if entries else array
            changes[path[1:]] = _like(array, value * np.asarray(scaled, float))
        return changes

    def _of(self, key: str, x: Any) -> Iterator[Control]:
        """Controls for the arguments of x, and for those of its arguments."""
        try:
            call = call_of(x)
        except GeomctrlError as error:
            self.notes.append(f"{key}: {error}")
            return
        self.calls[id(x)] = call
        hints, is_users = _hints(type(x)), origin(type(x).__module__) != "geomctrl"
        for name, value in call.all_values.items():
            if name in EXCLUDED or name == "robot":
                continue
            if not name.isidentifier():
                self.notes.append(f"{key}: {shown(name)} is no name of an attribute")
                continue
            controls = [*self._of_value(x, f"{key}.{name}", name, value, hints.get(name, ("", None, False)))]
            if is_users and not controls and (reason := _why_not_controlled(value)):
                self.notes.append(f"{key}.{name}: {reason}")
            yield from controls

    def _of_value(self, x: Any, key: str, name: str, value: Any, hint: tuple[str, Any, bool]) -> Iterator[Control]:
        unit, limits, is_float = hint
        if has_arguments(value):
            if id(value) not in self.calls or name == "reference":
                yield from self._of(key, value)
            return
        if isinstance(value, (list, tuple)) and any(map(has_arguments, value)):
            for k, item in enumerate(value):
                if has_arguments(item):
                    yield from self._of(f"{key}[{k}]", item)
            return
        if value is None:
            value = getattr(x, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and is_float:
            value = float(value)
        if isinstance(value, (float, np.ndarray)) and np.ndim(value) == 0 and np.asarray(value).dtype == np.float64:
            if math.isfinite(value):
                yield self._control(key, float(value), unit, limits)
            return
        yield from self._of_array(key, value, unit)

    def _of_array(self, key: str, value: Any, unit: str) -> Iterator[Control]:
        array = _numbers(value)
        if array is None or not np.isfinite(array).all():
            return
        poses = self._poses() if array.shape == (self.plant.robot.nq,) else set()
        if array.any() and not poses:
            self.arrays[key] = value
            yield Control(key, 1.0, 1.0 / DECADE, DECADE, "times", scales=True)
        square = array.ndim == 2 and array.shape[0] == array.shape[1] > 1
        diagonal = square and np.array_equal(array, np.diag(np.diag(array)))
        places = [(k, k) for k in range(len(array))] if diagonal else list(np.ndindex(array.shape))
        places = [place for place in places if place[0] not in poses]
        for place in places if len(places) <= MAX_ENTRIES else []:
            yield self._control(f"{key}[{','.join(map(str, place))}]", float(array[place]), unit, None)

    def _poses(self) -> set[int]:
        """Entries of a configuration that are not independent, as they are a rotation or a pose of a joint."""
        robot = self.plant.robot
        return {
            k
            for joint, s in zip(robot.joints, robot.q_slices)
            if joint.nq > joint.dof
            for k in range(*s.indices(robot.nq))
        }

    def _control(self, key: str, value: float, unit: str, limits: Any) -> Control:
        low, high = guessed_range(value) if limits is None else _checked_range(f"{key}: range", limits)
        return Control(key, value, low, high, unit)

    def _of_load(self) -> Iterator[Control]:
        robot = self.plant.robot
        heaviest = LOAD_SHARE * float(robot.parameters[:, 0].sum())
        yield Control("load.mass", 0.0, 0.0, float(f"{heaviest:.2g}"), "kg")
        for k in range(3):
            yield Control(f"load.centre[{k}]", 0.0, -LOAD_REACH, LOAD_REACH, "m")


def guessed_range(value: float) -> tuple[float, float]:
    """A decade to both sides of a positive value, and a linear range about any other."""
    if value > 0.0:
        return value / DECADE, min(value * DECADE, LARGEST)
    return (0.0, 1.0) if value == 0.0 else (max(3.0 * value, -LARGEST), min(-3.0 * value, LARGEST))


def _checked_range(name: str, limits: Any) -> tuple[float, float]:
    try:
        low, high = limits
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: expected (low, high), got {shown(limits)}") from None
    low, high = number(name, low), number(name, high)
    if not (low < high and math.isfinite(high - low)):
        raise ArgumentError(f"{name}: expected (low, high) with low < high, got {(low, high)}")
    return low, high


def _why_not_controlled(value: Any) -> str:
    """Why numbers in an argument of a user's class have no control, or an empty string."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"an int is taken as a count; write {float(value)!r} for a number to tune"
    if isinstance(value, Mapping):
        return "a dict has no controls; use a dataclass"
    if _numbers(value) is None and isinstance(value, (np.ndarray, np.generic)):
        return f"expected one or two axes of float64, got {value.dtype} of shape {value.shape}"
    return ""


def _numbers(value: Any) -> np.ndarray | None:
    """The numbers of an array, or of a list or tuple of floats."""
    if isinstance(value, np.ndarray) or (isinstance(value, (list, tuple)) and len(value)):
        try:
            array = np.asarray(value)
        except ValueError:  # rows of different lengths
            return None
        return array.astype(float) if array.dtype.kind == "f" and array.ndim in (1, 2) else None
    return None


def _like(x: Any, array: np.ndarray) -> Any:
    return array if isinstance(x, np.ndarray) else type(x)(array.tolist())


def _hints(kind: type) -> dict[str, tuple[str, Any, bool]]:
    """Unit, range and whether it is a float, for each argument that its class describes.

    The metadata of a dataclass field, "unit" and "range", come first; then the docstring, which has units in brackets.
    """
    hints: dict[str, tuple[str, Any, bool]] = {}
    parameters = parameters_of(kind)
    fields = {f.name: f.metadata for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    for name, parameter in parameters.items():
        unit = next((u for u in (_unit(base.__doc__ or "", name) for base in kind.__mro__) if u), "")
        metadata = fields.get(name, {})
        is_float = bool(re.search(r"\bfloat\b|\bArrayLike\b", str(parameter.annotation)))
        hints[name] = metadata.get("unit", unit), metadata.get("range"), is_float
    return hints


def _unit(docstring: str, name: str) -> str:
    """The first text in brackets in the description of a parameter, in a numpydoc section."""
    lines = iter(docstring.splitlines())
    for line in lines:
        names, colon, _ = line.partition(" :")
        if not colon or name not in re.split(r",\s*", names.strip()):
            continue
        for description in lines:
            if not description.startswith(names[: len(names) - len(names.lstrip())] + "    "):
                break
            unit = re.search(r"\[([^\]]{1,30})\]", description)
            if unit:
                return unit[1]
    return ""
