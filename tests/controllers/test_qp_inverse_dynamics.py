"""Inverse dynamics as a quadratic program: cvxpy's solution, computed torque without limits, limits that hold."""

import copy
import pickle

import cvxpy as cp
import numpy as np
import pytest
from oracles import assert_close
from simulation_options import IN_PYTHON

import geomctrl as gc
from geomctrl import controllers, models, references, testing
from geomctrl.controllers import QPInverseDynamics
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.tracing.untraceable import UntraceableError

PANDA, HOME = models.panda(), np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
SWAY = references.Sinusoids(PANDA, HOME, 0.2, 0.3)
TOOL = "panda_hand_tcp"


def limited(effort=60.0, velocity=3.0, reach=1.2):
    """A two-link arm that lies in the plane, with limits."""
    rod = gc.inertia.from_com(1.0, (0.5, 0.0, 0.0), np.diag([0.01, 0.09, 0.09]))
    at = np.eye(4)
    at[0, 3] = 1.0
    limits = {"lower": -reach, "upper": reach, "velocity": velocity, "effort": effort}
    joints = [gc.Joint.revolute((0, 0, 1), name=f"joint{i}", **limits) for i in (1, 2)]
    bodies = [gc.Body("link1", None, joints[0], None, rod), gc.Body("link2", "link1", joints[1], at, rod)]
    return gc.Robot.build(bodies, name="limited", frames=[("tip", "link2", at)])


def still(x):
    return lambda t: np.array([x, np.zeros(3), np.zeros(3)])


def moving(robot, q, v, frame):
    return robot.jacobian(q, frame, "hybrid")[3:], robot.jacobian_rate(q, v, frame, "hybrid")[3:]


def cvxpys(law, t, q, v):
    """Solve the two programs as the docstring of the law writes them; return (a, s)."""
    robot, n, r = law.robot, law.robot.nv, law.rate
    M, bias = robot.mass_matrix(q), robot.inverse_dynamics(q, v, np.zeros(n))
    d, limits = law.reference(t), robot.limits
    wanted = d.a - law.kd @ (v - d.v) - law.kp @ (q - d.q)
    a, s = cp.Variable(n), cp.Variable(n + len(law.clearances), nonneg=True)
    force, cost, rows = M @ a + bias, 1e4 * cp.sum(s) + cp.sum_squares(s), []
    rows += [cp.abs(force) <= law.effort, a <= 2 * r * (limits.velocity - v) + s[:n]]
    rows += [a >= -2 * r * (limits.velocity + v) - s[:n], a <= r * r * (limits.upper - q) - 2 * r * v + s[:n]]
    rows += [a >= r * r * (limits.lower - q) - 2 * r * v - s[:n]]
    for k, c in enumerate(law.clearances):
        x = robot.pose(q, c.frame)[:3, 3] - c.centre
        J, dJ = moving(robot, q, v, c.frame)
        size = np.linalg.norm(x)
        rate = x @ J @ v / size
        second = (x @ J / size) @ a + x @ dJ @ v / size + (v @ J.T @ J @ v - rate**2) / size
        rows += [second + 2 * r * rate + r * r * (size - c.radius) >= -s[n + k]]
    wishes = []
    for task in law.tasks:
        J, dJ = (
            f[3:] for f in (robot.jacobian(q, task.frame, "hybrid"), robot.jacobian_rate(q, v, task.frame, "hybrid"))
        )
        x_d, v_d, a_d = task.target(t)
        want = a_d - task.kd * (J @ v - v_d) - task.kp * (robot.pose(q, task.frame)[:3, 3] - x_d)
        wishes.append(task.weight * cp.sum_squares(J @ a + dJ @ v - want))
    joints = cp.sum_squares(a - wanted)
    if not law.strict:
        cp.Problem(cp.Minimize(cp.sum(wishes) + joints + cost), rows).solve(solver="CLARABEL")
        return a.value, s.value
    cp.Problem(cp.Minimize(cp.sum(wishes) + 1e-6 * joints + cost), rows).solve(solver="CLARABEL")
    rows += [robot.jacobian(q, x.frame, "hybrid")[3:] @ a == robot.jacobian(q, x.frame, "hybrid")[3:] @ a.value
             for x in law.tasks]  # fmt: skip
    cp.Problem(cp.Minimize(joints + cost), rows).solve(solver="CLARABEL")
    return a.value, s.value


