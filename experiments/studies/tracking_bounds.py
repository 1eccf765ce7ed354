"""Ultimate bounds of a tracking two-link arm, proved for all arms with x % wrong parameters: docs/how-to/certify.md.

    python experiments/studies/tracking_bounds.py [figure.svg]

Prints for each law and each x the smallest proved bound on |e| under disturbances up to 0.1 N m, and draws them. The
size of the claim (the offset, or the ball that is left out) is found by bisection.
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
GAINS = {"Lambda": 10.0, "K": 40.0}
ERRORS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125)
STEPS = 4


def offset(rate):
    return lambda c: {"rate": rate, "offset": c}


def outside(r):
    return {"outside": (r, 10.0 * r)}


def passivity(x):
    law = gc.controllers.Passivity(ARM, MOTION, **GAINS, strict=True)
    return law, testing.Box(0.3, (4.0, 8.0), disturbance=0.1), offset(4.0), (1e-3, 4.0)


def computed_torque(x):
    law = gc.controllers.ComputedTorque(ARM, MOTION, kp=100.0, kd=20.0, strict=True)
    return law, testing.Box(0.2, 2.0, disturbance=0.1), outside, (0.02, 0.12)


def robust(x):
    """rho is the distance of the arms whose parameters are all too large."""
    wrong = gc.Plant(ARM.with_parameters((1.0 + max(x, 1e-3)) * ARM.parameters))
    rho = 1.0001 * gc.controllers.Robust(ARM, MOTION, **GAINS, rho=1.0, eps=0.1)._distance(wrong)
    law = gc.controllers.Robust(ARM, MOTION, **GAINS, rho=rho, eps=0.1, strict=True)
    return law, testing.Box(0.3, (4.0, 8.0), disturbance=0.1), offset(4.0), (1e-4, 1.0)


def sigma_modification(x):
    law = gc.controllers.SigmaModification(ARM, MOTION, 10.0, 40.0, rate=100.0, sigma=2.0)
    return law, testing.Box(0.3, 8.0, disturbance=0.1, z=2.0), offset(2.0), (1e-5, 0.1)


LAWS = {  # with the numbers of boxes that a proof may take
    "Passivity": (passivity, 2_000),
    "ComputedTorque": (computed_torque, 150_000),
    "Robust": (robust, 2_000),
    "SigmaModification": (sigma_modification, 2_000),
}


def smallest_bound(make, x, budget):
    """(The smallest claim that is proved, and its certificate with a region), or None."""
    law, box, claim, (low, high) = make(x)

    def certified(size, levels=False):
        return testing.certify_lyapunov(law, ARM, box, parameters=x, budget=budget, levels=levels, **claim(size))

    if not certified(high).proved:
        return None
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if certified(middle).proved else (middle, high)
    certificate = certified(high, levels=True)
    return None if certificate.region is None else (claim(high), certificate)


def main():
    fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for name, (make, budget) in LAWS.items():
        points = []
        for x in ERRORS:
            started = time.process_time()
            result = smallest_bound(make, x, budget)
            seconds = time.process_time() - started
            if result is None:
                print(f"{name}, {100 * x:g} %: no bound, {seconds:.0f} s", flush=True)
                break
            claim, certificate = result
            bound = 1e3 * certificate.ultimate_bound
            print(f"{name}, {100 * x:g} %: {claim}, {bound.round(2)} mrad, {seconds:.0f} s", flush=True)
            points.append((100.0 * x, bound.max()))
        ax.semilogy(*zip(*points), "o-", markersize=3, label=name)
    ax.set(xlabel="error of every inertial parameter [%]", ylabel="proved bound on |e| [mrad]", xlim=(0.0, None))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=4, frameon=False)
    if len(sys.argv) > 1:
        fig.savefig(sys.argv[1])


if __name__ == "__main__":
    main()
