"""The command line in this process and as a program."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import geomctrl
from geomctrl.cli.main import run as run_command


@dataclass
class Result:
    """The output and the exit status of a command."""

    exit_code: int
    output: str  # both standard output and standard error, in order


def invoke(*arguments):
    """Run a command in this process."""
    text = io.StringIO()
    environment = patch.dict(os.environ, {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"})
    with redirect_stdout(text), redirect_stderr(text), environment:
        try:
            status = run_command([str(a) for a in arguments])
        except SystemExit as error:
            status = error.code or 0
    return Result(status, text.getvalue())


def run(*arguments, status=0):
    result = invoke(*arguments)
    assert result.exit_code == status, result.output
    return result


def program(*arguments, cwd):
    """Run `python -m geomctrl.cli` with the geomctrl that is tested."""
    return _python("-m", "geomctrl.cli", *arguments, cwd=cwd)


def script(text, **environment):
    """Run Python with the geomctrl that is tested."""
    return _python("-c", text, cwd=None, **environment)


def _python(*arguments, cwd, **environment):
    command = [sys.executable, *arguments]
    path = os.pathsep.join([str(Path(geomctrl.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": path, "COLUMNS": "120"} | environment
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300
    )
