"""Candidates for a Lyapunov function: sums of polynomials and of the terms of mechanics, and a law that carries one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from geomctrl.control.compiled.proving import trace_closed_loop
from geomctrl.control.compiled.trace_parts import one_number
from geomctrl.control.contracts import Command, Lyapunov
from geomctrl.control.plant import Plant
from geomctrl.robot import Robot
from geomctrl.tracing.derivatives import loads, pullback, tangents
from geomctrl.tracing.proofs.interpreted import Program

KINETIC, POTENTIAL = "T", "U - U(q_d) - g(q_d) . e"


def terms_of(robot: Robot, e: Any, q: Any, v: Any, q_d: np.ndarray, degree: int, mechanical: bool) -> dict[str, Any]:
    """Terms by name, each zero with its gradient at e = v = 0.

    mechanical: T = 1/2 v . M v first, then e_j (M v)_i row by row, monomials of e, and the potential energy U less its
    tangent at q_d. Otherwise: monomials of e and v.
    """
    n = len(q_d)
    positions = {f"e{j}": e[j] for j in range(n)}
    if not mechanical:
        return _monomials({**positions, **{f"v{j}": v[j] for j in range(n)}}, degree)
    p = np.dot(robot.mass_matrix(q), v)
    terms: dict[str, Any] = {KINETIC: robot.kinetic_energy(q, v)}
    terms |= {f"e{j} p{i}": e[j] * p[i] for i in range(n) for j in range(n)}
    terms |= _monomials(positions, degree)
    if np.any(robot.gravity):
        U = robot.potential_energy(q) - robot.potential_energy(q_d) - np.dot(robot.gravity_force(q_d), e)
        terms[POTENTIAL] = U
    return terms


def _monomials(x: dict[str, Any], degree: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for d in range(2, degree + 1):
        for names in combinations_with_replacement(x, d):
            product = x[names[0]]
            for name in names[1:]:
                product = product * x[name]
            out[" ".join(names)] = product
    return out


class FoundLaw:
    """A law with a Lyapunov function: the law that was given, and V as a sum of terms.

    The promised bound on V' is zero. It holds from states with `in_domain`, where V <= level.
    """

    def __init__(
        self, law: Any, robot: Robot, q_d: np.ndarray, degree: int, mechanical: bool, coefficients: np.ndarray,
        level: float = np.inf,
    ):  # fmt: skip
        self.law, self.robot, self.q_d, self.degree, self.mechanical = law, robot, q_d, degree, mechanical
        self.coefficients, self.level = coefficients, level
        n = len(q_d)
        self.coupling = coefficients[1 : 1 + n * n].reshape(n, n) if mechanical else np.zeros((n, n))

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: None) -> Command:
        command = self.law(t, q, v, z)
        if not self.mechanical:
            return command
        w = v + np.dot(self.coupling, q - self.q_d)  # V = 1/2 w . M w + U(q): V' then needs no M^-1
        return command._replace(signals={**command.signals, "w": w})

    def value(self, q: np.ndarray, v: np.ndarray, robot: Robot) -> Any:
        """V at a state, for a true robot."""
        terms = terms_of(robot, q - self.q_d, q, v, self.q_d, self.degree, self.mechanical)
        total: Any = 0.0
        for coefficient, term in zip(self.coefficients, terms.values()):  # the potential energy may have none
            total = total + coefficient * term
        return total

    def lyapunov(self, t: float, q: np.ndarray, v: np.ndarray, z: None, plant: Plant) -> Lyapunov:
        return Lyapunov(self.value(q, v, plant.robot), 0.0)

    def in_domain(self, t: float, q: np.ndarray, v: np.ndarray) -> bool:
        """Whether V <= level for the model."""
        return bool(self.value(q, v, self.robot) <= self.level)


class CandidateLoop:
    """A closed loop at many states x = (q - q_d, v): its field, and the terms of V with their rates, compiled."""

    def __init__(self, law: Any, plant: Plant, q_d: np.ndarray, degree: int, mechanical: bool):
        self.law, self.plant, self.q_d, self.degree, self.mechanical = law, plant, q_d, degree, mechanical

        def extra(parts: Any, t: Any, q: Any, v: Any, z: Any, command: Any) -> dict[str, Any]:
            terms = terms_of(parts.plant.robot, q - q_d, q, v, q_d, degree, mechanical)
            return {name: one_number(x) for name, x in terms.items()}

        loop = self.loop = trace_closed_loop(plant, law, extra)
        self.n = 2 * len(q_d)
        self._field = loop.over(loop.field[: self.n])
        if POTENTIAL in loop.extra and self._is_weightless():
            del loop.extra[POTENTIAL]
        self.names, terms = list(loop.extra), list(loop.extra.values())
        self._terms = loop.over([*terms, *(loop.along(x) for x in terms)])

    def _is_weightless(self) -> bool:
        """Whether the law compensates gravity, at random states."""
        loop, sizes = self.loop, set(np.abs(self.plant.robot.gravity).tolist())
        numbers = np.where([abs(x) in sizes for x in loop.numbers.tolist()], 0.0, loop.numbers)
        x = np.random.default_rng(0).uniform(-1.0, 1.0, (8, self.n))
        weightless = replace(loop, numbers=numbers).over(loop.field[: self.n])
        return np.allclose(weightless(np.zeros(len(x)), self._states(x)), self.field(x), rtol=1e-9)

    def field(self, x: np.ndarray) -> np.ndarray:
        """x' (m, 2n)."""
        return self._field(np.zeros(len(x)), self._states(x))

    def terms(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The terms and their rates, (m, terms) each."""
        both = self._terms(np.zeros(len(x)), self._states(x))
        return both[:, : len(self.names)], both[:, len(self.names) :]

    def hessians(self) -> np.ndarray:
        """Second derivatives (terms, 2n, 2n) of the terms at x = 0."""
        graph, inputs = self.loop.graph, loads(self.loop.y.tolist()[: self.n])
        gradients = [pullback(graph, [x], [1.0], inputs) for x in self.loop.extra.values()]
        seconds = [y for gradient in gradients for k in inputs for y in tangents(graph, gradient, {k: 1.0})]
        values = self.loop.over(seconds)(np.zeros(1), self._states(np.zeros((1, self.n))))
        return values.reshape(len(self.names), self.n, self.n)

    def jacobian(self) -> tuple[np.ndarray, np.ndarray]:
        """Rigorous bounds of dx'/dx at x = 0; infinite where it is not shown to exist."""
        loop, (point,) = self.loop, self._states(np.zeros((1, self.n)))
        columns = [tangents(loop.graph, loop.field[: self.n], {k: 1.0}) for k in loads(loop.y.tolist()[: self.n])]
        program = Program(loop.graph, [y for column in columns for y in column], branches=True)
        keys = [tuple(loop.graph.nodes[k][1:]) for k in program.inputs]
        arrays = [loop.numbers, np.zeros(1), point]
        inputs = {k: (arrays[a][i], arrays[a][i]) for k, (a, i) in zip(program.inputs, keys)}
        low, high = (x.reshape(self.n, self.n).T for x in program.enclosed(inputs, 1))
        return low, high

    def found_law(self, coefficients: np.ndarray, level: float = np.inf) -> FoundLaw:
        """The law with V; V is scaled so that T has the coefficient 1."""
        scale = coefficients[0] if self.mechanical else 1.0
        return FoundLaw(
            self.law, self.plant.robot, self.q_d, self.degree, self.mechanical, coefficients / scale, level / scale
        )

    def _states(self, x: np.ndarray) -> np.ndarray:
        n = len(self.q_d)
        return np.hstack([self.q_d + x[:, :n], x[:, n:], np.zeros((len(x), 1))])


def unstable_direction(lower: np.ndarray, upper: np.ndarray) -> np.ndarray | None:
    """A direction along which motions leave x = 0, for x' = A x + o(x) with any A between bounds, or None.

    With A'P + P A > 0, x . P x grows, so motions with x . P x > 0 leave a neighbourhood (Chetaev).
    """
    from scipy.linalg import solve_continuous_lyapunov

    A, radius = 0.5 * (lower + upper), 0.5 * (upper - lower)
    if not (np.isfinite(A).all() and np.isfinite(radius).all()):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # near singular: the inequality below is what counts
        P = solve_continuous_lyapunov(A.T, np.eye(len(A)))
    P = 0.5 * (P + P.T)
    if not np.isfinite(P).all():
        return None
    growth = A.T @ P + P @ A
    error = 2.0 * np.linalg.norm(radius) * np.linalg.norm(P)
    error += ROUNDING * np.linalg.norm(A) * np.linalg.norm(P)
    values, vectors = np.linalg.eigh(P)
    is_growing = np.linalg.eigvalsh(0.5 * (growth + growth.T))[0] > error
    return vectors[:, -1] if is_growing and values[-1] > ROUNDING * np.linalg.norm(P) else None


ROUNDING = 1e-11  # relative bound of rounding in products and eigenvalues of matrices of some dozen rows


def simulated(
    field: Callable[[np.ndarray], np.ndarray], x: np.ndarray, half: np.ndarray, is_done: Callable, step: float,
    duration: float,
) -> np.ndarray:  # fmt: skip
    """Whether motions from x (m, 2n) reach states with `is_done` before they leave the box and before `duration`."""
    x, waiting, reached = x.copy(), np.arange(len(x)), np.zeros(len(x), bool)
    for _ in range(int(duration / step) + 1):
        done, inside = is_done(x), (np.abs(x) <= half).all(1)
        reached[waiting[done & inside]] = True
        x, waiting = x[inside & ~done], waiting[inside & ~done]
        if not len(x):
            break
        a = field(x)
        b = field(x + 0.5 * step * a)
        c = field(x + 0.5 * step * b)
        x = x + step / 6.0 * (a + 2.0 * b + 2.0 * c + field(x + step * c))
    return reached
