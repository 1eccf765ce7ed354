"""Which claims can be certified for a robot with seven joints, in 14 dimensions?

Problem: the Panda under `Passivity`, at rest at its usual pose, with errors of up to 10 % in each of its 70 inertial
parameters. Its equilibrium is then elsewhere, so V' < 0 does not hold near the set point: either a ball about it is
left out, or the claim is V' <= -rate V + offset. Both are harder for a smaller ball or offset, and wrong from some size
on.

Result: which claims are proved on +-0.2 rad, +-0.4 rad/s, with the numbers of boxes and the seconds of this process;
with --recheck, whether python-flint confirms them, at a tenth of a second for each box.

    python experiments/studies/panda_certificates.py [--only 0 --only 1] [--seconds 1200] [--recheck]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter, validators

from geomctrl import controllers, models, references, testing
from geomctrl.testing.certificates.certificate import LyapunovCertificate

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import run_script

Q_D = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])  # rad
LAMBDA = 5.0  # 1/s
INERTIA = np.array([1.3, 1.8, 0.45, 0.63, 0.03, 0.03, 0.005])  # kg m^2: about the mean of M_ii
K = 20.0 * (1.8 / INERTIA) ** (1 / 3) * INERTIA  # N m s/rad: faster where less is moved, as `Passivity.tuned` has it
BOX = 0.2, 0.4  # rad, rad/s
CLAIMS: list[tuple[float, dict[str, Any]]] = [  # by how much the gains are larger, what is claimed
    (1.0, {"offset": 4.0}),
    (1.0, {"offset": 1.0}),
    (2.0, {"offset": 0.5}),
    (2.0, {"outside": 0.2}),
    (2.0, {"outside": 0.15}),
]


def certificate(gain: float, claim: dict[str, Any], seconds: float) -> LyapunovCertificate:
    robot = models.panda()
    law = controllers.Passivity(robot, references.hold(robot, Q_D), LAMBDA, gain * K, strict=True)
    budget = testing.Budget(boxes=10_000_000, seconds=seconds)
    return testing.certify_lyapunov(law, robot, BOX, parameters=0.1, **claim, budget=budget, levels=False)


Number = Annotated[int, Parameter(validator=validators.Number(gte=0, lt=len(CLAIMS)))]


def main(*, only: list[Number] | None = None, seconds: float = 1200.0, recheck: bool = False) -> None:
    """only: numbers of claims; seconds: limit for each; recheck: with python-flint, in two processes."""
    for k in only or range(len(CLAIMS)):
        gain, claim = CLAIMS[k]
        started = time.process_time()
        proof = certificate(gain, claim, seconds)
        took = time.process_time() - started
        print(f"{k}: gains x {gain:g}, {proof.claims[-1].statement}: {proof.status}, {proof.boxes} boxes, {took:.1f} s")
        if recheck and proof.proved:
            print(testing.recheck_lyapunov(proof, processes=2))


if __name__ == "__main__":
    run_script(main)
