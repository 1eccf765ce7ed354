"""Mistakes looked for one after the other: the likeliest first, then what is left with it undone.

All explanations compete: signs, swaps and couplings (`trials`), scales (`scales`), a delay, a tilted base and a drift
(`causes`). Their log likelihoods are of the same rows. The likeliest that also holds in other views of the log
(`survival`) is said, with how far the next one is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from geomctrl.identification.findings import Finding

from .causes import found_causes
from .evidence import Evidence, FreeFit, Mistake, fit_rows
from .rows import Rows
from .scales import found_scales, profiles, untold
from .survival import Survival, survival
from .trials import ALIKE, found_trials, tried, undecided

ROUNDS = 4  # mistakes that are looked for one after the other
LOOKED_AT = 4  # explanations a round, the likeliest first, that are looked at in other views of the log


@dataclass(frozen=True)
class Undone:
    """Rows with every mistake found undone, their fit, the doubts, notes on what they would not show, and what undoes
    the mistakes in other rows."""

    rows: Rows
    fit: FreeFit
    findings: list[Finding]
    notes: list[str]
    changes: list[Callable[[Rows], Rows]]


def undone(evidence: Evidence) -> Undone:
    """The worst mistake first, then what is left."""
    model, rows = evidence.model, evidence.rows
    findings, changes = [], []
    fit = fit_rows(model, rows)
    while True:
        attempts, scales = tried(model, rows, fit, evidence.names), profiles(model, rows, fit)
        causes, told = found_causes(evidence, rows, fit)
        found = [*found_trials(evidence, rows, fit, attempts), *found_scales(evidence, rows, scales), *causes]
        found.sort(key=lambda x: -x.evidence)
        best = None if len(findings) == ROUNDS else _surviving(evidence, changes, fit, found)
        if best is None:
            break
        findings.append(best.finding)
        changes.append(best.change)
        rows, fit = best.rows, best.fit
    notes = [*untold(evidence, scales, findings), *undecided(evidence, rows, attempts), *told]
    return Undone(rows, fit, findings, notes, changes)


def _surviving(evidence: Evidence, changes: list, fit: FreeFit, found: list[Mistake]) -> Mistake | None:
    """The likeliest explanation that holds in other views of the log. Only one that holds in all can be fatal, and only
    where no likelier one failed to hold: the model lacks something then that none of them is.
    """
    for best in found[:LOOKED_AT]:
        seen = survival(evidence, changes, fit, best)
        columns = not best.finding.fatal and best.finding.kind != "delay"  # of unknown size: flexible enough to mislead
        if not (seen.clear if columns else seen.likely):
            continue
        others = [x for x in found if x is not best]
        fatal = best.finding.fatal and seen.certain and best is found[0]
        finding = replace(best.finding, fatal=fatal, seen=best.finding.seen + _compared(best, others, seen))
        return replace(best, finding=finding)
    return None


def _compared(best: Mistake, others: list[Mistake], seen: Survival) -> str:
    """How far the next explanation is."""
    if not others:
        return "; no other explanation comes near"
    gap = best.evidence - others[0].evidence
    if gap < ALIKE:
        return f"; nearly as well if {others[0].what}"
    return f"; the next explanation, that {others[0].what}, is less likely by a factor of 1e{gap / 2.302585:.0f}"
