"""Bundled robots: their numbers against closed forms, papers and independent files."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_oracle import pinocchio_terms, robot_file

import geomctrl as gc
from geomctrl import inertia, models

URDF_TWINS = {  # bundled robot: (file in example-robot-data, floating base)
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", False),
    "quadruped": ("a1_description/urdf/a1.urdf", True),
}


def bundled():
    return [models.load(name) for name in models.names()]


@pytest.fixture(params=models.names())
def robot(request):
    return models.load(request.param)


# --- the list ----------------------------------------------------------------------------------------------------


def test_names_are_functions_of_the_package():
    assert set(models.names()) >= {"two_link", "puma560", "panda", "ur10", "scara", "three_spheres", "quadruped"}
    for name in models.names():
        assert callable(getattr(models, name))
        assert models.load(name).name == name


def test_options_pass_through_load():
    assert models.load("two_link", masses=(2.0, 3.0)).parameters[:, 0].tolist() == [2.0, 3.0]


def test_unknown_name_lists_near_misses():
    with pytest.raises(gc.errors.NameNotFoundError, match=r"'pandas'.*did you mean 'panda'.*two_link"):
        models.load("pandas")


def test_importing_models_imports_no_parser():
    code = (
        "import sys, geomctrl.models; print([m for m in ('yourdfpy', 'mujoco', 'trimesh', 'lxml') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


# --- all of them -------------------------------------------------------------------------------------------------


def test_is_physical(robot):
    assert inertia.is_physical(robot.parameters, strict=True).all()


def test_mass_matrix_is_positive_definite(robot):
    rng = np.random.default_rng(1)
    for _ in range(20):
        M = robot.mass_matrix(robot.random_configuration(rng))
        np.testing.assert_allclose(M, M.T, atol=1e-12 * np.abs(M).max())
        assert np.linalg.eigvalsh(M)[0] > 0.0


def test_each_call_makes_an_independent_robot(robot):
    with pytest.raises(ValueError, match="read-only"):
        robot.parameters[0, 0] = 1.0


def test_masses_and_sizes():
    total = {r.name: round(float(r.parameters[:, 0].sum()), 6) for r in bundled()}
    assert total == {
        "two_link": 2.0,
        "puma560": 36.45,  # 13 (assumed) + 17.4 + 4.8 + 0.82 + 0.34 + 0.09
        "panda": 16.062132,
        "ur10": 28.7,
        "scara": 16.0,
        "three_spheres": 30.0,
        "quadruped": 13.741,
        "satellite": 750.0,
        "quadrotor": 4.34,
        "cart_pole": 1.1,
    }
    sizes = {r.name: (r.nv, r.nq) for r in bundled()}
    assert sizes["panda"] == (7, 7)
    assert sizes["quadruped"] == (18, 24)
    assert sizes["three_spheres"] == (8, 14)
    assert sizes["satellite"] == (3, 12)
    assert sizes["quadrotor"] == (6, 12)


# --- two_link ----------------------------------------------------------------------------------------------------

positive = st.floats(0.1, 5.0)
angle = st.floats(-3.0, 3.0)


@settings(max_examples=50, deadline=None)
@given(st.tuples(*[positive] * 8), st.tuples(*[angle] * 4))
def test_two_link_closed_form(p, state):
    l1, l2, m1, m2, c1, c2, I1, I2 = p
    q1, q2, v1, v2 = state
    robot = models.two_link((l1, l2), (m1, m2), (c1, c2), (I1, I2))
    a, b, d = I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2), m2 * l1 * c2, I2 + m2 * c2**2
    M = np.array([[a + 2 * b * np.cos(q2), d + b * np.cos(q2)], [d + b * np.cos(q2), d]])
    C = b * np.sin(q2) * np.array([[-v2, -v1 - v2], [v1, 0.0]])
    g = 9.81 * np.array([(m1 * c1 + m2 * l1) * np.cos(q1) + m2 * c2 * np.cos(q1 + q2), m2 * c2 * np.cos(q1 + q2)])
    terms = robot.terms(np.array([q1, q2]), np.array([v1, v2]), form="christoffel")
    scale = M[0, 0] + np.abs(C).max() + np.abs(g).max()
    np.testing.assert_allclose(terms.M, M, atol=1e-13 * scale)
    np.testing.assert_allclose(terms.C, C, atol=1e-12 * scale)
    np.testing.assert_allclose(terms.g, g, atol=1e-13 * scale)


def test_two_link_tip():
    q = np.array([0.3, 0.4])
    tip = models.two_link((1.0, 0.5)).pose(q, "tip")[:3, 3]
    np.testing.assert_allclose(tip, [np.cos(0.3) + 0.5 * np.cos(0.7), 0.0, np.sin(0.3) + 0.5 * np.sin(0.7)], atol=1e-15)


def test_two_link_point_masses_are_a_double_pendulum():
    robot = models.two_link((1.0, 1.0), (1.0, 1.0), coms=(1.0, 1.0), inertias=(0.0, 0.0))
    np.testing.assert_allclose(robot.mass_matrix(np.zeros(2)), [[5.0, 2.0], [2.0, 1.0]], atol=1e-14)


def test_two_link_refuses_what_is_no_arm():
    with pytest.raises(gc.errors.ArgumentError, match="masses: expected two finite numbers"):
        models.two_link(masses=(1.0, np.nan))
    with pytest.raises(gc.errors.ArgumentError, match="lengths: expected positive"):
        models.two_link(lengths=(1.0, -1.0))
    with pytest.raises(gc.errors.InertiaError, match=r"link2.*mass -1 is negative"):
        models.two_link(masses=(1.0, -1.0))
    with pytest.raises(gc.errors.ModelError, match=r"singular.*joint2"):
        models.two_link(coms=(0.5, 0.0), inertias=(0.1, 0.0))


# --- puma560 -----------------------------------------------------------------------------------------------------


def test_puma_reproduces_the_papers_explicit_model():
    """Armstrong, Khatib, Burdick 1986, appendix: constants I4 to I13, I23, g1 to g5 (wrist straight)."""
    robot = models.puma560()
    rng = np.random.default_rng(2)
    for _ in range(10):
        q = rng.uniform(-3, 3, 6)
        q[3:] = 0.0
        c2, s2, c3, s3 = np.cos(q[1]), np.sin(q[1]), np.cos(q[2]), np.sin(q[2])
        c23, s23 = np.cos(q[1] + q[2]), np.sin(q[1] + q[2])
        M = robot.mass_matrix(q)
        a22 = 4.71 + 1.75 + 0.333 + 2 * (0.372 * s3 - 0.011 * c3)
        a23 = 0.372 * s3 + 0.333 - 0.011 * c3
        np.testing.assert_allclose(M[0, 1], 0.69 * s2 - 0.134 * c23 + 0.0238 * c2 - 0.00379 * s23, atol=3e-3)
        np.testing.assert_allclose(M[0, 2], -0.134 * c23 - 0.00379 * s23, atol=3e-3)
        np.testing.assert_allclose(M[1, 1], a22, rtol=2e-3)
        np.testing.assert_allclose(M[1, 2], a23, atol=1e-2)
        np.testing.assert_allclose(M[2, 2], 0.827 + 0.333, rtol=5e-3)
        np.testing.assert_allclose(np.diag(M)[3:], [0.2016, 0.1796, 0.193], atol=2e-3)
        g = [0.0, -37.2 * c2 - 8.44 * s23 + 1.02 * s2 + 0.249 * c23 - 0.0282 * s23]
        g += [-8.44 * s23 + 0.249 * c23 - 0.0282 * s23]
        np.testing.assert_allclose(robot.gravity_force(q)[:3], g, atol=0.1)


def test_puma_m11_is_near_the_papers():
    """The paper's I1 and I3 do not follow from its own tables (see the module); M11 differs by 10 %."""
    robot = models.puma560()
    for q2, q3 in ((0.0, 0.0), (0.5, 1.0), (-1.0, 0.3)):
        c2, c23, s23 = np.cos(q2), np.cos(q2 + q3), np.sin(q2 + q3)
        a11 = 1.14 + 1.43 + 1.38 * c2**2 + 0.298 * s23**2 - 0.0213 * s23 * c23 - 0.0142 * np.sin(q2) * c2
        a11 += 2 * (0.372 * c2 * s23 - 0.011 * c2 * c23)
        M11 = robot.mass_matrix(np.array([0.0, q2, q3, 0.0, 0.0, 0.0]))[0, 0]
        np.testing.assert_allclose(M11, a11, rtol=0.1)


