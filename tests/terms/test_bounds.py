"""Bounds of M, C and g against closed forms and adversarial search, and the parts of their proofs."""

import re
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geomctrl as gc
from geomctrl import derivatives, inertia, models, testing
from geomctrl.compiler.arithmetic import Arithmetic, Sizes, evaluated
from geomctrl.compiler.kernel_traces import structure
from geomctrl.errors import ArgumentError, InertiaError
from geomctrl.kernels import composite_bodies
from geomctrl.terms import dynamics
from geomctrl.terms.bounding import box_bounds, inertia_extremes, quantities
from geomctrl.terms.bounding.closed_form import ClosedForm, trilinear_norm_of_bounds
from geomctrl.terms.bounding.quantities import bodies_of, domain_of, extreme
from geomctrl.terms.bounding.reach import Reach
from geomctrl.tracing.branch_and_bound import BranchAndBound

NAMES = ("m1", "m2", "k_C", "k_g", "g")
FORMS = ("christoffel", "ploen", "adjoint")
SLIDE = 0.4  # m or rad


def boxed(robot):
    """A box with a range for every prismatic joint, and full turns of the others."""
    slides = np.concatenate([[j.kind in ("prismatic", "helical")] * j.dof for j in robot.joints]).astype(bool)
    return np.where(slides, -SLIDE, -np.inf), np.where(slides, SLIDE, np.inf)


def configurations_in(robot, box, count, seed=0):
    return domain_of(robot, box).sample(np.random.default_rng(seed), count)


def closed_of(robot, form="christoffel", box=None, parameters=None):
    lower, upper = boxed(robot) if box is None else box
    return ClosedForm(robot, bodies_of(robot, parameters), Reach(robot, lower, upper), form)


def two_link_constants(m1, m2, l1, l2, gravity=9.81):
    """For slender rods, from the textbook's terms (`models.two_link`) on a fine grid."""
    I1, I2, c1, c2 = m1 * l1**2 / 12, m2 * l2**2 / 12, l1 / 2, l2 / 2
    a, b, d = I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2), m2 * l1 * c2, I2 + m2 * c2**2
    x = np.cos(np.linspace(0.0, np.pi, 20001))
    M = np.array([[a + 2 * b * x, d + b * x], [d + b * x, d + 0 * x]]).transpose(2, 0, 1)
    eigenvalues = np.linalg.eigvalsh(M)
    angle = np.linspace(0.0, np.pi, 20001)
    v1, v2 = np.cos(angle), np.sin(angle)
    C = b * np.array([[-v2, -v1 - v2], [v1, 0 * v1]]).transpose(2, 0, 1)
    A, B = gravity * (m1 * c1 + m2 * l1), gravity * m2 * c2
    s1, s12 = (x.ravel() for x in np.meshgrid(np.sin(np.linspace(-np.pi, np.pi, 201)), np.linspace(-1.0, 1.0, 201)))
    H = np.array([[A * s1 + B * s12, B * s12], [B * s12, B * s12]]).transpose(2, 0, 1)
    return {
        "m1": eigenvalues[:, 0].min(),
        "m2": eigenvalues[:, 1].max(),
        "k_C": np.linalg.norm(C, 2, axis=(1, 2)).max(),
        "k_g": np.linalg.norm(H, 2, axis=(1, 2)).max(),
        "g": np.hypot(A + B, B),
    }


# --- against closed forms ------------------------------------------------------------------------------------------


@pytest.mark.quick(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("masses", "lengths"), [((1.0, 1.0), (1.0, 1.0)), ((3.0, 0.5), (0.4, 0.7))])
def test_two_link_constants_are_the_textbook_s_within_one_percent(form, masses, lengths):
    robot = models.two_link(lengths, masses)
    result, true = robot.bounds(form=form), two_link_constants(*masses, *lengths)
    for name in NAMES:
        bound, sign = getattr(result, name), -1.0 if name == "m1" else 1.0
        assert sign * bound.value >= sign * true[name] * (1.0 - sign * 1e-9), name
        assert bound.value == pytest.approx(true[name], rel=0.0101), name
        assert bound.sampled == pytest.approx(true[name], rel=1e-4), name


def test_pendulum_constants_are_exact():
    rod = inertia.from_com(2.0, (0.3, 0.0, 0.0), np.diag([0.01, 0.04, 0.04]))
    robot = gc.Robot.build([gc.Body("rod", None, gc.Joint.revolute((0, 1, 0)), None, rod)])
    result = robot.bounds()
    assert [result.m1.value, result.m2.value] == pytest.approx([0.04 + 2.0 * 0.3**2] * 2, rel=1e-8)
    assert [result.k_g.value, result.g.value] == pytest.approx([2.0 * 9.81 * 0.3] * 2, rel=1e-8)
    assert result.k_C.value == result.k_C.sampled == 0.0


