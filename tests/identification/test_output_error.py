"""Fits by simulating the loop, against logs whose truth is known, and their derivatives against differences."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from lib.logs import between
from oracles import assert_close
from servo_logs import ARM, COULOMB, KD, KP, MODEL, MOTION, PID, SMOOTHING, VISCOUS, servo_log, true_parameters

import geomctrl as gc
from geomctrl import controllers, models, references
from geomctrl.control.compiled.law_slopes import law_slopes
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.identification import (
    Column,
    ControllerLoop,
    Curve,
    DataError,
    RegressorModel,
    SampledReference,
    ServoLoop,
    closed_loop_fit,
    fit,
)
from geomctrl.identification.logs.parts import cut_at_holes
from geomctrl.identification.output_error import cloe, didim
from geomctrl.identification.output_error.simulation import Dynamics, Layout, schedule, sensitivities, simulated
from geomctrl.tracing.untraceable import UntraceableError

TRUTH = true_parameters()
BASE = MODEL.base.projection @ TRUTH
PERIOD = 4e-3


@cache
def estimate():
    """An estimate of MODEL with given parameters."""
    return fit(MODEL, servo_log(PERIOD, 2.0)[0].filtered(20.0))


def right():
    return replace(estimate(), x=TRUTH)


def wrong(seed=0, by=0.2):
    """An estimate whose parameters are all wrong by 20 %, up or down."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(TRUTH))
    return replace(estimate(), x=TRUTH * (1.0 + by * signs))


def z_of(result, truth):
    return (result.values - truth) / result.std


# --- the simulation ---------------------------------------------------------------------------------------------


def test_the_simulated_loop_is_the_one_that_made_the_log():
    """Another integrator, law and delay of the library: positions and torques agree, for delays of parts of a
    sample, too.
    """
    data, run = servo_log(PERIOD, 0.4, delay=0.0026, steps=20, ki=50.0)
    loop = ServoLoop(MOTION, KP, KD, 50.0, period=PERIOD, delay=0.0026)
    dynamics, of = Dynamics(MODEL, TRUTH), loop._running(ARM, data.t)
    own = simulated(dynamics, of, schedule(PERIOD, 0.0026, 8), len(data), run.q[0], run.v[0], np.zeros(2))
    assert_close(own.q, data.q, 1e-6)
    assert_close(own.u, data.tau, 1e-6)
    late = simulated(dynamics, of, schedule(PERIOD, 0.0036, 8), len(data), run.q[0], run.v[0], np.zeros(2))
    assert np.abs(late.u - data.tau).max() > 1e-2, "the delay matters"


