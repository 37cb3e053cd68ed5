"""Collections as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import PageAnswer, Versioned
from catalog.text.bounded import Name, Sql

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from catalog.records.user_tables import Collection


class CollectionBody(Versioned):
    """A collection."""

    name: str = Field(examples=["munich"])
    rule: str = Field(examples=["datasource = 'a2d2' and filename like 'camera%'"])
    users: list[str] = Field(examples=[["anna"]])
    note: str = Field(
        default="",
        description="When it is made: for how many files its rule holds; else empty.",
        examples=["its rule holds for 41,277 files"],
    )

    @classmethod
    def of(cls, collection: "Collection", users: Sequence[str]) -> "CollectionBody":
        """A record's."""
        body = cls(name=collection.name, rule=collection.rule, users=list(users))
        return body.of_version(collection.version)


class CollectionsAnswer(PageAnswer):
    """Collections by name."""

    collections: list[CollectionBody]


class NewCollection(BaseModel):
    """A collection to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(examples=["munich"])
    rule: Sql = Field(
        description="A WHERE body over metaocean's columns.",
        examples=["datasource = 'a2d2' and filename like 'camera%'"],
    )
