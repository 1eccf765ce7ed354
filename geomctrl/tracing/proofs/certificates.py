"""`Certificate` and `Violation`: the result of proving a claim, which can be saved and checked again."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl import files
from geomctrl.arguments import path_of
from geomctrl.errors import ArgumentError
from geomctrl.tracing.branch_and_bound import BranchAndBound, Ends, Progress, Spread, no_progress

from .claims import Claim
from .forms import BoundedClaim
from .points import exact_values, worst_points
from .saved_code import Code

FORMAT = 1  # version of the file format
MAX_BOX_RATIO = 100.0  # ratio of the estimated number of boxes to the budget from which a proof is not started


@dataclass
class UnsettledBoxes:
    """Unsettled boxes. share: of the domain's volume; worst: an upper bound of f on them."""

    lo: np.ndarray
    hi: np.ndarray
    volume: float
    share: float
    worst: float

    def __str__(self) -> str:
        boxes = f"{self.volume:.3g} in {len(self.lo)} boxes"
        return f"{self.share:.3g} of the volume is left, {boxes}, where f <= {self.worst:.6g}"


@dataclass(frozen=True)
class Violation:
    """A point x (n,) of the domain that violates a claim.

    `lo`, `hi` enclose f(x) with outward rounding. `exact` is f(x) if the code is rational; otherwise `digits` are a
    hundred digits of it, if python-flint is installed.
    """

    x: np.ndarray
    lo: float
    hi: float
    exact: Fraction | None = None
    digits: str | None = None

    @property
    def verified(self) -> str:
        if self.exact is not None:
            return "in rational arithmetic"
        return "in outward rounded arithmetic" + ("" if self.digits is None else " and to a hundred digits")

    def __str__(self) -> str:
        value = f"{float(self.exact):.17g}" if self.exact is not None else f"{self.lo:.17g}"
        x = ", ".join(map(repr, self.x.tolist()))
        return f"f(x) = {value} at x = [{x}], verified {self.verified}"


@dataclass(frozen=True, eq=False)
class Certificate:
    """The result for a claim f(x) <= 0; true if it is proved.

    Attributes
    ----------
    status : str
        "proved", "refuted" or "undecided".
    boxes, operations, seconds : int, int, float
        Number of bounded boxes, operations per bound, total time.
    bound : float
        Upper bound of f wherever the claim is settled.
    counterexample : Violation or None
        Of a refuted claim.
    left : Left or None
        What remains of an undecided claim: boxes, volume, fraction of the domain, largest upper bound of f.
    settled : tuple or None
        (lo (k, n), hi (k, n), kind (k,)) of the settled boxes; None if there were too many to keep.
    out_of_time : bool
        Whether the time limit ended the proof before the budget of boxes was used; a faster machine may decide it.
    estimate : float
        Approximate lower bound of the number of boxes of a proof, from random paths; 0 for easy claims.
    """

    claim: Claim
    status: str
    boxes: int
    operations: int
    seconds: float
    bound: float
    counterexample: Violation | None = None
    left: UnsettledBoxes | None = None
    settled: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    out_of_time: bool = False
    estimate: float = 0.0

    def __bool__(self) -> bool:
        return self.status == "proved"

    def __str__(self) -> str:
        claim = f"f(x) {self.claim.relation} 0 on a box of {self.claim.n} dimensions"
        cost = f"{self.boxes} boxes, {self.seconds:.3g} s"
        if self.status == "proved":
            return f"proved: {claim}, f <= {self.bound:.6g} ({cost})"
        if self.counterexample is not None:
            return f"refuted: {claim}: {self.counterexample} ({cost})"
        ended = "; ended by its seconds, not by its boxes" if self.out_of_time else ""
        ended += f"; estimated: at least {self.estimate:.2g} boxes" if self.estimate else ""
        return f"undecided: {claim}: {self.left} ({cost}{ended})"

    __repr__ = __str__

    def save(self, path: str | Path) -> Path:
        """Write claim, code and boxes of the proof as an npz file for `testing.recheck`; a failure leaves nothing.

        An undecided certificate is written for `certify(resume=path)`. Raises ArgumentError if the claim is refuted, or
        if there were too many boxes to keep.
        """
        path, arrays = path_of("path", path), self._arrays() if self.left is None else self._open()
        with files.whole(path) as file:
            np.savez(file, **arrays)
        return path

    def _open(self) -> dict[str, Any]:
        """The boxes of an undecided certificate."""
        none = np.empty((0, self.claim.n))
        lo, hi = (none, none) if self.settled is None else self.settled[:2]
        left = (none, none) if self.left is None else (self.left.lo, self.left.hi)
        return {"open_lo": np.concatenate([lo, left[0]]), "open_hi": np.concatenate([hi, left[1]])}

    def _arrays(self) -> dict[str, Any]:
        """The contents of the file that `save` writes."""
        if not self:
            raise ArgumentError(f"certificate: expected one that is proved, got one that is {self.status}")
        if self.settled is None:
            raise ArgumentError(f"certificate: expected boxes that were kept, got {self.boxes}, too many to keep")
        return {"claims": 1, **saved_claim(self.claim), **dict(zip(("lo", "hi", "how"), self.settled))}


