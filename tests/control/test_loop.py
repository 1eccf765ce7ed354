"""The closed loop: accuracy, continuous and sampled control, monitors, contents of failed runs."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import without_limits
from scipy.integrate import solve_ivp
from simulation_options import flat_simulate, grouped

import geomctrl as gc
from geomctrl import controllers, inertia, models, se3, testing
from geomctrl.control.monitors import Monitor, Skew, default_monitors
from geomctrl.control.monitors.skew import skew_residual
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.lie.groups import SO3

ARM = models.two_link()
PANDA = without_limits(models.panda())
FLOATING = testing.random_robot(np.random.default_rng(2), ["free", "spherical", "revolute"], [-1, 0, 1])


class Torque:
    """An open-loop torque of time."""

    def __init__(self, tau):
        self.tau = tau

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.tau(t))


def law_of(robot, **options):
    reference = Sinusoids(robot, robot.neutral(), 0.3, 0.4, 0.5)
    return controllers.Passivity(robot, reference, 3.0, 5.0 * np.diag(robot.mass_matrix(robot.neutral())), **options)


def start_of(law):
    desired = law.reference(0.0)
    return law.robot.integrate(desired.q, 0.2 * np.ones(law.robot.nv)), desired.v


def test_swinging_arm_against_scipy():
    """A double pendulum with friction under a torque, against scipy's DOP853 on the same vector field."""
    plant = gc.Plant(ARM, friction=gc.Friction(0.3, 0.2, smoothing=0.5))
    tau = lambda t: np.array([2.0 * np.sin(3 * t), np.cos(t)])  # noqa: E731
    run = gc.simulate(plant, Torque(tau), [0.3, -0.4], [0.1, 0.2], 2.0, 1e-3)

    def field(t, y):
        q, v = y[:2], y[2:]
        M, _, C, g = ARM.terms(q, v)
        friction = 0.3 * v + 0.2 * np.tanh(v / 0.5)
        return np.concatenate((v, np.linalg.solve(M, tau(t) - friction - C @ v - g)))

    exact = solve_ivp(field, (0.0, 2.0), [0.3, -0.4, 0.1, 0.2], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(np.concatenate((run.q[-1], run.v[-1])), exact, atol=2e-9)
    assert run.ok
    assert run.t[-1] == 2.0
    assert len(run.t) == 2001


@pytest.mark.quick(1)
@pytest.mark.parametrize("method", ["MK2", "CG3", "MK4"])
def test_order_of_the_closed_loop(method):
    """A floating tree with a controller at every stage: the error falls with the order of the method."""
    law = law_of(FLOATING)
    q0, v0 = start_of(law)
    ends = {
        n: gc.simulate(FLOATING, law, q0, v0, 0.2, 0.2 / n, monitors=None, options=gc.SimulationOptions(method=method))
        for n in (40, 80, 320)
    }
    errors = [np.linalg.norm(FLOATING.difference(ends[n].q[-1], ends[320].q[-1])) for n in (40, 80)]
    order = int(method[-1])
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


@pytest.mark.quick(1)
@pytest.mark.parametrize(("dt", "control_dt"), [(0.1, None), (0.02, 0.02)])
def test_adaptive_steps_between_samples_keep_the_tolerance(dt, control_dt):
    """Adaptive steps on a floating tree, compared with fixed steps of a method of order 8."""
    law = law_of(FLOATING)
    q0, v0 = start_of(law)
    exact = flat_simulate(
        FLOATING, law, q0, v0, 0.2, 5e-3, control_dt=control_dt, monitors=None, method="MK8", every=round(dt / 5e-3)
    )
    errors = []
    for rtol in (1e-4, 1e-7, 1e-10):
        run = flat_simulate(
            FLOATING, law, q0, v0, 0.2, dt, control_dt=control_dt, method=gc.integrators.Adaptive(rtol=rtol, atol=rtol)
        )
        assert run.ok or rtol > 1e-6
        np.testing.assert_allclose(run.t, exact.t, atol=1e-12)
        errors.append(np.abs(FLOATING.difference(exact.q, run.q)).max())
    assert errors[0] < 1e-2
    assert errors[1] < 1e-5
    assert errors[2] < 1e-8
    assert errors[2] < 1e-2 * errors[0]


def test_tolerances_that_can_not_be_met_end_the_run():
    law = Torque(lambda t: np.array([np.sign(np.sin(1e5 * t)), 0.0]))
    with pytest.raises(
        SimulationError, match=r"stopped at t = 0 s: the closed loop is unstable, or it is too stiff: rtol = 0"
    ) as e:
        flat_simulate(ARM, law, [0.1, 0.2], [0.0, 0.0], 1.0, 0.5, method=gc.integrators.Adaptive(rtol=0.0, atol=1e-19))
    assert len(e.value.run.t) == 1


def test_sampled_control_holds_the_torque():
    law = law_of(ARM)
    q0, v0 = start_of(law)
    run = gc.simulate(ARM, law, q0, v0, 0.5, 1e-3, control_dt=0.01)
    held = run.tau[:-1].reshape(50, 10, 2)
    assert (held == held[:, :1]).all()
    assert (np.diff(held[:, 0], axis=0) != 0.0).any()
    np.testing.assert_array_equal(held[7, 0], law(0.07, run.q[70], run.v[70], None).tau)
    fine = gc.simulate(ARM, law, q0, v0, 0.5, 1e-3)
    finer = gc.simulate(ARM, law, q0, v0, 0.5, 1e-3, control_dt=1e-3)
    assert np.abs(run.q - fine.q).max() > np.abs(finer.q - fine.q).max() > 0.0


def test_adaptive_state_in_sampled_control():
    """Between samples z moves at the held rate: z_{k+1} = z_k + control_dt z_rate."""
    reference = Sinusoids(ARM, [0.0, 0.0], 0.4, 0.5)
    law = controllers.SlotineLi(ARM, reference, 4.0, 5.0)
    run = gc.simulate(ARM.with_payload(1.0), law, [0.1, 0.2], reference(0.0).v, 0.2, 1e-3, control_dt=0.02)
    for k in (0, 20, 100):
        rate = law(run.t[k], run.q[k], run.v[k], run.z[k]).z_rate
        np.testing.assert_allclose(run.z[k + 20], run.z[k] + 0.02 * rate, rtol=1e-12, atol=1e-14)


def test_monitors_hold_on_a_sound_loop_and_see_a_wrong_integrator_step():
    law = law_of(PANDA)
    run = gc.simulate(PANDA, law, *start_of(law), 0.5, 1e-3, options=gc.SimulationOptions(strict=True))
    assert run.ok
    assert set(run.monitors) == {"skew", "energy", "lyapunov", "group"}
    assert run.monitors["energy"].worst < 1e-9
    coarse = gc.simulate(PANDA, law, *start_of(law), 0.5, 2.5e-2, options=gc.SimulationOptions(method="MK2"))
    assert coarse.monitors["energy"].ok is None  # by truncation error


def test_energy_balance_with_friction_and_external_wrenches():
    wrench = np.array([0.1, -0.2, 0.3, 4.0, 5.0, -6.0])

    def f_ext(t, q, v):
        out = np.zeros((FLOATING.nbodies, 6))
        out[1] = wrench * np.sin(5.0 * t)
        return out

    plant = gc.Plant(FLOATING, friction=gc.Friction(0.2), f_ext=f_ext)
    law = law_of(FLOATING)
    run = gc.simulate(plant, law, *start_of(law), 0.1, 1e-3)
    assert run.monitors["energy"].worst < 2e-7
    blind = gc.Plant(FLOATING, friction=gc.Friction(0.2))
    object.__setattr__(
        plant, "_external_power", blind._external_power
    )  # the wrench acts, but its power is missing in the balance
    assert gc.simulate(plant, law, *start_of(law), 0.1, 1e-3).monitors["energy"].ok is False


def test_group_residual_stays_at_round_off():
    run = gc.simulate(
        FLOATING, Torque(lambda t: np.zeros(FLOATING.nv)), FLOATING.neutral(), np.ones(FLOATING.nv), 0.3, 1e-3
    )
    assert 0.0 < run.monitors["group"].worst < 1e-12


def test_skew_monitor_sees_a_controller_on_the_plain_coriolis_matrix():
    law = law_of(PANDA)
    law.coriolis_matrix = lambda q, v: gc.papers.factored.coriolis_matrix(PANDA, q, v, form="plain")
    run = gc.simulate(PANDA, law, *start_of(law), 0.01, 1e-3)
    assert run.monitors["skew"].worst > 1e-3
    with pytest.raises(
        SimulationError, match=r"strict: monitor 'skew' at t = 0.*asymmetry of Mdot - 2C.*limit 1e-10"
    ) as caught:
        gc.simulate(PANDA, law, *start_of(law), 0.01, 1e-3, options=gc.SimulationOptions(strict=True))
    assert len(caught.value.run.t) >= 1


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("form", ["ploen", "christoffel", "plain"])
def test_the_residual_of_skewness_is_what_it_says(form):
    """|N + N^T|, N = Mdot - 2C, over max(|Mdot|, 2 |C|, |M| |v|), by numpy."""
    q, v = FLOATING.random_configuration(np.random.default_rng(4)), np.linspace(-1.0, 2.0, FLOATING.nv)
    M, Mdot, _, _ = FLOATING.terms(q, v)
    C = gc.papers.factored.coriolis_matrix(FLOATING, q, v, form=form)
    N = Mdot - 2.0 * C
    size = max(np.abs(x).max() for x in (Mdot, 2.0 * C, np.abs(M).max() * v))
    result = skew_residual(M, Mdot, C, v)
    assert result == pytest.approx(np.abs(N + N.T).max() / size, rel=1e-12, abs=1e-15)
    assert (result > 1e-3) == (form == "plain")
    assert skew_residual(M.tolist(), Mdot.T, 0.5 * Mdot, v) < 1e-15
    assert skew_residual(M, Mdot, np.full_like(C, np.nan), v) == np.inf
    for bad, entry in zip((np.nan, np.inf, -np.inf), ((0, 1), (1, 0), (1, 1))):  # a single entry, on either side
        for k in (1, 2):
            arrays = [M.copy(), Mdot.copy(), C.copy()]
            arrays[k][entry] = bad
            assert skew_residual(*arrays, v) == np.inf
    assert skew_residual(0.0 * M, 0.0 * M, 0.0 * C, v) == 0.0
    if form != "plain":
        law = law_of(FLOATING, form=form)
        runs = [gc.simulate(FLOATING, law, q, v, 1e-3, 1e-3)]
        law.coriolis_matrix = lambda q, v: FLOATING.coriolis_matrix(q, v, form)
        runs.append(gc.simulate(FLOATING, law, q, v, 1e-3, 1e-3))
        assert max(run.monitors["skew"].worst for run in runs) < 1e-14


def test_lyapunov_monitor_sees_a_wrong_model():
    law = law_of(PANDA)
    loaded = PANDA.with_payload(3.0, (0, 0, 0.2), 0.01 * np.eye(3))
    run = gc.simulate(loaded, law, law.reference(0.0).q, law.reference(0.0).v, 0.3, 1e-3)
    assert run.monitors["lyapunov"].ok is False
    assert run.success
    assert run.ok is False
    assert "VIOLATED" in run.summary()


def test_round_off_about_zero_is_no_growth():
    """On the reference with the true model V is zero up to rounding, which must not count as a violation."""
    law = law_of(PANDA)
    run = gc.simulate(PANDA, law, *law.reference(0)[:2], 0.3, 1e-3)
    assert 0.0 < run.signals["lyapunov"].max() < 1e-16
    assert run.ok, run.summary()


def test_a_load_that_changes_in_time():
    """The arm is held until the load arrives; the energy of the load does not count as drift."""
    loaded = PANDA.with_payload(2.0, (0, 0, 0.1), 0.01 * np.eye(3))
    plant = gc.Plant(PANDA, changes=[(0.2, loaded)])
    q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    K = np.diag(PANDA.mass_matrix(q0))
    law = controllers.PDGravity(PANDA, q0, 100.0 * K, 20.0 * K)
    run = gc.simulate(plant, law, q0, np.zeros(7), 0.5, 1e-3)
    assert np.abs(run.q[:201] - q0).max() < 1e-10
    assert np.abs(run.q[-1] - q0).max() > 1e-3
    assert run.monitors["energy"].ok


def test_a_change_between_samples_acts_at_its_time():
    """After the change, the run equals one with the changed plant that starts from the state reached there."""
    loaded = ARM.with_payload(2.0, (0.3, 0, 0), 0.1 * np.eye(3))
    tau = Torque(lambda t: np.array([3.0, np.sin(t)]))
    q0, v0 = np.array([0.3, -0.2]), np.array([0.5, 0.0])
    before = gc.simulate(ARM, tau, q0, v0, 0.25, 1e-3)
    after = gc.simulate(loaded, Torque(lambda t: tau.tau(t + 0.25)), before.q[-1], before.v[-1], 0.25, 1e-3)
    plant = gc.Plant(ARM, changes=[(0.25, loaded)])
    for method, dt in (("MK4", 1e-3), ("MK4", 0.1), ("MK54", 0.1)):
        options = {"rtol": 1e-9, "atol": 1e-11} if method == "MK54" else {}
        run = gc.simulate(plant, tau, q0, v0, 0.5, dt, **grouped(method=method, **options))
        np.testing.assert_allclose(run.q[-1], after.q[-1], atol=1e-8 if dt < 0.1 or options else 1e-3)
    assert plant.at(0.25).robot is loaded
    assert plant.at(0.2499).robot is ARM


def test_a_plant_keeps_what_a_subclass_and_its_arguments_add_when_it_changes():
    class Spring(gc.Plant):
        def net_torque(self, t, q, v, tau, x):
            return super().net_torque(t, q, v, tau - 5.0 * q, x)

    wrench = np.ones((ARM.nbodies, 6))
    same = ARM.with_parameters(ARM.parameters)
    for make in (Spring, lambda *a, **k: gc.Plant(*a, f_ext=lambda t, q, v: wrench, friction=gc.Friction(0.3), **k)):
        ends = [
            gc.simulate(make(ARM, changes=c), Torque(lambda t: np.zeros(2)), [0.3, 0.3], [0, 0], 0.2, 1e-3).q[-1]
            for c in ((), [(0.1, same)])
        ]
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)


