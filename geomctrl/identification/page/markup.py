"""HTML from Python: text is escaped where it becomes HTML, so that no name in a log or a model file can be more."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

VOID = ("meta", "br", "col")
Child = Any  # Markup, a text, a number, None, or a list of them


class Markup(str):
    """HTML that is finished."""

    __slots__ = ()


def tag(name: str, /, *children: Child, **attributes: Any) -> Markup:
    """An element. Attributes: class_ for class, data_value for data-value; None and False are left out."""
    words = [
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    ]
    start = f"<{name}{''.join(words)}>"
    return Markup(start if name in VOID else f"{start}{joined(children)}</{name}>")


def joined(children: Iterable[Child], between: str = "") -> Markup:
    return Markup(between.join(_markup(child) for child in children))


def _markup(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, (list, tuple)):
        return joined(child)
    return escape(str(child))


# --- pieces of a page ----------------------------------------------------------------------------------------------


def number(x: float | None, digits: int = 4) -> Markup:
    """A cell with a number, which it holds exactly for sorting and reading back; a dash where there is none."""
    if x is None or x != x:
        return tag("td", "-", class_="n", data_value="")
    text = f"{x:.{digits}g}" if not 10.0**digits <= abs(x) < 1e7 else f"{x:.0f}"
    return tag("td", text, class_="n", data_value=repr(float(x)).replace("inf", "Infinity"))


def percent(x: float | None, digits: int = 2) -> Markup:
    """A cell with a share as a percentage."""
    if x is None or x != x:
        return tag("td", "-", class_="n", data_value="")
    return tag("td", f"{100.0 * x:.{digits}f} %", class_="n", data_value=repr(float(x)))


def words(*children: Child, class_: str | None = None) -> Markup:
    """A cell with words."""
    return tag("td", *children, class_=class_)


def table(head: list[Child], rows: list[list[Markup]], sortable: bool = False, **attributes: Any) -> Markup:
    """A table that scrolls by itself where the screen is narrow; sortable: a button in every heading sorts its column.
    A heading may be (text, what it means).
    """
    cells = []
    for k, title in enumerate(head):
        title, meaning = title if isinstance(title, tuple) else (title, None)
        text = tag("abbr", title, title=meaning) if meaning else title
        side = "n" if rows and k < len(rows[0]) and rows[0][k].startswith('<td class="n"') else None
        cells.append(tag("th", tag("button", text, type="button") if sortable else text, scope="col", class_=side))
    body = [tag("tr", row) for row in rows]
    inner = tag("table", tag("thead", tag("tr", cells)), tag("tbody", joined(body, "\n")),
                **{"class": "sortable" if sortable else None, **attributes})  # fmt: skip
    return tag("div", inner, class_="wide")


def terms(pairs: dict[str, str], title: str = "What the words mean") -> Markup:
    """Definitions to unfold."""
    inner = [(tag("dt", term), tag("dd", meaning)) for term, meaning in pairs.items()]
    return tag("details", tag("summary", title), tag("dl", inner))


def section(anchor: str, title: str, *children: Child) -> Markup:
    return Markup(f"\n{tag('section', tag('h2', title), *children, id=anchor)}\n")
