"""Terms as JAX functions: values, derivatives against differences, JAX's transformations, bad input."""

import gc as garbage
import pickle
import re
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from fake_cuda import FakeCuda, install
from oracles import assert_close
from urdf_text import gripper

from geomctrl import derivatives, models, testing
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError, NameNotFoundError
from geomctrl.kernels.couplings import fitting
from geomctrl.terms.requested_terms import FRAME_TERMS
from geomctrl.tracing.backends import buffer_calls, cache, gpu, gpu_calls
from geomctrl.tracing.traces import Trace

jax = pytest.importorskip("jax", reason="needs jax: pip install 'geomctrl[jax]'")
from jax import numpy as jnp  # noqa: E402

from geomctrl.interop import jax_functions  # noqa: E402


@pytest.fixture(autouse=True)
def float64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def coupled():
    """A floating gripper, one of whose fingers follows the other."""
    return models.load_urdf(gripper(), floating_base=True)


def floating():
    return testing.random_robot(np.random.default_rng(3), ["free", "revolute", "spherical"], [-1, 0, 1])


CONFIGURATIONS = {"q", "q0", "q1"}
ROBOTS = [pytest.param(coupled, id="coupled"), pytest.param(floating, id="floating", marks=pytest.mark.slow)]
ROBOTS += [pytest.param(partial(models.load, name), id=name, marks=pytest.mark.slow) for name in models.names()]


def states(robot, f, number, seed=0):
    """Arrays for the inputs of a function."""
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_configuration(rng) for _ in range(2 * number)])
    turns = {"q": q[:number], "q0": q[:number], "q1": q[number:]}
    return [turns[n] if n in turns else rng.normal(size=(number, *shape)) for n, shape in f.inputs.items()]


def by_library(robot, name, arrays):
    """The term of many states, by the robot's method, or where there is none by the loops that numba compiles."""
    if hasattr(type(robot), name):
        return getattr(robot, name)(*arrays)
    algorithm, fixed, _, optional = CATALOGUE[name]
    rows = iter(arrays)
    taken = [next(rows) if not x.optional or x.name in optional else np.empty((0, 0)) for x in algorithm.inputs]
    taken = [np.ascontiguousarray(x.reshape(len(x), -1)) if len(x) else x for x in taken]
    out = fitting(algorithm, robot._model).many(robot._model, *taken, *fixed.values())
    return out[0] if algorithm.may_fail else out


def flat(x):
    return [np.asarray(y) for y in (x if isinstance(x, tuple) else (x,))]


# --- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ROBOTS[:2])
@pytest.mark.parametrize("term", ["inverse_dynamics", "forward_dynamics_external", "gravity_force"])
def test_a_term_is_that_of_the_library(make, term):
    check_values(make(), term)


@pytest.mark.slow
@pytest.mark.parametrize("make", ROBOTS)
def test_every_term_is_that_of_the_library(make):
    for term in CATALOGUE:
        check_values(make(), term)


def check_values(robot, term):
    f = robot.to_jax(term)
    arrays = states(robot, f, 11)  # more than the lanes, and not a multiple of their number
    expected = flat(by_library(robot, term, arrays))
    for several, y in zip(flat(f(*arrays)), expected, strict=True):
        assert_close(several, y, 1e-11, 1.0)
    for one, y in zip(flat(f(*(x[3] for x in arrays))), expected, strict=True):
        assert_close(one, y[3], 1e-11, 1.0)


