"""```python blocks of Markdown pages become cells that are run when the site is built.

The pages stay plain Markdown, as code hosts show them. A block that is to be shown and not run is ```py. The first line
`# hidden` keeps a cell's input out of sight, `# raises` says that it ends in an error, which is shown.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HEADER = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TAGS = {"# hidden": "remove-input", "# raises": "raises-exception"}
ROOT = Path(__file__).parents[2]


def read(app: Any, name: str, source: list[str]) -> None:
    """Sphinx's event source-read."""
    if Path(app.env.doc2path(name)).suffix == ".md" and BLOCK.search(source[0]):
        source[0] = HEADER + cells(source[0])


def cells(text: str) -> str:
    return BLOCK.sub(_cell, text)


def _cell(found: re.Match[str]) -> str:
    code = found[1]
    first = code.split("\n", 1)[0].strip()
    if first not in TAGS:
        return f"```{{code-cell}} ipython3\n{code}```"
    return f"```{{code-cell}} ipython3\n:tags: [{TAGS[first]}]\n{code.split(chr(10), 1)[1]}```"
