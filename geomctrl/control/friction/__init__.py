"""Friction of joints: the contract `FrictionModel` and its models, one a file."""

from .bristles import Dahl, LuGre
from .combined import CombinedFriction
from .coulomb import AsymmetricCoulomb, Friction
from .model import FrictionModel
from .stribeck import LoadDependent, Stribeck

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
