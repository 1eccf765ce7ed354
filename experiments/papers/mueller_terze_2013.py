"""Mueller and Terze 2013, "Is there an optimal choice of configuration space for Lie group integration schemes applied
to constrained MBS?": the four examples of section 5 on SE(3)^n and on (SO(3) x R^3)^n, and Figs. 2, 3, 5-7, 9, 10 and
12-15.

The method is MK4 with h = 1 ms to t = 10 s without stabilisation, so that violations of the constraints come from the
update on the group alone. The paper prints no numbers: the script compares its results with those in
docs/reference/formulas.md, which also lists the data that were completed (where no mass is given, bars of aluminium
with 2700 kg/m^3, and joints at the ends of the bars). Then it lists each claim of the paper as confirmed or not. It
also tries what the paper suggests in its conclusion, SE(3) for bodies on the ground and SO(3) x R^3 for the others, and
stabilisation. Figures go to out/.

    python experiments/papers/mueller_terze_2013.py [--quick]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.papers.constrained.equations import GGL, Baumgarte
from geomctrl.papers.constrained.integration import integrate_index1
from geomctrl.papers.constrained.joints import ConstrainedBody
from geomctrl.papers.constrained.maximal import ConstrainedSystem

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.mueller_terze import CASES, GRAVITY, GROUPS, Case, double_pendulum, heavy_top
from lib.script import Out, Quick, run_script

# docs/reference/formulas.md: |g| of each joint at 1, 5 and 10 s, energy drift at 10 s [J]
EXPECTED = {
    ("heavy top", "SE(3)"): ((2.6e-14,), (6.8e-13,), (1.8e-12,), -3.90e-3),
    ("heavy top", "SO(3)xR3"): ((9.27e-7,), (4.58e-6,), (9.20e-6,), -2.96e-3),
    ("pendulum", "SE(3)"): ((3e-15, 7.16e-6), (2.7e-14, 9.81e-5), (4.6e-14, 5.19e-4), 1.19e-2),
    ("pendulum", "SO(3)xR3"): ((8.84e-7, 5.91e-6), (3.76e-5, 1.02e-4), (2.00e-4, 4.71e-4), 2.15e-2),
    ("floating pair", "SE(3)"): ((2.11e-10,), (5.17e-9,), (1.89e-8,), 2.2e-9),
    ("floating pair", "SO(3)xR3"): ((2.34e-10,), (4.97e-9,), (1.72e-8,), 9e-10),
    ("three-bar", "SE(3)"): ((5e-16, 1.3e-10, 5e-16), (1e-15, 1.6e-9, 1e-15), (4e-15, 6.1e-9, 3e-15), 4.1e-8),
    ("three-bar", "SO(3)xR3"): (
        (7.0e-11, 6.7e-11, 2.0e-11),
        (1.0e-9, 7.8e-10, 4.4e-10),
        (4.1e-9, 3.0e-9, 1.8e-9),
        1.7e-7,
    ),
}


class Result(NamedTuple):
    t: np.ndarray
    violation: np.ndarray  # (samples, joints)
    energy: np.ndarray  # change since the start
    seconds: float


def run(case: Case, t_end: float, h: float = 1e-3, **options) -> Result:
    every = max(1, round(0.01 / h))
    start = time.perf_counter()
    solution = integrate_index1(case.system, case.y0, (0.0, t_end), h, "MK4", every=every, **options)
    seconds = time.perf_counter() - start
    energy = case.system.energy(solution.y)
    return Result(solution.t, case.system.violation(solution.y), energy - energy[0], seconds)


# --- numbers -------------------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A result and its expected value: |g| of a joint at a time, or the energy drift at 10 s (joint None)."""

    t: float
    joint: int | None
    ours: float
    expected: float
    chaotic: bool  # compare the magnitude only

    @property
    def mark(self) -> str:
        """Return "!" if both differ by more than 5 %, a factor of ten in chaotic runs, or rounding."""
        if self.joint is not None and self.expected < 1e-11:
            return "" if self.ours < 1e-11 else "!"
        if self.chaotic:
            return "" if 0.1 < self.ours / self.expected < 10.0 else "!"
        return "" if abs(self.ours - self.expected) < 0.05 * abs(self.expected) else "!"


