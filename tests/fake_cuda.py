"""A stand-in for the module cuda.core: the GPU's memory is this machine's, kernels run by `kernel_on_host`.

It does what the real one, version 1.2, promises in its documentation, and records all calls in `log`. Call number
`failing` of the driver and all later ones fail if `lost`, else that call alone.
"""

import ctypes
import functools
import re
import time
import weakref
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from kernel_on_host import HostKernel

from geomctrl.tracing.backends import gpu, host


class Stream:
    def __init__(self, cuda, handle):
        self.cuda, self.handle = cuda, handle

    def __cuda_stream__(self):
        return 0, self.handle

    def sync(self):
        self.cuda.call("sync", self.handle)

    def record(self, event=None, options=None):
        self.cuda.call("record", self.handle)
        event = event or Event(options or EventOptions())
        event.milliseconds = 1e3 * time.perf_counter()  # all work of the stand-in is done when it is submitted
        return event

    def wait(self, other):
        self.cuda.log.append(("wait", self.handle, other.handle))


@dataclass
class EventOptions:
    timing_enabled: bool = False
    blocking_sync: bool = False
    ipc_enabled: bool = False


class Event:
    """Milliseconds between two events are their difference, if both are timed and have been reached."""

    def __init__(self, options):
        self.is_timing_enabled, self.milliseconds = options.timing_enabled, None

    def sync(self):
        assert self.milliseconds is not None, "the event is not recorded"

    def __sub__(self, other):
        if not (self.is_timing_enabled and other.is_timing_enabled):
            raise RuntimeError("both Events must be created with timing enabled in order to subtract them")
        return self.milliseconds - other.milliseconds


class Buffer:
    def __init__(self, address, size, owner):
        self.handle, self.size, self.owner = address, size, owner

    @classmethod
    def from_handle(cls, ptr, size, owner=None):
        return cls(ptr, size, owner)

    def fill(self, value, *, stream):
        stream.cuda.call("fill")
        ctypes.memset(self.handle, value, self.size)

    def copy_to(self, other, *, stream):
        stream.cuda.call("copy")
        assert other.size == self.size, "buffer sizes mismatch"
        ctypes.memmove(other.handle, self.handle, self.size)

    def copy_from(self, other, *, stream):
        stream.cuda.call("copy")
        assert other.size == self.size, "buffer sizes mismatch"
        ctypes.memmove(self.handle, other.handle, self.size)


class Device:
    name = "stand-in for an NVIDIA GPU on this machine's CPU"
    properties = SimpleNamespace(  # kHz, bits; of an H200
        clock_rate=1_980_000, multiprocessor_count=132, memory_clock_rate=3_201_000, global_memory_bus_width=6144
    )

    def __init__(self, cuda, number, capability=(9, 0)):
        self.cuda, self.device_id, self.compute_capability = cuda, number, capability
        self.pci_bus_id = f"0000:{number + 1:02x}:00.0"

    def create_stream(self, obj=None, options=None):
        assert self.cuda.current == self.device_id, "a stream is created on another device"
        self.cuda.streams += 1
        return self.cuda.Stream.from_handle(1000 + self.cuda.streams)

    def set_current(self):
        self.cuda.call("set_current", self.device_id)
        self.cuda.current = self.device_id

    def allocate(self, size, *, stream):
        assert self.cuda.current == self.device_id, "memory is allocated on another device"
        self.cuda.call("allocate", stream.handle)
        return self.cuda.allocated(size)

    def sync(self):
        self.cuda.call("sync", "device")


class View:
    """StridedMemoryView: uses `__dlpack__`, otherwise `__cuda_array_interface__`; strides count numbers."""

    def __init__(self, cuda, ptr, shape, dtype, strides, number, owner):
        self.cuda, self.ptr, self.shape, self.dtype, self.strides = cuda, ptr, shape, np.dtype(dtype), strides
        self.device_id, self.is_device_accessible, self.owner = number, number >= 0, owner

    def __dlpack__(self, **options):
        return SimpleNamespace(view=self, options=options)

    def __dlpack_device__(self):
        return 2, self.device_id


