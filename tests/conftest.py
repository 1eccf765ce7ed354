"""Fixtures of several rooms."""

import signal

import pytest

from geomctrl import models

pytest_plugins = ["pytester", "geomctrl.testing.plugin"]  # the latter also where it is not installed


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of what a shell starts in the background: tests send Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", params=models.names())
def bundled(request):
    """Each robot of geomctrl.models."""
    return models.load(request.param)


def pytest_terminal_summary(terminalreporter):
    """What tests counted."""
    for report in terminalreporter.getreports("passed"):
        for name, said in report.user_properties:
            if name == "count":
                terminalreporter.write_line(said)


@pytest.fixture(scope="session")
def panda():
    return models.panda()
