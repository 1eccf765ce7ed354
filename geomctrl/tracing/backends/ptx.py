"""PTX code from a trace: a kernel for NVIDIA GPUs with one state per thread, generated without GPU or toolkit.

Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.

    NAME(numbers of the model..., states, inputs..., outputs..., report)

Numbers of the model are arguments by value in the constant bank, which operations read at no cost. Inputs and outputs
are arrays (states, numbers) in C order, and a thread reads and writes its own row. A warp's load of one column touches
as many cache lines as there are rows, but the loads of a whole row use every byte of these lines, and the rows of all
active warps fit in the first-level cache (Panda, inverse dynamics: 84 of 256 KiB). Passing rows through shared memory
would save partial writes to the second level and cost barriers and code.

With `model`, the numbers of the model come from memory instead, see `buffer_calls`:

    NAME(states, constants, parameters, inputs..., outputs..., report)

report: the address of a 64-bit number, or 0. The kernel lowers it to the index of the first state without a result: one
with nan or infinity, with an invalid pose, or for which the algorithm fails. Its outputs are nan.

A function with more live numbers than registers keeps some in local memory, selected here: ptxas alone moves two to
four times as many bytes for long functions. Bytes written + read per thread, sm_90, doubles:

                              operations      ptxas alone   selected here
    Panda, forward dynamics         2542          72 + 72      328 + 328
    quadruped, forward dynamics     7224      7128 + 8816    2904 + 3240
    quadruped, terms                9221    10152 + 11768    3040 + 3040
    chain of 30, inverse            8118      2112 + 2184    2208 + 2256
    chain of 30, forward           17763    14088 + 20264    7784 + 9932

Splitting the kernel into functions that exchange numbers through that memory (600, 1200, 2400 operations) was tried: it
caused more traffic, and saved registers only where this traffic cancelled the benefit.
"""

from __future__ import annotations

from collections.abc import Iterable

from geomctrl.arguments import count, listed, shown
from geomctrl.errors import ArgumentError
from geomctrl.tracing.operations import LIBRARY
from geomctrl.tracing.polynomials import REDUCIBLE
from geomctrl.tracing.registers import steps
from geomctrl.tracing.symbols import operands
from geomctrl.tracing.traces import Trace

from . import host
from .angles import reduced
from .buffer_calls import Sizes
from .elementary import WAVE, Wave, reduced_sin_cos
from .ir import Vector
from .llvm import CONDITIONS, Line

THREADS = 128  # largest number per block
PROCESSORS = (70, 75, 80, 86, 89, 90)  # code for one runs on all later ones
PARAMETERS = 32764  # largest size of a kernel's arguments in bytes
# Sine and cosine in single precision: pi / 2 as numbers of 11, 11 and 24 bits; minimax polynomials with errors of 2e-9.
WAVE_FLOAT = Wave(
    (1.5703125, 0.0004837512969970703, 7.549790126404332e-08),
    (-0.16666650772094727, 0.008331977762281895, -0.00019495576270855963),
    (0.04166664555668831, -0.0013887366512790322, 2.4438386390102096e-05),
)
WAVES = {"double": (WAVE, REDUCIBLE), "float": (WAVE_FLOAT, 1e4)}  # polynomials, and the largest angle they accept
REGISTERS = {"double": 104, "float": 208}  # numbers in registers, besides addresses and operands
GLOBAL = "ptr addrspace(1)"
MODEL = "%constants", "%parameters"  # arrays in memory with the numbers of the model
STATE = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
define internal i64 @state() alwaysinline nounwind {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread64 = zext i32 %thread to i64
  %block64 = zext i32 %block to i64
  %threads64 = zext i32 %threads to i64
  %before = mul i64 %block64, %threads64
  %state = add i64 %before, %thread64
  ret i64 %state
}"""


def processor(capability: tuple[int, int]) -> str:
    """The newest supported processor up to this compute capability, such as "sm_90"."""
    try:
        major, minor = listed("capability", capability)
        capability = count("capability", major), count("capability", minor)
    except ValueError:
        raise ArgumentError(
            f"capability: expected two whole numbers, (9, 0) for example, got {shown(capability)}"
        ) from None
    older = [p for p in PROCESSORS if p <= 10 * capability[0] + capability[1]]
    if not older:
        raise ArgumentError(f"capability: expected 7.0 or more, got {capability[0]}.{capability[1]}")
    return f"sm_{older[-1]}"


def library_functions(trace: Trace) -> list[str]:
    """The functions of NVIDIA's libdevice that the trace uses; square roots, sines and cosines are not among them."""
    nodes = trace.graph.nodes
    return sorted({nodes[index][0] for index in trace.graph.needed(trace.ends)} & set(LIBRARY))


