"""Tokens that count, and those that do not; how often a provider is asked."""

import base64
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from api.oidc.fetched_json import MOST_BYTES, Fetcher
from api.oidc.provider import AGAIN_S, FAILURE_S, Provider
from api.oidc.token_claims import LEEWAY_S, access_token_claims, id_token_claims
from catalog.errors import NotAuthenticated, ProviderFails
from tests.oidc.issuer import AUDIENCE, Issuer, issuer


@pytest.fixture
def honest() -> Iterator[Issuer]:
    """An issuer that answers as it should."""
    with issuer() as made:
        yield made


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        """Its time [s]."""
        return self.s


def accepted(provider: Provider, token: str) -> dict[str, Any]:
    """The claims of an access token."""
    return anyio.run(access_token_claims, provider, token, AUDIENCE)


def refused(provider: Provider, token: str) -> str:
    """Why an access token is refused."""
    with pytest.raises(NotAuthenticated) as caught:
        accepted(provider, token)
    return str(caught.value)


def unsigned(honest: Issuer, header: dict[str, Any]) -> str:
    """A token without a signature."""
    parts = (json.dumps(each).encode() for each in (header, honest.claims()))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


def test_a_signed_token_of_the_issuer_counts(honest: Issuer) -> None:
    """By RSA and by an elliptic curve, with one audience or several."""
    provider = Provider(Fetcher(honest.url))
    assert accepted(provider, honest.token())["sub"] == "u-1"
    assert accepted(provider, honest.token(aud=["x", AUDIENCE]))["sub"] == "u-1"
    assert accepted(provider, honest.token(alg="PS256"))["sub"] == "u-1"
    assert accepted(provider, honest.token(header={"kid": None}))["sub"] == "u-1"
    assert honest.asked == ["/.well-known/openid-configuration", "/jwks"]


def test_no_signature_and_confused_keys_are_refused(honest: Issuer) -> None:
    """`none` in any case, the public key as a secret, another's key, a key that a token brings."""
    provider = Provider(Fetcher(honest.url))
    for none in ("none", "None", "NONE"):
        assert "algorithm" in refused(provider, unsigned(honest, {"alg": none, "kid": "r1"}))
    signed = unsigned(honest, {"alg": "HS256", "kid": "r1"}).removesuffix(".")
    # joserfc refuses to sign so.
    honest_key = honest.keys[0]
    assert isinstance(honest_key, RSAKey)
    public = honest_key.as_pem(private=False)
    mac = base64.urlsafe_b64encode(hmac.digest(public, signed.encode(), "sha256"))
    by_secret = f"{signed}.{mac.rstrip(b'=').decode()}"
    assert "algorithm HS256" in refused(provider, by_secret)
    others = RSAKey.generate_key(2048, {"kid": "r1"}, auto_kid=False)
    assert "none of the provider's keys" in refused(provider, honest.token(others))
    brought = honest.token(others, header={"jwk": others.as_dict(private=False)})
    assert "none of the provider's keys" in refused(provider, brought)
    assert "none of" in refused(provider, unsigned(honest, {"alg": "RS256", "kid": "r1"}))
    for text in ("a.b.c", "..", honest.token() + ".x", honest.token()[1:]):
        assert "no signed JWT" in refused(provider, text)
    body, signature = honest.token().rsplit(".", 1)
    cut = f"{body}.{signature[:-8]}"
    assert "none of" in refused(provider, cut)


def test_symmetric_keys_of_a_provider_check_nothing(honest: Issuer) -> None:
    """They would be everybody's who reads the key set; nor does a key for encryption."""
    secret = OctKey.import_key("a secret of thirty-two characters", {"kid": "s1"})
    for_encryption = RSAKey.generate_key(2048, {"kid": "e1", "use": "enc"}, auto_kid=False)
    for_other = RSAKey.generate_key(2048, {"kid": "a1", "alg": "RS512"}, auto_kid=False)
    honest.keys += [secret, for_encryption, for_other]
    provider = Provider(Fetcher(honest.url))
    signed = jwt.encode({"alg": "HS256", "kid": "s1"}, honest.claims(), secret, ["HS256"])
    assert "algorithm HS256" in refused(provider, signed)
    by_sig = RSAKey.import_key(for_encryption.as_pem(private=True), {"kid": "e1"})
    assert "none of" in refused(provider, honest.token(by_sig))
    other_alg = RSAKey.import_key(for_other.as_pem(private=True), {"kid": "a1"})
    assert "none of" in refused(provider, honest.token(other_alg))
    assert accepted(provider, honest.token(other_alg, alg="RS512"))["sub"] == "u-1"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iss": "https://id.example.com"}, "iss"),
        ({"aud": "other"}, "aud"),
        ({"aud": None}, "aud"),
        ({"aud": [AUDIENCE + "x"]}, "aud"),
        ({"exp": None}, "exp"),
        ({"exp": "soon"}, "exp"),
        ({"sub": None}, "sub"),
        ({"nonce": "n"}, "no access token"),
        ({"typ": "ID"}, "no access token"),
        ({"header": {"typ": "logout+jwt"}}, "no access token"),
    ],
)
def test_claims_that_are_wrong(honest: Issuer, claims: dict[str, Any], why: str) -> None:
    """Each alone has a token refused."""
    assert why in refused(Provider(Fetcher(honest.url)), honest.token(**claims))


