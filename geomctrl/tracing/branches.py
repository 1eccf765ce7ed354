"""Branches on symbols: a function runs once for every path through it, and `where` joins the results.

A `Condition` whose truth is tested returns True at first, and the test is recorded. When the function has returned, the
last test answered True is answered False, and the function runs again, until no test is left: a depth-first traversal
of its paths. All paths share one graph, so that common expressions are computed once.

A path that raises has no result: `joined` requires that its conditions do not hold together.
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

from .arrays import entered, has_symbols
from .requirements import require, requirements
from .symbols import Condition, Symbol, both, invert, is_symbol, where
from .untraceable import UntraceableError, asker, caller, calling_frame, reraise_untraceable, unrecorded_errors

MAX_PATHS = 256
# iterations of a `while` on symbols, fewer if this makes too many paths; a longer loop has no result
MAX_TURNS = 16, 4, 2
MAX_IMPLIED = 20_000  # tests with known answers on one path, which indicate an endless loop
CHANGING = "the code tests different conditions when it is called again with the same arguments"


class _Path(NamedTuple):
    """One run: its answers, the tested conditions with their lines, its result or the exception it raised."""

    answers: tuple[bool, ...]
    asked: tuple[tuple[Condition, str], ...]
    result: Any
    required: list
    error: Exception | None


class _LeavePath(BaseException):  # not an Exception, so that user code does not catch it
    """Abandons a path that does not end; `whole`: abandons all paths."""

    def __init__(self, message: str, whole: bool = False):
        super().__init__(message)
        self.whole = whole


class _TooManyPaths(BaseException):
    """More than MAX_PATHS paths; `lines` counts the tests by line."""

    def __init__(self, lines: Counter[str]):
        super().__init__()
        self.lines = lines


def joined(call: Callable[[], Any], reset: Callable[[], Any] = lambda: None) -> Any:
    """The result of call() with symbols, joined over all paths. reset: undoes side effects of a call.

    Results are numbers, arrays, None, and tuples, lists and dicts of these, with the same structure and shapes on all
    paths. Conditions that a path requires apply under its own conditions only. Raises UntraceableError if no path has a
    result, if results differ in structure, and for more than 256 paths.
    """
    for turns in MAX_TURNS:
        try:
            paths = _Paths(call, reset, turns).all()
        except _TooManyPaths as error:
            lines = error.lines
            continue
        good = [path for path in paths if path.error is None]
        if not good:
            raise next((x.error for x in paths if isinstance(x.error, UntraceableError)), paths[0].error)  # pyright: ignore[reportGeneralTypeIssues]
        result, holds = _join(paths, 0)
        if holds is False:
            raise UntraceableError("the code never returns a result: it raises on every path, or a number is nan")
        require(holds)
        return result
    busiest = ", ".join(f"{line.removeprefix(', ')} ({n} times)" for line, n in lines.most_common(3))
    raise UntraceableError(
        f"more than {MAX_PATHS} paths through the code; most branches are {busiest}: replace them by np.where,"
        " np.clip, min or max"
    )


class _Paths:
    """The traversal of the paths through one call."""

    def __init__(self, call: Callable[[], Any], reset: Callable[[], Any], turns: int):
        self.call, self.reset, self.turns = call, reset, turns
        self.answers: list[bool] = []
        self.before: tuple[tuple[Condition, str], ...] = ()
        self.lines: Counter[str] = Counter()

    def all(self) -> list[_Path]:
        paths: list[_Path] = []
        while True:
            if len(paths) == MAX_PATHS:
                raise _TooManyPaths(self.lines)
            paths.append(self._run())
            while self.answers and not self.answers[-1]:
                self.answers.pop()
            if not self.answers:
                return paths
            self.answers[-1] = False

    def _run(self) -> _Path:
        self.asked: list[tuple[Condition, str]] = []
        self.facts: dict[tuple, bool] = {}
        self.turns_of: Counter[tuple[CodeType, int]] = Counter()
        self.implied = 0  # number of tests with known answers
        result = error = None
        token = asker.set(self._ask)
        required: list = []
        with unrecorded_errors():
            try:
                with reraise_untraceable(), requirements() as required:
                    result = self.call()
            except Exception as raised:  # of the law itself (a safety stop), or because this path can not be traced
                error = raised
            except _LeavePath as leave:
                error = UntraceableError(str(leave))
                if leave.whole:
                    raise error from None
            finally:
                asker.reset(token)
                self.reset()
        if len(self.asked) < len(self.answers):
            raise UntraceableError(f"{CHANGING}{self.before[len(self.asked)][1]}")
        self.before = tuple(self.asked)
        return _Path(tuple(self.answers), self.before, result, required, error)

    def _ask(self, condition: Condition) -> bool:
        index, positive = condition.index, True
        nodes = condition.graph.nodes
        while nodes[index][0] == "not":
            index, positive = nodes[index][1], not positive
        implied = _implied(nodes, index, self.facts)
        if implied is not None:
            self.implied += 1
            if self.implied > MAX_IMPLIED:
                raise _LeavePath(f"a loop does not end{caller()}")
            return implied is positive
        k, line = len(self.asked), self._line()
        condition = Condition(condition.graph, index)
        if k < len(self.before) and k < len(self.answers) and self.before[k][0].index != index:
            raise _LeavePath(f"{CHANGING}{line}", whole=True)
        self.asked.append((condition, line))
        self.lines[line] += 1
        if k == len(self.answers):
            if k >= MAX_PATHS:
                raise _TooManyPaths(self.lines)
            self.answers.append(True)
        _learn(nodes, index, self.answers[k], self.facts)
        answer = self.answers[k] is positive
        if not answer and self.place is not None:  # the test that ends a `while`
            self.turns_of[self.place] = 0
        return answer

    def _line(self) -> str:
        """The line of the test. Leaves the path if a `while` has run for too long."""
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
                raise _LeavePath(f"`while` on the state takes more than {self.turns} iterations{line}")
        return line


@functools.lru_cache(maxsize=512)
def _while_lines(code: CodeType) -> dict[int, str]:
    """Lines of a function whose innermost loop is a `while`, mapped to "test" or "body"."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError, TypeError):  # no source file, or a lambda inside an expression
        return {}
    first, parts = code.co_firstlineno - 1, {}
    for node in ast.walk(tree):  # visits outer loops first
        if isinstance(node, (ast.While, ast.For)):
            lines = range(first + node.lineno, first + (node.end_lineno or node.lineno) + 1)
            parts |= dict.fromkeys(lines, "body" if isinstance(node, ast.While) else "")
        if isinstance(node, ast.While):
            parts |= dict.fromkeys(range(first + node.test.lineno, first + (node.test.end_lineno or 0) + 1), "test")
    return {line: part for line, part in parts.items() if part}


