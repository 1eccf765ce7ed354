"""Lie-group integrators: order conditions, measured order on forced bodies, and what every method must keep."""

import math
from collections import deque
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.integrate

from geomctrl.errors import ArgumentError, GeomctrlError, IntegrationError, NameNotFoundError
from geomctrl.integrators.driver import integrate, steps
from geomctrl.integrators.events import Event
from geomctrl.integrators.explicit import rk_step, step
from geomctrl.integrators.march import March, Step, collect, step_count
from geomctrl.integrators.step_control import Adaptive
from geomctrl.integrators.tableaus import Tableau, method, methods
from geomctrl.lie.groups import SE3, SO3, Product, Rn, SO3xR3

FIXED = [name for name in methods() if method(name).b_hat is None]
SPACES = [Rn(3), SO3(), SE3(), SO3xR3(), Product(SE3(), Rn(2), SO3())]
NAMES = [repr(group) for group in SPACES]

# --- order conditions: Butcher's rooted trees, Hairer, Norsett and Wanner section II.2 ------------------------------


@cache
def rooted_trees(n):
    """Every rooted tree with n vertices, as the sorted tuple of its branches."""
    if n == 1:
        return ((),)
    found = set()

    def grow(vertices, largest, branches):
        if vertices == 0:
            found.add(tuple(sorted(branches)))
        for k in range(1, min(vertices, largest) + 1):
            for branch in rooted_trees(k):
                grow(vertices - k, k, (*branches, branch))

    grow(n - 1, n - 1, ())
    return tuple(sorted(found))


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
    """A with the slope at the end of the step as one more stage."""
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

INERTIA, MASS = np.array([0.4, 0.7, 1.0]), 2.0  # kg m^2, kg


def cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def torque(t, R):
    gravity = cross((0.1, 0.2, -0.1), R.T @ (0.0, 0.0, -4.0))
    return gravity + R.T @ (math.sin(t), 0.5 * math.cos(2 * t), 0.3) + (0.0, 0.0, 0.4)


def pivoted(t, y):
    """Euler's equations on SO(3) x R^3."""
    R, w = y[:9].reshape(3, 3), y[9:]
    return np.concatenate((w, (torque(t, R) - cross(w, INERTIA * w)) / INERTIA))


def accelerations(t, R, p, w, v):
    """Body-fixed accelerations of a body on a spring, driven in an inertial direction and damped."""
    force = R.T @ (np.array([math.cos(t), 0.0, math.sin(2 * t) - 4.0]) - 3.0 * p) - 0.2 * v
    return (torque(t, R) - cross(w, INERTIA * w)) / INERTIA, force / MASS - cross(w, v)


def flying(t, y):
    """On SE(3) x R^6: the velocity is the body twist."""
    T, w, v = y[:16].reshape(4, 4), y[16:19], y[19:]
    return np.concatenate((w, v, *accelerations(t, T[:3, :3], T[:3, 3], w, v)))


def flying_direct(t, y):
    """The same body on (SO(3) x R^3) x R^6: the velocity is (w, pdot)."""
    T, w, pdot = y[:12].reshape(3, 4), y[12:15], y[15:]
    R = T[:, :3]
    wdot, vdot = accelerations(t, R, T[:, 3], w, R.T @ pdot)
    return np.concatenate((w, pdot, wdot, R @ (vdot + cross(w, R.T @ pdot))))


TURN = np.array([0.3, -0.2, 0.5])
SPIN = np.array([1.5, -1.3, 2.8])
R0 = SO3().exp(TURN)
T0 = np.eye(4)
T0[:3, :3], T0[:3, 3] = R0, (0.1, 0.2, 0.3)
BODIES = {
    "SO3": (Product(SO3(), Rn(3)), pivoted, np.concatenate((R0.ravel(), SPIN))),
    "SE3": (Product(SE3(), Rn(6)), flying, np.concatenate((T0.ravel(), SPIN, R0.T @ (0.2, 0.1, -0.4)))),
    "SO3xR3": (Product(SO3xR3(), Rn(6)), flying_direct, np.concatenate((T0[:3].ravel(), SPIN, (0.2, 0.1, -0.4)))),
}
BODIES["Product"] = (
    Product(SO3(), SO3xR3(), Rn(3), Rn(6)),
    lambda t, y: np.concatenate(
        (y[21:24], y[24:], pivoted(t, y[np.r_[:9, 21:24]])[3:], flying_direct(t, y[np.r_[9:21, 24:30]])[6:])
    ),
    np.concatenate((R0.T.ravel(), T0[:3].ravel(), -SPIN, SPIN, (0.2, 0.1, -0.4))),
)
END = 2.0
STEPS = {2: (128, 256), 3: (64, 128), 4: (32, 64), 5: (128, 256), 6: (32, 64), 8: (16, 32)}


