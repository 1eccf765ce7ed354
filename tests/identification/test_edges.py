"""Ends, gaps and splits of logs: short gaps are filled, unsettled filters masked; rest and motion are separated."""

import numpy as np
import pytest

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, Filtering, RegressorModel, Validation, identify
from geomctrl.identification.estimators.cutoffs import SETTLING, LogFilter
from geomctrl.identification.logs.parts import cut_at_holes, with_bridges, without_edges
from geomctrl.identification.logs.signals import at_rest

RATE = 200.0


def wave(t):
    w = np.array([2.0, 3.1])
    return np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -(w**2) * np.sin(t[:, None] * w)


def holed(*lost, seconds=10.0):
    """A log without some samples: (first, how many)."""
    t = np.arange(int(seconds * RATE)) / RATE
    q, v, _ = wave(t)
    kept = np.ones(len(t), bool)
    for first, n in lost:
        kept[first : first + n] = False
    return Dataset(t[kept], q[kept], 2.0 * q[kept], v=v[kept])


def test_short_holes_are_bridged_and_masked():
    data = with_bridges(holed((400, 3), (900, 1), (1500, 6), (1700, 30)))
    t = np.arange(2000) / RATE
    kept = np.ones(2000, bool)
    kept[1700:1730] = False  # 0.15 s: remains a gap
    kept[1500:1506] = True  # 30 ms
    np.testing.assert_allclose(data.t, t[kept], atol=1e-12)
    q, v, _ = wave(data.t)
    np.testing.assert_allclose(data.q, q, atol=2e-5)
    np.testing.assert_allclose(data.v, v, atol=6e-5)
    masked = np.zeros(2000, bool)
    for first, n in ((400, 3), (900, 1), (1500, 6)):
        masked[first - n : first + 2 * n] = True
    np.testing.assert_array_equal(~data.used[:, 0], masked[kept])
    assert data.history == ("3 holes of up to 6 samples bridged; those samples masked",)
    assert cut_at_holes(data).gaps == (1700,)


def test_what_can_not_be_bridged_stays():
    whole = holed()
    assert with_bridges(whole) is whole
    # one sample in twenty is missing: the recording can not be trusted
    many = holed(*((k, 1) for k in range(20, 1900, 20)))
    assert with_bridges(many) is many
    t = np.concatenate((np.arange(500), 500.4 + np.arange(500))) / RATE  # 1.4 intervals
    odd = Dataset(t, *(2 * (wave(t)[0],)))
    assert with_bridges(odd) is odd


def test_rows_near_ends_holes_and_splits_are_masked():
    data = without_edges(cut_at_holes(holed((900, 100))), 0.5)
    expected = np.zeros(1900, bool)
    expected[100:800] = expected[1000:1800] = True
    np.testing.assert_array_equal(data.used, np.repeat(expected[:, None], 2, axis=1))
    assert "400 of 1900 samples" in data.history[-1]
    short = without_edges(cut_at_holes(holed(*((k, 40) for k in range(160, 1900, 200)))), 0.5)
    assert 0.4 < short.used.mean() < 0.6  # a quarter of every part at both ends, not all of it
    assert without_edges(data, 0.0).used.sum() == data.used.sum()
    masked = data.used.copy()
    masked[400] = False
    again = without_edges(Dataset(data.t, data.q, data.tau, mask=masked), 0.5)
    assert not again.used[400].any()


