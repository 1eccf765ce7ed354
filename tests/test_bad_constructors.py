"""Constructors refuse invalid numbers that kernels index by, loop over or divide by, and name them."""

import json
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("bad_constructors.py")


def test_bad_data_are_refused_by_name_without_a_hang_or_a_crash():
    """Each case of `bad_constructors`, all in one process: a crash or a hang is that of the last case begun."""
    run = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=900, cwd=SCRIPT.parents[1], check=False
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert lines[-1] == ["end"], f"died in {lines[-1]}, exit status {run.returncode}:\n{run.stderr[-2000:]}"
    ended = [line for line in lines if len(line) == 4]
    assert len(ended) > 300
    wrong = [
        line
        for line in ended
        if re.match("let through|a foreign", line[3]) or not re.search(rf"\b({line[2]})\b", line[3])
    ]
    assert not wrong, "\n".join(map(str, wrong))
