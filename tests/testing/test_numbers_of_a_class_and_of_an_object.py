"""Equations of a proof are those of the law now, whether a number is an attribute of its class or of the object."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.testing.tubes.equations import LoopEquations

ROBOT = models.two_link()
PLANT = gc.Plant(ROBOT)


class Law:
    robot = ROBOT
    kp, kd, bias, n, goal = 5.0, 2.0, 0.0, 3, np.array([0.1, 0.2])

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(2.0 * self.kp * (self.goal - q) - self.kd * v * self.n + self.bias)


def equations(uncertain=(), **attributes):
    law = Law()
    vars(law).update(attributes)
    return LoopEquations(law, PLANT, np.array(uncertain, int))


SAME = {"kp": 5.0, "kd": 2.0, "bias": 0.0, "n": 3, "goal": np.array([0.1, 0.2])}
OTHER = {"kp": 5.1, "kd": np.nan, "bias": 1e-9, "n": 4, "goal": np.array([0.1, 0.3])}


@pytest.mark.parametrize("uncertain", [(), (0, 11)])
@pytest.mark.parametrize("name", SAME)
def test_an_attribute_set_again_is_no_change(name, uncertain):
    proved = equations(uncertain)
    setattr(proved.controller, name, SAME[name])
    proved.require_unchanged()
    assert proved.identity() == equations(uncertain, **SAME).identity()


@pytest.mark.parametrize("name", OTHER)
def test_another_number_is_a_change(name):
    proved = equations()
    setattr(proved.controller, name, OTHER[name])
    with pytest.raises(gc.errors.ArgumentError, match="was changed after it"):
        proved.require_unchanged()


def test_other_uncertain_parameters_are_a_change():
    assert equations((0, 11)).identity() != equations((0, 12)).identity()
