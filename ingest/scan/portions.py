"""Cuts the work of a scan into portions: from a listing to frames to read and rows to write.

    listing, catalog -> compare -> pair_frames -> portions -> an engine counts -> commit

A portion stands by itself: which of its frames were counted where and when makes no difference to
what is committed. They must be committed in their order, because a removed file leaves the
catalog no earlier than what has become of its frame is written.

What follows from removed files comes last: only then is it known whether so many are removed
that the source's disk is more likely away than emptied (ingest.scan.removal_guard).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from catalog.frames.frame_trees import Identity
from catalog.frames.frames import SourceNames
from catalog.values import FKEY_CHARACTERS, File, Problem, make_fkey
from ingest.layouts.layout import FrameId, Layout
from ingest.scan.listing_diff import ScannedFile
from ingest.scan.pair_frames import FrameFiles, SceneFiles, is_camera_image, pair_frames
from ingest.scan.removal_guard import RemovalGuard
from ingest.scan.scan_counts import ScanCounts

Recall = Callable[[Sequence[File]], Mapping[str, str]]
"""Has an archive bring files back, and waits; the cause, by key, of those that it did not."""


def _recall_none(_files: Sequence[File]) -> Mapping[str, str]:
    return {}


_BAD = ("bad_file", "unreadable")


@dataclass
class Portion:
    """Portion of a scan's work: frames to read, files to write, keys to remove."""

    frames: list[FrameFiles] = field(default_factory=list)
    """Frames to read; they are written together with their files."""
    files: list[File] = field(default_factory=list)
    """Other files to write."""
    restated: list[File] = field(default_factory=list)
    """Files of which only state and tier are written."""
    examined: list[str] = field(default_factory=list)
    """Keys whose earlier problems are void."""
    problems: list[Problem] = field(default_factory=list)
    """What was found wrong without reading."""
    removed: list[str] = field(default_factory=list)
    """Keys of files that are no longer there."""
    unlabelled: list[FrameFiles] = field(default_factory=list)
    """Frames without a label, of which nothing is read; written likewise."""
    touched: set[Identity] = field(default_factory=set)
    """The frames that have a file to write or to remove."""

    def add_frame(self, frame: FrameFiles) -> None:
        """Take a frame, with a label or without, and its files."""
        (self.unlabelled if frame.label is None else self.frames).append(frame)
        self.examined += [file.key for file in frame.files]
        self.touched.add(frame.id.identity)

    def add_file(self, file: ScannedFile) -> None:
        """Take another file to write."""
        self.files.append(file.file)
        if file.frame is not None:
            self.touched.add(file.frame.identity)

    def remove(self, key: str, frame: Identity | None) -> None:
        """Take a removed file, of this frame."""
        self.removed.append(key)
        if frame is not None:
            self.touched.add(frame)


@dataclass
class _Deferred:
    """Work that follows from removed files, deferred to the end of the scan."""

    frames: list[FrameFiles] = field(default_factory=list)
    files: list[ScannedFile] = field(default_factory=list)
    examined: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    removed: dict[Identity | None, list[str]] = field(default_factory=dict)


def count_problems(counts: ScanCounts, problems: Iterable[Problem]) -> None:
    """Add problems to the counts."""
    for problem in problems:
        counts.bad_files += problem.kind in _BAD
        counts.orphans += problem.kind == "orphan"


def usable(listed: Iterable[File], names: SourceNames, problems: list[Problem]) -> Iterator[File]:
    """The files that can be catalogued; the others become problems."""
    for file in listed:
        reason = _unusable(names, file.key)
        if reason:
            printable = file.key.encode(errors="backslashreplace").decode()
            problems.append(Problem("bad_file", printable, reason))
        else:
            yield file


def _unusable(names: SourceNames, key: str) -> str:
    try:
        key.encode()
    except UnicodeEncodeError:
        return "name is not UTF-8; rename the file"
    if len(make_fkey(names.cluster, names.datasource, key)) > FKEY_CHARACTERS:
        return f"name is longer than the {FKEY_CHARACTERS:,} characters of an fkey"
    return ""


