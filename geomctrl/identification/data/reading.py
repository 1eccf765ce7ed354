"""Log files and arrays by name to the fields of a `Dataset`: which columns, in which units, from motors to joints."""

from __future__ import annotations

import csv
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import checked, flag, instance, number
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

MOST_COMMENTS = 1000  # lines before a table's header
DEGREE, RPM = np.pi / 180.0, 2.0 * np.pi / 60.0
UNITS = {
    "t": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "q": {"rad": 1.0, "deg": DEGREE, "rev": 2.0 * np.pi, "m": 1.0, "mm": 1e-3},
    "v": {"rad/s": 1.0, "deg/s": DEGREE, "rpm": RPM, "m/s": 1.0, "mm/s": 1e-3},
    "a": {"rad/s^2": 1.0, "deg/s^2": DEGREE, "m/s^2": 1.0, "mm/s^2": 1e-3},
    "tau": {"N m": 1.0, "Nm": 1.0, "N": 1.0, "mN m": 1e-3, "N mm": 1e-3, "kN m": 1e3, "kN": 1e3},
}
ANGULAR, LINEAR = ("deg", "rev", "deg/s", "rpm", "deg/s^2"), ("mm", "mm/s", "mm/s^2")  # not SI, and telling
ALIASES = {
    "t": ("t", "time", "timestamp", "stamp"),
    "q": ("q", "pos", "position", "positions", "joint_position", "joint_positions", "angle"),
    "v": ("v", "qd", "dq", "qdot", "vel", "velocity", "velocities", "joint_velocity", "joint_velocities"),
    "a": ("a", "qdd", "ddq", "qddot", "acc", "acceleration", "accelerations"),
    "tau": ("tau", "torque", "torques", "effort", "efforts", "joint_torque", "joint_torques"),
}


@dataclass(frozen=True, eq=False)
class JointMapping:
    """Motor to joint coordinates: q = matrix^-1 q_motor + offset, v = matrix^-1 v_motor, tau = matrix^T tau_motor.

    `matrix` (nv, nv) holds motor turns per joint turn: gear ratios on its diagonal, couplings beside it; one number a
    joint stands for a diagonal one. The torque map is the one that conserves power. `offset` (nv,) [rad, m] is added to
    joint positions, where the model's zero differs from the log's.
    """

    matrix: Any
    offset: Any = 0.0
    torque_at_motor: bool = True  # False: tau is already at the joints

    def __post_init__(self):
        flag("torque_at_motor", self.torque_at_motor)
        N = real("joint mapping", "matrix", self.matrix)
        N = np.diag(N) if N.ndim == 1 else N
        if N.ndim != 2 or N.shape[0] != N.shape[1] or not N.size or not np.isfinite(N).all():
            raise ArgumentError(f"matrix: expected (nv,) ratios or a finite (nv, nv) matrix, got shape {N.shape}")
        if np.linalg.cond(N) > 1e10:
            raise ArgumentError("matrix: expected an invertible matrix: some motors do not determine the joints")
        offset = real("joint mapping", "offset", self.offset)
        if offset.shape not in ((), (len(N),)) or not np.isfinite(offset).all():
            raise ArgumentError(f"offset: expected a number or ({len(N)},) finite numbers, got {self.offset!r}")
        object.__setattr__(self, "matrix", N)
        object.__setattr__(self, "offset", np.broadcast_to(offset, len(N)).copy())

    def position(self, q: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.matrix, checked("q", q, (len(self.matrix),)).T).T + self.offset

    def rate(self, v: np.ndarray) -> np.ndarray:
        """Velocities or accelerations."""
        return np.linalg.solve(self.matrix, checked("v", v, (len(self.matrix),)).T).T

    def torque(self, tau: np.ndarray) -> np.ndarray:
        tau = checked("tau", tau, (len(self.matrix),))
        return tau @ self.matrix if self.torque_at_motor else tau


def npz_arrays(path: Path) -> dict[str, np.ndarray]:
    """Every array of an archive. Raises DataError."""
    _require_file(path)
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise DataError(f"log {str(path)!r}: one array without a name: expected an npz archive, or CSV")
            with archive:
                return {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"log {str(path)!r}: not a readable npz archive: {error}; tables end in .csv, .txt or .tsv"
        ) from None


