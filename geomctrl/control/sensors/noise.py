"""Noise that is a function of (seed, stream, sample, channel): the same whoever asks, in whatever order.

A counter goes through ten rounds of a cipher in the manner of Philox (Salmon et al. 2011, "Parallel random numbers: as
easy as 1, 2, 3") and becomes uniform numbers, which Box and Muller make normal. The words have 24 bits, so that
products are exact in doubles, and keys are added where Philox takes the exclusive or: nothing but arithmetic and
`floor`, which numpy and traced code do alike.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from geomctrl.arguments import count

ROUNDS = 10
WORD = 2.0**24
MULTIPLIERS = 0xD2511F, 0xCD9E8D  # odd, as of Philox 4x32
WEYL = 0x9E3779, 0xBB67AE  # the golden ratio, the square root of three less one


def round_keys(seed: int, stream: str) -> np.ndarray:
    """(ROUNDS, 2) whole numbers: the keys of a stream of noise. seed: from 0 on, 48 bits of it."""
    seed = count("seed", seed, 0)
    words = np.array([seed, zlib.crc32(stream.encode())], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(29)
    start = (words & np.uint64(0xFFFFFF)).astype(np.int64) + ((words >> np.uint64(24)) & np.uint64(0xFFFFFF)).astype(
        np.int64
    )[::-1]
    return np.array([(start + k * np.array(WEYL)) % int(WORD) for k in range(ROUNDS)], float)


def normals(keys: np.ndarray, sample: Any, n: int) -> np.ndarray:
    """(..., n) independent standard normal numbers of samples (...,), whole numbers from 0 on, or symbols."""
    pairs = np.arange((n + 1) // 2, dtype=float)
    c0 = np.asarray(sample)[..., None] + 0.0 * pairs
    high = np.floor(c0 / WORD)
    c0, c1, c2, c3 = c0 - WORD * high, high, pairs + 0.0 * c0, 0.0 * c0
    for k0, k1 in keys:
        high0, low0 = _product(MULTIPLIERS[0], c0)
        high1, low1 = _product(MULTIPLIERS[1], c2)
        c0, c1, c2, c3 = _wrapped(high1 + c1 + k0), low1, _wrapped(high0 + c3 + k1), low0
    radius = np.sqrt(-2.0 * np.log((c0 + (c1 + 0.5) / WORD) / WORD))
    angle = (2.0 * np.pi) * ((c2 + c3 / WORD) / WORD)
    both = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1)
    return both.reshape(*both.shape[:-2], 2 * len(pairs))[..., :n]


def _product(a: int, x: Any) -> tuple[Any, Any]:
    """The upper and the lower word of a x."""
    p = float(a) * x
    high = np.floor(p / WORD)
    return high, p - WORD * high


def _wrapped(x: Any) -> Any:
    return x - WORD * np.floor(x / WORD)
