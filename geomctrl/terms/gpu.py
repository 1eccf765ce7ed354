"""Terms on NVIDIA GPUs: PTX kernels, and functions of arrays on a GPU.

Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import choice, path_of
from geomctrl.compiler.arithmetic import Sizes
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.files import whole
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.tracing.backends import gpu, ptx
from geomctrl.tracing.traces import Trace

from .batches import over_states
from .kinematics import Representation
from .requested_terms import Term, compiled_term

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

    Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU. It needs the packages of
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

    Examples
    --------
    >>> import geomctrl as gc
    >>> f = gc.models.panda().to_cuda("inverse_dynamics")  # doctest: +SKIP
    >>> tau = f(q, v, a)  # arrays (N, 7) in memory of the GPU  # doctest: +SKIP
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

    Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.

    Parameters
    ----------
    robot : Robot
        The robot.
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

    Examples
    --------
    >>> import tempfile
    >>> import geomctrl as gc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = gc.interop.to_ptx(gc.models.two_link(), f"{folder}/arm.ptx", "mass_matrix")
    ...     print("mass_matrix" in path.read_text())
    True
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
        "If the address of the report is not 0, the report is set to the number of the first state without a result.",
    ]
    with whole(path) as file:
        file.write("".join(f"// {line}\n" for line in comments).encode() + text.encode())
    return path


class CudaFunction:
    """A term on a GPU: f(q, v, a, stream=None, check=True), with the arguments of the robot's method.

    Arguments are arrays of one library (torch, cupy, jax, numba, or any other with DLPack or
    `__cuda_array_interface__`) on the GPU of the function, with its precision, in C order, with any leading axes, the
    same for all. The result has the same type; it is a tuple if the term has several outputs. No data are copied or
    pass through the host. Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.

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
        self.robot, self.term, self.precision, self._requested = robot, name, precision, term
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
        return results[0] if len(results) == 1 else tuple.__new__(self._requested.result, results)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.inputs)
        return f"CudaFunction({self.robot.name}: {self.term}({names}), {self.precision}, {self.registers} registers)"

    def _complain(self, arrays: tuple[Any, ...], state: int) -> None:
        """Raise the error that the CPU function raises for this state."""
        rows: dict[str, Any] = {
            name: self._launcher.row(x, state, shape) for x, (name, shape) in zip(arrays, self.inputs)
        }
        algorithm, options = self._requested.algorithm, {**self._requested.numbers, **self._requested.arrays}
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
