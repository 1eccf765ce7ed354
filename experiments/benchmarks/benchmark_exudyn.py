"""Comparison with exudyn: heavy top and spherical double pendulum, time for the same accuracy, conserved quantities.

Both libraries hold the bodies on their ball joints in maximal coordinates: we by the index-1 equations and explicit
methods on SE(3), or by generalized-alpha on SO(3) x R^3; exudyn (https://exudyn.readthedocs.io) by its implicit
solvers, on the Lie group (rotation vectors) and on Euler parameters, with full Newton and dense factorisation, which
were faster here than modified and sparse. Besides, ours in relative coordinates, compiled. Each method takes the fewest
of n, 2 n, 4 n ... steps that reach the accuracy; then all take turns in one process, and the best of rounds counts.

    python experiments/benchmarks/benchmark_exudyn.py [--quick]
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import geomctrl as gc
from geomctrl.errors import IntegrationError
from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.motion.rollout import rollout
from geomctrl.papers import constrained
from geomctrl.papers.constrained import integration as generalized_alpha
from geomctrl.papers.constrained.maximal import ConstrainedSystem

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib import bruels_top, mueller_terze
from lib.results import Results
from lib.script import Quick, run_script
from lib.timing import best_of

try:
    import exudyn as exu
    from exudyn.utilities import RigidBodyInertia
except ImportError:
    exu = None

FAILURES = (IntegrationError,) if exu is None else (IntegrationError, exu.SolverError)
MOST_STEPS = 50_000  # beyond which an accuracy counts as out of reach
RESULTS = Results("exudyn")


class Case(NamedTuple):
    title: str
    system: ConstrainedSystem  # on SE(3), the bodies' frames at their mass centres
    y0: np.ndarray
    direct: tuple[ConstrainedSystem, np.ndarray]  # system and y0 on SO(3) x R^3
    joints: list  # (body before, or -1 for the world; body; where, in inertial axes at the start), for exudyn
    robot: gc.Robot  # the same in relative coordinates, the bodies' frames at their joints
    v0: np.ndarray
    arms: np.ndarray  # (n, 3) from a body's joint to its mass centre
    t_end: float
    coarsest: int  # steps


def heavy_top() -> Case:
    direct, (system, y0) = bruels_top.top(SO3xR3()), bruels_top.top(SE3())
    robot, w, arm = bruels_top.robot(), bruels_top.OMEGA0, bruels_top.X0[None]
    title, pivot = "Heavy top of Bruels, Cardona and Arnold", [(-1, 0, np.zeros(3))]
    return Case(title, system, y0, direct, pivot, robot, w, arm, 0.8, 200)


def pendulum() -> Case:
    """Mueller and Terze's, to 0.5 s: it is chaotic."""
    case, half = mueller_terze.double_pendulum(SE3()), mueller_terze.HALF
    m, I = mueller_terze.bar("", None).inertia[0], mueller_terze.bar("", None).inertia[4:]
    about_end = gc.inertia.from_com(m, (half, 0, 0), np.diag(I[[0, 2, 5]]))
    out = np.eye(4)
    out[0, 3] = 2.0 * half
    bars = [
        gc.Body("bar 1", None, gc.Joint.spherical(), None, about_end),
        gc.Body("bar 2", "bar 1", gc.Joint.spherical(), out, about_end),
    ]
    w1, w2 = case.system.twists(case.y0)[:, :3]
    joints = [(-1, 0, np.zeros(3)), (0, 1, out[:3, 3])]
    arms, v0 = np.array([[half, 0, 0]] * 2), np.concatenate((w1, w2 - w1))
    direct = mueller_terze.double_pendulum(SO3xR3())[1:]
    return Case("Spherical double pendulum", *case[1:], direct, joints, gc.Robot.build(bars), v0, arms, 0.5, 250)


# --- runs: steps -> the state at the end, on SE(3) ---------------------------------------------------------------


