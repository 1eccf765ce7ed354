"""The part of the page that says how to get the same again."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

from geomctrl.identification.report_lines import in_words

from .glossary import some
from .markup import Markup, section, table, tag, terms, words


def settings(report: Any, labels: Mapping[str, str]) -> Markup:
    """What was done to the log, the settings, the command or call, versions, logs with their SHA-256."""
    e = report.estimate
    notes = {**report.notes, **e.notes}
    rows = [[words("method"), words(e.method)]]
    rows += [[words(labels.get(key, key)), words(in_words(value))] for key, value in notes.items()]
    return section(
        "settings", "Settings and source",
        tag("h3", "What was done to the log"),
        tag("ul", [tag("li", note) for note in report.training.history or ("nothing",)]),
        tag("h3", "Settings, and what came of them"),
        table(["what", "value"], rows),
        terms(some("cut-off", "prior", "log-det distance, entropic")),
        _source(report.provenance),
    )  # fmt: skip


def version(report: Any) -> str:
    if report.provenance is not None:
        return dict(report.provenance.versions)["geomctrl"]
    try:
        return metadata.version("geomctrl")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _source(provenance: Any) -> Markup:
    if provenance is None:
        return tag("p", "The report was put together in Python: from which file and by which call is not known.")
    logs = [[words(log.name, class_="name"), words(tag("code", log.sha256)), words(log.of)] for log in provenance.logs]
    again = []
    if provenance.command is not None:
        again += [tag("p", "At the command line:"), tag("pre", provenance.command)]
    again += [tag("p", "In Python:"), tag("pre", provenance.call)]
    return tag(
        "div",
        tag("h3", "To get the same again"), again,
        table(["log", "SHA-256", "of"], logs),
        tag("p", "Made with ", ", ".join(" ".join(pair) for pair in provenance.versions), "."),
    )  # fmt: skip
