"""Energy tank: adds any torque to a passive law as long as stored energy can supply it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import generator, number, one_state, shown
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
    """Add an active law to a passive one: tau = tau_passive + gamma tau_active, supplied by an energy tank.

    Parameters
    ----------
    passive : Controller
        `JointImpedance`, `PDGravity` or another law for which an additional joint torque tau adds w . tau to V'. It has
        `lyapunov`, `error` and a rate -loss of V that does not depend on the plant.
    active : Controller
        A function or a controller whose torques are added: desired forces, learned motions, feedforward.
    start : float
        Initial energy E [J].
    lowest, full : float
        Range of E [J].
    margin : float
        Range above `lowest` and below `full` over which gamma and beta change from 1 to 0 [J]. A step should be small
        compared with margin / (power of the active law).
    recovered : float
        rho, the fraction of the damping losses that fills the tank, from 0 to 1.

    Raises
    ------
    ArgumentError
        If a law can not be wrapped, or if an energy or fraction is out of range.

    Notes
    -----
    With P = w . tau_active and w = v - v_d,

    E' = beta (rho loss + gamma max(-P, 0)) - gamma max(P, 0)
    V = V_passive + E,    V' = -(1 - beta rho) loss - (1 - beta) gamma max(-P, 0) + w . tau_ext <= w . tau_ext

    (Franken and others 2011; Ferraguti and others 2013; Schindlbeck and Haddadin 2015). The loop is passive at the port
    (tau_ext, w) for any active law, which can supply no more than `start` plus the energy it and the damping have
    returned. An empty tank turns the active torque off through gamma; beta stops filling a full one. With rho = 1 an
    active law that pumps energy may continue for ever on the damping losses; with less, the robot comes to rest.

    The states of both laws are vectors or None. The state z concatenates that of the passive law, that of the active
    law and E. V is a storage function that is not zero at the equilibrium: see `testing.assert_passive_port`. The
    statements hold for lowest <= E <= full, where E stays.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> spring = gc.controllers.PDGravity(arm, [0.5, 0.2], kp=20.0, kd=5.0)
    >>> def press(t, q, v, z):
    ...     force = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -5.0])  # 5 N downwards at the tip
    ...     return gc.Command(arm.jacobian(q, "tip", "hybrid").T @ force)
    >>> law = gc.controllers.EnergyTank(spring, active=press, start=1.0)
    >>> run = gc.simulate(arm, law, [0.5, 0.2], [0.0, 0.0], t_end=1.0, dt=1e-3)
    >>> bool(run.signals["tank"].min() >= 0.1)  # the tank is never below `lowest`
    True
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
        self.passive = wrapped_law("passive", passive)
        self.robot = robot = self.passive.robot
        self.active = wrapped_law("active", active, robot)
        for name in ("lyapunov", "error"):
            if not hasattr(passive, name):
                raise ArgumentError(f"passive: expected a law with {name}(...), got {shown(passive)}")
        if (n := getattr(self.active, "robot", robot).nv) != robot.nv:
            raise ArgumentError(f"active: expected a law for {robot.nv} coordinates, got {n}")
        self.lowest = number("lowest", lowest, "an energy that is not negative", lambda x: x >= 0.0)
        self.full = number("full", full, f"more than lowest, {lowest:g} J", lambda x: x > self.lowest)
        self.initial = number("start", start, "an energy from lowest to full", lambda x: self.lowest <= x <= self.full)
        self.margin = number("margin", margin, "a positive energy", lambda x: x > 0.0)
        self.recovered = number("recovered", recovered, "a share from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        self.cuts = size_of(self.passive), size_of(self.passive) + size_of(self.active, robot)
        self.nominal = Plant(self.robot)
        goal(self, self.passive)

    def start(self, q0: ArrayLike | None = None, v0: ArrayLike | None = None) -> np.ndarray:
        """The states of both laws for a robot at q0 (nq,), v0 (nv,) (default: neutral and at rest), and E."""
        q0, v0 = state_at_start(self.robot, q0, v0)
        active = start_of(self.active, q0, v0, self.robot)
        return np.concatenate((start_of(self.passive, q0, v0), active, [self.initial]))

    def _split(self, z):
        one, two = self.cuts
        z = one_state("z", z, two + 1)
        return (z[:one] if one else None), (z[one:two] if two > one else None), z[two]

    def _flows(self, t, q, v, z):
        """Commands, gamma and beta; power lost in damping, taken and returned by the active law [W]."""
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
        """z for a robot at rest and a tank with its initial energy."""
        return np.concatenate((rest_of(self.passive, plant), start_of(self.active, robot=self.robot), [self.initial]))

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray:
        """Random states of the two laws, and an energy between lowest and full."""
        generator("rng", rng)
        states = []
        for law in (self.passive, self.active):
            z = sampled(law, rng, plant)
            near = start_of(law, robot=self.robot)
            states.append(near + 0.5 * rng.normal(size=near.shape) if z is None else z)
        return np.concatenate((*states, [rng.uniform(self.lowest, self.full)]))

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        """V and its rate without external forces."""
        own, _, E = self._split(z)
        _, _, _, beta, loss, taken, _ = self._flows(t, q, v, z)
        V = self.passive.lyapunov(t, q, v, own, plant).value
        return Lyapunov(V + scalar(E), -scalar((1.0 - beta * self.recovered) * loss + (1.0 - beta) * taken))