def test_a_vertical_axis_feels_no_gravity():
    scara = models.scara()
    assert scara.bounds(method="closed form").k_g.value < 1e-9
    weight = 9.81 * scara.parameters[2:, 0].sum()  # only the lift carries the weight
    assert scara.bounds(method="closed form").g.value == pytest.approx(weight, rel=1e-8)


@pytest.mark.slow
def test_masses_and_lengths_scale_the_constants():
    plain, heavy, large = (
        models.two_link((l, 0.6 * l), (m, 0.7 * m)).bounds(tolerance=1e-3)
        for l, m in ((1.0, 1.0), (1.0, 2.0), (3.0, 1.0))
    )
    for name, power in (("m1", 2), ("m2", 2), ("k_C", 2), ("k_g", 1), ("g", 1)):
        one, two, long = (getattr(x, name) for x in (plain, heavy, large))
        for bound in (one, two, long):
            assert bound.gap <= 1.001e-3
        assert two.sampled == pytest.approx(2.0 * one.sampled, rel=1e-4), name
        assert long.sampled == pytest.approx(3.0**power * one.sampled, rel=1e-4), name


# --- never violated ------------------------------------------------------------------------------------------------

CHAINS = testing.robots(("revolute", "prismatic", "helical", "spherical"), 4, floating_base=None)


def rounding(result, bound):
    """Tolerance of a computed value: the bounds are those of the model in exact arithmetic."""
    return 1e-9 * abs(bound.value) + 1e-13 * result.m2.value


def violations(robot, result, q, form):
    """Names of the bounds that one of the configurations violates by more than rounding."""
    broken = []
    for name, measure in quantities.measures(form).items():
        bound = getattr(result, name)
        values = measure.value(robot, q)
        if (values > measure.sign * bound.value + rounding(result, bound)).any():
            broken.append(name)
    return broken


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=12)
@given(CHAINS, st.sampled_from(FORMS), st.sampled_from((None, 0.1)))
def test_random_robots_never_break_their_bounds(robot, form, parameters):
    box = boxed(robot)
    result = robot.bounds(box=box, form=form, parameters=parameters, method="closed form")
    for name in NAMES:  # configurations from an adversarial search
        bound, sign = getattr(result, name), -1.0 if name == "m1" else 1.0
        assert sign * bound.sampled <= sign * bound.value + rounding(result, bound), name
    q, rng = configurations_in(robot, box, 300), np.random.default_rng(1)
    for _ in range(4 if parameters else 1):
        off = 1.0 + (parameters or 0.0) * rng.choice([-1.0, 1.0], robot.parameters.shape)
        assert violations(robot._with_parameters(robot.parameters * off), result, q, form) == []


