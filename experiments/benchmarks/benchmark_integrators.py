"""Cost of integration: compiled steps relative to their forward dynamics, long runs, memory, and other libraries.

- One MK4 step of the three spheres and of a floating humanoid against four forward dynamics, both inside the compiled
  code (the strict measure) and as called from Python.
- Ten seconds of the Panda at 1 kHz, alone and in a loop with a controller in Python.
- A million steps of every method: distance from the group, growth of memory.
- The free rigid body against scipy's DOP853 on quaternions and on Euler angles and MuJoCo's RK4: time
  for the same accuracy, and what each keeps.

Peers take turns with us; the best of rounds counts. Figures go to out/.

    python experiments/benchmarks/benchmark_integrators.py [--quick]
"""

from __future__ import annotations

import resource
import sys
import time
from collections import deque
from functools import partial
from pathlib import Path

import numpy as np
import scipy.integrate
from scipy.spatial.transform import Rotation

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.references import Sinusoids
from geomctrl.integrators.driver import integrate, steps
from geomctrl.integrators.tableaus import method, methods
from geomctrl.kernels import articulated_bodies
from geomctrl.kernels.marches import march
from geomctrl.lie.groups import SO3
from geomctrl.motion.rollout import rollout
from geomctrl.motion.trajectory import plan_of

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.robots import humanoid
from lib.script import Out, Quick, run_script
from lib.timing import best_of

try:
    import mujoco
except ImportError:
    mujoco = None

FIXED = [name for name in methods() if method(name).b_hat is None]
RESULTS = Results("integrators")


# --- one step against its forward dynamics -----------------------------------------------------------------------


