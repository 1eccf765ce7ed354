"""Parameters as a C header: a C program that includes it has the robot's numbers, to the last bit."""

import shutil
import subprocess

import numpy as np
import pytest

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.models.io.writing import save_c_header

EXTRA = {"identified": {"fv1": 0.1 + 0.2, "gas */ spring": -1e-300}, "smoothing": 0.01, "log": "a/*b", "method": "wls"}
PROGRAM = """
#include <stdio.h>
#include "{header}"
int main(void) {{
    const double *all[] = {{
        &{n}_parameters[0][0], {n}_damping, {n}_friction, {n}_gravity, {n}_identified, &{n}_smoothing}};
    const int count[] = {{10 * {N}_BODIES, {N}_JOINTS, {N}_JOINTS, 3, 2, 1}};
    for (int k = 0; k < 6; k++) for (int i = 0; i < count[k]; i++) printf("%a\\n", all[k][i]);
    return 0;
}}
"""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_program_has_the_robots_numbers(language, tmp_path):
    compiler = shutil.which({"c": "cc", "c++": "c++"}[language])
    if compiler is None:
        pytest.skip(f"no {language} compiler")
    robot = models.panda()
    save_c_header(robot, tmp_path / "deep" / "robot.h", EXTRA)
    file = tmp_path / f"main.{language.replace('+', 'p')}"
    file.write_text(PROGRAM.format(header="deep/robot.h", n="panda", N="PANDA"))
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", *(["-std=c99"] if language == "c" else [])]
    subprocess.run([compiler, *flags, str(file), "-o", str(tmp_path / "main")], check=True)
    out = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True).stdout
    expected = [robot.parameters.ravel(), robot.damping, robot.friction, robot.gravity, [0.1 + 0.2, -1e-300, 0.01]]
    np.testing.assert_array_equal([float.fromhex(x) for x in out.split()], np.concatenate(expected))


def test_names_of_c(tmp_path):
    text = save_c_header(models.two_link(), tmp_path / "a.h", name="arm2").read_text()
    assert "static const double arm2_parameters[2][10] = {" in text
    assert "/* link1 */" in text
    with pytest.raises(ArgumentError, match="name: expected a name in C, got '2arm'"):
        save_c_header(models.two_link(), tmp_path / "b.h", name="2arm")
    assert not (tmp_path / "b.h").exists()
