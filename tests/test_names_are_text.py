"""Names of robots, bodies and joints are plain text for every terminal, plot, page and C compiler."""

import json
import re
import shutil
import subprocess
import time
from html import escape, unescape
from pathlib import Path

import numpy as np
import pytest
from cli.command_line import run
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import geomctrl as gc
from geomctrl import models
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.identification.errors import DataError
from geomctrl.identification.logs.reading.formats import read_text
from geomctrl.models.io.urdf_geometry import collision_capsules
from geomctrl.models.io.writing import save_c_header
from geomctrl.models.io.xml_text import read_numbers
from geomctrl.viewing import monitors, overview, torques, tracking

NAMES = ["[/foo] :smile:", r"$\frac{$ {0} %s", "</script> */ #error", "[red $5 & 3$???/"]
FILE = "[red] $5$ [-b]"  # those of NAMES that a file's name can contain


def urdf(*names):
    """A chain with a name for the robot, its links and its joints."""
    texts = [escape(name, quote=True) for name in names]
    parts = [f'<robot name="{texts[0]}"><link name="base"/>']
    for text, parent in zip(texts, ["base", *texts]):
        parts.append(
            f"""<link name="{text}"><inertial><origin xyz="0.3 0 0"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{text}" type="revolute"><parent link="{parent}"/><child link="{text}"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="3" effort="50"/></joint>"""
        )
    return "".join([*parts, "</robot>"])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / f"{FILE}.urdf"
    path.write_text(urdf(*NAMES), encoding="utf-8")
    return path


def test_terminals_show_them_as_they_are(path, tmp_path):
    out = tmp_path / FILE
    said = {
        "info": run("info", path).output,
        "check": run("check", path, "--states", 1).output,
        "track": run("track", path, "--seconds", 0.02, "--no-plots", "--out", out).output,
        "report": (out / "report.txt").read_text(encoding="utf-8"),
        "excite": run("excite", path, "--starts", 1, "--compare", 1, "--iterations", 1, "--out", out).output,
    }
    for kind, text in said.items():
        lines = re.sub(r"[│|]|\s+", " ", text)
        shown = NAMES[:1] if kind == "check" else NAMES
        assert [x for x in shown if x not in text and x not in lines] == [], kind
    for kind in ("track", "excite"):
        assert f" in {out}" in said[kind]


def test_errors_show_them_as_they_are(path):
    for name in NAMES:
        said = run("show", path, "--frames", f"no {name}", "--out", path.with_name("page.html"), status=2).output
        assert repr(f"no {name}") in " ".join(said.split())
    assert "[-b]" in run("info", f"{FILE}.none", status=2).output


@pytest.mark.slow
def test_pictures_and_pages_draw_them_as_they_are(path, tmp_path):
    robot = models.load_urdf(path)
    law = gc.controllers.PDGravity(robot, robot.neutral())
    result = gc.simulate(robot, law, np.full(4, 0.1), np.zeros(4), 0.05, 1e-2)
    figures = [overview.figure(result, {}), tracking.figure(result), torques.figure(result), monitors.figure(result)]
    for figure in figures:
        assert figure is not None
        FigureCanvasAgg(figure).draw()
    texts = [x for figure in figures for x in figure.findobj(Text)]
    for name in NAMES:
        shown = [x for x in texts if name in x.get_text()]
        assert shown
        assert [x for x in shown if x.get_parse_math()] == []
    powers = [x for x in texts if "10^{" in x.get_text()]  # for logarithmic axes, whose labels are still typeset
    assert powers
    assert all(x.get_parse_math() for x in powers)
    page = result.save_html(tmp_path / "run.html").read_text(encoding="utf-8")
    title = re.search("<title>(.*?)</title>", page)
    assert title is not None
    assert unescape(title[1]).startswith(NAMES[0])
    assert NAMES[2] not in page
    assert escape(NAMES[2]) in page or escape(NAMES[2], quote=False) in page