@pytest.mark.parametrize("representation", ["body", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_frames(representation):
    robot = floating()
    frame = robot.body_names[-1]
    for term in FRAME_TERMS:
        f = robot.to_jax(term, frame=frame, representation=representation)
        arrays = states(robot, f, 3)
        options = {} if term == "pose" else {"representation": representation}
        assert_close(f(*arrays), getattr(robot, term)(*arrays, frame, **options), 1e-12)


def test_the_result_has_the_class_of_the_method():
    robot = models.two_link()
    M, Mdot, C, g = terms = robot.to_jax("terms")(jnp.ones(2), jnp.ones(2))
    assert type(terms) is type(robot.terms(np.ones(2), np.ones(2)))
    assert_close(np.asarray(terms.C), robot.coriolis_matrix(np.ones(2), np.ones(2)), 1e-14)
    assert (M.shape, Mdot.shape, C.shape, g.shape) == ((2, 2), (2, 2), (2, 2), (2,))


def test_robots_of_one_structure_share_code_and_have_their_own_numbers():
    robot = models.two_link()
    heavy = robot.with_parameters(3.0 * robot.parameters)
    f, g = robot.to_jax("gravity_force"), heavy.to_jax("gravity_force")
    assert f._function is g._function
    q = np.array([0.3, -0.4])
    together = jax.jit(lambda q, functions: tuple(h(q) for h in functions), static_argnums=1)(q, (f, g))
    again = jax.jit(g)
    again(q)
    del f, g, heavy
    garbage.collect()
    assert_close(np.asarray(again(q)), 3.0 * robot.gravity_force(q), 1e-14)
    assert_close(np.asarray(together), np.outer([1.0, 3.0], robot.gravity_force(q)), 1e-14)


# --- derivatives -------------------------------------------------------------------------------------------------


def along(robot, f, arrays, directions, h):
    """The arguments after a step along the directions, on the group for configurations."""
    moved = []
    for name, x, d in zip(f.inputs, arrays, directions):
        moved.append(robot.integrate(x, h * d) if name in CONFIGURATIONS else x + h * d)
    return moved


def difference_quotient(f, h=2e-3):
    """The derivative of f(h) at 0, of sixth order."""
    return sum(c * (f(k * h) - f(-k * h)) for k, c in ((1, 45.0), (2, -9.0), (3, 1.0))) / (60.0 * h)


@pytest.mark.parametrize("make", ROBOTS[:2])
@pytest.mark.parametrize("term", ["inverse_dynamics", "forward_dynamics"])
def test_rates_are_those_of_differences(make, term):
    check_derivatives(make(), term)


@pytest.mark.slow
@pytest.mark.parametrize("make", ROBOTS)
def test_rates_of_every_term_are_those_of_differences(make):
    robot = make()
    for term in sorted(CATALOGUE.keys() - {"forward_dynamics_derivatives"} if robot.nv > 10 else CATALOGUE):
        check_derivatives(robot, term)


def check_derivatives(robot, term):
    """Forward mode against differences of the library's values, reverse mode against forward mode."""
    f = robot.to_jax(term)
    arrays, rng = states(robot, f, 1), np.random.default_rng(1)
    directions = [
        rng.normal(size=(1, robot.nv)) if n in CONFIGURATIONS else rng.normal(size=(1, *shape))
        for n, shape in f.inputs.items()
    ]
    rates = [difference_quotient(lambda h, k=k: along(robot, f, arrays, directions, h)[k]) for k in range(len(arrays))]
    _, forward = jax.jit(lambda *x: jax.jvp(f, x, tuple(map(jnp.asarray, rates))))(*map(jnp.asarray, arrays))
    quotients = [
        difference_quotient(lambda h, k=k: flat(by_library(robot, term, along(robot, f, arrays, directions, h)))[k])
        for k in range(len(flat(forward)))
    ]
    size = max(np.abs(y).max() for y in quotients)
    values = max(np.abs(y).max() for y in flat(by_library(robot, term, arrays)))  # their rounding is in the quotients
    for y, z in zip(flat(forward), quotients, strict=True):
        assert_close(y, z, 1e-8, max(1.0, size, 0.05 * values))
    weights = [rng.normal(size=y.shape) for y in flat(forward)]

    def weighted(*x):
        return sum(jnp.sum(w * y) for w, y in zip(weights, jax.tree.leaves(f(*x))))

    gradient = jax.jit(jax.grad(weighted, tuple(range(len(arrays)))))(*map(jnp.asarray, arrays))
    assert_close(
        sum(np.sum(g * d) for g, d in zip(flat(gradient), rates)),
        sum(np.sum(w * y) for w, y in zip(weights, flat(forward))),
        1e-9,
        max(1.0, size),
    )


@pytest.mark.parametrize("make", [models.two_link, models.panda])
@pytest.mark.slow
def test_second_derivatives_are_the_closed_forms(make):
    robot = make()
    rng = np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, robot.nv))
    for term, closed, last in (
        ("inverse_dynamics", derivatives.inverse_dynamics_second_derivatives, "dadq"),
        ("forward_dynamics", derivatives.forward_dynamics_second_derivatives, "dtaudq"),
    ):
        H, expected = jax.jit(jax.hessian(robot.to_jax(term), (0, 1, 2)))(q, v, a), closed(robot, q, v, a)
        pairs = [(H[0][0], expected.dqdq), (H[1][0], expected.dvdq), (H[1][1], expected.dvdv)]
        for y, z in [*pairs, (H[2][0], getattr(expected, last))]:
            assert_close(np.asarray(y), z, 1e-10, 1.0)


