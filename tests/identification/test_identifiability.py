"""Identifiability of parameters: against null spaces, other priors, and simulated logs with known parameters."""

import numpy as np
import pytest
from lib import logs

from geomctrl import Body, Joint, Robot, inertia, models
from geomctrl.identification import Curve, Dataset, RegressorModel, Result, fit
from geomctrl.identification.report.identifiability import BY_PRIOR, OPEN, alone, bodies, exchanges, undecided
from geomctrl.terms.base_parameters import reduce_columns

RAD = np.pi / 180
COUPLED = [[1, 0], [0, 1], [1, 1]]


def tx40_of_a_file(digits):
    """The TX40's geometry with angles rounded as in model files."""

    def angle(degrees):
        return np.round(RAD * np.array(degrees), digits)

    return Robot.from_dh(
        [0, 0, 0.225, 0, 0, 0], angle([0, -90, 0, 90, -90, 90]), [0.32, 0, 0.035, 0.225, 0, 0],
        angle([0, 0, 0, 0, 0, 180]), convention="modified", inertias=[logs.body(3.0)] * 6,
    )  # fmt: skip


def by_null_space(model):
    """Non-inertial parameters that no change without effect on the torques contains: a reference computation by SVD."""
    rng = np.random.default_rng(7)
    n = model.size // model.robot.nv + 30
    q = np.array([model.robot.random_configuration(rng) for _ in range(n)])
    Y = model.regressor(q, *rng.normal(size=(2, n, model.robot.nv))).reshape(-1, model.size)
    length = np.linalg.norm(Y, axis=0)
    _, s, Vt = np.linalg.svd(Y / np.where(length > 0.0, length, 1.0))
    null = Vt[int((s > 1e-8 * s[0]).sum()) :]
    return {k for k in range(model.inertial, model.size) if np.abs(null[:, k]).max() < 1e-6}


