"""Identification while the robot moves: recursive least squares, on accelerations or on filtered momenta."""

from .recursive import RecursiveLeastSquares

__all__ = ["RecursiveLeastSquares"]
