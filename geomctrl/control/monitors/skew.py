"""`Skew`: skew symmetry of Mdot - 2C, which proofs based on mechanical energy use."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.arguments import checked, tolerance
from geomctrl.compiler.kernel_traces import run
from geomctrl.errors import ArgumentError
from geomctrl.kernels import skewness as kernels
from geomctrl.terms.dynamics import form_number
from geomctrl.terms.skewness import residual_of, residual_of_terms
from geomctrl.tracing.numbers import has_symbols

from .monitor import UNRESOLVED, VIOLATED, Finding, Monitor

MAX_SAMPLES = 16  # samples used for confirmation


class Skew(Monitor):
    """|N + N^T| with N = Mdot - 2C at the visited states, relative to max(|Mdot|, 2 |C|, |M| |v|), entrywise norms.

    C is the controller's `coriolis_matrix` if it has one, otherwise that of its model or of the plant in the
    controller's `form`. Mdot is the rate of the model's mass matrix along the motion, computed independently of C. The
    monitor also tests that C is a Coriolis matrix: C v + g against the recursive Newton-Euler algorithm and, unless C
    is the controller's own, M s + C s + g against the recursion with a reference velocity. There s is the command's
    signal "s", or v.

    Parameters
    ----------
    limit : float
        Largest value that counts as held. Default: 1e-10.

    Raises
    ------
    ArgumentError
        If `limit` is negative or not finite.

    Examples
    --------
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.0, 0.0], kp=50.0, kd=10.0)
    >>> monitor = gc.monitors.Skew()
    >>> run = gc.simulate(law.robot, law, [0.1, 0.0], [0.0, 0.0], t_end=0.01, dt=1e-3, monitors=[monitor])
    >>> run.monitors["skew"].verdict
    'held'
    """

    name = "skew"
    description = "asymmetry of Mdot - 2C, error of C v, relative"

    def __init__(self, limit: float = 1e-10):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        self.coriolis = getattr(controller, "coriolis_matrix", None)
        self.model = getattr(controller, "robot", plant.robot)
        self.form: Any = getattr(controller, "form", "ploen")
        form_number(self.form)
        return True

    def measure(self, sample):
        return self._residual(sample.q, sample.v, sample.signals.get("s"))

    def _residual(self, q, v, s: Any) -> Any:
        if self.coriolis is not None:
            C = self.coriolis(q, v)
            return residual_of(self.model, q, v, C if has_symbols(C) else np.array(C, float))
        s = v if np.shape(s) != v.shape else s if has_symbols(s) else np.array(s, float)
        return residual_of_terms(self.model, q, v, s, self.form)

    def confirm(self, replay):
        """Repeat the test at neighbouring states: an identity fails there too, rounding near a singularity does not."""
        run, rng = replay.run, np.random.default_rng(0)
        for k in replay.beyond(self)[:MAX_SAMPLES]:
            s, residuals = run.signals.get("s"), []
            for _ in range(3):
                shift = 1e-6 * rng.normal(size=run.v.shape[1])
                q, v = self.model.integrate(run.q[k], shift), run.v[k] * (1.0 + shift)
                residuals.append(self._residual(q, v, None if s is None else s[k]))
            if not min(residuals) <= self.limit:
                return Finding(VIOLATED, f"the same residual occurs at neighbours of the state at t = {run.t[k]:.6g} s")
        if replay.beyond(self):
            return Finding(UNRESOLVED, "not at neighbouring states: rounding near a singular state may explain it")
        return Finding(UNRESOLVED, "the sample was not stored", "store every sample, every=1")


def skew_residual(M: np.ndarray, Mdot: np.ndarray, C: np.ndarray, v: np.ndarray) -> float:
    """Asymmetry of N = Mdot - 2C: |N + N^T| / max(|Mdot|, 2 |C|, |M| |v|), entrywise, for one state.

    Matrices are (nv, nv), v is (nv,). The result is infinite if an argument is not finite.
    """
    M, arrays = checked("M", M, (), finite=False), []
    n = M.shape[-1] if M.ndim else 0
    for name, x, shape in (("M", M, (n, n)), ("Mdot", Mdot, (n, n)), ("C", C, (n, n)), ("v", v, (n,))):
        arrays.append(checked(name, x, shape, finite=False))
        if arrays[-1].ndim != len(shape):
            raise ArgumentError(f"{name}: expected shape {shape}, got {np.shape(x)}")
    return run(kernels.skew_residual, *arrays)
