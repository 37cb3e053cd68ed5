"""Tells webhooks of jobs' ends: each end is recorded, signed, tried, and tried again.

    X-Framesift-Delivery: 0f1c...     the same at every try, so that a receiver knows a repetition
    X-Framesift-Signature: t=1795442898,v1=HEX

HEX is HMAC-SHA256 by the webhook's secret over "t.body". A process that is killed between an answer
and its record tells the same delivery again.
"""

import hashlib
import hmac
import json
import logging
import os
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from api.schemas.jobs import JobBody
from api.services.automation.webhooks import check_url
from catalog.errors import CatalogBusy, FramesiftError, InvalidInput, StorageError
from catalog.records.automation import webhooks as records_of
from catalog.records.automation.tables import Webhook, WebhookDelivery
from catalog.records.tables import Job
from catalog.storage.file_lock import open_locked
from catalog.values import now
from ingest.sources.sealed_keys import unseal

if TYPE_CHECKING:
    from api.workspace import Workspace

AGAIN_S = (10, 60, 300, 1_800, 7_200, 21_600)
"""From one try to the next; after the last of them a delivery has failed."""

_TIMEOUT_S = 10.0
_AT_ONCE = 100
_FIELDS = (
    "name", "kind", "state", "backend", "dataset", "split", "error", "attempt", "created",
    "started", "finished", "seconds", "metrics",
)  # fmt: skip
"""Fields of a job that a webhook sends: no path, no command line, no setting."""

_log = logging.getLogger(__name__)


def notify_webhooks(workspace: "Workspace", warn: Callable[[str], None] = _log.warning) -> int:
    """Record the ends that webhooks do not know, and send what is due; the number delivered.

    One process does so at a time; another's call returns at once.

    Raises:
        StorageError: The jobs' folder cannot be written.
    """
    records = workspace.records
    every = records_of.listed(records)
    if not every:
        return 0
    try:
        workspace.jobs.mkdir(parents=True, exist_ok=True)
        lock = open_locked(workspace.jobs / ".webhooks.lock", mode=0o600, wait_s=0)
    except OSError as error:
        raise StorageError(f"{workspace.jobs}: {error.strerror}", str(workspace.jobs)) from error
    if lock is None:
        return 0
    try:
        for webhook in every:
            records_of.note_ends(records, webhook, partial(_delivery, webhook))
        rows = records_of.due(records, now(), _AT_ONCE)
        return sum(_try(workspace, webhook, delivery, warn) for webhook, delivery in rows)
    except CatalogBusy:
        return 0  # the next look is soon
    finally:
        os.close(lock)


def signature(secret: str, at_s: int, body: bytes) -> str:
    """The value of X-Framesift-Signature."""
    signed = hmac.new(secret.encode(), b"%d." % at_s + body, hashlib.sha256)
    return f"t={at_s},v1={signed.hexdigest()}"


def _delivery(webhook: Webhook, job: Job) -> WebhookDelivery:
    delivery, fields = uuid4().hex, JobBody.of(job).model_dump(mode="json", include={*_FIELDS})
    document = {"delivery": delivery, "event": f"job.{job.state}", "job": fields}
    return WebhookDelivery(
        webhook_id=webhook.id,
        delivery=delivery,
        job=job.name,
        ended=job.finished,
        body=json.dumps(document, ensure_ascii=False),
        state=records_of.PENDING,
    )


def _try(
    workspace: "Workspace",
    webhook: Webhook,
    delivery: WebhookDelivery,
    warn: Callable[[str], None],
) -> bool:
    """Try a delivery once, and record what came of it; whether it was delivered."""
    status, error = None, ""
    try:
        check_url(webhook.url, workspace.settings.webhook_hosts)  # settings may have changed
        secret = unseal(webhook.secret).secret_key
        status = _posted(webhook.url, delivery.delivery, delivery.body.encode(), secret)
        if not 200 <= status < 300:
            moved = " to another address, which is not followed" if 300 <= status < 400 else ""
            error = f"the receiver answered {status}{moved}; expected 2xx"
    except FramesiftError as problem:
        error = str(problem)
    tries = delivery.tries + 1
    changes: dict[str, Any] = {}
    if not error:
        changes["state"] = records_of.DELIVERED
    elif tries > len(AGAIN_S):
        changes["state"] = records_of.FAILED
        warn(f"webhook {webhook.name}: job {delivery.job}: {error}; given up after {tries} tries")
    else:
        changes["due"] = now() + timedelta(seconds=AGAIN_S[tries - 1])
    records_of.keep(
        workspace.records,
        delivery.id,
        tries=tries,
        status=status,
        error=error,
        tried=now(),
        **changes,
    )
    return not error


def _posted(url: str, delivery: str, body: bytes, secret: str) -> int:
    """POST a body; the answer's status, whose body is not read.

    Raises:
        InvalidInput: There was no answer.
    """
    import httpx  # 60 ms, and most homes have no webhooks

    headers = {
        "Content-Type": "application/json",
        "User-Agent": "framesift-webhook",
        "X-Framesift-Delivery": delivery,
        "X-Framesift-Signature": signature(secret, int(time.time()), body),
    }
    try:
        # No redirect is followed: it could lead to a host that nobody allowed. No .netrc, no proxy.
        with (
            httpx.Client(follow_redirects=False, timeout=_TIMEOUT_S, trust_env=False) as client,
            client.stream("POST", url, content=body, headers=headers) as answer,
        ):
            return answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InvalidInput(f"the receiver did not answer: {reason}") from error
