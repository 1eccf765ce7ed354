"""Pictures of an identification from plain arrays."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from geomctrl.viewing import identification as view

JOINTS = [view.Joint("lift", "N"), view.Joint("elbow", "N m")]


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were written."""
    figures, write = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), write(self, *a, **k))[1])
    return figures


def part(title, n=300):
    t = np.arange(n) / 100.0 + np.where(np.arange(n) < n // 2, 0.0, 1.0)  # a hole in the middle
    tau = np.stack((np.sin(t), np.cos(t)), -1)
    used = np.ones(tau.shape, bool)
    used[10:20, 1] = False
    return view.Torques(title, t, tau, 0.9 * tau, used)


def test_torques_of_two_logs_stand_side_by_side(drawn, tmp_path):
    path = view.torques(JOINTS, [part("training: 1 %"), part("unseen: 2 %")], tmp_path / "torques.png")
    assert imread(path).std() > 0.05
    axes = drawn[0].axes
    assert len(axes) == 4
    assert axes[0].get_title() == "training: 1 %, grey: not used"
    assert [ax.get_ylabel() for ax in axes[::2]] == ["lift\n[N]", "elbow\n[N m]"]
    measured, predicted, difference = (line.get_ydata() for line in axes[2].lines)
    np.testing.assert_allclose(measured - predicted, difference)
    assert np.isnan(measured[150])  # no line across the hole
    assert np.isnan(measured[10:20]).all()  # nor what was left out
    assert np.isfinite(np.delete(measured, [*range(10, 20), 150])).all()


def test_residuals_have_their_histogram_and_autocorrelation(drawn, tmp_path):
    r = np.random.default_rng(0).normal(size=(2, 500))
    rho = [np.eye(1, 200)[0], np.ones(200)]
    path = view.residuals(JOINTS, r, rho, tmp_path / "residuals.png")
    assert imread(path).std() > 0.05
    axes = drawn[0].axes
    assert axes[2].get_xlabel() == "residual [N m] or [N]"
    np.testing.assert_array_equal(axes[3].lines[0].get_ydata(), np.ones(101))
    nothing = view.residuals(JOINTS, [r[0], r[0, :0]], rho, tmp_path / "none.png")  # a joint without samples
    assert imread(nothing).std() > 0.02


def test_parameters_show_what_is_known_found_and_given(drawn, tmp_path):
    known = view.Intervals(["m1", "x" * 80], "ols", np.array([2.0, -1.0]), np.array([0.1, 1.0]))
    path = view.parameters(known, np.array([1.0, 0.0]), ("ridge", np.array([1.8, 0.0])), tmp_path / "parameters.png")
    assert imread(path).std() > 0.02
    (ax,) = drawn[0].axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ridge", "model given", "ols, 95 %"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["m1", "x" * 56 + " ..."]


def test_pictures_know_no_identification():
    code = "import sys, geomctrl.viewing.identification; print(*(m for m in sys.modules if 'geomctrl.identif' in m))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""
