"""The boxes of a certificate as arrays, and the boxes of an earlier attempt from which a proof continues.

They are decided again, so that a file or a certificate of another claim can not prove anything: it is only a way to
divide the box.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import shown
from geomctrl.errors import ArgumentError
from geomctrl.files import read_arrays
from geomctrl.tracing.branch_and_bound import Divisible, Ends
from geomctrl.tracing.proofs.rechecking import clipped, uncovered

EXPECTED = "resume: expected a certificate, or a file that its `save` has written"


def arrays_of(claims: Any) -> dict[str, Any]:
    """The boxes of claims as arrays: statements, decided boxes, and those that are left."""
    claims = [c for c in claims if c.outcome is not None]
    out: dict[str, Any] = {"words": np.array([c.statement for c in claims])}
    for k, c in enumerate(claims):
        if c.outcome.leaves is None:
            raise ArgumentError(f"certificate: expected boxes that were kept, got {c.outcome.count}, too many to keep")
        for name, boxes in (("", c.outcome.leaves), ("left_", c.outcome.left)):
            if len(boxes[0]):
                out |= {f"{k}_{name}{end}": x for end, x in zip(("lo", "hi"), boxes)}
    return out


def earlier_boxes(resume: Any, statement: str, task: Divisible) -> Ends | None:
    """The boxes of an earlier attempt at this statement, decided or not; None if there is none.

    Raises ArgumentError if they do not cover the domain.
    """
    if resume is None:
        return None
    if not isinstance(resume, (str, Path)) and not hasattr(resume, "claims"):
        raise ArgumentError(f"{EXPECTED}, got {shown(resume)}")
    arrays = _read(resume) if isinstance(resume, (str, Path)) else arrays_of(resume.claims)
    statements = arrays["words"].tolist()
    if statement not in statements:
        return None
    k = statements.index(statement)
    parts = [(arrays[f"{k}_{name}lo"], arrays[f"{k}_{name}hi"]) for name in ("", "left_") if f"{k}_{name}lo" in arrays]
    if not parts:
        raise ArgumentError(f"{EXPECTED}, got one without boxes")
    sides = task.starts[0].shape[1]
    if any(lo.shape != hi.shape or lo.shape[1] != sides for lo, hi in parts):
        raise ArgumentError(f"{EXPECTED} for this claim, got boxes that do not have {sides} sides")
    lo, hi = (np.concatenate(x) for x in zip(*parts))
    return covering(f"{EXPECTED} for this claim", task.starts, lo, hi)


def uncovered_start(domain: np.ndarray, starts: Ends, lo: np.ndarray, hi: np.ndarray) -> str | None:
    """The reason why boxes do not cover `starts`, the domain or all ends of monotone parameters; None if they do."""
    for a, b in zip(*starts):
        fixed = (a == b) & (domain[0] < domain[1])
        mine = ((lo == a) & (hi == a))[:, fixed].all(1)
        reason = uncovered(np.stack([a, b]), lo[mine], hi[mine])
        if reason is not None:
            return reason
    return None


def covering(expected: str, starts: Ends, lo: np.ndarray, hi: np.ndarray) -> Ends:
    """Boxes within the domain of a claim. Raises ArgumentError unless they cover it."""
    domain = np.stack([starts[0].min(0), starts[1].max(0)])
    reason = uncovered_start(domain, starts, lo, hi)
    if reason is not None:
        raise ArgumentError(f"{expected}, got boxes that do not cover the domain: {reason:.200}")
    return clipped(domain, lo, hi)


def _read(path: str | Path) -> Mapping[str, Any]:
    try:
        arrays = read_arrays(Path(path))
        if "words" not in arrays or arrays["words"].dtype.kind != "U" or arrays["words"].ndim != 1:
            raise ValueError("no statements")
        if any(x.dtype.kind != "f" or x.ndim != 2 for name, x in arrays.items() if name[0].isdigit()):
            raise ValueError("boxes must be arrays of floats")
    except FileNotFoundError:
        raise ArgumentError(f"resume: no such file: {str(path)!r}") from None
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{EXPECTED}, got {shown(path)} ({error!s:.80})") from error
    return arrays
