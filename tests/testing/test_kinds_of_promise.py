"""Exponential rates, disturbances, passivity, contraction: constants known in closed form, and 5 % beyond them."""

from dataclasses import replace

import numpy as np
import pytest
from linear_loops import KD, KP, MASS, PD, SLIDER, A, P, Untraceable, sliders
from scipy.linalg import eigh

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.testing import Counterexample
from geomctrl.testing.contraction import contraction_at
from geomctrl.testing.passivity import rates_at

RATE = float(eigh(-0.5 * (A.T @ P + P @ A), P, eigvals_only=True)[0])  # x . P x falls like exp(-2 RATE t)
LAWS = pytest.mark.parametrize("law", [PD(), Untraceable()], ids=["traced", "differences"])


def reproduced(error, **known):
    """Run the code that an assertion prints, and return its result."""
    printed = []
    exec(error.paste.replace("print(", "printed.append("), {"printed": printed, **known})
    return printed[-1]


# --- exponential -------------------------------------------------------------------------------------------------


@LAWS
def test_the_exponential_rate_of_a_linear_loop(law):
    assert testing.exponential_rate(law, SLIDER) == pytest.approx(RATE, rel=1e-3)
    testing.assert_exponential(law, SLIDER, 0.95 * RATE)
    with pytest.raises(Counterexample, match=r"V' <= -2 rate V does not hold") as caught:
        testing.assert_exponential(law, SLIDER, 1.05 * RATE)
    result = reproduced(caught.value, controller=law, plant=gc.Plant(SLIDER))
    assert result.actual > -2.1 * RATE * result.value


def test_a_run_is_watched_where_the_search_does_not_look():
    """V falls as claimed except at one moment."""

    class Kicked(PD):
        def __call__(self, t, q, v, z):
            return gc.Command(-self.kp * q - self.kd * v + np.where(np.abs(t - 0.2) < 0.05, 40.0, 0.0) * np.ones(1))

    domain = {"t": (0.5, 1.0)}
    with pytest.raises(Counterexample, match=r"V\(t\) = .* exp\(-2 rate t\).* the run started") as caught:
        testing.assert_exponential(Kicked(), SLIDER, 0.9 * RATE, region=testing.Region(domain=domain))
    assert caught.value.source == "simulated"
    testing.assert_exponential(Kicked(), SLIDER, 0.9 * RATE, region=testing.Region(domain=domain), runs=0)


def test_a_semidefinite_rate_is_no_exponential_one():
    energy = PD(np.diag([KP, MASS]))
    assert abs(testing.exponential_rate(energy, SLIDER)) < 1e-3
    with pytest.raises(Counterexample):
        testing.assert_exponential(energy, SLIDER, 0.01)


# --- disturbances --------------------------------------------------------------------------------------------------


class Sliding(PD):
    """V = 1/2 m s^2, s = v + 2 q, V' = -kd s^2: P of rank one."""

    def __init__(self, share_of_rate=1.0):
        super().__init__(MASS * np.outer([2.0, 1.0], [2.0, 1.0]))
        self.share_of_rate = share_of_rate

    def __call__(self, t, q, v, z):
        return gc.Command(-2.0 * MASS * v - KD * (v + 2.0 * q))

    def lyapunov(self, t, q, v, z, plant):
        s = v + 2.0 * q
        return gc.Lyapunov(0.5 * MASS * s.dot(s), -self.share_of_rate * KD * s.dot(s))


@pytest.mark.quick(1)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_gain_of_a_sliding_law(share):
    """-kd s^2 + s d <= -share kd s^2 + d^2 / (4 (1 - share) kd), with equality somewhere."""
    gain = 1.0 / (4.0 * (1.0 - share) * KD)
    result = testing.input_to_state_gain(Sliding(), SLIDER, share=share)
    assert result.gain == pytest.approx(gain, rel=1e-3)
    assert result.decay == pytest.approx(2.0 * share * KD / MASS, rel=1e-6)
    assert result.bound(3.0) == pytest.approx(9.0 * gain / (2.0 * share * KD / MASS), rel=2e-3)
    options = {"share": share, "port": testing.Port(largest=5.0), "runs": testing.Runs(1, duration=0.2)}
    testing.assert_input_to_state_stable(Sliding(), SLIDER, 1.001 * gain, **options)
    testing.assert_input_to_state_stable(Sliding(), SLIDER, lambda d: 1.001 * gain * d**2, **options)
    with pytest.raises(Counterexample, match=r"gamma\(\|d\|\) does not hold.* with d = \[") as caught:
        testing.assert_input_to_state_stable(Sliding(), SLIDER, 0.95 * gain, **options)
    result = reproduced(caught.value, controller=Sliding(), plant=gc.Plant(SLIDER))
    s = caught.value.state.v + 2.0 * caught.value.state.q
    np.testing.assert_allclose(result.push, s, atol=1e-9)


