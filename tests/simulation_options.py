"""Flat arguments of simulations, as tests write them."""

from dataclasses import fields

import geomctrl as gc


def _gathered(name, kind, arguments):
    own = {x.name for x in fields(kind)} & arguments.keys()
    if not own:
        return arguments
    assert name not in arguments, f"both {name} and {own}"
    return {k: x for k, x in arguments.items() if k not in own} | {name: kind(**{k: arguments[k] for k in own})}


def grouped(**arguments):
    """Arguments of `simulate` and `simulate_many`, with those of SimulationOptions gathered in `options`."""
    tolerances = {k: arguments.pop(k) for k in ("rtol", "atol") if k in arguments}
    if tolerances:
        arguments["method"] = gc.integrators.Adaptive(arguments.get("method", "MK54"), **tolerances)
    return _gathered("options", gc.SimulationOptions, arguments)


def flat(function):
    """`simulate` or `simulate_many` with flat arguments."""
    return lambda *args, **arguments: function(*args, **grouped(**arguments))


def grouped_sweep(**arguments):
    """Arguments of `sweep`, with those of SimulationOptions and SweepExecution gathered."""
    return _gathered("execution", gc.SweepExecution, grouped(**arguments))
