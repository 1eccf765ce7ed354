"""KUKA KR300 R2500: fit to trajectory A, test on trajectory B.

    relative error = |tau - tau_hat| / |tau|, 2-norms over all joints and rows of B, standing ones included; joint torques
    are motor torques times gear ratios, positions and torques low-passed at 8 Hz (zero phase, amplitude 1/2 there), every
    second row kept.

The model: ten inertial parameters a link, rotor inertias, viscous and Coulomb friction, the hydraulic counterbalance on axis
2. Torque offsets are left out: in 10 s of motion they are not told apart from gravity. Both trajectories begin and end
standing, where friction is whatever holds the robot still, up to the break-away torque: a joint's rows slower than
0.01 rad/s do not train it, but count in the error, and are most of it.
"""

from __future__ import annotations

import numpy as np
from logs import KR300_MASSES, kr300, kr300_counterbalance, kr300_log

from geomctrl.identification import IdentificationReport, RegressorModel, fit

CUTOFF, DECIMATE, STANDSTILL = 8.0, 2, 0.01  # Hz, rows, rad/s
SMOOTHING = 1e-3  # rad/s: creeping, the robot shows its full Coulomb friction


def main(out: str | None = None) -> IdentificationReport:
    robot, (A, B) = kr300(), (kr300_log(part) for part in "AB")
    print(f"KR300: {len(A)} and {len(B)} samples at {A.rate:.0f} Hz")
    model = RegressorModel(robot, rotor=True, offset=False, columns=[kr300_counterbalance()], smoothing=SMOOTHING)
    print(f"\n{'cut-off':>8} {'method':>22} {'A, moving':>10} {'A':>8} {'B':>8} {'B, moving':>10}  physical")
    report = None
    for cutoff in (5.0, CUTOFF, 12.0):
        a, b = (x.filtered(cutoff, decimate=DECIMATE) for x in (A, B))
        moving_a, moving_b = (x.without_standstill(STANDSTILL) for x in (a, b))
        seen, whole_a, unseen, unseen_moving = (model.compress(x) for x in (moving_a, a, b, moving_b))
        for name, method, options in (
            ("least squares", "ols", {}),
            ("weighted", "wls", {}),
            ("consistent", "consistent", {"mass_max": KR300_MASSES}),
            ("consistent, weighted", "consistent", {"mass_max": KR300_MASSES, "weights": "noise"}),
        ):
            e = fit(model, seen, method, **options)
            errors = [100 * e.relative_error(c) for c in (seen, whole_a, unseen, unseen_moving)]
            print(f"{cutoff:5g} Hz {name:>22} " + " ".join(f"{x:{w}.2f}%" for x, w in zip(errors, (9, 7, 7, 9))) + f"  {e.is_physical}")
            if cutoff == CUTOFF and name == "consistent, weighted":
                report = IdentificationReport(e, moving_a, b, A, fit(model, moving_a, "ols"), {"torque_cutoff": cutoff})
    assert report is not None
    free = report.unconstrained
    assert free is not None
    ratio = report.estimate.relative_error(report.test_factors) / free.relative_error(report.test_factors)
    print(f"\nconsistent against unconstrained on B: {ratio:.3f} times its error")
    own = model.compress(B.filtered(CUTOFF, decimate=DECIMATE))
    floor = fit(model, own, "ols").relative_error()
    print(f"floor: least squares fitted to B itself, standing rows included, leaves {100 * floor:.2f} % of B\n")
    share = 1.0 - (unmoving(report) if np.isfinite(unmoving(report)) else 0.0)
    print(f"of the squared error on B, {100 * share:.0f} % comes from rows where the joint stands\n")
    print(report.text(parameters=False))
    if out:
        report.save(out)
    return report


def unmoving(report: IdentificationReport) -> float:
    """The share of the squared error on the test log that moving rows have."""
    assert report.test is not None
    e = report.estimate
    c, moving = report.test_factors, e.model.compress(report.test.without_standstill(STANDSTILL))
    return float((moving.residuals(e.x) ** 2).sum() / (c.residuals(e.x) ** 2).sum())


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:2])
