"""Constructors called with data that kernels would index by, loop over or divide by: run in a process of its own.

`python bad_constructors.py` prints a line of JSON for each case: its name, the word that the refusal must say, and
what came. Were a case let through, it goes on to what its object is for: memory beyond an array, or a loop without an
end, is then found by who started the process.
"""

import dataclasses
import faulthandler
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import geomctrl as gc
from geomctrl import controllers, derivatives, groups, inertia, integrators, models, references
from geomctrl.papers import constrained

LONGEST = 30.0  # seconds that a case may take

ARM, FLOATING = models.two_link(), models.three_spheres()
SPHERE = inertia.from_com(1.0, (0.0, 0.0, 0.0), np.eye(3))
STRETCHED, SHEARED = np.diag([1.0, 1.0, 1.01, 1.0]), np.eye(4) + np.outer([0, 0, 0, 1], [1, 0, 0, 0])
HUGE, NAN = 10**30, np.nan

Case = tuple[str, Callable[[], Any]]


def fields_of_robots() -> Iterator[tuple[str, Any]]:
    """Build a robot of two bodies with one invalid entry: (name of the field, invalid value)."""
    yield from (("name", x) for x in (None, 3, b"arm"))
    yield from (("body_names", x) for x in ("ab", ("a",), ("a", "a"), ("a", "world"), ("a", 3), ("a", ""), (), None))
    ends = (2, 5, 7, -2, HUGE, -HUGE, 1.0, NAN, True, "0", None)
    yield from (("parents", (-1, x)) for x in (1, *ends))
    yield from (("parents", (x, 0)) for x in (0, 1, *ends))
    yield from (("parents", x) for x in ((), (-1,), (-1, 0, 1), None, 3, "ab", np.zeros((2, 2))))
    joint, fixed = ARM.joints[0], gc.Joint.fixed(name="weld")
    nameless = dataclasses.replace(joint, name=None)
    wrong = ((), (joint,), (joint, joint), (joint, fixed), (joint, nameless), (joint, 3), None, "ab")
    yield from (("joints", x) for x in wrong)
    good = ARM.placements
    wrong = (good[:1], np.stack((good[0], STRETCHED)), np.stack((good[0], SHEARED)), good * NAN, good[:, :3], good + 1j)
    yield from (("placements", x) for x in (*wrong, None, "ab", np.ma.masked_array(good, good == 0.0)))
    good = ARM.parameters
    infinite = np.where(good > 0.0, np.inf, good)
    yield from (("parameters", x) for x in (good * NAN, infinite, good[:1], good.ravel(), good + 1j, None, NAN))
    yield from (("gravity", x) for x in ((0.0, 0.0), (0.0, 0.0, NAN), 9.81, None, "abc", (0.0, 0.0, 1j)))
    own = ARM.frames
    tips = [gc.Frame("tool", x, np.eye(4)) for x in (2, 7, -2, HUGE, -HUGE, 0.0, NAN, None, "link1", True)]
    tips += [gc.Frame("tool", 0, x) for x in (STRETCHED, SHEARED, np.eye(3), NAN * np.eye(4), None)]
    tips += [gc.Frame(x, 0, np.eye(4)) for x in (None, "", 3, "tip")]
    yield from (("frames", (*own, tip)) for tip in (*tips, "tool", ("tool", 0, np.eye(4))))
    moved = tuple(f._replace(body=1 - f.body) if f.name == "link1" else f for f in own)
    yield from (("frames", x) for x in (None, 3, (), own[1:], moved))


def made(robot: gc.Robot) -> None:
    """Use a robot for simulation and terms, as a user would."""
    q, v = robot.neutral(), np.zeros(robot.nv)
    robot.terms(q, v)
    derivatives.mass_matrix_derivative(robot, q)
    robot.forward_dynamics(q, v, v)
    for frame in robot.frames:
        robot.jacobian(q, frame.name)


def robots() -> Iterator[Case]:
    good = {f.name: getattr(ARM, f.name) for f in dataclasses.fields(ARM) if f.init}
    for field, bad in fields_of_robots():
        yield field, lambda field=field, bad=bad: made(gc.Robot(**{**good, field: bad}))
        yield field, lambda field=field, bad=bad: made(dataclasses.replace(ARM, **{field: bad}))
    for field, bad in (("parents", (-1, 99)), ("frames", (gc.Frame("tool", 99, np.eye(4)),))):
        kept = tuple({**good, field: bad}.values())
        yield field, lambda kept=kept: made(pickle.loads(_pickle_of(gc.Robot, kept)))
    yield "parents", lambda: made(dataclasses.replace(FLOATING, parents=(2, 0, 1)))  # a kinematic loop
    yield "parents", lambda: made(dataclasses.replace(FLOATING, parents=(-1, 0, 2)))  # a body that is its own parent
    yield "joints", lambda: made(dataclasses.replace(FLOATING, joints=FLOATING.joints[:2]))


