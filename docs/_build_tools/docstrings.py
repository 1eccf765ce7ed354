"""Docstrings, which are plain text with indented equations and tables, as reStructuredText."""

from __future__ import annotations

import re
from typing import Any

SPECIAL = re.compile(r"([*|\\]|(?<=\w)_(?!\w))")
CODE = re.compile(r"(``[^`]+``|`[^`]+`)")
ITEM = re.compile(r"^(\d+\.|-) ")


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Sphinx's event autodoc-process-docstring."""
    lines[:] = converted(lines)


def converted(lines: list[str]) -> list[str]:
    """Paragraphs with their special characters escaped; what is indented by four or more is kept as it is printed."""
    out: list[str] = []
    literal = in_item = False
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if not text:
            out.append("")
            continue
        if ITEM.match(text) and indent < 4:
            if out and out[-1] and not in_item:
                out.append("")
            in_item, literal = True, False
            out.append(" " * indent + escaped(text))
            continue
        if indent >= 4 and not (in_item and out and out[-1]):
            if not literal:
                out += ["", "::", ""] if not out or out[-1] else ["::", ""]
                literal = True
            out.append(line)
            continue
        if literal and indent >= 4:
            out.append(line)
            continue
        if literal and out and out[-1]:
            out.append("")
        literal = False
        if indent == 0:
            in_item = False
        out.append((" " * indent if in_item else "") + escaped(text))
    return out


def escaped(text: str) -> str:
    """Stars, bars and trailing underscores outside of `code` mean themselves."""
    out = ""
    for part in CODE.split(text):
        if CODE.fullmatch(part):
            out += part
        else:
            out += ("\\ " if out.endswith("`") and part[:1].isalnum() else "") + SPECIAL.sub(r"\\\1", part)
    return out
