"""The terms of the equations of motion M(q) vdot + C(q, v) v + g(q) = tau + sum_i Jac_i^T f_ext_i.

Each function is also a method of `Robot`. All accept leading batch axes, the same for every argument, and raise
ArgumentError for wrong shapes, nan, infinity, or poses in q that are not rigid.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice
from geomctrl.compiler.catalogue import Terms
from geomctrl.errors import ArgumentError
from geomctrl.kernels import articulated_bodies, composite_bodies, newton_euler
from geomctrl.kernels import mass_matrix_inverse as inverses
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.tracing.numbers import has_symbols

from .batches import ONE, REFUSED, check_threads, not_positive, over_states, plain

Form = Literal["ploen", "christoffel", "adjoint"]
DEFAULT = "ploen"  # compared by identity, so that validation costs nothing in the default case
FORMS = {"ploen": newton_euler.PLOEN, "christoffel": newton_euler.CHRISTOFFEL, "adjoint": newton_euler.ADJOINT}


def form_number(form: str) -> int:
    try:
        return FORMS[form]
    except Exception:  # of the object's own hash, too
        return FORMS[choice("form", form, FORMS)]  # raises the error message


def terms(robot: Mechanism, q: ArrayLike, v: ArrayLike, form: Form = "ploen", *, threads: int = 1) -> Terms:
    """Return M, Mdot, C and g at one state, computed together.

    Parameters
    ----------
    q, v : array_like, shape (..., nq), (..., nv)
        Configuration [rad, m] and velocity [rad/s, m/s].
    form : {"ploen", "christoffel", "adjoint"}
        The Coriolis matrix, see Notes. Default "ploen".
    threads : int
        Number of threads for a large batch, default 1.

    Returns
    -------
    Terms
        Named tuple of M, Mdot, C, shape (..., nv, nv) each, and g, shape (..., nv).

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, if a pose in q is not rigid, or if `form` is
        unknown.

    Notes
    -----
    Mdot - 2C is skew-symmetric for all three forms of C = sum_i Jac_i^T (J_i Jacdot_i + Cbar_i Jac_i):

    - "ploen": Ploen 1999 (37) and Proposition 1;
    - "christoffel": the Christoffel symbols of the first kind; for joints with several degrees of freedom the lowered
      Levi-Civita connection;
    - "adjoint": Cbar = J ad_V - ad_V^T J.

    They have different C but the same C v. The last two do not depend on the choice of body frames. For joints with
    several degrees of freedom v is a quasi-velocity, and Mdot is taken along q exp(S v t).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> M, Mdot, C, g = gc.models.panda().terms(np.full(7, 0.4), np.full(7, 1.0))
    >>> np.allclose((Mdot - 2 * C) + (Mdot - 2 * C).T, 0.0)
    True
    """
    if threads is not ONE:
        check_threads(threads)
    if form is not DEFAULT:
        choice("form", form, FORMS)
    code, result = robot._code, None
    if form == "ploen":
        result = code.terms(q, v)
    elif form == "christoffel":
        result = code.terms_christoffel(q, v)
    elif form == "adjoint":
        result = code.at(composite_bodies.terms, newton_euler.ADJOINT, result=Terms)(q, v)
    if result is not None:
        return result
    return Terms(*over_states(robot, composite_bodies.terms, form_number(form), threads=threads, q=q, v=v))


def mass_matrix(robot: Mechanism, q: ArrayLike, *, threads: int = 1) -> np.ndarray:
    """Return the mass matrix M(q), which is symmetric and positive definite.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    threads : int
        Number of threads for a large batch, default 1.

    Returns
    -------
    ndarray, shape (..., nv, nv)
        M [kg m^2, kg m, kg].

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    Notes
    -----
    Ploen 1999 (36), by the composite-rigid-body algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> M = robot.mass_matrix(q)
    >>> np.allclose(M, M.T) and bool(np.linalg.eigvalsh(M)[0] > 0)
    True
    >>> robot.mass_matrix(np.zeros((100, 2))).shape
    (100, 2, 2)
    """
    if threads is not ONE:
        check_threads(threads)
    M = robot._code.mass_matrix(q)
    return over_states(robot, composite_bodies.mass_matrix, threads=threads, q=q) if M is None else M


def mass_matrix_rate(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return Mdot, the derivative of the mass matrix along the velocity v.

    Parameters
    ----------
    q, v : array_like, shape (..., nq), (..., nv)
        Configuration [rad, m] and velocity [rad/s, m/s].

    Returns
    -------
    ndarray, shape (..., nv, nv)

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    Notes
    -----
    Ploen 1999 (28).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> h = 1e-6
    >>> difference = (robot.mass_matrix(q + h * v) - robot.mass_matrix(q - h * v)) / (2 * h)
    >>> np.allclose(robot.mass_matrix_rate(q, v), difference)
    True
    """
    return terms(robot, q, v).Mdot


