"""Tools of the documentation: links, tables of results, pages of papers; and references of pages to the repository."""

import importlib.util
import inspect
import json
import os
import re
from pathlib import Path

import pytest

import geomctrl as gc

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "docs" / "_build_tools"
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "papers", "api"} & set(path.parts)]


def tool(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # they import each other, as in conf.py
        patch.syspath_prepend(TOOLS)
        spec.loader.exec_module(module)
    return module


def test_pages_that_say_the_same_are_not_written_again_and_old_ones_go(tmp_path):
    write_pages = tool("pages").write_pages
    write_pages(tmp_path, {"a.md": "A", "b.md": "B", "c.md": "C"})
    (tmp_path / "pictures").mkdir()
    for name in ("a.md", "b.md"):
        os.utime(tmp_path / name, (1, 1))
    write_pages(tmp_path, {"a.md": "A", "b.md": "B, again"})
    assert {path.name for path in tmp_path.iterdir()} == {"a.md", "b.md", "pictures"}
    assert (tmp_path / "a.md").stat().st_mtime == 1
    assert (tmp_path / "b.md").read_text() == "B, again"


# --- what pages say of the repository ------------------------------------------------------------------------------

FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|toml|json|cff|html))(?:::(\w+)(?:\[[^`]*\])?)?`")
TEST = re.compile(r"`::(\w+)`")  # in the test file named before
PLACES = (ROOT, ROOT / "geomctrl", ROOT / "docs", ROOT / "experiments")


def missing(text, places=PLACES):
    """Yield references to files, and to functions in them, that do not exist."""
    last = None
    for result in sorted([*FILE.finditer(text), *TEST.finditer(text)], key=lambda x: x.start()):
        if result.re is FILE:
            homes = [place / result[1] for place in places if (place / result[1]).is_file()]
            if not homes and not result[1].startswith(("out/", "path/")):
                yield result[1]
            last = homes[0] if homes else last
        name = result[1] if result.re is TEST else result[2]
        if name and (
            last is None or not re.search(rf"^\s*(?:async )?(?:def|class) {name}\b", last.read_text("utf-8"), re.M)
        ):
            yield f"{name} in {last}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.stem)
def test_files_and_tests_that_a_page_names_are_there(page):
    assert list(missing(page.read_text(encoding="utf-8"))) == []


def test_a_name_that_leads_nowhere_is_seen():
    here = "`tests/test_docs.py`"
    assert list(missing(f"{here} `::test_a_name_that_leads_nowhere_is_seen` `lie/se3.py` `out/demo/run.html`")) == []
    assert list(missing("`tests/test_dogs.py`")) == ["tests/test_dogs.py"]
    assert list(missing(f"{here} `::test_of_nothing`")) == [f"test_of_nothing in {ROOT / 'tests/test_docs.py'}"]
    assert list(missing("`tests/test_docs.py::test_of_nothing`")) == [
        f"test_of_nothing in {ROOT / 'tests/test_docs.py'}"
    ]


def test_every_page_is_in_a_table_of_contents():
    """Every page is listed. Sphinx reports this as well, but only when the site is built."""
    listed = {ROOT / "docs" / "index.md"}
    for page in PAGES:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.+)>$", r"\1", name) for name in names]  # a title, then the page
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    assert [p.relative_to(ROOT).as_posix() for p in PAGES if p.resolve() not in listed] == []


def test_the_reference_lists_every_public_name():
    """The list of modules follows from their `__all__`."""
    page = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   ~geomctrl\.(\w+)$", page, re.MULTILINE)
    assert sorted(listed) == gc.__all__


# --- links ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "theme.html").write_text('<a href="{{ of a template }}">')
    (tmp_path / "a" / "page.html").write_text('<h1 id="top-of-it">A</h1><a href="../index.html#here">back</a>')

    def write(body="", style=""):
        (tmp_path / "index.html").write_text(
            f'<section id="here"><a href="a/page.html?x=1#top-of-it">A</a>{body}</section>'
        )
        (tmp_path / "site.css").write_text(style)
        return list(tool("links").problems(tmp_path))

    return write


def test_a_site_whose_links_lead_somewhere(site):
    links = '<a href="#here">h</a><a href="https://example.org">out</a><img src="data:image/png;base64,AA==">'
    reference = '<a class="r" href="a/page.html"><code class="xref">f</code></a>'
    assert site(links + reference, "a { background: url(a.png) }") == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="a/pag.html">x</a>', "a/pag.html is not there"),
        ('<a href="a/page.html#other">x</a>', "a/page.html#other: there is no such anchor"),
        ('<a href="#there">x</a>', "#there: there is no such anchor"),
        ('<a href="../../etc/passwd">x</a>', "../../etc/passwd is outside of the site"),
        ('<img src="picture.png">', "picture.png is not there"),
        ('<script src="https://cdn.example/x.js"></script>', "<script> loads https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "<link> loads //cdn.example/x.css"),
        ('<img src="http://example.org/a.png">', "<img> loads http://example.org/a.png"),
        ('<a href="file:///home/me/x.html">x</a>', "file:///home/me/x.html: links like that are not for pages"),
        ('<code class="xref py py-obj">se3.expp</code>', "nothing in the reference is named 'se3.expp'"),
    ],
)
def test_a_link_that_does_not_is_named_with_its_page(site, body, said):
    assert site(body) == [f"index.html: {said}"]


def test_a_style_that_loads_from_elsewhere(site):
    assert site(style="@font-face { src: url('https://fonts.example/x.woff2') }") == [
        "site.css: a style loads https://fonts.example/x.woff2"
    ]


# --- tables of benchmarks ------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path, capsys):
    """Results as a benchmark saves them, joined as `make bench` does."""
    from benchmarks.collect import main
    from lib.results import Results

    def keep(quick=False, name="dynamics", ratio=0.25):
        results, robot = Results(name), gc.models.two_link()
        results.peers("single calls", robot, "mass_matrix", ratio * 4e-6, {"crba": 4e-6})
        results.row("batches", robot="two_link", term="terms", throughput=None, states=10)
        results.save(quick, tmp_path / "bench")
        main(source=tmp_path / "bench", to=tmp_path / "bench.json")
        path = tmp_path / "bench.json"
        return json.loads(path.read_text()) if path.exists() else {}

    return keep


def test_results_come_back_as_a_table_of_ratios(kept):
    result = tool("pages").with_tables("# B\n\n<!-- bench: dynamics, ratios -->\n", kept())
    assert "| geomctrl | other library | two_link (2) |" in result
    assert "| `mass_matrix` | crba | 0.25 |" in result
    as_it_is = tool("pages").with_tables("<!-- bench: dynamics, batches -->", kept())
    assert as_it_is.splitlines()[0] == "| robot | function | times a Python loop over Pinocchio | states |"


def test_where_nothing_was_measured_the_page_says_how(kept):
    page = tool("pages")
    assert page.with_tables("<!-- bench: loops, loops -->", kept()) == page.ABSENT
    assert page.with_tables("<!-- bench: about -->", {}) == page.ABSENT
    assert "make bench" in page.ABSENT


def test_rough_results_do_not_replace_what_is_kept(kept):
    before = kept(ratio=0.25)
    assert kept(quick=True, ratio=0.75) == before
    assert kept(quick=False, ratio=0.75) != before


def test_a_benchmark_that_was_not_run_keeps_what_there_is(kept, tmp_path):
    kept(name="cuda")
    (tmp_path / "bench" / "cuda.json").unlink()
    assert set(kept()) == {"cuda", "dynamics"}


def test_the_page_says_on_what_and_that_numbers_are_rough():
    machine = {"processor": "P", "processors": 2, "virtual": True, "memory_GiB": 8, "system": "Linux", "python": "3.12"}
    one = {
        "machine": machine,
        "versions": {"numpy": "2.0"},
        "date": "2026-01-02 03:04 UTC",
        "commit": "abc",
        "quick": False,
    }
    page = tool("pages")
    said = page.about({"a": one, "b": one, "c": one | {"quick": True}})
    assert said.splitlines()[0].startswith(
        "- *a, b*: P, 2 of them (virtual), 8 GiB, Linux; Python 3.12, numpy 2.0; 2026-01-02"
    )
    assert "--quick" not in said.splitlines()[0]
    assert "--quick" in said.splitlines()[1]


def test_every_mark_on_the_page_is_of_a_benchmark_there_is():
    scripts = {
        path.stem.removeprefix("benchmark_") for path in (ROOT / "experiments/benchmarks").glob("benchmark_*.py")
    }
    marks = tool("pages").MARK.findall((ROOT / "docs/benchmarks.md").read_text(encoding="utf-8"))
    assert len(marks) > 10
    assert {mark.split(",")[0] for mark in marks} - {"about"} <= scripts


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (None, ""),
        (True, "yes"),
        (0.1234, "0.12"),
        (12.34, "12.3"),
        (1234.5, "1234"),
        (1e-7, "1.0e-07"),
        ("a|b", r"a\|b"),
    ],
)
def test_numbers_have_few_digits(x, said):
    assert tool("pages").number(x) == said


