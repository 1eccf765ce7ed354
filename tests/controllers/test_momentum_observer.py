"""The momentum observer's residual is the external torque behind a lag, by its closed form; the wrench, contact, V."""

import numpy as np
import pytest
from oracles import assert_close
from simulation_options import IN_PYTHON

import geomctrl as gc
from geomctrl import controllers, models, operational_space, testing
from geomctrl.control.references import Quintic, Sinusoids, hold
from geomctrl.errors import ArgumentError, NameNotFoundError

ARM = models.panda()
TOOL = ARM.body_names[-1]
POSTURE = np.array([0.1, -0.5, 0.2, -1.8, 0.3, 1.5, 0.4])
WRENCH = np.array([0.5, -0.3, 0.2, 4.0, -6.0, 8.0])  # on the last body, in its frame


def pushed(t, q, v):
    f = np.zeros((ARM.nbodies, 6))
    f[ARM.frame(TOOL).body] = WRENCH
    return f


def observer(law=None, **options):
    return controllers.MomentumObserver(
        controllers.JointImpedance(ARM, hold(ARM, POSTURE)) if law is None else law, **options
    )


def test_the_residual_is_the_external_torque_through_a_lag():
    """r' = K (tau_ext - r) on a moving robot, integrated separately with tau_ext = J^T F at the samples."""
    law = observer(controllers.JointImpedance(ARM, Quintic(ARM, POSTURE, POSTURE + 0.4, 0.3)), gain=30.0)
    run = gc.simulate(
        gc.Plant(ARM, f_ext=pushed), law, POSTURE, np.zeros(7), 0.25, 1e-3, monitors=None, options=IN_PYTHON
    )
    torque = np.array([ARM.jacobian(q, TOOL).T @ WRENCH for q in run.q])
    r = np.zeros(7)
    for k in range(len(run.t) - 1):  # exact if the torque is linear in time between samples
        h, a, b = run.t[k + 1] - run.t[k], torque[k], torque[k + 1]
        decay, slope = np.exp(-30.0 * h), (b - a) / h
        r = b - slope / 30.0 + decay * (r - a + slope / 30.0)
    assert_close(run.signals["residual"][-1], r, 1e-5)
    assert np.abs(r - torque[-1]).max() < 0.05 * np.abs(torque[-1]).max()


def test_the_wrench_is_the_one_that_pushes_and_contact_is_seen():
    law = observer(gain=100.0, threshold=1.0, frame=TOOL)
    run = gc.simulate(
        gc.Plant(ARM, f_ext=pushed), law, POSTURE, np.zeros(7), 0.2, 2e-3, monitors=None, options=IN_PYTHON
    )
    assert_close(run.signals["wrench"][-1], WRENCH, 1e-2)
    assert run.signals["contact"][0] == 0.0
    assert run.signals["contact"][-1] == 1.0
    free = gc.simulate(ARM, law, POSTURE + 0.1, np.zeros(7), 0.1, 1e-3, options=IN_PYTHON)
    assert free.ok
    assert not free.signals["contact"].any()
    assert np.abs(free.signals["residual"]).max() < 1e-6


def test_a_torque_that_no_wrench_on_the_frame_makes_is_not_taken_for_one():
    law = observer(frame=TOOL)
    J = ARM.jacobian(POSTURE, TOOL)
    assert_close(law._wrench(POSTURE, J.T @ WRENCH), WRENCH, 1e-9)
    extra = operational_space.null_space_projector(ARM, POSTURE, J).T @ np.ones(7)
    assert np.abs(extra).max() > 0.1
    assert_close(law._wrench(POSTURE, extra), np.zeros(6), 1.0, 1e-8)


def test_friction_that_the_observer_does_not_know_looks_like_contact():
    friction = gc.Friction(1.0)
    reference = Quintic(ARM, POSTURE, POSTURE + 0.4, 0.3)
    largest = []
    for known in (None, friction):
        law = observer(controllers.Passivity(ARM, reference, K=1.0, friction=friction), friction=known)
        run = gc.simulate(
            gc.Plant(ARM, friction), law, POSTURE, np.zeros(7), 0.3, 2e-3, monitors=None, options=IN_PYTHON
        )
        largest.append(np.abs(run.signals["residual"]).max())
    assert largest[0] > 0.1
    assert largest[1] < 1e-4


def test_lyapunov_along_any_law_with_its_own_state():
    robot = models.two_link()
    reference = Sinusoids(robot, robot.neutral(), 0.3, 0.4)
    adaptive = controllers.SlotineLi(robot, reference, 3.0, 4.0, minimum_mass=0.2)
    for inner in (controllers.Passivity(robot, reference, K=4.0), adaptive):
        law = controllers.MomentumObserver(inner, gain=10.0)

        def rest(t, law=law, inner=inner):
            q, v, _ = reference(t)
            own = adaptive.true_parameters(gc.Plant(robot)) if inner is adaptive else np.zeros(0)
            return q, v, np.concatenate((own, robot.mass_matrix(q) @ v))

        testing.assert_lyapunov(
            law,
            robot,
            region=testing.Region(0.3, equilibrium=rest),
            states=6,
            search=100,
            runs=testing.Runs(1, duration=0.1),
        )
        compiled = gc.compile(law)
        q, v, z = rest(0.3)
        assert_close(compiled(0.3, q, v, z).z_rate, law(0.3, q, v, z).z_rate, 1e-9)


def test_at_rest_the_observer_knows_where_v_vanishes():
    robot = models.two_link()
    law = controllers.MomentumObserver(controllers.PDGravity(robot, [0.3, 0.5]), gain=10.0)
    testing.assert_lyapunov(law, robot, states=5, search=100, runs=testing.Runs(1, duration=0.1))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_robot_that_starts_moving_is_not_taken_for_one_that_is_pushed(compiled):
    robot = models.two_link()
    inner = controllers.SlotineLi(robot, Sinusoids(robot, robot.neutral(), 0.3, 0.4))
    watched = controllers.MomentumObserver(inner)
    tank = controllers.EnergyTank(controllers.JointImpedance(robot, inner.reference), watched)
    law, q0, v0 = controllers.MomentumObserver(tank, threshold=1e-3), np.array([0.4, 1.2]), np.array([2.0, -1.0])
    p0 = robot.mass_matrix(q0) @ v0
    z0 = law.start(q0, v0)
    np.testing.assert_array_equal(z0[:20], inner.start())
    # states: the inner observer's, then E, then the outer observer's
    np.testing.assert_allclose(z0[20:22], p0, rtol=1e-12)
    np.testing.assert_allclose(z0[23:], p0, rtol=1e-12)
    assert not law.start()[23:].any()
    run = gc.simulate(robot, law, q0, v0, 0.05, 1e-3, monitors=None, options=gc.SimulationOptions(compiled=compiled))
    assert np.abs(run.signals["residual"]).max() < 1e-5 * law.gain[0, 0] * np.abs(p0).max()
    assert not run.signals["contact"].any()


def test_words():
    with pytest.raises(ArgumentError, match="law: expected"):
        controllers.MomentumObserver(3.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NameNotFoundError, match="no frame"):
        observer(frame="nose")
    with pytest.raises(ArgumentError, match="threshold: expected"):
        observer(threshold=-1.0)
    with pytest.raises(ArgumentError, match="frame: expected the name"):
        observer()._wrench(POSTURE, np.ones(7))
    with pytest.raises(ArgumentError, match="z: expected"):
        observer()(0.0, POSTURE, np.zeros(7), np.zeros(3))
