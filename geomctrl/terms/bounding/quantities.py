"""The quantities of `bounds`, their domains of configurations and inertial parameters, and searches for extreme values.

A bounded quantity is a convex function f of arrays A(q) that are linear in the inertial parameters. f(A) is the largest
<G, A> over a set of arrays G. `support` returns it with its G, so that <G, A(q')> at another q', or for other bodies,
does not exceed f there. Sampling and local search find the most extreme values, which limit the bounds from the other
side.

Inertial parameters may be intervals. A body's pseudo-inertia P (4x4) is linear in its ten parameters, P = sum_p pi_p
E_p, and the kinetic energy is linear and increasing in P. Let |E| = (E^2)^(1/2) >= +-E, with lengths in units of the
body's radius of gyration about its nominal centre of mass. Every P in the intervals pi_p +- d_p then lies between plus
and minus the heavier body's P_nominal + sum_p d_p |E_p|, and differs from the nominal one by at most the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly, number, pair
from geomctrl.errors import ArgumentError
from geomctrl.kernels.curvature import christoffel_symbols
from geomctrl.mechanism import configuration, inertia
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms import derivatives, dynamics
from geomctrl.terms.batches import over_states


@dataclass(frozen=True)
class Domain:
    """Ranges of the coordinates: lower, upper (nv,).

    They are infinite for coordinates without a range and for joints with several degrees of freedom.
    """

    robot: Mechanism
    lower: np.ndarray
    upper: np.ndarray

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) (nv,) of a finite box that represents all configurations of the domain.

        A joint that rotates without a range, or by more than a turn, has -pi to pi. A first joint that slides has 0.
        """
        low, high = self.lower.copy(), self.upper.copy()
        for joint, s in zip(self.robot.joints, self.robot.v_slices):
            if joint.dof > 1:
                continue
            around = joint.kind == "revolute" and not high[s] - low[s] < 2.0 * np.pi
            if around or not np.isfinite([low[s], high[s]]).all():
                reach = np.pi if joint.is_rotational.any() else 0.0
                low[s], high[s] = -reach, reach
        return low, high

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random configurations (count, nq)."""
        out = np.array([configuration.random_configuration(self.robot, rng) for _ in range(count)])
        low, high = self.sides
        for joint, s, k in zip(self.robot.joints, self.robot.q_slices, self.robot.v_slices):
            if joint.dof == 1:
                out[:, s] = rng.uniform(low[k], high[k], (count, 1))
        return out

    def displacements(self, q: np.ndarray) -> list[tuple[float, float]]:
        """Return the range of displacements of each coordinate from q (nq,) within the box.

        It is infinite for joints with several degrees of freedom.
        """
        low, high = self.sides
        out = []
        for joint, s, k in zip(self.robot.joints, self.robot.q_slices, self.robot.v_slices):
            if joint.dof == 1:
                out.append((float(low[k][0] - q[s][0]), float(high[k][0] - q[s][0])))
            else:
                out += [(-np.inf, np.inf)] * joint.dof
        return out


def domain_of(robot: Mechanism, box: tuple[ArrayLike, ArrayLike] | None) -> Domain:
    """Return the domain of the joint limits, or of the box (lower, upper), (nv,) each."""
    if box is None:
        return Domain(robot, np.array(robot.limits.lower), np.array(robot.limits.upper))
    ends = pair("box", box, f"(lower, upper), ({robot.nv},) each")
    lower, upper = (exactly(f"box: {x}", a, (robot.nv,), finite=False) for x, a in zip(("lower", "upper"), ends))
    for name, low, high in zip(robot.dof_names, lower, upper):
        if not low <= high or low == np.inf or high == -np.inf:
            raise ArgumentError(f"box: expected lower <= upper, got [{low:.6g}, {high:.6g}] for joint {name!r}")
    for joint, s in zip(robot.joints, robot.v_slices):
        if joint.dof > 1 and np.isfinite([lower[s], upper[s]]).any():
            raise ArgumentError(
                f"box: joint {joint.name!r} is {joint.kind}, whose pose has no ranges: expected -inf and inf, got"
                f" {lower[s].tolist()} and {upper[s].tolist()}"
            )
    return Domain(robot, lower, upper)


SAMPLES, STARTS, STEPS, ROUNDS = 200, 4, 60, 6


class Extreme(NamedTuple):
    """A value of f(A(q)), its configuration q (nq,), and the robot with its parameters."""

    value: float
    q: np.ndarray
    robot: Mechanism


def extreme(robot: Mechanism, bodies: Bodies, domain: Domain, measure: Measure) -> Extreme:
    """Search for the largest f(A(q)) over configurations and intervals of parameters. The search is seeded."""
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


def _corner(extreme: Extreme, bodies: Bodies, measure: Measure) -> Mechanism:
    """Return the robot at the corner of the parameters' intervals where <G, A(q)>, linear in them, is largest."""
    A = measure.array(extreme.robot, extreme.q[None])
    G = measure.support(A)[1] * measure.sign
    slopes = np.zeros(bodies.nominal.shape)
    for place in zip(*np.nonzero(bodies.deviation)):
        unit = np.zeros(bodies.nominal.shape)
        unit[place] = 1.0
        slopes[place] = np.vdot(G, measure.array(extreme.robot._with_parameters(unit), extreme.q[None]))
    return extreme.robot._with_parameters(bodies.nominal + np.sign(slopes) * bodies.deviation)


