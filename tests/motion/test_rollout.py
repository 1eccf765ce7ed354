"""The compiled stepper against the general one, and orders measured on robots, alone and with a controller."""

import math
import tracemalloc

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models, testing
from geomctrl.errors import ArgumentError, IntegrationError, NameNotFoundError
from geomctrl.integrators.driver import integrate
from geomctrl.integrators.solution import Event
from geomctrl.integrators.step_control import Adaptive
from geomctrl.integrators.tableaus import Tableau, method, methods
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.motion.rollout import rollout
from geomctrl.testing.random_robots import random_inertia

FIXED = [name for name in methods() if method(name).b_hat is None]
KINDS = ("free", "spherical", "planar", "cylindrical", "helical", "prismatic", "revolute")
TREE = testing.random_robot(np.random.default_rng(0), KINDS, (-1, 0, 1, 1, 0, 4, 5))


def state(robot, seed=0, speed=1.0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), speed * rng.normal(size=robot.nv), rng.normal(size=robot.nv)


SKEWED = gc.Robot.build(  # a free joint whose velocities are not the body twist but combinations of its numbers
    [
        gc.Body(
            "b",
            None,
            gc.Joint("free", np.eye(6) + 0.3 * np.tri(6, k=-1)),
            None,
            random_inertia(np.random.default_rng(2)),
        )
    ]
)


@pytest.mark.parametrize(
    "robot", [models.panda(), models.three_spheres(), TREE, SKEWED], ids=["panda", "spheres", "tree", "skewed"]
)
@pytest.mark.parametrize("name", FIXED)
def test_agrees_with_the_general_integrator(name, robot):
    """The same formulas in two implementations, for every kind of joint, with a torque and a short last step."""
    q, v, tau = state(robot)

    def field(t, y):
        q, v = y[: robot.nq], y[robot.nq :]
        return np.concatenate((v, robot.forward_dynamics(q, v, tau)))

    group = Product(configuration_group(robot), Rn(robot.nv))
    expected = integrate(field, np.concatenate((q, v)), (0.0, 0.05), 0.012, name, group)
    path = rollout(robot, q, v, tau, 0.05, 0.012, name)
    np.testing.assert_allclose(path.t, expected.t, rtol=0, atol=1e-16)
    np.testing.assert_allclose(path.q, expected.y[:, : robot.nq], rtol=0, atol=1e-12)
    np.testing.assert_allclose(path.v, expected.y[:, robot.nq :], rtol=1e-11, atol=1e-11)


def test_takes_a_tableau_of_ones_own():
    robot = models.three_spheres()
    q, v, tau = state(robot)
    lazy = Tableau("lazy", 4, np.vstack((method("MK4").A, np.zeros((1, 4)))) @ np.eye(4, 5), [*method("MK4").b, 0.0])
    same, path = (rollout(robot, q, v, tau, 0.1, 0.01, m) for m in ("MK4", lazy))
    np.testing.assert_allclose(path.q, same.q, rtol=0, atol=1e-15)


# --- measured order --------------------------------------------------------------------------------------------------


def body() -> gc.Robot:
    """One free body under gravity, whose centre of mass is not its origin."""
    inertia = gc.inertia.from_com(2.0, (0.1, -0.2, 0.05), np.diag([0.4, 0.7, 1.0]))
    return gc.Robot.build([gc.Body("body", None, gc.Joint.free(), None, inertia)])


class Moored:
    """A free body on a spring and a damper fixed to its frame, driven by a force that rotates with time."""

    def __call__(self, t, q, v, z=None):
        R, p = q[:12].reshape(3, 4)[:, :3], q[3:12:4]
        force = R.T @ (np.array([math.cos(3 * t), math.sin(3 * t), 20.0]) - 3.0 * p)
        moment = np.array([0.3 * math.sin(2 * t), 0.2, 0.1]) + np.cross((0.1, 0.2, -0.1), R.T @ (0.0, 0.0, -4.0))
        return gc.Command(np.concatenate((moment, force)) - 0.2 * v)


