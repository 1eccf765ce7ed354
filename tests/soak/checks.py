"""The checks that the soak repeats: each takes a random generator, describes its case, and raises if something is
wrong.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lxml.html
import matplotlib.pyplot as plt
import numpy as np
import pinocchio as pin
import sweep_studies
import xarray
from oracles import PINOCCHIO_KINDS, assert_close, force_scale, pinocchio, rate_scale
from pinocchio_oracle import assert_dynamics, pinocchio_terms
from simulation_options import grouped
from urdf_text import urdf

import geomctrl as gc
from geomctrl import controllers, integrators, models
from geomctrl.compiler import code
from geomctrl.control.references import Sinusoids
from geomctrl.errors import GeomctrlError, SimulationError
from geomctrl.identification import Dataset, Filtering, identify
from geomctrl.mechanism import inertia
from geomctrl.testing.random_robots import random_inertia, random_robot

# --- URDF documents --------------------------------------------------------------------------------------------------

URDF_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating")
PIECES = (
    "", " ", "-", "0", "nan", "inf", "1e400", "1e-400", "-0.0", "1_0", "0x1", "\u0661", "\0", '"', "'", "<", ">", "/>",
    "<joint/>", "<link/>", "<!--", "-->", "&lt;", "&x;", "<![CDATA[", "]]>", "<?x?>", 'xyz="1 2"', "mimic", "\n" * 50,
)  # fmt: skip


def numbers(x: Any) -> str:
    return " ".join(repr(float(y)) for y in np.ravel(x))


def document(rng: np.random.Generator) -> str:
    """A correct URDF: a random tree with joints of every kind except planar."""
    count = int(rng.integers(2, 8))
    links, joints = [], []
    for i in range(count):
        pi = random_inertia(rng)
        mass, com = pi[0], pi[1:4] / pi[0]
        I = inertia.com_tensor(pi)
        entries = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), I[np.triu_indices(3)])
        tensor = " ".join(f'{key}="{float(x)!r}"' for key, x in entries)
        links.append(
            f'<link name="l{i}"><inertial><origin xyz="{numbers(com)}"/><mass value="{float(mass)!r}"/>'
            f"<inertia {tensor}/></inertial></link>"
        )
        if i == 0:
            continue
        kind = "revolute" if i == 1 else str(rng.choice(URDF_KINDS))  # at least one joint moves
        axis = numbers(np.eye(3)[rng.integers(3)] if rng.random() < 0.5 else rng.normal(size=3))
        limit = '<limit lower="-2" upper="2" effort="9" velocity="3"/>' if kind in ("revolute", "prismatic") else ""
        joints.append(
            f'<joint name="j{i}" type="{kind}"><parent link="l{rng.integers(i)}"/><child link="l{i}"/>'
            f'<origin xyz="{numbers(rng.normal(size=3))}" rpy="{numbers(rng.normal(size=3))}"/>'
            f'<axis xyz="{axis}"/>{limit}</joint>'
        )
    parts = links + joints
    return urdf(*(parts[k] for k in rng.permutation(len(parts))))


def damaged(text: str, rng: np.random.Generator) -> str:
    for _ in range(rng.integers(1, 4)):
        i, n = int(rng.integers(len(text))), int(rng.integers(0, 60))
        j = int(rng.integers(len(text)))
        piece = [str(rng.choice(PIECES)), text[i : i + n] * 2, text[j : j + n]][rng.integers(3)]
        text = text[:i] + piece + text[i + n :]
    return text


def urdfs(rng: np.random.Generator) -> str:
    """A correct file equals Pinocchio's robot; a damaged file gives a robot that can move, or a GeomctrlError."""
    sometimes_traced(rng)
    text = document(rng)
    if rng.random() < 0.25:
        robot, model = models.load_urdf(text), pin.buildModelFromXML(text)
        q, v, a = robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))
        M, g, poses = pinocchio_terms(robot, model, q)
        assert_close(robot.mass_matrix(q), M, 1e-9)
        assert_close(robot.gravity_force(q), g, 1e-9, force_scale(robot, q, v, a))
        for name in robot.body_names:
            assert_close(robot.pose(q, name), poses[name], 1e-9, 1.0)
        assert_dynamics(robot, model, q, v, a, 1e-8)
        return "as in Pinocchio"
    text = damaged(text, rng)
    try:
        robot = models.load_urdf(text, mimic="independent")
    except GeomctrlError:
        return "refused"
    M = robot.mass_matrix(robot.random_configuration(rng))
    assert np.isfinite(M).all()
    # a damaged file may have a link of 1e18 m beside one of 1 m, whose square cancels where an axis is along the link
    reach = np.linalg.norm(robot.placements[:, :3, 3], axis=1).sum()
    rounding = 1e-14 * (np.abs(M).max() + np.abs(robot.parameters).max() * (1.0 + reach**2))
    assert np.linalg.eigvalsh(M)[0] > (-rounding if rounding > 1.0 else 0.0), M
    return "loaded though damaged"


