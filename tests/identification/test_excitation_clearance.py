"""Designed motions keep their clearance: compared with other libraries' kinematics and distances, and with dense
sampling.
"""

import numpy as np
import pytest
from urdf_arms import ARM

from geomctrl import models
from geomctrl.identification import RegressorModel
from geomctrl.identification.excitation import (
    MotionLimits,
    MotionSearch,
    Surroundings,
    Trajectory,
    excite,
    link_capsules,
    optimize,
)
from geomctrl.identification.excitation.clearance import BOXES, FLOOR, SELF, clearances_of, sweeps
from geomctrl.identification.excitation.excite import keeps_clearance, margins, nearest
from geomctrl.models.io.urdf_geometry import collision_capsules

BOX = (0.35, -0.6, 0.0, 0.7, 0.6, 0.5)
QUICK = {"terms": 4, "objective": "log_det", "search": MotionSearch(iterations=24, samples=50, compare=8)}


def around(robot, **options):
    limits = MotionLimits(velocity=2.0).of(robot)
    return clearances_of(robot, Surroundings(**options), limits.lower, limits.upper), limits


def coal_capsule(coal, p0, p1, radius):
    length = np.linalg.norm(p1 - p0)
    z = (p1 - p0) / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    at = coal.Transform3s(np.column_stack((x, np.cross(z, x), z)), 0.5 * (p0 + p1))
    return (coal.Capsule(radius, length) if length > 1e-9 else coal.Sphere(radius)), at


def poses_of_joints(robot, q):
    """T_world_body of every body, from the exponentials of the joints by scipy, without the library's kinematics."""
    from scipy.linalg import expm

    out = []
    for parent, M, joint, x in zip(robot.parents, robot.placements, robot.joints, q):
        w, v = joint.S[:3, 0], joint.S[3:, 0]
        X = np.zeros((4, 4))
        X[:3, :3] = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        X[:3, 3] = v
        out.append((out[parent] if parent >= 0 else np.eye(4)) @ M @ expm(x * X))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("make", [models.panda, models.ur10])
def test_designed_motions_keep_clear_by_coal(make):
    """At 400 times every link is above the floor, outside the box, and away from every link that is not its
    neighbour.
    """
    coal = pytest.importorskip("coal")
    robot = make()
    box = np.array(BOX) + (0.0 if robot.name == "panda" else np.array([0.2, 0, 0, 0.2, 0, 0]))
    e = optimize(robot, 8.0, surroundings=Surroundings(keep_out=[box], clearance=0.02), **QUICK)
    capsules = link_capsules(robot)
    left_out = set(e.around.always)
    wall = coal.Box(*(box[3:] - box[:3])), coal.Transform3s(np.eye(3), 0.5 * (box[:3] + box[3:]))
    request, least, heights = coal.DistanceRequest(), {BOXES: np.inf, SELF: np.inf}, []
    for q in e.trajectory.at(np.linspace(0.0, 8.0, 400))[0]:
        T = [*poses_of_joints(robot, q), np.eye(4)]
        shapes = []
        for c in capsules:
            ends = (T[c.body][:3, :3] @ x + T[c.body][:3, 3] for x in (c.start, c.end))
            shapes.append((c.body, *coal_capsule(coal, *ends, c.radius)))
        names = ["the base" if b < 0 else repr(robot.body_names[b]) for b, _, _ in shapes]
        for i, (body, shape, at) in enumerate(shapes):
            if body >= 0:
                d = coal.distance(shape, at, *wall, request, coal.DistanceResult())
                least[BOXES] = min(least[BOXES], d)
                half = getattr(shape, "halfLength", 0.0)
                heights.append(at.getTranslation()[2] - half * abs(at.getRotation()[2, 2]) - shape.radius)
            for j in range(i):
                other = shapes[j][0]
                above = robot.parents[body] if body >= 0 else None, robot.parents[other] if other >= 0 else None
                joined = body == other or above[0] == other or above[1] == body
                if not joined and f"{names[j]} off {names[i]}" not in left_out:
                    d = coal.distance(shape, at, *shapes[j][1:], request, coal.DistanceResult())
                    least[SELF] = min(least[SELF], d)
    over = np.reshape(heights, (400, -1))
    assert over.min() >= 0.02
    least[FLOOR] = over[:, np.ptp(over, axis=0) > 1e-6].min()  # heights that no motion changes are not included
    for kind, d in least.items():
        assert d >= 0.02 - 1e-4, kind  # tolerance of coal
        assert d == pytest.approx(e.clearances[kind][1], abs=5e-3), kind
    assert min(least.values()) < 0.2, "nothing was near: nothing was tested"


