"""Filter, differentiate, thin and resample the signals of a log, and mask torque samples that are not trustworthy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import MAX_COUNT, choice, count, flag, number, one_or_each
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

from . import filters
from .parts import MIN_STRETCH, rows
from .samples import Log, Samples, derive

MAX_ORDER = 32  # highest order of a low-pass
NOISE_FACTOR = 12.0  # times the noise: one frequency in a hundred thousand of noise alone
POSITION_POWER = 1e-4  # relative to the positions' power: 12-bit encoder noise is 1e-6 of the power of 1 rad motion
# samples for each period of the cut-off that smooth signals and friction steps need
SMOOTH_SAMPLES, FRICTION_SAMPLES = 12, 64


def filtered(
    data: Log,
    cutoff: float,
    *,
    order: int = 4,
    torque_cutoff: float | None = None,
    alike: bool = False,
    decimate: int = 1,
) -> Log:
    """Low-pass positions and torques, and compute velocities and accelerations.

    Parameters
    ----------
    cutoff : float
        Cut-off of positions [Hz], where amplitudes are halved.
    order : int
        Order of the Butterworth filter, which runs forwards and backwards. Default 4.
    torque_cutoff : float, optional
        Cut-off of torques [Hz]. Default: `cutoff`.
    alike : bool
        True leaves the torques as measured; the model then applies one low-pass, at torque_cutoff, to torques and
        regressor. The distortion of friction steps by the filter then does not count as an error. Default False.
    decimate : int
        Keep every n-th row of the result. Default 1.

    Returns
    -------
    Dataset
        A measured v is low-passed and differentiated once; otherwise q is differentiated twice. Uninterrupted parts are
        filtered separately.

    Raises
    ------
    DataError, ArgumentError
        If a part is too short or unevenly sampled, or an argument is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.identification import Dataset
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> log = Dataset(t, q=np.sin(t)[:, None], tau=np.cos(t)[:, None])
    >>> motion = log.filtered(10.0)
    >>> bool(np.abs(motion.v[20:-20, 0] - np.cos(motion.t[20:-20])).max() < 0.01)
    True
    """
    torque_cutoff, alike = cutoff if torque_cutoff is None else torque_cutoff, flag("alike", alike)
    cutoff, torque_cutoff = _cutoffs(data, cutoff, torque_cutoff, order, decimate)
    check_samples(data)
    of_torques = None if alike else torque_cutoff
    with np.errstate(all="ignore"):
        parts = [_low_passed(data, s, cutoff, order, of_torques) for s in data.stretches]
    q, v, a, tau = (_joined(x) for x in zip(*parts))
    if not all(np.isfinite(x).all() for x in (q, v, a, tau)):
        raise DataError(
            f"{data.label}: its numbers, divided by powers of its sampling intervals, exceed floating point"
        )
    history = (*data.history, *_filter_text(data, cutoff, torque_cutoff, order, alike))
    band = (float(torque_cutoff), order) if alike else data.band
    out = derive(data, q=q, v=v, a=a, tau=tau, band=band, history=history)
    if decimate == 1:
        return out
    return _thinned_after_band(out, decimate, cutoff, torque_cutoff) if alike else decimated(out, decimate)


def _cutoffs(data, cutoff, torque_cutoff, order, decimate):
    """Check the arguments of `filtered`, and return the cut-offs."""
    count("order", order, 1, MAX_ORDER)
    count("decimate", decimate, 1)
    if data.q.shape[1] != data.nv and data.v is None:
        raise DataError(f"{data.label}: joints with several degrees of freedom need measured velocities v")
    if len(data) < 2:
        raise DataError(f"{data.label}: a single sample can not be filtered")
    names = {"cutoff": cutoff, "torque_cutoff": torque_cutoff}
    return tuple(filters.require_cutoff(x, data.rate, name) for name, x in names.items())


def check_samples(data: Samples) -> None:
    """Raise DataError if a part can not be filtered."""
    stretches = data.stretches
    if not data.is_even:
        steps = np.concatenate([np.diff(data.t[s]) for s in stretches])
        raise DataError(
            f"{data.label}: t: sampling intervals from {steps.min():.4g} to {steps.max():.4g} s are not even;"
            f" use resampled({data.rate:.6g}) (identify: --resample {data.rate:.6g})"
        )
    for s in stretches:
        if s.stop - s.start < MIN_STRETCH:
            n = s.stop - s.start
            raise DataError(
                f"{data.label}: an uninterrupted part of {n} samples is too short to filter: expected"
                f" {MIN_STRETCH} or more; record"
                " longer or sample faster, or test on another part of it (identify: --test)"
            )


def low_passed_motion(data: Samples, cutoff: float, order: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a as `filtered` computes them, for a log with even time stamps."""
    parts = [_motion(data, s, cutoff, order) for s in data.stretches]
    q, v, a = (_joined(x) for x in zip(*parts))
    return q, v, a


