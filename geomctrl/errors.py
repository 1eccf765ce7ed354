"""The exceptions that geomctrl raises: one small tree, every class also a ValueError.

A message names the argument, what was expected and what was passed.
"""

__all__ = [
    "ArgumentError",
    "GeomctrlError",
    "InertiaError",
    "IntegrationError",
    "ModelError",
    "NameNotFoundError",
    "SimulationError",
    "SweepError",
    "WriteError",
]


class GeomctrlError(ValueError):
    """Invalid input or a violated promise; the base class of every exception that this package raises on purpose."""


class ArgumentError(GeomctrlError):
    """An argument has the wrong shape, type or value (nan and infinity included)."""


class NameNotFoundError(GeomctrlError):
    """There is no frame, joint, body, robot or controller with this name; the message lists similar names."""


class ModelError(GeomctrlError):
    """A robot that can not exist: a loop, a missing parent, a zero screw, an unknown kind of joint, a singular mass
    matrix.
    """


class InertiaError(ModelError):
    """Inertial parameters that no rigid body can have; the message names the violated inequality and the body."""


class SimulationError(GeomctrlError):
    """A simulation that can not continue (a state is not finite, or a violation with strict). `run` holds the
    results so far.
    """

    def __init__(self, message, run=None):
        super().__init__(message)
        self.run = run


class IntegrationError(GeomctrlError):
    """A step that can not be made (field not finite, step too long). `solution` holds the results so far."""

    def __init__(self, message, solution=None):
        super().__init__(message)
        self.solution = solution


class SweepError(GeomctrlError):
    """A sweep that can not continue (workers lost, a block fails, a full disk). Its store keeps the completed runs."""


class WriteError(GeomctrlError, OSError):
    """Files of a result can not be written; the message says which and why. `written`: paths of the others."""

    def __init__(self, message, written=()):
        super().__init__(message)
        self.written = list(written)

    __str__ = Exception.__str__  # that of OSError leaves out the message
