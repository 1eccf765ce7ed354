"""The README's Python runs, block after block, and does what it says; what the documents point at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PLACES = (ROOT, ROOT / "geomctrl", ROOT / "experiments")  # where the documents' paths begin


def test_python_in_the_readme_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes files
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    space: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), space)
    said = capsys.readouterr().out
    assert "V does not change as promised" in said
    assert "lyapunov" in said
    assert said.count("VIOLATED") == 0
    assert space["run"].ok
    assert space["found"].proved


def test_python_about_contact_runs(capsys):
    text = (ROOT / "docs/contact-and-wrenches.md").read_text(encoding="utf-8")
    space: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "contact-and-wrenches.md", "exec"), space)
    assert (space["state"].depth > 0.0).all(), "the feet are on the ground"
    assert "free" in capsys.readouterr().out


def test_python_in_the_page_about_plants_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/plants.md").read_text(encoding="utf-8"), re.DOTALL)
    space: dict = {}
    for block in blocks:
        exec(compile(block, "docs/plants.md", "exec"), space)
    assert space["run"].x.shape == (51, 7)


def test_python_in_the_page_about_reports_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/identification-report.md").read_text(encoding="utf-8")
    space: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/identification-report.md", "exec"), space)
    assert (tmp_path / "out/report.html").stat().st_size > 10_000
    rows = {row.name: row.remark for row in space["report"].beside}
    assert "prior only" in rows["Ir1"]
    assert rows["fv1"] == rows["Ir2"] == ""
    assert capsys.readouterr().out.startswith("identify(robot, <Dataset")


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/bounds.md",
        "docs/certificates.md",
        "docs/contact-and-wrenches.md",
        "docs/controllers.md",
        "docs/formulas.md",
        "docs/identification-report.md",
        "docs/minimum-energy-paths.md",
        "docs/plants.md",
        "docs/testing.md",
    ],
)
def test_files_functions_and_tests_that_documents_point_at_exist(document):
    """`folder/file.py`, `folder/file.py::name`, and `::name` of the file before."""
    text = re.sub(r"```.*?```", "", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    missing, file, seen = [], ROOT, 0
    for path, name in re.findall(r"`(?:python )?((?:[\w.]+/)+[\w.]*|)(?:::(\w+))?`", text):
        if path:
            found = [place / path for place in PLACES if (place / path).exists()]
            missing += [path] if not found else []
            file = found[0] if found else ROOT
        if name and file.is_file() and not re.search(rf"^(def|class) {name}\b", file.read_text(encoding="utf-8"), re.M):
            missing.append(f"{file.relative_to(ROOT)}::{name}")
        seen += bool(path or name)
    assert missing == []
    assert seen >= 1