def ptx(
    trace: Trace,
    capability: tuple[int, int],
    *,
    real: str = "double",
    name: str = "f",
    blocks: int = 0,
    libdevice: bytes = b"",
) -> str:
    """The kernel's PTX; see the module's docstring for its arguments.

    real: "double" or "float". blocks: number of blocks of THREADS per multiprocessor, which limits the registers; 0: no
    limit. libdevice: NVIDIA's bitcode, for traces with `library_functions`.
    """
    wanted = library_functions(trace)
    if wanted and not libdevice:
        raise ArgumentError(
            f"libdevice: expected NVIDIA's bitcode, which the trace needs for {', '.join(wanted)}, got none"
        )
    return host.ptx(module(trace, real, name, blocks), processor(capability), libdevice)


def module(trace: Trace, real: str = "double", name: str = "f", blocks: int = 0, model: Sizes | None = None) -> str:
    """The kernel as LLVM's text. model: the numbers of the model that are in memory; None: they are arguments."""
    kernel = Kernel(trace, real, model)
    t, suffix = kernel.vector.type, kernel.vector.suffix
    bounds = [f'!"maxntidx", i32 {THREADS}', *([f'!"minctasm", i32 {blocks}'] if blocks else [])]
    declared = [
        f"declare {t} @__nv_{op}{kernel.mark}({', '.join([t] * LIBRARY[op])}) nounwind"
        for op in library_functions(trace)
    ]
    return "\n".join(
        [
            STATE,
            *(f"declare {t} @llvm.{x}.{suffix}({t})" for x in ("sqrt", "fabs", "rint", "floor")),
            *declared,
            reduced(),
            kernel.text(name),
            '!0 = !{!"branch_weights", i32 100000, i32 1}',
            "!nvvm.annotations = !{!1}",
            f"!1 = !{{ptr @{name}, {', '.join(bounds)}}}",
        ]
    )


