"""The papers' pages: what the scripts of experiments/papers compute, run when the site is built.

Rows are kept in docs/_build/papers.json under a fingerprint of all the code they come from, so that only a change of
code runs the scripts again. With DOCS_RUN=0 the last rows are taken, whatever code they are of.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import multiprocessing
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from pages import write_pages

import geomctrl as gc

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
FOLDER = DOCS / "explanation" / "papers"
ROWS_FILE = DOCS / "_build" / "papers.json"
SEEDS = (0, 3)  # of random robots; the scripts themselves take more
NUMBERED = {  # script: title of its page, what its rows are of
    "park_bobrow_ploen_1995": (
        "Park, Bobrow and Ploen 1995",
        "F. C. Park, J. E. Bobrow, S. R. Ploen, *A Lie group formulation of robot dynamics*, IJRR 14 (1995).",
    ),
    "ploen_1999": (
        "Ploen 1999",
        "S. R. Ploen, *A skew-symmetric form of the recursive Newton-Euler algorithm for the control of multibody"
        " systems*, ACC 1999.",
    ),
    "mueller_2018": (
        "Müller 2018",
        "A. Müller, *Screw and Lie group theory in multibody dynamics*, Multibody System Dynamics 42 (2018).",
    ),
}
PARK_CHUNG = (
    "Park and Chung 2005",
    "J. Park, W.-K. Chung, *Geometric integration on Euclidean group with application to articulated multibody"
    " systems*, IEEE T-RO 21 (2005).",
)
MUELLER_TERZE = (
    "Müller and Terze 2013",
    "A. Müller, Z. Terze, *Is there an optimal choice of configuration space for Lie group integration schemes applied"
    " to constrained MBS?*, ASME IDETC 2013.",
)
HEAVY_TOP = (
    "Brüls, Cardona and Arnold 2012",
    "O. Brüls, A. Cardona, M. Arnold, *Lie group generalized-α time integration of constrained flexible multibody"
    " systems*, Mechanism and Machine Theory 48 (2012).",
)
STEPS = (1.0, 0.1, 0.01)  # s, of Tables VI to VIII; 1 ms takes ten times as long, and the script


def write(app: Any) -> None:
    """Sphinx's event builder-inited."""
    rows = rows_of_scripts()
    pages = {"index.md": index(rows)}
    for script, (title, source) in NUMBERED.items():
        pages[f"{script}.md"] = numbered_page(script, title, source, rows.get(script))
    pages["park_chung_2005.md"] = park_chung_page(rows.get("park_chung_2005"))
    pages["mueller_terze_2013.md"] = mueller_terze_page(rows.get("mueller_terze_2013"))
    pages["bruels_cardona_arnold_2012.md"] = heavy_top_page(rows.get("bruels_cardona_arnold_2012"))
    write_pages(FOLDER, pages)


# --- rows ----------------------------------------------------------------------------------------------------------


def fingerprint() -> str:
    """Of all code that the rows come from."""
    digest = hashlib.sha256()
    folders = ("experiments/papers", "experiments/lib", "geomctrl", "models")
    for path in (Path(__file__), *(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def rows_of_scripts() -> dict[str, Any]:
    """{script: its rows}: those of the last run if no code has changed since, otherwise computed now."""
    last = json.loads(ROWS_FILE.read_text(encoding="utf-8")) if ROWS_FILE.exists() else {}
    now = fingerprint()
    if os.environ.get("DOCS_RUN", "1") != "1" or last.get("fingerprint") == now:
        return last.get("rows", {})
    rows = computed_rows()
    ROWS_FILE.parent.mkdir(exist_ok=True)
    ROWS_FILE.write_text(json.dumps({"fingerprint": now, "rows": rows}), encoding="utf-8")
    return rows


def computed_rows() -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "experiments"))  # also of the processes
    jobs = {script: functools.partial(numbered, script) for script in NUMBERED}
    jobs |= {"park_chung_2005": park_chung, "mueller_terze_2013": mueller_terze}
    jobs["bruels_cardona_arnold_2012"] = heavy_top
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        results = {script: pool.submit(job) for script, job in jobs.items()}
        return {script: result.result() for script, result in results.items()}


def numbered(script: str) -> list[list]:
    """[equation, what it says, functions, residual]."""
    table = importlib.import_module(f"papers.{script}").table(seeds=SEEDS)
    wrong = [row.equation for row in table if not row.ok]
    assert not wrong, f"{script}: {wrong}"
    return [list(row) for row in table]


