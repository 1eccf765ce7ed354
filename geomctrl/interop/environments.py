"""`gymnasium_env`: closed loops as environments of Gymnasium, for learning libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, flag, function, instance, optional_package, shown
from geomctrl.control.contracts import Controller, Desired, Reference
from geomctrl.control.monitors import Monitor
from geomctrl.control.monitors.chosen import monitor_list
from geomctrl.control.options import ONLY_LOOPS, SimulationOptions
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.other_names import OF_OPTIONS, named_arguments
from geomctrl.robot import Robot

if TYPE_CHECKING:
    import gymnasium

OLDEST, UNTESTED_MAJOR = "1.1", 2  # of gymnasium
RENDER_MODES = "rgb_array", "human"
RATE_WEIGHT, TORQUE_WEIGHT = 0.1, 1e-3  # s^2; of the default reward


class Transition(NamedTuple):
    """The arguments of rewards and terminations: the state after a step, and what was done during it.

    In a vectorised environment each field has a leading axis, one row for each episode.
    """

    t: Any  # s
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray  # command of the last step [N m, N], the controller's included
    action: np.ndarray
    error: np.ndarray  # log(q_d^-1 q), q - q_d for joints with one degree of freedom [rad, m]
    error_rate: np.ndarray
    desired: Desired
    torque_limit: np.ndarray


def tracking_reward(x: Transition) -> Any:
    """The default reward: -(|error|^2 + 0.1 |error_rate|^2 + 0.001 |tau / torque_limit|^2)."""
    share = np.divide(x.tau, x.torque_limit)
    squares = [(e * e).sum(axis=-1) for e in (x.error, x.error_rate, share)]
    return -(squares[0] + RATE_WEIGHT * squares[1] + TORQUE_WEIGHT * squares[2])


@named_arguments(OF_OPTIONS)
@dataclass(frozen=True, eq=False)
class EnvironmentOptions:
    """Options of `gymnasium_env`.

    Parameters
    ----------
    reward : function of a transition, optional
        The reward of a step. Its argument has the fields t, q, v, tau, action, error, error_rate, desired and
        torque_limit, at the end of the step. With `num_envs` each field has a leading axis, and so has the result.
        Default: -(\\|error\\|^2 + 0.1 \\|error_rate\\|^2 + 0.001 \\|tau / torque_limit\\|^2).
    terminated : function of a transition, optional
        Whether an episode ends. Default: only a state that can not be integrated ends it.
    torque_limit : float or array (inputs,), optional
        The largest torque of an action [N m, N]. Default: the effort limits of the robot.
    normalized : bool
        True (default): actions are in [-1, 1] and are multiplied by `torque_limit`. False: they are torques. Actions
        outside the space are clipped.
    safety : BarrierCertificate, optional
        A certificate of `testing.certify_barrier` with the `control_dt` of the environment, proved and `invariant`. An
        action is the input z of its law, which computes the torque. Plants must have parameters of the certificate, and
        episodes must begin in its set, which they then never leave.
    monitors : "default", iterable of Monitor or None
        As for `simulate`; default "default". None is fastest.
    simulation : SimulationOptions
        Integration method and compilation; `every` and `strict` are not used, and the device must be "cpu".

    Raises
    ------
    ArgumentError
        If an argument is invalid.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.interop.EnvironmentOptions(torque_limit=5.0, monitors=None).normalized
    True
    """

    reward: Callable[[Any], Any] | None = None
    terminated: Callable[[Any], Any] | None = None
    torque_limit: ArrayLike | None = None
    normalized: bool = True
    safety: Any = None
    monitors: str | Iterable[Monitor] | None = "default"
    simulation: SimulationOptions = SimulationOptions()

    def __post_init__(self):
        for name in ("reward", "terminated"):
            if getattr(self, name) is not None:
                function(name, getattr(self, name), "of a transition, or None")
        if self.torque_limit is not None:
            limit = checked("torque_limit", self.torque_limit, ())
            if limit.ndim > 1 or not limit.size or not (limit > 0.0).all():
                raise ArgumentError(f"torque_limit: expected positive numbers, got {shown(self.torque_limit)}")
        flag("normalized", self.normalized)
        if self.safety is not None and not callable(getattr(self.safety, "require_cover", None)):
            raise ArgumentError(f"safety: expected a BarrierCertificate, got {shown(self.safety)}")
        object.__setattr__(self, "monitors", tuple(monitor_list(self.monitors)))
        if instance("simulation", self.simulation, SimulationOptions, "gc.SimulationOptions").gpu is not None:
            raise ArgumentError(f"simulation: expected device='cpu', {ONLY_LOOPS}, got {self.simulation.device!r}")


def largest_torque(plant: Plant, options: EnvironmentOptions) -> np.ndarray:
    """The largest torque (inputs,) of an action."""
    if options.torque_limit is not None:
        limit = np.asarray(options.torque_limit, float)
        if limit.shape not in ((), (plant.inputs,)):
            raise ArgumentError(f"torque_limit: expected a number or {plant.inputs} of them, got shape {limit.shape}")
        return np.broadcast_to(limit, (plant.inputs,)).copy()
    limit = plant.robot.limits.effort
    if len(limit) != plant.inputs or not np.isfinite(limit).all():
        raise ArgumentError(
            f"torque_limit: expected EnvironmentOptions(torque_limit=...), as {plant.robot.name!r} has no effort limit"
            " for each input"
        )
    return np.array(limit)


@named_arguments()
def gymnasium_env(
    plant: Plant | Robot,
    reference: Reference,
    t_end: float,
    dt: float,
    control_dt: float,
    controller: Controller | None = None,
    start: Callable[[np.random.Generator], Mapping[str, Any]] | None = None,
    num_envs: int | None = None,
    options: EnvironmentOptions = EnvironmentOptions(),
    render_mode: str | None = None,
) -> gymnasium.Env | gymnasium.vector.VectorEnv:
    """Return a plant that is to follow a reference as an environment of Gymnasium, single or vectorised.

    This needs the package `gymnasium` (pip install 'geomctrl[gymnasium]').

    Parameters
    ----------
    plant : Plant or Robot
        The true robot with its friction, actuators, sensors and external forces.
    reference : Reference
        The motion to follow, for example `references.hold(robot, q)`.
    t_end : float
        Duration after which an episode is truncated [s], a multiple of control_dt.
    dt, control_dt : float
        Step of the integrator, and time during which an action is held [s], a multiple of dt.
    controller : Controller, optional
        A law to whose torque the action is added (residual learning). Default: the action is the whole torque.
    start : function of a numpy.random.Generator, optional
        Returns how an episode begins, as a mapping with any of the keys "q0", "v0", "plant", "reference" and
        "controller"; the other values are those of the arguments. Default: on the reference at t = 0.
    num_envs : int, optional
        The number of episodes of a vectorised environment. Default: a single environment.
    options : EnvironmentOptions
        Reward, termination, scaling of actions, monitors, integrator.
    render_mode : "rgb_array", "human" or None
        Pictures as arrays (height, width, 3), or a page in a browser (extra `view`). Single environments only.

    Returns
    -------
    gymnasium.Env or gymnasium.vector.VectorEnv

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    GeomctrlError
        If the package is missing or has another version.
    UntraceableError
        With `compiled=True` in `options.simulation`, if the loop can not be traced.

    Notes
    -----
    A step is that of `simulate` with `control_dt`: the command is computed from the action once and is then held.

    An observation contains, in this order, the configuration, the velocity v (nv,), and the errors of configuration
    and velocity (nv,) each. A rotation by one angle without position limits is (cos q, sin q); other joints have their
    coordinates in q. The attribute `observation_names` lists the entries. If the plant has sensors, an observation has
    measured values instead of true ones, as a controller receives them, and ends with the other outputs of the sensors;
    rewards, terminations and monitors are computed from the true state. Periods of sensors divide `control_dt`.

    `info["monitors"]` has the worst value of each monitor so far, by name. At the end of an episode,
    `info["verdicts"]` has their verdicts. A single environment confirms values beyond a limit by repeating the episode
    with `simulate`; a vectorised one calls them UNRESOLVED. The method `run()` (`run(index)`) of the unwrapped
    environment repeats the episode up to now and returns its `Run`. A state that can not be integrated ends the
    episode, and `info["error"]` has the reason.

    `reset(seed=...)` determines an episode: it seeds the generator that `start` receives, and the noise of sensors. The
    attribute `seed` of a sensor is not used. Episode k of a vectorised
    environment has the seed seed + k. It resets an episode in the step after its end
    (`AutoresetMode.NEXT_STEP`). `reset(options={"q0": ..., "v0": ...})` replaces values of `start`.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> options = gc.interop.EnvironmentOptions(torque_limit=10.0)
    >>> goal = gc.references.hold(robot, [0.5, 0.2])
    >>> env = gc.interop.gymnasium_env(robot, goal, 1.0, 1e-3, 0.01, options=options)  # doctest: +SKIP
    """
    instance("options", options, EnvironmentOptions, "gc.interop.EnvironmentOptions")
    if num_envs is not None:
        num_envs = count("num_envs", num_envs, 1)
        if render_mode is not None:
            raise ArgumentError(f"render_mode: expected None with num_envs, got {shown(render_mode)}")
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ArgumentError(f"render_mode: expected one of {', '.join(RENDER_MODES)} or None, got {shown(render_mode)}")
    version = optional_package("gymnasium_env", "gymnasium", "gymnasium", OLDEST).__version__
    if int(re.split(r"\D", version)[0]) >= UNTESTED_MAJOR:
        raise GeomctrlError(f"gymnasium_env needs gymnasium {OLDEST} or newer, below {UNTESTED_MAJOR}, got {version}")
    classes = import_module("geomctrl.interop.gymnasium_environments")
    task = classes.Task(plant, reference, t_end, dt, control_dt, controller, start, options)
    return classes.Environment(task, render_mode) if num_envs is None else classes.VectorEnvironment(task, num_envs)
