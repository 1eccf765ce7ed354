"""Terms in straight-line code, for one state, a few and many, equal those of numba's loops."""

from dataclasses import replace

import numpy as np
import pytest

from geomctrl import derivatives, testing

CHAIN = testing.random_robot(np.random.default_rng(2), ["revolute", "prismatic", "revolute"], [-1, 0, 1])
FLOATING = testing.random_robot(np.random.default_rng(3), ["free", "revolute"], [-1, 0])
TERMS = {
    "mass_matrix": lambda r, q, v, a: r.mass_matrix(q),
    "mass_matrix_inverse": lambda r, q, v, a: r.mass_matrix_inverse(q),
    "gravity_force": lambda r, q, v, a: r.gravity_force(q),
    "terms": lambda r, q, v, a: r.terms(q, v),
    "inverse_dynamics": lambda r, q, v, a: r.inverse_dynamics(q, v, a),
    "inverse_dynamics, v_ref": lambda r, q, v, a: r.inverse_dynamics(q, v, a, 0.5 * v),
    "forward_dynamics": lambda r, q, v, a: r.forward_dynamics(q, v, a),
    "regressor": lambda r, q, v, a: r.regressor(q, v, a),
    "energy": lambda r, q, v, a: r.energy(q, v),
    "pose": lambda r, q, v, a: r.pose(q, r.body_names[-1]),
    "jacobian_rate": lambda r, q, v, a: r.jacobian_rate(q, v, r.body_names[-1]),
    "integrate": lambda r, q, v, a: r.integrate(q, v),
    "derivatives": lambda r, q, v, a: derivatives.inverse_dynamics_derivatives(r, q, v, a),
}


def results(robot, term, q, v, a):
    """Return [arrays of the first state, of the first three, of all]."""
    out = []
    for states in (0, slice(3), slice(None)):
        result = term(robot, q[states], v[states], a[states])
        out.append([np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))])
    return out


@pytest.mark.parametrize("robot", [CHAIN, pytest.param(FLOATING, marks=pytest.mark.slow)], ids=["chain", "floating"])
@pytest.mark.parametrize("name", TERMS)
@pytest.mark.usefixtures("compiled_terms")
def test_straight_line_code_is_the_loops(robot, name, monkeypatch):
    rng = np.random.default_rng(4)
    q = np.stack([robot.random_configuration(rng) for _ in range(40)])
    v, a = rng.normal(size=(2, 40, robot.nv))
    straight = replace(robot)
    compiled = results(straight, TERMS[name], q, v, a)
    assert any(straight._code.structure.addresses.values()), "nothing was compiled"
    monkeypatch.setenv("GEOMCTRL_COMPILER", "off")
    loops = results(replace(robot), TERMS[name], q, v, a)
    for ours, theirs in zip(compiled, loops, strict=True):
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12 * max(1.0, np.abs(y).max()))
    for one, few, many in zip(*compiled, strict=True):
        np.testing.assert_allclose(few, many[:3], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(one, many[0], rtol=1e-10, atol=1e-12)
