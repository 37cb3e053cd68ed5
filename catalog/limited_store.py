"""A catalog in which only some rows are, for callers who may see no others (docs/decisions/0014).

The newest snapshot is read from memory and others from the catalog's files, as by those who see
every row: each time by the same engine, in a database beside the whole catalog's
(catalog.lake.limited_databases).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from catalog.lake.layouts import JOINED, WIDE
from catalog.lake.limited_databases import SelectLimited
from catalog.lake.snapshot import FactsOfSnapshots, Snapshot
from catalog.store import CatalogStore


class _LimitedSettings:
    """SnapshotSettings of a limited catalog."""

    def __init__(self, store: CatalogStore, collection: str) -> None:
        self.timeout_s, self.class_names = store.timeout_s, store.class_names
        self.collection_column: Callable[[], str] = lambda: collection


class LimitedStore:
    """The rows of a catalog for which a condition holds: a Catalog, which cannot be written.

    It opens nothing of its own: memory and engines are the whole catalog's.

    Attributes:
        condition: Which rows, in DuckDB's SQL over the columns of ROW.
    """

    def __init__(self, store: CatalogStore, condition: str, collection: str = "") -> None:
        """Ask nothing yet.

        Args:
            condition: In DuckDB's SQL, over the columns of ROW; never a user's own text. It fails
                for no row (query.question.collection_rule): its errors would tell of them.
            collection: Value of the column of that name, of those collections that its user may
                know; see layouts.TableLayout.
        """
        self._settings = _LimitedSettings(store, collection)
        self._facts, self._facts_in_memory = FactsOfSnapshots(), FactsOfSnapshots(capacity=1)
        self._store, self.condition = store, condition

    @contextmanager
    def reading(self, at: int | None = None) -> Iterator[Snapshot]:
        """See Catalog: with the rows that may be seen."""
        with self._store.memory.pinned(at, self.condition) as pinned:
            if pinned is not None:
                cursor, in_memory = pinned
                yield Snapshot(
                    cursor,
                    WIDE,
                    self._facts_in_memory.of,
                    self._settings,
                    in_memory.number,
                    lambda _: in_memory.facts,
                )
                return
        with self.reading_files(at) as snapshot:
            yield snapshot

    @contextmanager
    def reading_files(self, at: int | None = None) -> Iterator[Snapshot]:
        """See Catalog: with the rows that may be seen."""
        number = self._store.snapshot() if at is None else at
        with self._store.cursor_at(number, self.condition) as cursor:
            limited = SelectLimited(cursor)
            yield Snapshot(
                limited, JOINED, self._facts.of, self._settings, number, self._store.facts.of
            )

    def reading_portions(self, at: int | None = None) -> AbstractContextManager[Snapshot]:
        """See Catalog: engines are the whole catalog's, which others use."""
        return self.reading(at)

    def snapshot(self) -> int:
        """See Catalog: limited catalogs have the whole one's snapshots."""
        return self._store.snapshot()

    def quiesced(self, activity: str) -> AbstractContextManager[Callable[[], None]]:
        """See Catalog: the block writes nothing."""
        return self._store.quiesced(activity)

    def close(self) -> None:
        """Know nothing any more; the store can be used again."""
        self._facts.forget()
        self._facts_in_memory.forget()
