"""A law in a real-time loop at 1 kHz: jitter, computing time, and the same motion as in the simulation?

Problem: a law is written and proved in Python, and runs on a robot as C. Two processes show the way there on this
machine: robot.c keeps the clock as a robot does, with a Panda that holds 2 kg; controller.c runs Slotine and Li's law,
exported, which does not know the load. They talk over UDP. The robot's equations of motion are exported as well.

Result: the time between two states, the time that the law takes, and the time from a state to its torque: median, 99th
percentile and worst, as a figure; how many torques came too late; and the largest difference between this motion and
that of `geomctrl.simulate`, which is rounding if none came too late.

    python experiments/hardware/real_time_loop.py [--seconds 10] [--lockstep] [--out out/hardware]

With --lockstep the robot waits for each torque and keeps no clock. Linux with a C compiler; for a priority above other
processes it needs the right to it (root, or a limit of `rtprio` and `memlock` in /etc/security/limits.conf).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models, references

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import Out, run_script

HERE = Path(__file__).parent
PERIOD = 1000  # us
STEPS = 4  # of the robot's integrator in a period
DEADLINE = 800  # us after the state
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad


@dataclass
class Measured:
    """What both processes wrote: an entry a sample, times in seconds."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    missed: np.ndarray  # whether the torque came too late
    round_trip: np.ndarray  # from sending the state to having the torque
    period: np.ndarray  # between the arrivals of two states
    computing: np.ndarray  # of the law
    end: str  # why the loop ended
    is_real_time: bool  # whether the controller had its priority

    @property
    def summary(self) -> str:
        rows = {"time between states": self.period, "the law": self.computing, "state to torque": self.round_trip}
        lines = [f"{'':20s} {'median':>9s} {'99 %':>9s} {'worst':>9s}   [us]"]
        for name, times in rows.items():
            numbers = 1e6 * np.array([np.median(times), np.quantile(times, 0.99), times.max()])
            lines.append(f"{name:20s} " + " ".join(f"{x:9.1f}" for x in numbers))
        priority = "with" if self.is_real_time else "without"
        lines.append(f"{self.missed.sum()} of {len(self.missed)} torques too late, {priority} real-time priority")
        return "\n".join(lines)


