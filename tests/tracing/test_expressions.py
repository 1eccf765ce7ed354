"""What engineers write in controllers: expressions of numpy and math. At most a tenth of them can not be traced; those
that do are numpy's values, at random states."""

import math
import operator

import numpy as np
import pytest
from compiled_functions import outputs

from geomctrl.tracing.untraceable import UntraceableError

K = np.diag([5.0, 3.0, 2.0, 1.0])
F = np.array([[1.0, 0.2, 0.0, -0.4], [0.0, 2.0, 0.3, 0.1], [0.5, 0.0, 1.5, 0.0]])
TABLE_X, TABLE_Y = [-2.0, -0.5, 0.3, 1.0, 2.5], [0.3, -1.0, 0.2, 2.0, 2.5]

TRACED = {
    # arithmetic
    "1 pd": lambda q, v: -K @ q - 2.0 * v,
    "2 square": lambda q, v: q**2 + v**3,
    "3 roots": lambda q, v: np.abs(q) ** 0.5,
    "4 power": lambda q, v: np.abs(q) ** v[0],
    "5 base": lambda q, v: 2.0**q,
    "6 mod": lambda q, v: (q + np.pi) % (2 * np.pi) - np.pi,
    "7 floor division": lambda q, v: q // 0.2,
    "8 divmod parts": lambda q, v: q[0] // v[0] + q[0] % v[0],
    "9 reciprocal": lambda q, v: 1.0 / (1.0 + q * q),
    "10 negative power": lambda q, v: (2.0 + q) ** -2,
    "11 wrap": lambda q, v: np.arctan2(np.sin(q - v), np.cos(q - v)),
    "12 chained": lambda q, v: q[0] * v[1] - q[1] * v[0],
    "13 round": lambda q, v: np.round(q, 2),
    "14 quantise": lambda q, v: 0.01 * np.round(q / 0.01),
    "15 rint": lambda q, v: np.rint(3.0 * q),
    "16 round method": lambda q, v: q.round(1),
    "17 python round": lambda q, v: [round(q[0]) + 0.5],
    "18 scalar abs": lambda q, v: [abs(q[0])],
    "19 in place": lambda q, v: _in_place(q, v),
    "20 matrix power": lambda q, v: q**4 - v**5,
    # elementary
    "21 sin": lambda q, v: np.sin(q) + np.cos(v),
    "22 tan": lambda q, v: np.tan(0.3 * q),
    "23 inverse": lambda q, v: np.arcsin(np.tanh(q)),
    "24 arctan": lambda q, v: np.arctan(q) + np.arccos(np.tanh(v)),
    "25 exp": lambda q, v: np.exp(-q * q),
    "26 expm1": lambda q, v: np.expm1(q),
    "27 log1p": lambda q, v: np.log1p(q * q),
    "28 log10": lambda q, v: np.log10(1.0 + q * q),
    "29 log2": lambda q, v: np.log2(2.0 + v * v),
    "30 sinh": lambda q, v: np.sinh(q),
    "31 cosh": lambda q, v: np.log(np.cosh(q)),
    "32 tanh": lambda q, v: np.tanh(q / 0.01),
    "33 arcsinh": lambda q, v: np.arcsinh(q),
    "34 hypot": lambda q, v: np.hypot(q, v),
    "35 cbrt": lambda q, v: np.cbrt(q),
    "36 fmod": lambda q, v: np.fmod(q, 0.3),
    "37 remainder": lambda q, v: np.remainder(q, v),
    "38 copysign": lambda q, v: np.copysign(q, v),
    "39 sign": lambda q, v: np.sign(q) * np.sqrt(np.abs(v)),
    "40 floor": lambda q, v: np.floor(q) + np.ceil(v) + np.trunc(3 * q),
    "41 degrees": lambda q, v: np.rad2deg(q) + np.deg2rad(v),
    "42 sinc": lambda q, v: np.where(q == 0.0, 1.0, np.sin(q) / q),
    "43 exp2": lambda q, v: np.exp2(q),
    "44 float_power": lambda q, v: np.float_power(np.abs(q), 1.5),
    "45 heaviside": lambda q, v: np.heaviside(q, 0.5),
    # math
    "46 math.sin": lambda q, v: [math.sin(q[0]) * math.cos(v[0])],
    "47 math.atan2": lambda q, v: [math.atan2(q[0], v[0])],
    "48 math.hypot": lambda q, v: [math.hypot(q[0], q[1], v[2])],
    "49 math.exp": lambda q, v: [math.exp(q[0])],
    "50 math.log": lambda q, v: [math.log(1.0 + q[0] ** 2, 3.0)],
    "51 math.sqrt": lambda q, v: [math.sqrt(q[0] ** 2 + v[0] ** 2)],
    "52 math.pow": lambda q, v: [math.pow(abs(q[0]), 1.3)],
    "53 math.fmod": lambda q, v: [math.fmod(q[0], 0.4)],
    "54 math.remainder": lambda q, v: [math.remainder(q[0], 2.0 * math.pi)],
    "55 math.copysign": lambda q, v: [math.copysign(0.5, v[1])],
    "56 math.floor": lambda q, v: [math.floor(q[0] / 0.1) * 0.1],
    "57 math.degrees": lambda q, v: [math.degrees(q[0])],
    "58 math.tanh": lambda q, v: [math.tanh(5.0 * q[0]) + math.expm1(v[0])],
    "59 max": lambda q, v: [max(q[0], v[0], 0.1)],
    "60 min of an array": lambda q, v: [min(q)],
    "61 math.isfinite": lambda q, v: np.where(math.isfinite(q[0]), q, v),
    # choices
    "62 clip": lambda q, v: np.clip(q, -0.5, 0.5),
    "63 clip by keyword": lambda q, v: np.clip(q, a_min=-0.5, a_max=None),
    "64 clip by name": lambda q, v: np.clip(q, min=-np.abs(v), max=np.abs(v)),
    "65 clip method": lambda q, v: q.clip(-0.1, 0.3),
    "66 maximum": lambda q, v: np.maximum(q, v) - np.minimum(q, 0.0),
    "67 fmax": lambda q, v: np.fmax(q, v) + np.fmin(q, 0.1),
    "68 where": lambda q, v: np.where(q > v, q, v),
    "69 dead zone": lambda q, v: np.where(np.abs(q) < 0.3, 0.0, q - 0.3 * np.sign(q)),
    "70 select": lambda q, v: np.select([q < -0.5, q < 0.5], [-v, v], 2.0),
    "71 mask": lambda q, v: (q > 0.0) * v,
    "72 masked assignment": lambda q, v: _masked(q),
    "73 and or": lambda q, v: np.where((q > 0) & (v < 0) | (q > v), 1.0, q),
    "74 not": lambda q, v: np.where(~(q > 0), q, v),
    "75 logical": lambda q, v: np.where(np.logical_xor(q > 0, v > 0), q, v),
    "76 isnan": lambda q, v: np.where(np.isnan(q) | np.isinf(v), 0.0, q),
    "77 nan_to_num": lambda q, v: np.nan_to_num(q / v),
    "78 interp": lambda q, v: np.interp(q, TABLE_X, TABLE_Y),
    "79 interp ends": lambda q, v: np.interp(v, TABLE_X, TABLE_Y, left=-9.0, right=9.0),
    "80 any": lambda q, v: np.where(np.any(q > 1.0), q, v),
    "81 all": lambda q, v: np.where((q > -1.0).all(), q, v),
    "82 allclose": lambda q, v: np.where(np.allclose(q, v), q, v),
    "83 isclose": lambda q, v: np.where(np.isclose(q, v, atol=0.5), q, v),
    "84 signbit": lambda q, v: np.where(np.signbit(q), v, q),
    "85 count": lambda q, v: [np.sum(q > 0.0) * 1.0],
    # sums
    "86 sum": lambda q, v: [q.sum(), np.sum(v)],
    "87 mean": lambda q, v: [q.mean(), np.mean(v)],
    "88 std": lambda q, v: [q.std(), np.var(v, ddof=1)],
    "89 prod": lambda q, v: [np.prod(q)],
    "90 cumsum": lambda q, v: np.cumsum(q),
    "91 cumprod": lambda q, v: np.cumprod(v),
    "92 diff": lambda q, v: np.diff(q),
    "93 gradient": lambda q, v: np.gradient(q, 0.1),
    "94 trapezoid": lambda q, v: [TRAPEZOID(q, dx=0.1)],
    "95 trapezoid of x": lambda q, v: [TRAPEZOID(v, [0.0, 0.5, 0.6, 2.0])],
    "96 max of an array": lambda q, v: [q.max() - np.min(v)],
    "97 ptp": lambda q, v: [np.ptp(q)],
    "98 average": lambda q, v: [np.average(q, weights=[1.0, 2.0, 3.0, 4.0])],
    "99 sum of a generator": lambda q, v: [sum(x * y for x, y in zip(q, v))],
    "100 convolve": lambda q, v: np.convolve(q, [0.25, 0.5, 0.25]),
    "101 polyval": lambda q, v: np.polyval([1.0, -2.0, 0.5], q),
    "102 unwrap": lambda q, v: np.unwrap(3.0 * q),
    # shapes
    "103 stack": lambda q, v: np.stack((q, v)).ravel(),
    "104 concatenate": lambda q, v: np.concatenate([q, v]),
    "105 hstack": lambda q, v: np.hstack([q[:2], v[2:]]),
    "106 vstack": lambda q, v: np.vstack([q, v]).T.ravel(),
    "107 tile": lambda q, v: np.tile(q, 2),
    "108 repeat": lambda q, v: np.repeat(v, 2),
    "109 roll": lambda q, v: np.roll(q, 1),
    "110 flip": lambda q, v: np.flip(q) + v[::-1],
    "111 reshape": lambda q, v: (q.reshape(2, 2) @ v.reshape(2, 2)).ravel(),
    "112 block": lambda q, v: np.block([[K, F.T], [F, np.outer(q[:3], v[:3])]]).ravel(),
    "113 diag": lambda q, v: np.diag(q) @ v,
    "114 zeros": lambda q, v: _filled(q, v),
    "115 append": lambda q, v: np.append(q, 0.5),
    "116 column_stack": lambda q, v: np.column_stack([q, v]).ravel(),
    "117 triu": lambda q, v: np.triu(np.outer(q, v)).ravel(),
    "118 linspace": lambda q, v: np.linspace(q[0], v[0], 5),
    "119 broadcast": lambda q, v: np.broadcast_to(q, (2, 4)).ravel(),
    "120 split": lambda q, v: np.split(q, 2)[1],
    "121 delete": lambda q, v: np.delete(q, 1),
    "122 full": lambda q, v: np.full(3, q[0]),
    "123 eye": lambda q, v: (np.eye(4) * q[0]) @ v,
    "124 asarray": lambda q, v: np.asarray(q, float) + np.array([v[0], 1.0, 2.0, 3.0], dtype=float),
    # linear algebra
    "125 dot": lambda q, v: [q.dot(v), np.dot(q, K @ v), np.inner(q, v), np.vdot(q, v)],
    "126 outer": lambda q, v: np.outer(q, v).ravel(),
    "127 cross": lambda q, v: np.cross(q[:3], v[:3]),
    "128 norm": lambda q, v: q / np.linalg.norm(q),
    "129 norms": lambda q, v: [np.linalg.norm(q, 1), np.linalg.norm(v, np.inf)],
    "130 solve": lambda q, v: np.linalg.solve(K + np.outer(q, q), v),
    "131 inv": lambda q, v: np.linalg.inv(K + np.outer(v, v)) @ q,
    "132 pinv": lambda q, v: np.linalg.pinv(F + np.outer(q[:3], v) * 0.1) @ q[:3],
    "133 cholesky": lambda q, v: np.linalg.cholesky(K + np.outer(q, q)).ravel(),
    "134 det": lambda q, v: [np.linalg.det(K + np.outer(q, v))],
    "135 eigvalsh": lambda q, v: np.linalg.eigvalsh(np.outer(q, q) + np.outer(v, v) + K),
    "136 einsum": lambda q, v: np.einsum("ij,j,i->i", K, q, v),
    "137 trace": lambda q, v: [np.trace(np.outer(q, v))],
    "138 kron": lambda q, v: np.kron(q, v),
    "139 tensordot": lambda q, v: np.tensordot(F, q, axes=1),
    "140 matmul": lambda q, v: F.T @ (F @ q) + q @ K,
    "141 sort": lambda q, v: np.sort(q) + np.sort(v)[::-1],
    "142 median": lambda q, v: [np.median(q), np.median(v[:3]), *np.median([q, v, v, 2 * q, q - v], axis=0)],
    "143 least squares": lambda q, v: np.linalg.lstsq(K, q, rcond=None)[0],
    "144 a place in a table": lambda q, v: np.append(TABLE_Y, q)[np.searchsorted(TABLE_X, v)],
    "145 argsort": lambda q, v: (
        q[np.argsort(v, kind="stable")] + np.argsort(-q, stable=True) * v[q.argsort(-1, "stable")]
    ),
    "146 gradient along an axis": lambda q, v: (
        np.gradient(np.outer(q, v), 0.1, axis=1) + np.gradient([q, v, q], axis=0)[1]
    ),
    "148 places": lambda q, v: _places(q > v, q),
    "149 rows and columns": lambda q, v: [
        np.argwhere(q[:2, None] > v[None, :2]).sum(),
        len((q[:2] * 1.0).nonzero()[0]),
    ],
    "147 copyto": lambda q, v: _copied(q, v),
    "150 interp of a period": lambda q, v: np.interp(q, TABLE_X, TABLE_Y, left=-9.0, period=1.3),
    "151 interp of a negative period": lambda q, v: np.interp([q[0], v[1]], TABLE_X, TABLE_Y, period=-7.0),
    "152 pad": lambda q, v: np.concatenate(
        [*(np.pad(q, (1, 2), mode=mode) for mode in ("edge", "reflect", "symmetric", "wrap")), np.pad(v, 1)]
    ),
    "153 pad with a value": lambda q, v: np.pad(np.outer(q, v), ((1, 0), (0, 2)), constant_values=0.5).ravel(),
    "153b pad of integers and conditions": lambda q, v: np.concatenate(
        [np.pad(np.floor(q).astype(int), 1, constant_values=(2.5, -0.5)), np.pad(q > v, 2, constant_values=0.1)]
    ),
    "154 fix": lambda q, v: np.fix(3.0 * q),
    "155 resize": lambda q, v: np.resize(q, (3, 2)).ravel(),
    "156 apply_along_axis": lambda q, v: [
        *np.apply_along_axis(lambda row: row / np.linalg.norm(row), 1, np.outer(q, v)).ravel(),
        *np.apply_along_axis(np.polyval, 0, np.outer(q, v), 0.5),
    ],
    "157 apply_over_axes": lambda q, v: np.apply_over_axes(np.sum, np.outer(q, v), [0, 1]).ravel(),
    "158 ediff1d": lambda q, v: np.ediff1d(np.outer(q, v), to_end=v[:2], to_begin=-1.0),
    "159 rollaxis": lambda q, v: np.rollaxis(np.outer(q, v), 1) @ q,
    "160 vander": lambda q, v: np.vander(q, 3).ravel() + np.vander(v, 3, increasing=True).ravel(),
    "161 matrix_power": lambda q, v: [
        *np.linalg.matrix_power(K + 0.1 * np.outer(q, v), 3)[0],
        *np.linalg.matrix_power(K + 0.1 * np.outer(q, q), -2)[1],
        *np.linalg.matrix_power(np.outer(q, q), 0)[2],
    ],
    "162 multi_dot": lambda q, v: np.linalg.multi_dot([F, np.outer(q, v), K, q]),
    "163 getters": lambda q, v: [operator.itemgetter(0)(q), *operator.itemgetter(2, 1)(v), FIRST(q), TOTAL(v)],
}
FIRST, TOTAL = operator.itemgetter(-1), operator.methodcaller("sum")
REFUSED = {
    "argsort along two axes": lambda q, v: np.argsort(np.outer(q, v), axis=0).ravel(),
    "percentile": lambda q, v: [np.percentile(q, 50.0, method="nearest")],
    "eigh": lambda q, v: np.linalg.eigh(np.outer(q, q) + K)[1].ravel(),
    "svd": lambda q, v: np.linalg.svd(np.outer(q, v))[1],
    "as single precision": lambda q, v: np.asarray(q, np.float32),
    "interp of a period that depends on the state": lambda q, v: np.interp(q, TABLE_X, TABLE_Y, period=abs(v[0])),
    "pad without values": lambda q, v: np.pad(q, 1, mode="empty"),
    "ediff1d with ends of another type": lambda q, v: np.ediff1d(q, to_end=1j)[:3],
    "ediff1d with a list of another type": lambda q, v: np.ediff1d(np.floor(q).astype(int), to_begin=[1, 0.5])[2:],
    "sum where": lambda q, v: [np.sum(q, where=q > 0.0)],
    "nextafter": lambda q, v: np.nextafter(q, v),
}
TRAPEZOID = getattr(np, "trapezoid" if hasattr(np, "trapezoid") else "trapz")


