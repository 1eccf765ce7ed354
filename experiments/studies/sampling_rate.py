"""How fast must a controller be sampled? Growth of its Lyapunov function over the sampling period.

Problem: proofs are for laws in continuous time, whose V never grows. On hardware a command is held for control_dt, and
V may grow in that time, the more the slower the sampling. Each bundled controller runs on the Panda, starting with an
error, while its commands are held for 0.25 ms to 16 ms.

Result: the largest growth of V within a step of the integrator, relative to its largest value, over control_dt. There
is none while the margin K of the proof dominates the delay. The plot also shows where the loop becomes unstable.

    python experiments/studies/sampling_rate.py [--out out/sampling_rate]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.elastic_joints import ElasticPlant
from geomctrl.control.references import Harmonic, Sinusoids

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import Out, run_script

PANDA = models.panda()
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
MOTION = Sinusoids(PANDA, HOME, 0.3, 0.4)
INERTIA = 1.0 / np.diag(np.linalg.inv(PANDA.mass_matrix(HOME)))  # each joint's, the others free [kg m^2]
OFF = 0.1 * np.ones(7)  # rad from where it should be
STIFFNESS, ROTOR = 5000.0, 0.1  # N m/rad, kg m^2
DT = 0.25e-3  # s, the integrator's step
HELD = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]  # steps


def loops() -> dict[str, tuple]:
    """(plant, controller, q0, v0) by name."""
    desired = MOTION(0.0)
    loaded = PANDA.with_payload(2.0, (0.0, 0.0, 0.1))
    elastic = controllers.ElasticJoint(PANDA, Harmonic(HOME, 0.3, 0.4), STIFFNESS, ROTOR)
    start = desired.q + OFF, desired.v
    return {
        "PDGravity": (
            PANDA,
            controllers.PDGravity(PANDA, HOME, 100.0 * INERTIA, 20.0 * INERTIA),
            HOME + OFF,
            0.0 * OFF,
        ),
        "ComputedTorque": (PANDA, controllers.ComputedTorque(PANDA, MOTION, 100.0, 20.0), *start),
        "Passivity": (PANDA, controllers.Passivity(PANDA, MOTION, 10.0, 10.0 * INERTIA), *start),
        "SlotineLi, 2 kg unknown": (loaded, controllers.SlotineLi(PANDA, MOTION, 10.0, 10.0 * INERTIA), *start),
        "ElasticJoint": (ElasticPlant(PANDA, STIFFNESS, ROTOR), elastic, np.tile(HOME + OFF, 2), np.zeros(14)),
    }


def growth(plant, controller, q0, v0, held: int, t_end: float) -> float:
    """The largest growth of V from a step to the next, relative to its largest value; infinite for a loop that ends."""
    monitors = [gc.monitors.LyapunovDecrease()]
    try:
        run = gc.simulate(plant, controller, q0, v0, t_end, DT, control_dt=held * DT, monitors=monitors)
    except gc.SimulationError:
        return np.inf
    V = run.signals["lyapunov"]
    return max(float((np.diff(V) / np.maximum.accumulate(V)[1:]).max()), 0.0)


def draw(growths: dict[str, list[float]], path: Path) -> None:
    from geomctrl.viewing.style import CYCLE, new_figure, open_frame, write_png

    fig = new_figure(7.2, 4.8, "What holding a command costs: growth of V on the Panda")
    ax = fig.add_subplot()
    periods = 1e3 * DT * np.array(HELD)
    for (name, values), color in zip(growths.items(), CYCLE):
        x = np.array(values)
        ax.plot(
            periods, np.where(np.isfinite(x) & (x < 1e3), np.maximum(x, 1e-12), np.nan), "o-", color=color, label=name
        )
        lost = periods[~np.isfinite(x)]
        if len(lost):
            ax.axvline(lost[0], color=color, linestyle=":", linewidth=1.0)
    ax.set(xscale="log", yscale="log", xlabel="control_dt [ms]", ylabel="largest growth of V in a step, relative")
    ax.set_xticks([0.25, 0.5, 1, 2, 4, 8, 16], labels=["0.25", "0.5", "1", "2", "4", "8", "16"])
    ax.minorticks_off()
    ax.grid(color="0.9", linewidth=0.7)
    ax.legend(fontsize=8)
    ax.set_title("1e-12: none; dotted: from there on the loop falls apart", fontsize=8, color="0.4")
    open_frame(ax)
    write_png(fig, path)


def main(*, out: Out = Path("out/sampling_rate")) -> None:
    start = time.perf_counter()
    growths = {name: [growth(*loop, held, 3.0) for held in HELD] for name, loop in loops().items()}
    print(f"{len(growths) * len(HELD)} runs of 3 s at {1 / DT:.0f} Hz in {time.perf_counter() - start:.1f} s")
    print("growth of V by control_dt [ms]   " + " ".join(f"{1e3 * DT * n:>7.2f}" for n in HELD))
    for name, values in growths.items():
        print(f"  {name:30s} " + " ".join(f"{x:7.0e}" for x in values))
    out.mkdir(parents=True, exist_ok=True)
    draw(growths, out / "growth.png")
    print(f"the curves: {out / 'growth.png'}")


if __name__ == "__main__":
    run_script(main)
