"""`compile`: a controller as one compiled function, from its own Python and numpy code.

    law = gc.compile(controller)      law(t, q, v, z) -> Command, law.operations, law.outputs, law.to_c(path)

Plain Python with loops of fixed length, numpy and math, `so3`, `se3` and groups, the terms of a robot and the bundled
references can be traced. A law that branches on the state runs once for each path through it, at most 256. On a path
that raises or prints it has no result, and Python makes that call. Other code raises `UntraceableError` with file and
line: most functions of scipy, random numbers, memory in attributes. Constants of the law (gains, parameters, the model)
keep the values that they had at compilation.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import is_a, number, one_state, read_only, shown
from geomctrl.compiler import code
from geomctrl.compiler.code import enabled
from geomctrl.control.contracts import Command, Controller, require_controller, started, time, wants_measurements
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.tracing.backends import entries
from geomctrl.tracing.backends.machine_code import address_of_one
from geomctrl.tracing.backends.rounding import differing
from geomctrl.tracing.untraceable import UntraceableError

from .law_in_c import write_law
from .law_trace import OF_STATE, class_name, parts_of, require_compilable_size, traced, trial_state

STATES = 8  # states of the comparison with the controller
TRIALS = 64  # attempts to find them, because a law may raise at some states


@named_arguments()
def compile(controller: Controller, robot: Robot | None = None) -> CompiledLaw:
    """Compile a controller. The result is a `Controller` with the attributes of the original.

    Parameters
    ----------
    controller : Controller
        Plain Python, numpy and math of (t, q, v, z) and of the controller's attributes.
    robot : Robot, optional
        The robot whose q and v the controller takes; default its attribute `robot`.

    Returns
    -------
    CompiledLaw
            It has been compared with the controller in Python. Its constants (gains, parameters, the robot's model)
            have the controller's current values: it contains a copy, so that later changes have no effect.

    Raises
    ------
    UntraceableError
        If the controller can not be traced (with file and line) or copied, or if its state is too large.
    ArgumentError
        If the object is no controller, or one that takes `measurements`.
    ModelError
        If the compiler is off (GEOMCTRL_COMPILER=off).

    Examples
    --------
    >>> from geomctrl import compile, controllers, models
    >>> robot = models.two_link()
    >>> law = compile(controllers.PDGravity(robot, [0.3, 0.6]))
    >>> dict(law.inputs), dict(law.outputs)
    ({'t': (), 'q': (2,), 'v': (2,)}, {'tau': (2,), 'e': (2,)})
    """
    if not enabled():
        raise ModelError("the compiler is off (GEOMCTRL_COMPILER=off): use the controller itself")
    if wants_measurements(controller):
        raise ArgumentError(
            f"controller: expected a law of t, q, v and z, got {shown(controller)}, which is called with measurements:"
            " use gc.simulate(plant, controller, ..., compiled=True), because the plant has the sensors"
        )
    require_controller(controller)
    if isinstance(controller, CompiledLaw):
        robot, controller = controller._robot if robot is None else robot, controller.controller
    robot = getattr(controller, "robot", None) if robot is None else robot
    if not is_a(robot, Robot):
        raise ArgumentError(f"robot: expected a geomctrl.Robot, the controller having none, got {shown(robot)}")
    law = CompiledLaw(copy_of(controller, robot), robot)
    law.compare()
    return law


def copy_of(controller: Controller, robot: Robot) -> Controller:
    """A deep copy of a controller, which shares its robot (robots never change) and modules."""
    attributes = getattr(controller, "__dict__", {}).values()
    shared = {id(x): x for x in (robot, *attributes) if isinstance(x, (Robot, ModuleType))}
    try:
        return copy.deepcopy(controller, shared)
    except Exception as error:
        raise UntraceableError(
            f"{class_name(controller)}: a compiled law keeps a copy of its controller, and this one can not be copied"
            f" ({type(error).__name__}: {error!s:.200})"
        ) from error


class CompiledLaw:
    """A controller's law as compiled code; see `compile`. Other attributes are those of `controller`, its Python copy.

    It is immutable: attributes can not be set, arrays among them are read-only, and copies are the object itself. A
    pickled law is compiled again when it is loaded.

    operations: scalar operations per call. inputs, outputs: {name: shape} of arguments and results, in the order of the
    exported C function: `tau`, `z_rate` and `z_next`, then signals by name. uncompiled: the `controller`, under a name
    that no other wrapper uses.
    """

    controller: Controller
    operations: int
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    _robot: Robot
    _z0: np.ndarray | None

    def __init__(self, controller: Controller, robot: Robot):
        z0 = started(controller, robot)
        z0 = None if z0 is None else np.array(z0, float)
        if z0 is not None and not 0 < z0.ndim <= 2:
            raise ArgumentError(f"controller: expected a state of one or two axes, got shape {z0.shape}")
        require_compilable_size(class_name(controller), 0 if z0 is None else z0.size)
        trace, shapes = traced(controller, robot, z0)
        if trace.operations > code.OPERATIONS:
            raise UntraceableError(
                f"{class_name(controller)}: {trace.operations} operations, at most {code.OPERATIONS} are compiled"
            )
        inputs = {"t": (), "q": (robot.nq,), "v": (robot.nv,), **({} if z0 is None else {"z": z0.shape})}
        outputs = [shape if 0 < len(shape) <= 2 else (math.prod(shape),) for shape in shapes.values()]
        constants = np.zeros(1)  # placeholder for the model array
        vars(self).update(
            controller=controller,
            operations=trace.operations,
            inputs=MappingProxyType(inputs),
            outputs=MappingProxyType(shapes),
            _robot=robot,
            _z0=z0,
            _trace=trace,
            _constants=constants,
            _call=entries.entry(address_of_one(trace), constants, list(inputs.values()), outputs),
            _command=_command_of(shapes),
        )

    @property
    def uncompiled(self) -> Controller:
        return self.controller

    def start(self, q0: ArrayLike | None = None, v0: ArrayLike | None = None) -> np.ndarray | None:
        """The initial state of the controller, for the robot's initial state (default: neutral and at rest)."""
        q0 = None if q0 is None else one_state("q0", q0, self._robot.nq)
        v0 = None if v0 is None else one_state("v0", v0, self._robot.nv)
        return started(self.controller, self._robot, q0, v0)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray | None) -> Command:
        outputs = self._call(t, q, v) if self._z0 is None else self._call(t, q, v, z)
        if outputs is not None:
            return self._command(outputs)
        if type(t) is not float:
            return self(number("t", t), q, v, z)
        return self.controller(time(t), q, v, z)  # Python's result or exception if compiled code has none

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "controller" not in vars(self):
            raise AttributeError(name)
        value = getattr(self.controller, name)
        return read_only(value) if isinstance(value, np.ndarray) else value

    def __setattr__(self, name: str, value: Any) -> None:
        raise ArgumentError(
            f"{name}: a compiled law can not be changed; set it on the controller, and compile that again"
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __copy__(self) -> CompiledLaw:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledLaw:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return compile, (self.controller, self._robot)

    def __repr__(self) -> str:
        return f"CompiledLaw({class_name(self.controller)}, {self.operations} operations)"

    def compare(self) -> None:
        """Raise UntraceableError unless compiled law and controller agree, initially and at random states."""
        with np.errstate(all="ignore"):  # the law may produce nan
            compare_law(self)

    @named_arguments()
    def to_c(self, path: str | Path, name: str = "law", *, precision: str = "double") -> tuple[Path, ...]:
        """Write the law as C99 that needs only libm: NAME.h, NAME.c and NAME_test.c, see `control.compiled.law_in_c`.

        Parameters
        ----------
        path : str or Path
            The folder.
        name : str
            Name of the files and prefix of the functions NAME_start, NAME_step and NAME_command.
        precision : {"double", "float"}
            Floating-point type of all numbers.

        Returns
        -------
        tuple of Path
            The three files. NAME_test.c compares the law with Python's results on the target.

        Raises
        ------
        ArgumentError
            If C or its libraries use the name.
        UntraceableError
            If `start(q0, v0)` can not be traced.
        """
        return write_law(self, path, name, precision)

    @named_arguments()
    def to_fmu(
        self, path: str | Path, q0: ArrayLike | None = None, v0: ArrayLike | None = None, *, name: str | None = None
    ) -> Path:
        """Write the law as an FMU for FMI 3.0 co-simulation. See `Plant.to_fmu` for what it needs and what it raises.

        Parameters
        ----------
        path, name
            As for `Plant.to_fmu`.
        q0, v0 : array_like, shape (nq,), (nv,), optional
            Start values of the inputs q and v. Default: neutral and at rest.

        Returns
        -------
        Path
            The file.

        Notes
        -----
        Inputs are q and v, outputs are tau and "signal.NAME" for each signal; z is local. A step from t to t + h
        computes tau and the signals at t from the inputs and moves z on to t + h, as `simulate` with control_dt = h
        does. Where the law has no result, the step is discarded and nothing changes.
        """
        return import_module("geomctrl.interop.fmu").law_to_fmu(self, path, q0, v0, name)

    @named_arguments()
    def to_casadi(self) -> Any:
        """The law as a casadi.Function, which CasADi differentiates and generates code from.

        This needs the package of `pip install 'geomctrl[casadi]'`.

        Returns
        -------
        casadi.Function
            Its inputs are those of `inputs`, t, q, v and z for a law with state. Its outputs are those of `outputs`:
            tau, z_rate, z_next, and "signal_NAME" for each signal. They are nan where the law has no result.

        Raises
        ------
        GeomctrlError
            If casadi is missing or too old.
        ArgumentError
            If a signal has more than two axes.

        Examples
        --------
        >>> import geomctrl as gc
        >>> law = gc.compile(gc.controllers.PDGravity(gc.models.two_link(), [0.3, 0.6]))
        >>> law.to_casadi().name_out()
        ['tau', 'signal_e']
        """
        return import_module("geomctrl.interop.casadi_functions").law_to_casadi(self)


def compare_law(law: CompiledLaw) -> None:
    """Raise UntraceableError unless a compiled law and its controller agree at `STATES` states.

    At a state where Python raises, the compiled law must have no result. Such states, and those where only Python has a
    result, are replaced by others.
    """
    rng, compared, raised, only_python = np.random.default_rng(0), 0, "", 0
    owner = f"{class_name(law.controller)}: compiled"
    for k in range(TRIALS):
        state = t, *_ = trial_state(law.controller, law._robot, law._z0, rng, k)
        results = law._call(*state[: len(law.inputs)])
        try:
            expected = parts_of(law.controller(*state))
        except Exception as error:
            raised = f"{type(error).__name__}: {error!s:.200}"
            if results is not None:
                raise UntraceableError(
                    f"{owner}, it returns a result at t = {t:g}, where Python raises {raised}"
                ) from error
            continue
        if results is None:
            only_python += 1
            continue
        compiled, compared = parts_of(law._command(results)), compared + 1
        if list(compiled) != list(expected):
            raise UntraceableError(f"{owner}, its signals differ from those in Python at t = {t:g}")
        for name, x in expected.items():
            if np.shape(x) != np.shape(compiled[name]):
                raise UntraceableError(f"{owner}, {name} has another shape than in Python at t = {t:g}")
        arguments = [np.ravel(x) for x in state if x is not None]
        output = differing(law._trace, arguments, [*expected.values()], [*compiled.values()])
        if output is not None:
            raise UntraceableError(
                f"{owner}, {[*expected][output]} differs from its value in Python at t = {t:g}: the law draws random"
                " numbers, or depends on more than t, q, v and z"
            )
        if compared == STATES:
            return
    if only_python and not compared:
        raise UntraceableError(
            f"{owner}, it returns no result at any of {TRIALS} states, and Python does at {only_python} of them: its"
            " code prints or calls other libraries there, a `while` takes too many iterations, or an integer is beyond"
            " 2^53"
        )
    if not compared:
        raise UntraceableError(
            f"{owner}, it can not be compared with Python, where it raises at all {TRIALS} states tried, {raised}"
        )


def _command_of(shapes: dict[str, tuple[int, ...]]) -> Callable[[Any], Command]:
    """Code for the Command from the entry's results, generated because a generic function takes longer than the law."""

    def part(name: str, x: str) -> str:
        shape = shapes[name]
        return f"float({x}[0])" if shape == () else f"{x}.reshape({shape})" if len(shape) > 2 else x

    parts = {name: part(name, f"x[{k}]" if len(shapes) > 1 else "x") for k, name in enumerate(shapes)}
    tau, z_rate, z_next = parts.pop("tau"), *(parts.pop(name, "None") for name in OF_STATE)
    signals = ", ".join(f"{name!r}: {x}" for name, x in parts.items())
    source = f"lambda x: new(Command, ({tau}, {z_rate}, {{{signals}}}, {z_next}))"
    return eval(source, {"new": tuple.__new__, "Command": Command})
