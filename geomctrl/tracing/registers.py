"""Register allocation for straight-line code with more live numbers than registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

Step = tuple[str, int]


def steps(
    order: Sequence[int],
    operands: Callable[[int], Iterable[int]],
    counts: Callable[[int], bool],
    size: int,
) -> list[Step]:
    """("make", x), ("keep", x) and ("fetch", x): how to compute the nodes `order` with registers for `size` numbers.

    If no register is free, the number whose next use is furthest is stored in memory ("keep", once per number) and
    loaded when it is used ("fetch"). At most `size` numbers and the operands of one operation are live. Operands that
    are not in `order` are available. A node that does not count, such as a constant, needs no register.
    """
    uses: dict[int, list[int]] = {}
    for k, index in enumerate(order):
        for x in operands(index):
            uses.setdefault(x, []).append(k)
    for positions in uses.values():
        positions.reverse()
    here: set[int] = set()
    away: set[int] = set()
    kept: set[int] = set()
    plan: list[Step] = []

    def make_room(used: set[int]) -> None:
        while len(here) > size and here - used:
            x = max(here - used, key=lambda x: uses[x][-1])
            if x not in kept:
                plan.append(("keep", x))
                kept.add(x)
            here.remove(x)
            away.add(x)

    for k, index in enumerate(order):
        used = {x for x in operands(index) if counts(x)}
        plan += [("fetch", x) for x in sorted(used & away)]
        away -= used
        here |= used
        make_room(used)
        plan.append(("make", index))
        for x in {*operands(index)}:
            while uses[x] and uses[x][-1] <= k:
                uses[x].pop()
        here -= {x for x in used if not uses[x]}
        if counts(index) and uses.get(index):
            here.add(index)
            make_room({index})
    return plan
