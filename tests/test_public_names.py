"""The public names are in one table, the same for type checkers; nothing is imported before it is used."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import geomctrl

FOLDER = Path(geomctrl.__file__).resolve().parent


def table(name):
    """The dictionary of this name in geomctrl/__init__.py, as written."""
    for node in ast.parse((FOLDER / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise AssertionError(f"no {name} in geomctrl/__init__.py")


NAMES, MODULES = table("NAMES"), table("MODULES")


def stub():
    """The imports of __init__.pyi: the name and the module that it comes from."""
    result = {}
    for node in ast.parse((FOLDER / "__init__.pyi").read_text(encoding="utf-8")).body:
        if ast.unparse(node) == "__version__: str":
            continue
        assert isinstance(node, ast.ImportFrom), ast.unparse(node)
        assert node.level == 1, ast.unparse(node)
        for alias in node.names:
            assert alias.asname == alias.name, f"not re-exported: {ast.unparse(node)}"
            assert alias.name not in result, f"twice: {alias.name}"
            result[alias.name] = node.module or ""
    return result


def test_type_checkers_see_the_same_table():
    modules = {name: path.rpartition(".")[0] for name, path in MODULES.items()}
    assert stub() == {**NAMES, **modules}


@pytest.mark.parametrize("name", ["identification", "testing"])
def test_packages_say_the_same_to_type_checkers(name):
    package = getattr(geomctrl, name)
    text = (FOLDER / name / "__init__.pyi").read_text(encoding="utf-8")
    seen = {name: file for file, name in re.findall(r"^from \.?([\w.]+) import \w+ as (\w+)$", text, re.MULTILINE)}
    assert seen == package.NAMES
    assert set(package.__all__) == set(package.NAMES)
    assert set(dir(package)) >= set(package.__all__)
    for public in package.__all__:
        home = seen[public] if seen[public].startswith("geomctrl.") else f"{package.__name__}.{seen[public]}"
        assert getattr(package, public) is not import_module(home)
        assert public not in package.NAMES or not (FOLDER / name / f"{public}.py").exists(), "a file takes its place"
    with pytest.raises(AttributeError, match="has no attribute 'guess'"):
        _ = package.guess


def test_every_name_is_where_the_table_says():
    assert not set(NAMES) & set(MODULES)
    for name, path in NAMES.items():
        assert getattr(geomctrl, name) is getattr(import_module(f"geomctrl.{path}"), name)
        assert getattr(geomctrl, name).__module__ == f"geomctrl.{path}", name
    for name, path in MODULES.items():
        assert path.rpartition(".")[2] == name
        module = import_module(f"geomctrl.{name}")  # as in `from geomctrl.references import Spline`
        assert getattr(geomctrl, name) is import_module(f"geomctrl.{path}") is module
        assert module.__spec__.name == module.__name__ == f"geomctrl.{path}"
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'geomctrl\.guess'"):
        import_module("geomctrl.guess")


def test_dir_shows_every_name_and_others_are_refused():
    assert set(dir(geomctrl)) >= {*NAMES, *MODULES}
    assert geomctrl.__all__ == sorted([*NAMES, *MODULES])
    assert not [
        name
        for name in dir(geomctrl.models)
        if not name.startswith("__") and not callable(getattr(geomctrl.models, name))
    ]
    laws = {law.__name__ for law in geomctrl.controllers.classes().values()}
    assert {name for name in dir(geomctrl.controllers) if not name.startswith("__")} == laws | {"classes"}
    with pytest.raises(AttributeError, match="module 'geomctrl' has no attribute 'robots'"):
        _ = geomctrl.robots


@pytest.mark.quick(1)
@pytest.mark.parametrize("arguments", [["-m", "geomctrl"], ["-c", "import geomctrl.cli.main as m; m.main()"]])
def test_python_m_geomctrl_is_the_command_line(arguments):
    done = subprocess.run([sys.executable, *arguments, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert geomctrl.__version__ in done.stdout
    wrong = subprocess.run([sys.executable, *arguments, "no-such-command"], capture_output=True, text=True, check=False)
    assert "no-such-command" in wrong.stderr


HEAVY = (
    "numpy",
    "numba",
    "scipy",
    "matplotlib",
    "cvxpy",
    "control",
    "yourdfpy",
    "mujoco",
    "cyclopts",
    "rich",
    "hypothesis",
    "xarray",
    "zarr",
    "dask",
    "distributed",
)
CALCULATES = {"numpy"}


@pytest.mark.quick(5)
@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import geomctrl; dir(geomctrl)", set()),
        ("import geomctrl as gc; gc.errors, gc.GeomctrlError", set()),
        ("import geomctrl as gc; gc.Robot, gc.Body, gc.Joint", CALCULATES),
        ("import geomctrl as gc; gc.simulate, gc.Plant, gc.rollout, gc.controllers, gc.references", CALCULATES),
        ("import geomctrl as gc; gc.sweep, gc.replay, gc.measures.TrackingRMS()", CALCULATES),
        ("from geomctrl import models; [models.load(name) for name in models.names()]", CALCULATES),
        ("from geomctrl.identification import base_parameters, Dataset, RegressorModel, fit", CALCULATES),
        (
            "from geomctrl import derivatives, integrators, so3, se3, papers, testing; testing.assert_lyapunov",
            CALCULATES,
        ),
        ("import geomctrl.testing.evidence; dir(geomctrl.testing)", set()),
        ("import geomctrl.cli.main", {"cyclopts", "rich"}),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code, allowed):
    code += f"\nimport sys\nprint(*({set(HEAVY)} & set(sys.modules)))"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert set(loaded) <= allowed
