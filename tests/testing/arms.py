"""Robots for certificates, and motions of their loops."""

import numpy as np

import geomctrl as gc
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint


def three_joints():
    """A 3R arm in space: yaw, shoulder, elbow."""
    upper = inertia.from_com(1.0, (0.25, 0.0, 0.0), np.diag([0.002, 0.021, 0.021]))
    base = inertia.from_com(2.0, (0.0, 0.0, 0.2), np.diag([0.03, 0.03, 0.01]))
    shoulder, elbow = np.eye(4), np.eye(4)
    shoulder[2, 3], elbow[0, 3] = 0.4, 0.5
    return gc.Robot.build([
        Body("base", None, Joint.revolute((0, 0, 1), name="yaw"), None, base),
        Body("upper", "base", Joint.revolute((0, -1, 0), name="shoulder"), shoulder, upper),
        Body("fore", "upper", Joint.revolute((0, -1, 0), name="elbow"), elbow, upper),
    ], name="arm")  # fmt: skip


AXIS = gc.load_urdf(
    """<robot name="axis"><link name="rail"/><link name="table"><inertial><mass value="2.0"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="x" type="prismatic"><parent link="rail"/><child link="table"/><axis xyz="1 0 0"/></joint></robot>"""
)


def motion(robot, law, x0, push, t_end, dt=2e-3):
    """(t, q, v) by the classical Runge-Kutta method, independent of the simulator. push(t, q, v): joint torques."""

    def rate(t, x):
        q, v = np.split(x, 2)
        return np.append(v, robot.forward_dynamics(q, v, law(t, q, v, None).tau + push(t, q, v)))

    x, out = np.array(x0, float), []
    for k in range(round(t_end / dt)):
        t = k * dt
        out.append((t, *np.split(x.copy(), 2)))
        a = rate(t, x)
        b = rate(t + dt / 2, x + dt / 2 * a)
        c = rate(t + dt / 2, x + dt / 2 * b)
        x = x + dt / 6 * (a + 2 * b + 2 * c + rate(t + dt, x + dt * c))
    return out
