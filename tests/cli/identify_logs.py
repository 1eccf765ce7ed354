"""`geomctrl identify` in this process, and logs of the bundled two-link arm for it."""

import numpy as np
from cli.command_line import invoke

from geomctrl import models
from geomctrl.identification import RegressorModel

RATE, PERIOD = 100.0, 5.0
GEARS, ZERO = np.array([50.0, -80.0]), np.array([0.1, -0.2])
VISCOUS, COULOMB, ROTOR = [0.4, 0.3], [0.5, 0.2], 0.07


WRITTEN = (0, 3)  # trust, or doubts that do not matter for a test of something else


def run(*arguments, status: int | tuple[int, ...] = WRITTEN):
    """Return the output. `status` is the expected exit status, or several that are allowed."""
    result = invoke("identify", *arguments)
    allowed = status if isinstance(status, tuple) else (status,)
    assert result.exit_code in allowed, result.output
    assert "Traceback" not in result.output
    return result.output


def simulated(seconds=20.0, periodic=False, noise=0.02, seed=0, **options):
    """(t, q, tau, model, true parameters) of the bundled two-link arm."""
    model = RegressorModel(models.two_link(), rotor=True, smoothing=0.02, **options)
    x = model.prior
    x[: model.inertial] *= 1.3  # the true arm differs from its model
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]], x[model.by_kind["rotor"]] = VISCOUS, COULOMB, ROTOR
    x[model.by_kind["curve"]] = 2.0
    t = np.arange(int(seconds * RATE)) / RATE
    f = np.array([[1, 2], [3, 4], [5, 7]]) / PERIOD if periodic else np.array([[0.23, 0.31], [0.77, 0.59], [1.1, 1.4]])
    w, A = 2 * np.pi * f, np.array([[0.8, 0.7], [0.4, 0.5], [0.2, 0.2]])
    angle = t[:, None, None] * w + np.array([[0, 1], [2, 3], [4, 5.0]])
    q, v, a = (A * np.sin(angle)).sum(1), (A * w * np.cos(angle)).sum(1), -(A * w**2 * np.sin(angle)).sum(1)
    tau = model.torque(x, q, v, a)
    return t, q, tau + noise * np.random.default_rng(seed).normal(size=tau.shape), model, x


def write(path, t, q, tau, header="t,q1,q2,tau1,tau2"):
    np.savetxt(path, np.column_stack((t, q, tau)), delimiter=",", header=header, comments="", fmt="%.17g")
    return path
