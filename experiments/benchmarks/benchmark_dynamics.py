"""Cost of geomctrl's terms relative to Pinocchio, MuJoCo and dynibo, in the same process.

Peers take turns call by call of a few milliseconds each and the best of many rounds counts, so that a busy machine
slows all of them alike. Our side is the public method with its validation. Run it with `make bench`, or
    python experiments/benchmarks/benchmark_dynamics.py [--quick]
"""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import geomctrl as gc
from geomctrl import controllers, interop, models
from geomctrl.control.references import Sinusoids

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.robots import chain, humanoid, pin, pinocchio_model, right_angled
from lib.script import Quick, run_script
from lib.timing import best_of, table

try:
    import mujoco
except ImportError:
    mujoco = None
try:
    import dynibo
except ImportError:
    dynibo = None

RESULTS = Results("dynamics")


def single_calls(robot: gc.Robot, budget: float) -> None:
    """One state a call, from Python."""
    rng = np.random.default_rng(0)
    q, (v, a, tau, v_ref) = robot.random_configuration(rng), rng.normal(size=(4, robot.nv))
    model = pinocchio_model(robot)
    data = model.createData()
    pq, pv = interop.to_pinocchio(robot, model, q, v)
    pa, ptau = (interop.to_pinocchio(robot, model, q, x)[1] for x in (a, tau))

    def three():
        pin.crba(model, data, pq)
        pin.computeCoriolisMatrix(model, data, pq, pv)
        pin.computeGeneralizedGravity(model, data, pq)

    cases = {
        "inverse_dynamics": (
            lambda: robot.inverse_dynamics(q, v, a),
            {"rnea": lambda: pin.rnea(model, data, pq, pv, pa)},
        ),
        "inverse_dynamics, v_ref": (
            lambda: robot.inverse_dynamics(q, v, a, v_ref),
            {"rnea": lambda: pin.rnea(model, data, pq, pv, pa)},
        ),
        "terms (M, Mdot, C, g)": (lambda: robot.terms(q, v), {"crba+coriolis+gravity": three}),
        "mass_matrix": (lambda: robot.mass_matrix(q), {"crba": lambda: pin.crba(model, data, pq)}),
        "forward_dynamics": (
            lambda: robot.forward_dynamics(q, v, tau),
            {"aba": lambda: pin.aba(model, data, pq, pv, ptau)},
        ),
        "regressor": (
            lambda: robot.regressor(q, v, a),
            {"regressor": lambda: pin.computeJointTorqueRegressor(model, data, pq, pv, pa)},
        ),
    }
    if dynibo is not None and (peer := dynibo_call(robot, q, v, a)) is not None:
        cases["inverse_dynamics"][1]["dynibo"] = peer
    if mujoco is not None and (peer := mujoco_calls(robot, q, v, a)) is not None:
        cases["inverse_dynamics"][1]["mj_inverse"] = peer[0]
        cases["mass_matrix"][1]["mj_crb"] = peer[1]
    rows = []
    for label, (ours, peers) in cases.items():
        times = best_of({"ours": ours, **peers}, budget)
        rows.append((label, times.pop("ours"), times))
        RESULTS.peers("single calls", robot, label, rows[-1][1], times)
    table(f"{robot.name}: {robot.nv} degrees of freedom, single calls from Python", rows)


def mujoco_calls(robot: gc.Robot, q, v, a):
    """(mj_rne, mj_crb) of the same chain in MuJoCo; None for what it can not hold."""
    if any(j.kind != "revolute" for j in robot.joints):
        return None
    spec = mujoco.MjSpec()
    spec.option.gravity = robot.gravity
    spec.compiler.balanceinertia = True
    bodies = []
    for i, parent in enumerate(robot.parents):
        M, pi = robot.placements[i], robot.parameters[i]
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, M[:3, :3].ravel())
        body = (bodies[parent] if parent >= 0 else spec.worldbody).add_body(pos=M[:3, 3], quat=quat)
        I = gc.inertia.com_tensor(pi)
        body.mass, body.ipos, body.explicitinertial = pi[0], gc.inertia.com(pi), True
        body.fullinertia = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=robot.joints[i].S[:3, 0])
        bodies.append(body)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
    mujoco.mj_forward(model, data)
    data.qacc[:] = a
    out = np.zeros(model.nv)

    def rne():
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 1, out)

    def crb():
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)

    return rne, crb


