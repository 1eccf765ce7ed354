"""The regressor: inverse dynamics is linear in the inertial parameters, tau = Y(q, v, a, v_ref) pi + armature a.

For each body the wrench J A + Cbar(V) Vr is linear in (m, h, I). With L(x) y = I x for the six entries of I,

    Y_i = [[0, -[lin], L(al + w x wr) + [w] L(wr)], [lin, [al] + [w][wr], 0]]     (Ploen's Cbar)

where A = (al, acc), lin = acc + w x vr. The Christoffel-consistent Cbar has the inertia block
L(al) + [wr] L(w) + 1/2 (w x wr)(1, 0, 1, 0, 0, 1). With B(X) the matrix of J X with respect to the parameters, the
adjoint Cbar has Y_i = B(A + ad_V Vr) - ad_V^T B(Vr). A row of Y is Jac_k^T Y_i.
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
    """Return (Y @ parameters + armature a (nv,), Y^T @ x (10 nbodies,)) for one state in O(n).

    Y = regressor(q, v, a, v_ref). Adaptive controllers need these products at each time step. parameters (10 nbodies,)
    may be numbers that no rigid body can have.
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
    """Return the regressor Y: inverse_dynamics(q, v, a, v_ref, form=form) = Y @ robot.parameters.ravel() + armature a.

    Parameters
    ----------
    q, v, a : array_like, shape (..., nq), (..., nv), (..., nv)
        Configuration [rad, m], velocity [rad/s, m/s] and acceleration [rad/s^2, m/s^2].
    v_ref : array_like, shape (..., nv), optional
        Reference velocity; with it, Y is the regressor of Slotine and Li. Default: v.
    form : {"ploen", "christoffel", "adjoint"}
        Choice of C, see `terms`. Default "ploen".
    threads : int
        Number of threads for a large batch, default 1.

    Returns
    -------
    ndarray, shape (..., nv, 10 nbodies)
        Ten columns for each body in the order of `Robot.parameters`. Y depends on geometry and gravity, not on the
        parameters. The column of a joint's armature would be its acceleration.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, if a pose in q is not rigid, or if `form` is
        unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> a = np.array([0.5, -1.0])
    >>> Y = robot.regressor(q, v, a)
    >>> np.allclose(Y @ robot.parameters.ravel(), robot.inverse_dynamics(q, v, a))
    True
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
    """Return the regressor of the generalised momentum: M(q) v = Y @ robot.parameters.ravel() + armature v.

    Columns as for `regressor`, shape (..., nv, 10 nbodies). It needs no acceleration: the low-pass filtered momentum
    gives filtered torques (Slotine and Li 1989, "Composite adaptive control of robot manipulators").
    """
    require_robot("robot", robot)
    Y = robot._code.at(kernels.momentum_regressor)(q, v)
    return over_states(robot, kernels.momentum_regressor, q=q, v=v) if Y is None else Y


def momentum_rate_regressor(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the regressor of C(q, v)^T v - g(q) = Y @ robot.parameters.ravel(): with tau added, the rate of p = M v.

    Shape (..., nv, 10 nbodies). The choice of C does not matter: C^T v is the same whenever Mdot - 2C is
    skew-symmetric.
    """
    require_robot("robot", robot)
    Y = robot._code.at(kernels.momentum_rate_regressor)(q, v)
    return over_states(robot, kernels.momentum_rate_regressor, q=q, v=v) if Y is None else Y


# --- many states, joint by joint, without the zeros: the rows that least-squares problems stack --------------------


def subtree_bodies(robot: Mechanism) -> list[np.ndarray]:
    """Return for each velocity coordinate the bodies that it moves: subtrees of its joint and of joints that follow."""
    if robot.couplings:
        trees = subtree_bodies(robot.coupling.tree)
        moved = (np.flatnonzero(column) for column in robot.coupling.matrix.T)
        return [np.unique(np.concatenate([trees[r] for r in rows])) for rows in moved]
    subtrees = []
    for body, dofs in enumerate(robot.v_slices):
        subtree = [body]  # parents have smaller numbers than their children
        for i in range(body + 1, robot.nbodies):
            if robot.parents[i] in subtree:
                subtree.append(i)
        subtrees += [np.array(subtree)] * (dofs.stop - dofs.start)
    return subtrees


def stacked_regressor(robot: Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
    """Return for each velocity coordinate its rows of the regressor over N states, (10 per body of its subtree, N).

    v_ref is v. The bodies are in the order of `subtree_bodies`. Raises ArgumentError like `Robot.regressor`.
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
