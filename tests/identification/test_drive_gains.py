"""Drive gains from currents that were computed with known gains from Pinocchio's torques."""

import json

import numpy as np
import pytest
from identification.loaded import Load, torque_log
from lib.logs import between

from geomctrl import models
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.identification import DataError, Dataset, ExcitationError, Filtering, KnownLoad, Reading, drive_gains

PANDA, LOAD = models.panda(), Load(mass=3.0)
GAINS = np.array([11.0, 12.5, -9.5, 10.0, 6.0, 7.0, 5.5])  # N m/A
FILTER = Filtering(cutoff=12.0)
KNOWN = {"load": LOAD.mass, "frame": LOAD.frame}
ALL_KNOWN = KNOWN | {"load": KnownLoad(LOAD.mass, LOAD.centre, LOAD.inertia)}


def currents(load, folder, seed=0, noise=0.02, label="log", **options):
    log = torque_log(PANDA, load, folder, seed, noise=0.0, label=label, **options)
    i = log.tau / GAINS + noise * np.random.default_rng(seed).normal(size=log.tau.shape)
    return Dataset(log.t, log.q, i, label=label)


@pytest.mark.slow
@pytest.mark.parametrize("known", [KNOWN, ALL_KNOWN, {"known_bodies": ["panda_link4", "panda_link5"]}])
def test_gains_are_found_and_intervals_cover_them(known, tmp_path):
    nominal = PANDA if "load" not in known else PANDA.with_parameters(1.3 * PANDA.parameters)  # of no use in this case
    z = []
    for seed in range(0, 8, 2):
        empty = currents(None, tmp_path, seed + 1)
        logs = (currents(LOAD, tmp_path, seed), empty) if "load" in known else (empty,)
        result = drive_gains(nominal, *logs, filtering=FILTER, **known)
        assert result.refused == {}
        assert not result.findings
        # one of GAINS is negative, which is noted and not doubted
        assert "'panda_joint3' -9" in result.notes["negative gains"]
        np.testing.assert_allclose(result.gains, GAINS, rtol=0.15 if "known_bodies" in known else 0.02)
        z.append((result.gains - GAINS) / result.std)
    assert 0.5 < np.sqrt(np.mean(np.square(z))) < 1.4
    if known is KNOWN:
        np.testing.assert_allclose(result.load[1:4], 3.0 * np.array(LOAD.centre), atol=0.02)


def test_without_noise_the_gains_themselves_are_found(tmp_path):
    logs = currents(LOAD, tmp_path, 0, 0.0, bits=40), currents(None, tmp_path, 1, 0.0, bits=40)
    result = drive_gains(PANDA, *logs, filtering=Filtering(cutoff=30.0), **ALL_KNOWN)
    np.testing.assert_allclose(result.gains, GAINS, rtol=3e-3)


@pytest.mark.parametrize(
    ("turned", "seen"), [(True, "all gains that the logs determine are negative"), (False, "are 1 N m/A")]
)
def test_exchanged_logs_and_torques_in_place_of_currents_are_fatal(turned, seen, tmp_path):
    def log(load, seed):
        created = currents(load, tmp_path, seed)
        return Dataset(created.t, created.q, created.tau * (np.sign(GAINS) if turned else GAINS))

    loaded, empty = log(LOAD, 0), log(None, 1)
    (finding,) = drive_gains(
        PANDA, *((empty, loaded) if turned else (loaded, empty)), filtering=FILTER, **KNOWN
    ).findings
    assert seen in finding.seen
    assert finding.fatal


def test_exchanged_logs_are_doubted_where_one_drive_counts_the_other_way(tmp_path):
    logs = currents(LOAD, tmp_path, 0), currents(None, tmp_path, 1)
    (finding,) = drive_gains(PANDA, *logs[::-1], filtering=FILTER, **KNOWN).findings
    assert finding.kind == "sign"
    assert "most gains that the logs determine are negative: 'panda_joint1' -" in finding.seen
    assert "'panda_joint3'" not in finding.seen
    assert finding.advice.startswith("Exchange the logs")


@pytest.mark.slow
def test_an_upright_axis_that_hardly_accelerates_gets_no_gain(tmp_path):
    logs = [currents(x, tmp_path, seed, 0.05, slow=12.0, seconds=30.0) for x, seed in ((LOAD, 0), (None, 1))]
    result = drive_gains(PANDA, *logs, filtering=Filtering(cutoff=5.0), **ALL_KNOWN)
    assert "panda_joint1" in result.refused
    assert "none of it weight: its axis is upright" in result.refused["panda_joint1"]
    assert np.isnan(result.gains[0])
    np.testing.assert_allclose(result.gains[1:4], GAINS[1:4], rtol=0.02)
    assert result.known_torques[0, 1] == pytest.approx(0.0, abs=1e-9)
    assert [d.kind for d in result.findings] == ["gain"] * len(result.refused)
    saved = {path.name: path for path in result.save(tmp_path / "out")}
    assert json.loads(saved["report.json"].read_text())["gains"][0] is None
    assert "REFUSED panda_joint1" in saved["report.txt"].read_text()
    with pytest.raises(ArgumentError, match="current_gains"):
        Reading(current_gains=result.gains)


