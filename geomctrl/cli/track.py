"""`geomctrl track`: a controller on a plant that checks the properties its proof rests on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .grouped import grouped
from .terminal import (
    FloatingBase,
    Mimic,
    MimicOption,
    Physical,
    PhysicalOption,
    RobotArgument,
    compiling,
    complain,
    load_robot,
    reported,
    stdout_console,
)
from .track_options import RunOptions, ScenarioOptions

if TYPE_CHECKING:
    from .tracking import Stop


@reported
@grouped
def track(
    robot: RobotArgument,
    scenario: ScenarioOptions,
    run: RunOptions,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
    physical: PhysicalOption = Physical.reported,
) -> None:
    """Track a reference and report whether the properties behind the proof held.

    The controller is built on the nominal model; the plant also carries --payload, has --friction, --actuators and
    --sensors. Ends with a table, run.npz, report.txt, PNG plots and, with the extra 'view', run.html, the robot in
    three dimensions, in --out. Torque limits are reported, and enforced
    with `--actuators limits`. The laws command all coordinates: a free base is driven too, by a wrench on its body,
    and the report says so; `--actuators joints` leaves it to gravity.

    A law of your own is FILE.py:CLASS, made as CLASS(robot, reference), or by its classmethod tuned(tuning), see
    `geomctrl.control.tuning`. Delays and sensors need --control-dt; times are in s, or as 5ms.

    A loop of your own is a Python file in the robot's place, which sets the arguments of `geomctrl.simulate` by their
    names: `plant`, `controller`, `q0`, `v0`, `t_end`, `dt`, and any others it wants. It says all of the loop itself.

    **Gains** come from the robot's mass matrix: with D_i the mean of M_ii, kappa_i = kappa (max D / D_i)^(1/3) and
    Lambda, in 1/s, every law gets the same nominal error dynamics e'' + (kappa_i + Lambda) e' + kappa_i Lambda e = 0:

    - slotine-li, passivity: `Lambda` = 5, K = kappa_i D_i with `kappa` = 20; slotine-li: `rate` = 20, of adaptation

    - computed-torque: `kp` = kappa_i Lambda, `kd` = kappa_i + Lambda

    - pd-gravity: the same times D_i; it holds the reference's last configuration

    kappa and Lambda are lowered where the fastest closed-loop rate would exceed 1.5 / dt, rate where adaptation would
    be faster than 1 / dt. The comparison with computed torque uses this rule, so both laws have the same bandwidth.

    **Exit status**: 0 the run finished, whatever the monitors say (see --strict); 1 it diverged or --strict stopped
    it; 130 Ctrl-C, 143 SIGTERM; the part up to then is saved; 2 bad arguments.

    **Examples**

    - `geomctrl track panda --payload 2 --out out/demo`

    - `geomctrl track ur10 --controller passivity --reference spline --seconds 5`

    - `geomctrl track quadruped --payload 3 --payload-at 4 --adapt links`

    - `geomctrl track panda --controller my.py:Law --actuators limits,lag=5ms --sensors bits=17 --control-dt 1e-3`

    - `geomctrl track loop.py --out out/loop`

    - `geomctrl track arm.urdf --controller computed-torque --gains kp=400,kd=40 --control-dt 0.002`
    """
    from .own_loop import own_loop
    from .scenario import Scenario, check_options
    from .tracking import tracked

    console = stdout_console()
    if robot.endswith(".py"):
        _end(own_loop(Path(robot), scenario, run, console))
        return
    check_options(scenario)
    run.out.mkdir(parents=True, exist_ok=True)
    with compiling(console, "half a minute"):
        case = Scenario.make(load_robot(robot, floating_base, mimic, physical), scenario)
        case.warm_up()
    _end(tracked(case, run, console))


def _end(stop: Stop | None) -> None:
    if stop is not None:
        complain(stop.reason)
        raise typer.Exit(stop.status)
