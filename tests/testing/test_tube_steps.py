"""Taylor models and tubes of equations without robots, against rationals, mpmath, closed forms and sampled motions."""

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.linalg import expm
from testing import tube_battery

from geomctrl.kernels import taylor_models
from geomctrl.testing.tubes import steps
from geomctrl.tracing.proofs.operation_rows import OperationRows
from geomctrl.tracing.symbols import Graph, add, binary, mul, unary
from geomctrl.tracing.untraceable import UntraceableError


def test_arithmetic_of_rows_contains_the_exact_rational_result():
    assert tube_battery.arithmetic_escapes(taylor_models, steps, trials=60) == set()


def test_elementary_functions_of_rows_contain_fifty_digits():
    assert tube_battery.function_escapes(taylor_models, steps, trials=60) == set()


def test_activations_of_rows_with_both_signs_contain_the_exact_result():
    assert tube_battery.activation_escapes(taylor_models, steps, trials=60) == set()


def test_functions_of_squares_contain_the_exact_result():
    assert tube_battery.square_escapes(taylor_models, steps) == set()


def test_random_expressions_are_in_their_rows():
    assert tube_battery.random_escapes(taylor_models, steps) == set()


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-0.25, 1.0), (-2.0, 0.5)])
def test_max_has_the_narrowest_line_and_tanh_a_line_near_the_narrowest(low, high):
    """Two lines of one slope enclose max(x, 0) at distance h l / (h + l); those of tanh come from all slopes."""
    model = tube_battery.OneStep(taylor_models, steps, 1)
    C = np.zeros((1, model.layout.coefficients))
    C[0, :2] = 0.5 * (low + high), 0.5 * (high - low)
    _, row = model.evaluated(lambda x, y: binary("max", x, 0.0), [(C, 0.0), (C, 0.0)])
    assert row[-4] == pytest.approx(-0.5 * low * high / (high - low), rel=1e-9)
    x, slopes = np.linspace(low, high, 2001), np.linspace(0.0, 1.0, 1001)[:, None]
    narrowest = 0.5 * np.ptp(np.tanh(x) - slopes * x, axis=1).min()
    _, row = model.evaluated(lambda x, y: unary("tanh", x), [(C, 0.0), (C, 0.0)])
    assert row[-4] <= 1.15 * narrowest + 1e-9


@pytest.mark.parametrize(("neurons", "half"), [((25, 25), 0.1), ((50, 50, 50), 1.0)])
def test_a_network_of_max_has_the_zonotope_of_its_lines(neurons, half):
    """The bounds are those of DeepZ (Singh et al. 2018) in numpy, neither wider nor narrower, and contain samples."""
    rng = np.random.default_rng(0)
    sizes = (4, *neurons, 1)
    layers = [(rng.normal(size=(m, n)) * (2.0 / n) ** 0.5, 0.1 * rng.normal(size=m)) for n, m in pairwise(sizes)]
    graph, centre = Graph(), rng.normal(size=4)
    x, c, G = [graph.load(1, k) for k in range(4)], centre, half * np.eye(4)
    samples = centre + rng.uniform(-half, half, (500, 4))
    for k, (W, b) in enumerate(layers):
        x = [sum((mul(w, y) for w, y in zip(row, x)), bias) for row, bias in zip(W.tolist(), b.tolist())]
        c, G, samples = W @ c + b, W @ G, samples @ W.T + b
        if k < len(neurons):
            x, samples = [binary("max", y, 0.0) for y in x], np.maximum(samples, 0.0)
            h, l = (np.maximum(np.abs(G).sum(1) + sign * c, 0.0) for sign in (1.0, -1.0))
            slope = h / (h + l)
            c, G = slope * c + 0.5 * slope * l, np.hstack([slope[:, None] * G, np.diag(0.5 * slope * l)])
    law = OperationRows(graph, [*((1, k) for k in range(5)), (2, 0)], [], {}, x)
    box = np.append(centre - half, [0.0, 0.0]), np.append(centre + half, [0.0, 0.0])
    enclosure = steps.Enclosure(tube_battery.dynamics(steps, lambda t, y: [0.0] * 5, 5), *box, 2)
    assert enclosure.hold(law, slice(4, 5))
    lo, hi = steps.bounds(enclosure.X[4])
    np.testing.assert_allclose([lo, hi], [c[0] - np.abs(G).sum(), c[0] + np.abs(G).sum()], rtol=1e-9)
    assert lo <= samples.min()
    assert samples.max() <= hi


