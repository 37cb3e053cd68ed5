"""The whole error tree of Framesift.

    FramesiftError
    ├── InvalidInput             a value the user gave cannot be used
    │   ├── UnknownName          a class, tag, camera or split that does not exist
    │   ├── ClassListMissing     a source without its class_list.json
    │   ├── NothingToAdd         no frame is left that a dataset could grow by
    │   └── BodyTooLarge         a request's body is longer than it may be
    ├── NotFound                 no source, dataset, job... of that name
    │   └── NotMade              no catalog, or no records, where this command looks
    ├── AlreadyExists            the name is taken
    ├── PreconditionFailed       it is another version than the one to be changed
    ├── InUse                    it cannot be removed, for something else needs it
    ├── RemovalRefused           so many of a source's files are gone that its disk may be away
    ├── NotAuthenticated         nobody that the server knows is asking
    ├── NotAllowed               who asks is known, and may not
    ├── LoginThrottled           too many logins have failed
    ├── ServerBusy               too many requests of a kind wait already
    ├── TooManyJobs              a user has as many jobs or ranks under way as may be
    ├── TooManyStreams           a caller listens to too many jobs at once
    ├── BadFile                  a file's content cannot be used
    │   ├── UnreadableFile       ... or could not be read this time
    │   │   └── ArchivedFile     ... before an archive has brought it back
    │   └── OtherVersion         ... is not that of the version that was wanted
    ├── SqlError                 a statement is refused, with SQLCODE and SQLSTATE
    ├── StorageError             the disk: space, permission, a vanished file
    │   ├── StoreAway            a database or object store does not answer; it may later
    │   ├── CacheFull            running jobs and pins hold the space that a staging needs
    │   └── SourceFails          a source's disk, archive or bucket, asked for a frame's picture
    ├── CatalogBusy              another process holds the write lock
    ├── CatalogDamaged           the catalog's files do not fit together
    ├── CollectionFails          the rule of a user's collection cannot be evaluated
    ├── ProviderFails            the OpenID provider does not answer, or not as it should
    ├── EngineFailed             the workers of a distributed scan
    ├── JobFailed                a training or validation job did not succeed
    └── StagingCancelled         a user asked the staging to end

The client package has its own, framesift.FramesiftServerError, because it needs none of the rest.
A message says what was given, what was expected and what to do, on one line.
What a program may want to act on is on attributes.
Foreign exceptions are translated into these once, where they enter, ``from`` the cause.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

EXPORT_AND_IMPORT = (
    "with the version that wrote it, export the tags (framesift sql --format csv-named) and the "
    "datasets (framesift dataset export); then ingest the sources into a new home and import both "
    "(framesift tags import): docs/snapshots-and-maintenance.md"
)
"""How to go on where a home is of a format that is not read."""


class FramesiftError(Exception):
    """Every error that Framesift raises on purpose."""

    def __str__(self) -> str:
        """The message on one line: a line break in what was given is shown as a blank."""
        return " ".join(super().__str__().splitlines())

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as it is, so that it comes back from a worker: constructors take parts of it."""
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(
    kind: type[FramesiftError], args: tuple[object, ...], data: dict[str, object]
) -> FramesiftError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(data)
    return error


class InvalidInput(FramesiftError):
    """A value the user gave cannot be used."""


class NothingToAdd(InvalidInput):
    """No frame is left that a dataset could grow by."""


_LISTED_BY = {
    "class": "framesift classes, or GET /v1/classes, lists them.",
    "column": "framesift tags list, or GET /v1/tags, lists those that are tags.",
    "model": "framesift models list, or GET /v1/models, lists models.",
    "scene": "framesift facets scene, or GET /v1/statistics/facets, lists them.",
    "score": "framesift classes, or GET /v1/classes, lists the classes' tags.",
    "tag": "framesift tags list, or GET /v1/tags, lists them.",
}
"""How to see the names of a kind that are too many for a message."""
_MOST_LISTED = 12


