"""The architecture of CONTRIBUTING.md: no import circle, small functions and files, one meaning for each name.

import-linter (`make lint`) checks the direction of dependencies between packages; these tests check everything else.
The lists of exceptions are complete: an entry that is no longer needed fails too.
"""

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from syntax_trees import tree

import geomctrl

ROOT = Path(__file__).parents[1]
FUNCTION, FILE = 60, 380  # maximum of lines, without docstrings

ROWS = "a row a numbered equation, in the paper's order"
LONG_FUNCTIONS = {
    "experiments/papers/mueller_2018.py:appendix": ROWS,
    "experiments/papers/mueller_2018.py:body_fixed": ROWS,
    "experiments/papers/mueller_2018.py:one_body": ROWS,
    "experiments/papers/mueller_2018.py:recursions": ROWS,
    "experiments/papers/ploen_1999.py:motion": ROWS,
}
LONG_FILES = {
    "experiments/papers/mueller_2018.py": ROWS,
    "experiments/papers/park_bobrow_ploen_1995.py": ROWS,
}
CIRCLES: dict[str, set[str]] = {}  # module: imports that it must no longer have


def sources(*folders: str) -> list[Path]:
    return sorted(p for f in folders for p in (ROOT / f).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] != "geomctrl":
        parts.insert(0, "geomctrl")  # models and controllers, under the names by which they are imported
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


LIBRARY = sources("geomctrl", "models", "controllers")
MODULES = {module_name(path): path for path in LIBRARY}
TABLE = {name: f"geomctrl.{home}" for name, home in (geomctrl.NAMES | geomctrl.MODULES).items()}


