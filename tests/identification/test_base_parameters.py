"""Base parameters: published ranks, two independent ways to them, textbook names, directions no torque depends on."""

import numpy as np
import pytest

from geomctrl import Robot, inertia, models
from geomctrl.identification import base_parameters
from geomctrl.identification.model.regressor_model import reduce_columns

RAD = np.pi / 180
BODY = inertia.from_com(1.0, (0.1, 0.05, 0.02), np.diag([0.03, 0.04, 0.05]))


def tx40(gravity=(0, 0, -9.81)):
    return Robot.from_dh(
        [0, 0, 0.225, 0, 0, 0], RAD * np.array([0, -90, 0, 90, -90, 90]), [0.32, 0, 0.035, 0.225, 0, 0],
        RAD * np.array([0, 0, 0, 0, 0, 180]), convention="modified", inertias=[BODY] * 6, gravity=gravity,
    )  # fmt: skip


def planar(gravity):
    return Robot.from_dh(
        [0.5, 0.4, 0.3], [0] * 3, [0] * 3, [0] * 3, convention="modified", inertias=[BODY] * 3, gravity=gravity
    )


ROBOTS = {
    "panda": (models.panda, 43),
    "ur10": (models.ur10, 36),
    "tx40": (tx40, 36),
    "tx40 tilted": (lambda: tx40((1.0, 2.0, -9.0)), 38),
    "planar, horizontal": (lambda: planar((0, 0, -9.81)), 7),
    "planar, vertical": (lambda: planar((0, -9.81, 0)), 9),
    "puma560": (models.puma560, 36),
    "quadruped": (models.quadruped, None),  # floating base, branches
    "three_spheres": (models.three_spheres, None),
    "scara": (models.scara, None),  # a prismatic joint
}


@pytest.mark.parametrize("name", ROBOTS)
def test_exact_and_sampled_reductions_agree_on_published_ranks(name):
    make, rank = ROBOTS[name]
    robot = make()
    exact, sampled = base_parameters(robot, exact=True), base_parameters(robot)
    assert exact.size == sampled.size
    assert rank is None or exact.size == rank
    # the same combinations: each projection is a linear map of the other
    change = exact.projection @ np.linalg.pinv(sampled.projection)
    np.testing.assert_allclose(change @ sampled.projection, exact.projection, atol=1e-11)


@pytest.mark.parametrize("name", ["panda", "planar, vertical", "quadruped", "scara"])
def test_base_parameters_predict_all_torques(name):
    robot, rng = ROBOTS[name][0](), np.random.default_rng(4)
    base = base_parameters(robot, exact=True)
    q = np.array([robot.random_configuration(rng) for _ in range(20)])
    v, a = rng.normal(size=(2, 20, robot.nv))
    Y = robot.regressor(q, v, a)
    tau = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        Y[..., base.columns] @ (base.projection @ robot.parameters.ravel()), tau, atol=1e-9 * np.abs(tau).max()
    )
    # and a change along the null space has no effect
    null = base.null_space()
    assert null.shape == (10 * robot.nbodies, 10 * robot.nbodies - base.size)
    assert np.linalg.matrix_rank(null) == null.shape[1]
    assert np.abs(Y @ null).max() < 1e-11 * np.abs(Y).max()


def test_names_of_the_vertical_planar_arm_are_the_textbook_ones():
    base = base_parameters(planar((0, -9.81, 0)), exact=True)
    assert base.names == (
        "m1 c1x + 0.4 m2 + 0.4 m3", "m1 c1y", "Izz1 + 0.16 m2 + 0.16 m3",
        "m2 c2x + 0.3 m3", "m2 c2y", "Izz2 + 0.09 m3",
        "m3 c3x", "m3 c3y", "Izz3",
    )  # fmt: skip


def test_names_evaluate_to_the_projection():
    robot = models.ur10()
    base = base_parameters(robot, exact=True)
    pi = robot.parameters
    values = {}
    for i, (m, hx, hy, hz, *I) in enumerate(pi, 1):
        values |= {f"m{i}": m, f"m{i} c{i}x": hx, f"m{i} c{i}y": hy, f"m{i} c{i}z": hz}
        values |= {f"I{ab}{i}": x for ab, x in zip(("xx", "xy", "yy", "xz", "yz", "zz"), I)}
    for name, value in zip(base.names, base.projection @ pi.ravel()):
        total = 0.0
        for term in name.replace(" - ", " + -").split(" + "):
            sign, term = (-1.0, term[1:]) if term.startswith("-") else (1.0, term)
            head, _, rest = term.partition(" ")
            coefficient, key = (float(head), rest) if head.replace(".", "").replace("e-", "").isdigit() else (1.0, term)
            total += sign * coefficient * values[key]
        assert total == pytest.approx(value, rel=2e-3, abs=2e-3)  # names have four digits


def test_lift_keeps_the_base_and_stays_near_the_prior():
    robot = models.panda()
    base = base_parameters(robot, exact=True)
    prior = robot.parameters.ravel()
    values = base.projection @ prior + np.linspace(0, 1e-3, base.size)
    x = base.lift(values, prior)
    np.testing.assert_allclose(base.projection @ x, values, atol=1e-12)
    assert np.abs(base.null_space().T @ (x - prior)).max() < 1e-12  # no change in directions without effect


def test_columns_of_rounding_errors_are_no_parameters():
    """The Panda's alignment leaves columns of 1e-17, which looked independent when scaled to unit length."""
    assert [base_parameters(models.panda(), seed=s).size for s in range(4)] == [43] * 4


def test_parallel_columns_are_chosen_alike_whatever_the_rounding():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(200, 8))
    Y = np.concatenate((Y, 3.0 * Y, Y @ rng.normal(size=(8, 1))), -1)  # each column twice, and a sum
    chosen = {tuple(reduce_columns(Y * (1.0 + 4e-16 * rng.integers(-1, 2, Y.shape))).columns) for _ in range(50)}
    assert len(chosen) == 1
