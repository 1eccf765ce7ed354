"""The default monitors of a run, and the interpretation of `simulate(monitors=...)`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from geomctrl.arguments import listed, number, shown
from geomctrl.errors import ArgumentError

from .energy import EnergyBalance
from .group import GroupResidual
from .holding import Holding
from .limits import LIMITED_QUANTITIES, JointLimits
from .lyapunov import LyapunovDecrease
from .monitor import Monitor
from .skew import Skew


def default_monitors() -> list[Monitor]:
    """The monitors of a run that names none.

    Returns
    -------
    list of Monitor
        Skew symmetry, energy, Lyapunov decrease, sampling, group membership, and limits of positions, velocities and
        efforts. A state that is not finite always ends a run.

    Examples
    --------
    >>> import geomctrl as gc
    >>> [monitor.name for monitor in gc.monitors.default_monitors()][:3]
    ['skew', 'energy', 'lyapunov']
    """
    return [
        *(Skew(), EnergyBalance(), LyapunovDecrease(), Holding(), GroupResidual()),
        *(JointLimits(of=x) for x in LIMITED_QUANTITIES),
    ]


def monitor_list(monitors: str | Iterable[Monitor] | None) -> list[Monitor]:
    """The list of monitors for "default", None or an iterable of monitors."""
    if monitors is None:
        return []
    if isinstance(monitors, str):
        if monitors != "default":
            raise ArgumentError(f"monitors: expected 'default', None or Monitors, got {monitors!r}")
        return default_monitors()
    try:
        chosen = listed("monitors", monitors)
    except ArgumentError:
        raise ArgumentError(f"monitors: expected 'default', None or Monitors, got {shown(monitors)}") from None
    for m in chosen:
        if not isinstance(m, Monitor):
            raise ArgumentError(f"monitors: expected geomctrl.monitors.Monitor, got {shown(m)}")
        if not (isinstance(m.limit, float) and m.limit == np.inf):
            number(f"monitors: limit of {m.name!r}", m.limit)
    names = [m.name for m in chosen]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"monitors: {names.count(name)} have the name {name!r}; use distinct names")
    return chosen
