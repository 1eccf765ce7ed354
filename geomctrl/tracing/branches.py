"""Branches on symbols: a function is run once for every way through it, and `where` joins the results.

A `Condition` that is asked for its truth answers True at first, and the question is recorded. When the function has
returned, the last question answered True is answered False and the function runs again, until no question is left: a
depth-first walk over its ways. All ways share one graph, so what they have in common is computed once.

On a way that raises there is no result: `joined` requires that its conditions do not hold together.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from .arrays import SymbolArray, has_symbols
from .requirements import require, requirements
from .symbols import Condition, Symbol, both, invert, is_symbol, where
from .untraceable import UntraceableError, asker, caller, calling_frame, heard, tried

MAX_WAYS = 256
MAX_TURNS = (
    16,
    4,
    2,
)  # of a `while` on symbols; fewer where more make too many ways: what goes on longer has no result
MAX_IMPLIED = 20_000  # questions with known answers on one way: a loop without end
CHANGING = "the code asks other questions when it is called again with the same numbers"


class _Way(NamedTuple):
    """One run: its answers, the conditions it was asked about with their lines, its result or what it raised."""

    answers: tuple[bool, ...]
    asked: tuple[tuple[Condition, str], ...]
    result: Any
    required: list
    error: Exception | None


class _LeaveWay(BaseException):  # which nobody's `except Exception` hides
    """A way that does not end; `whole`: there is no use in trying the others."""

    def __init__(self, message: str, whole: bool = False):
        super().__init__(message)
        self.whole = whole


class _TooManyWays(BaseException):
    """More than MAX_WAYS; `lines` counts the questions by line."""

    def __init__(self, lines: Counter[str]):
        super().__init__()
        self.lines = lines


def joined(call: Callable[[], Any], reset: Callable[[], Any] = lambda: None) -> Any:
    """The result of call() on symbols, for all ways through it. reset: undoes what a call has changed.

    Results are numbers, arrays, None, and tuples, lists and dicts of such; their structure and shapes agree on all
    ways. Conditions that a way requires hold under its conditions only. Raises UntraceableError where no way has a
    result, where results do not agree, and for more than 256 ways.
    """
    for turns in MAX_TURNS:
        try:
            ways = _Ways(call, reset, turns).all()
        except _TooManyWays as error:
            lines = error.lines
            continue
        good = [way for way in ways if way.error is None]
        if not good:
            raise next((x.error for x in ways if isinstance(x.error, UntraceableError)), ways[0].error)  # pyright: ignore[reportGeneralTypeIssues]
        result, holds = _join(ways, 0)
        if holds is False:
            raise UntraceableError("the code has a result nowhere: it raises on each way, or a number is nan")
        require(holds)
        return result
    busiest = ", ".join(f"{line.removeprefix(', ')} ({n} times)" for line, n in lines.most_common(3))
    raise UntraceableError(
        f"more than {MAX_WAYS} ways through the code; it branches most {busiest}: choose there with np.where, np.clip,"
        " min or max"
    )


class _Ways:
    """The walk over the ways through one call."""

    def __init__(self, call: Callable[[], Any], reset: Callable[[], Any], turns: int):
        self.call, self.reset, self.turns = call, reset, turns
        self.answers: list[bool] = []
        self.before: tuple[tuple[Condition, str], ...] = ()
        self.lines: Counter[str] = Counter()

    def all(self) -> list[_Way]:
        paths: list[_Way] = []
        while True:
            if len(paths) == MAX_WAYS:
                raise _TooManyWays(self.lines)
            paths.append(self._run())
            while self.answers and not self.answers[-1]:
                self.answers.pop()
            if not self.answers:
                return paths
            self.answers[-1] = False

    def _run(self) -> _Way:
        self.asked: list[tuple[Condition, str]] = []
        self.facts: dict[tuple, bool] = {}
        self.turns_of: Counter[tuple[CodeType, int]] = Counter()
        self.implied = 0  # questions whose answers are known
        result = error = None
        token = asker.set(self._ask)
        required: list = []
        with tried():
            try:
                with heard(), requirements() as required:
                    result = self.call()
            except Exception as raised:  # the law's own, a safety stop, or what can not be traced on this way
                error = raised
            except _LeaveWay as leave:
                error = UntraceableError(str(leave))
                if leave.whole:
                    raise error from None
            finally:
                asker.reset(token)
                self.reset()
        if len(self.asked) < len(self.answers):
            raise UntraceableError(f"{CHANGING}{self.before[len(self.asked)][1]}")
        self.before = tuple(self.asked)
        return _Way(tuple(self.answers), self.before, result, required, error)

    def _ask(self, condition: Condition) -> bool:
        index, positive = condition.index, True
        nodes = condition.graph.nodes
        while nodes[index][0] == "not":
            index, positive = nodes[index][1], not positive
        implied = _implied(nodes, index, self.facts)
        if implied is not None:
            self.implied += 1
            if self.implied > MAX_IMPLIED:
                raise _LeaveWay(f"a loop has no end{caller()}")
            return implied is positive
        k, line = len(self.asked), self._line()
        condition = Condition(condition.graph, index)
        if k < len(self.before) and k < len(self.answers) and self.before[k][0].index != index:
            raise _LeaveWay(f"{CHANGING}{line}", whole=True)
        self.asked.append((condition, line))
        self.lines[line] += 1
        if k == len(self.answers):
            if k >= MAX_WAYS:
                raise _TooManyWays(self.lines)
            self.answers.append(True)
        _learn(nodes, index, self.answers[k], self.facts)
        answer = self.answers[k] is positive
        if not answer and self.place is not None:  # the test of a `while`, which ends
            self.turns_of[self.place] = 0
        return answer

    def _line(self) -> str:
        """Where the question is asked. Leaves a way in a `while` that has gone on for long."""
        frame, self.place = calling_frame(), None
        if frame is None:
            return ""
        line = f", in {frame.f_code.co_filename}, line {frame.f_lineno}"
        part = _while_lines(frame.f_code).get(frame.f_lineno)
        if part is not None:
            place = frame.f_code, frame.f_lineno
            self.place = place if part == "test" else None
            self.turns_of[place] += 1
            if self.turns_of[place] > self.turns:
                raise _LeaveWay(f"`while` on the state goes on for more than {self.turns} turns{line}")
        return line


@functools.lru_cache(maxsize=512)
def _while_lines(code: CodeType) -> dict[int, str]:
    """The lines of a function whose innermost loop is a `while`: whether in its "test" or its "body"."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError, TypeError):  # no file, or a lambda within an expression
        return {}
    first, parts = code.co_firstlineno - 1, {}
    for node in ast.walk(tree):  # outer loops come first
        if isinstance(node, (ast.While, ast.For)):
            lines = range(first + node.lineno, first + (node.end_lineno or node.lineno) + 1)
            parts |= dict.fromkeys(lines, "body" if isinstance(node, ast.While) else "")
        if isinstance(node, ast.While):
            parts |= dict.fromkeys(range(first + node.test.lineno, first + (node.test.end_lineno or 0) + 1), "test")
    return {line: part for line, part in parts.items() if part}


