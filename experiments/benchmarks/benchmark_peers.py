"""One table of peers: dynamics of the Panda for one state and for batches, with errors and times, on one core.

A batch is an array of states in memory, and so are the results; nothing is transferred to another device. geomctrl and
JAX's libraries (frax, adam, MJX) take a batch in one call. Pinocchio, dynibo and MuJoCo take one state a call: their
batches are loops in Python, whose times include its cost, and which are timed over at most 4096 states. JAX computes in
float64; its first call, which compiles, is not in the times. Errors are relative to the largest number of the
reference, Pinocchio's result, and Pinocchio's own to geomctrl's; each library has its gravity, and so has its
reference. All take turns in one process, and the best turn counts. A cell is "not supported" if the library has no such
function, and "failed" if the library is not installed or raised an error, which is printed and kept in the results.
`make peers` installs JAX's libraries, in versions that work together, in a folder of their own.

    python experiments/benchmarks/benchmark_peers.py [--quick] [--states 16 --states 1000000]
"""

from __future__ import annotations

import os
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

import geomctrl as gc
from geomctrl import interop, models

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.peers import use_peers
from lib.results import Results
from lib.robots import pin, pinocchio_model
from lib.script import Quick, run_script
from lib.timing import best_of

RESULTS = Results("peers")
SIZES = [1, 16, 256, 4096, 65_536, 1_000_000]
QUICK_SIZES = [1, 16, 4096]
MAX_LOOP, CHECKED = 4096, 16  # states of a loop in Python; states that are compared
MAX_GRADIENT_BYTES = 2**31  # of one batch of results: larger ones are left out
MAX_SECONDS = 5.0  # of a call, expected from a smaller batch: longer ones are left out
UNAVAILABLE = {  # `pip install` found no package pycppad, cppadcodegen or cppadcg
    "Pinocchio, generated code": "does not install from PyPI (tried on 2026-11-24): the wheel of pin has none",
}
TERMS = (
    "inverse dynamics",
    "mass matrix",
    "forward dynamics",
    "gradient of inverse dynamics",
    "gradient of forward dynamics",
)


class Peer(NamedTuple):
    """A library. terms: functions of a batch (q, v, x), x an acceleration or a torque; loops: one state a call.
    absent: why a term is missing, "not supported" if it is not said.
    """

    name: str
    gravity: float
    terms: dict[str, Callable[..., Any]]
    loops: bool
    failure: str = ""
    absent: str = "not supported"


def geomctrl_peer(robot: gc.Robot) -> Peer:
    terms = {
        "inverse dynamics": robot.inverse_dynamics,
        "mass matrix": lambda q, v, x: robot.mass_matrix(q),
        "forward dynamics": robot.forward_dynamics,
        "gradient of inverse dynamics": lambda q, v, x: robot.inverse_dynamics_derivatives(q, v, x)[:2],
        "gradient of forward dynamics": lambda q, v, x: robot.forward_dynamics_derivatives(q, v, x)[:2],
    }
    return Peer("geomctrl", 9.81, terms, loops=False)


def pinocchio_peer(robot: gc.Robot) -> Peer:
    model = pinocchio_model(robot)
    data = model.createData()

    def forward(q, v, x):
        pin.computeABADerivatives(model, data, q, v, x)
        return data.ddq_dq, data.ddq_dv

    terms = {
        "inverse dynamics": lambda q, v, x: pin.rnea(model, data, q, v, x),
        "mass matrix": lambda q, v, x: pin.crba(model, data, q),
        "forward dynamics": lambda q, v, x: pin.aba(model, data, q, v, x),
        "gradient of inverse dynamics": lambda q, v, x: pin.computeRNEADerivatives(model, data, q, v, x)[:2],
        "gradient of forward dynamics": forward,
    }
    return Peer("Pinocchio", float(-robot.gravity[2]), terms, loops=True)


def dynibo_peer(urdf: str) -> Peer:
    peer = import_module("dynibo").Robot.from_urdf(urdf)
    terms = {
        "inverse dynamics": peer.inverse_dynamics,
        "mass matrix": lambda q, v, x: peer.mass_matrix(q),
        "forward dynamics": peer.forward_dynamics,
    }
    return Peer("dynibo", 9.80665, terms, loops=True)


def mujoco_peer(robot: gc.Robot) -> Peer:
    """mj_forward and mj_inverse, which do more than dynamics: contacts, sensors. No gradients but differences."""
    mujoco: Any = import_module("mujoco")
    model = interop.to_mujoco_model(robot)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT) | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    data, M = mujoco.MjData(model), np.zeros((robot.nv, robot.nv))

    def inverse(q, v, x):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, x
        mujoco.mj_inverse(model, data)
        return data.qfrc_inverse

    def forward(q, v, x):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, x
        mujoco.mj_forward(model, data)
        return data.qacc

    def mass(q, v, x):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)
        mujoco.mj_fullM(model, data, M) if mujoco.__version__ >= "4" else mujoco.mj_fullM(model, M, data.qM)
        return M

    return Peer("MuJoCo", 9.81, dict(zip(TERMS, (inverse, mass, forward))), loops=True)


