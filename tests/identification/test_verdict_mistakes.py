"""Logs broken on purpose are caught, with the right joint named; good ones are not accused."""

from dataclasses import replace

import numpy as np
import pytest
from identification.verdict_logs import accused, coupled, first, judged, scaled, simulated, swapped
from lib import logs

from geomctrl import models
from geomctrl.identification import Filtering, RegressorModel, Validation


def needs(name):
    why = logs.missing(name)
    return pytest.mark.skipif(why is not None, reason=str(why))


@pytest.fixture(scope="module")
def panda_log():
    return simulated("panda")


# --- good logs ---------------------------------------------------------------------------------------------------

GOOD = [
    ("two_link", {}),
    ("two_link", {"seed": 3, "noise": 0.1, "bits": 12}),
    ("scara", {"seed": 1}),
    ("puma560", {"seed": 2, "noise": 0.03}),
    ("ur10", {"seed": 4, "bits": 14}),
    ("panda", {"seed": 5, "noise": 0.05, "bits": 13, "band": 1.0}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), GOOD)
def test_good_logs_are_not_accused(name, options):
    log, model = simulated(name, **options)
    test = Validation(0.3)
    for method, more in (("wls", {}), ("consistent", {"weights": "noise"})):
        verdict = judged(log, model, method, Filtering(5.0), test, **more)
        assert accused(verdict) == [], method
        assert not {"unexplained", "unseen", "drift", "convergence"} & {d.kind for d in verdict.doubts}, method


def test_a_good_log_of_a_good_robot_is_trusted():
    log, model = simulated("two_link")
    verdict = judged(log, model, "consistent", validation=Validation(0.3), weights="noise")
    assert verdict.status == "trust", verdict.text()
    assert verdict.exit_status == 0


# --- a joint's sign, two joints' places --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("k", "what"), [(0, "q"), (1, "tau"), (3, "q"), (6, "tau")])
def test_a_sign_is_caught(panda_log, k, what):
    log, model = panda_log
    verdict = judged(scaled(log, k, **{what: -1.0}), model)
    said = first(verdict, "sign")
    word = {"tau": "torque", "q": "position"}[what]
    assert f"the {word} of 'panda_joint{k + 1}' has the other sign" in said.seen
    assert said.fatal
    assert verdict.exit_status == 1
    assert sum(d.kind in ("sign", "swap") for d in verdict.doubts) == 1  # one mistake, one doubt


def test_a_frictionless_pendulum_with_its_torque_turned_around_has_negative_inertia():
    """Least squares explain it as well: what is negative then says so."""
    model = RegressorModel(models.two_link(), viscous=False, coulomb=False, offset=False)
    log, _ = simulated("two_link", model=model)
    seen = first(judged(replace(log, tau=-log.tau), model), "sign").seen
    assert "its own inertia comes out as -" in seen


def test_all_torques_of_the_other_sign_are_caught():
    log, model = simulated("puma560")
    doubts = [d for d in judged(replace(log, tau=-log.tau), model).doubts if d.kind == "sign"]
    assert {d.seen.split("'")[1] for d in doubts} == set(model.robot.dof_names)


@pytest.mark.slow
@pytest.mark.parametrize(("i", "parts"), [(1, (True, True)), (3, (False, True)), (5, (True, False))])
def test_swapped_joints_are_caught(panda_log, i, parts):
    log, model = panda_log
    q, tau = parts
    verdict = judged(swapped(log, i, i + 1, q, tau), model)
    pair = f"'panda_joint{i + 1}' and 'panda_joint{i + 2}'"
    what = {(True, True): pair, (False, True): f"the torques of {pair}", (True, False): f"the positions of {pair}"}
    assert f"better if {what[parts]} are in each other's place" in first(verdict, "swap").seen
    assert verdict.exit_status == 1


# --- units -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("k", "s"), [(0, 0.5), (3, 1.6), (5, 1e-3), (6, 20.0)])
def test_a_torque_in_another_unit_is_caught_with_its_factor(panda_log, k, s):
    log, model = panda_log
    verdict = judged(scaled(log, k, tau=s), model)
    said = first(verdict, "scale")
    assert said.seen.startswith(f"the torques of 'panda_joint{k + 1}' are ")
    assert float(said.seen.split(" are ")[1].split()[0]) == pytest.approx(s, rel=0.1)
    assert verdict.exit_status == 1


