"""The other side of a bound: the most extreme value found, by sampling and local search from the best samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomctrl.mechanism import configuration
from geomctrl.mechanism.mechanism import Mechanism

from .domain import Domain
from .uncertainty import Bodies

STARTS, STEPS, ROUNDS, CORNERS = 4, 60, 6, 6


class Extreme(NamedTuple):
    """A value, the configuration q (nq,) where it was found, and the bodies' parameters (nbodies, 10)."""

    value: float
    q: np.ndarray
    parameters: np.ndarray


def robots_of(robot: Mechanism, bodies: Bodies, rng: np.random.Generator) -> list[Mechanism]:
    """The nominal robot, and where parameters are uncertain some at corners of their intervals."""
    if bodies.certain:
        return [robot._with_parameters(bodies.nominal)]
    signs = [np.zeros_like(bodies.nominal), *rng.choice([-1.0, 1.0], (CORNERS, *bodies.nominal.shape))]
    return [robot._with_parameters(bodies.nominal + s * bodies.deviation) for s in signs]


@dataclass(frozen=True)
class Sampled:
    """What is searched: sign * value(robot, q (batch, nq)) (batch,). frozen(robot, q (nq,)): the same near q as a
    function of q that is cheap, smooth, never above it and equal to it at q; None: value itself."""

    value: Callable[[Mechanism, np.ndarray], np.ndarray]
    sign: float = 1.0
    frozen: Callable[[Mechanism, np.ndarray], Callable[[np.ndarray], float]] | None = None


def extreme(
    robots: list[Mechanism], domain: Domain, sampled: Sampled, samples: int, rng: np.random.Generator
) -> Extreme:
    """The most extreme value found."""
    q = domain.sample(rng, samples)
    found = []
    for robot in robots:
        values = sampled.sign * sampled.value(robot, q)
        found += [(float(values[k]), k, robot) for k in np.argsort(values)[-STARTS:]]
    found.sort(key=lambda x: -x[0])
    best = Extreme(-np.inf, q[0], robots[0].parameters)
    for _, k, robot in found[:STARTS]:
        there, at = _climbed(robot, domain, sampled, q[k])
        if there > best.value:
            best = Extreme(there, at, robot.parameters)
    return best._replace(value=sampled.sign * best.value)


def _climbed(robot: Mechanism, domain: Domain, sampled: Sampled, q: np.ndarray) -> tuple[float, np.ndarray]:
    """The best value on the way of local searches from q, and where."""
    best = sampled.sign * float(sampled.value(robot, q[None])[0])
    for _ in range(1 if sampled.frozen is None else ROUNDS):
        near = sampled.frozen(robot, q) if sampled.frozen else lambda x: float(sampled.value(robot, x[None])[0])
        there = _searched(robot, domain, lambda x: sampled.sign * near(x), q)
        value = sampled.sign * float(sampled.value(robot, there[None])[0])
        if value <= best:
            break
        best, q = value, there
    return best, q


def _searched(robot: Mechanism, domain: Domain, value: Callable[[np.ndarray], float], q: np.ndarray) -> np.ndarray:
    """Where the value is largest on the way of a quasi-Newton search from q."""
    import scipy.optimize

    best = [value(q), q]

    def cost(x: np.ndarray) -> float:
        there = configuration.integrate(robot, q, x)
        found = value(there)
        if found > best[0]:
            best[:] = found, there
        return -found

    options = {"maxiter": STEPS, "maxfun": STEPS * (robot.nv + 1)}
    start = np.zeros(robot.nv)
    scipy.optimize.minimize(cost, start, method="L-BFGS-B", bounds=domain.displacements(q), options=options)
    return best[1]