def park_chung() -> list[list]:
    """[quantity, method, step, ours, published, mark]."""
    script = importlib.import_module("papers.park_chung_2005")
    cells = [cell for method in script.METHODS for h in STEPS for cell in script.cells(method, h)]
    return [[c.quantity, c.method, c.h, float(c.ours), c.published, c.mark.strip()] for c in cells]


def mueller_terze() -> list[list]:
    """[case, group, joint, ours, expected] after 1 s."""
    script = importlib.import_module("papers.mueller_terze_2013")
    rows = []
    for name, make in script.CASES.items():
        for group in script.GROUPS:
            cells = script.cells(name, group, script.run(make(script.GROUPS[group]), 1.0))
            rows += [[name, group, c.joint, float(c.ours), c.expected] for c in cells]
    return rows


def heavy_top() -> list[list]:
    """[coordinates, method, step, error, violation, drift of the energy] at 0.8 s."""
    script = importlib.import_module("papers.bruels_cardona_arnold_2012")
    rows = [script.maximal(g, m, n) for g in script.GROUPS for m in ("MK4", "GA") for n in (800, 1600)]
    rows += [script.relative(m, n) for m in ("MK4", "MK8") for n in (800, 1600)]
    return [[r.where, r.method, r.h, float(r.error), float(r.violation), float(r.energy)] for r in rows]


# --- pages ---------------------------------------------------------------------------------------------------------

