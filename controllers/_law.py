"""The base of all controllers here."""

from __future__ import annotations

from typing import Any

from geomctrl.control.subclass_checks import require_called
from geomctrl.described import Described


class Law(Described):
    """A law of this package. A subclass that overrides a public method which the law never calls is refused."""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if not cls.__module__.startswith(__package__ or ""):
            require_called(cls, __package__ or "")
