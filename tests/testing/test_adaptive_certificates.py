"""Certificates of adaptive laws: bounds by hand, simulations, and laws with planted errors."""

import numpy as np
import pytest
from arms import AXIS

import geomctrl as gc
from geomctrl import controllers, testing
from geomctrl.errors import ArgumentError
from geomctrl.testing.certificates.forms import inverse_diagonal
from geomctrl.testing.certificates.request import CertificateRequest
from geomctrl.tracing.proofs.interpreted import valued

ARM = gc.models.two_link()
MOTION = gc.references.Sinusoids(ARM, [0.3, 0.5], [0.4, 0.3], 0.3, [0.0, 0.5])
SWING = gc.references.Sinusoids(AXIS, [0.0], [0.2], 0.5)
M, K, LAMBDA, SIGMA, SHARE, FORCE = 2.0, 30.0, 5.0, 2.0, 0.1, 0.5
LEAKY = {"rate": 100.0, "sigma": SIGMA}
ERROR = SHARE * M  # kg


def axis_law(kind=controllers.SigmaModification, **options):
    return kind(AXIS, SWING, LAMBDA, K, **({"rate": 50.0, "sigma": SIGMA} | options))


def smallest_offset(law):
    """The maximum of V' + SIGMA V for one axis, by hand: s and the estimate of the mass are apart."""
    Gamma = law.Gamma[0, 0]
    of_estimates = SIGMA**2 * ERROR**2 / Gamma / (4.0 * 0.5 * SIGMA)
    moments = [law.p0[k] for k in range(4, 10)]
    of_estimates += sum(SIGMA * (SHARE * x) ** 2 / law.Gamma[k, k] / 2.0 for k, x in zip(range(4, 10), moments))
    return of_estimates + FORCE**2 / (4.0 * (K - 0.5 * SIGMA * (1.0 + SHARE) * M))


@pytest.mark.parametrize(("factor", "status"), [(1.3, "proved"), (0.99, "undecided"), (0.5, "refuted")])
def test_bound_of_an_axis_is_that_by_hand(factor, status):
    law = axis_law()
    box = testing.Box(0.5, 5.0, disturbance=FORCE, z=5.0)
    c = factor * smallest_offset(law)
    certificate = testing.certify_lyapunov(law, AXIS, box, parameters=SHARE, rate=SIGMA, offset=c, budget=2_000)
    assert certificate.status == status, certificate
    if status == "proved":
        s = np.sqrt(2.0 * c / SIGMA / (M * (1.0 - SHARE)))
        assert certificate.ultimate_bound == pytest.approx([s / LAMBDA], rel=1e-3)
    elif status == "refuted":  # V' at that state, by the equation of motion
        bad, t = certificate.counterexample, 0.0  # V' depends on errors alone, not on time
        plant = gc.Plant(AXIS.with_parameters(bad.parameters, physical=False))
        e, de = bad.q - SWING(t).q, bad.v - SWING(t).v
        s, off = (de + LAMBDA * e)[0], bad.z - bad.parameters.ravel()
        mass = bad.parameters[0, 0]
        leak = SIGMA * off @ law.Gamma_inverse @ (bad.z - law.p0)
        V = 0.5 * mass * s**2 + 0.5 * off @ law.Gamma_inverse @ off
        worst = -K * s**2 + FORCE * abs(s) - leak + SIGMA * V - c
        assert worst == pytest.approx(bad.excess, abs=1e-9)
        assert law.lyapunov(t, bad.q, bad.v, bad.z, plant).value == pytest.approx(V)


class Pushed(gc.Plant):
    """An arm with a torque of 0.1 N m that changes its sign."""

    def net_torque(self, t, q, v, tau, x):
        return tau + 0.1 * np.sign(np.sin(np.array([1.3, 2.9]) * t + 0.7))


class WrongSign(controllers.SlotineLi):
    def _rate(self, g, s, z):
        return -super()._rate(g, s, z)


class Halved(controllers.SlotineLi):
    def _rate(self, g, s, z):
        return 0.5 * super()._rate(g, s, z)


class Frozen(controllers.SlotineLi):
    """The estimate of one mass does not move."""

    def _rate(self, g, s, z):
        rate = super()._rate(g, s, z)
        return rate * np.where(np.arange(len(self.p0)) == 10, 0.0, 1.0)


class Anti(controllers.SigmaModification):
    def _rate(self, g, s, z):
        return self._gradient(g) + self.sigma * (self._state(z) - self.p0)


class WithoutGravity(controllers.SlotineLi):
    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau - self.robot.gravity_force(q))


@pytest.mark.parametrize("kind", [WrongSign, Halved, Frozen, WithoutGravity])
def test_planted_errors_of_adaptation_are_not_proved(kind):
    law = kind(ARM, MOTION, 10.0, 40.0, rate=100.0)
    certificate = testing.certify_lyapunov(law, ARM, testing.Box(0.3, 4.0, z=2.0), parameters=0.05, budget=50)
    assert certificate.status in ("refuted", "undecided")
    assert certificate.level is None


def test_a_planted_error_of_the_leakage_is_refuted():
    law = axis_law(Anti)
    box, c = testing.Box(0.5, 5.0, z=5.0), 2.0 * smallest_offset(law)
    certificate = testing.certify_lyapunov(law, AXIS, box, parameters=SHARE, rate=SIGMA, offset=c, budget=50)
    assert certificate.status == "refuted"