# --- the program -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", ["weights", "strict"])
def test_solutions_are_cvxpys(priority):
    task = TOOL, still((0.4, 0.1, 0.5)), 100.0, 20.0, 3.0
    near = TOOL, (0.45, 0.0, 0.55), 0.12
    law = QPInverseDynamics(PANDA, SWAY, 100.0, 20.0, tasks=[task], clearances=[near], priority=priority, share=0.6)
    rng, active = np.random.default_rng(0), 0
    for _ in range(4):
        q, v = HOME + 0.2 * rng.normal(size=7), 0.5 * rng.normal(size=7)
        command = law(0.3, q, v, None)
        a, s = cvxpys(law, 0.3, q, v)
        active += int(command.signals["active"])
        assert_close(PANDA.forward_dynamics(q, v, command.tau), a, 2e-4, np.abs(a).max() + 1.0)
        assert command.signals["slack"] == pytest.approx(max(s.max(), 0.0), rel=1e-4, abs=1e-5)
        assert (np.abs(command.tau) <= law.effort).all()
    assert active >= 3


def test_without_active_limits_it_is_computed_torque():
    law, other = QPInverseDynamics(PANDA, SWAY), controllers.ComputedTorque(PANDA, SWAY)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, v = SWAY(0.4).q + 0.02 * rng.normal(size=7), 0.1 * rng.normal(size=7)
        command = law(0.4, q, v, None)
        np.testing.assert_array_equal(command.tau, other(0.4, q, v, None).tau)
        assert command.signals["active"] == 0.0
        task = TOOL, still(PANDA.pose(q, TOOL)[:3, 3])
        assert np.abs(QPInverseDynamics(PANDA, SWAY, tasks=[task])(0.4, q, v, None).tau - command.tau).max() > 1e-3


def test_without_limits_it_keeps_the_promise_of_computed_torque():
    arm = models.two_link()
    law = QPInverseDynamics(arm, references.Sinusoids(arm, arm.neutral(), 0.3, 0.4))
    testing.assert_lyapunov(law, arm, states=4, search=0, runs=testing.Runs(1, duration=0.1))


def test_strict_priorities_come_before_the_joints():
    """The tool has the requested acceleration for any task of the joints; with weights both compromise."""
    task = TOOL, still((0.35, 0.1, 0.5)), 20.0, 9.0
    q, v, missed = HOME + 0.05, 0.1 * np.ones(7), {}
    for priority in ("weights", "strict"):
        law = QPInverseDynamics(PANDA, SWAY, 100.0, 20.0, tasks=[task], priority=priority)
        a = PANDA.forward_dynamics(q, v, law(0.3, q, v, None).tau)
        J, dJ = moving(PANDA, q, v, TOOL)
        wanted = -9.0 * J @ v - 20.0 * (PANDA.pose(q, TOOL)[:3, 3] - (0.35, 0.1, 0.5))
        missed[priority] = np.abs(J @ a + dJ @ v - wanted).max()
        if priority == "strict":
            free = np.eye(7) - np.linalg.pinv(J) @ J
            assert_close(free @ a, free @ (SWAY(0.3).a - law.kd @ (v - SWAY(0.3).v) - law.kp @ (q - SWAY(0.3).q)), 1e-3)
    assert missed["strict"] < 1e-4 < 0.05 < missed["weights"]


# --- limits ------------------------------------------------------------------------------------------------------


