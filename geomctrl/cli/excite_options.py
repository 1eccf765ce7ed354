"""The options of `geomctrl excite`, group by group, and what each group means to `optimize`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

from geomctrl.errors import ArgumentError

from .option_texts import names, numbers

KINDS = ("viscous", "coulomb", "offset")


def per_joint(option: str, text: str | None) -> Any:
    """One number, or one a joint; None where nothing was given."""
    if text is None:
        return None
    found = numbers(option, text)
    return found[0] if len(found) == 1 else found


@dataclass(frozen=True)
class MotionOptions:
    panel: ClassVar[str] = "Motion"

    seconds: Annotated[float, typer.Option(help="How long one run takes [s].")] = 10.0
    kind: Annotated[Literal["fourier", "spline"], typer.Option(help="Harmonics of 1/seconds, or quintic splines.")] = (
        "fourier"
    )
    terms: Annotated[int, typer.Option(help="Harmonics, or free control points, a joint.")] = 5
    q0: Annotated[
        str | None,
        typer.Option("--q0", metavar="NUMBERS", help="Move about this posture [default: roomy ones are looked for]."),
    ] = None
    objective: Annotated[
        Literal["log_det", "condition"],
        typer.Option(help="Least volume of the parameters' confidence ellipsoid, or condition number."),
    ] = "log_det"
    scaling: Annotated[
        Literal["length", "prior"],
        typer.Option(
            help="Columns of unit length, or times what parameters typically are: small ones then count less."
        ),
    ] = "length"
    starts: Annotated[int, typer.Option(help="How many of the random motions are optimised, on all cores.")] = 4
    compare: Annotated[int, typer.Option(help="Random motions within the same limits to compare with.")] = 200
    iterations: Annotated[int, typer.Option(help="Of each optimisation.")] = 120
    seed: Annotated[int, typer.Option(help="Of the random motions.")] = 0

    def options(self) -> dict[str, Any]:
        q0 = None if self.q0 is None else numbers("--q0", self.q0)
        return {
            "duration": self.seconds, "kind": self.kind, "terms": self.terms, "q0": q0, "objective": self.objective,
            "scaling": self.scaling, "starts": self.starts, "compare": self.compare, "iterations": self.iterations,
            "seed": self.seed,
        }  # fmt: skip


@dataclass(frozen=True)
class LimitOptions:
    """Each a number or one a joint, with commas between."""

    panel: ClassVar[str] = "Limits (a number, or one a joint: 2,2,1.5)"

    lower: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Positions [rad, m] [default: the robot's, -pi where none].")
    ] = None
    upper: Annotated[str | None, typer.Option(metavar="NUMBERS", help="[default: the robot's, pi where none]")] = None
    velocity: Annotated[str | None, typer.Option(metavar="NUMBERS", help="[rad/s, m/s] [default: the robot's].")] = None
    acceleration: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="[rad/s^2, m/s^2] [default: velocity / 0.25 s].")
    ] = None
    jerk: Annotated[str | None, typer.Option(metavar="NUMBERS", help="[rad/s^3, m/s^3] [default: none].")] = None
    effort: Annotated[str | None, typer.Option(metavar="NUMBERS", help="[N m, N] [default: the robot's].")] = None
    torque_margin: Annotated[
        float, typer.Option(help="Part of the effort limits kept back: the model's torques are not the robot's.")
    ] = 0.2

    def options(self) -> dict[str, Any]:
        given = ("lower", "upper", "velocity", "acceleration", "jerk", "effort")
        limits = {name: per_joint(f"--{name}", getattr(self, name)) for name in given}
        return {**limits, "torque_margin": self.torque_margin}


@dataclass(frozen=True)
class SurroundingsOptions:
    panel: ClassVar[str] = "Surroundings"

    floor: Annotated[
        str | None,
        typer.Option(metavar="Z", help="Height of the floor in the base's axes [m]; none: there is none [default: 0]."),
    ] = None
    keep_out: Annotated[
        list[str] | None,
        typer.Option("--keep-out", metavar="BOX", help="x0,y0,z0,x1,y1,z1 [m] between two corners. Repeat."),
    ] = None
    clearance: Annotated[
        float | None, typer.Option(help="How far to stay off all of it, and links off each other [m] [default: 0.02].")
    ] = None
    radius: Annotated[
        float | None, typer.Option(help="Of the links' capsules [m] [default: 5 % of the chain's length].")
    ] = None
    self_collision: Annotated[bool, typer.Option(help="Keep links off each other.")] = True
    collisions: Annotated[
        Literal["auto", "links", "file"],
        typer.Option(
            help="Capsules between joints (links), or of the URDF's spheres, cylinders and boxes (file); auto: file for"
            " links that have some."
        ),
    ] = "auto"
    surroundings: Annotated[
        Path | None,
        typer.Option(
            "--surroundings",
            metavar="FILE",
            help="TOML file: floor, clearance, radius, self_collision, keep_out, \\[[capsule]]: docs/excitation.md.",
        ),
    ] = None

    def of(self, source: str, robot: Any) -> tuple[Any, tuple[str, ...]]:
        """(`Surroundings`, notes for the user)."""
        from dataclasses import replace

        from geomctrl import models
        from geomctrl.identification.excitation import Surroundings, load_surroundings

        found = Surroundings() if self.surroundings is None else load_surroundings(self.surroundings, robot)
        changes: dict[str, Any] = {} if self.self_collision else {"self_collision": False}
        if self.floor is not None:
            changes["floor"] = None if self.floor.strip().lower() == "none" else numbers("--floor", self.floor)[0]
        if self.keep_out:
            boxes = tuple(numbers("--keep-out", box) for box in self.keep_out)
            changes["keep_out"] = (*found.keep_out, *boxes)
        changes |= {k: x for k in ("clearance", "radius") if (x := getattr(self, k)) is not None}
        found = replace(found, **changes)
        urdf = Path(source).suffix.lower() == ".urdf"
        if self.collisions == "file" and not urdf:
            raise ArgumentError(f"--collisions file: for URDF files, not for {source!r}")
        if self.collisions == "links" or not urdf or found.capsules is not None:
            return found, ()
        capsules, without = models.collision_capsules(Path(source), robot, radius=found.radius)
        said = f"no spheres, cylinders or boxes for {', '.join(without)}: capsules between joints"
        return replace(found, capsules=capsules), (said,) if without else ()


@dataclass(frozen=True)
class ParameterOptions:
    panel: ClassVar[str] = "What is to be identified"

    friction: Annotated[str, typer.Option(metavar="LIST", help="viscous, coulomb, offset at every joint; none.")] = (
        ",".join(KINDS)
    )
    rotor: Annotated[bool, typer.Option("--rotor", help="Motor (rotor) inertias, too.")] = False
    smoothing: Annotated[float, typer.Option(help="Speed [rad/s] over which Coulomb friction changes its sign.")] = 0.05
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Standard deviation of torque samples [N m, N] [default: 1 % of effort limits]."
        ),
    ] = None
    noise_rate: Annotated[float, typer.Option(help="Independent torque samples a second [Hz].")] = 100.0

    def model(self, robot: Any) -> Any:
        from geomctrl.identification import RegressorModel

        asked = [] if self.friction.strip() == "none" else names(self.friction)
        for kind in asked:
            if kind not in KINDS:
                raise ArgumentError(f"--friction: expected some of {', '.join(KINDS)}, or none, got {kind!r}")
        viscous, coulomb, offset = (kind in asked for kind in KINDS)
        return RegressorModel(
            robot, viscous=viscous, coulomb=coulomb, offset=offset, rotor=self.rotor, smoothing=self.smoothing
        )

    def options(self) -> dict[str, Any]:
        return {"noise": per_joint("--noise", self.noise), "rate": self.noise_rate}


@dataclass(frozen=True)
class FileOptions:
    panel: ClassVar[str] = "Output"

    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("out/excite")
    name: Annotated[str, typer.Option(help="Of the files and of the C arrays.")] = "excitation"
    rate: Annotated[float, typer.Option(help="Samples a second in the files [Hz].")] = 100.0
    repeats: Annotated[int, typer.Option(help="How often the files run through it, without a pause.")] = 1
    plots: Annotated[bool, typer.Option(help="Draw the picture.")] = True

    def options(self) -> dict[str, Any]:
        """Checked: a design takes long, and what can not be written should be known before."""
        from geomctrl.arguments import count, number
        from geomctrl.tracing.backends.c_files import prefix

        name, repeats = prefix("--name", self.name), count("--repeats", self.repeats, 1)
        rate = number("--rate", self.rate, "a rate > 0", lambda x: x > 0.0)
        return {"name": name, "rate": rate, "repeats": repeats, "plots": self.plots}
