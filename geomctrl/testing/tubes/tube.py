"""`Tube`: the enclosure of all motions from a box of initial states, and claims about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl import files
from geomctrl.arguments import checked, choices, count, number, pair, path_of, shown
from geomctrl.errors import ArgumentError
from geomctrl.testing.certificates.certificate import PROVED, REFUTED, UNDECIDED

from .equations import SIGNALS, LoopEquations
from .motions import Motion, Motions
from .steps import Layout, Segment, bounds, series

STATEMENT = "enclosed motions"  # in saved files
MAX_SAMPLES = 100_000
SAMPLES = 64  # motions from which a counterexample is sought
NOT_COVERED = "the proof is about the model in exact arithmetic{}; it does not cover rounding"


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of the initial box, and the enclosures of its motions in order of time.

    lower, upper: the box, uncertain parameters at the end.
    """

    lower: np.ndarray
    upper: np.ndarray
    layout: Layout
    segments: Sequence[Segment] = ()

    @property
    def until(self) -> float:
        return self.segments[-1].end if self.segments else 0.0

    def during(self, first: float, last: float) -> list[Segment]:
        """The segments that contain the states at all times from first to last; all that do if they are equal."""
        inside = [s for s in self.segments if s.end > first and s.start < last]
        return inside if first < last else [s for s in self.segments if s.start <= first <= s.end]


@dataclass(frozen=True, eq=False)
class TubeCheck:
    """The result for a claim about all motions of a tube; true if it is proved.

    Attributes
    ----------
    status : str
        "proved", "refuted" or "undecided".
    claim : str
    lowest, highest : float or array
        Bounds of the quantity in the claim, for all motions and times; infinite where the tube ends early.
    counterexample : Motion or None
        A motion that violates a refuted claim: its `t`, `x` and `parameters`, and the `time` of the violation.
    advice : str
        What to try if the claim is undecided.
    """

    status: str
    claim: str
    lowest: Any
    highest: Any
    counterexample: Motion | None = None
    advice: str = ""

    def __bool__(self) -> bool:
        return self.status == PROVED

    def __str__(self) -> str:
        out = [f"{self.status}: {self.claim}"]
        if np.ndim(self.lowest) == 0:
            out[0] += f"; it lies in [{self.lowest:.6g}, {self.highest:.6g}]"
        if self.counterexample is not None:
            out.append(f"violated at {self.counterexample}")
        if self.advice:
            out.append(self.advice)
        return "\n".join(out)


