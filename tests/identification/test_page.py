"""The report as a page: well formed, offline, escaped, with the same numbers as the report."""

import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import numpy as np
import pytest
from jinja2 import UndefinedError

from geomctrl import Body, Joint, Robot, inertia, models
from geomctrl.identification import Dataset, Filtering, RegressorModel, Result, fit, identify
from geomctrl.identification.findings import Finding
from geomctrl.identification.report.rendering import exact, rendered
from geomctrl.identification.report.report import STATUS
from geomctrl.identification.report.report import page as page_of

NASTY = ('<script>alert("q")</script>', "a&b <i>c</i> $x_1$")
VOID = {"meta", "br", "col", "img"}


class Page(HTMLParser):
    """Elements as (tag, attributes, text inside); raises if one is not closed in its place."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {[e[0] for e in self._open]}"

    def handle_starttag(self, tag, attrs):
        element = [tag, dict(attrs), ""]
        assert len(attrs) == len(dict(attrs)), f"an attribute twice: {tag} {attrs}"
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1][0] == tag, f"</{tag}> where {self._open[-1][0]} is open"
        self._open.pop()

    def handle_data(self, data):
        for element in self._open:
            element[2] += data

    def all(self, tag, **attributes):
        return [e for e in self.elements if e[0] == tag and attributes.items() <= e[1].items()]

    def within(self, anchor):
        """The elements of the section of that id."""
        start = next(k for k, e in enumerate(self.elements) if e[1].get("id") == anchor)
        following = (k for k, e in enumerate(self.elements) if k > start and e[0] in ("section", "footer"))
        return self.elements[start : next(following)]


def arm(names=("joint1", "joint2")):
    """Two links of which a log can be made; the second one slides."""
    body = inertia.from_com(2.0, [0.1, 0.05, 0.02], np.diag([0.02, 0.03, 0.04]))
    first, second = (f"body of {name}" for name in names)
    turning, sliding = Joint.revolute((0, 1, 0), name=names[0]), Joint.prismatic((1, 0, 0), name=names[1])
    bodies = [Body(first, None, turning, None, body), Body(second, first, sliding, None, body)]
    return Robot.build(bodies, name=names[0] + "'s")


def log(model, seconds=20.0, rate=100.0, noise=0.05, label="log", scale=1.3):
    x = model.prior
    x[: model.inertial] *= scale
    x[model.positive] = 0.4
    t = np.arange(int(seconds * rate)) / rate
    w, A = (
        2 * np.pi * np.array([[0.23, 0.31], [0.77, 0.59], [1.1, 1.4]]),
        np.array([[0.8, 0.7], [0.4, 0.5], [0.2, 0.2]]),
    )
    angle = t[:, None, None] * w + np.array([[0, 1], [2, 3], [4, 5.0]])
    q, v, a = (A * np.sin(angle)).sum(1), (A * w * np.cos(angle)).sum(1), -(A * w**2 * np.sin(angle)).sum(1)
    tau = model.torque(x, q, v, a)
    return Dataset(t, q, tau + noise * np.random.default_rng(0).normal(size=tau.shape), label=label)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return (report, its folder, its page's text) for a robot and a log with markup in their names; consistent
    method.
    """
    model = RegressorModel(arm(NASTY), smoothing=0.05, rotor=True)
    data = log(model, label="<b>log</b> & 'co'")
    report = identify(model.robot, data, model=model, filtering=Filtering(10.0))
    finding = Finding("cutoff", "the <em>cut-off</em> is high", "give --cutoff & look", fatal=True)
    report = replace(report, findings=(finding, Finding("split", "few rows", "record more")))
    folder = tmp_path_factory.mktemp("page") / "out"
    report.save(folder)
    return report, folder, (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(made):
    return Page(made[2])


def test_the_page_is_well_formed_and_has_its_sections(page, made):
    assert made[2].startswith('<!DOCTYPE html>\n<html lang="en">')
    ids = [e[1]["id"] for e in page.elements if "id" in e[1]]
    assert len(ids) == len(set(ids))
    assert {"assessment", "errors", "joints", "parameters", "excitation", "bodies", "friction", "settings"} <= set(ids)
    links = [e[1]["href"] for e in page.all("a")]
    assert {href.removeprefix("#") for href in links} <= set(ids)
    assert len(page.all("h3", id="joint-1")) == len(page.all("h3", id="joint-2")) == 1
    assert len(page.all("figure")) == 2 * 4 + 1
    assert len(made[2]) < 1e6


def test_the_page_needs_no_network(page, made):
    assert "http" not in made[2]
    assert not re.search(r"@import|url\((?!#)", made[2])
    for name, attributes, _ in page.elements:
        assert name not in ("link", "iframe", "object", "embed", "base")
        for key in ("src", "href", "xlink:href", "srcset", "data", "poster"):
            assert attributes.get(key, "#").startswith(("#", "data:image/png;base64,")), (name, attributes)
        assert not any(key.startswith("on") for key in attributes)


def test_names_from_logs_and_robots_are_text(page, made):
    report, _, text = made
    assert len(page.all("script")) == 1  # the page's own script
    assert "alert" not in page.all("script")[0][2]
    assert not page.all("em")
    assert "<b>log</b>" not in text
    body = page.all("body")[0][2]
    for name in (*NASTY, report.raw.label, *(str(d.seen) for d in report.findings), *report.robot.body_names):
        assert name in body


def test_the_table_has_every_base_parameter_with_the_report_s_numbers(page, made):
    report = made[0]
    rows = report._parameter_table()
    start = page.elements.index(page.all("table", id="base-parameters")[0])
    cells = []
    for name, attributes, text in page.elements[start + 1 :]:
        if name == "table":
            break
        if name == "tr":
            cells.append([])
        elif name == "td":
            cells[-1].append((attributes.get("data-value"), text))
    inputs = report.estimate.base.projection @ report.estimate.model.prior
    assert len(cells[1:]) == len(rows) == report.estimate.base.size
    for row, prior, (name, *values) in zip(rows, inputs, cells[1:]):
        assert name[1].endswith(row["name"])  # all of the text, also where only its beginning is shown
        wanted = [row[key] for key in ("value", "least_squares", "std", "low", "high", "percent")] + [prior]
        np.testing.assert_array_equal([float(value) for value, _ in values], wanted)
        for value, text in values:
            assert float(text) == pytest.approx(float(value), rel=6e-3)


def test_numbers_say_how_they_were_obtained_and_base_parameters_are_folded_away(page, made):
    report = made[0]
    first_screen = page.all("summary", title="How this number was obtained")
    assert len(first_screen) >= 4
    unseen = f"{100 * report.errors['test']['relative_error']:.2f} %"
    (how,) = (
        e[2] for e in page.all("details") if e[2].startswith(unseen + "unseen relative error") and "samples" in e[2]
    )
    assert f"{report.errors['test']['samples']} samples that no fit was made to" in how
    folded = page.all("details")
    assert not any("open" in e[1] for e in folded)
    assert any(all(row["name"] in e[2] for row in report._parameter_table()) for e in folded)


def test_errors_per_joint_are_the_report_s(page, made):
    report = made[0]
    section = page.within("errors")
    numbers = [float(e[1]["data-value"]) for e in section if e[0] == "td" and e[1].get("data-value")]
    for part in report.errors.values():
        assert set(part["rms"]) | set(part["relative"]) | {part["rmse"], part["relative_error"]} <= set(numbers)
    assert set(report.noise_floor) <= set(numbers)
    terms = {e[2] for e in section if e[0] == "dt"}
    assert {"RMS", "relative error", "noise floor", "condition", "unseen"} <= terms
    meanings = " ".join(e[2] for e in section if e[0] == "dd")
    assert (
        "autocorrelation of a joint's training residuals one sample apart; share of those at lags 1 to 50 outside"
        in meanings
    )
    assert "in N for " + NASTY[1] in " ".join(e[2] for e in section)


def test_bodies_stand_beside_the_model_s(page, made):
    report = made[0]
    rows = [[]]
    for name, attributes, text in page.within("bodies"):
        if name == "tr":
            rows.append([])
        elif name == "td":
            rows[-1].append(float(attributes["data-value"]) if attributes.get("data-value") else text)
    rows = [row for row in rows if row]
    assert [row[1] for row in rows] == ["identified", "model given"] * 2
    masses = [row[2] for row in rows]
    np.testing.assert_array_equal(masses[::2], report.robot.parameters[:, 0])
    assert masses[1::2] == [2.0, 2.0]
    np.testing.assert_allclose(rows[1][3:9], [0.1, 0.05, 0.02, 0.02, 0.03, 0.04], rtol=1e-9)
    moments = np.linalg.eigvalsh(inertia.com_tensor(report.robot.parameters[1]))
    np.testing.assert_allclose(rows[2][6:9], moments, rtol=1e-6, atol=1e-12)


def test_friction_says_what_is_told_apart(page, made):
    report = made[0]
    text = " ".join(e[2] for e in page.within("friction") if e[0] == "tr")
    for row in report.non_inertial:
        assert row.name in text
        assert row.unit in text
    assert ("by the prior only" in text) == any(row.remark for row in report.non_inertial)


def test_the_verdict_is_on_top_and_asks_the_report_first(made):
    report = made[0]
    text = Page(report._repr_html_()).elements[0][2]
    assert "Do not trust this result" in text

    @dataclass(frozen=True)
    class Assessment:
        status: str
        findings: tuple = ()
        ignored: tuple = ()

    class Judged(Result):
        assessment = Assessment("doubts", (Finding("split", "too <few> rows", "record more"),))

    fields = {name: getattr(report, name) for name in Result.__dataclass_fields__}
    for status, said in (("trust", "Trust: nothing"), ("doubts", "Doubts: look"), ("distrust", "Do not trust")):
        Judged.assessment = replace(Judged.assessment, status=status)
        box = Page(Judged(**fields)._repr_html_()).elements[0][2]
        assert said in box
        assert "too <few> rows" in box
    fatal = Page(made[2]).all("div", id="assessment")[0]
    assert fatal[1]["class"] == "assessment distrust"
    assert fatal[2].index("Fatal: the <em>cut-off</em>") < fatal[2].index("few rows")


def test_pictures_show_the_intervals_of_the_table(made):
    report = replace(
        made[0],
        unconstrained=replace(made[0].unconstrained, uncertainty=made[0].unconstrained.uncertainty._replace(dof=6.0)),
    )  # Student's t, not a Gaussian's
    known, rows = report.drawn.parameters[0], report._parameter_table()
    np.testing.assert_allclose(2.0 * known.half, [row["high"] - row["low"] for row in rows])
    np.testing.assert_allclose(known.half, 2.4469 * known.std, rtol=1e-4)


def test_what_was_ignored_is_on_the_page(made):
    report = replace(made[0], ignore=("all",))
    assert report.assessment.status == "trust"
    box = Page(page_of(report, None)).all("div", id="assessment")[0][2]
    assert "Ignored, as asked for: the <em>cut-off</em> is high" in box
    kinds = dict.fromkeys(finding.kind for finding in report.assessment.ignored)
    for text in (box, Page(report._repr_html_()).elements[0][2]):
        assert f"speaks against this result, but for what was ignored ({', '.join(kinds)})" in text


def test_a_page_says_how_to_get_the_same_again(page, made):
    report = made[0]
    text = " ".join(e[2] for e in page.within("settings"))
    assert report.provenance.logs[0].sha256 in text
    assert "Filtering(cutoff=10.0)" in text
    assert "rotor=True" in text
    assert "cut-off of positions [Hz]" in text
    assert "geomctrl 0." in text
    alone = Result(report.estimate, report.training)
    assert "is not known" in Page(page_of(alone, None)).all("body")[0][2]


def test_a_report_without_pictures_tests_or_intervals_is_a_page_too(tmp_path):
    model = RegressorModel(models.two_link(), viscous=False, coulomb=False, offset=False)
    data = log(model).filtered(10.0)
    report = Result(fit(model, data, "consistent"), data)
    page = Page(page_of(report, None))
    assert not page.all("svg")
    body = page.all("body")[0][2]
    assert "no unseen data" in body
    assert "The fit has no such parameters." in body
    assert "No covariance: " in body
    assert STATUS[report.assessment.status] in body


def test_numbers_are_read_back_exactly():
    for x in (0.1 + 0.2, -1e-300, np.float64(12345678.9), np.inf):
        assert float(exact(x)) == x
    assert exact(np.nan) == exact(None) == ""


def test_a_name_that_a_template_misspells_is_no_empty_text():
    with pytest.raises(UndefinedError):
        rendered("summary.html", report=None)
