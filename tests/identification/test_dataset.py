"""Logs: reading, units, mappings, filters against known signals, splits, masks, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from lib.logs import between
from scipy import signal

from geomctrl import models
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.identification import DataError, Dataset, JointMapping, RegressorModel
from geomctrl.identification.logs import filters
from geomctrl.identification.logs.dataset import check_robot
from geomctrl.identification.logs.parts import cut_at_holes, detected_period
from geomctrl.identification.logs.signals import decimated
from geomctrl.identification.model import regressor_model

RATE = 250.0


def wave(t, nv=3, f=(0.7, 1.1, 1.9)):
    """Return (q, v, a) of a sine for each joint, in closed form."""
    w, phase = 2 * np.pi * np.array(f[:nv]), np.arange(nv)
    x = np.outer(t, w) + phase
    return np.sin(x), w * np.cos(x), -(w**2) * np.sin(x)


def log(nv=3, seconds=8.0, **options):
    t = np.arange(int(seconds * RATE)) / RATE
    q, _, _ = wave(t, nv)
    return Dataset(t, q, np.cos(q), **options)


# --- filters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(300,), (300, 2, 3), (7, 2), (1, 2)])
def test_low_pass_is_scipys_up_to_both_ends(shape):
    x = 3.0 + np.random.default_rng(0).normal(size=shape)
    sections, pad = signal.butter(4, 5.0, fs=RATE, output="sos"), min(len(x) - 1, filters.settling(RATE, 5.0))
    expected = signal.sosfiltfilt(sections, x, axis=0, padlen=pad)
    np.testing.assert_allclose(filters.low_pass(x, RATE, 5.0), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("cutoff", [5.0, 20.0])
def test_low_pass_halves_amplitudes_at_the_cutoff_and_shifts_nothing(order, cutoff):
    t = np.arange(10_000) / RATE
    for ratio in (0.3, 0.8, 1.0, 1.3, 2.0):
        f = ratio * cutoff
        y = filters.low_pass(np.sin(2 * np.pi * f * t)[:, None], RATE, cutoff, order)[:, 0]
        inner = slice(2500, 7500)
        basis = np.stack((np.sin(2 * np.pi * f * t), np.cos(2 * np.pi * f * t)), -1)[inner]
        in_phase, quadrature = np.linalg.lstsq(basis, y[inner], rcond=None)[0]
        tan = np.tan(np.pi * f / RATE) / np.tan(np.pi * cutoff / RATE)
        assert in_phase == pytest.approx(1.0 / (1.0 + tan ** (2 * order)), abs=1e-6)
        assert abs(quadrature) < 1e-6


def test_differences_are_exact_for_polynomials_of_degree_four_to_the_last_sample():
    t = np.arange(12) * 0.1
    x = np.stack((t**4 - 2 * t**3, 3 * t**2, t), -1)
    np.testing.assert_allclose(
        filters.differentiate(x, 0.1), np.stack((4 * t**3 - 6 * t**2, 6 * t, np.ones(12)), -1), atol=1e-12
    )


def test_velocities_and_accelerations_of_known_signals_for_every_joint_and_end():
    data = log()
    out = data.filtered(30.0)
    for got, want, inside, ends in zip((out.q, out.v, out.a), wave(data.t), (1e-5, 1e-4, 2e-3), (2e-3, 2e-2, 0.2)):
        error = np.abs(got - want) / np.abs(want).max(0)  # per joint, the last one the fastest
        assert error[50:-50].max() < inside
        assert error.max() < ends


def test_measured_velocities_are_used():
    t = np.arange(2000) / RATE
    q, v, a = wave(t)
    out = Dataset(t, np.zeros_like(q), q, v=v).filtered(40.0)
    assert np.abs(out.v - v)[30:-30].max() < 1e-3
    assert np.abs(out.a - a)[30:-30].max() < 0.05


@pytest.mark.parametrize("order", [1, 12])
def test_cutoffs_at_which_filters_can_not_be_made_are_refused(order):
    t = 0.01 * np.arange(200)
    data = Dataset(t, np.sin(t)[:, None], np.cos(t)[:, None])
    for cutoff in (0.0, 1e-300, 0.99e-4, 50.0, 1e300):
        with pytest.raises(ArgumentError, match=r"cutoff: expected hertz between 0\.0001 and half the sampling rate"):
            data.filtered(cutoff, order=order)
    slowest = data.filtered(1e-4, order=order)
    assert np.abs(slowest.v).max() < 5.0  # 1 without a filter
    assert all(np.isfinite(x).all() for x in (slowest.q, slowest.a, slowest.tau))


@pytest.mark.parametrize("step", [1e-300, 1e200])
def test_times_at_which_derivatives_overflow_are_refused(step):
    data = Dataset(step * np.arange(200), np.sin(np.arange(200.0))[:, None], np.ones((200, 1)))
    if step > 1.0:
        assert np.abs(data.filtered(0.1 / step).a).max() == 0.0
        return
    with pytest.raises(DataError, match="log: its numbers, divided by powers of its sampling intervals, exceed"):
        data.filtered(0.1 / step)


def test_the_filter_refuses_uneven_time_stamps_which_can_be_resampled():
    rng = np.random.default_rng(0)
    t = np.sort(np.arange(2000) / RATE + rng.uniform(-0.4, 0.4, 2000) / RATE)
    q = wave(t)[0]
    data = Dataset(t, q, q)
    with pytest.raises(DataError, match=r"not even.*resampled"):
        data.filtered(30.0)
    even = data.resampled(RATE)
    assert filters.is_uniform(even.t)
    assert np.abs(even.q - wave(even.t)[0])[5:-5].max() < 1e-5


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 125.0, np.nan])
def test_cutoffs_beyond_half_the_rate_are_refused(cutoff):
    with pytest.raises(ArgumentError, match=r"cutoff.*125"):
        log().filtered(cutoff)


# --- reading ---------------------------------------------------------------------------------------------------


def test_npz_and_csv_give_the_same_log(tmp_path):
    data = log()
    data.save(tmp_path / "log.npz")
    header = "time, q1, q2, q3, tau_1, tau_2, tau_3"
    np.savetxt(
        tmp_path / "log.csv", np.column_stack((data.t, data.q, data.tau)), delimiter=",", header=header, fmt="%.17g"
    )
    first, second = Dataset.read(tmp_path / "log.npz"), Dataset.read(tmp_path / "log.csv")
    for a, b in ((first.t, second.t), (first.q, second.q), (first.tau, second.tau), (first.q, data.q)):
        np.testing.assert_array_equal(a, b)


def test_csv_columns_by_name_and_number_beyond_nine(tmp_path):
    header = ";".join(["stamp", *(f"pos[{k}]" for k in range(11, 0, -1)), *(f"eff{k}" for k in range(1, 12))])
    table = np.arange(46.0).reshape(2, 23)
    np.savetxt(tmp_path / "log.csv", table, delimiter=";", header=header, comments="")
    data = Dataset.read(tmp_path / "log.csv", {"t": "stamp", "q": "pos", "tau": "eff"}, units={"t": "ms"})
    np.testing.assert_array_equal(data.q, table[:, 11:0:-1])
    np.testing.assert_array_equal(data.tau, table[:, 12:])
    assert data.t[1] == pytest.approx(0.023)


def test_csv_with_a_byte_order_mark_quotes_and_a_unit_a_joint(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('\ufeff"t","q1","q2","tau1","tau2"\n0,180,1,1,1\n1,90,2,1,1\n', encoding="utf-8")
    data = Dataset.read(path, units={"q": ["deg", "mm"]})
    np.testing.assert_allclose(data.q, [[np.pi, 1e-3], [np.pi / 2, 2e-3]])


@pytest.mark.parametrize(
    "text",
    [
        "t;q1;tau1\n0;1,5;2\n0,1;-1,5e-1;2,5\n",
        "t\tq1\ttau1\n0,0\t1,5\t2,0\n0,1\t-,15\t2,5\n",
        't,q1,tau1\n"0,0","1,5",2\n"0,1","-0,15","2,5"\n',
    ],
)
def test_decimal_commas_are_read_and_noted(text, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    data = Dataset.read(tmp_path / "log.csv")
    np.testing.assert_array_equal(np.hstack((data.t[:, None], data.q, data.tau)), [[0, 1.5, 2], [0.1, -0.15, 2.5]])
    assert "decimal commas: 0,5 was read as 0.5" in data.history


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("t,q1,q3,tau1,tau2\n0,1,2,3,4\n", {}, "columns q1, q3: expected consecutive numbers"),
        ("t,q1,q1,tau1,tau2\n0,1,2,3,4\n", {}, "two columns are called 'q1'"),
        ("t,q1,tau1\n0,1\n", {}, "3 names in the header, 2 columns"),
        ("t,q1,tau1\n0,1,x\n", {}, "could not convert"),
        ("t,q1,tau1\n0,1,\n", {}, r"tau: expected finite numbers, got nan .*drop_bad_rows"),
        ("t;q1;tau1\n0;1,5;2.5\n", {}, "expected decimal points or decimal commas, got both"),
        ("t;q1;tau1\n0;1.234,5;2\n", {}, "could not convert string '1.234,5'"),
        ("t,q1,tau1\n0,0,1,5,2,0\n", {}, "3 names in the header, 6 columns.*decimal commas"),
        ("0,1,2\n1,2,3\n", {}, r"no q: expected columns q1, q2.*there are 1, 2, 3"),
        ("t,axis1,load1\n0,1,2\n", {}, r"no q: expected columns q1, q2.*--column q=NAME.*there are t, axis1, load1"),
        ("t,q1,load1\n0,1,2\n", {}, r"no tau: expected columns tau1"),
        ("", {}, r"an empty file \(0 bytes\)"),
        ("q1,tau1\n1,2\n", {}, "no time stamps: give t, or the sampling rate"),
        ("t,q1,tau1\n0,1,2\n", {"rate": 10.0}, "rate: the log has time stamps of its own"),
        ("t,q1,tau1\n0,1,2\n", {"keys": {"effort": "tau"}}, "keys: expected t, q, v, a, tau, i, got 'effort'"),
        ("t,q1,q2,tau1\n0,1,2,3\n", {}, "q: expected 1 joints as in tau, got 2"),
        ("t,q1,tau1\n0,1,nan\n", {}, r"tau: expected finite numbers, got nan at index \[0, 0\]"),
    ],
)
def test_damaged_tables_are_refused(text, options, words, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(GeomctrlError, match=words):
        Dataset.read(tmp_path / "log.csv", **options)


def test_a_table_of_another_maker(tmp_path):
    """Comments at the top, text around the joints' numbers, empty cells, repeated time stamps."""
    (tmp_path / "log.csv").write_text(
        "# a robot, on a Monday\n# of its own\nTime (ms),Axis 2 pos [deg],Axis 1 pos [deg],Axis 1 load,Axis 2 load\n"
        "0,90,180,1,2\n4,90,180,3,\n4,90,180,5,6\n4,90,180,5.5,6.5\n2,0,0,0,0\n8,45,90,7,8\n"
    )
    keys = {"t": "Time (ms)", "q": "Axis * pos [deg]", "tau": "Axis * load"}
    options = {"keys": keys, "units": {"t": "ms", "q": "deg"}}
    data = Dataset.read(tmp_path / "log.csv", drop_bad_rows=True, **options)
    np.testing.assert_allclose(data.t, [0.0, 0.004, 0.008])
    np.testing.assert_allclose(data.q, np.pi * np.array([[1, 0.5], [1, 0.5], [0.5, 0.25]]))
    np.testing.assert_array_equal(data.tau, [[1, 2], [5, 6], [7, 8]])
    assert data.history == ("rows dropped: 1 with missing numbers, 2 not later than those before",)
    with pytest.raises(DataError, match=r"expected increasing time stamps.*--drop-bad-rows"):
        Dataset.read(tmp_path / "log.csv", **options)


