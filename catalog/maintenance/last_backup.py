"""When a home's last backup was made, as the home records it: for those who watch over its age."""

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded

if TYPE_CHECKING:  # who reads does without DuckDB
    from catalog.maintenance.backup import Backup

_FILE = "last-backup.json"
_MOST_BYTES = 64 << 10


def record_backup(home: Path, backup: "Backup", target: Path) -> None:
    """Record a backup that is whole and on the disk.

    Args:
        home: The home's folder.
        target: The backup's folder or file.

    Raises:
        StorageError: The home cannot be written.
    """
    record = {
        "made": backup.made.isoformat(),
        "snapshot": backup.snapshot,
        "target": str(target),
        "files": backup.files,
        "bytes": backup.bytes,
    }
    atomic_write(home / _FILE, json.dumps(record, indent=1))


def last_backup(home: Path) -> datetime | None:
    """When the state was read that the last backup holds, naive UTC; None for no record."""
    try:
        record = parsed_json(read_bounded(home / _FILE, _MOST_BYTES))
        return datetime.fromisoformat(record["made"])
    except (OSError, BadFile, ValueError, KeyError, TypeError):
        return None
