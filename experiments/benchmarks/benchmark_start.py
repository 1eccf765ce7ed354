"""Start-up time: imports and commands as users run them, each in a new Python process.

Wall time with files in the operating system's cache and bytecode compiled: medians, and what each adds to Python alone.
Each line also says which libraries were loaded. Then what `make demo` compiles in its first run, with empty caches: how
much longer that takes than the next one. Goals: see `GOALS` and `DEMO`.

    python experiments/benchmarks/benchmark_start.py [--quick]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.script import Quick, run_script

LIBRARIES = ("numpy", "scipy", "numba", "matplotlib", "cyclopts")
COMMAND = "import sys; from geomctrl.cli.main import run; run({})"
STARTS = {
    "python -c pass": "pass",
    "import numpy": "import numpy",
    "import geomctrl": "import geomctrl",
    "gc.Robot": "import geomctrl as gc; gc.Robot",
    "gc.simulate": "import geomctrl as gc; gc.simulate",
    "gc.controllers": "import geomctrl as gc; gc.controllers",
    "models.panda()": "from geomctrl import models; models.panda()",
    "identification": "from geomctrl import identification",
    "panda()._code": "from geomctrl import models; models.panda()._code",
    "panda().inverse_dynamics(q, v, a)": (
        "from geomctrl import models; r = models.panda(); q = r.neutral(); r.inverse_dynamics(q, q, q)"
    ),
    "panda().mass_matrix(q)": "from geomctrl import models; r = models.panda(); r.mass_matrix(r.neutral())",
    "geomctrl --help": COMMAND.format(["--help"]),
    "geomctrl robots": COMMAND.format(["robots"]),
    "geomctrl info panda": COMMAND.format(["info", "panda"]),
    "geomctrl info ur10": COMMAND.format(["info", "ur10"]),
    "geomctrl check panda --states 1": COMMAND.format(["check", "panda", "--states", "1"]),
}
# what is measured, what it is compared with or "", what it may take more [s], and what it may not load
GOALS = (
    ("import geomctrl", "", 0.15, "numba"),
    ("geomctrl info panda", "", 0.4, "numba"),
    ("panda().inverse_dynamics(q, v, a)", "panda()._code", 0.03, "numba"),
    ("panda().mass_matrix(q)", "panda()._code", 0.03, "numba"),
)
DEMO = COMMAND.format(
    "['track', 'panda', '--controller', 'slotine-li', '--payload', '2.0', '--seconds', '10', '--out', {out!r}]"
)
DEMO_COMPILES = 5.0  # s, at most
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def seconds(code: str, **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env={**ENVIRONMENT, **environment}
    )
    return time.perf_counter() - start


def loaded(code: str) -> list[str]:
    """Which of LIBRARIES are imported once `code` has run."""
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as file:
        after = f"import atexit, sys; atexit.register(lambda: open({file.name!r}, 'w').write(' '.join(sys.modules)))"
        run = [sys.executable, "-c", f"{after}\n{code}"]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        modules = set(file.read().split())
    return [name for name in LIBRARIES if name in modules]


def demo(rounds: int) -> tuple[float, float]:
    """(first run, next run) of the demo in seconds, the least of `rounds` each, compiled code kept in new folders."""
    times = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            kept = {"NUMBA_CACHE_DIR": f"{folder}/numba", "GEOMCTRL_CACHE": f"{folder}/geomctrl"}
            times.append([seconds(DEMO.format(out=f"{folder}/out"), **kept) for _ in range(2)])
    first, after = zip(*times)
    return min(first), min(after)


def main(*, quick: Quick = False) -> None:
    rounds, results = 3 if quick else 11, Results("start")
    libraries = {name: loaded(code) for name, code in STARTS.items()}  # compiles bytecode and kernels, too
    times: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(rounds):
        for name, code in STARTS.items():  # turn by turn, so that a busy minute hits all alike
            times[name].append(seconds(code))
    medians = {name: statistics.median(t) for name, t in times.items()}
    bare = medians["python -c pass"]
    print(f"{'':34s} {'median':>8s} {'beyond Python':>14s}   loaded   ({rounds} starts each)")
    for name, t in medians.items():
        print(f"{name:34s} {1e3 * t:5.0f} ms {1e3 * (t - bare):11.0f} ms   {', '.join(libraries[name]) or '-'}")
        results.row("starts", start=name, median_ms=1e3 * t, beyond_python_ms=1e3 * (t - bare))
    for name, base, limit, library in GOALS:
        took = medians[name] - medians.get(base, 0.0)
        verdict = "met" if took < limit and library not in libraries[name] else "MISSED"
        more = f" more than {base}" if base else ""
        print(f"{name}: {1e3 * took:.0f} ms{more}, at most {1e3 * limit:.0f} without {library}: {verdict}")
    first, after = demo(min(rounds, 3))
    verdict = "met" if first - after < DEMO_COMPILES else "MISSED"
    print(f"the demo's first run takes {first:.1f} s, {first - after:.1f} s more than the next one: {verdict}")
    results.row("demo", run="the first, nothing compiled yet", seconds=first)
    results.row("demo", run="the next", seconds=after)
    results.save(quick)


if __name__ == "__main__":
    run_script(main)
