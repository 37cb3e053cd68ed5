"""The frames as one relation: what conditions and orders may name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from catalog.lake.layouts import MADE, QueriedSnapshot, TableLayout, Tags
from catalog.lake.schema import FILES_COLUMNS, LABELLED
from catalog.lake.wide_names import FKEY_HASH

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class FramesRelation:
    """One row per frame: per labelled one, or with ``every`` those without a label, too."""

    layout: TableLayout
    """How they lie in tables."""
    sql: str
    """The SELECT that gives them, to stand in ``WITH frames AS (...)``."""
    columns: dict[str, str]
    """DuckDB type of each column: metaocean's, every tag of every family, image_size [bytes],
    image_file (key below the source's root), fkey_hash, and the layout's.
    """
    tags: Tags
    """The column behind every tag, by its name."""
    is_unfiltered: bool = True
    """Whether it has all of these frames, and not a choice of them."""
    every: bool = False
    """It has the frames without a label, too."""

    @staticmethod
    def of(tags: Tags, layout: TableLayout, *, every: bool) -> "FramesRelation":
        """That of a snapshot with these tags."""
        columns = {
            **FILES_COLUMNS,
            **{tag: column.type for tag, column in tags.items()},
            **{name: kind for name, (kind, _) in MADE.items()},
            **layout.columns,
        }
        sql = layout.frames(tags, labelled=_leaves_out(tags, every=every))
        return FramesRelation(layout, sql, columns, tags, every=every)

    @property
    def has_label(self) -> str:
        """The condition that a frame's label is in the catalog, or that it has none to be there."""
        has_label = self.layout.has_label
        return f"(label_file IS NULL OR {has_label})" if self.every else has_label

    def encoded(self, name: str) -> str:
        """A column for SELECT, a text of few values as the ENUM that memory holds it as."""
        return self.layout.encoded(self.tags[name]) if name in self.tags else f'"{name}"'

    @contextmanager
    def only(
        self, snapshot: QueriedSnapshot, hashes: "npt.NDArray[np.uint64]"
    ) -> Iterator["FramesRelation"]:
        """The frames of those fkey_hash alone, for the block.

        Args:
            hashes: fkey_hash of each frame wanted.
        """
        import pyarrow as pa

        rows = pa.table({FKEY_HASH: pa.array(hashes, pa.uint64())})
        with self.layout.temporary_table(snapshot, rows) as table:
            labelled = _leaves_out(self.tags, every=self.every)
            sql = self.layout.chosen(self.tags, table, labelled=labelled)
            yield replace(self, sql=sql, is_unfiltered=False)

    def listed(self) -> str | None:
        """``sql`` with those frames alone that are bound; see TableLayout."""
        if not self.is_unfiltered:
            return None
        return self.layout.listed(self.tags, labelled=_leaves_out(self.tags, every=self.every))

    def sql_for(self, *parts: str) -> str:
        """``sql`` without the tables of which these parts of a statement name no column.

        Args:
            parts: DuckDB's SQL, with tags in double quotes.
        """
        if not self.is_unfiltered:
            return self.sql
        labelled = _leaves_out(self.tags, every=self.every)
        return self.layout.needed(self.tags, " ".join(parts), labelled=labelled)


def _leaves_out(tags: Tags, *, every: bool) -> bool:
    """Return whether there are frames to be left out; a snapshot without the tag has none."""
    return not every and LABELLED in tags
