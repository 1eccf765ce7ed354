"""Certificates about moving references: ultimate bounds against closed forms, simulated worst cases, planted errors."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
from arms import AXIS, motion
from studies import robust_bounds

import geomctrl as gc
from geomctrl import controllers, testing
from geomctrl.control.contracts import Desired
from geomctrl.errors import ArgumentError
from geomctrl.testing.certificates.level_sets import largest_errors, least_by_energy
from geomctrl.testing.certificates.request import CertificateRequest
from geomctrl.testing.certificates.sliding import inverse_masses
from geomctrl.testing.certificates.tracking import DESIRED, _independent
from geomctrl.tracing.symbols import Graph

ARM, Sinusoids = gc.models.two_link(), gc.references.Sinusoids
MOTION = Sinusoids(ARM, [0.3, 0.5], [0.4, 0.3], 0.3, [0.0, 0.5])
SWING = Sinusoids(AXIS, [0.0], [0.2], 0.5)


def passivity(reference=MOTION):
    return controllers.Passivity(ARM, reference, Lambda=10.0, K=40.0, strict=True)


def torque(reference=MOTION):
    return controllers.ComputedTorque(ARM, reference, kp=100.0, kd=20.0, strict=True)


KP, KD, MIXED, RATE, FORCE = 100.0, 20.0, 10.0, 4.0, 1.0  # of the axis; MIXED as in ComputedTorque, V' <= - RATE V + c
P = np.array([[KP + MIXED * KD, MIXED], [MIXED, 1.0]])  # V = 1/2 x . P x, x = (e, w)


def smallest_offset(force):
    """The largest V' + RATE V over all x and disturbances, by hand: V' = - x . Q x + b . x d / m."""
    Q = np.diag([MIXED * KP, KD - MIXED]) - 0.5 * RATE * P
    b = np.array([MIXED, 1.0]) * force / 2.0  # m = 2 kg
    return 0.25 * b @ np.linalg.solve(Q, b)


def axis_certificate(offset, force=FORCE):
    law = controllers.ComputedTorque(AXIS, SWING, kp=KP, kd=KD, strict=True)
    box = testing.Box(0.2, 2.0, disturbance=force)
    return testing.certify_lyapunov(law, AXIS, box, rate=RATE, offset=offset)


def test_ultimate_bound_of_a_linear_loop():
    c = smallest_offset(FORCE)
    certificate = axis_certificate(1.02 * c)
    assert certificate.proved, certificate
    assert certificate.ends_in == pytest.approx(1.02 * c / RATE)
    ellipse = np.sqrt(2.0 * certificate.ends_in * np.linalg.inv(P)[0, 0])
    assert ellipse <= certificate.ultimate_bound[0] <= 1.03 * ellipse
    assert certificate.ultimate_bound[0] >= FORCE / (2.0 * KP)  # a constant force displaces the table by so much


def test_smaller_offset_or_larger_disturbance_is_not_proved():
    c = smallest_offset(FORCE)
    assert axis_certificate(0.98 * c).status == "refuted"
    assert axis_certificate(1.02 * c, 1.05 * FORCE).status == "refuted"


def worst_motions(law, certificate, percent, torque, direction):
    """Motions of the lightest and the heaviest arm from V = level, pushed to where V grows most."""
    reference, rng = law.reference, np.random.default_rng(0)
    for scale in (1.0 - percent, 1.0 + percent):
        robot = ARM.with_parameters(ARM.parameters * scale)
        plant, (q, v, _) = gc.Plant(robot), reference(0.0)
        for _ in range(2):
            x = rng.normal(size=4) * [1.0, 1.0, 5.0, 5.0]
            V = law.lyapunov(0.0, q + x[:2], v + x[2:], None, plant)[0]
            x *= np.sqrt(0.99 * certificate.level / V)  # V is quadratic in the velocity, almost in e
            while law.lyapunov(0.0, q + x[:2], v + x[2:], None, plant)[0] > certificate.level:
                x *= 0.98

            def push(t, q, v, robot=robot):
                return torque * np.sign(direction(law, t, q, v, robot))

            yield plant, motion(robot, law, np.append(q + x[:2], v + x[2:]), push, 4.0)


def growth_of_passivity(law, t, q, v, robot):
    return law.sliding(t, q, v).s


def growth_of_torque(law, t, q, v, robot):
    error = law.error(t, q, v)
    return np.linalg.solve(robot.mass_matrix(q), error.w + law.mixed * error.e)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "box", "percent", "disturbance", "claim", "growth"),
    [
        (passivity(), (0.3, (4.0, 8.0)), 0.05, 0.5, {"rate": 4.0, "offset": 0.5}, growth_of_passivity),
        (torque(), (0.2, 2.0), 0.01, 0.1, {"outside": (0.08, 0.8)}, growth_of_torque),
    ],
    ids=["Passivity", "ComputedTorque"],
)
def test_worst_motions_stay_below_the_bound(law, box, percent, disturbance, claim, growth):
    box = testing.Box(*box, disturbance=disturbance)
    certificate = testing.certify_lyapunov(law, ARM, box, parameters=percent, **claim)
    assert certificate.region, certificate
    bound, largest = certificate.ultimate_bound, np.zeros(2)
    for plant, states in worst_motions(law, certificate, percent, disturbance, growth):
        for t, q, v in states[::10]:
            assert law.lyapunov(t, q, v, None, plant)[0] <= certificate.level * (1.0 + 1e-9)
        errors = np.abs([q - law.reference(t).q for t, q, v in states if t > 2.0])
        largest = np.maximum(largest, errors.max(0))
    assert (largest <= bound).all()
    assert largest.max() > 0.02 * bound.max()  # the motions are disturbed, and the bound is not absurd


def test_counterexample_has_a_growing_v():
    """V' at the state, by differences along the equation of motion, exceeds the claim."""
    law, rate, offset, torque, h = passivity(), 4.0, 0.001, 0.5, 1e-6
    box = testing.Box(0.3, 4.0, disturbance=torque)
    certificate = testing.certify_lyapunov(law, ARM, box, rate=rate, offset=offset)
    assert certificate.status == "refuted"
    bad, excesses = certificate.counterexample, []
    for push in ([1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]):
        tau = law(bad.t, bad.q, bad.v, None).tau + torque * np.array(push)
        vdot = ARM.forward_dynamics(bad.q, bad.v, tau)
        steps = [(bad.t + k * h, bad.q + k * h * bad.v, bad.v + k * h * vdot) for k in (-1, 0, 1)]
        V = [law.lyapunov(*step, None, gc.Plant(ARM))[0] for step in steps]
        excesses.append((V[2] - V[0]) / (2.0 * h) + rate * V[1] - offset)
    assert max(excesses) == pytest.approx(bad.excess, rel=1e-3)
    assert bad.excess > 0.0