def sprung(robot, stiffness, rest):
    joints = tuple(replace(j, stiffness=stiffness, rest=rest) if j.dof == 1 else j for j in robot.joints)
    return replace(robot, joints=joints)


def test_springs_of_the_model_are_a_pendulums_and_their_work_is_counted():
    """Against scipy on stiffness (q - rest); then taken away at a change."""
    robot, tau = sprung(ARM, 8.0, 0.3), Torque(lambda t: np.array([np.sin(t), 0.5]))
    run = gc.simulate(gc.Plant(robot, changes=[(0.5, ARM)]), tau, [0.3, -0.4], [0.1, 0.2], 1.0, 1e-3)

    def field(t, y, stiffness):
        q, v = y[:2], y[2:]
        M, _, C, g = ARM.terms(q, v)
        return np.concatenate((v, np.linalg.solve(M, tau.tau(t) - stiffness * (q - 0.3) - C @ v - g)))

    y = [0.3, -0.4, 0.1, 0.2]
    for begin, stiffness in ((0.0, 8.0), (0.5, 0.0)):
        span = begin, begin + 0.5
        y = solve_ivp(field, span, y, method="DOP853", rtol=1e-12, atol=1e-12, args=(stiffness,)).y[:, -1]
        np.testing.assert_allclose(np.concatenate((run.q, run.v), 1)[round(1000 * span[1])], y, atol=2e-9)
    assert run.monitors["energy"].ok


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(np.nan, ARM)], "changes: expected a finite time and a geomctrl.Robot, got nan"),
        ([(1.0, None)], "changes: expected a finite time and a geomctrl.Robot, got 1.0 and None"),
        ([0.5], r"changes: expected \(time, robot\) pairs"),
        (ARM, r"changes: expected \(time, robot\) pairs"),
        ([(1.0, models.scara())], "changes: the robot from t = 1 on has other joints than the first"),
        ([(1.0, gc.Robot.build([gc.Body("a", None, gc.Joint.revolute((1, 0, 0)), None, ARM.parameters[0]),
                                gc.Body("b", "a", gc.Joint.revolute((1, 0, 0)), None, ARM.parameters[1])]))],
         "has other joints than the first"),
    ],
)  # fmt: skip
def test_changes_are_checked(changes, message):
    with pytest.raises(ArgumentError, match=message):
        gc.Plant(ARM, changes=changes)


