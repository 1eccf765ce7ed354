"""What `geomctrl track` runs: a reference within limits, a load, gains and a controller for any robot.

Gains come from the mass matrix. With D_i the mean of M_ii over random configurations, each joint gets two rates
[1/s], Lambda and kappa_i = kappa (max D / D_i)^(1/3): light joints are faster, as on real arms, not stiffer. All
controllers get the same nominal error dynamics e'' + (kappa_i + Lambda) e' + kappa_i Lambda e = 0:

    passivity, slotine-li   Lambda, K = kappa_i D_i
    computed-torque         kp = kappa_i Lambda, kd = kappa_i + Lambda
    pd-gravity              kp = kappa_i Lambda D_i, kd = (kappa_i + Lambda) D_i

so that a comparison is between laws, not between stiffnesses. kappa and Lambda are lowered where the fastest rate of
the closed loop, the largest eigenvalue of M^-1 K at random configurations and the motion's, would exceed 1.5 / dt,
and slotine-li's rate where its adaptation would be faster than 1 / dt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from geomctrl import controllers
from geomctrl.control import references
from geomctrl.control.contracts import Controller, Reference
from geomctrl.control.plant import Friction, Plant
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.robot import Robot

if TYPE_CHECKING:
    from geomctrl.terms.dynamics import Form

LAMBDA, KAPPA, RATE = 5.0, 20.0, 20.0  # 1/s, 1/s, of adaptation
FASTEST = 1.5  # / dt: explicit Runge-Kutta methods of order 4 end at 2.8, a held torque at 2
CONTROLLERS = ("pd-gravity", "computed-torque", "passivity", "slotine-li")
REFERENCES = ("sinusoids", "quintic", "spline")
GAINS = {  # name: meaning
    "pd-gravity": {"kp": "1/s^2, times D", "kd": "1/s, times D"},
    "computed-torque": {"kp": "1/s^2", "kd": "1/s"},
    "passivity": {"Lambda": "1/s", "kappa": "1/s, K = kappa D"},
    "slotine-li": {"Lambda": "1/s", "kappa": "1/s, K = kappa D", "rate": "of adaptation"},
}
START = 0.01  # rad/s or m/s, largest initial velocity error
FASTEST_JOINT = 4.0  # rad/s or m/s, where a model states no velocity limit or a higher one
LOAD_DENSITY = 2700.0  # kg/m^3: a solid ball of aluminium
TOOL_NAMES = ("tcp", "tool", "tip", "ee_link", "end_effector", "gripper", "hand", "flange", "link8")


# --- reference -------------------------------------------------------------------------------------------------


def middle(robot: Robot) -> np.ndarray:
    """The configuration (nq,) in the middle of the joints' ranges; without one near zero, poses at identity."""
    low, high = robot.limits.lower, robot.limits.upper
    x = np.clip(np.zeros(robot.nv), low, high)
    both = np.isfinite(low) & np.isfinite(high)
    x[both] = 0.5 * (low[both] + high[both])
    return robot.integrate(robot.neutral(), x)


def amplitudes(robot: Robot) -> np.ndarray:
    """How far (nv,) to move from the middle: half of a joint's range, at most 0.6 rad or 0.2 m."""
    x = np.where(robot.turning, 0.6, 0.2)
    half = 0.5 * (robot.limits.upper - robot.limits.lower)
    return np.where(np.isfinite(half), np.minimum(x, 0.5 * half), x)


def make_reference(name: str, robot: Robot, seconds: float, seed: int = 0) -> Reference:
    """A desired motion for `seconds` by name, within joint limits and half the velocity limits, starting at rest.

    "sinusoids": two harmonics of 0.1 to 0.5 Hz a joint; "quintic": point to point in 0.6 of the time; "spline":
    through six random waypoints.
    """
    if name not in REFERENCES:
        raise NameNotFoundError(f"reference: expected one of {', '.join(REFERENCES)}, got {name!r}")
    rng = np.random.default_rng(seed)
    q0, reach, n = middle(robot), amplitudes(robot), robot.nv
    waypoints = rng.uniform(-1.0, 1.0, (6, n)) * reach
    waypoints[0] = 0.0
    side = np.where(rng.random(n) < 0.5, -1.0, 1.0) * reach
    slow, fast = rng.uniform(0.1, 0.25, n), rng.uniform(0.3, 0.5, n)
    split, phase = rng.uniform(0.5, 0.8, n), np.zeros((2, n))
    phase[1] = rng.uniform(0.0, 0.5 * np.pi, n)

    def at_scale(scale: float) -> Reference:
        if name == "sinusoids":
            amplitude = scale * reach * np.stack((split, 1.0 - split))
            return references.Sinusoids(robot, q0, amplitude, np.stack((slow, fast)), phase, 1.0)
        if name == "quintic":
            ends = [robot.integrate(q0, sign * scale * side) for sign in (-1.0, 1.0)]
            return references.Quintic(robot, ends[0], ends[1], 0.6 * seconds, 0.1 * seconds)
        points = [robot.integrate(q0, scale * x) for x in waypoints]
        return references.Spline(robot, np.linspace(0.0, seconds, len(points)).tolist(), np.array(points))

    scale = 1.0
    for _ in range(20):
        motion = at_scale(scale)
        excess = _excess(robot, motion, seconds)
        if excess <= 1.0:
            return motion
        scale /= min(1.05 * excess, 2.0)
    raise ArgumentError(f"reference: found no {name!r} within the limits of robot {robot.name!r} in {seconds:g} s")


