"""The search over boxes, with claims about a linear function whose decided boxes are known by hand."""

import numpy as np
import pytest

from geomctrl.tracing import branch_and_bound
from geomctrl.tracing.branch_and_bound import BranchAndBound, Decision, Divisible, part_of


class Below(Divisible):
    """The claim x_0 <= limit on starts with two sides; only x_0 is divided, down to a length."""

    def __init__(self, limit, starts, shortest=2.0**-6, best_first=False, chunk=8):
        self.limit, self.starts, self.shortest, self.best_first, self.chunk = limit, starts, shortest, best_first, chunk
        self.evaluated = []

    def split(self, lo, hi, count):
        self.evaluated += hi[:, 0].tolist()
        side = np.where(hi[:, 0] - lo[:, 0] > self.shortest, 0, -1)
        return Decision(hi[:, 0] <= self.limit, side, bound=hi[:, 0], how=7)


UNIT = np.zeros((1, 2)), np.ones((1, 2))
THIRD = 21 / 64  # the largest multiple of 1/64 below 1/3


@pytest.mark.parametrize("best_first", [False, True])
@pytest.mark.parametrize("chunk", [1, 3, 512])
def test_what_is_decided_left_and_bounded(best_first, chunk):
    search = BranchAndBound(Below(1.0 / 3.0, UNIT, best_first=best_first, chunk=chunk))
    search.run(1e4, 10.0)
    lo, hi, how = search.leaves
    assert search.status == "undecided"
    assert (how == 7).all()
    assert (hi[:, 0] - lo[:, 0]).sum() == search.done == hi[:, 0].max() == search.bound == THIRD
    assert search.largest_bound == 1.0
    assert search.share_left == 1.0 - THIRD
    left_lo, left_hi = search.left
    assert (left_hi - left_lo).prod(axis=1).sum() == 1.0 - THIRD
    assert search.count == 2 * (len(lo) + len(left_lo)) - 1  # nodes of a binary tree


class Falling(Below):
    """The bound falls with x_0, and is worse for a half than for the whole."""

    def split(self, lo, hi, count):
        return super().split(lo, hi, count)._replace(bound=1.0 - lo[:, 0] + 2.0 * (hi[:, 0] < 1.0))


def test_the_largest_bound_comes_first_and_bounds_of_a_box_hold_for_its_halves():
    claim = Falling(0.0, UNIT, best_first=True, chunk=1)
    search = BranchAndBound(claim)
    search.run(4, 10.0)
    assert claim.evaluated[:3] == [1.0, 1.0, 0.5]
    assert search.count == 4
    assert search.largest_bound == 1.0


@pytest.mark.parametrize("best_first", [False, True])
def test_a_budget_of_boxes_or_of_time_ends_the_search(best_first):
    search = BranchAndBound(Below(-1.0, UNIT, best_first=best_first, chunk=512))
    for budget in (1, 2, 5, 7, 13):  # at the end from two blocks of the stack
        search.run(budget, 10.0)
        assert search.count == budget
        assert search.share_left == 1.0
    assert not search.out_of_time
    search.run(1e4, 0.0)
    assert search.count == 13
    assert search.out_of_time
    assert not search.proved


def test_all_starts_count_and_a_side_of_length_zero_stays():
    faces = np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])  # y = 0 and y = 1
    search = BranchAndBound(Below(0.75, faces))
    search.run(1e4, 10.0)
    lo, hi, _ = search.leaves
    assert (lo[:, 1] == hi[:, 1]).all()
    assert search.done == 0.75
    assert BranchAndBound(Below(1.0, faces)).share_left == 1.0


def serial(claim, keep=True):
    def spread(blocks):
        for k, ((lo, hi), boxes, seconds) in enumerate(blocks):
            part = part_of(claim, lo, hi, boxes, seconds)
            yield k, part if keep else part._replace(leaves=None)

    return spread


