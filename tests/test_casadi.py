"""CasADi functions of terms and laws: their values and derivatives are the library's, and CasADi can use them."""

import itertools
import shutil
import subprocess

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, references, testing
from geomctrl.errors import ArgumentError, GeomctrlError, NameNotFoundError
from geomctrl.interop import casadi_functions
from geomctrl.tracing.operations import UNARY, VALUES

casadi = pytest.importorskip("casadi", reason="casadi is not installed")
KINDS = ["free", "revolute", "prismatic", "helical", "spherical", "planar", "cylindrical"]
RANDOM = testing.random_robot(np.random.default_rng(4), KINDS, [-1, 0, 1, 1, 0, 4, 2], driven=True)


def coupled(floating=False):
    """A joint that follows another one."""
    link = gc.inertia.from_com(1.0, (0.1, -0.05, 0.02), 0.02 * np.eye(3))
    turn = gc.Joint.revolute
    base = [gc.Body("base", None, gc.Joint.free(name="root"), np.eye(4), link)] if floating else []
    bodies = [
        gc.Body("a", "base" if floating else None, turn((0, 1, 0), name="q1", armature=0.3), np.eye(4), link),
        gc.Body("b", "a", turn((0, 1, 0), name="follower", armature=0.2), np.eye(4), link),
        gc.Body("c", "b", turn((1, 0, 0), name="q3"), np.eye(4), link),
    ]
    return gc.Robot.build([*base, *bodies], couplings=[gc.Coupling("follower", {"q1": -0.5}, 0.1)])


ROBOTS = {name: lambda name=name: models.load(name) for name in models.names()}
ROBOTS |= {"random": lambda: RANDOM, "coupled": coupled, "coupled and floating": lambda: coupled(True)}
ROBOTS |= {"one joint": lambda: testing.random_robot(np.random.default_rng(1), ["revolute"], [-1])}


def state(robot, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), *rng.normal(size=(3, robot.nv))


def assert_close(ours, expected, tolerance=1e-12):
    expected = np.asarray(expected)
    ours = np.array(ours).reshape(expected.shape)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0)))


# --- terms -------------------------------------------------------------------------------------------------------


@pytest.mark.quick(5)
@pytest.mark.parametrize("name", [*ROBOTS][::-1])
def test_terms_of_robots(name):
    robot = ROBOTS[name]()
    f = {x: robot.to_casadi(x) for x in ("inverse_dynamics", "forward_dynamics", "terms", "integrate", "difference")}
    for seed in range(3):
        q, v, a, w = state(robot, seed)
        assert_close(f["inverse_dynamics"](q, v, a), robot.inverse_dynamics(q, v, a))
        assert_close(f["forward_dynamics"](q, v, a), robot.forward_dynamics(q, v, a))
        for ours, expected in zip(f["terms"](q, v), robot.terms(q, v), strict=True):
            assert_close(ours, expected)
        moved = robot.integrate(q, w)
        assert_close(f["integrate"](q, w), moved)
        assert_close(f["difference"](q, moved), robot.difference(q, moved))


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["panda", "random", "coupled and floating"])
def test_the_other_terms(name):
    robot = ROBOTS[name]()
    q, v, a, w = state(robot)
    f = np.random.default_rng(2).normal(size=(robot.nbodies, 6))
    for term, arguments, expected in (
        ("gravity_force", (q,), robot.gravity_force(q)),
        ("mass_matrix", (q,), robot.mass_matrix(q)),
        ("mass_matrix_inverse", (q,), robot.mass_matrix_inverse(q)),
        ("regressor", (q, v, a, w), robot.regressor(q, v, a, v_ref=w)),
        ("inverse_dynamics_external", (q, v, a, v, f), robot.inverse_dynamics(q, v, a, f_ext=f)),
        ("forward_dynamics_external", (q, v, a, f), robot.forward_dynamics(q, v, a, f_ext=f)),
        ("inverse_dynamics_reference", (q, v, a, w), robot.inverse_dynamics(q, v, a, v_ref=w)),
    ):
        assert_close(robot.to_casadi(term)(*arguments), expected)
    frame = robot.frame_names[2]
    assert_close(robot.to_casadi("pose", frame=frame)(q), robot.pose(q, frame))
    J = robot.to_casadi("jacobian", frame=frame, representation="hybrid")
    assert_close(J(q), robot.jacobian(q, frame, "hybrid"))
    assert_close(robot.to_casadi("jacobian_rate", frame=frame)(q, v), robot.jacobian_rate(q, v, frame))


