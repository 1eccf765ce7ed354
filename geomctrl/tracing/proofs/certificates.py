"""Certificates: what is known of a claim in the end, and how it can be checked again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl import files
from geomctrl.arguments import path_of
from geomctrl.errors import ArgumentError

from .branching import Branching, Left, estimate
from .claims import Claim
from .forms import Forms
from .points import exact_values, worst_points
from .saved_code import Code

FORMAT = 1  # of saved proofs
HOPELESS = 100.0  # times the budget: a proof that takes so many boxes is not begun


@dataclass(frozen=True)
class Violation:
    """A point x (n,) of the domain at which a claim is wrong.

    `lo`, `hi` enclose f(x), with every rounding on the safe side. Besides, `exact` is f(x) where the code is rational;
    else `digits` are a hundred of it, where python-flint is installed.
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
    """What became of the claim f(x) <= 0: `status` is "proved", "refuted" or "undecided"; true if it is proved.

    boxes: how many were bounded. operations: of one bound. seconds: all in all. bound: f is at most this wherever the
    claim is settled. counterexample: of a claim that is refuted. left: of one that is undecided, what remains (`Left`:
    boxes, their volume, its share of the domain's, f's largest upper bound on them). settled: (lo (k, n), hi (k, n),
    how (k,)) of the boxes that cover the rest, None where there were too many to be kept. out_of_time: whether the
    seconds ended it while boxes of the budget were left, so that a faster machine may decide it.
    """

    claim: Claim
    status: str
    boxes: int
    operations: int
    seconds: float
    bound: float
    counterexample: Violation | None = None
    left: Left | None = None
    settled: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    out_of_time: bool = False

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
        return f"undecided: {claim}: {self.left} ({cost}{ended})"

    __repr__ = __str__

    def save(self, path: str | Path) -> Path:
        """Write the proof as an npz file, whole or not at all: claim, code and boxes, for `testing.recheck`.

        Raises ArgumentError for a claim that is not proved, or whose boxes were too many to be kept.
        """
        path, arrays = path_of("path", path), self.arrays()
        with files.whole(path) as file:
            np.savez(file, **arrays)
        return path

    def arrays(self) -> dict[str, Any]:
        """What `save` writes."""
        if not self:
            raise ArgumentError(f"certificate: expected one that is proved, got one that is {self.status}")
        if self.settled is None:
            raise ArgumentError(f"certificate: expected boxes that were kept, got {self.boxes}, too many to keep")
        return {**saved_claim(self.claim), **dict(zip(("lo", "hi", "how"), self.settled))}


def saved_claim(claim: Claim) -> dict[str, Any]:
    """A claim as arrays: nodes of the code, operands before what is computed of them, and the domain."""
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
    text = json.dumps(
        {
            "format": FORMAT,
            "geomctrl": version("geomctrl"),
            "nodes": nodes,
            "outputs": [row[index] for index in trace.outputs],
            "flag": None if trace.flag is None else row[trace.flag],
            "coordinates": claim.coordinates,
            "strict": claim.strict,
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
    progress: Callable[[float], Any] = lambda fraction: None,
    dimensions: str = "box",
) -> Certificate:
    """Prove the claim, refute it, or say what is left after so many boxes or seconds.

    Raises ArgumentError, naming `dimensions`, where the number of boxes that a proof takes is estimated to be more than
    HOPELESS times `boxes`. KeyboardInterrupt has an attribute `certificate` with what is known by then.
    """
    started, rng = time.perf_counter(), np.random.default_rng(seed)
    forms = Forms(claim)
    branching = Branching(claim, forms, threads=threads)

    def certificate() -> Certificate:
        return _certificate(branching, time.perf_counter() - started)

    try:
        branching.step(1)  # most of what is easy is settled at once
        if not _over(branching):
            _try_points(branching, worst_points(claim, rng))
        if not _over(branching):
            _refuse_hopeless(branching, boxes, rng, dimensions)
            branching.run(boxes, seconds - (time.perf_counter() - started), progress)
    except (KeyboardInterrupt, SystemExit) as error:
        error.certificate = certificate()  # pyright: ignore[reportAttributeAccessIssue]
        raise
    return certificate()


def _over(branching: Branching) -> bool:
    return branching.proved or branching.counterexample is not None


def _try_points(branching: Branching, points: np.ndarray) -> None:
    """A counterexample among points where f seems to be large."""
    if len(points):
        bounds = branching.forms(points, points)
        refuting = branching.refuting(bounds)
        if refuting.any():
            branching.counterexample = points[np.argmax(refuting)]


def _refuse_hopeless(branching: Branching, boxes: float, rng: np.random.Generator, dimensions: str) -> None:
    needed, n = estimate(branching, rng), branching.claim.n
    if needed > HOPELESS * boxes:
        raise ArgumentError(
            f"{dimensions}: expected a domain that {boxes:.3g} boxes can settle, got one of {n} dimensions that takes"
            f" more than {needed:.1e}; no counterexample was found. Give a smaller box, a larger neighbourhood of the"
            " points where f nears 0 to leave out, or more `boxes`"
        )


def _certificate(branching: Branching, seconds: float) -> Certificate:
    claim, x = branching.claim, branching.counterexample
    status = "refuted" if x is not None else "proved" if branching.proved else "undecided"
    settled = branching.settled
    return Certificate(
        claim=claim,
        status=status,
        boxes=branching.count,
        operations=branching.forms.trace.operations,
        seconds=seconds,
        bound=branching.bound,
        counterexample=None if x is None else _counterexample(branching, x),
        left=branching.left() if status == "undecided" else None,
        settled=settled.boxes() if settled.complete and settled.lo else None,
        out_of_time=status == "undecided" and branching.out_of_time,
    )


def _counterexample(branching: Branching, x: np.ndarray) -> Violation:
    claim, bounds = branching.claim, branching.forms(x[None], x[None])
    exact = exact_values(claim, x)
    digits = _digits(claim, x) if exact is None else None
    return Violation(x, float(bounds.value[0]), float(bounds.upper[0]), None if exact is None else exact[0], digits)


def _digits(claim: Claim, x: np.ndarray) -> str | None:
    """f(x) to a hundred digits, where python-flint is there and finds the claim wrong too."""
    try:
        f, *constraints = Code(json.loads(saved_claim(claim)["claim"]), claim.numbers, bits=400).at(x.tolist())
    except ImportError:
        return None
    wrong = f is not None and (f[0] >= 0 if claim.strict else f[0] > 0)
    inside = all(g is not None and g[1] <= 0 for g in constraints)
    return f[0].str(100, radius=False) if f is not None and wrong and inside else None