@pytest.mark.slow
def test_all_orders_of_forward_and_reverse_agree():
    """Third derivatives of two joints' torques, in all eight orders of forward and reverse mode."""
    f = models.two_link().to_jax()
    q, v, a = np.random.default_rng(3).normal(size=(3, 2))
    results = []
    for modes in np.ndindex(2, 2, 2):

        def g(q):
            return f(q, v, a)

        for mode in modes:
            g = (jax.jacfwd, jax.jacrev)[mode](g)
        results.append(np.asarray(g(q)))
    assert np.abs(results[0]).max() > 0.1
    for y in results[1:]:
        assert_close(y, results[0], 1e-12)


@pytest.mark.parametrize("make", [models.cart_pole, pytest.param(floating, marks=pytest.mark.slow)])
def test_derivatives_by_inertial_parameters_are_the_regressor(make):
    robot = make()
    f = robot.to_jax()
    q, v, a = states(robot, f, 3)
    pi = robot.parameters + 0.1
    Y = jax.jacrev(f, 3)(q[0], v[0], a[0], pi)
    assert_close(np.asarray(Y).reshape(robot.nv, -1), robot.regressor(q[0], v[0], a[0]), 1e-12)
    weights = np.random.default_rng(0).normal(size=(3, robot.nv))
    gradient = jax.grad(lambda pi: jnp.sum(weights * f(q, v, a, parameters=pi)))(pi)
    assert_close(gradient.ravel(), np.einsum("si,sij->j", weights, robot.regressor(q, v, a)), 1e-12)
    assert np.abs(jax.jacfwd(jax.jacrev(lambda pi: f(q[0], v[0], a[0], pi)))(pi)).max() < 1e-12  # they are linear


@pytest.mark.slow
def test_parameters_shared_and_of_each_state():
    robot = models.two_link()
    f, rng = robot.to_jax("forward_dynamics"), np.random.default_rng(4)
    q, v, tau = rng.normal(size=(3, 5, 2))
    factors = np.linspace(1.0, 2.0, 5)
    expected = [robot.with_parameters(c * robot.parameters).forward_dynamics(*x) for c, *x in zip(factors, q, v, tau)]
    own = factors[:, None, None] * robot.parameters
    assert_close(f(q, v, tau, own), expected, 1e-12)
    assert_close(jax.vmap(f)(q, v, tau, own), expected, 1e-12)
    shared = robot.with_parameters(2.0 * robot.parameters)
    assert_close(f(q, v, tau, 2.0 * robot.parameters), shared.forward_dynamics(q, v, tau), 1e-12)
    assert_close(f(q, v, tau, 2.0 * robot.parameters.ravel()), shared.forward_dynamics(q, v, tau), 1e-12)
    same = [robot.with_parameters(pi).forward_dynamics(q, v, tau) for pi in own]
    assert_close(jax.vmap(lambda pi: f(q, v, tau, pi))(own), same, 1e-12)
    assert_close(jax.vmap(f, (None, None, None, 0))(q, v, tau, own), same, 1e-12)
    H = jax.hessian(lambda pi: f(q[0], v[0], tau[0], pi)[0])(robot.parameters).reshape(20, 20)
    h, d = 1e-5, rng.normal(size=20)

    def slope(pi):
        return np.asarray(jax.grad(lambda pi: f(q[0], v[0], tau[0], pi)[0])(pi)).ravel()

    pi = robot.parameters.ravel()
    assert_close(H @ d, (slope(pi + h * d) - slope(pi - h * d)) / (2.0 * h), 1e-6)


