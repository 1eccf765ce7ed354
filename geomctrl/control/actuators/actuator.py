"""What an actuator is."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.control.subclass_checks import require_arguments, require_together
from geomctrl.described import Described
from geomctrl.errors import ArgumentError

SIGNATURES = {
    "inputs": "outputs",
    "start": "w",
    "torque": "t, u, w, x",
    "state_rate": "t, u, w, x",
    "speed": "w, x",
    "stored_energy": "x",
    "storage_power": "t, u, w, x",
}


class Actuator(Described):
    """One link of the chain from command to joint torque: inputs u in, outputs tau out. The implementer's contract:

    A `Plant` has a list of them, in order from the command on: the outputs of one are the inputs of the next, those of
    the last the torques (nv,) of the joints. Power goes through a link as u . (speed at its input) = tau . w: w
    (outputs,) is the speed conjugate to its outputs, the joints' v at the last link [rad/s and N m, m/s and N].

    1. `torque(t, u, w, x)` returns tau (outputs,), from u (inputs,), w (outputs,) and x, the link's own state, None
       without one. It has no side effects, and writes on none of its arguments: an integrator calls it at its stages.
    2. `inputs(outputs)` says how many inputs a link of so many outputs has, and raises ArgumentError if it can not
       have so many; default as many as outputs.
    3. A link with a continuous state on R^n overrides two: `start(w)`, the state (n,) it begins with, moving at w; and
       `state_rate(t, u, w, x)`, its rate.
    4. `speed(w, x)` is the speed conjugate to the inputs (inputs,), which links before it see; default w. A link that
       multiplies torque by B multiplies speed by B^T; one with a rotor of its own gives the rotor's.
    5. A link that stores energy overrides two: `stored_energy(x)` [J], and `storage_power(t, u, w, x)` [W], what flows
       into the store: in at the input, less what goes out to the joints and what is lost. The energy balance of a run
       then checks the one against the other.
    6. Memories that are updated at samples and not all the time (a delay, backlash, a rate limit in steps) are no
       states x: they belong to what a loop does at its samples.

    What belongs together is looked at when a subclass is made. To be compiled, methods use Python, numpy and math on
    numbers and arrays, as a controller's law does.
    """

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        require_together(cls, "start", "state_rate", why="a state's beginning and its rate")
        require_together(cls, "stored_energy", "storage_power", why="an energy and what flows into it")
        for name, arguments in SIGNATURES.items():
            require_arguments(cls, name, arguments)

    def inputs(self, outputs: int) -> int:
        """How many inputs a link with so many outputs has; rule 2."""
        return outputs

    def start(self, w: np.ndarray) -> np.ndarray | None:
        """The link's own state (n,) where it moves at w, None without one; rule 3."""
        return None

    def torque(self, t: float, u: np.ndarray, w: np.ndarray, x: np.ndarray | None) -> np.ndarray:
        """The outputs tau (outputs,) of inputs u (inputs,); rule 1."""
        raise NotImplementedError(f"{type(self).__name__}.torque")

    def state_rate(self, t: float, u: np.ndarray, w: np.ndarray, x: Any) -> np.ndarray:
        """The rate (n,) of the link's own state; rule 3."""
        raise NotImplementedError(f"{type(self).__name__}.state_rate")

    def speed(self, w: np.ndarray, x: np.ndarray | None) -> np.ndarray:
        """The speed (inputs,) that links before this one see; rule 4."""
        return w

    def stored_energy(self, x: Any) -> float:
        """What the link stores [J]; rule 5."""
        return 0.0

    def storage_power(self, t: float, u: np.ndarray, w: np.ndarray, x: Any) -> float:
        """What flows into that store [W]; rule 5."""
        return 0.0


def require_sizes(outputs: int, **numbers: np.ndarray) -> int:
    """`outputs`, unless one of the numbers, each () or (n,), is not of so many; then raises ArgumentError."""
    for name, x in numbers.items():
        if x.shape not in ((), (outputs,)):
            raise ArgumentError(f"{name}: expected a number or ({outputs},) numbers, got shape {x.shape}")
    return outputs
