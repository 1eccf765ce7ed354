"""Live views in a browser: a closed loop while it is simulated, or a robot with sliders for its joints."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np

from geomctrl.arguments import count, flag, listed, number
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import joint_coordinates
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.other_names import named_arguments

from .joints import rest, span
from .scene import GHOST, Scene, all_poses
from .server import checked_token, serve, stop

RATE = 30.0  # largest number of frames per second
BROWSER_TIMEOUT = 10.0  # s to wait for a browser
MAX_CURVE_POINTS = 400  # points of a curve


@named_arguments()
class LiveView:
    """A web page on this machine that shows a closed loop while `simulate(..., progress=view)` runs it.

    The page stays until `close`, which the end of a `with` block calls, and shows one run after another. It listens on
    this machine only and refuses requests from pages of other sites.

    Parameters
    ----------
    speed : float
        Largest ratio of simulated time to real time: a faster simulation is slowed down. Infinity never waits. Default
        1.
    port : int
        Port of the page, or the next free one. Default 8080.
    frames : iterable of str, optional
        Frames whose axes are drawn. Default: the world and the end effector.
    browser : bool, optional
        Open a browser and wait until it shows the page, at most ten seconds. Default: if there is a display.
    token : str, optional
        A secret for machines with several users, for example `secrets.token_urlsafe()`: only users of the printed
        address, which contains it, see the page.

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    ImportError
        Without the extra `view` (viser).

    Examples
    --------
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
    >>> with gc.LiveView(speed=1.0) as view:  # doctest: +SKIP
    ...     run = gc.simulate(law.robot, law, [0.0, 0.0], [0.0, 0.0], t_end=5.0, dt=1e-3, progress=view)
    >>> view.close()  # doctest: +SKIP
    """

    def __init__(
        self,
        speed: float = 1.0,
        *,
        port: int = 8080,
        frames: Iterable[str] | None = None,
        browser: bool | None = None,
        token: str | None = None,
    ):
        fast = isinstance(speed, (int, float)) and not isinstance(speed, bool) and speed == np.inf
        self.speed = np.inf if fast else number("speed", speed, "a number > 0 or infinity", lambda x: x > 0.0)
        self.frames = None if frames is None else listed("frames", frames)
        port = count("port", port, 0, 65535)
        browser = has_display() if browser is None else flag("browser", browser)
        self._token = checked_token(token)
        self._server: Any = serve(port, self._token)
        self._server.on_client_connect(self._aim)
        self._scene: Scene | None = None
        self._curves: dict[str, tuple[list[tuple[float, float]], Any]] = {}
        self._text: Any = None
        print(f"geomctrl: live view at {self.address}", file=sys.stderr, flush=True)
        self._last = -np.inf
        if browser and webbrowser.open(self.address):
            self._wait(BROWSER_TIMEOUT)

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://localhost:{self._open().get_port()}" + (f"/?token={self._token}" if self._token else "")

    def __repr__(self) -> str:
        return "<LiveView, closed>" if self._server is None else f"<LiveView at {self.address}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the page; further calls do nothing."""
        if self._server is not None:
            stop(self._server)
            self._server = None

    def _wait(self, seconds: float) -> bool:
        """Wait until a browser shows the page, at most so long [s]; return whether one does."""
        end = time.monotonic() + seconds
        server = self._open()
        while not server.get_clients() and time.monotonic() < end:
            time.sleep(0.02)
        return bool(server.get_clients())

    def _open(self) -> Any:
        if self._server is None:
            raise ArgumentError("view: is closed")
        return self._server

    # --- called by simulations -----------------------------------------------------------------------------------

    def _begin(self, robot: Mechanism, q: np.ndarray, ghost: bool) -> None:
        """Show another robot, or the same one again, at q (nq,)."""
        server, self._curves, self._text = self._open(), {}, None
        same = self._scene is not None and self._scene.robot is robot
        server.scene.reset()
        server.gui.reset()
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._scene = Scene(server, robot, self.frames, GHOST if ghost else None)
        T = all_poses(robot, q[None])
        self._scene.surroundings(T)
        self._scene.show(T[0])
        for client in [] if same else server.get_clients().values():  # for the same robot the user's view stays
            self._aim(client)
        self._text = server.gui.add_markdown("")
        self._started, self._last = time.monotonic(), -np.inf

    def _aim(self, client: Any) -> None:
        if self._scene is not None:
            self._scene.aim(client)

    def _steps(self, dt: float) -> int | None:
        """Number of steps of dt [s] between frames; None if it does not matter."""
        return None if not np.isfinite(self.speed) else max(1, int(self.speed / RATE / dt))

    def _due(self, t: float, end: bool) -> bool:
        """Wait until time t should be shown; return whether enough time has passed since the previous frame."""
        ahead = t / self.speed - (time.monotonic() - self._started)
        if ahead > 0.0:
            time.sleep(ahead)
        now = time.monotonic()
        if now - self._last < 0.8 / RATE and not end:
            return False
        self._last = now
        return True

    def _show(
        self, t: float, q: np.ndarray, desired: np.ndarray | None, curves: Mapping[str, float], notes: Iterable[str]
    ) -> None:
        """Show a robot at q, the desired robot at `desired` (nq,), the next points of the curves, and lines of text."""
        scene = self._scene
        assert scene is not None
        T = all_poses(scene.robot, np.stack([q, q if desired is None else desired]))
        with self._server.atomic():
            scene.show(T[0], T[1])
            self._text.content = "\n\n".join([f"**t = {t:.2f} s**", *notes])
            for name, y in curves.items():
                self._add(name, t, y)

    def _add(self, name: str, t: float, y: float) -> None:
        """Add a point to a curve; if there are twice as many as allowed, every second one is removed."""
        points, plot = self._curves.setdefault(name, ([], None))
        points.append((t, y))
        if len(points) >= 2 * MAX_CURVE_POINTS:
            points[:] = [*points[:-1:2], points[-1]]
        if len(points) < 2:
            return
        data = tuple(np.array(points).T.copy())
        if plot is None:
            look = ({"label": "t"}, {"label": name, "stroke": "#0072B2", "width": 2})
            plot = self._server.gui.add_uplot(
                data,
                look,
                title=f"{name} over t [s]",
                height=150,
                scales={"x": {"time": False}},
                legend={"show": False},
                padding=(12, 12, 0, 0),
            )
            self._curves[name] = points, plot
        else:
            plot.data = data


