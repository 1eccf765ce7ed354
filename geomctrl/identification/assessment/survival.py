"""Whether an explanation of a log holds in other views of it: other splits, other cut-offs, each half of the log.

In every view the model is fitted with the mistake and without, to all blocks but one, and predicts that one. An
explanation survives if it predicts unseen rows better in every view, and on average by more than the spread over them.
A model that lacks something lets some trial fit a little better almost always; such a gain hangs on details.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.model.regressor_model import RegressorModel

from .evidence import Evidence, FreeFit, Mistake, Products, fit_rows
from .rows import Rows

CLEAR = 0.1  # least mean gain: sum over joints of the log ratio of relative errors
POOR = 1e-3  # relative singular value below which a direction is left at zero: half a log excites little
FEWEST = 8  # rows of a block


class Survival(NamedTuple):
    """gains: one a view, sums over joints of log (relative error with the mistake / without)."""

    gains: np.ndarray

    @property
    def certain(self) -> bool:
        return self.clear and bool(self.gains.min() > 0.0)

    @property
    def clear(self) -> bool:
        """By more than the spread over views, and better in all but one."""
        return self.likely and bool(self.gains.mean() > max(CLEAR, float(self.gains.std())))

    @property
    def likely(self) -> bool:
        """Better on average, and in all views but one."""
        return bool((self.gains > 0.0).sum() >= len(self.gains) - 1 and self.gains.mean() > 0.0)


def survival(evidence: Evidence, changes: Sequence[Callable[[Rows], Rows]], fit: FreeFit, found: Mistake) -> Survival:
    """Of a mistake, after those that `changes` undo; fit: of the rows with them undone."""
    gains = []
    for rows, blocks in evidence.views:
        for change in changes:
            rows = change(rows)
        before = held_out(evidence.model, rows, fit.weights, blocks)
        size = rows if found.takes_off else None
        after = held_out(evidence.model, found.change(rows), found.fit.weights, blocks, size)
        gains.append(float(before.sum() - after.sum()))
    return Survival(np.array(gains))


def held_out(
    model: RegressorModel,
    rows: Rows,
    weights: np.ndarray,
    blocks: int,
    of: Rows | None = None,
) -> np.ndarray:
    """(nv,): log relative errors of contiguous blocks, each predicted from the others, in terms of the torques of the
    same rows or of others; 0 for joints without torques.
    """
    A = np.concatenate([rows.regressor(model), rows.torques(model)[..., None]], -1)
    blocks = max(2, min(blocks, len(rows.t) // FEWEST))
    parts = np.array_split(np.arange(len(rows.t)), blocks)
    products = [Products.of(A[part], rows.used[part]) for part in parts]
    whole = Products(sum(p.products for p in products), sum(p.counts for p in products))  # type: ignore[arg-type]
    squares = sum(p.residuals(whole.without(p).solve(weights, POOR)) ** 2 for p in products)
    norms = whole.norms if of is None else np.linalg.norm(np.where(of.used, of.torques(model), 0.0), axis=0)
    live = (norms > 0.0) & (weights > 0.0)
    return np.where(live, 0.5 * np.log(np.where(live, squares / np.where(live, norms, 1.0) ** 2, 1.0)), 0.0)


def confirmed(
    evidence: Evidence, changes: Sequence[Callable[[Rows], Rows]], findings: list[Finding], check
) -> list[Finding]:
    """Of fatal doubts that a check of single rows (evidence, rows, fit) has found, those that it finds in most other
    views of the log; fatal are those that it finds in all. What a doubt names are the words between quotes.
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
        share = np.mean([_names(finding) in found for found in named])
        if not finding.fatal or share > 0.5:
            out.append(replace(finding, fatal=finding.fatal and bool(share == 1.0)))
    return out


def _names(finding: Finding) -> frozenset[str]:
    return frozenset(finding.seen.split("'")[1::2])