# --- robots ----------------------------------------------------------------------------------------------------------


def robots(rng: np.random.Generator) -> str:
    """Terms of a random robot equal Pinocchio's."""
    traced = sometimes_traced(rng)
    kinds = [str(k) for k in rng.choice(PINOCCHIO_KINDS, size=rng.integers(1, 11))]
    parents = depth_first(rng, len(kinds))
    robot = random_robot(rng, kinds, parents, aligned=bool(rng.random() < 0.3), driven=bool(rng.random() < 0.5))
    theirs = pinocchio.__wrapped__(robot)
    q, v, a = robot.random_configuration(rng), *rng.normal(size=(2, robot.nv)) * 10.0 ** rng.uniform(-3, 2)
    f_ext = rng.normal(size=(robot.nbodies, 6))
    M, scale = theirs.mass_matrix(q), force_scale(robot, q, v, a)
    assert_close(robot.mass_matrix(q), M, 1e-11)
    assert_close(robot.gravity_force(q), theirs.gravity_force(q), 1e-11, scale)
    assert_close(
        robot.coriolis_matrix(q, v, "christoffel"), theirs.coriolis_matrix(q, v), 1e-10, rate_scale(robot, q, v)
    )
    tau = theirs.inverse_dynamics(q, v, a, f_ext)
    assert_close(robot.inverse_dynamics(q, v, a, f_ext=f_ext), tau, 1e-10, scale)
    size = np.abs(np.linalg.inv(M)).max() * max(np.abs(tau).max(), scale)
    assert_close(robot.forward_dynamics(q, v, tau, f_ext=f_ext), a, 1e-9, size)
    assert_close(robot.regressor(q, v, a), theirs.regressor(q, v, a), 1e-10, scale)
    assert_close(robot.kinetic_energy(q, v), theirs.energies(q, v)[0], 1e-10)
    frame = robot.body_names[-1]
    assert_close(robot.pose(q, frame), theirs.pose(q, frame), 1e-11, 1.0)
    for representation in ("body", "spatial", "hybrid"):
        J = theirs.jacobian(q, frame, representation)
        assert_close(robot.jacobian(q, frame, representation), J, 1e-10, 1.0)
    return "as in Pinocchio, traced" if traced else "as in Pinocchio, by loops"


def sometimes_traced(rng: np.random.Generator) -> bool:
    """Whether robots of this check are compiled, which takes seconds each; otherwise they run in numba's loops."""
    traced = bool(rng.random() < 0.05)
    code._structures["met"] = 0 if traced else code.EAGER
    return traced


def depth_first(rng: np.random.Generator, count: int) -> list[int]:
    """Parents of a random tree whose bodies are numbered depth-first."""
    parents: list[int] = []
    for i in range(count):
        ancestors = [-1]
        k = i - 1
        while k >= 0:
            ancestors.append(k)
            k = parents[k]
        parents.append(int(rng.choice(ancestors)))
    return parents


# --- closed loops ----------------------------------------------------------------------------------------------------


