"""`testing.certify` proves true claims, refutes false ones, and makes no other statement."""

import contextlib
import functools
import itertools
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from geomctrl import models, testing
from geomctrl.errors import ArgumentError
from geomctrl.testing import certify
from geomctrl.tracing.branch_and_bound import BranchAndBound
from geomctrl.tracing.proofs.claims import claim_of
from geomctrl.tracing.proofs.forms import BoundedClaim
from geomctrl.tracing.proofs.rechecking import uncovered
from geomctrl.tracing.untraceable import UntraceableError


def rosenbrock(x):
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def motzkin(x):
    return x[0] ** 4 * x[1] ** 2 + x[0] ** 2 * x[1] ** 4 - 3.0 * x[0] ** 2 * x[1] ** 2 + 1.0


SQUARE = [(-2.0, 2.0), (-2.0, 2.0)]
TRUE = {
    "Rosenbrock, a sum of squares": (lambda x: -rosenbrock(x), SQUARE, {}),
    "Rosenbrock, written out": (
        lambda x: (
            -(100.0 * x[1] ** 2 - 200.0 * x[1] * x[0] ** 2 + 100.0 * x[0] ** 4 + 1.0 - 2.0 * x[0] + x[0] ** 2) - 0.01
        ),
        SQUARE,
        {},
    ),
    "(x - y)^2, written out": (lambda x: 2.0 * x[0] * x[1] - x[0] ** 2 - x[1] ** 2 - 1e-5, SQUARE, {}),
    "sin x <= x": (lambda x: np.sin(x[0]) - x[0], [(0.0, 3.0)], {}),
    "1 - x^2 / 2 <= cos x": (lambda x: 1.0 - x[0] ** 2 / 2.0 - np.cos(x[0]) - 1e-9, [(-3.0, 3.0)], {}),
    "Motzkin": (lambda x: -motzkin(x) - 1e-4, SQUARE, {}),
    "Motzkin off its zeros": (
        lambda x: -motzkin(x),
        SQUARE,
        {"where": [lambda x, a=a, b=b: 0.01 - (x[0] - a) ** 2 - (x[1] - b) ** 2 for a in (-1, 1) for b in (-1, 1)]},
    ),
    "a margin of 1e-9": (lambda x: x[0] * (1.0 - x[0]) - 0.25 - 1e-9, [(-1.0, 2.0)], {}),
    "strictly": (lambda x: -(x[0] ** 2) - x[1] ** 2, SQUARE, {"outside": 1e-3, "strict": True}),
    "on a disc": (lambda x: x[0] + x[1] - 1.41422, SQUARE, {"where": lambda x: x[0] ** 2 + x[1] ** 2 - 1.0}),
    "outside an ellipse": (
        lambda x: 1.0 - x[0] ** 2 / 0.25 - (x[1] - 1.0) ** 2 / 4.0,
        SQUARE,
        {"outside": testing.Ellipsoid([0.5001, 2.0002], [0.0, 1.0])},
    ),
    "constant": (lambda x: -1.0, SQUARE, {}),
    "a point": (lambda x: x[0] - 1.0, [(1.0, 1.0)], {}),
}
WRONG = {
    "sin x <= 0.99 x": (lambda x: np.sin(x[0]) - 0.99 * x[0], [(0.0, 3.0)], {}),
    "Motzkin >= 1e-3": (lambda x: 1e-3 - motzkin(x), SQUARE, {}),
    "a margin of -1e-9": (lambda x: x[0] * (1.0 - x[0]) - 0.25 + 1e-9, [(-1.0, 2.0)], {}),
    "strictly": (lambda x: -(x[0] ** 2), [(-1.0, 1.0)], {"strict": True}),
    "on a disc": (lambda x: x[0] + x[1] - 1.4142, SQUARE, {"where": lambda x: x[0] ** 2 + x[1] ** 2 - 1.0}),
    "outside a ball that is too small": (lambda x: 0.01 - x[0] ** 2 - x[1] ** 2, SQUARE, {"outside": 0.099}),
    "a needle": (lambda x: np.exp(-1e4 * ((x[0] - 0.3) ** 2 + (x[1] + 0.7) ** 2)) - 0.5, SQUARE, {}),
    "constant": (lambda x: 1.0, SQUARE, {}),
    "a step": (lambda x: np.where(x[0] > 0.125, 1.0, -1.0), [(-1.0, 2.0)], {}),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_is_proved_and_confirmed(name):
    f, box, more = TRUE[name]
    result = certify(f, box, budget=1_000_000, **more)
    assert result, result
    assert result.status == "proved"
    assert result.bound <= 0.0
    if len(result.settled[0]) < 3000:
        again = testing.recheck(result)
        assert again, again


@pytest.mark.parametrize("name", TRUE)
def test_no_sample_is_above_the_bound(name):
    f, box, more = TRUE[name]
    low, high = np.transpose(box)
    g = more.get("where", ())
    g = [g] if callable(g) else g
    result, rng = certify(f, box, budget=1_000_000, **more), np.random.default_rng(3)
    for x in low + rng.random((2000, len(low))) * (high - low):
        if all(k(x) <= 0.0 for k in g) and "outside" not in more:
            assert f(x) <= result.bound + 1e-12


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refuted_by_a_point_of_the_domain(name):
    f, box, more = WRONG[name]
    result = certify(f, box, budget=1_000_000, **more)
    assert result.status == "refuted", result
    assert not result
    x = result.counterexample.x
    low, high = np.transpose(box)
    assert (low <= x).all()
    assert (x <= high).all()
    value = float(f(x))
    assert value >= 0.0 if more.get("strict") else value > 0.0
    assert result.counterexample.lo <= value <= result.counterexample.hi
    if "where" in more:
        assert more["where"](x) <= 0.0
    if "outside" in more:
        assert np.linalg.norm(x) >= more["outside"]
    if result.counterexample.exact is None:
        assert mpmath.mpf(result.counterexample.lo) <= mpmath.mpf(result.counterexample.digits)
        assert mpmath.mpf(result.counterexample.digits) <= mpmath.mpf(result.counterexample.hi)
        assert len(result.counterexample.digits) > 95 or name == "strictly"
    else:
        rational = [Fraction(float(y)) for y in x]
        assert result.counterexample.lo <= result.counterexample.exact <= result.counterexample.hi
        if name == "Motzkin >= 1e-3":
            a, b = (y**2 for y in rational)
            assert result.counterexample.exact == Fraction(1e-3) - (a**2 * b + a * b**2 - 3 * a * b + 1)


def test_what_is_not_continuous_is_not_extrapolated():
    """tan rises on both sides of its pole; a step function has slope zero on both sides."""
    pole = certify(lambda x: np.tan(x[0]), [(1.0, 2.0)])
    assert pole.status == "refuted"
    step = certify(lambda x: np.where(x[0] > 1.0 / 3.0, 1.0, -1.0), [(-1.0, 1.0)])
    assert step.status == "refuted"
    cut = certify(lambda x: np.arctan2(x[1], -1.0 - x[0]) - 3.0, [(0.0, 1.0), (-1.0, 1.0)])
    assert cut.status == "refuted"


def test_what_touches_zero_is_undecided(tmp_path):
    result = certify(lambda x: 2.0 * x[0] * x[1] - x[0] ** 2 - x[1] ** 2, SQUARE, budget=10_000)
    assert result.status == "undecided"
    assert not result
    left = result.left
    assert 0.0 < left.share < 0.1
    assert np.isclose(left.volume, (left.hi - left.lo).prod(axis=1).sum(), rtol=1e-12)
    assert np.isclose(left.share, left.volume / 16.0, rtol=1e-12)
    assert 0.0 < left.worst < 0.1
    assert (np.abs(left.lo[:, 0] - left.lo[:, 1]) < 0.5).all()  # boxes along the diagonal
    assert re.search(r"of the volume is left", str(result))
    with pytest.raises(ArgumentError, match="proof: expected"):
        testing.recheck(result.save(tmp_path / "open.npz"))


def test_strictly_is_not_almost():
    """-(3 x - 1)^2 is zero at 1/3, which no double equals: it is not negative everywhere, but no point refutes it."""

    def f(x):
        return -((3.0 * x[0] - 1.0) ** 2)

    assert certify(f, [(0.0, 1.0)])
    assert certify(f, [(0.0, 1.0)], strict=True, budget=10_000).status == "undecided"


def test_boxes_are_settled_or_left():
    """No part of the domain is lost: volumes add up for any chunks."""
    result = certify(lambda x: 2.0 * x[0] * x[1] - x[0] ** 2 - x[1] ** 2, SQUARE, budget=3000)
    lo, hi, _ = result.settled
    assert np.isclose((hi - lo).prod(axis=1).sum() + result.left.volume, 16.0, rtol=1e-12)


def test_threads_find_the_same():
    f, box = (lambda x: -rosenbrock(x) + 0.9 * (1.0 - x[0]) ** 2 - 1e-3), SQUARE
    one, two = (certify(f, box, threads=k) for k in (1, 2))
    assert (one.status, one.boxes, one.bound) == (two.status, two.boxes, two.bound)
    assert all(np.array_equal(a, b) for a, b in zip(one.settled, two.settled))


def test_what_is_bounded_does_not_depend_on_how_fast_the_machine_is(monkeypatch):
    """The refuting point does not depend on it either; what the time limit leaves undecided is reported as
    undecided.
    """
    box, near = [(-1.0, 1.0)] * 2, testing.Ellipsoid(0.01)

    def outcomes():
        result = [certify(f, box, outside=near, budget=2000) for f in (ridge, lambda x: 1e-9 + ridge(x))]
        return [(x.status, x.boxes, x.bound, x.out_of_time, str(x.counterexample)) for x in result]

    usual = outcomes()
    ticks = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: 0.5 * next(ticks))
    assert outcomes() == usual
    late = certify(ridge, box, outside=near, budget=testing.Budget(2000, seconds=1.0))
    assert late.out_of_time
    assert "ended by its seconds, not by its boxes" in str(late)


