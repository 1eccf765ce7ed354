"""An identification report as one HTML file for people: no network, no fonts or scripts from elsewhere, light and dark,
on a phone and on paper.
"""

from .document import document, summary

__all__ = ["document", "summary"]
