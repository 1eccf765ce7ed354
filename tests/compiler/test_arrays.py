"""Numpy on arrays of symbols agrees with numpy on numbers; unsupported functions are named."""

import math
from math import sqrt

import numpy as np
import pytest
from evaluation import evaluate

from geomctrl import derivatives, models, se3, so3
from geomctrl.tracing.arrays import SymbolArray, symbol_array
from geomctrl.tracing.patched_numpy import numpy_on_symbols
from geomctrl.tracing.symbols import Graph, UntraceableError

PANDA = models.panda()
K = np.diag(np.arange(1.0, 8.0))
TOOL = PANDA.body_names[-1]
FUNCTIONS = {
    "elementwise": lambda q, v: (
        np.sin(q) * np.cos(v) + np.exp(-np.abs(q)) / (2.0 + np.tanh(v)) - q**2 + np.sqrt(1.0 + v * v)
    ),
    "inverse functions": lambda q, v: np.arctan(q) + np.arctan2(q, v) + np.arcsin(np.tanh(q)) + np.arccos(np.tanh(v)),
    "hyperbolic": lambda q, v: np.sinh(q) - np.cosh(v) + np.hypot(q, v) + np.log(3.0 + np.square(q)),
    "signs": lambda q, v: np.sign(q) * np.maximum(q, v) + np.minimum(q, 0.1) + np.absolute(v) + np.deg2rad(q),
    "whole numbers": lambda q, v: (
        np.floor(3.0 * q) + np.ceil(2.0 * v) + np.trunc(5.0 * q) + q % 0.3 + v // 0.2 + q[0] % v[0] + 1.0 // q[1]
    ),
    "choices": lambda q, v: np.where((q > v) & (v < 0.5), q, v) + np.where(~(q <= 0.0) | (v == q), 1.0, v),
    "clip": lambda q, v: np.clip(q, -0.5, 0.5) + v.clip(-0.1, None) + np.clip(q, -np.abs(v), np.abs(v)),
    "products": lambda q, v: K @ q + K.dot(v) - q @ K + np.dot(q, v) * v + np.inner(q, v) + np.outer(q, v) @ v,
    "einsum": lambda q, v: np.einsum("i,ij,j->i", q, K, v) + np.einsum("ij,jk->ik", np.outer(q, v), K).sum(axis=0),
    "sums": lambda q, v: np.concatenate([[q.sum(), q.mean(), np.prod(v)], np.cumsum(q), np.diff(v)]),
    "shapes": lambda q, v: (
        np.stack((q, v)).T.ravel()[::-1].reshape(2, 7)[:, 1:4] + np.hstack((q, v))[3] + np.diag(v)[:2, :3]
    ),
    "norm": lambda q, v: q / np.linalg.norm(v) + np.linalg.norm(np.outer(q, v)),
    "own arrays": lambda q, v: _filled(q, v),
    "in place": lambda q, v: _in_place(q, v),
    "numbers beside": lambda q, v: np.float64(2.0) * q[0] + np.arange(7) * v[1] + q[2] / np.ones(7) - np.pi,
    "solve": lambda q, v: np.linalg.solve(PANDA.mass_matrix(q), v),
    "inverse": lambda q, v: np.linalg.inv(PANDA.mass_matrix(q)),
    "cholesky": lambda q, v: np.linalg.cholesky(PANDA.mass_matrix(q)),
    "determinant": lambda q, v: np.linalg.det(np.outer(q, v)[:4, :4] + K[:4, :4][::-1]),
    "pivots": lambda q, v: np.linalg.solve(np.array([[0.0, q[0]], [v[0], 0.0]]), q[:2]),
    "terms": lambda q, v: PANDA.terms(q, v).C @ v + PANDA.gravity_force(q) + PANDA.mass_matrix_rate(q, v) @ q,
    "dynamics": lambda q, v: PANDA.inverse_dynamics(q, v, PANDA.forward_dynamics(q, v, q), v_ref=q),
    "regressor": lambda q, v: PANDA.regressor(q, v, v) @ PANDA.parameters.ravel() + PANDA.energy(q, v),
    "frames": lambda q, v: PANDA.jacobian(q, TOOL, "hybrid").T @ (PANDA.jacobian_rate(q, v, TOOL) @ v),
    "pose": lambda q, v: PANDA.pose(q, TOOL)[:3, :3] @ PANDA.pose(q, TOOL)[:3, 3],
    "inverse of M": lambda q, v: PANDA.mass_matrix_inverse(q) @ v + PANDA.mass_matrix_solve(q, v),
    "derivatives": lambda q, v: (
        PANDA.inverse_dynamics_derivatives(q, v, v).dq @ PANDA.forward_dynamics_derivatives(q, v, q).dv
    ),
    "rates": lambda q, v: derivatives.inverse_dynamics_rates(PANDA, q, np.array([v, q, 2.0 * v])),
    "wrenches": lambda q, v: PANDA.inverse_dynamics(q, v, v, f_ext=np.outer(v, np.arange(6.0))),
    "many states": lambda q, v: PANDA.mass_matrix(np.stack((q, v))),
    "lone numbers": lambda q, v: (
        np.where(q[0] > v[0], q[1], 0.5)
        + np.clip(q[0], -0.1, v[2])
        + np.linalg.norm(q, axis=0)
        + np.eye(7) @ (q * q[3])
    ),
    "select": lambda q, v: np.select([q > 0.5, q < v, v > 0.0], [q, 2.0 * v, q * v], -1.0),
    "interp": lambda q, v: np.concatenate(
        (
            np.interp(q, [-1.0, 0.0, 0.7, 2.0], [1.0, 3.0, -2.0, 0.5]),
            np.interp(v, [-0.5, 0.5], q[:2], left=-7.0, right=9.0),
            [np.interp(q[0], [0.0, 1.0], v[:2])],
        )
    ),
    "masks": lambda q, v: _masked(q, v),
    "finite": lambda q, v: np.where(np.isfinite(q / v).all() & ~np.isnan(q), q, v),
    "max and min": lambda q, v: max(q[0], 0.1, v[1]) * q - min(q) + max(abs(v)) + max([1, 2]) + min(3.0, 2.0),
    "math": lambda q, v: (
        q * math.sin(q[0])
        + math.atan2(q[1], v[0])
        + math.log(2.0 + abs(v[2]), 2.0)
        + math.hypot(q[0], 1.0, v[1])
        + math.pow(q[3], 3)
        + sqrt(abs(v[0])) * math.pi
        + sqrt(4.0)
        + math.floor(2.5)
        + math.atan(q[2])
    ),
    "rotations": lambda q, v: (
        so3.exp(q[:3]) @ so3.inverse(so3.exp(v[:3]))
        + so3.hat(so3.log(so3.exp(q[:3])))
        + so3.dexp(q[:3])
        + so3.dexp_inv(q[:3])
        + so3.Ad(so3.exp(v[:3]))
        + so3.ad(so3.vee(so3.hat(v[:3]))) * so3.dexp(q[:3], v[:3])
        + so3.dexp_inv(v[:3], q[:3])
    ),
    "transforms": lambda q, v: (
        se3.Ad(se3.exp(q[:6]) @ se3.inverse(se3.exp(v[:6])))
        + se3.ad(se3.log(se3.exp(q[:6])))
        + se3.dexp(q[:6])
        + se3.dexp_inv(q[:6])
        + se3.ad(se3.vee(se3.hat(v[:6]))) * se3.dexp(q[:6], v[:6])
        + se3.dexp_inv(v[:6], q[:6])
    ),
}


