"""What a scan has to do, cut into portions: from a listing to frames to read and rows to write.

    listing, catalog -> compare -> pair_frames -> portions -> an engine counts -> commit

A portion stands by itself: which of its frames were counted where and when makes no difference to
what is committed. They must be committed in their order, because a gone file leaves the catalog no
earlier than what has become of its frame is written.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from catalog.frames import SourceNames
from catalog.records import FKEY_CHARACTERS, File, Problem, make_fkey
from ingest.frame_name import FrameId, parse
from ingest.listing_diff import Compared
from ingest.pair_frames import FrameFiles, SceneFiles, pair_frames
from ingest.scan_counts import ScanCounts

_BAD = ("bad_file", "unreadable")


@dataclass
class Portion:
    """A part of a scan's work.

    Attributes:
        frames: Frames to read; they are written together with their files.
        files: Other files to write.
        examined: Keys whose earlier problems are void.
        problems: What was found wrong without reading.
        gone: Keys of files that are no longer there.
    """

    frames: list[FrameFiles] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    examined: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


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
        *,
        frames_each: int,
        files_each: int,
        told: Callable[[], None] = lambda: None,
        standing: Iterable[Problem] = (),
        full: bool = False,
    ) -> None:
        """Prepare to cut.

        Args:
            counts: What was listed is counted here.
            frames_each: Most frames of a portion.
            files_each: Most files of a portion that are written or removed without being read.
            told: Called after each file that was listed.
            standing: What was wrong with the source's files before this scan. What could not be
                read last time is read again: it may be readable now, though nothing shows it.
            full: Read everything again.
        """
        self.counts, self.frames_each, self.files_each = counts, frames_each, files_each
        self._told = told
        self.full = full
        self.bad, self.unreadable = set[str](), set[str]()
        self._orphans: dict[str, str] = {}
        self._unseen = set[str]()
        for problem in standing:
            self._unseen.add(problem.key)
            if problem.kind == "bad_file":
                self.bad.add(problem.key)
            elif problem.kind == "unreadable":
                self.unreadable.add(problem.key)
            elif problem.kind == "orphan":
                self._orphans[problem.key] = problem.reason
        self.listing_problems: list[Problem] = []
        # Of the scene that is being listed: keys that are new, changed or gone, and the frames that
        # lost a file.
        self._fresh: set[str] = set()
        self._missed: list[str] = []
        self._bereft: set[FrameId] = set()
        self._carrying: set[str] = set()
        self._portion = Portion()

    def cut(self, compared: Iterable[Compared]) -> Iterator[Portion]:
        """The portions, each as soon as it is full; at least one."""
        for scene in pair_frames(self._noted(compared)):
            yield from self._of_scene(scene)
        self._portion.gone += self._missed
        # A scan that was broken off noted them, and they went before another saw them.
        self._unseen.difference_update(problem.key for problem in self.listing_problems)
        self._portion.examined += self._unseen
        yield self._taken()

    def _noted(self, compared: Iterable[Compared]) -> Iterator[File]:
        """The listed files, once it is noted what has become of them."""
        counts = self.counts
        for found in compared:
            if found.file is None:
                counts.removed += 1
                self._missed.append(found.key)
                parsed = parse(found.key)
                if parsed is not None:
                    self._bereft.add(parsed.frame)
                continue
            counts.files += 1
            self._unseen.discard(found.key)
            again = self.full or found.key in self.unreadable
            change = "changed" if again and found.change == "unchanged" else found.change
            setattr(counts, change, getattr(counts, change) + 1)
            if change != "unchanged":
                self._fresh.add(found.key)
            if found.label_carries_tags:
                self._carrying.add(found.key)
            self._told()
            yield found.file

    def _of_scene(self, scene: SceneFiles) -> Iterator[Portion]:
        touched = self._touched_frames(scene)
        due = [frame for frame in scene.frames if frame.id in touched]
        with_tags = {file.key for frame in due for file in frame.files}
        others = [
            file
            for file in scene.files
            if (file.key in self._fresh or _frame_of(file) in touched) and file.key not in with_tags
        ]
        # All of it here: were a file examined by a later portion, that would void what is noted.
        self._portion.examined += [file.key for file in others]
        self._note_problems(scene, bool(touched))
        for file in others:
            self._portion.files.append(file)
            yield from self._if_full()
        for frame in due:
            # One portion for all of a frame: were a part of it committed before, it would not be
            # new to the next scan, and the frame not due.
            self._portion.frames.append(frame)
            self._portion.examined += [file.key for file in frame.files]
            yield from self._if_full()
        for keys in (self._fresh, self._carrying):
            keys.difference_update(file.key for file in scene.files)
        if scene.scene:
            self._leave(scene)

    def _note_problems(self, scene: SceneFiles, touched: bool) -> None:
        found = {problem.key for problem in scene.problems}
        # Partners may have come and gone while a scan was broken off: nothing of that is fresh.
        self._portion.examined += [
            file.key for file in scene.files if file.key in self._orphans and file.key not in found
        ]
        if touched or any(
            p.key in self._fresh or (p.kind == "orphan" and self._orphans.get(p.key) != p.reason)
            for p in scene.problems
        ):
            self._portion.problems += scene.problems

    def _leave(self, scene: SceneFiles) -> None:
        """Scenes come in order: what was lost up to this one has been dealt with."""
        self._bereft = {found for found in self._bereft if found.folder > scene.scene}
        # Gone files leave the catalog no earlier than their frames are dealt with: only as long as
        # they are there does a scan see that they are gone.
        end = max(scene.scene + "/\U0010ffff", scene.files[-1].key)
        self._portion.gone += [key for key in self._missed if key <= end]
        self._missed = [key for key in self._missed if key > end]

    def _touched_frames(self, scene: SceneFiles) -> set[FrameId | None]:
        """Frames of the scene with a file that is new, changed or gone."""
        touched = {_frame_of(file) for file in scene.files if file.key in self._fresh}
        touched |= self._bereft
        touched.discard(None)
        # Labels alone are frames where a scene has no camera images, and orphans where it has: this
        # may change for labels that have not changed themselves.
        for frame in scene.alone:
            label = frame.label_key
            is_frame = not scene.images
            if (label in self._carrying) != is_frame and not (is_frame and label in self.bad):
                touched.add(frame.id)
        touched |= {
            frame.id for frame in scene.frames if frame.image and frame.label_key in self._carrying
        }
        return touched

    def _if_full(self) -> Iterator[Portion]:
        portion = self._portion
        rows = len(portion.files) + len(portion.gone)
        if len(portion.frames) >= self.frames_each or rows >= self.files_each:
            yield self._taken()

    def _taken(self) -> Portion:
        portion, self._portion = self._portion, Portion()
        portion.problems += self.listing_problems
        self.listing_problems.clear()
        self._unseen.difference_update(problem.key for problem in portion.problems)
        count_problems(self.counts, portion.problems)
        return portion


def _frame_of(file: File) -> FrameId | None:
    parsed = parse(file.key)
    return None if parsed is None else parsed.frame
