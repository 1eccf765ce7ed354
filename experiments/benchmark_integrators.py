"""What integration costs: compiled steps beside the forward dynamics in them, long runs, memory, and peers.

- One MK4 step of the three spheres and of a floating humanoid against four forward dynamics, both inside the compiled
  code (the strict measure) and as called from Python.
- Ten seconds of the Panda at 1 kHz, alone and in a loop with a controller in Python.
- A million steps of every method: distance from the group, growth of memory.
- The free rigid body against scipy's DOP853 on quaternions and on Euler angles and MuJoCo's RK4: time for the same
  accuracy, and what each keeps.

Peers take turns with us; the best of rounds counts. Figures go to out/.

    python experiments/benchmark_integrators.py [--quick]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import deque
from pathlib import Path

import numpy as np
import scipy.integrate
from benchmark_dynamics import best_of, humanoid
from scipy.spatial.transform import Rotation

import geomctrl as gc
from geomctrl import controllers, models, recursions
from geomctrl.groups import SO3
from geomctrl.integrators import method, methods, steps
from geomctrl.references import Sinusoids
from geomctrl.rollout import rollout

try:
    import mujoco
except ImportError:
    mujoco = None

FIXED = [name for name in methods() if method(name).b_hat is None]


# --- one step against its forward dynamics -----------------------------------------------------------------------


def step_cost(robot: gc.Robot, budget: float) -> None:
    n = 2000
    rng = np.random.default_rng(0)
    q, v, tau = robot.random_configuration(rng), 0.1 * rng.normal(size=robot.nv), np.zeros(robot.nv)
    many = np.tile(q, (n, 1)), np.tile(v, (n, 1)), np.zeros((n, robot.nv)), np.empty((0, 6 * robot.nbodies))
    functions = {
        "kernel": lambda: recursions.forward_dynamics_many(robot._model, *many),
        "python": lambda: robot.forward_dynamics(q, v, tau),
        "MK4": lambda: rollout(robot, q, v, None, n * 1e-5, 1e-5, "MK4", every=n),
    }
    times = best_of(functions, budget)
    step, inside = times["MK4"] / n, times["kernel"] / n
    print(
        f"{robot.name:15s} nv = {robot.nv:2d}: MK4 step {step * 1e6:6.2f} us = {step / inside / 4:.3f} x four forward"
        f" dynamics inside compiled code ({inside * 1e6:.2f} us each), {step / times['python'] / 4:.3f} x from Python"
        f" ({times['python'] * 1e6:.2f})"
    )


def panda_run(budget: float) -> None:
    robot = models.panda()
    q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    tau = robot.gravity_force(q0)
    seconds = best_of({"rollout": lambda: rollout(robot, q0, np.zeros(7), tau, 10.0, 1e-3)}, budget)["rollout"]
    print(f"\nPanda, 10 s at 1 kHz, MK4: alone {seconds * 1e3:.1f} ms, {10 / seconds:.0f} x real time", end="")
    reference = Sinusoids(robot, q0, 0.3 * np.ones(7), np.linspace(0.2, 0.4, 7))
    controller = controllers.ComputedTorque(robot, reference, 100.0, 20.0)
    gc.simulate(robot, controller, q0, reference(0.0).v, 0.01, 1e-3, monitors=None)  # kernels compiled
    start = time.perf_counter()
    gc.simulate(robot, controller, q0, reference(0.0).v, 1.0, 1e-3, monitors=None)
    loop = 10 * (time.perf_counter() - start)
    print(f"; computed torque in Python at every stage {loop:.2f} s, {10 / loop:.1f} x")


# --- a million steps ---------------------------------------------------------------------------------------------


def free_body() -> gc.Robot:
    inertia = gc.inertia.from_com(2.0, np.zeros(3), np.diag([1.0, 2.0, 2.5]))
    return gc.Robot.build([gc.Body("body", None, gc.Joint.free(), None, inertia)], gravity=(0, 0, 0))


def million_steps(n: int) -> None:
    robot, spin = free_body(), np.array([0.3, 2.0, 0.1, 0.0, 0.0, 0.0])
    rollout(robot, robot.neutral(), spin, None, 1.0, 0.01)
    print(f"\n{n} steps of h = 0.01, nothing kept: |R^T R - 1| at the end, memory grown")
    for name in FIXED:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        end = rollout(robot, robot.neutral(), spin, None, n * 0.01, 0.01, name, every=n)
        seconds = time.perf_counter() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        R = end.q[-1].reshape(3, 4)[:, :3]
        print(f"  rollout {name:4s} {np.abs(R.T @ R - np.eye(3)).max():.1e}, {grown} kB, {seconds:.2f} s")
    group, before = SO3(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    tumbling = steps(lambda t, R: R[0] + (t % 1.0), np.eye(3), (0.0, n * 0.01), 0.01, "MK2", group)
    _, R = deque(tumbling, maxlen=1)[0]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    seconds = time.perf_counter() - start
    print(f"  integrators.steps, MK2 on SO(3), a field in Python: {group.residual(R):.1e}, {grown} kB, {seconds:.1f} s")


# --- peers on the free body --------------------------------------------------------------------------------------

MOMENTS = np.array([1.0, 2.0, 2.5])
SPIN, T_END = np.array([0.3, 2.0, 0.1]), 20.0


def euler(w):
    return np.array([(2.0 - 2.5) * w[1] * w[2] / 1.0, (2.5 - 1.0) * w[2] * w[0] / 2.0, (1.0 - 2.0) * w[0] * w[1] / 2.5])


def quaternion_field(t, y):
    x, yq, z, s = y[:4]
    w = y[4:]
    rate = 0.5 * np.array(
        [s * w[0] + yq * w[2] - z * w[1], s * w[1] + z * w[0] - x * w[2], s * w[2] + x * w[1] - yq * w[0],
         -x * w[0] - yq * w[1] - z * w[2]]
    )  # fmt: skip
    return np.concatenate((rate, euler(w)))


def angles_field(t, y):
    """Intrinsic z-y-x angles, singular at a pitch of 90 degrees."""
    pitch, roll = y[1], y[2]
    w = y[3:]
    turning = np.sin(roll) * w[1] + np.cos(roll) * w[2]
    yaw_rate = turning / np.cos(pitch)
    pitch_rate = np.cos(roll) * w[1] - np.sin(roll) * w[2]
    return np.concatenate(([yaw_rate, pitch_rate, w[0] + np.sin(pitch) * yaw_rate], euler(w)))


def scipy_run(field, y0, tolerance):
    return scipy.integrate.solve_ivp(field, (0.0, T_END), y0, method="DOP853", rtol=tolerance, atol=tolerance).y[:, -1]


def of_quaternion(tolerance):
    y = scipy_run(quaternion_field, np.array([0, 0, 0, 1.0, *SPIN]), tolerance)
    return Rotation.from_quat(y[:4]).as_matrix(), y[4:], abs(np.linalg.norm(y[:4]) - 1.0)


def of_angles(tolerance):
    y = scipy_run(angles_field, np.array([0, 0, 0, *SPIN]), tolerance)
    return Rotation.from_euler("ZYX", y[:3]).as_matrix(), y[3:], 0.0


def ours(name, n):
    robot = free_body()

    def run():
        end = rollout(
            robot, robot.neutral(), np.concatenate((SPIN, np.zeros(3))), None, T_END, T_END / n, name, every=n
        )
        R = end.q[-1].reshape(3, 4)[:, :3]
        return R, end.v[-1, :3], np.abs(R.T @ R - np.eye(3)).max()

    return run


def mujoco_run(n):
    spec = mujoco.MjSpec()
    spec.option.gravity, spec.option.timestep = np.zeros(3), T_END / n
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    body = spec.worldbody.add_body()
    body.mass, body.inertia, body.explicitinertial = 2.0, MOMENTS, True
    body.add_freejoint()
    model = spec.compile()
    data = mujoco.MjData(model)

    def run():
        mujoco.mj_resetData(model, data)
        data.qvel[3:] = SPIN
        mujoco.mj_step(model, data, nstep=n)
        R = Rotation.from_quat(data.qpos[3:], scalar_first=True).as_matrix()
        return R, data.qvel[3:].copy(), abs(np.linalg.norm(data.qpos[3:]) - 1.0)

    return run


def peers(budget: float) -> None:
    exact = ours("MK8", 8000)()[0]
    turns = np.linalg.norm(SPIN) * T_END / (2 * np.pi)
    print(f"\nFree rigid body, {T_END:g} s, {turns:.0f} turns: error of R; drift of energy and of angular momentum;")
    print("distance from the group; time")
    runs = {
        f"rollout {m}, {n} steps": ours(m, n) for m, n in (("MK4", 2000), ("CF4", 2000), ("MK6", 600), ("MK8", 250))
    }
    if mujoco is not None:
        runs["MuJoCo RK4, 2000 steps"] = mujoco_run(2000)
    for tolerance in (1e-6, 1e-9, 1e-12):
        runs[f"DOP853, quaternion, {tolerance:g}"] = lambda tolerance=tolerance: of_quaternion(tolerance)
        runs[f"DOP853, Euler angles, {tolerance:g}"] = lambda tolerance=tolerance: of_angles(tolerance)
    times = best_of(runs, budget)
    E0, L0 = 0.5 * SPIN @ (MOMENTS * SPIN), MOMENTS * SPIN
    for name, run in runs.items():
        R, w, off = run()
        error, energy = np.abs(R - exact).max(), abs(0.5 * w @ (MOMENTS * w) - E0)
        momentum = np.linalg.norm(R @ (MOMENTS * w) - L0)
        print(f"  {name:28s} {error:8.1e} {energy:8.1e} {momentum:8.1e} {off:8.1e} {times[name] * 1e3:9.3f} ms")


# --- work and precision ------------------------------------------------------------------------------------------


def work_precision(out: Path, quick: bool) -> None:
    """Error of the three spheres' configuration after 2 s against time, all methods."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    robot = models.three_spheres()
    q, v = robot.neutral(), np.array([0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.4, 0.4])
    exact = rollout(robot, q, v, None, 2.0, 1e-3, "MK8", every=2000).q[-1]
    figure = Figure(figsize=(7, 5), layout="constrained")
    ax = figure.subplots()
    for name in FIXED:
        points = []
        for n in 4 * 4 ** np.arange(4 if quick else 6):
            best = np.inf
            for _ in range(3 if quick else 10):
                start = time.perf_counter()
                end = rollout(robot, q, v, None, 2.0, 2.0 / n, name, every=int(n))
                best = min(best, time.perf_counter() - start)
            points.append((best, np.linalg.norm(robot.difference(exact, end.q[-1])) + 1e-16))
        ax.loglog(*zip(*points), {"CG": "s:", "CF": "^--", "MK": "o-"}[name[:2]], label=name)
    ax.set(xlabel="time for 2 s of motion [s]", ylabel="error of the configuration", title="three spheres, all methods")
    ax.grid(True, alpha=0.3)
    ax.legend(ncols=2)
    out.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure).print_figure(out / "work_precision.png", dpi=130)
    print(f"\nWork against precision of all methods: {out}/work_precision.png")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, less repeatable")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where figures go")
    options = parser.parse_args(arguments)
    budget = 1.0 if options.quick else 8.0
    for robot in (models.three_spheres(), humanoid(), models.quadruped(), models.panda()):
        step_cost(robot, budget)
    panda_run(budget)
    million_steps(100_000 if options.quick else 1_000_000)
    peers(budget)
    work_precision(options.out, options.quick)


if __name__ == "__main__":
    main()
