"""Closed loops in which common mistakes violate an assumption of the stability proof: `wrong()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import geomctrl as gc
from geomctrl import actuators, controllers, models
from geomctrl.control import FlatOutputs
from geomctrl.control.elastic_joints import ElasticPlant
from geomctrl.control.references import Harmonic, RestToRest, hold

from .verdict_loops import ARM, PANDA, PUMA, UR10, Loop, Swinging, Torque, coupled, home, motion, resting, tracking

Q_D = np.array([0.4, -0.7])


class Changed:
    """A law with a mistake: `tau` is added to its command, and `V(V, rate, t, q, v)` replaces its claim."""

    def __init__(self, law: Any, tau: Any = None, V: Any = None, allowance: Any = None):
        self.law, self.robot, self._tau, self._V = law, law.robot, tau, V
        self.group = getattr(law, "group", None)
        for name in ("reference", "true_parameters", "q_d"):
            if hasattr(law, name):
                setattr(self, name, getattr(law, name))
        if allowance is not None:
            self.allowance = allowance

    def start(self):
        return self.law.start()

    def __call__(self, t, q, v, z):
        command = self.law(t, q, v, z)
        return command if self._tau is None else command._replace(tau=command.tau + self._tau(t, q, v))

    def lyapunov(self, t, q, v, z, plant):
        V, rate = self.law.lyapunov(t, q, v, z, plant)
        return gc.Lyapunov(V, rate) if self._V is None else gc.Lyapunov(*self._V(V, rate, t, q, v))


class WrongSign(controllers.SlotineLi):
    """p' = +Gamma Y^T s."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(z_rate=-command.z_rate)


class OwnC(controllers.Passivity):
    """C plus a share of a matrix that makes Mdot - 2C asymmetric and leaves C v unchanged."""

    share = 1.0

    def coriolis_matrix(self, q, v):
        C = np.array(self.robot.coriolis_matrix(q, v))
        normal = np.eye(len(v))[0] * v[1] - np.eye(len(v))[1] * v[0]  # normal . v = 0
        return C + self.share * np.outer(np.ones(len(v)), normal)


class Forgetting(controllers.SlotineLi):
    """p' = -Gamma (Y^T s + sigma p), and the V' of the law without sigma."""

    sigma = 0.5

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(z_rate=command.z_rate - self.sigma * self.Gamma @ z)


class Springs(gc.Plant):
    """Springs of a user's plant: the power into them differs from the rate of their energy by a share."""

    def __init__(self, robot: gc.Robot, share: float):
        super().__init__(robot, None)
        object.__setattr__(self, "share", share)

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) - 10.0 * q

    def stored_energy(self, q, x):
        return 5.0 * q @ q

    def storage_power(self, t, q, v, tau, x):
        return 10.0 * (1.0 + self.share) * q @ v


class Rushing:
    """A reference whose velocity differs from the rate of its position by a share."""

    def __init__(self, of: Any, share: float):
        self.of, self.share = of, share

    def __call__(self, t):
        q, v, a = self.of(t)
        return gc.control.Desired(q, v * (1.0 + self.share), a)


def wrong() -> Iterator[Loop]:
    yield from payloads()
    yield from other_models()
    yield from wrong_laws()
    yield from wrong_functions()
    yield from wrong_matrices_and_energies()
    yield from wrong_plants()
    yield from wrong_special()


def payloads() -> Iterator[Loop]:
    """A load [kg] on the last body that is missing in the law's model; starts on the reference."""
    for robot, masses in (
        (PANDA, (2.0, 1e-2, 1e-6)),
        (UR10, (1.0, 1e-4)),
        (PUMA, (0.5, 1e-3)),
        (ARM, (0.5, 1e-3, 1e-6)),
    ):
        for mass in masses:
            law = controllers.Passivity(robot, motion(robot))
            yield tracking(f"a load of {mass:g} kg unknown, {robot.name}", law, robot.with_payload(mass, (0, 0, 0.1)),
                           dt=1e-3 if mass > 1e-5 else 5e-4)  # fmt: skip
    for robot in (models.scara(), models.quadruped(), models.cart_pole()):
        law = controllers.ComputedTorque(robot, motion(robot))
        yield tracking(f"a load of 10 g unknown, {robot.name}", law, robot.with_payload(1e-2, (0.1, 0, 0.1)))


