"""The certificate of a server that runs: read again when its files change, or on SIGHUP.

Only handshakes look at it: connections that are open stay as they are. One that cannot be used
leaves the one before in its place.
"""

import logging
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from catalog.storage.file_version import Stamp, stamp_of

LOOK_S = 2.0
"""Between two looks at the files; they are read when they were the same at two looks."""

_LOG = logging.getLogger(__name__)


class Certificate:
    """The newest certificate that could be used.

    Attributes:
        context: What a server listens with; its handshakes take the newest certificate.
        expires: Until when the newest one is valid; None where it does not say.
    """

    def __init__(self, files: Sequence[Path], read: Callable[[], ssl.SSLContext]) -> None:
        """Read it for the first time.

        Args:
            files: The certificate's, and its key's.
            read: Makes a context of them.
        """
        self._files, self._read = files, read
        self._seen = self._tried = _stamp(files)
        self.context = self._newest = read()
        self.expires: datetime | None = None
        with suppress(OSError, ValueError):  # OpenSSL reads more forms
            self.expires = _ends(files[0])
        self.context.sni_callback = self._choose  # called without a name, too

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext
    ) -> None:
        """Give a handshake the newest certificate."""
        connection.context = self._newest

    def look(self) -> None:
        """Read it again where the files have changed since the last time, and change no more.

        Whoever renews it writes one file after the other.
        """
        stamp = _stamp(self._files)
        rests, self._seen = stamp == self._seen, stamp
        if rests and stamp != self._tried:
            self.read_again()

    def read_again(self) -> None:
        """Read it now; the log says what came of it."""
        self._tried = _stamp(self._files)
        named = ", ".join(map(str, self._files))
        try:
            newest = self._read()
            ends = _ends(self._files[0])
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            _LOG.error(
                "certificate %s: cannot be used: %s; expected PEM files that belong together: "
                "the server goes on with the one before", named, reason,
            )  # fmt: skip
            return
        self._newest, self.expires = newest, ends
        _LOG.info("certificate %s: read again; it is valid until %s", named, ends)


def _ends(certificate: Path) -> datetime:
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc


def _stamp(files: Sequence[Path]) -> tuple[Stamp, ...]:
    return tuple(map(stamp_of, files))
