"""`recheck_lyapunov`: an independent check of a saved proof against the law, the robot and the claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import SCALARS, count, is_a, number, path_of, shown
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.files import read_arrays
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot

from .certificates.certificate import LyapunovCertificate, require_proved
from .certificates.level_sets import least_on_boundary
from .certificates.recheck import CheckError, recheck
from .certificates.request import CertificateRequest
from .certificates.resuming import arrays_of
from .certificates.task import Task
from .certificates.validity import exists, is_continuous
from .settings import Box


@named_arguments()
def recheck_lyapunov(
    proof: str | Path | LyapunovCertificate,
    controller: Any = None,
    plant: Plant | Robot | None = None,
    box: Box | Any = None,
    *,
    outside: Any = None,
    parameters: Any = 0.0,
    rate: float = 0.0,
    offset: float = 0.0,
    level: float | None = None,
    processes: int = 1,
) -> str:
    """Check a file of `LyapunovCertificate.save`, or a certificate, with python-flint; return what was checked as text.

    Parameters
    ----------
    proof : path or LyapunovCertificate
        The file, of which only the boxes are read, or the certificate.
    controller, plant, box, outside, parameters, rate, offset
        The arguments of `certify_lyapunov`, from which inequalities, derivatives and lemmas are derived again. They may
        be omitted for a certificate.
    level : float, optional
        The level of the certificate, for `region_of_attraction`.
    processes : int
        Number of processes. A box takes between some milliseconds (two links) and a tenth of a second (seven joints).

    Returns
    -------
    str
        What was checked.

    Raises
    ------
    CheckError
        If an inequality can not be confirmed, or if the file belongs to another claim.
    ArgumentError
        If the file is invalid, and as for `certify_lyapunov`.
    ImportError
        Without python-flint.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    >>> proof = gc.testing.certify_lyapunov(law, arm, box=(0.1, 0.2), levels=False)
    >>> print(gc.testing.recheck_lyapunov(proof))
    confirmed with python-flint: 2 inequalities on 2 boxes (2 evaluated); 4 lemmas at other points
    """
    processes = count("processes", processes, 1)
    kept = is_a(proof, LyapunovCertificate)
    claim = (outside, level, controller, plant, box)
    default = all(is_a(x, SCALARS) and x == 0 for x in (parameters, rate, offset))
    if kept and default and all(x is None for x in claim):
        require_proved(proof)
        return recheck(
            {c.statement: c.task for c in proof.claims if c.task}, proof.lemmas, arrays_of(proof.claims), processes
        )
    leaves = arrays_of(proof.claims) if kept and proof.proved else _read(proof)  # pyright: ignore[reportArgumentType]
    if controller is None or plant is None or box is None:
        raise ArgumentError("controller, plant, box: expected those of the proof, which the file does not contain")
    asked = CertificateRequest(controller, plant, box, outside, parameters, rate, offset, 1)
    if level is not None:
        level = number("level", level, "a level of V, positive", lambda x: 0.0 < x < np.inf)
    positive, (task, statement) = asked.positive_tasks(), asked.decrease()
    if level is not None:
        task, statement = asked.below(task, statement, level)
        if not least_on_boundary(asked.bounds(-asked.e.value), asked.box) >= level:
            raise CheckError(f"V <= {level!r} is not shown to be inside the box")
    first = next((w for w in leaves["words"].tolist() if w in positive), next(iter(positive), ""))
    tasks: dict[str, Task] = {k: x for k, x in positive.items() if k == first} | {statement: task}
    fields = {"words", *(f"{k}_{end}" for k in range(len(tasks)) for end in ("lo", "hi"))}
    if any("left" in name for name in leaves):
        raise CheckError("proof: expected a proved certificate, got the boxes of an undecided one")
    if leaves["words"].tolist() != list(tasks) or set(leaves) != fields:
        raise CheckError(f"proof: expected the inequalities {list(tasks)}, got {leaves['words'].tolist()!s:.200}")
    if not asked.is_zero_at_rest():
        raise CheckError("V is not shown to be zero at the equilibrium")
    if not is_continuous(asked.e, asked.box):
        raise CheckError("V is not shown to be continuous")
    if not exists(asked.e, asked.box):
        raise CheckError("law and plant are not shown to be defined in the whole box")
    return recheck(tasks, asked.e.lemmas, leaves, processes)


def _read(proof: str | Path) -> dict[str, np.ndarray]:
    path = path_of("proof", proof)
    try:
        arrays = read_arrays(path)
        if "words" not in arrays or arrays["words"].dtype.kind != "U" or arrays["words"].ndim != 1:
            raise ValueError("the file contains no inequalities")
        if any(x.dtype.kind != "f" for name, x in arrays.items() if name != "words"):
            raise ValueError("boxes must be arrays of floats")
    except FileNotFoundError:
        raise ArgumentError(f"proof: no such file: {str(proof)!r}") from None
    except (OSError, ValueError) as error:
        expected = f"proof: expected what LyapunovCertificate.save writes, got {shown(proof)}"
        raise ArgumentError(f"{expected} ({error!s:.80})") from None
    return arrays
