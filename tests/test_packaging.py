"""geomctrl.models and geomctrl.controllers are one package each, from wherever they are imported."""

import ast
import importlib.metadata
import os
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import geomctrl

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages() -> set[Path]:
    """Return every folder of the package with Python code, including those next to geomctrl/."""
    return {path.parent for name in ("geomctrl", "models", "controllers") for path in (ROOT / name).rglob("*.py")}


def test_every_dependency_has_a_lowest_version():
    """The versions that `make minimum` installs."""
    command = [sys.executable, str(ROOT / ".ci" / "minimum.py")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    dependencies = PROJECT["project"]["dependencies"]
    assert [line.partition("==")[0] for line in lines] == [x.partition(">=")[0] for x in dependencies]
    assert all(line.partition("==")[2] in x for line, x in zip(lines, dependencies, strict=True))


def test_every_package_has_an_init_that_says_what_it_is():
    for folder in packages():
        tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), folder


def test_no_symlink_is_committed():
    """On Windows, a clone has text files in place of links."""
    if not (ROOT / ".git").exists():
        pytest.skip("no clone of the repository")
    command = ["git", "-C", str(ROOT), "ls-files", "--stage"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) > 500
    assert [line for line in lines if line.startswith("120000")] == []


def test_the_repository_is_laid_out_as_one_package(tmp_path):
    """geomctrl.models is models/ wherever Python starts, and the tree of .ci/tree.py equals that of a wheel."""
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    names = ["geomctrl.models.fixed_base", "geomctrl.controllers.slotine_li", "geomctrl.robot"]
    code = f"import importlib; print(*(importlib.import_module(x).__file__ for x in {names}), sep='\\n')"
    command = [sys.executable, "-c", code]
    files = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=True).stdout
    expected = ["models/fixed_base.py", "controllers/slotine_li.py", "geomctrl/robot.py"]
    assert files.splitlines() == [str(ROOT / x) for x in expected]

    tree = tmp_path / "tree"
    subprocess.run([sys.executable, str(ROOT / ".ci" / "tree.py"), str(tree)], check=True)
    files = subprocess.run(
        command, cwd=tree, env={**path, "PYTHONPATH": ""}, capture_output=True, text=True, check=True
    )
    assert files.stdout.splitlines() == [str(tree / f"{name.replace('.', '/')}.py") for name in names]


def test_setuptools_installs_every_package(monkeypatch):
    setuptools, calls = pytest.importorskip("setuptools"), []
    monkeypatch.setattr(setuptools, "setup", lambda **arguments: calls.append(arguments))
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(ROOT / "setup.py"))
    (arguments,) = calls
    assert arguments["package_dir"] == {"geomctrl.models": "models", "geomctrl.controllers": "controllers"}
    assert len(arguments["packages"]) == len(set(arguments["packages"]))
    folders = {name.replace(".", "/") for name in arguments["packages"]}
    inside = {path.relative_to(ROOT).as_posix() for path in packages()}
    assert folders == {x if x.startswith("geomctrl") else f"geomctrl/{x}" for x in inside}


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
    assert distribution.version == geomctrl.__version__
    (script,) = [e for e in distribution.entry_points if e.group == "console_scripts"]
    assert (script.name, script.value) == ("geomctrl", "geomctrl.cli.main:main")
    assert callable(script.load())


def test_pytest_finds_the_plugin_where_the_distribution_is_installed():
    """The plugin is registered by its module's name, so that `-p` and `pytest_plugins` do not load it twice."""
    assert PROJECT["project"]["entry-points"]["pytest11"] == {"geomctrl.testing.plugin": "geomctrl.testing.plugin"}


def test_the_changelog_has_a_place_for_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "[Unreleased]" in text or f"[{geomctrl.__version__}]" in text


def test_the_badges_are_true():
    said = {p.stem: p.read_text(encoding="utf-8") for p in (ROOT / "docs" / "_static" / "badges").glob("*.svg")}
    needed = PROJECT["project"]["requires-python"].removeprefix(">=")
    alpha = any("Alpha" in c for c in PROJECT["project"]["classifiers"])
    assert f"Python: {needed} or newer" in said.pop("python")
    assert f"version: {geomctrl.__version__}{', alpha' if alpha else ''}" in said.pop("version")
    assert f"license: {PROJECT['project']['license']}" in said.pop("license")
    assert "checked by pyright" in said.pop("typing")
    assert "(BIN))/pyright" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert not said


def test_the_citation_is_of_this_version():
    assert f"\nversion: {geomctrl.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_make_targets_are_those_the_readme_may_name():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "bench", "lint", "clean"):
        assert f"\n{target}:" in text
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    for word in ("://", "index-url", "find-links"):
        assert word not in text + (ROOT / ".ci" / "run").read_text(encoding="utf-8")
