"""Kinds of expressions that authors of controllers write, by the categories of numpy's documentation.

q and v are arrays of four numbers. REFUSED lists those that can not be traced, with the reason.
"""

import functools
import itertools
import linecache
import math
import operator
import statistics
from collections import deque, namedtuple
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.special
from scipy.interpolate import CubicSpline, PchipInterpolator, RegularGridInterpolator, interp1d, make_interp_spline
from scipy.spatial.transform import Rotation, Slerp

K = np.diag([5.0, 3.0, 2.0, 1.0])
F = np.array([[1.0, 0.2, 0.0, -0.4], [0.0, 2.0, 0.3, 0.1], [0.5, 0.0, 1.5, 0.0]])
LIMITS = np.array([1.0, 0.8, 0.5, 2.0])
X, Y = np.array([-2.0, -0.5, 0.3, 1.0, 2.5]), np.array([0.3, -1.0, 0.2, 2.0, 2.5])
SPLINE, PCHIP, LINE = CubicSpline(X, Y), PchipInterpolator(X, Y), interp1d(X, Y, fill_value="extrapolate")
BSPLINE = make_interp_spline(X, Y)
GRID2 = RegularGridInterpolator((X, X), np.outer(Y, Y), bounds_error=False, fill_value=None)
B, A = scipy.signal.butter(2, 0.2)
SOS = scipy.signal.butter(4, 0.2, output="sos")
Gains = namedtuple("Gains", "kp kd")
GAINS = Gains(5.0, 2.0)
SCHEDULE = {"slow": 1.0, "fast": 3.0}
sat = np.vectorize(lambda x: max(-1.0, min(1.0, x)))
cube = np.frompyfunc(lambda x: x**3, 1, 1)
POLY = np.polynomial.Polynomial([1.0, -2.0, 0.5])
CHEB = np.polynomial.Chebyshev([1.0, -2.0, 0.5])
P1 = np.poly1d([0.5, -2.0, 1.0])
I3 = np.eye(3)
SLERP = Slerp([0.0, 1.0], Rotation.from_rotvec([[0.0, 0.0, 0.0], [0.3, 0.0, 1.0]]))
TRAPZ = getattr(np, "trapezoid" if hasattr(np, "trapezoid") else "trapz")


def hat(w):
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def spd(q):
    return K + np.outer(q, q)


def quat(q):
    return q / np.linalg.norm(q)


def put(q, f):
    x = np.array(q)
    f(x)
    return x


def _setslice(x):
    x[1:3] = 0.5 * x[:2]


def _iadd(x):
    x += 1.0
    x[0] *= 2.0
    x[1:] -= x[:-1]
    x[2] /= 3.0
    x[3] **= 2


def _mask(x):
    x[x > 0.5] = 0.5
    x[x < -0.5] += 0.1


def _mask2(x):
    x[np.abs(x) < 0.3] = 0.0


def _fancy(x):
    x[[0, 2]] = x[[2, 0]]


def _row(q, v):
    M = np.zeros((2, 4))
    M[0] = q
    M[1, ::2] = v[:2]
    M[:, -1] = 7.0
    return M


def _np_put(x):
    np.put(x, [0, 2], [x[1], x[3]])


def _np_place(x):
    np.place(x, x > 0.5, [0.5])


def _np_putmask(x):
    np.putmask(x, x > 0.5, 0.5)


def _np_clip_out(x):
    np.clip(x, -0.5, 0.5, out=x)


def _np_add_out(x):
    np.add(x, 1.0, out=x)


def _fill(x):
    x.fill(x[0])


def _sort(x):
    x.sort()


def _sqrt_where(x):
    np.sqrt(x, out=x, where=x > 0)


def _fill_diag(q):
    M = np.outer(q, q)
    np.fill_diagonal(M, q)
    return M


def _at(x):
    np.add.at(x, [0, 0, 1], 1.0)


def loop(q, v):
    s = 0.0
    for a, b in zip(q, v):
        if a > b:
            s += a * b
        else:
            s -= b
    return s


