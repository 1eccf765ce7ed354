"""The regressor of a whole robot: inertia, friction, rotors, springs, columns of one's own: tau = Y(q, v, a) x.

A log is never stacked as a whole. It comes in chunks, and of each joint's rows only a triangular factor is kept: with
[Y_k tau_k] = Q_k R_k over all samples of joint k, |Y_k x - tau_k| = |R_k (x, -1)| for every x. Joint by joint: a
joint's torque depends on the bodies it carries only (fewer columns), and weights and errors per joint can then be
changed without reading the log again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot
from geomctrl.terms.regressor import stacked_regressor, subtree_bodies

from . import filters
from .base_parameters import SYMBOLS, BaseParameters, combinations, exact_base_parameters, reduce_columns
from .dataset import Dataset
from .errors import DataError

INERTIAL = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
CHUNK = 1008  # samples: a chunk stays in cache, and is no power of two apart in memory


@dataclass(frozen=True)
class Column:
    """A column of one's own: torque(q, v, a) (N, nv) is what one unit of the parameter adds to the torques [N m]."""

    name: str
    torque: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    positive: bool = False  # physically consistent estimators keep the parameter >= 0
    initial: float = 0.0


@dataclass(frozen=True)
class Curve:
    """Friction of actuator number `actuator` beyond Coulomb's and viscous, one amplitude [N m] and a fixed `speed`
    [rad/s].

    shape="sigmoid": tanh(v / speed), friction that levels off; "stribeck": sign(v) exp(-(v / speed)^2), what standing
    friction exceeds Coulomb's by. `friction.fit_curves` finds the speeds.
    """

    actuator: int
    shape: str
    speed: float

    def torque(self, v: np.ndarray, smoothing: float) -> np.ndarray:
        """Of unit amplitude, like v."""
        u = v / self.speed
        if self.shape == "sigmoid":
            return np.tanh(u)
        return _sign(v, smoothing) * np.exp(-(u**2))

    def torque_by_log_speed(self, v: np.ndarray, smoothing: float) -> np.ndarray:
        """Derivative of `torque` by log(speed)."""
        u = v / self.speed
        if self.shape == "sigmoid":
            return -u / np.cosh(np.clip(u, -300.0, 300.0)) ** 2
        return 2.0 * u**2 * self.torque(v, smoothing)


