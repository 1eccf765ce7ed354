"""The multipliers of constraints: a Gram matrix and its factors, with redundant rows left out.

The multipliers of the index-1 equations (3) of Mueller and Terze 2013 solve (J M^-1 J^T) lambda = rhs, whose matrix is
a Gram matrix: a row is redundant if what the rows before it leave of it, sin^2 of its angle to their span in the metric
M^-1, is below a tolerance. That is a QR factorisation of M^-1/2 J^T. The matrix is kept in skyline form, so along a
chain the cost is linear in its length.
"""

from .jit import kernel


@kernel("i8(f8[:,:,::1], i8[:,::1], f8[:,:,::1], i8[:,::1], i8[::1], i8[::1], f8, f8[:,:,::1], f8[::1], f8[::1])")
def factorise(J, bodies, M_inv, pairs, first, start, tolerance, JM, L, d):
    """J M^-1 into JM (m, w, 6) and L D L^T = J M^-1 J^T; returns the number of redundant rows, which have d = 0.

    Row i of L is L[start[i] + j], j = first[i] .. i. pairs: (i, slot, j, slot) for rows j <= i that share a body.
    """
    m = len(J)
    for k in range(m):
        for slot in range(J.shape[1]):
            inverse = M_inv[bodies[k, slot]]
            for i in range(6):
                x = 0.0
                for j in range(6):
                    x += inverse[i, j] * J[k, slot, j]
                JM[k, slot, i] = x
    L[:] = 0.0
    for p in range(len(pairs)):
        i, si, j, sj = pairs[p, 0], pairs[p, 1], pairs[p, 2], pairs[p, 3]
        x = 0.0
        for c in range(6):
            x += JM[i, si, c] * J[j, sj, c]
        L[start[i] + j] += x
    redundant = 0
    for i in range(m):
        whole = rest = L[start[i] + i]
        for j in range(first[i], i):
            x = L[start[i] + j]
            for k in range(max(first[i], first[j]), j):
                x -= L[start[i] + k] * L[start[j] + k]
            L[start[i] + j] = x if d[j] > 0.0 else 0.0  # L d, until the row is done
        for j in range(first[i], i):
            if d[j] > 0.0:
                x = L[start[i] + j]
                L[start[i] + j] = x / d[j]
                rest -= x * x / d[j]
        if rest > tolerance * whole:
            d[i] = rest
            L[start[i] + i] = 1.0
        else:
            d[i] = 0.0
            redundant += 1
            for j in range(first[i], i + 1):
                L[start[i] + j] = 0.0
    return redundant


@kernel("void(f8[::1], f8[::1], i8[::1], i8[::1], f8[::1])")
def solve(L, d, first, start, x):
    """x <- (L D L^T)^-1 x, zero at redundant rows."""
    m = len(d)
    for i in range(m):
        for j in range(first[i], i):
            x[i] -= L[start[i] + j] * x[j]
        if d[i] == 0.0:
            x[i] = 0.0
    for i in range(m):
        if d[i] > 0.0:
            x[i] /= d[i]
    for i in range(m - 1, -1, -1):
        for j in range(first[i], i):
            x[j] -= L[start[i] + j] * x[i]


@kernel("void(f8[:,:,::1], i8[:,::1], f8[::1], f8[:,::1])")
def add_reactions(JM, bodies, multipliers, X):
    """X += M^-1 J^T multipliers, X (n + 1, 6); what falls on the world is zero already, as its M^-1 is."""
    for k in range(len(JM)):
        for slot in range(JM.shape[1]):
            for c in range(6):
                X[bodies[k, slot], c] += JM[k, slot, c] * multipliers[k]
