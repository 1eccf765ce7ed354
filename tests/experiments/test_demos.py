"""The gallery: each example runs as a user runs it, draws its picture and says what is true.

Every claim is about a number that is known otherwise: a closed form, statics, what was put in, a law of conservation.
"""

import ast
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq

from geomctrl import so3

DEMOS = Path(__file__).parents[2] / "experiments" / "demos"
NAMES = sorted(path.stem for path in DEMOS.glob("*.py"))
CLAIMS = {}


def claim(check):
    """Mark a test as the one for the example of its name."""
    CLAIMS[check.__name__] = check
    return check


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """Run an example by its name and return its variables."""
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")

    def run(name):
        try:
            found = runpy.run_path(str(DEMOS / f"{name}.py"), run_name="__main__")
            assert (tmp_path / "out" / "demos" / f"{name}.png").stat().st_size > 10_000
            assert plt.get_fignums() == [1]
            return found
        finally:
            plt.close("all")
            plt.rcdefaults()

    return run


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_and_has_a_title_and_words(name):
    source = (DEMOS / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, words = ast.get_docstring(tree).partition("\n\n")
    assert len(title) < 60, title
    assert not title.endswith("."), title
    assert 2 <= words.count(". ") + words.count(".\n") + 1 <= 5, words
    code = [line for line in source.splitlines()[tree.body[0].end_lineno :] if line.strip()]
    assert 15 <= len(code) <= 60, len(code)


def test_every_example_has_its_claim():
    assert sorted(CLAIMS) == NAMES
    assert len(NAMES) == 20


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_what_is_true(name, demo, capsys):
    found = demo(name)
    assert capsys.readouterr().out
    CLAIMS[name](found)


@claim
def pd_and_computed_torque(found):
    """Both poles at -5: e = (1 + 5 t) exp(-5 t) e0."""
    run = found["runs"]["computed torque"]
    wanted = 0.1 * ((1.0 + 5.0 * run.t) * np.exp(-5.0 * run.t))[:, None]
    np.testing.assert_allclose(run.tracking_error(), np.tile(wanted, 7), rtol=0, atol=1e-7)
    assert found["off"]["PD"][-1000:].min() > 10.0


@claim
def unknown_load(found):
    assert found["mass"][-1] == pytest.approx(2.0, rel=0.02)
    assert np.diff(found["runs"]["adaptive"].signals["lyapunov"]).max() < 1e-9
    ends = {name: np.linalg.norm(run.tracking_error()[-1000:]) for name, run in found["runs"].items()}
    assert ends["adaptive"] < 0.1 * ends["fixed model"]


@claim
def wrong_coriolis(found):
    skew, plain = found["off"].values()
    assert plain > 100.0 * skew
    assert (found["measured"] > 1.0).any()  # V grows


@claim
def impedance_at_a_wall(found):
    """Statics: a linear spring in series with Hertz' contact."""
    for stiffness, force in found["force"].items():
        at_rest = brentq(lambda f, k=stiffness: f - k * (0.04 - (f / 3e5) ** (2.0 / 3.0)), 0.0, 40.0)
        assert force[-1] == pytest.approx(at_rest, rel=0.02)
        assert (force[force.argmax() :] > 0.0).all()  # the tool does not bounce


@claim
def collision(found):
    """A first-order lag of the external torque, with r held between samples: r+ = r + K (impulse of a sample - r
    dt).
    """
    t, felt, true = found["run"].t, found["felt"], found["true"]
    lagged = np.zeros_like(true)
    for k in range(len(t) - 1):
        lagged[k + 1] = lagged[k] + 200.0 * 1e-3 * (0.5 * (true[k] + true[k + 1]) - lagged[k])
    np.testing.assert_allclose(felt, lagged, rtol=0, atol=0.1)  # N m
    assert 0.0 < found["late"] < 0.02
    before = t < found["start"]
    assert not found["run"].signals["contact"][before].any()


@claim
def quadrotor_upside_down(found):
    R = found["R"]
    np.testing.assert_allclose(R.swapaxes(1, 2) @ R, np.tile(np.eye(3), (len(R), 1, 1)), rtol=0, atol=1e-9)
    assert found["tilt"][0] == pytest.approx(170.0, abs=0.01)
    assert found["tilt"][-1] < 1.0
    assert found["off"][-1] < 2e-3 < 0.3 < found["off"].max()


@claim
def satellite(found):
    """Wheels rotate the hub, but the total angular momentum is constant."""
    run = found["run"]
    P = found["satellite"].momentum(run.q, run.v)
    wheel = 100.0 / (6000.0 * 2.0 * np.pi / 60.0) * abs(run.v[:, 3:]).max()  # N m s, of the fastest wheel
    assert wheel > 1.0
    assert run.ok  # V, and the limits of torques and speeds
    np.testing.assert_allclose(P, np.tile(P[0], (len(P), 1)), rtol=0, atol=1e-4 * wheel)
    assert found["angle"][0] == pytest.approx(np.degrees(np.linalg.norm([1.6, 1.4, -2.1])), abs=1e-6)
    assert found["angle"][-1] < 1.0


@claim
def swing_up(found):
    """The work of the force is the growth of the energy, and at the end the pole is upright."""
    run, cart = found["run"], found["cart"]
    work = np.trapezoid(run.tau[:, 0] * run.v[:, 0], run.t)
    E = cart.energy(run.q, run.v)
    assert E[-1] - E[0] == pytest.approx(2 * 0.1 * 9.81 * 0.5, rel=0.01)
    assert work == pytest.approx(E[-1] - E[0], rel=0.01)
    assert abs(np.sin(run.q[-1, 1])) < 1e-3 < np.cos(run.q[-1, 1])


@claim
def behind_encoders(found):
    best = list(found["best"].values())
    assert best == sorted(best)
    assert best[0] < 150.0 < best[-1]


@claim
def payload_and_gain(found):
    """The hatched region is the one that the joints can not hold by statics."""
    table, robot = found["table"], found["robot"]
    for payload, limited in zip(table.payload.values, found["limited"].values.T):
        held = robot.with_payload(payload, (0.0, 0.0, 0.1)).gravity_force(found["home"])
        if (abs(held) > robot.limits.effort).any():
            assert limited.all(), payload
        if payload < 2.0:
            assert not limited.any(), payload
    assert found["fast"] < 0.1 * found["slow"]


@claim
def identify_payload(found):
    load = found["identified"]
    assert load.mass == pytest.approx(found["mass"], abs=0.01)
    np.testing.assert_allclose(load.centre, found["centre"], rtol=0, atol=1e-3)
    low, high = load.intervals["mass"]
    assert 1e-3 < high - low < 0.05


@claim
def robot_from_dh(found):
    """The product of the table's transformations, written by hand."""
    T, weights = np.eye(4), []
    for k in range(6):
        angle = found["postures"][-1][k]
        Rz, Rx = so3.exp([0.0, 0.0, angle]), so3.exp([found["alpha"][k], 0.0, 0.0])
        step = np.eye(4)
        step[:3, :3] = Rz @ Rx
        step[:3, 3] = Rz @ [found["a"][k], 0.0, 0.0] + [0.0, 0.0, found["d"][k]]
        T = T @ step
        np.testing.assert_allclose(found["robot"].pose(found["postures"][-1], f"link{k + 1}"), T, rtol=0, atol=1e-12)
        weights.append(9.81 * found["mass"][k] * (T[:3, :3] @ found["com"][k] + T[:3, 3]))
    assert abs(found["torque"][-1, 1]) == pytest.approx(abs(sum(weights[1:])[0]), rel=1e-9)


@claim
def four_bar(found):
    """About the axis of the crank: the rate of angular momentum is the moment of the weights and of the bearing's
    force.
    """
    robot, path = found["robot"], found["path"]
    q, v = path.y[:, :3], path.y[:, 3:]
    assert abs(found["gap"]).max() < 1e-12
    assert np.ptp(found["energy"]) < 1e-4
    P = robot.momentum(q, v)  # about the origin, which is on the crank's axis
    moved = np.gradient(P[:, 1], path.t)
    mass = robot.parameters[:, 0].sum()
    weight = 9.81 * mass * centre_of_mass(robot, q)[:, 0]
    bearing = -found["ground"] * found["force"][:, 2]
    np.testing.assert_allclose(moved[2:-2], (weight + bearing)[2:-2], rtol=0, atol=0.02 * abs(bearing).max())


def centre_of_mass(robot, q):
    total = 0.0
    for name, p in zip(robot.body_names, robot.parameters):
        total = total + robot.pose(q, name) @ [*p[1:4], p[0]]
    return total[:, :3] / total[:, 3:]


@claim
def least_energy(found):
    arm, path, t = found["arm"], found["path"], found["path"].t
    assert np.ptp(found["least"]) < 1e-6
    for k in (1, 2):
        for joint in (0, 1):
            bump, rate = np.zeros((2, len(t), 2))
            bump[:, joint], rate[:, joint] = np.sin(np.pi * k * t), np.pi * k * np.cos(np.pi * k * t)
            for size in (-0.05, 0.05):
                other = arm.kinetic_energy(path.q + size * bump, path.v + size * rate)
                assert np.trapezoid(other, t) > found["least"].mean() + 1e-3
    assert found["least"].mean() < 0.95 * found["straight"].mean()


@claim
def energy_kept(found):
    worst = found["worst"]
    (first, end), (band, whole), (_, kept) = worst.values()
    assert kept < 1e-12
    assert end > 3.0 * first
    assert whole < 2.0 * band


@claim
def null_space(found):
    assert found["off"]["in the null space"].max() < 1e-2
    assert found["off"]["not projected"].max() > 10.0
    assert np.ptp(found["elbow"][:, 1]) > 0.2


@claim
def torque_limits(found):
    assert found["nearest"]["cut off"] < -0.02
    assert found["nearest"]["quadratic program"] > -1e-3
    assert abs(found["run"].tau / found["limit"]).max() <= 1.0 + 1e-9
    assert abs(found["run"].tracking_error()[-1]).max() < 0.01


@claim
def region_of_attraction(found):
    """At no state of rest is the torque too small to lift the rod: sin q = 0.4."""
    proof, S = found["proof"], found["S"]
    assert proof.proved
    farthest = np.sqrt(proof.level / S[0, 0])
    assert 0.1 < farthest < np.arcsin(0.4)
    settled = found["settled"].ravel()
    assert found["inside"].sum() > 100
    assert np.isfinite(settled[found["inside"]]).all()
    assert not found["fallen"][found["inside"]].any()
    assert np.isnan(settled).sum() > 100


@claim
def contraction(found):
    """The rate is that of the softest and stiffest angle, 30 -+ 9.81 N m/rad; neighbouring motions approach at
    least as fast.
    """
    P, rates = found["P"], []
    for stiffness in (30.0 - 9.81, 30.0 + 9.81):
        A = np.array([[0.0, 1.0], [-stiffness, -6.0]])
        rates.append(-0.5 * eigh(P @ A + A.T @ P, P, eigvals_only=True).max())
    assert found["rate"] == pytest.approx(min(rates), rel=1e-2)
    distance, t = found["distance"], found["t"]
    assert (distance <= 1.001 * distance[:, :1] * np.exp(-found["rate"] * t) + 1e-9).all()


@claim
def flexible_joints(found):
    assert found["late"]["springs known"] < 2e-4
    assert found["late"]["taken for rigid"] > 50.0 * found["late"]["springs known"]
