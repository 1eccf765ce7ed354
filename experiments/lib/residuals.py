"""A table of a paper's numbered results with their residuals, for the scripts in experiments/papers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

import geomctrl as gc
from geomctrl import testing

ROUND_OFF = 1e-12  # smaller errors of a row count as none
STEP = 1e-30  # of the complex step: f(q + i STEP x) = f(q) + i STEP df(q) x, without cancellation
ONE_DOF = ("revolute", "prismatic", "helical")


class Residual(NamedTuple):
    """`equation` as numbered in the paper, with * where it is corrected as in docs/reference/formulas.md.

    `error` is relative.
    `of` names the functions that the row checks, as "module.function" or "Robot.method", separated by commas. If
    one of them is wrong, the row must show it: tests/experiments/test_paper_scripts.py breaks each of them and
    tests this.
    """

    equation: str
    statement: str
    of: str
    error: float

    @property
    def ok(self) -> bool:
        return self.error < ROUND_OFF


Section = Callable[[int], list[Residual]]  # rows of one case, by its seed


class Case(NamedTuple):
    """A robot and a motion through a state."""

    robot: gc.Robot
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    a_rate: np.ndarray


def case(seed: int, bodies: int = 6, chain: bool = True) -> Case:
    """A random robot of joints with one degree of freedom, and a random motion."""
    rng = np.random.default_rng(seed)
    kinds = ["revolute", *rng.choice(ONE_DOF, size=bodies - 1, p=(0.6, 0.2, 0.2))]
    parents = range(-1, bodies - 1) if chain else [-1, *(int(rng.integers(0, i)) for i in range(1, bodies))]
    robot = testing.random_robot(rng, [str(k) for k in kinds], list(parents))
    return Case(robot, robot.random_configuration(rng), *rng.normal(size=(3, robot.nv)))


def relative(actual, expected, scale: float = 0.0) -> float:
    """max |actual - expected| over max |expected| or `scale`, the larger."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        raise ValueError(f"shapes {actual.shape} and {expected.shape}")
    return float(np.abs(actual - expected).max() / max(np.abs(expected).max(), scale, 1e-300))


def gradient(function: Callable, q: np.ndarray) -> np.ndarray:
    """Gradient df/dq_k (..., nv) by the complex step, of a function that takes complex q."""
    return np.stack([np.imag(function(q + 1j * STEP * e)) / STEP for e in np.eye(len(q))], -1)


def along(function: Callable, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """d/dt f(q + v t) at t = 0, by the complex step."""
    return np.imag(function(q + 1j * STEP * v)) / STEP


def worst(tables: Iterable[list[Residual]]) -> list[Residual]:
    """Return for each row the largest residual of several cases; nan counts as the largest."""
    return [row[0]._replace(error=float(np.max([r.error for r in row]))) for row in zip(*tables, strict=True)]


def tabulate(sections: Iterable[Section], seeds: Iterable[int]) -> list[Residual]:
    """Return the rows of all sections, each with its largest residual over the seeds."""
    seeds = tuple(seeds)
    return [row for section in sections for row in worst(section(seed) for seed in seeds)]


def show(title: str, rows: list[Residual]) -> None:
    width = max(len(r.equation) for r in rows)
    wide = max(len(r.statement) for r in rows)
    print(f"\n{title}\n{'equation':{width}s}  {'what it says':{wide}s}  residual  of")
    for r in rows:
        print(f"{r.equation:{width}s}  {r.statement:{wide}s}  {r.error:.1e}   {r.of}")