def test_sampled_motions_of_held_commands_stay_in_the_tube():
    assert tube_battery.held_escapes(steps) == set()


def test_taylor_coefficients_in_time_are_those_of_mpmath():
    assert tube_battery.coefficient_escapes(taylor_models, steps, order=8) == set()


@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.05])
def test_sampled_motions_stay_in_the_tube(radius):
    assert tube_battery.motion_escapes(steps, radius) == set()


def test_a_motion_of_the_pendulum_is_jacobis_elliptic_function():
    assert tube_battery.closed_form_escapes(steps) == set()


def test_a_linear_system_has_the_exact_zonotope():
    rng = np.random.default_rng(0)
    A, centre, half = rng.normal(size=(4, 4)), rng.normal(size=4), rng.uniform(0.1, 0.5, 4)

    def f(t, y):
        out = []
        for row in A.tolist():
            total = 0.0
            for a, x in zip(row, y):
                total = add(total, mul(x, a))
            out.append(total)
        return out

    for s in tube_battery.tube(steps, f, centre - half, centre + half, 2.0, 10)[::4]:
        E = expm(A * s.end)
        exact, middle = np.abs(E) @ half, E @ centre
        assert (s.lo[:4] <= middle - exact + 1e-12).all()
        assert (s.hi[:4] >= middle + exact - 1e-12).all()
        np.testing.assert_allclose(s.hi[:4] - s.lo[:4], 2.0 * exact, rtol=1e-7)


def test_a_point_has_the_motion_of_mpmath():
    def f(t, y):
        return [binary("min", mul(y[0], 0.5), 3.0) * 1.0 - y[0] * y[0] + t]

    s = tube_battery.tube(steps, f, [0.5], [0.5], 1.0, 12)[-1]
    exact = mpmath.odefun(lambda t, y: [y[0] / 2 - y[0] ** 2 + t], 0, [mpmath.mpf(0.5)])(1)[0]
    assert s.lo[0] <= exact <= s.hi[0]
    assert s.hi[0] - s.lo[0] < 1e-9


def test_a_new_frame_contains_the_set():
    assert tube_battery.frame_escapes(steps) == set()


def test_an_uncertain_parameter_is_a_state_at_rest():
    """x' = -a x with a in [1, 2] and x = 1: x(t) is between exp(-2 t) and exp(-t)."""
    graph = Graph()
    x, a = graph.load(1, 0), graph.load(0, 3)
    rows = OperationRows(graph, [(1, 0), (0, 3), (2, 0)], [mul(mul(a, x), -1.0), 0.0, 1.0], {})
    enclosure = steps.Enclosure(steps.Dynamics(rows, 1), np.array([1.0, 1.0, 0.0]), np.array([1.0, 2.0, 0.0]), 8)
    for s in enclosure.advance(1.0, 0.125, 1e-4)[0]:
        low, high = np.exp(-2.0 * s.end), np.exp(-s.end)
        assert s.lo[0] <= low
        assert high <= s.hi[0]
        assert s.hi[0] - s.lo[0] <= 1.4 * (high - low) + 1e-6
        assert s.lo[1] <= 1.0
        assert s.hi[1] >= 2.0


def test_an_explosion_ends_the_tube_before_it():
    """x' = x^2 from 1 is infinite at t = 1."""
    segments = tube_battery.tube(steps, lambda t, y: [mul(y[0], y[0])], [1.0], [1.0], 1.5)
    assert 0.9 < segments[-1].end < 1.0


