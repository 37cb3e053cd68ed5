"""Stagings of datasets, as they are recorded."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from catalog.errors import FramesiftError, NotFound, StagingCancelled
from catalog.records.datasets import ids_of_complete
from catalog.records.kinds import STAGINGS
from catalog.records.reading import Records, all_of, ids_in
from catalog.traces.spans import span

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.store import RecordStore
    from catalog.records.tables import Dataset, Staging

_LONGEST_ERROR = 4_096


@contextmanager
def staging_recorded(records: "RecordStore", dataset: "Dataset", cache: str) -> "Iterator[Staging]":
    """The record of a staging, which the block fills in: done at its end, or failed with its error.

    One that a user cancelled, or that is interrupted, leaves none. Where traces are on, each is a
    span.
    """
    with span("staging", {"framesift.dataset": f"{dataset.name}@{dataset.version}"}) as traced:
        with _recorded(records, dataset, cache) as staging:
            yield staging
        traced.set(
            {"framesift.files": staging.files_copied, "framesift.bytes": staging.bytes_copied}
        )


@contextmanager
def _recorded(records: "RecordStore", dataset: "Dataset", cache: str) -> "Iterator[Staging]":
    from catalog.records.tables import Staging

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
    records: Records,
    *,
    dataset_id: int | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> "list[tuple[Staging, str]]":
    """Stagings with the "name@version" of what was staged, newest first.

    Args:
        before: Only those with a smaller id.
    """
    conditions = [_of_user(records)]
    values: dict[str, Any] = {}
    if dataset_id is not None:
        conditions.append("dataset_id = :dataset")
        values["dataset"] = dataset_id
    if before is not None:
        conditions.append("id < :before")
        values["before"] = before
    stagings = records.select(STAGINGS, all_of(*conditions), order="id DESC", limit=limit, **values)
    of_these = ids_in("id", {staging.dataset_id for staging in stagings})
    datasets = records.rows(f"SELECT id, name, version FROM datasets WHERE {of_these}")
    named = {number: f"{name}@{version}" for number, name, version in datasets}
    return [(staging, named[staging.dataset_id]) for staging in stagings]


def recorded_staging(records: Records, number: int) -> "tuple[Staging, str]":
    """A staging and the "name@version" of what was staged.

    Raises:
        NotFound: There is none of that number.
    """
    stagings = recorded_stagings(records, before=number + 1, limit=1) if 0 < number < 2**31 else []
    if not stagings or stagings[0][0].id != number:
        raise NotFound("staging", str(number), "GET /v1/stagings lists them")
    return stagings[0]


def _of_user(records: Records) -> str:
    """The condition on stagings: of a limited user those whose datasets the user sees whole."""
    if not records.user:
        return ""
    staged = "id IN (SELECT dataset_id FROM stagings)"
    return ids_in("dataset_id", ids_of_complete(records, staged))
