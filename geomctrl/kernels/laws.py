"""Slotine and Li's adaptive law (1987) and the energy of its Lyapunov function, of one state, in O(n)."""

from .algorithms import algorithm, numbers, per_body
from .energies import mechanical_state
from .newton_euler import ReferenceMotion
from .passes import Moving
from .regressor import products
from .screws import Twist, Wrench
from .tracking import sliding
from .tree import good_configuration, good_velocity


@algorithm(
    "q, v, q_d, v_d, a_d; true: f8[::1], Lambda: f8[:, ::1], K: f8[:, ::1] -> out[2]",
    (numbers("4 * nv"), numbers("5 * nv"), numbers("8"), per_body(Moving)),
)
def sliding_energy(model, q, v, q_d, v_d, a_d, true, Lambda, K, errors, memory, state, bodies, out):
    """1/2 s . M s with the mass matrix of the model `true`, of the same size, and s . K s."""
    n = v.shape[0]
    variables = errors.reshape((4, n))
    sliding(model, q, v, q_d, v_d, a_d, Lambda, memory, variables)
    s, loss = variables[3], 0.0
    if true.shape[0] != model.shape[0] or not (good_configuration(true, q) and good_velocity(true, s)):
        raise ValueError
    mechanical_state(true, q, s, bodies, state)
    for i in range(n):
        for j in range(n):
            loss += s[i] * K[i, j] * s[j]
    out[0], out[1] = state[0], loss


@algorithm(
    "p[10 nb], q, v, q_d, v_d, a_d; Lambda: f8[:, ::1], K: f8[:, ::1], form: i8 -> out[5, nv], g[10 nb]",
    (numbers("5 * nv"), per_body(ReferenceMotion), per_body(Wrench), per_body(Twist)),
)
def adaptive_law(model, p, q, v, q_d, v_d, a_d, Lambda, K, form, memory, motion, wrenches, along, out, g):
    """Rows e, v_ref, a_ref, s, tau = Y p - K s of `out`, and g = Y^T s, Y the regressor at (q, v, a_ref, v_ref)."""
    sliding(model, q, v, q_d, v_d, a_d, Lambda, memory, out)
    s, tau = out[3], out[4]
    products(model, p, q, v, out[2], out[1], s, form, motion, wrenches, along, tau, g)
    for i in range(s.shape[0]):
        for j in range(s.shape[0]):
            tau[i] -= K[i, j] * s[j]
