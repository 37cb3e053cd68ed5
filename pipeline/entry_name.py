"""Paths of versions of files and of prepared forms in a cache. A leaf of the standard library."""

import hashlib
import re
from urllib.parse import quote

IN_PLACE = "-in-place"
"""Ending of the names of manifests whose files are read in their own folders."""

HEADER_FILE = "manifest.json"
"""Name of a manifest's header in its folder (pipeline.manifest)."""

FORMS = ".prepared"
"""Folder of the prepared forms (pipeline.prepared.form) in a cache."""

_MARK_CHARACTERS = 12
_MARKED = re.compile(rf"~[0-9a-f]{{{_MARK_CHARACTERS}}}(\.[^.]*)?$")


def source_folder(datasource: str) -> str:
    """The folder of a source in a cache, by its "cluster:datasource"; always with a colon."""
    return quote(datasource, safe=":@+ ")


def is_versioned_key(key: str) -> bool:
    """True for a path that `versioned_key` gave."""
    return _MARKED.search(key) is not None


def versioned_key(key: str, size: int, version: str) -> str:
    """The path of one version of a file below its source's folder in a cache.

    Versions of one file lie beside each other, so that staging one dataset changes no other's.
    """
    folder, slash, name = key.rpartition("/")
    stem, dot, kind = name.rpartition(".")
    mark = hashlib.sha256(f"{size} {version}".encode()).hexdigest()[:_MARK_CHARACTERS]
    return f"{folder}{slash}{stem}~{mark}.{kind}" if dot else f"{folder}{slash}{name}~{mark}"
