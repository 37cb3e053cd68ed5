"""Tables in committed pages whose words code has, each between the marks of its name.

``python -m documentation.tables`` writes them; tests compare.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from api.cli.exit_codes import MEANINGS
from documentation.reference import settings
from documentation.reference.markdown import table

REPOSITORY = Path(__file__).parents[1]
MOST_USED = (
    "home", "cache", "job_slots", "command_slots", "job_environment", "lock_wait_s",
    "query_timeout_s", "query_memory", "query_spill", "query_max_rows", "secret_key", "server",
    "token", "snapshot_memory_mb", "oidc_issuer", "trusted_user_header", "webhook_hosts",
)  # fmt: skip
"""Settings of the README."""


def exit_codes() -> str:
    """Each code and what it says."""
    return table(("exit code", ""), [(str(code), words) for code, words in MEANINGS.items()])


def most_used_settings() -> str:
    """Variable, default and words of each."""
    return table(("variable", "default", ""), map(settings.row, MOST_USED))


TABLES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "exit codes": ("docs/command-line.md", exit_codes),
    "settings": ("README.md", most_used_settings),
}
"""Each table's page and text by its name."""


def with_table(page: str, name: str, text: str) -> str:
    """A page's text with the table between its marks."""
    marks = rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)"
    written, number = re.subn(
        marks, lambda found: found[1] + text + found[2], page, count=1, flags=re.DOTALL
    )
    if number != 1:
        raise ValueError(f"no marks of the table {name!r}: expected <!-- {name}: begin --> and end")
    return written


if __name__ == "__main__":
    for name, (path, text) in TABLES.items():
        file = REPOSITORY / path
        page = file.read_text(encoding="utf-8")
        file.write_text(with_table(page, name, text()), encoding="utf-8")