class Sway:
    """PD control with gravity compensation about a moving posture; its integral action is a state."""

    def __init__(self, robot):
        self.robot, self.group = robot, Rn(robot.nv)
        self.M = np.diagonal(robot.mass_matrix(robot.neutral()))

    def start(self):
        return np.zeros(self.robot.nv)

    def __call__(self, t, q, v, z):
        error = q - np.sin(2.0 * t + np.arange(len(q)))
        return gc.Command(self.robot.gravity_force(q) - self.M * (4.0 * error + 2.0 * v + z), z_rate=error)


ARM = models.panda()
LOOPS = {
    "three spheres": (models.three_spheres(), None, 2.0),
    "free body": (body().with_gravity((0, 0, 0)), None, 2.0),
    "floating body": (body(), Moored(), 1.0),
    "arm": (ARM, Sway(ARM), 0.5),
}
COARSE = {  # steps to the end, for methods of order 2, 3, 4, 5, 6, 8
    "three spheres": {2: 128, 3: 64, 4: 32, 5: 32, 6: 16, 8: 8},
    "free body": {2: 128, 3: 64, 4: 32, 5: 32, 6: 8, 8: 4},
    "floating body": {2: 128, 3: 64, 4: 32, 5: 32, 6: 16, 8: 16},
    "arm": {2: 256, 3: 128, 4: 128, 5: 128, 6: 32, 8: 16},
}
FINE = 512  # steps of the reference, by MK8


def path_of(case, name, n):
    robot, controller, t_end = LOOPS[case]
    q0, v0, _ = state(robot, 2, 0.7)
    if controller is None:
        run = rollout(robot, q0, v0, None, t_end, t_end / n, name)
    else:
        run = gc.simulate(
            robot, controller, q0, v0, t_end, t_end / n, monitors=None, options=gc.SimulationOptions(method=name)
        )
    return np.hstack((run.q, run.v))


@pytest.fixture(scope="module")
def references():
    return {case: path_of(case, "MK8", FINE) for case in LOOPS}