def step_cost(robot: gc.Robot, budget: float) -> None:
    """The kernels themselves in calls of the same length, short enough to fall between what else the machine does."""
    n = 250  # steps a call, and a quarter of the forward dynamics
    rng = np.random.default_rng(0)
    q, v, tau = robot.random_configuration(rng), 0.1 * rng.normal(size=robot.nv), np.zeros(robot.nv)
    copies = [np.tile(x, (4 * n, 1)) for x in (q, v, tau)]
    plan, rows = plan_of(method("MK4"), 1e-5, robot), (np.empty((2, robot.nq)), np.empty((2, robot.nv)))
    functions = {
        "kernel": lambda: articulated_bodies.forward_dynamics.many(
            robot._model, *copies, np.empty((0, 6 * robot.nbodies))
        ),
        "MK4": lambda: march(robot._model, plan, tau[None], 0, n, q.copy(), v.copy(), n, *rows),
        "python": lambda: [robot.forward_dynamics(q, v, tau) for _ in range(n)],
        "rollout": lambda: rollout(robot, q, v, None, n * 1e-5, 1e-5, "MK4", every=n),
    }
    times = best_of(functions, budget)
    step, inside, python = times["MK4"] / n, times["kernel"] / (4 * n), times["python"] / n
    print(
        f"{robot.name:14s} nv = {robot.nv:2d}: MK4 step {step * 1e6:6.2f} us = {step / inside / 4:.3f} x four forward"
        f" dynamics in compiled code ({inside * 1e6:.2f} us each); `rollout` {times['rollout'] / n * 1e6:.2f} us a step"
        f" = {times['rollout'] / (4 * n) / python:.3f} x four from Python ({python * 1e6:.2f})"
    )
    RESULTS.row(
        "a step of MK4", robot=robot.name, nv=robot.nv, step_us=step * 1e6, of_four_forward_dynamics=step / inside / 4
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
    RESULTS.row("Panda at 1 kHz, MK4", run="alone", real_time=10 / seconds)
    RESULTS.row("Panda at 1 kHz, MK4", run="computed torque in Python, all stages", real_time=10 / loop)


# --- a million steps ---------------------------------------------------------------------------------------------


def free_body() -> gc.Robot:
    inertia = gc.inertia.from_com(2.0, np.zeros(3), np.diag([1.0, 2.0, 2.5]))
    return gc.Robot.build([gc.Body("body", None, gc.Joint.free(), None, inertia)], gravity=(0, 0, 0))


class Limp:
    """A controller without torque."""

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(np.zeros(len(v)))


def million_steps(n: int) -> None:
    """Distance from the group after n steps and what the process has grown by, when nothing is kept."""
    robot, spin, h = free_body(), np.array([0.3, 2.0, 0.1, 0.0, 0.0, 0.0]), 0.01
    q0, group = robot.neutral(), SO3()

    def tumble(t, R):
        return R[0] + (t % 1.0)

    def stepped(n):
        return deque(steps(tumble, np.eye(3), (0.0, n * h), h, "MK4", group), maxlen=1)[0][1]

    def integrated(n):
        return integrate(tumble, np.eye(3), (0.0, n * h), h, "CF4", group, every=n).y[-1]

    def simulated(n):
        return gc.simulate(
            robot, Limp(), q0, spin, n * h, h, monitors=None, options=gc.SimulationOptions(method="MK2", every=n)
        ).q[-1]

    def rolled(name, n):
        return rollout(robot, q0, spin, None, n * h, h, name, every=n).q[-1]

    runs = {f"rollout, {name}": partial(rolled, name) for name in FIXED}
    runs |= {"integrators.steps, MK4": stepped, "integrators.integrate, CF4": integrated, "simulate, MK2": simulated}
    print(f"\n{n} steps of h = {h:g}, nothing kept: |R^T R - 1| at the end, memory grown, time")
    for name, run in runs.items():
        run(1000)  # compiled, and every buffer made once
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        end = run(n)
        seconds, grown = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        R = end if end.shape == (3, 3) else end.reshape(3, 4)[:, :3]
        off = np.abs(R.T @ R - np.eye(3)).max()
        print(f"  {name:27s} {off:.1e} {grown:6d} kB {seconds:6.2f} s")
        RESULTS.row("many steps", run=name, steps=n, off_the_group=off, memory_kB=grown, step_us=1e6 * seconds / n)


# --- peers on the free body --------------------------------------------------------------------------------------

MOMENTS = np.array([1.0, 2.0, 2.5])
SPIN, T_END = np.array([0.3, 2.0, 0.1]), 20.0
BODY = free_body()


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


def of_robot(name, n):
    robot = BODY
    end = rollout(robot, robot.neutral(), np.concatenate((SPIN, np.zeros(3))), None, T_END, T_END / n, name, every=n)
    R = end.q[-1].reshape(3, 4)[:, :3]
    return R, end.v[-1, :3], np.abs(R.T @ R - np.eye(3)).max()


def mujoco_runs():
    spec = mujoco.MjSpec()
    spec.option.gravity, spec.option.integrator = np.zeros(3), mujoco.mjtIntegrator.mjINT_RK4
    body = spec.worldbody.add_body()
    body.mass, body.inertia, body.explicitinertial = 2.0, MOMENTS, True
    body.add_freejoint()
    model = spec.compile()
    data = mujoco.MjData(model)

    def run(n):
        mujoco.mj_resetData(model, data)
        model.opt.timestep = T_END / n
        data.qvel[3:] = SPIN
        mujoco.mj_step(model, data, nstep=n)
        R = Rotation.from_quat(data.qpos[3:], scalar_first=True).as_matrix()
        return R, data.qvel[3:].copy(), abs(np.linalg.norm(data.qpos[3:]) - 1.0)

    return run


def peers(budget: float) -> None:
    """Each takes the fewest steps, or the loosest tolerance, that reaches the accuracy; then they take turns."""
    exact = of_robot("MK8", 8000)[0]
    counts = np.unique((50 * 2.0 ** np.arange(0.0, 11.0, 0.5)).astype(int))
    tolerances = 10.0 ** np.arange(-3.0, -13.5, -0.5)
    runs = {name: (partial(of_robot, name), counts) for name in ("CG4", "CF4", "MK4", "MK5", "MK6", "MK8")}
    if mujoco is not None:
        runs["MuJoCo RK4"] = mujoco_runs(), counts
    runs["DOP853, quaternion"] = of_quaternion, tolerances
    runs["DOP853, Euler angles"] = of_angles, tolerances
    turns = np.linalg.norm(SPIN) * T_END / (2 * np.pi)
    E0, L0 = 0.5 * SPIN @ (MOMENTS * SPIN), MOMENTS * SPIN
    for accuracy in (1e-5, 1e-9):
        chosen = {}
        for name, (run, knobs) in runs.items():
            knob = next((k for k in knobs if np.abs(run(k)[0] - exact).max() <= accuracy), None)
            if knob is None:
                print(f"  {name}: can not reach {accuracy:g}")
            else:
                chosen[name] = partial(run, knob)
        times = best_of(chosen, budget)
        print(f"\nFree rigid body, {T_END:g} s, {turns:.0f} turns, R at the end to {accuracy:g}: steps or tolerance,")
        print("error, drift of energy [J] and of angular momentum [N m s], distance from the group, time")
        for name, run in chosen.items():
            R, w, off = run()
            energy, momentum = abs(0.5 * w @ (MOMENTS * w) - E0), np.linalg.norm(R @ (MOMENTS * w) - L0)
            numbers = (np.abs(R - exact).max(), energy, momentum, off)
            print(
                f"  {name:21s} {run.args[-1]:8.4g} "
                + " ".join(f"{x:8.1e}" for x in numbers)
                + f" {times[name] * 1e3:8.3f} ms"
                f" = {times[name] / min(times.values()):5.1f} x the fastest"
            )
            RESULTS.row(
                f"free rigid body to {accuracy:g}", method=name, energy_J=energy, off_the_group=off,
                time_ms=times[name] * 1e3, ratio=times[name] / min(times.values()),
            )  # fmt: skip
    print(
        "  Euler angles: no distance, for every triple of angles is a rotation; but at a pitch of 90 degrees none turns"
    )


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


def main(*, quick: Quick = False, out: Out = Path("out")) -> None:
    budget = 1.0 if quick else 8.0
    for robot in (models.three_spheres(), humanoid(), models.quadruped(), models.panda()):
        step_cost(robot, budget)
    panda_run(budget)
    million_steps(100_000 if quick else 1_000_000)
    peers(budget)
    work_precision(out, quick)
    RESULTS.save(quick)


if __name__ == "__main__":
    run_script(main)
