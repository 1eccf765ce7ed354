"""KUKA KR300 R2500: fit to trajectory A, test on trajectory B.

    relative error = |tau - tau_hat| / |tau|, 2-norms over all joints and rows of B, standing ones included; joint
    torques are motor torques times gear ratios, positions and torques low-passed at 8 Hz (zero phase, amplitude 1/2
    there), every second row kept.

The model: ten inertial parameters a link, rotor inertias, viscous and Coulomb friction, the hydraulic counterbalance
on axis 2. Torque offsets are left out: 10 s of motion do not separate them from gravity. Both trajectories begin
and end standing, where friction is whatever holds the robot still, up to the break-away torque: a joint's rows slower
than 0.01 rad/s do not train it, but count in the error, and are most of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from geomctrl.identification import Dataset, RegressorModel, Result, fit

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.logs import KR300_MASSES, between, held_out_error, kr300, kr300_counterbalance, kr300_log

CUTOFF, DECIMATE, STANDSTILL = 8.0, 2, 0.01  # Hz, rows, rad/s
SMOOTHING = 1e-3  # rad/s: creeping, the robot shows its full Coulomb friction


def main(out: str | None = None) -> Result:
    robot, (A, B) = kr300(), (kr300_log(part) for part in "AB")
    print(f"KR300: {len(A)} and {len(B)} samples at {A.rate:.0f} Hz")
    model = RegressorModel(robot, rotor=True, offset=False, columns=[kr300_counterbalance()], smoothing=SMOOTHING)
    halves = A.filtered(CUTOFF, decimate=DECIMATE).without(standstill=STANDSTILL)
    folds = [model.compress(between(halves, *span)) for span in ((0, 5), (5, 11))]
    tried = {
        r: held_out_error(model, folds, "consistent", mass_max=KR300_MASSES, regularization=r)
        for r in (1e-6, 1e-5, 1e-4, 1e-3)
    }
    regularization = min(tried, key=lambda r: tried[r])
    options = {"mass_max": KR300_MASSES, "regularization": regularization}
    print(
        f"weight of the prior {regularization:g}, by cross-validation over the halves of A"
        f" ({100 * tried[regularization]:.1f} %)"
    )
    print(f"\n{'cut-off':>8} {'method':>22} {'A, moving':>10} {'A':>8} {'B':>8} {'B, moving':>10}  physical")
    report = None
    for cutoff in (5.0, CUTOFF, 12.0):
        a, b = (x.filtered(cutoff, decimate=DECIMATE) for x in (A, B))
        moving_a, moving_b = (x.without(standstill=STANDSTILL) for x in (a, b))
        seen, whole_a, unseen, unseen_moving = (model.compress(x) for x in (moving_a, a, b, moving_b))
        for name, method, more in (
            ("least squares", "ols", {}),
            ("weighted", "wls", {}),
            ("consistent", "consistent", options),
            ("consistent, weighted", "consistent", {**options, "weights": "noise"}),
        ):
            e = fit(model, seen, method, **more)
            errors = [100 * e.relative_error(c) for c in (seen, whole_a, unseen, unseen_moving)]
            print(
                f"{cutoff:5g} Hz {name:>22} "
                + " ".join(f"{x:{w}.2f}%" for x, w in zip(errors, (9, 7, 7, 9)))
                + f"  {e.is_physical}"
            )
            if cutoff == CUTOFF and name == "consistent, weighted":
                report = Result(e, moving_a, b, A, fit(model, moving_a, "ols"), {"torque_cutoff": cutoff})
    assert report is not None
    print_targets(report, model, A, B)
    print(report.text(parameters=False))
    if out:
        report.save(out)
    return report


def print_targets(report: Result, model: RegressorModel, A: Dataset, B: Dataset) -> None:
    """The error on B beside that of least squares, in three readings of what least squares are given."""
    error, b = report.estimate.relative_error(report.test_factors), report.test
    assert b is not None
    whole = A.filtered(CUTOFF, decimate=DECIMATE)
    plain = RegressorModel(model.robot, **{**model.options, "offset": True})
    moving = b.without(standstill=STANDSTILL)
    error_moving = report.estimate.relative_error(moving)
    print(
        f"\ntargets on B: consistent <= 16 %: {100 * error:.2f} %, {met(error <= 0.16)}; and at most half the error of"
        " the unconstrained fit, which may mean:"
    )
    print(f"{'least squares on A of':>42} {'B':>8} {'ratio':>6} {'':8} {'B, moving':>10} {'ratio':>6}")
    for name, other, rows in (
        ("this model, all rows of A", model, whole),
        ("this model, the rows that trained it", model, report.training),
        ("the usual model with offsets, all rows", plain, whole),
    ):
        e = fit(other, rows, "ols")
        free, free_moving = e.relative_error(b), e.relative_error(moving)
        print(
            f"{name:>42} {100 * free:7.2f}% {error / free:6.2f} {met(error <= 0.5 * free):8}"
            f" {100 * free_moving:9.2f}% {error_moving / free_moving:6.2f} {met(error_moving <= 0.5 * free_moving)}"
        )
    print(
        "The first is the plain reading: the same model fitted to A without constraints. Given only the moving rows,\n"
        "as the consistent fit was, least squares do better on the whole of B, and the ratio is above one half.\n"
        "On the rows of B that move it is below in every reading: standing rows, which no model here explains, hide it."
    )
    own = model.compress(B.filtered(CUTOFF, decimate=DECIMATE))
    floor = fit(model, own, "ols").relative_error()
    print(f"floor: least squares fitted to B itself, standing rows included, leaves {100 * floor:.2f} % of B")
    half = 0.5 * fit(model, report.training, "ols").relative_error(b)
    if half < floor:
        print(f"half the error of least squares on the rows that trained is {100 * half:.2f} %: below that floor")
    print(
        f"of the squared error on B, {100 * (1.0 - moving_share(report)):.0f} % comes from rows where the"
        f" joint stands\n"
    )


def met(yes: bool) -> str:
    return "met" if yes else "not met"


def moving_share(report: Result) -> float:
    """The share of the squared error on the test log that moving rows have."""
    assert report.test is not None
    e = report.estimate
    c, moving = report.test_factors, e.model.compress(report.test.without(standstill=STANDSTILL))
    return float((moving.residuals(e.x) ** 2).sum() / (c.residuals(e.x) ** 2).sum())


if __name__ == "__main__":
    main(*sys.argv[1:2])
