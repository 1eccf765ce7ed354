"""The scenario of `geomctrl track`: reference within limits, load, gains and controller for any robot."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from cyclopts import Group, Parameter, validators

from geomctrl import controllers
from geomctrl.control.contracts import Controller, Reference, require_controller
from geomctrl.control.friction import Friction
from geomctrl.control.loop import simulate
from geomctrl.control.plant import Plant
from geomctrl.control.tuning import ADAPTED, RATES, Design, Tuning, design
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.robot import Robot

from .hardware import actuators, driven, sensors
from .motions import REFERENCES, make_reference
from .user_files import law_class

LOAD_DENSITY = 2700.0  # kg/m^3: a solid ball of aluminium
TOOL_NAMES = ("tcp", "tool", "tip", "ee_link", "end_effector", "gripper", "hand", "flange", "link8")
START_VELOCITY = 0.01  # rad/s or m/s, largest initial velocity error


@Parameter(name="*", group=Group("The scenario", sort_key=1))
@dataclass(frozen=True)
class ScenarioOptions:
    """Options for reference, controller and plant."""

    controller: Annotated[
        str,
        Parameter(
            metavar="LAW",
            help="Bundled law, such as passivity or computed-torque (a wrong name lists all), or FILE.py:CLASS.",
        ),
    ] = "slotine-li"
    reference: Annotated[
        str, Parameter(metavar="MOTION", help="Desired motion, within the limits: sinusoids, quintic or spline.")
    ] = "sinusoids"
    seconds: Annotated[float, Parameter(help="Length of the run [s].")] = 10.0
    payload: Annotated[
        float, Parameter(help="Mass [kg] of a ball at the true robot's tool, unknown to the controller.")
    ] = 0.0
    payload_at: Annotated[
        float | None, Parameter(help="Time [s] at which the load is picked up [default: the start].")
    ] = None
    payload_frame: Annotated[
        str | None, Parameter(help="Frame that carries it [default: the tool, free base or last body].")
    ] = None
    dt: Annotated[float, Parameter(help="Integration step [s].")] = 1e-3
    control_dt: Annotated[
        float | None, Parameter(help="Sampling period [s] of the controller, a multiple of dt [default: continuous].")
    ] = None
    friction: Annotated[
        bool,
        Parameter(help="Add friction to the plant even if the robot's model has none."),
    ] = False
    actuators: Annotated[
        str | None,
        Parameter(
            metavar="LIST",
            help="Actuators between controller and joints, in order: delay=, rate=, lag=, limits, limits=, joints.",
        ),
    ] = None
    sensors: Annotated[
        str | None,
        Parameter(metavar="LIST", help="Encoders: bits= or resolution=, noise=, offset=, cutoff=, delay=, dt=."),
    ] = None
    gains: Annotated[str | None, Parameter(metavar="LIST", help="name=number,...: gains to override, see above.")] = (
        None
    )
    adapt: Annotated[
        str,
        Parameter(
            metavar="PARAMETERS",
            help="What slotine-li estimates: the body with the load (load), all links (links), base parameters (base).",
        ),
    ] = "load"
    seed: Annotated[
        int, Parameter(help="Seed of the random reference and of sensor noise.", validator=validators.Number(gte=0))
    ] = 0


@dataclass(frozen=True, eq=False)
class Scenario:
    """A closed loop that is ready to run: the controller uses `robot`, the plant also has a load and friction."""

    options: ScenarioOptions
    robot: Robot
    rule: Design
    plant: Plant
    frame: str  # that carries the load
    controller: Controller
    rival: Controller  # computed torque with the same model and bandwidth
    q0: np.ndarray
    v0: np.ndarray

    @classmethod
    def make(cls, robot: Robot, options: ScenarioOptions) -> Scenario:
        """Create the scenario from `options`. Raises GeomctrlError."""
        check_options(options)
        o, gains = options, parse_gains(options.controller, options.gains)
        if o.payload_frame is not None and robot.frame(o.payload_frame).body < 0:
            raise ArgumentError(f"payload-frame: {o.payload_frame!r} is fixed to the world and can not carry a load")
        motion = make_reference(o.reference, robot, o.seconds, o.seed)
        rule = design(robot, o.control_dt or o.dt, motion, o.seconds)
        frame = o.payload_frame or tool_frame(robot)
        carrying, body = loaded(robot, o.payload, frame), robot.frame(frame).body
        friction = friction_of(robot, rule) if o.friction else None
        between = {"actuators": actuators(o.actuators, robot), "sensors": sensors(o.sensors, o.seed)}
        if o.payload_at is None:
            plant = Plant(carrying, friction or "model", **between)
        else:
            plant = Plant(robot, friction or "model", changes=[(o.payload_at, carrying)], **between)
        tuning = Tuning(robot, motion, rule, o.seconds, gains, o.adapt, robot.body_names[body], friction)
        kind = law_class(o.controller)
        law = kind.tuned(tuning) if hasattr(kind, "tuned") else kind(tuning.robot, tuning.motion)
        require_controller(law)
        shared = {name: gain for name, gain in gains.items() if name in RATES}
        rival = controllers.ComputedTorque.tuned(replace(tuning, gains=shared))
        return cls(o, robot, rule, plant, frame, law, rival, *start(robot, motion, rule))

    @property
    def adapts(self) -> bool:
        """Whether the controller estimates unknown parameters."""
        return hasattr(self.controller, "true_parameters")

    def warm_up(self) -> None:
        """Compile everything the run needs, including loads that are added later."""
        for law in (self.controller, self.rival):
            dt, control_dt = self.options.dt, self.options.control_dt
            simulate(self.plant, law, self.q0, self.v0, 2.0 * dt, dt, control_dt=control_dt)

    def describe(self) -> str:
        o = self.options
        text = f"{self.robot.name}, {o.controller}, {o.reference}, {o.seconds:g} s at dt = {o.dt:g} s"
        text += f", controller every {o.control_dt:g} s" if o.control_dt else ", continuous controller"
        if o.payload:
            since = f" from {o.payload_at:g} s on" if o.payload_at else ""
            text += f"; unknown load of {o.payload:g} kg at {self.frame}{since}"
        for name, hardware in (("actuators", o.actuators), ("sensors", o.sensors)):
            text += f"; {name}: {hardware}" if hardware else ""
        moved = driven(self.robot, actuators(o.actuators, self.robot))
        text += f"; {moved}" if moved else ""
        return text + ("; unknown friction" if o.friction else "")

    def why_lyapunov_may_grow(self) -> str:
        """Which assumption of the proof the scenario violates; empty if none."""
        reasons = []
        if not self.adapts and self.plant.friction is not None:
            reasons.append("the law does not model the friction")
        if self.plant.actuators or self.plant.sensors:
            reasons.append("the law does not model actuators and sensors")
        wrong = [r for r in (self.plant.robot, *(r for _, r in self.plant.changes)) if r is not self.robot]
        if not self.adapts and wrong:
            reasons.append("the law's model lacks the load, and its proof needs the true one")
        return "; ".join(reasons)


def check_options(options: ScenarioOptions) -> None:
    """Raise GeomctrlError for unknown names and invalid gains and times, before anything is computed."""
    for name, choices in (("reference", REFERENCES), ("adapt", ADAPTED)):
        value = getattr(options, name)
        if value not in choices:
            raise NameNotFoundError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")
    parse_gains(options.controller, options.gains)
    check_times(options)


def check_times(options: ScenarioOptions) -> None:
    """Raise ArgumentError for invalid times, before anything is computed."""
    seconds, dt, control_dt, payload_at = options.seconds, options.dt, options.control_dt, options.payload_at
    for name, x in (("seconds", seconds), ("dt", dt), ("control-dt", control_dt)):
        if x is not None and not (math.isfinite(x) and x > 0.0):
            raise ArgumentError(f"{name}: expected a positive number of seconds, got {x:g}")
    if dt > seconds:
        raise ArgumentError(f"dt: expected a step no longer than {seconds:g} s, got {dt:g}")
    if control_dt is not None and abs(control_dt / dt - max(1, round(control_dt / dt))) > 1e-6:
        raise ArgumentError(f"control-dt: expected a multiple of dt = {dt:g} s, got {control_dt:g}")
    if payload_at is not None and not (math.isfinite(payload_at) and payload_at >= 0.0):
        raise ArgumentError(f"payload-at: expected a time >= 0, got {payload_at:g}")


# --- the parts of a scenario -----------------------------------------------------------------------------------------


def tool_frame(robot: Robot) -> str:
    """Default frame of a load: the tool's frame, otherwise the body of a free base, otherwise the last body."""
    last = [f for f in robot.frames if f.body == robot.nbodies - 1]
    for word in TOOL_NAMES:
        for frame in last:
            if word in frame.name.lower():
                return frame.name
    return robot.body_names[0 if robot.joints[0].kind == "free" else -1]


