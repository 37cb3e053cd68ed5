"""Idempotency-Key: who repeats a request that created something gets the first one's answer.

For requests that would create a second thing. Answers that succeeded are kept for a day, of each
user apart. What failed created nothing, and may be made again with the same key. New tokens take no
key: their answer holds a secret, which is kept nowhere.
"""

import asyncio
import re
from contextlib import suppress

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.errors import problem
from api.http.middleware.read_again import read_again, whole_body
from api.http.routing import rule_of
from catalog.records import idempotency_keys
from catalog.records.idempotency_keys import LEASE, KeyedRequest
from catalog.records.store import RecordStore
from catalog.records.tables import IdempotencyKey

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_WAIT_S = 5
_SHOWN = ("content-type", "location")


class Idempotency:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application, whose callers are known by now."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it as before."""
        takes = rule_of(scope).idempotency_key if scope["type"] == "http" else "ignores"
        key = None if takes == "ignores" else Headers(scope=scope).get("idempotency-key")
        if key is None:
            await self._app(scope, receive, send)
            return
        if takes == "refuses":
            why = "Idempotency-Key: none for new tokens, whose answer is kept nowhere; a name is "
            answer: Response = problem(400, "InvalidInput", why + "taken once anyway")
        elif not _KEY.fullmatch(key):
            why = "Idempotency-Key: expected 1 to 255 printable characters without blanks"
            answer = problem(400, "InvalidInput", why)
        else:
            await self._keyed(scope, receive, send, key)
            return
        await answer(scope, receive, send)

    async def _keyed(self, scope: Scope, receive: Receive, send: Send, key: str) -> None:
        try:
            body = await whole_body(receive)
            if body is None:
                return  # the client left: what it sent is no request
        except HTTPException as error:  # it is too long
            await problem(error.status_code, "BodyTooLarge", str(error.detail))(
                scope, receive, send
            )
            return
        records: RecordStore = scope["app"].state.workspace.records
        view = scope["state"]["context"].caller.view
        content = b"\0".join((scope["path"].encode(), scope["query_string"], body))
        keyed = KeyedRequest.of(view, key, content)
        earlier = await run_in_threadpool(idempotency_keys.begin, records, keyed)
        if earlier is not None:
            await _again(earlier, keyed)(scope, receive, send)
            return
        answer = _Answer()
        renewing = asyncio.create_task(_renewing(records, keyed))
        done = False
        try:
            await self._app(scope, read_again(body, receive), answer.receive)
            done = answer.succeeded
            if done:
                await run_in_threadpool(idempotency_keys.keep, records, keyed, *answer.parts)
        finally:
            renewing.cancel()
            if not done:
                await run_in_threadpool(idempotency_keys.forget, records, keyed)
        for message in answer.messages:
            await send(message)


def _again(answer: IdempotencyKey, keyed: KeyedRequest) -> Response:
    """The answer to a request whose key is known."""
    if answer.digest != keyed.digest:
        why = "Idempotency-Key: it was given to another request; give each request one of its own"
        return problem(422, "IdempotencyKeyReused", why)
    if answer.status is None:
        why = f"the first request with this Idempotency-Key is under way; ask again in {_WAIT_S} s"
        return problem(409, "RequestUnderWay", why, {"Retry-After": str(_WAIT_S)})
    return Response(answer.body, answer.status, {**answer.headers, "Idempotency-Replayed": "true"})


async def _renewing(records: RecordStore, keyed: KeyedRequest) -> None:
    while True:
        await asyncio.sleep(LEASE.total_seconds() / 3)
        with suppress(Exception):  # the next one may succeed; without any the key is free again
            await run_in_threadpool(idempotency_keys.still_busy, records, keyed)


class _Answer:
    """An answer that is held until it is kept: all of these are small."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def receive(self, message: Message) -> None:
        """Take what would be sent."""
        self.messages.append(message)

    @property
    def succeeded(self) -> bool:
        """True where it says so, and is whole."""
        if not self.messages or self.messages[-1].get("more_body", False):
            return False
        return bool(self.messages[0]["status"] < 400)

    @property
    def parts(self) -> tuple[int, dict[str, str], str]:
        """Status, headers and body."""
        head, *rest = self.messages
        headers = Headers(raw=head["headers"])
        replayed = {name: headers[name] for name in _SHOWN if name in headers}
        body = b"".join(message.get("body", b"") for message in rest)
        return head["status"], replayed, body.decode()
