"""Whether settings name an OpenID provider; what asks it is imported only then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from api.settings import SETTINGS, Settings, default_of
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from api.services.accounts.provider_logins import ProviderLogins

_PREFIX = "oidc_"
_LOOK_S = 2.0
"""Between two looks at the file of groups."""


def configured_logins(settings: Settings, *, authenticates: bool) -> "ProviderLogins | None":
    """Logins by the provider that settings name; None where they name none.

    Raises:
        InvalidInput: A setting is missing, cannot be used, or would be ignored.
    """
    if not settings.oidc_issuer:
        for name in SETTINGS:
            if name.startswith(_PREFIX) and getattr(settings, name) != default_of(name):
                raise InvalidInput(
                    f"FRAMESIFT_{name.upper()}: set FRAMESIFT_OIDC_ISSUER, too, or unset this one"
                )
        return None
    if not authenticates:
        raise InvalidInput(
            "FRAMESIFT_OIDC_ISSUER with --no-auth: nobody logs in; unset it, or leave --no-auth out"
        )
    from api.services.accounts.provider_logins import provider_logins

    return provider_logins(settings)


@asynccontextmanager
async def groups_reread(logins: "ProviderLogins | None") -> AsyncIterator[None]:
    """Have the server read the file of groups again within the block, when it has changed."""

    async def look() -> None:
        while logins is not None:
            await asyncio.sleep(_LOOK_S)
            logins.groups.look()

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
