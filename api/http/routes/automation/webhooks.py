"""/v1/webhooks: addresses that are told of jobs' ends."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Path, Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import ADMIN_READ, ADMIN_WRITE
from api.schemas.automation.webhooks import (
    DeliveriesAnswer,
    NewWebhook,
    NewWebhookBody,
    WebhookBody,
    WebhooksAnswer,
)

router = Router(prefix="/v1/webhooks", tags=["jobs"], examples={"name": "ci"})

Name = Annotated[str, Path(description="The webhook.", examples=["ci"])]


@router.get("", rule=ADMIN_READ)
def get_webhooks(session: CurrentSession, page: CurrentPage) -> WebhooksAnswer:
    """Webhooks by name."""
    webhooks = session.webhooks.list()
    listed, follows = page.page_of_all("webhooks", webhooks, lambda one: (one.name,), str)
    return WebhooksAnswer(webhooks=listed, next=follows)


@router.post(
    "",
    rule=ADMIN_WRITE.but(idempotency_key="refuses", compressed=False),
    status_code=201,
    example={"name": "ci", "url": "https://ci.example.com/framesift", "states": ["failed"]},
)
def post_webhook(
    body: NewWebhook, session: CurrentSession, context: CurrentContext
) -> NewWebhookBody:
    """Make a webhook: it is told of jobs that end from here on, each by a signed POST.

    The secret that signs is shown this once.
    """
    # Of the URL the host alone: the rest may hold a receiver's secret.
    host = urlsplit(body.url).hostname or ""
    context.about = f"webhook {body.name}: {host}, {', '.join(body.states)}"
    return session.webhooks.add(**dict(body))


@router.get("/{name}", rule=ADMIN_READ)
def get_webhook(name: Name, session: CurrentSession) -> WebhookBody:
    """A webhook, without its secret."""
    return session.webhooks.get(name)


@router.delete("/{name}", rule=ADMIN_WRITE, status_code=204)
def delete_webhook(name: Name, session: CurrentSession, context: CurrentContext) -> Response:
    """Forget a webhook and its deliveries; pending ones are not made."""
    context.about = f"webhook {name}: removed"
    session.webhooks.remove(name)
    return Response(status_code=204)


@router.get("/{name}/deliveries", rule=ADMIN_READ)
def get_deliveries(name: Name, session: CurrentSession, page: CurrentPage) -> DeliveriesAnswer:
    """The newest thousand deliveries of a webhook, newest first."""
    rows = session.webhooks.deliveries(name)
    listed, follows = page.page_of_all("deliveries", rows, lambda row: (-row.number,), int)
    return DeliveriesAnswer(deliveries=listed, next=follows)
