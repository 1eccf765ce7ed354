"""Each controller satisfies its proof: V' as an identity at random states, V along closed-loop runs."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control import tracking
from geomctrl.control.references import Sinusoids, hold
from geomctrl.errors import ArgumentError, NameNotFoundError

RNG = np.random.default_rng(7)
ARM = models.panda()
TREE = testing.random_robot(np.random.default_rng(3), ["free", "spherical", "revolute", "cylindrical"], [-1, 0, 0, 2])
CHAIN = testing.random_robot(np.random.default_rng(4), ["revolute", "prismatic", "helical"], [-1, 0, 1])
FLOATING = testing.random_robot(
    np.random.default_rng(6), ["free", "revolute"], [-1, 0]
)  # small robots, whose loops compile fast
ROBOTS = {"arm": ARM, "tree": TREE, "chain": CHAIN}


def sway(robot, q0=None):
    """A reference that moves every coordinate."""
    rng = np.random.default_rng(5)
    q0 = robot.neutral() if q0 is None else q0
    n = robot.nv
    return Sinusoids(robot, q0, rng.uniform(0.1, 0.3, n), rng.uniform(0.1, 0.5, n), rng.uniform(0, 6, n))


def perturbed(robot, scale=0.3, seed=0):
    """The robot with other physical parameters: each body is heavier or lighter."""
    factors = 1.0 + scale * np.random.default_rng(seed).uniform(-1, 1, robot.nbodies)
    return robot.with_parameters(robot.parameters * factors[:, None])


def state(robot, seed, reference=None, t=0.4):
    rng = np.random.default_rng(seed)
    q = robot.neutral() if reference is None else reference(t).q
    return robot.integrate(q, 0.4 * rng.normal(size=robot.nv)), rng.normal(size=robot.nv)


def sliding_identity(controller, plant, t, q, v, z):
    """d/dt of 1/2 s . M s + 1/2 error . Gamma^-1 error, from M, Mdot and the plant's acceleration, without
    differences.
    """
    command = controller(t, q, v, z)
    a = plant.acceleration(t, q, v, command.tau)
    x = controller.sliding(t, q, v)
    M, Mdot = plant.robot.mass_matrix(q), plant.robot.mass_matrix_rate(q, v)
    rate = x.s @ M @ (a - x.a_ref) + 0.5 * x.s @ Mdot @ x.s
    if z is not None:
        rate += (z - controller.true_parameters(plant)) @ controller.Gamma_inverse @ command.z_rate
    return rate, np.abs(x.s) @ np.abs(command.tau)


@pytest.mark.parametrize("form", ["ploen", "christoffel", "adjoint"])
@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_passivity_identity_to_round_off(robot, form):
    controller = controllers.Passivity(robot, sway(robot), Lambda=3.0, K=4.0, form=form)
    for seed in range(5):
        q, v = state(robot, seed, controller.reference)
        rate, scale = sliding_identity(controller, gc.Plant(robot), 0.4, q, v, None)
        assert rate == pytest.approx(controller.lyapunov(0.4, q, v, None, gc.Plant(robot)).rate, abs=1e-11 * scale)


ADAPTIVE = {
    "links": {},
    "christoffel": {"form": "christoffel"},
    "adjoint": {"form": "adjoint"},
    "base": {"adapt": "base"},
    "some": {"adapt": ["body1", "body2"]},
    "friction": {"friction": gc.Friction(0.1, 0.2, smoothing=0.1)},
    "projected": {"minimum_mass": 0.01},
    "coupled": {"Gamma": "matrix"},
}


@pytest.mark.parametrize("options", ADAPTIVE.values(), ids=ADAPTIVE)
def test_slotine_li_identity_to_round_off(options):
    robot, plant = TREE, gc.Plant(perturbed(TREE), friction=gc.Friction(0.3, 0.4, smoothing=0.1))
    if "friction" not in options:
        plant = gc.Plant(plant.robot)
    if "adapt" in options:  # what is not adapted must be known
        pi = robot.parameters.copy()
        pi[1:3] = plant.robot.parameters[1:3]
        plant = gc.Plant(robot.with_parameters(pi))
    if "Gamma" in options:
        A = np.random.default_rng(1).normal(size=(10 * robot.nbodies,) * 2)
        options = {"Gamma": A @ A.T + np.eye(len(A))}
    controller = controllers.SlotineLi(robot, sway(robot), 3.0, 4.0, **options)
    for seed in range(5):
        q, v = state(robot, seed, controller.reference)
        z = controller.start() * (1.0 + 0.2 * np.random.default_rng(seed).normal(size=controller.start().shape))
        if controller.minimum_mass is not None:
            z[0] = 0.7 * controller.minimum_mass  # the projection is active in half of the states
        rate, scale = sliding_identity(controller, plant, 0.4, q, v, z)
        promised = controller.lyapunov(0.4, q, v, z, plant).rate
        assert rate == pytest.approx(promised, abs=1e-10 * scale)
        s = controller.sliding(0.4, q, v).s
        assert promised <= -s @ controller.K @ s + 1e-12


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_computed_torque_identity_to_round_off(robot):
    """w' = -Kd w - grad, so V' = w . w' + e . Kp e' = -w . Kd w."""
    controller = controllers.ComputedTorque(robot, sway(robot), kp=9.0, kd=6.0)
    for seed in range(5):
        q, v = state(robot, seed, controller.reference)
        command, error = controller(0.4, q, v, None), controller.error(0.4, q, v)
        a = robot.forward_dynamics(q, v, command.tau)
        rate = error.w @ (a - error.a_d) + error.e @ controller.kp @ error.e_rate
        promised = controller.lyapunov(0.4, q, v, None, gc.Plant(robot)).rate
        assert rate == pytest.approx(promised, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_pd_gravity_identity_to_round_off(robot):
    """d/dt of the kinetic energy is v . (tau - g), that of the spring e . Kp e'."""
    controller = controllers.PDGravity(robot, robot.neutral(), kp=30.0, kd=5.0)
    for seed in range(5):
        q, v = state(robot, seed)
        error = controller.error(0.0, q, v)
        tau = controller(0.0, q, v, None).tau
        rate = v @ (tau - robot.gravity_force(q)) + error.e @ controller.kp @ error.e_rate
        promised = controller.lyapunov(0.0, q, v, None, gc.Plant(robot)).rate
        assert rate == pytest.approx(promised, rel=1e-10, abs=1e-9 * (np.abs(v) @ np.abs(tau)))


