"""Datasets, as they are recorded and as the records' user sees them (docs/decisions/0020)."""

from collections.abc import Collection, Iterator

from sqlalchemy import Select, func, select, tuple_
from sqlalchemy.orm import Session

from catalog.errors import NotAllowed, NotFound
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from catalog.values import Owner

_OWN = "make a dataset of your own selection, and use that"


def recorded_datasets(
    records: RecordStore,
    name: str | None = None,
    *,
    after: tuple[str, int] | None = None,
    limit: int | None = None,
) -> list[Dataset]:
    """Every version of every dataset, or of that one; by name, oldest version first.

    Args:
        after: Only those after this name and version.
    """
    query = select(Dataset).where(Dataset.removed.is_(None))
    query = query.order_by(Dataset.name, Dataset.version).limit(limit)
    if name is not None:
        query = query.where(Dataset.name == name)
    datasets: list[Dataset] = []
    while True:
        rest = query
        if after is not None:
            rest = query.where(tuple_(Dataset.name, Dataset.version) > tuple_(*after))
        with records.reading() as session:
            recorded = list(session.scalars(rest))
        datasets += [
            visible for dataset in recorded if (visible := records.as_seen(dataset)) is not None
        ]
        if limit is None or len(datasets) >= limit or len(recorded) < limit:
            return datasets[:limit]
        after = (recorded[-1].name, recorded[-1].version)  # the user sees less than was read


def newest_datasets(records: RecordStore, *, limit: int, holding: str = "") -> list[Dataset]:
    """The versions of datasets that were made last, newest first.

    Args:
        holding: Only of datasets whose name holds this text, in whatever case.
    """
    query = select(Dataset).where(Dataset.removed.is_(None))
    query = query.order_by(Dataset.id.desc()).limit(limit)
    if holding:
        query = query.where(func.lower(Dataset.name).contains(holding.lower(), autoescape=True))
    datasets: list[Dataset] = []
    rest = query
    while True:
        with records.reading() as session:
            recorded = list(session.scalars(rest))
        datasets += filter(None, map(records.as_seen, recorded))
        if len(datasets) >= limit or len(recorded) < limit:
            return datasets[:limit]
        rest = query.where(Dataset.id < recorded[-1].id)  # the user sees less than was read


def datasets_by_id(records: RecordStore, ids: Collection[int | None]) -> dict[int, Dataset]:
    """Versions of datasets by their number in the records: those of jobs that the user sees."""
    with records.reading() as session:
        rows = session.scalars(select(Dataset).where(Dataset.id.in_(set(ids) - {None})))
        return {dataset.id: dataset for dataset in rows}


def recorded_dataset(records: RecordStore, name: str) -> Dataset:
    """A dataset by "name" (the newest version that the user sees) or "name@version"."""
    return _recorded_and_visible(records, name)[1]


def complete_dataset(records: RecordStore, name: str) -> Dataset:
    """Do as `recorded_dataset`, for what needs each of its frames.

    Raises:
        NotAllowed: The user does not see all of its frames.
    """
    recorded, visible = _recorded_and_visible(records, name)
    if visible.frames < recorded.frames:
        raise NotAllowed(
            f"dataset {recorded.name}@{recorded.version}: this needs all of its frames, and of "
            f"those user '{records.user}' sees {visible.frames:,} only: {_OWN}"
        )
    return recorded


def own_dataset(records: RecordStore, name: str) -> Dataset:
    """Do as `complete_dataset`, for what makes another version of it.

    Raises:
        NotAllowed: The user does not see all of its frames, or did not make it.
    """
    dataset = complete_dataset(records, name)
    if records.user and Owner(dataset.owner, dataset.account) != records.owner:
        raise NotAllowed(
            f"dataset {dataset.name}@{dataset.version}: user '{records.user}' did not make it: "
            f"{_OWN}"
        )
    return dataset


def ids_of_complete(records: RecordStore, query: Select[Dataset]) -> list[int]:
    """The ids of those datasets whose every frame the user sees."""
    with records.reading() as session:
        recorded = list(session.scalars(query))
    pairs = ((dataset, records.as_seen(dataset)) for dataset in recorded)
    return [
        one.id for one, visible in pairs if visible is not None and visible.frames == one.frames
    ]


def _recorded_and_visible(records: RecordStore, name: str) -> tuple[Dataset, Dataset]:
    """A dataset as it is recorded, and as the user sees it."""
    for version in _versions(records, name):
        visible = records.as_seen(version)
        if visible is not None:
            return version, visible
    if records.user:
        raise NotFound("dataset", name, "GET /v1/datasets lists those that you see")
    with records.reading() as session:
        raise NotFound("dataset", name, _known_datasets(session, name))


def _versions(records: RecordStore, name: str) -> Iterator[Dataset]:
    """Versions that "name" or "name@version" means, newest first; nearly always one is enough."""
    query = _named(name).limit(1)
    with records.reading() as session:
        dataset = session.scalar(query)
    while dataset is not None:
        yield dataset
        with records.reading() as session:
            dataset = session.scalar(query.where(Dataset.version < dataset.version))


def _named(name: str) -> Select[Dataset]:
    """Datasets by "name" or "name@version", newest first."""
    # The "@" of a user's name is before the "~" that ends it in the names of their datasets.
    owner, mark, rest = name.rpartition("~")
    base, _, version = rest.partition("@")
    query = select(Dataset).where(Dataset.name == owner + mark + base, Dataset.removed.is_(None))
    if version:
        # A number of more digits than SQLite holds is no version either.
        known = version.isascii() and version.isdigit() and len(version) < 19
        query = query.where(Dataset.version == (int(version) if known else -1))
    return query.order_by(Dataset.version.desc())


def _known_datasets(session: Session, name: str) -> str:
    """The end of an error where there is no such dataset: its versions, else the others' names."""
    base, mark, _ = name.rpartition("@")
    if mark:
        versions = [
            str(dataset.version)
            for dataset in session.scalars(_named(base).order_by(None).order_by(Dataset.version))
        ]
        if versions:
            return f"'{base}' has no such version, there are {', '.join(versions)}"
    there = select(Dataset.name).where(Dataset.removed.is_(None)).distinct()
    names = session.scalars(there.order_by(Dataset.name)).all()
    if not names:
        return "there are none yet: framesift dataset create and POST /v1/datasets make one"
    return f"known: {', '.join(names)}"
