"""Display of robots and runs in notebooks."""

from html.parser import HTMLParser

import numpy as np

import geomctrl as gc
from geomctrl import controllers, models


class Cells(HTMLParser):
    """The texts of a table's cells; checks that all tags are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_a_robot_is_a_table_of_its_joints():
    robot = models.panda()
    cells = Cells(robot._repr_html_()).cells
    assert set(robot.joint_names) <= set(cells)
    assert [f"{m:.4g}" in cells for m in robot.parameters[:, 0]] == [True] * robot.nbodies


def test_names_are_text_and_not_html():
    body = gc.Body(
        "<b>arm</b>", None, gc.Joint.revolute((0, 1, 0)), None, gc.inertia.from_com(1.0, (0, 0, 1), np.eye(3))
    )
    cells = Cells(gc.Robot.build([body])._repr_html_()).cells
    assert "<b>arm</b>" in cells


def test_a_run_is_a_table_of_its_monitors_and_a_picture(tmp_path):
    robot = models.two_link()
    law = controllers.PDGravity(robot, [0.3, 0.4])
    run = gc.simulate(gc.Plant(robot), law, [0.0, 0.1], np.zeros(2), t_end=0.05, dt=1e-3)
    cells = Cells(run._repr_html_()).cells
    assert set(run.monitors) <= set(cells)
    assert cells.count("held") == len(run.monitors)
    assert run.plot()._repr_png_().startswith(b"\x89PNG")
    assert not list(tmp_path.iterdir())


def test_a_loaded_run_still_says_how_it_tracked(tmp_path):
    robot = models.two_link()
    law = controllers.Passivity(robot, gc.references.hold(robot, [0.3, 0.4]))
    run = gc.simulate(gc.Plant(robot), law, [0.0, 0.1], np.zeros(2), t_end=0.05, dt=1e-3)
    said = [line for line in run.summary().split("\n") if line.startswith("tracking RMS")]
    again = [x for x in gc.Run.load(run.save(tmp_path / "run.npz")).summary().split("\n") if x.startswith("tracking")]
    assert len(said) == len(again) == 1
    for name in robot.dof_names:
        said[0] = said[0].replace(f"{name} ", "")
    assert said == again
