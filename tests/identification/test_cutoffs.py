"""Cut-offs chosen from logs, against the best on a grid by the error on motion and torques without noise."""

import numpy as np
import pytest
from identification.simulated_logs import seven_joints_at_one_kilohertz, simulated
from lib import logs, mistakes
from lib.logs import between

from geomctrl.identification import DataError, Dataset, Filtering, RegressorModel, fit, fit_curves, identify
from geomctrl.identification.errors import ShortLogError
from geomctrl.identification.estimators.cutoffs import LogFilter, _bound, choose_cutoffs
from geomctrl.identification.estimators.model_choice import Prediction, with_smoothing
from geomctrl.identification.logs.parts import cut_at_holes, without_edges
from geomctrl.identification.logs.samples import derive
from geomctrl.identification.logs.signals import motion_bandwidth


def needs(name):
    why = logs.missing(name)
    return pytest.mark.skipif(why is not None, reason=str(why))


def fitted(model, log, filter_):
    return fit(model, model.compress(filter_.filtered(log)), "ridge", strength=1e-6).x


FAST = [
    {"name": "ur10", "rate": 125.0, "bits": 12, "lowest": 0.1},
    {"name": "two_link", "rate": 1000.0, "bits": 16, "lowest": 0.1, "noise": 0.02, "seed": 12},
    {"name": "two_link", "rate": 250.0, "bits": 14, "lowest": 0.15, "measured": 0.003, "noise": 0.05, "seed": 15},
]
SLOW = [  # docs/reference/identification-defaults.md has a table of more logs
    {"name": "panda", "rate": 1000.0, "bits": 14, "lowest": 0.1},
    {"name": "panda", "rate": 500.0, "bits": 12, "lowest": 0.03, "noise": 0.01, "measured": 0.01},
    {"name": "two_link", "rate": 4000.0, "bits": 13, "lowest": 0.3, "stribeck": 0.1, "seconds": 10.0, "seed": 13},
    {"name": "ur10", "rate": 2000.0, "bits": 17, "lowest": 0.5, "seed": 3},
]


@pytest.mark.parametrize("options", [*FAST, *(pytest.param(o, marks=pytest.mark.slow) for o in SLOW)], ids=str)
def test_the_cutoff_chosen_is_never_far_from_the_best_on_a_grid(options):
    created = simulated(**{"seed": 1, **options})
    training, rest = created.parts()
    chosen = choose_cutoffs(created.model, training)
    mine = created.true_error(fitted(created.model, training, LogFilter.of(Filtering(), training, chosen)), rest)
    sources = [training] if training.v is None else [training, derive(training, v=None)]
    grid = np.geomspace(1.0, 0.2 * training.rate, 6)
    errors = [
        created.true_error(fitted(created.model, s, LogFilter.of(Filtering(float(f)), s)), rest)
        for s in sources
        for f in grid
    ]
    assert mine <= 1.5 * min(errors)
    assert max(errors) > 3.0 * min(errors)  # the choice matters
    assert chosen.bound is None
    assert chosen.findings() == []
    assert chosen.tried[0] <= chosen.torque_cutoff <= chosen.cutoff <= chosen.tried[-1]


@pytest.mark.parametrize("delay", [0.02, 0.05])
def test_a_delay_does_not_take_the_motion_away(delay):
    """The error of a delay is the same at every cut-off, so that the least one is an accident."""
    log, model = mistakes.simulated("two_link", 705, seconds=10.0, rate=150.0, noise=0.02, velocities=0.01)  # to 0.5 Hz
    chosen = choose_cutoffs(model, mistakes.delayed(log, delay))
    assert chosen.errors.argmin() == 0  # otherwise this tests nothing
    assert min(chosen.cutoff, chosen.torque_cutoff) > 1.5


@pytest.mark.slow
def test_defaults_are_right_for_slow_quantised_motion_that_repeats():
    """The reported log: five times the bandwidth of differentiated positions gave an error of 22 %, a manual
    cut-off 1.2 %.
    """
    created = seven_joints_at_one_kilohertz()
    report = identify(created.robot, created.log)
    assert 1.0 < report.notes["cutoff"] < 20.0
    assert "by phase of a period of 13 s" in report.notes["split"]
    assert any("holes of up to" in line and "bridged" in line for line in report.training.history)
    assert report.errors["test"]["relative_error"] < 0.02  # includes the noise of the torques below the cut-off
    log, rest = cut_at_holes(created.log), created.parts()[1]
    errors = {
        f: created.true_error(fitted(created.model, log, LogFilter.of(Filtering(f), log)), rest)
        for f in (2.0, 5.0, report.notes["cutoff"])
    }
    assert errors[report.notes["cutoff"]] < 1.1 * min(errors.values())
    assert report.findings == ()
    assert "measured velocities" in report.text()
    wide = LogFilter.of(Filtering(0.199 * created.log.rate, alike=False, decimate=20), created.log)
    assert created.true_error(fitted(created.model, log, wide), rest) > 0.05
    assert motion_bandwidth(created.log) < 20.0