# --- the papers' pages ---------------------------------------------------------------------------------------------


def test_a_row_names_functions_by_their_place_in_the_reference():
    pages = tool("papers_pages")
    assert pages.linked("Robot.mass_matrix") == "{py:obj}`Robot.mass_matrix <geomctrl.Robot.mass_matrix>`"
    assert pages.linked("se3.Ad") == "{py:obj}`se3.Ad <geomctrl.groups.SE3.Ad>`"
    symbols = "curvature.christoffel_symbols"
    assert pages.linked(symbols) == f"{{py:obj}}`{symbols} <geomctrl.papers.{symbols}>`"
    assert pages.linked("closed_forms.Mechanism") == "`papers.closed_forms.Mechanism`"  # not in its __all__
    with pytest.raises(AssertionError, match=r"se3\.of_nothing"):
        pages.linked("se3.of_nothing")


def test_a_page_of_a_paper_has_its_rows_and_no_markup_of_theirs():
    pages = tool("papers_pages")
    rows = [["(1)*", "a_i * b | c", "se3.Ad, se3.exp", 3.2e-15], ["(2)", "zero", "se3.Ad", 0.0]]
    text = pages.numbered_page("x_1999", "X 1999", "By X.", rows)
    assert rf"| (1)\* | a\_i \* b \| c | {pages.linked('se3.Ad')}, {pages.linked('se3.exp')} | 3e-15 |" in text
    assert text.endswith(f"| (2) | zero | {pages.linked('se3.Ad')} | 0 |\n")
    assert pages.numbered_page("x_1999", "X 1999", "By X.", None).endswith(pages.NOT_RUN)


