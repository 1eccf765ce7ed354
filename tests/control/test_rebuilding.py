"""Objects are constructed again from their arguments, with the same or other values, and as Python code."""

import dataclasses
import functools

import numpy as np
import pytest
from bundled_laws import ROBOTS, law_of
from simulation_options import IN_PYTHON, both_ways

import geomctrl as gc
from geomctrl import actuators, controllers, friction, models, references, sensors
from geomctrl.control import ElasticPlant, arguments, with_arguments
from geomctrl.control.contracts import started
from geomctrl.control.python_code import PythonCode

ROBOT = models.two_link()
MOTION = references.Sinusoids(ROBOT, [0.1, 0.2], amplitude=[0.3, 0.2], frequency=0.4)
PLANT = gc.Plant(
    ROBOT.with_payload(0.5),
    gc.Friction(0.1, [0.2, 0.3], 0.05),
    gc.Wrench("tip", [0, 0, 0, 0, 0, 1.0]),
    changes=[(0.5, ROBOT)],
    actuators=[actuators.Lag(0.01), actuators.Saturation(50.0)],
    sensors=[sensors.Encoder(resolution=1e-4, noise=1e-3, delay=1e-3, dt=1e-3)],
)
REFERENCES = [
    MOTION,
    references.Quintic(ROBOT, [0.0, 1.0], [1.0, 2.0], 2.0, 0.5),
    references.hold(ROBOT, [0.0, 1.0]),
    references.Spline(ROBOT, [0.0, 1.0, 3.0], [[0.0, 0.0], [1.0, 0.5], [0.2, -1.0]]),
    references.Harmonic([0.1, 0.2], 0.3, [0.4, 0.5]),
    references.RestToRest([0.1, 0.2], [1.0, 1.0], 2.0),
]
PARTS = [
    actuators.CurrentDrive(0.1, 100.0),
    actuators.DCMotor(0.1, 1.0, 1e-3, 50.0),
    actuators.Lag(0.01, 5.0),
    actuators.RateLimit([3.0, 4.0]),
    actuators.Selection([[1.0], [0.0]]),
    actuators.SeriesElasticity(100.0, 0.1, 0.2),
    actuators.TorqueSpeedLimits(10.0, 5.0),
    actuators.TransportDelay(0.002),
    friction.AsymmetricCoulomb(0.2, 0.3),
    friction.Dahl(100.0, 0.2),
    friction.LoadDependent(0.1),
    friction.LuGre(1e4, 0.2, 0.3, 0.01, 1.0),
    friction.Stribeck(0.2, 0.3, 0.01),
    sensors.IMU("tip", noise=0.1),
    sensors.JointTorque(bias=0.1),
    gc.JointStops(1000.0, 10.0),
]


def same(x, y):
    """Compare nested tuples of arrays bit for bit."""
    if isinstance(x, (tuple, list)):
        return len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(same(x[k], y[k]) for k in x)
    return x is y or np.asarray(x).tobytes() == np.asarray(y).tobytes()


def states(law, robot):
    """Three states, along the reference if there is one."""
    rng = np.random.default_rng(3)
    for t in (0.1, 0.5, 0.9):
        q = law.reference(t).q if isinstance(getattr(law, "reference", None), references.Sinusoids) else None
        yield t, robot.random_configuration(rng) if q is None else q, rng.normal(size=robot.nv), started(law, robot)


def commands(law, robot):
    return [tuple(law(*s, {"q": s[1]}) if getattr(law, "measurements", False) else law(*s)) for s in states(law, robot)]


@pytest.mark.parametrize("name", ROBOTS)
def test_every_bundled_law_is_constructed_again(name, kernels):
    law, plant = law_of(name, ROBOTS[name][0])
    again = with_arguments(law)
    assert again is not law
    assert same(commands(again, plant.robot), commands(law, plant.robot))
    if hasattr(law, "lyapunov"):
        for state in states(law, plant.robot):
            assert same(tuple(law.lyapunov(*state, plant)), tuple(again.lyapunov(*state, plant)))
    assert same(arguments(again), arguments(law))


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda x: type(x).__name__)
def test_every_reference_is_constructed_again(reference):
    again = with_arguments(reference)
    for t in (0.0, 0.31, 0.9, 4.0):
        assert same(again(t), reference(t))


def test_a_plant_with_everything_is_constructed_again():
    law = controllers.Passivity(ROBOT, MOTION)
    loop = {"q0": [0.1, 0.2], "v0": [0.0, 0.0], "t_end": 0.02, "dt": 1e-3, "control_dt": 1e-3}
    first, second = (gc.simulate(p, law, **loop) for p in (PLANT, with_arguments(PLANT)))
    assert same([first.q, first.measured, first.x], [second.q, second.measured, second.x])


