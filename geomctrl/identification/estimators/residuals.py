"""How residuals of a log hang together in time."""

from __future__ import annotations

import numpy as np

from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.regressor_model import RegressorModel


def autocorrelation_factor(model: RegressorModel, x: np.ndarray, data: Dataset) -> np.ndarray:
    """1 + 2 sum of the residuals' autocorrelations up to the first that is negative, per joint (nv,), at least 1."""
    _, tau, predicted, mask = model.predict(x, data)
    residual = np.where(mask, tau - predicted, 0.0)
    return np.array([correlation_factor(autocorrelation(r)) for r in residual.T])


def correlation_factor(rho: np.ndarray) -> float:
    """The same of one autocorrelation, lags from 0."""
    negative = np.flatnonzero(rho < 0.0)
    return max(1.0, float(1.0 + 2.0 * rho[1 : negative[0] if len(negative) else len(rho)].sum()))


def autocorrelation(r: np.ndarray) -> np.ndarray:
    """Autocorrelation of a residual about zero, lags 0 to a quarter of its length (at most 2000)."""
    n = len(r)
    power = np.abs(np.fft.rfft(r, 2 * n)) ** 2
    lags = np.fft.irfft(power)[: max(2, min(n // 4, 2000))]
    return lags / lags[0] if lags[0] > 0.0 else np.eye(1, len(lags))[0]
