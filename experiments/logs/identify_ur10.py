"""UR10: train on the first 70 % of the log, and test on the rest, which is filtered separately.

    relative error = |tau - tau_hat| / |tau|, 2-norms over all joints and rows; tau: motor current times drive gain,
    low-passed at the cut-off printed (zero phase, amplitude 1/2 there), the regressor alike; every second row kept.

The model: ten inertial parameters a link, viscous and Coulomb friction, torque offsets. Coulomb's step is tanh(v / s);
s and the weight of the prior (5 kg a link, nothing known) are chosen by cross-validation over three stretches of the
training part. The trajectory does not repeat itself, so that a split in time is fair.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from geomctrl.identification import RegressorModel, Result, fit
from geomctrl.identification.logs.parts import detected_period

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.logs import between, held_out_error, ur10, ur10_log

CUTOFF, DECIMATE, MASS = 6.0, 2, 20.0  # Hz, rows, kg a link


def main(out: str | None = None) -> Result:
    log, robot = ur10_log(), ur10()
    print(f"UR10: {len(log)} samples at {log.rate:.0f} Hz, period: {detected_period(log)}")
    train, test = log.split(0.7)
    ready = [x.filtered(CUTOFF, alike=True, decimate=DECIMATE) for x in (train, test)]
    third = (train.t[-1] - train.t[0]) / 3.0
    folds = [between(ready[0], k * third, (k + 1) * third) for k in range(3)]
    tried = {}
    for s in (0.01, 0.02, 0.03, 0.05, 0.08):
        candidate = RegressorModel(robot, smoothing=s)
        parts = [candidate.compress(f) for f in folds]
        for r in (1e-6, 1e-5, 1e-4):
            tried[s, r] = held_out_error(
                candidate, parts, "consistent", mass_max=MASS, weights="noise", regularization=r
            )
    smoothing, regularization = min(tried, key=lambda pair: tried[pair])
    print(
        f"by cross-validation ({100 * tried[smoothing, regularization]:.2f} %): Coulomb width {smoothing}"
        f" rad/s, prior {regularization:g}"
    )
    model = RegressorModel(robot, smoothing=smoothing)
    options = {"mass_max": MASS, "regularization": regularization}
    print(f"\n{'cut-off':>8} {'filter on':>18} {'method':>24} {'training':>9} {'unseen':>9} {'RMSE':>8}  physical")
    report = None
    for cutoff in (4.0, CUTOFF, 8.0, 12.0):
        for alike in (True, False):
            parts = [x.filtered(cutoff, alike=alike, decimate=DECIMATE) for x in (train, test)]
            seen, unseen = (model.compress(x) for x in parts)
            for name, method, more in (
                ("least squares", "ols", {}),
                ("consistent", "consistent", options),
                ("consistent, weighted", "consistent", {**options, "weights": "noise"}),
            ):
                e = fit(model, seen, method, **more)
                rmse = np.linalg.norm(unseen.residuals(e.x)) / np.sqrt(unseen.counts.sum())
                where = "torque, regressor" if alike else "torque, positions"
                errors = f"{100 * e.relative_error():8.2f}% {100 * e.relative_error(unseen):8.2f}%"
                print(f"{cutoff:7g}  {where:>18} {name:>24} {errors} {rmse:8.3f}  {e.is_physical}")  # fmt: skip
                if cutoff == CUTOFF and alike and name == "consistent, weighted":
                    free = fit(model, parts[0], "ols")
                    report = Result(e, parts[0], parts[1], train, free, {"torque_cutoff": cutoff})
    assert report is not None
    # the floor of this class of models: the same least squares allowed to see the unseen part
    best = fit(model, report.estimate.training + model.compress(ready[1]), "ols")
    print(f"\nfloor: least squares on both parts together leaves {100 * best.relative_error():.2f} % of both")
    print("       (friction that depends on load and temperature, not sensor noise: see the floor's column below)\n")
    print(report.text(parameters=False))
    if out:
        report.save(out)
    return report


if __name__ == "__main__":
    main(*sys.argv[1:2])
