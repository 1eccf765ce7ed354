"""Read XML, and edit it so that all other bytes stay the same.

Edits keep comments, blanks, quotes and the order of attributes. Expat reports the byte at which an element begins. In a
start tag, which expat has already accepted as well-formed, a regular expression finds the attributes.
"""

import html
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from geomctrl.errors import ArgumentError, ModelError
from geomctrl.files import decimal


def locate(source: str | Path, package_dirs: Iterable[str | Path] = ()) -> str | Path:
    """Return the text if `source` is XML, otherwise the path of an existing file; package://name/... is looked up."""
    if isinstance(source, str) and (text := source.lstrip("\ufeff \t\r\n")).startswith("<"):
        return text if text.startswith("<?xml") else source.lstrip("\ufeff")  # keeps the line numbers
    if not isinstance(source, (str, Path)):
        raise ArgumentError(f"source: expected a path or a string of XML, got {type(source).__name__}")
    if str(source).startswith("package://"):
        dirs = [Path(d) for d in package_dirs]
        paths = [path for d in dirs if (path := d / str(source).removeprefix("package://")).is_file()]
        if not paths:
            raise ArgumentError(f"source: {source!r} is in none of package_dirs {[str(d) for d in dirs]}")
        return paths[0]
    try:
        there = Path(source).is_file()
    except (OSError, ValueError):  # too long, or with a null byte: not a path
        there = False
    if not there:
        raise ArgumentError(f"source: no such file: {str(source)[:200]!r}")
    if not os.access(source, os.R_OK):
        raise ArgumentError(f"source: no permission to read {str(source)!r}")
    return Path(source)


def declared_encoding(text: bytes) -> str:
    """Return the encoding that an XML text declares; UTF-8 if it declares none."""
    match = re.match(rb"\s*<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)", text.removeprefix(b"\xef\xbb\xbf"))
    return match[1].decode() if match else "utf-8"


def read_numbers(text: str) -> list[float]:
    """Return the numbers of an XML attribute, separated by white space. Raises ValueError.

    Numbers are XML decimals, as other programs read them, plus infinities and nan in any letter case.
    """
    return [decimal(x) for x in re.split(r"[ \t\r\n]+", text) if x]


def number_text(x: Iterable[float]) -> str:
    """Return numbers as the text of an XML attribute, from which `read_numbers` reads the same numbers."""
    return " ".join(repr(float(a)) for a in x)


