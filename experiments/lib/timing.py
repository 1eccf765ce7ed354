"""Time functions alternately and print their ratios as a table, for the benchmarks."""

from __future__ import annotations

import time

import numpy as np


def best_of(functions: dict, budget: float) -> dict:
    """Seconds per call of each function, the best of rounds in which they take turns; `budget` seconds in all."""
    counts, best = {}, {}
    for name, f in functions.items():
        f()
        start = time.perf_counter()
        f()
        once = max(time.perf_counter() - start, 1e-7)
        counts[name], best[name] = max(1, int(2e-3 / once)), np.inf
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        for name, f in functions.items():
            n = counts[name]
            start = time.perf_counter()
            for _ in range(n):
                f()
            best[name] = min(best[name], (time.perf_counter() - start) / n)
    return best


def table(title: str, rows: list[tuple[str, float, dict[str, float]]]) -> None:
    print(f"\n{title}")
    for label, ours, peers in rows:
        ratios = "   ".join(f"{name} {x * 1e6:8.2f} us, ratio {ours / x:5.2f}" for name, x in peers.items())
        print(f"  {label:34s} {ours * 1e6:9.2f} us   {ratios}")
