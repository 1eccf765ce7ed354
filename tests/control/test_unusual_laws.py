"""Laws that misbehave, and laws whose memory is unusual: Python's behaviour, or a refusal that names the line."""

import math
import threading

import numpy as np
import pytest
from simulation_options import COMPILED, grouped

import geomctrl as gc
from geomctrl import models
from geomctrl.control.sensors import Encoder
from geomctrl.tracing import branches
from geomctrl.tracing.symbols import UntraceableError

ROBOT = models.two_link()


class Law:
    def __init__(self, tau, **attributes):
        self.robot, self.tau = ROBOT, tau
        vars(self).update(attributes)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.tau(self, t, q, v))


def run(law, compiled, plant=ROBOT, **options):
    options = {"t_end": 0.5, "dt": 2e-3, "control_dt": 1e-2, "monitors": []} | options
    try:
        return gc.simulate(plant, law, [0.1, 0.2], [0.4, -0.3], **grouped(compiled=compiled, **options)), ""
    except gc.SimulationError as error:
        return error.run, str(error)


def remembered(law):
    return {name: x for name, x in vars(law).items() if name not in ("robot", "tau")}


def assert_as_in_python(make, **options):
    laws = make(), make()
    (python, why), (compiled, said) = run(laws[0], False, **options), run(laws[1], True, **options)
    assert why == said
    for name in ("t", "q", "v", "tau"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(python, name), rtol=0.0, atol=1e-9)
    for name, x in remembered(laws[0]).items():
        np.testing.assert_allclose(np.array(remembered(laws[1])[name], float), np.array(x, float), atol=1e-9)
    return why


# --- laws that misbehave -----------------------------------------------------------------------------------------


def wrong_shape(self, t, q, v):
    return -v if t < 0.3 else np.zeros(3)


def raises(self, t, q, v):
    if t > 0.2:
        raise RuntimeError("stop")
    return -v


def divides(self, t, q, v):
    return -v / (1.0 if t < 0.25 else round(0.0) * 1.0 or 1.0 / 0.0)


def out_of_domain(self, t, q, v):
    return -v * math.sqrt(0.3 - t)


@pytest.mark.parametrize(
    ("tau", "message"),
    [
        (wrong_shape, "shape (3,)"),
        (raises, "stop"),
        (divides, "ZeroDivisionError"),
        (out_of_domain, "math domain error"),
    ],
)
def test_what_python_raises_on_one_way(tau, message):
    assert message in assert_as_in_python(lambda: Law(tau))
    assert message in assert_as_in_python(lambda: Law(tau), control_dt=None)


def unending(self, t, q, v):
    while q[0] < 2.0 or t > -1.0:
        q = q * 1.1
    return -v


def recursive(self, t, q, v):
    return -v if v[0] < 1.0 else recursive(self, t, q, 0.9 * v)


def of_a_thread(self, t, q, v):
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    return -v


def of_a_generator(self, t, q, v):
    return next(self.gains) * -v


@pytest.mark.parametrize(
    ("tau", "message"),
    [
        (unending, r"more than 40 paths .* in .*test_unusual_laws.py, line \d+"),
        (recursive, r"more than 40 paths .* in .*test_unusual_laws.py, line \d+"),
        (of_a_thread, "thread"),
        (of_a_generator, r"gains .*may keep data between calls"),
    ],
)
def test_what_does_not_end_or_hides_is_refused(tau, message, monkeypatch):
    monkeypatch.setattr(branches, "MAX_PATHS", 40)  # not 256, because `recursive` calls itself on each of them
    law = Law(tau, gains=iter(np.ones(5)))
    if tau is unending:
        with pytest.raises(UntraceableError, match=message):
            gc.compile(law)
        return
    with pytest.raises(UntraceableError, match=message):
        gc.simulate(ROBOT, law, [0.1, 0.2], [0.4, -0.3], 0.01, 2e-3, control_dt=1e-2, monitors=[], options=COMPILED)


def local_generator(self, t, q, v):
    return -np.array(sorted(abs(y) * y for y in v))


def test_a_generator_within_the_law():
    assert_as_in_python(lambda: Law(local_generator))


# --- memory ------------------------------------------------------------------------------------------------------


def counts(self, t, q, v):
    self.count += 1
    if self.count == 17:
        raise RuntimeError("seventeen")
    return -v


def test_what_is_remembered_where_the_law_raises():
    why = assert_as_in_python(lambda: Law(counts, count=0))
    assert "seventeen" in why


def filters(self, t, q, v):
    self.v = 0.9 * self.v + 0.1 * v
    self.count += 1
    return -self.v - 0.01 * self.count * q


def test_memory_beside_sensors():
    plant = gc.Plant(ROBOT, sensors=[Encoder(12, delay=1e-2)])
    assert_as_in_python(lambda: Law(filters, v=np.zeros(2), count=0), plant=plant)


def test_memory_with_steps_of_the_methods_own():
    assert_as_in_python(lambda: Law(filters, v=np.zeros(2), count=0), method="MK54", rtol=1e-8, atol=1e-9)


def replaces(self, t, q, v):
    self.bias = 0.5 * self.bias + q
    return -v - self.bias


def writes(self, t, q, v):
    self.bias *= 0.5
    self.bias += q
    return -v - self.bias


def test_arrays_of_others_are_written_on_where_python_does():
    for tau, changes in ((replaces, False), (writes, True)):
        for compiled in (False, True):
            inputs = np.array([1.0, 2.0])
            law = Law(tau, bias=inputs)
            run(law, compiled)
            assert (law.bias is inputs) == changes
            assert (inputs.tolist() == [1.0, 2.0]) == (not changes)


def shares(self, t, q, v):
    self.old = self.new
    self.new *= 0.5
    return -v - self.old


def grows(self, t, q, v):
    self.past.append(v[0])
    return -v


def becomes_longer(self, t, q, v):
    self.x = np.zeros(2) if t < 0.1 else np.zeros(3)
    return -v


def test_what_changes_its_shape_on_one_way_goes_on_in_python():
    assert_as_in_python(lambda: Law(becomes_longer, x=np.zeros(2)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Law(shares, old=np.zeros(2), new=np.ones(2)),
            r"new is an array that a call changes under another name too, in .*, line \d+: copy it",
        ),
        (lambda: Law(grows, past=[]), r"past changes its length during a call"),
    ],
)
def test_memory_that_is_refused(make, message):
    with pytest.raises(UntraceableError, match=message):
        gc.simulate(ROBOT, make(), [0.1, 0.2], [0.4, -0.3], 0.1, 1e-3, control_dt=1e-3, monitors=[], options=COMPILED)