EVERYTHING = RegressorModel(
    models.two_link(), rotor=[1], smoothing=0.05, springs=[1], transmission=[[1.0, 0.0], [-0.5, 1.0]],
    curves=[Curve(0, "stribeck", 0.2), Curve(1, "sigmoid", 0.5)],
    columns=[
        gc.friction.AsymmetricCoulomb(0.3, 0.2, 0.1),
        Column("pendulum", lambda q, v, a: np.sin(q), initial=0.4),
    ],
)  # fmt: skip
ROBOT = EVERYTHING.robot
LAW = controllers.ComputedTorque(ROBOT, MOTION, kp=100.0, kd=20.0)
LOOPS = {
    "PID": ServoLoop(MOTION, KP, KD, [50.0, 30.0], period=2e-3),
    "differences": ServoLoop(MOTION, KP, KD, 5.0, period=2e-3, velocity=50.0, gravity=ROBOT, feedforward=ROBOT),
    "controller": ControllerLoop(LAW, 2e-3),
    "with a state": ControllerLoop(PID(ROBOT, MOTION, KP, KD, 50.0, 2e-3), 2e-3),
}


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("delay", [0.0013, 0.0051])
def test_sensitivities_are_those_of_the_steps_that_were_taken(name, delay):
    """Along random directions of all unknowns, against central differences of the simulation itself."""
    loop, model, t = LOOPS[name], EVERYTHING, 2e-3 * np.arange(50)
    x0, gains = model.prior, tuple(loop.gains)
    x0[model.positive] = 0.3
    x0[model.by_kind["user"]] = [c.initial for c in model.columns]
    own = [np.broadcast_to(loop.gains[g], 2) for g in gains]
    parts = [model.base.projection @ x0, np.concatenate([*own, []]), [delay], [0.1, -0.1, 0.5, 0.3]]
    parts.append(np.zeros(loop._running(ROBOT, t).states))
    ends = np.cumsum([len(x) for x in parts])[:-1]

    def at(theta):
        beta, gain, late, first, extra = np.split(theta, ends)
        changed = loop._changed(delay=float(late[0]), **{g: gain[2 * k : 2 * k + 2] for k, g in enumerate(gains)})
        of, plan = changed._running(ROBOT, t), schedule(2e-3, float(late[0]), 2, True)
        dynamics = Dynamics(model, model.base.lift(beta, x0))
        z0 = of.start(first[:2], first[2:])[0] + extra
        return dynamics, of, plan, simulated(dynamics, of, plan, len(t), first[:2], first[2:], np.ones(2), z0)

    theta = np.concatenate(parts)
    outcome = list(sensitivities(*at(theta), gains, Layout(*map(len, parts))))
    J = np.concatenate([np.concatenate((x.position, x.torque), 1) for x in outcome])
    rng, scale = np.random.default_rng(0), np.maximum(np.abs(theta), 0.1)
    scale[ends[1] : ends[2]] = 1e-3
    late = np.where(np.arange(len(theta)) == ends[1], scale, 0.0)  # the delay alone, because the others outweigh it
    for along in (late, *(scale * rng.normal(size=(4, len(theta))))):
        values = [np.concatenate((run.q, run.u), 1) for run in (at(theta + s * 1e-5 * along)[3] for s in (1, -1))]
        assert_close(J @ along, (values[0] - values[1]) / 2e-5, 1e-6)


def test_friction_of_the_load_and_of_the_direction_add_up_in_accelerations():
    """Accelerations solve the model's equation, although friction depends on them; derivatives equal differences."""
    frictions = [gc.friction.LoadDependent([0.2, 0.1], 0.1), gc.friction.AsymmetricCoulomb(0.3, 0.2, 0.1)]
    model = RegressorModel(ARM, viscous=False, coulomb=False, columns=frictions)
    assert [c.name for c in model.columns] == [f"friction{k}" for k in range(1, 7)]
    x, (q, v, u) = model.prior, np.random.default_rng(0).normal(size=(3, 4, 2))
    a = Dynamics(model, x).acceleration(q, v, u)
    assert_close(model.torque(x, q, v, a), u, 1e-10)
    slopes = Dynamics(model, x).slopes(q, v, a)
    directions = np.random.default_rng(1).normal(size=(3, 2))
    for by, direction, place in zip(slopes, directions, range(3)):
        ahead, behind = (
            Dynamics(model, x).acceleration(*((z + s * direction * (k == place)) for k, z in enumerate((q, v, u))))
            for s in (1e-6, -1e-6)
        )
        assert_close(by @ direction, (ahead - behind) / 2e-6, 1e-6)


def test_derivatives_of_a_law_are_those_of_its_trace():
    """Derivatives of PID are compared with a manual formula, those of computed torque with central differences."""
    law = PID(ROBOT, MOTION, KP, KD, 50.0, 2e-3)
    outcome = law_slopes(law, ROBOT)(0.3, np.array([0.1, 0.2]), np.array([0.3, -0.1]), np.array([0.01, 0.02]))
    assert_close(outcome["tau"], np.hstack((-np.diag(KP), -np.diag(KD), 50.0 * np.eye(2))), 1e-12)
    assert_close(outcome["z_next"], np.hstack((-2e-3 * np.eye(2), np.zeros((2, 2)), np.eye(2))), 1e-12)
    q, v = np.array([0.4, -0.7]), np.array([0.5, 1.0])
    J = law_slopes(LAW, ROBOT)(0.3, q, v, None)["tau"]
    for k in range(4):
        d = 1e-6 * np.eye(4)[k]
        ahead, behind = (LAW(0.3, q + s * d[:2], v + s * d[2:], None).tau for s in (1.0, -1.0))
        assert_close(J[:, k], (ahead - behind) / 2e-6, 1e-7)


