"""`testing.reach`: enclosures of closed loops, and claims about them."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from testing.arms import three_joints

import geomctrl as gc
from geomctrl import models, references, testing
from geomctrl.control.contracts import Command
from geomctrl.errors import ArgumentError
from geomctrl.testing.tubes import reaching, steps
from geomctrl.tracing.untraceable import UntraceableError

X0 = np.array([0.4, 1.1, 0.0, 0.0])


@pytest.fixture(scope="module")
def arm():
    return models.two_link()


@pytest.fixture(scope="module")
def law(arm):
    return gc.controllers.Passivity(arm, references.hold(arm, [0.5, 1.0]), Lambda=5.0, K=20.0)


@pytest.fixture(scope="module")
def tube(arm, law):
    return testing.reach(arm, law, (X0 - 0.02, X0 + 0.02), 1.0)


def motions_in_python(arm, law, starts, times):
    """(samples, times, 2 nv), from the law and the robot in Python."""

    def rates(t, x):
        q, v = x[: arm.nv], x[arm.nv :]
        return np.concatenate([v, arm.forward_dynamics(q, v, law(t, q, v, None).tau)])

    run = [solve_ivp(rates, (0.0, times[-1]), x, "DOP853", times, rtol=1e-11, atol=1e-12).y.T for x in starts]
    return np.array(run)


def require_inside(tube, x, times, tolerance=1e-9):
    for piece in tube.pieces:
        for s in piece.segments:
            lo, hi = s.hull
            inside, at_end = x[:, (times >= s.start) & (times <= s.end)], x[:, times == s.end]
            n = x.shape[2]
            assert (inside >= lo[:n] - tolerance).all()
            assert (inside <= hi[:n] + tolerance).all()
            assert (at_end >= s.lo[:n] - tolerance).all()
            assert (at_end <= s.hi[:n] + tolerance).all()


def test_motions_of_the_law_in_python_are_in_the_tube(arm, law, tube):
    assert tube
    rng = np.random.default_rng(1)
    starts = X0 + 0.02 * np.vstack([rng.uniform(-1, 1, (3, 4)), rng.choice([-1.0, 1.0], (5, 4))])
    times = np.unique([t for s in tube.pieces[0].segments for t in (s.start, 0.5 * (s.start + s.end), s.end)])
    require_inside(tube, motions_in_python(arm, law, starts, times), times)


@pytest.mark.slow
def test_ten_thousand_motions_are_in_the_tube(tube):
    e, (m, n) = tube.equations, (10_000, 4)
    rng = np.random.default_rng(2)
    starts = X0 + 0.02 * np.vstack([rng.uniform(-1, 1, (m // 2, n)), rng.choice([-1.0, 1.0], (m // 2, n))])
    times = np.array([0.0, *(s.end for s in tube.pieces[0].segments)])

    def rates(t, y):
        return e.evaluated(e.loop.field[:n], np.hstack([y.reshape(m, n), np.full((m, 1), t)])).ravel()

    y = solve_ivp(rates, (0.0, 1.0), starts.ravel(), "DOP853", times, rtol=1e-12, atol=1e-13).y
    require_inside(tube, y.reshape(m, n, -1).transpose(0, 2, 1), times)


def test_the_tube_is_tight(arm, law, tube):
    starts = X0 + 0.02 * np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    x = motions_in_python(arm, law, starts, np.array([0.0, 0.5, 1.0]))
    for k, t in ((1, 0.5), (2, 1.0)):
        lo, hi = tube.box(t)
        assert (hi - lo <= 2.0 * np.ptp(x[:, k], axis=0)).all()


def test_a_wide_box_needs_no_division(arm, law):
    """Errors of steps decay with the motions: the enclosure of +-0.1 does not blow up, and shrinks to the set point."""
    tube = testing.reach(arm, law, (X0 - 0.1, X0 + 0.1), 1.0, budget=1)
    assert tube
    lo, hi = tube.box(1.0)
    starts = X0 + 0.1 * np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    x = motions_in_python(arm, law, starts, np.array([0.0, 0.5, 1.0]))[:, -1]
    assert (lo <= x + 1e-9).all()
    assert (x <= hi + 1e-9).all()
    assert (hi - lo <= 0.2 * np.array([0.1, 0.1, 0.5, 0.5])).all()


def test_an_arm_of_three_joints_in_space_is_enclosed():
    arm, x0 = three_joints(), np.array([0.4, 0.7, 1.0, 0.0, 0.0, 0.0])
    law = gc.controllers.PDGravity(arm, x0[:3] + 0.1)
    tube = testing.reach(arm, law, (x0 - 0.05, x0 + 0.05), 0.5, budget=1)
    assert tube
    starts = x0 + 0.05 * np.random.default_rng(0).choice([-1.0, 1.0], (2, 6))
    times = np.unique([t for s in tube.pieces[0].segments[::4] for t in (0.5 * (s.start + s.end), s.end)])
    x = motions_in_python(arm, law, starts, times)
    require_inside(tube, x, times)
    lo, hi = tube.box(0.5)
    assert (hi - lo < 0.1 * np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])).all()


def test_a_true_claim_is_proved_and_a_false_one_has_a_motion(arm, law, tube):
    assert tube.stays("q[0]", upper=0.6, lower=0.3).status == "proved"
    false = tube.stays("q[0]", upper=0.45)
    assert false.status == "refuted"
    motion = false.counterexample
    assert (np.abs(motion.x[0] - X0) <= 0.02 + 1e-15).all()
    x = motions_in_python(arm, law, [motion.x[0]], np.array([0.0, motion.time]))
    assert x[0, -1, 0] > 0.45
    assert "refuted: q[0] <= 0.45" in str(false)


def test_a_claim_between_the_motions_and_the_tube_is_undecided(tube):
    highest = tube.stays("v[0]", upper=100.0).highest
    check = tube.stays("v[0]", upper=highest - 1e-9)
    assert check.status == "undecided"
    assert not check
    assert "smaller box" in str(check)


def test_signals_are_functions_torques_and_v(arm, law, tube):
    def height(t, q, v, z, plant):
        return np.sin(q[0]) + np.sin(q[0] + q[1])

    lo, hi = (f([height(0, q, 0, 0, 0) for q in tube._motions(8)[1][:, :, :2].reshape(-1, 2)]) for f in (min, max))
    check = tube.stays(height, upper=3.0)
    assert check.lowest <= lo
    assert hi <= check.highest < hi + 0.1
    tau = [law(0.0, x[:2], x[2:], None).tau[1] for x in tube._motions(8)[1][:, 0]]
    check = tube.stays("tau[1]", upper=1e3, end=0.0)
    assert check
    assert check.lowest <= min(tau)
    assert max(tau) <= check.highest
    assert tube.stays("V", upper=1.0)


def test_the_state_is_proved_to_be_in_a_box_at_a_time(tube):
    goal = np.array([0.5, 1.0, 0.0, 0.0])
    assert tube.inside((goal - 0.05, goal + 0.05), time=1.0).status == "proved"
    false = tube.inside((goal - 0.05, goal + 0.05), time=0.0)
    assert false.status == "refuted"
    assert false.counterexample.time == 0.0
    lo, hi = tube.box(0.0)
    np.testing.assert_array_equal((lo, hi), (X0 - 0.02, X0 + 0.02))
    lo, hi = tube.box(0.0, 1.0)
    assert (lo <= X0 - 0.02).all()
    assert (hi >= X0 + 0.02).all()


def test_uncertain_inertia_is_covered(arm, law):
    tube = testing.reach(arm, law, (X0, X0), 0.5, parameters=0.01)
    rng, exact = np.random.default_rng(0), testing.reach(arm, law, (X0, X0), 0.5)
    lo, hi = tube.box(0.5)
    for _ in range(3):
        p = arm.parameters * (1.0 + 0.01 * rng.choice([-1.0, 1.0], arm.parameters.shape))
        x = motions_in_python(arm.with_parameters(p), law, [X0], np.array([0.0, 0.5]))[0, -1]
        assert (lo <= x).all()
        assert (x <= hi).all()
    assert (hi - lo > 10.0 * np.subtract(*exact.box(0.5)[::-1])).all()
    false = tube.stays("q[0]", upper=float(lo[0]) - 1e-3)
    assert false.status == "refuted"
    assert false.counterexample.parameters.shape == arm.parameters.shape


def test_parameters_that_are_certain_but_not_the_plants_are_those_of_the_tube(arm, law):
    """The first body is 1.5 times as heavy, exactly; the second is uncertain, or as certain."""
    for width in (0.0, 1e-3):
        low, high = arm.parameters.copy(), arm.parameters.copy()
        low[0], high[0] = 1.5 * low[0], 1.5 * high[0]
        low[1], high[1] = (1.0 - width) * low[1], (1.0 + width) * high[1]
        lo, hi = testing.reach(arm, law, (X0, X0), 0.5, parameters=(low, high)).box(0.5)
        for p in (low, high):
            x = motions_in_python(arm.with_parameters(p), law, [X0], np.array([0.0, 0.5]))[0, -1]
            assert (lo - 1e-9 <= x).all()
            assert (x <= hi + 1e-9).all()
        plants = motions_in_python(arm, law, [X0], np.array([0.0, 0.5]))[0, -1]
        assert not ((lo <= plants) & (plants <= hi)).all()


def test_smooth_coulomb_friction_is_enclosed(arm, law):
    friction = gc.Friction(0.5, coulomb=[1.0, 0.5], smoothing=0.5)
    starts = X0 + 0.02 * np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    tube = testing.reach(gc.Plant(arm, friction), law, (X0 - 0.02, X0 + 0.02), 0.3)
    assert tube

    def rates(t, x):
        q, v = x[:2], x[2:]
        torques = np.array([0.5, 0.5]) * v + np.array([1.0, 0.5]) * np.tanh(v / 0.5)
        return np.concatenate([v, arm.forward_dynamics(q, v, law(t, q, v, None).tau - torques)])

    times = np.unique([t for s in tube.pieces[0].segments for t in (s.start, 0.5 * (s.start + s.end), s.end)])
    motions = [solve_ivp(rates, (0.0, 0.3), x, "DOP853", times, rtol=1e-11, atol=1e-12).y.T for x in starts]
    require_inside(tube, np.array(motions), times)
    lo, hi = tube.box(0.3)
    assert (hi - lo <= 2.0 * np.ptp(np.array(motions)[:, -1], axis=0)).all()


def test_the_box_is_divided_where_its_enclosure_blows_up(arm, law):
    box = X0 - 0.2, X0 + 0.2
    whole, parts = (testing.reach(arm, law, box, 0.25, budget=k) for k in (1, 16))
    assert not whole
    assert 0.0 < whole.until < 0.25
    assert "blows up" not in str(parts)
    assert parts
    assert 1 < len(parts.pieces) <= 16
    volume = sum(np.prod(p.upper - p.lower) for p in parts.pieces)
    assert volume == pytest.approx(np.prod(box[1] - box[0]))
    assert "smaller initial box" in whole.summary()
    check = whole.stays("q[0]", upper=10.0)
    assert check.status == "undecided"
    assert check.highest == np.inf
    lo, hi = whole.box(0.25)
    assert (lo == -np.inf).all()
    assert (hi == np.inf).all()


def test_a_law_with_a_state_and_a_moving_reference(arm):
    class Integrating:
        def start(self):
            return np.zeros(2)

        def __call__(self, t, q, v, z):
            e = q - np.array([0.5, 1.0]) - 0.1 * np.sin(t)
            return Command(-40.0 * e - 12.0 * v - 5.0 * z + 20.0, z_rate=e)

    law, x = Integrating(), np.array([0.4, 1.1, 0.0, 0.0])
    tube = testing.reach(arm, law, (x - 0.01, x + 0.01), 0.5)
    assert tube
    assert tube._names()[-1] == "z[1]"

    def rates(t, y):
        command = law(t, y[:2], y[2:4], y[4:])
        return np.concatenate([y[2:4], arm.forward_dynamics(y[:2], y[2:4], command.tau), command.z_rate])

    y = solve_ivp(rates, (0.0, 0.5), np.append(x + 0.01, [0.0, 0.0]), "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    lo, hi = tube.box(0.5)
    assert (lo <= y).all()
    assert (y <= hi).all()


def test_a_torque_limit_is_enclosed_by_both_sides(arm):
    goal = np.array([0.5, 1.0])

    def limited(t, q, v, z):
        tau = -60.0 * (q - goal) - 10.0 * v + arm.gravity_force(q)
        return Command(np.clip(tau, -14.0, 14.0))

    tube = testing.reach(arm, limited, (X0 - 0.005, X0 + 0.005), 0.25)
    assert tube
    rng = np.random.default_rng(0)
    starts, times = X0 + 0.005 * rng.choice([-1.0, 1.0], (6, 4)), np.array([0.0, 0.125, 0.25])
    require_inside(tube, motions_in_python(arm, limited, starts, times), times, 1e-6)


def test_an_interrupt_returns_what_is_enclosed(arm, law, monkeypatch):
    advance, calls = steps.Enclosure.advance, []

    def interrupted(self, *args):
        calls.append(0)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return advance(self, *args)

    monkeypatch.setattr(steps.Enclosure, "advance", interrupted)
    tube = testing.reach(arm, law, (X0 - 0.2, X0 + 0.2), 0.25, budget=16)
    assert tube.interrupted
    assert not tube
    assert tube.until == 0.0
    assert "interrupted" in tube.summary()
    assert tube.stays("q[0]", upper=10.0).status == "undecided"


def test_an_interrupt_while_a_part_is_put_away_loses_no_part_of_the_box(arm, law, monkeypatch):
    piece, calls = reaching.Piece, []

    def interrupted(*args):
        calls.append(0)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return piece(*args)

    monkeypatch.setattr(reaching, "Piece", interrupted)
    tube = testing.reach(arm, law, (X0 - 0.2, X0 + 0.2), 0.25, budget=2)
    assert tube.interrupted
    assert not tube
    corners = X0 + 0.2 * np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    inside = [((p.lower <= corners) & (corners <= p.upper)).all(1) for p in tube.pieces]
    assert np.any(inside, axis=0).all()


def test_a_tube_is_estimated_saved_and_continued_from_its_file(arm, law, tmp_path):
    box = X0 - 0.2, X0 + 0.2

    def law(t, q, v, z, law=law):  # a function, whose box must be divided: its model is not known
        return law(t, q, v, z)

    whole = testing.reach(arm, law, box, 0.25)
    assert whole.more_pieces == 0.0
    few = testing.reach(arm, law, box, 0.25, budget=len(whole.pieces) // 2 + 1)
    assert not few
    assert few.more_pieces == pytest.approx(len(whole.pieces) - len(few.pieces), rel=1.0)
    assert "more pieces" in few.summary()
    path = few.save(tmp_path / "few.npz")
    again = testing.reach(arm, law, box, 0.25, budget=testing.Budget(resume=path))
    assert again
    for one, other in zip(again.box(0.25), whole.box(0.25)):
        assert one == pytest.approx(other, abs=1e-9)
    arrays = dict(np.load(path))
    np.savez(tmp_path / "less.npz", **{k: x[1:] if k[0] == "0" else x for k, x in arrays.items()})
    with pytest.raises(ArgumentError, match="do not cover"):
        testing.reach(arm, law, box, 0.25, budget=testing.Budget(resume=tmp_path / "less.npz"))
    with pytest.raises(ArgumentError, match="do not cover"):
        testing.reach(arm, law, (X0 - 0.2, X0 + 0.3), 0.25, budget=testing.Budget(resume=path))
    np.savez(tmp_path / "other.npz", **{**arrays, "words": np.array(["another claim"])})
    with pytest.raises(ArgumentError, match="resume: expected a file of"):
        testing.reach(arm, law, box, 0.25, budget=testing.Budget(resume=tmp_path / "other.npz"))


def test_a_picture_shows_the_tube_and_motions(tube):
    fig = tube.plot(["q[0]", "v[1]"], samples=4)
    axes = fig.axes
    assert [ax.get_ylabel() for ax in axes] == ["q[0]", "v[1]"]
    assert len(axes[0].lines) == 4
    assert len(axes[0].collections[0].get_paths()) == len(tube.pieces[0].segments)
    assert len(tube.plot(samples=0).axes) == 4


def test_a_signal_that_is_undefined_at_some_states_is_undecided(arm, tube):
    undefined = tube.stays(lambda t, q, v, z, plant: np.arcsin(q[0] + 0.6), upper=2.0)
    assert undefined.status == "undecided"
    assert undefined.highest == np.inf


def test_a_difference_of_a_rate_beside_an_infinite_signal_is_named(tube, monkeypatch):
    rates = type(tube.equations).python_rates
    monkeypatch.setattr(type(tube.equations), "python_rates", lambda *args: rates(*args) + 1e-3)
    with pytest.raises(UntraceableError, match="rate 0"):
        tube.stays(lambda t, q, v, z, plant: np.inf * q[1], upper=1.0)


def test_an_infinite_signal_is_undecided(tube):
    assert tube.stays(lambda t, q, v, z, plant: np.inf * q[1], upper=1.0).status != "proved"


def test_a_trace_that_differs_from_python_is_refused(arm):
    class Changing:
        calls = 0

        def __call__(self, t, q, v, z):
            self.calls += 1
            return Command(-10.0 * v * (1.0 if self.calls < 2 else 2.0))

    with pytest.raises(UntraceableError):
        testing.reach(arm, Changing(), (X0, X0), 0.1)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"plant": 3}, "plant"),
        ({"initial_box": X0}, "initial_box"),
        ({"initial_box": (X0 + 1.0, X0)}, "initial_box"),
        ({"initial_box": (X0, X0[:3])}, "initial_box"),
        ({"t_end": 0.0}, "t_end"),
        ({"t_end": np.inf}, "t_end"),
        ({"pieces": 0}, "pieces"),
        ({"parameters": -0.1}, "parameters"),
    ],
)
def test_bad_arguments_are_named(arm, law, change, match):
    arguments = {"plant": arm, "controller": law, "initial_box": (X0, X0), "t_end": 0.1} | change
    with pytest.raises(ArgumentError, match=match):
        testing.reach(**arguments)


def test_bad_claims_are_named(tube):
    for signal in ("q[2]", "w[0]", "q", 3):
        with pytest.raises(ArgumentError, match="signal"):
            tube.stays(signal, upper=1.0)
    with pytest.raises(ArgumentError, match="upper, lower"):
        tube.stays("q[0]")
    with pytest.raises(ArgumentError, match="upper, lower"):
        tube.stays("q[0]", lower=2.0, upper=1.0)
    with pytest.raises(ArgumentError, match="time"):
        tube.box(2.0)
    with pytest.raises(ArgumentError, match="signals"):
        tube.plot(["x"])


def test_a_joint_whose_configuration_is_no_vector_is_refused():
    with pytest.raises(ArgumentError, match="plant"):
        testing.reach(models.quadrotor(), lambda t, q, v, z: Command(np.zeros(6)), (np.zeros(12), np.zeros(12)), 0.1)


class Spring:
    def __init__(self):
        self.stiffness = 1.0

    def __call__(self, t, q, v, z):
        return Command(-self.stiffness * q - v)


@pytest.fixture(scope="module")
def slide():
    inertia = gc.inertia.from_com(1.0, (0, 0, 0), np.eye(3))
    return gc.Robot.build([gc.Body("slide", None, gc.Joint.prismatic((1, 0, 0)), None, inertia)])


@pytest.mark.parametrize("options", [{}, {"parameters": 0.01}, {"control_dt": 0.1}], ids=["", "uncertain", "held"])
def test_a_law_that_was_changed_after_the_proof_is_refused(slide, options):
    law = Spring()
    tube = testing.reach(slide, law, ([0.3, 0.0], [0.32, 0.0]), 0.2, **options)
    box = [0.2, -1.0], [0.4, 1.0]
    law.stiffness = -30.0
    for claim in (lambda: tube.stays("q[0]", upper=0.33), lambda: tube.inside(box, time=0.2)):
        with pytest.raises(ArgumentError, match="Spring or plant that was changed"):
            claim()
    law.stiffness = 1.0
    assert tube.stays("q[0]", upper=0.33)
    assert tube.inside(box, time=0.2)


def test_a_law_without_a_number_is_equal_to_itself(slide):
    def law(t, q, v, z):
        return Command(np.where(q > 9.0, np.nan, -v))

    assert testing.reach(slide, law, ([0.3, 0.0], [0.32, 0.0]), 0.1).stays("q[0]", upper=0.4)


def test_a_short_tube_that_ends_early_is_false(arm):
    """The torque has no value where q[0] > 0.42, which the motion reaches after 0.02 s."""
    start = np.array([0.4, -0.3, 1.0, 0.0])
    short = testing.reach(arm, lambda t, q, v, z: Command(np.sqrt(0.42 - q[0]) - v), (start, start), 0.05, budget=1)
    assert bool(short) is False
    assert 0.01 < short.until < 0.03
