"""The page of tags: those that every frame has, those of built-in extractors, columns of files."""

from collections.abc import Mapping

from catalog.lake.schema import (
    CLASS_PIXELS_COLUMNS,
    FILES_COLUMNS,
    FRAME_TAGS_COLUMNS,
    GIVEN_SPLIT,
    VIEW_COLUMNS,
)
from documentation.reference.markdown import code, table
from ingest.extractors.registry import BUILT_IN, extractor_named

_HEAD = f"""\
# Tags and columns

What questions may name of a frame: [selections](../selections.md) as ranges and conditions,
[SQL](../sql.md) as tables `t_<tag>` and columns of `metaocean_view`, where all are text. `framesift
tags list` shows those of your catalog, with these:

- a tag for each class of the sources' class lists, in pixels: `car`, `bicycle`...; `framesift
  classes` and `framesift layout show NAME` list them
- `{GIVEN_SPLIT}`, where a data set's makers divided it, and other parts of names that a
  [layout](../layouts.md) tells
- tags of your own: [imported, set by hand](../extractors.md), or by
  [extractors](../extractors.md#one-of-your-own)

"""


def page() -> str:
    """The whole page."""
    frame = {**FRAME_TAGS_COLUMNS, **CLASS_PIXELS_COLUMNS}
    parts = [_HEAD, "## Of every frame\n\n", _table(frame)]
    for name in sorted(BUILT_IN):
        extractor = extractor_named(name)
        parts.append(
            f"\n## Of the extractor {name}\n\n`framesift tags extract SOURCE {name}` reads "
            f"{code(extractor.reads)} of each frame into the family {code(extractor.family)}.\n\n"
        )
        parts.append(_table(extractor.columns))
    parts.append("\n## Columns of files\n\nThose of `metaocean`, and which of them ")
    parts.append("`metaocean_view` has, too.\n\n")
    rows = [
        (code(name), type_, "yes" if name in VIEW_COLUMNS else "")
        for name, type_ in FILES_COLUMNS.items()
    ]
    return "".join([*parts, table(("column", "type", "`metaocean_view`"), rows)])


def _table(columns: Mapping[str, str]) -> str:
    rows = [(code(name), type_) for name, type_ in columns.items() if name != "fkey"]
    return table(("tag", "type"), rows)
