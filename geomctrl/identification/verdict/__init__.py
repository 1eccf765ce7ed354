"""Whether to trust an identification: checks that each say what was seen, in numbers, and what to do.

    verdict = report.verdict  # .status "trust", "doubts" or "distrust"; .doubts; .text()

One file a family of checks; `CHECKS` has them all. A check is a function of `Evidence` that returns doubts; those that
look at rows (`ON_ROWS`) see them with the mistakes undone that trials of signs, swaps and scales have found, so that
one mistake is one doubt. To add a check write it, name its kind in `kinds.KINDS`, and put it in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from geomctrl.identification.doubts import Doubt

from .bodies import bodies, checked_boxes
from .couplings import couplings
from .driving import driving
from .evidence import Evidence, FreeFit, Rows, fit_rows
from .excited import excited, vague
from .fit import converged, drift, explained, prior, unseen
from .kinds import KINDS, ignorable
from .result import Verdict
from .scales import against_masses, best_scale, profiles, untold
from .trials import best_trial, tried, undecided

__all__ = ["CHECKS", "KINDS", "ON_ROWS", "Evidence", "Verdict", "checked_boxes", "ignorable", "judged"]

ON_ROWS = (driving, against_masses, couplings, excited)
CHECKS = (explained, unseen, prior, converged, drift, bodies)


ROUNDS = 4  # mistakes that are looked for one after the other


def judged(evidence: Evidence, doubts: Sequence[Doubt] = (), ignore: Sequence[str] = ()) -> Verdict:
    """The verdict; doubts: those there are already."""
    seen = undone(evidence)
    found = list(seen.doubts)
    for check in ON_ROWS:
        found += check(evidence, seen.rows, seen.fit)
    for check in CHECKS:
        found += check(evidence)
    found += doubts
    return Verdict.of(found, ignore, [*seen.notes, *vague(evidence, found)])


class Undone(NamedTuple):
    """Rows with every mistake found undone, their fit, the doubts, and notes on what they would not show."""

    rows: Rows
    fit: FreeFit
    doubts: list[Doubt]
    notes: list[str]


def undone(evidence: Evidence) -> Undone:
    """The worst mistake first, then what is left."""
    model, rows, doubts = evidence.model, evidence.rows, []
    fit = fit_rows(model, rows)
    while True:
        attempts, scales = tried(model, rows, fit, evidence.names), profiles(model, rows, fit)
        found = [best_trial(evidence, rows, fit, attempts), best_scale(evidence, rows, scales)]
        worst = max((x for x in found if x is not None), key=lambda x: x.evidence, default=None)
        if worst is None or len(doubts) == ROUNDS:
            break
        doubts.append(worst.doubt)
        rows, fit = worst.rows, worst.fit
    return Undone(rows, fit, doubts, [*untold(evidence, scales), *undecided(evidence, rows, attempts)])