def test_a_controller_that_fails_leaves_the_run_so_far():
    def tau(t):
        return np.zeros(2) if t < 0.05 else np.linalg.inv(np.zeros((2, 2)))

    text = r"t = 0.049 s: LinAlgError in the closed loop \(test_loop.py, line \d+, in tau\): Singular matrix"
    with pytest.raises(SimulationError, match=text) as caught:
        gc.simulate(ARM, Torque(tau), [0.1, 0.1], [0.0, 0.0], 1.0, 1e-3)
    assert len(caught.value.run.t) == 50
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)


def test_an_adaptive_method_gives_an_unstable_loop_up():
    pushy = Torque(None)
    pushy.__class__ = type("Pushy", (Torque,), {"__call__": lambda self, t, q, v, z: gc.Command(1e3 * (v + q))})
    with pytest.raises(SimulationError, match="unstable, or it is too stiff: more than 10000 steps") as caught:
        gc.simulate(ARM, pushy, [0.1, 0.1], [0.1, 0.0], 5.0, 1e-2, options=gc.SimulationOptions(method="MK54"))
    assert len(caught.value.run.t) >= 1


class Scripted(Monitor):
    """A monitor that measures the given values."""

    description = "as told"

    def __init__(self, name, values, limit=1.0):
        self.name, self.limit, self.values = name, limit, iter(values)

    def measure(self, sample):
        return next(self.values)


