"""Options of simulations, and flat arguments, as tests write them."""

from dataclasses import fields

import numpy as np

import geomctrl as gc

IN_PYTHON, COMPILED = gc.SimulationOptions(compiled=False), gc.SimulationOptions(compiled=True)


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


flat_simulate = flat(gc.simulate)


def both_ways(*arguments, **options):
    """The compiled run and the one in Python, with flat options."""
    return [flat_simulate(*arguments, **options, compiled=compiled) for compiled in (True, False)]


def run_both_ways(*arguments, names=("q", "v", "tau", "z"), rtol=1e-9, atol=1e-9, **options):
    """The compiled run, which is compared with the one in Python."""
    runs = both_ways(*arguments, **options)
    for name in names:
        compiled, python = (getattr(run, name) for run in runs)
        if python is not None:
            np.testing.assert_allclose(compiled, python, rtol=rtol, atol=atol, err_msg=name)
    return runs[0]


def grouped_sweep(**arguments):
    """Arguments of `sweep`, with those of SimulationOptions and SweepExecution gathered."""
    return _gathered("execution", gc.SweepExecution, grouped(**arguments))
