"""Each error that is planted into the code of tubes is found by a check of `tube_battery`."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from testing import tube_battery

from geomctrl.kernels import taylor_functions, taylor_models, taylor_ranges
from geomctrl.testing.tubes import steps

KERNEL_ERRORS = {
    "products of nonlinear parts": ("factor * (p[LIN] * q[QUAD] + p[QUAD] * q[LIN] + p[QUAD] * q[QUAD])", "0.0"),
    "errors of factors": ("err += factor * ((s + p[ALL]) * q[ERR] + (t + q[ALL]) * p[ERR])", "err += 0.0"),
    "monomials of linear symbols": ("return abs(factor) * (s * q[LIN] + p[LIN] * t)", "return 0.0"),
    "rounding of products": ("(4.0 * (last - first) + 16.0) * EPS * size", "0.0"),
    "rounding of sums": ("store(N[z, k], w, err + EPS * size, m)", "store(N[z, k], w, err, m)"),
    "slope of the cosine": ("value, slope, bend = t, -s, -0.5 * t", "value, slope, bend = t, s, -0.5 * t"),
    "remainder of the sine": ("rest += cube * min(1.0, abs(t) + r + WAVE)", "rest += 0.0"),
    "remainder of the exponential": ("0.5 * value, cube * (math.exp(high) + LEAST)", "0.5 * value, 0.0"),
    "remainder of the logarithm": ("2.0 * cube / (low * low * low)", "0.02 * cube / (low * low * low)"),
    "remainder of the root": ("0.375 * cube", "0.0375 * cube"),
    "remainder of the arcsine": ("rest = cube * (1.0 + 2.0 * largest * largest)", "rest = 0.0 * cube"),
    "bend of tanh": ("bend = -value * slope", "bend = value * slope"),
    "remainder of tanh": ("rest = UP * (third + 128.0 * EPS)", "rest = UP * (0.2 * third + 128.0 * EPS)"),
    "third derivative of tanh": ("else min(abs(first), abs(last))", "else 1.0"),
    "line of tanh": ("line * c + 0.5 * (high + low), line", "line * c + 0.4 * (high + low), line"),
    "extremes of tanh": ("high = max(high, t - line * x)", "high = high"),
    "line of max": ("half = 0.5 * slope * l", "half = 0.4 * slope * l"),
    "slope of max": ("slope = h / (h + l)", "slope = l / (h + l)"),
    "sign of min": ("sign = 1.0 if rows[condition, 1] == b else -1.0", "sign = 1.0"),
    "errors of extremes": ("(b[ERR] + form[ERR] + EPS * size) * UP", "form[ERR]"),
    "symbols of errors": ("form[spare] = form[ERR]", "form[spare] = 0.5 * form[ERR]"),
    "one symbol for two errors": ("spare += 1", "spare += 0"),
    "remainder of the reciprocal": ("rest = UP * r * r * r * abs(bend) / low", "rest = 0.0 * low"),
    "errors of the hull": ("err = max(a[ERR], b[ERR])", "err = 0.0"),
    "width of the hull": ("err += 0.5 * abs(a[j] - b[j])", "err += 0.0"),
    "undecided comparisons": ("spread += abs(w[j])", "spread += 0.0"),
    "weight of a series": ("factor = 1.0 * i if weighted else 1.0", "factor = 1.0"),
    "order of a quotient": (
        "convolution(N, w, b, z, k, 1, k, False, m, m2)",
        "convolution(N, w, b, z, k, 2, k, False, m, m2)",
    ),
    "division by the order": ("N[rates[i], k, ERR], k + 1.0, m)", "N[rates[i], k, ERR], k + 2.0, m)"),
    "derivative of acos": ("math.acos(c), -slope, -bend", "math.acos(c), slope, -bend"),
    "largest distance of the root": ("largest = 0.25 / slope", "largest = 0.2 / slope"),
    "largest distance of the logarithm": ("-math.log(slope) - 1.0", "-math.log(slope) - 1.1"),
    "middle of a line": ("offset = 0.5 * largest + 0.5 * least\n    distance", "offset = least\n    distance"),
    "line of the reciprocal": ("least = 2.0 * math.sqrt(-line)", "least = 2.2 * math.sqrt(-line)"),
    "sign of the reciprocal": ("(offset if lo > 0.0 else -offset)", "offset"),
    "sign of a square": ("if sign > 0 or", "if sign != 0 or"),
    "range of a sum": ("(R[a, 0] + R[b, 0], R[a, 1] + R[b, 1])", "(R[a, 0] - R[b, 0], R[a, 1] + R[b, 1])"),
    "range of a difference": ("(R[a, 0] - R[b, 1], R[a, 1] - R[b, 0])", "(R[a, 0] - R[b, 0], R[a, 1] - R[b, 1])"),
    "range of a negative": ("lo, hi = -R[a, 1], -R[a, 0]", "lo, hi = -R[a, 0], -R[a, 1]"),
    "range of a product": ("lo = below(min(min(p, q), min(r, s)))", "lo = below(p)"),
    "range of a choice": ("lo, hi = min(R[b, 0], R[c, 0]), max", "lo, hi = max(R[b, 0], R[c, 0]), max"),
    "range of a size": ("hi if larger else min(hi, 0.0)", "min(hi, 0.0)"),
    "range of the larger one": ("larger = rows[a, 1] == c", "larger = rows[a, 1] != c"),
    "range of a function": ("max(below(math.tanh(lo)), -1.0)", "below(math.tanh(hi))"),
    "comparison of ranges": ("if a_lo > b_hi:\n        return 0.0", "if a_lo > b_lo:\n        return 0.0"),
}
STEP_ERRORS = {
    "no remainder": ("rest = (0.5 * (hi - lo) + EPS * (np.abs(lo) + np.abs(hi))) * UP + LEAST", "rest = 0.0 * lo"),
    "remainder at the start": ("self.dynamics.series(layout, E, K + 1)", "self.dynamics.series(layout, self.X, K + 1)"),
    "an order dropped": ("total += c[:, k, :ERR]", "total += c[:, k, :ERR] * (k != 3)"),
    "errors of the coefficients": ("err = (err * h + c[:, k, ERR] + EPS * size) * UP + LEAST", "err = err * h"),
    "a priori enclosure too small": ("if (distance <= G).all():", "if True:"),
    "half of the time": ("t[0, 0] = t[0, layout.time] = 0.5 * h", "t[0, 0] = t[0, layout.time] = 0.25 * h"),
    "defect not in the enclosure": ("layout.defect.stop)] = G", "layout.defect.stop)] = 0.0 * G"),
    "defect of a branch": ("err = (err + G) * UP", "err = err * UP"),
    "dropped quadratic terms": ("err = (err + np.abs(total[:, layout.dropped]).sum(1)) * UP", "err = err * UP"),
    "errors not in the frame": ("np.abs(Q.T) @ err + gamma", "gamma"),
    "frame not in the frame": ("(np.abs(Q.T @ B).sum(1) + ", "("),
    "errors of a step": ("= np.diag(err)", "= 0.0 * np.diag(err)"),
    "recent errors not in the frame": ("B = total[:, layout.remnants]", "B = total[:, layout.frame]"),
    "units of the frame": ("frame * r * scale[:, None]", "frame * r"),
    "initial box too small": ("= half[wide]", "= 0.9 * half[wide]"),
    "errors of a law": ("values[:commands, ERR] + np.abs(values[:commands, spare]).sum(1)", "values[:commands, ERR]"),
    "errors of a command": ("self._reframed(moving[:, :ERR].copy(), moving[:, ERR].copy())",
                            "self._reframed(moving[:, :ERR].copy(), 0.0 * moving[:, ERR])"),
    "a sample too few": ("times[times < end]", "times[: len(times) // 2]"),
    "bounds rounded inwards": ("np.nextafter(X[..., 0] - X[..., ALL], -np.inf)", "X[..., 0] - 0.999999 * X[..., ALL]"),
}  # fmt: skip


def planted(module, old, new):
    """A copy of a module with an error."""
    source = Path(module.__file__).read_text()
    assert old in source, old
    copy = types.ModuleType("planted")
    copy.__dict__.update(__name__="planted", __package__=module.__package__, __file__=module.__file__)
    sys.modules["planted"] = copy  # dataclasses look their module up
    exec(compile(source.replace(old, new), module.__file__, "exec"), copy.__dict__)
    return copy


def planted_kernels(old, new):
    """The kernels with an error in one of their three files."""
    home = next(m for m in (taylor_models, taylor_functions, taylor_ranges) if old in Path(m.__file__).read_text())
    if home is taylor_models:
        return planted(home, old, new)
    functions, kernels = planted(home, old, new), planted(taylor_models, "", "")
    kernels.__dict__.update({name: x for name, x in functions.__dict__.items() if name in kernels.__dict__})
    return kernels


def in_python(kernels):
    """The kernels as Python functions, so that a planted error needs no compilation."""

    def series_many(*args):
        with np.errstate(all="ignore"):
            kernels.series_many.py_func(*args)

    return types.SimpleNamespace(series_many=series_many)


def kernel_escapes(kernels):
    kernels = in_python(kernels)
    result = tube_battery.arithmetic_escapes(kernels, steps, trials=24)
    return (
        result
        | tube_battery.function_escapes(kernels, steps, trials=24)
        | tube_battery.coefficient_escapes(kernels, steps, 4)
        | tube_battery.activation_escapes(kernels, steps)
        | tube_battery.square_escapes(kernels, steps)
        | tube_battery.random_escapes(kernels, steps)
    )


def step_escapes(module):
    result = tube_battery.closed_form_escapes(module) | tube_battery.frame_escapes(module)
    result |= tube_battery.arithmetic_escapes(taylor_models, module) | tube_battery.held_escapes(module)
    for radius in (0.0, 0.05):
        result |= tube_battery.motion_escapes(module, radius, order=3, step=0.25)
    return result


def test_the_checks_of_kernels_accept_the_code_as_it_is():
    assert kernel_escapes(taylor_models) == set()


def test_the_checks_of_steps_accept_the_code_as_it_is():
    assert step_escapes(steps) == set()


@pytest.mark.slow
@pytest.mark.parametrize("error", KERNEL_ERRORS)
def test_an_error_in_the_kernels_is_found(error):
    assert kernel_escapes(planted_kernels(*KERNEL_ERRORS[error]))


@pytest.mark.slow
@pytest.mark.parametrize("error", STEP_ERRORS)
def test_an_error_in_the_steps_is_found(error):
    assert step_escapes(planted(steps, *STEP_ERRORS[error]))
