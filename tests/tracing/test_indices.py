"""Integer symbols as indices of arrays: numpy's entries, for negative places too, and none out of range."""

import numpy as np
import pytest
from compiled_functions import in_numpy, outputs, require_same, traced

from geomctrl.tracing import trace
from geomctrl.tracing.untraceable import UntraceableError

TABLE = np.array([[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0], [7.0, -8.0, 9.0], [0.5, 0.25, -0.0]])
COUNTS, FLAGS, LONG = np.array([3, 1, 4, 1]), np.array([True, False, False, True]), np.linspace(0.0, 1.0, 1000)


def place(x, low=-4, high=3):
    return int(min(max(x, low), high))


def written(x):
    A = np.outer(x, [1.0, 2.0, 3.0])
    A[place(x[0])] = x[:3]
    A[place(x[1], 0), 1] = -1.0
    A[place(x[2], 0), 1:] += x[3]
    A[:, place(x[3], 0, 2)] *= 2.0
    return A


def written_through(x):
    A = np.outer(x, [1.0, 2.0, 3.0])
    row = A[place(x[0], 0)]
    row += 1.0
    row[1] = x[2]
    row[place(x[1], 0, 2)] = 5.0
    return np.concatenate([A.ravel(), row])


def followed(x):
    """A row is a view: it has what is written into the array later, and so have its own views."""
    A = np.outer(x, [1.0, 2.0, 3.0])
    i, B = place(x[0], 0), A[1:]
    row, last = A[i], B[place(x[1], 0, 2)]
    back = row[::-1]
    A[1] = 7.0
    A[:, 2] -= x[2]
    B *= 2.0
    A[place(x[2], 0)][1] = -3.0
    np.fill_diagonal(A, 0.5)
    C = np.arange(12.0).reshape(3, 2, 2)
    inner = C[place(x[1], 0, 2)][place(x[0], 0, 1)]
    C[1] = 9.0
    C += 1.0
    return np.concatenate([row, last, back, inner])


def ring(x):
    buffer = np.zeros(3)
    for k in range(4):
        buffer[(place(x[0], 0) + k) % 3] = x[k]
    return np.append(buffer, buffer[(place(x[0], 0) + 1) % 3])


def typed(x):
    i = place(x[0])
    count, flag = COUNTS[i], FLAGS[i]
    results = [count // 2, count / 2, np.where(~flag, 2.0, 3.0), COUNTS[count % 3], flag + count]
    return [*(1.0 * y for y in results), 1.0 * isinstance(count, np.integer)]


def of_largest(x):
    A = np.outer(x, x[::-1])
    i = int(np.argmax(x))
    j, k = (i + 1) % 4, (i + 2) % 4
    return [A[i, j], A[k, j] - A[j, k], x[i], TABLE[k, -1], A[i, i]]


CASES = {
    "row": lambda x: TABLE[place(x[0])],
    "entry": lambda x: [TABLE[place(x[0]), 1], TABLE[2, place(x[1], -3, 2)], TABLE[place(x[0]), place(x[1], -3, 2)]],
    "part": lambda x: np.concatenate([TABLE[place(x[0]), 1:], TABLE[1:3, place(x[1], 0, 2)]]),
    "of symbols": lambda x: [x[place(x[0])], np.outer(x, x)[place(x[1]), place(x[2])]],
    "written": written,
    "written through a row": written_through,
    "followed": followed,
    "ring": ring,
    "typed": typed,
    "of the largest": of_largest,
    "long": lambda x: [LONG[int(np.floor(100.0 * np.clip(x[0], -3.0, 3.0)))]],
    "several": lambda x: TABLE[np.floor(np.clip(x, -4.0, 3.0)).astype(int)][:, 1:],
    "several entries": lambda x: x[np.clip(np.round(x), 0, 3).astype(int)],
}
ROWS = np.array([
    [0.0, 1.0, 2.0, 3.0], [3.4, -2.0, -1.0, 0.2], [-1.0, -3.2, 1.0, 1.0], [2.0, 2.0, -4.0, -0.5], [9.0, -9.0, 0.6, 1.5],
    [-0.3, 0.3, 2.5, -2.5],
])  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_entries_are_numpys(name):
    def f(x):
        return np.concatenate([np.ravel(y) for y in CASES[name](x)])

    found, good = outputs(f, ROWS)
    assert good.all()
    require_same(name, ROWS, found, in_numpy(f, ROWS))


def test_out_of_range_numpy_raises():
    f = lambda x: np.append(TABLE[int(x[0])], x[int(x[1])])  # noqa: E731
    rows = np.array([[a, b] for a in (-5.0, -4.0, 0.0, 3.0, 4.0, 1e300) for b in (-3.0, -2.0, 1.0, 2.0)])
    found, good = outputs(f, rows)
    inside = (np.abs(rows + 0.5) < [4.0, 2.0]).all(axis=1)
    np.testing.assert_array_equal(good, inside)
    require_same("rows", rows[inside], found[inside], in_numpy(f, rows[inside]))
    with pytest.raises(IndexError):
        trace(f, 2).to_llvm()(rows[0])


def test_an_index_makes_no_paths():
    """Ten unrelated indices of ten entries would be 10^10 paths."""
    few, many = (len(traced(lambda x, n=n: np.array([x[int(y) % 10] for y in x[:n]]), 10).graph.nodes) for n in (5, 10))
    assert many < 3 * few


REFUSED = {
    "part of a row": lambda x: _with_view(x, lambda row: row[:2]),
    "view of a row": lambda x: _with_view(x, lambda row: row.reshape(2, 2)),
    "float": lambda x: TABLE[x[0]],
    "never inside": lambda x: TABLE[7 + int(x[0] > 0.0)],
    "list": lambda x: [[1.0, 2.0], [3.0]][int(x[0])],
}


def _with_view(x, view):
    A = np.outer(x, x)
    part = view(A[place(x[0], 0)])
    part += 1.0
    return A.ravel()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_the_line(name):
    with pytest.raises(UntraceableError, match=r"test_indices\.py, line"):
        outputs(lambda x: np.ravel(REFUSED[name](x)), ROWS)
