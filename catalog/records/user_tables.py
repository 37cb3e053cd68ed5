"""SQLAlchemy tables of users and their rights: users, tokens, collections, the audit log."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from catalog.records.tables import Base
from catalog.records.versions import VersionedRecord
from catalog.values import account_of, now


class User(VersionedRecord, Base):
    """Account of a person or a program."""

    __tablename__ = "users"
    __table_args__ = (Index("users_by_subject", "issuer", "subject", unique=True),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    # argon2id's own text, with salt and costs; empty where no password opens the account.
    password: Mapped[str] = mapped_column(String(256), default="")
    # Of catalog.accounts.accounts.ROLES.
    roles: Mapped[list[Any]] = mapped_column(default=list)
    disabled: Mapped[bool] = mapped_column(default=False)
    # Jobs, and ranks of jobs, that wait or run at once; 0 for what the settings say.
    most_jobs: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    most_ranks: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    created: Mapped[datetime] = mapped_column(default=now)
    # Of a user whom an OpenID provider knows: its URL, and what it calls the user for ever.
    issuer: Mapped[str | None] = mapped_column(String(1024))
    subject: Mapped[str | None] = mapped_column(String(256))

    @property
    def account(self) -> str:
        """Tells users apart who had the same name, or the same id, one after the other."""
        return account_of(self.id, self.created)


class Token(VersionedRecord, Base):
    """A token, which a request carries instead of a password; the token itself is not kept."""

    __tablename__ = "tokens"
    # Tokens of a login have no name, and null differs from null.
    __table_args__ = (UniqueConstraint("user_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str | None] = mapped_column(String(128))
    # SHA-256 in hexadecimal: the token is random, so it needs neither salt nor costs.
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    # Of catalog.accounts.accounts.SCOPES.
    scope: Mapped[str] = mapped_column(String(16))
    created: Mapped[datetime] = mapped_column(default=now)
    expires: Mapped[datetime]
    revoked: Mapped[datetime | None]
    last_used: Mapped[datetime | None]


class Collection(VersionedRecord, Base):
    """Rows of the catalog that a rule selects, for the users in it."""

    __tablename__ = "collections"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    # A WHERE body over metaocean's columns.
    rule: Mapped[str]
    created: Mapped[datetime] = mapped_column(default=now)


class CollectionUser(Base):
    """A user sees a collection's rows."""

    __tablename__ = "collection_users"

    collection_id: Mapped[int] = mapped_column(
        ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class AuditEntry(Base):
    """A change, or a request that was refused. The database refuses to change or delete it."""

    __tablename__ = "audit"
    __table_args__ = (Index("audit_by_who", "who"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[datetime] = mapped_column(default=now)
    # Names and not keys: entries outlive users.
    who: Mapped[str] = mapped_column(String(256))
    address: Mapped[str] = mapped_column(String(64))
    what: Mapped[str] = mapped_column(String(64))
    target: Mapped[str] = mapped_column(String(1024))
    # HTTP status, "done", or what was wrong.
    outcome: Mapped[str] = mapped_column(String(64))
    request_id: Mapped[str] = mapped_column(String(64))
    # What was made or changed, where the target does not say it: names, roles, no secrets.
    note: Mapped[str] = mapped_column(String(1024), default="", server_default=text("''"))


class LoginFailure(Base):
    """Failed logins of a name or from an address, since the last that succeeded."""

    __tablename__ = "login_failures"

    key: Mapped[str] = mapped_column(String(256), primary_key=True)
    failures: Mapped[int]
    last: Mapped[datetime]
    # No login is tried before.
    blocked_until: Mapped[datetime]
