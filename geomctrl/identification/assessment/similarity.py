"""Measure how far the motion of a test is from the training motion, so that a test is really on unseen motion.

Rows are points z = (q, v, a), every coordinate divided by its standard deviation over the training rows. The distance
of two rows is |z - z'| / sqrt(number of coordinates); unrelated rows are about 1.4 apart. A test row is seen if a
training row lies within NEAR_DISTANCE of it. It is retraced if the two motions are also still together after they have
moved by DISTANCE_GONE: crossing a path is not repeating it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset

NEAR_DISTANCE = 0.1
DISTANCE_GONE = 0.7
MAX_TRAINING_ROWS, MAX_TEST_ROWS = 6000, 800  # rows that are compared
MIN_TIME_SHARE = 0.05  # of the log's length: training rows nearer in time than this are trivially similar
MAX_RETRACED_SHARE = 0.3  # share of retraced rows above which a test is doubted


@dataclass(frozen=True)
class Similarity:
    """distance: median distance of test rows from the nearest training row; own: the same for training rows at other
    times; seen, retraced: shares of test rows; lag [s]: median time of test rows after the rows that they retrace.
    """

    distance: float
    own: float
    seen: float
    retraced: float
    lag: float

    def __str__(self) -> str:
        return (
            f"test samples are {self.distance:.2g} standard deviations of (q, v, a) from the nearest training sample"
            f" (median; training samples from each other at other times {self.own:.2g}); {100.0 * self.retraced:.0f} %"
            " repeat the training motion"
        )

    def findings(self) -> list[Finding]:
        if self.retraced < MAX_RETRACED_SHARE:
            return []
        seen = f"{100.0 * self.retraced:.0f} % of the test samples repeat training motion"
        seen += f", {self.lag:.4g} s earlier" if self.lag > 0.0 else ""
        advice = (
            "The error on them is a training error: give the period (identify: --period), or test on another motion"
        )
        return [Finding("unseen", seen, advice)]


def compare(training: Dataset, test: Dataset) -> Similarity:
    """Compare two filtered logs of the same robot."""
    from scipy.spatial import KDTree

    moving = [np.flatnonzero(d.used.any(axis=1)) for d in (training, test)]
    rows, tests = (m if len(m) else np.arange(len(d)) for m, d in zip(moving, (training, test)))
    rows = rows[:: max(1, -(-len(rows) // MAX_TRAINING_ROWS))]
    pick = tests[:: max(1, -(-len(tests) // MAX_TEST_ROWS))]
    z, y = _points(training)[rows], _points(test)[pick]
    scale = z.std(axis=0)
    moves = scale > 1e-9 * np.maximum(np.abs(z).max(axis=0), 1e-300)
    scale = np.where(moves, scale, np.inf)
    scale *= np.sqrt(max(1, int(np.isfinite(scale).sum())))
    z, y, s, t = z / scale, y / scale, training.t[rows], test.t[pick]
    apart, nearest_rows = (np.asarray(x) for x in KDTree(z).query(y))
    seen = apart < NEAR_DISTANCE
    again = _retraced(seen, (t, y), (s, z), nearest_rows) if min(len(s), len(t)) > 2 else np.zeros(len(t), bool)
    lag = float(np.median((t - s[nearest_rows])[again])) if again.any() else 0.0
    return Similarity(float(np.median(apart)), _own(z, s), float(seen.mean()), float(again.mean()), lag)


def _points(data: Dataset) -> np.ndarray:
    assert data.v is not None
    assert data.a is not None
    return np.hstack((data.q, data.v, data.a))


def _own(z: np.ndarray, t: np.ndarray) -> float:
    """Median distance of some rows from the nearest at another time."""
    from scipy.spatial.distance import cdist

    some = np.linspace(0, len(z) - 1, min(len(z), 300)).astype(int)
    squares = cdist(z[some], z, "sqeuclidean")
    squares[np.abs(t[some, None] - t) < MIN_TIME_SHARE * (t[-1] - t[0])] = np.inf
    least = squares.min(axis=1)
    return float(np.sqrt(np.median(least[np.isfinite(least)]))) if np.isfinite(least).any() else 0.0


def _retraced(
    seen: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
    training: tuple[np.ndarray, np.ndarray],
    nearest_rows: np.ndarray,
) -> np.ndarray:
    """Which of the seen samples stay near the same training motion before or after, while it moves by DISTANCE_GONE."""
    (t, y), (s, z) = test, training
    ahead = _median_travel_time(s, z)
    out = np.zeros(len(seen), bool)
    for h in (ahead, -ahead):
        k, there = _at_times(t, t + h), _at_times(s, s[nearest_rows] + h)
        inside = seen & (k >= 0) & (there >= 0)
        out[inside] |= np.linalg.norm(y[k[inside]] - z[there[inside]], axis=1) < 2.0 * NEAR_DISTANCE
    return out


def _median_travel_time(t: np.ndarray, z: np.ndarray) -> float:
    """Median time [s] in which rows move by DISTANCE_GONE."""
    step = 1
    while step < len(z) // 4:
        if np.median(np.linalg.norm(z[step:] - z[:-step], axis=1)) > DISTANCE_GONE:
            break
        step += max(1, step // 4)
    return float(np.median(t[step:] - t[:-step]))


def _at_times(t: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Numbers of the samples nearest in time; -1 if none is within a step."""
    nearest = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
    nearest -= wanted - t[nearest - 1] < t[nearest] - wanted
    return np.where(np.abs(t[nearest] - wanted) <= np.median(np.diff(t)), nearest, -1)
