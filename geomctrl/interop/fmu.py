"""Compiled laws and plants as FMUs: FMI 3.0 co-simulation, with C sources and a binary for this platform.

An FMU is a zip file with a description of the variables, the C99 code that geomctrl exports, and a library compiled
from it. The target needs no Python. A law is sampled as with `control_dt`: a step of length h computes tau from q and v
and moves the law's state to the next sample. A plant takes the command tau and integrates q and v over the step.
"""

from __future__ import annotations

import hashlib
import html
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, one_state, optional_package, path_of
from geomctrl.control.compiled.law_in_c import has_robot_state_arguments
from geomctrl.control.compiled.plant_in_c import require_exportable, write_plant
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.files import whole
from geomctrl.mechanism.states import one_configuration
from geomctrl.robot import Robot
from geomctrl.tracing.backends import c, c_files
from geomctrl.tracing.untraceable import UntraceableError

TEMPLATE = Path(__file__).with_name("co_simulation.c")
OLDEST_VERSION = "0.3.20"  # of fmpy, which has the headers of FMI 3.0
PLATFORMS = {  # platform.system(): its name in FMI, and the suffix of libraries
    "Linux": ("linux", ".so"),
    "Darwin": ("darwin", ".dylib"),
    "Windows": ("windows", ".dll"),
}
PROCESSORS = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
COMPILERS = "gcc", "clang", "cc"
FLAGS, SHARED = ["-std=c99", "-O2", "-ffp-contract=off"], ["-fPIC", "-shared", "-fvisibility=hidden"]
CREATED = (1980, 1, 1, 0, 0, 0)  # the date of all files in the archive, so that the same model gives the same archive


class Variable(NamedTuple):
    """A variable of the model description. start: None if the FMU calculates it; settable: a C enum."""

    name: str
    shape: tuple[int, ...]
    causality: str
    variability: str
    settable: str
    start: np.ndarray | None
    meaning: str

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


class Model(NamedTuple):
    """What is written. functions: the C functions `initialize` and `step`; write_c: writes the exported code."""

    title: str
    name: str
    variables: list[Variable]
    functions: str
    any_step: bool
    write_c: Callable[[Path], Sequence[Path]]


def law_to_fmu(law: Any, path: Any, q0: ArrayLike | None, v0: ArrayLike | None, name: str | None) -> Path:
    """Write a `CompiledLaw`; see `CompiledLaw.to_fmu`."""
    path, name = _checked_names(path, name)
    robot, z = law._robot, law.start(q0, v0)
    variables = _state_of(robot, q0, v0, "input", "ALWAYS")
    if z is not None:
        variables.append(Variable("z", z.shape, "local", "discrete", "NEVER", None, "state of the law"))
    joints = f"torques or forces of {', '.join(robot.dof_names)} [N m, N]"
    meanings = {"tau": joints, "z_rate": "rate of z", "z_next": "z after the sample"}
    for key, shape in law.outputs.items():
        causality = "local" if key in ("z_rate", "z_next") else "output"
        label = key if key in meanings else f"signal.{' '.join(key.split())}"
        meaning = meanings.get(key, f"signal {key!r}")
        variables.append(Variable(label, shape, causality, "discrete", "NEVER", None, meaning))
    x = _places(variables)
    state = [] if z is None else [x["z"]]
    of_robot = [x["q"], x["v"]] if z is not None and has_robot_state_arguments(law.uncompiled) else []
    start = [] if z is None else [f"    {_call(f'{name}_start', [*of_robot, *state])};"]
    outputs = _call(f"{name}_command", ["x[0]", *list(x.values())[1:]])
    times = ["x[0]", *(["h"] if "z_rate" in law.outputs else [])]
    step = _call(f"{name}_step", [*times, x["q"], x["v"], *state, "tau"])
    functions = _function("initialize(double *x)", [*start, f"    return {outputs};"])
    body = ["    (void)h;", f"    double tau[{robot.nv}];", f"    return {outputs} && {step};"]
    functions += _function("step(double *x, double h)", body)
    title = f"{type(law.uncompiled).__name__} of {robot.name}"
    any_step = z is None or "z_rate" in law.outputs
    return _write(path, Model(title, name, variables, functions, any_step, lambda folder: law.to_c(folder, name)))


