"""`certify_barrier` for `QPInverseDynamics`: solved programs, torques that satisfy their limits, and motions."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import testing
from geomctrl.errors import ArgumentError

RATE, EPS = 4.0, 0.01  # 1/s; rad beyond the limit of the position
ROD = gc.inertia.from_com(1.0, (0.0, 0.0, 0.5), np.diag([0.0833, 0.0833, 1e-4]))


def link(effort, count=1):
    """Rods of 1 kg and 1 m upright, one on the other, within 1 rad."""
    bodies, pose = [], np.eye(4)
    for k in range(count):
        joint = gc.Joint.revolute((0, 1, 0), lower=-1.0, upper=1.0, effort=effort / (k + 1))
        bodies.append(gc.Body(f"rod{k}", f"rod{k - 1}" if k else None, joint, pose, ROD))
        pose = np.eye(4)
        pose[2, 3] = 1.0
    return gc.Robot.build(bodies, name="rods")


def law_of(robot, **options):
    goal = np.full(robot.nv, 0.5)
    gains = {"kp": 4.0, "kd": 4.0, "rate": RATE} | options
    return gc.controllers.QPInverseDynamics(robot, gc.references.hold(robot, goal), **gains)


def barrier(i=0, eps=EPS):
    def h(t, q, v, z, plant):
        return RATE * (1.0 + eps - q[i]) - v[i]

    return h


BOX = np.array([-0.9, -3.0]), np.array([1.2, 3.0])


def on_the_barrier(rng, box, i=0, eps=EPS):
    """Random states of the box with h = 0."""
    while True:
        x = rng.uniform(*box)
        n = len(x) // 2
        x[n + i] = RATE * (1.0 + eps - x[i])
        if (box[0] <= x).all() and (x <= box[1]).all():
            yield x


def certified(robot, box=BOX, h=None, i=0, budget=200, **options):
    return testing.certify_barrier(barrier(i) if h is None else h, law_of(robot, **options), robot, box, budget=budget)


def test_a_link_with_enough_torque_stays_within_its_limit():
    robot = link(20.0)
    result, law = certified(robot), law_of(robot)
    assert result.status == "proved", result
    assert "without slack" in str(result)
    rng = np.random.default_rng(0)
    for x, _ in zip(on_the_barrier(rng, BOX), range(30)):
        command = law(0.0, x[:1], x[1:], None)
        assert command.signals["slack"] < 1e-6
        a = robot.forward_dynamics(x[:1], x[1:], command.tau)
        assert -RATE * x[1] - a[0] > 0.5 * RATE**2 * EPS  # h' by hand: rate^2 eps


def test_motions_of_the_solved_program_stay_within_the_limit():
    robot = link(20.0)
    law = law_of(robot)
    for x in ([0.9, 0.4], [0.0, 3.0], [0.5, 2.0]):
        run = gc.simulate(robot, law, np.array(x[:1]), np.array(x[1:]), 0.6, 2e-3, monitors=None)
        h = RATE * (1.0 + EPS - run.q[:, 0]) - run.v[:, 0]
        assert h.min() > 0.0


@pytest.mark.parametrize("effort", [0.5, 4.0])
def test_a_link_that_can_not_hold_its_weight_is_not_proved(effort):
    """Near the limit gravity needs up to 4.9 sin(1) N m, and the brake more: some programs have slack."""
    robot = link(effort)
    result, law = certified(robot), law_of(robot)
    assert result.status == "undecided"
    x = next(on_the_barrier(np.random.default_rng(0), (np.array([0.9, 0.0]), np.array([1.01, 0.4]))))
    assert law(0.0, x[:1], x[1:], None).signals["slack"] > 0.01


def test_a_barrier_inside_of_the_limits_of_the_program_is_not_proved():
    """The program lets h fall there: h' = -rate^2 0.02 for the largest acceleration that it allows."""
    assert certified(link(20.0), h=barrier(eps=-0.02), budget=15).status == "undecided"  # EPS is proved on 2 boxes