# --- what answers imply ------------------------------------------------------------------------------------------


def _implied(nodes: list[tuple], index: int, facts: Mapping[tuple, bool]) -> bool | None:
    """The truth of a node by earlier answers; None where they do not say."""
    node = nodes[index]
    if node[0] == "const":
        return bool(node[1])
    if node in facts:
        return facts[node]
    if node[0] == "not":
        inner = _implied(nodes, node[1], facts)
        return None if inner is None else not inner
    if node[0] == "and":
        parts = [_implied(nodes, x, facts) for x in node[1:]]
        return False if False in parts else None if None in parts else True
    return None


def _learn(nodes: list[tuple], index: int, answer: bool, facts: dict[tuple, bool]) -> None:
    """What an answer says of other comparisons of the same numbers; nan compares False with all."""
    node = nodes[index]
    facts[node] = answer
    op, *ends = node
    if op == "not":
        _learn(nodes, ends[0], not answer, facts)
    elif op == "and":
        if answer:
            for x in ends:
                _learn(nodes, x, True, facts)
    elif answer and len(ends) == 2 and op in ("lt", "le", "eq"):
        a, b = ends
        same = "eq", min(a, b), max(a, b)
        facts |= {("lt", b, a): False}
        if op == "lt":
            facts |= {("le", a, b): True, ("le", b, a): False, same: False}
        elif op == "eq":
            facts |= {("lt", a, b): False, ("le", a, b): True, ("le", b, a): True}


