"""Tokens of servers, kept for one user of this machine: tokens.json, which nobody else may read."""

import json
import stat
from pathlib import Path

from catalog.errors import InvalidInput, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.private_files import make_private_folder

_FILE = "tokens.json"


def token_of(folder: Path, url: str) -> str | None:
    """The token that was kept for a server; None where none was."""
    return _stored_tokens(folder).get(_name(url))


def keep_token(folder: Path, url: str, token: str | None) -> None:
    """Keep a token for a server; None forgets the one that is kept.

    Raises:
        StorageError: It cannot be written.
    """
    tokens = _stored_tokens(folder)
    tokens.pop(_name(url), None)
    if token is not None:
        tokens[_name(url)] = token
    path = folder.expanduser() / _FILE
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}", str(path)) from error
    # Never readable by others, not even for a moment.
    atomic_write(path, json.dumps(tokens, indent=2), mode=0o600)


def _stored_tokens(folder: Path) -> dict[str, str]:
    path = folder.expanduser() / _FILE
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InvalidInput(
                f"{path}: other users may read these tokens: chmod 600 it, and get new ones"
            )
        tokens = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}", str(path)) from error
    except ValueError as error:
        raise InvalidInput(f"{path}: expected a JSON object of server -> token") from error
    if not isinstance(tokens, dict) or not all(isinstance(one, str) for one in tokens.values()):
        raise InvalidInput(f"{path}: expected a JSON object of server -> token")
    return tokens


def _name(url: str) -> str:
    return url.rstrip("/")
