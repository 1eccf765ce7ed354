"""Centre of mass and centroidal momentum: the columns S_k of the joints times the inertia of the bodies they carry.

With J the composite inertia of the subtree of coordinate k in inertial axes, column k of the momentum matrix about a
fixed point is J S_k, and its rate J dS_k + Jdot S_k, as in `composite_bodies`. About the centre of mass c the moment
changes to m - c x f (Orin, Goswami and Lee 2013, "Centroidal dynamics of a humanoid robot").
"""

from .algorithms import algorithm, per_body, per_coordinate
from .composite_bodies import MovingInertia, place_moving_inertias
from .passes import Moving, MovingAxis, get_moving_axis, inertial_axes, inward, outward, place
from .records import reader
from .rigid_body import PLOEN
from .screws import Inertia, Pose, apply_inertia, inertia_add, inertia_to, zero_twist
from .tree import dofs_of, inertia_of, n_bodies, n_v, root_origin
from .vectors import add3, cross, mul3, rot, rotT, sub3

get_pose, get_moving = reader(Pose), reader(Moving)


@outward(Pose)
def place_bodies(model, i, parent, q):
    return place(model, i, parent, q)


@algorithm("q -> com[3]", (per_body(Pose),))
def center_of_mass(model, q, bodies, com):
    """The whole robot's, in the world's frame; nan without mass."""
    place_bodies(model, inertial_axes(model, q), bodies, q)
    total = Inertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(n_bodies(model)):
        total = inertia_add(total, inertia_to(get_pose(bodies, i), inertia_of(model, i)))
    c = add3(mul3(1.0 / total.m, total.h), root_origin(model, q))
    com[0], com[1], com[2] = c[0], c[1], c[2]


@inward(MovingInertia)
def momentum_columns(model, i, x, axes, A, dA):
    """Columns of the momentum matrix and of its rate, about the point where inertial axes begin."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S, dS = get_moving_axis(axes, k).S, get_moving_axis(axes, k).dS
        F, JdS = apply_inertia(x.J, S), apply_inertia(x.J, dS)
        BTS = add3(rotT(x.B11, S.w), cross(x.p, S.v))  # Jdot = B + B^T
        m, f = add3(add3(JdS.m, rot(x.B11, S.w)), BTS), sub3(JdS.f, cross(x.p, S.w))
        for r in range(3):
            A[r, k], A[r + 3, k], dA[r, k], dA[r + 3, k] = F.m[r], F.f[r], m[r], f[r]
    return x


@algorithm(
    "q, v -> A[6, nv], dA[6, nv]",
    (per_body(Moving), per_coordinate(MovingAxis), per_body(MovingInertia)),
)
def centroidal_momentum(model, q, v, bodies, axes, composites, A, dA):
    """The centroidal momentum is A v, in the world's axes about the centre of mass; dA is the rate of A."""
    root = Moving(inertial_axes(model, q), zero_twist())
    place_moving_inertias(model, root, bodies, q, v, PLOEN, axes, composites)
    momentum_columns(model, composites, axes, A, dA)
    total = Inertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(n_bodies(model)):
        total = inertia_add(total, inertia_to(get_moving(bodies, i).T, inertia_of(model, i)))
    c, rate = mul3(1.0 / total.m, total.h), (0.0, 0.0, 0.0)
    for k in range(n_v(model)):
        rate = add3(rate, mul3(v[k] / total.m, (A[3, k], A[4, k], A[5, k])))
    for k in range(n_v(model)):
        f, df = (A[3, k], A[4, k], A[5, k]), (dA[3, k], dA[4, k], dA[5, k])
        moved, change = cross(c, f), add3(cross(rate, f), cross(c, df))
        for r in range(3):
            A[r, k] -= moved[r]
            dA[r, k] -= change[r]