def cells(name: str, group: str, result: Result) -> list[Cell]:
    """The cells for those of the times 1, 5 and 10 s that the run reached."""
    *violations, energy = EXPECTED[name, group]
    printed = []
    for t, expected in zip((1.0, 5.0, 10.0), violations):
        if t <= result.t[-1] + 1e-9:
            ours = result.violation[np.abs(result.t - t).argmin()]
            printed += [Cell(t, k, *pair, name == "pendulum" and t > 1.0) for k, pair in enumerate(zip(ours, expected))]
    if result.t[-1] > 9.99:
        printed.append(Cell(10.0, None, result.energy[-1], energy, name == "pendulum"))
    return printed


def print_drift(results: dict) -> None:
    print("|g| of each joint, ours (expected), MK4, h = 1 ms; energy drift at 10 s [J]; ! marks what differs")
    for (name, group), result in results.items():
        said: dict[str, list[str]] = {}
        for c in cells(name, group, result):
            column = "energy" if c.joint is None else f"{c.t:g} s"
            said.setdefault(column, []).append(f"{c.ours:.2e} ({c.expected:.2e}){c.mark}")
        numbers = "; ".join(f"{column}: " + ", ".join(row) for column, row in said.items())
        print(f"  {name:13s} {group:8s} {result.seconds:5.1f} s | {numbers}")
    print(
        "The double pendulum is chaotic: its numbers agree pointwise to about 1 s, then in size. Violations below 1e-11"
        "\nare rounding, which depends on the order of operations."
    )


class Claim(NamedTuple):
    description: str
    holds: bool
    values: tuple[float, float]


def claims(results: dict) -> list[Claim]:
    """Compare each claim of the paper with the runs; joints of the chaotic pendulum up to 1 s only."""

    def worst(name, group, joint):
        result = results[name, group]
        return result.violation[result.t < (1.005 if name == "pendulum" else np.inf), joint].max()

    def energy(name, group):
        return np.abs(results[name, group].energy).max()

    def similar(a, b):
        return max(a, b) < 10.0 * min(a, b)

    a, b = GROUPS
    e = {name: (energy(name, a), energy(name, b)) for name in CASES}
    v = {name: [(worst(name, a, k), worst(name, b, k)) for k in range(len(EXPECTED[name, a][0]))] for name in CASES}
    rows = [
        ("Fig. 2: on SE(3) the top's pivot is kept to rounding, on SO(3)xR3 it drifts",
         v["heavy top"][0][0] < 1e-11 < 1e-7 < v["heavy top"][0][1], v["heavy top"][0]),
        ("Fig. 3: the top's energy drifts two orders less on SE(3)",
         50.0 * e["heavy top"][0] < e["heavy top"][1], e["heavy top"]),
        ("Fig. 5: SE(3) is better at the pendulum's joint 1 (to 1 s)",
         v["pendulum"][0][0] < 0.1 * v["pendulum"][0][1], v["pendulum"][0]),
        ("Fig. 6: SE(3) is better at joint 2 (to 1 s)",
         v["pendulum"][1][0] < 0.5 * v["pendulum"][1][1], v["pendulum"][1]),
        ("Figs. 5, 6: joint 2 is violated more than joint 1, on SE(3) (to 1 s)",
         v["pendulum"][1][0] > v["pendulum"][0][0], (v["pendulum"][0][0], v["pendulum"][1][0])),
        ("                                                   and on SO(3)xR3 (to 1 s)",
         v["pendulum"][1][1] > v["pendulum"][0][1], (v["pendulum"][0][1], v["pendulum"][1][1])),
        ("Fig. 7: the pendulum's energy drifts comparably", similar(*e["pendulum"]), e["pendulum"]),
        ("Fig. 9: the floating pair's joint drifts similarly", similar(*v["floating pair"][0]), v["floating pair"][0]),
        ("Fig. 10: so does its energy", similar(*e["floating pair"]), e["floating pair"]),
        ("Fig. 12: SE(3) keeps the three-bar's joint 1 to rounding", v["three-bar"][0][0] < 1e-12, v["three-bar"][0]),
        ("Fig. 13: joint 2 is violated similarly", similar(*v["three-bar"][1]), v["three-bar"][1]),
        ("Fig. 14: SE(3) keeps joint 3 to rounding", v["three-bar"][2][0] < 1e-12, v["three-bar"][2]),
        ("Fig. 15: the three-bar's energy drifts similarly", similar(*e["three-bar"]), e["three-bar"]),
    ]  # fmt: skip
    return [Claim(*row) for row in rows]


