"""Bounds of tracking errors from V = 1/2 s . M s, of laws with a correction, and sinusoids of several frequencies."""

import numpy as np
import pytest
from arms import AXIS, motion

import geomctrl as gc
from geomctrl import controllers, testing
from geomctrl.errors import ArgumentError
from geomctrl.testing.certificates.forms import comparison
from geomctrl.testing.certificates.quadratic import Boxes, inputs
from geomctrl.testing.certificates.request import CertificateRequest
from geomctrl.testing.certificates.sliding import inverse_masses
from geomctrl.testing.certificates.tracking import period_of, speeds_of, with_phases
from geomctrl.testing.certificates.validity import at_rest
from geomctrl.tracing import symbols
from geomctrl.tracing.proofs.interpreted import Program, valued
from geomctrl.tracing.symbols import Graph

ARM = gc.models.two_link()
MOTION = gc.references.Sinusoids(ARM, [0.3, 0.5], [0.4, 0.3], 0.3, [0.0, 0.5])
SWING = gc.references.Sinusoids(AXIS, [0.0], [0.2], 0.5)
M, K, LAMBDA, RATE, FORCE = 2.0, 30.0, 5.0, 4.0, 1.0  # of the axis
BOX = testing.Box(0.3, (4.0, 8.0), disturbance=0.1)
TWO = gc.references.Sinusoids(ARM, [0.3, 0.5], [[0.4, 0.3], [0.1, 0.1]], [[0.3, 0.3], [0.7, 0.7]])


def axis_law(friction=None):
    return controllers.Passivity(AXIS, SWING, Lambda=LAMBDA, K=K, friction=friction)


def robust(reference=MOTION, rho=0.14, Lambda=10.0, strict=False):
    return controllers.Robust(ARM, reference, Lambda=Lambda, K=40.0, rho=rho, eps=0.5, strict=strict)


def smallest_offset(force):
    """max - K s^2 + s d + RATE / 2 m s^2, by hand."""
    return force**2 / (4.0 * (K - 0.5 * RATE * M))


@pytest.mark.parametrize(("factor", "status"), [(1.02, "proved"), (0.98, "refuted")])
def test_bound_of_an_axis_is_that_by_hand(factor, status):
    c = factor * smallest_offset(FORCE)
    certificate = testing.certify_lyapunov(
        axis_law(), AXIS, testing.Box(0.2, 2.0, disturbance=FORCE), rate=RATE, offset=c
    )
    assert certificate.status == status, certificate
    if status == "proved":
        s = np.sqrt(2.0 * c / (RATE * M))  # V = m s^2 / 2 <= c / RATE
        assert certificate.ultimate_bound == pytest.approx([s / LAMBDA], rel=1e-6)
        assert certificate.ultimate_bound[0] >= s / LAMBDA
        assert certificate.level == pytest.approx(0.5 * M * (LAMBDA * 0.2) ** 2, rel=1e-6)  # the box of e decides
        assert "|q - q_d| <=" in str(certificate)


class Pushed(gc.Plant):
    """A table that two sinusoids of other frequencies than the reference's push."""

    def net_torque(self, t, q, v, tau, x):
        return tau + 0.6 * np.sin(2.3 * t) + 0.4 * np.cos(-3.7 * t + 0.5)


@pytest.mark.parametrize(("factor", "status"), [(1.02, "proved"), (0.97, "refuted")])
def test_phases_of_several_frequencies_are_independent(factor, status):
    c = factor * smallest_offset(0.6 + 0.4)
    certificate = testing.certify_lyapunov(axis_law(), Pushed(AXIS), testing.Box(0.2, 2.0), rate=RATE, offset=c)
    assert certificate.status == status, certificate
    if status == "refuted":  # V' at that state and time, by the equation of motion
        bad = certificate.counterexample
        s = (bad.v - SWING(bad.t).v + LAMBDA * (bad.q - SWING(bad.t).q))[0]
        push = 0.6 * np.sin(2.3 * bad.t) + 0.4 * np.cos(-3.7 * bad.t + 0.5)
        assert -K * s * s + s * push + 0.5 * RATE * M * s * s - c == pytest.approx(bad.excess, abs=1e-9)