def test_exact_model_needs_no_ball():
    for law in (passivity(), torque()):
        certificate = testing.certify_lyapunov(law, ARM, (0.3, 2.0), levels=False)
        assert certificate.proved, certificate


class WithoutFeedforward(controllers.ComputedTorque):
    """A planted error: the law omits the acceleration of the reference."""

    def _acceleration(self, error):
        return super()._acceleration(error) - error.a_d


def wrong_velocity(t):
    desired = MOTION(t)
    return Desired(desired.q, 1.1 * desired.v, desired.a)


def test_wrong_velocity_of_the_reference_is_refused():
    for law in (passivity(wrong_velocity), torque(wrong_velocity)):
        with pytest.raises(ArgumentError, match="derivative of its q"):
            testing.certify_lyapunov(law, ARM, (0.3, 2.0), outside=0.1)


def test_omitted_feedforward_is_refuted():
    law = WithoutFeedforward(ARM, MOTION, kp=100.0, kd=20.0, strict=True)
    certificate = testing.certify_lyapunov(law, ARM, (0.3, 2.0), outside=(0.005, 0.02), levels=False, budget=2_000)
    assert certificate.status == "refuted", certificate


def test_times_bound_a_claim_and_branches_in_time_are_refused():
    two = Sinusoids(ARM, [0.3, 0.5], [[0.4, 0.3], [0.1, 0.1]], [[0.3, 0.3], [0.7, 0.7]])
    ramped = Sinusoids(ARM, [0.3, 0.5], [0.4, 0.3], 0.3, start_at_rest=1.0)
    claim = {"parameters": 0.02, "outside": (0.1, 1.0)}
    for reference in (ramped, gc.references.Quintic(ARM, [0.0, 0.0], [1.0, 1.0], 2.0)):  # they have branches
        with pytest.raises(ArgumentError, match="derivative of its q"):
            testing.certify_lyapunov(passivity(reference), ARM, (0.3, 2.0), **claim)
    certificate = testing.certify_lyapunov(passivity(two), ARM, testing.Box(0.3, 2.0, (0.0, 1.0)), **claim)
    assert certificate.proved
    assert certificate.level is None  # nothing is known later
    assert certificate.ultimate_bound is None


