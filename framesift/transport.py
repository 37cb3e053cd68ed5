"""Requests to one server, and its answers or errors."""

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import httpx

from framesift.errors import (
    FramesiftServerError,
    NoAnswer,
    Throttled,
    WrongVersion,
    of_problem,
)

VERSION_HEADER = "Framesift-Version"

_WAITS_S = (0.1, 0.5)
"""How long before each of the further tries."""

_LOST = (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""The connection was not made, or broke; a timeout is not among them."""


class Transport:
    """One server; safe to be used from several threads."""

    def __init__(
        self, url: str, token: str | None, timeout_s: float, ca_bundle: str | None
    ) -> None:
        """Nothing is sent yet.

        Raises:
            FramesiftServerError: The URL, token or file of authorities cannot be one.
        """
        headers = {"User-Agent": f"framesift/{_own_version()}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            self._http = httpx.Client(
                base_url=url, headers=headers, timeout=timeout_s, verify=_trusted(ca_bundle)
            )
        except httpx.InvalidURL as error:
            raise FramesiftServerError(
                f"url '{url}': {error}; expected one such as http://127.0.0.1:8008"
            ) from error
        except UnicodeEncodeError as error:
            raise FramesiftServerError(
                "token: holds characters that no token has; expected one such as fs_..."
            ) from error
        self.url = str(self._http.base_url).rstrip("/")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def json(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        asked: Mapping[str, object] | None = None,
        creates: bool = False,
    ) -> Mapping[str, Any]:
        """The document that a request is answered with.

        Args:
            method: Of HTTP.
            path: Below the server's URL.
            body: Sent as JSON; nothing when None.
            asked: Parameters of the query; None is left out.
            creates: Whether it makes something: it then carries a key that keeps a repetition from
                making it twice.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        headers = {"Idempotency-Key": str(uuid.uuid4())} if creates else {}
        answer = self.send(method, path, json=body, headers=headers, params=_given(asked or {}))
        data = _document(answer)
        if isinstance(data, dict):
            return data
        raise _foreign(answer)

    def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The complete answer to a request, tried again where the connection breaks.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        for wait_s in (*_WAITS_S, None):
            try:
                answer = self._http.request(method, path, **request)
            except _LOST as error:
                if wait_s is None:
                    raise self._no_answer(error) from error
                time.sleep(wait_s)
                continue
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise self._no_answer(error) from error
            self._check(answer)
            return answer
        raise AssertionError

    @contextmanager
    def streaming(
        self, method: str, path: str, timeout_s: float | None = None, **request: Any
    ) -> Iterator[httpx.Response]:
        """An answer whose body is read bit by bit; not tried again.

        Raises:
            FramesiftServerError: The server refuses, does not answer, or breaks off.
        """
        if timeout_s is not None:
            request["timeout"] = timeout_s
        try:
            with self._http.stream(method, path, **request) as answer:
                if not answer.is_success:
                    answer.read()
                self._check(answer)
                yield answer
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._no_answer(error) from error

    def _check(self, answer: httpx.Response) -> None:
        _check_version(answer)
        if answer.is_success:
            return
        data = _document(answer)
        if not isinstance(data, dict) or not isinstance(data.get("detail"), str):
            raise _foreign(answer)
        error = of_problem(answer.status_code, data)
        wait = answer.headers.get("Retry-After", "")
        if isinstance(error, Throttled) and wait.isdecimal():
            error.details = {**error.details, "retry_after_s": float(wait)}
        raise error

    def _no_answer(self, error: Exception) -> NoAnswer:
        reason = str(error) or type(error).__name__
        return NoAnswer(
            f"{self._http.base_url}: no answer: {reason}; is 'framesift serve' running there?"
        )


def _given(parameters: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


def _document(answer: httpx.Response) -> object:
    try:
        return answer.json()
    except ValueError:
        return None


def _foreign(answer: httpx.Response) -> NoAnswer:
    return NoAnswer(
        f"{answer.url}: {answer.status_code} {answer.reason_phrase}, and no answer of a "
        "Framesift server; is the URL right?",
        answer.status_code,
    )


def _trusted(ca_bundle: str | None) -> Any:
    if ca_bundle is None:
        return True
    import ssl

    try:
        return ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:
        raise FramesiftServerError(
            f"ca_bundle '{ca_bundle}': {error}; expected a PEM file of authorities to trust"
        ) from error


def _own_version() -> str:
    try:
        return version("framesift")
    except PackageNotFoundError:  # the folder alone, on a path
        return "0"


def _check_version(answer: httpx.Response) -> None:
    """Every version of one major number understands every other.

    Raises:
        WrongVersion: The server's is another one.
    """
    theirs, ours = answer.headers.get(VERSION_HEADER, ""), _own_version()
    if theirs and theirs.partition(".")[0] != ours.partition(".")[0]:
        raise WrongVersion(
            f"{answer.url.copy_with(path='/', query=None)}: a server of version {theirs}, and this "
            f"client is {ours}: install the framesift {theirs.partition('.')[0]}.* package",
            answer.status_code,
        )
