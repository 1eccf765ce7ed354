"""Tune a closed loop by hand: gains, load, friction and reference are sliders of a page in the browser.

Every change simulates the loop anew and shows the robot, curves, verdicts and measures. The scenario options are those
of `geomctrl track`; FILE.py:CLASS selects your own controller. The page can save the run, the settings as TOML, Python
code, a sweep around the setting and C code of the law to --out. It needs the extra 'view' and runs until Ctrl-C.

**Examples**

- `geomctrl tune panda --controller slotine-li`

- `geomctrl tune two_link --controller passivity --range law.K=0.1:10 --range load.mass=0:2`

- `geomctrl tune panda --controller my.py:Law --friction --settings out/tune/settings.toml`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, validators

from .options import MODEL_HELP, CheckedUrdfOptions, as_limits, pairs
from .scenario import Scenario, ScenarioOptions
from .terminal import FAILED, compiling, print_error, stdout_console


def tune(
    robot: Annotated[str, Parameter(help=MODEL_HELP)],
    /,
    *,
    scenario: ScenarioOptions = ScenarioOptions(),
    settings: Annotated[
        Path | None, Parameter(metavar="FILE", help="TOML file that the page saved, as the first setting.")
    ] = None,
    ranges: Annotated[
        list[Any],
        pairs(
            "Range of a slider, by the name of its control: law.K=0.1:10 [default: a decade to both sides of a positive"
            " value]. Repeat.",
            name="--range",
            metavar="NAME=LOW:HIGH",
            convert=as_limits,
        ),
    ] = (),  # pyright: ignore[reportArgumentType]
    out: Annotated[Path, Parameter(help="Folder for what the page saves.")] = Path("out/tune"),
    port: Annotated[
        int, Parameter(help="Port of the page, or the next free one.", validator=validators.Number(gte=0, lte=65535))
    ] = 8080,
    urdf: CheckedUrdfOptions = CheckedUrdfOptions(),
) -> int | None:
    from geomctrl.control.hand_tuning.saving import read_settings
    from geomctrl.control.hand_tuning.tune import tune as open_page
    from geomctrl.viewing.live import opened

    console = stdout_console()
    try:
        with compiling(console, "half a minute"):
            case = Scenario.make(urdf.load(robot), scenario)
            o = case.options
            page = open_page(
                case.plant, case.controller, o.seconds, o.dt, o.control_dt, start=(case.q0, case.v0),
                ranges=dict(ranges), out=out, port=port,
            )  # fmt: skip
            if settings is not None:
                page.session.apply(read_settings(page.session.controls, settings))
    except ImportError as error:
        if "geomctrl[view]" not in str(error):
            raise
        print_error(str(error))
        return FAILED
    try:
        opened(page.address)
        console.print(f"{case.describe()}: the page is open until Ctrl-C", soft_wrap=True)
        page.wait()
    except KeyboardInterrupt:
        console.print("closed")
    finally:
        page.close()
    return None
