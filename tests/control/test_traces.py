"""Laws, their Lyapunov functions, references, plants and monitors on symbols: the same numbers as in Python.

Every number is a symbol: time, state, gains, and the models' numbers.
"""

import numpy as np
import pytest
from simulation_options import IN_PYTHON, run_both_ways
from symbolic_copies import SymbolicCopies

import geomctrl as gc
from geomctrl import controllers, derivatives, models
from geomctrl.control.elastic_joints import ElasticPlant
from geomctrl.control.monitors import default_monitors
from geomctrl.control.references import Harmonic, Quintic, RestToRest, Sinusoids, Spline
from geomctrl.control.sample import Sample, State
from geomctrl.lie.groups import SE3, SO3, Product, Rn, SO3xR3
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.papers import articulated_bodies, curvature, sensitivities
from geomctrl.papers import higher_order_kinematics as higher

ROBOTS = [models.panda(), models.two_link(), models.ur10(), models.three_spheres(), models.quadruped()]
TIMES = (0.6, 5.0)


def equal(result, expected, scale=0.0):
    if isinstance(expected, tuple):
        assert len(result) == len(expected)
        for x, y in zip(result, expected):
            equal(x, y, scale)
    elif isinstance(expected, dict):
        assert list(result) == list(expected)
        equal(tuple(result.values()), tuple(expected.values()), scale)
    elif expected is None:
        assert result is None
    else:
        scale = max(scale, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(result, expected, rtol=0.0, atol=1e-12 * max(scale, 1e-3))


def reference(robot):
    return Sinusoids(robot, robot.neutral(), [[0.3], [0.1]], [[0.4], [1.1]], start_at_rest=1.0)


LAWS = {
    "pd": lambda r: controllers.PDGravity(r, r.neutral()),
    "computed torque": lambda r: controllers.ComputedTorque(r, reference(r), friction=gc.Friction(0.1, 0.2)),
    "passivity": lambda r: controllers.Passivity(r, reference(r), friction=gc.Friction(0.1, 0.2), form="christoffel"),
    "slotine-li": lambda r: controllers.SlotineLi(r, reference(r)),
    "slotine-li, a load": lambda r: controllers.SlotineLi(
        r,
        reference(r),
        adapt=[r.body_names[-1]],
        friction=gc.Friction(0.1, 0.2),
        minimum_mass=0.5 * r.parameters[-1, 0],
    ),
    "slotine-li, base": lambda r: controllers.SlotineLi(r, reference(r), adapt="base"),
}


def loop(robot, law, rng):
    """Random q, v, z of a closed loop."""
    q, v, z = robot.random_configuration(rng), rng.normal(size=robot.nv), law.start()
    return q, v, None if z is None else z * rng.uniform(0.3, 1.5, z.shape)


def plants(robot, rng):
    load = robot.with_parameters(robot.parameters * 1.1)
    wrench = 0.1 * rng.normal(size=(robot.nbodies, 6))
    return [
        gc.Plant(load),
        gc.Plant(load, gc.Friction(0.3, 0.1)),
        gc.Plant(load, gc.Friction(0.3), f_ext=lambda t, q, v: wrench * np.sin(t)),
    ]


@pytest.mark.quick(6)
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
@pytest.mark.parametrize("name", LAWS)
def test_laws_and_their_lyapunov_functions(robot, name, kernels):
    law, rng = LAWS[name](robot), np.random.default_rng(1)
    for t, plant in zip(TIMES, plants(robot, rng)):
        q, v, z = loop(robot, law, rng)
        copies = SymbolicCopies()
        own, true = copies.of(law), copies.of(plant)
        state = copies.symbol(t), copies.array(q), copies.array(v), None if z is None else copies.array(z)
        equal(copies.values(own, *state), law(t, q, v, z))
        lyapunov = law.lyapunov(t, q, v, z, plant)
        assert all(isinstance(x, float) for x in lyapunov)
        equal(copies.values(own.lyapunov, *state, true), tuple(lyapunov))


def rate(plant, *state):
    out = np.zeros(2 * plant.robot.nv + 1)
    plant.rate(*state, out)
    return out


@pytest.mark.quick(3)
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_plants(robot, kernels):
    rng = np.random.default_rng(2)
    for plant in plants(robot, rng):
        q, v, tau = robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))
        copies = SymbolicCopies()
        true, state = copies.of(plant), (copies.symbol(0.3), copies.array(q), copies.array(v), copies.array(tau))
        equal(copies.values(rate, true, *state), rate(plant, 0.3, q, v, tau))