def test_limits_hold_where_the_reference_leaves_them():
    """At 1 kHz with a goal at twice the range: torque limits hold exactly, joint and speed limits up to the effect
    of sampling.
    """
    arm = limited(effort=12.0, velocity=1.5, reach=0.8)
    beyond = references.Sinusoids(arm, np.zeros(2), 1.6, (0.5, 0.7))
    law = QPInverseDynamics(arm, beyond)
    run = gc.simulate(arm, law, np.zeros(2), np.zeros(2), 2.0, 1e-3, control_dt=1e-3, monitors=None, options=IN_PYTHON)
    assert np.abs(run.tau).max() <= 12.0
    assert np.abs(run.tau).max() > 11.99
    assert np.abs(run.q).max() < 0.8 + 1e-3
    assert np.abs(run.q).max() > 0.75
    assert np.abs(run.v).max() < 1.5 + 1e-2
    assert np.abs(run.tracking_error()).max() > 0.5
    assert (run.signals["active"] == 1.0).mean() > 0.3


def test_a_clearance_is_kept():
    """The straight path of the tip leads through a ball; the law must go around it, or wait in front of it."""
    arm = limited(velocity=10.0, reach=3.0)
    centre = np.array([1.8, 0.3, 0.0])
    through = references.Quintic(arm, [-0.6, 0.4], [0.9, 0.4], 1.0)
    law = QPInverseDynamics(arm, through, clearances=[("tip", centre, 0.25)])
    run = gc.simulate(arm, law, [-0.6, 0.4], np.zeros(2), 1.5, 1e-3, control_dt=1e-3, monitors=None, options=IN_PYTHON)
    distance = np.linalg.norm(arm.pose(run.q, "tip")[:, :3, 3] - centre, axis=1)
    wished = np.array([np.linalg.norm(arm.pose(through(t).q, "tip")[:3, 3] - centre) for t in run.t])
    assert wished.min() < 0.15
    assert 0.25 - 1e-3 < distance.min() < 0.26
    assert run.signals["slack"].max() < 1e-2


def test_what_can_not_be_done_is_said_and_never_nan():
    """Too fast at the end of its range with little torque: the law brakes with full torque, and the slack reports
    the violation.
    """
    arm = limited(effort=1.0)
    command = QPInverseDynamics(arm, references.hold(arm, np.zeros(2)))(
        0.0, np.array([1.19, 0.0]), np.array([3.0, 0.0]), None
    )
    assert np.isfinite(command.tau).all()
    assert command.signals["slack"] > 10.0
    assert command.tau[0] == pytest.approx(-1.0, abs=1e-6)


def test_copies_solve_what_the_first_did():
    law = QPInverseDynamics(limited(effort=2.0), references.hold(limited(), np.zeros(2)))
    state = 0.0, np.array([0.5, -0.3]), np.array([1.0, 0.5]), None
    tau = law(*state).tau
    for other in (copy.copy(law), pickle.loads(pickle.dumps(law))):
        assert_close(other(*state).tau, tau, 1e-9)


