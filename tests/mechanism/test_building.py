"""Robots built from bodies, Denavit-Hartenberg tables and screws, and the error messages for invalid input."""

import numpy as np
import pytest
from oracles import assert_close, assert_power_balanced
from parts import SPHERE, Z, body, translation

import geomctrl as gc
from geomctrl import inertia, models, se3
from geomctrl.errors import ArgumentError, GeomctrlError, InertiaError, ModelError, NameNotFoundError

# --- build -------------------------------------------------------------------------------------------------------


def test_sizes_slices_and_names_of_mixed_joints():
    bodies = [
        body("base", None, gc.Joint.free(name="float")),
        body("arm", "base"),
        body("puck", "base", gc.Joint.planar(Z)),
    ]
    robot = gc.Robot.build(bodies, name="mixed")
    assert (robot.nbodies, robot.nq, robot.nv) == (3, 25, 10)
    assert robot.q_slices == (slice(0, 12), slice(12, 13), slice(13, 25))
    assert robot.v_slices == (slice(0, 6), slice(6, 7), slice(7, 10))
    assert robot.joint_names == ("float", "arm", "puck")
    assert robot.dof_names == (*(f"float[{k}]" for k in range(6)), "arm", "puck[0]", "puck[1]", "puck[2]")
    assert robot.joint("puck") == 2


def test_fixed_joints_merge_bodies_and_keep_their_names():
    M = se3.exp(np.array([0.1, -0.2, 0.3, 0.4, 0.5, 0.6]))
    chain = [
        body("a"),
        body("tool", "a", gc.Joint.fixed(), M),
        body("tip", "tool", gc.Joint.fixed(), M),
        body("b", "tip"),
    ]
    robot = gc.Robot.build([*chain, body("wall", None, gc.Joint.fixed(), M), body("c", "wall")])
    assert robot.body_names == ("a", "b", "c")
    assert robot.parents == (-1, 0, -1)
    expected = SPHERE + inertia.transform(M, SPHERE) + inertia.transform(M @ M, SPHERE)
    assert_close(robot.parameters[0], expected, 1e-14)
    assert_close(robot.placements[1], M @ M, 1e-14)
    assert_close(robot.placements[2], M, 1e-15)
    tip = robot.frame("tip")
    assert (tip.name, tip.body) == ("tip", 0)
    assert_close(tip.placement, M @ M, 1e-14)
    assert robot.frame("wall").body == robot.frame("world").body == -1


def test_merged_bodies_move_as_one_welded_robot():
    """The same mechanism with the fixed joint replaced by a revolute one held at zero."""
    M = se3.exp(np.array([0.1, -0.2, 0.3, 0.4, 0.5, 0.6]))
    welded = gc.Robot.build([body("a"), body("b", "a", gc.Joint.fixed(), M), body("c", "b")])
    hinged = gc.Robot.build([body("a"), body("b", "a", None, M), body("c", "b")])
    keep, q, v = [0, 2], np.array([0.3, -0.4]), np.array([1.0, 2.0])
    Q, V = np.array([0.3, 0.0, -0.4]), np.array([1.0, 0.0, 2.0])
    assert_close(welded.mass_matrix(q), hinged.mass_matrix(Q)[np.ix_(keep, keep)], 1e-13)
    tau = hinged.inverse_dynamics(Q, V, V)[keep]
    assert_close(welded.inverse_dynamics(q, v, v), tau, 1e-13)


