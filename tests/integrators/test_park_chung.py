"""Park and Chung 2005, section VI: the published digits, through `rollout` and through `integrate`."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from lib import counting
from lib import park_chung as paper
from papers import park_chung_2005 as script

from geomctrl import models
from geomctrl.integrators.driver import integrate
from geomctrl.integrators.tableaus import method
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import ConfigurationGroup
from geomctrl.motion.rollout import rollout

ROBOT = models.three_spheres()


def published(name, h):
    return [paper.PUBLISHED[quantity][name, h] for quantity in paper.QUANTITIES]


def assert_five_digits(ours, expected):
    assert [f"{x:.4E}" for x in ours] == [f"{x:.4E}" for x in expected]


def test_initial_states_have_the_published_energy_and_momentum():
    np.testing.assert_allclose(
        paper.conserved(ROBOT, ROBOT.neutral(), paper.FIRST_RUN), [16.96, 0, 24, 0, 33.6, 0, 51.2], rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        paper.conserved(ROBOT, ROBOT.neutral(), paper.SECOND_RUN),
        [61.27, -3, 45, -9, 63.2, 33.6, 94.8],
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize("h", [1.0, 0.1])
@pytest.mark.parametrize("name", paper.METHODS)
def test_tables_vi_to_viii(name, h):
    assert_five_digits(paper.final_drift(name, h), published(name, h))


@pytest.mark.parametrize("name", [m for m in paper.METHODS if m[-1] in "23"])
def test_tables_vi_to_viii_at_a_hundredth(name):
    assert_five_digits(paper.final_drift(name, 0.01), published(name, 0.01))


def field(t, y):
    return np.concatenate((y[14:], ROBOT.forward_dynamics(y[:14], y[14:], np.zeros(8))))


@pytest.mark.parametrize("h", [1.0, 0.1])
@pytest.mark.parametrize("name", paper.METHODS)
def test_tables_vi_to_viii_on_the_product_group(name, h):
    """`integrate`, which is implemented independently of the compiled loop."""
    y0 = np.concatenate((ROBOT.neutral(), paper.FIRST_RUN))
    y = integrate(field, y0, (0, 1), h, name, Product(ConfigurationGroup(ROBOT), Rn(8))).y[-1]
    change = paper.conserved(ROBOT, y[:14], y[14:]) - paper.conserved(ROBOT, y0[:14], y0[14:])
    assert_five_digits(paper.drift(change), published(name, h))


@pytest.mark.parametrize("method", ["MK4", "MK8"])
def test_reference_solution_of_the_first_run(method):
    end = rollout(ROBOT, ROBOT.neutral(), paper.FIRST_RUN, None, 1.0, 1e-3, method, every=1000)
    np.testing.assert_allclose(end.q[-1, 12:], [0.3896269701353, 0.40611722798413], rtol=0, atol=1e-12)
    np.testing.assert_allclose(end.v[-1, 6:], [0.36894145915132, 0.41805245279553], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        end.q[-1, 3:12:4], [0.16139500226897, 0.04211047593185, -0.14284776693887], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", paper.LONG_ENERGY)
def test_second_run_drifts_as_recorded(name):
    """docs/reference/formulas.md, integrators: kinetic energy after 200 s at h = 0.05."""
    expected = paper.LONG_ENERGY[name]
    _, change = paper.long_drift(name)
    digits = 4 if abs(expected) > 1e-2 else 3  # the number of recorded samples
    assert f"{change[-1, 0]:.{digits - 1}e}" == f"{expected:.{digits - 1}e}"


@pytest.mark.parametrize("name", paper.METHODS)
def test_vector_operations_are_no_more_than_published(name):
    ours, theirs = script.vector_operations(name), paper.TABLE_X[name]
    assert ours[0] == theirs[0]  # forward dynamics
    assert ours[4:] == theirs[4:]  # exponentials, products, dexp^-1
    assert sum(ours[1:4]) <= sum(theirs[1:4])
    if name.startswith("CG"):
        assert ours == theirs


def test_operations_are_counted_where_they_happen(monkeypatch):
    monkeypatch.setattr(counting.Tally, "counts", Counter())
    x, y = counting.Tally(3.0), counting.Tally(2.0)
    assert -(2.0 * x - y / 4.0 + x * y + 1.0 / y) == -12.0
    assert counting.Tally.counts == {"mult": 2, "add": 3, "div": 2}
    assert counting.CountingMath().sqrt(counting.Tally(4.0)) == 2.0
    assert counting.Tally.counts["sqrt"] == 1


def test_counted_operations_of_a_step():
    """Table V: the same code runs for each exponential and each joint, so counts are proportional to their numbers."""
    counts = counting.counted_operations(paper.METHODS)
    for joints in (2, 20):
        one_exponential = counts["CG3", joints]["mult"] / 6
        assert counts["CG4", joints]["mult"] == 15 * one_exponential
        assert counts["CF2", joints] == counts["CG2", joints]
    for name, (*_, dexpinv) in paper.TABLE_X.items():
        assert counts[name, 2]["div"] == dexpinv  # one division in each, and no root or sine elsewhere
        assert counts[name, 2].keys() <= {"add", "mult", "div"}


# --- Table IV: a general group -------------------------------------------------------------------------------------


def on_matrices(t, Y):
    """A(t, Y) of Y' = Y A in gl(2), which depends on both and commutes with nothing."""
    return np.array([[np.sin(Y[0, 1]), 1.0 + t], [np.cos(2.0 * t) - Y[1, 0], 0.3 * Y[0, 0]]])


