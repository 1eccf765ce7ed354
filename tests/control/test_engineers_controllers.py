"""Controllers as engineers write them, with branches and memory: a whole run, compiled and in Python, is the same.

Each class is a law on the two-link arm, sampled every 10 ms unless `control_dt` is None. `REFUSED` do not compile; they
say why. Nothing may differ: states, commands, signals, and what the law's attributes are at the end.
"""

import enum
import math
from collections import deque
from operator import is_

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from simulation_options import COMPILED, IN_PYTHON, grouped

import geomctrl as gc
from geomctrl import models
from geomctrl.tracing.symbols import UntraceableError

ROBOT = models.two_link()
GOAL = np.array([0.4, -0.3])
DT = 0.01


class Law:
    control_dt = DT
    signals = None

    def __init__(self):
        self.robot = ROBOT
        self.setup()

    def setup(self):
        pass

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(np.array(self.tau(t, q, v)))


class Sine:
    def __init__(self):
        self.last = 0.0

    def filtered(self, x):
        self.last = self.last + 0.2 * (x - self.last)
        return self.last


class PidWithAntiWindup(Law):
    def setup(self):
        self.integral, self.previous = np.zeros(2), None

    def tau(self, t, q, v):
        e = GOAL - q
        derivative = np.zeros(2) if self.previous is None else (e - self.previous) / DT
        u = 20.0 * e + 2.0 * self.integral + 1.5 * derivative
        for i in range(2):
            if abs(u[i]) < 8.0 or u[i] * e[i] < 0:
                self.integral[i] += e[i] * DT
        self.previous = e.copy()
        return np.clip(u, -8.0, 8.0)


class PidOfScalars(Law):
    def setup(self):
        self.integral_1, self.integral_2 = 0, 0

    def tau(self, t, q, v):
        self.integral_1 += (GOAL[0] - q[0]) * DT
        self.integral_2 += (GOAL[1] - q[1]) * DT
        self.integral_1 = max(-0.5, min(0.5, self.integral_1))
        self.integral_2 = max(-0.5, min(0.5, self.integral_2))
        return 15.0 * (GOAL - q) - 2.0 * v + 4.0 * np.array([self.integral_1, self.integral_2])


class SlidingModeWithBoundaryLayer(Law):
    control_dt = None

    def tau(self, t, q, v):
        s = v + 3.0 * (q - GOAL)
        out = []
        for x in s:
            if x > 0.1:
                out.append(-5.0)
            elif x < -0.1:
                out.append(5.0)
            else:
                out.append(-50.0 * x)
        return out


class SlidingModeBySign(Law):
    def tau(self, t, q, v):
        return -4.0 * np.sign(v + 2.0 * (q - GOAL)) - v


class GainTable(Law):
    control_dt = None
    table = ((0.2, 5.0), (0.5, 10.0), (1.0, 15.0))

    def gain(self, x):
        for limit, gain in self.table:
            if x < limit:
                return gain
        return 20.0

    def tau(self, t, q, v):
        return [self.gain(abs(GOAL[i] - q[i])) * (GOAL[i] - q[i]) - 2.0 * v[i] for i in range(2)]


class GainSchedule(Law):
    control_dt = None

    def tau(self, t, q, v):
        k = np.interp(np.linalg.norm(q - GOAL), [0.0, 0.5, 1.0], [5.0, 10.0, 30.0])
        return k * (GOAL - q) - 2.0 * v


class Mode(enum.Enum):
    APPROACH = 1
    HOLD = 2
    RETREAT = 3


class StateMachineOfEnums(Law):
    def setup(self):
        self.mode = Mode.APPROACH

    def tau(self, t, q, v):
        e = GOAL - q
        if self.mode is Mode.APPROACH and np.linalg.norm(e) < 0.2:
            self.mode = Mode.HOLD
        elif self.mode is Mode.HOLD and t > 1.2:
            self.mode = Mode.RETREAT
        target = GOAL if self.mode is not Mode.RETREAT else np.zeros(2)
        k = 30.0 if self.mode is Mode.HOLD else 12.0
        return k * (target - q) - 3.0 * v


