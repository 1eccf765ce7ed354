"""The three published robot logs that the identification experiments and tests read, and the robots they come from.

The logs are not part of the package. Put them in a folder and name it in GEOMCTRL_DATA (default: ../shared/data beside
the repository); without them experiments and tests that need them stop with a reason.

    kr300_weigand_AB.npz       KUKA KR300 R2500, github.com/JonasWeigand/Robot_Identification, MIT
    tx40_figaroh.npz           Staubli TX40, github.com/thanhndv212/figaroh-plus, Apache-2.0
    ur10_petrone_first70.npz   Universal Robots UR10, github.com/unisa-acg/inverse-dynamics-solver, BSD-3-Clause

Each is the published recording re-packed by numpy.savez_compressed; the array names are those used below.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl import Robot, inertia
from geomctrl.identification import Column, Dataset, JointMapping, RegressorModel, fit
from geomctrl.identification.model.compressed import Compressed

FOLDER = Path(os.environ.get("GEOMCTRL_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
SOURCES = {
    "kr300_weigand_AB.npz": "JonasWeigand/Robot_Identification @ 9e403c0,"
    " data/recorded_trajectories/2020-10-21 10s FF {A,B} 08ms",
    "tx40_figaroh.npz": "thanhndv212/figaroh-plus @ c3b5172, examples/staubli_TX40/data",
    "ur10_petrone_first70.npz": "unisa-acg/inverse-dynamics-solver @ 41e196d, ur10_inverse_dynamics_solver/bagfiles",
}


def missing(name: str) -> str | None:
    """Return why a log can not be read and how to get it; None if it exists."""
    if (FOLDER / name).is_file():
        return None
    how = "pack it with numpy.savez_compressed and set GEOMCTRL_DATA to its folder"
    return f"{name} is not in {FOLDER}: get it from github.com/{SOURCES[name]}, {how}"


def need(name: str) -> Path:
    """The path of a log; exits with the reason if it is missing."""
    why = missing(name)
    if why:
        raise SystemExit(f"skipped: {why}")
    return FOLDER / name


def body(mass: float) -> np.ndarray:
    """Parameters for a body of unknown inertia: a ball of 0.1 m radius of gyration."""
    return inertia.from_com(mass, np.zeros(3), 0.01 * mass * np.eye(3))


def between(data: Dataset, start: float, stop: float) -> Dataset:
    """The samples with start <= t - t[0] < stop [s]."""
    t = data.t - data.t[0]
    return data.select((t >= start) & (t < stop))


def held_out_error(model: RegressorModel, parts: Sequence[Compressed], method: str, **options: Any) -> float:
    """|tau - tau_hat| / |tau| over all parts of a log, each predicted from a fit to the others."""
    squares = size = 0.0
    for k, held in enumerate(parts):
        first, *rest = (p for i, p in enumerate(parts) if i != k)
        x = fit(model, sum(rest, start=first), method, **options).x
        squares, size = squares + (held.residuals(x) ** 2).sum(), size + (held.norms**2).sum()
    return float(np.sqrt(squares / size))


# --- UR10 --------------------------------------------------------------------------------------------------------


def ur10() -> Robot:
    """The robot in the modified Denavit-Hartenberg frames of the log's authors."""
    rad = np.deg2rad
    return Robot.from_dh(
        [0, 0, -0.612, -0.5723, 0, 0], rad([0, 90, 0, 0, 90, -90]), [0.1273, 0, 0, 0.163941, 0.1157, 0.0922],
        np.zeros(6),
        convention="modified", inertias=[body(5.0)] * 6, name="ur10",
    )  # fmt: skip


def ur10_log() -> Dataset:
    return Dataset.read(need("ur10_petrone_first70.npz"), label="UR10")


# --- TX40 --------------------------------------------------------------------------------------------------------

# motor turns per joint turn; motor 6 turns with joint 5 as well
TX40_GEARS = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
TX40_GEARS[5, 4] = 32.0
# where friction and rotors act: the joints, and motor 6, which turns with the sum of joints 5 and 6
TX40_TRANSMISSION = np.vstack((np.eye(6), [0, 0, 0, 0, 1, 1]))


def tx40() -> Robot:
    """The robot in the modified Denavit-Hartenberg frames of tx40_mdh_modified.urdf."""
    rad = np.deg2rad
    return Robot.from_dh(
        [0, 0, 0.225, 0, 0, 0], rad([0, -90, 0, 90, -90, 90]), [0.32, 0, 0.035, 0.225, 0, 0], rad([0, 0, 0, 0, 0, 180]),
        convention="modified", inertias=[body(m) for m in (10.5, 3.6, 4.07, 3.62, 1.02, 0.2)], name="tx40",
    )  # fmt: skip


def tx40_log() -> Dataset:
    mapping = JointMapping(TX40_GEARS, offset=[0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    keys = {"q": "q_motor", "tau": "tau_motor"}
    return Dataset.read(need("tx40_figaroh.npz"), keys, mapping=mapping, rate=5000.0, label="TX40")


# --- KR300 -------------------------------------------------------------------------------------------------------

KR300_MASSES = [800.0, 500.0, 200.0, 80.0, 60.0, 400.0]  # kg, upper bounds


def kr300() -> Robot:
    """The robot in the standard Denavit-Hartenberg frames of the log's authors: the base frame points down."""
    rad = np.deg2rad
    return Robot.from_dh(
        [0.35, 1.15, 0.041, 0, 0, 0], rad([90, 0, -90, 90, -90, 180]), [-0.675, -0.189, 0.189, -1, 0, -0.24],
        rad([0, 0, 90, 0, 0, 0]), convention="standard", inertias=[body(m) for m in (200, 200, 100, 40, 30, 150)],
        name="kr300", gravity=(0, 0, 9.81),
    )  # fmt: skip


def kr300_log(part: str) -> Dataset:
    """part: "A" or "B"."""
    path = need("kr300_weigand_AB.npz")
    with np.load(path) as archive:
        gear = archive["gear"]
    keys = {"t": f"{part}_t", "q": f"{part}_q_motor_deg", "tau": f"{part}_tau_motor"}
    data = Dataset.read(path, keys, units={"q": "deg"}, label=f"KR300 {part}")
    offset = np.deg2rad([0, -90, 90, 0, 0, 0])
    return replace(data, q=data.q + offset, tau=data.tau * gear)


def kr300_counterbalance() -> Column:
    """The gas spring on axis 2: piston area A times the pressure, which rises as the stroke reduces the gas volume; its
    gain, the pressure times the volume at rest, is unknown.
    """

    def torque(q, v, a):
        D, k, e = 0.8, 0.2, q[:, 1] + np.deg2rad(95.0)
        L = np.sqrt(D**2 + k**2 - 2.0 * D * k * np.cos(e))
        A = np.pi * (0.055**2 - 0.03**2) / 4.0
        out = np.zeros_like(q)
        out[:, 1] = (D * k * np.sin(e) / L) * A / (0.00096 - (L - (D - k)) * A)
        return out

    return Column("counterbalance", torque)
