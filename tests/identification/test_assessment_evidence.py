"""The statistics behind verdicts: least squares from products, independent residuals, likelihoods of scales."""

import dataclasses

import numpy as np
import pytest
from identification.assessment_logs import evidence, judge, scaled
from lib import mistakes

import geomctrl as gc
from geomctrl import inertia, models
from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, RegressorModel, Result, fit, identify
from geomctrl.identification.assessment import Evidence
from geomctrl.identification.assessment.evidence import FreeFit, Products, fit_rows, free_fit, independent_rows
from geomctrl.identification.assessment.fit_checks import unseen
from geomctrl.identification.assessment.log_checks import predicted_deviation
from geomctrl.identification.assessment.rows import Motion, rows_of
from geomctrl.identification.assessment.scales import (
    INTERVAL_LOG_LIKELIHOOD,
    LOG_SCALES,
    MIN_LOG_SCALE,
    Profile,
    profiles,
)
from geomctrl.identification.assessment.trials import _apart, explained, likely_trials, trial_fits, undecided
from geomctrl.identification.logs.filters import low_pass

ARM = RegressorModel(models.two_link(), smoothing=0.02)
ROWS = 400


def data_of(model=ARM, seed=0, noise=0.05, memory=0.0, rows=ROWS, shared=0.0):
    """Random states, slow ones where noise has a memory (AR(1), this coefficient), torques of the robot's own bodies
    with friction, and noise; shared: correlation of the last two joints' noise."""
    rng = np.random.default_rng(seed)
    n = model.robot.nv
    q, v, a = (remembering(rng.normal(size=(rows, n)), 0.97 if memory else 0.0) for _ in range(3))
    x = model.prior
    x[model.positive] = 0.5
    tau = model.torque(x, q, v, a)
    e = rng.normal(size=(rows, n))
    e[:, -1] = shared * e[:, -2] + np.sqrt(1.0 - shared**2) * e[:, -1]
    tau = tau + noise * np.sqrt(np.mean(tau**2, 0)) * remembering(e, memory)
    return Dataset(np.arange(rows) / 100.0, q, tau, v=v, a=a)


def remembering(e, memory):
    """e (n, .) as an AR(1) process with the same variance."""
    e = e.copy()
    for k in range(1, len(e) if memory else 0):
        e[k] = memory * e[k - 1] + np.sqrt(1.0 - memory**2) * e[k]
    return e


@pytest.fixture(scope="module")
def seen():
    return evidence(data_of(), ARM)


def stacked(rows, model=ARM):
    return rows.regressor(model), rows.torques(model)


def test_least_squares_from_products_are_those_of_the_rows(seen):
    Y, tau = stacked(seen.rows)
    used = np.ones(tau.shape, bool)
    used[::7, 0] = False
    data, w = Products.of(np.concatenate((Y, tau[..., None]), -1), used), np.array([2.0, 0.3])
    A, b = ((x * (used * w)[..., None]).reshape(2 * ROWS, -1) for x in (Y, tau[..., None]))
    x = np.linalg.lstsq(A, b[:, 0], rcond=None)[0]
    np.testing.assert_allclose(data.solve(w), x, rtol=1e-7)
    np.testing.assert_allclose(data.covariance(w), np.linalg.inv(A.T @ A), rtol=1e-6, atol=1e-12)
    left = np.linalg.norm(np.where(used, tau - Y @ x, 0.0), axis=0)
    np.testing.assert_allclose(data.residuals(x), left, rtol=1e-7)
    np.testing.assert_array_equal(data.counts, used.sum(0))


def test_products_of_a_whole_log_are_those_of_its_rows(seen):
    Y, tau = stacked(seen.rows)
    ours = Products.of(np.concatenate((Y, tau[..., None]), -1), seen.rows.used)
    np.testing.assert_allclose(Products.of_factors(ARM, seen.estimate.training).products, ours.products, atol=1e-8)


def test_columns_that_the_motion_does_not_excite_get_nothing():
    P = np.diag([4.0, 0.0, 9.0])[None] + np.array([[[0, 0, 2.0], [0, 0, 0], [2.0, 0, 0]]])
    np.testing.assert_allclose(Products(P, np.array([5])).solve(np.ones(1)), [0.5, 0.0], atol=1e-9)


