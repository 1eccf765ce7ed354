"""Certificates for users: claims about functions, proved on whole boxes and not at samples."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import count, number, read_only
from geomctrl.control.progress import shown
from geomctrl.errors import ArgumentError
from geomctrl.tracing.proofs.certificates import Certificate as Certificate
from geomctrl.tracing.proofs.certificates import settle
from geomctrl.tracing.proofs.claims import Claim, claim_of
from geomctrl.tracing.proofs.claims import Ellipsoid as Ellipsoid
from geomctrl.tracing.proofs.interpreted import valued
from geomctrl.tracing.proofs.rechecking import Recheck as Recheck
from geomctrl.tracing.proofs.rechecking import check
from geomctrl.tracing.symbols import Symbol
from geomctrl.tracing.traces import Trace
from geomctrl.tracing.untraceable import UntraceableError

from .evidence import record

STATES, CORNERS = 64, 16  # at which a trace is compared with Python
ALLOWED = 1e-9  # of the value, or of 1: what rounding may make of it


def certify(
    f: Callable[[Any], Any] | Trace,
    box: Any,
    *,
    outside: Ellipsoid | float | None = None,
    where: Sequence[Callable[[Any], Any]] | Callable[[Any], Any] = (),
    strict: bool = False,
    boxes: float = 2e7,
    seconds: float = 600.0,
    threads: int | None = None,
    progress: bool | Callable[[float], Any] = False,
) -> Certificate:
    """Prove that f(x) <= 0 (strict: < 0) for every x of a box, or find an x at which that is wrong.

        assert testing.certify(lambda x: np.sin(x[0]) - x[0], [(0.0, 3.0)])
        result = testing.certify(f, [(-1, 1), (-2, 2)], outside=0.1, where=lambda x: x[0] + x[1] - 1.0)

    f: a function of x (n,) in plain Python and numpy that answers a number. box: n pairs (lo, hi). Of the box count the
    x at which every function g of `where` has g(x) <= 0, and which lie `outside` a ball about 0 (its radius) or an
    `Ellipsoid`. boxes, seconds: the budget. threads: default all of this machine's. progress: True for a bar, or a
    function that is called with the share of the domain's volume that is settled.

    Branch and bound with interval arithmetic: f runs once on symbols, and what it computes is bounded on ever smaller
    boxes, by its enclosure and by a mean value form, with every rounding on the safe side. What is proved is about the
    real function that the code describes, its constants being exactly the doubles they are: not about what the code's
    own rounding adds to that.

    Returns a `Certificate`, true if f(x) <= 0 is proved. One that is refuted has a counterexample, verified rigorously;
    of one that is undecided it says what is left. Raises UntraceableError for an f that does not trace, with the line,
    or that computes something else there; and ArgumentError for an f that answers no number, for a box that is empty,
    infinite, or without a point to claim something of, and where the number of boxes that a proof takes is estimated to
    be beyond any budget. KeyboardInterrupt has an attribute `certificate`.
    """
    boxes = number("boxes", boxes, "a number of boxes, at least 1", lambda x: x >= 1.0)
    seconds = number("seconds", seconds, "seconds > 0", lambda x: x > 0.0)
    threads = processors() if threads is None else count("threads", threads, 1)
    claim = claim_of(f, box, outside=outside, where=where, strict=strict)
    if not isinstance(f, Trace):
        compare_with_python(f, claim)
    with shown(progress, "certifying") as report:
        certificate = settle(claim, boxes=boxes, seconds=seconds, threads=threads, progress=report)
    if certificate and certificate.bound == -math.inf:
        raise ArgumentError("outside, where: expected to leave some of the box, got a claim about no point at all")
    if certificate:
        record("proved", f"{getattr(f, '__name__', 'f')} {'<' if strict else '<='} 0", boxes=certificate.boxes)
    return certificate


def recheck(
    proof: str | Path | Certificate, *, processes: int = 1, progress: bool | Callable[[float], Any] = False
) -> Recheck:
    """Check a proof again, independently of what found it.

        testing.certify(f, box).save("proof.npz")
        assert testing.recheck("proof.npz")

    proof: a file that `Certificate.save` has written, or a `Certificate` that is proved. With python-flint's
    arithmetic, in more digits than doubles have, and code that shares nothing with the search for the proof; some
    milliseconds a box, in that many `processes`. What is checked is the claim as it is saved: that its code is that of
    a function of yours is between you and the file.

    Returns a `Recheck`, true if every box holds and they cover the domain, with the reason if not. Raises ImportError
    without python-flint (extra `certify`), and ArgumentError for what is no proof.
    """
    processes = count("processes", processes, 1)
    with shown(progress, "checking") as report:
        return check(proof, processes=processes, progress=report)


def compare_with_python(f: Callable[[Any], Any], claim: Claim, seed: int = 0) -> None:
    """Raise UntraceableError where f in Python is not what its trace computes, at random points of the domain, and
    ArgumentError where it has no value there."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([[0.5 * claim.lo + 0.5 * claim.hi], rng.uniform(claim.lo, claim.hi, (STATES, claim.n))])
    corners = rng.random((CORNERS, claim.n)) < 0.5
    x = np.concatenate([x, np.where(corners, claim.lo, claim.hi)])
    loads = {k: node[1:] for k, node in enumerate(claim.trace.graph.nodes) if node[0] == "load"}
    values = {k: x[:, claim.coordinates.index(tuple(place))] for k, place in loads.items()}
    graph = claim.trace.graph
    outputs = valued(graph, [Symbol(graph, k) for k in claim.trace.outputs], values, len(x))
    for y, (value, *constraints) in zip(x, outputs):
        if not all(g <= 0.0 for g in constraints) or math.isnan(value):
            continue
        with np.errstate(all="ignore"):
            try:
                called = float(np.asarray(f(read_only(y)), float).item())
            except Exception:  # where f raises it has no value
                called = math.nan
        if math.isnan(called):
            said = f"in the domain, and of constraints too, got nan at x = {y.tolist()}"
            raise ArgumentError(f"f: expected a number everywhere {said}")
        if called != value and not abs(called - value) <= ALLOWED * max(abs(called), 1.0):
            raise UntraceableError(f"f: is {value:.9g} traced, and {called:.9g} in Python, at x = {y.tolist()}")


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