BAD_TREES = {
    "bodies: expected at least one, got none": list,
    "bodies: expected geomctrl.Body, got 'link'": lambda: ["link"],
    "body 'a': the name is used 2 times": lambda: [body("a"), body("a")],
    "name: expected a name, got None": lambda: [gc.Body(None, None, gc.Joint.revolute(Z), None, SPHERE)],
    "name: expected a name, got ''": lambda: [body("")],
    "name: expected a name, got 3": lambda: [body(3)],
    r"name: expected a name, got \['a'\]": lambda: [body(["a"])],
    r"body 'a': parent: expected a name or None, got \['b'\]": lambda: [body("a", ["b"])],
    "bodies: expected geomctrl.Body objects, got None": lambda: None,
    "body 'world': the name is reserved for the world frame": lambda: [body("world")],
    "body 'arm': no parent named 'bse'; did you mean 'base'?": lambda: [body("base"), body("arm", "bse")],
    "body 'arm': no parent named 'qq'; known: 'base', 'arm'": lambda: [body("base"), body("arm", "qq")],
    "bodies 'b', 'c': they form a loop": lambda: [body("a"), body("b", "c"), body("c", "b")],
    "bodies 'a': they form a loop": lambda: [body("a", "a"), body("b")],
    "bodies 'a', 'b', 'c': they form a loop or descend from one; none of them is connected to the world": lambda: [
        body("a", "b"),
        body("b", "a"),
        body("c", "b"),
    ],
    "robot 'robot': no joint that moves": lambda: [body("a", None, gc.Joint.fixed())],
    "joint 'j': the name is used 2 times": lambda: [
        body("a", None, gc.Joint.revolute(Z, name="j")),
        body("b", "a", gc.Joint.revolute(Z, name="j")),
    ],
    "body 'a': placement: expected a rotation": lambda: [body("a", placement=np.diag((2.0, 1, 1, 1)))],
    r"body 'a': placement: expected a rotation, got \|R\^T R - 1\| = .*, det R = -1": lambda: [
        body("a", placement=np.diag((-1.0, 1, 1, 1)))
    ],
    r"body 'a': placement: expected a finite 4x4 transform, got shape \(3, 3\)": lambda: [
        body("a", placement=np.eye(3))
    ],
    "body 'a': placement: expected a finite 4x4 transform": lambda: [body("a", placement=np.full((4, 4), np.nan))],
    "body 'a': placement: expected the last row": lambda: [
        body("a", placement=np.eye(4) + np.outer([0, 0, 0, 1], [1, 0, 0, 0]))
    ],
    r"body 'a': inertia: expected ten parameters \(m, h, I\), got shape \(6,\)": lambda: [body("a", pi=np.zeros(6))],
    "body 'a': mass -2 is negative": lambda: [body("a", pi=-SPHERE)],
    "body 'a': inertia: parameters are not finite": lambda: [body("a", pi=SPHERE * np.nan)],
    "body 'a': triangle inequality fails": lambda: [body("a", pi=[1.0, 0, 0, 0, 1, 0, 1, 0, 0, 3])],
    "body 'a': mass is zero but first moment or inertia is not": lambda: [
        body("a", pi=[0.0, 0, 0, 0, 1, 0, 1, 0, 0, 1])
    ],
}


@pytest.mark.parametrize("message", BAD_TREES)
def test_trees_that_can_not_be(message):
    with pytest.raises(GeomctrlError, match=message.replace("?", r"\?")):
        gc.Robot.build(BAD_TREES[message]())


def test_kinds_of_errors():
    with pytest.raises(ModelError):
        gc.Robot.build([body("a", "b"), body("b", "a")])
    with pytest.raises(InertiaError):
        gc.Robot.build([body("a", pi=-SPHERE)])
    with pytest.raises(ValueError, match="no parent named"):
        gc.Robot.build([body("a", "b")])


MASSLESS = {
    "last link": ([body("a"), body("b", "a", pi=None)], "'b'"),
    "only link": ([body("a", pi=None)], "'a'"),
    "point mass on the axis": ([body("a", pi=inertia.from_com(1.0, (0, 0, 0.5), np.zeros((3, 3))))], "'a'"),
    "two joints on one axis": ([body("a", pi=None), body("b", "a")], "'a', 'b'"),
    "wrist of a rod": (
        [
            body("a"),
            body("b", "a", gc.Joint.revolute((1, 0, 0)), None, inertia.from_com(1.0, (1, 0, 0), np.zeros((3, 3)))),
        ],
        "'b'",
    ),
}


