"""Arguments of every term: accepted arrays, and error messages for invalid ones."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import derivatives, se3, testing
from geomctrl.errors import ArgumentError
from geomctrl.papers import curvature, sensitivities

NAMES = {  # term: the names of its arguments
    "mass_matrix": ("q",),
    "mass_matrix_rate": ("q", "v"),
    "coriolis_matrix": ("q", "v"),
    "terms": ("q", "v"),
    "gravity_force": ("q",),
    "inverse_dynamics": ("q", "v", "a", "v_ref", "f_ext"),
    "forward_dynamics": ("q", "v", "tau", "f_ext"),
    "regressor": ("q", "v", "a", "v_ref"),
    "kinetic_energy": ("q", "v"),
    "potential_energy": ("q",),
    "energy": ("q", "v"),
    "momentum": ("q", "v"),
    "integrate": ("q", "dv"),
    "difference": ("q0", "q1"),
    "pose": ("q",),
    "jacobian": ("q",),
    "jacobian_rate": ("q", "v"),
}
EVERY = [(term, name) for term, names in NAMES.items() for name in names]


@pytest.fixture(scope="module", params=["arm", "floating"])
def robot(request):
    rng = np.random.default_rng(0)
    if request.param == "arm":
        return testing.random_robot(rng, ["revolute", "prismatic", "helical"], [-1, 0, 0])
    return testing.random_robot(rng, ["free", "revolute", "spherical"], [-1, 0, 1])


def call(robot, term, replaced=(), value=None, lead=()):
    arguments = {}
    for name in NAMES[term]:
        shape = {"f_ext": (robot.nbodies, 6)}.get(name, (robot.nv,))
        x = robot.neutral() if name in ("q", "q0", "q1") else np.full(shape, 0.5)
        arguments[name] = np.broadcast_to(x, lead + x.shape).copy()
    if replaced:
        arguments[replaced] = value(arguments[replaced])
    if term in ("pose", "jacobian", "jacobian_rate"):
        arguments["frame"] = "body2"
    return getattr(robot, term)(**arguments)


def expected_shape(robot, name):
    return {"q": robot.nq, "q0": robot.nq, "q1": robot.nq, "f_ext": f"{robot.nbodies}, 6"}.get(name, robot.nv)


@pytest.mark.parametrize(("term", "name"), EVERY)
def test_wrong_sizes_are_refused(robot, term, name):
    text = rf"{name}: expected .*shape \(\.\.\., {expected_shape(robot, name)}\)"
    for wrong in (
        lambda x: x[..., :-1],
        lambda x: np.concatenate((x, x), -1),
        lambda x: x.ravel()[0],
        lambda x: np.zeros((0,)),
        lambda x: x[..., None],
    ):
        with pytest.raises(ArgumentError, match=text):
            call(robot, term, name, wrong)


@pytest.mark.parametrize(("term", "name"), EVERY)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(robot, term, name, bad):
    def spoil(x):
        x[..., -1] = bad
        return x

    for lead in ((), (2,), (2, 3)):
        with pytest.raises(ArgumentError, match=rf"{name}: expected finite numbers, got {bad} at index \["):
            call(robot, term, name, spoil, lead)


@pytest.mark.parametrize(("term", "name"), EVERY)
def test_what_are_no_numbers_is_refused(robot, term, name):
    for wrong in ("left", None, [[1.0], [1.0, 2.0]], {"a": 1}):
        if wrong is None and name in ("v_ref", "f_ext"):
            continue
        with pytest.raises(ArgumentError, match=rf"{name}: expected "):
            call(robot, term, name, lambda x, wrong=wrong: wrong)


@pytest.mark.parametrize(("term", "name"), EVERY)
def test_complex_numbers_are_refused_not_truncated(robot, term, name):
    with pytest.raises(ArgumentError, match=rf"{name}: expected "):
        call(robot, term, name, lambda x: x + 1j)


@pytest.mark.parametrize(("term", "name"), EVERY)
def test_masked_arrays_and_arrays_of_objects_are_refused(robot, term, name):
    """Masked arrays and arrays without numbers are refused in compiled code and loops, for one state and for many."""
    for lead in ((), (2,)):
        with pytest.raises(ArgumentError, match=rf"{name}: expected no masked entries, got 1 masked"):
            call(robot, term, name, lambda x: np.ma.masked_array(x, np.arange(x.size).reshape(x.shape) == 1), lead)
        for stranger in (None, "1", True):
            with pytest.raises(ArgumentError, match=rf"{name}: expected real numbers"):
                call(
                    robot,
                    term,
                    name,
                    lambda x, s=stranger: np.array([s, *x.flat][: x.size], object).reshape(x.shape),
                    lead,
                )
        call(robot, term, name, np.ma.masked_array, lead)  # no entry is masked


@pytest.mark.parametrize("name", ["q", "v", "a"])
def test_masks_are_seen_by_terms_with_an_entry_of_their_own(robot, name):
    q, v = robot.neutral(), np.full(robot.nv, 0.5)
    inputs = {"q": q, "v": v, "a": v, "dq": v, "dv": v, "da": v}
    inputs[name] = np.ma.masked_array(inputs[name], np.arange(inputs[name].size) == 0)
    for term, names in {
        derivatives.mass_matrix_derivative: "q", curvature.christoffel_symbols: "q", gc.Robot.mass_matrix_solve: "q a",
        sensitivities.inverse_dynamics_derivatives_along: "q v a dq dv da", derivatives.inverse_dynamics_rates: "q",
        sensitivities.geometric_sensitivity: "q v a",
    }.items():  # fmt: skip
        arguments = [inputs[x] for x in names.split()]
        arguments += [np.stack((v, v))] if term is derivatives.inverse_dynamics_rates else []
        if name in names.split():
            with pytest.raises(ArgumentError, match="1 masked"):
                term(robot, *arguments)


def test_options_are_checked(robot):
    """Threads are used only if there are several states."""
    q, v = robot.neutral(), np.zeros(robot.nv)
    many, rates = np.stack((q, q)), np.stack((v, v))
    for bad in (0, -1, 1.5, 1e30, 10**30, np.nan, "2", None, np.ones(2), True):
        for term in (robot.mass_matrix, robot.inverse_dynamics, robot.forward_dynamics, robot.regressor, robot.terms):
            states = [many, rates, rates][: 1 if term == robot.mass_matrix else 2 if term == robot.terms else 3]
            with pytest.raises(ArgumentError, match="threads: expected a whole number from 1 on"):
                term(*states, threads=bad)
    for bad in ("Ploen", None, 1, np.ones(2), ["ploen"]):
        for term in (robot.inverse_dynamics, robot.regressor, robot.terms):
            with pytest.raises(ArgumentError, match="form: expected one of 'ploen', 'christoffel', 'adjoint'"):
                term(*[q, v, v][: 2 if term == robot.terms else 3], form=bad)
    with pytest.raises(ArgumentError, match="kind: expected 1 or 2"):
        curvature.christoffel_symbols(robot, q, kind=np.ones(2))


@pytest.mark.parametrize(("term", "name"), [e for e in EVERY if len(NAMES[e[0]]) > 1])
def test_nothing_is_broadcast(robot, term, name):
    with pytest.raises(ArgumentError, match=r"expected the leading axes of .*nothing is broadcast"):
        call(robot, term, name, lambda x: np.stack((x, x)))
    with pytest.raises(ArgumentError, match=r"expected the leading axes of .*nothing is broadcast"):
        call(robot, term, name, lambda x: x[:1], lead=(3,))


@pytest.mark.parametrize(("term", "name"), [e for e in EVERY if e[1] in ("q", "q0", "q1")])
def test_poses_that_hold_no_rotation_are_refused(term, name):
    robot = testing.random_robot(np.random.default_rng(0), ["revolute", "free", "spherical"], [-1, 0, 1])

    def scaled(x):
        x[..., 1:13] *= 1.001
        return x

    def mirrored(x):
        x[..., 13] *= -1.0
        return x

    for lead in ((), (3,)):
        with pytest.raises(
            ArgumentError, match=rf"{name}: entries 1 to 12, the pose \[R \| p\] of joint 'joint1', hold no rotation"
        ):
            call(robot, term, name, scaled, lead)
        with pytest.raises(
            ArgumentError, match=rf"{name}: entries 13 to 24, .* 'joint2', hold no rotation: .* det R = -1"
        ):
            call(robot, term, name, mirrored, lead)


@pytest.mark.parametrize(("term", "name"), [e for e in EVERY if e[1] in ("q", "q0", "q1")])
def test_poses_that_their_joints_can_not_reach_are_refused(term, name):
    """Spherical, planar and cylindrical joints refuse poses off their motions; a free joint accepts any pose."""
    kinds = ["free", "spherical", "planar", "cylindrical"]
    robot = testing.random_robot(np.random.default_rng(0), kinds, [-1, 0, 0, 1])
    call(robot, term)
    for i, joint in enumerate(robot.joints[1:], 1):
        T = se3.exp(1e-3 * np.linalg.svd(joint.S)[0][:, -1])  # along a twist that the joint can not do

        def displaced(x, s=robot.q_slices[i], T=T):
            x[..., s] = T[:3].ravel()
            return x

        text = rf"{name}: entries {12 * i} to {12 * i + 11}, .* {joint.name!r}, are not one of a {joint.kind} joint"
        for lead in ((), (3,)):
            with pytest.raises(ArgumentError, match=text):
                call(robot, term, name, displaced, lead)


def flat(terms):
    return np.concatenate([np.ravel(x) for x in (terms if isinstance(terms, tuple) else (terms,))])


@pytest.mark.parametrize(("term", "name"), EVERY)
def test_arrays_of_any_layout_are_taken(robot, term, name):
    """Big-endian, read-only, strided and single-precision arrays and lists with the same numbers give the same
    result.
    """

    def read_only(x):
        x.setflags(write=False)
        return x

    layouts = [
        lambda x: x.astype(">f8"),
        read_only,
        lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
        np.float32,
        np.ndarray.tolist,
        np.asfortranarray,
        np.ma.masked_array,
        lambda x: x.astype(object),
    ]
    for lead in ((), (2,)):
        expected = flat(call(robot, term, lead=lead))
        for layout in layouts:
            np.testing.assert_array_equal(flat(call(robot, term, name, layout, lead)), expected)