def loaded(robot: Robot, mass: float, frame: str | None = None) -> Robot:
    """Return the robot with a solid aluminium ball of `mass` [kg] that touches the origin of `frame`, along its z
    axis.
    """
    if not (math.isfinite(mass) and mass >= 0.0):
        raise ArgumentError(f"payload: expected a mass >= 0 in kg, got {mass:g}")
    if mass == 0.0:
        return robot
    radius = (3.0 * mass / (4.0 * math.pi * LOAD_DENSITY)) ** (1.0 / 3.0)
    return robot.with_payload(mass, (0.0, 0.0, radius), 0.4 * mass * radius**2 * np.eye(3), frame or tool_frame(robot))


def friction_of(robot: Robot, rule: Design) -> Friction:
    """Friction from the model file; without any, 0.5 D viscous and 0.5 D Coulomb. Free joints have none."""
    viscous, coulomb = robot.damping, robot.friction
    if not (viscous.any() or coulomb.any()):
        own = [np.full(j.dof, 0.5 * (j.kind != "free")) for j in robot.coupling.independent_joints]
        viscous = coulomb = np.concatenate(own) * rule.D
    return Friction(viscous, coulomb, rule.smoothing(coulomb))


def start(robot: Robot, motion: Reference, rule: Design) -> tuple[np.ndarray, np.ndarray]:
    """Return (q0, v0) on the reference with a small velocity error, in the direction that K damps most slowly.

    In this direction no fast mode is excited, which a step of dt would integrate less accurately.
    """
    q, v, _ = motion(0.0)
    root = np.sqrt(rule.kappa * rule.D)
    slowest = np.linalg.eigh(robot.mass_matrix(q) / np.outer(root, root))[1][:, -1] / root
    return q, v + START_VELOCITY * slowest / np.abs(slowest).max()


def parse_gains(controller: str, text: str | None) -> dict[str, float]:
    """Parse "Lambda=8,kappa=30" into a dict and check it against the gains of the controller."""
    names, gains = dict(getattr(law_class(controller), "GAINS", {})), {}
    for part in (text or "").replace(" ", "").split(","):
        if not part:
            continue
        name, _, number = part.partition("=")
        if name not in names:
            raise ArgumentError(f"gains: {controller} has no gain {name!r}; known: {', '.join(names)}")
        try:
            gains[name] = float(number)
        except ValueError:
            raise ArgumentError(f"gains: expected {name}=number, got {part!r}") from None
        if not (math.isfinite(gains[name]) and gains[name] > 0.0):
            raise ArgumentError(f"gains: {name}: expected a positive number, got {number}")
    return gains