NOT_RUN = "*Not run: this site was built with `DOCS_RUN=0`.*\n"


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\`*_\[\]<>|$^~{}#])", r"\\\1", text)


def table(heads: list[str], rows: Iterator[list[str]] | list[list[str]]) -> str:
    lines = ["| " + " | ".join(x) + " |" for x in (heads, ["---"] * len(heads), *rows)]
    return "\n".join(lines) + "\n"


@functools.cache
def linked(function: str) -> str:
    """ "factored.factors" as a link to its place in the reference, or as code where it has none."""
    home, attribute = function.split(".")
    if home in ("so3", "se3"):
        assert hasattr(getattr(gc, home), attribute), function
        return f"{{py:obj}}`{function} <geomctrl.groups.{home.upper()}.{attribute}>`"
    if home == "Robot" or home in gc.MODULES:
        owner = gc.Robot if home == "Robot" else getattr(gc, home)
        assert hasattr(owner, attribute), function
        if attribute not in getattr(owner, "__all__", [attribute]):
            return f"`{function}`"
        return f"{{py:obj}}`{function} <geomctrl.{function}>`"
    module = getattr(gc.papers, home)
    assert hasattr(module, attribute), function
    if attribute not in module.__all__:
        return f"`papers.{function}`"
    return f"{{py:obj}}`{function} <geomctrl.papers.{function}>`"


def head(title: str, source: str, script: str) -> str:
    return f"# {title}\n\n{source}\n\nMade by `experiments/papers/{script}.py` when this site was built.\n\n"


def numbered_page(script: str, title: str, source: str, rows: list | None) -> str:
    text = head(title, source, script)
    if rows is None:
        return text + NOT_RUN
    text += (
        f"{len(rows)} rows. The residual is relative, the worst over {len(SEEDS)} random robots and motions; 1e-12"
        " fails the build. If a function that a row names errs by 1e-7, the row shows it:"
        " `tests/experiments/test_paper_scripts.py` tries all of them. \\* marks equations corrected as on the page"
        " {doc}`/reference/formulas`.\n\n"
    )
    return text + table(
        ["equation", "what it says", "of", "residual"],
        [
            [plain(e), plain(s), ", ".join(map(linked, of.split(", "))), f"{error:.0e}" if error else "0"]
            for e, s, of, error in rows
        ],
    )


def park_chung_page(rows: list | None) -> str:
    text = head(*PARK_CHUNG, "park_chung_2005")
    if rows is None:
        return text + NOT_RUN
    clear = [row for row in rows if f"{row[3]:.4E}" == f"{row[4]:.4E}"]
    text += (
        "Three spheres in a chain ({py:obj}`geomctrl.models.three_spheres`), afloat and free of forces, by"
        " {py:obj}`geomctrl.rollout` to 1 s: what should be kept, and by how much it drifts, beside the published"
        f" digits. {len(clear)} of these {len(rows)} numbers are the published five digits; ~ marks those that"
        " round-off reaches, ! others. Steps of 1 ms, operation counts and figures: the script.\n"
    )
    titles = {
        "kinetic energy": "Table VI: kinetic energy [J]",
        "linear momentum": "Table VII: linear momentum [N s]",
        "angular momentum": "Table VIII: angular momentum [N m s]",
    }
    for quantity, title in titles.items():
        lines: dict[str, list[str]] = {}
        for q, method, _, ours, published, mark in rows:
            if q == quantity:
                lines.setdefault(method, [method]).extend((f"{ours:.4e} {mark}".strip(), f"{published:.4e}"))
        heads = ["", *(x for h in STEPS for x in (f"h = {h:g} s", "published"))]
        text += f"\n## {title}\n\n" + table(heads, list(lines.values()))
    return text


def mueller_terze_page(rows: list | None) -> str:
    text = head(*MUELLER_TERZE, "mueller_terze_2013")
    if rows is None:
        return text + NOT_RUN
    text += (
        "By how much joints are violated after 1 s, MK4, h = 1 ms, nothing stabilised"
        " ({py:obj}`geomctrl.papers.constrained.integrate_index1`): |g| in m. The paper prints curves and no numbers,"
        " and leaves masses out; what is expected, and the completed data, are those of {doc}`/reference/formulas`."
        " Below 1e-11 it is rounding. The script runs to 10 s and goes through the paper's claims.\n\n"
    )
    return text + table(
        ["example", "poses on", "joint", "|g|", "expected"],
        [[name, plain(g), str(joint + 1), f"{ours:.2e}", f"{e:.2e}"] for name, g, joint, ours, e in rows],
    ).replace("| |g| |", r"| \|g\| |")


def heavy_top_page(rows: list | None) -> str:
    text = head(*HEAVY_TOP, "bruels_cardona_arnold_2012")
    if rows is None:
        return text + NOT_RUN
    text += (
        "Their heavy top, 15 kg spun at 150 rad/s, to 0.8 s: poses of the body under the joint's constraint, on two"
        " groups, and one spherical joint (`relative`), which can not be violated. GA is the authors' generalized-α"
        " method, ρ = 0.9. Errors are of the centre of mass, against the converged solution.\n\n"
    )
    return text + table(
        ["coordinates", "method", "h [ms]", "error [m]", "joint's violation [m]", "drift of energy [J]"],
        [[w, m, f"{1e3 * h:g}", f"{e:.1e}", f"{g:.1e}", f"{energy:.1e}"] for w, m, h, e, g, energy in rows],
    )


def index(rows: dict[str, Any]) -> str:
    text = (
        "# Papers\n\nThe mathematics is that of these papers, equation by equation. Each script of"
        " `experiments/papers/` computes what its paper numbers, with the library's functions on one side and something"
        " independent on the other.\n\n"
    )
    lines = []
    for script, (title, _) in NUMBERED.items():
        n, worst = len(rows.get(script, ())), max((row[3] for row in rows.get(script, ())), default=np.nan)
        says = f"{n} rows, largest residual {worst:.0e}" if n else "not run"
        lines.append([f"{{doc}}`{title} <{script}>`", "each numbered result", says])
    published = rows.get("park_chung_2005", ())
    same = sum(f"{row[3]:.4E}" == f"{row[4]:.4E}" for row in published)
    hidden = sum(row[5] == "~" for row in published)
    lines += [
        [f"{{doc}}`{PARK_CHUNG[0]} <park_chung_2005>`", "Tables VI to VIII, digit by digit",
         f"{same} of {len(published)} numbers; round-off explains {hidden} more" if published else "not run"],
        [f"{{doc}}`{MUELLER_TERZE[0]} <mueller_terze_2013>`", "four examples on two groups", "violations after 1 s"],
        [f"{{doc}}`{HEAVY_TOP[0]} <bruels_cardona_arnold_2012>`", "the heavy top", "errors at 0.8 s"],
    ]  # fmt: skip
    text += table(["paper", "what", "result"], lines)
    text += (
        "\nWhere the printed text is wrong, {doc}`/reference/formulas` has the form that holds and the test that shows"
        " it; {doc}`/explanation/equations` has the story in order. A worked example after Park, Bobrow and Ploen:"
        " {doc}`/explanation/minimum-energy-paths`.\n\n```{toctree}\n:hidden:\n\n"
    )
    scripts = [*NUMBERED, "park_chung_2005", "mueller_terze_2013", "bruels_cardona_arnold_2012"]
    return text + "\n".join(scripts) + "\n```\n"
