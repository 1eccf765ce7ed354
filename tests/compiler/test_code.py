"""Compiled functions of a robot agree with the loops, share one compilation per structure, and refuse bad arguments."""

import math
import pickle
import re
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traced_cases import ALGORITHMS, TREES, by_loops, flat, inputs_of, options_of

from geomctrl import Body, Joint, Robot, caches, inertia, models, se3
from geomctrl.compiler import code, kernel_traces
from geomctrl.compiler.code import Code
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import articulated_bodies, composite_bodies, newton_euler, regressor, tree
from geomctrl.kernels.algorithms import LONG_CHAIN
from geomctrl.papers import factored
from geomctrl.testing import random_robot, robots
from geomctrl.tracing.backends import cache, entries, host
from geomctrl.tracing.partition import STORE, STRETCH, Plan
from geomctrl.tracing.symbols import UntraceableError


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    entries.works()  # data that all calls share is stored elsewhere
    monkeypatch.setattr(cache, "_folders", lambda: (tmp_path,))
    code._structure.cache_clear()
    yield tmp_path
    code._structure.cache_clear()


def compiled(robot, name, kind):
    kernel, options = ALGORITHMS[name]
    return getattr(Code(robot._model), kind)(kernel, **options)


@pytest.mark.quick(16)
@pytest.mark.parametrize("robot", TREES[1:], ids=lambda r: r.name)  # half of all tests use the code of this bundled arm
@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_state_and_many_are_what_the_loops_compute(robot, name, kernels):
    kernel, options = ALGORITHMS[name]
    one, many = compiled(robot, name, "one"), compiled(robot, name, "many")
    batch = [inputs_of(robot, kernel, seed) for seed in range(11)]  # not a multiple of the number of lanes
    extra = list(options_of(robot, kernel).values())
    expected = np.stack([by_loops(robot, kernel, states, options) for states in batch])
    scale = np.abs(expected).max()
    results = [one(*states, *extra) for states in batch]
    result = np.stack([flat(y if isinstance(y, tuple) else (y,)) for y in results])
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13 * scale)
    columns = [np.ascontiguousarray(x) for x in zip(*batch)] + [np.tile(x.ravel(), (11, 1)) for x in extra]
    out, failed = many(*columns)
    assert failed == -1
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-13 * scale)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 3.2, 99_999.0, 100_001.0, -1e7, 1e15])
def test_any_angle(angle):
    """Beyond the range of the fast sine libm's is used, for one state and for a single lane among others."""
    robot = models.panda()
    q = np.full(7, angle)
    q[1] = 0.3
    one, many = compiled(robot, "mass_matrix", "one"), compiled(robot, "mass_matrix", "many")
    expected = robot.mass_matrix(q)
    np.testing.assert_allclose(one(q), expected, rtol=1e-12, atol=1e-13)
    batch = np.tile(np.linspace(-1.0, 1.0, 7), (9, 1))
    batch[4] = q
    out, _ = many(batch)
    np.testing.assert_allclose(out[4].reshape(7, 7), expected, rtol=1e-12, atol=1e-13)


def test_sine_and_cosine_to_an_ulp():
    """The pose of a body that rotates about z contains cos q and sin q."""
    from geomctrl.kernels import frames

    robot = models.two_link()
    pose = Code(robot._model).many(frames.pose, i=0)
    x = np.concatenate([np.linspace(-40.0, 40.0, 4001), np.geomspace(1e-12, 9e4, 4000)])
    q = np.stack([x, np.zeros_like(x)], axis=1)
    out, _ = pose(q, np.tile(np.eye(4)[:3].ravel(), (len(x), 1)))
    R = out.reshape(-1, 4, 4)[:, :3, :3]
    close = np.abs(R[:, :, :, None] - np.stack([np.sin(x), np.cos(x), -np.sin(x)], -1)[:, None, None]).min(axis=(1, 2))
    assert close.max() <= 2.3e-16


def test_one_compilation_for_a_thousand_loads(empty_cache, monkeypatch):
    created = []
    monkeypatch.setattr(host, "object_code", lambda text, make=host.object_code: created.append(1) or make(text))
    robot, rng = models.panda(), np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 7))
    for _ in range(1000):
        loaded = robot.with_payload(rng.uniform(0.1, 3.0), rng.normal(size=3) * 0.05, 0.01 * np.eye(3))
        tau = Code(loaded._model).one(newton_euler.inverse_dynamics)(q, v, a)
    np.testing.assert_allclose(tau, loaded.inverse_dynamics(q, v, a), rtol=1e-12, atol=1e-12)
    assert len(created) == 1
    assert len(list(empty_cache.glob("*.o"))) == 1