def stacked(poses, twists) -> np.ndarray:
    return np.concatenate((np.ravel(poses), np.ravel(twists)))


def relative(case: Case, name: str, n: int) -> np.ndarray:
    robot = case.robot
    path = rollout(robot, robot.neutral(), case.v0, None, case.t_end, case.t_end / n, name, every=n)
    q, v = path.q[-1], path.v[-1]
    poses, twists = [], []
    for body, arm in zip(robot.body_names, case.arms):
        T, V = robot.pose(q, body), robot.jacobian(q, body) @ v
        T[:3, 3] += T[:3, :3] @ arm
        poses.append(T)
        twists.append([*V[:3], *(V[3:] + np.cross(V[:3], arm))])
    return stacked(poses, twists)


def explicit(case: Case, name: str, n: int) -> np.ndarray:
    return constrained.integrate_index1(case.system, case.y0, (0.0, case.t_end), case.t_end / n, name, every=n).y[-1]


def alpha(case: Case, rho: float, n: int) -> np.ndarray:
    system, y0 = case.direct
    y = generalized_alpha.integrate_index3(system, y0, (0.0, case.t_end), case.t_end / n, rho=rho, every=n).y[-1]
    return stacked(system.poses(y), system.twists(y))


class Exudyn:
    """The case in exudyn. node: how it writes rotations; solver: one of its `DynamicSolverType`.

    as_ours: generalized-alpha on the velocities, as its authors and `generalized_alpha` have it, not on the rates of
    the rotation vector within a step.
    """

    def __init__(self, case: Case, node, solver, as_ours: bool = False):
        exu.config.printToConsole = False
        self.case, self.solver, self.as_ours = case, solver, as_ours
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        ground = self.mbs.CreateGround()
        system = case.system
        self.bodies = [
            self.mbs.CreateRigidBody(
                referencePosition=T[:3, 3].tolist(),
                inertia=RigidBodyInertia(p[0], np.array([[p[4], p[5], p[7]], [p[5], p[6], p[8]], [p[7], p[8], p[9]]])),
                nodeType=node,
                initialVelocity=(T[:3, :3] @ V[3:]).tolist(),
                initialAngularVelocity=(T[:3, :3] @ V[:3]).tolist(),
                gravity=system.gravity.tolist(),
            )
            for T, V, p in zip(system.poses(case.y0), system.twists(case.y0), system.parameters)
        ]
        for before, body, where in case.joints:
            pair = [ground if before < 0 else self.bodies[before], self.bodies[body]]
            self.mbs.CreateSphericalJoint(itemNumbers=pair, position=where.tolist(), show=False)
        self.mbs.Assemble()

    def __call__(self, n: int) -> np.ndarray:
        settings = exu.SimulationSettings()
        marching = settings.timeIntegration
        marching.numberOfSteps, marching.endTime = n, self.case.t_end
        marching.verboseMode = 0
        marching.generalizedAlpha.spectralRadius = 0.6  # with 0.9 the top's iteration diverges below 12800 steps
        marching.generalizedAlpha.lieGroupSimplifiedKinematicRelations = self.as_ours
        settings.linearSolver.solverType = exu.LinearSolverType.EXUdense
        settings.solution.file.write = False
        self.mbs.SolveDynamic(settings, solverType=self.solver)
        poses, twists = [], []
        kind = exu.OutputVariableType
        for body in self.bodies:
            p, R, w, v = (
                self.mbs.GetObjectOutputBody(body, variable, [0.0, 0.0, 0.0])
                for variable in (kind.Position, kind.RotationMatrix, kind.AngularVelocityLocal, kind.Velocity)
            )
            T = mueller_terze.place(R.reshape(3, 3), p)
            poses.append(T)
            twists.append([*w, *(T[:3, :3].T @ v)])
        return stacked(poses, twists)


