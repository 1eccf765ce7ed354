"""Closed loops with right proofs, and closed loops with wrong proofs and the reason: `right()`, `wrong()`.

A loop is right if the claim of its law holds for its plant: V falls, except for the law's `allowance`; H' is the power;
and Mdot - 2C is skew. It is wrong where one of these fails, by a mistake in the law, in its V, in the model, or in the
energy that the plant reports. Mistakes go from gross to 1e-6, so that verdicts are tested where they are hard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import geomctrl as gc
from geomctrl import actuators, controllers, inertia, models, sensors
from geomctrl.control import FlatOutputs
from geomctrl.control.elastic_joints import ElasticPlant
from geomctrl.control.references import Harmonic, RestToRest, Sinusoids, hold

ARM, PANDA, UR10, PUMA = models.two_link(), models.panda(), models.ur10(), models.puma560()
HOMES = {"panda": [0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8], "ur10": [0.0, -1.2, 1.4, -0.2, 1.0, 0.3]}


@dataclass
class Loop:
    """A closed loop, and where it starts."""

    name: str
    plant: Any
    law: Any
    q0: Any
    v0: Any
    dt: float = 1e-3
    steps: int = 300
    options: dict[str, Any] = field(default_factory=dict)  # of `simulate`
    asserted: bool = True  # whether `assert_lyapunov` applies: to laws in continuous time on rigid robots
    bound: bool = False  # whether the claimed V' is a bound
    certified: bool = False  # whether a certificate is cheap


def home(robot: gc.Robot) -> np.ndarray:
    return np.array(HOMES[robot.name]) if robot.name in HOMES else robot.neutral()


def motion(robot: gc.Robot, amplitude: float = 0.2) -> Sinusoids:
    return Sinusoids(robot, home(robot), amplitude, 0.4, np.linspace(0.0, 2.0, robot.nv))


def tracking(name: str, law: Any, plant: Any = None, dt: float = 1e-3, off: float = 0.0, **more: Any) -> Loop:
    """A law that follows a motion, starting at a distance from it [rad, m]."""
    robot = law.robot
    start = law.reference(0.0)
    q0 = robot.integrate(start.q, off * np.cos(np.arange(robot.nv)))
    speed = more.pop("speed", 0.0)
    return Loop(name, plant or robot, law, q0, start.v + speed * np.sin(1.0 + np.arange(robot.nv)), dt, **more)


def resting(name: str, law: Any, plant: Any = None, dt: float = 1e-3, off: float = 0.3, **more: Any) -> Loop:
    """A law that holds q_d, starting at rest at a distance from it."""
    robot = law.robot
    q_d = law.q_d if hasattr(law, "q_d") else law.reference(0.0).q
    q0 = robot.integrate(q_d, off * np.cos(np.arange(robot.nv)))
    speed = more.pop("speed", 0.0) * np.sin(1.0 + np.arange(robot.nv))
    return Loop(name, plant or robot, law, q0, speed, dt, **more)


class Torque:
    """tau = tau(t): no law and no V."""

    def __init__(self, robot: gc.Robot, size: float = 0.0):
        self.n, self.size = robot.nv, size

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.size * np.sin(3.0 * t + np.arange(self.n)))


class Swinging:
    """Damping and half of gravity, with the energy as V: a user's own law, whose proof has two lines."""

    def __init__(self, robot: gc.Robot, kd: float = 1.0):
        self.robot, self.kd, self.q_d = robot, kd, robot.neutral()

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.robot.gravity_force(q) - 30.0 * (q - self.q_d) - self.kd * v)

    def lyapunov(self, t, q, v, z, plant):
        e = q - self.q_d
        return gc.Lyapunov(plant.robot.kinetic_energy(q, v) + 15.0 * e @ e, -self.kd * v @ v)