def test_the_check_above_can_fail(monkeypatch):
    """A triangle inequality that omits a twentieth of the bodies' reach is detected, in every constant that uses it."""
    honest, robot = Reach.moment, models.two_link()
    monkeypatch.setattr(Reach, "moment", lambda *args: 0.95 * honest(*args))
    result = robot.bounds(method="closed form")
    assert {"k_g", "g"} <= set(violations(robot, result, configurations_in(robot, None, 3000), "ploen"))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_extremes_found_are_attained_where_they_are_said_to_be(form):
    robot = models.panda()
    result = robot.bounds(form=form, method="closed form")
    eigenvalues = [np.linalg.eigvalsh(robot.mass_matrix(getattr(result, x).q)) for x in ("m1", "m2")]
    assert [eigenvalues[0][0], eigenvalues[1][-1]] == pytest.approx([result.m1.sampled, result.m2.sampled], rel=1e-9)
    assert result.k_C.v is not None
    C = robot.coriolis_matrix(result.k_C.q, result.k_C.v, form)
    assert np.linalg.norm(result.k_C.v) == pytest.approx(1.0)
    assert np.linalg.norm(C, 2) == pytest.approx(result.k_C.sampled, rel=1e-6)
    rest = np.zeros(robot.nv)
    stiffness = robot.inverse_dynamics_derivatives(result.k_g.q, rest, rest).dq
    assert np.linalg.norm(stiffness, 2) == pytest.approx(result.k_g.sampled, rel=1e-9)
    assert np.linalg.norm(robot.gravity_force(result.g.q)) == pytest.approx(result.g.sampled, rel=1e-9)
    for name in NAMES:
        at = getattr(result, name).q
        assert (at >= robot.limits.lower - 1e-12).all()
        assert (at <= robot.limits.upper + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", models.names())
def test_matrix_inequalities_are_sharp_for_the_bundled_robots(name):
    robot, domain = models.load(name), domain_of(models.load(name), None)
    closed = closed_of(robot, box=(domain.lower, domain.upper))
    q = configurations_in(robot, None, 300)
    eigenvalues = np.linalg.eigvalsh(robot.mass_matrix(q))
    for constant, certified in (("m1", inertia_extremes.least), ("m2", inertia_extremes.greatest)):
        measure, bound = (
            quantities.measures("ploen")[constant],
            certified(robot, closed.bodies, closed.reach, closed.m2()),
        )
        result = measure.sign * extreme(robot, closed.bodies, domain, measure).value
        assert measure.sign * bound >= measure.sign * result
        assert bound == pytest.approx(result, rel=0.3 if (name, constant) == ("quadruped", "m1") else 0.01)
        assert measure.sign * bound >= (measure.sign * eigenvalues).max()


@pytest.mark.quick(1)
@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.1])
def test_a_solver_that_errs_costs_sharpness_and_nothing_else(noise, monkeypatch):
    """The result is a bound for any X and t; the test uses a t that is too small and perturbs every form."""
    robot, honest, rng = models.load("scara"), inertia_extremes._solved, np.random.default_rng(0)
    closed = closed_of(robot, box=(robot.limits.lower, robot.limits.upper))
    q = configurations_in(robot, None, 300)
    eigenvalues = np.linalg.eigvalsh(robot.mass_matrix(q))
    for sign, certified in ((-1.0, inertia_extremes.least), (1.0, inertia_extremes.greatest)):
        sharp = certified(robot, closed.bodies, closed.reach, closed.m2())

        def wrong(*args):
            t, X, ratios = honest(*args)
            joints = args[-1]
            noisy = [
                x if x is None else x + noise * sum(rng.normal() * E for E in joint.forms)
                for x, joint in zip(X, joints)
            ]
            return t - noise * abs(t), noisy, ratios

        monkeypatch.setattr(inertia_extremes, "_solved", wrong)
        bound = certified(robot, closed.bodies, closed.reach, closed.m2())
        monkeypatch.setattr(inertia_extremes, "_solved", honest)
        assert sign * bound >= (sign * eigenvalues).max()
        assert sign * bound > sign * sharp - 1e-3 * abs(sharp)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-3])
def test_no_entry_of_an_inverse_mass_matrix_is_above_its_bound(noise, monkeypatch):
    """Also if the solver errs; without errors the bound is sharp."""
    robot, honest, rng = models.two_link(), inertia_extremes._solved, np.random.default_rng(0)
    closed = closed_of(robot, parameters=0.05)

    def wrong(*args):
        t, X, ratios = honest(*args)
        noisy = [
            x if x is None else x + noise * sum(rng.normal() * E for E in joint.forms) for x, joint in zip(X, args[-1])
        ]
        return t - noise * abs(t), noisy, ratios

    monkeypatch.setattr(inertia_extremes, "_solved", wrong)
    bound = inertia_extremes.inverse_diagonal(robot, closed.bodies, closed.reach, closed.m2())
    largest, elbow = np.zeros(2), np.linspace(-np.pi, np.pi, 101)
    for _ in range(200):
        p = robot.parameters * (1.0 + 0.05 * rng.choice([-1.0, 1.0], robot.parameters.shape))
        M = robot.with_parameters(p, physical=False).mass_matrix(np.stack([0.0 * elbow, elbow], 1))
        largest = np.maximum(largest, np.einsum("bii->bi", np.linalg.inv(M)).max(0))
    assert (largest <= bound).all()
    assert (bound <= largest * (1.02 if noise < 1e-4 else 2.0)).all()


def test_uncertain_parameters_give_the_worst_corner():
    """Two links with every parameter off by 10 %: against all corners of the intervals, at a grid of elbow angles."""
    robot, error = models.two_link(), 0.1
    result = robot.bounds(parameters=error, method="closed form")
    used = np.argwhere(robot.parameters)
    used = used[[p in (0, 1, 6) for _, p in used]]  # the parameters that M of a planar arm depends on: m, hx, Iyy
    q = np.stack((np.zeros(41), np.linspace(0.0, np.pi, 41)), axis=1)
    least, greatest = np.inf, -np.inf
    for corner in range(2 ** len(used)):
        parameters = np.array(robot.parameters)
        for k, (body, p) in enumerate(used):
            parameters[body, p] *= 1.0 + error * (1 if corner >> k & 1 else -1)
        eigenvalues = np.linalg.eigvalsh(robot._with_parameters(parameters).mass_matrix(q))
        least, greatest = min(least, eigenvalues.min()), max(greatest, eigenvalues.max())
    assert result.m1.value <= least == pytest.approx(result.m1.value, rel=1e-3)
    assert result.m2.value >= greatest == pytest.approx(result.m2.value, rel=1e-3)
    assert result.m1.sampled == pytest.approx(least, rel=1e-3)
    assert result.m2.sampled == pytest.approx(greatest, rel=1e-3)