class StateMachineOfStrings(Law):
    def setup(self):
        self.state, self.since = "move", 0.0

    def tau(self, t, q, v):
        if self.state == "move":
            u = 10.0 * (GOAL - q) - 2.0 * v
            if abs(q[0] - GOAL[0]) < 0.1:
                self.state, self.since = "brake", t
        elif self.state == "brake":
            u = -6.0 * v
            if t - self.since > 0.3:
                self.state = "move"
        return u


class StateMachineOfInts(Law):
    def setup(self):
        self.phase = 0

    def tau(self, t, q, v):
        if self.phase == 0:
            if q[0] > 0.2:
                self.phase = 1
            return 10.0 * (GOAL - q) - v
        if self.phase == 1:
            if t > 1.0:
                self.phase = 2
            return 20.0 * (GOAL - q) - 3.0 * v
        return -2.0 * v


class WaypointFollower(Law):
    def setup(self):
        self.points, self.index = [np.array([0.3, 0.0]), np.array([0.4, -0.3]), np.array([-0.2, 0.5])], 0

    def tau(self, t, q, v):
        if np.linalg.norm(self.points[self.index] - q) < 0.12 and self.index < len(self.points) - 1:
            self.index += 1
        return 25.0 * (self.points[self.index] - q) - 4.0 * v


class FilteredDerivative(Law):
    def setup(self):
        self.e, self.d = None, np.zeros(2)

    def tau(self, t, q, v):
        e = GOAL - q
        if self.e is not None:
            self.d = 0.8 * self.d + 0.2 * (e - self.e) / DT
        self.e = e
        return 12.0 * e + 1.5 * self.d


class FilterObjects(Law):
    def setup(self):
        self.filters = [Sine(), Sine()]

    def tau(self, t, q, v):
        u = 10.0 * (GOAL - q) - 2.0 * v
        return [f.filtered(x) for f, x in zip(self.filters, u)]


class RateLimiter(Law):
    def setup(self):
        self.u = np.zeros(2)

    def tau(self, t, q, v):
        wanted = 20.0 * (GOAL - q) - 3.0 * v
        for i in range(2):
            step = wanted[i] - self.u[i]
            if step > 0.5:
                step = 0.5
            elif step < -0.5:
                step = -0.5
            self.u[i] += step
        return self.u


class DeadZone(Law):
    control_dt = None

    def tau(self, t, q, v):
        e = GOAL - q
        return [0.0 if abs(x) < 0.05 else 15.0 * (x - math.copysign(0.05, 1.0)) for x in e] - 2.0 * v


class Hysteresis(Law):
    def setup(self):
        self.on = False

    def tau(self, t, q, v):
        if self.on and q[0] > 0.5:
            self.on = False
        elif not self.on and q[0] < 0.3:
            self.on = True
        return np.array([3.0 if self.on else -1.0, 0.0]) - v


class Counter(Law):
    def setup(self):
        self.count = 0

    def tau(self, t, q, v):
        self.count += 1
        boost = 1.5 if self.count % 20 < 5 else 1.0
        return boost * 10.0 * (GOAL - q) - 2.0 * v


class Latch(Law):
    def setup(self):
        self.tripped, self.trips = False, 0

    def tau(self, t, q, v):
        if abs(v[0]) > 0.6 and not self.tripped:
            self.tripped = True
            self.trips += 1
        return -3.0 * v if self.tripped else 20.0 * (GOAL - q) - v


class RingBufferOfADeque(Law):
    def setup(self):
        self.past = deque([0.0] * 5, maxlen=5)

    def tau(self, t, q, v):
        self.past.append(v[0])
        return 10.0 * (GOAL - q) - 2.0 * v - 0.5 * sum(self.past) / len(self.past)


class RingBufferWithAnIndex(Law):
    def setup(self):
        self.buffer, self.index = [0.0] * 4, 0

    def tau(self, t, q, v):
        self.buffer[self.index] = q[0]
        self.index = (self.index + 1) % 4
        return 10.0 * (GOAL - q) - 2.0 * v + np.array([0.3 * self.buffer[self.index], 0.0])


