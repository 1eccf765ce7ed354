"""Joint friction: the base class `FrictionModel` and its models, one per file."""

from typing import TYPE_CHECKING

from geomctrl.other_names import unknown_names

from .bristles import Dahl, LuGre
from .coulomb import AsymmetricCoulomb, Friction
from .model import FrictionModel
from .stribeck import LoadDependent, Stribeck

__all__ = [
    "AsymmetricCoulomb",
    "Dahl",
    "Friction",
    "FrictionModel",
    "LoadDependent",
    "LuGre",
    "Stribeck",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)
