"""One rigid body: its acceleration in a chain, the wrench its motion takes, and its row of the regressor."""

from .primitives import primitive
from .screws import Ad_inv, Wrench, ad, ad_dual, apply_inertia, twist_add, wrench_add
from .vectors import add3, cross, dot, mul3, sub3, sym_mul

PLOEN, CHRISTOFFEL, PLAIN, ADJOINT = 0, 1, 2, 3  # which Cbar; PLAIN's C is not skew: for negative tests


@primitive
def accelerate(f, V_parent, A_parent, Sv, Sa):
    """A body's twist and acceleration from its parent's."""
    V = twist_add(Ad_inv(f, V_parent), Sv)  # (15)
    return V, twist_add(twist_add(Ad_inv(f, A_parent), ad(V, Sv)), Sa)  # (16)


@primitive
def inertial_wrench(J, V, A):
    """J A - ad_V^T J V: the wrench that a body's own motion takes."""
    return wrench_add(apply_inertia(J, A), ad_dual(V, apply_inertia(J, V)))  # (17)


@primitive
def coriolis_wrench(J, V, Vr, form):
    """Cbar(V) Vr: Ploen's [w]I + I[w] (Proposition 1), the Christoffel-consistent [theta w], theta = tr(I)/2 1 - I,
    the adjoint J ad_V - ad_V^T J, or plain -ad_V^T J.

    docs/formulas.md has the family of matrices Cbar that keep Mdot - 2C skew.
    """
    if form == PLAIN:
        return ad_dual(V, apply_inertia(J, Vr))
    if form == ADJOINT:
        return wrench_add(apply_inertia(J, ad(V, Vr)), ad_dual(V, apply_inertia(J, Vr)))
    w, wr = V.w, Vr.w
    linear = cross(w, sub3(mul3(J.m, Vr.v), cross(J.h, wr)))
    if form == PLOEN:
        angular = add3(cross(w, sym_mul(J.I, wr)), sym_mul(J.I, cross(w, wr)))
    else:
        trace = J.I[0] + J.I[2] + J.I[5]
        angular = cross(sub3(mul3(0.5 * trace, w), sym_mul(J.I, w)), wr)
    return Wrench(add3(angular, cross(J.h, cross(w, Vr.v))), linear)


@primitive
def inertia_row(X, A):
    """X^T J A as ten numbers, one a parameter of J."""
    x, u, al, acc = X.w, X.v, A.w, A.v
    h = add3(cross(acc, x), cross(u, al))
    return (
        dot(u, acc), h[0], h[1], h[2],
        x[0] * al[0], x[0] * al[1] + x[1] * al[0], x[1] * al[1],
        x[0] * al[2] + x[2] * al[0], x[1] * al[2] + x[2] * al[1], x[2] * al[2],
    )  # fmt: skip


@primitive
def regressor_row(X, V, Vr, A, form):
    """X^T Y_i, ten numbers: the body's regressor (see `terms.regressor`) seen along the twist X."""
    if form == ADJOINT:  # X^T J (A + ad_V Vr) - (ad_V X)^T J Vr
        r, s = inertia_row(X, twist_add(A, ad(V, Vr))), inertia_row(ad(X, V), Vr)
        return (
            r[0] + s[0], r[1] + s[1], r[2] + s[2], r[3] + s[3], r[4] + s[4],
            r[5] + s[5], r[6] + s[6], r[7] + s[7], r[8] + s[8], r[9] + s[9],
        )  # fmt: skip
    x, u = X.w, X.v
    w, wr, al = V.w, Vr.w, A.w
    lin = add3(A.v, cross(w, Vr.v))
    wwr = cross(w, wr)
    h = add3(cross(lin, x), sub3(cross(wr, cross(w, u)), cross(al, u)))
    if form == PLOEN:
        b, c, d, t = add3(al, wwr), cross(x, w), wr, 0.0
    else:
        b, c, d, t = al, cross(x, wr), w, 0.5 * dot(x, wwr)
    return (
        dot(u, lin), h[0], h[1], h[2],
        x[0] * b[0] + c[0] * d[0] + t,  # x^T L(b) + c^T L(d)
        x[0] * b[1] + x[1] * b[0] + c[0] * d[1] + c[1] * d[0],
        x[1] * b[1] + c[1] * d[1] + t,
        x[0] * b[2] + x[2] * b[0] + c[0] * d[2] + c[2] * d[0],
        x[1] * b[2] + x[2] * b[1] + c[1] * d[2] + c[2] * d[1],
        x[2] * b[2] + c[2] * d[2] + t,
    )  # fmt: skip
