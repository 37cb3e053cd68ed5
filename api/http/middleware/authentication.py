"""Authenticates every request, checks its route's permission, and writes the audit log.

One piece of middleware around the whole application, so that no route can forget it.
"""

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.browser_session import LASTS
from api.http.errors import refusal
from api.http.fair_queue import caller_of
from api.http.login_path import LOGIN
from api.http.middleware.request_context import RequestContext
from api.http.routing import rule_of
from api.server.shared import Changes
from api.services.accounts.callers import NOBODY_ASKED, Caller
from catalog.accounts import login_links, login_throttle, row_collections, tokens, users
from catalog.accounts.accounts import SCOPES
from catalog.accounts.caller import acting_for
from catalog.errors import FramesiftError, NotAllowed, NotAuthenticated, NotFound, StorageError
from catalog.records.store import RecordStore
from catalog.records.user_tables import User
from catalog.storage.lru import Lru

if TYPE_CHECKING:  # imported where a provider is set
    from api.oidc.pending_login import PendingLogin
    from api.services.accounts.provider_logins import ProviderLogins

_TRUSTED_S = 2.0
"""Time for which a caller is known without a look into the records [s]: a revoked token counts that
long."""

_CALLERS = 1024
_LOGINS_AT_ONCE = 2  # each takes 64 MiB and a core
_RECORDS_AT_ONCE = 8
_LOG = logging.getLogger(__name__)
_REFUSED = frozenset({401, 403, 429})
_REFUSALS_NOTED = 30
_REFUSALS_EVERY_S = 60.0


