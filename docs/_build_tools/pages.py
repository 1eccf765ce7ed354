"""Pages and cells that the build makes: the gallery, tables of benchmarks, and ```python blocks that are executed.

The gallery has a page for every file of experiments/demos, with its picture and what it prints. A script is run again
only when it has changed; DOCS_RUN=0 leaves that out. The generated pages are in docs/how-to/gallery.

A comment on a line of its own in docs/benchmarks.md is replaced by a table of docs/_static/bench.json:

    <!-- bench: about -->                        machine, date and versions
    <!-- bench: dynamics, ratios -->             a column per robot, a row per term and peer
    <!-- bench: dynamics, batches -->            a table of the results as they are

Pages are plain Markdown. A block ```python is executed, a block ```py is only shown. The first line `# hidden` hides
the input of a cell, and `# raises` declares that it ends in an error, which is shown.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
DEMOS = DOCS.parent / "experiments" / "demos"
GALLERY = DOCS / "how-to" / "gallery"
PICTURES = GALLERY / "pictures"
STYLE = DOCS.parent / "geomctrl" / "viewing" / "gallery.mplstyle"
SECTIONS = {
    "Tracking and adapting": ["pd_and_computed_torque", "unknown_load", "flexible_joints", "null_space"],
    "Proofs": ["wrong_coriolis", "region_of_attraction", "contraction"],
    "Contact and limits": ["impedance_at_a_wall", "collision", "torque_limits"],
    "Flight and swing": ["quadrotor_upside_down", "satellite", "swing_up"],
    "Hardware and sweeps": ["behind_encoders", "payload_and_gain", "identify_payload"],
    "Geometry and mechanisms": ["robot_from_dh", "four_bar", "least_energy", "energy_kept"],
}
ON_FIRST_PAGE = ["quadrotor_upside_down", "region_of_attraction", "null_space", "least_energy"]
WIDTH, HEIGHT = 520, 310  # of a thumbnail, pixels

BENCHMARKS = DOCS / "_static" / "bench.json"
MARK = re.compile(r"^<!-- bench: (.+) -->$", re.MULTILINE)
UNITS = ("us", "ms", "ns", "kB", "J", "m", "percent")
ABSENT = "*Not measured yet: `make bench` measures it and writes `docs/_static/bench.json`.*"
HEADINGS = {
    "real_time": "times real time", "throughput": "times a Python loop over Pinocchio", "nv": "degrees of freedom",
    "states_per_s": "states a second", "of_one_core": "times one core", "ratio": "times the fastest",
    "of_four_forward_dynamics": "times four forward dynamics", "met": "goal met", "what": "loop", "found": "measured",
    "term": "function", "missing": "no time because", "ratio_to_rk4": "mj_step with RK4 / this",
}  # fmt: skip

CELL_HEADER = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TAGS = {"# hidden": "remove-input", "# raises": "raises-exception"}


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Write the files of `folder`; unchanged files keep their date, files that are not in `pages` are deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in set(folder.iterdir()) - {folder / name for name in pages}:
        if path.is_file():
            path.unlink()


# --- the gallery ---------------------------------------------------------------------------------------------------


def write_gallery(app: Any) -> None:
    """Sphinx's event builder-inited."""
    names = [name for section in SECTIONS.values() for name in section]
    files = {path.stem for path in DEMOS.glob("*.py")}
    assert files == set(names), f"SECTIONS and experiments/demos differ: {sorted(files ^ set(names))}"
    PICTURES.mkdir(parents=True, exist_ok=True)
    if os.environ.get("DOCS_RUN", "1") == "1":
        run_demos([name for name in names if _stamp(name) != _read(PICTURES / f"{name}.stamp")])
    pages = {f"{name}.md": demo_page(name) for name in names}
    pages |= {"index.md": gallery_index(), "first.txt": cards(ON_FIRST_PAGE, "how-to/gallery/", "2 2 4 4")}
    write_pages(GALLERY, pages)


