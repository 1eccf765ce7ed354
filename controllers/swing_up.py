"""Swing-up of cart-poles, pendubots and acrobots by energy control, with an LQR near the upright position."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance, number, shown
from geomctrl.control.contracts import Command, Lyapunov
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.controllers.lqr import LQR, selection
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import one_configuration
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar

ANGLES_PER_TURN = 48  # angles per turn at which the condition on the gains is evaluated


class SwingUp(ModelBased):
    """Swing-up by energy: u = (kE E + kD P)^-1 (kD d - kP e_a - kv v_a) at the driven joints a, then `catch`.

    Parameters
    ----------
    robot : Robot
        The model, with revolute and prismatic joints, all but one of them driven.
    q_d : array (nq,)
        The upright configuration.
    actuated : sequence of int
        Velocity coordinates of the driven joints.
    kE : float
        Energy gain.
    kD : float, optional
        Gain of the driven velocities; default 1.5 times its lower limit.
    kP, kv : float, optional
        Gains of the driven joints; default kD w^2 and 0.1 kD w. w is 0.65 times the frequency at which the other joint
        swings about the hanging position while the driven ones are held.
    catch : LQR, optional
        The law near q_d; default an `LQR` with its own defaults.

    Raises
    ------
    ArgumentError
        For other robots, gains that are not positive, and a kD below its limit.

    Notes
    -----
    (Fantoni, Lozano, Spong 2000 for the pendubot; Lozano, Fantoni, Block 2000 for cart and pole.) E is the energy
    relative to rest at q_d, P = (M^-1)_aa, d = (M^-1 (C v + g))_a, e_a = q_a - q_d,a. Because E' = v_a u,

    V = kE/2 E^2 + kD/2 |v_a|^2 + kP/2 |e_a|^2,   V' = -kv |v_a|^2.

    V is zero on an orbit: E = 0 with the driven joints at rest at q_d, along which the pole passes the upright
    position. LaSalle's theorem guarantees convergence to that orbit, or to a rest with V > 0 such as hanging, where the
    law can not start. It does not guarantee that the pole stays upright. An initial V below kE/2 E^2 of hanging
    excludes that rest. Near the upright position the orbit enters the region of `catch`, which is invariant. `lyapunov`
    is that of `catch` inside and level + V outside, so that it also decreases at the switch. The law has no memory;
    signals: "E", and "caught", 0 or 1.

    The matrix is invertible everywhere if kD > kE max (E* - U(q)) / lambda_min(P(q)), with the potential energy U and
    E* = U(q_d). The maximum is computed on a grid of all angles. With the defaults the bundled cart-pole swings up in
    13 s. A pendubot needs a kv ten times as large. An acrobot needs its own gains and a long time, because the region
    of its LQR is small.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.cart_pole()
    >>> law = gc.controllers.SwingUp(robot, [0.0, 0.0], actuated=[0])
    >>> hanging = np.array([0.0, np.pi - 0.1])
    >>> float(law(0.0, hanging, np.zeros(2), None).signals["caught"])
    0.0
    """

    def __init__(
        self,
        robot: Robot,
        q_d: ArrayLike,
        actuated: Sequence[int],
        kE: float = 1.0,
        kD: float | None = None,
        kP: float | None = None,
        kv: float | None = None,
        catch: LQR | None = None,
    ):
        instance("robot", robot, Robot, "a geomctrl.Robot")
        if any(j.kind not in ("revolute", "prismatic") for j in robot.joints):
            raise ArgumentError(f"robot: expected revolute and prismatic joints, got {[j.kind for j in robot.joints]}")
        q_d = one_configuration(robot, "q_d", q_d)
        self.B = selection(robot, actuated)
        if self.B.shape[1] != robot.nv - 1:
            raise ArgumentError(f"actuated: expected all joints but one of {robot.nv}, got {shown(actuated)}")
        self.catch = LQR(robot, q_d, actuated=actuated) if catch is None else instance("catch", catch, LQR, "an LQR")
        super().__init__(robot, self.catch.reference)
        self.q_d = self.catch.q_d
        if not (np.array_equal(self.q_d, q_d) and np.array_equal(self.catch.B, self.B)):
            raise ArgumentError("catch: expected an LQR about the same q_d that drives the same joints")
        self.top = float(robot.potential_energy(self.q_d))
        self.kE = _positive("kE", kE)
        least = self.kE * self._least_ratio()
        self.kD = number("kD", 1.5 * least if kD is None else kD, f"a number above {least:.6g}", lambda x: x > least)
        w = 0.65 * self._frequency()
        self.kP = _positive("kP", self.kD * w**2 if kP is None else kP)
        self.kv = _positive("kv", 0.1 * self.kD * w if kv is None else kv)

    def __call__(self, t, q, v, z):
        caught = self.catch.in_domain(t, q, v)
        held = self.catch(t, q, v, z)
        tau = np.where(caught, held.tau, self._pumping(q, v))
        signals = {"e": held.signals["e"], "E": self._energy(self.robot, q, v), "caught": np.where(caught, 1.0, 0.0)}
        return Command(tau, None, signals)

    def _pumping(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Torques (nv,) of the swing-up law."""
        B, robot = self.B, self.robot
        P = B.T @ robot.mass_matrix_inverse(q) @ B
        d = -B.T @ robot.forward_dynamics(q, v, np.zeros(robot.nv))
        e_a, v_a = B.T @ (q - self.q_d), B.T @ v
        shaped = self.kE * self._energy(robot, q, v) * np.eye(len(e_a)) + self.kD * P
        return B @ np.linalg.solve(shaped, self.kD * d - self.kP * e_a - self.kv * v_a)

    def _energy_lyapunov(self, q: np.ndarray, v: np.ndarray, robot: Robot) -> Lyapunov:
        """V and V' of the swing-up law, evaluated with the true robot."""
        e_a, v_a = self.B.T @ (q - self.q_d), self.B.T @ v
        V = 0.5 * (self.kE * self._energy(robot, q, v) ** 2 + self.kD * v_a.dot(v_a) + self.kP * e_a.dot(e_a))
        return Lyapunov(scalar(V), -scalar(self.kv * v_a.dot(v_a)))

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        inside, outside = self.catch.lyapunov(t, q, v, z, plant), self._energy_lyapunov(q, v, true_robot(plant))
        caught = self.catch.in_domain(t, q, v)
        value = np.where(caught, inside.value, self.catch.level + outside.value)
        return Lyapunov(scalar(value), scalar(np.where(caught, inside.rate, outside.rate)))

    def _energy(self, robot: Robot, q, v):
        return scalar(robot.energy(q, v)) - self.top

    def _least_ratio(self) -> float:
        """Maximum of (E* - U) / lambda_min(P) over a grid of all angles, with prismatic joints at q_d."""
        robot, q_d = self.robot, self.q_d
        turn = np.linspace(-np.pi, np.pi, ANGLES_PER_TURN, endpoint=False)
        axes = [x + turn if j.kind == "revolute" else [x] for j, x in zip(robot.joints, q_d)]
        q = np.array(list(itertools.product(*axes)))
        P = self.B.T @ robot.mass_matrix_inverse(q) @ self.B
        return float(((self.top - robot.potential_energy(q)) / np.linalg.eigvalsh(P)[:, 0]).max())

    def _frequency(self) -> float:
        """Frequency of the free joint about the hanging position, with the driven joints held at q_d [rad/s]."""
        robot, passive = self.robot, int(np.argmin(self.B.sum(axis=1)))
        q = np.tile(self.q_d, (720, 1))
        q[:, passive] += np.linspace(-np.pi, np.pi, 720, endpoint=False)
        low = q[np.argmin(robot.potential_energy(q))]
        v = np.zeros(robot.nv)
        slope = robot.inverse_dynamics_derivatives(low, v, v).dq[passive, passive]
        if slope <= 0.0:
            raise ArgumentError(f"actuated: expected a joint that gravity swings, got {robot.joints[passive].name!r}")
        return float(np.sqrt(slope / robot.mass_matrix(low)[passive, passive]))


def _positive(name: str, x: float) -> float:
    return number(name, x, "a positive number", lambda x: x > 0.0)
