"""The errors geomctrl raises: one small tree, every leaf also a ValueError.

A message names the argument, what was expected and what came.
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
]


class GeomctrlError(ValueError):
    """Bad input or a broken promise; the base class of every error this package raises on purpose."""


class ArgumentError(GeomctrlError):
    """An argument has the wrong shape, type or value (nan and infinity included)."""


class NameNotFoundError(GeomctrlError):
    """A frame, joint, body, robot or controller name that nothing answers to; the message lists near misses."""


class ModelError(GeomctrlError):
    """A robot that can not be: a loop, an orphan, a zero screw, an unknown kind of joint, a singular mass matrix."""


class InertiaError(ModelError):
    """Inertial parameters that no rigid body has; the message says which inequality fails and for which body."""


class SimulationError(GeomctrlError):
    """A run that can not go on (a state that is not finite, a violation with strict). `run` holds what came before."""

    def __init__(self, message, run=None):
        super().__init__(message)
        self.run = run


class IntegrationError(GeomctrlError):
    """A step that can not be made (field not finite, step too long). `solution` holds what was computed so far."""

    def __init__(self, message, solution=None):
        super().__init__(message)
        self.solution = solution


class SweepError(GeomctrlError):
    """A sweep that can not go on (workers gone, a block that fails, a full disk). Its store keeps what was done."""
