"""`find_lyapunov`: a Lyapunov function for a law that has none, fitted to samples and then proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, shown
from geomctrl.control.plant import Plant, plant_of
from geomctrl.control.progress import progress_function
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot

from .certificates import arguments
from .certificates.candidates import CandidateLoop, FoundLaw, unstable_direction
from .certificates.certificate import PROVED, REFUTED, UNDECIDED, LyapunovCertificate
from .certificates.fitting import Fit, Fitting
from .certificates.request import CertificateRequest
from .settings import Box, Budget, box_of, budget_of

MAX_PROOFS = 4  # candidates that are proved or refined with the states at which their proof failed
SUFFICIENT_LEVEL_RATIO = 0.9  # of the level of the samples: a proof below is repeated with more states
MAX_DEGREE = 8
UNSTABLE_MESSAGE = (
    "the linearisation has an unstable mode, shown in interval arithmetic: motions from states along this direction"
    " leave the equilibrium, however near they start, so no V falls along them"
)
MARGINAL = (
    "the linearisation has no stability margin: a V with V' < 0 would have to be found beyond second order, or V' <= 0"
    " with LaSalle's theorem"
)
OPEN = "the certificate says what is open: try more boxes in `budget`, a smaller box or another `degree`"
NO_CANDIDATE = "no V of this degree fits the samples: try a higher `degree` or a smaller box"


@dataclass(frozen=True, eq=False)
class FoundLyapunov:
    """The result of `find_lyapunov`; true if V is proved.

    Attributes
    ----------
    status : str
        "proved", "refuted" (no V exists at this equilibrium) or "undecided".
    controller : Controller or None
        The law with the best V as its `lyapunov`, for `certify_lyapunov`, `recheck_lyapunov`, simulations and monitors;
        its `in_domain` is V <= `level`.
    certificate : LyapunovCertificate or None
        The proof of V > 0 on the box and of V' < 0 on V <= `level`.
    terms : mapping of str to float
        The coefficients of V, by terms in e = q - q_d, v and the momenta p = M v.
    share : float
        The share of simulated states that V <= `level` contains, of those whose motions converge inside the box.
    sampled : float
        The same share for the largest level set of this V that lies in the box and has no sampled violation of V' < 0.
    counterexample : array (2 nv,) or None
        For "refuted", a state (q, v) from which the motion departs.
    reason : str
        Why nothing is proved.
    """

    status: str
    controller: FoundLaw | None
    certificate: LyapunovCertificate | None
    terms: dict[str, float]
    share: float
    counterexample: np.ndarray | None = None
    reason: str = ""
    sampled: float = 0.0

    @property
    def level(self) -> float | None:
        """The certified level; None if nothing is proved."""
        return self.certificate.region if self.certificate is not None else None

    def __bool__(self) -> bool:
        return self.status == PROVED

    def __str__(self) -> str:
        out = [f"{self.status}: a Lyapunov function for the law"]
        if self.terms:
            out.append("V = " + " ".join(f"{x:+.6g} {name}" for name, x in self.terms.items()))
        if self.status == PROVED:
            out.append(f"V <= {self.level:.6g} contains {100.0 * self.share:.3g} % of the sampled converging states")
            out.append(f"the largest level set of V without a sampled violation contains {100.0 * self.sampled:.3g} %")
        if self.counterexample is not None:
            out.append(f"at (q, v) = {self.counterexample.tolist()}")
        out += [self.reason] * bool(self.reason)
        return "\n".join([*out, *([] if self.certificate is None else [str(self.certificate)])])


@named_arguments()
def find_lyapunov(
    controller: Any,
    plant: Plant | Robot,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    degree: int = 2,
    budget: Budget | int = 200_000,
    progress: bool | Callable[[float], Any] = False,
) -> FoundLyapunov:
    """Find a Lyapunov function V of a law, and prove it on the largest level set in a box that the proof reaches.

    Parameters
    ----------
    controller : Controller
        A law without state z at a set point: its `reference`, its `q_d` or the `equilibrium` of the box. A V of its own
        is not used.
    plant : Plant or Robot
        The true robot, with joints of one degree of freedom.
    box : Box, or a pair (q, v)
        The states, as a `Box` without `times`, `disturbance` and `friction`, or as half widths
        [rad or m, rad/s or m/s].
    degree : int
        The degree of V as a polynomial of e and v, 2 to 8. A higher degree fits the region of attraction better and
        costs more.
    budget : Budget or int
        Limits of each proof, and the seed of the samples.
    progress : bool or function
        True for a bar, or a function that is called with the fraction done.

    Returns
    -------
    FoundLyapunov
        True if V is proved. `controller` is the law with V, `certificate` the proof, `level` the level of the certified
        region of attraction, and `share` how much of the sampled region it contains.

    Raises
    ------
    ArgumentError
        For arguments that do not fit, and as `certify_lyapunov`.
    UntraceableError
        If the law can not be traced.

    Notes
    -----
    V is a sum of monomials of e = q - q_d and v, or of the terms of mechanics: kinetic energy, products of e and the
    momenta M v, monomials of e, and the potential energy. Semidefinite programs on samples choose the coefficients so
    that V' < 0 where V < 1, and V > 1 at samples from which simulated motions do not converge inside the box; at the
    equilibrium they are linear matrix inequalities. `region_of_attraction` then proves the result. States at which a
    proof fails are added to the samples, and V is fitted again. Samples and simulations decide nothing.

    "refuted" says that no Lyapunov function exists: the set point is no equilibrium, or its linearisation is unstable,
    both shown in interval arithmetic.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> rod = gc.inertia.from_com(1.0, (0.0, 0.0, 0.5), np.diag([0.08, 0.08, 1e-4]))
    >>> pendulum = gc.Robot.build([gc.Body("rod", None, gc.Joint.revolute((0, 1, 0)), None, rod)])
    >>> law = lambda t, q, v, z: gc.Command(pendulum.gravity_force(q) - 30.0 * q - 20.0 * v)
    >>> found = gc.testing.find_lyapunov(law, pendulum, gc.testing.Box(1.0, 4.0, equilibrium=np.zeros(1)))
    >>> found.status, found.share > 0.5
    ('proved', True)
    """
    plant, box = plant_of("plant", plant, state=False), box_of(box)
    budget = budget_of(budget, ("resume",))
    degree = count("degree", degree, 2, MAX_DEGREE)
    if not (box.times is box.disturbance is box.friction is None):
        raise ArgumentError(f"box: expected a Box without `times`, `disturbance` and `friction`, got {shown(box)}")
    arguments.require_autonomous(controller, plant)
    q_d = arguments.equilibrium_of(controller, plant.robot, box.equilibrium)
    half = arguments.half_widths("box", (box.q, box.v), plant.robot)
    search = _Search(controller, plant, q_d, half, degree, budget)
    with progress_function(progress, "searching") as report:
        return search.found(report)


class _Search:
    """Candidates and their proofs."""

    def __init__(self, law: Any, plant: Plant, q_d: np.ndarray, half: np.ndarray, degree: int, budget: Budget):
        self.plant, self.q_d, self.half, self.budget = plant, q_d, half, budget
        kinds = (False,) if plant.robot.nv == 1 else (True, False)
        self.loops = [CandidateLoop(law, plant, q_d, degree, mechanical) for mechanical in kinds]
        n = plant.robot.nv
        self.box = Box(half[:n], half[n:], equilibrium=q_d)

    def found(self, report: Callable[[float], Any]) -> FoundLyapunov:
        loop = self.loops[0]
        A_lower, A_upper = loop.jacobian()
        refuted = self.impossible(A_lower, A_upper)
        if refuted is not None:
            return refuted
        A = 0.5 * (A_lower + A_upper)
        if not np.isfinite(A).all() or np.linalg.eigvals(A).real.max() > -1e-9 * np.abs(A).max():
            return FoundLyapunov(UNDECIDED, None, None, {}, 0.0, reason=MARGINAL)
        best = None
        for k, loop in enumerate(self.loops):  # that of mechanics first: the proof of its V' needs no M^-1
            if best:
                break
            fitting = Fitting(loop, A, self.half, self.budget.seed)
            first, size = k / len(self.loops), 0.5 / len(self.loops)
            fits = fitting.fits(lambda done, first=first, size=size: report(first + size * done))
            if fits:
                after = first + size
                result = self.proved(fitting, fits[0], lambda done, a=after, size=size: report(a + size * done))
                best = result if best is None or bool(result) > bool(best) else best
        return FoundLyapunov(UNDECIDED, None, None, {}, 0.0, reason=NO_CANDIDATE) if best is None else best

    def impossible(self, A_lower: np.ndarray, A_upper: np.ndarray) -> FoundLyapunov | None:
        """The refuted result if no V exists: the set point is no equilibrium, or it is unstable."""
        loop = self.loops[-1]
        squares = np.array([float(len(set(name.split())) == 1) for name in loop.names])
        squares[[len(name.split()) > 2 for name in loop.names]] = 0.0
        request = CertificateRequest(loop.found_law(squares), self.plant, self.box, None, 0.0, 0.0, 0.0, self.budget)
        moving, rest = request.moving_at_rest(), np.append(self.q_d, np.zeros(len(self.q_d)))
        if moving is not None:
            return FoundLyapunov(REFUTED, None, None, {}, 0.0, rest, moving.statement)
        direction = unstable_direction(A_lower, A_upper)
        if direction is None:
            return None
        x = direction * float((1e-3 * self.half / np.maximum(np.abs(direction), 1e-12)).min())
        return FoundLyapunov(REFUTED, None, None, {}, 0.0, rest + x, UNSTABLE_MESSAGE)

    def proved(self, fitting: Fitting, fit: Fit, report: Callable[[float], Any]) -> FoundLyapunov:
        """The largest proved level set of a fit and of its refinements."""
        best, weights = None, fitting.weights(fit.coefficients)
        for k in range(MAX_PROOFS):
            result, states = self.certified(fitting, fit)
            if best is None or (bool(result), result.share) > (bool(best), best.share):
                best = result
            report((k + 1) / MAX_PROOFS)
            if (result and result.share >= SUFFICIENT_LEVEL_RATIO * fit.share) or not len(states):
                break
            fitting.refuted(states, fit.coefficients)
            coefficients = fitting.solved(weights)
            if coefficients is None:
                break
            fit, weights = fitting.fit(coefficients), fitting.weights(coefficients)
            fitting.add(coefficients)
        assert best is not None
        return best

    def certified(self, fitting: Fitting, fit: Fit) -> tuple[FoundLyapunov, np.ndarray]:
        """(The result for a fit, states (m, 2n) about the equilibrium at which its proof failed)."""
        law = fitting.loop.found_law(fit.coefficients)
        request = CertificateRequest(law, self.plant, self.box, None, 0.0, 0.0, 0.0, self.budget)
        certificate = request.certificate([request.positive()])
        left = [c.outcome.left for c in certificate.claims if c.outcome]
        if certificate.proved:
            left = request.within_level(certificate)
        request.recorded(certificate)
        states = [np.zeros((0, len(self.half))), *(0.5 * (lo + hi)[:, : len(self.half)] for lo, hi in left)]
        wrong = certificate.counterexample
        if wrong is not None:
            states.append(np.append(wrong.q - self.q_d, wrong.v)[None])
        status, share, reason = UNDECIDED, 0.0, OPEN
        if certificate.region is not None:
            level = certificate.region * (fit.coefficients[0] if fitting.loop.mechanical else 1.0)
            status, share, reason = PROVED, fitting.share(fit.coefficients, level), ""
            law = fitting.loop.found_law(fit.coefficients, level)
        terms = dict(zip(fitting.loop.names, law.coefficients.tolist()))
        result = FoundLyapunov(status, law, certificate, terms, share, reason=reason, sampled=fit.share)
        return result, np.concatenate(states)
