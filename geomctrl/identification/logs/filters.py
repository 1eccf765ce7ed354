"""Zero-phase low-pass filters, decimation and differentiation of sampled signals, with cut-offs in hertz.

The cut-off is the frequency at which the filter as applied, forwards and backwards, halves an amplitude (-6 dB; -3 dB
in each direction, so `scipy.signal.butter` with the same number). Signals are (N, ...) arrays, time first.
"""

from __future__ import annotations

import functools

import numpy as np

from geomctrl.arguments import number
from geomctrl.errors import ArgumentError

MIN_RELATIVE_CUTOFF = 1e-6  # of the sampling rate: below it rounding spoils the coefficients of the filter
MAX_JITTER = 0.05  # largest relative deviation of a sampling interval from the median that counts as uniform


def require_cutoff(cutoff: float, rate: float, name: str = "cutoff") -> float:
    """Return the cut-off; raises ArgumentError unless MIN_RELATIVE_CUTOFF rate <= cutoff < rate / 2 [Hz]."""
    low, half = MIN_RELATIVE_CUTOFF * rate * (1.0 - 1e-9), 0.5 * rate * (1.0 - 1e-9)
    expected = f"hertz between {MIN_RELATIVE_CUTOFF * rate:.3g} and half the sampling rate, {0.5 * rate:.6g} Hz"
    return number(name, cutoff, expected, lambda x: low <= x < half)


def low_pass(x: np.ndarray, rate: float, cutoff: float, order: int = 4, ends: str = "reflect") -> np.ndarray:
    """Butterworth low-pass of `order`, run forwards and backwards: zero phase, amplitude 1/2 at `cutoff` [Hz].

    The amplitude is 1 / (1 + (tan(pi f / rate) / tan(pi cutoff / rate))^(2 order)). The signal is extended beyond its
    ends by three periods of the cut-off. "reflect": by point reflection, which makes second derivatives zero at the
    ends. "continue": by the least-squares quartic through its last two periods, for smooth signals whose derivatives
    are needed up to the last sample.
    """
    from scipy import signal  # imported here because it takes half a second

    require_cutoff(cutoff, rate)
    if ends not in ("reflect", "continue"):
        raise ArgumentError(f"ends: expected 'reflect' or 'continue', got {ends!r}")
    sections, steady = _butterworth(int(order), float(cutoff), float(rate))
    x = np.asarray(x, float)
    pad = min(len(x) - 1, settling(rate, cutoff))
    if ends == "reflect":
        before, after = 2.0 * x[0] - x[pad:0:-1], 2.0 * x[-1] - x[-2 : -pad - 2 : -1]
    else:
        reach = min(len(x) - 1, int(2.0 * rate / cutoff + 1e-6))
        before, after = _continued(x, pad, reach)[::-1], _continued(x[::-1], pad, reach)
    y = np.concatenate((before, x, after))
    steady = steady.reshape(*steady.shape, *[1] * (y.ndim - 1))
    for _ in range(2):  # forwards, then backwards, each from the steady state of its first sample
        y = signal.sosfilt(sections, y, axis=0, zi=steady * y[:1])[0][::-1]
    return y[pad : pad + len(x)]


@functools.lru_cache(maxsize=64)
def _butterworth(order: int, cutoff: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The sections of the filter, and their states (sections, 2) under a constant signal of 1."""
    from scipy import signal

    sections = signal.butter(order, cutoff, fs=rate, output="sos")
    return sections, signal.sosfilt_zi(sections)  # pyright: ignore[reportReturnType]


def _continued(x, pad, reach):
    """`pad` samples of x (N, ...) before its first one, the nearest first."""
    powers = np.vander(np.arange(-pad, reach + 1) / max(reach, 1), min(4, reach) + 1)
    quartic = np.linalg.lstsq(powers[pad:], x[: reach + 1].reshape(reach + 1, -1), rcond=None)[0]
    return (powers[:pad][::-1] @ quartic).reshape(pad, *x.shape[1:])


def settling(rate: float, cutoff: float) -> int:
    """Number of samples after which a low-pass has forgotten its initial state (three periods of the cut-off)."""
    return int(np.ceil(3.0 * rate / cutoff - 1e-6))


def differentiate(x: np.ndarray, dt: float) -> np.ndarray:
    """Derivative by fourth-order differences: central inside, one-sided at the two samples at either end."""
    x = np.asarray(x, float)
    if len(x) < 5:
        raise ArgumentError(f"x: expected at least 5 samples to differentiate, got {len(x)}")
    out = np.empty_like(x)
    out[2:-2] = (x[:-4] - 8.0 * x[1:-3] + 8.0 * x[3:-1] - x[4:]) / 12.0
    out[0] = (-25.0 * x[0] + 48.0 * x[1] - 36.0 * x[2] + 16.0 * x[3] - 3.0 * x[4]) / 12.0
    out[1] = (-3.0 * x[0] - 10.0 * x[1] + 18.0 * x[2] - 6.0 * x[3] + x[4]) / 12.0
    out[-2] = (3.0 * x[-1] + 10.0 * x[-2] - 18.0 * x[-3] + 6.0 * x[-4] - x[-5]) / 12.0
    out[-1] = (25.0 * x[-1] - 48.0 * x[-2] + 36.0 * x[-3] - 16.0 * x[-4] + 3.0 * x[-5]) / 12.0
    return out / dt


def is_uniform(t: np.ndarray) -> bool:
    """Whether the sampling intervals agree with their median to MAX_JITTER."""
    steps = np.diff(t)
    return bool(np.abs(steps - np.median(steps)).max() <= MAX_JITTER * np.median(steps))
