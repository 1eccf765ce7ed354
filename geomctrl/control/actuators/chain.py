"""Actuators one after the other, from command to joint torque."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import checked, listed
from geomctrl.control.subclass_checks import overrides
from geomctrl.errors import ArgumentError

from .actuator import Actuator
from .sampled import Sampled


class Driven(NamedTuple):
    """What a chain does at one time: joint torques (nv,), the rate of its state (states,) or None, power stored [W]."""

    tau: np.ndarray
    rate: np.ndarray | None
    stored: Any


class Chain:
    """The actuators of a plant with nv velocity coordinates. inputs: of the first; states: of all of them, x (states,)
    being theirs one after the other.

    Raises ArgumentError, naming the argument `actuators`, where they do not fit one another.
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
        self.sampled = sum(kinds)  # the first of them
        if any(kinds[self.sampled :]):
            k = self.sampled + kinds[self.sampled :].index(True)
            name = type(self.links[k]).__name__
            raise ArgumentError(
                f"actuators[{k}]: {name}: expected before all that do not act at samples, got after one"
            )
        ends = np.cumsum([0, *reversed(sizes)]).tolist()
        self.parts = tuple((a, b) if b > a else None for a, b in pairwise(ends))
        self.states = ends[-1]
        self.storing = tuple(overrides(type(link), Actuator, "stored_energy") for link in self.links)

    def start(self, v: np.ndarray) -> np.ndarray:
        """The states (states,) they begin with, the joints moving at v."""
        states, w = [], v
        for link in reversed(self.links):
            x = link.start(w)
            states.append(np.zeros(0) if x is None else _vector(f"{type(link).__name__}.start(w)", x))
            w = link.speed(w, x)
        return np.concatenate(states[::-1])

    def driven(self, t: float, u: np.ndarray, v: np.ndarray, x: Any) -> Driven:
        """Under the command u (inputs,), the joints moving at v."""
        states = self._states(x)
        speeds = self._speeds(v, states)
        rates, stored = [], 0.0
        for link, w, own, stores in zip(self.links, speeds, states, self.storing):
            if own is not None:
                rates.append(link.state_rate(t, u, w, own))
            if stores:
                stored = stored + link.storage_power(t, u, w, own)
            u = link.torque(t, u, w, own)
        return Driven(u, np.concatenate(rates) if rates else None, stored)

    def torque(self, t: float, u: np.ndarray, v: np.ndarray, x: Any) -> np.ndarray:
        """What the joints feel, `driven`'s first alone."""
        states = self._states(x)
        for link, w, own in zip(self.links, self._speeds(v, states), states):
            u = link.torque(t, u, w, own)
        return u

    def _states(self, x: Any) -> list[Any]:
        """Of each, None of those without."""
        return [None if part is None else x[slice(*part)] for part in self.parts]

    def _speeds(self, v: np.ndarray, states: list[Any]) -> list[np.ndarray]:
        """Conjugate to the outputs of each."""
        speeds = [v]
        for link, own in zip(self.links[:0:-1], states[:0:-1]):
            speeds.append(link.speed(speeds[-1], own))
        return speeds[::-1]

    def stored_energy(self, x: Any) -> Any:
        """In all of them [J]."""
        energy = 0.0
        for link, own, stores in zip(self.links, self._states(x), self.storing):
            if stores:
                energy = energy + link.stored_energy(own)
        return energy


def chain_of(actuators: Any, nv: int) -> Chain | None:
    """The chain of what a `Plant` is given, one actuator or several; None of none. Raises ArgumentError."""
    links = [actuators] if isinstance(actuators, Actuator) else listed("actuators", actuators)
    for k, link in enumerate(links):
        if not isinstance(link, Actuator):
            raise ArgumentError(f"actuators[{k}]: expected a geomctrl.actuators.Actuator, got {link!r:.60}")
    return Chain(links, nv) if links else None


def _vector(name: str, x: Any) -> np.ndarray:
    a = checked(name, x, ())
    if a.ndim != 1:
        raise ArgumentError(f"{name}: expected a vector, got shape {a.shape}")
    return a