def _pickle_of(kind: type, arguments: tuple) -> bytes:
    """A model file with data of a robot that were not checked when the file was written."""

    class Damaged:
        def __reduce__(self):
            return kind, arguments

    return pickle.dumps(Damaged())


def joints_and_bodies() -> Iterator[Case]:
    S = gc.Joint.revolute((0, 0, 1)).S
    for bad in (S[:5], S.ravel(), 2.0 * S, S * NAN, S + 1j, np.zeros((6, 2)), None, "S", np.eye(6)[:, :4]):
        yield "S", lambda bad=bad: gc.Joint("revolute", bad)
    for kind, S in (("spherical", np.eye(6)[:, 3:]), ("prismatic", np.eye(6)[:, :1]), ("revolute", np.eye(6)[:, 3:4])):
        yield "S", lambda kind=kind, S=S: gc.Joint(kind, S)
    yield "S", lambda: gc.Joint("revolute", np.array([[0.0, 0, 1, 0, 0, 0.5]]).T)
    for kind in ("hinge", None, 3, ["revolute"]):
        yield "kind", lambda kind=kind: gc.Joint(kind, S)
    joint = gc.Joint.revolute((0, 0, 1))
    for key in ("lower", "upper", "velocity", "effort", "damping", "friction"):
        for bad in (NAN, "1", 1j, None, True, np.ones(2), np.complex128(1.0), np.ma.masked, 10**400):
            yield key, lambda key=key, bad=bad: dataclasses.replace(joint, **{key: bad})
    for bad in (STRETCHED, SHEARED, np.eye(3), NAN * np.eye(4), "T"):
        yield "placement", lambda bad=bad: gc.Body("a", None, joint, bad, SPHERE)
    for bad in (SPHERE[:9], SPHERE * NAN, SPHERE + 1j, "m", 1.0):
        yield "inertia", lambda bad=bad: gc.Body("a", None, joint, None, bad)
    for bad in (3, None, ""):
        yield "name", lambda bad=bad: gc.Body(bad, None, joint, None, SPHERE)
    yield "parent", lambda: gc.Body("a", 3, joint, None, SPHERE)
    yield "joint", lambda: gc.Body("a", None, "revolute", None, SPHERE)


def integration() -> Iterator[Case]:
    heun = {"name": "mine", "order": 2, "A": [[0, 0], [1, 0]], "b": [0.5, 0.5]}
    wrong = {
        "A": ([[0, 0, 0], [1, 0, 0]], [[0, 1], [1, 0]], [[0, 0], [NAN, 0]], [[0, 0], [1j, 0]], "A"),
        "b": ([1.0], [0.5, NAN], [1.0, 1.0], None),
        "c": ([0.0], [0.0, NAN], [0.5, 1.0], "c"),
        "b_hat": ([1.0], [1.0, NAN, 0.0]),
        "interpolant": (np.zeros((2, 4)), np.full((3, 4), NAN)),
        "order": (0, -1, 2.0, HUGE, None),
        "family": ("RK", None, 3),
    }
    for key, values in wrong.items():
        for bad in values:
            yield (
                key,
                lambda key=key, bad=bad: gc.rollout(
                    ARM, [0, 0], [0, 0], None, 0.01, 0.001, integrators.Tableau(**{**heun, key: bad})
                ),
            )
    for bad in (-1, 2.0, HUGE, NAN, True, None):
        yield "n", lambda bad=bad: groups.Product(groups.Rn(bad), groups.SO3()).identity()
    yield "groups", lambda: groups.Product(groups.SO3(), 3)
    yield "function", lambda: integrators.Event(3)
    yield "every", lambda: gc.rollout(ARM, [0, 0], [0, 0], None, 0.01, 0.001, every=HUGE)
    yield "threads", lambda: ARM.mass_matrix([0.0, 0.0], threads=HUGE)
    yield "n", lambda: groups.Rn(HUGE)