def run_demos(names: list[str]) -> None:
    """Run demos in processes of their own, one per processor."""
    environment = {**os.environ, "MPLBACKEND": "agg"}
    count = os.cpu_count() or 1
    jobs = [[sys.executable, __file__, *part] for k in range(count) if (part := names[k::count])]
    running = [subprocess.Popen(job, env=environment) for job in jobs]
    failed = [process.args for process in running if process.wait()]
    assert not failed, f"a demo failed: {failed}"


def keep_pictures(name: str) -> None:
    """Run a demo in this process; keep its picture, a thumbnail and what it prints."""
    import matplotlib.pyplot as plt
    from PIL import Image, ImageOps

    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        plt.show = lambda: plt.gcf().savefig("picture.png")
        runpy.run_path(str(DEMOS / f"{name}.py"), run_name="__main__")
        plt.close("all")
        plt.rcdefaults()
        with Image.open("picture.png") as picture:
            whole = picture.convert("RGB")
    whole.save(PICTURES / f"{name}.png", optimize=True)
    small = ImageOps.pad(whole, (WIDTH, HEIGHT), Image.Resampling.LANCZOS, color="white")
    small.save(PICTURES / f"{name}_small.png", optimize=True)
    (PICTURES / f"{name}.txt").write_text(printed.getvalue(), encoding="utf-8")
    (PICTURES / f"{name}.stamp").write_text(_stamp(name), encoding="utf-8")


def demo_page(name: str) -> str:
    title, description, code = demo_parts(name)
    lines = [f"# {title}", "", description, ""]
    if (PICTURES / f"{name}.png").exists():
        lines += [f"```{{image}} pictures/{name}.png", f":alt: {title}", ":class: dark-light", "```", ""]
    lines += ["```py", code, "```", ""]
    if printed := _read(PICTURES / f"{name}.txt"):
        lines += ["It prints", "", "```text", printed.rstrip(), "```", ""]
    lines += [f"Run it from the root of the repository: `python experiments/demos/{name}.py`", ""]
    return "\n".join(lines)


def demo_parts(name: str) -> tuple[str, str, str]:
    """The title, the description below it and the code of a demo."""
    source = (DEMOS / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, description = (ast.get_docstring(tree) or "").partition("\n\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip("\n")
    return title, description, code


def gallery_index() -> str:
    lines = ["# Gallery", "", "Each of these short scripts makes one picture. Take one that is close to your problem"]
    lines += ["and change it.", ""]
    for title, names in SECTIONS.items():
        lines += [f"## {title}", "", cards(names), ""]
    hidden = [name for section in SECTIONS.values() for name in section]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *hidden, "```", ""])


def cards(names: list[str], folder: str = "", columns: str = "2 2 3 3") -> str:
    """A grid of thumbnails that link to their pages."""
    lines = [f"::::{{grid}} {columns}", ":gutter: 2", ":class-container: gallery", ""]
    for name in names:
        lines += [f":::{{grid-item-card}} {demo_parts(name)[0]}", f":link: {folder}{name}", ":link-type: doc"]
        if (PICTURES / f"{name}_small.png").exists():
            lines += [f":img-top: {folder}pictures/{name}_small.png"]
        lines += [":::", ""]
    return "\n".join([*lines, "::::", ""])


def _stamp(name: str) -> str:
    return hashlib.sha256((DEMOS / f"{name}.py").read_bytes() + STYLE.read_bytes()).hexdigest()


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


# --- tables of benchmarks ------------------------------------------------------------------------------------------


def read_benchmarks(app: Any, name: str, source: list[str]) -> None:
    """Sphinx's event source-read."""
    if name == "benchmarks":
        app.env.note_dependency(str(BENCHMARKS))
        results = json.loads(BENCHMARKS.read_text(encoding="utf-8")) if BENCHMARKS.exists() else {}
        source[0] = with_tables(source[0], results)


