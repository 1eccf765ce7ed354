"""Forms of V' that are easy to bound, each proved to equal the derivative of V along the closed loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.control.compiled.proving import NUMBERS, TracedClosedLoop
from geomctrl.control.plant import Plant
from geomctrl.robot import Robot
from geomctrl.tracing.derivatives import loads, pullback, tangents
from geomctrl.tracing.proofs.identities import chance, degree_in, identical
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.symbols import Symbol, add, div, is_symbol, mul, neg, sub, unary
from geomctrl.tracing.untraceable import UntraceableError

from .gravity import without_gravity

ERRORS, INVERSE = 8, 10  # further arrays of the graph: parameter errors, rows of M^-1
NOT_REWRITTEN = "V' along the field, not rewritten"
LARGEST_LOSS = (0.5 * (5.0**0.5 - 1.0)) ** 2.5  # maximum of x - x^2 / sqrt(x^2 + 1)
SLIDING = "w = e' + Lambda e with constant Lambda, and V = 1/2 w . M w"
RIGHT_MODEL = "V' is the promised rate where the model is right"
LACKING = " but for the torques that it lacks, such as friction, whose power is added"


@dataclass(frozen=True)
class Lemma:
    """A statement used in a proof and proved separately: text, method, log10 of the probability of a mistake."""

    claim: str
    chance: float
    holds: Callable[[int], bool]  # tests it again with another seed

    def __str__(self) -> str:
        return (
            f"{self.claim} (identity modulo 2^521 - 1 at random points; mistaken with probability 1e{self.chance:.0f})"
        )


class Forms:
    """The search for the form of V' that is easiest to bound, among proved equivalents."""

    def __init__(
        self, loop: TracedClosedLoop, controller: Any, plant: Plant, p: list[int], others: np.ndarray, q_d: Any
    ):
        if loop.value is None:
            raise UntraceableError(f"{type(controller).__name__} has no lyapunov(t, q, v, z, plant) to certify")
        self.loop, self.graph, self.p = loop, loop.graph, p
        self.fixed = {self.graph.load(NUMBERS, k).index: x for k, x in enumerate(loop.numbers.tolist())}
        self.true = np.array([self.fixed.pop(node) for node in p])
        self.true[len(p) - len(others) :] = others
        fixed = {(NUMBERS, k): x for k, x in enumerate(loop.numbers.tolist())}
        # t is a free input too
        self.free = {key: x for key, x in fixed.items() if self.graph.load(*key).index not in set(p)}
        deviations = [self.graph.load(ERRORS, k) for k in range(len(p))]
        self.errors, self.deviations = loads(deviations), deviations
        robot = getattr(controller, "robot", None)
        self.models = [self.true]
        if isinstance(robot, Robot) and robot.parameters.shape == plant.robot.parameters.shape:
            self.models.insert(0, np.append(robot.parameters.ravel(), others))
        self.q, self.v, z = loop.split(loop.y)
        self.z = [] if z is None else z.tolist()
        self.weights = np.zeros((2, 0, 0))  # bounds of P if V = 1/2 w . M w + 1/2 z . P z
        self.q_d, self.others = np.asarray(q_d, float), len(others)
        self.w: list[Any] = []  # of V = 1/2 w . M w + U
        self.gain: np.ndarray | None = None  # Lambda if V = 1/2 w . M w with w = e' + Lambda e
        self.slope, self.gravity = loop.slope, plant.robot.gravity
        self.mass: list[Any] = []
        self.monotone: list[int] = []
        self.separable = False  # whether angles may become separate inputs: V contains no gravity potential

    def best(self, exact: bool, within: Any) -> tuple[str, list[Lemma], np.ndarray, Any, Any, Any]:
        """exact: whether the claim is of the plant's own parameters alone. within: intervals of all parameters."""
        self.within = within
        form: Any = None
        for attempt in (self.power, self.acceleration, *[self.rate_alone] * exact):
            form = attempt()
            if form is not None:
                break
        else:
            form = NOT_REWRITTEN, [], self.true, self.slope, self.loop.value, None
        return without_gravity(self, *form) if exact and form[0] != "the promised rate" else form

    def same(self, pairs: list[tuple[Any, Any]]) -> bool:
        return identical(self.graph, pairs, self.free)

    def lemma(self, claim: str, pairs: list[tuple[Any, Any]]) -> Lemma:
        return Lemma(claim, chance(self.graph, pairs), lambda seed: identical(self.graph, pairs, self.free, seed))

    def at_model(self, x: Any, model: np.ndarray) -> Any:
        """x with the true parameters replaced by those of the model."""
        return substituted(self.graph, [x], dict(zip(self.p, model.tolist())))[0]

    def deviation(self, x: Any) -> Any:
        """The change of x, affine in the parameters, due to their deviations."""
        return tangents(self.graph, [x], dict(zip(self.p, self.deviations)))[0]

    def along_model(self, x: Any, model: np.ndarray) -> Any:
        """The same with p - model instead of the deviations."""
        errors = [sub(Symbol(self.graph, k), m) for k, m in zip(self.p, model.tolist())]
        return tangents(self.graph, [x], dict(zip(self.p, errors)))[0]

    def affine(self, x: Any) -> bool:
        return degree_in(self.graph, x, set(self.p)) <= 1

    def about(self, x: Any, model: np.ndarray) -> Any:
        """x, affine in the parameters, as its value for the model plus the deviation."""
        return add(self.at_model(x, model), self.deviation(x)) if self.affine(x) else x

    def power(self) -> Any:
        v = loads(self.v.tolist())
        massless = dict.fromkeys([*self.p, *loads(self.loop.extra["armatures"])], 0.0)
        for parts in self.loop.extra["power"]:
            at_rest = dict(zip(v, substituted(self.graph, parts[0], dict.fromkeys(v, 0.0))))
            for new in (massless, at_rest):  # both leave U in V; the first is simpler if V contains no gravity
                form = self.energy_and_power(substituted(self.graph, [self.loop.value], new)[0], *parts)
                if form is not None:
                    self.separable = new is massless
                    return form
        return None

    def energy_and_power(self, U: Any, v_ref: list[Any], w: list[Any], force: list[Any], kinetic: Any) -> Any:
        """The power form for this U(q); None if V is not 1/2 w . M w + U, or if its rate is not the power."""
        V, v, net = self.loop.value, loads(self.v.tolist()), self.loop.extra["net"]
        rates = [1.0, *self.v.tolist(), *self.loop.field[2 * len(v) : 2 * len(v) + len(self.z)]]
        seeds = dict(zip([self.loop.t.index, *loads([*self.q.tolist(), *self.z])], rates, strict=True))
        U_rate = tangents(self.graph, [U], seeds)[0]

        def power(torque: list[Any]) -> Any:
            return add(dot(w, differences(torque, force)), U_rate)

        E = power(net)
        pairs, energy = [(self.slope, E)], [(V, add(kinetic, U))]
        if not (self.affine(E) and self.affine(energy[0][1]) and self.same(energy) and self.same(pairs)):
            return None
        at_rest = [(slope, 0.0) for x in (U, *v_ref) for slope in pullback(self.graph, [x], [1.0], v)]
        if not self.same(at_rest):  # U and v_ref depend on q alone
            return None
        lemmas = [
            self.lemma("V = 1/2 w . M w + U(q), w = v - v_ref(q), M the true mass matrix", energy),
            self.lemma("V' = w . (tau - M a_ref - C v_ref - g) + U': the true Mdot - 2C is skew", pairs),
        ]
        self.w = w
        lemmas += self.found_gain(v_ref, w, U)
        parts = [(power(torque), dot(w, rest)) for torque, rest in self.loop.extra["torque"]]
        form = self.adaptive(U_rate, w, parts, lemmas) or self.promised(E, parts, lemmas, "power, without M^-1")
        form, lemmas, model, decrease = form
        has_mass = degree_in(self.graph, U, set(self.p)) > 0  # else 1/2 w . M w and U have terms that cancel
        return form, lemmas, model, decrease, self.about(V if has_mass else energy[0][1], model), U

    def adaptive(self, U_rate: Any, w: list[Any], parts: list[tuple[Any, Any]], lemmas: list[Lemma]) -> Any:
        """The form for a law whose estimates z compensate the parameters: V' is the sum of the promised rate at z = 0,
        the rate of U(z) at w = 0, and the power of torques that the law does not estimate; or None."""
        rate = substituted(self.graph, [self.loop.rate], dict.fromkeys(loads(self.z), 0.0))[0]
        leak = substituted(self.graph, [U_rate], {x.index: 0.0 for x in w if is_symbol(x)})[0]
        model = self.models[0]
        for _, other in parts if self.z else ():  # a rounded P Gamma is not 1: V has to divide by Gamma
            pairs = [(self.slope, add(add(rate, leak), other))]
            if not degree_in(self.graph, rate, set(self.p)) and self.affine(leak) and self.same(pairs):
                lemmas = [
                    *lemmas,
                    self.lemma("V' is the promised rate at z = z_true, and U' at w = 0 in addition", pairs),
                ]
                decrease = add(add(rate, self.about(leak, model)), self.about(other, model))
                return "power, without M^-1; adaptation cancels the parameters", lemmas, model, decrease
        return None

    def found_gain(self, v_ref: list[Any], w: list[Any], U: Any) -> list[Lemma]:
        """Find the constant matrices of w = e' + Lambda e and U = 1/2 z . P z, positive definite."""
        q, pairs = loads(self.q.tolist()), [(U, 0.0)]
        if self.z and is_symbol(U):
            z = loads(self.z)
            gradient = pullback(self.graph, [U], [1.0], z)
            seconds = [x for k in z for x in tangents(self.graph, gradient, {k: 1.0})]
            if any(degree_in(self.graph, x, {*q, *z, *loads(self.v.tolist()), self.loop.t.index}) for x in seconds):
                return []
            rows = [seconds[i : i + len(z)] for i in range(0, len(seconds), len(z))]
            pairs = [(U, mul(dot(self.z, [dot(row, self.z) for row in rows]), 0.5))]
            fixed = {k: (x, x) for k, x in self.fixed.items()}
            P = np.stack([x.reshape(len(z), len(z)) for x in Program(self.graph, seconds).enclosed(fixed, 1)])
            if inverse_diagonal(*P) is None:
                return []
            self.weights = P
        if not self.same(pairs):
            return []
        columns = [tangents(self.graph, v_ref, {k: -1.0}) for k in q]
        if any(degree_in(self.graph, x, {*q, self.loop.t.index}) for column in columns for x in column):
            return []
        ends = [x for column in columns for x in column]
        gain = Program(self.graph, ends).values(self.fixed, 1)[0].reshape(len(q), len(q)).T
        for x, row in zip(v_ref, gain.tolist()):
            errors = [sub(y, origin) for y, origin in zip(self.q.tolist(), self.q_d.tolist())]
            pairs.append((x, dot(row, [neg(y) for y in errors])))
        pairs += [(x, sub(y, z)) for x, y, z in zip(w, self.v.tolist(), v_ref)]
        if not (np.isfinite(gain).all() and comparison(gain) is not None and self.same(pairs)):
            return []
        self.gain = gain
        claim = SLIDING + " + 1/2 z . P z" * bool(self.z)
        return [self.lemma(claim, pairs)]

    def corrected(self, own: Any, other: Any, model: np.ndarray) -> Any:
        """The bound of V' for a law with a correction - rho D g / sqrt(g . D g + eps^2) of its parameters; or None.

        With g = Y^T w, r^2 = g . D g and |D^-1/2 (p - model)| <= a <= rho the two terms of V' with parameters are
        at most a r - rho r^2 / sqrt(r^2 + eps^2) <= a eps max(x - x^2 / sqrt(x^2 + 1)). If a > rho, the remaining
        share 1 - rho / a of the error is bounded as for other laws.
        """
        rho, eps, D = self.loop.extra["correction"]
        p = self.p[: len(self.p) - self.others]
        if self.within is None or rho is None or eps is None or np.shape(D) != (len(p),):
            return None
        D = np.asarray(D, object).tolist()
        g = [neg(tangents(self.graph, [own], {k: 1.0})[0]) for k in p]
        square = dot(D, [mul(x, x) for x in g])
        gain = mul(rho, div(square, unary("sqrt", add(square, mul(eps, eps)))))
        pairs = [(self.slope, add(sub(add(self.loop.rate, self.along_model(own, model)), gain), other))]
        if not self.same(pairs):
            return None
        numbers = np.array([self.number(x) for x in (rho, eps, *D)])
        if not (numbers > 0.0).all():
            return None
        lo, hi = (np.asarray(x, float)[: len(p)] for x in self.within)
        off = np.maximum(hi - model[: len(p)], model[: len(p)] - lo) * (1.0 + 1e-12)
        a = float(np.sqrt((off**2 / numbers[2:]).sum())) * (1.0 + 1e-12)
        rest = max(1.0 - numbers[0] / max(a, 1e-300) * (1.0 - 1e-12), 0.0)
        loss = LARGEST_LOSS * min(a, numbers[0]) * numbers[1] * (1.0 + 1e-12)
        torques = dict(zip(self.p[len(p) :], self.deviations[len(p) :]))
        inertias = dict(zip(p, self.deviations))
        left = add(tangents(self.graph, [own], torques)[0], mul(rest, tangents(self.graph, [own], inertias)[0]))
        decrease = add(add(add(self.loop.rate, loss), left), self.about(other, model))
        return self.lemma(
            "V' is the promised rate - rho g . D g / sqrt(g . D g + eps^2) + g . (p_0 - p)", pairs
        ), decrease

    def number(self, x: Any) -> float:
        return self.fixed[x.index] if is_symbol(x) else float(x)

    def promised(self, E: Any, parts: list[tuple[Any, Any]], lemmas: list[Lemma], form: str) -> Any:
        """The form with the promised rate instead of V' for the exact model, and the power of other torques.

        parts: ways to divide E into the power of a law with its model, and that of torques that the model lacks.
        """
        rate = self.loop.rate
        for own, other in parts:
            for model in self.models:
                pairs = [(self.slope, add(add(rate, self.along_model(own, model)), other))]
                if degree_in(self.graph, rate, set(self.p)) or not self.affine(own):
                    continue
                if self.same(pairs):
                    lemmas = [*lemmas, self.lemma(RIGHT_MODEL + LACKING * is_symbol(other), pairs)]
                    return form, lemmas, model, add(add(rate, self.deviation(own)), self.about(other, model))
                correction = self.corrected(own, other, model)
                if correction is not None:
                    return form, [*lemmas, correction[0]], model, correction[1]
        return form, lemmas, self.true, self.about(E, self.true)

    def acceleration(self) -> Any:
        if self.loop.extra["acceleration"] is None:
            return None
        a, force = self.loop.extra["acceleration"]
        M, net = self.loop.extra["mass"], self.loop.extra["net"]
        q, v, rate = self.q.tolist(), self.v.tolist(), self.loop.rate
        slope_v = pullback(self.graph, [self.loop.value], [1.0], loads(v))
        seeds = dict(zip([self.loop.t.index, *loads(q), *loads(v)], [1.0, *v, *a]))
        nominal = tangents(self.graph, [self.loop.value], seeds)[0]
        rest = differences(net, force)
        for (torque, other), model in itertools.product(self.loop.extra["torque"], self.models):
            own = differences(torque, force)
            right = [(self.at_model(x, model), 0.0) for x in own] + [(nominal, rate)]
            right += [(add(x, y), z) for x, y, z in zip(torque, other, net)]
            if not (all(map(self.affine, [*own, *other])) and self.same(right)):
                continue
            pairs = [(self.slope, add(nominal, dot(slope_v, solved(M, rest))))]
            if not self.same(pairs):
                continue
            lemmas = [
                self.lemma("V' = V'(vdot = a) + dV/dv . M^-1 (tau - M a - C v - g) for all parameters", pairs),
                self.lemma(RIGHT_MODEL + LACKING * any(map(is_symbol, other)), right),
            ]
            lemmas += self.ends_suffice(M, rest)
            left = [add(self.deviation(x), self.about(y, model)) for x, y in zip(own, other)]
            n = len(v)
            self.mass = [self.about(x, model) for row in M for x in row]
            inverse = [[self.graph.load(INVERSE, n * i + j) for j in range(n)] for i in range(n)]
            decrease = add(rate, dot(slope_v, [dot(row, left) for row in inverse]))
            value, self.separable = self.about(self.loop.value, model), True
            return "acceleration, M^-1 with the error of the model only", lemmas, model, decrease, value, None
        return None

    def rate_alone(self) -> Any:
        """The form with the promised rate, for a V with numbers as parameters: valid for the plant's own ones only."""
        rate = self.at_model(self.loop.rate, self.true)
        pairs = [(self.at_model(self.slope, self.true), rate)]
        if not self.same(pairs):
            return None
        lemmas = [self.lemma("V' is the promised rate for the plant's own parameters", pairs)]
        return "the promised rate", lemmas, self.true, rate, self.loop.value, None

    def ends_suffice(self, M: Any, rest: Sequence[Any]) -> list[Lemma]:
        """Find the parameters p_k along which M and M a + C v + g change in one direction u of the joints only.

        With M + p_k m u u^T the rate g . M^-1 r is a quotient of functions affine in p_k and therefore monotone.
        """
        n, claims = len(rest), []
        if degree_in(self.graph, self.loop.value, set(self.p)):
            return []
        for k, node in enumerate(self.p):
            slopes = tangents(self.graph, [*(x for row in M for x in row), *rest], {node: 1.0})
            rows = [[*slopes[n * i : n * i + n], slopes[n * n + i]] for i in range(n)]
            pairs = [(x, 0.0) for x in minors(rows)]
            if self.same(pairs):
                self.monotone.append(k)
                claims += pairs
        return [self.lemma("V' is monotone in each parameter that acts in one direction of the joints", claims)]