@pytest.mark.parametrize(
    ("field", "unit", "factor"),
    [
        ("t", "ms", 1e-3), ("t", "us", 1e-6), ("t", "ns", 1e-9), ("q", "deg", np.pi / 180), ("q", "rev", 2 * np.pi),
        ("q", "mm", 1e-3), ("v", "deg/s", np.pi / 180), ("v", "rpm", np.pi / 30), ("v", "mm/s", 1e-3),
        ("a", "deg/s^2", np.pi / 180), ("a", "mm/s^2", 1e-3), ("tau", "mN m", 1e-3), ("tau", "N mm", 1e-3),
        ("tau", "kN m", 1e3), ("tau", "kN", 1e3), ("tau", "Nm", 1.0),
    ],
)  # fmt: skip
def test_units(field, unit, factor):
    one = np.arange(3.0)
    arrays = {"t": one, "q": one[:, None], "v": one[:, None], "a": one[:, None], "tau": one[:, None]}
    data = Dataset.read(arrays, units={field: unit})
    for name in arrays:
        expected = arrays[name] * (factor if name == field else 1.0)
        np.testing.assert_allclose(getattr(data, name), expected, rtol=1e-14)


def test_damaged_archives_are_refused(tmp_path):
    np.savez(tmp_path / "whole.npz", q=np.zeros((9, 2)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:60])
    (tmp_path / "text.npz").write_text("no archive")
    np.save(tmp_path / "single.npy", np.zeros((9, 2)))
    for name in ("cut.npz", "text.npz", "single.npy"):
        with pytest.raises(DataError, match=r"not a readable npz archive|one array without a name"):
            Dataset.read(tmp_path / name)


