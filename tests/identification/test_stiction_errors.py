"""Rows at rest: static friction is bounded, not determined; the report counts what it explains."""

import numpy as np
import pytest

from geomctrl import models
from geomctrl.identification import Curve, Dataset, RegressorModel, Result, fit
from geomctrl.identification.logs.signals import at_rest
from geomctrl.identification.report.numbers import first_line, moving_and_resting

FRICTION = np.array([0.8, 0.5])  # N m: Coulomb's


def stopped(holding, **options):
    """Return (model, its parameters, log): the arm moves for 12 s, then rests for 4 s, held by `holding` (nv,) [N
    m].
    """
    model = RegressorModel(models.two_link(), smoothing=0.02, offset=False, **options)
    t = np.arange(1600) / 100.0
    w = 2.0 * np.pi * np.array([0.37, 0.61])
    phase = np.minimum(t, 12.0)[:, None] * w
    q, moves = np.sin(phase) + 0.4 * np.sin(2.3 * phase + 1.0), (t < 12.0)[:, None]
    v = moves * (w * np.cos(phase) + 0.92 * w * np.cos(2.3 * phase + 1.0))
    a = -1.0 * moves * (w**2 * np.sin(phase) + 2.116 * w**2 * np.sin(2.3 * phase + 1.0))
    x = model.prior
    x[model.by_kind["coulomb"]] = FRICTION[: len(model.by_kind["coulomb"])]
    x[model.by_kind["curve"]] = 0.2
    tau = model.torque(x, q, v, a) + ~moves * np.asarray(holding)
    return model, x, Dataset(t, q, tau, v=v, a=a)


@pytest.mark.parametrize(
    ("holding", "within", "beyond"),
    [([0.79, -0.49], 1.0, [0.0, 0.0]), ([-0.81, 0.3], 0.5, [0.01, 0.0]), ([3.0, -3.0], 0.0, [2.2, 2.5])],
)
def test_static_friction_explains_what_is_within_its_band(holding, within, beyond):
    model, _, data = stopped(holding)
    e = fit(model, data.without(standstill="auto"), "ols")
    np.testing.assert_allclose(e.x[model.by_kind["coulomb"]], FRICTION, rtol=1e-6)
    result = moving_and_resting(e, data)
    assert result["resting_share"] == pytest.approx(0.25, abs=0.01)
    assert result["moving_error"] < 1e-8
    assert result["resting_within"] == pytest.approx(within, abs=1e-3)
    rests = at_rest(data)
    left = np.sqrt((rests * np.square(beyond)).sum() / np.sum(data.tau[rests] ** 2))
    assert result["resting_beyond"] == pytest.approx(left, rel=1e-5, abs=1e-9)
    assert result["resting_error"] > result["resting_beyond"]


def test_curves_and_coupled_drives_hold_too():
    """A third drive turns with both joints: its friction holds each of them; a friction curve of joint 2 counts,
    too.
    """
    options = {"transmission": [[1, 0], [0, 1], [1, 1]], "coulomb": [2], "curves": [Curve(1, "stribeck", 0.3)]}
    for holding, within in (([0.79, 0.99], 1.0), ([0.81, 0.99], 0.5), ([0.79, 1.01], 0.5)):
        model, _, data = stopped(holding, **options)
        e = fit(model, data.without(standstill="auto"), "ols")
        assert moving_and_resting(e, data)["resting_within"] == pytest.approx(within, abs=1e-3)


def test_the_first_number_is_of_moving_rows_and_says_so():
    model, _, data = stopped([0.79, 3.0])
    report = Result(fit(model, data.without(standstill="auto"), "ols"), data.without(standstill="auto"), data)
    line = first_line(report.errors)
    numbers = report.errors["test"]
    assert line in report.text()
    assert report.text().index(line) < report.text().index("Identification of")
    assert line.startswith(f"unseen error {100 * numbers['moving_error']:.2f} % at samples in motion")
    assert f"{100 * numbers['relative_error']:.2f} % with those at rest, 25 % of the samples" in line
    assert line.endswith("within its band explains 50 %")
    assert "within friction, left" in report.text()
    alone = Result(report.estimate, data.without(standstill="auto"))
    assert first_line(alone.errors) == f"training error {100 * alone.errors['training']['relative_error']:.2f} %"
