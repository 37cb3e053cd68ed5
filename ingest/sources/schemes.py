"""The kinds of sources: places, by the scheme of their URIs, and archives, by their ending.

Another kind is an entry here and a module, of a place with `open_folder` and `open_archive`, of an
archive with `open_members`. What opens a source, watches it, says what may be named over REST or
what a URI looks like reads these tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from catalog.errors import InvalidInput, not_installed
from ingest.sources.local_folder import path_of
from ingest.sources.source_files import ArchiveBytes, FileReader, SourceFiles
from ingest.sources.source_options import NO_OPTIONS, SourceOptions


@dataclass(frozen=True)
class Scheme:
    """Kind of location: its URIs, and the module that opens them."""

    name: str
    """Of its URIs; "file" is that of plain paths, too."""
    example: str
    """What a URI of it looks like."""
    module: str
    """What opens it, imported then: boto3 takes 0.3 s, and a folder does not need it."""
    extra: str
    """The extra of framesift that it needs; empty for none."""
    is_local: bool
    """Whether it names a folder of this machine; else a server, reached as the options say."""
    events: tuple[str, ...]
    """What reports changes in its folders, as ingest.watch.choice names it; the first is taken
    where none is named.
    """


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme(
            "file", "file:///...", "ingest.sources.local_folder", "", True, ("inotify", "none")
        ),
        Scheme(
            "s3", "s3://bucket/prefix", "ingest.sources.s3.s3_source", "s3", False,
            ("none", "sqs://", "https://", "http://", "kafka://"),
        ),
    )
}  # fmt: skip

ARCHIVES = {".tar": "ingest.sources.tar_source"}
"""Module that opens an archive's members, by the ending of its name."""

_COMPRESSED = (
    ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz", ".tar.zst", ".tzst",
    ".tar.lz4", ".tar.lzma", ".tar.z",
)  # fmt: skip
_EXAMPLES = " or ".join(scheme.example for scheme in SCHEMES.values())

PLACES = f"Folder or {' or '.join(ARCHIVES)} archive: a path, {_EXAMPLES}."
"""Forms of a source's location, for error messages and help."""

_EXPECTED = f"a folder's path, {_EXAMPLES}"


def scheme_of(uri: str) -> Scheme:
    """The kind of place that a URI or path names.

    Raises:
        InvalidInput: There is no such kind, or it names nothing.
    """
    name, colon, rest = uri.partition(":")
    if colon and name.lower() == "file" and rest.startswith("/"):
        return SCHEMES["file"]
    if "://" not in uri:
        if not uri:
            raise InvalidInput(f"the source's URI is empty; expected {_EXPECTED}")
        return SCHEMES["file"]
    scheme = SCHEMES.get(name.lower())
    if scheme is None or scheme.is_local:
        raise InvalidInput(f"source {uri}: scheme '{name}' is not supported; expected {_EXPECTED}")
    return scheme


def events_of(uri: str) -> tuple[str, ...]:
    """The kinds of events that report changes; none for an archive, which changes as a whole."""
    return ("none",) if is_archive(uri) else scheme_of(uri).events


def is_archive(uri: str) -> bool:
    """Return whether a path or URI names an archive: its ending decides, unless it is a folder."""
    return _archive_module(uri) is not None


def open_source(
    uri: str, options: SourceOptions = NO_OPTIONS, index_folder: Path | None = None
) -> SourceFiles:
    """The files below a URI of a folder or of an archive.

    Args:
        uri: Where they are: a path, or a URI of one of the schemes.
        index_folder: Where the indexes of archives are kept; None keeps none.

    Raises:
        InvalidInput: No URI, one of another host, a scheme that is not supported, a compressed
            archive, or options that do not fit.
        BadFile: The archive is damaged or truncated.
        StorageError: The folder, archive or bucket is not there or cannot be reached.
    """
    archive = _archive_module(uri)
    opener = _opener(uri)
    if archive is None:
        return opener.open_folder(uri, options)
    members = cast(_Members, import_module(archive))
    return members.open_members(opener.open_archive(uri, options), options, index_folder)


def open_reader(
    uri: str, options: SourceOptions, spans: Mapping[str, tuple[int, int]]
) -> FileReader:
    """Read a source's files without listing it, as a worker on another machine does.

    Args:
        spans: What SourceFiles.spans gave for the files that will be read.
    """
    if not spans:
        return open_source(uri, options)
    from ingest.sources.tar_source import TarReader

    return TarReader(_opener(uri).open_archive(uri, options), spans.get)


class _Opener(Protocol):
    def open_folder(self, uri: str, options: SourceOptions) -> SourceFiles: ...
    def open_archive(self, uri: str, options: SourceOptions) -> ArchiveBytes: ...


class _Members(Protocol):
    def open_members(
        self, archive: ArchiveBytes, options: SourceOptions, index_folder: Path | None
    ) -> SourceFiles: ...


def _archive_module(uri: str) -> str | None:
    name = uri
    if scheme_of(uri).is_local:
        name = path_of(uri)
        if Path(name).is_dir():
            return None
    name = name.lower()
    if name.endswith(_COMPRESSED):
        raise InvalidInput(
            f"source {uri}: a compressed archive cannot be read in parts; "
            "expected an uncompressed .tar (decompress it) or a folder (unpack it)"
        )
    return next((module for end, module in ARCHIVES.items() if name.endswith(end)), None)


def _opener(uri: str) -> _Opener:
    scheme = scheme_of(uri)
    try:
        return cast(_Opener, import_module(scheme.module))
    except ImportError as error:
        raise not_installed(f"source {uri}: {error.name}", scheme.extra) from error
