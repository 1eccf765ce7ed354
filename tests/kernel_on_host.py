"""A kernel for a GPU run on this machine: the same LLVM code, thread after thread, the thread's number from a variable.

Only NVIDIA's instructions are not what runs: registers read by `ptx.STATE`, address spaces, libdevice's names.
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


def on_host(text: str) -> tuple[str, list[str]]:
    """Return the module's text with `run_threads(slots, threads)`, which calls its kernel, and the kernel's types.

    Each argument is in a slot of 8 bytes.
    """
    assert ptx.STATE in text
    text = re.sub(r"ptr addrspace\(\d\)", "ptr", text.replace(ptx.STATE, STATE)).replace(".p5", ".p0")
    text = re.sub(r"addrspacecast ptr (%\S+) to ptr", r"getelementptr i8, ptr \1, i64 0", text)
    text = re.sub(r"@__nv_(\w+)\(", r"@\1(", text)
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("!nvvm", "!1")))
    name, arguments = re.search(r"define ptx_kernel void @(\w+)\((.*)\) nounwind", text).groups()
    kinds = [x.split()[0] for x in arguments.split(", ")]
    lines = [
        "define void @run_threads(ptr %slots, i64 %threads) {",
        *(f"  %p{k} = getelementptr i64, ptr %slots, i64 {k}" for k in range(len(kinds))),
        *(f"  %a{k} = load {kind}, ptr %p{k}" for k, kind in enumerate(kinds)),
        "  br label %head",
        "head:",
        "  %b = phi i64 [0, %0], [%next, %body]",
        "  %more = icmp slt i64 %b, %threads",
        "  br i1 %more, label %body, label %exit",
        "body:",
        "  store i64 %b, ptr @at",
        f"  call void @{name}({', '.join(f'{kind} %a{k}' for k, kind in enumerate(kinds))})",
        "  %next = add i64 %b, 1",
        "  br label %head",
        "exit:",
        "  ret void",
        "}",
    ]
    return "\n".join([text.replace("ptx_kernel ", ""), *lines]), kinds


class HostKernel:
    """Return `run(numbers, inputs, sizes of the outputs) -> (outputs, report)` for a module's text."""

    def __init__(self, text: str):
        text, self.kinds = on_host(text)
        self.call = host.function(
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64),
            host.load(host.object_code(text), ["run_threads"])[0],
        )

    def launch(self, threads, arguments):
        """Call the kernel as a driver does: whole numbers and addresses as int, reals as float or numpy.float32."""
        types = {"i64": np.int64, "ptr": np.int64, "double": np.float64, "float": np.float32}
        python = {"i64": int, "ptr": int, "double": float, "float": np.float32}
        slots = np.zeros(len(arguments), np.int64)
        for k, (kind, x) in enumerate(zip(self.kinds, arguments, strict=True)):
            assert type(x) is python[kind], f"argument {k} is passed as {type(x)} for {kind}"
            slots[k : k + 1].view(types[kind])[0] = x
        self.call(slots.ctypes.data, threads)

    def __call__(self, numbers, inputs, outputs):
        states = len(inputs[0])
        inputs = [np.ascontiguousarray(x) for x in inputs]
        out = [np.full((states + 1, n), 77.0, inputs[0].dtype) for n in outputs]
        report = np.full(1, NONE, np.uint64)
        values = (numbers.tolist() if numbers.dtype == np.float64 else list(numbers))[: self.kinds.index("i64")]
        self.launch(states + 3, [*values, states, *(x.ctypes.data for x in (*inputs, *out, report))])
        assert all((y[states] == 77.0).all() for y in out), "a thread without a state wrote"
        return [y[:states] for y in out], int(report[0])
