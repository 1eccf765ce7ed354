"""`ClosedLoop`: a controller and its plant, the subject of a test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import accepts
from geomctrl.control.contracts import require_controller
from geomctrl.control.loop import simulate
from geomctrl.control.options import SimulationOptions
from geomctrl.control.plant import Plant, plant_of
from geomctrl.control.run import Run
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

STRICT = SimulationOptions(strict=True)


class ClosedLoop(NamedTuple):
    """A controller and the plant it acts on, the fixture `closed_loop` of the pytest plugin.

    Assertions take them in this order: `testing.assert_lyapunov(*loop, bound=True)`.

    Attributes
    ----------
    controller : Controller
    plant : Plant

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> loop = gc.testing.ClosedLoop(gc.controllers.PDGravity(arm, [0.5, 0.2]), gc.Plant(arm))
    >>> gc.testing.assert_lyapunov(*loop, search=200, runs=0)
    >>> loop.simulate(t_end=0.2, q0=[0.4, 0.2], v0=[0.0, 0.0]).ok
    True
    """

    controller: Any
    plant: Plant

    @property
    def robot(self) -> Robot:
        """The true robot before any change."""
        return self.plant.robot

    def simulate(
        self,
        t_end: float = 1.0,
        dt: float = 1e-3,
        *,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        **arguments: Any,
    ) -> Run:
        """Simulate the loop; a violation of a monitor ends the run.

        Parameters
        ----------
        t_end, dt : float
            Duration and step [s]. Defaults: 1 and 1e-3.
        q0, v0 : array_like, optional
            Initial state. Default: the controller's reference at t = 0, or its `q_d` at rest.
        **arguments
            Further arguments of `geomctrl.simulate`.

        Returns
        -------
        Run

        Raises
        ------
        ArgumentError
            If there is neither an initial state nor a reference.
        SimulationError
            If a monitor exceeds its limit, unless `options` change that.
        """
        if q0 is None or v0 is None:
            q, v = self._start()
            q0, v0 = q if q0 is None else q0, v if v0 is None else v0
        return simulate(self.plant, self.controller, q0, v0, t_end, dt, **{"options": STRICT, **arguments})

    def _start(self) -> tuple[ArrayLike, ArrayLike]:
        reference, q_d = (getattr(self.controller, name, None) for name in ("reference", "q_d"))
        if reference is not None:
            return reference(0.0)[:2]
        if q_d is not None:
            return q_d, np.zeros(self.robot.nv)
        name = type(self.controller).__name__
        raise ArgumentError(f"q0: {name} has neither a reference nor q_d; expected q0 and v0")


def is_factory(x: object) -> bool:
    """Whether x creates a controller or plant from a robot: a class, or a function that one argument is enough for."""
    if isinstance(x, type) or not callable(x):
        return isinstance(x, type)
    return not hasattr(x, "start") and accepts(x, 1)


def closed_loop(controller: Any, plant: Any, robot: Robot | None) -> ClosedLoop:
    """The loop of a controller and a plant, each given directly or as a function of the robot.

    `robot` is the argument of these functions; default the plant's. `plant` None means the robot. Raises ArgumentError
    for other objects, and if a function returns no controller or no plant.
    """
    chosen = robot if plant is None else plant(robot) if is_factory(plant) else plant
    plant = plant_of("plant", chosen)
    if is_factory(controller):
        controller = controller(plant.robot if robot is None else robot)
    require_controller(controller)
    return ClosedLoop(controller, plant)
