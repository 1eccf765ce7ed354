"""scipy's Rotation on symbols is scipy's on numbers: values, signs of quaternions, small angles, half turns."""

import copy
import itertools
import threading

import numpy as np
import pytest
import scipy
from compiled_functions import in_numpy, outputs
from scipy.spatial import transform
from scipy.spatial.transform import Rotation, Slerp
from scipy.spatial.transform import Rotation as R

from geomctrl.tracing import trace
from geomctrl.tracing.rotations import SymbolicRotation
from geomctrl.tracing.untraceable import UntraceableError

SCIPY = tuple(map(int, scipy.__version__.split(".")[:2]))
WITHOUT_SCALAR_FIRST = pytest.mark.skipif(SCIPY < (1, 14), reason="scipy before 1.14 has no scalar_first")
FIXED = R.from_euler("xyz", [0.3, -0.2, 0.5])
TABLE = {"goal": (FIXED, 2.0)}
SLERP = Slerp([0.0, 0.4, 1.0], R.from_rotvec([[0.0, 0.0, 0.0], [0.5, 0.2, 1.0], [0.1, -0.4, 2.0]]))
RNG = np.random.default_rng(7)
VECTORS = np.array([
    *RNG.normal(size=(25, 3)), *(scale * np.array(x) for scale in (1e-3, 9.99e-4, 1e-5, 1e-9, 1e-160, 3.14159, 3.2, 7.0)
                                 for x in ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.6, 0.0, 0.8), (-0.48, 0.6, 0.64))),
    (0.0, 0.0, 0.0), (np.pi, 0.0, 0.0), (0.0, -np.pi, 0.0), (0.0, 0.0, np.pi),
])  # fmt: skip
SEQUENCES = ["xyz", "ZYX", "zxz", "YXY", "yzx", "XZY"]


class Frame:
    turn = FIXED


def near(found, expected, rtol=4e-15):
    scale = 1.0 + np.abs(expected).max(axis=1, keepdims=True)
    wrong = ~(np.abs(found - expected) <= rtol * scale)
    assert not wrong.any(), (np.argwhere(wrong)[:5], found[wrong][:5], expected[wrong][:5])


def turned_back(x):
    return (R.from_rotvec(x[:3]) * FIXED.inv()).as_rotvec()


FROM_VECTOR = {
    "quaternion": lambda x: R.from_rotvec(x).as_quat(),
    "canonical": lambda x: R.from_rotvec(2.0 * x).as_quat(canonical=True),
    "scalar first": lambda x: R.from_rotvec(x, degrees=True).as_quat(scalar_first=True),
    "matrix": lambda x: R.from_rotvec(x).as_matrix(),
    "vector": lambda x: R.from_rotvec(1.0 * x).as_rotvec(),
    "degrees": lambda x: R.from_rotvec(x).as_rotvec(degrees=True),
    "product": lambda x: (FIXED * R.from_rotvec(x) * R.from_rotvec([x[1], 0.3, x[0]])).as_quat(),
    "inverse": lambda x: (TABLE["goal"][0].inv() * R.from_rotvec(x)).inv().as_matrix(),
    "apply": lambda x: R.from_rotvec(x).apply(x[::-1] + 1.0),
    "apply to constants": lambda x: R.from_rotvec(x).apply([[1.0, 0.0, 2.0], [0.0, -1.0, 0.5]]),
    "apply back": lambda x: R.from_rotvec(x).apply([0.0, 0.0, 1.0], inverse=True),
    "constant applied": lambda x: np.concatenate([FIXED.apply(x), Frame.turn.inv().apply(x), FIXED.as_matrix() @ x]),
    "magnitude": lambda x: [R.from_rotvec(x).magnitude(), FIXED.magnitude() * x[0]],
    "powers": lambda x: [y for n in (0, 1, -1, 0.5, 2) for y in (R.from_rotvec(x) ** n).as_quat()],
    "identity": lambda x: (R.identity() * R.from_rotvec(x)).as_quat() * isinstance(FIXED, R),
    "from a matrix": lambda x: R.from_matrix(R.from_rotvec(x).as_matrix()).as_quat(),
    "by module": lambda x: transform.Rotation.from_rotvec(x).as_quat(),
    "by package": lambda x: scipy.spatial.transform.Rotation.from_rotvec(x).as_quat(),
    "by another name": lambda x: Rotation.from_quat(x[0] ** 2 * FIXED.as_quat() + [0, 0, 0, 1.0]).as_quat(),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=WITHOUT_SCALAR_FIRST if x == "scalar first" else ()) for x in FROM_VECTOR]
)
def test_rotations_of_vectors(name):
    f = FROM_VECTOR[name]
    found, good = outputs(lambda x: np.ravel(f(x)), VECTORS)
    assert good.all()
    half = np.abs(np.linalg.norm(VECTORS, axis=1) % (2 * np.pi) - np.pi) < 1e-6  # there the vector's sign is rounding
    rows = ~half if name in ("vector", "degrees", "powers", "from a matrix", "canonical") else slice(None)
    near(found[rows], in_numpy(f, VECTORS)[rows], 4e-13 if name == "degrees" else 2e-14 if name == "powers" else 4e-15)


