"""Render reports from Jinja2 templates: text in HTML is escaped, and unknown names in a template raise an error."""

from __future__ import annotations

import json
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import path_of
from geomctrl.files import write_each, write_text

TEMPLATES = Path(__file__).parent / "templates"
WIDTH = 120  # characters of a line of text


def rendered(template: str, **values: Any) -> str:
    """Render a file of templates/ with these values."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"exact": exact, "percent": percent, "note": note}
    environment.globals |= {"definition_lines": definition_lines, "zip": zip}
    return environment


# --- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of a table. `digits` of numbers, None for strings; `percent`: numbers are fractions; `meaning` of the
    title.
    """

    title: str
    digits: int | None = None
    percent: bool = False
    meaning: str | None = None

    def text(self, x: Any) -> str:
        """Return a cell as text: empty for None, a dash for nan."""
        if x is None or self.digits is None or isinstance(x, str):
            return "" if x is None else str(x)
        if x != x:
            return "-"
        if self.percent:
            return f"{100.0 * x:.{self.digits}f} %"
        return f"{x:.{self.digits}g}" if not 10.0**self.digits <= abs(x) < 1e7 else f"{x:.0f}"


@dataclass(frozen=True)
class Table:
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    def text(self, widest: int = 70) -> str:
        """Return aligned columns; cells are cut after `widest` characters."""
        cells = [[column.title for column in self.columns]]
        cells += [[column.text(x) for column, x in zip(self.columns, row)] for row in self.rows]
        cells = [[shortened(x, widest) for x in row] for row in cells]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = []
        for row in cells:
            aligned = [
                x.ljust(n) if column.digits is None else x.rjust(n) for column, x, n in zip(self.columns, row, widths)
            ]
            lines.append("  ".join(aligned).rstrip())
        return "\n".join(lines)


def shortened(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 4].rstrip(" +-") + " ..."


# --- numbers as text -------------------------------------------------------------------------------------------------


def exact(x: float | None) -> str:
    """Return a number as JavaScript reads it back; empty for None and nan."""
    return "" if x is None or x != x else repr(float(x)).replace("inf", "Infinity")


def percent(share: float) -> str:
    return f"{100.0 * share:.2f} %"


