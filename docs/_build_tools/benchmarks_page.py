"""Tables of docs/benchmarks.md, from docs/_static/bench.json, which `make bench` renews.

A comment on a line of its own is replaced by a table:

    <!-- bench: about -->                        on what, when, with what
    <!-- bench: dynamics, ratios -->             a column a robot, a row a term and a peer
    <!-- bench: dynamics, batches -->            a table of the results as it is
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "_static" / "bench.json"
MARK = re.compile(r"^<!-- bench: (.+) -->$", re.MULTILINE)
UNITS = ("us", "ms", "ns", "kB", "J", "m", "percent")
ABSENT = "*Not measured yet: `make bench` does it, and writes `docs/_static/bench.json`.*"
WORDS = {
    "real_time": "times real time", "throughput": "times a Python loop over Pinocchio", "nv": "degrees of freedom",
    "states_per_s": "states a second", "of_one_core": "times one core", "ratio": "times the fastest",
    "of_four_forward_dynamics": "times four forward dynamics", "met": "goal met",
}  # fmt: skip


def read(app: Any, name: str, source: list[str]) -> None:
    """Sphinx's event source-read."""
    if name == "benchmarks":
        app.env.note_dependency(str(KEPT))
        source[0] = filled(source[0], json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {})


def filled(text: str, results: dict[str, Any]) -> str:
    return MARK.sub(lambda found: table(*re.split(r",\s*", found[1], maxsplit=1), results=results), text)


def table(name: str, which: str = "", *, results: dict[str, Any]) -> str:
    if name == "about":
        return about(results)
    tables = results.get(name, {}).get("tables", {})
    if which == "ratios":
        return ratios(tables["single calls"]) if "single calls" in tables else ABSENT
    chosen = [title for title in tables if title == which] or [t for t in tables if t.startswith(which)]
    if not chosen:
        return ABSENT
    whole = [as_it_is(tables[title]) for title in chosen]
    return whole[0] if len(whole) == 1 else "\n\n".join(f"*{title}*\n\n{t}" for title, t in zip(chosen, whole))


def about(results: dict[str, Any]) -> str:
    """Machine, date, versions: a line for each lot of benchmarks that ran alike."""
    if not results:
        return ABSENT
    lots: dict[str, list[str]] = {}
    for name, content in sorted(results.items()):
        machine, versions = content["machine"], content["versions"]
        what = f"{machine['processor']}, {machine['processors']} of them"
        what += f"{' (virtual)' if machine['virtual'] else ''}, {machine['memory_GiB']} GiB, {machine['system']}"
        what += f"; Python {machine['python']}, " + ", ".join(f"{k} {v}" for k, v in versions.items())
        what += (
            f"; {content['date'][:10]}, commit `{content['commit']}`"
            if content["commit"]
            else f"; {content['date'][:10]}"
        )
        what += ". **Rough: made with `--quick`.**" if content["quick"] else "."
        lots.setdefault(what, []).append(name)
    return "\n".join(f"- *{', '.join(names)}*: {what}" for what, names in lots.items())


def ratios(rows: list[dict]) -> str:
    """Our time over the peer's: a column a robot."""
    robots = list(dict.fromkeys((row["robot"], row["nv"]) for row in rows))
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        lines.setdefault((row["term"], row["peer"]), {})[row["robot"]] = row["ratio"]
    heads = ["ours", "peer", *(f"{name} ({nv})" for name, nv in robots)]
    body = [[f"`{t}`", p, *(shown(x.get(name)) for name, _ in robots)] for (t, p), x in lines.items()]
    return markdown(heads, body)


def as_it_is(rows: list[dict]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return markdown([head(c) for c in columns], [[shown(row.get(c)) for c in columns] for row in rows])


def head(column: str) -> str:
    """A column's name in words, with its unit in brackets."""
    if column in WORDS:
        return WORDS[column]
    words, _, unit = column.rpartition("_")
    if words and unit in UNITS:
        return f"{words.replace('_', ' ')} [{'µs' if unit == 'us' else '%' if unit == 'percent' else unit}]"
    return column.replace("[us]", "[µs]").replace("_", " ")


def shown(x: Any) -> str:
    if x is None:
        return ""
    if isinstance(x, bool):
        return "yes" if x else "no"
    if isinstance(x, float):
        size = abs(x)
        if x == 0.0 or 1e-3 <= size < 1e5:
            return f"{x:.0f}" if size >= 100 else f"{x:.3g}" if size >= 10 else f"{x:.2g}"
        return f"{x:.1e}"
    return str(x).replace("|", r"\|").replace("_", r"\_").replace("<", r"\<")


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(x) + " |" for x in (heads, ["---"] * len(heads), *rows))
