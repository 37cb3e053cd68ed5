"""Errors of the client, as exceptions by kind.

FramesiftServerError          all of them
+- NoAnswer                   nothing listens there, or no Framesift does
+- WrongVersion               the server is of another major number
+- NotSupported               the server has no such route, or its answer no such field
+- InvalidQuestion            400, 422: what was asked cannot be answered
|  +- SqlError                a statement was refused; `sqlcode`, `sqlstate`
|  +- UnknownName             a class, tag, camera... that is not there; `nearest`
+- NotAuthenticated           401
+- NotAllowed                 403
+- NotFound                   404
+- AlreadyExists              409
+- Throttled                  429; `retry_after_s`
+- ServerFailed               500 and above
+- JobFailed                  a job that was waited for ended otherwise than done
+- JobNotDone                 a job that was waited for has not ended in time
+- MissingPackage             a form of an answer needs a package that is not installed
+- BadFile                    framesift.data: a file is missing, damaged, or not the dataset's

FramesiftWarning              an answer that is not all there is
"""

from collections.abc import Mapping, Sequence
from typing import Any


class FramesiftServerError(Exception):
    """The server answered with an error, or did not answer.

    Attributes:
        status: HTTP status; None where there was no answer.
        kind: The server's name for what is wrong, such as "UnknownName"; "" where it gave none.
        details: The rest of the server's problem document.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        kind: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.kind = kind
        self.details: Mapping[str, Any] = details or {}
        super().__init__(message)


class NoAnswer(FramesiftServerError):
    """No server answered, or one that is no Framesift server."""


class WrongVersion(FramesiftServerError):
    """The server's major number is another one than this client's."""


class NotSupported(FramesiftServerError):
    """The server has no such route, or its answer no such field: it is older, or another one."""


class MissingField(NotSupported, KeyError):
    """A field that the server's answer lacks; for mappings it is a key that is not there."""

    def __str__(self) -> str:
        """The message as it is: a KeyError's is quoted."""
        return str(self.args[0])


class MissingPackage(FramesiftServerError, ImportError):
    """A form of an answer needs a package that is not installed; the message names it."""


class BadFile(FramesiftServerError, ValueError):
    """A file of a dataset is missing, damaged, or another one than the dataset's."""


class FramesiftWarning(UserWarning):
    """An answer is not all that was asked for; the message says what is cut, and what to do."""


class InvalidQuestion(FramesiftServerError):
    """The server cannot answer the question; the message says why."""


class SqlError(InvalidQuestion):
    """A statement was refused."""

    @property
    def sqlcode(self) -> int | None:
        """Db2's SQLCODE, such as -206."""
        code: int | None = self.details.get("sqlcode")
        return code

    @property
    def sqlstate(self) -> str:
        """Db2's SQLSTATE, such as "42703"."""
        return str(self.details.get("sqlstate", ""))


class UnknownName(InvalidQuestion):
    """A class, tag, camera or scene that is not there."""

    @property
    def nearest(self) -> Sequence[str]:
        """Names that are there and read like it."""
        return tuple(self.details.get("nearest", ()))


class NotAuthenticated(FramesiftServerError):
    """The server asks for a token, or does not take this one."""


class NotAllowed(FramesiftServerError):
    """User or token may not do this."""


class NotFound(FramesiftServerError):
    """There is no such dataset, frame, job..."""


class AlreadyExists(FramesiftServerError):
    """The name is taken, or something else changed it meanwhile."""


class Throttled(FramesiftServerError):
    """Asked too often."""

    @property
    def retry_after_s(self) -> float | None:
        """Seconds to wait before the next request; None where the server does not say."""
        seconds: float | None = self.details.get("retry_after_s")
        return seconds


class ServerFailed(FramesiftServerError):
    """Something went wrong on the server, which may work later."""


class JobFailed(FramesiftServerError):
    """A job ended otherwise than done.

    Attributes:
        job: The job's name.
        state: How it ended: "failed" or "cancelled".
    """

    def __init__(self, job: str, state: str, reason: str) -> None:
        self.job = job
        self.state = state
        super().__init__(f"job {job} {state}: {reason}")


class JobNotDone(FramesiftServerError, TimeoutError):
    """A job has not ended in the time that was given for it; it goes on.

    Attributes:
        job: The job's name.
        state: Where it is, such as "running".
    """

    def __init__(self, job: str, state: str, waited_s: float) -> None:
        self.job = job
        self.state = state
        super().__init__(f"job {job}: {state} after {waited_s:g} s; it goes on")


_BY_KIND: Mapping[str, type[FramesiftServerError]] = {
    "SqlError": SqlError,
    "UnknownName": UnknownName,
}

_BY_STATUS: Mapping[int, type[FramesiftServerError]] = {
    400: InvalidQuestion,
    401: NotAuthenticated,
    403: NotAllowed,
    404: NotFound,
    409: AlreadyExists,
    412: AlreadyExists,
    413: InvalidQuestion,
    415: InvalidQuestion,
    422: InvalidQuestion,
    429: Throttled,
}


def of_problem(status: int, problem: Mapping[str, Any]) -> FramesiftServerError:
    """The exception for a problem document (RFC 9457)."""
    kind = str(problem.get("title", ""))
    by_status = ServerFailed if status >= 500 else FramesiftServerError
    chosen = _BY_KIND.get(kind) or _BY_STATUS.get(status, by_status)
    known = ("type", "title", "status", "detail")
    details = {name: value for name, value in problem.items() if name not in known}
    return chosen(str(problem["detail"]), status, kind, details)
