"""Webhooks: kept, listed, removed; api.services.automation.delivering tells them of jobs' ends."""

import builtins
import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

from api.schemas.automation.webhooks import (
    DeliveryBody,
    NewWebhook,
    NewWebhookBody,
    WebhookBody,
)
from api.services.call import Service
from catalog.errors import InvalidInput
from catalog.records.automation import webhooks as records_of
from catalog.text.visible_text import without_user
from ingest.sources.sealed_keys import AccessKeys, seal
from query.question.wrong_value import checked

_MOST = 1_000
_PORTS = {"https": 443, "http": 80}


class Webhooks(Service):
    """Webhooks of a home."""

    def list(self) -> list[WebhookBody]:
        """Every webhook, by name."""
        return [WebhookBody.of(webhook) for webhook in records_of.listed(self._readable_records)]

    def get(self, name: str) -> WebhookBody:
        """A webhook."""
        return WebhookBody.of(records_of.recorded(self._readable_records, name))

    def add(
        self, name: str, url: str, *, states: Sequence[str] = ("done", "failed", "cancelled")
    ) -> NewWebhookBody:
        """Keep a webhook, which is told of jobs that end from here on; it, with its secret.

        Raises:
            InvalidInput: The URL cannot be used, or its host is not allowed.
        """
        from catalog.records.automation.tables import Webhook

        request = checked(NewWebhook, name=name, url=url, states=[*states])
        check_url(request.url, self._session.whole.settings.webhook_hosts)
        secret = secrets.token_urlsafe(32)
        owner = self._session.owner
        webhook = Webhook(
            name=request.name,
            url=request.url,
            states=[*dict.fromkeys(request.states)],
            secret=seal(AccessKeys("webhook", secret)),
            owner=owner.name,
            account=owner.account,
        )
        self._session.whole.job_queue.make_folder()  # without it nothing drives a home
        records_of.add(self._records, webhook)
        return NewWebhookBody(**dict(WebhookBody.of(webhook)), secret=secret)

    def remove(self, name: str) -> None:
        """Forget a webhook and its deliveries; pending ones are not made."""
        records_of.remove(self._records, name)

    def deliveries(self, name: str, *, limit: int = _MOST) -> builtins.list[DeliveryBody]:
        """The newest deliveries of a webhook, newest first."""
        webhook = records_of.recorded(self._readable_records, name)
        rows = records_of.deliveries_of(self._readable_records, webhook, limit)
        return [DeliveryBody.of(delivery) for delivery in rows]


def check_url(url: str, hosts: Sequence[str]) -> None:
    """A webhook's URL can be called.

    Args:
        hosts: Host or host:port of those that may be.

    Raises:
        InvalidInput: It is none, has what should not be kept, or its host is not among them.
    """
    excerpt = without_user(" ".join(url[:200].split()))
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # it may show what stands before an "@"
        raise InvalidInput(f"webhook {excerpt}: expected https://HOST/PATH") from None
    is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    if parts.scheme not in _PORTS or not host or not is_plain:
        raise InvalidInput(f"webhook {excerpt}: expected https://HOST/PATH or http://HOST/PATH")
    if parts.username is not None or parts.fragment:
        raise InvalidInput(
            f"webhook of {host}: a user name, password or fragment has no place in its URL; the "
            "receiver knows Framesift by the signature"
        )
    if host not in hosts and f"{host}:{port or _PORTS[parts.scheme]}" not in hosts:
        raise InvalidInput(
            f"webhook {excerpt}: host {host} is not allowed; add it to FRAMESIFT_WEBHOOK_HOSTS "
            "(HOST or HOST:PORT, with commas between) where 'framesift serve' is started; without "
            "a server, for this command and for 'framesift jobs daemon'"
        )
