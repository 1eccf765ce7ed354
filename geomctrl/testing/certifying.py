"""Certificates for users: claims about functions, proved on whole boxes and not at samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from geomctrl.arguments import count, number
from geomctrl.control.progress import shown
from geomctrl.tracing.proofs.certificates import Certificate as Certificate
from geomctrl.tracing.proofs.certificates import settle
from geomctrl.tracing.proofs.claims import Ellipsoid as Ellipsoid
from geomctrl.tracing.proofs.claims import claim_of
from geomctrl.tracing.proofs.rechecking import Recheck as Recheck
from geomctrl.tracing.proofs.rechecking import check
from geomctrl.tracing.traces import Trace

from .evidence import record


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
    and ArgumentError for an f that answers no number, for a box that is empty or infinite, and where the number of
    boxes that a proof takes is estimated to be beyond any budget. KeyboardInterrupt has an attribute `certificate`.
    """
    boxes = number("boxes", boxes, "a number of boxes, at least 1", lambda x: x >= 1.0)
    seconds = number("seconds", seconds, "seconds > 0", lambda x: x > 0.0)
    threads = processors() if threads is None else count("threads", threads, 1)
    claim = claim_of(f, box, outside=outside, where=where, strict=strict)
    with shown(progress, "certifying") as report:
        found = settle(claim, boxes=boxes, seconds=seconds, threads=threads, progress=report)
    if found:
        record("proved", f"{getattr(f, '__name__', 'f')} {'<' if strict else '<='} 0", boxes=found.boxes)
    return found


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


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
