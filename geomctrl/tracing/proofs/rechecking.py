"""Independent check of saved proofs, with other arithmetic, other code and another library (python-flint).

A file has one claim or several. The check compares the ends of boxes exactly, to see that they cover the domain. For
every box it checks with the saved code of f that f is not positive, or that a constraint is violated on the whole box.
A box may be divided further. A claim may be about motions, see `saved_motions`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from geomctrl.arguments import path_of, shown
from geomctrl.errors import ArgumentError
from geomctrl.files import read_arrays

from .saved_code import Code
from .saved_motions import motion_of
from .second_order import Expansions

EVALUATIONS = 4000  # largest number per box
LARGEST_FACTOR = 1e9  # of a constraint
FIELDS = {"claim", "numbers", "domain", "lo", "hi"}  # the arrays of a claim
NAME = re.compile(r"claim([1-9][0-9]{0,8})_(\w+)")  # of an array of a further claim
OTHERS = re.compile(r"claims|words|how|[0-9]+_(left_)?(lo|hi)")  # arrays for another use


@dataclass(frozen=True)
class Recheck:
    """The result of checking a proof; true if all its claims are confirmed, otherwise `reason` says why not."""

    reason: str | None
    claims: int
    boxes: int
    evaluations: int
    seconds: float

    def __bool__(self) -> bool:
        return self.reason is None

    def __str__(self) -> str:
        claims = f"{self.claims} claim{'s' if self.claims != 1 else ''}"
        cost = f"{claims}, {self.boxes} boxes, {self.evaluations} evaluations with python-flint, {self.seconds:.3g} s"
        return f"{'confirmed' if self else f'refused: {self.reason}'} ({cost})"

    __repr__ = __str__


class Proof:
    """A saved proof: the code of the claim, its domain, and the boxes (k, n) that should cover it.

    Of a claim about motions, domain and boxes have the time as a further side.
    """

    def __init__(self, arrays: Any):
        said = json.loads(str(arrays["claim"]), object_pairs_hook=_without_repetition)
        if type(said["format"]) is not int or said["format"] != 1:
            raise ValueError(f"format {said['format']!r}")
        if type(said["strict"]) is not bool:
            raise ValueError(f"strict: {said['strict']!r}")
        self.strict = said["strict"]
        numbers, self.domain, self.lo, self.hi = (_floats(arrays, name) for name in ("numbers", "domain", "lo", "hi"))
        self.code = Code(said, numbers.ravel())
        self.motion, n = motion_of(said, self.code), self.code.n
        if self.motion is not None:
            n -= 1 + len(self.motion.rates)
        if self.domain.shape != (2, n) or self.lo.shape != self.hi.shape or self.lo.shape[1:] != (n,):
            raise ValueError(f"boxes {self.lo.shape}, {self.hi.shape} of a domain {self.domain.shape}")
        if not (self.domain[0] <= self.domain[1]).all():
            raise ValueError("an empty domain")
        if self.motion is not None:
            self.lo, self.hi = (np.insert(x, n, y, 1) for x, y in ((self.lo, 0.0), (self.hi, self.motion.duration)))
            self.domain = np.insert(self.domain, n, [0.0, self.motion.duration], 1)
        loads = {self.code.column.get(tuple(place)) for op, *place in self.code.nodes if op == "load"}
        self.used = np.isin(np.arange(self.domain.shape[1]), [k for k in loads if k is not None])


def check(proof: Any, *, processes: int = 1, progress: Callable[[float], Any] = lambda fraction: None) -> Recheck:
    """Check a saved proof, a file or an object with `arrays`, box by box; see `testing.recheck`."""
    started = time.perf_counter()
    with _naming(proof):
        claims = claims_of(_arrays(proof))
        proofs = [Proof(arrays) for arrays in claims]
    count, done, evaluations = sum(len(x.lo) for x in proofs), 0, 0
    reason = next((r for x in proofs if (r := uncovered(x.domain, x.lo, x.hi)) is not None), None)
    for arrays, read in zip(claims, proofs if reason is None else ()):
        with closing(in_processes(processes, Proof, arrays, _settled, len(read.lo))) as verdicts:
            for k in range(len(read.lo)):
                with _naming(proof):
                    settled, taken = next(verdicts)
                evaluations += taken
                if not settled:
                    box = list(zip(read.lo[k].tolist(), read.hi[k].tolist()))
                    reason = f"f is not shown to be {'<' if read.strict else '<='} 0 on the box {box}"
                    break
                done += 1
                progress(done / count)
        if reason is not None:
            break
    return Recheck(reason, len(proofs), count, evaluations, time.perf_counter() - started)


def numbered(claims: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Arrays of one file from the arrays of several claims, with their number."""
    named = {f"{f'claim{k}_' if k else ''}{name}": x for k, claim in enumerate(claims) for name, x in claim.items()}
    return {"claims": len(claims), **named}


