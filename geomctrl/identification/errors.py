"""Exceptions of identification, besides those for invalid arguments."""

from geomctrl.errors import GeomctrlError


class DataError(GeomctrlError):
    """A log that can not be used as it is: times, joint counts, units, empty parts. The message says what to do."""


class ShortLogError(DataError):
    """A log, or a joint's part of it, is too short for a choice: callers then use fewer parts or a default."""


class ExcitationError(GeomctrlError):
    """A log whose motion does not determine the requested parameters; the message names them."""


class SolverError(GeomctrlError):
    """An optimisation without a solution: infeasible bounds, or a solver that failed. The message says what to try.

    `status`: the solver's status ("infeasible", "user_limit", ...), "failed" if it returned none, None if it was not
    called.
    """

    def __init__(self, message: str, status: str | None = None):
        super().__init__(message)
        self.status = status
