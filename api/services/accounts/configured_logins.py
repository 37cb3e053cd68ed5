"""Whether settings name an OpenID provider; what asks it is imported only then."""

from typing import TYPE_CHECKING

from api.settings import Settings
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from api.services.accounts.provider_logins import ProviderLogins

_PREFIX = "oidc_"


def configured_logins(settings: Settings, *, authenticates: bool) -> "ProviderLogins | None":
    """Logins by the provider that settings name; None where they name none.

    Raises:
        InvalidInput: A setting is missing, cannot be used, or would be ignored.
    """
    if not settings.oidc_issuer:
        for name, field in Settings.model_fields.items():
            if name.startswith(_PREFIX) and getattr(settings, name) != field.default:
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