def coriolis_matrix(robot: Mechanism, q: ArrayLike, v: ArrayLike, form: Form = "ploen") -> np.ndarray:
    """Return the Coriolis matrix C(q, v), for which Mdot - 2C is skew-symmetric.

    Parameters
    ----------
    q, v : array_like, shape (..., nq), (..., nv)
        Configuration [rad, m] and velocity [rad/s, m/s].
    form : {"ploen", "christoffel", "adjoint"}
        Choice of C, see `terms`. Default "ploen".

    Returns
    -------
    ndarray, shape (..., nv, nv)

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
    >>> N = robot.mass_matrix_rate(q, v) - 2 * robot.coriolis_matrix(q, v)
    >>> np.allclose(N, -N.T)
    True
    """
    return terms(robot, q, v, form).C


def mass_matrix_product(robot: Mechanism, q: ArrayLike, x: ArrayLike) -> np.ndarray:
    """Return M(q) x in O(n) without forming M. With x = v this is the generalised momentum dL/dv.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    x : array_like, shape (..., nv)
        Vector.

    Returns
    -------
    ndarray, shape (..., nv)

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> np.allclose(robot.mass_matrix_product(q, v), robot.mass_matrix(q) @ v)
    True
    """
    y = robot._code.at(composite_bodies.mass_matrix_product)(q, x)
    return over_states(robot, composite_bodies.mass_matrix_product, q=q, x=x) if y is None else y


def coriolis_transpose_product(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, x: ArrayLike | None = None, form: Form = "ploen"
) -> np.ndarray:
    """Return C(q, v)^T x in O(n) without forming C.

    Parameters
    ----------
    q, v : array_like, shape (..., nq), (..., nv)
        Configuration [rad, m] and velocity [rad/s, m/s].
    x : array_like, shape (..., nv), optional
        Vector. Default: v.
    form : {"ploen", "christoffel", "adjoint"}
        Choice of C, see `terms`. Default "ploen".

    Returns
    -------
    ndarray, shape (..., nv)

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, if a pose in q is not rigid, or if `form` is
        unknown.

    Notes
    -----
    Because Mdot = C + C^T, the generalised momentum p = M v satisfies p' = tau + C^T v - g (De Luca and others 2006
    (7)).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> x = robot.mass_matrix_product(q, v)
    >>> np.allclose(gc.derivatives.coriolis_transpose_product(robot, q, v, x), robot.coriolis_matrix(q, v).T @ x)
    True
    """
    require_robot("robot", robot)
    x, number = v if x is None else x, form_number(form)
    y = robot._code.at(composite_bodies.coriolis_transpose_product, number)(q, v, x)
    if y is not None:
        return y
    return over_states(robot, composite_bodies.coriolis_transpose_product, number, q=q, v=v, x=x)


