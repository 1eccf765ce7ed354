"""How heavy a load can an adaptive controller carry? Tracking error over payload and adaptation gain, 1024 closed
loops.

Problem: the Panda follows a motion under Slotine and Li's law, which starts with the empty hand's parameters; the hand
carries a payload. The proof says V = 1/2 s . M s + 1/2 (p - p_true) . Gamma^-1 (p - p_true) never grows, for any
payload and any gain. This assumes a robot that can apply every commanded torque; here the joints have the limits of the
data sheet.

Result: tracking error and settling time over payload x gain, and where torque limits break the proof: V grows while a
joint is at its limit. Faster adaptation settles sooner, but does not help an arm that is too weak for its load.

    python experiments/studies/payload_robustness.py [--out out/payload_robustness]
    geomctrl sweep experiments/studies/payload_robustness.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.references import Sinusoids

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import Out, run_script

PANDA = models.panda()
HOME = np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.9, 0.8])  # rad, the arm stretched forward
MOTION = Sinusoids(PANDA, HOME, 0.3, [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5], start_at_rest=2.0)
LIMITS = PANDA.limits.effort  # N m
GROWTH = 1e-8  # of V within a step, relative, that is more than rounding


class Limited(controllers.SlotineLi):
    """The law with limited torques."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=np.clip(command.tau, -LIMITS, LIMITS))


def make(point):
    law = Limited(PANDA, MOTION, 4.0, 5.0, rate=point["rate"])
    return PANDA.with_payload(point["payload"], (0.0, 0.0, 0.1)), law, HOME, np.zeros(7)


space = {
    "payload": ("payload", np.linspace(0.25, 12.0, 32), {"units": "kg"}),  # with nothing to learn V is zero
    "rate": ("rate", np.geomspace(0.02, 20.0, 32)),
}
measures = {
    "tracking_rms": gc.measures.TrackingRMS(after=2.0),
    "settling_time": gc.measures.SettlingTime(0.02),
    "peak_torque": gc.measures.PeakTorque(joints=True),
    "growth": gc.measures.WorstMonitor("lyapunov"),
}
t_end, dt = 10.0, 1e-3


def draw(table, path: Path) -> None:
    """Two maps; hatched where V grows."""
    from geomctrl.viewing.style import new_figure, write_png

    fig = new_figure(11.0, 4.6, "Panda under Slotine and Li's law, torques limited")
    axes = fig.subplots(1, 2)
    payload, rate = table.payload.values, table.rate.values
    broken = (table.growth > GROWTH) | ~table.success
    shown = (
        (
            "RMS of the tracking error [rad]",
            np.log10(table.tracking_rms).clip(-4.0, 0.0),
            [1e-4, 1e-3, 1e-2, 1e-1, 1.0],
        ),
        ("settled within 0.02 rad after [s], white: not", table.settling_time, None),
    )
    for ax, (title, values, ticks) in zip(axes, shown):
        image = ax.pcolormesh(payload, rate, values.transpose("rate", "payload"), cmap="viridis", shading="nearest")
        bar = fig.colorbar(image, ax=ax)
        if ticks:
            bar.set_ticks(np.log10(ticks), labels=[f"{x:g}" for x in ticks])
        where = broken.transpose("rate", "payload").values.astype(float)
        ax.contourf(payload, rate, where, levels=[0.5, 1.5], colors="none", hatches=["///"])
        ax.contour(payload, rate, where, levels=[0.5], colors="black", linewidths=1.2)
        ax.set(yscale="log", xlabel="payload [kg]", ylabel="adaptation gain, times the default", title=title)
    fig.supxlabel("hatched: a joint at its limit, V grows", fontsize=9)
    write_png(fig, path)


def main(*, out: Out = Path("out/payload_robustness")) -> None:
    start = time.perf_counter()
    table = gc.sweep(make, space, measures, t_end, dt, execution=gc.SweepExecution(progress=True))
    taken = time.perf_counter() - start
    runs = table.run.size
    print(f"{runs} loops of {t_end:g} s in {taken:.1f} s, {runs * t_end / taken:.0f} x real time")
    out.mkdir(parents=True, exist_ok=True)
    draw(table, out / "map.png")
    saturated = (table.peak_torque >= LIMITS * (1 - 1e-12)).any("joint")
    grows = table.growth > GROWTH
    print(f"a joint reaches its limit in {int(saturated.sum())} of them, V grows in {int(grows.sum())};")
    print(f"V grows where no joint is at its limit: {int((grows & ~saturated).sum())}")
    for rate in (0.02, 20.0):
        row = table.sel(rate=rate, method="nearest")
        borne = row.payload.values[(row.growth <= GROWTH).values & row.success.values]
        error = float(row.tracking_rms.sel(payload=3.0, method="nearest"))
        print(f"gain {rate:g}: the proof holds up to {borne.max():.1f} kg; RMS with 3 kg {error:.1e} rad")
    print(f"the map: {out / 'map.png'}")


if __name__ == "__main__":
    run_script(main)