MODELS = {
    "two links": lambda: RegressorModel(models.two_link(), rotor=True),
    "coupled": lambda: RegressorModel(models.two_link(), rotor=True, transmission=COUPLED, springs=["joint2"]),
    "tx40": lambda: RegressorModel(tx40_of_a_file(16), rotor=True),
    "tx40, twelve digits": lambda: RegressorModel(tx40_of_a_file(12), rotor=True),
    "tx40, eleven digits": lambda: RegressorModel(tx40_of_a_file(11), rotor=True, smoothing=0.03),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_parameter_stands_alone_where_no_change_without_effect_touches_it(name):
    model = MODELS[name]()
    assert {k for k in alone(model.base) if k >= model.inertial} == by_null_space(model)


@pytest.mark.slow
@pytest.mark.skipif(logs.missing("tx40_figaroh.npz") is not None, reason=str(logs.missing("tx40_figaroh.npz")))
def test_the_tx40_with_rotors_tells_its_friction_apart():
    robot = models.load_urdf(logs.FOLDER / "tx40_mdh_modified.urdf", physical="unchecked")
    model = RegressorModel(robot, rotor=True)
    data = logs.tx40_log().filtered(40.0, torque_cutoff=10.0, alike=True, decimate=50)
    report = Result(fit(model, data, "ols"), data)
    # they form sums with the links' inertias
    assert [row.name for row in report.non_inertial if row.remark] == ["Ir1", "Ir2"]
    assert report.text().count("by the prior only") == 2
    assert not report.left_open


def test_what_the_prior_decides_is_what_another_prior_changes():
    """Test the statement directly: ridge regression with hardly any weight, from two priors."""
    model = RegressorModel(models.two_link(), rotor=True, transmission=COUPLED, smoothing=0.05)
    x = model.prior
    x[model.inertial :] = np.linspace(0.1, 0.5, model.size - model.inertial)
    data = log_of(model, x, noise=1e-3)
    rng = np.random.default_rng(1)
    result = [fit(model, data, "ridge", prior=x + shift, strength=1e-9).x for shift in rng.normal(size=(2, model.size))]
    moved = {k for k in range(model.inertial, model.size) if abs(result[1][k] - result[0][k]) > 0.02}
    report = Result(fit(model, data, "ols"), data)
    assert {row.name for row in report.non_inertial if row.remark == BY_PRIOR} == {model.names[k] for k in moved}
    assert not any(row.remark == OPEN for row in report.non_inertial)
    assert 0 < len(moved) < model.size - model.inertial
    for row in report.non_inertial:  # an interval is that of a value
        assert (row.interval is None) == (row.remark == BY_PRIOR)


def log_of(model, x, noise=0.0, seconds=20.0, rate=100.0):
    t = np.arange(int(seconds * rate)) / rate
    w, phase = (
        2 * np.pi * np.array([[0.23, 0.31], [0.77, 0.59], [1.1, 1.4]]),
        np.array([[0, 1], [2, 3], [4, 5.0]]),
    )
    angle = t[:, None, None] * w + phase
    A = np.array([[0.8, 0.7], [0.4, 0.5], [0.2, 0.2]])
    q, v, a = (A * np.sin(angle)).sum(1), (A * w * np.cos(angle)).sum(1), -(A * w**2 * np.sin(angle)).sum(1)
    tau = model.torque(x, q, v, a)
    tau += noise * np.random.default_rng(0).normal(size=tau.shape)
    return Dataset(t, q, tau, v=v, a=a)


@pytest.mark.parametrize(("noise", "hidden"), [(1e-4, False), (0.5, True)])
def test_a_log_whose_noise_hides_a_curve_says_so(noise, hidden):
    """A sigmoid that bends above all speeds is viscous friction up to an error below the noise; the true friction
    is not.
    """
    model = RegressorModel(models.two_link(), smoothing=0.05, curves=[Curve(1, "sigmoid", 40.0)])
    x = model.prior
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]], x[model.by_kind["curve"]] = 0.4, 0.3, 4.0
    data = log_of(model, x, noise)
    estimate = fit(model, data, "ols")
    left_open = exchanges(estimate)
    assert {model.names[k] for k in undecided(estimate, left_open)} == ({"fv2", "fs2"} if hidden else set())
    report = Result(estimate, data)
    assert ("this log leaves open" in report.text()) == hidden
    assert {row.name for row in report.non_inertial if row.remark == OPEN} == ({"fv2", "fs2"} if hidden else set())
    if not hidden:
        return
    # the exchange in numbers: a viscous torque of v for a sigmoid of -40 tanh(v / 40)
    (only,) = left_open
    message = only.change.split()
    assert {message[0], message[-1]} == {"fs2", "fv2"}
    factor = float(message[2])
    assert factor == pytest.approx(1 / 40.0 if message[0] == "fs2" else 40.0, rel=0.05)
    # and the statement about noise, from the whole regressor: parameters in units of a joint's torque, rows in
    # units of noise
    Y = model.regressor(data.q, data.v, data.a)[..., model.base.columns]
    lengths = np.linalg.norm(Y, axis=0)  # (joints, parameters)
    unit = (np.linalg.norm(data.tau, axis=0)[:, None] / np.where(lengths > 0.0, lengths, 1e-300)).min(0)
    deviation = estimate.noise * np.sqrt(estimate.correlation)
    assert np.linalg.norm(only.parts) == pytest.approx(1.0)
    assert np.linalg.norm(Y @ (only.parts * unit) / deviation) == pytest.approx(only.seen, rel=1e-6)