@pytest.mark.parametrize("n", range(-8, 9))
def test_whole_powers_contain_fifty_digits(n):
    """Rows of x^n for random rows x, and the coefficients of y' = x^n for x' = x, whose exact ones are known."""
    rng, model = np.random.default_rng(n + 8), tube_battery.OneStep(taylor_models, steps, 2)
    for sign in (1.0, -1.0):
        rows = [model.row(rng, sign * rng.uniform(0.5, 1.5), 0.02, 1e-5, 0)] * 2
        X, row = model.evaluated(lambda x, y: binary("pow", x, float(n)), rows)
        for _ in range(16):
            e = [Fraction(int(s)) for s in rng.choice([-1, 1], model.layout.symbols)]
            a, value = model.value(X[0], e, Fraction(int(rng.choice([-1, 1])))), model.value(row, e)
            exact = (mpmath.mpf(a.numerator) / a.denominator) ** n
            assert abs(mpmath.mpf(value.numerator) / value.denominator - exact) <= row[-4]
        assert row[-4] <= 0.06 * abs(row[0])
    graph = Graph()
    x = graph.load(1, 0)
    rates = [x, binary("pow", x, float(n)), 1.0]
    program, layout = OperationRows(graph, [(1, 0), (1, 1), (2, 0)], rates, {}), steps.Layout(0, 2)
    start = np.array([0.375, 0.0, 0.0])
    c, _ = steps.series(program, layout, layout.box(start, start), 7)
    for k in range(7):
        exact = mpmath.mpf(0.375) ** n * mpmath.mpf(n) ** k / mpmath.factorial(k) / (k + 1)
        assert abs(mpmath.mpf(c[1, k + 1, 0]) - exact) <= c[1, k + 1, -3]
        assert c[1, k + 1, -3] <= 1e-10 * max(1.0, 0.375**n)


def test_a_negative_power_of_a_row_with_zero_is_undefined():
    model = tube_battery.OneStep(taylor_models, steps, 2)
    rows = [model.row(np.random.default_rng(0), 0.05, 0.1, 0.0, 0)] * 2
    for n, is_defined in ((-8, False), (-1, False), (0, True), (8, True)):
        _, row = model.evaluated(lambda x, y, n=n: binary("pow", x, float(n)), rows)
        assert np.isfinite(row[0]) == is_defined


@pytest.mark.parametrize("exponent", [0.5, 2.5, 9.0, np.inf])
def test_other_powers_are_named(exponent):
    graph = Graph()
    with pytest.raises(UntraceableError, match="pow"):
        OperationRows(graph, [(1, 0)], [binary("pow", graph.load(1, 0), exponent)], {})


@pytest.mark.parametrize("centre", [1e-300, 1e-107, 1e-80])
def test_functions_of_arguments_whose_cubes_underflow_are_undefined_or_a_line(centre):
    """Cubes of such radii are not normal numbers, so a bound that is made of them is not rounded outwards."""
    layout, graph = steps.Layout(1, 1), Graph()
    x = graph.load(1, 0)
    program = OperationRows(graph, [(1, 0)], [], {}, [unary("log", x), unary("sqrt", x)])
    X = layout.box(np.array([0.4 * centre]), np.array([1.6 * centre]))
    logarithm, root = steps.series(program, layout, X, 1)[1]
    assert np.isfinite(logarithm[0]) == (centre > 1e-90)
    low, high = steps.bounds(root)
    assert low <= mpmath.sqrt(mpmath.mpf(0.4 * centre))
    assert mpmath.sqrt(mpmath.mpf(1.6 * centre)) <= high
    assert high <= 2.0 * np.sqrt(1.6 * centre) or centre < 1e-90


def test_an_operation_without_a_series_is_named():
    graph = Graph()
    x = graph.load(1, 0)
    with pytest.raises(UntraceableError, match="floor"):
        OperationRows(graph, [(1, 0)], [unary("floor", x)], {})
