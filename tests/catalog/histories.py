"""Random histories of a catalog, and what each of their snapshots must hold."""

import random
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
import pytest

from catalog.frames.frames import register, remove
from catalog.lake.schema import VIEW_COLUMNS
from catalog.store import CatalogStore
from catalog.tags import families
from catalog.tags.tags import add_class_tags
from tests.catalog.some_rows import file, frame, source_names

KEYS = [f"k{number}" for number in range(12)]
CLASSES = ["car", "sky"]
AT_ONCE = timedelta(0)

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(1, 6))]
"""Of random histories, seconds of CPU each: `make test` runs one, `make test-wide` the others."""

State = dict[str, dict[str, object]]
"""fkey -> its tags that have a value; every catalogued file is there."""


@dataclass
class History:
    """A catalog that is written at random.

    Attributes:
        store: The catalog.
        states: What each snapshot that this wrote holds.
    """

    store: CatalogStore
    rng: random.Random
    states: dict[int, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        add_class_tags(self.store, CLASSES)

    def write(self, steps: int) -> None:
        """Write that many commits."""
        for _ in range(steps):
            step = self.rng.choice(
                [self._register, self._register, self._remove, self._tag, self._drop]
            )
            step()
            self.states[self.store.snapshot()] = held(self.store)

    def _some(self) -> list[str]:
        return self.rng.sample(KEYS, self.rng.randint(1, 4))

    def _register(self) -> None:
        keys = self._some()
        frames = [
            frame(key, car=self.rng.randint(0, 3), sky=self.rng.randint(0, 1))
            for key in keys
            if self.rng.random() < 0.8
        ]
        with self.store.writing("register", "random") as connection:
            register(connection, source_names(), [file(key) for key in keys], frames, 1)

    def _remove(self) -> None:
        with self.store.writing("remove", "random") as connection:
            remove(connection, source_names(), self._some())

    def _tag(self) -> None:
        family = self.rng.choice(["weather", "light"])
        keys = self._some()
        values = [self.rng.choice(["rain", "sun", None]) for _ in keys]
        rows = pa.table(
            {"fkey": [f"c1:d1:{key}" for key in keys], family: pa.array(values, pa.string())}
        )
        families.write(self.store, family, {family: "VARCHAR"}, rows)

    def _drop(self) -> None:
        present = families.families(self.store)
        if present:
            families.drop(self.store, self.rng.choice(present).name)


def held(store: CatalogStore, at: int | None = None) -> State:
    """The content of a snapshot, as its metaocean_view shows it."""
    with store.reading(at) as cursor:
        columns = [
            row[0]
            for row in cursor.execute(
                "SELECT column_name FROM duckdb_columns() WHERE table_name = 'metaocean_view' "
                "AND database_name = 'lake' ORDER BY column_index"
            ).fetchall()
        ]
        tags = [name for name in columns if name not in VIEW_COLUMNS]
        listed = ", ".join(f'"{name}"' for name in ("fkey", *tags))
        rows = cursor.execute(f"SELECT {listed} FROM metaocean_view").fetchall()
    assert len(rows) == len({row[0] for row in rows})
    return {
        fkey: {tag: value for tag, value in zip(tags, values, strict=True) if value is not None}
        for fkey, *values in rows
    }
