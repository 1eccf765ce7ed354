"""Noise that is a function of (seed, stream, sample, channel): the same whoever asks, in whatever order.

A counter of four words goes through a generalised Feistel network (Zheng, Matsumoto, Imai 1989; in the use as Philox
is by Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") and becomes uniform numbers, which Box and
Muller make normal. The words have 24 bits and a round takes the middle of a square: exact in doubles, with nothing but
arithmetic and `floor`, which numpy and traced code do alike. Philox's own products, with sums in the place of its
exclusive ors, would be linear but for carries: their noise is correlated.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from geomctrl.arguments import count

ROUNDS = 16
WORD, HALF = 2.0**24, 2.0**12
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
WEYL = 0x9E3779, 0xBB67AE  # the golden ratio, the square root of three less one


def round_keys(seed: int, stream: str) -> np.ndarray:
    """(ROUNDS, 2) whole numbers: the keys of a stream of noise. seed: a whole number from 0 on."""
    x = count("seed", seed) * GOLDEN + zlib.crc32(stream.encode()) * 0xD1B54A32D192ED03
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # the end of splitmix64
        x %= 2**64
        x = (x ^ x >> shift) * multiplier
    start = x & 0xFFFFFF, x >> 24 & 0xFFFFFF
    return np.array([[(a + k * w) % 2**24 for a, w in zip(start, WEYL)] for k in range(ROUNDS)], float)


def normals(keys: np.ndarray, sample: Any, n: int) -> np.ndarray:
    """(..., n) independent standard normal numbers of samples (...,), whole numbers from 0 on, or symbols."""
    pairs = np.arange((n + 1) // 2, dtype=float)
    c0 = np.asarray(sample)[..., None] + 0.0 * pairs
    high = np.floor(c0 / WORD)
    c0, c1, c2, c3 = c0 - WORD * high, high, pairs + 0.0 * c0, 0.0 * c0
    for k0, k1 in keys:
        c0, c1, c2, c3 = _wrapped(c1 + _middle(c0 + k0)), c2, _wrapped(c3 + _middle(c2 + k1)), c0
    radius = np.sqrt(-2.0 * np.log((c0 + (c1 + 0.5) / WORD) / WORD))
    angle = (2.0 * np.pi) * ((c2 + c3 / WORD) / WORD)
    both = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1)
    return both.reshape(*both.shape[:-2], 2 * len(pairs))[..., :n]


def _middle(x: Any) -> Any:
    """The middle word of the square of a word."""
    x = _wrapped(x)
    square = x * x
    return np.floor(square / HALF) - WORD * np.floor(square / (HALF * WORD))


def _wrapped(x: Any) -> Any:
    return x - WORD * np.floor(x / WORD)
