"""LQR with gravity feedforward on the Panda: linearise, design with python-control, run on the nonlinear robot.

Problem: hold the Panda at a configuration q_d against gravity, and return to it from nearby. About (q_d, 0) with the
torques g(q_d) that hold it there, x = (q - q_d, v) obeys x' = A x + B u + O(|x|^2); the feedback u = -K x that
minimises the integral of x . Q x + u . R u gives

    tau = g(q_d) - K (q - q_d, v).

Result: the closed loop's poles, and the same response three times: of the linear system, by
`control.input_output_response` and by `geomctrl.simulate`. The differences shrink with the size of the push.

    python experiments/studies/lqr_panda.py
"""

from __future__ import annotations

import control
import numpy as np

import geomctrl as gc
from geomctrl import interop, models

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad


class LQR:
    """tau = g(q_d) - K (log(q_d^-1 q), v): a controller for `gc.simulate`."""

    def __init__(self, robot: gc.Robot, q_d: np.ndarray, K: np.ndarray):
        self.robot, self.q_d, self.K = robot, q_d, K
        self.reference = gc.references.hold(robot, q_d)
        self.feedforward = robot.gravity_force(q_d)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        x = np.concatenate((self.robot.difference(self.q_d, q), v))
        return gc.Command(self.feedforward - self.K @ x)


def design(robot: gc.Robot, q_d: np.ndarray, position=100.0, velocity=1.0, effort=1e-2):
    """(system, K, poles) of the LQR with weights position [1/rad^2], velocity [s^2/rad^2], effort [s^4/rad^2].

    Effort is weighted as the acceleration M^-1 u that it causes: in newton metres the poles of the light wrist would be
    in the thousands, and the shoulder would have none.
    """
    system = interop.state_space(robot, q_d, np.zeros(robot.nv), robot.gravity_force(q_d))
    Q = np.diag([position] * robot.nv + [velocity] * robot.nv)
    inverse = robot.mass_matrix_inverse(q_d)
    K, _, poles = control.lqr(system, Q, effort * (inverse @ inverse.T))
    return system, K, poles


def responses(robot: gc.Robot, q_d: np.ndarray, K: np.ndarray, system, x0: np.ndarray, t_end: float, dt: float):
    """States (samples, 2 nv) about q_d: linear, by python-control's solver, by `gc.simulate`; and the run."""
    n, t = robot.nv, np.linspace(0.0, t_end, round(t_end / dt) + 1)
    closed = control.ss(system.A - system.B @ K, system.B, np.eye(2 * n), 0)
    linear = control.initial_response(closed, t, x0).states.T

    plant = interop.nonlinear_system(robot, q_d, name="plant")
    states, inputs = plant.state_labels, plant.input_labels
    feedforward = robot.gravity_force(q_d)
    law = control.NonlinearIOSystem(
        None, lambda t, x, u, params: feedforward - K @ u, inputs=states, outputs=inputs, name="lqr"
    )
    loop = control.interconnect([plant, law], inplist=[], outlist=states, check_unused=False)
    solved = control.input_output_response(loop, t, 0.0, x0, solve_ivp_kwargs={"rtol": 1e-9, "atol": 1e-12}).states.T

    q0, v0 = robot.integrate(q_d, x0[: robot.nv]), x0[robot.nv :]
    run = gc.simulate(robot, LQR(robot, q_d, K), q0, v0, t_end, dt, monitors="default")
    return linear, solved, interop.to_state(robot, run.q, run.v, q_d), run


def main() -> None:
    robot = models.panda()
    system, K, poles = design(robot, HOME)
    print("open-loop poles [1/s]:  ", np.array2string(np.sort_complex(system.poles()), precision=3))
    print("closed-loop poles [1/s]:", np.array2string(np.sort_complex(poles), precision=3))
    print("\n  push [rad]   simulate - python-control   simulate - linear   relative")
    for push in (0.3, 0.1, 0.03, 0.01):
        x0 = np.concatenate((push * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]), np.zeros(robot.nv)))
        linear, solved, simulated, run = responses(robot, HOME, K, system, x0, 2.0, 2e-3)
        off = np.abs(simulated - linear).max()
        print(f"  {push:8g}   {np.abs(simulated - solved).max():24.1e}   {off:17.1e}   {off / push:8.1e}")
    print(f"\n{run.summary()}")


if __name__ == "__main__":
    main()
