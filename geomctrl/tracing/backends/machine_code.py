"""Addresses of a trace's machine code, which is generated once, stored on disk and loaded."""

from __future__ import annotations

import hashlib

from geomctrl.tracing.fusion import fused
from geomctrl.tracing.traces import Trace

from . import cache, host
from .llvm import module

# Up to here a function compiles in about two seconds, and many states in a row are fetched as fast as computed.
MAX_OPERATIONS = 70_000


def address_of_one(trace: Trace) -> host.Address:
    """Address of the code for one state, `bool one(model, x, ys)`."""
    return _addresses(trace, "one")[0]


def addresses_of_many(trace: Trace) -> list[host.Address]:
    """Addresses of the code for many states and of its work memory's size, see `batches.Batch`."""
    return _addresses(trace, "many")


def _addresses(trace: Trace, kind: str) -> list[host.Address]:
    lanes, trace = host.lanes(), fused(trace)
    identity = (
        trace.graph.nodes,
        trace.outputs,
        trace.sizes,
        trace.flag,
        trace.inputs,
        cache.version(),
        lanes,
        kind,
    )
    key = hashlib.sha256(repr(identity).encode()).hexdigest()
    widths = [1] if kind == "one" else [lanes]
    code = cache.kept(key, lambda: host.object_code(module(trace, widths, side=lanes, flags="")))
    return host.load(code, cache.ENTRY_NAMES[kind])
