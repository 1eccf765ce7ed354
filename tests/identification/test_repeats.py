"""Periodic motions are found across gaps, wrong periods are refused, and test motion is compared with training."""

import numpy as np
import pytest
from identification.simulated_logs import fourier
from lib.logs import between

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, Filtering, RegressorModel, Validation, identify
from geomctrl.identification.assessment.similarity import NEAR_DISTANCE, compare
from geomctrl.identification.logs.parts import cut_at_holes, detected_period, require_repeating

RATE, PERIOD = 200.0, 4.0


def log(seconds=16.0, lowest=1.0 / PERIOD, seed=0, nv=2, noise=0.0, harmonics=5, start=0.0):
    rng = np.random.default_rng(seed)
    motion = fourier(rng, nv, lowest, harmonics, 1.0)
    t = start + np.arange(int(seconds * RATE)) / RATE
    q, v, a = motion(t)
    return Dataset(t, q + noise * rng.normal(size=q.shape), np.ones(q.shape), v=v, a=a)


def holed(data, *holes):
    kept = np.ones(len(data), bool)
    for start, stop in holes:
        kept &= (data.t < start) | (data.t >= stop)
    return cut_at_holes(Dataset(data.t[kept], data.q[kept], data.tau[kept], v=data.v[kept], a=data.a[kept]))


def test_a_period_is_found_across_holes():
    """No part is as long as two periods, and some not even as one."""
    data = holed(log(noise=1e-3), *((k + 0.4, k + 0.7) for k in range(1, 15, 2)))
    assert max(s.stop - s.start for s in data.stretches) < 0.6 * PERIOD * RATE
    assert detected_period(data) == pytest.approx(PERIOD, abs=0.5 / RATE)


def test_a_log_with_less_than_two_periods_repeats_too():
    assert detected_period(log(seconds=1.4 * PERIOD)) == pytest.approx(PERIOD)
    assert detected_period(log(seconds=1.05 * PERIOD)) is None  # a twentieth of a period may be a coincidence
    rests = log(seconds=PERIOD)
    q = np.concatenate((np.tile(rests.q[:1], (400, 1)), rests.q, np.tile(rests.q[:1], (400, 1))))
    assert detected_period(Dataset(np.arange(len(q)) / RATE, q, q)) is None  # back at the start, at rest


def test_what_does_not_repeat_has_no_period():
    for seed in range(5):
        assert detected_period(log(lowest=1.0 / 40.0, harmonics=20, seed=seed)) is None
    still = Dataset(np.arange(500) / RATE, np.ones((500, 2)), np.ones((500, 2)))
    assert detected_period(still) is None


def test_a_wrong_period_is_refused_with_what_was_found():
    data = holed(log(), (3.0, 3.5), (9.0, 9.2))
    require_repeating(data, PERIOD)
    require_repeating(data, PERIOD + 1.0 / RATE)
    for wrong, words in (
        (3.1, r"3\.1 s apart differ by .* % of their range .*; they repeat every 4 s"),
        (
            2.0 * PERIOD,
            r"already repeats every 4 s: with a period of 8 s, the test part would repeat motion of the training part",
        ),
        (100.0, "nothing was recorded 100 s apart; they repeat every 4 s"),
        (0.0, "expected seconds > 0"),
    ):
        with pytest.raises(ArgumentError, match="period: .*" + words):
            require_repeating(data, wrong)
    with pytest.raises(ArgumentError, match="no period was found"):
        require_repeating(log(lowest=1.0 / 40.0, harmonics=20), PERIOD)
    with pytest.raises(ArgumentError, match=r"period: .*they repeat every 4 s"):
        require_repeating(data, 3.0)
    require_repeating(data, 4.0)


def test_the_distance_of_the_test_motion_is_measured_in_standard_deviations():
    train, test = log(), log(seed=1)
    moved = Dataset(test.t, test.q + 100.0, test.tau, v=test.v, a=test.a)
    scale = np.hstack((train.q, train.v, train.a)).std(axis=0)
    expected = np.sqrt(np.sum((100.0 / scale[:2]) ** 2) / 6.0)  # all rows at this distance, up to a few
    assert compare(train, moved).distance == pytest.approx(expected, rel=0.05)
    # computed directly, on few rows
    a, b = train.select(np.arange(len(train)) < 400), test.select(np.arange(len(test)) < 300)
    z, y = (np.hstack((x.q, x.v, x.a)) for x in (a, b))
    apart = np.linalg.norm((z[:, None] - y) / z.std(axis=0), axis=-1).min(axis=0) / np.sqrt(6.0)
    result = compare(a, b)
    assert result.distance == pytest.approx(np.median(apart))
    assert result.seen == pytest.approx(np.mean(apart < NEAR_DISTANCE))


def test_retraced_motion_is_told_from_motion_that_crosses():
    data = log(seconds=16.0, nv=3, noise=0.0)
    first, again = between(data, 0.0, 9.0), between(data, 9.0, 16.0)
    result = compare(first, again)
    assert result.retraced > 0.95
    assert result.lag == pytest.approx(4.0, abs=0.1) or result.lag == pytest.approx(8.0, abs=0.1)
    (finding,) = result.findings()
    assert finding.kind == "unseen"
    assert "% of the test samples repeat" in finding.seen
    for seed in range(1, 4):
        other = compare(first, log(seed=seed, nv=3))
        assert other.retraced == 0.0
        assert other.findings() == []
    # permutation of parts of 0.1 s
    pieces = np.random.default_rng(0).permutation(np.arange(1400).reshape(70, 20)).ravel()
    shuffled = compare(first, Dataset(again.t, first.q[pieces], again.tau, v=first.v[pieces], a=first.a[pieces]))
    assert shuffled.seen == 1.0
    assert shuffled.retraced < 0.3
    backwards = Dataset(again.t, again.q[::-1], again.tau, v=-again.v[::-1], a=again.a[::-1])
    assert compare(first, backwards).retraced < 0.1  # the same path with other friction


def test_a_test_log_that_repeats_the_training_is_doubted():
    model = RegressorModel(models.two_link(), smoothing=0.02)
    t = np.arange(int(20 * RATE)) / RATE
    rng = np.random.default_rng(0)
    logs = []
    for motion in (fourier(rng, 2, 0.05, 20, 1.5),) * 2 + (fourier(rng, 2, 0.05, 20, 1.5),):
        q, v, a = motion(t)
        logs.append(Dataset(t, q, model.torque(model.prior, q, v, a) + 0.02 * rng.normal(size=q.shape)))
    for test, doubted in ((logs[1], True), (logs[2], False)):
        report = identify(
            model.robot, logs[0], model=model, method="ridge", filtering=Filtering(15.0), validation=Validation(test)
        )
        assert [d.kind for d in report.findings] == ["unseen"] * doubted
        assert "standard deviations of (q, v, a) from the nearest training sample" in report.text()
