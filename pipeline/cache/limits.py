"""Limits of a cache: CACHE/.limits.json, the same for all who share it."""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from catalog.errors import BadFile, InvalidInput, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded

FILE = ".limits.json"
_DAMAGED = (ValueError, TypeError, AttributeError, BadFile, InvalidInput)
_MOST_BYTES = 65_536


@dataclass(frozen=True)
class Limits:
    """Limits of a cache; None where there is none.

    Entries and prepared forms count, by their size. Above a soft limit a staging evicts what was
    used least recently, at its end; a hard one is never passed.
    """

    soft_bytes: int | None = None
    hard_bytes: int | None = None
    soft_files: int | None = None
    hard_files: int | None = None
    free_bytes: int = 0
    """What must stay free on the cache's file system [bytes]."""
    user_bytes: int | None = None
    """What the datasets that one user has staged may take [bytes]."""

    @property
    def count(self) -> bool:
        """True where the cache's content must be counted to keep them."""
        return any(
            limit is not None
            for limit in (self.soft_bytes, self.hard_bytes, self.soft_files, self.hard_files)
        )

    def check(self) -> "Limits":
        """The limits themselves, where they fit together.

        Raises:
            InvalidInput: One is below 0, or a soft one above its hard one.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value < 0:
                name = field.name.replace("_", " ")
                raise InvalidInput(f"limit {name} {value}: expected 0 or more")
        for what, soft, hard in (
            ("bytes", self.soft_bytes, self.hard_bytes),
            ("files", self.soft_files, self.hard_files),
        ):
            if soft is not None and hard is not None and soft > hard:
                raise InvalidInput(
                    f"soft limit of {soft:,} {what}: expected at most the hard one, {hard:,}"
                )
        return self


def read_limits(cache: Path) -> Limits:
    """The limits of a cache; none where none were set.

    Raises:
        StorageError: They cannot be read, or were damaged: nothing may come before that is mended.
    """
    try:
        return _read(cache / FILE)
    except _DAMAGED as error:
        path = str(cache / FILE)
        raise StorageError(
            f"{path}: these are no limits ({error}): set all of them again (framesift cache limit "
            "--hard SIZE ...)",
            path,
        ) from error


def change_limits(cache: Path, **changes: int | None) -> Limits:
    """Set some limits of a cache, for all who share it; all of them as they are then.

    Those that are not given stay. Where they were damaged, there are none but the given ones.

    Args:
        **changes: Attributes of `Limits`; None for no limit.
    """
    try:
        limits = _read(cache / FILE)
    except _DAMAGED:
        limits = Limits()
    limits = replace(limits, **changes)  # type: ignore[arg-type]  # by name
    write_limits(cache, limits)
    return limits


def _read(path: Path) -> Limits:
    """The limits in a file; none where it is not there. Else raises one of _DAMAGED."""
    try:
        data = parsed_json(read_bounded(path, _MOST_BYTES))
    except FileNotFoundError:
        return Limits()
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}", str(path)) from error
    known = {field.name for field in fields(Limits)}
    # A later version that shares the cache may have further ones.
    return Limits(**{name: value for name, value in data.items() if name in known}).check()


def write_limits(cache: Path, limits: Limits) -> None:
    """Set the limits of a cache, for all who share it."""
    limits.check()
    atomic_write(cache / FILE, json.dumps(asdict(limits), indent=2), parents=True)
