"""The terms of the equations of motion M(q) vdot + C(q, v) v + g(q) = tau + sum_i Jac_i^T f_ext_i.

Each function is also a method of `Robot`. All take any leading batch axes, the same for every argument. Arguments are
checked: ArgumentError for wrong shapes, nan, infinity, or poses in q whose rotation is none.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice
from geomctrl.compiler.catalogue import Terms
from geomctrl.errors import ArgumentError
from geomctrl.kernels import articulated_bodies, composite_bodies, momenta, newton_euler
from geomctrl.kernels import mass_matrix_inverse as inverses
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.states import as_batch
from geomctrl.tracing.numbers import has_symbols

from .batches import ONE, REFUSED, check_threads, not_positive, over_states, plain

Form = Literal["ploen", "christoffel", "adjoint"]
DEFAULT = "ploen"  # asked for by `is` first, which costs a call nothing
FORMS = {"ploen": newton_euler.PLOEN, "christoffel": newton_euler.CHRISTOFFEL, "adjoint": newton_euler.ADJOINT}


def form_number(form: str) -> int:
    try:
        return FORMS[form]
    except (KeyError, TypeError):
        return FORMS[choice("form", form, FORMS)]  # which has the words


def terms(robot: Mechanism, q: ArrayLike, v: ArrayLike, form: Form = "ploen", *, threads: int = 1) -> Terms:
    """M(q), Mdot(q, v), C(q, v) and g(q) in one sweep: Terms(M, Mdot, C, g), (..., nv, nv) three times and (..., nv).

    Mdot - 2C is skew for all forms of C = sum_i Jac_i^T (J_i Jacdot_i + Cbar_i Jac_i): "ploen" (Ploen 1999 (37) and
    Proposition 1), "christoffel" (the Christoffel symbols of the first kind; for joints with several degrees of freedom
    the lowered Levi-Civita connection) and "adjoint" (Cbar = J ad_V - ad_V^T J, which like the second depends on no
    choice of body frames). They differ in C, never in C v. For joints with several degrees of freedom v is a
    quasi-velocity, and Mdot is taken along q exp(S v t). threads: how many share a large batch.
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
    """M(q) (..., nv, nv) [kg m^2, kg m, kg], symmetric positive definite (Ploen 1999 (36)), by composite bodies.

    threads: how many share a large batch.
    """
    if threads is not ONE:
        check_threads(threads)
    M = robot._code.mass_matrix(q)
    return over_states(robot, composite_bodies.mass_matrix, threads=threads, q=q) if M is None else M


