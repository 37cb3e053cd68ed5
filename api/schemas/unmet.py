"""What of a set's targets is not met, in words."""

from collections.abc import Mapping
from typing import Any

MOST_UNMET = 10
"""Sentences that are shown of a set; a match compares hundreds of values."""


def unmet_sentences(report: Mapping[str, Any]) -> list[str]:
    """The targets that a set misses, a sentence each, the worst first.

    Args:
        report: A dataset's: ``unmet`` has the misses of a match, of demands or of a gap.
    """
    return [_sentence(one) for one in sorted(report.get("unmet", ()), key=off_by, reverse=True)]


def off_by(one: Mapping[str, Any]) -> int:
    """The number of frames by which a target is missed."""
    return int(one.get("short_by") or one.get("over_by") or 0)


def _sentence(one: Mapping[str, Any]) -> str:
    name = one.get("demand") or f"{one['marginal']} {one['value']}"
    reason = one.get("reason") or f"short by {one['short_by']:,} of {one['wanted']:,} frames"
    # A bin's name may end in a colon: "1000:" is 1000 and more.
    return f"{name}{' ' if name.endswith(':') else ': '}{reason}"
