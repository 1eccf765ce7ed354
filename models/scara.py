"""A SCARA with the geometry of the Adept Cobra 600: two turning arms, a sliding and a turning quill.

Geometry and joint ranges: Corke's Robotics Toolbox (Cobra600). The makers publish no inertial parameters: the masses
are made up, plausible for a robot of this size, and the bodies are solid boxes (arms) and a solid cylinder (quill).
"""

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["scara"]

HEIGHT, ARM1, ARM2 = 0.387, 0.325, 0.275  # m
ARM_WIDTH, ARM_HEIGHT = 0.12, 0.10  # m
MASS1, MASS2, SLIDE, QUILL = 8.0, 6.0, 0.5, 1.5  # kg
QUILL_LENGTH, QUILL_RADIUS = 0.35, 0.015  # m


def scara() -> Robot:
    """RRPR SCARA; joints "shoulder", "elbow", "lift" (down is positive) and "roll" (about down).

    Frame "tool" is the quill's lower end, z down.
    """
    deg = np.pi / 180.0
    down = np.diag([1.0, -1.0, -1.0, 1.0])
    base, reach, tool = np.eye(4), np.eye(4), np.eye(4)
    base[2, 3], reach[0, 3], tool[2, 3] = HEIGHT, ARM1, QUILL_LENGTH / 2
    wrist = down.copy()
    wrist[0, 3] = ARM2
    z = (0, 0, 1)
    bodies = [
        Body(
            "arm1", None, Joint.revolute(z, name="shoulder", lower=-50 * deg, upper=50 * deg), base, _box(MASS1, ARM1)
        ),
        Body(
            "arm2", "arm1", Joint.revolute(z, name="elbow", lower=-88 * deg, upper=88 * deg), reach, _box(MASS2, ARM2)
        ),
        Body("slide", "arm2", Joint.prismatic(z, name="lift", lower=0.0, upper=0.21), wrist, _rod(SLIDE)),
        Body("quill", "slide", Joint.revolute(z, name="roll"), None, _rod(QUILL)),
    ]
    return Robot.build(bodies, name="scara", frames=[("tool", "quill", tool)])


def _box(mass, length):
    moments = np.array([ARM_WIDTH**2 + ARM_HEIGHT**2, length**2 + ARM_HEIGHT**2, length**2 + ARM_WIDTH**2])
    return inertia.from_com(mass, (length / 2, 0.0, 0.0), mass / 12 * np.diag(moments))


def _rod(mass):
    across = QUILL_LENGTH**2 / 12 + QUILL_RADIUS**2 / 4
    return inertia.from_com(mass, np.zeros(3), mass * np.diag([across, across, QUILL_RADIUS**2 / 2]))
