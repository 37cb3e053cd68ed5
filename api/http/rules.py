"""Rules of routes: whose requests a route answers, and how they are worked on.

A route names its rule where it is declared (api.http.routing.Router), and nothing else decides by
what a path looks like.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal

from api.services.accounts.callers import Permission

Work = Literal[
    "health", "ready", "metrics", "sql", "search", "selection", "statistics", "facets",
    "picture", "assistant", "other",
]  # fmt: skip
"""Kinds of work: each has slots (middleware.admission) and times of its own."""


class Api(Enum):
    """The API whose conventions a route follows: shape of errors, credentials, parameters."""

    V1 = "v1"
    """Framesift's own resources: problem documents, ETags, unknown parameters are refused."""

    DISCOVER = "discover"
    """Spectrum Discover's services: its shape of errors, name and password with every request."""

    WEB = "web"
    """Pages for browsers: the session's cookie counts, and errors are pages."""

    OTHER = "other"
    """Probes, figures, documentation, /mcp: problem documents and nothing more."""


@dataclass(frozen=True)
class Rule:
    """The rule of a route."""

    permission: Permission | None
    """What its caller must be allowed; None where the server asks for no credentials."""
    changes: bool = False
    """Whether it changes something: it is then written into the audit log, and goes on when its
    client leaves.
    """
    work: Work = "other"
    """The kind of work."""
    idempotency_key: Literal["ignores", "takes", "refuses"] = "ignores"
    """What it does with the header: "takes" it, "refuses" it, as its answer holds a secret that is
    kept nowhere, or "ignores" it.
    """
    body: Literal["json", "map", "file"] = "json"
    """The largest body: that of "json", of a "map", or of a "file" of values. The latter two are
    read in pieces and not as JSON.
    """
    compressed: bool = True
    """Whether its answers may be compressed. Pictures are already; an answer that holds a secret
    beside the client's own words would tell by its length how alike they are; Discover's clients
    do not ask for it.
    """
    accounts: bool = False
    """Whether its changes decide who is let in, and to what."""
    audited_as: str = ""
    """What the audit log calls it, and that all of its requests are written there; empty: changes
    only, by their method.
    """
    api: Api = Api.V1
    """Whose conventions it follows; its router says it."""

    def but(self, **different: Any) -> "Rule":
        """The same rule with other attributes."""
        return replace(self, **different)


OPEN = Rule(None)
"""The server asks for no credentials: probes, documents, and what looks at a password itself."""

READ = Rule(Permission("read", all_rows=False))
"""Answers hold only what the caller may see: everybody who has a token may read them."""

READ_ALL_ROWS = Rule(Permission("read", all_rows=True))
"""Answers may hold any row: callers limited to rows of collections are refused."""

WRITE = Rule(Permission("write", all_rows=False), changes=True)
"""Changes something of the caller's own, or of rows that the caller may see."""

WRITE_ALL_ROWS = Rule(Permission("write", all_rows=True), changes=True)
"""Changes what may concern any row."""

ADMIN_READ = Rule(Permission("admin", all_rows=False))
ADMIN_WRITE = Rule(Permission("admin", all_rows=False), changes=True)

OWN_ACCOUNT = Rule(Permission("read", all_rows=False), changes=True, accounts=True)
"""Changes a caller's own account; the route decides whose else."""