def gravity_force(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return g(q): the joint torques that hold the robot against gravity.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv)
        Torques [N m, N].

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    Notes
    -----
    Ploen 1999 (38).

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.two_link().gravity_force([0.0, 0.0])  # stretched out horizontally, links of 1 kg and 1 m
    array([19.62 ,  4.905])
    """
    g = robot._code.gravity_force(q)
    return over_states(robot, newton_euler.gravity_force, q=q) if g is None else g


def inverse_dynamics(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    v_ref: ArrayLike | None = None,
    f_ext: ArrayLike | None = None,
    form: Form = "ploen",
    *,
    threads: int = 1,
) -> np.ndarray:
    """Return tau = M(q) a + C(q, v) v_ref + g(q) - sum_i Jac_i^T f_ext_i in O(n).

    Parameters
    ----------
    q, v, a : array_like, shape (..., nq), (..., nv), (..., nv)
        Configuration [rad, m], velocity [rad/s, m/s] and acceleration [rad/s^2, m/s^2].
    v_ref : array_like, shape (..., nv), optional
        Reference velocity. Default: v.
    f_ext : array_like, shape (..., nbodies, 6), optional
        External wrenches (m, f) on the bodies [N m, N], in body frames about their origins. Default: none.
    form : {"ploen", "christoffel", "adjoint"}
        Choice of C, see `terms`; it matters only with `v_ref`. Default "ploen".
    threads : int
        Number of threads for a large batch, default 1.

    Returns
    -------
    ndarray, shape (..., nv)
        Joint torques [N m, N].

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, if a pose in q is not rigid, or if `form` is
        unknown.

    Notes
    -----
    Without `v_ref` this is the recursive Newton-Euler algorithm (Ploen 1999 (14)-(18)); with it, the recursion with a
    reference velocity of Slotine and Li.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> a = np.array([0.5, -1.0])
    >>> tau = robot.inverse_dynamics(q, v, a)
    >>> np.allclose(robot.forward_dynamics(q, v, tau), a)
    True
    """
    if threads is not ONE:
        check_threads(threads)
    ploen = form is DEFAULT or choice("form", form, FORMS) == "ploen"
    if ploen and v_ref is None and f_ext is None:  # the most frequent call takes the fastest branch
        tau = robot._code.inverse_dynamics(q, v, a)
    elif ploen and f_ext is not None:
        tau = robot._code.inverse_dynamics_external(q, v, a, v if v_ref is None else v_ref, f_ext)
    elif ploen:
        tau = robot._code.inverse_dynamics_reference(q, v, a, v_ref)
    elif form == "christoffel" and f_ext is None:
        tau = robot._code.inverse_dynamics_reference_christoffel(q, v, a, v if v_ref is None else v_ref)
    elif form == "adjoint" and f_ext is None:
        call = robot._code.at(newton_euler.inverse_dynamics_reference, newton_euler.ADJOINT)
        tau = call(q, v, a, v if v_ref is None else v_ref)
    else:
        tau = None
    if tau is not None:
        return tau
    number = form_number(form)
    if v_ref is None and f_ext is None:
        return over_states(robot, newton_euler.inverse_dynamics, threads=threads, q=q, v=v, a=a)
    v_ref = v if v_ref is None else v_ref
    states = {"q": q, "v": v, "a": a, "v_ref": v_ref, "f_ext": f_ext}
    return over_states(robot, newton_euler.inverse_dynamics_reference, number, threads=threads, **states)


def forward_dynamics(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    f_ext: ArrayLike | None = None,
    *,
    threads: int = 1,
) -> np.ndarray:
    """Return the acceleration that joint torques and external wrenches cause, in O(n).

    Parameters
    ----------
    q, v, tau : array_like, shape (..., nq), (..., nv), (..., nv)
        Configuration [rad, m], velocity [rad/s, m/s] and joint torques [N m, N].
    f_ext : array_like, shape (..., nbodies, 6), optional
        External wrenches (m, f) on the bodies [N m, N], in body frames about their origins. Default: none.
    threads : int
        Number of threads for a large batch, default 1.

    Returns
    -------
    ndarray, shape (..., nv)
        Acceleration [rad/s^2, m/s^2].

    Raises
    ------
    ModelError
        If the mass matrix is not positive definite, which only happens with parameters that no rigid body can have.

    Notes
    -----
    The articulated-body algorithm. Robots with up to ten coordinates use the mass matrix, which needs fewer operations.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> a = robot.forward_dynamics(q, v, np.zeros(2))
    >>> M, Mdot, C, g = robot.terms(q, v)
    >>> np.allclose(M @ a + C @ v + g, 0.0)
    True
    """
    if threads is not ONE:
        check_threads(threads)
    code = robot._code
    a = code.forward_dynamics(q, v, tau) if f_ext is None else code.forward_dynamics_external(q, v, tau, f_ext)
    if a is not None:
        return a
    return over_states(robot, articulated_bodies.forward_dynamics, threads=threads, q=q, v=v, tau=tau, f_ext=f_ext)


def mass_matrix_inverse(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return M(q)^-1, exactly symmetric, in O(n^2) without forming M.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv)

    Raises
    ------
    ModelError
        If the mass matrix is not positive definite.

    Notes
    -----
    The algorithm uses articulated-body inertias (`kernels.mass_matrix_inverse`).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> np.allclose(robot.mass_matrix_inverse(q) @ robot.mass_matrix(q), np.eye(2))
    True
    """
    inverse = robot._code.mass_matrix_inverse(q)
    return over_states(robot, inverses.mass_matrix_inverse, q=q) if inverse is None else inverse


def mass_matrix_solve(robot: Mechanism, q: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return M(q)^-1 b in O(n) for each column, without forming M: the accelerations that forces b cause from rest.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    b : array_like, shape (..., nv) or (..., nv, m)
        One vector, or m columns.

    Returns
    -------
    ndarray
        The shape of b.

    Raises
    ------
    ModelError
        If the mass matrix is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, b = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> np.allclose(robot.mass_matrix(q) @ robot.mass_matrix_solve(q, b), b)
    True
    """
    try:
        tree = not robot.couplings and not any(map(has_symbols, (robot._model, q, b)))
        if tree and plain(q, b) and np.ndim(b) == 1:
            x = np.empty(robot.nv)
            inverses.mass_matrix_solve_one(robot._model, q, b, x)
            return x
    except REFUSED:
        pass
    lead, (q,) = as_batch(robot, q=q)
    b = checked("b", b, ())
    columns = b.ndim == len(lead) + 2
    b = checked("b", b, (robot.nv, b.shape[-1]) if columns else (robot.nv,))
    if b.shape[: b.ndim - 1 - columns] != lead:
        raise ArgumentError(f"b: expected the leading axes of q, {lead}, then nv = {robot.nv}, got shape {b.shape}")
    flat = b.reshape(len(q), robot.nv, b.shape[-1] if columns else 1)
    if robot.couplings or any(map(has_symbols, (robot._model, q, b))):
        return (mass_matrix_inverse(robot, q) @ flat).reshape(b.shape)
    out, singular = inverses.mass_matrix_solve_many(robot._model, q, flat)
    if singular >= 0:
        raise not_positive(robot, q[singular])
    return out.reshape(b.shape)