def saved_claim(claim: Claim, rates: int = 0, duration: float = 0.0) -> dict[str, Any]:
    """A claim as arrays: nodes of the code, operands first, and the domain.

    rates: of a claim about motions, the number of the last outputs, which are rates; see `saved_motions`.
    """
    trace = claim.trace
    needed = trace.graph.needed(trace.ends)
    row = {index: k for k, index in enumerate(needed)}
    nodes: list[list[Any]] = []
    for index in needed:
        op, *rest = trace.graph.nodes[index]
        if op == "const":
            nodes.append([op, float.hex(rest[0]) if isinstance(rest[0], float) else rest[0]])
        else:
            nodes.append([op, *(rest if op == "load" else [row[k] for k in rest])])
    outputs = [row[index] for index in trace.outputs]
    cut = len(outputs) - rates
    motion = {"rates": outputs[cut:], "duration": float.hex(duration)} if rates else {}
    text = json.dumps(
        {
            "format": FORMAT,
            "geomctrl": version("geomctrl"),
            "nodes": nodes,
            "outputs": outputs[:cut],
            "flag": None if trace.flag is None else row[trace.flag],
            "coordinates": claim.coordinates,
            "strict": claim.strict,
            **motion,
        }
    )
    return {"claim": text, "numbers": claim.numbers, "domain": np.stack([claim.lo, claim.hi])}


def settle(
    claim: Claim,
    *,
    boxes: float = 2e7,
    seconds: float = 600.0,
    threads: int = 1,
    seed: int = 0,
    progress: Progress = no_progress,
    dimensions: str = "box",
    first: Ends | None = None,
    spread: Spread | None = None,
) -> Certificate:
    """Prove or refute the claim, or report what is left after so many boxes or seconds.

    Raises ArgumentError, naming `dimensions`, if the estimated number of boxes exceeds MAX_BOX_RATIO times `boxes`.
    KeyboardInterrupt has an attribute `certificate` with the state at that time. first: boxes of an earlier attempt.
    spread: settles boxes in other processes.
    """
    started, rng = time.perf_counter(), np.random.default_rng(seed)
    bounded = BoundedClaim(claim, threads)
    search = BranchAndBound(bounded, first)
    try:
        search.step(1)  # settles most easy claims
        if search.status == "undecided":
            _try_points(bounded, search, worst_points(claim, rng))
        if search.status == "undecided":
            _require_affordable(search, claim.n, boxes, rng, dimensions)
            search.run(boxes, seconds - (time.perf_counter() - started), progress, spread)
    except (KeyboardInterrupt, SystemExit) as error:
        error.certificate = _certificate(bounded, search, started)  # pyright: ignore[reportAttributeAccessIssue]
        raise
    return _certificate(bounded, search, started)


def _try_points(bounded: BoundedClaim, search: BranchAndBound, points: np.ndarray) -> None:
    """A counterexample among points with large f."""
    if len(points):
        refuting = bounded.refuting(bounded.forms(points, points))
        if refuting.any():
            search.violation = points[np.argmax(refuting)]


def _require_affordable(
    search: BranchAndBound, n: int, boxes: float, rng: np.random.Generator, dimensions: str
) -> None:
    needed = search.estimate(rng)
    if needed > MAX_BOX_RATIO * boxes:
        raise ArgumentError(
            f"{dimensions}: expected a domain that {boxes:.3g} boxes can settle, got one of {n} dimensions that takes"
            f" more than {needed:.1e}; no counterexample was found. Give a smaller box, a larger neighbourhood of the"
            " points where f nears 0 to leave out, or more `boxes`"
        )


def _certificate(bounded: BoundedClaim, search: BranchAndBound, started: float) -> Certificate:
    claim, x, status, left = bounded.claim, search.violation, search.status, None
    if status == "undecided":
        lo, hi = search.left
        share, sides = search.share_left, claim.hi - claim.lo
        volume = share * float(sides[sides > 0.0].prod())
        left = UnsettledBoxes(lo, hi, volume, share, bounded.worst(lo, hi))
    return Certificate(
        claim=claim,
        status=status,
        boxes=search.count,
        operations=bounded.forms.trace.operations,
        seconds=time.perf_counter() - started,
        bound=search.bound,
        counterexample=None if x is None else _counterexample(bounded, x),
        left=left,
        settled=search.leaves,
        out_of_time=status == "undecided" and search.out_of_time,
        estimate=search.more,
    )


def _counterexample(bounded: BoundedClaim, x: np.ndarray) -> Violation:
    claim, bounds = bounded.claim, bounded.forms(x[None], x[None])
    exact = exact_values(claim, x)
    digits = _digits(claim, x) if exact is None else None
    return Violation(x, float(bounds.value[0]), float(bounds.upper[0]), None if exact is None else exact[0], digits)


def _digits(claim: Claim, x: np.ndarray) -> str | None:
    """f(x) to a hundred digits, if python-flint is installed and confirms the violation."""
    try:
        f, *constraints = Code(json.loads(saved_claim(claim)["claim"]), claim.numbers, bits=400).at(x.tolist())
    except ImportError:
        return None
    wrong = f is not None and (f[0] >= 0 if claim.strict else f[0] > 0)
    inside = all(g is not None and g[1] <= 0 for g in constraints)
    return f[0].str(100, radius=False) if f is not None and wrong and inside else None