def test_a_c_compiler_reads_them_as_comments(path, tmp_path):
    robot = models.load_urdf(path)
    files = [*robot.to_c(tmp_path / "c", name="arm"), save_c_header(robot, tmp_path / "c" / "numbers.h", name="arm")]
    assert "</script> * / #error" in files[-1].read_text()
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    for file in files:
        options = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-const-variable", "-Werror", "-fsyntax-only", "-x", "c"]
        subprocess.run([compiler, *options, str(file)], check=True)


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[31mb", "\x00", "a\x7f", "\x9b31m", "half \ud800", "a\u2028b", "a\u202eb", "a\u2066b"]
)
def test_control_characters_are_refused_wherever_names_come_in(name):
    inertia = gc.inertia.from_com(1, (0, 0, 0), np.eye(3))
    said = "expected a name without control characters"
    with pytest.raises(ArgumentError, match=said):
        gc.Robot.build([gc.Body(name, None, gc.Joint.revolute((0, 0, 1)), None, inertia)])
    with pytest.raises(ArgumentError, match=said):
        gc.Robot.build([gc.Body("b", None, gc.Joint.revolute((0, 0, 1), name=name), None, inertia)])
    with pytest.raises(ArgumentError, match=said):
        gc.Robot.build([gc.Body("b", None, gc.Joint.revolute((0, 0, 1)), None, inertia)], name=name)


def test_control_characters_of_files_do_not_reach_terminals(tmp_path):
    np.savez(tmp_path / "log.npz", **{"\x1b[31mred\x9b\u202e": np.zeros(3)})
    said = run("identify", tmp_path / "log.npz", "--robot", "two_link", status=2).output
    assert r"there are \x1b[31mred\x9b\u202e" in said
    law = gc.controllers.PDGravity(gc.models.two_link(), np.zeros(2))
    path = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), 0.01, 1e-2).save(tmp_path / "run.npz")
    arrays = dict(np.load(path))
    about = json.loads(str(arrays["about"]))
    about["reason"] = "\x1b]0;title\x07\tends"
    about["monitors"] = {f"\x1b[31m{name}": ["\x9b", *x[1:]] for name, x in about["monitors"].items()}
    renamed = {name.replace("monitor/", "monitor/\x1b[31m"): x for name, x in arrays.items()}
    np.savez(path, **renamed | {"about": np.array(json.dumps(about))})
    loaded = gc.Run.load(path)
    assert loaded.reason == "\\x1b]0;title\\x07\tends"
    assert not re.search("[\x1b\x9b\x07]", loaded.summary() + str(loaded) + loaded._repr_html_())


def test_errors_of_mujoco_quote_no_control_characters():
    pytest.importorskip("mujoco")
    bad = "<mujoco><worldbody><body><joint type='x\u202e\x9b1m'/></body></worldbody></mujoco>"
    with pytest.raises(ModelError, match="invalid keyword: 'x__1m'\nElement 'joint'"):
        models.load_mjcf(bad)


def test_a_file_whose_name_no_xml_holds_still_names_its_robot(tmp_path):
    path = Path(f"{tmp_path}/a\x01\udcff.urdf")
    path.write_text(urdf("x").replace('<robot name="x">', "<robot>"), encoding="utf-8")
    assert models.load_urdf(path).name == "a__"


# --- numbers ---------------------------------------------------------------------------------------------------------

NOT_NUMBERS = ["1_0", "１", "٣", "1\u00a02", "1e", "0x1", "1.0f", "1,0", "--1", "1d0", "1e1_0", "in", "+-1", "1\x0b"]
NUMBERS = {"1": 1.0, "+1.": 1.0, ".5": 0.5, "1E-1": 0.1, " \t2\n": 2.0, "00.5e+0": 0.5}