@pytest.mark.slow
def test_a_free_base_s_pose_does_not_matter():
    """Bounds hold for any pose of the base: M and C do not depend on it, and gravity only on its rotation."""
    rng = np.random.default_rng(5)
    robot = testing.random_robot(rng, ["free", "revolute", "spherical"], [-1, 0, 1])
    result = robot.bounds(method="closed form")
    q = configurations_in(robot, None, 50)
    q[:, [3, 7, 11]] += 1000.0
    assert violations(robot, result, q, "ploen") == []
    assert result.m1.value > 0.0


# --- how far bodies reach --------------------------------------------------------------------------------------------


def speeds_of_centres(robot, q):
    """Velocities (batch, nbodies, nv) of the centres of mass for unit rates of the coordinates."""
    out = []
    for name, c in zip(robot.body_names, np.nan_to_num(inertia.com(robot.parameters))):
        Jac = robot.jacobian(q, name, "body")
        out.append(
            np.linalg.norm(
                Jac[:, 3:] + np.cross(Jac[:, :3], np.broadcast_to(c[:, None], Jac[:, :3].shape), axis=1), axis=1
            )
        )
    return np.stack(out, axis=1)


def arm(name, second, c):
    """A body that rotates about a vertical axis through (0.02, 0.1, 0) and carries another with its centre of mass
    at c.
    """
    ball, hung = 0.01 * np.eye(3), np.eye(4)
    hung[:3, 3] = 0.0, 0.3, 0.2
    first = gc.Joint.revolute((0, 0, 1), (0.02, 0.1, 0.0))
    return gc.Robot.build(
        [
            gc.Body("a", None, first, None, inertia.from_com(1.0, (0.0, 0.1, 0.0), ball)),
            gc.Body("b", "a", second, hung, inertia.from_com(1.0, c, ball)),
        ],
        name=name,
    )


STRETCHED = [  # from the axis at (0.02, 0.1) to b's centre of mass, at full extension
    (arm("perpendicular", gc.Joint.revolute((1, 0, 0), (0.7, 0.05, 0.0)), (0.0, 0.05, 0.4)), np.hypot(0.02, 0.65)),
    (arm("parallel", gc.Joint.revolute((0, 0, -1), (0.02, 0.05, 0.3)), (0.02, 0.3, 0.4)), 0.5),
    (arm("sliding", gc.Joint.prismatic((0, 1, 0), lower=-0.1, upper=0.5), (0.02, 0.1, 0.4)), 0.8),
    (arm("ball", gc.Joint.spherical((0.02, 0.05, 0.0)), (0.02, 0.05, 0.4)), 0.65),
    (arm("screw", gc.Joint.helical((0, 1, 0), (0.02, 0.7, 0.0), 0.5, lower=-1.0, upper=1.0), (0.02, 0.1, 0.0)), 0.8),
]


@pytest.mark.parametrize(("robot", "attained"), STRETCHED, ids=lambda x: getattr(x, "name", ""))
def test_reach_is_exact_where_joints_can_stretch_the_arm(robot, attained):
    r = Reach(robot, robot.limits.lower, robot.limits.upper).speeds
    assert r[1, 0] == pytest.approx(attained, rel=1e-6)
    assert r[1, 0] >= attained


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["panda", "ur10", "scara", "quadruped"])
def test_bundled_robots_stay_within_their_reach(name):
    robot = models.load(name)
    r = Reach(robot, robot.limits.lower, robot.limits.upper).speeds
    assert (speeds_of_centres(robot, configurations_in(robot, None, 3000)) <= r * (1.0 + 1e-12)).all()


# --- what branch and bound rests on ----------------------------------------------------------------------------------


