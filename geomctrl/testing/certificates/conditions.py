"""Conditions of a proof: V is zero and the loop at rest at the set point, V is continuous, the loop exists.

They are claims of a certificate only if they are refuted or undecided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.tracing.proofs.interpreted import valued

from . import validity
from .certificate import REFUTED, UNDECIDED, Claim

NEGLIGIBLE = 1e-12  # relative to V or V' at a corner of the box


class Conditions:
    """The conditions of a `CertificateRequest`, which has the equations `e`, a box and a seed."""

    e: Any
    box: Any
    seed: int
    everywhere: bool
    bounds: Any
    decrease: Any
    model: Any
    size: Any
    state: Any

    def is_zero_at_rest(self) -> bool:
        """Whether V is shown to be zero at the equilibrium.

        This is required for all robots, or only for the model if the claim has `outside` or `offset`.
        """
        p = (self.box.p_lo, self.box.p_hi) if self.everywhere else self.model(self.box)
        return validity.vanishes(self.e, self.e.loop.value, *p)

    def zero_at_rest(self) -> Claim:
        """The refuted or undecided claim that V is zero at the equilibrium, without which V > 0 proves nothing."""
        e, (p, _) = self.e, self.model(self.box)
        low, high = (float(x[0, 0]) for x in validity.at_rest(e, [e.loop.value], p, p))
        least = NEGLIGIBLE * self.size(self.bounds(e.value))
        statement, rest = "V is zero at the equilibrium", self.state(np.zeros(len(e.x)), p[0], max(low, -high))
        if low > least or high < -least:
            return Claim(f"{statement}: it is {low:.6g}", REFUTED, counterexample=rest)
        return Claim(statement, UNDECIDED, nearly=f"V lies between {low:.3g} and {high:.3g} there")

    def moving_at_rest(self) -> Claim | None:
        """The refuted claim of V' < 0 if the robot accelerates at the set point, where V is zero and grows."""
        if not self.everywhere:
            return None
        e, (p, _) = self.e, self.model(self.box)
        low, high = (x[0] for x in validity.at_rest(e, e.loop.field[e.n : 2 * e.n], p, p))
        away = np.maximum(low, -high)  # the smallest acceleration that the intervals allow
        corner = e.at(self.box.hi, self.model(self.box)[0])
        size = np.nan_to_num(np.abs(valued(e.graph, e.loop.field[e.n : 2 * e.n], corner, 1)[0]))
        i = int(np.argmax(np.nan_to_num(away, nan=-np.inf) - NEGLIGIBLE * size))
        if not away[i] > NEGLIGIBLE * size[i]:
            return None
        vdot, (_, statement) = 0.5 * (low[i] + high[i]), self.decrease()
        statement += f": the set point is no equilibrium, vdot[{i}] = {vdot:.6g} there"
        return Claim(statement, REFUTED, counterexample=self.state(np.zeros(len(e.x)), p[0], float(away[i])))

    def continuous(self) -> Claim:
        """The claim that V is continuous, for a V whose branches are not shown to agree."""
        jump = validity.jump_of(self.e, self.box, self.seed)
        if jump is None:
            return Claim("V is continuous", UNDECIDED)
        here, there = jump.values
        state = self.state(jump.x, jump.p, abs(here - there))
        return Claim(f"V is continuous: it jumps from {here:.6g} to {there:.6g}", REFUTED, counterexample=state)

    def existing(self) -> Claim:
        """The claim that the loop is defined on the whole box, if that is not proved otherwise."""
        missing, statement = validity.undefined_at(self.e, self.box, self.seed), "law and plant have a value"
        if missing is None:
            return Claim(statement, UNDECIDED)
        return Claim(statement, REFUTED, counterexample=self.state(*missing, np.nan))