def test_the_worst_of_a_monitor_is_never_forgotten():
    nan = [0.0, np.nan, 0.0, 0.5]
    monitors = [Scripted("nan", nan), Scripted("peak", [0.1, 7.0, 2.0, 3.0]), Scripted("low", [-5.0, -3.0, -4.0, -9.0])]
    run = gc.simulate(ARM, Torque(lambda t: np.zeros(2)), [0, 0], [0, 0], 0.3, 0.1, monitors=monitors)
    assert np.isnan(run.monitors["nan"].worst)
    assert run.monitors["nan"].t_worst == pytest.approx(0.1)
    assert not run.monitors["nan"].ok
    assert (run.monitors["peak"].worst, run.monitors["peak"].ok) == (7.0, False)
    assert (run.monitors["low"].worst, run.monitors["low"].ok) == (-3.0, True)
    with pytest.raises(SimulationError, match=r"strict: monitor 'nan' at t = 0\.1 s"):
        flat_simulate(
            ARM, Torque(lambda t: np.zeros(2)), [0, 0], [0, 0], 0.3, 0.1, monitors=[Scripted("nan", nan)], strict=True
        )


@pytest.mark.parametrize("kind", [type(m) for m in default_monitors()])
@pytest.mark.parametrize("limit", [np.nan, np.inf, -1e-12, "1e-9", None, True, [1e-9]], ids=repr)
def test_a_limit_that_nothing_exceeds_or_everything_is_refused(kind, limit):
    with pytest.raises(ArgumentError, match=r"^limit: expected a finite number, not negative, got"):
        kind(limit)