def to_fifty_digits(robot, algorithm, *inputs, **options):
    """Return the outputs of an algorithm of the kernels."""
    pattern = structure(robot._model)
    model = [mpmath.mpf(x) if np.isnan(known) else known for x, known in zip(robot._model, pattern)]
    rows = [np.array([*map(mpmath.mpf, x), None])[:-1] for x in inputs]
    arithmetic = Arithmetic(mpmath.mp, zero=mpmath.mpf(0))
    model = np.array([*model, None])[:-1]
    return evaluated(algorithm, Sizes(pattern), model, [*rows, *options.values()], arithmetic)[1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_rounding_is_far_below_its_margin(seed, form):
    """Errors of M, C and g, measured with fifty digits, are a thousandth of the margin of branch and bound."""
    robot = testing.random_robot(np.random.default_rng(seed), ["revolute", "helical", "revolute"], [-1, 0, 1])
    closed, number = closed_of(robot, form), dynamics.form_number(form)
    with mpmath.workdps(50):
        for q in configurations_in(robot, boxed(robot), 3):
            for i, v in enumerate(np.eye(3)):
                exact = to_fifty_digits(robot, composite_bodies.terms, q, v, form=number)
                M, _, C, g = (x.astype(float) for x in exact)
                result = quantities.coriolis_tensor(robot, q[None], form)[0, i].T
                for actual, true, size in (
                    (result, C, closed.coriolis().max()),
                    (robot.mass_matrix(q), M, closed.mass_matrix().max()),
                    (robot.gravity_force(q), g, closed.gravity().max()),
                ):
                    assert np.abs(actual - true).max() < 1e-3 * box_bounds.ROUNDING * size


def derivatives_of(array, q, k, h=1e-4):
    """Derivatives d/dq_k by central differences."""
    step = np.zeros(q.shape[-1])
    step[k] = h
    return (array(q + step) - array(q - step)) / (2.0 * h)


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=8)
@given(testing.robots(("revolute", "prismatic", "helical"), 4), st.sampled_from(FORMS))
def test_entries_and_their_derivatives_stay_below_the_closed_form(robot, form):
    closed, q, many = closed_of(robot, form), *(configurations_in(robot, boxed(robot), n) for n in (20, 1000))
    arrays = {
        "mass_matrix": robot.mass_matrix,
        "coriolis": lambda q: quantities.coriolis_tensor(robot, q, form),
        "gravity": robot.gravity_force,
        "gravity_derivative": lambda q: quantities.gravity_derivative(robot, q),
    }
    for name, array in arrays.items():
        bounds = getattr(closed, name)
        size = max(np.abs(bounds()).max(), closed.m2())
        assert (np.abs(array(many)) <= bounds() + 1e-9 * size).all(), name
        for k in range(robot.nv):
            first = derivatives_of(array, q, k)
            assert (np.abs(first) <= bounds(k) + 1e-6 * size).all(), (name, k)
            for l in range(robot.nv):
                second = derivatives_of(lambda x, k=k: derivatives_of(array, x, k), q, l)  # noqa: B023
                assert (np.abs(second) <= bounds(k, l) + 1e-4 * size).all(), (name, k, l)


def test_the_mass_matrix_and_coriolis_forget_the_first_joint():
    robot = testing.random_robot(np.random.default_rng(2), ["revolute"] * 3, [-1, 0, 1])
    for name in ("m1", "k_C", "k_g"):
        measure = quantities.measures("adjoint")[name]
        quantity = box_bounds.quantity_of(name, robot, measure, closed_of(robot, "adjoint"))
        forgets = quantity.slopes[0] == 0.0 and not quantity.bends[0].any() and not quantity.bends[:, 0].any()
        assert forgets == (name != "k_g")
        q = configurations_in(robot, None, 5)
        turned = q + np.array([1.0, 0.0, 0.0])
        same = np.allclose(measure.array(robot, q), measure.array(robot, turned), atol=1e-12)
        assert same == (name != "k_g")


