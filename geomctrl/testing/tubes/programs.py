"""The motion under the torques for an acceleration a: vdot = a + M^-1 r, where r is what the law does not cancel.

The torques M a + C v + g of the law's model would otherwise be multiplied by M^-1, whose enclosure is not its inverse:
gravity and inertia would cancel only up to order 2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from geomctrl.control.compiled.proving import NUMBERS, TracedClosedLoop
from geomctrl.control.compiled.robot_numbers import armatures, inertial_parameters
from geomctrl.control.compiled.trace_parts import one_number
from geomctrl.robot import Robot
from geomctrl.testing.certificates.forms import Lemma, differences, solved
from geomctrl.tracing.derivatives import loads, tangents
from geomctrl.tracing.proofs.identities import chance, degree_in, identical
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.symbols import Symbol, add, is_symbol, sub


def program_symbols(law: Any, plant: Any, t: Any, q: Any, v: Any, z: Any, tau: Any) -> dict[str, Any]:
    """The limits of a program, and the terms of vdot = a + M^-1 r, while a loop is traced."""
    program = [list(map(one_number, x)) for x in law.program(t, q, v, z)]
    return {"program": program} | _terms(plant, t, q, v, law.acceleration(q, v, z), tau)


def law_symbols(law: Any, weightless: Any, plant: Any, t: Any, q: Any, v: Any, z: Any, tau: Any) -> dict[str, Any]:
    """The terms of vdot = a + M^-1 r for a law that contains its model, while a loop is traced; {} if it has none.

    A law with the torques M a + C w + g of its model leaves r = u - C (v - w), where u are its torques for a model
    without inertia. weightless: the law's robot without gravity, for C (v - w).
    """
    nv = len(v)
    if np.shape(tau) != (nv,):
        return {}
    a: Any = np.zeros(nv)
    uncancelled = v
    if hasattr(law, "acceleration"):
        a, uncancelled = law.acceleration(t, q, v, z), None
    elif hasattr(law, "Lambda") and hasattr(law, "form"):
        x = law.sliding(t, q, v)
        a, uncancelled = x.a_ref, x.s
    coriolis: Any = np.zeros(nv)
    if uncancelled is not None:
        form = {"form": law.form} if hasattr(law, "form") else {}
        coriolis = weightless.inverse_dynamics(q, v, np.zeros(nv), uncancelled, **form)
    inertia = [*inertial_parameters(law.robot), *armatures(law.robot)]
    return {"inertia": inertia, "coriolis": np.ravel(coriolis).tolist()} | _terms(plant, t, q, v, a, tau)


def _terms(plant: Any, t: Any, q: Any, v: Any, a: Any, tau: Any) -> dict[str, Any]:
    return {
        "acceleration": np.ravel(a).tolist(),
        "tau": np.ravel(tau).tolist(),
        "forces": np.ravel(plant.robot.inverse_dynamics(q, v, a)).tolist(),
        "rest": np.ravel(plant._less_friction(t, q, v, np.zeros(len(v)), None, None)).tolist(),
        "mass": [np.ravel(row).tolist() for row in np.asarray(plant.robot.mass_matrix(q), object)],
    }


def by_accelerations(
    loop: TracedClosedLoop, robot: Robot, uncertain: np.ndarray
) -> tuple[TracedClosedLoop, list[Lemma]]:
    """The loop with vdot = a + M^-1 r, and the identity that shows it; unchanged without one.

    robot: the law's model. uncertain: indices of the inertial parameters that are not the numbers of the loop.

    r is affine in the true parameters: its value for the model is that of friction, springs and what the law adds to
    the torques of its model, the rest is linear in the deviations of the parameters.
    """
    graph, extra, n = loop.graph, loop.extra, robot.nv
    p, a, rest = loads(extra["parameters"]), extra["acceleration"], extra["rest"]
    if len(p) != robot.parameters.size:
        return loop, []
    added: list[Any] = [0.0] * n
    if "coriolis" in extra:
        massless = {x.index: 0.0 for x in extra["inertia"] if is_symbol(x)}
        added = differences(substituted(graph, extra["tau"], massless), extra["coriolis"])
    own = differences(extra["tau"], extra["forces"])
    model = dict(zip(p, robot.parameters.ravel().tolist()))
    right = list(zip(substituted(graph, own, model), substituted(graph, added, model)))
    exact = {k for k in np.delete(p, uncertain).tolist() if loop.numbers[graph.nodes[k][2]] == model[k]}
    along = {k: sub(Symbol(graph, k), m) for k, m in model.items() if k not in exact}
    left = [add(add(x, y), z) for x, y, z in zip(tangents(graph, own, along), rest, added)]
    vdot = [add(x, y) for x, y in zip(a, solved(extra["mass"], left))] if any(map(is_symbol, left)) else a
    pairs = list(zip(loop.field[n : 2 * n], vdot, strict=True))
    numbers = {(NUMBERS, k): x for k, x in enumerate(loop.numbers.tolist())}
    for k in along:
        numbers.pop(tuple(graph.nodes[k][1:]))
    affine = all(degree_in(graph, x, set(p)) <= 1 for x in own)
    if not (affine and identical(graph, right, numbers) and identical(graph, pairs, numbers)):
        return loop, []
    field = [*loop.field[:n], *vdot, *loop.field[2 * n :]]
    cause = "friction and errors of the model" if "program" in extra else "feedback, friction and errors of the model"
    claim = f"vdot = a + M^-1 r, where r is due to {cause}"
    lemma = Lemma(claim, chance(graph, pairs), lambda seed: identical(graph, pairs, numbers, seed))
    return replace(loop, field=field), [lemma]
