"""Long runs, many threads, other processes: slow tests without much risk."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import geomctrl as gc

pytestmark = pytest.mark.slow
ROOT = Path(gc.__file__).parents[1]


def run(code, *arguments, timeout=600, **variables):
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-W", "error", *(["-c", code] if "\n" in code else [code]), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)


def output(code, **variables):
    done = run(code, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# --- memory ----------------------------------------------------------------------------------------------------------

LONG = """
import resource
import numpy as np
import geomctrl as gc
from geomctrl import controllers, models

robot, q0, v0 = models.two_link(), np.array([0.3, 0.4]), np.zeros(2)
law = controllers.PDGravity(robot, [0.5, 0.1], kp=50.0, kd=5.0)

def loop(n, compiled):
    run = gc.simulate(robot, law, q0, v0, 1e-3 * n, 1e-3, options=gc.SimulationOptions(every=n, compiled=compiled))
    assert (run.success, run.steps, len(run.t), len(run.monitors)) == (True, n, 2, 4)
    assert all(m.ok for m in run.monitors.values())
    return np.concatenate((run.q[-1] - [0.5, 0.1], run.v[-1]))

def free(n):
    trajectory = gc.rollout(robot, q0, v0, None, 1e-3 * n, 1e-3, every=n)
    assert (trajectory.steps, len(trajectory.t)) == (n, 2)
    return [robot.kinetic_energy(q, v) + robot.potential_energy(q) for q, v in zip(trajectory.q, trajectory.v)]

def measures(n):
    law = controllers.PDGravity(robot, [0.5, 0.1], kp=50.0, kd=5.0)
    options = gc.SimulationOptions(every=n, compiled=True)
    runs = gc.simulate_many(robot, [law] * 8, q0, v0, 1e-3 * n, 1e-3, options=options)
    assert [len(run.t) for run in runs] == [2] * 8
"""
PEAK = "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
GROWTH = 6000  # kB; one stored number per step would give 8000


@pytest.mark.parametrize(
    ("call", "few", "steps"),
    [
        ("assert np.abs(loop({n}, True)).max() < 1e-3", 20_000, 1_000_000),
        ("assert np.abs(loop({n}, False)).max() < 1.0", 200, 20_000),
        ("E = free({n}); assert abs(E[1] - E[0]) < 1e-3 * abs(E[0])", 1_000, 1_000_000),
        ("measures({n})", 10_000, 200_000),
    ],
    ids=["compiled loop", "loop in Python", "rollout", "loops side by side"],
)
def test_steps_that_are_not_stored_need_no_memory(call, few, steps):
    before, after = map(int, output(LONG + "".join(f"{call.format(n=n)}\n{PEAK}" for n in (few, steps))))
    assert after - before < GROWTH * min(1.0, 10.0 * steps / 1_000_000), (before, after)


# --- threads and processes -------------------------------------------------------------------------------------------

CALLS = """
import multiprocessing, sys, threading
import numpy as np
from geomctrl import models

robot = models.two_link()
rng = np.random.default_rng(0)
states = [(robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))) for _ in range(97)]
loads = [(0.1 * k + 0.1, [0.0, 0.0, 0.01 * k], 0.01 * np.eye(3)) for k in range(5)]

def terms(robot, q, v, a):
    return [robot.mass_matrix(q), robot.inverse_dynamics(q, v, a), robot.forward_dynamics(q, v, a), *robot.terms(q, v)]

def numbers():
    rows = [terms(robot, *s) for s in states] + [terms(robot.with_payload(*x), *states[0]) for x in loads]
    return [np.concatenate([x.ravel() for x in row]) for row in rows]

