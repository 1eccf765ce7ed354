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
noise of unknown size; so units do not matter, nor joints that no cut-off helps.

What predicts best has the best motion f*; parameters may be as good with more of it. So those fitted at higher cut-offs
predict the blocks left out from the motion at f*, and the highest is taken that is no worse than f* by more than a
standard error, that of the blocks' shares of the difference (the one-standard-error rule; Breiman, Friedman, Olshen and
Stone 1984, section 3.4.3), or by no more than FLAT. The highest, because it takes least motion away, and fewest rows at
ends and holes, where filters settle.

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
from geomctrl.identification.errors import DataError
from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset, filters, signals
from geomctrl.identification.logs.samples import derive
from geomctrl.identification.model.compressed import Compressed, Factors
from geomctrl.identification.model.regressor_model import RegressorModel

from .block_validation import Prediction, predicted

LOWEST, HIGHEST = 0.5, 100.0  # Hz: what robot arms do lies between
PER_OCTAVE = 2.0  # cut-offs tried
BLOCKS = 6  # of the cross-validation
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
        best, last = int(self.errors.argmin()), len(self.tried) - 1
        errors = [
            f"{100.0 * self.errors[k]:.2f} % at {self.tried[k]:.3g} Hz"
            for k in sorted({0, best, last}, key=lambda k: self.errors[k])
        ]
        return (
            f"positions at {self.cutoff:.3g} Hz, the highest whose parameters predict as well as the best: from"
            f" {source}, torques of blocks left out are predicted to {', '.join(errors)} (mean of joints); torques at"
            f" {self.torque_cutoff:.3g} Hz, above which the model explains less than half of them"
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
    """The cut-offs for a log that is not filtered yet. Raises DataError for logs too short to choose from, or without
    torques.
    """
    instance("model", model, RegressorModel, "a RegressorModel")
    instance("data", data, Dataset, "a Dataset")
    log = _pieces(data)
    signals.check_samples(log, needs_even=True)
    tried = _grid(log)
    indices = _rows(log, tried[0])
    tau = _low_passed_torques(log, min(2.0 * tried[-1], 0.45 * log.rate))
    poses = log.q.shape[1] != log.nv
    sources = [s for s in (True, False) if (log.v is not None if s else not poses)]
    trials: dict[bool, list[_Trial]] = {}
    for measured in sources:
        source = log if measured else derive(log, v=None)
        trials[measured] = [_trial(model, source, float(f), indices, tau) for f in tried]
    best = sources[0]  # measured velocities, where positions are not better by more than chance
    if len(sources) == 2 and _best(trials[True]).clearly_worse_than(_best(trials[False])):
        best = False
    errors = np.array([t.own.error for t in trials[best]])
    k = _highest_as_good(model, trials[best])
    cutoff, x = float(tried[k]), trials[best][k].own.x
    torque_cutoff = _coherent(model, log if best else derive(log, v=None), x, cutoff, float(tried[0]))
    return Cutoffs(cutoff, torque_cutoff, best, tried, errors, _bound(errors))


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
    indices = np.flatnonzero(keep & log.used.any(axis=1))
    if not len(indices):
        raise DataError(f"{log.label}: no usable torque sample is left (all are masked)")
    if not log.tau[indices][log.used[indices]].any():
        raise DataError(f"{log.label}: tau: every usable torque is zero: there is nothing to explain")
    return indices[:: max(1, len(indices) // ROWS)]


def _low_passed_torques(log: Dataset, cutoff: float) -> np.ndarray:
    return np.concatenate([filters.low_pass(log.tau[s], log.rate, cutoff) for s in log.stretches()])


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
    factors.add(model.blocks(*motion), tau, mask)
    return factors.result()


def _best(trials: Sequence[_Trial]) -> Prediction:
    return min((t.own for t in trials), key=lambda p: p.error)


def _highest_as_good(model: RegressorModel, trials: Sequence[_Trial]) -> int:
    """Number of the highest cut-off whose parameters predict as well as the best's, from the best's motion."""
    best = min(range(len(trials)), key=lambda k: trials[k].own.error)
    for k in range(best + 1, len(trials)):
        if predicted(model, trials[k].blocks, trials[best].blocks).clearly_worse_than(trials[best].own):
            return k - 1
    return len(trials) - 1


def _bound(errors: np.ndarray) -> str | None:
    """Which end of the range that was searched the least error is at, and clearly, or None."""
    best = int(errors.argmin())
    if best == 0 and errors[1] > (1.0 + STEEP) * errors[0]:
        return "lowest"
    if best == len(errors) - 1 and errors[-2] > (1.0 + STEEP) * errors[-1]:
        return "highest"
    return None


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