def _climbed(start: Extreme, domain: Domain, measure: Measure) -> Extreme:
    """Return the best value of local searches from `start`, of f itself, or of <G, A(q)> where f is expensive."""
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
    """Return the configuration with the largest value in a quasi-Newton search from q."""
    import scipy.optimize

    best = [value(q), q]

    def cost(x: np.ndarray) -> float:
        there = configuration.integrate(robot, q, x)
        candidate = value(there)
        if candidate > best[0]:
            best[:] = candidate, there
        return -candidate

    options = {"maxiter": STEPS, "maxfun": STEPS * (robot.nv + 1)}
    start = np.zeros(robot.nv)
    scipy.optimize.minimize(cost, start, method="L-BFGS-B", bounds=domain.displacements(q), options=options)
    return best[1]


SWEEPS = 40  # of the alternating search for a tensor's norm


class Measure(NamedTuple):
    """array(robot, q (batch, nq)) -> A (batch, ...); support(A) -> f(A) (batch,) and G; the constant is sign f."""

    array: Callable[[Mechanism, np.ndarray], np.ndarray]
    support: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    sign: float = 1.0

    def value(self, robot: Mechanism, q: np.ndarray) -> np.ndarray:
        """Return f(A(q)) (batch,)."""
        return self.support(self.array(robot, q))[0]


def measures(form: dynamics.Form) -> dict[str, Measure]:
    """Return the measures by the names of the constants."""
    return {
        "m1": Measure(dynamics.mass_matrix, lambda A: _eigenvalue(-A), -1.0),
        "m2": Measure(dynamics.mass_matrix, _eigenvalue),
        "k_C": Measure(lambda robot, q: coriolis_tensor(robot, q, form), trilinear_norm),
        "k_g": Measure(gravity_derivative, _spectral_norm),
        "g": Measure(dynamics.gravity_force, _length),
    }


def coriolis_tensor(robot: Mechanism, q: np.ndarray, form: dynamics.Form) -> np.ndarray:
    """Return T (batch, nv, nv, nv) with C(q, v)_kj = sum_i T_ijk v_i."""
    if form == "christoffel":
        return over_states(robot, christoffel_symbols, q=q)
    n = robot.nv
    rates = np.tile(np.eye(n), (len(q), 1))
    C = dynamics.coriolis_matrix(robot, np.repeat(q, n, axis=0), rates, form)
    return C.reshape(len(q), n, n, n).swapaxes(-1, -2)


