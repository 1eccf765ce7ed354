"""Cost of stacking regressors: a million samples of the Panda, compared with a Pinocchio loop; and of an SDP.

    regressor      the inertial columns of every sample, in chunks; nothing kept but the chunk
    with friction  three friction columns a joint besides
    compressed     the same with friction, and each joint's triangular factor accumulated (LAPACK, one core)
    Pinocchio      computeJointTorqueRegressor in a Python loop, nothing kept (timed on fewer samples, scaled up)

Peak memory is the process', less what it was before the log was made. Each part runs three times in turn; the least
counts, in seconds of processor time. Usage: python experiments/benchmarks/benchmark_stacking.py [samples]
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from geomctrl import models
from geomctrl.identification import Dataset, RegressorModel, fit


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def timed(function) -> float:
    start = time.process_time()  # this process' processor time: other programs do not count
    function()
    return time.process_time() - start


def pinocchio_loop(q, v, a):
    """A function that makes the regressor of every sample; None without Pinocchio."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    robot = models.panda()
    model = pin.Model()
    parent = 0
    for name, M in zip(robot.body_names, robot.placements):
        parent = model.addJoint(parent, pin.JointModelRZ(), pin.SE3(M[:3, :3], M[:3, 3]), name)
        model.appendBodyToJoint(parent, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    data = model.createData()

    def loop():
        for sample in zip(q, v, a):
            pin.computeJointTorqueRegressor(model, data, *sample)

    return loop


def main(samples: int = 1_000_000) -> dict[str, float]:
    robot = models.panda()
    model = RegressorModel(robot)
    rng = np.random.default_rng(0)
    warm = Dataset(np.arange(5000) * 1e-3, *(rng.normal(size=(5000, 7)) for _ in range(4)))
    model.compress(warm)
    before = megabytes()
    q, v, a, tau = rng.normal(size=(4, samples, 7))
    log = Dataset(np.arange(samples) * 1e-3, q, tau, v=v, a=a)
    logged = megabytes()

    bare = RegressorModel(robot, viscous=False, coulomb=False, offset=False)

    def stack(model):
        for _ in model._stream(log, model._blocks):
            pass

    few = samples // 20
    loop = pinocchio_loop(q[:few], v[:few], a[:few])
    times = {"regressor": [], "with friction": [], "compressed": [], "Pinocchio": []}
    for _ in range(3):
        times["regressor"].append(timed(lambda: stack(bare)))
        times["with friction"].append(timed(lambda: stack(model)))
        times["compressed"].append(timed(lambda: model.compress(log)))
        if loop is not None:
            times["Pinocchio"].append(20.0 * timed(loop))
    least = {name: min(x) for name, x in times.items() if x}
    print(
        f"{samples} samples of a 7-joint robot, {model.size} columns: a stacked regressor of"
        f" {8e-9 * samples * 7 * model.size:.1f} GB"
    )
    for name, seconds in least.items():
        ratio = f"  {seconds / least['Pinocchio']:.2f} of Pinocchio's" if "Pinocchio" in least else ""
        print(f"    {name:14}{seconds:8.2f} s{ratio}")
    print(
        f"    memory: log {logged - before:.0f} MB, stacking {megabytes() - logged:.0f} MB more, process"
        f" {megabytes():.0f} MB at its peak"
    )
    c = model.compress(warm)
    fit(model, c, "consistent", mass_max=20.0)
    whole = min(timed(lambda: fit(model, c, "consistent", mass_max=20.0)) for _ in range(3))
    solver = fit(model, c, "consistent", mass_max=20.0).notes["seconds"]
    print(f"    semidefinite fit of 7 links: {whole:.3f} s, {solver:.3f} s of it in the solver")
    return {**least, "sdp": whole}


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:2]))
