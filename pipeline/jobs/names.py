"""Names of jobs, which are names of folders, too."""

import re
from itertools import count
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Job

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_LONGEST_NAME = 128


def free_name(records: RecordStore, jobs_folder: Path, base: str, requested: str | None) -> str:
    """A name for a job that nothing has: the wanted one, or one that is made up.

    Args:
        records: As far as the submitting user sees them; a wanted name begins with the user's
            prefix, as one that is taken would tell of others' jobs.
        jobs_folder: Where jobs' folders lie.
        base: What a name that is made up begins with.
        wanted: The user's; None to make one up.

    Raises:
        InvalidInput: It cannot name a folder.
        AlreadyExists: A job, or something in the jobs' folder, has it.
    """
    with records.reading() as session:
        if requested is None:
            number = (session.scalar(select(func.max(Job.id))) or 0) + 1
            names = (f"{base}-{n}" for n in count(number))
            return next(name for name in names if not has_name(session, jobs_folder, name))
        own = requested.removeprefix(records.own_names)
        name = records.own_names + own
        if not _NAME.fullmatch(own) or len(name) > _LONGEST_NAME:
            raise InvalidInput(
                f"job name '{requested}': expected letters, digits, '.', '_' and '-', such as "
                "train-1"
            )
        if has_name(session, jobs_folder, name):
            raise AlreadyExists("job", name, "give another --name")
    return name


def has_name(session: Session, jobs_folder: Path, name: str) -> bool:
    """Return whether a job, or something in the jobs' folder, has a name."""
    known = session.scalar(select(Job.id).where(Job.name == name)) is not None
    return known or (jobs_folder / name).exists()
