"""Every bundled law with default gains satisfies its proof on several bundled robots."""

import inspect
import shutil
import subprocess

import numpy as np
import pytest
from bundled_laws import LEARN, PAIRS, ROBOTS, law_of

import geomctrl as gc
from geomctrl import controllers, references, testing
from geomctrl.control.contracts import started
from geomctrl.described import recorded

COMPILER = shutil.which("cc") or shutil.which("gcc")

# --- promises --------------------------------------------------------------------------------------------------------


def keeps(name, law, plant):
    """Assert the claim in the docstring of the law."""
    OTHER_PROMISES.get(name, holds)(law, plant)


def holds(law, plant, **options):
    testing.assert_lyapunov(law, plant, **{"states": 3, "search": 0, "runs": 0, "region": 0.2, **options})


def is_bounded(law, plant):
    """V' <= -W + c + s . d, where s . d <= s . K s / 2 + d . K^-1 d / 2; and V' <= -W if the model is right."""
    near = {"q": 0.02, "v": 0.02, "z": 0.5}  # with small s, terms that are linear in s are larger than s . K s
    holds(law, law.robot, bound=True, region=near if law.start() is not None else {"q": 0.02, "v": 0.02})
    c, weakest = law.allowance(plant), float(np.linalg.eigvalsh(law.K)[0])
    assert c > 0.0
    testing.assert_input_to_state_stable(
        law, plant, lambda d: c + 0.5 * d**2 / weakest, search=60, runs=0, region=0.2
    )  # fmt: skip


def is_bounded_for_uncertain_parameters(law, plant):
    near = plant.robot.with_payload(0.03 * float(law.robot.parameters[:, 0].mean()), (0.05, 0.0, 0.02))
    assert 0.0 < law._distance(gc.Plant(near)) < law.rho
    is_bounded(law, gc.Plant(near))


def holds_in_its_ball(law, plant):
    assert 0.0 < law._distance(law.true_parameters(plant)) < 1.0
    holds(law, plant, bound=True)


def leaves_its_law_as_it_is(law, plant):
    """V and the motion are those of the wrapped law."""
    rng, z = np.random.default_rng(0), started(law, plant.robot)
    for t in (0.0, 0.7, 2.0):
        q = plant.robot.integrate(law.law.reference(t).q, 0.3 * rng.normal(size=plant.robot.nv))
        v = rng.normal(size=plant.robot.nv)
        np.testing.assert_array_equal(law(t, q, v, z).tau, law.law(t, q, v, None).tau)
        assert law.lyapunov(t, q, v, z, plant) == law.law.lyapunov(t, q, v, None, plant)
    holds(law.law, plant)


def is_passive(law, plant):
    """The equilibrium is given, because V contains the tank's energy and a search for its zeros takes long."""

    def rest(t):
        return (*law.passive.reference(t)[:2], law.true_parameters(plant))

    port = testing.Port(output=lambda t, q, v, z: law.passive.error(t, q, v).w)
    testing.assert_passive_port(law, plant, port=port, region=testing.Region(0.2, equilibrium=rest), search=60)


def holds_near_the_hub(law, plant):
    off = np.zeros(plant.robot.nv)  # V does not depend on the angles of the wheels
    off[:3] = 0.5
    holds(law, plant, region={"q": off, "v": off})


def holds_in_flight(law, plant):
    holds(law, plant, region={"q": [0.1] * 3 + [0.02] * 3, "v": [0.5] * 3 + [0.06] * 3})


def holds_in_its_region(law, plant):
    n = law.robot.nv
    # corners of the box are inside the domain
    half = np.full(n, 0.9 * np.sqrt(law.level / np.linalg.eigvalsh(law.S)[-1] / (2 * n)))
    holds(law, plant, region=testing.Region(domain={"q": (-half, half), "v": (-half, half)}), bound=True)


def pumps(law, plant):
    """The rate of V near the hanging position; V is zero on an orbit and not at a point."""
    hanging = law.q_d + np.pi * (law.B.sum(axis=1) == 0.0)
    for q, v, _ in states(law, plant, 0.5, hanging):
        assert not law.catch.in_domain(0.1, q, v)
        is_exact(law, plant, q, v, None)


