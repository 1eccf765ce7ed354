"""NVIDIA's assembler and bitcode, if installed (make cuda-tools); they need no GPU."""

import importlib
import re
import shutil
import subprocess

import pytest

from geomctrl.errors import GeomctrlError
from geomctrl.tracing.backends import gpu

NOT_INSTALLED = "NVIDIA's ptxas is not installed (make cuda-tools)"


def assembler():
    """Return the path of ptxas, from the Python package or from the machine."""
    try:
        result = importlib.import_module("cuda.pathfinder").find_nvidia_binary_utility("ptxas")
    except (ImportError, AttributeError):
        result = None
    return result or shutil.which("ptxas")


def libdevice():
    try:
        return gpu.libdevice()
    except GeomctrlError:
        return b""


PTXAS, LIBDEVICE = assembler(), libdevice()
needs_ptxas = pytest.mark.skipif(PTXAS is None, reason=NOT_INSTALLED)
needs_libdevice = pytest.mark.skipif(not LIBDEVICE, reason="NVIDIA's libdevice is not installed (make cuda-tools)")


def assembled(text, processor, name, tmp_path):
    """Return the registers of the kernel `name`, its bytes of local memory, and how many of them are spilled and
    read again.
    """
    release = subprocess.run([PTXAS, "--version"], capture_output=True, text=True, check=True).stdout
    if processor < "sm_75" and int(re.search(r"release (\d+)", release)[1]) >= 13:
        pytest.skip(f"ptxas of CUDA 13 no longer knows {processor}")
    (tmp_path / "kernel.ptx").write_text(text)
    command = [PTXAS, f"-arch={processor}", "-v", "-o", tmp_path / "kernel.cubin", tmp_path / "kernel.ptx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    said = done.stderr[done.stderr.index(f"Compiling entry function '{name}'") :]
    memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", said)
    stack, stores, loads = map(int, memory.groups())
    return int(re.search(r"Used (\d+) registers", said)[1]), stack, stores + loads
