"""The speed over which Coulomb friction changes its sign, chosen from the log that trains.

A robot that creeps may show its full friction or hardly any: that is a property of gears and seals, between 1e-4 and
0.1 rad/s on the arms seen so far, and rows near standstill, which reversals and pauses are made of, depend on it. For
each width on a grid the model is fitted to blocks of the log and predicts the others, rows at rest included. The
model's own width stays unless another predicts better by more than BETTER.
"""

from __future__ import annotations

from geomctrl.arguments import instance

from .blocked import prediction_error
from .compressed import Compressed, Factors
from .data import Dataset
from .model import RegressorModel

WIDTHS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # rad/s
BETTER = 0.03
BLOCKS = 4
LEAST = 4  # rows of a joint in a block


def with_smoothing(model: RegressorModel, training: Dataset, every_row: Dataset) -> tuple[RegressorModel, str]:
    """(the model with the width that predicts best, in words); every_row: `training` before resting rows were masked.

    The model as it is where it has no Coulomb friction, or where the log is too short to be cut in blocks.
    """
    instance("model", model, RegressorModel, "a RegressorModel")
    instance("training", training, Dataset, "a Dataset")
    instance("every_row", every_row, Dataset, "a Dataset")
    if not len(model.indices("coulomb")):
        return model, ""
    tried: dict[float, float] = {}
    for width in sorted({*WIDTHS, model.smoothing}):
        candidate = model.with_options(smoothing=width)
        parts = _compressed(candidate, training, every_row)
        if min(int(c.counts.min()) for c in parts[0]) < LEAST:
            return model, ""
        tried[width] = prediction_error(candidate, *parts)[0]
    best = min(tried, key=lambda width: tried[width])
    if tried[model.smoothing] <= (1.0 + BETTER) * tried[best]:
        best = model.smoothing
    words = f"{best:g} rad/s, which predicts blocks left out to {100.0 * tried[best]:.2f} % (mean of joints; "
    words += ", ".join(f"{w:g}: {100.0 * e:.2f} %" for w, e in tried.items() if w != best) + ")"
    return model.with_options(smoothing=best), words


def _compressed(model: RegressorModel, training: Dataset, every_row: Dataset) -> list[list[Compressed]]:
    """[blocks of the rows that train, the same blocks of all rows], in one pass."""
    use = [[Factors(model) for _ in range(BLOCKS)] for _ in range(2)]
    for blocks, tau, mask, at in model.stream(every_row, model.blocks):
        number = at * BLOCKS // len(every_row)
        for k in range(BLOCKS):
            inside = (number == k)[:, None]
            if inside.any():
                use[0][k].add(blocks, tau, training.used[at] & inside)
                use[1][k].add(blocks, tau, mask & inside)
    return [[factors.result() for factors in some] for some in use]