def read_commands(app: Any, name: str, source: list[str]) -> None:
    """Sphinx's event source-read: append the help of all commands to the page about them."""
    if name == "reference/commands":
        from geomctrl.cli.main import app as program

        help_pages = program.generate_docs(heading_level=1)
        source[0] += "\n" + help_pages[help_pages.index("\n## geomctrl track") :]


def with_tables(text: str, results: dict[str, Any]) -> str:
    return MARK.sub(lambda mark: table(*re.split(r",\s*", mark[1], maxsplit=1), results=results), text)


def table(name: str, which: str = "", *, results: dict[str, Any]) -> str:
    if name == "about":
        return about(results)
    tables = results.get(name, {}).get("tables", {})
    if which == "ratios":
        return ratios(tables["single calls"]) if "single calls" in tables else ABSENT
    chosen = [title for title in tables if title == which] or [t for t in tables if t.startswith(which)]
    if not chosen:
        return ABSENT
    texts = [all_columns(tables[title]) for title in chosen]
    return texts[0] if len(texts) == 1 else "\n\n".join(f"*{title}*\n\n{t}" for title, t in zip(chosen, texts))


def about(results: dict[str, Any]) -> str:
    """Machine, versions and date: one line for all benchmarks that share them."""
    if not results:
        return ABSENT
    names: dict[str, list[str]] = {}
    for name, content in sorted(results.items()):
        machine, versions = content["machine"], content["versions"]
        line = f"{machine['processor']}, {machine['processors']} of them"
        line += f"{' (virtual)' if machine['virtual'] else ''}, {machine['memory_GiB']} GiB, {machine['system']}"
        line += f"; Python {machine['python']}, " + ", ".join(f"{k} {v}" for k, v in versions.items())
        line += f"; {content['date'][:10]}" + (f", commit `{content['commit']}`" if content["commit"] else "")
        line += ". **Rough: made with `--quick`.**" if content["quick"] else "."
        names.setdefault(line, []).append(name)
    return "\n".join(f"- *{', '.join(group)}*: {line}" for line, group in names.items())


def ratios(rows: list[dict]) -> str:
    """Time of geomctrl divided by the peer's, a column per robot."""
    robots = list(dict.fromkeys((row["robot"], row["nv"]) for row in rows))
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        lines.setdefault((row["term"], row["peer"]), {})[row["robot"]] = row["ratio"]
    heads = ["geomctrl", "other library", *(f"{name} ({nv})" for name, nv in robots)]
    body = [[f"`{t}`", p, *(number(x.get(name)) for name, _ in robots)] for (t, p), x in lines.items()]
    return markdown(heads, body)


def all_columns(rows: list[dict]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    body = [[f"`{row[c]}`" if c == "term" and c in row else number(row.get(c)) for c in columns] for row in rows]
    return markdown([heading(c) for c in columns], body)


def heading(column: str) -> str:
    """The name of a column with its unit in brackets."""
    if column in HEADINGS:
        return HEADINGS[column]
    name, _, unit = column.rpartition("_")
    if name and unit in UNITS:
        return f"{name.replace('_', ' ')} [{'µs' if unit == 'us' else '%' if unit == 'percent' else unit}]"
    return column.replace("[us]", "[µs]").replace("_", " ")


def number(x: Any) -> str:
    if x is None:
        return ""
    if isinstance(x, bool):
        return "yes" if x else "no"
    if isinstance(x, float):
        size = abs(x)
        if x == 0.0 or 1e-3 <= size < 1e5:
            return f"{x:.0f}" if size >= 100 else f"{x:.3g}" if size >= 10 else f"{x:.2g}"
        return f"{x:.1e}"
    return str(x).replace("|", r"\|").replace("_", r"\_").replace("<", r"\<")


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(x) + " |" for x in (heads, ["---"] * len(heads), *rows))


# --- names in tables -----------------------------------------------------------------------------------------------


