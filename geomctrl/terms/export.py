"""Use a robot's terms outside Python: C99 source, functions for numba code, PTX kernels and functions on NVIDIA GPUs.

`TERMS` lists the available terms. GPU support is experimental: the tests assemble the kernels and run them on a CPU
emulation, and on a GPU if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import choice, listed, optional_package, path_of
from geomctrl.compiler.arithmetic import Arithmetic, Sizes, evaluated
from geomctrl.compiler.catalogue import CATALOGUE, Function
from geomctrl.compiler.differentiable import Differentiable, differentiable
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError, NameNotFoundError
from geomctrl.files import whole
from geomctrl.kernels import configuration, frames
from geomctrl.kernels.algorithms import Algorithm, Array
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.tracing.backends import c, c_files, gpu, ptx
from geomctrl.tracing.backends.rounding import rounded, tolerances
from geomctrl.tracing.traces import Trace

from .batches import over_states
from .kinematics import Representation, representation_number

OLDEST_JAX = "0.6.2"  # with its versions up to 0.10 the tests have run
FAILURE = "where the mass matrix is not positive definite"

MEANINGS = {
    "q": "configuration, joint by joint [rad or m; a pose [R | p] row by row]",
    "v": "velocity [rad/s, m/s]",
    "a": "acceleration [rad/s^2, m/s^2]",
    "v_ref": "reference velocity [rad/s, m/s]",
    "tau": "torques or forces of the joints [N m, N]",
    "g": "torques that hold the robot against gravity [N m, N]",
    "M": "mass matrix, row by row",
    "Mdot": "its rate along v, row by row",
    "C": "Coriolis matrix, row by row, with Mdot - 2C skew",
    "Y": "regressor, row by row; columns: ten for each body, (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz)",
    "f_ext": "wrenches (moment, force) on the bodies in their frames about their origins [N m, N], body by body",
    "pi": "inertial parameters, ten for each body",
    "x": "a vector of the joints",
    "T": "pose of the frame in the world, 4 x 4, row by row",
    "J": "Jacobian of the frame, 6 x nv, row by row, angular part first",
    "dJ": "its rate, 6 x nv, row by row",
    "inverse": "inverse of the mass matrix, row by row",
    "dq": "derivative with respect to the configuration, row by row",
    "dv": "derivative with respect to the velocity, row by row",
    "da": "derivative with respect to the acceleration: the mass matrix, row by row",
    "dtau": "derivative with respect to the torques: the inverse of the mass matrix, row by row",
    "state": "kinetic energy, potential energy [J], spatial momentum about the world's origin, angular part first",
}


def to_c(
    robot: Mechanism,
    path: str | Path,
    terms: Sequence[str] = ("inverse_dynamics",),
    *,
    name: str | None = None,
    precision: str = "double",
    frame: str | None = None,
    representation: Representation = "body",
) -> tuple[Path, ...]:
    """Write terms as C99 source with the robot's numbers: NAME.h, NAME.c and NAME_test.c.

    Parameters
    ----------
    path : str or Path
        The folder to write to.
    terms : sequence of str
        Names from `geomctrl.compiler.catalogue`, for example "inverse_dynamics" or "terms"; also "pose", "jacobian" and
        "jacobian_rate" of `frame`. Default: inverse dynamics.
    name : str, optional
        Name of the files and prefix of the functions, NAME_term. Default: the robot's name.
    precision : {"double", "float"}
        Default "double".
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    tuple of Path
        The files that were written.

    Raises
    ------
    NameNotFoundError
        If there is no such term or frame.
    ArgumentError
        If `name` is not a C identifier or another argument is invalid.

    Notes
    -----
    The code depends only on libm, allocates nothing and has no loops, so every call takes the same number of
    operations. The header states sizes, units, the order of joints and bodies, and that number. NAME_test.c compares
    the results on the target with Python's, within rounding.
    """
    require_robot("robot", robot)
    path = path_of("path", path)
    representation_number(representation)
    name = c_files.prefix("name", c_files.prefix_of(robot.name, "robot") if name is None else name)
    c_files.checked_precision(precision)
    requested = _known(terms)
    if frame is not None and not any(term in FRAME_TERMS for term in requested):
        raise ArgumentError(
            f"frame: expected one of {', '.join(FRAME_TERMS)} among the terms, got {', '.join(requested)}"
        )
    rng = np.random.default_rng(0)
    q, units = random_configuration(robot, rng), []
    for word in requested:
        term = compiled_term(robot, word, frame if word in FRAME_TERMS else None, representation, "terms")
        f = _function(robot, f"{name}_{word}", term, precision)
        inputs = [rounded(q if x.name == "q" else rng.normal(size=x.size), precision) for x in f.inputs]
        expected = _expected(robot, term, inputs)
        allowed = [] if expected is None else tolerances(f.trace, inputs, expected, precision)
        units.append(c_files.exported(f, word, FAILURE, [c.Case(inputs, expected, allowed)]))
    return c_files.write(path, name, _heading(robot, precision), precision, units)


def _heading(robot: Mechanism, precision: str) -> list[str]:
    title = f"{c_files.comment(robot.name)}: {robot.nbodies} bodies, nq = {robot.nq}, nv = {robot.nv}"
    return [
        f"{title}; made by geomctrl in {precision} precision.",
        "SI units, radians; the angular part of twists and wrenches first. All functions return 1 where not said.",
        *("Velocity coordinates:", *c_files.numbered(robot.dof_names)),
        *("Bodies:", *c_files.numbered(robot.body_names)),
    ]


def _function(robot: Mechanism, name: str, term: Term, precision: str) -> c.Function:
    traced, sizes = traced_term(robot, term)
    inputs = [c.Parameter(x.name, sizes.of(x), MEANINGS[x.name]) for x in term.inputs]
    outputs = [c.Parameter(y.name, sizes.of(y), MEANINGS[y.name]) for y in term.algorithm.outputs]
    return c.Function(name, traced, inputs, outputs, precision)


def _expected(robot: Mechanism, term: Term, inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    """The results of the kernel in plain Python, to compare with; None if it has no result."""
    rows = dict(zip((x.name for x in term.inputs), inputs))
    arrays = [rows.get(x.name, np.empty(0)) for x in term.algorithm.inputs]
    arrays += [{**term.numbers, **term.arrays}[x.name] for x in term.algorithm.options]
    try:
        good, outputs = evaluated(term.algorithm, Sizes(robot._model), robot._model, arrays, Arithmetic(math))
    except ZeroDivisionError:
        return None
    return [y.astype(float) for y in outputs] if good else None


def _known(terms: Sequence[str]) -> list[str]:
    if isinstance(terms, str):
        return [terms]
    names = listed("terms", terms)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"terms: expected at least one name of a term, got {terms!r:.80}")
    return names


ON_GROUP = {"integrate": Function(configuration.moved), "difference": Function(configuration.difference)}
FRAME_TERMS = {"pose": frames.pose, "jacobian": frames.jacobian, "jacobian_rate": frames.jacobian_rate}


class Term(NamedTuple):
    """An algorithm with its options, which are integers and arrays of the robot.

    inputs: names of its inputs; given: the optional ones among them; result: type of several outputs.
    """

    algorithm: Algorithm
    numbers: dict[str, int]
    arrays: dict[str, np.ndarray]
    inputs: list[Array]
    optional: tuple[str, ...]
    result: type


def compiled_term(
    robot: Mechanism,
    term: str,
    frame: str | None = None,
    representation: Representation = "body",
    argument: str = "term",
    others: Mapping[str, Function] | None = None,
) -> Term:
    """Return the term with this name; `frame` and `representation` apply to "pose", "jacobian" and "jacobian_rate".

    argument: name of the caller's argument, for errors. others: terms that only the caller has. Raises
    NameNotFoundError for an unknown term or frame, ArgumentError for a frame that is missing or not needed.
    """
    functions = {**CATALOGUE, **(others or {})}
    if not isinstance(term, str) or (term not in functions and term not in FRAME_TERMS):
        raise NameNotFoundError(
            f"{argument}: expected one of {', '.join([*functions, *FRAME_TERMS])}, got {term!r:.40}"
        )
    form = representation_number(representation)
    if (frame is None) == (term in FRAME_TERMS):
        wanted = "the name of one" if term in FRAME_TERMS else "None"
        raise ArgumentError(f"frame: expected {wanted} for the term {term!r}, got {frame!r:.40}")
    if frame is None:
        algorithm, numbers, result, optional = functions[term]
        inputs = [x for x in algorithm.inputs if not x.optional or x.name in optional]
        return Term(algorithm, numbers, {}, inputs, optional, result)
    algorithm, place = FRAME_TERMS[term], robot.frame(frame)
    numbers = {"i": place.body} | ({} if term == "pose" else {"form": form})
    placement = {"placement": place.placement[:3].flatten()}
    return Term(algorithm, numbers, placement, list(algorithm.inputs), (), tuple)


def traced_term(robot: Mechanism, term: Term) -> tuple[Trace, Sizes]:
    """The trace of a term with the robot's numbers as constants, and the sizes of its arrays."""
    pattern = structure(robot._model)
    numbers = np.where(np.isnan(pattern), robot._model, pattern)  # terms with a zero inertia are dropped
    return trace(term.algorithm, numbers, {**term.numbers, **term.arrays}, term.optional), Sizes(pattern)


