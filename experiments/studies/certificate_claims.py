"""Generated true and false claims about Lyapunov functions: which does `testing.certify_lyapunov` prove?

    python experiments/studies/certificate_claims.py 200

Loops of masses on sliders have random gains, V = 1/2 x . P x from a random Lyapunov equation, and a flaw: damping that
changes its sign in a small ball, a strip or at some times; branches, kinks and jumps; rates, offsets and balls slightly
beyond the true bound; limits; masses. Whether a claim is right is decided without the library: by V and its differences
along the flow at many states, times and masses. None of the wrong claims may be proved, and at least half of the right
ones must be.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

import geomctrl as gc
from geomctrl import testing
from geomctrl.errors import GeomctrlError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint

MASS = 2.0  # kg
STATES, STEP = 40_000, 1e-6
JUMPS = ("step", "floor", "angle")  # flaws that make V jump within the box, however small they are
TIMES = 0.0, 10.0  # s
BUDGET = testing.Budget(boxes=50_000)


def sliders(n: int) -> gc.Robot:
    """n masses, each on its own slider."""
    mass = inertia.from_com(MASS, np.zeros(3), np.eye(3))
    bodies = [Body(f"m{k}", None, Joint.prismatic([1.0, 0.0, 0.0], name=f"x{k}"), np.eye(4), mass) for k in range(n)]
    return gc.Robot.build(bodies, gravity=(0.0, 0.0, 0.0), name="sliders")


ROBOTS = {n: sliders(n) for n in (1, 2)}


class Law:
    """tau = - kp q - kd v + more(t, q, v), V = 1/2 sum x . P x + less(t, q, v) with P of a Lyapunov equation."""

    def __init__(self, n: int, kp: float, kd: float, weights: Any, more: Callable, less: Callable):
        self.n, self.kp, self.kd, self.more, self.less, self.q_d = n, kp, kd, more, less, np.zeros(n)
        A = np.array([[0.0, 1.0], [-kp / MASS, -kd / MASS]])
        self.Q = np.diag(weights)
        self.P = 2.0 * solve_continuous_lyapunov(A.T, -self.Q)

    def start(self) -> None:
        return None

    def __call__(self, t: Any, q: Any, v: Any, z: Any) -> gc.Command:
        return gc.Command(-self.kp * q - self.kd * v + self.more(t, q, v))

    def lyapunov(self, t: Any, q: Any, v: Any, z: Any, plant: Any) -> gc.Lyapunov:
        P, Q = self.P, self.Q
        V = 0.5 * (P[0, 0] * q.dot(q) + 2.0 * P[0, 1] * q.dot(v) + P[1, 1] * v.dot(v)) + self.less(t, q, v)
        return gc.Lyapunov(V, -Q[0, 0] * q.dot(q) - Q[1, 1] * v.dot(v))

    def numbers(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, mass: Any = MASS) -> tuple[np.ndarray, np.ndarray]:
        """(V, V') at many states (m, n), V' by differences along the flow, without the library."""
        rows = [np.array([self._V(*x) for x in zip(t, q, v)])]
        tau = np.array([self(*x, None).tau for x in zip(t, q, v)])
        for s in (STEP, -STEP):
            rows.append(np.array([self._V(*x) for x in zip(t + s, q + s * v, v + s * tau / mass)]))
        return rows[0], (rows[1] - rows[2]) / (2.0 * STEP)

    def _V(self, t: Any, q: Any, v: Any) -> float:
        return float(self.lyapunov(t, q, v, None, None).value)


class Claim(NamedTuple):
    """Arguments of `certify_lyapunov`, and the kind of the flaw."""

    kind: str
    law: Law
    robot: gc.Robot
    box: tuple[float, float]
    options: dict[str, Any]


def nothing(t: Any, q: Any, v: Any) -> Any:
    return 0.0 * v


def no_V(t: Any, q: Any, v: Any) -> Any:
    return 0.0 * q.dot(q)


def generated(rng: np.random.Generator, size: float) -> Claim:
    """A claim with a flaw of this size: right for sizes near 0, usually wrong from 1 on."""
    n = int(rng.choice([1, 1, 2]))
    kp, kd = rng.uniform(10.0, 60.0), rng.uniform(4.0, 15.0)
    weights, box = [rng.uniform(2.0, 20.0), rng.uniform(1.0, 5.0)], (rng.uniform(0.5, 1.5), rng.uniform(1.0, 3.0))
    plain = Law(n, kp, kd, weights, nothing, no_V)
    push = size * weights[1] / plain.P[1, 1] * MASS  # of v in tau: where V' is no more negative in v
    at, width, side = rng.uniform(-0.8, 0.8, (2, n)) * np.array(box)[:, None], rng.uniform(0.1, 0.5), box[0]
    edge, when = rng.uniform(0.2, 0.8) * side, rng.uniform(0.0, 8.0)
    decay = float(np.linalg.eigvals(np.linalg.solve(0.5 * plain.P, plain.Q)).real.min())
    low = 0.5 * weights[0] * edge**2

    def bump(t: Any, q: Any, v: Any) -> Any:
        return 6.0 * push * v * np.exp(-((q - at[0]).dot(q - at[0]) + (v - at[1]).dot(v - at[1])) / width**2)

    flaws: dict[str, tuple[Callable, Callable, dict[str, Any]]] = {
        "ball": (bump, no_V, {}),
        "strip": (lambda t, q, v: np.where(np.abs(q - edge) < 0.1 * width, 4.0 * push, 0.0) * v, no_V, {}),
        "beyond": (lambda t, q, v: np.where(q > edge, 4.0 * push, 0.0) * v, no_V, {}),
        "kink": (lambda t, q, v: 4.0 * push * np.maximum(np.abs(v) - 0.5 * box[1], 0.0), no_V, {}),
        "smallest": (lambda t, q, v: 2.0 * push * (np.abs(v) - v), no_V, {}),
        "time": (lambda t, q, v: 5.0 * push * np.exp(-(((t - when) / width) ** 2)) * v, no_V, {"times": TIMES}),
        "later": (lambda t, q, v: np.where(t > when, 4.0 * push, 0.0) * v, no_V, {"times": TIMES}),
        "quartic": (nothing, lambda t, q, v: -size * 0.8 * plain.P[0, 0] * q.dot(q) * q.dot(q) / side**2, {}),
        "step": (nothing, lambda t, q, v: np.where(q[0] > edge, size * low, 0.0), {}),
        "floor": (nothing, lambda t, q, v: size * low * np.floor(np.abs(q[0]) / edge), {}),
        "angle": (nothing, lambda t, q, v: size * low * (np.arctan2(v[0], edge - q[0]) + 0.0), {}),
        "absolute": (nothing, lambda t, q, v: -size * 3.0 * plain.P[0, 0] * edge * np.maximum(q[0] - edge, 0.0), {}),
        "rate": (
            nothing,
            no_V,
            {"rate": decay * rng.choice([0.8, 0.95]) if size < 0.5 else decay * (1.0 + 1e-3 * size)},
        ),
        "offset": (
            lambda t, q, v: 3.0 * push * v,
            no_V,
            {"outside": (0.3 * box[0], 0.3 * box[1]), "offset": size * 0.02 * weights[1] * box[1] ** 2},
        ),
        "mass": (
            nothing,
            no_V,
            {"parameters": min(0.02 * size if size < 0.5 else 0.6 + 0.2 * size, 0.95), "outside": 0.05},
        ),
        "limit": (lambda t, q, v: np.clip(kp * q + kd * v, -1e9, 1e9) * min(size, 1.3) * 0.7, no_V, {}),
    }
    kind = str(rng.choice(list(flaws)))
    more, less, options = flaws[kind]
    return Claim(kind, Law(n, kp, kd, weights, more, less), ROBOTS[n], box, options)


def violated(claim: Claim, rng: np.random.Generator, states: int = STATES) -> bool:
    """Whether a state, time and mass are found at which the claim is wrong, or V jumps."""
    if claim.kind in JUMPS:
        return True
    law, (q_max, v_max), n = claim.law, claim.box, claim.law.n
    shape = np.array([q_max] * n + [v_max] * n)
    for block in range(0, states, 4000):
        x = rng.uniform(-1.0, 1.0, (4000, 2 * n)) * shape * rng.choice([1.0, 0.3, 0.05], (4000, 1))
        x[: 1000 if block == 0 else 0] = rng.choice([-1.0, 1.0], (1000 if block == 0 else 0, 2 * n)) * shape
        t = rng.uniform(0.0, 10.0, len(x))
        share = claim.options.get("parameters", 0.0)
        mass = MASS * (1.0 + share * rng.choice([-1.0, 0.0, 1.0], (len(x), 1)))
        V, slope = law.numbers(t, x[:, :n], x[:, n:], mass)
        outside = claim.options.get("outside", 1e-9)
        ball = np.repeat(outside if isinstance(outside, tuple) else (outside, 5.0 * outside), n)
        off = ((x / ball) ** 2).sum(1) >= 1.0
        allowed = claim.options.get("offset", 0.0) - claim.options.get("rate", 0.0) * V
        scale = 1e-6 * (np.abs(V) + np.abs(slope))
        if ((slope > allowed + scale) & off).any() or (V <= 0.0).any():
            return True
    return False


def verdict(claim: Claim, budget: testing.Budget = BUDGET) -> str:
    """proved, refuted, undecided or refused."""
    options = dict(claim.options)
    box = testing.Box(*claim.box, times=options.pop("times", None))
    try:
        return testing.certify_lyapunov(claim.law, claim.robot, box, levels=False, budget=budget, **options).status
    except GeomctrlError:
        return "refused"


def claims(right: bool, count: int, seed: int = 0) -> Iterator[Claim]:
    """This many claims that are right, or wrong, according to `violated`."""
    rng = np.random.default_rng([seed, right])
    while count:
        claim = generated(rng, rng.uniform(0.0, 0.15) if right else rng.choice([0.4, 0.8, 1.0, 1.5, 3.0]))
        if violated(claim, rng, 4000 if not right else 8000) != right:
            count -= 1
            yield claim


def main(count: int) -> int:
    worst = 0
    for right in (False, True):
        tally: dict[str, Counter] = {}
        for claim in claims(right, count):
            status = verdict(claim)
            tally.setdefault(claim.kind, Counter())[status] += 1
            if status == "proved" and not right:
                worst += 1
                print("WRONG AND PROVED:", claim)
        total = sum(tally.values(), Counter())
        print(f"{'right' if right else 'wrong'} claims: {dict(total)}")
        for kind, counts in sorted(tally.items()):
            print(f"  {kind:10} {dict(counts)}")
    return worst


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