def test_a_state_that_it_was_not_made_for_is_answered_with_none():
    one = Code(models.panda()._model).one(newton_euler.inverse_dynamics)
    q = np.zeros(7)
    for bad in (
        (q, q), (q, q, q, q), (q[:6], q, q), (q, q, np.zeros((1, 7))), (list(q), q, q), (q, q.astype(np.float32), q),
        (q, np.zeros(14)[::2], q), (q, q, np.full(7, np.nan)), (q, np.array([0, 0, 0, 0, 0, 0, -np.inf]), q),
        (q, q, None), (np.ma.masked_array(q), q, q), (q.view(type("Sub", (np.ndarray,), {})), q, q),
        (q.astype(">f8"), q, q), (0.0, 0.0, 0.0),
    ):  # fmt: skip
        assert one(*bad) is None


def test_arrays_whose_dtype_is_another_object_are_taken():
    """Unpickled arrays, and those that numba creates, have their own object for the type float64."""
    other = pickle.loads(pickle.dumps(np.dtype(np.float64).newbyteorder().newbyteorder()))
    robot, q = models.panda(), np.linspace(-1.0, 1.0, 7)
    own = robot.integrate(q, np.zeros(7))
    mass_matrix = Code(robot._model).one(composite_bodies.mass_matrix)
    assert mass_matrix(own) is not None
    assert mass_matrix(q.astype(other, copy=True)) is not None


def test_results_and_arguments_are_counted():
    one = Code(models.panda()._model).one(newton_euler.inverse_dynamics)
    q = np.zeros(7)
    before = sys.getrefcount(q), sys.getrefcount(None)
    for _ in range(2000):
        one(q, q, q)
        one(q, q)
    assert sys.getrefcount(q) == before[0]
    assert abs(sys.getrefcount(None) - before[1]) < 100
    tau = one(q, q, q)
    assert sys.getrefcount(tau) == 2
    assert (tau.flags.owndata, tau.flags.writeable, tau.flags.c_contiguous) == (True, True, True)


def test_a_singular_mass_matrix_has_no_result():
    robot = models.two_link()
    negative = robot.with_parameters(robot.parameters * [[1.0], [-1.0]], physical=False)
    q = np.array([0.1, 0.2])
    assert Code(robot._model).one(articulated_bodies.forward_dynamics)(q, q, q) is not None
    assert Code(negative._model).one(articulated_bodies.forward_dynamics)(q, q, q) is None
    batch = np.tile(q, (13, 1))
    assert Code(negative._model).many(articulated_bodies.forward_dynamics)(batch, batch, batch)[1] == 0


def test_several_outputs_come_as_a_tuple():
    robot, rng = models.panda(), np.random.default_rng(3)
    q, v, a, v_ref, x = rng.normal(size=(5, 7))
    pi = robot.parameters.ravel().copy()
    tau, g = Code(robot._model).one(regressor.products, form=0)(pi, q, v, a, v_ref, x)
    Y = robot.regressor(q, v, a, v_ref)
    np.testing.assert_allclose(tau, Y @ pi, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(g, Y.T @ x, rtol=1e-11, atol=1e-11)


def test_the_way_around_the_machine_code_of_calls():
    """Where numpy's arrays differ from what the compiled function assumes, Python computes the same."""
    robot, q = models.panda(), np.linspace(-1.0, 1.0, 7)
    core = Code(robot._model)._addresses(newton_euler.inverse_dynamics, "one", (), {})[0]
    slow = entries._python_entry(core, robot._model, [(7,), (7,), (7,)], [(7,)])
    np.testing.assert_array_equal(slow(q, q, q), Code(robot._model).one(newton_euler.inverse_dynamics)(q, q, q))
    assert slow(q, q) is None
    assert slow(q, q, q * np.nan) is None
    assert entries.works()


@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b"garbage", lambda b: b[:-9], lambda b: b[:200] + b"\x01" + b[201:]]
)
def test_a_damaged_file_is_set_aside_and_made_again(empty_cache, damage):
    robot, q = models.panda(), np.linspace(-1.0, 1.0, 7)
    expected = Code(robot._model).one(composite_bodies.mass_matrix)(q)
    (path,) = empty_cache.glob("*.o")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    code._structure.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"{path.name}: damaged"):
        result = Code(robot._model).one(composite_bodies.mass_matrix)(q)
    np.testing.assert_array_equal(result, expected)
    assert path.read_bytes() == whole
    assert len(list(empty_cache.glob("*.damaged"))) == 1


