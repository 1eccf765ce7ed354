"""The certificate of two links under PD with a cross term, proved again by equations written by hand with mpmath's
intervals: nothing of geomctrl is in that but the law's gains and its number c."""

import itertools

import numpy as np
import pytest
from mpmath import iv

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.testing.certificates.equations import equations
from geomctrl.testing.certificates.quadratic import Bounds, Boxes

MASSES, LENGTHS, COMS, INERTIAS = (1.25, 0.75), (1.0, 0.5), (0.5, 0.25), (0.125, 0.0625)
Q_D, KP = np.array([0.5, 1.0]), np.array([96.0, 48.0])
BOX = 1.0, 2.0


def arm():
    return models.two_link(LENGTHS, MASSES, COMS, INERTIAS)


def law(kd):
    return controllers.PDGravity(arm(), Q_D, KP, kd, strict=True)


def terms(q2):
    """Return (M, h): the mass matrix and h = b sin q2, from Lagrange's equations of two links."""
    (m1, m2), (l1, _), (c1, c2), (I1, I2) = MASSES, LENGTHS, COMS, INERTIAS
    a, b, d = I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2), m2 * l1 * c2, I2 + m2 * c2**2
    cos, sin = (iv.cos, iv.sin) if isinstance(q2, type(iv.mpf(0))) else (np.cos, np.sin)
    return [[a + 2 * b * cos(q2), d + b * cos(q2)], [d + b * cos(q2), d + 0 * q2]], b * sin(q2)


def loss(kd, c, e2, v2):
    """N (4, 4) of V' = - x . N x, x = (e1, e2, v1, v2), with e2 and v2 in its entries.

    V = 1/2 w . M w + 1/2 e . (Kp + c Kd) e, w = v + c e, and M v' = - Kp e - Kd v - C v after gravity is compensated:
    V' = - v . Kd v - c e . Kp e + c w . M v + (1/2 w . Mdot w - w . C v), where with Mdot and C of two links the last
    bracket is - h c (e2 v1 (v1 + v2) + c e1 v2 (e1 + e2)).
    """
    M, h = terms(Q_D[1] + e2)
    N = [[0 * h for _ in range(4)] for _ in range(4)]
    for i in range(2):
        N[i][i] += c * KP[i]
        N[2 + i][2 + i] += kd[i]
        for j in range(2):
            N[2 + i][2 + j] -= c * M[i][j]
            N[i][2 + j] -= c * c * M[i][j] / 2
            N[2 + j][i] -= c * c * M[i][j] / 2
    N[2][2] += h * c * e2
    N[2][3] += h * c * e2 / 2
    N[3][2] += h * c * e2 / 2
    N[0][0] += h * c * c * v2
    N[0][1] += h * c * c * v2 / 2
    N[1][0] += h * c * c * v2 / 2
    return N


def positive_definite(N):
    """Whether every symmetric matrix within N is certainly positive definite: by the pivots of elimination."""
    N, n = [list(row) for row in N], len(N)
    for j in range(n):
        if not N[j][j].a > 0:
            return False
        for i in range(j + 1, n):
            for k in range(j + 1, n):
                N[i][k] -= N[i][j] * N[j][k] / N[j][j]
    return True


def proved_by_hand(kd, c, pieces=8):
    """Prove V > 0 and V' < 0 on the box, cut into pieces of e2 and v2."""
    cuts = [np.linspace(-x, x, pieces + 1).tolist() for x in BOX]
    for (a, b), (u, w) in itertools.product(*(itertools.pairwise(x) for x in cuts)):
        e2, v2 = iv.mpf([a, b]), iv.mpf([u, w])
        if not (positive_definite(terms(Q_D[1] + e2)[0]) and positive_definite(loss(kd, iv.mpf(c), e2, v2))):
            return False
    return bool(np.all(KP + c * np.asarray(kd) > 0.0))


def test_proved_by_hand_and_by_the_certificate():
    kd = [24.0, 12.0]
    mine = law(np.array(kd))
    assert proved_by_hand(kd, mine.mixed)
    assert testing.certify_lyapunov(mine, arm(), BOX, levels=False).proved


@pytest.mark.parametrize("c", [30.0, 60.0])
def test_what_is_wrong_is_proved_by_neither(c):
    """With a cross term that is too large V' is positive somewhere, which the same equations show in numbers."""
    kd = [24.0, 12.0]
    mine = law(np.array(kd))
    mine.mixed = c
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (4000, 4)) * [1.0, 1.0, 2.0, 2.0]
    rates = np.array([-y @ np.array(loss(kd, c, y[1], y[3]), float) @ y for y in x])
    assert rates.max() > 0.0
    assert not proved_by_hand(kd, c)
    assert testing.certify_lyapunov(mine, arm(), BOX, levels=False).status == "refuted"


def test_v_and_its_rate_enclose_the_ones_by_hand():
    kd, rng = [24.0, 12.0], np.random.default_rng(1)
    mine = law(np.array(kd))
    e = equations(mine, gc.Plant(arm()), Q_D)
    value, decrease = Bounds(e, e.value, np.ones(4)), Bounds(e, e.decrease, np.ones(4))
    for _ in range(10):
        x = rng.uniform(-1.0, 1.0, 4) * [1.0, 1.0, 2.0, 2.0]
        w, point = x[2:] + mine.mixed * x[:2], Boxes(x[None], x[None], e.model[None], e.model[None])
        V = 0.5 * w @ np.array(terms(Q_D[1] + x[1])[0], float) @ w
        V += 0.5 * x[:2] @ np.diag(KP + mine.mixed * np.array(kd)) @ x[:2]
        rate = -x @ np.array(loss(kd, mine.mixed, x[1], x[3]), float) @ x
        for bounds, number in ((value, V), (decrease, rate)):
            lo, hi = bounds.values(point)
            assert lo[0] - 1e-9 <= number <= hi[0] + 1e-9
            assert hi[0] - lo[0] < 1e-9
