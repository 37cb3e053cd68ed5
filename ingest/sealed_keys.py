"""Keys to object stores, kept with their source: encrypted, by a key that no record holds.

Encrypted by Fernet (AES-128-CBC and HMAC-SHA256, https://github.com/fernet/spec). The key comes
from the environment, or lies in a file that only its owner may read, made when first needed. A
process that opens such a source is told by `use` where it is; one that was not, such as a Dask
worker on another machine, says that it cannot.
"""

import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import InvalidInput, StorageError

if TYPE_CHECKING:  # 60 ms, and most sources have no keys
    from cryptography.fernet import Fernet


@dataclass(frozen=True)
class AccessKeys:
    """What signs requests to an object store."""

    access_key: str
    secret_key: str = field(repr=False)


@dataclass(frozen=True)
class SecretKey:
    """Where the key is that keys are encrypted by.

    Attributes:
        path: The file, used where none is given.
        given: The key itself, of 32 bytes in URL-safe base64.
    """

    path: Path
    given: str = field(default="", repr=False)

    def fernet(self, *, make: bool = False) -> "Fernet":
        """The cipher.

        Args:
            make: Make the file where there is none.

        Raises:
            InvalidInput: There is no key, or it is none, or others may read its file.
            StorageError: The file cannot be read or written.
        """
        from cryptography.fernet import Fernet

        where = "FRAMESIFT_SECRET_KEY" if self.given else str(self.path)
        try:
            return Fernet(self.given or self._kept(make=make))
        except ValueError as error:
            raise InvalidInput(
                f"{where}: is no key; expected 32 bytes in URL-safe base64, as "
                "cryptography.fernet.Fernet.generate_key() makes them"
            ) from error

    def _kept(self, *, make: bool) -> bytes:
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
                "it, or set FRAMESIFT_SECRET_KEY, or give the source its keys anew"
            ) from error
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}", str(self.path)) from error

    def _make(self) -> None:
        from cryptography.fernet import Fernet

        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "wb") as file:
                file.write(Fernet.generate_key() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            # Of two that make one at once, the first one's is kept.
            os.link(part, self.path)
        except FileExistsError:
            pass
        finally:
            part.unlink(missing_ok=True)


_key: SecretKey | None = None


def use(key: SecretKey) -> None:
    """Tell this process where the key is."""
    global _key  # a process has one home, and sources are opened deep below it
    _key = key


def seal(keys: AccessKeys) -> str:
    """Keys as text that may be kept in the records.

    Raises:
        InvalidInput: The key to encrypt them by cannot be used.
        StorageError: It cannot be read or written.
    """
    return _known().fernet(make=True).encrypt(json.dumps(asdict(keys)).encode()).decode()


def unseal(text: str) -> AccessKeys:
    """What was sealed.

    Raises:
        InvalidInput: This process has no key to it, or another one.
        StorageError: The key cannot be read.
    """
    from cryptography.fernet import InvalidToken

    try:
        return AccessKeys(**json.loads(_known().fernet().decrypt(text)))
    except InvalidToken as error:
        raise InvalidInput(
            "the source's keys were encrypted by another key than this home's: restore "
            "FRAMESIFT_SECRET_KEY or HOME/secret.key, or give the source its keys anew"
        ) from error


def _known() -> SecretKey:
    if _key is None:
        raise InvalidInput(
            "the source's keys are kept encrypted in its home, and this process has no key to "
            "them: let workers elsewhere have a profile, and name that with the source"
        )
    return _key
