"""The configurations that a bound is about: ranges of the joints with one degree of freedom, all of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import configuration
from geomctrl.mechanism.mechanism import Mechanism


@dataclass(frozen=True)
class Domain:
    """lower, upper (nv,): infinite where there is no range, and for joints with several degrees of freedom."""

    robot: Mechanism
    lower: np.ndarray
    upper: np.ndarray

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) (nv,) of a finite box that has every configuration in it that a range or a turn has: a joint
        that turns without range, or by more than a turn, from -pi to pi; the first joint, which slides, nowhere."""
        low, high = self.lower.copy(), self.upper.copy()
        for joint, s in zip(self.robot.joints, self.robot.v_slices):
            if joint.dof > 1:
                continue
            around = joint.kind == "revolute" and not high[s] - low[s] < 2.0 * np.pi
            if around or not np.isfinite([low[s], high[s]]).all():
                reach = np.pi if joint.is_rotational.any() else 0.0
                low[s], high[s] = -reach, reach
        return low, high

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count, nq)."""
        out = np.array([configuration.random_configuration(self.robot, rng) for _ in range(count)])
        low, high = self.sides
        for joint, s, k in zip(self.robot.joints, self.robot.q_slices, self.robot.v_slices):
            if joint.dof == 1:
                out[:, s] = rng.uniform(low[k], high[k], (count, 1))
        return out

    def displacements(self, q: np.ndarray) -> list[tuple[float, float]]:
        """How far each coordinate may move from q (nq,) within the box; anywhere, for joints with more of them."""
        low, high = self.sides
        out = []
        for joint, s, k in zip(self.robot.joints, self.robot.q_slices, self.robot.v_slices):
            if joint.dof == 1:
                out.append((float(low[k][0] - q[s][0]), float(high[k][0] - q[s][0])))
            else:
                out += [(-np.inf, np.inf)] * joint.dof
        return out


def domain_of(robot: Mechanism, box: tuple[ArrayLike, ArrayLike] | None) -> Domain:
    """The joints' limits, or the box (lower, upper), (nv,) each."""
    if box is None:
        return Domain(robot, np.array(robot.limits.lower), np.array(robot.limits.upper))
    if not isinstance(box, (tuple, list, np.ndarray)) or len(box) != 2:
        raise ArgumentError(f"box: expected (lower, upper), ({robot.nv},) each, got {box!r:.80}")
    lower, upper = (exactly(f"box: {x}", a, (robot.nv,), finite=False) for x, a in zip(("lower", "upper"), box))
    for name, low, high in zip(robot.dof_names, lower, upper):
        if not low <= high or low == np.inf or high == -np.inf:
            raise ArgumentError(f"box: expected lower <= upper, got [{low:.6g}, {high:.6g}] for joint {name!r}")
    for joint, s in zip(robot.joints, robot.v_slices):
        if joint.dof > 1 and np.isfinite([lower[s], upper[s]]).any():
            raise ArgumentError(
                f"box: joint {joint.name!r} is {joint.kind}, whose pose has no ranges: expected -inf and inf, got"
                f" {lower[s].tolist()} and {upper[s].tolist()}"
            )
    return Domain(robot, lower, upper)
