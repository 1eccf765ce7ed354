"""The Python blocks of the README and of pages run, and print what the text says; files that they name exist."""

import re
from pathlib import Path

import numpy as np
import pytest

import geomctrl as gc
from geomctrl.identification.excitation import load_surroundings

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.quick(1)
@pytest.mark.parametrize(("page", "proof"), [("README.md", "proof"), ("docs/tutorials/overview.md", "certificate")])
def test_python_on_the_first_pages_runs(page, proof, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes files
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    space: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), space)
    printed = capsys.readouterr().out
    assert "V does not change as promised" in printed
    assert printed.count("VIOLATED") == 0
    assert space["run"].ok
    assert space[proof].proved


def test_the_wrong_law_of_the_readme_passes_in_simulation_and_its_message_is_the_one_shown():
    """Statements of the text around the code."""
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    space: dict = {}
    exec("\n".join(blocks[:2]), space)
    start = {"q0": space["q_d"] + 0.3, "v0": [0.0] * 7, "t_end": 2.0, "dt": 1e-3}
    assert gc.simulate(space["robot"], space["wrong"], **start).ok
    with pytest.raises(AssertionError) as raised:
        gc.testing.assert_lyapunov(space["wrong"], space["robot"])
    shown = text[text.rindex("V does not change as promised") :].split("```")[0]
    assert " ".join(str(raised.value).splitlines()[0].split()) == " ".join(shown.split())


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


PACKAGES = sorted(
    str(path.parent.relative_to(ROOT))
    for top in ("geomctrl", "models", "controllers")
    for path in (ROOT / top).rglob("README.md")
)
IN_TEXT = {"compiler/", "controllers/", "sliding_mode.py"}  # names of places elsewhere, or examples


def test_every_package_has_a_readme():
    """Every large package has one; smaller ones inside are described there."""
    packages = {f"geomctrl/{path.parent.name}" for path in (ROOT / "geomctrl").glob("*/__init__.py")}
    assert packages | {"models", "controllers"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_python_in_the_readme_of_a_package_runs_and_its_modules_exist(package):
    text = (ROOT / package / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, f"{package}/README.md", "exec"), {})
    named = set(re.findall(r"`([a-z_]+(?:\.py|/))`", text))
    missing = {name for name in named if not (ROOT / package / name).exists()}
    assert missing - IN_TEXT == set()


def test_python_about_contact_runs(capsys):
    text = (ROOT / "docs/how-to/contact-and-wrenches.md").read_text(encoding="utf-8")
    space: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "contact-and-wrenches.md", "exec"), space)
    assert (space["state"].depth > 0.0).all(), "the feet are on the ground"
    assert "free" in capsys.readouterr().out


@pytest.mark.slow
def test_python_in_the_page_about_plants_runs():
    blocks = python_blocks("docs/how-to/plants.md")
    space: dict = {}
    for block in blocks:
        exec(compile(block, "docs/how-to/plants.md", "exec"), space)
    assert space["run"].x.shape == (51, 7)


def test_python_in_the_page_about_loads_runs(capsys):
    blocks = python_blocks("docs/how-to/loads.md")
    space: dict = {}
    for block in blocks:
        exec(compile(block, "docs/how-to/loads.md", "exec"), space)
    assert space["report"].mass == pytest.approx(2.0, rel=0.01)
    assert space["report"].findings == ()
    assert space["drives"].gains == pytest.approx(space["GAINS"], rel=0.05)


@pytest.mark.slow
def test_python_in_the_page_about_priors_runs(capsys):
    (block,) = python_blocks("docs/how-to/priors.md")
    space: dict = {}
    exec(compile(block, "docs/how-to/priors.md", "exec"), space)
    assert "one of 5 parts of the log at a time" in capsys.readouterr().out
    assert (space["same"].x == space["estimate"].x).all()


@pytest.mark.slow
def test_python_in_the_page_about_excitation_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # it writes files
    text, space = (ROOT / "docs/how-to/excitation.md").read_text(encoding="utf-8"), {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/how-to/excitation.md", "exec"), space)
    assert "closest to keep-out boxes" in capsys.readouterr().out
    assert np.allclose(space["q"][0], space["q"][-1], rtol=0.0, atol=1e-8), "the motion can be repeated"
    (tmp_path / "cell.toml").write_text(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0])
    load_surroundings(tmp_path / "cell.toml", space["robot"])


@pytest.mark.slow
def test_python_in_the_page_about_identification_runs(capsys):
    text = (ROOT / "docs/how-to/identification.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/how-to/identification.md", "exec"), {})
    assert "'joint2' has the other sign" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_python_in_the_page_about_reports_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/how-to/identification-report.md").read_text(encoding="utf-8")
    space: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/how-to/identification-report.md", "exec"), space)
    assert (tmp_path / "out/report.html").stat().st_size > 10_000
    rows = {row.name: row.remark for row in space["report"].non_inertial}
    assert "prior only" in rows["Ir1"]
    assert rows["fv1"] == rows["Ir2"] == ""
    assert capsys.readouterr().out.startswith("identify(robot, <Dataset")


@pytest.mark.slow
def test_python_about_output_error_runs(capsys):
    blocks = python_blocks("docs/how-to/output-error.md")
    space: dict = {}
    for block in blocks:
        exec(compile(block, "docs/how-to/output-error.md", "exec"), space)
    assert "kp1" in capsys.readouterr().out