def _excess(robot: Robot, motion: Reference, seconds: float) -> float:
    """By what ratio a motion exceeds half the velocity limits, or 2 if joint limits; 1 or less is within."""
    samples = [motion(t) for t in np.linspace(0.0, seconds, 400)]
    speed = np.abs([d.v for d in samples]).max(axis=0)
    worst = float((2.0 * speed / np.clip(robot.limits.velocity, 1e-9, FASTEST_JOINT)).max())
    for joint, s in zip(robot.joints, robot.q_slices):
        if joint.dof == 1:
            x = np.array([d.q[s] for d in samples])
            if x.min() < joint.lower or x.max() > joint.upper:
                worst = max(worst, 2.0)
    return worst


# --- load and plant --------------------------------------------------------------------------------------------


def tool_frame(robot: Robot) -> str:
    """Where a load goes unless told: the tool's frame, else the body a free base is, else the last body."""
    last = [f for f in robot.frames if f.body == robot.nbodies - 1]
    for word in TOOL_NAMES:
        for frame in last:
            if word in frame.name.lower():
                return frame.name
    return robot.body_names[0 if robot.joints[0].kind == "free" else -1]


def loaded(robot: Robot, mass: float, frame: str | None = None) -> Robot:
    """The robot with a solid aluminium ball of `mass` [kg] touching the origin of `frame`, along its z axis."""
    if not (math.isfinite(mass) and mass >= 0.0):
        raise ArgumentError(f"payload: expected a mass >= 0 in kg, got {mass:g}")
    if mass == 0.0:
        return robot
    radius = (3.0 * mass / (4.0 * math.pi * LOAD_DENSITY)) ** (1.0 / 3.0)
    return robot.with_payload(mass, (0.0, 0.0, radius), 0.4 * mass * radius**2 * np.eye(3), frame or tool_frame(robot))


def friction_of(robot: Robot, design: Design) -> Friction:
    """The model file's friction where it states some, else 0.5 D viscous and 0.5 D Coulomb; free joints have none."""
    viscous, coulomb = robot.damping, robot.friction
    if not (viscous.any() or coulomb.any()):
        viscous = coulomb = np.concatenate([np.full(j.dof, 0.5 * (j.kind != "free")) for j in robot.joints]) * design.D
    return Friction(viscous, coulomb, design.smoothing(coulomb))


# --- gains and controllers -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Design:
    """The module's rule for a robot: D (nv,), Lambda, kappa (nv,), the closed loop's fastest rate [1/s], dt [s]."""

    D: np.ndarray
    Lambda: float
    kappa: np.ndarray
    fastest: float
    dt: float

    def smoothing(self, coulomb: np.ndarray) -> float:
        """The speed over which Coulomb friction sets in, such that its slope adds no faster rate than K does."""
        return max(0.02, float((coulomb / (self.kappa * self.D)).max()))


def design(robot: Robot, dt: float, motion: Reference | None = None, seconds: float = 0.0, samples: int = 50) -> Design:
    """Gains by the module's rule, for a controller evaluated each `dt` seconds, at the motion's configurations too."""
    rng = np.random.default_rng(0)
    anywhere = [robot.random_configuration(rng) for _ in range(samples)]
    along = [] if motion is None else [motion(t).q for t in np.linspace(0.0, seconds, samples)]
    M = robot.mass_matrix(np.array([*anywhere, *along]))
    D = np.diagonal(M[:samples], axis1=-2, axis2=-1).mean(axis=0)
    rates = KAPPA * (D.max() / D) ** (1.0 / 3.0)
    root = np.sqrt(rates * D)
    fastest = float(1.0 / np.linalg.eigvalsh(M / np.outer(root, root))[:, 0].min())
    slower = min(1.0, FASTEST / (fastest * dt))
    return Design(D, slower * LAMBDA, slower * rates, slower * fastest, dt)


