"""A controller is one file in the folder: found under its class's name, offered on the command line."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from simulation_options import IN_PYTHON

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.cli.scenario import Scenario, ScenarioOptions

OWN = """
from geomctrl.control.contracts import Command
from geomctrl.controllers._model_based import ModelBased

class DampedDrift(ModelBased):
    GAINS = {"kd": "1/s, times D"}

    @classmethod
    def tuned(cls, tuning):
        law = cls(tuning.robot, tuning.motion)
        law.kd = tuning.kd * tuning.rule.D
        return law

    def __call__(self, t, q, v, z):
        return Command(self.robot.gravity_force(q) - self.kd * v)
"""


@pytest.fixture
def package_as_it_was(monkeypatch):
    """Files that a test adds to the package of controllers are removed after it."""
    monkeypatch.setattr(controllers, "__path__", list(controllers.__path__))
    before, imported = dict(vars(controllers)), set(sys.modules)
    yield
    for name in set(vars(controllers)) - set(before):
        delattr(controllers, name)
    for name in set(sys.modules) - imported:
        if name.startswith(f"{controllers.__name__}."):
            del sys.modules[name]


@pytest.mark.usefixtures("package_as_it_was")
def test_one_file_is_all_that_a_new_controller_takes(tmp_path):
    (tmp_path / "damped_drift.py").write_text(OWN)
    (tmp_path / "_shared.py").write_text("")
    controllers.__path__.append(str(tmp_path))
    assert "damped-drift" in controllers.classes(tuned=True)
    assert (
        controllers.DampedDrift
        is controllers.classes(tuned=True)["damped-drift"]
        is controllers.classes()["damped-drift"]
    )
    case = Scenario.make(models.two_link(), ScenarioOptions(controller="damped-drift", gains="kd=3", seconds=0.1))
    assert type(case.controller) is controllers.DampedDrift
    np.testing.assert_array_equal(case.controller.kd, 3.0 * case.rule.D)
    run = gc.simulate(case.plant, case.controller, case.q0, case.v0, 0.1, 1e-3)
    assert run.success
    (tmp_path / "nothing_here.py").write_text("x = 1")
    with pytest.raises(ImportError, match=r"nothing_here: expected a class with that name"):
        controllers.classes()


def test_the_stub_names_what_is_there():
    stub = ast.parse((Path(controllers.__file__).parent / "__init__.pyi").read_text(encoding="utf-8"))
    names = {a.asname for x in stub.body if isinstance(x, ast.ImportFrom) for a in x.names if a.asname}
    # for names that are not listed it says that they may exist
    assert names <= {c.__name__ for c in controllers.classes().values()}
    assert names <= set(dir(controllers))
    for name in names:
        assert getattr(controllers, name).__name__ == name


def test_other_names_are_not_there():
    for name in ("slotineli", "PdGravity", "Missing", "_files_"):
        with pytest.raises(AttributeError, match=f"has no attribute {name!r}"):
            getattr(controllers, name)
    assert controllers.elastic_joint.ElasticJoint is controllers.ElasticJoint
    not_tracking = {  # laws that do not track in joint space: for special robots, for frames, or around other laws
        *("attitude-tracking", "elastic-joint", "lqr", "quadrotor-tracking", "swing-up"),
        *("operational-space", "cartesian-impedance", "geometric-impedance"),
        *("momentum-observer", "energy-tank", "online-identification"),
    }
    assert set(controllers.classes(tuned=True)) == set(controllers.classes()) - not_tracking


PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "controllers.md").read_text(encoding="utf-8")


def test_every_law_has_a_row_in_the_table_of_laws():
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M)) == {c.__name__ for c in controllers.classes().values()}


@pytest.mark.slow
def test_the_page_s_code_runs():
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.S)), {})


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(controllers.classes(tuned=True)) - {"pd-gravity"}))
def test_each_law_finds_its_gains_for_an_arm(name):
    """As `geomctrl track` creates it, held for a millisecond, with a load that it may have to learn."""
    options = ScenarioOptions(controller=name, seconds=0.3, control_dt=1e-3, payload=0.5)
    case = Scenario.make(models.panda(), options)
    run = gc.simulate(
        case.plant, case.controller, case.q0, case.v0, 0.3, 1e-3, control_dt=1e-3, monitors=None, options=IN_PYTHON
    )
    assert np.abs(run.signals["e"]).max() < 0.2
