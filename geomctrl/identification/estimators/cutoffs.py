"""Choose filter cut-offs from a log: those with which a model, fitted on a part of it, best predicts the other torques.

A low cut-off removes motion; a high one lets the noise of encoders into velocities and accelerations, in proportion to
the frequency and its square. Both spoil the torques that a model computes from the filtered motion, so these torques
reveal the best cut-off:

    for each cut-off f on a logarithmic grid, and for velocities measured and differentiated from positions:
        low-pass the motion at f, and fit the model to blocks of the log (least squares with a weak prior);
        compare the torques that it predicts on the other blocks with the measured ones.

The measured torques are the same for all f, as recorded (below twice the highest cut-off), and so are the rows:
comparing after a low-pass at f would favour the lowest f, where nothing is left to predict. Noise of torques adds the
same to all errors. Joints count by the logarithm of their errors, as in the likelihood of Gaussian noise of unknown
size, so that units and joints without a preferred cut-off do not matter.

The best prediction gives the best motion f*, but parameters may be as good with a higher cut-off. Parameters fitted at
higher cut-offs therefore predict the blocks left out from the motion at f*. The highest cut-off is chosen that is not
worse than f* by more than a standard error, that of the blocks' shares of the difference (the one-standard-error rule;
Breiman, Friedman, Olshen and Stone 1984, section 3.4.3), or by no more than FLAT. The highest one removes the least
motion, and the fewest rows at ends and holes, where filters settle. If the error is flat and least at the lowest
cut-off, which takes part of the motion away, f* is the highest within TOLERATED_RISE of the least one of the others.

Torques and regressor are low-passed where the gain of the Wiener filter is one half: up to this frequency the predicted
spectrum is above that of the residual, so motion and torque are coherent. Above it torques contain noise, ripple and
vibration, which do not inform parameters.

The bias of base parameters by encoder noise is estimated by adding the same amount again. Noise of positions enters the
regressor: friction changes its sign at wrong times, and noisy accelerations make inertias smaller. Residuals do not
show such a bias. Noise of the same size, added to positions (or to measured velocities) before the filters, moves the
estimate about as far again (simulation and extrapolation; Cook and Stefanski 1994). It is added and subtracted, so that
linear effects and scatter cancel. Intervals are widened by the shift: the covariance gains its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from geomctrl.identification.errors import DataError, ShortLogError
from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset, filters, parts, signals
from geomctrl.identification.logs.samples import derive
from geomctrl.identification.model.compressed import Compressed, Factors
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.identification.settings import Filtering
from geomctrl.robot import Robot

from . import Estimate
from .conditioning import regressor_condition
from .least_squares import base_values
from .model_choice import TOLERATED_RISE, Prediction, predicted

MIN_CUTOFF, MAX_CUTOFF = 0.5, 100.0  # Hz: range of the motion of robot arms
PER_OCTAVE = 2.0  # cut-offs on the grid
BLOCKS = 6  # blocks of the cross-validation
MAX_ROWS = 3000  # that are compared
MAX_SAMPLES = 120_000  # largest number of samples that are filtered; longer logs are represented by pieces
MIN_RISE = 0.1  # a best cut-off at an end of the range is a bound if the next one is worse by more than this


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """The chosen cut-offs of positions and torques [Hz], those tried with their relative errors (geometric means over
    joints), and "lowest" or "highest" if the best is at an end of the range.
    """

    cutoff: float
    torque_cutoff: float
    measured_velocities: bool
    tried: np.ndarray
    errors: np.ndarray
    bound: str | None

    def __str__(self) -> str:
        source = "measured velocities" if self.measured_velocities else "positions differentiated twice"
        best, last = int(self.errors.argmin()), len(self.tried) - 1
        errors = [
            f"{100.0 * self.errors[k]:.2f} % at {self.tried[k]:.3g} Hz"
            for k in sorted({0, best, last}, key=lambda k: self.errors[k])
        ]
        return (
            f"positions at {self.cutoff:.3g} Hz, the highest whose parameters predict as well as the best: from"
            f" {source}, torques of samples left out of the fit are predicted to {', '.join(errors)} (mean of joints);"
            f" torques at {self.torque_cutoff:.3g} Hz, above which the model explains less than half of them"
        )

    def findings(self) -> list[Finding]:
        if self.bound is None:
            return []
        end = self.tried[0] if self.bound == "lowest" else self.tried[-1]
        advice = {
            "lowest": "Velocities are noise: use measured ones or a finer encoder, move faster or record longer",
            "highest": "The motion reaches beyond what this sampling rate shows: sample faster, or look for vibration",
        }[self.bound]
        seen = f"the best cut-off of positions is the {self.bound} that was tried, {end:.3g} Hz"
        return [Finding("cutoff", seen, f"{advice}, or give a cut-off (identify: --cutoff)")]


def choose_cutoffs(model: RegressorModel, data: Dataset) -> Cutoffs:
    """Choose the cut-offs for an unfiltered log. Raises DataError if it is too short or has no torques."""
    log = _pieces(data)
    signals.check_samples(log)
    tried = _grid(log)
    indices = _rows(log, tried[0])
    tau = _low_passed_torques(log, min(2.0 * tried[-1], 0.45 * log.rate))
    poses = log.q.shape[1] != log.nv
    sources = [s for s in (True, False) if (log.v is not None if s else not poses)]
    trials: dict[bool, list[_Trial]] = {}
    for measured in sources:
        source = log if measured else derive(log, v=None)
        trials[measured] = [_trial(model, source, float(f), indices, tau) for f in tried]
    best = sources[0]  # measured velocities, unless positions are better by more than chance
    if len(sources) == 2 and _best(trials[True]).clearly_worse_than(_best(trials[False])):
        best = False
    errors = np.array([t.own.error for t in trials[best]])
    k = _highest_as_good(model, trials[best])
    cutoff, x = float(tried[k]), trials[best][k].own.x
    torque_cutoff = _coherent(model, log if best else derive(log, v=None), x, cutoff, float(tried[0]))
    return Cutoffs(cutoff, torque_cutoff, best, tried, errors, _bound(errors))


def _pieces(data: Dataset) -> Dataset:
    """Six evenly spread pieces of a log of more than MAX_SAMPLES samples."""
    if len(data) <= MAX_SAMPLES:
        return data
    number = 6
    phase = np.arange(len(data)) * number / len(data) % 1.0
    return data.select(phase < MAX_SAMPLES / len(data))


def _grid(log: Dataset) -> np.ndarray:
    """Cut-offs [Hz] from the lowest that the log's length allows to a fifth of its rate."""
    lengths = np.array([s.stop - s.start for s in log.stretches]) / log.rate
    typical = float(np.sort(lengths)[np.searchsorted(np.cumsum(np.sort(lengths)), 0.25 * lengths.sum())])
    low, high = max(MIN_CUTOFF, 6.0 / typical), min(0.2 * log.rate, MAX_CUTOFF)
    if low >= 0.7 * high:
        raise ShortLogError(
            f"{log.label}: {typical:.3g} s at {log.rate:.4g} Hz without a hole are too short to choose a cut-off from"
        )
    return np.geomspace(low, high, 1 + int(np.ceil(PER_OCTAVE * np.log2(high / low))))