def measured_order(tableau, body, group=None, steps=None):
    """log2 of the ratio of the root mean square errors along the path at two steps, one the double of the other."""
    own, field, y0 = BODIES[body]
    errors = []
    for n in steps or STEPS[tableau.order]:
        path = integrate(field, y0, (0.0, END), END / n, tableau, group or own).y
        errors.append(np.sqrt(np.mean((path - reference(body)[:: 512 // n]) ** 2)))
    return np.log2(errors[0] / errors[1])


@cache
def reference(body):
    group, field, y0 = BODIES[body]
    return integrate(field, y0, (0.0, END), END / 512, "MK8", group).y


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
    """A group that is not what isinstance says, and may be wrong on purpose."""

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
    A[1, 0] = A[2, 1] = A[4, 0] = 0.5  # the fourth stage is the first again, the fifth the second
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


def oscillator(t, y):
    return np.array([y[1], math.sin(t) - y[0] - 0.1 * y[1] ** 3])


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
    """All steps alike, so that roundings would add up; a million in benchmarks/benchmark_integrators.py."""
    x = np.linspace(1.0, 0.1, group.dim)
    rolling = steps(lambda t, y: x, group.identity(), (0.0, 1e3), 0.1, name, group)
    assert group.residual(deque(rolling, maxlen=1)[0][1]) < 2e-15


@pytest.mark.parametrize("name", FIXED)
def test_left_invariance(name):
    """g y(t) solves the same equation when the field does not see the pose."""
    group = SE3()
    rng = np.random.default_rng(0)
    g, y0, a, b = group.random(rng), group.random(rng), rng.normal(size=6), rng.normal(size=6)
    ends = [
        integrate(lambda t, y: a + b * t, start, (0, 1), 0.25, name, group).y[-1]
        for start in (y0, group.compose(g, y0))
    ]
    np.testing.assert_allclose(ends[1], group.compose(g, ends[0]), rtol=0, atol=1e-13)


# --- drivers --------------------------------------------------------------------------------------------------------


def turning(t, R):
    return np.array([math.sin(2 * t) + R[0, 1], 1.2 * math.cos(t) - R[2, 2], 0.7 + R[1, 0] * R[0, 2]])


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
    """Scaling a linear equation's solution changes nothing when only rtol counts, as in scipy."""
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


# --- dense output and events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "order"), [("CG4", 4), ("CF4", 4), ("MK4", 4), ("MK8", 4), ("MK5", 5)])
def test_dense_output_order(name, order):
    group, field, y0 = BODIES["SE3"]
    errors = []
    for n in (16, 32, 64):
        solution = integrate(field, y0, (0.0, END), END / n, name, group, dense=True)
        errors.append(np.sqrt(np.mean((solution.sol(np.linspace(0.0, END, 513)) - reference("SE3")) ** 2)))
        np.testing.assert_allclose(solution.sol(solution.t), solution.y, rtol=0, atol=1e-13)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=0.25)


def test_dense_output_stays_on_the_group_and_inside_its_range():
    solution = integrate(turning, np.eye(3), (0, 1), 0.1, "MK4", SO3(), dense=True, every=3)
    assert SO3().residual(solution.sol(np.linspace(0, 1, 50))).max() < 1e-14
    assert solution.sol(0.55).shape == (3, 3)
    assert solution.sol([]).shape == (0, 3, 3)
    for t in (-0.1, 1.1, math.nan, [[0.5]]):
        with pytest.raises(ArgumentError, match=r"t: expected "):
            solution.sol(t)


@pytest.mark.parametrize(("name", "h"), [("CF4", 0.01), ("MK54", None)])
def test_events_are_located(name, h):
    def circle(t, y):
        return np.array([y[1], -y[0]])

    events = [Event(lambda t, y: y[0]), Event(lambda t, y: y[0], direction=1), lambda t, y: y[1]]
    events += [Event(lambda t, y: y[0], direction=-1), Event(lambda t, y: -y[1])]
    chosen = name if h else Adaptive(name, rtol=1e-10, atol=1e-12)
    solution = integrate(circle, [1.0, 0.0], (0, 10), h, chosen, Rn(2), events=events)
    zeros = math.pi * np.array([0.5, 1.5, 2.5])
    np.testing.assert_allclose(solution.events[0].t, zeros, rtol=0, atol=1e-8)
    np.testing.assert_allclose(solution.events[1].t, zeros[1::2], rtol=0, atol=1e-8)
    np.testing.assert_allclose(solution.events[3].t, zeros[::2], rtol=0, atol=1e-8)
    for k in (2, 4):  # zero at the start is no crossing
        np.testing.assert_allclose(solution.events[k].t, math.pi * np.arange(1, 4), rtol=0, atol=1e-8)
    np.testing.assert_allclose(solution.events[0].y, [[0, -1], [0, 1], [0, -1]], rtol=0, atol=1e-8)
    assert solution.t[-1] == 10.0


def test_a_crossing_at_a_sample_counts_once_and_one_at_the_beginning_does_not():
    solution = integrate(lambda t, y: [1.0], [0.0], (0.0, 1.0), 0.25, "MK2", Rn(1), events=[
        lambda t, y: y[0] - 0.5, lambda t, y: y[0], lambda t, y: 1.0 - y[0], lambda t, y: 0.0,
    ])  # fmt: skip
    at_sample, at_start, at_end, always = (x.t for x in solution.events)
    assert at_sample == pytest.approx([0.5], rel=1e-15)
    assert at_end == pytest.approx([1.0], rel=1e-15)
    assert at_start.size == always.size == 0


def test_terminal_event_ends_past_its_crossing_and_a_restart_goes_on():
    quarter = Event(lambda t, R: R[0, 0], terminal=True, name="edge on")
    field = lambda t, R: np.array([0.0, 0.0, 2.0])  # noqa: E731
    first = integrate(field, np.eye(3), (0, 3), 0.1, "MK4", SO3(), events=quarter, dense=True)
    assert first.success
    assert first.reason == "terminal event 'edge on' at t = 0.785398163"
    assert first.t[-1] == first.events[0].t[0] == first.sol.t_max == pytest.approx(math.pi / 4, abs=1e-14)
    np.testing.assert_array_equal(first.y[-1], first.events[0].y[0])
    assert first.h[-1] == pytest.approx(first.t[-1] - first.t[-2])
    second = integrate(field, first.y[-1], (first.t[-1], 3), 0.1, "MK4", SO3(), events=quarter)
    assert second.t[-1] == pytest.approx(3 * math.pi / 4, abs=1e-13)


def test_earlier_event_of_the_same_step_is_kept_and_the_later_is_not():
    events = [Event(lambda t, y, at=at: y[0] - at, terminal=at == 0.55) for at in (0.58, 0.55, 0.52)]
    solution = integrate(lambda t, y: np.ones(1), [0.0], (0, 1), 0.1, "MK2", Rn(1), events=events)
    assert [len(x.t) for x in solution.events] == [0, 1, 1]
    assert solution.t[-1] == pytest.approx(0.55)
    assert solution.events[0].y.shape == (0, 1)


# --- bad input ------------------------------------------------------------------------------------------------------

GOOD = {"field": turning, "y0": np.eye(3), "t_span": (0.0, 1.0), "h": 0.1, "method": "MK4", "group": SO3()}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"method": "MK4"}, "method: expected an embedded pair, .* got MK4, which steps by h"),
        ({"method": "MK5000"}, "method: expected a Tableau or one of"),
        ({"rtol": -1.0}, "rtol: expected a number, not negative, got -1"),
        ({"atol": math.nan}, "atol: expected finite numbers"),
        ({"atol": [[1.0]]}, r"atol: expected a number or shape \(group.dim,\)"),
        ({"rtol": 0.0, "atol": 0.0}, "atol: expected positive numbers, as rtol is zero"),
    ],
)
def test_tolerances_that_are_none_are_refused(bad, message):
    with pytest.raises(GeomctrlError, match=message):
        Adaptive(**bad)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h": 0.0}, "h: expected a positive step, at most the span"),
        ({"h": -0.1}, "h: expected a positive step"),
        ({"h": 1.5}, "at most the span t_end - t0 = 1, got 1.5"),
        ({"h": math.nan}, "h: expected a finite number, got nan"),
        ({"h": "0.1"}, "h: expected a finite number, got '0.1'"),
        ({"h": None}, "h: expected a finite number, got None"),
        ({"group": SO3}, r"group: expected a LieGroup, SO3\(\) for example, got <class"),
        ({"group": None}, "group: expected a LieGroup"),
        ({"field": np.ones(3)}, r"field: expected a function field\(t, y\)"),
        ({"h": 1e-20}, "h: expected a step that shows"),
        ({"t_span": (1.0, 0.0)}, r"t_span: expected it to run forward, t0 < t_end, got \(1, 0\)"),
        ({"t_span": (1.0, 1.0)}, "t_span: expected it to run forward"),
        ({"t_span": (0.0, math.inf)}, r"t_span\[1\]: expected a finite number, got inf"),
        ({"t_span": 1.0}, "t_span: expected a pair"),
        ({"y0": np.eye(4)}, r"y0: expected shape \(\.\.\., 3, 3\), got \(4, 4\)"),
        ({"y0": 1.001 * np.eye(3)}, r"y0: expected an element of SO3\(\), residual below 1e-06, got 0.002"),
        ({"y0": np.diag([1.0, 1.0, -1.0])}, "y0: expected an element"),
        ({"y0": np.full((3, 3), math.nan)}, "y0: expected finite numbers"),
        ({"y0": "identity"}, "y0: expected real numbers"),
        ({"every": 0}, "every: expected a positive integer, got 0"),
        ({"every": 1.5}, "every: expected a positive integer, got 1.5"),
        ({"events": [3]}, "events: expected functions"),
        ({"events": 3}, "events: expected functions g\\(t, y\\), got 3"),
        ({"events": None}, "events: expected functions"),
        ({"progress": 3}, "progress: expected a function progress\\(fraction\\) or None, got 3"),
        ({"method": Adaptive(atol=[1.0, 1.0])}, r"atol: expected a number or shape \(3,\)"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ArgumentError, match=message):
        integrate(**{**GOOD, **change})


