"""Shared by the tests of the core: hypothesis cases, comparison, the complex step, and Pinocchio as reference."""

import functools
import os
from dataclasses import replace

import numpy as np
import pinocchio as pin
from hypothesis import settings
from hypothesis import strategies as st
from lib.robots import depth_first

from geomctrl import inertia, testing
from geomctrl.papers import factored
from geomctrl.testing.robot_terms import derivative as rate_of
from geomctrl.testing.robot_terms import random_states

# Pinocchio has no cylindrical joint
PINOCCHIO_KINDS = ("revolute", "prismatic", "helical", "planar", "spherical", "free")
ONE_DOF = ("revolute", "prismatic", "helical")

properties = settings(deadline=None, derandomize=True, max_examples=10 if "GEOMCTRL_QUICK_TESTS" in os.environ else 25)


def cases(robots=None, **options):
    """Hypothesis: (robot, q, v, a, v_ref)."""
    robots = testing.robots(**options) if robots is None else robots
    return robots.flatmap(lambda r: st.tuples(st.just(r), testing.states(r, 3)).map(lambda c: (c[0], *c[1])))


def without_limits(robot):
    """The robot without limits of positions, speeds and torques: for tests of other properties."""
    free = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf}
    joints = tuple(replace(joint, **free) if joint.dof == 1 else joint for joint in robot.joints)
    return replace(robot, joints=joints)


def random_motion(robot, seed=0):
    """Return (q, v, a, v_ref) of the robot."""
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), *rng.normal(size=(3, robot.nv))