def test_parameters_take_as_many_independent_residuals_as_they_are(seen):
    Y, tau = stacked(seen.rows)
    data = Products.of(np.concatenate((Y, tau[..., None]), -1), seen.rows.used)
    result = free_fit(data, np.array([200.0, 100.0]), iterations=20)
    assert np.sum(result.independent - result.freedom) == pytest.approx(ARM.base.size, rel=1e-6)
    np.testing.assert_allclose(result.weights, np.sqrt(result.freedom) / result.residuals)
    np.testing.assert_allclose(result.covariance, data.covariance(result.weights), rtol=1e-9)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_independent_residuals_of_a_memory(memory):
    """The sum of autocorrelations of an AR(1) process is known: (1 + c) / (1 - c) rows count as one."""
    rng = np.random.default_rng(1)
    e = rng.normal(size=(20000, 2))
    for k in range(1, len(e)):
        e[k] += memory * e[k - 1]
    used = np.ones(e.shape, bool)
    expected = len(e) * (1.0 - memory) / (1.0 + memory)
    np.testing.assert_allclose(independent_rows(e, used, np.arange(len(e))), expected, rtol=0.25)


def test_residuals_that_repeat_with_the_motion_count_once():
    """Five periods of the same residual are as good as one; noise is new in each."""
    rng = np.random.default_rng(0)
    t = np.arange(5000) * 5e-3  # 25 s
    data = Dataset(t, *(np.sin(0.4 * np.pi * t)[:, None] for _ in range(2)), v=t[:, None], a=t[:, None])
    rows = rows_of(data, np.arange(len(t)), None, period=5.0)
    noise = rng.normal(size=(len(rows.t), 1))
    same = rng.normal(size=(len(rows.t) // 5, 1))[rows.repeats % (len(rows.t) // 5)]
    n = len(rows.t)
    assert 0.8 * n < independent_rows(noise, rows.used, rows.repeats)[0] <= n
    assert independent_rows(same, rows.used, rows.repeats)[0] == pytest.approx(n / 5, rel=0.1)
    phases = rows.t[rows.order] % 5.0
    assert (np.diff(phases) >= 0.0).all()
    assert (np.diff(np.unique(rows.repeats)) == 1).all()


@pytest.mark.slow
def test_a_right_log_that_repeats_and_is_filtered_too_low_is_not_accused():
    """1.75 s of 5 s are left to train on, and what the low-pass takes away is the same in every period."""
    conditions = {"rate": 500.0, "seconds": 25.0, "noise": 0.02, "bits": 16, "band": 0.4, "friction": 0.05}
    log, model = mistakes.simulated("ur10", 10_228, velocities=0.01, period=5.0, **conditions)
    assessment = identify(model.robot, log, model=model, method="wls", ignore=("bodies", "prior")).assessment
    assert not any(finding.fatal for finding in assessment.findings)
    assert "excitation" in {finding.kind for finding in assessment.findings}


def by_hand(residuals, freedom):
    residuals, freedom = np.array(residuals), np.array(freedom)
    return FreeFit(np.zeros(1), np.eye(1), residuals, residuals, freedom, freedom, np.ones(len(freedom)))


def test_fits_are_compared_channel_by_channel():
    one, two = by_hand([2.0, 1.0, 6.0], [10.0, 20.0, 30.0]), by_hand([2.0, 6.0, 1.0], [1.0, 1.0, 5.0])
    assert two.evidence_over(one, np.array([0, 2, 1])) == pytest.approx(0.0)
    assert two.evidence_over(one) == pytest.approx(20.0 * np.log(1 / 6) + 30.0 * np.log(6))
    assert two.evidence_over(one, own=True) == pytest.approx(np.log(1 / 6) + 5.0 * np.log(6))
    assert two.gain_over(one) == pytest.approx(0.0)


# --- scales ------------------------------------------------------------------------------------------------------


@pytest.mark.quick(1)
@pytest.mark.parametrize(("memory", "rows"), [(0.0, 200), (0.8, 500)])
def test_twice_the_evidence_of_a_scale_that_is_none_is_chi_squared(memory, rows):
    """Its mean is 1 for any correlation of the residuals; if all rows counted as independent it would be five for
    0.8.
    """
    doubled = []
    for seed in range(25):
        seen = evidence(data_of(seed=seed, memory=memory, rows=rows, noise=0.1), ARM)
        result = profiles(ARM, seen.rows, fit_rows(ARM, seen.rows))
        doubled += [2.0 * p.evidence for p in result]
    assert 0.4 < np.mean(doubled) < 1.7  # less, because the motion's correlation is shorter than the noise's
    assert np.quantile(doubled, 0.95) < 7.0  # of chi squared: 3.8


@pytest.mark.parametrize("s", [1e-3, 0.5, 3.0])
def test_a_scale_shifts_its_likelihood(s, seen):
    data = seen.training
    (plain, *_), (moved, *_) = (
        profiles(ARM, x.rows, fit_rows(ARM, x.rows)) for x in (seen, evidence(scaled(data, 0, tau=s), ARM))
    )
    assert moved.log_scale - plain.log_scale == pytest.approx(np.log(s), abs=0.05)
    assert moved.wrong
    assert not plain.wrong
    low, high = moved.interval
    assert low < np.log(s) < high


def parabola(best, deviation):
    at = np.sort(np.append(LOG_SCALES, best))
    return Profile((0,), at, 0.5 * ((at - best) / deviation) ** 2)


def test_torques_that_any_small_scale_explains_are_in_no_unit():
    """A likelihood that does not fall towards 0: the bodies do not explain these torques at all."""
    at = np.sort(np.append(LOG_SCALES, -2.0))
    flat = Profile((0,), at, np.where(at < -2.0, 1.0, 20.0 * (at + 2.0)))
    assert flat.evidence > INTERVAL_LOG_LIKELIHOOD
    assert (flat.wrong, flat.open) == (False, True)


def test_intervals_are_where_likelihood_falls():
    low, high = parabola(0.0, 0.1).interval
    np.testing.assert_allclose([low, high], np.sqrt(2.0 * INTERVAL_LOG_LIKELIHOOD) * np.array([-0.1, 0.1]))
    assert parabola(1.0, 10.0).interval[0] == -np.inf
    assert parabola(-1.0, 10.0).interval[1] == np.inf


@pytest.mark.parametrize(
    ("best", "deviation", "wrong", "open_"),
    [
        (np.log(20.0), 0.5, False, True),  # from 2.7 to 150: not determined
        (np.log(0.01), 0.5, True, False),  # from 0.0014 to 0.074: nowhere near 1
        (0.0, 0.05, False, False),
        (0.0, 0.3, False, True),  # a half and two are within four deviations
        (np.log(0.5), 0.1, True, False),
        (np.log(0.5), 0.2, False, True),  # 1 is within
        (0.9 * MIN_LOG_SCALE, 0.02, False, False),  # significant, but small
        (1.1 * MIN_LOG_SCALE, 0.02, True, False),
    ],
)
def test_a_scale_is_doubted_or_not_told_or_right(best, deviation, wrong, open_):
    result = parabola(best, deviation)
    assert (result.wrong, result.open) == (wrong, open_)


# --- trials ------------------------------------------------------------------------------------------------------


def test_what_is_neither_likelier_nor_less_likely_is_noted(seen):
    """All trials that exceed what chance gives for their number, likeliest first; a swap counts once."""
    fitted = fit_rows(ARM, seen.rows)
    all_ = [t._replace(evidence=-1e3) for t in trial_fits(ARM, seen.rows, fitted, seen.names)]
    assert undecided(seen, seen.rows, all_) == []
    swaps = [k for k, t in enumerate(all_) if t.trial.kind == "swap"]
    all_[swaps[0]], all_[swaps[1]] = all_[swaps[0]]._replace(evidence=-2.0), all_[swaps[1]]._replace(evidence=3.0)
    (note,) = undecided(seen, seen.rows, all_)
    assert note == f"this log does not determine whether {', or '.join(all_[k].trial.clause for k in swaps[1::-1])}"


def test_a_trial_has_to_be_likelier_and_to_matter(seen):
    """A trial that is likelier than chance but reduces the residual too little is not reported; nor is the opposite
    case.
    """
    fitted = fit_rows(ARM, seen.rows)
    first, *rest = trial_fits(ARM, seen.rows, fitted, seen.names)
    rest = [t._replace(evidence=-1e3) for t in rest]

    def best(evidence, share):
        after = dataclasses.replace(fitted, residuals=fitted.residuals * share)
        return likely_trials(seen, seen.rows, fitted, [first._replace(evidence=evidence, fit=after), *rest])

    least = np.log((1 + len(rest)) / 0.01)
    assert len(best(least + 0.1, 0.9)) == 1
    assert best(least - 0.1, 0.9) == []
    assert best(1e3, 0.99) == []


def test_noise_that_two_joints_share_counts_once(seen):
    """The covariance of any mixture of their torques has the determinant r1^2 r2^2 (1 - c^2)."""
    rng, n = np.random.default_rng(3), len(seen.rows.t)
    e = rng.normal(size=(n, 2))
    e[:, 1] = 0.9 * e[:, 0] + 0.4 * e[:, 1]
    fitted = fit_rows(ARM, seen.rows)
    noisy = dataclasses.replace(seen.rows, tau=seen.rows.regressor(ARM) @ fitted.values + e)
    c = e[:, 0] @ e[:, 1] / np.sqrt((e[:, 0] @ e[:, 0]) * (e[:, 1] @ e[:, 1]))
    expected = -0.5 * fitted.freedom.min() * np.log(1.0 - c**2)
    assert _apart(ARM, noisy, fitted, (1, 0)) == pytest.approx(expected, rel=1e-6)


def test_noise_that_two_joints_share_is_no_coupling():
    data = data_of(shared=0.98, noise=0.1)
    assert "coupling" not in {d.kind for d in judge(data, ARM).findings}


def test_what_columns_of_another_joint_explain_is_what_least_squares_with_them_explain(seen):
    Y, tau = stacked(seen.rows)
    rng = np.random.default_rng(0)
    motion, w = rng.normal(size=(ROWS, 2, 3)), np.array([1.0, 0.5]) * np.ones((ROWS, 2))
    share = explained(Y, motion, tau, w)
    A, b = (Y * w[..., None]).transpose(1, 0, 2).reshape(2 * ROWS, -1), (tau * w).T.ravel()
    left = (b - A @ np.linalg.lstsq(A, b, rcond=None)[0]).reshape(2, ROWS)
    more = np.zeros((2, ROWS, 4))
    more[0] = np.concatenate((motion[:, 1], tau[:, [1]]), -1)
    with_more = np.hstack((A, more.reshape(2 * ROWS, 4)))
    after = b - with_more @ np.linalg.lstsq(with_more, b, rcond=None)[0]
    taken = np.sum(left**2) - np.sum(after**2)
    assert share[0, 1] == pytest.approx(taken / np.sum(left[0] ** 2), rel=1e-6)


# --- what a log foretells, unseen motion, geometry ----------------------------------------------------------------


def test_foretold_deviations_are_those_of_logs_with_other_noise():
    """For fits to logs with the same motion and other noise, predicted torques of another motion scatter as
    computed.
    """
    result, values = [], []
    for seed in range(60):
        data = data_of(rows=120, noise=0.2)
        clean = data_of(rows=120, noise=0.0).tau
        noise = np.random.default_rng(seed).normal(size=clean.shape) * 0.2 * np.sqrt(np.mean(clean**2, 0))
        x = evidence(dataclasses.replace(data, tau=clean + noise), ARM)
        fitted = fit_rows(ARM, x.rows)
        result.append(predicted_deviation(x, x.rows, fitted))
        values.append(fitted.values)
    rng, rows = np.random.default_rng(5), x.rows
    q, v, a = (np.stack([rng.permutation(c) for c in z.T], -1) for z in (rows.q, rows.v, rows.a))
    torques = ARM.regressor(q, v, a)[..., ARM.base.columns] @ np.array(values).T
    scatter = np.sqrt(np.mean(np.var(torques, axis=2), 0) / np.mean(torques.mean(2) ** 2, 0))
    np.testing.assert_allclose(np.mean(result, 0), scatter, rtol=0.25)


def test_unseen_errors_are_those_of_motion(seen):
    def errors(moving, resting):
        return {"relative_error": resting, "moving_error": moving}

    def said(training, test):
        return unseen(dataclasses.replace(seen, errors={"training": training, "test": test}))

    assert said(errors(0.03, 0.03), errors(0.05, 0.5)) == []
    assert said(errors(0.03, 0.03), errors(0.3, 0.3))[0].fatal
    assert len(said(errors(0.03, 0.03), errors(np.nan, 0.1))) == 1


def test_a_centre_of_mass_is_looked_for_in_the_links_geometry():
    data = data_of()
    report = Result(fit(ARM, data, "ridge", strength=1e-6), data)
    c = report.robot.parameters[1, 1:4] / report.robot.parameters[1, 0]
    box, far = np.array([c - 0.05, c + 0.05]), np.array([c + 5.0, c + 5.1])

    def said(given):
        boxed = dataclasses.replace(report, boxes={"link2": given})
        return [d.seen for d in boxed.assessment.findings if "centre of mass" in d.seen]

    assert said(box) == []
    assert said(far) == []  # the model's own centre of mass is outside, too: the box is another link's
    away = dataclasses.replace(report, estimate=_moved(report.estimate, 1, [3.0, 0.0, 0.0]))
    near = np.array([c - 0.5, c + 0.5])
    result = dataclasses.replace(away, boxes={"link2": near}).assessment
    assert any("'link2' at (" in d.seen and "outside its geometry" in d.seen for d in result.findings)
    own = ARM.robot.parameters[1, 1:4] / ARM.robot.parameters[1, 0]
    non_inertial = dataclasses.replace(report, estimate=_moved(report.estimate, 1, [0.0, 0.2, 0.0]))
    assert not any("centre of mass" in d.seen for d in non_inertial.assessment.findings)  # near its joints
    non_inertial = dataclasses.replace(non_inertial, boxes={"link2": np.array([own - 0.05, own + 0.05])})
    assert any("outside its geometry" in d.seen for d in non_inertial.assessment.findings)


def chain(tool):
    """Three links; the model's masses are near the joints, as in a file without exact ones. tool: m, 0 for no frame."""
    rod = inertia.from_com(1.0, (0.05, 0.0, 0.0), np.diag([0.01, 0.05, 0.05]))
    step = np.eye(4)
    step[0, 3] = 0.3
    joint, names = gc.Joint.revolute((0, 0, 1)), ("one", "two", "three")
    bodies = [gc.Body(n, p, joint, step if p else None, rod) for n, p in zip(names, (None, *names))]
    end = np.eye(4)
    end[0, 3] = tool
    return gc.Robot.build(bodies, frames=[("flange", "three", end)], gravity=(0, -9.81, 0))


@pytest.mark.parametrize(
    ("tool", "distance", "accused"), [(0.0, 0.4, False), (0.0, 2.0, False), (0.6, 0.4, False), (0.6, 2.0, True)]
)
def test_the_last_link_ends_where_its_frames_are_or_anywhere(tool, distance, accused):
    """A right estimate of a last link that is longer than the others; the file may have no tool."""
    model = RegressorModel(chain(tool), smoothing=0.02)
    data = data_of(model)
    estimate = fit(model, data, "ridge", strength=1e-6)
    shift = np.array([distance, 0.0, 0.0]) - inertia.com(estimate.x[20:30])
    report = Result(_moved(estimate, 2, shift), data)
    assert any("'three' at (" in d.seen for d in report.assessment.findings) == accused


def _moved(estimate, body, shift):
    x = estimate.x.copy()
    at = slice(10 * body, 10 * body + 10)
    x[at] = inertia.from_com(x[at][0], inertia.com(x[at]) + shift, np.eye(3))
    return dataclasses.replace(estimate, x=x)


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        ([1], "boxes: expected a dict"),
        ({"elbow": np.zeros((2, 3))}, "boxes: a body: expected 'link1' or 'link2'"),
        ({"link1": np.zeros(3)}, r"boxes\['link1'\]: expected"),
        ({"link1": [[1.0, 0, 0], [0, 0, 0]]}, r"boxes\['link1'\]: expected the lower corner first"),
    ],
)
def test_boxes_that_are_none(boxes, words):
    with pytest.raises(ArgumentError, match=words):
        identify(ARM.robot, data_of(), boxes=boxes)