class Portions:
    """Cuts one scan's work into portions as the listing goes on; holds one scene at a time."""

    def __init__(
        self,
        counts: ScanCounts,
        layout: Layout,
        *,
        frames_each: int,
        files_each: int,
        listed: Callable[[], None] = lambda: None,
        known_problems: Iterable[Problem] = (),
        full: bool = False,
        check_images: bool = True,
        recall: Recall = _recall_none,
        guard: RemovalGuard | None = None,
        written_last: Sequence[ScannedFile] = (),
    ) -> None:
        """Prepare to cut.

        Args:
            counts: What was listed is counted here.
            files_each: Most files of a portion that are written or removed without being read.
            listed: Called after each file that was listed.
            known_problems: Those of the source's files before this scan. What could not be read
                last time is read again: it may be readable now, though nothing shows it.
            full: Read everything again.
            check_images: Read frames whose image came back from an archive.
            guard: Decides whether removed files may leave the catalog; all may when None.
            written_last: Files by which labels are counted, as they were before the listing: of no
                frame, and written when all that was counted by them is.
        """
        self.counts, self.frames_each, self.files_each = counts, frames_each, files_each
        self._layout = layout
        self._listed, self._guard = listed, guard or RemovalGuard()
        self.full, self._check_images, self._recall = full, check_images, recall
        self._archived: list[FrameFiles] = []  # frames whose label is to be recalled
        self.bad, self.unreadable = set[str](), set[str]()
        self._orphans: dict[str, str] = {}
        self._unseen = set[str]()
        for problem in known_problems:
            self._unseen.add(problem.key)
            if problem.kind == "bad_file":
                self.bad.add(problem.key)
            elif problem.kind == "unreadable":
                self.unreadable.add(problem.key)
            elif problem.kind == "orphan":
                self._orphans[problem.key] = problem.reason
        self.listing_problems: list[Problem] = []
        self._written_last = {file.key: file for file in written_last}
        self._bereft: dict[str, set[FrameId]] = {}  # frames that lost a file, by their group
        self._portion = Portion()
        self._deferred = _Deferred()

    def cut(self, files: Iterable[ScannedFile]) -> Iterator[Portion]:
        """The portions, each as soon as it is full; at least one."""
        for scene in pair_frames(self._noted(files), self._layout):
            yield from self._of_scene(scene)
        yield from self._recalled()
        if self._guard.refuses:
            self.counts.removed = 0
            self._unseen.clear()  # nobody knows what has become of these files
        else:
            yield from self._follow_removed()
        # A scan that was broken off noted them, and they went before another saw them.
        self._unseen.difference_update(problem.key for problem in self.listing_problems)
        self._portion.examined += self._unseen
        for last in self._written_last.values():
            if last.is_fresh:
                self._portion.add_file(last)
        yield self._completed()

    def _noted(self, files: Iterable[ScannedFile]) -> Iterator[ScannedFile]:
        """The files that are there, once it is noted what has become of them."""
        for file in files:
            if file.change == "removed":
                self._note_removed(file)
                continue
            self._unseen.discard(file.key)
            if file.change == "unknown":
                yield file
                continue
            noted = self._to_do(file)
            self.counts.files += 1
            setattr(self.counts, noted.change, getattr(self.counts, noted.change) + 1)
            self._listed()
            if noted.key not in self._written_last:
                yield noted

    def _note_removed(self, file: ScannedFile) -> None:
        self.counts.removed += 1
        self._guard.count(file.key)
        frame = file.frame
        if self._guard.refuses:
            self._deferred = _Deferred()
        else:
            identity = None if frame is None else frame.identity
            self._deferred.removed.setdefault(identity, []).append(file.key)
        if frame is not None:
            self._bereft.setdefault(frame.group, set()).add(frame)

    def _to_do(self, file: ScannedFile) -> ScannedFile:
        """The file: changed, where it is to be read again all the same."""
        if file.change not in ("restated", "unchanged"):
            return file
        if self.full or file.key in self.unreadable or self._comes_back(file):
            return replace(file, change="changed")
        if file.change == "restated":
            self._portion.restated.append(file.file)
            return replace(file, change="unchanged")
        return file

    def _comes_back(self, file: ScannedFile) -> bool:
        """Return whether a file was not read, or read as a stub, as an archive held it."""
        if file.name is None:
            return False  # nothing of it is read
        if file.key in self.bad:
            return file.was_archived or file.file.is_archived
        is_back = file.was_archived and not file.file.is_archived
        return is_back and self._check_images and is_camera_image(file.name)

    def _recalled(self) -> Iterator[Portion]:
        """Portions with the frames whose labels an archive held: it gets one list of them all."""
        frames, self._archived = self._archived, []
        labels = [frame.label for frame in frames if frame.label is not None]
        causes = self._recall(labels) if labels else {}
        for frame in frames:
            cause = causes.get(frame.label_key)
            if cause is None:
                yield from self._with_frame(frame, is_recalled=True)
                continue
            reason = f"cannot be recalled from its archive: {cause}; scan again"
            self._portion.problems.append(Problem("unreadable", frame.label_key, reason))
            self._portion.examined += [file.key for file in frame.files]
            self._portion.files += frame.files
            self._portion.touched.add(frame.id.identity)
            yield from self._if_full()

    def _follow_removed(self) -> Iterator[Portion]:
        """Portions that follow from removed files, and last these themselves.

        Only as long as they are in the catalog does a scan see that they were removed.
        """
        deferred, self._deferred = self._deferred, _Deferred()
        self._portion.examined += deferred.examined
        self._portion.problems += deferred.problems
        for file in deferred.files:
            self._portion.add_file(file)
            yield from self._if_full()
        for frame in deferred.frames:
            yield from self._with_frame(frame)
        yield from self._recalled()
        for identity, keys in deferred.removed.items():
            for key in keys:
                self._portion.remove(key, identity)
                yield from self._if_full()

    def _of_scene(self, scene: SceneFiles) -> Iterator[Portion]:
        # What lies in a folder that could not be listed stays as it is catalogued, and its frame.
        unlisted = {file.frame for file in scene.files if file.change == "unknown"} - {None}
        touched = self._touched_frames(scene) - unlisted
        bereft = self._bereft_frames(scene) - unlisted
        due = [
            frame
            for frame in scene.frames + scene.unlabelled
            if frame.id in touched or frame.id in bereft
        ]
        with_tags = {file.key for frame in due for file in frame.files}
        untagged = [
            file
            for file in scene.files
            if (file.is_fresh or file.frame in touched | bereft)
            and file.key not in with_tags
            and file.frame not in unlisted
        ]
        free = [file for file in untagged if file.frame not in bereft]
        deferred = [file for file in untagged if file.frame in bereft]
        # All of it here: were a file examined by a later portion, that would void what is noted.
        self._portion.examined += [file.key for file in free]
        self._deferred.examined += [file.key for file in deferred]
        self._note_problems(scene, bereft, changed=bool(touched or bereft))
        self._deferred.files += deferred
        for file in free:
            self._portion.add_file(file)
            yield from self._if_full()
        for frame in due:
            if frame.id in bereft:
                self._deferred.frames.append(frame)
            else:
                yield from self._with_frame(frame)
        yield from self._if_full()
        if self._guard.refuses:
            self._deferred = _Deferred()

    def _with_frame(self, frame: FrameFiles, *, is_recalled: bool = False) -> Iterator[Portion]:
        if frame.label is not None and frame.label.is_archived and not is_recalled:
            self._archived.append(frame)
            return
        # One portion for all of a frame: were a part of it committed before, it would not be new
        # to the next scan, and the frame not due.
        self._portion.add_frame(frame)
        yield from self._if_full()

    def _note_problems(
        self, scene: SceneFiles, bereft: set[FrameId | None], *, changed: bool
    ) -> None:
        bad = {problem.key for problem in scene.problems}
        # Partners may have come and gone while a scan was broken off: nothing of that is fresh.
        for file in scene.files:
            if file.key in self._orphans and file.key not in bad:
                self._portion_of(file, bereft).examined.append(file.key)
        if not bad:
            return
        files = {file.key: file for file in scene.files if file.key in bad}
        if changed or any(
            files[p.key].is_fresh or (p.kind == "orphan" and self._orphans.get(p.key) != p.reason)
            for p in scene.problems
        ):
            for problem in scene.problems:
                self._portion_of(files[problem.key], bereft).problems.append(problem)

    def _portion_of(self, file: ScannedFile, bereft: set[FrameId | None]) -> Portion | _Deferred:
        return self._deferred if file.frame is not None and file.frame in bereft else self._portion

    def _bereft_frames(self, scene: SceneFiles) -> set[FrameId | None]:
        """Frames of the scene that lost a file, and labels that are frames only because of that."""
        bereft: set[FrameId | None] = {*self._bereft.get(scene.group, ())}
        if bereft and not scene.has_images:
            bereft |= {frame.id for frame in scene.alone}
        return bereft

    def _touched_frames(self, scene: SceneFiles) -> set[FrameId | None]:
        """Frames of the scene with a file that is new or has changed."""
        touched = {file.frame for file in scene.files if file.is_fresh}
        touched.discard(None)
        with_tags = {file.key for file in scene.files if file.carries_tags}
        # Labels alone are frames where a scene has no camera images, and orphans where it has: this
        # may change for labels that have not changed themselves.
        for frame in scene.alone:
            label = frame.label_key
            is_frame = not scene.has_images
            if (label in with_tags) != is_frame and not (is_frame and label in self.bad):
                touched.add(frame.id)
        touched |= {
            frame.id for frame in scene.frames if frame.image and frame.label_key in with_tags
        }
        return touched

    def _if_full(self) -> Iterator[Portion]:
        portion = self._portion
        rows = len(portion.files) + len(portion.restated) + len(portion.removed)
        rows += len(portion.unlabelled)
        if len(portion.frames) >= self.frames_each or rows >= self.files_each:
            yield self._completed()

    def _completed(self) -> Portion:
        portion, self._portion = self._portion, Portion()
        portion.problems += self.listing_problems
        self.listing_problems.clear()
        self._unseen.difference_update(problem.key for problem in portion.problems)
        count_problems(self.counts, portion.problems)
        return portion
