"""The command `geomctrl tune`: its options, without a page."""

import pytest
from command_line import invoke, run

from geomctrl.control.hand_tuning import tune

LOOP = ("tune", "two_link", "--controller", "passivity", "--seconds", "0.2")


def test_ranges_reach_the_controls(monkeypatch):
    """The page is replaced, as it would run until Ctrl-C."""
    ranges = {}

    def closed(*_, **options):
        ranges.update(options["ranges"])
        raise KeyboardInterrupt

    monkeypatch.setattr(tune, "tune", closed)
    invoke(*LOOP, "--range", "law.reference.phase[0,1]=-1:1", "--range", "load.mass=0:2e1")
    assert ranges == {"law.reference.phase[0,1]": (-1.0, 1.0), "load.mass": (0.0, 20.0)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("law.Q=1:2",), "there is no control 'law.Q'; known: law.Lambda"),
        (("law.K=3:1",), "law.K: expected (low, high) with low < high"),
        (("law.K=1:inf",), "law.K: expected a finite number"),
        (("law.K=1",), "--range: expected NAME=LOW:HIGH, got 'law.K=1'"),
        (("law.K",), "--range: expected NAME=LOW:HIGH, got 'law.K'"),
        (("law.K=1:2", "law.K=1:3"), "'law.K' is given twice"),
    ],
)
def test_bad_ranges_are_refused(options, message):
    result = run(*LOOP, *(word for text in options for word in ("--range", text)), status=2)
    assert message in result.output