def link_names(paths: list[str]) -> Callable[[Any, str, list[str]], None]:
    """A handler of Sphinx's event source-read: code in tables that names one of `paths` becomes a link to it.

    Bare names are linked if they are unique among `paths`, or methods of Robot, and look like no argument:
    `Passivity`, `mass_matrix`.
    """
    targets: dict[str, set[str]] = {}
    for path in paths:
        parts = path.split(".")
        for k in range(len(parts)):
            if k < len(parts) - 1 or parts[k][0].isupper() or "_" in parts[k]:
                targets.setdefault(".".join(parts[k:]), set()).add(path)

    def linked(code: re.Match[str]) -> str:
        owner, dot, attribute = code[1].split("(")[0].partition(".")
        owner = {"gc": "geomctrl", "robot": "Robot", "so3": "SO3", "se3": "SE3"}.get(owner, owner) if dot else owner
        name = f"{owner}{dot}{attribute}"
        matches = targets.get(name, set())
        if len(matches) > 1:  # the methods of a robot have namesakes in gc.papers
            matches = {path for path in matches if path.startswith("geomctrl.Robot.")}
        return (
            f"{{py:obj}}`{code[1]} <{min(matches)}>`"
            if len(matches) == 1 and not set(code[1]) & set("<>|")
            else code[0]
        )

    def read(app: Any, name: str, source: list[str]) -> None:
        if Path(app.env.doc2path(name)).suffix == ".md":
            blocks = re.split(r"(^```.*?^```)", source[0], flags=re.MULTILINE | re.DOTALL)
            row = re.compile(r"^\|.*$", re.MULTILINE)
            source[0] = "".join(
                x if x.startswith("```") else row.sub(lambda line: re.sub(r"(?<!\})`([^`]+)`", linked, line[0]), x)
                for x in blocks
            )

    return read


# --- cells ---------------------------------------------------------------------------------------------------------


def read_cells(app: Any, name: str, source: list[str]) -> None:
    """Sphinx's event source-read: a page with ```python blocks becomes a notebook."""
    if Path(app.env.doc2path(name)).suffix == ".md" and BLOCK.search(source[0]):
        source[0] = CELL_HEADER + BLOCK.sub(_cell, source[0])


def _cell(block: re.Match[str]) -> str:
    code = block[1]
    first = code.split("\n", 1)[0].strip()
    if first not in TAGS:
        return f"```{{code-cell}} ipython3\n{code}```"
    return f"```{{code-cell}} ipython3\n:tags: [{TAGS[first]}]\n{code.split(chr(10), 1)[1]}```"


def execute_cells(app: Any, env: Any, names: list[str]) -> None:
    """Sphinx's event env-before-read-docs: execute all pages, as many at once as there are processors.

    MyST-NB alone executes page after page. It takes results from the cache that this function fills, and executes a
    page that failed here again, to report the error.
    """
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn
    from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
    from myst_nb.core.read import create_nb_reader

    config = env.mystnb_config
    if config.execution_mode != "cache":
        return
    cache = get_cache(config.execution_cache_path)
    jobs = []
    for name in names:
        path = str(env.doc2path(name))
        source = [Path(path).read_text(encoding="utf-8")]
        read_cells(app, name, source)
        if (reader := create_nb_reader(path, env.myst_config, config, source[0])) is None:
            continue
        notebook = reader.read(source[0])
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            jobs.append((path, notebook))

    def execute(job: tuple[str, Any]) -> ExecutionResult:
        with tempfile.TemporaryDirectory() as folder:
            return single_nb_execution(
                job[1], cwd=folder, allow_errors=config.execution_allow_errors, timeout=config.execution_timeout
            )

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (path, notebook), result in zip(jobs, pool.map(execute, jobs)):
            if result.err is None:
                bundle = CacheBundleIn(notebook, path, data={"execution_seconds": result.time})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        keep_pictures(each)
