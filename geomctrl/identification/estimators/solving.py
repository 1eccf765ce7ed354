"""Where other libraries' optimisers run: whatever they throw comes out as one error that names them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from geomctrl.errors import GeomctrlError
from geomctrl.identification.errors import SolverError


@contextmanager
def solving(solver: str, remedy: str, status: Callable[[], str | None] = lambda: None) -> Iterator[None]:
    """In `with`, what `solver` throws is raised as SolverError, with its status and what to try.

    Overflows on its way are silent, as its status tells how it ended. A panic of a solver written in Rust is no
    Exception; Ctrl-C and the other ends of a process are not the solver's, and pass.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except GeomctrlError:
        raise
    except BaseException as error:
        if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        ended = status() or "failed"
        raise SolverError(
            f"{solver} failed (status {ended}): {type(error).__name__}: {error}; try {remedy}", status=ended
        ) from error
