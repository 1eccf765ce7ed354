"""Whether to trust an identification: checks that each say what was seen, in numbers, and what to do.

    verdict = report.verdict  # .status "trust", "doubts" or "distrust"; .doubts; .text()

One file a family of checks; `CHECKS` has them all. A check is a function of `Evidence` that returns doubts; those that
look at rows (`ON_ROWS`) see them with the mistakes undone that trials of signs, swaps and scales have found, so that
one mistake is one doubt. To add a check write it, name its kind in `kinds.KINDS`, and put it in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Sequence

from geomctrl.identification.doubts import Doubt

from .bodies import bodies
from .couplings import couplings
from .driving import driving
from .evidence import Evidence, FreeFit, Rows, fit_rows
from .excited import excited, vague
from .fit import converged, drift, explained, prior, unseen
from .kinds import KINDS, ignorable
from .result import Verdict
from .scales import against_masses, best_scale, untold
from .trials import best_trial

__all__ = ["CHECKS", "KINDS", "ON_ROWS", "Evidence", "Verdict", "ignorable", "judged"]

ON_ROWS = (driving, against_masses, couplings, excited)
CHECKS = (explained, unseen, prior, converged, drift, bodies)


ROUNDS = 4  # mistakes that are looked for one after the other


def judged(evidence: Evidence, doubts: Sequence[Doubt] = (), ignore: Sequence[str] = ()) -> Verdict:
    """The verdict; doubts: those there are already."""
    rows, fit, found = undone(evidence)
    for check in ON_ROWS:
        found += check(evidence, rows, fit)
    for check in CHECKS:
        found += check(evidence)
    found = [*found, *doubts]
    return Verdict.of(found, ignore, [*untold(evidence, rows, fit), *vague(evidence, found)])


def undone(evidence: Evidence) -> tuple[Rows, FreeFit, list[Doubt]]:
    """(rows with every mistake found undone, their fit, the doubts): the worst mistake first, then what is left."""
    rows, doubts = evidence.rows, []
    fit = fit_rows(evidence.model, rows)
    for _ in range(ROUNDS):
        found = [m for find in (best_trial, best_scale) if (m := find(evidence, rows, fit)) is not None]
        if not found:
            break
        worst = max(found, key=lambda mistake: mistake.evidence)
        doubts.append(worst.doubt)
        rows, fit = worst.rows, worst.fit
    return rows, fit, doubts