def test_dependencies_point_one_way(tmp_path):
    """The contracts in pyproject.toml, which `make lint` checks too, models and controllers included."""
    pytest.importorskip("importlinter")
    command = [sys.executable, str(ROOT / ".ci" / "tree.py"), str(tmp_path), sys.executable, "-c"]
    code = "import sys; from importlinter import cli; sys.exit(cli.lint_imports(no_cache=True))"
    done = subprocess.run([*command, code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


# --- circles -----------------------------------------------------------------------------------------------------


def imported(path: Path, module: str) -> Iterator[str]:
    """Return the modules of geomctrl that the file imports anywhere, also in functions and under TYPE_CHECKING."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                name = TABLE.get(alias.name, f"{base}.{alias.name}") if base == "geomctrl" else f"{base}.{alias.name}"
                if name in MODULES:
                    yield name
                elif base in MODULES:
                    yield base


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return a cycle of the graph as a path that ends where it begins; empty if there is none."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for following in sorted(graph.get(node, ())):
            if result := visit(following, [*path, node]):
                return result
        done.add(node)
        return []

    return next((result for node in sorted(graph) if (result := visit(node, []))), [])


def test_circle_finds_circles_and_nothing_else():
    assert circle({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}) == ["b", "c", "d", "b"]


def test_imports_are_seen_wherever_they_stand(tmp_path):
    path = tmp_path / "loop.py"
    path.write_text(
        "import numpy\nfrom typing import TYPE_CHECKING\nfrom geomctrl import se3, Robot\n"
        "if TYPE_CHECKING:\n    from .run import Run\n"
        "def f():\n    from ..terms import dynamics\n    import geomctrl.errors\n"
    )
    assert sorted(imported(path, "geomctrl.control.loop")) == [
        "geomctrl.control.run",
        "geomctrl.errors",
        "geomctrl.lie.groups",
        "geomctrl.robot",
        "geomctrl.terms.dynamics",
    ]


def test_no_import_circle_in_functions_and_for_type_checking_included():
    graph = {module: {m for m in imported(path, module) if m != module} for module, path in MODULES.items()}
    assert sum(map(len, graph.values())) > 300
    without = {m: graph[m] - CIRCLES.get(m, set()) for m in graph}
    assert " -> ".join(circle(without)) == ""
    for module, others in CIRCLES.items():
        reference = without | {module: graph.get(module, set())}
        assert circle(reference), f"{module} -> {others}: no circle any more, take it off the list"


# --- sizes -------------------------------------------------------------------------------------------------------


def lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def documented(path: Path) -> int:
    """Return the number of lines in docstrings."""
    docstrings = [
        node.body[0]
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None
    ]
    return sum(map(lines, docstrings))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Return (name, lines without the docstring) of each function, including methods and inner functions."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    assert child.end_lineno is not None
                    first = child.body[0]
                    text = ast.get_docstring(child) is not None and isinstance(first, ast.Expr)
                    yield (
                        name,
                        child.end_lineno - child.lineno + 1 - (first.end_lineno - first.lineno + 1 if text else 0),
                    )
                yield from walk(child, f"{name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(tree(path), "")


def test_functions_are_short():
    long = {
        f"{path.relative_to(ROOT)}:{name}": n
        for path in sources("geomctrl", "models", "controllers", "experiments")
        for name, n in functions(path)
        if n > FUNCTION
    }
    assert {k: v for k, v in long.items() if k not in LONG_FUNCTIONS} == {}, f"more than {FUNCTION} lines"
    assert sorted(LONG_FUNCTIONS.keys() - long.keys()) == [], "short enough by now: take them off the list"


def test_files_are_short():
    result = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) - documented(path)
        for path in sources("geomctrl", "models", "controllers", "experiments")
    }
    long = {name: n for name, n in result.items() if n > FILE}
    assert {k: v for k, v in long.items() if k not in LONG_FILES} == {}, f"more than {FILE} lines"
    assert sorted(LONG_FILES.keys() - long.keys()) == [], "short enough by now: take them off the list"


# --- words -------------------------------------------------------------------------------------------------------


def test_comments_and_docstrings_cite_what_a_reader_has():
    """Comments refer to papers, docstrings and docs/, not to notes that are not in the repository."""
    word, citing = "FORMULAS", set()
    for path in sources("geomctrl", "models", "controllers", "experiments", "tests"):
        text = path.read_text(encoding="utf-8")
        if word not in text or path == Path(__file__).resolve():
            continue
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING) and word in token.string:
                citing.add(str(path.relative_to(ROOT)))
    assert citing == set()


def test_no_module_has_the_name_of_a_public_function():
    """`geomctrl.simulate` is a function; a module of that name would replace it once it is imported."""
    hiding = {name for name, home in TABLE.items() if f"geomctrl.{name}" in MODULES and home != f"geomctrl.{name}"}
    assert hiding | {name for name in geomctrl.NAMES if f"geomctrl.{name}" in MODULES} == set()


def test_no_test_imports_another():
    """Code that several tests share is a separate module: a test that imports another test fails where that is not
    found.
    """
    importing = {
        str(path.relative_to(ROOT)): re.findall(r"^ *from (?:[\w.]*\.)?test_\w+ import.*", text, re.MULTILINE)
        for path in sources("tests")
        if " test_" in (text := path.read_text(encoding="utf-8")) or ".test_" in text
    }
    assert {path: lines for path, lines in importing.items() if lines} == {}


def test_controllers_and_models_know_no_symbols():
    """The contract in pyproject.toml for the packages inside geomctrl/, which import-linter alone sees there."""
    rest = {"numbers", "untraceable", "backends.c_files"}  # modules of tracing that they may import
    allowed = {f"geomctrl.tracing.{name}" for name in rest}
    others = [m for m in MODULES if m.startswith(("geomctrl.controllers", "geomctrl.models"))]
    foreign = {m: {x for x in imported(MODULES[m], m) if x.startswith("geomctrl.tracing")} - allowed for m in others}
    assert len(others) > 40
    assert {m: x for m, x in foreign.items() if x} == {}


def test_the_model_array_stays_in_the_packages_that_call_kernels():
    packages = {"terms", "motion", "control", "mechanism", "compiler"}
    touching = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in LIBRARY
        if module_name(path).split(".")[1:2] and module_name(path).split(".")[1] not in packages
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr == "_model"
    ]
    assert touching == []
