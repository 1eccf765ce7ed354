"""Section 5 of Park, Bobrow and Ploen 1995: the exact gradient, and what makes a path one of least energy."""

import re
from pathlib import Path

import numpy as np
import pytest
from lib.residuals import STEP, case, gradient, relative
from papers import minimum_energy_paths as paper

from geomctrl.papers import factored


@pytest.mark.parametrize("chain", [True, False])
def test_the_recursion_of_proposition_1_is_the_gradient_of_the_kinetic_energy(chain):
    robot, q, v, *_ = case(5, chain=chain)
    T, dq, dv = paper.kinetic_energy(robot, np.stack((q, q + 0.1)), np.stack((v, v)))
    assert relative(T[0], robot.kinetic_energy(q, v)) < 1e-14
    assert relative(dq[0], gradient(lambda x: 0.5 * v @ factored.mass_matrix(robot, x) @ v, q)) < 1e-13
    assert relative(dq[1], robot.coriolis_matrix(q + 0.1, v, "christoffel").T @ v) < 1e-13
    assert relative(dv[0], robot.mass_matrix(q) @ v) < 1e-13


@pytest.mark.parametrize("name", paper.EXAMPLES)
def test_the_gradient_of_the_discretised_energy_is_exact(name):
    make, q0, q1, _ = paper.EXAMPLES[name]
    robot, rng = make(), np.random.default_rng(0)
    x, y = 0.3 * rng.normal(size=(2, 5, robot.nv))
    t, weights = np.polynomial.legendre.leggauss(12)
    phi, rate, _ = paper.basis(0.5 * (t + 1.0), 5)

    def energy(c):
        q = q0 + 0.5 * (t[:, None] + 1.0) * np.subtract(q1, q0) + phi @ c
        v = np.subtract(q1, q0) + rate @ c
        return 0.25 * weights @ np.einsum("ti,tij,tj->t", v, factored.mass_matrix(robot, q), v)

    exact = np.imag(energy(x + 1j * STEP * y)) / STEP
    E, ours = paper.action(robot, np.asarray(q0), np.asarray(q1), x, 12)
    assert relative(E, energy(x)) < 1e-13
    assert relative((ours * y).sum(), exact) < 1e-12


@pytest.fixture(scope="module")
def found():
    return paper.example("two-link")


@pytest.mark.slow
def test_the_path_is_a_geodesic(found):
    turn, energy, arrival = paper.check(*found)
    assert turn < 1e-3
    assert energy < 1e-5
    assert arrival < 1e-6


@pytest.mark.slow
def test_no_neighbour_is_cheaper(found):
    robot, path = found
    rng, nodes = np.random.default_rng(1), 2 * len(path.coefficients)
    assert path.energy < 0.92 * path.straight
    for _ in range(20):
        aside = rng.normal(size=path.coefficients.shape)
        aside *= 0.03 * np.linalg.norm(path.coefficients) / np.linalg.norm(aside)
        for sign in (-1.0, 1.0):
            neighbour = paper.action(robot, path.q0, path.q1, path.coefficients + sign * aside, nodes)[0]
            assert neighbour > path.energy


def test_the_checks_see_a_path_that_is_none(found):
    robot, path = found
    turn, energy, arrival = paper.check(robot, path._replace(coefficients=0.0 * path.coefficients))
    assert min(turn, energy, arrival) > 0.1


@pytest.mark.slow
def test_the_script_says_what_the_document_says(tmp_path, capsys):
    paper.main(out=tmp_path)
    said = capsys.readouterr().out
    assert (tmp_path / "minimum_energy_paths.png").stat().st_size > 10_000
    document = (Path(__file__).parents[2] / "docs" / "explanation" / "minimum-energy-paths.md").read_text(
        encoding="utf-8"
    )
    rows = re.findall(
        r"^\| (?:two-link arm|Panda), degree (\d+) \| (\S+) J \| (\S+) J \| (\S+) %", document, re.MULTILINE
    )
    assert len(rows) == len(paper.EXAMPLES)
    for degree, straight, least, saved in rows:
        assert f"{least} J, {saved} % less than the straight line's {straight} J, degree {degree}," in said


def test_the_document_shows_the_recursion_as_it_is():
    root = Path(__file__).parents[2]
    document = (root / "docs" / "explanation" / "minimum-energy-paths.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```py\n(.*?)```", document, re.DOTALL)
    code = (root / "experiments" / "papers" / "minimum_energy_paths.py").read_text(encoding="utf-8")
    assert "".join(f"    {line}\n" for line in shown.splitlines()) in code
