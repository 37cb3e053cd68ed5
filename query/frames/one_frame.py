"""One frame by its fkey: everything that the catalog has of it."""

from dataclasses import dataclass
from typing import Any

from catalog.errors import NotFound
from catalog.lake.catalog import Catalog
from catalog.lake.schema import FILES_COLUMNS
from catalog.lake.snapshot import Snapshot
from catalog.values import make_fkey
from query.run.run_sql import execute
from query.run.value_text import plain


@dataclass(frozen=True)
class SnapshotFrame:
    """A frame, as a snapshot has it."""

    snapshot: int
    file: dict[str, Any]
    """metaocean's columns of its row, as JSON can hold them."""
    tags: dict[str, Any]
    """Every tag, None where the frame has none."""
    image: str | None
    """Key of the camera image below the source's root; None where there is no image, and the row is
    the label's.
    """
    label: str | None
    """Key of the label; None where there is none in the catalog, or it may not be seen."""

    @property
    def fkey(self) -> str:
        """Its name in the catalog."""
        return str(self.file["fkey"])

    @property
    def file_types(self) -> dict[str, str]:
        """The engine's types of the columns of ``file``."""
        return {name: FILES_COLUMNS[name] for name in self.file}


def find_frame(store: Catalog, fkey: str, at: int | None = None) -> SnapshotFrame:
    """The frame of that fkey.

    Raises:
        NotFound: There is no such frame, or no such snapshot.
    """
    with store.reading(at) as snapshot:
        relation = snapshot.every_frame
        names = [*FILES_COLUMNS, *relation.tags, "image_file"]
        listed = ", ".join(f'"{name}"' for name in names)
        rows = execute(
            snapshot,
            f"WITH frames AS ({relation.sql}) SELECT {listed} FROM frames "
            f"WHERE {snapshot.layout.is_fkey}",
            [fkey],
        ).to_pylist()
        if not rows:
            raise NotFound("frame", fkey, "no frame has this fkey")
        row = {name: plain(value) for name, value in rows[0].items()}
        image, label = row["image_file"], row["label_file"]
        label_fkey = make_fkey(row["cluster"], row["datasource"], label or "")
        return SnapshotFrame(
            snapshot.number,
            {name: row[name] for name in FILES_COLUMNS},
            {name: row[name] for name in relation.tags},
            None if image == label else image,
            label if label and _is_there(snapshot, label_fkey) else None,
        )


def _is_there(snapshot: Snapshot, fkey: str) -> bool:
    """Return whether a file is in a snapshot: a label is a row of its own."""
    layout = snapshot.layout
    statement = f"SELECT 1 AS one FROM {layout.files} WHERE {layout.is_fkey}"
    return bool(execute(snapshot, statement, [fkey]).num_rows)
