"""Writes a scan's counts to catalog and records in commits of some thousand rows."""

from catalog.frames import frame_trees
from catalog.frames import frames as catalog_frames
from catalog.frames.frames import SourceNames
from catalog.records.scans import replace_problems
from catalog.records.store import RecordStore
from catalog.store import CatalogStore
from catalog.values import File, Frame, Problem
from ingest.labels.class_list import ClassList
from ingest.layouts.layout import Layout
from ingest.scan.engine import Counted
from ingest.scan.portions import count_problems
from ingest.scan.read_frame import frame_record, unlabelled_record
from ingest.scan.scan_counts import ScanCounts

BATCH_FRAMES = 2_000
"""Frames of one commit. A killed scan loses at most so much work, and no acknowledged row."""

BATCH_FILES = 4 * BATCH_FRAMES
"""Files written or removed by one commit, about."""


class ScanCommits:
    """Batch of portions, committed when it is full."""

    def __init__(
        self,
        store: CatalogStore,
        records: RecordStore,
        names: SourceNames,
        class_list: ClassList,
        layout: Layout,
        *,
        source_id: int,
        scan: int,
        counts: ScanCounts,
    ) -> None:
        """Prepare to commit."""
        self.store, self.records, self.names, self.class_list = store, records, names, class_list
        self.layout = layout
        self.source_id, self.scan, self.counts = source_id, scan, counts
        self._files: list[File] = []
        self._restated: list[File] = []
        self._frames: list[Frame] = []
        self._gone: list[str] = []
        self._examined: list[str] = []
        self._problems: list[Problem] = []
        self._touched = set[frame_trees.Identity]()

    def add(self, counted: Counted) -> None:
        """Take a portion and its counts; they may be committed now or later."""
        portion, frame_counts = counted
        counts = self.counts
        self._files += portion.files
        self._restated += portion.restated
        self._gone += portion.removed
        self._examined += portion.examined
        self._problems += portion.problems
        self._touched |= portion.touched
        for files, count in zip(portion.frames, frame_counts, strict=True):
            self._files += files.files
            self._problems += count.problems
            count_problems(counts, count.problems)
            counts.bytes_read += count.bytes_read
            frame = frame_record(files, count, self.class_list, self.layout)
            if frame is not None:
                self._frames.append(frame)
                counts.frames += 1
                counts.labels_alone += files.image is None
                counts.images_archived += files.image is not None and files.image.is_archived
                counts.unknown_pixels += count.unknown_pixels
        for files in portion.unlabelled:
            self._files += files.files
            self._frames.append(unlabelled_record(files, self.layout))
        counts.unlabelled += len(portion.unlabelled)
        rows = len(self._files) + len(self._restated) + len(self._gone)
        if len(self._frames) >= BATCH_FRAMES or rows >= BATCH_FILES:
            self.commit()

    def commit(self) -> None:
        """Write what was taken since the last commit."""
        # Problems first: a file whose row is there is not looked at again, so that a problem that
        # was not yet kept when the scan was killed would be lost.
        replace_problems(
            self.records, self.source_id, self.scan, self._examined + self._gone, self._problems
        )
        if self._files or self._restated or self._gone:
            reason = f"scan {self.scan} of {self.names.datasource}"
            with self.store.writing(reason, author="ingest") as connection:
                catalog_frames.remove(connection, self.names, self._gone)
                catalog_frames.restate(connection, self.names, self._restated)
                catalog_frames.register(
                    connection, self.names, self._files, self._frames, self.scan
                )
                if self.layout.merges_trees:
                    frame_trees.merge(
                        connection, self.names.cluster, self.names.datasource, self._touched
                    )
            self.counts.commits += 1
        self._files, self._frames, self._problems = [], [], []
        self._gone, self._examined, self._restated = [], [], []
        self._touched = set()
