"""Speed of closed loops: compiled and in Python, single and in batches, compared with a hand-written Pinocchio loop.

The Panda carries a load that its controller, Slotine and Li's law with 70 parameters, does not know; MK4 at 1 kHz, the
law at every stage. Measured are times real time: a run alone, with monitors and without; many loops in one and in two
threads, and in two processes, which share nothing but the machine; a call of a compiled law from Python; and a sweep
with random payloads and gains: what engine and store add, what it costs to start, and what each further run costs.

    python experiments/benchmarks/benchmark_loops.py [--quick]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.many import Case, outcomes
from geomctrl.control.references import Sinusoids

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.robots import pin, pinocchio_model
from lib.script import Quick, run_script
from lib.timing import best_of

Q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
PANDA = models.panda()
MOTION = Sinusoids(PANDA, Q0, 0.3, 0.3, start_at_rest=1.0)
LOAD = PANDA.with_payload(2.0, (0.0, 0.0, 0.1), 0.005 * np.eye(3))
DT = 1e-3
RESULTS = Results("loops")


def adaptive(form: str = "ploen") -> controllers.SlotineLi:
    return controllers.SlotineLi(PANDA, MOTION, 4.0, 6.0, form=form)


def seconds(function, repeat: int) -> float:
    """The best of a few calls, the first not counted."""
    function()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def line(what: str, found: float, unit: str, target: str, met: bool) -> None:
    print(f"  {what:58s} {found:9.2f} {unit:12s} {target if met else 'MISSED ' + target}")
    RESULTS.row("loops", what=what, found=found, unit=unit, goal=target, met=met if target else None)


# --- alone -------------------------------------------------------------------------------------------------------


def by_hand(t_end: float) -> float:
    """The same loop as one writes it with Pinocchio and numpy; the time it takes.

    Its regressor has one velocity: the one of two velocities that the law asks for is made by polarisation, which is
    that of Christoffel's form.
    """
    law, true = adaptive(), pinocchio_model(LOAD)
    model = pinocchio_model(PANDA)
    data, truth = model.createData(), true.createData()
    zero, Gamma = np.zeros(7), -law.minus_gamma

    def regressor(q, v, a, v_ref):
        Y = pin.computeJointTorqueRegressor(model, data, q, zero, a).copy()
        both = pin.computeJointTorqueRegressor(model, data, q, v + v_ref, zero).copy()
        one = pin.computeJointTorqueRegressor(model, data, q, v, zero).copy()
        other = pin.computeJointTorqueRegressor(model, data, q, v_ref, zero).copy()
        rest = pin.computeJointTorqueRegressor(model, data, q, zero, zero)
        return Y + 0.5 * (both - one - other + rest)

    def field(t, y):
        q, v, p = y[:7], y[7:14], y[14:]
        q_d, v_d, a_d = MOTION(t)
        e = q - q_d
        v_ref, a_ref = v_d - 4.0 * e, a_d - 4.0 * (v - v_d)
        s = v - v_ref
        Y = regressor(q, v, a_ref, v_ref)
        tau = Y @ p - 6.0 * s
        return np.concatenate((v, pin.aba(true, truth, q, v, tau), -Gamma * (Y.T @ s)))

    y = np.concatenate((Q0, zero, np.concatenate([i.toDynamicParameters() for i in model.inertias[1:]])))
    start = time.perf_counter()
    for k in range(round(t_end / DT)):
        t = k * DT
        k1 = field(t, y)
        k2 = field(t + 0.5 * DT, y + 0.5 * DT * k1)
        k3 = field(t + 0.5 * DT, y + 0.5 * DT * k2)
        k4 = field(t + DT, y + DT * k3)
        y = y + DT / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    taken = time.perf_counter() - start
    run = gc.simulate(
        LOAD, adaptive("christoffel"), Q0, zero, t_end, DT, monitors=None, options=gc.SimulationOptions(compiled=True)
    )
    print(f"  (after {t_end:g} s both are at the same place to {np.abs(run.q[-1] - y[:7]).max():.0e} rad)")
    return taken


def alone(t_end: float, repeat: int) -> None:
    law, zero = adaptive(), np.zeros(7)

    compiled = gc.SimulationOptions(compiled=True)

    def run(**options) -> float:
        return t_end / seconds(lambda: gc.simulate(LOAD, law, Q0, zero, t_end, DT, **options), repeat)

    start = time.perf_counter()
    gc.simulate(LOAD, law, Q0, zero, 0.3, DT, options=compiled)
    ready = time.perf_counter() - start
    print(f"\nA loop alone, {t_end:g} s (traced, compiled or read from disk, and compared: {ready:.2f} s)")
    watched, bare = run(options=compiled), run(options=compiled, monitors=None)
    line("compiled, default monitors", watched, "x real time", ">= 200", watched >= 200)
    line("compiled, no monitors", bare, "x real time", ">= 350", bare >= 350)
    start = time.perf_counter()
    gc.simulate(LOAD, law, Q0, zero, 0.5, DT, options=gc.SimulationOptions(compiled=False))
    python = 0.5 / (time.perf_counter() - start)
    line("in Python, default monitors", python, "x real time", "", True)
    if pin is not None:
        hand = 0.5 / by_hand(0.5)
        line("by hand with Pinocchio, not watched", hand, "x real time", "", True)
        line("compiled / by hand", bare / hand, "", ">= 30", bare / hand >= 30)


def a_call(budget: float) -> None:
    law = adaptive()
    compiled_law, z, v = gc.compile(law), law.start(), 0.1 * np.ones(7)
    times = best_of({"compiled": lambda: compiled_law(0.5, Q0, v, z), "python": lambda: law(0.5, Q0, v, z)}, budget)
    print("\nA call of the law")
    line("compiled", 1e6 * times["compiled"], "us", "<= 1.5", times["compiled"] <= 1.5e-6)
    line("in Python", 1e6 * times["python"], "us", "", True)


# --- many --------------------------------------------------------------------------------------------------------


def random_case(rng: np.random.Generator) -> tuple:
    controller = controllers.SlotineLi(PANDA, MOTION, rng.uniform(2.0, 6.0), rng.uniform(4.0, 8.0))
    return PANDA.with_payload(rng.uniform(0.0, 3.0), (0.0, 0.0, 0.1)), controller, Q0, np.zeros(7)


def loops_in_threads(loops: int, t_end: float, threads: int = 1) -> float:
    """The time of many loops in threads of this process [s]."""
    rng = np.random.default_rng(0)
    cases = list(zip(*(random_case(rng) for _ in range(loops))))
    options = gc.SimulationOptions(every=round(t_end / DT))
    start = time.perf_counter()
    gc.simulate_many(*cases, t_end, DT, threads=threads, options=options)
    return time.perf_counter() - start


def many(loops: int, t_end: float, repeat: int) -> None:
    print(f"\n{loops} loops of {t_end:g} s, random payloads and gains, default monitors, ends stored")
    times: dict[str, float] = dict.fromkeys(("one thread", "two threads", "one process", "two processes"), np.inf)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:

        def in_processes(count: int) -> float:
            return max(pool.map(loops_in_threads, [loops] * count, [t_end] * count))

        in_processes(2)  # both processes import geomctrl and read the compiled code
        for _ in range(repeat + 1):  # in turns, as other work on the machine comes and goes
            for threads, name in ((1, "one thread"), (2, "two threads")):
                times[name] = min(times[name], loops_in_threads(loops, t_end, threads))
            for count, name in ((1, "one process"), (2, "two processes")):
                times[name] = min(times[name], in_processes(count))
    one = loops * t_end / times["one thread"]
    line("one thread", one, "x real time", ">= 1000", one >= 1000)
    if (os.cpu_count() or 1) > 1:
        scaling = times["one thread"] / times["two threads"]
        limit = 2.0 * times["one process"] / times["two processes"]
        line("two threads / one", scaling, "", ">= 1.8", scaling >= 1.8)
        line("two processes / one: what the two cores allow", limit, "", "", True)
        line("two threads / two processes", scaling / limit, "", ">= 0.9", scaling / limit >= 0.9)


def make(point):
    law = controllers.SlotineLi(PANDA, MOTION, point["Lambda"], point["K"])
    return PANDA.with_payload(point["payload"], (0.0, 0.0, 0.1)), law, Q0, np.zeros(7)


MEASURES = [
    gc.measures.TrackingRMS(),
    gc.measures.SettlingTime(),
    gc.measures.PeakTorque(),
    gc.measures.ParameterError(),
    gc.measures.WorstMonitor("energy"),
]


def space_of(runs: int) -> dict:
    rng = np.random.default_rng(0)
    bounds = {"payload": (0.0, 3.0), "Lambda": (2.0, 6.0), "K": (4.0, 8.0)}
    return {name: ("sample", rng.uniform(low, high, runs)) for name, (low, high) in bounds.items()}


def sweep(runs: int, t_end: float) -> None:
    """A sweep of two sizes: a part of its time that does not depend on its size, and the time of each further run."""
    few, seconds_of = runs // 5, {}
    for n in (few, runs):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            table = gc.sweep(make, space_of(n), MEASURES, t_end, DT, store=f"{folder}/sweep.zarr")
            seconds_of[n] = time.perf_counter() - start
    ended = int(table.success.sum())
    each = (seconds_of[runs] - seconds_of[few]) / (runs - few)
    start = seconds_of[runs] - runs * each
    print(f"\nA sweep of {runs} runs of {t_end:g} s, {len(MEASURES)} measures, Zarr store ({ended} reached their end)")
    line("all", seconds_of[runs], "s", "", True)
    line("of this, before the first run and after the last", start, "s", "", True)
    line("each run", 1e3 * each, "ms", "", True)
    line("10^5 of them: the first part and 10^5 runs", start + 1e5 * each, "s", "<= 360 s", start + 1e5 * each <= 360)


def engine(runs: int, t_end: float) -> None:
    """What engine and store add to making and running, in turns, in one thread of this process."""
    space, times = space_of(runs), {"runs alone": np.inf, "swept": np.inf}
    rows = [{name: x[1][k] for name, x in space.items()} for k in range(runs)]
    for _ in range(3):
        start = time.perf_counter()
        for first in range(0, runs, 256):
            cases = [Case(*make(row)) for row in rows[first : first + 256]]
            outcomes(cases, {m.name: m for m in MEASURES}, t_end, DT)
        times["runs alone"] = min(times["runs alone"], time.perf_counter() - start)
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
            start = time.perf_counter()
            gc.sweep(
                make,
                space,
                MEASURES,
                t_end,
                DT,
                store=f"{folder}/sweep.zarr",
                execution=gc.SweepExecution(executor=pool, block=256),
            )
            times["swept"] = min(times["swept"], time.perf_counter() - start)
    added = 100.0 * (times["swept"] / times["runs alone"] - 1.0)
    print(f"\nThe same in one thread, {runs} runs, best of three")
    line("what engine and store add", added, "%", "<= 10 %", added <= 10.0)


def main(*, quick: Quick = False) -> None:
    alone(5.0, 3 if quick else 10)
    a_call(1.0 if quick else 5.0)
    many(128, 5.0, 1 if quick else 6)
    engine(512 if quick else 1024, 5.0)
    sweep(1000 if quick else 20_000, 5.0)
    RESULTS.save(quick)


if __name__ == "__main__":
    run_script(main)