class RingBufferOfAnArray(Law):
    """The integer grows without limit; it selects rows that are read and written."""

    def setup(self):
        self.buffer, self.k = np.zeros((6, 2)), 0

    def tau(self, t, q, v):
        self.buffer[self.k % 6] = q
        self.buffer[(self.k + 2) % 6] += 0.01 * v
        oldest = self.buffer[(self.k + 1) % 6]
        self.k += 1
        return 10.0 * (GOAL - q) - (q - oldest if self.k > 6 else 0.1 * v)


class AttitudeOfTheTool(Law):
    """An attitude that is integrated from a rate, and a mean that follows it."""

    def setup(self):
        self.attitude, self.mean = Rotation.identity(), None

    def tau(self, t, q, v):
        self.attitude = self.attitude * Rotation.from_rotvec([0.01 * v[0], 0.0, 0.01 * v[1]])
        if self.mean is None:
            self.mean = self.attitude
        off = self.mean.inv() * self.attitude
        self.mean = self.mean * Rotation.from_rotvec(0.1 * off.as_rotvec())
        return 10.0 * (GOAL - q) - 2.0 * v - off.as_rotvec()[::2] - self.attitude.apply([0.0, 0.0, 1.0])[:2]


class FilterWithMedian(Law):
    def setup(self):
        self.past, self.friction = deque([np.zeros(2) for _ in range(5)], maxlen=5), np.poly1d([0.5, 0.0, 1.0, 0.0])

    def tau(self, t, q, v):
        self.past.append(v)
        return 10.0 * (GOAL - q) - 2.0 * np.median(np.array(self.past), axis=0) - 0.1 * self.friction(v)


class RollingArray(Law):
    def setup(self):
        self.window = np.zeros((4, 2))

    def tau(self, t, q, v):
        self.window[:-1] = self.window[1:]
        self.window[-1] = q
        return 10.0 * (GOAL - self.window.mean(axis=0)) - 2.0 * v


class SafetyStop(Law):
    def tau(self, t, q, v):
        if abs(v).max() > 1.5:
            raise RuntimeError(f"too fast: {abs(v).max():.3f} rad/s")
        return 60.0 * (GOAL - q)


class SafetyStopOfATry(Law):
    def tau(self, t, q, v):
        try:
            if abs(q[0]) > 0.35:
                raise ValueError("limit")
            return 10.0 * (GOAL - q) - v
        except ValueError:
            return -4.0 * v


class SaturationOfMaxAndMin(Law):
    control_dt = None

    def tau(self, t, q, v):
        return [max(-2.0, min(2.0, x)) for x in 20.0 * (GOAL - q) - 2.0 * v]


class SaturationOfClip(Law):
    control_dt = None

    def tau(self, t, q, v):
        return np.clip(20.0 * (GOAL - q) - 2.0 * v, -2.0, 2.0)


class LoopWithBreak(Law):
    control_dt = None

    def tau(self, t, q, v):
        worst = 0.0
        for limit in (0.1, 0.2, 0.4, 0.8):
            if abs(q[0] - GOAL[0]) < limit:
                break
            worst = limit
        return (10.0 + 10.0 * worst) * (GOAL - q) - 2.0 * v


class ComprehensionWithConditions(Law):
    control_dt = None

    def tau(self, t, q, v):
        big = [x for x in q - GOAL if abs(x) > 0.1]
        return -5.0 * (q - GOAL) - 2.0 * v - 0.1 * sum(big)


class AngleWrap(Law):
    control_dt = None

    def tau(self, t, q, v):
        e = []
        for x in GOAL - 3.0 * q:
            while x > math.pi:
                x -= 2.0 * math.pi
            while x < -math.pi:
                x += 2.0 * math.pi
            e.append(x)
        return 3.0 * np.array(e) - 2.0 * v


