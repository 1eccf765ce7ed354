"""Scripts of experiments/ that no test runs, such as benchmarks, import names that exist."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "experiments").rglob("*.py"))


def missing(source):
    """Names in `from geomctrl... import` statements of a script that its module does not have."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "geomctrl":
            module = import_module(node.module)
            for name in (alias.name for alias in node.names):
                if not hasattr(module, name) and (
                    not hasattr(module, "__path__") or find_spec(f"{node.module}.{name}") is None
                ):
                    yield f"{node.module}.{name}"


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_scripts_import_names_that_exist(path):
    assert not list(missing(path.read_text(encoding="utf-8")))


def test_a_missing_name_is_found():
    source = "from geomctrl.motion.rollout import no_such_name, rollout\nfrom geomctrl import motion, no_such_module\n"
    assert list(missing(source)) == ["geomctrl.motion.rollout.no_such_name", "geomctrl.no_such_module"]
