"""Choose the weight and kind of a prior, and the weights of joints, by cross-validation.

Score: the relative error |tau - tau_hat| / |tau| of folds, each predicted from the others (`folds`). Candidates:

    entropic    w sum_i D(P_i || P0_i) / n: the log-det (Bregman) distance, the same in every frame and unit; bodies
                stay away from the boundary of physical ones
    euclidean   w |S^-1 (x - x0)|^2: ridge, of friction too

The weights w form a grid of decades, which grows if the best is at its end, and is refined to half decades. If errors
are flat, the stronger prior is chosen by the one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984, section
3.4.3), with the standard error of the folds' differences to the best, and at most TOLERATED_RISE worse. The euclidean
prior is chosen if it predicts better than the entropic one by more than a standard error and more than TOLERATED_RISE;
it is then combined with as much of the entropic one as does not increase the error. If a body is still at the boundary
(EDGE_RATIO), the entropic weight grows while the error is at most MAX_EDGE_RISE above the best.

Weights of joints are the inverse root mean squares of their held-out residuals, iterated (feasible generalised least
squares); they are used if they do not predict worse than equal ones by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import ShortLogError
from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.parts import detected_period
from geomctrl.identification.model.regressor_model import RegressorModel

from .estimate import Estimator
from .folds import FOLDS, Folds, folds_of
from .least_squares import weights_of
from .prior_problem import FoldProblem, Prior, at_the_edge, prior_for, uses_barrier
from .semidefinite import Penalties

AUTO = "auto"
DECADES = tuple(range(-6, 1))  # exponents of the weights that are tried
MIN_EXPONENT, MAX_EXPONENT = -10.0, 2.0
TOLERATED_RISE, MAX_EDGE_RISE = 0.02, 0.05  # relative rise of the error that a stronger prior may cost
EDGE_RATIO = 1e-3  # ratio of a body's least principal moment, or eigenvalue of its pseudo-inertia, to the next
# weight of the euclidean prior in addition to the entropic one, for parameters of no body that the log does not
# determine
EUCLIDEAN_WEIGHT = 1e-8
MAX_PRIOR_ERROR = 0.3  # relative error of folds above which a finding doubts a prior that predicts best alone
MIN_PRIOR_ERROR = 2e-3  # relative error of folds below which no prior is needed
REWEIGHTINGS = 2


@dataclass(frozen=True, eq=False)
class PriorChoice:
    """The choice of cross-validation and its reasons.

    options: for `fit`. kind: "entropic", "euclidean", "euclidean and entropic", or "as given". error: the folds'
    relative error; best: the smallest of all tries. tried: rows (kind, weighted joints, weight, relative error). notes:
    the same as text; doubts: findings to check.
    """

    options: dict[str, Any]
    kind: str
    error: float
    best: float
    tried: tuple[tuple[str, bool, float, float], ...]
    notes: dict[str, str]
    findings: tuple[Finding, ...] = ()


def chosen(
    model: RegressorModel,
    data: Dataset,
    estimator: Estimator,
    options: Mapping[str, Any],
    folds: int,
    guard: float | None,
    period: float | None,
) -> PriorChoice:
    """Choose values for the options that are "auto". Raises ArgumentError, DataError, SolverError."""
    _check(estimator, options)
    period = detected_period(data) if period is None else period
    all_folds = folds_of(model, data, folds, guard, period)
    prior = prior_for(model, all_folds, options)
    search = _Search(model, all_folds, prior, estimator, options)
    problem, weighted, weights_note = search.weights()
    curves = [search.curve(kind, problem, weighted) for kind in search.kinds]
    curve, setting = curves[0], curves[0].chosen
    if len(curves) == 2 and search.clearly_worse(curve.best, curves[1].best):
        curve, setting = curves[1], search.with_entropic(curves[1], problem, weighted)
    best = min(c.best.error for c in curves)
    setting, edge = search.away_from_the_edge(setting, problem, weighted, best)
    changed = search.options(setting, problem.weights if weighted else None, prior)
    notes = {"prior": search.prior_note(curves, curve, setting) + edge, "weights": weights_note}
    if prior.replaced:
        mass = prior.x[: model.inertial : 10].sum()
        notes["prior bodies"] = (
            f"the model has none to use for {', '.join(prior.replaced)}: uniform density between the joints instead,"
            f" {mass:.3g} kg in all by the log"
        )
    findings = tuple(d for d in [search.finding(curve)] if d is not None)
    return PriorChoice(changed, setting.kind, setting.error, best, tuple(search.tried),
                       {k: v for k, v in notes.items() if v}, findings)  # fmt: skip


def is_auto(value: Any) -> bool:
    return isinstance(value, str) and str(value) == AUTO


def _check(estimator: Estimator, options: Mapping[str, Any]) -> None:
    choices = [name for name in (estimator.prior_weight, "entropic", "weights") if name in estimator.options]
    for name, value in options.items():
        if is_auto(value) and name not in choices:
            raise ArgumentError(f"{name}: expected a value, got 'auto', which is for {', '.join(map(str, choices))}")
    if uses_barrier(estimator):
        plain = {k: options.get(k, estimator.options[k]) for k in ("regularization", "entropic", "margin")}
        numbers = {k: 1.0 if is_auto(v) else v for k, v in plain.items()}
        Penalties(**numbers, friction_signs=options.get("friction_signs", True))


@dataclass(frozen=True, eq=False)
class _Setting:
    """One or two weights, with the squared residuals of the folds (folds,) and of the joints (nv,)."""

    kind: str
    regularization: float
    entropic: float
    squares: np.ndarray
    joints: np.ndarray
    error: float

    @property
    def weight(self) -> float:
        return self.entropic if self.kind.endswith("entropic") else self.regularization


def _beyond_chance(t: _Setting, best: _Setting) -> bool:
    """Whether t's squares are above the best's by more than a standard error of the folds' differences."""
    difference = t.squares - best.squares
    return float(difference.sum()) > np.sqrt(len(difference)) * float(np.std(difference, ddof=1))


