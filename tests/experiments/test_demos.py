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
        shown = tmp_path / "shown.png"
        monkeypatch.setattr(plt, "show", lambda: plt.gcf().savefig(shown))
        try:
            result = runpy.run_path(str(DEMOS / f"{name}.py"), run_name="__main__")
            assert shown.stat().st_size > 10_000
            assert plt.get_fignums() == [1]
            return result
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
    result = demo(name)
    assert capsys.readouterr().out
    CLAIMS[name](result)


@claim
def pd_and_computed_torque(result):
    """Both poles at -5: e = (1 + 5 t) exp(-5 t) e0."""
    run = result["runs"]["computed torque"]
    wanted = 0.1 * ((1.0 + 5.0 * run.t) * np.exp(-5.0 * run.t))[:, None]
    np.testing.assert_allclose(run.tracking_error(), np.tile(wanted, 7), rtol=0, atol=1e-7)
    assert result["off"]["PD"][-1000:].min() > 10.0


@claim
def unknown_load(result):
    assert result["mass"][-1] == pytest.approx(2.0, rel=0.02)
    assert np.diff(result["runs"]["adaptive"].signals["lyapunov"]).max() < 1e-9
    ends = {name: np.linalg.norm(run.tracking_error()[-1000:]) for name, run in result["runs"].items()}
    assert ends["adaptive"] < 0.1 * ends["fixed model"]


@claim
def wrong_coriolis(result):
    skew, plain = result["off"].values()
    assert plain > 100.0 * skew
    assert (result["measured"] > 1.0).any()  # V grows


@claim
def impedance_at_a_wall(result):
    """Statics: a linear spring in series with Hertz' contact."""
    for stiffness, force in result["force"].items():
        at_rest = brentq(lambda f, k=stiffness: f - k * (0.04 - (f / 3e5) ** (2.0 / 3.0)), 0.0, 40.0)
        assert force[-1] == pytest.approx(at_rest, rel=0.02)
        assert (force[force.argmax() :] > 0.0).all()  # the tool does not bounce


@claim
def collision(result):
    """A first-order lag of the external torque, with r held between samples: r+ = r + K (impulse of a sample - r
    dt).
    """
    t, felt, true = result["run"].t, result["felt"], result["true"]
    lagged = np.zeros_like(true)
    for k in range(len(t) - 1):
        lagged[k + 1] = lagged[k] + 200.0 * 1e-3 * (0.5 * (true[k] + true[k + 1]) - lagged[k])
    np.testing.assert_allclose(felt, lagged, rtol=0, atol=0.1)  # N m
    assert 0.0 < result["late"] < 0.02
    before = t < result["start"]
    assert not result["run"].signals["contact"][before].any()


@claim
def quadrotor_upside_down(result):
    R = result["R"]
    np.testing.assert_allclose(R.swapaxes(1, 2) @ R, np.tile(np.eye(3), (len(R), 1, 1)), rtol=0, atol=1e-9)
    assert result["tilt"][0] == pytest.approx(170.0, abs=0.01)
    assert result["tilt"][-1] < 1.0
    assert result["off"][-1] < 2e-3 < 0.3 < result["off"].max()


@claim
def satellite(result):
    """Wheels rotate the hub, but the total angular momentum is constant."""
    run = result["run"]
    P = result["satellite"].momentum(run.q, run.v)
    wheel = 100.0 / (6000.0 * 2.0 * np.pi / 60.0) * abs(run.v[:, 3:]).max()  # N m s, of the fastest wheel
    assert wheel > 1.0
    assert run.ok  # V, and the limits of torques and speeds
    np.testing.assert_allclose(P, np.tile(P[0], (len(P), 1)), rtol=0, atol=1e-4 * wheel)
    assert result["angle"][0] == pytest.approx(np.degrees(np.linalg.norm([1.6, 1.4, -2.1])), abs=1e-6)
    assert result["angle"][-1] < 1.0


@claim
def swing_up(result):
    """The work of the force is the growth of the energy, and at the end the pole is upright."""
    run, cart = result["run"], result["cart"]
    work = np.trapezoid(run.tau[:, 0] * run.v[:, 0], run.t)
    E = cart.energy(run.q, run.v)
    assert E[-1] - E[0] == pytest.approx(2 * 0.1 * 9.81 * 0.5, rel=0.01)
    assert work == pytest.approx(E[-1] - E[0], rel=0.01)
    assert abs(np.sin(run.q[-1, 1])) < 1e-3 < np.cos(run.q[-1, 1])


@claim
def behind_encoders(result):
    best = list(result["best"].values())
    assert best == sorted(best)
    assert best[0] < 150.0 < best[-1]


@claim
def payload_and_gain(result):
    """The hatched region is the one that the joints can not hold by statics."""
    table, robot = result["table"], result["robot"]
    for payload, limited in zip(table.payload.values, result["limited"].values.T):
        held = robot.with_payload(payload, (0.0, 0.0, 0.1)).gravity_force(result["home"])
        if (abs(held) > robot.limits.effort).any():
            assert limited.all(), payload
        if payload < 2.0:
            assert not limited.any(), payload
    assert result["fast"] < 0.1 * result["slow"]