@pytest.mark.parametrize("name", ["demo.webp", "tune.webp"])
def test_the_readmes_pictures_move_and_are_small(name):
    from PIL import Image

    path = ROOT / "docs" / name
    assert f"(docs/{name})" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert path.stat().st_size < 1e6
    with Image.open(path) as picture:
        assert picture.n_frames > 30


# --- names in tables -----------------------------------------------------------------------------------------------


def test_names_in_tables_become_links_and_others_stay():
    class App:
        env = type("Env", (), {"doc2path": staticmethod(lambda name: f"{name}.md")})

    paths = ["geomctrl.Plant", "geomctrl.Robot.mass_matrix", "geomctrl.groups.SO3.exp", "geomctrl.groups.SE3.exp"]
    row = "| `gc.Plant(robot)` | `robot.mass_matrix` | `so3.exp` | `exp` | `rate` |"
    text = f"{row}\n`gc.Plant`\n```py\n{row}\n```\n"
    source = [text]
    tool("pages").link_names(paths)(App, "page", source)
    first, *rest = source[0].split("\n")
    assert first == (
        "| {py:obj}`gc.Plant(robot) <geomctrl.Plant>` | {py:obj}`robot.mass_matrix <geomctrl.Robot.mass_matrix>`"
        " | {py:obj}`so3.exp <geomctrl.groups.SO3.exp>` | `exp` | `rate` |"
    )
    assert rest == text.split("\n")[1:]


