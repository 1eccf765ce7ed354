"""Steps per second on one core of Gymnasium's environments, relative to MuJoCo's mj_step from Python.

One step holds a torque for control_dt. The robots, the integration steps and the torques are the same; ours is MK4, a
Runge-Kutta method of order 4 as MuJoCo's RK4, beside which its default, Euler, has one evaluation instead of four. The
ratios are times of mj_step divided by times of ours, for the same simulated time: above 1, ours is faster. mj_step
alone makes no observation, reward or check of arguments; all of these are in ours. Resets at the end of an episode,
about half a millisecond of ours, are in few of the turns and therefore not in the best. MJX, if `make peers`
installed it, and Brax's generalized pipeline, if `pip install brax` did, step their batch on the CPU. Everything takes
turns in one process.

    python experiments/benchmarks/benchmark_gymnasium.py [--quick]
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import mujoco
import numpy as np

import geomctrl as gc
from geomctrl import interop, models
from geomctrl.interop import EnvironmentOptions

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.peers import use_peers
from lib.results import Results
from lib.script import Quick, run_script
from lib.timing import best_of

use_peers()
try:
    import jax
    from mujoco import mjx
except ImportError:
    mjx = None
try:
    from brax.generalized import pipeline as brax_pipeline
    from brax.io import mjcf as brax_models
except ImportError as problem:
    brax_pipeline = None
    print(f"Brax is not installed: {problem}")

RESULTS = Results("gymnasium")
DT, SUBSTEPS, EPISODE, SEVERAL = 1e-3, (1, 10), 1000, 64  # s; steps of dt in a step; steps; environments


def environment(robot: gc.Robot, substeps: int, monitors: Any, num_envs: int | None) -> Callable[[], Any]:
    """A function that takes one step, and begins again after an episode."""
    options = EnvironmentOptions(torque_limit=1.0, monitors=monitors)
    reference = gc.references.hold(robot, robot.neutral())
    period = substeps * DT
    env: Any = interop.gymnasium_env(robot, reference, EPISODE * period, DT, period, num_envs=num_envs, options=options)
    env.reset(seed=0)
    action = np.full(env.action_space.shape, 0.1)

    def step() -> None:
        *_, terminated, truncated, _ = env.step(action)
        if num_envs is None and (terminated or truncated):
            env.reset()

    return step


def mujoco_step(robot: gc.Robot, substeps: int, integrator: Any) -> Callable[[], Any]:
    model = interop.to_mujoco_model(robot)
    model.opt.timestep, model.opt.integrator = DT, integrator
    data = mujoco.MjData(model)
    torque, count = np.full(model.nv, 0.1), [0]

    def step() -> None:
        data.qfrc_applied[:] = torque
        mujoco.mj_step(model, data, substeps)
        count[0] += 1
        if count[0] % EPISODE == 0:
            mujoco.mj_resetData(model, data)

    return step


def mjx_step(robot: gc.Robot, substeps: int) -> Callable[[], Any]:
    """A batch of Euler steps, compiled by XLA for the CPU, in single precision."""
    model = interop.to_mujoco_model(robot)
    model.opt.timestep, model.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_EULER
    on_cpu = mjx.put_model(model)
    data = jax.vmap(lambda q: mjx.make_data(on_cpu).replace(qpos=q))(np.zeros((SEVERAL, model.nq)))
    torque = jax.numpy.full((SEVERAL, model.nv), 0.1)

    def several(data: Any, torque: Any) -> Any:
        data = data.replace(qfrc_applied=torque)
        return jax.lax.fori_loop(0, substeps, lambda _, x: mjx.step(on_cpu, x), data)

    step = jax.jit(jax.vmap(several))
    step(data, torque).qpos.block_until_ready()
    return lambda: step(data, torque).qpos.block_until_ready()


def brax_step(robot: gc.Robot, substeps: int) -> Callable[[], Any]:
    """A batch of steps of Brax's generalized pipeline, compiled by XLA for the CPU, in single precision.

    Its step applies torques through motors, and its reader expects a geometry.
    """
    with tempfile.TemporaryDirectory() as folder:
        spec = mujoco.MjSpec.from_file(str(models.save(robot, Path(folder) / "robot.xml")))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.01, 0.0, 0.0], contype=0, conaffinity=0)
    for joint in spec.joints:
        spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=joint.name)
    model = spec.compile()
    model.opt.timestep = DT
    system = brax_models.load_model(model)
    start = np.zeros((SEVERAL, system.q_size())), np.zeros((SEVERAL, system.qd_size()))
    state = jax.jit(jax.vmap(lambda q, v: brax_pipeline.init(system, q, v)))(*start)
    torque = jax.numpy.full((SEVERAL, system.act_size()), 0.1)

    def several(state: Any, torque: Any) -> Any:
        return jax.lax.fori_loop(0, substeps, lambda _, x: brax_pipeline.step(system, x, torque), state)

    step = jax.jit(jax.vmap(several))
    step(state, torque).q.block_until_ready()
    return lambda: step(state, torque).q.block_until_ready()


def compare(robot: gc.Robot, substeps: int, budget: float) -> None:
    integrators = mujoco.mjtIntegrator
    steps = {
        "ours": environment(robot, substeps, None, None),
        "ours, monitors": environment(robot, substeps, "default", None),
        f"ours, {SEVERAL} loops": environment(robot, substeps, None, SEVERAL),
        f"ours, {SEVERAL} loops, monitors": environment(robot, substeps, "default", SEVERAL),
        "mj_step, RK4": mujoco_step(robot, substeps, integrators.mjINT_RK4),
        "mj_step, Euler": mujoco_step(robot, substeps, integrators.mjINT_EULER),
    }
    if mjx is not None:
        steps[f"MJX, Euler, {SEVERAL} loops"] = mjx_step(robot, substeps)
    if brax_pipeline is not None:
        steps[f"Brax, generalized, {SEVERAL} loops"] = brax_step(robot, substeps)
    seconds = best_of(steps, budget)
    seconds = {name: x / (SEVERAL if str(SEVERAL) in name else 1) for name, x in seconds.items()}
    peers = [name for name in seconds if not name.startswith("ours")]
    print(f"\n{robot.name}: {robot.nv} degrees of freedom, {substeps} x {DT * 1e3:g} ms a step, one core")
    for name, x in seconds.items():
        ratios = {peer: seconds[peer] / x for peer in peers}
        shown = "" if name in peers else "   ".join(f"{peer} / this {r:6.2f}" for peer, r in ratios.items())
        print(f"  {name:30s} {1.0 / x:12,.0f} steps/s   {shown}")
        ratio = None if name in peers else ratios["mj_step, RK4"]
        RESULTS.row(
            "steps", robot=robot.name, substeps=substeps, loop=name, steps_per_second=1.0 / x, ratio_to_rk4=ratio
        )


def main(*, quick: Quick = False) -> None:
    for robot in (models.two_link(), models.panda()):
        for substeps in SUBSTEPS:
            compare(robot, substeps, 2.0 if quick else 12.0)
    RESULTS.save(quick)


if __name__ == "__main__":
    run_script(main)
