"""Datasets, as they are recorded and as the records' user sees them (docs/decisions/0020)."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from catalog.errors import NotAllowed, NotFound, known_names
from catalog.records.kinds import DATASETS
from catalog.records.reading import Records, all_of, holds, ids_in
from catalog.values import Owner

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.tables import Dataset

_OWN = "make a dataset of your own selection, and use that"
_IS_THERE = "removed IS NULL"
_Conditions = tuple[str, dict[str, Any]]


def recorded_datasets(
    records: Records,
    name: str | None = None,
    *,
    after: tuple[str, int] | None = None,
    limit: int | None = None,
) -> "list[Dataset]":
    """Every version of every dataset, or of that one; by name, oldest version first.

    Args:
        after: Only those after this name and version.
    """
    of_name = "" if name is None else "name = :name"
    values: dict[str, Any] = {} if name is None else {"name": name}
    datasets: list[Dataset] = []
    while True:
        later = ""
        if after is not None:
            later = "(name, version) > (:after_name, :after_version)"
            values |= {"after_name": after[0], "after_version": after[1]}
        where = all_of(_IS_THERE, of_name, later)
        recorded = records.select(DATASETS, where, order="name, version", limit=limit, **values)
        datasets += [
            visible for dataset in recorded if (visible := records.as_seen(dataset)) is not None
        ]
        if limit is None or len(datasets) >= limit or len(recorded) < limit:
            return datasets[:limit]
        after = (recorded[-1].name, recorded[-1].version)  # the user sees less than was read


def newest_datasets(records: Records, *, limit: int, holding: str = "") -> "list[Dataset]":
    """The versions of datasets that were made last, newest first.

    Args:
        holding: Only of datasets whose name holds this text, in whatever case.
    """
    where = _IS_THERE
    values: dict[str, Any] = {}
    if holding:
        condition, values["holding"] = holds("name", holding)
        where = all_of(where, condition)
    datasets: list[Dataset] = []
    older = ""
    while True:
        recorded = records.select(
            DATASETS, all_of(where, older), order="id DESC", limit=limit, **values
        )
        datasets += filter(None, map(records.as_seen, recorded))
        if len(datasets) >= limit or len(recorded) < limit:
            return datasets[:limit]
        # the user sees less than was read
        older, values["last"] = "id < :last", recorded[-1].id


def datasets_by_id(records: Records, ids: Collection[int | None]) -> "dict[int, Dataset]":
    """Versions of datasets by their number in the records: those of jobs that the user sees."""
    numbers = {number for number in ids if number is not None}
    if not numbers:
        return {}
    return {one.id: one for one in records.select(DATASETS, ids_in("id", numbers))}


def recorded_dataset(records: Records, name: str) -> "Dataset":
    """A dataset by "name" (the newest version that the user sees) or "name@version"."""
    return _recorded_and_visible(records, name)[1]


def complete_dataset(records: Records, name: str) -> "Dataset":
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


def own_dataset(records: Records, name: str) -> "Dataset":
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


def ids_of_complete(records: Records, where: str, **values: Any) -> list[int]:
    """The ids of those datasets whose every frame the user sees.

    Args:
        where: A condition on them: catalog.records.reading.Records.select.
    """
    recorded = records.select(DATASETS, where, **values)
    pairs = ((dataset, records.as_seen(dataset)) for dataset in recorded)
    return [
        one.id for one, visible in pairs if visible is not None and visible.frames == one.frames
    ]


def _recorded_and_visible(records: Records, name: str) -> "tuple[Dataset, Dataset]":
    """A dataset as it is recorded, and as the user sees it."""
    for version in _versions(records, name):
        visible = records.as_seen(version)
        if visible is not None:
            return version, visible
    if records.user:
        raise NotFound("dataset", name, "GET /v1/datasets lists those that you see")
    raise NotFound("dataset", name, _known_datasets(records, name))


def _versions(records: Records, name: str) -> "Iterator[Dataset]":
    """Versions that "name" or "name@version" means, newest first; nearly always one is enough."""
    where, values = _named(name)
    rows = records.select(DATASETS, where, order="version DESC", limit=1, **values)
    while rows:
        yield rows[0]
        older = all_of(where, "version < :last")
        last = rows[0].version
        rows = records.select(DATASETS, older, order="version DESC", limit=1, **values, last=last)


def _named(name: str) -> _Conditions:
    """The condition on datasets by "name" or "name@version", and its values."""
    # The "@" of a user's name is before the "~" that ends it in the names of their datasets.
    owner, mark, rest = name.rpartition("~")
    base, _, version = rest.partition("@")
    where = all_of("name = :name", _IS_THERE)
    values: dict[str, Any] = {"name": owner + mark + base}
    if version:
        # A number of more digits than SQLite holds is no version either.
        known = version.isascii() and version.isdigit() and len(version) < 19
        where = all_of(where, "version = :version")
        values["version"] = int(version) if known else -1
    return where, values


def _known_datasets(records: Records, name: str) -> str:
    """The end of an error where there is no such dataset: its versions, else the others' names."""
    base, mark, _ = name.rpartition("@")
    if mark:
        where, values = _named(base)
        versions = f"SELECT version FROM datasets WHERE {where} ORDER BY version"
        if known := ", ".join(str(version) for (version,) in records.rows(versions, **values)):
            return f"'{base}' has no such version, there are {known}"
    names = records.rows(f"SELECT DISTINCT name FROM datasets WHERE {_IS_THERE} ORDER BY name")
    if not names:
        return "there are none yet: framesift dataset create and POST /v1/datasets make one"
    return known_names([name for (name,) in names], "framesift dataset list and GET /v1/datasets")