def gains(robot):
    """K proportional to the inertia that each joint moves, so that no loop is stiff at 1 ms."""
    return 5.0 * np.diag(robot.mass_matrix(robot.neutral()))


@pytest.mark.parametrize(
    "robot",
    [CHAIN, *(pytest.param(robot, marks=pytest.mark.slow) for robot in (FLOATING, ARM, TREE))],
    ids=["chain", "floating", "arm", "tree"],
)
def test_promises_hold_in_closed_loop(robot):
    """V is positive definite, has the claimed rate, and falls along runs: four laws, on fixed and floating bases."""
    reference, K = sway(robot), gains(robot)
    laws = [
        controllers.PDGravity(robot, robot.neutral(), kp=K, kd=K),
        controllers.ComputedTorque(robot, reference, kp=9.0, kd=6.0),
        controllers.Passivity(robot, reference, 3.0, K),
    ]
    laws.append(controllers.SlotineLi(perturbed(robot), reference, 3.0, K))
    for law in laws:  # tests/testing/test_lyapunov_search.py has long searches with many seeds
        testing.assert_lyapunov(law, robot, states=5, search=100, runs=1)


def test_a_controller_on_the_plain_coriolis_matrix_is_caught():
    """V' = -s . K s needs Mdot - 2C skew; with the C of the plain recursion it is off by s . (Mdot - 2C) s / 2."""

    class Plain(controllers.Passivity):
        def __call__(self, t, q, v, z):
            x = self.sliding(t, q, v)
            C = gc.papers.factored.coriolis_matrix(self.robot, q, v, form="plain")
            M, g = self.robot.mass_matrix(q), self.robot.gravity_force(q)
            return gc.Command(M @ x.a_ref + C @ x.v_ref + g - self.K @ x.s)

    with pytest.raises(AssertionError, match="does not change as promised"):
        testing.assert_lyapunov(Plain(ARM, sway(ARM), 3.0, gains(ARM)), ARM, runs=0)


@pytest.mark.slow
def test_a_wrong_model_is_caught():
    """Passivity control with a load that is missing in its model violates its claim; the adaptive law does not."""
    loaded = ARM.with_payload(2.0, (0, 0, 0.1), 0.004 * np.eye(3))
    with pytest.raises(AssertionError, match="does not change as promised"):
        testing.assert_lyapunov(controllers.Passivity(ARM, sway(ARM), 3.0, gains(ARM)), loaded, runs=0)
    testing.assert_lyapunov(controllers.SlotineLi(ARM, sway(ARM), 3.0, gains(ARM)), loaded, states=5, runs=1)


