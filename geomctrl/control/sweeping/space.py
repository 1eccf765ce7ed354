"""The parameter space of a sweep: named parameters over named dimensions, with numbered points."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import has_attributes, shown
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.checks import check_text

KINDS = "fiubU"  # numpy kinds: numbers, booleans, text
UNWRITABLE_IN_UTF8 = re.compile("[\ud800-\udfff]")


class Point(Mapping[str, Any]):
    """One point of a space, the argument of `make`: parameters by name, as Python numbers and strings.

    number: the number of the run, for `replay`. rng: a numpy Generator for this point, based on Philox with the key
    (seed, number), so that its numbers do not depend on other runs or on where it runs.
    """

    def __init__(self, number: int, values: Mapping[str, Any], seed: int):
        self.number, self.seed, self._values = number, seed, dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self):
        return f"<Point {self.number}: {', '.join(f'{name} = {x!r}' for name, x in self.items())}>"

    @cached_property
    def rng(self) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=np.array([self.seed, self.number], np.uint64)))


def points(first: int, rows: Mapping[str, np.ndarray], seed: int) -> Iterator[Point]:
    """The points of consecutive runs, starting at number `first`; rows: values of each parameter, one per run."""
    columns = [column.tolist() for column in rows.values()]
    for k, values in enumerate(zip(*columns)):
        yield Point(first + k, dict(zip(rows, values)), seed)


class Parameter(NamedTuple):
    """Values of one parameter over some of the dimensions; attrs are those of xarray ("units")."""

    dims: tuple[str, ...]
    values: np.ndarray
    attrs: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Space:
    """Parameters by name, and dimensions by size. Points are numbered with the last dimension fastest."""

    sizes: dict[str, int]
    parameters: dict[str, Parameter]

    def __len__(self) -> int:
        return math.prod(self.sizes.values())

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.sizes.values())

    def rows(self, first: int, stop: int) -> dict[str, np.ndarray]:
        """Values of each parameter at the points from `first` to before `stop`."""
        numbers = np.arange(first, stop)
        indices = dict(zip(self.sizes, np.unravel_index(numbers, self.shape))) if self.sizes else {}
        out = {}
        for name, parameter in self.parameters.items():
            values = parameter.values[tuple(indices[dim] for dim in parameter.dims)]
            out[name] = np.broadcast_to(values, numbers.shape)
        return out


def checked_space(space: Any) -> Space:
    """The Space for a dict or an xarray.Dataset.

    An entry of a dict is a list of values (a dimension with the name of the parameter), a single value, or, as in
    xarray, (dimensions, values) or (dimensions, values, attrs). Raises ArgumentError, naming the parameter, for
    anything else, for nan and infinity, and for a dimension with two lengths.
    """
    if has_attributes(space, "data_vars", "variables"):  # an xarray.Dataset, without importing xarray
        entries = {name: (x.dims, x.values, x.attrs) for name, x in space.variables.items()}
        sizes = {_name(dim): int(n) for dim, n in space.sizes.items()}
    elif isinstance(space, Mapping):
        entries, sizes = {name: _spread(name, entry) for name, entry in space.items()}, {}
    else:
        raise ArgumentError(f"space: expected a dict or an xarray.Dataset, got {shown(space)}")
    if not entries:
        raise ArgumentError("space: expected at least one parameter, got none")
    parameters = {_name(name): _parameter(name, *entry) for name, entry in entries.items()}
    for name, parameter in parameters.items():
        for dim, n in zip(parameter.dims, parameter.values.shape):
            if sizes.setdefault(dim, n) != n:
                raise ArgumentError(
                    f"space: {name!r}: expected {sizes[dim]} values along {dim!r}, as others have, got {n}"
                )
    for name, parameter in parameters.items():
        if name in sizes and parameter.dims != (name,):
            raise ArgumentError(f"space: {name!r} is both a dimension and a parameter along {parameter.dims}")
    return Space(sizes, parameters)


def _name(name: Hashable) -> str:
    if not isinstance(name, str) or not name or "/" in name or name.startswith(".") or name == "zarr.json":
        raise ArgumentError(f"space: expected names that are text, without '/', got {name!r}")
    check_text("space", name)
    return name


def _spread(name: Hashable, entry: Any) -> tuple[Any, ...]:
    """An entry of a dict as (dimensions, values, attrs)."""
    if isinstance(entry, tuple) and entry and _are_dims(entry[0]):
        if len(entry) not in (2, 3):
            raise ArgumentError(f"space: {name!r}: expected (dimensions, values) or with attrs, got {shown(entry)}")
        return (*entry, {}) if len(entry) == 2 else entry
    return (() if np.isscalar(entry) or np.ndim(_array(name, entry)) == 0 else (name,)), entry, {}


def _are_dims(x: Any) -> bool:
    """Whether the first item of a tuple names dimensions and the second is values: ("a", [..]), not ("a", "b")."""
    return isinstance(x, str) or (isinstance(x, tuple) and all(isinstance(dim, str) for dim in x))


def _parameter(name: Hashable, dims: Any, values: Any, attrs: Any) -> Parameter:
    dims = tuple(_name(dim) for dim in ((dims,) if isinstance(dims, str) else dims))
    values = _array(name, values)
    if values.ndim != len(dims):
        raise ArgumentError(f"space: {name!r}: expected values along {dims}, got an array of shape {values.shape}")
    if values.size == 0:
        raise ArgumentError(f"space: {name!r}: expected at least one value, got none")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        where = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
        raise ArgumentError(f"space: {name!r}: expected finite numbers, got {values[where]} at index {list(where)}")
    return Parameter(dims, values.astype(values.dtype.newbyteorder("="), copy=False), _attributes(name, attrs))


def _attributes(name: Hashable, attrs: Any) -> dict[str, Any]:
    """Attributes of a parameter, with the arrays and numbers of numpy as lists and Python's numbers."""
    try:
        if keys := [key for key in attrs if not isinstance(key, str)]:
            raise TypeError(f"the key {shown(keys[0])} is no string")
        return json.loads(json.dumps(dict(attrs), default=_json_value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"space: {name!r}: expected attributes that JSON can represent: {error}") from None


def _json_value(x: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        return x.tolist()
    raise TypeError(f"got {shown(x)}")


def _array(name: Hashable, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except Exception:  # rows of different lengths, or an object whose own conversion fails
        raise ArgumentError(f"space: {name!r}: expected values of one length, got {shown(values)}") from None
    if array.dtype.kind in "OT" and all(isinstance(x, str) for x in array.flat):
        array = array.astype(str)
    if array.dtype.kind not in KINDS or (array.dtype.itemsize > 8 and array.dtype.kind == "f"):
        raise ArgumentError(f"space: {name!r}: expected numbers, strings or booleans, got {shown(values)}")
    listed = array.dtype.kind == "U" and not isinstance(values, (str, np.ndarray))
    if listed and not all(isinstance(x, str) for x in np.asarray(values, dtype=object).flat):  # numpy converts numbers
        raise ArgumentError(f"space: {name!r}: expected values of one kind, got {shown(values)}")
    if array.dtype.kind == "U" and any(UNWRITABLE_IN_UTF8.search(x) for x in array.flat):
        raise ArgumentError(f"space: {name!r}: expected text, got lone surrogates: {shown(values)}")
    return array
