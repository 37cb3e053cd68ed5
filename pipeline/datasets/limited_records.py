"""The records, for who sees some rows of the catalog only (docs/decisions/0020).

A dataset is here what is seen of it: another record, with another manifest. So it is datasets that
are limited and not what is done with them, and one of which nothing is seen does not exist.
"""

from sqlalchemy import Select, select
from typing_extensions import override

from catalog.errors import NotAllowed, NotFound
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job, Staging
from pipeline.datasets.seen_datasets import Seen, SeenDatasets

_OWN = "make a dataset of your own selection, and use that"


class LimitedRecords(RecordStore):
    """The records of a home: datasets as far as their frames may be seen, and one's own jobs."""

    def __init__(self, whole: RecordStore, seen: SeenDatasets, user: str) -> None:
        """Open nothing.

        Args:
            whole: The records.
            seen: What is seen of each dataset.
            user: Name of who asks.
        """
        self.place, self.engine, self.places = whole.place, whole.engine, whole.places
        self._seen, self.user = seen, user

    @override
    def datasets(self, name: str | None = None) -> list[Dataset]:
        """As RecordStore's, those of which a frame is seen."""
        found = ((dataset, self._seen.of(dataset)) for dataset in super().datasets(name))
        return [self._shown(dataset, seen) for dataset, seen in found if seen is not None]

    @override
    def dataset(self, name: str) -> Dataset:
        """As RecordStore's; by the name alone, the newest version of which a frame is seen."""
        return self._shown(*self._find(name))

    @override
    def whole_dataset(self, name: str) -> Dataset:
        """As RecordStore's."""
        found, seen = self._find(name)
        if seen.frames < found.frames:
            raise NotAllowed(
                f"dataset {found.name}@{found.version}: this needs all of its frames, and of those "
                f"user '{self.user}' sees {seen.frames:,} only: {_OWN}"
            )
        return found

    @override
    def own_dataset(self, name: str) -> Dataset:
        """As RecordStore's."""
        found = self.whole_dataset(name)
        if found.owner != self.user:
            raise NotAllowed(
                f"dataset {found.name}@{found.version}: user '{self.user}' did not make it: {_OWN}"
            )
        return found

    @override
    def _seen_jobs(self) -> Select[Job]:
        """One's own, as long as their datasets, of which they log and report, are seen whole."""
        own = select(Job.dataset_id).where(Job.owner == self.user)
        whole = self._whole(select(Dataset).where(Dataset.id.in_(own)))
        return super()._seen_jobs().where(Job.owner == self.user, Job.dataset_id.in_(whole))

    @override
    def seen_stagings(self) -> Select[Staging, Dataset]:
        """Of datasets that are seen whole."""
        staged = self._whole(select(Dataset).where(Dataset.id.in_(select(Staging.dataset_id))))
        return super().seen_stagings().where(Dataset.id.in_(staged))

    def _whole(self, query: Select[Dataset]) -> list[int]:
        """The ids of those datasets that are seen whole."""
        with self.reading() as session:
            found = [(dataset, self._seen.of(dataset)) for dataset in session.scalars(query)]
        return [one.id for one, seen in found if seen is not None and seen.frames == one.frames]

    def _find(self, name: str) -> tuple[Dataset, Seen]:
        for found in self.versions(name):
            seen = self._seen.of(found)
            if seen is not None:
                return found, seen
        raise NotFound("dataset", name, "GET /v1/datasets lists those that you see")

    def _shown(self, found: Dataset, seen: Seen) -> Dataset:
        """What is seen, as a record; how it was chosen is told who chose it, and sees all of it."""
        if found.owner == self.user and seen.frames == found.frames:
            return found
        return Dataset(
            id=found.id,
            name=found.name,
            version=found.version,
            content_id=seen.id,
            question={},
            snapshot=found.snapshot,
            frames=seen.frames,
            splits=dict(seen.splits),
            class_pixels=dict(seen.class_pixels),
            class_frames=dict(seen.class_frames),
            manifest=str(seen.manifest),
            seed="0",
            parents=[],
            report={},
            owner=self.user if found.owner == self.user else "",
            created=found.created,
        )
