"""One topic of several."""

from __future__ import annotations

from collections.abc import Mapping

from geomctrl.identification.errors import DataError

USUAL = "joint_states"


def chosen(label: str, topics: Mapping[str, str], wanted: str | None) -> str:
    """The one of joint states that is wanted; without a wish the only one, or the one called /joint_states.

    topics: by name, what is said of each. Raises DataError.
    """
    listing = ", ".join(f"{name or 'without a name'} ({remark})" if remark else name for name, remark in topics.items())
    if wanted is not None:
        matching = [name for name in topics if name.strip("/") == wanted.strip("/")]
        if not matching:
            raise DataError(f"{label}: topic: no joint states on {wanted!r}; there are {listing}")
        return matching[0]
    if len(topics) == 1:
        return next(iter(topics))
    usual = [name for name in topics if name.strip("/") == USUAL]
    if len(usual) == 1:
        return usual[0]
    raise DataError(
        f"{label}: topic: expected one of joint states, got {len(topics)}: {listing}; choose by topic=..."
        f" (identify: --topic {next(iter(topics))})"
    )