def differentiable_term(robot: Mechanism, term: Term) -> tuple[Differentiable, np.ndarray, Sizes]:
    """A term as a function with derivatives, the robot's constants and parameters, and the sizes of its arrays."""
    pattern = structure(robot._model)
    function = differentiable(term.algorithm, pattern, {**term.numbers, **term.arrays}, term.optional)
    return function, robot._model[[*function.constants, *function.parameters]], Sizes(pattern)


def to_casadi(
    robot: Mechanism,
    term: str = "inverse_dynamics",
    *,
    frame: str | None = None,
    representation: Representation = "body",
) -> Any:
    """Return a term as a casadi.Function of the robot's numbers.

    CasADi can differentiate it, map it over states, use it in optimization problems and generate C from it. This needs
    the package of `pip install 'geomctrl[casadi]'`.

    Parameters
    ----------
    term : str
        As for `to_c`; also "integrate" and "difference", as `Robot.integrate` and `Robot.difference`. Default:
        "inverse_dynamics".
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    casadi.Function
        Its inputs and outputs have the names and shapes of the term's, for example (q, v, a) -> tau.

    Raises
    ------
    NameNotFoundError
        If there is no such term or frame.
    GeomctrlError
        If casadi is missing or too old.

    Notes
    -----
    Arguments are not checked: nan propagates, and results are nan where the term has none (a mass matrix that is not
    positive definite). CasADi differentiates with respect to the numbers of q. A joint with several degrees of freedom
    has 12, which are not independent: for derivatives along its velocities, differentiate at q = integrate(q0, dv) with
    respect to dv at 0.

    Examples
    --------
    >>> import geomctrl as gc
    >>> f = gc.models.two_link().to_casadi("inverse_dynamics")
    >>> f.name_in(), f.name_out()
    (['q', 'v', 'a'], ['tau'])
    """
    return import_module("geomctrl.interop.casadi_functions").term_to_casadi(robot, term, frame, representation)


