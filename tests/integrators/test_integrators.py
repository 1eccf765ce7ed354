"""Lie-group integrators: order conditions, measured order on forced bodies, invariance, tolerances, overflow."""

import math
from collections import deque
from functools import cache
from itertools import count, pairwise

import numpy as np
import pytest
import scipy.integrate
from fields import BODIES, END, flying, oscillator, reference, turning

from geomctrl.errors import IntegrationError
from geomctrl.integrators.driver import integrate, steps
from geomctrl.integrators.explicit import rk_step, step
from geomctrl.integrators.solution import Event
from geomctrl.integrators.step_control import Adaptive
from geomctrl.integrators.tableaus import Tableau, method, methods
from geomctrl.lie.groups import SE3, SO3, Product, Rn, SO3xR3

FIXED = [name for name in methods() if method(name).b_hat is None]
SPACES = [Rn(3), SO3(), SE3(), SO3xR3(), Product(SE3(), Rn(2), SO3())]
NAMES = [repr(group) for group in SPACES]

# --- order conditions: Butcher's rooted trees, Hairer, Norsett and Wanner section II.2 ------------------------------


@cache
def rooted_trees(n):
    """Return all rooted trees with n vertices, each as the sorted tuple of its branches."""
    if n == 1:
        return ((),)
    result = set()

    def grow(vertices, largest, branches):
        if vertices == 0:
            result.add(tuple(sorted(branches)))
        for k in range(1, min(vertices, largest) + 1):
            for branch in rooted_trees(k):
                grow(vertices - k, k, (*branches, branch))

    grow(n - 1, n - 1, ())
    return tuple(sorted(result))


def vertices(tree):
    return 1 + sum(map(vertices, tree))


def density(tree):
    return vertices(tree) * math.prod(map(density, tree))


def weight(tree, A):
    """Elementary weights Phi_i(tree) of the stages."""
    return math.prod((A @ weight(branch, A) for branch in tree), start=np.ones(len(A)))


def defect(b, A, n):
    """Largest violation of the conditions b Phi(tree) = 1 / density(tree) over the trees with n vertices."""
    return max(abs(b @ weight(tree, A) - 1.0 / density(tree)) for tree in rooted_trees(n))


def with_end_slope(tableau):
    """A with the slope at the end of the step as an additional stage."""
    s = len(tableau.c)
    A = np.zeros((s + 1, s + 1))
    A[:s, :s], A[s, :s] = tableau.A_classical, tableau.b_classical
    return A


def test_rooted_trees_are_counted_right():
    assert [len(rooted_trees(n)) for n in range(1, 10)] == [1, 1, 2, 4, 9, 20, 48, 115, 286]


@pytest.mark.parametrize("name", methods())
def test_order_conditions_hold_up_to_the_order_and_no_further(name):
    tableau = method(name)
    A, b = tableau.A_classical, tableau.b_classical
    assert max(defect(b, A, n) for n in range(1, tableau.order + 1)) < 5e-15
    assert defect(b, A, tableau.order + 1) > 1e-5
    np.testing.assert_allclose(tableau.c, A.sum(axis=1), rtol=0, atol=5e-15)


def test_embedded_weights_have_one_order_less():
    tableau = method("MK54")
    A = with_end_slope(tableau)
    assert max(defect(tableau.b_hat, A, n) for n in range(1, 5)) < 1e-15
    assert defect(tableau.b_hat, A, 5) > 1e-5


@pytest.mark.parametrize("theta", [0.1, 0.5, 0.77, 1.0])
def test_interpolant_satisfies_the_order_conditions_at_every_theta(theta):
    tableau = method("MK54")
    A = with_end_slope(tableau)
    b = tableau.interpolant @ theta ** np.arange(1, 5)
    for n in range(1, 5):
        for tree in rooted_trees(n):
            assert b @ weight(tree, A) == pytest.approx(theta**n / density(tree), abs=2e-15)
    if theta == 1.0:
        np.testing.assert_allclose(b, [*tableau.b, 0.0], rtol=0, atol=2e-15)


# --- measured order: bodies with forces that depend on pose and time, which also see reversed factors and signs -----

STEPS = {2: (128, 256), 3: (64, 128), 4: (32, 64), 5: (128, 256), 6: (32, 64), 8: (16, 32)}


