"""The options of `identify`, for scripts and command lines alike: each says what it means in its `metadata["help"]`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, count, exactly, flag, instance, number
from geomctrl.errors import ArgumentError

from .estimators import named
from .findings import ignorable
from .logs import Dataset, Reading
from .logs.reading.options import documented, option
from .model.columns import SHAPES

AUTO = "auto"


@documented
@dataclass(frozen=True)
class Filtering:
    """What is low-passed, thinned and left out. Raises ArgumentError."""

    cutoff: float | None = option(
        None,
        "Zero-phase low-pass of positions [Hz], where amplitudes are halved. Default: the one whose motion best"
        " predicts torques not trained on.",
    )
    torque_cutoff: float | None = option(
        None, "The same of torques. Default: that of positions if it is given, else up to where they follow the motion."
    )
    alike: bool = option(True, "Low-pass torques and the regressor alike.")
    decimate: int | None = option(None, "Keep one row in so many. Default: 4 per period of the torques' cut-off.")
    saturation: bool = option(True, "Leave out torques at the model's effort limits.")
    outliers: float | None = option(
        None, "Leave out torques so many robust standard deviations off their running median. Default: keep all."
    )
    standstill: float | None = option(
        None, "Do not train on a joint slower than this [rad/s]; 0: train on all rows. Default: not at rest."
    )
    delay: float | str = option(
        0.0, "Seconds by which torques lag positions, taken back before all else; auto: as the log that trains shows."
    )

    def __post_init__(self):
        if not (isinstance(self.delay, str) and self.delay == AUTO):
            seconds = number("delay", self.delay, "seconds between -1 and 1, or 'auto'", lambda x: abs(x) < 1.0)
            object.__setattr__(self, "delay", seconds)
        for name, unit in (("cutoff", "hertz"), ("torque_cutoff", "hertz"), ("outliers", "a number")):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, number(name, value, f"{unit} > 0", lambda x: x > 0.0))
        if self.decimate is not None:
            count("decimate", self.decimate, 1)
        flag("alike", self.alike)
        flag("saturation", self.saturation)
        if self.standstill is not None:
            number("standstill", self.standstill, "a speed >= 0", lambda x: x >= 0.0)


@documented
@dataclass(frozen=True)
class Validation:
    """What an estimate is tested on. Raises ArgumentError."""

    test: Dataset | str | Path | float | None = option(
        0.3,
        "A fraction of the log that is not trained on, the end of the log or of every period if it repeats; or another"
        " log; None: no test.",
    )
    period: float | None = option(None, "Period of the trajectory [s]. Default: from the log.")
    reading: Reading | None = option(None, "How another log is read. Default: as the one that trains.")

    def __post_init__(self):
        if self.test is not None and not isinstance(self.test, (Dataset, str, os.PathLike)):
            expected = "a fraction between 0 and 1, a log, or None"
            object.__setattr__(self, "test", number("test", self.test, expected, lambda x: 0.0 < x < 1.0))
        if self.period is not None:
            number("period", self.period, "seconds > 0", lambda x: x > 0.0)
        if self.reading is not None:
            instance("reading", self.reading, Reading, "a Reading or None")


@documented
@dataclass(frozen=True)
class Settings:
    """All options of `identify`. Raises ArgumentError."""

    method: str = option("consistent", "Name of the estimator, a key of `ESTIMATORS`.")
    options: Mapping[str, Any] | None = option(
        None,
        'Of the estimator, see `fit`. Weights of a prior and of joints that are not given are "auto": chosen by'
        " cross-validation (`choose_prior`); where one weight of the prior is given, the other is its default.",
    )
    friction_curves: str | None = option(
        None,
        'A friction curve of every joint, "sigmoid" or "stribeck"; "auto": the one that predicts blocks left out'
        ' better, if one does. Default: "auto" where no model is given, else none.',
    )
    choose_smoothing: bool | None = option(
        None,
        "Whether the speed over which Coulomb friction changes its sign is chosen by cross-validation. Default: where"
        " no model is given.",
    )
    choose_rotors: bool | None = option(
        None,
        "Whether rotor inertias join a model without them where it predicts better with them. Default: where no model"
        " is given.",
    )
    reading: Reading = option(Reading(), "How to read the log.")
    filtering: Filtering = option(Filtering(), "What is low-passed and left out.")
    validation: Validation = option(Validation(), "What is set aside to test on.")
    ignore: Sequence[str] = option((), 'Kinds of findings, or "all", that do not count in the assessment.')
    boxes: Mapping[str, ArrayLike] | None = option(
        None,
        "Corners (2, 3) [m] of bodies in their frames by name, where their mass can be (`models.link_boxes` of a URDF)."
        " Default: boxes about joints.",
    )

    def __post_init__(self):
        for name, kind, expected in (
            ("options", (Mapping, NoneType), "a dict by name, or None"),
            ("reading", Reading, "a Reading"),
            ("filtering", Filtering, "a Filtering"),
            ("validation", Validation, "a Validation"),
        ):
            instance(name, getattr(self, name), kind, expected)
        for name in self.options or ():
            instance("options", name, str, "names of options")
        if self.friction_curves is not None:
            choice("friction_curves", self.friction_curves, (*SHAPES, AUTO))
        for name in ("choose_smoothing", "choose_rotors"):
            if getattr(self, name) is not None:
                flag(name, getattr(self, name))
        named(self.method)
        if self.boxes is not None:
            object.__setattr__(self, "boxes", _boxes(self.boxes))
        object.__setattr__(self, "ignore", ignorable("ignore", self.ignore))


def _boxes(boxes: Any) -> dict[str, np.ndarray]:
    """Boxes (2, 3) by bodies' names, lower corners first. Raises ArgumentError."""
    out = {}
    for body, box in instance("boxes", boxes, Mapping, "a dict of boxes (2, 3) by the names of bodies").items():
        instance("boxes", body, str, "names of bodies")
        out[body] = exactly(f"boxes[{body!r}]", box, (2, 3))
        if (out[body][0] > out[body][1]).any():
            raise ArgumentError(f"boxes[{body!r}]: expected the lower corner first, got {box!r:.80}")
    return out
