"""Simplification of counterexamples: states with zeros, round numbers and few moving joints that still fail.

Deterministic, unlike hypothesis: one change after the other is kept if the property is still violated and the state
needs fewer digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .domain import PARTS, Domain, State, with_read_only_arrays

BUDGET = 600  # evaluations
MAX_ENTRIES = 3  # nonzero entries up to which each is written on its own line
DIGITS = (1, 2, 3, 4)


class Offset(NamedTuple):
    """A part of a state: displaced by x from the equilibrium or from zero (neutral configuration), or drawn."""

    origin: str  # "equilibrium", "zero" or "drawn"
    x: np.ndarray


class SimplifiedState(NamedTuple):
    """A state, code that creates it (t, q, v, z from `robot`, `controller`, `plant`), and the number of evaluations."""

    state: State
    code: str
    tries: int


class _Form(NamedTuple):
    """A state as it is written in code."""

    t: float
    q: Offset
    v: Offset
    z: Offset | None

    def with_part(self, name: str, origin: str, x: np.ndarray) -> _Form:
        return self._replace(**{name: Offset(origin, x)})

    @property
    def parts(self) -> list[tuple[str, Offset]]:
        return [(name, part) for name in PARTS if (part := getattr(self, name)) is not None]

    @property
    def cost(self) -> int:
        """Digits of its code; a reference to the equilibrium counts as one."""
        parts = (sum(map(_digits, part.x)) + (part.origin != "zero") for _, part in self.parts)
        return _digits(self.t) + sum(parts)


def shrunk(fails: Callable[[State], bool], state: State, domain: Domain, budget: int = BUDGET) -> SimplifiedState:
    """The simplest state found in `domain` for which `fails` is true; it is true for `state`."""
    form = _form_of(state, domain)
    tries, improved = 0, True
    while improved:
        improved = False
        for candidate in _simpler(form, domain):
            if tries >= budget:
                break
            if candidate.cost >= form.cost:
                continue
            x = _state_of(candidate, domain)
            if not domain.contains(x):
                continue
            tries += 1
            if fails(x):
                form, state, improved = candidate, x, True
                break
    return SimplifiedState(state, _code_of(form, state, domain), tries)


def _form_of(state: State, domain: Domain) -> _Form:
    x, parts = domain.point(state).x, domain.parts
    z = None
    if state.z is not None:
        z = Offset("drawn", np.ravel(state.z)) if domain.draw is not None else Offset("equilibrium", x[parts["z"]])
    return _Form(state.t, Offset("equilibrium", x[parts["q"]]), Offset("equilibrium", x[parts["v"]]), z)


def _state_of(form: _Form, domain: Domain) -> State:
    zero, robot = domain.rest(form.t), domain.robot
    q = robot.integrate(zero.q if form.q.origin == "equilibrium" else robot.neutral(), form.q.x)
    v = zero.v + form.v.x if form.v.origin == "equilibrium" else form.v.x.copy()
    z = None
    if form.z is not None:
        z = _own_state(form.z, zero.z, domain)
    return with_read_only_arrays(State(form.t, q, v, z))


def _own_state(part: Offset, at_rest: Any, domain: Domain) -> np.ndarray:
    if part.origin == "drawn":
        return part.x.reshape(at_rest.shape).copy()
    if part.origin == "equilibrium":
        return domain.moved_z(at_rest, part.x) if part.x.any() else at_rest.copy()
    return domain.moved_z(_zero_of_z(at_rest, domain), part.x)


def _zero_of_z(z: Any, domain: Domain) -> np.ndarray:
    return np.zeros(z.shape) if domain.group is None else domain.group.identity()


def _from_zero(name: str, state: State, domain: Domain) -> np.ndarray:
    """The displacement of a part from zero."""
    if name == "q":
        return domain.robot.difference(domain.robot.neutral(), state.q)
    if name == "v":
        return np.array(state.v)
    return domain.displacement_of_z(_zero_of_z(domain.rest(state.t).z, domain), state.z)


def _simpler(form: _Form, domain: Domain) -> Iterator[_Form]:
    """Candidates to replace `form`, simplest first."""
    for t in sorted({0.0, 1.0, 2.0, 0.5, *(round(form.t, k) for k in range(4))}, key=_digits):
        yield form._replace(t=t)
    if form.z is not None and form.z.origin == "drawn":
        yield form.with_part("z", "equilibrium", np.zeros(len(form.z.x)))
    parts = [(name, part) for name, part in form.parts if name != "z" or domain.draw is None]
    for name, part in parts:
        yield form.with_part(name, "zero", np.zeros(len(part.x)))
        yield form.with_part(name, "equilibrium", np.zeros(len(part.x)))
    for name, part in parts:
        if part.origin == "equilibrium":
            away = _from_zero(name, _state_of(form, domain), domain)
            for digits in DIGITS[:2]:
                yield form.with_part(name, "zero", _rounded(away, digits))
        elif part.x.any():
            off = domain.point(_state_of(form, domain)).x[domain.parts[name]]
            for k in np.flatnonzero(off):  # displaced in one coordinate only
                yield form.with_part(name, "equilibrium", _rounded(np.where(np.arange(len(off)) == k, off, 0.0), 1))
    for name, part in parts:
        for x in _simpler_entries(part.x):
            yield form.with_part(name, part.origin, x)


def _simpler_entries(x: np.ndarray) -> Iterator[np.ndarray]:
    """x with entries set to zero (many at once first), then rounded."""
    there = np.flatnonzero(x)
    size = len(there) // 2
    while size >= 1:
        for k in range(0, len(there), size):
            out = x.copy()
            out[there[k : k + size]] = 0.0
            yield out
        size //= 2
    for digits in DIGITS:
        yield _rounded(x, digits)
    for k in there:
        sign = np.sign(x[k])
        larger = (_rounded(x[k] * (1.0 + 10.0 ** (1 - digits) / 2.0), digits) for digits in DIGITS[:2])
        for simple in (sign, 0.5 * sign, *larger, *(_rounded(x[k], digits) for digits in DIGITS)):
            out = x.copy()
            out[k] = simple
            yield out


def _digits(x: float) -> int:
    """Digits of x without sign; none for zero."""
    return 0 if x == 0.0 else 1 + len(f"{abs(float(x))!r}".removesuffix(".0"))


def _rounded(x: Any, digits: int) -> Any:
    """x rounded to a number of significant digits."""
    if np.ndim(x) == 0:
        return float(f"{x:.{digits - 1}e}")
    return np.array([float(f"{entry:.{digits - 1}e}") for entry in x])


def array_code(x: np.ndarray) -> str:
    """Code `np.array(...)` for exactly x; np.zeros for zeros."""
    if x.ndim == 1 and len(x) > 1 and not x.any():
        return f"np.zeros({len(x)})"
    return f"np.array({x.tolist()!r})"


def _code_of(form: _Form, state: State, domain: Domain) -> str:
    lines = [f"t = {float(form.t)!r}"]
    for name, part in form.parts:
        lines += _lines_of(name, part, state, domain)
    return "\n".join(lines if form.z is not None else [*lines, "z = None"])


def _lines_of(name: str, part: Offset, state: State, domain: Domain) -> list[str]:
    x, value = part.x, getattr(state, name)
    is_vector = domain.robot.nq == domain.robot.nv if name == "q" else name == "v" or domain.group is None
    source = domain.sources.get(name)
    if part.origin == "zero" and is_vector and 0 < np.count_nonzero(x) <= MAX_ENTRIES < len(x) // 2 and value.ndim == 1:
        return [f"{name} = np.zeros({len(x)})", *(f"{name}[{k}] = {float(x[k])!r}" for k in np.flatnonzero(x))]
    if part.origin == "drawn" or (is_vector and (part.origin == "zero" or source is None)):
        return [f"{name} = {array_code(value)}"]
    if part.origin == "zero":
        source = "robot.neutral()" if name == "q" else "controller.group.identity()"
    elif source is None:
        source = array_code(getattr(domain.rest(state.t), name))
    there = np.flatnonzero(x)
    if not len(there):
        return [f"{name} = {source}"]
    if not is_vector:
        move = f"robot.integrate({source}, " if name == "q" else f"controller.group.advance({source}, "
        return [f"{name} = {move}{array_code(x)})"]
    if len(there) <= MAX_ENTRIES < len(x) and value.ndim == 1:
        return [f"{name} = np.array({source})", *(f"{name}[{k}] += {float(x[k])!r}" for k in there)]
    return [f"{name} = {source} + {array_code(np.reshape(x, value.shape))}"]


def literal(state: State) -> str:
    """Code for a state from its numbers alone."""
    z = "None" if state.z is None else array_code(state.z)
    return f"t = {float(state.t)!r}\nq = {array_code(state.q)}\nv = {array_code(state.v)}\nz = {z}"