def test_noisy_velocities_are_not_used_where_positions_are_better():
    good, bad = (
        simulated("two_link", rate=250.0, bits=bits, measured=noise) for bits, noise in ((12, 0.001), (19, 0.5))
    )
    assert choose_cutoffs(good.model, good.log).measured_velocities
    chosen = choose_cutoffs(bad.model, bad.log)
    assert not chosen.measured_velocities
    filtered = LogFilter.of(Filtering(), bad.log, chosen).filtered(bad.log)
    assert "measured velocities are not used" in filtered.history
    np.testing.assert_allclose(filtered.v, derive(bad.log, v=None).filtered(
        chosen.cutoff, torque_cutoff=chosen.torque_cutoff, alike=True,
        decimate=max(1, int(250.0 / (4.0 * chosen.torque_cutoff)))).v)  # fmt: skip


def test_torques_are_cut_where_they_are_noise():
    """White noise twenty times as strong: the cut-off of torques decreases, that of positions does not."""
    clean, noisy = (simulated("ur10", rate=250.0, bits=19, lowest=0.1, noise=x, stribeck=0.0) for x in (1e-4, 0.5))
    a, b = (choose_cutoffs(x.model, x.log) for x in (clean, noisy))
    assert a.torque_cutoff == a.cutoff
    assert b.cutoff > 2.0  # low cut-offs are best only if each is judged by torques that it filtered itself
    assert 0.5 < b.torque_cutoff < 0.5 * b.cutoff  # not below the bandwidth of the motion


def test_worse_is_worse_by_more_than_the_blocks_scatter():
    """Two joints; errors enter as logarithms, so the unit of a joint does not matter."""
    size, x = np.array([1.0, 1e6]), np.zeros(1)
    best = Prediction(np.full((6, 2), 0.01) * size, size, x)
    deviation = 0.003  # standard deviation over blocks, so that six of them have a standard error of sqrt(6) times it
    for sign, worse in ((1.0, True), (-1.0, False)):
        for spread, joint in ((0.9, 0), (0.9, 1), (1.1, 0), (1.1, 1)):
            shares = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]) * np.sqrt(5.0 / 6.0) * deviation * spread
            squares = best.squares.copy()
            squares[:, joint] += (sign * np.sqrt(6.0) / 6.0 * deviation + shares) * size[joint]
            assert Prediction(squares, size, x).worse_than(best) == (worse and spread < 1.0)
    twice = Prediction(best.squares * [2.0, 0.5], size, x)
    assert twice.error == pytest.approx(best.error, rel=1e-12)  # twice the error at one joint, half at the other


def test_the_highest_cutoff_whose_parameters_are_as_good_is_taken():
    """Encoders too coarse for high cut-offs; below the critical one the parameters do not depend on it."""
    created = simulated("two_link", rate=500.0, bits=13, seconds=16.0, lowest=0.2, noise=0.01)
    training, rest = created.parts()
    chosen = choose_cutoffs(created.model, training)
    best = chosen.tried[chosen.errors.argmin()]
    assert chosen.cutoff >= best
    at_best, mine = (
        created.true_error(fitted(created.model, training, LogFilter.of(Filtering(float(f)), training)), rest)
        for f in (best, chosen.cutoff)
    )
    assert mine <= 1.1 * at_best
    assert mine < 0.5 * created.true_error(
        fitted(created.model, training, LogFilter.of(Filtering(60.0), training)), rest
    )


def test_friction_s_steps_survive_the_thinning_before_the_low_pass():
    """At 1.73 Hz and 144 samples per row: 48 of them used to be one row, 20 Hz, and a step somewhere within 50 ms."""
    created = simulated("two_link", rate=1000.0, bits=24, seconds=16.0, lowest=0.1, noise=0.0, stribeck=0.0)
    model = created.model._with_options(smoothing=1e-3)
    x = np.zeros(model.size)
    x[model.by_kind["coulomb"]] = 1.0
    for cutoff in (1.73, 2.0, 3.1, 4.2):
        settings = LogFilter.of(Filtering(cutoff), created.log)
        mine = settings.filtered(created.log)
        assert len(mine) < len(created.log)  # rows are thinned
        whole = created.log.filtered(cutoff, alike=True)  # rows are not thinned
        t, _, predicted, used = model._predict(x, mine)
        s, _, exact, _ = model._predict(x, whole)
        there = exact[np.searchsorted(s, t - 1e-6)]
        rms = np.sqrt(np.mean((predicted - there)[used] ** 2))
        assert rms < 0.02 * np.sqrt(np.mean(there[used] ** 2))
    assert len(model._rows(mine)) >= 4 * cutoff * 15.0  # four rows per period are kept