@pytest.mark.usefixtures("kernels")
def test_central_differences_are_within_their_bound():
    """Compare dGamma/dq of branch and bound with the analytic mixed derivatives of C v."""
    robot = testing.random_robot(np.random.default_rng(7), ["revolute", "prismatic", "helical"], [-1, 0, 1])
    measure = quantities.measures("christoffel")["k_C"]
    quantity = box_bounds.quantity_of("k_C", robot, measure, closed_of(robot))
    q = configurations_in(robot, boxed(robot), 10)
    result, rest = quantity.derivative(q), np.zeros_like(q)
    for i in range(3):
        rate = rest.copy()
        rate[:, i] = 1.0  # C v is quadratic in v
        exact = 0.5 * derivatives.inverse_dynamics_second_derivatives(robot, q, rate, rest).dvdq.swapaxes(1, 2)
        off = np.abs(result[:, i, :, :, 1:] - exact[..., 1:]).max(axis=(0, 1, 2))
        assert (off <= quantity.off[1:]).all()
    assert (quantity.off[1:] < 1e-5 * quantity.slopes[1:]).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_box_s_bound_holds_all_over_the_box(name):
    """Also where A deviates from its tangent, and at the corners of the box."""
    robot, rng = testing.random_robot(np.random.default_rng(2), ["revolute"] * 3, [-1, 0, 1]), np.random.default_rng(0)
    measure = quantities.measures("ploen")[name]
    quantity = box_bounds.quantity_of(name, robot, measure, closed_of(robot, "ploen"))
    middles, halves = rng.uniform(-np.pi, np.pi, (20, 3)), rng.choice([0.02, 0.1, 0.4], (20, 3))
    bounds, values = quantity.over(middles, halves, [0, 1, 2], -np.inf)
    inside = middles[:, None] + halves[:, None] * np.clip(rng.uniform(-1.5, 1.5, (20, 300, 3)), -1.0, 1.0)
    result = measure.value(robot, inside.reshape(-1, 3)).reshape(20, 300).max(axis=1)
    assert (result <= bounds).all()
    assert (values <= bounds).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_polytope_contains_the_ball(n):
    corners = box_bounds._polytope(n)
    directions = np.random.default_rng(0).normal(size=(20000, n))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    reach = np.abs(directions @ corners.T).max(axis=1)  # its support function
    assert reach.min() >= 1.0
    assert np.linalg.norm(corners, axis=1).max() < 1.02


def test_tensor_norms_lie_between_the_search_and_the_polytope():
    T = np.random.default_rng(1).normal(size=(20, 3, 3, 3))
    below, G = quantities.trilinear_norm(T)
    above = box_bounds._trilinear_above(T, np.full(20, -np.inf))
    assert (below <= above).all()
    assert (above <= 1.02 * below).all()
    assert np.einsum("bijk,bijk->b", T, G) == pytest.approx(below, rel=1e-12)
    unfolded = [trilinear_norm_of_bounds(np.abs(t)) for t in T]
    assert (below <= unfolded).all()


def grid_extremes(robot, box, form, cuts=41):
    low, high = domain_of(robot, box).sides
    axes = [np.linspace(a, b, cuts) for a, b in zip(low, high)]
    q = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, robot.nv)
    out = {}
    for name, measure in quantities.measures(form).items():
        rows = q[q[:, 0] == q[0, 0]] if name in ("m1", "m2", "k_C") else q
        out[name] = measure.sign * measure.value(robot, rows).max()
    return out


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kinds", [("revolute",) * 3, ("revolute", "prismatic", "revolute"), ("helical", "revolute")])
def test_branch_and_bound_encloses_the_grid_and_is_within_its_tolerance(kinds, form):
    robot = testing.random_robot(np.random.default_rng(11), kinds, list(range(-1, len(kinds) - 1)))
    lower, upper = boxed(robot)
    upper = np.where(np.isfinite(upper), upper, 1.5)  # joint ranges: the closed form does not use those of turns
    lower = np.where(np.isfinite(lower), lower, -1.0)
    result = robot.bounds(box=(lower, upper), form=form, method="branch and bound", tolerance=0.05)
    for name, there in grid_extremes(robot, (lower, upper), form).items():
        bound, sign = getattr(result, name), -1.0 if name == "m1" else 1.0
        assert sign * bound.value >= sign * there - 1e-12, name
        assert sign * bound.sampled >= sign * there - 1e-6 * abs(there), name
        assert bound.finished, name
        assert bound.gap <= 0.0501, name
        assert bound.boxes > 0