def test_correlated_noise_hides_what_white_noise_of_its_size_does_not():
    """By the square root of the factor that correlation gives a variance; for a first-order process (1 + r) / (1 -
    r).
    """
    from scipy.signal import lfilter

    model = RegressorModel(models.two_link(), smoothing=0.05, curves=[Curve(1, "sigmoid", 40.0)])
    r, white = 0.9, np.random.default_rng(5).normal(size=(2500, 2))
    coloured = lfilter([np.sqrt(1.0 - r**2)], [1.0, -r], white, axis=0)[500:]
    clean = log_of(model, model.prior + 0.2)
    result = []
    for noise in (white[500:], coloured):
        data = Dataset(clean.t, clean.q, clean.tau + noise, v=clean.v, a=clean.a)
        (only,) = exchanges(fit(model, data, "ols"))
        result.append(only.seen)
    assert result[0] / result[1] == pytest.approx(np.sqrt((1.0 + r) / (1.0 - r)), rel=0.2)
    # an estimate without correlation is corrected for it, joint by joint
    factors = fit(model, model.compress(data), "ols")
    assert factors.correlation is None
    (plain,) = exchanges(factors)
    (told,) = exchanges(factors, np.full(2, 9.0))
    assert plain.seen / told.seen == pytest.approx(3.0, rel=1e-6)
    assert exchanges(factors, np.full(2, 0.1))[0].seen == pytest.approx(plain.seen)  # chance does not count


def test_a_joint_that_stands_still_is_named():
    model = RegressorModel(models.two_link(), smoothing=0.05)
    data = log_of(model, model.prior + 0.1, noise=1e-3)
    q, v, a = data.q.copy(), data.v.copy(), data.a.copy()
    q[:, 1], v[:, 1], a[:, 1] = 0.3, 0.0, 0.0
    still = Dataset(data.t, q, model.torque(model.prior + 0.1, q, v, a), v=v, a=a)
    estimate = fit(model, still, "ridge")
    message = [x.change for x in exchanges(estimate)]
    assert "fv2: the log does not excite it" in message
    assert "fc2: the log does not excite it" in message
    assert {"fv2", "fc2"} <= {model.names[k] for k in undecided(estimate, exchanges(estimate))}
    assert "fv1" not in {model.names[k] for k in undecided(estimate, exchanges(estimate))}


def test_logs_without_noise_hide_nothing():
    model = RegressorModel(models.two_link(), smoothing=0.05)
    data = log_of(model, model.prior + 0.1)
    assert exchanges(fit(model, data, "ols")) == []


def test_a_coefficient_is_zero_where_the_rank_s_tolerance_hides_it():
    """Column 3 is column 1 plus 1e-11 of column 2: both count as dependent, so 1e-11 has no meaning; 1e-6 would
    have.
    """
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(50, 3)) * [1.0, 1e-3, 1.0]
    for part, named in ((1e-11, False), (1e-6, True)):
        Y[:, 2] = Y[:, 0] + part * 1e3 * Y[:, 1]
        projection = reduce_columns(Y).projection
        assert projection.shape == (2, 3)
        counts = np.count_nonzero(projection, axis=1)
        assert sorted(counts) == ([2, 2] if named else [1, 2])


def test_bodies_are_told_in_numbers_a_person_knows():
    R = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    I = R @ np.diag([0.01, 0.02, 0.025]) @ R.T
    body = Body("arm", None, Joint.revolute((0, 0, 1)), None, inertia.from_com(2.0, [0.1, -0.2, 0.3], I))
    arm = Robot.build([body])
    model = RegressorModel(arm, smoothing=0.05)
    x = model.prior
    x[: model.inertial] *= 1.5
    t = np.arange(400) / 100.0
    q, v, a = (s[:, None] for s in (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    estimate = fit(model, Dataset(t, q, model.torque(x, q, v, a), v=v, a=a), "ols")
    ((result, given),) = bodies(estimate)
    assert given.mass == pytest.approx(2.0)
    np.testing.assert_allclose(given.com, [0.1, -0.2, 0.3])
    np.testing.assert_allclose(given.moments, [0.01, 0.02, 0.025], rtol=1e-9)
    assert given.violation is None
    assert result.name == "arm"