def test_units_and_a_coupled_mapping_conserve_power(tmp_path):
    N = np.diag([32.0, 45.0, -48.0])
    N[2, 1] = 7.0
    rng = np.random.default_rng(1)
    q_motor, v_motor, tau_motor = rng.normal(size=(3, 50, 3))
    np.savez(tmp_path / "m.npz", angle=np.rad2deg(q_motor), dq=np.rad2deg(v_motor), torque=tau_motor)
    mapping = JointMapping(N, offset=[0.0, -1.0, 2.0])
    data = Dataset.read(tmp_path / "m.npz", units={"q": "deg", "v": "deg/s"}, mapping=mapping, rate=100.0)
    np.testing.assert_allclose(data.tau * data.v @ np.ones(3), tau_motor * v_motor @ np.ones(3), rtol=1e-12)
    np.testing.assert_allclose((data.q - mapping.offset) @ N.T, q_motor, rtol=1e-12)


# --- parts -----------------------------------------------------------------------------------------------------


def test_split_by_phase_shares_no_phase_and_by_time_is_refused_for_a_periodic_log():
    t = np.arange(6000) / RATE
    q = np.stack([np.sin(2 * np.pi * t / 4.0) + 0.3 * np.cos(6 * np.pi * t / 4.0), np.cos(4 * np.pi * t / 4.0)], -1)
    data = Dataset(t, q, q)
    assert detected_period(data) == pytest.approx(4.0, abs=0.01)
    train, test = data.split(0.7, 4.0)
    a, b = (np.unique(np.round((x.t % 4.0) * RATE).astype(int)) for x in (train, test))
    assert not np.intersect1d(a, b).size
    assert len(test) == pytest.approx(0.3 * len(data), rel=0.02)
    assert len(test.gaps) == 5
    with pytest.raises(DataError, match=r"repeats every 4.*split\(period=4"):
        data.split(0.7)