class SlidingMode(controllers.Passivity):
    """Passivity with a switched term -0.5 sign(s): V' is -s . K s - 0.5 |s|, and the command chatters."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau - 0.5 * np.sign(command.signals["s"]))


class DiscreteFilter(Swinging):
    """A law that counts its samples in a state that V does not contain."""

    def start(self):
        return np.zeros(2)

    def __call__(self, t, q, v, z):
        return super().__call__(t, q, v, None)._replace(z_next=0.9 * z + 0.1 * q[:2])


def coupled() -> gc.Robot:
    rod = inertia.from_com(1.0, (0.3, 0, 0), [[0.01, 0, 0], [0, 0.04, 0], [0, 0, 0.04]])
    links = [gc.Body(name, parent, gc.Joint.revolute((0, -1, 0), name=joint), None, rod)
             for name, parent, joint in (("crank", None, "q1"), ("arm", None, "q2"), ("bar", "arm", "q3"))]  # fmt: skip
    return gc.Robot.build(links, couplings=[gc.Coupling("q3", {"q1": 1.0, "q2": -1.0})])


def ball() -> gc.Robot:
    return gc.Robot.build([gc.Body("ball", None, gc.Joint.prismatic((0, 0, 1)), None,
                                   inertia.from_com(1.0, (0, 0, 0), 0.01 * np.eye(3)))])  # fmt: skip


# --- right ----------------------------------------------------------------------------------------------------------


def right() -> Iterator[Loop]:
    yield from right_on_all_robots()
    yield from right_adaptive()
    yield from right_special()
    yield from right_held()
    yield from right_plants()


def right_on_all_robots() -> Iterator[Loop]:
    """Three laws on each robot: on the reference, far from it, and fast; dt from 1e-4 to 1e-2."""
    steps = dict(zip(models.names(), (1e-2, 2e-3, 2e-3, 5e-3, 1e-3, 1e-2, 2e-3, 1e-2, 5e-4, 1e-4)))
    for name, dt in steps.items():
        robot = models.load(name)
        law = controllers.Passivity(robot, motion(robot))
        yield tracking(f"Passivity on its reference, {name}", law, dt=dt)
        far = controllers.ComputedTorque(robot, motion(robot))
        yield tracking(f"ComputedTorque far off and fast, {name}", far, off=0.5, speed=2.0)
        still = controllers.PDGravity(robot, home(robot))
        yield resting(f"PDGravity from rest, {name}", still, dt=max(dt, 5e-4))


def right_adaptive() -> Iterator[Loop]:
    for name, options in {
        "SlotineLi": {"rate": 0.1}, "Composite": {}, "ConcurrentLearning": {}, "SmoothProjection": {},
        "EModification": {}, "SigmaModification": {}, "NaturalAdaptation": {}, "MomentumAdaptation": {}, "DREM": {},
        "DeadZone": {}, "Robust": {"rho": 5.0},
    }.items():  # fmt: skip
        law = getattr(controllers, name)(ARM, motion(ARM), **options)
        asserted = name not in ("Composite", "ConcurrentLearning", "DREM") and not hasattr(law, "allowance")
        loaded, bound = ARM.with_payload(0.5, (1.0, 0.0, 0.0)), name == "SmoothProjection"
        yield tracking(f"{name}, a payload unknown", law, loaded, off=0.2, asserted=asserted, bound=bound)
    for robot in (PANDA, UR10):
        law = controllers.SlotineLi(robot, motion(robot), rate=0.1)
        loaded = robot.with_payload(1.0, (0.0, 0.0, 0.1))
        yield tracking(f"SlotineLi, a payload gripped at 0.1 s, {robot.name}", law,
                       gc.Plant(robot, None, changes=[(0.1, loaded)]), asserted=False)  # fmt: skip


def right_special() -> Iterator[Loop]:
    body, satellite, cart = models.quadrotor(), models.satellite(), models.cart_pole()
    loop = FlatOutputs(body, RestToRest((0, 0, 0, 0), (1.0, 0.5, 0.5, 0.3), 2.0))
    law = controllers.QuadrotorTracking(body, loop)
    yield Loop("QuadrotorTracking on its path", body, law, loop(0.0).q, loop(0.0).v, 2e-3, asserted=False)
    turn = Sinusoids(satellite, satellite.neutral(), 0.3, 0.1)
    law = controllers.AttitudeTracking(satellite, turn)
    yield tracking("AttitudeTracking, almost turned over", law, dt=1e-2, off=1.6, asserted=False)
    swing = controllers.SwingUp(cart, np.zeros(2), [0])
    yield Loop("SwingUp", cart, swing, [0.0, np.pi - 0.05], np.zeros(2), 2e-3, 800, asserted=False)
    yield Loop(
        "SwingUp at its catch, held", cart, swing, [0.0, 0.5], [0.0, -1.0], 2e-3, 400, {"control_dt": 2e-3}, False
    )
    yield Loop("LQR near the top", cart, swing.catch, [0.01, 0.01], np.zeros(2), 2e-3, 300, asserted=False)
    elastic = controllers.ElasticJoint(ARM, Harmonic(np.array([0.4, -0.7]), 0.3, 0.4), 500.0, 0.1)
    start = np.tile([0.5, -0.6], 2)
    yield Loop("ElasticJoint", ElasticPlant(ARM, 500.0, 0.1), elastic, start, np.zeros(4), 1e-3, asserted=False)
    for name in ("OperationalSpace", "CartesianImpedance", "GeometricImpedance"):
        law = getattr(controllers, name)(UR10, motion(UR10), UR10.body_names[-1])
        yield tracking(f"{name}, ur10", law, off=0.1, asserted=False)
    yield tracking("JointImpedance, puma560", controllers.JointImpedance(PUMA, motion(PUMA)), off=0.3)
    yield tracking("QPInverseDynamics", controllers.QPInverseDynamics(ARM, motion(ARM)), off=0.2, asserted=False)
    yield tracking(
        "SuperTwisting, which has no V", controllers.SuperTwisting(ARM, motion(ARM)), off=0.2, asserted=False
    )
    yield tracking("sliding mode that chatters", SlidingMode(ARM, motion(ARM)), off=0.2, asserted=False)
    yield tracking("sliding mode on its surface", SlidingMode(ARM, motion(ARM)), asserted=False)
    yield resting("a user's own law", Swinging(ARM), off=1.0, speed=3.0)
    yield resting("a user's own law, four joints", Swinging(models.scara(), 5.0), off=0.3, dt=2e-3)


def right_held() -> Iterator[Loop]:
    for robot, period in ((ARM, 1e-3), (PANDA, 1e-3), (UR10, 5e-4)):
        law = controllers.Passivity(robot, motion(robot), K=None)
        yield tracking(f"Passivity held for {1e3 * period:g} ms, {robot.name}", law, dt=5e-4, off=0.1, asserted=False,
                       options={"control_dt": period})  # fmt: skip
    still = controllers.PDGravity(PANDA, home(PANDA))
    yield resting("PDGravity held, behind encoders", still, gc.Plant(PANDA, None, sensors=[sensors.Encoder(20)]),
                  options={"control_dt": 1e-3}, asserted=False)  # fmt: skip
    adaptive = controllers.SlotineLi(ARM, motion(ARM), rate=0.1)
    yield tracking("SlotineLi held, every 7th sample stored", adaptive,
                   options={"control_dt": 1e-3, "options": gc.SimulationOptions(every=7, compiled=False)},
                   asserted=False)  # fmt: skip
    limits = gc.Plant(ARM, None, actuators=[actuators.Saturation(np.array([200.0, 200.0]))])
    yield tracking("ComputedTorque held, within torque limits", controllers.ComputedTorque(ARM, motion(ARM)), limits,
                   off=0.1, options={"control_dt": 1e-3}, asserted=False)  # fmt: skip
    late = gc.Plant(ARM, None, actuators=[actuators.TransportDelay(1e-3)])
    yield tracking("ComputedTorque held, behind a delay", controllers.ComputedTorque(ARM, motion(ARM)), late,
                   off=0.1, options={"control_dt": 1e-3}, asserted=False)  # fmt: skip
    yield resting("a law with a state of samples", DiscreteFilter(ARM), options={"control_dt": 1e-3}, asserted=False)


def right_plants() -> Iterator[Loop]:
    yield Loop("a ball lands", gc.Plant(ball(), None, gc.Contact(["ball"], 1e5, 0.5)), Torque(ball()), [0.01], [-1.0],
               5e-4, 300, asserted=False)  # fmt: skip
    stiff = controllers.Passivity(ARM, motion(ARM), K=600.0)
    yield tracking("gains too stiff for the step", stiff, dt=2e-3, off=0.01, steps=60)
    yield tracking("an adaptive method", controllers.Passivity(ARM, motion(ARM)), dt=1e-2, off=0.3, steps=50,
                   options={"options": gc.SimulationOptions(method="MK54", compiled=False)})  # fmt: skip
    yield tracking("on the reference, adaptive method", controllers.Passivity(ARM, motion(ARM)), dt=1e-2, steps=50,
                   options={"options": gc.SimulationOptions(method="MK54", compiled=False)})  # fmt: skip
    robot = coupled()
    yield tracking("a joint that follows others", controllers.Passivity(robot, motion(robot)), dt=5e-3)
    yield resting("a joint that follows others, at rest", controllers.PDGravity(robot, robot.neutral()), dt=2e-3)
    push = gc.Wrench("tip", (0, 0, 0, 5.0, 0, 0), 0.0503, 0.1307)
    yield Loop("a wrench switched between samples", gc.Plant(ARM, None, push), Torque(ARM, 2.0), [0.3, 0.4], [1.0, 0.0],
               1e-3, asserted=False)  # fmt: skip
    motor = gc.Plant(ARM, None, actuators=[actuators.SeriesElasticity(2000.0, 0.5, 5.0)])
    yield Loop("series elasticity", motor, Torque(ARM, 2.0), [0.3, 0.4], [0.0, 0.0], 5e-4, asserted=False)
    still = controllers.Passivity(ARM, hold(ARM, np.array([0.4, -0.7])), K=20.0, strict=True)
    yield tracking("Passivity at rest", still, off=0.2, certified=True)
    damped = gc.Plant(ARM, gc.Friction(viscous=0.5))
    informed = controllers.Passivity(ARM, motion(ARM), friction=gc.Friction(viscous=0.5))
    yield tracking("friction that the law knows", informed, damped, off=0.2, dt=2e-3)