def test_names_and_shapes():
    f = models.two_link().to_casadi("forward_dynamics_derivatives")
    assert f.name() == "forward_dynamics_derivatives"
    assert [f.name_in(), f.name_out()] == [["q", "v", "tau"], ["dq", "dv", "dtau", "a"]]
    assert [f.size_out(k) for k in range(4)] == [(2, 2), (2, 2), (2, 2), (2, 1)]
    assert models.panda().to_casadi("inverse_dynamics_external").size_in("f_ext") == (7, 6)
    assert models.satellite().to_casadi("integrate").size_out("moved") == (12, 1)


def test_no_result_is_nan():
    robot = models.two_link()
    negative = robot.with_parameters(robot.parameters * [[1.0], [-1.0]], physical=False)
    assert np.isnan(np.array(negative.to_casadi("forward_dynamics")(np.ones(2), np.ones(2), np.ones(2)))).all()


# --- derivatives -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two_link", "panda", "ur10", "one joint", "coupled"])
def test_derivatives_are_the_analytic_ones(name):
    robot = ROBOTS[name]()
    for term, last, analytic in (
        ("inverse_dynamics", "a", robot.inverse_dynamics_derivatives),
        ("forward_dynamics", "tau", robot.forward_dynamics_derivatives),
    ):
        f = robot.to_casadi(term)
        slopes = f.factory("slopes", f.name_in(), [f"jac:{f.name_out(0)}:{x}" for x in ("q", "v", last)])
        q, v, a, _ = state(robot)
        for ours, expected in zip(slopes(q, v, a), analytic(q, v, a), strict=False):
            assert_close(ours, expected, 1e-11)


@pytest.mark.parametrize(
    "name",
    ["quadrotor", "satellite", pytest.param("three_spheres", marks=pytest.mark.slow), "random", "coupled and floating"],
)
def test_derivatives_along_velocities_of_joints_with_a_pose(name):
    robot = ROBOTS[name]()
    q, v, a, _ = state(robot)
    dv = casadi.SX.sym("dv", robot.nv)
    tau = robot.to_casadi("inverse_dynamics")(robot.to_casadi("integrate")(q, dv), v, a)
    slope = casadi.Function("slope", [dv], [casadi.jacobian(tau, dv)])
    assert_close(slope(np.zeros(robot.nv)), robot.inverse_dynamics_derivatives(q, v, a).dq, 1e-11)


def test_second_derivatives():
    robot = models.panda()
    q, v, a, w = state(robot)
    f, x = robot.to_casadi("inverse_dynamics"), casadi.SX.sym("q", 7)
    hessian = casadi.Function("hessian", [x], [casadi.hessian(casadi.dot(w, f(x, v, a)), x)[0]])
    second = gc.derivatives.inverse_dynamics_second_derivatives(robot, q, v, a)
    assert_close(hessian(q), np.einsum("i,ijk->jk", w, second.dqdq), 1e-11)


# --- operations --------------------------------------------------------------------------------------------------


def test_each_operation_is_numpys():
    grid = [-1e30, -3.5, -2.5, -1.0, -0.4, -1e-9, 0.0, 1e-9, 0.3, 0.5, 1.0, 1.5, 2.5, 7.0, 1e30]
    operations = casadi_functions._operations(casadi)
    assert {*operations} == {*VALUES} - {"square", "either"}, "these two are the code generator's"
    x, y, c = (casadi.SX.sym(name) for name in "xyc")
    truths = {"and": [x, y], "or": [x, y], "not": [x], "where": [c]}
    for op, f in operations.items():
        unary = op in {*UNARY, "neg", "not"}
        symbols = [c, x, y] if op == "where" else [x] if unary else [x, y]
        ours = casadi.Function("f", symbols, [f(*symbols)])
        logical = [any(s is other for other in truths.get(op, [])) for s in symbols]
        for numbers in itertools.product(*([False, True] if truth else grid for truth in logical)):
            with np.errstate(all="ignore"):
                expected = float(VALUES[op](*numbers))
            np.testing.assert_allclose(float(ours(*numbers)), expected, rtol=4e-15, err_msg=f"{op}{numbers}")


