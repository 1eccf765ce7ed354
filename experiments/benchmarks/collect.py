"""Collect the results of the benchmarks in docs/_static/bench.json, which the documentation shows.

`make bench` runs this last. A benchmark that was not run, as the GPU's where there is none, keeps what the file has of
it. Results of --quick are rough and are left out, unless `--quick` says here too that the page may have them.

    python experiments/benchmarks/collect.py [--quick] [--to docs/_static/bench.json]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from geomctrl import files

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import FOLDER, ROOT
from lib.script import Quick, run_script

TARGET = ROOT / "docs" / "_static" / "bench.json"

Source = Annotated[Path, Parameter(name="--from")]


def collect(folder: Path, target: Path, quick: bool = False) -> list[str]:
    """Join folder/*.json into target, and return the names that came in."""
    joined = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
    stored = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    taken = {name: content for name, content in stored.items() if quick or not content["quick"]}
    if taken:
        files.write_text(target, json.dumps(dict(sorted((joined | taken).items())), indent=1) + "\n")
    return list(taken)


def main(*, quick: Quick = False, source: Source = FOLDER, to: Path = TARGET) -> None:
    """source: the folder of the benchmarks' files; to: the file to renew; quick: take rough results too."""
    taken = collect(source, to, quick)
    print(f"{to}: {', '.join(taken)}" if taken else f"nothing to take in {source}: run `make bench`")


if __name__ == "__main__":
    run_script(main)