@pytest.mark.parametrize("keep", [True, False])
def test_other_processes_decide_the_same_boxes(keep):
    claim = Below(1.0 / 3.0, UNIT)
    claim.pilot = 3
    search, alone = BranchAndBound(claim), BranchAndBound(Below(1.0 / 3.0, UNIT))
    search.run(1e4, 10.0, spread=serial(claim, keep))
    alone.run(1e4, 10.0)
    assert search.done == alone.done == search.bound == THIRD
    assert search.count == alone.count
    if keep:
        assert sorted(search.leaves[0].tolist()) == sorted(alone.leaves[0].tolist())
    else:
        assert search.leaves is None
    assert sorted(search.left[0].tolist()) == sorted(alone.left[0].tolist())


def test_a_budget_that_other_processes_share_loses_no_box():
    claim = Below(0.95, UNIT, shortest=2.0**-20, chunk=1)
    claim.pilot = 3
    search = BranchAndBound(claim)
    search.run(50, 10.0, spread=serial(claim))
    assert search.status == "undecided"
    assert search.done > 0.0
    assert search.done + search.share_left == 1.0


def test_too_many_boxes_to_keep_are_none(monkeypatch):
    monkeypatch.setattr(branch_and_bound, "MAX_SAVED_BYTES", 80)  # two boxes of 33 bytes
    search = BranchAndBound(Below(1.0 / 3.0, UNIT))
    search.run(1e4, 10.0)
    assert search.leaves is None
    assert search.done == THIRD


def test_a_violation_ends_the_search():
    class Wrong(Below):
        def split(self, lo, hi, count):
            return super().split(lo, hi, count)._replace(violation=np.array([0.5, 0.5]))

    search = BranchAndBound(Wrong(1.0, UNIT))
    search.run(1e4, 10.0)
    assert search.status == "refuted"
    assert not search.proved
    assert search.count == 1


def test_the_estimate_is_the_number_of_boxes():
    """All paths are alike: each of 2^6 intervals needs six halvings."""
    search = BranchAndBound(Below(-1.0, UNIT))
    assert search.estimate(np.random.default_rng(0)) == 2**7 - 1
    search.run(1e4, 10.0)
    assert search.count == 2**7 - 1


class Irregular(Divisible):
    """Decides short intervals, and the closer to a point the shorter."""

    starts, chunk = UNIT, 8

    def __init__(self, pilot):
        self.pilot, self.counts = pilot, []

    def trial(self):
        return Irregular(self.pilot)

    def split(self, lo, hi, count):
        self.counts.append(count)
        x, width = 0.5 * (lo[:, 0] + hi[:, 0]), hi[:, 0] - lo[:, 0]
        return Decision(width < 2e-3 * (0.02 + np.abs(x - 0.3)), np.zeros(len(lo), int))


def expectations(search):
    """(count, expected) after each step of a search that is run to its end."""
    seen = []
    search.run(1e6, 60.0, lambda share, cost: seen.append((search.count, search.expected, cost)))
    return seen


def test_the_expected_number_of_boxes_is_known_early():
    search = BranchAndBound(Irregular(pilot=64))
    seen = expectations(search)
    early, expected, cost = next(x for x in seen if x[1] is not None)
    assert early < 0.2 * search.count
    assert 0.5 * search.count < expected < 2.0 * search.count
    assert cost.startswith(f"about {float(f'{expected:.2g}'):.0f} boxes, ")
    assert seen[-1][1] == search.count


def test_boxes_that_give_the_expected_number_belong_to_the_search():
    early, late = BranchAndBound(Irregular(pilot=64)), BranchAndBound(Irregular(pilot=10**9))
    assert expectations(early)[-1][1] is not None
    assert expectations(late)[-1][1] is None
    assert early.count == late.count
    assert sorted(early.leaves[0].tolist()) == sorted(late.leaves[0].tolist())


def test_boxes_of_random_halves_do_not_belong_to_the_search():
    search = BranchAndBound(Irregular(pilot=10**9))
    search.run(200, 10.0)
    count, left, evaluated = search.count, search.left[0].copy(), len(search.claim.counts)
    assert search.estimate(np.random.default_rng(0)) > 0.0
    assert len(search.claim.counts) == evaluated
    assert search.count == count
    np.testing.assert_array_equal(search.left[0], left)


def test_a_search_that_continues_expects_what_its_first_boxes_need():
    whole = BranchAndBound(Irregular(pilot=64))
    whole.run(500, 10.0)
    rest = BranchAndBound(Irregular(pilot=64), whole.left)
    assert expectations(rest)[-1][1] == rest.count