def test_the_picture_of_the_packages_is_that_of_the_imports():
    spec = importlib.util.spec_from_file_location("architecture", ROOT / ".ci" / "architecture.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert drawing.OUT.read_text("utf-8") == drawing.picture(), "run: python .ci/architecture.py"


def test_the_page_about_commands_has_all_commands_and_options():
    from geomctrl.cli.main import COMMANDS

    source = ["# Commands\n"]
    tool("pages").read_commands(None, "reference/commands", source)
    sections = dict(re.findall(r"^## geomctrl ([\w-]+)\n(.*?)(?=^## |\Z)", source[0], re.MULTILINE | re.DOTALL))
    assert set(sections) == {name.replace("_", "-") for name in COMMANDS}
    assert "--payload" in sections["track"]
    assert "--current-gains" in sections["identify"]


def test_contributing_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|pyi|toml|md))`", text))
    assert len(names) > 30
    assert {name for name in names if not (ROOT / name).exists() and not (ROOT / "geomctrl" / name).exists()} == set()


def is_public(path):
    """Whether each part is listed by the `__all__` of the module before it, or is an attribute of a class or value."""
    owner = gc
    for name in path.split("."):
        if not hasattr(owner, name) or (inspect.ismodule(owner) and name not in owner.__all__):
            return False
        owner = getattr(owner, name)
    return True


def names_used(text):
    yield from re.findall(r"\bgc\.((?:\w+\.)*\w+)", text)
    for module, names in re.findall(r"^from geomctrl\.?([\w.]*) import (.+)$", text, re.MULTILINE):
        yield from (f"{module}.{name}".lstrip(".") for name in names.split(", "))
    yield from re.findall(r"`geomctrl\.((?:\w+\.)*\w+)[`(]", text)


def test_pages_use_public_names_only():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    pages += [
        page
        for part in ("tutorials", "how-to", "explanation", "reference")
        for page in (ROOT / "docs" / part).glob("*.md")
    ]
    used = {(page.name, name) for page in pages for name in names_used(page.read_text(encoding="utf-8"))}
    assert len(used) > 200
    assert {x for x in used if not is_public(x[1])} == {("index.md", "NAME")}
    assert not is_public("control.tuning") and not is_public("models.floating_base.ARM")  # noqa: PT018


# --- what was never run on its target ------------------------------------------------------------------------------

NAMES_GPU = re.compile("NVIDIA GPU|GPU loop|GPU kernel")
COMPARING = {"comparison.md"}  # says what other libraries do on GPUs


def test_who_names_a_gpu_says_that_none_has_run_it():
    """Delete this test when `tests/compiler/test_on_gpu.py` has passed on a GPU."""
    root = Path(gc.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES]}
    modules = [path for path in sorted(root.rglob("*.py")) if not path.name.startswith("__")]
    texts |= {path: path.read_text(encoding="utf-8") for path in modules}
    named = {path for path, text in texts.items() if NAMES_GPU.search(text) and path.name not in COMPARING}
    assert len(named) > 12
    notice = re.compile(r"not\s+yet\s+(run\s+)?on\s+(a|the)\s+GPU|not\s+yet\s+run\s+on\s+one")
    silent = {str(path.relative_to(ROOT)) for path in named if not notice.search(texts[path])}
    assert not silent
