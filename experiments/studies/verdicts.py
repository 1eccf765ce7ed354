"""False alarms and misses of the monitors: correct and wrong closed loops, and the methods that report them.

Problem: a library that judges proofs is worth what its verdicts are worth. A right loop that is rejected teaches people
to ignore the next verdict; a wrong one that is cleared is why they came.

What is shown: a table of loops, bundled laws and a user's, on all bundled robots, with steps from 1e-4 to 1e-2 s, held
or not, with drives, sensors, contact, couplings, loads; half of them right, half wrong by mistakes from gross to 1e-6.
The methods are

    monitors       a run with the monitors of the proof: skew, energy, lyapunov, holding, group
    samples        `assert_lyapunov(..., search=0)`: random states; where the assertion applies to the loop
    search         `assert_lyapunov(...)`, which seeks the worst state, with fewer evaluations than by default
    certificate    `certify_lyapunov(...)`, of some, on a box about the equilibrium

"VIOLATED" and "caught" reject a loop, "UNRESOLVED" does not: it says which step decides, and the run is repeated with
it.

    python experiments/studies/verdicts.py [--page] [--only WORDS]
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import geomctrl as gc
from geomctrl import files, monitors, testing

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "experiments"))
from lib import verdict_loops, wrong_loops  # noqa: E402
from lib.script import run_script  # noqa: E402

PAGE = ROOT / "docs" / "explanation" / "verdicts.md"
JUDGES = ("monitors", "samples", "search", "certificate")
ACCUSING, NOT_FOR_THIS = ("VIOLATED", "caught"), "."
EVALUATIONS = 400  # of a search, 6000 by default


class Row(NamedTuple):
    """A loop, the verdict of each method, and the explanations of the monitors."""

    loop: Any
    verdicts: dict[str, str]
    explanation: str

    @property
    def accusers(self) -> list[str]:
        return [judge for judge, verdict in self.verdicts.items() if verdict in ACCUSING]


def simulated(loop: Any, dt: float) -> gc.Run:
    """The run, up to its end or its failure, with the monitors of the proof."""
    watching = [m for m in monitors.default_monitors() if not isinstance(m, monitors.JointLimits)]
    options = {"monitors": watching, "options": gc.SimulationOptions(compiled=False), **loop.options}
    try:
        return gc.simulate(loop.plant, loop.law, loop.q0, loop.v0, loop.steps * loop.dt, dt, **options)
    except gc.SimulationError as error:
        if error.run is None:
            raise
        return error.run


def worst(run: gc.Run) -> tuple[str, str]:
    """The worst verdict of a run's monitors, and their explanations."""
    results = run.monitors.values()
    confirmed = [x for x in (monitors.VIOLATED, monitors.UNRESOLVED) if any(m.verdict == x for m in results)]
    verdict = confirmed[0] if confirmed else monitors.HELD
    said = [f"{m.name}: {m.explanation}" for m in results if m.verdict == verdict and m.explanation]
    return verdict, "; ".join(said)


def resolving(run: gc.Run, loop: Any) -> float:
    """The longest step that the unresolved monitors of a run suggest, of which the loop's times are multiples [s]."""
    asked = [m.finding.dt for m in run.monitors.values() if m.verdict == monitors.UNRESOLVED and m.finding]
    dt = min([x for x in asked if math.isfinite(x)], default=math.nan)
    return math.nan if math.isnan(dt) else loop.dt / math.ceil(loop.dt / dt)


def watched(loop: Any) -> tuple[str, str]:
    run = simulated(loop, loop.dt)
    verdict, said = worst(run)
    dt = resolving(run, loop)
    if verdict == monitors.UNRESOLVED and dt > 1e-5:
        again, _ = worst(simulated(loop, dt))
        said += f"; with dt = {dt:.2g} s: {again}"
    return verdict, said


def asserted(loop: Any, search: int) -> str:
    if not loop.asserted or not hasattr(loop.law, "lyapunov"):
        return NOT_FOR_THIS
    try:
        testing.assert_lyapunov(loop.law, loop.plant, states=10, search=search, runs=0, bound=loop.bound)
    except AssertionError:
        return "caught"
    return "-"


def certified(loop: Any) -> str:
    if not loop.certified:
        return NOT_FOR_THIS
    certificate = testing.certify_lyapunov(loop.law, loop.plant, (0.6, 1.0), offset=1e-3, budget=40_000, levels=False)
    return {"proved": "proved", "refuted": "caught", "undecided": "-"}[certificate.status]