def other_models() -> Iterator[Loop]:
    for viscous in (0.5, 1e-3, 1e-6):
        plant = gc.Plant(ARM, gc.Friction(viscous=viscous))
        yield tracking(f"friction of {viscous:g} N m s/rad unknown", controllers.Passivity(ARM, motion(ARM)), plant)
    coulomb = gc.Plant(UR10, gc.Friction(coulomb=1.0, smoothing=0.05))
    yield tracking("Coulomb friction unknown, ur10", controllers.ComputedTorque(UR10, motion(UR10)), coulomb)
    for tilt in (0.1, 1e-3, 1e-6):
        tilted = PANDA.with_gravity((9.81 * tilt, 0.0, -9.81))
        yield resting(
            f"a base tilted by {tilt:g} rad, panda", controllers.PDGravity(PANDA, home(PANDA)), tilted, off=0.0
        )
    for share in (1.0, 1e-3, 1e-6):
        law = Changed(controllers.PDGravity(ARM, Q_D), lambda t, q, v, s=share: -s * ARM.gravity_force(q))
        yield resting(f"gravity short by {100 * share:g} %", law, off=0.0)
    armature = PUMA.with_armature(0.1 + PUMA.armature)
    still = controllers.Passivity(ARM, hold(ARM, Q_D), K=20.0, strict=True)
    yield tracking("a load of 1 kg unknown, at rest", still, ARM.with_payload(1.0, (1.0, 0.0, 0.0)), off=0.2,
                   certified=True, steps=600)  # fmt: skip
    sticking = gc.Plant(ARM, gc.Friction(coulomb=2.0, smoothing=0.05))
    yield tracking("Coulomb friction unknown, at rest", still, sticking, off=0.2, certified=True, steps=1500)
    yield tracking("rotors unknown, puma560", controllers.ComputedTorque(PUMA, motion(PUMA)), armature)
    yield tracking("a load on the joint that follows", controllers.Passivity(coupled(), motion(coupled())),
                   coupled().with_payload(0.1, (0.3, 0, 0)))  # fmt: skip


def wrong_laws() -> Iterator[Loop]:
    loaded = ARM.with_payload(1.0, (1.0, 0.0, 0.0))
    yield tracking("adaptation of the wrong sign", WrongSign(ARM, motion(ARM), rate=0.1), loaded, off=0.2)
    yield tracking(
        "adaptation of the wrong sign, ur10", WrongSign(UR10, motion(UR10), rate=0.1), UR10.with_payload(1.0)
    )
    yield tracking("an estimate that forgets, called exact", Forgetting(ARM, motion(ARM), rate=0.1), loaded)
    for share in (0.5, 1e-2, 1e-4):
        law = Changed(controllers.PDGravity(ARM, Q_D, 20.0, 1e-3), lambda t, q, v, s=share: (1e-3 + s) * v)
        yield resting(f"damping negative by {share:g} N m s/rad", law, off=0.3)
    skew = np.array([[0.0, 40.0], [-0.0, 0.0]])
    law = Changed(controllers.PDGravity(ARM, Q_D, 20.0, 5.0), lambda t, q, v: -skew @ v)
    yield resting("damping that is not passive", law, off=0.5, speed=2.0)
    stiff = np.array([[0.0, 8.0], [-8.0, 0.0]])
    law = Changed(controllers.PDGravity(ARM, Q_D, 20.0, 1.0), lambda t, q, v: -stiff @ (q - Q_D))
    yield resting("stiffness that is not symmetric", law)
    for size in (1.0, 1e-4):
        law = Changed(
            controllers.Passivity(PANDA, motion(PANDA)), lambda t, q, v, s=size: s * np.sin(9.0 * t) + 0.0 * q
        )
        yield tracking(f"a dither of {size:g} N m", law)
    for share in (0.1, 1e-5):
        law = controllers.Passivity(ARM, Rushing(motion(ARM), share))
        yield tracking(f"a reference whose velocity is off by {100 * share:g} %", law, asserted=False)
    late = Changed(controllers.Passivity(ARM, motion(ARM)), lambda t, q, v: 0.02 * (q - motion(ARM)(t).q) + 1e-3)
    yield tracking("a bias of 1 mN m", late)


def wrong_functions() -> Iterator[Loop]:
    pd = controllers.PDGravity(ARM, Q_D, 20.0, 0.5)
    for share in (1.0, 1e-2, 1e-4):
        law = Changed(pd, V=lambda V, r, t, q, v, s=share: (V + s * 10.0 * (q - Q_D) @ (q - Q_D), r))
        yield resting(f"V with a stiffness too high by {100 * share:g} %", law, off=0.3, dt=2e-3, steps=2000)
    yield resting("V without the kinetic energy's M", Changed(pd, V=lambda V, r, t, q, v: (
        0.5 * v @ v + 10.0 * (q - Q_D) @ (q - Q_D), r)), off=0.3)  # fmt: skip
    for size in (0.1, 1e-5):
        yield resting(f"V that swings with time by {size:g}", Changed(pd, V=lambda V, r, t, q, v, s=size: (
            V * (1.0 + s * np.sin(40.0 * t)), r)), off=0.3)  # fmt: skip
    yield resting("V with a step upwards at q1 = 0.5", Changed(pd, V=lambda V, r, t, q, v: (
        V + np.where(q[0] < 0.5, 0.05, 0.0), r)), off=0.3, steps=600)  # fmt: skip
    yield resting("V that is not finite", Changed(pd, V=lambda V, r, t, q, v: (
        V + np.where(q[0] < 0.5, np.nan, 0.0), r)), off=0.3, steps=600)  # fmt: skip


