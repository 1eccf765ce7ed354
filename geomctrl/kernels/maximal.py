"""Bodies in maximal coordinates: the states of all of them, what they do without constraints, and their group.

A state is the bodies' poses, each on SE(3) (4x4) or SO(3) x R^3 (3x4), then their velocities. The layout (n, 2) of a
kernel says where a body's pose begins and whether it is on SE(3).
"""

from .exponentials import dexp_inv_se3
from .jit import kernel
from .primitives import primitive
from .records import inertia_at, pose_at, put, put6, put_pose, twist_at, vec
from .screws import Ad, Ad_inv, ad_dual, apply_inertia, twist_add
from .se3 import moved as moved_se3
from .se3 import put_transform
from .so3xr3 import dexp_inv as dexp_inv_so3xr3
from .so3xr3 import moved as moved_so3xr3
from .vectors import add3, cross, rot, rotT


@kernel("void(f8[::1], i8[:,::1], f8[:,::1], f8[:,::1])")
def unpack(y, layout, frames, V):
    """Frames [R | p] (n + 1, 12) and body-fixed twists (n + 1, 6) of a state; layout: (its offset in y, is SE(3))."""
    n = len(layout)
    for i in range(n):
        frames[i, :] = y[layout[i, 0] : layout[i, 0] + 12]
        X = twist_at(y, len(y) - 6 * (n - i))
        put(V[i], 0, X.w)
        put(V[i], 3, X.v if layout[i, 1] else rotT(pose_at(frames[i], 0).R, X.v))
    frames[n, :] = 0.0
    frames[n, 0] = frames[n, 5] = frames[n, 10] = 1.0
    V[n, :] = 0.0


@kernel("void(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8[::1], f8[:,::1], f8[:,::1])")
def free_accelerations(frames, V, inertia, M_inv, gravity, applied, Vdot):
    """Vdot (n + 1, 6) of the bodies without constraints: M Vdot = ad_V^T M V + M (0, R^T g) + applied."""
    n = len(inertia)
    for i in range(n):
        X, I = twist_at(V[i], 0), inertia_at(inertia[i], 0)
        F = ad_dual(X, apply_inertia(I, X))  # -ad^T
        weight = rotT(pose_at(frames[i], 0).R, vec(gravity, 0))
        for r in range(6):
            x = weight[r - 3] if r > 2 else 0.0
            for c in range(6):
                f = applied[i, c] - (F.m[c] if c < 3 else F.f[c - 3])
                x += M_inv[i, r, c] * f
            Vdot[i, r] = x
    Vdot[n, :] = 0.0


@kernel("void(i8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[::1])")
def pack_rates(layout, frames, V, moved, Vdot, out):
    """The field on the state's group, its poses moving with the twists `moved`: V but for GGL.

    On SE(3) the velocity is the twist; on SO(3) x R^3 it is (omega, pdot), pdot = R v and pddot = R (vdot + w x v).
    """
    n = len(layout)
    for i in range(n):
        k = 6 * i
        W, X, A = twist_at(moved[i], 0), twist_at(V[i], 0), twist_at(Vdot[i], 0)
        if layout[i, 1]:
            put6(out, k, W)
            put6(out, k + 6 * n, A)
        else:
            R = pose_at(frames[i], 0).R
            put(out, k, W.w)
            put(out, k + 3, rot(R, W.v))
            put(out, k + 6 * n, A.w)
            put(out, k + 6 * n + 3, rot(R, add3(A.v, cross(X.w, X.v))))


# --- the group of states, all bodies in one call ---------------------------------------------------------------


@kernel("void(i8[:,::1], f8[::1], f8[::1], f8[::1])")
def advance_bodies(layout, y, x, out):
    """out = y exp(x), pose by pose, on the group to round-off; velocities add."""
    n = len(layout)
    for i in range(n):
        first = layout[i, 0]
        T, X = pose_at(y[first : first + 12], 0), twist_at(x, 6 * i)
        if layout[i, 1]:
            put_transform(out, first, moved_se3(T, X))
        else:
            put_pose(out, first, moved_so3xr3(T, X))
    for k in range(6 * n):
        out[len(y) - 6 * n + k] = y[len(y) - 6 * n + k] + x[6 * n + k]


@kernel("void(i8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def spatial_twists(layout, y, X, out):
    """Ad_T X_i (6 n,) of body-fixed twists, or their rates, X (n or more, 6), all bodies on SE(3)."""
    for i in range(len(layout)):
        put6(out, 6 * i, Ad(_pose_of(layout, y, i), twist_at(X[i], 0)))


@kernel("void(i8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def advance_spatially(layout, y, x, dv, out):
    """Poses exp(x) T, all on SE(3), and spatial twists Ad_T V + dv, kept as body-fixed ones."""
    n = len(layout)
    for i in range(n):
        k, first = 6 * i, len(y) - 6 * (n - i)
        T = _pose_of(layout, y, i)
        moved = moved_se3(T, Ad_inv(T, twist_at(x, k)))  # exp(x) T = T exp(Ad_T^-1 x)
        put_transform(out, layout[i, 0], moved)
        put6(out, first, Ad_inv(moved, twist_add(Ad(T, twist_at(y, first)), twist_at(dv, k))))


@primitive
def _pose_of(layout, y, i):
    return pose_at(y[layout[i, 0] : layout[i, 0] + 12], 0)


@kernel("void(i8[:,::1], f8[::1], f8[::1], f8[::1])")
def dexp_inv_bodies(layout, x, y, out):
    """out = dexp^-1_x y, body by body."""
    n = len(layout)
    for i in range(n):
        k = 6 * i
        X, Y = twist_at(x, k), twist_at(y, k)
        put6(out, k, dexp_inv_se3(X, Y) if layout[i, 1] else dexp_inv_so3xr3(X, Y))
    out[6 * n :] = y[6 * n :]