class Authentication:
    """The middleware."""

    def __init__(self, app: ASGIApp, authenticates: bool, changes: Changes) -> None:
        """Wrap an application.

        Args:
            app: The application; its workspace is the one of `app.state`.
            authenticates: Ask who they are; else everybody may do everything.
            changes: In all processes of this server, of who may do what.
        """
        self._app, self._authenticates = app, authenticates
        self._callers = _KnownCallers(changes)
        self._refusals = _Refusals()
        self._logins = anyio.CapacityLimiter(_LOGINS_AT_ONCE)
        # Threads of its own: a request's check must not wait for the work of others.
        self._records = anyio.CapacityLimiter(_RECORDS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = RequestContext(scope)
        scope["state"] = {**scope.get("state", {}), "authentication": self, "context": context}

        noting = _Noting(self._note, context, receive, send)
        try:
            await self._admit(context)
        except FramesiftError as error:
            await refusal(scope, error)(scope, receive, noting)
            return
        try:
            with acting_for(caller_of(scope)):
                await self._app(scope, receive, noting)
        except Exception:
            # Answered outside of here, with 500.
            with suppress(StorageError):
                await self._note(context, HTTPStatus.INTERNAL_SERVER_ERROR)
            raise

    async def login(self, context: "RequestContext") -> str:
        """A new token for the name and password that a request carries."""
        return await self.log_in(context, *context.name_and_password(), tokens.LOGIN_LASTS)

    async def log_in(
        self, context: RequestContext, name: str, password: str, lasts: timedelta
    ) -> str:
        """A new token for a name and a password."""
        user = await self._user_by(context, name, password)
        return await anyio.to_thread.run_sync(
            tokens.log_in, context.records, user, lasts, limiter=self._records
        )

    async def log_in_by_link(self, context: RequestContext, link: str, lasts: timedelta) -> str:
        """A new token for a link of catalog.accounts.login_links, which works once."""
        user = await anyio.to_thread.run_sync(
            login_links.user_by, context.records, link, limiter=self._records
        )
        context.who = user.name
        return await anyio.to_thread.run_sync(
            tokens.log_in, context.records, user, lasts, limiter=self._records
        )

    async def log_in_by_provider(
        self, context: RequestContext, pending: "PendingLogin", code: str, issuer: str
    ) -> str:
        """A new token for a code that an OpenID provider gave a browser, in force for a session.

        Args:
            context: Of the request that brings it.
            pending: The login that the browser began.
            code: The provider's.
            issuer: Who sent the browser back, as it says.
        """
        logins: ProviderLogins = context.scope["app"].state.provider_logins
        identity = await logins.flow.identity(pending, code, issuer)
        context.who = identity.name or identity.subject
        try:
            user, context.about = await anyio.to_thread.run_sync(
                partial(logins.let_in, context.records, identity, is_login=True),
                limiter=self._records,
            )
        finally:
            self._callers.forget()
        context.who = user.name
        return await anyio.to_thread.run_sync(
            tokens.log_in, context.records, user, LASTS, limiter=self._records
        )

    async def know(self, context: RequestContext, token: str) -> None:
        """Go on only where a token counts."""
        grant = await self._grant(context, token)
        context.who = grant.user.name

    async def is_same(self, context: RequestContext) -> bool:
        """Return whether a request under way has the caller that it began with, rights included."""
        if context.caller is None or context.caller is NOBODY_ASKED:
            return True
        try:
            return await self._caller_of(context) == context.caller
        except (NotAuthenticated, NotAllowed):
            return False

    async def log_out(self, context: RequestContext) -> None:
        """End the login by which a request came; a token with a name goes on to count."""
        if context.caller is NOBODY_ASKED:
            return
        token = context.credentials().removeprefix("bearer ")
        await anyio.to_thread.run_sync(
            tokens.log_out, context.records, token, limiter=self._records
        )

    async def prove(self, context: RequestContext, name: str, password: str) -> None:
        """Go on only where a password is a user's; wrong ones count as those of a login do.

        Raises:
            NotAllowed: It is not. Who asks is known all the same, so this is no 401.
        """
        try:
            await anyio.to_thread.run_sync(
                _log_in, context.records, name, password, context.address, limiter=self._logins
            )
        except NotAuthenticated as error:
            raise NotAllowed("current: is not your password") from error

    async def note_refusal(self, context: RequestContext, what: str) -> None:
        """Write into the audit log what was refused within an answer that is no refusal."""
        if self._refusals.noted(context.address):
            await anyio.to_thread.run_sync(
                context.note, what, HTTPStatus.FORBIDDEN, limiter=self._records
            )

    async def _admit(self, context: "RequestContext") -> None:
        if not self._authenticates:
            context.caller = NOBODY_ASKED
            return
        permission = rule_of(context.scope).permission
        if permission is None:
            return
        context.caller = await self._caller_of(context)
        context.who = context.caller.user
        context.caller.need(permission)

    async def _caller_of(self, context: "RequestContext") -> Caller:
        secret = context.credentials()
        known = self._callers.get(secret)
        if known is not None:
            return known
        if secret.startswith("basic "):
            user = await self._user_of(context)
            caller = await self._caller(context.records, user, SCOPES[-1], logged_in=True)
        elif secret.startswith("proxy "):
            user = await anyio.to_thread.run_sync(
                _named_by_proxy, context.records, context.proxy_user, limiter=self._records
            )
            caller = await self._caller(context.records, user, SCOPES[-1], logged_in=True)
        else:
            caller = await self._bearer(context, secret.removeprefix("bearer "))
        self._callers.keep(secret, caller)
        return caller

    async def _bearer(self, context: RequestContext, token: str) -> Caller:
        """The caller by a token of the home, or an access token of its OpenID provider."""
        logins: ProviderLogins | None = context.scope["app"].state.provider_logins
        identity = await logins.program(token) if logins is not None else None
        if logins is None or identity is None:
            grant = await self._grant(context, token)
            logged_in = grant.token.name is None
            return await self._caller(context.records, grant.user, grant.token.scope, logged_in)
        user, note = await anyio.to_thread.run_sync(
            partial(logins.let_in, context.records, identity, is_login=False),
            limiter=self._records,
        )
        if note:
            self._callers.forget()
            await anyio.to_thread.run_sync(
                partial(context.note_login, user.name, note), limiter=self._records
            )
        return await self._caller(context.records, user, SCOPES[-1], logged_in=False)

    async def _grant(self, context: RequestContext, token: str) -> tokens.Grant:
        grant = await anyio.to_thread.run_sync(
            tokens.holder, context.records, token, limiter=self._records
        )
        if grant is None:
            raise NotAuthenticated(
                "the token is none, or has expired or been revoked: get another one from "
                f"{LOGIN}, or by 'framesift token create'"
            )
        return grant

    async def _user_of(self, context: "RequestContext") -> User:
        return await self._user_by(context, *context.name_and_password())

    async def _user_by(self, context: RequestContext, name: str, password: str) -> User:
        context.who = name
        return await anyio.to_thread.run_sync(
            _log_in, context.records, name, password, context.address, limiter=self._logins
        )

    async def _note(self, context: RequestContext, status: int) -> None:
        """Write a change or a refusal into the audit log, before the answer goes out."""
        is_stranger = context.caller is None
        refused = status in _REFUSED or (is_stranger and status >= HTTPStatus.BAD_REQUEST)
        rule = rule_of(context.scope)
        if rule.changes and rule.accounts:
            self._callers.forget()
        if not (status in _REFUSED or rule.audited_as or rule.changes):
            return
        if refused and not self._refusals.noted(context.address):
            return
        await anyio.to_thread.run_sync(context.note, rule.audited_as, status, limiter=self._records)

    async def _caller(
        self, records: RecordStore, user: User, scope: str, logged_in: bool
    ) -> Caller:
        caller = Caller.of(user, scope, logged_in=logged_in)
        if caller.sees_all:
            return caller
        rules = await anyio.to_thread.run_sync(
            row_collections.rules_of, records, user.name, limiter=self._records
        )
        return replace(caller, rules=rules)


class _Noting:
    """Sends an answer once it is noted in the audit log."""

    def __init__(
        self,
        note: Callable[[RequestContext, int], Awaitable[None]],
        context: RequestContext,
        receive: Receive,
        send: Send,
    ) -> None:
        self._note, self._context = note, context
        self._receive, self._send = receive, send
        self._is_replaced = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        if not self._is_replaced:
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        context = self._context
        if not context.problem:
            location = Headers(raw=message["headers"]).get("location", "")
            context.about = context.about or location
        status = context.problem or message["status"]
        try:
            await self._note(context, status)
        except StorageError as error:
            what = f"{context.who} {context.method} {context.path} {status}"
            _LOG.error("the audit log lacks an entry (%s): %s", what, error)
            if status < HTTPStatus.BAD_REQUEST:  # an error is answered as it is
                self._is_replaced = True
                await refusal(context.scope, error)(context.scope, self._receive, self._send)


def _log_in(records: RecordStore, name: str, password: str, address: str) -> User:
    login_throttle.begin(records, name, address)
    user = users.with_password(records, name, password)
    if user is None:
        raise NotAuthenticated("no such user and password")
    login_throttle.succeeded(records, name, address)
    return user


def _named_by_proxy(records: RecordStore, name: str) -> User:
    try:
        user = users.recorded(records, name)
    except NotFound:
        user = None
    if user is None or user.disabled:
        raise NotAllowed(
            f"the proxy names user '{name[:140]}', who has no account here or is disabled: ask an "
            "admin for one (framesift user add NAME --no-password)"
        )
    return user


class _KnownCallers:
    """Callers that were let in a moment ago, by a hash of what they sent."""

    def __init__(self, changes: Changes) -> None:
        self._known: Lru[bytes, Caller] = Lru(_CALLERS, _TRUSTED_S)
        self._changes, self._seen = changes, changes.mark

    def get(self, secret: str) -> Caller | None:
        if self._seen != self._changes.mark:
            self._seen = self._changes.mark
            self._known.clear()
        return self._known.get(_hashed(secret))

    def keep(self, secret: str, caller: Caller) -> None:
        self._known.put(_hashed(secret), caller)

    def forget(self) -> None:
        """Here and in the server's other processes."""
        self._changes.add()


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


class _Refusals:
    """Limits the refusals of an address that are noted: strangers must not fill the disk."""

    def __init__(self) -> None:
        self._since = 0.0
        self._counts: dict[str, int] = {}

    def noted(self, address: str) -> bool:
        """Return whether one more is noted."""
        now = time.monotonic()
        if now - self._since > _REFUSALS_EVERY_S or len(self._counts) > _CALLERS:
            self._since, self._counts = now, {}
        self._counts[address] = self._counts.get(address, 0) + 1
        return self._counts[address] <= _REFUSALS_NOTED
