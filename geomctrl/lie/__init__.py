"""Lie groups as functions and classes on arrays with any leading axes: SO(3), SE(3), R^n and their products."""
