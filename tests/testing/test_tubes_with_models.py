"""`testing.reach` under laws that contain the model: vdot = a + M^-1 r instead of M^-1 (tau - C v - g)."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from studies import panda_tubes

import geomctrl as gc
from geomctrl import controllers, models, references, testing
from geomctrl.control.plant import plant_of
from geomctrl.testing.tubes import equations, programs
from geomctrl.testing.tubes.equations import LoopEquations
from geomctrl.tracing.untraceable import UntraceableError

X0 = np.array([0.4, 1.1, 0.0, 0.0])
NONE = np.zeros(0, int)


class WrongAcceleration(controllers.ComputedTorque):
    """Its torques are not those for its `acceleration`."""

    def acceleration(self, t, q, v, z):
        return 0.9 * super().acceleration(t, q, v, z)

    def __call__(self, t, q, v, z):
        tau = self.robot.inverse_dynamics(q, v, super().acceleration(t, q, v, z))
        return gc.Command(tau, None, {"e": self.error(t, q, v).e})


class WrongSliding(controllers.Passivity):
    """Its torques are not those for its sliding variables."""

    def __call__(self, t, q, v, z):
        x = super().sliding(t, q, v)
        tau = self.robot.inverse_dynamics(q, v, x.a_ref, x.v_ref, form=self.form) - self.K.dot(x.s)
        return gc.Command(tau, None, {"e": x.e})

    def sliding(self, t, q, v):
        x = super().sliding(t, q, v)
        return x._replace(a_ref=x.a_ref + 0.01 * x.s)


class OtherNames:
    """A law for which `acceleration` is a number."""

    acceleration = 2.0

    def __init__(self, robot):
        self.robot = robot

    def __call__(self, t, q, v, z):
        return gc.Command(self.robot.gravity_force(q) - 20.0 * (q - 0.5) - 5.0 * v)


def laws_of(robot, q_d):
    hold = references.hold(robot, q_d)
    yield controllers.Passivity(robot, hold)
    yield controllers.Passivity(robot, hold, form="christoffel")
    yield controllers.PDGravity(robot, q_d)
    yield controllers.ComputedTorque(robot, hold)


def plants_of(robot):
    """The model, one with friction and one with other parameters."""
    friction = gc.Friction(np.full(robot.nv, 0.1), np.full(robot.nv, 0.05), smoothing=0.1)
    return [robot, gc.Plant(robot, friction=friction), robot.with_parameters(1.1 * robot.parameters)]


def accelerations_agree(law, plant, e, states):
    plant, n = plant_of("plant", plant, state=False), plant.nv if isinstance(plant, gc.Robot) else plant.robot.nv
    p = np.tile(plant.robot.parameters.ravel()[e.uncertain], (len(states), 1))
    traced = e.evaluated(e.rates[n : 2 * n], e.with_command(states, p, np.zeros((len(states), 1))))
    python = [plant.acceleration(0.0, x[:n], x[n:], law(0.0, x[:n], x[n:], None).tau) for x in states]
    return np.allclose(traced, python, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("uncertain", [NONE, np.arange(20)], ids=["numbers", "uncertain"])
def test_laws_that_contain_the_model_have_their_accelerations(uncertain):
    arm = models.two_link()
    states = np.random.default_rng(0).uniform(-2.0, 2.0, (20, 4))
    for law in laws_of(arm, [0.5, 1.0]):
        for plant in plants_of(arm):
            e = LoopEquations(law, equations.checked_plant(plant), uncertain)
            assert len(e.lemmas) == 1
            assert e.lemmas[0].holds(1)
            assert accelerations_agree(law, plant, e, states)


@pytest.mark.parametrize("kind", [WrongAcceleration, WrongSliding])
def test_a_wrong_acceleration_is_not_used(kind, monkeypatch):
    arm = models.two_link()
    law = kind(arm, references.hold(arm, [0.5, 1.0]))
    e = LoopEquations(law, equations.checked_plant(arm), NONE)
    assert not e.lemmas
    assert accelerations_agree(law, arm, e, np.random.default_rng(0).uniform(-2.0, 2.0, (20, 4)))
    monkeypatch.setattr(programs, "identical", lambda *_: True)  # without the proof, the comparison finds it
    with pytest.raises(UntraceableError, match="the traced loop differs from Python"):
        testing.reach(arm, law, (X0 - 0.01, X0 + 0.01), 0.1)


def test_a_law_may_have_an_attribute_of_another_meaning():
    arm = models.two_link()
    assert testing.reach(arm, OtherNames(arm), (X0 - 0.01, X0 + 0.01), 0.1)


def test_without_the_identity_motions_leave_the_tube(monkeypatch):
    arm = models.two_link()
    law = WrongAcceleration(arm, references.hold(arm, [0.5, 1.0]))
    monkeypatch.setattr(programs, "identical", lambda *_: True)
    monkeypatch.setattr(LoopEquations, "compare_with_python", lambda *_: None)
    tube = testing.reach(arm, law, (X0 - 1e-4, X0 + 1e-4), 0.25)

    def rates(t, x):
        return np.append(x[2:], arm.forward_dynamics(x[:2], x[2:], law(t, x[:2], x[2:], None).tau))

    x = solve_ivp(rates, (0.0, 0.25), X0, "DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    lower, upper = tube.box(0.25)
    assert ((x < lower) | (x > upper)).any()


def test_the_tube_of_a_double_integrator_is_that_of_its_formula():
    """Under computed torque e'' = -kp e - kd e' in every joint, so that the set of motions is a parallelogram."""
    arm = models.two_link()
    law = controllers.ComputedTorque(arm, references.hold(arm, [0.5, 1.0]), kp=6.0, kd=5.0)
    tube = testing.reach(arm, law, (X0 - 0.3, X0 + 0.3), 1.0, budget=1)
    lower, upper = tube.box(1.0)
    a, b = np.exp(-2.0), np.exp(-3.0)  # of e^(-2 t) and e^(-3 t)
    half = 0.3 * (abs(3.0 * a - 2.0 * b) + abs(a - b))
    middle = np.array([0.5, 1.0]) + (X0[:2] - [0.5, 1.0]) * (3.0 * a - 2.0 * b)
    np.testing.assert_allclose(lower[:2], middle - half, atol=1e-6)
    np.testing.assert_allclose(upper[:2], middle + half, atol=1e-6)
    assert (lower[:2] <= middle - half).all()
    assert (upper[:2] >= middle + half).all()