def test_unmodelled_friction_is_caught():
    plant = gc.Plant(ARM, friction=gc.Friction(0.0, 2.0))
    with pytest.raises(AssertionError, match="does not change as promised"):
        testing.assert_lyapunov(controllers.ComputedTorque(ARM, sway(ARM)), plant, runs=0)
    law = controllers.ComputedTorque(ARM, sway(ARM), friction=plant.friction)
    testing.assert_lyapunov(law, plant, states=5, runs=0)


def test_adaptive_arm_tracks_with_a_load_it_does_not_know():
    """Slotine and Li's theorem: e -> 0 although the parameters need not converge."""
    rng = np.random.default_rng(2)
    q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    reference = Sinusoids(ARM, q0, 0.4, rng.uniform(0.2, 0.5, 7), start_at_rest=1.0)
    loaded = ARM.with_payload(2.0, (0, 0, 0.1), 0.004 * np.eye(3))
    law = controllers.SlotineLi(ARM, reference, 8.0, 8.0 * np.diag(ARM.mass_matrix(q0)), rate=20.0)
    run = gc.simulate(loaded, law, q0, np.zeros(7), 8.0, 2e-3)
    rms = np.linalg.norm(run.tracking_rms(after=6.0))
    assert run.ok, run.summary()
    assert rms < 0.2 * np.linalg.norm(run.tracking_error()[run.t < 2.0], axis=1).max()
    stored = gc.simulate(loaded, controllers.Passivity(ARM, reference, 8.0, law.K), q0, np.zeros(7), 8.0, 2e-3)
    assert rms < 0.1 * np.linalg.norm(stored.tracking_rms(after=6.0))


@pytest.mark.slow
def test_projection_keeps_masses_above_the_bound():
    """A light true robot and a heavy model: the estimates fall, but not below the bound."""
    robot = perturbed(CHAIN, 0.5)
    law = controllers.SlotineLi(robot, sway(CHAIN), 3.0, gains(CHAIN), minimum_mass=0.05, rate=30.0)
    light = CHAIN.with_parameters(0.3 * CHAIN.parameters)
    run = gc.simulate(light, law, *_start(law), 1.0, 1e-3)
    free = gc.simulate(
        light, controllers.SlotineLi(robot, sway(CHAIN), 3.0, gains(CHAIN), rate=30.0), *_start(law), 1.0, 1e-3
    )
    assert free.z[:, law.masses].min() < 0.05
    assert run.z[:, law.masses].min() > 0.025


def test_projection_fades_in_below_the_bound_and_keeps_the_proof():
    """Of the decrease of a mass all is removed at the bound, half at 3/4, nothing at half. What is removed is Gamma
    times a force on that mass alone, also where Gamma couples it to other parameters: only then V' becomes more
    negative.
    """
    A = np.random.default_rng(0).normal(size=(30, 30))
    masses = np.arange(0, 30, 10)
    A[np.ix_(masses, masses)] = 0.0
    Gamma = A + A.T + 40.0 * np.eye(30)
    law = controllers.SlotineLi(CHAIN, sway(CHAIN), Gamma=Gamma, minimum_mass=0.2)
    z, g = law.start(), np.zeros(30)
    g[10] = 1.0
    free = -Gamma @ g
    for mass, taken in ((0.3, 0.0), (0.2, 0.0), (0.15, 0.5), (0.1, 1.0), (0.05, 1.0)):
        z[10] = mass
        force = np.linalg.solve(Gamma, law._adaptation(g, z) - free)
        expected = np.zeros(30)
        expected[10] = taken
        np.testing.assert_allclose(force, expected, atol=1e-12)
    np.testing.assert_allclose(law._adaptation(-g, z), -free)  # nothing stops it from increasing


def test_default_gains_carry_the_units_of_what_they_adapt():
    """With all lengths c times as large, parameters scale by (1, c, c^2), and gains by the squares of these."""
    scale = np.tile([1.0] + [3.0] * 3 + [9.0] * 6, CHAIN.nbodies)
    larger = CHAIN.with_parameters(CHAIN.parameters.ravel() * scale)
    small, large = (np.diag(controllers.SlotineLi(r, sway(r)).Gamma) for r in (CHAIN, larger))
    np.testing.assert_allclose(large, scale**2 * small, rtol=1e-12)