def test_a_load_that_is_not_what_it_is_said_to_be_scales_all_gains(tmp_path):
    logs = currents(LOAD, tmp_path, 0), currents(None, tmp_path, 1)
    result = drive_gains(PANDA, *logs, load=2.0 * LOAD.mass, frame=LOAD.frame, filtering=FILTER)
    np.testing.assert_allclose(result.gains, 2.0 * GAINS, rtol=0.03)


def write(path, t, q, **fields):
    columns = {"t": t} | {f"{f}{k + 1}": x[:, k] for f, x in {"q": q, **fields}.items() for k in range(q.shape[1])}
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    return path


def test_currents_are_read_where_torques_are_too_and_asked_for_where_they_are_not(tmp_path):
    log, empty = currents(LOAD, tmp_path, 0, rate=200.0), currents(None, tmp_path, 1, rate=200.0)
    both = write(tmp_path / "both.csv", log.t, log.q, current=log.tau, torque=log.tau * GAINS)
    milli = write(tmp_path / "milli.csv", empty.t, empty.q, i=1e3 * empty.tau)
    result = drive_gains(PANDA, both, empty, filtering=FILTER, **KNOWN)
    np.testing.assert_allclose(result.gains, GAINS, rtol=0.03)
    again = drive_gains(PANDA, log, milli, reading=Reading(units={"i": "mA"}), filtering=FILTER, **KNOWN)
    np.testing.assert_allclose(again.gains, result.gains, rtol=1e-6)
    torques = write(tmp_path / "torques.csv", log.t, log.q, tau=log.tau)
    with pytest.raises(DataError, match=r"i: expected motor currents, got none; there are t, q1.*--column i=NAME"):
        drive_gains(PANDA, torques, empty, **KNOWN)
    degrees = write(tmp_path / "degrees.csv", log.t, np.rad2deg(log.q), i=log.tau)
    with pytest.raises(DataError, match="wrong units suspected: q of"):
        drive_gains(PANDA, degrees, empty, **KNOWN)


def test_bad_input_is_refused_with_its_name(tmp_path):
    log, empty = currents(LOAD, tmp_path, 0, rate=100.0), currents(None, tmp_path, 1, rate=100.0)
    six = Dataset(log.t, log.q[:, :6], log.tau[:, :6])
    dead = Dataset(empty.t, empty.q, empty.tau * (np.arange(7) != 3))
    same = Dataset(empty.t, empty.q, empty.tau + 0.02 * np.random.default_rng(5).normal(size=empty.tau.shape))
    for error, words, arguments, options in (
        (ArgumentError, "mass: expected kilograms > 0", (log, empty), {"load": 0.0}),
        (ArgumentError, "mass: expected kilograms > 0", (log, empty), {"load": 1e308}),
        (ArgumentError, "load: expected the mass of a load, or known_bodies", (log, empty), {}),
        (ArgumentError, "without_load: expected a log without the load", (log,), {"load": 1.0}),
        (ArgumentError, "without_load: needs the mass", (log, empty), {"known_bodies": ["panda_link5"]}),
        (
            ArgumentError,
            "known_bodies: expected none, because",
            (log, empty),
            KNOWN | {"known_bodies": ["panda_link5"]},
        ),
        (NameNotFoundError, "known_bodies: expected some of .*'link9'", (empty,), {"known_bodies": ["link9"]}),
        (NameNotFoundError, "frame named 'tool9'", (log, empty), {"load": 1.0, "frame": "tool9"}),
        (
            ArgumentError,
            "centre: expected a centre, because the inertia",
            (log, empty),
            KNOWN | {"load": KnownLoad(LOAD.mass, inertia=LOAD.inertia)},
        ),
        (DataError, "expected 7 joints", (log, six), KNOWN),
        (DataError, "too short", (between(log, 0.0, 0.4), between(empty, 0.0, 0.4)), KNOWN),
        (ExcitationError, "no current in joint|no gain is determined", (dead, dead), KNOWN),
        (ExcitationError, "no gain is determined|currents do not depend", (same, empty), KNOWN),
    ):
        with pytest.raises(error, match=words):
            drive_gains(PANDA, *arguments, filtering=FILTER, **options)
