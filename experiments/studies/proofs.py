"""Which methods detect a wrong proof? Four methods on five laws with correct and ten with subtly wrong proofs.

Problem: a controller comes with a Lyapunov function V and a claim about V'. Ten times the proof, or the code, has a
mistake that people have made: it runs, it looks right, and most of these laws even stabilise the arm in tests. All act
on an arm with two links.

Result: which method finds which mistake, and that none rejects a right law. The methods are

    sampling       random states: V > 0, V' as claimed                  `assert_lyapunov(..., search=0)`
    search         a search for the state with the largest violation    `assert_lyapunov(...)`, `assert_sampled(...)`
    certificate    V > 0 and V' < 1e-3 W for every state of a box       `certify_lyapunov(...)`
    monitor        a run of two seconds with the default monitors       `simulate(...)`

Certificates need a law with a constant reference and without a state; "." means: not applicable.

    python experiments/studies/proofs.py [--why]
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.elastic_joints import ElasticPlant
from geomctrl.control.references import Harmonic, Sinusoids, hold

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import run_script

ARM = models.two_link()  # links of 1 m and 1 kg, in the vertical plane
LOADED = ARM.with_payload(1.0, (1.0, 0.0, 0.0))
Q_D = np.array([0.4, -0.7])  # rad
MOTION, STILL = Sinusoids(ARM, Q_D, 0.3, [0.3, 0.4]), hold(ARM, Q_D)
OFF = np.array([0.6, -0.5])  # rad, off the motion, where runs start
LIMITS = np.array([45.0, 25.0])  # N m


class PlainC(controllers.Passivity):
    """The velocity forces C v sorted by hand: C v is right, Mdot - 2C is not skew."""

    def coriolis_matrix(self, q, v):
        return 0.5 * np.sin(q[1]) * np.array([[-2.0 * v[1], -v[1]], [v[0], 0.0]])

    def __call__(self, t, q, v, z):
        x = self.sliding(t, q, v)
        M, g = self.robot.mass_matrix(q), self.robot.gravity_force(q)
        return gc.Command(M @ x.a_ref + self.coriolis_matrix(q, v) @ x.v_ref + g - self.K @ x.s)


class WrongSign(controllers.SlotineLi):
    """p' = +Gamma Y^T s: s is defined with the opposite sign."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(z_rate=-command.z_rate)


class NoGravity(controllers.PDGravity):
    """tau = -Kp e - Kd v: high gains without gravity compensation."""

    def __call__(self, t, q, v, z):
        return gc.Command(-self.kp @ (q - Q_D) - self.kd @ v)


class Leaking(controllers.SlotineLi):
    """p' = -Gamma (Y^T s + sigma p) forgets, so that p stays bounded; V' <= 0 is copied from the law without
    forgetting.

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

    V is zero upright and at rest, positive for an error of only q or only v, and zero on all motions with that energy.
    """

    def __call__(self, t, q, v, z):
        return gc.Command(-2.0 * self._off(self.robot, q, v) * v)

    def lyapunov(self, t, q, v, z, plant):
        off = self._off(plant.robot, q, v)
        return gc.Lyapunov(0.5 * off**2, -2.0 * off**2 * v @ v)

    def _off(self, robot, q, v):
        return robot.energy(q, v) - robot.energy(np.array([0.5 * np.pi, 0.0]), np.zeros(2))


class LinkDamping(controllers.PDGravity):
    """Damping of the elbow by its link's absolute speed, v1 + v2, as a gyroscope on the link measures it.

    v . D v = v1^2 + 4.05 v1 v2 + 4.05 v2^2 is negative between v1 = -2.25 v2 and v1 = -1.8 v2.
    """

    D = np.array([[1.0, 0.0], [4.05, 4.05]])

    def __call__(self, t, q, v, z):
        return gc.Command(self.robot.gravity_force(q) - self.kp @ (q - Q_D) - self.D @ v)

    def lyapunov(self, t, q, v, z, plant):
        V, _ = super().lyapunov(t, q, v, z, plant)
        return gc.Lyapunov(V, -v @ self.D @ v)


