"""What a parser is given: a path, or the text itself; and the XML in it."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from geomctrl.errors import ArgumentError, ModelError

__all__ = ["declared_encoding", "locate", "read_numbers", "read_xml"]

NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)


def locate(source: str | Path, package_dirs: Iterable[str | Path] = ()) -> str | Path:
    """The text if `source` is XML, else the path of a file that is there; package://name/... is looked up."""
    if isinstance(source, str) and (text := source.lstrip("\ufeff \t\r\n")).startswith("<"):
        return text if text.startswith("<?xml") else source.lstrip("\ufeff")  # whose lines keep their numbers
    if not isinstance(source, (str, Path)):
        raise ArgumentError(f"source: expected a path or a string of XML, got {type(source).__name__}")
    if str(source).startswith("package://"):
        dirs = [Path(d) for d in package_dirs]
        found = [d / str(source).removeprefix("package://") for d in dirs]
        found = [path for path in found if path.is_file()]
        if not found:
            raise ArgumentError(f"source: {source!r} is in none of package_dirs {[str(d) for d in dirs]}")
        return found[0]
    try:
        there = Path(source).is_file()
    except (OSError, ValueError):  # too long or a null byte: no path at all
        there = False
    if not there:
        raise ArgumentError(f"source: no such file: {str(source)[:200]!r}")
    if not os.access(source, os.R_OK):
        raise ArgumentError(f"source: no permission to read {str(source)!r}")
    return Path(source)


def declared_encoding(text: bytes) -> str:
    """What an XML text says of its encoding, else UTF-8."""
    match = re.match(rb"\s*<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)", text.removeprefix(b"\xef\xbb\xbf"))
    return match[1].decode() if match else "utf-8"


def read_numbers(text: str) -> list[float]:
    """The numbers of an XML attribute, between white space. Raises ValueError.

    They are XML's decimals, as other programs read them, with infinities and nan in any case. Python's `float` takes
    underscores and the digits of other scripts as well, which are typing errors here.
    """
    words = re.split(r"[ \t\r\n]+", text.strip(" \t\r\n")) if text.strip(" \t\r\n") else []
    if not all(map(NUMBER.fullmatch, words)):
        raise ValueError(f"no numbers: {text!r}")
    return list(map(float, words))


def read_xml(found: str | Path):
    """The root element (lxml) of what `locate` found, without comments; ModelError for what is no well-formed XML.

    Entities of the document itself are replaced by what they stand for, as XML says. What would have to be fetched from
    another file is refused, and so are entities that blow up and attributes with defaults in a DOCTYPE.
    """
    import lxml.etree as etree

    is_text = isinstance(found, str)
    parser = etree.XMLParser(
        encoding="utf-8" if is_text else None,  # already decoded: overrides the encoding that the text declares
        resolve_entities="internal",
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(found.encode(errors="surrogatepass") if is_text else found.read_bytes(), parser)
    except etree.XMLSyntaxError as error:
        hint = "; entities of other files are not read" if str(error.msg).startswith("Entity") else ""
        raise ModelError(f"malformed XML: {error.msg}{hint}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        declared = etree.tostring(root.getroottree()).partition(f"<{root.tag}".encode())[0]
        if b"<!ATTLIST" in declared:
            raise ModelError("the DOCTYPE declares attributes (ATTLIST), whose defaults are not read: write them out")
    return root