@pytest.mark.slow
def test_motions_of_the_panda_are_in_the_tube(monkeypatch):
    """200 motions of the equations as they are traced, without the acceleration of the law."""
    tube = panda_tubes.tube_of("Passivity", 0.01, 0.5)
    assert tube
    monkeypatch.setattr(equations, "by_accelerations", lambda loop, *_: (loop, []))
    e = LoopEquations(tube.equations.controller, tube.equations.plant, NONE)
    assert not e.lemmas
    rng, m, n = np.random.default_rng(3), 200, 14
    centre = 0.5 * (tube.lower + tube.upper)
    offsets = np.vstack([rng.uniform(-1, 1, (m // 2, n)), rng.choice([-1.0, 1.0], (m // 2, n))])
    times = np.array([0.0, *(s.end for s in tube.pieces[0].segments)])

    def rates(t, y):
        return e.evaluated(e.rates[:n], np.hstack([y.reshape(m, n), np.full((m, 1), t)])).ravel()

    starts = centre + 0.01 * offsets
    y = solve_ivp(rates, (0.0, 0.5), starts.ravel(), "DOP853", times, rtol=1e-9, atol=1e-11).y
    x = y.reshape(m, n, -1).transpose(2, 0, 1)
    for s, before, after in zip(tube.pieces[0].segments, x[:-1], x[1:], strict=True):
        lo, hi = s.hull
        assert ((lo[:n] - 1e-7 <= before) & (before <= hi[:n] + 1e-7)).all()
        assert ((s.lo[:n] - 1e-7 <= after) & (after <= s.hi[:n] + 1e-7)).all()
    lower, upper = tube.box(0.5)
    assert (upper - lower < 10.0 * np.ptp(x[-1], 0)).all()