def test_a_cache_that_can_not_be_written_costs_nothing_but_time(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr(cache, "_folders", lambda: (blocked / "cache",))
    monkeypatch.setattr(caches, "_unusable_reported", False)
    code._structure.cache_clear()
    robot, q = models.two_link(), np.array([0.3, 0.4])
    with pytest.warns(RuntimeWarning, match="can not be cached"):
        result = Code(robot._model).one(composite_bodies.mass_matrix)(q)
    code._structure.cache_clear()
    np.testing.assert_allclose(result, factored.mass_matrix(robot, q), rtol=1e-13)
    code._structure.cache_clear()


def test_calls_with_few_states_hold_no_memory():
    robot = models.panda()
    q = np.zeros((2, robot.nq))
    tracemalloc.start()
    try:
        sizes = []
        for _ in range(3):
            for _ in range(200):
                robot.mass_matrix(q)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[2] - sizes[1] < 200 * 16, "less than an object a call"


def test_the_first_state_without_a_result_is_named():
    """The mass matrix is positive definite where the arm is bent and indefinite where it is stretched, at any place
    of a batch.
    """
    robot = models.two_link()
    bent, stretched = np.array([0.1, math.pi / 2]), np.array([0.1, 0.0])
    odd = robot.with_parameters(robot.parameters * [[-2.99], [1.0]], physical=False)
    one = Code(odd._model).one(articulated_bodies.forward_dynamics)
    assert one(bent, bent, bent) is not None
    assert one(stretched, stretched, stretched) is None
    many = Code(odd._model).many(articulated_bodies.forward_dynamics)
    for k in range(13):  # also among the last few states, which do not fill the lanes
        q = np.tile(bent, (13, 1))
        q[k:] = stretched
        assert many(q, q, q)[1] == k


@pytest.mark.usefixtures("compiled_terms")
def test_a_thread_of_little_stack_is_enough():
    """The mass matrix of sixty pendulums has few operations and many numbers, so numba's loops are used.

    Too little stack would end this process.
    """
    robot = random_robot(np.random.default_rng(0), ["revolute"] * 60, [-1] * 60)
    q = np.random.default_rng(1).normal(size=(20, 60))
    expected, matrices = robot.mass_matrix(q), []
    usual = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: matrices.append(robot.mass_matrix(q)))
        thread.start()
    finally:
        threading.stack_size(usual)
    thread.join()
    assert (matrices[0] == expected).all()


def test_structures_over_the_budget_are_left_to_the_loops(empty_cache, monkeypatch):
    monkeypatch.setattr(code, "OPERATIONS", 100)
    panda = models.panda()
    assert Code(panda._model).one(newton_euler.inverse_dynamics) is None
    assert Code(models.two_link()._model).one(composite_bodies.mass_matrix) is not None
    code._structure.cache_clear()
    monkeypatch.setattr("geomctrl.compiler.code.trace", lambda *a: pytest.fail("it is remembered on disk"))
    assert Code(panda._model).one(newton_euler.inverse_dynamics) is None


def test_threads_that_ask_at_once_get_one_compilation(empty_cache):
    robot, q, results = models.panda(), np.linspace(-1.0, 1.0, 7), []

    def work():
        results.append(Code(robot._model).one(newton_euler.inverse_dynamics)(q, q, q))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 8
    assert all((r == results[0]).all() for r in results)
    assert len(list(empty_cache.glob("*.o"))) == 1


