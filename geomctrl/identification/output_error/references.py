"""A desired motion given by its samples, as a log has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, instance
from geomctrl.control.contracts import Desired, time
from geomctrl.errors import ArgumentError
from geomctrl.identification.logs import Dataset


class SampledReference:
    """The cubic spline through q (N, nv) at times t (N,) [s]: between samples, and exactly q at them.

    v, a (N, nv): where they were recorded too, else the spline's derivatives. Half a sample before the first and after
    the last one the motion stays where it is. For joints with one degree of freedom.
    """

    def __init__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None):
        from scipy.interpolate import CubicSpline  # slow to import

        times, points = checked("t", t, ()), checked("q", q, ())
        if times.ndim != 1 or len(times) < 2 or (np.diff(times) <= 0.0).any():
            raise ArgumentError(f"t: expected at least two increasing times, got shape {times.shape}")
        if points.ndim != 2 or len(points) != len(times):
            raise ArgumentError(f"q: expected shape ({len(times)}, nv), got {points.shape}")
        self.first, self.last = float(times[0]), float(times[-1])
        self.slack = 0.5 * float(np.median(np.diff(times)))  # the loop's samples are not the log's to rounding
        spline: Any = CubicSpline(times, points)
        self._curves = [spline, spline.derivative(1), spline.derivative(2)]
        for k, (name, x) in enumerate((("v", v), ("a", a)), start=1):
            if x is not None:
                given = checked(name, x, ())
                if given.shape != points.shape:
                    raise ArgumentError(f"{name}: expected shape {points.shape} as of q, got {given.shape}")
                self._curves[k] = CubicSpline(times, given)

    @classmethod
    def of(cls, data: Dataset) -> SampledReference:
        """The motion in a log whose q (and v, a, where it has them) are the desired ones:
        `Dataset.read(path, keys={"q": "q_desired", ...})`."""
        instance("data", data, Dataset, "a Dataset")
        return cls(data.t, data.q, data.v, data.a)

    def at(self, t: np.ndarray) -> Desired:
        """At times (N,): q, v, a (N, nv) each."""
        t = checked("t", t, ())
        if not t.size:
            raise ArgumentError("t: expected times, got none")
        inside = np.clip(t, self.first, self.last)
        q, v, a = (np.asarray(curve(inside)) for curve in self._curves)
        moving = ((t >= self.first - self.slack) & (t <= self.last + self.slack))[..., None]
        return Desired(q, v * moving, a * moving)

    def __call__(self, t: float) -> Desired:
        return self.at(np.asarray(time(t)))


def along(reference: Any, t: np.ndarray, n: int) -> Desired:
    """A reference at times (N,): q, v, a (N, n) each. Raises ArgumentError where it is of other joints."""
    if isinstance(reference, SampledReference):
        found = reference.at(t)
    else:
        rows = [reference(float(x)) for x in t]
        found = Desired(*(np.array(column, float) for column in zip(*rows)))
    for x in found:
        if np.shape(x) != (len(t), n):
            raise ArgumentError(f"reference: expected q, v, a of {n} joints, got shape {np.shape(x)[1:]}")
    return found
