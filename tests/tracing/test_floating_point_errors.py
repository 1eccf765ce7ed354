"""Code that makes numpy's floating-point errors exceptions is refused, because its trace never raises them."""

import warnings

import numpy as np
import pytest

from geomctrl import Command, Lyapunov, SimulationOptions, compile, models, simulate, testing
from geomctrl.tracing import trace
from geomctrl.tracing.untraceable import UntraceableError

C, D = 0.15, 1e-9  # no point of a trace's comparison with Python is within D of C
ARM = models.two_link()


def raised(**how):
    def f(x):
        with np.errstate(**how):
            try:
                return np.sum(np.sqrt(np.abs(x - C) - D)) * 0.0 - 1.0
            except FloatingPointError:
                return 1.0

    return f


@np.errstate(invalid="raise")
def decorated(x):
    return np.sqrt(x[0])


class Held:
    context = np.errstate

    def __call__(self, x):
        with self.context(all="raise"):
            return np.sqrt(x[0])


def filtered(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.sqrt(x[0])


def settings(x):
    np.seterr(all="raise")
    return np.sqrt(x[0])


REFUSED = {
    **{how: raised(invalid=how) for how in ("raise", "call", "print", "log", "warn")},  # warnings are errors here
    "all": raised(all="raise"),
    "decorated": decorated,
    "held": Held(),
    "filtered": filtered,
    "settings": settings,
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_as_exceptions_are_refused_with_their_line(name):
    before = np.geterr()
    with pytest.raises(UntraceableError, match=r"test_floating_point_errors.py, line \d+: write a test"):
        trace(REFUSED[name], (1,))
    assert np.geterr() == before


def test_ignored_errors_trace():
    @np.errstate(all="ignore")
    def inner(x):
        with np.errstate(divide="ignore"):
            return 1.0 / x[0]

    assert trace(inner, (1,)).to_llvm()(np.array([4.0])) == 0.25
    with np.errstate(all="warn"):
        assert trace(inner, (1,)).to_llvm()(np.array([0.0])) == np.inf


class Law:
    q_d = np.zeros(2)

    def __call__(self, t, q, v, z):
        u = -q - 2.0 * v
        with np.errstate(invalid="raise"):
            try:
                np.sqrt(np.abs(q - C) - D)
            except FloatingPointError:
                u = 1000.0 + 0.0 * v
        return Command(u)

    def lyapunov(self, t, q, v, z, plant):
        return Lyapunov(q @ q + v @ v, -(v @ v))


class Plain:
    q_d = np.zeros(2)

    def __call__(self, t, q, v, z):
        return Command(-q - 2.0 * v)

    lyapunov = Law.lyapunov


def barrier(t, q, v, z, plant):
    return 1.0 - q @ q


COMPILED = SimulationOptions(compiled=True)
DOORS = {
    "certify": lambda law: testing.certify(lambda x: law(0.0, x, x, None).tau[0] - 9.0, [(0.0, 1.0)] * 2),
    "lyapunov": lambda law: testing.certify_lyapunov(law, ARM, (1.0, 1.0), budget=10),
    "sampled": lambda law: testing.certify_sampled(law, ARM, (0.5, 0.5), 0.01, outside=(0.05, 0.05), budget=10),
    "barrier": lambda law: testing.certify_barrier(barrier, law, ARM, ([-1.0] * 4, [1.0] * 4), budget=10),
    "reach": lambda law: testing.reach(ARM, law, ([0.1] * 4, [0.2] * 4), 0.01),
    "compile": lambda law: compile(law, ARM),
    "simulate": lambda law: simulate(ARM, law, [0.1] * 2, [0.0] * 2, t_end=0.01, dt=1e-3, options=COMPILED),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_a_law_that_catches_them(door):
    with pytest.raises(UntraceableError, match=r"errors are set to 'raise'.*test_floating_point_errors.py, line \d+"):
        DOORS[door](Law())


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("how", ["raise", "call"])
def test_every_door_refuses_settings_of_the_program(door, how):
    with (
        np.errstate(divide=how),
        pytest.raises(UntraceableError, match=rf"np.geterr\(\)\['divide'\] is '{how}'.*np.seterr"),
    ):
        DOORS[door](Plain())


def test_a_law_under_a_decorator_is_named():
    @np.errstate(all="ignore")
    def law(t, q, v, z):
        return Command(-q)

    line = law.__wrapped__.__code__.co_firstlineno
    with pytest.raises(UntraceableError, match=rf"law is decorated with np.errstate, in .*, line {line}: write `with"):
        compile(law, ARM)


def test_a_loop_runs_in_python_under_such_settings():
    class Caught:
        def __call__(self, t, q, v, z):
            try:
                u = -1.0 / np.maximum(q - 10.0, 0.0)
            except FloatingPointError:
                u = 0.5 * np.ones(2)
            return Command(u)

    def run(compiled):
        options = SimulationOptions(compiled=compiled)
        return simulate(ARM, Caught(), [0.1] * 2, [0.0] * 2, t_end=2.0, dt=1e-3, options=options)

    with np.errstate(divide="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(run("auto").q, run(False).q)
