"""Idempotency keys: a request that a client repeats is answered again, and not done again."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, update

from catalog.records.store import RecordStore
from catalog.records.tables import IdempotencyKey
from catalog.values import now

KEPT = timedelta(hours=24)
"""Time for which an answer is remembered."""

LEASE = timedelta(seconds=60)
"""Time after which a request without a beat no longer counts as under way."""


@dataclass(frozen=True)
class KeyedRequest:
    """A request with a key."""

    key: str
    """Digest of the caller and the client's key."""
    digest: str
    """Digest of the request."""

    @classmethod
    def of(cls, caller: str, header: str, request: bytes) -> "KeyedRequest":
        """The request that somebody gave a key."""
        secret = header.encode()
        key = hashlib.sha256(caller.encode() + b"\0" + secret).hexdigest()
        return cls(key, hmac.new(secret, request, hashlib.sha256).hexdigest())


def begin(records: RecordStore, keyed: KeyedRequest) -> IdempotencyKey | None:
    """The key's record, of whatever request; None where there was none, and the request is ours.

    Of several that ask at once, one gets None.
    """
    with records.session() as session:
        session.execute(delete(IdempotencyKey).where(IdempotencyKey.until < now()))
        answer = session.get(IdempotencyKey, keyed.key)
        if answer is None:
            until = now() + LEASE
            session.add(
                IdempotencyKey(key=keyed.key, digest=keyed.digest, status=None, until=until)
            )
        return answer


def still_busy(records: RecordStore, keyed: KeyedRequest) -> None:
    """Say that the request is under way."""
    with records.session() as session:
        session.execute(
            update(IdempotencyKey)
            .where(IdempotencyKey.key == keyed.key, IdempotencyKey.status.is_(None))
            .values(until=now() + LEASE)
        )


def keep(
    records: RecordStore, keyed: KeyedRequest, status: int, headers: dict[str, str], body: str
) -> None:
    """Keep the answer."""
    with records.session() as session:
        session.merge(
            IdempotencyKey(
                key=keyed.key,
                digest=keyed.digest,
                status=status,
                headers=headers,
                body=body,
                until=now() + KEPT,
            )
        )


def forget(records: RecordStore, keyed: KeyedRequest) -> None:
    """Keep nothing of a request that failed: it may be made again."""
    with records.session() as session:
        session.execute(delete(IdempotencyKey).where(IdempotencyKey.key == keyed.key))