def test_quaternions_of_any_length():
    rows = np.array([*RNG.normal(size=(20, 4)), *itertools.product((0.0, -0.0, 1e-9, -3.0), repeat=4)])

    def f(x):
        r = R.from_quat(x)
        return np.concatenate([r.as_quat(), r.as_quat(canonical=True), *r.as_matrix()])

    zero = ~rows.any(axis=1)
    found, good = outputs(f, rows)
    np.testing.assert_array_equal(good, ~zero)  # scipy raises for a quaternion of zeros
    with pytest.raises(ValueError, match="zero norm"):
        f(rows[zero][0])
    near(found[good], in_numpy(f, rows[good]))


@WITHOUT_SCALAR_FIRST
def test_quaternions_with_the_scalar_first():
    rows = RNG.normal(size=(20, 4))
    f = lambda x: R.from_quat(x, scalar_first=True).as_matrix()  # noqa: E731
    near(outputs(lambda x: np.ravel(f(x)), rows)[0], in_numpy(f, rows))


@pytest.mark.parametrize("degrees", [False, True])
@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq, degrees):
    unit = 180.0 / np.pi if degrees else 1.0
    rows = unit * np.array([*RNG.uniform(-np.pi, np.pi, (40, 3)), (0.0, 0.7, 0.0), (3.1, -0.2, -3.1)])

    def f(x):
        r = R.from_euler(seq, x, degrees=degrees)
        return np.concatenate([r.as_quat(), r.as_euler(seq, degrees=degrees), r.as_euler("XYZ", degrees)])

    found, good = outputs(f, rows)
    assert good[:-2].all()
    expected = in_numpy(f, rows[:-2])
    np.testing.assert_allclose(found[:-2], expected, atol=2e-12 * unit)


def test_single_axes_and_gimbal_lock():
    f = lambda x: np.concatenate([R.from_euler("z", x[0]).as_quat(), R.from_euler("XY", x[:2]).as_quat()])  # noqa: E731
    rows = RNG.normal(size=(10, 2))
    near(outputs(f, rows)[0], in_numpy(f, rows))
    locked = np.array([[np.pi / 2], [-np.pi / 2], [np.pi / 2 - 1e-9], [np.pi / 2 - 1e-5], [0.3]])
    _, good = outputs(lambda x: R.from_euler("xyz", [0.1, x[0], 0.2]).as_euler("xyz"), locked)
    assert good.tolist() == [False, False, False, True, True]  # scipy warns


MATRICES = [R.from_rotvec(x).as_matrix() for x in VECTORS]
MATRICES += [np.diag(x) for x in ((1.0, 1.0, 1.0), (1.0, -1.0, -1.0), (-1.0, 1.0, -1.0), (-1.0, -1.0, 1.0))]
MATRICES += [x[np.array([2, 0, 1])] for x in (np.eye(3), np.diag([1.0, -1.0, -1.0]))]  # ties of the largest number
MATRICES += [MATRICES[-2].T, MATRICES[-1].T]
BAD = [np.diag([1.0, 1.0, -1.0]), np.zeros((3, 3)), np.eye(3) + 1e-9 * np.eye(3)[::-1], 1.1 * np.eye(3)]
BAD += [np.full((3, 3), np.nan)]