def start(robot: Robot, motion: Reference, rule: Design) -> tuple[np.ndarray, np.ndarray]:
    """(q0, v0): on the motion, with a small velocity error to remove in the direction that K damps most slowly.

    In that direction no fast mode is excited, which a step of dt would follow less well.
    """
    q, v, _ = motion(0.0)
    root = np.sqrt(rule.kappa * rule.D)
    slowest = np.linalg.eigh(robot.mass_matrix(q) / np.outer(root, root))[1][:, -1] / root
    return q, v + START * slowest / np.abs(slowest).max()


def adaptation_rate(law: controllers.SlotineLi, dt: float, seconds: float) -> float:
    """RATE, lowered where M s'' = - Y Gamma Y^T s, which adaptation makes of s, would be faster than 1 / dt."""
    fastest = 0.0
    for t in np.linspace(0.0, seconds, 40):
        q, v, a = law.reference(t)
        Y = law.robot.regressor(q, v, a, v, cast("Form", law.form))[:, law.columns]
        if law.friction is not None:
            Y = np.hstack((Y, law.friction.columns(v)))
        M = law.robot.mass_matrix(q)
        fastest = max(fastest, float(np.linalg.eigvals(np.linalg.solve(M, Y @ law.Gamma @ Y.T)).real.max()))
    return RATE * min(1.0, 1.0 / max(fastest * dt**2, 1e-300))


def parse_gains(controller: str, text: str | None) -> dict[str, float]:
    """ "Lambda=8,kappa=30" as a dict, checked against what the controller has."""
    gains: dict[str, float] = {}
    known = GAINS[controller]
    for part in (text or "").replace(" ", "").split(","):
        if not part:
            continue
        name, _, number = part.partition("=")
        if name not in known:
            raise ArgumentError(f"gains: {controller} has no gain {name!r}; known: {', '.join(known)}")
        try:
            gains[name] = float(number)
        except ValueError:
            raise ArgumentError(f"gains: expected {name}=number, got {part!r}") from None
        if not (math.isfinite(gains[name]) and gains[name] > 0.0):
            raise ArgumentError(f"gains: {name}: expected a positive number, got {number}")
    return gains


def make_controller(
    name: str,
    robot: Robot,
    motion: Reference,
    design: Design,
    *,
    seconds: float,
    gains: Mapping[str, float] | None = None,
    adapt: str = "load",
    load_body: str | None = None,
    friction: Friction | None = None,
) -> Controller:
    """The named controller on the model `robot`, gains by the module's rule where `gains` names none.

    adapt (slotine-li): "load" the parameters of `load_body`, "links" of all bodies, "base" the base parameters.
    friction: adapted from zero by slotine-li, unknown to the others. pd-gravity regulates to the motion's end.
    """
    given = dict(gains or {})
    D, Lambda = design.D, given.get("Lambda", design.Lambda)
    kappa = design.kappa * (given["kappa"] / KAPPA if "kappa" in given else 1.0)
    kp, kd = given.get("kp", kappa * Lambda), given.get("kd", kappa + Lambda)
    if name == "pd-gravity":
        return controllers.PDGravity(robot, motion(seconds).q, kp * D, kd * D)
    if name == "computed-torque":
        return controllers.ComputedTorque(robot, motion, kp, kd)
    if name == "passivity":
        return controllers.Passivity(robot, motion, Lambda, kappa * D)
    if name == "slotine-li":
        options: dict[str, Any] = {}
        if adapt == "load":
            options["adapt"] = [load_body or robot.body_names[-1]]
        elif adapt in ("links", "base"):
            options["parameters"] = adapt
        else:
            raise ArgumentError(f"adapt: expected 'links', 'load' or 'base', got {adapt!r}")
        if friction is not None:
            options["friction"] = Friction(np.zeros(robot.nv), np.zeros(robot.nv), friction.smoothing)
        law = partial(controllers.SlotineLi, robot, motion, Lambda, kappa * D, **options)
        return law(rate=given["rate"] if "rate" in given else adaptation_rate(law(rate=RATE), design.dt, seconds))
    raise NameNotFoundError(f"controller: expected one of {', '.join(CONTROLLERS)}, got {name!r}")