def test_puma_link_1_acts_through_its_axis_only():
    robot = models.puma560()
    pi = robot.parameters.copy()
    pi[0] = inertia.from_com(99.0, np.array([0.0, 0.0, 0.3]), np.diag([0.9, 0.8, 0.35]))
    other, q = robot.with_parameters(pi), np.linspace(-1, 1, 6)
    np.testing.assert_allclose(other.mass_matrix(q), robot.mass_matrix(q), atol=1e-13)
    np.testing.assert_allclose(other.gravity_force(q), robot.gravity_force(q), atol=1e-13)


# --- panda -------------------------------------------------------------------------------------------------------


def test_panda_flange_and_hand():
    robot, q = models.panda(), np.zeros(7)
    flange = robot.pose(q, "panda_link8")
    np.testing.assert_allclose(flange[:3, 3], [0.088, 0.0, 0.333 + 0.316 + 0.384 - 0.107], atol=1e-15)
    np.testing.assert_allclose(flange[:3, :3], np.diag([1.0, -1.0, -1.0]), atol=1e-15)
    down = robot.pose(q, "panda_hand")[:3, 3] - robot.pose(q, "panda_hand_tcp")[:3, 3]
    np.testing.assert_allclose(down, [0.0, 0.0, 0.1034], atol=1e-15)


