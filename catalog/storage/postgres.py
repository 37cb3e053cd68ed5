"""A PostgreSQL database: its address, its password kept apart, and named locks in it."""

import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from catalog.errors import CatalogBusy, InvalidInput, StorageError, StoreAway, not_installed

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql://", "postgres://")

# Where the URL does not say otherwise: a dead server is noticed, and a dead client by the server.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "options": "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
}
_OTHER_SECRETS = frozenset({"sslpassword", "oauth_client_secret", "scram_client_key"})
_APPLICATION = "framesift"

_HOLDER = """
SELECT a.application_name, a.state_change
FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (l.classid::bigint << 32 | l.objid::bigint) = %s
"""


@dataclass(frozen=True, slots=True)
class Postgres:
    """A database of a PostgreSQL server. Its text shows no password."""

    conninfo: str
    """libpq's keywords and values, all but the password."""
    password: str = field(default="", repr=False)
    """Empty where libpq finds it itself (~/.pgpass) or none is needed."""

    @classmethod
    def parse(cls, url: str) -> "Postgres":
        """The database of a URL as libpq knows it.

        Raises:
            InvalidInput: It is none. The message does not repeat it: it may hold a password.
        """
        psycopg = _psycopg()
        try:
            keywords = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            keywords = {}
        # A password with an unescaped slash makes a port or a database of its parts.
        odd = "@" in f"{keywords.get('dbname')}{keywords.get('host')}" or not all(
            character in "0123456789," for character in str(keywords.get("port", ""))
        )
        if not url.startswith(SCHEMES) or not keywords.get("dbname") or odd:
            raise InvalidInput(
                "the PostgreSQL URL cannot be used; expected "
                "postgresql://USER[:PASSWORD]@HOST[:PORT]/DATABASE, with special characters of the "
                "password percent-encoded"
            )
        if secret := _OTHER_SECRETS & keywords.keys():
            raise InvalidInput(
                f"the PostgreSQL URL holds {secret.pop()}, which is not supported; use a password, "
                "~/.pgpass or a client certificate without passphrase"
            )
        password = str(keywords.pop("password", None) or "")
        return cls(psycopg.conninfo.make_conninfo(**{**_DEFAULTS, **keywords}), password)

    def __str__(self) -> str:
        known = _psycopg().conninfo.conninfo_to_dict(self.conninfo)
        user = f"{known['user']}@" if "user" in known else ""
        port = f":{known['port']}" if "port" in known else ""
        return f"postgresql://{user}{known.get('host', '')}{port}/{known['dbname']}"

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords for psycopg.connect, the password included."""
        known: dict[str, Any] = _psycopg().conninfo.conninfo_to_dict(self.conninfo)
        return known | ({"password": self.password} if self.password else {})

    def clean(self, text: str) -> str:
        """The text without the password, should a foreign message hold it."""
        return text.replace(self.password, "***") if self.password else text

    def trouble(self, error: BaseException) -> StorageError:
        """A foreign error in one line, without the password."""
        reason = " ".join(self.clean(str(error)).split())[:300]
        return StoreAway(f"{self}: cannot be used: {reason}. Try again when it answers", "")

    @contextmanager
    def connected(self) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
        """A connection of its own, where each statement is committed by itself.

        Raises:
            StorageError: The server cannot be reached or refuses, also in the block.
        """
        psycopg = _psycopg()
        name = f"{_APPLICATION} {os.getpid()} {socket.gethostname()}"
        keywords = self.keywords | {"application_name": name}
        connection = None
        try:
            connection = psycopg.connect(**keywords, autocommit=True)
            yield connection
        except psycopg.Error as error:
            raise self.trouble(error) from None  # the cause's text may hold the password
        finally:
            if connection is not None:
                connection.close()

    @contextmanager
    def lock(self, name: str, wait_s: float, activity: str) -> Iterator[Callable[[], None]]:
        """Hold the lock of that name, in this database, for the block.

        The server frees it when the connection ends, however it ends.

        Yields:
            A check that it is still held: StorageError where the connection was lost.

        Raises:
            CatalogBusy: Another process held it for longer than ``wait_s``; the message names it.
        """
        digest = hashlib.sha256(f"framesift {name}".encode()).digest()
        key = int.from_bytes(digest[:8], "big", signed=True)
        with self.connected() as connection:
            if not _acquired(connection, key, wait_s):
                holder = _holder(connection, key)
                raise CatalogBusy(
                    f"{activity} by {holder}; waited {wait_s:g} s. "
                    f"Try again when it has finished (lock: {name} in {self})"
                )

            yield lambda: self._check(connection)

    def _check(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        try:
            connection.execute("SELECT 1")
        except _psycopg().Error as error:
            reason = " ".join(self.clean(str(error)).split())[:300]
        else:
            return
        raise StoreAway(
            f"{self}: the connection that held the write lock was lost ({reason}); nothing of this "
            "change was kept. Run it again"
        )


def _acquired(connection: "psycopg.Connection[tuple[Any, ...]]", key: int, wait_s: float) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone()
    if row is not None and row[0]:
        return True
    if wait_s <= 0:
        return False
    milliseconds = max(1, int(wait_s * 1000))
    connection.execute("SELECT set_config('lock_timeout', %s, false)", [str(milliseconds)])
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", [key])
    except _psycopg().errors.LockNotAvailable:
        return False
    return True


def _holder(connection: "psycopg.Connection[tuple[Any, ...]]", key: int) -> str:
    row = connection.execute(_HOLDER, [key]).fetchone()
    application, pid, host = [*str(row[0]).split(" ", 2), "", "", ""][:3] if row else ("", "", "")
    if row is None or application != _APPLICATION or not pid or not row[1]:
        return "another process"
    return f"process {pid} on {host} since {row[1].isoformat(timespec='seconds')}"


def _psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise not_installed("PostgreSQL", "team") from error
    return psycopg