def test_times_and_phases_of_sinusoids():
    graph = Graph()
    t, x = graph.load(0, 0), graph.load(0, 1)
    ends = [symbols.unary("sin", 2.0 * t + 0.3) * x + symbols.unary("cos", 0.5 - 3.0 * t)]
    speeds = speeds_of(graph, ends, t.index, {})
    assert sorted(speeds.values()) == [-3.0, 2.0]
    assert period_of([2.0, -3.0]) == pytest.approx(2.0 * np.pi)
    assert period_of([2.0, 4.0]) == pytest.approx(np.pi)
    assert period_of([2.0, 2.0 * np.sqrt(2.0)]) is None
    moved, phases, longest = with_phases(graph, ends, speeds, t.index)
    assert longest == pytest.approx(np.pi)
    for now in (0.4, 7.0):
        exact = valued(graph, ends, {t.index: np.array([now]), x.index: np.array([1.3])}, 1)
        shifted = {k: np.array([speed * now % (2.0 * np.pi)]) for k, speed in zip(phases, (2.0, 3.0))}
        assert valued(graph, moved, {**shifted, x.index: np.array([1.3])}, 1) == pytest.approx(exact, abs=1e-12)
    with pytest.raises(ArgumentError, match="times"):
        speeds_of(graph, [ends[0] + t * x], t.index, {})


def test_uncertain_friction_is_part_of_the_claim():
    friction = gc.Friction(viscous=3.0)
    plant = gc.Plant(AXIS, friction=friction)
    claim = {"rate": RATE, "offset": 0.002}
    for share, status in ((0.02, "proved"), (0.5, "refuted")):
        box = testing.Box(0.02, 0.2, friction=share)
        assert testing.certify_lyapunov(axis_law(friction), plant, box, **claim).status == status
    with pytest.raises(ArgumentError, match="friction"):
        testing.certify_lyapunov(axis_law(), AXIS, testing.Box(0.02, 0.2, friction=0.1), **claim)
    with pytest.raises(ArgumentError, match="friction"):
        testing.Box(0.02, 0.2, friction=-0.1)


class Deaf(gc.Plant):
    """A plant without springs, and therefore without the torques that stand for disturbances."""

    def net_torque(self, t, q, v, tau, x):
        return tau


def test_plants_that_ignore_disturbances_are_refused():
    with pytest.raises(ArgumentError, match="disturbance: expected a plant"):
        testing.certify_lyapunov(
            axis_law(), Deaf(AXIS), testing.Box(0.2, 2.0, disturbance=FORCE), rate=RATE, offset=1e-4
        )


@pytest.mark.parametrize("percent", [0.0, 0.05, 0.1])
def test_bounds_of_the_inverse_mass_matrix_hold_for_all_robots(percent):
    request = CertificateRequest(robust(), ARM, BOX, None, percent, 4.0, 0.1, 100)
    sigma, rng = np.sqrt(inverse_masses(request.e, request.box, ARM)), np.random.default_rng(0)
    largest = np.zeros(2)
    for _ in range(300):
        p = ARM.parameters * (1.0 + percent * rng.choice([-1.0, 1.0], ARM.parameters.shape))
        q = MOTION(rng.uniform(0.0, 4.0)).q + rng.uniform(-0.3, 0.3, 2)
        inverse = np.linalg.inv(ARM.with_parameters(p, physical=False).mass_matrix(q))
        largest = np.maximum(largest, np.sqrt(np.diag(inverse)))
    assert (largest <= sigma).all()
    assert (sigma < 1.5 * largest).all()