@pytest.mark.parametrize("limit", [np.nan, "1e-9", None, True, [1e-9]], ids=repr)
def test_limits_are_checked_where_a_run_begins(limit):
    own, skew = Scripted("own", [0.0] * 9, limit), Skew()
    skew.limit = limit
    for monitor in (own, skew):
        with pytest.raises(ArgumentError, match=f"^monitors: limit of '{monitor.name}': expected a finite number, got"):
            gc.simulate(ARM, Torque(lambda t: np.zeros(2)), [0, 0], [0, 0], 0.3, 0.1, monitors=[monitor])


def test_limits_may_be_negative_or_infinite_where_they_mean_something():
    """A monitor of a distance that must be kept (measured as minus the distance), and a signal that is only
    recorded.
    """
    monitors = [Scripted("distance", [-0.5, -0.3, -0.2, -0.4], -0.25), Scripted("sum", [0.0, 1.0, 2.0, 3.0], np.inf)]
    run = gc.simulate(ARM, Torque(lambda t: np.zeros(2)), [0, 0], [0, 0], 0.3, 0.1, monitors=monitors)
    assert [m.ok for m in run.monitors.values()] == [False, True]


def test_a_run_without_samples_says_that_nothing_was_measured():
    with pytest.raises(SimulationError) as caught:
        gc.simulate(ARM, Torque(lambda t: np.full(2, np.nan)), [0.1, 0.1], [0.0, 0.0], 1.0, 1e-3)
    assert "skew: asymmetry of Mdot - 2C, error of C v, relative: not measured" in caught.value.run.summary()


def test_the_last_step_ends_at_t_end():
    law = law_of(ARM)
    run = gc.simulate(ARM, law, *start_of(law), 0.05, 0.02)
    np.testing.assert_allclose(run.t, [0.0, 0.02, 0.04, 0.05])
    fine = gc.simulate(ARM, law, *start_of(law), 0.05, 1e-3)
    assert np.abs(run.q[-1] - fine.q[-1]).max() < 1e-4 < np.abs(fine.q[-1] - fine.q[-11]).max()


def test_skew_is_judged_with_the_controllers_own_model():
    law = law_of(PANDA)
    law.coriolis_matrix = PANDA.coriolis_matrix
    loaded = PANDA.with_payload(3.0, (0, 0, 0.2), 0.01 * np.eye(3))
    run = gc.simulate(loaded, law, *start_of(law), 0.02, 1e-3)
    assert run.monitors["skew"].worst < 1e-14


