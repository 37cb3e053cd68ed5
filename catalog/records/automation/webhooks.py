"""Webhooks and what they were told, as they are recorded."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from catalog.records.kinds import WEBHOOK_DELIVERIES, WEBHOOKS
from catalog.records.named import Named
from catalog.records.reading import Records

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.automation.tables import Webhook, WebhookDelivery
    from catalog.records.store import RecordStore
    from catalog.records.tables import Job

PENDING, DELIVERED, FAILED = "pending", "delivered", "failed"
"""States of deliveries."""

_WEBHOOKS = Named("webhook", WEBHOOKS, "framesift webhook list and GET /v1/webhooks list them")
add, listed, recorded = _WEBHOOKS.add, _WEBHOOKS.listed, _WEBHOOKS.recorded
remove = _WEBHOOKS.remove
"""The webhooks; with one, its deliveries are removed, and those that are pending are not made."""


def note_ends(
    records: "RecordStore",
    webhook: "Webhook",
    delivery_of: "Callable[[Job], WebhookDelivery]",
) -> int:
    """Keep a delivery for each end of a job that the webhook was not told of; how many."""
    from sqlalchemy import exists, select

    from catalog.records.automation.tables import WebhookDelivery
    from catalog.records.tables import Job

    is_reported = exists().where(
        WebhookDelivery.webhook_id == webhook.id,
        WebhookDelivery.job == Job.name,
        WebhookDelivery.ended == Job.finished,
    )
    query = select(Job).where(
        Job.finished >= webhook.created, Job.state.in_(webhook.states), ~is_reported
    )
    with records.reading() as session:
        jobs = list(session.scalars(query.order_by(Job.finished)))
    if not jobs:
        return 0
    with records.session() as session:
        session.add_all(delivery_of(job) for job in jobs)
    return len(jobs)


def due(
    records: "RecordStore", until: datetime, limit: int
) -> "list[tuple[Webhook, WebhookDelivery]]":
    """Deliveries that are to be tried by then, with their webhooks, the longest due first."""
    from sqlalchemy import select

    from catalog.records.automation.tables import Webhook, WebhookDelivery

    query = (
        select(Webhook, WebhookDelivery)
        .join(WebhookDelivery, WebhookDelivery.webhook_id == Webhook.id)
        .where(WebhookDelivery.state == PENDING, WebhookDelivery.due <= until)
        .order_by(WebhookDelivery.due, WebhookDelivery.id)
        .limit(limit)
    )
    with records.reading() as session:
        return [(webhook, delivery) for webhook, delivery in session.execute(query)]


def keep(records: "RecordStore", number: int, **columns: Any) -> None:
    """Give a delivery other values of columns; nothing where its webhook was removed."""
    from catalog.records.automation.tables import WebhookDelivery

    with records.session() as session:
        delivery = session.get(WebhookDelivery, number)
        for column, value in columns.items() if delivery is not None else ():
            setattr(delivery, column, value)


def deliveries_of(records: Records, webhook: "Webhook", limit: int) -> "Sequence[WebhookDelivery]":
    """A webhook's newest deliveries, newest first."""
    to_it = "webhook_id = :webhook"
    return records.select(
        WEBHOOK_DELIVERIES, to_it, order="id DESC", limit=limit, webhook=webhook.id
    )
