"""Our controllers on MuJoCo's equations of motion."""

import copy
import pickle
import sys

import numpy as np
import pytest
from oracles import assert_close
from simulation_options import IN_PYTHON, grouped

import geomctrl as gc
from geomctrl import controllers, interop, monitors
from geomctrl.tracing.symbols import UntraceableError

mujoco = pytest.importorskip("mujoco", reason="the optional package mujoco is not installed")

NO_CONTACT = 'contype="0" conaffinity="0"'
ARM = f"""
<mujoco><option timestep="0.001" {{option}}/><worldbody><body name="a" pos="0 0 1">
<joint name="j1" axis="0 1 0" damping="0.1"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".05" {NO_CONTACT}/>
<body name="b" pos="0 0 -.4"><joint name="j2" axis="1 0 0" armature="0.02" stiffness="2" springref="30"/>
<geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".05" {NO_CONTACT}/>
<body name="tip" pos="0.1 0 -.4"><joint name="j3" type="slide" axis="0 0.6 0.8"/>
<geom type="box" size=".05 .1 .02" pos="0 .1 0" {NO_CONTACT}/></body></body></body></worldbody></mujoco>"""
FLOATING = f"""
<mujoco><worldbody><body name="craft" pos="1 0 1"><freejoint name="free"/>
<geom type="box" size=".05 .1 .2" pos="0.1 .1 0" {NO_CONTACT}/>
<body name="tool" pos=".1 .2 .3"><joint name="wrist" type="ball" pos="0 0 .1"/>
<geom type="box" size=".05 .1 .02" pos="0 .1 0" {NO_CONTACT}/></body></body></worldbody></mujoco>"""
BOX = """
<mujoco><option timestep="0.001" integrator="implicitfast"/><worldbody><geom type="plane" size="5 5 .1"/>
<body name="box" pos="0 0 0.06"><freejoint name="free"/><geom type="box" size=".1 .1 .05" mass="2"/></body>
</worldbody></mujoco>"""


class Push:
    """A constant torque."""

    def __init__(self, tau):
        self.tau = np.asarray(tau, float)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.tau)


def state(robot, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))


def run(plant, tau, q, v, t_end=0.1, dt=2e-3, **options):
    return gc.simulate(plant, Push(tau), q, v, t_end, dt, **grouped(**{"compiled": False} | options))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("xml", [ARM.format(option=""), FLOATING], ids=["arm", "floating"])
def test_without_contacts_it_is_our_plant(xml, seed):
    plant = interop.mujoco_plant(xml)
    ours = gc.Plant(plant.robot, "model")
    q, v, tau = state(plant.robot, seed)
    assert plant.beyond == ()
    assert_close(plant.acceleration(0.0, q, v, tau), ours.acceleration(0.0, q, v, tau), 1e-9)
    assert plant.power(0.0, q, v, tau) == pytest.approx(ours.power(0.0, q, v, tau), rel=1e-10)
    a, b = np.empty((2, 2 * plant.robot.nv + 1))
    plant.rate(0.0, q, v, tau, a)
    ours.rate(0.0, q, v, tau, b)
    assert_close(a, b, 1e-9)


@pytest.mark.parametrize("xml", [ARM.format(option=""), FLOATING], ids=["arm", "floating"])
def test_runs_are_those_of_our_plant(xml):
    plant = interop.mujoco_plant(xml)
    q, v, tau = state(plant.robot)
    theirs, ours = run(plant, tau, q, v), run(gc.Plant(plant.robot, "model"), tau, q, v)
    assert_close(theirs.q, ours.q, 1e-9)
    assert theirs.ok, theirs.summary()
    np.testing.assert_allclose(theirs.monitors["energy"].values, ours.monitors["energy"].values, atol=1e-9)


@pytest.mark.parametrize(("integrator", "order"), [("Euler", 1), ("RK4", 4)])
def test_stepping_of_mujoco_converges_to_our_runs_with_its_order(integrator, order):
    xml = ARM.format(option=f'integrator="{integrator}"').replace('damping="0.1"', "")  # Euler's is implicit in damping
    plant = interop.mujoco_plant(xml)
    model = mujoco.MjModel.from_xml_string(xml)
    q, v, tau = state(plant.robot, 1)
    end = run(plant, tau, q, v, 0.2, method="MK6").q[-1]
    errors = []
    for dt in (0.02, 0.01, 0.005):
        data = mujoco.MjData(model)
        model.opt.timestep = dt
        data.qpos[:], data.qvel[:] = interop.to_mujoco(plant.robot, model, q, v)
        data.qfrc_applied[:] = tau
        mujoco.mj_step(model, data, round(0.2 / dt))
        errors.append(np.abs(interop.from_mujoco(plant.robot, model, data.qpos, data.qvel)[0] - end).max())
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes == pytest.approx(order, abs=0.35), (errors, slopes)