def test_derivatives_of_a_law_that_differs_from_its_trace_are_refused():
    def law(t, q, v, z):
        stiffness = 20.0 if getattr(q[0], "graph", None) is None else 10.0  # what Python computes with numbers
        return gc.Command(-stiffness * q - v)

    with pytest.raises(UntraceableError, match="tau differs from its value in Python"):
        law_slopes(law, ROBOT)


def test_a_reference_of_samples_moves_at_its_ends_and_stays_beyond_them():
    """Time stamps that are off by rounding, or by a small part of a period, do not stop the fit."""
    t = 0.01 * np.arange(50)
    desired = SampledReference(t, np.column_stack((np.sin(t), np.cos(t))))
    ends = desired._at(np.array([-0.004, 0.0, t[-1] + 1e-15, t[-1] + 0.004]))
    assert_close(ends.q[1:3], [[0.0, 1.0], [np.sin(t[-1]), np.cos(t[-1])]], 1e-12)
    assert_close(ends.v[:, 0], np.cos(t[[0, 0, -1, -1]]), 1e-3)
    beyond = desired._at(np.array([-0.02, t[-1] + 0.02]))
    assert_close(beyond.q, ends.q[1:3], 1e-12)
    assert not beyond.v.any()
    assert not beyond.a.any()


# --- DIDIM --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted():
    """12-bit encoders, differences of positions in the loop, half a sample of delay."""
    return servo_log(PERIOD, 5.0, delay=0.002, steps=10, bits=12)[0]


def test_didim_reaches_the_truth_where_differentiated_positions_are_biased(counted):
    loop = ServoLoop(MOTION, KP, KD, period=PERIOD, delay=0.002, velocity="differences")
    outcome = didim(wrong(), counted, loop)
    assert outcome.converged
    assert len(outcome.history) < 10
    assert np.abs(z_of(outcome, BASE)).max() < 3.5
    inverse = fit(MODEL, counted.filtered(50.0))
    assert np.abs((inverse.values - BASE) / inverse.std).max() > 5.0, "differences of counts bias least squares"
    assert np.linalg.norm(outcome.values - BASE) < 0.1 * np.linalg.norm(inverse.values - BASE)


@pytest.mark.slow
def test_didim_with_a_low_pass_a_reference_of_samples_and_a_consistent_estimator(counted):
    counted = between(counted, 0.0, 3.0)
    desired = [MOTION(t) for t in counted.t]
    columns = SampledReference(counted.t, [d.q for d in desired], [d.v for d in desired])
    loop = ServoLoop(columns, KP, KD, period=PERIOD, delay=0.002, velocity="differences")
    outcome = closed_loop_fit(wrong(), counted, loop, estimator="consistent", cutoff=10.0, decimate=5)
    assert outcome.converged
    assert outcome.estimate.is_physical
    assert_close(outcome.values[:6], BASE[:6], 1e-2)
    assert np.isnan(outcome.std).all(), "the estimator has no covariance"


@pytest.mark.slow
def test_a_controller_of_the_library_is_a_loop():
    law = controllers.ComputedTorque(ARM, MOTION, kp=100.0, kd=20.0)
    data, _ = servo_log(PERIOD, 2.5, delay=0.002, steps=10, law=law, noise=0.05)
    loop = ControllerLoop(law, PERIOD, delay=0.002)
    for outcome in (didim(wrong(), data, loop), cloe(wrong(), data, loop)):
        assert outcome.converged
        assert np.abs(z_of(outcome, BASE)).max() < 4.0
    assert_close(outcome.values, BASE, 2e-2)