@pytest.mark.slow
def test_derivatives_by_configurations_are_along_the_group():
    robot = models.quadrotor()
    f, integrate = robot.to_jax(), robot.to_jax("integrate")
    q, v, a = (x[0] for x in states(robot, f, 1))
    jacobian = jax.jacrev(lambda d: f(integrate(q, d), v, a))(np.zeros(robot.nv))
    assert_close(np.asarray(jacobian), robot.inverse_dynamics_derivatives(q, v, a).dq, 1e-11)
    J = np.asarray(jax.jacrev(f)(q, v, a))
    for place in (s for s in robot.q_slices if s.stop - s.start == 12):
        R = q[place].reshape(3, 4)[:, :3]
        dR = J[:, place].reshape(-1, 3, 4)[:, :, :3]
        assert np.abs(R.T @ dR + np.swapaxes(R.T @ dR, 1, 2)).max() < 1e-10, "a part that leads out of the group"


@pytest.mark.slow
def test_steps_on_the_group_and_their_derivatives():
    robot = floating()
    integrate, difference = robot.to_jax("integrate"), robot.to_jax("difference")
    q, dv = (x[0] for x in states(robot, integrate, 1))
    assert_close(np.asarray(integrate(q, dv)), robot.integrate(q, dv), 1e-12)
    assert_close(np.asarray(difference(q, integrate(q, dv))), dv, 1e-10)
    there_and_back = jax.jit(jax.jacfwd(lambda d: difference(q, integrate(q, d))))
    for d in (np.zeros(robot.nv), 1e-9 * dv, dv):
        assert_close(np.asarray(there_and_back(d)), np.eye(robot.nv), 1e-7)


# --- JAX's transformations ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arm():
    return models.two_link()


@pytest.mark.slow
def test_vmap_in_every_axis(arm):
    f, rng = arm.to_jax(), np.random.default_rng(5)
    q, v, a = rng.normal(size=(3, 4, 3, 2))
    expected = arm.inverse_dynamics(q, v, a)
    assert_close(f(q, v, a), expected, 1e-13)
    assert_close(jax.vmap(f)(q, v, a), expected, 1e-13)
    assert_close(jax.vmap(jax.vmap(f))(q, v, a), expected, 1e-13)
    last = [np.moveaxis(x, 0, -1) for x in (q, v, a)]
    assert_close(jax.vmap(f, -1)(*last), expected, 1e-13)
    assert_close(jax.vmap(f, (0, -1, 0), out_axes=1)(q, last[1], a), np.moveaxis(expected, 0, 1), 1e-13)
    one = arm.inverse_dynamics(q, np.broadcast_to(v[0], q.shape), np.broadcast_to(a[0], q.shape))
    assert_close(jax.vmap(f, (0, None, None))(q, v[0], a[0]), one, 1e-13)
    gradient = jax.vmap(jax.grad(jax.jit(lambda q, v, a: f(q, v, a)[0])), (0, None, None))(q[:, 0], v[0, 0], a[0, 0])
    reference = np.repeat(np.array([v[0, 0], a[0, 0]])[:, None], 4, 1)
    assert_close(gradient, arm.inverse_dynamics_derivatives(q[:, 0], *reference).dq[:, 0], 1e-12)


def test_empty_batches_and_arrays_in_any_order(arm):
    f = arm.to_jax()
    assert f(*np.zeros((3, 0, 2))).shape == (0, 2)
    assert jax.vmap(f)(*np.zeros((3, 0, 4, 2))).shape == (0, 4, 2)
    assert jax.grad(lambda q: f(q, q, q).sum())(np.zeros((0, 2))).shape == (0, 2)
    x = np.random.default_rng(6).normal(size=(2, 30))
    strided = np.asarray(x.T)[::3]
    assert_close(f(strided, strided, strided), arm.inverse_dynamics(*[np.ascontiguousarray(strided)] * 3), 1e-13)
    assert_close(jax.jit(f)(*[jnp.asarray(x).T] * 3), arm.inverse_dynamics(*[x.T.copy()] * 3), 1e-13)