class Limited(gc.Controller):
    robot = models.two_link()

    def __call__(self, t, q, v, z):
        return gc.Command(np.where(q > 0.2, 5.0, q) + np.array([max(q[0], 0.5), min(0.5, q[0])]))


@pytest.mark.parametrize("q", [[np.nan, 0.1], [0.1, np.nan], [0.3, 0.7]])
def test_nan_takes_the_branch_that_python_takes(q):
    tau = gc.compile(Limited()).to_casadi()(0.0, q, np.ones(2))
    np.testing.assert_allclose(np.array(tau).ravel(), Limited()(0.0, np.array(q), np.ones(2), None).tau)


# --- laws --------------------------------------------------------------------------------------------------------


class Branching(gc.Controller):
    """Branches, a filter, a signal that is a matrix, and names that CasADi does not accept."""

    def __init__(self):
        self.robot = models.two_link()

    def start(self):
        return np.array([0.1, 0.0])

    def __call__(self, t, q, v, z):
        gain = 30.0 if abs(q[0]) > 0.2 else 10.0
        tau = -gain * q - np.where(v > 0.0, 2.0, 3.0) * v
        if t > 1.0 and z[0] < 0.0:
            tau = np.minimum(tau, 1.0)
        signals = {"e [rad]": q, "e (rad)": 2.0 * q, "M": self.robot.mass_matrix(q), "far": q[0] > 0.2, "_2": t}
        return gc.Command(tau, q - z, signals)


def laws():
    arm, panda, flying = models.two_link(), models.panda(), models.quadrotor()
    swing = references.Sinusoids(panda, [0, -0.5, 0, -2, 0, 1.5, 0.7], amplitude=0.2, frequency=0.4)
    return {
        "branches": Branching(),
        "no state": controllers.PDGravity(panda, swing(0.0).q),
        "adaptive": controllers.SlotineLi(arm, references.Sinusoids(arm, [0.3, 0.6], 0.3, 0.5)),
        "tracking": controllers.ComputedTorque(panda, swing),
        "floating": controllers.Passivity(flying, references.Sinusoids(flying, flying.neutral(), 0.15, 0.3)),
        "coupled": controllers.ComputedTorque(coupled(), references.Sinusoids(coupled(), [0.1, -0.4], 0.2, 0.5)),
    }


@pytest.mark.parametrize("name", laws())
def test_laws(name):
    controller = laws()[name]
    law, robot = gc.compile(controller), controller.robot
    f = law.to_casadi()
    rng, z0 = np.random.default_rng(3), law.start()
    for t in (0.0, 0.4, 1.7, 2.3):
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
        z = None if z0 is None else z0 + 0.3 * rng.normal(size=z0.shape)
        command = controller(t, q, v, z)
        ours = f(**{x: y for x, y in zip("tqvz", (t, q, v, z), strict=True) if y is not None})
        assert_close(ours.pop("tau"), command.tau)
        if z is not None:
            assert_close(ours.pop("z_rate"), command.z_rate)
        signals = dict(zip(list(law.outputs)[-len(ours) :], f.name_out()[-len(ours) :], strict=True))
        assert len(ours) == len(command.signals)
        for label, expected in command.signals.items():
            assert_close(ours[signals[label]], np.asarray(expected, float))


def test_names_of_signals():
    names = ["tau", "z_rate", "signal_e_rad", "signal_e_rad_2", "signal_M", "signal_far", "signal_2"]
    f = gc.compile(Branching()).to_casadi()
    assert (f.name(), f.name_in(), f.name_out()) == ("Branching", ["t", "q", "v", "z"], names)
    assert f.size_out("signal_M") == (2, 2)


def test_the_derivative_of_a_law_is_that_of_its_branch():
    f = gc.compile(Branching()).to_casadi()
    slope = f.factory("slope", f.name_in(), ["jac:tau:q", "jac:tau:v"])
    for q, v, gain, damping in (([0.3, 0.0], [1.0, -1.0], 30.0, [2.0, 3.0]), ([0.1, 0.5], [-1, -1], 10.0, [3.0, 3.0])):
        by_q, by_v = slope(0.0, q, v, np.zeros(2))
        assert_close(by_q, -gain * np.eye(2))
        assert_close(by_v, -np.diag(damping))