def measured_order(tableau, body, group=None, steps=None):
    """log2 of the ratio of the root mean square errors along the path at two steps, one twice the other."""
    own, field, y0 = BODIES[body]
    errors = []
    for n in steps or STEPS[tableau.order]:
        path = integrate(field, y0, (0.0, END), END / n, tableau, group or own).y
        errors.append(np.sqrt(np.mean((path - reference(body)[:: 512 // n]) ** 2)))
    return np.log2(errors[0] / errors[1])


def embedded_rate(t, y):
    """`flying` as an ordinary differential equation on R^22, for scipy."""
    T, x = y[:16].reshape(4, 4), flying(t, y)
    return np.concatenate(((T @ SE3_hat(x[:6])).ravel(), x[6:]))


def SE3_hat(x):
    return np.array([[0, -x[2], x[1], x[3]], [x[2], 0, -x[0], x[4]], [-x[1], x[0], 0, x[5]], [0, 0, 0, 0]])


def test_reference_agrees_with_scipy_and_between_groups():
    y0 = BODIES["SE3"][2]
    other = scipy.integrate.solve_ivp(embedded_rate, (0.0, END), y0, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(reference("SE3")[-1], other, rtol=0, atol=1e-9)
    np.testing.assert_allclose(reference("SE3")[-1][:12], reference("SO3xR3")[-1][:12], rtol=0, atol=1e-12)
    np.testing.assert_allclose(reference("Product")[-1][9:21], reference("SO3xR3")[-1][:12], rtol=0, atol=1e-12)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", FIXED)
def test_measured_order(name, body):
    assert measured_order(method(name), body) == pytest.approx(method(name).order, abs=0.1)


@pytest.mark.parametrize("name", ["CG2", "CG3", "CG4", "CF2", "CF3", "CF4", "MK2", "MK3", "MK4", "MK6"])
def test_measured_order_when_the_velocity_itself_depends_on_pose_and_time(name):
    def end(n, name=name):
        return integrate(turning, np.eye(3), (0.0, 2.0), 2.0 / n, name, SO3(), every=n).y[-1]

    exact, n = end(64, "MK8"), STEPS[method(name).order][0]
    errors = [np.linalg.norm(end(k) - exact) for k in (n, 2 * n)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(method(name).order, abs=0.1)


class Disguised:
    """A user-defined group, in which a test can plant errors."""

    def __init__(self, group, **wrong):
        self._group = group
        self.__dict__.update(wrong)

    def __getattr__(self, name):
        return getattr(self._group, name)


def reversed_factors(tableau):
    """The tableau with the exponentials of every stage in the opposite order, written as a commutator-free one."""
    return Tableau("reversed", tableau.order, *(x[::-1] for x in as_commutator_free(tableau)), family="CF")


def as_commutator_free(tableau):
    if tableau.family == "CF":
        return tableau.A, tableau.b
    columns = np.eye(len(tableau.b))
    return np.array([tableau.A * e for e in columns]), np.array([tableau.b * e for e in columns])


@pytest.mark.parametrize("name", ["CG3", "CG4", "CF3", "CF4"])
def test_order_test_sees_reversed_factors(name):
    assert measured_order(reversed_factors(method(name)), "SE3", steps=(64, 128)) < 2.4


@pytest.mark.parametrize("name", ["MK3", "MK4", "MK6"])
def test_order_test_sees_dexp_inv_at_plus_theta(name):
    group = BODIES["SE3"][0]
    wrong = Disguised(group, dexp_inv_mul=lambda x, y: group.dexp_inv_mul(-x, y))
    assert measured_order(method(name), "SE3", wrong, steps=(64, 128)) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize("name", ["CG3", "CG4"])
def test_crouch_grossman_is_a_commutator_free_method(name):
    group, field, y0 = BODIES["SE3"]
    same = Tableau("same", 4, *as_commutator_free(method(name)), c=method(name).c, family="CF")
    np.testing.assert_allclose(
        step(name, field, 0.0, y0, 0.1, group), step(same, field, 0.0, y0, 0.1, group), atol=1e-15
    )


def test_any_explicit_butcher_tableau_makes_a_munthe_kaas_method():
    kutta = Tableau(
        "3/8 rule", 4, [[0, 0, 0, 0], [1 / 3, 0, 0, 0], [-1 / 3, 1, 0, 0], [1, -1, 1, 0]], [1 / 8, 3 / 8, 3 / 8, 1 / 8]
    )
    assert measured_order(kutta, "SE3") == pytest.approx(4.0, abs=0.1)


def test_repeated_munthe_kaas_stages_repeat_their_slopes():
    A = np.zeros((5, 5))
    A[1, 0] = A[2, 1] = A[4, 0] = 0.5  # the fourth stage repeats the first, the fifth the second
    lazy = Tableau("lazy", 2, A, [0, 1, 0, 0, 0])
    group, field, y0 = BODIES["SE3"]
    y, K = rk_step(field, 0.3, y0, 0.1, lazy, group)
    np.testing.assert_array_equal(K[3:], K[:2])
    midpoint = Tableau("midpoint", 2, [[0, 0], [0.5, 0]], [0, 1])
    np.testing.assert_array_equal(y, rk_step(field, 0.3, y0, 0.1, midpoint, group)[0])


def test_commutator_free_methods_reuse_exponentials():
    counts = {}
    for name in ("CG3", "CF3", "CG4", "CF4", "MK4"):
        calls = []
        group = Disguised(SO3(), advance=lambda y, x, calls=calls: calls.append(x) or SO3().advance(y, x))
        rk_step(lambda t, R: R[0] + t, 0.0, np.eye(3), 0.1, method(name), group)
        counts[name] = len(calls)
    assert counts == {"CG3": 6, "CF3": 3, "CG4": 15, "CF4": 5, "MK4": 4}  # Park and Chung 2005 table IV


# --- on R^n: the classical methods ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIXED)
def test_reduces_to_the_classical_method_on_Rn(name):
    tableau = method(name)
    A, b, c, y, h = tableau.A_classical, tableau.b_classical, tableau.c, np.array([1.0, 0.3]), 0.2
    K = np.zeros((len(c), 2))
    for i in range(len(c)):
        K[i] = oscillator(0.7 + c[i] * h, y + h * A[i] @ K)
    for group in (Rn(2), Product(Rn(1), Rn(1)), Disguised(Rn(2))):
        y_next, slopes = rk_step(oscillator, 0.7, y, h, tableau, group)
        np.testing.assert_allclose(y_next, y + h * b @ K, rtol=0, atol=2e-15)
        np.testing.assert_allclose(slopes, K, rtol=0, atol=2e-14)


@pytest.mark.parametrize("name", ["MK2", "MK3", "MK4"])
def test_linear_growth_is_the_truncated_exponential(name):
    z, p = -0.3, method(name).order
    y = step(name, lambda t, y: z * y, 0.0, [1.0], 1.0, Rn(1))
    assert y[0] == pytest.approx(sum(z**k / math.factorial(k) for k in range(p + 1)), abs=1e-15)


def test_dormand_prince_step_is_scipys():
    peer = scipy.integrate.RK45(oscillator, 0.0, [1.0, 0.3], 1.0, first_step=0.2, max_step=0.2, rtol=1.0, atol=1.0)
    peer.step()
    for name in ("MK5", "MK54"):
        np.testing.assert_allclose(step(name, oscillator, 0.0, [1.0, 0.3], 0.2, Rn(2)), peer.y, rtol=0, atol=1e-15)
    solution = integrate(oscillator, [1.0, 0.3], (0, 1), 0.2, Adaptive(rtol=1.0, atol=1.0), Rn(2), dense=True)
    times = np.linspace(0.0, 0.2, 7)
    np.testing.assert_allclose(solution.sol(times), peer.dense_output()(times).T, rtol=0, atol=1e-15)


def test_agrees_with_scipy_over_a_long_time():
    peer = scipy.integrate.solve_ivp(oscillator, (0, 20), [1.0, 0.3], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(integrate(oscillator, [1.0, 0.3], (0, 20), 0.02, "MK8", Rn(2)).y[-1], peer, atol=1e-10)


# --- what every method keeps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", SPACES, ids=NAMES)
@pytest.mark.parametrize("name", methods())
def test_constant_field_is_exact(name, group):
    rng = np.random.default_rng(3)
    y0, x = group.random(rng), rng.normal(size=group.dim)
    solution = integrate(lambda t, y: x, y0, (0.0, 1.0), 0.13, name, group)
    for t, y in zip(solution.t, solution.y):
        np.testing.assert_allclose(y, group.advance(y0, t * x), rtol=0, atol=5e-15 * (1 + np.abs(y0).max()) * 10)


@pytest.mark.parametrize("name", ["CG2", "CF3", "MK2"])
@pytest.mark.parametrize("group", [SO3(), SE3(), SO3xR3(), Product(SO3(), Rn(2))], ids=repr)
def test_group_membership_is_round_off_after_many_steps(group, name):
    """All steps are equal, so that rounding errors would add up; benchmarks/benchmark_integrators.py takes a
    million steps.
    """
    x = np.linspace(1.0, 0.1, group.dim)
    rolling = steps(lambda t, y: x, group.identity(), (0.0, 1e3), 0.1, name, group)
    assert group.residual(deque(rolling, maxlen=1)[0][1]) < 2e-15


@pytest.mark.parametrize("name", FIXED)
def test_left_invariance(name):
    """g y(t) solves the same equation if the field does not depend on the pose."""
    group = SE3()
    rng = np.random.default_rng(0)
    g, y0, a, b = group.random(rng), group.random(rng), rng.normal(size=6), rng.normal(size=6)
    ends = [
        integrate(lambda t, y: a + b * t, start, (0, 1), 0.25, name, group).y[-1]
        for start in (y0, group.compose(g, y0))
    ]
    np.testing.assert_allclose(ends[1], group.compose(g, ends[0]), rtol=0, atol=1e-13)


# --- drivers --------------------------------------------------------------------------------------------------------


def test_times_are_multiples_of_h_and_end_exactly():
    solution = integrate(turning, np.eye(3), (0.1, 1.0), 0.07, "CF2", SO3())
    assert solution.t[-1] == 1.0
    assert all(t == 0.1 + k * 0.07 for k, t in enumerate(solution.t[:-1]))
    assert solution.n_steps == 13
    assert solution.nfev == 26
    np.testing.assert_allclose(solution.h[1:], np.diff(solution.t), rtol=1e-12)
    assert (solution.success, solution.n_rejected, solution.reason) == (True, 0, "reached t_end = 1")


@pytest.mark.parametrize(("h", "n"), [(0.1, 10), (1.0 / 3.0, 3), (1.0, 1), (0.3, 4), (1.0 / 49.0, 49)])
def test_whole_numbers_of_steps_are_recognised(h, n):
    assert integrate(turning, np.eye(3), (0, 1), h, "MK2", SO3()).n_steps == n


def test_every_stores_each_kth_sample_and_the_last():
    full = integrate(turning, np.eye(3), (0, 1), 0.1, "MK4", SO3())
    thin = integrate(turning, np.eye(3), (0, 1), 0.1, "MK4", SO3(), every=4)
    np.testing.assert_array_equal(thin.t, full.t[[0, 4, 8, 10]])
    np.testing.assert_array_equal(thin.y, full.y[[0, 4, 8, 10]])


def test_steps_integrate_and_the_loop_of_ones_own_agree():
    full = integrate(turning, np.eye(3), (0, 1), 0.125, "CF4", SO3())
    t, y = 0.0, np.eye(3)
    for stored, (t_step, y_step) in zip(full.y, steps(turning, np.eye(3), (0, 1), 0.125, "CF4", SO3())):
        np.testing.assert_array_equal(y_step, stored)
        np.testing.assert_array_equal(y, stored)
        assert t == t_step
        t, y = t + 0.125, step("CF4", turning, t, y, 0.125, SO3())


def test_kernel_returns_the_field_at_the_beginning_and_takes_it_back():
    y, K = rk_step(turning, 0.4, np.eye(3), 0.1, method("MK4"), SO3())
    np.testing.assert_array_equal(K[0], turning(0.4, np.eye(3)))
    calls = []
    again, _ = rk_step(
        lambda t, R: calls.append(t) or turning(t, R), 0.4, np.eye(3), 0.1, method("MK4"), SO3(), k1=K[0]
    )
    np.testing.assert_array_equal(again, y)
    assert len(calls) == 3


def test_one_step_back_undoes_one_step_forth_to_the_order():
    y = step("MK6", turning, 0.1, step("MK6", turning, 0.0, np.eye(3), 0.1, SO3()), -0.1, SO3())
    np.testing.assert_allclose(y, np.eye(3), rtol=0, atol=1e-8)


def test_field_may_reuse_its_buffer():
    buffer = np.empty(3)

    def lazy(t, R):
        buffer[:] = turning(t, R)
        return buffer

    for chosen in ("MK4", Adaptive(rtol=1e-8)):
        a, b = (integrate(f, np.eye(3), (0, 5), 2.0, chosen, SO3(), dense=True) for f in (turning, lazy))
        assert a.n_rejected > 0 or chosen == "MK4"
        np.testing.assert_array_equal(a.y, b.y)
        np.testing.assert_array_equal(a.sol(0.123), b.sol(0.123))


@pytest.mark.parametrize("name", methods())
@pytest.mark.parametrize("group", [Rn(2), Product(SO3(), Rn(1))], ids=repr)
def test_field_events_and_the_callers_loop_may_write_on_their_state(name, group):
    def clean(t, y):
        return 0.5 * np.cos(t + np.arange(group.dim)) + 0.1 * y[-1]

    def scribbling(t, y):
        k = clean(t, y)
        y[:] = 77.0
        return k

    y0, event = group.identity(), Event(lambda t, y: np.copyto(y, 77.0) or t - 0.5)
    expected = integrate(clean, y0, (0.0, 1.0), 0.25, name, group, dense=True, events=Event(lambda t, y: t - 0.5))
    got = integrate(scribbling, y0, (0.0, 1.0), 0.25, name, group, dense=True, events=event)
    assert np.array_equal(got.y, expected.y)
    assert np.array_equal(got.events[0].t, expected.events[0].t)
    assert np.array_equal(got.sol(0.3), expected.sol(0.3))
    for k, (_, y) in enumerate(steps(clean, y0, (0.0, 1.0), 0.25, name, group)):
        assert np.array_equal(y, expected.y[k])
        y[:] = 77.0


def test_field_may_return_a_list_of_integers():
    assert step("MK4", lambda t, y: [1, 2], 0.0, [0.0, 0.0], 0.5, Rn(2)) == pytest.approx([0.5, 1.0])


def test_progress_rises_to_one():
    seen = []
    integrate(turning, np.eye(3), (0, 1), 1e-3, "CF2", SO3(), progress=seen.append)
    assert all(a < b for a, b in pairwise(seen))
    assert seen[-1] == 1.0
    assert 90 < len(seen) <= 101


# --- adaptive steps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["SE3", "SO3xR3"])
def test_error_follows_the_tolerance(body):
    group, field, y0 = BODIES[body]
    tolerances = 10.0 ** -np.arange(4, 11)
    errors = []
    for tol in tolerances:
        solution = integrate(field, y0, (0.0, END), None, Adaptive(rtol=tol, atol=tol), group)
        assert solution.success
        assert solution.n_rejected <= 0.3 * solution.n_steps
        errors.append(np.abs(solution.y[-1] - reference(body)[-1]).max())
    assert np.polyfit(np.log(tolerances), np.log(errors), 1)[0] == pytest.approx(1.0, abs=0.15)
    assert np.all(errors < 20 * tolerances)


def test_work_grows_as_the_fifth_root_of_the_tolerance():
    group, field, y0 = BODIES["SE3"]
    n = [integrate(field, y0, (0.0, END), None, Adaptive(rtol=t, atol=t), group).n_steps for t in (1e-6, 1e-11)]
    assert n[1] / n[0] == pytest.approx(10.0, rel=0.2)


def test_adaptive_counts_and_step_lengths():
    calls = []
    solution = integrate(
        lambda t, R: calls.append(t) or turning(t, R), np.eye(3), (0, 5), 2.0, Adaptive(rtol=1e-8), SO3()
    )
    assert solution.nfev == len(calls) == 1 + 6 * (solution.n_steps + solution.n_rejected)
    assert solution.n_rejected > 0
    assert solution.t[-1] == 5.0
    np.testing.assert_allclose(solution.h[1:], np.diff(solution.t), rtol=1e-10)


def test_step_is_chosen_and_found_again_after_a_kick():
    def kicked(t, y):
        return np.array([math.cos(t) + 100.0 * math.exp(-100.0 * (t - 5.0) ** 2)])

    solution = integrate(kicked, [0.0], (0, 10), 0.05, Adaptive(rtol=1e-9, atol=1e-9), Rn(1))
    quiet, loud = solution.h[solution.t > 8][:-1], solution.h[np.abs(solution.t - 5.0) < 0.1]
    assert 10.0 * loud.max() < quiet.max()
    assert solution.y[-1, 0] == pytest.approx(math.sin(10.0) + 10.0 * math.sqrt(math.pi), rel=1e-8)


def test_relative_tolerance_is_relative():
    """Scaling the solution of a linear equation has no effect if only rtol is used, as in scipy."""
    small, large = (
        integrate(lambda t, y: (math.cos(t) - 0.3) * y, [a], (0, 9), 0.1, Adaptive(atol=0.0), Rn(1)) for a in (1.0, 1e6)
    )
    np.testing.assert_allclose(large.t, small.t, rtol=1e-6)
    assert large.y[-1, 0] == pytest.approx(1e6 * math.exp(math.sin(9.0) - 2.7), rel=1e-4)


def test_componentwise_absolute_tolerance():
    group, field, y0 = BODIES["SO3"]
    loose = integrate(field, y0, (0, 2), None, Adaptive(rtol=0.0, atol=np.array([1e-6] * 3 + [1e3] * 3)), group)
    tight = integrate(field, y0, (0, 2), None, Adaptive(rtol=0.0, atol=1e-6), group)
    assert loose.n_steps < tight.n_steps


def test_adaptive_steps_end_at_t_end_to_the_last_bit():
    for t0, t_end in np.sort(np.random.default_rng(0).normal(size=(40, 2)), axis=1):
        solution = integrate(lambda t, y: [1.0], [0.0], (t0, t_end), t_end - t0, "MK54", Rn(1))
        assert solution.t.tolist() == [t0, t_end]


@pytest.mark.parametrize("frequency", [1.0, 1e4])
def test_the_first_step_is_found_without_trying(frequency):
    def turn(t, y):
        return [frequency * y[1], -frequency * y[0]]

    solution = integrate(turn, [1.0, 1.0], (0.0, 3.0 / frequency), None, "MK54", Rn(2))
    assert solution.n_rejected <= 2
    assert solution.h[1] > 0.01 * solution.h.max()


def test_tolerances_beyond_the_range_of_numbers_are_not_met():
    solution = integrate(oscillator, [0.0, 1.0], (0.0, 1.0), None, Adaptive(rtol=1e-300, atol=0.0), Rn(2))
    assert not solution.success
    assert solution.reason.startswith("rtol = 1e-300 and atol = 0 can not be met at t = 0")


def test_an_error_that_is_not_a_number_is_too_large():
    calls = count()

    class Counted(SE3):
        def advance(self, g, u):
            assert next(calls) < 2000, "a step is repeated for ever"
            return super().advance(g, u)

    def moving(t, T):
        return np.array([0.0, 0.0, 1.0 + t * t, math.cos(t), math.sin(3.0 * t), math.sin(7.0 * t)])

    T = SE3().exp(np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0]))
    T[:3, 3] = 1.7e308  # its logarithm, to which rtol refers, overflows
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(SE3().log(T)).any()
        solution = integrate(moving, T, (0.0, 1.0), 0.5, Adaptive(), Counted())
    assert not solution.success
    assert "can not be met at t = " in solution.reason


def test_blow_up_ends_with_a_reason_and_the_solution_so_far():
    solution = integrate(lambda t, y: y**2, [1.0], (0.0, 2.0), None, Adaptive(rtol=1e-8), Rn(1))
    assert not solution.success
    assert "can not be met at t = 1" in solution.reason
    assert solution.t[-1] == pytest.approx(1.0, abs=1e-6)
    early = solution.t < 0.999
    np.testing.assert_allclose(solution.y[early, 0], 1 / (1 - solution.t[early]), rtol=1e-5)


def test_blow_up_does_not_end_a_generator_silently():
    with pytest.raises(IntegrationError, match="can not be met at t = 1"):
        deque(steps(lambda t, y: y**2, [1.0], (0.0, 2.0), None, "MK54", Rn(1)), maxlen=1)


def test_adaptive_step_backs_off_where_the_field_is_not_defined():
    def root(t, y):
        return np.sqrt(y) if y[0] >= 0.0 else np.array([math.nan])

    solution = integrate(lambda t, y: -root(t, y) * (y > 0.5), [1.0], (0.0, 5.0), 5.0, Adaptive(rtol=1e-6), Rn(1))
    assert solution.success
    assert solution.n_rejected > 0


def test_adaptive_step_backs_off_from_the_singularity_of_dexp_inv():
    solution = integrate(
        lambda t, R: 5.0 * turning(t, R), np.eye(3), (0, 10), 10.0, Adaptive(rtol=1.0, atol=1.0), SO3()
    )
    assert solution.success
    assert solution.n_rejected > 0
