"""Integrate an ODE on a Lie group: `integrate` returns a `Solution`, `steps` yields one step after another."""

from collections.abc import Callable, Iterator

import numpy as np

from geomctrl.arguments import flag
from geomctrl.errors import IntegrationError

from .explicit import Explicit, check_field_and_group
from .march import March, collect
from .solution import Solution
from .step_control import Adaptive, StepControl, tableau_and_tolerances
from .tableaus import Tableau


def steps(
    field: Callable, y0, t_span, h, method: str | Tableau | Adaptive, group
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield (t, y) after each step, beginning with the initial state; nothing is stored.

    Parameters
    ----------
    field, y0, t_span, h, method, group
        As for `integrate`.

    Yields
    ------
    t : float
        Time [s].
    y : ndarray
        Element of the group.

    Raises
    ------
    ArgumentError, IntegrationError
        As `integrate`; IntegrationError also if tolerances can not be met.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import groups
    >>> from geomctrl.integrators import steps
    >>> decay = lambda t, y: -y
    >>> *_, (t, y) = steps(decay, np.ones(1), (0.0, 1.0), 0.1, "MK4", groups.Rn(1))
    >>> round(t, 3), np.round(y, 4)
    (1.0, array([0.3679]))
    """
    march = _march(field, y0, t_span, h, method, group)  # raises for bad arguments here, not at the first next()

    def walk():
        yield march.t0, march.y0.copy()
        for taken in march:
            yield taken.t_next, taken.y_next.copy()  # the caller may modify it
        if march.failure is not None:
            raise IntegrationError(march.failure)

    return walk()


def integrate(
    field: Callable,
    y0,
    t_span,
    h,
    method: str | Tableau | Adaptive,
    group,
    *,
    every: int = 1,
    events=(),
    dense: bool = False,
    progress: Callable | None = None,
) -> Solution:
    """Integrate dy/dt = y field(t, y) on a Lie group.

    Parameters
    ----------
    field : callable
        field(t, y) returns (group.dim,). It may modify the y that it receives.
    y0 : array (group.shape)
        The initial element of the group.
    t_span : (float, float)
        (t0, t_end), t0 < t_end.
    h : float or None
        The step. Samples are at t0 + k h exactly; the last step is shortened to end at t_end. With an adaptive method
        it is the first step to try, or None.
    method : str, Tableau or Adaptive
        A method of `methods()`, a tableau, or an `Adaptive` method with its tolerances.
    group : LieGroup
        The group of y.
    every : int
        Store each every-th sample, and the last.
    events : sequence of Event
        Sign changes to locate. A terminal event ends the solution just past its crossing, so that a restart does not
        detect it again. An event that is zero at t0 has not crossed. An even number of crossings within one step is
        not detected.
    dense : bool
        Also store every step, so that `Solution.sol` can interpolate. Default False.
    progress : callable or None
        Called with the completed fraction.

    Returns
    -------
    Solution
        The samples. `success` is False where tolerances can not be met.

    Raises
    ------
    ArgumentError, NameNotFoundError
        For invalid arguments.
    IntegrationError
        If the field fails or a Munthe-Kaas step rotates by 2 pi. Its `solution` holds the samples so far.

    Notes
    -----
    The error of dense output and event times is O(h^5) for MK5 and MK54, and O(h^4) for other methods of order three
    and more.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import groups
    >>> from geomctrl.integrators import integrate
    >>> spin = lambda t, R: np.array([0.0, 0.0, 1.0])
    >>> solution = integrate(spin, np.eye(3), (0.0, 1.0), 0.1, "MK4", groups.SO3())
    >>> np.round(solution.y[-1, 0], 4)
    array([ 0.5403, -0.8415,  0.    ])
    """
    flag("dense", dense)
    march = _march(field, y0, t_span, h, method, group)
    return collect(march, every=every, progress=progress, events=events, dense=dense)


def _march(field, y0, t_span, h, method, group) -> March:
    check_field_and_group(field, group)
    tableau, rtol, atol = tableau_and_tolerances(method, group)
    stepper = Explicit(field, tableau, group)
    control = StepControl(stepper, rtol, atol) if tableau.b_hat is not None else None
    return March(stepper, y0, t_span, h, control)
