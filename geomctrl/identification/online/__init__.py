"""Online identification: recursive least squares."""

from .recursive import RecursiveLeastSquares

__all__ = ["RecursiveLeastSquares"]