def test_claim_covers_one_period():
    certificate = testing.certify_lyapunov(passivity(), ARM, (0.3, 2.0), parameters=0.02, outside=0.2, levels=False)
    first, last = certificate.equations.times
    assert first == 0.0
    assert 1.0 / 0.3 <= last <= 1.0 / 0.3 * (1.0 + 1e-12)


def test_proofs_are_checked_again(tmp_path):
    pytest.importorskip("flint")
    law, box, claim = (
        passivity(),
        testing.Box(0.11, 1.1, disturbance=0.05),
        {"parameters": 0.005, "outside": (0.1, 1.0)},
    )
    certificate = testing.certify_lyapunov(law, ARM, box, levels=False, **claim)
    assert certificate.proved, certificate
    path = certificate.save(tmp_path / "proof.npz")
    assert "confirmed" in testing.recheck_lyapunov(path, law, ARM, box, **claim)
    with pytest.raises(testing.CheckError):
        testing.recheck_lyapunov(path, law, ARM, dataclasses.replace(box, disturbance=30.0), **claim)


@pytest.mark.parametrize("disturbance", [-1.0, [[1.0]], "much", np.nan])
def test_bad_disturbances(disturbance):
    with pytest.raises(ArgumentError, match="disturbance"):
        testing.Box(0.3, 2.0, disturbance=disturbance)


def test_number_of_disturbances():
    with pytest.raises(ArgumentError, match="disturbance"):
        testing.certify_lyapunov(passivity(), ARM, testing.Box(0.3, 2.0, disturbance=[1.0, 1.0, 1.0]), outside=0.1)


def test_v_on_the_boundary_of_the_box_is_above_its_lower_bound():
    """Against V in Python, for robots anywhere in the box, at random times and errors on the boundary."""
    law, count, rng = passivity(), 1_000, np.random.default_rng(0)
    request = CertificateRequest(law, ARM, testing.Box(0.3, (4.0, 8.0)), None, 0.02, 0.0, 1.0, 100)
    e, box = request.e, request.box
    bound = least_by_energy(e, box, request.scale, inverse_masses(e, box, ARM))
    x, p = rng.uniform(box.lo[0], box.hi[0], (count, 4)), rng.uniform(box.p_lo[0], box.p_hi[0], (count, 21))
    side = rng.integers(4, size=count)
    x[np.arange(count), side] = box.hi[0, side] * rng.choice([-1.0, 1.0], count)

    def value(error, row):
        robot = ARM.with_parameters(row[e.robots].reshape(-1, 10), physical=False)
        q, v = MOTION(row[-1])[:2]
        return law.lyapunov(row[-1], q + error[:2], v + error[2:], None, gc.Plant(robot))[0]

    values = [value(*state) for state in zip(x, p)]
    assert bound <= min(values)
    k = int(np.argmin(values))
    lo, hi = box.lo[0].copy(), box.hi[0].copy()
    lo[side[k]] = hi[side[k]] = x[k, side[k]]
    least = scipy.optimize.minimize(value, x[k], (p[k],), bounds=list(zip(lo, hi)), method="L-BFGS-B").fun
    assert bound <= least < 1.5 * bound


