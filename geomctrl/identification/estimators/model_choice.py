"""Select parts of a model by how well they predict blocks of the log that are left out.

Friction smoothing: the speed over which Coulomb friction changes its sign. Near standstill a robot may show its full
friction or hardly any; this depends on gears and seals, and ranges from 1e-4 to 0.1 rad/s on the arms seen so far. Rows
at reversals and pauses depend on it. For each width on a grid the model is fitted to blocks of the log and predicts the
others, including rows at rest. The model's own width is kept unless another predicts better by more than a standard
error of the blocks' differences.

Torques and regressor are not low-passed for this. The width shows while a joint reverses, for a few hundredths of a
second. A cut-off of some hertz removes most of it, and a width that compensates for friction that the model lacks
(Stribeck's) would win.

Rotor inertias are added if blocks are predicted clearly better with them, torques low-passed. Friction curves are added
if they predict better by more than MIN_IMPROVEMENT, torques low-passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import ExcitationError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.samples import derive
from geomctrl.identification.model.columns import SHAPES
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.friction_curves import fit_curves
from geomctrl.identification.model.regressor_model import RegressorModel

from .conditioning import natural_scale
from .folds import factors_by_label

PRIOR_STRENGTH = 1e-6  # weight of the prior relative to the squared error
TOLERATED_RISE = 0.02  # relative rise of the error: smaller rises are ignored even if significant
MIN_RELATIVE_ERROR = 1e-12  # of a joint's torques: smaller errors are rounding


def fitted(model: RegressorModel, c: Compressed, weights: np.ndarray) -> np.ndarray:
    """Least squares near the model's own parameters, like `ridge`, without covariance and notes."""
    A, b = c.system(weights)
    size = np.linalg.norm(b)
    if size == 0.0:
        return model.prior
    scale = natural_scale(model, A, b)
    rows = np.vstack((A * scale / size, np.sqrt(PRIOR_STRENGTH) * np.eye(model.size)))
    aims = np.concatenate(((b - A @ model.prior) / size, np.zeros(model.size)))
    return model.prior + scale * np.linalg.lstsq(rows, aims, rcond=None)[0]


def one_over_residuals(c: Compressed, x: np.ndarray) -> np.ndarray:
    """Weights of the joints (nv,)."""
    rms = c.rms(x)
    return 1.0 / np.maximum(rms, 1e-9 * max(float(rms.max()), 1e-300))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Prediction of blocks from the others: squares (blocks, nv) of their residuals, size (nv,) of the squared torques,
    x: the parameters from all blocks.
    """

    squares: np.ndarray
    size: np.ndarray
    x: np.ndarray

    @property
    def error(self) -> float:
        """Geometric mean over joints of |tau - tau_hat| / |tau| over all blocks: up to a constant, the logarithm of a
        Gaussian likelihood with noise of unknown size at each joint.
        """
        alive = self.size > 0.0
        relative = np.maximum(self.squares.sum(axis=0)[alive] / self.size[alive], MIN_RELATIVE_ERROR**2)
        return float(np.exp(0.5 * np.log(relative).mean()))

    def worse_than(self, other: Prediction) -> bool:
        """Whether it predicts worse by more than a standard error, that of the blocks' shares of the difference."""
        mean = 0.5 * (self.squares + other.squares).sum(axis=0)
        alive = mean > MIN_RELATIVE_ERROR**2 * self.size
        shares = ((self.squares - other.squares)[:, alive] / mean[alive]).sum(axis=1)
        return float(shares.sum()) > np.sqrt(len(shares)) * float(np.std(shares, ddof=1))

    def clearly_worse_than(self, other: Prediction) -> bool:
        """Whether it is worse by more than a standard error, and by more than TOLERATED_RISE."""
        return self.worse_than(other) and self.error > (1.0 + TOLERATED_RISE) * other.error


def predicted(
    model: RegressorModel, blocks: Sequence[Compressed], held: Sequence[Compressed] | None = None
) -> Prediction:
    """Each block's torques from the others. held: the rows of the blocks that are predicted, if they differ from those
    that train.
    """
    held = blocks if held is None else held
    together = sum(blocks[1:], start=blocks[0])
    weights = one_over_residuals(together, fitted(model, together, np.ones(model.robot.nv)))
    squares, size = [], np.zeros(model.robot.nv)
    for k, part in enumerate(held):
        rest = [b for i, b in enumerate(blocks) if i != k]
        squares.append(part.residuals(fitted(model, sum(rest[1:], start=rest[0]), weights)) ** 2)
        size += part.norms**2
    return Prediction(np.array(squares), size, fitted(model, together, weights))


# --- smoothing, rotors, friction curves ------------------------------------------------------------------------------


