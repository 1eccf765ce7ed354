"""One inequality at the states of a closed loop: looked at where it failed before, at random states and by search.

What is not found is not proved: the search is a good one, seeded and repeatable, and says how often it looked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from geomctrl.arguments import count
from geomctrl.control.contracts import Command
from geomctrl.control.plant import plant_of

from . import evidence
from .counterexample import Counterexample, paste
from .domain import Domain, State
from .loop_states import failed_before, require_controller, state_of, states_about
from .repeatable import Repeatable
from .search import Found, worst
from .settings import region_of
from .shrinking import shrunk

SECONDS = 20.0  # after which a search gives up, whatever its evaluations
NOTHING = 1e-10  # of a typical value: below it a function is zero
Number = Callable[[State], float]


class NoController:
    """No torque at all: the plant by itself."""

    def __init__(self, nv: int):
        self.zero = np.zeros(nv)

    def start(self) -> None:
        return None

    def __call__(self, t, q, v, z) -> Command:
        return Command(self.zero)


class Inquiry:
    """A closed loop and the states at which promises about it are looked at; arguments as for `assert_lyapunov`.

    alone: a controller that is None is none, the plant by itself.
    """

    def __init__(
        self,
        controller: Any,
        plant: Any,
        region: Any = 0.5,
        search: int = 1,
        seed: int = 0,
        *,
        alone: bool = False,
    ):
        self.plant = plant_of("plant", plant, state=False)
        self.controller = NoController(self.plant.robot.nv) if controller is None and alone else controller
        require_controller(self.controller)
        self.search, self.seed = count("search", search, 1), count("seed", seed)
        self.domain: Domain = states_about(self.controller, self.plant, region_of(region))
        self.repeatable = Repeatable(self.controller, self.plant)
        x = self.domain.state(self.domain.random(self.rng, "about"))
        self.repeatable.check(x, self.domain.rest(x.t))

    def state(self, t: Any, q: Any, v: Any, z: Any) -> State:
        """One state of the loop, checked."""
        return state_of(self.controller, self.plant, t, q, v, z)

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @property
    def at_rest(self) -> list[State]:
        """The equilibrium at some times: what is wrong only very near it, random states do not see."""
        lower, upper = self.domain.lower[0], self.domain.upper[0]
        return [self.domain.rest(float(t)) for t in np.linspace(lower, upper, 5)]

    @property
    def names(self) -> str:
        return f"{type(self.controller).__name__} on {self.plant.robot.name}"

    def typical(self, value: Number) -> float:
        """The size of a function at random states, their median."""
        rng = self.rng
        return float(np.median([abs(value(self.domain.state(self.domain.random(rng, "about")))) for _ in range(15)]))

    def largest(self, value: Number, what: str, starts: Sequence[State] = ()) -> Found:
        """Where a function is largest, as far as the search finds it; `starts` are looked at first."""
        found = worst(value, self.domain, self.rng, self.search, starts=[*starts, *self.at_rest], seconds=SECONDS)
        evidence.record("searched", f"{what} of {self.names}", evaluations=found.evaluations, seed=self.seed)
        return found

    def hold(
        self,
        excess: Number,
        promise: str,
        words: Callable[[State], str],
        measured: str,
        starts: Sequence[State] = (),
    ) -> None:
        """Raise Counterexample at the simplest state found at which `excess` is not <= 0.

        promise: a word. words: state -> what is wrong there. measured: code that prints the numbers at t, q, v, z.
        starts: states that are looked at first.
        """
        found = worst(
            excess, self.domain, self.rng, self.search, enough=0.0, seconds=SECONDS,
            starts=[*failed_before(self.controller, self.plant, self.domain), *starts, *self.at_rest],
        )  # fmt: skip
        facts = {"starts": found.starts, "evaluations": found.evaluations, "seed": self.seed}
        evidence.record("searched", f"{promise} of {self.names}", **facts)
        self.repeatable.check_first()
        if found.value <= 0.0:
            return
        self.repeatable.check(found.state, self.domain.rest(found.state.t))
        simple = shrunk(lambda x: not excess(x) <= 0.0, found.state, self.domain)
        raise Counterexample(
            words(simple.state), simple.state, promise, paste(self.plant, simple.code, measured), "searched"
        )
