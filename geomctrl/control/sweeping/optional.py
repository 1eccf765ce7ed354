"""The libraries of the extra 'sweep', which are imported when a sweep starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from geomctrl.errors import ArgumentError


@contextmanager
def needed_for(feature: str) -> Iterator[None]:
    """An import in this context that fails says which extra to install."""
    try:
        yield
    except ImportError as error:
        missing = error.name or "a package"
        raise ArgumentError(f"{feature} needs the optional package {missing}: pip install 'geomctrl[sweep]'") from error