# --- closed-loop output error ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_gains_delay_friction_and_armature_are_found_together():
    data, _ = servo_log(PERIOD, 4.0, delay=0.0026, steps=20, bits=14)
    loop = ServoLoop(MOTION, 1.2 * KP, 0.8 * KD, period=PERIOD, delay=0.001, velocity="differences")
    outcome = closed_loop_fit(wrong(), data, loop, "cloe", gains=("kp", "kd"), delay=True)
    truth = np.concatenate((BASE, KP, KD, [0.0026]))
    assert outcome.converged
    assert len(outcome.history) < 10
    assert not outcome.undetermined
    assert np.abs(z_of(outcome, truth)).max() < 3.5
    assert abs(outcome.value("delay") - 0.0026) < 1e-4 < 0.1 * PERIOD
    assert_close(outcome.loop.kp, KP, 1e-2)
    assert outcome.loop.delay == outcome.value("delay")
    friction = [outcome.value(name) for name in ("fv1", "fv2", "fc1", "fc2")]
    assert_close(friction, [*VISCOUS, *COULOMB], 3e-2)
    assert outcome.value("Ir2") == pytest.approx(0.1, rel=1e-2)


@pytest.mark.slow
def test_seven_joints_from_the_inverse_dynamics_fit():
    """The Panda with rotors, friction, 17-bit encoders, differences in the loop and a delay of 0.65 samples: 62
    base parameters, 14 gains and the delay are within their intervals, and most are far closer than at the start.
    """
    robot = models.panda().with_armature([0.6, 0.6, 0.5, 0.5, 0.2, 0.2, 0.1])
    viscous, coulomb = [2.0, 2.0, 1.5, 1.5, 0.7, 0.7, 0.5], [2.5, 2.0, 2.0, 1.5, 0.8, 0.7, 0.5]
    rng, period = np.random.default_rng(3), 2e-3
    kp = np.array([1500.0, 1500.0, 1200.0, 1200.0, 500.0, 400.0, 200.0])
    kd = np.array([120.0, 120.0, 100.0, 100.0, 40.0, 30.0, 15.0])
    w, size = rng.uniform(0.1, 0.9, (4, 7)), rng.uniform(0.1, 0.3, (4, 7))
    q0 = [0.0, -0.6, 0.2, -1.8, 0.1, 1.6, 0.4]
    motion = references.Sinusoids(robot, q0, size, w, start_at_rest=1.0)
    data, _ = servo_log(
        period, 4.0, delay=0.65 * period, steps=20, bits=17, noise=0.1, law=PID(robot, motion, kp, kd, 0.0, period),
        friction=gc.Friction(viscous, coulomb, SMOOTHING),
    )  # fmt: skip
    model = RegressorModel(robot, rotor=True, smoothing=SMOOTHING, offset=False)
    x = model.prior
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]] = viscous, coulomb
    first = fit(model, data.filtered(10.0, decimate=4))
    guess = ServoLoop(motion, 1.2 * kp, 0.8 * kd, period=period, delay=0.3 * period, velocity="differences")
    outcome = cloe(first, data, guess, gains=("kp", "kd"), delay=True)
    base = model.base.projection @ x
    z = z_of(outcome, np.concatenate((base, kp, kd, [0.65 * period])))
    assert outcome.converged
    assert outcome.undetermined == ()
    assert np.abs(z).max() < 4.0
    assert 0.4 < np.sqrt(np.mean(z**2)) < 1.3
    assert np.linalg.norm(outcome.values[:62] - base) < 0.1 * np.linalg.norm(first.values - base)
    assert_close(outcome.loop.kp, kp, 0.02)
    reference = didim(first, data, outcome.loop)
    assert reference.converged
    assert np.linalg.norm(reference.values - base) < 0.2 * np.linalg.norm(first.values - base)


