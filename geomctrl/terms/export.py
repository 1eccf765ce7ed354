"""A robot's terms outside Python: C99 source, a user's own numba functions, PTX and functions on NVIDIA GPUs.

`TERMS` has those that code can be made for, by name. GPUs are experimental: the tests assemble the kernels and run them
on a stand-in, and on a GPU where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import choice, listed, path_of
from geomctrl.compiler.arithmetic import Arithmetic, Sizes, evaluated
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError, NameNotFoundError
from geomctrl.files import whole
from geomctrl.kernels import frames
from geomctrl.kernels.algorithms import Algorithm, Array
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.tracing.backends import c, c_files, gpu, ptx
from geomctrl.tracing.backends.rounding import rounded, tolerances
from geomctrl.tracing.traces import Trace

from .batches import over_states
from .kinematics import Representation, representation_number

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
    "Y": "regressor, row by row; columns: ten a body, (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz)",
    "f_ext": "wrenches (moment, force) on the bodies in their frames about their origins [N m, N], body by body",
    "pi": "inertial parameters, ten a body",
    "x": "a vector of the joints",
    "T": "pose of the frame in the world, 4 x 4, row by row",
    "J": "Jacobian of the frame, 6 x nv, row by row, angular part first",
    "dJ": "its rate, 6 x nv, row by row",
    "inverse": "inverse of the mass matrix, row by row",
    "dq": "derivative by the configuration, row by row",
    "dv": "derivative by the velocity, row by row",
    "da": "derivative by the acceleration: the mass matrix, row by row",
    "dtau": "derivative by the torques: the inverse of the mass matrix, row by row",
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
    """Write NAME.h, NAME.c and NAME_test.c into the folder `path`: C99 with the robot's numbers in it.

    The code depends on nothing but libm; it allocates nothing and has no loops. Functions are named NAME_term.

    terms: names of `geomctrl.compiler.catalogue`, "inverse_dynamics" or "terms" for example; also "pose", "jacobian"
    and "jacobian_rate" of the `frame`, in that `representation`. name: of the files and the functions' prefix, default
    the robot's. precision: "double" or "float". The header says sizes, units, the
    order of joints and bodies, and how many operations a call takes; every call takes as many. NAME_test.c
    compares with Python on the target, each number to what rounding may make of it. Returns the paths.

    Raises NameNotFoundError for an unknown term and ArgumentError for what can not be a name in C.
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
    pattern = structure(robot._model)
    numbers = np.where(np.isnan(pattern), robot._model, pattern)  # all known: a zero inertia costs nothing either
    sizes = Sizes(pattern)
    inputs = [c.Parameter(x.name, sizes.of(x), MEANINGS[x.name]) for x in term.inputs]
    outputs = [c.Parameter(y.name, sizes.of(y), MEANINGS[y.name]) for y in term.algorithm.outputs]
    traced = trace(term.algorithm, numbers, {**term.numbers, **term.arrays}, term.optional)
    return c.Function(name, traced, inputs, outputs, precision)


def _expected(robot: Mechanism, term: Term, inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    """What the kernel itself computes, in plain Python; None where there is no result."""
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


FRAME_TERMS = {"pose": frames.pose, "jacobian": frames.jacobian, "jacobian_rate": frames.jacobian_rate}


class Term(NamedTuple):
    """An algorithm with its options: whole numbers, and arrays that are the robot's own. inputs: those that there are;
    given: the optional ones among them. result: what several outputs come as."""

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
) -> Term:
    """The term of that name; `frame` and `representation` for "pose", "jacobian" and "jacobian_rate".

    argument: what the caller's callers know the name as. Raises NameNotFoundError for an unknown term or frame,
    ArgumentError for a frame that is missing or not wanted.
    """
    if not isinstance(term, str) or (term not in CATALOGUE and term not in FRAME_TERMS):
        raise NameNotFoundError(
            f"{argument}: expected one of {', '.join([*CATALOGUE, *FRAME_TERMS])}, got {term!r:.40}"
        )
    form = representation_number(representation)
    if (frame is None) == (term in FRAME_TERMS):
        wanted = "the name of one" if term in FRAME_TERMS else "None"
        raise ArgumentError(f"frame: expected {wanted} for the term {term!r}, got {frame!r:.40}")
    if frame is None:
        algorithm, numbers, result, optional = CATALOGUE[term]
        inputs = [x for x in algorithm.inputs if not x.optional or x.name in optional]
        return Term(algorithm, numbers, {}, inputs, optional, result)
    algorithm, place = FRAME_TERMS[term], robot.frame(frame)
    numbers = {"i": place.body} | ({} if term == "pose" else {"form": form})
    placement = {"placement": place.placement[:3].flatten()}
    return Term(algorithm, numbers, placement, list(algorithm.inputs), (), tuple)