def dynibo_call(robot: gc.Robot, q, v, a):
    """inverse_dynamics of the same chain in dynibo, which reads URDF files only; None for what this writer can not."""
    if any(j.kind != "revolute" for j in robot.joints):
        return None
    lines = ['<robot name="chain"><link name="world"/>']
    for name, parent, joint, M, pi in zip(
        robot.body_names, robot.parents, robot.joints, robot.placements, robot.parameters
    ):
        roll, pitch, yaw = Rotation.from_matrix(M[:3, :3]).as_euler("xyz")
        com, I = gc.inertia.com(pi), gc.inertia.com_tensor(pi)
        lines.append(
            f'<link name="{name}"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="{pi[0]}"/>'
            f'<inertia ixx="{I[0, 0]}" ixy="{I[0, 1]}" ixz="{I[0, 2]}" '
            f'iyy="{I[1, 1]}" iyz="{I[1, 2]}" izz="{I[2, 2]}"/>'
            f'</inertial></link><joint name="{joint.name}" type="continuous"><parent link="'
            f'{robot.body_names[parent] if parent >= 0 else "world"}"/><child link="{name}"/>'
            f'<origin xyz="{M[0, 3]} {M[1, 3]} {M[2, 3]}" rpy="{roll} {pitch} {yaw}"/>'
            f'<axis xyz="{joint.S[0, 0]} {joint.S[1, 0]} {joint.S[2, 0]}"/></joint>'
        )
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as f:
        f.write("\n".join(lines) + "</robot>")
        f.flush()
        peer = dynibo.Robot.from_urdf(f.name)
    tau = np.asarray(peer.inverse_dynamics(q, v, a))
    own = robot.with_gravity((0.0, 0.0, -9.80665)).inverse_dynamics(q, v, a)  # dynibo's gravity
    if tau.shape != own.shape or np.abs(tau - own).max() > 1e-6 * np.abs(tau).max():
        print("(dynibo is left out: its inverse dynamics of this robot differ from ours)")
        return None
    return lambda: peer.inverse_dynamics(q, v, a)


def batches(robot: gc.Robot, size: int, budget: float) -> None:
    """Throughput on `size` states: ours in one call, Pinocchio in a Python loop."""
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(size)])
    v, a = rng.normal(size=(2, size, robot.nv))
    model = pinocchio_model(robot)
    data = model.createData()
    pq, pv = interop.to_pinocchio(robot, model, q, v)
    pa = interop.to_pinocchio(robot, model, q, a)[1]

    def loop(f, *arrays):
        for row in zip(*arrays):
            f(model, data, *row)

    cases = {
        "inverse_dynamics": (lambda: robot.inverse_dynamics(q, v, a), lambda: loop(pin.rnea, pq, pv, pa)),
        "mass_matrix": (lambda: robot.mass_matrix(q), lambda: loop(pin.crba, pq)),
        "forward_dynamics": (lambda: robot.forward_dynamics(q, v, a), lambda: loop(pin.aba, pq, pv, pa)),
        "terms": (lambda: robot.terms(q, v), None),
        "regressor": (
            lambda: robot.regressor(q[:1000], v[:1000], a[:1000]),
            lambda: loop(pin.computeJointTorqueRegressor, pq[:1000], pv[:1000], pa[:1000]),
        ),
    }
    print(f"\n{robot.name}: batches of {size} (regressor: 1000)")
    for label, (ours, peer) in cases.items():
        times = best_of({"ours": ours} | ({"peer": peer} if peer else {}), budget)
        n = 1000 if label == "regressor" else size
        ratio = f"throughput {times['peer'] / times['ours']:.2f} x a loop over Pinocchio" if peer else ""
        print(f"  {label:34s} {times['ours'] / n * 1e6:9.3f} us a state   {ratio}")
        gain = times["peer"] / times["ours"] if peer else None
        RESULTS.row(
            "batches", robot=robot.name, states=n, term=label, state_us=times["ours"] / n * 1e6, throughput=gain
        )


def linear_cost(budget: float) -> None:
    """The O(n) algorithms to 300 joints."""
    print("\nCost per joint of the O(n) algorithms on chains")
    for n in (10, 30, 100, 300):
        robot, rng = chain(n), np.random.default_rng(0)
        q, v, a = rng.normal(size=(3, n))
        inverse, forward = partial(robot.inverse_dynamics, q, v, a), partial(robot.forward_dynamics, q, v, a)
        times = best_of({"inverse": inverse, "forward": forward}, budget)
        inverse, forward = times["inverse"] / n * 1e9, times["forward"] / n * 1e9
        print(f"  {n:4d} joints: inverse {inverse:6.1f} ns, forward {forward:6.1f} ns")
        RESULTS.row("cost per joint", joints=n, inverse_ns=inverse, forward_ns=forward)


# --- the closed loop of `make demo` against the same loop written by hand ----------------------------------------