def test_notes_are_sentences():
    assert isinstance(evidence(data_of(), ARM), Evidence)
    assessment = judge(data_of(), ARM)
    assert all(isinstance(note, str) for note in assessment.notes)
    assert assessment.tables()["notes"] == list(assessment.notes)
    assert assessment.text().count("  note: ") == len(assessment.notes)


@pytest.mark.parametrize("kept", [0, 10**9])
def test_kept_columns_are_those_of_the_same_content_and_low_pass(kept, monkeypatch):
    monkeypatch.setattr("geomctrl.identification.assessment.rows.MAX_KEPT", kept)
    t, stretches = np.arange(200) / 100.0, (slice(0, 120), slice(120, 200))
    x, y = np.random.default_rng(0).normal(size=(2, 200, 2))
    narrow = Motion(t, x, x, x, stretches, (100.0, 5.0))
    wide = dataclasses.replace(narrow, q=y, low_pass=(100.0, 20.0))
    for motion, columns in ((narrow, x), (wide, x), (narrow, y), (narrow, x), (wide, x), (narrow, x[:, ::-1])):
        expected = np.concatenate([low_pass(columns[part], *motion.low_pass) for part in stretches])
        np.testing.assert_array_equal(motion.passed(columns), expected)
    assert len(narrow._passed) == (4 if kept else 0)
