"""Tests for control proofs: assertions about Lyapunov functions and robots, certificates, and random robots and states.

    from hypothesis import given, strategies as st
    from geomctrl import testing

    @given(testing.robots(kinds=("revolute", "prismatic")).flatmap(lambda r: st.tuples(st.just(r), testing.states(r))))
    def test_energy_is_not_negative(case):
        robot, (q, v) = case
        assert robot.kinetic_energy(q, v) >= 0.0

    def test_my_coriolis_matrix():
        testing.assert_skew_symmetric(robot, my_coriolis_matrix)

The strategies need hypothesis, an optional dependency; `random_robot` and the assertions do not. Assertions raise
AssertionError with a state that violates the property. Tolerances are relative; see each docstring.

Names are imported on first use, because pytest loads the plugin, and with it this package, in every project.
`__init__.pyi` lists them for type checkers; a test compares the two.
"""

import importlib
from typing import Any

from geomctrl.other_names import UnknownName

NAMES = {
    "Box": "settings",
    "Budget": "settings",
    "CheckError": "certificates.recheck",
    "ClosedLoop": "closed_loop",
    "Counterexample": "counterexample",
    "Ellipsoid": "certifying",
    "Port": "settings",
    "Region": "settings",
    "Runs": "settings",
    "Tube": "tubes.tube",
    "assert_contracting": "contraction",
    "assert_exponential": "stability",
    "assert_input_to_state_stable": "stability",
    "assert_lyapunov": "lyapunov",
    "assert_passive_port": "passivity",
    "assert_robust": "robustness",
    "assert_sampled": "sampled",
    "assert_skew_symmetric": "robot_terms",
    "certify": "certifying",
    "certify_barrier": "tubes.barriers",
    "certify_lyapunov": "lyapunov_certificates",
    "certify_sampled": "tubes.held",
    "contraction_rate": "contraction",
    "exponential_rate": "stability",
    "find_lyapunov": "lyapunov_finding",
    "input_to_state_gain": "stability",
    "largest_certified_control_dt": "tubes.held",
    "largest_control_dt": "sampled",
    "lyapunov_at": "lyapunov",
    "passivity_index": "passivity",
    "reach": "tubes.reaching",
    "random_robot": "random_robots",
    "recheck": "certifying",
    "recheck_lyapunov": "lyapunov_rechecks",
    "region_of_attraction": "lyapunov_certificates",
    "robots": "random_robots",
    "sampled_level": "sampled",
    "states": "random_robots",
    "worst_case": "robustness",
}

__all__ = sorted(NAMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise UnknownName(__name__, name, __all__)
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{NAMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
