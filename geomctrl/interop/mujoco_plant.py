"""MuJoCo's equations of motion as a plant: its contacts, constraints and friction under our controllers.

What moves is MuJoCo's acceleration (`mj_forward`) at our state, under the controller's torques; the integrators, the
way of holding commands and the monitors are those of every run. So a run differs from one by `mj_step` by the
integrators alone, and from one on a `Plant` by what MuJoCo's model has more.
"""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import checked
from geomctrl.control.plant import Plant
from geomctrl.models.io.mjcf import the_package, with_the_rest
from geomctrl.tracing.numbers import has_symbols
from geomctrl.tracing.untraceable import UntraceableError

from .states import Matched, mujoco_joints, put_mujoco, velocities_from_mujoco


def mujoco_plant(source: str | Path, f_ext: Any = None, actuators: Any = ()) -> MujocoPlant:
    """The plant of an MJCF file, or of a string of XML; needs `mujoco` (pip install 'geomctrl[mjcf]').

    Its `robot`, which controllers and monitors know, is what `models.load_mjcf` makes of the file, without what a
    rigid-body tree does not represent: that is in the plant alone, and `beyond` lists it. Contacts, equality
    constraints, limits, tendons, friction, damping, springs and fluid are MuJoCo's. The file's actuators are switched
    off: a controller commands joint torques, or what `actuators` take. f_ext, actuators: as for `Plant`.

    Monitors hold as always, save for two. The energy balance counts what MuJoCo's forces feed into the robot; it closes
    to the integrator's order where these are smooth, not through impacts, as a contact's force begins with a jump, and
    it is off where `beyond` has inertia that the robot has not (armature of ball joints, of tendons). A Lyapunov
    function's decrease is proved for the robot alone: contact, friction and limits may break it. Runs are in Python.

    Raises ModelError for what is no MJCF, or without the package.
    """
    return MujocoPlant(source, f_ext, actuators)


class MujocoPlant(Plant):
    """See `mujoco_plant`. model: the mujoco.MjModel; beyond: what it has and `robot` has not, in words."""

    model: Any
    beyond: tuple[str, ...]
    _mujoco: Any
    _joints: list[Matched]
    _own: threading.local  # MuJoCo's data, a thread's

    def __init__(self, source: str | Path, f_ext: Any = None, actuators: Any = ()):
        mujoco, model, robot, beyond = with_the_rest(source, "mujoco_plant")
        super().__init__(robot, None, f_ext, actuators=actuators)
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        own = {"model": model, "beyond": beyond, "_mujoco": mujoco, "_joints": mujoco_joints(robot, model)}
        for name, value in (own | {"_own": threading.local()}).items():
            object.__setattr__(self, name, value)

    def __getstate__(self):
        return {name: x for name, x in vars(self).items() if name not in ("_own", "_mujoco")}

    def __setstate__(self, state):
        own = {"_mujoco": the_package("a saved MujocoPlant"), "_own": threading.local()}
        for name, x in (state | own).items():
            object.__setattr__(self, name, x)

    def _moved(self, t, q, v, tau) -> Any:
        """MuJoCo's data of a state and joint torques: of this thread, until the next call, and of nothing before."""
        if has_symbols(q):
            raise UntraceableError("MuJoCo's equations of motion do not trace: runs on them are in Python")
        for name, x in (("q", q), ("v", v), ("tau", tau)):
            if not math.isfinite(x.dot(x)):
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

    def _pushed(self, t, q, v, tau) -> np.ndarray:
        """tau and what external wrenches feed into the joints."""
        if self.f_ext is None:
            return tau
        zero = np.zeros_like(v)
        held = self.robot.inverse_dynamics(q, zero, zero, f_ext=self.f_ext(t, q, v))
        return tau + self.robot.gravity_force(q) - held

    def _ours(self, q, force) -> np.ndarray:
        return velocities_from_mujoco(self._joints, q[None], np.array(force)[None])[0]

    def acceleration(self, t, q, v, tau, x=None):
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        return self._rate_of(q, v, self._moved(t, q, v, self._applied(t, q, v, tau, x)))

    def power(self, t, q, v, tau, x=None):
        out = np.empty(2 * self.robot.nv + (0 if x is None else len(x)) + 1)
        self.rate(*self._arguments(t, q, v, tau, x)[:4], out, x)
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
        for joint, _, vs, _, _ in self._joints:
            if joint.kind == "free":  # theirs is R times the linear velocity: its rate has R w x v more
                w, linear = v[vs][:3], v[vs][3:]
                a[vs.start + 3 : vs.stop] -= np.cross(w, linear)
        return a

    def constraint_torque(
        self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: np.ndarray | None = None
    ) -> np.ndarray:
        """What contacts, limits, equalities and dry friction feed into the joints (nv,) [N m, N]."""
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        return self._ours(q, self._moved(t, q, v, self._applied(t, q, v, tau, x)).qfrc_constraint)