@pytest.mark.parametrize("more", [1, 15, 16])
def test_a_log_that_ends_a_few_samples_into_a_phase_can_be_filtered_after_the_split(more):
    n = 6 * round(4.0 * RATE) + more  # six periods, and the first samples of a seventh: of training phase
    t = np.arange(n) / RATE
    q = np.stack([np.sin(2 * np.pi * t / 4.0), np.cos(4 * np.pi * t / 4.0)], -1)
    train, test = Dataset(t, q, q).split(0.7, 4.0)
    assert len(train) + len(test) == n - (more if more < 16 else 0)
    assert min(s.stop - s.start for part in (train, test) for s in part.stretches) >= 16
    train.filtered(5.0)


def test_a_log_that_does_not_repeat_has_no_period_and_splits_in_time():
    data = log(seconds=6.0)
    assert detected_period(data) is None
    train, test = data.split(0.7)
    assert train.t[-1] < test.t[0]
    assert len(train) == round(0.7 * len(data))


def test_stretches_are_filtered_apart():
    data = log()
    parts = data.select((data.t < 3.0) | (data.t >= 5.0))
    assert parts.gaps == (750,)
    whole, alone = parts.filtered(20.0), between(data, 5.0, 9.0).filtered(20.0)
    np.testing.assert_allclose(whole.q[750:], alone.q, atol=1e-12)
    later = parts.select(parts.t >= 1.0)  # the gap moves too, although nothing next to it is removed
    assert later.gaps == (500,)
    thin = decimated(parts, 4)
    np.testing.assert_array_equal(thin.t, np.concatenate((parts.t[:750:4], parts.t[750::4])))