def claims_of(arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """The arrays of the claims of a file; see `numbered`. Raises ValueError if one is missing or left over."""
    count = np.asarray(arrays.get("claims", 0))
    if count.dtype.kind != "i" or count.ndim or not 1 <= count <= len(arrays):
        boxes = ": undecided, or for `recheck_lyapunov`" if "words" in arrays else ""
        raise ValueError(f"claims: expected their number, got {count!s:.20}{boxes}")
    claims: list[dict[str, Any]] = [{} for _ in range(int(count))]
    for name, x in arrays.items():
        if OTHERS.fullmatch(name):
            continue
        numbered_name = NAME.fullmatch(name)
        k, field = numbered_name.groups() if numbered_name else (0, name)
        if int(k) >= len(claims) or field not in FIELDS:
            raise ValueError(f"an array {name!r} that belongs to none of {len(claims)} claims")
        claims[int(k)][field] = x
    for k, claim in enumerate(claims):
        if missing := FIELDS - claim.keys():
            raise ValueError(f"claim {k} has no {sorted(missing)}")
    return claims


def in_processes(processes: int, make: Any, arrays: Any, work: Any, count: int) -> Generator[Any, None, None]:
    """work(made, k) for k < count, in order, with made = make(arrays) created once per process."""
    if processes == 1:
        yield from map(functools.partial(work, make(arrays)), range(count))
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _make_here, (make, arrays, work))
    try:
        yield from pool.map(_work_here, range(count), chunksize=max(1, min(32, count // (4 * processes))))
    finally:
        pool.shutdown(cancel_futures=True)


_here: list[Callable[[int], Any]] = []  # the work function of this process


def _make_here(make: Any, arrays: Any, work: Any) -> None:
    _here[:] = [functools.partial(work, make(arrays))]


def _work_here(k: int) -> Any:
    return _here[0](k)


EXPECTED = "proof: expected what Certificate.save writes"
INVALID_FILE_ERRORS = KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError, ArithmeticError


def _arrays(proof: Any) -> dict[str, Any]:
    own = getattr(proof, "_arrays", None)
    if own is not None:
        return own()
    path = path_of("proof", proof)
    try:
        return read_arrays(path)
    except FileNotFoundError:
        raise ArgumentError(f"proof: no such file: {str(proof)!r}") from None
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{EXPECTED}, got {_shown(proof)} ({error!s:.80})") from error


def _shown(proof: Any) -> str:
    """The path of a file, not shortened; other objects as in all messages."""
    return repr(os.fspath(proof)) if isinstance(proof, (str, os.PathLike)) else shown(proof)


@contextmanager
def _naming(proof: Any) -> Iterator[None]:
    """Name the proof if its contents can not be read or evaluated."""
    try:
        yield
    except ArgumentError:
        raise
    except INVALID_FILE_ERRORS as error:
        raise ArgumentError(f"{EXPECTED}, got {_shown(proof)} ({error!s:.80})") from error


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of a JSON text, whose keys must differ."""
    said = dict(pairs)
    if len(said) < len(pairs):
        raise ValueError(f"a key that is there twice: {[key for key, _ in pairs]}")
    return said


def _floats(arrays: dict[str, Any], name: str) -> np.ndarray:
    x = np.asarray(arrays[name])
    if x.dtype != np.float64:
        raise ValueError(f"{name}: expected an array of floats, got {x.dtype}")
    return x


def uncovered(domain: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> str | None:
    """The reason why boxes (k, n) do not cover the domain (2, n), or None; uses only comparisons of their ends.

    A part of the domain is covered if one box contains it, or if a plane that crosses no box divides it into such
    parts.
    """
    if not (np.isfinite(lo).all() and np.isfinite(hi).all() and (lo <= hi).all()):
        return "a box is empty or infinite"
    waiting = [(*domain, np.arange(len(lo)))]
    while waiting:
        a, b, boxes = waiting.pop()
        if len(boxes) and ((lo[boxes] <= a) & (hi[boxes] >= b)).all(axis=1).any():
            continue
        cut = _plane(lo[boxes], hi[boxes], a, b)
        if cut is None:
            return f"no box covers {list(zip(a.tolist(), b.tolist()))}"
        k, position = cut
        below, above = b.copy(), a.copy()
        below[k] = above[k] = position
        waiting.append((a, below, boxes[hi[boxes, k] <= position]))
        waiting.append((above, b, boxes[lo[boxes, k] >= position]))
    return None


def clipped(domain: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of boxes (k, n) inside the domain (2, n). If the boxes cover the domain, so do these."""
    wide = (lo < hi) & (domain[0] < domain[1])
    lo, hi = np.maximum(lo, domain[0]), np.minimum(hi, domain[1])
    inside = ((lo < hi) | ~wide & (lo == hi)).all(axis=1)
    return lo[inside], hi[inside]


def _plane(lo: np.ndarray, hi: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[int, float] | None:
    """(coordinate, value) of a plane through the inside of [a, b] that crosses no box, as central as possible."""
    best, plane = 0, None
    if not len(lo):
        return None
    for k in np.flatnonzero((lo.max(axis=0) > a) & (hi.min(axis=0) < b)).tolist():  # boxes begin and end inside
        order = np.argsort(lo[:, k], kind="stable")
        ends, starts = np.maximum.accumulate(hi[order, k])[:-1], lo[order[1:], k]
        free = np.flatnonzero((ends <= starts) & (a[k] < ends) & (ends < b[k]))
        if len(free):
            position = free[np.argmin(np.abs(2 * free + 2 - len(lo)))]
            even = min(position + 1, len(lo) - position - 1)
            if even > best:
                best, plane = even, (k, float(ends[position]))
    return plane


@np.errstate(all="ignore")  # of huge boxes: comparisons with nan are false
def _settled(proof: Proof, box: int) -> tuple[bool, int]:
    """(Whether f <= 0, or a constraint is violated, on the whole box; the number of evaluations)."""
    waiting, count = [(proof.lo[box], proof.hi[box])], 0
    while waiting:
        lo, hi = waiting.pop()
        count += 1
        with proof.code.arithmetic.precision():
            good, k = _decided(proof, lo, hi)
        if good:
            continue
        middle = 0.5 * lo[k] + 0.5 * hi[k]
        if count >= EVALUATIONS or not lo[k] < middle < hi[k]:
            return False, count
        below, above = hi.copy(), lo.copy()
        below[k] = above[k] = middle
        waiting += [(lo, below), (above, hi)]
    return True, count


def _decided(proof: Proof, lo: np.ndarray, hi: np.ndarray) -> tuple[bool, int]:
    """(Whether the box is settled, otherwise the coordinate to divide)."""
    code, sides = proof.code, len(lo)
    shares = (hi - lo) / np.maximum(proof.domain[1] - proof.domain[0], 1e-300)
    widest = int(np.argmax(np.where(proof.used, shares, 0.0)))
    if proof.motion is not None:
        box = proof.motion.box(code, lo, hi)
        if box is None:
            return False, widest
        lo, hi = box
    values, smooth = code.forward([code.arithmetic.interval(a, b) for a, b in zip(lo.tolist(), hi.tolist())])
    if code.flag is not None and values[code.flag] is not True:
        return False, widest
    f, *constraints = code.outputs
    if any(values[g] is not None and values[g][0] > 0 for g in constraints):
        return True, widest
    if values[f] is not None and _not_positive(proof, values[f][1]):
        return True, widest
    decided = _by_expansions(proof, Expansions(code, values, lo, hi), sides) if constraints else None
    slopes = _slopes(code, f, values, smooth) if decided is None else None
    if slopes is not None:
        if _not_positive(proof, _mean_value(code, f, slopes, lo, hi)):
            return True, widest
        widest = int(np.argmax([float(max(abs(s[0]), abs(s[1])).mid()) * w for s, w in zip(slopes[:sides], hi - lo)]))
    elif decided is None:
        widest = _most_effective(proof, lo, hi, np.where(proof.used, shares, 0.0))
    return decided or (False, widest)


def _most_effective(proof: Proof, lo: np.ndarray, hi: np.ndarray, shares: np.ndarray) -> int:
    """The side without which the upper bound of f is smallest, of several such sides the widest one."""
    code, bounds = proof.code, np.full(len(shares), np.inf)
    box = [code.arithmetic.interval(a, b) for a, b in zip(lo.tolist(), hi.tolist())]
    for k in np.flatnonzero(shares):
        middle = code.arithmetic.point(0.5 * lo[k] + 0.5 * hi[k])
        value = code.forward([*box[:k], middle, *box[k + 1 :]])[0][code.outputs[0]]
        bounds[k] = np.inf if value is None else float(value[1].mid())
    return int(np.lexsort((-shares, bounds))[0])


def _by_expansions(proof: Proof, expansions: Expansions, sides: int) -> tuple[bool, int] | None:
    """The same by second-order bounds, also of f less a multiple of a constraint; None if there are none.

    sides: the number of coordinates that may be divided, the first ones.
    """
    f, *constraints = proof.code.outputs
    bound, along_f = expansions.upper([(f, 1.0)]), expansions.slopes(f)
    if bound is None or along_f is None:
        return None
    for g in constraints:
        below, along_g = expansions.upper([(g, -1.0)]), expansions.slopes(g)
        if below is not None and below[0] < 0:
            return True, 0
        if along_g is not None and (factor := float(along_f @ along_g / max(float(along_g @ along_g), 1e-300))) > 0.0:
            both = expansions.upper([(f, 1.0), (g, -factor)])  # f <= f - factor g, as g <= 0
            bound = both if both is not None and both[0] < bound[0] else bound
    if len(constraints) > 2 and not _not_positive(proof, bound[0]):
        factors = _factors(expansions, along_f, constraints)
        both = expansions.upper([(f, 1.0), *((g, -x) for g, x in factors if x > 0.0)])
        bound = both if both is not None and both[0] < bound[0] else bound
    return _not_positive(proof, bound[0]), int(np.argmax(bound[1][:sides]))


def _factors(expansions: Expansions, along_f: np.ndarray, constraints: list[int]) -> list[tuple[int, float]]:
    """Constraints g with numbers x >= 0 that make the bound of f - sum x g small, by a linear program.

    Any such numbers are valid. The program adds the nonlinear parts of all terms.
    """
    from scipy.optimize import linprog

    rows, n = [], len(along_f)
    if not np.isfinite(along_f).all():
        return []
    for g in constraints:
        below, along = expansions.upper([(g, -1.0)]), expansions.slopes(g)
        if below is not None and along is not None:
            cost = float(below[0].mid()) - float(np.abs(along).sum())
            if np.isfinite(cost):  # then the slopes are, too
                rows.append((g, cost, along))
    if not rows:
        return []
    slopes = np.array([along for *_, along in rows]).T
    costs = np.append([cost for _, cost, _ in rows], np.ones(n))
    sides = np.block([[slopes, -np.eye(n)], [-slopes, -np.eye(n)]])
    program = linprog(costs, sides, np.append(along_f, -along_f), bounds=(0.0, LARGEST_FACTOR))
    return [] if program.x is None else [(g, float(x)) for (g, *_), x in zip(rows, program.x)]


def _not_positive(proof: Proof, upper: Any) -> bool:
    return upper is not None and bool(upper < 0 if proof.strict else upper <= 0)


def _slopes(code: Code, output: int, values: list[Any], smooth: list[bool]) -> list[Any] | None:
    """The arguments of a mean value form, or None if it is not applicable."""
    if not smooth[output] or values[output] is None:
        return None
    slopes = code.slopes(output, values)
    return None if None in slopes else slopes


def _mean_value(code: Code, output: int, slopes: list[Any], lo: np.ndarray, hi: np.ndarray) -> Any:
    """Upper bound of an output, or None: its value at c plus the largest contribution of x - c."""
    arb, c = code.arithmetic.arb, []
    for (low, high), a, b in zip(slopes, lo.tolist(), hi.tolist()):
        if low >= 0 or high <= 0:
            c.append(b if low >= 0 else a)
            continue
        low, high = float(low.mid()), float(high.mid())
        c.append(min(max((high * b - low * a) / (high - low), a), b))
    values = code.forward([code.arithmetic.point(x) for x in c])[0]
    if values[output] is None or (code.flag is not None and values[code.flag] is not True):
        return None
    total = values[output][1]
    for (low, high), a, b, x in zip(slopes, lo.tolist(), hi.tolist(), c):
        rise = high * (arb(b) - arb(x)) if high > 0 else arb(0)
        fall = low * (arb(a) - arb(x)) if low < 0 else arb(0)
        total += rise.upper() if rise.upper() >= fall.upper() else fall.upper()
    return total.upper()