def learns_outside_its_zone(law, plant):
    bodies = [law.robot.body_names[i] for i in law.columns[::10] // 10]
    law = With(law, controllers.SlotineLi(law.robot, law.reference, adapt=bodies).lyapunov)
    for q, v, z in states(law, plant, 0.3):
        s = law.sliding(0.1, q, v).s
        assert s @ law.K @ s > law.boundary
        is_exact(law, plant, q, v, z)


def falls_off_its_surface(law, plant):
    """V' = - k1 |s|^-1/2 x . x, x = (|s|^1/2 sgn s, z / k1), summed over joints."""

    def V(t, q, v, z, plant):
        s = law.sliding(t, q, v).s
        rate = law.k1 / np.sqrt(np.abs(s)) * (np.abs(s) + (z / law.k1) ** 2)
        return law._strict_energy(s, z).sum(), -rate.sum()

    for q, v, z in states(law, plant, 0.3):
        is_exact(With(law, V), plant, q, v, z)


def states(law, plant, size, q=None):
    """Three (q, v, z) near q, by default near the reference at t = 0.1."""
    rng, (q_d, v_d, _), start = np.random.default_rng(0), law.reference(0.1), law.start()
    for _ in range(3):
        z = None if start is None else start + size * rng.normal(size=start.shape)
        off, fast = rng.normal(size=(2, plant.robot.nv))
        yield plant.robot.integrate(q_d if q is None else q, size * off), v_d + fast, z


def is_exact(law, plant, q, v, z):
    values = testing.lyapunov_at(law, plant, 0.1, q, v, z)
    assert values.promised < 0.0 < values.value
    assert abs(values.excess) <= 1e-6 * (abs(values.promised) + values.value) + values.error
    assert values.error < 1e-4 * (abs(values.promised) + values.value)


class With:
    """A law with another V."""

    def __init__(self, law, lyapunov):
        self.law, self.lyapunov = law, lyapunov

    def __call__(self, t, q, v, z):
        return self.law(t, q, v, z)

    def __getattr__(self, name):
        return getattr(self.law, name)


OTHER_PROMISES = {
    "SigmaModification": is_bounded,
    "EModification": is_bounded,
    "Robust": is_bounded_for_uncertain_parameters,
    "SmoothProjection": holds_in_its_ball,
    "EnergyTank": is_passive,
    "OnlineIdentification": leaves_its_law_as_it_is,
    "AttitudeTracking": holds_near_the_hub,
    "QuadrotorTracking": holds_in_flight,
    "LQR": holds_in_its_region,
    "SwingUp": pumps,
    "DeadZone": learns_outside_its_zone,
    "SuperTwisting": falls_off_its_surface,
}


# --- the tests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(  # quick: the robots on which the tests below show that the claim can be violated
    ("law", "robot"), [pytest.param(*x, marks=[] if x[1] == ROBOTS[x[0]][0] else pytest.mark.slow) for x in PAIRS]
)
def test_it_keeps_its_promise(law, robot):
    keeps(law, *law_of(law, robot))


def test_every_law_is_on_two_robots_at_least():
    """A new law must be listed above with its robots."""
    assert set(ROBOTS) == {kind.__name__ for kind in controllers.classes().values()}
    assert all(len(set(robots)) >= 2 for robots in ROBOTS.values())
    without = {kind.__name__ for kind in controllers.classes().values() if not hasattr(kind, "lyapunov")}
    assert without == {"DeadZone", "SuperTwisting"}
    assert len([law for law, _ in PAIRS if law not in without]) >= 40


@pytest.mark.quick(5)
@pytest.mark.parametrize("law", ROBOTS)
def test_a_torque_of_another_size_breaks_it(law, monkeypatch):
    """Wrong models violate the claims, so the tests can fail. LQR has a gain margin from 1/2 to infinity, and
    Robust is made for wrong masses.
    """
    kind, exact = getattr(controllers, law), getattr(controllers, law).__call__
    factor = {"LQR": 0.2, "Robust": 2.0}.get(law, 1.1)

    def scaled(self, t, q, v, z):
        command = exact(self, t, q, v, z)
        return command._replace(tau=factor * command.tau)

    controller, plant = law_of(law, ROBOTS[law][0])
    monkeypatch.setattr(kind, "__call__", scaled)
    with pytest.raises(AssertionError):
        keeps(law, controller, plant)


@pytest.mark.quick(3)
@pytest.mark.parametrize("law", sorted(LEARN - {"NaturalAdaptation"}))
def test_an_estimate_that_moves_the_wrong_way_breaks_it(law, monkeypatch):
    controller, plant = law_of(law, ROBOTS[law][0])
    right = controllers.slotine_li.AdaptiveSliding._gradient
    monkeypatch.setattr(controllers.slotine_li.AdaptiveSliding, "_gradient", lambda self, g: -right(self, g))
    with pytest.raises(AssertionError):
        keeps(law, controller, plant)


TRACKING = sorted(
    law
    for law in ROBOTS.keys() - {"QuadrotorTracking"}  # it takes a FlatOutputs
    if "reference" in inspect.signature(getattr(controllers, law)).parameters
)


class Still:
    """A motion whose class can also be called with one number."""

    def __init__(self, amplitude=0.1):
        self.amplitude = amplitude

    def __call__(self, t):
        return gc.Desired(np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("law", TRACKING)
def test_a_reference_that_can_not_be_followed_is_refused_at_construction(law):
    assert len(TRACKING) > 20
    controller = law_of(law, ROBOTS[law][0])[0]
    arguments = recorded(controller)

    def refuses(reference, message):
        with pytest.raises(gc.ArgumentError, match=message):
            type(controller)(**arguments | {"reference": reference})

    smooth = references.Harmonic(np.zeros(11), 0.1, 0.5)
    refuses(np.zeros(2), r"reference: expected a function t -> .* got array")
    if law == "ElasticJoint":
        refuses(Still, r"reference: expected a function t -> \(5, 2\), .* got <class .*Still")
        refuses(smooth, r"reference: expected a function t -> \(5, 2\), .* got Harmonic\(")
        return
    for kind in (Still, references.Harmonic):
        refuses(kind, rf"got the class {kind.__name__}: pass an object, {kind.__name__}\(\.\.\.\)")
    refuses(smooth, r"got Harmonic, which returns q and four derivatives")
    wrong = "panda" if controller.robot.nv == 4 else "scara"
    other = gc.models.load(wrong)
    refuses(
        references.hold(other, other.neutral()), rf"for nv = {controller.robot.nv}, got Quintic for {wrong} with nv = "
    )
    type(controller)(**arguments)


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize(("name", "robot"), [x for x in PAIRS if x[0] != "QPInverseDynamics"])  # this one searches
def test_in_c_it_is_what_it_is_in_python(name, robot, precision, tmp_path):
    law, plant = law_of(name, robot)
    _, source, test = gc.compile(law, plant.robot).to_c(tmp_path, "law", precision=precision)
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([COMPILER, "-std=c99", *warnings, "-o", tmp_path / "test", source, test, "-lm"], check=True)
    agreed = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
    assert agreed.returncode == 0, agreed.stdout
