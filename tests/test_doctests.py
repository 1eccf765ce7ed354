"""The examples in docstrings run and print what they say."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import geomctrl

ROOT = Path(geomctrl.__file__).resolve().parents[1]


def modules():
    """The names of library modules with examples in their docstrings."""
    for folder in ("geomctrl", "models", "controllers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE):
                parts = path.relative_to(ROOT).with_suffix("").parts
                parts = parts if folder == "geomctrl" else ("geomctrl", *parts)
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = list(modules())


def test_there_are_examples():
    assert "geomctrl.robot" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may write files
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert tried > 0
    assert failed == 0
