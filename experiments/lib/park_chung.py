"""Published numbers of Park and Chung 2005, section VI, and our simulations: three floating spheres without forces."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import geomctrl as gc
from geomctrl import models, se3
from geomctrl.integrators.tableaus import Tableau
from geomctrl.motion.rollout import rollout

METHODS = ("CG2", "CG3", "CG4", "CF2", "CF3", "CF4", "MK2", "MK3", "MK4")
STEPS = (1.0, 0.1, 0.01, 0.001)  # s
FIRST_RUN = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.4])  # (omega, v) of the base [rad/s, m/s], qd [rad/s]
SECOND_RUN = np.array([0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.4, 0.4])
QUANTITIES = ("kinetic energy", "linear momentum", "angular momentum")  # Tables VI, VII, VIII
PUBLISHED = {
    "kinetic energy": """
        3.4673E-2 1.1679E-3 1.2151E-5 1.2197E-7   3.9707E-2 4.2896E-5 4.3020E-8 4.3059E-11
        1.5120E-3 2.0035E-7 2.0421E-11 1.7764E-14  3.4673E-2 1.1679E-3 1.2151E-5 1.2197E-7
        5.3524E-2 5.0535E-5 5.0334E-8 5.0292E-11  3.6308E-3 3.2133E-7 3.1989E-11 1.7764E-14
        3.4673E-2 1.1679E-3 1.2151E-5 1.2197E-7   5.3524E-2 5.0535E-5 5.0334E-8 5.0292E-11
        3.6308E-3 3.2133E-7 3.1996E-11 1.4211E-14""",
    "linear momentum": """
        5.5613E-1 5.2947E-3 5.2633E-5 5.2600E-7   5.6523E-2 4.7138E-5 4.6619E-8 4.6510E-11
        8.4583E-3 8.2850E-7 8.3399E-11 3.2901E-13  5.5613E-1 5.2947E-3 5.2633E-5 5.2600E-7
        5.1921E-2 5.2437E-5 5.2982E-8 5.2981E-11  1.5953E-2 1.5814E-6 1.5782E-10 5.7011E-14
        5.5613E-1 5.3178E-3 5.2893E-5 5.2864E-7   5.2334E-2 5.3244E-5 5.3800E-8 5.3802E-11
        1.5910E-2 1.5903E-6 1.5877E-10 9.0256E-14""",
    "angular momentum": """
        8.3715E-1 8.1705E-3 8.3278E-5 8.3449E-7   2.0265E-1 1.9643E-4 1.9513E-7 1.9481E-10
        2.3172E-2 2.6873E-6 2.8057E-10 2.7154E-12  8.3715E-1 8.1705E-3 8.3278E-5 8.3449E-7
        2.8075E-1 2.8154E-4 2.8084E-7 2.8059E-10  3.6510E-2 3.6710E-6 3.6619E-10 3.9933E-13
        8.3715E-1 8.1218E-3 8.2721E-5 8.2885E-7   2.7813E-1 2.8401E-4 2.8359E-7 2.8344E-10
        3.9118E-2 3.8141E-6 3.8025E-10 1.9654E-13""",
}
PUBLISHED = {  # [quantity][method, step]
    quantity: dict(zip(((m, h) for m in METHODS for h in STEPS), map(float, digits.split())))
    for quantity, digits in PUBLISHED.items()
}
LONG_ENERGY = {"CG3": -0.1020, "CF3": -0.1001, "MK3": -0.1001, "CG4": 2.40e-4, "CF4": -2.26e-5, "MK4": -2.26e-5}
TABLE_IV = {  # on a general Lie group: exponentials, commutators, products of matrices
    "CG3": (6, 0, 6), "CF3": (3, 0, 3), "MK3": (3, 1, 3), "CG4": (15, 0, 15), "CF4": (5, 0, 5), "MK4": (4, 2, 4),
}  # fmt: skip
TABLE_V = {  # additions and multiplications for 2 and for 20 joints; divisions, square roots, trigonometric functions
    "CG2": ((191, 299), (270, 378), 6, 3, 6),
    "CF2": ((191, 299), (270, 378), 6, 3, 6),
    "MK2": ((201, 309), (265, 373), 7, 2, 4),
    "CG3": ((381, 597), (540, 756), 12, 6, 12),
    "CF3": ((208, 352), (286, 430), 6, 3, 6),
    "MK3": ((334, 478), (430, 574), 12, 3, 6),
    "CG4": ((950, 1490), (1350, 1890), 30, 15, 30),
    "CF4": ((411, 771), (542, 902), 10, 5, 10),
    "MK4": ((493, 745), (633, 885), 17, 4, 8),
}
TABLE_X = {  # FDyn, svmultadd(6), svmultadd(N), svmult(6), exp, hmmult, dexpinv
    "CG2": (2, 3, 6, 3, 3, 3, 0),
    "CF2": (2, 3, 6, 3, 3, 3, 0),
    "MK2": (2, 3, 6, 3, 2, 2, 1),
    "CG3": (3, 6, 12, 6, 6, 6, 0),
    "CF3": (3, 5, 8, 3, 3, 3, 0),
    "MK3": (3, 5, 8, 4, 3, 3, 2),
    "CG4": (5, 15, 30, 15, 15, 15, 0),
    "CF4": (4, 17, 20, 5, 5, 5, 0),
    "MK4": (4, 10, 14, 7, 4, 4, 3),
}
PRINTED_CG4 = (  # Table I(b): rows of A below the first, then b
    ("1458/1783",),
    ("1039/3247", "97/1470"),
    ("997/1082", "1167/2335", "-475/433"),
    ("173/487", "751/3141", "547/393", "-680/613"),
    ("407/2969", "-135/7349", "543/734", "-267/1400", "696/2095"),
)

# --- runs ----------------------------------------------------------------------------------------------------------


def conserved(robot: gc.Robot, q, v) -> np.ndarray:
    """(..., 7): kinetic energy [J], linear momentum [N s] and angular momentum about the inertial origin [N m s]."""
    P = robot.momentum(q, v)
    return np.concatenate((robot.kinetic_energy(q, v)[..., None], P[..., 3:], P[..., :3]), axis=-1)


def drift(change) -> np.ndarray:
    """(..., 3): the size of a change (..., 7) of energy, linear and angular momentum."""
    return np.stack(
        [abs(change[..., 0]), np.linalg.norm(change[..., 1:4], axis=-1), np.linalg.norm(change[..., 4:], axis=-1)], -1
    )


def final_drift(method: str | Tableau, h: float, R=None) -> np.ndarray:
    """(3,): the drifts at t = 1 of the first run; with R, of the same run begun with the base turned by R."""
    robot = models.three_spheres()
    q0 = robot.neutral()
    if R is not None:
        q0[:12] = np.hstack((R, np.zeros((3, 1)))).ravel()
    end = rollout(robot, q0, FIRST_RUN, None, 1.0, h, method, every=10_000)
    return drift(conserved(robot, end.q[-1], end.v[-1]) - conserved(robot, q0, FIRST_RUN))


def long_drift(method: str | Tableau, t_end: float = 200.0, h: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """(t (n,), change (n, 7)) along the second run: energy, linear and angular momentum against their beginnings."""
    robot = models.three_spheres()
    path = rollout(robot, robot.neutral(), SECOND_RUN, None, t_end, h, method)
    values = conserved(robot, path.q, path.v)
    return path.t, values - values[0]


def printed_cg4() -> tuple[np.ndarray, np.ndarray]:
    """A and b of Table I(b), whose fractions are rounded: `Tableau` refuses weights that do not sum to one."""
    *rows, b = [[float(Fraction(x)) for x in row] for row in PRINTED_CG4]
    A = np.zeros((len(b), len(b)))
    for i, row in enumerate(rows, 1):
        A[i, : len(row)] = row
    return A, np.array(b)


def crouch_grossman_drift(A, b, steps: int) -> np.ndarray:
    """(3,): the drifts at t = 1 of the first run by (46), step by step in plain numpy, with any coefficients."""
    robot, h = models.three_spheres(), 1.0 / steps
    start = robot.neutral()
    T, q, v = np.eye(4), start[12:], FIRST_RUN
    for _ in range(steps):
        V, K = np.zeros((0, robot.nv)), np.zeros((0, robot.nv))
        for i, row in enumerate((*A, b)):
            w = h * np.asarray(row)[:i]
            v_i, q_i, T_i = v + w @ K, q + w @ V[:, 6:], T  # (46g), (46h), (46j)
            for step in se3.exp(w[:, None] * V[:, :6]):
                T_i = T_i @ step  # (46i)
            if i < len(b):
                a = robot.forward_dynamics(np.concatenate((T_i[:3].ravel(), q_i)), v_i, np.zeros(robot.nv))
                V, K = np.vstack((V, v_i)), np.vstack((K, a))
        T, q, v = T_i, q_i, v_i  # (46a)-(46d)
    end = np.concatenate((T[:3].ravel(), q))
    return drift(conserved(robot, end, v) - conserved(robot, start, FIRST_RUN))
