"""Do the links of the built site lead somewhere, and does it need no network? `make docs` asks at its end.

    python docs/_build_tools/links.py out/docs

Looked at are, in every page: that files linked to are there, and the anchors in them; that references to functions
were resolved (outside of the reference, whose docstrings have code in quotes); that no script, style, picture or font
comes from elsewhere. Links to elsewhere are for `make docs-links`, which needs a network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}
ELSEWHERE = re.compile(r"^(https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"""(?:url\(|@import\s)\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
NO_ANCHORS = {"", "top"}  # of every page
REFERENCE = ("reference/api/", "reference/index", "py-modindex")  # pages whose text is docstrings


class Link(NamedTuple):
    tag: str
    target: str
    loaded: bool  # when the page is opened, not when somebody clicks


class Page(HTMLParser):
    """Links, anchors and unresolved references of one page."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.links: list[Link] = []
        self.anchors: set[str] = set()
        self.unresolved: list[str] = []
        self._in_link, self._reference = 0, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a":
            self._in_link += 1
            if "href" in attributes:
                self.links.append(Link(tag, attributes["href"], False))
        elif tag in LOADED and attributes.get(LOADED[tag]):
            loaded = tag != "link" or not {"search", "next", "prev", "index", "canonical"} & set(
                attributes.get("rel", "").split()
            )
            self.links.append(Link(tag, attributes[LOADED[tag]], loaded))
        elif tag == "code":
            kinds = attributes.get("class", "").split()
            self._reference = "xref" in kinds and not self._in_link

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if tag == "a":
            self._in_link -= 1
        elif tag == "code":
            self._reference = False

    def handle_data(self, data):
        if self._reference and data.strip():
            self.unresolved.append(data.strip())
            self._reference = False


def problems(site: Path) -> Iterator[str]:
    """Lines of words, each with its page."""
    names = [path.relative_to(site).as_posix() for path in site.rglob("*.html")]
    pages = {name: Page((site / name).read_text(encoding="utf-8")) for name in names if not name.startswith("_static/")}
    if "index.html" not in pages:
        yield f"{site}: there is no index.html"
    for name, page in sorted(pages.items()):
        for link in dict.fromkeys(page.links):
            if words := problem(site, pages, name, link):
                yield f"{name}: {words}"
        if not name.startswith(REFERENCE):
            yield from (
                f"{name}: nothing in the reference is named {what!r}" for what in dict.fromkeys(page.unresolved)
            )
    for path in sorted(site.rglob("*.css")):
        for url in dict.fromkeys(IN_STYLES.findall(path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(site)}: a style loads {url}"


def problem(site: Path, pages: dict[str, Page], name: str, link: Link) -> str:
    """What is wrong with a link on the page `name`, or nothing."""
    target = link.target
    if ELSEWHERE.match(target):
        return f"<{link.tag}> loads {target}" if link.loaded else ""
    parts = urlsplit(target)
    if parts.scheme:
        return (
            "" if parts.scheme in ("data", "mailto", "javascript") else f"{target}: links like that are not for pages"
        )
    file = (site / name).parent / unquote(parts.path) if parts.path else site / name
    file = file.resolve() / "index.html" if file.is_dir() else file.resolve()
    if not file.is_relative_to(site.resolve()):
        return f"{target} is outside of the site"
    if not file.is_file():
        return f"{target} is not there"
    page = pages.get(file.relative_to(site.resolve()).as_posix())
    anchor = unquote(parts.fragment)
    if page is not None and anchor not in NO_ANCHORS and anchor not in page.anchors:
        return f"{target}: there is no such anchor"
    return ""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} SITE")
    lines = list(problems(Path(sys.argv[1])))
    print(
        "\n".join(lines)
        if lines
        else "every link inside the site leads somewhere, and nothing is loaded from elsewhere"
    )
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
