"""A login that a browser began here and goes on with at the provider's pages.

It lies in the browser, sealed by the home's key, so that any process of a server can finish it.
"""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from catalog.errors import NotAuthenticated

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

LASTS_S = 600
"""How long a login may take [s]."""

_BYTES = 32


def _random() -> str:
    return secrets.token_urlsafe(_BYTES)


@dataclass(frozen=True)
class PendingLogin:
    """Secrets that tie the way back to the browser that began."""

    redirect_uri: str
    """URL that the provider leads back to."""
    target: str
    """Path of this server to go on to."""
    state: str = field(default_factory=_random, repr=False)
    nonce: str = field(default_factory=_random, repr=False)
    """Comes back within the ID token."""
    verifier: str = field(default_factory=_random, repr=False)
    """Of PKCE: whoever has the code alone gets no token for it."""

    @property
    def challenge(self) -> str:
        """What the provider is told of the verifier (S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def sealed(self, cipher: "Fernet") -> str:
        """As text that the browser keeps."""
        return cipher.encrypt(json.dumps({"login": asdict(self)}).encode()).decode()

    @classmethod
    def unsealed(cls, cipher: "Fernet", text: str, state: str) -> "PendingLogin":
        """The login that a browser comes back to.

        Args:
            cipher: That which sealed it.
            text: What the browser kept.
            state: What the provider gave back.

        Raises:
            NotAuthenticated: This browser began none, or another, or too long ago.
        """
        from cryptography.fernet import InvalidToken

        try:
            fields = json.loads(cipher.decrypt(text, ttl=LASTS_S))
            pending = cls(**fields["login"])
        except (InvalidToken, KeyError, TypeError, ValueError) as error:
            raise _unknown() from error
        if not hmac.compare_digest(pending.state.encode(), state.encode("utf-8", "replace")):
            raise _unknown()
        return pending


def _unknown() -> NotAuthenticated:
    return NotAuthenticated(
        f"this browser began no such login in the last {LASTS_S // 60} minutes: log in again"
    )