class EarlyReturns(Law):
    control_dt = None

    def tau(self, t, q, v):
        if t < 0.2:
            return np.zeros(2)
        if np.all(np.abs(q - GOAL) < 0.02) and np.all(np.abs(v) < 0.02):
            return self.robot.gravity_force(q)
        return 8.0 * (GOAL - q) - 2.0 * v


class FrictionCompensation(Law):
    control_dt = None

    def tau(self, t, q, v):
        return [0.3 * math.tanh(20 * x) if abs(x) > 1e-3 else 0.0 for x in v] + 10.0 * (GOAL - q) - 2.0 * v


class SquareWave(Law):
    def tau(self, t, q, v):
        target = GOAL if int(t / 0.5) % 2 == 0 else -GOAL
        return 10.0 * (target - q) - 2.0 * v


class SquareWaveOfRemainders(Law):
    control_dt = None

    def tau(self, t, q, v):
        target = GOAL if t % 1.0 < 0.5 else -GOAL
        return 10.0 * (target - q) - 2.0 * v


class Trapezoid(Law):
    control_dt = None

    def tau(self, t, q, v):
        if t < 0.5:
            s = 0.5 * t * t
        elif t < 1.0:
            s = 0.125 + 0.5 * (t - 0.5)
        else:
            s = 0.375
        return 20.0 * (s * GOAL - q) - 3.0 * v


class DictOfStates(Law):
    def setup(self):
        self.memory = {"sum": 0.0, "largest": 0.0, "last": (0.0, 0.0)}

    def tau(self, t, q, v):
        m = self.memory
        m["sum"] += DT * q[0]
        m["largest"] = max(m["largest"], abs(v[0]))
        m["last"] = (q[0], q[1])
        return 10.0 * (GOAL - q) - (1.0 + m["largest"]) * v - m["sum"]


class NotchFilter(Law):
    def setup(self):
        self.x1 = self.x2 = self.y1 = self.y2 = 0.0

    def tau(self, t, q, v):
        x = 8.0 * (GOAL[0] - q[0])
        y = 0.9 * x - 1.6 * self.x1 + 0.9 * self.x2 + 1.6 * self.y1 - 0.8 * self.y2
        self.x2, self.x1, self.y2, self.y1 = self.x1, x, self.y1, y
        return np.array([y, 0.0]) - 2.0 * v


class Debounce(Law):
    def setup(self):
        self.high, self.pressed = 0, False

    def tau(self, t, q, v):
        self.high = self.high + 1 if q[0] > 0.1 else 0
        if self.high >= 5:
            self.pressed = True
        return (20.0 if self.pressed else 10.0) * (GOAL - q) - 2.0 * v


class SortedErrors(Law):
    control_dt = None

    def tau(self, t, q, v):
        small, large = sorted([abs(x) for x in GOAL - q])
        return (5.0 + large) * (GOAL - q) - (2.0 + small) * v


class EventTriggered(Law):
    def setup(self):
        self.u, self.updates, self.q = np.zeros(2), 0, None

    def tau(self, t, q, v):
        if self.q is None or np.linalg.norm(q - self.q) > 0.03:
            self.u = 10.0 * (GOAL - q) - 2.0 * v
            self.q = q.copy()
            self.updates += 1
        return self.u.copy()


class Watchdog(Law):
    def setup(self):
        self.since, self.best = 0.0, math.inf

    def tau(self, t, q, v):
        error = np.linalg.norm(GOAL - q)
        if error < self.best:
            self.best, self.since = error, t
        return 10.0 * (GOAL - q) - (2.0 if t - self.since < 0.2 else 6.0) * v


class WarnsWhenFar(Law):
    control_dt = None

    def tau(self, t, q, v):
        if np.linalg.norm(q) > 50.0:
            print("far away", q)
        return 10.0 * (GOAL - q) - 2.0 * v


class Logs(Law):
    def setup(self):
        self.log = []

    def tau(self, t, q, v):
        self.log.append(q[0])
        return 10.0 * (GOAL - q) - 2.0 * v