def wrong_matrices_and_energies() -> Iterator[Loop]:
    for share in (1.0, 1e-3, 1e-6, 1e-8):
        law = OwnC(PANDA, motion(PANDA))
        law.share = share
        yield tracking(f"Mdot - 2C off skew by {share:g}, panda", law, asserted=False)
    for share in (0.5, 1e-3, 1e-5):
        yield Loop(f"springs whose energy is off by {share:g}", Springs(ARM, share), Torque(ARM, 2.0), [0.3, 0.4],
                   [0.0, 0.0], asserted=False)  # fmt: skip


def wrong_plants() -> Iterator[Loop]:
    law = controllers.PDGravity(ARM, Q_D, 100.0, 20.0)
    weak = gc.Plant(ARM, None, actuators=[actuators.Saturation(np.array([12.0, 6.0]))])
    yield resting("saturation ignored", law, weak, off=0.8, steps=600, asserted=False)
    slow = gc.Plant(ARM, None, actuators=[actuators.Lag(0.05)])
    yield resting("a drive's lag ignored", law, slow, asserted=False, steps=600)
    push = gc.Wrench("tip", (0, 0, 0, 5.0, 0, 0), 0.0503, 0.1307)
    yield resting("a push ignored", law, gc.Plant(ARM, None, push), off=0.0, asserted=False)
    held = controllers.Passivity(ARM, motion(ARM), K=5.0)
    yield tracking(
        "held too long, 50 ms", held, off=0.6, dt=1e-3, options={"control_dt": 0.05}, steps=2000, asserted=False
    )
    yield resting("held too long, 40 ms", controllers.PDGravity(ARM, Q_D, 400.0, 40.0), dt=1e-3,
                  options={"control_dt": 0.04}, steps=1000, asserted=False)  # fmt: skip
    yield tracking("a load unknown, held", controllers.Passivity(PANDA, motion(PANDA)), PANDA.with_payload(1.0),
                   options={"control_dt": 1e-3}, asserted=False)  # fmt: skip
    loaded = ARM.with_payload(1.0, (1.0, 0.0, 0.0))
    yield tracking("adaptation of the wrong sign, held", WrongSign(ARM, motion(ARM), rate=0.1), loaded, off=0.2,
                   options={"control_dt": 1e-3}, asserted=False)  # fmt: skip
    yield tracking("a load unknown, every 10th sample stored", controllers.Passivity(PANDA, motion(PANDA)),
                   PANDA.with_payload(0.1),
                   options={"options": gc.SimulationOptions(every=10, compiled=False)}, asserted=False)  # fmt: skip
    changed = gc.Plant(PANDA, None, changes=[(0.1, PANDA.with_payload(1.0))])
    yield tracking("a load gripped that the law does not learn", controllers.Passivity(PANDA, motion(PANDA)), changed,
                   asserted=False)  # fmt: skip
    wall = gc.Plant(ARM, None, gc.Contact(["tip"], 1e4, 0.5, surface=gc.HalfSpace((0, 0, 1), (0, 0, 1.2))))
    yield resting("contact ignored", Swinging(ARM, 0.1), wall, off=0.8, dt=5e-4, steps=1000, asserted=False)
    loaded = ARM.with_payload(0.2, (1.0, 0.0, 0.0))
    yield tracking("a load unknown, adaptive method", controllers.Passivity(ARM, motion(ARM)), loaded, dt=1e-2,
                   steps=50,
                   options={"options": gc.SimulationOptions("MK54", compiled=False)}, asserted=False)  # fmt: skip


def wrong_special() -> Iterator[Loop]:
    body, satellite, cart = models.quadrotor(), models.satellite(), models.cart_pole()
    path = FlatOutputs(body, RestToRest((0, 0, 0, 0), (1.0, 0.5, 0.5, 0.3), 2.0))
    law = controllers.QuadrotorTracking(body, path)
    yield Loop(
        "a quadrotor heavier by 1 %", body.with_payload(0.0434), law, path(0.0).q, path(0.0).v, 2e-3, asserted=False
    )
    turn = gc.references.Sinusoids(satellite, satellite.neutral(), 0.3, 0.1)
    heavier = satellite.with_parameters(1.05 * satellite.parameters)
    yield tracking("a satellite's inertia off by 5 %", controllers.AttitudeTracking(satellite, turn), heavier, dt=1e-2,
                   asserted=False)  # fmt: skip
    lqr = controllers.LQR(cart, np.zeros(2), actuated=[0])
    flipped = Changed(lqr, lambda t, q, v: -2.0 * lqr(t, q, v, None).tau)
    yield Loop("LQR with the sign of its gain turned", cart, flipped, [0.01, 0.01], np.zeros(2), 2e-3, asserted=False)
    elastic = controllers.ElasticJoint(ARM, Harmonic(Q_D, 0.3, 0.4), 500.0, 0.1)
    softer = ElasticPlant(ARM, 400.0, 0.1)
    yield Loop("springs softer than the law knows", softer, elastic, np.tile(Q_D, 2), np.zeros(4), asserted=False)
    for name in ("OperationalSpace", "CartesianImpedance", "GeometricImpedance"):
        law = getattr(controllers, name)(UR10, motion(UR10), UR10.body_names[-1])
        yield tracking(f"{name}, a load of 100 g unknown", law, UR10.with_payload(0.1), asserted=False)