def _in_place(q, v):
    x = q.copy()
    x += v
    x[1:] *= 2.0
    x -= 0.5
    return x


def _copied(q, v):
    x, y = q.copy(), np.zeros((2, 4))
    np.copyto(x, 0.5 * x + v)
    np.copyto(y, x)
    return y - q


def _places(above, q):
    first, (second,) = np.flatnonzero(above), np.where(above)
    x = np.zeros(4)
    x[first] = q[second] * 2.0
    for k in np.nonzero(above)[0]:
        x[k] += k
    return [*x, len(first), second[0] if second.size else -1]


def _masked(q):
    x = 1.0 * q
    x[x > 0.5] = 0.5
    return x


def _filled(q, v):
    x = np.zeros((2, 4))
    x[0], x[1, 2] = q, v[2]
    return x.ravel()


@pytest.mark.quick(71)
@pytest.mark.parametrize("name", TRACED)
def test_traced_expressions_are_numpys(name):
    def f(x):
        return TRACED[name](x[:4], x[4:])

    rows = np.random.default_rng(1).normal(size=(24, 8))
    rows[0] = rows[0, 0]  # equal numbers
    found, good = outputs(f, rows)
    assert good.all()
    expected = np.array([np.ravel(f(x)) for x in rows], float)
    scale = 1.0 + np.abs(expected).max(axis=1, keepdims=True)
    assert np.all(np.abs(found - expected) <= 1e-11 * scale), np.abs((found - expected) / scale).max()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_the_line(name):
    with pytest.raises(UntraceableError, match=r"test_expressions\.py, line"):
        outputs(lambda x: REFUSED[name](x[:4], x[4:]), np.ones((1, 8)))


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda x: np.linalg.eigh(np.outer(x, x))[0], "np.linalg.eigvalsh has the eigenvalues"),
        (lambda x: np.linalg.qr(np.outer(x, x))[1].ravel(), "write np.linalg.solve"),
        (lambda x: [np.unique(x).size], "compare with np.isclose"),
        (lambda x: [np.nansum(x)], r"write np\.sum\(np\.where"),
        (lambda x: np.choose([0, 1, 0], [x, -x]), "write np.select"),
        (lambda x: x.astype(np.float32), r"write np.asarray\(x, float\)"),
        (lambda x: [np.float32(x[0])], r"float\(x\) instead of np.float32"),
        (lambda x: np.multiply(x, 2.0, dtype=np.float32), "double precision"),
    ],
)
def test_refusals_say_what_to_write_instead(function, advice):
    with pytest.raises(UntraceableError, match=advice):
        outputs(function, np.ones((1, 3)))