def test_edges_no_longer_make_the_error():
    """A log that starts and ends in motion: the extrapolation of filters beyond its ends is not the motion."""
    model = RegressorModel(models.two_link(), smoothing=0.02)
    t = np.arange(int(24 * RATE)) / RATE
    w = 2.0 * np.pi * np.array([[0.21, 0.34], [0.55, 0.47], [0.9, 1.1]])
    A, phase = np.array([[0.8, 0.7], [0.4, 0.5], [0.2, 0.2]]), np.array([[0, 1], [2, 3], [4, 5.0]])
    angle = t[:, None, None] * w + phase
    q, v, a = (A * np.sin(angle)).sum(1), (A * w * np.cos(angle)).sum(1), -(A * w**2 * np.sin(angle)).sum(1)
    x = model.prior
    x[model.by_kind["coulomb"]] = 2.0
    rng = np.random.default_rng(0)
    log = Dataset(t, q, model.torque(x, q, v, a) + 0.02 * rng.normal(size=q.shape))
    filtering = Filtering(4.0)
    report = identify(model.robot, log, model=model, method="ridge", filtering=filtering)
    settled, all_rows = report.errors["test"]["relative_error"], report.test
    bare = LogFilter.of(filtering, log)
    raw = log.split(0.7)[1].filtered(4.0, torque_cutoff=4.0, alike=True, decimate=bare.decimate)
    assert len(raw) == len(all_rows)
    assert report.estimate.relative_error(raw) > 2.0 * settled
    used = all_rows.used[report.estimate.model._rows(all_rows)].any(axis=1)
    masked = np.flatnonzero(~used)
    assert len(masked) == pytest.approx(2 * SETTLING * 4, abs=2)  # four rows per period, 1.5 periods at both ends
    assert used[8:-8].all()


def test_rest_is_told_from_passing_through_zero():
    t = np.arange(2000) / RATE
    stopped = np.clip(t, 0.0, 7.0)
    q, v, a = wave(stopped)
    v[t >= 7.0] = a[t >= 7.0] = 0.0
    v[:, 1] = wave(t)[1][:, 1]  # this one continues
    data = Dataset(t, q, q, v=v, a=a)
    np.testing.assert_array_equal(at_rest(data)[:, 0], t >= 7.0)
    assert not at_rest(data)[:, 1].any()
    moving = data.without(standstill="auto")
    np.testing.assert_array_equal(moving.used[:, 0], t < 7.0)
    longer = data.select(t > 5.0).without(standstill="auto")
    assert longer.used.all()  # three fifths at rest, so rows at rest are used


def test_errors_of_moving_and_resting_rows_stand_apart():
    model = RegressorModel(models.two_link(), smoothing=0.02)
    t = np.arange(int(20 * RATE)) / RATE
    rng = np.random.default_rng(1)
    phase = np.where(t < 16.0, t, 16.0)
    w = 2.0 * np.pi * np.array([0.37, 0.61])
    q = np.sin(phase[:, None] * w) + 0.4 * np.sin(2.3 * phase[:, None] * w + 1.0)
    v, a = np.gradient(q, 1 / RATE, axis=0), np.gradient(np.gradient(q, 1 / RATE, axis=0), 1 / RATE, axis=0)
    tau = model.torque(model.prior, q, v, a) + 0.01 * rng.normal(size=q.shape)
    tau[t > 16.2] += 1.5  # no model contains what holds the arm at rest
    report = identify(model.robot, Dataset(t, q, tau), model=model, method="ridge", filtering=Filtering(10.0))
    e = report.errors["test"]
    assert 0.5 < e["resting_share"] < 0.75
    assert e["resting_rmse"] == pytest.approx(1.5, rel=0.1)
    assert e["moving_error"] < 0.6 * e["resting_error"]
    # together they are all rows
    n, share = e["samples"] * 2, e["resting_share"]
    together = np.sqrt(share * e["resting_rmse"] ** 2 + (1.0 - share) * e["moving_rmse"] ** 2)
    assert n > 0
    assert together == pytest.approx(e["rmse"], rel=1e-9)
    lines = report.text().splitlines()
    assert any(line.startswith("moving ") for line in lines)
    assert any(line.startswith("at rest, 0, ") for line in lines)
    assert report.errors["training"]["resting_share"] == 0.0
    assert np.isnan(report.errors["training"]["resting_error"])


def test_validation_and_filtering_take_what_they_took():
    assert Filtering(standstill=0.0).standstill == 0.0
    assert Filtering().standstill is None
    with pytest.raises(ArgumentError, match="standstill"):
        Filtering(standstill=-1.0)
    assert Validation().period is None