def first_above(q):
    for k, x in enumerate(q):
        if x > 0.5:
            return k
    return -1


def mode(q):
    if q[0] > 1:
        return "fast"
    return "slow"


def newton(q):
    x = 1.0
    for _ in range(5):
        x = x - (x**3 + x - q[0]) / (3 * x**2 + 1)
    return x


def unwrap_in_loop(q):
    e = min(q[0], 5.0)
    while e > 1.0:
        e -= 1.0
    return e


def try_(q):
    try:
        return math.sqrt(q[0])
    except ValueError:
        return 0.0


def walrus(q):
    return n if (n := np.linalg.norm(q)) > 1 else 0.0


def match_(q):
    match int(np.sign(q[0])):
        case 1:
            return 2.0
        case -1:
            return -3.0
        case _:
            return 0.0


@dataclass
class State:
    q: np.ndarray
    v: np.ndarray


def matrix_of(q):
    return Rotation.from_rotvec(q[:3]).as_matrix()


def rodrigues(w, angle):
    return I3 + np.sin(angle) * hat(w) + (1 - np.cos(angle)) * hat(w) @ hat(w)


KINDS = {
    "operators of arrays": """
q + v
q - 2 * v
-q
q * [1.0, 2.0, 3.0, 4.0]
q / v
q // 0.2
(q + np.pi) % (2 * np.pi) - np.pi
q ** 2 + v ** 3
np.abs(q) ** 0.7
2.0 ** q
-K @ q - q @ K @ v
[[1.0, 0, 0, 2.0]] @ q
q[:, None] * v[None, :]
put(q, _iadd)
(q > v) * 1.0
1.0 if -1 < q[0] < v[0] else 0.0
((q > 0) & (v < 0) | ~(q > v)) * q
((q > 0) ^ (v > 0)) * 1.0
(q == v) + (q != v[::-1]) * 2.0
np.concatenate(divmod(q, 0.3))
q * (np.abs(q) > 0.1)
""",
    "elementwise": """
np.sin(q)
np.cos(q)
np.tan(q)
np.arctan(q)
np.exp(q)
np.expm1(q)
np.exp2(q)
np.sinh(q)
np.cosh(q)
np.tanh(q)
np.arcsinh(q)
np.square(q)
np.sign(q)
np.abs(q)
np.absolute(q)
np.fabs(q)
np.floor(q)
np.ceil(q)
np.trunc(q)
np.rint(q)
np.cbrt(q)
np.radians(q)
np.degrees(q)
np.deg2rad(q)
np.rad2deg(q)
np.sinc(q)
np.reciprocal(q)
np.positive(q)
np.fix(q)
np.isnan(q)
np.isinf(q)
np.isfinite(q)
np.signbit(q)
np.real(q)
np.imag(q)
np.conj(q)
np.round(q)
np.around(q)
np.spacing(q)
np.isneginf(q)
np.isposinf(q)
np.i0(q)
np.nan_to_num(q)
np.real_if_close(q)
np.log(np.abs(q) + 0.1)
np.log2(np.abs(q) + 0.1)
np.log10(np.abs(q) + 0.1)
np.log1p(np.abs(q) + 0.1)
np.sqrt(np.abs(q) + 0.1)
np.arccosh(np.abs(q) + 0.1)
np.arcsin(np.tanh(0.3 * q))
np.arccos(np.tanh(0.3 * q))
np.arctanh(np.tanh(0.3 * q))
np.arctan2(q, v)
np.hypot(q, v)
np.fmod(q, v)
np.mod(q, v)
np.copysign(q, v)
np.maximum(q, v)
np.minimum(q, v)
np.fmax(q, v)
np.fmin(q, v)
np.heaviside(q, v)
np.nextafter(q, v)
np.logaddexp(q, v)
np.logaddexp2(q, v)
np.isclose(q, v)
np.floor_divide(q, v)
np.power(np.abs(q), v)
np.float_power(np.abs(q), 1.5)
np.concatenate(np.modf(q))
np.frexp(q)[0]
np.round(q, 2)
0.01 * np.round(q / 0.01)
np.angle(np.exp(1j * q))
np.abs(q + 1j * v)
np.clip(q, -LIMITS, LIMITS)
q.clip(-0.5, 0.5)
np.clip(q, a_min=None, a_max=v)
put(q, _np_clip_out)
put(q, _np_add_out)
np.divide(q, v, out=np.zeros(4), where=v != 0)
put(q, _sqrt_where)
np.subtract.outer(q, v)
sat(q)
cube(q).astype(float)
put(q, _at)
np.unwrap(3.0 * q)
np.interp(q, X, Y)
np.interp(q[0], X, Y, left=-9.0, right=9.0)
""",
    "reductions": """
np.sum(q)
np.prod(q)
np.mean(q)
np.std(q)
np.var(q)
np.max(q)
np.min(q)
np.ptp(q)
np.median(q)
np.any(q)
np.all(q)
np.cumsum(q)
np.cumprod(q)
np.argmax(q)
np.argmin(q)
np.count_nonzero(q)
np.nansum(q)
np.nanmax(q)
np.nanmin(q)
np.nanmean(q)
np.nanstd(q)
np.average(q)
np.nanargmax(q)
np.nancumsum(q)
np.amax(q)
np.amin(q)
q.sum()
q.prod()
q.mean()
q.std()
q.var()
q.max()
q.min()
q.any()
q.all()
q.cumsum()
q.cumprod()
q.argmax()
q.argmin()
np.outer(q, v).sum(axis=0)
np.max(np.outer(q, v), axis=1)
(lambda M: M - M.mean(axis=1, keepdims=True))(np.outer(q, v))
np.sum(q, where=q > 0)
np.sum(q, initial=1.0)
np.max(q, initial=0.0)
np.argmax(np.outer(q, v), axis=1)
np.percentile(q, 75)
np.quantile(q, [0.1, 0.5])
np.diff(q)
np.gradient(q, 0.1)
TRAPZ(q, dx=0.1)
np.ediff1d(q)
np.cross(q[:3], v[:3])
np.average(q, weights=LIMITS)
np.cov(q, v)
np.corrcoef(q, v)
np.histogram(q, bins=[-1.0, 0.0, 1.0])[0]
np.bincount((q > 0).astype(int), minlength=2)
np.maximum.reduce([q, v, np.zeros(4)])
np.add.reduce(q)
np.maximum.accumulate(q)
np.std(q, ddof=1)
np.allclose(q, v) * 1.0
np.array_equal(q, v) * 1.0
np.cumulative_sum(q)
""",
    "choices": """
np.where(q > v, q, v)
np.where(q > 0)[0].sum()
np.select([q < -0.5, q < 0.5], [-v, v], 2.0)
np.piecewise(q, [q < 0, q >= 0], [lambda x: -x, 1.0])
np.choose((q > 0).astype(int), [q, v])
np.compress([True, False, True, True], q)
np.extract([True, False, True, True], q)
q[q > 0].sum()
put(q, _mask)
put(q, _mask2)
put(q, _np_place)
put(q, _np_putmask)
put(q, _np_put)
np.nonzero(q > 0)[0].size
len(np.argwhere(q > 0))
np.flatnonzero(q > 0).sum()
np.isin(np.sign(q), [1.0, -1.0]) * 1.0
np.logical_and(q > 0, v > 0) * 1.0
np.logical_or(q > 0, v > 0) * 1.0
np.logical_not(q > 0) * 1.0
np.logical_and.reduce([q > -1, q < 1, v > 0]) * q
np.digitize(q, X)
np.searchsorted(X, q)
Y[np.clip(np.searchsorted(X, q[0]), 0, 4)]
np.sort(q)
put(q, _sort)
q[np.argsort(v)]
np.partition(q, 2)[2]
np.unique(np.sign(q)).size
np.lexsort((q, v))
np.take_along_axis(q, np.argsort(v), 0)
np.unravel_index(np.argmax(np.outer(q, v)), (4, 4))
""",
    "shapes": """
np.stack((q, v))
np.concatenate((q, v))
np.hstack((q, v))
np.vstack((q, v))
np.dstack((q, v))
np.column_stack((q, v))
np.ravel(q)
np.copy(q)
np.atleast_1d(q)
np.atleast_2d(q)
np.flip(q)
np.diag(q)
np.diagflat(q)
np.array(q)
np.asarray(q)
np.ascontiguousarray(q)
np.squeeze(q)
np.zeros_like(q)
np.ones_like(q)
np.size(q)
np.ndim(q)
np.shape(q)
np.trim_zeros(q)
np.r_[q, v, 0.0]
np.c_[q, v]
q.reshape(2, 2)
np.reshape(np.outer(q, v), (-1, 2))
np.vstack([q, v]).T
np.swapaxes(np.outer(q, v), 0, 1)
q[np.newaxis, :] - v[:, np.newaxis]
np.expand_dims(q, 0)
np.outer(q, v).flatten()
np.tile(q, (2, 1))
np.repeat(q, 2)
np.roll(q, 1)
np.append(q, 0.5)
np.insert(q, 1, v[0])
np.delete(q, 1)
np.split(q, 2)[1]
np.array_split(q, 3)[0]
np.block([[K, F.T], [F, np.outer(q[:3], v[:3])]])
np.pad(q, (1, 2))
np.broadcast_to(q, (2, 4))
np.meshgrid(q, v)[0]
np.full(3, q[0])
np.full_like(q, v[0])
_row(q, v)
q[0] * np.eye(3)
np.identity(4) * q
np.linspace(q[0], v[0], 5)
q[0] + 0.1 * np.arange(5)
np.logspace(0.0, q[0], 3)
np.triu(np.outer(q, v))
np.tril(np.outer(q, v), -1)
np.rot90(np.outer(q, v))
np.moveaxis(np.outer(q, v), 0, 1)
_fill_diag(q)
np.vander(q, 3)
put(q, _fill)
q.astype(float)
(q * 10).astype(int)
q.astype(np.float32)
np.array([q[0], 1.0, v[1]], dtype=float)
np.array([q, v, [0.0] * 4])
sum(q.tolist())
np.fromiter((x * x for x in q), float)
np.fromfunction(lambda i, j: q[0] * i + j, (2, 2))
np.mgrid[0:2, 0:3] * q[0]
[q[i] * v[j] for i, j in np.ndindex(2, 2)]
np.concat([q, v])
""",
    "indexing": """
q[0] * v[-1]
q[1:3]
q[::-1] + v[::2].sum()
q[[2, 0, 0, -1]]
q[np.array([3, 1])]
q[np.array([True, False, True, False])]
np.outer(q, v)[1, 2]
np.outer(q, v)[:, 0]
np.outer(q, v)[..., 1]
np.outer(q, v)[[0, 2]][:, [1, 3]]
np.outer(q, v)[np.ix_([0, 2], [1, 3])]
np.outer(q, v)[np.triu_indices(4)]
np.outer(q, v)[np.diag_indices(4)]
np.outer(q, v)[np.tril_indices(3, -1)]
np.take(q, [0, 2])
put(q, _setslice)
put(q, _fancy)
(lambda a, b, *c: a * b + c[0])(*q)
v[min(max(int(q[0]), 0), 3)]
v[np.argmax(np.abs(q))]
sum(np.outer(q, v).flat)
q[0].item() + q.item(1)
q[np.s_[1:3]]
SCHEDULE[mode(q)] * v
""",
    "linear algebra": """
q.dot(v)
np.dot(K, q)
np.inner(q, v)
np.vdot(q, v)
np.outer(q, v)
np.kron(q, v)
np.tensordot(F, q, axes=1)
np.einsum('ij,j,i->i', K, q, v)
np.einsum('ii', np.outer(q, v))
np.einsum('ij,kj->ik', F, np.outer(q, v))
np.trace(np.outer(q, v))
np.matmul(F, q)
np.vecdot(q, v)
np.linalg.multi_dot([F, K, q])
q / np.linalg.norm(q)
np.linalg.norm(q, 1)
np.linalg.norm(q, np.inf)
np.linalg.norm(np.outer(q, v), axis=1)
np.linalg.norm(np.outer(q, v), 'fro')
np.linalg.norm(spd(q), 2)
np.linalg.norm(q, 3)
np.linalg.vector_norm(q)
np.linalg.solve(spd(q), v)
np.linalg.inv(spd(q)) @ v
np.linalg.pinv(F + 0.1 * np.outer(q[:3], v)) @ q[:3]
np.linalg.lstsq(spd(q), v, rcond=None)[0]
(lambda J: J.T @ np.linalg.inv(J @ J.T + 0.01 * I3))(F + 0.1 * np.outer(q[:3], v)) @ v[:3]
np.linalg.det(spd(q))
np.linalg.slogdet(spd(q))[1]
np.linalg.cholesky(spd(q))
np.linalg.eigvalsh(spd(q))
(lambda w, V: V * np.sqrt(w) @ V.T)(*np.linalg.eigh(spd(q)))
np.linalg.eigvals(spd(q)).real.max()
np.linalg.eig(spd(q))[0].real.min()
np.linalg.svd(F + 0.1 * np.outer(q[:3], v))[1]
np.linalg.svd(F + 0.1 * np.outer(q[:3], v), compute_uv=False)
np.sqrt(np.linalg.det((lambda J: J @ J.T)(F + 0.1 * np.outer(q[:3], v))))
np.linalg.qr(spd(q))[1]
np.linalg.cond(spd(q))
np.linalg.matrix_rank(spd(q))
np.linalg.matrix_power(spd(q), 3)
(np.eye(4) - np.linalg.pinv(F) @ (F + 0.1 * np.outer(q[:3], v))) @ q
hat(q) @ v[:3]
(lambda R: np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0]]))(hat(q) @ hat(v))
v - v @ q / (q @ q) * q
0.5 * v @ K @ v
np.linalg.solve(spd(q), np.column_stack([q, v]))
scipy.linalg.solve(spd(q), v, assume_a='pos')
scipy.linalg.inv(spd(q))
scipy.linalg.cho_solve(scipy.linalg.cho_factor(spd(q)), v)
scipy.linalg.cholesky(spd(q), lower=True)
scipy.linalg.solve_triangular(np.tril(spd(q)), v, lower=True)
scipy.linalg.block_diag(np.outer(q[:2], v[:2]), q[0])
scipy.linalg.expm(hat(q))
scipy.linalg.lu_solve(scipy.linalg.lu_factor(spd(q)), v)
scipy.linalg.sqrtm(spd(q))
scipy.linalg.solve_continuous_are(hat(q), I3, I3, I3)
np.abs(scipy.linalg.null_space(F + 0.1 * np.outer(q[:3], v)))
scipy.linalg.norm(q)
scipy.linalg.pinv(F + 0.1 * np.outer(q[:3], v))
scipy.linalg.toeplitz(q)
""",
    "polynomials and signals": """
np.polyval([1.0, -2.0, 0.5], q)
POLY(q[0]) + POLY(v)
P1(q)
CHEB(q)
np.polynomial.polynomial.polyval(q, [1.0, 2.0, 3.0])
np.polyfit([0.0, 1.0, 2.0, 3.0], q, 1)
np.roots([1.0, -3.0 - q[0] ** 2, 2.0]).real.max()
np.polyval(np.polyder([1.0, -2.0, 0.5]), q)
np.convolve(q, [0.25, 0.5, 0.25], mode='same')
np.correlate(q, v, 'full')
np.abs(np.fft.rfft(q))
np.hanning(4) * q
scipy.signal.lfilter(B, A, q)
scipy.signal.sosfilt(SOS, q)
scipy.signal.filtfilt(B, A, np.tile(q, 5))
scipy.signal.savgol_filter(q, 3, 1)
scipy.signal.medfilt(q, 3)
scipy.signal.detrend(q)
scipy.signal.square(q)
scipy.signal.sawtooth(q)
scipy.signal.chirp(q, 0.1, 10.0, 2.0)
SPLINE(q)
SPLINE(q, 1)
PCHIP(q)
LINE(q)
BSPLINE(q)
GRID2(np.array([q[0], v[0]]))
scipy.special.expit(q)
scipy.special.erf(q)
scipy.special.sinc(q) if hasattr(scipy.special, 'sinc') else np.sinc(q)
(lambda s: 10 * s ** 3 - 15 * s ** 4 + 6 * s ** 5)(np.clip(q, 0, 1))
1.0 / (1.0 + np.exp(-q))
np.exp(q - q.max()) / np.exp(q - q.max()).sum()
np.logaddexp(0.0, q)
scipy.special.logsumexp(q)
scipy.special.xlogy(np.abs(q), 2.0)
""",
    "angles and rotations": """
np.arctan2(np.sin(q - v), np.cos(q - v))
Rotation.from_euler('xyz', q[:3]).as_matrix()
Rotation.from_quat(quat(q)).as_euler('zyx')
Rotation.from_quat(quat(q)).as_matrix()
Rotation.from_rotvec(q[:3]).as_quat()
(Rotation.from_rotvec(q[:3]).inv() * Rotation.from_rotvec(v[:3])).as_rotvec()
Rotation.from_rotvec(q[:3]).apply(v[:3])
Rotation.from_rotvec(q[:3]).magnitude()
Rotation.from_matrix(matrix_of(q) @ matrix_of(v).T).as_matrix()
Rotation.from_euler('z', q[0], degrees=True).as_matrix()
SLERP(np.clip(q[0], 0, 1)).as_quat()
(Rotation.from_rotvec(q[:3]) ** 0.5).as_rotvec()
Rotation.from_rotvec(q[:3]).as_mrp()
Rotation.from_rotvec(q[:3]).as_quat(canonical=True)
Rotation.from_quat(quat(q), scalar_first=True).as_matrix()
Rotation.align_vectors([q[:3]], [v[:3]])[0].as_matrix()
Rotation.from_rotvec(np.outer(q[:2], v[:3])).as_matrix()
np.array([q[3] * v[0] + q[0] * v[3] + q[1] * v[2] - q[2] * v[1]])
rodrigues(q[:3] / np.linalg.norm(q[:3]), np.linalg.norm(q[:3]))
""",
    "python": """
sum(q)
sum((a * b for a, b in zip(q, v)))
min(q)
max(q[0], v[0], 0.1)
max(q, key=abs)
min([*q], default=0.0)
max(range(4), key=lambda k: q[k])
abs(q[0]) + abs(v)
round(q[0], 2)
round(q[0]) + 0.5
pow(q[0], 2)
divmod(q[0], 0.3)[1]
sorted(q)
sorted(q, key=abs)
sorted(q, reverse=True)[0]
list(reversed(q))
[k * x for k, x in enumerate(q)]
[a * b for a, b in zip(q, v)]
list(map(lambda x: x * x, q))
list(map(float, q))
sum(filter(lambda x: x > 0, q))
float(any((x > 1 for x in q)))
float(all((x > -1 for x in q)))
1.0 if any(q > 1) else 0.0
len(q) * q[0]
float(q[0])
int(q[0] * 10)
float(bool(q[0] > 0))
q[0] if isinstance(q, np.ndarray) else 0.0
q[0] if q[0] > v[0] else v[0]
1.0 if q[0] > 0 and (not v[0] > 0) or q[1] > 1 else 2.0
q[0] > 0 and q[0] or v[0]
sum([x for x in q if x > 0])
[[a * b for a in q] for b in v]
{k: 2 * x for k, x in enumerate(q)}[2]
[*q, *v][::2]
loop(q, v)
first_above(q)
newton(q)
unwrap_in_loop(q)
try_(q)
walrus(q)
match_(q)
State(q, v).q @ State(q, v).v
-GAINS.kp * q - GAINS.kd * v
(lambda e: e * abs(e))(q)
sum((g * x for g, x in zip(SCHEDULE.values(), q)))
(lambda f: f(f, 3))(lambda f, n: q[0] if n == 0 else q[n] * f(f, n - 1))
list(q)[1:3]
[1.0, 2.0, 3.0][int(np.clip(q[0], 0, 2))]
(lambda l: (l.sort(), l)[1])(list(q))
1.0 if round(q[0]) in (0, 1) else 0.0
sum(deque(q, maxlen=3)) / 3
functools.reduce(lambda a, b: a * b, q)
functools.partial(np.clip, a_min=-1, a_max=1)(q)
list(itertools.accumulate(q))
[b - a for a, b in itertools.pairwise(q)]
[a * b for a, b in itertools.product(q[:2], v[:2])]
list(itertools.chain(q, v))
sum((a * b for a, b in itertools.combinations(q, 2)))
statistics.mean(q)
statistics.fmean(q)
statistics.median(q)
statistics.stdev(q)
list(map(operator.mul, q, v))
operator.sub(q, v)
operator.neg(q)
operator.truediv(q, 2.0)
operator.matmul(K, q)
operator.itemgetter(0, 2)(q)
operator.lt(q, v) * 1.0
operator.pow(q, 2)
operator.iadd(q.copy(), v)
operator.abs(q)
float(operator.not_(q[0] > 0))
operator.getitem(q, 1)
""",
    "math": """
math.sin(q[0])
math.cos(q[0])
math.tan(q[0])
math.atan(q[0])
math.exp(q[0])
math.expm1(q[0])
math.exp2(q[0])
math.sinh(q[0])
math.cosh(q[0])
math.tanh(q[0])
math.asinh(q[0])
math.fabs(q[0])
math.floor(q[0])
math.ceil(q[0])
math.trunc(q[0])
math.degrees(q[0])
math.radians(q[0])
math.cbrt(q[0])
math.isnan(q[0])
math.isinf(q[0])
math.isfinite(q[0])
math.modf(q[0])
math.erf(q[0])
math.gamma(q[0])
math.lgamma(q[0])
math.erfc(q[0])
math.frexp(q[0])
math.ulp(q[0])
math.log(abs(q[0]) + 1.1)
math.log2(abs(q[0]) + 1.1)
math.log10(abs(q[0]) + 1.1)
math.log1p(abs(q[0]) + 1.1)
math.sqrt(abs(q[0]) + 1.1)
math.acosh(abs(q[0]) + 1.1)
math.asin(math.tanh(0.3 * q[0]))
math.acos(math.tanh(0.3 * q[0]))
math.atanh(math.tanh(0.3 * q[0]))
math.atan2(q[0], v[0])
math.hypot(q[0], v[0])
math.fmod(q[0], v[0])
math.copysign(q[0], v[0])
math.remainder(q[0], v[0])
math.isclose(q[0], v[0])
math.nextafter(q[0], v[0])
math.pow(abs(q[0]), v[0])
math.log(abs(q[0]) + 2.0, 10)
math.dist(q, v)
math.fsum(q)
math.prod(q)
math.hypot(*q[:3])
math.sumprod(q, v) if hasattr(math, 'sumprod') else sum(q * v)
math.atan2(math.sin(q[0]), math.cos(q[0]))
math.ldexp(q[0], 3)
""",
}
KINDS = {category: text.strip().splitlines() for category, text in KINDS.items()}
USED = functools, itertools, math, operator, statistics, scipy, deque  # by the texts
REFUSED = {
    "np.spacing(q)": "a distance between floating-point numbers",
    "np.nextafter(q, v)": "a distance between floating-point numbers",
    "math.ulp(q[0])": "a distance between floating-point numbers",
    "math.nextafter(q[0], v[0])": "a distance between floating-point numbers",
    "np.frexp(q)[0]": "bits of a number",
    "math.frexp(q[0])": "bits of a number",
    "math.ldexp(q[0], 3)": "bits of a number",
    "np.i0(q)": "a special function",
    "scipy.special.erf(q)": "a special function",
    "scipy.special.xlogy(np.abs(q), 2.0)": "a special function",
    "math.erf(q[0])": "a special function",
    "math.erfc(q[0])": "a special function",
    "math.gamma(q[0])": "a special function",
    "math.lgamma(q[0])": "a special function",
    "np.angle(np.exp(1j * q))": "complex numbers",
    "np.abs(q + 1j * v)": "complex numbers",
    "np.abs(np.fft.rfft(q))": "complex numbers",
    "cube(q).astype(float)": "a loop over objects",
    "put(q, _at)": "a method of a ufunc that is rare",
    "np.histogram(q, bins=[-1.0, 0.0, 1.0])[0]": "counts",
    "np.bincount((q > 0).astype(int), minlength=2)": "counts",
    "np.partition(q, 2)[2]": "an order that depends on the processor",
    "np.lexsort((q, v))": "an order of equal numbers",
    "np.unique(np.sign(q)).size": "an array of unknown length",
    "np.trim_zeros(q)": "an array of unknown length",
    "q.astype(np.float32)": "single precision",
    "(lambda w, V: V * np.sqrt(w) @ V.T)(*np.linalg.eigh(spd(q)))": "eigenvectors, factors with arbitrary signs, or iterations",  # noqa: E501
    "np.linalg.eigvals(spd(q)).real.max()": "eigenvectors, factors with arbitrary signs, or iterations",
    "np.linalg.eig(spd(q))[0].real.min()": "eigenvectors, factors with arbitrary signs, or iterations",
    "np.linalg.qr(spd(q))[1]": "eigenvectors, factors with arbitrary signs, or iterations",
    "scipy.linalg.expm(hat(q))": "eigenvectors, factors with arbitrary signs, or iterations",
    "scipy.linalg.lu_solve(scipy.linalg.lu_factor(spd(q)), v)": "eigenvectors, factors with arbitrary signs, or iterations",  # noqa: E501
    "scipy.linalg.sqrtm(spd(q))": "eigenvectors, factors with arbitrary signs, or iterations",
    "scipy.linalg.solve_continuous_are(hat(q), I3, I3, I3)": "eigenvectors, factors with arbitrary signs, or iterations",  # noqa: E501
    "np.abs(scipy.linalg.null_space(F + 0.1 * np.outer(q[:3], v)))": "eigenvectors, factors with arbitrary signs, or iterations",  # noqa: E501
    "np.roots([1.0, -3.0 - q[0] ** 2, 2.0]).real.max()": "iterations, or waves with jumps of scipy",
    "scipy.signal.medfilt(q, 3)": "iterations, or waves with jumps of scipy",
    "scipy.signal.square(q)": "iterations, or waves with jumps of scipy",
    "scipy.signal.sawtooth(q)": "iterations, or waves with jumps of scipy",
    "scipy.signal.chirp(q, 0.1, 10.0, 2.0)": "iterations, or waves with jumps of scipy",
    "Rotation.from_rotvec(q[:3]).as_mrp()": "several rotations, or another representation",
    "Rotation.align_vectors([q[:3]], [v[:3]])[0].as_matrix()": "several rotations, or another representation",
    "Rotation.from_rotvec(np.outer(q[:2], v[:3])).as_matrix()": "several rotations, or another representation",
    "statistics.stdev(q)": "fractions of the statistics module",
}


def function(text):
    """f(x) of eight numbers with the values of an expression; its file has one line."""
    name = f"<expression {text}>"
    source = f"def f(x):\n    q, v = x[:4], x[4:]\n    return numbers({text})\n"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space = {**globals()}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def numbers(x):
    """The numbers of a value, of its parts, or of conditions, as one array."""
    if isinstance(x, (tuple, list)):
        return np.concatenate([numbers(y) for y in x])
    return np.ravel(x * 1.0 if isinstance(x, np.ndarray) else np.array([x * 1.0]))