def to_jax(
    robot: Mechanism,
    term: str = "inverse_dynamics",
    *,
    frame: str | None = None,
    representation: Representation = "body",
) -> Callable[..., Any]:
    """Return a term as a JAX function that jits, vmaps and differentiates, on the CPU.

    This needs the package `jax` (pip install 'geomctrl[jax]').

    Parameters
    ----------
    term : str
        As for `to_c`; also "integrate" (q, dv) and "difference" (q0, q1), the functions of configurations that have
        the names of methods. Default "inverse_dynamics".
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    callable
        f(q, v, a, parameters=None), with the arguments of the term in the order of `f.inputs`, and arrays with any
        leading axes, the same for all. parameters (nbodies, 10), or (..., nbodies, 10) for each state its own, are
        inertial parameters instead of the robot's; they may also be the last positional argument. The result is an
        array, or a tuple of several, which is a named tuple where the robot's method returns one.

    Raises
    ------
    NameNotFoundError
        If there is no such term or frame.
    GeomctrlError
        If jax is missing or its interface for foreign functions is not supported.
    ModelError
        When f is compiled, if the code of the term or of the derivative would be too long.

    Notes
    -----
    XLA calls compiled code of geomctrl (its foreign function interface); no C compiler is needed. All robots of one
    structure share the code.

    - Derivatives of any order, forward and reverse, with respect to all arguments and `parameters`, are exact: they
      are compiled from the derivatives of the term's operations.
    - The 12 numbers of a pose in q can only change as the joint moves: derivatives are those along the group, and a
      gradient with respect to q has no component that leads out of it. For derivatives with respect to velocity
      coordinates differentiate f(integrate(q, d), ...) with respect to d at 0.
    - Computation is in float64. float32 arrays, JAX's default, are converted and the results rounded to float32;
      jax.config.update("jax_enable_x64", True) gives float64 throughout.
    - Nothing raises at run time: a state with nan, infinity or an invalid pose, or without a result because the
      mass matrix is not positive definite, gives nan. Wrong shapes and types raise ArgumentError.

    Examples
    --------
    >>> import geomctrl as gc
    >>> f = gc.models.two_link().to_jax("inverse_dynamics")  # doctest: +SKIP
    >>> jax.jit(jax.grad(lambda q, v, a: f(q, v, a)[0]))(q, v, a)  # doctest: +SKIP
    """
    require_robot("robot", robot)
    optional_package("to_jax", "jax", "jax", OLDEST_JAX)
    return import_module("geomctrl.interop.jax_functions").JaxFunction(robot, term, frame, representation)


