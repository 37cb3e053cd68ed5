"""A manifest that was made again, kept where it is proven equal to the one of then."""

from dataclasses import replace

from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.datasets.datasets import Content, header_of
from pipeline.datasets.row_counts import RowCounts
from pipeline.manifest import Manifest
from pipeline.manifest_store import store_manifest


def restore_manifest(records: RecordStore, dataset: Dataset, content: Content) -> None:
    """Write a dataset's manifest again.

    Raises:
        InvalidInput: The content is not the dataset's; nothing was written.
    """
    name, rows = f"{dataset.name}@{dataset.version}", content.table()
    counts = RowCounts(dataset.question, dataset.snapshot, len(content.classes.tags))
    counts.add(rows)
    digest = counts.id
    if dataset.content_id != digest:
        raise InvalidInput(
            f"dataset {name}: made again from its question at snapshot {dataset.snapshot} it has "
            f"{rows.num_rows:,} frames and the id {digest[:12]}; it had {dataset.frames:,} and the "
            f"id {dataset.content_id[:12]}. Nothing was written: restore it from a backup"
        )
    pixels = counts.class_pixels.tolist()
    # Classes without a pixel may be others by now.
    before = {tag: count for tag, count in dataset.class_pixels.items() if count}
    if {
        tag: count for tag, count in zip(content.classes.tags, pixels, strict=True) if count
    } != before:
        raise InvalidInput(
            f"dataset {name}: made again, its frames are the same, and their pixels of classes are "
            "not. Nothing was written: restore it from a backup"
        )
    header = replace(
        header_of(dataset.name, dataset.version, dataset.content_id, content, counts),
        question=dataset.question,
        seed=int(dataset.seed),
        parents=tuple(dataset.parents),
        report=dataset.report,
    )
    store_manifest(records, Manifest(header, rows))
