"""class_list.json of a source: which colour is which class."""

import json
from collections.abc import Sequence
from pathlib import Path

from catalog.errors import (
    BadFile,
    ClassListMissing,
    InvalidInput,
    StorageError,
    UnreadableFile,
)
from catalog.values import File
from ingest.labels.class_list import ClassList
from ingest.labels.other_content import not_json
from ingest.sources.listed_read import read_listed
from ingest.sources.source_files import SourceFiles

CLASS_LIST = "class_list.json"


def read_class_list(
    files: SourceFiles, path: Path | None, keys: Sequence[str] = (CLASS_LIST,)
) -> ClassList:
    """The class list: the given file's, or the source's own.

    Args:
        keys: Where the source may have it; the first that is there counts.

    Raises:
        ClassListMissing: Neither is there.
        InvalidInput: It is not JSON, or no class list.
    """
    if path is not None:
        name = str(path)
        try:
            text = path.read_bytes()
        except OSError as error:
            raise ClassListMissing(f"{path}: {error.strerror}") from error
    else:
        name, text = _find_class_list(files, keys)
    try:
        parsed = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name}: {not_json(text, error)}") from error
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error
    try:
        return ClassList.from_colours(parsed)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object's entries; json itself would silently keep the last of two."""
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidInput(f"'{key}' is listed {keys.count(key)} times; keep one")
    return dict(pairs)


def _find_class_list(files: SourceFiles, keys: Sequence[str]) -> tuple[str, bytes]:
    for key in keys:
        content = source_content(files, key)
        if content is not None:
            return f"{files.root}/{key}", content
    raise ClassListMissing(
        f"{files.root}: no {' or '.join(keys)} there; it says which colour is which class. Point "
        "the source at the folder that holds it, give --class-list FILE, or add the source as "
        "--part-of one that has been scanned. Labels of another data set: give the source its "
        "--layout (framesift layout check ROOT says which fit its names)"
    )


def source_content(files: SourceFiles, key: str) -> bytes | None:
    """A document of the source, such as its class list; None where it has none of that key.

    Raises:
        StorageError: It is there and cannot be read.
    """

    def unreadable(key: str, reason: str) -> None:
        raise UnreadableFile(f"cannot be read: {reason}", key)

    try:
        listed = next(iter(files.list(key, unreadable)), None)
        if listed is not None:
            return _twice_alike(files, listed)
    except BadFile as error:
        raise StorageError(
            f"{files.root}/{key}: {error.reason}: it says which class is which. Have it "
            "readable, or give --class-list FILE",
            f"{files.root}/{key}",
        ) from error
    try:
        return files.read(key)  # --exclude leaves it out of listings alone
    except BadFile:
        return None


def _twice_alike(files: SourceFiles, listed: File) -> bytes:
    """The file's bytes; where no checksum proves them, such as came twice.

    One byte that is another may make it another list, by which all labels are counted again.
    """
    read = read_listed(files, listed)
    if not read.is_proven and read_listed(files, listed).content != read.content:
        raise UnreadableFile("cannot be read: other bytes came each time; scan again", listed.key)
    return read.content