def test_the_ultimate_bound_is_watched_along_runs():
    """If the search is elsewhere, a larger disturbance along the run is still detected."""

    class Windy(Sliding):
        def __call__(self, t, q, v, z):
            return gc.Command(super().__call__(t, q, v, z).tau + np.where(t < 1.0, 20.0, 0.0))

    gain, domain = 1.0 / (2.0 * KD), {"t": (2.0, 3.0)}
    options = {"region": testing.Region(domain=domain)}
    testing.assert_input_to_state_stable(Windy(), SLIDER, 1.01 * gain, runs=0, **options)
    with pytest.raises(Counterexample, match=r"with a constant d V = .*the run started"):
        testing.assert_input_to_state_stable(Windy(), SLIDER, 1.01 * gain, **options)
    testing.assert_input_to_state_stable(Sliding(), SLIDER, 1.01 * gain, **options)


@pytest.mark.slow
def test_disturbances_of_the_bundled_law():
    """-s . K s + s . d: the least eigenvalue of K counts."""
    robot = models.two_link()
    law = controllers.Passivity(robot, Sinusoids(robot, np.zeros(2), 0.3, 0.4), 5.0, [20.0, 4.0])
    result = testing.input_to_state_gain(law, robot, search=2000)
    assert result.gain == pytest.approx(1.0 / (2.0 * 4.0), rel=1e-2)
    testing.assert_input_to_state_stable(law, robot, 1.0 / 8.0 + 1e-6, search=1000, runs=testing.Runs(1, duration=0.2))
    with pytest.raises(Counterexample):
        testing.assert_input_to_state_stable(law, robot, 0.95 / 8.0, search=2000, runs=0)


# --- passivity -----------------------------------------------------------------------------------------------------

ENERGY = PD(np.diag([KP, MASS]))


def test_the_passivity_index_of_a_damped_mass():
    """S' = u . v - kd v^2: an excess of kd at the output, none at the input."""
    result = testing.passivity_index(ENERGY, SLIDER)
    assert result.rho == pytest.approx(KD, rel=1e-6)
    assert result.nu == pytest.approx(0.0, abs=1e-6)
    testing.assert_passive_port(ENERGY, SLIDER, rho=0.95 * KD)
    with pytest.raises(Counterexample, match="not passive: dS/dt = ") as caught:
        testing.assert_passive_port(ENERGY, SLIDER, rho=1.05 * KD)
    rates = reproduced(caught.value, controller=ENERGY, plant=gc.Plant(SLIDER))
    assert rates.slope > -1.05 * KD * rates.output @ rates.output


def test_an_output_that_is_measured_wrongly_lacks_passivity_at_the_input():
    """y = (1 + a) v: S' - u y = -kd v^2 - a v u, at worst a^2 u^2 / (4 kd)."""
    a = 0.2
    options = {"port": testing.Port(output=lambda t, q, v, z: (1.0 + a) * v)}
    nu = -(a**2) / (4.0 * KD)
    assert testing.passivity_index(ENERGY, SLIDER, **options).nu == pytest.approx(nu, rel=1e-6)
    testing.assert_passive_port(ENERGY, SLIDER, nu=1.05 * nu, **options)
    with pytest.raises(Counterexample, match="not passive"):
        testing.assert_passive_port(ENERGY, SLIDER, nu=0.95 * nu, **options)