def show_robot(robot: Mechanism, *, port: int = 8080, frames: Iterable[str] | None = None) -> Any:
    """Return viser's server of a page with sliders for the joints of a robot; its method `stop` ends it."""
    server = serve(port)
    try:
        scene = Scene(server, robot, frames)
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        q = rest(robot)
        lock = threading.Lock()

        def redraw() -> None:
            with lock, server.atomic():
                scene.show(all_poses(robot, q[None])[0])

        T = all_poses(robot, q[None])
        scene.surroundings(T)
        scene.aim_first()
        server.on_client_connect(scene.aim)
        scene.show(T[0])
        for joint, q_at, v_at in joint_coordinates(robot):
            if joint.dof != 1:
                continue
            low, high = span(*(float(x[v_at.start]) for x in robot.limits[:2]), turns=bool(joint.is_rotational.all()))
            slider = server.gui.add_slider(
                str(joint.name), min=low, max=high, step=(high - low) / 500 or 1e-3,
                initial_value=float(np.clip(q[q_at.start], low, high)),
                hint="rad" if joint.is_rotational.all() else "m",
            )  # fmt: skip

            def moved(event: Any, k: int = q_at.start) -> None:
                q[k] = event.target.value
                redraw()

            slider.on_update(moved)
    except BaseException:
        stop(server)
        raise
    return server


def has_display() -> bool:
    """Whether the user of this process would see a browser."""
    if "ipykernel" in sys.modules or "pytest" in sys.modules or os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or any(os.environ.get(x) for x in ("DISPLAY", "WAYLAND_DISPLAY"))


def opened(address: str) -> bool:
    """Open a browser if there is a display; return whether that succeeded."""
    with contextlib.suppress(Exception):  # desktop browsers raise different exceptions
        return has_display() and webbrowser.open(address)
    return False