def test_at_most_a_tenth_is_refused():
    assert len(REFUSED) <= 0.1 * (len(TRACED) + len(REFUSED))


def test_products_are_rounded_before_they_are_added():
    """x x - y y is 0 where x = y, as in Python; a fused multiplication leaves the rounding of one product."""
    x = np.random.default_rng(0).uniform(0.1, 2.0, (200, 1)).repeat(2, axis=1)
    found, _ = outputs(lambda x: [np.sqrt(x[0] * x[0] - x[1] * x[1]), x[0] * x[1] - x[1] * x[1]], x)
    assert not found.any()


def test_the_order_of_equal_numbers_is_not_guessed():
    """numpy sorts with instructions that differ between processors; without kind="stable" there is no result."""
    rows = np.array([[0.3, -0.2, 1.0], [1.0, 0.3, 1.0], [0.0, -0.0, 1.0], [np.nan, 0.2, 0.1], [np.inf, -np.inf, 0.0]])
    found, good = outputs(lambda x: np.argsort(x) + 0.0, rows)
    np.testing.assert_array_equal(good, [True, False, False, False, True])
    np.testing.assert_array_equal(found[good], np.argsort(rows[good], axis=1))
    found, good = outputs(lambda x: np.argsort(x, kind="stable") + 0.0, rows)
    np.testing.assert_array_equal(good, [True, True, True, False, True])
    np.testing.assert_array_equal(found[good], np.argsort(rows[good], axis=1, kind="stable"))
