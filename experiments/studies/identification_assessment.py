"""False alarms and missed mistakes of `identify`: simulated correct logs, and logs with one mistake each.

    python experiments/studies/identification_assessment.py [--right 200] [--broken 400] [--first 0] [--full] [--page]

Robots, seeds and conditions are drawn from the log's number, so that any row can be repeated. `--full` runs the
defaults of `geomctrl identify`; without it least squares replace the physical estimator, friction is as simulated, and
doubts about bodies and the prior are left out. `--page` writes the tables to
docs/explanation/identification-assessment.md.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.mistakes import coupled, delayed, quantised, scaled, simulated, swapped, with_lost_samples
from lib.script import run_script

from geomctrl.errors import GeomctrlError
from geomctrl.identification import Dataset, Reading, RegressorModel, Validation, identify

ROBOTS = ("two_link", "scara", "puma560", "ur10", "panda")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "identification-assessment.md"


@dataclass(frozen=True)
class Case:
    """A log, its model, and its mistake: kinds of findings that name it, and the joint, if there is one."""

    label: str
    log: Dataset
    model: RegressorModel
    kinds: tuple[str, ...] = ()
    joint: str = ""


def conditions(rng: np.random.Generator) -> dict[str, Any]:
    """Conditions of ordinary logs."""
    return {
        "rate": float(rng.choice([125.0, 200.0, 500.0])),
        "seconds": float(rng.choice([15.0, 25.0])),
        "noise": float(rng.choice([0.003, 0.02, 0.06])),
        "bits": int(rng.choice([14, 16, 18])),
        "band": float(rng.choice([0.4, 0.8])),
        "friction": float(rng.choice([0.05, 0.15, 0.3])),
        "velocities": [None, 0.01][int(rng.integers(2))],
    }


RIGHT: dict[str, dict[str, Any]] = {
    "ordinary": {},
    "near-symmetric last body": {"symmetric": True},
    "short (6 s)": {"seconds": 6.0},
    "slow (below 0.15 Hz)": {"band": 0.15},
    "periodic (5 s)": {"period": 5.0},
    "coarse encoders (12 bit)": {"bits": 12, "velocities": None},
    "Stribeck friction that the model lacks": {"stribeck": 0.5},
    "joints 1 mm elsewhere": {"geometry": 1e-3},
}


def right(number: int) -> Case:
    rng = np.random.default_rng(10_000 + number)
    kind = list(RIGHT)[number % len(RIGHT)]
    name = ROBOTS[number // len(RIGHT) % len(ROBOTS)]
    log, model = simulated(name, 10_000 + number, **{**conditions(rng), **RIGHT[kind]})
    return Case(kind, log, model)


Breakage = Callable[[Dataset, int, np.random.Generator], Dataset]
BROKEN: dict[str, tuple[tuple[str, ...], Breakage]] = {
    "torque of the other sign": (("sign",), lambda log, k, _: scaled(log, k, tau=-1.0)),
    "position of the other sign": (("sign",), lambda log, k, _: scaled(log, k, q=-1.0)),
    "two joints swapped": (("swap",), lambda log, k, _: swapped(log, k, (k + 1) % log.nv)),
    "torques of two joints swapped": (("swap",), lambda log, k, _: swapped(log, k, (k + 1) % log.nv, q=False)),
    "torque divided by 100": (("scale",), lambda log, k, _: scaled(log, k, tau=0.01)),
    "torque times 3": (("scale",), lambda log, k, _: scaled(log, k, tau=3.0)),
    "torque halved": (("scale",), lambda log, k, _: scaled(log, k, tau=0.5)),
    "coupling": (("coupling",), lambda log, k, _: coupled(log, k % (log.nv - 1), k % (log.nv - 1) + 1)),
    "torques delayed by 8 ms": (("delay",), lambda log, k, _: delayed(log, 0.008)),
    "torques delayed by 25 ms": (("delay",), lambda log, k, _: delayed(log, 0.025)),
    "torques delayed by 80 ms": (("delay",), lambda log, k, _: delayed(log, 0.08)),
    "torques in steps of 5 N m": (("resolution",), lambda log, k, _: quantised(log, 5.0)),
    "samples lost, stamps even": (("samples",), lambda log, k, rng: with_lost_samples(log, 20, rng)),
    "velocities delayed by 30 ms": (("delay",), lambda log, k, _: delayed(log, 0.03, "v")),
    "base tilted by 2 degrees": (("gravity",), lambda log, k, _: log),
    "base tilted by 5 degrees": (("gravity",), lambda log, k, _: log),
    "friction falls by 60 %": (("drift",), lambda log, k, _: log),
}
MADE = {
    "velocities delayed by 30 ms": {"velocities": 0.01},
    "base tilted by 2 degrees": {"tilt": 2.0},
    "base tilted by 5 degrees": {"tilt": 5.0},
    "friction falls by 60 %": {"warming": 0.6, "friction": 0.3},
}
OF_ONE_JOINT = {"sign", "swap", "scale", "coupling"}


def broken(number: int) -> Case:
    rng = np.random.default_rng(20_000 + number)
    mistake = list(BROKEN)[number % len(BROKEN)]
    kinds, breakage = BROKEN[mistake]
    name = ROBOTS[number // len(BROKEN) % len(ROBOTS)]
    log, model = simulated(name, 20_000 + number, **{**conditions(rng), **MADE.get(mistake, {})})
    k = int(rng.integers(log.nv))
    joint = ""
    if OF_ONE_JOINT & set(kinds):
        joint = repr(model.robot.dof_names[k % (log.nv - 1) if kinds == ("coupling",) else k])
    return Case(mistake, breakage(log, k, rng), model, kinds, joint)


def assessed(case: Case, full: bool) -> tuple[str, list[str]]:
    """(outcome, messages): "trust", "doubts", "distrust", "refused"."""
    options: dict[str, Any] = {"friction_curves": "auto"} if full else {"method": "wls", "model": case.model}
    try:
        report = identify(
            case.model.robot,
            case.log,
            reading=Reading(check_units=False),
            validation=Validation(0.3),
            ignore=() if full else ("bodies", "prior"),
            **options,
        )
    except GeomctrlError as error:
        return "refused", [str(error)]
    assessment = report.assessment
    said = [f"{'FATAL ' if d.fatal else ''}{d.kind}: {d.seen}" for d in assessment.findings]
    return assessment.status, said + [f"note: {note}" for note in assessment.notes]


def outcome(case: Case, status: str, said: list[str]) -> str:
    """Outcome for a log with a mistake: "named", "doubted", "noted" (in a note on undetermined mistakes), or
    "silent"."""
    findings = [s for s in said if not s.startswith("note: ")]
    of_kind = [s for s in findings if s.removeprefix("FATAL ").split(":")[0] in case.kinds]
    if any(case.joint in s for s in of_kind):
        return "named"
    if findings:
        return "doubted"
    subject = case.joint or {"delay": "lag positions", "gravity": "tilt of the base"}.get(case.kinds[0], "nothing")
    noted = [s for s in said if "this log does not determine" in s and subject in s]
    return "noted" if noted else "silent"


def study(cases: Callable[[int], Case], numbers: range, full: bool) -> tuple[dict[str, Counter], float]:
    counts: dict[str, Counter] = {}
    start = time.process_time()
    for number in numbers:
        case = cases(number)
        status, said = assessed(case, full)
        word = outcome(case, status, said) if case.kinds else status
        row = counts.setdefault(case.label, Counter())
        row[word] += 1
        row["fatal"] += status == "distrust"
        if word in ("doubted", "noted", "silent", "distrust", "refused", "doubts"):
            shown = " | ".join(s[:170] for s in said[:4])
            print(f"{number:5} {case.log.label:20} {case.label:32} {case.joint:20} {word}: {shown}", flush=True)
    return counts, (time.process_time() - start) / max(len(numbers), 1)


def table(counts: dict[str, Counter], columns: tuple[str, ...]) -> str:
    rows = [*counts.items(), ("**all**", sum(counts.values(), Counter()))]
    lines = ["| log | logs | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for label, row in rows:
        total = sum(n for word, n in row.items() if word != "fatal")
        lines.append(f"| {label} | {total} | " + " | ".join(str(row[c]) for c in columns) + " |")
    return "\n".join(lines)


Right, Broken = Annotated[int, Parameter(name="--right")], Annotated[int, Parameter(name="--broken")]


def main(
    *, n_right: Right = 200, n_broken: Broken = 400, first: int = 0, full: bool = False, page: bool = False
) -> None:
    """--right, --broken: logs of each kind, from the number `first` on; page: write the page of the documentation."""
    warnings.simplefilter("ignore")
    columns = {"right": ("trust", "doubts", "fatal", "refused"), "broken": ("named", "doubted", "noted", "silent")}
    tables = {}
    for name, cases, number in (("right", right, n_right), ("broken", broken, n_broken)):
        numbers = range(first, first + number)
        counts, seconds = study(cases, numbers, full)
        tables[name] = table(counts, columns[name])
        print(f"{tables[name]}\n\nLogs {first} to {first + number - 1}, {seconds:.2f} s of processor time each.\n")
    if page:
        page = PAGE.read_text()
        for name, text in tables.items():
            start, end = f"<!-- {name}: written by the study -->", f"<!-- {name}: end -->"
            page = page[: page.index(start) + len(start)] + f"\n\n{text}\n\n" + page[page.index(end) :]
        PAGE.write_text(page)


if __name__ == "__main__":
    run_script(main)