@pytest.mark.parametrize("case", LOOPS)
@pytest.mark.parametrize("name", FIXED)
def test_measured_order(name, case, references):
    """For a robot alone, and for closed loops integrated as one equation; errors along the whole path."""
    order = method(name).order
    n = COARSE[case][order]
    exact = references[case]
    errors = [np.sqrt(np.mean((path_of(case, name, k) - exact[:: FINE // k]) ** 2)) for k in (n, 2 * n)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("name", ["CF4", "MK5", "MK54"])
def test_dense_output_and_events_on_a_robot(name):
    """A rotating body falls from rest: its centre of mass has fallen d metres after sqrt(2 d / g), to the method's
    order.
    """
    robot, d = body(), 0.5
    group = Product(configuration_group(robot), Rn(6))
    q, spin = robot.neutral(), np.array([1.0, 2.0, -0.5])
    v = np.concatenate((spin, -np.cross(spin, (0.1, -0.2, 0.05))))  # velocity of the centre of mass is zero
    weight = 2.0 * 9.81  # N

    def height(q):
        return (robot.potential_energy(q) - robot.potential_energy(robot.neutral())) / weight

    def field(t, y):
        return np.concatenate((y[12:], robot.forward_dynamics(y[:12], y[12:], np.zeros(6))))

    passing = Event(lambda t, y: height(y[:12]) + d, terminal=True, name="passing")
    chosen = Adaptive(name, 1e-10, 1e-10) if name == "MK54" else name
    path = integrate(field, np.concatenate((q, v)), (0.0, 1.0), 0.01, chosen, group, events=passing, dense=True)
    assert path.reason.startswith("terminal event 'passing'")
    assert path.t[-1] == pytest.approx(math.sqrt(2.0 * d / 9.81), abs=1e-8)
    times = np.linspace(0.0, path.t[-1], 23)
    np.testing.assert_allclose(height(path.sol(times)[:, :12]), -0.5 * 9.81 * times**2, rtol=0, atol=2e-8)
    assert group.residual(path.sol(times)).max() < 1e-13


# --- samples ---------------------------------------------------------------------------------------------------------


def test_every_stores_each_kth_sample_and_the_last():
    robot = models.three_spheres()
    q, v, tau = state(robot)
    full, thin = (rollout(robot, q, v, tau, 1.05, 0.1, every=k) for k in (1, 4))
    assert full.t[-1] == 1.05
    assert (full.steps, full.success, full.reason) == (11, True, "reached t = 1.05 s")
    np.testing.assert_array_equal(thin.t, full.t[[0, 4, 8, 11]])
    np.testing.assert_array_equal(thin.q, full.q[[0, 4, 8, 11]])
    np.testing.assert_array_equal(thin.v, full.v[[0, 4, 8, 11]])
    ends = rollout(robot, q, v, tau, 1.05, 0.1, every=100)
    np.testing.assert_array_equal(ends.q, full.q[[0, -1]])


def test_a_torque_per_step_and_the_loop_of_ones_own_agree():
    robot = TREE
    q, v, _ = state(robot)
    taus = np.random.default_rng(4).normal(size=(9, robot.nv))
    path = rollout(robot, q, v, taus, 0.09, 0.01, "CF4")
    for k, tau in enumerate(taus):
        np.testing.assert_allclose(path.q[k], q, rtol=0, atol=1e-13)
        one = rollout(robot, q, v, tau, 0.01, 0.01, "CF4")
        q, v = one.q[-1], one.v[-1]
    np.testing.assert_allclose(path.v[-1], v, rtol=0, atol=1e-12)


def test_arguments_stay_as_they_were():
    robot = models.three_spheres()
    q, v, tau = state(robot)
    copies = q.copy(), v.copy(), tau.copy()
    path = rollout(robot, q, v, tau, 0.5, 0.1)
    for a, b in zip((q, v, tau), copies):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(path.q[0], q)


def test_progress_rises_to_one():
    seen = []
    rollout(models.two_link(), [0.1, 0.2], [0.0, 0.0], None, 2.0, 1e-4, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) > 3


@pytest.mark.parametrize("name", ["CG2", "CF3", "MK2"])
def test_rotations_stay_rotations_to_round_off(name):
    """experiments/benchmarks/benchmark_integrators.py takes a million steps; here a tenth of that."""
    spin = np.array([3.0, 0.1, 0.2, 0.0, 0.0, 0.0])
    weightless = body().with_gravity((0, 0, 0))
    end = rollout(weightless, weightless.neutral(), spin, None, 1e3, 1e-2, name, every=100_000)
    R = end.q[-1].reshape(3, 4)[:, :3]
    assert np.abs(R.T @ R - np.eye(3)).max() < 1e-14


def test_memory_does_not_grow_with_the_steps():
    robot = models.three_spheres()
    q, v, _ = state(robot, 0, 0.1)
    rollout(robot, q, v, None, 0.1, 1e-3)
    tracemalloc.start()
    try:
        rollout(robot, q, v, None, 10.0, 1e-4, "MK2", every=10**9)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


# --- bad input -------------------------------------------------------------------------------------------------------

SPHERES = models.three_spheres()
GOOD = {"robot": SPHERES, "q0": SPHERES.neutral(), "v0": np.zeros(8), "tau": None, "t_end": 1.0, "dt": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dt": 0.0}, "dt: expected a positive number of seconds, got 0.0"),
        ({"dt": -0.1}, "dt: expected a positive number of seconds, got -0.1"),
        ({"dt": 1.5}, "dt: expected a step no longer than t_end = 1 s, got 1.5"),
        ({"dt": 1e-20}, "dt: expected a step that is not lost in rounding"),
        ({"dt": math.nan}, "dt: expected a positive number of seconds, got nan"),
        ({"dt": "0.1"}, "dt: expected a positive number of seconds, got '0.1'"),
        ({"dt": True}, "dt: expected a positive number of seconds, got True"),
        ({"t_end": -1.0}, "t_end: expected a positive number"),
        ({"t_end": math.inf}, "t_end: expected a positive number"),
        ({"every": 0}, "every: expected a positive integer, got 0"),
        ({"every": 2.0}, "every: expected a positive integer, got 2.0"),
        ({"q0": np.zeros(13)}, r"q0: expected shape \(14,\), got \(13,\)"),
        ({"q0": np.zeros((1, 14))}, r"q0: expected shape \(14,\), got \(1, 14\)"),
        ({"q0": np.zeros(14)}, r"q0: entries 0 to 11, .* hold no rotation"),
        ({"v0": np.full(8, math.inf)}, "v0: expected finite numbers, got inf"),
        ({"tau": np.zeros(3)}, r"tau: expected shape \(8,\), got \(3,\)"),
        ({"tau": np.zeros((9, 8))}, r"tau: expected shape \(8,\), or \(10, 8\) for one per step, got \(9, 8\)"),
        ({"tau": np.full((10, 8), math.nan)}, "tau: expected finite numbers, got nan"),
        ({"robot": None}, "robot: expected a Robot, got None"),
        ({"q0": [[1.0], [1.0, 2.0]]}, "q0: expected an array of numbers"),
        ({"tau": [[1.0], [1.0, 2.0]]}, "tau: expected an array of numbers"),
        ({"progress": 3}, "progress: expected a function"),
        ({"tau": 1.0}, r"tau: expected shape \(8,\), .*got \(\)"),
        ({"method": "MK54"}, "method: expected a fixed-step method, got the adaptive MK54"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ArgumentError, match=message):
        rollout(**{**GOOD, **change})


def test_methods_that_preserve_something_are_named_and_take_functions():
    with pytest.raises(NameNotFoundError, match=r"did you mean MK4.*; or momentum_form, variational, energy_momentum"):
        rollout(SPHERES, SPHERES.neutral(), np.zeros(8), None, 0.1, 0.1, "mk4")
    with pytest.raises(ArgumentError, match=r"tau: .* a function needs the method momentum_form or variational"):
        rollout(SPHERES, SPHERES.neutral(), np.zeros(8), lambda t, q, v: -v, 0.1, 0.1)


def test_an_overflow_stops_with_the_trajectory_so_far():
    taus = np.zeros((10, 8))
    taus[5:] = 1e200
    with pytest.raises(IntegrationError, match=r"MK4: the step of dt = 0.1 at t = 0.5 s can not be made") as e:
        rollout(**{**GOOD, "tau": taus})
    path = e.value.solution
    assert (path.success, path.steps, len(path.t), path.t[-1]) == (False, 5, 6, 0.5)
    assert np.isfinite(path.q).all()
    with pytest.raises(IntegrationError, match=r"CF4: .* state overflows: halve dt"):
        rollout(**{**GOOD, "tau": taus, "method": "CF4"})


def test_a_turn_by_two_pi_within_a_munthe_kaas_step_is_refused():
    spin = np.array([0, 0, 62.0, 0, 0, 0, 0, 0])
    with pytest.raises(IntegrationError, match="a joint turns by 2 pi within the step"):
        rollout(**{**GOOD, "v0": spin})
    rollout(**{**GOOD, "v0": spin, "method": "CF4", "t_end": 0.1})
    group = Product(configuration_group(SPHERES), Rn(8))
    with pytest.raises(IntegrationError, match=r"turns by 6\.2 rad, but dexp\^-1 is singular at 2 pi"):
        integrate(lambda t, y: np.concatenate((spin, np.zeros(8))), group.identity(), (0.0, 0.1), 0.1, "MK2", group)