def test_a_scale_is_of_the_torque_not_of_what_a_known_armature_leaves():
    log, model = simulated("puma560", noise=0.003)
    assert model.known_armature.all()
    said = first(judged(scaled(log, 1, tau=3.0), model), "scale").seen
    assert float(said.split(" are ")[1].split()[0]) == pytest.approx(3.0, rel=0.03)


@pytest.mark.slow
def test_currents_and_millinewton_metres_are_caught(panda_log):
    log, model = panda_log
    gains = np.array([8.0, 8.0, 8.0, 8.0, 4.0, 4.0, 4.0])  # of the small motors half of the large ones'
    doubts = [d.seen for d in judged(replace(log, tau=log.tau / gains), model).doubts if d.kind == "scale"]
    names = ", ".join(f"'panda_joint{k}'" for k in (5, 6, 7))
    assert doubts[0].startswith(f"the torques of {names} are ")
    assert float(doubts[0].split(" are ")[1].split()[0]) == pytest.approx(2.0, rel=0.1)
    assert any("all torques are 0.1" in seen for seen in doubts)
    verdict = judged(replace(log, tau=1e3 * log.tau), model, filtering=Filtering(saturation=False))
    said = first(verdict, "scale")
    assert said.fatal
    assert "times what the model's own bodies take" in said.seen


@pytest.mark.slow
def test_degrees_are_caught(panda_log):
    log, model = panda_log
    turn = np.rad2deg(1.0)
    one = first(judged(scaled(log, 3, q=turn), model), "scale")
    assert "the position of 'panda_joint4' is in degrees" in one.seen
    assert one.fatal
    every = first(judged(replace(log, q=turn * log.q), model), "scale")
    assert "better if positions are in degrees" in every.seen


# --- couplings ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("i", "c"), [(1, 1.0), (4, -1.0)])
def test_a_coupling_that_is_not_declared_is_caught(panda_log, i, c):
    log, model = panda_log
    verdict = judged(coupled(log, i, i + 1, c), model)
    said = first(verdict, "coupling").seen
    assert f"'panda_joint{i + 2}' is logged at a motor that 'panda_joint{i + 1}' turns as well" in said
    assert ("its position less" if c > 0 else "its position plus") in said
    assert verdict.exit_status == 1


@pytest.mark.slow
def test_friction_at_a_motor_that_two_joints_turn_is_caught():
    """The kinematics are right; only the friction of a shared motor is not declared."""
    log, truth = simulated("ur10", bits=28)  # the friction below is of speeds by differences
    v = np.gradient(log.q, log.t, axis=0)
    speed = v[:, 4] + v[:, 5]
    rubs = 2.0 * np.sqrt(np.mean(log.tau[:, 4:] ** 2)) * np.tanh(speed / 0.02)
    tau = log.tau.copy()
    tau[:, 4:] += rubs[:, None]
    verdict = judged(replace(log, tau=tau), truth)
    said = first(verdict, "coupling").seen
    assert "'wrist_2_joint'" in said
    assert "'wrist_3_joint'" in said


# --- real logs ---------------------------------------------------------------------------------------------------

UR10_SETTINGS = Filtering(6.0, decimate=2)
KR300_SETTINGS = Filtering(8.0, decimate=2, standstill=0.01)


@pytest.fixture(scope="module")
def ur10():
    return logs.ur10_log(), RegressorModel(logs.ur10(), smoothing=0.05)


@pytest.fixture(scope="module")
def kr300():
    columns = [logs.kr300_counterbalance()]
    return logs.kr300_log("A"), RegressorModel(logs.kr300(), rotor=True, offset=False, columns=columns, smoothing=1e-3)


