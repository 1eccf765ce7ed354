"""Who catches a proof that is wrong? Five laws whose proofs are right and ten that are subtly wrong, and four judges.

Problem: a controller comes with a Lyapunov function V and what its proof says of V'. Ten times the proof, or the code,
has a mistake that people have made: it compiles, it looks right, most of them even stabilise the arm that they are
tried on. All act on an arm with two links.

What is shown: who catches which mistake, and that none of the right laws is accused. The judges are

    sampling       random states: V > 0, V' as promised                 `assert_lyapunov(..., search=0, runs=0)`
    search         the state is sought at which a promise is worst      `assert_lyapunov(...)`
    monitor        a run of two seconds with the default monitors       `simulate(...)`

    python experiments/demos/proofs.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.elastic_joints import ElasticPlant
from geomctrl.control.references import Sinusoids
from geomctrl.control.smooth_references import Harmonic

ARM = models.two_link()  # links of 1 m and 1 kg, in the vertical plane
LOADED = ARM.with_payload(1.0, (1.0, 0.0, 0.0))
Q_D = np.array([0.4, -0.7])  # rad
MOTION = Sinusoids(ARM, Q_D, 0.3, [0.3, 0.4])
OFF = np.array([0.6, -0.5])  # rad, off the motion, where runs start
LIMITS = np.array([45.0, 25.0])  # N m


class PlainC(controllers.Passivity):
    """The velocity forces C v as a textbook sorts them: C v is right, Mdot - 2C is not skew."""

    def coriolis_matrix(self, q, v):
        return 0.5 * np.sin(q[1]) * np.array([[-2.0 * v[1], -v[1]], [v[0], 0.0]])

    def __call__(self, t, q, v, z):
        x = self.sliding(t, q, v)
        M, g = self.robot.mass_matrix(q), self.robot.gravity_force(q)
        return gc.Command(M @ x.a_ref + self.coriolis_matrix(q, v) @ x.v_ref + g - self.K @ x.s)


class WrongSign(controllers.SlotineLi):
    """p' = +Gamma Y^T s: somebody has defined s the other way round."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(z_rate=-command.z_rate)


class NoGravity(controllers.PDGravity):
    """tau = -Kp e - Kd v: the gains are high, gravity is left to them."""

    def __call__(self, t, q, v, z):
        return gc.Command(-self.kp @ (q - Q_D) - self.kd @ v)


class Leaking(controllers.SlotineLi):
    """p' = -Gamma (Y^T s + sigma p) forgets, so that p stays bounded; V' <= 0 is kept from the law that does not.

    V' = -s . K s - sigma (p - p_true) . p is positive for some p between 0 and p_true.
    """

    sigma = 0.05

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(z_rate=command.z_rate - self.sigma * self.Gamma @ z)

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return gc.Lyapunov(V, rate - self.sigma * (z - self.true_parameters(plant)) @ z)


class EnergyShaping(controllers.PDGravity):
    """tau = -k (E - E_d) v swings the arm up: V = (E - E_d)^2 / 2, V' = -k (E - E_d)^2 v . v.

    V is zero upright and at rest, positive where only q or only v is off, and zero on all motions with that energy.
    """

    def __call__(self, t, q, v, z):
        return gc.Command(-2.0 * self._off(self.robot, q, v) * v)

    def lyapunov(self, t, q, v, z, plant):
        off = self._off(plant.robot, q, v)
        return gc.Lyapunov(0.5 * off**2, -2.0 * off**2 * v @ v)

    def _off(self, robot, q, v):
        return robot.energy(q, v) - robot.energy(np.array([0.5 * np.pi, 0.0]), np.zeros(2))


class LinkDamping(controllers.PDGravity):
    """The elbow is damped by its link's own speed, v1 + v2, as a gyroscope on the link measures it.

    v . D v = v1^2 + 4.05 v1 v2 + 4.05 v2^2 is negative between v1 = -2.25 v2 and v1 = -1.8 v2.
    """

    D = np.array([[1.0, 0.0], [4.05, 4.05]])

    def __call__(self, t, q, v, z):
        return gc.Command(self.robot.gravity_force(q) - self.kp @ (q - Q_D) - self.D @ v)

    def lyapunov(self, t, q, v, z, plant):
        V, _ = super().lyapunov(t, q, v, z, plant)
        return gc.Lyapunov(V, -v @ self.D @ v)