@pytest.mark.parametrize(
    ("law", "plant", "box", "percent", "exact"),
    [
        (robust(), gc.Plant(ARM), BOX, 0.04, False),
        (robust(), gc.Plant(ARM), BOX, 0.15, False),  # beyond rho
        (robust(TWO), gc.Plant(ARM), BOX, 0.04, False),
        (robust(strict=True), gc.Plant(ARM), BOX, 0.04, False),
        (controllers.Passivity(ARM, TWO, 10.0, 40.0, strict=True), gc.Plant(ARM), BOX, 0.04, True),
        (
            controllers.Passivity(ARM, MOTION, 10.0, 40.0, friction=gc.Friction(0.3, 0.2, 0.05)),
            gc.Plant(ARM, friction=gc.Friction(0.3, 0.1, 0.05)),
            testing.Box(0.3, 4.0, disturbance=0.1, friction=0.2), 0.04, True,
        ),
        (
            controllers.ComputedTorque(ARM, MOTION, 100.0, 20.0, strict=True),
            gc.Plant(ARM, friction=gc.Friction(0.3, 0.0)), testing.Box(0.2, 2.0, friction=0.5), 0.01, True,
        ),
    ],
    ids=["Robust", "beyond rho", "Robust two", "Robust strict", "Passivity two", "friction", "ComputedTorque friction"],
)  # fmt: skip
def test_bounds_of_v_and_its_rate_hold_at_random_points(law, plant, box, percent, exact):
    """The rewritten V' is at least V' along the field, for robots, disturbances and friction anywhere in the box."""
    request, count, rng = (
        CertificateRequest(law, plant, box, None, percent, 4.0, 0.1, 100),
        300,
        np.random.default_rng(0),
    )
    e = request.e
    x = rng.uniform(-1.0, 1.0, (count, 4)) * request.box.hi[0] * rng.choice([1.0, 0.1, 0.01], (count, 1))
    p = np.where(rng.random((count, len(request.box.p_lo[0]))) < 0.5, request.box.p_lo[0], request.box.p_hi[0])
    if e.timed:
        p[:, -1] = rng.uniform(0.0, e.times[1], count)
    for i in range(len(e.phases)):  # frequencies of TWO
        p[:, len(p[0]) - 1 - len(e.phases) + i] = 2.0 * np.pi * (0.3, 0.7)[i] * p[:, -1] % (2.0 * np.pi)
    points = Boxes(x, x, p, p)
    low, high = Program(e.graph, [e.decrease, e.value]).enclosed(inputs(e, points, x, x), count)
    slope, value = valued(e.graph, [e.loop.slope, e.loop.value], e.at(x, p), count).T
    size = 1e-9 * np.abs(slope).max()
    assert (high[:, 0] >= slope - size).all()
    assert high[:, 1] == pytest.approx(value, rel=1e-6, abs=1e-9)
    if exact and not e.inverse:
        assert low[:, 0] == pytest.approx(slope, rel=1e-6, abs=100.0 * size)


def test_conditions_of_loops_with_phases_hold_for_all_times():
    request = CertificateRequest(robust(TWO), ARM, BOX, None, 0.0, 4.0, 0.1, 100)
    e, box = request.e, request.box
    assert inputs(e, box, box.lo, box.hi)[e.loop.t.index] == (0.0, np.inf)
    (low,), (high,) = at_rest(e, [e.loop.t], box.p_lo, box.p_hi)
    assert (low, high) == (0.0, np.inf)