def test_a_law_tracks_and_its_promise_holds():
    robot = interop.mujoco_plant(ARM.format(option="")).robot
    free = gc.Plant(robot, "model")
    assert free.robot is robot
    plant = interop.mujoco_plant(ARM.format(option="").replace('damping="0.1"', "").replace('stiffness="2"', ""))
    motion = gc.references.Quintic(robot, np.zeros(3), [0.6, -0.4, 0.1], 0.3)
    law = controllers.ComputedTorque(plant.robot, motion)
    result = gc.simulate(plant, law, [0.05, 0.0, 0.01], np.zeros(3), 0.4, 2e-3, options=IN_PYTHON)
    assert result.ok, result.summary()
    assert {"skew", "energy", "lyapunov", "group"} <= set(result.monitors)
    assert_close(result.q, gc.simulate(plant.robot, law, [0.05, 0, 0.01], np.zeros(3), 0.4, 2e-3).q, 1e-9)


def test_contacts_are_mujocos():
    """A box that lands: at rest the ground carries it, and before that its motion equals mj_step's."""
    plant = interop.mujoco_plant(BOX)
    robot = plant.robot
    q0 = robot.neutral()
    q0[11] = 0.06
    result = run(plant, np.zeros(6), q0, np.zeros(6), 0.3, 1e-3, monitors=[monitors.GroupResidual()])
    held = plant.constraint_torque(0.0, result.q[-1], result.v[-1], np.zeros(6))
    assert held == pytest.approx([0, 0, 0, 0, 0, 2.0 * 9.81], abs=0.02)
    assert np.abs(result.v[-1]).max() < 1e-3
    model = mujoco.MjModel.from_xml_string(BOX)
    data = mujoco.MjData(model)
    model.opt.timestep = 1e-4
    heights = [data.qpos[2]]
    for _ in range(6):
        mujoco.mj_step(model, data, 500)
        heights.append(data.qpos[2])
    np.testing.assert_allclose(result.q[::50, 11], heights, atol=1e-4)


def test_what_a_tree_does_not_represent_is_in_the_plant_alone():
    xml = ARM.format(option="").replace(
        "</mujoco>", '<equality><joint name="e" joint1="j1" polycoef="0.3 0 0 0 0"/></equality></mujoco>'
    )
    plant = interop.mujoco_plant(xml)
    assert len(plant.beyond) == 1
    assert plant.beyond[0].startswith("equality of 'e'")
    result = run(plant, np.zeros(3), [0.3, 0.0, 0.0], np.zeros(3), 0.3, 1e-3, monitors=None)
    assert np.abs(result.q[:, 0] - 0.3).max() < 2e-3
    assert np.abs(run(gc.Plant(plant.robot, "model"), np.zeros(3), [0.3, 0, 0], np.zeros(3), 0.3).q[-1, 0] - 0.3) > 0.05


def test_the_files_actuators_are_off():
    driven = ARM.format(option="").replace("</mujoco>", '<actuator><position joint="j1" kp="100"/></actuator></mujoco>')
    q, v, tau = state(interop.mujoco_plant(driven).robot)
    with_them, without = (interop.mujoco_plant(x).acceleration(0.0, q, v, tau) for x in (driven, ARM.format(option="")))
    assert_close(with_them, without, 1e-12)


def test_external_wrenches_push_it_too():
    plant = interop.mujoco_plant(FLOATING, gc.Wrench("tool", (0.1, 0.2, 0.3, 1.0, -2.0, 3.0), 0.0507, 0.1, "hybrid"))
    q, v, tau = state(plant.robot)
    ours = gc.Plant(plant.robot, f_ext=plant.f_ext)
    assert_close(run(plant, tau, q, v).q, run(ours, tau, q, v).q, 1e-9)


def test_actuators_stand_before_it():
    """Actuators with a state, stored energy and limits."""
    drives = [gc.actuators.SeriesElasticity([400.0, 300.0, 200.0], [0.2, 0.1, 0.1]), gc.actuators.Saturation(1.5)]
    plant = interop.mujoco_plant(ARM.format(option=""), actuators=drives)
    ours = gc.Plant(plant.robot, actuators=drives)
    q, v, tau = state(plant.robot)
    theirs, result = run(plant, 5.0 * tau, q, v, dt=1e-3), run(ours, 5.0 * tau, q, v, dt=1e-3)
    assert_close(theirs.x, result.x, 1e-9)
    assert_close(theirs.q, result.q, 1e-9)
    assert_close(theirs.applied, result.applied, 1e-9)
    assert np.abs(theirs.applied).max() == 1.5
    np.testing.assert_allclose(theirs.monitors["energy"].values, result.monitors["energy"].values, atol=1e-9)
    x = theirs.x[-1]
    args = 0.0, theirs.q[-1], theirs.v[-1], tau, x
    assert plant.power(*args) == pytest.approx(ours.power(*args), rel=1e-9)


