"""The authorization code flow with PKCE: where a browser goes, and what its code is worth.

Source: OpenID Connect Core 3.1, RFC 7636 (PKCE), RFC 9207 (issuer of the answer).
"""

import base64
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from api.oidc.fetched_json import Fetcher
from api.oidc.identity import Identity, identity_of
from api.oidc.pending_login import PendingLogin
from api.oidc.provider import Metadata, Provider
from api.oidc.token_claims import id_token_claims
from catalog.errors import NotAuthenticated, ProviderFails


@dataclass(frozen=True)
class Client:
    """Framesift as the provider knows it."""

    client_id: str
    secret: str = field(repr=False)
    """"" where the client is public."""
    scopes: str
    """With blanks between."""
    name_claim: str
    groups_claim: str


class CodeFlow:
    """Logins of browsers."""

    def __init__(self, provider: Provider, fetcher: Fetcher, client: Client) -> None:
        """Ask nothing yet."""
        self._provider, self._fetcher, self._client = provider, fetcher, client

    async def url(self, pending: PendingLogin) -> str:
        """URL of the provider's page where a login goes on.

        Raises:
            ProviderFails: It does not answer.
        """
        metadata = await self._provider.metadata()
        return _with_fields(
            metadata.authorization_endpoint,
            response_type="code",
            client_id=self._client.client_id,
            redirect_uri=pending.redirect_uri,
            scope=self._client.scopes,
            state=pending.state,
            nonce=pending.nonce,
            code_challenge=pending.challenge,
            code_challenge_method="S256",
        )

    async def logout_url(self, back: str) -> str:
        """URL of the provider's page that logs out there; "" where it has none.

        Args:
            back: URL to go on to.

        Raises:
            ProviderFails: It does not answer.
        """
        endpoint = (await self._provider.metadata()).end_session_endpoint
        client_id = self._client.client_id
        fields = {"client_id": client_id, "post_logout_redirect_uri": back}
        return _with_fields(endpoint, **fields) if endpoint else ""

    async def identity(self, pending: PendingLogin, code: str, issuer: str) -> Identity:
        """Who the user is that came back.

        Args:
            pending: The login that the browser began.
            code: What it brings.
            issuer: Who sent it, as the provider says; "" where it says nothing.

        Raises:
            NotAuthenticated: The code or the ID token does not count.
            ProviderFails: The provider does not answer.
        """
        metadata = await self._provider.metadata()
        if issuer != self._provider.issuer and (issuer or metadata.names_issuer):
            raise NotAuthenticated("the answer comes from another provider (iss): log in again")
        tokens = await self._exchange(metadata, pending, code)
        claims = await id_token_claims(
            self._provider, str(tokens.get("id_token")), self._client.client_id, pending.nonce
        )
        identity = self._identity(claims)
        access_token = tokens.get("access_token")
        if identity.is_whole or not metadata.userinfo_endpoint or not access_token:
            return identity
        return self._identity(await self._user_info(metadata, str(access_token), claims) | claims)

    def _identity(self, claims: dict[str, Any]) -> Identity:
        return identity_of(claims, self._client.name_claim, self._client.groups_claim)

    async def _exchange(
        self, metadata: Metadata, pending: PendingLogin, code: str
    ) -> dict[str, Any]:
        client, headers = self._client, {}
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.verifier,
        }
        if client.secret and not metadata.posts_secret:
            # RFC 6749, 2.3.1: encoded as in a form.
            pair = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = client.client_id
            form |= {"client_secret": client.secret} if client.secret else {}
        status, answer = await self._fetcher.fetch(
            metadata.token_endpoint, form=form, headers=headers
        )
        if status == HTTPStatus.OK:
            return answer
        why = str(answer.get("error", status))[:100]
        if why == "invalid_grant":
            raise NotAuthenticated("the provider does not take the code any more: log in again")
        raise ProviderFails(self._provider.issuer, f"gives no token for a code: {why}")

    async def _user_info(
        self, metadata: Metadata, access_token: str, claims: dict[str, Any]
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {access_token}"}
        status, answer = await self._fetcher.fetch(metadata.userinfo_endpoint, headers=headers)
        if status != HTTPStatus.OK or answer.get("sub") != claims.get("sub"):
            raise ProviderFails(self._provider.issuer, f"says nothing of the user ({status})")
        return answer


def _with_fields(url: str, **fields: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(fields)}"
