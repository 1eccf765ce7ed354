"""`SampleRow`: the numbers of a sample of a closed loop as one row, to compare compiled code with Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from geomctrl.mechanism.configuration import random_configuration
from geomctrl.tracing.untraceable import UntraceableError

from .law_trace import OF_STATE
from .traced_loop import TracedLoop

Place = tuple[tuple[str, str], tuple[int, ...], int, int]  # kind and name, shape, and where its numbers are
ROW_ONLY_COLUMNS = ("tau", "signal", "applied", "desired")  # columns that depend only on the state of their own row


class SampleRow:
    """The numbers of a sample as one row, with their names: rates, command, measurements, memory of monitors."""

    def __init__(self, traced: TracedLoop, loop: Any, watchers: int):
        n, dim = loop.plant.robot.nv, len(loop.rates)
        parts = [0, n, 2 * n, 2 * n + loop.z_group.dim, dim - 1, dim]
        held = [(c.kind, c.name, c.shape) for c in traced.held]
        columns = [(c.kind, c.name, c.shape) for c in traced.columns]
        memory = [(*place.key, place.shape or ()) for place in traced.memory]
        self.keys = [("rates", ""), *((kind, name) for kind, name, _ in (*held, *columns, *memory))]
        self.shapes = [(dim,), *(shape for _, _, shape in (*held, *columns, *memory))]
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes]).tolist()
        self.first, self.total = [0, *ends[:-1]], ends[-1]
        places = [*zip(self.keys, self.shapes, self.first, ends)]
        self.places, of_memory = places[: len(places) - len(memory)], places[len(places) - len(memory) :]
        self.memory = ends[-1] - sum(place.size for place in traced.memory)  # where the memory of watchers begins
        self.signals = {name for kind, name, _ in (*held, *columns) if kind == "signal"}
        split = sorted({*parts, *self.first} - {self.total})
        self.starts = np.array([k for k, b in zip(split, [*split[1:], self.total]) if b > k])
        self.dim = dim
        self.own_places = [x for x in self.places if x[0][0] not in ("monitor", "watched")]
        self.own_keys = [key for key, *_ in self.own_places]
        self.own = self.own_places[-1][3]  # where monitors and measures begin, and then their memory
        self._positions: dict[tuple[bool, ...], tuple[np.ndarray, np.ndarray]] = {}
        kept = [(key[0], a, b) for key, _, a, b in self.own_places if key[0] in (*ROW_ONLY_COLUMNS, *OF_STATE)]
        self._stored = np.array([k for _, a, b in kept for k in range(a, b)], int)
        self._of_law = np.array([kind != "desired" for kind, a, b in kept for k in range(a, b)], bool)
        written = {k for _, k in traced.equations.remembered}
        named = [
            (x.watcher, (x.name, place, not written.isdisjoint(range(x.first, x.first + x.size))))
            for x, place in zip(traced.memory, of_memory)
        ]
        # of each watcher, the attributes that may change, their places, and whether compiled code changes them
        self.changing = [[entry for k, entry in named if k == watcher] for watcher in range(watchers)]
        self._drawn: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def drawn(self, number: int, loop: Any) -> tuple[np.ndarray, np.ndarray]:
        """A random configuration and normal numbers for state `number`, the same for all loops with this trace."""
        if number not in self._drawn:
            rng = np.random.default_rng(number)
            configuration = random_configuration(loop.plant.robot, rng)
            self._drawn[number] = configuration, rng.normal(size=max(len(loop.y), loop.group.dim))
        return self._drawn[number]

    def positions_of(self, watching: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray]:
        """For samples one after the other, with monitors and measures or without: where their arrays begin, and where
        each has the numbers of `insert_stored` (samples, numbers).
        """
        positions = self._positions.get(watching)
        if positions is None:
            firsts = np.cumsum([0, *(self.total if with_all else self.own for with_all in watching[:-1])])
            parts = [self.starts if with_all else self.starts[self.starts < self.own] for with_all in watching]
            starts = np.concatenate([part + first for part, first in zip(parts, firsts)])
            positions = self._positions[watching] = starts, firsts[:, None] + self._stored
        return positions

    def flat(
        self,
        sample: dict[tuple[str, str], Any],
        remembered: list[tuple[Place, Any]],
        where: Callable[[], str],
        memory: np.ndarray | None,
        out: np.ndarray,
    ) -> np.ndarray:
        """The numbers of a sample in Python; without those of monitors and measures if they are not compared.

        remembered: new memory of monitors and measures. memory: that before the sample; None if they are not compared.
        out: where they are written. Raises UntraceableError if shapes differ.
        """
        places, keys = self.own_places, self.own_keys
        if memory is not None:
            out[self.memory :] = memory[: self.total - self.memory]
            places, keys = self.places, self.keys
        for (key, shape, first, last), x in chain(zip(places, map(sample.get, keys)), remembered):
            if type(x) is np.ndarray and x.shape == shape:
                out[first:last] = x if x.ndim == 1 else x.ravel()
            elif type(x) is float and not shape:
                out[first] = x
            elif x is not None and np.shape(x) == shape:
                out[first:last] = np.ravel(x)
            else:
                raise UntraceableError(f"{where()}: compiled, {' '.join(key).strip()} has another shape than in Python")
        return out

    def insert_stored(
        self, expected: np.ndarray, compiled: np.ndarray, watching: tuple[bool, ...], stored: np.ndarray, asked: Any
    ) -> None:
        """Insert into compiled samples those numbers of stored rows that differ more from the expected ones.

        expected, compiled, watching: of the samples, as for `positions_of`. asked: whether the law was called for a
        row's command.
        """
        _, positions = self.positions_of(watching)
        now, rows = compiled[positions], stored[:, self._stored - self.dim]
        if (now == rows).all():
            return
        of_python = expected[positions]
        farther = self.differences(of_python, rows)[0] > self.differences(of_python, now)[0]
        chosen = farther & (np.reshape(asked, (-1, 1)) | ~self._of_law)
        compiled[positions] = np.where(chosen, rows, now)

    def differences(self, expected: np.ndarray, compiled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """|expected - compiled|, 0 if both are nan; |expected|, 0 if it is not finite. For samples or rows of them."""
        apart, size = np.abs(expected - compiled), np.abs(expected)
        if not np.isfinite(apart).all():
            apart[(expected == compiled) | (np.isnan(expected) & np.isnan(compiled))] = 0.0
            apart[np.isnan(apart)] = np.inf
            size[~np.isfinite(size)] = 0.0
        return apart, size

    def key(self, entry: int) -> tuple[str, str]:
        """Kind and name of the quantity that contains number `entry`."""
        return self.keys[max(k for k, first in enumerate(self.first) if first <= entry)]
