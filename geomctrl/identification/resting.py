"""Errors of moving and of resting joints apart: at rest, friction is whatever holds a joint, which no curve knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .data import Dataset
from .estimators import Estimate


def moving_and_resting(estimate: Estimate, data: Dataset) -> dict[str, float]:
    """At the rows used of a log at which joints move, and at those at which they rest, see `Dataset.at_rest`:
    moving_rmse, resting_rmse [N m], moving_error, resting_error (relative), nan without such rows; resting_share.
    """
    model, rests = estimate.model, data.at_rest()
    squares, sizes, counts = np.zeros((3, 2))
    for blocks, tau, used, at in model.stream(data, model.blocks):
        left = tau - model._times(blocks, estimate.x)
        for k, rows in enumerate((used & ~rests[at], used & rests[at])):
            squares[k] += np.sum(left[rows] ** 2)
            sizes[k] += np.sum(tau[rows] ** 2)
            counts[k] += rows.sum()
    out = {"resting_share": float(counts[1] / max(counts.sum(), 1.0))}
    for k, kind in enumerate(("moving", "resting")):
        out[f"{kind}_rmse"] = float(np.sqrt(squares[k] / counts[k])) if counts[k] else float("nan")
        out[f"{kind}_error"] = float(np.sqrt(squares[k] / sizes[k])) if sizes[k] else float("nan")
    return out


def error_lines(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Two lines below a table of errors by part; none where nothing rests."""
    if all(p["resting_share"] == 0.0 for p in parts.values()):
        return []
    shares = ", ".join(f"{100 * p['resting_share']:.0f}" for p in parts.values())
    lines = []
    for kind, label in (("moving", "moving"), ("resting", f"at rest, {shares} %")):
        cells = [
            f"{p[f'{kind}_rmse']:14.4g}{100 * p[f'{kind}_error']:9.2f}%"
            if np.isfinite(p[f"{kind}_rmse"])
            else f"{'-':>14}{'-':>10}"
            for p in parts.values()
        ]
        lines.append(f"{label:24}" + "".join(cells))
    return lines