def ridge(x):
    """-(x0 - x1)^2 / 2, expanded: zero on the diagonal, where no box can be settled."""
    return x[0] * x[1] - 0.5 * (x[0] ** 2 + x[1] ** 2)


def test_progress_is_the_share_that_is_settled():
    seen = []
    result = certify(lambda x: -motzkin(x) - 1e-4, SQUARE, progress=seen.append)
    assert result
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0, abs=1e-12)


def test_an_interrupt_loses_nothing():
    def stop(fraction):
        if fraction > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        certify(lambda x: 2.0 * x[0] * x[1] - x[0] ** 2 - x[1] ** 2, SQUARE, progress=stop)
    result = caught.value.certificate
    assert result.status == "undecided"
    lo, hi, _ = result.settled
    assert np.isclose((hi - lo).prod(axis=1).sum() + result.left.volume, 16.0, rtol=1e-12)


@pytest.mark.parametrize("where", ["claim.split", "shares", "_next", "_keep"])
def test_an_interrupt_inside_a_step_never_makes_a_proof(where, monkeypatch):
    claim = claim_of(lambda x: 2.0 * x[0] * x[1] - x[0] ** 2 - x[1] ** 2 - 1e-4, SQUARE)
    branching = BranchAndBound(BoundedClaim(claim))

    def stop(*args):
        raise KeyboardInterrupt

    for _ in range(5):
        with monkeypatch.context() as patched:
            owner, _, name = where.rpartition(".")
            patched.setattr(getattr(branching, owner) if owner else branching, name, stop)
            with pytest.raises(KeyboardInterrupt):
                branching.step(np.inf)
        assert not branching.proved
        branching.step(np.inf)
    branching.run(1e6, 60.0)
    assert branching.proved
    lo, hi, _ = branching.leaves
    assert uncovered(np.transpose(SQUARE), lo, hi) is None


