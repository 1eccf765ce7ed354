"""How often the verdict misses a mistake, and accuses logs that are right: simulated logs that no test reads.

    python experiments/logs/verdict_table.py [NUMBER OF LOGS]

Robots, seeds, rates, encoders, noise and friction are drawn; of every second log the model lacks Stribeck friction and
has joints a millimetre elsewhere. Each log is broken in every way that `lib.mistakes` knows, a joint or a pair at a
time. Printed per kind: how many were doubted, of these how many by the right name, how many scales were said not to be
told from the log (a note), and how many passed without a word; then the false doubts of the logs as they are.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.mistakes import coupled, scaled, simulated, swapped

from geomctrl.identification import Dataset, Filtering, IdentificationReport, RegressorModel, fit

ROBOTS = ("two_link", "scara", "puma560", "ur10", "panda")
MISTAKES = ("sign", "swap", "scale", "coupling")
KINDS = ("good", *MISTAKES)


def drawn(number: int) -> tuple[str, Dataset, RegressorModel]:
    """(in words, log, model) of a number."""
    rng = np.random.default_rng(1000 + number)
    name = ROBOTS[number % len(ROBOTS)]
    options = {
        "rate": float(rng.choice([125.0, 200.0, 500.0])), "seconds": float(rng.choice([15.0, 25.0])),
        "noise": float(rng.choice([0.003, 0.02, 0.06])), "bits": int(rng.choice([13, 15, 17])),
        "band": float(rng.choice([0.4, 0.8])), "friction": float(rng.choice([0.05, 0.15, 0.3])),
        "stribeck": 0.3 * (number % 2), "geometry": 1e-3 * (number % 2),
    }  # fmt: skip
    words = ", ".join(f"{k} {x:g}" for k, x in options.items())
    return f"{name}: {words}", *simulated(name, seed=1000 + number, **options)


def broken(data: Dataset) -> Iterator[tuple[str, str, Dataset]]:
    """(kind, what a right doubt says, data) of every mistake; filters are linear, so that filtered data will do."""
    n = data.nv
    joint = [f"joint {k}" for k in range(n)]
    yield "good", "", data
    for k in range(n):
        yield "sign", joint[k], scaled(data, k, tau=-1.0)
        yield "sign", joint[k], scaled(data, k, q=-1.0)
        for s in (0.5, 3.0):
            yield "scale", joint[k], scaled(data, k, tau=s)
    for k in range(n - 1):
        yield "swap", joint[k], swapped(data, k, k + 1)
        yield "swap", joint[k], swapped(data, k, k + 1, q=False)
        yield "coupling", joint[k], coupled(data, k, k + 1, 1.0)


def main(logs: int) -> None:
    warnings.simplefilter("ignore")
    counts, spent, verdicts = {kind: Counter() for kind in KINDS}, 0.0, 0
    for number in range(logs):
        words, log, model = drawn(number)
        data = Filtering(5.0).for_log(log).filtered(log)
        print(words, flush=True)
        for kind, joint, bad in broken(data):
            estimate = fit(model, bad, "ols")
            start = time.process_time()
            verdict = IdentificationReport(estimate, bad).verdict
            spent, verdicts = spent + time.process_time() - start, verdicts + 1
            said = [d for d in verdict.doubts if d.kind in MISTAKES or d.fatal]
            name = repr(model.robot.dof_names[int(joint.split()[1])]) if joint else ""
            right = any(d.kind == kind and name in d.seen for d in said)
            noted = kind == "scale" and any(name in note for note in verdict.notes)
            outcome = "doubted" if said else "noted" if noted else "silent"
            counts[kind][outcome] += 1
            counts[kind]["by name"] += right
            if (kind == "good") == bool(said) or (outcome == "silent" and kind != "good"):
                print(f"    {kind} {name}: {outcome} {[str(d)[:150] for d in said]}", flush=True)
    print(f"\n{'mistake':10}{'logs':>6}{'doubted':>9}{'by name':>9}{'noted':>7}{'silent':>8}")
    for kind, c in counts.items():
        total = c["doubted"] + c["noted"] + c["silent"]
        print(f"{kind:10}{total:6}{c['doubted']:9}{c['by name']:9}{c['noted']:7}{c['silent']:8}")
    print(f"{spent / max(verdicts, 1):.2f} s of processor time a verdict")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
