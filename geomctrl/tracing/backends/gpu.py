"""NVIDIA GPUs through cuda-core, NVIDIA's package: kernels loaded by the driver, on arrays of any library.

cuda-core provides everything needed here in 15 MB (cupy: 137 MB): it takes arrays by DLPack or
`__cuda_array_interface__` in stream order, loads PTX, allocates in a stream and exports arrays by DLPack.

Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from geomctrl.arguments import optional_package, shown
from geomctrl.errors import ArgumentError, GeomctrlError

from .ptx import THREADS

OLDEST = "1.2"  # of cuda-core
NEEDED = "a GPU needs the packages of the extra 'cuda': pip install 'geomctrl[cuda]'"
MAX_LOCAL_BYTES = 64  # local memory per thread that is acceptable for more active threads
ALL_GOOD = 2**64 - 1  # report if every state has a result
LEGACY, PER_THREAD = 1, 2  # handles of the default streams, in DLPack too
HOST = 1  # DLPack's device type of the CPU


def core() -> Any:
    """The module cuda.core. Raises GeomctrlError if it is not installed, or too old."""
    try:
        importlib.import_module("cuda.core")
    except ImportError as error:
        raise GeomctrlError(f"{NEEDED} ({error})") from None
    return optional_package("a GPU", "cuda.core", "cuda", OLDEST)


def listed_device(number: int = 0) -> Any:
    """cuda-core's device of this number. Raises GeomctrlError without a driver or without this GPU."""
    cuda = core()
    try:
        devices = cuda.Device.get_all_devices()
    except Exception as error:  # each layer of driver loading has its own exception
        raise GeomctrlError(f"no NVIDIA driver can be used: {first_line(error)}") from None
    if not 0 <= number < len(devices):
        raise GeomctrlError(f"device: expected the number of one of {len(devices)} NVIDIA GPUs, got {number}")
    return devices[number]


def device(number: int = 0) -> Any:
    """cuda-core's device of this number, initialised. Raises GeomctrlError if it can not be used."""
    wanted = listed_device(number)
    try:
        with current(core(), wanted):
            return wanted
    except Exception as error:
        forked = multiprocessing.parent_process() is not None
        remedy = "; a process that was forked after CUDA was used can not use it: start it by 'spawn'" * forked
        raise GeomctrlError(f"GPU {number} can not be used: {first_line(error)}{remedy}") from None


def first_line(error: Exception) -> str:
    """The first line of an exception's message; the driver's have several."""
    return f"{str(error).strip().partition(chr(10))[0]:.200}"


def why_not() -> str | None:
    """The reason why no GPU can be used, as text; None if one can."""
    try:
        device()
    except GeomctrlError as error:
        return str(error)
    return None


def libdevice() -> bytes:
    """NVIDIA's bitcode of functions such as tan and exp. Raises GeomctrlError if it is not installed."""
    try:
        finder = importlib.import_module("cuda.pathfinder")
        return _read(finder.find_bitcode_lib("device"))
    except (ImportError, AttributeError, RuntimeError, OSError) as error:
        remedy = "needs NVIDIA's libdevice: pip install cuda-pathfinder nvidia-cuda-nvcc-cu12"
        raise GeomctrlError(f"{remedy} ({first_line(error)})") from None


@functools.cache
def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


@contextmanager
def current(cuda: Any, wanted: Any) -> Iterator[None]:
    """Context in which the device is current for this thread; the previous one is restored."""
    before = cuda.Device()
    wanted.set_current()
    try:
        yield
    finally:
        if before.device_id != wanted.device_id:
            before.set_current()


