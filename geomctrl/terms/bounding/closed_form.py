"""Bounds of M, C, dg/dq, g and of their derivatives at every configuration, from the reach of bodies.

The field u_k(x) of a velocity coordinate is the velocity of the points of the bodies that it moves, for unit rate. With
integrals over the mass of every body b,

    M_jk = sum_b <u_j, u_k>,   Gamma_ijk = sum_b <D_i u_j, u_k>,   g_k = -gamma . sum_b int u_k,

where D_i u_j = w_i x u_j if i is nearer the root than j or of the same joint, else w_j x u_i, because a coordinate
rotates the fields farther out (`curvature` has the same in terms of screws). D of a set A of coordinates is the nested
cross product of all their w, the nearest outermost, with the u of the farthest, far A. Therefore

    |<D_A, D_B>| <= (product of all other |w|) N_b[far A, far B],   N_b = e e^T + m r r^T,

by the inequality of Cauchy and Schwarz. Here r_k bounds the speed of the body's centre of mass (`reach`), and e_k^2 =
w_k . I w_k with I about the centre of mass; for joints farther in it is the largest eigenvalue of I times |w_k|^2. The
spectral norm of a matrix is at most that of a matrix that bounds the sizes of its entries. For intervals of the
parameters the heavier bodies are used (`quantities`): N_b then bounds any pseudo-inertia between plus and minus theirs.

C of the forms "ploen" and "adjoint" is the Christoffel-consistent one plus a sum over b of terms that are skew in
i, j, k: 1/2 tr(I_b) w_j . (w_i x w_k) with I_b about the body frame's origin, and int [w_j . (u_i x u_k) +
u_j . (u_i x w_k) + u_j . (w_i x u_k)].
"""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms.bounding.quantities import Bodies

from .reach import MARGIN, PARALLEL, Reach


