"""How long it takes to start: imports and commands as a user meets them, each in a Python of its own.

Wall time with files in the operating system's cache and bytecode compiled: medians, and what each adds to Python alone.
Goal: `import geomctrl` below 150 ms and without numba. Each line also says which libraries were loaded.

    python experiments/benchmarks/benchmark_start.py [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time

LIBRARIES = ("numpy", "scipy", "numba", "matplotlib", "typer")
COMMAND = "import sys; from geomctrl.cli.main import app; sys.argv[1:] = {}; app(standalone_mode=False)"
STARTS = {
    "python -c pass": "pass",
    "import numpy": "import numpy",
    "import geomctrl": "import geomctrl",
    "gc.Robot": "import geomctrl as gc; gc.Robot",
    "gc.simulate": "import geomctrl as gc; gc.simulate",
    "gc.controllers": "import geomctrl as gc; gc.controllers",
    "models.panda()": "from geomctrl import models; models.panda()",
    "identification": "from geomctrl import identification",
    "panda().mass_matrix(q)": "from geomctrl import models; r = models.panda(); r.mass_matrix(r.neutral())",
    "geomctrl --help": COMMAND.format(["--help"]),
    "geomctrl robots": COMMAND.format(["robots"]),
    "geomctrl info panda": COMMAND.format(["info", "panda"]),
    "geomctrl check panda --states 1": COMMAND.format(["check", "panda", "--states", "1"]),
}


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def loaded(code: str) -> list[str]:
    """Which of LIBRARIES are imported once `code` has run."""
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as file:
        after = f"import atexit, sys; atexit.register(lambda: open({file.name!r}, 'w').write(' '.join(sys.modules)))"
        subprocess.run([sys.executable, "-c", f"{after}\n{code}"], check=True, stdout=subprocess.DEVNULL)
        modules = set(file.read().split())
    return [name for name in LIBRARIES if name in modules]


def main(rounds: int) -> None:
    libraries = {name: loaded(code) for name, code in STARTS.items()}  # compiles bytecode and kernels, too
    times: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(rounds):
        for name, code in STARTS.items():  # turn by turn, so that a busy minute hits all alike
            times[name].append(seconds(code))
    medians = {name: statistics.median(t) for name, t in times.items()}
    bare = medians["python -c pass"]
    print(f"{'':32s} {'median':>8s} {'beyond Python':>14s}   loaded   ({rounds} starts each)")
    for name, t in medians.items():
        print(f"{name:32s} {1e3 * t:5.0f} ms {1e3 * (t - bare):11.0f} ms   {', '.join(libraries[name]) or '-'}")
    own, numba = medians["import geomctrl"], "numba" in libraries["import geomctrl"]
    verdict = "met" if own < 0.15 and not numba else "MISSED"
    print(f"import geomctrl below 150 ms without numba: {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 starts each instead of 11")
    main(3 if parser.parse_args().quick else 11)