@claim
def identify_payload(result):
    load = result["identified"]
    assert load.mass == pytest.approx(result["mass"], abs=0.01)
    np.testing.assert_allclose(load.centre, result["centre"], rtol=0, atol=1e-3)
    low, high = load.intervals["mass"]
    assert 1e-3 < high - low < 0.05


@claim
def robot_from_dh(result):
    """The product of the table's transformations, written by hand."""
    T, weights = np.eye(4), []
    for k in range(6):
        angle = result["postures"][-1][k]
        Rz, Rx = so3.exp([0.0, 0.0, angle]), so3.exp([result["alpha"][k], 0.0, 0.0])
        step = np.eye(4)
        step[:3, :3] = Rz @ Rx
        step[:3, 3] = Rz @ [result["a"][k], 0.0, 0.0] + [0.0, 0.0, result["d"][k]]
        T = T @ step
        np.testing.assert_allclose(result["robot"].pose(result["postures"][-1], f"link{k + 1}"), T, rtol=0, atol=1e-12)
        weights.append(9.81 * result["mass"][k] * (T[:3, :3] @ result["com"][k] + T[:3, 3]))
    assert abs(result["torque"][-1, 1]) == pytest.approx(abs(sum(weights[1:])[0]), rel=1e-9)


@claim
def four_bar(result):
    """About the axis of the crank: the rate of angular momentum is the moment of the weights and of the bearing's
    force.
    """
    robot, path = result["robot"], result["path"]
    q, v = path.y[:, :3], path.y[:, 3:]
    assert abs(result["gap"]).max() < 1e-12
    assert np.ptp(result["energy"]) < 1e-4
    P = robot.momentum(q, v)  # about the origin, which is on the crank's axis
    moved = np.gradient(P[:, 1], path.t)
    mass = robot.parameters[:, 0].sum()
    weight = 9.81 * mass * centre_of_mass(robot, q)[:, 0]
    bearing = -result["ground"] * result["force"][:, 2]
    np.testing.assert_allclose(moved[2:-2], (weight + bearing)[2:-2], rtol=0, atol=0.02 * abs(bearing).max())


def centre_of_mass(robot, q):
    total = 0.0
    for name, p in zip(robot.body_names, robot.parameters):
        total = total + robot.pose(q, name) @ [*p[1:4], p[0]]
    return total[:, :3] / total[:, 3:]


@claim
def least_energy(result):
    arm, path, t = result["arm"], result["path"], result["path"].t
    assert np.ptp(result["least"]) < 1e-6
    for k in (1, 2):
        for joint in (0, 1):
            bump, rate = np.zeros((2, len(t), 2))
            bump[:, joint], rate[:, joint] = np.sin(np.pi * k * t), np.pi * k * np.cos(np.pi * k * t)
            for size in (-0.05, 0.05):
                other = arm.kinetic_energy(path.q + size * bump, path.v + size * rate)
                assert np.trapezoid(other, t) > result["least"].mean() + 1e-3
    assert result["least"].mean() < 0.95 * result["straight"].mean()


@claim
def energy_kept(result):
    worst = result["worst"]
    (first, end), (band, whole), (_, kept) = worst.values()
    assert kept < 1e-12
    assert end > 3.0 * first
    assert whole < 2.0 * band


@claim
def null_space(result):
    assert result["off"]["in the null space"].max() < 1e-2
    assert result["off"]["not projected"].max() > 10.0
    assert np.ptp(result["elbow"][:, 1]) > 0.2


@claim
def torque_limits(result):
    assert result["nearest"]["cut off"] < -0.02
    assert result["nearest"]["quadratic program"] > -1e-3
    assert abs(result["run"].tau / result["limit"]).max() <= 1.0 + 1e-9
    assert abs(result["run"].tracking_error()[-1]).max() < 0.01


@claim
def region_of_attraction(result):
    """At no state of rest is the torque too small to lift the rod: sin q = 0.4."""
    proof, S = result["proof"], result["S"]
    assert proof.proved
    farthest = np.sqrt(proof.level / S[0, 0])
    assert 0.1 < farthest < np.arcsin(0.4)
    settled = result["settled"].ravel()
    assert result["inside"].sum() > 100
    assert np.isfinite(settled[result["inside"]]).all()
    assert not result["fallen"][result["inside"]].any()
    assert np.isnan(settled).sum() > 100


@claim
def contraction(result):
    """The rate is that of the softest and stiffest angle, 30 -+ 9.81 N m/rad; neighbouring motions approach at
    least as fast.
    """
    P, rates = result["P"], []
    for stiffness in (30.0 - 9.81, 30.0 + 9.81):
        A = np.array([[0.0, 1.0], [-stiffness, -6.0]])
        rates.append(-0.5 * eigh(P @ A + A.T @ P, P, eigvals_only=True).max())
    assert result["rate"] == pytest.approx(min(rates), rel=1e-2)
    distance, t = result["distance"], result["t"]
    assert (distance <= 1.001 * distance[:, :1] * np.exp(-result["rate"] * t) + 1e-9).all()


@claim
def flexible_joints(result):
    assert result["late"]["springs known"] < 2e-4
    assert result["late"]["taken for rigid"] > 50.0 * result["late"]["springs known"]