def test_an_output_that_is_not_collocated_has_no_index():
    """y = v + a q: S' - u y = - a q u at rest, for arbitrarily small u."""
    port = testing.Port(largest=1e-3, output=lambda t, q, v, z: v + 0.3 * q)
    assert testing.passivity_index(ENERGY, SLIDER, port=replace(port, largest=1.0)).nu == -np.inf
    with pytest.raises(Counterexample, match="not passive"):
        testing.assert_passive_port(ENERGY, SLIDER, nu=-10.0, port=port, rtol=1e-12)


@LAWS
def test_damping_that_is_negative_lacks_passivity_at_the_output(law):
    law = type(law)(np.diag([KP, MASS]), kd=-3.0)
    assert testing.passivity_index(law, SLIDER, search=1000).rho == pytest.approx(-3.0, rel=1e-6)
    testing.assert_passive_port(law, SLIDER, rho=-3.15, search=500)
    with pytest.raises(Counterexample):
        testing.assert_passive_port(law, SLIDER, rho=-2.85, search=500)


def test_a_plant_by_itself_is_passive_with_its_energy():
    robot = models.two_link()

    def energy(t, q, v, z, plant):
        return plant.robot.energy(q, v)

    options = {"storage": energy, "region": testing.Region(equilibrium=np.zeros(2)), "search": 1000}
    testing.assert_passive_port(None, robot, **options)
    testing.assert_passive_port(None, gc.Plant(robot, gc.Friction(viscous=0.4)), rho=0.39, **options)
    with pytest.raises(Counterexample):
        testing.assert_passive_port(None, gc.Plant(robot, gc.Friction(viscous=0.4)), rho=0.41, **options)
    with pytest.raises(Counterexample):
        testing.assert_passive_port(None, robot, port=testing.Port(output=lambda t, q, v, z: 1.01 * v), **options)


@pytest.mark.quick(1)
@pytest.mark.parametrize("port", ["joints", "tool0"])
def test_an_arm_held_by_pd_and_gravity_is_passive_at_its_hand(port):
    robot = models.ur10()
    law = controllers.PDGravity(robot, np.full(6, 0.3))
    testing.assert_passive_port(law, robot, port=port, search=600)
    wrong = controllers.PDGravity(robot.with_payload(3.0, (0.0, 0.0, 0.1)), np.full(6, 0.3))
    with pytest.raises(Counterexample, match="not passive"):
        testing.assert_passive_port(wrong, robot, port=port, search=600)


def test_what_inputs_at_a_port_do_is_what_the_dynamics_say():
    """d(dS/dt)/du = B^T v for the energy S, by forward dynamics with a wrench on the hand's body."""
    robot = models.ur10()
    law = controllers.PDGravity(robot, np.full(6, 0.3))
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 6))
    frame = "tool0"
    result = rates_at(law, robot, 0.2, q, v, port=frame)
    assert np.abs(result.output).max() > 0.1
    np.testing.assert_allclose(result.output, robot.jacobian(q, frame) @ v, atol=1e-12)
    np.testing.assert_allclose(result.push, result.output, atol=1e-9)
    assert result.slope == pytest.approx(-v @ law.kd @ v, rel=1e-9)
    assert result.promised == pytest.approx(-v @ law.kd @ v, rel=1e-12)


def hybrid_force(robot, q):
    """Joint torques of a force at the hand in the world's axes."""
    return robot.jacobian(q, "tool0", "hybrid")[3:].T