def final(name, steps, group=None):
    group, Y, h = group or counting.MatrixGroup(), np.array([[1.0, 0.2], [-0.1, 1.0]]), 1.0 / steps
    for k in range(steps):
        Y = counting.matrix_group_step(name, group, on_matrices, k * h, Y, h)
    return Y


def measured_order(name, group=None):
    best = final("CG4", 400)
    errors = [np.abs(final(name, n, group) - best).max() for n in (20, 40)]
    return np.log2(errors[0] / errors[1])


@pytest.mark.parametrize("name", paper.TABLE_IV)
def test_table_iv(name):
    """The counts are for methods that reach their order: fewer brackets would not be enough."""
    assert counting.operations_on_a_general_group(name) == paper.TABLE_IV[name]
    assert abs(measured_order(name) - int(name[-1])) < 0.2


@pytest.mark.parametrize(("name", "without"), [("MK3", 2), ("MK4", 3)])
def test_table_iv_needs_its_brackets(name, without, monkeypatch):
    for wrong in (lambda group, X, Y: 0.0 * X, lambda group, X, Y: Y @ X - X @ Y):
        monkeypatch.setattr(counting.MatrixGroup, "bracket", wrong)
        assert measured_order(name) < without + 0.2


# --- Table I(b), the printed fractions of CG4 ----------------------------------------------------------------------


def test_steps_in_numpy_and_compiled_are_one_method():
    tableau = method("CG4")
    for n in (1, 10):
        assert_five_digits(paper.crouch_grossman_drift(tableau.A, tableau.b, n), published("CG4", 1.0 / n))


def test_printed_fractions_are_the_coefficients_rounded():
    A, b = paper.printed_cg4()
    tableau = method("CG4")
    assert np.abs(A - tableau.A).max() < 1e-6
    assert np.abs(b - tableau.b).max() < 1e-6
    c = [1458 / 1783, 743 / 1925, 368 / 1135, 406 / 463]  # the first column of Table I(b)
    np.testing.assert_allclose(A.sum(axis=1)[1:], c, rtol=0, atol=2e-6)


def test_printed_fractions_lose_the_fourth_order():
    """Fig. 4: weights that sum to 1 + 6.5e-7 leave an error of first order, far above the published digits."""
    drifts = {n: paper.crouch_grossman_drift(*paper.printed_cg4(), n) for n in (50, 100, 200)}
    assert (drifts[100] > 100.0 * np.array(published("CG4", 0.01))).all()
    np.testing.assert_allclose(np.log2(drifts[100] / drifts[200]), 1.0, atol=0.1)


