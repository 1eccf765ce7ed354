"""Whether a law answers the same whenever it is asked about a state, and so has no memory but its state z."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.control.contracts import Command
from geomctrl.control.plant import Plant

from .counterexample import Counterexample
from .domain import State

Answer = dict[str, np.ndarray]
# Two ways of computing a robot's terms differ by 1e-13 of a law's largest number; cancellation costs some digits.
ROUNDING = 1e-10


class Repeatable:
    """Calls of one controller, and of its `lyapunov` if it has one, at the same state: first, at once again, later."""

    def __init__(self, controller: Any, plant: Plant):
        self.controller, self.plant = controller, plant
        self.first: tuple[State, Answer] | None = None

    def check(self, x: State, other: State) -> None:
        """Raise Counterexample where the answers at x or at the other state change by asking there, or at the other."""
        attributes, answers = [_attributes(self.controller)], []
        for y in (asked := (other, x, x, other, x)):
            answers.append(self._answer(y))
            attributes.append(_attributes(self.controller))
        names = dict.fromkeys(name for each in attributes for name in each)
        changing = [k for k in names if len({each.get(k) for each in attributes}) > 1]
        for k in (2, 3, 4):
            self._compare(asked[k], answers[next(j for j in range(k) if asked[j] is asked[k])], answers[k], changing)
        if self.first is None:
            self.first = x, answers[1]

    def check_first(self) -> None:
        """Raise Counterexample where the answer at the first state checked has changed since."""
        if self.first is not None:
            x, answer = self.first
            self._compare(x, answer, self._answer(x), [])

    def _answer(self, x: State) -> Answer:
        command = self.controller(*x)
        if not isinstance(command, Command):
            return {}
        parts = {name: getattr(command, name) for name in ("tau", "z_rate", "z_next")}
        if hasattr(self.controller, "lyapunov"):
            found = self.controller.lyapunov(*x, self.plant.at(x.t))
            if isinstance(found, tuple | list) and len(found) == 2:
                parts |= {"V": found[0], "its rate": found[1]}
        return {name: np.array(value) for name, value in parts.items() if value is not None}

    def _compare(self, x: State, a: Answer, b: Answer, changing: list[str]) -> None:
        for name in a.keys() & b.keys():
            if not (_same(a[name], b[name]) or self._compiled_since(x, name, a[name])):
                attributes = f" (attributes that change: {', '.join(changing)})" if changing else ""
                raise Counterexample(
                    f"the law remembers its calls{attributes}: at one and the same state {name} = {a[name]}, then"
                    f" {b[name]}. Its answer may depend on t, q, v and z alone, as an integrator calls it at its stages"
                    " in any order; what it remembers belongs into z, with start() and z_rate or z_next",
                    x,
                    "state",
                )

    def _compiled_since(self, x: State, name: str, before: np.ndarray) -> bool:
        """Whether an answer moved by rounding once and stays: a robot's terms are compiled when they are used often."""
        now, again = self._answer(x).get(name), self._answer(x).get(name)
        if now is None or again is None or now.shape != before.shape or not _same(now, again):
            return False
        try:
            return bool(np.all(np.abs(now - before) <= ROUNDING * np.max(np.abs(before), initial=0.0)))
        except TypeError:  # of objects
            return False


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.array_equal(a, b, equal_nan=True)
    except TypeError:  # of objects
        return np.array_equal(a, b)


def _attributes(x: Any) -> dict[str, str]:
    return {name: repr(value) for name, value in getattr(x, "__dict__", {}).items() if not hasattr(value, "__dict__")}