@pytest.mark.slow
def test_a_port_may_be_a_force_alone():
    """The output of a force is the hand's velocity in the world's axes, by differences; joint torques are not of
    this port.
    """
    robot = models.ur10()
    law = controllers.PDGravity(robot, np.full(6, 0.3))
    q, v = np.random.default_rng(1).normal(size=(2, 6))
    result, h = rates_at(law, robot, 0.2, q, v, port=hybrid_force), 1e-6
    ends = [robot.pose(robot.integrate(q, s * h * v), "tool0")[:3, 3] for s in (1, -1)]
    np.testing.assert_allclose(result.output, (ends[0] - ends[1]) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(result.push, result.output, atol=1e-9)
    testing.assert_passive_port(law, robot, port=hybrid_force, search=200)
    wrong = controllers.PDGravity(robot.with_payload(3.0, (0.0, 0.0, 0.1)), np.full(6, 0.3))
    with pytest.raises(Counterexample, match="not passive"):
        testing.assert_passive_port(wrong, robot, port=hybrid_force, search=200)


# --- contraction ---------------------------------------------------------------------------------------------------


@LAWS
def test_the_contraction_rate_of_a_linear_loop(law):
    assert testing.contraction_rate(law, SLIDER, P, search=300) == pytest.approx(RATE, rel=1e-6)
    assert contraction_at(law, SLIDER, P, 0.3, [0.1], [0.2]) == pytest.approx(-RATE, rel=1e-6)
    testing.assert_contracting(law, SLIDER, P, 0.95 * RATE, search=300)
    with pytest.raises(Counterexample, match="not contracting") as caught:
        testing.assert_contracting(law, SLIDER, P, 1.05 * RATE, search=300)
    assert reproduced(caught.value, controller=law, plant=gc.Plant(SLIDER), metric=P) == pytest.approx(-RATE, rel=1e-6)


def test_a_metric_that_moves():
    """P e^{2 a t} contracts more slowly by a: P' is included."""
    metric = lambda t, q, v, z: np.exp(2.0 * 0.5 * t) * P  # noqa: E731
    assert testing.contraction_rate(PD(), SLIDER, metric, search=300) == pytest.approx(RATE - 0.5, rel=1e-6)
    coupled = lambda t, q, v, z: np.exp(0.2 * q[0]) * P  # noqa: E731 - P' = 0.2 v P
    reach = {"v": (-1.5, 1.5)}
    result = testing.contraction_rate(PD(), SLIDER, coupled, search=2000, region=testing.Region(domain=reach))
    assert result == pytest.approx(RATE - 0.5 * 0.2 * 1.5, rel=1e-4)


def pendulum():
    """A point mass on an arm of 0.5 m, hanging along x."""
    mass = gc.inertia.from_com(1.0, [0.5, 0.0, 0.0], 1e-9 * np.eye(3))
    from geomctrl.mechanism.building import Body
    from geomctrl.mechanism.joint import Joint

    arm = Body("arm", None, Joint.revolute([0.0, 0.0, 1.0], [0.0, 0.0, 0.0], name="pivot"), np.eye(4), mass)
    return gc.Robot.build([arm], gravity=(9.81, 0.0, 0.0), name="pendulum")


class Damped:
    """A pendulum with a spring and a damper: q'' = -(g / l) sin q - 30 q - 9 q'."""

    q_d = np.zeros(1)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-0.25 * (30.0 * q + 9.0 * v))


def test_the_contraction_rate_of_a_pendulum_is_that_of_its_worst_angle():
    P = np.array([[40.0, 3.0], [3.0, 1.0]])

    def growth(q):
        J = np.array([[0.0, 1.0], [-9.81 / 0.5 * np.cos(q) - 30.0, -9.0]])
        return float(eigh(0.5 * (P @ J + J.T @ P), P, eigvals_only=True)[-1])

    rate = -max(map(growth, np.linspace(-1.5, 1.5, 3001)))
    domain, robot = {"q": (-1.5, 1.5)}, pendulum()
    assert testing.contraction_rate(Damped(), robot, P, region=testing.Region(domain=domain)) == pytest.approx(
        rate, rel=1e-4
    )
    testing.assert_contracting(Damped(), robot, P, rate - 0.05 * abs(rate), region=testing.Region(domain=domain))
    with pytest.raises(Counterexample):
        testing.assert_contracting(Damped(), robot, P, rate + 0.05 * abs(rate), region=testing.Region(domain=domain))


HELD = controllers.PDGravity(models.three_spheres(), models.three_spheres().neutral())

