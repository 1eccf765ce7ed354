"""`certify_lyapunov` and `region_of_attraction`: proofs about Lyapunov functions by interval arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from geomctrl.arguments import flag, shown
from geomctrl.control.plant import Plant
from geomctrl.control.progress import progress_with_cost
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot

from .certificates.certificate import SEMIDEFINITE, LyapunovCertificate
from .certificates.request import CertificateRequest
from .settings import Box, Budget, box_of


@named_arguments()
def certify_lyapunov(
    controller: Any,
    plant: Plant | Robot,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    outside: float | tuple[ArrayLike, ArrayLike] | None = None,
    parameters: float | tuple[ArrayLike, ArrayLike] = 0.0,
    rate: float = 0.0,
    offset: float = 0.0,
    levels: bool = True,
    budget: Budget | int = 200_000,
    progress: bool | Callable[[float], Any] = False,
) -> LyapunovCertificate:
    """Prove V > 0 and V' < - rate V + offset for all states of a box and all robots near the model.

    Parameters
    ----------
    controller : Controller
        A controller at a set point or with a moving reference. Of those with a state z only adaptive ones, with
        `true_parameters`, and a `Box` with z.
    plant : Plant or Robot
        The nominal model.
    box : Box, or a pair (q, v)
        The states, as a `Box` or as half widths [rad or m, rad/s or m/s]; tracking errors about a moving reference. If
        that is a sum of sinusoids, the claim is about all times, otherwise a `Box` with `times` is needed.
    outside : float or pair (q, v), optional
        Claim the decrease of V only outside the ellipsoid with these half axes. A number r means (r, 5 r): an error r
        that decays at 5/s, the default Lambda, has the velocity 5 r. By default the decrease is claimed everywhere,
        with V' <= offset at the equilibrium. An uncertain model needs `outside` or `offset`, because its equilibrium
        differs.
    parameters : float, or a pair of arrays (nbodies, 10)
        Uncertainty of all inertial parameters relative to the plant's (0.2 for 20 %), or lower and upper bounds.
    rate, offset : float
        The numbers of the claim [1/s, V/s], not negative.
    levels : bool
        Whether to compute level sets and a region of attraction; not possible for a box with times.
    budget : Budget or int
        Limits of the proof of each inequality, or only the number of boxes.
    progress : bool or function
        True for a bar, or a function that is called with the decided fraction of the box.

    Returns
    -------
    LyapunovCertificate
        True if everything is proved. `status` is "proved", "refuted", "undecided", or "semidefinite" if only V' <= 0 is
        proved; V <= `level` is the largest sublevel set known to lie in the box; solutions from there end below
        `ends_in`, where the errors are at most `ultimate_bound`; `counterexample` violates a refuted claim; `boxes` and
        `seconds` are the cost. `print` shows it as text, `save(path)` writes a proof for `recheck_lyapunov`.

    Raises
    ------
    ArgumentError
        For a box that is empty, infinite or inside `outside`; for joints with several degrees of freedom and
        controllers with a state that are not adaptive.
    UntraceableError
        With file and line, if the law can not be traced or if its trace computes something else than Python.

    Notes
    -----
    Each inequality is proved, refuted (with a state and a robot that violate it in interval arithmetic) or undecided.
    If only V' <= 0 can be proved, as for V' = -v . Kd v of a PD law, it is "semidefinite": the certificate says where
    V' vanishes and what LaSalle's theorem requires in addition. The proof is about the model in exact arithmetic with
    the floating-point numbers as exact constants; it does not cover rounding in the running code. It includes that V is
    continuous and zero at the equilibrium. Before the proof, the traced loop is compared with Python throughout the
    box. See docs/how-to/certify.md.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    >>> gc.testing.certify_lyapunov(law, arm, box=(0.1, 0.2), levels=False).proved
    True
    """
    levels = flag("levels", levels)
    asked = CertificateRequest(controller, plant, box, outside, parameters, rate, offset, budget)
    with progress_with_cost(progress, "certifying") as report:
        certificate = asked.certificate(
            [
                asked.run.answer(asked.positive),
                asked.run.answer(lambda: asked.moving_at_rest() or asked.decreasing(report)),
            ]
        )
    bounds_motions = certificate.proved or (asked.sliding and certificate.status == SEMIDEFINITE)
    if bounds_motions and levels and not asked.bounded:  # a bounded time interval implies nothing about later times
        asked.levels(certificate)
    return asked.recorded(certificate)


@named_arguments()
def region_of_attraction(
    controller: Any,
    plant: Plant | Robot,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    outside: float | tuple[ArrayLike, ArrayLike] | None = None,
    parameters: float | tuple[ArrayLike, ArrayLike] = 0.0,
    rate: float = 0.0,
    offset: float = 0.0,
    budget: Budget | int = 200_000,
) -> LyapunovCertificate:
    """Find and prove the largest level of V, approximately, whose sublevel set lies in the box and satisfies the claim.

    Use it if the inequality of `certify_lyapunov` does not hold on the whole box, for example with torque limits.

    Parameters
    ----------
    controller, plant, box, outside, parameters, rate, offset, budget
        As for `certify_lyapunov`.

    Returns
    -------
    LyapunovCertificate
        Its `level` is the proved one, `sampled` the level of the lowest violation that was sampled.

    Raises
    ------
    ArgumentError, UntraceableError
        As `certify_lyapunov`.

    Notes
    -----
    The search starts at the level of the lowest sampled violation and decreases in steps of a few per cent until a
    level is proved.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    >>> certificate = gc.testing.region_of_attraction(law, arm, (0.1, 0.4))
    >>> certificate.proved, certificate.level > 0
    (True, True)
    """
    if box_of(box).times is not None:
        raise ArgumentError(f"box: expected a Box without `times`, because those end, got {shown(box)}")
    asked = CertificateRequest(controller, plant, box, outside, parameters, rate, offset, budget)
    moving = asked.moving_at_rest()
    certificate = asked.certificate(
        [asked.run.answer(asked.positive)] if moving is None else [asked.positive(), moving]
    )
    if certificate.proved:
        asked.within_level(certificate)
    return asked.recorded(certificate)
