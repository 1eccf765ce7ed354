"""Scenarios: references within limits, gains that a step follows, loads."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.cli import motions, scenario
from geomctrl.cli.scenario import Scenario, ScenarioOptions
from geomctrl.control import tuning
from geomctrl.errors import GeomctrlError


@pytest.mark.quick(10)
@pytest.mark.parametrize("name", motions.REFERENCES)
@pytest.mark.parametrize("robot", models.names())
def test_references_stay_within_limits_and_start_at_rest(robot, name):
    r = models.load(robot)
    motion = motions.make_reference(name, r, 4.0, seed=3)
    samples = [motion(t) for t in np.linspace(0.0, 4.0, 200)]
    for joint, qs, vs in zip(r.joints, r.q_slices, r.v_slices):
        assert max(np.abs(d.v[vs]).max() for d in samples) <= 0.5 * joint.velocity + 1e-9
        if joint.dof == 1:
            assert joint.lower <= min(d.q[qs][0] for d in samples)
            assert joint.upper >= max(d.q[qs][0] for d in samples)
    np.testing.assert_allclose(samples[0].v, 0.0, atol=1e-12)
    assert max(np.abs(d.v).max() for d in samples) > 0.01


@pytest.mark.quick(3)
@pytest.mark.parametrize("robot", models.names())
def test_gains_keep_the_fastest_rate_within_what_a_step_follows(robot):
    r = models.load(robot)
    rule = tuning.design(r, 2e-3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        rates = np.linalg.eigvals(
            np.linalg.solve(r.mass_matrix(r.random_configuration(rng)), np.diag(rule.kappa * rule.D))
        )
        assert rates.real.max() <= tuning.MAX_RATE_TIMES_DT / 2e-3 * (1.0 + 1e-9)


def test_the_load_is_a_body_with_an_inertia_at_the_tool():
    panda = models.panda()
    heavy = scenario.loaded(panda, 2.0)
    assert scenario.tool_frame(panda) == "panda_hand_tcp"
    assert heavy.parameters[:, 0].sum() == pytest.approx(panda.parameters[:, 0].sum() + 2.0)
    assert gc.inertia.is_physical(heavy.parameters - panda.parameters + panda.parameters).all()
    assert (np.linalg.eigvalsh(gc.inertia.com_tensor((heavy.parameters - panda.parameters)[-1])) > 0.0).all()
    assert scenario.tool_frame(models.quadruped()) == "trunk"


def test_scenarios_refuse_what_they_do_not_know():
    r = models.two_link()
    for bad in (
        {"controller": "lqr"},
        {"controller": "slotine-li", "adapt": "all"},
        {"controller": "passivity", "reference": "circle"},
    ):
        with pytest.raises(GeomctrlError, match="expected"):
            Scenario.make(r, ScenarioOptions(**bad))
