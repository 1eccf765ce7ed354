"""Distances of segments, boxes and points: against dense sampling, coal, and cases known in closed form."""

import numpy as np
import pytest

from geomctrl.mechanism import capsules


def segments(n, seed=0):
    """Random pairs, some of which are points, parallel segments or segments on one line."""
    rng = np.random.default_rng(seed)
    p0, p1, q0, q1 = rng.normal(size=(4, n, 3))
    k = n // 8
    p1[:k] = p0[:k]
    q1[k // 2 : 2 * k] = q0[k // 2 : 2 * k]
    q1[2 * k : 3 * k] = q0[2 * k : 3 * k] + rng.normal(size=(k, 1)) * (p1 - p0)[2 * k : 3 * k]
    q0[3 * k : 4 * k] = p0[3 * k : 4 * k] + rng.normal(size=(k, 1)) * (p1 - p0)[3 * k : 4 * k]
    q1[3 * k : 4 * k] = p0[3 * k : 4 * k] + rng.normal(size=(k, 1)) * (p1 - p0)[3 * k : 4 * k]
    return p0, p1, q0, q1


def test_segments_known_in_closed_form():
    o, x, y, z = np.zeros(3), *np.eye(3)
    for p0, p1, q0, q1, expected in [
        (-x, x, z - y, z + y, 1.0),  # crossing at a distance
        (o, x, 3 * x, 5 * x, 2.0),  # on one line
        (o, x, 0.5 * x, 2 * x, 0.0),  # overlapping
        (o, x, y + 0.2 * x, y + 0.7 * x, 1.0),  # parallel
        (o, o, 3 * x + 4 * y, 3 * x + 4 * y, 5.0),  # points
        (o, x, 2 * x + z, 2 * x + 9 * z, np.sqrt(2.0)),  # end to end
    ]:
        for a, b in (((p0, p1), (q0, q1)), ((q1, q0), (p0, p1))):
            assert capsules.segments(*a, *b)[0] == pytest.approx(expected, abs=1e-15)


def test_segments_against_dense_sampling():
    p0, p1, q0, q1 = segments(800)
    d, s, t = capsules.segments(p0, p1, q0, q1)
    np.testing.assert_allclose(np.linalg.norm(capsules.at(p0, p1, s) - capsules.at(q0, q1, t), axis=-1), d, atol=1e-12)
    u = np.linspace(0.0, 1.0, 301)
    x = p0[:, None] + u[:, None] * (p1 - p0)[:, None]
    y = q0[:, None] + u[:, None] * (q1 - q0)[:, None]
    sampled = np.sqrt(((x[:, :, None] - y[:, None, ::10]) ** 2).sum(-1).min(axis=(1, 2)))
    step = 0.5 * (np.linalg.norm(p1 - p0, axis=1) / 300 + np.linalg.norm(q1 - q0, axis=1) / 30)
    assert (sampled >= d - 1e-12).all(), "a sampled pair is nearer than the nearest"
    assert (sampled <= d + step + 1e-12).all()


def boxes(n, seed=1):
    rng = np.random.default_rng(seed)
    p0, p1 = rng.normal(size=(2, n, 3))
    p1[: n // 10] = p0[: n // 10]
    p1[n // 10 : n // 5, 2] = p0[n // 10 : n // 5, 2]  # along faces
    lower = rng.uniform(-1.0, 0.0, (n, 3))
    return p0, p1, lower, lower + rng.uniform(0.1, 1.0, (n, 3))


def test_segment_to_box_against_dense_sampling():
    p0, p1, lower, upper = boxes(2000)
    d, s, n = capsules.segment_to_box(p0, p1, lower, upper)
    u = np.linspace(0.0, 1.0, 401)[:, None]
    x = p0[:, None] + u * (p1 - p0)[:, None]
    sampled = np.linalg.norm(x - np.clip(x, lower[:, None], upper[:, None]), axis=-1).min(axis=1)
    outside = d > 0.0
    step = np.linalg.norm(p1 - p0, axis=1) / 800.0
    assert 0.5 < outside.mean() < 0.97
    assert (sampled >= np.maximum(d, 0.0) - 1e-12).all()
    assert (sampled <= np.maximum(d, 0.0) + step + 1e-12).all()
    at = capsules.at(p0, p1, s)
    on_box = (at - d[:, None] * n)[outside]
    np.testing.assert_allclose(on_box, np.clip(on_box, lower[outside], upper[outside]), atol=1e-12)


def test_depth_in_a_box_is_the_shortest_way_out():
    p0, p1, lower, upper = boxes(2000)
    d, _, n = capsules.segment_to_box(p0, p1, lower, upper)
    p0, p1, lower, upper, d, n = (x[d < 0.0] for x in (p0, p1, lower, upper, d, n))
    assert len(d) > 50
    out = -(1.0 + 1e-6) * d[:, None] * n + 1e-6 * n
    assert (capsules.segment_to_box(p0 + out, p1 + out, lower, upper)[0] > 0.0).all()
    ways = np.random.default_rng(0).normal(size=(200, 3))
    for way in ways / np.linalg.norm(ways, axis=1)[:, None]:
        move = -0.99 * d[:, None] * way
        assert (capsules.segment_to_box(p0 + move, p1 + move, lower, upper)[0] <= 1e-9).all()


def test_capsules_and_boxes_against_coal():
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(2)

    def placed(p0, p1):
        z = (p1 - p0) / np.linalg.norm(p1 - p0)
        x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
        x /= np.linalg.norm(x)
        return coal.Transform3s(np.column_stack((x, np.cross(z, x), z)), 0.5 * (p0 + p1))

    for _ in range(100):
        p0, p1, q0, q1 = rng.normal(size=(4, 3))
        lower, size = rng.uniform(-2.0, 1.0, 3), rng.uniform(0.1, 1.0, 3)
        a, b = (coal.Capsule(0.1, np.linalg.norm(y - x)) for x, y in ((p0, p1), (q0, q1)))
        box, at = coal.Box(*size), coal.Transform3s(np.eye(3), lower + 0.5 * size)
        result = coal.distance(a, placed(p0, p1), b, placed(q0, q1), coal.DistanceRequest(), coal.DistanceResult())
        assert capsules.segments(p0, p1, q0, q1)[0] - 0.2 == pytest.approx(result, abs=1e-4)
        ours = capsules.segment_to_box(p0, p1, lower, lower + size)[0] - 0.1
        result = coal.distance(a, placed(p0, p1), box, at, coal.DistanceRequest(), coal.DistanceResult())
        if ours > 1e-3:
            assert ours == pytest.approx(result, abs=1e-4)
        else:
            assert result < 2e-3
