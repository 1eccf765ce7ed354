"""The regressor: inverse dynamics is linear in the inertial parameters, tau = Y(q, v, a, v_ref) pi + armature a.

Body by body the wrench J A + Cbar(V) Vr is linear in (m, h, I): with L(x) y = I x for the six entries of I,

    Y_i = [[0, -[lin], L(al + w x wr) + [w] L(wr)], [lin, [al] + [w][wr], 0]]     (Ploen's Cbar)

where A = (al, acc), lin = acc + w x vr; the Christoffel-consistent Cbar has the inertia block
L(al) + [wr] L(w) + 1/2 (w x wr)(1, 0, 1, 0, 0, 1). With B(X) the matrix of J X by the parameters, the adjoint Cbar has
Y_i = B(A + ad_V Vr) - ad_V^T B(Vr). A row of Y is Jac_k^T Y_i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice
from geomctrl.errors import ArgumentError
from geomctrl.kernels import lanes
from geomctrl.kernels import regressor as kernels
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch

from .batches import ONE, check_threads, over_states
from .dynamics import DEFAULT, FORMS, Form, form_number


def products(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    v_ref: ArrayLike,
    parameters: ArrayLike,
    x: ArrayLike,
    form: Form = "ploen",
) -> tuple[np.ndarray, np.ndarray]:
    """(Y @ parameters + armature a (nv,), Y^T @ x (10 nbodies,)) for one state in O(n), Y = regressor(q, v, a, v_ref).

    What an adaptive controller needs of Y at each instant, the motors' known armature compensated. parameters
    (10 nbodies,): any numbers, physical or not.
    """
    number = form_number(form)
    call = robot._code.at(kernels.products, number)
    result = call(parameters, q, v, a, v_ref, x)
    if result is None:
        lead, arrays = as_batch(robot, q=q, v=v, a=a, v_ref=v_ref, x=x)
        if lead:
            raise ArgumentError(f"q, v, a, v_ref, x: expected one state, got leading axes {lead}") from None
        pi = checked("parameters", parameters, (10 * robot.nbodies,))
        result = call(pi, *(b[0] for b in arrays))
    return result


def regressor(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    v_ref: ArrayLike | None = None,
    form: Form = "ploen",
    *,
    threads: int = 1,
) -> np.ndarray:
    """Y (..., nv, 10 nbodies), inverse_dynamics(q, v, a, v_ref, form=form) = Y @ robot.parameters.ravel() + armature a.

    It depends on the robot's geometry and gravity, not on its parameters (Slotine and Li's regressor where v_ref is
    given). Columns: ten a body, in the order of `Robot.parameters`; an armature's would be its joint's acceleration.
    threads: how many share a large batch.
    Raises ArgumentError like the other terms.
    """
    if threads is not ONE:
        check_threads(threads)
    if form is not DEFAULT:
        choice("form", form, FORMS)
    if v_ref is None:
        v_ref = v
    code, Y = robot._code, None
    if form == "ploen":
        Y = code.regressor(q, v, a, v_ref)
    elif form == "christoffel":
        Y = code.regressor_christoffel(q, v, a, v_ref)
    elif form == "adjoint":
        Y = code.at(kernels.regressor, form_number(form))(q, v, a, v_ref)
    if Y is not None:
        return Y
    return over_states(robot, kernels.regressor, form_number(form), threads=threads, q=q, v=v, a=a, v_ref=v_ref)


def momentum_regressor(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Y (..., nv, 10 nbodies), M(q) v = Y @ robot.parameters.ravel() + armature v: the generalised momentum p = M v.

    Columns as `regressor`'s; it needs no acceleration (Slotine and Li 1989, "Composite adaptive control of robot
    manipulators", where p, low-pass filtered, gives filtered torques). Raises ArgumentError like the other terms.
    """
    require_robot("robot", robot)
    Y = robot._code.at(kernels.momentum_regressor)(q, v)
    return over_states(robot, kernels.momentum_regressor, q=q, v=v) if Y is None else Y


def momentum_rate_regressor(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Y (..., nv, 10 nbodies), C(q, v)^T v - g(q) = Y @ robot.parameters.ravel(): the rate of p = M v is that and tau.

    C is any that keeps Mdot - 2C skew, all have the same C^T v. Raises ArgumentError like the other terms.
    """
    require_robot("robot", robot)
    Y = robot._code.at(kernels.momentum_rate_regressor)(q, v)
    return over_states(robot, kernels.momentum_rate_regressor, q=q, v=v) if Y is None else Y


# --- many states, joint by joint: what least squares stack, without the zeros and ready for LAPACK ----------------


def subtree_bodies(robot: Mechanism) -> list[np.ndarray]:
    """Per velocity coordinate, the numbers of the bodies it moves: subtrees of its joint and of followers."""
    if robot.couplings:
        trees = subtree_bodies(robot.tree)
        moved = (np.flatnonzero(column) for column in robot.coupling.matrix.T)
        return [np.unique(np.concatenate([trees[r] for r in rows])) for rows in moved]
    subtrees = []
    for body, dofs in enumerate(robot.v_slices):
        subtree = [body]  # bodies are numbered parents first
        for i in range(body + 1, robot.nbodies):
            if robot.parents[i] in subtree:
                subtree.append(i)
        subtrees += [np.array(subtree)] * (dofs.stop - dofs.start)
    return subtrees


def stacked_regressor(robot: Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
    """Per velocity coordinate, its rows of the regressor over N states: (10 a body of its subtree, N), v_ref being v.

    Bodies in the order of `subtree_bodies`. Raises ArgumentError like `Robot.regressor`.
    """
    _, (q, v, a) = as_batch(robot, q=q, v=v, a=a)
    subtrees, N = subtree_bodies(robot), len(q)
    sizes = [10 * len(c) for c in subtrees]
    out = np.empty((sum(sizes), N))
    blocks = np.split(out, np.cumsum(sizes)[:-1])
    done = 0
    if robot.nq == robot.nv == robot.nbodies:
        places = np.zeros((robot.nbodies, robot.nbodies), dtype=np.int64)
        for k, (c, first) in enumerate(zip(subtrees, np.cumsum([0, *sizes[:-1]]))):
            places[k, c] = first + 10 * np.arange(len(c))
        done = lanes.stack_lanes(robot._model, q, v, a, places, out)
    if done < N:
        Y = regressor(robot, q[done:], v[done:], a[done:]).reshape(N - done, robot.nv, robot.nbodies, 10)
        for k, (block, c) in enumerate(zip(blocks, subtrees)):
            block[:, done:] = Y[:, k, c].reshape(N - done, -1).T
    return blocks