@pytest.mark.parametrize("make", [models.two_link, pytest.param(floating, marks=pytest.mark.slow)])
def test_a_rollout_in_scan_and_its_gradient(make):
    """Semi-implicit Euler: the end against Python's loop, its derivative by the torque against differences."""
    robot, h, steps = make(), 0.01, 20
    forward, integrate = robot.to_jax("forward_dynamics"), robot.to_jax("integrate")
    q0, v0, tau = (x[0] for x in states(robot, forward, 1))

    @jax.jit
    def end(tau):
        def step(state, _):
            q, v = state
            v = v + h * forward(q, v, tau)
            return (integrate(q, h * v), v), None

        return jax.lax.scan(step, (jnp.asarray(q0), jnp.asarray(v0)), length=steps)[0]

    def by_python(tau):
        q, v = q0, v0
        for _ in range(steps):
            v = v + h * robot.forward_dynamics(q, v, tau)
            q = robot.integrate(q, h * v)
        return q, v

    for y, z in zip(end(tau), by_python(tau)):
        assert_close(np.asarray(y), z, 1e-9)
    gradient = jax.grad(lambda tau: end(tau)[1].sum())(tau)
    direction = np.random.default_rng(7).normal(size=robot.nv)
    quotient = difference_quotient(lambda e: by_python(tau + e * direction)[1].sum(), 1e-4)
    assert_close(np.asarray(gradient) @ direction, quotient, 1e-6)