@pytest.mark.slow
def test_a_urdfs_own_geometry_keeps_clear_by_pinocchio():
    """The boxes, cylinders and spheres of the file at Pinocchio's configurations, by coal: not our capsules."""
    pin, coal = pytest.importorskip("pinocchio"), pytest.importorskip("coal")
    text = ARM.replace('<collision><geometry><mesh filename="nowhere.stl"/></geometry></collision>', "")
    robot = models.load_urdf(text)
    capsules, _ = collision_capsules(text, robot)
    box = (0.45, -0.3, 0.0, 0.8, 0.3, 0.9)
    surroundings = Surroundings(floor=0.02, keep_out=[box], capsules=capsules, clearance=0.01)
    e = optimize(robot, 6.0, surroundings=surroundings, **QUICK)
    model = pin.buildModelFromXML(text)
    geometry = pin.buildGeomFromUrdfString(model, text, pin.GeometryType.COLLISION)
    data, shapes = model.createData(), geometry.createData()
    wall = coal.Box(*np.subtract(box[3:], box[:3])), coal.Transform3s(np.eye(3), 0.5 * np.add(box[:3], box[3:]))
    ground = coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.02), coal.Transform3s.Identity()
    near = []
    for q in e.trajectory.at(np.linspace(0.0, 6.0, 300))[0]:
        pin.updateGeometryPlacements(model, data, geometry, shapes, q)
        for x, T in zip(geometry.geometryObjects, shapes.oMg):
            if x.parentJoint:
                at = coal.Transform3s(T.rotation, T.translation)
                for other in (wall, ground):
                    near.append(coal.distance(x.geometry, at, *other, coal.DistanceRequest(), coal.DistanceResult()))
    assert len(near) == 300 * 2 * 2
    assert min(near) >= 0.01 - 1e-4
    assert min(near) < 0.15


def test_no_distance_changes_faster_than_said():
    for robot in (models.panda(), models.scara(), models.puma560()):
        clear, limits = around(robot, keep_out=[BOX])
        rng = np.random.default_rng(0)
        q = rng.uniform(limits.lower, limits.upper, (500, robot.nv))
        v = rng.normal(size=q.shape) * 1e-5
        rate = np.abs(clear.values(q + v) - clear.values(q - v))
        allowed = 2.0 * np.abs(v) @ sweeps(clear, limits.lower, limits.upper).T
        assert (rate <= allowed * (1.0 + 1e-6) + 1e-14).all()
        assert (rate / np.maximum(allowed, 1e-12)).max() > 0.3, "a bound far from what happens is of no use"


def test_what_joints_do_not_move_is_known():
    clear, limits = around(models.panda(), keep_out=[BOX])
    L = sweeps(clear, limits.lower, limits.upper)
    rows = dict(zip(clear.names, L))
    np.testing.assert_array_equal(rows["'panda_link2' off 'panda_link5'"] > 0, [0, 0, 1, 1, 0, 0, 0])
    assert (rows["'panda_link7' off keep-out box 1"][:6] > 0).all()
    assert (rows["'panda_link3' off keep-out box 1"][3:] == 0).all()


def wobble(robot, q0, depth):
    """A motion about q0, joint by joint up to `depth`, at rest at the ends."""
    c = np.zeros((5, robot.nv))
    c[0] = q0 + 0.5 * depth
    c[3], c[4] = -2.0 / 3.0 * depth, 1.0 / 6.0 * depth
    return Trajectory(4.0, c)


def test_the_proof_agrees_with_dense_sampling_on_both_sides():
    """The same motion, with a requested clearance just below and just above the true one."""
    robot = models.panda()
    q0, depth = np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.8, 0.0]), np.array([0.3, 0.55, 0.2, 0.3, 0.4, 0.3, 0.5])
    motion = wobble(robot, q0, depth)
    clear, limits = around(robot, clearance=0.0)
    there = min(d for _, d in nearest(clear, motion).values())
    assert 0.005 < there < 0.3
    for less, holds in ((1e-4, True), (-1e-4, False)):
        again, _ = around(robot, clearance=there - less)
        assert keeps_clearance(again, limits, motion) is holds


