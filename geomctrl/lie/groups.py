"""Lie groups for states: Rn, SO3, SE3, SO3xR3 and products of them, behind one protocol, `LieGroup`.

Sources: Park and Chung 2005 section II; Mueller and Terze 2013 section 2, whose direct product is SO3xR3.
"""

from .contract import LieGroup, rotation
from .matrix_groups import SE3, SO3, SO3xR3
from .product import Product
from .vectors import Rn

__all__ = ["SE3", "SO3", "LieGroup", "Product", "Rn", "SO3xR3", "rotation"]
