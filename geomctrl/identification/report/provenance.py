"""Provenance of an identification: names and checksums of the logs, settings, the call or command to repeat it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from hashlib import file_digest, sha256
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.identification.logs import Dataset, Reading
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.identification.settings import Filtering, Settings, Validation
from geomctrl.robot import Robot

COMPARED = (bool, int, float, str, tuple, Reading, Filtering, Validation)  # by value; all else by identity


@dataclass(frozen=True)
class Checksum:
    """A log's name and SHA-256. `of`: the source of the bytes: a file, a folder, or arrays in memory."""

    name: str
    sha256: str
    of: str


@dataclass(frozen=True)
class Provenance:
    """logs: for training, then for the test if that was another log; `call`: in Python; `command`: as typed, if the
    command line was used; versions: of geomctrl and of the numerical libraries."""

    logs: tuple[Checksum, ...]
    call: str
    command: str | None
    versions: tuple[tuple[str, str], ...]


def provenance(robot: Robot, log: Dataset | str | Path, settings: Settings, model: RegressorModel | None) -> Provenance:
    """Of a successful call of `identify`: logs are read once more for their checksums."""
    test = settings.validation.test
    logs = [log, *([test] if isinstance(test, (Dataset, str, os.PathLike)) else [])]
    changes = {} if model is None else {"model": model}
    changes |= {
        f.name: x for f in fields(settings) if not _is_default(settings, f.name, x := getattr(settings, f.name))
    }
    arguments = ", ".join(["robot", _words(log), *(f"{k}={_words(v)}" for k, v in changes.items())])
    call = f"identify({arguments})  # robot: {robot.name!r}"
    packages = ("geomctrl", "numpy", "scipy", "cvxpy", "clarabel")
    versions = tuple((package, installed_version(package)) for package in packages)
    return Provenance(tuple(map(checksum, logs)), call, None, versions)


def checksum(log: Dataset | str | Path) -> Checksum:
    """Checksum of a file; of a folder's files with their names, in order; or of a Dataset's arrays t, q, v, a, tau."""
    if isinstance(log, Dataset):
        total = sha256()
        for name in ("t", "q", "v", "a", "tau"):
            if (x := getattr(log, name)) is not None:
                total.update(name.encode() + np.ascontiguousarray(x, "<f8").tobytes())
        return Checksum(log.label, total.hexdigest(), "the arrays t, q, v, a, tau in memory")
    path = Path(log)
    if path.is_file():
        return Checksum(path.name, _digest(path), "the file")
    total = sha256()
    files = sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        total.update(f"{_digest(file)}  {file.relative_to(path).as_posix()}\n".encode())
    return Checksum(path.name, total.hexdigest(), f"sha256sum's lines of the folder's {len(files)} files, in order")


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def installed_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _words(x: Any) -> str:
    """Python source of x, without defaults; arrays as lists, other objects as placeholders."""
    if isinstance(x, RegressorModel):
        return f"RegressorModel(robot{''.join(f', {k}={_words(v)}' for k, v in x.options.items())})"
    if isinstance(x, os.PathLike):
        return repr(os.fspath(x))
    if is_dataclass(x) and not isinstance(x, (type, Dataset)):
        values = {f.name: getattr(x, f.name) for f in fields(x) if f.init}
        changed = {name: v for name, v in values.items() if not _is_default(x, name, v)}
        return f"{type(x).__name__}({', '.join(f'{k}={_words(v)}' for k, v in changed.items())})"
    if isinstance(x, np.ndarray):
        return repr(x.tolist()) if x.size <= 100 else f"<{' x '.join(map(str, x.shape))} numbers>"
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{k!r}: {_words(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        inner = ", ".join(map(_words, x))
        return f"[{inner}]" if isinstance(x, list) else f"({inner}{',' * (len(x) == 1)})"
    return x.__qualname__ if callable(x) and hasattr(x, "__qualname__") else repr(x)


def _is_default(x: Any, name: str, value: Any) -> bool:
    (field,) = (f for f in fields(x) if f.name == name)
    default = field.default if field.default is not MISSING else None
    if field.default_factory is not MISSING:
        default = field.default_factory()
    return value is default or (isinstance(value, COMPARED) and value == default)