def test_bad_arguments_of_the_program_are_named():
    arm, body = limited(), models.satellite()

    def keeping(clearance):
        return QPInverseDynamics(arm, references.hold(arm, np.zeros(2)), clearances=[clearance])

    def following(*task):
        return QPInverseDynamics(arm, references.hold(arm, np.zeros(2)), tasks=[("tip", *task)])

    for make, error, words in (
        (
            lambda: QPInverseDynamics(body, references.hold(body, body.neutral())),
            ArgumentError,
            "robot: expected joints with",
        ),
        (
            lambda: QPInverseDynamics(arm, references.hold(arm, np.zeros(2)), tasks=[3]),
            ArgumentError,
            "tasks: expected",
        ),
        (
            lambda: QPInverseDynamics(arm, references.hold(arm, np.zeros(2)), priority="x"),
            ArgumentError,
            "priority: expected",
        ),
        (
            lambda: QPInverseDynamics(arm, references.hold(arm, np.zeros(2)), share=2),
            ArgumentError,
            "share: expected a fraction greater than 0 and at most 1, got 2",
        ),
        (
            lambda: QPInverseDynamics(arm, references.hold(arm, np.zeros(2)), rate=0.0),
            ArgumentError,
            "rate: expected a pos",
        ),
        (
            lambda: keeping(("elbow", np.zeros(3), 1.0)),
            NameNotFoundError,
            "elbow",
        ),
        (lambda: keeping(("tip", np.zeros(2), 1.0)), ArgumentError, "centre: expected"),
        (lambda: keeping(("tip", np.zeros(3), -1.0)), ArgumentError, "radius: expected a positive number, got -1"),
        (lambda: keeping(("tip", np.zeros(3))), ArgumentError, r"clearances: expected tuples \(frame, centre, radius"),
        (lambda: keeping("tip"), ArgumentError, r"clearances: expected tuples \(frame, centre, radius"),
        (lambda: keeping(("tip", np.zeros(3), 1.0, 2.0)), ArgumentError, "clearances: expected tuples"),
        (lambda: following(3.0), ArgumentError, "target: expected a function"),
        (lambda: following(), ArgumentError, r"tasks: expected tuples \(frame, target\[, kp, kd, weight\]\)"),
        (lambda: following(still(np.zeros(3)), 1.0, 1.0, 0.0), ArgumentError, "weight: expected a positive number"),
    ):
        with pytest.raises(error, match=words):
            make()
    short = following(lambda t: np.zeros(3))
    with pytest.raises(ArgumentError, match=r"target: of task 'tip': expected shape \(3, 3\), got \(3,\)"):
        short(0.0, np.zeros(2), np.zeros(2), None)


def test_limits_that_are_not_there_are_no_rows():
    """The lift reaches the end of its range; torques and speeds have no limit."""
    robot = models.load("scara")
    motion = references.Sinusoids(robot, robot.neutral(), 0.3, 0.4)
    q0, v0, _ = motion(0.0)
    run = gc.simulate(robot, QPInverseDynamics(robot, motion), q0, v0, 0.5, 1e-3, control_dt=1e-3, monitors=None)
    assert run.signals["active"][-1] == 1.0
    assert 0.2 < run.q[:, 2].max() <= robot.limits.upper[2] + 1e-9
    free = [0, 1, 3]
    np.testing.assert_allclose(run.q[-1, free], motion(0.5).q[free], atol=5e-3)


def held(robot, **options):
    return QPInverseDynamics(robot, references.hold(robot, robot.neutral()), **options)


@pytest.mark.parametrize(
    "law",
    [
        lambda: held(models.load("scara")),
        lambda: held(limited(effort=2.0)),
        lambda: held(models.two_link(), clearances=[("tip", np.array([9.0, 0.0, 0.0]), 0.1)]),
        lambda: held(models.two_link(), tasks=[("tip", lambda t: np.zeros((3, 3)))], priority="strict"),
    ],
    ids=["range of a joint", "torque", "clearance", "strict priority"],
)
def test_a_law_that_may_solve_a_program_is_not_compiled(law):
    law = law()
    robot = law.robot
    refused = pytest.raises(
        UntraceableError, match=r"QPInverseDynamics can not be traced: Clarabel .*qp_inverse.*line.*compiled=False"
    )
    with refused:
        gc.compile(law)
    options = gc.SimulationOptions(compiled=True)
    for control_dt in (None, 1e-3):
        with refused:
            q0 = robot.neutral()
            gc.simulate(robot, law, q0, np.zeros(robot.nv), 0.01, 1e-3, control_dt, monitors=None, options=options)


def test_a_law_that_never_solves_a_program_is_compiled():
    robot = models.two_link()
    law = held(robot, tasks=[("tip", lambda t: np.zeros((3, 3)))])
    q, v = np.array([0.4, -1.1]), np.array([0.3, 0.2])
    np.testing.assert_allclose(gc.compile(law)(0.0, q, v, None).tau, law(0.0, q, v, None).tau, rtol=1e-12)