def print_claims(results: dict) -> None:
    print("\nThe paper's claims, and the largest values over the run (SE(3), SO(3)xR3 unless said)")
    for description, holds, (x, y) in claims(results):
        print(f"  {'confirmed    ' if holds else 'NOT confirmed'} {description}: {x:.1e}, {y:.1e}")


def print_suggestion(t_end: float) -> None:
    """Try the outlook of section 6: SE(3) for bodies on the ground, SO(3) x R^3 for the others."""
    plain = double_pendulum(SE3())
    bodies = [
        ConstrainedBody(body.name, body.inertia, body.pose, group)
        for body, group in zip(plain.system.bodies, GROUPS.values())
    ]
    system = ConstrainedSystem(bodies, plain.system.constraints, gravity=GRAVITY)
    mixed = Case("pendulum, mixed", system, system.state(None, plain.system.twists(plain.y0)))
    result = run(mixed, t_end)
    print(
        f"\nThe pendulum with bar 1 on SE(3) and bar 2 on SO(3)xR3, as the paper suggests: largest |g| to {t_end:g} s"
    )
    print(f"  joint 1 {result.violation[:, 0].max():.1e}, joint 2 {result.violation[:, 1].max():.1e}")


def print_stabilised(t_end: float) -> None:
    print(f"\nThe pendulum to {t_end:g} s on SO(3)xR3, stabilised: largest |g| of joints 1, 2; energy drift [J]; time")
    ways = {
        "none": ({}, {}),
        "Baumgarte, 50/s": ({"stabilisation": Baumgarte(50.0, 50.0)}, {}),
        "GGL, 50/s": ({"stabilisation": GGL(50.0)}, {}),
        "projection": ({}, {"project": True}),
    }
    for name, (system_options, run_options) in ways.items():
        r = run(double_pendulum(SO3xR3(), **system_options), t_end, **run_options)
        first, second = r.violation.max(axis=0)
        print(f"  {name:16s} {first:.1e}, {second:.1e}; {np.abs(r.energy).max():.1e}; {r.seconds:.1f} s")


# --- figures -------------------------------------------------------------------------------------------------------

FIGURES = [  # number, case, joint (None: energy), label
    (2, "heavy top", 0, "drift of the pivot [m]"),
    (3, "heavy top", None, "kinetic energy drift [J]"),
    (5, "pendulum", 0, "violation of joint 1 [m]"),
    (6, "pendulum", 1, "violation of joint 2 [m]"),
    (7, "pendulum", None, "total energy drift [J]"),
    (9, "floating pair", 0, "drift of the joint [m]"),
    (10, "floating pair", None, "kinetic energy drift [J]"),
    (12, "three-bar", 0, "violation of joint 1 [m]"),
    (13, "three-bar", 1, "violation of joint 2 [m]"),
    (14, "three-bar", 2, "violation of joint 3 [m]"),
    (15, "three-bar", None, "total energy drift [J]"),
]  # Figs. 1, 4, 8 and 11 are drawings of the models


def draw_figures(out: Path, results: dict) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    for number, name, joint, description in FIGURES:
        figure = Figure(figsize=(9.0, 3.2), layout="constrained")
        for ax, label, group in zip(figure.subplots(1, 2), "ab", GROUPS):
            result = results[name, group]
            ax.plot(result.t, result.energy if joint is None else result.violation[:, joint], linewidth=0.8)
            ax.set(xlabel="t [s]", ylabel=description, title=f"{label}) {group.replace('xR3', ' x R³')}")
            ax.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
            ax.grid(True, alpha=0.3)
        figure.suptitle(f"Fig. {number}: {name}")
        FigureCanvasAgg(figure).print_figure(out / f"mueller_terze_fig{number}.png", dpi=130)


def main(*, quick: Quick = False, out: Out = Path("out")) -> None:
    t_end = 1.0 if quick else 10.0
    run(heavy_top(SE3()), 1e-3)  # compile first, so that the times below are those of the runs
    results = {(n, g): run(make(GROUPS[g]), t_end) for n, make in CASES.items() for g in GROUPS}
    print_drift(results)
    print_claims(results)
    print_suggestion(t_end)
    print_stabilised(t_end)
    out.mkdir(parents=True, exist_ok=True)
    draw_figures(out, results)
    print(f"\nFigs. 2, 3, 5 to 7, 9, 10, 12 to 15: {out}/mueller_terze_fig*.png")


if __name__ == "__main__":
    run_script(main)
