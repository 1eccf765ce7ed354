"""Checks of the arguments of `certify_lyapunov` and `region_of_attraction`, and the domain of a claim as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.arguments import checked, number, one_or_each, pair, positive, shown
from geomctrl.control.closed_loop import require_controller_of
from geomctrl.control.contracts import started
from geomctrl.control.friction import Friction
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.states import one_configuration, require_vectors
from geomctrl.robot import Robot
from geomctrl.testing.loop_states import motion_of
from geomctrl.testing.settings import Box

from .tracking import preloads


def require_autonomous(controller: Any, plant: Plant, adaptive: bool = False) -> np.ndarray:
    """The true value of the law's state z, which is empty without one; adaptive: whether it may have one."""
    require_vectors("plant", plant.robot)
    require_controller_of(controller, plant.robot)
    if plant.switches:
        raise ArgumentError(f"plant: expected a plant that does not change, got changes at {list(plant.switches)}")
    start = started(controller, plant.robot)
    if adaptive and hasattr(controller, "true_parameters") and np.ndim(start) == 1:
        return np.asarray(controller.true_parameters(plant), float)
    if start is not None:
        raise ArgumentError(
            f"controller: expected one without a state z, got {type(controller).__name__} with {np.size(start)}"
            " numbers; `certify_lyapunov` takes adaptive ones, which have `true_parameters`, with Box(z=...);"
            " testing.assert_lyapunov compares V' with the promised rate"
        )
    return np.zeros(0)


def estimation_errors(widths: Any, true: np.ndarray) -> np.ndarray:
    """Half widths of z - `true_parameters(plant)`, empty for a law without z."""
    expected = f"box: expected z, the half widths ({len(true)},) of z - true_parameters(plant), positive and finite"
    half = np.zeros(0) if widths is None else checked("z", widths, ())
    if half.shape != true.shape and (half.ndim or not len(true)):
        raise ArgumentError(
            f"{expected}, got {shown(widths)}"
            if len(true)
            else f"box: expected no z for a law without a state z, got {shown(widths)}"
        )
    half = np.broadcast_to(half, true.shape)
    if not (np.isfinite(half).all() and (half > 0.0).all()):
        raise ArgumentError(f"{expected}, got {shown(widths)}")
    return half


def equilibrium_of(controller: Any, robot: Robot, equilibrium: Any) -> np.ndarray:
    if equilibrium is not None:
        return one_configuration(robot, "equilibrium", equilibrium)
    motion = motion_of(controller, robot.nv, None)
    (q, v, _), (later, v_later, _) = motion(0.0), motion(1.0)
    if np.any(v) or np.any(v_later) or not np.array_equal(q, later):
        raise ArgumentError("controller: expected a constant reference, such as references.hold, got one that moves")
    return one_configuration(robot, "controller's equilibrium", q)


def moving_reference(controller: Any) -> Any:
    """The controller's reference, a function of time, if it moves; None if it holds still, or there is none."""
    reference = getattr(controller, "reference", None)
    if reference is None:
        return None
    (q, v), (later, v_later) = reference(0.0)[:2], reference(1.0)[:2]
    return reference if np.any(v) or np.any(v_later) or not np.array_equal(q, later) else None


def with_others(box: Box, plant: Plant, p_lo: np.ndarray, p_hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of the parameters, then those of the joint torques and friction coefficients that `apart` adds."""
    if box.disturbance is not None:
        if box.disturbance.shape not in ((), (plant.robot.nv,)):
            raise ArgumentError(f"disturbance: expected a number or ({plant.robot.nv},) torques, got {box.disturbance}")
        largest = np.broadcast_to(box.disturbance, (plant.robot.nv,))
        middle = preloads(plant)
        p_lo, p_hi = np.append(p_lo, middle - largest), np.append(p_hi, middle + largest)
    if box.friction is not None:
        if type(plant.friction) is not Friction or not plant.friction_parameters.any():
            raise ArgumentError(f"friction: expected a plant with geomctrl.Friction, got {shown(plant.friction)}")
        middle = plant.friction_parameters
        p_lo = np.append(p_lo, middle * (1.0 - box.friction))
        p_hi = np.append(p_hi, middle * (1.0 + box.friction))
    return p_lo, p_hi


def half_widths(name: str, widths: Any, robot: Robot) -> np.ndarray:
    """Positive lengths of q and of v, as one array (2 nv,)."""
    each = zip("qv", pair(name, widths, "a pair (q, v) of half widths"))
    q, v = (one_or_each(f"{name}.{part}", x, robot.nv, "a positive number", positive) for part, x in each)
    return np.concatenate((q, v))


def half_axes(outside: Any, robot: Robot) -> np.ndarray:
    if isinstance(outside, (tuple, list)):
        return half_widths("outside", outside, robot)
    r = number("outside", outside, "a positive number or a pair (q, v) of half axes", lambda x: 0.0 < x < np.inf)
    return half_widths("outside", (r, 5.0 * r), robot)


def parameter_intervals(parameters: Any, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    p = robot.parameters
    if isinstance(parameters, (tuple, list)) and len(parameters) == 2:
        lo, hi = (checked("parameters", x, p.shape) for x in parameters)
        if lo.shape != p.shape or hi.shape != p.shape or not (lo <= hi).all():
            raise ArgumentError(
                f"parameters: expected two arrays {p.shape}, smallest and largest values, got {shown(parameters)}"
            )
        return lo.ravel(), hi.ravel()
    share = number("parameters", parameters, "a share from 0 to 1e6, such as 0.2 for 20 %", lambda x: 0.0 <= x <= 1e6)
    return (p - share * np.abs(p)).ravel(), (p + share * np.abs(p)).ravel()


def numbers_text(x: np.ndarray) -> str:
    return f"{x[0]:g}" if (x == x[0]).all() else np.array2string(x, separator=", ", precision=4)


def domain_text(half: np.ndarray, robot: Robot, parameters: Any) -> str:
    n = robot.nv
    of = "intervals" if isinstance(parameters, (tuple, list)) else f"{100.0 * float(parameters):g} %"
    exact = isinstance(parameters, (int, float)) and parameters == 0
    robots = "" if exact else f", every inertial parameter within {of}"
    q, v = numbers_text(half[:n]), numbers_text(half[n:])
    return f"q within {q}, v within {v} of the equilibrium ({2 * n} dimensions){robots}"


def share(lo: np.ndarray, hi: np.ndarray) -> float:
    """The largest known e with G_i(p) >= e G_i(centre) for all bodies i and all p between lo and hi (nbodies, 10).

    If e is positive, 2 T = sum_i V_i . G_i V_i is at least e times that of the centre, and so is M(q, p) for every q.
    The bound uses 2 |x_i x_j| <= x_i^2 + x_j^2 in coordinates with G(centre) = 1, for each parameter.
    """
    least = np.inf
    for a, b in zip(lo, hi):
        centre, radius = 0.5 * (a + b), 0.5 * (b - a) * (1.0 + 1e-12)
        values, vectors = np.linalg.eigh(inertia.spatial(centre))
        if values[0] <= 1e-12 * values[-1]:
            return 0.0
        W = vectors / np.sqrt(values)
        cover = np.abs(W.T @ inertia.spatial(np.diag(radius)) @ W).sum(0)
        least = min(least, 1.0 - float(np.linalg.eigvalsh(cover)[-1]) - 1e-9)
    return least
