"""Second-order bounds of saved code on a box, with python-flint.

For x in a box with the centre c, f(x) = f(c) + g(c) . d + 1/2 d . H d with d = x - c and H at a point between c and x.
Values, gradients and second derivatives are propagated through the code, at c and as balls on the box.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .saved_code import Code


class Jet(NamedTuple):
    """A number and its gradient (n, 1) at the centre; the number, its gradient and second derivatives on the box.

    The derivatives are None if the number does not depend on the coordinates.
    """

    value: Any
    slope: Any
    hull: Any
    slopes: Any
    second: Any


class Expansions:
    """The outputs of a code about the centre of a box [lo, hi]; values: enclosures of all nodes on the box."""

    def __init__(self, code: Code, values: list[Any], lo: np.ndarray, hi: np.ndarray):
        flint = code.arithmetic.flint
        self.code, self.values, self.arb, self.matrix = code, values, flint.arb, flint.arb_mat
        self.centre = 0.5 * lo + 0.5 * hi
        ends = zip(lo.tolist(), hi.tolist(), self.centre.tolist())
        self.radius = [_largest(self.arb(b) - self.arb(c), self.arb(c) - self.arb(a)) for a, b, c in ends]
        self.jets: list[Jet | None] = []
        for index, (op, *rest) in enumerate(code.nodes):
            self.jets.append(self._jet(index, op, rest))

    def _jet(self, index: int, op: str, rest: list[Any]) -> Jet | None:
        """The expansion of a node; None where it is unknown."""
        ends = self.values[index]
        if ends is None or isinstance(ends, (bool, str)):
            return None
        hull = ends[0].union(ends[1])
        if op == "load" and tuple(rest) in self.code.column:
            n, k = self.code.n, self.code.column[tuple(rest)]
            unit = self.matrix(n, 1, [float(i == k) for i in range(n)])
            return Jet(self.arb(self.centre[k]), unit, hull, unit, self.matrix(n, n))
        if op in ("load", "const"):
            return Jet(hull, None, hull, None, None)
        if op == "where":
            return (
                self.jets[rest[1] if self.values[rest[0]] is True else rest[2]] if self._is_decided(rest[0]) else None
            )
        jets = [self.jets[k] for k in rest]
        if any(jet is None for jet in jets):
            return None
        if op in ("add", "sub", "mul", "div"):
            return self._binary(op, hull, *jets)
        if op == "abs":
            a, b = self.values[rest[0]]
            return jets[0] if a >= 0 else self._scaled(-1, jets[0]) if b <= 0 else None
        if op in ("min", "max"):
            (a, b), (c, d) = (self.values[k] for k in rest)
            return jets[op == "max"] if b <= c else jets[op == "min"] if d <= a else None
        rule = RULES.get(op)
        return None if rule is None else self._composed(rule(jets[0].value), rule(jets[0].hull), hull, jets[0])

    def _is_decided(self, condition: int) -> bool:
        return isinstance(self.values[condition], bool)

    def _binary(self, op: str, hull: Any, a: Any, b: Any) -> Jet | None:
        if op == "sub":
            op, b = "add", self._scaled(-1, b)
        if op == "div":
            op, b = "mul", self._composed(_reciprocal(b.value), _reciprocal(b.hull), 1 / b.hull, b)
        if op == "add":
            value = a.value + b.value
            if a.slope is None or b.slope is None:
                c = b if a.slope is None else a
                return Jet(value, c.slope, hull, c.slopes, c.second)
            return Jet(value, a.slope + b.slope, hull, a.slopes + b.slopes, a.second + b.second)
        if a.slope is None or b.slope is None:
            c, factor = (b, a.hull) if a.slope is None else (a, b.hull)
            return self._scaled(factor, c)._replace(hull=hull)
        cross = a.slopes * b.slopes.transpose()
        second = a.second * b.hull + b.second * a.hull + cross + cross.transpose()
        slopes = a.slopes * b.hull + b.slopes * a.hull
        return Jet(a.value * b.value, a.slope * b.value + b.slope * a.value, hull, slopes, second)

    def _scaled(self, factor: Any, a: Any) -> Jet:
        if a.slope is None:
            return Jet(a.value * factor, None, a.hull * factor, None, None)
        factor = self.arb(factor)
        return Jet(a.value * factor, a.slope * factor, a.hull * factor, a.slopes * factor, a.second * factor)

    def _composed(self, there: tuple, inside: tuple, hull: Any, a: Any) -> Jet:
        """f(a) from (f, f', f'') at the centre and on the box."""
        if a.slope is None:
            return Jet(there[0], None, hull, None, None)
        second = a.second * inside[1] + (a.slopes * a.slopes.transpose()) * inside[2]
        return Jet(there[0], a.slope * there[1], hull, a.slopes * inside[1], second)

    def upper(self, terms: list[tuple[int, float]]) -> tuple[Any, np.ndarray] | None:
        """(Upper bound of a sum of (output, factor), the part of each coordinate in its nonlinear terms), or None."""
        n, r = self.code.n, self.radius
        total, slope, second = self.arb(0), self.matrix(n, 1), self.matrix(n, n)
        for output, factor in terms:
            jet = self.jets[output]
            if jet is None:
                return None
            total += jet.value * factor
            if jet.slope is not None:
                slope, second = slope + jet.slope * self.arb(factor), second + jet.second * self.arb(factor)
        if not all(x.is_finite() for x in second.entries()):
            return None
        parts = np.zeros(n)
        for i in range(n):
            total += abs(slope[i, 0]) * r[i]
            for j in range(i + 1):
                size = abs(second[i, j]) * r[i] * r[j]
                if i == j:
                    size = _largest(second[i, i].upper(), self.arb(0)) * r[i] * r[i] / 2
                total += size
                parts[[i, j]] += float(size.mid())
        return (total.upper(), parts) if total.is_finite() else None

    def slopes(self, output: int) -> np.ndarray | None:
        """The gradient at the centre times the half widths, in floating point."""
        jet = self.jets[output]
        if jet is None or jet.slope is None:
            return None
        return np.array([float(jet.slope[i, 0].mid()) * float(r.mid()) for i, r in enumerate(self.radius)])


def _largest(a: Any, b: Any) -> Any:
    a, b = a.upper(), b.upper()
    return a if a >= b else b


def _reciprocal(x: Any) -> tuple[Any, Any, Any]:
    y = 1 / x
    return y, -y * y, 2 * y * y * y


def _tanh(x: Any) -> tuple[Any, Any, Any]:
    y = x.tanh()
    return y, 1 - y * y, -2 * y * (1 - y * y)


def _sqrt(x: Any) -> tuple[Any, Any, Any]:
    y = x.sqrt()
    return y, 1 / (2 * y), -1 / (4 * y * x)


RULES: dict[str, Any] = {  # (f, f', f'')
    "neg": lambda x: (-x, x * 0 - 1, x * 0),
    "sin": lambda x: (x.sin(), x.cos(), -x.sin()),
    "cos": lambda x: (x.cos(), -x.sin(), -x.cos()),
    "exp": lambda x: (x.exp(), x.exp(), x.exp()),
    "log": lambda x: (x.log(), 1 / x, -1 / (x * x)),
    "sqrt": _sqrt,
    "tanh": _tanh,
}
