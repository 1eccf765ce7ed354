"""The page on controllers: its Python runs, and every law in its table is one."""

import re
from pathlib import Path

from geomctrl import controllers

PAGE = (Path(__file__).parents[2] / "docs" / "controllers.md").read_text(encoding="utf-8")


def test_its_python_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/controllers.md", "exec"), {})


def test_its_table_names_controllers():
    named = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert len(named) >= 6
    for name in named:
        assert isinstance(getattr(controllers, name), type)
