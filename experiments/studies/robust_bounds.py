"""Ultimate bounds of tracking errors under `Robust` and `Passivity`, for all robots with x % wrong parameters.

See docs/how-to/certify.md.

    python experiments/studies/robust_bounds.py

Prints for each loop the bound of |e|, the number of boxes and the CPU time of the call and of the bound.
"""

import time

import numpy as np

import geomctrl as gc
from geomctrl import testing

ARM, PANDA = gc.models.two_link(), gc.models.panda()
ONE = gc.references.Sinusoids(ARM, [0.3, 0.5], [0.4, 0.3], 0.3, [0.0, 0.5])
TWO = gc.references.Sinusoids(ARM, [0.3, 0.5], [[0.4, 0.3], [0.1, 0.1]], [[0.3, 0.3], [0.7, 0.7]])
FRICTION = gc.Friction(viscous=0.3, coulomb=0.2, smoothing=0.05)

Q = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])  # rad
INERTIA = np.array([1.3, 1.8, 0.45, 0.63, 0.03, 0.03, 0.005])  # kg m^2: about the mean of M_ii
K = 80.0 * (1.8 / INERTIA) ** (1 / 3) * INERTIA  # N m s/rad: faster where less is moved, as `Passivity.tuned` has it
SPEEDS = np.array([2.2, 0.9, 3.3, 1.5, 3.8, 3.3, 6.0])  # rad/s: V reaches its level within the box
PUSHES = np.array([0.3, 0.3, 0.3, 0.3, 0.05, 0.05, 0.02])  # N m
WAVE = gc.references.Sinusoids(PANDA, Q, 0.1, 0.2, np.linspace(0.0, 3.0, 7))


def robust(robot, motion, percent, eps, **gains):
    """The law whose rho is the distance of the robots with errors of `percent`."""
    law = gc.controllers.Robust(robot, motion, rho=1.0, eps=eps, **gains)
    wrong = robot.with_parameters((1.0 + percent) * robot.parameters)
    rho = 1.0001 * law._distance(gc.Plant(wrong))
    return gc.controllers.Robust(robot, motion, rho=rho, eps=eps, **gains)


def loops():
    """(Name, law, plant, box, claim) of each loop."""
    box, gains = testing.Box(0.3, (4.0, 8.0), disturbance=0.1), {"Lambda": 10.0, "K": 40.0}
    for x, c in ((0.02, 0.002), (0.05, 0.0048), (0.1, 0.009)):
        law = robust(ARM, ONE, x, 0.1, **gains)
        yield f"two links, {100 * x:g} %", law, ARM, box, {"parameters": x, "rate": 4.0, "offset": c}
    law = robust(ARM, TWO, 0.05, 0.1, **gains)
    claim = {"parameters": 0.05, "rate": 4.0, "offset": 0.0048}
    yield "two links, two frequencies, 5 %", law, ARM, box, claim
    law, plant = gc.controllers.Passivity(ARM, ONE, friction=FRICTION, **gains), gc.Plant(ARM, friction=FRICTION)
    box = testing.Box(0.3, (4.0, 8.0), disturbance=0.1, friction=0.2)
    yield "two links, Passivity, friction 20 %", law, plant, box, {"rate": 3.0, "offset": 0.01}
    for x, c in ((0.02, 0.0146), (0.05, 0.0318), (0.1, 0.0605)):
        law = robust(PANDA, WAVE, x, 0.1, Lambda=10.0, K=K, strict=True)
        box = testing.Box(0.1, SPEEDS, disturbance=PUSHES)
        yield f"Panda, strict, {100 * x:g} %", law, PANDA, box, {"parameters": x, "rate": 2.0, "offset": c}
    for x, gain, faster, c in ((0.02, 1.0, 1.0, 0.1), (0.05, 2.0, 1.5, 0.25), (0.05, 3.0, 1.5, 0.2)):
        law = gc.controllers.Passivity(PANDA, WAVE, Lambda=10.0, K=gain * K, strict=True)
        box = testing.Box(0.1, faster * SPEEDS, disturbance=PUSHES)
        claim = {"parameters": x, "rate": 2.0, "offset": c}
        yield f"Panda, Passivity, strict, {gain:g} K, {100 * x:g} %", law, PANDA, box, claim


def main():
    for name, law, plant, box, claim in loops():
        started = time.process_time()
        certificate = testing.certify_lyapunov(law, plant, box, budget=20_000, **claim)
        bound = certificate.ultimate_bound
        seconds = time.process_time() - started
        errors = "no bound" if bound is None else f"|e| <= {np.round(1e3 * bound, 2)} mrad"
        print(f"{name}: {claim}: {certificate.status}, {errors}, {certificate.boxes} boxes, {seconds:.1f} s")


if __name__ == "__main__":
    main()
