"""Errors of moving and of resting joints apart: at rest, friction is whatever holds a joint, which no curve knows.

Static friction is bounded, not determined. What is certain of it is a band: friction holds a joint at rest with
anything up to what it resists with once it moves, Coulomb's friction and curves; it may break away at more. A torque at
rest is explained where one within that band makes up for what the rest of the model leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from geomctrl.identification.estimators import Estimate
from geomctrl.identification.logs import Dataset


def moving_and_resting(estimate: Estimate, data: Dataset) -> dict[str, float]:
    """At the rows used of a log at which joints move, and at those at which they rest, see `Dataset.at_rest`:
    moving_rmse, resting_rmse [N m], moving_error, resting_error (relative), nan without such rows; resting_share.

    resting_within: the share of resting rows that static friction within its band explains; resting_beyond: the
    relative error of resting rows that it can not make up for.
    """
    model, rests = estimate.model, data.at_rest()
    frictionless, band = _without_static(estimate)
    squares, sizes, counts = np.zeros((3, 2))
    within, beyond = 0, 0.0
    for blocks, tau, used, indices in model.stream(data, model.blocks):
        left = tau - model._times(blocks, estimate.x)
        for k, rows in enumerate((used & ~rests[indices], used & rests[indices])):
            squares[k] += np.sum(left[rows] ** 2)
            sizes[k] += np.sum(tau[rows] ** 2)
            counts[k] += rows.sum()
        held = np.abs(tau - model._times(blocks, frictionless)) - band  # by more than friction can, where positive
        held = held[used & rests[indices]]
        within += int((held <= 0.0).sum())
        beyond += float(np.sum(held[held > 0.0] ** 2))
    out = {"resting_share": float(counts[1] / max(counts.sum(), 1.0))}
    for k, kind in enumerate(("moving", "resting")):
        out[f"{kind}_rmse"] = float(np.sqrt(squares[k] / counts[k])) if counts[k] else float("nan")
        out[f"{kind}_error"] = float(np.sqrt(squares[k] / sizes[k])) if sizes[k] else float("nan")
    out["resting_within"] = float(within / counts[1]) if counts[1] else float("nan")
    out["resting_beyond"] = float(np.sqrt(beyond / sizes[1])) if sizes[1] else float("nan")
    return out


def _without_static(estimate: Estimate) -> tuple[np.ndarray, np.ndarray]:
    """(the parameters without Coulomb's friction and curves, what these can hold a joint with (nv,) [N m])."""
    model, x = estimate.model, estimate.x.copy()
    drives = np.zeros(len(model.transmission))
    actuators = {"coulomb": list(model.acts["coulomb"]), "curve": [c.actuator for c in model.curves]}
    for kind, acts in actuators.items():
        columns = model.indices(kind)
        np.add.at(drives, acts, x[columns])
        x[columns] = 0.0
    return x, np.abs(model.transmission).T @ np.maximum(drives, 0.0)


def first_line(errors: Mapping[str, Mapping[str, Any]]) -> str:
    """The error that counts, of the rows at which joints move, and that of all rows; in one line."""
    part, p = ("unseen", errors["test"]) if "test" in errors else ("training", errors["training"])
    if p["resting_share"] == 0.0 or not np.isfinite(p["moving_error"]):
        return f"{part} error {100 * p['relative_error']:.2f} %"
    moving, every, share, within = (
        100 * p[name] for name in ("moving_error", "relative_error", "resting_share", "resting_within")
    )
    return (
        f"{part} error {moving:.2f} % at the rows at which joints move; {every:.2f} % with those at rest, {share:.0f} %"
        f" of the rows, of which static friction within its band explains {within:.0f} %"
    )
