"""Closed loops as equations: V, its promised and its true rate, and their gradients, against Python and differences."""

from gc import collect

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.compiled import proving
from geomctrl.control.compiled.proving import trace_closed_loop
from geomctrl.control.compiled.robot_numbers import inertial_parameters
from geomctrl.control.references import Sinusoids, hold
from geomctrl.tracing.backends.llvm import module
from geomctrl.tracing.symbols import UntraceableError, is_symbol

TREE = testing.random_robot(np.random.default_rng(3), ["free", "spherical", "revolute", "cylindrical"], [-1, 0, 0, 2])


def sway(robot):
    rng, n = np.random.default_rng(5), robot.nv
    return Sinusoids(robot, robot.neutral(), rng.uniform(0.1, 0.3, n), rng.uniform(0.1, 0.5, n), rng.uniform(0, 6, n))


def heavier(robot):
    return gc.Plant(robot.with_parameters(1.2 * robot.parameters), gc.Friction(0.3, 0.2))


LOOPS = {
    "passivity": (controllers.Passivity(models.panda(), sway(models.panda())), gc.Plant(models.panda())),
    "wrong model": (controllers.Passivity(models.two_link(), sway(models.two_link())), heavier(models.two_link())),
    "computed torque": (controllers.ComputedTorque(TREE, sway(TREE)), heavier(TREE)),
    "adaptive": (
        controllers.SlotineLi(models.two_link(), sway(models.two_link()), adapt="base"),
        heavier(models.two_link()),
    ),
    "set point": (controllers.PDGravity(TREE, TREE.neutral()), gc.Plant(TREE)),
}


def some_state(plant, controller, loop, seed):
    rng, robot = np.random.default_rng(seed), plant.robot
    q = robot.integrate(robot.neutral(), 0.5 * rng.normal(size=robot.nv))
    z = controller.start()
    z = None if z is None else z + 0.1 * rng.normal(size=z.shape)
    v = rng.normal(size=robot.nv)
    y = np.concatenate((q, v, [] if z is None else z.ravel(), [0.0]))
    return 0.7 + rng.uniform(), y, (q, v, z)


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", LOOPS)
def test_value_rate_and_slope(name):
    controller, plant = LOOPS[name]
    loop = trace_closed_loop(plant, controller)
    f = loop.function([loop.value, loop.rate, loop.slope, *loop.field])
    many = loop.over([loop.value, loop.rate, loop.slope, *loop.field])
    states = [some_state(plant, controller, loop, seed) for seed in range(9)]
    rows = many(np.array([t for t, *_ in states]), np.array([y for _, y, _ in states]))
    for (t, y, (q, v, z)), row in zip(states, rows):
        result = f(t, y)
        np.testing.assert_allclose(row, result, rtol=1e-9, atol=1e-12)
        V, rate = controller.lyapunov(t, q, v, z, plant)
        tau, z_rate = controller(t, q, v, z)[:2]
        a = plant.acceleration(t, q, v, tau)
        np.testing.assert_allclose(result[:2], [V, rate], rtol=1e-10)
        n = plant.robot.nv
        np.testing.assert_allclose(result[3 : 3 + 2 * n], [*v, *a], rtol=1e-9, atol=1e-9 * np.abs(a).max())

        def moved(s, t=t, q=q, v=v, z=z, a=a, z_rate=z_rate):
            zs = None if z is None else z + s * z_rate
            return controller.lyapunov(t + s, plant.robot.integrate(q, s * v), v + s * a, zs, plant).value

        assert result[2] == pytest.approx(sixth_order(moved, 1e-3), rel=1e-6, abs=1e-6 * (1.0 + V))


def sixth_order(f, h):
    return sum(w * (f(k * h) - f(-k * h)) for k, w in ((1, 45.0), (2, -9.0), (3, 1.0))) / (60.0 * h)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", LOOPS)
def test_gradients_in_the_algebra(name):
    controller, plant = LOOPS[name]
    loop = trace_closed_loop(plant, controller)
    f = loop.function([loop.value, loop.slope])
    gradient = loop.function([*loop.gradient(loop.value), *loop.gradient(loop.slope)])
    t, y, _ = some_state(plant, controller, loop, 0)
    result = gradient(t, y).reshape(2, -1)
    assert np.isfinite(result).all()
    for k in range(1 + loop.group.dim):
        u = np.eye(loop.group.dim)[k - 1] if k else np.zeros(loop.group.dim)
        for row, size in zip((0, 1), f(t, y)):

            def moved(s, k=k, u=u, row=row):
                return f(t + s * (k == 0), loop.group.advance(y, s * u))[row]

            scale = 1.0 + abs(size) + np.abs(result[row]).max()
            assert result[row, k] == pytest.approx(sixth_order(moved, 1e-3), abs=1e-6 * scale)


def test_at_the_reference_itself_gradients_are_zero_and_not_nan():
    """The maps between group and algebra take the branch for small angles there; the other branch is 0/0."""
    controller, plant = LOOPS["set point"]
    loop = trace_closed_loop(plant, controller)
    y = np.concatenate((plant.robot.neutral(), np.zeros(plant.robot.nv), [0.0]))
    result = loop.function([*loop.gradient(loop.value), *loop.gradient(loop.slope)])(0.5, y)
    np.testing.assert_allclose(result, 0.0, atol=1e-12)