@pytest.mark.parametrize("form", ["ploen", "christoffel", "adjoint"])
def test_laws_are_built_on_the_coriolis_matrix_they_are_given(form):
    friction = gc.Friction(0.3, 0.2)
    law = controllers.Passivity(TREE, sway(TREE), 3.0, 4.0, friction=friction, form=form)
    adaptive = controllers.SlotineLi(TREE, sway(TREE), 3.0, 4.0, friction=friction, form=form)
    q, v = state(TREE, 0, law.reference)
    x, terms = law.sliding(0.4, q, v), TREE.terms(q, v, form)
    tau = terms.M @ x.a_ref + terms.C @ x.v_ref + terms.g - 4.0 * x.s + friction.torque(v)
    for command in (law(0.4, q, v, None), adaptive(0.4, q, v, adaptive.start())):
        np.testing.assert_allclose(command.tau, tau, atol=1e-12 * np.abs(tau).max())
    assert np.abs(law.sliding(0.4, q, v).s).min() > 0.0


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_states_of_any_type_give_the_same_errors(robot):
    """Lists are evaluated without the kernels."""
    reference, Lambda, K = sway(robot), 3.0 * np.eye(robot.nv), np.eye(robot.nv)
    q, v = state(robot, 0, reference)
    desired, p = reference(0.4), robot.parameters.ravel().copy()
    given, listed = (q, v, desired), (q.tolist(), v.tolist(), gc.control.Desired(*(x.tolist() for x in desired)))
    for function, options in (
        (tracking.tracking_error, ()),
        (tracking.sliding_variables, (Lambda,)),
        (lambda r, *a: tracking.sliding_energy(r, perturbed(r), *a), (Lambda, K)),
        (lambda r, *a: tracking.adaptive_law(r, p, *a), (Lambda, K, "christoffel")),
    ):
        for x, y in zip(function(robot, *given, *options), function(robot, *listed, *options)):
            np.testing.assert_allclose(y, x, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(
    ("gain", "definite", "message"),
    [
        (0.0, True, "a positive definite gain, got smallest eigenvalue 0"),
        ([1.0, -1.0], True, "a positive definite gain, got smallest eigenvalue -1"),
        ([[1.0, 2.0], [2.0, 1.0]], False, "a positive semidefinite gain, got smallest eigenvalue -1"),
        ([[1.0, 0.5], [0.0, 1.0]], True, "a finite symmetric matrix"),
        (np.inf, True, "finite numbers, got inf"),
        (np.eye(3), True, r"a number, 2 numbers or a \(2, 2\) matrix, got shape \(3, 3\)"),
        ("a", True, r"real numbers of shape \(\.\.\.\), got 'a'"),
    ],
)
def test_gains_are_symmetric_and_definite(gain, definite, message):
    with pytest.raises(ArgumentError, match=f"kp: expected {message}"):
        tracking.gain_matrix("kp", gain, 2, definite)


def test_gains_from_numbers_and_matrices():
    for gain in (3.0, [3.0, 3.0], 3.0 * np.eye(2)):
        np.testing.assert_array_equal(tracking.gain_matrix("kp", gain, 2), 3.0 * np.eye(2))
    np.testing.assert_array_equal(tracking.gain_matrix("kp", 0.0, 2, definite=False), np.zeros((2, 2)))


def _start(law):
    desired = law.reference(0.0)
    rng = np.random.default_rng(0)
    return law.robot.integrate(desired.q, 0.3 * rng.normal(size=law.robot.nv)), desired.v


def test_base_parameters_give_the_same_torque():
    """Y_base p_base = Y p at any state with v_ref != v, with fewer columns, for both choices of C."""
    for form in ("ploen", "christoffel", "adjoint"):
        base = controllers.SlotineLi(ARM, sway(ARM), adapt="base", form=form)
        full = controllers.SlotineLi(ARM, sway(ARM), form=form)
        q, v = state(ARM, 1)
        a, b = base(0.3, q, v, base.start()), full(0.3, q, v, full.start())
        assert len(base.start()) < 70
        np.testing.assert_allclose(a.tau, b.tau, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: controllers.PDGravity(ARM, np.zeros(6)), ArgumentError, r"q_d: expected shape \(..., 7\), got \(6,\)"),
        (lambda: controllers.PDGravity(ARM, np.zeros(7), kp=-1.0), ArgumentError, "kp: expected a positive definite"),
        (lambda: controllers.ComputedTorque(ARM, sway(ARM), kd=np.ones(3)), ArgumentError, r"kd: .*got shape \(3,\)"),
        (lambda: controllers.ComputedTorque(ARM, 3.0), ArgumentError, "reference: expected a function"),
        (lambda: controllers.Passivity("panda", sway(ARM)), ArgumentError, "robot: expected a geomctrl.Robot"),
        (lambda: controllers.Passivity(ARM, sway(ARM), K=np.nan), ArgumentError, "K: expected finite numbers"),
        (
            lambda: controllers.SlotineLi(ARM, sway(ARM), adapt="all"),
            ArgumentError,
            "'base' or a list of body names, got 'all'",
        ),
        (lambda: controllers.SlotineLi(ARM, sway(ARM), adapt=["link9"]), NameNotFoundError, "no body named 'link9'"),
        (lambda: controllers.SlotineLi(ARM, sway(ARM), adapt="panda_link7"), ArgumentError, "a list of body names"),
        (
            lambda: controllers.SlotineLi(ARM, sway(ARM), Gamma=np.ones(5)),
            ArgumentError,
            "Gamma: expected a number, 70",
        ),
        (lambda: controllers.SlotineLi(ARM, sway(ARM), minimum_mass=3.0), ArgumentError, "minimum_mass: 3.0 is above"),
        (
            lambda: controllers.SlotineLi(ARM, sway(ARM), adapt="base", minimum_mass=0.1),
            ArgumentError,
            "base parameters mix bodies",
        ),
        (
            lambda: controllers.Passivity(ARM, sway(ARM), form="bogus"),
            ArgumentError,
            "form: expected one of 'ploen', .*bogus",
        ),
        (
            lambda: controllers.SlotineLi(ARM, sway(ARM), form="bogus"),
            ArgumentError,
            "form: expected one of 'ploen', .*bogus",
        ),
        (
            lambda: controllers.Passivity(ARM, sway(ARM), friction=0.3),
            ArgumentError,
            "friction: expected a geomctrl.F.*0.3",
        ),
        (
            lambda: controllers.SlotineLi(ARM, sway(ARM), friction="model"),
            ArgumentError,
            "friction: expected a geomctrl.Friction or another FrictionModel, or None, got 'model'",
        ),
        *(
            (
                lambda m=m: controllers.SlotineLi(ARM, sway(ARM), minimum_mass=m),
                ArgumentError,
                f"minimum_mass: expected a positive mass, got {m!r}",
            )
            for m in (np.nan, -1, 0, "a")
        ),
        (lambda: controllers.SlotineLi(ARM, sway(ARM), rate="a"), ArgumentError, "rate: expected a positive number"),
        (lambda: gc.Friction("a"), ArgumentError, "viscous: expected real numbers of shape .*, got 'a'"),
        (
            lambda: gc.Friction(0.0, -1.0),
            ArgumentError,
            "coulomb: expected a friction coefficient >= 0, a number or .*, got -1",
        ),
        (lambda: gc.Friction(smoothing="a"), ArgumentError, "smoothing: expected a positive speed, got 'a'"),
        (lambda: gc.Friction(smoothing=np.ones(2)), ArgumentError, "smoothing: expected a positive speed, got array"),
        (lambda: gc.Friction(smoothing=0.0), ArgumentError, "smoothing: expected a positive speed, got 0.0"),
        (
            lambda: controllers.ComputedTorque(ARM, sway(ARM), friction=gc.Friction(np.ones(3))),
            ArgumentError,
            r"friction: viscous: expected a number or \(7,\) numbers, got shape \(3,\)",
        ),
    ],
)
def test_bad_arguments_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("law", ["ComputedTorque", "Passivity", "SlotineLi"])
@pytest.mark.parametrize("desired", [(np.zeros(7), np.zeros(7)), None, 3.0])
def test_references_that_return_something_else_are_named(law, desired):
    law = getattr(controllers, law)(ARM, lambda t: desired)
    with pytest.raises(ArgumentError, match=r"reference: expected Desired\(q, v, a\) at a time, got"):
        law(0.0, np.zeros(7), np.zeros(7), law.start())


def test_a_reference_that_holds_still():
    q = ARM.random_configuration(RNG)
    desired = hold(ARM, q)(3.0)
    np.testing.assert_array_equal(desired.q, q)
    assert not desired.v.any()
    assert not desired.a.any()


@pytest.mark.parametrize("law", [controllers.Passivity, controllers.ComputedTorque])
def test_what_is_of_vectors_only_is_refused_on_a_group(law):
    robot = models.three_spheres()
    law(robot, hold(robot, robot.neutral()))
    with pytest.raises(ArgumentError, match=r"strict: expected joints with one degree of freedom, got '.*', free"):
        law(robot, hold(robot, robot.neutral()), strict=True)
