"""Pictures of an identification from plain arrays: as files, and as SVG for a page."""

import re
import subprocess
import sys

import numpy as np
import pytest
from lxml import etree
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from geomctrl.viewing import embedded, fits
from geomctrl.viewing import identification as view

JOINTS = [fits.Joint("lift", "N", "m/s"), fits.Joint("elbow", "N m")]


@pytest.fixture
def drawn(monkeypatch):
    """Return the figures that were written."""
    figures, write = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), write(self, *a, **k))[1])
    return figures


def part(title, n=300):
    t = np.arange(n) / 100.0 + np.where(np.arange(n) < n // 2, 0.0, 1.0)  # a hole in the middle
    tau = np.stack((np.sin(t), np.cos(t)), -1)
    used = np.ones(tau.shape, bool)
    used[10:20, 1] = False
    return fits.Torques(title, t, tau, 0.9 * tau, used, np.stack((np.cos(t), -np.sin(t)), -1))


def shown_texts(figure):
    """(text, its box in pixels) of all that is drawn: of ticks, those within the axes' limits."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ticks = {tick for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for tick in axis.get_major_ticks()}
    hidden = set()
    for ax in figure.axes:
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            out = [x for x in axis.get_major_ticks() if not min(limits) <= x.get_loc() <= max(limits)]
            hidden |= {label for tick in out for label in (tick.label1, tick.label2)}
    assert ticks
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and t not in hidden]
    return [(t, t.get_window_extent(canvas.get_renderer())) for t in texts]


def curves(ax):
    return {line.get_label(): np.asarray(line.get_ydata()) for line in ax.lines}


def test_torques_of_two_logs_stand_side_by_side_with_differences_on_axes_of_their_own(drawn, tmp_path):
    path = view.torques(JOINTS, [part("training: 1 %"), part("unseen: 2 %")], tmp_path / "torques.png")
    assert imread(path).std() > 0.05
    axes = drawn[0].axes
    assert len(axes) == 8
    assert axes[0].get_title(loc="right") == "training: 1 %, grey: not used"
    assert [ax.get_ylabel() for ax in axes[::2]] == [
        "lift\n[N]",
        "difference\n[N]",
        "elbow\n[N m]",
        "difference\n[N m]",
    ]
    torque, difference = curves(axes[4]), curves(axes[6])["measured - predicted"]
    np.testing.assert_allclose(torque["measured"] - torque["predicted"], difference)
    p, line = part("training"), axes[6].lines[0]
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(difference)), [10, 141, 292])  # no line across the gap
    drawn_at = line.get_xdata()[np.isfinite(difference)]
    np.testing.assert_array_equal(drawn_at, p.t[p.used[:, 1]])  # nor through samples that were left out
    assert axes[6].get_ylim()[1] < 0.2 < axes[4].get_ylim()[1]  # a difference of 0.1 has its own axis


def test_an_rms_line_is_inside_also_where_residuals_have_one_sign(drawn, tmp_path):
    p = part("training")
    p.measured[:, 0] = p.predicted[:, 0] + 2.0
    view.torques(JOINTS, [p], tmp_path / "torques.png")
    low, high = drawn[0].axes[1].get_ylim()
    assert low < -2.0
    assert high > 2.0
    assert drawn[0].axes[1].lines[-1].get_label() == "RMS 2"


def test_no_peak_that_was_used_is_lost_or_cut_off(drawn, tmp_path):
    p = part("training", 20_000)
    p.measured[[3, 7777, 19_998], 0] += [40.0, -50.0, 60.0]  # single samples of a long log
    view.torques(JOINTS, [p], tmp_path / "torques.png")
    upper, lower = drawn[0].axes[:2]
    for ax, name, shown in ((upper, "measured", p.measured), (lower, "measured - predicted", p.measured - p.predicted)):
        y = curves(ax)[name]
        assert len(y) < 3000
        assert np.nanmax(y) == shown[:, 0].max()
        assert np.nanmin(y) == shown[:, 0].min()
        low, high = ax.get_ylim()
        assert low < shown[:, 0].min()
        assert shown[:, 0].max() < high


def test_samples_that_were_left_out_do_not_set_the_axis_and_are_counted(drawn, tmp_path):
    p = part("training")
    p.measured[12:15, 1] = [900.0, -1000.0, 800.0]  # within the samples that are not used
    view.torques(JOINTS, [p], tmp_path / "torques.png")
    upper = drawn[0].axes[2]
    assert upper.get_ylim()[1] < 2.0
    assert [text.get_text() for text in upper.texts] == ["3 unused beyond, to 1e+03"]
    assert not drawn[0].axes[0].texts


def test_residuals_stand_over_velocity_with_their_histogram_and_autocorrelation(drawn, tmp_path):
    rng = np.random.default_rng(0)
    p = part("training")
    p.measured[:, 1] += np.where(p.velocity[:, 1] < 0.0, -0.3, 0.3) - 0.1 * p.measured[:, 1]  # the rest is friction
    rho = [np.eye(1, 200)[0], np.ones(200)]
    path = view.residuals(JOINTS, [p], rho, tmp_path / "residuals.png")
    assert imread(path).std() > 0.05
    axes = drawn[0].axes
    v, mean = (x[np.isfinite(axes[3].lines[1].get_ydata())] for x in axes[3].lines[1].get_data())
    np.testing.assert_allclose(mean, 0.3 * np.sign(v), atol=1e-12)
    np.testing.assert_array_equal(axes[5].lines[0].get_ydata(), np.ones(101))
    assert [ax.get_xlabel() for ax in axes[:2]] == ["velocity [m/s]", "residual [N]"]
    p.used[:, 1] = False  # a joint without samples
    nothing = view.residuals(JOINTS, [p], [rho[0], rho[0][:0]], tmp_path / "none.png")
    assert imread(nothing).std() > 0.02
    v = rng.normal(size=1000)
    at, average = fits.binned(v, 2.0 * v, 10)
    np.testing.assert_allclose(average, 2.0 * at)
    assert len(at) == 10


def test_parameters_show_what_is_known_found_and_given(drawn, tmp_path):
    reference = fits.Intervals(["m1", "x" * 80], "ols", np.array([2.0, -1.0]), np.array([0.1, 1.0]))
    path = view.parameters(
        reference, np.array([1.0, 0.0]), ("ridge", np.array([1.8, 0.0])), tmp_path / "parameters.png"
    )
    assert imread(path).std() > 0.02
    (ax,) = drawn[0].axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ridge", "model given", "ols, 95 %"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["m1", "x" * 56 + " ..."]
    assert not ax.texts


@pytest.mark.parametrize("half", [None, np.array([0.4, 2.0])])
def test_intervals_are_drawn_as_wide_as_they_are(half, drawn, tmp_path):
    reference = fits.Intervals(["a", "b"], "ols", np.array([2.0, -1.0]), np.array([0.1, 1.0]), half)
    view.parameters(reference, np.zeros(2), None, tmp_path / "parameters.png")
    (ax,) = drawn[0].axes
    (bars,) = [c.lines[2][0] for c in ax.containers]
    widths = [float(np.ptp(segment[:, 0])) for segment in bars.get_segments()]
    expected = 1.96 * reference.std if half is None else half
    np.testing.assert_allclose(widths, 2.0 * expected / [2.0, 3.0])


def test_what_lies_outside_the_axis_is_an_arrow_with_its_number(drawn, tmp_path):
    reference = fits.Intervals(["a", "b", "c"], "ols", np.array([2.0, -1.0, 1.0]), np.array([0.1, 0.1, 0.1]))
    given, other = np.array([9.0, 1.0, 1.0]), np.array([2.0, -1.0, -5.0])
    view.parameters(reference, given, ("ridge", other), tmp_path / "parameters.png")
    (ax,) = drawn[0].axes
    assert sorted(text.get_text() for text in ax.texts) == ["-5", "4.5"]  # sizes: 9 / 2, -5 / 1
    low, high = ax.get_xlim()
    assert all(low <= x <= high for line in ax.lines for x in line.get_xdata())
    assert [line.get_marker() for line in ax.lines if line.get_marker() in "<>"] == ["<", ">"]


@pytest.mark.parametrize("name", ['<script>alert("x")</script>', "a & b < c", "$\\alpha$ costs $5", "100 %"])
def test_pictures_for_pages_are_small_and_safe_whatever_joints_are_called(name):
    pictures = view.joint_pictures(fits.Joint(name, "N m"), 1, [part("training", 5000)], np.ones(200))
    assert len(pictures) == 3
    for _, svg in pictures:
        root = etree.fromstring(svg)
        assert root.tag == "svg"
        assert name in root.get("aria-label")
        assert "script" not in {element.tag for element in root.iter()}
        assert "http" not in svg
        assert len(svg) < 100_000
    said = [element.text for element in etree.fromstring(pictures[0][1]).iter("text")]
    assert "time [s]" in said  # text is text
    reference = fits.Intervals([name, "m1 + 0.051853 m2"], "ols", np.ones(2), np.ones(2))
    svg = view.parameter_picture(reference, np.ones(2), None)
    labels = [element.text for element in etree.fromstring(svg).iter("text")]
    assert {name, "m1 + 0.051853 m2"} <= set(labels)  # numbers in names are not rounded


@pytest.mark.quick(1)
@pytest.mark.parametrize("size", [1e-4, 1.0, 3e4])
def test_no_text_is_clipped_or_covers_a_curve_or_another_text(size, drawn, tmp_path):
    """Torques of any size, with samples that were not used beyond the axes, in files and on pages."""
    p = part("training", 5000)
    p.measured[12:15, 1] = [90.0, -100.0, 80.0]
    parts = [
        fits.Torques(name, p.t, size * p.measured, size * p.predicted, p.used, 1.3 * size * p.velocity)
        for name in ("training", "unseen")
    ]
    view.joint_pictures(JOINTS[1], 1, parts, np.cos(np.arange(200.0)))
    view.torques(JOINTS, parts, tmp_path / "torques.png")
    view.residuals(JOINTS, parts, [np.cos(np.arange(200.0))] * 2, tmp_path / "residuals.png")
    assert len(drawn) == 6
    for figure in drawn:
        texts = shown_texts(figure)
        for k, (text, box) in enumerate(texts):
            label = text.get_text()
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, label
            assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, label
            assert not any(ax.bbox.shrunk(0.99, 0.99).overlaps(box) for ax in figure.axes), label
            for other, its_box in texts[:k]:
                assert not box.shrunk(0.95, 0.8).overlaps(its_box.shrunk(0.95, 0.8)), (label, other.get_text())


def test_colours_are_the_pages_own_and_no_two_pictures_share_an_id():
    pictures = view.joint_pictures(JOINTS[0], 0, [part("training"), part("unseen")], np.ones(200))
    for _, svg in pictures:
        bare = re.sub(r"var\(--\w+, #\w{6}\)|data:image/png;base64,[^\"]*", "", svg)
        assert not re.findall(r"#[0-9a-f]{6}\b", bare)
        assert "currentColor" in svg
    ids = [re.findall(r'\bid="([^"]*)"', svg) for _, svg in pictures]
    assert all(ids)
    flat = [x for some in ids for x in some]
    assert len(flat) == len(set(flat))


def test_a_long_noisy_log_of_seven_joints_stays_below_three_megabytes():
    n, rng = 24_000, np.random.default_rng(0)  # five minutes at four rows a period of 20 Hz
    t = np.arange(n) / 80.0
    tau = 10.0 * np.sin(t)[:, None] + rng.normal(size=(n, 1))
    used = rng.random((n, 1)) > 0.002
    noise, v = rng.normal(size=(n, 1)), np.cos(t)[:, None]
    parts = [fits.Torques(title, t[:m], tau[:m], (tau + noise)[:m], used[:m], v[:m])
             for title, m in (("training", n), ("unseen", n // 3))]  # fmt: skip
    pictures = [svg for _, svg in view.joint_pictures(JOINTS[1], 0, parts, np.ones(200))]
    assert all(svg.startswith("<svg") for svg in pictures)
    assert 7 * sum(map(len, pictures)) < 2.5e6


def test_a_figure_too_large_for_shapes_becomes_an_image(monkeypatch):
    monkeypatch.setattr(embedded, "MAX_SVG_CHARACTERS", 1000)
    pictures = view.joint_pictures(JOINTS[0], 0, [part("training")], np.ones(200))
    for _, image in pictures:
        assert re.fullmatch(r'<img alt="[^"]*" src="data:image/png;base64,[A-Za-z0-9+/=]+">', image)


def test_pictures_know_no_identification():
    code = "import sys, geomctrl.viewing.identification; print(*(m for m in sys.modules if 'geomctrl.identif' in m))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""
