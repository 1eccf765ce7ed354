"""Options' texts as names, numbers, pairs, matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from geomctrl.errors import ArgumentError

MOST = 100_000  # numbers of a range


def pairs(option: str, given: list[str] | None) -> dict[str, Any]:
    """FIELD=NAME or FIELD=NAME,NAME, ... to a dictionary."""
    out: dict[str, Any] = {}
    for text in given or []:
        field, equals, value = text.partition("=")
        words = names(value)
        if not equals or not words:
            raise ArgumentError(f"{option}: expected FIELD=NAME, got {text!r}")
        if field.strip() in out:
            raise ArgumentError(f"{option}: {field.strip()!r} is given twice")
        out[field.strip()] = words if len(words) > 1 else words[0]
    return out


def names(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(option: str, text: str) -> list[float]:
    try:
        return [float(word) for word in names(text)]
    except ValueError:
        raise ArgumentError(f"{option}: expected numbers with commas between, got {text!r}") from None


def counts(option: str, text: str) -> list[int]:
    """Whole numbers and ranges of them: 0,2-5."""
    out: list[int] = []
    for word in names(text):
        first, dash, last = word.partition("-")
        if not first.isdigit() or (dash and not (last.isdigit() and int(first) <= int(last) < int(first) + MOST)):
            raise ArgumentError(f"{option}: expected numbers and ranges of them, 0,2-5, got {text!r:.60}")
        out += range(int(first), int(last if dash else first) + 1)
    return out


def matrix(option: str, text: str) -> Any:
    """Rows of numbers, with semicolons between, or as the lines of a file; commas or blanks between numbers."""
    import numpy as np

    try:
        file = Path(text).is_file()
    except OSError:  # too many numbers for the name of one
        file = False
    lines = Path(text).read_text(encoding="utf-8").splitlines() if file else text.split(";")
    try:
        return np.loadtxt([line.replace(",", " ") for line in lines], ndmin=2)
    except ValueError as error:
        where = text if file else option
        raise ArgumentError(
            f"{where}: expected rows of numbers, or the name of a file of them, got {text!r:.60}: {error}"
        ) from None


def number_or_auto(option: str, text: str | None) -> float | str | None:
    """A number, or "auto"."""
    if text is None or text == "auto":
        return text
    values = numbers(option, text)
    if len(values) != 1:
        raise ArgumentError(f"{option}: expected a number or auto, got {text!r}")
    return float(values[0])
