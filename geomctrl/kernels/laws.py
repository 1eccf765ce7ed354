"""Slotine and Li's adaptive law (1987) of one state, in O(n)."""

from .algorithms import algorithm, numbers, per_body
from .newton_euler import ReferenceMotion
from .regressor import products
from .screws import Twist, Wrench
from .tracking import sliding


@algorithm(
    "p[10 nb], q, v, q_d, v_d, a_d; Lambda: f8[:, ::1], K: f8[:, ::1], form: i8 -> tau, YTs[10 nb], e, s",
    (*(numbers("nv") for _ in range(4)), per_body(ReferenceMotion), per_body(Wrench), per_body(Twist)),
)
def adaptive_law(
    model, p, q, v, q_d, v_d, a_d, Lambda, K, form,
    w, e_rate, v_ref, a_ref, motion, wrenches, along,
    tau, YTs, e, s,
):  # fmt: skip
    """tau = Y p + armature a_ref - K s and Y^T s, Y the regressor at (q, v, a_ref, v_ref), and the errors e and s."""
    sliding(model, q, v, q_d, v_d, a_d, Lambda, w, e_rate, e, v_ref, a_ref, s)
    products(model, p, q, v, a_ref, v_ref, s, form, motion, wrenches, along, tau, YTs)
    for i in range(s.shape[0]):
        for j in range(s.shape[0]):
            tau[i] -= K[i, j] * s[j]