class Kernel(Line):
    """The kernel of a trace under construction. `numbers`: elements of the model array that are arguments."""

    def __init__(self, trace: Trace, real: str = "double", model: Sizes | None = None):
        super().__init__(trace, Vector(1, real))
        self.model = model
        self.outputs, self.mark, self.align = trace.sizes, self.vector.mark, 8 if real == "double" else 4
        self.places_in_memory = {
            index: (base, k)
            for base, positions in zip(MODEL, (model.constants, model.parameters) if model else ())
            for k, index in enumerate(positions)
        }
        self.zero = self.vector.constant(0.0)
        self.infinite = self.zero  # sum of 0 x over all inputs x, which is nan if one is not finite
        loads = (self.nodes[node] for node in trace.graph.needed(trace.ends) if self.nodes[node][0] == "load")
        self.numbers = [] if model else sorted(index for _, array, index in loads if array == 0)
        size = (self.align * len(self.numbers)) + 8 * (len(trace.inputs) + len(trace.sizes) + 2)
        if size > PARAMETERS:
            raise ArgumentError(
                f"the robot has too many numbers for a kernel's arguments: {size} of {PARAMETERS} bytes"
            )

    def text(self, name: str) -> str:
        inputs = [f"%in{k}" for k in range(len(self.trace.inputs))]
        outputs = [f"%out{k}" for k in range(len(self.outputs))]
        arguments = [
            *(f"{self.vector.type} %m{index}" for index in self.numbers),
            "i64 %states",
            *(f"{GLOBAL} noalias readonly {x}" for x in (*(MODEL if self.model else ()), *inputs)),
            *(f"{GLOBAL} noalias {x}" for x in (*outputs, "%report")),
        ]
        self.do("%b = call i64 @state()")
        self.do(f"br i1 {self.let('icmp slt i64 %b, %states')}, label %angles, label %exit")
        self.block("angles")
        self.rows = {x: self._row(x, n) for x, n in zip((*inputs, *outputs), (*self.trace.inputs, *self.outputs))}
        if self.model:
            self.rows |= {MODEL[0]: MODEL[0], MODEL[1]: self._parameters(self.model)}
        self.loads: dict[tuple[int, int], str] = {}
        self._reduce_angles()
        self._straight_line()
        self._mark_invalid()
        return "\n".join([f"define ptx_kernel void @{name}({', '.join(arguments)}) nounwind {{", *self.lines, "}"])

    def compute(self, ends: Iterable[int]) -> None:
        """Write the operands of the nodes `ends`, none of them a sine or cosine."""
        for index in self.trace.graph.needed(ends):
            op, *args = self.nodes[index]
            if index not in self.values and op not in ("const", "load"):
                self.values[index] = self.made(op, [self.value(x) for x in args])

    def block(self, label: str) -> None:
        self.lines.append(f"{label}:")

    # --- numbers ---

    def _row(self, array: str, size: int) -> str:
        return self.element(array, self.let(f"mul i64 %b, {size}"))

    def _parameters(self, model: Sizes) -> str:
        """The address of a state's parameters."""
        return MODEL[1] if model.shared else self._row(MODEL[1], len(model.parameters))

    def element(self, base: str, index: int | str) -> str:
        return self.let(f"getelementptr {self.vector.type}, {GLOBAL} {base}, i64 {index}")

    def loaded(self, array: int, index: int) -> str:
        if array == 0 and self.model:
            base, place = self.places_in_memory[index]
            return self.let(
                f"load {self.vector.type}, {GLOBAL} {self.element(self.rows[base], place)}, align {self.align}"
            )
        if array == 0:
            return f"%m{index}"
        if (array, index) not in self.loads:
            address = self.element(self.rows[f"%in{array - 1}"], index)
            x = self.let(f"load {self.vector.type}, {GLOBAL} {address}, align {self.align}")
            self.loads[array, index] = x
            self.infinite = self.operation("fadd", self.infinite, self.operation("fmul", x, self.zero))
        return self.loads[array, index]

    def made(self, op: str, ends: list[str]) -> str:
        return self.call(f"__nv_{op}{self.mark}", *ends) if op in LIBRARY else super().made(op, ends)

    # --- sines and cosines ---

    def _reduce_angles(self) -> None:
        """Compute all angles that do not depend on a sine first; the straight-line code then has no branch."""
        graph, nodes = self.trace.graph, self.nodes
        angles = dict.fromkeys(
            nodes[index][1] for index in graph.needed(self.trace.ends) if nodes[index][0] in ("sin", "cos")
        )
        first = [x for x in angles if not any(nodes[index][0] in ("sin", "cos") for index in graph.needed([x]))]
        self.compute(first)
        self.angles = dict(zip(first, self.reduced([self.value(x) for x in first]) if first else []))

    def reduced(self, angles: list[str]) -> list[str]:
        """The angles modulo 2 pi if one of them exceeds the range of the polynomials' reduction, else unchanged."""
        t, (_, largest) = self.vector.type, WAVES[self.vector.real]
        self.blocks += 1
        ask, large, near = (f"{word}{self.blocks}" for word in ("ask", "far", "near"))
        self.do(f"br label %{ask}")
        self.block(ask)
        sizes = [self.call(f"llvm.fabs.{self.vector.suffix}", x) for x in angles]
        beyond = [self.let(f"fcmp ogt {t} {x}, {self.vector.constant(largest)}") for x in sizes]
        one = beyond[0]
        for other in beyond[1:]:
            one = self.let(f"or i1 {one}, {other}")
        self.do(f"br i1 {one}, label %{large}, label %{near}")
        self.block(large)
        done = [self.let(f"select i1 {out}, {t} {self._modulo(x)}, {t} {x}") for x, out in zip(angles, beyond)]
        self.do(f"br label %{near}")
        self.block(near)
        return [self.let(f"phi {t} [{x}, %{ask}], [{y}, %{large}]") for x, y in zip(angles, done)]

    def _modulo(self, x: str) -> str:
        if self.vector.real == "double":
            return self.let(f"call double @reduced(double {x})")
        y = self.let(f"call double @reduced(double {self.let(f'fpext float {x} to double')})")
        return self.let(f"fptrunc double {y} to float")

    def wave(self, x: int) -> tuple[str, str]:
        if x not in self.waves:
            angle = self.angles[x] if x in self.angles else self.reduced([self.value(x)])[0]
            self.waves[x] = reduced_sin_cos(self, angle, WAVES[self.vector.real][0])
        return self.waves[x]

    # --- the straight line ---

    def _straight_line(self) -> None:
        """Write all nodes; outputs are stored at once, and numbers without a register go to local memory."""
        nodes, t = self.nodes, self.vector.type
        places = self._places()
        for index in places:
            if nodes[index][0] in ("const", "load"):
                self._store(index, places)
        missing = [index for index in self.trace.graph.needed(self.trace.ends) if index not in self.values]
        order = [index for index in missing if nodes[index][0] not in ("const", "load")]
        memory: dict[int, str] = {}
        for step, index in steps(order, self._used, self._counts, REGISTERS[self.vector.real]):
            if step == "make":
                op, *ends = nodes[index]
                wave = op in ("sin", "cos")
                self.values[index] = (
                    self.wave(ends[0])[op == "cos"] if wave else self.made(op, list(map(self.value, ends)))
                )
                self._store(index, places)
            elif step == "keep":
                memory[index] = self.let(f"getelementptr {t}, ptr %memory, i64 {len(memory)}")
                self.do(f"store volatile {t} {self.value(index)}, ptr {memory[index]}, align {self.align}")
            else:  # volatile, so that LLVM does not keep it in a register
                self.values[index] = self.let(f"load volatile {t}, ptr {memory[index]}, align {self.align}")
        if memory:  # an address known only at run time, so that ptxas does not keep the numbers in registers
            self.lines[:0] = [
                f"  %spill = alloca {t}, i64 {len(memory)}, align {self.align}",
                "  %zero = lshr i64 %states, 62",
                f"  %memory = getelementptr {t}, ptr %spill, i64 %zero",
            ]

    def _used(self, index: int) -> tuple[int, ...]:
        """The operands of a node; `_reduce_angles` has used those of sines."""
        waved = self.nodes[index][0] in ("sin", "cos") and self.nodes[index][1] in self.angles
        return () if waved else operands(self.nodes[index])

    def _counts(self, index: int) -> bool:
        """Whether a node occupies a register: not constants, model numbers and conditions."""
        op, *rest = self.nodes[index]
        return op not in CONDITIONS and op != "const" and (op != "load" or rest[0] != 0 or self.model is not None)

    def _places(self) -> dict[int, list[tuple[str, int]]]:
        """For each node that is an output, the rows and columns of its stores."""
        ends, places = iter(self.trace.outputs), {}
        for k, size in enumerate(self.outputs):
            for column in range(size):
                places.setdefault(next(ends), []).append((self.rows[f"%out{k}"], column))
        return places

    def _store(self, index: int, places: dict[int, list[tuple[str, int]]]) -> None:
        for row, column in places.get(index, ()):
            target = self.element(row, column)
            self.do(f"store {self.vector.type} {self.value(index)}, {GLOBAL} {target}, align {self.align}")

    # --- states without a result ---

    def _mark_invalid(self) -> None:
        """For a state without a result, set the outputs to nan and lower the report."""
        t = self.vector.type
        for array, size in enumerate(self.trace.inputs, 1):
            for index in range(size):
                self.loaded(array, index)
        good = self.let(f"fcmp ord {t} {self.infinite}, {self.zero}")
        if self.trace.flag is not None:
            good = self.let(f"and i1 {good}, {self.value(self.trace.flag)}")
        self.do(f"br i1 {good}, label %exit, label %bad0, !prof !0")
        for k, size in enumerate(self.outputs):
            self.block(f"bad{k}")
            self.do(f"br label %fill{k}")
            self.block(f"fill{k}")
            self.do(f"%i{k} = phi i64 [0, %bad{k}], [%j{k}, %fill{k}]")
            target = self.element(self.rows[f"%out{k}"], f"%i{k}")
            self.do(f"store {t} {self.vector.constant(float('nan'))}, {GLOBAL} {target}, align {self.align}")
            self.do(f"%j{k} = add i64 %i{k}, 1")
            self.do(f"br i1 {self.let(f'icmp slt i64 %j{k}, {size}')}, label %fill{k}, label %bad{k + 1}")
        self.block(f"bad{len(self.outputs)}")
        self.do(f"br i1 {self.let(f'icmp ne {GLOBAL} %report, null')}, label %tell, label %exit")
        self.block("tell")
        self.let(f'atomicrmw umin {GLOBAL} %report, i64 %b syncscope("device") monotonic, align 8')
        self.do("br label %exit")
        self.block("exit")
        self.do("ret void")
