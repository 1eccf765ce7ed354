"""The options of `identify`, for scripts and the command line; `metadata["help"]` of each field describes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, count, exactly, flag, instance, mapped, number, shown
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
    """Options for filtering: cut-off frequencies, thinning, and samples to leave out.

    Raises
    ------
    ArgumentError
        If a value is invalid.

    Examples
    --------
    >>> from geomctrl.identification import Filtering
    >>> filtering = Filtering(cutoff=8.0, decimate=4)
    """

    cutoff: float | None = option(
        None,
        "Cut-off of the zero-phase low-pass for positions [Hz], where amplitudes are halved. Default: the one whose"
        " motion best predicts torques of samples left out of the fit.",
    )
    torque_cutoff: float | None = option(
        None,
        "Cut-off for torques [Hz]. Default: that of positions if it is given, otherwise the end of the band in which"
        " torques follow the motion.",
    )
    alike: bool = option(True, "Apply the same low-pass to torques and regressor.")
    decimate: int | None = option(
        None, "Keep every n-th sample. Default: 4 samples per period of the torques' cut-off."
    )
    saturation: bool = option(True, "Leave out torques at the model's effort limits.")
    outliers: float | None = option(
        None, "Leave out torques farther from their running median, in robust standard deviations. Default: keep all."
    )
    standstill: float | None = option(
        None,
        "Leave out samples of a joint slower than this [rad/s]; 0 keeps all. Default: leave out joints at rest.",
    )
    delay: float | str = option(
        0.0, "Delay of torques behind positions [s], compensated first; auto: estimated from the training part."
    )
    resample: float | None = option(
        None, "Interpolate the log to this rate [Hz] first. Default: to the median rate if time stamps are uneven."
    )

    def __post_init__(self):
        if not (isinstance(self.delay, str) and str(self.delay) == AUTO):
            seconds = number("delay", self.delay, "seconds between -1 and 1, or 'auto'", lambda x: abs(x) < 1.0)
            object.__setattr__(self, "delay", seconds)
        for name, unit in (
            ("cutoff", "hertz"),
            ("torque_cutoff", "hertz"),
            ("outliers", "a number"),
            ("resample", "hertz"),
        ):
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
    """Options for the test on unseen data.

    Raises
    ------
    ArgumentError
        If a value is invalid.

    Examples
    --------
    >>> from geomctrl.identification import Validation
    >>> validation = Validation(test=0.2)
    """

    test: Dataset | str | Path | float | None = option(
        0.3,
        "Fraction of the log for the test, which no fit uses: the end of the log, or of every period if it repeats. Or"
        " another log. None: no test.",
    )
    period: float | None = option(None, "Period of the trajectory [s]. Default: from the log.")
    reading: Reading | None = option(None, "How to read another log. Default: like the training log.")

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
    """All options of `identify`.

    Raises
    ------
    ArgumentError
        If a value is invalid.

    Examples
    --------
    >>> from geomctrl.identification import Filtering, Settings
    >>> settings = Settings(method="wls", filtering=Filtering(cutoff=8.0))
    """

    method: str = option("consistent", "Name of the estimator, a key of `ESTIMATORS`.")
    options: Mapping[str, Any] | None = option(
        None,
        'Options of the estimator, see `fit`. Weights of the prior and of joints that are not given are "auto": those'
        " that predict samples left out of the fit best (`choose_prior`). If one weight of the prior is given, the"
        " other has its default.",
    )
    friction_curves: str | None = option(
        None,
        'Friction curve for every joint, "sigmoid" or "stribeck". "auto": the one that predicts samples left out of'
        ' the fit better, if one does. Default: "auto" if no model is given, otherwise none.',
    )
    choose_smoothing: bool | None = option(
        None,
        "Choose the speed over which Coulomb friction changes its sign by how well samples left out of the fit are"
        " predicted. Default: only if no model is given.",
    )
    choose_rotors: bool | None = option(
        None,
        "Add rotor inertias to a model without them if it predicts better with them. Default: only if no model is"
        " given.",
    )
    reading: Reading = option(Reading(), "How to read the log.")
    filtering: Filtering = option(Filtering(), "How to filter the log.")
    validation: Validation = option(Validation(), "What to test the estimate on.")
    ignore: Sequence[str] = option((), 'Kinds of findings to ignore in the assessment, or "all".')
    boxes: Mapping[str, ArrayLike] | None = option(
        None,
        "For each body name the corners (2, 3) [m], in its frame, of a box that contains its mass (`models.link_boxes`"
        " computes them from a URDF). Default: boxes around the joints.",
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
    """Boxes (2, 3) by body name, lower corner first. Raises ArgumentError."""
    out = {}
    for body, box in mapped("boxes", boxes, "a dict of boxes (2, 3) by the names of bodies").items():
        instance("boxes", body, str, "names of bodies")
        out[body] = exactly(f"boxes[{body!r}]", box, (2, 3))
        if (out[body][0] > out[body][1]).any():
            raise ArgumentError(f"boxes[{body!r}]: expected the lower corner first, got {shown(box)}")
    return out