# --- all together ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scenario:
    """A closed loop ready to run: what `geomctrl track` makes of its arguments."""

    name: str
    robot: Robot
    plant: Plant
    controller: Controller
    rival: Controller  # computed torque with the same model and bandwidth
    q0: np.ndarray
    v0: np.ndarray
    seconds: float
    dt: float
    control_dt: float | None
    slowed: float
    fastest: float
    adapt: str
    about: str

    @classmethod
    def make(
        cls,
        robot: Robot,
        *,
        controller: str,
        reference: str = "sinusoids",
        seconds: float = 10.0,
        payload: float = 0.0,
        payload_at: float | None = None,
        payload_frame: str | None = None,
        dt: float = 1e-3,
        control_dt: float | None = None,
        friction: bool = False,
        gains: Mapping[str, float] | None = None,
        adapt: str = "load",
        seed: int = 0,
    ) -> Scenario:
        """The loop in which `controller` knows `robot` but not its load and friction. Raises GeomctrlError children."""
        if payload_frame is not None and robot.frame(payload_frame).body < 0:
            raise ArgumentError(f"payload-frame: {payload_frame!r} is fixed to the world and can not carry a load")
        motion = make_reference(reference, robot, seconds, seed)
        rule = design(robot, control_dt or dt, motion, seconds)
        frame = payload_frame or tool_frame(robot)
        carrying, body = loaded(robot, payload, frame), robot.frame(frame).body
        rub = friction_of(robot, rule) if friction else None
        if payload_at is None:
            plant = Plant(carrying, rub)
        else:
            plant = Plant(robot, rub, changes=[(payload_at, carrying)])
        options: dict[str, Any] = {"seconds": seconds, "adapt": adapt, "friction": rub}
        options["load_body"] = robot.body_names[body]
        q0, v0 = start(robot, motion, rule)
        about = f"{robot.name}, {controller}, {reference}, {seconds:g} s at dt = {dt:g} s"
        about += f", controller every {control_dt:g} s" if control_dt else ", continuous controller"
        if payload:
            since = f" from {payload_at:g} s on" if payload_at else ""
            about += f"; unknown load of {payload:g} kg at {frame}{since}"
        about += "; unknown friction" if friction else ""
        law = make_controller(controller, robot, motion, rule, gains=gains, **options)
        shared = {k: x for k, x in (gains or {}).items() if k in ("Lambda", "kappa")}
        rival = make_controller("computed-torque", robot, motion, rule, gains=shared, **options)
        slowed = rule.Lambda / LAMBDA
        return cls(
            controller, robot, plant, law, rival, q0, v0, seconds, dt, control_dt, slowed, rule.fastest, adapt, about
        )

    def warm_up(self) -> None:
        """Compile what the run needs, loads that come later included."""
        from geomctrl.control.loop import simulate

        for law in (self.controller, self.rival):
            simulate(self.plant, law, self.q0, self.v0, 2.0 * self.dt, self.dt)

    def describe(self) -> str:
        return self.about

    def why_lyapunov_may_grow(self) -> str:
        """Which assumption of the proof the scenario breaks; empty if none."""
        reasons = []
        if self.name != "slotine-li" and self.plant.friction is not None:
            reasons.append("the law does not know the friction")
        wrong = [r for r in (self.plant.robot, *(r for _, r in self.plant.changes)) if r is not self.robot]
        if self.name != "slotine-li" and wrong:
            reasons.append("the law's model lacks the load, and its proof needs the true one")
        if self.control_dt is not None:
            reasons.append("the torque is held between samples, and the proof is for a continuous law")
        return "; ".join(reasons)


def check_times(seconds: float, dt: float, control_dt: float | None, payload_at: float | None) -> None:
    """Raise ArgumentError for times no run can have, before anything is computed."""
    for name, x in (("seconds", seconds), ("dt", dt), ("control-dt", control_dt)):
        if x is not None and not (math.isfinite(x) and x > 0.0):
            raise ArgumentError(f"{name}: expected a positive number of seconds, got {x:g}")
    if dt > seconds:
        raise ArgumentError(f"dt: expected a step no longer than {seconds:g} s, got {dt:g}")
    if control_dt is not None and abs(control_dt / dt - max(1, round(control_dt / dt))) > 1e-6:
        raise ArgumentError(f"control-dt: expected a multiple of dt = {dt:g} s, got {control_dt:g}")
    if payload_at is not None and not (math.isfinite(payload_at) and payload_at >= 0.0):
        raise ArgumentError(f"payload-at: expected a time >= 0, got {payload_at:g}")