def assert_close(actual, expected, rtol, scale=0.0):
    """|actual - expected| <= rtol max(|expected|, scale), by the largest entries; shapes must agree."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    if actual.size:
        error, size = np.abs(actual - expected).max(), max(np.abs(expected).max(), scale)
        assert error <= rtol * size, f"error {error:.3g}, {error / size:.3g} of {size:.3g}; allowed {rtol:.3g}"


def rate_scale(robot, q, v):
    """|M| |v|: the size of Mdot and C without cancellation."""
    return np.abs(robot.mass_matrix(q)).max() * np.abs(v).max()


def force_scale(robot, q, v, a, v_ref=None):
    """The size of M a, C v_ref and g without cancellation."""
    speed = np.abs(v).max() * np.abs(v if v_ref is None else v_ref).max()
    weight = robot.parameters[:, 0].sum() * np.linalg.norm(robot.gravity)
    return np.abs(robot.mass_matrix(q)).max() * (np.abs(a).max() + speed) + weight


# --- the complex step along q exp(v t) -----------------------------------------------------------------------------

STEP = 1e-40


def moved(robot, q, v):
    """q exp(i STEP v) to first order, which is exact in double precision."""
    out = q.astype(complex)
    for joint, s, k in zip(robot.joints, robot.q_slices, robot.v_slices):
        if joint.dof == 1:
            out[s] += 1j * STEP * v[k]
        else:
            T = factored.joint_motion(joint.S, q[s])
            X = np.zeros((4, 4))
            X[:3, :3], X[:3, 3] = factored.hat(joint.S[:3] @ v[k]), joint.S[3:] @ v[k]
            out[s] += 1j * STEP * (T @ X)[:3].ravel()
    return out


def derivative(function, robot, q, v):
    """d/dt function(q exp(v t)) at t = 0."""
    return np.imag(function(moved(robot, q, v))) / STEP


# --- Pinocchio ---------------------------------------------------------------------------------------------------


class Pinocchio:
    """The same robot in Pinocchio, in our coordinates: its joint frames differ by `shift`, its twists are (v, omega).

    Joints are added depth-first, however our bodies are numbered: in another order crba, computeCoriolisMatrix and the
    derivatives are silently wrong (docs/reference/formulas.md, oracles).
    """

    def __init__(self, robot):
        self.robot, self.model = robot, pin.Model()
        self.model.gravity.linear = robot.gravity
        # the number of each of their joints minus one is our number of the body
        self.bodies = depth_first(robot.parents)
        self.shift, order = [np.eye(4)] * robot.nbodies, []
        for i in self.bodies:
            p, joint, M = robot.parents[i], robot.joints[i], robot.placements[i]
            model, T = _joint_model(joint)
            base = np.eye(4) if p < 0 else np.linalg.inv(self.shift[p])
            on = 0 if p < 0 else self.model.getJointId(f"joint{p}")
            j = self.model.addJoint(on, model, pin.SE3(base @ M @ T), f"joint{i}")
            self.shift[i] = T
            self.model.appendBodyToJoint(j, pin_inertia(robot.parameters[i]), pin.SE3(np.linalg.inv(T)))
            self.model.addFrame(pin.Frame(robot.body_names[i], j, 0, pin.SE3(np.linalg.inv(T)), pin.FrameType.BODY))
            order.append(np.roll(np.arange(robot.nv)[robot.v_slices[i]], 3 if joint.kind == "free" else 0))
        self.order = np.concatenate(order)  # theirs[k] = ours[order[k]]
        self.model.armature = robot.armature[self.order]
        self.data = self.model.createData()

    def q(self, q):
        out = []
        for i in self.bodies:
            joint, s, T = self.robot.joints[i], self.robot.q_slices[i], self.shift[i]
            if joint.dof == 1:
                out.append(q[s])
                continue
            X = np.linalg.inv(T) @ factored.joint_motion(joint.S, q[s]) @ T
            if joint.kind == "planar":
                out.append([X[0, 3], X[1, 3], X[0, 0], X[1, 0]])
            else:
                quaternion = pin.Quaternion(X[:3, :3]).coeffs()
                out.append(quaternion if joint.kind == "spherical" else np.concatenate((X[:3, 3], quaternion)))
        return np.concatenate(out)

    def v(self, v):
        return v[self.order]

    def ours(self, x, axes=1):
        """Return Pinocchio's vector, matrix (axes=2) or Jacobian in our order of coordinates, which are the
        last axes.
        """
        back = np.argsort(self.order)
        return x[..., back] if axes == 1 else x[..., back, :][..., back]

    def mass_matrix(self, q):
        M = np.triu(pin.crba(self.model, self.data, self.q(q)))
        return self.ours(M + np.triu(M, 1).T, 2)

    def coriolis_matrix(self, q, v):
        return self.ours(pin.computeCoriolisMatrix(self.model, self.data, self.q(q), self.v(v)).copy(), 2)

    def gravity_force(self, q):
        return self.ours(pin.computeGeneralizedGravity(self.model, self.data, self.q(q)).copy())

    def inverse_dynamics(self, q, v, a, f_ext=None):
        args = self.model, self.data, self.q(q), self.v(v), self.v(a)
        return self.ours(pin.rnea(*args, *self._forces(f_ext)).copy())

    def forward_dynamics(self, q, v, tau, f_ext=None):
        args = self.model, self.data, self.q(q), self.v(v), self.v(tau)
        return self.ours(pin.aba(*args, *self._forces(f_ext)).copy())

    def _forces(self, f_ext):
        if f_ext is None:
            return ()
        forces = pin.StdVec_Force()
        forces.append(pin.Force.Zero())
        for i in self.bodies:
            F, T = f_ext[i], self.shift[i]
            forces.append(pin.SE3(np.linalg.inv(T)).act(pin.Force(F[3:], F[:3])))
        return (forces,)

    def regressor(self, q, v, a):
        Y = pin.computeJointTorqueRegressor(self.model, self.data, self.q(q), self.v(v), self.v(a))
        Y = Y.reshape(self.model.nv, -1)  # a single row is returned as a vector
        blocks = [
            Y[:, 10 * j : 10 * j + 10] @ inertia.transform(np.linalg.inv(self.shift[i]), np.eye(10)).T
            for i, j in enumerate(np.argsort(self.bodies))
        ]
        return self.ours(np.hstack(blocks).T).T

    def pose(self, q, frame):
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return self.data.oMf[self.model.getFrameId(frame)].homogeneous.copy()

    def jacobian(self, q, frame, representation):
        J = pin.computeFrameJacobian(
            self.model, self.data, self.q(q), self.model.getFrameId(frame), _reference(representation)
        )
        return self.ours(np.roll(J.reshape(6, -1), 3, axis=0))

    def jacobian_rate(self, q, v, frame, representation):
        pin.computeJointJacobiansTimeVariation(self.model, self.data, self.q(q), self.v(v))
        pin.updateFramePlacements(self.model, self.data)
        frame = self.model.getFrameId(frame)
        dJ = pin.getFrameJacobianTimeVariation(self.model, self.data, frame, _reference(representation))
        return self.ours(np.roll(dJ.reshape(6, -1), 3, axis=0))

    def energies(self, q, v):
        q, v = self.q(q), self.v(v)
        armature, self.model.armature = self.model.armature.copy(), np.zeros(self.model.nv)
        kinetic = pin.computeKineticEnergy(self.model, self.data, q, v)  # which counts the armature of one joint only
        self.model.armature = armature
        return kinetic + 0.5 * armature @ v**2, pin.computePotentialEnergy(self.model, self.data, q)

    def momentum(self, q, v):
        """Spatial momentum about the world's origin, angular part first."""
        h = pin.computeCentroidalMomentum(self.model, self.data, self.q(q), self.v(v))
        return np.concatenate((h.angular + np.cross(self.data.com[0], h.linear), h.linear))


