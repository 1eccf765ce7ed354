"""Terms called from a user's own numba functions."""

import numba
import numpy as np
import pytest
from traced_cases import TREES

import geomctrl as gc
from geomctrl import interop, models
from geomctrl.compiler.catalogue import CATALOGUE


@pytest.mark.slow
@pytest.mark.parametrize("robot", [TREES[3], TREES[0]], ids=lambda r: r.name)
def test_terms_are_those_of_the_methods(robot):
    rng = np.random.default_rng(0)
    q, v, a, f_ext = (
        robot.random_configuration(rng),
        *rng.normal(size=(2, robot.nv)),
        rng.normal(size=(robot.nbodies, 6)),
    )
    frame = robot.body_names[-1]
    terms, external = interop.to_numba(robot, "terms"), interop.to_numba(robot, "inverse_dynamics_external")
    rate = interop.to_numba(robot, "jacobian_rate", frame=frame, representation="hybrid")

    @numba.njit
    def together(q, v, a, f_ext):
        x = terms(q, v)
        return x.M @ a + x.C @ v + x.g, external(q, v, a, v, f_ext), rate(q, v)

    tau, loaded, dJ = together(q, v, a, f_ext)
    scale = np.abs(tau).max()
    np.testing.assert_allclose(tau, robot.inverse_dynamics(q, v, a), rtol=1e-11, atol=1e-12 * scale)
    np.testing.assert_allclose(loaded, robot.inverse_dynamics(q, v, a, f_ext=f_ext), rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(dJ, robot.jacobian_rate(q, v, frame, "hybrid"), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_every_term_is_callable():
    robot, rng = models.scara(), np.random.default_rng(1)
    for name, (algorithm, options, _, given) in CATALOGUE.items():
        sizes = robot._code.sizes
        inputs = [rng.normal(size=sizes.shape(x)) for x in algorithm.inputs if not x.optional or x.name in given]
        created = interop.to_numba(robot, name)(*inputs)
        expected = robot._code.one(algorithm, given, **options)(*inputs)
        for y, z in zip(*(x if isinstance(x, tuple) else (x,) for x in (created, expected))):
            np.testing.assert_array_equal(y, z, err_msg=name)


def test_a_loop_of_ones_own():
    """A thousand steps in numba: the function frees its stack memory after every call."""
    robot = models.two_link()
    forward = interop.to_numba(robot, "forward_dynamics")

    @numba.njit
    def fall(q, v, h, steps):
        for _ in range(steps):
            v = v + h * forward(q, v, np.zeros(2))
            q = q + h * v
        return q, v

    q, v = fall(np.array([0.1, 0.2]), np.zeros(2), 1e-4, 100_000)
    assert np.isfinite([*q, *v]).all()
    result = fall(np.array([0.1, 0.2]), np.zeros(2), 1e-3, 200)
    q, v = np.array([0.1, 0.2]), np.zeros(2)
    for _ in range(200):
        v = v + 1e-3 * robot.forward_dynamics(q, v, np.zeros(2))
        q = q + 1e-3 * v
    np.testing.assert_allclose(result, (q, v), rtol=1e-12)


def test_what_it_refuses():
    robot = models.two_link()
    mass_matrix = interop.to_numba(robot, "mass_matrix")
    with pytest.raises(ValueError, match=r"mass_matrix: expected q \(2,\)"):
        mass_matrix(np.zeros(3))
    negative = robot.with_parameters(robot.parameters * [[1.0], [-1.0]], physical=False)
    with pytest.raises(ValueError, match="forward_dynamics: no result"):
        interop.to_numba(negative, "forward_dynamics")(np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(gc.ArgumentError, match="frame: expected the name of one for the term 'pose', got None"):
        interop.to_numba(robot, "pose")
    with pytest.raises(gc.ArgumentError, match="frame: expected None for the term 'terms', got 'tool'"):
        interop.to_numba(robot, "terms", frame="tool")
    with pytest.raises(gc.NameNotFoundError, match="got 'power'"):
        interop.to_numba(robot, "power")


def test_without_the_compiler(monkeypatch):
    monkeypatch.setenv("GEOMCTRL_COMPILER", "off")
    with pytest.raises(gc.ModelError, match="the compiler is off"):
        interop.to_numba(models.two_link(), "terms")
