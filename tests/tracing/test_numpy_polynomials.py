"""Polynomials of numpy as constants of functions and as attributes of laws."""

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from simulation_options import COMPILED, IN_PYTHON

import geomctrl as gc
from geomctrl import models
from geomctrl.tracing import trace

P, SCALED = Polynomial([1.0, 2.0, 3.0]), Polynomial([1.0, -2.0], domain=[0.0, 2.0])
USES = {
    "entry": lambda x: P(x[0]),
    "array": lambda x: P(x),
    "domain": lambda x: SCALED(x),
    "derivative": lambda x: P.deriv()(x),
    "integral": lambda x: P.integ()(x),
    "product": lambda x: (P * P + 2.0)(x),
    "coefficients": lambda x: P.coef * x[0],
    "poly1d": lambda x: np.poly1d([1.0, 2.0])(x),
}


@pytest.mark.parametrize("name", USES)
def test_a_polynomial_has_its_values(name):
    x = np.array([0.3, -1.7])
    np.testing.assert_allclose(trace(USES[name], 2).to_llvm()(x), USES[name](x), rtol=1e-15)


@pytest.mark.parametrize("control_dt", [None, 0.01])
def test_a_law_has_polynomials_and_uses_their_current_coefficients(control_dt):
    class Scheduled:
        robot = models.two_link()

        def __init__(self):
            self.gain = Polynomial([20.0, 1.0, -2.0])

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(-self.gain(q[0]) * q - self.gain.deriv()(q[1]) * v)

    def run(law, options):
        q0, v0 = np.full(2, 0.3), np.zeros(2)
        return gc.simulate(law.robot, law, q0, v0, 0.1, 1e-3, control_dt, monitors=None, options=options).q

    law = Scheduled()
    for coefficients in ([20.0, 1.0, -2.0], [5.0, 3.0, 1.0]):
        law.gain.coef[:] = coefficients
        np.testing.assert_allclose(run(law, COMPILED), run(law, IN_PYTHON), rtol=0, atol=1e-12)