def test_energy_lost_before_a_change_is_remembered_and_height_hides_none():
    coarse = {"t_end": 0.5, "dt": 2.5e-2, "method": "MK2"}
    law = law_of(PANDA)
    plant = gc.Plant(PANDA, changes=[(0.25, PANDA.with_payload(0.1))])
    lost = gc.simulate(plant, law, *start_of(law), **grouped(**coarse)).monitors["energy"].values
    assert lost[11] > 0.5 * lost[10] > 1e-6
    high = gc.Robot.from_screws(
        [[0, 1, 0, -1e4, 0, 0]],
        [se3.exp([0, 0, 0, 0, 0, 1e4])],
        inertias=[inertia.from_com(1.0, (0, 0, -0.5), 0.1 * np.eye(3))],
    )
    low = high.with_gravity((0, 0, -9.81))
    assert (
        gc.simulate(low, Torque(lambda t: np.zeros(1)), [1.0], [0.0], **grouped(**coarse)).monitors["energy"].ok is None
    )


def test_a_signal_may_come_later_but_not_change_its_shape():
    class Late(Torque):
        def __call__(self, t, q, v, z):
            signals = {"late": t * np.ones(2)} if t > 0.049 else {}
            return gc.Command(np.zeros(2), None, signals)

    late = gc.simulate(ARM, Late(None), [0.1, 0.1], [0, 0], 0.1, 0.01).signals["late"]
    assert np.isnan(late[:5]).all()
    np.testing.assert_allclose(late[5:, 0], np.arange(5, 11) / 100)
    grown = Torque(None)
    grown.__class__ = type("Grown", (Torque,), {
        "__call__": lambda self, t, q, v, z: gc.Command(np.zeros(2), None, {"x": np.zeros(2 if t > 0.05 else 3)})
    })  # fmt: skip
    with pytest.raises(SimulationError, match=r"signal 'x' had shape \(3,\), got \(2,\) at t = 0.06 s"):
        gc.simulate(ARM, grown, [0.1, 0.1], [0, 0], 0.1, 0.01)


class Observer(Torque):
    """A law whose state is a rotation with the angular velocity of the joint."""

    def __init__(self, z0, group):
        self.z0, self.group = z0, group

    def start(self):
        return self.z0

    def __call__(self, t, q, v, z):
        return gc.Command(np.zeros(2), np.array([v[0], 0.0, v[1]]))


def test_a_controllers_state_may_live_on_a_group():
    run = gc.simulate(ARM, Observer(np.eye(3), SO3()), [0.1, 0.2], [2.0, -1.0], 1.0, 1e-2)
    assert run.z.shape == (101, 3, 3)
    assert SO3().residual(run.z).max() < 1e-14
    fine = gc.simulate(ARM, Observer(np.eye(3), SO3()), [0.1, 0.2], [2.0, -1.0], 1.0, 1e-3)
    assert np.linalg.norm(SO3().log(fine.z[-1])) > 1.0
    np.testing.assert_allclose(run.z[-1], fine.z[-1], atol=1e-4)


@pytest.mark.parametrize(
    ("z0", "message"),
    [
        (None, r"controller: its state is in SO3\(\), but start\(\) returned None"),
        (2.0 * np.eye(3), r"controller: expected start\(\) to return an element of SO3\(\)"),
        (np.zeros(3), r"controller.start\(\): expected shape \(\.\.\., 3, 3\), got \(3,\)"),
    ],
)
def test_a_start_off_the_group_is_refused(z0, message):
    with pytest.raises(ArgumentError, match=message):
        gc.simulate(ARM, Observer(z0, SO3()), [0.1, 0.2], [2.0, -1.0], 1.0, 1e-2)


