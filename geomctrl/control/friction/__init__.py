"""Friction of joints: the contract `FrictionModel` and its models, one a file."""

from .bristles import Dahl, LuGre
from .combined import CombinedFriction
from .coulomb import AsymmetricCoulomb, Friction
from .load_dependent import LoadDependent
from .model import FrictionModel
from .stribeck import Stribeck

__all__ = [
    "AsymmetricCoulomb",
    "CombinedFriction",
    "Dahl",
    "Friction",
    "FrictionModel",
    "LoadDependent",
    "LuGre",
    "Stribeck",
]
