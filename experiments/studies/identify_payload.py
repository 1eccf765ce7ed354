"""Identify the load of a Panda from a log, and use the result in a tracking controller.

1. The arm grips an unknown load. It follows a short exciting trajectory under computed torque without models of load
and
   friction. Torques, and positions at the motors, are logged with noise (simulated: closed loop, torque held for 1 ms).
2. `identify_load` identifies the load's mass, centre and inertia, physically consistent and with intervals, and the
   joints' friction from that log; the robot itself is known.
3. Computed torque with the identified model tracks another motion. It is compared with computed torque without load and
   friction, with computed torque with the true model, and with Slotine and Li's adaptive controller, which also starts
   without them and adapts.

It prints the root mean square joint errors of the whole motion and of its last third, and the largest torque.
"""

from __future__ import annotations

import numpy as np

import geomctrl as gc
from geomctrl import models
from geomctrl.control.references import Sinusoids
from geomctrl.controllers import ComputedTorque, SlotineLi
from geomctrl.identification import Dataset, Filtering, RegressorModel, identify_load
from geomctrl.identification.excitation import MotionSearch, optimize
from geomctrl.identification.loads import LoadReport

MASS, COM, RADII = 2.0, np.array([0.03, -0.02, 0.08]), np.array([0.05, 0.06, 0.04])  # kg, m in the flange's frame, m
VISCOUS, COULOMB, SMOOTHING = 0.4, 0.25, 0.02  # N m s/rad, N m, rad/s
KP, KD = 100.0, 20.0  # 1/s^2, 1/s
ENCODER, TORQUE = 1e-5, 0.05  # rad, N m


def log_of(plant: gc.Plant, nominal: gc.Robot, trajectory, seed: int = 0) -> Dataset:
    q0 = trajectory(0.0).q
    controller = ComputedTorque(nominal, trajectory, KP, KD)
    run = gc.simulate(
        plant, controller, q0, np.zeros(nominal.nv), trajectory.duration, 1e-3, control_dt=1e-3, monitors=None
    )
    rng = np.random.default_rng(seed)
    q = run.q + ENCODER * rng.normal(size=run.q.shape)
    return Dataset(run.t, q, run.tau + TORQUE * rng.normal(size=run.tau.shape), label="Panda with a load")


def load_of(nominal: gc.Robot, log: Dataset) -> LoadReport:
    """The load on the flange that the model lacks, and the joints' friction."""
    model = RegressorModel(nominal, offset=False, smoothing=SMOOTHING)
    return identify_load(nominal, log, frame="panda_link8", model=model, filtering=Filtering(cutoff=20.0, decimate=10))


def tracking(plant, controller, reference, duration):
    start = reference(0.0)
    run = gc.simulate(plant, controller, start.q, start.v, duration, 2e-3, control_dt=2e-3, monitors=None)
    error = run.q - np.array([reference(t).q for t in run.t])
    rms = np.sqrt(np.mean(error**2)), np.sqrt(np.mean(error[2 * len(error) // 3 :] ** 2))
    return rms, np.abs(run.tau).max()


def experiment(duration: float = 9.0, iterations: int = 45) -> dict[str, tuple[tuple[float, float], float]]:
    nominal = models.panda()
    friction = gc.Friction(VISCOUS, COULOMB, SMOOTHING)
    I_com = MASS / 5.0 * np.diag((RADII**2).sum() - RADII**2)  # a solid ellipsoid
    true = nominal.with_payload(MASS, COM, I_com, "panda_link8")
    plant = gc.Plant(true, friction)
    loaded, search = nominal.with_payload(3.0, COM, frame="panda_link8"), MotionSearch(iterations=iterations)
    excitation = optimize(loaded, 6.0, terms=4, search=search)
    print(excitation.text(), "\n")
    log = log_of(plant, nominal, excitation.trajectory)
    load = load_of(nominal, log)
    low, high = load.intervals["mass"]
    print(f"load mass        {load.mass:8.4f} kg, 95 % {low:.4f} to {high:.4f}    true {MASS}")
    print(f"centre of mass   {np.round(load.centre, 4)} m    true {COM}")
    print(
        f"inertia about it {np.round(np.linalg.eigvalsh(load.inertia), 5)} kg m^2   "
        f" true {np.round(np.sort(np.diag(I_com)), 5)}"
    )
    fv, fc = (np.array([load.friction[f"{kind}{k + 1}"] for k in range(nominal.nv)]) for kind in ("fv", "fc"))
    print(f"friction         {fv.mean():.3f} N m s/rad, {fc.mean():.3f} N m (means)    true {VISCOUS}, {COULOMB}")
    print(f"doubts           {', '.join(d.kind for d in load.findings) or 'none'}\n")
    identified_friction = gc.Friction(fv, fc, SMOOTHING)

    q0 = np.array([0.0, -0.6, 0.2, -2.0, 0.1, 1.6, 0.4])
    amplitude = np.array([[0.4, 0.3, 0.4, 0.3, 0.5, 0.4, 0.6], [0.1, 0.1, 0.1, 0.1, 0.15, 0.1, 0.2]])
    frequency = np.array([[0.31, 0.42, 0.37, 0.29, 0.53, 0.47, 0.61], [0.9, 0.8, 1.0, 0.7, 1.1, 0.9, 1.2]])
    reference = Sinusoids(nominal, q0, amplitude, frequency, start_at_rest=1.0)
    controllers = {
        "computed torque, no load": ComputedTorque(nominal, reference, KP, KD),
        "computed torque, identified": ComputedTorque(load.robot, reference, KP, KD, identified_friction),
        "computed torque, truth": ComputedTorque(true, reference, KP, KD, friction),
        "adaptive, from no load": SlotineLi(
            nominal, reference, Lambda=KP / KD, K=[20.0, 20.0, 10.0, 10.0, 2.0, 2.0, 0.5],
            adapt=[nominal.body_names[-1]], friction=gc.Friction(0.0, 0.0, SMOOTHING), rate=2.0,
        ),
    }  # fmt: skip
    results = {}
    print(f"{'controller':30}{'rms error':>14}{'last third':>14}{'peak torque':>14}")
    for name, controller in controllers.items():
        results[name] = tracking(plant, controller, reference, duration)
        (whole, last), peak = results[name]
        print(f"{name:30}{1e3 * whole:9.3f} mrad{1e3 * last:9.3f} mrad{peak:10.1f} N m")
    return results


if __name__ == "__main__":
    experiment()
