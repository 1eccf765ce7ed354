"""Progress bars move on terminals, and leave nothing in files and in the cells of notebooks."""

import io

import pytest
from cli.command_line import run

from geomctrl.cli.terminal import progress_bar, stdout_console
from geomctrl.control.progress import counted, progress_function
from geomctrl.output import moves, transcript


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def environment(monkeypatch):
    for name in ("JPY_PARENT_PID", "MPLBACKEND", "FORCE_COLOR", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-color")  # ipykernel's
    return monkeypatch


def written(monkeypatch, output):
    """Return what all kinds of bars leave on standard output."""
    monkeypatch.setattr("sys.stdout", output)
    console = stdout_console()
    with progress_bar(console) as bar:
        bar.update(bar.add_task("law", total=1.0), completed=0.5)
    with console.status("drawing"):
        pass
    with progress_function(True) as report:
        report(0.5)
    with counted(True, 10, 0) as add:
        add(5)
    return output.getvalue()


def test_bars_move_on_a_terminal(environment):
    text = written(environment, Terminal())
    assert "law" in text
    assert "\x1b[?25l" in text  # no cursor
    assert moves()


@pytest.mark.parametrize(
    "set_by_a_kernel",
    [{"JPY_PARENT_PID": "7"}, {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}],
)
@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_a_cell_keeps_nothing_of_bars_and_has_colours(environment, set_by_a_kernel, kind):
    for name, value in ({"FORCE_COLOR": "1"} | set_by_a_kernel).items():
        environment.setenv(name, value)
    output = kind()
    assert written(environment, output) == ""
    stdout_console().print("VIOLATED", style="red")
    assert "\x1b[31mVIOLATED" in output.getvalue()


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}])
def test_a_file_keeps_nothing_of_bars_and_holds_whole_tables(environment, variables):
    for name, value in variables.items():
        environment.setenv(name, value)
    assert written(environment, io.StringIO()) == ""
    assert stdout_console().width == 110


@pytest.mark.parametrize("in_a_kernel", [False, True])
def test_text_that_is_kept_is_plain_also_in_a_notebook(environment, in_a_kernel):
    environment.setenv("FORCE_COLOR", "1")
    environment.setattr("rich.console._is_jupyter", lambda: in_a_kernel)
    console, text = transcript()
    console.print("VIOLATED", style="red")
    assert text() == "VIOLATED\n"


def test_a_notebooks_report_is_plain(environment, tmp_path):
    environment.setenv("FORCE_COLOR", "1")
    environment.delenv("TERM")
    law = ["--controller", "pd-gravity", "--seconds", "0.01", "--no-plots", "--no-compare"]
    run("track", "two_link", *law, "--out", tmp_path)
    assert "\x1b" not in (tmp_path / "report.txt").read_text(encoding="utf-8")


def test_without_standard_output(environment):
    environment.setattr("sys.stdout", None)  # pythonw
    assert not moves()
