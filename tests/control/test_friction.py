"""Friction models: the contract, closed forms, passivity, and the order of the integrator."""

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.linalg
from friction_checks import ARM, Q0, V0, Wave, check_model, last
from simulation_options import IN_PYTHON

import geomctrl as gc
from geomctrl import ArgumentError, Body, Joint, Robot, controllers, identification, measures
from geomctrl.control.friction import Dahl, FrictionModel, LoadDependent, LuGre, Stribeck
from geomctrl.control.friction.combined import CombinedFriction
from geomctrl.identification.model.friction_curves import _torques
from geomctrl.mechanism import inertia


def per_joint(*x):
    return lambda n: np.resize(x, n)


STATIC, COULOMB, SPEED = per_joint(0.9, 0.6), per_joint(0.5, 0.4), per_joint(0.1, 0.2)
MAKES = {
    "Friction": lambda n: gc.Friction(0.2, COULOMB(n), 0.2),
    "Stribeck": lambda n: Stribeck(COULOMB(n), STATIC(n), SPEED(n), 0.3, 0.2),
    "LoadDependent": lambda n: LoadDependent(per_joint(0.1, 0.2)(n), 0.2),
    "LuGre": lambda n: LuGre(per_joint(200.0, 150.0)(n), COULOMB(n), STATIC(n), SPEED(n), 0.5, 0.6),
    "Dahl": lambda n: Dahl(per_joint(60.0, 90.0)(n), COULOMB(n)),
    "combined": lambda n: CombinedFriction([gc.Friction(0.2), Dahl(60.0, COULOMB(n)), LoadDependent(0.05, 0.2)], n),
}


class Held:
    """A law that returns a constant torque."""

    def __init__(self, *tau):
        self.tau = np.array(tau)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.tau)


def slider(mass=2.0):
    body = Body("cart", None, Joint.prismatic((1, 0, 0), name="x"), None, inertia.from_com(mass, (0, 0, 0), np.eye(3)))
    return Robot.build([body])


# --- every model -----------------------------------------------------------------------------------------------------


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", MAKES)
def test_a_model_works_wherever_friction_does(name):
    check_model(MAKES[name])


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", MAKES)
def test_friction_dissipates_along_random_motions(name):
    """The energy taken from the joints is at least the stored energy, along prescribed motions."""
    model, rng = MAKES[name](2), np.random.default_rng(5)
    x, taken, h = model.start(np.zeros(2)), 0.0, 1e-4
    amplitudes, rates, phases = rng.normal(size=(3, 6, 2))
    for k in range(20_000):
        v = (amplitudes * np.cos(8.0 * rates * (k * h) + phases)).sum(axis=0)
        load = 3.0 * np.sin(v + k * h)
        assert model.dissipation(v, load, x) >= -1e-12
        taken += h * model.power(v, load, x)
        if x is not None:
            middle = x + 0.5 * h * model.state_rate(v, load, x)
            x = x + h * model.state_rate(v, load, middle)
            assert taken >= model.stored_energy(x) - 2e-3  # error of the rectangle rule
    assert taken > 0.0


class Maxwell(FrictionModel):
    """A spring and a damper in series at each joint, the spring's deflection as the state."""

    def __init__(self, stiffness, damping):
        self.stiffness, self.damping = stiffness, damping

    def start(self, v):
        return 0.0 * v

    def torque(self, v, load, x):
        return self.stiffness * x

    def state_rate(self, v, load, x):
        return v - self.stiffness / self.damping * x

    def stored_energy(self, x):
        return 0.5 * self.stiffness * (x * x).sum()

    def dissipation(self, v, load, x):
        return (self.stiffness * x) @ (self.stiffness * x) / self.damping


def test_a_model_of_a_user_works_wherever_friction_does():
    check_model(lambda n: Maxwell(30.0, 2.0))