def test_a_wish_far_from_the_limits_may_buy_slack_and_is_not_proved():
    result = certified(link(2000.0), kp=4000.0)
    assert result.status == "undecided"
    assert [claim.status for claim in result.claims] == ["proved", "undecided"]


def test_arguments():
    with pytest.raises(ArgumentError, match="finite limits"):
        certified(link(np.inf))
    robot = link(20.0)
    clearance = ("rod0", [0.0, 0.0, 2.0], 0.1)
    with pytest.raises(ArgumentError, match="without tasks"):
        testing.certify_barrier(barrier(), law_of(robot, clearances=[clearance]), robot, BOX)
    with pytest.raises(ArgumentError, match="control_dt"):
        testing.certify_barrier(barrier(), law_of(robot), robot, BOX, control_dt=0.01)
    with pytest.raises(ArgumentError, match="box"):
        testing.certify_barrier(barrier(), law_of(robot), robot, (-np.ones(3), np.ones(3)))
    for period in (None, 0.01):
        with pytest.raises(ArgumentError, match="QPInverseDynamics, which solves a quadratic program"):
            testing.reach(robot, law_of(robot), BOX, 0.1, control_dt=period)


def test_a_users_attributes_that_are_called_as_those_of_a_program_mean_nothing():
    class Law:
        program, acceleration = (1.0, 2.0), 3.0

        def __call__(self, t, q, v, z):
            return gc.Command(-v - 2.0 * q)

    robot = link(20.0)
    assert testing.reach(robot, Law(), ([0.1, 0.0], [0.11, 0.01]), 0.1)
    result = testing.certify_barrier(lambda t, q, v, z, plant: 1.0 - q @ q - v @ v, Law(), robot, BOX)
    assert not any("program" in claim.statement for claim in result.claims)


def test_a_two_link_that_can_not_hold_its_weight_is_not_proved():
    """With 12 N m the first joint does not hold the weight of both rods, 19.6 sin(q) N m when stretched."""
    box = np.array([0.6, -0.5, 0.0, -0.5]), np.array([1.1, 0.5, 1.7, 0.5])
    robot = link(12.0, 2)
    law = law_of(robot)
    assert certified(robot, box, budget=100).status == "undecided"
    states = zip(on_the_barrier(np.random.default_rng(1), box), range(20))
    assert max(law(0.0, x[:2], x[2:], None).signals["slack"] for x, _ in states) > 0.01


# --- two links ---------------------------------------------------------------------------------------------------

TWO = np.array([0.6, -0.5, 0.0, -0.5]), np.array([1.1, 0.5, 1.7, 0.5])
NEAR = np.array([0.85, -0.1, 0.2, -0.1]), np.array([0.95, 0.1, 0.6, 0.1])


def climbing(robot):
    """A law that wishes to go beyond the limit, so that its program always brakes as late as possible."""
    goal = np.full(robot.nv, 1.6)
    return gc.controllers.QPInverseDynamics(robot, gc.references.hold(robot, goal), kp=20.0, kd=4.0, rate=RATE)


def corners(robot, share, rng):
    """The robot with each parameter at an end of its interval."""
    sign = rng.choice([-1.0, 1.0], robot.parameters.shape)
    return robot.with_parameters(robot.parameters * (1.0 + share * sign), physical=False)


def least_rate(robot, share, eps, box, samples):
    """The smallest h' = -rate v - a of sampled robots and states with h = 0, under the commands of the program."""
    rng, law, least = np.random.default_rng(3), climbing(robot), np.inf
    for x, _ in zip(on_the_barrier(rng, box, eps=eps), range(samples)):
        command = law(0.0, x[:2], x[2:], None)
        assert command.signals["slack"] < 1e-6
        a = corners(robot, share, rng).forward_dynamics(x[:2], x[2:], command.tau)
        least = min(least, -RATE * x[2] - a[0])
    return least