def gravity_derivative(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    """Return dg/dq (batch, nv, nv)."""
    rest = np.zeros((len(q), robot.nv))
    return derivatives.inverse_dynamics_derivatives(robot, q, rest, rest).dq


def _eigenvalue(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of symmetric matrices A, and G."""
    values, U = np.linalg.eigh(A)
    u = U[..., -1]
    return values[:, -1], u[:, :, None] * u[:, None, :]


def _spectral_norm(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    u, s, vt = np.linalg.svd(A)
    return s[:, 0], u[:, :, :1] * vt[:, :1, :]


def _length(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.linalg.norm(A, axis=1)
    return lengths, A / np.where(lengths > 0.0, lengths, 1.0)[:, None]


def trilinear_norm(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (T(x, y, z), x y z) for unit vectors that nearly maximise it, T (batch, n, n, n).

    The value does not exceed the norm. The vectors are optimised in turn, beginning with the first singular vectors of
    an unfolding.
    """
    n = T.shape[-1]
    best, where = np.full(len(T), -1.0), np.zeros(T.shape)
    U = np.linalg.svd(T.reshape(len(T), n, n * n), full_matrices=False)[0]
    for c in range(min(n, 3)):
        x, value = U[:, :, c], np.zeros(len(T))
        for _ in range(SWEEPS):
            u, s, vt = np.linalg.svd(np.einsum("bijk,bi->bjk", T, x))
            y, z, before, value = u[:, :, 0], vt[:, 0], value, s[:, 0]
            better = value > best
            best[better] = value[better]
            where[better] = np.einsum("bi,bj,bk->bijk", x[better], y[better], z[better])
            if (value - before <= 1e-9 * value).all():
                break
            x = np.einsum("bijk,bj,bk->bi", T, y, z)
            length = np.linalg.norm(x, axis=1, keepdims=True)
            x = x / np.where(length > 0.0, length, 1.0)
    return best, where


@dataclass(frozen=True)
class Bodies:
    """Inertial parameters (nbodies, 10): nominal, of the heavier bodies, and half the width of the intervals."""

    nominal: np.ndarray
    heavier: np.ndarray
    deviation: np.ndarray

    @property
    def certain(self) -> bool:
        return not self.deviation.any()


def bodies_of(robot: Mechanism, parameters: float | tuple[ArrayLike, ArrayLike] | None) -> Bodies:
    """Return the robot's bodies with parameters in intervals: None, a relative error, or (lower, upper)."""
    nominal, deviation = _interval(robot, parameters)
    # for thin rods and point masses P >= 0 holds only up to rounding
    lacking = np.maximum(-2.0 * np.linalg.eigvalsh(inertia.pseudo(nominal))[:, 0], 0.0)
    heavier = nominal + inertia.from_pseudo(lacking[:, None, None] * np.eye(4))
    if deviation.any():
        heavier = heavier + np.array([_majorant(pi, d) for pi, d in zip(nominal, deviation)])
    return Bodies(nominal, heavier, deviation)


def _interval(robot: Mechanism, parameters) -> tuple[np.ndarray, np.ndarray]:
    shape, pi = robot.parameters.shape, np.array(robot.parameters)
    if parameters is None:
        return pi, np.zeros(shape)
    if isinstance(parameters, (tuple, list)):
        ends = pair("parameters", parameters, "(lower, upper)")
        lower, upper = (exactly(f"parameters: {x}", a, shape) for x, a in zip(("lower", "upper"), ends))
        if (lower > upper).any():
            body, p = np.argwhere(lower > upper)[0].tolist()
            raise ArgumentError(
                f"parameters: expected lower <= upper, got {lower[body, p]:.6g} > {upper[body, p]:.6g} for parameter"
                f" {p} of body {robot.body_names[body]!r}"
            )
        return 0.5 * (lower + upper), 0.5 * (upper - lower)
    error = number(
        "parameters", parameters, "a relative error from 0 to below 1, or (lower, upper)", lambda x: 0.0 <= x < 1.0
    )
    return pi, error * np.abs(pi)


def _majorant(pi: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the parameters of sum_p d_p |E_p|."""
    center, radius = _measure(pi)
    to_own = np.eye(4)  # coordinates x -> (x - center) / radius
    to_own[:3] /= radius
    to_own[:3, 3] = -center / radius
    back = np.linalg.inv(to_own)
    total = np.zeros((4, 4))
    for d, E in zip(deviation, inertia.pseudo(np.eye(10))):
        eigenvalues, U = np.linalg.eigh(to_own @ E @ to_own.T)
        total += d * (U * np.abs(eigenvalues)) @ U.T
    return inertia.from_pseudo(back @ total @ back.T)


def _measure(pi: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a body's centre of mass and radius of gyration, or the origin without mass and 1 m for a zero radius."""
    if pi[0] <= 0.0:
        return np.zeros(3), 1.0
    gyration = np.sqrt(max(np.trace(inertia.com_tensor(pi)), 0.0) / (2.0 * pi[0]))
    return inertia.com(pi), float(gyration) or 1.0
