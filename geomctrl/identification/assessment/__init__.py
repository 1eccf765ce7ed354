"""Assess an identification: each check reports an observation with numbers, and advice.

    assessment = report.assessment  # .status "trust", "doubts" or "distrust"; .findings; .text()

`search` compares explanations of what is wrong with the log: signs, swapped joints, couplings, scales, a delay, a
tilted base, a drift. A fatal one must also hold in other views of the log.

The other checks are grouped by file; `CHECKS` lists them. A check is a function of `Evidence` that returns findings.
Checks of rows (`ON_ROWS`, `ON_ALL_ROWS`) get the rows after the mistakes that the search has found are undone, so that
one mistake gives one finding; checks in `ON_ROWS` are confirmed in other views. To add a check, write it, name its kind
in `findings.KINDS`, and add it to `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from geomctrl.identification.findings import Assessment, Finding

from .evidence import Evidence
from .fit_checks import bodies, converged, explained, model_errors, prior, unseen
from .log_checks import excited, recorded, uncertain_parameters
from .scales import against_masses
from .search import confirmed, undo_mistakes
from .trials import couplings, driving

ON_ROWS = (driving, couplings)
ON_ALL_ROWS = (against_masses, excited)
CHECKS = (recorded, explained, unseen, prior, converged, bodies)


def assess(evidence: Evidence, findings: Sequence[Finding] = (), ignore: Sequence[str] = ()) -> Assessment:
    """Return the assessment; findings: those that exist already."""
    seen = undo_mistakes(evidence)
    findings_so_far = list(seen.findings)
    for check in ON_ROWS:
        findings_so_far += confirmed(evidence, seen.changes, check(evidence, seen.rows, seen.fit), check)
    for check in ON_ALL_ROWS:
        findings_so_far += check(evidence, seen.rows, seen.fit)
    for check in CHECKS:
        findings_so_far += check(evidence)
    findings_so_far += findings
    # this explains why unseen motion is predicted badly
    if any(finding.kind == "excitation" for finding in findings_so_far):
        findings_so_far = [
            replace(finding, fatal=False) if finding.kind == "unseen" else finding for finding in findings_so_far
        ]
    return Assessment.of(
        findings_so_far,
        ignore,
        [*seen.notes, *uncertain_parameters(evidence, findings_so_far), *model_errors(evidence, seen.rows, seen.fit)],
    )