class IntegratesAllTheTime(Law):
    control_dt = None

    def setup(self):
        self.integral = np.zeros(2)

    def tau(self, t, q, v):
        self.integral = self.integral + DT * (GOAL - q)
        return 10.0 * (GOAL - q) - 2.0 * v + self.integral


class KeepsARow(Law):
    """In Python the row changes with the array."""

    def setup(self):
        self.buffer, self.row, self.k = np.zeros((3, 2)), np.zeros(2), 0

    def tau(self, t, q, v):
        self.buffer[self.k % 3] = q
        if t > 0.1:
            self.row = self.buffer[(self.k + 1) % 3]
        self.k += 1
        return 10.0 * (GOAL - q) - 2.0 * v - self.row


REFUSED = {
    KeepsARow: r"controller.row is a part of another array after the call: copy it, in .*, line \d+",
    Logs: r"controller.log changes its length during a call, in .*test_engineers_controllers.py, line \d+",
    IntegratesAllTheTime: r"integral changes during a call, in .*, line \d+: .*control_dt",
}
LAWS = [kind for kind in Law.__subclasses__() if kind not in REFUSED]
assert len(LAWS) >= 38


def run(law, compiled, **options):
    options = {"t_end": 2.0, "dt": 2e-3, "monitors": [], "control_dt": law.control_dt} | options
    try:
        return gc.simulate(ROBOT, law, [0.0, 0.1], [0.3, -0.2], **grouped(compiled=compiled, **options)), ""
    except gc.SimulationError as error:
        return error.run, str(error)


def same(a, b, path=""):
    # a function named `is` next to the name `float` would disable tracing of int() and float() in this module
    if isinstance(a, (list, tuple, deque)):
        assert is_(type(a), type(b)), path
        assert len(a) == len(b), path
        for k, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{path}[{k}]")
    elif isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            same(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, (np.ndarray, float)):
        assert isinstance(b, (np.ndarray, float)), path
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9, err_msg=path)
    elif isinstance(a, Rotation):
        same(a.as_quat(), b.as_quat(), path)
    elif hasattr(a, "__dict__") and not isinstance(a, (enum.Enum, gc.Robot)):
        same(vars(a), vars(b), path)
    elif not isinstance(a, gc.Robot):
        assert is_(type(a), type(b)), path
        assert a == b, path


@pytest.mark.parametrize("kind", LAWS, ids=lambda kind: kind.__name__)
def test_a_run_is_the_same(kind):
    laws = [kind(), kind()]
    (python, why), (compiled, said) = run(laws[0], False), run(laws[1], True)
    assert why == said
    assert len(python.t) == len(compiled.t)
    for name in ("t", "q", "v", "tau"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(python, name), rtol=1e-7, atol=1e-9, err_msg=name)
    same(laws[0], laws[1], "law")


@pytest.mark.parametrize("kind", REFUSED, ids=lambda kind: kind.__name__)
def test_what_is_refused_says_why(kind):
    with pytest.raises(UntraceableError, match=REFUSED[kind]):
        run(kind(), True)


def test_many_runs_have_a_memory_each():
    laws = [PidWithAntiWindup() for _ in range(10)]
    q0 = np.linspace(-0.5, 0.5, 20).reshape(10, 2)
    runs = gc.simulate_many(ROBOT, laws, q0, np.zeros(2), 2.0, 2e-3, control_dt=DT, monitors=[], options=COMPILED)
    for k, law in enumerate(laws):
        alone = PidWithAntiWindup()
        expected = gc.simulate(
            ROBOT, alone, q0[k], np.zeros(2), 2.0, 2e-3, control_dt=DT, monitors=[], options=IN_PYTHON
        )
        np.testing.assert_allclose(runs[k].q, expected.q, atol=1e-9)
        same(alone, law)


def test_a_run_goes_on_from_what_the_law_remembers():
    laws = Counter(), Counter()
    for law, compiled in zip(laws, (True, False)):
        for _ in range(2):
            run(law, compiled)
    same(*laws)
    assert laws[0].count == 402