def test_panda_hand_adds_a_payload_and_moves_no_frame():
    bare, full = models.panda(), models.panda(hand=True)
    np.testing.assert_allclose(full.parameters[:, 0].sum() - bare.parameters[:, 0].sum(), 0.76, atol=1e-12)
    np.testing.assert_array_equal(full.parameters[:6], bare.parameters[:6])
    q = np.linspace(-1, 1, 7)
    for frame in ("panda_link8", "panda_hand", "panda_hand_tcp"):
        np.testing.assert_allclose(full.pose(q, frame), bare.pose(q, frame), atol=1e-15)


def test_panda_limits():
    limits = models.panda().limits
    np.testing.assert_array_equal(limits.effort, [87, 87, 87, 87, 12, 12, 12])
    np.testing.assert_array_equal(limits.velocity, [2.175] * 4 + [2.61] * 3)
    assert (limits.lower < limits.upper).all()
    assert limits.upper[3] < 0.0


# --- scara, three_spheres ----------------------------------------------------------------------------------------


def test_scara_closed_form():
    """Terms of a planar two-link arm, a decoupled lift, and a roll joint that turns in the opposite direction."""
    robot = models.scara()
    q = np.array([0.2, -0.7, 0.1, 1.3])
    m1, m2, m3, l1, l2, w2 = 8.0, 6.0, 2.0, 0.325, 0.275, 0.12**2
    I1, I2 = m1 * (l1**2 + w2) / 12, m2 * (l2**2 + w2) / 12
    Iz, Iq = m3 * 0.015**2 / 2, 1.5 * 0.015**2 / 2
    b = l1 * (m2 * l2 / 2 + m3 * l2) * np.cos(q[1])
    d = I2 + m2 * l2**2 / 4 + m3 * l2**2 + Iz
    a = I1 + m1 * l1**2 / 4 + (m2 + m3) * l1**2 + d
    M = np.array([[a + 2 * b, d + b, 0, -Iq], [d + b, d, 0, -Iq], [0, 0, m3, 0], [-Iq, -Iq, 0, Iq]])
    np.testing.assert_allclose(robot.mass_matrix(q), M, atol=1e-14)
    np.testing.assert_allclose(robot.gravity_force(q), [0, 0, -9.81 * m3, 0], atol=1e-12)
    position = [l1 * np.cos(0.2) + l2 * np.cos(-0.5), l1 * np.sin(0.2) + l2 * np.sin(-0.5), 0.387 - 0.1 - 0.175]
    np.testing.assert_allclose(robot.pose(q, "tool")[:3, 3], position, atol=1e-15)


@pytest.mark.parametrize(
    ("base", "energy", "linear", "angular"),
    [
        (np.zeros(6), 16.96, (0, 24, 0), (33.6, 0, 51.2)),
        ([0.3] * 3 + [0.1] * 3, 61.27, (-3, 45, -9), (63.2, 33.6, 94.8)),
    ],
)
def test_three_spheres_initial_state_of_park_and_chung(base, energy, linear, angular):
    robot = models.three_spheres()
    q, v = robot.neutral(), np.concatenate((base, [0.4, 0.4]))
    np.testing.assert_allclose(robot.kinetic_energy(q, v), energy, atol=1e-12)
    np.testing.assert_allclose(robot.momentum(q, v), [*angular, *linear], atol=1e-12)


# --- against independent files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", URDF_TWINS)
def test_bundled_robot_agrees_with_its_published_urdf(name):
    pin = pytest.importorskip("pinocchio")
    path, floating = URDF_TWINS[name]
    text = robot_file(path).read_text()
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromXML(text)
    if name == "panda":  # that file includes the hand and its two prismatic fingers, which are locked closed here
        model = pin.buildReducedModel(
            model, [model.getJointId(f"panda_finger_joint{i}") for i in (1, 2)], pin.neutral(model)
        )
    robot = models.panda(hand=True) if name == "panda" else models.load(name)
    rng = np.random.default_rng(3)
    for _ in range(5):
        q = robot.random_configuration(rng)
        M, _, pose = pinocchio_terms(robot, model, q)
        np.testing.assert_allclose(robot.mass_matrix(q), M, atol=1e-9)  # the file rounds pi/2 to 11 digits
        for frame in robot.frames:
            if frame.name in pose:
                np.testing.assert_allclose(robot.pose(q, frame.name), pose[frame.name], atol=1e-10)
    ours = {j.name: (j.lower, j.upper, j.velocity, j.effort) for j in robot.joints if j.dof == 1}
    theirs = models.load_urdf(text, floating, mimic="fixed")
    for j in theirs.joints:
        if j.name in ours:
            np.testing.assert_allclose(ours[j.name], (j.lower, j.upper, j.velocity, j.effort), rtol=1e-10)
