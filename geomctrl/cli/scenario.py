"""What `geomctrl track` runs: a reference within limits, a load, gains and a controller for any robot."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from geomctrl import controllers
from geomctrl.control.contracts import Controller
from geomctrl.control.loop import simulate
from geomctrl.control.plant import Plant
from geomctrl.control.tuning import ADAPTED, RATES, Design, Tuning, design
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.robot import Robot

from .gains import parse_gains, start
from .hardware import actuators, driven, sensors
from .laws import gains_of, law_class, made
from .motions import REFERENCES, make_reference
from .plants import friction_of, loaded, tool_frame
from .track_options import ScenarioOptions


@dataclass(frozen=True, eq=False)
class Scenario:
    """A closed loop ready to run: the controller knows `robot`, the plant has a load and friction, too."""

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
        """The scenario that `options` describe. Raises GeomctrlError children."""
        check_options(options)
        o, given = options, given_gains(options)
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
        tuning = Tuning(robot, motion, rule, o.seconds, given, o.adapt, robot.body_names[body], friction)
        law = made(law_class(o.controller), tuning)
        shared = {name: gain for name, gain in given.items() if name in RATES}
        rival = controllers.ComputedTorque.tuned(replace(tuning, gains=shared))
        return cls(o, robot, rule, plant, frame, law, rival, *start(robot, motion, rule))

    @property
    def adapts(self) -> bool:
        """Whether the controller estimates what the model does not know."""
        return hasattr(self.controller, "true_parameters")

    def warm_up(self) -> None:
        """Compile what the run needs, loads that come later included."""
        for law in (self.controller, self.rival):
            dt, control_dt = self.options.dt, self.options.control_dt
            simulate(self.plant, law, self.q0, self.v0, 2.0 * dt, dt, control_dt=control_dt)

    def describe(self) -> str:
        o = self.options
        words = f"{self.robot.name}, {o.controller}, {o.reference}, {o.seconds:g} s at dt = {o.dt:g} s"
        words += f", controller every {o.control_dt:g} s" if o.control_dt else ", continuous controller"
        if o.payload:
            since = f" from {o.payload_at:g} s on" if o.payload_at else ""
            words += f"; unknown load of {o.payload:g} kg at {self.frame}{since}"
        for name, given in (("actuators", o.actuators), ("sensors", o.sensors)):
            words += f"; {name}: {given}" if given else ""
        moved = driven(self.robot, actuators(o.actuators, self.robot))
        words += f"; {moved}" if moved else ""
        return words + ("; unknown friction" if o.friction else "")

    def why_lyapunov_may_grow(self) -> str:
        """Which assumption of the proof the scenario breaks; empty if none."""
        reasons = []
        if not self.adapts and self.plant.friction is not None:
            reasons.append("the law does not know the friction")
        if self.plant.actuators or self.plant.sensors:
            reasons.append("the law does not know of actuators and sensors")
        wrong = [r for r in (self.plant.robot, *(r for _, r in self.plant.changes)) if r is not self.robot]
        if not self.adapts and wrong:
            reasons.append("the law's model lacks the load, and its proof needs the true one")
        return "; ".join(reasons)


def given_gains(options: ScenarioOptions) -> dict[str, float]:
    return parse_gains(options.controller, gains_of(law_class(options.controller)), options.gains)


def check_options(options: ScenarioOptions) -> None:
    """Raise GeomctrlError children for names, gains and times that no run can have, before anything is computed."""
    law_class(options.controller)
    for name, known in (("reference", REFERENCES), ("adapt", ADAPTED)):
        given = getattr(options, name)
        if given not in known:
            raise NameNotFoundError(f"{name}: expected one of {', '.join(known)}, got {given!r}")
    given_gains(options)
    check_times(options)


def check_times(options: ScenarioOptions) -> None:
    """Raise ArgumentError for times no run can have, before anything is computed."""
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
