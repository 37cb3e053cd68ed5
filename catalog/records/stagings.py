"""Stagings of datasets, as they are recorded."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Select, select

from catalog.errors import FramesiftError, NotFound, StagingCancelled
from catalog.records.datasets import ids_of_complete
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Staging

_LONGEST_ERROR = 4_096


@contextmanager
def staging_recorded(records: RecordStore, dataset: Dataset, cache: str) -> Iterator[Staging]:
    """The record of a staging, which the block fills in: done at its end, or failed with its error.

    One that a user cancelled, or that is interrupted, leaves none.
    """
    staging = Staging(
        dataset_id=dataset.id, state="done", cache=cache, manifest="", error="",
        files=0, files_copied=0, bytes=0, bytes_copied=0,
    )  # fmt: skip
    try:
        yield staging
    except StagingCancelled:
        raise
    except FramesiftError as error:
        staging.state, staging.error = "failed", str(error)[:_LONGEST_ERROR]
        with suppress(FramesiftError), records.session() as session:  # the error itself is told
            session.add(staging)
        raise
    with records.session() as session:
        session.add(staging)


def recorded_stagings(
    records: RecordStore,
    *,
    dataset_id: int | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> list[tuple[Staging, str]]:
    """Stagings with the "name@version" of what was staged, newest first.

    Args:
        before: Only those with a smaller id.
    """
    query = _stagings_of_user(records).order_by(Staging.id.desc()).limit(limit)
    if dataset_id is not None:
        query = query.where(Staging.dataset_id == dataset_id)
    if before is not None:
        query = query.where(Staging.id < before)
    with records.reading() as session:
        return [
            (staging, f"{dataset.name}@{dataset.version}")
            for staging, dataset in session.execute(query)
        ]


def recorded_staging(records: RecordStore, number: int) -> tuple[Staging, str]:
    """A staging and the "name@version" of what was staged.

    Raises:
        NotFound: There is none of that number.
    """
    stagings = recorded_stagings(records, before=number + 1, limit=1) if 0 < number < 2**31 else []
    if not stagings or stagings[0][0].id != number:
        raise NotFound("staging", str(number), "GET /v1/stagings lists them")
    return stagings[0]


def _stagings_of_user(records: RecordStore) -> Select[Staging, Dataset]:
    """Stagings with their datasets; of a limited user those whose datasets the user sees whole."""
    query = select(Staging, Dataset).join(Dataset)
    if not records.user:
        return query
    staged = select(Dataset).where(Dataset.id.in_(select(Staging.dataset_id)))
    return query.where(Dataset.id.in_(ids_of_complete(records, staged)))
