"""What makes geomctrl.models and geomctrl.controllers one package each, wherever they are imported from."""

import ast
import importlib.metadata
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import geomctrl

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_package_is_listed_with_where_it_lies():
    """Also in an unpacked sdist, which has no symlinks: finding packages there would miss models and controllers."""
    tool = PROJECT["tool"]["setuptools"]
    assert tool["package-dir"] == {
        "geomctrl": "geomctrl",
        "geomctrl.models": "models",
        "geomctrl.controllers": "controllers",
    }
    folders = {p.parent for p in (ROOT / "geomctrl").rglob("*.py")}
    inside = {".".join(p.relative_to(ROOT).parts) for p in folders} | {"geomctrl.models", "geomctrl.controllers"}
    assert tool["packages"] == sorted(inside)


def test_every_package_has_an_init_that_says_what_it_is():
    for package in PROJECT["tool"]["setuptools"]["packages"]:
        tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), package


@pytest.mark.parametrize("name", ["models", "controllers"])
def test_symlinks_let_checkers_see_the_mapping(name):
    link = ROOT / "geomctrl" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"
    assert (link / "__init__.py").is_file()


@pytest.mark.parametrize("name", ["models", "controllers"])
def test_the_packages_are_not_importable_at_the_top_level_elsewhere(name, tmp_path):
    code = f"import geomctrl.{name}, sys; assert '{name}' not in sys.modules; import {name}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "ModuleNotFoundError" in done.stderr or os.environ.get("PYTHONPATH")


def test_it_is_typed_and_licensed():
    assert (Path(geomctrl.__file__).parent / "py.typed").is_file()
    assert "MIT License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_installed_distribution_is_this_project():
    distribution = importlib.metadata.distribution("geomctrl")
    assert distribution.version == PROJECT["project"]["version"]
    (script,) = [e for e in distribution.entry_points if e.group == "console_scripts"]
    assert (script.name, script.value) == ("geomctrl", "geomctrl.cli.main:main")
    assert callable(script.load())


def test_pytest_finds_the_plugin_where_the_distribution_is_installed():
    """By the module's name, so that it is the same plugin for `-p` and `pytest_plugins`, not a second one."""
    assert PROJECT["project"]["entry-points"]["pytest11"] == {"geomctrl.testing.plugin": "geomctrl.testing.plugin"}


def test_the_changelog_has_a_place_for_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "[Unreleased]" in text or f"[{PROJECT['project']['version']}]" in text


def test_make_targets_are_those_the_readme_may_name():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "bench", "lint", "clean"):
        assert f"\n{target}:" in text
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    for word in ("://", "index-url", "find-links"):
        assert word not in text + (ROOT / ".ci" / "run").read_text(encoding="utf-8")
