"""An OpenID provider: its discovery document and its keys, cached.

Source: OpenID Connect Discovery 1.0; RFC 7517 (keys).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from api.oidc.fetched_json import Fetcher, check_url
from catalog.errors import InvalidInput, ProviderFails

if TYPE_CHECKING:
    from joserfc.jwk import Key

FRESH_S = 3600.0
"""How long a discovery document and the keys are used [s]."""

AGAIN_S = 60.0
"""From one fetch of the keys for an unknown identifier to the next [s]."""

FAILURE_S = 15.0
"""How long a failure is remembered [s]."""

_T = TypeVar("_T")

_WELL_KNOWN = "/.well-known/openid-configuration"
_PUBLIC = frozenset({"RSA", "EC", "OKP"})
_MOST_KEYS = 100


@dataclass(frozen=True)
class Metadata:
    """The discovery document, as far as it is used."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    """Claims that the ID token lacks; "" where there is none."""
    end_session_endpoint: str
    """For a browser, to log out there; "" where there is none."""
    posts_secret: bool
    """Whether the client's secret goes into the form, and not into basic authentication."""
    names_issuer: bool
    """Whether the way back says who the provider is (RFC 9207)."""

    @classmethod
    def of(cls, issuer: str, document: dict[str, Any]) -> "Metadata":
        """A document's.

        Raises:
            ProviderFails: It is another provider's, or lacks an endpoint.
        """
        if document.get("issuer") != issuer:
            named = str(document.get("issuer"))[:200]
            raise ProviderFails(
                issuer, f"calls itself '{named}': FRAMESIFT_OIDC_ISSUER must be that to the letter"
            )

        def url(name: str, *, optional: bool = False) -> str:
            if optional and not document.get(name):
                return ""
            try:
                return check_url(name, document.get(name))
            except InvalidInput as error:
                raise ProviderFails(issuer, str(error)) from error

        methods = document.get("token_endpoint_auth_methods_supported")
        return cls(
            authorization_endpoint=url("authorization_endpoint"),
            token_endpoint=url("token_endpoint"),
            jwks_uri=url("jwks_uri"),
            userinfo_endpoint=url("userinfo_endpoint", optional=True),
            end_session_endpoint=url("end_session_endpoint", optional=True),
            posts_secret=isinstance(methods, list) and "client_secret_basic" not in methods,
            names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        )


class Provider:
    """Metadata and keys of one issuer; one request fetches at a time, others wait for it."""

    def __init__(self, fetcher: Fetcher, now: Callable[[], float] = time.monotonic) -> None:
        """Fetch nothing yet.

        Args:
            fetcher: Of the issuer.
            now: A clock that never goes back [s].
        """
        self.issuer = fetcher.issuer
        self._fetcher, self._now = fetcher, now
        self._fetching = anyio.Lock()
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, list[Key]] | None = None
        self._failed: tuple[float, str] | None = None

    async def metadata(self, fresh_s: float = FRESH_S) -> Metadata:
        """The metadata, not older than that.

        Raises:
            ProviderFails: The provider does not answer, or not as it should.
        """
        if (known := _young(self._metadata, self._now() - fresh_s)) is not None:
            return known
        async with self._fetching:
            if (known := _young(self._metadata, self._now() - fresh_s)) is not None:
                return known
            document = await self._fetch(self.issuer.rstrip("/") + _WELL_KNOWN)
            metadata = Metadata.of(self.issuer, document)
            self._metadata = self._now(), metadata
            return metadata

    async def keys(self, identifier: str | None) -> "list[Key]":
        """Public keys of that identifier; all of them where a token names none.

        An unknown identifier has the keys fetched again, once in AGAIN_S: providers rotate them.

        Raises:
            ProviderFails: There are no keys, and the provider does not answer.
        """
        for fresh_s in (FRESH_S, AGAIN_S):
            every = await self._fresh_keys(fresh_s)
            keys = [key for key in every if identifier is None or key.kid == identifier]
            if keys:
                return keys
        return []

    async def _fresh_keys(self, fresh_s: float) -> "list[Key]":
        if (known := _young(self._keys, self._now() - fresh_s)) is not None:
            return known
        try:
            metadata = await self.metadata()
            async with self._fetching:
                if (known := _young(self._keys, self._now() - fresh_s)) is not None:
                    return known
                keys = _public_keys(await self._fetch(metadata.jwks_uri))
                self._keys = self._now(), keys
                return keys
        except ProviderFails:
            # Those there are go on to count: their tokens end by themselves.
            if self._keys is None:
                raise
            return self._keys[1]

    async def _fetch(self, url: str) -> dict[str, Any]:
        if (failure := _young(self._failed, self._now() - FAILURE_S)) is not None:
            raise ProviderFails(self.issuer, failure)
        try:
            return await self._fetched(url)
        except ProviderFails as error:
            self._failed = self._now(), error.why
            raise

    async def _fetched(self, url: str) -> dict[str, Any]:
        status, document = await self._fetcher.fetch(url)
        if status != HTTPStatus.OK:
            raise ProviderFails(self.issuer, f"answers {status} for {url[:200]}")
        return document


def _young(known: tuple[float, _T] | None, since: float) -> _T | None:
    return known[1] if known is not None and known[0] >= since else None


def _public_keys(document: dict[str, Any]) -> "list[Key]":
    """Keys by which signatures may be checked: no symmetric ones, and none for encryption."""
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    listed = document.get("keys")
    keys: list[Key] = []
    for each in listed[:_MOST_KEYS] if isinstance(listed, list) else []:
        if not isinstance(each, dict) or each.get("kty") not in _PUBLIC:
            continue
        if each.get("use", "sig") != "sig":
            continue
        try:
            keys.append(import_key(each))
        except (JoseError, ValueError, TypeError, KeyError):  # of a curve that is not known here
            continue
    return keys