def csv_arrays(path: Path, keys: Mapping[str, str | Sequence[str]]) -> dict[str, np.ndarray]:
    """t, q, v, a, tau, as far as there are columns for them; see `Dataset.from_csv`. Raises DataError."""
    _require_file(path)
    _require_fields("keys", keys)
    header, table = _table(path)
    arrays = {}
    for field, aliases in ALIASES.items():
        wanted = keys.get(field)
        if wanted is not None and not isinstance(wanted, str):
            missing = [w for w in wanted if w not in header]
            if missing:
                raise DataError(f"log {str(path)!r}: {field}: no column {missing[0]!r}; there are {', '.join(header)}")
            at = [header.index(w) for w in wanted]
        else:
            stems = (wanted,) if wanted else aliases
            at = next((c for c in (_numbered(path, header, stem) for stem in stems) if c), [])
            if wanted and not at:
                raise DataError(f"log {str(path)!r}: {field}: no columns {wanted!r}; there are {', '.join(header)}")
        if at:
            arrays[field] = table[:, at[0]] if field == "t" else table[:, at]
    for field in ("q", "tau"):
        if field not in arrays:
            raise DataError(
                f"log {str(path)!r}: no {field}: expected columns {field}1, {field}2, ..., or keys={{{field!r}: ...}}"
                f" (identify: --column {field}=NAME,NAME,... or {field}=axis*_sensor, * for the joint's number);"
                f" there are {', '.join(header)}"
            )
    return arrays


def _table(path: Path) -> tuple[list[str], np.ndarray]:
    """(names, samples (N, columns)); empty cells are nan. Lines with # before the header are comments."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = [line.rstrip("\n") for line in islice(file, MOST_COMMENTS)]
    except ValueError as error:
        raise DataError(f"log {str(path)!r}: not a text file: {error}") from None
    top = 0
    while top + 1 < len(lines) and lines[top].startswith("#") and not _is_numeric(lines[top + 1]):
        top += 1
    first = lines[top] if lines else ""
    if _is_numeric(first):
        raise DataError(
            f"log {str(path)!r}: numbers in the first line: expected a header such as t,q1,q2,tau1,tau2 above them"
        )
    delimiter = next((d for d in ",;\t" if d in first), None)
    header = next(csv.reader([first], delimiter=delimiter), []) if delimiter else first.split()
    header = [h.strip().lstrip("#").strip() for h in header]
    twice = [h for h in header if header.count(h) > 1]
    if twice:
        raise DataError(f"log {str(path)!r}: two columns are called {twice[0]!r}")
    options: dict[str, Any] = {
        "delimiter": delimiter, "ndmin": 2, "quotechar": '"', "skiprows": top + 1, "encoding": "utf-8-sig",
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "input contained no data", said below
        try:
            try:
                table = np.loadtxt(path, **options)
            except ValueError:  # again, four times as slowly, with empty cells for nan
                table = np.loadtxt(path, converters=lambda s: float(s.strip() or "nan"), **options)
        except ValueError as error:
            comma = " (decimal commas? write points)" if delimiter != "," and "," in lines[top + 1] else ""
            raise DataError(f"log {str(path)!r}: below the header: {error}{comma}") from None
    if table.size == 0:
        raise DataError(f"log {str(path)!r}: a header and no samples")
    if table.shape[1] != len(header):
        raise DataError(f"log {str(path)!r}: {len(header)} names in the header, {table.shape[1]} columns below")
    return header, table


def _is_numeric(line: str) -> bool:
    """Whether a line of a table begins with a number."""
    words = line.replace(",", " ").replace(";", " ").split()
    try:
        return bool(words) and np.isfinite(float(words[0].strip('"')))
    except ValueError:
        return False


def fields(
    arrays: Mapping[str, np.ndarray],
    keys: Mapping[str, str],
    units: Mapping[str, str | Sequence[str]],
    mapping: JointMapping | None,
    rate: float | None,
    label: str,
    drop_bad_rows: bool = False,
) -> dict[str, Any]:
    """t, q, v, a, tau in SI units and joint coordinates from arrays by name, and `history`; see `Dataset.from_npz`."""
    _require_fields("keys", keys)
    _require_fields("units", units)
    found = {}
    for field, aliases in ALIASES.items():
        if field in keys and keys[field] not in arrays:
            raise DataError(f"{label}: {field}: no array {keys[field]!r}; there are {', '.join(sorted(arrays))}")
        key = keys.get(field) or next((name for name in aliases if name in arrays), None)
        if key is not None:
            x, unit = real(label, field, arrays[key]), units.get(field)
            found[field] = x if unit is None else x * _factor(field, unit, x.shape)
    for field in ("q", "tau"):
        if field not in found:
            raise DataError(
                f"{label}: no {field}: expected an array called {' or '.join(ALIASES[field][:3])}, or keys="
                f"{{{field!r}: ...}}; there are {', '.join(sorted(arrays))}"
            )
    if "t" in found and rate is not None:
        raise DataError(f"{label}: rate: the log has time stamps of its own; leave the rate out")
    if "t" not in found:
        if rate is None:
            raise DataError(f"{label}: no time stamps: give t, or the sampling rate (rate=..., in Hz)")
        found["t"] = np.arange(np.atleast_1d(found["q"]).shape[0]) / rate
    history = _drop_bad_rows(found) if drop_bad_rows else ()
    if mapping is not None:
        n = len(mapping.matrix)
        for field in ("q", "v", "a", "tau"):
            if field in found and (found[field].ndim != 2 or found[field].shape[1] != n):
                raise DataError(
                    f"{label}: {field}: expected {n} joints as in the joint mapping, got shape {found[field].shape}"
                )
        found["q"] = mapping.position(found["q"])
        for field in ("v", "a"):
            if field in found:
                found[field] = mapping.rate(found[field])
        found["tau"] = mapping.torque(found["tau"])
    for x in found.values():
        x.setflags(write=False)  # nobody else has them: the Dataset need not copy
    return {**found, "history": history}


def _drop_bad_rows(found: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Drops, in place, rows with nan or infinity and those not later than all before; says how many."""
    n = len(found["t"])
    if any(np.ndim(x) == 0 or len(x) != n for x in found.values()):
        return ()  # the Dataset refuses these, and says why
    finite = np.all([np.isfinite(x).reshape(n, -1).all(1) for x in found.values()], axis=0)
    latest = np.maximum.accumulate(np.where(finite, found["t"], -np.inf))
    later = np.concatenate(([True], found["t"][1:] > latest[:-1]))
    keep = finite & later
    if keep.all():
        return ()
    for field, x in found.items():
        found[field] = x[keep]
    bad, early = int((~finite).sum()), int((finite & ~later).sum())
    return (f"rows dropped: {bad} with missing numbers, {early} not later than those before",)


