"""Slotine and Li's adaptive law (1987), of one state, in O(n)."""

from .algorithms import algorithm, numbers, per_body
from .newton_euler import ReferenceMotion
from .regressor import products
from .screws import Twist, Wrench
from .tracking import sliding


@algorithm(
    "p[10 nb], q, v, q_d, v_d, a_d, Lambda[nv, nv], K[nv, nv]; form: i8 -> out[5, nv], g[10 nb]",
    (numbers("5 * nv"), per_body(ReferenceMotion), per_body(Wrench), per_body(Twist)),
)
def adaptive_law(model, p, q, v, q_d, v_d, a_d, Lambda, K, form, memory, motion, wrenches, along, out, g):
    """Rows e, v_ref, a_ref, s, tau = Y p - K s of `out`, and g = Y^T s, Y the regressor at (q, v, a_ref, v_ref)."""
    sliding(model, q, v, q_d, v_d, a_d, Lambda, memory, out)
    s, tau = out[3], out[4]
    products(model, p, q, v, out[2], out[1], s, form, motion, wrenches, along, tau, g)
    n = s.shape[0]
    for i in range(n):
        for j in range(n):
            tau[i] -= K[i * n + j] * s[j]