def loops(rng: np.random.Generator) -> str:
    """A random closed loop is the same in compiled code as in Python, and its claim holds."""
    sometimes_traced(rng)
    kinds = [str(k) for k in rng.choice(["revolute", "prismatic", "helical", "spherical", "free"], rng.integers(1, 4))]
    robot = random_robot(rng, kinds)
    M = 1.0 / np.diag(np.linalg.inv(robot.mass_matrix(robot.neutral())))
    reference = Sinusoids(robot, robot.neutral(), rng.uniform(0.05, 0.3), rng.uniform(0.1, 0.5), rng.uniform(0, 6))
    laws: dict[str, Callable[[], Any]] = {
        "PD": lambda: controllers.PDGravity(robot, robot.neutral(), 25.0 * M, 10.0 * M),
        "computed torque": lambda: controllers.ComputedTorque(robot, reference),
        "passivity": lambda: controllers.Passivity(robot, reference, 2.0, 10.0 * M),
        "Slotine-Li": lambda: controllers.SlotineLi(robot, reference, 2.0, 10.0 * M, rate=1e-3),
    }
    name = str(rng.choice(list(laws)))
    law = laws[name]()
    options = {
        "method": str(rng.choice(list(integrators.methods()))),
        "control_dt": [None, 2e-3][rng.integers(2)],
        "every": int(rng.integers(1, 5)),
    }
    stable = 0
    for _ in range(RUNS):  # loads and states differ, and the compiled code is shared
        factors = rng.uniform(0.7, 1.3, robot.nbodies) if rng.random() < 0.5 else np.ones(robot.nbodies)
        plant = gc.Plant(robot.with_parameters(robot.parameters * factors[:, None]))
        q0, v0 = robot.integrate(robot.neutral(), 0.2 * rng.normal(size=robot.nv)), 0.2 * rng.normal(size=robot.nv)
        arguments = plant, law, q0, v0, 0.001 * int(rng.integers(10, 60)), 1e-3
        python, compiled = (ended(arguments, options | {"compiled": way}) for way in (False, True))
        assert_same_run(python, compiled)
        stored = not options["control_dt"] and (name == "Slotine-Li" or (factors == 1.0).all())
        promised = ["skew", "group", *(["lyapunov"] if stored else [])]
        for key, monitor in python.monitors.items():
            assert monitor.ok is not False or key not in promised, (name, str(monitor))
        stable += python.success
    return name if stable == RUNS else f"{name}, some unstable"


RUNS = 8  # of a loop


def assert_same_run(python: gc.Run, compiled: gc.Run) -> None:
    assert (python.steps, python.success) == (compiled.steps, compiled.success), (python.reason, compiled.reason)
    for column in ("q", "v", "tau", "z"):
        x, y = getattr(python, column), getattr(compiled, column)
        assert (x is None) == (y is None)
        if x is not None:
            assert_close(y, x, 1e-9, 1.0)
    for key, monitor in python.monitors.items():
        assert compiled.monitors[key].ok == monitor.ok, (str(monitor), str(compiled.monitors[key]))


def ended(arguments: tuple, options: dict[str, Any]) -> gc.Run:
    try:
        return gc.simulate(*arguments, **grouped(**options))
    except SimulationError as error:
        if error.run is None:
            raise
        return error.run


# --- sweeps ----------------------------------------------------------------------------------------------------------


@functools.cache
def whole_table() -> xarray.Dataset:
    return sweep_studies.swept(executor=ThreadPoolExecutor(1))