@pytest.mark.quick(1)
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
@pytest.mark.parametrize("name", ["slotine-li", "passivity"])
def test_monitors(robot, name, kernels):
    """Two samples: the first in Python, the second on symbols, including the memory of the monitors."""
    law, rng = LAWS[name](robot), np.random.default_rng(3)
    plant = plants(robot, rng)[1]
    for changed in (False, True):
        samples = []
        for t in TIMES:
            (q, v, z), tau, work = loop(robot, law, rng), rng.normal(size=robot.nv), float(rng.normal())
            y = np.concatenate((q, v, [] if z is None else z, [work]))
            now = changed and len(samples) > 0
            state, command = State(q, v, z, None, work, y), gc.Command(tau)
            samples.append(Sample(t, state, command, plant, tau, now, law.reference))
        held = default_monitors()
        for m in held:
            m.held = 1e-2
        for m in (*default_monitors(), *held):
            if not m.start(plant, law):
                assert (m.name, m.held) == ("holding", 0.0) or m.name.endswith("_limits")
                continue
            m.measure(samples[0])
            copies = SymbolicCopies()
            own = copies.of(m)
            if m.name in ("lyapunov", "holding"):
                own.function = copies.of(law).lyapunov
            seen = Sample(*(copies.of(getattr(samples[1], name)) for name in Sample._fields))
            scale = 1e3 if m.name == "skew" or m.held else 0.0  # the value is a rounding error or a difference of such
            equal(copies.values(own.measure, seen), m.measure(samples[1]), scale)
            for name, x in vars(m).items():
                if isinstance(x, float):
                    equal(copies.evaluated(getattr(own, name)), x, 10.0 * scale)
            equal(copies.evaluated(tuple(own.signals.values())), tuple(m.signals.values()))


def references(robot):
    q0, rng = robot.neutral(), np.random.default_rng(4)
    q1, q2 = (robot.integrate(q0, 0.3 * rng.normal(size=robot.nv)) for _ in range(2))
    return [
        reference(robot),
        Sinusoids(robot, q0, 0.1, 0.5),
        Quintic(robot, q0, q1, 2.0, 0.5),
        Spline(robot, [0.1, 1.0, 1.7, 3.0], np.array([q0, q1, q2, q0])),
    ]


@pytest.mark.quick(1)
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_references(robot):
    for motion in references(robot):
        for t in (-0.5, 0.1, 0.7, 1.7, 2.2, 3.0, 5.0):
            copies = SymbolicCopies()
            equal(copies.values(copies.of(motion), copies.symbol(t)), tuple(motion(t)), 1.0)