def arm_in_space():
    """A turret, an upper arm and a forearm: rods of 0.5 and 0.4 m, shoulder and elbow beside the turret's axis."""

    def rod(m, length, radius):
        across = m * (length**2 / 12 + radius**2 / 4)
        return inertia.from_com(m, (length / 2, 0.0, 0.0), np.diag([m * radius**2 / 2, across, across]))

    def at(x, y, z):
        M = np.eye(4)
        M[:3, 3] = x, y, z
        return M

    turret = inertia.from_com(4.0, (0.0, 0.0, -0.1), np.diag([0.05, 0.05, 0.04]))
    pitch = gc.Joint.revolute((0, -1, 0))
    return gc.Robot.build(
        [
            gc.Body("turret", None, gc.Joint.revolute((0, 0, 1)), at(0.0, 0.0, 0.4), turret),
            gc.Body("upper", "turret", pitch, at(0.0, 0.1, 0.05), rod(3.0, 0.5, 0.05)),
            gc.Body("fore", "upper", pitch, at(0.5, -0.05, 0.0), rod(2.0, 0.4, 0.04)),
        ],
        name="arm",
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_an_arm_in_space_is_bounded_within_one_percent(form):
    result = arm_in_space().bounds(form=form)
    for name in NAMES:
        bound = getattr(result, name)
        assert bound.gap <= 0.0101, name
        assert bound.finished
        assert bound.boxes < 20_000


class Parabola:
    """f(x) = 3 - (x - 0.3)^2, bounded by Taylor's theorem as `Quantity` bounds."""

    slopes, bends = np.array([3.0]), np.array([[2.0]])

    def over(self, middles, halves, active, enough):
        x, d = middles[:, 0] - 0.3, halves[:, 0]
        values = 3.0 - x**2
        return values + 2.0 * np.abs(x) * d + 0.5 * 2.0 * d**2, values


@pytest.mark.parametrize(("tolerance", "absolute"), [(1e-2, 0.0), (1e-5, 0.0), (1e-9, 0.0), (1e-12, 1e-6)])
def test_branch_and_bound_is_as_sharp_as_asked_for_and_no_sharper(tolerance, absolute):
    budget = box_bounds.Budget(tolerance, absolute, 100_000, 60.0, lambda fraction: None)
    domain = SimpleNamespace(sides=(np.array([-1.0]), np.array([2.0])))
    claim = box_bounds.BoundClaim(Parabola(), domain, 2.0, np.array([-0.7]), budget)
    out = BranchAndBound(claim)
    out.run(budget.boxes, budget.seconds)
    slack = max(3.0 * tolerance, absolute)
    assert out.proved
    assert 3.0 - slack <= claim.best <= 3.0
    assert 3.0 - 1e-15 <= max(out.largest_bound, claim.best) <= 3.0 + slack
    assert out.count < 60.0 + 8.0 * slack**-0.5  # sides need to be no shorter than sqrt(slack)


@pytest.mark.slow
def test_branch_and_bound_ends_with_its_budget_and_says_so():
    robot = testing.random_robot(np.random.default_rng(11), ["revolute"] * 3, [-1, 0, 1])
    done = []
    result = robot.bounds(tolerance=1e-5, boxes=300, progress=done.append)
    assert not result.k_C.finished
    assert result.k_C.boxes < 2000
    assert "not finished" in str(result)
    assert result.k_C.value >= result.k_C.sampled
    assert done
    assert all(0.0 <= x <= 1.0 for x in done)


def test_the_table_says_what_is_proved_by_what():
    text = str(models.two_link().bounds())
    proved = float(text.split("|dg/dq| <= k_g")[1].split()[0])
    assert proved >= models.two_link().bounds().k_g.value  # printed digits are a bound too
    assert {"matrix inequalities", "|dg/dq| <= k_g"} <= set(re.split(r"  +|\n", text))
    assert "branch and bound, " in text
    assert text.count("\n") == 6


# --- what has no bound -----------------------------------------------------------------------------------------------


def chain(*joints):
    rod = inertia.from_com(1.0, (0.1, 0.0, 0.0), np.diag([0.01, 0.02, 0.02]))
    names = [f"b{i}" for i in range(len(joints))]
    return gc.Robot.build(
        [gc.Body(n, names[i - 1] if i else None, j, None, rod) for i, (n, j) in enumerate(zip(names, joints))]
    )


R, P = gc.Joint.revolute((0, 0, 1)), gc.Joint.prismatic((1, 0, 0))
BOX = [-np.inf, -1.0], [np.inf, 1.0]


@pytest.mark.parametrize(
    ("robot", "options", "message"),
    [
        (chain(R, P), {}, r"box: joint 'b1' is prismatic and has no finite range, \[-inf, inf\]"),
        (chain(R, P), {"box": ([0.0, 0.0], [1.0, np.inf])}, "box: joint 'b1' is prismatic and has no finite range"),
        (chain(R, gc.Joint.planar((0, 0, 1))), {}, "robot: joint 'b1' is planar and not the robot's first"),
        (chain(R, R), {"box": ([0.0, 1.0], [1.0, 0.0])}, r"box: expected lower <= upper, got \[1, 0\] for joint 'b1'"),
        (chain(R, R), {"box": ([0.0, np.nan], [1.0, 0.0])}, "box: expected lower <= upper"),
        (chain(R, R), {"box": [0.0] * 3}, r"box: expected \(lower, upper\), \(2,\) each"),
        (chain(R, R), {"box": ([0.0], [1.0])}, r"box: lower: expected shape \(..., 2\)"),
        (
            chain(gc.Joint.free(), R),
            {"box": ([0.0] * 7, [1.0] * 7)},
            "box: joint 'b0' is free, whose pose has no ranges",
        ),
        (
            models.panda(),
            {"method": "branch and bound"},
            "supports up to 3 joints, 'panda' has 7 and would need about 2e",
        ),
        (chain(gc.Joint.spherical(), R), {"method": "branch and bound"}, "one degree of freedom, 'b0' has 3"),
        (chain(R, R), {"method": "fast"}, "method: expected one of 'auto'"),
        (chain(R, R), {"form": "lagrange"}, "form: expected one of"),
        (chain(R, R), {"tolerance": 0.0}, "tolerance: expected a number > 0"),
        (chain(R, R), {"parameters": -0.1}, "parameters: expected a relative error from 0 to below 1"),
        (chain(R, R), {"parameters": (np.ones((2, 10)), np.zeros((2, 10)))}, "parameters: expected lower <= upper"),
        (chain(R, R), {"parameters": (np.ones((2, 10)),)}, r"parameters: expected \(lower, upper\), got \(array"),
        (chain(R, R), {"boxes": 0}, "boxes: expected"),
        (chain(R, R), {"progress": 3}, "progress: expected a function"),
    ],
)
def test_what_has_no_bound_is_refused_with_words(robot, options, message):
    with pytest.raises(ArgumentError, match=message):
        robot.bounds(**options)


def test_constants_that_cancel_end_the_search():
    """Arms that rotate about the vertical: dg/dq consists of rounding errors, and no box would be small enough for
    a gap.
    """
    level = models.two_link(gravity=(0.0, -9.81, 0.0))
    for method in ("auto", "branch and bound"):
        result = level.bounds(method=method, seconds=20.0)
        assert result.k_g.value < 1e-8
        assert result.k_g.finished
        assert result.seconds < 60.0


def test_points_and_rods_have_bounds():
    """Two point masses on massless rods, as in many textbooks: no body has an inertia of its own."""
    robot = models.two_link((1.0, 0.8), (2.0, 1.0), coms=(1.0, 0.8), inertias=(0.0, 0.0))
    result = robot.bounds()
    cos = np.cos(np.linspace(0.0, np.pi, 10001))
    a, b, d = 2.0 + 1.0 * (1.0 + 0.64), 0.8, 0.64
    M = np.array([[a + 2 * b * cos, d + b * cos], [d + b * cos, d + 0 * cos]]).transpose(2, 0, 1)
    assert result.m1.value <= np.linalg.eigvalsh(M).min() * (1.0 + 1e-9)
    assert result.m1.value == pytest.approx(np.linalg.eigvalsh(M).min(), rel=0.0101)
    assert result.m2.value == pytest.approx(np.linalg.eigvalsh(M).max(), rel=0.0101)


def test_bodies_that_can_not_be_are_refused():
    robot = models.two_link()
    with pytest.raises(InertiaError, match="link1"):
        robot._with_parameters(-np.array(robot.parameters)).bounds()


def test_a_first_joint_that_slides_needs_no_range():
    result = chain(P, R).bounds(method="closed form")
    assert result.m2.value == pytest.approx(result.m2.sampled, rel=0.01)


@pytest.mark.parametrize(("lower", "upper"), [(-5.0, 1.0), (-1.0, 5.0)])
def test_both_ends_of_a_slide_count(lower, upper):
    robot = chain(R, gc.Joint.prismatic((1, 0, 0), lower=lower, upper=upper))
    q = np.stack((np.zeros(101), np.linspace(lower, upper, 101)), axis=1)
    greatest = np.linalg.eigvalsh(robot.mass_matrix(q)).max()
    closed = closed_of(robot, box=(robot.limits.lower, robot.limits.upper))
    bound = inertia_extremes.greatest(robot, closed.bodies, closed.reach, closed.m2())
    assert greatest <= bound <= 1.001 * greatest


def test_ranges_of_slides_are_limits_of_the_joints_where_no_box_is_given():
    wide, narrow = (chain(R, gc.Joint.prismatic((1, 0, 0), lower=0.0, upper=u)) for u in (1.0, 0.5))
    assert wide.bounds(method="closed form").m2.value > narrow.bounds(method="closed form").m2.value
    assert narrow.bounds(method="closed form").m2.value == pytest.approx(
        wide.bounds(box=([-np.inf, 0.0], [np.inf, 0.5]), method="closed form").m2.value
    )


def test_motors_of_one_size_move_all_eigenvalues():
    """M + a 1 has the eigenvalues of M plus a; C and g do not depend on motors."""
    robot = models.scara()
    plain, driven = robot.bounds(), robot.with_armature(0.5).bounds()
    assert driven.m1.value == pytest.approx(plain.m1.value + 0.5, abs=1e-4)
    assert driven.m2.value == pytest.approx(plain.m2.value + 0.5, rel=1e-3)
    assert driven.k_C.value == plain.k_C.value
    assert driven.k_g.value == plain.k_g.value