def sweeps(rng: np.random.Generator) -> str:
    """A sweep that is killed repeatedly and resumed equals one that was not interrupted, and leaves no process."""
    with tempfile.TemporaryDirectory() as folder:
        store, deaths = Path(folder) / "s.zarr", int(rng.integers(1, 4))
        for _ in range(deaths):
            process = subprocess.Popen(
                [sys.executable, sweep_studies.__file__, str(store), str(rng.uniform(0.005, 0.05))],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            kind = [signal.SIGKILL, signal.SIGINT][rng.integers(2)]
            blocks, deadline = int(rng.integers(0, 6)), time.monotonic() + 60.0
            wanted = blocks_done(store) + blocks
            while blocks_done(store) < wanted and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(rng.uniform(0.0, 0.1))
            process.send_signal(kind)
            said = process.communicate(timeout=60.0)[1]
            early = [1] if kind == signal.SIGINT and blocks == 0 else []  # Ctrl-C while Python itself starts
            assert process.returncode in (-kind, 0, *early), said
            gone(process.pid)
        outcome = sweep_studies.swept(store=store, executor=ThreadPoolExecutor(1))
        xarray.testing.assert_identical(outcome, whole_table())
    return f"resumed after {deaths}"


def blocks_done(store: Path) -> int:
    return len(list(store.glob("done/c/*[0-9]")))


def gone(group: int) -> None:
    """Wait until no process of the group is left; workers end within seconds when nobody waits for them."""
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("workers of a sweep that was killed are still there after a minute")


# --- identification --------------------------------------------------------------------------------------------------


def identifications(rng: np.random.Generator) -> str:
    """A random arm's torques are predicted up to their noise; a damaged log is refused, or its robot is physical."""
    robot = random_robot(rng, ["revolute"] * int(rng.integers(1, 4)))
    t, nv = np.arange(0.0, rng.uniform(4.0, 12.0), 0.01), robot.nv
    w, phase = 2.0 * np.pi * rng.uniform(0.1, 0.9, (4, nv)), rng.uniform(0.0, 6.3, (4, nv))
    x = t[:, None, None] * w + phase
    q, v, a = 0.4 * np.sin(x).sum(1), 0.4 * (w * np.cos(x)).sum(1), -0.4 * (w**2 * np.sin(x)).sum(1)
    tau = robot.inverse_dynamics(q, v, a) + rng.uniform(0.0, 0.2, nv) * v
    noise = 0.01 * np.abs(tau).max(axis=0) + 1e-6
    log = [t, q, tau + noise * rng.normal(size=tau.shape)]
    damage = str(rng.choice(["none", "none", "nan", "stamps", "torques", "still"]))
    rows = rng.integers(0, len(t), int(rng.integers(1, 50)))
    if damage == "nan":
        log[int(rng.integers(3))][rows] = np.nan
    elif damage == "stamps":
        log[0][rows] = rng.choice(t, len(rows))
    elif damage == "torques":
        log[2] = log[2] * 10.0 ** rng.uniform(-6, 6, nv)
    elif damage == "still":
        log[1] = np.broadcast_to(log[1][:1], q.shape)
    try:
        result = identify(robot, Dataset(*log), filtering=Filtering(cutoff=5.0))
    except GeomctrlError:
        if damage == "none":
            raise
        return f"{damage}: refused"
    assert np.linalg.eigvalsh(result.robot.mass_matrix(q[0]))[0] > 0.0
    assert result.text()
    if damage == "none":
        predicted = result.robot.inverse_dynamics(q, v, a) + result.robot.damping * v
        assert np.sqrt(np.mean((predicted - tau) ** 2, axis=0) < 5.0 * noise).all(), result.assessment.text()
    return f"{damage}: identified"


# --- pages -----------------------------------------------------------------------------------------------------------


def pages(rng: np.random.Generator) -> str:
    """Pages and pictures of random runs are written whole, say the name as it is, and leave no figure open."""
    title = "run " + "".join(rng.choice(list("a<&>\"'$_^{}[/]\\"), 8))
    robot = random_robot(rng, [str(k) for k in rng.choice(["revolute", "prismatic", "spherical"], rng.integers(1, 4))])
    law = controllers.PDGravity(robot, robot.neutral())
    run = ended((robot, law, robot.neutral(), 0.1 * rng.normal(size=robot.nv), 0.05, 1e-3), {"every": 5})
    with tempfile.TemporaryDirectory() as folder:
        page = run.save_html(Path(folder) / "run.html", title)
        root = lxml.html.parse(str(page), lxml.html.HTMLParser(encoding="utf-8")).getroot()
        assert root.findtext(".//title") == title
        run.plot(Path(folder) / "pictures")
        assert all(picture.stat().st_size > 5000 for picture in Path(folder).glob("pictures/*.png"))
    assert plt.get_fignums() == []
    return "written"


CHECKS: dict[str, Callable[[np.random.Generator], str]] = {
    "urdfs": urdfs,
    "robots": robots,
    "loops": loops,
    "sweeps": sweeps,
    "identifications": identifications,
    "pages": pages,
}


def checked(name: str, seed: int) -> str:
    """Run one check; warnings are errors, except those about the meaning of a damaged URDF."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name == "urdfs":
            warnings.simplefilter("ignore", UserWarning)
        return CHECKS[name](np.random.default_rng([seed, *name.encode()]))
