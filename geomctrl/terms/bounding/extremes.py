"""The other side of a bound: the most extreme value found, by sampling and local search from the best samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from geomctrl.mechanism import configuration
from geomctrl.mechanism.mechanism import Mechanism

from .domain import Domain
from .quantities import Measure
from .uncertainty import Bodies

SAMPLES, STARTS, STEPS, ROUNDS = 200, 4, 60, 6


class Extreme(NamedTuple):
    """f(A(q)), the configuration q (nq,) where it was found, and the robot with the parameters that it was found
    for."""

    value: float
    q: np.ndarray
    robot: Mechanism


def extreme(robot: Mechanism, bodies: Bodies, domain: Domain, measure: Measure) -> Extreme:
    """The largest f(A(q)) found, over configurations and the parameters' intervals. Seeded."""
    nominal = robot._with_parameters(bodies.nominal)
    q = domain.sample(np.random.default_rng(0), SAMPLES)
    values = measure.value(nominal, q)
    starts = [Extreme(float(values[k]), q[k], nominal) for k in np.argsort(values)[-STARTS:]]
    best = max((_climbed(x, domain, measure) for x in starts), key=lambda x: x.value)
    for _ in range(0 if bodies.certain else ROUNDS):
        corner = _corner(best, bodies, measure)
        corner = _climbed(best._replace(robot=corner, value=_value(measure, corner, best.q)), domain, measure)
        if corner.value <= best.value:
            break
        best = corner
    return best


def _value(measure: Measure, robot: Mechanism, q: np.ndarray) -> float:
    return float(measure.value(robot, q[None])[0])


def _corner(at: Extreme, bodies: Bodies, measure: Measure) -> Mechanism:
    """The corner of the parameters' intervals where <G, A(q)>, which is linear in them, is largest."""
    A = measure.array(at.robot, at.q[None])
    G = measure.support(A)[1] * measure.sign
    slopes = np.zeros(bodies.nominal.shape)
    for place in zip(*np.nonzero(bodies.deviation)):
        unit = np.zeros(bodies.nominal.shape)
        unit[place] = 1.0
        slopes[place] = np.vdot(G, measure.array(at.robot._with_parameters(unit), at.q[None]))
    return at.robot._with_parameters(bodies.nominal + np.sign(slopes) * bodies.deviation)


def _climbed(start: Extreme, domain: Domain, measure: Measure) -> Extreme:
    """The best on the way of local searches from there: of f itself, or of <G, A(q)> where f is dear."""
    best, robot = start, start.robot

    def near(q: np.ndarray) -> Callable[[np.ndarray], float]:
        A = measure.array(robot, q[None])
        if A.ndim < 4:
            return lambda x: _value(measure, robot, x)
        G = measure.support(A)[1]
        return lambda x: float(np.vdot(G, measure.array(robot, x[None])))

    for _ in range(ROUNDS):
        q = _searched(robot, domain, near(best.q), best.q)
        value = _value(measure, robot, q)
        if value <= best.value + 1e-12 * abs(best.value):
            break
        best = best._replace(value=value, q=q)
    return best


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
