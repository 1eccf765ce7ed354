"""Identification by simulation of the closed loop: DIDIM, closed-loop output error, and the loops they simulate."""

from __future__ import annotations

from inspect import signature
from typing import Any

from geomctrl.arguments import choice
from geomctrl.errors import ArgumentError

from .cloe import cloe
from .didim import didim
from .loop import ControllerLoop, SampledReference, ServoLoop
from .result import OutputErrorFit

__all__ = ["ControllerLoop", "OutputErrorFit", "SampledReference", "ServoLoop", "cloe", "closed_loop_fit", "didim"]

METHODS = {"didim": didim, "cloe": cloe}


def closed_loop_fit(start: Any, logs: Any, loop: Any, method: str = "didim", **options: Any) -> OutputErrorFit:
    """Estimate the parameters of a robot, and of its loop, by simulating the closed loop.

    No measured position is differentiated.

    Parameters
    ----------
    start : Estimate, RegressorModel or Robot
        The initial parameters: the fit by inverse dynamics, or a model with the nominal robot.
    logs : Dataset or sequence of Dataset
        Unfiltered logs.
    loop : ServoLoop or ControllerLoop, or one for each log
        The control loop that moved the robot.
    method : {"didim", "cloe"}, default "didim"
        "didim" estimates the robot alone, for a known loop, in a few simulations (Gautier, Janot and Vandanjon 2013).
        "cloe" estimates gains and delay too, with exact derivatives of the simulation.
    **options
        For both methods `iterations` and `tolerance`: it has converged if a step changes the simulation by less than
        this part of the residual. For "didim" `estimator`, a method of `fit`, its `options`; `cutoff` [Hz] of a
        low-pass for torques and regressor, `decimate`: every n-th row is kept after it; `settle` [s]: time at the start
        of each part that is left out, until initial errors have decayed (at most a tenth). For "cloe" `gains` to
        estimate (names: "kp", "kd", "ki"); `delay`: whether to estimate the loop's delay; `positions`: whether to fit
        positions in addition to torques, without which gains are hardly determined.

    Returns
    -------
    OutputErrorFit
        `robot` and `estimate` (an `Estimate`), the `loop` with its estimated parameters; `names`, `values`, `std` and
        `intervals()` of all parameters, `value(name)` of one; `converged`, `history`; `undetermined` and `correlated`,
        descriptions of parameters that the log does not determine; `simulated`, the last simulation.

    Raises
    ------
    SimulationError
        The loop is not stable with the current parameters.
    UntraceableError
        "cloe" needs derivatives that the law does not have.
    DataError, ExcitationError, ArgumentError

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.identification import ControllerLoop, Dataset, RegressorModel, closed_loop_fit
    >>> arm, true, period = gc.models.two_link(), gc.models.two_link().with_payload(0.5), 0.004
    >>> law = gc.controllers.Passivity(arm, gc.references.Sinusoids(arm, [0.3, 0.5], amplitude=0.4, frequency=0.5))
    >>> start = law.reference(0.0)
    >>> run = gc.simulate(true, law, start.q, start.v, 4.0, period, control_dt=period)
    >>> loop = ControllerLoop(law, period)
    >>> log, options = Dataset(run.t, run.q, run.tau), {"strength": 1e-7}
    >>> result = closed_loop_fit(RegressorModel(arm), log, loop, estimator="ridge", options=options)
    >>> q = [0.3, -0.5]  # at rest, the identified robot has the gravity torques of the true one
    >>> bool(np.allclose(result.robot.gravity_force(q), true.gravity_force(q), rtol=0.02))
    True
    """
    choice("method", method, METHODS)
    names = list(signature(METHODS[method]).parameters)[3:]
    for name in options:
        if name not in names:
            raise ArgumentError(f"options: {method} has no option {name!r}; known: {', '.join(names)}")
    return METHODS[method](start, logs, loop, **options)
