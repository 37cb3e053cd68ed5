"""The server that commands ask where nothing else is named: context.json, of one user."""

import json
from pathlib import Path

from catalog.errors import InvalidInput, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.private_files import make_private_folder

_FILE = "context.json"


def default_server(folder: Path) -> str | None:
    """The URL that was kept; None where commands ask the home.

    Raises:
        InvalidInput: The file holds something else.
        StorageError: It cannot be read.
    """
    path = folder.expanduser() / _FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}", str(path)) from error
    except ValueError:
        document = None
    url = document.get("server") if isinstance(document, dict) else None
    if not isinstance(url, str):
        raise InvalidInput(f'{path}: expected {{"server": "https://..."}}; or remove the file')
    return url


def keep_default_server(folder: Path, url: str | None) -> None:
    """Keep a server's URL; None lets commands ask the home again.

    Raises:
        StorageError: The file cannot be written.
    """
    path = folder.expanduser() / _FILE
    try:
        if url is None:
            path.unlink(missing_ok=True)
            return
        make_private_folder(path.parent)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}", str(path)) from error
    atomic_write(path, json.dumps({"server": url}))
