"""A `RegressorModel` run forwards: M(q) a + h(q, v) + F(q, v) = u, its derivatives by state, torque and parameters.

M holds the rotors, T^T diag(Ir) T through the transmission T, and the armature that is known; F is what friction,
offsets, curves and springs take. With tau = Y(q, v, a) x the derivatives of a by the parameters are -M^-1 Y: no other
derivative of the equations of motion is needed than those of the inverse dynamics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from geomctrl.arguments import exactly
from geomctrl.errors import ArgumentError
from geomctrl.identification.model.columns import coulomb
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism.states import require_vectors


class Slopes(NamedTuple):
    """Derivatives of accelerations (N, nv): by q, by v, by torques (N, nv, nv) each, by base parameters (N, nv, nb)."""

    by_q: np.ndarray
    by_v: np.ndarray
    by_torque: np.ndarray
    by_parameters: np.ndarray


def require_forwards(model: RegressorModel) -> None:
    """Raise ArgumentError for a model that can not be simulated."""
    require_vectors("model", model.robot, "only joints with one degree of freedom are simulated")
    if model.columns:
        raise ArgumentError(
            f"model: column {model.columns[0].name!r}: columns of one's own have no derivatives: expected none"
        )
    if model.smoothing == 0.0 and (len(model.acts["coulomb"]) or any(c.shape == "stribeck" for c in model.curves)):
        raise ArgumentError("model: smoothing: expected a speed > 0, as friction that jumps can not be integrated")


class Dynamics:
    """The model with the parameters x (size,)."""

    def __init__(self, model: RegressorModel, x: np.ndarray):
        require_forwards(model)
        self.model, self.x = model, exactly("x", x, (model.size,))
        T = self.transmission = model.transmission
        value = {kind: np.zeros(len(T)) for kind in model.acts}
        for kind, at in model.acts.items():
            value[kind][at] = self.x[model.indices(kind)]
        self.viscous, self.coulomb, self.offset = value["viscous"], value["coulomb"], value["offset"]
        self.amplitudes = self.x[model.indices("curve")]
        self.stiffness, self.preload = np.zeros((2, model.robot.nv))
        self.stiffness[model.springs] = self.x[model.indices("stiffness")]
        self.preload[model.springs] = self.x[model.indices("preload")]
        self.extra = np.diag(model.known_armature) + (T.T * value["rotor"]) @ T
        own = np.diag(self.extra)
        inertial = self.x[: model.inertial]
        self.in_robot = bool((own >= 0.0).all()) and not (self.extra - np.diag(own)).any()
        robot = model.robot.with_armature(own) if self.in_robot else model.robot
        self.robot = robot.with_parameters(inertial, physical=False)
        # bodies alone: their mass matrix need not be positive where that with rotors is, which nobody looks at here
        self.bare = replace(self.robot, joints=tuple(replace(j, armature=0.0) for j in self.robot.joints))
        self.geared = not np.array_equal(T, np.eye(model.robot.nv))

    def taken(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """F (..., nv): what friction, offsets, curves and springs take of the torques."""
        smoothing, s = self.model.smoothing, v @ self.transmission.T if self.geared else v
        f = self.viscous * s + self.offset
        if len(self.model.acts["coulomb"]):
            f = f + self.coulomb * coulomb(s, smoothing)
        for curve, amplitude in zip(self.model.curves, self.amplitudes):
            f[..., curve.actuator] += amplitude * curve.torque(s[..., curve.actuator], smoothing)
        f = f @ self.transmission if self.geared else f
        return f + self.stiffness * q + self.preload if self.model.springs else f

    def damping(self, v: np.ndarray) -> np.ndarray:
        """dF/dv (..., nv, nv)."""
        smoothing, s = self.model.smoothing, v @ self.transmission.T
        slope = np.broadcast_to(self.viscous, s.shape).copy()
        if len(self.model.acts["coulomb"]):
            slope += self.coulomb * (1.0 - np.tanh(s / smoothing) ** 2) / smoothing
        for curve, amplitude in zip(self.model.curves, self.amplitudes):
            at = s[..., curve.actuator]
            if curve.shape == "sigmoid":
                own = (1.0 - np.tanh(at / curve.speed) ** 2) / curve.speed
            else:
                step, bell = np.tanh(at / smoothing), np.exp(-((at / curve.speed) ** 2))
                own = bell * ((1.0 - step**2) / smoothing - 2.0 * step * at / curve.speed**2)
            slope[..., curve.actuator] += amplitude * own
        return self.transmission.T @ (slope[..., None] * self.transmission)

    def acceleration(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """a (..., nv) under the torques u."""
        net = u - self.taken(q, v)
        if self.in_robot:
            return self.robot.forward_dynamics(q, v, net)
        bias = self.bare.inverse_dynamics(q, v, np.zeros_like(v))
        M = self.bare.mass_matrix(q) + self.extra
        return np.linalg.solve(M, (net - bias)[..., None])[..., 0]

    def slopes(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Slopes:
        """At N states with the accelerations there."""
        rigid = self.bare.inverse_dynamics_derivatives(q, v, a)
        inverse = np.linalg.inv(rigid.da + self.extra)
        Y = self.model.regressor(q, v, a)[..., self.model.base.columns]
        by_q = -inverse @ (rigid.dq + np.diag(self.stiffness))
        return Slopes(by_q, -inverse @ (rigid.dv + self.damping(v)), inverse, -inverse @ Y)

    def fastest(self, q: np.ndarray) -> float:
        """The rate [1/s] at which friction alone can brake a joint at the states q (N, nv): integrators step on it."""
        steepest = self.damping(np.zeros_like(q))
        return float(np.abs(np.linalg.eigvals(np.linalg.solve(self.bare.mass_matrix(q) + self.extra, steepest))).max())