def comparison(gain: np.ndarray) -> np.ndarray | None:
    """The matrix C with Lambda_ii on the diagonal and - |Lambda_ij| elsewhere; None unless it is an M-matrix."""
    C = np.diag(2.0 * np.abs(np.diag(gain))) - np.abs(gain)
    with suppress(np.linalg.LinAlgError):
        shape = np.linalg.solve(C, np.ones(len(C)))
        if (np.diag(gain) > 0.0).all() and (shape > 0.0).all() and (C @ shape > 0.5).all():
            return C
    return None


def inverse_diagonal(low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
    """Upper bounds of the diagonal of P^-1 for symmetric P between bounds; None unless P is positive definite."""
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    P = 0.25 * (low + high + (low + high).T)
    radius = np.maximum(high - P, P - low) + 1e-15 * len(P) * np.abs(P)
    with suppress(np.linalg.LinAlgError):
        W = np.linalg.inv(np.linalg.cholesky(P))
        error = np.abs(W @ P @ W.T - np.eye(len(P))) + np.abs(W) @ radius @ np.abs(W.T)
        r = float(error.sum(1).max(initial=0.0)) * (1.0 + 1e-12)
        if r < 1.0:  # no eigenvalue of W P W^T is below 1 - r
            return (W**2).sum(0) / (1.0 - r) * (1.0 + 1e-12)
    return None


def differences(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    return [sub(x, y) for x, y in zip(a, b, strict=True)]


def minors(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """All minors of two rows and two columns."""
    n, m = len(rows), len(rows[0])
    return [
        sub(mul(rows[i][a], rows[j][b]), mul(rows[i][b], rows[j][a]))
        for i in range(n) for j in range(i) for a in range(m) for b in range(a)
    ]  # fmt: skip


def solved(M: Sequence[Sequence[Any]], b: Sequence[Any]) -> list[Any]:
    """x of M x = b for symmetric M by a symbolic L D L^T factorisation."""
    n = len(b)
    L, D = [[0.0] * n for _ in range(n)], []
    for j in range(n):
        D.append(_less(M[j][j], [mul(mul(L[j][k], L[j][k]), D[k]) for k in range(j)]))
        for i in range(j + 1, n):
            L[i][j] = div(_less(M[i][j], [mul(mul(L[i][k], L[j][k]), D[k]) for k in range(j)]), D[j])
    y: list[Any] = []
    for i in range(n):
        y.append(_less(b[i], [mul(L[i][k], y[k]) for k in range(i)]))
    x: list[Any] = [0.0] * n
    for i in reversed(range(n)):
        x[i] = _less(div(y[i], D[i]), [mul(L[k][i], x[k]) for k in range(i + 1, n)])
    return x


def _less(a: Any, terms: Sequence[Any]) -> Any:
    for term in terms:
        a = sub(a, term)
    return a


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    total: Any = 0.0
    for x, y in zip(a, b, strict=True):
        total = add(total, mul(x, y))
    return total
