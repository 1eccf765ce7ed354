"""Mueller and Terze's examples: a row of the script shows when its group, its method or its result is wrong."""

from dataclasses import replace

import numpy as np
import pytest
from papers import mueller_terze_2013 as paper

from geomctrl.integrators.tableaus import method
from geomctrl.papers.constrained.integration import integrate_index1

ROWS = [(name, group) for name in paper.CASES for group in paper.GROUPS]


def marks(name, group, result):
    return [cell.mark for cell in paper.cells(name, group, result)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "group"), ROWS)
def test_each_row_of_the_drift_shows_another_group_and_another_method(name, group, monkeypatch):
    make, (other,) = paper.CASES[name], set(paper.GROUPS) - {group}
    right = paper.run(make(paper.GROUPS[group]), 1.0)
    assert set(marks(name, group, right)) == {""}
    assert "!" in marks(name, group, paper.run(make(paper.GROUPS[other]), 1.0))
    assert "!" in marks(name, group, right._replace(violation=1e3 * right.violation))
    tableau = method("MK4")
    off = replace(tableau, b=tableau.b + np.array((1e-3, 0.0, 0.0, -1e-3)))

    def run_off(system, y0, t_span, h, _, **options):
        return integrate_index1(system, y0, t_span, h, off, **options)

    monkeypatch.setattr(paper, "integrate_index1", run_off)
    wrong = marks(name, group, paper.run(make(paper.GROUPS[group]), 1.0))
    rounding = (name, group) == ("heavy top", "SE(3)")  # steps stay in the subgroup of the pivot for any weights
    assert ("!" in wrong) != rounding


@pytest.mark.slow
def test_energies_are_compared_at_ten_seconds():
    result = paper.run(paper.heavy_top(paper.SE3()), 10.0)
    assert set(marks("heavy top", "SE(3)", result)) == {""}
    assert marks("heavy top", "SE(3)", result._replace(energy=1.1 * result.energy))[-1] == "!"


@pytest.mark.slow
def test_each_claim_is_decided_by_the_runs():
    """Each verdict changes for some results: with exchanged groups, or with one of them a thousand times worse."""
    runs = {row: paper.run(paper.CASES[row[0]](paper.GROUPS[row[1]]), 1.0) for row in ROWS}
    a, b = paper.GROUPS

    def scaled(factors):
        return {
            (name, group): r._replace(violation=factors[group] * r.violation, energy=factors[group] * r.energy)
            for (name, group), r in runs.items()
        }

    def reversed_joints(result):
        return result._replace(violation=result.violation[:, ::-1])

    exchanged = {(name, {a: b, b: a}[group]): r for (name, group), r in runs.items()}
    joints = {row: reversed_joints(r) for row, r in runs.items()}
    planted = [exchanged, joints, scaled({a: 1e3, b: 1.0}), scaled({a: 1.0, b: 1e3})]
    outcome = np.array([claim.holds for claim in paper.claims(runs)])
    verdicts = np.array([[claim.holds for claim in paper.claims(results)] for results in planted])
    blind = [
        claim.description for claim, seen in zip(paper.claims(runs), (verdicts != outcome).any(axis=0)) if not seen
    ]
    assert not blind
