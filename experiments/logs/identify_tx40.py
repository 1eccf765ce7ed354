"""Staubli TX40: fit to the whole log, as figaroh does (which publishes a relative error of 5.26 %).

    relative error = |tau - tau_hat| / |tau|, 2-norms over all joints and rows; RMSE over all joints and rows [N m];
    positions low-passed at 40 Hz, torques and regressor alike at the cut-off printed (zero phase, amplitude 1/2 there);
    one row kept every 10 ms.

Joint torques are N^T tau_motor, joints 5 and 6 being coupled. The model: ten inertial parameters a link; viscous and
Coulomb friction, rotor inertia and a sigmoid at the six joints and at motor 6, which turns with joints 5 and 6
together; torque offsets; a spring on axis 2. Sigmoids because residuals of the linear model, drawn over the velocity,
level off alike on all joints: lubricated gears; their speeds are found by nonlinear least squares.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from geomctrl.identification import Dataset, RegressorModel, Result, fit, fit_curves
from geomctrl.identification.logs.parts import detected_period

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.logs import TX40_TRANSMISSION, between, tx40, tx40_log

CUTOFF, TORQUE_CUTOFF, DECIMATE, MASS = 40.0, 10.0, 50, 30.0  # Hz, Hz, rows, kg a link
SIGMOIDS = (0, 1, 2, 3, 4, 6)  # the log does not separate joint 6's own from motor 6's


def main(out: str | None = None) -> Result:
    log, robot = tx40_log(), tx40()
    print(f"TX40: {len(log)} samples at {log.rate:.0f} Hz, period: {detected_period(log)}")
    linear = RegressorModel(robot, rotor=True, offset=range(6), transmission=TX40_TRANSMISSION, smoothing=0.03)
    models = {
        "no coupling": RegressorModel(robot, rotor=True, smoothing=0.03),
        "linear friction": linear,
        "and spring 2": RegressorModel(robot, **linear.options, springs=[1]),
    }
    data = log.filtered(CUTOFF, torque_cutoff=TORQUE_CUTOFF, alike=True, decimate=DECIMATE)
    curves = fit_curves(models["and spring 2"], data, "sigmoid", SIGMOIDS)
    models["and sigmoids"] = curves.model
    print("sigmoids level off at", ", ".join(f"{s:.2g} +- {d:.1g}" for s, d in zip(curves.speeds, curves.std)), "rad/s")
    print(
        f"\n{'torque cut-off':>14} {'model':>16} {'base':>5} {'method':>14} {'relative':>9}"
        f" {'RMSE [N m]':>11}  physical"
    )
    report = None
    for cutoff in (5.0, TORQUE_CUTOFF, 25.0):
        parts = log.filtered(CUTOFF, torque_cutoff=cutoff, alike=True, decimate=DECIMATE)
        for name, model in models.items():
            seen = model.compress(parts)
            for method, options in (("ols", {}), ("consistent", {"mass_max": MASS})):
                e = fit(model, seen, method, **options)
                rmse = np.linalg.norm(seen.residuals(e.x)) / np.sqrt(seen.counts.sum())
                print(
                    f"{cutoff:11g} Hz {name:>17} {model.base.size:5d} {method:>14}"
                    f" {100 * e.relative_error():8.2f}% {rmse:11.3f}  {e.is_physical}"
                )
                if cutoff == TORQUE_CUTOFF and name == "and sigmoids" and method == "consistent":
                    report = Result(e, parts, None, log, fit(model, parts, "ols"), {"torque_cutoff": cutoff})
    assert report is not None
    e, noise = report.estimate, report.noise_floor
    assert noise is not None
    assert report.unconstrained is not None
    moving = e.model.compress(data.select(data.t < 7.5))
    standing = 1.0 - (moving.residuals(e.x) ** 2).sum() / (e.training.residuals(e.x) ** 2).sum()
    share = np.linalg.norm(noise * np.sqrt(e.training.counts)) / np.linalg.norm(e.training.norms)
    print(
        f"\nfloor: sensor noise below {TORQUE_CUTOFF:g} Hz is {100 * share:.2f} % of the torques, least squares without"
        f" constraints leave {100 * report.unconstrained.relative_error():.2f} %:\n"
        "the rest is what the model lacks, friction above all.\n"
        f"{100 * standing:.0f} % of the squared error is after 7.5 s, where the robot stands and torques creep;"
        f" while it moves: {100 * e.relative_error(moving):.2f} %"
    )
    print_unseen(log, models["and spring 2"])
    print(report.text(parameters=False))
    if out:
        report.save(out)
    return report


def print_unseen(log: Dataset, linear: RegressorModel) -> None:
    """Data not trained on, of the same log: seconds 5 to 7.5."""
    train, test = (
        between(log, *span).filtered(CUTOFF, torque_cutoff=TORQUE_CUTOFF, alike=True, decimate=DECIMATE)
        for span in ((0, 5), (5, 7.5))
    )
    model = fit_curves(linear, train, "sigmoid", SIGMOIDS).model
    e = fit(model, train, "consistent", mass_max=MASS)
    print(
        f"trained on 0 to 5 s: training {100 * e.relative_error():.2f} %, unseen 5 to 7.5 s"
        f" {100 * e.relative_error(test):.2f} %\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