def tx40(**options):
    given = {"rotor": True, "offset": range(6), "transmission": logs.TX40_TRANSMISSION, "springs": [1]}
    log = logs.tx40_log()
    thin = replace(log, t=log.t[::10], q=log.q[::10], tau=log.tau[::10], mask=None)  # 500 Hz
    return thin, RegressorModel(logs.tx40(), smoothing=0.03, **(given | options))


TX40_SETTINGS = Filtering(40.0, 10.0, decimate=5)


@pytest.mark.slow
@needs("ur10_petrone_first70.npz")
def test_the_ur10s_log_is_not_accused(ur10):
    log, model = ur10
    for method, options in (
        ("wls", {}),
        ("consistent", {"mass_max": 20.0, "weights": "noise", "regularization": 1e-4}),
    ):
        assert accused(judged(log, model, method, UR10_SETTINGS, Validation(0.3), **options)) == []


@pytest.mark.slow
@needs("kr300_weigand_AB.npz")
def test_the_kr300s_log_is_not_accused(kr300):
    log, model = kr300
    options = {"mass_max": logs.KR300_MASSES, "weights": "noise", "regularization": 1e-4}
    verdict = judged(log, model, "consistent", KR300_SETTINGS, Validation(logs.kr300_log("B")), **options)
    assert accused(verdict) == []
    assert "condition number" in first(verdict, "excitation").seen  # ten seconds: several thousand
    assert "unseen data are predicted to 1" in first(verdict, "unseen").seen  # more than ten percent


@pytest.mark.slow
@needs("tx40_figaroh.npz")
def test_the_tx40s_log_is_not_accused_and_its_coupling_is_missed_where_it_is_not_declared():
    log, model = tx40()
    assert accused(judged(log, model, "consistent", TX40_SETTINGS, mass_max=30.0)) == []
    said = first(judged(log, tx40(transmission=None, offset=True)[1], "ols", TX40_SETTINGS), "coupling")
    assert said.fatal
    assert "'joint5'" in said.seen
    assert "'joint6'" in said.seen


BROKEN = [
    ("sign", "the torque of 'joint2' has the other sign", lambda log: scaled(log, 1, tau=-1.0)),
    ("sign", "the position of 'joint3' has the other sign", lambda log: scaled(log, 2, q=-1.0)),
    ("sign", "the torque of 'joint6', or its position, has the other sign", lambda log: scaled(log, 5, q=-1.0)),
    ("swap", "'joint2' and 'joint3' are in each other's place", lambda log: swapped(log, 1, 2)),
    ("swap", "the torques of 'joint4' and 'joint5' are in each", lambda log: swapped(log, 3, 4, q=False)),
    ("scale", "the torques of 'joint3' are 3", lambda log: scaled(log, 2, tau=3.0)),
    ("scale", "the torques of 'joint2' are 0.5", lambda log: scaled(log, 1, tau=0.5)),
    ("coupling", "'joint3' is logged at a motor that 'joint2' turns", lambda log: coupled(log, 1, 2)),
    ("scale", "the position of 'joint2' is in degrees", lambda log: scaled(log, 1, q=57.29578)),
]


@pytest.mark.slow
@needs("ur10_petrone_first70.npz")
@pytest.mark.parametrize(("kind", "words", "change"), BROKEN)
def test_the_ur10s_log_broken_on_purpose_is_caught(ur10, kind, words, change):
    log, model = ur10
    verdict = judged(change(log), model, "ols", UR10_SETTINGS)
    seen = first(verdict, kind).seen
    if kind == "scale" and "torques" in words:
        assert seen.startswith(words.rsplit(" ", 1)[0])
        assert float(seen.split(" are ")[1].split()[0]) == pytest.approx(float(words.split()[-1]), rel=0.05)
    else:
        assert words in seen
    assert verdict.exit_status == 1


@pytest.mark.slow
@needs("kr300_weigand_AB.npz")
@pytest.mark.parametrize("k", [1, 5])
def test_the_kr300s_signs_are_caught(kr300, k):
    log, model = kr300
    verdict = judged(scaled(log, k, tau=-1.0), model, "ols", KR300_SETTINGS)
    assert f"the torque of 'joint{k + 1}'" in first(verdict, "sign").seen
    assert verdict.exit_status == 1
