"""`EnergyBalance`: the energy balance of a run, which measures the error of the integrator."""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import tolerance
from geomctrl.tracing.numbers import scalar

from .monitor import UNRESOLVED, VIOLATED, Finding, Monitor
from .replay import Replay

MAX_SAMPLES = 192  # samples at which a suspected violation is confirmed


class EnergyBalance(Monitor):
    """|H(t) - H(0) - supplied work| relative to the largest energy or work so far: the error of the integrator.

    H is the energy of the robot plus the energy stored in the plant: springs, rotors and coils of actuators, friction.
    The smallest reference is the energy that lifts the robot by one centimetre.

    Parameters
    ----------
    limit : float
        Largest value that counts as held. Default: 1e-6.

    Raises
    ------
    ArgumentError
        If `limit` is negative or not finite.

    Examples
    --------
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.0, 0.0], kp=50.0, kd=10.0)
    >>> monitor = gc.monitors.EnergyBalance()
    >>> run = gc.simulate(law.robot, law, [0.1, 0.0], [0.0, 0.0], t_end=0.01, dt=1e-3, monitors=[monitor])
    >>> result = run.monitors["energy"]  # its values are those of monitor.measure(sample) at each step
    >>> result.verdict, bool(result.worst < result.limit)  # above the limit monitor.confirm(replay) decides
    ('held', True)
    """

    name = "energy"
    description = "energy balance H(t) - H(0) - integral of power, relative"

    def __init__(self, limit: float = 1e-6):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        weight = plant.robot.parameters[:, 0].sum() * np.linalg.norm(plant.robot.gravity)
        self.stores_energy, self.least = plant.stores_energy, max(0.01 * weight, 1e-3)
        self.baseline, self.work0, self.scale, self.drift = None, 0.0, self.least, 0.0
        return True

    def measure(self, sample):
        """Return the relative error of the energy balance up to this sample.

        Parameters
        ----------
        sample : Sample
            The next sample of the run.

        Returns
        -------
        float
            |H(t) - H(0) - work| / scale, dimensionless.
        """
        H = self._energy(sample.plant, sample.q, sample.v, sample.x)
        if self.baseline is None:
            self.baseline = H
        elif sample.changed:  # the load brings its own energy: restart the balance, but keep the error so far
            self.baseline, self.work0 = H - self.drift, sample.work
        self.drift = H - self.baseline - (sample.work - self.work0)
        self.scale = max(self.scale, abs(H - self.baseline), abs(sample.work - self.work0))
        return abs(self.drift) / self.scale

    def _energy(self, plant, q, v, x):
        H = scalar(plant.robot.energy(q, v))
        return H + plant._energy_outside_robot(q, x) if self.stores_energy else H

    def confirm(self, replay):
        """Report a violation if dH/dt differs from the power at the samples, where no integrator is involved.

        H' - power, integrated over the samples, is the part of the drift that smaller steps do not reduce. The rest is
        truncation, which decreases with the step.

        Parameters
        ----------
        replay : Replay
            The stored run, whose steps can be repeated.

        Returns
        -------
        Finding
            VIOLATED, or UNRESOLVED with the step size that would reduce the integration error below the limit.
        """
        run, result = replay.run, replay.run.monitors[self.name]
        if not np.isfinite(result.worst):
            return Finding(VIOLATED, "the energy is not finite")
        ks = self._samples(result.values)
        rows = np.array([self._residual(replay, k) for k in ks])
        finite = np.isfinite(rows).all(axis=1)
        ks, rows = ks[finite], rows[finite]
        if len(ks) > 1:
            H, residual, error = rows.T
            dt = np.diff(run.t[ks])
            drift, unsure = (np.cumsum(0.5 * (x[1:] + x[:-1]) * dt) for x in (residual, error))
            size = np.maximum.accumulate(np.maximum(self.least, np.abs(H - H[0])))[1:]
            margin = float(((np.abs(drift) - unsure) / size).max()) / self.limit
            if not margin <= 1.0:
                worst = int(np.argmax(np.abs(residual) - error))
                reason = f"dH/dt differs from the power by {residual[worst]:.3g} W at t = {run.t[ks[worst]]:.6g} s"
                return Finding(VIOLATED, reason, "the plant's energy, power and rate contradict each other")
        if replay.adaptive:
            return Finding(
                UNRESOLVED,
                "dH/dt equals the power at the samples; the drift is integration error",
                "lower rtol and atol",
            )
        order = max(replay.order - 1, 1)  # the lowest observed order, if few steps cause most of the error
        dt = 0.9 * replay.dt * (self.limit / result.worst) ** (1.0 / order) if self.limit > 0.0 else np.nan
        advice = f"dt = {dt:.1g} s, if the plant is smooth" if np.isfinite(dt) else ""
        return Finding(UNRESOLVED, "dH/dt equals the power at the samples; the drift is integration error", advice, dt)

    def _samples(self, values: np.ndarray) -> np.ndarray:
        """Evenly spaced samples, and those before and after the largest losses."""
        n = len(values)
        if n <= MAX_SAMPLES:
            return np.arange(n)
        even = np.linspace(0, n - 1, MAX_SAMPLES // 2).astype(int)
        steepest = np.argsort(-np.abs(np.diff(values)), kind="stable")[: MAX_SAMPLES // 4]
        return np.unique(np.concatenate((even, steepest, steepest + 1)))

    def _residual(self, replay: Replay, k: int) -> tuple[float, float, float]:
        """(H, dH/dt - power, error estimate) at a stored sample, by fourth-order differences along the vector field.

        Two spans are used; their difference measures truncation and rounding.
        """
        t, y = replay.state(k)
        _, q, v, _, plant = replay.split(t, y)
        x, n, robot = replay.loop.plant_state(y), plant.robot.nv, plant.robot
        rate = np.zeros(2 * n + 1 + (0 if x is None else len(x)))
        plant.rate(t, q, v, replay.run.tau[k], rate, x)
        a, x_rate = rate[n : 2 * n], rate[2 * n : -1]

        def along(s: float) -> float:
            return float(
                self._energy(plant, robot.integrate(q, s * v), v + s * a, None if x is None else x + s * x_rate)
            )

        h = min(1e-3, 1e-2 / (1.0 + np.abs(v).max()), 1e-2 / (1.0 + np.abs(rate[n:-1]).max()) ** 0.5)
        slopes = []
        for span in (h, 0.5 * h):
            ends = [along(j * span) for j in (-2.0, -1.0, 1.0, 2.0)]
            slopes.append(np.dot((1.0, -8.0, 8.0, -1.0), ends) / (12.0 * span))
        forces = np.abs(robot.mass_matrix(q) @ a) + np.abs(robot.gravity_force(q))
        terms = max(map(abs, ends)) / h + np.abs(v) @ forces + abs(rate[-1]) + np.abs(q).max() * forces.sum() / h
        rounding = 16.0 * np.finfo(float).eps * terms
        return along(0.0), slopes[1] - rate[-1], abs(slopes[1] - slopes[0]) + rounding
