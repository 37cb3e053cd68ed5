"""Keys to object stores, kept with their source: encrypted, by a key that no record holds.

Encrypted by Fernet (AES-128-CBC and HMAC-SHA256, https://github.com/fernet/spec). The key comes
from the environment, or lies in a file that only its owner may read, made when first needed. A
process that opens such a source is told by `use` where it is.

A worker that counts units (a Dask worker, an element of a job array) is told nothing but what its
unit says: the keys as they are sealed, and where the file lies (`key_path`, `learn`). It needs
either FRAMESIFT_SECRET_KEY in its own environment or that file. So neither units nor the scheduler,
its dashboard and its logs ever hold what opens the keys.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import FramesiftError, InvalidInput, StorageError
from catalog.storage.atomic_write import part_of
from catalog.storage.lru import Lru
from catalog.storage.to_disk import to_disk

if TYPE_CHECKING:  # 60 ms, and most sources have no keys
    from cryptography.fernet import Fernet


@dataclass(frozen=True)
class AccessKeys:
    """Access keys, which sign requests to an object store."""

    access_key: str
    secret_key: str = field(repr=False)


@dataclass(frozen=True)
class SecretKey:
    """The key that access keys are encrypted by, or the file that holds it."""

    path: Path
    """The file, used where there is no text."""
    text: str = field(default="", repr=False)
    """The key itself, of 32 bytes in URL-safe base64."""

    def fernet(self, *, make: bool = False) -> "Fernet":
        """The cipher.

        Args:
            make: Make the file where there is none.

        Raises:
            InvalidInput: There is no key, or it is none, or others may read its file.
        """
        from cryptography.fernet import Fernet

        where = _VARIABLE if self.text else str(self.path)
        try:
            return Fernet(self.text or self._from_file(make=make))
        except ValueError as error:
            raise InvalidInput(
                f"{where}: is no key; expected 32 bytes in URL-safe base64, as "
                "cryptography.fernet.Fernet.generate_key() makes them"
            ) from error

    def _from_file(self, *, make: bool) -> bytes:
        try:
            if make and not self.path.exists():
                self._make()
            with self.path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                if mode & 0o077:
                    raise InvalidInput(
                        f"{self.path}: others may read it (mode {mode:04o}); make it yours alone: "
                        f"chmod 600 {self.path}"
                    )
                return file.read().strip()
        except FileNotFoundError as error:
            raise InvalidInput(
                f"{self.path}: is missing, and with it the keys of sources cannot be read: restore "
                "it, or set FRAMESIFT_SECRET_KEY, or give the source its keys again"
            ) from error
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}", str(self.path)) from error

    def _make(self) -> None:
        from cryptography.fernet import Fernet

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with part_of(self.path, mode=0o600) as temporary_path:
            temporary_path.write_bytes(Fernet.generate_key() + b"\n")
            to_disk(temporary_path)
            with suppress(FileExistsError):  # of two that make one at once, the first one's is kept
                os.link(temporary_path, self.path)
        to_disk(self.path.parent)


_VARIABLE = "FRAMESIFT_SECRET_KEY"
"""Read here by workers alone, which have no settings; all else is told by api/settings.py."""

_LEARNED = 16
"""Key files that a worker remembers: it may count units of several homes."""

_key: SecretKey | None = None
_learned: Lru[Path, SecretKey] = Lru(_LEARNED)


def use(key: SecretKey) -> None:
    """Set the key of this process."""
    global _key  # a process has one home, and sources are opened deep below it
    _key = key


def check_key() -> None:
    """Refuse a key that is given and is none, before anything is to be opened by it."""
    if _key is not None and _key.text:
        _key.fernet()


def key_path() -> str:
    """The path of this process's key file, for a unit; empty where the key is given otherwise."""
    return str(_key.path) if _key is not None and not _key.text else ""


def learn(path: str) -> None:
    """Add the key file that a unit's keys were sealed by, for a worker."""
    _learned.put(Path(path), SecretKey(Path(path)))


def seal(keys: AccessKeys) -> str:
    """Keys as text that may be kept in the records."""
    return _known().fernet(make=True).encrypt(json.dumps(asdict(keys)).encode()).decode()


def unseal(text: str) -> AccessKeys:
    """The access keys that a sealed text holds.

    Raises:
        InvalidInput: This process has no key to it, or another one.
        StorageError: The key cannot be read.
    """
    from cryptography.fernet import InvalidToken

    first: FramesiftError | None = None
    for key in _candidates():
        try:
            return AccessKeys(**json.loads(key.fernet().decrypt(text)))
        except InvalidToken as error:
            reason = InvalidInput(
                "the source's keys were encrypted by another key than this home's: restore "
                "FRAMESIFT_SECRET_KEY or HOME/secret.key, or give the source its keys again"
            )
            reason.__cause__ = error
            first = first or reason
        except (InvalidInput, StorageError) as error:
            first = first or error
    raise first or InvalidInput(
        "the source's keys are kept encrypted, and this process has no key to them: set "
        f"{_VARIABLE} where it runs, or name a profile with the source"
    )


def _candidates() -> Iterator[SecretKey]:
    """The home's key; of a worker that of its environment, and what its units name."""
    if _key is not None:
        yield _key
        return
    text = os.environ.get(_VARIABLE, "")
    if text:
        yield SecretKey(Path(), text)
    yield from _learned.values()


def _known() -> SecretKey:
    if _key is None:
        raise InvalidInput(
            "keys of a source are encrypted by its home's key, and this process has none: add "
            "sources by the command line or a server"
        )
    return _key
