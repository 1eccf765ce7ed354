"""Sensitivities of a closed-loop output error to its unknowns, against closed forms and finite differences."""

import re
from itertools import combinations

import numpy as np
import pytest
from lib.logs import between
from oracles import assert_close
from servo_logs import ARM, COULOMB, KD, KP, MODEL, MOTION, PID, SMOOTHING, VISCOUS, rubbing, servo_log, true_parameters
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl.control.contracts import Desired
from geomctrl.identification import Dataset, RegressorModel, ServoLoop
from geomctrl.identification.output_error import cloe
from geomctrl.identification.output_error.cloe import units
from geomctrl.identification.output_error.experiment import experiment
from geomctrl.identification.output_error.unknowns import Unknowns

PERIOD, SPEED = 4e-3, 0.8
GAINS = ("kp", "kd")


def ramp(t):
    """Joint 1 at a constant speed, joint 2 at rest."""
    return Desired(np.array([SPEED * t, 0.5]), np.array([SPEED, 0.0]), np.zeros(2))


def differences(result, log, noise):
    """Return the derivatives of all errors, in units of their noise, by parameters and initial state in natural
    units, and these units; by central differences of simulations, independent of the analytic derivatives.
    """
    model = result.estimate.model
    unknown = Unknowns(experiment(model, log, result.loop), result.estimate.x, GAINS, False, True)
    theta = unknown.first()
    theta[unknown.shared :][:4] = np.concatenate((result.simulated.q[0], result.simulated.v[0]))
    scale, size = units(unknown, theta), unknown.shared + 4  # without the integrals, which have no effect for ki = 0

    def errors(theta):
        return (unknown.at(theta).errors[0] / noise).ravel()

    steps = 1e-4 * np.where(np.arange(size) < unknown.shared, scale[:size], 0.01)
    rows = [(errors(theta + h * e) - errors(theta - h * e)) / (2.0 * h) for h, e in zip(steps, np.eye(len(theta)))]
    return np.array(rows).T * scale[:size], scale[: unknown.shared]


def noisy(data, noise):
    e = np.random.default_rng(0).normal(size=(len(data), 4)) * noise
    return Dataset(data.t, data.q + e[:, 2:], data.tau + e[:, :2])


def model_of(robot):
    return RegressorModel(rubbing(robot), rotor=[1], smoothing=SMOOTHING, offset=False)


def test_at_one_speed_viscous_and_coulomb_friction_are_one_number():
    """A weightless arm that rotates steadily: friction is SPEED fv1 + fc1; inertia, kd and joint 2 are not
    determined.
    """
    arm = ARM.with_gravity((0.0, 0.0, 0.0))
    plant = gc.Plant(arm, gc.Friction(VISCOUS, COULOMB, SMOOTHING))
    law = PID(arm, ramp, KP, KD, 0.0, PERIOD)
    run = gc.simulate(
        plant, law, ramp(0.0).q, ramp(0.0).v, 6.0, PERIOD, control_dt=PERIOD, monitors=None, options=COMPILED
    )
    noise = np.repeat([0.01, 1e-7], 2)
    # the effect of the initial state has decayed by e^-50
    log = noisy(between(Dataset(run.t, run.q, run.tau), 5.0, 6.0), noise)
    heavier = arm.with_parameters(1.1 * arm.parameters)
    result = cloe(model_of(heavier), log, ServoLoop(ramp, KP, KD, period=PERIOD), gains=GAINS)

    assert result.converged
    friction = SPEED * result.value("fv1") + result.value("fc1")
    assert friction == pytest.approx(SPEED * VISCOUS[0] + COULOMB[0], abs=5e-3)
    for name in ("kp1", "kp2"):
        assert abs(result.value(name) - KP[int(name[-1]) - 1]) < 4.0 * result.deviation(name) < 5.0
    assert any(x.startswith("fv1 - 0.8 fc1, changed so together: nothing measured") for x in result.undetermined)
    alone = {
        x.split(":")[0].strip("()") for x in result.undetermined if x.endswith("fv2: nothing measured depends on it")
    }
    assert alone == {"fv2"}
    named = {name for name in result.names if any(re.search(rf"\b{re.escape(name)}\b", x) for x in result.undetermined)}
    open_ = {name for name, std in zip(result.names, result.std) if np.isinf(std)}
    assert open_ == set(result.names) - {"kp1", "kp2"}
    assert open_ <= named
    J, _ = differences(result, log, noise)
    singular = np.linalg.svd(J, compute_uv=False)
    assert (singular < 1.0).sum() == len(result.undetermined)


def test_parameters_that_are_hardly_told_apart_are_named():
    """Pairs with a correlation above 0.98, against the inverse of the information matrix from differences."""
    data = servo_log(PERIOD, 0.6)[0]
    noise = np.repeat([0.01, 1e-3], 2)
    log = noisy(data, noise)
    result = cloe(model_of(ARM), log, ServoLoop(MOTION, KP, KD, period=PERIOD), gains=GAINS)
    assert result.undetermined == ()
    J, unit = differences(result, log, noise)
    shared = len(unit)
    covariance = np.linalg.inv(J.T @ J)[:shared, :shared]
    d = np.sqrt(np.diag(covariance))
    r = np.abs(covariance / np.outer(d, d))
    said = {tuple(x.split(": ")[0].split(" and ")) for x in result.correlated}
    sure = {(result.names[i], result.names[j]) for i, j in combinations(range(shared), 2) if r[i, j] > 0.99}
    near = {(result.names[i], result.names[j]) for i, j in combinations(range(shared), 2) if r[i, j] > 0.95}
    assert sure
    assert sure <= said <= near
    ratio = result.std / (d * unit)
    assert 0.5 < np.exp(np.mean(np.log(ratio))) < 1.6, "white noise: deviations are those of the information"


def test_a_log_that_tells_everything_leaves_nothing_open():
    data = servo_log(PERIOD, 4.0, noise=0.05)[0]
    result = cloe(model_of(ARM), data, ServoLoop(MOTION, KP, KD, period=PERIOD))
    assert result.undetermined == ()
    assert result.correlated == ()
    assert np.isfinite(result.std).all()
    assert_close(result.values[:6], (MODEL.base.projection @ true_parameters())[:6], 0.02)
