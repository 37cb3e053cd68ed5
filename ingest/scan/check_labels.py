"""Looks at the labels of a source's frames, as they are catalogued."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile, InvalidInput
from catalog.frames.frames import label_keys
from catalog.frames.label_segments import segments_of
from catalog.lake.catalog import Catalog
from catalog.records.tables import Source
from catalog.values import make_fkey
from ingest.labels.class_list import ClassList
from ingest.labels.label_check import LabelCheck
from ingest.labels.label_image import decode_keys
from ingest.scan.change_source import names_of
from ingest.sources.recorded import open_recorded

_READ_AT_ONCE = 64


def check_labels(
    store: Catalog,
    source: Source,
    *,
    most: int | None = None,
    index_folder: Path | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> tuple[LabelCheck, list[str]]:
    """Read the labels of a source; the check, and the keys of those that could not be read.

    Args:
        most: Look at so many, spread over all; at every one when None.
        progress: Called with how many labels are done, and how many there are to do.

    Raises:
        InvalidInput: The source was never scanned.
    """
    check_scanned(source)
    class_list = ClassList.from_json(source.class_list)
    check, unread = LabelCheck(class_list), list[str]()
    names, segments = names_of(source), dict[str, str]()
    with store.reading() as cursor:
        keys, number = label_keys(cursor, names, most), cursor.number
    fkeys = {key: make_fkey(names.cluster, names.datasource, key) for key in keys}
    if class_list.encoding.is_panoptic:
        with store.reading_files(number) as snapshot:
            segments = segments_of(snapshot, [*fkeys.values()])
    files = open_recorded(source, index_folder)

    def read(key: str) -> npt.NDArray[np.int64] | None:
        try:
            of_label = segments.get(fkeys[key])
            return decode_keys(files.read(key), class_list.encoding, of_label)
        except BadFile:
            return None

    with ThreadPoolExecutor(2, thread_name_prefix="check-labels") as pool:
        for some in _parts(keys):
            for key, decoded in zip(some, pool.map(read, some), strict=True):
                if decoded is None:
                    unread.append(key)
                else:
                    check.add(key, decoded)
                progress(check.labels + len(unread), len(keys))
    return check, unread


def check_scanned(source: Source) -> None:
    """Refuse a source without the class list of a scan.

    Raises:
        InvalidInput: The source was never scanned.
    """
    if not source.class_list:
        raise InvalidInput(
            f"source {source.name}: was never scanned; scan it first: framesift ingest "
            f"{source.name}"
        )


def _parts(keys: list[str]) -> Iterator[list[str]]:
    rest = iter(keys)
    while some := list(islice(rest, _READ_AT_ONCE)):
        yield some