def test_an_unstable_loop_ends_with_a_message_and_the_run_so_far():
    class Pushy(Torque):
        def __call__(self, t, q, v, z):
            return gc.Command(1e3 * v)

    with pytest.raises(
        SimulationError, match=r"stopped at t = .* the closed loop is unstable, or dt = 0.01 s is too long"
    ) as caught:
        gc.simulate(ARM, Pushy(None), [0.1, 0.1], [0.1, 0.0], 5.0, 1e-2)
    run = caught.value.run
    assert not run.success
    assert len(run.t) > 1
    assert np.isfinite(run.q).all()
    assert np.isfinite(run.tau).all()
    assert run.reason in str(caught.value)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (lambda: gc.Command(np.zeros(3)), r"expected tau, an array of 2 finite numbers, at t = 0 s, got shape \(3,\)"),
        (lambda: gc.Command(np.array([np.nan, 0.0])), "array of 2 finite numbers, at t = 0 s, got .*nan"),
        (lambda: np.zeros(2), "expected a geomctrl.Command"),
        (
            lambda: gc.Command(np.zeros(2), np.zeros(1)),
            r"expected no z_rate, as there is no state, at t = 0 s, got shape \(1,\)",
        ),
        (lambda: gc.Command([0.0, 0.0]), r"array of 2 finite numbers, at t = 0 s, got \[0.0, 0.0\]"),
        (lambda: gc.Command(np.zeros(2, complex)), "array of 2 finite numbers, at t = 0 s, got array"),
        (lambda: gc.Command(np.zeros(2), None, {"note": "hi"}), "signal 'note': expected numbers, got 'hi'"),
    ],
)
def test_what_a_controller_returns_is_checked(command, message):
    class Bad(Torque):
        def __call__(self, t, q, v, z):
            return command()

    with pytest.raises(SimulationError, match=message):
        gc.simulate(ARM, Bad(None), [0.0, 0.0], [0.0, 0.0], 1.0, 1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dt": 0.0}, "dt: expected a positive number of seconds, got 0.0"),
        ({"dt": np.nan}, "dt: expected a positive"),
        ({"t_end": -1.0}, "t_end: expected a positive"),
        ({"dt": 2.0}, "dt: expected a step no longer than t_end = 1 s, got 2"),
        ({"q0": [0.0]}, r"q0: expected shape \(..., 2\), got \(1,\)"),
        ({"v0": [0.0, np.inf]}, r"v0: expected finite numbers, got inf at index \[1\]"),
        ({"v0": ["1", "2"]}, "v0: expected real numbers"),
        ({"v0": np.zeros((3, 2))}, r"v0: expected one velocity \(2,\), got shape \(3, 2\)"),
        ({"control_dt": np.nan}, "control_dt: expected a positive number of seconds, got nan"),
        ({"control_dt": "a"}, "control_dt: expected a positive number of seconds, got 'a'"),
        ({"monitors": 5}, "monitors: expected 'default', None or Monitors, got 5"),
        ({"monitors": [Skew(1e-3), Skew()]}, "monitors: 2 have the name 'skew'"),
        (
            {"controller": None},
            r"controller: expected a .*Controller, which is called with \(t, q, v, z\), got None",
        ),
        ({"controller": Torque}, r"controller: expected a geomctrl.Controller, .*, got <class"),
        ({"controller": lambda t, q, v: q}, r"controller: expected .* \(t, q, v, z\), got .*, called with \(t, q, v\)"),
        ({"t_end": 1e6, "dt": 1e-8}, "every: .* samples are more than the memory holds"),
        ({"control_dt": 2.5e-4}, "control_dt: expected a multiple of dt = 0.001 s, got 0.00025"),
        ({"monitors": "all"}, "monitors: expected 'default', None or Monitors, got 'all'"),
        ({"monitors": [3]}, "monitors: expected geomctrl.monitors.Monitor, got 3"),
        ({"every": 0}, "every: expected a positive integer, got 0"),
        ({"progress": "yes"}, "progress: expected a function of the fraction done, .* got 'yes'"),
        ({"method": "MK4", "rtol": 1e-6}, "method: expected an embedded pair"),
        ({"method": "MK54", "atol": -1.0}, "atol: expected a number or shape"),
        ({"plant": "panda"}, "plant: expected a geomctrl.Plant or a Robot, got 'panda'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    inputs = {
        "plant": ARM,
        "controller": Torque(lambda t: np.zeros(2)),
        "q0": [0.0, 0.0],
        "v0": [0.0, 0.0],
        "t_end": 1.0,
        "dt": 1e-3,
    }
    with pytest.raises(ArgumentError, match=message):
        gc.simulate(**grouped(**inputs | arguments))


def test_runs_save_and_load(tmp_path):
    reference = Sinusoids(ARM, [0.0, 0.0], 0.4, 0.5)
    law = controllers.SlotineLi(ARM, reference, 4.0, 5.0)
    run = gc.simulate(ARM, law, [0.1, 0.2], reference(0.0).v, 0.1, 1e-3, options=gc.SimulationOptions(every=7))
    np.testing.assert_allclose(run.t, [*np.arange(0, 0.1, 0.007), 0.1], atol=1e-15)
    back = gc.Run.load(run.save(tmp_path / "deep" / "run.npz"))
    for name in ("t", "q", "v", "tau", "z"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name))
    assert back.signals.keys() == run.signals.keys()
    assert back.summary().splitlines()[-4:] == run.summary().splitlines()[-4:]
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["run.npz"]
    np.testing.assert_array_equal(back.tracking_error(), run.tracking_error())
    again = gc.Run.load(back.save(tmp_path / "again.npz"), ARM)
    assert again.summary() == run.summary()
    whole = (tmp_path / "again.npz").read_bytes()
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name, content in (("a", b"PK"), ("b", whole[:-100]), ("c", (tmp_path / "array.npy").read_bytes())):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ArgumentError, match="is not a saved run"):
            gc.Run.load(tmp_path / name)
    with pytest.raises(ArgumentError, match=r"after: expected a time before the run's last, 0.1 s, got 7"):
        run.tracking_rms(after=7)


