"""Patterns that leave files and folders of a source out."""

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache

from catalog.errors import InvalidInput

LONGEST_PATTERN = 1_000


class Excluded:
    """Patterns of the files and folders of a source that are left out.

    A pattern without a slash is matched against the name of each file and folder, as "lost+found",
    ".snapshot" or "*.bak"; one with a slash against the whole path below the root, as
    "20180807_145028/lidar". ``*``, ``?`` and ``[...]`` are as in a shell, but that ``*`` matches
    slashes, too. A folder that matches is left out with everything below it.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        """Prepare to match.

        Raises:
            InvalidInput: A pattern is empty, or leaves out everything.
        """
        names: list[str] = []
        paths: list[str] = []
        for pattern in patterns:
            plain = pattern.strip("/")
            if not plain or set(plain) == {"*"} or len(plain) > LONGEST_PATTERN:
                raise InvalidInput(
                    f"exclude '{pattern[:80]}': expected a name such as lost+found or *.bak, or a "
                    "path below the source's root such as 20180807_145028/lidar"
                )
            (paths if "/" in plain else names).append(fnmatch.translate(plain))
        self._names = re.compile("|".join(names)) if names else None
        self._paths = re.compile("|".join(paths)) if paths else None
        self._folder = lru_cache(maxsize=4_096)(self._leaves_out)

    def __bool__(self) -> bool:
        """Return whether there is any pattern."""
        return self._names is not None or self._paths is not None

    def __call__(self, key: str) -> bool:
        """Return whether a file, or a folder (with or without a slash at its end), is left out."""
        if not self or not key:
            return False
        plain = key.rstrip("/")
        return self._matches(plain) or self._folder(plain.rpartition("/")[0])

    def _leaves_out(self, folder: str) -> bool:
        return bool(folder) and (self._matches(folder) or self._folder(folder.rpartition("/")[0]))

    def _matches(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return bool(
            (self._names is not None and self._names.match(name))
            or (self._paths is not None and self._paths.match(path))
        )
