"""Who asks, and what they may do: roles, scopes, and what each route needs."""

import hashlib
from dataclasses import dataclass

from catalog.errors import NotAllowed
from catalog.tokens import SCOPES
from catalog.user_tables import User

_HIGHEST = {"admin": "admin", "dataadmin": "write", "collectionadmin": "write", "datauser": "read"}
"""What a role may do at most, of SCOPES."""

_SEE_ALL = frozenset({"admin", "dataadmin"})
"""Roles that see every row; others see those of their collections."""


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        user: The user's name; "" where the server asks nobody who they are.
        roles: The user's.
        scope: What the token may do at most, of catalog.tokens.SCOPES.
        logged_in: Whether it came by a password, and not by a token that was made to be kept.
        rules: Of the user's collections, where the roles do not see every row.
        account: Tells users apart who had the same name one after the other.
    """

    user: str
    roles: frozenset[str]
    scope: str
    logged_in: bool
    rules: tuple[str, ...] = ()
    account: str = ""

    @classmethod
    def of(cls, user: User, scope: str, *, logged_in: bool) -> "Caller":
        """A user, by a token of that scope; whose rules are not looked up."""
        account = f"{user.id} {user.created.isoformat()}"
        return cls(user.name, frozenset(user.roles), scope, logged_in, account=account)

    @property
    def view(self) -> str:
        """Who sees which rows: what was answered to one view is not for another."""
        rows = "\0".join(self.rules).encode()
        seen = "all" if self.sees_all else hashlib.sha256(rows).hexdigest()
        return f"{self.user} {self.account} {seen}"

    @property
    def level(self) -> str:
        """What this caller may do at most: what both roles and token allow."""
        of_roles = max((SCOPES.index(_HIGHEST[role]) for role in self.roles), default=0)
        return SCOPES[min(of_roles, SCOPES.index(self.scope))]

    @property
    def sees_all(self) -> bool:
        """Whether every row of the catalog may be seen."""
        return bool(self.roles & _SEE_ALL)

    def may(self, level: str) -> bool:
        """Whether roles and token allow something of that level."""
        return SCOPES.index(level) <= SCOPES.index(self.level)

    def need(self, need: "Need") -> None:
        """Go on only where a request may be made.

        Raises:
            NotAllowed: It may not.
        """
        if not self.may(need.level):
            raise NotAllowed(
                f"user '{self.user}' may {self.level} with this token, and this needs "
                f"'{need.level}': ask an admin for a role or a token that has it"
            )
        if need.all_rows and not self.sees_all:
            raise NotAllowed(
                f"user '{self.user}' sees only rows of collections, and this does not tell them "
                "apart: ask an admin for the role dataadmin"
            )


NOBODY_ASKED = Caller("", frozenset({"admin"}), "admin", logged_in=True)
"""Who asks a server that asks nobody who they are."""


@dataclass(frozen=True)
class Need:
    """What a request needs.

    Attributes:
        level: Of catalog.tokens.SCOPES.
        all_rows: Whether its answer, or what it changes, may be of any row.
        changes: Whether it changes something, and so is written into the audit log.
    """

    level: str
    all_rows: bool
    changes: bool


OPEN = frozenset(
    {
        "/healthz", "/readyz",  # asked by what keeps the server running
        "/auth/v1/token",  # looks at the password itself
        "/openapi.json", "/docs",  # hold nothing of the home
    }
)  # fmt: skip
"""Paths for which nobody is asked who they are."""

WHO_IS_WHO = ("/v1/users", "/v1/tokens", "/v1/collections", "/v1/me")
"""Below these, changes decide who is let in, and to what."""

LOGIN = "/auth/v1/token"
"""Path by which a name and password become a token."""

DISCOVER = (
    "/auth/v1", "/db2whrest/v1", "/policyengine/v1", "/connmgr/v1", "/api/application/v1",
)  # fmt: skip
"""Spectrum Discover's services, whose clients may send name and password with every request."""

_READ_BY_POST = frozenset(
    {
        "/db2whrest/v1/sql_query", "/db2whrest/v1/sql_query_async", "/db2whrest/v1/search",
        "/db2whrest/v1/sql_query_json",
        "/v1/selections", "/v1/selections/describe", "/v1/sql", "/v1/sql/explain",
        "/mcp",  # whose tools change nothing
    }
)  # fmt: skip

_ADMINS = ("/v1/users", "/v1/audit")
_OF_CATALOG = frozenset(
    {
        "/db2whrest/v1/sql_query", "/db2whrest/v1/sql_query_async", "/db2whrest/v1/search",
        "/db2whrest/v1/sql_query_json",
        "/v1/selections", "/v1/selections/describe", "/v1/selections/schema",
        "/v1/selections/operators", "/v1/classes", "/v1/statistics/histogram", "/v1/sql",
        "/v1/sql/explain",
        "/mcp",  # each of its tools needs what its route needs: api.assistants.answers
    }
)  # fmt: skip
"""What is answered from the workspace's catalog and its datasets, and nothing else. Whoever sees
some rows only is given a workspace with those (api.dependencies), and all else that holds rows
stays closed."""

_RECORDS = ("/v1/datasets", "/v1/stagings", "/v1/jobs", "/v1/models", "/v1/statistics/correlation")
"""Below these, datasets are what is seen of them, and jobs one's own: pipeline.limited_records."""

_FRAMES = ("/v1/frames", "/v1/images", "/v1/labels", "/v1/overlays")
"""Below these, a frame is looked up in the workspace's catalog before anything else."""

_OWN = ("/db2whrest/v1/task_status", "/policyengine/v1/policies")
"""Answers that were made for who asks, and policies, whose routes know the collections of each."""

_NO_ROWS = ("/auth/v1", "/v1/tokens", "/v1/collections")

_NAMES = ("/policyengine/v1/tags", "/v1/tags", "/v1/info", "/db2whrest/v1/buckets")
"""Names and counts of what is seen: read by all, changed by who sees every row."""


def need_of(method: str, path: str) -> Need:
    """What a request needs. What is listed nowhere is taken for every row of the catalog."""
    reads = method in ("GET", "HEAD", "OPTIONS") or (method == "POST" and path in _READ_BY_POST)
    changes = not reads
    if below(path, _ADMINS):
        return Need("admin", all_rows=False, changes=changes)
    if below(path, ("/v1/tokens", "/v1/me")):
        return Need("read", all_rows=False, changes=changes)  # whose, the route decides
    open_to_all = (*_OWN, *_NO_ROWS, *_FRAMES, *_RECORDS, *(_NAMES if reads else ()))
    limited = path in _OF_CATALOG or below(path, open_to_all)
    return Need("write" if changes else "read", not limited, changes)


def below(path: str, places: tuple[str, ...]) -> bool:
    """Whether a path is one of these or lies below it."""
    return any(path == place or path.startswith(f"{place}/") for place in places)
