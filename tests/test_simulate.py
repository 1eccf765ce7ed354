"""The closed loop: accuracy, both kinds of control, monitors, what a failed run keeps."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.monitors import Monitor, Skew, default_monitors
from geomctrl.references import Sinusoids

ARM = models.two_link()
PANDA = models.panda()
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


@pytest.mark.parametrize("method", ["MK2", "CG3", "MK4"])
def test_order_of_the_closed_loop(method):
    """A floating tree with a controller at every stage: the error falls with the method's order."""
    law = law_of(FLOATING)
    q0, v0 = start_of(law)
    ends = {n: gc.simulate(FLOATING, law, q0, v0, 0.2, 0.2 / n, method, monitors=None) for n in (40, 80, 640)}
    errors = [np.linalg.norm(FLOATING.difference(ends[n].q[-1], ends[640].q[-1])) for n in (40, 80)]
    order = int(method[-1])
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize(("dt", "control_dt"), [(0.1, None), (0.02, 0.02)])
def test_adaptive_steps_between_samples_keep_the_tolerance(dt, control_dt):
    """On a floating tree, against fixed steps of a millisecond."""
    law = law_of(FLOATING)
    q0, v0 = start_of(law)
    exact = gc.simulate(FLOATING, law, q0, v0, 1.0, 1e-3, "MK8", control_dt, monitors=None, every=round(1e3 * dt))
    errors = []
    for rtol in (1e-4, 1e-7, 1e-10):
        run = gc.simulate(FLOATING, law, q0, v0, 1.0, dt, "MK54", control_dt, rtol=rtol, atol=rtol)
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
        SimulationError, match=r"stopped at t = 0 s: the closed loop is unstable, or too stiff: rtol = 0"
    ) as e:
        gc.simulate(ARM, law, [0.1, 0.2], [0.0, 0.0], 1.0, 0.5, "MK54", rtol=0.0, atol=1e-19)
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
    run = gc.simulate(PANDA, law, *start_of(law), 0.5, 1e-3, strict=True)
    assert run.ok
    assert set(run.monitors) == {"skew", "energy", "lyapunov", "group"}
    assert run.monitors["energy"].worst < 1e-9
    coarse = gc.simulate(PANDA, law, *start_of(law), 0.5, 2.5e-2, "MK2")
    assert not coarse.monitors["energy"].ok


def test_energy_balance_with_friction_and_external_wrenches():
    wrench = np.array([0.1, -0.2, 0.3, 4.0, 5.0, -6.0])

    def f_ext(t, q, v):
        out = np.zeros((FLOATING.nbodies, 6))
        out[1] = wrench * np.sin(5.0 * t)
        return out

    plant = gc.Plant(FLOATING, friction=gc.Friction(0.2), f_ext=f_ext)
    law = law_of(FLOATING)
    run = gc.simulate(plant, law, *start_of(law), 0.5, 1e-3)
    assert run.monitors["energy"].worst < 2e-7
    blind = gc.Plant(FLOATING, friction=gc.Friction(0.2))
    object.__setattr__(plant, "power", blind.power)  # the wrench acts, but its power is not counted
    assert not gc.simulate(plant, law, *start_of(law), 0.5, 1e-3).monitors["energy"].ok


def test_group_residual_stays_at_round_off():
    run = gc.simulate(
        FLOATING, Torque(lambda t: np.zeros(FLOATING.nv)), FLOATING.neutral(), np.ones(FLOATING.nv), 1.0, 1e-3
    )
    assert 0.0 < run.monitors["group"].worst < 1e-12


def test_skew_monitor_sees_a_controller_on_the_plain_coriolis_matrix():
    law = law_of(PANDA)
    law.coriolis_matrix = lambda q, v: gc.factored.coriolis_matrix(PANDA, q, v, form="plain")
    run = gc.simulate(PANDA, law, *start_of(law), 0.01, 1e-3)
    assert run.monitors["skew"].worst > 1e-3
    with pytest.raises(
        SimulationError, match=r"strict: monitor 'skew' at t = 0.*asymmetry of Mdot - 2C.*limit 1e-10"
    ) as caught:
        gc.simulate(PANDA, law, *start_of(law), 0.01, 1e-3, strict=True)
    assert len(caught.value.run.t) >= 1


def test_lyapunov_monitor_sees_a_wrong_model():
    law = law_of(PANDA)
    loaded = PANDA.with_payload(3.0, (0, 0, 0.2), 0.01 * np.eye(3))
    run = gc.simulate(loaded, law, law.reference(0.0).q, law.reference(0.0).v, 0.3, 1e-3)
    assert not run.monitors["lyapunov"].ok
    assert run.success
    assert not run.ok
    assert "VIOLATED" in run.summary()


def test_round_off_about_zero_is_no_growth():
    """On the reference with the true model V is zero but for rounding, which must not count as a violation."""
    law = law_of(PANDA)
    run = gc.simulate(PANDA, law, *law.reference(0)[:2], 0.3, 1e-3)
    assert 0.0 < run.signals["lyapunov"].max() < 1e-16
    assert run.ok, run.summary()


def test_a_load_that_changes_in_time():
    """The arm is held until the load arrives; the energy it brings is not counted as drift."""
    loaded = PANDA.with_payload(2.0, (0, 0, 0.1), 0.01 * np.eye(3))
    plant = gc.Plant(PANDA, changes=[(0.2, loaded)])
    q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    K = np.diag(PANDA.mass_matrix(q0))
    law = controllers.PDGravity(PANDA, q0, 100.0 * K, 20.0 * K)
    run = gc.simulate(plant, law, q0, np.zeros(7), 0.5, 1e-3)
    assert np.abs(run.q[:201] - q0).max() < 1e-10
    assert np.abs(run.q[-1] - q0).max() > 1e-3
    assert run.monitors["energy"].ok


