"""Energy tank: any torque on top of a passive law, for as long as there is energy to pay for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import generator, number, one_state
from geomctrl.control.contracts import Command, Controller, Lyapunov
from geomctrl.control.plant import Plant
from geomctrl.controllers._component import (
    goal,
    rate_of,
    rest_of,
    sampled,
    size_of,
    start_of,
    state_at_start,
    wrapped_law,
)
from geomctrl.controllers._model_based import Law
from geomctrl.errors import ArgumentError
from geomctrl.tracing.numbers import scalar


class EnergyTank(Law):
    """tau = tau_passive + gamma tau_active: the active torque is paid from a tank E [J], which damping fills,

    P = w . tau_active,   E' = beta (rho loss + gamma max(-P, 0)) - gamma max(P, 0)
    V = V_passive + E,    V' = -(1 - beta rho) loss - (1 - beta) gamma max(-P, 0) + w . tau_ext <= w . tau_ext

    (Franken and others 2011; Ferraguti and others 2013; Schindlbeck and Haddadin 2015), w = v - v_d: whatever the
    active law does, the loop stays passive at the port (tau_ext, w), and the active law gives the robot no more than
    `start` and what damping and itself have taken from it. gamma falls from 1 to 0 on the last `margin` above `lowest`,
    so that an empty tank turns the active torque off; beta does so below `full`, so that no more is kept. rho,
    `recovered`, is the share of the damping's loss that is kept; with 1 an active law that pumps may go on for ever on
    what the damper takes, with less the robot comes to rest.

    passive: `JointImpedance`, `PDGravity` or another law of whose V a torque tau on the joints makes w . tau more a
    second, with `lyapunov`, `error` and a rate of V, -loss, that depends on no plant. active: a controller whose
    torques come on top: forces wanted, learned motions, feedforward. Their states are vectors or None.
    start, lowest, full, margin [J]; a step should be short against margin / P. The state z is the passive law's, the
    active one's, then E; V is a storage function, not zero at the equilibrium: see `testing.assert_passive_port`. For z
    with lowest <= E <= full, where it stays.
    """

    def __init__(
        self,
        passive: Any,
        active: Controller,
        *,
        start: float = 1.0,
        lowest: float = 0.1,
        full: float = 2.0,
        margin: float = 0.1,
        recovered: float = 0.5,
    ):
        self.passive, self.active = wrapped_law("passive", passive), wrapped_law("active", active)
        for name in ("lyapunov", "error"):
            if not hasattr(passive, name):
                raise ArgumentError(f"passive: expected a law with {name}(...), got {passive!r:.60}")
        if self.active.robot.nv != self.passive.robot.nv:
            raise ArgumentError(
                f"active: expected a law for {self.passive.robot.nv} coordinates, got {self.active.robot.nv}"
            )
        self.lowest = number("lowest", lowest, "an energy that is not negative", lambda x: x >= 0.0)
        self.full = number("full", full, f"more than lowest, {lowest:g} J", lambda x: x > self.lowest)
        self.initial = number("start", start, "an energy from lowest to full", lambda x: self.lowest <= x <= self.full)
        self.margin = number("margin", margin, "a positive energy", lambda x: x > 0.0)
        self.recovered = number("recovered", recovered, "a share from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        self.robot = self.passive.robot
        self.cuts = size_of(self.passive), size_of(self.passive) + size_of(self.active)
        self.nominal = Plant(self.robot)
        goal(self, self.passive)

    def start(self, q0: ArrayLike | None = None, v0: ArrayLike | None = None) -> np.ndarray:
        """The laws' states where the robot starts with q0 (nq,), v0 (nv,), default neutral and at rest, and E."""
        q0, v0 = state_at_start(self.robot, q0, v0)
        return np.concatenate((start_of(self.passive, q0, v0), start_of(self.active, q0, v0), [self.initial]))

    def _split(self, z):
        one, two = self.cuts
        z = one_state("z", z, two + 1)
        return (z[:one] if one else None), (z[one:two] if two > one else None), z[two]

    def _flows(self, t, q, v, z):
        """The commands, gamma, beta, and in watts: what damping loses, and what the active law takes and gives."""
        own, other, E = self._split(z)
        passive, active = self.passive(t, q, v, own), self.active(t, q, v, other)
        loss = -self.passive.lyapunov(t, q, v, own, self.nominal).rate
        P = np.dot(self.passive.error(t, q, v).w, active.tau)
        gamma = np.minimum(np.maximum((E - self.lowest) / self.margin, 0.0), 1.0)
        beta = np.minimum(np.maximum((self.full - E) / self.margin, 0.0), 1.0)
        return passive, active, gamma, beta, loss, gamma * np.maximum(-P, 0.0), gamma * np.maximum(P, 0.0)

    def __call__(self, t, q, v, z):
        passive, active, gamma, beta, loss, taken, released = self._flows(t, q, v, z)
        rate = np.reshape(beta * (self.recovered * loss + taken) - released, (1,))
        tau = passive.tau + gamma * active.tau
        z_rate = np.concatenate((rate_of(passive), rate_of(active), rate))
        signals = {**active.signals, **passive.signals, "tank": scalar(self._split(z)[2]), "share": scalar(gamma)}
        return Command(tau, z_rate, signals)

    def true_parameters(self, plant: Plant) -> np.ndarray:
        """z where the robot rests and the tank is as it starts."""
        return np.concatenate((rest_of(self.passive, plant), start_of(self.active), [self.initial]))

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray:
        """States of the two laws, and an energy from lowest to full."""
        generator("rng", rng)
        states = []
        for law in (self.passive, self.active):
            z = sampled(law, rng, plant)
            near = start_of(law)
            states.append(near + 0.5 * rng.normal(size=near.shape) if z is None else z)
        return np.concatenate((*states, [rng.uniform(self.lowest, self.full)]))

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        """V, and its rate while nothing touches the robot."""
        own, _, E = self._split(z)
        _, _, _, beta, loss, taken, _ = self._flows(t, q, v, z)
        V = self.passive.lyapunov(t, q, v, own, plant).value
        return Lyapunov(V + scalar(E), -scalar((1.0 - beta * self.recovered) * loss + (1.0 - beta) * taken))
