"""load_urdf: all refusals and their error messages."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from urdf_text import BASE, gripper, joint, link, one, urdf

import geomctrl as gc
from geomctrl import models
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError


def declared(what, text):
    return f"<!DOCTYPE robot [{what}]>\n{text}"


TREE = (BASE, link(), joint())
BOMB = '<!ENTITY e0 "boomboomboomboom">' + "".join(f'<!ENTITY e{k} "{10 * f"&e{k - 1};"}">' for k in range(1, 10))
REFUSED = {
    "malformed XML": ('<robot name="r"><link name="a">', r"malformed XML: .*line 1"),
    "not a URDF": ("<mujoco/>", r"expected the root element <robot>, got <mujoco>"),
    "namespace": ('<robot xmlns="http://x" name="r"/>', r"got <\{http://x\}robot>"),
    "unknown entity": (one(body=link(mass="1&m;")), r"malformed XML: Entity 'm' not defined, line 1"),
    "entity of a file": (
        declared('<!ENTITY m SYSTEM "file:///etc/hostname">', one(body=link(mass="1&m;"))),
        r"malformed XML: Entity 'm' not defined, line 2.*; entities of other files are not read",
    ),
    "element of a file": (
        declared('<!ENTITY m SYSTEM "file:///etc/hostname">', urdf(BASE, link(), joint(), "&m;")),
        r"malformed XML: Entity 'm' not defined, line 2.*; entities of other files are not read",
    ),
    "declarations of a file": (
        declared('<!ENTITY % f SYSTEM "file:///etc/hostname"> %f;', one()),
        "malformed XML: Entity 'f' not defined, line 1.*; entities of other files are not read",
    ),
    "a bomb of attributes": (
        one(inside="<axis " + " ".join(f'a{k}="1"' for k in range(30_000)) + "/>"),
        "<axis> has 30000 attributes",
    ),
    "a bomb of entities": (
        declared(BOMB, one(body=link(mass="&e9;"))),
        "malformed XML: Maximum entity amplification factor exceeded",
    ),
    "a bomb of elements": (
        declared(BOMB, urdf(BASE, link(), joint(), "&e9;")),
        "malformed XML: Maximum entity amplification factor exceeded",
    ),
    "entities of themselves": (
        declared('<!ENTITY a "&b;"><!ENTITY b "&a;">', one(body=link(mass="&a;"))),
        "malformed XML: Detected an entity reference loop",
    ),
    "defaults of attributes": (
        declared('<!ATTLIST origin xyz CDATA "0 0 1">', one(inside="<origin/>")),
        "the DOCTYPE declares attributes .*, whose defaults are not read",
    ),
    "half a character": ('<robot name="\ud800"/>', "malformed XML: "),
    "no links": (urdf(), "no links"),
    "unnamed link": (urdf("<link/>"), "a <link> has no name"),
    "unnamed joint": (urdf(BASE, "<joint/>"), "a <joint> has no name"),
    "xacro tag": (
        urdf('<xacro:arm xmlns:xacro="http://www.ros.org/wiki/xacro"/>', *TREE),
        "<xacro:arm> is a xacro macro",
    ),
    "xacro value": (one(inside='<origin xyz="0 0 ${length}"/>'), "<origin> is a xacro macro: expand the file"),
    "duplicate link": (urdf(*TREE, link()), "duplicate link name.*'tip'"),
    "duplicate joint": (urdf(*TREE, link("b"), joint(child="b")), "duplicate joint name.*'j'"),
    "unknown parent": (
        urdf(BASE, link(), joint(parent="bse")),
        "joint 'j': its parent link 'bse' does not exist; did you mean 'base'",
    ),
    "unknown child": (urdf(BASE, link(), joint(child="zz")), "joint 'j': its child link 'zz' does not exist"),
    "two roots": (
        urdf(*TREE, BASE.replace("base", "other")),
        "2 root links, expected one: no joint has 'base', 'other' as",
    ),
    "closed loop": (
        urdf(
            BASE, link("a"), link("b"), joint("1", child="a"), joint("2", child="b"), joint("3", parent="a", child="b")
        ),
        "link 'b' is the child of two joints, '2' and '3': a closed loop",
    ),
    "loop": (
        urdf(BASE, link("a"), link("b"), joint("1", parent="a", child="b"), joint("2", parent="b", child="a")),
        "joint '1': its links form a loop",
    ),
    "itself": (
        urdf(BASE, link(), joint(parent="tip")),
        "joint 'j': its links form a loop through 'tip'",
    ),
    "no type": (one().replace(' type="continuous"', ""), "joint 'j': without a type"),
    "unknown type": (
        one("helical"),
        "joint 'j': of type 'helical', which URDF does not have; expected one of revolute",
    ),
    "no parent": (one().replace('<parent link="base"/>', ""), "joint 'j': no <parent link=...>"),
    "empty child": (one().replace('<child link="tip"/>', '<child link=""/>'), "joint 'j': no <child link=...>"),
    "zero axis": (one(inside='<axis xyz="0 0 0"/>'), "joint 'j': axis: expected a direction, got the zero vector"),
    "axis without xyz": (one(inside='<axis rpy="0 0 1"/>'), "joint 'j': <axis xyz=...> is missing"),
    "two axes": (one(inside="<axis xyz='1 0 0'/><axis xyz='0 1 0'/>"), "joint 'j': 2 <axis> elements"),
    "short axis": (one(inside='<axis xyz="0 1"/>'), "joint 'j': <axis xyz=...>: expected 3 numbers, got '0 1'"),
    "long origin": (one(inside='<origin xyz="0 1 2 3"/>'), "joint 'j': <origin xyz=...>: expected 3 numbers"),
    "words": (one(inside='<origin rpy="a b c"/>'), "joint 'j': <origin rpy=...>: expected 3 numbers, got 'a b c'"),
    "nan axis": (one(inside='<axis xyz="nan 0 0"/>'), "joint 'j': <axis xyz=...>: expected finite numbers"),
    "nan limit": (one("revolute", '<limit lower="nan" upper="1"/>'), "joint 'j': <limit lower=...>: expected finite"),
    "crossed limits": (
        one("revolute", '<limit lower="2" upper="1"/>'),
        "joint 'j': lower limit 2.0 above upper limit 1.0",
    ),
    "negative damping": (one(inside='<dynamics damping="-1"/>'), "joint 'j': .*must not be negative"),
    "misspelt limit": (
        one("revolute", '<limits lower="0" upper="1"/>'),
        "joint 'j': unknown element <limits>; did you mean <limit>",
    ),
    "misspelt inertial": (
        one(body='<link name="tip"><intertial/></link>'),
        "link 'tip': unknown element <intertial>; did you mean <inertial>",
    ),
    "misspelt attribute": (
        one("revolute", '<limit lowr="0" upper="1"/>'),
        "joint 'j': <limit> has an unknown attribute 'lowr'; did you mean lower",
    ),
    "quaternion": (
        one(inside='<origin quat_xyzw="0 0 0 1"/>'),
        "joint 'j': <origin> has an unknown attribute 'quat_xyzw'; expected xyz, rpy",
    ),
    "capital": (urdf(*TREE, '<Link name="x"/>'), "<robot>: unknown element <Link>; did you mean <link>"),
    "no mass": (one(body=link().replace('<mass value="1"/>', "")), "link 'tip': <inertial> has no <mass>"),
    "no mass value": (one(body=link().replace('value="1"', 'weight="1"')), "link 'tip': <mass value=...> is missing"),
    "no inertia": (
        one(body='<link name="tip"><inertial><mass value="1"/></inertial></link>'),
        "<inertial> has no <inertia>",
    ),
    "no ixx": (one(body=link().replace('ixx="1"', "")), "link 'tip': <inertia ixx=...> is missing"),
    "no iyz": (one(body=link().replace('iyz="0"', "")), "link 'tip': <inertia iyz=...> is missing"),
    "two inertials": (one(body=link().replace("</link>", "<inertial/></link>")), "link 'tip': 2 <inertial> elements"),
    "nan mass": (one(body=link(mass="nan")), "link 'tip': <mass value=...>: expected finite numbers, got 'nan'"),
    "infinite inertia": (one(body=link(I="inf 0 0 1 0 1")), "link 'tip': <inertia ixx=...>: expected finite"),
    "comma": (one(body=link(mass="1,5")), "link 'tip': <mass value=...>: expected 1 number, got '1,5'"),
    "massless inertia": (one(body=link(mass="0")), "link 'tip': mass is zero but first moment or inertia is not"),
    "negative moment": (
        one(body=link(I="1 0 0 -1 0 1")),
        "link 'tip': a principal moment of inertia .*is negative: -1, 1, 1",
    ),
    "motionless": (urdf(BASE, link(), joint(kind="fixed")), "no joint that moves"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, tmp_path):
    text, match = REFUSED[case]
    with pytest.raises(ModelError, match=match) as error:
        models.load_urdf(text, physical="required")
    assert str(error.value).startswith("URDF text: ")
    path = tmp_path / "bad.urdf"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ModelError, match=match) as error:
        models.load_urdf(path, physical="required")
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("wrong", "line", "message"),
    [
        ('<joint name="k"/>', 4, "joint 'k': without a type"),
        (link("tip", mass="x"), 4, "duplicate link name(s): 'tip'"),
        ("<link/>", 4, "a <link> has no name"),
        ("<link name='b'>\n<inertial>\n<mass value='1'/>\n</inertial></link>", 5, "<inertial> has no <inertia>"),
        (joint("k", inside="\n<axis xyz='0 0'/>"), 5, "joint 'k': <axis xyz=...>: expected 3 numbers"),
        (joint("k", inside="<axis xyz='0 0 1'/>\n\n<axis xyz='0 0 1'/>"), 6, "joint 'k': 2 <axis> elements"),
        (joint("k", inside="\n<limits/>"), 5, "joint 'k': unknown element <limits>; did you mean <limit>"),
    ],
)
@pytest.mark.parametrize("head", ["", "<?xml version='1.0'?>", "<!-- by hand -->"])
def test_a_refusal_names_the_line(wrong, line, message, head):
    text = "\n".join([head or "\n", "<robot name='r'>", BASE + link() + joint(), wrong, "</robot>"])
    line += not head  # line numbers of text that begins with an empty line count from there
    with pytest.raises(ModelError) as error:
        models.load_urdf(text)
    assert str(error.value).startswith("URDF text: line ")
    assert f"line {line}: " in str(error.value)
    assert message in str(error.value)


def test_bad_arguments(tmp_path):
    with pytest.raises(ArgumentError, match=r"no such file: 'nowhere\.urdf'"):
        models.load_urdf("nowhere.urdf")
    for nothing in (tmp_path, "robot" * 5000, "a\0b"):
        with pytest.raises(ArgumentError, match="no such file"):
            models.load_urdf(nothing)
    with pytest.raises(ArgumentError, match="expected a path or a string of XML, got bytes"):
        models.load_urdf(one().encode())
    reference = "'coupled', 'fixed', 'independent', 'error'"
    with pytest.raises(ArgumentError, match=f"mimic: expected one of {reference}, got 'ignore'"):
        models.load_urdf(one(), mimic="ignore")
    with pytest.raises(ArgumentError, match="physical: expected one of 'reported', 'required', 'unchecked', got True"):
        models.load_urdf(one(), physical=True)
    with pytest.raises(gc.errors.ArgumentError, match="gravity: expected 3 finite numbers"):
        models.load_urdf(one(), gravity=9.81)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_file_is_a_robot_or_a_geomctrl_error(data):
    """Deleting, doubling or changing a part of a correct file never raises another kind of exception, and never
    gives a singular robot.
    """
    text = gripper("revolute")
    i = data.draw(st.integers(0, len(text) - 1))
    n = data.draw(st.integers(1, 40))
    piece = data.draw(st.sampled_from(["", text[i : i + n] * 2, "nan", "-", '"', "<joint/>"]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # elements that are not read
            robot = models.load_urdf(text[:i] + piece + text[i + n :], mimic="independent")
    except GeomctrlError:
        return
    assert np.linalg.eigvalsh(robot.mass_matrix(robot.neutral()))[0] > 0.0
