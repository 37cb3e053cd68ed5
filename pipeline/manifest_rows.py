"""The rows of a manifest: today's columns, and those of earlier formats brought to them."""

from collections.abc import Mapping

import pyarrow as pa

FORMAT = 4
"""2 has seed, parents and report, which 1 lacks; 3 has within; 4 has each file's source, version
and digest, frames without a label, and roots relative to the manifest."""

FRAMES_SCHEMA = pa.schema(
    [
        pa.field("fkey", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("scene", pa.string(), nullable=False),
        pa.field("camera", pa.string(), nullable=False),
        # Name of the source, a key of the header's roots; the file's key is relative to it.
        pa.field("image_source", pa.string(), nullable=False),
        pa.field("image", pa.string(), nullable=False),
        # Size [bytes] and version (catalog.storage.file_version) as catalogued, so that a copy can
        # be checked; the version is null where an earlier format did not keep it.
        pa.field("image_size", pa.int64(), nullable=False),
        pa.field("image_version", pa.string()),
        # Of the content, "sha256:<hex>"; null where it is not known.
        pa.field("image_digest", pa.string()),
        # All null where the frame has no label.
        pa.field("label_source", pa.string()),
        pa.field("label", pa.string()),
        pa.field("label_size", pa.int64()),
        pa.field("label_version", pa.string()),
        pa.field("label_digest", pa.string()),
        # Pixels per class, in the header's class order; null where the frame has no label.
        pa.field("class_pixels", pa.list_(pa.int32())),
    ]
)

_ADDED = ("image_version", "image_digest", "label_version", "label_digest")


def of_today(rows: pa.Table, format_: int) -> pa.Table:
    """The rows of a manifest of any format, schema FRAMES_SCHEMA."""
    if format_ < 4:
        columns = {name: rows[name] for name in rows.column_names if name != "source"}
        columns |= {"image_source": rows["source"], "label_source": rows["source"]}
        columns |= dict.fromkeys(_ADDED, pa.nulls(rows.num_rows, pa.string()))
        rows = pa.table(columns)
    if set(rows.column_names) != set(FRAMES_SCHEMA.names):
        raise KeyError(f"columns {', '.join(rows.column_names)}")
    return rows.select(FRAMES_SCHEMA.names).cast(FRAMES_SCHEMA)


def datasources_of(rows: pa.Table) -> Mapping[str, str]:
    """The prefix of the fkeys of each source's images: cluster, a colon, and datasource."""
    prefixes: dict[str, str] = {}
    for source, fkey, image in zip(
        rows["image_source"].to_pylist(),
        rows["fkey"].to_pylist(),
        rows["image"].to_pylist(),
        strict=True,
    ):
        if source not in prefixes:
            prefixes[source] = fkey.removesuffix(image).removesuffix(":")
    return prefixes