class UnknownName(InvalidInput):
    """A name that is not among the known ones; the message offers the nearest, and lists a few.

    Attributes:
        kind: What the name was taken for, such as "class".
        name: The name as given.
        nearest: The known names most like it, best first; may be empty.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind = kind
        self.name = name
        known = sorted(known)
        self.nearest = nearest_names(name, known)
        advice = [f"did you mean {' or '.join(self.nearest)}?"] if self.nearest else []
        if len(known) > _MOST_LISTED and kind in _LISTED_BY:
            advice.append(_LISTED_BY[kind])
        elif not advice:
            advice.append(f"known: {', '.join(known) or 'none'}.")
        advice += [hint] if hint else []
        super().__init__(f"unknown {kind} '{name}': {' '.join(advice)}")


def known_names(names: Sequence[str], way: str) -> str:
    """The end of an error that says which names there are: all, or a few and how many more.

    Args:
        names: At least one.
        way: What lists them.
    """
    listed = ", ".join(names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return f"known: {listed}" + (f" and {more:,} more; {way} list them" if more > 0 else "")


_LEAST_LIKENESS = 0.65
"""Of difflib: "cra" is as like "car" as 0.67, "weather" as like "center" as 0.62."""


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that look like ``name``, best first; empty when none does.

    Before those that are spelled alike come those with it as one of their words, as front_left.
    """
    known = list(known)
    having = [one for one in known if name.lower() in one.lower().replace("_", " ").split()]
    close = get_close_matches(name.lower(), known, n=3, cutoff=_LEAST_LIKENESS)
    return list(dict.fromkeys([*having, *close]))[:3]


class ClassListMissing(InvalidInput):
    """A source without class_list.json: colours cannot be told apart."""


class BodyTooLarge(InvalidInput):
    """A request's body is longer than it may be.

    Attributes:
        most_bytes: What it may have.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        super().__init__(
            f"the body has more than {most_bytes:,} bytes: send less, or in several requests"
        )


class NotFound(FramesiftError):
    """Nothing of that kind has that name.

    Attributes:
        kind: "source", "dataset", "job"...
        name: The name as given.
    """

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"no {kind} named '{name}'{': ' + hint if hint else ''}")


class NotMade(NotFound):
    """There is no catalog, or there are no records, where a command looks that makes none.

    Attributes:
        kind: "catalog" or "records".
        name: Where it looked.
    """

    def __init__(self, kind: str, name: str, variable: str) -> None:
        self.kind = kind
        self.name = name
        known = ", or framesift ingest SOURCE of one that is there" if kind == "catalog" else ""
        FramesiftError.__init__(
            self,
            f"no {kind} at {name}: set {variable} to where yours is, or make one there: "
            f"framesift source add NAME FOLDER{known}",
        )


class AlreadyExists(FramesiftError):
    """The name is taken.

    Attributes:
        kind: "source", "dataset"...
        name: The name as given.
    """

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} '{name}' already exists{': ' + hint if hint else ''}")


class PreconditionFailed(FramesiftError):
    """The record is of another version by now than the one that was named.

    Attributes:
        kind: "source", "user"...
        name: The name as given.
    """

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(
            f"{kind} '{name[:140]}': another version by now than If-Match names, or removed; "
            "GET it, and decide again"
        )


class InUse(FramesiftError):
    """Something else needs what is to be removed.

    Attributes:
        kind: "tag"...
        name: Its name.
    """

    def __init__(self, kind: str, name: str, why: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} '{name}' cannot be removed: {why}")


class RemovalRefused(FramesiftError):
    """So many of a source's files are gone that nothing was removed: its disk may be away.

    Attributes:
        source: The source's name.
        missing: Files that the catalog has and the source lacks.
        catalogued: Files of the source that the catalog has.
    """

    def __init__(self, source: str, missing: int, catalogued: int, share: float) -> None:
        self.source, self.missing, self.catalogued = source, missing, catalogued
        super().__init__(
            f"source {source}: {missing:,} of its {catalogued:,} catalogued files are gone, more "
            f"than {100 * share:.3g}% of them, and none was removed: where a disk or mount is "
            "away, scan again when it is back; where they are gone for good, have them "
            f"removed: framesift ingest {source} --max-removed 1"
        )


class NotAuthenticated(FramesiftError):
    """A request without a valid token or password."""


class NotAllowed(FramesiftError):
    """The caller is known, and may not do this."""


class LoginThrottled(FramesiftError):
    """Too many logins have failed.

    Attributes:
        wait_s: When the next one is looked at [s from now].
    """

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(f"too many logins have failed: try again in {max(wait_s, 1):.0f} s")


class TooManyJobs(FramesiftError):
    """A user has as many jobs, or ranks of jobs, waiting or running as may be."""

    def __init__(self, user: str, most: int, ranks: int | None = None) -> None:
        """Say what to do.

        Args:
            user: The user's name.
            most: Jobs that may be; ranks, where `ranks` is given.
            ranks: Those of the jobs there are, to which too many more were to come.
        """
        if ranks is None:
            has, fewer = f"{most:,} jobs that wait or run, as many as the user may", ""
        else:
            has = f"{ranks:,} ranks in jobs that wait or run, of {most:,} that the user may"
            fewer = f"ask for at most {most - ranks:,}, " if ranks < most else ""
        super().__init__(
            f"user '{user}' has {has}: {fewer}wait for a job to end, or cancel one; an admin "
            "allows more (framesift user quota)"
        )


class TooManyStreams(FramesiftError):
    """A caller listens to as many streams of events as one may."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"you listen to {most} streams of events already, as many as one caller may: close "
            "some, or ask GET /v1/jobs now and then"
        )


