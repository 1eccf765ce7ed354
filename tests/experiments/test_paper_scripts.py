"""The papers' tables as experiments/ prints them: every numbered result at round-off, and a row for every error."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from lib.residuals import Residual, case, relative
from papers import ploen_1999

import geomctrl as gc
import geomctrl.lie.se3
import geomctrl.lie.so3
from geomctrl import se3
from geomctrl.papers import higher_order_kinematics

NUMBERED = {  # the least number of rows of each table
    "park_bobrow_ploen_1995": 57,
    "ploen_1999": 40,
    "mueller_2018": 129,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERED)
def test_every_numbered_result_holds_to_round_off(name):
    rows = importlib.import_module(f"papers.{name}").table(seeds=(0, 3))
    assert len(rows) >= NUMBERED[name]
    assert not [row for row in rows if not row.ok]


# --- a row must fail when what it checks errs ----------------------------------------------------------------------

ERROR = 1e-7  # far above round-off, and below the tolerance at which the library refuses a matrix as no rotation

# What several public functions stand on. An error there must show as well: a row that compares one of them with
# another, and both with nothing else, is blind to it.
BENEATH = {
    "higher_order_kinematics.jacobian_derivatives": "higher_order_kinematics._jacobian_series",
    "higher_order_kinematics.twist_derivatives": "higher_order_kinematics._jacobian_series",
    "factored.mass_matrix": "factored.factors",
    "factored.mass_matrix_rate": "factored.factors",
    "factored.coriolis_matrix": "factored.factors",
    "factored.inverse_dynamics": "factored.factors",
    "factored.body_twists": "factored.factors",
    "factored.body_accelerations": "factored.factors",
    "closed_forms.product_mass_matrix": "closed_forms.product_of_exponentials",
    "closed_forms.product_christoffel_symbols": "closed_forms.product_of_exponentials",
    "closed_forms.product_gravity_force": "closed_forms.product_of_exponentials",
    "closed_forms.adjoint_derivatives": "closed_forms.product_of_exponentials",
    "closed_forms.adjoint_second_derivatives": "closed_forms.product_of_exponentials",
    "representations.convert_twist": "conversions.from_body",
    "representations.convert_jacobian": "conversions.from_body",
    "representations.convert_inertia": "conversions.from_body",
    "representations.convert_wrench": "conversions.from_body",
    "representations.convert_acceleration": "conversions.from_body_rate",
    "representations.convert_jacobian_rate": "conversions.from_body_rate",
}


def wrong(x):
    """x with each number changed by another fraction of 1e-7, which depends on its place only."""
    if isinstance(x, gc.Robot):
        turn = se3.Ad(se3.exp(ERROR * np.arange(1.0, 7.0)))
        return replace(x, joints=tuple(replace(joint, S=turn @ joint.S) for joint in x.joints))
    if isinstance(x, tuple):
        return type(x)(*map(wrong, x))
    x = np.asarray(x)
    noise = ERROR * np.sin(1.0 + sum((2.7 + axis) * k for axis, k in enumerate(np.indices(x.shape, sparse=True))))
    if x.shape[-2:] == (4, 4) and (x[..., 3, :] == (0.0, 0.0, 0.0, 1.0)).all():
        noise[..., 3, :] = 0.0  # the changed matrix is still accepted as a pose
    return (x * (1.0 + noise) + noise)[()]


def home_of(function: str) -> tuple[object, str]:
    """Return the class or module of which "Robot.pose" or "factored.factors" is an attribute, and the attribute."""
    home, attribute = function.split(".")
    if home == "Robot":
        return gc.Robot, attribute
    if home in ("so3", "se3"):
        return getattr(geomctrl.lie, home), attribute
    if home in gc.MODULES:
        return getattr(gc, home), attribute
    return importlib.import_module(f"geomctrl.papers.{home}"), attribute


def err(patch: pytest.MonkeyPatch, function: str) -> None:
    home, attribute = home_of(function)
    original = getattr(home, attribute)

    def erring(*args, **options):
        return wrong(original(*args, **options))

    patch.setattr(home, attribute, erring)
    for name, module in [*sys.modules.items()]:  # modules of the papers import functions from each other
        if name.startswith("geomctrl.papers.") and getattr(module, attribute, None) is original:
            patch.setattr(module, attribute, erring)
    if home in (geomctrl.lie.so3, geomctrl.lie.se3):  # the scripts call the function as a method of the group
        patch.setattr(type(getattr(gc, function.split(".")[0])), attribute, staticmethod(erring))


def blind_rows(sections) -> Iterator[str]:
    """The rows that do not show an error in a function that they name, or in one that it uses."""
    checks = [(section, [row.of.split(", ") for row in section(0)]) for section in sections]
    for function in sorted({f for _, names in checks for row in names for f in row}):
        for culprit in filter(None, (function, BENEATH.get(function))):
            with pytest.MonkeyPatch.context() as patch:
                err(patch, culprit)
                for section, names in checks:
                    if any(function in row for row in names):
                        for row, of in zip(section(0), names, strict=True):
                            if function in of and row.ok:
                                yield f"{row.equation} {row.statement}: {culprit} errs by {ERROR}, {row.error:.1e}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERED)
def test_every_row_shows_an_error_of_what_it_checks(name):
    assert not list(blind_rows(importlib.import_module(f"papers.{name}").SECTIONS))


def test_a_row_that_compares_a_function_with_itself_is_blind():
    """As an earlier version of the rows for accelerations: both sides came from one series of Jacobians."""

    def with_itself(seed):
        robot, q, v, a, _ = case(seed)
        rates, tip = np.stack((v, a)), robot.body_names[-1]
        J, J_rate = higher_order_kinematics.jacobian_derivatives(robot, q, rates, tip)[:2]
        acceleration = higher_order_kinematics.twist_derivatives(robot, q, rates, tip)[1]
        of = "higher_order_kinematics.twist_derivatives"
        return [Residual("(2)", "acceleration", of, relative(J @ a + J_rate @ v, acceleration))]

    (found,) = blind_rows([with_itself])
    assert "_jacobian_series errs" in found


def test_a_row_that_says_the_same_on_both_sides_is_blind():
    """As an earlier version of the rows for dual maps: (A^T z) . x = z . (A x) holds for any A."""

    def pairing(seed):
        x, y, z = np.random.default_rng(seed).normal(size=(3, 6))
        X = se3.exp(y)
        return [Residual("(5)", "Ad* pairs", "se3.Ad", relative((se3.Ad(X).T @ z) @ x, z @ (se3.Ad(X) @ x)))]

    (found,) = blind_rows([pairing])
    assert "se3.Ad errs" in found


# --- what the scripts say besides ----------------------------------------------------------------------------------


def test_the_recursions_own_coriolis_matrix_is_not_skew():
    skewness = ploen_1999.panda_skewness(states=20)
    assert skewness["plain"].min() > 1e-2
    assert max(skewness[form].max() for form in ("ploen", "christoffel", "adjoint")) < 1e-12
