"""Machine code for processors other than this one: made with llvmlite, linked with ziglang, run in an emulator."""

import importlib.util
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from traced_cases import TREES, by_loops, inputs_of

from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.kernels import articulated_bodies
from geomctrl.tracing.backends import host
from geomctrl.tracing.backends.llvm import module

TARGET = ("aarch64-unknown-linux-musl", "cortex-a76")
EMULATOR = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
AARCH64 = 183  # in an ELF file's header
MAIN = """\
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
bool f_one(const double *, const double *, double **);
int64_t f_many(const double *, const double **, double *, int64_t, int64_t, double *);
extern const int64_t f_work;
%s
int main(void)
{
    static double one[N], many[2 * N];
    double *ys[] = {one};
    const double *inputs[] = {q, v, a};
    double *work = aligned_alloc(64, (size_t)(f_work + 8) / 8 * 64);
    if (!f_one(model, x, ys) || f_many(model, inputs, many, 0, 2, work) != -1)
        return 1;
    for (int k = 0; k < N; k++)
        printf("%%.17g %%.17g %%.17g\\n", one[k], many[k], many[N + k]);
    return 0;
}
"""


def made(robot):
    algorithm = articulated_bodies.forward_dynamics
    traced = trace(algorithm, structure(robot._model), {}, guarded=True)
    return host.object_code(module(traced, [1, 2], side=2), TARGET)


@pytest.mark.parametrize("robot", [TREES[0], TREES[3]], ids=lambda r: r.name)
def test_code_for_aarch64(robot):
    code = made(robot)
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == AARCH64


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed (make cross)")
@pytest.mark.parametrize("robot", [TREES[0], TREES[3]], ids=lambda r: r.name)
def test_code_for_aarch64_computes_the_same(robot, tmp_path):
    """One state and two side by side, with a sine beyond the range of the fast one; linked where no emulator is."""
    first, second = (inputs_of(robot, articulated_bodies.forward_dynamics, seed) for seed in (0, 1))
    first[0][:1] += 1e6 * (robot.nq == robot.nv)
    arrays = {"model": robot._model, "x": np.concatenate(first)}
    arrays |= {name: np.concatenate(rows) for name, rows in zip("qva", zip(first, second))}
    words = [f"static const double {name}[] = {{{', '.join(map(repr, x.tolist()))}}};" for name, x in arrays.items()]
    (tmp_path / "main.c").write_text(MAIN % "\n".join([f"#define N {robot.nv}", *words]))
    (tmp_path / "f.o").write_bytes(made(robot))
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", "-o", tmp_path / "main"]
    subprocess.run([*command, tmp_path / "main.c", tmp_path / "f.o"], check=True)
    if EMULATOR is None:
        return
    printed = subprocess.run([EMULATOR, tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    found = np.array([[float(x) for x in line.split()] for line in re.findall(r".+", printed)]).T
    for a, states in zip(found, (first, first, second), strict=True):
        expected = by_loops(robot, articulated_bodies.forward_dynamics, states, {})
        np.testing.assert_allclose(a, expected, rtol=1e-10, atol=1e-11 * np.abs(expected).max())