def to_numba(
    robot: Mechanism, term: str, *, frame: str | None = None, representation: Representation = "body"
) -> Callable[..., Any]:
    """A term as a function that a user's own `@numba.njit` functions can call: arrays in, new arrays out.

        inverse_dynamics = robot.to_numba("inverse_dynamics")

        @numba.njit
        def law(q, v, a): return inverse_dynamics(q, v, a) - 5.0 * v

    The call goes straight to the machine code. Arguments are float64 arrays of one state, in the order of the term's
    inputs: a (nv,), q (nq,), f_ext (nbodies, 6). The function raises ValueError for other shapes and where there is no
    result; nan and infinity in the arguments are not looked for, and come out again.

    term: as for `to_c`; "pose", "jacobian" and "jacobian_rate" are those of `frame`. Functions that call it can not be
    cached on disk by numba (`cache=True`), since it is an address. Raises ModelError where the robot is too large for
    code of its own (`geomctrl.compiler.code`).
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
    """A term as a function of arrays on an NVIDIA GPU: f(q, v, a, stream=None, check=True). See `CudaFunction`.

    Experimental: assembled and run on a CPU stand-in, not yet on a GPU.

    term: a name of `geomctrl.compiler.catalogue`, or "pose", "jacobian" or "jacobian_rate" of the `frame`. precision:
    "double" or "float", that of the arrays. device: the GPU's number. Takes what `pip install 'geomctrl[cuda]'`
    installs and a driver (CUDA 12.1 or newer), no toolkit.

    Raises NameNotFoundError for an unknown term, and GeomctrlError where packages, driver or GPU are missing.
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
    """Write a term as PTX with the robot's numbers in it: a kernel that any CUDA driver loads. Needs no GPU.

    Experimental: assembled and run on a CPU stand-in, not yet on a GPU.

    term: as for `to_cuda`, and the kernel's name. capability: of the oldest GPU that is to run it,
    (7, 0) or newer. precision: "double" or "float". The file's first lines say what the arguments are. Returns the
    path.

    Raises NameNotFoundError for an unknown term.
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
        f"One thread a state, at most {ptx.THREADS} threads a block; SI units, radians, the arrays in C order.",
        "The report, if its address is not 0, is lowered to the number of the first state without a result.",
    ]
    with whole(path) as file:
        file.write("".join(f"// {line}\n" for line in comments).encode() + text.encode())
    return path


class CudaFunction:
    """A term on a GPU: f(q, v, a, stream=None, check=True), with the arguments of the term's CPU function.

    Arguments are arrays of one library (torch, cupy, jax, numba, ... : whatever has DLPack or
    `__cuda_array_interface__`) on the function's GPU, of its precision, in C order, with any leading axes, the same for
    all. So is the result, a tuple where the term has several outputs; nothing is copied and nothing passes through the
    host.

    stream: where the work is queued; default: the current stream of torch or cupy where arrays are theirs, else the
    default stream. check: wait for the result and raise, as on the CPU, for the first state with nan or infinity in it,
    with a pose that is none or without a result. With check=False the call returns at once and the results of such
    states are nan.

    registers, local_bytes: what a thread has of both; threads: how many a block has.
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
        """Raise what the CPU's function says of a state: it finds the words."""
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