def judged(loop: Any) -> Row:
    verdict, said = watched(loop)
    samples = asserted(loop, 0)
    search = asserted(loop, EVALUATIONS) if samples == "-" else samples
    return Row(loop, dict(zip(JUDGES, (verdict, samples, search, certified(loop)))), said)


# --- the page -------------------------------------------------------------------------------------------------------

TEXT = """\
# Right and wrong closed loops, and the methods that detect them

After this page you know how reliable each method is. It lists right and wrong loops with the verdict of each method.
`experiments/studies/verdicts.py --page` writes the page; nothing on it is written by hand.

| method | check |
|---|---|
| monitors | a run with `skew`, `energy`, `lyapunov`, `holding`, `group`, {{doc}}`confirmed <monitors>` |
| samples | {{py:obj}}`geomctrl.testing.assert_lyapunov` with `search=0`, 10 states |
| search | the same with a search of {evaluations} evaluations (6000 by default) |
| certificate | {{py:obj}}`geomctrl.testing.certify_lyapunov` on a box of 0.6 rad and 1 rad/s |

`VIOLATED` and `caught` reject a loop. `UNRESOLVED` does not: it names a step that decides, and the run is repeated with
it. "." means that the method was not used: assertions are for laws in continuous time on rigid robots, certificates are
slow.

Certificates are also tested with generated claims: `experiments/studies/certificate_claims.py 200` makes loops with
flaws and decides without the library which claims are wrong. Of 200 wrong ones none is proved, 195 are refuted, 5
undecided. Of 200 right ones 133 are proved and 67 undecided, mostly with a kink or a switch in time; none is refuted.

{summary}

## What was missed

{missed}

## Right loops

{right}

## Wrong loops

{wrong}
"""


def table(rows: list[Row]) -> str:
    lines = [f"| loop | dt [s] | {' | '.join(JUDGES)} | what the monitors say |", "|" + "---|" * (3 + len(JUDGES))]
    for row in rows:
        said = row.explanation.replace("|", "\\|")
        lines.append(f"| {row.loop.name} | {row.loop.dt:g} | {' | '.join(row.verdicts.values())} | {said} |")
    return "\n".join(lines)


def page_text(right: list[Row], wrong: list[Row]) -> str:
    accused, missed = [r for r in right if r.accusers], [r for r in wrong if not r.accusers]
    unseen = [r for r in wrong if "monitors" not in r.accusers]
    unresolved = [r for r in right if r.verdicts["monitors"] == monitors.UNRESOLVED]
    resolved = [r for r in unresolved if r.explanation.endswith(": held")]
    counts = [
        f"- {len(right)} right loops: {len(accused)} rejected by a method; the monitors leave"
        f" {len(unresolved)} unresolved, of which {len(resolved)} hold with the step that they ask for.",
        f"- {len(wrong)} wrong loops: {len(wrong) - len(missed)} caught, {len(wrong) - len(unseen)} of them by the"
        " monitors.",
    ]
    lines = [f"- a right loop rejected: {r.loop.name}, by {', '.join(r.accusers)}" for r in accused]
    lines += [f"- by all methods: {r.loop.name}" for r in missed]
    lines += [f"- by the monitors ({r.verdicts['monitors']}): {r.loop.name}" for r in unseen]
    return TEXT.format(evaluations=EVALUATIONS, summary="\n".join(counts), missed="\n".join(lines) or "Nothing.",
                       right=table(right), wrong=table(wrong))  # fmt: skip


def rows(loops: Any, only: str | None = None) -> list[Row]:
    """Rows of the loops with this text in their names, printed one by one."""
    judged_rows = []
    for loop in loops:
        if only is None or only in loop.name:
            judged_rows.append(judged(loop))
            print(f"  {loop.name:52s}" + "".join(f"{x:>12s}" for x in judged_rows[-1].verdicts.values()), flush=True)
    return judged_rows


def main(*, page: bool = False, only: str | None = None) -> None:
    """page: write the page of the documentation; only: loops with this text in their names."""
    start = time.perf_counter()
    warnings.simplefilter("ignore", RuntimeWarning)  # that a loop runs in Python
    print(f"{'right':54s}" + "".join(f"{name:>12s}" for name in JUDGES))
    right = rows(verdict_loops.right(), only)
    print("wrong")
    wrong = rows(wrong_loops.wrong(), only)
    text = page_text(right, wrong)
    print(text[text.index("- ") : text.index("## Right loops")])
    if page and only is None:
        print(f"wrote {files.write_text(PAGE, text)}")
    print(f"in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    np.seterr(over="ignore", invalid="ignore")
    run_script(main)
