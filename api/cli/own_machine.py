"""Commands that work on the machine that has the home, and why none of them asks a server."""

from collections.abc import Mapping

from catalog.text.visible_text import without_user

REASONS: Mapping[str, str] = {
    "serve": "a server is started on the machine that has the home",
    "watch": "it runs until somebody stops it: start it on the server's machine",
    "compact": "it deletes the catalog's old files: let a timer start it on the server's machine",
    "catalog": "checks, copies and backups need the catalog's keys and disks",
    "mcp": "an assistant asks a server itself, at /mcp",
    "backend": "settings of clusters stand in a file of the home: write them where that is",
    "board": "it reads event files of jobs: run it where they lie",
    "demo": "it makes a home of its own",
}
"""By a command's first word."""


OWN_HOMES = ("serve", "demo")
"""Commands that the default server does not concern: they bring a home with them."""


def refusal(command: str, url: str, *, is_default: bool) -> str:
    """The refusal of a command that was told to ask a server, and does not."""
    reason = f" ({REASONS[command]})" if command in REASONS else ""
    instead = (
        "set FRAMESIFT_HOME, or leave the default: 'framesift context home'"
        if is_default
        else "leave --server and FRAMESIFT_SERVER out"
    )
    return (
        f"server {without_user(url)}: 'framesift {command}' works on a home on its own machine"
        f"{reason}: run it there, or {instead}"
    )