def test_gains_must_have_a_comparison_matrix():
    C = comparison(np.array([[3.0, -1.0], [1.0, 2.0]]))
    assert C.tolist() == [[3.0, -1.0], [-1.0, 2.0]]
    for gain in ([[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [[-1.0, 0.0], [0.0, -1.0]]):
        assert comparison(np.array(gain)) is None


class Weak(controllers.Robust):
    """A planted error: the correction has the wrong size, so that the bound of Spong's law does not apply."""

    def __call__(self, t, q, v, z):
        full, x = super().__call__(t, q, v, z), self.sliding(t, q, v)
        plain = self.robot.inverse_dynamics(q, v, x.a_ref, x.v_ref) - self.K.dot(x.s)
        return gc.Command(0.5 * (full.tau + plain), None, full.signals)


def has_correction(certificate):
    return any("g . D g" in lemma.claim for lemma in certificate.lemmas)


def test_correction_of_another_size_is_not_taken_for_spongs():
    claim = {"parameters": 0.05, "rate": 4.0, "offset": 0.03, "budget": 300, "levels": False}
    weak = Weak(ARM, MOTION, Lambda=10.0, K=40.0, rho=0.14, eps=0.5)
    assert has_correction(testing.certify_lyapunov(robust(), ARM, BOX, **claim))
    assert not has_correction(testing.certify_lyapunov(weak, ARM, BOX, **claim))


def test_parameter_errors_beyond_rho_cost_more():
    """V' <= - s . K s + c with c = 0.3003 a eps for |p - p_0| <= a <= rho; the rest of a has no such bound."""
    claim = {"rate": 4.0, "budget": 300, "levels": False}
    box = testing.Box(0.3, (4.0, 8.0))
    law = robust(rho=1.001 * robust()._distance(gc.Plant(ARM.with_parameters(1.05 * ARM.parameters))))
    c = law.allowance(gc.Plant(ARM))
    assert testing.certify_lyapunov(law, ARM, box, parameters=0.05, offset=1.01 * c, **claim).proved
    assert testing.certify_lyapunov(law, ARM, box, parameters=0.025, offset=0.52 * c, **claim).proved
    assert not testing.certify_lyapunov(law, ARM, box, parameters=0.05, offset=0.97 * c, **claim).proved
    assert not testing.certify_lyapunov(law, ARM, box, parameters=0.1, offset=1.5 * c, **claim).proved


def test_proofs_are_checked_again(tmp_path):
    pytest.importorskip("flint")
    law, claim = robust(TWO), {"parameters": 0.05, "rate": 4.0, "offset": 0.05}
    certificate = testing.certify_lyapunov(law, ARM, BOX, levels=False, **claim)
    assert certificate.proved, certificate
    path = certificate.save(tmp_path / "proof.npz")
    assert "confirmed" in testing.recheck_lyapunov(path, law, ARM, BOX, **claim)
    with pytest.raises(testing.CheckError):
        testing.recheck_lyapunov(path, law, ARM, BOX, parameters=0.05, rate=4.0, offset=0.01)


class Turned(controllers.Robust):
    """A planted error: the correction has the wrong sign."""

    def __call__(self, t, q, v, z):
        full, x = super().__call__(t, q, v, z), self.sliding(t, q, v)
        plain = self.robot.inverse_dynamics(q, v, x.a_ref, x.v_ref) - self.K.dot(x.s)
        return gc.Command(2.0 * plain - full.tau, None, full.signals)


class Stiffer(controllers.Robust):
    """A planted error: V has twice the stiffness of its promised rate."""

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        e = self.error(t, q, v).e
        return gc.Lyapunov(V + e.dot(self.stiffness.dot(e)), rate)


def strict(kind):
    return kind(ARM, MOTION, Lambda=10.0, K=40.0, rho=0.09, eps=0.1, strict=True)


CLAIM = {"parameters": 0.05, "rate": 4.0, "offset": 0.0056}


@pytest.mark.parametrize(
    ("kind", "torque", "changes"),
    [
        (Turned, 0.1, {}),
        (Stiffer, 0.1, {}),
        (controllers.Robust, 2.0, {}),
        (controllers.Robust, 0.1, {"offset": 2e-4}),
        (controllers.Robust, 0.1, {"rate": 30.0}),
    ],
    ids=["correction", "V", "disturbance", "offset", "rate"],
)
def test_false_bounds_are_refuted(kind, torque, changes):
    box = testing.Box(0.3, (4.0, 8.0), disturbance=torque)
    certificate = testing.certify_lyapunov(strict(kind), ARM, box, **{**CLAIM, **changes}, budget=1_000)
    assert certificate.status == "refuted", certificate
    assert certificate.ultimate_bound is None


PANDA = gc.models.panda()
HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


@pytest.mark.slow
def test_motions_of_wrong_pandas_stay_below_the_proved_bound():
    inertia = np.array([1.3, 1.8, 0.45, 0.63, 0.03, 0.03, 0.005])
    pushes = np.array([0.3, 0.3, 0.3, 0.3, 0.05, 0.05, 0.02])
    wave = gc.references.Sinusoids(PANDA, HOME, 0.1, 0.2, np.linspace(0.0, 3.0, 7))
    K = 80.0 * (1.8 / inertia) ** (1.0 / 3.0) * inertia
    heavy = gc.Plant(PANDA.with_parameters(1.05 * PANDA.parameters))
    rho = 1.0001 * controllers.Robust(PANDA, wave, rho=1.0)._distance(heavy)
    law = controllers.Robust(PANDA, wave, Lambda=10.0, K=K, rho=rho, eps=0.1, strict=True)
    box = testing.Box(0.1, [2.2, 0.9, 3.3, 1.5, 3.8, 3.3, 6.0], disturbance=pushes)
    certificate = testing.certify_lyapunov(law, PANDA, box, parameters=0.05, rate=2.0, offset=0.0318)
    assert certificate.region, certificate
    assert certificate.ultimate_bound.max() < 0.025

    class Shaken(gc.Plant):
        def net_torque(self, t, q, v, tau, x):
            return tau + pushes * np.sin(np.array([1.1, 2.3, 3.1, 4.7, 7.9, 11.0, 17.0]) * t)

    rng, start = np.random.default_rng(0), wave(0.0)
    for shares in (1.05, 0.95, 1.0 + 0.05 * rng.choice([-1.0, 1.0], PANDA.parameters.shape)):
        plant = Shaken(PANDA.with_parameters(shares * PANDA.parameters, physical=False))
        run = gc.simulate(plant, law, start.q, start.v, t_end=4.0, dt=2.5e-4, options=gc.SimulationOptions(every=20))
        errors = np.abs([q - wave(t).q for t, q in zip(run.t, run.q)])
        assert (errors <= certificate.ultimate_bound).all()
        assert (errors.max(0) > 0.005 * certificate.ultimate_bound).all()  # the bound is not absurd


@pytest.mark.slow
@pytest.mark.parametrize("Lambda", [10.0, np.array([[10.0, 2.0], [2.0, 6.0]])])
def test_worst_motions_stay_below_the_bound(Lambda):
    law, percent, torque, rng = robust(Lambda=Lambda), 0.05, 0.1, np.random.default_rng(0)
    certificate = testing.certify_lyapunov(law, ARM, BOX, parameters=percent, rate=3.0, offset=0.03)
    assert certificate.region, certificate
    start, largest = certificate.sliding.errors(certificate.level), np.zeros(2)
    for sign in (-1.0, 1.0):
        robot = ARM.with_parameters((1.0 + sign * percent) * ARM.parameters)
        plant, (q, v, _), e = gc.Plant(robot), MOTION(0.0), sign * 0.999 * start
        w = np.linalg.solve(np.linalg.cholesky(robot.mass_matrix(q + e)).T, rng.normal(size=2))
        w *= np.sqrt(0.999 * certificate.level / robot.kinetic_energy(q + e, w))

        def push(t, q, v):
            return torque * np.sign(law.sliding(t, q, v).s)

        states = motion(robot, law, np.append(q + e, v + w - law.Lambda @ e), push, 4.0)
        errors = np.abs([q - MOTION(t).q for t, q, _ in states])
        assert (errors <= start).all()
        for t, q, v in states[::10]:
            assert law.lyapunov(t, q, v, None, plant)[0] <= certificate.level * (1.0 + 1e-9)
        largest = np.maximum(largest, errors[len(errors) // 2 :].max(0))
    assert (largest <= certificate.ultimate_bound).all()
    assert largest.max() > 0.005 * certificate.ultimate_bound.max()  # the bound is not absurd
