"""Ultimate bounds of a tracking two-link arm, proved for all arms with x % wrong parameters: docs/how-to/certify.md.

    python experiments/studies/tracking_bounds.py [figure.svg]

Prints for each law and each x the smallest proved bound on |e| of the claims below, and draws them.
"""

import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import geomctrl as gc
from geomctrl import testing

ARM = gc.models.two_link()
MOTION = gc.references.Sinusoids(ARM, [0.3, 0.5], [0.4, 0.3], 0.3, [0.0, 0.5])
LAWS = {
    "Passivity": (
        gc.controllers.Passivity(ARM, MOTION, Lambda=10.0, K=40.0, strict=True),
        testing.Box(0.3, (4.0, 8.0), disturbance=0.1),
        [{"rate": 4.0, "offset": c} for c in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)],
        (0.0, 0.02, 0.04, 0.06),
    ),
    "ComputedTorque": (
        gc.controllers.ComputedTorque(ARM, MOTION, kp=100.0, kd=20.0, strict=True),
        testing.Box(0.2, 2.0, disturbance=0.1),
        [{"outside": (r, 10.0 * r)} for r in (0.04, 0.08, 0.15)],
        (0.0, 0.005, 0.01, 0.02),
    ),
}


def smallest_bound(law, box, claims, x):
    """(The certificate of the first claim with a proved region, or None; CPU time [s])."""
    started = time.process_time()
    for claim in claims:
        certificate = testing.certify_lyapunov(law, ARM, box, parameters=x, budget=100_000, **claim)
        if certificate.region is not None:
            print(claim, certificate.ultimate_bound, f"{time.process_time() - started:.0f} s", flush=True)
            return certificate
    return None


def main():
    fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for name, (law, box, claims, percents) in LAWS.items():
        points = []
        for x in percents:
            print(name, f"{100 * x:g} %", end=" ", flush=True)
            certificate = smallest_bound(law, box, claims, x)
            if certificate is None:
                print("no bound")
                break
            points.append((100.0 * x, certificate.ultimate_bound.max()))
        ax.plot(*zip(*points), "o-", label=name)
    ax.set(xlabel="error of every inertial parameter [%]", ylabel="proved bound on |e| [rad]", ylim=(0.0, None))
    ax.legend()
    if len(sys.argv) > 1:
        fig.savefig(sys.argv[1])


if __name__ == "__main__":
    main()
