"""Consistent initial states and bad arguments of constrained systems in maximal coordinates."""

import numpy as np
import pytest
from lib import mueller_terze as cases
from mechanisms import four_bar

from geomctrl import groups, inertia, se3, so3
from geomctrl.errors import ArgumentError, GeomctrlError, InertiaError, IntegrationError, ModelError, NameNotFoundError
from geomctrl.lie.groups import SE3, SO3, SO3xR3
from geomctrl.papers.constrained.equations import GGL, Baumgarte
from geomctrl.papers.constrained.integration import integrate_index1
from geomctrl.papers.constrained.joints import ConstrainedBody, Constraint
from geomctrl.papers.constrained.maximal import ConstrainedSystem

BODY = inertia.from_com(2.0, (0.1, -0.2, 0.05), np.diag([0.4, 0.7, 1.0]))

# --- consistent beginnings and bad input ---------------------------------------------------------------------------


def test_consistent_states_are_computed():
    system = four_bar()
    rng = np.random.default_rng(2)
    poses = system.reference @ se3.exp(0.1 * rng.normal(size=(3, 6)))
    with pytest.raises(ArgumentError, match=r"positions violate constraint 'joint \d' \(revolute\): residual 0\.\d+"):
        system.state(poses)
    y = system.consistent(poses, rng.normal(size=(3, 6)))
    assert system.violation(y).max() < 1e-12
    assert system.violation(y, "velocity").max() < 1e-12


def test_velocities_held_fixed_stay():
    case = cases.double_pendulum(SE3())
    free = np.tile([False, False, False, True, True, True], (2, 1))
    V = case.system.twists(case.y0)
    guess = V.copy()
    guess[:, 3:] = 0.0
    y = case.system.consistent(None, guess, free=free)
    np.testing.assert_allclose(case.system.twists(y), V, rtol=0, atol=1e-12)
    with pytest.raises(ArgumentError, match="held fixed contradict constraint 'joint 1'"):
        case.system.consistent(None, [[0, 1.0, 0, 0, 0, 0], [0] * 6], free=np.array([[False] * 6, [True] * 6]))


def test_velocities_that_violate_are_refused_with_the_name():
    case = cases.heavy_top(SE3())
    with pytest.raises(ArgumentError, match=r"velocities violate constraint 'pivot' \(spherical\): residual 1"):
        case.system.state(None, [[0, 0, 0, 1.0, 0, 0]])


def test_contradicting_constraints_are_refused_with_the_residual():
    system = ConstrainedSystem(
        [ConstrainedBody("a", BODY)],
        [
            Constraint("spherical", "pivot", ("world", "a"), point=(0, 0, 0), point_b=(0, 0, 0)),
            Constraint("distance", "rod", ("world", "a"), point=(5.0, 0, 0), point_b=(1.0, 0, 0), length=2.0),
        ],
    )
    with pytest.raises(ArgumentError, match=r"no consistent configuration .* 'rod' \(distance\): residual"):
        system.consistent()


def test_axes_the_wrong_way_round_are_refused():
    system = ConstrainedSystem(
        [ConstrainedBody("a", BODY)],
        [Constraint("revolute", "hinge", ("world", "a"), point=(0, 0, 0), axis=(0, 0, 1), axis_b=(0, 0, -1))],
    )
    for made in (system.state, system.consistent):
        with pytest.raises(ArgumentError, match=r"'hinge' .* opposite"):
            made()