def test_a_cart_behind_a_maxwell_element_moves_as_the_matrix_exponential_says():
    mass, stiffness, damping = 2.0, 30.0, 2.0
    rates = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -stiffness / mass], [0.0, 1.0, -stiffness / damping]])  # of q, v, x
    for compiled in (False, True):
        plant = gc.Plant(slider(mass), Maxwell(stiffness, damping))
        run = gc.simulate(plant, Held(0.0), [0.0], [1.0], 0.5, 1e-3, options=gc.SimulationOptions(compiled=compiled))
        end = scipy.linalg.expm(0.5 * rates) @ [0.0, 1.0, 0.0]
        np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0], run.x[-1, 0]], end, rtol=1e-8)


def test_a_sweep_over_the_parameters_of_friction_measures_what_single_runs_do():
    def case(point):
        return gc.Plant(ARM, LuGre(point["stiffness"], 0.5, 0.9, 0.2, 0.5, point["viscous"])), Wave(), Q0, V0

    space = {"stiffness": [50.0, 150.0], "viscous": [0.5, 1.5]}
    table = gc.sweep(case, space, [measures.PeakTorque(), last], 0.2, 5e-4)
    points = [dict(zip(space, values)) for values in product(*space.values())]
    ends = np.array([gc.simulate(*case(point), 0.2, 5e-4, options=IN_PYTHON).q[-1] for point in points])
    np.testing.assert_allclose(table.last.values.reshape(4, 2), ends, rtol=0.0, atol=1e-10)
    assert all(np.abs(a - b).max() > 1e-5 for a, b in pairwise(ends))


def test_a_list_is_the_sum_of_its_models():
    parts = [gc.Friction(0.2, 0.1, 0.3), Dahl(60.0, 0.4), LoadDependent(0.1, 0.2)]
    both, v, load, x = CombinedFriction(parts, 2), np.array([0.4, -0.3]), np.array([2.0, -1.0]), np.array([3e-3, 1e-3])
    expected = parts[0].torque(v) + parts[1].torque(v, load, x) + parts[2].torque(v, load)
    np.testing.assert_allclose(both.torque(v, load, x), expected, rtol=1e-15)
    plant = gc.Plant(ARM, parts)
    assert isinstance(plant.friction, CombinedFriction)
    assert plant._state_at_start(Q0, V0).shape == (2,)
    assert not both.is_linear
    assert CombinedFriction(parts[::2], 2).is_linear


# --- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("v", [-0.7, -0.05, 0.02, 0.11, 1.3])
def test_lugre_follows_stribecks_curve_at_constant_speed(v):
    """With z' = 0: z = g(v) sign(v) / stiffness, torque = g(v) sign(v) + viscous v."""
    model, x, h = LuGre(300.0, 0.5, 0.9, 0.1, 0.7, 0.4), np.zeros(1), 1e-4
    speed = np.array([v])
    for _ in range(int(40.0 * 0.9 / (300.0 * abs(v)) / h)):  # 40 time constants or more
        middle = x + 0.5 * h * model.state_rate(speed, None, x)
        x = x + h * model.state_rate(speed, None, middle)
    curve = 0.5 + 0.4 * np.exp(-((v / 0.1) ** 2))
    np.testing.assert_allclose(model.torque(speed, None, x), curve * np.sign(v) + 0.4 * v, rtol=1e-9)
    sharp = Stribeck(0.5, 0.9, 0.1, 0.4, smoothing=1e-6)
    np.testing.assert_allclose(model.torque(speed, None, x), sharp.torque(speed), rtol=1e-9)


