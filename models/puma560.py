"""The Unimation PUMA 560, from B. Armstrong, O. Khatib, J. Burdick, "The explicit dynamic model and inertial parameters
of the PUMA 560 arm", ICRA 1986, in its modified Denavit-Hartenberg frames.

Masses, centres of mass and inertias are the paper's measured ones (its Tables 4 to 6), read from Corke's Robotics
Toolbox (mdl_puma560akb, mdl_puma560), with two changes that make them a robot:
- Link 3: the published moments (0.066, 0.0125, 0.086) break the triangle inequality; here (0.070, 0.0125, 0.082).
  (mdl_puma560akb has 0.066 for the last, which misses the paper's own constant I6 = 0.333 by 6 %; this one by 1 %.)
- Link 1 was measured about its axis only (0.35) and not weighed. Nothing else of it acts on a base with a vertical
  axis; its mass 13 kg, on the axis, and the isotropic inertia 0.35 are made up.

As in the paper's explicit model the motors' reflected inertia is on the diagonal of M, where it is most from joint 2
on: the joints' `armature`; `puma560().with_armature(0.0)` is the arm without. The paper's constants I1 = 1.43 and
I3 = 1.38 of M11 do not follow from its tables, which give 1.56 and 1.60; those of M12, M13, M22, M23, M33, the wrist's
diagonal and gravity do.

Joint ranges: Corke's toolbox (after Wang and Chen 1991), in this convention's signs. Efforts: the paper's Table 7.
"""

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["puma560"]

#       alpha    a        d       lower upper effort armature  (modified DH: before the joint; degrees; N m; kg m^2)
LINKS = (
    (0.0, 0.0, 0.0, -160, 160, 97.6, 1.14),
    (-90.0, 0.0, 0.2435, -225, 45, 186.4, 4.71),
    (0.0, 0.4318, -0.0934, -45, 225, 89.4, 0.827),
    (90.0, -0.0203, 0.4331, -110, 170, 24.2, 0.200),
    (-90.0, 0.0, 0.0, -100, 100, 20.1, 0.179),
    (90.0, 0.0, 0.0, -266, 266, 21.3, 0.193),
)
#       mass   centre of mass           principal moments about it
MASSES = (
    (13.0, (0.0, 0.0, 0.0), (0.35, 0.35, 0.35)),
    (17.40, (0.068, 0.006, -0.016), (0.130, 0.524, 0.539)),
    (4.80, (0.0, -0.070, 0.014), (0.070, 0.0125, 0.082)),
    (0.82, (0.0, 0.0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3)),
    (0.34, (0.0, 0.0, 0.0), (0.3e-3, 0.3e-3, 0.4e-3)),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)


def puma560() -> Robot:
    """PUMA 560, 6R, with its motors' inertia (see the module). Zero: upper arm along x, forearm up."""
    bodies = []
    for i, ((alpha, a, d, lower, upper, effort, armature), (m, com, moments)) in enumerate(
        zip(LINKS, MASSES, strict=True), 1
    ):
        c, s = round(np.cos(np.radians(alpha))), round(np.sin(np.radians(alpha)))
        placement = np.array([[1, 0, 0, a], [0, c, -s, -s * d], [0, s, c, c * d], [0, 0, 0, 1.0]])
        joint = Joint.revolute(
            (0, 0, 1),
            name=f"joint{i}",
            lower=np.radians(lower),
            upper=np.radians(upper),
            effort=effort,
            armature=armature,
        )
        parameters = inertia.from_com(m, com, np.diag(moments))
        bodies.append(Body(f"link{i}", f"link{i - 1}" if i > 1 else None, joint, placement, parameters))
    return Robot.build(bodies, name="puma560")