class Limited(controllers.PDGravity):
    """The law, with torques that the joints can give."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=np.clip(command.tau, -LIMITS, LIMITS))


@dataclass
class Case:
    """A law, the plant it is said to be for, and options of the judges."""

    name: str
    law: Any
    plant: Any = ARM
    start: tuple = (MOTION(0.0).q + OFF, MOTION(0.0).v)
    claim: dict[str, Any] = field(default_factory=dict)  # of assert_lyapunov
    run: dict[str, Any] = field(default_factory=dict)  # of simulate


AT_REST = Q_D + OFF, np.zeros(2)
ELASTIC = 500.0, 0.1  # N m/rad, kg m^2


def right() -> list[Case]:
    elastic = controllers.ElasticJoint(ARM, Harmonic(Q_D, 0.3, 0.4), *ELASTIC)
    return [
        Case("Passivity", controllers.Passivity(ARM, MOTION)),
        Case("ComputedTorque", controllers.ComputedTorque(ARM, MOTION)),
        Case("PDGravity", controllers.PDGravity(ARM, Q_D, 20.0, 5.0), start=AT_REST),
        Case("SlotineLi, a load unknown", controllers.SlotineLi(ARM, MOTION, rate=0.1), LOADED),
        Case("ElasticJoint", elastic, ElasticPlant(ARM, *ELASTIC), (np.tile(Q_D + 0.1, 2), np.zeros(4))),
    ]


def wrong() -> list[Case]:
    sticking = gc.Plant(ARM, gc.Friction(coulomb=0.5, smoothing=0.05))
    upright = {"equilibrium": np.array([0.5 * np.pi, 0.0])}
    return [
        Case("plain C", PlainC(ARM, MOTION)),
        Case("adaptation of the wrong sign", WrongSign(ARM, MOTION, rate=0.1), LOADED),
        Case("gravity left out", NoGravity(ARM, Q_D, 100.0, 10.0), start=AT_REST),
        Case("sigma-modification called exact", Leaking(ARM, MOTION, rate=0.1), LOADED),
        Case("held too long", controllers.Passivity(ARM, MOTION), run={"control_dt": 0.04}),
        Case("mass matrix of another model", controllers.ComputedTorque(ARM, MOTION), LOADED),
        Case("V zero on an orbit", EnergyShaping(ARM, Q_D), start=AT_REST, claim=upright),
        Case("Coulomb friction ignored", controllers.Passivity(ARM, MOTION), sticking),
        Case("damping that is not passive", LinkDamping(ARM, Q_D, 20.0), start=AT_REST),
        Case("saturation ignored", Limited(ARM, Q_D, 20.0, 5.0), start=AT_REST),
    ]


# --- judges: each says why it accuses a law, or nothing ------------------------------------------------------------


def sampling(case: Case) -> str:
    return _refuted(lambda: testing.assert_lyapunov(case.law, case.plant, search=0, runs=0, **case.claim))


def search(case: Case) -> str:
    return _refuted(lambda: testing.assert_lyapunov(case.law, case.plant, runs=0, **case.claim))


def _refuted(check: Callable[[], None]) -> str:
    try:
        check()
    except AssertionError as error:
        return str(error).split("\n")[0]
    return ""


def monitor(case: Case) -> str:
    try:
        run = gc.simulate(case.plant, case.law, *case.start, 2.0, 0.5e-3, **case.run)
    except gc.SimulationError as error:
        return str(error)
    return "; ".join(str(result) for result in run.monitors.values() if not result.ok)


JUDGES = {judge.__name__: judge for judge in (sampling, search, monitor)}


def verdicts(case: Case) -> dict[str, str]:
    """What each judge says."""
    return {name: judge(case) for name, judge in JUDGES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--why", action="store_true", help="what the judges say, below each line")
    why, start = parser.parse_args().why, time.perf_counter()
    print(f"{'':34s}" + "".join(f"{name:>12s}" for name in JUDGES))
    for title, cases in (("right", right()), ("wrong", wrong())):
        print(title)
        for case in cases:
            said = verdicts(case)
            print(f"  {case.name:32s}" + "".join(f"{'caught' if words else '-':>12s}" for words in said.values()))
            for name, words in said.items():
                if why and words:
                    print(f"      {name}: {words}")
    print(f"in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