@pytest.mark.parametrize("compiler", ["on", "off"])
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_a_batch(compiler, threads, monkeypatch):
    """Results are equal, and the state without a result is the same, here one of the last thread."""
    monkeypatch.setenv("GEOMCTRL_COMPILER", compiler)
    monkeypatch.setattr(code, "EAGER", 10**9)  # both calls run in the same mode
    code._structure.cache_clear()
    robot, rng = models.scara(), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 13_003, robot.nv))
    np.testing.assert_array_equal(robot.forward_dynamics(q, v, tau, threads=threads), robot.forward_dynamics(q, v, tau))
    for one, shared in zip(robot.terms(q, v), robot.terms(q, v, threads=threads)):
        np.testing.assert_array_equal(one, shared)
    robot, (q, v, tau) = weak_arm(), rng.normal(size=(3, 13_003, 2))
    q[:, 1] = 0.5 * np.pi
    q[[9001, 12_000], 1] = 0.0
    with pytest.raises(ModelError, match=re.escape(f"at q = {q[9001]}")):
        robot.forward_dynamics(q, v, tau, threads=threads)
    with pytest.raises(ArgumentError, match="threads: expected a whole number from 1 on, got 0"):
        robot.mass_matrix(q, threads=0)


def weak_arm():
    """Joint 1 feels 0.58 kg m^2 with the arm straight and 1.33 with a right angle; here 1 kg m^2 is subtracted."""
    robot = models.two_link()
    lighter = robot.parameters.copy()
    lighter[0, 6] -= 1.0  # Iyy, because the axes of its joints are y
    return robot.with_parameters(lighter, physical=False)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(robots(max_bodies=5, aligned=None, floating_base=None), st.integers(0, 2**32 - 1))
def test_code_of_any_robot_is_the_dense_factored_form(robot, seed):
    """Compiled for one state and for lanes, against Ploen's section 3 in plain numpy."""
    rng = np.random.default_rng(seed)
    states = 19
    q = np.array([robot.random_configuration(rng) for _ in range(states)])
    v, a, v_ref = rng.normal(size=(3, states, robot.nv))
    created = Code(robot._model)
    terms = created.one(composite_bodies.terms, form=1)
    dynamics = created.many(newton_euler.inverse_dynamics_reference, form=0)
    assert terms is not None
    assert dynamics is not None
    M, Mdot, C, g = terms(q[0], v[0])
    scale = 1.0 + np.abs(M).max() + np.abs(g).max()
    for result, expected in (
        (M, factored.mass_matrix(robot, q[0])),
        (Mdot, factored.mass_matrix_rate(robot, q[0], v[0])),
        (C, factored.coriolis_matrix(robot, q[0], v[0], "christoffel")),
        (g, factored.gravity_force(robot, q[0])),
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-11 * scale)
    tau, failed = dynamics(q, v, a, v_ref)
    assert failed == -1
    expected = np.array([factored.inverse_dynamics(robot, q[k], v[k], a[k], v_ref[k]) for k in range(states)])
    np.testing.assert_allclose(tau, expected, rtol=1e-10, atol=1e-11 * (1.0 + np.abs(expected).max()))


@pytest.mark.parametrize("parents", [[-1, 0, 1], [-1, -1, 1], [-1, 0, 0]])
def test_few_coordinates_move_as_articulated_bodies_do(parents):
    """Two algorithms without common sums, with external wrenches, on joints of one, two and three degrees of
    freedom.
    """
    robot = random_robot(np.random.default_rng(5), ["spherical", "helical", "cylindrical"], parents)
    assert robot.nv <= articulated_bodies.MAX_JOINTS
    rng = np.random.default_rng(1)
    q = np.array([robot.random_configuration(rng) for _ in range(4)])
    v, tau, f_ext = *rng.normal(size=(2, 4, robot.nv)), rng.normal(size=(4, 6 * robot.nbodies))
    (result, bad), (expected, _) = (
        algorithm.many(robot._model, q, v, tau, f_ext)
        for algorithm in (articulated_bodies.forward_dynamics, articulated_bodies.forward_dynamics_articulated)
    )
    assert bad == -1
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(
        robot.forward_dynamics(q, v, tau, f_ext.reshape(4, -1, 6)), expected, rtol=1e-9, atol=1e-9
    )


def chain(bodies):
    """A planar chain has the fewest operations for each number of its mass matrix."""
    T_pc, joint = se3.exp((0.0, 0.0, 0.0, 0.1, 0.0, 0.0)), Joint.revolute((0.0, 1.0, 0.0))
    inertia_b = inertia.from_com(1.0, (0.05, 0.0, 0.0), 0.01 * np.eye(3))
    parents = [None, *map(str, range(bodies - 1))]
    return Robot.build([Body(str(k), parent, joint, T_pc, inertia_b) for k, parent in enumerate(parents)])


