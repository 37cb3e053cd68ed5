"""Names of objects: DNS labels by which a second submission meets the first."""

import hashlib
import re
from pathlib import Path

MOST_CHARS = 50
"""Of an object's name: pods have up to 13 more in a label of 63."""
_HASH_CHARS = 10
JOB, ATTEMPT, ROLE = "framesift.io/job", "framesift.io/attempt", "framesift.io/role"
"""Labels: the job's folder and the attempt, both hashed, and what an object is for."""
FOLDER, NAME = "framesift.io/folder", "framesift.io/name"
"""Annotations: the job's folder, and the attempt's name."""
CONDUCTOR, STAGE = "conductor", "stage"


def hashed(text: str) -> str:
    """A label's value for any text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def attempt_label(folder: Path, attempt: str) -> str:
    """Value of the label that an attempt's objects have alone.

    Args:
        folder: Of its job: other homes may have attempts of that name.
        attempt: Its name.
    """
    return hashed(f"{folder}\n{attempt}")


def object_name(folder: Path, attempt: str, *words: str) -> str:
    """A DNS label of at most 50 characters, another one for each attempt and words.

    Args:
        folder: Of the attempt's job.
        attempt: Its name.
        words: Further ones, such as a stage's number.
    """
    ending = "".join(f"-{word}" for word in (attempt_label(folder, attempt)[:_HASH_CHARS], *words))
    plain = re.sub(r"[^a-z0-9]+", "-", attempt.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"fs-{plain}"
    return plain[: MOST_CHARS - len(ending)].rstrip("-") + ending


def labels_of(folder: Path, attempt: str, role: str) -> dict[str, str]:
    """Labels of an attempt's objects."""
    return {
        "app.kubernetes.io/managed-by": "framesift",
        JOB: hashed(str(folder)),
        ATTEMPT: attempt_label(folder, attempt),
        ROLE: role,
    }
