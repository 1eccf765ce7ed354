"""The kinetic-energy metric's geometry: Christoffel symbols, covariant derivative, Riemann curvature.

A robot's configuration space lies in a flat one: the map q -> (T_1, ..., T_n), with the inner product of two rates of
a pose that the body's 4x4 pseudo-inertia P defines, <A, B> = tr(A P B^T), has the mass matrix as its pullback (Park,
Bobrow, Ploen 1995 section 4.4, where the inner product is on SE(3) instead). There all of it is algebra: with hat(S_i)
the screws in inertial axes and P_m the composite pseudo-inertia of the subtree beyond coordinate m,

    M_ij       = tr(hat(S_i) P_m hat(S_j)^T)
    Gamma_ijk  = tr(hat(S_i) hat(S_j) P_m hat(S_k)^T),      i no farther from the root than j
    R_ijkl     = <II_ik, II_jl> - <II_il, II_jk>            (the equation of Gauss)

where m is the outermost coordinate involved, all must lie on one path to the root (else the entry is zero), and II_ij,
the second fundamental form, is the part of hat(S_i) hat(S_j) across the embedded space. Mueller 2018 (87) with Binet's
inertia is the second line (FORMULAS section 5). Neither M nor Gamma is ever differentiated.

Coordinates are the joint velocities' throughout. For a joint with several degrees of freedom these are a frame of
vector fields E_i (left-invariant on the joint's subgroup) instead of coordinate ones: then
Gamma_ijk = <nabla_{E_i} E_j, E_k> is Koszul's, with Gamma_ijk - Gamma_jik = <[E_i, E_j], E_k>, and curvature keeps all
its symmetries.

All functions take leading batch axes and raise ArgumentError as the other terms do.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel, primitive
from .passes import BODY, DOF, NEXT, S_, SUM, place, place_screws
from .records import accumulate, get_inertia, get_twist, put, put_inertia, vec
from .screws import Wrench, inertia_to, pair
from .tree import WIDTH, dofs_of, inertia_of, n_bodies, n_v, parent_of, root_origin
from .vectors import add3, cross, dot, hat_squared, mul3, outer

JOINT = 13  # a coordinate's record holds the number of its body here
FIELD = 12  # numbers of an affine field x -> P x + p: P's rows, then p


@primitive
def field(dof, i, j):
    """hat(S_i) hat(S_j), the one nearer the root first: how points accelerate for unit rates of i and j, (P, p)."""
    if j < i and dof[i * DOF + JOINT] != dof[j * DOF + JOINT]:
        i, j = j, i
    X, Y = get_twist(dof, i * DOF + S_), get_twist(dof, j * DOF + S_)
    return hat_squared(X.w, Y.w), cross(X.w, Y.v)


@primitive
def weighed(J, P, p):
    """(K, f): the integrals of y x^T and of y over the body's mass for the field y = P x + p."""
    I = J.I
    half = 0.5 * (I[0] + I[2] + I[5])
    Sigma = (half - I[0], -I[1], -I[3]), (-I[1], half - I[2], -I[4]), (-I[3], -I[4], half - I[5])
    f = add3((dot(P[0], J.h), dot(P[1], J.h), dot(P[2], J.h)), mul3(J.m, p))
    ph = outer(p, J.h)
    K = (
        add3((dot(P[0], Sigma[0]), dot(P[0], Sigma[1]), dot(P[0], Sigma[2])), ph[0]),
        add3((dot(P[1], Sigma[0]), dot(P[1], Sigma[1]), dot(P[1], Sigma[2])), ph[1]),
        add3((dot(P[2], Sigma[0]), dot(P[2], Sigma[1]), dot(P[2], Sigma[2])), ph[2]),
    )
    return K, f


@primitive
def wrench_of(K, f):
    """The wrench that gives the body these accelerations: the integrals of x cross y and of y."""
    return Wrench((K[2][1] - K[1][2], K[0][2] - K[2][0], K[1][0] - K[0][1]), f)


@primitive
def composites(model, q, body, dof):
    """Screws and composite inertias, in inertial axes about the first body's origin."""
    origin = root_origin(model, q)
    for i in range(n_bodies(model)):
        T = place(model, i, q, origin, body)
        place_screws(model, i, T, dof)
        first, end = dofs_of(model, i * WIDTH)
        for k in range(first, end):
            dof[k * DOF + JOINT] = i
        put_inertia(body, i * BODY + SUM, inertia_to(T, inertia_of(model, i * WIDTH)))
    for i in range(n_bodies(model) - 1, 0, -1):
        p = parent_of(model, i * WIDTH)
        if p >= 0:
            accumulate(body, p * BODY + SUM, body, i * BODY + SUM, 10)


@kernel("f8[:,:,:,::1](f8[::1], f8[:,::1])")
def christoffel_many(model, q):
    """Gamma_ijk at [b, i, j, k], O(n depth^2): triples on a path, weighed by the outermost one's composite body."""
    n = n_v(model)
    out = np.zeros((q.shape[0], n, n, n))
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n * DOF)
    for b in range(q.shape[0]):
        composites(model, q[b], body, dof)
        for m in range(n_bodies(model)):
            J = get_inertia(body, m * BODY + SUM)
            first, end = dofs_of(model, m * WIDTH)
            i = end - 1
            while i >= 0:
                j = end - 1
                while j >= 0:
                    P, p = field(dof, i, j)
                    K, f = weighed(J, P, p)
                    F = wrench_of(K, f)
                    k = end - 1
                    while k >= 0 and (k >= first or i >= first or j >= first):
                        out[b, i, j, k] = pair(get_twist(dof, k * DOF + S_), F)
                        k = int(dof[k * DOF + NEXT])
                    j = int(dof[j * DOF + NEXT])
                i = int(dof[i * DOF + NEXT])
    return out


@kernel("f8[:,:,:,:,::1](f8[::1], f8[:,::1])")
def second_order_many(model, q):
    """<hat(S_i) hat(S_j), hat(S_k) hat(S_l)> at [b, i, j, k, l], O(n depth^3)."""
    n = n_v(model)
    out = np.zeros((q.shape[0], n, n, n, n))
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n * DOF)
    fields = np.zeros(n * n * FIELD)
    for b in range(q.shape[0]):
        composites(model, q[b], body, dof)
        for i in range(n):
            for j in range(n):
                P, p = field(dof, i, j)
                at = (i * n + j) * FIELD
                put(fields, at, P[0])
                put(fields, at + 3, P[1])
                put(fields, at + 6, P[2])
                put(fields, at + 9, p)
        for m in range(n_bodies(model)):
            J = get_inertia(body, m * BODY + SUM)
            first, end = dofs_of(model, m * WIDTH)
            i = end - 1
            while i >= 0:
                j = end - 1
                while j >= 0:
                    P, p = field(dof, i, j)
                    K, f = weighed(J, P, p)
                    k = end - 1
                    while k >= 0:
                        l = end - 1
                        while l >= 0 and (l >= first or k >= first or i >= first or j >= first):
                            at = (k * n + l) * FIELD
                            angular = dot(K[0], vec(fields, at)) + dot(K[1], vec(fields, at + 3))
                            angular += dot(K[2], vec(fields, at + 6))
                            out[b, i, j, k, l] = angular + dot(f, vec(fields, at + 9))
                            l = int(dof[l * DOF + NEXT])
                        k = int(dof[k * DOF + NEXT])
                    j = int(dof[j * DOF + NEXT])
                i = int(dof[i * DOF + NEXT])
    return out
