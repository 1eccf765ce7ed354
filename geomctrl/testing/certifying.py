"""`certify` and `recheck`: proofs of inequalities for all points of a box, by interval arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import count, listed, read_only, shown
from geomctrl.control.compiled.symbolic_copies import SymbolicCopies
from geomctrl.control.progress import progress_function, progress_with_cost
from geomctrl.control.sweeping.executors import cores
from geomctrl.errors import ArgumentError
from geomctrl.files import read_arrays
from geomctrl.other_names import named_arguments
from geomctrl.tracing.proofs.certificates import Certificate as Certificate
from geomctrl.tracing.proofs.certificates import settle
from geomctrl.tracing.proofs.claims import Claim, claim_of
from geomctrl.tracing.proofs.claims import Ellipsoid as Ellipsoid
from geomctrl.tracing.proofs.forms import BoundedClaim
from geomctrl.tracing.proofs.interpreted import valued
from geomctrl.tracing.proofs.rechecking import Recheck as Recheck
from geomctrl.tracing.proofs.rechecking import check
from geomctrl.tracing.traces import Trace
from geomctrl.tracing.untraceable import UntraceableError

from .certificates.resuming import covering
from .certificates.running import spreading
from .evidence import record
from .settings import Budget, budget_of

STATES, CORNERS = 64, 16  # points at which a trace is compared with Python
ROUNDING_TOLERANCE = 1e-9  # relative difference (absolute below 1) that rounding may cause


@named_arguments()
def certify(
    f: Callable[[Any], Any] | Trace,
    box: Any,
    *,
    outside: Ellipsoid | float | None = None,
    where: Sequence[Callable[[Any], Any]] | Callable[[Any], Any] = (),
    strict: bool = False,
    budget: Budget | int = 20_000_000,
    threads: int | None = None,
    progress: bool | Callable[[float], Any] = False,
) -> Certificate:
    """Prove f(x) <= 0 (strict: < 0) for every x of a box, or find an x that violates it.

    Parameters
    ----------
    f : callable
        A function of x (n,) in plain Python and numpy that returns a number.
    box : sequence of n pairs (lo, hi)
        The box.
    outside : Ellipsoid or float, optional
        Exclude an ellipsoid, or a ball about 0 with this radius.
    where : callable or sequence of callables
        Constraints: only points with g(x) <= 0 for every g count.
    strict : bool
        Prove f(x) < 0.
    budget : Budget or int
        Limits of the proof, or only the number of boxes.
    threads : int, optional
        Number of threads; default all of this machine.
    progress : bool or callable
        True for a bar, or a function that is called with the settled fraction of the volume.

    Returns
    -------
    Certificate
        True if the claim is proved. `status` is "proved", "refuted" or "undecided"; `bound` an upper bound of f where
        the claim is settled; `counterexample` is rigorously verified; `left` is what remains of an undecided claim;
        `boxes` and `seconds` are the cost, `estimate` the estimated number of boxes. `save(path)` writes a proof for
        `recheck`, or what is left for `Budget(resume=path)`.

    Raises
    ------
    UntraceableError
        With the line, if f can not be traced or if its trace computes something else than Python.
    ArgumentError
        If f returns no number, if the box is empty, infinite or completely excluded, or if the estimated number of
        boxes exceeds any budget.

    Notes
    -----
    Branch and bound with interval arithmetic: f runs once with symbols, and its trace is enclosed on ever smaller
    boxes, by interval evaluation and a mean value form, with outward rounding. The proof is about the real function
    that the code describes, with floating-point constants as exact numbers. It does not cover rounding in the code
    itself. KeyboardInterrupt has an attribute `certificate`.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import testing
    >>> bool(testing.certify(lambda x: np.sin(x[0]) - x[0], [(0.0, 3.0)]))
    True
    """
    budget = budget_of(budget)
    threads = cores() if threads is None else count("threads", threads, 1)
    if isinstance(f, Trace):
        claim = claim_of(f, box, outside=outside, where=where, strict=strict)
    else:
        constraints = [where] if callable(where) else listed("where", where)
        claim = _traced_claim(f, box, constraints, outside, strict)
        compare_with_python([f, *constraints], claim)
    with progress_with_cost(progress, "certifying") as report:
        first = None if budget.resume is None else _earlier(budget.resume, claim)
        certificate = settle(
            claim, boxes=budget.boxes, seconds=budget.seconds, threads=threads, seed=budget.seed, progress=report,
            first=first,
            spread=None if budget.executor is None else spreading(budget.executor, (BoundedClaim, (claim,)), "f"),
        )  # fmt: skip
    if certificate and certificate.bound == -math.inf:
        raise ArgumentError("outside, where: expected a domain with at least one point, got an empty one")
    if certificate:
        record("proved", f"{getattr(f, '__name__', 'f')} {'<' if strict else '<='} 0", boxes=certificate.boxes)
    return certificate


def _traced_claim(
    f: Callable[[Any], Any], box: Any, constraints: list[Any], outside: Ellipsoid | float | None, strict: bool
) -> Claim:
    """The claim, traced on copies of its functions. Raises UntraceableError if a call changes what it can reach."""
    copies = SymbolicCopies(advice="a claim is about a function of x alone: compute the value from x in each call")
    clones = [copies.of(x, name) for x, name in zip([f, *constraints], _names(constraints))]
    with copies.used():
        return claim_of(clones[0], box, outside=outside, where=clones[1:], strict=strict)


def _names(constraints: list[Any]) -> list[str]:
    """The arguments of `certify` that hold f and the constraints."""
    return ["f", *(f"where[{k}]" for k in range(len(constraints)))]


def _earlier(resume: Any, claim: Claim) -> tuple[np.ndarray, np.ndarray]:
    """The boxes of an earlier attempt. Raises ArgumentError unless they cover the box."""
    expected = "resume: expected an undecided Certificate of this box, or a file that its `save` has written"
    try:
        if isinstance(resume, Certificate):
            arrays = resume._open()
        else:
            arrays = read_arrays(Path(resume))
        lo, hi = (np.asarray(arrays[name], float) for name in ("open_lo", "open_hi"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{expected}, got {shown(resume)} ({error!s:.80})") from error
    if lo.shape != hi.shape or lo.shape != (len(lo), claim.n):
        raise ArgumentError(f"{expected}, got another one: boxes {lo.shape}, {hi.shape}")
    return covering(expected, (claim.lo[None], claim.hi[None]), lo, hi)


@named_arguments()
def recheck(
    proof: str | Path | Certificate, *, processes: int = 1, progress: bool | Callable[[float], Any] = False
) -> Recheck:
    """Check a proof again, independently of the search that produced it.

        testing.certify(f, box).save("proof.npz")
        assert testing.recheck("proof.npz")

    Parameters
    ----------
    proof : path or Certificate
        A file of `Certificate.save`, or a proved certificate.
    processes : int, optional
        Number of processes. A box takes some milliseconds.
    progress : bool or function, optional
        True draws a bar in the terminal. A function receives the fraction of the boxes that has been checked.

    Returns
    -------
    Recheck
        True if the inequality holds on every box and the boxes cover the domain; otherwise with the reason.

    Raises
    ------
    ImportError
        Without python-flint (extra `certify`).
    ArgumentError
        If the argument is no proof.

    Notes
    -----
    The check uses the arithmetic of python-flint with more digits than floating-point numbers, and shares no code with
    the search. It checks the claim in the file; that its code is that of your function is not checked.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import testing
    >>> proof = testing.certify(lambda x: np.sin(x[0]) - x[0], [(0.0, 3.0)])
    >>> bool(testing.recheck(proof))
    True
    """
    processes = count("processes", processes, 1)
    with progress_function(progress, "checking") as report:
        return check(proof, processes=processes, progress=report)


def compare_with_python(functions: list[Callable[[Any], Any]], claim: Claim, seed: int = 0) -> None:
    """Compare f and the constraints, in this order, with their traces at random points of the box.

    Raises UntraceableError if they differ, and ArgumentError if f is undefined in the domain."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([[0.5 * claim.lo + 0.5 * claim.hi], rng.uniform(claim.lo, claim.hi, (STATES, claim.n))])
    corners = rng.random((CORNERS, claim.n)) < 0.5
    x = np.concatenate([x, np.where(corners, claim.lo, claim.hi)])
    loads = {k: node[1:] for k, node in enumerate(claim.trace.graph.nodes) if node[0] == "load"}
    values = {k: x[:, claim.coordinates.index(tuple(place))] for k, place in loads.items()}
    graph = claim.trace.graph
    outputs = valued(graph, claim.trace.symbols, values, len(x))
    (f, *constraints), (name, *names) = functions, _names(functions[1:])
    for y, (value, *bounds) in zip(x, outputs):
        for g, other, bound in zip(constraints, names, bounds):
            called, _ = _called(g, y)
            _require_agreement(other, bound, called, y)
        if not all(bound <= 0.0 for bound in bounds) or math.isnan(value):
            continue
        called, got = _called(f, y)
        if math.isnan(called):
            place = f"in the domain, and of constraints too, got {got} at x = {y.tolist()}"
            raise ArgumentError(f"f: expected a number everywhere {place}")
        _require_agreement(name, value, called, y)


def _called(f: Callable[[Any], Any], x: np.ndarray) -> tuple[float, str]:
    """The value of f in Python and its text; nan where f raises, because it is undefined there."""
    with np.errstate(all="ignore"):
        try:
            called = float(np.asarray(f(read_only(x)), float).item())
        except Exception as error:
            return math.nan, repr(error)
    return called, repr(called)


def _require_agreement(name: str, value: float, called: float, x: np.ndarray) -> None:
    both_undefined = math.isnan(value) and math.isnan(called)
    if called != value and not both_undefined and not abs(called - value) <= ROUNDING_TOLERANCE * max(abs(called), 1.0):
        raise UntraceableError(
            f"{name}: the traced function returns {value:.9g}, Python {called:.9g}, at x = {x.tolist()}"
        )
