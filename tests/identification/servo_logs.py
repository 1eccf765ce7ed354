"""Logs of robots with known parameters, from `gc.simulate` and a separate controller: independent of the fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl import models
from geomctrl.control.contracts import Command
from geomctrl.control.references import Sinusoids
from geomctrl.identification import Dataset, RegressorModel

SMOOTHING = 0.05
VISCOUS, COULOMB, ARMATURE = np.array([0.5, 0.3]), np.array([1.0, 0.6]), np.array([0.2, 0.1])
FRICTION = gc.Friction(VISCOUS, COULOMB, SMOOTHING)
KP, KD = np.array([400.0, 200.0]), np.array([30.0, 15.0])
ARM = models.two_link().with_armature(ARMATURE)
MODEL = RegressorModel(ARM, rotor=[1], smoothing=SMOOTHING, offset=False)
MOTION = Sinusoids(ARM, ARM.neutral(), [[0.6, 0.5], [0.3, 0.4]], [[0.3, 0.45], [1.1, 0.9]], start_at_rest=0.5)


class PID:
    """u = kp e + kd e' + ki sum(period e)."""

    def __init__(self, robot, reference, kp, kd, ki, period):
        self.robot, self.reference, self.period = robot, reference, period
        self.kp, self.kd, self.ki = (np.asarray(x, float) for x in (kp, kd, ki))

    def start(self):
        return np.zeros(self.robot.nv)

    def __call__(self, t, q, v, z):
        desired = self.reference(t)
        e = desired.q - q
        return Command(self.kp * e + self.kd * (desired.v - v) + self.ki * z, None, {}, z + self.period * e)


def rubbing(robot):
    """The same with ARM's friction in its joints, so that it is in the prior of a model."""
    joints = (replace(j, damping=d, friction=c) for j, d, c in zip(robot.joints, VISCOUS, COULOMB))
    return replace(robot, joints=tuple(joints))


def true_parameters(model=MODEL):
    """Parameters x of the model for ARM with its friction."""
    x = model.prior
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]] = VISCOUS, COULOMB
    return x


def servo_log(
    period, seconds, *, delay=0.0, steps=1, bits=None, ki=0.0, law=None, noise=0.0, seed=0, friction=FRICTION
):
    """The law's robot, ARM under a PID law by default, logged at its samples: with `bits`, from an encoder, and
    velocities are its differences.

    steps: of integration a sample, `delay` being a multiple of them. noise [N m]: of the torques.
    """
    law = PID(ARM, MOTION, KP, KD, ki, period) if law is None else law
    sensors = [] if bits is None else [gc.sensors.Encoder(bits)]
    links = [gc.actuators.TransportDelay(delay)] if delay else []
    true = gc.Plant(law.robot, friction, actuators=links, sensors=sensors)
    begin = law.reference(0.0)
    run = gc.simulate(
        true, law, begin.q, begin.v, seconds, period / steps, control_dt=period, monitors=None, options=COMPILED
    )
    k = slice(None, None, steps)
    q = run.q[k] if bits is None else run.measured["q"][k]
    tau = run.tau[k] + noise * np.random.default_rng(seed).standard_normal(run.tau[k].shape)
    return Dataset(run.t[k], q, tau), run