def constraints() -> Iterator[Case]:
    def system(bodies: Any = None, constraint: Any = None, **options: Any) -> None:
        body = constrained.ConstrainedBody("a", SPHERE, np.eye(4))
        hinge = constrained.Constraint("revolute", "j", ("world", "a"), point=(0, 0, 0), axis=(0, 1, 0))
        built = constrained.ConstrainedSystem(bodies or [body], [constraint or hinge], **options)
        constrained.integrate_index1(built, built.consistent(), (0.0, 0.01), 0.005)

    hinge = constrained.Constraint("revolute", "j", ("world", "a"), point=(0, 0, 0), axis=(0, 1, 0))
    wrong = {
        "bodies": (("a",), ("a", "b"), ("a", "a"), ("a", "world", "a"), (0, 1), (), "ab", None),
        "point": ((0, 0), (0, 0, NAN), (0, 0, 1j), "p"),
        "axis": ((0, 0, 0), (0, NAN, 0), (0, 1), "z"),
        "kind": ("hinge", None, 3),
        "name": (3, None),
    }
    for key, values in wrong.items():
        for bad in values:
            text = "j" if key in ("bodies", "kind") else key  # the message names the constraint
            yield text, lambda key=key, bad=bad: system(constraint=dataclasses.replace(hinge, **{key: bad}))
    for key, values in {
        "inertia": (SPHERE[:9], SPHERE * NAN, 0.0 * SPHERE, "m", None),
        "pose": (STRETCHED, NAN * np.eye(4), np.eye(3), "T"),
        "group": (groups.SO3(), groups.SE3, 3),
    }.items():
        for bad in values:
            body = {"name": "a", "inertia": SPHERE, "pose": np.eye(4), key: bad}
            text = "a" if key == "inertia" else key
            yield text, lambda body=body: system([constrained.ConstrainedBody(**body)])
    hinge = constrained.Constraint("spherical", "s", ("world", "link2"), point=(1, 0, 0), point_b=(1, 0, 0))
    for bad in (("world", "link3"), ("world", 2), ("link2", "link2")):
        yield "s", lambda bad=bad: constrained.ClosedLoops(ARM, [dataclasses.replace(hinge, bodies=bad)])
    yield "robot", lambda: constrained.ClosedLoops("arm", [hinge])


def loops() -> Iterator[Case]:
    law = controllers.PDGravity(ARM, [0.0, 0.0])
    for bad in ([1.0, 2.0, 3.0], np.ones((2, 2))):
        for key in ("viscous", "coulomb"):
            yield (
                "friction|viscous|coulomb",
                lambda key=key, bad=bad: gc.simulate(
                    gc.Plant(ARM, gc.Friction(**{key: bad})), law, [0, 0], [0, 0], 0.002, 0.001
                ),
            )
    for bad in ("arm", None, models.two_link):
        yield "robot", lambda bad=bad: gc.Plant(bad)
    other = models.panda()
    for bad in (((0.1, other),), ((NAN, ARM),), ((0.1, "arm"),), 3):
        yield "changes", lambda bad=bad: gc.Plant(ARM, changes=bad)
    for key, values in {
        "amplitude": (np.ones(3), np.ones((2, 3)), [1.0, NAN], "a"),
        "frequency": (np.ones(3), [1.0, NAN], "f"),
    }.items():
        for bad in values:
            good = {"offset": np.zeros(2), "amplitude": np.ones(2), "frequency": np.ones(2)}
            sinusoids = {**good, key: bad}
            yield key, lambda s=sinusoids: references.Sinusoids(ARM, *s.values())(0.5)
    good = (np.zeros(2), np.ones(2))
    for bad in (np.ones(3), [1.0, NAN], np.ones((3, 2)), "q"):
        yield "q1", lambda bad=bad: references.Quintic(ARM, good[0], bad, 1.0)(0.5)
        yield "waypoints|waypoint", lambda bad=bad: references.Spline(ARM, [0.0, 1.0], bad)(0.5)


CASES = (robots, joints_and_bodies, integration, constraints, loops)


def main() -> None:
    faulthandler.enable()
    for cases in CASES:
        for k, (word, case) in enumerate(cases()):
            print(json.dumps([cases.__name__, k, word]), flush=True)
            faulthandler.dump_traceback_later(LONGEST, exit=True)
            try:
                case()
                came = "let through"
            except gc.GeomctrlError as error:
                came = str(error)
            except Exception as error:
                came = f"a foreign {type(error).__name__}: {error}"
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps([cases.__name__, k, word, came]), flush=True)
    print(json.dumps(["end"]), flush=True)


if __name__ == "__main__":
    main()
