"""Which torque samples not to trust: at the actuators' limits, spikes, joints that stand."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, number
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

from . import filters
from .samples import Log, Samples, derive


def without_saturation(data: Log, effort: ArrayLike, margin: float = 0.99, widen: float = 0.0) -> Log:
    """Torque samples at or above `margin` times `effort` (nv,) [N m] masked, `widen` seconds around them too."""
    limit, margin = _per_joint(data, "effort", effort), number("margin", margin, "a number > 0", lambda x: x > 0.0)
    return _masked(data, np.abs(data.tau) >= margin * limit, widen, "saturated")


def without_outliers(data: Log, threshold: float = 6.0, window: float = 0.05, widen: float = 0.0) -> Log:
    """Torque spikes masked: further than `threshold` robust standard deviations from a running median [s]."""
    from scipy.ndimage import median_filter

    threshold = number("threshold", threshold, "a number > 0", lambda x: x > 0.0)
    window = number("window", window, "a number > 0", lambda x: x > 0.0)
    size = 2 * max(1, round(0.5 * window * data.rate)) + 1
    bad = np.zeros_like(data.used)
    for s in data.stretches():
        off = np.abs(data.tau[s] - median_filter(data.tau[s], size=(size, 1), mode="nearest"))
        # on a steep slope the running median is the sample itself: noise shows in second differences too
        spread = 1.4826 * np.maximum(
            np.median(off, axis=0), np.median(np.abs(np.diff(data.tau[s], 2, axis=0)), axis=0) / np.sqrt(6.0)
        )
        floor = 1e-9 * np.maximum(np.abs(data.tau[s]).max(0), 1e-300)
        bad[s] = off > threshold * np.maximum(spread, floor)
    return _masked(data, bad, widen, "outlying")


def without_standstill(data: Log, speed: ArrayLike, widen: float = 0.0) -> Log:
    """Mask, per joint, samples at which it is slower than `speed` [rad/s]: stiction is not Coulomb friction."""
    if data.v is None:
        raise DataError(f"{data.label}: velocities are needed: filter the log first")
    return _masked(data, np.abs(data.v) < _per_joint(data, "speed", speed), widen, "standing")


def at_rest(data: Samples, share: float = 0.01, seconds: float = 0.2) -> np.ndarray:
    """(N, nv): where a joint stays slower than `share` of its greatest speed for `seconds` at least.

    Passing through zero is not resting. Speeds below a tenth of that share of the fastest joint's count as none. Speeds
    are taken below the cut-off of the torques, if that is known, so that encoders' noise is no motion.
    """
    from scipy.ndimage import binary_opening

    if data.v is None:
        raise DataError(f"{data.label}: velocities are needed: filter the log first")
    share = number("share", share, "a number from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    seconds = number("seconds", seconds, "seconds >= 0", lambda x: x >= 0.0)
    speed = np.abs(np.concatenate([_below(data.v[s], data) for s in data.stretches()]))
    greatest = np.maximum(speed.max(axis=0), 0.1 * speed.max())
    slow, length = speed < share * greatest, max(1, round(seconds * data.rate))
    for s in data.stretches():
        slow[s] = binary_opening(slow[s], np.ones((min(length, s.stop - s.start), 1), bool))
    return slow


def _below(v: np.ndarray, data: Samples) -> np.ndarray:
    """v low-passed as torques are."""
    if data.band is None or data.band[0] > 0.4 * data.rate or len(v) < 16:
        return v
    return filters.low_pass(v, data.rate, *data.band)


def without_rest(data: Log) -> Log:
    """Mask, per joint, samples at rest: friction there is whatever holds the joint, up to where it breaks away. Joints
    that rest for more than half of the log keep them: there is little else.
    """
    rests = at_rest(data)
    rests &= (rests & data.used).sum(axis=0) <= 0.5 * data.used.sum(axis=0)
    return _masked(data, rests, 0.0, "resting")


def _per_joint(data, name, value):
    x = checked(name, value, (), finite=False)
    if x.shape not in ((), (data.nv,)) or np.isnan(x).any() or (x < 0.0).any():
        raise ArgumentError(f"{name}: expected a number >= 0 or {data.nv}, one a joint, got {value!r}")
    return np.broadcast_to(x, (data.nv,))


def _masked(data, bad, widen, word):
    widen = number("widen", widen, "seconds >= 0", lambda x: x >= 0.0)
    reach = round(widen * data.rate) if widen else 0  # samples
    if reach:
        from scipy.ndimage import binary_dilation

        for s in data.stretches():
            bad[s] = binary_dilation(bad[s], np.ones((2 * reach + 1, 1), bool))
    note = f"{int((bad & data.used).sum())} {word} torque samples masked"
    return derive(data, mask=data.used & ~bad, history=(*data.history, note))