def test_it_depends_on_the_state_alone():
    """Results do not depend on earlier calls or on the calling thread; copies are independent."""
    plant = interop.mujoco_plant(BOX)
    q = plant.robot.neutral()
    q[11], zero = 0.049, np.zeros(6)
    first = plant.acceleration(0.0, q, zero, zero)
    plant.acceleration(0.0, plant.robot.neutral(), np.ones(6), np.ones(6))
    assert first[5] > 1.0
    for twin in (plant, copy.copy(plant), copy.deepcopy(plant), pickle.loads(pickle.dumps(plant))):
        assert (twin.acceleration(0.0, q, zero, zero) == first).all()
    laws = [Push([0, 0, 0, force, 0, 0]) for force in (0.0, 5.0, 20.0, 40.0)]
    many = gc.simulate_many(plant, laws, q, zero, 0.05, 2e-3, threads=2, monitors=None)
    for law, result in zip(laws, many):
        assert (result.q == run(plant, law.tau, q, zero, 0.05, monitors=None).q).all()


def test_it_does_not_compile():
    plant = interop.mujoco_plant(BOX)
    with pytest.raises(UntraceableError, match="MuJoCo's equations of motion can not be traced"):
        run(plant, np.zeros(6), plant.robot.neutral(), np.zeros(6), compiled=True)


def test_what_is_no_mjcf_is_refused(monkeypatch):
    with pytest.raises(gc.ModelError, match="not an MJCF: expected the root element <mujoco>, got <robot>"):
        interop.mujoco_plant("<robot/>")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(gc.GeomctrlError, match="mujoco_plant needs the optional package mujoco: pip install"):
        interop.mujoco_plant(BOX)


# --- verdicts ------------------------------------------------------------------------------------------------------

BARE = ARM.format(option="").replace('damping="0.1"', "").replace('stiffness="2" springref="30"', "")


def laws(robot):
    q_d = [0.3, 0.2, 0.05]
    motion = gc.references.Sinusoids(robot, q_d, [0.3, 0.3, 0.05], [3.0, 2.0, 1.0])
    return controllers.PDGravity(robot, q_d), controllers.Passivity(robot, motion)


@pytest.mark.quick(6)
@pytest.mark.parametrize(("dt", "control_dt", "verdicts"), [(1e-3, None, {True}), (1e-3, 2e-3, {True}),
    (1e-2, None, {True, None})])  # fmt: skip
@pytest.mark.parametrize("number", [0, 1], ids=["PDGravity", "Passivity"])
@pytest.mark.parametrize("start", ["from rest", "on its reference"])
def test_a_right_law_is_not_accused(number, start, dt, control_dt, verdicts):
    """MuJoCo's numbers differ from ours by rounding, which is no growth of V; a step that is too long is unresolved."""
    plant = interop.mujoco_plant(BARE)
    law = laws(plant.robot)[number]
    q, v, _ = law.reference(0.0) if start == "on its reference" else (np.zeros(3), np.zeros(3), None)
    result = gc.simulate(plant, law, q, v, 0.2, dt, control_dt=control_dt, options=IN_PYTHON)
    assert result.ok in verdicts, result.summary()


def test_a_spring_that_the_law_does_not_know_is_a_violation():
    plant = interop.mujoco_plant(ARM.format(option=""))
    law = laws(plant.robot)[0]
    result = gc.simulate(plant, law, law.reference(0.0).q, np.zeros(3), 0.1, 1e-3, options=IN_PYTHON)
    assert result.monitors["lyapunov"].ok is False
    assert result.monitors["energy"].ok is True


def test_a_landing_is_unresolved_and_not_a_violation():
    """A contact force begins with a jump, where no step has its order."""
    plant = interop.mujoco_plant(BOX)
    q = plant.robot.neutral().copy()
    q[11] = 0.2
    result = run(plant, np.zeros(6), q, np.zeros(6), 0.25, 1e-3)
    assert result.monitors["energy"].worst > result.monitors["energy"].limit
    assert result.monitors["energy"].ok is None
    assert "if the plant is smooth" in result.monitors["energy"].explanation
