"""Find torques in other units: of one joint relative to the others, and of all relative to the masses of the model.

One joint: tau_k = s (Y_k x + known) with s free, all parameters x fitted again. Inertial parameters are shared with the
torques of other joints, and the armature is known, so s is determined as far as joint k feels more than its own
friction and inertia. The likelihood is computed for all s; the interval consists of those within
INTERVAL_LOG_LIKELIHOOD of the best. If it excludes 1 and is narrow, the unit is doubted. If it includes 1/2 or 2, the
log can not exclude a unit that far off, and the report says so. Torques that are wrong by a factor of two or more are
therefore reported in one of the two ways, unless the interval misses the true value.

All joints: tau = s (Y_inertial x0) + friction and offsets, with the bodies x0 of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.model.regressor_model import RegressorModel

from .evidence import MIN_SINGULAR_VALUE, Evidence, Explanation, FreeFit, Products, fit_rows
from .rows import Rows

INTERVAL_LOG_LIKELIHOOD, FATAL_LOG_LIKELIHOOD = 8.0, 12.0  # four and five standard deviations
MIN_EVIDENCE = 2.0  # log likelihood: a scale with less is not examined further
MIN_LOG_SCALE = np.log(1.3)  # smallest |log s| that matters
RELEVANT_LOG_SCALE = np.log(2.0)  # |log s| that a log should determine
MAX_SCALES = 3  # scales that are tested in other views of the log
NEAR_ONE = np.linspace(-1.5, 1.5, 13)  # log s
WIDE_LOG_SCALES = np.geomspace(2.0, np.log(1e5), 6)
LOG_SCALES = np.sort(np.concatenate((NEAR_ONE, WIDE_LOG_SCALES, -WIDE_LOG_SCALES)))
REFINEMENTS = 4  # refinements of the grid about the best, each to a quarter
FATAL_FACTOR, DOUBTFUL_FACTOR = 100.0, 5.0  # factor between the log's torques and those of the model's bodies
MIN_SIGMA = 4.0  # standard deviations


@dataclass(frozen=True, eq=False)
class Profile:
    """Likelihood of scales of some joints' torques: `log_scales` (m,) in order, and `below` (m,), the log likelihood of
    the best minus theirs.
    """

    joints: tuple[int, ...]
    log_scales: np.ndarray
    below: np.ndarray

    @property
    def log_scale(self) -> float:
        """The most likely log scale."""
        return float(self.log_scales[np.argmin(self.below)])

    @property
    def evidence(self) -> float:
        """Gain in log likelihood of the best scale over 1."""
        return float(np.interp(0.0, self.log_scales, self.below))

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high) of log s; infinite if the grid ends inside the interval."""
        inside = np.flatnonzero(self.below < INTERVAL_LOG_LIKELIHOOD)
        return self._edge(inside[0], -1), self._edge(inside[-1], 1)

    def _edge(self, i: int, step: int) -> float:
        """The interval's end between points i and i + step, by linear interpolation of the likelihood's root."""
        if not 0 <= i + step < len(self.log_scales):
            return step * np.inf
        (x, y), (r0, r1) = self.log_scales[[i, i + step]], np.sqrt(self.below[[i, i + step]])
        return float(x + (np.sqrt(INTERVAL_LOG_LIKELIHOOD) - r0) / (r1 - r0) * (y - x))

    @property
    def wrong(self) -> bool:
        """Whether the scale is determined, and differs from 1. Torques that any small scale explains equally well are
        torques that the bodies do not explain in any unit, and so are those whose interval is wide beside its distance
        from 1."""
        low, high = self.interval
        return (
            self.evidence > INTERVAL_LOG_LIKELIHOOD
            and abs(self.log_scale) > MIN_LOG_SCALE
            and bool(high - low < 2.0 * max(RELEVANT_LOG_SCALE, low, -high))
        )

    @property
    def open(self) -> bool:
        """Whether half or twice the torques would fit as well."""
        low, high = self.interval
        return not self.wrong and (low < -RELEVANT_LOG_SCALE or high > RELEVANT_LOG_SCALE)


