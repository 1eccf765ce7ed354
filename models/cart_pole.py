"""The cart and pole of A. G. Barto, R. S. Sutton, C. W. Anderson, "Neuronlike adaptive elements that can solve
difficult learning control problems", IEEE Trans. Systems, Man, and Cybernetics 13(5), 1983, without its friction.
"""

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["cart_pole"]

CART, POLE, LENGTH = 1.0, 0.1, 1.0  # kg, kg, m; the pole is a uniform rod
RANGE, FORCE = 2.4, 10.0  # m, N


def cart_pole() -> Robot:
    """Cart along x, joint "cart", with a pole about y, joint "pole": zero is upright, positive leans towards x.

    Only the cart is driven: tau = (force, 0). Frame "tip" is the pole's end. With c = 0.5 m the centre of mass's
    distance and J = 0.1 kg (1 m)^2 / 3 the textbook terms are

        M = [[1.1, 0.1 c cos q2], [0.1 c cos q2, J]],   C v = (-0.1 c sin(q2) v2^2, 0),   g = (0, -0.1 9.81 c sin q2).
    """
    rod = POLE * LENGTH**2 / 12.0
    cart = inertia.from_com(CART, np.zeros(3), 0.01 * np.eye(3))  # which does not turn
    pole = inertia.from_com(POLE, (0.0, 0.0, 0.5 * LENGTH), np.diag([rod, rod, 0.1 * rod]))
    tip = np.eye(4)
    tip[2, 3] = LENGTH
    slide = Joint.prismatic((1, 0, 0), name="cart", lower=-RANGE, upper=RANGE, effort=FORCE)
    bodies = [
        Body("cart", None, slide, None, cart),
        Body("pole", "cart", Joint.revolute((0, 1, 0), name="pole"), None, pole),
    ]
    return Robot.build(bodies, name="cart_pole", frames=[("tip", "pole", tip)])
