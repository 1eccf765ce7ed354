"""A subclass that overrides a public method which the law never calls is refused."""

import contextlib

import numpy as np
import pytest
from bundled_laws import ROBOTS, law_of

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.contracts import started
from geomctrl.control.subclass_checks import CONTRACT
from geomctrl.errors import ArgumentError

ARM = models.two_link()


def public_methods(kind):
    result = {
        name
        for owner in kind.__mro__
        if owner.__module__.startswith("geomctrl.controllers")
        for name, x in vars(owner).items()
        if not name.startswith("_") and callable(getattr(kind, name))
    }
    return sorted(result - set(CONTRACT))


METHODS = [(law, name) for law in ROBOTS for name in public_methods(getattr(controllers, law))]


@pytest.mark.parametrize(("law", "name"), METHODS)
def test_what_is_overridden_is_called_or_refused(law, name):
    kind, calls = getattr(controllers, law), []

    def override(self, *args, **options):
        calls.append(name)
        return getattr(kind, name)(self, *args, **options)

    module = __name__
    with contextlib.suppress(ArgumentError):
        type("Own", (kind,), {name: override, "__module__": module})
        module = None
    refused = module is not None
    own, plant = law_of(law, ROBOTS[law][0])
    if law in ("Passivity", "Robust"):
        own = kind(own.robot, own.reference, strict=True)
    if law == "MomentumObserver":
        own = controllers.MomentumObserver(own.law, frame=plant.robot.body_names[-1])
    watched = type("Watched", (kind,), {"__module__": "geomctrl.controllers.watched", name: override})
    object.__setattr__(own, "__class__", watched)  # refused rightly, if no function that a loop calls uses `override`
    rng, robot = np.random.default_rng(0), plant.robot
    z = started(own, robot)
    for t in (0.1, 0.7):
        q, v = robot.integrate(robot.neutral(), 0.3 * rng.normal(size=robot.nv)), 0.3 * rng.normal(size=robot.nv)
        own(t, q, v, z)
        if hasattr(own, "lyapunov"):
            own.lyapunov(t, q, v, z, plant)
    assert bool(calls) != refused


def test_a_method_that_would_never_be_called_is_refused():
    with pytest.raises(ArgumentError, match="Own: overrides `sliding`, which the law of ModelBased does not call"):

        class Own(controllers.SlotineLi):
            def sliding(self, t, q, v):
                return None


def test_a_subclass_that_calls_the_method_itself_may_override_it():
    class Own(controllers.SlotineLi):
        def sliding(self, t, q, v):
            x = super().sliding(t, q, v)
            return x._replace(s=2.0 * x.s)

        def __call__(self, t, q, v, z):
            return super().__call__(t, q, v, z)._replace(signals={"s": self.sliding(t, q, v).s})

    class Further(Own):
        def sliding(self, t, q, v):
            x = super().sliding(t, q, v)
            return x._replace(s=x.s - 0.0 * q)

    motion = gc.control.references.hold(ARM, [0.1, 0.2])
    q, v, z = np.zeros(2), np.ones(2), ARM.parameters.ravel()
    s = [kind(ARM, motion)(0.0, q, v, z).signals["s"] for kind in (controllers.SlotineLi, Own, Further)]
    np.testing.assert_allclose(s[1], 2.0 * s[0])
    np.testing.assert_allclose(s[2], s[1])
