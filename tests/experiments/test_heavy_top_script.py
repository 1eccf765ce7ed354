"""The heavy top of Bruels, Cardona and Arnold: columns are measured, and a wrong method shows in its row."""

from dataclasses import replace

import pytest
from papers import bruels_cardona_arnold_2012 as paper

from geomctrl.integrators.tableaus import method

STEPS = 1600


def off(name):
    """The tableau of the method with weights that are changed by 0.03 and still sum to one."""
    tableau = method(name)
    b = tableau.b.copy()
    b[..., 0] += 0.03
    b[..., -1] -= 0.03
    return replace(tableau, b=b)


def row(where, name, steps=STEPS):
    return paper.relative(name, steps) if where == "relative" else paper.maximal(where, name, steps)


@pytest.mark.slow
@pytest.mark.parametrize("where", [*paper.GROUPS, "relative"])
def test_each_row_shows_wrong_weights(where, monkeypatch):
    monkeypatch.setattr(paper, "best_of", lambda times, function: (0.0, function()))
    right = {name: row(where, name) for name in paper.FIXED}
    integrate, rollout = paper.integrate_index1, paper.rollout
    monkeypatch.setattr(
        paper,
        "integrate_index1",
        lambda system, y0, t_span, h, name, **options: integrate(system, y0, t_span, h, off(name), **options),
    )
    monkeypatch.setattr(
        paper,
        "rollout",
        lambda model, q0, v0, tau, t_end, h, name, **options: rollout(
            model, q0, v0, tau, t_end, h, off(name), **options
        ),
    )
    for name in paper.FIXED:
        wrong = row(where, name)
        assert wrong.error > 2.0 * right[name].error, name
        assert abs(wrong.energy) > 10.0 * abs(right[name].energy), name


@pytest.mark.slow
@pytest.mark.parametrize(("where", "name"), [("SE(3)", "GA"), ("SE(3)", "GA-s"), ("SO(3)xR3", "GA")])
def test_generalized_alpha_shows_another_top(where, name, monkeypatch):
    monkeypatch.setattr(paper, "best_of", lambda times, function: (0.0, function()))
    right = row(where, name, 1600)
    integrate = paper.generalized_alpha.integrate_index3

    def shorter(system, y0, t_span, h, **options):
        return integrate(system, y0, (0.0, 0.95 * t_span[1]), 0.95 * h, **options)

    monkeypatch.setattr(paper.generalized_alpha, "integrate_index3", shorter)
    assert row(where, name, 1600).error > 2.0 * right.error


@pytest.mark.slow
def test_the_top_in_relative_coordinates_is_measured_at_its_pivot(monkeypatch):
    held, rollout = paper.relative("MK4", 50), paper.rollout

    def slipping(*args, **options):
        path = rollout(*args, **options)
        q = path.q.copy()
        q[-1, 3] += 1e-9  # m
        return replace(path, q=q)

    monkeypatch.setattr(paper, "rollout", slipping)
    slipped = paper.relative("MK4", 50)
    assert held.violation < 1e-15
    assert slipped.violation == pytest.approx(1e-9, rel=1e-6)
