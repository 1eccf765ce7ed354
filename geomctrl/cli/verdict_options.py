"""The options about verdicts, of all commands that identify something."""

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
            help="A doubt, by the name that the report gives it, that does not count in verdict and exit status; or"
            " all. The verdict names what was ignored. Repeat.",
        ),
    ] = None

    def kinds(self) -> tuple[str, ...]:
        """Raises ArgumentError for kinds that there are not."""
        from geomctrl.identification.assessment import ignorable

        return ignorable("--ignore", [kind for words in self.ignore or () for kind in words.split(",")])