def test_holes_are_neither_filtered_nor_interpolated_across():
    whole = log()
    kept = ((whole.t < 3.0) | (whole.t >= 5.0)) & (np.abs(whole.t - 6.0) > 0.1)
    kept |= np.abs(whole.t - 4.0) < 0.01  # a part too short to filter
    holed = Dataset(whole.t[kept], whole.q[kept], whole.tau[kept])
    data = cut_at_holes(holed)
    assert data.history == (
        "3 holes of up to 0.996 s, not filtered or interpolated across; 5 samples between them left out",
    )
    assert [data.t[s.start] for s in data.stretches] == pytest.approx([0.0, 5.0, 6.104])
    np.testing.assert_allclose(
        data.filtered(20.0).q,
        np.concatenate([between(whole, *edges).filtered(20.0).q for edges in ((0, 3), (5, 5.898), (6.102, 8))]),
        atol=1e-12,
    )
    assert not ((data.resampled(300.0).t > 3.0) & (data.resampled(300.0).t < 5.0)).any()
    assert cut_at_holes(whole) is whole
    assert repr(data) == "<Dataset 'log': t, q, tau of 3 joints, 1449 samples at 250 Hz in 3 parts>"
    few, many = (np.delete(np.arange(100), np.arange(50, 50 + lost)) for lost in (3, 5))  # 4 and 6 intervals
    assert [cut_at_holes(Dataset(whole.t[k], whole.q[k], whole.tau[k])).gaps for k in (few, many)] == [(), (50,)]


def test_a_period_is_found_in_the_longest_stretch():
    t = np.arange(5000) / RATE
    q = np.stack((np.sin(np.pi * t), np.cos(2 * np.pi * t)), -1)
    kept = (t < 3.0) | (t > 3.5)
    data = cut_at_holes(Dataset(t[kept], q[kept], q[kept]))
    assert len(data.gaps) == 1
    assert detected_period(data) == pytest.approx(2.0)
    with pytest.raises(DataError, match=r"use split\(period=2\)"):
        data.split()


def test_masks_find_saturation_outliers_and_standstill():
    t = np.arange(2000) / RATE
    q, v, a = wave(t)
    rng = np.random.default_rng(3)
    tau = 5.0 * np.sin(2 * np.pi * 0.5 * t)[:, None] * np.ones(3) + 0.01 * rng.normal(size=(2000, 3))
    spikes = rng.choice(2000, 12, replace=False)
    tau[spikes, 2] += 40.0
    data = Dataset(t, q, np.clip(tau, -50, 50), v=v, a=a)
    result = np.flatnonzero(~data.without(outliers=8.0).mask[:, 2])
    assert set(spikes) <= set(result)
    assert len(result) < 40
    assert (
        ~Dataset(t, q, np.clip(tau, -4.9, 4.9)).without(saturation=[4.9] * 3).mask == (np.abs(tau) >= 0.99 * 4.9)
    ).all()
    low = Dataset(t, q, -np.clip(tau, -4.9, 4.9)).without(saturation=4.9)
    np.testing.assert_array_equal(low.mask, np.abs(tau) < 0.99 * 4.9)
    one = np.zeros((2000, 3))
    one[[0, 700], 1] = 9.0, -9.0
    wide = Dataset(t, q, one).without(saturation=9.0, widen=3 / RATE)
    np.testing.assert_array_equal(np.flatnonzero(~wide.mask[:, 1]), [*range(4), *range(697, 704)])
    slow = data.without(standstill=0.5)
    np.testing.assert_array_equal(slow.mask, np.abs(v) >= 0.5)
    assert "masked" in slow.history[-1]


