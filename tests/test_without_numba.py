"""Kernels without numba, for debugging: NUMBA_DISABLE_JIT=1 does not change results."""

import os
import subprocess
import sys

import numpy as np
import pytest

COMPUTE = """
import numpy as np
import geomctrl as gc
from geomctrl import controllers, derivatives, groups, models, references
from geomctrl.papers import curvature
from geomctrl.papers.constrained import ConstrainedBody, ConstrainedSystem, Constraint, integrate_index1

out = []
for robot in (models.two_link(), models.three_spheres()):
    rng = np.random.default_rng(0)
    q, (v, a) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    out += [robot.mass_matrix(q), robot.mass_matrix(q.tolist()), robot.mass_matrix(np.tile(q, (3, 1)))]
    out += [robot.forward_dynamics(q, v, a), *robot.terms(q, v), robot.integrate(q, v)]
    out += [derivatives.mass_matrix_derivative(robot, q), curvature.christoffel_symbols(robot, q)]
    out += [robot.mass_matrix_solve(q, v), robot.jacobian(q, robot.body_names[-1])]
    out.append(robot.inverse_dynamics(q, v, a))
    out.append(gc.rollout(robot, q, v, None, 0.005, 0.001).v)
arm = models.two_link()
out.append(arm.mass_matrix(np.array([1, 2], np.int8)))
out.append(derivatives.mass_matrix_derivative(arm, np.array([1, 2], np.int8)))
law = controllers.SlotineLi(arm, references.Quintic(arm, [0.0, 0.0], [1.0, 0.5], 1.0))
choices = [gc.SimulationOptions(compiled=c) for c in (False, "auto")]
out += [gc.simulate(arm, law, [0.1, 0.0], [0.0, 0.0], 0.005, 0.001, options=c).q for c in choices]
out += [groups.SE3().advance(np.eye(4), np.ones(6)), gc.so3.log(np.diag([1.0, -1.0, -1.0]))]
body = ConstrainedBody("a", gc.inertia.from_com(1.0, (0, 0, 0.5), np.eye(3)), np.eye(4))
system = ConstrainedSystem([body], [Constraint("revolute", "j", ("world", "a"), axis=(0, 1, 0))])
out.append(integrate_index1(system, system.state(), (0.0, 0.02), 0.01).y)
masked = np.ma.masked_array([1.0, 2.0], [True, False])
for bad in (np.array([1.0, np.nan]), np.array([1.0, 2.0 + 1j]), masked, [1.0], "q"):
    for term in (gc.Robot.mass_matrix, derivatives.mass_matrix_derivative, curvature.christoffel_symbols):
        try:
            term(arm, bad)
        except gc.ArgumentError:
            continue
        raise AssertionError(f"{term} takes {bad}")
np.savez({PATH!r}, *out)
"""


def computed(path, environment):
    script = COMPUTE.replace("{PATH!r}", repr(str(path)))
    subprocess.run([sys.executable, "-c", script], env=os.environ | environment, check=True, timeout=600)
    with np.load(path) as file:
        return [file[name] for name in file.files]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return computed(tmp_path_factory.mktemp("compiled") / "compiled.npz", {})


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["off", "on"])
def test_what_comes_out_is_the_same(tmp_path, compiler, expected):
    environment = {"NUMBA_DISABLE_JIT": "1", "GEOMCTRL_COMPILER": compiler}
    result = computed(tmp_path / "plain.npz", environment)
    assert len(result) == len(expected)
    for x, y in zip(expected, result):
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-11 * max(1.0, np.abs(x).max()))