SMOOTH = [
    Harmonic(np.full(7, 0.2), 0.3, 0.5),
    Harmonic(np.zeros(7), np.full(7, 0.3), np.linspace(0.1, 0.7, 7), np.full(7, 0.4)),
    RestToRest(np.zeros(7), np.full(7, 0.4), 2.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("smooth", SMOOTH)
def test_elastic_joints(smooth):
    robot, rng = models.panda(), np.random.default_rng(5)
    law = controllers.ElasticJoint(robot, smooth, 800.0, 0.1)
    plant = ElasticPlant(robot, 900.0, 0.11, gc.Friction(0.1, 0.2))
    for t in (-0.1, 0.7, 5.0):
        copies = SymbolicCopies()
        equal(copies.values(copies.of(smooth), copies.symbol(t)), smooth(t))
        q, v, tau = 0.1 * rng.normal(size=(3, 14))
        copies = SymbolicCopies()
        own, true = copies.of(law), copies.of(plant)
        state = copies.symbol(t), copies.array(q), copies.array(v)
        equal(copies.values(own, *state, None), law(t, q, v, None))
        equal(copies.values(own.lyapunov, *state, None, true), tuple(law.lyapunov(t, q, v, None, plant)))
        equal(copies.values(own.reference, state[0]), tuple(law.reference(t)))
        equal(copies.values(rate, true, *state, copies.array(tau)), rate(plant, t, q, v, tau))


GROUPS = [
    SO3(),
    SE3(),
    SO3xR3(),
    Rn(3),
    Product(SO3(), Rn(2), SE3(), SE3()),
    *(configuration_group(r) for r in (models.three_spheres(), models.quadruped())),
]
ELEMENTS = {"advance": "gx", "compose": "gg", "inverse": "g", "exp": "x", "log": "g", "residual": "g"}
ALGEBRA = {"dexp_inv_mul": "xx", "rotation": "x", "Ad": "g", "ad": "x", "dexp": "x", "dexp_inv": "x"}


@pytest.mark.quick(42)
@pytest.mark.parametrize("group", GROUPS, ids=lambda g: type(g).__name__)
@pytest.mark.parametrize(("name", "kinds"), (ELEMENTS | ALGEBRA).items())
def test_groups(group, name, kinds):
    rng = np.random.default_rng(6)
    for spread in (1e-9, 0.5):
        inputs = [group.random(rng) if kind == "g" else spread * rng.normal(size=group.dim) for kind in kinds]
        copies = SymbolicCopies()
        own, expected = copies.of(group), getattr(group, name)(*inputs)
        equal(
            copies.values(getattr(own, name), *map(copies.array, inputs)), expected, 1e3 if name == "residual" else 1.0
        )


TERMS = {
    "integrate": lambda r, q, v, a: r.difference(r.integrate(q, v), q),
    "jacobian_derivatives": lambda r, q, v, a: higher.jacobian_derivatives(r, q, np.stack((v, a)), r.body_names[-1]),
    "jacobian_partial_derivatives": lambda r, q, v, a: higher.jacobian_partial_derivatives(r, q, r.body_names[-1], 2),
    "jerk": lambda r, q, v, a: higher.jerk(r, q, v, a, v, r.body_names[-1], "mixed"),
    "joint_motion_of_bodies": lambda r, q, v, a: higher.joint_motion_of_bodies(
        r, q, *(x[0] * np.ones((r.nbodies, 6)) for x in (v, a))
    ),
    "mass_matrix_solve": lambda r, q, v, a: r.mass_matrix_solve(np.stack((q, q)), np.stack((v, a))),
    "articulated_bodies": lambda r, q, v, a: articulated_bodies.articulated_bodies(r, q, v, a),
    "mass_matrix_derivative": lambda r, q, v, a: derivatives.mass_matrix_derivative(r, q),
    "geometric_sensitivity": lambda r, q, v, a: sensitivities.geometric_sensitivity(r, q, v, a),
    "pose_sensitivity": lambda r, q, v, a: sensitivities.pose_sensitivity(r, q, r.body_names[-1]),
    "covariant_derivative": lambda r, q, v, a: curvature.covariant_derivative(r, q, v, a, v),
    "sectional_curvature": lambda r, q, v, a: curvature.sectional_curvature(r, q, v, a),
    "scalar_curvature": lambda r, q, v, a: curvature.scalar_curvature(r, q),
    "inner_product": lambda r, q, v, a: curvature.inner_product(r, q, v, a),
    "momentum": lambda r, q, v, a: r.momentum(q, v),
}


@pytest.mark.quick(9)
@pytest.mark.parametrize("name", TERMS)
def test_terms(name, kernels):
    """Functions that laws seldom use; `tests/compiler/test_arrays.py` has the others."""
    robot, rng, copies = models.three_spheres(), np.random.default_rng(7), SymbolicCopies()
    q, v, a = robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))
    expected = TERMS[name](robot, q, v, a)
    result = copies.values(TERMS[name], copies.of(robot), *map(copies.array, (q, v, a)))
    equal(result, tuple(expected) if isinstance(expected, tuple) else expected)


class Branching:
    """A user's law that branches on its own number, so that a trace is valid for this number only."""

    def __init__(self, gain):
        self.gain = gain

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-(self.gain if self.gain > 0.5 else 0.0) * q)


def test_loops_that_branch_on_their_numbers_do_not_share_a_trace():
    for gain in (1.0, 0.0, 3.0, 1.0):
        run_both_ways(ROBOTS[1], Branching(gain), [0.1, 0.0], [0.0, 0.0], 0.05, 1e-3, rtol=0.0, atol=1e-12)
    laws = [Branching(gain) for gain in (1.0, 0.0, 3.0)]
    many = gc.simulate_many(ROBOTS[1], laws, [0.1, 0.0], [0.0, 0.0], 0.5, 1e-3)
    alone = [gc.simulate(ROBOTS[1], law, [0.1, 0.0], [0.0, 0.0], 0.5, 1e-3, options=IN_PYTHON) for law in laws]
    for a, b in zip(many, alone):
        np.testing.assert_allclose(a.q, b.q, rtol=0.0, atol=1e-10)
