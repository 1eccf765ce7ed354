"""Design a motion from which a robot's inertial and friction parameters can be identified, and that the robot can run.

The motion respects position, velocity, acceleration and torque limits at all times. It stays above the floor, out of
boxes and clear of the robot itself, and begins and ends at rest in the same posture. The robot is approximated by
capsules along its links: check the picture, and try the motion slowly first. Writes to --out:

- NAME.csv (t, q1, ..., v1, ..., a1, ...), NAME.yaml and NAME.json (ROS 2 trajectory_msgs/JointTrajectory), NAME.h
  (C arrays)

- NAME.txt (the printed report, and all predicted intervals), NAME_parameters.csv, NAME.png

**Exit status**: 0 written; 1 no motion fits: the message says which limit is exceeded and by how much; 2 invalid
arguments.

**Examples**

- `geomctrl excite panda --seconds 10`

- `geomctrl excite ur10 --seconds 12 --floor -0.01 --keep-out 0.5,-1,0,0.7,1,0.8 --objective condition`

- `geomctrl excite panda --velocity 1 --acceleration 4 --jerk 50 --rotor --repeats 3 --rate 1000`

- `geomctrl excite scara --velocity 2 --floor none --noise 0.5 --out out/scara`
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token
from rich.table import Table

from geomctrl.arguments import count, number
from geomctrl.errors import ArgumentError
from geomctrl.models.io.urdf_geometry import collision_capsules
from geomctrl.tracing.backends.c_files import prefix

from .options import RobotArgument, UrdfOptions, as_names, as_numbers, flag, numbers, option, per_joint
from .terminal import FAILED, SaveResult, compiling, print_error, report_written, stdout_console

MAX_ROWS = 8  # parameters that are shown
FRICTION = ("viscous", "coulomb", "offset")


def _floor(text: str) -> float | None:
    try:
        return None if text.strip().lower() == "none" else float(text)
    except ValueError:
        raise ValueError(f"expected one number or none, got {text!r}") from None


def _boxes(_type: Any, tokens: Sequence[Token]) -> list[list[float]]:
    return [as_numbers(token.value) for token in tokens]


def _kinds(text: str) -> list[str]:
    kinds = [] if text.strip() == "none" else as_names(text)
    for kind in kinds:
        if kind not in FRICTION:
            raise ValueError(f"expected some of {', '.join(FRICTION)}, or none, got {kind!r}")
    return kinds


@Parameter(name="*", group=Group("Motion", sort_key=1))
@dataclass(frozen=True)
class MotionOptions:
    """Options for the motion."""

    duration: Annotated[float, Parameter(name="--seconds", help="Duration of one run [s].")] = 10.0
    terms: Annotated[int, Parameter(help="Harmonics of 1/seconds per joint.")] = 5
    q0: Annotated[
        list[float] | None, numbers("Posture at the centre of the motion [default: one far from limits].", name="--q0")
    ] = None
    objective: Annotated[
        Literal["log_det", "condition"],
        Parameter(help="Minimise the volume of the parameters' confidence ellipsoid, or the condition number."),
    ] = "log_det"
    starts: Annotated[int, Parameter(help="Number of random motions that are optimised, on all cores.")] = 4
    compare: Annotated[int, Parameter(help="Number of random motions within the same limits to compare with.")] = 200
    iterations: Annotated[int, Parameter(help="Iterations of each optimisation.")] = 120
    seed: Annotated[int, Parameter(help="Seed of the random motions.")] = 0


@Parameter(name="*", group=Group("Limits (one number, or one per joint: 2,2,1.5)", sort_key=2))
@dataclass(frozen=True)
class LimitOptions:
    """Options for the limits."""

    lower: Annotated[Any, per_joint("Positions [rad, m] [default: the robot's, -pi where none].")] = None
    upper: Annotated[Any, per_joint("Positions [rad, m] [default: the robot's, pi where none].")] = None
    velocity: Annotated[Any, per_joint("Velocities [rad/s, m/s] [default: the robot's].")] = None
    acceleration: Annotated[Any, per_joint("Accelerations [rad/s^2, m/s^2] [default: velocity / 0.25 s].")] = None
    jerk: Annotated[Any, per_joint("Jerks [rad/s^3, m/s^3] [default: none].")] = None
    effort: Annotated[Any, per_joint("Torques and forces [N m, N] [default: the robot's].")] = None
    torque_margin: Annotated[
        float, Parameter(help="Fraction of the effort limits kept as a reserve for model errors.")
    ] = 0.2


@Parameter(name="*", group=Group("Surroundings", sort_key=3))
@dataclass(frozen=True)
class SurroundingsOptions:
    """Options for obstacles: floor, boxes, self-collision."""

    floor: Annotated[
        Any,
        option(
            _floor, "Height of the floor in the base's axes [m], or none [default: 0].", metavar="Z",
            show_default=False,
        ),
    ] = "default"  # fmt: skip
    keep_out: Annotated[
        list[Any],
        Parameter(
            metavar="BOX", help="Box to keep out of: corners x0,y0,z0,x1,y1,z1 [m]. Repeat.", show_default=False,
            converter=_boxes,
            allow_leading_hyphen=True,
        ),
    ] = ()  # fmt: skip  # pyright: ignore[reportAssignmentType]
    clearance: Annotated[
        float | None,
        Parameter(
            help="Minimum distance [m] of the links' surfaces from obstacles, and from links that are not on the same"
            " joint [default: 0.02]."
        ),
    ] = None
    radius: Annotated[
        float | None, Parameter(help="Radius of the links' capsules [m] [default: 5 % of the chain's length].")
    ] = None
    self_collision: Annotated[bool, Parameter(help="Avoid collisions between links.")] = True
    collisions: Annotated[
        Literal["auto", "links", "file"],
        Parameter(
            help="Capsules between joints (links), or of the URDF's spheres, cylinders and boxes (file); auto: file for"
            " links that have some."
        ),
    ] = "auto"
    surroundings: Annotated[
        Path | None,
        Parameter(
            metavar="FILE",
            help="TOML file: floor, clearance, radius, self_collision, keep_out, \\[[capsule]].",
        ),
    ] = None

    def of(self, source: str, robot: Any) -> tuple[Any, tuple[str, ...]]:
        """Return (`Surroundings`, notes for the user)."""
        from geomctrl.identification.excitation import Surroundings, load_surroundings
        from geomctrl.models.io.model_file import file_format

        around = Surroundings() if self.surroundings is None else load_surroundings(self.surroundings, robot)
        changes: dict[str, Any] = {} if self.self_collision else {"self_collision": False}
        if self.floor != "default":
            changes["floor"] = self.floor
        if self.keep_out:
            changes["keep_out"] = (*around.keep_out, *self.keep_out)
        changes |= {k: x for k in ("clearance", "radius") if (x := getattr(self, k)) is not None}
        around = replace(around, **changes)
        is_urdf = file_format(source) == "urdf"
        if self.collisions == "file" and not is_urdf:
            raise ArgumentError(f"--collisions file: for URDF files, not for {source!r}")
        if self.collisions == "links" or not is_urdf or around.capsules is not None:
            return around, ()
        capsules, without = collision_capsules(Path(source), robot, radius=around.radius)
        note = f"no spheres, cylinders or boxes for {', '.join(without)}: capsules between joints"
        return replace(around, capsules=capsules), (note,) if without else ()


@Parameter(name="*", group=Group("Parameters to identify", sort_key=4))
@dataclass(frozen=True)
class ParameterOptions:
    """Options for the model whose parameters are to be identified, and for the noise of its torques."""

    friction: Annotated[
        list[str],
        option(
            _kinds, "Friction at every joint: viscous, coulomb, offset; none.", metavar="LIST", show_default=",".join
        ),
    ] = FRICTION  # type: ignore[assignment]
    rotor: Annotated[bool, flag("Include motor (rotor) inertias.")] = False
    smoothing: Annotated[float, Parameter(help="Speed [rad/s] over which Coulomb friction changes its sign.")] = 0.05
    noise: Annotated[
        Any, per_joint("Standard deviation of torque samples [N m, N] [default: 1 % of effort limits].")
    ] = None
    noise_rate: Annotated[float, Parameter(help="Independent torque samples per second [Hz].")] = 100.0

    def model(self, robot: Any) -> Any:
        from geomctrl.identification import RegressorModel

        kinds = {kind: kind in self.friction for kind in FRICTION}
        return RegressorModel(robot, **kinds, rotor=self.rotor, smoothing=self.smoothing)  # pyright: ignore[reportArgumentType]


@Parameter(name="*", group=Group("Output", sort_key=5))
@dataclass(frozen=True)
class FileOptions:
    """Options for the files. They are checked early, because a design takes long."""

    out: Annotated[Path, Parameter(help="Folder for the files.")] = Path("out/excite")
    name: Annotated[str, Parameter(help="Name of the files and of the C arrays.")] = "excitation"
    rate: Annotated[float, Parameter(help="Samples per second in the files [Hz].")] = 100.0
    repeats: Annotated[int, Parameter(help="Times the files repeat the motion, without a pause.")] = 1
    plots: Annotated[bool, Parameter(help="Draw the picture.")] = True

    def __post_init__(self):
        prefix("--name", self.name)
        count("--repeats", self.repeats, 1)
        number("--rate", self.rate, "a rate > 0", lambda x: x > 0.0)


def excite(
    robot: RobotArgument,
    /,
    *,
    motion: MotionOptions = MotionOptions(),
    limits: LimitOptions = LimitOptions(),
    surroundings: SurroundingsOptions = SurroundingsOptions(),
    parameters: ParameterOptions = ParameterOptions(),
    files: FileOptions = FileOptions(),
    urdf: UrdfOptions = UrdfOptions(),
) -> int | None:
    from geomctrl.identification.errors import ExcitationError
    from geomctrl.identification.excitation import MotionLimits, MotionSearch

    console = stdout_console()
    nominal = urdf.load(robot)
    motion_limits = MotionLimits(**asdict(limits))
    motion_limits.of(nominal)  # raises for invalid limits before anything is compiled
    model = parameters.model(nominal)
    around, notes = surroundings.of(robot, nominal)
    for line in notes:
        console.print(f"note: {line}", soft_wrap=True)
    search = MotionSearch(motion.compare, motion.starts, iterations=motion.iterations, seed=motion.seed)
    options = {
        "duration": motion.duration,
        "terms": motion.terms,
        "objective": motion.objective,
        "q0": motion.q0,
        "limits": motion_limits,
        "surroundings": around,
        "noise": parameters.noise,
        "rate": parameters.noise_rate,
    }
    try:
        excitation = _designed(console, model, search, options)
    except ExcitationError as error:
        print_error(str(error))
        return FAILED
    save = partial(excitation.save, name=files.name, rate=files.rate, repeats=files.repeats, plots=files.plots)
    with console.status("writing"):
        saved, out = SaveResult(partial(save, files.out)), files.out
        if saved.problem is not None:  # the search took minutes: keep its motion elsewhere
            out = Path(tempfile.mkdtemp(prefix="geomctrl-"))
            saved.paths = SaveResult(partial(save, out)).paths
    _show(console, excitation)
    report_written(console, saved.paths, out)
    return saved.status(None)


def _designed(console: Any, model: Any, search: Any, options: dict[str, Any]) -> Any:
    import numpy as np

    from geomctrl.identification.excitation import optimize

    robot = model.robot
    with compiling(console, "20 s"):
        model.regressor(robot.neutral()[None], *np.zeros((2, 1, robot.nv)))
    with console.status(f"comparing {search.compare} random motions, optimising {search.starts}"):
        return optimize(model, search=search, **options)


def _show(console: Any, excitation: Any) -> None:

    robot = excitation.model.robot
    console.print(excitation.text(), soft_wrap=True)
    start = ", ".join(f"{x:.4f}" for x in excitation.trajectory.at([0.0])[0][0])
    console.print(f"starts and ends at rest at q = ({start}) rad, m", soft_wrap=True)
    table = Table(title="left of each limit [%]", title_justify="left")
    table.add_column("joint")
    for name in excitation.margins:
        table.add_column(name, justify="right")
    for k, joint in enumerate(robot.dof_names):
        table.add_row(joint, *(f"{100 * x[k]:.1f}" if x[k] < 1e6 else "" for x in excitation.margins.values()))
    console.print(table)
    rows = sorted(excitation.table(), key=lambda r: -r["std"] / r["size"])
    noise = ", ".join(f"{x:.3g}" for x in excitation.noise)
    title = f"least certain of {len(rows)} base parameters after one run"
    title += f", torque noise {noise}, {excitation.rate:g} samples/s"
    table = Table(title=title, title_justify="left")
    for name in ("base parameter", "95 % interval, half", "of typical [%]"):
        table.add_column(name, justify="left" if name.startswith("base") else "right")
    for row in rows[:MAX_ROWS]:
        name = row["name"] if len(row["name"]) < 60 else row["name"][:55] + " ..."
        table.add_row(name, f"{row['interval']:.3g}", f"{100 * row['interval'] / row['size']:.2g}")
    console.print(table)
