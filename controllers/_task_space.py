"""Base classes of controllers in operational space: the task of a frame, its errors and the resulting torques.

One reference in joint space defines both the motion of the frame and the posture. The joints also follow it in the null
space of the task. The null space is dynamically consistent (Khatib 1987): motion in it does not accelerate the task.
With the task acceleration A and the posture acceleration a_0,

    a = a_0 + Jbar (A - Jdot v - J a_0)

is the joint acceleration closest to a_0 in the metric M that achieves A.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import one_state, shown
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.tracking import gain_matrix, joint_forces
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.lie import se3
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class Task(NamedTuple):
    """The task at one state, with m coordinates (6 for a pose).

    E (4, 4) = T_d^-1 T, or the position error e (m,); velocity error W (m,); desired acceleration A_d (m,) in the
    actual frame; Jacobian J (m, nv), its time derivative, and Jdot v (m,)."""

    E: Any
    W: np.ndarray
    A_d: np.ndarray
    J: np.ndarray
    J_rate: np.ndarray
    drift: np.ndarray


class TaskSpace(ModelBased):
    """A controller for the pose of a frame (body-fixed), or with `axes` for its position along world axes."""

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        frame: str,
        axes: str | None = None,
        posture: tuple[ArrayLike, ArrayLike] = (25.0, 10.0),
    ):
        super().__init__(robot, reference)
        if robot.frame(frame).body < 0:
            raise ArgumentError(f"frame: {frame!r} is fixed to the world, so no joint moves it")
        if axes is not None and (not isinstance(axes, str) or axes not in ("x", "y", "z", "xy", "xz", "yz", "xyz")):
            raise ArgumentError(f"axes: expected None or some of 'xyz' in that order, got {shown(axes)}")
        if not isinstance(posture, tuple) or len(posture) != 2:
            raise ArgumentError(f"posture: expected (kp, kd), got {shown(posture)}")
        self.frame, self.axes = frame, axes
        self.rows = None if axes is None else ["xyz".index(x) + 3 for x in axes]
        self.m = 6 if axes is None else len(axes)
        self.posture_kp = gain_matrix("posture", posture[0], robot.nv, definite=False)
        self.posture_kd = gain_matrix("posture", posture[1], robot.nv)
        if self.m > robot.nv:
            raise ArgumentError(f"axes: expected a task of at most {robot.nv} directions on this robot, got {self.m}")

    def _jacobians(self, q, v):
        if self.rows is None:
            return self.robot.jacobian(q, self.frame), self.robot.jacobian_rate(q, v, self.frame)
        J = self.robot.jacobian(q, self.frame, "hybrid")
        return J[self.rows], self.robot.jacobian_rate(q, v, self.frame, "hybrid")[self.rows]

    def _task(self, t: float, q: np.ndarray, v: np.ndarray) -> Task:
        """The `Task` at one state."""
        q, v = one_state("q", q, self.robot.nq), one_state("v", v, self.robot.nv)
        q_d, v_d, a_d = self._desired(t)
        T, T_d = self.robot.pose(q, self.frame), self.robot.pose(q_d, self.frame)
        (J, J_rate), (J_d, J_d_rate) = self._jacobians(q, v), self._jacobians(q_d, v_d)
        V_d, A_d = J_d.dot(v_d), J_d.dot(a_d) + J_d_rate.dot(v_d)
        if self.rows is not None:
            e = T[:3, 3] - T_d[:3, 3]
            return Task(e[[k - 3 for k in self.rows]], J.dot(v) - V_d, A_d, J, J_rate, J_rate.dot(v))
        E = se3.inverse_of(T_d) @ T
        back = se3.Ad_of(se3.inverse_of(E))
        V_d = back.dot(V_d)
        W = J.dot(v) - V_d
        return Task(E, W, back.dot(A_d) - se3.ad(W).dot(V_d), J, J_rate, J_rate.dot(v))

    def _potential(self, E, K):
        """(U, its gradient (m,)) of a spring K (m, m) in log(E), or in a position error e."""
        if self.rows is not None:
            force = K.dot(E)
            return scalar(0.5 * E.dot(force)), force
        e = se3.log(E)
        force = K.dot(e)
        return scalar(0.5 * e.dot(force)), se3.dexp_inv(-e).T.dot(force)

    def _mobility(self, robot: Robot, q, J):
        """(M^-1 J^T, J M^-1 J^T) of a robot (the model, or the plant's)."""
        X = robot.mass_matrix_inverse(q).dot(J.T)
        return X, J.dot(X)

    def _inertia(self, q, G) -> np.ndarray:
        """G^-1; raises ModelError at a singular configuration."""
        try:
            return np.linalg.inv(G)
        except np.linalg.LinAlgError:
            raise ModelError(
                f"q: expected a configuration where the frame can move along all axes of the task, got {q}"
            ) from None

    def _torques(self, t, q, v, task: Task, A, X, inertia) -> np.ndarray:
        """Joint torques for the task acceleration A, with the posture in the null space."""
        error = self.error(t, q, v)
        a_0 = error.a_d - self.posture_kd.dot(error.w)
        a_0 = a_0 - joint_forces(self.robot, error.e, self.posture_kp.dot(error.e))
        return self.robot.inverse_dynamics(q, v, a_0 + X.dot(inertia.dot(A - task.drift - task.J.dot(a_0))))


class TaskImpedance(TaskSpace):
    """A spring and a damper between a frame and its desired pose, with the natural inertia of the robot.

    A subclass defines `_potential`.
    """

    stiffness: np.ndarray
    damping: np.ndarray

    def _task_gain(self, name: str, gain: ArrayLike | None, rate: float) -> np.ndarray:
        """The given gain (m, m), or rate times the diagonal of the task inertia at the start of the reference."""
        if gain is None:
            q = self._desired(0.0).q
            J = self._jacobians(q, np.zeros(self.robot.nv))[0]
            G = self._mobility(self.robot, q, J)[1]
            if not (np.diagonal(G) > 0.0).all():
                raise ArgumentError(
                    f"{name}: there is no default, because the frame can not move along all axes of the task at the"
                    f" start of the reference, q = {q}; pass {name}, or a reference that starts elsewhere"
                )
            gain = rate * np.diagonal(np.linalg.inv(G + 1e-6 * np.diag(np.diagonal(G))))
        return gain_matrix(name, gain, self.m)

    def __call__(self, t, q, v, z):
        task = self._task(t, q, v)
        X, G = self._mobility(self.robot, q, task.J)
        inertia = self._inertia(q, G)
        force = self.damping.dot(task.W) + self._potential(task.E, self.stiffness)[1]
        half = task.J_rate.dot(X) - 0.5 * X.T.dot(self.robot.mass_matrix_rate(q, v)).dot(X)
        G_rate = half + half.T
        A = task.A_d - G.dot(force) + 0.5 * G_rate.dot(inertia.dot(task.W))  # inertia' = -inertia G' inertia
        return Command(self._torques(t, q, v, task, A, X, inertia), None, {"W": task.W, "force": force})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        """V and its rate without external forces."""
        task = self._task(t, q, v)
        _, G = self._mobility(true_robot(plant), q, task.J)
        kinetic = 0.5 * task.W.dot(self._inertia(q, G)).dot(task.W)
        U, _ = self._potential(task.E, self.stiffness)
        return Lyapunov(scalar(kinetic) + U, -scalar(task.W.dot(self.damping).dot(task.W)))
