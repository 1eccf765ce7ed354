"""The classes that `gymnasium_env` returns: `Environment` and `VectorEnvironment`, which share a `Task`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector.utils import batch_space

from geomctrl.arguments import accepts, checked, count, function, listed, number, one_state, shown
from geomctrl.control.closed_loop import hold_count
from geomctrl.control.compiled.law import copy_of
from geomctrl.control.contracts import Desired, require_controller, require_reference
from geomctrl.control.plant import Plant, plant_of
from geomctrl.control.run import Run
from geomctrl.control.sensing import checked_sensors, with_noise
from geomctrl.control.stepping import Episodes, Start, Zero
from geomctrl.control.tracking import tracking_error
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import joint_coordinates
from geomctrl.mechanism.states import one_configuration

from .environments import Transition, largest_torque, tracking_reward

STARTS = "q0", "v0", "plant", "reference", "controller"


class Task:
    """What all episodes have in common: plant, reference, spaces, and the checked arguments of `gymnasium_env`."""

    def __init__(
        self,
        plant: Any,
        reference: Any,
        t_end: Any,
        dt: Any,
        control_dt: Any,
        controller: Any,
        start: Any,
        options: Any,
    ):
        self.plant, self.options = plant_of("plant", plant), options
        self.dt, self.control_dt = (
            number(name, x, "a positive number", lambda x: x > 0.0)
            for name, x in (("dt", dt), ("control_dt", control_dt))
        )
        hold_count(control_dt, dt)
        self.t_end = number("t_end", t_end, "a positive number", lambda x: x > 0.0)
        self.steps = hold_count(t_end, control_dt, "t_end") if self.t_end >= self.control_dt else 0
        if not self.steps:
            raise ArgumentError(f"t_end: expected a multiple of control_dt = {self.control_dt:g} s, got {shown(t_end)}")
        self.reference = require_reference(reference, self.plant.robot)
        self.controller = controller
        if controller is not None:
            require_controller(controller)
        self.start = None if start is None else function("start", start, "of a numpy.random.Generator", 1)
        if start is not None and not accepts(start, 1):
            raise ArgumentError(f"start: expected a function of a numpy.random.Generator, got {shown(start)}")
        self.reward = tracking_reward if options.reward is None else options.reward
        self.limit = largest_torque(self.plant, options)
        if options.safety is not None:
            if controller is not None:
                raise ArgumentError("controller: expected None with `safety`, whose law computes the torque")
            options.safety.require_cover(self.plant, self.control_dt, self.limit)
        self._tables: tuple[Any, Any] = (None, None)
        self.measured: dict[str, slice] = {}  # positions of the outputs of sensors
        self._spaces()

    def _spaces(self) -> None:
        robot, inputs = self.plant.robot, self.plant.inputs
        limit = np.ones(inputs) if self.options.normalized else self.limit
        self.action_space = gymnasium.spaces.Box(-limit, limit, dtype=np.float64)
        angles, names = [], []
        for joint, q_at, v_at in joint_coordinates(robot):
            name, k = robot.dof_names[v_at.start], q_at.start
            free = joint.dof == 1 and not np.isfinite([*robot.limits.lower[v_at], *robot.limits.upper[v_at]]).any()
            if free and joint.is_rotational.all():
                angles.append(k)
                names += [f"cos {name}", f"sin {name}"]
            else:
                width = q_at.stop - k
                names += [f"q {name}"] if width == 1 else [f"q {joint.name}[{i}]" for i in range(width)]
        self.observation_names = names + [
            f"{x} {name}" for x in ("v", "error", "error_rate") for name in robot.dof_names
        ]
        start = 0
        for name, shape in _outputs(self.plant).items():
            size = math.prod(shape)
            self.measured[name] = slice(start, start + size)
            start += size
            if name not in ("q", "v"):
                self.observation_names += [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
        order, first = [], robot.nq  # of (q with sines instead of angles, cosines)
        for k in range(robot.nq):
            order += [first + angles.index(k), k] if k in angles else [k]
        self.angles, self.order = np.array(angles, int), np.array(order, int)
        bound = np.full(len(self.observation_names), np.inf)
        bound[[k for k, name in enumerate(names) if name[:4] in ("cos ", "sin ")]] = 1.0
        self.observation_space = gymnasium.spaces.Box(-bound, bound, dtype=np.float64)

    def episodes(self, count: int) -> Episodes:
        options = self.options
        return Episodes(count, self.dt, self.control_dt, self.steps, options.monitors, options.simulation)

    def torque(self, action: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """(The clipped action, the torque that is added). Raises ArgumentError."""
        a = checked("action", action, shape)
        if a.shape != shape:
            raise ArgumentError(f"action: expected shape {shape}, got {a.shape}")
        a = np.minimum(np.maximum(a, self.action_space.low), self.action_space.high)
        return a, a * self.limit if self.options.normalized else a

    def safe(self, torques: np.ndarray, episodes: Episodes) -> np.ndarray:
        """The torques (episodes, inputs) that the law of `safety` gives for those of the actions."""
        if self.options.safety is None:
            return torques
        return np.array([self.options.safety.command(*x) for x in zip(episodes.q, episodes.v, torques)])

    def begun(self, rng: np.random.Generator, replaced: Any, base: Any) -> Start:
        """The beginning of an episode. base: the law of the episode unless `start` returns another."""
        begin = {} if self.start is None else self.start(rng)
        for name, x in (("start", begin), ("options", {} if replaced is None else replaced)):
            if not isinstance(x, Mapping) or not set(x) <= set(STARTS):
                raise ArgumentError(f"{name}: expected a mapping with the keys {', '.join(STARTS)}, got {shown(x)}")
        begin = {**begin, **(replaced or {})}
        plant, reference = (
            plant_of("start: plant", begin.get("plant", self.plant)),
            begin.get("reference", self.reference),
        )
        robot = plant.robot
        if (robot.nq, robot.nv, plant.inputs) != (self.plant.robot.nq, self.plant.robot.nv, self.plant.inputs):
            raise ArgumentError("start: expected a plant with the joints and inputs of the argument `plant`")
        if _outputs(plant) != _outputs(self.plant):
            raise ArgumentError("start: expected a plant with sensors that measure what those of `plant` measure")
        if plant.sensors:
            plant = with_noise(plant, rng)
        require_reference(reference, robot, "start: reference")
        q0, v0 = (begin.get(name) for name in ("q0", "v0"))
        if q0 is None or v0 is None:
            desired = Desired(*(x[0] for x in self.table(reference)))
            q0, v0 = desired.q if q0 is None else q0, desired.v if v0 is None else v0
        if begin.get("controller") is not None:
            require_controller(begin["controller"], "start: controller")
            base = begin["controller"]
        q0, v0 = one_configuration(robot, "q0", q0).copy(), one_state("v0", v0, robot.nv).copy()
        if (safety := self.options.safety) is not None:
            if begin.get("controller") is not None:
                raise ArgumentError("start: expected no controller with `safety`, whose law computes the torque")
            if plant is not self.plant:
                safety.require_cover(plant, self.control_dt, self.limit)
            safety.require_safe(plant, q0, v0)
        return Start(plant, base, reference, q0, v0)

    def law(self) -> Any:
        """The base law of an episode: a law of the user is copied, because its attributes may be memory."""
        if self.controller is None:
            return Zero(self.plant.inputs)
        own = type(self.controller).__module__.startswith("geomctrl.")
        return self.controller if own else copy_of(self.controller, self.plant.robot)

    def table(self, reference: Any) -> Desired:
        """The reference at the times of all observations, one row each."""
        if self._tables[0] is not reference:
            rows = [reference(k * self.control_dt) for k in range(self.steps + 1)]
            try:
                columns = [np.array([np.asarray(row[j], float) for row in rows]) for j in range(3)]
                robot = self.plant.robot
                if [x.shape[1:] for x in columns] != [(robot.nq,), (robot.nv,), (robot.nv,)]:
                    raise ValueError
            except (TypeError, ValueError, IndexError):
                raise ArgumentError(f"reference: expected Desired(q, v, a), got {shown(rows[0])}") from None
            self._tables = reference, Desired(*columns)
        return self._tables[1]

    def errors(self, q: np.ndarray, v: np.ndarray, desired: Desired) -> tuple[np.ndarray, np.ndarray]:
        """Errors of configuration and velocity of states with leading axes."""
        robot = self.plant.robot
        if robot.nq == robot.nv:
            return q - desired.q, v - desired.v
        if q.ndim == 1:
            error = tracking_error(robot, q, v, desired)
            return error.e, error.e_rate
        rows = [self.errors(*x[:2], Desired(*x[2:])) for x in zip(q, v, *desired)]
        return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])

    def observation(self, q: np.ndarray, v: np.ndarray, measured: np.ndarray, desired: Desired) -> np.ndarray:
        """Observations of true states; measured (..., m): the outputs of the sensors, which replace q and v."""
        y = {name: measured[..., part] for name, part in self.measured.items()}
        q, v = y.pop("q", q), y.pop("v", v)
        e, e_rate = self.errors(q, v, desired)
        if len(self.angles):
            angles, q = q[..., self.angles], q.copy()
            q[..., self.angles] = np.sin(angles)
            q = np.concatenate((q, np.cos(angles)), axis=-1)[..., self.order]
        return np.concatenate((q, v, e, e_rate, *y.values()), axis=-1)


class Environment(gymnasium.Env):
    """A single environment; see `gymnasium_env`."""

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, task: Task, render_mode: str | None):
        self.task, self.render_mode = task, render_mode
        self.action_space, self.observation_space = task.action_space, task.observation_space
        self.observation_names = task.observation_names
        self.metadata = self.metadata | {"render_fps": max(1, round(1.0 / task.control_dt))}
        self._episodes, self._law, self._ended = task.episodes(1), task.law(), True
        self._table: Any = None
        self._view: Any = None

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode. options: values that replace those of `start`, for example {"q0": q0}."""
        super().reset(seed=_seed(seed))
        begin = self.task.begun(self.np_random, options, self._law)
        self._table = self.task.table(begin.reference)
        self._episodes.begin(0, begin)
        self._ended = False
        if self.render_mode == "human":
            self.render()
        return self._observed()[0], {}

    def _observed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, Desired]:
        episodes, k = self._episodes, int(self._episodes.k[0])
        desired = Desired(*(x[k] for x in self._table))
        q, v = episodes.q[0], episodes.v[0]
        return self.task.observation(q, v, episodes.measured[0], desired), *self.task.errors(q, v, desired), desired

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Hold an action during control_dt: (observation, reward, terminated, truncated, info)."""
        if self._ended:
            raise ArgumentError("step: the episode has ended or has not begun: call reset() first")
        task, episodes = self.task, self._episodes
        action, torque = task.torque(action, (task.plant.inputs,))
        failed = episodes.step(np.ones(1, bool), task.safe(torque[None], episodes))
        observation, e, e_rate, desired = self._observed()
        k, terminated = int(episodes.k[0]), bool(failed)
        x = Transition(
            k * task.control_dt, episodes.q[0].copy(), episodes.v[0].copy(), episodes.tau[0].copy(), action, e, e_rate,
            desired, task.limit,
        )  # fmt: skip
        reward = number("reward", task.reward(x))
        if task.options.terminated is not None:
            terminated = terminated or bool(task.options.terminated(x))
        truncated = k >= task.steps
        info: dict[str, Any] = {"monitors": episodes.worst(0)}
        if failed:
            info["error"] = failed[0]
        if terminated or truncated:
            self._ended = True
            info["verdicts"] = episodes.verdicts(0, confirmed=True)
        if self.render_mode == "human":
            self.render()
        return observation, reward, terminated, truncated, info

    def run(self) -> Run:
        """The episode up to now, repeated by `simulate` with the recorded actions."""
        return self._episodes.run(0)

    def render(self) -> np.ndarray | None:
        """A picture (height, width, 3) for "rgb_array"; "human" updates the page in the browser."""
        if self.render_mode is None:
            return gymnasium.logger.warn('render: gymnasium_env(..., render_mode="rgb_array") draws pictures')
        if self._table is None:
            raise ArgumentError("render: the first episode has not begun: call reset() first")
        episodes, robot = self._episodes, self.task.plant.robot
        desired = self._table.q[int(episodes.k[0])]
        if self.render_mode == "rgb_array":
            from geomctrl.viewing.drawing import picture

            return picture(robot, np.stack([episodes.q[0], desired]), ["0.85", "tab:green"])
        from geomctrl.viewing.live import LiveView

        if self._view is None:
            self._view = LiveView()
        k = int(episodes.k[0])
        if k == 0 or self._view._scene is None:
            self._view._begin(robot, episodes.q[0], ghost=True)
        t = k * self.task.control_dt
        if self._view._due(t, self._ended):
            worst = [f"{name}: {x:.2e}" for name, x in episodes.worst(0).items()]
            self._view._show(t, episodes.q[0], desired, {}, worst)
        return None

    def close(self) -> None:
        """Close the page in the browser."""
        if self._view is not None:
            self._view.close()
            self._view = None


class VectorEnvironment(gymnasium.vector.VectorEnv):
    """Many episodes side by side in the lanes of compiled loops; see `gymnasium_env`."""

    def __init__(self, task: Task, num_envs: int):
        self.task, self.num_envs, self.observation_names = task, num_envs, task.observation_names
        self.metadata = {"render_modes": [], "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}
        self.single_action_space, self.single_observation_space = task.action_space, task.observation_space
        self.action_space, self.observation_space = (
            batch_space(space, num_envs) for space in (task.action_space, task.observation_space)
        )
        self._episodes, self._laws = task.episodes(num_envs), [task.law() for _ in range(num_envs)]
        self._tables: list[Any] = [None] * num_envs
        self._generators: list[Any] = [None] * num_envs
        self._ended = np.zeros(num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin all episodes, with the seeds seed, seed + 1, ... or a list of seeds."""
        n = self.num_envs
        if seed is None or isinstance(seed, (int, np.integer)):
            seed = _seed(seed)
            super().reset(seed=seed)
            seeds = [None if seed is None else seed + k for k in range(n)]
        else:
            seeds = [_seed(x) for x in listed("seed", seed, f"an integer or {n} of them")]
        if len(seeds) != n:
            raise ArgumentError(f"seed: expected an integer or {n} of them, got {shown(seed)}")
        for k in range(n):
            if seeds[k] is not None or self._generators[k] is None:
                self._generators[k] = seeding.np_random(seeds[k])[0]
            self._begin(k, options)
        self._ended[:] = False
        return self._observed()[0], {}

    def _begin(self, k: int, options: Any = None) -> None:
        begin = self.task.begun(self._generators[k], options, self._laws[k])
        self._tables[k] = self.task.table(begin.reference)
        self._episodes.begin(k, begin)

    def _observed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, Desired]:
        episodes, tables = self._episodes, self._tables
        if all(table is tables[0] for table in tables):
            desired = Desired(*(x[episodes.k] for x in tables[0]))
        else:
            rows = [[x[k] for x in table] for table, k in zip(tables, episodes.k)]
            desired = Desired(*(np.array([row[j] for row in rows]) for j in range(3)))
        q, v = episodes.q, episodes.v
        return self.task.observation(q, v, episodes.measured, desired), *self.task.errors(q, v, desired), desired

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Hold an action of each episode during control_dt. Episodes that have ended begin again instead."""
        task, episodes, n = self.task, self._episodes, self.num_envs
        if self._tables[0] is None:
            raise ArgumentError("step: the first episodes have not begun: call reset() first")
        actions, torques = task.torque(actions, (n, task.plant.inputs))
        begins = self._ended.copy()
        failed = episodes.step(~begins, task.safe(torques, episodes))
        for k in np.flatnonzero(begins).tolist():
            self._begin(k)
        observation, e, e_rate, desired = self._observed()
        x = Transition(
            episodes.k * task.control_dt, episodes.q.copy(), episodes.v.copy(), episodes.tau.copy(), actions, e, e_rate,
            desired, np.broadcast_to(task.limit, torques.shape),
        )  # fmt: skip
        rewards = np.where(begins, 0.0, _rows("reward", task.reward(x), n))
        terminated = np.zeros(n, bool) if task.options.terminated is None else _rows(
            "terminated", task.options.terminated(x), n
        ).astype(bool)  # fmt: skip
        terminated[list(failed)] = True
        terminated &= ~begins
        truncated = (episodes.k >= task.steps) & ~begins
        self._ended = terminated | truncated
        return observation, rewards, terminated, truncated, self._info(begins, failed)

    def _info(self, begins: np.ndarray, failed: Mapping[int, str]) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        names, worst = self._episodes.worst_of_all()
        if names:
            infos["monitors"] = dict(zip(names, worst.T.copy()))
            infos["monitors"] |= {f"_{name}": ~begins for name in names}
            infos["_monitors"] = ~begins
        for k, reason in failed.items():
            infos = self._add_info(infos, {"error": reason}, k)
        for k in np.flatnonzero(self._ended).tolist():
            infos = self._add_info(infos, {"verdicts": self._episodes.verdicts(k, confirmed=False)}, k)
        return infos

    def run(self, index: int) -> Run:
        """Episode `index` up to now, repeated by `simulate` with the recorded actions."""
        return self._episodes.run(count("index", index, 0, self.num_envs - 1))


def _outputs(plant: Plant) -> dict[str, tuple[int, ...]]:
    """What the sensors measure, in order: names and shapes."""
    return {name: shape for sensor in checked_sensors(plant) for name, shape in sensor.outputs(plant.robot).items()}


def _seed(seed: Any) -> int | None:
    return None if seed is None else count("seed", seed, 0, 2**63, "None or a whole number from 0")


def _rows(name: str, x: Any, n: int) -> np.ndarray:
    x = np.asarray(x)
    if x.shape != (n,):
        raise ArgumentError(f"{name}: expected one value for each of {n} episodes, got shape {x.shape}")
    return x