def _rows(log: Dataset, lowest: float) -> np.ndarray:
    """Numbers of the compared samples: at least a period of the lowest cut-off away from ends and holes."""
    keep, margin = np.zeros(len(log), bool), int(log.rate / lowest)
    for s in log.stretches:
        keep[s.start + margin : s.stop - margin] = True
    indices = np.flatnonzero(keep & log.used.any(axis=1))
    if not len(indices):
        raise DataError(f"{log.label}: no usable torque sample is left (all are masked)")
    if not log.tau[indices][log.used[indices]].any():
        raise DataError(f"{log.label}: tau: every usable torque is zero")
    return indices[:: max(1, len(indices) // MAX_ROWS)]


def _low_passed_torques(log: Dataset, cutoff: float) -> np.ndarray:
    return np.concatenate([filters.low_pass(log.tau[s], log.rate, cutoff) for s in log.stretches])


@dataclass(frozen=True, eq=False)
class _Trial:
    """Blocks of the log at one cut-off, and each predicted from the others."""

    blocks: list[Compressed]
    own: Prediction


def _trial(model: RegressorModel, log: Dataset, cutoff: float, indices: np.ndarray, tau: np.ndarray) -> _Trial:
    q, v, a = (x[indices] for x in signals.low_passed_motion(log, cutoff))
    target, mask = tau[indices] - a * model.known_armature, log.used[indices]
    blocks = [_compressed(model, (q[s], v[s], a[s]), target[s], mask[s]) for s in _blocks(len(indices))]
    return _Trial(blocks, predicted(model, blocks))


def _blocks(n: int) -> list[slice]:
    edges = np.linspace(0, n, BLOCKS + 1).astype(int)
    return [slice(int(i), int(j)) for i, j in pairwise(edges)]


def _compressed(model: RegressorModel, motion: Sequence[np.ndarray], tau: np.ndarray, mask: np.ndarray) -> Compressed:
    factors = Factors(model)
    factors.add(model._blocks(*motion), tau, mask)
    return factors.result()


def _best(trials: Sequence[_Trial]) -> Prediction:
    return min((t.own for t in trials), key=lambda p: p.error)


def _highest_as_good(model: RegressorModel, trials: Sequence[_Trial]) -> int:
    """Number of the highest cut-off whose parameters predict as well as the best's, from the best's motion."""
    errors = np.array([t.own.error for t in trials])
    best = int(errors.argmin())
    if best == 0 and _bound(errors) is None:  # flat: no cut-off reduces an error such as a delay's
        best = int(np.flatnonzero(errors <= (1.0 + TOLERATED_RISE) * errors[1:].min())[-1])
    for k in range(best + 1, len(trials)):
        if predicted(model, trials[k].blocks, trials[best].blocks).clearly_worse_than(trials[best].own):
            return k - 1
    return len(trials) - 1


def _bound(errors: np.ndarray) -> str | None:
    """The end of the searched range at which the least error clearly lies, or None."""
    best = int(errors.argmin())
    if best == 0 and errors[1] > (1.0 + MIN_RISE) * errors[0]:
        return "lowest"
    if best == len(errors) - 1 and errors[-2] > (1.0 + MIN_RISE) * errors[-1]:
        return "highest"
    return None


def _coherent(model: RegressorModel, log: Dataset, x: np.ndarray, cutoff: float, lowest: float) -> float:
    """The frequency [Hz], at most `cutoff`, up to which the predicted power of the torques exceeds the residual."""
    from scipy import signal

    motion = signals.low_passed_motion(log, cutoff)
    step = max(1, int(log.rate / (6.0 * cutoff)))
    tau, rate = _low_passed_torques(log, min(0.4 * log.rate / step, 0.45 * log.rate)), log.rate / step
    spectra = []
    for s in log.stretches:
        some = slice(s.start, s.stop, step)
        q, v, a = (m[some] for m in motion)
        length = min(len(q), max(16, int(4.0 * rate / lowest)))
        predicted = model.torque(x, q, v, a)
        left = np.where(log.used[some], tau[some] - predicted, 0.0)
        weigh = np.maximum(left.var(axis=0), 1e-24 * max(float(np.square(tau[some]).max()), 1e-300))
        f, P = signal.welch(predicted / np.sqrt(weigh), rate, nperseg=length, axis=0)
        _, R = signal.welch(left / np.sqrt(weigh), rate, nperseg=length, axis=0)
        spectra.append((f, P.sum(axis=1) * len(q), R.sum(axis=1) * len(q)))
    edges = np.geomspace(lowest, cutoff, max(2, 1 + int(np.ceil(2.0 * np.log2(max(cutoff / lowest, 1.01))))))
    chosen = lowest
    for low, high in pairwise(edges):
        explained = sum(float(P[(f >= low) & (f < high)].sum()) for f, P, _ in spectra)
        left = sum(float(R[(f >= low) & (f < high)].sum()) for f, _, R in spectra)
        if explained <= left:
            break
        chosen = high
    return float(min(chosen, cutoff))


# --- the filter of a log ---------------------------------------------------------------------------------------------


SETTLING = 1.5  # periods of the low-pass: its response has decayed to 3 %, and the effect of an end is below noise


@dataclass(frozen=True)
class LogFilter:
    """Cut-offs [Hz] of positions and torques, the number of rows of which one is kept, use of measured velocities."""

    settings: Filtering
    cutoff: float
    torque_cutoff: float
    decimate: int
    measured_velocities: bool = True

    @classmethod
    def of(cls, settings: Filtering, data: Dataset, chosen: Cutoffs | None = None) -> LogFilter:
        """The filter for a log; chosen: cut-offs that are not given, by default the motion's bandwidth."""
        if settings.cutoff is not None or chosen is None:
            cutoff = torque_cutoff = settings.cutoff if settings.cutoff is not None else signals.motion_bandwidth(data)
            velocities = True
        else:
            cutoff, torque_cutoff, velocities = chosen.cutoff, chosen.torque_cutoff, chosen.measured_velocities
        torque_cutoff = torque_cutoff if settings.torque_cutoff is None else settings.torque_cutoff
        filters.require_cutoff(cutoff, data.rate)
        filters.require_cutoff(torque_cutoff, data.rate, "torque_cutoff")
        decimate = settings.decimate
        if decimate is None:
            decimate = max(1, int(data.rate / (4.0 * torque_cutoff)))
            decimate -= decimate % min(decimate, signals.thinning(data.rate, cutoff, torque_cutoff))
        return cls(settings, cutoff, torque_cutoff, decimate, velocities)

    def cleaned(self, data: Dataset, robot: Robot) -> Dataset:
        """Without saturated and outlying torques."""
        effort = np.where(robot.limits.effort > 0.0, robot.limits.effort, np.inf)  # URDF files say 0 for "not known"
        saturation = effort if self.settings.saturation and np.isfinite(effort).any() else None
        return data.without(saturation=saturation, widen=0.5 / self.torque_cutoff, outliers=self.settings.outliers)

    def moving(self, data: Dataset) -> Dataset:
        """Without samples of joints at rest."""
        speed = self.settings.standstill
        return data.without(standstill="auto" if speed is None else None if speed == 0.0 else speed)

    def filtered(self, data: Dataset) -> Dataset:
        """Low-passed and thinned, with rows masked while the filters settle."""
        if not self.measured_velocities and data.v is not None:
            data = derive(data, v=None, history=(*data.history, "measured velocities are not used"))
        out = data.filtered(
            self.cutoff, torque_cutoff=self.torque_cutoff, alike=self.settings.alike, decimate=self.decimate
        )
        return parts.without_edges(out, SETTLING / min(self.cutoff, self.torque_cutoff))


def chosen_cutoffs(settings: Filtering, model: RegressorModel, data: Dataset) -> tuple[Cutoffs | None, list[Finding]]:
    """(cut-offs chosen from those torques of a log that are trusted; findings)."""
    if settings.cutoff is not None:
        return None, []
    first = LogFilter.of(settings, data)
    try:
        chosen = choose_cutoffs(model, first.cleaned(data, model.robot))
    except ShortLogError as error:
        return None, [Finding("cutoff", str(error), "Record longer, or give a cut-off (identify: --cutoff)")]
    return chosen, chosen.findings()


# --- noise of the motion ---------------------------------------------------------------------------------------------


NOISE_PAIRS = 1  # pairs of added and subtracted noise
MIN_NOTED_SIGMA = 0.5  # shift from which a note says so, in standard deviations of a base parameter


def white_noise(x: np.ndarray, rate: float, above: float) -> np.ndarray | None:
    """Standard deviation (n,) of white noise in columns of x (N, n), from their power above a frequency [Hz]; None if
    the sampling rate leaves none. The median of the power ignores narrow peaks.
    """
    f = np.fft.rfftfreq(len(x), 1.0 / rate)
    high = (f > above) & (f < 0.5 * rate)
    if high.sum() < 10:
        return None
    window = np.hanning(len(x))
    ends = np.linspace(x[0], x[-1], len(x))
    power = np.abs(np.fft.rfft((x - ends) * window[:, None], axis=0)[high]) ** 2
    return np.sqrt(np.median(power, axis=0) / np.log(2.0) / np.square(window).sum())


def with_bias_of_noise(
    estimate: Estimate, part: Dataset, training: Dataset, filter_: LogFilter
) -> tuple[Estimate, str | None]:
    """(the estimate whose covariance includes the bias from motion noise, a note if the bias matters)."""
    field = "v" if part.v is not None and filter_.measured_velocities else "q"
    x = np.asarray(getattr(part, field))
    shift = None if estimate.covariance is None else _shift(estimate, part, training, filter_, field, x)
    if shift is None or estimate.std is None:
        return estimate, None
    assert estimate.covariance is not None
    share = np.abs(shift) / np.maximum(estimate.std, 1e-300)
    uncertainty = estimate.uncertainty._replace(covariance=estimate.covariance + np.outer(shift, shift))
    out = replace(estimate, uncertainty=uncertainty)
    if not share.max() > MIN_NOTED_SIGMA:
        return out, None
    signal = "velocities" if field == "v" else "positions"
    return out, (
        f"noise of {signal} moves base parameters by up to {share.max():.2g} standard deviations, by which intervals"
        " are wider; a lower cut-off (identify: --cutoff) takes it away"
    )


def _shift(
    estimate: Estimate, part: Dataset, training: Dataset, filter_: LogFilter, field: str, x: np.ndarray
) -> np.ndarray | None:
    s = part.longest_stretch
    std = white_noise(x[s], part.rate, 2.0 * filter_.cutoff)
    if std is None or not std.any() or x.shape[1] != part.nv:
        return None
    model, weights, rng = estimate.model, estimate.weights, np.random.default_rng(0)
    if regressor_condition(model, estimate.training, weights)[1]:  # only a prior gives an estimate
        return None
    own = base_values(model, estimate.training, weights)
    shifts = []
    for _ in range(NOISE_PAIRS):
        added = std * rng.normal(size=x.shape)
        for sign in (1.0, -1.0):
            noisy = filter_.filtered(derive(part, **{field: x + sign * added}))
            try:
                c = model.compress(derive(noisy, mask=training.used))
            except DataError:
                return None
            shifts.append(base_values(model, c, weights) - own)
    return np.mean(shifts, axis=0)