def test_bad_arguments_of_steps_are_named_before_the_first_step():
    with pytest.raises(ArgumentError, match="h: expected a positive step"):
        steps(turning, np.eye(3), (0, 1), -1.0, "MK4", SO3())


def test_bad_arguments_of_step_are_named():
    with pytest.raises(ArgumentError, match="h: expected a finite number other than zero"):
        step("MK4", turning, 0.0, np.eye(3), 0.0, SO3())
    with pytest.raises(ArgumentError, match=r"y: expected shape \(\.\.\., 2\), got \(1,\)"):
        step("MK4", oscillator, 0.0, [1.0], 0.1, Rn(2))
    with pytest.raises(ArgumentError, match="t: expected a finite number, got nan"):
        step("MK4", oscillator, math.nan, [1.0, 0.0], 0.1, Rn(2))
    with pytest.raises(IntegrationError, match="overflows between t = 0 and 1e\\+200"):
        step("CF2", lambda t, y: [1.0, 2.0, 3.0], 0.0, np.eye(3), 1e200, SO3())


def test_bad_events_and_times_are_named():
    with pytest.raises(ArgumentError, match=r"function: expected a function g\(t, y\), got 3"):
        Event(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match=r"event 'rise': direction: expected .*, got 'up'"):
        Event(lambda t, y: t, direction="up", name="rise")  # pyright: ignore[reportArgumentType]

    def late(t, y):
        return t - 0.5

    late.direction = None
    with pytest.raises(ArgumentError, match="event 'late': direction: expected"):
        integrate(**GOOD, events=late)
    sol = integrate(**GOOD, dense=True).sol
    for t in ("noon", None, [0.0, [1.0]], np.zeros((2, 2)), math.nan, 1.1):
        with pytest.raises(ArgumentError, match=r"t: expected "):
            sol(t)


