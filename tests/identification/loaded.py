"""Logs of robots that carry a known load, from Pinocchio: the load is a body behind a fixed joint there."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

import geomctrl as gc
from geomctrl.identification import Dataset
from geomctrl.models.io.writing import save_urdf

SMOOTHING = 0.01  # rad/s, smoothing of Coulomb friction, as RegressorModel has it


@dataclass(frozen=True)
class Load:
    """A body attached to `frame`: mass [kg], centre [m] and inertia about it [kg m^2] in the frame's axes."""

    mass: float = 1.6
    centre: tuple = (0.03, -0.02, 0.07)
    moments: tuple = (0.006, 0.008, 0.005, 0.001, -0.0005, 0.0008)  # xx, yy, zz, xy, xz, yz
    frame: str = "panda_link8"

    @property
    def inertia(self):
        xx, yy, zz, xy, xz, yz = self.moments
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def on(self, robot: gc.Robot) -> gc.Robot:
        return robot.with_payload(self.mass, self.centre, self.inertia, self.frame)


def motion(robot, seconds=10.0, rate=250.0, seed=0, slow=1.0, about=None):
    """Return (t, q, v, a): sums of four sines for each joint, of up to 1.2 rad and 1.5 Hz."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    w = 2.0 * np.pi * rng.uniform(0.08, 0.9, (4, robot.nv)) / slow
    phase, size = rng.uniform(0.0, 6.28, (4, robot.nv)), rng.uniform(0.1, 0.32, (4, robot.nv))
    x = t[:, None, None] * w + phase
    centre = np.array([0.0, -0.6, 0.2, -1.8, 0.1, 1.6, 0.4])[: robot.nv] if about is None else np.asarray(about)
    q = centre + (size * np.sin(x)).sum(1)
    return t, q, (size * w * np.cos(x)).sum(1), -(size * w**2 * np.sin(x)).sum(1)


class Oracle:
    """Torques and wrenches of a robot by Pinocchio, which reads its URDF and does not use our regressors."""

    def __init__(self, robot, load, folder):
        path = save_urdf(robot, folder / f"{robot.name}.urdf")
        self.model = pin.buildModelFromUrdf(str(path))
        self.model.gravity.linear = robot.gravity
        joints = [self.model.getJointId(j) for j in robot.joint_names]
        self.order, self.places = [self.model.idx_vs[j] for j in joints], [self.model.idx_qs[j] for j in joints]
        self.endless = [self.model.nqs[j] == 2 for j in joints]  # given as cosine and sine
        self.wrist = None
        if load is not None:  # a joint that never moves: the sensor reads the wrench that it transmits
            at = self.model.frames[self.model.getFrameId(load.frame)]
            self.wrist = self.model.addJoint(at.parentJoint, pin.JointModelRZ(), at.placement, "sensor")
            body = pin.Inertia(load.mass, np.array(load.centre), load.inertia)
            self.model.appendBodyToJoint(self.wrist, body, pin.SE3.Identity())
        self.data = self.model.createData()

    def __call__(self, q, v, a):
        """Return torques (N, nv), and wrenches on the load in its frame, forces first, (N, 6) or None."""
        tau, F = [], []
        x, rates = pin.neutral(self.model), np.zeros((2, self.model.nv))
        for state in zip(q, v, a):
            for place, endless, angle in zip(self.places, self.endless, state[0]):
                x[place : place + 1 + endless] = (np.cos(angle), np.sin(angle)) if endless else angle
            rates[:, self.order] = state[1:]
            tau.append(pin.rnea(self.model, self.data, x, *rates)[self.order])
            if self.wrist is not None:
                F.append(self.data.f[self.wrist].vector.copy())
        return np.array(tau), np.array(F) if F else None


def friction(v, viscous=2.0, coulomb=1.5):
    return viscous * v + coulomb * np.tanh(v / SMOOTHING)


def torque_log(robot, load, folder, seed=0, noise=0.2, bits=19, extra=None, label="log", **options):
    """Return a Dataset: quantised encoders, white torque noise, friction as `extra(v, tau)` or the default."""
    t, q, v, a = motion(robot, seed=seed, **options)
    tau, _ = Oracle(robot, load, folder)(q, v, a)
    tau = tau + (friction(v) if extra is None else extra(v, tau))
    rng = np.random.default_rng(1000 + seed)
    step = 2.0 * np.pi / 2**bits
    return Dataset(t, step * np.round(q / step), tau + noise * rng.normal(size=tau.shape), label=label)
