"""Proofs about sampled control: with the command held for control_dt, V at the next sample is smaller.

A part of the box is one set of samples. The command is the law's Taylor model on it, at rest for control_dt. W, the
change of V since the sample, is one more state: its rate is the derivative of V along the plant with the held command.
V itself is never subtracted, and W is as small as control_dt times V'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, shown
from geomctrl.control.compiled.proving import TIME, TracedClosedLoop
from geomctrl.control.plant import Plant
from geomctrl.control.progress import progress_with_cost
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.testing.certificates.arguments import (
    domain_text,
    equilibrium_of,
    half_axes,
    half_widths,
    require_autonomous,
)
from geomctrl.testing.certificates.certificate import UNDECIDED, Claim, ProofOnBoxes
from geomctrl.testing.certificates.running import ProofRunner
from geomctrl.testing.certificates.validity import is_continuous_everywhere, vacuous
from geomctrl.testing.settings import Box, Budget, box_of, budget_of
from geomctrl.tracing.branch_and_bound import Decision, Divisible, Progress, no_progress
from geomctrl.tracing.proofs.operation_rows import OperationRows
from geomctrl.tracing.untraceable import UntraceableError

from .equations import HELD, LoopEquations, checked_plant
from .steps import ERR, UP, Dynamics, Enclosure, Layout, bounds

CHANGE_OF_V = 12  # a further array of the graph: the change of V
PILOT = 64  # boxes that are decided here before the rest is spread over processes
ORDER = 3  # of the Taylor series over one sample
ROUNDING = 2.0**-38  # relative bound of the rounding of sums and eigenvalues of a few dozen numbers
ASCENTS = 12
PRECISION = 1.1  # relative precision of the largest control_dt
MIN_SIDE_RATIO = 1e-4  # of a part of the box that is divided further


@dataclass(frozen=True, eq=False)
class SampledCertificate(ProofOnBoxes):
    """The result of `certify_sampled`; true if the claim is proved.

    Attributes
    ----------
    status : str
        "proved", "refuted" or "undecided".
    control_dt : float
        Hold time of a command [s].
    counterexample : array (2 nv,) or None
        A state (q, v) at a sample after which V is not smaller, proved for this state.
    boxes, seconds : int, float
        Cost of the proof.
    share_left : float
        Fraction of the box that is not decided.
    more_boxes : float
        Estimated number of further boxes that an undecided proof needs.
    """

    claims: list[Claim]
    control_dt: float
    counterexample: np.ndarray | None = None

    def __str__(self) -> str:
        out = [str(self.claims[0])]
        if self.counterexample is not None:
            out.append(f"violated at (q, v) = {self.counterexample.tolist()}")
        if self.status == UNDECIDED:
            out.append("try a larger `outside`, a smaller box or control_dt, or more boxes in `budget`")
        out.append("a proof is about the sampled loop with a held command, in exact arithmetic, without delay")
        return "\n".join(out)


@named_arguments()
def certify_sampled(
    controller: Any,
    plant: Plant | Robot,
    box: Box | tuple[ArrayLike, ArrayLike],
    control_dt: float,
    *,
    outside: float | tuple[ArrayLike, ArrayLike],
    budget: Budget | int = 20_000,
    progress: bool | Callable[[float], Any] = False,
) -> SampledCertificate:
    """Prove that V at the next sample is smaller, with the command held for control_dt, from each state of a box.

    Parameters
    ----------
    controller : Controller
        A controller without state z, at a set point, with `lyapunov`.
    plant : Plant or Robot
        The true robot; see `reach`.
    box : Box, or a pair (q, v)
        The states at a sample, as a `Box` or as half widths about the equilibrium [rad or m, rad/s or m/s].
    control_dt : float
        Hold time of a command [s].
    outside : float or pair (q, v)
        The claim leaves out the ellipsoid with these half axes about the equilibrium; a number r means (r, 5 r).
        Near the equilibrium the error of holding exceeds the decrease of V.
    budget : Budget or int
        Limits of the proof, or only the number of boxes.
    progress : bool or function
        True for a bar, or a function that is called with the decided fraction of the box.

    Returns
    -------
    SampledCertificate
        True if the claim is proved. `status` is "proved", "refuted" or "undecided"; `share_left` is the fraction of the
        box that is not decided; `counterexample` is a state (q, v) after which V is not smaller; `boxes` and `seconds`
        are the cost.

    Raises
    ------
    ArgumentError
        For arguments that do not fit.
    UntraceableError
        If the law can not be traced, or its trace differs from Python.

    Notes
    -----
    Proved is: for each real state x of the box outside the ellipsoid, the motion that starts at x with the constant
    command tau(x) exists for control_dt and ends with a smaller V. The motion may leave the box. V <= level is kept at
    the samples if {V <= level} lies in the box and contains what can be reached from the ellipsoid in one sample.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    >>> bool(gc.testing.certify_sampled(law, arm, (0.05, 0.2), 0.001, outside=(0.04, 0.16)))
    True
    """
    problem, budget = _SampledLoop(controller, plant, box, outside, control_dt), budget_of(budget)
    with progress_with_cost(progress, "certifying") as report:
        return problem.certificate(budget, report)


@named_arguments()
def largest_certified_control_dt(
    controller: Any,
    plant: Plant | Robot,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    outside: float | tuple[ArrayLike, ArrayLike],
    shortest: float = 1e-4,
    longest: float = 0.1,
    budget: Budget | int = 20_000,
) -> float:
    """Return a sampling period for which `certify_sampled` proves that V falls; 10 % more is not proved.

    Parameters
    ----------
    controller, plant, box, outside
        As for `certify_sampled`.
    shortest, longest : float
        Range of periods [s]. Defaults: 1e-4 and 0.1.
    budget : Budget or int
        As for `certify_sampled`.

    Returns
    -------
    float
        [s], found by bisection. It is a lower estimate of the longest period with this property, where
        `largest_control_dt` is an upper one.

    Raises
    ------
    ArgumentError
        If the claim is not proved at `shortest`, and as `certify_sampled`.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    >>> box, core = (0.05, 0.2), (0.04, 0.16)
    >>> gc.testing.largest_certified_control_dt(law, arm, box, outside=core, shortest=0.001, longest=0.00105)
    0.00105
    """
    low, high = _seconds("shortest", shortest), _seconds("longest", longest)
    if not low < high:
        raise ArgumentError(f"shortest, longest: expected a shorter and a longer period, got {low:g} and {high:g}")
    problem, budget = _SampledLoop(controller, plant, box, outside, low), budget_of(budget, ("resume",))

    def certificate(control_dt: float) -> SampledCertificate:
        problem.control_dt = control_dt
        certificate = problem.certificate(budget)
        outcome = certificate.claims[0].outcome
        if outcome is not None and outcome.interrupted:
            raise KeyboardInterrupt
        return certificate

    if not (first := certificate(low)):
        raise ArgumentError(f"shortest: expected a period for which V is proved to fall, got {low:g} s: {first}")
    if certificate(high):
        return high
    while high > PRECISION * low:
        middle = float(np.sqrt(low * high))
        if certificate(middle):
            low = middle
        else:
            high = middle
    return low


class _SampledLoop(Divisible):
    """The loop with a held command: states (q, v), the change W of V, then the command, then time.

    It is the claim that V falls, as branch and bound needs it; boxes are relative to the equilibrium.
    """

    chunk, pilot = 1, PILOT

    def __init__(self, controller: Any, plant: Any, box: Any, outside: Any, control_dt: Any):
        self.arguments = controller, plant, box, outside
        self.plant, self.controller, box = checked_plant(plant), controller, box_of(box)
        self.control_dt = _seconds("control_dt", control_dt)
        require_autonomous(controller, self.plant)
        if box.times is not None:
            raise ArgumentError(f"box: expected a Box without `times`, got {shown(box)}")
        if not hasattr(controller, "lyapunov"):
            raise ArgumentError(f"controller: expected one with lyapunov(t, q, v, z, plant), got {shown(controller)}")
        robot = self.plant.robot
        self.n = robot.nv
        q_d = equilibrium_of(controller, robot, box.equilibrium)
        self.half, self.ball = half_widths("box", (box.q, box.v), robot), half_axes(outside, robot)
        if vacuous(self.half, self.ball):
            raise ArgumentError(
                f"outside: expected an ellipsoid smaller than the box, got half axes {self.ball.tolist()}"
            )
        self.centre = np.concatenate([q_d, np.zeros(self.n)])
        self.domain = domain_text(self.half, robot, 0.0)
        self.starts = -self.half[None], self.half[None]
        self.equations = LoopEquations(controller, self.plant, np.zeros(0, int), "V", held=True)
        self._require_smooth(self.equations.loop)
        self.equations.compare_with_python(self.centre - self.half, self.centre + self.half, 1.0)
        self.dynamics, self.law = self._rows(self.equations)

    def _require_smooth(self, loop: TracedClosedLoop) -> None:
        ends = [loop.graph.operand(x) for x in (loop.value, *loop.command.tau.tolist(), *loop.extra["vdot"].tolist())]
        if loop.t.index in loop.graph.needed(ends):
            raise UntraceableError("controller: the law, V or the plant depends on time: expected a set point")
        if not is_continuous_everywhere(loop):
            raise UntraceableError(
                "controller: V is not shown to be continuous, so its rate does not say how it changes"
            )

    def _rows(self, e: LoopEquations) -> tuple[Dynamics, OperationRows]:
        n, commands = 2 * self.n, len(e.command)
        change = e.loop.along(e.signal, [*e.held_rates, 0.0], pace=0.0)
        inputs = [*e.inputs[:n], (CHANGE_OF_V, 0), *((HELD, k) for k in range(commands)), (TIME, 0)]
        rates = [*e.held_rates, change, *[0.0] * commands, 1.0]
        rows = OperationRows(e.loop.graph, inputs, rates, e.constants, e.good)
        return Dynamics(rows, n + 1), e.rows(e.command, inputs)

    @property
    def statement(self) -> str:
        interval = f"from each sample to the next, {self.control_dt:g} s later"
        return f"V falls {interval}, outside the ellipsoid, for {self.domain}"

    def statements(self, level: float | None = None) -> dict[str, _SampledLoop]:
        return {self.statement: self}

    def certificate(self, budget: Budget, report: Progress = no_progress) -> SampledCertificate:
        """Divide the box until V is proved to fall in all parts, or a state is found from which it does not."""
        run = ProofRunner(budget, (_SampledLoop, (*self.arguments, self.control_dt)), self.statements)
        outcome = run(self.statement, self, progress=report)
        violation = outcome.violation
        claim = Claim(self.statement, outcome.status, outcome, self)
        return SampledCertificate([claim], self.control_dt, None if violation is None else self.centre + violation)

    @np.errstate(all="ignore")  # infinite bounds decide nothing
    def split(self, lo: np.ndarray, hi: np.ndarray, count: int) -> Decision:
        """See `Divisible.split`."""
        done, sides, violation = np.zeros(len(lo), bool), np.full(len(lo), -1), None
        for k, (a, b) in enumerate(zip(lo, hi)):
            if self._is_in_ball(a, b):
                done[k] = True
                continue
            change, W = self._change(a, b, self.control_dt)
            done[k] = change[1] < 0.0
            if done[k]:
                continue
            middle = 0.5 * (a + b)
            if not change[0] < 0.0 or (W is not None and W[0] >= 0.0):
                at_middle, _ = self._change(middle, middle, self.control_dt)
                if at_middle[0] >= 0.0 and ((middle / self.ball) ** 2).sum() > 1.0 + 1e-12:
                    violation = middle
            side = self._side(a, b, W)
            if (b - a)[side] >= MIN_SIDE_RATIO * 2.0 * self.half[side]:
                sides[k] = side
        return Decision(done, sides, violation)

    def _is_in_ball(self, lo: np.ndarray, hi: np.ndarray) -> bool:
        """Whether the ellipsoid certainly contains the box; a point may be at its boundary."""
        corner = np.maximum(np.abs(lo), np.abs(hi))
        return bool(((corner / self.ball) ** 2).sum() < 1.0 - 1e-12)

    def _change(self, lo: np.ndarray, hi: np.ndarray, control_dt: float) -> tuple[tuple[float, float], Any]:
        """(Bounds of the change of V over one sample, its Taylor model or None)."""
        n, unknown = 2 * self.n, (-np.inf, np.inf)
        rest = np.zeros(self.dynamics.states - n)
        lower = np.nextafter(self.centre + lo, -np.inf) if (hi > lo).any() else self.centre + lo
        upper = np.nextafter(self.centre + hi, np.inf) if (hi > lo).any() else lower
        enclosure = Enclosure(self.dynamics, np.append(lower, rest), np.append(upper, rest), ORDER, recent=1)
        if not enclosure.hold(self.law, slice(n + 1, self.dynamics.states - 1)):
            return unknown, None
        rows = enclosure.endpoint(control_dt)
        if rows is None:
            return unknown, None
        W, layout = rows[n], enclosure.layout
        k = layout.initial
        rest = float(np.abs(W[1 + k : 1 + layout.symbols]).sum() + W[ERR]) * UP
        low, high = bounds(W)
        upper = self._upper(float(W[0]), *layout.polynomial(W), 0.5 * (lo + hi), 0.5 * (hi - lo)) + rest if k else high
        return (float(low), min(float(high), float(upper))), W

    def _upper(self, c: float, b: np.ndarray, A: np.ndarray, centre: np.ndarray, half: np.ndarray) -> float:
        """An upper bound of c + b.e + e.A e for |e_j| <= 1 where x = centre + half e is not in the ball.

        There the polynomial is at most itself plus mu (sum (x / ball)^2 - 1) for any mu >= 0, which is concave for a
        small mu. A concave polynomial is below its tangent plane at any point, such as its approximate maximum.
        """
        scaled = half / self.ball
        weight = np.diag(scaled**2)
        eigenvalues = np.linalg.eigvalsh(A / scaled[:, None] / scaled)
        largest, best = max(-float(eigenvalues[-1]), 0.0), np.inf
        reach = np.abs(centre) + half
        offset = 2.0**-48 * (np.abs(self.centre) + reach) / self.ball  # of x / ball, rounded
        blur = float(((2.0 * reach / self.ball + offset) * offset).sum())
        for mu in (0.0, 0.5 * largest, 0.95 * largest):
            ratio = centre / self.ball
            constant, B = c + mu * (float(ratio @ ratio) - 1.0), A + mu * weight
            linear = b + 2.0 * mu * ratio * scaled
            e = _approximate_maximum(linear, B)
            slope = linear + 2.0 * B @ e
            above = np.maximum(slope * (1.0 - e), slope * (-1.0 - e)).sum()
            bend = max(0.0, float(np.linalg.eigvalsh(B)[-1]) + ROUNDING * float(np.abs(B).sum()))
            size = abs(constant) + mu * (1.0 + ratio @ ratio) + 4.0 * (np.abs(linear).sum() + np.abs(B).sum())
            value = constant + linear @ e + e @ B @ e + above + bend * ((1.0 + np.abs(e)) ** 2).sum()
            best = min(best, float(value + ROUNDING * size + mu * blur))
        return best

    def _side(self, lo: np.ndarray, hi: np.ndarray, W: Any) -> int:
        """The side along which the change of V varies most; without a Taylor model the longest one.

        A linear coefficient alone may vanish by symmetry, where the change of V is a square of this coordinate.
        """
        if W is None:
            return int(np.argmax((hi - lo) / self.half))
        sides, (b, A) = np.flatnonzero(hi > lo), Layout(int((hi > lo).sum()), self.dynamics.moving).polynomial(W)
        return int(sides[np.argmax(np.abs(b) + 2.0 * np.abs(A).sum(1))])


def _approximate_maximum(b: np.ndarray, A: np.ndarray) -> np.ndarray:
    """A point of the box |e_j| <= 1 near the maximum of b.e + e.A e for a concave A, by coordinate ascent."""
    e, curvature = np.zeros(len(b)), np.minimum(np.diag(A), -1e-300)
    for _ in range(ASCENTS):
        for j in range(len(b)):
            rest = b[j] + 2.0 * (A[j] @ e - A[j, j] * e[j])
            e[j] = min(1.0, max(-1.0, -0.5 * rest / curvature[j]))
    return e


def _seconds(name: str, x: Any) -> float:
    return number(name, x, "seconds > 0, at most 10", lambda x: 0.0 < x <= 10.0)