class ClosedForm:
    """Bounds in closed form, see the module.

    Methods that return arrays bound the absolute values of entries; `m2` to `g` bound norms. `derived` are coordinates
    with respect to which the quantity is differentiated.
    """

    def __init__(self, robot: Mechanism, bodies: Bodies, reach: Reach, form: str):
        self.robot, self.bodies, self.reach, self.form = robot, bodies, reach, form
        self.body_of = np.array([f.body for f in reach.fields])
        self.W = reach.rates
        self.carried = np.zeros((robot.nbodies, robot.nv), bool)
        for b, path in enumerate(reach.paths):
            self.carried[b, path] = True
        parameters = bodies.heavier
        self.mass = parameters[:, 0]
        self.r = reach.speeds_of(np.nan_to_num(inertia.com(parameters)))
        self.e = self._turning_inertia(parameters)

    def _turning_inertia(self, parameters: np.ndarray) -> np.ndarray:
        """Return e (nbodies, nv)."""
        e = np.zeros((self.robot.nbodies, self.robot.nv))
        for b, (I, path) in enumerate(zip(inertia.com_tensor(parameters), self.reach.paths)):
            largest = np.sqrt(max(np.linalg.eigvalsh(I)[-1], 0.0))
            for k in path:
                w = self.reach.fields[k].w
                own = self.body_of[k] == b
                e[b, k] = (np.sqrt(max(w @ I @ w, 0.0)) if own else largest * self.W[k]) * (1.0 + MARGIN)
        return e

    @cached_property
    def N(self) -> np.ndarray:
        """N_b (nbodies, nv, nv)."""
        return (
            self.e[:, :, None] * self.e[:, None, :] + self.mass[:, None, None] * self.r[:, :, None] * self.r[:, None, :]
        )

    def far(self, coordinates: tuple[int, ...]) -> tuple[int, float]:
        """Return (the coordinate farthest from the root, the last one within a joint; product of the others' |w|)."""
        farthest = max(range(len(coordinates)), key=lambda x: (self.body_of[coordinates[x]], x))
        return coordinates[farthest], float(np.prod([self.W[c] for x, c in enumerate(coordinates) if x != farthest]))

    def product(self, A: tuple[int, ...], B: tuple[int, ...]) -> float:
        """Bound |sum_b <D_A, D_B>|. A and B are coordinates in the order in which they are applied."""
        (a, wa), (b, wb) = self.far(A), self.far(B)
        return float(wa * wb * self.N[self.carried[:, [*A, *B]].all(axis=1), a, b].sum())

    # --- entries ---------------------------------------------------------------------------------------------------

    def mass_matrix(self, *derived: int) -> np.ndarray:
        """Bound M (nv, nv), or its derivative."""
        n = self.robot.nv
        bodies = np.array([[self._derived((i,), (j,), derived) for j in range(n)] for i in range(n)])
        return bodies if derived else bodies + np.diag(self.robot.armature)

    def christoffel(self, *derived: int) -> np.ndarray:
        """Bound Gamma_ijk at [i, j, k], or its derivative."""
        n = self.robot.nv
        out = np.zeros((n, n, n))
        for i in range(n):
            for j in range(n):
                far, _ = self.far((i, j))
                for k in range(n):
                    if derived or k != far:  # (w x u) . u = 0
                        out[i, j, k] = self._derived((i, j), (k,), derived)
        return out

    def coriolis(self, *derived: int) -> np.ndarray:
        """Bound T_ijk at [i, j, k], with C(q, v)_kj = sum_i T_ijk v_i, or its derivative."""
        return self.christoffel(*derived) + self.skew_part(*derived)

    def skew_part(self, *derived: int) -> np.ndarray:
        """Bound the terms that the form of C adds to Gamma_ijk, or their derivatives."""
        n = self.robot.nv
        out = np.zeros((n, n, n))
        if self.form == "christoffel":
            return out
        traces = 0.5 * np.trace(inertia.tensor(self.bodies.heavier), axis1=-2, axis2=-1)
        for i, j, k in itertools.permutations(range(n), 3):
            if self.form == "ploen":
                carried = self.carried[:, [i, j, k]].all(axis=1)
                turned = float(np.prod([self.W[x] * 3.0 for x in derived]))
                out[i, j, k] = turned * self.W[i] * self.W[j] * self.W[k] * (traces @ carried)
            else:
                out[i, j, k] = sum(self._turned(*x, derived) for x in ((i, j, k), (j, i, k), (k, i, j)))
        return out

    def _turned(self, x: int, y: int, z: int, derived: tuple[int, ...]) -> float:
        """Bound the derivative of sum_b int w_x . (u_y x u_z), by the product rule for the three factors."""
        total = 0.0
        for places in itertools.product(range(3), repeat=len(derived)):
            A = (*(d for d, columns in zip(derived, places) if columns == 0), y)
            B = (*(d for d, columns in zip(derived, places) if columns == 1), z)
            turning = [self.W[d] for d, columns in zip(derived, places) if columns == 2]
            total += float(np.prod(turning)) * self.W[x] * self.product(A, B)
        return total

    def _derived(self, A: tuple[int, ...], B: tuple[int, ...], derived: tuple[int, ...]) -> float:
        """Bound the derivative of <D_A, D_B>, by the product rule."""
        if not derived:
            return self.product(A, B)
        first, rest = derived[:1], derived[1:]
        return self._derived((*first, *A), B, rest) + self._derived(A, (*first, *B), rest)

    # --- gravity -----------------------------------------------------------------------------------------------------

    @cached_property
    def U(self) -> np.ndarray:
        """Bounds (nv,) of |int u_k| over all bodies that coordinate k moves."""
        nominal, d = self.bodies.nominal, self.bodies.deviation
        out = np.array([self.reach.moment(k, nominal[:, 0], nominal[:, 1:4]) for k in range(self.robot.nv)])
        if not self.bodies.certain:
            origins = self.reach.speeds_of(np.zeros((self.robot.nbodies, 3)))
            out += d[:, 0] @ origins + self.W * (np.linalg.norm(d[:, 1:4], axis=1) @ self.carried)
        return out

    @cached_property
    def tilt(self) -> np.ndarray:
        """Bounds (nv,) of |gamma x w_k|, which are exact for axes that keep their direction in the world."""
        gamma = np.linalg.norm(self.robot.gravity)
        out = gamma * self.W
        for k, direction in enumerate(map(self._in_world, range(self.robot.nv))):
            if direction is not None and self.W[k] > 0.0:
                out[k] = (np.linalg.norm(np.cross(self.robot.gravity, direction)) + PARALLEL * gamma) * self.W[k]
        return out

    def _in_world(self, k: int) -> np.ndarray | None:
        """Return the unit direction in the world of w, or of v for a sliding joint; None if it depends on q."""
        field, robot = self.reach.fields[k], self.robot
        if robot.joints[field.body].dof > 1:
            return None
        a, i = field.w if field.turning else field.v, field.body
        a = robot.placements[i][:3, :3] @ a
        while (i := robot.parents[i]) >= 0:
            joint = robot.joints[i]
            if joint.dof > 1 or np.linalg.norm(np.cross(joint.S[:3, 0], a)) > PARALLEL:
                return None
            a = robot.placements[i][:3, :3] @ a
        return a

    def gravity(self, *derived: int) -> np.ndarray:
        """Bound g (nv,), or its derivative (joints with one degree of freedom)."""
        if derived:
            return self.gravity_derivative(*derived[:-1])[:, derived[-1]]
        out = np.linalg.norm(self.robot.gravity) * self.U
        for k, field in enumerate(self.reach.fields):
            direction = self._in_world(k)
            if field.turning and field.pitch == 0.0 and direction is not None:
                out[k] = self.tilt[k] / field.turning * self.U[k]
            elif not field.turning and direction is not None:
                out[k] = (abs(self.robot.gravity @ direction) / np.linalg.norm(field.v) + PARALLEL) * self.U[k]
        return out

    def gravity_derivative(self, *derived: int) -> np.ndarray:
        """Bound dg_k/dq_j at [k, j], or its derivative (joints with one degree of freedom)."""
        n = self.robot.nv
        out = np.zeros((n, n))
        for k in range(n):
            for j in range(n):
                if self.carried[:, (*derived, j, k)].all(axis=1).any():  # all lie on one path to the root
                    out[k, j] = self._tilted((*derived, j, k))
        return out

    def _tilted(self, coordinates: tuple[int, ...]) -> float:
        """Bound |gamma . w_1 x (w_2 x ... int u)|, with the coordinate nearest to the root first."""
        far, _ = self.far(coordinates)
        others = list(coordinates)
        others.remove(far) if coordinates[-1] != far else others.pop()
        nearest = min(others, key=lambda c: self.body_of[c])
        others.remove(nearest)
        return float(self.tilt[nearest] * np.prod(self.W[others]) * self.U[far])

    # --- norms -------------------------------------------------------------------------------------------------------

    def m2(self) -> float:
        return norm_of_bounds(self.mass_matrix())

    def k_C(self) -> float:
        return trilinear_norm_of_bounds(self.coriolis())

    def k_g(self) -> float:
        return norm_of_bounds(self.gravity_derivative())

    def g(self) -> float:
        return norm_of_bounds(self.gravity()[:, None])


def norm_of_bounds(B: np.ndarray) -> float:
    """Bound the spectral norm of all matrices with entries of at most the size of those of B."""
    return float(np.linalg.norm(B, 2)) * (1.0 + MARGIN)


def trilinear_norm_of_bounds(T: np.ndarray) -> float:
    """Bound sup |T(x, y, z)| over unit vectors, for tensors bounded by T, by the norms of the three unfoldings."""
    n = len(T)
    return min(norm_of_bounds(np.moveaxis(T, axis, 0).reshape(n, n * n)) for axis in range(3))
