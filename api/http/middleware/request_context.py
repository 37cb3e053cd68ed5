"""Facts about a request while it is answered."""

import base64
import binascii
from dataclasses import dataclass
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import Scope

from api.http import browser_session
from api.http.login_path import LOGIN
from api.http.routing import rule_of
from api.http.rules import Api
from api.server.proxy_user import PROXY_USERS
from api.server.request_id import request_id
from api.services.accounts.callers import Caller
from catalog.accounts import audit_log
from catalog.errors import NotAllowed, NotAuthenticated
from catalog.records.store import RecordStore

_BASIC_DOMAIN = "default/"


@dataclass
class RequestContext:
    """A request, its caller, and what the audit log notes of it."""

    scope: Scope
    caller: Caller | None = None
    """The authenticated caller; None on routes that ask for no credentials."""
    who: str = ""
    """The name for the audit log: the claimed one until it is proven."""
    about: str = ""
    """What the request makes or changes, for the audit log; routes set it, without secrets."""
    problem: int = 0
    """Status of the error that the request met, whatever answer a browser gets in its place; 0 for
    none.
    """

    def __post_init__(self) -> None:
        self._headers = Headers(scope=self.scope)

    @property
    def method(self) -> str:
        """GET, POST..."""
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        """The path as the router matches it."""
        return str(self.scope["path"])

    @property
    def address(self) -> str:
        """Where it comes from."""
        return str(self.scope["client"][0]) if self.scope.get("client") else ""

    @property
    def records(self) -> RecordStore:
        """Those of the home that is served."""
        records: RecordStore = self.scope["app"].state.workspace.records
        return records

    @property
    def proxy_user(self) -> str:
        """The user whom a trusted proxy names; "" where it names none, or several."""
        names = self.scope.get(PROXY_USERS, ())
        return str(names[0]) if len(names) == 1 else ""

    def credentials(self) -> str:
        """``bearer TOKEN``, ``basic NAME:PASSWORD``, still encoded, or ``proxy NAME``.

        Raises:
            NotAuthenticated: There is not exactly one that can be.
            NotAllowed: A proxy names several users.
        """
        values = self._headers.getlist("authorization")
        of_token = self._headers.getlist("x-auth-token")
        if len(values) + len(of_token) > 1:
            raise NotAuthenticated("several credentials: send one Authorization header")
        if of_token:
            return f"bearer {of_token[0].strip()}"
        if not values and rule_of(self.scope).api is Api.WEB:
            if len(self.scope.get(PROXY_USERS, ())) > 1:
                raise NotAllowed("the proxy names several users: let it send its header once")
            if name := self.proxy_user:
                return f"proxy {name}"
            if session := browser_session.token_in(self._headers):
                return f"bearer {session}"
        scheme, _, rest = (values[0] if values else "").partition(" ")
        kind = scheme.lower()
        if kind == "bearer" or (kind == "basic" and rule_of(self.scope).api is Api.DISCOVER):
            return f"{kind} {rest.strip()}"
        raise NotAuthenticated(
            f"send 'Authorization: Bearer TOKEN'; a token comes from {LOGIN} with name and "
            "password, or from 'framesift token create'"
        )

    def name_and_password(self) -> tuple[str, str]:
        """Those of basic authentication.

        Raises:
            NotAuthenticated: There are none.
        """
        kind, _, encoded = self.credentials().partition(" ")
        try:
            text = base64.b64decode(encoded, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            text = ""
        name, colon, password = text.partition(":")
        if kind != "basic" or not colon:
            raise NotAuthenticated("send name and password by basic authentication")
        return name.removeprefix(_BASIC_DOMAIN), password

    def note_login(self, user: str, about: str) -> None:
        """Write into the audit log that a user was let in by the way, and what that changed."""
        audit_log.add(
            self.records, user, "login", self.path, str(HTTPStatus.OK.value),
            address=self.address, request_id=request_id.get(), note=about,
        )  # fmt: skip

    def note(self, what: str, status: int) -> None:
        """Write this request into the audit log."""
        audit_log.add(
            self.records, self.who, what or self.method, self.path, str(status),
            address=self.address, request_id=request_id.get(), note=self.about,
        )  # fmt: skip
