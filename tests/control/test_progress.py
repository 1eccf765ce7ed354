"""Progress bars: in notebooks without widgets, for functions with named steps, and invalid arguments."""

import pytest

from geomctrl.control import progress
from geomctrl.control.progress import counted, progress_function, with_progress_bar


class Handle:
    """What IPython's `display` returns; it stores its updates."""

    def __init__(self, said):
        self.said = said

    def update(self, x):
        self.said.append(x.data)


@pytest.fixture
def notebook(monkeypatch):
    """Return what a notebook displays."""
    display = pytest.importorskip("IPython.display")
    import rich.console

    said = []
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(display, "display", lambda x, display_id: Handle(said))
    monkeypatch.setattr(progress, "REDRAW_PERIOD", 0.0)
    return said


def test_a_notebooks_bar_moves_and_goes(notebook):
    with progress_function(True, "sim<u>lating") as report:
        for fraction in (0.0, 0.25, 1.0):
            report(fraction)
        assert len(notebook) == 3
        assert 'value="0.2500"' in notebook[1]
        assert "sim&lt;u&gt;lating 25%" in notebook[1]
        assert "left" in notebook[1]
    assert notebook[-1] == ""


def test_a_notebooks_bar_counts_runs(notebook):

    def fails():
        with counted(True, 10, 4) as add:
            add(3)
            assert "7 of 10" in notebook[-1]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert notebook[-1] == ""  # the bar disappears in this case, too


def test_a_bar_is_not_drawn_more_often_than_somebody_looks(notebook, monkeypatch):
    monkeypatch.setattr(progress, "REDRAW_PERIOD", 1e9)
    with progress_function(True) as report:
        for k in range(100):
            report(k / 100)
    assert len(notebook) == 2  # the first display, and its removal


@with_progress_bar
def worked(progress=None):
    if progress is not None:
        progress("reading", 0.5)
    return progress


def test_steps_are_told_by_a_bar_or_a_function(notebook):
    assert worked() is None
    assert worked(progress=False) is None
    assert worked(progress=print) is print
    assert not notebook
    assert callable(worked(progress=True))
    assert "reading 50%" in notebook[0]


def test_a_bar_in_a_terminal(capsys):
    assert callable(worked(progress=True))
    with progress_function(True) as report:
        report(1.0)
