"""`LyapunovCertificate`: the result of `certify_lyapunov`, as text and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from geomctrl import files
from geomctrl.arguments import path_of
from geomctrl.errors import ArgumentError
from geomctrl.tracing.branch_and_bound import BranchAndBound

from .equations import Equations
from .forms import NOT_REWRITTEN, SLIDING, Lemma
from .level_sets import largest_errors
from .resuming import arrays_of
from .sliding import SlidingBounds

PROVED, REFUTED, UNDECIDED, SEMIDEFINITE = "proved", "refuted", "undecided", "semidefinite"
HINT = (
    "hint       V' needs no M^-1 where V = 1/2 w . M w + U(q) with w = v, or a signal that the law's command records:"
    ' Command(tau, signals={"s": w})'
)
SLIDING_HINT = (
    "hint       this V is zero wherever e' + Lambda e is: take a V of the whole state (bundled laws: strict=True), or"
    " give rate= and offset=, with which the claim is about e' + Lambda e and bounds e"
)
NEAR_HINT = (
    "hint       what is left lies about the equilibrium, where V' goes to zero: leave out an ellipsoid ({}), or give"
    " offset="
)
NEAR_RATIO = 0.05  # of the half widths of the box: undecided boxes that are nearer to the equilibrium give this hint


class Violation(NamedTuple):
    """A state and a robot (and a time) that violate a claim.

    q (nq,), v (nv,), parameters (nbodies, 10), t [s], the state z of an adaptive law, and the amount of the violation.
    """

    q: np.ndarray
    v: np.ndarray
    parameters: np.ndarray
    excess: float
    t: float | None = None
    z: np.ndarray | None = None

    def __str__(self) -> str:
        q, v = (np.array2string(x, separator=", ", precision=6) for x in (self.q, self.v))
        t = "" if self.t is None else f"t = {self.t:.6g} s, "
        z = "" if self.z is None else f", z = {np.array2string(self.z, separator=', ', precision=6)}"
        return f"{t}q = {q}, v = {v}{z}: by {self.excess:.3g}"


@dataclass
class Claim:
    """One inequality and the result of its proof."""

    statement: str
    status: str
    outcome: BranchAndBound | None = None
    task: Any = None  # Task, or another Divisible
    counterexample: Violation | None = None
    assumes: str = ""
    nearly: str = ""  # a state where F is so close to a violation that rounding hides it
    needs: str = ""  # what is required in addition to stability, if V' is semidefinite

    def __str__(self) -> str:
        out = [f"{self.status:9}  {self.statement}"]
        if self.outcome is not None:
            out[0] += f"  [{self.outcome.count} boxes, {self.outcome.seconds:.2g} s]"
            if self.status == UNDECIDED:
                out.append(f"           left: {100.0 * self.outcome.share_left:.3g} % of the box{_ended(self.outcome)}")
        if self.counterexample is not None:
            out.append(f"           at {self.counterexample}")
        if self.nearly:
            out.append(f"           {self.nearly}")
        if self.assumes:
            out.append(f"           provided that {self.assumes}")
        if self.needs:
            out.append(f"           {self.needs}")
        return "\n".join(out)


def _reach_of_the_rest(claim: Claim) -> np.ndarray | None:
    """The largest |x| of the undecided boxes of a claim, (2n,), if they all lie near the equilibrium."""
    if claim.status != UNDECIDED or claim.task is None or claim.outcome is None:
        return None
    farthest = claim.task.box.far[0]
    lo, hi = (x[:, : len(farthest)] for x in claim.outcome.left)
    reach = np.maximum(np.abs(lo), np.abs(hi)).max(0, initial=0.0)
    return reach if len(lo) and (reach <= NEAR_RATIO * farthest).all() else None


def _ended(outcome: BranchAndBound) -> str:
    """Why a proof ended, and what the rest will take."""
    reason = ", stopped by an interrupt" if outcome.interrupted else ""
    reason = ", stopped by `seconds`, not by `boxes`" if outcome.out_of_time else reason
    if not outcome.more:
        return reason
    seconds = outcome.more * outcome.seconds / max(outcome.count, 1)
    return f"{reason}; estimated: {outcome.more:.2g} more boxes, {seconds:.2g} s"


class ProofOnBoxes:
    """Claims that are proved on boxes: their status and cost, and boxes from which a proof continues."""

    claims: list[Claim]

    @property
    def status(self) -> str:
        """The status of the first claim."""
        return self.claims[0].status

    @property
    def proved(self) -> bool:
        return self.status == PROVED

    def __bool__(self) -> bool:
        return self.proved

    @property
    def boxes(self) -> int:
        return sum(c.outcome.count for c in self.claims if c.outcome is not None)

    @property
    def seconds(self) -> float:
        return sum(c.outcome.seconds for c in self.claims if c.outcome is not None)

    @property
    def share_left(self) -> float:
        """The fraction of the box on which the first claim is not decided."""
        outcome = self.claims[0].outcome
        return 1.0 if outcome is None else outcome.share_left

    @property
    def more_boxes(self) -> float:
        return sum(c.outcome.more for c in self.claims if c.outcome is not None)

    def save(self, path: str | Path) -> Path:
        """Write the boxes that decide the claims as an npz file, also those that are left, for `Budget(resume=path)`.

        Raises ArgumentError for a refuted claim.
        """
        if self.status != UNDECIDED:
            require_proved(self)
        with files.whole(path_of("path", path)) as file:
            np.savez(file, **self._arrays())
        return path_of("path", path)

    def _arrays(self) -> dict[str, Any]:
        """The contents of the file that `save` writes."""
        return arrays_of(self.claims)


@dataclass
class LyapunovCertificate(ProofOnBoxes):
    """The result of proving a controller's Lyapunov function; true if everything is proved. `print` shows it as text.

    Attributes
    ----------
    status : str
        "proved", "refuted" or "undecided" for V > 0 and V' together; "semidefinite" if only V' <= 0 is proved.
    level : float or None
        V <= level is the largest sublevel set known to lie in the box.
    ends_in : float or None
        Level below which all solutions from there end and remain; None if not below `level`.
    sampled : float
        For `region_of_attraction`, the lowest V of a sampled state that violates the claim.
    counterexample : Violation or None
        The violation, if refuted.
    ultimate_bound : array (nv,) or None
        Bounds of |q - q_d| that all solutions from V <= `level` reach in the limit, for all robots of the claim.
    boxes, seconds : int, float
        Cost of the proof.
    more_boxes : float
        Estimated number of further boxes that an undecided proof needs, from random paths through what is left; zero
        for other certificates. A budget of some thousand boxes gives this estimate before a long proof.
    """

    name: str
    domain: str
    claims: list[Claim]
    lemmas: list[Lemma]
    form: str
    equations: Equations = field(repr=False)
    level: float | None = None
    ends_in: float | None = None
    sampled: float | None = None
    sliding: SlidingBounds | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        statuses = {claim.status for claim in self.claims}
        if statuses == {PROVED}:
            return SEMIDEFINITE if any(claim.needs for claim in self.claims) else PROVED
        return REFUTED if REFUTED in statuses else UNDECIDED

    @property
    def counterexample(self) -> Violation | None:
        return next((c.counterexample for c in self.claims if c.counterexample is not None), None)

    @cached_property
    def ultimate_bound(self) -> np.ndarray | None:
        """Upper bounds (nv,) of |q - q_d| where V <= `ends_in`, computed on first use; None without a `region`."""
        if self.region is None or self.ends_in is None:
            return None
        if self.sliding is not None:
            return self.sliding.errors(self.ends_in)
        task = next(claim.task for claim in self.claims if claim.task is not None)
        return largest_errors(self.equations, task.bounds.scale, task.box, self.ends_in)

    @property
    def region(self) -> float | None:
        """The level of the certified region of attraction; None if there is none."""
        return self.level if self.proved and self.ends_in is not None else None

    def __str__(self) -> str:
        out = [f"{self.name}: {self.status.upper()}", f"on {self.domain}", *map(str, self.claims)]
        out += [f"lemma      {lemma}" for lemma in self.lemmas]
        out.append(f"form       {self.form}")
        rest = next((x for x in map(_reach_of_the_rest, self.claims) if x is not None), None)
        if rest is not None:
            n = len(self.equations.q_d)
            q, v = (f"{max(2.0 * x.max(), 1e-3):.1g}" for x in (rest[:n], rest[n : 2 * n]))
            out.append(NEAR_HINT.format(f"outside=({q}, {v})"))
        elif self.status == REFUTED and any(lemma.claim == SLIDING for lemma in self.lemmas):
            out.append(SLIDING_HINT)
        elif self.form.startswith(NOT_REWRITTEN) and self.status == UNDECIDED:
            out.append(HINT)
        if self.region is not None:
            start = f"V <= {self.region:.6g}"
            if self.sliding is not None:
                start += f" and |q - q_d| <= {np.array2string(self.sliding.errors(self.region), separator=', ')}"
            out.append(f"region of attraction: {start}; V falls from there to {self.ends_in:.6g} and stays")
        elif self.level is not None and self.sliding is not None and self.status == SEMIDEFINITE:
            errors = np.array2string(self.sliding.errors(self.level), separator=", ")
            out.append(f"motions from V <= {self.level:.6g} and |q - q_d| <= {errors} stay there")
        elif self.level is not None and self.proved:
            out.append(f"V <= {self.level:.6g} lies in the box; no smaller level is proved that all its motions reach")
        out.append("a proof is about the model in exact arithmetic; it does not cover rounding in the code that runs")
        return "\n".join(out)


def require_proved(certificate: ProofOnBoxes) -> None:
    """Raise ArgumentError unless the certificate is proved."""
    if not certificate.proved:
        raise ArgumentError(f"certificate: expected a proved certificate, got one that is {certificate.status}")
