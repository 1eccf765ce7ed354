"""`Chain`: a series of actuators from command to joint torque."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import checked, is_a, listed, shown
from geomctrl.control.subclass_checks import overrides
from geomctrl.errors import ArgumentError

from .actuator import Actuator
from .sampled import Sampled


class ChainOutput(NamedTuple):
    """Output of a chain: joint torques (nv,), rates of its state (states,) or None, power into its energy store [W]."""

    tau: np.ndarray
    rate: np.ndarray | None
    stored: Any


class Chain:
    """The actuators of a plant with nv velocity coordinates, in order from the command.

    `inputs` is the number of inputs of the first actuator; the state x (states,) concatenates their states. Raises
    ArgumentError for the argument `actuators` if consecutive actuators do not fit.
    """

    def __init__(self, actuators: Sequence[Actuator], nv: int):
        self.links = tuple(actuators)
        self.inputs, self.states = nv, 0
        sizes = []
        for k, link in reversed(list(enumerate(self.links))):
            try:
                n, x = link.inputs(self.inputs), link.start(np.zeros(self.inputs))
                sizes.append(0 if x is None else len(_vector("start(w)", x)))
            except ArgumentError as error:
                raise ArgumentError(f"actuators[{k}]: {type(link).__name__}: {error}") from None
            self.inputs = n
        kinds = [isinstance(link, Sampled) for link in self.links]
        self.sampled = sum(kinds)  # number of sampled actuators, which come first
        if any(kinds[self.sampled :]):
            k = self.sampled + kinds[self.sampled :].index(True)
            name = type(self.links[k]).__name__
            raise ArgumentError(f"actuators[{k}]: {name}: expected sampled actuators first, got one after another kind")
        ends = np.cumsum([0, *reversed(sizes)]).tolist()
        self.parts = tuple((a, b) if b > a else None for a, b in pairwise(ends))
        self.states = ends[-1]
        self.storing = tuple(overrides(type(link), Actuator, "stored_energy") for link in self.links)

    def start(self, v: np.ndarray) -> np.ndarray:
        """Initial states (states,) for joints that move at v."""
        states, w = [], v
        for link in reversed(self.links):
            x = link.start(w)
            states.append(np.zeros(0) if x is None else _vector(f"{type(link).__name__}.start(w)", x))
            w = link.speed(w, x)
        return np.concatenate(states[::-1])

    def driven(self, t: float, u: np.ndarray, v: np.ndarray, x: Any) -> ChainOutput:
        """Response to the command u (inputs,) with joints moving at v."""
        states = self._states(x)
        speeds = self._speeds(v, states)
        rates, stored = [], 0.0
        for link, w, own, stores in zip(self.links, speeds, states, self.storing):
            if own is not None:
                rates.append(link.state_rate(t, u, w, own))
            if stores:
                stored = stored + link.storage_power(t, u, w, own)
            u = link.torque(t, u, w, own)
        return ChainOutput(u, np.concatenate(rates) if rates else None, stored)

    def torque(self, t: float, u: np.ndarray, v: np.ndarray, x: Any) -> np.ndarray:
        """The joint torques (nv,) only."""
        states = self._states(x)
        for link, w, own in zip(self.links, self._speeds(v, states), states):
            u = link.torque(t, u, w, own)
        return u

    def _states(self, x: Any) -> list[Any]:
        """The state of each actuator, None for those without."""
        return [None if part is None else x[slice(*part)] for part in self.parts]

    def _speeds(self, v: np.ndarray, states: list[Any]) -> list[np.ndarray]:
        """The speed conjugate to the outputs of each actuator."""
        speeds = [v]
        for link, own in zip(self.links[:0:-1], states[:0:-1]):
            speeds.append(link.speed(speeds[-1], own))
        return speeds[::-1]

    def stored_energy(self, x: Any) -> Any:
        """Energy stored in all actuators [J]."""
        energy = 0.0
        for link, own, stores in zip(self.links, self._states(x), self.storing):
            if stores:
                energy = energy + link.stored_energy(own)
        return energy


def chain_of(actuators: Any, nv: int) -> Chain | None:
    """The chain for `Plant(actuators=...)`, one actuator or several; None for none. Raises ArgumentError."""
    links = [actuators] if is_a(actuators, Actuator) else listed("actuators", actuators)
    for k, link in enumerate(links):
        if not is_a(link, Actuator):
            raise ArgumentError(f"actuators[{k}]: expected a geomctrl.actuators.Actuator, got {shown(link)}")
    return Chain(links, nv) if links else None


def _vector(name: str, x: Any) -> np.ndarray:
    a = checked(name, x, ())
    if a.ndim != 1:
        raise ArgumentError(f"{name}: expected a vector, got shape {a.shape}")
    return a