@pytest.mark.parametrize("text", [x for x in NOT_NUMBERS if "\x0b" not in x])
@pytest.mark.parametrize("place", ['mass value="{}"', 'limit lower="-2" upper="2" velocity="{}" effort="50"'])
def test_numbers_of_a_urdf_are_those_of_xml(text, place):
    document = re.sub(f"<{place.split()[0]} [^/>]*", "<" + place.format(text), urdf("arm"))
    with pytest.raises(ModelError, match="expected 1 number, got"):
        models.load_urdf(document)


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_in_all_their_spellings(text):
    robot = models.load_urdf(re.sub('mass value="[^"]*"', f'mass value="{text}"', urdf("arm")))
    assert robot.parameters[0, 0] == NUMBERS[text]


def test_long_text_that_is_no_number_is_refused_at_once():
    begun = time.process_time()
    with pytest.raises(ValueError, match="no number: "):
        read_numbers("1" * 30_000 + "x")
    assert time.process_time() - begun < 1.0


def test_numbers_elsewhere_in_a_urdf(tmp_path):
    for text in NOT_NUMBERS:
        with pytest.raises(ValueError, match="no number: "):
            read_numbers(text)
    assert read_numbers("1 -2.5\t3e1\n inf -INF") == [1.0, -2.5, 30.0, np.inf, -np.inf]
    assert read_numbers("") == []
    motor = """<transmission name="t"><joint name="arm"/><actuator name="m">
<mechanicalReduction>1_0</mechanicalReduction></actuator></transmission></robot>"""
    with pytest.warns(UserWarning, match="mechanicalReduction '1_0'"):
        models.load_urdf(urdf("arm").replace("</robot>", motor))
    collision = '<collision><geometry><sphere radius="1_0"/></geometry></collision></link><joint'
    with pytest.raises(ModelError, match=r"sphere radius: expected 1 finite number\(s\), got '1_0'"):
        collision_capsules(urdf("arm").replace("</link>\n<joint", collision), models.load_urdf(urdf("arm")))


@pytest.mark.parametrize("text", ["1_000", "٣", "１", "0x10", "1e", "1'000"])
@pytest.mark.parametrize("separator", [",", ";", " "])
def test_numbers_of_a_table(text, separator, tmp_path):
    path = tmp_path / "log.csv"
    rows = ["t q", "0 1", f"1 {text}", "2 3"]
    path.write_text("\n".join(row.replace(" ", separator) for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match=f"could not convert string .{text}. to float64 at row 1, column 2"):
        read_text(path)


@pytest.mark.parametrize("value", ["1", "1_000", True, 10**400, "x", None])
@pytest.mark.parametrize("place", ["gravity", "parameters", "placement", "effort", "parent", "extra"])
def test_numbers_of_a_model_file(place, value, tmp_path):
    path = models.save(gc.models.two_link(), tmp_path / "arm.json", extra={})
    document = json.loads(path.read_text())
    body = document["bodies"][1]
    if place in ("gravity", "extra"):
        document[place] = value
    elif place in ("parameters", "placement"):
        body[place] = [value, *body[place][1:]]
    else:
        (body["joint"] if place == "effort" else body)[place] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=r"arm\.json: "):
        models.load_extra(path) if place == "extra" else models.load(path)


def test_deeply_nested_lists_in_a_model_file(tmp_path):
    path = models.save(gc.models.two_link(), tmp_path / "arm.json")
    document = json.dumps(json.loads(path.read_text()) | {"gravity": "deep"})
    path.write_text(document.replace('"deep"', "[" * 900 + "1.0" + "]" * 900))
    with pytest.raises(ModelError, match=r"arm\.json: incomplete or damaged model file"):
        models.load(path)


@pytest.mark.parametrize("index", ["0", 0.0, False, [0]])
@pytest.mark.parametrize("place", ["parent", "body"])
def test_indices_of_a_model_file(place, index, tmp_path):
    path = models.save(gc.models.two_link(), tmp_path / "arm.json")
    document = json.loads(path.read_text())
    document["bodies" if place == "parent" else "frames"][-1][place] = index
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=r"arm\.json: .*expected an index, got "):
        models.load(path)