def note(value: Any) -> str:
    """Return the value of a note as text: numbers with six digits."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:.6g}" if is_number else str(value)


def definition_lines(definitions: Mapping[str, str]) -> str:
    """Return terms and definitions in two columns."""
    column = 6 + max(map(len, definitions))
    lines = []
    for term, meaning in definitions.items():
        first = f"    {term}".ljust(column)
        lines += textwrap.wrap(meaning, WIDTH, initial_indent=first, subsequent_indent=" " * column)
    return "\n".join(lines)


# --- files ---------------------------------------------------------------------------------------------------------


def plain(x: Any) -> Any:
    """Convert to numbers, strings, lists and dicts that JSON can hold; None for numbers that are not finite."""
    if isinstance(x, Mapping):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple, np.ndarray)):
        return [plain(value) for value in x]
    if isinstance(x, (float, np.floating)):
        return float(x) if np.isfinite(x) else None
    return x.item() if isinstance(x, np.generic) else x


def heading(report: Any) -> dict[str, Any]:
    """What the files of loads and drive gains begin with."""
    return {
        "robot": report.robot.name,
        "source": report.source,
        "processing": report.history,
        "notes": {k: v if isinstance(v, (int, float, str, list)) else str(v) for k, v in report.notes.items()},
        "doubts": [vars(d) for d in report.findings],
    }


def save_json(path: Path, tables: Mapping[str, Any]) -> Path:
    return write_text(path, json.dumps(plain(tables), indent=1, allow_nan=False) + "\n")


# --- definitions of terms in reports ---------------------------------------------------------------------------------


LABELS = {  # of notes
    "cutoffs": "why these cut-offs",
    "smoothing": "Coulomb friction changes its sign over",
    "unseen": "how unseen the test is",
    "cutoff": "cut-off of positions [Hz]",
    "torque_cutoff": "cut-off of torques [Hz]",
    "seconds": "time in the solver [s]",
    "regularization": "weight of the prior",
    "entropic": "weight of the log-det distance",
    "margin": "least pseudo-inertia, in the robot's units",
    "prior": "prior",
    "prior bodies": "bodies of the prior",
    "weights": "weights of joints",
    "status": "how the optimiser ended",
}

DEFINITIONS = {  # of every identification's report
    "RMS": "sqrt(mean over samples of (tau - tau_hat)^2), per joint and over all joints [N m]",
    "relative error": "|tau - tau_hat| / |tau|, 2-norms over samples, per joint, and over all joints and samples"
    " together",
    "lag 1, not white": "autocorrelation of a joint's training residuals one sample apart; share of those at lags 1 to"
    " 50 outside the 95 % band of white noise: 5 % if residuals are white",
    "tau": "the torque that the estimator uses: low-passed and thinned as the header says, without the torque of known"
    " armatures",
    "condition": "ratio of the greatest to the least singular value of the base regressor, columns of unit length;"
    " below 100 is good excitation",
    "correl(ation)": "1 + 2 sum of the residual's autocorrelations up to the first negative one: 1 for white noise",
    "std, 95 %": "from how much parameters vary if one tenth of the log after the other is left out (delete-a-block"
    " jackknife, moderated over parameters; Student's t), for ols, wls and ridge",
    "moving, at rest": "a joint is at rest if it has been slower than 1 % of its greatest speed for 0.2 s. Static"
    ' friction then takes any value, which a model of moving friction can not predict. "Unseen error" at the top is'
    " that of samples in motion; published figures often use all samples, which the report also shows",
    "within friction, left": "of samples at rest: the share that static friction explains, up to Coulomb's friction and"
    " curves; the relative error that it can not explain",
    "noise floor": "RMS of white sensor noise that the low-pass lets through, from the raw torques' spectrum above"
    " twice its cut-off (steps of friction count as noise; a sensor with a filter hides it)",
    "m1 c1x, Ixy1": "mass times centre of mass [kg m], inertia about the frame's origin [kg m^2] of the first body"
    " listed",
    "sliding joints": "N for N m, N s/m for N m s/rad, kg for kg m^2",
}

GLOSSARY = DEFINITIONS | {  # of the page's sections
    "unseen": "samples that no fit uses. Their error says how well torques of motions of the same kind are predicted;"
    " that of training samples only how well the parameters match them",
    "residual": "measured less predicted torque",
    "samples": "those of the log after the low-pass and thinning",
    "base parameter": "a combination of inertial parameters and friction that torques depend on. Single parameters of"
    " a body can often not be found at all: another choice of them, with the same combinations, gives the same torques",
    "95 % interval": "contains the true value with a probability of 95 %, from how much estimates vary if one tenth of"
    " the log after the other is left out. Correlation of residuals and errors of the model count as far as they differ"
    " between tenths; an error that is the same all the time does not",
    "std %": "standard deviation, of the least squares value's magnitude: above 51 % the interval holds zero",
    "size": "the greater of a base parameter's magnitude and three standard deviations",
    "model given": "the value in the robot's file or tables, from which the identification started",
    "physically consistent": "a rigid body with positive mass everywhere can have these parameters: positive definite"
    " pseudo-inertia (mass, first and second moments in one 4 x 4 matrix)",
    "principal moments": "moments of inertia about the centre of mass along the three axes in which it has no products",
    "prior": "the model given, which determines what the log does not",
    "log-det distance, entropic": "a distance between bodies, as between Gaussian distributions of mass: it keeps them"
    " far from point masses and rods",
    "cut-off": "the frequency at which the zero-phase low-pass leaves half the amplitude",
    "what the log leaves open": "a change of base parameters that changes torques by less than one standard deviation"
    " of their noise, although its parts change torques by as much as was measured on a joint",
    "Coulomb friction": "a constant torque against the motion [N m]",
    "viscous friction": "a torque against the motion per velocity [N m s/rad]",
    "sigmoid friction": "tanh(velocity / a speed): friction that levels off",
    "Stribeck friction": "the excess of static over moving friction, which vanishes above a speed",
    "rotor inertia": "of the motor and gears, seen at the joint [kg m^2]",
    "torque offset": "a constant torque, of sensors or of currents [N m]",
}

GAIN_DEFINITIONS = {
    "gain": "torque at the joint per current of its motor [N m/A; N/A for joints that slide], gears included",
    "95 % low, high": "from the noise of the currents and its correlation in time; errors of the model are not in it",
    "known": "RMS of the torque of what is known, the load or CAD's bodies, at the joint [N m], and of its weight",
    "RMS": "sqrt(mean of residual^2) of the currents [A], relative: beside that of the currents",
}

LOAD_DEFINITIONS = {
    "load": "the rigid body that moves with the frame, as the log has it beyond the robot without it",
    "value": "the physically consistent estimate: a body that can exist, its pseudo-inertia positive definite",
    "95 % low, high": "of unconstrained least squares, from the residuals' noise and its correlation in time; errors of"
    " the robot's model are not in it. Open (-inf, inf): the motion says nothing of it",
    "inertia": "about the centre of mass, in the frame's axes; parameters: first moments h = m c and inertia about the"
    " frame's origin",
    "RMS": "sqrt(mean over samples of residual^2), low-passed and thinned as the header says: with the load as found,"
    " and with none but all else fitted anew",
}


# --- reports -------------------------------------------------------------------------------------------------------


class Report(ABC):
    """Base class of results of identification that can be printed and saved."""

    @abstractmethod
    def text(self) -> str:
        """Return the report as plain text."""

    @abstractmethod
    def _tables(self) -> dict[str, Any]:
        """Return numbers, strings and lists, for JSON; null for unknown or infinite numbers."""

    def save(self, folder: str | Path) -> list[Path]:
        """Write the report's files.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist.

        Returns
        -------
        list of Path
            report.txt and report.json, and what else the kind of report has: robot.json (the exact robot), robot.urdf
            and robot.xml, or the reason in a .txt where a format can not hold the robot; report.html and the plots.

        Raises
        ------
        WriteError
            If files can not be written; all others are.
        """
        return write_each(self._writers(path_of("folder", folder)))

    def _writers(self, folder: Path) -> list[Callable[[], Path]]:
        """Functions that write one file each."""
        return [
            lambda: write_text(folder / "report.txt", self.text()),
            lambda: save_json(folder / "report.json", self._tables()),
        ]
