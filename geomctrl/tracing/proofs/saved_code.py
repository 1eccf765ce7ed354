"""The code of a saved claim, evaluated with python-flint: intervals (forward) and slopes (backward)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .ball_arithmetic import Arithmetic, Ends, continuous_angle

UNKNOWN, UNDEFINED = "unknown", "undefined"  # truth of a condition that is not constant on a box


class Code:
    """Code from its description by `certificates.saved_claim`. numbers: input array 0. bits: precision.

    Raises ValueError for an invalid description, ImportError without python-flint.
    """

    def __init__(self, said: dict[str, Any], numbers: np.ndarray, bits: int = 96):
        self.nodes, self.outputs, self.flag = said["nodes"], said["outputs"], said["flag"]
        self.column = {tuple(x): k for k, x in enumerate(said["coordinates"])}
        self.numbers, self.n = numbers, len(self.column)
        if self.n != len(said["coordinates"]):
            raise ValueError("a coordinate that is there twice")
        self.arithmetic = Arithmetic(bits)
        for index, node in enumerate(self.nodes):
            self._require_valid(index, *node)
        ends = self.outputs if self.flag is None else [*self.outputs, self.flag]
        if not (self.outputs and are_indices(ends, len(self.nodes))):
            raise ValueError(f"outputs, flag: expected indices of {len(self.nodes)} operations, got {ends!s:.40}")
        self.powers: dict[int, tuple[int, int]] = {}  # repeated products of a number with itself: base and exponent
        for index, (op, *rest) in enumerate(self.nodes):
            if op == "mul":
                (a, m), (b, n) = (self.powers.get(x, (x, 1)) for x in rest)
                if a == b:
                    self.powers[index] = a, m + n
        do = self.arithmetic.operations
        plain: dict[str, Any] = {op: do[op] for op in ("add", "sub", "mul")}
        self.steps: list[
            tuple[Any, Any]
        ] = [  # nodes, with a function instead of the name for operations on two intervals
            (op if index in self.powers else plain.get(op, op), rest) for index, (op, *rest) in enumerate(self.nodes)
        ]

    def _require_valid(self, index: int, op: str, *rest: Any) -> None:
        if op == "const":
            if not (isinstance(rest[0], bool) or rest[0] == "nan"):
                try:
                    float.fromhex(rest[0])
                except (TypeError, ValueError, OverflowError):
                    raise ValueError(f"operation {index}: expected a number, got {rest[0]!r:.30}") from None
        elif op == "load":
            if not (rest in self.column or (rest[:-1] == (0,) and are_indices(rest[1:], len(self.numbers)))):
                raise ValueError(f"operation {index}: no input {rest}")
        elif not (are_indices(rest, len(self.nodes)) and max(rest, default=0) < index):
            raise ValueError(f"operation {index} depends on a later one, or on none: {rest!s:.40}")

    def forward(self, box: Sequence[Ends]) -> tuple[list[Any], list[bool]]:
        """For every node on a box: its interval or truth, and whether it is continuous there."""
        values: list[Any] = []
        smooth: list[bool] = []
        for index, (op, rest) in enumerate(self.steps):
            if callable(op):  # nearly all nodes: operations on two intervals
                i, j = rest
                a, b = values[i], values[j]
                defined = a is not None and b is not None
                values.append(op(a, b) if defined else None)
                smooth.append(defined and smooth[i] and smooth[j])
                continue
            value, continuous = self._evaluated(index, op, rest, box, values, smooth)
            values.append(value)
            smooth.append(continuous)
        return values, smooth

    def _evaluated(self, index: int, op: str, rest: Any, box: Any, values: Any, smooth: Any) -> tuple[Any, bool]:
        if op == "load":
            return self._input(tuple(rest), box), True
        if op == "const":
            return rest[0] if isinstance(rest[0], bool) else self._constant(rest[0]), True
        args = [values[k] for k in rest]
        if op == "where":
            return self._branch(args, [smooth[k] for k in rest[1:]])
        continuous = all(smooth[k] for k in rest)
        if op in ("and", "not"):
            return _logic(op, args), continuous
        if None in args:
            return (UNDEFINED if op in ("lt", "le", "eq") else None), False
        if op in ("lt", "le", "eq"):
            return (op != "lt" if rest[0] == rest[1] else _compared(op, *args)), continuous
        if index in self.powers:
            base, n = self.powers[index]
            return self.arithmetic.power(values[base], n), continuous
        value = self.arithmetic.operations[op](*args)
        if op in ("floor", "rint"):
            return value, continuous and value is not None and bool(value[0] == value[1])
        if op in ("copysign", "pow", "fmod", "remainder"):
            return value, continuous and self._smooth(op, *args)
        return value, continuous and (op != "atan2" or continuous_angle(*args))

    def _smooth(self, op: str, a: Any, b: Any) -> bool:
        if op == "copysign":
            return bool(b[0] > 0 or b[1] < 0)
        if op == "pow":
            return bool(a[0] > 0) or bool(b[0] == b[1] and b[0].is_integer() and b[0] >= 1)
        ratio = self.arithmetic.quotient(a, b)
        whole = self.arithmetic.cut if op == "fmod" else self.arithmetic.nearest
        return ratio is not None and bool(whole(ratio[0]) == whole(ratio[1]))

    def _input(self, place: tuple[int, int], box: Sequence[Ends]) -> Ends:
        return box[self.column[place]] if place in self.column else self.arithmetic.point(float(self.numbers[place[1]]))

    def _constant(self, text: str) -> Ends:
        return None if text == "nan" else self.arithmetic.point(float.fromhex(text))

    def _branch(self, args: list[Any], smooth: list[bool]) -> tuple[Ends, bool]:
        condition, a, b = args
        if isinstance(condition, bool):
            return (a, smooth[0]) if condition else (b, smooth[1])
        if condition == UNDEFINED or a is None or b is None:
            return None, False
        return self.arithmetic.hull(*a, *b), False

    def at(self, x: Sequence[float]) -> list[Ends]:
        """The outputs at one point, None where they are undefined."""
        with self.arithmetic.precision():
            values = self.forward([self.arithmetic.point(float(y)) for y in x])[0]
        good = self.flag is None or values[self.flag] is True
        return [values[k] if good else None for k in self.outputs]

    def slopes(self, output: int, values: list[Any]) -> list[Ends]:
        """Derivatives of an output with respect to the coordinates on the box of `values` (chain rule)."""
        arithmetic, one = self.arithmetic, self.arithmetic.point(1.0)
        weight: dict[int, Any] = {output: one}
        slopes: list[Any] = [arithmetic.point(0.0)] * self.n
        for index in range(output, -1, -1):
            op, *rest = self.nodes[index]
            if index not in weight:
                continue
            w = weight.pop(index)
            if op == "load" and tuple(rest) in self.column:
                slopes[self.column[tuple(rest)]] = w
                continue
            for k, share in self._shares(index, op, rest, w, values):
                earlier = weight.get(k)
                weight[k] = share if k not in weight else _both(arithmetic.operations["add"], earlier, share)
        return slopes

    def _shares(self, index: int, op: str, rest: Any, w: Any, values: list[Any]) -> list[tuple[int, Any]]:
        """The contribution of a node to its operands."""
        product = self.arithmetic.product
        if index in self.powers:
            base, n = self.powers[index]
            slope = product(self.arithmetic.point(float(n)), self.arithmetic.power(values[base], n - 1))
            return [(base, _both(product, w, slope))]
        if op in ("load", "const"):
            return []
        if op == "where":
            return [(rest[1] if values[rest[0]] else rest[2], w)]
        args = [values[k] for k in rest]
        return [(k, _both(product, w, rule(values[index], *args))) for k, rule in zip(rest, self.rules[op])]

    @cached_property
    def rules(self) -> dict[str, tuple[Callable[..., Ends], ...]]:
        """The derivatives of y = op(a, b), by op."""
        do, one = self.arithmetic.operations, self.arithmetic.point(1.0)
        minus = do["neg"]

        def over(a: Ends, b: Ends) -> Ends:
            return None if a is None or b is None else do["div"](a, b)

        def square(a: Any) -> Any:
            return self.arithmetic.power(a, 2)

        def steepness(a: Any) -> Ends:  # 1 / sqrt(1 - a^2)
            rest = do["sub"](one, square(a))
            return over(one, do["sqrt"](rest))

        def first_smaller(a: Any, b: Any) -> Ends:
            return self._share(a[1] <= b[0], b[1] <= a[0])

        return {
            "add": (lambda y, a, b: one, lambda y, a, b: one),
            "sub": (lambda y, a, b: one, lambda y, a, b: minus(one)),
            "neg": (lambda y, a: minus(one),),
            "mul": (lambda y, a, b: b, lambda y, a, b: a),
            "div": (lambda y, a, b: over(one, b), lambda y, a, b: over(minus(y), b)),
            "sqrt": (lambda y, a: over(self.arithmetic.point(0.5), y),),
            "sin": (lambda y, a: do["cos"](a),),
            "cos": (lambda y, a: minus(do["sin"](a)),),
            "tan": (lambda y, a: do["add"](one, square(y)),),
            "asin": (lambda y, a: steepness(a),),
            "acos": (lambda y, a: _negated(steepness(a)),),
            "exp": (lambda y, a: y,),
            "log": (lambda y, a: over(one, a),),
            "tanh": (lambda y, a: do["sub"](one, square(y)),),
            **{op: (lambda y, a: self.arithmetic.point(0.0),) for op in ("floor", "rint")},
            "abs": (lambda y, a: do["sub"](self._share(a[0] >= 0, a[1] <= 0), self._share(a[1] <= 0, a[0] >= 0)),),
            "min": (lambda y, a, b: first_smaller(a, b), lambda y, a, b: first_smaller(b, a)),
            "max": (lambda y, a, b: first_smaller(b, a), lambda y, a, b: first_smaller(a, b)),
            "atan2": (
                lambda y, a, b: over(b, do["add"](square(a), square(b))),
                lambda y, a, b: over(minus(a), do["add"](square(a), square(b))),
            ),
            **self._further_rules(over),
        }

    def _further_rules(self, over: Any) -> dict[str, Any]:
        do, one = self.arithmetic.operations, self.arithmetic.point(1.0)

        def square(a: Any) -> Any:
            return self.arithmetic.power(a, 2)

        return {
            "sinh": (lambda y, a: do["cosh"](a),),
            "cosh": (lambda y, a: do["sinh"](a),),
            "asinh": (lambda y, a: over(one, do["sqrt"](do["add"](one, square(a)))),),
            "acosh": (lambda y, a: over(one, do["sqrt"](do["sub"](square(a), one))),),
            "atanh": (lambda y, a: over(one, do["sub"](one, square(a))),),
            "expm1": (lambda y, a: do["add"](y, one),),
            "log1p": (lambda y, a: over(one, do["add"](one, a)),),
            "exp2": (lambda y, a: do["mul"](y, do["log"](self.arithmetic.point(2.0))),),
            "log2": (lambda y, a: over(one, do["mul"](a, do["log"](self.arithmetic.point(2.0)))),),
            "log10": (lambda y, a: over(one, do["mul"](a, do["log"](self.arithmetic.point(10.0)))),),
            "cbrt": (lambda y, a: over(one, do["mul"](self.arithmetic.point(3.0), square(y))),),
            "hypot": (lambda y, a, b: over(a, y), lambda y, a, b: over(b, y)),
            "pow": (
                lambda y, a, b: _both(do["mul"], b, do["pow"](a, do["sub"](b, one))),
                lambda y, a, b: _both(do["mul"], y, do["log"](a)),
            ),
            "copysign": (
                lambda y, a, b: do["copysign"](one, do["mul"](a, b)),
                lambda y, a, b: self.arithmetic.point(0.0),
            ),
            "fmod": (lambda y, a, b: one, lambda y, a, b: over(_both(do["sub"], y, a), b)),
            "remainder": (lambda y, a, b: one, lambda y, a, b: over(_both(do["sub"], y, a), b)),
        }

    def _share(self, whole: bool, nothing: bool) -> Ends:
        """1, 0 or anything between."""
        a = self.arithmetic
        return (
            a.point(1.0) if whole and not nothing else a.point(0.0) if nothing and not whole else a.interval(0.0, 1.0)
        )


def are_indices(xs: Sequence[Any], count: int) -> bool:
    return all(type(x) is int and 0 <= x < count for x in xs)


def _both(op: Callable[[Any, Any], Ends], a: Ends, b: Ends) -> Ends:
    return None if a is None or b is None else op(a, b)


def _negated(a: Ends) -> Ends:
    return None if a is None else (-a[1], -a[0])


def _logic(op: str, args: list[Any]) -> Any:
    if UNDEFINED in args:
        return UNDEFINED
    if op == "not":
        return args[0] if args[0] == UNKNOWN else not args[0]
    return False if False in args else UNKNOWN if UNKNOWN in args else True


def _compared(op: str, a: Any, b: Any) -> Any:
    if op == "eq":
        return False if a[1] < b[0] or b[1] < a[0] else UNKNOWN if a[0] < b[1] or b[0] < a[1] else True
    if a[1] < b[0] or (op == "le" and a[1] <= b[0]):
        return True
    return False if b[1] < a[0] or (op == "lt" and b[1] <= a[0]) else UNKNOWN
