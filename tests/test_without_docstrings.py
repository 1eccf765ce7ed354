"""`python -OO` removes docstrings: nothing that the library prints or registers depends on them."""

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import sys
if __debug__ or sys.flags.optimize != 2:
    sys.exit("not -OO")
from geomctrl.identification.report import rendering
from geomctrl.testing import plugin
for table in (rendering.DEFINITIONS, rendering.GAIN_DEFINITIONS, rendering.LOAD_DEFINITIONS):
    if not table["RMS"] or rendering.__doc__ is not None:
        sys.exit(str(table))
lines = []
class Config:
    class option: geomctrl_seed = 0
    def addinivalue_line(self, name, line): lines.append(line)
plugin.pytest_configure(Config())
if len(lines) != 3 or any("None" in line.split(": ", 1)[1] for line in lines):
    sys.exit(str(lines))
"""


def test_reports_and_markers_are_there():
    root = str(Path(__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-OO", "-c", CODE], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    assert result.returncode == 0, result.stderr
