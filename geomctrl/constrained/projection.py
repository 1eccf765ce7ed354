"""Integration of the index-1 equations by explicit methods, with or without a projection after every step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from geomctrl import integrators
from geomctrl.arguments import flag, instance
from geomctrl.errors import ArgumentError, GeomctrlError, IntegrationError
from geomctrl.integrators.explicit import Explicit
from geomctrl.integrators.march import March, Step, collect
from geomctrl.integrators.tableaus import Tableau

from .equations import Index1System


def integrate_index1(
    system: Index1System,
    y0: ArrayLike,
    t_span: tuple[float, float],
    h: float,
    method: Any = "MK4",
    *,
    project: bool = False,
    every: int = 1,
    **options: Any,
) -> integrators.Solution:
    """`integrators.integrate` of the system's field, its options included.

    project: bring positions and velocities back to the constraints after every step (fixed-step methods only, and no
    further options). Raises as `integrators.integrate` does, and IntegrationError when a projection fails.
    """
    instance("system", system, Index1System, "a ConstrainedSystem or ClosedLoops")
    if not flag("project", project):
        return integrators.integrate(system.field, y0, t_span, h, method, system.group, every=every, **options)
    tableau = integrators.method(method)
    if tableau.b_hat is not None or options:
        raise ArgumentError(
            f"project: needs a fixed-step method and no further options, got {tableau.name}, {sorted(options)}"
        )
    return collect(March(_Projected(system, tableau), y0, t_span, h), every=every)


class _Projected(Explicit):
    """A `march.Stepper`: steps of an explicit method, each followed by a projection onto the constraints."""

    def __init__(self, system: Index1System, tableau: Tableau):
        super().__init__(system.field, tableau, system.group)
        self.system = system

    def step(self, t, y, h, t_next, memory=None) -> Step:
        taken = super().step(t, y, h, t_next)
        try:
            return replace(taken, y_next=self.system._projected(taken.y_next))
        except GeomctrlError as error:
            raise IntegrationError(f"{error}, at t = {t_next:.9g}") from None