def test_a_holonomic_constraint_is_a_distance_written_by_hand():
    anchor, length = np.array([0.2, 0.1, 2.0]), 1.0

    def function(T):
        s = T[0, :3, 3] - anchor
        return np.array([0.5 * (s @ s / length - length)])

    def jacobian(T):
        J = np.zeros((1, 1, 6))
        J[0, 0, 3:] = T[0, :3, :3].T @ (T[0, :3, 3] - anchor) / length
        return J

    def bias(T, V):
        v, s = V[0, 3:], T[0, :3, :3].T @ (T[0, :3, 3] - anchor)
        return np.array([(v + np.cross(s, V[0, :3])) @ v / length])

    body = ConstrainedBody("a", BODY, cases.place(so3.exp((0.3, 0.4, 0.5)), anchor - (0, 0, length)))
    built_in = Constraint("distance", "c", ("world", "a"), point=anchor, point_b=(0, 0, 0), length=length)
    V = [[0.5, -1.0, 2.0, 1.0, 2.0, 0.0]]
    systems = [
        ConstrainedSystem([body], [c])
        for c in (
            built_in,
            Constraint.holonomic("c", ["a"], function, jacobian),
            Constraint.holonomic("c", ["a"], function, jacobian, bias),
        )
    ]
    results = [
        (s.accelerations(0.0, y), s.reactions(0.0, y)["c"].ravel()) for s in systems for y in [s.consistent(None, V)]
    ]
    for a, w in results[1:]:
        np.testing.assert_allclose(a, results[0][0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(w, results[0][1], rtol=0, atol=1e-9)
    with pytest.raises(ArgumentError, match=r"'c': jacobian: differs .* row 0, body 'a', component"):
        ConstrainedSystem([body], [Constraint.holonomic("c", ["a"], function, lambda T: 1.01 * jacobian(T))])


A = ConstrainedBody("a", BODY)
PIVOT = Constraint("spherical", "p", ("world", "a"), point=(0, 0, 0))
BAD = {
    "no bodies": (lambda: ConstrainedSystem([], []), ModelError, "bodies: expected at least one"),
    "not a body": (lambda: ConstrainedSystem(["a"], []), ArgumentError, "body 0: expected a ConstrainedBody"),
    "not a constraint": (lambda: ConstrainedSystem([A], [3]), ArgumentError, "constraint 0: expected a Constraint"),
    "body twice": (lambda: ConstrainedSystem([A, A], []), ModelError, "body 'a': the name is taken"),
    "world taken": (lambda: ConstrainedSystem([ConstrainedBody("world", BODY)], []), ModelError, "'world'"),
    "constraint twice": (
        lambda: ConstrainedSystem([A], [PIVOT, PIVOT]),
        ModelError,
        "constraint 'p': the name is taken",
    ),
    "unknown body": (
        lambda: ConstrainedSystem([A], [Constraint("spherical", "p", ("world", "x"), point=(0, 0, 0))]),
        NameNotFoundError,
        "constraint 'p': no body named 'x'; known: 'a', 'world'",
    ),
    "unknown kind": (
        lambda: ConstrainedSystem([A], [Constraint("glue", "p", ("world", "a"))]),
        ModelError,
        "constraint 'p': kind: expected one of spherical, .* got 'glue'",
    ),
    "one body": (
        lambda: ConstrainedSystem([A], [Constraint("fixed", "p", ("a",))]),
        ModelError,
        "constraint 'p': bodies: expected two",
    ),
    "to itself": (
        lambda: ConstrainedSystem([A], [Constraint("fixed", "p", ("a", "a"))]),
        ModelError,
        "constraint 'p': b must be",
    ),
    "world as b": (
        lambda: ConstrainedSystem([A], [Constraint("fixed", "p", ("a", "world"))]),
        ModelError,
        "constraint 'p': b must be",
    ),
    "zero axis": (
        lambda: ConstrainedSystem([A], [Constraint("revolute", "p", ("world", "a"), point=(0, 0, 0), axis=(0, 0, 0))]),
        ModelError,
        "constraint 'p': axis: expected a direction",
    ),
    "nan point": (
        lambda: ConstrainedSystem([A], [Constraint("spherical", "p", ("world", "a"), point=(0, np.nan, 0))]),
        ArgumentError,
        "'p': point: expected finite",
    ),
    "point's shape": (
        lambda: ConstrainedSystem([A], [Constraint("spherical", "p", ("world", "a"), point=(0, 0))]),
        ArgumentError,
        "'p': point: expected shape",
    ),
    "zero distance": (
        lambda: ConstrainedSystem(
            [A], [Constraint("distance", "p", ("world", "a"), point=(0, 0, 0), point_b=(0, 0, 0))]
        ),
        ModelError,
        "'p': length: expected more than 0",
    ),
    "negative distance": (
        lambda: ConstrainedSystem(
            [A], [Constraint("distance", "p", ("world", "a"), point=(0, 0, 0), point_b=(1, 0, 0), length=-1.0)]
        ),
        ModelError,
        "'p': length: expected more than 0",
    ),
    "massless": (
        lambda: ConstrainedSystem([ConstrainedBody("a", np.zeros(10))], []),
        ModelError,
        "body 'a': inertia: .* positive mass",
    ),
    "thin rod": (
        lambda: ConstrainedSystem([ConstrainedBody("a", inertia.from_com(1.0, (0, 0, 0), np.diag([0, 1.0, 1.0])))], []),
        ModelError,
        "body 'a': inertia: .* moments of inertia",
    ),
    "not physical": (
        lambda: ConstrainedSystem([ConstrainedBody("a", inertia.from_com(1.0, (0, 0, 0), np.diag([1, 1.0, 3.0])))], []),
        InertiaError,
        "body 'a': triangle",
    ),
    "inertia's shape": (
        lambda: ConstrainedSystem([ConstrainedBody("a", np.ones(9))], []),
        ArgumentError,
        "body 'a': inertia",
    ),
    "pose": (
        lambda: ConstrainedSystem([ConstrainedBody("a", BODY, 2 * np.eye(4))], []),
        ArgumentError,
        "body 'a': pose",
    ),
    "group": (lambda: ConstrainedSystem([A], [], group=SO3()), ArgumentError, "body 'a': group: expected SE3"),
    "gravity": (lambda: ConstrainedSystem([A], [], gravity=(0, 0)), ArgumentError, "gravity"),
    "stabilisation": (
        lambda: ConstrainedSystem([A], [], stabilisation="strong"),
        ArgumentError,
        "stabilisation: expected None",
    ),
    "baumgarte": (lambda: Baumgarte(-1.0, 1.0), ArgumentError, "Baumgarte: damping: expected a number >= 0"),
    "ggl": (lambda: GGL(np.nan), ArgumentError, "GGL: rate: expected a number >= 0"),
    "poses' shape": (lambda: ConstrainedSystem([A], []).state(np.eye(4)), ArgumentError, "poses: expected shape"),
    "velocities' shape": (lambda: ConstrainedSystem([A], []).state(None, np.zeros(6)), ArgumentError, "velocities"),
    "last row": (
        lambda: ConstrainedSystem([A], []).state(np.diag([1.0, 1.0, 1.0, 2.0])[None]),
        ArgumentError,
        "poses: expected transforms",
    ),
    "wrench": (lambda: ConstrainedSystem([A], [], wrench=3), ArgumentError, "wrench: expected a function"),
    "every": (
        lambda: integrate_index1(
            ConstrainedSystem([A], []), ConstrainedSystem([A], []).state(), (0, 1), 0.1, project=True, every=0
        ),
        ArgumentError,
        "every: expected a positive integer",
    ),
    "bodies": (lambda: ConstrainedSystem(3, []), ArgumentError, "bodies: expected a sequence of bodies, got 3"),
    "constraints": (lambda: ConstrainedSystem([A], None), ArgumentError, "constraints: expected a sequence"),
    "name": (lambda: ConstrainedSystem([ConstrainedBody(3, BODY)], []), ArgumentError, "body 3: name: expected a str"),
    "bodies in a string": (
        lambda: ConstrainedSystem([A], [Constraint.holonomic("p", "a", np.zeros, np.zeros)]),
        ArgumentError,
        "'p': bodies: expected a tuple of names, got 'a'",
    ),
    "bodies None": (
        lambda: ConstrainedSystem([A], [Constraint("fixed", "p", None)]),
        ArgumentError,
        "'p': bodies: expected a tuple of names, got None",
    ),
    "no axis": (
        lambda: ConstrainedSystem([A], [Constraint("revolute", "p", ("world", "a"), point=(0, 0, 0), axis=None)]),
        ArgumentError,
        "'p': axis: expected .*shape",
    ),
    "function of words": (
        lambda: ConstrainedSystem([A], [Constraint.holonomic("p", ["a"], lambda T: "up", np.zeros)]),
        ArgumentError,
        "'p': function: expected numbers, got 'up'",
    ),
    "field's state": (
        lambda: ConstrainedSystem([A], []).field(0.0, np.zeros(21)),
        IntegrationError,
        r"y: expected shape \(..., 22\), got \(21,\)",
    ),
    "state off the group": (
        lambda: ConstrainedSystem([A], []).project(np.zeros(22)),
        ArgumentError,
        r"y: expected rotations, got \|R\^T R - 1\| = 1",
    ),
    "not a rotation": (
        lambda: ConstrainedSystem([A], []).state(np.diag([2.0, 2.0, 2.0, 1.0])[None]),
        ArgumentError,
        "poses: expected a rotation",
    ),
    "state's shape": (
        lambda: ConstrainedSystem([A], []).reactions(0.0, np.zeros(3)),
        ArgumentError,
        "y: expected shape",
    ),
    "several states": (
        lambda: ConstrainedSystem([A], []).rank(np.zeros((2, 22))),
        ArgumentError,
        "y: expected one state",
    ),
    "free": (lambda: ConstrainedSystem([A], []).consistent(free=[1.0]), ArgumentError, "free: expected booleans"),
    "wrench's shape": (
        lambda: ConstrainedSystem([A], [], wrench=lambda t, T, V: np.zeros(6)).accelerations(
            0.0, ConstrainedSystem([A], []).state()
        ),
        ArgumentError,
        r"wrench must return shape \(1, 6\), got \(6,\)",
    ),
    "function's shape": (
        lambda: ConstrainedSystem(
            [A], [Constraint.holonomic("p", ["a"], lambda T: 0.0, lambda T: np.zeros((1, 1, 6)))]
        ),
        ArgumentError,
        "'p': function: expected",
    ),
    "jacobian's shape": (
        lambda: ConstrainedSystem(
            [A], [Constraint.holonomic("p", ["a"], lambda T: T[0, :1, 3], lambda T: np.zeros(6))]
        ),
        ArgumentError,
        "'p': jacobian: expected",
    ),
    "holonomic to the world": (
        lambda: ConstrainedSystem(
            [A], [Constraint.holonomic("p", ["world"], lambda T: T[0, :1, 3], lambda T: np.zeros((1, 1, 6)))]
        ),
        ModelError,
        "'p': bodies: expected different bodies",
    ),
    "one axis": (
        lambda: ConstrainedSystem(
            [A], [Constraint("universal", "p", ("world", "a"), point=(0, 0, 0), axis=(0, 0, 1), axis_b=None)]
        ),
        ArgumentError,
        "'p': axis_b: a universal joint needs both",
    ),
    "adaptive projection": (
        lambda: integrate_index1(
            ConstrainedSystem([A], []), ConstrainedSystem([A], []).state(), (0, 1), 0.1, "MK54", project=True
        ),
        ArgumentError,
        "project: needs a fixed-step method",
    ),
    "step": (
        lambda: integrate_index1(
            ConstrainedSystem([A], []), ConstrainedSystem([A], []).state(), (0, 1), 2.0, project=True
        ),
        ArgumentError,
        "h: expected",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_by_name(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, GeomctrlError)


def test_a_users_functions_may_reuse_their_buffers_and_write_on_what_they_get():
    J = np.zeros((1, 1, 6))

    def slope(T):
        J[0, 0, :3], J[0, 0, 3:] = 0.0, T[0, 2, :3]
        return J

    def scribble(f):
        def inner(T):
            out = f(T).copy()
            T[:] = 7.0
            return out

        return inner

    ends = []
    for function, jacobian in (
        (lambda T: T[0, 2:3, 3], slope),
        (scribble(lambda T: T[0, 2:3, 3]), scribble(slope)),
        (lambda T: T[0, 2:3, 3].copy(), lambda T: slope(T).copy()),
    ):
        system = ConstrainedSystem([A], [Constraint.holonomic("floor", ("a",), function, jacobian)])
        y0 = system.state(None, [[1.0, 2.0, 3.0, 0.5, 0.2, 0.0]])
        ends.append(integrate_index1(system, y0, (0.0, 0.3), 0.01).y[-1])
    assert np.array_equal(ends[0], ends[2])
    assert np.array_equal(ends[1], ends[2])


def test_a_projection_that_fails_hands_over_the_solution_so_far():
    """Two pivots are pulled apart by a user's function of time, until the constraints can no longer hold."""
    calls = []

    def function(T):
        calls.append(0)
        return np.array([T[0, 0, 3] ** 2 + (1.0 if len(calls) > 60 else 0.0)])

    def jacobian(T):
        J = np.zeros((1, 1, 6))
        J[0, 0, 3:] = 2.0 * T[0, 0, 3] * T[0, 0, :3]
        return J

    system = ConstrainedSystem([A], [Constraint.holonomic("c", ["a"], function, jacobian, lambda T, V: np.zeros(1))])
    with pytest.raises(IntegrationError, match=r"'c' .* at t = ") as caught:
        integrate_index1(system, system.state(), (0.0, 1.0), 0.05, project=True)
    assert 1 <= len(caught.value.solution.t) < 20


@pytest.mark.parametrize("project", [False, True])
def test_a_function_of_the_users_that_fails_says_when_and_keeps_the_run_so_far(project):
    """A wrench becomes nan at 0.3 s; the function of a constraint becomes nan below a height."""

    def height_zero(T):
        return np.array([T[0, 0, 3] if T[0, 2, 3] > -0.2 else np.nan])

    def jacobian(T):
        J = np.zeros((1, 1, 6))
        J[0, 0, 3:] = T[0, 0, :3]
        return J

    still = np.zeros((1, 6))
    blown = ConstrainedSystem([A], [], wrench=lambda t, T, V: still if t < 0.29 else still / 0.0 * 0.0)
    falling = ConstrainedSystem([A], [Constraint.holonomic("wall", ["a"], height_zero, jacobian)])
    for system, message, steps in ((blown, r"wrench\(t, poses, twists\): expected finite", 29),
                                   (falling, "constraint 'wall': function: expected finite", 20)):  # fmt: skip
        with np.errstate(invalid="ignore", divide="ignore"), pytest.raises(IntegrationError, match=message) as caught:
            integrate_index1(system, system.state(), (0.0, 1.0), 0.01, project=project, every=7)
        assert "at t = 0." in str(caught.value)
        ended = caught.value.solution
        assert abs(ended.n_steps - steps) <= 1
        assert ended.t[-1] == pytest.approx(0.01 * ended.n_steps)
        assert len(ended.t) == ended.n_steps // 7 + 1 + (ended.n_steps % 7 > 0)


def test_a_state_is_an_element_of_its_group():
    system = ConstrainedSystem([A, ConstrainedBody("b", BODY, None, SO3xR3())], [PIVOT])
    rng = np.random.default_rng(0)
    group, plain = system.group, type(system.group).__mro__[1](SE3(), SO3xR3(), groups.Rn(12))
    y, x, z = group.random(rng), rng.normal(size=24), rng.normal(size=24)
    assert group.shape == plain.shape == (40,)
    np.testing.assert_allclose(group.advance(y, x), plain.advance(y, x), rtol=0, atol=1e-13)
    np.testing.assert_allclose(group.dexp_inv_mul(x, z), plain.dexp_inv_mul(x, z), rtol=0, atol=1e-13)
    batch = np.stack([y, group.random(rng)])
    np.testing.assert_allclose(
        group.advance(batch, np.stack([x, z])), plain.advance(batch, np.stack([x, z])), rtol=0, atol=1e-13
    )
    assert repr(group) == "Product(SE3(), SO3xR3(), Rn(12))"
