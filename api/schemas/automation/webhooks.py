"""Webhooks and their deliveries as JSON."""

from typing import TYPE_CHECKING, Literal

from pydantic import ConfigDict, Field

from api.schemas.base import EXAMPLE_TIME, Numbered, PageAnswer, Schema, iso_time
from catalog.text.bounded import Name, Text

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.automation.tables import Webhook, WebhookDelivery

End = Literal["done", "failed", "cancelled"]

_URL = "https://ci.example.com/framesift"


class NewWebhook(Schema):
    """A webhook to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Letters, digits and ._@-.", examples=["ci"])
    url: Text = Field(
        description="Of a host in FRAMESIFT_WEBHOOK_HOSTS, by https or http.", examples=[_URL]
    )
    states: list[End] = Field(
        default=["done", "failed", "cancelled"],
        min_length=1,
        max_length=3,
        description="States of ended jobs for which the server calls it.",
        examples=[["failed"]],
    )


class WebhookBody(Schema):
    """A webhook, without its secret."""

    name: str = Field(examples=["ci"])
    url: str = Field(examples=[_URL])
    states: list[str] = Field(examples=[["done", "failed"]])
    owner: str = Field(examples=["root"])
    created: str = Field(examples=[EXAMPLE_TIME])

    @classmethod
    def of(cls, webhook: "Webhook") -> "WebhookBody":
        """A record's."""
        return cls(
            name=webhook.name,
            url=webhook.url,
            states=webhook.states,
            owner=webhook.owner,
            created=iso_time(webhook.created),
        )


class NewWebhookBody(WebhookBody):
    """A webhook that was made just now."""

    secret: str = Field(
        description="Signs what it is told; shown this once.",
        examples=["3q2-7wEjRWe0x4nTzQv0fQ9oS1Yk5hZ8c2bLr6uVgXw"],
    )


class DeliveryBody(Numbered):
    """One job's end, told to a webhook."""

    delivery: str = Field(
        description="The same at every try.", examples=["0f1c9a54d7e24d7c9a1f3f6c5f0e7b7a"]
    )
    job: str = Field(examples=["train-bikes-7"])
    state: Literal["pending", "delivered", "failed"] = Field(examples=["delivered"])
    tries: int = Field(examples=[1])
    status: int | None = Field(description="Of the last answer.", examples=[204])
    error: str = Field(examples=[""])
    due: str | None = Field(description="Of the next try.", examples=[None])
    created: str = Field(examples=[EXAMPLE_TIME])
    tried: str | None = Field(description="Last.", examples=[EXAMPLE_TIME])

    @classmethod
    def of(cls, delivery: "WebhookDelivery") -> "DeliveryBody":
        """A record's."""
        body = cls(
            delivery=delivery.delivery,
            job=delivery.job,
            state=delivery.state,  # type: ignore[arg-type]
            tries=delivery.tries,
            status=delivery.status,
            error=delivery.error,
            due=iso_time(delivery.due) if delivery.state == "pending" else None,
            created=iso_time(delivery.created),
            tried=None if delivery.tried is None else iso_time(delivery.tried),
        )
        body._number = delivery.id
        return body


class WebhooksAnswer(PageAnswer):
    """Webhooks by name."""

    webhooks: list[WebhookBody]


class DeliveriesAnswer(PageAnswer):
    """Deliveries of a webhook, newest first."""

    deliveries: list[DeliveryBody]