def _implied(nodes: list[tuple], index: int, facts: Mapping[tuple, bool]) -> bool | None:
    """The truth of a node according to earlier answers; None if they do not determine it."""
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
    """What an answer implies for other comparisons of the same numbers; comparisons with nan are False."""
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


def _join(paths: list[_Path], depth: int) -> tuple[Any, Any]:
    """(The result, the condition under which it exists) for paths that share their first `depth` answers."""
    first = paths[0]
    if depth == len(first.answers):
        return first.result, first.error is None and functools.reduce(both, first.required, True)
    condition, line = first.asked[depth]
    (a, good_a), (b, good_b) = (_join([w for w in paths if w.answers[depth] is x], depth + 1) for x in (True, False))
    if good_a is False and good_b is False:
        return b, False
    result = b if good_a is False else a if good_b is False else chosen(condition, a, b, line)
    return result, both(_implies(condition, good_a), _implies(invert(condition), good_b))


def _implies(condition: Condition, good: Any) -> Any:
    return True if good is True else invert(both(condition, invert(good)))


def _either(a: Any, b: Any) -> Any:
    return invert(both(invert(a), invert(b)))


def chosen(condition: Condition, a: Any, b: Any, line: str = "", name: str = "the result") -> Any:
    """a where the condition holds, else b, for numbers, arrays, None, and tuples, lists and dicts of these.

    Raises UntraceableError, with the line that tests the condition, if a and b differ in structure.
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
    return entered(out)


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
        f"{name} is {said(a)} if the condition tested{line}, holds, and {said(b)} if it does not: return the same type"
        " and shape on both paths"
    )


def _is_truth(x: Any) -> bool:
    return isinstance(x, (Condition, bool, np.bool_))


def _is_number(x: Any) -> bool:
    return isinstance(x, (Symbol, Condition, bool, int, float, np.number, np.bool_))


def _number(x: Any) -> Any:
    if isinstance(x, Condition):
        return where(x, 1.0, 0.0)
    return x if is_symbol(x) else float(x)