# --- joining -----------------------------------------------------------------------------------------------------


def _join(ways: list[_Way], depth: int) -> tuple[Any, Any]:
    """(the result, the condition under which there is one) of ways whose first `depth` answers are the same."""
    first = ways[0]
    if depth == len(first.answers):
        return first.result, first.error is None and functools.reduce(both, first.required, True)
    condition, line = first.asked[depth]
    (a, good_a), (b, good_b) = (_join([w for w in ways if w.answers[depth] is x], depth + 1) for x in (True, False))
    if good_a is False and good_b is False:
        return b, False
    result = b if good_a is False else a if good_b is False else chosen(condition, a, b, line)
    return result, both(_implies(condition, good_a), _implies(invert(condition), good_b))


def _implies(condition: Condition, good: Any) -> Any:
    return True if good is True else invert(both(condition, invert(good)))


def _either(a: Any, b: Any) -> Any:
    return invert(both(invert(a), invert(b)))


def chosen(condition: Condition, a: Any, b: Any, line: str = "", name: str = "the result") -> Any:
    """a where the condition holds, else b, for numbers, arrays, None, and tuples, lists and dicts of such.

    Raises UntraceableError, naming the line that asks for the condition, where a and b have different structures.
    """
    if a is b:
        return a
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _chosen_array(condition, a, b, line, name)
    if _is_truth(a) and _is_truth(b):
        if a is True and b is False:
            return condition
        return _either(both(condition, a), both(invert(condition), b))
    if _is_number(a) and _is_number(b):
        return where(condition, _number(a), _number(b))
    if type(a) is type(b):
        if isinstance(a, dict) and a.keys() == b.keys():
            return {key: chosen(condition, x, b[key], line, f"{name}[{key!r}]") for key, x in a.items()}
        if isinstance(a, (tuple, list)) and len(a) == len(b):
            fields = getattr(a, "_fields", [f"[{k}]" for k in range(len(a))])
            entries = [chosen(condition, x, y, line, f) for x, y, f in zip(a, b, fields, strict=True)]
            return type(a)(*entries) if hasattr(a, "_fields") else type(a)(entries)
        if not has_symbols(a) and not isinstance(a, (dict, tuple, list)) and a == b:
            return a
    raise _different(a, b, line, name)


def _chosen_array(condition: Condition, a: Any, b: Any, line: str, name: str) -> Any:
    both_arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    if np.shape(a) != np.shape(b) or (np.ndim(a) and not both_arrays):
        raise _different(a, b, line, name)
    out = np.empty(np.shape(a), object)
    flat = [np.asarray(x, object).ravel().tolist() for x in (a, b)]
    out.ravel()[:] = [chosen(condition, x, y, line, name) for x, y in zip(*flat, strict=True)]
    return out.view(SymbolArray)


def _different(a: Any, b: Any, line: str, name: str) -> UntraceableError:
    def said(x: Any) -> str:
        if isinstance(x, np.ndarray):
            return f"an array of shape {x.shape}"
        if isinstance(x, dict):
            return f"{{{', '.join(map(repr, x))}}}"
        if isinstance(x, (tuple, list)):
            return f"a {type(x).__name__} of {len(x)}"
        return "a number" if _is_number(x) else f"{x!r:.40}"

    return UntraceableError(
        f"{name} is {said(a)} where the condition asked for{line}, holds, and {said(b)} where it does not: compiled"
        " code needs one shape"
    )


def _is_truth(x: Any) -> bool:
    return isinstance(x, (Condition, bool, np.bool_))


def _is_number(x: Any) -> bool:
    return isinstance(x, (Symbol, Condition, bool, int, float, np.number, np.bool_))


def _number(x: Any) -> Any:
    if isinstance(x, Condition):
        return where(x, 1.0, 0.0)
    return x if is_symbol(x) else float(x)