# --- what the script says of its cells -----------------------------------------------------------------------------


def off(name, kind):
    """The tableau of the method with an error; its weights still sum to one."""
    tableau = method(name)
    A, b = np.array(tableau.A), np.array(tableau.b)
    if kind == "swapped":  # the exponentials of the update, or its weights
        b = b[::-1].copy()
        return replace(tableau, b=b) if not np.array_equal(b, tableau.b) else replace(tableau, A=1.01 * A, c=None)
    if kind == "sign":
        k = tuple(np.argwhere(A)[-1])
        A[k] = -A[k]
    else:
        b[..., 0] += 1e-4
        b[..., -1] -= 1e-4
    return replace(tableau, A=A, b=b, c=None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["swapped", "sign", "factor"])
@pytest.mark.parametrize("name", paper.METHODS)
def test_no_row_of_tables_vi_to_viii_hides_a_wrong_method(name, kind):
    wrong, rows = off(name, kind), {}
    for h in paper.STEPS[:3]:
        assert {c.mark for c in script.cells(name, h)} <= {" ", "~"}
        for cell in script.cells(name, h, wrong):
            rows.setdefault(cell.quantity, []).append(cell.mark)
    # without forces velocities do not depend on the pose, and the energy not on the order of the exponentials
    blind = {"kinetic energy"} if name.startswith("CF") and kind == "swapped" else set()
    assert {quantity for quantity, marks in rows.items() if "!" in marks} == set(paper.QUANTITIES) - blind


def test_swapped_rows_of_cf4_are_not_taken_for_round_off():
    """Cells whose digits round-off affects are still marked "!", because the difference is larger than round-off."""
    for cell in script.cells("CF4", 0.01, off("CF4", "swapped")):
        if cell.quantity != "kinetic energy":  # it does not depend on the order of the exponentials
            assert cell.hidden
            assert cell.mark == "!"


@pytest.mark.slow
def test_the_cells_that_differ_are_those_of_plain_arithmetic():
    """Two cells of CG4 at 1 ms differ. Their size is that of plain numpy, which does not project the rotations."""
    marks = {(c.method, c.quantity): c for m in paper.METHODS for c in script.cells(m, 1e-3) if c.mark == "!"}
    assert ("CG4", "angular momentum") in marks  # it differs by 4 times the scatter, the linear momentum by 1.5 times
    assert set(marks) <= {("CG4", "linear momentum"), ("CG4", "angular momentum")}
    plain = dict(zip(paper.QUANTITIES, paper.crouch_grossman_drift(method("CG4").A, method("CG4").b, 1000)))
    for (_, quantity), cell in marks.items():
        assert cell.published < 3.0 * plain[quantity]
        assert plain[quantity] > 5.0 * cell.ours


@pytest.mark.slow
def test_the_script_counts_its_cells(capsys):
    script.tables_vi_to_viii()
    script.rounded_coefficients()
    script.table_iv()
    said = capsys.readouterr().out
    assert "81 of the 81 cells above round-off show the published five digits" in said
    assert re.search(r"CG4, angular momentum, h = 0.001: by \d\.\dE-12, \d\.\d times the scatter", said)
    assert "falls with order 1.0 to 1.0" in said


@pytest.mark.slow
def test_the_sentences_about_the_second_run_follow_the_runs(capsys):
    runs = {name: paper.long_drift(name) for name in paper.LONG_ENERGY}
    script.second_run(runs)
    said = capsys.readouterr().out
    assert "much faster is confirmed" in said
    assert "slight advantage is NOT confirmed" in said
    script.second_run(runs | {"CG4": runs["CF4"], "MK4": runs["CF4"], "CF4": runs["CG4"]})
    said = capsys.readouterr().out
    assert "much faster is NOT confirmed" in said
    assert "slight advantage is confirmed" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", paper.LONG_ENERGY)
def test_second_run_sees_a_wrong_method(name):
    _, change = paper.long_drift(off(name, "factor"))
    assert abs(change[-1, 0] - paper.LONG_ENERGY[name]) > 0.01 * abs(paper.LONG_ENERGY[name])
