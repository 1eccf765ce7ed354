"""What `identify` does about weights that its caller leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.regressor_model import RegressorModel

from .choosing import AUTO, chosen, is_auto
from .estimator import Estimator
from .folds import FOLDS, TooShortForFolds

LONGER = "Record a longer motion, or give the weights (--prior-weight, --noise-weights)"


def with_chosen_prior(
    estimator: Estimator,
    model: RegressorModel,
    training: Dataset,
    options: Mapping[str, Any],
    period: float | None,
    notes: dict[str, Any],
    findings: list[Finding],
    say: Callable[[str, float], None],
) -> dict[str, Any]:
    """The options for `fit`, those open or "auto" chosen by cross-validation; why goes to the notes, what is doubtful
    to the doubts. An estimator without a prior has its options back.

    Open: weights of joints; and all weights of the prior, if none of them is given.
    """
    options = dict(options)
    if estimator.prior_weight is None:
        return options
    of_prior = [name for name in (estimator.prior_weight, "entropic") if name in estimator.options]
    if not any(name in options for name in of_prior):
        options |= dict.fromkeys(of_prior, AUTO)
    if "weights" in estimator.options:
        options.setdefault("weights", AUTO)
    if not any(map(is_auto, options.values())):
        return options
    say("choosing weights", 0.3)
    period = training.period() if period is None else period
    for folds, guard in ((FOLDS, None), (3, None), (3, 0.0), (2, 0.0)):
        try:
            choice = chosen(model, training, estimator, options, folds, guard, period)
        except TooShortForFolds:
            continue
        if folds < FOLDS:
            seen = f"the log is too short to compare weights of the prior on {FOLDS} parts of it: {folds} were used"
            findings.append(Finding("excitation", seen + (", next to each other" if guard == 0.0 else ""), LONGER))
        notes |= choice.notes
        findings += choice.findings
        return choice.options
    seen = "the log is too short to choose weights by parts of it: the estimator's own are used"
    findings.append(Finding("excitation", seen, LONGER))
    return {name: value for name, value in options.items() if not is_auto(value)}
