"""Cost of compiling code for one robot, and time it saves, from 2 to 50 joints: the basis of the compiler's budget.

Chains of revolute joints in general position, the worst case. For each term: scalar operations, the time to trace and
to compile (one state; eight at a time), the sizes of both codes, and the time of a state beside numba's loops, single
and in a batch. `loops` marks what `geomctrl.compiler.code` leaves to the loops. Run it with `make bench`, or
    python experiments/benchmarks/benchmark_compiler.py [--quick]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl.compiler import code
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.code import Code
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.tracing.backends import host
from geomctrl.tracing.backends.llvm import module

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.robots import chain
from lib.script import Quick, run_script
from lib.timing import best_of

TERMS = ("inverse_dynamics", "mass_matrix", "terms", "forward_dynamics", "regressor")
HEAD = "joints  operations   trace        compile [ms]          size [kB]        one state [us]    of 1000 [us]"
BELOW = "                      [ms]     one   lanes         one   lanes      traced    loops    traced    loops"


ALLOWS = code.allows
RESULTS = Results("compiler")


def timed(function, *args, **options):
    start = time.perf_counter()
    return function(*args, **options), 1e3 * (time.perf_counter() - start)


def line(robot: gc.Robot, term: str, seconds: float) -> str:
    algorithm, options, *_ = CATALOGUE[term]
    traced, tracing = timed(trace, algorithm, structure(robot._model), options, guarded=True)
    allowed = ALLOWS(traced)
    (one, t1), (many, t2) = (
        timed(lambda w=w: host.object_code(module(traced, [w], side=host.lanes()))) for w in (1, host.lanes())
    )
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(1000, n)) for n in traced.inputs]
    absent = [np.empty((0, 0)) for x in algorithm.inputs if x.optional]
    state, fixed = [np.array(x[0]) for x in rows], [options[x.name] for x in algorithm.options]
    code = Code(robot._model)
    loops, single, batch = (make(algorithm, **options) for make in (code.loops, code.one, code.many))
    if single is None or batch is None:
        return f"{robot.nv:6d} {traced.operations:11d}    no code, as it has too many inputs"
    times = best_of(
        {
            "one": lambda: single(*state),
            "loops": lambda: loops(*state),
            "many": lambda: batch(*rows),
            "all": lambda: algorithm.many(robot._model, *rows, *absent, *fixed),
        },
        seconds,
    )
    us = [1e6 * times["one"], 1e6 * times["loops"], 1e3 * times["many"], 1e3 * times["all"]]
    RESULTS.row(
        "code", term=term, joints=robot.nv, operations=traced.operations, trace_ms=tracing, compile_one_ms=t1,
        compile_lanes_ms=t2, one_kB=len(one) / 1e3, lanes_kB=len(many) / 1e3, traced_us=us[0], loops_us=us[1],
        traced_of_1000_us=us[2], loops_of_1000_us=us[3], chosen="code" if allowed else "loops",
    )  # fmt: skip
    numbers = f"{robot.nv:6d} {traced.operations:11d} {tracing:7.0f} {t1:7.0f} {t2:7.0f}    "
    sizes = f"{len(one) / 1e3:8.0f} {len(many) / 1e3:7.0f}    {us[0]:8.2f} {us[1]:8.2f}  {us[2]:8.3f} {us[3]:8.3f}"
    return numbers + sizes + ("" if allowed else "   loops")


def main(*, quick: Quick = False) -> None:
    print(f"budget: {code.OPERATIONS} operations; {host.lanes()} lanes")
    code.allows = lambda trace: True  # so that what is beyond it is measured as well
    code.cache.kept = lambda key, make: make()  # the files say what was beyond it
    for term in TERMS:
        print(f"\n{term}\n{HEAD}\n{BELOW}")
        for n in (2, 7, 30) if quick else (2, 4, 7, 10, 15, 20, 30, 40, 50):
            print(line(chain(n), term, 0.2 if quick else 2.0))
    RESULTS.save(quick)


if __name__ == "__main__":
    run_script(main)
