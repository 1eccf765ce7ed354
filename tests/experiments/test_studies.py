"""Small parts of the studies give the results that the studies state."""

import numpy as np
import pytest
from studies import controllers, panda_certificates, payload_robustness, proofs, sampling_rate

import geomctrl as gc


@pytest.mark.slow
def test_a_load_that_the_joints_can_not_hold_breaks_the_proof():
    space = {"payload": [1.0, 12.0], "rate": [0.5]}
    table = gc.sweep(payload_robustness.make, space, payload_robustness.measures, 3.0, 1e-3)
    peak = (table.peak_torque / payload_robustness.LIMITS).max("joint").values.ravel()
    assert peak[0] < 1.0 == pytest.approx(peak[1])
    assert (table.growth.values.ravel() > payload_robustness.GROWTH).tolist() == [False, True]
    assert table.tracking_rms.values[1] > table.tracking_rms.values[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PDGravity", "ComputedTorque"])
def test_a_command_that_is_held_longer_lets_V_grow_more(name):
    result = [sampling_rate.growth(*sampling_rate.loops()[name], held, 0.3) for held in (4, 16, 64)]
    assert np.all(np.diff(result) > 0.0)
    assert result[0] > 1e-10


def caught_by(case):
    """The checks that find a law wrong, and those that prove it right."""
    result = {name: word for name, (word, _) in proofs.verdicts(case).items()}
    return {name for name, word in result.items() if word == "caught"}, {
        name for name, word in result.items() if word == "proved"
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", proofs.right(), ids=lambda case: case.name)
def test_no_judge_accuses_a_law_that_is_right(case):
    caught, proved = caught_by(case)
    assert not caught
    assert proved == ({"certificate"} if case.still is not None else set())


EVERYONE = {"sampling", "search", "certificate", "monitor"}
SILENT = {  # laws that no check finds wrong, with the reason
    "plain C": {"certificate"},  # V' < 0 in the box nevertheless
    "adaptation of the wrong sign": {"certificate"},  # not for laws with a state
    "gravity left out": set(),
    "sigma-modification called exact": {"certificate"},
    "held too long": {"sampling", "certificate"},  # right as a law in continuous time
    "mass matrix of another model": set(),
    # no random state and no run is on the orbit, where intervals can not distinguish zero from rounding
    "V zero on an orbit": {"sampling", "monitor", "certificate"},
    "Coulomb friction ignored": {"certificate"},  # V' < 0 in the box nevertheless
    "damping that is not passive": set(),
    "saturation ignored": {"sampling", "monitor"},  # only far out, where few random states are and no run goes
}


@pytest.mark.slow
@pytest.mark.parametrize("case", proofs.wrong(), ids=lambda case: case.name)
def test_who_catches_a_proof_that_is_wrong(case):
    caught, proved = caught_by(case)
    assert not proved
    assert "search" in caught
    assert caught == EVERYONE - SILENT[case.name]


@pytest.mark.slow
def test_a_panda_whose_model_is_off_settles_in_a_ball_and_in_no_smaller_one():
    certificate = panda_certificates.certificate
    assert certificate(2.0, {"outside": 0.2}, 600.0).proved
    assert certificate(2.0, {"outside": 0.03}, 600.0).status == "refuted"


@pytest.mark.slow
def test_laws_on_hardware_are_compared():
    """A law that learns the friction has a smaller error than the same law without learning; limits hold."""
    result = {x.law: x for name in ("Passivity", "SlotineLi") for x in controllers.results(2.0, name)}
    assert result["SlotineLi"].rms < result["Passivity"].rms < 0.05
    assert max(x.peak for x in result.values()) <= controllers.model().limits.effort.max()
    assert controllers.winners(list(result.values()))["tracking RMS"] == "SlotineLi"


def test_a_law_that_fails_is_told_and_wins_nothing():
    class Lost:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(np.full(7, np.nan if t > 0.1 else 0.0))

    lost = controllers.tracked("Lost", Lost, controllers.model(), 0.5)
    assert lost.rms == np.inf
    assert lost.ended
    assert set(controllers.winners([lost, controllers.Result("other", 1.0, 1.0, 1.0)]).values()) == {"other"}
