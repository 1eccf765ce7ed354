"""A robot's terms on NVIDIA GPUs: functions of arrays that are there already, and the PTX itself.

Experimental: the kernels are assembled for GPUs and run on a CPU stand-in by the tests, not yet on a GPU.
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
from .compiled import Term, compiled_term
from .kinematics import Representation

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
    found = compiled_term(robot, term, frame, representation)
    return CudaFunction(robot, term, found, precision, device)


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
    found = compiled_term(robot, term, frame, representation)
    made = _traced(found, precision, np.where(np.isnan(pattern), robot._model, pattern))
    sizes = Sizes(pattern)
    text = ptx.ptx(made, capability, real=precision, name=term, libdevice=_library(made))
    given = [f"const {precision} {x.name}[states][{sizes.of(x)}]" for x in found.inputs]
    given += [f"{precision} {y.name}[states][{sizes.of(y)}]" for y in found.algorithm.outputs]
    words = [
        f"{' '.join(robot.name.split())}: {term}, {made.operations} operations, {precision} precision.",
        f"{term}(int64 states, {', '.join(given)}, uint64 *report)",
        f"One thread a state, at most {ptx.THREADS} threads a block; SI units, radians, the arrays in C order.",
        "The report, if its address is not 0, is lowered to the number of the first state without a result.",
    ]
    with whole(path) as file:
        file.write("".join(f"// {line}\n" for line in words).encode() + text.encode())
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
        made, failed = self._launcher(arrays, stream, check)
        if failed >= 0:
            self._complain(arrays, failed)
        return made[0] if len(made) == 1 else tuple.__new__(self._found.result, made)

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
    return trace(term.algorithm, pattern, {**term.numbers, **term.arrays}, term.given, guarded=True)


def _library(made: Trace) -> bytes:
    return gpu.libdevice() if ptx.library_functions(made) else b""
