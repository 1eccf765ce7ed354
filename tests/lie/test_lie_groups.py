"""The contract of LieGroup for every group, so3 and se3 against the matrix exponential, and error messages."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from geomctrl import se3, so3
from geomctrl.errors import ArgumentError
from geomctrl.kernels import se3 as se3_kernels
from geomctrl.kernels import so3 as so3_kernels
from geomctrl.kernels import so3xr3 as so3xr3_kernels
from geomctrl.kernels.groups import Entries
from geomctrl.kernels.jit import Kernel
from geomctrl.lie.contract import rotation
from geomctrl.lie.groups import SE3, SO3, LieGroup, Product, Rn, SO3xR3

PI = np.pi
GROUPS = [
    Rn(1),
    Rn(3),
    SO3(),
    SE3(),
    SO3xR3(),
    Product(Rn(2), Rn(3)),
    Product(SO3(), Rn(2)),
    Product(Rn(1), Product(SE3(), Rn(2), Product(Rn(1), SO3xR3())), SO3()),
]
BELOW_PI = [0.0, 1e-300, 1e-9, 1e-4, 0.1, 1.0, 3.0, PI - 1e-4, PI - 1e-9]
BELOW_2PI = [*BELOW_PI, PI, 3.2, 5.0]

every_group = pytest.mark.parametrize("group", GROUPS, ids=repr)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12, deadline=None, derandomize=True)


def vector(group, rng, angle):
    """Return an algebra vector whose rotations all have the given angle."""
    if isinstance(group, Product):
        return np.concatenate([vector(g, rng, angle) for g in group.groups])
    x = rng.normal(size=group.dim)
    if not isinstance(group, Rn):
        x[:3] *= angle / np.linalg.norm(x[:3])
    return x


def close(a, b, tolerance=1e-13):
    assert np.shape(a) == np.shape(b)
    assert np.abs(np.asarray(a) - b).max(initial=0.0) <= tolerance * max(1.0, np.abs(b).max(initial=0.0))


# --- the group and its exponential ---------------------------------------------------------------------------------


@every_group
@given(seed=seeds)
@few
def test_group_axioms(group, seed):
    rng = np.random.default_rng(seed)
    a, b, c = (group.random(rng) for _ in range(3))
    close(group.compose(group.compose(a, b), c), group.compose(a, group.compose(b, c)))
    close(group.compose(a, group.identity()), a)
    close(group.compose(group.identity(), a), a)
    close(group.compose(a, group.inverse(a)), group.identity())
    close(group.compose(group.inverse(a), a), group.identity())
    assert group.residual(group.compose(a, b)) < 1e-14


@every_group
@given(seed=seeds, angle=st.sampled_from(BELOW_PI))
@few
def test_log_inverts_exp(group, seed, angle):
    x = vector(group, np.random.default_rng(seed), angle)
    a = group.exp(x)
    close(group.log(a), x, 1e-14)
    close(group.compose(a, group.exp(-x)), group.identity(), 1e-14)
    assert group.residual(a) < 1e-14


@every_group
@given(seed=seeds)
@few
def test_exp_inverts_log(group, seed):
    a = group.random(np.random.default_rng(seed))
    close(group.exp(group.log(a)), a, 1e-14)


@given(seed=seeds, angle=st.sampled_from([*BELOW_2PI, 2 * PI, 20.0]))
@few
def test_exp_is_the_matrix_exponential(seed, angle):
    x = vector(SE3(), np.random.default_rng(seed), angle)
    close(se3.exp(x), expm(se3.hat(x)), 1e-13)
    close(so3.exp(x[:3]), expm(so3.hat(x[:3])), 1e-13)


# --- adjoint -------------------------------------------------------------------------------------------------------


@every_group
@given(seed=seeds, angle=st.sampled_from(BELOW_PI))
@few
def test_adjoint_is_a_homomorphism_and_conjugates(group, seed, angle):
    rng = np.random.default_rng(seed)
    a, b, x = group.random(rng), group.random(rng), vector(group, rng, angle)
    close(group.Ad(group.compose(a, b)), group.Ad(a) @ group.Ad(b))
    close(group.Ad(group.inverse(a)), np.linalg.inv(group.Ad(a)))
    conjugated = group.compose(group.compose(a, group.exp(x)), group.inverse(a))
    close(group.exp(group.Ad(a) @ x), conjugated)
    close(group.Ad(group.exp(x)), expm(group.ad(x)))


@every_group
@given(seed=seeds)
@few
def test_ad_is_the_derivative_of_Ad_and_a_lie_bracket(group, seed):
    rng = np.random.default_rng(seed)
    x, y, z = (vector(group, rng, 1.3) for _ in range(3))
    h = 1e-5
    close((group.Ad(group.exp(h * x)) - group.Ad(group.exp(-h * x))) / (2 * h), group.ad(x), 1e-9)

    def bracket(u, v):
        return group.ad(u) @ v

    close(bracket(x, y), -bracket(y, x))
    jacobi = bracket(x, bracket(y, z)) + bracket(y, bracket(z, x)) + bracket(z, bracket(x, y))
    close(jacobi, np.zeros(group.dim))


@given(seed=seeds)
@few
def test_ad_is_the_commutator_and_Ad_the_conjugation_of_matrices(seed):
    rng = np.random.default_rng(seed)
    T, x, y = SE3().random(rng), rng.normal(size=6), rng.normal(size=6)
    close(se3.hat(se3.ad(x) @ y), se3.hat(x) @ se3.hat(y) - se3.hat(y) @ se3.hat(x))
    close(se3.hat(se3.Ad(T) @ x), T @ se3.hat(x) @ np.linalg.inv(T))
    close(so3.hat(so3.Ad(T[:3, :3]) @ x[:3]), T[:3, :3] @ so3.hat(x[:3]) @ T[:3, :3].T)
    close(so3.ad(x[:3]) @ y[:3], np.cross(x[:3], y[:3]))


# --- differential of the exponential -------------------------------------------------------------------------------


@every_group
@given(seed=seeds, angle=st.sampled_from(BELOW_2PI))
@few
def test_dexp_is_its_series_and_dexp_inv_its_inverse(group, seed, angle):
    x = vector(group, np.random.default_rng(seed), angle)
    term = series = np.eye(group.dim)
    for k in range(1, 60):
        term = term @ group.ad(x) / (k + 1)
        series = series + term
    close(group.dexp(x), series)
    close(group.dexp_inv(x) @ group.dexp(x), np.eye(group.dim), 1e-12)


@every_group
@given(seed=seeds, angle=st.sampled_from([0.0, 1e-4, 1.0, 3.0, 5.0]))
@few
def test_dexp_is_right_trivialised(group, seed, angle):
    rng = np.random.default_rng(seed)
    x, y = vector(group, rng, angle), vector(group, rng, 1.0)
    h = 1e-5
    ahead, behind = group.exp(x + h * y), group.exp(x - h * y)
    spatial = group.log(group.compose(ahead, group.inverse(behind))) / (2 * h)
    body = group.log(group.compose(group.inverse(behind), ahead)) / (2 * h)
    close(group.dexp(x) @ y, spatial, 1e-8)
    close(group.dexp(-x) @ y, body, 1e-8)


@pytest.mark.parametrize(("algebra", "n"), [(so3, 3), (se3, 6)])
def test_applying_dexp_without_its_matrix(algebra, n):
    x, y = np.random.default_rng(3).normal(size=(2, 4, 5, n))
    for function in (algebra.dexp, algebra.dexp_inv):
        close(function(x, y), (function(x) @ y[..., None])[..., 0], 1e-14)


# --- the integrators' shortcuts, batches ---------------------------------------------------------------------------


@every_group
@given(seed=seeds, angle=st.sampled_from(BELOW_2PI))
@few
def test_advance_and_dexp_inv_mul_are_their_definitions(group, seed, angle):
    rng = np.random.default_rng(seed)
    a, x, y = group.random(rng), vector(group, rng, angle), rng.normal(size=group.dim)
    moved, pulled = group.compose(a, group.exp(x)), group.dexp_inv(x) @ y
    close(group.advance(a, x), moved, 1e-14)
    close(group.dexp_inv_mul(x, y), pulled, 1e-13)
    # arrays that no kernel accepts unchanged
    a.flags.writeable = False
    spread = np.repeat(x, 2)[::2]
    close(group.advance(a, spread), moved, 1e-14)
    close(group.advance(a.tolist(), x.tolist()), moved, 1e-14)
    close(group.dexp_inv_mul(spread, np.repeat(y, 2)[::2]), pulled, 1e-13)
    close(group.dexp_inv_mul(x.tolist(), y.tolist()), pulled, 1e-13)


@pytest.mark.parametrize("entries", [so3_kernels, se3_kernels, so3xr3_kernels])
def test_entries_made_by_one_factory_are_the_modules_own(entries):
    """The names must be equal, because the compiled function and its file on disk are found by name."""
    for name in Entries._fields:
        function = getattr(entries, name).py_func
        assert (function.__module__, function.__name__, function.__qualname__) == (entries.__name__, name, name)
    group = next(g for g in GROUPS if getattr(g, "kernels", None) is entries)
    group.advance(group.identity(), np.zeros(group.dim))
    assert not isinstance(entries.advance_one, Kernel)


@every_group
@pytest.mark.parametrize("angle", [0.0, 1.0, 2 * PI, 20.0])
def test_rotation_is_the_largest_imaginary_eigenvalue_of_ad(group, angle):
    rng = np.random.default_rng(5)
    x = np.array([vector(group, rng, s * angle) for s in (0.5, 1.0, 0.25)])
    x[2, : group.dim // 2] = vector(group, rng, angle)[: group.dim // 2]  # factors that rotate by different angles
    angles = np.abs(np.linalg.eigvals(group.ad(x)).imag).max(axis=-1)
    close(group.rotation(x), angles, 1e-6)  # eigenvalues are double on SE(3), so they have half the digits
    close(rotation(group, x[1]), angles[1], 1e-6)


def test_rotation_of_a_group_that_does_not_say_it():
    class Mine:
        dim, ad = 6, staticmethod(se3.ad)

    x = np.random.default_rng(0).normal(size=(3, 6))
    close(rotation(Mine(), x), SE3().rotation(x), 1e-6)
    for group in (Mine(), SE3()):
        with pytest.raises(ArgumentError, match="x: expected finite numbers, got nan"):
            rotation(group, np.array([np.nan] * 6))
    for nothing in ("SE3", SE3, None):
        with pytest.raises(ArgumentError, match="group: expected a LieGroup"):
            rotation(nothing, x)


@every_group
@pytest.mark.parametrize("batch", [(4,), (2, 3), (1, 1), (0,), (2, 0)])
def test_batch_is_a_loop(group, batch):
    rng = np.random.default_rng(5)
    n = int(np.prod(batch))

    def stack(items, shape):
        return np.array(items, dtype=float).reshape(*batch, *shape)

    a = stack([group.random(rng) for _ in range(n)], group.shape)
    b = stack([group.random(rng) for _ in range(n)], group.shape)
    x = stack([vector(group, rng, 2.0) for _ in range(n)], (group.dim,))
    y = stack(rng.normal(size=(n, group.dim)), (group.dim,))
    matrix = (group.dim, group.dim)
    for name, arguments, shape in [
        ("compose", (a, b), group.shape),
        ("inverse", (a,), group.shape),
        ("exp", (x,), group.shape),
        ("log", (a,), (group.dim,)),
        ("Ad", (a,), matrix),
        ("ad", (x,), matrix),
        ("dexp", (x,), matrix),
        ("dexp_inv", (x,), matrix),
        ("dexp_inv_mul", (x, y), (group.dim,)),
        ("advance", (a, x), group.shape),
        ("residual", (a,), ()),
    ]:
        method = getattr(group, name)
        whole = method(*arguments)
        assert whole.shape == (*batch, *shape), name
        assert whole.dtype == np.float64
        for i in np.ndindex(*batch):
            close(whole[i], method(*(argument[i] for argument in arguments)), 1e-14)


# --- values, layout, protocol --------------------------------------------------------------------------------------


@every_group
def test_groups_are_values(group):
    twin = eval(repr(group))
    assert twin == group
    assert hash(twin) == hash(group)
    assert pickle.loads(pickle.dumps(group)) == group
    assert isinstance(group, LieGroup)
    assert sum(group == other for other in GROUPS) == 1
    with pytest.raises((FrozenInstanceError, AttributeError)):
        group.dim = 5
    first = group.identity()
    first[...] = 7.0
    assert group.residual(group.identity()) == 0.0
    close(group.exp(np.zeros(group.dim)), group.identity(), 0.0)


@every_group
def test_results_share_no_memory_with_arguments(group):
    rng = np.random.default_rng(6)
    a, x = group.random(rng), vector(group, rng, 1.0)
    for result, argument in [
        (group.exp(x), x),
        (group.log(a), a),
        (group.inverse(a), a),
        (group.compose(a, group.identity()), a),
        (group.advance(a, np.zeros(group.dim)), a),
        (group.Ad(a), a),
    ]:
        assert not np.shares_memory(result, argument)


def test_rotations_are_drawn_uniformly():
    rng = np.random.default_rng(7)
    R = np.array([SO3().random(rng) for _ in range(4000)])
    assert np.abs(R.mean(axis=0)).max() < 0.05
    assert np.abs((R**2).mean(axis=0) - 1 / 3).max() < 0.03


def test_layout_of_SO3xR3():
    rng = np.random.default_rng(8)
    a, x = SO3xR3().random(rng), rng.normal(size=6)
    b = SO3xR3().advance(a, x)
    close(b[:, :3], a[:, :3] @ so3.exp(x[:3]))
    close(b[:, 3], a[:, 3] + x[3:])


def test_product_splits_and_joins():
    inner = Product(SO3(), Rn(1))
    group = Product(Rn(2), inner, SE3())
    assert group.shape == (2 + 10 + 16,)
    assert group.dim == 2 + 4 + 6
    y = np.stack([group.random(np.random.default_rng(i)) for i in range(3)])
    parts = group.split(y)
    assert [p.shape for p in parts] == [(3, 2), (3, 10), (3, 4, 4)]
    assert np.array_equal(group.join(parts), y)
    close(inner.split(parts[1])[0] @ inner.split(parts[1])[0].swapaxes(1, 2), np.broadcast_to(np.eye(3), (3, 3, 3)))


def test_a_product_of_vectors_costs_what_a_vector_costs():
    group, y = Product(Rn(2), Product(Rn(1), Rn(4))), np.arange(7.0)
    assert group.dexp_inv_mul(np.ones(7), y) is y
    assert group._vector == Rn(7)
    assert np.array_equal(group.advance(y, np.ones(7)), y + 1.0)


def test_a_product_takes_groups_of_others():
    class Scale(Rn):
        """The positive numbers with multiplication."""

        def identity(self):
            return np.ones(self.n)

        def compose(self, a, b):
            return a * b

        def exp(self, x):
            return np.exp(x)

        def advance(self, y, x):
            return y * np.exp(x)

    group = Product(Rn(1), Scale(2), Rn(1))
    y = np.array([1.0, 2.0, 3.0, 4.0])
    assert np.array_equal(group.identity(), [0, 1, 1, 0])
    assert np.array_equal(group.compose(y, y), [2, 4, 9, 8])
    assert np.array_equal(group.advance(y, y), group.compose(y, group.exp(y)))


# --- what is not on the group, what is not finite, what has the wrong shape ----------------------------------------


def test_residual_measures_the_distance_from_the_group():
    R = np.eye(3)
    R[0, 0] += 1e-3
    assert SO3().residual(R) == pytest.approx(2e-3, rel=1e-2)
    assert SO3().residual(np.diag([1.0, 1.0, -1.0])) == 2.0
    T = np.eye(4)
    T[3, 1] = 0.25
    assert SE3().residual(T) == 0.25
    assert Product(Rn(1), SO3()).residual(np.r_[4.0, R.ravel()]) == SO3().residual(R)
    assert SO3xR3().residual(np.column_stack((R, np.ones(3)))) == SO3().residual(R)


@every_group
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(group, bad):
    rng = np.random.default_rng(9)
    for batch in [(), (2,)]:
        a, x = np.broadcast_to(group.random(rng), batch + group.shape).copy(), np.full((*batch, group.dim), 0.5)
        a_bad, x_bad = a.copy(), x.copy()
        a_bad[(0,) * a.ndim] = bad
        x_bad[(0,) * x.ndim] = bad
        for call in [
            lambda a_bad=a_bad: group.residual(a_bad),
            lambda a_bad=a_bad, x=x: group.advance(a_bad, x),
            lambda a=a, x_bad=x_bad: group.advance(a, x_bad),
            lambda x=x, x_bad=x_bad: group.dexp_inv_mul(x, x_bad),
            lambda x=x, x_bad=x_bad: group.dexp_inv_mul(x_bad, x),
            lambda x_bad=x_bad: group.rotation(x_bad),
            lambda a=a, a_bad=a_bad: group.compose(a, a_bad),
            lambda a_bad=a_bad: group.inverse(a_bad),
            lambda a_bad=a_bad: group.log(a_bad),
            lambda a_bad=a_bad: group.Ad(a_bad),
            lambda x_bad=x_bad: group.exp(x_bad),
            lambda x_bad=x_bad: group.ad(x_bad),
            lambda x_bad=x_bad: group.dexp(x_bad),
            lambda x_bad=x_bad: group.dexp_inv(x_bad),
        ]:
            with pytest.raises(ArgumentError, match="finite"):
                call()


@every_group
@pytest.mark.parametrize("batch", [(), (2,)])
def test_masked_arrays_and_arrays_of_objects_are_refused(group, batch):
    """Compiled entries ignore masks, so every public function must check for them."""
    a = np.broadcast_to(group.identity(), batch + group.shape).copy()
    x = np.full((*batch, group.dim), 0.5)
    for spoiled in (lambda b: np.ma.masked_array(b, b == b.flat[0]), lambda b: np.where(b == b.flat[0], None, b)):
        for name, arguments in [
            *(("advance", (spoiled(a), x)), ("advance", (a, spoiled(x)))),
            *(("dexp_inv_mul", (spoiled(x), x)), ("dexp_inv_mul", (x, spoiled(x)))),
            *(("compose", (spoiled(a), a)), ("residual", (spoiled(a),)), ("exp", (spoiled(x),))),
        ]:
            with pytest.raises(ArgumentError, match=r"masked|real numbers"):
                getattr(group, name)(*arguments)


@every_group
def test_wrong_shapes_are_refused(group):
    rng = np.random.default_rng(10)
    a, x = group.random(rng), np.ones(group.dim)
    long_a, long_x = np.ones(tuple(k + 1 for k in group.shape)), np.ones(group.dim + 1)
    for name, arguments in [
        ("compose", (a, long_a)),
        ("compose", (a, a[None])),
        ("inverse", (long_a,)),
        ("exp", (long_x,)),
        ("exp", (1.0,)),
        ("log", (long_a,)),
        ("Ad", (long_a,)),
        ("ad", (long_x,)),
        ("dexp", (long_x,)),
        ("dexp_inv", (long_x,)),
        ("advance", (a, long_x)),
        ("advance", (long_a, x)),
        ("advance", (a, x[None])),
        ("advance", (a, None)),
        ("advance", ("a", x)),
        ("residual", (long_a,)),
    ]:
        with pytest.raises(ArgumentError, match="expected"):
            getattr(group, name)(*arguments)
    if not isinstance(group, Rn) and not getattr(group, "_vector", None):
        for arguments in [(x, long_x), (long_x, x), (x[None], x), (x, None)]:
            with pytest.raises(ArgumentError, match="expected"):
                group.dexp_inv_mul(*arguments)


R = so3.exp([0.1, 0.2, 0.3])
STRETCHED = np.diag([1.0, 1.0, 1.001])
LEANING = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0.5, 1]])
MESSAGES = [
    (so3.exp, ([1.0, 2.0],), r"w: expected shape \(\.\.\., 3\), got \(2,\)"),
    (so3.exp, ([[0.0, 1.0, np.nan]],), r"w: expected finite numbers, got nan at index \[0, 2\]"),
    (so3.exp, ("abc",), r"w: expected real numbers of shape \(\.\.\., 3\), got 'abc'"),
    (so3.exp, ([1j, 0, 0],), r"w: expected real numbers"),
    (so3.exp, ([[1.0], [2.0, 3.0]],), r"w: expected real numbers"),
    (so3.log, (STRETCHED,), r"R: expected a rotation, got \|R\^T R - 1\| = 0\.002, det R = 1"),
    (so3.log, (-np.eye(3),), r"R: expected a rotation, got .* det R = -1"),
    (so3.log, ([np.eye(3), STRETCHED],), r"R: expected a rotation, got .* = 0\.002"),
    (so3.inverse, (2 * R,), r"R: expected a rotation"),
    (so3.Ad, (2 * R,), r"R: expected a rotation"),
    (so3.vee, (R,), r"W: expected a skew-symmetric matrix, got \|A \+ A\^T\| = 1\.9"),
    (so3.dexp, ([1, 2, 3], [1, 2]), r"y: expected shape \(\.\.\., 3\), got \(2,\)"),
    (
        so3.dexp_inv,
        ([1, 2, 3], np.ones((2, 3))),
        r"y: expected the leading axes of w, \(\), got \(2,\) \(nothing is broad",
    ),
    (se3.exp, ([1.0, 2.0],), r"X: expected shape \(\.\.\., 6\), got \(2,\)"),
    (se3.log, (np.diag([1.0, 1.0, 1.001, 1.0]),), r"T: expected a rotation, got \|R\^T R - 1\| = 0\.002"),
    (se3.log, (LEANING,), r"T: expected the last row \(0, 0, 0, 1\), got \[0\.0, 0\.0, 0\.5, 1\.0\]"),
    (se3.inverse, (LEANING,), r"T: expected the last row"),
    (se3.Ad, (LEANING,), r"T: expected the last row"),
    (se3.vee, (np.eye(4),), r"A: expected a skew-symmetric matrix"),
    (se3.vee, (LEANING - np.diag([1, 1, 1, 0]),), r"A: expected a last row of zeros, got one with 1"),
    (se3.dexp_inv, (np.ones(6), np.ones((2, 6))), r"Y: expected the leading axes of X, \(\), got \(2,\)"),
    (Rn, (-1,), r"n: expected a whole number from 0, got -1"),
    (Rn, (2.5,), r"n: expected a whole number"),
    (Rn, (10**30,), r"n: expected a whole number"),
    (Product, (), r"groups: expected at least one"),
    (Product, (SO3(), SE3), r"groups\[1\]: expected a LieGroup, .*, got <class"),
    (Product(SO3(), Rn(1)).join, ([R],), r"parts: expected 2 elements, got 1"),
    (Product(SO3(), Rn(1)).join, ([R, [1.0, 2.0]],), r"parts\[1\]: expected shape \(\.\.\., 1\), got \(2,\)"),
    (Product(SO3(), Rn(1)).join, ([R, [[1.0]]],), r"parts\[1\]: expected the leading axes of parts\[0\]"),
    (
        Product(Rn(1), SO3()).log,
        (np.ones(10),),
        r"^a\[\.\.\., 1:10\]: expected an element of SO3\(\): R: expected a rot",
    ),
]


@pytest.mark.parametrize(("function", "arguments", "message"), MESSAGES)
def test_messages_name_the_argument_what_was_expected_and_what_came(function, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        function(*arguments)


def test_hat_and_vee():
    X = np.arange(1.0, 13.0).reshape(2, 6)
    assert np.array_equal(se3.vee(se3.hat(X)), X)
    assert np.array_equal(so3.vee(so3.hat(X[:, :3])), X[:, :3])
    assert np.array_equal(so3.hat([1, 2, 3]), [[0, -3, 2], [3, 0, -1], [-2, 1, 0]])
    assert np.array_equal(se3.hat([1, 2, 3, 4, 5, 6])[:, 3], [4, 5, 6, 0])
    assert np.array_equal(so3.inverse(R), R.T)
    assert np.array_equal(so3.exp(np.array([1, 2, 3], dtype=np.float32)), so3.exp([1, 2, 3]))