@dataclass(frozen=True, eq=False)
class _Curve:
    best: _Setting
    chosen: _Setting


@dataclass
class _Search:
    """The weights tried on a log's folds."""

    model: RegressorModel
    folds: Folds
    prior: Prior
    estimator: Estimator
    options_given: Mapping[str, Any]
    tried: list[tuple[str, bool, float, float]] = field(default_factory=list)

    def __post_init__(self):
        self.size = float(sum((h.norms**2).sum() for h in self.folds.held))
        self.auto = {name for name, value in self.options_given.items() if is_auto(value)}
        weight = self.estimator.prior_weight
        names = {"entropic": "entropic", "euclidean": weight}
        self.kinds = [kind for kind, name in names.items() if name in self.auto] or ["as given"]
        settled = {k: v for k, v in {**self.estimator.options, **self.options_given}.items() if not is_auto(v)}
        self.fixed = {kind: float(settled.get(str(name), 0.0)) for kind, name in names.items()}

    # --- weights of joints ---------------------------------------------------------------------------------------

    def weights(self) -> tuple[FoldProblem, bool, str]:
        """(the problem with its weights of joints, whether they differ, a description)."""
        if "weights" not in self.auto:
            w = weights_of(self.model, self.folds.whole, self.options_given.get("weights"))
            return self._problem(w), self.options_given.get("weights") is not None, ""
        equal = self._problem(np.ones(self.model.robot.nv))
        plain = last = self.curve(self.kinds[0], equal, False)
        problem = equal
        counts = sum(h.counts for h in self.folds.held)
        for _ in range(REWEIGHTINGS):
            noise = np.sqrt(last.chosen.joints / np.maximum(counts, 1))
            noise = np.maximum(noise, 1e-6 * max(noise.max(), 1e-300))
            problem = self._problem(1.0 / noise)
            last = self.curve(self.kinds[0], problem, True)
        noise = ", ".join(f"{1.0 / x:.3g}" for x in problem.weights)
        errors = (100 * x.best.error for x in (last, plain))
        percent = "samples left out of the fit are predicted to {:.3g} % weighted, {:.3g} % unweighted".format(*errors)
        if self.worse(last.best, plain.best):
            return equal, False, f"equal weights of joints: {percent}"
        return problem, True, f"joints weighted by one over their noise, {noise}: {percent}"

    def _problem(self, w: np.ndarray) -> FoldProblem:
        return FoldProblem(self.model, self.folds, self.prior, w, self.options_given, self.estimator)

    # --- weights of the prior ------------------------------------------------------------------------------------

    def at(self, kind: str, exponent: float, problem: FoldProblem, weighted: bool, ridge: float = 0.0) -> _Setting:
        weight = 10.0**exponent
        if kind == "as given":
            regularization, entropic = self.fixed["euclidean"], self.fixed["entropic"]
            weight = entropic or regularization
        elif kind == "euclidean":
            regularization, entropic = weight, self.fixed["entropic"]
        else:
            regularization, entropic = max(ridge, self.fixed["euclidean"]) or EUCLIDEAN_WEIGHT, weight
        squares = problem.residuals(regularization, entropic)
        error = float(np.sqrt(squares.sum() / self.size))
        self.tried.append((kind, weighted, weight, error))
        return _Setting(kind, regularization, entropic, squares.sum(1), squares.sum(0), error)

    def curve(self, kind: str, problem: FoldProblem, weighted: bool) -> _Curve:
        """The best weight, and the strongest equally good one."""
        problem.near = {}  # from the strongest to the weakest, each from the previous result
        if kind == "as given":
            only = self.at(kind, 0.0, problem, weighted)
            return _Curve(only, only)
        tries = {float(e): self.at(kind, e, problem, weighted) for e in reversed(DECADES)}

        def best() -> float:
            return min(tries, key=lambda e: (tries[e].error, -e))

        while best() == min(tries) and min(tries) > MIN_EXPONENT and tries[best()].error > MIN_PRIOR_ERROR:
            tries[min(tries) - 1.0] = self.at(kind, min(tries) - 1.0, problem, weighted)
        problem.near = {}
        while best() == max(tries) and max(tries) < MAX_EXPONENT:
            tries[max(tries) + 1.0] = self.at(kind, max(tries) + 1.0, problem, weighted)
        centre = best()
        for e in (centre + 0.5, centre - 0.5):
            if MIN_EXPONENT < e < MAX_EXPONENT:
                tries[e] = self.at(kind, e, problem, weighted)
        top, taken = tries[best()], best()
        while taken + 0.5 <= MAX_EXPONENT:
            e = taken + 0.5
            tries[e] = tries.get(e) or self.at(kind, e, problem, weighted)
            if self.worse(tries[e], top):
                break
            taken = e
        return _Curve(top, tries[taken])

    def worse(self, t: _Setting, best: _Setting) -> bool:
        """Whether t is worse than the best by more than chance, or by more than TOLERATED_RISE."""
        return _beyond_chance(t, best) or t.error > (1.0 + TOLERATED_RISE) * best.error

    def clearly_worse(self, t: _Setting, best: _Setting) -> bool:
        """Whether t is worse than the best by more than chance, and by more than TOLERATED_RISE."""
        return _beyond_chance(t, best) and t.error > (1.0 + TOLERATED_RISE) * best.error

    def with_entropic(self, curve: _Curve, problem: FoldProblem, weighted: bool) -> _Setting:
        """The euclidean prior with as much of the entropic one as does not increase the error."""
        problem.near, out = {}, curve.chosen
        for e in range(-9, 1):
            both = self.at("euclidean and entropic", e, problem, weighted, ridge=curve.chosen.regularization)
            if self.worse(both, curve.best):
                return out
            out = both
        return out

    def away_from_the_edge(
        self, setting: _Setting, problem: FoldProblem, weighted: bool, best: float
    ) -> tuple[_Setting, str]:
        """(a setting whose bodies are not at the edge of physical feasibility, if possible; a description)."""
        if not uses_barrier(self.estimator) or "entropic" not in self.auto:
            return setting, ""
        model, stronger = self.model, setting
        prior_at_edge = at_the_edge(self.prior.x[: model.inertial].reshape(-1, 10), 2.0 * EDGE_RATIO)
        kind = setting.kind if setting.kind.endswith("entropic") else "euclidean and entropic"
        problem.near = {}
        while True:
            x = problem.estimate(stronger.regularization, stronger.entropic)
            edge = at_the_edge(x[: model.inertial].reshape(-1, 10), 1.5 * EDGE_RATIO) & ~prior_at_edge
            if not edge.any():
                return (
                    stronger,
                    ""
                    if stronger is setting
                    else "; made stronger because of bodies at the limit of what is physically possible",
                )
            names = ", ".join(n for n, e in zip(model.robot.body_names, edge) if e)
            exponent = np.log10(max(stronger.entropic, 10.0**MIN_EXPONENT)) + 0.5
            trial = self.at(kind, exponent, problem, weighted, ridge=setting.regularization)
            if exponent > MAX_EXPONENT or trial.error > (1.0 + MAX_EDGE_RISE) * best:
                return (
                    stronger,
                    f"; {names} remain nearly impossible, because a stronger prior increases the error too much",
                )
            stronger = trial

    # --- notes and findings --------------------------------------------------------------------------------------

    def options(self, setting: _Setting, w: np.ndarray | None, prior: Prior) -> dict[str, Any]:
        out = dict(self.options_given)
        for kind, name in (("euclidean", self.estimator.prior_weight), ("entropic", "entropic")):
            if name in self.auto:
                out[name] = setting.regularization if kind == "euclidean" else setting.entropic
        if "weights" in self.auto:
            out["weights"] = w
        if prior.replaced:
            out["prior"] = prior.x
        return out

    def prior_note(self, curves: list[_Curve], curve: _Curve, setting: _Setting) -> str:
        if setting.kind == "as given":
            return ""
        others = [
            f"{c.chosen.kind} {c.chosen.weight:.2g}: {100 * c.chosen.error:.3g} %" for c in curves if c is not curve
        ]
        best = (
            "" if curve.best is curve.chosen else f" (least {100 * curve.best.error:.3g} % at {curve.best.weight:.2g})"
        )
        return (
            f"{setting.kind}, weight {setting.weight:.2g}, by the error of samples left out of the fit,"
            f" {self.folds.description}: {100 * setting.error:.3g} %{best}" + "".join(f"; {x}" for x in others)
        )

    def finding(self, curve: _Curve) -> Finding | None:
        best = curve.best
        if best.kind == "as given" or best.error <= MIN_PRIOR_ERROR:
            return None
        if curve.chosen.weight >= 0.99 * 10.0**MAX_EXPONENT and best.error > MAX_PRIOR_ERROR:
            return Finding(
                "prior",
                f"no weight predicts the log better than the prior alone (error {100 * best.error:.3g} %)",
                "The log adds nothing to the model's bodies: check units and signs of torques and the order of"
                " joints, or record a richer motion",
            )
        if best.weight <= 10.01 * 10.0**MIN_EXPONENT:
            return Finding(
                "prior",
                f"the error decreases with the weight of the prior, down to the bound of the search"
                f" ({best.kind}, weight {best.weight:.2g}; error {100 * best.error:.3g} %)",
                "The model's bodies contradict the log: check their masses, and the model's geometry",
            )
        return None


