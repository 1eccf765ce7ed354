"""Sampling of a plant's sensors and sampled actuators: one array of numbers that is updated at samples.

The part of a sensor in that array is (count, memory, delayed measurements, measurement): the number of samples so far,
the sensor's memory, measurements not yet delivered (latest first), and the measurement that the controller currently
receives. `renewed` computes the next part from the last one, with numbers or symbols. A sampled actuator is treated as
a sensor of the command.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.arguments import is_a, listed, shown
from geomctrl.errors import ArgumentError, SimulationError

from .sensors.sensor import Sensor, Truth, normals


class SampledActuatorSensor(Sensor):
    """A sampled actuator in the form of a sensor of the command."""

    def __init__(self, actuator: Any, inputs: int):
        self.name, self.actuator, self.inputs, self.delay = type(actuator).__name__, actuator, inputs, actuator.delay

    def outputs(self, robot: Any) -> dict[str, tuple[int, ...]]:
        return {"": (self.inputs,)}

    def start(self, truth: Truth, period: float) -> np.ndarray:
        return self.actuator.memory(self.inputs)

    def measure(self, truth: Truth, memory: Any, draws: Any, period: float) -> tuple[Any, Any]:
        return self.actuator.output(truth.command, memory, period)


def sampled_actuator_sensors(plant: Any) -> list[SampledActuatorSensor]:
    """The sampled actuators of a plant."""
    return [SampledActuatorSensor(actuator, plant.inputs) for actuator in plant.sampled_actuators]


MAX_NUMBERS = 10_000_000  # per sensor or actuator, because each update copies them
NOISE_BLOCK = 256  # samples whose noise is drawn at once
_warned: set[str] = set()


@dataclass(frozen=True, eq=False)
class Place:
    """Position of one sensor in the array: its period [steps] and [s], its sizes and its first index.

    late, between: delay in samples and the remaining fraction; names: outputs as {name: (index, shape)}."""

    number: int
    every: int
    period: float
    first: int
    memory: int
    measured: int
    draws: int
    late: int
    between: float
    names: Mapping[str, tuple[int, tuple[int, ...]]]

    @property
    def pending(self) -> int:
        """Number of measurements that are not yet delivered."""
        return self.late + (self.between > 0.0)

    @cached_property
    def size(self) -> int:
        return 1 + self.memory + (self.pending + 1) * self.measured

    @property
    def part(self) -> slice:
        return slice(self.first, self.first + self.size)

    @property
    def received(self) -> slice:
        """Indices of the measurement that the controller receives."""
        return slice(self.part.stop - self.measured, self.part.stop)

    @property
    def signature(self) -> tuple:
        """The properties that a compiled loop depends on."""
        return self.period, self.late, self.between

    def first_part(self, sensor: Sensor, truth: Truth, draws: np.ndarray) -> np.ndarray:
        """The part before the first sample. A sensor has its first measurement; the output of an actuator is zero."""
        memory = np.asarray(sensor.start(truth, self.period), float)
        if isinstance(sensor, SampledActuatorSensor):
            y = np.zeros(self.measured)
        else:
            y = np.asarray(sensor.measure(truth, memory, draws, self.period)[0], float)
        return np.concatenate(([0.0], memory, np.tile(y, self.pending + 1)))

    def renewed(self, sensor: Sensor, truth: Truth, part: Any, draws: Any) -> Any:
        """The part of the array after another sample."""
        m, p = self.memory, self.measured
        y, memory = sensor.measure(truth, part[1 : 1 + m], draws, self.period)
        samples = np.concatenate((y, part[1 + m : 1 + m + self.pending * p]))
        measured = samples[self.late * p : (self.late + 1) * p]
        if self.between > 0.0:
            measured = sensor.between(truth.plant.robot, measured, samples[(self.late + 1) * p :], self.between)
        after = np.concatenate((part[:1] + 1.0, memory, samples[: self.pending * p], measured))
        if len(y) != p or len(after) != self.size:
            raise ArgumentError(
                f"sensors: expected {p} measurements and {m} numbers of memory from {sensor.name!r}, got {len(y)} and"
                f" {len(memory)}"
            )
        return after


@dataclass(eq=False)
class Sensing:
    """The sensors and sampled actuators of a plant, for steps of dt [s] and a controller sampled at control_dt.

    area: their numbers, replaced at each update. Raises ArgumentError if periods are no multiples of dt.
    """

    plant: Any
    places: list[Place]
    links: list[Place]  # of sampled actuators, in order
    area: np.ndarray = field(default_factory=lambda: np.zeros(0))
    measured: dict[str, np.ndarray] = field(default_factory=dict)
    _noise: dict[int, tuple[int, np.ndarray]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(place.size for place in (*self.places, *self.links))

    @property
    def periods(self) -> list[int]:
        """Period of each sensor and sampled actuator [steps]."""
        return [place.every for place in (*self.places, *self.links)]

    @property
    def signature(self) -> tuple:
        return len(self.links), *(place.signature for place in (*self.places, *self.links))

    def renew(self, k: int, truth: Truth) -> None:
        """Measure with all sensors that are due at step k; step 0 initialises all of them."""
        if k == 0:
            area = np.zeros(self.size)
            for place in self.places:
                sensor = truth.plant.sensors[place.number]
                area[place.part] = place.first_part(sensor, truth, self._drawn(place, sensor, 0))
            for place, link in zip(self.links, sampled_actuator_sensors(truth.plant)):
                area[place.part] = place.first_part(link, truth, np.zeros(0))
            self.hold(area)
        due = [place for place in self.places if k % place.every == 0]
        if due:
            self.measure(truth, due)

    def measure(self, truth: Truth, due: Sequence[Place]) -> None:
        """Update the given sensors."""
        area = self.area.copy()
        for place in due:
            sensor, part = truth.plant.sensors[place.number], area[place.part]
            draws = self._drawn(place, sensor, int(part[0]))
            area[place.part] = _checked(sensor, place.renewed(sensor, truth, part, draws), truth.t)
        self.hold(area)

    def drive(self, truth: Truth) -> None:
        """Update the sampled actuators with a new command."""
        area = self.area.copy()
        for place, link in zip(self.links, sampled_actuator_sensors(truth.plant)):
            area[place.part] = _checked(link, place.renewed(link, truth, area[place.part], np.zeros(0)), truth.t)
            truth = truth._replace(command=area[place.received])
        self.hold(area)

    def at_work(self, command: Any, area: Any = None) -> Any:
        """The output of the sampled actuators, or the command without any."""
        return (self.area if area is None else area)[self.links[-1].received] if self.links else command

    def hold(self, area: np.ndarray) -> None:
        """Replace the array of numbers."""
        area.setflags(write=False)
        self.area, self.measured = area, self.received(area)

    def received(self, area: Any) -> dict[str, Any]:
        """The measurements that the controller receives, by name, from an array of numbers or symbols."""
        return {
            name: area[start : start + math.prod(shape)].reshape(shape)
            for place in self.places
            for name, (start, shape) in place.names.items()
        }

    @property
    def outputs(self) -> np.ndarray:
        """Indices in the array of numbers of the measurements that the controller receives, sensor by sensor."""
        return np.concatenate([np.zeros(0, int), *(np.arange(*x.received.indices(self.size)) for x in self.places)])

    def _drawn(self, place: Place, sensor: Sensor, count: int) -> np.ndarray:
        if not place.draws:
            return np.zeros(0)
        first, table = self._noise.get(place.number, (0, None))
        if table is None or not first <= count < first + NOISE_BLOCK:
            first = count - count % NOISE_BLOCK
            table = normals(sensor.keys, np.arange(first, first + NOISE_BLOCK, dtype=float), place.draws)
            table.setflags(write=False)
            self._noise[place.number] = first, table
        return table[count - first]


def sensing_of(plant: Any, control_dt: float | None, dt: float, steps: Any) -> Sensing | None:
    """The sensing of a plant, None if nothing is sampled. steps(name, period): converts a period to steps of dt."""
    links = sampled_actuator_sensors(plant)
    if not (plant.sensors or links):
        return None
    if control_dt is None:
        cause = "sensors, which sample" if plant.sensors else f"a {links[0].name}, which acts at samples"
        raise ArgumentError(f"control_dt: expected a multiple of dt, as the plant has {cause}; got None")
    x0 = plant._state_at_start(plant.robot.neutral(), np.zeros(plant.robot.nv))
    zero = Truth(0.0, plant.robot.neutral(), np.zeros(plant.robot.nv), np.zeros(plant.inputs), x0, plant)
    places: list[Place] = []
    for number, sensor in enumerate((*plant.sensors, *links)):
        is_actuator = isinstance(sensor, SampledActuatorSensor)
        period = control_dt if not is_actuator and sensor.dt is None else sensor.dt if not is_actuator else dt
        every = steps("dt" if is_actuator else f"sensors: dt of {sensor.name!r}", period)
        first = places[-1].part.stop if places else 0
        places.append(_placed(number, sensor, every, every * dt, first, zero))
        _require_memory(sensor, places[-1])
    n = len(plant.sensors)
    return Sensing(plant, places[:n], places[n:])


def _require_memory(sensor: Sensor, place: Place) -> None:
    """Raise ArgumentError for a delay that stores more numbers than should be copied at each sample."""
    if place.size > MAX_NUMBERS:
        owner = (
            f"actuators: {sensor.name}" if isinstance(sensor, SampledActuatorSensor) else f"sensors: {sensor.name!r}"
        )
        raise ArgumentError(
            f"{owner} with a delay of {sensor.delay:g} s keeps {place.pending:.6g} samples of {place.measured} numbers,"
            f" one every {place.period:g} s: {8e-9 * place.size:.3g} GB; expected at most {8e-9 * MAX_NUMBERS:.3g} GB"
        )


def _placed(number: int, sensor: Sensor, every: int, period: float, first: int, truth: Truth) -> Place:
    late, between = divmod(sensor.delay / period, 1.0)
    if between > 1.0 - 1e-6:
        late, between = late + 1.0, 0.0
    if between < 1e-6:
        between = 0.0
    else:
        _warn_once(
            f"the delay of {sensor.name!r}, {sensor.delay:g} s, is no multiple of its period, {period:g} s: it is"
            " interpolated between two samples"
        )
    robot = truth.plant.robot
    memory, shapes = len(sensor.start(truth, period)), sensor.outputs(robot)
    sizes = [math.prod(shape) for shape in shapes.values()]
    p = sum(sizes)
    names: dict[str, tuple[int, tuple[int, ...]]] = {}
    place = Place(number, every, period, first, memory, p, sensor.draws(robot), int(late), between, names)
    start = place.received.start
    for (name, shape), size in zip(shapes.items(), sizes):
        names[name] = start, shape
        start += size
    return place


def _checked(sensor: Sensor, part: np.ndarray, t: float) -> np.ndarray:
    if not np.isfinite(part).all():
        raise SimulationError(f"sensors: {sensor.name!r} has measured {part} at t = {t:.6g} s")
    return part


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=8)


def checked_sensors(plant: Any) -> tuple[Sensor, ...]:
    """The sensors of a plant under construction. Raises ArgumentError for the argument `sensors`."""
    argument = plant.sensors
    sensors = (argument,) if is_a(argument, Sensor) else tuple(listed("sensors", argument, "geomctrl.sensors"))
    names: set[str] = set()
    for sensor in sensors:
        if not is_a(sensor, Sensor):
            raise ArgumentError(f"sensors: expected geomctrl.sensors.Sensor, got {shown(sensor)}")
        if sensor.name in names:
            raise ArgumentError(f"sensors: two are named {sensor.name!r}; use distinct names")
        names.add(sensor.name)
        sensor.check(plant)
    outputs = [name for sensor in sensors for name in sensor.outputs(plant.robot)]
    for name in outputs:
        if outputs.count(name) > 1:
            raise ArgumentError(f"sensors: expected one that measures {name!r}, got {outputs.count(name)}")
    return sensors


def with_noise(plant: Any, rng: np.random.Generator) -> Any:
    """The same plant with other noise of its sensors."""
    other = copy.copy(plant)
    seeds = rng.integers(2**31, size=len(plant.sensors)).tolist()
    object.__setattr__(other, "sensors", tuple(x._with_seed(seed) for x, seed in zip(plant.sensors, seeds)))
    return other
