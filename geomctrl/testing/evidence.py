"""Evidence: a record of what assertions have proved, searched, sampled or simulated.

An assertion records its evidence when it succeeds, and the counts up to then when it fails:

    record("sampled", "V and V' of Passivity on panda", states=20, seed=0)
    record("searched", "V' - promised of Passivity on panda", starts=32, evaluations=12000, seed=0)
    record("proved", "V' < 0 of Passivity on two_link", boxes=5120)

A listener such as the pytest plugin collects these records while a test runs; without a listener a record costs 0.2 us.
In the other direction, an assertion receives the states at which it failed before and tests them first:

    for x in known(robot.nq, robot.nv, None if z is None else z.shape):
        check(State(*x))
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, get_args

from geomctrl.errors import ArgumentError

Kind = Literal["proved", "searched", "sampled", "simulated"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # strongest first
Fact = int | float | str

KnownState = tuple[float, Any, Any, Any]  # t, q (nq,), v (nv,), z or None

_recorded: ContextVar[list[Evidence] | None] = ContextVar("geomctrl's evidence", default=None)
_known: ContextVar[tuple[KnownState, ...]] = ContextVar("geomctrl's known counterexamples", default=())


class Evidence(NamedTuple):
    """One record: the kind (of `KINDS`), its subject, and facts by name such as counts and seed."""

    kind: Kind
    subject: str
    facts: Mapping[str, Fact]

    def __str__(self):
        return summary([self])[0][1]


def record(kind: Kind, subject: str, **facts: Fact) -> None:
    """Record evidence for the listeners of this context, which does not extend to threads that it starts.

    `subject` names property, controller and robot: "V and V' of Passivity on panda". `facts` are counts, seeds, limits.
    """
    recorded_evidence = _recorded.get()
    if recorded_evidence is not None:
        if kind not in KINDS:
            raise ArgumentError(f"kind: expected one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        recorded_evidence.append(Evidence(kind, subject, facts))


@contextlib.contextmanager
def listening() -> Iterator[list[Evidence]]:
    """Context with a list that collects its records; afterwards outer listeners receive them too."""
    before, recorded_evidence = _recorded.get(), []
    token = _recorded.set(recorded_evidence)
    try:
        yield recorded_evidence
    finally:
        _recorded.reset(token)
        if before is not None:
            before.extend(recorded_evidence)


def known(nq: int, nv: int, z_shape: tuple[int, ...] | None) -> list[KnownState]:
    """The (t, q, v, z) at which assertions failed before in this context, for a loop with states of these sizes."""
    shapes = ((nq,), (nv,), z_shape)
    return [x for x in _known.get() if tuple(None if y is None else y.shape for y in x[1:]) == shapes]


@contextlib.contextmanager
def replaying(states: Iterable[KnownState]) -> Iterator[None]:
    """Context in which `known` returns these states."""
    token = _known.set(tuple(states))
    try:
        yield
    finally:
        _known.reset(token)


def summary(recorded_evidence: Iterable[Evidence]) -> list[tuple[Kind, str]]:
    """(kind, text), strongest first; records about the same subject are merged, with ranges of their facts."""
    groups: dict[tuple[Kind, str], list[Mapping[str, Fact]]] = {}
    for kind, subject, facts in recorded_evidence:
        groups.setdefault((kind, subject), []).append(facts)
    ordered = sorted(groups.items(), key=lambda group: KINDS.index(group[0][0]))
    return [(kind, subject + _in_brackets(facts)) for (kind, subject), facts in ordered]


def _in_brackets(records: list[Mapping[str, Fact]]) -> str:
    details = [f"{len(records)} times"] if len(records) > 1 else []
    for name in dict.fromkeys(name for facts in records for name in facts):
        values = [facts[name] for facts in records if name in facts]
        ordered = sorted(values, key=lambda x: (isinstance(x, str), x))
        texts = list(dict.fromkeys(f"{x:.6g}" if isinstance(x, float) else str(x) for x in ordered))
        details.append(f"{name} {texts[0]}" if len(texts) == 1 else f"{name} {texts[0]} to {texts[-1]}")
    return f" ({', '.join(details)})" if details else ""