def pin_inertia(parameters):
    return pin.Inertia.FromDynamicParameters(np.ascontiguousarray(parameters))


def _reference(representation):
    frames = {"body": pin.LOCAL, "spatial": pin.WORLD, "hybrid": pin.LOCAL_WORLD_ALIGNED}
    return frames[representation]


def _joint_model(joint):
    """Return (Pinocchio's joint, T_body_joint): its joints act about the origin and axes of their own frame."""
    T, S = np.eye(4), joint.S
    if joint.kind == "prismatic":
        return pin.JointModelPrismaticUnaligned(S[3:, 0].copy()), T
    if joint.dof == 1:
        w, v = S[:3, 0].copy(), S[3:, 0]
        T[:3, 3] = np.cross(w, v)
        if joint.kind == "revolute":
            return pin.JointModelRevoluteUnaligned(w), T
        return pin.JointModelHelicalUnaligned(w, float(w @ v)), T
    if joint.kind == "spherical":
        T[:3, 3] = S[5, 1], S[3, 2], S[4, 0]
        return pin.JointModelSpherical(), T
    if joint.kind == "planar":
        T[:3, :3] = np.column_stack((S[3:, 0], S[3:, 1], S[:3, 2]))
        return pin.JointModelPlanar(), T
    assert joint.kind == "free"
    return pin.JointModelFreeFlyer(), T


@functools.lru_cache(maxsize=64)
def pinocchio(robot):
    return Pinocchio(robot)


def assert_power_balanced(robot, inverse_dynamics=None, states=20, rtol=1e-7):
    """dE/dt = v . tau along short random motions q exp(v t), v + a t, by sixth-order differences of the energy E."""
    for q, v, a in random_states(robot, states, seed=0):
        tau = (inverse_dynamics or robot.inverse_dynamics)(q, v, a)
        rate = rate_of(lambda t, q=q, v=v, a=a: robot.energy(robot.integrate(q, t * v + 0.5 * t**2 * a), v + t * a))
        rounding = 8e3 * np.finfo(float).eps * (abs(robot.energy(q, v)) + robot.kinetic_energy(q, v))
        assert abs(rate - v @ tau) <= rtol * np.abs(v * tau).sum() + rounding, "energy is not balanced"
