"""`PlantExport`: the methods of `Plant` that write it as C code and as an FMU."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from geomctrl.arguments import path_of
from geomctrl.other_names import named_arguments
from geomctrl.tracing.backends import c_files


class PlantExport:
    """Base class of `Plant`."""

    @named_arguments()
    def to_c(self, path: str | Path, name: str = "plant") -> tuple[Path, ...]:
        """Write the plant as C99 that needs only libm: NAME.h, NAME.c and NAME_test.c.

        Parameters
        ----------
        path : str or Path
            The folder.
        name : str
            Name of the files and prefix of the functions.

        Returns
        -------
        tuple of Path
            The three files. NAME_test.c compares NAME_rate with Python's results on the target.

        Raises
        ------
        ArgumentError
            If C or its libraries use the name, or the plant has changes, external forces that switch, sensors or
            actuators that act at samples.
        UntraceableError
            If a method of the plant can not be traced.

        Notes
        -----
        NAME_rate(t, q, v, x, tau, rate) is the rate of (q, v, x) under the command tau, with friction, springs, stops,
        actuators and contact. NAME_step(t, h, tau, y) is a step of MK4, as in `simulate`, from y = (q, v, x); joints
        with several degrees of freedom move on their group. Plants without a state of their own have no x, others also
        NAME_start(q, v, x).

        Examples
        --------
        >>> import tempfile
        >>> import geomctrl as gc
        >>> plant = gc.Plant(gc.models.two_link(), gc.Friction(0.1, 0.05))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print([path.name for path in plant.to_c(folder)])
        ['plant.h', 'plant.c', 'plant_test.c']
        """
        module: Any = import_module("geomctrl.control.compiled.plant_in_c")
        module.require_exportable(self)
        return module.write_plant(self, path_of("path", path), c_files.prefix("name", name))

    @named_arguments()
    def to_fmu(
        self,
        path: str | Path,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        *,
        dt: float = 1e-3,
        name: str | None = None,
    ) -> Path:
        """Write the plant as an FMU for FMI 3.0 co-simulation: C sources and a library compiled for this platform.

        This needs a C compiler and the package of `pip install 'geomctrl[fmu]'`; the FMU itself needs no Python.

        Parameters
        ----------
        path : str or Path
            The file, whose name ends with .fmu.
        q0, v0 : array_like, shape (nq,), (nv,), optional
            Initial configuration [rad, m] and velocity [rad/s, m/s], which the importer may change. Default: neutral
            and at rest.
        dt : float
            Longest step of the integrator [s]. Default 1 ms.
        name : str, optional
            Model identifier, and prefix of the C functions. Default: the name of the file.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ArgumentError
            If an argument is not valid, or the plant has changes, external forces that switch, sensors or actuators
            that act at samples.
        UntraceableError
            If a method of the plant can not be traced.
        GeomctrlError
            If the package or a C compiler is missing, or the platform is not supported.

        Notes
        -----
        The input is tau, the command, which is constant during a step; outputs are q and v; the state of actuators,
        friction and subclass is local. A step of length h consists of equal steps of MK4, not longer than dt: those of
        `simulate` with control_dt = h.

        Examples
        --------
        >>> import geomctrl as gc
        >>> plant = gc.Plant(gc.models.two_link(), gc.Friction(0.1, 0.05))
        >>> plant.to_fmu("arm.fmu", q0=[0.3, -0.5], dt=1e-3)  # doctest: +SKIP
        """
        return import_module("geomctrl.interop.fmu").plant_to_fmu(self, path, q0, v0, dt, name)
