"""Claims of a provider's tokens: what is signed by its keys, in time, and meant for Framesift.

Source: RFC 7519, RFC 8725 (best current practices), OpenID Connect Core 3.1.3.7.
"""

import hmac
from typing import TYPE_CHECKING, Any

from api.oidc.provider import Provider
from catalog.errors import NotAuthenticated

if TYPE_CHECKING:
    from joserfc.jws import JWSRegistry

LEEWAY_S = 60
"""By which clocks may differ [s]."""

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
    "Ed25519",
)  # fmt: skip
"""Signatures by a private key; neither `none` nor what a public key could sign as a secret."""

_MOST_HEADER = 8 << 10
_MOST_PAYLOAD = 64 << 10
_MOST_TRIED = 8
_ACCESS_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})


async def id_token_claims(
    provider: Provider, text: str, client_id: str, nonce: str
) -> dict[str, Any]:
    """Claims of the ID token of a login.

    Raises:
        NotAuthenticated: It is none for this login.
        ProviderFails: Its keys cannot be fetched.
    """
    _, claims = await _verified(provider, text, client_id)
    party = claims.get("azp")
    if party != client_id and (party is not None or claims["aud"] not in (client_id, [client_id])):
        raise _refused("it was issued for another client (azp)")
    if not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
        raise _refused("it is of another login (nonce)")
    return claims


async def access_token_claims(provider: Provider, text: str, audience: str) -> dict[str, Any]:
    """Claims of a program's access token.

    Raises:
        NotAuthenticated: It is none for this audience.
        ProviderFails: Its keys cannot be fetched.
    """
    header, claims = await _verified(provider, text, audience)
    kind = str(header.get("typ", "JWT")).lower()
    if kind not in _ACCESS_TYPES or "nonce" in claims or claims.get("typ") == "ID":
        raise _refused("it is no access token; send that, and not the ID token of a login")
    return claims


async def _verified(
    provider: Provider, text: str, audience: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a token for an audience."""
    from joserfc import jws, jwt
    from joserfc.errors import JoseError

    registry = _registry()
    try:
        header = jws.extract_compact(text.encode("utf-8", "replace"), registry=registry).headers()
    except (JoseError, ValueError, RecursionError) as error:
        raise _refused("it is no signed JWT") from error
    if header.get("alg") not in ALGORITHMS:
        raise _refused(f"algorithm {str(header.get('alg'))[:20]}: expected one of public keys")
    identifier = header.get("kid")
    keys = await provider.keys(identifier if isinstance(identifier, str) else None)
    for key in keys[:_MOST_TRIED]:
        try:
            claims = jwt.decode(text, key, algorithms=ALGORITHMS, registry=registry).claims
        except (JoseError, ValueError, RecursionError):  # not its key
            continue
        _check(claims, provider.issuer, audience)
        return header, claims
    raise _refused("none of the provider's keys signed it")


def _registry() -> "JWSRegistry":
    from joserfc.jws import JWSRegistry

    # Other headers than the known ones are to be ignored, but for those that "crit" names.
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    registry.max_header_length, registry.max_payload_length = _MOST_HEADER, _MOST_PAYLOAD
    return registry


def _check(claims: dict[str, Any], issuer: str, audience: str) -> None:
    from joserfc.errors import JoseError
    from joserfc.jwt import JWTClaimsRegistry

    expected = JWTClaimsRegistry(
        leeway=LEEWAY_S,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": audience},
        sub={"essential": True},
        exp={"essential": True},
    )
    try:
        expected.validate(claims)
    except JoseError as error:
        raise _refused(str(error.description or error.error)) from error


def _refused(why: str) -> NotAuthenticated:
    return NotAuthenticated(f"the provider's token does not count: {why[:300]}")