def plant_to_fmu(
    plant: Plant, path: Any, q0: ArrayLike | None, v0: ArrayLike | None, dt: float, name: str | None
) -> Path:
    """Write a plant; see `Plant.to_fmu`."""
    path, name = _checked_names(path, name)
    dt = number("dt", dt, "a positive number", lambda x: x > 0.0)
    require_exportable(plant)
    robot, inputs = plant.robot, plant.inputs
    meaning = "command of the actuators" if plant.actuators else "torques or forces of the joints [N m, N]"
    states = _state_of(robot, q0, v0, "output", "BEFORE_THE_FIRST_STEP")
    variables = [states[0], Variable("tau", (inputs,), "input", "continuous", "ALWAYS", np.zeros(inputs), meaning)]
    variables += states[1:]
    x0 = plant._state_at_start(robot.neutral(), np.zeros(robot.nv))
    if x0 is not None:
        meaning = "state of actuators, friction and subclass"
        variables.append(Variable("x", x0.shape, "local", "continuous", "NEVER", None, meaning))
    x = _places(variables)
    begin = "1" if x0 is None else _call(f"{name}_start", [x["q"], x["v"], x["x"]])
    functions = _function("initialize(double *x)", ["    (void)x;", f"    return {begin};"])
    functions += _function(
        "step(double *x, double h)",
        [
            f"    const double steps = ceil(h / {c.literal(dt, 'double')} - 1e-6), t = x[0];",
            "    int good = 1;",
            "    for (double k = 0.0; good && k < steps; k += 1.0) {",
            f"        good = {_call(f'{name}_step', ['t + k * (h / steps)', 'h / steps', x['tau'], x['q']])};",
            "    }",
            "    return good;",
        ],
    )
    title = f"{type(plant).__name__} of {robot.name}"
    return _write(path, Model(title, name, variables, functions, True, lambda folder: write_plant(plant, folder, name)))


def _checked_names(path: Any, name: str | None) -> tuple[Path, str]:
    path = path_of("path", path)
    if path.suffix != ".fmu":
        raise ArgumentError(f"path: expected a file name that ends with .fmu, got {str(path)!r}")
    return path, c_files.prefix("name", c_files.prefix_of(path.stem, "model") if name is None else name)


def _state_of(robot: Robot, q0: Any, v0: Any, causality: str, settable: str) -> list[Variable]:
    """The variables time, q and v."""
    q = robot.neutral() if q0 is None else one_configuration(robot, "q0", q0)
    v = np.zeros(robot.nv) if v0 is None else one_state("v0", v0, robot.nv)
    joints = ", ".join(robot.dof_names)
    return [
        Variable("time", (), "independent", "continuous", "NEVER", None, "time [s]"),
        Variable("q", q.shape, causality, "continuous", settable, q, f"configuration of {joints} [rad, m]"),
        Variable("v", v.shape, causality, "continuous", settable, v, f"velocity of {joints} [rad/s, m/s]"),
    ]


# --- C code ------------------------------------------------------------------------------------------------------


def _places(variables: Iterable[Variable]) -> dict[str, str]:
    """The address of each variable in C."""
    variables = list(variables)
    return {y.name: f"x + {k}" for y, k in zip(variables, _first(variables))}


def _first(variables: Sequence[Variable]) -> list[int]:
    return np.cumsum([0, *(y.size for y in variables)]).tolist()[:-1]


def _call(function: str, arguments: Iterable[str]) -> str:
    return f"{function}({', '.join(arguments)})"


def _function(head: str, body: Sequence[str]) -> str:
    return "\n".join([f"static int {head}", "{", *body, "}", "", ""])


def _numbers(x: Any, separator: str = ", ") -> str:
    return separator.join(repr(float(y)) for y in np.ravel(x))


def _wrapper(model: Model, header: str, token: str, standard: Path) -> str:
    """The C functions of FMI; those that the model does not have return an error."""
    y = model.variables
    start = np.concatenate([np.zeros(x.size) if x.start is None else x.start.ravel() for x in y])
    values = {
        "HEADER": header,
        "MODEL": model.functions,
        "TOKEN": token,
        "NUMBERS": str(start.size),
        "VARIABLES": str(len(y)),
        "FIRST": ", ".join(map(str, _first(y))),
        "SIZE": ", ".join(str(x.size) for x in y),
        "SETTABLE": ", ".join(x.settable for x in y),
        "START": _numbers(start),
    }
    text = re.sub(r"@(\w+)@", lambda match: values[match[1]], TEMPLATE.read_text(encoding="utf-8"))
    types = (standard / "fmi3FunctionTypes.h").read_text(encoding="utf-8")
    declared = re.findall(r"typedef\s+(fmi3Status|fmi3Instance)\s+(fmi3\w+)TYPE\s*\(([^)]*)\);", types)
    results = {"fmi3Status": "fmi3Error", "fmi3Instance": "NULL"}
    others = [x for x in declared if not re.search(rf"\b{x[1]}\([^;{{]*\)\s*{{", text)]
    return text + "".join(
        f"\n{kind} {name}({parameters}) {{ return {results[kind]}; }}\n" for kind, name, parameters in others
    )


