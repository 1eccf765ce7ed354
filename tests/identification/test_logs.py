"""The published logs of three industrial robots, if they are there (experiments/lib/logs.py says where to get them)."""

import numpy as np
import pytest
from lib import logs

from geomctrl import inertia, models
from geomctrl.identification import RegressorModel, base_parameters, fit, fit_curves


def needs(name):
    why = logs.missing(name)
    return pytest.mark.skipif(why is not None, reason=str(why))


def strictly_physical(estimate):
    P = inertia.pseudo(estimate.robot.parameters)
    return estimate.is_physical and np.linalg.eigvalsh(P).min() > 0.0


@pytest.mark.slow
@needs("tx40_figaroh.npz")
def test_tx40_reaches_the_published_error():
    robot = logs.tx40()
    data = logs.tx40_log().filtered(40.0, torque_cutoff=10.0, alike=True, decimate=50)
    model = RegressorModel(
        robot, rotor=True, offset=range(6), transmission=logs.TX40_TRANSMISSION, smoothing=0.03, springs=[1]
    )
    model = fit_curves(model, data, "sigmoid", (0, 1, 2, 3, 4, 6)).model
    e = fit(model, data, "consistent", mass_max=30.0)
    rmse = np.linalg.norm(e.training.residuals(e.x)) / np.sqrt(e.training.counts.sum())
    assert e.relative_error() <= 0.0525
    assert rmse <= 1.11
    assert strictly_physical(e)
    # torques of the coupled wrist make sense only with the coupling: motor 6 turns with joint 5
    uncoupled = fit(RegressorModel(robot, rotor=True, smoothing=0.03), data, "ols")
    assert uncoupled.relative_error() > 1.7 * e.relative_error()


@needs("tx40_figaroh.npz")
def test_a_published_urdf_with_a_massless_tip_is_geometry_enough():
    """Least squares and base parameters do not depend on the inertias of a model file."""
    robot = models.load_urdf(logs.FOLDER / "tx40_mdh_modified.urdf", physical="unchecked")
    data = logs.tx40_log().filtered(40.0, torque_cutoff=10.0, alike=True, decimate=50)
    errors = [fit(RegressorModel(r, rotor=True), data, "ols").relative_error() for r in (robot, logs.tx40())]
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    assert base_parameters(robot, exact=True).size == 36
    assert strictly_physical(fit(RegressorModel(robot, rotor=True), data, "consistent", mass_max=30.0))


@needs("kr300_weigand_AB.npz")
def test_kr300_fitted_on_a_predicts_b():
    robot = logs.kr300()
    a, b = (logs.kr300_log(part).filtered(8.0, decimate=2) for part in "AB")
    model = RegressorModel(robot, rotor=True, offset=False, columns=[logs.kr300_counterbalance()], smoothing=1e-3)
    unseen = model.compress(b)
    seen = a.without(standstill=0.01)
    e = fit(model, seen, "consistent", mass_max=logs.KR300_MASSES, weights="noise", regularization=1e-4)
    assert e.relative_error(unseen) <= 0.16
    assert strictly_physical(e)
    assert fit(model, a, "ols").relative_error(unseen) > e.relative_error(unseen) / 0.5
    # in motion the consistent fit predicts test data, and least squares do not
    moving = model.compress(b.without(standstill=0.01))
    assert e.relative_error(moving) < 0.08 < 0.5 * fit(model, seen, "ols").relative_error(moving)


@needs("ur10_petrone_first70.npz")
def test_ur10_trained_on_the_first_part_predicts_the_rest():
    robot = logs.ur10()
    train, test = (x.filtered(6.0, alike=True, decimate=2) for x in logs.ur10_log().split(0.7))
    model = RegressorModel(robot, smoothing=0.05)
    e = fit(model, train, "consistent", mass_max=20.0, weights="noise", regularization=1e-4)
    assert e.relative_error(test) <= 0.066
    assert e.relative_error(test) < fit(model, train, "ols").relative_error(test)
    assert strictly_physical(e)


@needs("ur10_petrone_first70.npz")
def test_the_semidefinite_program_does_not_grow_with_the_log():
    data = logs.ur10_log().filtered(6.0)
    model = RegressorModel(logs.ur10())
    A, _ = model.compress(data).system()
    assert A.shape[0] <= model.size + 1  # for any number of samples
    e = fit(model, data, "consistent", mass_max=20.0)
    assert e.notes["seconds"] < 1.0


def test_missing_logs_say_how_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setattr(logs, "FOLDER", tmp_path)
    assert "github.com/thanhndv212/figaroh-plus" in logs.missing("tx40_figaroh.npz")
    with pytest.raises(SystemExit, match=r"skipped: .*GEOMCTRL_DATA"):
        logs.need("tx40_figaroh.npz")