class ServerBusy(FramesiftError):
    """The queue for requests of a kind is full.

    Attributes:
        wait_s: When to ask again [s].
    """

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(
            f"too many requests of this kind wait for their turn; ask again in {wait_s:.0f} s"
        )


class BadFile(FramesiftError):
    """A file's content cannot be used.

    Attributes:
        file: Path or key of the file; empty when only its bytes are known.
        reason: What is wrong with it.
    """

    def __init__(self, reason: str, file: str = "") -> None:
        self.file = file
        self.reason = reason
        super().__init__(f"{file}: {reason}" if file else reason)


class UnreadableFile(BadFile):
    """A file that could not be read this time: its content may be good, so it is tried again."""


class ArchivedFile(UnreadableFile):
    """A file that cannot be read before its archive has brought it back."""


class OtherVersion(BadFile):
    """Another version of a file lies there than was wanted."""


class SqlError(FramesiftError):
    """A statement that is refused or failed, as Db2 reports it.

    Attributes:
        sqlcode: Db2's message number, negative for an error, such as -206.
        sqlstate: The five-character SQLSTATE, such as "42703".
        text: The message without code and state.
    """

    def __init__(self, sqlcode: int, sqlstate: str, text: str) -> None:
        self.sqlcode = sqlcode
        self.sqlstate = sqlstate
        self.text = text
        super().__init__(f"SQL{-sqlcode:04d}N  {text}  SQLSTATE={sqlstate}")

    @classmethod
    def ended(cls, why: str) -> "SqlError":
        """A statement was ended: SQL0952N."""
        return cls(-952, "57014", f"Processing was cancelled {why}.")


class StorageError(FramesiftError):
    """The disk refuses: no space, no permission, a file that vanished.

    Attributes:
        path: The file or folder concerned.
    """

    def __init__(self, message: str, path: str = "") -> None:
        self.path = path
        super().__init__(message)


class CacheFull(StorageError):
    """A cache has no room for what is to come, whatever could be evicted.

    Attributes:
        path: The cache.
        holders: What holds the space, such as "streets@2, which job train-3 reads"; may be empty.
    """

    def __init__(self, message: str, path: str, holders: tuple[str, ...] = ()) -> None:
        self.holders = holders
        super().__init__(message, path)


class StoreAway(StorageError):
    """A database or object store of the home does not answer; the same may succeed later."""

    wait_s = 5.0


class SourceFails(StorageError):
    """A source's files cannot be reached; the message does not say where they lie."""


class ProviderFails(FramesiftError):
    """The OpenID provider does not answer, or not as it should; passwords and tokens go on.

    Attributes:
        issuer: Its URL.
        why: What it does, as "does not answer".
    """

    wait_s = 15.0

    def __init__(self, issuer: str, why: str) -> None:
        self.issuer, self.why = issuer, why
        super().__init__(f"the OpenID provider {issuer} {why}")


class CatalogBusy(FramesiftError):
    """Another process holds the catalog's write lock longer than the wait allowed."""


def not_installed(what: str, extra: str) -> InvalidInput:
    """The error where ``what`` is wanted, which an extra of the package framesift brings."""
    return InvalidInput(f"{what} is not installed here: {installs(extra)}")


def installs(extra: str) -> str:
    """How an extra is installed: by uv in a clone, else from a release's wheels.

    No registry has the package.
    """
    if not (Path(__file__).parents[1] / "pyproject.toml").is_file():
        return f"pip install --find-links FOLDER_OF_WHEELS 'framesift[{extra}]' installs it"
    return f"'uv sync --inexact --extra {extra}' in Framesift's clone installs it"


class CatalogDamaged(FramesiftError):
    """The catalog's files do not fit together; the message says how to go back."""


class CollectionFails(FramesiftError):
    """The rule of a collection cannot be evaluated; its users are not told which rule, nor why."""

    def __init__(self) -> None:
        super().__init__(
            "the rule of one of your collections cannot be evaluated, so no rows are shown: ask an "
            "admin to remove that collection and add it with another rule"
        )


class EngineFailed(FramesiftError):
    """The workers or the scheduler that a scan ran on failed; what was committed stays."""


class JobFailed(FramesiftError):
    """A job did not succeed.

    Attributes:
        job: The job's name.
    """

    def __init__(self, job: str, message: str) -> None:
        self.job = job
        super().__init__(message)


class StagingCancelled(FramesiftError):
    """A user asked a staging to end; what has come stays in the cache."""
