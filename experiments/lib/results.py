"""Save the results of a benchmark to out/bench/NAME.json, with machine, date and versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import geomctrl as gc
from geomctrl import files

ROOT = Path(__file__).parents[2]
FOLDER = Path("out/bench")
PACKAGES = (
    *("geomctrl", "numpy", "scipy", "numba", "llvmlite", "pin", "mujoco", "dynibo", "exudyn", "cuda-core"),
    *("gymnasium", "jax", "frax", "adam-robotics", "mujoco-mjx"),
)


class Results:
    """Tables of one benchmark. A table is a list of rows {column: number or text}; the name of a column ends with its
    unit.
    """

    def __init__(self, name: str):
        self.name = name
        self.tables: dict[str, list[dict[str, Any]]] = {}

    def row(self, table: str, /, **columns: Any) -> None:
        """Add a row; numpy's numbers become Python's."""
        plain = {k: x.item() if isinstance(x, np.generic) else x for k, x in columns.items()}
        self.tables.setdefault(table, []).append(plain)

    def peers(self, table: str, robot: gc.Robot, term: str, ours: float, peers: dict[str, float]) -> None:
        """Add a row for each peer: seconds of a call of geomctrl and of the peer, and their ratio."""
        for peer, theirs in peers.items():
            times = {"ours_us": 1e6 * ours, "peer_us": 1e6 * theirs, "ratio": ours / theirs}
            self.row(table, robot=robot.name, nv=robot.nv, term=term, peer=peer, **times)

    def save(self, quick: bool, folder: Path = FOLDER) -> Path:
        """Write folder/NAME.json; `quick` says that the numbers are rough."""
        content = {"date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"), "quick": quick}
        content |= {"commit": commit(), "machine": machine(), "versions": versions(), "tables": self.tables}
        path = files.write_text(folder / f"{self.name}.json", json.dumps(content, indent=1) + "\n")
        print(f"kept in {path}")
        return path


def machine() -> dict[str, Any]:
    """Processor and number of processors, memory, operating system and Python version."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    return {
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "processors": os.cpu_count(),
        "virtual": any(" hypervisor" in line for line in lines if line.startswith("flags")),
        "memory_GiB": round(pages / 2**30),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Installed versions of the libraries that are compared."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def commit() -> str:
    """Commit of the working tree, with + if it has changes; empty without git."""
    try:
        args = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
        return subprocess.run(args, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
