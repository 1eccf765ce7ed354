"""Cut-offs chosen from a log: where the model, fitted on a part of it, best predicts the torques of the rest.

A cut-off that is too low takes motion away, one that is too high lets the encoders' noise into velocities and
accelerations, squared frequency by squared frequency. Both make the torques worse that a model computes from the
filtered motion, so that those torques tell which cut-off is best:

    for each cut-off f on a logarithmic grid, and for velocities measured and differentiated from positions:
        low-pass the motion at f, and fit the model to blocks of the log (least squares with a weak prior);
        compare the torques that it predicts on the other blocks with the measured ones.

The measured torques are the same for all f, as recorded (below twice the highest cut-off), and so are the rows: what
would be compared after a low-pass at f itself would be best at the lowest f, where nothing is left to predict. Noise of
torques adds the same to all errors. Joints count by the logarithm of their errors, as in the likelihood of Gaussian
noise of unknown size; so units do not matter, nor joints that no cut-off helps. Where errors are flat, within FLAT of
the least, the middle of that range is taken, in logarithms.

Torques and regressor are low-passed where the Wiener filter's gain is one half: the spectrum of what the model predicts
is above that of what it leaves, the coherent band of motion and torque. Above it torques hold noise, ripple and
vibration, and tell parameters nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from geomctrl.arguments import instance

from .blocked import prediction_error
from .compressed import Compressed, Factors
from .data import Dataset, filters, signals
from .data.samples import derive
from .doubts import Doubt
from .errors import DataError
from .model import RegressorModel

LOWEST, HIGHEST = 0.5, 100.0  # Hz: what robot arms do lies between
PER_OCTAVE = 2.0  # cut-offs tried
FLAT = 0.05  # errors this much above the least are as good
PREFERENCE = 0.02  # measured velocities are used unless positions are better by more than this
BLOCKS = 4  # of the cross-validation
ROWS = 3000  # that are compared
SAMPLES = 120_000  # that are filtered; of a longer log, pieces
STEEP = 0.1  # a best cut-off at an end of the range is a bound if the next one is worse by more than this


class TooShort(DataError):
    """A log is too short to choose cut-offs from."""


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """What was chosen, and from what.

    cutoff, torque_cutoff [Hz]. measured_velocities: whether they are used, not differences of positions. tried (n,)
    [Hz] and errors (n,): relative errors of the prediction, geometric means over joints. bound: None, or which end of
    the range that was searched the best cut-off is at, "lowest" or "highest".
    """

    cutoff: float
    torque_cutoff: float
    measured_velocities: bool
    tried: np.ndarray
    errors: np.ndarray
    bound: str | None

    def __str__(self) -> str:
        source = "measured velocities" if self.measured_velocities else "positions differentiated twice"
        return (
            f"positions at {self.cutoff:.3g} Hz: from {source}, torques of blocks left out are predicted to"
            f" {100.0 * self.errors.min():.2f} % (mean of joints) where {self.tried[0]:.3g} Hz gives"
            f" {100.0 * self.errors[0]:.2f} % and {self.tried[-1]:.3g} Hz {100.0 * self.errors[-1]:.2f} %; torques at"
            f" {self.torque_cutoff:.3g} Hz, above which the model explains less than half of them"
        )

    def doubts(self) -> list[Doubt]:
        if self.bound is None:
            return []
        end = self.tried[0] if self.bound == "lowest" else self.tried[-1]
        advice = {
            "lowest": "Velocities are noise: use measured ones or a finer encoder, move faster or record longer",
            "highest": "The motion reaches beyond what this sampling rate shows: sample faster, or look for vibration",
        }[self.bound]
        seen = f"the best cut-off of positions is the {self.bound} that was tried, {end:.3g} Hz"
        return [Doubt("cutoff", seen, f"{advice}, or give a cut-off (identify: --cutoff)")]


def choose_cutoffs(model: RegressorModel, data: Dataset) -> Cutoffs:
    """The cut-offs for a log that is not filtered yet. Raises DataError for logs too short to choose from."""
    instance("model", model, RegressorModel, "a RegressorModel")
    instance("data", data, Dataset, "a Dataset")
    log = _pieces(data)
    signals.check_samples(log, needs_even=True)
    tried = _grid(log)
    at = _rows(log, tried[0])
    tau = _low_passed_torques(log, min(2.0 * tried[-1], 0.45 * log.rate))
    poses = log.q.shape[1] != log.nv
    sources = [s for s in (True, False) if (log.v is not None if s else not poses)]
    found: dict[bool, list[_Trial]] = {}
    for measured in sources:
        source = log if measured else derive(log, v=None)
        found[measured] = [_trial(model, source, float(f), at, tau) for f in tried]
    least = {s: min(t.error for t in trials) for s, trials in found.items()}
    best = min(least, key=lambda s: least[s] * (1.0 if s else 1.0 + PREFERENCE))
    errors = np.array([t.error for t in found[best]])
    k, bound = _chosen(errors)
    cutoff = float(np.sqrt(tried[k[0]] * tried[k[-1]]))
    x = found[best][round(0.5 * (k[0] + k[-1]))].x
    torque_cutoff = _coherent(model, log if best else derive(log, v=None), x, cutoff, float(tried[0]))
    return Cutoffs(cutoff, torque_cutoff, best, tried, errors, bound)


def _pieces(data: Dataset) -> Dataset:
    """Six pieces, evenly spread, of a log of more than SAMPLES samples."""
    if len(data) <= SAMPLES:
        return data
    number = 6
    phase = np.arange(len(data)) * number / len(data) % 1.0
    return data.select(phase < SAMPLES / len(data))


def _grid(log: Dataset) -> np.ndarray:
    """Cut-offs [Hz] from the lowest that the log's length allows to a fifth of its rate."""
    lengths = np.array([s.stop - s.start for s in log.stretches()]) / log.rate
    typical = float(np.sort(lengths)[np.searchsorted(np.cumsum(np.sort(lengths)), 0.25 * lengths.sum())])
    low, high = max(LOWEST, 6.0 / typical), min(0.2 * log.rate, HIGHEST)
    if low >= 0.7 * high:
        raise TooShort(
            f"{log.label}: {typical:.3g} s at {log.rate:.4g} Hz without a hole are too short to choose a cut-off from"
        )
    return np.geomspace(low, high, 1 + int(np.ceil(PER_OCTAVE * np.log2(high / low))))


