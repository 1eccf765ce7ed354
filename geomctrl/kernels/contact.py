"""A point against a half-space: Hunt and Crossley's normal force (1975), Coulomb friction smoothed about zero slip.

`contact`: the outward normal n (3), its offset (the half-space is n . x <= offset), stiffness k, dissipation d,
exponent p, coefficient of friction mu, speed of slip u.
"""

import math

from .algorithms import algorithm
from .frames import frame_twist, pose_of
from .primitives import primitive
from .records import pose_at, put, put6, vec
from .screws import Ad_dual, Wrench
from .vectors import dot, mul3, rot, rotT, sub3

TINY = 1e-300  # whose logarithm is finite, and whose powers are nothing


@primitive
def power(x, p):
    """x^p for x >= 0 and p >= 1."""
    return math.exp(p * math.log(max(x, TINY)))


@algorithm("q, v; i: i8, placement: f8[::1], contact: f8[::1] -> F[nb, 6], state[6]")
def contact_wrenches(model, q, v, i, placement, contact, F, state):
    """The wrench on body i of its point at `placement`, and (depth, force (3) in world axes, energy, dissipation).

    With the depth x and the velocity w of the point: N = k x^p max(1 + d xdot, 0), f = N (n - mu s / sqrt(s^2 + u^2)),
    s = w - (n . w) n; energy k x^(p+1) / (p + 1); dissipation -f . w less the energy's rate, which is never negative.
    """
    F[:, :] = 0.0
    T = pose_of(model, q, i, placement)
    n = vec(contact, 0)
    w = rot(T.R, frame_twist(model, q, v, i, placement).v)
    away = dot(n, w)
    s = sub3(w, mul3(away, n))
    depth = contact[3] - dot(n, T.p)
    inside = max(depth, 0.0)
    elastic = contact[4] * power(inside, contact[6])
    N = elastic * max(1.0 - contact[5] * away, 0.0)
    drag = N * contact[7] / math.sqrt(dot(s, s) + contact[8] * contact[8])
    f = sub3(mul3(N, n), mul3(drag, s))
    put6(F[i], 0, Ad_dual(pose_at(placement, 0), Wrench((0.0, 0.0, 0.0), rotT(T.R, f))))
    state[0] = depth
    put(state, 1, f)
    state[4] = elastic * inside / (contact[6] + 1.0)
    state[5] = (elastic - N) * away + drag * dot(s, s)
