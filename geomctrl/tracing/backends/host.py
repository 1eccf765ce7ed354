"""Compilation for this machine: LLVM text to object code, and object code to functions in memory."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import llvmlite.binding as llvm

from geomctrl.tracing.locks import llvm_at_work

STACK = 8192  # numbers that compiled code puts on the stack, which may be small; more are allocated on the heap
OPTIMISATION = 2  # level of LLVM's code generation; 0 is done in a third of the time, and its code is slower
ALLOCATE, RELEASE = "geomctrl_allocate", "geomctrl_release"  # as malloc and free, in compiled code


class Address(int):
    """Address of a compiled function or number; its module's memory is freed with the last address."""

    engine: llvm.ExecutionEngine  # owns the memory


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, function in ((ALLOCATE, "PyMem_RawMalloc"), (RELEASE, "PyMem_RawFree")):
        address = ctypes.cast(getattr(ctypes.pythonapi, function), ctypes.c_void_p).value
        llvm.add_symbol(name, address)


def _machine(target: tuple[str, str] | None = None) -> llvm.TargetMachine:
    if target is not None:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return llvm.Target.from_triple(target[0]).create_target_machine(cpu=target[1], opt=2, reloc="pic")
    _initialise()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=OPTIMISATION,
        reloc="pic",
        jit=True,
    )


@functools.cache
def description() -> str:
    """Everything that object code depends on: LLVM's version, the processor, its features, the optimisation."""
    _initialise()
    version = ".".join(map(str, llvm.llvm_version_info))
    features = llvm.get_host_cpu_features().flatten()
    return f"llvm {version} {llvm.get_default_triple()} {llvm.get_host_cpu_name()} {features} -O{OPTIMISATION}"


@functools.cache
def lanes() -> int:
    """Number of doubles in this processor's vectors: 8, 4 or 2."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx2") else 2


def ptx(text: str, processor: str, library: bytes = b"") -> str:
    """PTX of a module given as text, for an NVIDIA `processor` ("sm_90") and later ones.

    `library`: bitcode that defines functions the module only declares; unused functions are removed.
    """
    with llvm_at_work:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
        machine = target.create_target_machine(cpu=processor, features="+ptx81", opt=2)
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        if library:
            _link(module, library)
        module.verify()
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)))
        return machine.emit_assembly(module)


def _link(module: llvm.ModuleRef, library: bytes) -> None:
    own = {f.name for f in module.functions if not f.is_declaration}
    other = llvm.parse_bitcode(library)
    other.triple, other.data_layout = module.triple, module.data_layout
    module.link_in(other)
    for f in module.functions:
        if not f.is_declaration and f.name not in own:
            f.linkage = "internal"


def object_code(text: str, target: tuple[str, str] | None = None) -> bytes:
    """Machine code of a module given as text, for this machine or a target (triple, processor).

    No optimisation pass runs before code generation: traces contain no repeated and no dead expressions, and passes
    would take longer than everything else.
    """
    with llvm_at_work:
        machine = _machine(target)
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        options.slp_vectorization = options.loop_vectorization = options.loop_unrolling = False
        builder = llvm.create_pass_builder(machine, options)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.run(module, builder)
        return machine.emit_object(module)


def load(code: bytes, names: list[str]) -> list[Address]:
    """Addresses of the named functions; the caller keeps an address alive while it uses the function."""
    with llvm_at_work:
        empty = llvm.parse_assembly("")
        empty.triple = llvm.get_default_triple()
        engine = llvm.create_mcjit_compiler(empty, _machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [Address(engine.get_function_address(name)) for name in names]
    if not all(addresses):
        raise ValueError(f"object code lacks {[n for n, a in zip(names, addresses) if not a]}")
    for address in addresses:
        address.engine = engine
    return addresses


def function(kind: Any, address: int) -> Any:
    """A ctypes function of that type, which keeps its code alive."""
    call = kind(address)
    call.address = address
    return call