def jax_terms(inverse: Any, mass: Any, forward: Any, gradients: bool = True) -> dict[str, Callable[..., Any]]:
    """Functions of one state as compiled functions of batches, and their gradients by forward mode."""
    jax: Any = import_module("jax")
    functions: dict[str, Any] = {"mass matrix": lambda q, v, x: mass(q)}
    functions |= {"inverse dynamics": inverse, "forward dynamics": forward}
    if gradients:
        functions |= {f"gradient of {name}": jax.jacfwd(functions[name], (0, 1)) for name in TERMS[:3:2]}

    def blocking(f: Any) -> Callable[..., Any]:
        compiled = jax.jit(jax.vmap(f))
        return lambda q, v, x: jax.block_until_ready(compiled(q, v, x))

    return {name: blocking(f) for name, f in functions.items()}


def frax_peer(urdf: str) -> Peer:
    """Its reader expects an inertia of every link, so links without one get zeros."""
    tree = ET.parse(urdf)
    for link in tree.iter("link"):
        if link.find("inertial") is None:
            inertial = ET.SubElement(link, "inertial")
            ET.SubElement(inertial, "mass", value="0")
            ET.SubElement(inertial, "inertia", dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), "0"))
    with_inertias = urdf.replace(".urdf", "_frax.urdf")
    tree.write(with_inertias)
    robot: Any = import_module("frax.core.robot").Robot(with_inertias)
    upward = import_module("jax.numpy").array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])  # an acceleration in place of gravity

    def inverse(q, v, a):
        return robot.rnea(q, v, a, upward, None)

    def forward(q, v, tau):
        return robot.forward_dynamics(q, v, tau, None)

    return Peer("frax", 9.81, jax_terms(inverse, robot.mass_matrix, forward), loops=False)


def adam_peer(urdf: str, names: list[str]) -> Peer:
    jnp: Any = import_module("jax.numpy")
    peer = import_module("adam.jax").KinDynComputations(urdf, names)
    base, rest = jnp.eye(4), jnp.zeros(6)

    def mass(q):
        return peer.mass_matrix(base, q)[6:, 6:]

    def bias(q, v):
        return peer.bias_force(base, q, rest, v)[6:]

    def inverse(q, v, a):
        return mass(q) @ a + bias(q, v)

    def forward(q, v, tau):  # its articulated-body algorithm has a floating base: here the base is fixed
        return jnp.linalg.solve(mass(q), tau - bias(q, v))

    return Peer("adam", 9.80665, jax_terms(inverse, mass, forward), loops=False)