@pytest.mark.parametrize("samples", [4, 8, 34])
def test_what_happens_between_samples_is_seen(samples, monkeypatch):
    """With few samples, and the closest moment between them: the proof succeeds just below the result of dense
    sampling, and fails just above.
    """
    robot = models.panda()
    q0, depth = np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.8, 0.0]), np.array([0.3, 0.55, 0.2, 0.3, 0.4, 0.3, 0.5])
    motion = wobble(robot, q0, depth)
    clear, limits = around(robot, clearance=0.0)
    there = clear.values(motion.at(np.linspace(0.0, 4.0, 20_001))[0]).min()
    at_samples = clear.values(motion.at(np.linspace(0.0, 4.0, samples))[0]).min()
    assert 0.005 < there < at_samples - 2e-4
    monkeypatch.setattr(excite, "FINE_SAMPLES", samples)
    for less, holds in ((1e-4, True), (-1e-4, False)):
        again, _ = around(robot, clearance=there - less)
        assert keeps_clearance(again, limits, motion) is holds


def test_limits_between_samples():
    robot = models.panda()
    motion = wobble(robot, np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.8, 0.0]), np.full(7, 0.5))
    limits = MotionLimits(jerk=100.0, torque_margin=0.0).of(robot)
    left = margins(RegressorModel(robot), limits, motion)
    t = np.linspace(0.0, 4.0, 40_001)
    _, v, a = motion.at(t)
    for name, x, limit in (("velocity", v, limits.velocity), ("acceleration", a, limits.acceleration)):
        exact = 1.0 - np.abs(x).max(axis=0) / limit
        assert (left[name] <= exact + 1e-12).all()
        np.testing.assert_allclose(left[name], exact, atol=1e-4)
    jerk = np.abs(np.diff(a, axis=0) / t[1]).max(axis=0)
    np.testing.assert_allclose(left["jerk"], 1.0 - jerk / 100.0, atol=1e-3)


def test_bounds_of_derivatives_hold_and_are_no_fantasy():
    motion = Trajectory(3.0, np.random.default_rng(3).normal(size=(11, 4)))
    t = np.linspace(0.0, 3.0, 5001)
    for order in range(1, 6):
        greatest = np.abs(motion.derivative(order, t)).max(axis=0)
        assert (motion.bounds(order) >= greatest * (1.0 - 1e-12)).all()
        assert (motion.bounds(order) <= 4.0 * greatest).all()
        if order < 5:
            numeric = np.gradient(motion.derivative(order - 1, t), t, axis=0)
            np.testing.assert_allclose(numeric[2:-2], motion.derivative(order, t)[2:-2], atol=2e-3 * greatest.max())


def test_links_that_always_touch_and_what_never_moves_are_left_out():
    clear, _ = around(models.panda())
    assert "'panda_link4' off 'panda_link6'" in clear.always  # both contain the centre of the wrist
    assert "'panda_link4' off 'panda_link6'" not in clear.names
    assert "the base off 'panda_link6'" in clear.names
    assert not any(name.startswith("'panda_link1' over") for name in clear.names)  # its height is constant
    low, _ = around(models.panda(), floor=0.3)
    assert "'panda_link1' over the floor" in low.always
    assert around(models.panda(), self_collision=False)[0].kinds == [FLOOR] * len(clear.rows.floor)
    assert around(models.panda(), floor=None)[0].kinds == [SELF] * len(clear.rows.pairs)


@pytest.mark.parametrize("make", [models.panda, models.scara, models.puma560])
def test_gradients_of_distances(make):
    """Each distance alone, against central differences; where its nearest points jump it has no derivative."""
    robot = make()
    clear, limits = around(robot, keep_out=[BOX], radius=0.03)
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (60, robot.nv))
    values, pulled = clear.with_gradient(q)
    np.testing.assert_array_equal(values, clear.values(q))
    step = 1e-6 * np.eye(robot.nv)
    numeric = np.stack([(clear.values(q + e) - clear.values(q - e)) / 2e-6 for e in step], axis=-1)  # (N, C, nv)
    for k, kind in enumerate(clear.kinds):
        G = np.zeros_like(values)
        G[:, k] = 1.0
        # segments that do not intersect boxes or each other
        outside = values[:, k] > (-0.029 if kind == BOXES else -0.059)
        close = np.isclose(pulled(G), numeric[:, k], atol=1e-6).all(axis=1)
        assert close[outside].mean() > 0.97, clear.names[k]
    assert {FLOOR, SELF} <= set(clear.kinds) or robot.name == "scara"
