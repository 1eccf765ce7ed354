"""Surfaces on which a function of the state is identically zero, so that it is not definite."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.tracing.derivatives import pullback, tangents
from geomctrl.tracing.proofs.identities import degree_in, identical
from geomctrl.tracing.proofs.interpreted import valued
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.symbols import neg

from .equations import Equations, solved

HALVINGS = 20


def zero_on_surface(e: Equations, F: Any, x: np.ndarray, half: np.ndarray) -> np.ndarray | None:
    """A state (q - q_d, v), not the equilibrium, in the box of those half widths at which F of the model is zero.

    F is quadratic in v. It is then extremal in v on a surface v = w(q), and that F(q, w(q)) = 0 is an identity, or it
    is not. None where it is not, or the surface is not met on the way from x to the equilibrium.
    """
    v = e.x[e.n :]
    model = dict(
        zip([*e.parameters[e.robots], *e.errors[e.robots]], [*e.model[e.robots].tolist(), *[0.0] * len(e.model)])
    )
    (F,) = substituted(e.graph, [F], model)
    if degree_in(e.graph, F, set(v)) != 2:
        return None
    gradient = pullback(e.graph, [F], [1.0], v)
    H = [tangents(e.graph, gradient, {k: 1.0}) for k in v]
    at_rest = substituted(e.graph, gradient, dict.fromkeys(v, 0.0))
    w = [neg(y) for y in solved(H, at_rest)]
    (there,) = substituted(e.graph, [F], dict(zip(v, w)))
    known = {e.graph.nodes[k][1:]: y for k, y in e.numbers.items()}
    try:
        if not identical(e.graph, [(there, 0.0)], known):
            return None
    except (ArithmeticError, ValueError):  # no surface: the second derivatives are singular
        return None
    for _ in range(HALVINGS):
        given = e.at(x[None], e.model[None]) | {
            k: e.q_d[i] + x[i : i + 1] for i, k in enumerate(e.angles) if k is not None
        }
        found = np.append(x[: e.n], valued(e.graph, w, given, 1)[0])
        if np.isfinite(found).all() and (np.abs(found) < half).all():
            return found if found.any() else None
        x = 0.5 * x
    return None