def built(law: gc.Controller, plant: gc.Robot, folder: Path) -> tuple[Path, Path]:
    """The programs of the controller and of the robot, compiled from exported code in `folder`."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("no C compiler: install one, or name it with the variable CC")
    if plant.nq != plant.nv:
        raise SystemExit(
            f"{plant.name}: robot.c moves joints by addition, which needs as many coordinates as velocities"
        )
    compiled = gc.compile(law)
    compiled.to_c(folder, "law")
    plant.to_c(folder, ["forward_dynamics"], name="plant")
    sizes = [f"-DNQ={plant.nq}", f"-DNV={plant.nv}"]
    if "z" in compiled.inputs:
        sizes.append(f"-DNZ={int(np.prod(compiled.inputs['z']))}")
    if "z_rate" in compiled.outputs:
        sizes.append("-DZ_RATE")
    programs = []
    for program, code in (("controller", "law.c"), ("robot", "plant.c")):
        programs.append(folder / program)
        files = [HERE / f"{program}.c", folder / code]
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", f"-I{folder}", f"-I{HERE}", *sizes]
        subprocess.run([compiler, *flags, "-o", programs[-1], *files, "-lm"], check=True)
    return programs[0], programs[1]


def measured(programs: tuple[Path, Path], q, v, seconds: float, *, lockstep: bool, folder: Path) -> Measured:
    """The closed loop of both programs from (q, v) on."""
    samples = round(1e6 * seconds / PERIOD)
    files = folder / "controller.csv", folder / "robot.csv"
    deadline = 0 if lockstep else DEADLINE
    state = [repr(float(x)) for x in (*q, *v)]
    robot = subprocess.Popen(
        [programs[1], str(samples), str(PERIOD), str(STEPS), str(deadline), files[1], *state],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = robot.stdout.readline().split()[-1]
        command = [programs[0], port, str(samples), str(PERIOD), files[0]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=seconds + 60.0)
        if robot.wait(timeout=60.0):
            raise SystemExit("the robot's process failed")
    finally:
        robot.kill()
        robot.communicate()
    priority, times = files[0].read_text().partition("\n")[0], _table(files[0])
    end, states = files[1].read_text().partition("\n")[0], _table(files[1])
    n, m = len(q), len(v)
    columns = np.split(states[:, 3:], [n, n + m], axis=1)
    return Measured(
        *columns,
        missed=states[:, 0] != 0,
        round_trip=1e-9 * states[:, 1],
        period=1e-9 * np.diff(times[:, 1]),
        computing=1e-9 * times[:, 2],
        end=end.removeprefix("# end: "),
        is_real_time=priority.endswith("yes"),
    )


def _table(file: Path) -> np.ndarray:
    return np.loadtxt(file, delimiter=",", skiprows=2, ndmin=2)


def simulated(law: gc.Controller, plant: gc.Robot, q, v, seconds: float) -> gc.Run:
    """The same loop in Python: the torque is held for a period, which the robot integrates in the same steps."""
    dt = 1e-6 * PERIOD
    return gc.simulate(plant, law, q, v, seconds, dt / STEPS, control_dt=dt, monitors=None)


def draw(loop: Measured, difference: np.ndarray, file: Path) -> None:
    """Histograms of the times, and the difference from the simulation over time."""
    plt.style.use("geomctrl.viewing.gallery")
    figure, axes = plt.subplots(2, 2, figsize=(8.6, 5.6))
    times = (
        ("time between two states [us]", loop.period),
        ("time that the law takes [us]", loop.computing),
        ("time from state to torque [us]", loop.round_trip),
    )
    for ax, (label, values) in zip(axes.flat, times):
        microseconds = 1e6 * values
        ax.hist(microseconds, bins=np.geomspace(0.9 * microseconds.min(), 1.1 * microseconds.max(), 60), color="C0")
        ax.axvline(microseconds.max(), color="C3", lw=1.0)
        ax.set(xscale="log", yscale="log", xlabel=label, ylabel="samples")
        ax.set_title(f"worst: {microseconds.max():.0f} us", color="C3", size=10, loc="right")
    t = 1e-6 * PERIOD * np.arange(len(difference))
    axes[1, 1].semilogy(t, np.maximum(difference, 1e-17), color="C2")
    axes[1, 1].set(xlabel="time [s]", ylabel="difference from\nthe simulation [rad]")
    figure.savefig(file)
    plt.close(figure)


def main(*, seconds: float = 10.0, lockstep: bool = False, out: Out = Path("out/hardware")) -> None:
    robot = models.panda()
    loaded = robot.with_payload(2.0, (0.0, 0.0, 0.1), 0.005 * np.eye(3))  # kg, m, kg m^2
    motion = references.Sinusoids(robot, HOME, 0.3, 0.4)
    law = controllers.SlotineLi(robot, motion, Lambda=5.0, K=40.0 * np.diag(robot.mass_matrix(HOME)))
    start = motion(0.0)
    out.mkdir(parents=True, exist_ok=True)
    loop = measured(built(law, loaded, out), start.q, start.v, seconds, lockstep=lockstep, folder=out)
    run = simulated(law, loaded, start.q, start.v, seconds)
    difference = np.abs(loop.q - run.q[::STEPS][: len(loop.q)]).max(axis=1)
    print(loop.summary)
    print(f"end: {loop.end}")
    print(f"largest difference from the simulation: {difference.max():.1e} rad")
    draw(loop, difference, out / "loop.png")
    print(f"wrote {out / 'loop.png'}")


if __name__ == "__main__":
    run_script(main)