def test_the_derivative_where_a_rotation_error_is_zero():
    """The branch that is not taken divides by the angle there."""
    robot = models.satellite()
    law = gc.compile(controllers.PDGravity(robot, robot.neutral(), kp=3.0, kd=2.0)).to_casadi()
    dv = casadi.SX.sym("dv", robot.nv)
    tau = law(0.0, robot.to_casadi("integrate")(robot.neutral(), dv), np.zeros(robot.nv))[0]
    slope = casadi.Function("slope", [dv], [casadi.jacobian(tau, dv)])
    assert_close(slope(np.zeros(robot.nv)), -3.0 * np.eye(robot.nv))


# --- CasADi uses them --------------------------------------------------------------------------------------------


def test_generated_c_has_the_same_values(tmp_path, monkeypatch):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    robot = models.two_link()
    monkeypatch.chdir(tmp_path)
    robot.to_casadi("forward_dynamics").generate("f.c")
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", "f.so", "f.c", "-lm"], check=True)
    q, v, tau, _ = state(robot)
    compiled = casadi.external("forward_dynamics", str(tmp_path / "f.so"))
    assert_close(compiled(q, v, tau), robot.forward_dynamics(q, v, tau))


def test_many_states():
    robot = models.panda()
    states = [state(robot, seed)[:3] for seed in range(5)]
    q, v, a = (np.array(x) for x in zip(*states))
    mapped = robot.to_casadi("inverse_dynamics").map(5)
    assert_close(mapped(q.T, v.T, a.T).T, robot.inverse_dynamics(q, v, a))


# --- bad input ---------------------------------------------------------------------------------------------------


def test_terms_and_frames_that_do_not_exist():
    robot = models.two_link()
    with pytest.raises(NameNotFoundError, match=r"term: expected one of inverse_dynamics.* got 'inverse'"):
        robot.to_casadi("inverse")
    with pytest.raises(NameNotFoundError, match=r"term: expected one of .*, integrate, difference, .* got 3"):
        robot.to_casadi(3)
    with pytest.raises(ArgumentError, match="frame: expected the name of a frame for the term 'pose', got None"):
        robot.to_casadi("pose")
    with pytest.raises(ArgumentError, match="frame: expected None for the term 'integrate', got 'tip'"):
        robot.to_casadi("integrate", frame="tip")
    with pytest.raises(NameNotFoundError, match="no frame named 'nose'"):
        robot.to_casadi("pose", frame="nose")
    with pytest.raises(ArgumentError, match="representation"):
        robot.to_casadi("jacobian", frame="tip", representation="world")


def test_a_signal_with_three_axes_is_refused_by_name():
    class Cube(gc.Controller):
        robot = models.two_link()

        def __call__(self, t, q, v, z):
            return gc.Command(-q, signals={"cube": np.ones((2, 2, 2))})

    with pytest.raises(ArgumentError, match=r"two axes, as its signal 'cube' of \(2, 2, 2\)"):
        gc.compile(Cube()).to_casadi()


def test_casadi_that_is_missing_or_too_old(monkeypatch):
    robot = models.two_link()
    monkeypatch.setattr(casadi_functions, "OLDEST_VERSION", "99.1")
    with pytest.raises(GeomctrlError, match=r"to_casadi needs casadi 99\.1 or newer, got 3.*geomctrl\[casadi\]"):
        robot.to_casadi()
    monkeypatch.setitem(__import__("sys").modules, "casadi", None)
    with pytest.raises(GeomctrlError, match=r"needs the optional package casadi: pip install 'geomctrl\[casadi\]'"):
        gc.compile(Branching()).to_casadi()


def test_a_law_is_compared_with_python(monkeypatch):
    law = gc.compile(gc.controllers.PDGravity(gc.models.two_link(), [0.3, 0.6]))
    operations = casadi_functions._operations

    def wrong(casadi):
        return operations(casadi) | {"cos": casadi.sin}

    monkeypatch.setattr(casadi_functions, "_operations", wrong)
    with pytest.raises(gc.GeomctrlError, match="PDGravity: the CasADi function differs from Python"):
        law.to_casadi()


def test_a_term_is_compared_with_python(monkeypatch):
    operations = casadi_functions._operations
    monkeypatch.setattr(casadi_functions, "_operations", lambda x: operations(x) | {"cos": x.sin})
    with pytest.raises(gc.GeomctrlError, match="'two_link': tau of the compiled function differs from Python at q = "):
        models.two_link().to_casadi()