def to_numba(
    robot: Mechanism, term: str, *, frame: str | None = None, representation: Representation = "body"
) -> Callable[..., Any]:
    """Return a term as a function that `@numba.njit` functions can call: arrays in, new arrays out.

    Parameters
    ----------
    term : str
        As for `to_c`.
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    callable
        Its arguments are float64 arrays of one state in the order of the term's inputs: q (nq,), v (nv,), f_ext
        (nbodies, 6). It raises ValueError for other shapes and if there is no result. nan and infinity are not checked
        and propagate.

    Raises
    ------
    ModelError
        If the robot is too large for compiled code of its own (`geomctrl.compiler.code`).

    Notes
    -----
    The call goes directly to the machine code, by its address. numba therefore can not cache functions that call it on
    disk (`cache=True`).

    Examples
    --------
    >>> import numba
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> inverse_dynamics = gc.models.two_link().to_numba("inverse_dynamics")
    >>> @numba.njit
    ... def law(q, v, a):
    ...     return inverse_dynamics(q, v, a) - 5.0 * v
    >>> law(np.zeros(2), np.ones(2), np.zeros(2)).shape
    (2,)
    """
    from geomctrl.compiler.numba_calls import njit

    require_robot("robot", robot)
    compiled = compiled_term(robot, term, frame, representation)
    sizes = robot._code.sizes
    core = robot._code.core(compiled.algorithm, compiled.optional, **compiled.numbers)
    if core is None:
        raise ModelError(
            f"robot {robot.name!r}: {term} is too long for code of its own, or the compiler is off"
            " (GEOMCTRL_COMPILER=off): call the method of the robot"
        )
    return njit(
        term,
        core,
        robot._model,
        {x.name: sizes.shape(x) for x in compiled.inputs},
        list(compiled.arrays.values()),
        {y.name: sizes.shape(y) for y in compiled.algorithm.outputs},
        compiled.result,
    )


TYPES = {"double": np.float64, "float": np.float32}


def to_cuda(
    robot: Mechanism,
    term: str = "inverse_dynamics",
    *,
    precision: str = "double",
    device: int = 0,
    frame: str | None = None,
    representation: Representation = "body",
) -> CudaFunction:
    """Return a term as a function of arrays on an NVIDIA GPU: f(q, v, a, stream=None, check=True), see `CudaFunction`.

    Experimental: assembled and run on a CPU emulation, not yet on a GPU. It needs the packages of
    `pip install 'geomctrl[cuda]'` and a driver (CUDA 12.1 or newer), but no CUDA toolkit.

    Parameters
    ----------
    term : str
        A name from `geomctrl.compiler.catalogue`, or "pose", "jacobian" or "jacobian_rate" of `frame`. Default:
        "inverse_dynamics".
    precision : {"double", "float"}
        Type of the arrays. Default "double".
    device : int
        Number of the GPU. Default 0.
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    CudaFunction

    Raises
    ------
    NameNotFoundError
        If there is no such term.
    GeomctrlError
        If packages, driver or GPU are missing.
    """
    require_robot("robot", robot)
    function = compiled_term(robot, term, frame, representation)
    return CudaFunction(robot, term, function, precision, device)


def to_ptx(
    robot: Mechanism,
    path: str | Path,
    term: str = "inverse_dynamics",
    *,
    capability: tuple[int, int] = (9, 0),
    precision: str = "double",
    frame: str | None = None,
    representation: Representation = "body",
) -> Path:
    """Write a term as a PTX kernel with the robot's numbers, which any CUDA driver can load. Needs no GPU.

    Experimental: assembled and run on a CPU emulation, not yet on a GPU.

    Parameters
    ----------
    path : str or Path
        The file to write.
    term : str
        As for `to_cuda`; also the name of the kernel. Default "inverse_dynamics".
    capability : tuple of int
        Compute capability of the oldest GPU that must run it, (7, 0) or newer. Default (9, 0).
    precision : {"double", "float"}
        Default "double".
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    Path
        The file that was written. Its first lines describe the arguments.

    Raises
    ------
    NameNotFoundError
        If there is no such term.
    """
    require_robot("robot", robot)
    path, pattern = path_of("path", path), structure(robot._model)
    compiled = compiled_term(robot, term, frame, representation)
    trace = _traced(compiled, precision, np.where(np.isnan(pattern), robot._model, pattern))
    sizes = Sizes(pattern)
    text = ptx.ptx(trace, capability, real=precision, name=term, libdevice=_library(trace))
    arguments = [f"const {precision} {x.name}[states][{sizes.of(x)}]" for x in compiled.inputs]
    arguments += [f"{precision} {y.name}[states][{sizes.of(y)}]" for y in compiled.algorithm.outputs]
    comments = [
        f"{' '.join(robot.name.split())}: {term}, {trace.operations} operations, {precision} precision.",
        f"{term}(int64 states, {', '.join(arguments)}, uint64 *report)",
        f"One thread per state, at most {ptx.THREADS} threads per block; SI units, radians, the arrays in C order.",
        "The report, if its address is not 0, is lowered to the number of the first state without a result.",
    ]
    with whole(path) as file:
        file.write("".join(f"// {line}\n" for line in comments).encode() + text.encode())
    return path