@pytest.mark.parametrize("case", MASSLESS)
def test_joints_that_move_no_mass_are_named(case):
    bodies, culprits = MASSLESS[case]
    for physical in (True, False):
        with pytest.raises(
            ModelError, match=rf"mass matrix is singular .*joint\(s\) {culprits} can move without moving any"
        ):
            gc.Robot.build(bodies, physical=physical)


def test_massless_links_are_fine_where_mass_hangs_on_them():
    bodies = [
        body("x", None, gc.Joint.prismatic((1, 0, 0)), pi=None),
        body("y", "x", gc.Joint.prismatic((0, 1, 0)), pi=None),
    ]
    robot = gc.Robot.build([*bodies, body("z", "y")])
    assert (robot.parameters[:2] == 0.0).all()
    assert_close(robot.mass_matrix(np.zeros(3))[:2, :2], 2.0 * np.eye(2), 1e-15)


def test_a_point_mass_off_the_axis_and_a_thin_rod_are_fine():
    gc.Robot.build([body("a", pi=inertia.from_com(1.0, (0.5, 0, 0), np.zeros((3, 3))))])
    gc.Robot.build([body("a", pi=inertia.from_com(1.0, (0.5, 0, 0), np.diag((0, 1 / 12, 1 / 12))))])


def test_frames_are_added_to_bodies_merged_links_and_the_world():
    T = translation(1, 2, 3)
    bodies = [body("a"), body("tool", "a", gc.Joint.fixed(), T)]
    robot = gc.Robot.build(bodies, frames=[("tip", "tool", T), ("camera", "world", T), ("point", "a", None)])
    assert_close(robot.frame("tip").placement, T @ T, 1e-15)
    assert robot.frame("camera").body == -1
    assert_close(robot.frame("point").placement, np.eye(4), 1e-15)
    for name in ("a", "tool", "tip", "world"):
        with pytest.raises(ModelError, match=f"frame '{name}': the name is taken"):
            gc.Robot.build(bodies, frames=[("tip", "a", T), (name, "a", T)])
    with pytest.raises(NameNotFoundError, match="no body named 'tol'; did you mean 'tool'"):
        gc.Robot.build(bodies, frames=[("tip", "tol", T)])
    with pytest.raises(ArgumentError, match="frame 'tip': expected a rotation"):
        gc.Robot.build(bodies, frames=[("tip", "tool", 2 * T)])


def test_unknown_names_list_near_misses():
    robot = models.panda()
    name = robot.joint_names[3]
    with pytest.raises(NameNotFoundError, match=f"no joint named '{name}x'; did you mean .*'{name}'"):
        robot.joint(name + "x")
    with pytest.raises(NameNotFoundError, match="no frame named 'qqq'; known: '"):
        robot.frame("qqq")
    with pytest.raises(NameNotFoundError, match=r"no frame named \['a'\]"):
        robot.frame(["a"])


def test_gravity_is_checked():
    with pytest.raises(ArgumentError, match=r"gravity: expected 3 finite numbers, got 9\.81"):
        gc.Robot.build([body("a")], gravity=9.81)
    with pytest.raises(ArgumentError, match="gravity: expected 3 finite numbers"):
        models.panda().with_gravity((0, 0, np.inf))


# --- Denavit-Hartenberg and screws -------------------------------------------------------------------------------

DH = {  # a, alpha, d, theta of a Stanford-like arm whose third joint is prismatic
    "a": np.array([0.1, 0.0, 0.2, 0.05]),
    "alpha": np.array([-np.pi / 2, np.pi / 2, 0.3, -0.4]),
    "d": np.array([0.4, 0.15, 0.5, 0.1]),
    "theta": np.array([0.1, -0.2, 0.3, 0.7]),
}


