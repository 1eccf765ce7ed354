"""With numpy 1.26 and the installed version, in its usual folder or another: calls in machine code, and traces."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import geomctrl
from geomctrl import models

OLD = Path(sys.prefix) / "numpy1"  # made by `make numpy1`
SCRIPT = """
import gc, json, sys
import numpy as np
from geomctrl import models
from geomctrl.tracing.backends import entries

robot, q = models.panda(), np.linspace(-1.0, 1.0, 7)
mass_matrix, terms = robot._code.mass_matrix, robot._code.terms

class Other(np.ndarray):
    pass

before = sys.getrefcount(q), sys.getrefcount(None)
for _ in range(10_000):
    M, x = mass_matrix(q), terms(q, q)
kept = sys.getrefcount(q) - before[0], abs(sys.getrefcount(None) - before[1]) < 100, sys.getrefcount(M) - 2
others = q[:6], q[None], q * np.nan, q.astype("f4"), q.astype(">f8"), q.view(Other), q[::-1]
refused = [mass_matrix(y) for y in others]
small = [sys.getsizeof(y) for y in (M, x.g)]
del M, x
gc.collect()
print(json.dumps({
    "version": np.__version__, "works": entries.works(), "numba": "numba" in sys.modules, "kept": kept, "size": small,
    "refused": all(y is None for y in refused), "M": mass_matrix(q).tolist(), "C": terms(q, q).C.tolist(),
    "class": type(terms(q, q)).__name__, "tau": robot.inverse_dynamics(q, q, q).tolist(),
}))
"""


TRACED = """
import sys
import numpy as np
from geomctrl import models
from geomctrl.tracing import trace

assert np.__file__.startswith(sys.argv[1]), np.__file__
robot, q = models.two_link(), [0.3, 0.2]
for f in (lambda q: np.sin(robot.gravity_force(q)) + np.float64(2.0) * q[0], robot.mass_matrix_inverse):
    compiled = trace(f, 2).to_llvm()
    print(np.abs(compiled(np.array(q)) - f(np.array(q))).max() < 1e-14)
"""


def answers(*folders):
    path = os.pathsep.join(map(str, (*folders, Path(geomctrl.__file__).parents[1])))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("folders", "version"),
    [
        ((), np.__version__),
        pytest.param(
            (OLD,), "1.26.4", marks=pytest.mark.skipif(not OLD.is_dir(), reason="no numpy 1.26 (make numpy1)")
        ),
    ],
    ids=["installed", "1.26"],
)
def test_calls(folders, version):
    found, robot, q = answers(*folders), models.panda(), np.linspace(-1.0, 1.0, 7)
    assert (found["version"], found["works"], found["numba"]) == (version, True, False)
    assert (found["kept"], found["refused"], found["class"]) == ([0, True, 0], True, "Terms")
    np.testing.assert_allclose(found["M"], robot.mass_matrix(q), rtol=1e-13)
    np.testing.assert_allclose(found["C"], robot.terms(q, q).C, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found["tau"], robot.inverse_dynamics(q, q, q), rtol=1e-13, atol=1e-13)
    assert found["size"] == [np.zeros((7, 7)).__sizeof__(), np.zeros(7).__sizeof__()]


def traced(folder):
    path = os.pathsep.join(map(str, (folder, Path(geomctrl.__file__).parents[1])))
    command, environment = [sys.executable, "-c", TRACED, str(folder)], os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_traces_with_numpy_in_a_folder_of_its_own(tmp_path):
    """As with Debian's packages or a folder of PYTHONPATH: numpy there is no user's code."""
    for path in Path(np.__file__).parents[1].glob("numpy*"):
        (tmp_path / path.name).symlink_to(path)
    traced(tmp_path)


@pytest.mark.skipif(not OLD.is_dir(), reason="no numpy 1.26 (make numpy1)")
def test_traces_with_numpy_1():
    traced(OLD)
