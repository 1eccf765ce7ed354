"""`Episodes`: closed loops that are advanced from outside, one held command after another.

Each episode is a sampled loop of `simulate` whose law adds a torque that the caller assigns before every step. Episodes
with the same trace share the lanes of a machine, and each lane has its own clock.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.compiler.code import enabled
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.tracing.backends import host
from geomctrl.tracing.untraceable import UntraceableError

from .closed_loop import hold_count
from .compiled.choice import FittedTrace, known_trace, say
from .compiled.comparison import SIDE_BY_SIDE, WHOLE, Comparison
from .compiled.contents import Snapshot
from .compiled.machine import SAMPLE, STEP, Machine
from .contracts import Command, Controller, Reference, wants_measurements
from .loop import simulate
from .loop_runner import Case, LoopRunner, in_a_loop
from .monitors import UNRESOLVED, VIOLATED, Monitor
from .monitors.monitor import HELD
from .options import SimulationOptions
from .plant import Plant
from .run import Run
from .sensors.sensor import Truth


class Zero:
    """The law without a torque."""

    def __init__(self, inputs: int):
        self.tau = np.zeros(inputs)

    def __call__(self, t, q, v, z):
        return Command(self.tau)


class ActionLaw:
    """A base law plus `added` (inputs,), which the caller assigns. The proof of the base law is that of this one."""

    def __init__(self, base: Any, reference: Reference | None, added: np.ndarray):
        self.base, self.added, self.measurements = base, added, wants_measurements(base)
        self.reference = getattr(base, "reference", None) if reference is None else reference
        for name in ("start", "lyapunov", "allowance", "coriolis_matrix", "robot", "group", "q_d"):
            if getattr(base, name, None) is not None:
                setattr(self, name, getattr(base, name))

    def __call__(self, t, q, v, z, *y):
        tau, z_rate, signals, z_next = self.base(t, q, v, z, *y)
        return Command(tau + self.added, z_rate, signals, z_next)


class RecordedActions(ActionLaw):
    """The same with the recorded actions (samples, inputs) of an episode."""

    def __init__(self, law: ActionLaw, actions: np.ndarray, period: float):
        super().__init__(law.base, law.reference, actions)
        self.period = period

    def __call__(self, t, q, v, z, *y):
        tau, z_rate, signals, z_next = self.base(t, q, v, z, *y)
        sample = min(max(int(t / self.period + 1e-6), 0), len(self.added) - 1)
        return Command(tau + self.added[sample], z_rate, signals, z_next)


class Start(NamedTuple):
    """What an episode begins with. base: the law to whose torque actions are added."""

    plant: Plant
    base: Controller
    reference: Reference
    q0: np.ndarray
    v0: np.ndarray


class _Lane(NamedTuple):
    """A place in a machine. added: positions of the law's added torques among the machine's numbers."""

    machine: Machine
    number: int
    added: np.ndarray


class Episodes:
    """`count` closed loops, each with its own time, stepped together.

    q (count, nq), v (count, nv) are the current states, tau (count, inputs) the last commands, measured (count, m) the
    outputs of all sensors that the controller would receive now, k (count,) the numbers of steps since the start.
    steps: the largest such number. monitors: prototypes, which are copied for each episode.
    """

    def __init__(
        self,
        count: int,
        dt: float,
        control_dt: float,
        steps: int,
        monitors: Sequence[Monitor],
        options: SimulationOptions,
    ):
        self.dt, self.control_dt, self.hold = float(dt), float(control_dt), hold_count(control_dt, dt)
        self.steps, self.t_end = steps, steps * self.hold * self.dt
        self.monitors, self.options, self.k = list(monitors), options, np.zeros(count, int)
        self.runners: list[Any] = [None] * count
        self.starts: list[Any] = [None] * count
        self.width = host.lanes() if count > 1 else 1
        self.in_block = np.zeros(count, bool)  # whether an episode is in the machine of its block
        self.lanes: list[_Lane | None] = [None] * count
        self.machines: dict[int, Machine] = {}  # of blocks of lanes
        self._restore: list[Any] = [None] * count
        self._latest: tuple[Start, Any, np.ndarray, _Lane] | None = None  # the last lane with a new trace or numbers
        self._compared: set[int] = set()
        self.q = self.v = self.tau = self.measured = np.zeros((count, 0))

    # --- beginning -----------------------------------------------------------------------------------------------

    def begin(self, k: int, start: Start) -> None:
        """Begin episode k anew. Raises ArgumentError, and UntraceableError with `compiled=True`."""
        if self._restore[k] is not None:
            self._restore[k]()
        before: Start | None = self.starts[k]
        same = before is not None and all(x is y for x, y in zip(before[:3], start[:3]))
        law = self.runners[k].loop.controller if same else ActionLaw(start.base, start.reference, np.zeros(0))
        if not same:
            law.added = np.full(start.plant.inputs, 0.5)  # no zeros: those would be constants of the trace
            self._restore[k] = Snapshot(start.base)
        self.starts[k], self.k[k] = start, 0
        runner = self.runners[k] = self._runner(start, law)
        if not self.q.size:
            count, robot = len(self.k), start.plant.robot
            self.q, self.v = np.zeros((count, robot.nq)), np.zeros((count, robot.nv))
            self.tau = np.zeros((count, start.plant.inputs))
            self.actions = np.zeros((count, self.steps, start.plant.inputs))
            self.measured = np.zeros((count, 0 if runner.loop.sensing is None else len(runner.loop.sensing.outputs)))
        if self.options.compiled is not False and enabled() and (not same or self.lanes[k] is None):
            lane = self.lanes[k] = self._lane(k, start, law)
            self.in_block[k] = lane is not None and lane.machine is self.machines.get(k // self.width)
        self.q[k], self.v[k] = runner.loop.split(runner.loop.y)[:2]
        self._measure(k)

    def _measure(self, k: int) -> None:
        """Store what the sensors of episode k measure now, in Python; its next sample measures the same again."""
        loop = self.runners[k].loop
        if loop.sensing is not None:
            sensing, (q, v, _), first = copy.copy(loop.sensing), loop.split(loop.y), not self.k[k]
            command = np.zeros(loop.inputs) if first else sensing.at_work(loop.command.tau)
            truth = Truth(self.k[k] * self.control_dt, q, v, command, loop.plant_state(loop.y), loop.now)
            if first:
                sensing.renew(0, truth)
            else:
                sensing.measure(truth, sensing.places)
            self.measured[k] = sensing.area[sensing.outputs]

    def _runner(self, start: Start, law: ActionLaw) -> LoopRunner:
        case, options = Case(start.plant, law, start.q0, start.v0), SimulationOptions(self.options.method, 2**30)
        monitors = [copy.copy(m) for m in self.monitors]
        runner = LoopRunner(case, self.t_end, self.dt, self.control_dt, monitors, options, confirming=False)
        for period in [] if runner.loop.sensing is None else runner.loop.sensing.periods:
            if self.hold % period:
                raise ArgumentError(
                    f"control_dt: expected a multiple of {period * self.dt:g} s, the period of a sensor or actuator"
                )
        return runner

    def _lane(self, k: int, start: Start, law: ActionLaw) -> _Lane | None:
        """The compiled lane of an episode, compared with Python; None if the loop runs in Python."""
        width = self.width
        block, number = divmod(k, width)
        if self._latest is not None:
            latest, traced, values, lane = self._latest
            machine = self.machines.setdefault(block, Machine(traced, width))
            if machine.traced is traced and all(x is y for x, y in zip(latest[:3], start[:3])):
                self._numbers(machine)[:, number] = values[machine.numbers.used]
                return _Lane(machine, number, lane.added)
        try:
            probe = self._runner(start, law)
            with in_a_loop():
                probe.begin()
            trace = known_trace(probe.loop, probe.record.watchers, False)
            machine = self.machines.setdefault(block, Machine(trace.traced, width))
            if machine.traced is not trace.traced:
                machine, number = Machine(trace.traced, 1), 0
            lane = self._compared_lane(machine, number, probe, trace, law)
            self._latest = start, trace.traced, trace.copies.values, lane
            return lane
        except UntraceableError as error:
            if self.options.compiled is True:
                raise
            say(f"these episodes run in Python: {error}")
            return None
        finally:
            self._restore[k]()

    def _compared_lane(
        self, machine: Machine, number: int, probe: LoopRunner, trace: FittedTrace, law: ActionLaw
    ) -> _Lane:
        values, used = trace.copies.values, machine.numbers.used
        if machine.addresses == (0, 0):
            machine.set_numbers([values] * machine.width)
        self._numbers(machine)[:, number] = values[used]
        law.added = law.added + 1.0  # shows which numbers these are
        with in_a_loop():
            other = known_trace(probe.loop, probe.record.watchers, False).copies.values
        law.added = law.added - 1.0
        added = np.searchsorted(used, np.flatnonzero(other != values))
        if len(added) != len(law.added) or (other[used][added] == values[used][added]).any():
            raise UntraceableError("the compiled loop does not use the torque that `step` adds to the command")
        others = machine.memory.copy()  # of lanes in the middle of an episode
        machine.put(number, probe.loop, probe.record, 0.0, probe.k1)
        first = id(machine.traced) not in self._compared
        self._compared.add(id(machine.traced))
        comparison = Comparison(probe.loop, machine, number, trace.parts, WHOLE if first else SIDE_BY_SIDE)
        comparison.before(0.0, self.t_end, self.control_dt)
        machine.memory[:] = others
        return _Lane(machine, number, added)

    def _numbers(self, machine: Machine) -> np.ndarray:
        """The numbers of a machine (used, lanes)."""
        if machine.addresses == (0, 0):
            assert self._latest is not None
            machine.set_numbers([self._latest[2]] * machine.width)
        return machine.values[:-1].reshape(-1, machine.width)

    def _put(self, k: int) -> None:
        """Copy an episode into its lane, if it has one."""
        lane, runner = self.lanes[k], self.runners[k]
        if lane is not None:
            lane.machine.put(lane.number, runner.loop, runner.record, self.k[k] * self.control_dt, runner.k1)

    # --- steps ---------------------------------------------------------------------------------------------------

    def step(self, active: np.ndarray, added: np.ndarray) -> dict[int, str]:
        """Advance the active episodes (count,) by control_dt under the torques `added` (count, inputs).

        Returns the reasons of those that could not be advanced; their states stay as they are.
        """
        failed: dict[int, str] = {}
        episodes = np.flatnonzero(active)
        self.actions[episodes, self.k[episodes]] = added[episodes]
        begins = np.full(len(self.k), SAMPLE)
        for k in episodes[self.k[episodes] == 0].tolist():
            if self.lanes[k] is not None and self._first_sample(k, added[k], failed):
                begins[k] = STEP
        active = active.copy()
        active[list(failed)] = False
        for block, machine in self.machines.items():
            part = slice(block * self.width, (block + 1) * self.width)
            here, fresh = active[part] & self.in_block[part], begins[part] == STEP
            for chosen, begin in ((here & fresh, STEP), (here & ~fresh, SAMPLE)):
                if chosen.any():
                    numbers = np.flatnonzero(chosen)
                    self._step_in_machine(machine, part.start + numbers, numbers, added, failed, begin)
        for k in np.flatnonzero(active & ~self.in_block).tolist():
            lane = self.lanes[k]
            if lane is None:
                self._step_in_python(k, added[k], failed)
            else:
                alone = np.array([k]), np.array([lane.number])
                self._step_in_machine(lane.machine, *alone, added, failed, int(begins[k]))
        return failed

    def _first_sample(self, k: int, added: np.ndarray, failed: dict[int, str]) -> bool:
        """Take the first sample of an episode in Python, which begins its monitors, and fill its lane."""
        runner = self.runners[k]
        runner.loop.controller.added = added.copy()
        try:
            with in_a_loop(), runner.explained():
                runner.sample()
        except SimulationError as error:
            failed[k] = str(error)
            return False
        self._put(k)
        return True

    def _step_in_machine(
        self,
        machine: Machine,
        episodes: np.ndarray,
        numbers: np.ndarray,
        added: np.ndarray,
        failed: dict[int, str],
        begin: int,
    ) -> None:
        """Advance episodes in the lanes `numbers`, which begin with a sample or a step; others keep theirs."""
        lane: _Lane = self.lanes[episodes[0]]  # pyright: ignore[reportAssignmentType]
        self._numbers(machine)[lane.added[:, None], numbers] = added[episodes].T
        start = machine.layout.start
        clock = machine.memory[start : start + machine.width]
        clock[numbers] = self.k[episodes] * self.control_dt
        machine.time[numbers] = clock[numbers]
        before, alive = machine.memory.copy(), int((1 << numbers).sum())
        stopped = machine.run(0, self.hold, 2**30, -1, self.dt, math.inf, alive, begin, False)[2] & alive
        if stopped:  # the others repeat the step after Python has taken or explained it
            machine.memory[:] = before
            without = (stopped >> numbers & 1).astype(bool)
            for k, number in zip(episodes[without].tolist(), numbers[without].tolist()):
                runner = self.runners[k]
                runner.k1 = machine.take(number, runner.loop, runner.record)
                self._step_in_python(k, added[k], failed, begin)
                self._put(k)
            if not without.all():
                self._step_in_machine(machine, episodes[~without], numbers[~without], added, failed, begin)
            return
        if len(episodes) < machine.width:
            self._restore_others(machine, numbers, before)
        parts, column = self.runners[episodes[0]].loop.parts, machine.traced.commanded[0]
        y = machine.y[:, numbers].T
        self.q[episodes], self.v[episodes] = y[:, parts[0]], y[:, parts[1]]
        self.tau[episodes] = machine.held[column.first : column.first + column.size, numbers].T
        self.k[episodes] += 1
        if self.measured.size:
            outputs = self.runners[episodes[0]].loop.sensing.outputs
            self.measured[episodes] = machine.measured()[outputs][:, numbers].T

    def _restore_others(self, machine: Machine, numbers: np.ndarray, before: np.ndarray) -> None:
        others, w = np.delete(np.arange(machine.width), numbers), machine.width
        for area in (machine.x, machine.stage_held, machine.slopes, machine.pace):
            first = (area.ctypes.data - machine.memory.ctypes.data) // 8
            area[:, others] = before[first : first + area.size].reshape(-1, w)[:, others]

    def _step_in_python(self, k: int, added: np.ndarray, failed: dict[int, str], begin: int = SAMPLE) -> None:
        runner = self.runners[k]
        runner.loop.controller.added = added.copy()
        runner.k, runner.next = int(self.k[k]) * self.hold, begin
        y = runner.loop.y
        try:
            with in_a_loop(), runner.explained():
                for _ in range(self.hold - (begin == STEP)):
                    runner.in_python()
                runner.loop.step(runner.time(runner.k), self.dt, runner.k1)
        except SimulationError as error:
            failed[k], runner.loop.y = str(error), y
            return
        self.q[k], self.v[k] = runner.loop.split(runner.loop.y)[:2]
        self.tau[k] = runner.loop.command.tau
        self.k[k] += 1
        self._measure(k)

    # --- results -------------------------------------------------------------------------------------------------

    def watched(self, k: int) -> Mapping[str, Monitor]:
        """The monitors of an episode by name."""
        return {m.name: m for m in self.runners[k].record.monitors}

    def worst(self, k: int) -> dict[str, float]:
        """The worst value of each monitor so far."""
        lane, names = self.lanes[k], self.watched(k)
        if lane is None or not self.k[k]:
            return dict(zip(names, map(float, self.runners[k].record.worst)))
        first = lane.machine.traced.worst
        return dict(zip(names, lane.machine.remembered[first : first + len(names), lane.number].tolist()))

    def worst_of_all(self) -> tuple[list[str], np.ndarray]:
        """Names of the monitors, and their worst values (count, monitors)."""
        names = list(self.watched(0))
        worst = np.empty((len(self.k), len(names)))
        machines = {id(m): m for m in self.machines.values()}
        for block, machine in self.machines.items() if names else ():
            first, n = block * machine.width, len(worst[block * machine.width :][: machine.width])
            values = machine.remembered[machine.traced.worst : machine.traced.worst + len(names)]
            worst[first : first + n] = values[:, :n].T
        for k, lane in enumerate(self.lanes) if names else ():
            if lane is None or not self.k[k] or id(lane.machine) not in machines:
                worst[k] = list(self.worst(k).values())
        return names, worst

    def verdicts(self, k: int, confirmed: bool) -> dict[str, str]:
        """The verdict of each monitor. Values beyond a limit are confirmed by repeating the episode, if `confirmed`."""
        worst, limits = self.worst(k), {name: m.limit for name, m in self.watched(k).items()}
        beyond = {name for name, x in worst.items() if not x <= limits[name]}
        results = self.run(k).monitors if beyond and confirmed else {}
        direct = {n for n, m in self.watched(k).items() if type(m).confirm is Monitor.confirm}
        return {
            name: HELD if name not in beyond
            else results[name].verdict if results
            else VIOLATED if name in direct else UNRESOLVED
            for name in worst
        }  # fmt: skip

    def run(self, k: int) -> Run:
        """The episode up to now as a run of `simulate` with the recorded actions."""
        if not self.k[k]:
            raise ArgumentError("run: expected an episode with at least one step")
        self._restore[k]()
        start, steps = self.starts[k], int(self.k[k])
        law = RecordedActions(self.runners[k].loop.controller, self.actions[k, :steps].copy(), self.control_dt)
        watching = [copy.copy(m) for m in self.monitors]
        options = SimulationOptions(self.options.method, compiled=False)
        t_end = steps * self.hold * self.dt
        return simulate(start.plant, law, start.q0, start.v0, t_end, self.dt, self.control_dt, watching, options)
