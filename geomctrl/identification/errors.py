"""What can go wrong in an identification, beside bad arguments."""

from geomctrl.errors import GeomctrlError


class DataError(GeomctrlError):
    """A log that can not be used as it is: times, joint counts, units, empty parts. The message says what to do."""


class ExcitationError(GeomctrlError):
    """A log that does not tell the asked-for parameters apart; the message names them."""


class SolverError(GeomctrlError):
    """An optimisation without a solution: infeasible bounds or a solver that gave up. The message says what to try.

    `status`: the solver's word for how it ended ("infeasible", "user_limit", ...), "failed" where it has none left to
    say one, None where it was not asked.
    """

    def __init__(self, message: str, status: str | None = None):
        super().__init__(message)
        self.status = status
