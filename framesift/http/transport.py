"""Requests to one server, and its answers or errors."""

import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from framesift.errors import (
    FramesiftServerError,
    InvalidQuestion,
    NoAnswer,
    NotFound,
    NotSupported,
    Throttled,
    WrongVersion,
    of_problem,
)
from framesift.http.json_text import json_text, plain
from framesift.http.proxy import proxy_of
from framesift.http.versions import HEADER, difference, documents_of, is_older, major, own_version

_WAITS_S = (0.1, 0.5)
"""Waits before the further tries [s]."""

_SCHEMES = ("http", "https")
_EXPECTED_URL = "expected one such as http://127.0.0.1:8008 or https://framesift.example:8008"

_USER = re.compile(r"//[^/?#\s]*@")

_NO_CONTENT = 204
_NOT_OF_SCHEMA = 422
_NO_ROUTE = {404: "Not Found", 405: "Method Not Allowed"}
"""Titles of problems of the web framework: our own have names of their own."""

_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
"""What OpenSSL's versions call an answer that is none of TLS."""

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
        headers = {"User-Agent": f"framesift/{own_version()}"}
        self._has_answered = False
        token = (token or "").strip()  # a file's or a secret's line end is no part of it
        if token:
            if not (token.isascii() and token.isprintable() and " " not in token):
                raise FramesiftServerError(
                    "token: holds a blank, a line end or a character that no token has; expected "
                    "one such as fs_..."
                )
            headers["Authorization"] = f"Bearer {token}"
        try:
            self._http = httpx.Client(
                base_url=url, headers=headers, timeout=timeout_s, verify=_trusted(ca_bundle)
            )
        except httpx.InvalidURL as error:
            raise FramesiftServerError(f"url '{_shown(url)}': {error}; {_EXPECTED_URL}") from error
        except (ValueError, ImportError) as error:  # what httpx says of proxies
            proxy = proxy_of(url) or "of the environment"
            reason = f"{error}; " if isinstance(error, ImportError) else ""  # others have its URL
            raise FramesiftServerError(
                f"proxy {proxy}: cannot be used: {reason}expected one such as "
                "http://proxy.example:3128, or the server's name in NO_PROXY"
            ) from error
        base = self._http.base_url
        if base.scheme not in _SCHEMES or not base.host:
            raise FramesiftServerError(f"url '{_shown(url)}': {_EXPECTED_URL}")
        self.url = _shown(base).rstrip("/")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def json(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        creates: bool = False,
    ) -> Mapping[str, Any]:
        """The document that a request is answered with; empty where that is nothing.

        Args:
            method: Of HTTP.
            path: Below the server's URL.
            body: Sent as JSON; nothing when None.
            query: Parameters of the query; None is left out.
            creates: Whether it makes something: it then carries a key that keeps a repetition from
                making it twice.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        headers = {"Idempotency-Key": str(uuid.uuid4())} if creates else {}
        answer = self.send(method, path, json=body, headers=headers, params=_present(query or {}))
        if answer.status_code == _NO_CONTENT:
            return {}
        data = _document(answer)
        if isinstance(data, dict):
            return data
        raise self._foreign(answer)

    def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The complete answer to a request, tried again where the connection breaks.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        for wait_s in (*_WAITS_S, None):
            self._need_open()
            try:
                answer = self._http.request(method, path, **_sent(request))
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
        self._need_open()
        try:
            with self._http.stream(method, path, **_sent(request)) as answer:
                if not answer.is_success:
                    answer.read()
                self._check(answer)
                yield answer
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._no_answer(error) from error

    def _need_open(self) -> None:
        if self._http.is_closed:
            raise FramesiftServerError(
                f"{self.url}: this client is closed; framesift.connect makes another one"
            )

    def _check(self, answer: httpx.Response) -> None:
        self._has_answered = True
        _check_version(answer)
        if answer.is_success:
            return
        data = _document(answer)
        if isinstance(data, dict) and isinstance(data.get("reason"), str):
            data = {"detail": data["reason"]}  # as Spectrum Discover's routes say it
        if not isinstance(data, dict) or not isinstance(data.get("detail"), str):
            raise self._foreign(answer)
        if answer.status_code in _NO_ROUTE and data.get("title") in _NO_ROUTE.values():
            raise _not_supported(answer)
        error = of_problem(answer.status_code, data)
        if isinstance(error, InvalidQuestion) and answer.status_code == _NOT_OF_SCHEMA:
            error.args = (_with_versions(str(error), answer),)
        wait = answer.headers.get("Retry-After", "")
        if isinstance(error, Throttled) and wait.isdecimal():
            error.details = {**error.details, "retry_after_s": float(wait)}
        raise error

    def _no_answer(self, error: Exception) -> NoAnswer:
        """The error of a connection that was not made, or that broke: what, and what to do."""
        url, reason = httpx.URL(self.url), str(error) or type(error).__name__
        way, proxy = "", proxy_of(self.url)
        if proxy:
            way = f" through the proxy {proxy}"
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return NoAnswer(
                f"{url}: its certificate is not trusted{way}: {reason}; give the PEM "
                "file to trust (ca_bundle; for commands FRAMESIFT_SERVER_CA_BUNDLE)"
            )
        if url.scheme == "https" and any(word in reason for word in _NO_TLS):
            other = url.copy_with(scheme="http")
            return NoAnswer(
                f"{url}: what answers there{way} does not speak TLS: {reason}; a server of plain "
                f"HTTP is {other}"
            )
        advice = "is 'framesift serve' running there?"
        if isinstance(error, httpx.RemoteProtocolError) and not self._has_answered:
            advice = f"a server of HTTPS is {url.copy_with(scheme='https')}; {advice}"
        if proxy:
            advice = f"name {url.host} in NO_PROXY where it is to be asked without; {advice}"
        return NoAnswer(f"{url}: no answer{way}: {reason}; {advice}")

    def _foreign(self, answer: httpx.Response) -> NoAnswer:
        proxy = proxy_of(self.url)
        through = f" through the proxy {proxy}" if proxy else ""
        return NoAnswer(
            f"{_shown(answer.url)}: {answer.status_code} {answer.reason_phrase}{through}, and no "
            "answer of a Framesift server; is the URL right?",
            answer.status_code,
        )


def _shown(url: str | httpx.URL) -> str:
    """A URL without the password that it may hold."""
    return _USER.sub("//", str(url), count=1)


def _sent(request: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a request, with ``json`` as its text and parameters as plain values."""
    sent = dict(request)
    body = sent.pop("json", None)
    if body is not None:
        headers = {"Content-Type": "application/json", **(sent.get("headers") or {})}
        sent |= {"content": json_text(body).encode(), "headers": headers}
    if sent.get("params"):
        sent["params"] = {name: _parameter(value) for name, value in sent["params"].items()}
    return sent