class CudaFunction:
    """A term on a GPU: f(q, v, a, stream=None, check=True), with the arguments of the robot's method.

    Arguments are arrays of one library (torch, cupy, jax, numba, or any other with DLPack or
    `__cuda_array_interface__`) on the GPU of the function, with its precision, in C order, with any leading axes, the
    same for all. The result has the same type; it is a tuple if the term has several outputs. No data are copied or
    pass through the host.

    Parameters
    ----------
    stream : optional
        The stream for the work. Default: the current stream of torch or cupy if the arrays belong to them, otherwise
        the default stream.
    check : bool
        True (default) waits for the result and raises, as on the CPU, for the first state that contains nan, infinity
        or an invalid pose, or has no result. False returns immediately, and such states yield nan.

    Attributes
    ----------
    registers, local_bytes : int
        Resources that one thread uses.
    threads : int
        Number of threads in a block.
    """

    def __init__(self, robot: Mechanism, name: str, term: Term, precision: str, device: int):
        self.robot, self.term, self.precision, self._found = robot, name, precision, term
        pattern = structure(robot._model)
        traced = _traced(term, precision, pattern)
        sizes, on, library = Sizes(pattern), gpu.device(device), _library(traced)

        def make(blocks: int) -> str:
            capability = tuple(on.compute_capability)
            return ptx.ptx(traced, capability, real=precision, name=name, blocks=blocks, libdevice=library)

        kernel = gpu.Kernel(on, name, make)
        self.registers, self.local_bytes, self.threads = kernel.registers, kernel.local_bytes, kernel.threads
        self.inputs = [(x.name, sizes.shape(x)) for x in term.inputs]
        numbers = robot._model[ptx.Kernel(traced, precision).numbers].astype(TYPES[precision])
        self._launcher = gpu.Launcher(kernel, numbers, self.inputs, [sizes.shape(y) for y in term.algorithm.outputs])

    def __call__(self, *arrays: Any, stream: Any = None, check: bool = True) -> Any:
        if len(arrays) != len(self.inputs):
            names = ", ".join(name for name, _ in self.inputs)
            raise ArgumentError(f"{self.term}: expected {len(self.inputs)} arrays, {names}, got {len(arrays)}")
        results, failed = self._launcher(arrays, stream, check)
        if failed >= 0:
            self._complain(arrays, failed)
        return results[0] if len(results) == 1 else tuple.__new__(self._found.result, results)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.inputs)
        return f"CudaFunction({self.robot.name}: {self.term}({names}), {self.precision}, {self.registers} registers)"

    def _complain(self, arrays: tuple[Any, ...], state: int) -> None:
        """Raise the error that the CPU function raises for this state."""
        rows: dict[str, Any] = {
            name: self._launcher.row(x, state, shape) for x, (name, shape) in zip(arrays, self.inputs)
        }
        algorithm, options = self._found.algorithm, {**self._found.numbers, **self._found.arrays}
        try:
            over_states(self.robot, algorithm, *(options[x.name] for x in algorithm.options), **rows)
        except GeomctrlError as error:
            raise type(error)(f"state {state}: {error}") from None
        raise ArgumentError(f"state {state}: {self.term} has no result in {self.precision} precision")


def _traced(term: Term, precision: str, pattern: np.ndarray) -> Trace:
    choice("precision", precision, TYPES)
    return trace(term.algorithm, pattern, {**term.numbers, **term.arrays}, term.optional, guarded=True)


def _library(trace: Trace) -> bytes:
    return gpu.libdevice() if ptx.library_functions(trace) else b""
