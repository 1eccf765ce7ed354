"""A rigid satellite, its centre of mass at rest, that turns freely; optionally with three reaction wheels.

Numbers: the spacecraft of Basilisk's scenarioAttitudeFeedbackRW (University of Colorado's AVS laboratory; ISC), a hub
of 750 kg, and of its simIncludeRW the wheels, Honeywell HR16 with 100 N m s at 6000 1/min: 12 kg, at most 0.2 N m.
About axes across the spin axis a wheel has 0.6 of its moment about it; Basilisk's 0.5 is that of a flat disc.
"""

import numpy as np

from geomctrl.arguments import flag
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["satellite"]

MASS, MOMENTS = 750.0, (900.0, 800.0, 600.0)  # kg, kg m^2
WHEEL, SPEED, MOMENTUM, TORQUE = 12.0, 6000.0 * 2.0 * np.pi / 60.0, 100.0, 0.2  # kg, rad/s, N m s, N m


def satellite(wheels: bool = False) -> Robot:
    """Satellite on a spherical joint at its centre of mass, without gravity; its velocity is the body-fixed rate.

    wheels=True adds three reaction wheels, joints "wheel1" to "wheel3" about x, y and z, through the centre of mass:
    torques at them turn the hub the other way, and q has a spherical joint's twelve numbers and three angles.
    """
    bodies = [Body("hub", None, Joint.spherical(name="attitude"), None, _about_the_centre(MASS, MOMENTS))]
    if flag("wheels", wheels):
        spin = MOMENTUM / SPEED
        for i, axis in enumerate(np.eye(3), 1):
            joint = Joint.revolute(axis, name=f"wheel{i}", velocity=SPEED, effort=TORQUE)
            parameters = _about_the_centre(WHEEL, np.where(axis == 1.0, spin, 0.6 * spin))
            bodies.append(Body(f"wheel{i}", "hub", joint, None, parameters))
    return Robot.build(bodies, name="satellite", gravity=np.zeros(3))


def _about_the_centre(mass, moments):
    return inertia.from_com(mass, np.zeros(3), np.diag(moments))
