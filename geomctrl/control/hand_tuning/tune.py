"""`tune`: open a page with sliders for the numbers of a closed loop."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from geomctrl.arguments import count, one_state, path_of, shown
from geomctrl.control.contracts import Controller
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import one_configuration
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot

from .controls import Controls
from .session import Session

if TYPE_CHECKING:
    from geomctrl.viewing.tuning import TuningPage


@named_arguments()
def tune(
    plant: Plant | Robot,
    controller: Controller,
    t_end: float = 5.0,
    dt: float = 1e-3,
    control_dt: float | None = None,
    *,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    out: str | os.PathLike = "out/tune",
    port: int = 8080,
    token: str | None = None,
) -> TuningPage:
    """Open a page on which gains, load, friction and all other numbers of a closed loop are sliders.

    Every change simulates the loop anew and shows the robot, curves, verdicts of the monitors and measures. The page
    listens on this machine only, refuses requests of other sites, and asks for the token in the printed address.

    Parameters
    ----------
    plant : Plant or Robot
        The true robot. Its arguments become controls (`control.arguments`), and so does a load on the last body.
    controller : Controller
        The feedback law, whose arguments and reference become controls.
    t_end : float
        Duration of the simulated run [s], default 5.
    dt : float
        Time between samples [s], default 0.001.
    control_dt : float or None
        Period of a zero-order hold [s], a multiple of dt; None, the default, evaluates the law in continuous time.
    start : (q0, v0), optional
        Initial configuration and velocity. Default: the begin of the controller's reference.
    ranges : mapping of str to (low, high), optional
        Ranges by control, for example {"law.K": (0.01, 10.0), "plant.friction.coulomb": (0.0, 2.0)}. Default: a decade
        to both sides of a positive value. A range of positive numbers is logarithmic.
    out : path
        Folder for saved runs, settings, sweeps and code. Default "out/tune".
    port : int
        Port of the page, or the next free one. Default 8080.
    token : str, optional
        A secret of at least 16 characters. Default: a random one.

    Returns
    -------
    TuningPage
        With its `address`; `wait()` keeps a script running, `close()` ends the page.

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    ImportError
        Without the extra `view` (viser).

    Notes
    -----
    A law that can not be compiled runs in Python, for at most 1000 steps or two seconds of computing, and the page says
    so; a newer setting ends such a run. What can not be constructed again from its arguments has no controls, and a
    message names it.

    Examples
    --------
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
    >>> page = gc.tune(law.robot, law, t_end=2.0, ranges={"law.kp": (1.0, 200.0)})  # doctest: +SKIP
    >>> page.wait()  # doctest: +SKIP
    """
    from geomctrl.viewing.server import checked_token
    from geomctrl.viewing.tuning import TuningPage

    controls = Controls(plant, controller, t_end, dt, control_dt, ranges=ranges)
    if start is not None:
        controls.start = checked_start(controls.plant.robot, start)
    port, token = count("port", port, 0, 65535), checked_token(token) or secrets.token_urlsafe()
    page = TuningPage(Session(controls), port, token, path_of("out", out))
    print(f"geomctrl: tuning at {page.address}", file=sys.stderr, flush=True)
    for note in controls.notes:
        print(f"geomctrl: no controls for {note}", file=sys.stderr, flush=True)
    return page


def checked_start(robot: Robot, start: Any) -> tuple[Any, Any]:
    """(q0, v0) of a robot."""
    try:
        q0, v0 = start
    except (TypeError, ValueError):
        raise ArgumentError(f"start: expected (q0, v0), got {shown(start)}") from None
    return one_configuration(robot, "start", q0), one_state("start", v0, robot.nv)
