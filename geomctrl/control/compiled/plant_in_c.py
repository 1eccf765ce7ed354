"""Export of a plant as C functions: its rate of change, and a step of the integrator that `simulate` uses.

    NAME_start(q, v, x)             the state of actuators, friction and subclass, if the plant has one
    NAME_rate(t, q, v, [x,] tau, rate)   (v, vdot, x') under the command tau
    NAME_step(t, h, tau, y)         one step of MK4 from y = (q, v, x) under a constant command

Joints with several degrees of freedom move on their group: NAME_move is q exp(u), and NAME_pull is dexp^-1_{-u} k.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.integrators.tableaus import Tableau, method
from geomctrl.kernels.exponentials import LARGEST_ANGLE
from geomctrl.lie.contract import rotation
from geomctrl.mechanism.configuration import ConfigurationGroup, random_configuration
from geomctrl.terms.requested_terms import MEANINGS
from geomctrl.tracing.backends import c, c_files
from geomctrl.tracing.backends.rounding import tolerances
from geomctrl.tracing.requirements import require
from geomctrl.tracing.tracer import traced
from geomctrl.tracing.traces import Trace

from .law_in_c import FAILURE, MAX_TRIALS, TEST_CASES
from .symbolic_copies import SymbolicCopies
from .trace_parts import one_number, rate_of

STEP = """\
int {name}_step(double t, double h, const double tau[{inputs}], double y[{ny}])
{{
    static const double time[] = {{{times}}}, weight[][{stages}] = {{{weights}}};
    double slope[{stages}][{dim}], Y[{ny}], u[{dim}];
    for (int i = 0; i <= {stages}; i++) {{
        memset(u, 0, sizeof u);
        for (int j = 0; j < i; j++) {{
            for (int k = 0; k < {dim}; k++) {{
                u[k] += h * weight[i][j] * slope[j][k];
            }}
        }}
        if ({group} && i > 0) {{
{move}
        }} else {{
            memcpy(Y, y, {nq} * sizeof *Y);
        }}
        for (int k = 0; k < {ny}; k++) {{
            Y[k] = k < {first} ? Y[k] : y[k] + u[k + {dim} - {ny}];
        }}
        if (i < {stages}) {{
            if (!{name}_rate(t + h * time[i], Y, Y + {nq}, {state}tau, slope[i])) {{
                return 0;
            }}
{pull}
        }}
    }}
    memcpy(y, Y, sizeof Y);
    return 1;
}}
"""
MOVE = """\
            if (!{name}_move(y, u, Y)) {{
                return 0;
            }}"""
PULL = """\
            if (i > 0 && !{name}_pull(u, slope[i], slope[i])) {{
                return 0;
            }}"""


def write_plant(plant: Plant, path: Path, name: str) -> tuple[Path, ...]:
    """Write NAME.h, NAME.c and NAME_test.c of a plant, which `require_exportable` accepts."""
    robot = plant.robot
    heading = [f"{type(plant).__name__} of {c_files.comment(robot.name)}.", "SI units, radians. Velocity coordinates:"]
    return c_files.write(path, name, [*heading, *c_files.numbered(robot.dof_names)], "double", _units(plant, name))


def require_exportable(plant: Plant) -> None:
    """Raise ArgumentError that names what C code of a plant does not have."""
    unsupported = {
        "changes": plant.changes,
        "f_ext that switches": getattr(plant.f_ext, "switches", ()),
        "sensors": plant.sensors,
        "actuators that act at samples": plant.sampled_actuators,
    }
    if names := [name for name, parts in unsupported.items() if parts]:
        raise ArgumentError(f"plant: expected one without {', '.join(names)}, which C code of a plant does not have")


def _units(plant: Plant, name: str) -> list[c_files.Unit]:
    robot, copies = plant.robot, SymbolicCopies()
    x0 = plant._state_at_start(robot.neutral(), np.zeros(robot.nv))
    nq, n, nx = robot.nq, robot.nv, 0 if x0 is None else x0.size
    q, v, tau = (c.Parameter(key, size, MEANINGS[key]) for key, size in (("q", nq), ("v", n), ("tau", plant.inputs)))
    tau = tau._replace(meaning="command" if plant.actuators else tau.meaning)
    t, x = c.Parameter("t", 1, "time [s]", True), c.Parameter("x", nx, "state of actuators, friction and subclass")
    states = [x] if nx else []
    rate = c.Parameter("rate", 2 * n + nx, "v, its rate, and the rate of x")
    clone = copies.of(plant, "plant")
    owner = type(plant).__name__
    units = []
    with copies.used():
        if nx:
            start = traced(clone._state_at_start, (nq,), (n,), name=f"{owner}.start").trace
            units.append(_unit(f"{name}_start", "The initial state x", start, [q, v], [x]))
        shapes = [(y.size,) for y in (q, v, *states, tau)]
        field = traced(
            lambda t, q, v, *rest: rate_of(clone, t, q, v, rest[0] if nx else None, rest[-1], 2 * n + nx + 1)[:-1],
            *((), *shapes),
            name=f"{owner}.rate",
        ).trace
    cases = [_case(field, plant, x0, np.random.default_rng(k)) for k in range(TEST_CASES)]
    units.append(_unit(f"{name}_rate", "The rate of (q, v, x)", field, [t, q, v, *states, tau], [rate], cases))
    on_group = nq != n
    if on_group:
        units += _on_group(ConfigurationGroup(robot), name, q)
    return [*units, _step(name, nq, n, nx, plant.inputs, on_group)]


def _on_group(group: Any, name: str, q: c.Parameter) -> list[c_files.Unit]:
    """q exp(u), and dexp^-1_{-u} k with the conditions of the integrator."""
    u, k = c.Parameter("u", group.dim, "increment"), c.Parameter("k", group.dim, "velocity")

    def pulled(u: Any, k: Any) -> Any:
        require(one_number(rotation(group, u)) < LARGEST_ANGLE)
        return group.dexp_inv_mul(-u, k)

    move = traced(group.advance, (q.size,), (u.size,), name="integrate").trace
    pull = traced(pulled, (u.size,), (u.size,), name="dexp_inv").trace
    moved, back = q._replace(name="moved"), k._replace(name="pulled")
    return [
        _unit(f"{name}_move", "q exp(u)", move, [q, u], [moved]),
        _unit(f"{name}_pull", "dexp^-1 of -u, times k", pull, [u, k], [back]),
    ]


def _unit(
    name: str, summary: str, trace: Trace, inputs: list[c.Parameter], outputs: list[c.Parameter], cases: Any = ()
) -> c_files.Unit:
    return c_files.exported(c.Function(name, trace, inputs, outputs), summary, FAILURE, cases)


def _case(trace: Trace, plant: Plant, x0: np.ndarray | None, rng: np.random.Generator) -> c.Case:
    """A random state at which Python has a result, with that result."""
    robot, error = plant.robot, None
    for _ in range(MAX_TRIALS):
        q, v, tau = random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=plant.inputs)
        t, x = 10.0 * rng.uniform(), None if x0 is None else x0 + 0.1 * (1.0 + np.abs(x0)) * rng.normal(size=x0.shape)
        states = [] if x is None else [x]
        rate = np.zeros(2 * robot.nv + (0 if x is None else x.size) + 1)
        try:
            plant.rate(t, q, v, tau, rate, *states)
        except Exception as raised:
            error = raised
            continue
        inputs, expected = [np.array([t]), q, v, *states, tau], [rate[:-1]]
        return c.Case(inputs, expected, tolerances(trace, inputs, expected, "double"))
    raise ArgumentError(f"plant: it raises at {MAX_TRIALS} states, {type(error).__name__}: {error!s:.200}") from error


def _step(name: str, nq: int, n: int, nx: int, inputs: int, on_group: bool) -> c_files.Unit:
    tableau: Tableau = method("MK4")
    rows = [*tableau.A_classical, tableau.b_classical]
    weights = ", ".join("{" + ", ".join(c.literal(float(x), "double") for x in row) + "}" for row in rows)
    times = ", ".join(c.literal(float(x), "double") for x in tableau.c)
    definition = STEP.format(
        name=name,
        inputs=inputs,
        nq=nq,
        ny=nq + n + nx,
        dim=2 * n + nx,
        stages=len(tableau.c),
        times=times,
        weights=weights,
        group=int(on_group),
        first=nq if on_group else 0,
        state=f"Y + {nq + n}, " if nx else "",
        move=MOVE.format(name=name) if on_group else "            return 0;",
        pull=PULL.format(name=name) if on_group else "",
    )
    parameters = [
        c.Parameter("t", 1, "time [s]", True),
        c.Parameter("h", 1, "length of the step [s]", True),
        c.Parameter("tau", inputs, "command, constant during the step"),
        c.Parameter("y", nq + n + nx, "(q, v, x), moved on to the end of the step"),
    ]
    prototype = definition.partition("\n")[0]
    return c_files.Unit(c_files.declaration(prototype, "One step of MK4", parameters, FAILURE), definition, "")