# --- one low-pass for torques and regressor ------------------------------------------------------------------------


def test_filtering_alike_in_chunks_equals_filtering_the_whole_regressor(monkeypatch):
    robot = models.two_link()
    model = RegressorModel(robot)
    t = np.arange(3000) / RATE
    q, _, _ = wave(t, 2)
    rng = np.random.default_rng(0)
    data = Dataset(t, q, rng.normal(size=q.shape)).filtered(30.0, torque_cutoff=10.0, alike=True, decimate=3)
    Y = filters.low_pass(model.regressor(data.q.copy(), data.v.copy(), data.a.copy()), RATE, 10.0)[::3]
    tau = filters.low_pass(data.tau, RATE, 10.0)[::3]
    monkeypatch.setattr(regressor_model, "CHUNK", 500)
    parts = list(model._stream(data, lambda q, v, a: [model.regressor(q, v, a)]))
    assert len(parts) > 2
    np.testing.assert_allclose(np.concatenate([p[0][0] for p in parts]), Y, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([p[1] for p in parts]), tau, atol=1e-6)
    np.testing.assert_array_equal(np.concatenate([p[3] for p in parts]), np.arange(0, 3000, 3))


# --- bad input ---------------------------------------------------------------------------------------------------


def test_bad_times_are_refused():
    q = np.zeros((5, 2))
    with pytest.raises(DataError, match=r"increasing time stamps, got 2 then 1 s at sample 3"):
        Dataset([0, 1, 2, 1, 3.0], q, q)
    with pytest.raises(DataError, match=r"t: expected finite numbers, got nan at index \[2\]"):
        Dataset([0, 1, np.nan, 3, 4.0], q, q)
    bad = q.copy()
    bad[3, 1] = np.inf
    with pytest.raises(DataError, match=r"tau: expected finite numbers, got inf at index \[3, 1\]"):
        Dataset(np.arange(5.0), q, bad)


def test_counts_that_do_not_match_are_refused():
    t = np.arange(5.0)
    with pytest.raises(DataError, match="q: expected 3 joints as in tau, got 2"):
        Dataset(t, np.zeros((5, 2)), np.zeros((5, 3)))
    with pytest.raises(DataError, match="tau: expected 5 samples as in t, got 4"):
        Dataset(t, np.zeros((5, 2)), np.zeros((4, 2)))
    with pytest.raises(DataError, match=r"expected 7 joints .*'panda'.*JointMapping"):
        check_robot(Dataset(t, np.zeros((5, 2)), np.zeros((5, 2))), models.panda())
    with pytest.raises(DataError, match="velocities and accelerations are missing"):
        RegressorModel(models.two_link()).compress(Dataset(t, np.zeros((5, 2)), np.zeros((5, 2))))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda q, v, tau: (np.rad2deg(q), v, tau), "q in degrees or v not"),
        (lambda q, v, tau: (q, np.rad2deg(v), tau), "v in degrees a second"),
        (lambda q, v, tau: (q, v * 60 / (2 * np.pi), tau), "v in rpm"),
        (lambda q, v, tau: (q, -v, tau), "v with the other sign"),
        (lambda q, v, tau: (np.rad2deg(q), None, tau), "in degrees it would fit"),
        (lambda q, v, tau: (q, v, 1e-3 * tau), "gravity alone takes"),
    ],
)
def test_wrong_units_are_suspected_with_the_reason(wrong, words):
    robot = models.panda()
    t = np.arange(1000) / RATE
    s, ds = 0.5 * np.sin(t), 0.5 * np.cos(t)
    q = np.array([0, -0.6, 0.2, -2.0, 0.1, 1.6, 0.4]) + s[:, None]
    v = np.repeat(ds[:, None], 7, axis=1)
    tau = robot.gravity_force(q)
    check_robot(Dataset(t, q, tau, v=v), robot)
    q, v, tau = wrong(q, v, tau)
    with pytest.raises(DataError, match=f"wrong units suspected.*{words}"):
        check_robot(Dataset(t, q, tau, v=v), robot)


