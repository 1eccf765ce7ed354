"""`Run`: the result of a simulation."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, instance, is_a, listed, number, path_of, shown
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import difference
from geomctrl.other_names import ON_RUN, missing_attribute, named_arguments
from geomctrl.robot import Robot
from geomctrl.tables import html_table

from .external_forces import ExternalForce, external_forces
from .monitors import UNRESOLVED, VIOLATED
from .monitors.monitor import MonitorResult
from .plant import Plant
from .run_files import read_arguments, save_run
from .samples import ComparisonResult, Samples


class Run(Samples):
    """The result of a simulation: the stored samples of a closed loop and the results of its monitors.

    Attributes
    ----------
    t, q, v : arrays (n,), (n, nq), (n, nv)
        Times [s] and true states.
    tau, applied : arrays (n, inputs), (n, nv)
        Commands of the controller, and the joint torques [N m, N] that the actuators produced from them.
    z, x : array (n, ...), (n, nx) or None
        States of the controller and of the plant (actuators, friction and a subclass's own).
    desired : Desired or None
        The controller's reference, with arrays q (n, nq), v (n, nv), a (n, nv).
    signals, measured : dict of arrays (n, ...)
        Signals that the controller recorded, with "lyapunov" and "lyapunov_rate" for a controller that has a Lyapunov
        function; outputs of the plant's sensors.
    monitors : dict of MonitorResult
        Results of the monitors by name.
    reason, success : str, bool
        Why the run ended, and whether it reached `t_end`.
    steps, wall_time : int, float
        Number of steps, and computing time [s].
    plant, controller : Plant or None, Controller or None
        The simulated objects; None in a loaded run.
    compared : ComparisonResult or None
        Comparison of compiled code with Python; None for a run in Python.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.5, dt=1e-3)
    >>> run.q.shape, run.success, run.monitors["energy"].verdict
    ((501, 2), True, 'held')
    >>> print(run.summary().partition(";")[0])
    reached t = 0.5 s
    >>> bool(np.allclose(run.tracking_error()[-1], run.q[-1] - [0.5, 0.2])), run.tracking_rms(after=0.4).shape
    (True, (2,))
    >>> run.external_forces(), run.animate()  # no external forces; a notebook shows the page
    ([], <...Page object at ...>)
    >>> table = run.to_dataframe()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = run.save(f"{folder}/run.npz")
    ...     same = gc.Run.load(path, law.robot)
    ...     files = run.plot(folder), run.save_html(f"{folder}/run.html"), run.to_mcap(f"{folder}/run.mcap")
    >>> bool((same.q == run.q).all())
    True
    """

    monitors: dict[str, MonitorResult]
    reason: str
    success: bool
    steps: int
    wall_time: float
    plant: Any
    controller: Any
    compared: ComparisonResult | None

    def __init__(
        self,
        samples: Samples,
        monitors: dict[str, MonitorResult],
        reason: str,
        success: bool,
        steps: int,
        wall_time: float,
        plant: Any = None,
        controller: Any = None,
        compared: ComparisonResult | None = None,
    ):
        vars(self).update({x.name: getattr(samples, x.name) for x in fields(Samples)})
        vars(self).update(monitors=monitors, reason=reason, success=success, steps=steps, wall_time=wall_time)
        vars(self).update(plant=plant, controller=controller, compared=compared)

    def _failed(self, reason: str) -> Run:
        """A copy of this run that failed for the given reason."""
        run = copy.copy(self)
        vars(run).update(reason=reason, success=False)
        return run

    def __repr__(self):
        """Controller, robot, number of samples, and monitors whose properties are violated or unresolved."""
        subject = f" of {type(self.controller).__name__} on {self.plant.robot.name}" if self.plant is not None else ""
        named = {x: [name for name, m in self.monitors.items() if m.verdict == x] for x in (VIOLATED, UNRESOLVED)}
        verdict_texts = "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in named.items() if names)
        held = f"{_many(len(self.monitors), 'monitor')} held" if self.monitors else "no monitors"
        held = held if len(self.t) else "nothing measured"
        return f"<Run{subject}: {_many(len(self.t), 'sample')}, {self.reason}; {verdict_texts or held}>"

    @property
    def ok(self) -> bool | None:
        """True if the run reached its end and all monitored properties held, False if it did not or a violation is
        confirmed, None if no violation is confirmed but a monitor is unresolved.
        """
        results = [m.ok for m in self.monitors.values()]
        if not self.success or False in results:
            return False
        return None if None in results else True

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds per second of computing time."""
        return float(self.t[-1]) / self.wall_time if len(self.t) and self.wall_time > 0.0 else 0.0

    def tracking_error(self) -> np.ndarray | None:
        """The error log(q_d^-1 q) at the stored times: q - q_d on joints with one degree of freedom.

        Returns
        -------
        ndarray, shape (samples, nv), or None
            [rad, m]; None without a reference.

        Raises
        ------
        ArgumentError
            If a run that was loaded without a plant has joints with several degrees of freedom.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> np.allclose(run.tracking_error(), run.q - [0.5, 0.2])
        True
        """
        if self.desired is None:
            return None
        if self.plant is not None:
            return difference(self.plant.robot, self.desired.q, self.q)
        if self.q.shape[1] != self.v.shape[1]:
            raise ArgumentError("run: was loaded without a plant, which tracking errors need: use load(path, plant)")
        return self.q - self.desired.q

    def tracking_rms(self, after: float = 0.0) -> np.ndarray | None:
        """Root mean square of the tracking error.

        Parameters
        ----------
        after : float
            Time [s] from which samples count. Default: 0.

        Returns
        -------
        ndarray, shape (nv,), or None
            [rad, m]; None without a reference.

        Raises
        ------
        ArgumentError
            If no sample is later than `after`, or as for `tracking_error`.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> run.tracking_rms(after=0.05).shape
        (2,)
        """
        e, after = self.tracking_error(), number("after", after)
        if e is None:
            return None
        if not (self.t >= after).any():
            raise ArgumentError(f"after: expected a time before the run's last, {self.t[-1]:g} s, got {after!r}")
        return np.sqrt((e[self.t >= after] ** 2).mean(axis=0))

    def summary(self) -> str:
        """Describe the run: why it ended, how well it tracked, and whether each monitored property held.

        Returns
        -------
        str

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> print(run.summary().splitlines()[-1])
          group: |R^T R - 1|: worst 0.00e+00 at t = 0 s, limit 1e-09: held
        """
        lines = [
            f"{self.reason}; {self.steps} steps in {self.wall_time:.2f} s, {self.real_time_factor:.1f} x real time"
        ]
        if self.compared is not None:
            lines.append(f"compiled; {self.compared}")
        lines += self._tracking()
        lines += [f"  {m}" for m in self.monitors.values()]
        return "\n".join(lines)

    def _tracking(self) -> list[str]:
        """The line about tracking; empty without a reference that can be compared."""
        if self.desired is None or not len(self.t) or (self.plant is None and self.q.shape[1] != self.v.shape[1]):
            return []
        rms = self.tracking_rms()
        names = [""] * self.v.shape[1] if self.plant is None else [f"{n} " for n in self.plant.robot.dof_names]
        return ["tracking RMS [rad or m]: " + ", ".join(f"{n}{x:.3g}" for n, x in zip(names, rms))]  # pyright: ignore[reportArgumentType]

    def _repr_html_(self) -> str:
        """Table for notebooks: why the run ended, and one row per monitor."""
        heading = ". ".join([f"Run of {_many(len(self.t), 'sample')}: {self.reason}", *self._tracking()])
        rows = [
            (m.name, m.description, f"{m.worst:.2e}", f"{m.t_worst:.4g}", f"{m.limit:.0e}", m.verdict, m.explanation)
            for m in self.monitors.values()
        ]
        return html_table(heading, ["monitor", "what", "worst", "at t [s]", "limit", "", ""], rows)

    def plot(self, path: str | os.PathLike | None = None) -> Any:
        """Plot tracking, torques, Lyapunov function, estimates and monitors.

        Parameters
        ----------
        path : path, optional
            Folder for PNG files, one for each subject. Default: no files.

        Returns
        -------
        matplotlib.figure.Figure, or list of Path
            Without `path` an overview; with it the files.

        Raises
        ------
        ArgumentError
            If `path` is no path.
        WriteError
            If a file can not be written.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> figure = run.plot()
        >>> files = run.plot("pictures")
        """
        from geomctrl.viewing.plots import plot_run, run_overview

        return run_overview(self) if path is None else plot_run(self, path_of("path", path))

    def save_html(
        self, path: str | os.PathLike, title: str | None = None, *, frames: Iterable[str] | None = None
    ) -> Path:
        """Write the run as one interactive HTML file; a failure leaves no partial file.

        The page shows the robot in three dimensions, its desired motion, the path of its end effector, arrows of
        external forces, and plots of errors, torques, V and monitors, all under one time slider. It needs no network.

        Parameters
        ----------
        path : path
            The file to write.
        title : str, optional
            Title of the page.
        frames : iterable of str, optional
            Names of frames whose axes are drawn; default the world and the end effector.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ArgumentError
            For a run without its plant or with fewer than two samples.
        NameNotFoundError
            If the robot has no frame of such a name.
        ImportError
            Without the extra `view` (viser).

        Notes
        -----
        A robot read from a URDF is drawn with the meshes of that file; a warning lists missing mesh files. Other robots
        are drawn with capsules and ellipsoids computed from the kinematic tree.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> path = run.save_html("run.html")
        """
        from geomctrl.viewing.animation import save_html

        return save_html(self, path_of("path", path), self._title(title), _names("frames", frames))

    def animate(self, title: str | None = None, *, frames: Iterable[str] | None = None) -> Any:
        """Return the page of `save_html` for display in a notebook.

        Parameters
        ----------
        title, frames
            As for `save_html`.

        Returns
        -------
        object
            A notebook displays it; its method `open()` shows it in a browser.

        Raises
        ------
        ArgumentError, NameNotFoundError, ImportError
            As for `save_html`.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> page = run.animate()
        >>> page.open()  # doctest: +SKIP
        """
        from geomctrl.viewing.animation import Page, page

        return Page(page(self, self._title(title), _names("frames", frames)))

    def external_forces(self, at: ArrayLike | None = None) -> list[ExternalForce]:
        """External forces at stored samples: one entry per contact, wrench and body that a function pushes.

        Parameters
        ----------
        at : sequence of int, optional
            Indices of samples, at least one; default all.

        Returns
        -------
        list of ExternalForce
            Empty without external forces, and for a run without its plant.

        Raises
        ------
        ArgumentError
            If `at` is empty or has indices of no sample.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> arm = gc.models.two_link()
        >>> plant = gc.Plant(arm, f_ext=gc.Wrench("tip", [0, 0, 0, 0, 0, 5.0]))  # 5 N along z of the tip
        >>> law = gc.controllers.PDGravity(arm, [0.5, 0.2])
        >>> run = gc.simulate(plant, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> len(run.external_forces())
        1
        """
        numbers = range(len(self.t)) if at is None else [count("at", k, 0, len(self.t) - 1) for k in listed("at", at)]
        if at is not None and not numbers:
            raise ArgumentError("at: expected indices of samples, at least one, got none")
        at = np.array(numbers, int)
        return [] if self.plant is None else external_forces(self.plant, self.t[at], self.q[at], self.v[at])

    def _title(self, title: str | None) -> str:
        if title is not None:
            return instance("title", title, str, "a line of text")
        name = "a run" if self.plant is None else self.plant.robot.name
        return name if self.controller is None else f"{name}, {type(self.controller).__name__}"

    if not TYPE_CHECKING:  # type checkers report unknown names themselves

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(missing_attribute("Run", name, ON_RUN, dir(type(self))))

    def save(self, path: str | os.PathLike) -> Path:
        """Write everything except the plant and the controller to an .npz file.

        Parameters
        ----------
        path : path
            Its name ends in .npz. A failure leaves no partial file.

        Returns
        -------
        Path
            The file, which `Run.load(path)` and `numpy.load(path)["q"]` read.

        Raises
        ------
        ArgumentError
            If the file's name does not end in .npz.
        WriteError
            If writing fails; it is an OSError, and the message has the file name.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> path = run.save("run.npz")
        >>> np.array_equal(gc.Run.load(path, law.robot).q, run.q)
        True
        """
        return save_run(self, path)

    @named_arguments()
    def to_xarray(self) -> Any:
        """The run as an xarray.Dataset: all arrays along the time "t", with names of joints and results of monitors.

        This needs the packages of `pip install 'geomctrl[tables]'`.

        Returns
        -------
        xarray.Dataset
            Variables q, v, tau, applied, z, x, q_desired, v_desired, a_desired, and "signal_NAME", "measured_NAME" and
            "monitor_NAME", as far as the run has them, in SI units. The dimensions "coordinate", "dof" and "input" have
            the names of the robot's joints. Monitors have the attributes description, limit and verdict.

        Raises
        ------
        GeomctrlError
            If xarray is missing or too old.

        Examples
        --------
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, [0.0, 0.0], [0.0, 0.0], t_end=0.5, dt=1e-3)
        >>> position = run.to_xarray().q.sel(coordinate="joint1")
        >>> bool(position.sel(t=0.2, method="nearest") == run.q[200, 0])
        True
        """
        return import_module("geomctrl.interop.run_tables").to_xarray(self)

    @named_arguments()
    def to_dataframe(self) -> Any:
        """The run as a pandas.DataFrame with the time as index; columns as in "q.joint1", "signal_e.0".

        This needs the packages of `pip install 'geomctrl[tables]'`.

        Returns
        -------
        pandas.DataFrame
            The variables of `to_xarray`, one column for each number.

        Raises
        ------
        GeomctrlError
            If xarray or pandas are missing or too old.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> table = run.to_dataframe()
        >>> np.array_equal(table["q.joint1"], run.q[:, 0])
        True
        """
        return import_module("geomctrl.interop.run_tables").to_dataframe(self)

    @named_arguments()
    def to_mcap(self, path: str | Path) -> Path:
        """Write the run as an MCAP file of ROS 2 messages, which Foxglove and Rerun show.

        This needs the packages of `pip install 'geomctrl[mcap]'`.

        Parameters
        ----------
        path : str or Path
            The file, whose name ends with .mcap.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ArgumentError
            If the path is invalid, or the run was loaded without a plant.
        GeomctrlError
            If a package is missing or too old.

        Notes
        -----
        Topics, with a message for each stored sample: `/joint_states` (q, v and applied torque of joints with one
        degree of freedom), `/command` (tau), `/reference/joint_states`, `/tf` (bodies and frames in the world),
        `/end_effector` and `/reference/end_effector` (poses of the last frame), `/signals/NAME` (V is `lyapunov`) and
        `/monitors/NAME`. The metadata have the verdicts. `identification.Dataset.read` reads the joint states.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> path = run.to_mcap("run.mcap")
        """
        return import_module("geomctrl.interop.mcap_file").to_mcap(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike, plant: Plant | Robot | None = None) -> Run:
        """Read a run that `save` wrote.

        Parameters
        ----------
        path : path
            The .npz file.
        plant : Plant or Robot, optional
            The plant of the run. Plots need it, and so do tracking errors on joints with several degrees of freedom.

        Returns
        -------
        Run
            Its `plant` is the argument, and its `controller` is None.

        Raises
        ------
        ArgumentError
            If the file is damaged or no saved run, or if the plant has another robot.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
        >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3)
        >>> same = gc.Run.load(run.save("run.npz"), law.robot)
        >>> np.array_equal(same.q, run.q)
        True
        """
        plant = Plant(plant) if is_a(plant, Robot) else plant
        if not (plant is None or is_a(plant, Plant)):
            raise ArgumentError(f"plant: expected a geomctrl.Plant, a Robot or None, got {shown(plant)}")
        return cls(*read_arguments(path, plant))


def _many(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _names(name: str, x: Iterable[str] | None) -> list[str] | None:
    if x is None:
        return None
    return [instance(name, item, str, "names of frames") for item in listed(name, x)]