class Kernel:
    """A kernel loaded on a device.

    make(blocks) returns its PTX with registers limited for that many blocks of THREADS (0: no limit). The limit with
    the most active threads is chosen that moves at most `MAX_LOCAL_BYTES` to local memory. registers, local_bytes:
    per thread. threads: per block.
    """

    def __init__(self, device: Any, name: str, make: Callable[[int], str]):
        self.device, self.cuda = device, core()
        with current(self.cuda, device):
            self.kernel = self._load(name, make(0))
            registers, memory = self._sizes(self.kernel)
            for blocks in (4, 3):
                if memory > MAX_LOCAL_BYTES or registers * THREADS * blocks <= 65536:
                    break  # registers are short already, or this limit would not reduce their number
                bounded = self._load(name, make(blocks))
                if self._sizes(bounded)[1] <= MAX_LOCAL_BYTES:
                    self.kernel = bounded
                    break
            self.registers, self.local_bytes = self._sizes(self.kernel)
            self.threads = max((THREADS, THREADS // 2), key=self._at_work)

    def _load(self, name: str, ptx: str) -> Any:
        try:
            return self.cuda.ObjectCode.from_ptx(ptx.encode(), name=name).get_kernel(name)
        except Exception as error:
            needs = "its PTX 8.1 needs a driver for CUDA 12.1 or newer"
            raise GeomctrlError(f"the driver can not load the kernel {name}, {needs}: {first_line(error)}") from None

    def _sizes(self, kernel: Any) -> tuple[int, int]:
        attributes = kernel.attributes[self.device]
        return attributes.num_regs, attributes.local_size_bytes

    def _at_work(self, threads: int) -> int:
        return threads * self.kernel.occupancy.max_active_blocks_per_multiprocessor(threads, 0)

    def launch(self, stream: Any, states: int, numbers: Sequence[Any], others: Sequence[Any]) -> None:
        """Launch with one thread per state. numbers: by value; others: addresses, and numbers that follow them."""
        config = self.cuda.LaunchConfig(grid=-(-states // self.threads), block=self.threads)
        self.cuda.launch(stream, config, self.kernel, *numbers, states, *others)


class Launcher:
    """f(arrays, stream, check) -> (arrays, index of the first state without a result or -1) on a kernel.

    numbers: the kernel's arguments by value. inputs: (name, shape) of each; outputs: shapes. Arrays have the type
    `dtype`, C order and the kernel's device.
    """

    def __init__(
        self,
        kernel: Kernel,
        numbers: np.ndarray,
        inputs: Sequence[tuple[str, tuple[int, ...]]],
        outputs: Sequence[tuple[int, ...]],
    ):
        self.kernel, self.inputs, self.outputs, self.dtype = kernel, inputs, outputs, numbers.dtype
        self.numbers = numbers.tolist() if self.dtype == np.float64 else list(numbers)  # a Python float is a double
        self.cuda, self.device = kernel.cuda, kernel.device
        self.reports: list[tuple[Any, Any]] = []  # unused pairs of 8 bytes on the device and 8 on the host

    def __call__(self, arrays: Sequence[Any], stream: Any, check: bool) -> tuple[list[Any], int]:
        with current(self.cuda, self.device):
            on = stream_of(self.cuda, stream, arrays)
            views = [self._view(name, shape, x, on) for (name, shape), x in zip(self.inputs, arrays, strict=True)]
            lead = self._same_lead(views)
            states = int(np.prod(lead))
            results = [new(self.cuda, self.device, (*lead, *shape), self.dtype, on) for shape in self.outputs]
            failed = self._launched(on, states, [*(v.ptr for v in views), *(y.ptr for y in results)], check)
            return [converted_like(arrays[0], y) for y in results], failed

    def row(self, array: Any, state: int, shape: tuple[int, ...]) -> np.ndarray:
        """One state's array, on the host."""
        size = math.prod(shape)
        with current(self.cuda, self.device):
            view = self.cuda.utils.StridedMemoryView.from_any_interface(array, stream_ptr=LEGACY)
            start = view.ptr + state * size * self.dtype.itemsize
            return _fetched(self.cuda, start, size, self.dtype, view).astype(float).reshape(shape)

    def _view(self, name: str, wanted: tuple[int, ...], array: Any, stream: Any) -> Any:
        """The array if the kernel accepts it; nothing is copied, converted or moved."""
        sizes = ", ".join(map(str, ("...", *wanted)))
        kind = f"expected {self.dtype} of shape ({sizes}) in C order on GPU {self.device.device_id}"
        if getattr(array, "__dlpack_device__", lambda: (0, 0))()[0] == HOST:
            raise ArgumentError(f"{name}: {kind}, got {type(array).__name__} on the host")
        try:
            view = self.cuda.utils.StridedMemoryView.from_any_interface(array, stream_ptr=int(stream.handle))
            shape, strides = tuple(view.shape), view.strides
        except (BufferError, TypeError, RuntimeError, AttributeError, AssertionError) as error:
            raise ArgumentError(f"{name}: {kind}, got {type(array).__name__} ({error!s:.120})") from None
        if not view.is_device_accessible or view.device_id != self.device.device_id:
            raise ArgumentError(f"{name}: {kind}, got {type(array).__name__} on device {view.device_id}")
        if view.dtype != self.dtype or shape[-len(wanted) :] != wanted:
            raise ArgumentError(f"{name}: {kind}, got {view.dtype} of shape {shape}")
        if strides is not None and not _in_order(shape, tuple(strides)):
            raise ArgumentError(f"{name}: {kind}, got strides of {tuple(strides)} numbers for shape {shape}")
        return view

    def _same_lead(self, views: Sequence[Any]) -> tuple[int, ...]:
        first, *others = (tuple(v.shape)[: -len(shape)] for v, (_, shape) in zip(views, self.inputs))
        for (name, _), lead in zip(self.inputs[1:], others):
            if lead != first:
                message = (
                    f"expected the leading axes of {self.inputs[0][0]}, {first}, got {lead} (nothing is broadcast)"
                )
                raise ArgumentError(f"{name}: {message}")
        return first

    def _launched(self, stream: Any, states: int, addresses: list[int], check: bool) -> int:
        """The index of the first state without a result, or -1 (also if it is not checked)."""
        if states == 0:
            return -1
        if not check:
            self.kernel.launch(stream, states, self.numbers, [*addresses, 0])
            return -1
        try:  # no test first, because another thread may take the last one
            report = self.reports.pop()
        except IndexError:
            report = self.device.allocate(8, stream=stream), self.cuda.LegacyPinnedMemoryResource().allocate(8)
        there, here = report
        there.fill(255, stream=stream)  # ALL_GOOD
        self.kernel.launch(stream, states, self.numbers, [*addresses, int(there.handle)])
        there.copy_to(here, stream=stream)
        stream.sync()
        first_failed = ctypes.c_uint64.from_address(int(here.handle)).value
        self.reports.append(report)
        return -1 if first_failed == ALL_GOOD else first_failed


class DeviceArray:
    """An array on a GPU for any library with DLPack or `__cuda_array_interface__`; written in `stream`."""

    def __init__(self, cuda: Any, view: Any, buffer: Any, stream: Any):
        self.cuda, self.view, self.buffer, self.stream = cuda, view, buffer, stream
        self.ptr, self.shape, self.dtype = int(buffer.handle), tuple(view.shape), view.dtype

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        """DLPack's capsule. The consumer's stream (default the legacy one) waits for ours; -1: no waiting."""
        taker = LEGACY if stream is None else stream
        if taker not in (-1, int(self.stream.handle)):
            _stream(self.cuda, taker).wait(self.stream)
        return self.view.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.view.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": np.dtype(self.dtype).str,
            "data": (self.ptr, False),
            "strides": None,
            "stream": int(self.stream.handle),
        }


def new(cuda: Any, device: Any, shape: tuple[int, ...], dtype: np.dtype, stream: Any) -> DeviceArray:
    """An array on a device, allocated in the stream's order."""
    buffer = device.allocate(max(int(np.prod(shape)) * dtype.itemsize, 1), stream=stream)
    return DeviceArray(cuda, cuda.utils.StridedMemoryView.from_buffer(buffer, shape, dtype=dtype), buffer, stream)


def put(array: np.ndarray, number: int = 0) -> DeviceArray:
    """A copy of an array on GPU `number`, for users without an array library there."""
    cuda, a = core(), np.ascontiguousarray(array)
    on = cuda.Device(number)
    with current(cuda, on):
        on_device = new(cuda, on, a.shape, a.dtype, cuda.LEGACY_DEFAULT_STREAM)
        if a.size:
            pinned = cuda.LegacyPinnedMemoryResource().allocate(a.nbytes)
            ctypes.memmove(int(pinned.handle), a.ctypes.data, a.nbytes)
            cuda.Buffer.from_handle(on_device.ptr, a.nbytes, owner=on_device).copy_from(
                pinned, stream=cuda.LEGACY_DEFAULT_STREAM
            )
            cuda.LEGACY_DEFAULT_STREAM.sync()
    return on_device


def get(array: DeviceArray) -> np.ndarray:
    """A copy of an array on the host."""
    cuda = core()
    with current(cuda, cuda.Device(array.__dlpack_device__()[1])):
        size = int(np.prod(array.shape))
        return _fetched(cuda, array.ptr, size, np.dtype(array.dtype), array).reshape(array.shape)


def _fetched(cuda: Any, address: int, size: int, dtype: np.dtype, owner: Any) -> np.ndarray:
    """Numbers at an address of the current device, after all work queued before."""
    if not size:
        return np.empty(0, dtype)
    n = size * dtype.itemsize
    pinned = cuda.LegacyPinnedMemoryResource().allocate(n)
    cuda.Device().sync()
    cuda.Buffer.from_handle(address, n, owner=owner).copy_to(pinned, stream=cuda.LEGACY_DEFAULT_STREAM)
    cuda.LEGACY_DEFAULT_STREAM.sync()
    return np.frombuffer(ctypes.string_at(int(pinned.handle), n), dtype)


def converted_like(like: Any, array: DeviceArray) -> Any:
    """The array in the library of `like`; a `DeviceArray` if that library can not import it."""
    name = _library(like)
    home = sys.modules.get({"jaxlib": "jax.dlpack", "jax": "jax.dlpack"}.get(name, name))
    if home is None or not hasattr(home, "from_dlpack"):
        home = like.__array_namespace__() if hasattr(like, "__array_namespace__") else None
    return array if home is None else home.from_dlpack(array)


def stream_of(cuda: Any, stream: Any, arrays: Sequence[Any]) -> Any:
    """cuda-core's stream for a stream of any library or its number; for None the current one of the arrays' library."""
    if stream is None:
        array = next((x for x in arrays if _library(x) in ("torch", "cupy")), None)
        if array is not None:
            home = sys.modules[_library(array)].cuda
            stream = home.current_stream(array.device) if _library(array) == "torch" else home.get_current_stream()
    if stream is None:
        return cuda.LEGACY_DEFAULT_STREAM
    if hasattr(stream, "__cuda_stream__"):
        handle = stream.__cuda_stream__()[1]
    else:
        handle = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    if not isinstance(handle, int):
        raise ArgumentError(f"stream: expected one of cuda-core, torch or cupy, or its number, got {shown(stream)}")
    return stream if isinstance(stream, cuda.Stream) else _stream(cuda, handle)


def _stream(cuda: Any, handle: int) -> Any:
    if handle in (0, LEGACY):
        return cuda.LEGACY_DEFAULT_STREAM
    return cuda.PER_THREAD_DEFAULT_STREAM if handle == PER_THREAD else cuda.Stream.from_handle(handle)


def _library(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def _in_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether strides, in numbers, are those of C order; those of axes of length 1 do not matter."""
    step = 1
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n > 1 and stride != step:
            return False
        step *= n
    return True
