"""Fixtures of several rooms."""

import signal

import pytest

from geomctrl import models
from geomctrl.compiler import budget

pytest_plugins = ["pytester", "geomctrl.testing.plugin"]  # the latter also where it is not installed


# A process that meets many robots compiles a term of a later one once it has been called often, which moves results by
# rounding: tests that compare bits would depend on what else has run.
budget.CALLS = 10**12


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of what a shell starts in the background: tests send Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items):
    """Mark slow all but n parameter sets, evenly spaced, of a test marked `quick(n)`."""
    sets = {}
    for item in items:
        if item.get_closest_marker("quick"):
            sets.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in sets.values():
        (count,) = found[0].get_closest_marker("quick").args
        chosen = {k * len(found) // count for k in range(count)}
        for k in set(range(len(found))) - chosen:
            found[k].add_marker("slow")


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
