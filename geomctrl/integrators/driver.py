"""Two ways to integrate on a Lie group: `integrate` returns a `Solution`, `steps` stores nothing."""

from collections.abc import Callable, Iterator

import numpy as np

from geomctrl.arguments import flag
from geomctrl.errors import IntegrationError

from . import tableaus
from .explicit import Explicit
from .march import March, collect
from .solution import Solution
from .step_control import StepControl, checked_tolerances
from .tableaus import Tableau


def steps(
    field: Callable, y0, t_span, h, method: str | Tableau, group, *, rtol=None, atol=None
) -> Iterator[tuple[float, np.ndarray]]:
    """Generator of (t, y), the initial one included, that stores nothing. Arguments and errors as for `integrate`.

    Tolerances that can not be met raise IntegrationError.
    """
    march = _march(field, y0, t_span, h, method, group, rtol, atol)  # now, not at the first next()

    def walk():
        yield march.t0, march.y0.copy()
        for taken in march:
            yield taken.t_next, taken.y_next.copy()  # the caller's to write on
        if march.failure is not None:
            raise IntegrationError(march.failure)

    return walk()


def integrate(
    field: Callable,
    y0,
    t_span,
    h,
    method: str | Tableau,
    group,
    *,
    every: int = 1,
    events=(),
    rtol=None,
    atol=None,
    dense: bool = False,
    progress: Callable | None = None,
) -> Solution:
    """Integrate dy/dt = y field(t, y) from y0 (group.shape) over t_span = (t0, t_end).

    field(t, y) returns (group.dim,). Samples are at t0 + k h exactly; the last step is shortened to end at t_end.
    With an embedded pair ("MK54"), h is the first step to try, or None, and each step's error, in exponential
    coordinates at its beginning, is kept below atol + rtol |log y| component by component in the root mean square
    (on R^n: scipy's rule); atol may be (group.dim,). Defaults 1e-9 and 1e-6.
    every: store each every-th sample, and the last. dense: also keep what `Solution.sol` needs, every step. Dense
    output and event times err by O(h^5) for MK5 and MK54, by O(h^4) for the others of order three and more.
    events: `Event`s; a terminal one ends the solution just past its crossing, so that a restart does not meet it
    again, and an event that is zero at t0 has not crossed; an even number of crossings within one step goes unseen.
    The y that field and events get is theirs to write on. progress: called with the fraction done.

    Raises ArgumentError or NameNotFoundError for arguments, and IntegrationError, whose `solution` holds the samples
    so far, when the field fails or a Munthe-Kaas step turns by 2 pi. Tolerances that can not be met end the solution
    with success=False.
    """
    flag("dense", dense)
    march = _march(field, y0, t_span, h, method, group, rtol, atol)
    return collect(march, every=every, progress=progress, events=events, dense=dense)


def _march(field, y0, t_span, h, method, group, rtol, atol) -> March:
    stepper = Explicit(field, tableaus.method(method), group)
    tolerances = checked_tolerances(rtol, atol, stepper.tableau, group)
    control = StepControl(stepper, *tolerances) if stepper.tableau.b_hat is not None else None
    return March(stepper, y0, t_span, h, control)
