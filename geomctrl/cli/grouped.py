"""Options in groups: a command takes a few frozen dataclasses where the command line shows all their fields.

@dataclass(frozen=True)
class Filters:
    panel: ClassVar = "Filters"
    cutoff: Annotated[float | None, typer.Option(help="...")] = None

@app.command()
@grouped
def identify(log: Annotated[Path, typer.Argument()], filters: Filters) -> None: ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its dataclasses as options of its own, in its order, each in its `panel`."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _options(hints[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def flat(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{f.name: options.pop(f.name) for f in fields(group)})
        command(**options)

    flat.__annotations__ = {p.name: p.annotation for p in parameters}
    flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return flat


def _options(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    out = []
    for field in fields(group):
        hints[field.name].__metadata__[0].rich_help_panel = group.panel
        default = Parameter.empty if field.default is MISSING else field.default
        out.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]))
    return out