def test_clocks_may_differ_by_a_minute(honest: Issuer) -> None:
    """Both ways, and no further."""
    provider, now = Provider(Fetcher(honest.url)), int(time.time())
    near, far = LEEWAY_S - 30, LEEWAY_S + 30
    assert accepted(provider, honest.token(exp=now - near))
    assert "expired" in refused(provider, honest.token(exp=now - far)).lower()
    for claim in ("nbf", "iat"):
        soon: dict[str, Any] = {claim: now + near}
        assert accepted(provider, honest.token(**soon))
        # A slow machine comes nearer to it meanwhile: an hour is far for every one.
        later: dict[str, Any] = {claim: now + 3600}
        assert refused(provider, honest.token(**later))


def test_an_id_token_is_of_one_login_of_one_client(honest: Issuer) -> None:
    """Its nonce, audience and authorised party are looked at."""
    provider = Provider(Fetcher(honest.url))

    def check(**claims: Any) -> dict[str, Any]:
        token = honest.token(**{"aud": "framesift", "nonce": "n-1"} | claims)
        return anyio.run(id_token_claims, provider, token, "framesift", "n-1")

    assert check()["sub"] == "u-1"
    assert check(aud=["framesift", "other"], azp="framesift")["sub"] == "u-1"
    for wrong in (
        {"nonce": "n-2"}, {"nonce": None}, {"aud": "other"}, {"azp": "other"},
        {"aud": ["framesift", "other"]},
    ):  # fmt: skip
        with pytest.raises(NotAuthenticated):
            check(**wrong)


def test_rotated_keys_are_fetched_once_in_a_while(honest: Issuer) -> None:
    """A new key counts, a withdrawn one does not, and unknown ones cost one request a minute."""
    clock = Clock()
    provider = Provider(Fetcher(honest.url), clock)
    before = honest.token()
    assert accepted(provider, before)
    honest.rotate("e2")
    after = honest.token(alg="ES256")
    assert "none of" in refused(provider, after)  # asked within the minute
    clock.s += AGAIN_S + 1
    assert accepted(provider, after)
    assert honest.asked.count("/jwks") == 2
    assert "none of" in refused(provider, before)
    for number in range(20):
        refused(provider, honest.token(alg="ES256", header={"kid": f"unknown-{number}"}))
    assert honest.asked.count("/jwks") == 2
    clock.s += AGAIN_S + 1
    for number in range(20):
        refused(provider, honest.token(alg="ES256", header={"kid": f"unknown-{number}"}))
    assert honest.asked.count("/jwks") == 3


def test_a_provider_that_fails_is_asked_now_and_then(honest: Issuer) -> None:
    """Its failure is remembered, and forgotten."""
    clock = Clock()
    provider = Provider(Fetcher(honest.url), clock)
    honest.body = b"<html>"
    for _ in range(3):
        with pytest.raises(ProviderFails, match="without JSON"):
            accepted(provider, honest.token())
    assert len(honest.asked) == 1
    honest.body = None
    clock.s += FAILURE_S + 1
    assert accepted(provider, honest.token())
    # What is known goes on to count while it is away.
    honest.body = b"<html>"
    clock.s += 7200
    assert accepted(provider, honest.token())


def test_answers_have_a_size_and_a_time(honest: Issuer) -> None:
    """A longer one, and one that does not come, end in an error that names the provider."""
    honest.body = b'{"a": "' + b"x" * MOST_BYTES + b'"}'
    with pytest.raises(ProviderFails, match=r"127\.0\.0\.1.* more than 1,048,576 bytes"):
        accepted(Provider(Fetcher(honest.url)), honest.token())
    honest.body, honest.is_stalling = None, True
    with pytest.raises(ProviderFails, match="does not answer"):
        accepted(Provider(Fetcher(honest.url, timeout_s=0.5)), honest.token())


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://id.example.com"},
        {"issuer": None},
        {"jwks_uri": "http://id.example.com/jwks"},
        {"jwks_uri": "file:///etc/passwd"},
        {"token_endpoint": None},
        {"authorization_endpoint": "https://user@id.example.com/"},
    ],
)
def test_documents_that_are_not_the_issuers(honest: Issuer, document: dict[str, Any]) -> None:
    """Another issuer's, and endpoints in the clear."""
    honest.document = document
    with pytest.raises(ProviderFails):
        accepted(Provider(Fetcher(honest.url)), honest.token())
