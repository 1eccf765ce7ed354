"""Whether to trust an identification: checks that each say what was seen, in numbers, and what to do.

    assessment = report.assessment  # .status "trust", "doubts" or "distrust"; .findings; .text()

`search` tests explanations of what is wrong with the log against each other: signs, swaps, couplings, scales, a delay,
a tilted base, a drift. One that is fatal also holds in other views of the log.

One file a family of other checks; `CHECKS` has them all. A check is a function of `Evidence` that returns doubts; those
that look at rows (`ON_ROWS`, `ON_ALL_ROWS`) see them with the mistakes undone that the search has found, so that one
mistake is one doubt; those in `ON_ROWS` are confirmed in other views. To add a check write it, name its kind in
`findings.KINDS`, and put it in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from geomctrl.identification.findings import Assessment, Finding

from .causes import estimated_delay
from .evidence import Evidence
from .fit_checks import bodies, converged, explained, lacking, prior, unseen
from .log_checks import excited, recorded, vague
from .scales import against_masses
from .search import confirmed, undone
from .trials import couplings, driving

__all__ = [
    "CHECKS",
    "ON_ALL_ROWS",
    "ON_ROWS",
    "Assessment",
    "Evidence",
    "assess",
    "estimated_delay",
]

ON_ROWS = (driving, couplings)
ON_ALL_ROWS = (against_masses, excited)
CHECKS = (recorded, explained, unseen, prior, converged, bodies)


def assess(evidence: Evidence, findings: Sequence[Finding] = (), ignore: Sequence[str] = ()) -> Assessment:
    """The verdict; doubts: those there are already."""
    seen = undone(evidence)
    findings_so_far = list(seen.findings)
    for check in ON_ROWS:
        findings_so_far += confirmed(evidence, seen.changes, check(evidence, seen.rows, seen.fit), check)
    for check in ON_ALL_ROWS:
        findings_so_far += check(evidence, seen.rows, seen.fit)
    for check in CHECKS:
        findings_so_far += check(evidence)
    findings_so_far += findings
    if any(
        finding.kind == "excitation" for finding in findings_so_far
    ):  # that says why unseen motion is predicted badly
        findings_so_far = [
            replace(finding, fatal=False) if finding.kind == "unseen" else finding for finding in findings_so_far
        ]
    return Assessment.of(
        findings_so_far,
        ignore,
        [*seen.notes, *vague(evidence, findings_so_far), *lacking(evidence, seen.rows, seen.fit)],
    )
