"""The arguments of `certify_lyapunov` and `region_of_attraction`, checked, and the claim's domain in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.arguments import checked, number
from geomctrl.control.contracts import started
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import one_configuration, require_vectors
from geomctrl.robot import Robot
from geomctrl.testing.equilibria import motion_of


def require_autonomous(controller: Any, plant: Plant) -> None:
    require_vectors("plant", plant.robot)
    if plant.switches:
        raise ArgumentError(f"plant: expected one that does not change, got changes at {list(plant.switches)}")
    start = started(controller, plant.robot)
    if start is not None:
        raise ArgumentError(
            f"controller: expected one without a state z, got {type(controller).__name__} with {np.size(start)}"
            " numbers: its V' does not see them (V' = 0 wherever the tracking error is), so that V' < 0 can not hold;"
            " testing.assert_lyapunov judges V' = what is promised"
        )


def equilibrium_of(controller: Any, robot: Robot, given: Any) -> np.ndarray:
    if given is not None:
        return one_configuration(robot, "equilibrium", given)
    motion = motion_of(controller, robot.nv, None)
    (q, v, _), (later, v_later, _) = motion(0.0), motion(1.0)
    if np.any(v) or np.any(v_later) or not np.array_equal(q, later):
        raise ArgumentError("controller: expected a reference that holds still, such as references.hold, got a motion")
    return one_configuration(robot, "controller's equilibrium", q)


def half_widths(name: str, given: Any, robot: Robot) -> np.ndarray:
    """(2 nv,): positive lengths of q and of v."""
    expected = f"{name}: expected a pair (q, v) of half widths, numbers or ({robot.nv},) each, positive and finite"
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ArgumentError(f"{expected}; got {given!r:.80}")
    try:
        parts = [np.asarray(x, float) for x in given]
    except (TypeError, ValueError):
        raise ArgumentError(f"{expected}; got {given!r:.80}") from None
    if any(x.shape not in ((), (robot.nv,)) for x in parts):
        raise ArgumentError(f"{expected}; got {given!r:.80}")
    parts = [np.broadcast_to(x, (robot.nv,)) for x in parts]
    half = np.concatenate(parts)
    if not (np.isfinite(half).all() and (half > 0.0).all()):
        raise ArgumentError(f"{expected}; got {given!r:.80}")
    return half


def half_axes(given: Any, robot: Robot) -> np.ndarray:
    if isinstance(given, (tuple, list)):
        return half_widths("outside", given, robot)
    r = number("outside", given, "a positive number or a pair (q, v) of half axes", lambda x: 0.0 < x < np.inf)
    return half_widths("outside", (r, 5.0 * r), robot)


def parameter_intervals(given: Any, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    p = robot.parameters
    if isinstance(given, (tuple, list)) and len(given) == 2:
        lo, hi = (checked("parameters", x, p.shape) for x in given)
        if lo.shape != p.shape or hi.shape != p.shape or not (lo <= hi).all():
            raise ArgumentError(
                f"parameters: expected two arrays {p.shape}, smallest and largest values, got {given!r:.80}"
            )
        return lo.ravel(), hi.ravel()
    share = number("parameters", given, "a share, not negative, such as 0.2 for 20 %", lambda x: x >= 0.0)
    return (p - share * np.abs(p)).ravel(), (p + share * np.abs(p)).ravel()


def domain_text(half: np.ndarray, robot: Robot, parameters: Any) -> str:
    n = robot.nv

    def words(x: np.ndarray) -> str:
        return f"{x[0]:g}" if (x == x[0]).all() else np.array2string(x, separator=", ", precision=4)

    of = "intervals" if isinstance(parameters, (tuple, list)) else f"{100.0 * float(parameters):g} %"
    sure = isinstance(parameters, (int, float)) and parameters == 0
    robots = "" if sure else f", every inertial parameter within {of}"
    return f"q within {words(half[:n])}, v within {words(half[n:])} of the equilibrium ({2 * n} dimensions){robots}"