def test_an_unstable_loop_ends_with_a_message_and_the_run_so_far():
    class Pushy(Torque):
        def __call__(self, t, q, v, z):
            return gc.Command(1e3 * v)

    with pytest.raises(
        SimulationError, match=r"stopped at t = .* the closed loop is unstable, or dt = 0.01 s too long"
    ) as caught:
        gc.simulate(ARM, Pushy(None), [0.1, 0.1], [0.1, 0.0], 5.0, 1e-2)
    run = caught.value.run
    assert not run.success
    assert len(run.t) > 1
    assert np.isfinite(run.q).all()
    assert np.isfinite(run.tau).all()
    assert run.reason in str(caught.value)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (lambda: gc.Command(np.zeros(3)), r"expected 2 finite torques at t = 0 s, got shape \(3,\)"),
        (lambda: gc.Command(np.array([np.nan, 0.0])), "expected 2 finite torques at t = 0 s, got .*nan"),
        (lambda: np.zeros(2), "expected a geomctrl.Command"),
        (lambda: gc.Command(np.zeros(2), np.zeros(1)), r"expected z_rate of 0 numbers at t = 0 s, got shape \(1,\)"),
    ],
)
def test_what_a_controller_returns_is_checked(command, words):
    class Bad(Torque):
        def __call__(self, t, q, v, z):
            return command()

    with pytest.raises(SimulationError, match=words):
        gc.simulate(ARM, Bad(None), [0.0, 0.0], [0.0, 0.0], 1.0, 1e-3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dt": 0.0}, "dt: expected a positive number of seconds, got 0.0"),
        ({"dt": np.nan}, "dt: expected a positive"),
        ({"t_end": -1.0}, "t_end: expected a positive"),
        ({"dt": 2.0}, "dt: expected a step no longer than t_end = 1 s, got 2"),
        ({"q0": [0.0]}, r"q0: expected shape \(..., 2\), got \(1,\)"),
        ({"v0": [0.0, np.inf]}, "v0: expected 2 finite numbers"),
        ({"control_dt": 2.5e-4}, "control_dt: expected a multiple of dt = 0.001 s, got 0.00025"),
        ({"monitors": "all"}, "monitors: expected 'default', None or Monitors, got 'all'"),
        ({"monitors": [3]}, "monitors: expected geomctrl.monitors.Monitor, got 3"),
        ({"every": 0}, "every: expected a positive integer, got 0"),
        ({"rtol": 1e-6}, "rtol and atol need an embedded pair such as MK54; MK4 steps by h"),
        ({"method": "MK54", "atol": -1.0}, "atol a number or shape"),
        ({"plant": "panda"}, "robot: expected a geomctrl.Robot"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    given = {
        "plant": ARM,
        "controller": Torque(lambda t: np.zeros(2)),
        "q0": [0.0, 0.0],
        "v0": [0.0, 0.0],
        "t_end": 1.0,
        "dt": 1e-3,
    }
    with pytest.raises(ArgumentError, match=words):
        gc.simulate(**(given | arguments))


def test_runs_save_and_load(tmp_path):
    reference = Sinusoids(ARM, [0.0, 0.0], 0.4, 0.5)
    law = controllers.SlotineLi(ARM, reference, 4.0, 5.0)
    run = gc.simulate(ARM, law, [0.1, 0.2], reference(0.0).v, 0.1, 1e-3, every=7)
    np.testing.assert_allclose(run.t, [*np.arange(0, 0.1, 0.007), 0.1], atol=1e-15)
    back = gc.Run.load(run.save(tmp_path / "deep" / "run.npz"))
    for name in ("t", "q", "v", "tau", "z"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name))
    assert back.signals.keys() == run.signals.keys()
    assert back.summary().splitlines()[-4:] == run.summary().splitlines()[-4:]
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["run.npz"]
    (tmp_path / "broken.npz").write_bytes(b"PK")
    with pytest.raises(ArgumentError, match="is not a saved run"):
        gc.Run.load(tmp_path / "broken.npz")


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
    assert not run.monitors["speed"].ok
    assert "lyapunov" not in run.monitors  # the controller has none to watch
    assert isinstance(default_monitors()[0], Skew)


def test_progress_reports_fractions():
    seen = []
    gc.simulate(ARM, Torque(lambda t: np.zeros(2)), [0.1, 0.0], [0.0, 0.0], 0.2, 1e-3, progress=seen.append)
    assert seen[0] == 0.0
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gc.Friction(viscous=-1.0), "viscous: expected a number or"),
        (lambda: gc.Friction(smoothing=0.0), "smoothing: expected a positive speed, got 0.0"),
        (lambda: gc.Plant(ARM, friction="urdf"), "friction: expected a Friction, 'model' or None, got 'urdf'"),
        (
            lambda: gc.Plant(ARM, friction=gc.Friction([1.0, 2.0, 3.0])),
            r"friction: viscous: .*\(2,\) numbers, got shape \(3,\)",
        ),
        (lambda: gc.Plant(ARM, changes=[(1.0, PANDA)]), "changes: the robot from t = 1 on has other joints"),
    ],
)
def test_plants_that_can_not_be(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_friction_is_linear_in_its_parameters():
    friction, v = gc.Friction([0.1, 0.2], 0.3, smoothing=0.05), np.array([0.4, -0.02])
    np.testing.assert_allclose(friction.columns(v) @ friction.parameters(2), friction.torque(v), rtol=1e-14)