def closed_loop(seconds: float) -> None:
    robot = models.panda()
    q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    amplitude = np.array([0.4, 0.3, 0.4, 0.3, 0.5, 0.4, 0.5])
    frequency = np.array([0.25, 0.3, 0.2, 0.35, 0.4, 0.3, 0.45])
    reference = Sinusoids(robot, q0, amplitude, frequency)
    true = robot.with_payload(2.0, (0.0, 0.0, 0.1), 0.004 * np.eye(3))
    K, Lambda = np.array([20.0, 20.0, 10.0, 10.0, 2.0, 2.0, 1.0]), 8.0
    controller = controllers.SlotineLi(robot, reference, Lambda, K, form="christoffel")
    v0 = reference(0.0).v

    def ours(monitors):
        return gc.simulate(gc.Plant(true), controller, q0, v0, seconds, 1e-3, monitors=monitors)

    def by_hand():
        return hand_written(robot, true, q0, v0, amplitude, frequency, Lambda, K, np.diag(controller.Gamma), seconds)

    ours("default")
    times, final = {}, {}
    runs = {"monitored": lambda: ours("default"), "bare": lambda: ours(None), "by hand": by_hand}
    for _ in range(2):
        for name, f in runs.items():
            start = time.perf_counter()
            result = f()
            times[name] = min(times.get(name, np.inf), time.perf_counter() - start)
            final[name] = result if name == "by hand" else result.q[-1]
    print(f"\nClosed loop: Panda, Slotine-Li, 70 adapted parameters, {seconds:g} s at 1 kHz, law at every stage")
    for name, x in times.items():
        print(f"  {name:12s} {x:7.2f} s, {seconds / x:5.1f} x real time, ratio to by hand {x / times['by hand']:.2f}")
        RESULTS.row("closed loop in Python", loop=name, real_time=seconds / x, ratio=x / times["by hand"])
    print(f"  final configurations agree to {np.abs(final['bare'] - final['by hand']).max():.1e} rad")


def hand_written(robot, true, q0, v0, amplitude, frequency, Lambda, K, gamma, seconds):
    """The same loop as a person would write it with Pinocchio and numpy: the regressor polarised for v_ref, RK4."""
    nominal, plant = pinocchio_model(robot), pinocchio_model(true)
    data, plant_data, zero, omega = nominal.createData(), plant.createData(), np.zeros(robot.nv), 2 * np.pi * frequency

    def regressor(q, v, a):
        return pin.computeJointTorqueRegressor(nominal, data, q, v, a).copy()

    def field(t, q, v, p):
        sine, cosine = np.sin(omega * t), np.cos(omega * t)
        e, de = q - q0 - amplitude * sine, v - amplitude * omega * cosine
        v_ref = v - de - Lambda * e
        a_ref = -amplitude * omega**2 * sine - Lambda * de
        s = v - v_ref
        both, one, other = regressor(q, v + v_ref, zero), regressor(q, v, zero), regressor(q, v_ref, zero)
        Y = regressor(q, zero, a_ref) + 0.5 * (both - one - other + regressor(q, zero, zero))
        tau = Y @ p - K * s
        return v, pin.aba(plant, plant_data, q, v, tau).copy(), -gamma * (Y.T @ s)

    h, q, v, p = 1e-3, q0, v0, robot.parameters.ravel()
    record = []
    for k in range(round(seconds / h)):
        t = k * h
        k1 = field(t, q, v, p)
        k2 = field(t + h / 2, q + h / 2 * k1[0], v + h / 2 * k1[1], p + h / 2 * k1[2])
        k3 = field(t + h / 2, q + h / 2 * k2[0], v + h / 2 * k2[1], p + h / 2 * k2[2])
        k4 = field(t + h, q + h * k3[0], v + h * k3[1], p + h * k3[2])
        q, v, p = (x + h / 6 * (a + 2 * b + 2 * c + d) for x, a, b, c, d in zip((q, v, p), k1, k2, k3, k4))
        record.append((t, q, v))
    return q


def main(*, quick: Quick = False) -> None:
    budget = 0.15 if quick else 1.5
    if pin is None:
        raise SystemExit("Pinocchio is not installed: pip install 'geomctrl[bench]'")
    for robot in (models.panda(), models.ur10(), right_angled(30), chain(30), humanoid()):
        single_calls(robot, budget)
    for robot in (models.panda(), right_angled(30)):
        batches(robot, 10_000, budget)
    linear_cost(budget)
    closed_loop(1.0 if quick else 10.0)
    RESULTS.save(quick)


if __name__ == "__main__":
    run_script(main)
