"""Online identification: recursive least squares for inertial parameters next to any law, from filtered momenta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, generator, number, one_state, shown
from geomctrl.control.contracts import Command, Controller, Lyapunov, started
from geomctrl.control.friction.model import FrictionModel, friction_of_law
from geomctrl.control.plant import Plant
from geomctrl.controllers._adaptive import numbers_of_bodies, squared_units
from geomctrl.controllers._component import goal, rate_of, rest_of, sampled, size_of, wrapped_law
from geomctrl.controllers._filtered_regression import momentum_columns
from geomctrl.controllers._model_based import Law
from geomctrl.controllers._pseudo_inertias import NearestBodies
from geomctrl.errors import ArgumentError
from geomctrl.identification.online.square_root import deviations, forgotten, solved, taken_in
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class Memory(NamedTuple):
    """Stored quantities between samples: filtered regression W (nv, n), y (nv,); regressors G (nv, n) and c (nv,) of
    the momentum at the last sample; R (n, n) upper triangular and d (n,) with R x = d."""

    W: Any
    y: Any
    G: Any
    c: Any
    R: Any
    d: Any


class OnlineIdentification(Law):
    """A law with recursive least squares for the inertial parameters of selected bodies.

    Parameters
    ----------
    law : Controller
        A controller with a model `robot` and a vector state or no state. Its command is passed on, and its torques are
        assumed to act at the joints.
    adapt : sequence of str, optional
        Names of the bodies; default the last one.
    period : float
        Sampling period [s]; use `simulate(..., control_dt=period)`.
    bandwidth : float
        Bandwidth of the filters [1/s].
    memory : float or None
        Time constant of forgetting [s]; None keeps all data.
    deviation : float
        Prior standard deviation of the parameters, in their natural units.
    noise : float or (nv,)
        Standard deviation of the torques [N m, N].
    friction : FrictionModel, optional
        If given, its viscous and Coulomb coefficients are estimated too.
    margin : float
        Smallest eigenvalue of the reported pseudo-inertias, relative to the model's, between 0 and 1.

    Raises
    ------
    ArgumentError
        If `law` can not be wrapped, or if a number has the wrong shape or sign.
    NameNotFoundError
        If the robot has no body of a given name.

    Notes
    -----
    W p = y,  W_k = alpha W_k-1 + (1 - alpha) / T (Y_k - Y_k-1 - T/2 (H_k + H_k-1)),  alpha = exp(-bandwidth T)

    Y and H are the regressors of the momentum M v and of C^T v - g, and y is the commanded torque with the same filter
    minus known terms (see `geomctrl.identification.online.recursive`). No acceleration is needed. Orthogonal
    transformations accumulate the rows, divided by `noise`, in R^T R. Information decays as exp(-t / memory) towards
    the prior, the model's parameters with `deviation`, which bounds the covariance (R^T R)^-1. Signals:

    parameters   (n,) estimate p: ten per body, then viscous and Coulomb coefficients with `friction`
    deviations   (n,) their standard deviations
    bodies       (n,) physically possible parameters closest to p in the metric of the covariance; p itself if possible
    moved        distance from p to `bodies` in standard deviations; 0 if p is physically possible

    The state z is that of the law followed by the memory, which changes at samples only. V is that of the law, because
    the estimates do not affect the command.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> motion = gc.references.Sinusoids(arm, [0.3, 0.5], amplitude=0.4, frequency=0.5)
    >>> law = gc.controllers.OnlineIdentification(gc.controllers.Passivity(arm, motion), period=0.005)
    >>> start = motion(0.0)
    >>> run = gc.simulate(arm.with_payload(0.5), law, start.q, start.v, t_end=0.5, dt=0.005, control_dt=0.005)
    >>> run.signals["parameters"].shape  # of the last body
    (101, 10)
    """

    def __init__(
        self,
        law: Controller,
        adapt: Sequence[str] | None = None,
        *,
        period: float,
        bandwidth: float = 20.0,
        memory: float | None = None,
        deviation: float = 1.0,
        noise: ArrayLike = 1.0,
        friction: FrictionModel | None = None,
        margin: float = 1e-3,
    ):
        self.law = wrapped_law("law", law)
        self.robot: Robot = self.law.robot
        self.period = number("period", period, "seconds > 0", lambda x: x > 0.0)
        bandwidth = number("bandwidth", bandwidth, "a positive number [1/s]", lambda x: x > 0.0)
        self.alpha = float(np.exp(-bandwidth * self.period))
        memory = None if memory is None else number("memory", memory, "seconds > 0, or None", lambda x: x > 0.0)
        self.keep = 1.0 if memory is None else float(np.exp(-self.period / memory))
        self.margin = number("margin", margin, "a number between 0 and 1", lambda x: 0.0 < x < 1.0)
        self.noise = _noise(noise, self.robot.nv)
        deviation = number("deviation", deviation, "a positive number", lambda x: x > 0.0)
        self.friction = friction_of_law(friction, self.robot.nv, linear=True)
        self.size = size_of(self.law)
        bodies = numbers_of_bodies(self.robot, self.robot.body_names[-1:] if adapt is None else adapt)
        self.columns = np.concatenate([np.arange(10 * i, 10 * i + 10) for i in bodies])
        own = np.zeros(0) if friction is None else friction.parameters(self.robot.nv)
        self.p0 = np.concatenate((self.robot.parameters.ravel()[self.columns], own))
        units = np.concatenate((squared_units(self.robot)[self.columns], np.ones(len(own))))
        self.unit = deviation * np.sqrt(units)
        self.fixed_parameters = self.robot.parameters.ravel().copy()
        self.fixed_parameters[self.columns] = 0.0
        self.armature = self.robot.armature
        self.nearest = NearestBodies(self.robot, bodies, self.unit, self.margin)
        self.upper = np.triu_indices(len(self.p0))
        goal(self, self.law)

    # --- the state ------------------------------------------------------------------------------------------------

    def start(self, q0: np.ndarray | None = None, v0: np.ndarray | None = None) -> np.ndarray:
        """The law's state, and a memory that contains the prior and the momentum of the robot."""
        robot, n = self.robot, len(self.p0)
        q = robot.neutral() if q0 is None else one_state("q0", q0, robot.nq)
        v = np.zeros(robot.nv) if v0 is None else one_state("v0", v0, robot.nv)
        Y, H, b, h = momentum_columns(self, q, v)
        half = 0.5 * self.period
        begun = Memory(0.0 * Y, 0.0 * b, Y - half * H, b - half * h, np.eye(n), np.zeros(n))
        own = started(self.law, robot, q, v)
        return np.concatenate((np.zeros(0) if own is None else np.asarray(own, float), self._joined(begun)))

    def _joined(self, x: Memory) -> Any:
        return np.concatenate((x.W.ravel(), x.y, x.G.ravel(), x.c, x.R[self.upper], x.d))

    def _split(self, z: Any) -> tuple[Any, Memory]:
        """(the law's state or None, the memory)."""
        n, nv = len(self.p0), self.robot.nv
        sizes = (self.size, n * nv, nv, n * nv, nv, n * (n + 1) // 2, n)
        z = one_state("z", z, sum(sizes))
        ends = np.cumsum(sizes)
        own, W, y, G, c, R, d = (z[end - size : end] for end, size in zip(ends.tolist(), sizes))
        full = [[0.0] * i + [R[self._place(i, j)] for j in range(i, n)] for i in range(n)]
        memory = Memory(W.reshape(nv, n), y, G.reshape(nv, n), c, np.array(full), d)
        return (own if self.size else None), memory

    def _place(self, i: int, j: int) -> int:
        """Index of R[i, j] among the stored upper triangle."""
        n = len(self.p0)
        return i * n - i * (i - 1) // 2 + j - i

    # --- the law, and what is learnt --------------------------------------------------------------------------------

    def _learnt(self, q, v, tau, x: Memory) -> Memory:
        """The memory after a sample with commanded torque tau."""
        Y, H, b, h = momentum_columns(self, q, v)
        half, share = 0.5 * self.period, (1.0 - self.alpha) / self.period
        W = self.alpha * x.W + share * (Y - half * H - x.G)
        y = self.alpha * x.y + share * (x.c - (b - half * h))
        R, d = x.R, x.d
        if self.keep < 1.0:  # replaces forgotten information by that of the prior without changing the estimate
            now = solved(R, d)
            R, d = forgotten(R, d, self.keep)
            floor = np.sqrt(1.0 - self.keep)
            R, d, _ = taken_in(R, d, floor * np.eye(len(d)), floor * now)
        rows = W * (1.0 / self.noise)[:, None]
        R, d, _ = taken_in(R, d, rows * self.unit, y / self.noise - rows.dot(self.p0))
        return Memory(W, y, Y + half * H, self.period * tau + b + half * h, R, d)

    def __call__(self, t, q, v, z):
        own, x = self._split(z)
        command = self.law(t, q, v, own)
        after = self._learnt(q, v, command.tau, x)
        signals = {**command.signals, **self._seen(after)}
        kept = own if own is not None else np.zeros(0)
        z_next = np.concatenate((kept if command.z_next is None else command.z_next, self._joined(after)))
        z_rate = np.concatenate((rate_of(command) if self.size else np.zeros(0), np.zeros(len(z_next) - self.size)))
        if self.size and command.z_rate is None:
            z_rate = np.zeros(len(z_next))
        return Command(command.tau, z_rate, signals, z_next)

    def _seen(self, x: Memory) -> dict[str, Any]:
        """The signals."""
        estimate = solved(x.R, x.d)
        bodies = self.nearest.nearest(x.R, estimate)
        apart = x.R.dot(bodies - estimate)
        return {
            "parameters": self.p0 + self.unit * estimate,
            "deviations": self.unit * deviations(x.R),
            "bodies": self.p0 + self.unit * bodies,
            "moved": scalar(np.sqrt(apart.dot(apart))),
        }

    # --- for tests of the law's proof -------------------------------------------------------------------------------

    def true_parameters(self, plant: Plant) -> np.ndarray:
        """z with V = 0 for a robot at rest."""
        return np.concatenate((rest_of(self.law, plant), self.start()[self.size :]))

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray:
        """A random state of the law, with the initial memory."""
        begun = self.start()
        own = sampled(self.law, generator("rng", rng), plant)
        return begun if own is None else np.concatenate((own, begun[self.size :]))

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        return self.law.lyapunov(t, q, v, self._split(z)[0], plant)


def _noise(noise: ArrayLike, n: int) -> np.ndarray:
    a = checked("noise", noise, ())
    if a.shape not in ((), (n,)) or not (a > 0.0).all():
        raise ArgumentError(f"noise: expected a positive number or ({n},) of them, got {shown(noise)}")
    return np.array(np.broadcast_to(a, n))
