"""Evaluation of a trace operation by operation in plain Python: the reference for code generators."""

import math

OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else math.copysign(math.inf, a) if a else math.nan,
    "neg": lambda a: -a,
    "sqrt": lambda a: math.sqrt(a) if a >= 0.0 else math.nan,
    "abs": abs,
    "log": lambda a: math.log(a) if a > 0.0 else -math.inf if a == 0.0 else math.nan,
    "floor": math.floor,
    "min": min,
    "max": max,
    "atan2": math.atan2,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "where": lambda c, a, b: a if c else b,
    "copysign": math.copysign,
    "rint": lambda a: math.copysign(round(a), a) if math.isfinite(a) else a,
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "exp", "tanh", "sinh")},
    **{name: getattr(math, name) for name in ("cosh", "asinh", "acosh", "atanh", "expm1", "log1p", "exp2", "log2")},
    **{name: getattr(math, name) for name in ("log10", "cbrt", "hypot", "pow", "fmod", "remainder")},
}


def evaluate(graph, outputs, arrays):
    """Return the values of the nodes `outputs`, where input array number k is arrays[k]."""
    values = {}
    for at in graph.needed(outputs):
        op, *args = graph.nodes[at]
        if op == "const":
            values[at] = math.nan if args[0] == "nan" else args[0]
        elif op == "load":
            values[at] = arrays[args[0]][args[1]]
        else:
            values[at] = OPERATIONS[op](*(values[k] for k in args))
    return [values[at] for at in outputs]
