"""MuJoCo's equations of motion as a plant: its contacts, constraints and friction with geomctrl's controllers.

The plant computes MuJoCo's acceleration (`mj_forward`) at our state under the controller's torques. Integrators,
holding of commands and monitors are those of `simulate`. A run therefore differs from one with `mj_step` only in the
integrator, and from one on a `Plant` only in what MuJoCo's model adds.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from geomctrl.arguments import checked
from geomctrl.control.plant import Plant
from geomctrl.models.io.mjcf import require_mujoco, with_descriptions
from geomctrl.tracing.numbers import has_symbols
from geomctrl.tracing.untraceable import UntraceableError

from .states import MatchedJoint, mujoco_joints, put_mujoco, velocities_from_mujoco


def mujoco_plant(source: Any, f_ext: Any = None, actuators: Any = ()) -> MujocoPlant:
    """Create a plant from an MJCF file, from a string of XML, or from a compiled model.

    This needs the package `mujoco` (pip install 'geomctrl[mjcf]').

    Parameters
    ----------
    source : str, Path or mujoco.MjModel
        The file, the XML text itself, or a model, of which the plant keeps a copy.
    f_ext, actuators
        As for `Plant`.

    Returns
    -------
    MujocoPlant
        Its `robot`, which controllers and monitors use, is what `models.load_mjcf` loads without the features that a
        rigid-body tree does not represent. Those act in the plant only, and `beyond` lists them.

    Raises
    ------
    ModelError
        If the source is not a valid MJCF.
    GeomctrlError
        If the package is not installed or too old.

    Notes
    -----
    Contacts, equality constraints, limits, tendons, friction, damping, springs and fluid forces are MuJoCo's. The
    model's actuators are disabled: a controller commands joint torques, or the inputs of `actuators`. Runs are in
    Python.

    Monitors work as usual, with two exceptions. The energy balance includes the power of MuJoCo's forces. It closes to
    the integrator's order if they are smooth, but not through impacts, and it is wrong if `beyond` lists inertia that
    the robot does not have (armature of ball joints or tendons). The decrease of a Lyapunov function is proved for the
    robot alone; contact, friction and limits may violate it.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> text = '''<mujoco><worldbody><body><joint axis="0 1 0"/>
    ... <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02"/></body></worldbody></mujoco>'''
    >>> plant = gc.interop.mujoco_plant(text)
    >>> law = lambda t, q, v, z: gc.Command(-0.1 * v)
    >>> gc.simulate(plant, law, [0.5], [0.0], t_end=0.1, dt=1e-3).success
    True
    """
    return MujocoPlant(source, f_ext, actuators)


class MujocoPlant(Plant):
    """The plant that `mujoco_plant` returns. model: the mujoco.MjModel; beyond: features that `robot` does not have."""

    model: Any
    beyond: tuple[str, ...]
    _mujoco: Any
    _joints: list[MatchedJoint]
    _own: threading.local  # MuJoCo's data, one for each thread

    def __init__(self, source: Any, f_ext: Any = None, actuators: Any = ()):
        mujoco, model, robot, beyond = with_descriptions(source, "mujoco_plant")
        super().__init__(robot, None, f_ext, actuators=actuators)
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        own = {"model": model, "beyond": beyond, "_mujoco": mujoco, "_joints": mujoco_joints(robot, model)}
        for name, value in (own | {"_own": threading.local()}).items():
            object.__setattr__(self, name, value)

    def __getstate__(self):
        return {name: x for name, x in vars(self).items() if name not in ("_own", "_mujoco")}

    def __setstate__(self, state):
        own = {"_mujoco": require_mujoco("a saved MujocoPlant"), "_own": threading.local()}
        for name, x in (state | own).items():
            object.__setattr__(self, name, x)

    def _moved(self, t, q, v, tau) -> Any:
        """MuJoCo's data for a state and joint torques. It belongs to this thread and is valid until the next call."""
        if has_symbols(q):
            raise UntraceableError("MuJoCo's equations of motion can not be traced: runs on them are in Python")
        for name, x in (("q", q), ("v", v), ("tau", tau)):
            if not math.isfinite(sum(x.tolist())):
                checked(name, x, x.shape)
        if not hasattr(self._own, "data"):
            self._own.data = self._mujoco.MjData(self.model)
        data, qs, x = self._own.data, q[None], np.empty((1, self.model.nq))
        u, force = np.empty((2, 1, self.model.nv))
        put_mujoco(self._joints, qs, v[None], x, u)
        put_mujoco(self._joints, qs, self._pushed(t, q, v, tau)[None], x, force)
        data.time, data.qpos[:], data.qvel[:], data.qfrc_applied[:] = t, x[0], u[0], force[0]
        data.qacc_warmstart[:] = 0.0
        self._mujoco.mj_forward(self.model, data)
        return data

    def _ours(self, q, force) -> np.ndarray:
        return velocities_from_mujoco(self._joints, q[None], np.array(force)[None])[0]

    def acceleration(self, t, q, v, tau, x=None):
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        return self._rate_of(q, v, self._moved(t, q, v, self._applied(t, q, v, tau, x)))

    def power(self, t, q, v, tau, x=None):
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        out = np.empty(2 * self.robot.nv + (0 if x is None else len(x)) + 1)
        self.rate(t, q, v, tau, out, x)
        return float(out[-1])

    def rate(self, t, q, v, tau, out, x=None):
        stored, n = 0.0, self.robot.nv
        if self._chain is not None:
            tau, rates, stored = self._chain.driven(t, tau, v, x)
            if rates is not None:
                out[-1 - len(rates) : -1] = rates
        data = self._moved(t, q, v, tau)
        out[:n], out[n : 2 * n] = v, self._rate_of(q, v, data)
        out[-1] = data.qvel @ (data.qfrc_applied + data.qfrc_passive + data.qfrc_constraint) + stored

    def _rate_of(self, q, v, data) -> np.ndarray:
        a = self._ours(q, data.qacc)
        for match in self._joints:
            if match.joint.kind == "free":  # MuJoCo's linear velocity is R v, whose rate has the term R (w x v)
                w, linear = v[match.v][:3], v[match.v][3:]
                a[match.v.start + 3 : match.v.stop] -= np.cross(w, linear)
        return a

    def constraint_torque(
        self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: np.ndarray | None = None
    ) -> np.ndarray:
        """Joint torques (nv,) [N m, N] of contacts, limits, equality constraints and dry friction."""
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        return self._ours(q, self._moved(t, q, v, self._applied(t, q, v, tau, x)).qfrc_constraint)
