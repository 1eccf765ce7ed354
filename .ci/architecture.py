"""Draw the packages of geomctrl and their imports: docs/_static/diagrams/architecture.svg.

    python .ci/architecture.py

Rows are the layers of the first contract in pyproject.toml, which import-linter enforces: a package imports only from
rows below it. Each box names the imports found in the source, without those that follow from the imports of these.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "_static" / "diagrams" / "architecture.svg"
WIDTH, ROW, HEIGHT = 900, 56, 48  # pixels: of the picture, from row to row, of a box
COLOURS = ("#333", "#0b5a8f")


def layers() -> list[list[str]]:
    """Packages row by row, from the command line down to the errors."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return [[name.strip(" ()") for name in row.split("|")] for row in contracts[0]["layers"]]


def home(name: str) -> Path:
    """The folder or file of a package; models/ and controllers/ are beside geomctrl/ in the repository."""
    places = (ROOT / "geomctrl" / name, ROOT / name, ROOT / "geomctrl" / f"{name}.py")
    return next(path for path in places if path.exists())


def imports(names: set[str]) -> set[tuple[str, str]]:
    """(importer, imported) for all packages, from the import statements of their files."""
    edges = set()
    for name in names:
        for path in [home(name)] if home(name).is_file() else home(name).rglob("*.py"):
            inside = len(path.relative_to(home(name)).parts) if home(name).is_dir() else 0  # levels below geomctrl
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom):
                    parts = (node.module or "").split(".") if node.module else []
                    if (node.level == 0 and parts[0] != "geomctrl") or 0 < node.level <= inside:
                        continue
                    parts = parts[1:] if node.level == 0 else parts
                    used = parts[:1] or [alias.name for alias in node.names]
                elif isinstance(node, ast.Import):
                    used = [x.name.split(".")[1] for x in node.names if x.name.startswith("geomctrl.")]
                else:
                    continue
                edges |= {(name, other) for other in used if other in names and other != name}
    return edges


def reduced(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the edges that follow from chains of others."""
    below: dict[str, set[str]] = {}

    def reach(name: str) -> set[str]:
        if name not in below:
            direct = {b for a, b in edges if a == name}
            below[name] = direct.union(*(reach(b) for b in direct))
        return below[name]

    return {(a, b) for a, b in edges if not any(b in reach(c) for x, c in edges if x == a and c != b)}


def description(name: str) -> str:
    path = home(name)
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path).read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").split("\n", 1)[0].rstrip(".")


def picture() -> str:
    rows = layers()
    names = {name for row in rows for name in row}
    edges = reduced(imports(names))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ROW * len(rows) + 10}" width="{WIDTH}"'
        ' font-family="Helvetica, Arial, sans-serif">',
        "<title>Packages of geomctrl: each imports only from rows below it</title>",
        '<rect width="100%" height="100%" rx="6" fill="#fff"/>',
    ]
    for k, row in enumerate(rows):
        width = (WIDTH - 20 - 10 * (len(row) - 1)) // len(row)
        for i, name in enumerate(row):
            out.append(box(10 + i * (width + 10), 10 + ROW * k, width, name, sorted(b for a, b in edges if a == name)))
    return "\n".join([*out, "</svg>", ""])


def box(x: int, y: int, width: int, name: str, used: list[str]) -> str:
    width_in_characters = (width - 16) // 6  # characters
    lines = [shortened(description(name), width_in_characters)] if width > 150 else []
    lines += [shortened("imports " + ", ".join(used), width_in_characters)] if used else []
    text = "".join(
        f'<text x="{x + 8}" y="{y + 30 + 13 * k}" font-size="11" fill="{COLOURS[k]}">{escape(line)}</text>'
        for k, line in enumerate(lines)
    )
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="4" fill="#eef5fb" stroke="#0072B2"/>'
        f'<text x="{x + 8}" y="{y + 16}" font-size="13" font-weight="bold">{name}</text>{text}'
    )


def shortened(text: str, width_in_characters: int) -> str:
    text = text.replace("`", "")
    return text if len(text) <= width_in_characters else text[: width_in_characters - 1].rpartition(" ")[0] + " ..."


if __name__ == "__main__":
    OUT.write_text(picture(), encoding="utf-8")
    print(f"wrote {OUT.relative_to(ROOT)}", file=sys.stderr)
