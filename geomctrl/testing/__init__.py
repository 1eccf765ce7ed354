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

Names are loaded when they are asked for, as pytest loads the plugin, and with it this package, whatever it runs.
`__init__.pyi` says the same to type checkers; a test compares the two.
"""

import importlib
from typing import Any

NAMES = {
    "ClosedLoop": "closed_loop",
    "Counterexample": "counterexample",
    "LyapunovAt": "along",
    "State": "domain",
    "Certificate": "certifying",
    "Ellipsoid": "certifying",
    "Recheck": "certifying",
    "assert_lyapunov": "lyapunov",
    "assert_passive": "assertions",
    "assert_skew_symmetric": "assertions",
    "bundled_robots": "strategies",
    "certify": "certifying",
    "certify_lyapunov": "lyapunov_certificates",
    "configurations": "strategies",
    "inertias": "strategies",
    "lyapunov_at": "lyapunov",
    "motions": "strategies",
    "random_inertia": "random_robots",
    "random_joint": "random_robots",
    "random_robot": "random_robots",
    "recheck": "certifying",
    "region_of_attraction": "lyapunov_certificates",
    "robots": "strategies",
    "states": "strategies",
    "velocities": "strategies",
}

__all__ = sorted(NAMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{NAMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
