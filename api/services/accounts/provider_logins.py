"""Logins by an OpenID provider: the users of the home whom its browsers and tokens are of.

Imported where a provider is set.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from api.oidc.code_flow import Client, CodeFlow
from api.oidc.fetched_json import Fetcher, check_url
from api.oidc.group_table import GroupFile
from api.oidc.identity import Identity, identity_of
from api.oidc.provider import Provider
from api.oidc.token_claims import access_token_claims
from api.settings import Settings
from catalog.accounts import provider_users
from catalog.accounts.provider_users import ProviderUser, Rights
from catalog.errors import InvalidInput, ProviderFails
from catalog.records.store import RecordStore
from catalog.records.user_tables import User

_LOOKED_S = 30.0
"""How long the login page believes that the provider answers [s]."""


@dataclass(frozen=True)
class ProviderLogins:
    """The provider, and what it decides."""

    title: str
    """The provider's name on pages."""
    flow: CodeFlow
    """Of browsers."""
    _provider: Provider
    _client: Client
    groups: GroupFile
    """Rights of groups."""
    _audience: str

    async def problem(self) -> str:
        """What keeps users from logging in by the provider now; "" for nothing."""
        try:
            await self._provider.metadata(_LOOKED_S)
        except ProviderFails as error:
            return str(error)
        return ""

    async def program(self, token: str) -> Identity | None:
        """Whose access token it is; None where it is none of a provider, or none are taken.

        Raises:
            NotAuthenticated: It does not count.
            ProviderFails: The provider's keys cannot be fetched.
        """
        if not self._audience or token.count(".") != 2:
            return None
        claims = await access_token_claims(self._provider, token, self._audience)
        return identity_of(claims, self._client.name_claim, self._client.groups_claim)

    def let_in(
        self, records: RecordStore, identity: Identity, *, is_login: bool
    ) -> tuple[User, str]:
        """The user of an identity, with the rights of their groups, and what of that is new.

        Args:
            is_login: A login without groups is one of a user in no group; a token without them
                leaves a known user's rights.

        Raises:
            NotAllowed: The user may not log in.
            InvalidInput: The name of a new user cannot be used.
        """
        known = ProviderUser(self._provider.issuer, identity.subject, identity.name)
        groups, rights = identity.groups, None
        if groups is not None or is_login:
            table = self.groups.table
            roles, names = table.rights_of(groups or ())
            rights = Rights(roles, names, table.collections)
        return provider_users.let_in(records, known, rights)


def provider_logins(settings: Settings) -> ProviderLogins:
    """Those that settings name a provider for.

    Raises:
        InvalidInput: A setting is missing or cannot be used.
    """
    issuer = check_url("FRAMESIFT_OIDC_ISSUER", settings.oidc_issuer)
    if not settings.oidc_client_id or settings.oidc_groups is None:
        raise InvalidInput(
            "FRAMESIFT_OIDC_ISSUER: set FRAMESIFT_OIDC_CLIENT_ID and FRAMESIFT_OIDC_GROUPS, too: "
            "docs/oidc.md"
        )
    if "openid" not in settings.oidc_scopes.split():
        raise InvalidInput(
            f"FRAMESIFT_OIDC_SCOPES={settings.oidc_scopes}: expected openid among them"
        )
    client = Client(
        settings.oidc_client_id,
        _secret(settings),
        settings.oidc_scopes,
        settings.oidc_name_claim,
        settings.oidc_groups_claim,
    )
    fetcher = Fetcher(issuer, settings.oidc_ca_bundle)
    fetcher.check()
    provider = Provider(fetcher)
    return ProviderLogins(
        settings.oidc_title or urlsplit(issuer).netloc,
        CodeFlow(provider, fetcher, client),
        provider,
        client,
        GroupFile(settings.oidc_groups.expanduser()),
        settings.oidc_audience,
    )


def _secret(settings: Settings) -> str:
    text, path = settings.oidc_client_secret, settings.oidc_client_secret_file
    if text is not None and path is not None:
        raise InvalidInput(
            "FRAMESIFT_OIDC_CLIENT_SECRET and FRAMESIFT_OIDC_CLIENT_SECRET_FILE: give one of them"
        )
    if path is None:
        return text.text if text is not None else ""
    return _read(path.expanduser())


def _read(path: Path) -> str:
    try:
        secret = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"FRAMESIFT_OIDC_CLIENT_SECRET_FILE={path}: cannot be read; expected a file with the "
            "client's secret"
        ) from error
    if not secret:
        raise InvalidInput(f"FRAMESIFT_OIDC_CLIENT_SECRET_FILE={path}: is empty")
    return secret
