"""Where one version of a source's file lies in a cache. A leaf of the standard library."""

import hashlib

_MARK_CHARACTERS = 12


def kept_key(key: str, size: int, version: str) -> str:
    """Where one version of a file lies below its source's folder in a cache.

    Versions of one file lie beside each other, so that staging one dataset changes no other's.
    """
    folder, slash, name = key.rpartition("/")
    stem, dot, kind = name.rpartition(".")
    mark = hashlib.sha256(f"{size} {version}".encode()).hexdigest()[:_MARK_CHARACTERS]
    return f"{folder}{slash}{stem}~{mark}.{kind}" if dot else f"{folder}{slash}{name}~{mark}"