@pytest.mark.parametrize("part", PARTS, ids=lambda x: type(x).__name__)
def test_every_part_of_a_plant_is_constructed_again(part):
    again = with_arguments(part)
    assert type(again) is type(part)
    assert repr(again) == repr(part)
    assert same(arguments(again), arguments(part))


def test_an_elastic_plant_is_constructed_with_another_stiffness():
    plant = with_arguments(ElasticPlant(ROBOT, 100.0, 0.5), {"stiffness": 200.0})
    assert repr(plant) == repr(ElasticPlant(ROBOT, 200.0, 0.5))


def test_values_are_reached_by_paths():
    law = controllers.SlotineLi(ROBOT, MOTION, K=20.0)
    other = with_arguments(law, {"reference.amplitude[1]": 0.9, "K[0,0]": 30.0, "Lambda": 4.0})
    by_hand = controllers.SlotineLi(
        ROBOT, references.Sinusoids(ROBOT, [0.1, 0.2], [0.3, 0.9], 0.4), Lambda=4.0, K=[30.0, 20.0]
    )
    assert same(commands(other, ROBOT), commands(by_hand, ROBOT))
    assert not same(commands(other, ROBOT), commands(law, ROBOT))


def test_users_classes_have_arguments():
    @dataclasses.dataclass
    class Gains:
        kp: float = 30.0
        kd: np.ndarray = dataclasses.field(default_factory=lambda: np.array([3.0, 4.0]))

    class Law:
        boost = 1.5

        def __init__(self, goal, gains):
            self.goal, self.gains = np.array(goal), gains
            self.bias = 0.25
            self.scaled = 2.0 * self.bias

        def __call__(self, t, q, v, z):
            return gc.Command(self.boost * (self.gains.kp * (self.goal - q) - self.gains.kd * v) + self.scaled)

    law = Law([0.5, 0.2], Gains())
    assert arguments(law).keys() == {"goal", "gains", "boost", "bias", "scaled"}
    state = 0.0, np.zeros(2), np.ones(2), None
    other = with_arguments(law, {"gains.kp": 10.0, "gains.kd[1]": 1.0, "boost": 2.0, "goal[0]": 1.0})
    assert other(*state).tau.tolist() == [2.0 * (10.0 - 3.0) + 0.5, 2.0 * (2.0 - 1.0) + 0.5]
    assert law(*state).tau.tolist() == [1.5 * (15.0 - 3.0) + 0.5, 1.5 * (6.0 - 4.0) + 0.5]
    law.scaled = 3.0
    assert with_arguments(law).scaled == 3.0
    assert with_arguments(law, {"bias": 1.0}).bias == 1.0


def test_a_users_law_with_a_bundled_base_has_its_own_numbers_only():
    class Boosted(controllers.Passivity):
        def __init__(self, robot, reference):
            super().__init__(robot, reference, Lambda=3.0, K=10.0)
            self.boost = 2.0

    law = Boosted(ROBOT, MOTION)
    assert arguments(law).keys() == {"robot", "reference", "boost"}
    other = with_arguments(law, {"boost": 3.0, "reference.frequency": 0.1})
    assert (other.boost, other.K[0, 0]) == (3.0, 10.0)
    assert repr(other.reference) == repr(references.Sinusoids(ROBOT, [0.1, 0.2], [0.3, 0.2], 0.1))


def test_keywords_of_a_partial_function_are_arguments():
    def law(t, q, v, z, gain):
        return gc.Command(-gain * q)

    bound = functools.partial(law, gain=2.0)
    assert arguments(bound) == {"gain": 2.0}
    assert with_arguments(bound, {"gain": 5.0})(0.0, np.ones(2), np.ones(2), None).tau.tolist() == [-5.0, -5.0]


def test_what_can_not_be_constructed_again_is_named():
    class Hidden:
        def __init__(self, ratio):
            self.twice = [2.0 * ratio]

    class Doubled:
        def __init__(self, names):
            self.names = names + names

    with pytest.raises(gc.ArgumentError, match=r"Hidden: .*ratio"):
        arguments(Hidden(2.0))
    with pytest.raises(gc.ArgumentError, match=r"Doubled: .*names would differ"):
        arguments(Doubled(["a"]))
    law = controllers.SlotineLi(ROBOT, MOTION)
    law.Gamma = 2.0 * law.Gamma
    with pytest.raises(gc.ArgumentError, match=r"SlotineLi: .*minus_gamma would differ"):
        arguments(law)
    with pytest.raises(gc.ArgumentError, match="with_payload"):
        arguments(ROBOT)
    with pytest.raises(gc.NameNotFoundError, match=r"'Kp'; known: .*Lambda"):
        with_arguments(controllers.Passivity(ROBOT, MOTION), {"Kp": 1.0})
    with pytest.raises(gc.NameNotFoundError, match="item"):
        with_arguments(MOTION, {"amplitude[7]": 1.0})
    with pytest.raises(gc.NameNotFoundError, match="path"):
        with_arguments(MOTION, {"amplitude[": 1.0})


