"""HTML tables for notebooks, which `_repr_html_` returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table under a line of text; everything is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(x))}</td>" for x in row) + "</tr>" for row in rows)
    return f"<p>{escape(heading)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
