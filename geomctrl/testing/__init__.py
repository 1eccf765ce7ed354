"""For unit tests: random physical robots and states, and assertions of the properties that control proofs rest on.

    from hypothesis import given, strategies as st
    from geomctrl import testing

    @given(testing.robots(kinds=("revolute", "prismatic")).flatmap(lambda r: st.tuples(st.just(r), testing.states(r))))
    def test_energy_is_not_negative(case):
        robot, (q, v) = case
        assert robot.kinetic_energy(q, v) >= 0.0

    def test_my_coriolis_matrix():
        testing.assert_skew_symmetric(robot, my_coriolis_matrix)

The strategies need hypothesis, an optional dependency, when they are called; `random_robot` and the assertions do not.
Assertions raise AssertionError with the state that breaks the property. Tolerances are relative, see each docstring.
"""

from geomctrl.proofs.certificates import Certificate, Counterexample
from geomctrl.proofs.claims import Ellipsoid
from geomctrl.proofs.rechecking import Recheck

from .assertions import assert_passive, assert_skew_symmetric
from .certificates.certificate import LyapunovCertificate
from .certificates.recheck import CheckError, recheck_lyapunov
from .certifying import certify, recheck
from .lyapunov import State, assert_lyapunov
from .lyapunov_certificates import certify_lyapunov, region_of_attraction
from .random_robots import random_inertia, random_joint, random_robot
from .strategies import (
    bundled_robots,
    configurations,
    inertias,
    motions,
    robots,
    states,
    velocities,
)

__all__ = [
    "Certificate",
    "CheckError",
    "Counterexample",
    "Ellipsoid",
    "LyapunovCertificate",
    "Recheck",
    "State",
    "assert_lyapunov",
    "assert_passive",
    "assert_skew_symmetric",
    "bundled_robots",
    "certify",
    "certify_lyapunov",
    "configurations",
    "inertias",
    "motions",
    "random_inertia",
    "random_joint",
    "random_robot",
    "recheck",
    "recheck_lyapunov",
    "region_of_attraction",
    "robots",
    "states",
    "velocities",
]