def test_matrices():
    def f(x):
        return R.from_matrix(x.reshape(3, 3)).as_quat()

    rows = np.array(MATRICES).reshape(-1, 9)
    found, good = outputs(f, rows)
    assert good.all()
    near(found, in_numpy(f, rows))
    bad = np.array(BAD).reshape(-1, 9)
    assert not outputs(f, bad)[1].any()  # scipy raises, or makes the matrix orthogonal
    call = trace(f, 9).to_llvm()
    np.testing.assert_array_equal(call(bad[2]), f(bad[2]))
    with pytest.raises(ValueError, match="determinant"):
        call(bad[0])
    valid = lambda x: R.from_matrix(x.reshape(3, 3), assume_valid=True).as_quat()  # noqa: E731
    assert outputs(valid, bad[3:4])[1].all()


def test_slerp():
    times = np.array([0.0, 1e-9, 0.2, 0.4, np.nextafter(0.4, 1.0), 0.7, 1.0, -0.1, 1.1])[:, None]
    f = lambda x: SLERP(x[0]).as_quat()  # noqa: E731
    found, good = outputs(f, times)
    assert good.tolist() == [True] * 7 + [False] * 2  # scipy raises
    near(found[good], in_numpy(f, times[good]))


@pytest.mark.parametrize("f", [turned_back, FROM_VECTOR["quaternion"], FROM_VECTOR["vector"], FROM_VECTOR["matrix"]])
@pytest.mark.parametrize("x", [np.zeros(3), np.array([1e-4, 0.0, -3e-4]), np.array([0.3, -0.8, 0.2])])
def test_derivatives_are_finite_at_zero(f, x):
    slope, h = trace(lambda x: np.ravel(f(x)), 3).derivative().to_llvm()(x), 1e-5
    columns = [(np.ravel(f(x + h * e)) - np.ravel(f(x - h * e))) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(slope, np.transpose(columns), atol=1e-8)


REFUSED = {
    "several": lambda x: R.from_quat(np.stack([x, x])).as_quat(),
    "several numbers": lambda x: x[0] * R.from_euler("z", [[0.1], [0.2]]).as_quat(),
    "mrp": lambda x: R.from_quat(x).as_mrp(),
    "constructor": lambda x: R.from_mrp(x[:3]).as_quat(),
    "keyword": lambda x: R.from_quat(x, axis=0).as_quat(),
    "text": lambda x: x if str(R.from_quat(x)) else -x,
    "power": lambda x: (R.from_quat(x) ** x[0]).as_quat(),
    "random": lambda x: (R.random() * R.from_quat(x)).as_quat(),
    "axes": lambda x: R.from_euler("xxy", x[:3]).as_quat(),
    "times": lambda x: SLERP(x).as_quat(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_the_line(name):
    with pytest.raises(UntraceableError, match=r"test_rotations\.py, line"):
        outputs(REFUSED[name], np.ones((1, 4)))


def with_constants():
    """Results of a rotation that a module holds, in code without symbols; FIXED is read once for each."""
    turn, vector = Rotation.from_euler("z", 0.1), [0.1, 0.2, 0.3]
    turns = [FIXED * turn, turn * FIXED, FIXED * FIXED, FIXED**2, FIXED.inv(), copy.deepcopy(FIXED), TABLE["goal"][0]]
    slerp = Slerp([0.0, 1.0], Rotation.concatenate([FIXED, turn]))
    arrays = [FIXED.apply(vector), FIXED.as_rotvec(), FIXED.as_euler("zyx", degrees=True), FIXED.magnitude()]
    return [type(x) for x in arrays], [*(x.as_quat().tolist() for x in (*turns, slerp(0.3))), *map(np.ravel, arrays)]


def test_other_threads_and_later_code_have_scipys_class():
    seen, constants = [], []
    expected = with_constants()

    def ask():
        seen.append(
            (type(R.from_euler("z", 0.1)), type(R([0.0, 0.0, 0.0, 1.0])), isinstance(FIXED, R), len(R.random(3)))
        )
        constants.append(with_constants())

    def f(x):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert R is SymbolicRotation
        return (R.from_quat(x) * FIXED * TABLE["goal"][0]).as_quat()

    outputs(f, np.ones((1, 4)))
    assert seen
    assert {*seen} == {(Rotation, Rotation, True, 3)}
    assert constants[0][0] == expected[0]
    for x, y in zip(constants[0][1], expected[1], strict=True):
        np.testing.assert_array_equal(x, y)
    assert R is Rotation is transform.Rotation
    assert type(FIXED) is type(TABLE["goal"][0]) is type(Frame.turn) is Rotation
