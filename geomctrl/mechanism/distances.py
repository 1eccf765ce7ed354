"""Distances of line segments to planes, points, segments and boxes: arrays with any leading axes, in closed form.

A capsule is what is nearer to a segment than its radius, so its distances are a segment's less radii. Each function
gives with the distance where on the segments it is taken, as parameters from 0 (start) to 1 (end), or the direction:
what gradients need.
"""

from __future__ import annotations

import numpy as np

TINY = 1e-300


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i->...", a, b)


def at(p0: np.ndarray, p1: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The point (..., 3) at parameter s (...) of the segment from p0 to p1."""
    return p0 + s[..., None] * (p1 - p0)


def point_on_segment(x: np.ndarray, p0: np.ndarray, p1: np.ndarray) -> np.ndarray:
    """The parameter (...) of the segment's point nearest to x; 0 on a segment of length 0."""
    d = p1 - p0
    return np.clip(dot(x - p0, d) / np.maximum(dot(d, d), TINY), 0.0, 1.0)


def segments(
    p0: np.ndarray, p1: np.ndarray, q0: np.ndarray, q1: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(distance (...), parameter on p, parameter on q) of two segments (..., 3).

    The nearest pair is either within both, where the connection is normal to both lines, or has an end of one of them:
    the least of these five. So nothing is divided by the sine of a small angle without a candidate beside it.
    """
    d, e, r = p1 - p0, q1 - q0, p0 - q0
    a, b, c, f, g = dot(d, d), dot(d, e), dot(e, e), dot(d, r), dot(e, r)
    det = a * c - b * b
    s = np.clip((b * g - c * f) / np.where(det > 1e-12 * a * c, det, np.inf), 0.0, 1.0)
    t = np.clip((b * s + g) / np.maximum(c, TINY), 0.0, 1.0)
    zero, one = np.zeros_like(s), np.ones_like(s)
    S = np.stack((s, zero, one, point_on_segment(q0, p0, p1), point_on_segment(q1, p0, p1)))
    T = np.stack((t, point_on_segment(p0, q0, q1), point_on_segment(p1, q0, q1), zero, one))
    gap = at(p0, p1, S) - at(q0, q1, T)
    squares = dot(gap, gap)
    best = np.argmin(squares, axis=0)[None]
    s, t, square = (np.take_along_axis(x, best, 0)[0] for x in (S, T, squares))
    return np.sqrt(square), s, t


def segment_to_box(
    p0: np.ndarray, p1: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(signed distance (...), parameter on the segment, direction (..., 3) out of the box) of segments and boxes
    between the corners `lower` and `upper`, along the axes.

    Half the slope of the squared distance along the segment is the sum over axes of direction times excess over the
    box: piecewise linear and not decreasing, so that its root lies between two of its at most eight kinks and is found
    by interpolation. Segments that cut the box have minus the depth: the shortest way out, along an axis or along one's
    cross product with the segment (the faces of the box less the segment).
    """
    p0, p1, lower, upper = np.broadcast_arrays(p0, p1, lower, upper)
    d = p1 - p0
    divisor = np.where(d == 0.0, 1.0, d)
    kinks = np.concatenate(((lower - p0) / divisor, (upper - p0) / divisor), axis=-1)
    kinks = np.where(np.concatenate((d, d), axis=-1) == 0.0, 0.0, np.clip(kinks, 0.0, 1.0))
    ends = np.zeros((*d.shape[:-1], 1))
    kinks = np.sort(np.concatenate((ends, kinks, ends + 1.0), axis=-1), axis=-1)
    x = p0[..., None, :] + kinks[..., None] * d[..., None, :]
    excess = x - np.clip(x, lower[..., None, :], upper[..., None, :])
    slope = np.einsum("...ki,...i->...k", excess, d)  # (..., 8), not decreasing
    k = np.clip((slope < 0.0).sum(axis=-1), 1, 7)[..., None]
    (s0, s1), (g0, g1) = ([np.take_along_axis(y, k + i, -1)[..., 0] for i in (-1, 0)] for y in (kinks, slope))
    share = np.where(g1 > g0, -g0 / np.where(g1 > g0, g1 - g0, 1.0), 0.0)
    s = s0 + np.clip(share, 0.0, 1.0) * (s1 - s0)
    x = at(p0, p1, s)
    gap = x - np.clip(x, lower, upper)
    distance = np.sqrt(dot(gap, gap))
    direction = gap / np.maximum(distance, TINY)[..., None]
    inside = np.asarray(distance <= 1e-12)
    if inside.any():
        distance, s, direction = np.array(distance), np.array(s), np.array(direction)
        depth, way, end = _way_out(p0[inside], p1[inside], lower[inside], upper[inside])
        distance[inside], direction[inside], s[inside] = -depth, way, end
    return distance, s, direction


def _way_out(p0, p1, lower, upper):
    """(depth (n,), direction (n, 3), parameter of the segment's end that leaves last) of segments that cut boxes."""
    d = p1 - p0
    across = np.cross(d[:, None], np.eye(3))  # (n, 3, 3)
    length = np.linalg.norm(across, axis=-1, keepdims=True)
    across = np.where(length > 1e-9, across / np.maximum(length, TINY), np.eye(3))
    axes = np.concatenate((np.broadcast_to(np.eye(3), across.shape), across), axis=1)
    axes = np.concatenate((axes, -axes), axis=1)  # (n, 12, 3)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    reach = np.einsum("nai,ni->na", np.abs(axes), half)
    ends = np.stack([np.einsum("nai,ni->na", axes, p - middle) for p in (p0, p1)])
    depth = reach - ends.min(axis=0)
    best = np.argmin(depth, axis=1)
    rows = np.arange(len(d))
    return depth[rows, best], axes[rows, best], (ends[1] < ends[0])[rows, best].astype(float)