def contenders(case: Case) -> dict:
    runs = {f"relative, {name}": partial(relative, case, name) for name in ("MK4", "MK8")}
    runs |= {f"SE(3), {name}": partial(explicit, case, name) for name in ("MK4", "MK8")}
    runs["SO(3)xR3, generalized-alpha"] = partial(alpha, case, 0.9)
    if exu is None:
        print("\nexudyn is not installed (pip install exudyn): without it")
        return runs
    solvers, nodes = exu.DynamicSolverType, exu.NodeType
    for rotations, node in (("Lie", nodes.RotationRotationVector), ("Euler parameters", nodes.RotationEulerParameters)):
        runs[f"exudyn {rotations}, gen.-alpha"] = Exudyn(case, node, solvers.GeneralizedAlpha)
        if rotations == "Lie":
            runs["exudyn Lie, gen.-alpha as ours"] = Exudyn(case, node, solvers.GeneralizedAlpha, as_ours=True)
        runs[f"exudyn {rotations}, trapezoidal"] = Exudyn(case, node, solvers.TrapezoidalIndex2)
    return runs


# --- the tables --------------------------------------------------------------------------------------------------


def vertical_momentum(system: ConstrainedSystem, y: np.ndarray) -> float:
    """Angular, about the vertical through the inertial origin [N m s]: kept by gravity and by a pivot at the origin."""
    T, V = system.poses(y), system.twists(y)
    p = np.einsum("b,bij,bj->bi", system.parameters[:, 0], T[:, :3, :3], V[:, 3:])
    Iw = np.einsum("bi,bi->bi", system.parameters[:, [4, 6, 9]], V[:, :3])  # the inertias here are diagonal
    return float((np.cross(T[:, :3, 3], p) + np.einsum("bij,bj->bi", T[:, :3, :3], Iw)).sum(axis=0)[2])


def fewest_steps(run, error, coarsest: int, accuracy: float) -> int | None:
    """The first of coarsest, 2 coarsest, ... steps that keeps the error within the accuracy, or None."""
    n = coarsest
    while n <= MOST_STEPS:
        try:
            if error(run(n)) <= accuracy:
                return n
        except FAILURES:
            pass
        n *= 2
    return None


def table(case: Case, accuracies, budget: float) -> None:
    system, E0, L0 = case.system, case.system.energy(case.y0), vertical_momentum(case.system, case.y0)
    exact = system.poses(relative(case, "MK8", 20_000))
    runs = contenders(case)

    def error(y):
        return np.abs(system.poses(y) - exact).max()

    for accuracy in accuracies:
        steps = {name: fewest_steps(run, error, case.coarsest, accuracy) for name, run in runs.items()}
        able = {name: partial(runs[name], n) for name, n in steps.items() if n is not None}
        times = best_of(able, budget)
        print(
            f"\n{case.title}, {case.t_end:g} s, poses at the end to {accuracy:g}: steps, error, joints' violation [m],"
        )
        print("drift of energy [J] and of vertical angular momentum [N m s], time")
        for name, n in steps.items():
            if n is None:
                print(f"  {name:34s} not within {MOST_STEPS} steps")
                continue
            y = runs[name](n)
            drift = system.energy(y) - E0, vertical_momentum(system, y) - L0
            numbers = (error(y), system.violation(y).max(), *drift)
            print(
                f"  {name:34s} {n:6d} " + " ".join(f"{x:9.1e}" for x in numbers) + f" {1e3 * times[name]:9.2f} ms"
                f" = {times[name] / min(times.values()):6.1f} x the fastest"
            )
            RESULTS.row(
                f"{case.title}, poses to {accuracy:g}", method=name, steps=n, violation_m=numbers[1], energy_J=drift[0],
                time_ms=1e3 * times[name], ratio=times[name] / min(times.values()),
            )  # fmt: skip


def main(*, quick: Quick = False) -> None:
    for case in (heavy_top(), pendulum()):
        table(case, (1e-3,) if quick else (1e-3, 1e-5), 1.0 if quick else 4.0)
    RESULTS.save(quick)


if __name__ == "__main__":
    run_script(main)