def _parameter(value: object) -> Any:
    return value if isinstance(value, str | int | float | list | tuple | None) else plain(value)


def _present(parameters: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


def _document(answer: httpx.Response) -> object:
    try:
        return answer.json(object_hook=documents_of(answer.headers.get(HEADER, "")))
    except ValueError:
        return None


def _not_supported(answer: httpx.Response) -> FramesiftServerError:
    """The error for a path or method that the server does not know."""
    request, server = answer.request, answer.headers.get(HEADER, "")
    if b"%2F" in request.url.raw_path:
        path = request.url.raw_path.decode("ascii").partition("?")[0]
        return NotFound(f"{path}: there is no name with a slash", answer.status_code)
    route = f"{request.method} {request.url.path}"
    return NotSupported(
        f"{route}: the server has no such route{difference(server)}", answer.status_code
    )


def _with_versions(message: str, answer: httpx.Response) -> str:
    """The message of a refused request: an older server may not know what the request says."""
    server = answer.headers.get(HEADER, "")
    return message + difference(server) if is_older(server) else message


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


def _check_version(answer: httpx.Response) -> None:
    """Every version of one major number understands every other.

    Raises:
        WrongVersion: The server's is another one.
    """
    theirs, ours = answer.headers.get(HEADER, ""), own_version()
    if theirs and major(theirs) != major(ours):
        server = _shown(answer.url.copy_with(path="/", query=None))
        raise WrongVersion(
            f"{server}: a server of version {theirs}, and this client is {ours}: install "
            f"the framesift {major(theirs)}.* package",
            answer.status_code,
        )
