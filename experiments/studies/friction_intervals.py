"""Coverage of 95 % intervals if the friction of the joints follows Stribeck's curve and the model's may not.

    python experiments/studies/friction_intervals.py [--logs 50] [--first 0] [--method wls] [--page]

Each log's number fixes its robot (two short links, Puma 560), bodies, motion, noise and friction. Every log is
identified with each friction model that `identify` offers. Counted are the intervals of inertial base parameters, whose
truth is known under every friction model. `--page` writes the table to docs/explanation/identification-assessment.md.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.mistakes import motion
from lib.script import run_script

from geomctrl import Robot, models
from geomctrl.identification import Dataset, Reading, RegressorModel, Result, Validation, identify

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "identification-assessment.md"
FRICTION = {  # arguments of `identify`: missing kinds of friction, curves, whether the width is chosen
    "viscous": ({"coulomb": False}, None, False),
    "viscous, coulomb": ({}, None, True),
    "viscous, coulomb, true width": ({}, None, False),
    "viscous, coulomb, sigmoid": ({}, "sigmoid", True),
    "viscous, coulomb, stribeck": ({}, "stribeck", True),
    "default (auto)": ({}, "auto", True),
}


def arm(number: int) -> Robot:
    if number % 3 == 2:
        return models.load("puma560")
    return models.two_link(lengths=(0.4, 0.3), masses=(3.0, 1.5))


def simulated(number: int) -> tuple[Dataset, RegressorModel, np.ndarray]:
    """(log, model without curves, true parameters of the model)."""
    rng, robot = np.random.default_rng(30_000 + number), arm(number)
    width = 10.0 ** rng.uniform(-3.0, -1.5)  # rad/s over which friction changes its sign
    model = RegressorModel(robot, smoothing=width)
    t = np.arange(0.0, 25.0, 0.004)
    q, v, a = motion(robot, rng, t, float(rng.choice([0.3, 0.6])), None)
    x = model.prior
    x[: model.inertial] *= rng.uniform(0.7, 1.3)
    x[model.inertial :] = 0.0
    size, fast = (np.sqrt(np.mean(y**2, axis=0)) for y in (model.torque(x, q, v, a), v))
    coulomb = rng.uniform(0.05, 0.2, robot.nv) * size
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]] = rng.uniform(0.05, 0.2, robot.nv) * size / fast, coulomb
    tau = model.torque(x, q, v, a)
    tau += rng.uniform(0.2, 1.0) * coulomb * np.tanh(v / width) * np.exp(-((v / (rng.uniform(0.05, 0.3) * fast)) ** 2))
    tau += rng.choice([0.003, 0.01, 0.03]) * size * rng.normal(size=tau.shape)
    step = 2.0 * np.pi / 2**16
    return Dataset(t, np.round(q / step) * step, tau, label=f"log {number}"), model, x


def held(report: Result, x: np.ndarray) -> np.ndarray:
    """For each inertial base parameter, whether its 95 % interval holds the truth."""
    model, reference = report.estimate.model, report.reference
    projection = model.base.projection
    inertial = model.base.columns < model.inertial
    truth = projection[inertial, : model.inertial] @ x[: model.inertial]
    assert reference is not None
    box = reference.intervals()
    assert box is not None
    return (box[inertial, 0] <= truth) & (truth <= box[inertial, 1])


def study(numbers: range, method: str) -> dict[str, list[np.ndarray]]:
    out: dict[str, list[np.ndarray]] = {name: [] for name in FRICTION}
    for number in numbers:
        log, model, x = simulated(number)
        for name, (without, curves, chosen) in FRICTION.items():
            fitted = RegressorModel(model.robot, **{**model.options, **without})
            report = identify(
                model.robot, log, method=method, model=fitted, friction_curves=curves,
                choose_smoothing=chosen, reading=Reading(check_units=False), validation=Validation(0.3),
            )  # fmt: skip
            out[name].append(held(report, x))
        print(number, log.label, {name: f"{o[-1].sum()}/{len(o[-1])}" for name, o in out.items()}, flush=True)
    return out


def table(held_: dict[str, list[np.ndarray]], numbers: range) -> str:
    robots = [arm(number).name for number in numbers]
    named = sorted(set(robots), key=robots.index)
    lines = ["| friction of the model | " + " | ".join(f"{r} ({robots.count(r)} logs)" for r in named) + " |"]
    lines.append("|---" * (1 + len(named)) + "|")
    for name, logs in held_.items():
        cells = [np.concatenate([x for x, r in zip(logs, robots) if r == robot]) for robot in named]
        shares = [f"{100 * cell.mean():.1f} % of {len(cell)}" for cell in cells]
        lines.append(f"| {name} | " + " | ".join(shares) + " |")
    return "\n".join(lines)


def main(*, logs: int = 50, first: int = 0, method: str = "wls", page: bool = False) -> None:
    """logs: how many, from the number `first` on; page: write the page of the documentation."""
    warnings.simplefilter("ignore")
    numbers = range(first, first + logs)
    text = table(study(numbers, method), numbers)
    print(text)
    if page:
        page = PAGE.read_text()
        start, end = "<!-- friction: written by the study -->", "<!-- friction: end -->"
        PAGE.write_text(page[: page.index(start) + len(start)] + f"\n\n{text}\n\n" + page[page.index(end) :])


if __name__ == "__main__":
    run_script(main)
