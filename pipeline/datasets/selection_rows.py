"""A selection's frames as rows of a manifest: all at once, or portion by portion."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput, NotFound
from catalog.frames.label_segments import segments_of
from catalog.lake.catalog import Catalog
from catalog.lake.wide_names import FKEY_HASH
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.datasets.class_lists import classes_of
from pipeline.datasets.division import Division, divide
from pipeline.datasets.row_counts import RowCounts
from pipeline.datasets.rows_file import RowsFile, UndividedRows
from pipeline.datasets.stores import Stores
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.source_locations import SourceLocations
from query.frames.candidates import DUPLICATE
from query.frames.file_versions import IMAGE_VERSION, LABEL_VERSION, label_fkeys
from query.frames.frame_portions import FramePortions
from query.frames.selection import Selection
from query.sets.leakage_guard import DRIVE

_Sources = dict[tuple[str, str], Source]


@dataclass(frozen=True)
class WrittenRows:
    """Rows of a manifest on disk, counted while they were written."""

    rows: RowsFile
    counts: RowCounts
    classes: DatasetClasses
    source_locations: SourceLocations
    report: dict[str, Any]
    """What is to be said of the division."""


def rows_of(
    stores: Stores, name: str, selection: Selection, splits: pa.Array
) -> tuple[pa.Table, DatasetClasses, SourceLocations]:
    """A selection as a manifest's rows; its classes, and its sources' places."""
    _refuse_labels_alone(name, _labels_alone(selection), len(selection))
    pairs = selection.frames.select(["cluster", "datasource"]).group_by(["cluster", "datasource"])
    named = sorted(tuple(row.values()) for row in pairs.aggregate([]).to_pylist())
    sources = _recorded(stores.records, named)
    classes = classes_of(stores.records, sources.values())
    rows = _rows(stores.catalog, selection, splits, sources, classes)
    return rows, classes, SourceLocations.of(sources.values())


def portioned_rows(
    stores: Stores,
    name: str,
    portions: FramePortions,
    division: Division,
    splits: Sequence[str],
    question: Mapping[str, object],
) -> WrittenRows | None:
    """Portions of frames divided and written as a manifest's rows; None without a frame.

    Sources are looked up before any portion is read.

    Args:
        splits: The names of the splits.
        question: The dataset's question, with all that its id is made of.
    """
    if not portions.sources:
        return None
    sources = _recorded(stores.records, portions.sources)
    classes = classes_of(stores.records, sources.values())
    writing = _Writing(stores.catalog, portions, sources, classes)
    counts = RowCounts(question, portions.snapshot, len(classes))
    report: dict[str, Any] = {}
    if not division.is_divided:
        rows = RowsFile(_counted(writing.rows(splits[0]), counts))
        _refuse_labels_alone(name, writing.alone, writing.frames)
    else:
        # Twice: how frames are divided depends on all of them.
        undivided = UndividedRows(writing.rows("", _divided_by(division)))
        _refuse_labels_alone(name, writing.alone, writing.frames)
        if not writing.frames:
            return None
        frames = pa.concat_tables(writing.kept)
        known = dict.fromkeys(portions.classes, "")
        sides, report = divide(frames, np.asarray(frames[FKEY_HASH]), division, known)
        of_rows = pa.array(splits).take(pa.array(sides))
        writing.kept.clear()
        del frames, sides
        rows = RowsFile(_counted(_with_splits(undivided, of_rows), counts))
    if not counts.frames:
        return None
    return WrittenRows(rows, counts, classes, SourceLocations.of(sources.values()), report)


class _Writing:
    """Rows made of portions, one after another.

    Attributes:
        frames: Number of rows so far.
        alone: Those of them that are labels alone.
        kept: Columns of each portion that were to be kept in memory.
    """

    def __init__(
        self,
        catalog: Catalog,
        portions: FramePortions,
        sources: _Sources,
        classes: DatasetClasses,
    ) -> None:
        """Read nothing yet."""
        self._catalog, self._portions = catalog, portions
        self._sources, self._classes = sources, classes
        self.frames = self.alone = 0
        self.kept: list[pa.Table] = []

    def rows(self, split: str, keep: Sequence[str] = ()) -> Iterator[pa.Table]:
        """The rows of each portion, all in one split."""
        for portion in self._portions:
            self.frames += len(portion)
            self.alone += _labels_alone(portion)
            if keep:
                self.kept.append(_encoded(portion.frames, keep))
            splits = pa.array([split]).take(pa.array(np.zeros(len(portion), np.int64)))
            yield _rows(self._catalog, portion, splits, self._sources, self._classes)
            del portion, splits  # before the next is read


def _counted(portions: Iterator[pa.Table], counts: RowCounts) -> Iterator[pa.Table]:
    for rows in portions:
        counts.add(rows)
        yield rows
        del rows  # before the next is read


def _with_splits(undivided: UndividedRows, splits: pa.Array) -> Iterator[pa.Table]:
    index, start = FRAMES_SCHEMA.get_field_index("split"), 0
    for rows in undivided.portions():
        of_rows = splits.slice(start, rows.num_rows)
        start += rows.num_rows
        yield rows.set_column(index, FRAMES_SCHEMA.field(index), of_rows)
        del rows  # before the next is read


def _divided_by(division: Division) -> list[str]:
    """The columns that a division looks at."""
    return [*dict.fromkeys(["scene", "frame_number", *division.columns(), FKEY_HASH])]


def _encoded(frames: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Columns of frames, and those that keep splits apart; texts as dictionaries."""
    beside = [name for name in (DRIVE, DUPLICATE) if name in frames.column_names]
    return pa.table(
        {
            name: column.dictionary_encode() if pa.types.is_string(column.type) else column
            for name in dict.fromkeys((*columns, *beside))
            for column in (frames[name],)
        }
    )


