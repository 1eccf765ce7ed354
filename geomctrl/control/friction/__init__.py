"""Friction of joints: the contract `FrictionModel` and its models, one a file."""

from .asymmetric_coulomb import AsymmetricCoulomb
from .combined import CombinedFriction
from .dahl import Dahl
from .load_dependent import LoadDependent
from .lugre import LuGre
from .model import FrictionModel
from .stribeck import Stribeck
from .viscous_coulomb import Friction

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