class Limited(controllers.PDGravity):
    """The law with limited torques."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=np.clip(command.tau, -LIMITS, LIMITS))


@dataclass
class Case:
    """A control law, the plant it is designed for, and the information for the methods."""

    name: str
    law: Any
    plant: Any = ARM
    start: tuple = (Q_D + OFF, np.zeros(2))
    still: Any = None  # the law holding Q_D, for a certificate
    box: tuple = (0.6, 1.0)  # rad, rad/s about Q_D, of the certificate
    equilibrium: Any = None  # where it is not the one that the law says
    control_dt: float | None = None


def tracking(name: str, law: Callable, plant: Any = ARM, **options: Any) -> Case:
    """A law that follows a motion, and the same law at a constant reference."""
    start = MOTION(0.0).q + OFF, MOTION(0.0).v
    return Case(name, law(MOTION), plant, start, law(STILL), **options)


def regulating(name: str, law: Any, plant: Any = ARM, **options: Any) -> Case:
    """A law that holds Q_D."""
    return Case(name, law, plant, still=law, **options)


def passivity(motion: Any, K: float = 20.0) -> controllers.Passivity:
    return controllers.Passivity(ARM, motion, K=K, strict=True)


def adaptive(law: Callable = controllers.SlotineLi) -> Any:
    return law(ARM, MOTION, rate=0.1)


def computed_torque(motion: Any) -> controllers.ComputedTorque:
    return controllers.ComputedTorque(ARM, motion)


def right() -> list[Case]:
    stiffness, rotor = 500.0, 0.1  # N m/rad, kg m^2
    elastic = controllers.ElasticJoint(ARM, Harmonic(Q_D, 0.3, 0.4), stiffness, rotor)
    return [
        tracking("Passivity", passivity),
        tracking("ComputedTorque", computed_torque),
        regulating("PDGravity", controllers.PDGravity(ARM, Q_D, 20.0, 5.0)),
        Case("SlotineLi, a load unknown", adaptive(), LOADED),
        Case("ElasticJoint", elastic, ElasticPlant(ARM, stiffness, rotor), (np.tile(Q_D + 0.1, 2), np.zeros(4))),
    ]


def wrong() -> list[Case]:
    sticking = gc.Plant(ARM, gc.Friction(coulomb=2.0, smoothing=0.05))
    upright = np.array([0.5 * np.pi, 0.0])
    return [
        tracking("plain C", lambda motion: PlainC(ARM, motion, strict=True)),
        Case("adaptation of the wrong sign", adaptive(WrongSign), LOADED),
        regulating("gravity left out", NoGravity(ARM, Q_D, 100.0, 10.0)),
        Case("sigma-modification called exact", adaptive(Leaking), LOADED),
        Case("held too long", passivity(STILL, K=5.0), control_dt=0.05),
        tracking("mass matrix of another model", computed_torque, LOADED),
        regulating("V zero on an orbit", EnergyShaping(ARM, Q_D), equilibrium=upright),
        tracking("Coulomb friction ignored", passivity, sticking),
        regulating("damping that is not passive", LinkDamping(ARM, Q_D, 20.0)),
        regulating("saturation ignored", Limited(ARM, Q_D, 20.0, 5.0), box=(1.5, 2.0)),
    ]


# --- judges: each says what it found, and why -------------------------------------------------------------------

CAUGHT, NOTHING, NOT_FOR_THIS = "caught", "-", "."


def sampling(case: Case) -> tuple[str, str]:
    region = testing.Region(equilibrium=case.equilibrium)
    return _asserted(lambda: testing.assert_lyapunov(case.law, case.plant, region=region, search=0, runs=0))


def search(case: Case) -> tuple[str, str]:
    if case.control_dt is not None:  # what is claimed of a law that is held: V falls over ten samples
        horizon = 10.0 * case.control_dt
        return _asserted(lambda: testing.assert_sampled(case.law, case.plant, case.control_dt, horizon=horizon))
    region = testing.Region(equilibrium=case.equilibrium)
    return _asserted(lambda: testing.assert_lyapunov(case.law, case.plant, region=region, runs=0))


def _asserted(check: Callable[[], None]) -> tuple[str, str]:
    try:
        check()
    except AssertionError as error:
        return CAUGHT, str(error).split("\n")[0]
    return NOTHING, ""


def certificate(case: Case) -> tuple[str, str]:
    if case.still is None:
        return NOT_FOR_THIS, ""
    box = testing.Box(*case.box, equilibrium=case.equilibrium)
    results = testing.certify_lyapunov(case.still, case.plant, box, offset=1e-3, budget=40_000, levels=False)
    return {"proved": "proved", "refuted": CAUGHT, "undecided": NOTHING}[results.status], "\n".join(
        map(str, results.claims)
    )


def monitor(case: Case) -> tuple[str, str]:
    try:
        run = gc.simulate(case.plant, case.law, *case.start, 2.0, 0.5e-3, control_dt=case.control_dt)
    except gc.SimulationError as error:
        return CAUGHT, str(error)
    broken = [str(result) for result in run.monitors.values() if result.ok is False]
    return CAUGHT if broken else NOTHING, "; ".join(broken)


JUDGES = {judge.__name__: judge for judge in (sampling, search, certificate, monitor)}


def verdicts(case: Case) -> dict[str, tuple[str, str]]:
    """The result of each method, and its reason."""
    return {name: judge(case) for name, judge in JUDGES.items()}


def main(*, why: bool = False) -> None:
    """why: below each line the messages of the methods."""
    start = time.perf_counter()
    print(f"{'':34s}" + "".join(f"{name:>13s}" for name in JUDGES))
    for title, cases in (("right", right()), ("wrong", wrong())):
        print(title)
        for case in cases:
            results = verdicts(case)
            print(f"  {case.name:32s}" + "".join(f"{word:>13s}" for word, _ in results.values()))
            for name, (_, message) in results.items():
                if why and message:
                    print(textwrap.indent(f"{name}: {message}", "      "))
    print(f"in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    run_script(main)
