"""V' without gravity, for laws that compensate it: the difference of two enclosures of g(q) would not vanish."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.tracing.proofs.substitution import substituted


def without_gravity(
    forms: Any, form: str, lemmas: list[Any], model: np.ndarray, decrease: Any, value: Any, potential: Any
) -> Any:
    """A form of V' with zero gravity, if that is an identity; for the plant's own parameters only."""
    graph = forms.graph
    true = dict(zip([*forms.p, *forms.errors], [*forms.true.tolist(), *(forms.true - model).tolist()]))
    (exact,) = substituted(graph, [decrease], true)
    needed = graph.needed([graph.operand(exact)])
    numbers = {k: graph.nodes[k][1] for k in needed if graph.nodes[k][0] == "const"}
    numbers |= {k: forms.fixed[k] for k in needed if k in forms.fixed}
    sizes = set(np.abs(forms.gravity).tolist()) - {0.0}
    weightless = {k: 0.0 for k, x in numbers.items() if isinstance(x, float) and abs(x) in sizes}
    (shorter,) = substituted(graph, [exact], weightless)
    pairs = [(exact, shorter)]
    if not weightless or not forms.same(pairs):
        return form, lemmas, model, decrease, value, potential
    lemmas = [*lemmas, forms.lemma("V' does not depend on gravity, which the law compensates", pairs)]
    forms.separable = forms.separable or not weightless.keys() & set(graph.needed([graph.operand(value)]))
    return f"{form}; without gravity", lemmas, model, shorter, value, potential