def mass_matrix_rate(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Mdot (..., nv, nv): the derivative of M along the motion (Ploen 1999 (28))."""
    return terms(robot, q, v).Mdot


def coriolis_matrix(robot: Mechanism, q: ArrayLike, v: ArrayLike, form: Form = "ploen") -> np.ndarray:
    """C(q, v) (..., nv, nv) with Mdot - 2C skew; see `terms` for the three forms."""
    return terms(robot, q, v, form).C


def mass_matrix_product(robot: Mechanism, q: ArrayLike, x: ArrayLike) -> np.ndarray:
    """M(q) x (..., nv) without forming M, O(n); with x = v the generalised momentum dL/dv. x (..., nv)."""
    y = robot._code.at(composite_bodies.mass_matrix_product)(q, x)
    return over_states(robot, composite_bodies.mass_matrix_product, q=q, x=x) if y is None else y


def coriolis_transpose_product(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, x: ArrayLike | None = None, form: Form = "ploen"
) -> np.ndarray:
    """C(q, v)^T x (..., nv) without forming C, O(n), for the C of `form` as in `terms`; x=None means v.

    The generalised momentum p = M v moves as p' = tau + C^T v - g because Mdot = C + C^T (De Luca and others 2006 (7)).
    """
    x, number = v if x is None else x, form_number(form)
    y = robot._code.at(composite_bodies.coriolis_transpose_product, number)(q, v, x)
    if y is not None:
        return y
    return over_states(robot, composite_bodies.coriolis_transpose_product, number, q=q, v=v, x=x)


def gravity_force(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """g(q) (..., nv): the joint torques that hold the robot against gravity (Ploen 1999 (38))."""
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
    """Compute the joint torques tau = M(q) a + C(q, v) v_ref + g(q) - sum_i Jac_i^T f_ext_i.

    Parameters
    ----------
    q : array_like (..., nq)
    v, a : array_like (..., nv)
        Joint velocities and accelerations.
    v_ref : array_like (..., nv), optional
        The reference velocity of Slotine and Li's law, default v.
    f_ext : array_like (..., nbodies, 6), optional
        Wrenches (moment, force) [N m, N] on the bodies, in body frames about their origins.
    form : {"ploen", "christoffel", "adjoint"}, default "ploen"
        Which C; without `v_ref` all give the same torques.
    threads : int, default 1
        How many threads share a large batch.

    Returns
    -------
    ndarray (..., nv)
        [N m, N].

    Raises
    ------
    ArgumentError

    Notes
    -----
    The recursive Newton-Euler algorithm in O(n), Ploen 1999 (14)-(18).
    """
    if threads is not ONE:
        check_threads(threads)
    ploen = form is DEFAULT or choice("form", form, FORMS) == "ploen"
    if ploen and v_ref is None and f_ext is None:  # the usual call first
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
    """Compute the joint accelerations under joint torques and body wrenches.

    Parameters
    ----------
    q : array_like (..., nq)
    v, tau : array_like (..., nv)
        Joint velocities, and torques [N m, N].
    f_ext : array_like (..., nbodies, 6), optional
        Wrenches (moment, force) [N m, N] on the bodies, in body frames about their origins.
    threads : int, default 1
        How many threads share a large batch.

    Returns
    -------
    ndarray (..., nv)
        [rad/s^2, m/s^2].

    Raises
    ------
    ModelError
        The mass matrix is not positive definite, which only parameters that no body has bring about.
    ArgumentError

    Notes
    -----
    The articulated-body algorithm in O(n); up to ten coordinates the mass matrix, which then takes fewer operations.
    """
    if threads is not ONE:
        check_threads(threads)
    code = robot._code
    a = code.forward_dynamics(q, v, tau) if f_ext is None else code.forward_dynamics_external(q, v, tau, f_ext)
    if a is not None:
        return a
    return over_states(robot, articulated_bodies.forward_dynamics, threads=threads, q=q, v=v, tau=tau, f_ext=f_ext)


def _mechanical_state(robot: Mechanism, q, v) -> np.ndarray:
    state = robot._code.mechanical_state(q, v)
    return over_states(robot, momenta.mechanical_state, q=q, v=v) if state is None else state


def kinetic_energy(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """1/2 v . M v (...,) [J]."""
    return _mechanical_state(robot, q, v)[..., 0]


def potential_energy(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Gravitational energy (...,) [J], zero for a centre of mass at the world's origin."""
    lead, (q,) = as_batch(robot, q=q)
    return _mechanical_state(robot, q.reshape(*lead, robot.nq), np.zeros((*lead, robot.nv)))[..., 1]


def energy(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Kinetic plus potential energy (...,) [J]."""
    state = _mechanical_state(robot, q, v)
    return state[..., 0] + state[..., 1]


def momentum(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Spatial momentum (..., 6) of the whole robot: about the inertial origin, in inertial axes, angular part first."""
    return _mechanical_state(robot, q, v)[..., 2:]


def center_of_mass(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the centre of mass of the whole robot in the world frame.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., 3)
        Position [m].

    Raises
    ------
    ArgumentError
        For wrong shapes, nan, infinity, and for a robot without mass.
    """
    _require_mass(robot)
    com = robot._code.at(momenta.center_of_mass)(q)
    return over_states(robot, momenta.center_of_mass, q=q) if com is None else com


def centroidal_momentum_matrix(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the matrix A with A v the robot's momentum about its centre of mass, in world axes.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., 6, nv)
        Rows 0 to 2 give the angular momentum [kg m^2/s], rows 3 to 5 the linear momentum [kg m/s]. Motors' inertia
        (`armature`) is not part of it.

    Raises
    ------
    ArgumentError
        For wrong shapes, nan, infinity, and for a robot without mass.
    """
    lead, (flat,) = as_batch(robot, q=q)
    return _centroidal(robot, flat.reshape(*lead, robot.nq), np.zeros((*lead, robot.nv)))[0]


def centroidal_momentum_matrix_rate(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the time derivative of `centroidal_momentum_matrix` along the motion.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    ndarray, shape (..., 6, nv)
        Adot; the rate of the centroidal momentum is A a + Adot v.

    Raises
    ------
    ArgumentError
        For wrong shapes, nan, infinity, and for a robot without mass.
    """
    return _centroidal(robot, q, v)[1]


def _centroidal(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    _require_mass(robot)
    both = robot._code.at(momenta.centroidal_momentum)(q, v)
    return over_states(robot, momenta.centroidal_momentum, q=q, v=v) if both is None else both


def _require_mass(robot: Mechanism) -> None:
    if not robot.parameters[:, 0].sum() > 0.0:
        raise ArgumentError(f"robot {robot.name!r}: expected a positive total mass, got none: no centre of mass")


def mass_matrix_inverse(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """M(q)^-1 (..., nv, nv), exactly symmetric, without forming M, O(n^2), by articulated bodies
    (`kernels.mass_matrix_inverse`).

    Raises ModelError where the mass matrix is not positive definite.
    """
    inverse = robot._code.mass_matrix_inverse(q)
    return over_states(robot, inverses.mass_matrix_inverse, q=q) if inverse is None else inverse


def mass_matrix_solve(robot: Mechanism, q: ArrayLike, b: ArrayLike) -> np.ndarray:
    """M(q)^-1 b without forming M, O(n) a column: the accelerations that forces b (..., nv) cause from rest.

    b may hold columns, (..., nv, m), with the leading axes of q. Raises ModelError where M is not positive definite.
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
