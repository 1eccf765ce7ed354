"""How well a model predicts blocks of a log from the other blocks: a cheap estimator, for choices to be made by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel

from .conditioning import natural_scale

STRENGTH = 1e-6  # of the prior, beside a relative squared error
FLAT = 0.02  # of an error: what nobody minds, as of priors (`estimators.choosing`), however sure it is
ROUNDING = 1e-12  # of a joint's torques: a smaller error is none


def fitted(model: RegressorModel, c: Compressed, weights: np.ndarray) -> np.ndarray:
    """Least squares near the model's own parameters, as `ridge` has it, without all that comes with an estimate."""
    A, b = c.system(weights)
    size = np.linalg.norm(b)
    if size == 0.0:
        return model.prior
    scale = natural_scale(model, A, b)
    rows = np.vstack((A * scale / size, np.sqrt(STRENGTH) * np.eye(model.size)))
    aims = np.concatenate(((b - A @ model.prior) / size, np.zeros(model.size)))
    return model.prior + scale * np.linalg.lstsq(rows, aims, rcond=None)[0]


def one_over_residuals(c: Compressed, x: np.ndarray) -> np.ndarray:
    """Weights of the joints (nv,)."""
    rms = c.rms(x)
    return 1.0 / np.maximum(rms, 1e-9 * max(float(rms.max()), 1e-300))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Of blocks from the others: squares (blocks, nv) of what is left of their torques, size (nv,) of the torques
    squared, x: the parameters that all blocks give.
    """

    squares: np.ndarray
    size: np.ndarray
    x: np.ndarray

    @property
    def error(self) -> float:
        """|tau - tau_hat| / |tau| of each joint over all blocks, and of these the geometric mean: up to a constant, the
        logarithm of a Gaussian likelihood with noise of unknown size at each joint.
        """
        alive = self.size > 0.0
        relative = np.maximum(self.squares.sum(axis=0)[alive] / self.size[alive], ROUNDING**2)
        return float(np.exp(0.5 * np.log(relative).mean()))

    def worse_than(self, other: Prediction) -> bool:
        """Whether it predicts worse by more than a standard error, that of the blocks' shares of the difference.

        The difference of log errors is, to first order, the sum over blocks of those of squares over their mean.
        """
        mean = 0.5 * (self.squares + other.squares).sum(axis=0)
        alive = mean > ROUNDING**2 * self.size
        shares = ((self.squares - other.squares)[:, alive] / mean[alive]).sum(axis=1)
        return float(shares.sum()) > np.sqrt(len(shares)) * float(np.std(shares, ddof=1))

    def clearly_worse_than(self, other: Prediction) -> bool:
        """Whether it is worse by more than a standard error, and by more than FLAT."""
        return self.worse_than(other) and self.error > (1.0 + FLAT) * other.error


def predicted(
    model: RegressorModel, blocks: Sequence[Compressed], held: Sequence[Compressed] | None = None
) -> Prediction:
    """Each block's torques from the others. held: the rows of the blocks that are predicted, where they are not those
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
