"""Robots of the benchmarks, and the same robots in Pinocchio if it is installed (otherwise `pin` is None)."""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl import models
from geomctrl.testing.random_robots import random_inertia

try:
    import pinocchio as pin
except ImportError:
    pin = None


def chain(n: int) -> gc.Robot:
    """A chain of n revolute joints about their own z axes, with random placements and bodies."""
    rng, bodies = np.random.default_rng(n), []
    for i in range(n):
        placement = gc.se3.exp(np.concatenate((rng.normal(size=3), rng.uniform(-0.3, 0.3, 3))))
        joint = gc.Joint.revolute((0, 0, 1), name=f"joint{i}")
        bodies.append(gc.Body(f"body{i}", f"body{i - 1}" if i else None, joint, placement, random_inertia(rng)))
    return gc.Robot.build(bodies, name=f"chain{n}")


def right_angled(n: int) -> gc.Robot:
    """A chain of n revolute joints about coordinate axes in turn, a coordinate axis from joint to joint."""
    rng, bodies = np.random.default_rng(n), []
    for i in range(n):
        placement = gc.se3.exp(np.concatenate((np.zeros(3), 0.3 * np.eye(3)[i % 3])))
        joint = gc.Joint.revolute(np.eye(3)[-i % 3], name=f"joint{i}")
        bodies.append(gc.Body(f"body{i}", f"body{i - 1}" if i else None, joint, placement, random_inertia(rng)))
    return gc.Robot.build(bodies, name=f"right_angled{n}")


def without_its_base(robot: gc.Robot, q: np.ndarray) -> gc.Robot:
    """The part of the robot that its free base carries, as a robot with a fixed base and gravity in the base's axes at
    q.
    """
    return replace(
        robot,
        body_names=robot.body_names[1:],
        parents=tuple(p - 1 for p in robot.parents[1:]),
        joints=robot.joints[1:],
        placements=robot.placements[1:],
        parameters=robot.parameters[1:],
        frames=tuple(f._replace(body=max(f.body - 1, -1)) for f in robot.frames if f.body != 0),
        gravity=robot.pose(q, robot.body_names[0])[:3, :3].T @ robot.gravity,
    )


def humanoid() -> gc.Robot:
    """A floating humanoid of example-robot-data where installed, else the bundled quadruped."""
    share = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
    talos = share / "talos_data/robots/talos_reduced.urdf"
    if talos.is_file():
        return models.load_urdf(talos, floating_base=True, physical="reported")
    print("(example-robot-data is not installed: the bundled quadruped stands in for a humanoid)")
    return models.quadruped()


def pinocchio_model(robot: gc.Robot):
    """The same robot in Pinocchio; its joints are in depth-first order, as Pinocchio's algorithms need."""
    model = pin.Model()
    g = pin.Motion(robot.gravity, np.zeros(3))
    model.gravity = g
    for i in depth_first(robot.parents):
        joint, parent, M = robot.joints[i], robot.parents[i], robot.placements[i]
        if joint.kind == "free":
            kind = pin.JointModelFreeFlyer()
        elif joint.kind == "revolute" and not joint.S[3:].any():
            kind = _aligned(joint.S[:3, 0], "R") or pin.JointModelRevoluteUnaligned(joint.S[:3, 0])
        elif joint.kind == "prismatic":
            kind = _aligned(joint.S[3:, 0], "P") or pin.JointModelPrismaticUnaligned(joint.S[3:, 0])
        else:
            raise ValueError(f"no Pinocchio joint for {joint.kind} of {joint.name}")
        on = 0 if parent < 0 else model.getJointId(str(robot.joints[parent].name))
        number = model.addJoint(on, kind, pin.SE3(M[:3, :3], M[:3, 3]), str(joint.name))
        model.appendBodyToJoint(number, pin.Inertia.FromDynamicParameters(robot.parameters[i]), pin.SE3.Identity())
    for joint in robot.joints:
        if joint.armature:
            model.armature[model.idx_vs[model.getJointId(str(joint.name))]] = joint.armature
    return model


def depth_first(parents: Sequence[int]) -> list[int]:
    """Numbers of the bodies in depth-first order; children in the order of their numbers."""
    order, stack = [], [i for i, p in enumerate(parents) if p < 0][::-1]
    while stack:
        order.append(stack.pop())
        stack += [i for i, p in enumerate(parents) if p == order[-1]][::-1]
    return order


def _aligned(axis, letter):
    for e, name in zip(np.eye(3), "XYZ"):
        if np.array_equal(axis, e):
            return getattr(pin, f"JointModel{letter}{name}")()
    return None
