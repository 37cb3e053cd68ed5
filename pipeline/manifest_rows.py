"""The rows of a manifest: their columns, and the number of the format."""

from typing import Any

import pyarrow as pa

FORMAT = 5

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
        # be checked.
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
        # Of a panoptic label, "id:category" with blanks between; null of all others.
        pa.field("label_segments", pa.string()),
        # Pixels per class, in the header's class order; null where the frame has no label.
        pa.field("class_pixels", pa.list_(pa.int32())),
    ]
)

_REPEATED = (
    "split", "scene", "camera", "image_source", "label_source", "class_pixels.list.element"
)  # fmt: skip

FRAMES_PARQUET: dict[str, Any] = {"compression": "zstd", "use_dictionary": [*_REPEATED]}
"""How pyarrow writes the rows. A dictionary is made of columns whose values repeat alone: of names
and sizes it is begun and thrown away, a twelfth of the time, and the file is a tenth larger.
"""
