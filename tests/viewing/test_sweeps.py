"""Pictures of sweeps: every shape of space has one, and what has no number is grey."""

import numpy as np
import pytest
import xarray
from matplotlib.collections import PathCollection, QuadMesh

from geomctrl.viewing.sweeps import figure, plot_sweep


def table_over(coordinates, sizes, axes=()):
    n = tuple(sizes.values())
    shape = (*n, *(3 for _ in axes))
    values = np.arange(float(np.prod(shape))).reshape(shape)
    dims = tuple(sizes)
    variables = {"peak": ((*dims, *axes), values, {"units": "N m"}), "run": (dims, np.zeros(n, int))}
    return xarray.Dataset(variables | {"t_reached": (dims, np.ones(n))}, coordinates)


def test_the_two_longest_dimensions_are_drawn_and_the_largest_of_the_others():
    table = table_over(
        {"a": [1, 2], "b": [0.1, 1.0, 10.0, 100.0], "c": ["x", "y", "z"]}, {"a": 2, "b": 4, "c": 3}, ["joint"]
    )
    fig = figure(table, "peak")
    assert "largest over a, joint" in fig.get_suptitle()
    ax, bar = fig.axes
    (mesh,) = [x for x in ax.collections if isinstance(x, QuadMesh)]
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(4, 3), table.peak.max(("a", "joint")))
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("c", "b", "log")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x", "y", "z"]
    np.testing.assert_allclose(mesh.get_coordinates()[:, 0, 1], 10.0 ** np.arange(-1.5, 3.0))
    assert bar.get_ylim() == (table.peak.max(("a", "joint")).min(), table.peak.max())


def test_missing_numbers_are_grey_and_a_picture_without_any_says_so():
    table = table_over({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}, {"a": 2, "b": 3})
    table["peak"][0, 1] = np.nan
    ax = figure(table, "peak").axes[0]
    assert ax.get_title() == "grey: runs without a number"
    assert np.ma.getmaskarray(ax.collections[0].get_array()).ravel().tolist() == [False, True] + 4 * [False]
    table["peak"][:] = np.nan
    assert figure(table, "peak").axes[0].texts[0].get_text() == "no run has a number"


def test_listed_samples_are_dots_and_one_dimension_is_a_line():
    listed = {"kp": ("sample", [3.0, 1.0, 2.0], {"units": "N m"}), "kd": ("sample", [1.0, 5.0, 4.0])}
    ax = figure(table_over(listed, {"sample": 3}), "peak").axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("kp [N m]", "kd")
    assert [type(x) for x in ax.collections] == [PathCollection] * 2
    ax = figure(table_over({"kp": [1.0, 2.0, 3.0]}, {"kp": 3}), "peak").axes[0]
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[1, 0], [2, 1], [3, 2]])
    ax = figure(table_over({"kp": ("sample", [3.0, 1.0, 2.0])}, {"sample": 3}), "peak").axes[0]
    assert ax.lines[0].get_linestyle() == "None"
    assert figure(table_over({}, {}), "peak").axes[0].texts[0].get_text() == "0"


@pytest.mark.parametrize("sizes", [{"a": 1, "b": 1}, {"a": 200, "b": 2}, {"a": 3}])
def test_a_file_a_measure(sizes, tmp_path):
    text = {"a": [f"word {k}" for k in range(sizes["a"])]}
    assert plot_sweep(table_over(text, sizes), tmp_path) == [tmp_path / "peak.png"]
    assert [p.name for p in tmp_path.iterdir()] == ["peak.png"]


def test_scales_are_logarithmic_where_values_reach_far_and_grow():
    evenly = table_over({"a": np.linspace(0.25, 12.0, 6), "b": np.geomspace(0.02, 20.0, 4)}, {"a": 6, "b": 4})
    evenly["peak"].values[:] = np.geomspace(1e-3, 1e3, 24).reshape(6, 4)
    ax, bar = figure(evenly, "peak").axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert bar.get_yscale() == "log"
    evenly["peak"].values[0, 0] = 0.0
    assert figure(evenly, "peak").axes[1].get_yscale() == "linear"