def test_unknown_method_lists_the_known_ones():
    with pytest.raises(NameNotFoundError, match=r"one of CG2, .*MK8, got 'mk4'; did you mean MK4"):
        method("mk4")
    with pytest.raises(NameNotFoundError, match=r"got \['MK4'\]"):
        method(["MK4"])
    with pytest.raises(NameNotFoundError, match="got 'Euler'"):
        integrate(**{**GOOD, "method": "Euler"})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"A": [[0, 1], [1, 0]]}, "strictly lower triangular"),
        ({"A": [[0]]}, r"A, b: expected A \(s, s\) and b \(s,\) of MK, got \(1, 1\) and \(2,\)"),
        ({"A": [[0, 0], [math.nan, 0]]}, "A: expected finite"),
        ({"A": [[0, 0], [1]]}, "A: expected real numbers"),
        ({"b": [1.0, 1.0]}, "b: expected weights that sum to 1"),
        ({"b": []}, "A, b: expected A"),
        ({"c": [0.0]}, r"c: expected shape \(2,\)"),
        ({"family": "RK"}, "family: expected one of 'CG', 'CF', 'MK', got 'RK'"),
        ({"family": "CF"}, r"A \(kappa, s, s\)"),
        ({"b_hat": [1.0, 0.0]}, r"b_hat: expected shape \(s \+ 1,\), s = 2, and family MK"),
        ({"family": "CG", "interpolant": np.zeros((3, 4))}, "interpolant: expected shape .* and family MK"),
    ],
)
def test_bad_tableaus_are_named(table, message):
    with pytest.raises(ArgumentError, match=message):
        Tableau(**{"name": "mine", "order": 2, "A": [[0, 0], [1, 0]], "b": [0.5, 0.5], **table})