def test_dahls_hysteresis_loop_is_exponential():
    """For oscillation of amplitude A the tips of the hysteresis loop are at F = coulomb tanh(stiffness A / coulomb)."""
    stiffness, coulomb, A = 50.0, 0.8, 0.03
    model, x, h = Dahl(stiffness, coulomb), np.zeros(1), 1e-3
    position, torque, t = [], [], 0.0

    def rate(t, x):
        return model.state_rate(np.array([A * np.cos(t)]), None, x)

    for _ in range(int(8.0 * np.pi / h)):
        k1 = rate(t, x)
        k2 = rate(t + 0.5 * h, x + 0.5 * h * k1)
        k3 = rate(t + 0.5 * h, x + 0.5 * h * k2)
        x = x + h / 6.0 * (k1 + 2.0 * (k2 + k3) + rate(t + h, x + h * k3))
        t += h
        position.append(A * np.sin(t))
        torque.append(model.torque(np.array([A * np.cos(t)]), None, x)[0])
    last = slice(-int(2.0 * np.pi / h), None)
    q, F = np.array(position)[last], np.array(torque)[last]
    tip = coulomb * np.tanh(stiffness * A / coulomb)
    assert abs(F.max() - tip) < 1e-6 * tip
    forward = np.gradient(q) > 1e-9
    up = coulomb - (coulomb + tip) * np.exp(-stiffness * (q + A) / coulomb)
    down = -coulomb + (coulomb + tip) * np.exp(stiffness * (q - A) / coulomb)
    np.testing.assert_allclose(F[forward], up[forward], atol=1e-6)
    np.testing.assert_allclose(F[~forward], down[~forward], atol=1e-5)


def test_load_dependent_friction_takes_a_share_of_the_torque():
    """A cart under a constant force f accelerates at (1 - mu) f / m."""
    plant = gc.Plant(slider(2.0), LoadDependent(0.3, smoothing=1e-3))
    run = gc.simulate(plant, Held(5.0), [0.0], [1.0], 0.4, 1e-3)
    np.testing.assert_allclose(run.v[:, 0], 1.0 + 0.7 * 5.0 / 2.0 * run.t, rtol=1e-10)


def test_sticking_bristles_carry_a_force_below_static_friction():
    """At rest under a force f < coulomb, Dahl's deflection settles where stiffness z = f; the cart hardly moves."""
    plant = gc.Plant(slider(2.0), [Dahl(500.0, 4.0), gc.Friction(200.0)])
    run = gc.simulate(plant, Held(2.0), [0.0], [0.0], 8.0, 1e-3)
    assert abs(500.0 * run.x[-1, 0] - 2.0) < 1e-4
    assert abs(run.v[-1, 0]) < 1e-4
    expected = 4.0 / 500.0 * np.log(2.0)  # F = coulomb (1 - exp(-stiffness q / coulomb)) = coulomb / 2
    assert abs(run.q[-1, 0] - expected) < 0.02 * expected


@pytest.mark.parametrize("name", MAKES)
def test_the_order_of_the_integrator_is_kept_where_friction_is_smooth(name):
    """For joints that do not reverse, halving the step divides the error by 16."""
    plant, ends = gc.Plant(ARM, MAKES[name](2)), []
    law = Held(*np.add(ARM.gravity_force([0.1, 0.2]), (1.5, 0.8)))
    for n in (50, 100, 200):
        run = gc.simulate(plant, law, [0.1, 0.2], [1.0, 0.8], 0.1, 0.1 / n, monitors=None, options=IN_PYTHON)
        assert (run.v > 0.4).all()
        ends.append(run.q[-1])
    first, second = (np.abs(a - b).max() for a, b in pairwise(ends))
    assert 3.8 < np.log2(first / second) < 4.4


