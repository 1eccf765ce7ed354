"""The gallery: a page for every file of experiments/demos, with its picture and what it prints; and their thumbnails.

Each example is run when the site is built, again only when it has changed; DOCS_RUN=0 leaves that out. What is written
lies in docs/how-to/gallery, which is nobody's to edit.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from writing import write_pages

DOCS = Path(__file__).parents[1]
DEMOS = DOCS.parent / "experiments" / "demos"
FOLDER = DOCS / "how-to" / "gallery"
PICTURES = FOLDER / "pictures"
STYLE = DOCS.parent / "geomctrl" / "viewing" / "gallery.mplstyle"
SECTIONS = {
    "Tracking and adapting": ["pd_and_computed_torque", "unknown_load", "flexible_joints", "null_space"],
    "Proofs": ["wrong_coriolis", "region_of_attraction", "contraction"],
    "Contact and limits": ["impedance_at_a_wall", "collision", "torque_limits"],
    "Flight and swing": ["quadrotor_upside_down", "satellite", "swing_up"],
    "Hardware and sweeps": ["behind_encoders", "payload_and_gain", "identify_payload"],
    "Geometry and mechanisms": ["robot_from_dh", "four_bar", "least_energy", "energy_kept"],
}
FIRST = ["quadrotor_upside_down", "region_of_attraction", "null_space", "least_energy"]  # on the site's first page
WIDTH, HEIGHT = 520, 310  # of a thumbnail, pixels


def write(app: Any) -> None:
    """Sphinx's event builder-inited."""
    names = [name for section in SECTIONS.values() for name in section]
    found = {path.stem for path in DEMOS.glob("*.py")}
    assert found == set(names), f"not in the gallery, or not there: {sorted(found ^ set(names))}"
    PICTURES.mkdir(parents=True, exist_ok=True)
    if os.environ.get("DOCS_RUN", "1") == "1":
        run([name for name in names if _stamp(name) != _read(PICTURES / f"{name}.stamp")])
    pages = {f"{name}.md": page(name) for name in names} | {
        "index.md": index(),
        "first.txt": cards(FIRST, "how-to/gallery/", "2 2 4 4"),
    }
    write_pages(FOLDER, pages)


def run(names: list[str]) -> None:
    """Run examples, in a process of their own."""
    if names:
        environment = {**os.environ, "MPLBACKEND": "agg"}
        subprocess.run([sys.executable, __file__, *names], check=True, env=environment)


def pictures(name: str) -> None:
    """Run an example here; keep its picture, a thumbnail of it and what it has printed."""
    import matplotlib.pyplot as plt
    from PIL import Image, ImageOps

    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(said):
        runpy.run_path(str(DEMOS / f"{name}.py"), run_name="__main__")
        plt.close("all")
        plt.rcdefaults()
        with Image.open(f"out/demos/{name}.png") as picture:
            whole = picture.convert("RGB")
    whole.save(PICTURES / f"{name}.png", optimize=True)
    small = ImageOps.pad(whole, (WIDTH, HEIGHT), Image.Resampling.LANCZOS, color="white")
    small.save(PICTURES / f"{name}_small.png", optimize=True)
    (PICTURES / f"{name}.txt").write_text(said.getvalue(), encoding="utf-8")
    (PICTURES / f"{name}.stamp").write_text(_stamp(name), encoding="utf-8")


def page(name: str) -> str:
    title, words, code = parts(name)
    lines = [f"# {title}", "", words, ""]
    if (PICTURES / f"{name}.png").exists():
        lines += [f"```{{image}} pictures/{name}.png", f":alt: {title}", ":class: dark-light", "```", ""]
    lines += ["```py", code, "```", ""]
    if said := _read(PICTURES / f"{name}.txt"):
        lines += ["It prints", "", "```text", said.rstrip(), "```", ""]
    lines += [f"From the repository's root: `python experiments/demos/{name}.py`", ""]
    return "\n".join(lines)


def parts(name: str) -> tuple[str, str, str]:
    """The title, the words below it and the code of an example."""
    source = (DEMOS / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, words = (ast.get_docstring(tree) or "").partition("\n\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip("\n")
    return title, words, code


def index() -> str:
    lines = ["# Gallery", "", "Short scripts with a picture each: take one that is near, and change it.", ""]
    for title, names in SECTIONS.items():
        lines += [f"## {title}", "", cards(names), ""]
    hidden = [name for section in SECTIONS.values() for name in section]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *hidden, "```", ""])


def cards(names: list[str], folder: str = "", columns: str = "2 2 3 3") -> str:
    """A grid of thumbnails that lead to their pages."""
    lines = [f"::::{{grid}} {columns}", ":gutter: 2", ":class-container: gallery", ""]
    for name in names:
        lines += [f":::{{grid-item-card}} {parts(name)[0]}", f":link: {folder}{name}", ":link-type: doc"]
        if (PICTURES / f"{name}_small.png").exists():
            lines += [f":img-top: {folder}pictures/{name}_small.png"]
        lines += [":::", ""]
    return "\n".join([*lines, "::::", ""])


def _stamp(name: str) -> str:
    return hashlib.sha256((DEMOS / f"{name}.py").read_bytes() + STYLE.read_bytes()).hexdigest()


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    for each in sys.argv[1:]:
        pictures(each)