def _filled(q, v):
    out, total = np.zeros((2, 7)), np.empty(2)
    out[0], out[1, 2] = q - v, v[2]
    for k in range(2):
        total[k] = out[k].sum()
    copy = np.array([1.0, 2.0])
    copy[1] = q[0]
    return np.concatenate((out.ravel(), total, copy))


def _masked(q, v):
    out = (q * v).astype(float)
    out[out < 0.0] = 0.0
    out[(q > 0.3) & (v < 0.2)] = v[0]
    return out


def _in_place(q, v):
    tau = K @ q
    tau += v
    tau *= 2.0
    tau[2:4] -= q[:2]
    return tau


def symbols():
    graph = Graph()
    q, v = (symbol_array([graph.load(k, j) for j in range(7)], (7,)) for k in (1, 2))
    return graph, q, v


@pytest.mark.parametrize("name", FUNCTIONS)
def test_on_symbols_as_on_numbers(name):
    (graph, q, v), function, rng = symbols(), FUNCTIONS[name], np.random.default_rng(3)
    with numpy_on_symbols(roots=[function]):
        traced = function(q, v)
    ends = [graph.operand(x) for x in np.asarray(traced, object).ravel().tolist()]
    for _ in range(3):
        numbers = rng.normal(size=(2, 7))
        expected = function(*numbers)
        result = np.reshape(evaluate(graph, ends, [None, *numbers.tolist()]), np.shape(traced))
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-11 * (1.0 + np.abs(expected).max()))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda q: q if q[0] > 0.0 else -q, "a branch depends on a symbol"),
        (lambda q: np.nanpercentile(q, 5.0), "np.nanpercentile can not be traced"),
        (lambda q: np.linalg.eigvals(np.outer(q, q)), "np.linalg.eigvals can not be traced"),
        (lambda q: np.linalg.svd(np.outer(q, q)), "np.linalg.svd can not be traced"),
        (lambda q: np.argpartition(q, 1), "np.argpartition can not be traced"),
        (lambda q: bool(np.allclose(q, 0.0)), "a branch depends on a symbol"),
        (lambda q: np.nextafter(q, 0.0), "np.nextafter of symbols can not be traced"),
        (lambda q: np.where(q > 0.0), "a branch depends on a symbol"),
        (lambda q: K.__iadd__(np.outer(q, q)), "symbols are written into an array of numbers"),
        (lambda q: K.__setitem__((0, 0), q[0]), "a symbol is used as a number"),
        (lambda q: print(q), "print"),
    ],
)
def test_what_does_not_trace_is_named_with_its_line(function, message):
    _, q, _ = symbols()
    with numpy_on_symbols(roots=[function]), pytest.raises(UntraceableError, match=message) as caught:
        function(q)
    assert f"test_arrays.py, line {function.__code__.co_firstlineno}" in str(caught.value)


def test_numpy_is_what_it_was_afterwards():
    zeros, array = np.zeros, np.array
    with numpy_on_symbols():
        assert isinstance(np.zeros(2), SymbolArray)
    assert (np.zeros, np.array) == (zeros, array)
    with pytest.raises(ZeroDivisionError), numpy_on_symbols():
        1 // 0  # noqa: B018
    assert (np.zeros, np.array) == (zeros, array)