def test_tracing_of_long_chains_stops_at_a_number_of_nodes():
    pattern, algorithm = kernel_traces.structure(chain(60)._model), composite_bodies.mass_matrix
    with pytest.raises(UntraceableError, match="more than 5000 operations"):
        kernel_traces.trace(algorithm, pattern, {}, limit=5_000)
    assert 5_000 < len(kernel_traces.trace(algorithm, pattern, {}, limit=100_000).graph.nodes) <= 100_000


def test_the_mass_matrix_of_a_long_chain_is_not_compiled(empty_cache, monkeypatch):
    """Code for its 90 000 numbers would take a minute to compile, mostly for storing them."""
    robot, rng = chain(300), np.random.default_rng(0)
    q, a = rng.uniform(-1.0, 1.0, (2, 300))
    expected = robot.inverse_dynamics(q, np.zeros(300), a) - robot.gravity_force(q)
    monkeypatch.setattr(code, "trace", lambda *_, **options: pytest.fail("traced"))
    assert Code(robot._model).one(composite_bodies.mass_matrix) is None
    M = Code(robot._model).mass_matrix(q)
    np.testing.assert_allclose(M @ a, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.usefixtures("compiled_terms")
def test_the_first_terms_of_a_long_chain_are_not_compiled(empty_cache, monkeypatch):
    """Compiling would take longer than thousands of states in numba's loops."""
    traced = []

    def trace(algorithm, *_, **options):
        traced.append(algorithm)
        raise UntraceableError("a trace that ends at once")

    monkeypatch.setattr(code, "trace", trace)
    for bodies in (LONG_CHAIN, LONG_CHAIN + 1):
        chain(bodies).inverse_dynamics(*np.zeros((3, bodies)))
        assert traced == [newton_euler.inverse_dynamics]
    monkeypatch.setattr(code, "CALLS", 3)
    chain(bodies).inverse_dynamics(*np.zeros((3, bodies)))
    chain(bodies).inverse_dynamics(*np.zeros((3, bodies)))
    assert len(traced) == 2


def test_stretches_are_short_where_many_numbers_are_stored():
    created = kernel_traces.trace(composite_bodies.mass_matrix, kernel_traces.structure(chain(60)._model), {})
    plan = Plan(created)
    stores = [sum(len(plan.outputs.get(at, ())) for at in nodes) for nodes in plan.stretches]
    assert sum(stores) > 0.2 * sum(map(len, plan.stretches))
    assert max(STORE * y + len(nodes) for y, nodes in zip(stores, plan.stretches)) < 1.2 * STRETCH
    assert sorted(at for nodes in plan.stretches for at in nodes) == [
        at for at in created.graph.needed(created.ends) if plan.is_operation(at)
    ]


def test_robots_that_differ_only_in_inertias_share_their_pattern():
    """Its inputs are the inertial parameters and the placements; another joint or another zero is another pattern."""
    robot = models.panda()
    pattern = kernel_traces.structure(robot._model)
    with pytest.raises(ValueError, match="read-only"):
        pattern[0] = 1.0
    for same in (robot.with_payload(2.0, (0.0, 0.0, 0.1)), robot.with_parameters(1.1 * robot.parameters)):
        assert kernel_traces.structure(same._model) is pattern
    rows = tree.body_records(pattern)
    assert np.isnan(rows[:, tree.J : tree.S]).all()
    known = ~np.isnan(pattern)
    np.testing.assert_allclose(pattern[known], robot._model[known], rtol=0.0, atol=1e-12)
    armature = np.arange(1.0, 1.0 + robot.nv)
    heavy, light = robot.with_armature(armature), robot.with_armature(2.0 * armature)
    assert kernel_traces.structure(heavy._model) is kernel_traces.structure(light._model) is not pattern
    without_one = kernel_traces.structure(robot.with_armature(armature * (armature > 1.0))._model)
    differing = np.isnan(kernel_traces.structure(heavy._model)) != np.isnan(without_one)
    assert differing.sum() == 1
    assert differing.reshape(-1, tree.WIDTH)[0, tree.ARMATURE]
