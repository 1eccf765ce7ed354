"""`find_lyapunov`: certified sets against simulations, loops for which no V exists, and a loop inside a limit cycle."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import geomctrl as gc
from geomctrl import testing
from geomctrl.errors import ArgumentError
from geomctrl.testing.certificates.candidates import unstable_direction

ROD = gc.inertia.from_com(1.0, (0.0, 0.0, 0.5), np.diag([0.0833, 0.0833, 1e-4]))  # 1 kg, 1 m
PENDULUM = gc.Robot.build([gc.Body("rod", None, gc.Joint.revolute((0, 1, 0)), None, ROD)], name="pendulum")
INERTIA, WEIGHT = 0.0833 + 0.25, 9.81 * 0.5  # kg m^2, N m


class Limited:
    """A PD law that holds the pendulum upright with 60 % of the torque that would hold it level."""

    q_d = np.zeros(1)

    def __call__(self, t, q, v, z):
        return gc.Command(-0.6 * WEIGHT * np.tanh((12.0 * q + 4.0 * v) / (0.6 * WEIGHT)))


class BesideACycle:
    """The van der Pol equation backwards: an unstable limit cycle through (2, 0) bounds the region of attraction."""

    q_d = np.zeros(1)

    def __call__(self, t, q, v, z):
        return gc.Command(PENDULUM.gravity_force(q) - INERTIA * (q + (1.0 - q * q) * v))


def acceleration(law, q, v):
    """By hand: the rod falls away from the upright position."""
    tau = law(0.0, np.array([q]), np.array([v]), None).tau[0]
    return (tau + WEIGHT * np.sin(q)) / INERTIA


def motion(law, x, duration):
    result = solve_ivp(lambda t, y: [y[1], acceleration(law, *y)], (0.0, duration), x, rtol=1e-8, atol=1e-10)
    return result.y


def on_the_border(result, half, count=12):
    """States with V slightly below the level, on rays from the equilibrium."""
    out = []
    for angle in np.linspace(0.0, 2.0 * np.pi, count, endpoint=False):
        ray = np.array([np.cos(angle), np.sin(angle)]) * half
        low, high = 0.0, 1.5
        for _ in range(40):
            r = 0.5 * (low + high)
            inside = result.controller.in_domain(0.0, r * ray[:1], r * ray[1:])
            low, high = (r, high) if inside else (low, r)
        out.append(low * ray)
    return out


@pytest.fixture(scope="module")
def limited():
    half = np.array([0.6, 2.0])
    return Limited(), half, testing.find_lyapunov(Limited(), PENDULUM, tuple(half), budget=100_000)


def test_motions_from_the_border_of_the_certified_set_converge_inside_the_box(limited):
    law, half, result = limited
    assert result.status == "proved"
    for x in on_the_border(result, half):
        y = motion(law, x, 15.0)
        assert (np.abs(y) <= half[:, None]).all()
        assert np.abs(y[:, -1]).max() < 1e-3
        V = [result.controller.value(q[:1], q[1:], PENDULUM) for q in y.T]
        assert np.max(np.diff(V)) < 1e-9


def test_the_certified_set_is_most_of_the_simulated_one(limited):
    law, half, result = limited
    inside = kept = 0
    for x in np.random.default_rng(5).uniform(-half, half, (150, 2)):
        y = motion(law, x, 15.0)
        converges = bool((np.abs(y) <= half[:, None]).all() and np.abs(y[:, -1]).max() < 1e-2)
        certified = result.controller.in_domain(0.0, x[:1], x[1:])
        assert converges or not certified
        inside, kept = inside + converges, kept + certified
    assert kept / inside == pytest.approx(result.share, abs=0.12)
    assert result.share > 0.7


@pytest.mark.slow
def test_the_proof_is_confirmed_and_the_law_keeps_its_v(limited, tmp_path):
    _, half, result = limited
    path = result.certificate.save(tmp_path / "v.npz")
    said = testing.recheck_lyapunov(path, result.controller, PENDULUM, tuple(half), level=result.level, processes=2)
    assert "confirmed" in said
    with pytest.raises(testing.CheckError):
        testing.recheck_lyapunov(path, result.controller, PENDULUM, tuple(half), level=1.02 * result.level)


@pytest.mark.slow
def test_a_set_inside_of_a_limit_cycle_is_proved_and_none_beyond_it():
    half = np.array([3.0, 3.5])
    result = testing.find_lyapunov(BesideACycle(), PENDULUM, tuple(half), degree=4, budget=60_000)
    assert result.status == "proved"
    assert result.share > 0.4
    for x in on_the_border(result, half):
        assert np.abs(motion(BesideACycle(), x, 40.0)[:, -1]).max() < 1e-3
    for x in ([2.3, 0.0], [0.0, 3.0]):  # outside of the cycle
        assert not result.controller.in_domain(0.0, np.array(x[:1]), np.array(x[1:]))


@pytest.mark.parametrize("kp", [0.5 * WEIGHT, 0.99 * WEIGHT, 0.0])
def test_an_unstable_set_point_is_refuted_with_a_direction_along_which_motions_leave(kp):
    class Weak(Limited):
        def __call__(self, t, q, v, z):
            return gc.Command(-kp * q - 1.0 * v)

    result = testing.find_lyapunov(Weak(), PENDULUM, (0.5, 1.0))
    assert result.status == "refuted"
    assert "unstable" in str(result)
    y = np.abs(motion(Weak(), result.counterexample, 300.0))
    assert y.max() > 0.05


def test_a_set_point_that_is_no_equilibrium_is_refuted():
    class Off(Limited):
        def __call__(self, t, q, v, z):
            return gc.Command(-20.0 * (q - 0.01) - 4.0 * v)

    result = testing.find_lyapunov(Off(), PENDULUM, (0.3, 1.0))
    assert result.status == "refuted"
    assert "no equilibrium" in str(result)


def test_a_loop_without_damping_is_undecided():
    class Swing(Limited):
        def __call__(self, t, q, v, z):
            return gc.Command(-20.0 * q)

    result = testing.find_lyapunov(Swing(), PENDULUM, (0.3, 1.0))
    assert result.status == "undecided"
    assert "margin" in str(result)


@pytest.mark.parametrize("seed", range(40))
def test_unstable_matrices_and_only_they_have_an_unstable_direction(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 4))
    A -= np.eye(4) * (np.linalg.eigvals(A).real.max() + rng.choice([0.05, -0.05]))
    direction = unstable_direction(A, A)
    if np.linalg.eigvals(A).real.max() < 0.0:
        assert direction is None
    else:
        assert direction is not None
    assert unstable_direction(A - 10.0, A + 10.0) is None


ARM = gc.models.two_link()
LAWS = {
    "PDGravity": gc.controllers.PDGravity(ARM, [0.0, 0.0], kp=50.0, kd=20.0),
    "Passivity": gc.controllers.Passivity(ARM, gc.references.hold(ARM, [0.0, 0.0]), Lambda=5.0, K=20.0),
}


@pytest.fixture(scope="module", params=["PDGravity", pytest.param("Passivity", marks=pytest.mark.slow)])
def two_link(request):
    half = np.array([0.5, 0.5, 2.0, 4.0])
    law = LAWS[request.param]
    return law, half, testing.find_lyapunov(law, ARM, (half[:2], half[2:]), budget=5_000)


def test_a_two_link_is_proved_on_nine_tenths_of_the_largest_sampled_level_set(two_link):
    """The level set is largest where V touches the box or V' is zero: both by states of the test's own."""
    law, half, result = two_link
    assert result.status == "proved"
    assert result.share >= 0.9 * result.sampled > 0.05
    rng, least = np.random.default_rng(7), np.inf
    for k, end in enumerate(np.repeat(half, 2)):
        for x in rng.uniform(-half, half, (400, 4)):
            x[k // 2] = end if k % 2 else -end
            least = min(least, result.controller.value(x[:2], x[2:], ARM))
    assert result.level <= least  # it is inside the box
    for x in rng.uniform(-half, half, (300, 4)):
        if result.controller.in_domain(0.0, x[:2], x[2:]):
            a = ARM.forward_dynamics(x[:2], x[2:], law(0.0, x[:2], x[2:], None).tau)
            V = [result.controller.value(x[:2] + s * x[2:], x[2:] + s * a, ARM) for s in (-1e-6, 1e-6)]
            assert V[1] < V[0]


@pytest.mark.parametrize("seed", range(3))
def test_motions_of_the_two_link_from_the_certified_set_converge_inside_the_box(two_link, seed):
    law, half, result = two_link
    ray = np.random.default_rng(seed).normal(size=4) * half
    low, high = 0.0, 3.0
    for _ in range(40):
        r = 0.5 * (low + high)
        inside = result.controller.in_domain(0.0, r * ray[:2], r * ray[2:])
        low, high = (r, high) if inside else (low, r)

    def field(t, y):
        return [*y[2:], *ARM.forward_dynamics(y[:2], y[2:], law(t, y[:2], y[2:], None).tau)]

    y = solve_ivp(field, (0.0, 8.0), low * ray, method="LSODA", rtol=1e-7, atol=1e-9).y
    assert (np.abs(y) <= half[:, None]).all()
    assert np.abs(y[:, -1]).max() < 1e-3


@pytest.mark.slow
def test_python_flint_confirms_the_two_link(two_link):
    assert "confirmed" in testing.recheck_lyapunov(two_link[2].certificate)


def test_arguments():
    with pytest.raises(ArgumentError, match="degree"):
        testing.find_lyapunov(Limited(), PENDULUM, (0.5, 1.0), degree=1)
    with pytest.raises(ArgumentError, match="times"):
        testing.find_lyapunov(Limited(), PENDULUM, testing.Box(0.5, 1.0, times=(0.0, 1.0)))
    with pytest.raises(ArgumentError, match="resume"):
        testing.find_lyapunov(Limited(), PENDULUM, (0.5, 1.0), budget=testing.Budget(resume="x.npz"))
