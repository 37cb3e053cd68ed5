"""Recalls what a staging is about to read and an archive holds: from tape, and from Glacier.

A stub that is read is recalled, too, but one by one, in no order of the tapes; an archived object
is refused. Of what cannot be recalled the cause is kept (pipeline.archive.refused_files).
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from catalog.errors import BadFile, FramesiftError, StorageError
from catalog.values import File
from ingest.sources.archived import RestoreRequest, RestoresFiles
from ingest.sources.local_folder import LocalFolder, is_stub
from ingest.sources.source_files import SourceFiles
from pipeline.archive.eeadm import recall
from pipeline.staging.fetch import FailedFile
from pipeline.staging.plan import OpenSource
from pipeline.staging.storage_commands.list_file import needs_escapes

SourceKey = tuple[str, str]
"""Name of a source, and a file's key below it."""

_FEW_KEYS = 20
"""Most files of a folder that are looked at one by one; with more, the folder is listed."""

_AT_ONCE = 16
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_TELL_EVERY_S = 1.0
_STILL_IN_A_ROW = 64
"""Objects still archived, one after another, after which a round of looks ends."""


@dataclass(frozen=True)
class ArchiveAccess:
    """Access to archives: their commands, folder of lists and requests."""

    command: tuple[str, ...] = ()
    """`eeadm recall`, and what leads to it; empty leaves stubs to be recalled as they are read."""
    lists: Path = Path()
    """Folder of list files, which this machine and the archive's node have."""
    restore: RestoreRequest = field(default_factory=RestoreRequest)
    """How object stores are asked."""
    migrate: tuple[str, ...] = ()
    """`eeadm migrate` with its pool, and what leads to it; see `eeadm.migrate`."""


@dataclass(frozen=True)
class Recalled:
    """The outcome of a recall."""

    files: int = 0
    """Files that an archive held, and were asked for."""
    causes: Mapping[SourceKey, str] = field(default_factory=dict)

    def explained(self, failure: FailedFile, key: SourceKey) -> FailedFile:
        """The failure of a file, with the cause that its archive gave."""
        cause = self.causes.get(key)
        return failure if cause is None else replace(failure, reason=f"{failure.reason}; {cause}")


def recall_archived(
    files: Iterable[SourceKey],
    sources: OpenSource,
    access: ArchiveAccess,
    waiting: Callable[[int], None] = lambda _: None,
) -> Recalled:
    """Have archives bring back those of the files that they hold, and wait until they have.

    Args:
        waiting: Told every second how many files are still to come; what it raises ends it.
    """
    archived = _archived(files, sources, access)
    if not archived:
        return Recalled()
    waiting(len(archived))
    causes: dict[SourceKey, str] = {}
    _recall({key: path for key, (_, path) in archived.items() if path}, access, causes)
    objects = {key: opened for key, (opened, path) in archived.items() if not path}
    _restore(objects, access.restore, causes, waiting)
    return Recalled(len(archived), causes)


def recall_listed(
    access: ArchiveAccess,
    files: SourceFiles,
    listed: Sequence[File],
    waiting: Callable[[int], None] = lambda _: None,
) -> Mapping[str, str]:
    """Have an archive bring back listed files of one source; see `recall_archived`.

    Returns:
        Why some could not be recalled, by their keys.
    """
    keys = [("", file.key) for file in listed]
    recalled = recall_archived(keys, lambda _: files, access, waiting)
    return {key: cause for (_, key), cause in recalled.causes.items()}


def _archived(
    files: Iterable[SourceKey], sources: OpenSource, access: ArchiveAccess
) -> dict[SourceKey, tuple[SourceFiles, str]]:
    """The files that archives hold: each with the files of its source, and a stub's path."""
    folders: dict[tuple[str, str], set[str]] = defaultdict(set)
    for source, key in files:
        folders[source, key.rpartition("/")[0]].add(key)
    archived: dict[SourceKey, tuple[SourceFiles, str]] = {}
    for (source, folder), keys in folders.items():
        # Whatever ails the source, the fetching meets it as well, and reports it.
        with suppress(StorageError, BadFile):
            opened = sources(source)
            is_folder = isinstance(opened, LocalFolder)
            if not (access.command if is_folder else isinstance(opened, RestoresFiles)):
                continue
            for file in _listed(opened, folder, keys):
                if file.key in keys and _is_archived(file):
                    path = f"{opened.root}/{file.key}" if is_folder else ""
                    archived[source, file.key] = opened, path
    return archived


def _listed(files: SourceFiles, folder: str, keys: set[str]) -> Iterable[File]:
    if len(keys) > _FEW_KEYS:
        return files.list(f"{folder}/" if folder else "")
    return (file for key in sorted(keys) for file in files.list(key))


def _is_archived(file: File) -> bool:
    # Of INTELLIGENT_TIERING no listing tells; asking for an object that can be read does no harm.
    return file.state == "migrtd" or (file.state is None and file.tier is not None)


def _recall(
    stubs: Mapping[SourceKey, str], access: ArchiveAccess, causes: dict[SourceKey, str]
) -> None:
    """Have stubs recalled; those that are still stubs afterwards were not."""
    if not stubs:
        return
    cause = "it is a stub still"
    listed = {key: path for key, path in stubs.items() if not needs_escapes([path])}
    for key in stubs.keys() - listed.keys():
        causes[key] = "no list of eeadm can hold its name, which has a line break or a backslash"
    try:
        if listed:
            recall(access.command, access.lists, list(listed.values()))
    except FramesiftError as error:
        cause = str(error)
    for key, path in listed.items():
        with suppress(OSError):  # it is gone: the fetching names it
            if is_stub(Path(path).stat()):
                causes[key] = cause


def _restore(
    objects: Mapping[SourceKey, SourceFiles],
    request: RestoreRequest,
    causes: dict[SourceKey, str],
    waiting: Callable[[int], None],
) -> None:
    """Ask for objects, and look again and again until all that were not refused can be read."""

    def is_there(item: tuple[SourceKey, SourceFiles]) -> bool:
        (source, key), files = item
        assert isinstance(files, RestoresFiles)
        try:
            return files.restored(key, request)
        except FramesiftError as error:
            causes[source, key] = str(error)
            return True

    pending = list(objects.items())
    pause, is_first = _FIRST_PAUSE_S, True
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="restore") as pool:
        while pending:
            still: list[tuple[SourceKey, SourceFiles]] = []
            at = 0
            # They come about in the order in which they were asked for: all are asked once, and
            # then only as many as it takes to see that the next ones are not there.
            while at < len(pending) and (is_first or len(still) < _STILL_IN_A_ROW):
                some = pending[at : at + _STILL_IN_A_ROW]
                there = list(pool.map(is_there, some))
                still += [item for item, restored in zip(some, there, strict=True) if not restored]
                at += len(some)
                waiting(len(still) + len(pending) - at)
            pending, is_first = still + pending[at:], False
            until = time.monotonic() + pause
            while pending and (rest := until - time.monotonic()) > 0:
                time.sleep(min(rest, _TELL_EVERY_S))
                waiting(len(pending))
            pause = min(_LONGEST_PAUSE_S, pause * 1.5)