def wrong(count, expected, seed):
    rng = np.random.default_rng(seed)
    bad = 0
    for k in range(count // 4):
        i = int(rng.integers(len(states)))
        bad += any((x != y).any() for x, y in zip(terms(robot, *states[i]), expected[i]))
        if k % 50 == 0:
            j = int(rng.integers(len(loads)))
            values = terms(robot.with_payload(*loads[j]), *states[0])
            bad += any((x != y).any() for x, y in zip(values, expected[len(states) + j]))
    return bad

def cut(row):
    shapes = [x.shape for x in terms(robot, *states[0])]
    ends = np.cumsum([int(np.prod(s)) for s in shapes])
    return [x.reshape(s) for x, s in zip(np.split(row, ends[:-1]), shapes)]
"""


def test_eight_threads_of_20000_calls_each():
    """The same numbers bit for bit as with one thread."""
    result = output(
        CALLS + "expected = [cut(row) for row in numbers()]\nbad = [None] * 8\n"
        "def go(k):\n    bad[k] = wrong(20000, expected, k)\n"
        "threads = [threading.Thread(target=go, args=(k,)) for k in range(8)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "print(*bad)\n"
    )
    assert result == ["0"] * 8


def test_threads_whose_first_calls_come_together(tmp_path):
    """Nothing is compiled or loaded before; every thread has the results of a single one."""
    result = output(
        CALLS + "rows, gate = [None] * 8, threading.Barrier(8)\n"
        "def go(k):\n    gate.wait()\n    rows[k] = numbers()\n"
        "threads = [threading.Thread(target=go, args=(k,)) for k in range(8)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "expected = numbers()\n"
        "print(*(int(all((x == y).all() for x, y in zip(row, expected))) for row in rows))\n",
        GEOMCTRL_CACHE=str(tmp_path),
    )
    assert result == ["1"] * 8


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_by_fork_and_by_spawn(tmp_path, method):
    """Code loaded before the fork works in parent and children, which compute the same bit for bit."""
    script = tmp_path / "script.py"
    script.write_text(
        CALLS + "def child(expected):\n"
        "    found = numbers()\n"
        "    return int(all((x == y).all() for x, y in zip(found, expected)))\n"
        "if __name__ == '__main__':\n"
        "    expected = numbers()\n"
        f"    with multiprocessing.get_context({method!r}).Pool(3) as pool:\n"
        "        print(*pool.map(child, [expected] * 6), child(expected))\n"
    )
    assert output(str(script)) == ["1"] * 7


# --- make soak -------------------------------------------------------------------------------------------------------

SOAK = str(ROOT / "tests" / "soak" / "soak.py")
PLANTED = """
import os, sys
sys.path.insert(0, {folder!r})
import soak
from soak import checks
def wrong(rng):
    assert rng.random() < 0.0, "planted"
    return "right"
checks.CHECKS.clear()
checks.CHECKS |= {{
    "right": lambda rng: "right", "wrong": wrong, "warned": lambda rng: checks.warnings.warn("planted", RuntimeWarning),
    "dead": lambda rng: os.abort(), "hangs": lambda rng: checks.time.sleep(60.0),
    "greedy": lambda rng: str(len(bytearray(1 << 34))),
}}
soak.LONGEST_WAIT = 2.0
print(soak.soak(0.5, 7, list(checks.CHECKS), 2))
"""


def test_ten_seconds_of_soak():
    done = run(SOAK, "--minutes", "0.17", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(re.findall(r"^(\w+): (\d+) right .* 0 failed$", done.stdout, re.MULTILINE))
    assert counts.keys() == {"urdfs", "robots", "loops", "sweeps", "identifications", "pages"}
    assert min(map(int, counts.values())) >= 1


def test_soak_reports_what_fails_dies_and_hangs():
    done = run(PLANTED.format(folder=str(Path(SOAK).parent)))
    said = done.stdout
    assert said.splitlines()[-1] == "10", done.stderr
    for name in ("wrong", "warned", "dead", "hangs", "greedy"):
        for seed in (7, 8):
            assert re.search(rf"^FAILED {name}, seed {seed}: python .*soak.py --only {name} --seed {seed}", said, re.M)
        assert f"{name}: 0 right (none), 2 failed" in said
    assert "right: 2 right (2 right), 0 failed" in said
    assert "planted" in said
    assert "exit code -6" in said
    assert "MemoryError" in said


GROWING = """
import sys
sys.path.insert(0, {folder!r})
import soak
from soak import checks
kept = []
def grows(rng):
    kept.append(bytearray(b"x" * 4_000_000))
    return "right"
checks.CHECKS.clear()
checks.CHECKS |= {{"grows": grows, "stays": lambda rng: str(len(b"x" * 4_000_000))}}
print(soak.soak(0.5, 7, list(checks.CHECKS), 80))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say how much memory is used")
def test_soak_reports_memory_that_grows():
    said = run(GROWING.format(folder=str(Path(SOAK).parent))).stdout
    assert said.splitlines()[-1] == "1", said
    assert re.search(r"^FAILED grows: memory grows from \d+ MB to \d+ MB$", said, re.M)
    assert re.search(r"^stays: 80 right .*, memory \d+ to \d+ MB, 0 failed$", said, re.M)
