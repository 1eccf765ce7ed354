"""Environments of Gymnasium: their steps are those of `simulate`, and they follow Gymnasium's rules."""

import numpy as np
import pytest
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl import controllers, interop, models, references
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.interop import EnvironmentOptions

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
TWO_LINK = models.two_link()
REFERENCE = references.Sinusoids(TWO_LINK, [0.3, -0.2], 0.3, 0.5)
DT, CONTROL_DT = 1e-3, 5e-3
OPTIONS = EnvironmentOptions(torque_limit=50.0, normalized=False)


def env(plant=TWO_LINK, reference=REFERENCE, t_end=0.1, options=OPTIONS, **arguments):
    return interop.gymnasium_env(plant, reference, t_end, DT, CONTROL_DT, options=options, **arguments)


def displaced(rng):
    q = np.array([0.3, -0.2]) + 0.3 * rng.normal(size=2)
    return {"q0": q, "v0": rng.normal(size=2), "plant": TWO_LINK.with_payload(rng.uniform(0.1, 1.0), (0.1, 0.0, 0.0))}


def states(made):
    """(q, v) of all episodes."""
    return made.unwrapped._episodes.q.copy(), made.unwrapped._episodes.v.copy()


class Memory:
    """A law of a user that counts its calls in an attribute."""

    def __init__(self):
        self.last = np.zeros(2)

    def __call__(self, t, q, v, z):
        tau = -4.0 * q - 0.5 * (v + self.last)
        self.last = v + 0.0
        return gc.Command(tau)