@pytest.mark.slow
def test_intervals_hold_over_many_noises():
    """z of all parameters over 8 logs: its root mean square is 1 within its statistical error."""
    data, _ = servo_log(PERIOD, 1.5, delay=0.002, steps=10)
    loop = ServoLoop(MOTION, KP, KD, period=PERIOD, delay=0.002)
    begin = right()
    z = []
    for seed in range(8):
        noise = np.random.default_rng(seed).standard_normal(data.tau.shape)
        noisy = gc.identification.Dataset(data.t, data.q + 1e-5 * noise[::-1], data.tau + 0.1 * noise)
        z.append(z_of(cloe(begin, noisy, loop, gains=("kp",)), np.concatenate((BASE, KP))))
    assert 0.7 < np.sqrt(np.mean(np.square(z))) < 1.3


def test_what_can_not_be_told_apart_is_said():
    """Two equal friction columns are identified as their sum, which is correct."""
    data, _ = servo_log(PERIOD, 1.0, delay=0.002, steps=10)
    twice = RegressorModel(ARM, rotor=[1], smoothing=SMOOTHING, offset=False, curves=[Curve(0, "sigmoid", SMOOTHING)])
    loop = ServoLoop(MOTION, KP, KD, period=PERIOD, delay=0.002)
    outcome = cloe(twice, data, loop)
    assert any("fc1" in name and "fs1" in name for name in outcome.names)
    assert not outcome.undetermined


@pytest.mark.slow
def test_two_parts_of_a_log_begin_where_they_begin():
    data, _ = servo_log(PERIOD, 3.2, delay=0.002, steps=10, noise=0.05)
    at = np.r_[0:300, 420:780]
    halves = cut_at_holes(gc.identification.Dataset(data.t[at], data.q[at], data.tau[at]))
    assert len(halves.stretches) == 2
    loop = ServoLoop(MOTION, KP, KD, period=PERIOD, delay=0.002)
    outcome = cloe(wrong(), [halves, between(data, 0.0, 1.2)], [loop, loop])
    assert outcome.converged
    assert np.abs(z_of(outcome, BASE)).max() < 4.0


def test_torques_applied_are_those_commanded_a_delay_before():
    data, run = servo_log(PERIOD, 2.0, delay=0.006, steps=10, noise=0.0)
    # 1.5 samples: at a sample the command of two samples before acts
    late = np.vstack((np.zeros((2, 2)), data.tau[:-2]))
    applied = gc.identification.Dataset(data.t[2:], data.q[2:], late[2:])
    loop = ServoLoop(MOTION, KP, KD, period=PERIOD, delay=0.006, torque="applied")
    outcome = cloe(right(), applied, loop)
    assert_close(outcome.values, BASE, 1e-2)
    again = didim(right(), between(applied, 0.5, 2.0), loop)
    assert_close(again.values[:6], BASE[:6], 1e-2)
    assert run.success


# --- bad input --------------------------------------------------------------------------------------------------------


def test_what_can_not_be_simulated_is_refused_in_words():
    data, _ = servo_log(PERIOD, 1.0)
    loop = ServoLoop(MOTION, KP, KD, period=PERIOD)
    with pytest.raises(ArgumentError, match="smoothing"):
        didim(RegressorModel(ARM, smoothing=0.0), data, loop)
    with pytest.raises(DataError, match="resampled"):
        didim(MODEL, data, loop._changed(period=3e-3))
    with pytest.raises(SimulationError, match=r"unstable.*see the gains"):
        didim(MODEL, data, loop._changed(kp=-KP, kd=-KD))
    with pytest.raises(ArgumentError, match="gains"):
        cloe(MODEL, data, loop, gains=("kq",))
    with pytest.raises(ArgumentError, match="gains"):
        cloe(MODEL, data, ControllerLoop(LAW, PERIOD), gains=("kp",))
    with pytest.raises(ArgumentError, match="has no option"):
        closed_loop_fit(MODEL, data, loop, gains=("kp",))
    with pytest.raises(ArgumentError, match="degree of freedom"):
        didim(models.quadrotor(), data, loop)
    with pytest.raises(gc.NameNotFoundError, match="kp1"):
        didim(right(), data, loop).value("kp1")