def test_sigma_modification_s_slope_is_found_along_its_gradient():
    """The true rate does not depend on the claimed one: a law that claims too much is detected."""

    class Leaky(controllers.SlotineLi):
        def _adaptation(self, g, z):
            return super()._adaptation(g, z) - 0.5 * z

    robot = models.two_link()
    controller = Leaky(robot, hold(robot, robot.neutral()), adapt="base")
    loop = trace_closed_loop(gc.Plant(robot), controller)
    f = loop.function([loop.rate, loop.slope])
    t, y, (_, _, z) = some_state(gc.Plant(robot), controller, loop, 3)
    rate, slope = f(t, y)
    error = z - controller.true_parameters(gc.Plant(robot))
    assert slope - rate == pytest.approx(-0.5 * error @ controller.Gamma_inverse @ z, rel=1e-9)


def test_what_else_is_asked_for():
    controller, plant = LOOPS["passivity"]
    loop = trace_closed_loop(
        plant, controller, lambda parts, t, q, v, z, command: {"energy": parts.plant.robot.kinetic_energy(q, v)}
    )
    f = loop.function([loop.extra["energy"], loop.along(loop.extra["energy"])])
    t, y, (q, v, z) = some_state(plant, controller, loop, 1)
    energy, power = f(t, y)
    assert energy == pytest.approx(plant.robot.kinetic_energy(q, v))
    tau = controller(t, q, v, z).tau
    assert power == pytest.approx(v @ (tau - plant.robot.gravity_force(q)), rel=1e-9)


def test_without_a_lyapunov_function_and_with_bad_states():
    class Damping:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(-v)

    loop = trace_closed_loop(gc.Plant(models.two_link()), Damping())
    assert loop.value is loop.rate is loop.slope is None
    f = loop.function(loop.field)
    assert np.isnan(f(0.0, np.array([np.nan, 0.0, 0.0, 0.0, 0.0]))).all()
    assert np.isfinite(f(0.0, np.zeros(5))).all()


def test_what_does_not_trace_is_named():
    class Eigenvalues:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(-v * np.linalg.eigvals(np.outer(q, q)).real)

    with pytest.raises(UntraceableError, match=r"Eigenvalues can not be traced.*test_proving\.py, line \d+"):
        trace_closed_loop(gc.Plant(models.two_link()), Eigenvalues())


def test_a_law_that_branches_is_differentiated_on_each_side():
    class TwoGains:
        robot = models.two_link()

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(-4.0 * q if q[0] > 0.0 else -q)

        def lyapunov(self, t, q, v, z, plant):
            return (2.0 if q[0] > 0.0 else 0.5) * q @ q, 0.0

    loop = trace_closed_loop(gc.Plant(TwoGains.robot), TwoGains())
    f = loop.function([loop.value, loop.slope])
    rng = np.random.default_rng(2)
    for q, v in rng.normal(size=(20, 2, 2)):
        k = 2.0 if q[0] > 0.0 else 0.5
        np.testing.assert_allclose(f(0.0, np.array([*q, *v, 0.0])), [k * q @ q, 2.0 * k * q @ v], rtol=1e-12)


def test_where_a_robot_s_parameters_are():
    """A change of those numbers changes V as a changed robot does; the other robot's numbers have no effect."""
    model, true = models.two_link(), heavier(models.two_link())
    controller = controllers.Passivity(model, sway(model))
    loop = trace_closed_loop(true, controller, lambda parts, *_: {"parameters": inertial_parameters(parts.plant.robot)})
    other = gc.Plant(true.robot.with_parameters(0.9 * true.robot.parameters), true.friction)
    for symbol, x in zip(loop.extra["parameters"], other.robot.parameters.ravel(), strict=True):
        if is_symbol(symbol):  # numbers that are zero are constants, and remain so
            loop.numbers[loop.graph.nodes[symbol.index][2]] = x
    t, y, (q, v, z) = some_state(true, controller, loop, 0)
    V, slope = loop.function([loop.value, loop.slope])(t, y)
    assert pytest.approx(controller.lyapunov(t, q, v, z, other).value) == V
    fresh = trace_closed_loop(other, controller)
    assert slope == pytest.approx(fresh.function([fresh.slope])(t, y)[0])


def test_a_function_outlives_its_loop():
    """The arrays that the code reads stay at the same address."""
    controller, plant = LOOPS["passivity"]
    t, y, (q, v, z) = some_state(plant, controller, None, 0)
    f = (lambda loop: loop.function([loop.value, loop.rate]))(trace_closed_loop(plant, controller))
    collect()
    spoilt = [np.full(k, np.nan) for k in range(400, 1200)]
    assert f(t, y) == pytest.approx(controller.lyapunov(t, q, v, z, plant)), len(spoilt)


def test_loops_that_differ_in_numbers_share_a_graph(monkeypatch):
    """Each loop has its own numbers; code compiled for one before its graph grew is found again by the next."""
    created = []
    monkeypatch.setattr(proving, "module", lambda *args, **options: created.append(args) or module(*args, **options))
    monkeypatch.setattr(proving.cache, "kept", lambda key, make: make())
    model = models.two_link()
    laws = [controllers.Passivity(model, sway(model), K=k) for k in (5.0, 7.0)]
    plants = [gc.Plant(model), heavier(model)]
    loops = [trace_closed_loop(plant, law) for plant, law in zip(plants[:1] * 2, laws)]
    assert loops[0].graph is loops[1].graph
    assert loops[0].graph is not trace_closed_loop(plants[1], laws[0]).graph  # the plant has friction
    result = []
    for loop, law in zip(loops, laws):
        t, y, (q, v, z) = some_state(plants[0], law, loop, 0)
        result.append(loop.function([loop.value, loop.rate])(t, y))
        assert result[-1] == pytest.approx(law.lyapunov(t, q, v, z, plants[0]))
        loop.gradient(loop.value)
    assert result[0][1] != pytest.approx(result[1][1])
    assert len(created) == 1