ARMS = {
    "robot": TWO_LINK,
    "delay and lag": gc.Plant(
        TWO_LINK, gc.Friction(0.2), actuators=[gc.actuators.TransportDelay(5 * DT), gc.actuators.Lag(0.02)]
    ),
    "LuGre": gc.Plant(TWO_LINK, gc.friction.LuGre(100.0, coulomb=0.4, static=0.6, speed=0.1)),
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", ARMS)
def test_a_law_as_policy_gives_the_trajectory_of_simulate(name, compiled):
    plant, law = ARMS[name], controllers.ComputedTorque(TWO_LINK, REFERENCE, kp=100.0, kd=20.0)
    q, v = np.array([0.5, 0.1]), np.array([0.2, -0.3])
    run = gc.simulate(plant, law, q, v, 0.1, DT, CONTROL_DT)
    simulation = gc.SimulationOptions(compiled=compiled)
    result = env(plant, options=EnvironmentOptions(torque_limit=50.0, normalized=False, simulation=simulation))
    result.reset(options={"q0": q, "v0": v})
    for k in range(20):
        *_, truncated, info = result.step(law(k * CONTROL_DT, q, v, None).tau)
        q, v = (x[0] for x in states(result))
        np.testing.assert_allclose(q, run.q[5 * (k + 1)], rtol=0, atol=1e-12)
        np.testing.assert_allclose(v, run.v[5 * (k + 1)], rtol=0, atol=1e-12)
        assert truncated == (k == 19)
    assert "error" not in info
    assert info["monitors"].keys() == info["verdicts"].keys() >= {"skew", "energy"}
    again = result.unwrapped.run()
    assert again.success
    np.testing.assert_allclose(again.q, run.q, rtol=0, atol=1e-12)
    for monitor, worst in info["monitors"].items():  # the environment takes no sample at the end
        assert worst == pytest.approx(again.monitors[monitor].values[:-1].max(), rel=1e-3, abs=1e-12)


def test_multi_dof_joints_move_on_their_group():
    robot = models.quadrotor()
    q0, v0 = robot.neutral(), np.array([0.3, -0.2, 0.1, 0.5, 0.2, -0.1])
    tau = np.array([0.01, -0.02, 0.03, 0.0, 0.0, 5.0])
    run = gc.simulate(robot, lambda t, q, v, z: gc.Command(tau), q0, v0, 0.1, DT, CONTROL_DT, monitors=None)
    reference = references.hold(robot, q0)
    single = env(robot, reference)
    several = env(robot, reference, num_envs=3, start=lambda rng: {"v0": v0})
    single.reset(options={"v0": v0})
    several.reset()
    for k in range(20):
        observation, *_ = single.step(tau)
        observations, *_ = several.step(np.tile(tau, (3, 1)))
        for q in (single._episodes.q[0], several._episodes.q[2]):
            np.testing.assert_allclose(q, run.q[5 * (k + 1)], rtol=0, atol=1e-12)
        np.testing.assert_allclose(observations[1], observation, rtol=0, atol=1e-12)
    e = robot.difference(q0, run.q[-1])
    np.testing.assert_allclose(observation[12 + 6 : 12 + 12], e, rtol=0, atol=1e-12)


@pytest.mark.quick(2)
@pytest.mark.parametrize("law", [None, Memory(), controllers.PDGravity(TWO_LINK, [0.3, -0.2], kp=30.0, kd=5.0)])
def test_episodes_side_by_side_are_those_of_single_environments(law):
    """With random states and payloads, ends at different times and resets in the next step."""
    options = EnvironmentOptions(torque_limit=5.0, terminated=lambda x: np.abs(x.error).max(axis=-1) > 0.6)
    arguments = {"start": displaced, "options": options, "controller": law, "t_end": 0.2}
    several = env(num_envs=11, **arguments)
    singles = [env(**arguments) for _ in range(11)]
    first, _ = several.reset(seed=4)
    np.testing.assert_array_equal(first, [x.reset(seed=4 + k)[0] for k, x in enumerate(singles)])
    rng, ended, resets, early = np.random.default_rng(0), [False] * 11, 0, 0
    for _ in range(60):
        actions = rng.uniform(-1.0, 1.0, (11, 2))
        observations, rewards, terminated, truncated, infos = several.step(actions)
        for k, single in enumerate(singles):
            if ended[k]:
                expected, ended[k], resets = (single.reset()[0], 0.0, False, False), False, resets + 1
            else:
                *expected, info = single.step(actions[k])
                ended[k] = expected[2] or expected[3]
                early += expected[2]
                for name, worst in info["monitors"].items():
                    np.testing.assert_allclose(infos["monitors"][name][k], worst, rtol=1e-3, atol=1e-9)
                if ended[k]:
                    assert set(infos["verdicts"]) >= set(info["verdicts"])
            np.testing.assert_allclose(observations[k], expected[0], rtol=0, atol=1e-10)
            np.testing.assert_allclose(rewards[k], expected[1], rtol=1e-9)
            assert (terminated[k], truncated[k]) == (expected[2], expected[3])
    assert resets > 11
    assert early > 0, "some episodes must end before the others of their lanes"


def test_gymnasiums_checkers(recwarn):
    from gymnasium.utils.env_checker import check_env

    for law in (None, controllers.PDGravity(TWO_LINK, [0.3, -0.2])):
        result = env(options=EnvironmentOptions(torque_limit=5.0), start=displaced, controller=law, t_end=0.02)
        check_env(result, skip_render_check=True)
    messages = {str(w.message) for w in recwarn}
    assert all("spec" in x or "infinity" in x for x in messages), messages
    gymnasium.register("TwoLink-v0", entry_point=lambda **k: env(**k), vector_entry_point=lambda **k: env(**k))
    try:
        several = gymnasium.make_vec("TwoLink-v0", num_envs=3, vectorization_mode="vector_entry_point")
        several = gymnasium.wrappers.vector.RecordEpisodeStatistics(several)
        several.reset(seed=0)
        for _ in range(25):
            observations, *_, infos = several.step(several.action_space.sample())
            assert several.observation_space.contains(observations)
            if "episode" in infos:
                assert infos["episode"]["l"].tolist() == [20, 20, 20]
                break
        else:
            pytest.fail("no episode ended")
        result = gymnasium.make("TwoLink-v0", render_mode="rgb_array")
        result.reset(seed=1)
        picture = result.render()
        assert picture.shape == (480, 480, 3)
        assert np.ptp(picture) > 100
    finally:
        del gymnasium.registry["TwoLink-v0"]


def test_seeds_determine_episodes():
    result = env(start=displaced, options=EnvironmentOptions(torque_limit=5.0))

    def episode(seed):
        rows = [result.reset(seed=seed)[0]]
        while True:
            observation, reward, terminated, truncated, _ = result.step([0.5, -0.5])
            rows.append(np.append(observation, reward))
            if terminated or truncated:
                return np.concatenate(rows)

    first = episode(3)
    np.testing.assert_array_equal(episode(3), first)
    assert not np.allclose(episode(4), first)


def test_observation_reward_and_units():
    robot = TWO_LINK
    result = env(options=EnvironmentOptions(torque_limit=[2.0, 4.0]))
    observation, _ = result.reset(options={"q0": [4.0, -0.5], "v0": [1.0, 2.0]})
    limited = np.isfinite(robot.limits.upper)
    names = result.observation_names
    assert len(names) == len(observation) == result.observation_space.shape[0]
    values = dict(zip(names, observation))
    for k, name in enumerate(robot.dof_names):
        q = [4.0, -0.5][k]
        if limited[k]:
            assert values[f"q {name}"] == q
        else:
            assert (values[f"cos {name}"], values[f"sin {name}"]) == pytest.approx((np.cos(q), np.sin(q)))
        assert values[f"error {name}"] == pytest.approx(q - REFERENCE(0.0).q[k])
        assert values[f"error_rate {name}"] == pytest.approx([1.0, 2.0][k] - REFERENCE(0.0).v[k])
    _, reward, *_ = result.step([1.5, -0.5])  # the first is clipped
    desired, (q, v) = REFERENCE(CONTROL_DT), (x[0] for x in states(result))
    e, rate = q - desired.q, v - desired.v
    assert reward == pytest.approx(-(e @ e + 0.1 * rate @ rate + 0.001 * (1.0 + 0.25)))
    np.testing.assert_array_equal(result._episodes.tau[0], [2.0, -2.0])


def test_actions_are_added_to_the_controller_and_monitors_judge_both():
    law = controllers.PDGravity(TWO_LINK, [0.3, -0.2], kp=30.0, kd=5.0)
    result = env(reference=references.hold(TWO_LINK, [0.3, -0.2]), controller=law, t_end=0.3)
    begin = {"q0": [0.5, 0.0], "v0": [0.0, 0.0]}

    def verdicts(added):
        result.reset(options=begin)
        while True:
            *_, truncated, info = result.step(added)
            if truncated:
                return info["verdicts"]["lyapunov"]

    run = gc.simulate(TWO_LINK, law, **begin, t_end=0.3, dt=DT, control_dt=CONTROL_DT)
    assert verdicts([0.0, 0.0]) == "held"
    np.testing.assert_allclose(result._episodes.q[0], run.q[-1], rtol=0, atol=1e-12)
    assert verdicts([20.0, 0.0]) == "VIOLATED"


SENSORS = [
    gc.sensors.Encoder(bits=12, noise=1e-3, cutoff=40.0, dt=DT),
    gc.sensors.JointTorque(side="motor", noise=0.1, delay=CONTROL_DT),
    gc.sensors.IMU("tip", noise=0.2),
]


class OfMeasurements:
    """A law that uses the measured torque."""

    measurements = True

    def __call__(self, t, q, v, z, y):
        return gc.Command(-20.0 * (q - np.array([0.3, -0.2])) - 2.0 * v - 0.1 * y["torque"])


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("law", [None, OfMeasurements()])
def test_observations_are_what_sensors_measure_and_rewards_are_of_true_states(law, compiled):
    """Compared with `simulate` of the same plant, whose run stores all measurements, under the same actions."""
    plant = gc.Plant(TWO_LINK, gc.Friction(0.2), sensors=SENSORS)
    simulation = gc.SimulationOptions(compiled=compiled)
    options = EnvironmentOptions(
        torque_limit=50.0, normalized=False, simulation=simulation, reward=lambda x: x.q[..., 0], monitors=None
    )
    several = env(plant, options=options, controller=law, num_envs=3)
    first, _ = several.reset(seed=5, options={"q0": [0.5, 0.1], "v0": [0.2, -0.3]})
    rows, rewards = [first], []
    for k in range(20):
        observations, reward, *_ = several.step(np.full((3, 2), np.sin(k)))
        rows.append(observations)
        rewards.append(reward)
    rows, names = np.array(rows), several.observation_names
    assert rows.shape == (21, 3, len(names))
    for index in range(3):
        run = several.run(index)
        last = slice(None, -1)  # `run` takes no command at the end
        measured = {name: x[::5][last] for name, x in run.measured.items()}
        e = measured["q"] - np.array([REFERENCE(k * CONTROL_DT).q for k in range(20)])
        columns = {f"v {TWO_LINK.dof_names[j]}": measured["v"][:, j] for j in range(2)}
        columns |= {f"error {TWO_LINK.dof_names[j]}": e[:, j] for j in range(2)}
        columns |= {f"torque[{j}]": measured["torque"][:, j] for j in range(2)}
        columns |= {f"imu[{j}]": measured["imu"][:, j] for j in range(6)}
        for name, x in columns.items():
            np.testing.assert_allclose(rows[:-1, index, names.index(name)], x, rtol=0, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(np.array(rewards)[:, index], run.q[5::5, 0], rtol=0, atol=1e-12)
    assert np.abs(np.diff(rows[0], axis=0)).max() > 1e-4, "each episode has its own noise"


def test_the_seed_of_reset_determines_the_noise():
    result = env(gc.Plant(TWO_LINK, sensors=SENSORS), options=EnvironmentOptions(torque_limit=5.0))

    def episode(seed):
        return np.concatenate([result.reset(seed=seed)[0], *(result.step([0.1, 0.2])[0] for _ in range(5))])

    first = episode(3)
    np.testing.assert_array_equal(episode(3), first)
    assert np.abs(episode(4) - first).max() > 1e-4
    assert np.abs(episode(None) - episode(None)).max() > 1e-4


def test_sensors_do_not_change_from_episode_to_episode():
    other = {"plant": gc.Plant(TWO_LINK, sensors=gc.sensors.Encoder(bits=12))}
    with pytest.raises(ArgumentError, match="start: expected a plant with sensors that measure what those of `plant`"):
        env(start=lambda rng: other).reset()


def test_a_state_that_can_not_be_integrated_ends_its_episode_alone():
    class Blows(gc.Plant):
        def net_torque(self, t, q, v, tau, x):
            if v[0] > 0.5:
                raise ValueError("too fast")
            return tau

    plant = Blows(TWO_LINK)
    options = EnvironmentOptions(torque_limit=50.0, monitors=None)
    several = env(plant, num_envs=3, options=options, start=lambda rng: {"v0": np.zeros(2)})
    several.reset()
    actions = np.zeros((3, 2))
    actions[1, 0] = 1.0
    for _ in range(20):
        observations, _, terminated, _, infos = several.step(actions)
        if terminated.any():
            break
    assert terminated.tolist() == [False, True, False]
    assert "too fast" in infos["error"][1]
    assert np.isfinite(observations).all()
    several.step(actions)
    assert several._episodes.k[1] == 0


BAD_CALLS = {
    "step before reset": (lambda made: made.step([0.0, 0.0]), "step: the episode has ended or has not begun"),
    "shape": (lambda made: (made.reset(), made.step([0.0])), r"action: expected shape \(..., 2\), got \(1,\)"),
    "batch": (lambda made: (made.reset(), made.step(np.zeros((1, 2)))), r"action: expected shape \(2,\)"),
    "nan": (lambda made: (made.reset(), made.step([np.nan, 0.0])), "action: expected finite numbers, got nan"),
    "options": (lambda made: made.reset(options={"q": 0}), "options: expected a mapping with the keys q0, v0"),
    "q0": (lambda made: made.reset(options={"q0": [0.0]}), "q0: expected shape"),
    "seed": (lambda made: made.reset(seed="x"), "seed: expected None or a whole number from 0, got 'x'"),
    "run": (lambda made: (made.reset(), made.run()), "run: expected an episode with at least one step"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls(name):
    call, message = BAD_CALLS[name]
    with pytest.raises(ArgumentError, match=message):
        call(env())


def test_bad_calls_of_vectorised_environments():
    result = env(num_envs=3)
    with pytest.raises(ArgumentError, match=r"seed: expected an integer or 3 of them, got \[1, 2\]"):
        result.reset(seed=[1, 2])
    result.reset(seed=[1, 2, None])
    result.step(np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="index: expected a whole number from 0 to 2, got 3"):
        result.run(3)


def test_a_step_after_the_end_is_refused():
    result = env(t_end=CONTROL_DT)
    result.reset()
    assert result.step([0.0, 0.0])[3]
    with pytest.raises(ArgumentError, match="call reset"):
        result.step([0.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"t_end": 0.0123}, "t_end: expected a multiple of"),
        ({"options": EnvironmentOptions()}, "torque_limit: expected EnvironmentOptions"),
        ({"options": EnvironmentOptions(torque_limit=[1.0, 1.0, 1.0])}, "torque_limit: expected a number or 2"),
        ({"render_mode": "ansi"}, "render_mode: expected one of rgb_array, human"),
        ({"num_envs": 0}, "num_envs: expected a whole number from 1"),
        ({"num_envs": 2, "render_mode": "human"}, "render_mode: expected None with num_envs"),
        (
            {"plant": gc.Plant(TWO_LINK, sensors=gc.sensors.Encoder(dt=2e-3))},
            "control_dt: expected a multiple of 0.002",
        ),
        ({"reference": lambda t: 0}, "reference: expected Desired"),
        ({"start": lambda: 0}, "start: expected a function of a numpy.random.Generator"),
        ({"controller": 3}, "controller: expected a geomctrl.Controller"),
        ({"start": 3}, "start: expected a function"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        env(**arguments).reset()


@pytest.mark.parametrize("version", ["0.29.1", "2.0.0"])
def test_other_versions_are_refused_with_those_that_work(version, monkeypatch):
    monkeypatch.setattr(gymnasium, "__version__", version)
    with pytest.raises(GeomctrlError, match=rf"gymnasium 1.1 or newer.*got {version}"):
        env()


def test_a_law_that_can_not_be_compiled_runs_in_python():
    def law(t, q, v, z):
        return gc.Command(np.array([float(str(q[0])), 0.0]))

    result = env(controller=law)
    with pytest.warns(RuntimeWarning, match="these episodes run in Python"):
        result.reset()
    assert result._episodes.lanes == [None]
    result.step([0.0, 0.0])
    forced = EnvironmentOptions(torque_limit=1.0, simulation=COMPILED)
    with pytest.raises(gc.GeomctrlError):
        env(controller=law, options=forced).reset()
