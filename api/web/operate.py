"""Operate's own navigation: the pages that a caller may open."""

from typing import Any

from api.services.accounts.callers import Caller

_OF_ALL_ROWS = (
    ("/operate", "Sources and scans"), ("/operate/cache", "Cache"),
    ("/operate/snapshots", "Snapshots"),
)  # fmt: skip
_OF_ADMINS = (("/operate/users", "Users"), ("/operate/audit", "Audit"))


def shown_to(caller: Caller) -> dict[str, Any]:
    """The context that every page of Operate shows of itself."""
    pages = (
        *(_OF_ALL_ROWS if caller.sees_all else ()),
        ("/operate/tokens", "Tokens"),
        *(_OF_ADMINS if caller.may("admin") else ()),
    )
    return {"pages": pages, "section": "/operate"}
