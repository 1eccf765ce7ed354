"""A recorded function as an array of operations, in the form that `kernels.taylor_models` interprets.

Row z of `rows` is (operation, operand, operand, further row); of a product, the last is its sign if that is known,
otherwise 0. Operations that the interpreter does not have are composed of others: abs, min and max are choices, tan is
a quotient, a whole power a product, hypot a root. An elementary function refers to the row of its derivative, which may
follow it: its coefficient k needs coefficients of the derivative below k only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from geomctrl.tracing.symbols import Graph
from geomctrl.tracing.untraceable import UntraceableError

CONST, LOAD, ADD, SUB, NEG, MUL, DIV, WHERE, LT, LE, EQ, AND, NOT = range(13)
SIN, COS, EXP, LOG, SQRT, TANH, ASIN, ACOS, ATAN = range(13, 22)
PLAIN = {
    "add": ADD,
    "sub": SUB,
    "neg": NEG,
    "where": WHERE,
    "lt": LT,
    "le": LE,
    "eq": EQ,
    "and": AND,
    "not": NOT,
}
ELEMENTARY = {"exp": EXP, "log": LOG, "sqrt": SQRT, "tanh": TANH, "asin": ASIN, "acos": ACOS, "atan": ATAN}
UNUSED = -1  # operation of a row that other rows fill
LARGEST_POWER = 8

Input = tuple[int, int]  # (array, index) of a load


class OperationRows:
    """The operations that compute `rates`, the derivatives of the states, and the `further` expressions.

    states: the inputs that the states are. constants: values of the other inputs. Raises UntraceableError for an
    operation without a Taylor series here.
    """

    def __init__(
        self, graph: Graph, states: Sequence[Input], rates: Sequence[Any], constants: Mapping[Input, float],
        further: Collection[Any] = (),
    ):  # fmt: skip
        self._rows: list[list[int]] = []
        self._constants: list[float] = []
        self._place: dict[int, int] = {}
        self._sines: dict[int, int] = {}
        self._multiples: dict[int, tuple[int, int]] = {}  # row: (row whose multiple it is, sign of the factor)
        state_of = {key: k for k, key in enumerate(states)}
        ends = [graph.operand(x) for x in (*rates, *further)]
        for index in graph.needed(ends):
            op, *rest = graph.nodes[index]
            if op == "const":
                self._place[index] = self._constant(rest[0])
            elif op == "load" and tuple(rest) in state_of:
                self._place[index] = self._row(LOAD, state_of[tuple(rest)])
            elif op == "load":
                self._place[index] = self._constant(constants[tuple(rest)])
            else:
                self._place[index] = self._operation(op, *(self._place[x] for x in rest))
        places = [self._place[x] for x in ends]
        self.states = len(rates)
        self.rows, self.constants = np.array(self._rows, np.int64), np.array(self._constants)
        self.nonlinear = int(((self.rows[:, 0] == WHERE) | (self.rows[:, 0] >= SIN)).sum()) if self._rows else 0
        self.rates = np.array(places[: self.states], np.int64)
        self.further = np.array(places[self.states :], np.int64)

    def _row(self, op: int, *operands: int, value: float = 0.0) -> int:
        self._rows.append([op, *operands, *[0] * (3 - len(operands))])
        self._constants.append(value)
        return len(self._rows) - 1

    def _constant(self, x: Any) -> int:
        return self._row(CONST, value=np.nan if x == "nan" else float(x))

    def _operation(self, op: str, *args: int) -> int:
        if op == "mul":
            return self._product(*args)
        if op in PLAIN:
            z = self._row(PLAIN[op], *args)
            if op == "neg":
                self._note_multiple(z, args[0], -1.0)
            return z
        if op == "div":
            reciprocal, _ = self._row(UNUSED), self._row(UNUSED)
            z = self._row(DIV, *args, reciprocal)
            if self._rows[args[1]][0] == CONST:
                self._note_multiple(z, args[0], self._constants[args[1]])
            return z
        if op in ("sin", "cos"):
            return self._sine(args[0]) + (op == "cos")
        if op == "tan":
            sine = self._sine(args[0])
            return self._operation("div", sine, sine + 1)
        if op in ("min", "max"):  # Python's: min(a, b) is b if b < a, else a
            a, b = args
            condition = self._row(LT, b, a) if op == "min" else self._row(LT, a, b)
            return self._row(WHERE, condition, b, a)
        if op == "abs":
            negative = self._row(NEG, args[0])
            return self._row(WHERE, self._row(LT, args[0], negative), negative, args[0])
        if op == "hypot":
            return self._elementary("sqrt", self._row(ADD, *(self._product(x, x) for x in args)))
        if op == "atan2" and self._rows[args[1]][0] == CONST and self._constants[args[1]] > 0.0:
            return self._elementary("atan", self._operation("div", *args))
        if op == "pow" and self._rows[args[1]][0] == CONST:
            exponent = self._constants[args[1]]
            if exponent.is_integer() and abs(exponent) <= LARGEST_POWER:
                return self._power(args[0], int(exponent))
        if op in ELEMENTARY:
            return self._elementary(op, args[0])
        remedy = "; write the error of an angle as q - q_d, without wrapping it" if op == "atan2" else ""
        raise UntraceableError(f"the loop uses {op}, for which tubes have no Taylor series{remedy}")

    def _product(self, a: int, b: int) -> int:
        """The row of a b, with the sign of the factor if it is a multiple of a square, otherwise 0."""
        (x, one), (y, two) = (self._multiples.get(k, (k, 1)) for k in (a, b))
        z = self._row(MUL, a, b, one * two if x == y else 0)
        for factor, other in ((a, b), (b, a)):
            if self._rows[factor][0] == CONST:
                self._note_multiple(z, other, self._constants[factor])
        return z

    def _note_multiple(self, z: int, a: int, factor: float) -> None:
        base, sign = self._multiples.get(a, (a, 1))
        if np.isfinite(factor) and factor != 0.0:
            self._multiples[z] = base, sign if factor > 0.0 else -sign

    def _sine(self, a: int) -> int:
        """The row of sin a; the next one is cos a."""
        if a not in self._sines:
            sine = self._row(SIN, a, len(self._rows) + 1)
            cosine = self._row(COS, a, sine + 2)
            self._row(NEG, sine)
            self._sines[a] = cosine - 1
        return self._sines[a]

    def _power(self, a: int, n: int) -> int:
        """The row of a^n, a product of squares; a^0 is undefined where a is."""
        if n == 0:
            return self._row(ADD, self._product(a, self._constant(0.0)), self._constant(1.0))
        if n < 0:
            return self._power(self._operation("div", self._constant(1.0), a), -n)
        half = self._power(a, n // 2) if n > 1 else a
        square = self._product(half, half) if n > 1 else a
        return self._product(square, a) if n > 1 and n % 2 else square

    def _elementary(self, op: str, a: int) -> int:
        """A function, and the rows of its derivative after it."""
        z = self._row(ELEMENTARY[op], a)
        one = self._constant(1.0)
        if op == "exp":
            derivative = z
        elif op == "log":
            derivative = self._operation("div", one, a)
        elif op == "sqrt":
            derivative = self._operation("div", self._constant(0.5), z)
        else:
            square = self._product(z, z) if op == "tanh" else self._product(a, a)
            derivative = self._row(ADD if op == "atan" else SUB, one, square)
        if op == "atan":
            derivative = self._operation("div", one, derivative)
        if op in ("asin", "acos"):
            sign = self._constant(1.0 if op == "asin" else -1.0)
            derivative = self._operation("div", sign, self._elementary("sqrt", derivative))
        self._rows[z][2] = derivative
        return z
