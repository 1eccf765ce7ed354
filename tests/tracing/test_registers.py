"""Register allocation: the plan is executable and never has more live numbers than registers."""

import numpy as np
import pytest

from geomctrl.tracing.registers import steps


def random_line(seed, n=300):
    """Nodes 0 ... n - 1 by their operands, up to three smaller nodes, mostly late ones."""
    rng, ends = np.random.default_rng(seed), {}
    for at in range(n):
        reach = 200 if rng.random() < 0.2 else 10
        ends[at] = tuple(rng.integers(max(0, at - reach), at, rng.integers(1, 4)).tolist()) if at > 8 else ()
    return ends


def alive(plan, ends, counts):
    """Count the live numbers after each step; a number that is loaded again becomes live again."""
    births, last = {}, {}  # (node, which life) -> step of its beginning, of its last use
    life = dict.fromkeys(ends, 0)
    for k, (what, at) in enumerate(plan):
        for x in ends[at] if what == "make" else (at,) if what == "keep" else ():
            assert (x, life[x]) in births
            last[x, life[x]] = k
        if what != "keep":
            life[at] += what == "fetch"
            births[at, life[at]] = k
    lives = [(births[x], end) for x, end in last.items() if counts(x[0])]
    return [sum(start <= k < end for start, end in lives) for k in range(len(plan))]


@pytest.mark.parametrize("size", [3, 5, 20, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_no_more_alive_than_there_is_room(size, seed):
    ends = random_line(seed)
    counts = lambda x: x % 7 != 3  # noqa: E731
    plan = steps(list(ends), ends.__getitem__, counts, size)
    assert [at for what, at in plan if what == "make"] == list(ends)
    assert max(alive(plan, ends, counts)) <= size + 3  # and one operation's operands
    assert max(alive([("make", at) for at in ends], ends, counts)) > 20


def test_a_number_is_kept_before_it_is_fetched_and_once():
    plan = steps(list(ends := random_line(0)), ends.__getitem__, lambda x: True, 5)
    kept = [at for what, at in plan if what == "keep"]
    assert len(set(kept)) == len(kept) > 0
    for k, (what, at) in enumerate(plan):
        assert what != "fetch" or ("keep", at) in plan[:k]


def test_the_furthest_use_goes_first():
    ends = {0: (), 1: (), 2: (), 3: (1,), 4: (2,), 5: (0,), 6: (3, 4, 5)}
    plan = steps(list(ends), ends.__getitem__, lambda x: True, 2)
    assert plan[:4] == [("make", 0), ("make", 1), ("make", 2), ("keep", 0)]


def test_with_room_for_all_nothing_moves():
    ends = random_line(3)
    assert steps(list(ends), ends.__getitem__, lambda x: True, 1000) == [("make", at) for at in ends]
