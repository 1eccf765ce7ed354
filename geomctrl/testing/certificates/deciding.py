"""Decisions from quadratic forms: an upper bound of F on a box, and whether it is below the allowed value."""

from __future__ import annotations

import itertools

import numpy as np

from geomctrl.tracing.proofs.intervals import EPS

from .quadratic import EIGENVALUE_ERROR, Boxes, Form, scaled_eigenvalues

SHARES = (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9)  # fractions of N that compensate the linear term


def about_zero(form: Form, scale: np.ndarray, ball: np.ndarray | None, allowed: float) -> np.ndarray:
    """(boxes,): lower bound of the margin by which F < allowed for all x outside the ball sum (x / ball)^2 < 1.

    ball None: F <= allowed for all x, and F < allowed for x != 0 if there is no linear term. A negative result decides
    nothing. Uses slope |x| <= slope (x^2 / (2 h) + h / 2) for any h > 0.
    """
    d = scale
    N = form.N * d[:, None] * d
    slope = form.slope * d
    size = np.abs(N).max((1, 2))
    good = np.isfinite(size) & (size < 1e200)
    N = np.where(good[:, None, None], N, -np.eye(len(d)))
    weights = np.maximum(np.einsum("bii->bi", N), 1e-300)
    best = np.full(len(N), -np.inf)
    B = np.ones(len(d)) if ball is None else d / ball
    for share in SHARES if slope.any() else (0.0,):
        rest = N - share * np.eye(len(d)) * weights[:, None, :]
        least = np.linalg.eigvalsh(rest / B[:, None] / B)[:, 0]
        least = least - EIGENVALUE_ERROR * len(d) * np.abs(rest / B[:, None] / B).max((1, 2))
        with np.errstate(over="ignore"):  # infinite if nothing compensates a slope
            cost = (slope**2 / (4.0 * share * weights)).sum(1) if share else 0.0
        cost = cost * (1.0 + 1e-12) + np.maximum(form.top, 0.0) + np.minimum(form.top, 0.0) - allowed
        if ball is None:
            margin = np.where(cost <= 0.0, -cost if share else least, -cost)
            margin = np.where(least > 0.0, margin, np.minimum(least, -1e-300))
        else:  # uses N >= least / ball^2 outside the ball, if that is not negative
            margin = np.where(least >= 0.0, least - cost, -np.inf)
        best = np.maximum(best, margin)
    return np.where(good, best, -np.inf)


PAYMENTS = tuple(itertools.product((0.0, 0.5, 0.9), (0.0, 0.5, 0.95)))  # fractions of N: for slack, for the ball


def correction_fractions(form: Form, ball: np.ndarray | None) -> list[tuple[float, float]]:
    """The fractions for `tightened` that are worth trying."""
    slack = bool(form.slack.any())
    return [(a, b) for a, b in PAYMENTS if (slack or a == 0.0) and (ball is not None or b == 0.0)]


def bound_correction(
    form: Form, boxes: Boxes, share: float, ball: np.ndarray | None, hold: float
) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of `tightened`: h (boxes, 2n), which uses a fraction of N's diagonal, and t (boxes,), from the rest.

    h is zero where the bound by the largest |x| is better.
    """
    weights = 2.0 * share * np.maximum(np.einsum("bii->bi", form.N), 0.0)
    h = np.where(weights > 0.0, form.slack / np.maximum(weights, 1e-300), 0.0)
    h = np.where((signs(boxes) == 0.0) & (h < 2.0 * boxes.far) & (weights < 1e200), h, 0.0)
    if ball is None or hold == 0.0:
        return h, np.zeros(len(boxes))
    rest = tightened(form, boxes, h, np.zeros(len(boxes)), None).N
    finite = np.abs(rest).max((1, 2)) < 1e200
    rest = np.where(finite[:, None, None], rest, np.eye(len(ball)))
    return h, np.where(finite, np.maximum(hold * scaled_eigenvalues(rest, ball), 0.0), 0.0)


def signs(boxes: Boxes) -> np.ndarray:
    """(boxes, 2n): the sign of x if it is constant on a box, else 0."""
    return np.where(boxes.lo >= 0.0, 1.0, np.where(boxes.hi <= 0.0, -1.0, 0.0))


def tightened(form: Form, boxes: Boxes, h: np.ndarray, t: np.ndarray, ball: np.ndarray | None) -> Form:
    """An upper bound of the form on the boxes outside the ball, with less slack.

    slack |x| = +-slack x if x has a constant sign, and slack |x| <= slack (x^2 / (2 h) + h / 2) for h > 0. The added
    t (sum (x / ball)^2 - 1) is not negative outside the ball.
    """
    sign, pays = signs(boxes), h > 0.0
    less = np.where(pays, form.slack / np.where(pays, 2.0 * h, 1.0), 0.0)
    less = less if ball is None else less + t[:, None] / ball**2
    less = less * (1.0 + 1e-12) + 4.0 * EPS * np.abs(np.einsum("bii->bi", form.N))
    top = form.top + 0.5 * (form.slack * h).sum(1) * (1.0 + 1e-12) - t
    return form._replace(
        top=top + 1e-13 * (np.abs(form.top) + t), g=form.g + sign * form.slack,
        slack=np.where(pays | (sign != 0.0), 0.0, form.slack), N=form.N - np.eye(len(form.scale)) * less[:, None, :],
    )  # fmt: skip


def largest(form: Form, boxes: Boxes, ball: np.ndarray | None = None, enough: float = -np.inf) -> np.ndarray:
    """(boxes,): upper bound of F on each box outside the ball, from the form and from intervals.

    Only bounds above `enough` are sharp."""
    best = form.value.copy()
    finite = np.isfinite(form.top) & np.isfinite(form.slack).all(1)
    for share, hold in correction_fractions(form, ball):
        left = np.flatnonzero(finite & (best >= enough))
        if not len(left):
            break
        some, there = form.rows(left), boxes[left]
        some = tightened(some, there, *bound_correction(some, there, share, ball, hold), ball)
        best[left] = np.minimum(best[left], _largest(some, there))
    return best


@np.errstate(invalid="ignore", over="ignore")  # comparisons with nan are false
def _largest(form: Form, boxes: Boxes) -> np.ndarray:
    """Upper bound from the form alone."""
    form, lift, convex = form.lifted(boxes)
    c = form.least(boxes)
    Nc = np.einsum("bij,bj->bi", form.N, c)
    slope = form.g - 2.0 * Nc  # g . x minus the tangent plane of x . N x at c, which is below it
    reach = boxes.far
    linear = np.maximum(slope * boxes.lo, slope * boxes.hi).sum(1) + np.einsum("bi,bi->b", c, Nc)
    lost = np.where(lift > 0.0, lift * reach**2, 0.0).sum(1) + (form.slack * reach).sum(1)
    above = form.top + linear + lost
    above = above + 1e-13 * (np.abs(form.top) + lost + ((np.abs(form.g) + 4.0 * np.abs(Nc)) * reach).sum(1))
    return np.where(convex, above, np.inf)
