"""How much a catalog holds."""

from catalog.lake.catalog import Catalog
from catalog.lake.schema import FILES, FRAME_TAGS
from catalog.values import CatalogInfo


def info(store: Catalog) -> CatalogInfo:
    """Snapshot number, and how many files, labelled frames and tags the catalog holds."""
    with store.reading() as snapshot:
        counts = snapshot.execute(
            f"SELECT (SELECT count(*) FROM main.{FILES}), "
            f"(SELECT count(label_file) FROM main.{FRAME_TAGS})"
        ).fetchone()
        files, frames = counts or (0, 0)
        return CatalogInfo(snapshot.number, files, frames, len(snapshot.tags))