def test_a_loaded_run_on_a_group_needs_its_robot(tmp_path):
    law = law_of(FLOATING)
    run = gc.simulate(FLOATING, law, *start_of(law), 0.01, 1e-3)
    path = run.save(tmp_path / "run.npz")
    with pytest.raises(ArgumentError, match="was loaded without a plant"):
        gc.Run.load(path).tracking_error()
    np.testing.assert_array_equal(gc.Run.load(path, FLOATING).tracking_error(), run.tracking_error())


def test_tracking_error_is_measured_on_the_group():
    law = law_of(FLOATING)
    run = gc.simulate(FLOATING, law, *start_of(law), 0.05, 1e-3)
    np.testing.assert_allclose(run.tracking_error()[0], 0.2, atol=1e-12)
    rms = run.tracking_rms(after=0.04)
    np.testing.assert_allclose(rms, np.sqrt((run.tracking_error()[40:] ** 2).mean(0)))


def test_monitors_of_ones_own():
    class Speed(Monitor):
        name, what, limit = "speed", "largest joint speed", 0.5

        def measure(self, sample):
            return float(np.abs(sample.v).max())

    drop = Torque(lambda t: np.zeros(2))
    run = gc.simulate(ARM, drop, [1.0, 0.0], [0.0, 0.0], 0.5, 1e-3, monitors=[*default_monitors(), Speed()])
    assert run.monitors["speed"].worst == pytest.approx(np.abs(run.v).max())
    assert run.monitors["speed"].ok is False
    assert "lyapunov" not in run.monitors  # the controller has no property to watch
    assert isinstance(default_monitors()[0], Skew)


def test_progress_reports_fractions():
    seen = []
    gc.simulate(ARM, Torque(lambda t: np.zeros(2)), [0.1, 0.0], [0.0, 0.0], 0.2, 1e-3, progress=seen.append)
    assert seen[0] == 0.0
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gc.Friction(viscous=-1.0), "viscous: expected a friction coefficient >= 0"),
        (lambda: gc.Friction(smoothing=0.0), "smoothing: expected a positive speed, got 0.0"),
        (
            lambda: gc.Plant(ARM, friction="urdf"),
            "friction: expected a geomctrl.Friction .*, 'model' or None, got 'urdf'",
        ),
        (
            lambda: gc.Plant(ARM, friction=gc.Friction([1.0, 2.0, 3.0])),
            r"friction: viscous: .*\(2,\) numbers, got shape \(3,\)",
        ),
        (lambda: gc.Plant(ARM, changes=[(1.0, PANDA)]), "changes: the robot from t = 1 on has other joints"),
    ],
)
def test_plants_that_can_not_be(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_friction_is_linear_in_its_parameters():
    friction, v = gc.Friction([0.1, 0.2], 0.3, smoothing=0.05), np.array([0.4, -0.02])
    np.testing.assert_allclose(friction.columns(v) @ friction.parameters(2), friction.torque(v), rtol=1e-14)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_law_may_be_a_function(compiled):
    robot = models.two_link()

    def law(t, q, v, z):
        return gc.Command(robot.gravity_force(q) - 20.0 * q - 8.0 * v)

    options = gc.SimulationOptions(compiled=compiled)
    run = gc.simulate(robot, law, [0.3, -0.2], [0.0, 0.0], 0.2, 1e-3, options=options)
    same = controllers.PDGravity(robot, [0.0, 0.0], kp=20.0, kd=8.0)
    np.testing.assert_allclose(run.q, gc.simulate(robot, same, [0.3, -0.2], [0.0, 0.0], 0.2, 1e-3).q, atol=1e-13)
    np.testing.assert_allclose(gc.compile(law, robot)(0.1, run.q[7], run.v[7], None).tau, run.tau[7], atol=1e-13)
