"""A kernel for a GPU run on this machine: the same LLVM code, thread after thread, the thread's number from a variable.

Only NVIDIA's instructions are not what runs: registers read by `ptx.STATE`, the address space, libdevice's names.
"""

import ctypes
import re

import numpy as np

from geomctrl.tracing.backends import host, ptx

STATE = """@at = internal global i64 0
define internal i64 @state() alwaysinline nounwind {
  %at = load i64, ptr @at
  ret i64 %at
}"""
NONE = 2**64 - 1  # value of the report if every state has a result


def on_host(text: str) -> str:
    """Return the module's text with its kernel `f`, and `run(numbers, states, threads, arrays, report)`, which
    calls it.
    """
    assert ptx.STATE in text
    text = text.replace(ptx.STATE, STATE).replace("ptr addrspace(1)", "ptr").replace("ptx_kernel ", "")
    text = re.sub(r"@__nv_(\w+)\(", r"@\1(", text)
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("!nvvm", "!1")))
    arguments = re.search(r"define void @f\((.*)\) nounwind", text)[1].split(", ")
    kinds = [x.split()[0] for x in arguments]
    numbers, pointers = kinds.index("i64"), len(kinds) - kinds.index("i64") - 2
    real = kinds[0] if numbers else "double"
    given = [*(f"{real} %n{k}" for k in range(numbers)), "i64 %states", *(f"ptr %a{k}" for k in range(pointers))]
    values = ", ".join([*given, "ptr %report"])
    lines = [
        "define void @run(ptr %numbers, i64 %states, i64 %threads, ptr %arrays, ptr %report) {",
        *(f"  %np{k} = getelementptr {real}, ptr %numbers, i64 {k}" for k in range(numbers)),
        *(f"  %n{k} = load {real}, ptr %np{k}" for k in range(numbers)),
        *(f"  %ap{k} = getelementptr ptr, ptr %arrays, i64 {k}" for k in range(pointers)),
        *(f"  %a{k} = load ptr, ptr %ap{k}" for k in range(pointers)),
        "  br label %head",
        "head:",
        "  %b = phi i64 [0, %0], [%next, %body]",
        "  %more = icmp slt i64 %b, %threads",
        "  br i1 %more, label %body, label %exit",
        "body:",
        "  store i64 %b, ptr @at",
        f"  call void @f({values})",
        "  %next = add i64 %b, 1",
        "  br label %head",
        "exit:",
        "  ret void",
        "}",
    ]
    return "\n".join([text, *lines])


class HostKernel:
    """Return `run(numbers, inputs, sizes of the outputs) -> (outputs, report)` for a module's text."""

    def __init__(self, text: str):
        address = host.load(host.object_code(on_host(text)), ["run"])[0]
        pointers = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
        self.address, self.call = address, ctypes.CFUNCTYPE(None, *pointers)(address)

    def launch(self, numbers, states, threads, addresses, report):
        arrays = (ctypes.c_void_p * len(addresses))(*addresses)
        self.call(numbers.ctypes.data, states, threads, ctypes.addressof(arrays), report)

    def __call__(self, numbers, inputs, outputs):
        states = len(inputs[0])
        inputs = [np.ascontiguousarray(x) for x in inputs]
        out = [np.full((states + 1, n), 77.0, inputs[0].dtype) for n in outputs]
        report = np.full(1, NONE, np.uint64)
        addresses = [x.ctypes.data for x in (*inputs, *out)]
        self.launch(numbers, states, states + 3, addresses, report.ctypes.data)
        assert all((y[states] == 77.0).all() for y in out), "a thread without a state wrote"
        return [y[:states] for y in out], int(report[0])