def test_threads_and_pickle(arm):
    f = pickle.loads(pickle.dumps(arm.to_jax("forward_dynamics")))
    assert repr(f) == "JaxFunction(two_link: forward_dynamics(q, v, tau, parameters=None))"
    arrays = np.random.default_rng(8).normal(size=(8, 3, 100, 2))
    results, g = [None] * 8, jax.jit(jax.vmap(f))

    def work(k):
        for _ in range(20):
            results[k] = np.asarray(g(*arrays[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, y in enumerate(results):
        assert_close(y, arm.forward_dynamics(*arrays[k]), 1e-12)


def test_a_donated_argument(arm):
    f = arm.to_jax()
    q, v, a = map(jnp.asarray, np.random.default_rng(9).normal(size=(3, 64, 2)))
    expected = arm.inverse_dynamics(*map(np.array, (q, v, a)))
    assert_close(jax.jit(f, donate_argnums=0)(q, v, a), expected, 1e-13)


FROM_DISK = """
import sys, numpy as np, jax
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
from geomctrl import models
f = models.two_link().to_jax()
print(repr(np.asarray(jax.jit(lambda x: f(x, 2 * x, x) * 1.5)(np.array([0.5, 0.25]))).tolist()))
"""


@pytest.mark.slow
def test_programs_that_jax_keeps_on_disk_find_the_code_in_another_process(tmp_path, arm):
    q = np.array([0.5, 0.25])
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", FROM_DISK, tmp_path], capture_output=True, text=True, check=True)
        assert_close(eval(done.stdout), 1.5 * arm.inverse_dynamics(q, 2 * q, q), 1e-13)
        assert list(tmp_path.iterdir())


# --- comparison with Python --------------------------------------------------------------------------------------


def test_a_function_is_compared_with_python(monkeypatch, arm):
    bind = jax_functions.apply.bind

    def wrong(*x, **options):
        return [1.001 * y for y in bind(*x, **options)]

    monkeypatch.setattr(jax_functions.apply, "bind", wrong)
    with pytest.raises(GeomctrlError, match=r"'two_link': M of the compiled function differs from Python at q = \["):
        arm.to_jax("mass_matrix")


@pytest.mark.parametrize("single", [True, False])
def test_code_of_a_derivative_is_compared_with_its_trace(monkeypatch, single):
    robot = testing.random_robot(np.random.default_rng(20 + single), ["revolute", "prismatic"], [-1, 0])
    f, x = robot.to_jax(), np.ones(2) if single else np.ones((9, 2))
    module = buffer_calls.module
    monkeypatch.setattr(buffer_calls, "module", lambda *x: module(*x).replace("fadd", "fsub", 40))
    monkeypatch.setattr(cache, "kept", lambda key, make: make())
    with pytest.raises(GeomctrlError, match="compiled code differs from its trace on this processor"):
        jax.grad(lambda q: f(q, x, x).sum())(x)


# --- what can not be computed ------------------------------------------------------------------------------------


def test_states_without_a_result_give_nan():
    robot = models.quadrotor()
    f = robot.to_jax("forward_dynamics")
    q, v, tau = states(robot, f, 12)
    expected = robot.forward_dynamics(q, v, tau)
    q[2, 0] += 0.1  # no rotation
    v[5, 1], tau[10, 0] = np.nan, np.inf
    a, bad = np.asarray(f(q, v, tau)), [2, 5, 10]
    assert np.isnan(a[bad]).all()
    assert_close(np.delete(a, bad, 0), np.delete(expected, bad, 0), 1e-11)
    assert np.isnan(np.asarray(jax.jit(jax.grad(lambda v: f(q, v, tau)[:, 0].sum()))(v))[bad]).all()


def test_a_mass_matrix_that_is_not_positive_gives_nan(arm):
    f, x = arm.to_jax("forward_dynamics"), np.ones((3, 9, 2))
    masses = np.ones(9)
    masses[4] = -1.0
    a = np.asarray(f(*x, masses[:, None, None] * arm.parameters))
    assert np.isnan(a).all(1).tolist() == (masses < 0.0).tolist()


def test_float32_is_computed_in_float64_and_rounded(arm):
    f = arm.to_jax()
    q, v, a = np.random.default_rng(10).normal(size=(3, 50, 2)).astype(np.float32)
    expected = arm.inverse_dynamics(*(x.astype(float) for x in (q, v, a))).astype(np.float32)
    tau = f(q, v, a)
    assert tau.dtype == np.float32
    np.testing.assert_array_max_ulp(np.asarray(tau), expected, 1)
    assert f(q, v.astype(float), a).dtype == np.float64
    jax.config.update("jax_enable_x64", False)
    tau = arm.to_jax()(q.astype(float), v, a)
    assert tau.dtype == np.float32
    np.testing.assert_array_max_ulp(np.asarray(tau), expected, 1)
    M = jax.jit(jax.jacrev(f, 2))(q[0], v[0], a[0])
    assert M.dtype == np.float32
    assert_close(np.asarray(M), arm.mass_matrix(q[0].astype(float)), 1e-6)
    assert f(np.zeros(2, int), [0, 0], [1.0, 0.0]).dtype == np.float32


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((np.zeros(3), np.zeros(2), np.zeros(2)), r"q: expected shape \(\.\.\., 2\), got \(3,\)"),
        ((np.zeros(2), 0.0, np.zeros(2)), r"v: expected shape \(\.\.\., 2\), got \(\)"),
        ((np.zeros((4, 2)), np.zeros(2), np.zeros(2)), r"v: expected the leading axes of q, \(4,\), got \(\)"),
        ((np.zeros(2), np.zeros(2)), "inverse_dynamics: expected q, v, a and optionally parameters, got 2 arrays"),
        ((np.zeros(2), np.zeros(2), np.zeros(2, complex)), "a: expected float64 or float32, got complex128"),
        ((np.zeros(2), np.zeros(2, np.float16), np.zeros(2)), "v: expected float64 or float32, got float16"),
        ((np.zeros(2), np.zeros(2), np.zeros(2, bool)), "a: expected float64 or float32, got bool"),
        (("ab", np.zeros(2), np.zeros(2)), "q: expected an array of numbers, got 'ab'"),
        ((*np.zeros((3, 2)), np.zeros((3, 10))), r"parameters: expected shape \(2, 10\), .*got \(3, 10\)"),
        ((*np.zeros((3, 4, 2)), np.zeros((5, 2, 10))), r"or \(4, 2, 10\) for each state its own, got \(5, 2, 10\)"),
    ],
)
def test_wrong_arguments(arm, arrays, message):
    f = arm.to_jax()
    for call in (f, jax.jit(f)) if not isinstance(arrays[0], str) else (f,):
        with pytest.raises(ArgumentError, match=message):
            call(*arrays)


def test_wrong_names(arm):
    with pytest.raises(NameNotFoundError, match=r"term: expected one of inverse_dyn.*jacobian_rate, got 'inverse'"):
        arm.to_jax("inverse")
    with pytest.raises(ArgumentError, match="a: no argument of inverse_dynamics by name; expected q, v, a by position"):
        arm.to_jax()(np.zeros(2), np.zeros(2), a=np.zeros(2))
    with pytest.raises(ArgumentError, match="frame: expected the name of a frame for the term 'pose', got None"):
        arm.to_jax("pose")
    with pytest.raises(ArgumentError, match="frame: expected None for the term 'integrate', got 'hand'"):
        arm.to_jax("integrate", frame="hand")
    with pytest.raises(ArgumentError, match="representation"):
        arm.to_jax("integrate", representation="world")


def test_other_devices_are_refused(arm):
    message = r"to_jax run on CPUs and NVIDIA GPUs, and this computation is for rocm: move the arrays"
    with pytest.raises(GeomctrlError, match=message):
        jax.jit(arm.to_jax()).trace(*np.zeros((3, 2))).lower(lowering_platforms=("rocm",))


def for_gpus(f, *arrays):
    return jax.jit(f).trace(*arrays).lower(lowering_platforms=("cuda",)).as_text()


@pytest.fixture
def cuda(monkeypatch):
    monkeypatch.setattr(gpu_calls, "_launcher", lambda: 1)  # XLA compiles for a GPU here, and runs nothing
    install(monkeypatch, FakeCuda())


def test_computations_for_gpus_call_a_handler_for_gpus(arm, cuda):
    """Values, gradients, shared and own parameters, further axes: each call in the program has a handler that XLA
    knows for GPUs, on float64 arrays.
    """
    f, x = arm.to_jax(), np.zeros((3, 5, 2), np.float32)
    own = np.broadcast_to(arm.parameters, (5, *arm.parameters.shape))
    programs = [for_gpus(f, *x), for_gpus(f, *x, own), for_gpus(jax.vmap(f), *x)]
    programs.append(for_gpus(jax.grad(lambda q: f(q, *x[1:]).sum()), x[0]))
    for text in programs:
        called = re.findall(r"custom_call @(\w+)\(.*\).* : \((.*)\) -> (.*)", text)
        assert called
        for name, operands, results in called:
            assert jax_functions._handlers[name][0].kernel is not None
            assert "f32" not in operands + results


def test_without_a_gpu_computations_for_gpus_say_why(arm, monkeypatch):
    def missing():
        raise GeomctrlError(gpu.NEEDED)

    monkeypatch.setattr(gpu, "core", missing)
    f = models.load("scara").to_jax()
    with pytest.raises(GeomctrlError, match="needs the packages of the extra 'cuda'"):
        for_gpus(f, *np.zeros((3, 4)))


def test_a_handler_for_gpus_returns_xlas_own_error_on_a_cpu(arm, cuda):
    """XLA itself calls the handler, accepts its version, and refuses it a stream."""
    function = arm.to_jax()._function
    _, call = function.gpu_call(True)
    jax_functions._registered("cpu", "geomctrl_gpu_handler_on_cpu", call)
    constants, parameters, *rows = function.trial
    result = jax.ShapeDtypeStruct((1, 2), np.float64)
    with pytest.raises(Exception, match="XLA FFI GPU context is not available"):
        jax.block_until_ready(
            jax.ffi.ffi_call("geomctrl_gpu_handler_on_cpu", result)(constants, parameters, *(x[None] for x in rows))
        )


def test_code_that_would_be_too_long(monkeypatch, arm):
    monkeypatch.setattr(Trace, "operations", 10**6)
    robot = testing.random_robot(np.random.default_rng(11), ["revolute", "prismatic"], [-1, 0])
    with pytest.raises(ModelError, match="takes 1000000 operations, more than the compiler takes for one function"):
        robot.to_jax("terms_christoffel")(np.zeros(2), np.zeros(2))


def test_transposition_in_parameters_says_what_to_use(arm):
    f = arm.to_jax()
    with pytest.raises(ArgumentError, match=r"parameters: .* use jax.vjp"):
        jax.linear_transpose(lambda pi: f(*np.ones((3, 2)), pi), np.zeros((2, 10)))(np.ones(2))


def test_versions_of_the_interface(monkeypatch, tmp_path):
    header = tmp_path / "xla/ffi/api/c_api.h"
    header.parent.mkdir(parents=True)
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    for text, message in (
        (
            "#define XLA_FFI_API_MAJOR 1\n#define XLA_FFI_API_MINOR 4",
            "expected version 0 of its interface, got 1.4; jax",
        ),
        ("", "can not read the version of its interface; jax"),
    ):
        header.write_text(text)
        with pytest.raises(GeomctrlError, match=message):
            jax_functions.interface.__wrapped__()


def test_without_jax(monkeypatch, arm):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(GeomctrlError, match=r"to_jax needs the optional package jax: pip install 'geomctrl\[jax\]'"):
        arm.to_jax()