def real(label: str, name: str, value: Any) -> np.ndarray:
    """A copy as floats. Raises DataError for what is no array of real numbers."""
    try:
        return np.array(checked(name, value, (), finite=False))
    except ArgumentError:
        raise DataError(f"{label}: {name}: expected real numbers, got {value!r:.60}") from None


def booleans(name: str, value: Any) -> np.ndarray:
    """As an array of truth values. Raises ArgumentError."""
    try:
        x = np.asarray(value)
    except ValueError:
        x = np.empty(0)
    if x.dtype != bool or np.ma.is_masked(value):
        raise ArgumentError(f"{name}: expected booleans, got {value!r:.60}")
    return x


def check_options(
    keys: Any, units: Any, mapping: Any, rate: Any, drop_bad_rows: Any, names: Any = (), label: Any = None
) -> None:
    """Raise ArgumentError unless these are options of `Dataset.from_npz`."""
    for what, given in (("keys", keys), ("units", units)):
        if given is not None:
            _require_fields(what, instance(what, given, Mapping, "a dict by field"))
    if mapping is not None:
        instance("mapping", mapping, JointMapping, "a JointMapping")
    if rate is not None:
        number("rate", rate, "a positive number of hertz", lambda x: x > 0.0)
    flag("drop_bad_rows", drop_bad_rows)
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(x, str) for x in names):
        raise ArgumentError(f"names: expected one a joint, got {names!r:.60}")
    if label is not None:
        instance("label", label, str, "words")


def _factor(field: str, unit: str | Sequence[str], shape: tuple[int, ...]) -> float | np.ndarray:
    """To SI, for values of this shape; one number a joint for a list of units."""
    if not isinstance(unit, str) and len(unit) != (shape[-1] if len(shape) == 2 else 1):
        raise ArgumentError(f"units: {field}: expected one unit, or one a column of shape {shape}, got {list(unit)}")
    for u in [unit] if isinstance(unit, str) else unit:
        if u not in UNITS[field]:
            raise ArgumentError(f"units: {field}: expected one of {', '.join(UNITS[field])}, got {u!r}")
    if isinstance(unit, str):
        return UNITS[field][unit]
    return np.array([UNITS[field][u] for u in unit])


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"path: log {str(path)!r}: no such file")


def _require_fields(what: str, given: Mapping[str, Any]) -> None:
    for field in given:
        if field not in ALIASES:
            raise ArgumentError(f"{what}: expected {', '.join(ALIASES)}, got {field!r}")


def _numbered(path: Path, header: Sequence[str], stem: str) -> list[int]:
    """Columns called stem1, stem_1, stem[1], ... in the order of their numbers, which `*` in the stem stands for if it
    is not at its end; or the one called stem.
    """
    before, _, after = stem.partition("*")
    found: Iterator[tuple[int, int]] = (
        (int(digits), k)
        for k, h in enumerate(header)
        if h.startswith(before)
        and h.endswith(after)
        and (digits := h[len(before) : len(h) - len(after)].strip("_[](). ")).isdigit()
    )
    numbered = sorted(found)
    if numbered and [n for n, _ in numbered] != list(range(numbered[0][0], numbered[0][0] + len(numbered))):
        names = ", ".join(header[k] for _, k in numbered)
        raise DataError(f"log {str(path)!r}: columns {names}: expected consecutive numbers; name the columns by keys")
    return [k for _, k in numbered] or ([header.index(stem)] if stem in header else [])
