"""Identities that every friction model must satisfy: one call checks a model wherever friction is used."""

import numpy as np
from simulation_options import grouped

import geomctrl as gc
from geomctrl import actuators, identification, measures, models
from geomctrl.control import ElasticPlant
from geomctrl.control.friction.model import needs_load

ARM = models.two_link()
Q0, V0 = np.array([0.3, -0.7]), np.array([0.5, -0.2])


class Wave:
    """Torques that move the joints of an arm to and fro; those on links of an elastic plant are zero."""

    def __init__(self, n=2):
        self.amplitude = np.concatenate((np.zeros(n - 2), [5.0, 3.0]))

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.amplitude * np.sin(9.0 * t))


def run_of(plant, compiled, q0=Q0, v0=V0, t_end=0.5, dt=5e-4, **options):
    return gc.simulate(plant, Wave(plant.inputs), q0, v0, t_end, dt, **grouped(compiled=compiled, **options))


def plants(make):
    """The plants on which friction acts, with their initial states; make(n) returns the model for n coordinates."""
    gears = actuators.SeriesElasticity([400.0, 300.0], [0.2, 0.1])
    return {
        "rigid": (gc.Plant(ARM, make(2)), Q0, V0),
        "driven": (gc.Plant(ARM, make(2), actuators=[actuators.Lag(0.02), gears]), Q0, V0),
        "elastic": (ElasticPlant(ARM, [400.0, 300.0], [0.2, 0.1], make(4)), np.tile(Q0, 2), np.tile(V0, 2)),
    }


def check_power_flow(model, n=2):
    """v . torque = rate of stored energy + dissipation at random states; the rate is a difference quotient of the
    state.
    """
    rng, x0 = np.random.default_rng(1), model.start(np.zeros(n))
    for _ in range(50):
        v, load = rng.normal(size=(2, n))
        x = None if x0 is None else 1e-3 * rng.normal(size=len(x0))
        stored = 0.0
        if x is not None:
            rate, h = model.state_rate(v, load, x), 1e-6
            stored = (model.stored_energy(x + h * rate) - model.stored_energy(x - h * rate)) / (2.0 * h)
        taken = v @ model.torque(v, load, x)
        assert abs(taken - stored - model.dissipation(v, load, x)) <= 1e-8 * (1.0 + abs(taken))


def check_runs(make):
    """On every plant, the compiled run equals Python's and the energy balance holds."""
    for name, (plant, q0, v0) in plants(make).items():
        python, compiled = (run_of(plant, choice, q0, v0, monitors="default") for choice in (False, True))
        for run in (python, compiled):
            assert run.success, name
            assert run.monitors["energy"].ok, (name, str(run.monitors["energy"]))
        np.testing.assert_allclose(compiled.q, python.q, rtol=0.0, atol=1e-10, err_msg=name)
        if python.x is not None:
            np.testing.assert_allclose(compiled.x, python.x, rtol=0.0, atol=1e-10, err_msg=name)


def check_sweep(make):
    """A sweep over payloads returns the measures of single runs."""

    def case(point):
        return gc.Plant(ARM.with_payload(point["payload"]), make(2)), Wave(), Q0, V0

    table = gc.sweep(case, {"payload": [0.0, 0.5, 1.0]}, [measures.PeakTorque(), last], 0.2, 5e-4)
    for k, payload in enumerate([0.0, 0.5, 1.0]):
        run = run_of(gc.Plant(ARM.with_payload(payload), make(2)), False, t_end=0.2)
        np.testing.assert_allclose(table.last.values[k], run.q[-1], rtol=0.0, atol=1e-10)


def last(run):
    return run.q[-1]


def check_identification(make):
    """The parameters of a linear model are identified exactly from a log that it generated, together with inertia."""
    friction = make(2)
    model = identification.RegressorModel(ARM, viscous=False, coulomb=False, offset=False, columns=[friction])
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, 400, 2))
    loads = ARM.inverse_dynamics(q, v, a)
    tau = loads + np.array([friction.torque(x, y) for x, y in zip(v, loads)])
    reference = model.torque(np.where(np.arange(model.size) < model.inertial, model.prior, 0.0), q, v, a)
    Y = model.regressor(q, v, a)[..., model.inertial :]
    result = np.linalg.lstsq(Y.reshape(-1, Y.shape[-1]), (tau - reference).ravel(), rcond=None)[0]
    np.testing.assert_allclose(result, friction.parameters(2), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.prior[model.inertial :], friction.parameters(2), rtol=1e-12)


def check_output_error(make):
    """Closed-loop output error finds the parameters of a model together with the inertia, from the loop that moved the
    arm.
    """
    friction, period = make(2), 4e-3
    motion = gc.references.Sinusoids(ARM, Q0, [[0.6, 0.5], [0.3, 0.4]], [[0.4, 0.7], [1.9, 1.3]], start_at_rest=0.2)
    loop = identification.ServoLoop(motion, [400.0, 200.0], [30.0, 15.0], period=period)

    def servo(t, q, v, z):
        d = motion(t)
        return gc.Command(loop.kp * (d.q - q) + loop.kd * (d.v - v))

    run = gc.simulate(gc.Plant(ARM, friction), servo, Q0, np.zeros(2), 1.0, 2e-4, control_dt=period, monitors=None)
    log = identification.Dataset(run.t[::20], run.q[::20], run.tau[::20])
    model = identification.RegressorModel(ARM, viscous=False, coulomb=False, offset=False, columns=[friction])
    outcome = identification.closed_loop_fit(identification.fit(model, log.filtered(20.0)), log, loop, "cloe")
    assert outcome.converged
    values = [outcome.value(column.name) for column in model.columns]
    np.testing.assert_allclose(values, friction.parameters(2), rtol=1e-3, atol=1e-3)


def check_model(make):
    """Run all checks above; make(n) returns the model for n velocity coordinates."""
    check_power_flow(make(2))
    check_runs(make)
    check_sweep(make)
    if make(2).is_linear:
        check_identification(make)
        if not needs_load(make(2), 2):
            check_output_error(make)