def read_xml(located: str | Path):
    """Return the root element (lxml) of the result of `locate`, without comments. Raises ModelError if it is not XML.

    Entities that the document itself defines are replaced, as XML requires. Refused are entities that refer to other
    files or expand without bound, and attribute defaults in a DOCTYPE.
    """
    import lxml.etree as etree

    is_text = isinstance(located, str)
    parser = etree.XMLParser(
        encoding="utf-8" if is_text else None,  # a text is already decoded: override the encoding that it declares
        resolve_entities="internal",
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(located.encode(errors="surrogatepass") if is_text else located.read_bytes(), parser)
    except etree.XMLSyntaxError as error:
        hint = "; entities of other files are not read" if str(error.msg).startswith("Entity") else ""
        raise ModelError(f"malformed XML: {error.msg}{hint}") from None
    except OSError as error:
        raise ModelError(f"not readable: {error.strerror or error}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        declared = etree.tostring(root.getroottree()).partition(f"<{root.tag}".encode())[0]
        if b"<!ATTLIST" in declared:
            raise ModelError("the DOCTYPE declares attributes (ATTLIST), whose defaults are not read: write them out")
    return root


ATTRIBUTE = re.compile(rb"\s+(?P<name>[^\s=/>]+)\s*=\s*(?P<value>\"[^\"]*\"|'[^']*')")
START_TAG = re.compile(rb"<[^\s/>]+(?P<attributes>(?:\s+[^\s=/>]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)\s*(?P<empty>/?)>")


@dataclass(eq=False)
class Element:
    """An element and its position: its start tag is text[start:inside], its content text[inside:close], all
    text[start:end].

    For an element without content, <a/>, inside = close = end.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    start: int
    inside: int
    close: int
    end: int
    parent: "Element | None" = None
    children: "list[Element]" = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return self.inside == self.end

    def find(self, tag: str) -> "Element | None":
        return next(self.all(tag), None)

    def all(self, tag: str) -> "Iterator[Element]":
        return (child for child in self.children if child.tag == tag)

    def below(self) -> "Iterator[Element]":
        """Yield the element and all its descendants in document order."""
        yield self
        for child in self.children:
            yield from child.below()


def parsed(text: bytes) -> Element:
    """Return the root element. Raises ModelError for text that is not XML or whose bytes can not be edited.

    Encodings and entities for which bytes and characters differ can not be edited.
    """
    if b"\0" in text[:4] or text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ModelError("encoded in UTF-16 or UTF-32: expected UTF-8 to edit it in place")
    parser, top, stack = expat.ParserCreate(), [], []

    def start(tag: str, attributes: dict[str, str]) -> None:
        begin = parser.CurrentByteIndex
        match = START_TAG.match(text, begin)
        if match is None:
            raise ModelError(f"line {parser.CurrentLineNumber}: the start tag of <{tag}> can not be edited in place")
        end = match.end()
        element = Element(tag, attributes, parser.CurrentLineNumber, begin, end, end, end, stack[-1] if stack else None)
        (stack[-1].children if stack else top).append(element)
        stack.append(element)

    def stop(_tag: str) -> None:
        element = stack.pop()
        if text[element.inside - 2 : element.inside] != b"/>":
            element.close = parser.CurrentByteIndex
            element.end = text.index(b">", element.close) + 1

    def entity(name: str, *_: object) -> None:
        raise ModelError(
            f"line {parser.CurrentLineNumber}: entity {name!r}: the text that it expands to can not be edited in place"
        )

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, stop, entity
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, LookupError) as error:
        raise ModelError(f"malformed XML: {error}") from None
    return top[0]


class Edits:
    """Collects edits of a text and applies them together."""

    def __init__(self, text: bytes):
        self.text = text
        self.newline = "\r\n" if b"\r\n" in text else "\n"
        self._changes: list[tuple[int, int, bytes]] = []

    def __bool__(self) -> bool:
        return bool(self._changes)

    def result(self) -> bytes:
        parts, position = [], 0
        for start, end, new in sorted(self._changes, key=lambda change: change[:2]):
            assert start >= position, "two edits of the same bytes"
            parts += [self.text[position:start], new]
            position = end
        return b"".join([*parts, self.text[position:]])

    def replace(self, start: int, end: int, new: str) -> None:
        self._changes.append((start, end, new.encode("ascii", "xmlcharrefreplace")))

    def set(self, element: Element, values: Mapping[str, str], without: tuple[str, ...] = ()) -> None:
        """Set attributes: replace existing values, add others after the last attribute, and remove those in
        `without`.
        """
        start_tag = START_TAG.match(self.text, element.start)
        assert start_tag is not None
        attributes = {m["name"].decode(): m for m in ATTRIBUTE.finditer(self.text, start_tag.start(), start_tag.end())}
        for name, m in attributes.items():
            if name in without:
                self.replace(m.start(), m.end(), "")
            elif name in values and element.attributes[name] != values[name]:
                self.replace(m.start("value") + 1, m.end("value") - 1, _quoted(values[name]))
        behind = start_tag.end("attributes")
        new = {name: value for name, value in values.items() if name not in attributes}
        if new:
            self.replace(behind, behind, _listed(new))

    def insert_first(self, element: Element, lines: list[tuple[int, str]]) -> None:
        """Insert lines of text, each with its indentation level, as the first content of an element."""
        own = _blank_before(self.text, element.start)
        between = (
            self.text[element.inside : element.children[0].start].decode(errors="replace") if element.children else "\n"
        )
        inner = between.rpartition("\n")[2]
        step = (
            inner[len(own) :]
            if inner.isspace() and inner.startswith(own) and inner != own
            else "\t"
            if "\t" in own
            else "  "
        )
        inline = "\n" not in between
        body = "".join(line if inline else f"{self.newline}{own}{step * level}{line}" for level, line in lines)
        if element.is_empty:
            start_tag = START_TAG.match(self.text, element.start)
            assert start_tag is not None
            end = f"{self.newline}{own}</{element.tag}>"
            self.replace(start_tag.end("attributes"), element.end, f">{body}{end}")
        else:
            self.replace(element.inside, element.inside, body)


def tag(name: str, attributes: Mapping[str, str]) -> str:
    """Return the text of an element without content."""
    return f"<{name}{_listed(attributes)}/>"


def _listed(attributes: Mapping[str, str]) -> str:
    return "".join(f' {key}="{_quoted(value)}"' for key, value in attributes.items())


def _blank_before(text: bytes, position: int) -> str:
    """Return the indentation of the line if nothing else precedes the position."""
    line = text[text.rfind(b"\n", 0, position) + 1 : position].decode(errors="replace")
    return line[: len(line) - len(line.lstrip())]


def _quoted(value: str) -> str:
    return html.escape(value)  # `html` is cheap to import and escapes as XML requires


def unique_name(name: str, taken: Container[str]) -> str:
    """Return the name, with underscores appended until it differs from all others."""
    while name in taken:
        name += "_"
    return name
