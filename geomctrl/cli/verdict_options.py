"""The options of `geomctrl identify` about its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from geomctrl.errors import ArgumentError


@dataclass(frozen=True)
class VerdictOptions:
    panel: ClassVar[str] = "Verdict"
    section: ClassVar[str] = "verdict"

    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="KIND",
            help="A doubt that does not count in verdict and exit status: {kinds}, or all. The report names what was"
            " ignored. Repeat.",
        ),
    ] = None

    def kinds(self) -> tuple[str, ...]:
        """Raises ArgumentError for kinds that there are not."""
        from geomctrl.identification.verdict import ignorable

        try:
            return ignorable("--ignore", self.ignore or ())
        except ArgumentError as error:
            raise ArgumentError(f"{error}; give --ignore once a kind") from None