def _low_passed(data, s, cutoff, order, torque_cutoff):
    """q, v, a, tau of a part by low-pass and differences; torque_cutoff=None leaves the torques."""
    tau = data.tau[s] if torque_cutoff is None else filters.low_pass(data.tau[s], data.rate, torque_cutoff, order)
    return *_motion(data, s, cutoff, order), tau


def _motion(data, s, cutoff, order):
    rate = data.rate
    poses = data.q.shape[1] != data.nv  # a mean of rotation matrices is no rotation: poses stay as measured
    q = data.q[s] if poses else filters.low_pass(data.q[s], rate, cutoff, order, "continue")
    if data.v is None:
        v = filters.differentiate(q, 1.0 / rate)
    else:
        v = filters.low_pass(data.v[s], rate, cutoff, order, "continue")
    return q, v, filters.differentiate(v, 1.0 / rate)


def _filter_text(data, cutoff, torque_cutoff, order, alike):
    source = "measured v, differences" if data.v is not None else "central differences"
    low_pass = f"zero-phase Butterworth low-pass of order {order} each way, amplitude 1/2 at {cutoff:g} Hz"
    positions = f"positions: {low_pass}; derivatives: {source} of 4th order"
    if alike:
        filter_ = f"zero-phase Butterworth, order {order}, amplitude 1/2 at {torque_cutoff:g} Hz"
        return positions, f"torques and regressor alike: {filter_}"
    return positions, f"torques: the same, amplitude 1/2 at {torque_cutoff:g} Hz"


def thinning(rate: float, cutoff: float, torque_cutoff: float) -> int:
    """Factor by which samples can be thinned for a regressor that is then low-passed at torque_cutoff [Hz].

    Motion below the cut-offs is smooth, but friction is not: its sign changes within a sample where a joint reverses.
    The time of the reversal is known to half an interval, which causes an error of about torque_cutoff / rate of the
    friction (rms): 2 % with FRICTION_SAMPLES samples for each period.
    """
    return max(1, int(rate / max(SMOOTH_SAMPLES * max(cutoff, torque_cutoff), FRICTION_SAMPLES * torque_cutoff) + 1e-9))


