"""Functions of many states on an NVIDIA GPU, which other libraries call on their own buffers there.

The kernel is that of `ptx` with the numbers of the model in memory: what `buffer_calls` is on the CPU. Operands and
results are the same float64 arrays, without work memory. A state without a result gives nan.

XLA calls a handler on the host, which asks XLA for the stream and launches the kernel in it by the driver's
`cuLaunchKernel`. Offsets are those of the structs in xla/ffi/api/c_api.h.

Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from geomctrl.errors import GeomctrlError
from geomctrl.tracing.traces import Trace

from . import gpu, host, ptx
from .buffer_calls import Sizes, field, stored, xla_handler

NAME = "of_states"
API, CONTEXT = 16, 24  # XLA_FFI_CallFrame
CREATE_ERROR, GET_STREAM = 48, 80  # XLA_FFI_Api
INTERNAL = 13  # XLA_FFI_Error_Code
MESSAGE = "geomctrl: the driver can not launch a kernel"
HANDLER_NAMES = ["g_xla", "g_version", "g_launch", "g_kernel", "g_threads"]
DRIVERS = {"win32": "nvcuda.dll"}


class GpuCall:
    """A trace's kernel on the GPUs of this machine.

    make(text) returns the machine code of the host's handler for its LLVM code. xla_handler, xla_version: addresses as
    of `BufferCall`.
    """

    def __init__(self, trace: Trace, model: Sizes, make: Callable[[str], bytes]):
        gpu.device()  # raises an error without a driver
        devices = gpu.core().Device.get_all_devices()
        oldest = min(range(len(devices)), key=lambda k: tuple(devices[k].compute_capability))
        device = gpu.device(oldest)  # the others run its code, too
        capability = tuple(device.compute_capability)
        library = gpu.libdevice() if ptx.library_functions(trace) else b""

        def text(blocks: int) -> str:
            module = ptx.module(trace, "double", NAME, blocks, model)
            return host.ptx(module, ptx.processor((capability[0], capability[1])), library)

        self.kernel = gpu.Kernel(device, NAME, text)
        handler = make(_handler(2 + len(trace.inputs), len(trace.sizes)))
        self.xla_handler, self.xla_version, *places = host.load(handler, HANDLER_NAMES)
        for place, value in zip(places, (_launcher(), int(self.kernel.kernel.handle), self.kernel.threads)):
            ctypes.c_int64.from_address(place).value = value

    def __call__(self, stream: Any, states: int, addresses: Sequence[int]) -> None:
        """Launch in a stream of cuda-core. addresses: of constants, parameters, inputs and outputs."""
        if states:
            self.kernel.launch(stream, states, [], [*addresses, 0])


@functools.cache
def _launcher() -> int:
    """The address of the driver's cuLaunchKernel."""
    name = DRIVERS.get(sys.platform, "libcuda.so.1")
    try:
        return ctypes.cast(ctypes.CDLL(name).cuLaunchKernel, ctypes.c_void_p).value or 0
    except (OSError, AttributeError) as error:
        raise GeomctrlError(f"no NVIDIA driver can be used: {error!s:.200}") from None


def _handler(operands: int, results: int) -> str:
    """LLVM code of g_xla(frame), see `buffer_calls.xla_handler`."""
    numbers = ["%states", *(f"%operand{k}" for k in range(operands)), *(f"%result{k}" for k in range(results)), "null"]
    count, kinds = len(numbers), ["i64", *["ptr"] * (len(numbers) - 1)]
    body = [
        f"  {field('%frame', API, 'api')}\n  {field('%frame', CONTEXT, 'context')}",
        "  %question = alloca [4 x i64]",  # XLA_FFI_Stream_Get_Args: size, extension, context, stream
        "  store [4 x i64] [i64 32, i64 0, i64 0, i64 0], ptr %question",
        "  %question.c = getelementptr i64, ptr %question, i64 2\n  store ptr %context, ptr %question.c",
        f"  {field('%api', GET_STREAM, 'get')}\n  %refusal = call ptr %get(ptr %question)",
        "  %refused = icmp ne ptr %refusal, null",
        "  br i1 %refused, label %failed, label %asked_stream",
        "failed:\n  ret ptr %refusal",
        "asked_stream:",
        "  %any = icmp sgt i64 %states, 0",
        "  br i1 %any, label %launch, label %done",
        f"launch:\n  {field('%question', 24, 'stream')}",
        f"  %values = alloca i64, i64 {count}\n  %places = alloca ptr, i64 {count}",
    ]
    for k, (kind, x) in enumerate(zip(kinds, numbers)):
        body.append(f"  %value{k} = getelementptr i64, ptr %values, i64 {k}\n  store {kind} {x}, ptr %value{k}")
    body += stored("%places", [f"%value{k}" for k in range(count)], "place")
    body += [
        "  %threads = load i64, ptr @g_threads\n  %launcher = load ptr, ptr @g_launch",
        "  %kernel = load ptr, ptr @g_kernel",
        "  %more = add i64 %states, %threads\n  %up = sub i64 %more, 1\n  %blocks = udiv i64 %up, %threads",
        "  %grid = trunc i64 %blocks to i32\n  %block = trunc i64 %threads to i32",
        "  %code = call i32 %launcher(ptr %kernel, i32 %grid, i32 1, i32 1, i32 %block, i32 1, i32 1, i32 0,"
        " ptr %stream, ptr %places, ptr null)",
        "  %launched = icmp eq i32 %code, 0",
        "  br i1 %launched, label %done, label %complain",
        "complain:",
        "  %error = alloca [4 x i64]",  # XLA_FFI_Error_Create_Args: size, extension, message, code
        f"  store [4 x i64] [i64 32, i64 0, i64 0, i64 {INTERNAL}], ptr %error",
        "  %error.m = getelementptr i64, ptr %error, i64 2\n  store ptr @g_message, ptr %error.m",
        f"  {field('%api', CREATE_ERROR, 'create')}\n  %told = call ptr %create(ptr %error)",
        "  ret ptr %told",
        "done:\n  ret ptr null",
    ]
    return "\n".join(
        [
            f'@g_message = constant [{len(MESSAGE) + 1} x i8] c"{MESSAGE}\\00"',
            *(f"@{name} = global i64 0" for name in HANDLER_NAMES[1:]),
            xla_handler("g", operands, results, body),
        ]
    )
