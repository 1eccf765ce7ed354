"""Direct and inverse dynamic identification models (Gautier, Janot and Vandanjon 2013, "A new closed-loop output error
method for parameter identification of robot dynamics", IEEE Trans. Control Systems Technology 21(2)).

A closed loop follows its reference almost independently of the parameters: simulated with the current parameters and
the real gains, it moves as the robot did. The measured torque is therefore regressed on the regressor of the simulated
motion, which has no noise and needs no filter. The result gives the next parameters, and the loop is simulated again
until nothing changes: a Gauss-Newton step that neglects the dependence of the motion on the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from geomctrl.arguments import choice, count, number, shown
from geomctrl.errors import ArgumentError, ModelError, SimulationError
from geomctrl.identification.estimators import ESTIMATORS, fit
from geomctrl.identification.logs import filters

from .experiment import REMEDY, Experiment, experiment, motion, start_of
from .result import Iteration, OutputErrorFit
from .simulation import Dynamics, Schedule, schedule, steps_for

MIN_CHANGE = 1e-9  # relative change of the torques that is rounding


def didim(
    start: Any,
    logs: Any,
    loop: Any,
    *,
    estimator: str = "ols",
    cutoff: float | None = None,
    decimate: int = 1,
    settle: float = 0.5,
    iterations: int = 15,
    tolerance: float = 0.02,
    options: Mapping[str, Any] | None = None,
) -> OutputErrorFit:
    """The method "didim" of `closed_loop_fit`."""
    model, x = start_of(start)
    setup = experiment(model, logs, loop)
    choice("estimator", estimator, ESTIMATORS)
    iterations, decimate = count("iterations", iterations, 1), count("decimate", decimate, 1)
    tolerance = number("tolerance", tolerance, "a number > 0", lambda x: x > 0.0)
    if not isinstance(options, (Mapping, type(None))) or not all(isinstance(name, str) for name in options or ()):
        raise ArgumentError(f"options: expected a dict by name, or None, got {shown(options)}")
    settle = number("settle", settle, "seconds >= 0", lambda x: x >= 0.0)
    band = None
    if cutoff is not None:
        cutoff = number("cutoff", cutoff, "hertz > 0", lambda x: x > 0.0)
        filters.require_cutoff(cutoff, setup.data[0].rate)
        band = (cutoff, 4)
    history, done, steps = [], False, 1
    while not done and len(history) < iterations:
        dynamics, plan, steps = prepared(setup, x, steps)
        runs = [part.run(dynamics, plan) for part in setup.parts]
        data = motion(setup, dynamics, plan, runs, band, decimate, settle)
        estimate = fit(model, data, estimator, **(options or {}))
        A, b = estimate.training.system()
        size, residual = np.linalg.norm(b), np.linalg.norm(A @ estimate.x - b)
        change = np.linalg.norm(A @ (estimate.x - x))
        history.append(Iteration(float(np.linalg.norm(A @ x - b) / size), float(change / max(residual, 1e-300))))
        x, done = estimate.x, bool(change <= tolerance * residual + MIN_CHANGE * size)
    covariance = estimate.covariance
    if covariance is None:
        covariance = np.full((model.base.size, model.base.size), np.nan)
    return OutputErrorFit(
        "didim", estimate, setup.loop, model.base_names, estimate.values, covariance, tuple(history), done, data
    )


def prepared(setup: Experiment, x: np.ndarray, steps: int, moving: bool = False) -> tuple[Dynamics, Schedule, int]:
    """The model with parameters x, the pieces of a sampling interval, and their number of steps, which never falls."""
    loop = setup.loop
    try:
        dynamics = Dynamics(setup.model, x)
    except ModelError as error:
        raise SimulationError(f"the current parameters can not be simulated: {error}; {REMEDY}") from error
    configurations = np.concatenate([part.q[:: max(1, len(part.q) // 20)] for part in setup.parts])
    steps = max(steps, steps_for(dynamics, configurations, loop.period))
    return dynamics, schedule(loop.period, loop.delay, steps, moving), steps
