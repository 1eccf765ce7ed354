"""What joint torques say of a load: as sources of rows for `stacked`.

A load moves with the body that carries it, so that its columns are that body's, seen from the load's frame,

    tau = Y(q, v, a) x + Y_body(q, v, a) T pi_load + friction of the loaded robot

Two logs: x are unknown (base parameters), and the same in both (Khalil, Gautier, Lemoine 2007). One log: x are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.columns import coulomb
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Frame

from .stacked import Chunk

OWN = ("viscous", "coulomb", "offset", "curve")  # what may differ with the load on


@dataclass(frozen=True, eq=False)
class Columns:
    """The unknowns in their order: base parameters `at` (none: all of x is `known`), with `share` a torque per unit of
    transmitted torque of each joint, friction of the loaded robot's own (`own`), the load's ten.

    transmitted: rigid-body parameters (all bodies', the load's) that say what the joints transmit, for `share`.
    """

    model: RegressorModel
    frame: Frame
    at: np.ndarray
    own: np.ndarray
    known: np.ndarray | None = None
    transmitted: tuple[np.ndarray, np.ndarray] | None = None
    handover: np.ndarray = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "handover", inertia.transform(self.frame.placement, np.eye(10)).T)

    @property
    def nuisances(self) -> int:
        share = self.model.robot.nv if self.transmitted is not None else 0
        return len(self.at) + share + len(self.own)

    def rows(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, loaded: bool) -> list[np.ndarray]:
        """[columns (n, nv, nuisances + 10), known torques (n, nv)]."""
        Y = self.model.regressor(q, v, a)
        own, load = Y[..., self.own], self.load(Y)
        if not loaded:
            own, load = np.zeros_like(own), np.zeros_like(load)
        parts = [Y[..., self.at], own, load]
        if self.transmitted is not None:
            x, pi = self.transmitted
            torque = Y[..., : len(x)] @ x + load @ pi
            share = np.abs(torque) * coulomb(v, self.model.smoothing)
            parts.insert(1, share[..., None] * np.eye(v.shape[1]))
        known = np.zeros(v.shape) if self.known is None else Y @ self.known
        return [np.concatenate(parts, -1), known]

    def load(self, Y: np.ndarray) -> np.ndarray:
        """(n, nv, 10): torques per unit of the load's parameters in its frame."""
        first = 10 * self.frame.body
        return Y[..., first : first + 10] @ self.handover


@dataclass(frozen=True, eq=False)
class TorqueLog:
    """A log of joint torques as a `Source`, filtered as `data` says; loaded: the load is on."""

    data: Dataset
    columns: Columns
    loaded: bool

    @property
    def label(self) -> str:
        return self.data.label

    @property
    def channels(self) -> Sequence[str]:
        return self.columns.model.robot.dof_names

    def rows(self) -> Iterator[Chunk]:
        columns = self.columns

        def values(q, v, a):
            return columns.rows(q, v, a, self.loaded)

        for (A, known), tau, mask, _ in columns.model.stream(self.data, values):
            yield A, tau - known, mask
