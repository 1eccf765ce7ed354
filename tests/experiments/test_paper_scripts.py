"""The papers' tables as experiments/ prints them: every numbered result at round-off."""

import importlib

import pytest
from papers import park_bobrow_ploen_1995, ploen_1999

NUMBERED = {  # how many rows each table has at least
    "park_bobrow_ploen_1995": 43,
    "ploen_1999": 29,
    "mueller_2018": 103,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERED)
def test_every_numbered_result_holds_to_round_off(name):
    rows = importlib.import_module(f"papers.{name}").table(seeds=(0, 3))
    assert len(rows) >= NUMBERED[name]
    assert not [row for row in rows if not row.error < 1e-12]


def test_the_recursions_own_coriolis_matrix_is_not_skew():
    skewness = ploen_1999.panda_skewness(states=20)
    assert skewness["plain"].min() > 1e-2
    assert max(skewness["ploen"].max(), skewness["christoffel"].max()) < 1e-12


def test_path_of_least_energy_is_a_geodesic():
    paper = park_bobrow_ploen_1995
    path, rows = paper.minimum_energy("two-link")
    assert path.energy < 0.92 * path.straight
    assert [row.error < 1e-2 for row in rows] == [True] * 3
    assert rows[2].error < 1e-6  # where the torque-free robot arrives

    better = paper.action(paper.models.two_link(), path.q0, path.q1, 1.01 * path.coefficients, 140)[0]
    assert better > path.energy