def dh_transform(convention, a, alpha, d, theta):
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    if convention == "standard":
        return np.array(
            [[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1]]
        )
    return np.array([[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa], [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1]])


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_denavit_hartenberg_poses(convention):
    robot = gc.Robot.from_dh(**DH, convention=convention, inertias=[SPHERE] * 4, prismatic=[2], name="arm")
    assert [j.kind for j in robot.joints] == ["revolute", "revolute", "prismatic", "revolute"]
    assert robot.name == "arm"
    assert robot.body_names == ("link1", "link2", "link3", "link4")
    rng = np.random.default_rng(0)
    for q in rng.normal(size=(5, 4)):
        T = np.eye(4)
        for i in range(4):
            d, theta = DH["d"][i] + q[i] * (i == 2), DH["theta"][i] + q[i] * (i != 2)
            T = T @ dh_transform(convention, DH["a"][i], DH["alpha"][i], d, theta)
            assert_close(robot.pose(q, f"link{i + 1}"), T, 1e-14)
    assert_power_balanced(robot, states=2)


def test_denavit_hartenberg_conventions_describe_the_same_arm():
    """Modified a and alpha belong to the previous link; between the two frames of a link is T = Rx(alpha) Tx(a)."""
    standard = gc.Robot.from_dh(**DH, convention="standard", inertias=[SPHERE] * 4)
    shifted = {k: np.append(0.0, DH[k][:-1]) for k in ("a", "alpha")} | {k: DH[k] for k in ("d", "theta")}
    turns = [dh_transform("modified", a, alpha, 0.0, 0.0) for a, alpha in zip(DH["a"], DH["alpha"])]
    moved = [inertia.transform(T, SPHERE) for T in turns]
    modified = gc.Robot.from_dh(**shifted, convention="modified", inertias=moved)
    q, v = np.random.default_rng(0).normal(size=(2, 4))
    for x, y in zip(standard.terms(q, v, "christoffel"), modified.terms(q, v, "christoffel")):
        assert_close(x, y, 1e-12)


def test_denavit_hartenberg_arguments_are_checked():
    options = {"convention": "standard", "inertias": [SPHERE] * 4}
    with pytest.raises(ArgumentError, match="d: expected 4 finite numbers, got array"):
        gc.Robot.from_dh(**{**DH, "d": np.zeros(3)}, **options)
    with pytest.raises(ArgumentError, match="convention: expected 'standard' or 'modified', got 'craig'"):
        gc.Robot.from_dh(**DH, **{**options, "convention": "craig"})
    with pytest.raises(ArgumentError, match="inertias: expected 4, one for each body, got 3"):
        gc.Robot.from_dh(**DH, **{**options, "inertias": [SPHERE] * 3})
    with pytest.raises(ArgumentError, match=r"prismatic: expected joint numbers from 0 to 3, got \[4\]"):
        gc.Robot.from_dh(**DH, **options, prismatic=[4])
    with pytest.raises(GeomctrlError):
        gc.Robot.from_dh(**{**DH, "alpha": np.array([0, np.nan, 0, 0])}, **options)


TWO = {"screws": np.tile((0, 0, 1.0, 0, 0, 0), (2, 1)), "homes": np.tile(np.eye(4), (2, 1, 1))}
BAD_CALLS = [
    ("from_dh", {"inertias": None}, "inertias: expected ten parameters for each body, got None"),
    ("from_dh", {"a": 0.1}, r"a: expected 4 finite numbers, got array\(0.1\)"),
    ("from_dh", {"prismatic": 1}, "prismatic: expected joint numbers from 0 to 3, got 1"),
    ("from_dh", {"prismatic": [True, False]}, r"prismatic: expected joint numbers .*, got \[True, False\]"),
    ("from_screws", {"inertias": None}, "inertias: expected ten parameters for each body, got None"),
    ("from_screws", {"parents": ["a", "b"]}, r"parents: expected 2 numbers from -1 to 1, got \['a', 'b'\]"),
    ("from_screws", {"parents": [-1, 0.5]}, r"parents: expected 2 numbers from -1 to 1, got \[-1, 0.5\]"),
    ("from_screws", {"parents": [-1]}, r"parents: expected 2 numbers from -1 to 1, got \[-1\]"),
    ("build", {"frames": [("f", "a")]}, r"frames: expected \(name, body name, T_body_frame\), got \('f', 'a'\)"),
    ("build", {"frames": 3}, "frames: expected tuples .*, got 3"),
    ("build", {"frames": [("", "a", None)]}, "frames: expected a name, got ''"),
    ("build", {"frames": [("f", None, None)]}, "no body named None"),
    ("with_payload", {"mass": np.ones(2)}, r"mass: expected a finite number, got array"),
    ("with_payload", {"mass": np.inf}, "mass: expected a finite number, got inf"),
    ("with_payload", {"mass": 1e300}, "not positive definite in double precision: masses from 0.6.* to 1e.300 kg"),
]