WIDTHS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # rad/s
MIN_IMPROVEMENT = 0.03
BLOCKS = 4
MAX_ROWS = 3000  # that are compared
MIN_ROWS = 4  # rows of a joint in a block
TOO_SHORT = "not chosen from this log: too short, or a joint without torques, at rest or masked in a part of it"

Chosen = tuple[RegressorModel, str]


def with_smoothing(model: RegressorModel, training: Dataset, every_row: Dataset) -> Chosen:
    """(the model with the width that predicts best, a note); every_row: `training` before resting rows were masked."""
    if not len(model.by_kind["coulomb"]):
        return model, ""
    training, every_row = _as_recorded(training), _as_recorded(every_row)
    tried: dict[float, Prediction] = {}
    for width in sorted({*WIDTHS, model.smoothing}):
        candidate = model._with_options(smoothing=width)
        parts = _compressed(candidate, training, every_row)
        if not _has_rows_in_every_block(parts[0]):
            return model, f"{model.smoothing:g} rad/s, {TOO_SHORT}"
        tried[width] = predicted(candidate, *parts)
    best = min(tried, key=lambda width: tried[width].error)
    if not tried[model.smoothing].worse_than(tried[best]):
        best = model.smoothing
    reason = f"{best:g} rad/s, which predicts samples left out of the fit to {100.0 * tried[best].error:.2f} %"
    reason += " (mean of joints; "
    reason += ", ".join(f"{w:g}: {100.0 * t.error:.2f} %" for w, t in tried.items() if w != best) + ")"
    return model._with_options(smoothing=best), reason


def with_best_rotors(model: RegressorModel, training: Dataset, every_row: Dataset) -> Chosen:
    """(the model, with rotor inertias if blocks are predicted clearly worse without them; a note)."""
    blocks = _compressed(model, training, every_row)
    if not _has_rows_in_every_block(blocks[0]):
        return model, f"none, {TOO_SHORT}"
    turning = model._with_options(rotor=True)
    without = predicted(model, *blocks)
    having = predicted(turning, *_compressed(turning, training, every_row))
    wanted = without.clearly_worse_than(having) and bool((having.x[turning.by_kind["rotor"]] > 0.0).any())
    reason = "of all motors" if wanted else "none"
    reason += f": samples left out of the fit are predicted to {100.0 * having.error:.2f} % with"
    return (turning if wanted else model), f"{reason} and {100.0 * without.error:.2f} % without (mean of joints)"


def with_best_curves(model: RegressorModel, own: float, training: Dataset, every_row: Dataset) -> Chosen:
    """(the model with the friction curves that predict best, if any do, at its width or `own`; a note)."""
    if not _has_rows_in_every_block(_compressed(model, training, every_row)[0]):
        return model, f"none, {TOO_SHORT}"
    candidates = {"none": (model, predicted(model, *_compressed(model, training, every_row)).error)}
    widths = sorted({model.smoothing, own})
    for shape, width in product(SHAPES, widths):
        try:
            curves = fit_curves(model._with_options(smoothing=width), training, shape)
        except (ExcitationError, ArgumentError):  # a joint does not move, or too slowly for a curve
            continue
        if not curves.at_bound.all():
            prediction = predicted(curves.model, *_compressed(curves.model, training, every_row))
            if np.median(prediction.x[curves.model.by_kind["curve"]]) > 0.0:  # only positive amplitudes are physical
                candidates[f"{shape} at {width:g} rad/s"] = curves.model, prediction.error
    best = min(candidates, key=lambda name: candidates[name][1])
    best = "none" if candidates["none"][1] <= (1.0 + MIN_IMPROVEMENT) * candidates[best][1] else best
    reason = f"{best}, by the error of samples left out of the fit (mean of joints): "
    reason += ", ".join(f"{name} {100.0 * error:.2f} %" for name, (_, error) in candidates.items())
    return candidates[best][0], reason


def _as_recorded(data: Dataset) -> Dataset:
    """The data without the common low-pass of torques and regressor, about MAX_ROWS rows."""
    return data if data.band is None else derive(data, band=None, stride=max(1, len(data) // MAX_ROWS))


def _has_rows_in_every_block(blocks: list[Compressed]) -> bool:
    """Whether every joint has rows in every block."""
    return min(int(c.counts.min()) for c in blocks) >= MIN_ROWS


def _compressed(model: RegressorModel, training: Dataset, every_row: Dataset) -> list[list[Compressed]]:
    """[blocks of the training rows, the same blocks of all rows]."""
    number = model._rows(every_row) * BLOCKS // len(every_row)
    both = (derive(every_row, mask=data.used) for data in (training, every_row))
    return [factors_by_label(model, data, number, BLOCKS) for data in both]