def test_a_changed_value_never_runs_old_code():
    law = controllers.Passivity(ROBOT, MOTION, K=10.0)
    plant = gc.Plant(ROBOT, gc.Friction(0.1, 0.2, 0.05))
    loop = {"q0": [0.1, 0.2], "v0": [0.0, 0.0], "t_end": 0.05, "dt": 1e-3}
    for gain, viscous, coulomb in ((10.0, 0.1, 0.2), (20.0, 0.1, 0.2), (20.0, 0.5, 0.0), (20.0, 0.0, 0.2)):
        other = with_arguments(law, {"K": gain})
        moved = with_arguments(plant, {"friction.viscous": viscous, "friction.coulomb": coulomb})
        runs = both_ways(moved, other, **loop)
        assert np.allclose(runs[0].q, runs[1].q, rtol=0.0, atol=1e-12)
        by_hand = controllers.Passivity(ROBOT, MOTION, K=gain)
        fresh = gc.simulate(
            gc.Plant(ROBOT, gc.Friction(viscous, coulomb, 0.05)), by_hand, **loop,
            options=IN_PYTHON
        )  # fmt: skip
        assert same(fresh.q, runs[1].q)


@pytest.mark.parametrize("name", ["SlotineLi", "DREM", "EnergyTank", "LQR", "OnlineIdentification", "ElasticJoint"])
def test_python_code_constructs_the_same_law(name, kernels):
    law, plant = law_of(name, "satellite" if name == "LQR" else ROBOTS[name][0])
    code = PythonCode()
    code.define("law", law)
    code.define("plant", plant)
    code.missing.pop("Wind", None)
    names = {} if name != "EnergyTank" else {"Wind": type(law.active)}
    exec(code.text, names)
    assert set(code.missing) <= {"robot"}
    assert same(commands(names["law"], plant.robot), commands(law, plant.robot))


def test_python_code_repeats_a_run_bit_for_bit():
    motion = references.Sinusoids(models.two_link(), [0.1, 0.2], 1.0 / 3.0, [0.1, 0.7])
    law = controllers.SlotineLi(motion.robot, motion, K=[20.0 / 3.0, 5.0], rate=np.pi)
    plant = gc.Plant(
        motion.robot.with_payload(0.7, (0.1, 0.0, 1e-3)),
        gc.Friction([0.1, 1.0 / 7.0], 0.2),
        actuators=[actuators.TransportDelay(0.002), actuators.Saturation([50.0, np.inf])],
        sensors=[sensors.Encoder(bits=17, noise=1e-5)],
    )
    code = PythonCode()
    code.define("law", law)
    code.define("plant", plant)
    names = {}
    exec(code.text, names)
    assert not code.missing
    assert names["law"].robot is names["law"].reference.robot
    loop = {"q0": [0.1, 0.2], "v0": [0.0, 0.0], "t_end": 0.02, "dt": 1e-3, "control_dt": 1e-3}
    first = gc.simulate(plant, law, **loop)
    second = gc.simulate(names["plant"], names["law"], **loop)
    assert same([first.q, first.z, first.applied], [second.q, second.z, second.applied])


class Empty:
    """Its attributes are set from outside."""


def test_python_code_sets_what_no_name_can_be_written_for():
    x, values = Empty(), {"a.b": 1.5, "lambda": 2.0, "k": 3.0}
    x.__dict__.update(values)
    code, names = PythonCode(), {}
    code.define("x", x)
    code.define("partial", functools.partial(dict, **values))
    exec(code.text, names)
    assert not code.missing
    assert vars(names["x"]) == names["partial"]() == values


def test_python_code_names_what_it_can_not_define():
    class Law:
        def __init__(self, robot):
            self.robot = robot

        def __call__(self, t, q, v, z):
            return gc.Command(-q)

    code = PythonCode()
    robot = dataclasses.replace(ROBOT, name="mine")
    code.define("law", Law(robot))
    assert code.missing["robot"] == "robot mine"
    assert any("Law" in name for name in code.missing)
    assert "# define robot first: robot mine" in code.text
