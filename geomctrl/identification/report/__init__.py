"""Reports of identifications as text, JSON, CSV, pictures and one HTML page."""

from .report import Result

__all__ = ["Result"]