def test_millimetres_are_suspected():
    robot = models.scara()
    t = np.arange(200) / RATE
    q = 0.1 + 0.05 * np.sin(np.outer(t, np.arange(1, 5)))
    check_robot(Dataset(t, q, robot.gravity_force(q)), robot)
    with pytest.raises(
        DataError, match=r"q of joint3 reaches .* m where 0.21 is the limit; in millimetres it would fit"
    ):
        check_robot(Dataset(t, q * [1, 1, 1e3, 1], robot.gravity_force(q)), robot)


def test_milliseconds_are_suspected():
    robot = models.two_link()
    t = np.arange(200) * 4.0
    with pytest.raises(DataError, match="sampling interval is 4 s"):
        check_robot(Dataset(t, 0.1 * wave(t / 1000, 2)[0], robot.gravity_force(0.1 * wave(t / 1000, 2)[0])), robot)


def test_empty_parts_and_files_are_refused(tmp_path):
    data = log()
    for empty in (
        lambda: between(data, 100.0, 200.0),
        lambda: data.split(1.0),
        lambda: data.split(0.0, 2.0),
        lambda: Dataset(np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2))),
        lambda: Dataset.read(tmp_path / "none.npz"),
    ):
        with pytest.raises(GeomctrlError, match=r"empty|no such file|expected|none"):
            empty()
    (tmp_path / "empty.csv").write_text("t,q1,tau1\n")
    with pytest.raises(DataError, match="expected samples below the header, got none"):
        Dataset.read(tmp_path / "empty.csv")
    np.savez(tmp_path / "some.npz", t=np.arange(3.0), q=np.zeros((3, 2)))
    with pytest.raises(DataError, match=r"no tau: expected an array called tau or torque"):
        Dataset.read(tmp_path / "some.npz")
    with pytest.raises(DataError, match=r"no array 'effort'"):
        Dataset.read(tmp_path / "some.npz", keys={"tau": "effort"})
    with pytest.raises(ArgumentError, match=r"units: q: expected one of rad"):
        Dataset.read(tmp_path / "some.npz", units={"q": "degree"})
    with pytest.raises(ArgumentError, match="some motors do not determine the joints"):
        JointMapping(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: Dataset(d.t, d.q * 1j, d.tau), "q: expected real numbers"),
        (lambda d: Dataset(d.t, d.q, d.tau, gaps=(30, 10)), r"gaps: expected increasing sample numbers"),
        (lambda d: d.select(np.ones(3, bool)), "keep: expected 2000 booleans"),
        (lambda d: decimated(d, 0), "factor: expected a whole number from 1, got 0"),
        (lambda d: d.filtered(10.0, order=1.5), "order: expected a whole number"),
        (lambda d: d.filtered(10.0, torque_cutoff=200.0), "torque_cutoff: expected hertz"),
        (lambda d: d.select(np.arange(2000) == 7).filtered(10.0), "a single sample can not be filtered"),
        (lambda d: d.select(np.arange(2000) == 7).resampled(10.0), "an uninterrupted part of one sample"),
        (lambda d: d.without(saturation=[1.0, np.nan, 1.0]), "saturation: expected a number >= 0 or 3"),
        (lambda d: d.without(saturation=[1.0, 2.0]), "saturation: expected a number >= 0 or 3"),
        (lambda d: d.without(outliers=np.nan), "outliers: expected a number > 0"),
        (lambda d: d.without(saturation=1.0, widen=-1.0), "widen: expected seconds >= 0"),
        (lambda d: d.split(0.7, np.nan), "period: expected seconds > 0, got nan"),
        (lambda d: d.without(standstill="auto"), "velocities are needed"),
        (lambda d: d.without(standstill="rest"), "standstill: expected 'auto', got 'rest'"),
    ],
)
def test_bad_requests_name_the_argument(call, words):
    with pytest.raises(GeomctrlError, match=words):
        call(log())


# --- checked once ------------------------------------------------------------------------------------------------

