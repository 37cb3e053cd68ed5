"""A file's columns in their parts: what names the files, the tags, and what becomes no tag."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.lake.schema import FILES_COLUMNS, VIEW_COLUMNS
from catalog.tags.families import check_tag_name
from ingest.imports.options import Key
from ingest.imports.tag_file import check_columns, read_table, read_table_apart

LINE, KEY = "line number", "file key"  # with a blank: no tag can have such a name

_UNNAMED = re.compile("(unnamed: [0-9]+)?")
_INDEX = re.compile("__index_level_[0-9]+__")


@dataclass(frozen=True)
class TagTable:
    """A file's rows."""

    table: pa.Table
    """LINE, KEY, and text or typed columns by the names of the tags."""
    key: Key
    tags: tuple[str, ...]
    ignored: tuple[str, ...]
    """Columns that became no tags."""
    notes: tuple[str, ...]
    """Why, where a user may not expect it."""
    broken: list[tuple[int, str]]
    """Line and reason of the rows that had no place in the columns."""


def read_tags(
    file: Path,
    key: Key | None,
    key_column: str | None,
    prefix: str,
    most_bytes: int | None,
    stopped: Callable[[], bool],
) -> TagTable:
    """Read a file of tags; the arguments are those of `ingest.imports.tag_import.import_tags`.

    Raises:
        InvalidInput: The file is no such file or too large, or a name cannot be used.
    """
    if most_bytes is None:
        table, broken = read_table(file)
    else:
        table, broken = read_table_apart(file, most_bytes, stopped)
    check_columns(file, table.num_columns)
    table = table.rename_columns([name.strip().lower() for name in table.column_names])
    table, left_out = _without_index(table, key_column)
    names: list[str] = table.column_names
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{file}: column '{name}' is there {names.count(name)} times")
    if key is None:
        key = "fkey" if "fkey" in names and key_column in (None, "fkey") else "filename"
    keys = _key_columns(file, names, key, key_column)
    location_columns = [
        name
        for name in names
        if name not in keys and (name in FILES_COLUMNS or name in VIEW_COLUMNS)
    ]
    tags = {
        prefix + name: name for name in names if name not in keys and name not in location_columns
    }
    if not tags:
        raise InvalidInput(f"{file}: no column beside {', '.join(names)} that could be a tag")
    for tag, name in tags.items():
        if not name:
            raise InvalidInput(
                f"{file}: column {names.index(name) + len(left_out) + 1} has no name; "
                "name it in the first line, or remove it"
            )
        check_tag_name(tag)
    lines = _line_numbers(table.num_rows, broken)
    arranged = pa.table({LINE: lines, **{tag: _trimmed(table[name]) for tag, name in tags.items()}})
    return TagTable(
        arranged.append_column(KEY, _key_texts(file, {name: table[name] for name in keys})),
        key,
        tuple(tags),
        (*left_out, *location_columns),
        tuple(
            f"{name or 'the column without a name'}: left out, an index that only numbers the rows"
            for name in left_out
        ),
        broken,
    )


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column's values are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _without_index(table: pa.Table, key_column: str | None) -> tuple[pa.Table, list[str]]:
    """The table without the index that pandas wrote beside its columns, and its columns' names."""
    named = None if key_column is None else key_column.strip().lower()
    left_out = [
        position
        for position, name in enumerate(table.column_names)
        if name != named
        and (_INDEX.fullmatch(name) or (_UNNAMED.fullmatch(name) and _numbers(table[position])))
    ]
    names = [table.column_names[position] for position in left_out]
    remaining = [position for position in range(table.num_columns) if position not in left_out]
    return table.select(remaining), names


def _numbers(column: pa.ChunkedArray) -> bool:
    """Return whether all values are whole numbers, or there are none."""
    import pyarrow.compute as pc

    if not is_text(column.type):
        return bool(pa.types.is_integer(column.type))
    return bool(pc.all(pc.match_substring_regex(column, r"^\s*[0-9]*\s*$"), min_count=0).as_py())


def _key_columns(file: Path, names: list[str], key: Key, named: str | None) -> list[str]:
    if named is not None:
        if named.strip().lower() not in names:
            raise InvalidInput(f"{file}: no column '{named}'; there are {', '.join(names)}")
        return [named.strip().lower()]
    if key == "path" and "path" in names and "filename" in names:
        return ["path", "filename"]
    if key not in names and not names:
        raise InvalidInput(f"{file}: has no column that names files; expected one '{key}'")
    return [key if key in names else names[0]]


def _key_texts(file: Path, columns: dict[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    texts = []
    for name, column in columns.items():
        try:
            # None stays None: a row without a key names no file.
            texts.append(pc.utf8_trim(column.cast(pa.string()), " \t\r\n"))
        except pa.ArrowException as error:
            raise InvalidInput(
                f"{file}: column '{name}' is {column.type}; expected texts that name files"
            ) from error
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "")


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text trimmed, with null for nothing; any other as it is."""
    import pyarrow.compute as pc

    if not is_text(column.type):
        return column
    trimmed = pc.utf8_trim(column, " \t\r\n")
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, column.type), trimmed)


def _line_numbers(rows: int, broken: Sequence[tuple[int, str]]) -> pa.Array:
    """Lines of the rows that were read: the names are line 1, those of ``broken`` are left out."""
    import numpy as np

    lines = np.arange(2, 2 + rows + len(broken), dtype=np.int64)
    return pa.array(lines[~np.isin(lines, [line for line, _ in broken])])
