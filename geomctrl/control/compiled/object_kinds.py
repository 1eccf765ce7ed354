"""`LoopState`: what the code of a loop reaches by names, geomctrl's own functions that were replaced among it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from geomctrl.tracing.code_identity import identity, is_followed, parts_of
from geomctrl.tracing.external_state import ExternalState
from geomctrl.tracing.replacements import Replacements

CONTRACT_ATTRIBUTES = {  # attributes of a controller
    *("coriolis_matrix", "lyapunov", "allowance", "true_parameters", "reference", "robot", "group", "form", "q_d")
}
NUMERICAL = ("arguments", "lie", "integrators", "mechanism", "terms", "papers", "robot", "constrained", "motion")
CALLED = [f"geomctrl.{name}" for name in (*NUMERICAL, "control", "controllers")]  # packages that laws may call
NOT_CALLED = ("compiled", "group_members", "loop", "loop_runner", "many", "side_by_side")  # by laws
REPLACEMENTS = Replacements(*CALLED, without=tuple(f"geomctrl.control.{name}" for name in NOT_CALLED))


class LoopState(ExternalState):
    """The external state of a loop's code."""

    def _search(self, roots: Iterable[tuple[Any, str]], kinds: Iterable[type]) -> None:
        self._attributes |= CONTRACT_ATTRIBUTES
        for place, members in REPLACEMENTS.now():
            self.signature.append((place, *map(identity, members)))
            self.reached += members
            for x in members:
                if is_followed(getattr(x, "__module__", "builtins")) or parts_of(x) is not None:
                    self._visit(x, place)
        super()._search(roots, kinds)