def likely_scales(evidence: Evidence, rows: Rows, all_profiles: list[Profile]) -> list[Explanation]:
    """Joints, or those from one on to the last (small drives), whose scale is not 1, most explanatory first."""
    wrong = sorted((p for p in all_profiles if p.wrong), key=lambda p: -p.evidence)
    return [_mistake(evidence, rows, p) for p in wrong[:MAX_SCALES]]


def _mistake(evidence: Evidence, rows: Rows, profile: Profile) -> Explanation:
    names = ", ".join(repr(evidence.names[k]) for k in profile.joints)
    right = _in_unit(rows, profile.joints, profile.log_scale)

    def change(rows: Rows) -> Rows:
        return _in_unit(rows, profile.joints, profile.log_scale)

    clause = f"the torques of {names} are wrong by a factor"
    return Explanation(profile.evidence, _doubt(names, profile), clause, right, fit_rows(evidence.model, right), change)


def profiles(model: RegressorModel, rows: Rows, fit: FreeFit) -> list[Profile]:
    """Profiles of every joint with torques, and of the joints from one on to the last; none for robots of one joint."""
    n = model.robot.nv
    if n < 2:
        return []
    Y, armature_torques = rows.regressor(model), rows.a * model.known_armature
    data = Products.of(np.concatenate((Y, armature_torques[..., None], rows.tau[..., None]), -1), rows.used)
    sets = [(k,) for k in range(n)] + [tuple(range(k, n)) for k in range(2, n - 1)]
    return [_of(joints, model, rows, data, fit) for joints in sets if fit.weights[list(joints)].all()]


def _of(joints: tuple[int, ...], model: RegressorModel, rows: Rows, data: Products, fit: FreeFit) -> Profile:
    """The profile, with the number of independent residuals at its best scale if that is far from 1."""
    first = _profile(joints, data, fit)
    if first.evidence < MIN_EVIDENCE or abs(first.log_scale) < MIN_LOG_SCALE:
        return first
    there = fit_rows(model, _in_unit(rows, joints, first.log_scale))
    return _profile(joints, data, replace(fit, freedom=there.freedom))


def _in_unit(rows: Rows, joints: tuple[int, ...], log_scale: float) -> Rows:
    """Rows with torques of these joints divided by their scale."""
    group = np.isin(np.arange(rows.tau.shape[1]), joints)
    return rows.with_torques(np.diag(np.where(group, np.exp(-log_scale), 1.0)))


def _profile(joints: tuple[int, ...], data: Products, fit: FreeFit) -> Profile:
    """The likelihood over LOG_SCALES, from 1 outwards, then refined about the best."""
    likelihoods: dict[float, tuple[float, np.ndarray]] = {}
    middle = int(np.argmin(np.abs(LOG_SCALES)))
    for direction in (LOG_SCALES[middle:], LOG_SCALES[:middle][::-1]):
        weights = fit.weights
        for g in direction.tolist():
            likelihoods[g] = likelihood, weights = _at(g, joints, data, fit, weights)
    for _ in range(REFINEMENTS):
        log_scales = sorted(likelihoods)
        best = max(range(len(log_scales)), key=lambda i: likelihoods[log_scales[i]][0])
        for low, high in zip(log_scales[max(best - 1, 0) : best + 1], log_scales[max(best, 1) : best + 2]):
            for g in np.linspace(low, high, 5)[1:-1].tolist():
                likelihoods[g] = _at(g, joints, data, fit, likelihoods[log_scales[best]][1])
    log_scales = np.array(sorted(likelihoods))
    likelihood = np.array([likelihoods[g][0] for g in log_scales])
    return Profile(joints, log_scales, likelihood.max() - likelihood)


def _at(
    g: float, joints: tuple[int, ...], data: Products, fit: FreeFit, weights: np.ndarray, iterations: int = 3
) -> tuple[float, np.ndarray]:
    """(log likelihood of the scale e^g, joints' weights there): tau / s - known = Y x."""
    P = data.products
    s = np.ones(len(P))
    s[list(joints)] = np.exp(g)
    m = P.shape[1] - 1
    last = P[:, m] / s[:, None] - P[:, m - 1]  # products of [Y, known, tau] with tau / s - known
    products = P[:, :m, :m].copy()
    products[:, -1] = products[:, :, -1] = last[:, :m]
    products[:, -1, -1] = last[:, m] / s - last[:, m - 1]
    scaled = Products(products, data.counts)
    live = fit.weights > 0.0
    for _ in range(iterations):
        residuals = scaled.residuals(scaled.solve(weights))
        weights = np.where(live, np.sqrt(fit.freedom) / np.where(live, residuals, 1.0), 0.0)
    return -float((fit.freedom * np.log(np.where(live, s * residuals, 1.0)))[live].sum()), weights


