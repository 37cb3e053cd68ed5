"""Users as JSON."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import PageAnswer, Schema, Versioned, iso_time
from catalog.accounts.users import MOST_QUOTA
from catalog.text.bounded import Name, Secret

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from catalog.records.user_tables import User


class UserBody(Versioned):
    """A user."""

    name: str = Field(examples=["anna"])
    roles: list[str] = Field(examples=[["datauser"]])
    disabled: bool
    has_password: bool = Field(
        description="Else tokens open the account, or the OpenID provider does."
    )
    jobs: int = Field(
        default=0, description="That may wait or run at once; 0: as settings say.", examples=[4]
    )
    ranks: int = Field(
        default=0, description="Processes of these jobs; 0: as settings say.", examples=[64]
    )
    created: str = Field(examples=["2026-11-21T14:08:18Z"])

    @classmethod
    def of(cls, user: "User") -> "UserBody":
        """A record's."""
        return cls(
            name=user.name,
            roles=user.roles,
            disabled=user.disabled,
            has_password=bool(user.password),
            jobs=user.most_jobs,
            ranks=user.most_ranks,
            created=iso_time(user.created),
        ).of_version(user.version)


class UsersAnswer(PageAnswer):
    """Users by name."""

    users: list[UserBody]


class NewUser(BaseModel):
    """A user to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(examples=["anna"])
    roles: list[Name] = Field(max_length=16, fail_fast=True, examples=[["datauser"]])
    password: Secret | None = Field(
        default=None, description="Without one only tokens open the account."
    )


class UserChange(BaseModel):
    """Fields to change; those left out stay."""

    model_config = ConfigDict(extra="forbid")

    roles: list[Name] | None = Field(default=None, max_length=16, fail_fast=True)
    disabled: bool | None = None
    password: Secret | None = None
    jobs: int | None = Field(
        default=None,
        ge=0,
        le=MOST_QUOTA,
        description="Jobs that may wait or run at once; 0 for what the settings say.",
    )
    ranks: int | None = Field(
        default=None,
        ge=0,
        le=MOST_QUOTA,
        description="Processes of these jobs; 0 for what the settings say.",
        examples=[64],
    )


class MeBody(Schema):
    """The caller."""

    name: str = Field(
        description="Empty where the server does not authenticate.", examples=["anna"]
    )
    roles: list[str] = Field(examples=[["datauser"]])
    level: str = Field(
        description="What roles and token allow: read, write or admin.", examples=["read"]
    )
    all_rows: bool = Field(description="Whether every row is seen, and not those of collections.")


class OwnPassword(BaseModel):
    """A password in place of another."""

    model_config = ConfigDict(extra="forbid")

    current: Secret = Field(description="The one until now.")
    password: Secret = Field(description="The one from now on.")
