"""Environments whose actions pass a filter that is proved for all masses of a range."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import interop, references, testing
from geomctrl.errors import ArgumentError
from geomctrl.interop import EnvironmentOptions

pytest.importorskip("gymnasium", reason="gymnasium is not installed")
TABLE = gc.Robot.build(
    [gc.Body("table", None, gc.Joint.prismatic((1, 0, 0)), np.eye(4), gc.inertia.from_com(2.0, np.zeros(3), np.eye(3)))]
)
FORCE, DT = 12.0, 0.01
STIFFNESS, DAMPING = 4.0, 6.0  # N/m, N s/m
P = np.array([[1.25, 0.25], [0.25, 0.25]])  # solves A'P + P A = -1 for 2 kg; the ellipse x.P x <= 1 reaches |q| = 1
BOX = np.array([1.1, 2.4, FORCE])


def h(t, q, v, z, plant):
    return 1.0 - (P[0, 0] * q[0] ** 2 + 2.0 * P[0, 1] * q[0] * v[0] + P[1, 1] * v[0] ** 2)


class Filter:
    """Passes the action z in the set, and blends it with a spring and a damper near its boundary."""

    def __init__(self, damping=DAMPING):
        self.damping = damping

    def start(self):
        return np.zeros(1)

    def __call__(self, t, q, v, z):
        share = np.clip(10.0 * h(t, q, v, z, None) - 1.0, 0.0, 1.0)
        return gc.Command(share * z - (1.0 - share) * (STIFFNESS * q + self.damping * v), np.zeros(1))


def certified(law, error=0.2, control_dt=DT, budget=20_000):
    return testing.certify_barrier(h, law, TABLE, (-BOX, BOX), parameters=error, control_dt=control_dt, budget=budget)


@pytest.fixture(scope="module")
def proof():
    return certified(Filter())


def start(rng):
    x = rng.normal(size=2)
    x *= rng.uniform(0.0, 0.999) / np.sqrt(x @ P @ x)
    mass = rng.choice([0.8, 1.2, rng.uniform(0.8, 1.2)])
    return {"q0": x[:1], "v0": x[1:], "plant": TABLE.with_parameters(TABLE.parameters * mass)}


def env(proof, **arguments):
    options_of_call = {"start": start, "num_envs": None, "plant": TABLE, "control_dt": DT, **arguments}
    options = EnvironmentOptions(torque_limit=FORCE, monitors=None, safety=proof)
    return interop.gymnasium_env(
        reference=references.hold(TABLE, [0.0]), t_end=1.0, dt=1e-3, options=options, **options_of_call
    )


def test_the_filter_is_proved_for_all_masses(proof):
    assert proof
    assert proof.invariant


def test_no_action_takes_a_certified_environment_out_of_its_set(proof):
    """Random actions, and those that push h down; without the filter they leave the set."""
    lowest, count = [], 32
    for safety in (proof, None):
        envs = env(safety, num_envs=count)
        envs.reset(seed=0)
        rng, values = np.random.default_rng(1), [np.inf]
        for _ in range(100):
            q, v = (x.copy() for x in (envs._episodes.q, envs._episodes.v))
            values.append(min(h(0.0, *x, None, None) for x in zip(q, v)))
            worst = np.sign(P[0, 1] * q + P[1, 1] * v)
            actions = np.where(np.arange(count)[:, None] % 2, worst, rng.uniform(-1.0, 1.0, (count, 1)))
            envs.step(actions)
        lowest.append(min(values))
    assert 0.0 < lowest[0] < 0.1
    assert lowest[1] < -1.0


def test_one_episode_is_repeated_with_the_filtered_torques(proof):
    environment = env(proof)
    environment.reset(seed=2)
    for _ in range(20):
        environment.step([1.0])
    run = environment.unwrapped.run()
    assert np.allclose(run.q[-1], environment.unwrapped._episodes.q[0], rtol=0.0, atol=1e-12)
    assert np.abs(run.tau).max() < 12.2


class Pass:
    """A filter that changes nothing."""

    def start(self):
        return np.zeros(1)

    def __call__(self, t, q, v, z):
        return gc.Command(z, np.zeros(1))


@pytest.mark.parametrize("law", [Pass(), Filter(-6.0)], ids=["none", "wrong sign"])
def test_a_wrong_filter_is_refuted_and_refused(law):
    wrong = certified(law)
    assert wrong.status == "refuted"
    with pytest.raises(ArgumentError, match="safety: expected a certificate that is proved"):
        env(wrong)


def test_certificates_of_other_loops_are_refused(proof):
    refused = [
        (certified(Filter(), budget=20), {}, "proved and invariant"),
        (certified(Filter(), error=0.0, control_dt=None), {}, "control_dt"),
        (proof, {"control_dt": 0.005}, "control_dt"),
        (proof, {"plant": gc.Plant(TABLE, gc.Friction(viscous=0.1))}, "this plant"),
        (proof, {"plant": TABLE.with_parameters(1.3 * TABLE.parameters)}, "inertial parameters"),
        (proof, {"controller": Pass()}, "controller"),
        ("proved", {}, "BarrierCertificate"),
    ]
    for certificate, change, match in refused:
        with pytest.raises(ArgumentError, match=match):
            env(certificate, **change)
    heavy = {"plant": TABLE.with_parameters(1.3 * TABLE.parameters), "q0": [0.0], "v0": [0.0]}
    for begin, match in (({"q0": [0.99], "v0": [0.9]}, "h >= 0"), (heavy, "inertial parameters")):
        with pytest.raises(ArgumentError, match=match):
            env(proof, start=lambda rng, begin=begin: begin).reset()


def test_a_law_that_was_changed_after_its_proof_is_refused(monkeypatch):
    law = Filter()
    changed = certified(law)
    episodes = env(changed)
    episodes.reset(seed=0)
    law.damping = 0.0
    for use in (lambda: env(changed), lambda: episodes.reset(seed=0)):
        with pytest.raises(ArgumentError, match="Filter or plant that was changed"):
            use()
    law.damping = DAMPING
    episodes.reset(seed=0)
    monkeypatch.setitem(globals(), "P", 0.5 * P)  # of the barrier, and of the law
    with pytest.raises(ArgumentError, match="was changed"):
        episodes.reset(seed=0)