TRANSFORMS = {
    "select": lambda d: d.select(d.t < 3.0),
    "select with a hole": lambda d: d.select(np.abs(d.t - 3.0) > 0.5),
    "between": lambda d: between(d, 1.0, 3.0),
    "split by time": lambda d: d.split(0.7)[1],
    "split by phase": lambda d: d.split(0.7, 2.0)[0],
    "cut_at_holes": lambda d: cut_at_holes(d.select(np.abs(d.t - 3.0) > 0.5)),
    "filtered": lambda d: d.filtered(20.0, decimate=2),
    "filtered alike": lambda d: d.filtered(5.0, alike=True, decimate=8),
    "decimated": lambda d: decimated(d, 3),
    "resampled": lambda d: d.resampled(300.0),
    "without saturation": lambda d: d.without(saturation=0.9),
    "without outliers": lambda d: d.without(outliers=6.0),
    "without standstill": lambda d: d.filtered(20.0).without(standstill=0.1),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_neither_check_again_nor_make_what_a_check_would_refuse(transform, monkeypatch):
    data = log()
    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "__post_init__", lambda self: pytest.fail("checked again"))
        out = transform(data)
    assert type(out) is Dataset
    arrays = {key: getattr(out, key) for key in ("t", "q", "v", "a", "tau", "mask")}
    assert not any(x.flags.writeable for x in arrays.values() if x is not None)
    checked = replace(out)  # by the public constructor
    for key, x in arrays.items():
        np.testing.assert_array_equal(getattr(checked, key), x)
    assert checked.rate == out.rate


def test_what_stays_the_same_is_shared_and_what_the_caller_gave_is_not():
    data = log()
    assert data.without(saturation=0.9).q is data.q
    assert np.shares_memory(between(data, 1.0, 3.0).q, data.q)  # one part: a view
    assert replace(data, label="again").q is data.q
    t = np.arange(50) / RATE
    q, _, _ = wave(t)
    mine = Dataset(t, q, q)
    q[0] = 7.0  # still the caller's array, and writable
    assert mine.q[0, 0] != 7.0
    frozen = np.broadcast_to(q, q.shape)  # a read-only view of an array that the caller can write to
    theirs = Dataset(t, frozen, q)
    q[0] = 8.0
    assert theirs.q[0, 0] == 7.0


def test_a_log_is_frozen():
    data = log()
    with pytest.raises(ValueError, match="read-only"):
        data.q[0] = 1.0


def test_columns_without_a_header_are_called_by_number(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("0,1,2,3,4\n0.1,5,6,7,8\n")
    log = Dataset.read(path, {"t": "1", "q": "2-3", "tau": ["4", "5"]})
    np.testing.assert_array_equal(log.q, [[1, 2], [5, 6]])
    np.testing.assert_array_equal(log.tau, [[3, 4], [7, 8]])
    assert "no header: columns are called by their numbers, from 1" in log.history


def test_column_1_is_not_columns_10_to_12(tmp_path):
    path = tmp_path / "log.csv"
    table = np.arange(36.0).reshape(3, 12)
    np.savetxt(path, table, delimiter=",")
    log = Dataset.read(path, {"t": "1", "q": "2", "tau": "12"})
    np.testing.assert_array_equal(log.t, table[:, 0])
    np.testing.assert_array_equal(log.q, table[:, 1:2])
    np.testing.assert_array_equal(log.tau, table[:, 11:])


@pytest.mark.parametrize(
    "names",
    [
        ("Time", "Position", "Torque"),
        ("time", "q_", "tau_"),
        ("time", "q", "tau_J"),
        ("timestamp", "actual_q", "torque"),
        ("timestamp", "observation.state", "observation.effort"),
    ],
)
def test_names_that_other_makers_give(names):
    t, q, tau = np.arange(3.0), np.ones((3, 2)), np.zeros((3, 2))
    log = Dataset.read(dict(zip(names, (t, q, tau))))
    np.testing.assert_array_equal(log.q, q)
    np.testing.assert_array_equal(log.tau, tau)
    t_, q_, tau_ = names
    columns = {t_: t} | {f"{q_}{k}": q[:, k] for k in range(2)} | {f"{tau_}{k}": tau[:, k] for k in range(2)}
    np.testing.assert_array_equal(Dataset.read(columns).q, q)