# --- identification --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_output_error_finds_the_parameters_of_lugre():
    """The state is simulated along the measured velocities; torques have noise of a tenth of a percent."""
    true, rng = [120.0, 0.5, 0.9, 0.15, 0.8, 0.4], np.random.default_rng(2)
    t = np.arange(0.0, 1.6, 2e-3)
    v = (0.25 * np.sin(2.0 * t) + 0.1 * np.cos(7.0 * t))[:, None]
    torque = _torques(LuGre(*true), t, v, 0.0 * v)
    noisy = torque + 1e-3 * np.abs(torque).max() * rng.normal(size=torque.shape)
    start = [60.0, 0.8, 1.0, 0.1, 0.4, 0.2]
    fit = identification.fit_friction(lambda x: LuGre(*x), start, t, v, noisy)
    np.testing.assert_allclose(fit.x, true, rtol=0.03)
    assert np.sqrt(np.mean((_torques(fit.model, t, v, 0.0 * v) - torque) ** 2)) < 3e-4


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stribeck(0.5, 0.4, 0.1), "static: expected static friction of at least coulomb"),
        (lambda: Stribeck(0.5, [0.6, 0.7], [0.1, 0.2, 0.3]).check(2), r"friction: speed: .*\(2,\).*\(3,\)"),
        (lambda: LuGre(0.0, 0.5, 0.9, 0.1), "stiffness: expected a positive stiffness"),
        (lambda: Dahl(1.0, -1.0), "coulomb: expected a friction torque > 0"),
        (lambda: LoadDependent(-0.1), "coefficient: expected a friction coefficient >= 0"),
        (lambda: gc.Plant(ARM, [gc.Friction(), "model"]), "friction: expected a geomctrl.Friction or another"),
        (lambda: gc.Plant(ARM, []), "friction: expected a geomctrl.Friction or another"),
        (lambda: Dahl(1.0, 1.0).parameters(2), "Dahl is not linear in its parameters"),
        (lambda: gc.Plant(ARM, Dahl(1.0, 1.0)).friction_parameters, "Dahl is not linear in its parameters"),
        (
            lambda: controllers.ComputedTorque(ARM, lambda t: None, friction=Dahl(1.0, 1.0)),
            "friction: expected a model without a state",
        ),
        (
            lambda: controllers.SlotineLi(ARM, lambda t: None, friction=LoadDependent(0.1)),
            "friction: expected a model that does not depend on the load",
        ),
        (
            lambda: gc.testing.assert_lyapunov(controllers.PDGravity(ARM, Q0), gc.Plant(ARM, Dahl(1.0, 1.0))),
            r"got one with \(Dahl\)",
        ),
    ],
)
def test_bad_friction_is_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"torque": lambda self, v, load, x: 0.0},
            r"friction: Own.torque\(v, load, x\): expected shape \(2,\), got \(\)",
        ),
        (
            {
                "torque": lambda self, v, load, x: 0.0 * v,
                "start": lambda self, v: np.zeros(3),
                "state_rate": lambda self, v, load, x: v,
            },
            r"friction: Own.state_rate\(v, load, x\): expected shape \(3,\), got \(2,\)",
        ),
        (
            {
                "torque": lambda self, v, load, x: 0.0 * v,
                "start": lambda self, v: np.zeros((1, 2)),
                "state_rate": lambda self, v, load, x: v,
            },
            r"friction: Own.start\(v\): expected a vector",
        ),
        ({"torque": lambda self, v: v}, r"Own: torque: expected it to take \(self, v, load, x\), got \(self, v\)"),
    ],
)
def test_methods_that_break_the_contract_are_refused(methods, message):
    with pytest.raises(ArgumentError, match=message):
        gc.Plant(ARM, type("Own", (FrictionModel,), methods)())


def test_methods_that_belong_together_are_overridden_together():
    for one, other in (("start", "state_rate"), ("stored_energy", "dissipation"), ("columns", "parameters")):
        arguments = {"start": "v", "stored_energy": "x", "columns": "v, load"}[one]
        with pytest.raises(ArgumentError, match=f"overrides `{one}` without `{other}`"):
            type("Half", (FrictionModel,), {one: eval(f"lambda self, {arguments}: None")})


def test_a_wrong_dissipation_is_seen_by_the_energy_monitor():
    class Lossless(Dahl):
        def stored_energy(self, x):
            return super().stored_energy(x)

        def dissipation(self, v, load=None, x=None):
            return 0.0

    run = gc.simulate(gc.Plant(ARM, Lossless(60.0, 0.5)), Wave(), Q0, V0, 0.5, 5e-4, options=IN_PYTHON)
    assert run.monitors["energy"].verdict == "VIOLATED"