@dataclass(frozen=True, eq=False)
class Tube:
    """An enclosure of all motions of a closed loop; `reach` returns it. True if it holds until `t_end`.

    Attributes
    ----------
    t_end, until : float
        The requested time, and the time until which every motion is enclosed [s].
    pieces : list of Piece
        The boxes into which the initial box was divided, with their enclosures.
    lower, upper : array
        The initial box: state (q, v, z), then the uncertain inertial parameters.
    seconds : float
        Duration of the computation [s].
    interrupted, out_of_time : bool
        Whether an interrupt, or the time of the budget, ended the computation.
    more_pieces : float
        Estimated number of further pieces that an incomplete tube needs, from the size of those that reach `t_end`;
        infinite before the first one does. A budget of a few boxes gives this estimate before a long computation.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> rod = gc.inertia.from_com(1.0, (0.0, 0.0, -0.5), np.diag([0.08, 0.08, 1e-4]))
    >>> pendulum = gc.Robot.build([gc.Body("rod", None, gc.Joint.revolute((0, 1, 0)), None, rod)])
    >>> law = lambda t, q, v, z: gc.Command(-2.0 * v)
    >>> tube = gc.testing.reach(pendulum, law, ([0.1, 0.0], [0.2, 0.0]), 0.1)
    >>> lower, upper = tube.box(0.0)
    >>> print(lower, upper)
    [0.1 0. ] [0.2 0. ]
    >>> bool(tube.inside(([0.0, -1.0], [0.2, 0.0]), time=0.1)), bool(tube.stays("q[0]", upper=0.25))
    (True, True)
    >>> print(tube.summary().partition(" (")[0])
    All motions of robot  ·  function from a box of 1 dimensions are enclosed until 0.1 s
    >>> figure = tube.plot(["q[0]"])
    """

    equations: LoopEquations = field(repr=False)
    lower: np.ndarray
    upper: np.ndarray
    t_end: float
    pieces: list[Piece] = field(repr=False)
    seconds: float = 0.0
    interrupted: bool = False
    out_of_time: bool = False

    @property
    def until(self) -> float:
        return min(piece.until for piece in self.pieces)

    def __bool__(self) -> bool:
        return self.until >= self.t_end

    @property
    def more_pieces(self) -> float:
        width = np.where(self.upper > self.lower, self.upper - self.lower, 1.0)
        shares = np.array(
            [np.prod(np.maximum((p.upper - p.lower) / width, self.upper == self.lower)) for p in self.pieces]
        )
        complete = np.array([piece.until >= self.t_end for piece in self.pieces])
        if complete.all():
            return 0.0
        return float(shares[~complete].sum() / shares[complete].mean()) if complete.any() else np.inf

    def save(self, path: str | Path) -> Path:
        """Write the parts into which the box is divided as an npz file, for `Budget(resume=path)`.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Path
            The path.

        Notes
        -----
        The file has no enclosures: they are computed again, so that a file can not prove anything.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import geomctrl as gc
        >>> arm = gc.models.two_link()
        >>> law = gc.controllers.Passivity(arm, gc.references.hold(arm, [0.5, 1.0]), Lambda=5.0, K=20.0)
        >>> box = [0.4, 1.1, 0.0, 0.0], [0.41, 1.11, 0.0, 0.0]
        >>> tube = gc.testing.reach(arm, law, box, 0.1)
        >>> path = tube.save(pathlib.Path(tempfile.mkdtemp()) / "tube.npz")
        >>> len(gc.testing.reach(arm, law, box, 0.1, budget=gc.testing.Budget(resume=path)).pieces)
        1
        """
        lower, upper = (np.array([getattr(piece, end) for piece in self.pieces]) for end in ("lower", "upper"))
        arrays: dict[str, Any] = {"words": np.array([STATEMENT]), "0_lo": lower, "0_hi": upper}
        with files.whole(path_of("path", path)) as file:
            np.savez(file, **arrays)
        return path_of("path", path)

    @property
    def _n(self) -> int:
        return self.equations.n

    def box(self, time: float, until: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest known box of states (q, v, z) at a time, or at all times from `time` to `until`.

        Parameters
        ----------
        time : float
            Time [s].
        until : float, optional
            End [s] of the interval. Default: the one time only.

        Returns
        -------
        lower, upper : array (2 nv + nz,)
            Infinite where the tube ends before that time.
        """
        first = self._checked_time("time", time)
        last = first if until is None else self._checked_time("until", until)
        if last < first:
            raise ArgumentError(f"until: expected a time from {first:g} s on, got {last:g}")
        ends = [self._ends(piece, first, last) for piece in self.pieces]
        return np.min([lo for lo, _ in ends], 0), np.max([hi for _, hi in ends], 0)

    def _ends(self, piece: Piece, first: float, last: float) -> tuple[np.ndarray, np.ndarray]:
        if piece.until < last:
            return np.full(self._n, -np.inf), np.full(self._n, np.inf)
        if last == 0.0:
            return piece.lower[: self._n], piece.upper[: self._n]
        if first == last and (there := [s for s in piece.segments if s.end == first]):
            return there[0].lo[: self._n], there[0].hi[: self._n]
        hulls = [s.hull for s in piece.during(first, last)]
        return np.min([lo for lo, _ in hulls], 0)[: self._n], np.max([hi for _, hi in hulls], 0)[: self._n]

    def stays(
        self, signal: str | Callable[..., Any], *, upper: float | None = None, lower: float | None = None,
        start: float = 0.0, end: float | None = None,
    ) -> TubeCheck:  # fmt: skip
        """Prove lower <= signal <= upper for all motions, at all times from `start` to `end`.

        Parameters
        ----------
        signal : str or function
            "q[0]", "v[0]", "z[0]", "tau[0]", "V" (the controller's `lyapunov`), or a function (t, q, v, z, plant) that
            returns a number. A claim about a held command is about those that are held between `start` and `end`.
        upper, lower : float, optional
            The limits; at least one.
        start, end : float
            Times [s]; default: the whole tube.

        Returns
        -------
        TubeCheck
            Proved; refuted, with a motion that violates the limits in an independent integration; or undecided.

        Raises
        ------
        ArgumentError
            For a signal that does not exist, limits without values between them, and a law or plant that was changed
            after the tube was computed.
        UntraceableError
            For a function that can not be traced.
        """
        if not (isinstance(signal, str) or callable(signal)):
            raise ArgumentError(f"signal: expected {SIGNALS}, got {shown(signal)}")
        lowest, highest = _limits(lower, upper)
        first = self._checked_time("start", start)
        last = self.t_end if end is None else self._checked_time("end", end)
        if last < first:
            raise ArgumentError(f"end: expected a time from start = {first:g} s on, got {last:g}")
        e = self.equations
        e.require_unchanged()
        equations = LoopEquations(e.controller, e.plant, e.uncertain, signal, control_dt=e.control_dt)
        equations.compare_with_python(self.lower[: self._n], self.upper[: self._n], self.t_end)
        lo, hi = self._signal_bounds(equations, first, last)
        name = signal if isinstance(signal, str) else getattr(signal, "__name__", "signal")
        limits = (
            (f"{lower:g} <= " if lower is not None else "") + name + (f" <= {upper:g}" if upper is not None else "")
        )
        claim = f"{limits} from {first:g} to {last:g} s"
        if lowest <= lo and hi <= highest:
            return TubeCheck(PROVED, claim, lo, hi)
        sampled = Motions(equations, self.lower, self.upper, last)
        motion = sampled.outside([equations.signal], [lowest], [highest], first)
        return self._open(claim, lo, hi, motion, last)

    def inside(self, box: tuple[ArrayLike, ArrayLike], *, time: float) -> TubeCheck:
        """Prove that all motions are in a box at a time.

        Parameters
        ----------
        box : pair of arrays (2 nv + nz,)
            Lower and upper bounds of (q, v, z); infinite ones claim nothing.
        time : float
            Time [s]. The bounds are tightest at the ends of the tube's steps, which include t_end.

        Returns
        -------
        TubeCheck

        Raises
        ------
        ArgumentError
            For arguments that do not fit, and a law or plant that was changed after the tube was computed.
        """
        time = self._checked_time("time", time)
        lower, upper = pair_of("box", box, (self._n,), finite=False)
        self.equations.require_unchanged()
        lo, hi = self.box(time)
        claim = f"the state is in the box at {time:g} s"
        if (lower <= lo).all() and (hi <= upper).all():
            return TubeCheck(PROVED, claim, lo, hi)
        y = self.equations.loop.y.tolist()[: self._n]
        motion = Motions(self.equations, self.lower, self.upper, time).outside(y, lower, upper, time)
        return self._open(claim, lo, hi, motion, time)

    def _open(self, claim: str, lo: Any, hi: Any, motion: Motion | None, last: float) -> TubeCheck:
        if motion is not None:
            return TubeCheck(REFUTED, claim, lo, hi, motion)
        advice = (
            self._advice()
            if self.until < last
            else "no sampled motion violates it: try a smaller box or more boxes in `budget`"
        )
        return TubeCheck(UNDECIDED, claim, lo, hi, advice=advice)

    @np.errstate(all="ignore")
    def _signal_bounds(self, equations: LoopEquations, first: float, last: float) -> tuple[float, float]:
        rows, lo, hi = equations.signal_rows(), np.inf, -np.inf
        for piece in self.pieces:
            if piece.until < last:
                return -np.inf, np.inf
            segments = piece.during(first, last)
            if not segments and self.equations.commands:
                return -np.inf, np.inf  # the command at time 0 is not known
            for E in [s.E for s in segments] or [piece.layout.box(*map(_with_time, (piece.lower, piece.upper)))]:
                _, values = series(rows, piece.layout, E, 1)
                if not np.isfinite(values[0, 0]) or (len(values) > 1 and values[1, 0] != 1.0):
                    return -np.inf, np.inf
                low, high = bounds(values[0])
                lo, hi = min(lo, float(low)), max(hi, float(high))
        return lo, hi

    def _motions(self, samples: int = SAMPLES, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return sampled motions from corners and random states of the box, integrated by scipy's DOP853.

        Parameters
        ----------
        samples : int
            Number of motions.
        seed : int
            Seed of the random states. Default: 0.

        Returns
        -------
        t : array (m,)
            Times [s].
        x : array (samples, m, 2 nv + nz)
            States (q, v, z); nan after the time where a motion ceases to exist.
        """
        samples = count("samples", samples, 1, MAX_SAMPLES)
        motions = Motions(self.equations, self.lower, self.upper, self.t_end, samples, count("seed", seed))
        return motions.t, motions.x[:, :, : self._n]

    def plot(self, signals: Sequence[str] | None = None, *, samples: int = 24) -> Any:
        """Return a figure of the enclosure of states over time, with sampled motions in it.

        Parameters
        ----------
        signals : list of str, optional
            Names such as "q[0]"; default: all of q, or q and v for up to three joints.
        samples : int
            Number of motions.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from geomctrl.viewing import tubes

        names = self._names()
        if signals is None:
            nv = self.equations.plant.robot.nv
            signals = names[: 2 * nv] if nv <= 3 else names[:nv]
        if not (signals := choices("signals", signals, names, ordered=True)):
            raise ArgumentError(f"signals: expected some of {', '.join(names)}, got {shown(signals)}")
        rows = [names.index(x) for x in signals]
        samples = count("samples", samples, 0, MAX_SAMPLES)
        curves = None
        if samples:
            t, x = self._motions(samples)
            curves = t, x[:, :, rows]
        return tubes.figure(list(signals), list(self._patches(rows)), curves, self._title())

    def _patches(self, rows: list[int]) -> Iterator[tuple[float, float, np.ndarray, np.ndarray]]:
        """(start, end, lower, upper) of all enclosures."""
        for piece in self.pieces:
            for segment in piece.segments:
                lo, hi = segment.hull
                yield segment.start, segment.end, lo[rows], hi[rows]

    def _names(self) -> list[str]:
        """The names of the states, in order."""
        nv = self.equations.plant.robot.nv
        parts = {"q": nv, "v": nv, "z": self._n - 2 * nv}
        return [f"{part}[{k}]" for part, size in parts.items() for k in range(size)]

    def _title(self) -> str:
        return f"{self.equations.plant.robot.name}  ·  {type(self.equations.controller).__name__}"

    def summary(self) -> str:
        """Return what is proved, with the bounds of each state at the end.

        Returns
        -------
        str
        """
        wide = int((self.upper > self.lower).sum())
        out = [f"All motions of {self._title()} from a box of {wide} dimensions are enclosed until {self.until:.6g} s"]
        pieces = "1 piece" if len(self.pieces) == 1 else f"{len(self.pieces)} pieces"
        out[0] += f" ({pieces}, {sum(len(p.segments) for p in self.pieces)} steps, {self.seconds:.3g} s)."
        if self.until > 0.0:
            lo, hi = self.box(self.until)
            out += [f"  {name:6} in [{a:.6g}, {b:.6g}]" for name, a, b in zip(self._names(), lo, hi)]
        if not self:
            out.append(self._advice())
        dt = self.equations.control_dt
        sampling = " and in continuous time" if dt is None else f" with a command that is held for {dt:g} s"
        out += [f"lemma: {lemma}" for lemma in self.equations.lemmas]
        return "\n".join([*out, NOT_COVERED.format(sampling)])

    __str__ = summary

    def _advice(self) -> str:
        more, done = self.more_pieces, sum(piece.until >= self.t_end for piece in self.pieces)
        if np.isfinite(more):
            rest = f"estimated: {more:.2g} more pieces, {more * self.seconds / done:.2g} s"
            return f"{self._end or 'more boxes in `budget` are needed'}; {rest}"
        if self._end:
            return f"{self._end}: motions are enclosed until {self.until:.6g} s only"
        return (
            f"the enclosure ends at {self.until:.6g} s: try a smaller initial box, fewer uncertain parameters,"
            f" or more boxes in `budget` than {len(self.pieces)}"
        )

    @property
    def _end(self) -> str:
        return "interrupted" if self.interrupted else "stopped by `seconds` of the budget" if self.out_of_time else ""

    def _checked_time(self, name: str, t: Any) -> float:
        return number(name, t, f"a time from 0 to t_end = {self.t_end:g} s", lambda t: 0.0 <= t <= self.t_end)


def _limits(lower: float | None, upper: float | None) -> tuple[float, float]:
    if lower is None and upper is None:
        raise ArgumentError("upper, lower: expected at least one limit, got none")
    low = -np.inf if lower is None else number("lower", lower, "a finite number")
    high = np.inf if upper is None else number("upper", upper, "a finite number")
    if not low < high:
        raise ArgumentError(f"upper, lower: expected lower < upper, got {low:g} and {high:g}")
    return low, high


def _with_time(x: np.ndarray) -> np.ndarray:
    return np.append(x, 0.0)


def pair_of(name: str, x: Any, shape: tuple[int, ...], finite: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper), arrays of a shape with lower <= upper."""
    ends = pair(name, x, f"a pair (lower, upper) of arrays {shape}")
    lower, upper = (checked(name, end, shape, finite) for end in ends)
    if lower.shape != shape or upper.shape != shape or not (lower <= upper).all():
        raise ArgumentError(f"{name}: expected arrays {shape} with lower <= upper, got {shown(x)}")
    return lower, upper
