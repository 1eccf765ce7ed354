"""Joint friction: the base class `FrictionModel` and its models, one per file."""

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