def mjx_peer(robot: gc.Robot) -> Peer:
    """Without gradients: XLA compiles one of them for more than ten minutes, anew for each size of a batch."""
    mjx, mujoco = import_module("mujoco.mjx"), import_module("mujoco")
    model: Any = interop.to_mujoco_model(robot)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT) | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    own: Any = mjx.put_model(model)
    empty = mjx.make_data(own)

    def forward(q, v, tau):
        return mjx.forward(own, empty.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

    def inverse(q, v, a):
        return mjx.inverse(own, empty.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse

    def mass(q):
        return mjx.full_m(own, mjx.crb(own, mjx.com_pos(own, mjx.kinematics(own, empty.replace(qpos=q)))))

    terms = jax_terms(inverse, mass, forward, gradients=False)
    return Peer("MJX", 9.81, terms, loops=False, absent="left out: compiling takes minutes")


def peers(robot: gc.Robot, folder: Path) -> list[Peer]:
    """The libraries that are installed and work; the others are named with their error."""
    urdf = str(models.save(robot, folder / "robot.urdf"))
    makers: dict[str, Callable[[], Peer]] = {
        "geomctrl": lambda: geomctrl_peer(robot),
        "Pinocchio": lambda: pinocchio_peer(robot),
        "dynibo": lambda: dynibo_peer(urdf),
        "MuJoCo": lambda: mujoco_peer(robot),
        "frax": lambda: frax_peer(urdf),
        "adam": lambda: adam_peer(urdf, list(robot.dof_names)),
        "MJX": lambda: mjx_peer(robot),
    }
    use_peers()
    try:
        import_module("jax").config.update("jax_enable_x64", True)
    except ImportError:
        print("JAX is not installed")
    out = []
    for name, make in makers.items():
        try:
            out.append(make())
        except Exception as error:  # any library may fail on a robot, and the table says so
            failure = f"{type(error).__name__}: {error!s:.160}"
            print(f"{name}: {failure}")
            out.append(Peer(name, 9.81, {}, loops=False, failure=failure))
    return out + [Peer(name, 9.81, {}, loops=False, failure=failure) for name, failure in UNAVAILABLE.items()]


def batch(peer: Peer, term: str, states: np.ndarray) -> Callable[[], Any]:
    """A call for all states (3, n, nv); loops return their last result."""
    f = peer.terms[term]
    if not peer.loops:
        arrays = tuple(states if states.shape[1] > 1 or peer.name != "geomctrl" else states[:, 0])
        return lambda: f(*arrays)
    rows = list(zip(*states[:, :MAX_LOOP]))

    def loop() -> Any:
        for q, v, x in rows:
            f(q, v, x)

    return loop


def results(peer: Peer, term: str, states: np.ndarray) -> np.ndarray:
    """The results of some states, gradients by q and v one after the other."""
    f = peer.terms[term]
    if not peer.loops:
        parts = f(*states)
        return np.concatenate([np.asarray(x) for x in parts], -1) if isinstance(parts, tuple) else np.asarray(parts)
    rows = []
    for row in zip(*states):
        parts = f(*row)
        rows.append(np.concatenate(parts, -1) if isinstance(parts, tuple) else np.array(parts))
    if term != "mass matrix":
        return np.array(rows)
    upper = np.triu(np.array(rows).reshape(len(rows), states.shape[-1], -1))  # all that Pinocchio writes
    return upper + np.triu(upper, 1).swapaxes(1, 2)


def error(peer: Peer, term: str, robot: gc.Robot, states: np.ndarray) -> float:
    """The largest error relative to the reference, for the library's gravity."""
    same = robot.with_gravity((0.0, 0.0, -peer.gravity))
    reference = results(geomctrl_peer(same) if peer.name == "Pinocchio" else pinocchio_peer(same), term, states)
    return float(np.abs(results(peer, term, states) - reference).max() / np.abs(reference).max())


def compare(
    robot: gc.Robot, size: int, libraries: list[Peer], budget: float, last_times: dict[tuple[str, str], float]
) -> None:
    """last_times: microseconds a state by library and term, of the last batch; renewed."""
    rng = np.random.default_rng(0)
    states = np.stack([rng.uniform(-1.5, 1.5, (size, robot.nv)), *rng.normal(size=(2, size, robot.nv))])
    print(f"\n{robot.name}: {size} states")
    for term in TERMS:
        numbers = robot.nv * (1 if term in ("inverse dynamics", "forward dynamics") else robot.nv)
        fits = 8 * size * numbers * (2 if term.startswith("gradient") else 1) <= MAX_GRADIENT_BYTES
        slow = {
            x.name for x in libraries if not x.loops and last_times.get((x.name, term), 0.0) * size > 1e6 * MAX_SECONDS
        }
        able = [x for x in libraries if term in x.terms and fits and x.name not in slow]
        errors, seconds, failures = {}, {}, {x.name: x.failure for x in libraries}
        for peer in list(able):
            try:
                errors[peer.name] = error(peer, term, robot, states[:, :CHECKED])
            except Exception as problem:
                failures[peer.name] = f"{type(problem).__name__}: {problem!s:.160}"
                print(f"    {peer.name}, {term}: {failures[peer.name]}")
                able.remove(peer)
        if able:
            seconds = best_of({x.name: batch(x, term, states) for x in able}, budget)
        for peer in libraries:
            count = min(size, MAX_LOOP) if peer.loops else size
            each = seconds[peer.name] / count * 1e6 if peer.name in seconds else None
            absent = "left out: a call takes too long" if peer.name in slow else peer.absent if fits else "too large"
            missing = f"failed: {failures[peer.name]}" if failures[peer.name] else absent
            if each is not None:
                last_times[peer.name, term] = each
            cell = missing if each is None else f"{each:10.3f} us a state, error {errors[peer.name]:.0e}"
            print(f"  {term:30s} {peer.name:25s} {cell}")
            RESULTS.row(
                "peers", robot=robot.name, states=size, term=term, library=peer.name, state_us=each,
                error=errors.get(peer.name), missing=None if each else missing,
                call="a loop in Python" if peer.loops and size > 1 else "one call",
            )  # fmt: skip


def main(*, quick: Quick = False, states: list[int] | None = None) -> None:
    """states: sizes of batches."""
    if pin is None:
        raise SystemExit("Pinocchio, the reference, is not installed: pip install 'geomctrl[bench]'")
    robot = models.panda()
    with tempfile.TemporaryDirectory() as folder:
        libraries = peers(robot, Path(folder))
        last_times: dict[tuple[str, str], float] = {}
        for size in states or (QUICK_SIZES if quick else SIZES):
            compare(robot, size, libraries, 0.7 if quick else 4.0, last_times)
    RESULTS.save(quick)


if __name__ == "__main__":
    run_script(main)