def test_tableaus_can_not_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        method("MK4").A[0, 0] = 1.0


@pytest.mark.parametrize("name", ["CG3", "CF4", "MK4", "MK54"])
@pytest.mark.parametrize("group", [Rn(3), SO3()], ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_field_that_is_not_finite_stops_with_the_solution_so_far(name, group, bad):
    def field(t, y):
        return np.array([1.0, bad if t > 0.5 else 0.0, -0.2])

    tableau = method(name)
    with pytest.raises(
        IntegrationError,
        match=rf"finite numbers, got .* at index 1 of 3, at t = 0\.5.*, stage [1-6] of {len(tableau.c)}",
    ) as e:
        integrate(field, group.identity(), (0.0, 1.0), 0.1, name, group, every=4)
    solution = e.value.solution
    assert not solution.success
    assert solution.reason == str(e.value)
    assert solution.t[-1] == pytest.approx(0.5)
    assert isinstance(e.value, GeomctrlError)


@pytest.mark.parametrize("value", [np.ones(2), np.ones((3, 1)), 1.0, np.ones(3) * 1j, "abc", None, [1.0, [2.0], 3.0]])
@pytest.mark.parametrize("group", [Rn(3), SO3()], ids=repr)
def test_field_of_the_wrong_kind(group, value):
    with pytest.raises(IntegrationError, match=r"field must return .*3.*, at t = 0, stage 1 of 4") as e:
        integrate(lambda t, y: value, group.identity(), (0, 1), 0.1, "MK4", group)
    assert len(e.value.solution.t) == 1


def test_large_numbers_are_not_mistaken_for_infinity():
    assert step("MK4", lambda t, y: np.array([1e200]), 0.0, [0.0], 1.0, Rn(1))[0] == pytest.approx(1e200)


def test_overflow_of_the_solution_is_reported():
    with np.errstate(over="ignore"), pytest.raises(IntegrationError, match="overflows between t = 0 and 1"):
        integrate(lambda t, y: np.array([1.7e308]), [1.7e308], (0, 2), 1.0, "CF2", Rn(1))


def test_step_that_turns_by_two_pi_says_halve_it():
    def field(t, R):
        return np.array([0.0, 0.0, 60.0]) + turning(t, R)

    with pytest.raises(
        IntegrationError,
        match=r"the step of h = 0\.104 from t = 0 turns by 6\.\d+ rad, but dexp\^-1 is singular at 2 pi: halve h",
    ) as e:
        integrate(field, np.eye(3), (0, 1), 0.104, "MK4", SO3())
    assert len(e.value.solution.t) == 1
    integrate(field, np.eye(3), (0, 1), 0.052, "MK4", SO3())


def test_infinite_increment_is_reported():
    with (
        np.errstate(over="ignore"),
        pytest.raises(
            IntegrationError, match=r"the solution overflows between t = 0 and 500: x: expected finite numbers, got inf"
        ),
    ):
        integrate(lambda t, R: np.array([0.0, 0.0, 1.7e308]), np.eye(3), (0, 1e3), 500.0, "MK4", SO3())


def test_a_long_translation_is_not_mistaken_for_a_turn():
    end = integrate(lambda t, y: np.array([0.1, 0, 0, 50.0, 0, 0]), np.eye(4), (0, 1), 0.5, "MK4", SE3()).y[-1]
    assert end[0, 3] == pytest.approx(50.0)


def test_many_bodies_that_turn_by_little_each_are_not_mistaken_for_a_turn():
    """40 bodies, 1 rad each: the increment is longer than 2 pi, the largest rotation is not."""
    group, spin = Product(*[SO3()] * 40), np.tile([0.0, 0.6, 0.8], 40)
    end = integrate(lambda t, y: spin, group.identity(), (0, 1), 1.0, "MK4", group).y[-1]
    np.testing.assert_allclose(end, group.exp(spin), rtol=0, atol=1e-14)
    with pytest.raises(IntegrationError, match=r"turns by 7 rad, .* halve h"):
        integrate(lambda t, y: 7.0 * spin, group.identity(), (0, 2), 2.0, "MK4", group)


def test_event_that_is_not_a_number():
    bad = Event(lambda t, y: math.nan if t > 0.5 else 1.0, name="broken")
    with pytest.raises(
        IntegrationError, match=r"event 'broken' must return one finite number, got nan at t = 0\.6"
    ) as e:
        integrate(**GOOD, events=[bad])
    assert e.value.solution.t[-1] == pytest.approx(0.6)


# --- steppers of one's own -------------------------------------------------------------------------------------------


class ImplicitMidpoint:
    """y' = -y by the implicit midpoint rule; its memory counts the steps, and it gives up after `last` of them."""

    group = Rn(1)

    def __init__(self, last=10**6):
        self.last, self.nfev = last, 0

    def step(self, t, y, h, t_next, memory):
        self.nfev += 1
        count = (memory or 0) + 1
        if count > self.last:
            raise IntegrationError(f"enough, at t = {t:g}")
        return Step(t, y, h, t_next, y * (1.0 - 0.5 * h) / (1.0 + 0.5 * h), memory=count)


def test_a_march_takes_any_stepper_and_hands_its_memory_on():
    shown = []
    march = March(ImplicitMidpoint(), [1.0], (0.0, 1.05), 0.1)
    solution = collect(march, every=4, progress=shown.append)
    np.testing.assert_allclose(solution.t, [0.0, 0.4, 0.8, 1.05], rtol=0, atol=1e-15)
    factor = 0.95 / 1.05
    np.testing.assert_allclose(solution.y[:, 0], [1.0, factor**4, factor**8, factor**10 * 0.975 / 1.025], rtol=1e-14)
    np.testing.assert_allclose(solution.h, [0.0, 0.1, 0.1, 0.05], rtol=0, atol=1e-15)
    assert (solution.n_steps, solution.nfev, shown[-1]) == (11, 11, 1.0)
    with pytest.raises(IntegrationError, match="enough") as caught:
        collect(March(ImplicitMidpoint(5), [1.0], (0.0, 1.0), 0.1))
    assert len(caught.value.solution.t) == 6
    assert not caught.value.solution.success


@pytest.mark.parametrize(
    ("span", "h", "n"), [(1.0, 0.1, 10), (1.05, 0.1, 11), (0.3, 0.1, 3), (1e3, 1e-3, 10**6), (1, 1, 1)]
)
def test_rounding_adds_no_step(span, h, n):
    assert step_count(span, h) == n