LONGER_LOG_ADVICE = "Record a longer motion, or give the weights (--prior-weight, --noise-weights)"


def with_chosen_prior(
    estimator: Estimator,
    model: RegressorModel,
    training: Dataset,
    options: Mapping[str, Any],
    period: float | None,
    notes: dict[str, Any],
    findings: list[Finding],
    say: Callable[[str, float], None],
) -> dict[str, Any]:
    """The options for `fit`: weights that are open or "auto" are chosen; notes and findings get the reasons."""
    options = dict(options)
    if estimator.prior_weight is None:
        return options
    of_prior = [name for name in (estimator.prior_weight, "entropic") if name in estimator.options]
    if not any(name in options for name in of_prior):
        options |= dict.fromkeys(of_prior, AUTO)
    if "weights" in estimator.options:
        options.setdefault("weights", AUTO)
    if not any(map(is_auto, options.values())):
        return options
    say("choosing weights", 0.3)
    for folds, guard in ((FOLDS, None), (3, None), (3, 0.0), (2, 0.0)):
        try:
            choice = chosen(model, training, estimator, options, folds, guard, period)
        except ShortLogError:
            continue
        if folds < FOLDS:
            seen = f"the log is too short to compare weights of the prior on {FOLDS} parts of it: {folds} were used"
            findings.append(
                Finding("excitation", seen + (", next to each other" if guard == 0.0 else ""), LONGER_LOG_ADVICE)
            )
        notes |= choice.notes
        findings += choice.findings
        return choice.options
    seen = "the log is too short to choose weights by parts of it: the estimator's own are used"
    findings.append(Finding("excitation", seen, LONGER_LOG_ADVICE))
    return {name: value for name, value in options.items() if not is_auto(value)}
