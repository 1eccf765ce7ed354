"""A controller and its plant, as tests hold them together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.control.contracts import Controller
from geomctrl.control.loop import simulate
from geomctrl.control.options import SimulationOptions
from geomctrl.control.plant import Plant, plant_of
from geomctrl.control.run import Run
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

STRICT = SimulationOptions(strict=True)


class ClosedLoop(NamedTuple):
    """A controller and the plant it acts on, in the order in which assertions take them, as in
    `testing.assert_lyapunov(*loop, bound=True)`.
    """

    controller: Any
    plant: Plant

    @property
    def robot(self) -> Robot:
        """The true robot, before anything changes."""
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
        """A run of the loop by `geomctrl.simulate`, which takes further `arguments`; it ends at the first violation.

        q0, v0: by default those of the controller's reference at t = 0, or its `q_d` at rest. Raises ArgumentError for
        a start that is not known, SimulationError where a monitor exceeds its limit (unless `options` say otherwise).
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
    """Whether x makes something of a robot: a class or a function; a controller, which can be called too, is none."""
    return isinstance(x, type) or (callable(x) and not isinstance(x, (Controller, Robot, Plant)))


def closed_loop(controller: Any, plant: Any, robot: Robot | None) -> ClosedLoop:
    """The loop of a controller, or of what makes one of a robot, and of a plant or robot, or of what makes one of it.

    `robot` is what both are made of; without it the controller is made of the plant's. `plant` None: the robot.
    Raises ArgumentError for what is neither, and for what a factory makes if it is no controller or no plant.
    """
    chosen = robot if plant is None else plant(robot) if is_factory(plant) else plant
    plant = plant_of("plant", chosen)
    if is_factory(controller):
        controller = controller(plant.robot if robot is None else robot)
    return ClosedLoop(instance("controller", controller, Controller, "a geomctrl.Controller"), plant)