class Skewed:
    """A spring that is stiffer on one side: V = m v^2 / 2 + 50 e^2 + c e^3."""

    def __init__(self, c):
        self.c, self.q_d = c, np.zeros(1)

    def __call__(self, t, q, v, z):
        return gc.Command(-100.0 * q - 3.0 * self.c * q * q - 20.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        return plant.robot.kinetic_energy(q, v) + 50.0 * q[0] ** 2 + self.c * q[0] ** 3, -20.0 * v[0] ** 2


@pytest.mark.parametrize("c", [100.0, -100.0])
def test_largest_error_of_a_skewed_v_is_that_of_its_softer_side(c):
    request = CertificateRequest(Skewed(c), AXIS, testing.Box(0.3, 2.0), None, 0.0, 0.0, 0.0, 1000)
    level = 0.5
    (bound,) = largest_errors(request.e, request.scale, request.box, level)
    roots = np.roots([c, 50.0, 0.0, -level])
    largest = np.sort(np.abs(roots.real))[1]  # the third zero is outside of the box
    assert largest > 1.05 * np.abs(roots.real).min()
    assert largest <= bound <= 1.03 * largest


def test_sums_that_depend_on_the_reference_by_rounding_alone_are_kept():
    graph = Graph()
    error, desired = graph.load(0, 0), graph.load(DESIRED, 0)
    cancelling, tiny = (desired + error) - desired, error + 1e-12 * desired
    assert not _independent(graph, [tiny], [desired.index], {})
    assert [x.index for x, _ in _independent(graph, [cancelling], [desired.index], {})] == [cancelling.index]


class Pushed(gc.Plant):
    """Constant torques act on the joints."""

    push = np.zeros(7)

    def net_torque(self, t, q, v, tau, x):
        return tau + self.push


@pytest.mark.slow
def test_the_panda_under_passivity_with_five_percent_in_every_parameter():
    """Simulated robots with heavier and lighter bodies stay within the proved bounds, which are below 35 mrad."""
    robot, reference, push = robust_bounds.PANDA, robust_bounds.WAVE, robust_bounds.PUSHES
    law = controllers.Passivity(robot, reference, Lambda=10.0, K=3.0 * robust_bounds.K, strict=True)
    box = testing.Box(0.1, 1.5 * robust_bounds.SPEEDS, disturbance=push)
    certificate = testing.certify_lyapunov(law, robot, box, budget=20_000, parameters=0.05, rate=2.0, offset=0.2)
    assert certificate.proved, certificate
    bound, rng = certificate.ultimate_bound, np.random.default_rng(0)
    assert (bound < 0.035).all()
    for _ in range(6):
        factors = 1.0 + 0.05 * rng.choice([-1.0, 1.0], (len(robot.parameters), 1))
        plant = Pushed(robot.with_parameters(factors * robot.parameters))
        object.__setattr__(plant, "push", push * rng.choice([-1.0, 1.0], 7))
        q, v, _ = reference(0.0)
        run = gc.simulate(plant, law, q, v, t_end=4.0, dt=1e-3, monitors=[])
        e = np.abs(run.q - [reference(t)[0] for t in run.t])[run.t > 1.0].max(0)
        assert (e < bound).all()
        assert (e > 1e-3 * bound).any()
