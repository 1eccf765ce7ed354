"""The options of `geomctrl identify` about its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer


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

        return ignorable("--ignore", [kind for words in self.ignore or () for kind in words.split(",")])