def test_two_links_stay_within_their_limits_with_the_torque_they_have():
    robot = link(40.0, 2)
    result = certified(robot, TWO)
    assert result.status == "proved", result
    assert "vdot = a + M^-1 r" in str(result)
    assert least_rate(robot, 0.0, EPS, TWO, 30) == pytest.approx(RATE**2 * EPS, rel=1e-3)  # by hand


@pytest.mark.parametrize(("share", "eps", "status"), [(0.01, 0.1, "proved"), (0.02, 0.02, "undecided")])
def test_two_links_of_uncertain_inertia_stay_within_a_margin_of_their_limits(share, eps, status):
    robot = link(60.0, 2)
    box = NEAR[0] + [0.0, 0.0, RATE * eps, 0.0], NEAR[1] + [0.0, 0.0, RATE * eps, 0.0]
    result = testing.certify_barrier(barrier(0, eps), climbing(robot), robot, box, parameters=share, budget=25)
    assert result.claims[0].status == status, result
    assert (least_rate(robot, share, eps, box, 200) > 0.0) == (status == "proved")


def test_a_plant_that_is_heavier_than_the_model_of_the_program_is_not_proved():
    robot = link(60.0, 2)
    heavy = robot.with_parameters(1.05 * robot.parameters)
    rubbing = gc.Plant(robot, friction=gc.Friction(0.5, 0.2))
    for plant, status in ((heavy, "undecided"), (rubbing, "undecided"), (robot, "proved")):
        assert testing.certify_barrier(barrier(), climbing(robot), plant, NEAR, budget=15).claims[0].status == status


# --- checked again ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    """A proof of several boxes as a file."""
    return certified(link(40.0, 2), TWO).save(tmp_path_factory.mktemp("proof") / "proof.npz")


def changed(proof, tmp_path, change):
    """The proof with changed arrays; change: (name, array) -> array."""
    with np.load(proof) as arrays:
        new = {name: change(name, x.copy()) for name, x in arrays.items()}
    np.savez(tmp_path / "changed.npz", **new)
    return testing.recheck(tmp_path / "changed.npz")


def test_a_proof_is_confirmed_with_other_arithmetic(proof, tmp_path):
    pytest.importorskip("flint")
    assert changed(proof, tmp_path, lambda name, x: x)
    with np.load(proof) as arrays:
        claims = {name.partition("_")[0] for name in arrays.files if name.startswith("claim")}
        assert len(claims) > 4  # the rate of h, and two joints with torques in both directions
        boxes = [len(arrays[name]) for name in arrays.files if name.endswith("_lo") and name.startswith("claim")]
        assert max(boxes) > 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda name, x: x[1:] if name.startswith("claim") and name.endswith(("_lo", "_hi")) else x, "no box covers"),
        (lambda name, x: x[:0] if name in ("lo", "hi") else x, "no box covers"),
        (lambda name, x: x + 1e-3 * (x != 0.0) if name.endswith("_lo") else x, "no box covers"),
        (lambda name, x: x * 1.001 if name == "domain" else x, "no box covers"),
        (lambda name, x: x * [[1.0], [1.1]] if name == "claim3_domain" else x, "no box covers"),
    ],
    ids=["a missing box", "no boxes", "a moved box", "a larger domain", "a larger domain of one joint"],
)
def test_boxes_that_do_not_cover_the_domain_are_refused(proof, tmp_path, change, reason):
    pytest.importorskip("flint")
    assert reason in changed(proof, tmp_path, change).reason


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), [(40.0, 10.0), (9.81, 30.0), (1.0 + EPS, 0.98)])
def test_a_changed_number_of_the_claim_is_refused(proof, tmp_path, old, new):
    """The torque of the first joint, gravity, and the position at which h is zero at rest."""
    pytest.importorskip("flint")

    def change(name, x):
        return np.char.replace(x, float.hex(old), float.hex(new)) if name.endswith("claim") else x

    assert "is not shown" in changed(proof, tmp_path, change).reason