def _compiled(folder: Path, name: str, files: Sequence[str], test: Sequence[str], suffix: str) -> Path:
    """Compile the library, and compare the exported functions with Python by running their test program."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise GeomctrlError(f"to_fmu needs a C compiler: none of {', '.join(COMPILERS)} is on the path")
    library, program = folder / f"{name}{suffix}", folder / f"{name}_test.exe"
    for output, sources, more in ((library, files, SHARED), (program, test, [])):
        command = [compiler, *FLAGS, *more, "-o", output.name, *sources, "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise GeomctrlError(f"to_fmu: {compiler} failed: {done.stderr:.1000}")
    done = subprocess.run([program], capture_output=True, text=True)
    if done.returncode:
        raise UntraceableError(
            "to_fmu: the compiled code differs from Python. The model draws random numbers, depends on more than its"
            " arguments, or has a result where C has none, as with an exception that it catches, or np.argsort of equal"
            f" numbers: {' '.join(done.stdout.split()):.400}"
        )
    return library


def _platform() -> tuple[str, str]:
    """The folder of binaries for this platform, and the suffix of libraries."""
    processor, system = PROCESSORS.get(platform.machine().lower()), PLATFORMS.get(platform.system())
    if processor is None or system is None or sys.maxsize < 2**32:
        supported = f"{', '.join(PLATFORMS)} on {', '.join(sorted({*PROCESSORS.values()}))}"
        raise GeomctrlError(f"to_fmu compiles for {supported}, got {platform.system()} on {platform.machine()}")
    return f"{processor}-{system[0]}", system[1]


# --- the archive -------------------------------------------------------------------------------------------------


def _write(path: Path, model: Model) -> Path:
    fmpy = optional_package("to_fmu", "fmpy", "fmu", OLDEST_VERSION)
    standard, (binaries, suffix) = Path(str(fmpy.__file__)).parent / "c-code", _platform()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        header, source, test = model.write_c(folder)
        code = "".join([source.read_text(encoding="utf-8"), *map(repr, model.variables), model.functions, model.title])
        token = hashlib.sha256(code.encode()).hexdigest()[:32]
        wrapper = folder / f"{model.name}_fmu.c"
        wrapper.write_text(_wrapper(model, header.name, token, standard), encoding="utf-8")
        for name in ("fmi3Functions.h", "fmi3FunctionTypes.h", "fmi3PlatformTypes.h"):
            shutil.copy(standard / name, folder / name)
        files = [source.name, wrapper.name]
        library = _compiled(folder, model.name, files, [source.name, test.name], suffix)
        test.unlink()  # it has a main function, unlike the sources of an FMU
        contents = {
            "modelDescription.xml": _description(model, token).encode(),
            "sources/buildDescription.xml": _build(model.name, files).encode(),
            f"binaries/{binaries}/{library.name}": library.read_bytes(),
        }
        contents |= {f"sources/{x.name}": x.read_bytes() for x in sorted(folder.glob("*.[ch]"))}
    with whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, data in contents.items():
            archive.writestr(zipfile.ZipInfo(name, CREATED), data, zipfile.ZIP_DEFLATED)
    return path


def _xml(tag: str, attributes: str, body: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{tag} {attributes}>\n{body}</{tag}>\n'


def _quoted(text: str) -> str:
    return f'"{html.escape(text)}"'


def _build(name: str, files: Sequence[str]) -> str:
    sources = "".join(f'<SourceFile name="{file}"/>' for file in files)
    body = f'<SourceFileSet language="C99">{sources}</SourceFileSet>'
    body = f'<BuildConfiguration modelIdentifier="{name}">{body}</BuildConfiguration>\n'
    return _xml("fmiBuildDescription", 'fmiVersion="3.0"', body)


def _description(model: Model, token: str) -> str:
    shown = {k: x for k, x in enumerate(model.variables) if x.size}  # FMI has no empty arrays
    lines = [_variable(k, x) for k, x in shown.items()]
    outputs = [k for k, x in shown.items() if x.causality == "output"]
    structure = [f'<Output valueReference="{k}" dependencies=""/>' for k in outputs]  # a step lies between
    calculated = [k for k in outputs if model.variables[k].start is None]
    structure += [f'<InitialUnknown valueReference="{k}"/>' for k in calculated]
    abilities = f'canHandleVariableCommunicationStepSize="{str(model.any_step).lower()}"'
    abilities += ' canGetAndSetFMUState="true" canSerializeFMUState="true"'
    body = [f'<CoSimulation modelIdentifier="{model.name}" {abilities}/>', '<DefaultExperiment stepSize="0.001"/>']
    body += ["<ModelVariables>", *lines, "</ModelVariables>", "<ModelStructure>", *structure, "</ModelStructure>", ""]
    title = " ".join(model.title.split())
    attributes = f'fmiVersion="3.0" modelName={_quoted(title)} instantiationToken="{token}" generationTool="geomctrl"'
    return _xml("fmiModelDescription", attributes, "\n".join(body))


def _variable(k: int, x: Variable) -> str:
    text = f'name={_quoted(x.name)} valueReference="{k}" causality="{x.causality}" variability="{x.variability}"'
    text += f" description={_quoted(' '.join(x.meaning.split()))}"
    if x.causality in ("output", "local"):
        text += f' initial="{"calculated" if x.start is None else "exact"}"'
    if x.start is not None:
        text += f' start="{_numbers(x.start, " ")}"'
    return f"<Float64 {text}>{''.join(f'<Dimension start={_quoted(str(n))}/>' for n in x.shape)}</Float64>"
