"""`geomctrl excite`: an exciting motion for a robot's identification, as files that it can be driven with."""

from __future__ import annotations

from typing import Any

import typer

from .excite_options import FileOptions, LimitOptions, MotionOptions, ParameterOptions, SurroundingsOptions
from .grouped import grouped
from .terminal import (
    FAILED,
    FloatingBase,
    Mimic,
    MimicOption,
    RobotArgument,
    compiling,
    complain,
    load_robot,
    reported,
    stdout_console,
)

WORST = 8  # parameters that are shown


@reported
@grouped
def excite(
    robot: RobotArgument,
    motion: MotionOptions,
    limits: LimitOptions,
    surroundings: SurroundingsOptions,
    parameters: ParameterOptions,
    output: FileOptions,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
) -> None:
    """Design a motion that tells a robot's inertial and friction parameters apart, and that the robot can run.

    It keeps within positions, velocities, accelerations and torques, above the floor, out of boxes and off itself, at
    all times; begins and ends at rest in the same posture. The robot is taken for capsules along its links: look at
    the picture, and try it slowly first. Writes to --out:

    - NAME.csv (t, q1, ..., v1, ..., a1, ...), NAME.yaml and NAME.json (ROS 2 trajectory_msgs/JointTrajectory), NAME.h
      (C arrays)

    - NAME.txt (what is printed, and all predicted intervals), NAME_parameters.csv, NAME.png

    **Exit status**: 0 written; 1 no motion fits: the message says what stands in the way and by how much; 2 bad
    arguments.

    **Examples**

    - `geomctrl excite panda --seconds 10`

    - `geomctrl excite ur10 --seconds 12 --floor -0.01 --keep-out 0.5,-1,0,0.7,1,0.8 --objective condition`

    - `geomctrl excite panda --velocity 1 --acceleration 4 --jerk 50 --rotor --repeats 3 --rate 1000`

    - `geomctrl excite scara --velocity 2 --floor none --noise 0.5 --out out/scara`
    """
    from geomctrl.identification.errors import ExcitationError
    from geomctrl.identification.excitation.limits import limits_of

    console = stdout_console()
    nominal = load_robot(robot, floating_base, mimic, "unchecked")
    limits_of(nominal, **limits.options())  # before anything is compiled
    files = output.options()
    model = parameters.model(nominal)
    around, notes = surroundings.of(robot, nominal)
    options = {**motion.options(), **limits.options(), **parameters.options(), "surroundings": around}
    for line in notes:
        console.print(f"note: {line}", soft_wrap=True)
    try:
        found = _designed(console, model, options)
    except ExcitationError as error:
        complain(str(error))
        raise typer.Exit(FAILED) from None
    with console.status("writing"):
        written = found.save(output.out, **files)
    _show(console, found)
    console.print(f"wrote {', '.join(p.name for p in written)} in {output.out}", soft_wrap=True)


def _designed(console: Any, model: Any, options: dict[str, Any]) -> Any:
    import numpy as np

    from geomctrl.identification.excitation import optimize

    robot = model.robot
    with compiling(console, "20 s"):
        model.regressor(robot.neutral()[None], *np.zeros((2, 1, robot.nv)))
    with console.status(f"comparing {options['compare']} random motions, optimising {options['starts']}"):
        return optimize(model, **options)


def _show(console: Any, found: Any) -> None:
    from rich.table import Table

    robot = found.model.robot
    console.print(found.text(), soft_wrap=True)
    start = ", ".join(f"{x:.4f}" for x in found.trajectory.at([0.0])[0][0])
    console.print(f"starts and ends at rest at q = ({start}) rad, m", soft_wrap=True)
    table = Table(title="left of each limit [%]", title_justify="left")
    table.add_column("joint")
    for name in found.margins:
        table.add_column(name, justify="right")
    for k, joint in enumerate(robot.dof_names):
        table.add_row(joint, *(f"{100 * x[k]:.1f}" if x[k] < 1e6 else "" for x in found.margins.values()))
    console.print(table)
    rows = sorted(found.table(), key=lambda r: -r["std"] / r["size"])
    noise = ", ".join(f"{x:.3g}" for x in found.noise)
    title = (
        f"least certain of {len(rows)} base parameters after one run, torque noise {noise}, {found.rate:g} samples/s"
    )
    table = Table(title=title, title_justify="left")
    for name in ("base parameter", "95 % interval, half", "of typical [%]"):
        table.add_column(name, justify="left" if name.startswith("base") else "right")
    for row in rows[:WORST]:
        name = row["name"] if len(row["name"]) < 60 else row["name"][:55] + " ..."
        table.add_row(name, f"{row['interval']:.3g}", f"{100 * row['interval'] / row['size']:.2g}")
    console.print(table)