BAD = {
    r"box: expected pairs \(lo, hi\)": {"box": []},
    r"box: expected pairs \(lo, hi\), shape \(n, 2\), got \(2,\)": {"box": [0.0, 1.0]},
    r"box: expected lo <= hi, got \(1\.0, 0\.0\) for coordinate 1: an empty domain": {"box": [(0.0, 1.0), (1.0, 0.0)]},
    r"box: expected finite sides, got \(0\.0, inf\) for coordinate 0": {"box": [(0.0, np.inf)]},
    r"box: expected finite sides, got \(nan, 1\.0\)": {"box": [(np.nan, 1.0)]},
    r"f: expected a function that returns one number, got 2": {"f": lambda x: x[:2]},
    r"f: expected a function that returns numbers, got 'no'": {"f": lambda x: "no"},
    r"f: expected a function that returns numbers, got a condition": {"f": lambda x: x[0] < 1.0},
    r"f: expected a function f\(x\)": {"f": 3.0},
    r"f: expected a number everywhere in the domain, .* got nan at x = \[-": {"f": lambda x: np.sqrt(x[0]) - 5.0},
    r"where\[0\]: expected a function that returns one number": {"where": lambda x: x[:2]},
    r"where: expected a list": {"where": 3.0},
    r"outside: expected a positive number": {"outside": -1.0},
    r"outside: expected an Ellipsoid in 2 dimensions": {"outside": testing.Ellipsoid([1.0, 1.0, 1.0])},
    r"strict: expected True or False": {"strict": 1},
    r"budget: expected .*boxes": {"budget": 0},
    r"budget: expected a Budget": {"budget": testing.Budget},
    r"threads: expected a whole number": {"threads": 0},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    inputs = {"f": lambda x: x[0] - 5.0, "box": [(-1.0, 1.0), (-1.0, 1.0)]} | BAD[message]
    with pytest.raises(ArgumentError, match=message):
        certify(inputs.pop("f"), inputs.pop("box"), **inputs)


UNDEFINED = {  # on part of the box; a term that is multiplied by zero is computed nevertheless
    "0 log x": lambda x: 0.0 * np.log(x[0]) - 1.0,
    "0 sqrt x": lambda x: 0.0 * np.sqrt(x[0]) - 1.0,
    "0 / x": lambda x: 0.0 / x[0] - 1.0,
    "0 arcsin 2x": lambda x: 0.0 * np.arcsin(2.0 * x[0]) - 1.0,
    "log x - 9": lambda x: np.log(x[0]) - 9.0,
    "x / x - 2": lambda x: x[0] / x[0] - 2.0,
    "0 / (x - 1 / 3)": lambda x: 0.0 / (x[0] - 1.0 / 3.0) - 1.0,
    "0 log(x + 0.99999)": lambda x: 0.0 * np.log(x[0] + 0.99999) - 1.0,
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_nothing_is_proved_of_what_is_undefined_on_part_of_the_box(name):
    with contextlib.suppress(ArgumentError):  # if a point without a value is found
        assert certify(UNDEFINED[name], [(-1.0, 1.0)], budget=2000).status == "undecided"
    guarded = certify(UNDEFINED[name], [(-1.0, 1.0)], where=[lambda x: 0.4 - x[0], lambda x: x[0] - 0.45])
    assert guarded.status == "proved"


@pytest.mark.parametrize("empty", [{"outside": 1.5}, {"where": lambda x: 1.0 + x[0] ** 2}])
def test_a_claim_about_no_point_is_refused(empty):
    with pytest.raises(ArgumentError, match="outside, where: expected a domain with at least one point"):
        certify(lambda x: 1.0 + x[0] ** 2, [(-1.0, 1.0), (-1.0, 1.0)], **empty)


class Moody:
    """Another function for symbols than for numbers."""

    def __call__(self, x):
        return 1.0 + 0.0 * x[0] if getattr(x[0], "graph", None) is None else x[0] - 5.0


def test_a_function_that_is_another_one_where_it_is_traced_is_refused():
    with pytest.raises(UntraceableError, match=r"f: the traced function returns -5, Python 1, at x = \[0\.0\]"):
        certify(Moody(), [(-1.0, 1.0)])


def test_what_does_not_trace_names_the_line():
    def f(x):
        return -float(f"{x[0]}")

    with pytest.raises(
        UntraceableError, match=rf"f can not be traced: .*test_certify.py, line {f.__code__.co_firstlineno + 1}"
    ):
        certify(f, [(0.0, 1.0)])


class Bowl:
    def __init__(self, depth):
        self.depth = depth

    def __call__(self, x):
        y = np.zeros(2)
        y[:] = x
        return self.method(y)

    def method(self, x):
        return -self.depth - max(x[0], x[1], 0.0) - np.sum(x**2)


def test_functions_of_any_kind():
    space = {}
    exec("import numpy as np\ndef f(x):\n    y = np.empty(2)\n    y[:] = x\n    return -1.0 - y @ y", space)
    for f in (Bowl(1.0), Bowl(1.0).method, functools.partial(Bowl.method, Bowl(1.0)), space["f"]):
        assert certify(f, SQUARE), f


def test_too_many_dimensions_are_refused_with_an_estimate():
    def f(x):
        return sum(0.9 * x[k] * x[k - 1] - 0.905 * x[k] ** 2 for k in range(14))

    with pytest.raises(
        ArgumentError, match=r"box: expected a domain that 1e\+06 boxes can settle, got one of 14 dim.*e\+"
    ):
        certify(f, [(-1.0, 1.0)] * 14, outside=0.5, budget=1_000_000)


def along_two_link(percent, radius, Lambda=5.0, K=20.0):
    """V' of the bundled `Passivity` about (0.5, 1) rad, every inertial parameter off by up to `percent`; its domain.

    V' = s . Y(q, v, a_ref, v_ref) (p_model - p_true) - v . K v - e . Lambda K Lambda e, Mdot - 2C being skew.
    """
    robot = models.two_link()
    parameters = robot.parameters.ravel()
    used = np.flatnonzero(parameters)

    def rate(x):
        e, v, p = x[:2], x[2:4], np.zeros(20)
        p[used] = x[4:]
        v_ref = -Lambda * e
        Y = robot.regressor(np.array([0.5, 1.0]) + e, v, -Lambda * v, v_ref)
        return (v - v_ref) @ (Y @ p) - K * (v @ v) - Lambda * K * Lambda * (e @ e)

    off = percent / 100.0 * np.abs(parameters[used])
    box = np.concatenate([[(-1.0, 1.0)] * 2, [(-2.0, 2.0)] * 2, np.transpose([-off, off])])
    return rate, box, testing.Ellipsoid([radius, radius, 5 * radius, 5 * radius, *[np.inf] * len(used)])


def test_a_lyapunov_function_of_a_closed_loop_decreases():
    """A box of 14 dimensions: four of the state, ten parameters."""
    rate, box, ball = along_two_link(20.0, 0.3)
    result = certify(rate, box, outside=ball)
    assert result, result
    assert result.claim.n == 14
    rate, box, ball = along_two_link(50.0, 0.1)
    assert certify(rate, box, outside=ball).status == "refuted"


@pytest.mark.slow
def test_closer_to_the_equilibrium_and_confirmed():
    rate, box, ball = along_two_link(20.0, 0.05)
    result = certify(rate, box, outside=ball)
    assert result, result
    again = testing.recheck(result)
    assert again, again


def test_a_bar_is_drawn():
    assert certify(lambda x: -motzkin(x) - 1e-3, SQUARE, progress=True)


class Counts:
    """A function that returns other numbers after its first calls."""

    def __init__(self, calls):
        self.calls, self.count = calls, 0

    def __call__(self, x):
        self.count += 1
        return x[0] - 2.0 if self.count < self.calls else 5.0


@pytest.mark.parametrize("calls", [2, 1000])
@pytest.mark.parametrize("place", ["f", "where[0]"])
def test_functions_with_memory_are_refused_with_the_line_and_stay_as_they_are(place, calls):
    counts, other = Counts(calls), lambda x: x[0] - 2.0
    f, constraint = (counts, other) if place == "f" else (other, counts)
    message = rf"{re.escape(place)}\.count changes during a call, in .*test_certify\.py, line \d+: .* compute the value"
    with pytest.raises(UntraceableError, match=message):
        certify(f, [(0.0, 0.9)], where=constraint)
    assert counts.count == 0


class OfNumbers:
    """A factor of which numpy's numbers compute another product than other objects."""

    def __array_ufunc__(self, ufunc, method, *args, **_):
        return -1.0

    def __rmul__(self, x):
        return 1.0 + 0.0 * x


FACTOR = OfNumbers()


def test_a_constraint_that_is_another_one_where_it_is_traced_is_refused():
    message = r"where\[1\]: the traced function returns 1, Python -1, at x = \[0\.45\]|OfNumbers"
    with pytest.raises(UntraceableError, match=message):
        certify(lambda x: x[0] - 0.5, [(0.0, 0.9)], where=[lambda x: x[0] - 0.8, lambda x: x[0] * FACTOR])
