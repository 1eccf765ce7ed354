"""`RegressorModel`: joint torques as a linear function of inertia, friction, rotors, springs and user-defined columns.

tau = Y(q, v, a) x + B a. The regressor of a log is never stored as a whole: it is computed in chunks, and for each
joint only a triangular factor is kept, see `compressed`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, exactly, instance, listed, number, without_overflow_warnings
from geomctrl.arguments import function as callable_
from geomctrl.control.friction.model import FrictionModel
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError
from geomctrl.identification.logs import Dataset, filters
from geomctrl.identification.logs.dataset import check_robot
from geomctrl.robot import Robot
from geomctrl.terms.base_parameters import SYMBOLS, BaseParameters, combinations, exact_base_parameters, reduce_columns
from geomctrl.terms.regressor import stacked_regressor, subtree_bodies

from .columns import (
    AT_ACTUATORS,
    AT_SPRINGS,
    INERTIAL,
    Column,
    Curve,
    actuator_names,
    check_curves,
    chosen_actuators,
    coulomb,
    friction_columns,
    in_order,
    spring_joints,
    transmission_matrix,
)
from .compressed import Compressed, Factors

KINDS = (*INERTIAL, *AT_ACTUATORS, *AT_SPRINGS, "curve", "user")
CHUNK = 1008  # samples: a chunk fits in the cache, and the size is not a power of two, which would cause conflicts


class RegressorModel:
    """A linear model of a robot's joint torques: tau = Y(q, v, a) x + known_armature a.

    Parameters
    ----------
    robot : Robot
        Its geometry and gravity define the inertial columns.
    viscous, coulomb, offset, rotor : bool or sequence of int
        Viscous friction [N m s/rad], Coulomb friction [N m], torque offset [N m], rotor inertia after the gears [kg
        m^2]: True for all actuators (not those of a free base), False for none, or actuator numbers.
    springs : sequence of str or int
        Joints with a spring: stiffness [N m/rad] and torque of the neutral position [N m].
    curves : sequence of Curve
        Friction curves, each with one amplitude [N m].
    columns : sequence of Column or FrictionModel
        User-defined columns. A friction model that is linear in its parameters has one for each of them, friction1,
        friction2, ..., in the order of its `parameters`, whose values are the prior; use it with `viscous=False,
        coulomb=False`. `fit_friction` is for other friction models.
    smoothing : float
        Speed [rad/s] at which tanh(v / smoothing) replaces sign(v) in Coulomb friction; 0 is the sign.
    transmission : array_like, shape (na, nv), optional
        Actuator velocities for each joint velocity, if friction and rotors act on coupled joints. It may have more rows
        than joints. Default: one actuator for each joint.

    Notes
    -----
    x contains, in this order: ten inertial parameters for each body; viscous friction, Coulomb friction, offset and
    rotor inertia of the actuators; springs; curves; columns.

    `by_kind` has the numbers in x of the parameters of each kind, for example "viscous".

    `known_armature` (nv,) is the robot's armature at joints without a rotor column; it is not estimated. At joints with
    a rotor column it is 0, because the column represents the whole inertia and the robot's armature is its prior.

    Examples
    --------
    >>> import geomctrl as gc
    >>> from geomctrl.identification import RegressorModel
    >>> model = RegressorModel(gc.models.two_link(), rotor=True)
    >>> model.regressor([[0.1, 0.2]], [[1.0, 0.5]], [[0.0, 2.0]]).shape
    (1, 2, 28)
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
        columns: Sequence[Column | FrictionModel] = (),
        transmission: ArrayLike | None = None,
        smoothing: float = 0.01,
    ):
        instance("robot", robot, Robot, "a geomctrl.Robot")
        smoothing = number("smoothing", smoothing, "a speed >= 0", lambda x: x >= 0.0)
        chosen, curves = listed("columns", columns), listed("curves", curves)
        users: list[Column] = []
        numbers = itertools.count(1)
        for column in chosen:
            instance("columns", column, (Column, FrictionModel), "Columns or friction models")
            users += friction_columns(robot, column, numbers) if isinstance(column, FrictionModel) else [column]
        self.robot, self.columns, self.curves = robot, tuple(users), tuple(curves)
        self.transmission, self.smoothing = transmission_matrix(transmission, robot.nv), smoothing
        na = len(self.transmission)
        driven = np.flatnonzero([j.kind != "free" for j in robot.coupling.independent_joints for _ in range(j.dof)])
        driven = driven if transmission is None else np.arange(na)
        asked = {"viscous": viscous, "coulomb": coulomb, "offset": offset, "rotor": rotor}
        self.acts = {k: chosen_actuators(k, chosen, na, driven) for k, chosen in asked.items()}
        unknown = self.transmission[self.acts["rotor"]].any(axis=0)
        self.known_armature = np.where(unknown, 0.0, robot.armature)
        self.springs = spring_joints(robot, springs)
        check_curves(self.curves, na)
        actuators = actuator_names(robot, None if transmission is None else self.transmission)
        ordered = in_order(robot, self.acts, actuators, self.springs, self.curves, self.columns)
        self.names, self.kinds, self.owners = (list(x) for x in zip(*ordered))
        self.size, self.inertial = len(self.names), 10 * robot.nbodies
        kinds = np.array(self.kinds)
        self.by_kind = {kind: np.flatnonzero(kinds == kind) for kind in KINDS}
        self.active = self._active()
        self._options = {
            **asked, "springs": springs, "curves": curves, "columns": columns, "transmission": transmission,
            "smoothing": smoothing,
        }  # fmt: skip

    @property
    def options(self) -> dict[str, Any]:
        """The constructor arguments, other than the robot, that differ from their defaults."""
        usual = {name: p.default for name, p in signature(RegressorModel).parameters.items()}
        return {name: x for name, x in self._options.items() if x is not usual[name] and not _same(x, usual[name])}

    def _with_options(self, **changes: Any) -> RegressorModel:
        """The same model with these options changed."""
        return RegressorModel(self.robot, **{**self._options, **changes})

    @property
    def prior(self) -> np.ndarray:
        """Prior parameters (size,): the robot's inertial parameters, damping, friction and armature; `initial` of
        columns; zeros.
        """
        x = np.zeros(self.size)
        x[: self.inertial] = self.robot.parameters.ravel()
        if np.array_equal(self.transmission, np.eye(self.robot.nv)):
            x[self.by_kind["viscous"]] = self.robot.damping[self.acts["viscous"]]
            x[self.by_kind["coulomb"]] = self.robot.friction[self.acts["coulomb"]]
            x[self.by_kind["rotor"]] = self.robot.armature[self.acts["rotor"]]
        x[self.by_kind["user"]] = [c.initial for c in self.columns]
        return x

    @property
    def positive(self) -> np.ndarray:
        """Numbers of the parameters that can not be negative: friction, rotors, stiffnesses, some columns."""
        own = dict(zip(self.by_kind["user"].tolist(), (c.positive for c in self.columns)))
        signed = ("viscous", "coulomb", "rotor", "stiffness", "curve")
        return np.array([i for i, kind in enumerate(self.kinds) if kind in signed or own.get(i)], dtype=int)

    @cached_property
    def base(self) -> BaseParameters:
        """The structurally independent combinations of all `size` parameters, over every motion and not only that of
        one log.

        Inertial parameters: by the exact recursion. Which of the other columns they determine (for example a rotor on
        the first joint): by pivoted QR over random states.
        """
        robot, rng = self.robot, np.random.default_rng(0)
        exact = exact_base_parameters(robot)
        n = 2 * self.size // robot.nv + 40
        q = np.array([robot.random_configuration(rng) for _ in range(n)])
        v, a = rng.normal(size=(2, n, robot.nv))
        others = np.arange(self.inertial, self.size)
        columns = np.concatenate((exact.columns, others))
        joined = np.zeros((len(columns), self.size))
        joined[: exact.size, : self.inertial] = exact.projection
        joined[np.arange(exact.size, len(columns)), others] = 1.0
        if len(others):
            again = reduce_columns(self.regressor(q, v, a)[..., columns].reshape(-1, len(columns)))
            joined, columns = again.projection @ joined, columns[again.columns]
        return BaseParameters(columns, joined)

    @property
    def base_names(self) -> tuple[str, ...]:
        """Every base parameter written out as a combination of parameters."""
        symbols = [s.format(i + 1) for i in range(self.robot.nbodies) for s in SYMBOLS] + self.names[self.inertial :]
        return combinations(self.base.projection, self.base.columns, symbols)

    def _active(self) -> list[np.ndarray]:
        """For each joint torque, the parameters that it can depend on."""
        active = []
        for k, below in enumerate(subtree_bodies(self.robot)):
            columns = [np.arange(10 * i, 10 * i + 10) for i in below]
            own = [self.by_kind[kind][self.transmission[acts, k] != 0.0] for kind, acts in self.acts.items()]
            if k in self.springs:
                own += [self.by_kind[kind][[self.springs.index(k)]] for kind in ("stiffness", "preload")]
            own.append(self.by_kind["curve"][[self.transmission[c.actuator, k] != 0.0 for c in self.curves]])
            active.append(np.concatenate([*columns, *own, self.by_kind["user"]]).astype(int))
        return active

    # --- the regressor -----------------------------------------------------------------------------------------

    @without_overflow_warnings
    def regressor(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return the regressor at N states.

        Parameters
        ----------
        q : ndarray, shape (N, nq)
            Configurations.
        v, a : ndarray, shape (N, nv)
            Velocities and accelerations.

        Returns
        -------
        ndarray, shape (N, nv, size)
            Y with tau = Y x for the parameters x (size,), except for torques of known rotors.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> arm = gc.models.two_link()
        >>> model = gc.identification.RegressorModel(arm, viscous=False, coulomb=False, offset=False)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> bool(np.allclose(model.regressor(q, v, a) @ model.prior, arm.inverse_dynamics(q, v, a)))
        True
        """
        q, v, a = self._states(q, v, a)
        Y = np.zeros((len(q), self.robot.nv, self.size))
        Y[..., : self.inertial] = self.robot.regressor(q, v, a)
        for k, (numbers, rows) in enumerate(zip(self.active, self._own_rows(q, v, a))):
            Y[:, k, numbers[len(numbers) - len(rows) :]] = rows.T
        return Y

    def _own_columns(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
        """For each joint torque its columns after the inertial ones as rows (., N), the last of `active`."""
        return self._own_rows(*self._states(q, v, a))

    def _blocks(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
        """The regressor without its zeros: for each joint torque its inertial, then its other columns, (N, .) each."""
        q, v, a = self._states(q, v, a)
        own = self._own_rows(q, v, a)
        return [x.T for pair in zip(stacked_regressor(self.robot, q, v, a), own) for x in pair]

    def _states(self, q, v, a) -> list[np.ndarray]:
        """q (N, nq), v, a (N, nv), checked."""
        arrays = []
        for name, x, n in (("q", q, self.robot.nq), ("v", v, self.robot.nv), ("a", a, self.robot.nv)):
            arrays.append(checked(name, x, (n,)))
            if arrays[-1].ndim != 2 or len(arrays[-1]) != len(arrays[0]):
                raise ArgumentError(f"{name}: expected shape (N, {n}), N as of q, got {arrays[-1].shape}")
        return arrays

    def _own_rows(self, q, v, a) -> list[np.ndarray]:
        """For each joint torque, the columns after the inertial ones as rows (., N), in the order of `active`."""
        T = self.transmission
        speed = v @ T.T
        drive = {
            "viscous": speed,
            "coulomb": coulomb(speed, self.smoothing),
            "offset": np.ones_like(speed),
            "rotor": a @ T.T,
        }
        curves = [c._torque(speed[:, c.actuator], self.smoothing) for c in self.curves]
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

    @without_overflow_warnings
    def torque(self, x: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return the joint torques at N states, computed in chunks.

        Parameters
        ----------
        x : ndarray, shape (size,)
            Parameters.
        q : ndarray, shape (N, nq)
            Configurations.
        v, a : ndarray, shape (N, nv)
            Velocities and accelerations.

        Returns
        -------
        ndarray, shape (N, nv)
            Y(q, v, a) x + known_armature a [N m or N].

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> model = gc.identification.RegressorModel(robot, viscous=False, coulomb=False, offset=False)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 10, 2))
        >>> x = robot.parameters.ravel()
        >>> bool(np.allclose(model.torque(x, q, v, a), robot.inverse_dynamics(q, v, a)))
        True
        """
        x, (q, v, a) = exactly("x", x, (self.size,)), self._states(q, v, a)
        pieces = _pieces(slice(0, len(q)), CHUNK)
        return np.concatenate(
            [self._times(self._blocks(q[s], v[s], a[s]), x) + a[s] * self.known_armature for s in pieces]
        )

    def _times(self, blocks: Sequence[np.ndarray], x: np.ndarray) -> np.ndarray:
        """Y x (N, nv) from `_blocks`."""
        out = []
        for numbers, inertial, own in zip(self.active, blocks[0::2], blocks[1::2]):
            n = inertial.shape[1]
            out.append(inertial @ x[numbers[:n]] + own @ x[numbers[n:]])
        return np.stack(out, -1)

    # --- a log -------------------------------------------------------------------------------------------------

    def _check(self, data: Dataset) -> None:
        """Raise DataError unless the log belongs to this robot and is filtered."""
        instance("data", data, Dataset, "a Dataset")
        check_robot(data, self.robot, units=False)
        if data.v is None or data.a is None:
            raise DataError(
                f"{data.label}: velocities and accelerations are missing: use data.filtered(cutoff=...) first"
            )

    def _stream(
        self,
        data: Dataset,
        function: Callable[[np.ndarray, np.ndarray, np.ndarray], Sequence[np.ndarray]],
    ) -> Iterator[tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]]:
        """(arrays (N, ...) of a function(q, v, a), tau, mask, sample numbers) of a log, a chunk of samples at a time.

        They are filtered and thinned as `data` specifies; the torque of the known armature is subtracted from tau.
        """
        self._check(data)
        assert data.v is not None
        assert data.a is not None
        reach = 0 if data.band is None else 3 * filters.settling(data.rate, data.band[0])  # forgets to 1e-9
        for stretch in data.stretches:
            for piece in _pieces(stretch, max(CHUNK, 2 * reach)):
                wide = slice(max(stretch.start, piece.start - reach), min(stretch.stop, piece.stop + reach))
                q, v, a = (np.array(x[wide]) for x in (data.q, data.v, data.a))
                tau, mask, values = data.tau[wide] - a * self.known_armature, data.used[wide], function(q, v, a)
                if data.band is not None:
                    band = data.band
                    values = [filters.low_pass(x, data.rate, *band) if x.size else x for x in values]
                    tau = filters.low_pass(tau, data.rate, *band)
                offset = -(piece.start - stretch.start) % data.stride
                inner = slice(piece.start - wide.start + offset, piece.stop - wide.start, data.stride)
                yield [x[inner] for x in values], tau[inner], mask[inner], np.arange(wide.start, wide.stop)[inner]

    def _rows(self, data: Dataset) -> np.ndarray:
        """The sample numbers that `_stream` yields."""
        return np.concatenate([np.arange(s.start, s.stop, data.stride) for s in data.stretches])

    def _predict(self, x: np.ndarray, data: Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return (t, measured tau, predicted tau, mask) at the rows that estimators use: filtered and thinned."""
        x = exactly("x", x, (self.size,))
        parts = [
            (data.t[rows], tau + armature_torques, self._times(Y, x) + armature_torques, mask)
            for (*Y, armature_torques), tau, mask, rows in self._stream(
                data, lambda q, v, a: [*self._blocks(q, v, a), a * self.known_armature]
            )
        ]
        t, tau, predicted, mask = (np.concatenate(p) for p in zip(*parts))
        return t, tau, predicted, mask

    def compress(self, data: Dataset, progress: Callable[[float], None] | None = None) -> Compressed:
        """Compute the triangular factors of a log, in one pass with constant memory.

        Parameters
        ----------
        data : Dataset
            A filtered log.
        progress : callable, optional
            Called with the fraction done.

        Returns
        -------
        Compressed
            Estimators accept it instead of the log.

        Raises
        ------
        DataError
            If the log has no usable rows.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> from geomctrl.identification import Dataset, RegressorModel, fit
        >>> arm, rng = gc.models.two_link(), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 200, 2))
        >>> log = Dataset(np.arange(200) / 100.0, q, arm.inverse_dynamics(q, v, a), v=v, a=a)
        >>> model = RegressorModel(arm)
        >>> bool(np.allclose(fit(model, model.compress(log)).values, fit(model, log).values))
        True
        """
        if progress is not None:
            callable_("progress", progress, "of the fraction done", 1)
        factors, done = Factors(self), 0
        for blocks, tau, mask, _ in self._stream(data, self._blocks):
            factors.add(blocks, tau, mask)
            done += len(tau)
            if progress is not None:
                progress(min(1.0, done * data.stride / len(data)))
        compressed = factors.result()
        if not compressed.counts.any():
            raise DataError(f"{data.label}: no usable torque sample is left (all are masked)")
        if not compressed.norms.any():
            raise DataError(f"{data.label}: tau: every usable torque is zero")
        return compressed


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return list(x) == list(y)
    return not isinstance(x, np.ndarray) and x == y


def _pieces(stretch: slice, size: int) -> Iterator[slice]:
    for start in range(stretch.start, stretch.stop, size):
        yield slice(start, min(start + size, stretch.stop))
