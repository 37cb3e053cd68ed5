"""What a provider answers, fetched in bounded time and size."""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx

from catalog.errors import InvalidInput, ProviderFails

TIMEOUT_S = 5.0
"""For a whole answer [s]."""

MOST_BYTES = 1 << 20

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def check_url(what: str, url: object) -> str:
    """A URL of a provider, by https; by http on loopback alone.

    Raises:
        InvalidInput: It is another one.
    """
    text = str(url)
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        is_secure = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
        is_plain = text.isascii() and text.isprintable() and not parts.fragment and " " not in text
    except ValueError:
        host, is_secure, is_plain = "", False, False
    if not (host and is_secure and is_plain) or parts.username is not None:
        raise InvalidInput(f"{what} '{text[:200]}': expected https://HOST/PATH")
    return text


@dataclass(frozen=True)
class Fetcher:
    """Fetches JSON objects of one provider; it follows no redirect."""

    issuer: str
    """The provider's URL, for errors."""
    ca_bundle: Path | None = None
    """PEM file of authorities to trust besides the system's."""
    timeout_s: float = field(default_factory=lambda: TIMEOUT_S)

    def check(self) -> None:
        """Read the authorities now: what is wrong with them is said before anyone logs in.

        Raises:
            InvalidInput: They cannot be used.
        """
        _ = self._tls

    async def fetch(
        self,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON object of an answer.

        Args:
            url: Of the provider.
            form: Fields to post; None for a GET.
            headers: More of them.

        Raises:
            ProviderFails: There is no answer in time, or it is none of these.
        """
        try:
            with anyio.fail_after(self.timeout_s):
                status, body = await self._body(url, form, headers)
        except (httpx.HTTPError, OSError) as error:  # TimeoutError is an OSError
            raise self._fails(f"does not answer ({type(error).__name__})") from error
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self._fails(f"answers {status} without JSON") from error
        if not isinstance(document, dict):
            raise self._fails(f"answers {status} with JSON that is no object")
        return status, document

    async def _body(
        self, url: str, form: Mapping[str, str] | None, headers: Mapping[str, str] | None
    ) -> tuple[int, bytes]:
        method, body = "GET" if form is None else "POST", bytearray()
        asked = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        async with (
            httpx.AsyncClient(verify=self._tls, timeout=self.timeout_s) as client,
            client.stream(method, url, data=form, headers=asked) as answer,
        ):
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) > MOST_BYTES:
                    raise self._fails(f"answers with more than {MOST_BYTES:,} bytes")
            return answer.status_code, bytes(body)

    def _fails(self, why: str) -> ProviderFails:
        return ProviderFails(self.issuer, why)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Made once: to read all authorities takes 25 ms."""
        context = httpx.create_ssl_context()
        if self.ca_bundle is not None:
            try:
                context.load_verify_locations(cafile=self.ca_bundle)
            except OSError as error:  # ssl.SSLError is one
                raise InvalidInput(
                    f"FRAMESIFT_OIDC_CA_BUNDLE={self.ca_bundle}: {error.strerror or error}; "
                    "expected a PEM file of certificates"
                ) from error
        return context
