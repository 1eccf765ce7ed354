"""MuJoCo Warp on batches of states, if it is installed."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import geomctrl as gc
from geomctrl import interop

TERMS = "inverse_dynamics", "mass_matrix", "forward_dynamics"
Timed = Callable[[list[np.ndarray], float], tuple[float, np.ndarray | None]]


def warp_peer(robot: gc.Robot, term: str, rounds: int) -> Timed | None:
    """f(arguments, seconds) -> microseconds of a batch, the best of some rounds, and its result unless it is sparse.

    None if MuJoCo Warp is not installed or has no such function.
    """
    try:
        mjw, wp = import_module("mujoco_warp"), import_module("warp")
    except ImportError:
        return None
    if term not in TERMS:
        return None
    disabled = import_module("mujoco").mjtDisableBit
    mj = interop.to_mujoco_model(robot)
    mj.opt.disableflags |= int(disabled.mjDSBL_CONSTRAINT) | int(disabled.mjDSBL_CONTACT)

    def timed(arguments: list[np.ndarray], seconds: float) -> tuple[float, np.ndarray | None]:
        q, *others = arguments
        model, data = mjw.put_model(mj), mjw.make_data(mj, nworld=len(q))
        data.qpos.assign(q)
        for array, x in zip((data.qvel, data.qfrc_applied if term == "forward_dynamics" else data.qacc), others):
            array.assign(x)

        def work() -> None:
            if term == "forward_dynamics":
                mjw.forward(model, data)
                return
            mjw.kinematics(model, data)
            mjw.com_pos(model, data)
            if term == "mass_matrix":
                mjw.crb(model, data)
                return
            mjw.com_vel(model, data)
            mjw.rne(model, data, flg_acc=True)

        spent = warp_seconds(wp, work, seconds, rounds)
        if term == "mass_matrix":
            return 1e6 * spent, None
        return 1e6 * spent, (data.qacc if term == "forward_dynamics" else data.qfrc_bias).numpy()

    return timed


def warp_seconds(wp: Any, work: Callable[[], None], seconds: float, rounds: int) -> float:
    """Time of work on Warp's device: on a GPU a captured graph between two events, otherwise by the host's clock."""
    work()
    wp.synchronize()
    on_gpu = wp.get_device().is_cuda
    if on_gpu:
        with wp.ScopedCapture() as capture:
            work()
    run = (lambda: wp.capture_launch(capture.graph)) if on_gpu else work
    begun = time.perf_counter()
    run()
    wp.synchronize()
    repetitions = max(1, int(seconds / rounds / max(time.perf_counter() - begun, 1e-5)))
    best = np.inf
    for _ in range(rounds):
        first, last = (wp.Event(enable_timing=True) if on_gpu else None for _ in range(2))
        begun = time.perf_counter()
        if on_gpu:
            wp.record_event(first)
        for _ in range(repetitions):
            run()
        if on_gpu:
            wp.record_event(last)
        wp.synchronize()
        spent = 1e-3 * wp.get_event_elapsed_time(first, last) if on_gpu else time.perf_counter() - begun
        best = min(best, spent / repetitions)
    return best