def _labels_alone(selection: Selection) -> int:
    """Number of frames whose label carries their tags: they have no camera image to train on."""
    frames = selection.frames
    return int(pc.sum(pc.equal(frames["image_file"], frames["label_file"])).as_py() or 0)


def _refuse_labels_alone(name: str, alone: int, frames: int) -> None:
    if alone:
        raise InvalidInput(
            f"dataset {name}: {alone:,} of the selection's {frames:,} frames are labels "
            "without a camera image; ingest the images too, or leave those frames out: "
            "--where \"filename LIKE '%_camera_%'\""
        )


def _recorded(records: RecordStore, named: Sequence[tuple[str, str]]) -> _Sources:
    """The sources of these clusters and datasources.

    Raises:
        NotFound: One has no record.
    """
    known = {(source.cluster, source.datasource): source for source in recorded_sources(records)}
    for pair in named:
        if pair not in known:
            raise NotFound("source", pair[1], f"of cluster {pair[0]}; it has been removed")
    return {pair: known[pair] for pair in named}


def _rows(
    catalog: Catalog,
    selection: Selection,
    splits: pa.Array,
    sources: _Sources,
    classes: DatasetClasses,
) -> pa.Table:
    frames, tags = selection.frames, classes.tags
    none_counted = pa.nulls(len(selection), pa.int32())  # by an earlier class list
    per_frame = np.empty((len(selection), len(tags)), np.int32)
    for index, tag in enumerate(tags):
        counted = frames[tag] if tag in selection.classes else none_counted
        per_frame[:, index] = np.asarray(counted.fill_null(0))
    ends = np.arange(len(selection) + 1, dtype=np.int32) * len(tags)
    of_each = pa.ListArray.from_arrays(pa.array(ends), pa.array(per_frame.ravel()))
    names = _source_names(frames, sources)
    labelled = frames["label_file"].is_valid().combine_chunks()
    none = pa.nulls(len(selection), pa.string())
    panoptic = [name for name in names.unique().to_pylist() if classes.is_panoptic(name)]
    segments = none
    if panoptic:
        of_panoptic = pc.and_(labelled, pc.is_in(names, pa.array(panoptic)))
        segments = _segments(catalog, selection, of_panoptic)
    return pa.table(
        {
            "fkey": frames["fkey"],
            "split": splits,
            "scene": frames["scene"],
            "camera": frames["camera"],
            "image_source": names,
            "image": frames["image_file"],
            "image_size": frames["image_size"],
            IMAGE_VERSION: frames[IMAGE_VERSION],
            "image_digest": none,
            "label_source": pc.if_else(labelled, names, None),
            "label": frames["label_file"],
            "label_size": frames["label_size"],
            LABEL_VERSION: frames[LABEL_VERSION],
            "label_digest": none,
            "label_segments": segments,
            "class_pixels": pc.if_else(labelled, of_each, None),
        },
        schema=FRAMES_SCHEMA,
    )


def _segments(catalog: Catalog, selection: Selection, of_panoptic: pa.Array) -> pa.Array:
    """The segments of the labels that are panoptic, null of all others.

    Raises:
        InvalidInput: A label was counted in another encoding than its source's is by now.
    """
    fkeys = pc.if_else(of_panoptic, label_fkeys(selection.frames), None).to_pylist()
    with catalog.reading_files(selection.snapshot) as snapshot:
        known = segments_of(snapshot, [fkey for fkey in fkeys if fkey is not None])
    if unknown := [fkey for fkey in fkeys if fkey is not None and fkey not in known]:
        raise InvalidInput(
            f"the segments of {len(unknown):,} panoptic labels are not in snapshot "
            f"{selection.snapshot} of the catalog, such as those of {unknown[0]}: they were "
            "counted by another layout; scan their source again (framesift ingest), and ask for "
            "frames of the newest snapshot"
        )
    return pa.array([known.get(fkey) for fkey in fkeys], pa.string())


def _source_names(frames: pa.Table, sources: _Sources) -> pa.Array:
    """The name of each frame's source."""
    if len(sources) == 1:
        (source,) = sources.values()
        return pa.array([source.name]).take(pa.array(np.zeros(len(frames), np.int64)))
    # Neither has a NUL: they are parts of fkeys, which are texts of the catalog.
    pairs = pc.binary_join_element_wise(frames["cluster"], frames["datasource"], "\0")
    known = pa.array(["\0".join(pair) for pair in sources])
    positions = pc.index_in(pairs, value_set=known).combine_chunks()
    return pa.array([source.name for source in sources.values()]).take(positions)
