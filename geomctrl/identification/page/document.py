"""The page as a whole, and what a notebook shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import results, sources
from .look import CSS, SCRIPT
from .markup import Markup, joined, number, percent, table, tag, words

STATUS = {
    "trust": "Trust: nothing that was checked speaks against this result",
    "doubts": "Doubts: look at these before you use the result",
    "distrust": "Do not trust this result",
}
PLACES = {
    "errors": "Errors", "joints": "Joint by joint", "parameters": "Base parameters", "excitation": "Told apart",
    "bodies": "Bodies", "friction": "Friction", "settings": "Settings and source",
}  # fmt: skip


def document(report: Any, plots: bool, labels: Mapping[str, str], definitions: str) -> str:
    """The page of an IdentificationReport. labels: of its notes; definitions: the text that every report prints."""
    title = f"Identification of {report.estimate.model.robot.name} from {_log(report)}"
    body = [
        tag("h1", title),
        tag("p", _subtitle(report), class_="soft"),
        verdict(report),
        _keys(report),
        tag("nav", [tag("a", text, href=f"#{anchor}") for anchor, text in PLACES.items()], aria_label="Sections"),
        results.errors(report, _pairs(definitions)),
        results.joints(report, plots),
        results.parameters(report, plots),
        results.told_apart(report),
        results.bodies(report),
        results.friction(report),
        sources.settings(report, labels),
        tag("footer", f"geomctrl {sources.version(report)}. report.txt and report.json beside this file hold the same"
                      " numbers; robot.json the robot."),
    ]  # fmt: skip
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(CSS)),
    ]
    body.append(tag("script", Markup(SCRIPT)))
    page = tag("html", tag("head", joined(head, "\n")), "\n", tag("body", joined(body, "\n")), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def summary(report: Any) -> str:
    """A few lines: verdict, errors per joint."""
    e = report.estimate
    parts = report.errors
    head = ["joint", *(f"{part} {what}" for part in parts for what in ("RMS", "relative"))]
    rows = [
        [
            words(name),
            *(cell for part in parts.values() for cell in (number(part["rms"][k]), percent(part["relative"][k]))),
        ]
        for k, name in enumerate(e.model.robot.dof_names)
    ]
    rows.append([words("all"), *(cell for part in parts.values()
                                 for cell in (number(part["rmse"]), percent(part["relative_error"])))])  # fmt: skip
    status, doubts = report.verdict.status, report.verdict.doubts
    title = f"{e.model.robot.name} from {_log(report)}, method {e.method}"
    return tag(
        "div",
        tag("p", tag("b", title), tag("br"), STATUS[status], _ignored(report),
            [(tag("br"), "- ", doubt.seen) for doubt in doubts], tag("br"), _subtitle(report)),
        table(head, rows),
    )  # fmt: skip


def verdict(report: Any) -> Markup:
    status, doubts = report.verdict.status, report.verdict.doubts
    rows = [
        tag("li", tag("span", "Fatal: ", class_="fatal") if doubt.fatal else None, doubt.seen, ". ",
            tag("span", "To do: ", doubt.advice, class_="soft"), tag("code", f" [{doubt.kind}]", class_="soft"))
        for doubt in sorted(doubts, key=lambda doubt: not doubt.fatal)
    ]  # fmt: skip
    rows += [
        tag("li", "Ignored, as asked for: ", doubt.seen, ". ", tag("code", f" [{doubt.kind}]", class_="soft"))
        for doubt in report.verdict.ignored
    ]
    rows += [tag("li", tag("span", "Note: ", note, ".", class_="soft")) for note in report.verdict.notes]
    said = tag("strong", STATUS[status], _ignored(report), ".", class_="status")
    return tag("div", said, tag("ul", rows) if rows else None, class_=f"verdict {status}", id="verdict", role="status")


def _ignored(report: Any) -> str | None:
    kinds = list(dict.fromkeys(doubt.kind for doubt in report.verdict.ignored))
    return f", but for what was ignored ({', '.join(kinds)})" if kinds else None


def _log(report: Any) -> str:
    return (report.training if report.raw is None else report.raw).label


def _subtitle(report: Any) -> str:
    e = report.estimate
    rows = report.errors
    counts = f"{rows['training']['samples']} training rows a joint"
    counts += f", {rows['test']['samples']} unseen" if "test" in rows else ", no unseen data"
    return f"method {e.method}; {counts}; {e.model.size} parameters in {e.base.size} base parameters"


def _keys(report: Any) -> Markup:
    e, parts = report.estimate, report.errors
    fine = sum(why is None for why in e.verdicts.values())
    keys = []
    if "test" in parts:
        test = parts["test"]
        if test["resting_share"] > 0.0 and np.isfinite(test["moving_error"]):
            keys.append(("unseen relative error, moving", f"{100 * test['moving_error']:.2f} %"))
            keys.append(("at rest within static friction", f"{100 * test['resting_within']:.0f} %"))
        keys.append(("unseen relative error", f"{100 * test['relative_error']:.2f} %"))
    keys += [
        ("training relative error", f"{100 * parts['training']['relative_error']:.2f} %"),
        ("physically consistent bodies", f"{fine} of {len(e.verdicts)}"),
        ("condition number", f"{e.condition:.3g}" if np.isfinite(e.condition) else "none: not excited"),
    ]
    if report.notes.get("torque_cutoff") is not None:
        keys.append(("torque cut-off", f"{report.notes['torque_cutoff']:.3g} Hz"))
    if report.noise_floor is not None:
        keys.append(("noise floor, RMS of all", f"{np.sqrt(np.mean(report.noise_floor**2)):.3g}"))
    return tag("div", [tag("div", tag("b", value), tag("span", name)) for name, value in keys], class_="keys")


def _pairs(definitions: str) -> dict[str, str]:
    """Terms and their texts from lines "    term  text", which go on where a line begins further in."""
    out: dict[str, str] = {}
    for line in definitions.splitlines():
        term, between, text = line.strip().partition("  ")
        if line.startswith("     ") or not between:
            if out and line.strip():
                out[list(out)[-1]] += " " + line.strip()
        else:
            out[term] = text.strip()
    return out
