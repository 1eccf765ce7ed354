"""Functions of one array, traced and compiled by LLVM and as C, with their numpy versions."""

import ctypes
import shutil
import subprocess

import numpy as np

from geomctrl.tracing import tracer
from geomctrl.tracing.backends import c, cache, host
from geomctrl.tracing.backends.batches import Batch
from geomctrl.tracing.backends.llvm import module
from geomctrl.tracing.fusion import fused
from geomctrl.tracing.operations import VALUES
from geomctrl.tracing.traces import Trace

COMPILER = shutil.which("gcc") or shutil.which("cc")


def traced(f, n):
    """Return the trace of f(x) for an array x of n numbers."""
    return tracer.traced(f, (n,)).trace


def outputs(f, rows, flags=""):
    """Return (values, whether there is a result) of the traced f(x) for rows x; equal in one lane and in many."""
    trace = fused(traced(f, rows.shape[1]))
    graph, flag = trace.graph, trace.flag
    good = graph.operand(1.0) if flag is None else graph.node("where", flag, graph.operand(1.0), graph.operand(0.0))
    trace = Trace(graph, trace.inputs, (*trace.outputs, good), (len(trace.outputs) + 1,), None)
    found, lanes = [], host.lanes()
    for width in {1, lanes}:
        code = host.object_code(module(trace, [width], side=lanes, flags=flags))
        if width > 1:
            call = Batch(np.zeros(1), host.load(code, cache.ENTRY_NAMES["many"]), len(trace.outputs))
            found.append(call(np.ascontiguousarray(rows))[0])
        else:
            found.append(one_by_one(host.load(code, ["f_one"])[0], rows, len(trace.outputs)))
    np.testing.assert_array_equal(*found)
    return found[0][:, :-1], found[0][:, -1] == 1.0


def in_c(functions, folder):
    """{name: (f, n)}, f a function of n numbers: {name: rows -> (values, whether there is a result)}, in one library.

    The compiler may use all instructions of the processor, and in ISO C no fused ones.
    """
    traces = {name: traced(f, n) for name, (f, n) in functions.items()}
    texts = ["#include <math.h>"]
    for k, (trace, (_, n)) in enumerate(zip(traces.values(), functions.values())):
        parameters = [c.Parameter("x", n, "")], [c.Parameter("y", len(trace.outputs), "")]
        texts.append(c.definition(c.Function(f"f{k}", trace, *parameters)))
    (folder / "all.c").write_text("\n".join(texts))
    flags = ["-std=c99", "-O1", "-march=native", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *flags, "-o", folder / "all.so", folder / "all.c", "-lm"], check=True)
    library = ctypes.CDLL(str(folder / "all.so"))
    return {
        name: _row_by_row(getattr(library, f"f{k}"), len(trace.outputs))
        for k, (name, trace) in enumerate(traces.items())
    }


def _row_by_row(function, n):
    def call(rows):
        out, good = np.full((len(rows), n), np.nan), np.zeros(len(rows), bool)
        for k, (x, y) in enumerate(zip(np.ascontiguousarray(rows, float), out)):
            good[k] = function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data)) == 1
        return out, good

    return call


def one_by_one(address, rows, n):
    run = ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_void_p] * 3)(address)
    out, model = np.empty((len(rows), n)), np.zeros(1)
    for x, y in zip(rows, out):
        run(model.ctypes.data, x.ctypes.data, (ctypes.c_void_p * 1)(y.ctypes.data))
    return out


def require_same(name, rows, found, expected, ulps=2.0, signs=True):
    """Raise with the first few differences."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    same = np.isnan(found) & np.isnan(expected)
    with np.errstate(all="ignore"):
        near = np.abs(found - expected) <= ulps * np.spacing(np.abs(expected))
    same |= (found == expected) | near
    if signs:
        same &= np.isnan(expected) | (np.signbit(found) == np.signbit(expected))
    wrong = np.argwhere(~same)
    lines = [f"{rows[i].tolist()}, output {k}: {found[i, k]!r}, expected {expected[i, k]!r}" for i, k in wrong[:8]]
    assert not len(wrong), f"{name}: {len(wrong)} differ\n" + "\n".join(lines)


def values(trace, rows):
    """(values, whether there is a result) of a trace for each row, operation by operation."""
    nodes = {}
    with np.errstate(all="ignore"):
        for k in trace.graph.needed(trace.ends):
            op, *rest = trace.graph.nodes[k]
            if op == "load":
                nodes[k] = rows[:, rest[1]]
            elif op == "const":
                nodes[k] = np.full(len(rows), rest[0] if isinstance(rest[0], bool) else float(rest[0]))
            else:
                nodes[k] = VALUES[op](*(nodes[j] for j in rest))
    good = np.ones(len(rows), bool) if trace.flag is None else nodes[trace.flag]
    return np.stack([np.asarray(nodes[k], float) for k in trace.outputs], axis=1), good


def in_numpy(f, rows):
    with np.errstate(all="ignore"):
        return np.array([np.ravel(f(np.array(x))) for x in rows], float)