def test_slotine_li_is_stable_for_all_parameters_and_v_grows_slowly_under_disturbances():
    law, box = controllers.SlotineLi(ARM, MOTION, 10.0, 40.0, rate=100.0), testing.Box(0.3, 8.0, z=2.0)
    certificate = testing.certify_lyapunov(law, ARM, box, parameters=0.05)
    assert certificate.status == "semidefinite", certificate
    assert certificate.level > 0.0
    assert certificate.ends_in is certificate.ultimate_bound is None
    assert "stay there" in str(certificate)
    box, c = testing.Box(0.3, 8.0, z=2.0, disturbance=0.1), 2.0 * 0.1**2 / (4.0 * 40.0)
    for factor, status in ((1.3, "proved"), (0.9, "refuted")):
        certificate = testing.certify_lyapunov(law, ARM, box, parameters=0.05, offset=factor * c, budget=500)
        assert certificate.status == status, certificate
        assert certificate.ends_in is None  # estimates may drift


def test_motions_under_random_robots_and_disturbances_keep_the_proved_bounds():
    law, rng = controllers.SigmaModification(ARM, MOTION, 10.0, 40.0, **LEAKY), np.random.default_rng(0)
    box = testing.Box(0.3, 8.0, z=2.0, disturbance=0.1)
    certificate = testing.certify_lyapunov(law, ARM, box, parameters=0.05, rate=SIGMA, offset=5.6e-4)
    assert certificate.proved, certificate
    bound = certificate.ultimate_bound
    assert bound.max() < 0.012
    for _ in range(3):
        shares = 1.0 + 0.05 * rng.choice([-1.0, 1.0], ARM.parameters.shape)
        robot = ARM.with_parameters(ARM.parameters * shares, physical=False)
        plant = Pushed(robot)
        start = MOTION(0.0)
        off = np.minimum(0.5 * certificate.sliding.errors(certificate.region), 0.01)
        q0 = start.q + off * rng.choice([-1.0, 1.0], 2)
        run = gc.simulate(plant, law, q0, start.v, t_end=8.0, dt=2e-3)
        e = np.array([q - MOTION(t).q for t, q in zip(run.t, run.q)])
        V = [law.lyapunov(t, q, v, z, plant).value for t, q, v, z in zip(run.t, run.q, run.v, run.z)]
        assert max(V) <= max(V[0], certificate.ends_in) * (1.0 + 1e-6)
        assert V[-1] <= certificate.ends_in
        assert (np.abs(e[-500:]) <= bound).all()


@pytest.mark.slow
def test_the_proof_is_confirmed(tmp_path):
    law, box = axis_law(), testing.Box(0.5, 5.0, z=5.0)
    claim = {"parameters": SHARE, "rate": SIGMA, "offset": 1.3 * smallest_offset(law)}
    path = testing.certify_lyapunov(law, AXIS, box, **claim).save(tmp_path / "adaptive.npz")
    assert "confirmed" in testing.recheck_lyapunov(path, law, AXIS, box, **claim)
    claim["offset"] *= 0.5
    with pytest.raises(testing.CheckError):
        testing.recheck_lyapunov(path, law, AXIS, box, **claim)


class OwnParameters(controllers.Passivity):
    """A V with the plant's parameters, which the claim varies."""

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return gc.Lyapunov(V * plant.robot.parameters[0, 0] / M, rate)


def test_parameters_that_v_reads_are_those_of_the_claim():
    law = OwnParameters(AXIS, SWING, LAMBDA, K, strict=True)
    e = CertificateRequest(law, AXIS, testing.Box(0.2, 2.0), None, 0.5, 0.0, 0.1, 10).e
    p, x, rest = 1.4 * AXIS.parameters, np.array([[0.1, -0.3]]), SWING(1.0)
    there = {**e.at(x, np.append(p.ravel(), [1.0] * e.timed)[None]), e.loop.t.index: 1.0}
    plant = gc.Plant(AXIS.with_parameters(p))
    expected = law.lyapunov(1.0, rest.q + x[0, :1], rest.v + x[0, 1:], None, plant).value
    assert valued(e.graph, [e.loop.value], there, 1)[0, 0] == pytest.approx(expected, rel=1e-12)


def test_bounds_of_an_inverse_hold():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    P, radius = A @ A.T + np.eye(4), 1e-3
    above = inverse_diagonal(P - radius, P + radius)
    for _ in range(50):
        off = rng.uniform(-radius, radius, (4, 4))
        assert (np.diag(np.linalg.inv(P + 0.5 * (off + off.T))) <= above).all()
    assert inverse_diagonal(-P, -P) is None
    assert inverse_diagonal(P - 2.0 * np.eye(4), P + 2.0 * np.eye(4)) is None


def test_arguments():
    law = axis_law()
    for box, error in ((testing.Box(0.5, 5.0), "z"), (testing.Box(0.5, 5.0, z=[1.0, 2.0]), "z")):
        with pytest.raises(ArgumentError, match=error):
            testing.certify_lyapunov(law, AXIS, box, rate=1.0, offset=1.0)
    with pytest.raises(ArgumentError, match="outside"):
        testing.certify_lyapunov(law, AXIS, testing.Box(0.5, 5.0, z=1.0), outside=0.1)
    plain = controllers.Passivity(AXIS, SWING, LAMBDA, K)
    with pytest.raises(ArgumentError, match="state z"):
        testing.certify_lyapunov(plain, AXIS, testing.Box(0.5, 5.0, z=1.0), rate=1.0, offset=1.0)
