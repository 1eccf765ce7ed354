"""`geomctrl identify --export`: the user's own file, in place or elsewhere, and a C header."""

import re
from pathlib import Path

import numpy as np
import pytest
from cli.identify_logs import run, simulated, write

from geomctrl import models
from geomctrl.cli.identify_options import OutputOptions
from geomctrl.errors import ArgumentError
from geomctrl.models.io.model_file import load_model

LINK = (
    '  <link name="l{k}">\n    <!-- link {k} -->\n    <visual><geometry><mesh filename="package://a/l{k}.stl"/></geometry>'
    "</visual>\n  </link>\n"
    '  <joint name="joint{k}" type="revolute"><parent link="{p}"/><child link="l{k}"/><origin xyz="{x} 0 0"/>\n'
    '    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="500" velocity="9"/></joint>\n'
)
URDF = (
    '<robot name="arm">\n  <link name="base"/>\n'
    + LINK.format(k=1, p="base", x=0)
    + LINK.format(k=2, p="l1", x=0.4)
    + '  <link name="tool"><inertial><mass value="0.5"/><inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0"'
    ' izz="1e-3"/></inertial></link>\n'
    '  <joint name="flange" type="fixed"><parent link="l2"/><child link="tool"/></joint>\n</robot>\n'
)


@pytest.fixture
def files(tmp_path):
    t, q, tau, _, _ = simulated()
    (tmp_path / "arm.urdf").write_text(URDF)
    return write(tmp_path / "log.csv", t, q, tau), tmp_path / "arm.urdf"


def identified(files, *arguments, status=0):  # the log is of another arm, which the assessment reports
    log, urdf = files
    return run(log, "--robot", urdf, "--cutoff", 15, "--prior-weight", 1e-4, "--no-plots", "--ignore", "all", "--out",
               urdf.parent / "out", *arguments, status=status)  # fmt: skip


def test_the_robots_own_file_in_place_with_friction_and_a_header(files):
    path = files[1]
    header = path.parent / "arm.h"
    said = identified(files, "--export", path, "--export-friction", "--export", header)
    assert f"wrote {path}" in said.replace("\n", "")
    after = path.read_text()
    kept = re.sub(r"\n *<inertial>.*?</inertial>|<inertial>.*?</inertial>|<dynamics[^>]*>", "", after, flags=re.S)
    assert kept.replace("<!-- its inertia is part of link 'l2' -->", "") == re.sub("<inertial>.*</inertial>", "", URDF)
    robot, back = load_model(path.parent / "out" / "robot.json"), models.load_urdf(path)
    np.testing.assert_allclose(back.parameters, robot.parameters, atol=1e-13 * np.abs(robot.parameters).max())
    np.testing.assert_array_equal(back.damping, robot.damping)
    assert repr(float(robot.parameters[1, 4])) in header.read_text()


def test_another_file_leaves_the_robots_own(files):
    out = files[1].parent / "deep" / "new.urdf"
    identified(files, "--export", out)
    assert files[1].read_text() == URDF
    assert "dynamics" not in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--export", "arm.xml"), "--export arm.xml: expected .urdf, as ROBOT is, or .h"),
        (("--robot", "two_link", "--export", "x.urdf"), "--robot specified multiple times"),
    ],
)
def test_what_can_not_be_exported_is_said_before_the_fit(files, arguments, message):
    said = identified(files, *arguments, status=2)
    assert message in said.replace("\n", " ")
    assert not (files[1].parent / "out").exists()


def test_bundled_robots_have_no_file_to_export_to(files):
    with pytest.raises(ArgumentError, match="for robots of URDF or MJCF files, not for 'two_link'"):
        OutputOptions(export=[Path("x.urdf")]).check("two_link", models.two_link())


def test_files_that_can_not_be_written_in_place_are_said_before_the_fit(files):
    path = files[1]
    path.chmod(0o444)
    assert "is read-only: write to another file" in identified(files, "--export", path, status=2).replace("\n", " ")
    path.chmod(0o644)
    path.write_text(URDF.replace("<robot", '<!DOCTYPE robot [<!ENTITY x "3">]>\n<robot'))
    said = identified(files, "--export", path, status=2).replace("\n", " ")
    assert "line 1: entity 'x': the text that it expands to can not be edited in place" in said
    assert not (path.parent / "out").exists()
