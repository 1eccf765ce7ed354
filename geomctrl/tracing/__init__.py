"""Numpy functions run once on symbols: their operations become machine code, C, PTX, intervals and derivatives."""

from . import functions as functions
from . import operators as operators