def _thinned_after_band(data, decimate, cutoff, torque_cutoff):
    """Keep every n-th row after the low-pass; logs with a far higher rate are thinned before it, too, to save time."""
    rate, max_factor = data.rate, thinning(data.rate, cutoff, torque_cutoff)
    thin = max(d for d in range(1, min(decimate, max_factor) + 1) if decimate % d == 0)
    out = data
    if thin > 1:
        guard = 0.25 * rate / thin
        tau = _joined([filters.low_pass(data.tau[s], rate, guard) for s in data.stretches])
        out = decimated(derive(data, tau=tau), thin)
        note = f"thinned to {out.rate:g} Hz before, torques low-passed at {guard:g} Hz"
        out = derive(out, history=(*data.history, note))
    note = f"one sample kept every {1e3 * decimate / rate:g} ms"
    return derive(out, stride=decimate // thin * data.stride, history=(*out.history, note))


def decimated(data: Log, factor: int) -> Log:
    """Keep every `factor`-th sample of each uninterrupted part; low-pass the log first."""
    factor = count("factor", factor, 1)
    kept = np.concatenate([np.arange(s.start, s.stop, factor) for s in data.stretches])
    gaps = tuple(np.searchsorted(kept, data.gaps).tolist())
    note = f"one sample in {factor} kept"
    return derive(data, **rows(data, kept), gaps=gaps, history=(*data.history, note))


def without_delay(data: Log, seconds: float) -> Log:
    """Shift the torques to compensate their delay behind the positions; rows without a torque then are masked."""
    from scipy.interpolate import CubicSpline

    seconds = number("seconds", seconds, "a finite number of seconds")
    tau, mask = np.array(data.tau), data.used.copy()
    for s in data.stretches:
        t = data.t[s]
        wanted = t + seconds
        if len(t) > 3:
            tau[s] = CubicSpline(t, data.tau[s])(np.clip(wanted, t[0], t[-1]))
        nearest = np.clip(np.searchsorted(t, wanted), 0, len(t) - 1)
        mask[s] = data.used[s][nearest] & ((wanted >= t[0]) & (wanted <= t[-1]))[:, None]
    note = f"torques taken {1e3 * seconds:.4g} ms later: they lag positions by that"
    return derive(data, tau=tau, mask=mask, history=(*data.history, note))


def resampled(data: Log, rate: float) -> Log:
    """Return the log at even time stamps, by cubic interpolation within each uninterrupted part.

    Parameters
    ----------
    rate : float
        Sampling rate [Hz].

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If a part has one sample only, or a joint has several degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.identification import Dataset
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> log = Dataset(t, q=np.sin(t)[:, None], tau=np.cos(t)[:, None])
    >>> len(log.resampled(50.0))
    51
    """
    from scipy.interpolate import CubicSpline

    rate = number("rate", rate, "a positive number of hertz", lambda x: x > 0.0)
    if float(data.t[-1] - data.t[0]) * rate > MAX_COUNT:
        raise ArgumentError(f"rate: expected at most {MAX_COUNT:g} samples of this log, got {rate:g} Hz")
    if data.q.shape[1] != data.nv:
        raise DataError(f"{data.label}: poses of joints with several degrees of freedom can not be interpolated")
    parts, gaps = [], []
    for s in data.stretches:
        t = data.t[s]
        if len(t) < 2:
            raise DataError(f"{data.label}: an uninterrupted part of one sample can not be interpolated")
        new = t[0] + np.arange(int(np.floor((t[-1] - t[0]) * rate + 1e-9)) + 1) / rate
        nearest = np.clip(np.searchsorted(t, new), 0, len(t) - 1)
        values = [None if x is None else CubicSpline(t, x[s])(new) for x in (data.q, data.tau, data.v, data.a)]
        parts.append([new, data.used[s][nearest], *values])
        gaps.append(len(new))
    t, mask, q, tau, v, a = (None if x[0] is None else _joined(x) for x in zip(*parts))
    note = f"resampled at {rate:g} Hz by cubic interpolation"
    gaps = tuple(np.cumsum(gaps)[:-1].tolist())
    return derive(data, t=t, q=q, tau=tau, v=v, a=a, mask=mask, gaps=gaps, history=(*data.history, note))


def _joined(parts):
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def motion_bandwidth(data: Samples) -> float:
    """Estimate the bandwidth of the motion [Hz].

    It is five times the frequency below which 99 % of the joint velocities' power lies, at most a fifth of the sampling
    rate. Without measured velocities, positions times frequency are used, which increases their noise by f^2. Only
    power above NOISE_FACTOR times the level of white noise (from the upper half of the band) counts. Steps of coarse
    encoders are not white in slow motion but small, so frequencies above ten times that of all but POSITION_POWER of
    the positions' power do not count.
    """
    s = data.longest_stretch
    differs = data.v is None
    x = data.q[s] if differs else np.asarray(data.v)[s]
    f = np.fft.rfftfreq(len(x), 1.0 / data.rate)
    ramp = np.linspace(x[0], x[-1], len(x))  # without this, a signal with different ends has power everywhere
    power = np.abs(np.fft.rfft((x - ramp) * np.hanning(len(x))[:, None], axis=0)) ** 2
    inside = (f > 0.0) & (f <= 0.2 * data.rate)
    f, power = f[inside], power[inside]
    if not power.any():
        return min(5.0, 0.2 * data.rate)
    slowly = 10.0 * _edge(f, power.sum(axis=1), 1.0 - POSITION_POWER) if differs else np.inf
    noise = np.median(power[len(f) // 2 :], axis=0) / np.log(2.0)  # the median of an exponential distribution
    clear = np.where(power > NOISE_FACTOR * noise, power, 0.0).sum(axis=1) * (f**2 if differs else 1.0)
    edge = min(_edge(f, clear, 0.99), slowly)
    return min(max(5.0 * edge, 1.0), 0.2 * data.rate)


def _edge(f: np.ndarray, power: np.ndarray, share: float) -> float:
    """The frequency below which this share of the power lies."""
    total = np.cumsum(power)
    return float(f[min(np.searchsorted(total, share * total[-1]), len(f) - 1)])


SATURATED_SHARE = 0.99  # of the effort limit
MEDIAN_SECONDS = 0.05  # s: of the running median that outliers are far from
RESTING_SHARE, RESTING_SECONDS = 0.01, 0.2  # of a joint's maximum speed; s

# --- which torque samples not to trust -------------------------------------------------------------------------------


def without(
    data: Log,
    *,
    saturation: ArrayLike | None = None,
    widen: float = 0.0,
    outliers: float | None = None,
    standstill: ArrayLike | str | None = None,
) -> Log:
    """Mask torque samples that are not to be trusted; by default none.

    Parameters
    ----------
    saturation : array_like, (nv,) or (), optional
        Effort limits [N m]: samples at 99 % of them and above are masked, and those within `widen` seconds around them.
    widen : float
        See `saturation`. Default 0.
    outliers : float, optional
        Samples farther from a running median over 0.05 s than this number of robust standard deviations are masked.
    standstill : "auto" or array_like, (nv,) or (), optional
        Samples of a joint slower than this [rad/s, m/s] are masked, because stiction is not Coulomb friction. "auto":
        the samples at which a joint rests, unless it rests for more than half of the log, which has little else of it.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        `standstill` needs velocities; filter the log first.
    ArgumentError
        If an argument is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.identification import Dataset
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> log = Dataset(t, q=np.sin(t)[:, None], tau=5.0 * np.cos(t)[:, None])
    >>> reduced = log.without(saturation=4.9)  # samples with |tau| >= 0.99 * 4.9 N m are left out
    """
    widen = number("widen", widen, "seconds >= 0", lambda x: x >= 0.0)
    if saturation is not None:
        data = _masked(
            data,
            _saturated(data, one_or_each("saturation", saturation, data.nv, "a number >= 0", _not_negative), widen),
            "saturated",
        )
    if outliers is not None:
        outliers = number("outliers", outliers, "a number > 0", lambda x: x > 0.0)
        data = _masked(data, _outlying(data, outliers), "outlying")
    if standstill is None:
        return data
    if isinstance(standstill, str):
        choice("standstill", standstill, ("auto",))
        rests = at_rest(data)
        rests &= (rests & data.used).sum(axis=0) <= 0.5 * data.used.sum(axis=0)
        return _masked(data, rests, "resting")
    speed = one_or_each("standstill", standstill, data.nv, "a number >= 0", _not_negative)
    return _masked(data, np.abs(_velocities(data)) < speed, "standing")


def _not_negative(x: np.ndarray) -> np.ndarray:
    return x >= 0.0


def _saturated(data: Samples, effort: np.ndarray, widen: float) -> np.ndarray:
    bad = np.abs(data.tau) >= SATURATED_SHARE * effort
    reach = round(min(widen * data.rate, len(data)))  # samples
    if reach:
        from scipy.ndimage import binary_dilation

        for s in data.stretches:
            bad[s] = binary_dilation(bad[s], np.ones((2 * reach + 1, 1), bool))
    return bad


def _outlying(data: Samples, threshold: float) -> np.ndarray:
    from scipy.ndimage import median_filter

    size = 2 * max(1, round(0.5 * MEDIAN_SECONDS * data.rate)) + 1
    bad = np.zeros_like(data.used)
    for s in data.stretches:
        off = np.abs(data.tau[s] - median_filter(data.tau[s], size=(size, 1), mode="nearest"))
        # on a steep slope the running median is the sample itself: noise shows in second differences too
        spread = 1.4826 * np.maximum(
            np.median(off, axis=0), np.median(np.abs(np.diff(data.tau[s], 2, axis=0)), axis=0) / np.sqrt(6.0)
        )
        floor = 1e-9 * np.maximum(np.abs(data.tau[s]).max(0), 1e-300)
        bad[s] = off > threshold * np.maximum(spread, floor)
    return bad


def _velocities(data: Samples) -> np.ndarray:
    if data.v is None:
        raise DataError(f"{data.label}: velocities are needed: filter the log first")
    return data.v


def at_rest(data: Samples) -> np.ndarray:
    """Whether each joint is at rest at each sample, bool (N, nv): slower than RESTING_SHARE of its maximum speed for
    RESTING_SECONDS.

    Passing through zero is not rest. Speeds below a tenth of that share of the fastest joint's count as zero. If the
    cut-off of the torques is known, speeds are low-passed at it, so that encoder noise is not motion.
    """
    from scipy.ndimage import binary_opening

    v = _velocities(data)
    speed = np.abs(np.concatenate([_below(v[s], data) for s in data.stretches]))
    greatest = np.maximum(speed.max(axis=0), 0.1 * speed.max())
    slow, length = speed < RESTING_SHARE * greatest, max(1, round(RESTING_SECONDS * data.rate))
    for s in data.stretches:
        slow[s] = binary_opening(slow[s], np.ones((min(length, s.stop - s.start), 1), bool))
    return slow


def _below(v: np.ndarray, data: Samples) -> np.ndarray:
    """v low-passed like the torques."""
    if data.band is None or data.band[0] > 0.4 * data.rate or len(v) < 16:
        return v
    return filters.low_pass(v, data.rate, *data.band)


def _masked(data, bad, word):
    note = f"{int((bad & data.used).sum())} {word} torque samples masked"
    return derive(data, mask=data.used & ~bad, history=(*data.history, note))
