"""The command line in this process and as a program."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

import geomctrl
from geomctrl.cli.main import app


def run(*arguments, status=0):
    result = CliRunner(env={"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}).invoke(app, [str(a) for a in arguments])
    assert result.exit_code == status, (result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def program(*arguments, cwd):
    """`python -m geomctrl.cli` with the geomctrl that is tested."""
    return _python("-m", "geomctrl.cli", *arguments, cwd=cwd)


def script(text, **environment):
    """Python with the geomctrl that is tested."""
    return _python("-c", text, cwd=None, **environment)


def _python(*arguments, cwd, **environment):
    command = [sys.executable, *arguments]
    path = os.pathsep.join([str(Path(geomctrl.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": path, "COLUMNS": "120"} | environment
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300
    )
