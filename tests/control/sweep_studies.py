"""A small study that sweeps in tests run, here and in other processes; as a script, a sweep into a store.

python sweep_studies.py STORE [seconds that each run takes longer]
"""

import sys
import time

import numpy as np
from simulation_options import grouped_sweep

import geomctrl as gc
from geomctrl import controllers, measures, models

ARM = models.two_link()
GOAL = np.array([0.3, 0.4])
SPACE = {"payload": ("payload", [0.0, 1.0, 2.0], {"units": "kg"}), "kp": np.geomspace(10.0, 1000.0, 16)}
WANTED = {"settling": measures.SettlingTime(0.2), "peak": measures.PeakTorque(joints=True)}
SHORT = {"t_end": 0.02, "dt": 1e-3, "block": 8}


def make(point):
    time.sleep(float(sys.argv[2]) if __name__ == "__main__" and len(sys.argv) > 2 else 0.0)
    q0 = GOAL + 0.1 * point.rng.standard_normal(2)
    law = controllers.PDGravity(ARM, GOAL, kp=point["kp"], kd=5.0)
    return ARM.with_payload(point["payload"]), law, q0, np.zeros(2)


def swept(**options):
    return gc.sweep(make, SPACE, WANTED, **grouped_sweep(**SHORT | options))


if __name__ == "__main__":  # another test covers user scripts without the guard `if __name__ == "__main__"`
    swept(store=sys.argv[1])
