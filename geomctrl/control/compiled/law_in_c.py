"""Export of a compiled law as C functions for a target that calls it once per sample.

    NAME_start(z)                     the initial state of the law; (q, v, z) if it depends on the robot's state
    NAME_step(t, [dt,] q, v, z, tau)  the torque of a sample, and the law's state at the next one
    NAME_command(t, q, v, z, tau, [z_rate, z_next,] signals...)   all results of the law

NAME_step does the same as `simulate(..., control_dt=dt)`: z becomes z_next, if the law has one, and then moves for dt
at the constant rate z_rate, if it has one: z + dt z_rate, or z exp(dt z_rate) on the law's `group`. Only laws with
z_rate take dt. A law without state has neither NAME_start nor z.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.control.contracts import displaced, started
from geomctrl.terms.requested_terms import MEANINGS as OF_TERMS
from geomctrl.tracing.backends import c, c_files
from geomctrl.tracing.backends.c_names import parameter
from geomctrl.tracing.backends.rounding import ROUNDING, has_result, rounded, tolerances
from geomctrl.tracing.tracer import traced

from .law_trace import OF_STATE, State, class_name, parts_of, trial_state
from .symbolic_copies import SymbolicCopies

TEST_CASES, MAX_TRIALS = 4, 64  # states in the test, and attempts to find them
FAILURE = "where there is no result"
MEANINGS = {
    **{name: OF_TERMS[name] for name in ("q", "v", "tau")},
    "t": "time [s]",
    "z": "state of the controller",
    "z_rate": "rate of the controller's state",
    "z_next": "the controller's state after the sample",
}


def write_law(law: Any, path: str | Path, name: str, precision: str) -> tuple[Path, ...]:
    """The three files of a `CompiledLaw`; see `CompiledLaw.to_c`."""
    name, real = c_files.prefix("name", name), c_files.checked_precision(precision)
    robot, export = law._robot, _Export(law, name, real)
    heading = [
        f"{class_name(law.controller)} of {c_files.comment(robot.name)}, in {real} precision.",
        "SI units, radians. Velocity coordinates:",
        *c_files.numbered(robot.dof_names),
    ]
    return c_files.write(path, name, heading, real, export.units())


class _Export:
    """The functions of one law under construction."""

    def __init__(self, law: Any, name: str, real: str):
        self.law, self.controller, self.robot, self.z0 = law, law.controller, law._robot, law._z0
        self.name, self.real = name, real
        self.inputs = [
            c.Parameter(x, size, MEANINGS[x], x == "t") for x, size in zip(law.inputs, law._trace.inputs, strict=True)
        ]
        self.outputs: list[c.Parameter] = []
        for x, size in zip(law.outputs, law._trace.sizes, strict=True):
            state = x in ("tau", *OF_STATE)
            own = x if state else parameter(f"signal_{x}", [y.name for y in self.outputs])
            self.outputs.append(c.Parameter(own, size, MEANINGS[x] if state else f"signal {x!r}"))
        self.parameters = {x.name: x for x in (*self.inputs, *self.outputs)}
        self.dt = c.Parameter("dt", 1, "time to the next sample [s]", True)
        self.moves, self.group = "z_rate" in law.outputs, getattr(law.controller, "group", None)

    def units(self) -> list[c_files.Unit]:
        command = c.Function(f"{self.name}_command", self.law._trace, self.inputs, self.outputs, self.real)
        states = self.states()
        cases = [self.case(state) for state in states]
        units = [c_files.exported(command, "All that the law returns", FAILURE, cases)]
        if self.z0 is not None:
            units.append(self.start())
        if self.moves and self.group is not None:
            units.append(self.advance())
        return [*units, self.step(states[0], cases[0])]

    def states(self) -> list[State]:
        """States at which the law has a result in Python and in C."""
        rng, states = np.random.default_rng(0), []
        for k in range(MAX_TRIALS):
            t, q, v, z = trial_state(self.controller, self.robot, self.z0, rng, k)
            state = (
                float(rounded(np.array(t), self.real)),
                *(x if x is None else rounded(x, self.real) for x in (q, v, z)),
            )
            try:
                self.controller(*state)
            except Exception:
                continue
            if has_result(self.law._trace, [np.ravel(x) for x in state if x is not None]):
                states.append(state)
            if len(states) == TEST_CASES:
                break
        return [*states[1:], states[0]]  # begins with a random state

    def case(self, state: State) -> c.Case:
        inputs = [np.ravel(x) for x in state if x is not None]
        parts = parts_of(self.controller(*state))
        expected = [np.asarray(parts[name], float) for name in self.law.outputs]
        return c.Case(inputs, expected, tolerances(self.law._trace, inputs, expected, self.real))

    # --- the state -----------------------------------------------------------------------------------------------

    def start(self) -> c_files.Unit:
        z = self.parameters["z"]
        if has_robot_state_arguments(self.controller):
            return self.start_of_robot(z)
        numbers = np.ravel(self.z0)
        prototype = f"void {self.name}_start({z.declared(self.real, constant=False)})"
        stores = [f"    z[{k}] = {c.literal(float(x), self.real)};" for k, x in enumerate(numbers)]
        test = [
            "    {",
            f"        {self.real} z[{z.size}];",
            c.constant(self.real, z._replace(name="expected_z"), numbers),
            f"        {self.name}_start(z);",
            "        failed += memcmp(z, expected_z, sizeof z) != 0;",
            "    }",
        ]
        text = c_files.declaration(prototype, "The state that the law begins with", [z])
        return c_files.Unit(text, "\n".join([prototype, "{", *stores, "}"]) + "\n", "\n".join(test))

    def start_of_robot(self, z: c.Parameter) -> c_files.Unit:
        """`start(q0, v0)`, traced."""
        robot, copies = self.robot, SymbolicCopies()
        clone = copies.of(self.controller)
        with copies.used():
            trace = traced(clone.start, (robot.nq,), (robot.nv,), name=f"{class_name(self.controller)}.start").trace
        inputs = [self.parameters["q"], self.parameters["v"]]
        f = c.Function(f"{self.name}_start", trace, inputs, [z], self.real)
        cases = []
        for _, q, v, _ in self.states()[:2]:
            expected = [np.asarray(started(self.controller, robot, q, v), float)]
            cases.append(c.Case([q, v], expected, tolerances(trace, [q, v], expected, self.real)))
        return c_files.exported(
            f, "The state that the law begins with where the robot begins with q, v", FAILURE, cases
        )

    def advance(self) -> c_files.Unit:
        """z exp(x), a function of the file."""
        z = self.parameters["z"]
        x = c.Parameter("x", self.parameters["z_rate"].size, "displacement in the algebra of the group")
        shape = np.shape(self.z0)
        trace = traced(lambda z, x: displaced(self.group, z, x), shape, (x.size,), name="advance").trace
        f = c.Function(f"{self.name}_advance", trace, [z, x], [z._replace(name="moved")], self.real, static=True)
        return c_files.exported(f, "z exp(x)", FAILURE, [])

    # --- the step ------------------------------------------------------------------------------------------------

    def step(self, state: State, case: c.Case) -> c_files.Unit:
        real, inputs = self.real, {x.name: x for x in self.inputs}
        order = [inputs["t"], *([self.dt] if self.moves else []), inputs["q"], inputs["v"]]
        outputs = [*([inputs["z"]] if "z" in inputs else []), self.parameters["tau"]]
        parameters = [*(x.declared(real) for x in order), *(y.declared(real, constant=False) for y in outputs)]
        prototype = f"int {self.name}_step({', '.join(parameters)})"
        own = [f"    {real} {y.name}[{max(y.size, 1)}];" for y in self.outputs if y.name != "tau"]
        names = ["torque" if x.name == "tau" else x.name for x in (*self.inputs, *self.outputs)]
        call = [f"    if (!{self.name}_command({', '.join(names)})) {{", "        return 0;", "    }"]
        n = self.parameters["tau"].size
        body = [*own, f"    {real} torque[{n}];", *call, *self.moved()]
        body.append("    memcpy(tau, torque, sizeof torque);")
        outputs = [
            y._replace(meaning=f"{y.meaning}, advanced to the next sample") if y.name == "z" else y for y in outputs
        ]
        text = c_files.declaration(prototype, f"One sample: the torque{self.advancing()}", [*order, *outputs], FAILURE)
        definition = "\n".join([prototype, "{", *body, "    return 1;", "}"]) + "\n"
        return c_files.Unit(text, definition, self.step_test(state, case, order, outputs))

    def advancing(self) -> str:
        """The update of z as text."""
        start = "z_next" if "z_next" in self.law.outputs else "z"
        if not self.moves:
            return ", and z becomes z_next" if self.z0 is not None else ""
        return (
            f", and z becomes {start} exp(dt z_rate) on its group"
            if self.group
            else f", and z becomes {start} + dt z_rate"
        )

    def moved(self) -> list[str]:
        """Statements that advance z."""
        if self.z0 is None:
            return []
        start = "z_next" if "z_next" in self.law.outputs else "z"
        size = self.parameters["z"].size
        if not self.moves:
            return ["    memcpy(z, z_next, sizeof z_next);"]
        rate = self.parameters["z_rate"].size
        if self.group is None:
            return [f"    for (int k = 0; k < {size}; k++) {{", f"        z[k] = {start}[k] + dt * z_rate[k];", "    }"]
        return [
            f"    for (int k = 0; k < {rate}; k++) {{",
            "        z_rate[k] *= dt;",
            "    }",
            f"    if (!{self.name}_advance({start}, z_rate, z)) {{",
            "        return 0;",
            "    }",
        ]

    def step_test(
        self, state: State, case: c.Case, order: Sequence[c.Parameter], outputs: Sequence[c.Parameter]
    ) -> str:
        """One step from a state, with the tolerance of the command's outputs."""
        t, q, v, z = state
        dt = 0.125  # exact in both precisions, and long enough for a wrong rate to show
        command = self.controller(t, q, v, z)
        tolerances = dict(zip(self.law.outputs, case.tolerances, strict=True))
        expected, allowed = {"tau": np.asarray(command.tau, float)}, {"tau": tolerances["tau"]}
        if z is not None:
            after: Any = z if command.z_next is None else np.asarray(command.z_next, float)
            if command.z_rate is not None:
                after = displaced(self.group, after, dt * np.asarray(command.z_rate, float))
            expected["z"] = np.asarray(after, float)
            off = tolerances.get("z_next", 0.0) + (0.0 if self.group else dt * tolerances.get("z_rate", 0.0))
            sizes = np.abs(np.ravel(after)) + np.abs(np.ravel(z))
            if self.group:
                off, sizes = np.max(off) + dt * tolerances["z_rate"].max(), np.full(z.size, sizes.max())
            allowed["z"] = off + 64.0 * ROUNDING[self.real] * sizes
        values = {"t": t, "dt": dt, "q": q, "v": v}
        lines = [c.constant(self.real, x, np.ravel(values[x.name])) for x in order]
        if z is not None:
            numbers = ", ".join(c.literal(float(x), self.real) for x in z.ravel())
            lines.append(f"        {self.real} z[] = {{{numbers}}};")
        lines.append(f"        {self.real} tau[{self.parameters['tau'].size}];")
        names = ", ".join(x.name for x in (*order, *outputs))
        lines.append(f"        failed += {self.name}_step({names}) != 1;")
        for y in outputs:
            lines.append(c.constant(self.real, y._replace(name=f"expected_{y.name}"), expected[y.name]))
            lines.append(c.constant("double", y._replace(name=f"tolerance_{y.name}"), allowed[y.name]))
            label = f'"{self.name}_step, {y.name}"'
            lines.append(
                f"        failed += differs({label}, {y.name}, expected_{y.name}, tolerance_{y.name}, {y.size});"
            )
        return "\n".join(["    {", *lines, "    }"])


def has_robot_state_arguments(controller: Any) -> bool:
    try:  # only called for a law that has a state, and so `start`
        inspect.signature(controller.start).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True