# --- arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: testing.assert_exponential(PD(), SLIDER, -1.0), "rate: expected a positive number"),
        (lambda: testing.assert_exponential(Damped(), SLIDER, 1.0), "controller: expected one with lyapunov"),
        (lambda: testing.assert_input_to_state_stable(PD(), SLIDER, -1.0), "gain: expected a number >= 0"),
        (lambda: testing.assert_input_to_state_stable(PD(), SLIDER, lambda d: -d), r"gain: expected a function of \|d"),
        (lambda: testing.assert_input_to_state_stable(PD(), SLIDER, 1.0, share=2.0), "share: expected a number from 0"),
        (
            lambda: testing.assert_input_to_state_stable(PD(), SLIDER, 1.0, port=testing.Port(largest=0.0)),
            "largest: expected",
        ),
        (lambda: testing.assert_passive_port(None, SLIDER), "controller: without one, expected a storage"),
        (lambda: testing.assert_passive_port(ENERGY, SLIDER, port="hand"), "port: expected 'joints', a frame"),
        (lambda: testing.assert_passive_port(ENERGY, SLIDER, port="world"), "port: 'world' is fixed to the world"),
        (lambda: testing.assert_passive_port(ENERGY, SLIDER, port=np.eye(2)), "port: expected 'joints', a frame"),
        (lambda: testing.assert_passive_port(ENERGY, SLIDER, port=lambda robot, q: q), "or a function \\(robot, q\\)"),
        (lambda: testing.assert_passive_port(ENERGY, SLIDER, storage=3), "storage: expected a function"),
        (lambda: testing.assert_contracting(PD(), SLIDER, np.eye(3), 1.0), "metric: expected shape"),
        (
            lambda: testing.assert_contracting(PD(), SLIDER, -np.eye(2), 1.0),
            "metric: expected a positive definite array",
        ),
        (lambda: testing.assert_contracting(PD(), SLIDER, [[1, 1], [0, 1]], 1.0), "metric: expected a symmetric"),
        (lambda: testing.assert_contracting(HELD, models.three_spheres(), np.eye(2), 1.0), "contraction is in coord"),
        (
            lambda: testing.assert_exponential(PD(), SLIDER, 1.0, region=testing.Region(domain={"q": (1.0, 0.0)})),
            "domain: expected",
        ),
    ],
)
def test_arguments_are_named(call, message):
    with pytest.raises((ArgumentError, NameNotFoundError), match=message):
        call()


def test_several_joints_push_together():
    assert testing.input_to_state_gain(PD(np.diag([KP, MASS]), n=2), sliders(2)).gain == pytest.approx(
        1.0 / (2.0 * KD), rel=1e-3
    )


class Weighted:
    """A factor of which numpy's numbers compute another product than symbols."""

    def __array_ufunc__(self, ufunc, method, *args, **_):
        return 7.0 * next(x for x in args if x is not self)

    def __rmul__(self, x):
        return 2.0 * x


WEIGHTED, ARM = Weighted(), models.two_link()


class Differs(controllers.PDGravity):
    """A law whose trace differs from Python; `value`: so does its V, otherwise its torques do."""

    def __init__(self, value):
        super().__init__(ARM, [0.0, 0.0], kp=30.0, kd=20.0)
        self.value = value

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command if self.value else gc.Command(command.tau - np.array([q[0] * WEIGHTED, 0.0]))

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return (V + 0.1 * (q[0] * WEIGHTED) * q[0], rate) if self.value else (V, rate)


class Same(Differs):
    """The same law for numbers."""

    def __call__(self, t, q, v, z):
        command = controllers.PDGravity.__call__(self, t, q, v, z)
        return command if self.value else gc.Command(command.tau - np.array([7.0 * q[0], 0.0]))

    def lyapunov(self, t, q, v, z, plant):
        V, rate = controllers.PDGravity.lyapunov(self, t, q, v, z, plant)
        return (V + 0.7 * q[0] ** 2, rate) if self.value else (V, rate)


METRIC = np.kron([[5.0, 2.0], [2.0, 2.0]], np.eye(2))
SEARCHES = {
    "contraction": (lambda law: testing.contraction_rate(law, ARM, METRIC, search=40), False),
    "exponential, torques": (lambda law: testing.exponential_rate(law, ARM, search=40), False),
    "exponential, V": (lambda law: testing.exponential_rate(law, ARM, search=40), True),
    "port": (lambda law: testing.passivity_index(law, ARM, search=40).rho, False),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_trace_that_differs_from_python_is_not_used(name):
    search, value = SEARCHES[name]
    with pytest.warns(RuntimeWarning, match="Differs: the traced loop differs from Python at t = "):
        found = search(Differs(value))
    assert found == pytest.approx(search(Same(value)), rel=1e-4, abs=1e-6)
