"""Search for mistakes in a log one after the other: undo the likeliest, then search what is left.

All explanations compete: signs, swaps and couplings (`trials`), scales (`scales`), a delay, a tilted base and a drift
(`causes`). Their log likelihoods refer to the same rows. The likeliest one that also holds in other views of the log is
reported, with its distance to the next one.

Other views of a log are other splits, other cut-offs and each half. In each view the model is fitted with the mistake
and without it to all blocks but one, and predicts that one. An explanation survives if it predicts unseen rows better
in every view, and on average by more than the spread over the views. If the model lacks an effect, some trial almost
always fits slightly better; such a gain depends on details of the view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.model.regressor_model import RegressorModel

from .causes import likely_causes
from .evidence import Evidence, Explanation, FreeFit, Products, fit_rows
from .rows import Rows
from .scales import likely_scales, profiles, undetermined_scales
from .trials import DISTINCT_EVIDENCE, likely_trials, trial_fits, undecided

MIN_MEAN_GAIN = 0.1  # least mean gain: sum over joints of the log ratio of relative errors
HALF_LOG_SINGULAR_VALUE = 1e-3  # relative: directions below are left at zero, because half a log excites less
MIN_BLOCK_ROWS = 8  # rows of a block


class ViewTest(NamedTuple):
    """gains: for each view the sum over joints of log (relative error with the mistake / without)."""

    gains: np.ndarray

    @property
    def certain(self) -> bool:
        return self.clear and bool(self.gains.min() > 0.0)

    @property
    def clear(self) -> bool:
        """Better by more than the spread over views, and in all views but one."""
        return self.likely and bool(self.gains.mean() > max(MIN_MEAN_GAIN, float(self.gains.std())))

    @property
    def likely(self) -> bool:
        """Better on average, and in all views but one."""
        return bool((self.gains > 0.0).sum() >= len(self.gains) - 1 and self.gains.mean() > 0.0)


def compared_in_views(
    evidence: Evidence, changes: Sequence[Callable[[Rows], Rows]], fit: FreeFit, mistake: Explanation
) -> ViewTest:
    """Test of an explanation in all views, after those that `changes` undo; fit: of the rows with them undone."""
    gains = []
    for rows, blocks in evidence.views:
        for change in changes:
            rows = change(rows)
        before = held_out(evidence.model, rows, fit.weights, blocks)
        size = rows if mistake.takes_off else None
        after = held_out(evidence.model, mistake.change(rows), mistake.fit.weights, blocks, size)
        gains.append(float(before.sum() - after.sum()))
    return ViewTest(np.array(gains))


def held_out(
    model: RegressorModel,
    rows: Rows,
    weights: np.ndarray,
    blocks: int,
    of: Rows | None = None,
) -> np.ndarray:
    """(nv,): log relative errors of blocks of neighbouring motion, each predicted from the others, relative to the
    torques of the same rows or of others; 0 for joints without torques.
    """
    A = np.concatenate([rows.regressor(model), rows.torques(model)[..., None]], -1)
    blocks = max(2, min(blocks, len(rows.t) // MIN_BLOCK_ROWS))
    parts = np.array_split(rows.order, blocks)
    products = [Products.of(A[part], rows.used[part]) for part in parts]
    whole = Products(sum(p.products for p in products), sum(p.counts for p in products))  # type: ignore[arg-type]
    squares = sum(p.residuals(whole.without(p).solve(weights, HALF_LOG_SINGULAR_VALUE)) ** 2 for p in products)
    norms = whole.norms if of is None else np.linalg.norm(np.where(of.used, of.torques(model), 0.0), axis=0)
    live = (norms > 0.0) & (weights > 0.0)
    return np.where(live, 0.5 * np.log(np.where(live, squares / np.where(live, norms, 1.0) ** 2, 1.0)), 0.0)


def confirmed(
    evidence: Evidence, changes: Sequence[Callable[[Rows], Rows]], findings: list[Finding], check
) -> list[Finding]:
    """The fatal findings of a check of single rows (evidence, rows, fit) that it also finds in most other views of the
    log; they stay fatal if it finds them in all. Findings are matched by their text between quotes.
    """
    if not any(finding.fatal for finding in findings):
        return findings
    named, views = [], [rows for k, (rows, _) in enumerate(evidence.views) if k]
    for rows in views:
        for change in changes:
            rows = change(rows)
        named.append([_names(d) for d in check(evidence, rows, fit_rows(evidence.model, rows))])
    out = []
    for finding in findings:
        share = np.mean([_names(finding) in names for names in named])
        if not finding.fatal or share > 0.5:
            out.append(replace(finding, fatal=finding.fatal and bool(share == 1.0)))
    return out


def _names(finding: Finding) -> frozenset[str]:
    return frozenset(finding.seen.split("'")[1::2])


# --- one mistake after the other -------------------------------------------------------------------------------------


MAX_MISTAKES = 4  # largest number of mistakes that are undone one after the other
MAX_CANDIDATES = 4  # likeliest explanations of each round that are tested in other views of the log


@dataclass(frozen=True)
class SearchOutcome:
    """Rows with all mistakes undone, their fit, the findings, notes on mistakes that the rows would not show, and the
    changes that undo the mistakes in other rows."""

    rows: Rows
    fit: FreeFit
    findings: list[Finding]
    notes: list[str]
    changes: list[Callable[[Rows], Rows]]


def undo_mistakes(evidence: Evidence) -> SearchOutcome:
    """Undo the worst mistake first, then search what is left."""
    model, rows = evidence.model, evidence.rows
    findings, changes = [], []
    fit = fit_rows(model, rows)
    while True:
        attempts, scales = trial_fits(model, rows, fit, evidence.names), profiles(model, rows, fit)
        causes, cause_notes = likely_causes(evidence, rows, fit)
        candidates = [*likely_trials(evidence, rows, fit, attempts), *likely_scales(evidence, rows, scales), *causes]
        candidates.sort(key=lambda x: -x.evidence)
        best = None if len(findings) == MAX_MISTAKES else _surviving(evidence, changes, fit, candidates)
        if best is None:
            break
        findings.append(best.finding)
        changes.append(best.change)
        rows, fit = best.rows, best.fit
    notes = [*undetermined_scales(evidence, scales, findings), *undecided(evidence, rows, attempts), *cause_notes]
    return SearchOutcome(rows, fit, findings, notes, changes)


def _surviving(evidence: Evidence, changes: list, fit: FreeFit, candidates: list[Explanation]) -> Explanation | None:
    """The likeliest explanation that holds in other views; fatal if in all, and no likelier one failed."""
    for best in candidates[:MAX_CANDIDATES]:
        seen = compared_in_views(evidence, changes, fit, best)
        # columns of unknown size are flexible enough to mislead
        columns = not best.finding.fatal and (best.takes_off or best.finding.kind != "delay")
        if not (seen.clear if columns else seen.likely):
            continue
        others = [x for x in candidates if x is not best]
        fatal = best.finding.fatal and seen.certain and best is candidates[0]
        finding = replace(best.finding, fatal=fatal, seen=best.finding.seen + _compared(best, others, seen))
        return replace(best, finding=finding)
    return None


def _compared(best: Explanation, others: list[Explanation], seen: ViewTest) -> str:
    """A clause on the distance to the next explanation."""
    if not others:
        return "; no other explanation is nearly as likely"
    gap = best.evidence - others[0].evidence
    if gap < DISTINCT_EVIDENCE:
        return f"; nearly as well if {others[0].clause}"
    return f"; the next explanation, that {others[0].clause}, is less likely by a factor of 1e{gap / 2.302585:.0f}"