class RegressorModel:
    """tau = Y(q, v, a) x for any robot.

    x holds, in this order: ten inertial parameters a body; and per actuator (the joints, unless `transmission` says
    otherwise) viscous friction [N m s/rad], Coulomb friction [N m], a torque offset [N m], rotor inertia [kg m^2] as
    far as asked for; per joint spring stiffness [N m/rad] and a torque of its neutral position [N m] for `springs`
    (names or numbers of joints); amplitudes of friction `curves` [N m]; then `columns`.

    smoothing: speed [rad/s] at which tanh(v / smoothing) replaces sign(v); 0 is the sign.
    transmission (na, nv): actuator velocities per joint velocity where friction and rotors act, for coupled joints; its
    rows may be more than joints. offset, viscous, coulomb, rotor: True (but not of a free base), False, or actuators'
    numbers.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        viscous: bool | Sequence[int] = True,
        coulomb: bool | Sequence[int] = True,
        offset: bool | Sequence[int] = True,
        rotor: bool | Sequence[int] = False,
        springs: Sequence[str | int] = (),
        curves: Sequence[Curve] = (),
        columns: Sequence[Column] = (),
        transmission: ArrayLike | None = None,
        smoothing: float = 0.01,
    ):
        if not isinstance(robot, Robot):
            raise ArgumentError(f"robot: expected a geomctrl Robot, got {robot!r:.60}")
        n = robot.nv
        self.robot, self.columns, self.curves = robot, tuple(columns), tuple(curves)
        try:
            T = np.eye(n) if transmission is None else np.array(transmission, float)
        except (TypeError, ValueError):
            raise ArgumentError(f"transmission: expected numbers (actuators, {n}), got {transmission!r:.60}") from None
        if T.ndim != 2 or T.shape[1] != n or not np.isfinite(T).all() or not np.abs(T).max(1).all():
            raise ArgumentError(
                f"transmission: expected finite rows (actuators, {n}), none of them zero, got {T.shape}"
            )
        if not (np.isfinite(smoothing) and smoothing >= 0.0):
            raise ArgumentError(f"smoothing: expected a speed >= 0, got {smoothing}")
        self.transmission, self.smoothing = T, float(smoothing)
        actuators = (
            list(robot.dof_names)
            if transmission is None
            else [" + ".join(_term(c, robot.dof_names[k]) for k, c in enumerate(row) if c) for row in T]
        )
        short = [str(i + 1) for i in range(robot.nbodies)]
        self.names = [f"{kind}{i}" for i in short for kind in INERTIAL]
        self.kinds = [kind for _ in short for kind in INERTIAL]
        self.owners = [robot.body_names[i] for i in range(robot.nbodies) for _ in INERTIAL]
        driven = np.flatnonzero([j.kind != "free" for j in robot.joints for _ in range(j.dof)])
        driven = driven if transmission is None else np.arange(len(T))
        self.acts: dict[str, np.ndarray] = {}
        for kind, symbol, chosen in (
            ("viscous", "fv", viscous), ("coulomb", "fc", coulomb), ("offset", "fo", offset), ("rotor", "Ir", rotor),
        ):  # fmt: skip
            at = _chosen(kind, chosen, len(T), driven)
            self.acts[kind] = at
            self.names += [f"{symbol}{k + 1}" for k in at]
            self.kinds += [kind] * len(at)
            self.owners += [actuators[k] for k in at]
        self.springs = [robot.joint(k) if isinstance(k, str) else int(k) for k in springs]
        if self.springs and robot.nq != n:
            raise ArgumentError("springs: expected a robot of joints with one degree of freedom each")
        if any(not 0 <= k < n for k in self.springs):
            raise ArgumentError(f"springs: expected joints' names or numbers from 0 to {n - 1}, got {list(springs)}")
        for symbol, kind in (("ks", "stiffness"), ("k0", "preload")):
            self.names += [f"{symbol}{k + 1}" for k in self.springs]
            self.kinds += [kind] * len(self.springs)
            self.owners += [robot.dof_names[k] for k in self.springs]
        for c in self.curves:
            if c.shape not in ("sigmoid", "stribeck") or not c.speed > 0.0 or not 0 <= c.actuator < len(T):
                raise ArgumentError(
                    f"curves: expected a sigmoid or stribeck of a positive speed on one of {len(T)} actuators, got {c}"
                )
            self.names.append(f"{'fs' if c.shape == 'sigmoid' else 'fb'}{c.actuator + 1}")
            self.kinds.append("curve")
            self.owners.append(actuators[c.actuator])
        self.names += [c.name for c in self.columns]
        self.kinds += ["user"] * len(self.columns)
        self.owners += [c.name for c in self.columns]
        self.size, self.inertial = len(self.names), 10 * robot.nbodies
        twice = [x for x in self.names if self.names.count(x) > 1]
        if twice:
            raise ArgumentError(f"columns: the name {twice[0]!r} is used twice")
        self.active = self._active()
        self._base = None
        self._options = {
            "viscous": viscous, "coulomb": coulomb, "offset": offset, "rotor": rotor, "springs": springs,
            "curves": curves, "columns": columns, "transmission": transmission, "smoothing": smoothing,
        }  # fmt: skip

    def with_options(self, **changes: Any) -> RegressorModel:
        """The same model but for these options."""
        return RegressorModel(changes.pop("robot", self.robot), **{**self._options, **changes})

    @property
    def prior(self) -> np.ndarray:
        """(size,): the robot model's own inertial parameters, damping and friction; columns' `initial`; zeros."""
        x = np.zeros(self.size)
        x[: self.inertial] = self.robot.parameters.ravel()
        if np.array_equal(self.transmission, np.eye(self.robot.nv)):
            x[self._of("viscous")] = self.robot.damping[self.acts["viscous"]]
            x[self._of("coulomb")] = self.robot.friction[self.acts["coulomb"]]
        x[self._of("user")] = [c.initial for c in self.columns]
        return x

    @property
    def positive(self) -> np.ndarray:
        """Numbers of the parameters that are not negative in any machine: friction, rotors, stiffnesses, some
        columns.
        """
        own = dict(zip(self._of("user").tolist(), (c.positive for c in self.columns)))
        signed = ("viscous", "coulomb", "rotor", "stiffness", "curve")
        return np.array([i for i, kind in enumerate(self.kinds) if kind in signed or own.get(i)], dtype=int)

    @property
    def base(self) -> BaseParameters:
        """The structurally independent combinations of all `size` parameters (over every motion, not one log's).

        Inertial parameters by the exact recursion; which of the other columns they then determine (a rotor on the first
        joint, say) by pivoted QR over random states.
        """
        if self._base is None:
            robot, rng = self.robot, np.random.default_rng(0)
            exact = exact_base_parameters(robot)
            n = 2 * self.size // robot.nv + 40
            q = np.array([robot.random_configuration(rng) for _ in range(n)])
            v, a = rng.normal(size=(2, n, robot.nv))
            others = np.arange(self.inertial, self.size)
            at = np.concatenate((exact.columns, others))
            joined = np.zeros((len(at), self.size))
            joined[: exact.size, : self.inertial] = exact.projection
            joined[np.arange(exact.size, len(at)), others] = 1.0
            if len(others):
                again = reduce_columns(self.regressor(q, v, a)[..., at].reshape(-1, len(at)))
                joined, at = again.projection @ joined, at[again.columns]
            self._base = BaseParameters(at, joined)
        return self._base

    @property
    def base_names(self) -> tuple[str, ...]:
        """Every base parameter in words."""
        symbols = [s.format(i + 1) for i in range(self.robot.nbodies) for s in SYMBOLS] + self.names[self.inertial :]
        return combinations(self.base.projection, self.base.columns, symbols)

    def _of(self, kind: str) -> np.ndarray:
        return np.array([i for i, k in enumerate(self.kinds) if k == kind], dtype=int)

    def _active(self) -> list[np.ndarray]:
        """Per joint torque, the parameters it can depend on."""
        active = []
        for k, below in enumerate(subtree_bodies(self.robot)):
            columns = [np.arange(10 * i, 10 * i + 10) for i in below]
            own = [self._of(kind)[self.transmission[acts, k] != 0.0] for kind, acts in self.acts.items()]
            if k in self.springs:
                own += [self._of(kind)[[self.springs.index(k)]] for kind in ("stiffness", "preload")]
            own.append(self._of("curve")[[self.transmission[c.actuator, k] != 0.0 for c in self.curves]])
            active.append(np.concatenate([*columns, *own, self._of("user")]).astype(int))
        return active

    # --- the regressor -----------------------------------------------------------------------------------------

    def regressor(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Y (N, nv, size) at N states."""
        Y = np.zeros((len(q), self.robot.nv, self.size))
        Y[..., : self.inertial] = self.robot.regressor(q, v, a)
        for k, (at, rows) in enumerate(zip(self.active, self._own_rows(q, v, a))):
            Y[:, k, at[len(at) - len(rows) :]] = rows.T
        return Y

    def blocks(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
        """The same without its zeros: for each joint torque its inertial, then its own columns, (N, .) each, of the
        parameters `active`."""
        own = self._own_rows(q, v, a)
        return [x.T for pair in zip(stacked_regressor(self.robot, q, v, a), own) for x in pair]

    def _own_rows(self, q, v, a) -> list[np.ndarray]:
        """Per joint torque, the columns after the inertial ones as rows (., N), in the order of `active`."""
        T = self.transmission
        speed = v @ T.T
        drive = {
            "viscous": speed,
            "coulomb": _sign(speed, self.smoothing),
            "offset": np.ones_like(speed),
            "rotor": a @ T.T,
        }
        curves = [c.torque(speed[:, c.actuator], self.smoothing) for c in self.curves]
        users = []
        for own in self.columns:
            torque = np.asarray(own.torque(q, v, a), float)
            if torque.shape != v.shape or not np.isfinite(torque).all():
                raise ArgumentError(
                    f"column {own.name!r}: expected finite torques of shape {v.shape}, got {torque.shape}"
                )
            users.append(torque)
        out = []
        for k in range(self.robot.nv):
            rows = [T[j, k] * drive[kind][:, j] for kind, acts in self.acts.items() for j in acts if T[j, k] != 0.0]
            if k in self.springs:
                rows += [q[:, k], np.ones(len(q))]
            rows += [T[c.actuator, k] * x for c, x in zip(self.curves, curves) if T[c.actuator, k] != 0.0]
            rows += [x[:, k] for x in users]
            out.append(np.array(rows).reshape(len(rows), len(q)))
        return out

    def torque(self, x: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Y(q, v, a) x (N, nv), in chunks."""
        if np.shape(x) != (self.size,):
            raise ArgumentError(f"x: expected the model's {self.size} parameters, got shape {np.shape(x)}")
        q, v, a = (np.array(y, dtype=float) for y in (q, v, a))  # kernels take writable arrays only
        pieces = _pieces(slice(0, len(q)), CHUNK)
        return np.concatenate([self._times(self.blocks(q[s], v[s], a[s]), x) for s in pieces])

    def _times(self, blocks: Sequence[np.ndarray], x: np.ndarray) -> np.ndarray:
        """Y x (N, nv) from `blocks`."""
        out = []
        for at, inertial, own in zip(self.active, blocks[0::2], blocks[1::2]):
            n = inertial.shape[1]
            out.append(inertial @ x[at[:n]] + own @ x[at[n:]])
        return np.stack(out, -1)

    # --- a log -------------------------------------------------------------------------------------------------

    def check(self, data: Dataset) -> None:
        data.check(self.robot, units=False)
        if data.v is None or data.a is None:
            raise DataError(
                f"{data.label}: velocities and accelerations are missing: use data.filtered(cutoff=...) first"
            )

    def chunks(
        self, data: Dataset, size: int = CHUNK
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """(Y, tau, mask, sample numbers) of a log, `size` samples at a time, filtered and thinned as `data` says."""
        for (Y,), tau, mask, at in self.stream(data, lambda q, v, a: [self.regressor(q, v, a)], size):
            yield Y, tau, mask, at

    def stream(
        self,
        data: Dataset,
        function: Callable[[np.ndarray, np.ndarray, np.ndarray], Sequence[np.ndarray]],
        size: int = CHUNK,
    ) -> Iterator[tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]]:
        """`chunks` with the arrays (N, ...) of another function(q, v, a) in the regressor's place."""
        self.check(data)
        assert data.v is not None
        assert data.a is not None
        reach = 0 if data.band is None else 3 * filters.settling(data.rate, data.band[0])  # forgets to 1e-9
        for stretch in data.stretches():
            for piece in _pieces(stretch, max(size, 2 * reach)):
                wide = slice(max(stretch.start, piece.start - reach), min(stretch.stop, piece.stop + reach))
                values = function(*(np.array(x[wide]) for x in (data.q, data.v, data.a)))
                tau, mask = data.tau[wide], np.asarray(data.mask)[wide]
                if data.band is not None:
                    band = data.band
                    values = [filters.low_pass(x, data.rate, *band) if x.size else x for x in values]
                    tau = filters.low_pass(tau, data.rate, *band)
                offset = -(piece.start - stretch.start) % data.stride
                inner = slice(piece.start - wide.start + offset, piece.stop - wide.start, data.stride)
                yield [x[inner] for x in values], tau[inner], mask[inner], np.arange(wide.start, wide.stop)[inner]

    def rows(self, data: Dataset) -> np.ndarray:
        """The sample numbers that `chunks` yields."""
        return np.concatenate([np.arange(s.start, s.stop, data.stride) for s in data.stretches()])

    def predict(self, x: np.ndarray, data: Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(t, tau measured, tau predicted, mask) at the rows that estimators see: filtered and thinned as `data`
        says.
        """
        parts = [(data.t[at], tau, self._times(Y, x), mask) for Y, tau, mask, at in self.stream(data, self.blocks)]
        t, tau, predicted, mask = (np.concatenate(p) for p in zip(*parts))
        return t, tau, predicted, mask

    def compress(
        self, data: Dataset, weights: np.ndarray | None = None, progress: Callable[[float], None] | None = None
    ) -> Compressed:
        """The triangular factors of a log, in one pass of constant memory.

        weights (rows, nv): factors on the rows of Y and tau (square roots of weights in the least-squares sense).
        progress: called with the fraction done. Raises DataError for logs without usable rows.
        """
        factors = [np.zeros((0, len(at) + 1)) for at in self.active]
        counts, done = np.zeros(self.robot.nv, dtype=int), 0
        for blocks, tau, mask, _ in self.stream(data, self.blocks):
            for k, at in enumerate(self.active):
                inertial, own = blocks[2 * k], blocks[2 * k + 1]
                split = inertial.shape[1]
                use = mask[:, k]
                everything = bool(use.all())
                n = len(use) if everything else int(use.sum())
                R, rows = factors[k], len(factors[k]) + n
                A = np.empty((rows, len(at) + 1), order="F")
                A[: len(R)] = R
                rest = slice(None) if everything else use
                A[len(R) :, :split], A[len(R) :, split:-1] = inertial[rest], own[rest]
                A[len(R) :, -1] = tau[rest, k]
                if weights is not None:
                    A[len(R) :] *= weights[done : done + len(tau)][use, k, None]
                factors[k] = _triangle(A)
                counts[k] += n
            done += len(tau)
            if progress is not None:
                progress(min(1.0, done * data.stride / len(data)))
        if not counts.any():
            raise DataError(f"{data.label}: no usable torque sample is left (all are masked)")
        if not any(R[:, -1].any() for R in factors):
            raise DataError(f"{data.label}: tau: every usable torque is zero: there is nothing to explain")
        return Compressed(self, tuple(factors), counts)


@dataclass(frozen=True, eq=False)
class Compressed:
    """What estimators need of a log: per joint k the triangular factor of [Y_k tau_k] over its `counts[k]` rows."""

    model: RegressorModel
    factors: tuple[np.ndarray, ...]
    counts: np.ndarray

    def system(self, weights: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(A, b), A (rows, size) with few rows: |A x - b|^2 = sum_k weights_k^2 |Y_k x - tau_k|^2 for every x."""
        w = (
            np.ones(len(self.factors))
            if weights is None
            else np.broadcast_to(np.asarray(weights, float), len(self.factors))
        )
        rows = []
        for at, R, wk in zip(self.model.active, self.factors, w):
            block = np.zeros((len(R), self.model.size + 1))
            block[:, at], block[:, -1] = wk * R[:, :-1], wk * R[:, -1]
            rows.append(block)
        R = _triangle(np.asfortranarray(np.vstack(rows)))
        return R[:, :-1], R[:, -1]

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """|Y_k x - tau_k| per joint (nv,) [N m]."""
        return np.array(
            [np.linalg.norm(R[:, :-1] @ x[at] - R[:, -1]) for at, R in zip(self.model.active, self.factors)]
        )

    @property
    def norms(self) -> np.ndarray:
        """|tau_k| per joint (nv,) [N m]."""
        return np.array([np.linalg.norm(R[:, -1]) for R in self.factors])

    def rms(self, x: np.ndarray) -> np.ndarray:
        """Root mean square residual per joint (nv,) [N m]."""
        return self.residuals(x) / np.sqrt(np.maximum(self.counts, 1))

    def relative_error(self, x: np.ndarray) -> float:
        """|tau - Y x| / |tau| over all joints and samples."""
        return float(np.linalg.norm(self.residuals(x)) / np.linalg.norm(self.norms))

    def __add__(self, other: Compressed) -> Compressed:
        """Of both logs together."""
        factors = tuple(_triangle(np.asfortranarray(np.vstack(pair))) for pair in zip(self.factors, other.factors))
        return Compressed(self.model, factors, self.counts + other.counts)


def _triangle(A: np.ndarray) -> np.ndarray:
    """R of A = Q R; A (Fortran order) is overwritten."""
    if len(A) == 0:
        return A.copy()
    from scipy.linalg import get_lapack_funcs

    geqrf: Any = get_lapack_funcs("geqrf", (A,))
    factored, _, _, info = geqrf(A, overwrite_a=1)
    assert info == 0
    return np.triu(factored[: A.shape[1]])


def _pieces(stretch: slice, size: int) -> Iterator[slice]:
    for start in range(stretch.start, stretch.stop, size):
        yield slice(start, min(start + size, stretch.stop))


def _sign(v: np.ndarray, smoothing: float) -> np.ndarray:
    return np.sign(v) if smoothing == 0.0 else np.tanh(v / smoothing)


def _term(coefficient: float, name: str) -> str:
    return name if coefficient == 1.0 else f"{coefficient:g} {name}"


def _chosen(kind: str, chosen, n: int, driven: np.ndarray) -> np.ndarray:
    if isinstance(chosen, (bool, np.bool_)):
        return driven if chosen else driven[:0]
    at = np.array(list(chosen))
    if at.size and (at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= n):
        raise ArgumentError(f"{kind}: expected actuator numbers from 0 to {n - 1}, got {list(chosen)}")
    return at.astype(int)
