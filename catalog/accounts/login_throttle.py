"""Guessing passwords gets slower with every failure, also over restarts and several servers.

An attempt counts as failed from its begin, until it succeeds: guesses that run side by side do not
slip through together. Who logs in from this machine has a count of their own, which nobody
elsewhere can raise and which never waits long; and a token is not throttled at all.
"""

import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from catalog.errors import LoginThrottled
from catalog.records.store import RecordStore
from catalog.records.user_tables import LoginFailure
from catalog.values import now


@dataclass(frozen=True)
class _Count:
    """Failures counted by a key, and the wait that follows: 1, 2, 4... s after the free ones."""

    key: str
    free: int
    longest_s: int


_FORGOTTEN = timedelta(days=1)


def begin(records: RecordStore, name: str, address: str) -> None:
    """Count an attempt to log in.

    Raises:
        LoginThrottled: It has to wait, and its password must not be looked at.
    """
    time = now()
    with records.session() as session:
        session.execute(delete(LoginFailure).where(LoginFailure.last < time - _FORGOTTEN))
        rows = [(count, _row(session, count.key, time)) for count in _counts(name, address)]
        wait_s = max((row.blocked_until - time).total_seconds() for _, row in rows)
        if wait_s > 0:
            raise LoginThrottled(wait_s)
        for count, row in rows:
            row.failures += 1
            row.last = time
            over = row.failures - count.free
            if over >= 0:
                wait = min(2.0 ** min(over, 30), count.longest_s)
                row.blocked_until = time + timedelta(seconds=wait)


def succeeded(records: RecordStore, name: str, address: str) -> None:
    """Take back what `begin` counted: the name's count begins again, the address's is as before."""
    with records.session() as session:
        of_name, *of_address = _counts(name, address)
        session.execute(delete(LoginFailure).where(LoginFailure.key == of_name.key))
        for count in of_address:
            row = _row(session, count.key, now())
            row.failures = max(row.failures - 1, 0)
            row.blocked_until = now()


def forget(records: RecordStore, name: str) -> None:
    """Forget a name's failures, from wherever they were."""
    with records.session() as session:
        keys = [_key("user", name), _key("local user", name)]
        session.execute(delete(LoginFailure).where(LoginFailure.key.in_(keys)))


def _counts(name: str, address: str) -> Sequence[_Count]:
    if _is_loopback(address):
        return (_Count(_key("local user", name), 5, 30),)
    return (
        _Count(_key("user", name), 5, 900),
        _Count(_key("address", _network(address)), 20, 900),
    )


def _row(session: Session, key: str, time: datetime) -> LoginFailure:
    row = session.get(LoginFailure, key)
    if row is None:
        row = LoginFailure(key=key, failures=0, last=time, blocked_until=time)
        session.add(row)
    return row


def _key(kind: str, text: str) -> str:
    # Hashed: whatever was sent as a name or address fits, and typed passwords are not kept.
    return f"{kind} {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


def _network(address: str) -> str:
    """The address; of IPv6 the network, all of whose addresses one machine may have."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