@pytest.mark.slow
def test_a_box_on_which_the_torques_do_not_suffice_is_refused(tmp_path):
    """To brake from 300 rad/s takes 400 N m; the limit is 20 N m."""
    pytest.importorskip("flint")
    proof = certified(link(20.0)).save(tmp_path / "proof.npz")

    def change(name, x):
        if name.endswith(("domain", "lo", "hi")) and x.dtype == float:
            x[..., 0] = np.where(x[..., 0] == BOX[0][0], -100.0, x[..., 0])
            x[..., 1] = np.where(x[..., 1] == BOX[1][1], 300.0, x[..., 1])
        return x

    assert "is not shown" in changed(proof, tmp_path, change).reason


@pytest.mark.slow
def test_the_faces_of_an_invariant_set_are_checked_again(tmp_path):
    pytest.importorskip("flint")
    arm = gc.models.two_link()
    law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    half = np.array([0.2, 0.3, 1.6, 4.5])
    result = testing.certify_barrier(
        lambda t, q, v, z, p: 0.5 - law.lyapunov(t, q, v, z, p)[0], law, arm, (-half, half)
    )
    assert result.invariant
    path = result.save(tmp_path / "proof.npz")
    assert changed(path, tmp_path, lambda name, x: x)

    def without_damping(name, x):
        return np.where(x == 20.0, -20.0, x) if name.endswith("numbers") else x

    assert "is not shown" in changed(path, tmp_path, without_damping).reason

    def smaller(name, x):  # a box whose faces cut the set
        return 0.5 * x if name.endswith("domain") or (name.startswith("claim") and x.dtype == float) else x

    assert not changed(path, tmp_path, smaller)


def edited(proof, tmp_path, edit):
    """What `recheck` says of the proof after an edit of its arrays, a dict."""
    with np.load(proof) as arrays:
        new = dict(arrays)
    edit(new)
    np.savez(tmp_path / "edited.npz", **new)
    return testing.recheck(tmp_path / "edited.npz")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda x: x.pop("claim1_claim"), r"claim 1 has no \['claim'\]"),
        (lambda x: [x.pop(k) for k in list(x) if k.startswith("claim1_")], "claim 1 has no"),
        (lambda x: x.update(claims=np.array(2)), "belongs to none of 2 claims"),
        (lambda x: x.update(claims=np.array(10**6)), "claims: expected their number"),
        (lambda x: x.pop("claims"), "claims: expected their number"),
        (lambda x: x.update(claim01_lo=x["lo"]), "belongs to none"),
    ],
)
def test_a_file_without_some_of_its_claims_is_refused(proof, tmp_path, edit, reason):
    pytest.importorskip("flint")
    with pytest.raises(ArgumentError, match=rf"proof: expected .*edited\.npz.*{reason}"):
        edited(proof, tmp_path, edit)


def test_the_number_of_confirmed_claims_is_told(proof, tmp_path):
    pytest.importorskip("flint")
    result = edited(proof, tmp_path, lambda x: None)
    with np.load(proof) as arrays:
        assert result.claims == sum(name.endswith("claim") for name in arrays.files)
    assert f"confirmed ({result.claims} claims, " in str(result)


@pytest.mark.slow
def test_a_domain_of_all_numbers_ends_in_a_verdict(proof, tmp_path):
    """Enclosures overflow there. The condition h = 0 bounds the joint, so that the claim may well hold on it."""
    pytest.importorskip("flint")

    def edit(x):
        x["domain"][:, 0] = x["lo"][:, 0] = -1e300
        x["domain"][1, 0] = 1e300
        x["hi"][:, 0] = 1e300

    assert edited(proof, tmp_path, edit).evaluations > 0