def test_the_width_of_frictions_step_is_found_beside_friction_that_the_model_lacks():
    """0.01 rad/s, and Stribeck friction. With a low-pass, a sharper step would compensate for it."""
    created = simulated("two_link", rate=500.0, bits=17, seconds=26.0, lowest=1.0 / 13.0, harmonics=7)
    every_row = LogFilter.of(Filtering(3.5), created.log).filtered(created.log)
    training = every_row.without(standstill="auto")
    for own in (0.01, 0.05, 3e-4):
        model, words = with_smoothing(created.model._with_options(smoothing=own), training, every_row)
        assert model.smoothing == 0.01
        assert words.startswith("0.01 rad/s")
    assert with_smoothing(created.model._with_options(smoothing=0.011), training, every_row)[0].smoothing in (
        0.01,
        0.011,
    )


def test_a_best_cutoff_at_an_end_of_the_search_is_a_doubt():
    for errors, bound in (
        ([1.0, 2.0, 4.0], "lowest"), ([4.0, 2.0, 1.0], "highest"), ([1.0, 1.001, 4.0], None), ([3.0, 1.0, 2.0], None),
    ):  # fmt: skip
        assert _bound(np.array(errors)) == bound
    # a log at 125 Hz allows 25 Hz at most: motion up to 40 Hz is not covered
    fast = simulated("two_link", rate=125.0, bits=19, lowest=8.0, amplitude=0.02)
    report = identify(fast.robot, fast.log, model=fast.model, method="ridge")
    (finding,) = [d for d in report.findings if d.kind == "cutoff"]
    assert "the highest that was tried, 25 Hz" in finding.seen
    assert "--cutoff" in finding.advice


def test_a_cutoff_given_is_taken_as_it_is_and_short_logs_say_so():
    created = simulated("two_link", rate=200.0, seconds=8.0, lowest=0.4)
    report = identify(created.robot, created.log, filtering=Filtering(7.0), method="ridge")
    assert (report.notes["cutoff"], report.notes["torque_cutoff"]) == (7.0, 7.0)
    assert "cutoffs" not in report.notes
    short = between(created.log, 0.0, 0.15)
    with pytest.raises(ShortLogError, match="too short to choose a cut-off"):
        choose_cutoffs(created.model, short)
    kept = np.random.default_rng(0).uniform(size=len(created.log)) > 0.2
    uneven = Dataset(created.log.t[kept], created.log.q[kept], created.log.tau[kept])
    with pytest.raises(DataError, match="not even"):
        choose_cutoffs(created.model, uneven)


# --- published logs ------------------------------------------------------------------------------------------------


def never_far_from_the_best(model, training, test, grid, options):
    """Errors on test rows that are the same for all fits; `options` are those of the fit."""
    chosen = choose_cutoffs(model, training)
    errors = []
    for settings in (
        LogFilter.of(Filtering(), training, chosen),
        *(LogFilter.of(Filtering(float(f)), training) for f in grid),
    ):
        c = model.compress(settings.filtered(training).without(standstill="auto"))
        errors.append(fit(model, c, "consistent", **options).relative_error(test))
    assert errors[0] <= 1.5 * min(errors[1:])
    return chosen


@pytest.mark.slow
@needs("ur10_petrone_first70.npz")
def test_ur10():
    training, test = logs.ur10_log().split(0.7)
    model = RegressorModel(logs.ur10())
    c = model.compress(without_edges(test.filtered(6.0, alike=True, decimate=2), 0.25))
    chosen = never_far_from_the_best(model, training, c, np.geomspace(1.0, 25.0, 6), {})
    assert chosen.measured_velocities


@pytest.mark.slow
@needs("tx40_figaroh.npz")
def test_tx40():
    training, test = logs.tx40_log().split(0.7)
    model = RegressorModel(
        logs.tx40(), rotor=True, offset=range(6), transmission=logs.TX40_TRANSMISSION, springs=[1], smoothing=0.03
    )
    model = fit_curves(model, training.filtered(40.0, torque_cutoff=10.0, alike=True, decimate=50), "sigmoid").model
    ready = without_edges(test.filtered(40.0, torque_cutoff=10.0, alike=True, decimate=50), 0.15)
    chosen = never_far_from_the_best(model, training, model.compress(ready), np.geomspace(5.0, 100.0, 5), {})
    assert 20.0 < chosen.cutoff < 100.0  # a cut-off of 40 Hz, set manually
    assert chosen.torque_cutoff < 0.6 * chosen.cutoff  # a cut-off of 10 Hz, set manually


@pytest.mark.slow
@needs("kr300_weigand_AB.npz")
def test_kr300():
    a, b = (logs.kr300_log(part) for part in "AB")
    model = RegressorModel(
        logs.kr300(), rotor=True, offset=False, columns=[logs.kr300_counterbalance()], smoothing=1e-3
    )
    c = model.compress(without_edges(b.filtered(8.0, decimate=2), 0.2))
    never_far_from_the_best(model, a, c, np.geomspace(1.0, 50.0, 6), {})
