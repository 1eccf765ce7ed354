"""The recursive algorithms in inertial axes as kernels on a packed robot: M, C, Mdot, articulated bodies, energies.

They are summed in inertial axes about the first body's origin, where a subtree's inertia is a plain sum and screws need
no transport. `*_one` and `*_many` are entries as in `newton_euler`.
"""

from .jit import primitive
from .records import get_frame, get_twist, put6, put_frame
from .screws import Ad, Frame, ad, compose, twist_add, twist_mul, zero_twist
from .tree import PARENT_DOF, WIDTH, dofs_of, joint_frame, parent_of, screw_of
from .vectors import sub3

# a body's record: T (12), V (6), and what each algorithm adds up over subtrees from 18 on
BODY, T_, V_, SUM = 52, 0, 12, 18
# a velocity coordinate's: screw S (6), its rate ad_V S (6) or U = IA S (6), the next coordinate towards the root, D, u
DOF, S_, DS, U_, NEXT, D_, FORCE = 16, 0, 6, 6, 12, 13, 14


@primitive
def place(model, i, q, origin, body):
    """T_i in inertial axes about `origin`, stored in its record and returned."""
    link = i * WIDTH
    f = joint_frame(model, link, q)
    p = parent_of(model, link)
    if p < 0:
        T = Frame(f.R, sub3(f.p, origin))
    else:
        T = compose(get_frame(body, p * BODY + T_), f)
    put_frame(body, i * BODY + T_, T)
    return T


@primitive
def parent_twist(model, i, body):
    p = parent_of(model, i * WIDTH)
    if p < 0:
        return zero_twist()
    return get_twist(body, p * BODY + V_)


@primitive
def place_screws(model, i, T, dof):
    """The joint's screws in inertial axes, S_k = Ad_T S_i, one record of `dof` each."""
    link = i * WIDTH
    first, end = dofs_of(model, link)
    towards_root = model[link + PARENT_DOF]
    for k in range(first, end):
        put6(dof, k * DOF + S_, Ad(T, screw_of(model, link, k - first)))
        dof[k * DOF + NEXT] = towards_root
        towards_root = float(k)


@primitive
def place_moving(model, i, q, v, origin, body, dof):
    """Pose, screws, twist V_i = V_p + S v and the screws' rates ad_V S of body i; returns (T, V)."""
    T = place(model, i, q, origin, body)
    place_screws(model, i, T, dof)
    V = parent_twist(model, i, body)
    first, end = dofs_of(model, i * WIDTH)
    for k in range(first, end):
        V = twist_add(V, twist_mul(v[k], get_twist(dof, k * DOF + S_)))
    for k in range(first, end):
        put6(dof, k * DOF + DS, ad(V, get_twist(dof, k * DOF + S_)))
    put6(body, i * BODY + V_, V)
    return T, V