def _doubt(names: str, profile: Profile) -> Finding:
    low, high = np.exp(profile.interval)
    seen = (
        f"the torques of {names} are {np.exp(profile.log_scale):.3g} times those that the other joints' torques imply"
        f" for the same bodies (between {low:.2g} and {high:.2g})"
    )
    advice = (
        "Check its unit and gear ratio (--unit tau=mN m, --gears), or give the drive's gain if it is a current"
        " (--column i=..., --current-gains)"
    )
    return Finding("scale", seen, advice, profile.evidence > FATAL_LOG_LIKELIHOOD)


def undetermined_scales(evidence: Evidence, all_profiles: list[Profile], findings: Sequence[Finding]) -> list[str]:
    """A sentence on joints with torques that could be half or twice as large by this log. Joints with a doubted scale
    are not repeated."""
    if evidence.model.robot.nv == 1:
        return ["this log does not determine by which factor the torques may be off, because there is no other joint"]
    doubted = " ".join(finding.seen for finding in findings if finding.kind == "scale")
    single = [p for p in all_profiles if len(p.joints) == 1 and repr(evidence.names[p.joints[0]]) not in doubted]
    open_ = [p for p in single if p.open or p.wrong]  # wrong in these rows only, not in other views of the log
    if not open_:
        return []
    which = ", ".join(f"{evidence.names[p.joints[0]]!r} {_range(p)}" for p in open_)
    return [
        "this log does not determine by which factor a joint's torques may be off, because its own friction and"
        f" inertia would compensate it: {which}"
    ]


def _range(profile: Profile) -> str:
    low, high = np.exp(profile.interval)
    low, high = (low, high) if profile.wrong else (min(low, 1.0), max(high, 1.0))
    bounds = ([f"from {low:.2g}"] if low > 0.0 else []) + ([f"to {high:.2g}"] if np.isfinite(high) else [])
    return (" ".join(bounds) or "any") + (", though not in all of the log" if profile.wrong else "")


def against_masses(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    """If the model has masses: the factor by which all torques are off."""
    model = evidence.model
    bodies = model.robot.parameters
    if not (bodies[:, 0] > 0.0).any():
        return []
    Y, torques = model.regressor(rows.q, rows.v, rows.a), rows.torques(model)
    own = Y[..., : model.inertial] @ bodies.ravel()
    weights = rows.used / np.maximum(np.sqrt(np.mean(torques**2, axis=0)).max(), 1e-300)
    A = np.concatenate((own[..., None], Y[..., model.inertial :]), -1) * weights[..., None]
    A, b = A.reshape(-1, A.shape[-1]), (torques * weights).ravel()
    if np.linalg.norm(A[:, 0]) < 1e-9:
        return []
    length = np.maximum(np.linalg.norm(A, axis=0), 1e-12 * np.linalg.norm(A[:, 0]))
    inverse = np.linalg.pinv(A / length, MIN_SINGULAR_VALUE)
    values = inverse @ b / length
    s, left = float(values[0]), float(np.linalg.norm(b - A @ values))
    deviation = float(np.linalg.norm(inverse[0]) / length[0]) * left / np.sqrt(max(fit.independent.sum(), 1.0))
    if s < MIN_SIGMA * deviation or abs(np.log(s)) < np.log(DOUBTFUL_FACTOR):
        return []
    seen = f"all torques are {s:.3g} times those of the model's own bodies, of {bodies[:, 0].sum():.4g} kg together"
    advice = (
        "Check the unit of the torques: N mm, motor side (--gears), currents (--column i=..., --current-gains); or the"
        " model's masses are a guess"
    )
    return [Finding("scale", seen, advice, bool(abs(np.log(s)) > np.log(FATAL_FACTOR)))]