class FakeCuda:
    """The module. `registers` and `memory` are those of a thread, by the number of blocks that share a
    multiprocessor.
    """

    def __init__(self, devices=1, registers=None, memory=None):
        self.log, self.current, self.texts = [], 0, []
        self.calls, self.failing, self.lost, self.message = 0, None, False, "CUDA_ERROR_ILLEGAL_ADDRESS"
        self.held, self.streams = 0, 0  # bytes that are allocated, streams that were created
        self.registers, self.memory = registers or {0: 128}, memory or {}
        self.devices = [Device(self, k) for k in range(devices)]
        self.LEGACY_DEFAULT_STREAM, self.PER_THREAD_DEFAULT_STREAM = Stream(self, 1), Stream(self, 2)
        self.Stream = type("Streams", (Stream,), {"from_handle": lambda handle: Stream(self, handle)})
        self.Buffer, self.LaunchConfig, self.EventOptions = Buffer, SimpleNamespace, EventOptions
        memory = SimpleNamespace(total=2**37)
        self.system = SimpleNamespace(Device=lambda *, pci_bus_id: SimpleNamespace(memory_info=memory))
        self.LegacyPinnedMemoryResource = lambda: SimpleNamespace(allocate=self._pinned)
        self.utils = SimpleNamespace(
            StridedMemoryView=SimpleNamespace(from_any_interface=self._view, from_buffer=self._of_buffer)
        )
        self.ObjectCode = SimpleNamespace(from_ptx=self._code)

    class _Devices:
        """`Device()` is the current one; `Device.get_all_devices()`."""

        def __init__(self, cuda):
            self.cuda = cuda

        def __call__(self, number=None):
            return self.cuda.devices[self.cuda.current if number is None else number]

        def get_all_devices(self):
            return tuple(self.cuda.devices)

    @property
    def Device(self):
        return self._Devices(self)

    def call(self, *entry):
        """Write a call down, and let it fail if it is its turn."""
        self.log.append(entry)
        self.calls += 1
        if self.failing is not None and (self.calls > self.failing if self.lost else self.calls == self.failing + 1):
            raise RuntimeError(f"{self.message}: {entry[0]}")

    def allocated(self, size):
        block = np.zeros(size, np.uint8)
        buffer = Buffer(block.ctypes.data, size, block)
        self.held += size
        weakref.finalize(buffer, self._freed, size)
        return buffer

    def _freed(self, size):
        self.held -= size

    def _pinned(self, size):
        self.call("pinned", size)
        return self.allocated(size)

    def ptx(self, text, processor, library=b""):
        """Replaces `host.ptx`: returns a text that says where the module's own PTX is."""
        self.texts.append(text)
        return f"// {processor} {len(self.texts) - 1}"

    def _code(self, code, name):
        self.call("load")
        text = self.texts[int(code.split()[-1])]
        return SimpleNamespace(get_kernel=lambda wanted: Kernel(self, text, wanted))

    def _view(self, array, stream_ptr):
        self.log.append(("view", stream_ptr))
        if isinstance(array, np.ndarray):
            return View(self, array.ctypes.data, array.shape, array.dtype, None, -1, array)
        if hasattr(array, "__dlpack__"):
            v = array.__dlpack__(stream=stream_ptr).view
            return View(self, v.ptr, v.shape, v.dtype, v.strides, v.device_id, array)
        if not hasattr(array, "__cuda_array_interface__"):
            raise BufferError("no protocol")
        said = array.__cuda_array_interface__
        dtype, strides = np.dtype(said["typestr"]), said.get("strides")
        counts = None if strides is None else tuple(s // dtype.itemsize for s in strides)
        return View(self, said["data"][0], said["shape"], dtype, counts, getattr(array, "number", 0), array)

    def _of_buffer(self, buffer, shape, *, dtype):
        return View(self, buffer.handle, shape, dtype, None, self.current, buffer)

    def launch(self, stream, config, kernel, *arguments):
        self.call("launch", stream.handle, config.grid, config.block)
        kernel.run(config.grid * config.block, arguments)


def install(monkeypatch, fake):
    """Let the library use the stand-in for the duration of a test."""
    monkeypatch.setattr(gpu, "core", lambda: fake)
    monkeypatch.setattr(gpu, "libdevice", lambda: b"the library of this machine")
    monkeypatch.setattr(host, "ptx", fake.ptx)
    return fake


@functools.lru_cache(8)
def host_kernel(text):
    return HostKernel(text)


class Kernel:
    def __init__(self, cuda, text, name):
        assert f"void @{name}(" in text
        self.text = text
        bound = re.search(r'minctasm", i32 (\d)', text)
        self.blocks = int(bound[1]) if bound else 0
        registers, local = cuda.registers[self.blocks], cuda.memory.get(self.blocks, 0)
        self.cuda, self.sizes = cuda, SimpleNamespace(num_regs=registers, local_size_bytes=local)
        self.attributes, self.occupancy = self, self

    def __getitem__(self, device):
        self.cuda.call("attributes", device.device_id)
        return self.sizes

    def max_active_blocks_per_multiprocessor(self, threads, shared):
        self.cuda.call("occupancy")
        return 65536 // (-(-self.sizes.num_regs // 8) * 8 * threads)

    @property
    def handle(self):
        """A driver's handle: here the address of the kernel that runs on the host."""
        return id(host_kernel(self.text))

    def run(self, threads, arguments):
        host_kernel(self.text).launch(threads, arguments)
