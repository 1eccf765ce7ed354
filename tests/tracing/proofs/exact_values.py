"""Reference for enclosures: the exact value of a trace at one point, to 60 digits with mpmath."""

import mpmath

DIGITS = 60
TOO_MUCH = "too many digits, or the sign of a zero"
BOUNDS = {"log": 0, "log2": 0, "log10": 0, "log1p": -1}
EXPONENTIALS = ("exp", "tanh", "sinh", "cosh", "expm1", "exp2")
FUNCTIONS = {
    **{name: getattr(mpmath, name) for name in ("sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh", "sqrt")},
    **{name: getattr(mpmath, name) for name in ("sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "log10", "hypot")},
    "log1p": mpmath.log1p,
    "log2": lambda a: mpmath.log(a, 2),
    "exp2": lambda a: mpmath.power(2, a),
    "cbrt": lambda a: mpmath.sign(a) * mpmath.cbrt(abs(a)),
    "rint": mpmath.nint,
    "pow": lambda a, b: mpmath.power(a, b),
    "copysign": lambda a, b: abs(a) if b > 0 else -abs(a),
    "fmod": lambda a, b: a - b * int(a / b),
    "remainder": lambda a, b: a - b * mpmath.nint(a / b),
    "neg": lambda a: -a,
    "abs": abs,
    "floor": mpmath.floor,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "atan2": mpmath.atan2,
    "min": min,
    "max": max,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "and": lambda a, b: a and b,
    "not": lambda a: not a,
}


def exact_values(trace, x, numbers=()):
    """The outputs at input array x (array 1) and array 0, None for those that are not defined there.

    TOO_MUCH for those that hang on the exponential of a number beyond 1e5.
    """
    with mpmath.workdps(DIGITS):
        by_name = {}
        for at in trace.graph.needed(trace.ends):
            by_name[at] = _value(*trace.graph.nodes[at], known=by_name, arrays=(numbers, x))
        good = trace.flag is None or by_name[trace.flag]
        return [by_name[at] if good else None for at in trace.outputs]


def _value(op, *rest, known, arrays):
    if op == "load":
        return mpmath.mpf(float(arrays[rest[0]][rest[1]]))
    if op == "const":
        return rest[0] if isinstance(rest[0], bool) else None if isinstance(rest[0], str) else mpmath.mpf(rest[0])
    args = [known[x] for x in rest]
    if op == "where":
        return args[0] if args[0] in (None, TOO_MUCH) else args[1] if args[0] else args[2]
    if any(a is None for a in args):
        return None
    if TOO_MUCH in args or (op in EXPONENTIALS and abs(args[0]) > 1e5):
        return TOO_MUCH
    if op == "pow" and (abs(args[1]) > 1e3 or abs(mpmath.log(abs(args[0]) + 1e-300) * args[1]) > 1e5):
        return TOO_MUCH
    if op == "copysign" and args[1] == 0:
        return TOO_MUCH
    if op in ("fmod", "remainder") and args[1] != 0 and abs(args[0] / args[1]) > 2**150:
        return TOO_MUCH
    if args[0] <= BOUNDS.get(op, -mpmath.inf):  # where mpmath answers infinity
        return None
    try:
        result = FUNCTIONS[op](*args)
    except (ZeroDivisionError, ValueError):
        return None
    return result if mpmath.isfinite(result) and not isinstance(result, mpmath.mpc) else None