def _rows(log: Dataset, lowest: float) -> np.ndarray:
    """Numbers of the samples that are compared: at least a period of the lowest cut-off inside their stretch."""
    keep, margin = np.zeros(len(log), bool), int(log.rate / lowest)
    for s in log.stretches():
        keep[s.start + margin : s.stop - margin] = True
    at = np.flatnonzero(keep & log.used.any(axis=1))
    return at[:: max(1, len(at) // ROWS)]


def _low_passed_torques(log: Dataset, cutoff: float) -> np.ndarray:
    return np.concatenate([filters.low_pass(log.tau[s], log.rate, cutoff) for s in log.stretches()])


@dataclass(frozen=True)
class _Trial:
    error: float
    x: np.ndarray


def _trial(model: RegressorModel, log: Dataset, cutoff: float, at: np.ndarray, tau: np.ndarray) -> _Trial:
    """Error of the prediction of each block from the others, and the parameters that all of them give."""
    q, v, a = (x[at] for x in signals.low_passed_motion(log, cutoff))
    target, mask = tau[at] - a * model.known_armature, log.used[at]
    blocks = [_compressed(model, (q[s], v[s], a[s]), target[s], mask[s]) for s in _blocks(len(at))]
    return _Trial(*prediction_error(model, blocks))


def _blocks(n: int) -> list[slice]:
    edges = np.linspace(0, n, BLOCKS + 1).astype(int)
    return [slice(int(i), int(j)) for i, j in pairwise(edges)]


def _compressed(model: RegressorModel, motion: Sequence[np.ndarray], tau: np.ndarray, mask: np.ndarray) -> Compressed:
    factors = Factors(model)
    factors.add(model.blocks(*motion), tau, mask)
    return factors.result()


def _chosen(errors: np.ndarray) -> tuple[np.ndarray, str | None]:
    """(numbers of the cut-offs around the best that are as good, which end of the range the best is at or None)."""
    best = int(errors.argmin())
    good = errors <= (1.0 + FLAT) * errors[best]
    first = best - int(np.argmin(np.append(good[best::-1], False))) + 1
    last = best + int(np.argmin(np.append(good[best:], False))) - 1
    bound = None
    if best == 0 and errors[1] > (1.0 + STEEP) * errors[0]:
        bound = "lowest"
    if best == len(errors) - 1 and errors[-2] > (1.0 + STEEP) * errors[-1]:
        bound = "highest"
    return np.arange(first, last + 1), bound


def _coherent(model: RegressorModel, log: Dataset, x: np.ndarray, cutoff: float, lowest: float) -> float:
    """The frequency [Hz], at most `cutoff`, up to which more of the torques' power is predicted than left."""
    from scipy import signal

    motion = signals.low_passed_motion(log, cutoff)
    step = max(1, int(log.rate / (6.0 * cutoff)))
    tau, rate = _low_passed_torques(log, min(0.4 * log.rate / step, 0.45 * log.rate)), log.rate / step
    spectra = []
    for s in log.stretches():
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