@pytest.mark.parametrize(("name", "options", "message"), BAD_CALLS)
def test_what_robots_can_not_be_made_of_is_named(name, options, message):
    good = {
        "from_dh": {**DH, "convention": "standard", "inertias": [SPHERE] * 4},
        "from_screws": {**TWO, "inertias": [SPHERE] * 2},
        "build": {"bodies": [body("a")]},
        "with_payload": {},
    }[name]
    make = models.panda().with_payload if name == "with_payload" else getattr(gc.Robot, name)
    with pytest.raises(GeomctrlError, match=message):
        make(**{**good, **options})


def test_product_of_exponentials_in_the_space_frame():
    """T_i(q) = exp(A_1 q_1) ... exp(A_i q_i) H_i on a tree."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(4, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    points = rng.normal(size=(4, 3))
    screws = np.hstack((axes, np.cross(points, axes)))
    screws[1, 3:] += 0.2 * axes[1]
    screws[2] = 0, 0, 0, *axes[2]
    homes = np.array([se3.exp(x) for x in rng.normal(size=(4, 6))])
    parents = [-1, 0, 1, 0]
    robot = gc.Robot.from_screws(screws, homes, inertias=[SPHERE] * 4, parents=parents)
    assert [j.kind for j in robot.joints] == ["revolute", "helical", "prismatic", "revolute"]
    q, T = rng.normal(size=4), [None] * 4
    for i, p in enumerate(parents):
        T[i] = (np.eye(4) if p < 0 else T[p]) @ se3.exp(screws[i] * q[i])
        assert_close(robot.pose(q, f"link{i + 1}"), T[i] @ homes[i], 1e-13)
    chain = gc.Robot.from_screws(screws, homes, inertias=[SPHERE] * 4)
    assert chain.parents == (-1, 0, 1, 2)
    assert_close(robot.jacobian(np.zeros(4), "link1", "spatial")[:, 0], screws[0], 1e-13)


def test_screws_arguments_are_checked():
    screws, homes = np.tile((0, 0, 1.0, 0, 0, 0), (2, 1)), np.tile(np.eye(4), (2, 1, 1))
    with pytest.raises(ArgumentError, match=r"screws: expected shape \(..., 6\), got \(2, 5\)"):
        gc.Robot.from_screws(screws[:, :5], homes, inertias=[SPHERE] * 2)
    with pytest.raises(ArgumentError, match=r"inertias: expected 2, one for each body, got 1"):
        gc.Robot.from_screws(screws, homes, inertias=[SPHERE])
    with pytest.raises(ArgumentError, match=r"parents: expected 2 numbers from -1 to 1, got \[-1, 2\]"):
        gc.Robot.from_screws(screws, homes, inertias=[SPHERE] * 2, parents=[-1, 2])
    with pytest.raises(ArgumentError, match=r"homes\[1\]: expected a rotation"):
        gc.Robot.from_screws(screws, homes * [[[1.0]], [[2.0]]], inertias=[SPHERE] * 2)
    with pytest.raises(ModelError, match=r"screws\[1\]: expected a unit axis"):
        gc.Robot.from_screws(screws * [[1.0], [2.0]], homes, inertias=[SPHERE] * 2)
    with pytest.raises(ModelError, match="a loop"):
        gc.Robot.from_screws(screws, homes, inertias=[SPHERE] * 2, parents=[1, 0])
